"""Escaping of texts from outside, in every map, chart and report: names of levels and regions, ids, units, curator's texts."""

import importlib
import inspect
import io
import pkgutil
import re
from functools import partial
from html import unescape

import pandas as pd
import pytest

import dpviz.view
from dpviz.data.reading.regions import read_regions
from dpviz.view import areas_charts, study_charts, trips_charts
from dpviz.view.escape import clean, deck, html, line, markdown
from dpviz.view.points_canvas import ReleaseView, released_scene
from dpviz.view.scene_svg import draw_svg
from dpviz.view.trips_drawing import SHOWN_TRIPS, TripsMapSettings, draw_trips
from tests.charts import found
from tests.hostile import LEVELS, NAMES, regions_file
from tests.view.test_points_canvas import released as released_points
from tests.view.test_trips_charts import CHARTS as TRIPS_CHARTS
from tests.view.trips_cases import layers_of, random_trips, released

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
PICTURES = ("alt.LayerChart", "bytes")
# Modules whose charts have no text from outside, and why.
OWN = {
    "charts": "points have no names, the unit is a sample's or ours; and what charts are made of",
    "deck": "what maps are made of",
    "slides": "texts of lessons, which are ours; their settings are numbers and choices of ours",
    "canvas": "what its maps are made of; the browser writes all texts as text, never as markup",
}
OWN_CHARTS = {"study_charts.objective_chart", "points_map.draw_picture"}  # numbers alone


@pytest.mark.parametrize("name", NAMES)
def test_an_escaped_text_looks_the_same_everywhere(name):
    joined = [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown(name)), unescape(html(name)), deck(name), line(name)]
    assert {" ".join(text.replace("\u2060", "").split()) for text in joined} == {line(name)}
    assert not any(UNSEEN.search(text) for text in joined)


def test_clean_texts_stay_readable_and_no_text_of_a_map_is_an_expression_a_tag_or_a_placeholder():
    for text, shown in (("A*B_c", "A*B_c"), ("São Tomé 東京 עיר", "São Tomé 東京 עיר"), ("\u200ea\u2003b", "a b"), ("a\ud800", "a\ufffd")):
        assert line(text) == shown
    assert clean("one\ntwo\t3") == "one\ntwo\t3"
    for text in ("@@=a", "@@#a", "@@@=a", "<a", "{n}", "{{n}}"):
        assert not re.match("@@[=#]", deck(text))
        assert not re.search(r"<\S(?<!\u2060)|{[^\s\u2060]", deck(text))
        assert "{" not in html(text)


@pytest.fixture(scope="module")
def hostile():
    """Hostile regions with trips between them: a release, and the true trips it is compared with."""
    file = io.BytesIO(regions_file())
    file.name = "regions.geojson"
    return released(random_trips(read_regions(file, levels=LEVELS)))


def study_rows():
    columns = {"label": NAMES[:6], "epsilon": (0.5, 1.0), "figure": ("noise", "suppression")}
    rows = pd.MultiIndex.from_product(columns.values(), names=columns).to_frame(index=False).assign(workload=NAMES[0], runs=2)
    return rows.assign(**dict.fromkeys(("mean", "low", "high", "least", "most", "stddev"), 1.0 + rows.index))


def _spread(_):
    columns, names = ("epsilon", "label", "mean", "stddev"), {"epsilon": NAMES[2], "label": "l", "mean": NAMES[3], "stddev": "s"}
    return study_charts.lines_with_spread(study_rows().query("figure == 'noise'"), columns, names, NAMES[0], 300)


