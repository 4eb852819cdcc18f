"""Charts of studies and of HTF's figures: true to their tables, with alternative texts, series distinct in two ways."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from dpviz.app.compare.state import MOST_CONFIGURATIONS
from dpviz.data.points import PointCounts
from dpviz.evaluation.compare import compare
from dpviz.evaluation.split_objective import objective_curve
from dpviz.evaluation.tables import frontier, summary, tidy
from dpviz.papers import htf as figures_htf
from dpviz.privacy.budget import PureBudget
from dpviz.space.domain import Domain
from dpviz.view import study_charts
from dpviz.view.study_charts import (
    PARTS,
    PICKED,
    error_by_epsilon,
    legend_height,
    lines_with_spread,
    parts_by_label,
    seconds_by_label,
    tiny_means_note,
)
from tests.charts import assert_complete, assert_series_differ, found, rows
from tests.evaluation.test_compare import study


@pytest.fixture(scope="module")
def table():
    which = study(repeats=3, parts=True)
    return summary(tidy(which, compare(which)))


def test_errors_have_a_band_a_line_points_and_the_frontier(table):
    mae = table[table["figure"] == "mae"].reset_index(drop=True)
    best = frontier(mae)
    chart = error_by_epsilon(mae, best, "mean absolute error (people)", "random boxes").to_dict()
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["line", "area", "line", "point"]
    assert chart["title"]["text"] == "Error against ε, random boxes"
    assert len(chart["datasets"][chart["layer"][0]["data"]["name"]]) == len(best)
    assert chart["layer"][-1]["encoding"]["x"]["field"] == "epsilon"
    assert [each["select"]["fields"] for each in chart["params"] if each["name"] == PICKED] == [["label", "epsilon"]]
    for text in ("tree", "cells", f"On the frontier: {best['label'].iloc[0]} at"):
        assert text in chart["description"]


def test_many_configurations_have_looks_a_higher_chart_and_whole_labels_and_one_epsilon_has_an_axis(table):
    many = table[(table["figure"] == "mae") & (table["epsilon"] == 2)]
    many = many.loc[many.index.repeat(8)].reset_index(drop=True)
    many["label"] = [f"Quadtree (split=uniform, height={place})" for place in range(len(many))]
    chart = error_by_epsilon(many, frontier(many), "error", "boxes").to_dict()
    shape = chart["layer"][-1]["encoding"]["shape"]
    assert len(shape["scale"]["domain"]) == len(shape["scale"]["range"]) == 16
    assert chart["layer"][1]["encoding"]["x"]["scale"]["domain"] == [1.0, 4.0]
    assert chart["height"] == 400 + 20 * (6 - 2)
    assert "width" in shape["legend"]["labelLimit"]["expr"]
    assert shape["legend"]["columns"]["expr"] == "clamp(floor(width / 255), 1, 3)"
    assert legend_height(["a", "b"], 340) == 340


def test_tiny_values_do_not_stretch_the_axis(table):
    few = table[(table["figure"] == "mae") & (table["label"] == "tree")].reset_index(drop=True)
    assert tiny_means_note(few) == ""
    few = few.assign(mean=[1e-15, 50.0], p10=[1e-15, 40.0], p90=[1e-15, 60.0])
    chart = error_by_epsilon(few, frontier(few), "error", "boxes").to_dict()
    assert chart["layer"][-1]["encoding"]["y"]["scale"]["domainMin"] == pytest.approx(1e-5)
    assert "at the lower end of the axis" in chart["description"]
    shown = chart["datasets"][chart["layer"][-1]["data"]["name"]]
    assert (shown[0]["mean"], shown[0]["mean drawn"], shown[0]["mean shown"]) == (1e-15, pytest.approx(1e-5), "1e-15")
    assert tiny_means_note(few.assign(mean=float("nan"))) == ""


def test_lines_by_level_have_looks_for_as_many_configurations_as_the_page_takes():
    names = {"label": "configuration", "place": "zoom level", "mean": "error", "stddev": "spread"}
    table = pd.DataFrame({"place": 1, "label": [f"c{place}" for place in range(MOST_CONFIGURATIONS)], "mean": 1.0, "stddev": 0.1})
    chart = lines_with_spread(table, ("place", "label", "mean", "stddev"), names, "Error by zoom level", 340).to_dict()
    assert len(chart["layer"][0]["encoding"]["color"]["scale"]["range"]) == MOST_CONFIGURATIONS


def test_parts_are_drawn_side_by_side_and_times_are_in_the_alternative_text(table):
    parts = table[table["figure"].isin(PARTS) & (table["epsilon"] == 2)].reset_index(drop=True)
    chart = parts_by_label(parts, 2.0, "people", "random boxes").to_dict()
    assert chart["layer"][0]["encoding"]["yOffset"]["field"] == "figure"
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["noise", "uniformity"]
    assert "uniformity: tree:" in chart["description"]
    chart = seconds_by_label(table[(table["figure"] == "seconds") & (table["epsilon"] == 2)], 2.0).to_dict()
    assert chart["description"].startswith("Time of a release at ε 2. Seconds: tree:")


UNIT = 'people"}</script>'
FORMS = ["HTF (5e-4)", "HTF (1e-3)", "HTF (ours)"]
GRIDS = ["UG", "AG", "Singular", "Uniform", "Privelet", "Quadtree (geo)"]


def errors(keys, columns):
    rows = [(*key, queries) for key in keys for queries in ("random", "2 %")]
    table, growth = pd.DataFrame(rows, columns=[*columns, "queries"]), 1.1 ** np.arange(len(rows))
    spreads = {f"{figure}_spread": 0.2 * growth for figure in figures_htf.FIGURES}
    return table.assign(mre=growth, n3=2 * growth, mae=300 * growth, **spreads)


def by_height(rivals):
    methods = [f"{rivals} (geo)", f"{rivals} (uniform)", *FORMS]
    keys = [(epsilon, method, height, False) for epsilon, method, height in product((0.1, 0.5), methods, (8, 12))]
    keys += [(epsilon, method, 9, True) for epsilon, method in product((0.1, 0.5), FORMS)]
    return errors(keys, ["epsilon", "method", "height", "estimated"])


def by_stop():
    keys = [*product((0.1, 0.5), FORMS[:2], (10, 100)), *product((0.1, 0.5), ["HTF (ours)", *GRIDS], [None])]
    return errors(keys, ["epsilon", "method", "stop"]).astype({"stop": "Int64"})


def by_set():
    sets = ["Los Angeles", *(f"σ = {sigma}, {letter}" for sigma in (20, 50, 100) for letter in "ab")]
    return errors([*product(sets, [0.1], (*FORMS, *GRIDS))], ["data", "epsilon", "method"])


def curve(crs=None, across=True, matrix=None):
    bounds = (0, 0, 16, 16) if crs is None else (-118.6, 33.7, -117.8, 34.3)
    cells = np.random.default_rng(1).poisson(np.linspace(0, 8, 16), (16, 16)) if matrix is None else matrix
    points = PointCounts.from_matrix(cells, domain=Domain(bounds=bounds, crs=crs, order=4))
    return objective_curve(points, PureBudget("0.5"), across=across)


LINES = {
    "3": lambda: study_charts.figure_3(by_height("KdTree"), 0.1),
    "3 n3": lambda: study_charts.figure_3(by_height("KdTree"), 0.5, "2 %", "n3"),
    "4": lambda: study_charts.figure_4(by_stop(), 10),
    "5": lambda: study_charts.figure_5(by_height("Quadtree"), 0.1, "2 %", "mae"),
}
CHARTS = LINES | {
    "6": lambda: study_charts.figure_6(by_set()),
    "objective": lambda: study_charts.objective_chart(curve(), UNIT),
    "latitude": lambda: study_charts.objective_chart(curve("EPSG:4326", across=False), UNIT),
}


@cache
def drawn(name):
    return CHARTS[name]().to_dict()


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_complete_and_loads_nothing_and_series_differ_in_colour_and_in_form(name):
    chart = drawn(name)
    assert_complete(chart, letters=80)
    assert all(axis.get("title") for axis in found(chart["layer"], "y") if axis["type"] == "quantitative")
    assert all(axis.get("title") for axis in found(chart["layer"], "x"))
    assert_series_differ(chart)


@pytest.mark.parametrize("name", LINES)
def test_errors_have_logarithmic_axes_and_spreads_that_stay_on_them(name):
    scales = [axis["scale"] for axis in found(drawn(name)["layer"], "y")]
    assert {scale["type"] for scale in scales} == {"log"}
    assert min(scale["domainMin"] for scale in scales) > 0
    assert all(0 < row["low drawn"] <= row["high drawn"] for row in rows(drawn(name)))


def test_a_single_run_has_no_spread():
    chart = study_charts.figure_3(by_height("KdTree").assign(mre_spread=np.nan), 0.1).to_dict()
    assert all(row["low"] == row["mre"] == row["high"] for row in rows(chart))


def test_a_panel_has_one_epsilon_and_workload_and_large_marks_where_htf_chose():
    chart = drawn("3")
    assert {(row["epsilon"], row["queries"]) for row in rows(chart)} == {(0.1, "random")}
    marked = [row for row in rows(chart) if row["estimated"]]
    assert [row["method"] for row in marked] == FORMS
    assert {row["height"] for row in marked} == {9}
    assert found(chart["layer"], "x")[0]["sort"] == [8, 9, 12]
    assert "ε 0.1, queries of random shape and size" in chart["title"]["text"]
    assert "Large marks: HTF (5e-4): 9:" in chart["description"]
    other = drawn("3 n3")
    assert "squares of 2 % of the area" in other["title"]["text"]
    assert found(other["layer"], "y")[0]["title"] == study_charts.MEASURES["n3"]


def test_one_stop_count_is_shown_beside_methods_that_have_none_and_all_data_share_one_axis():
    chart = drawn("4")
    assert sorted((row["epsilon"], row["method"]) for row in rows(chart)) == sorted(product((0.1, 0.5), (*FORMS, *GRIDS)))
    expected = by_stop().query("queries == 'random' and stop == 10")
    assert {row["mre"] for row in rows(chart) if row["method"] in FORMS[:2]} == set(expected["mre"])
    chart = drawn("6")
    (axis,) = found(chart["layer"], "x")
    assert axis["scale"]["type"] == "log"
    assert len({row["data"] for row in rows(chart)}) == 7
    assert "σ = 100, b" in chart["description"]


def test_the_objective_is_drawn_with_the_best_line_and_the_visited_ones():
    chart, about = drawn("objective"), curve()
    kinds = [row["kind"] for row in rows(chart) if "kind" in row]
    assert kinds.count("visited by the paper's search") == len(about.visited)
    assert kinds.count("best line") == kinds.count("end of the paper's search") == 1
    (best,) = [row for row in rows(chart) if row.get("kind") == "best line"]
    assert (best["place"], best["objective"]) == (about.best, about.least)
    band = [row for row in rows(chart) if "low" in row]
    assert [row["place"] for row in band] == about.lines.tolist()
    assert all(row["high"] - row["low"] == pytest.approx(2 * about.noise) for row in band)
    assert "standard deviation of the noise" in chart["description"]


def test_axes_of_objectives_are_named_by_the_domain_and_an_empty_domain_has_objective_0():
    assert found(drawn("objective")["layer"], "x")[0]["title"] == "x of the line"
    assert found(drawn("latitude")["layer"], "x")[0]["title"] == "latitude of the line (degrees)"
    assert "lower and upper" in drawn("latitude")["title"]["text"]
    chart = study_charts.objective_chart(curve(matrix=np.zeros((16, 16), int)), "people").to_dict()
    assert {row["objective"] for row in rows(chart)} == {0}
