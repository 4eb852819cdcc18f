"""Charts of E2EPriv's figures: complete, with alternative texts, true to their tables, series distinct in two ways."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpviz.papers import e2epriv_charts
from dpviz.papers.e2epriv import figure_11c
from tests.charts import assert_complete, found, rows

METHODS = ["Heuristic", "E2EPriv", "Tuned", "Leaky", "BestNonPriv"]


def errors(columns, *values):
    table = pd.MultiIndex.from_product(values, names=columns).to_frame(index=False)
    return table.assign(error=0.5 * 1.3 ** np.arange(len(table)), spread=0.1)


def by_side():
    return errors(["side"], [10, 50, 100]).assign(heuristic=[False, True, False])


CHARTS = {
    "5": lambda: e2epriv_charts.figure_5(by_side()),
    "10": lambda: e2epriv_charts.figure_10(errors(["method", "size"], METHODS, [0.05, 0.1, 0.5])),
    "11a": lambda: e2epriv_charts.figure_11a(errors(["epsilon", "method", "size"], [0.2, 1.0], METHODS, [0.1])),
    "11b": lambda: e2epriv_charts.figure_11b(
        errors(["share", "method", "size"], [0.2, 0.25, 0.75], ["E2EPriv", "Tuned"], [0.05, 0.1]), "Tuned"
    ),
    "11c": lambda: e2epriv_charts.figure_11c(figure_11c()),
}


@cache
def drawn(name):
    return CHARTS[name]().to_dict()


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_complete_loads_nothing_and_has_a_logarithmic_axis(name):
    chart = drawn(name)
    assert_complete(chart, letters=80)
    assert all(axis.get("title") for key in "xy" for axis in found(chart["layer"], key))
    scales = [axis["scale"] for axis in found(chart["layer"], "y")]
    assert {scale["type"] for scale in scales} == {"log"}
    assert min(scale["domainMin"] for scale in scales) > 0


@pytest.mark.parametrize("name", [name for name in CHARTS if name != "5"])
def test_series_differ_in_colour_and_in_dashes(name):
    for channel in ("color", "strokeDash"):
        for scale in [hit["scale"] for hit in found(drawn(name)["layer"], channel)]:
            assert len(scale["domain"]) == len(scale["range"]) == len({json.dumps(each) for each in scale["range"]})


def test_the_grid_of_the_rule_is_marked_and_named():
    chart = drawn("5")
    assert [row["side"] for row in rows(chart) if row["heuristic"]] == [50]
    assert "UG's rule comes nearest to 50: 0.65" in chart["description"]
    assert found(chart["layer"], "filter") == ["datum.heuristic", "datum.heuristic"]


@pytest.mark.parametrize("name", ["10", "11a"])
def test_methods_that_are_not_private_say_so_and_sizes_are_in_percent(name):
    chart = drawn(name)
    assert {row["method"] for row in rows(chart)} == {*METHODS[:3], "Leaky (NOT PRIVATE)", "BestNonPriv (NOT PRIVATE)"}
    assert "BestNonPriv (NOT PRIVATE)" in chart["description"]
    assert {row["size"] for row in rows(chart)} <= {5, 10, 50}


def test_shares_are_lines_of_one_method():
    chart = drawn("11b")
    assert {row["share"] for row in rows(chart)} == {"20 % for tuning", "25 % for tuning", "75 % for tuning"}
    assert {row["method"] for row in rows(chart)} == {"Tuned"}
    assert "Tuned" in chart["title"]["text"]


def test_sensitivities_are_the_table_s_by_bound_and_grid():
    chart = drawn("11c")
    bounds = {row["bound"] for row in rows(chart)}
    assert bounds == {"response, 40 × 40", "response, 60 × 60", "response, 80 × 80", "overlap", "largest grid", "clipped"}
    assert sorted(row["sensitivity"] for row in rows(chart)) == pytest.approx(sorted(figure_11c()["sensitivity"]))
    assert "clipped: 0.002:" in chart["description"]