LISTS = pd.DataFrame({"method": "a", "setting": ["b", "c"], "false_discovery": 1.0, "recall": 2.0, "listed": 3, "max_error": 4})
TOTALS = pd.DataFrame({"trips": NAMES, "released": 1, "low": 0.0, "high": 2.0})
LEVEL_ROWS = pd.DataFrame({"name": NAMES, "level": range(len(NAMES)), "regions": 4, "empty": 2, "false_positives": 1, "false_negatives": 0})
LEVEL_ROWS = LEVEL_ROWS.assign(narrow=50.0, rmse=2.0, expected=1.0, mean=10.0)
WORST = pd.DataFrame({"name": NAMES, "true": 1.0, "released": 2.0, "low": 0.0, "high": 3.0, "error": 1.0})
CHARTS = {
    "areas_charts.errors_by_level": lambda _: areas_charts.errors_by_level(LEVEL_ROWS),
    "areas_charts.shares_by_level": lambda _: areas_charts.shares_by_level(LEVEL_ROWS),
    "areas_charts.worst_regions": lambda _: areas_charts.worst_regions(WORST, NAMES[0]),
    **{f"trips_charts.{name}": partial(make, unit=NAMES[0]) for name, make in TRIPS_CHARTS.items()},
    "trips_charts.compare_stages": lambda case: trips_charts.compare_stages({NAMES[5]: case[1].by_stage}, "mean_error"),
    "trips_charts.lists_chart": lambda _: trips_charts.lists_chart(LISTS),  # its texts are titles and settings of mechanisms
    "trips_charts.totals_bars": lambda _: trips_charts.totals_bars(TOTALS, NAMES[0]),
    "study_charts.error_by_epsilon": lambda _: study_charts.error_by_epsilon(study_rows(), study_rows(), NAMES[0], NAMES[1]),
    "study_charts.parts_by_label": lambda _: study_charts.parts_by_label(study_rows().query("epsilon == 1"), 1.0, NAMES[0], NAMES[1]),
    "study_charts.seconds_by_label": lambda _: study_charts.seconds_by_label(study_rows().query("epsilon == 1 and figure == 'noise'"), 1.0),
    "study_charts.lines_with_spread": _spread,
}
ELSEWHERE_TESTED = {"report.report_html"}  # in test_report


def test_every_picture_has_an_entry():
    modules = [importlib.import_module(f"dpviz.view.{each.name}") for each in pkgutil.iter_modules(dpviz.view.__path__)]
    made = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_") and function.__annotations__.get("return") in PICTURES
    }
    assert {name for name in made if name.partition(".")[0] not in OWN} == {*CHARTS, *ELSEWHERE_TESTED, *OWN_CHARTS}


def texts_of(part):
    """All texts of a specification, without its keys."""
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [part] if isinstance(part, str) else [text for each in inner for text in texts_of(each)]


@pytest.mark.parametrize("name", sorted(CHARTS))
def test_names_in_charts_are_texts_and_no_fields_expressions_or_addresses(hostile, name):
    chart = CHARTS[name](hostile).to_dict()
    for key in ("href", "url", "expr", "signal", "field", "filter", "calculate", "test"):
        assert not [hit for hit in found(chart, key) for each in NAMES if isinstance(hit, str) and each in hit]
    shown = {key: part for key, part in chart.items() if key not in ("$schema", "datasets")}
    assert not any(UNSEEN.search(text) for text in texts_of(shown))


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("shown", SHOWN_TRIPS)
def test_names_on_the_map_of_trips(hostile, level, shown):
    release, truth = hostile
    view = TripsMapSettings(level=level, shown=shown, chosen=0, unit=NAMES[3])
    picture = draw_trips(release, view, truth.true_level(level))
    rows = [row for rows in layers_of(picture).values() for row in rows]
    texts = [row[key] for row in rows for key in "nte" if key in row]
    assert any(NAMES[3] in text.replace("\u2060", "") for text in texts)
    for text in texts:
        assert not re.match("@@[=#]", text)
        assert not re.search(r"<[\w/!?]|{\w", text)
        assert not UNSEEN.search(text)
    assert not UNSEEN.search(repr(picture.legend))
    assert not UNSEEN.search(picture.note + picture.description)


def test_units_on_maps_of_points():
    release, truth = released_points()
    for unit in NAMES:
        for shown in ("Released", "Error"):
            view = ReleaseView.of(release, 0, unit=unit, dark=False, truth=truth)
            drawn = draw_svg(released_scene(view, shown, height=400))
            assert not re.search("<img|<script", drawn)
            assert html(unit) in drawn
