"""Charts of HTF's figures: true to their tables, with alternative texts, series distinct in two ways."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from dpviz.errors import InputError
from dpviz.papers import htf_charts
from dpviz.papers.htf import FIGURES
from tests.charts import assert_complete, assert_series_differ, found, rows

FORMS = ["HTF (5e-4)", "HTF (1e-3)", "HTF (ours)"]
GRIDS = ["UG", "AG", "Singular", "Uniform", "Privelet", "Quadtree (geo)"]


def errors(keys, columns):
    rows = [(*key, queries) for key in keys for queries in ("random", "2 %", "10 %")]
    table, growth = pd.DataFrame(rows, columns=[*columns, "queries"]), 1.1 ** np.arange(len(rows))
    spreads = {f"{figure}_spread": 0.2 * growth for figure in FIGURES}
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


LINES = {
    "3": lambda: htf_charts.figure_3(by_height("KdTree"), 0.1),
    "3 n3": lambda: htf_charts.figure_3(by_height("KdTree"), 0.5, "2 %", "n3"),
    "4": lambda: htf_charts.figure_4(by_stop(), 10),
    "5": lambda: htf_charts.figure_5(by_height("Quadtree"), 0.1, "2 %", "mae"),
    "3 sizes": lambda: htf_charts.by_query_size(by_height("KdTree"), 0.1, tree_height=12),
    "4 sizes": lambda: htf_charts.by_query_size(by_stop(), 0.5, stop=10),
}
CHARTS = LINES | {
    "6": lambda: htf_charts.figure_6(by_set()),
    "6 σ = 20": lambda: htf_charts.figure_6(by_set(), "σ = 20"),
}


@cache
def drawn(name):
    return CHARTS[name]().to_dict()


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_complete_and_series_differ_in_colour_and_in_form(name):
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
    chart = htf_charts.figure_3(by_height("KdTree").assign(mre_spread=np.nan), 0.1).to_dict()
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
    assert found(other["layer"], "y")[0]["title"] == htf_charts.MEASURES["n3"]


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


def test_a_panel_of_all_methods_has_one_sigma_and_queries_are_ordered_by_size():
    assert {row["data"] for row in rows(drawn("6 σ = 20"))} == {"σ = 20, a", "σ = 20, b"}
    assert drawn("6 σ = 20")["title"]["text"] == "All methods, σ = 20, ε 0.1"
    for name, methods in (("3 sizes", 5), ("4 sizes", 9)):
        shares = [row["share"] for row in rows(drawn(name))]
        assert sorted(shares) == [2] * methods + [10] * methods
        assert found(drawn(name)["layer"], "x")[0]["sort"] == [2, 10]
    assert drawn("3 sizes")["title"]["text"] == "Error by size of queries, ε 0.1, height 12"
    assert drawn("4 sizes")["title"]["text"] == "Error by size of queries, ε 0.5, stop count 10"


def test_a_chart_of_what_is_not_in_the_table_is_refused():
    with pytest.raises(InputError, match="it has Los Angeles"):
        htf_charts.figure_6(by_set(), "σ = 2")
    with pytest.raises(InputError, match="no squares"):
        htf_charts.by_query_size(by_height("KdTree"), 0.1, tree_height=3)
