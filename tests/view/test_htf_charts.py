"""Charts of HTF's figures and of its objective: complete, with alternative texts, true to their tables, series distinct in two ways."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpviz.data.points import PointCounts
from dpviz.evaluation.split_objective import objective_curve
from dpviz.papers import htf as figures_htf
from dpviz.privacy.budget import PureBudget
from dpviz.space.domain import Domain
from dpviz.view import study_charts as htf_charts
from tests.charts import assert_complete, found, rows

UNIT = 'people"}</script>'
QUERIES = ("random", "2 %")
FORMS = ["HTF (5e-4)", "HTF (1e-3)", "HTF (ours)"]
GRIDS = ["UG", "AG", "Singular", "Uniform", "Privelet", "Quadtree (geo)"]


def errors(keys, columns):
    rows = [(*key, queries) for key in keys for queries in QUERIES]
    table, growth = pd.DataFrame(rows, columns=[*columns, "queries"]), 1.1 ** np.arange(len(rows))
    spreads = {f"{figure}_spread": 0.2 * growth for figure in figures_htf.FIGURES}
    return table.assign(mre=growth, n3=2 * growth, mae=300 * growth, **spreads)


def by_height(rivals):
    methods = [f"{rivals} (geo)", f"{rivals} (uniform)", *FORMS]
    given = [(epsilon, method, height, False) for epsilon in (0.1, 0.5) for method in methods for height in (8, 12)]
    found = [(epsilon, method, 9, True) for epsilon in (0.1, 0.5) for method in FORMS]
    return errors(given + found, ["epsilon", "method", "height", "estimated"])


def by_stop():
    keys = [(epsilon, form, stop) for epsilon in (0.1, 0.5) for stop in (10, 100) for form in FORMS[:2]]
    keys += [(epsilon, method, None) for epsilon in (0.1, 0.5) for method in ["HTF (ours)", *GRIDS]]
    return errors(keys, ["epsilon", "method", "stop"]).astype({"stop": "Int64"})


def by_set():
    sets = ["Los Angeles", *(f"σ = {sigma}, {letter}" for sigma in (20, 50, 100) for letter in "ab")]
    return errors([(name, 0.1, method) for name in sets for method in (*FORMS, *GRIDS)], ["data", "epsilon", "method"])


def curve(crs=None, across=True, matrix=None):
    bounds = (0, 0, 16, 16) if crs is None else (-118.6, 33.7, -117.8, 34.3)
    cells = np.random.default_rng(1).poisson(np.linspace(0, 8, 16), (16, 16)) if matrix is None else matrix
    points = PointCounts.from_matrix(cells, domain=Domain(bounds=bounds, crs=crs, order=4))
    return objective_curve(points, PureBudget("0.5"), across=across)


LINES = {
    "3": lambda: htf_charts.figure_3(by_height("KdTree"), 0.1),
    "3 n3": lambda: htf_charts.figure_3(by_height("KdTree"), 0.5, "2 %", "n3"),
    "4": lambda: htf_charts.figure_4(by_stop(), 10),
    "5": lambda: htf_charts.figure_5(by_height("Quadtree"), 0.1, "2 %", "mae"),
}
CHARTS = LINES | {
    "6": lambda: htf_charts.figure_6(by_set()),
    "objective": lambda: htf_charts.objective_chart(curve(), UNIT),
    "latitude": lambda: htf_charts.objective_chart(curve("EPSG:4326", across=False), UNIT),
}


@cache
def drawn(name):
    return CHARTS[name]().to_dict()


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_complete_and_loads_nothing(name):
    chart = drawn(name)
    assert_complete(chart, letters=80)
    assert all(axis.get("title") for axis in found(chart["layer"], "y") if axis["type"] == "quantitative")
    assert all(axis.get("title") for axis in found(chart["layer"], "x"))


@pytest.mark.parametrize("name", CHARTS)
def test_series_differ_in_colour_and_in_form(name):
    chart = drawn(name)
    for channels in (["color"], ["shape", "strokeDash"]):
        scales = [hit["scale"] for channel in channels for hit in found(chart["layer"], channel) if isinstance(hit, dict)]
        assert scales
        for scale in scales:
            assert len(scale["domain"]) == len(scale["range"]) == len({json.dumps(each) for each in scale["range"]})


@pytest.mark.parametrize("name", LINES)
def test_errors_have_logarithmic_axes_and_spreads_that_stay_on_them(name):
    scales = [axis["scale"] for axis in found(drawn(name)["layer"], "y")]
    assert {scale["type"] for scale in scales} == {"log"}
    assert min(scale["domainMin"] for scale in scales) > 0
    assert all(0 < row["low drawn"] <= row["high drawn"] for row in rows(drawn(name)))


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
    assert found(other["layer"], "y")[0]["title"] == htf_charts.MEASURES["n3"]


def test_one_stop_count_is_shown_beside_methods_that_have_none():
    chart = drawn("4")
    shown = {row["method"] for row in rows(chart)}
    assert shown == {*FORMS, *GRIDS}
    assert len(rows(chart)) == 2 * 9
    table = by_stop().query("queries == 'random' and stop == 10")
    assert {row["mre"] for row in rows(chart) if row["method"] in FORMS[:2]} == set(table["mre"])


def test_all_data_share_one_logarithmic_axis():
    chart = drawn("6")
    (axis,) = found(chart["layer"], "x")
    assert axis["scale"]["type"] == "log"
    assert len({row["data"] for row in rows(chart)}) == 7
    assert "σ = 100, b" in chart["description"]


def test_a_single_run_has_no_spread():
    table = by_height("KdTree").assign(mre_spread=np.nan)
    chart = htf_charts.figure_3(table, 0.1).to_dict()
    assert all(row["low"] == row["mre"] == row["high"] for row in rows(chart))


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


def test_axes_are_named_by_the_domain():
    assert found(drawn("objective")["layer"], "x")[0]["title"] == "x of the line"
    assert found(drawn("latitude")["layer"], "x")[0]["title"] == "latitude of the line (degrees)"
    assert "lower and upper" in drawn("latitude")["title"]["text"]


def test_an_empty_domain_has_objective_0():
    chart = htf_charts.objective_chart(curve(matrix=np.zeros((16, 16), int)), "people").to_dict()
    assert {row["objective"] for row in rows(chart)} == {0}
