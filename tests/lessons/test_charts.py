"""Charts of the Learn page: series differ for every kind of sight and on both pages, and legends fit a phone."""

import itertools

import pandas as pd
import pytest

from dpviz.lessons import LESSONS
from dpviz.lessons.charts import AMBER, COLORS, GREEN, RED, Look, columns_for, curve_chart
from dpviz.lessons.consistency import _FITS, _OFF
from dpviz.lessons.day import FILLS as DAY
from dpviz.lessons.false_positives import SQUARE_COLORS
from dpviz.lessons.maps import FILL
from dpviz.lessons.topdown import FILLS
from dpviz.lessons.zoom import ORANGE
from dpviz.view.charts import DASHES
from dpviz.view.colors import ACCENT
from tests.colors import contrast, difference
from tests.often import often

PAGES = ("#ffffff", "#101518")
ALONE, WITH_A_FORM = 20.0, 12.0  # least distances in CIELAB, of colours alone and of lines with dashes or marks with shapes

LINES = {"COLORS": COLORS, "split": (RED, *COLORS[:1], *COLORS[2:])}
FORMS = {"tried and best": (AMBER, GREEN), "holds and misses": (ACCENT, RED)}
AREAS = {"family": tuple(FILLS.values()), "street": (_FITS, _OFF), "town and outline": (FILL, RED), "presence": ("#d55e00", "#0072b2")}
AREAS |= {"clear and not": DAY}
AREAS |= {"known and drowned": (FILL, ORANGE), "empty, hidden and shown": SQUARE_COLORS}
BARE = AREAS | {"two series, and dots without dashes": COLORS[:2]}


@pytest.mark.parametrize("name", BARE | LINES | FORMS)
def test_colours_differ_with_every_kind_of_sight(name):
    for first, second in itertools.combinations((BARE | LINES | FORMS)[name], 2):
        assert difference(first, second) > (ALONE if name in BARE else WITH_A_FORM), (first, second)


def test_lines_and_marks_stand_out_on_either_page_and_lines_have_dashes_of_their_own():
    for color, page in itertools.product({*COLORS, *itertools.chain(*LINES.values(), *FORMS.values())}, PAGES):
        assert contrast(color, page) >= 3, color
    most = max(map(len, LINES.values()))
    assert len({tuple(dash) for dash in DASHES[:most]}) == most


def encodings(spec):
    """Every encoding of a chart, however deep, but not its data."""
    if isinstance(spec, dict):
        yield from ([spec["encoding"]] if "encoding" in spec else [])
    if isinstance(spec, dict | list):
        for key, part in spec.items() if isinstance(spec, dict) else enumerate(spec):
            yield from encodings(part) if key != "datasets" else ()


LONG = {"trust", "record_or_person", "reconstruction", "finding_home"}


@pytest.mark.parametrize("lesson", often(LESSONS, [each for each in LESSONS if each.key not in LONG]), ids=lambda lesson: lesson.key)
def test_every_series_of_every_lesson_has_a_checked_colour_and_a_second_look(lesson):
    checked = {frozenset(colors) for colors in (BARE | LINES | FORMS).values()}
    for spec in (chart.to_dict() for chart in lesson().show().charts):
        for encoding in encodings(spec):
            ranges = encoding.get("color", {}).get("scale", {}).get("range")
            assert not ranges or len(ranges) == 1 or any(set(ranges) <= colors for colors in checked), ranges
        text = str({key: part for key, part in spec.items() if key != "datasets"})
        assert "'color'" not in text or "strokeDash" in text or "shape" in text or "'text'" in text


@pytest.mark.parametrize(
    ("names", "columns"),
    [(("a",), 1), (("home", "work"), 2), (("kd-tree", "its noise", "its uniformity", "quadtree"), 2), (("x" * 60, "y" * 60), 1)],
)
def test_legends_get_columns_that_fit_a_phone(names, columns):
    assert columns_for(names) == columns


def test_a_line_in_a_legend_is_long_enough_to_show_its_dashes():
    table = pd.DataFrame({"x": [1, 2, 1, 2], "y": [1, 2, 2, 3], "series": ["a", "a", "b", "b"]})
    chart = curve_chart(table, Look(title="t", x="x", y="y", order=("a", "b"))).to_dict()
    legends = [each[name]["legend"] for each in encodings(chart) for name in ("color", "strokeDash") if name in each]
    assert legends
    assert all(legend["symbolSize"] >= 400 and legend["columns"] == 2 for legend in legends)
