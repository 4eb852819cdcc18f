"""Charts of the papers' figures: complete, with alternative texts, true to their tables, series distinct in two ways."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpviz.papers import e2epriv_charts, psd_charts
from dpviz.papers.e2epriv import figure_11c
from dpviz.papers.psd import figure_2
from dpviz.view.charts import COLORS, DASHES, MARKS
from tests.charts import assert_complete, found, rows

EPSILONS, SHAPES = [0.1, 0.5], [(1, 1), (10, 10), (15, 0.2)]
METHODS = ["Heuristic", "E2EPriv", "Tuned", "Leaky", "BestNonPriv"]
KD = ["kd-standard", "kd-hybrid", "kd-cell", "kd-noisymean", "kd-noisymean, middle", "kd-smooth", "kd-true", "kd-pure"]


def errors(spread=0.1, **values):
    """A table of every combination of values, its errors growing from row to row."""
    table = pd.MultiIndex.from_product(values.values(), names=values).to_frame(index=False)
    return table.assign(error=0.5 * 1.3 ** np.arange(len(table)), spread=spread)


def by_shape(methods, spread=0.25, **more):
    table = errors(spread, **more, method=methods, epsilon=EPSILONS, shape=SHAPES)
    width, height = zip(*table.pop("shape"), strict=True)
    return table.assign(width=width, height=height)


def medians():
    table = errors(0.5, method=["EM", "SS_s"], depth=[0, 1, 2])
    return table.assign(records=1024 / 2 ** table["depth"], seconds=0.02)


def matching():
    at = pd.DataFrame({"height": [3, 3, 6], "epsilon": [0.1, 0.5, 0.1], "method": "kd-standard", "spread": 0.01})
    return at.assign(reduction=[0.95, 0.97, 0.99], padded=[0.94, 0.96, 0.98], recall=[0.99, 1.0, 0.9])


@cache
def drawings():
    """The charts by figure, of E2EPriv and of the paper on decompositions."""
    by_height = by_shape(["quad-opt", "Hilbert-R"], steps=[6, 7]).query("epsilon == 0.5")
    builds = pd.DataFrame({"method": ["quad-opt", "kd-standard"], "seconds": [0.1, 1.25], "lexsorts": [0.2, 2.5]})
    by_share = errors(share=[0.2, 0.25, 0.75], method=["E2EPriv", "Tuned"], size=[0.05, 0.1])
    return {
        "e2e 5": e2epriv_charts.figure_5(errors(side=[10, 50, 100]).assign(heuristic=[False, True, False])),
        "e2e 10": e2epriv_charts.figure_10(errors(method=METHODS, size=[0.05, 0.1, 0.5])),
        "e2e 11a": e2epriv_charts.figure_11a(errors(epsilon=[0.2, 1.0], method=METHODS, size=[0.1])),
        "e2e 11b": e2epriv_charts.figure_11b(by_share, "Tuned"),
        "e2e 11c": e2epriv_charts.figure_11c(figure_11c()),
        "2": psd_charts.figure_2(figure_2()),
        "3": psd_charts.figure_3(by_shape(["quad-baseline", "quad-opt"]), 0.1),
        "3, far spreads": psd_charts.figure_3(by_shape(["quad-baseline", "quad-opt"], 1e6), 0.1),
        "3, a single run": psd_charts.figure_3(by_shape(["quad-opt"], np.nan), 0.5),
        "4 error": psd_charts.figure_4(medians()),
        "4 seconds": psd_charts.figure_4(medians(), "seconds"),
        "5": psd_charts.figure_5(by_shape(KD), 0.5),
        "6": psd_charts.figure_6(by_height, (15, 0.2)),
        "7a": psd_charts.figure_7a(builds),
        "7b reduction": psd_charts.figure_7b(matching(), 3),
        "7b recall": psd_charts.figure_7b(matching(), 3, "recall"),
    }


@cache
def drawn(name):
    return drawings()[name].to_dict()


NAMES = ["e2e 5", "e2e 10", "e2e 11a", "e2e 11b", "e2e 11c", "2", "3", "4 error", "4 seconds", "5", "6", "7a", "7b reduction", "7b recall"]


@pytest.mark.parametrize("name", NAMES)
def test_every_chart_is_complete_loads_nothing_and_has_logarithmic_axes_for_errors_and_times(name):
    chart = drawn(name)
    assert_complete(chart, letters=80)
    axes = found(chart["layer"], "y")
    assert all(axis.get("title") for axis in axes if axis["type"] == "quantitative")
    assert all(axis.get("title") for axis in found(chart["layer"], "x"))
    if not name.startswith("7"):
        assert {axis["scale"]["type"] for axis in axes} == {"log"}
        assert min(axis["scale"]["domainMin"] for axis in axes) > 0


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("e2e 5", "7a")])
def test_series_differ_in_colour_and_in_form(name):
    channels = [found(drawn(name)["layer"], channel) for channel in ("color", "shape", "strokeDash")]
    scales = [hit["scale"] for channel in channels for hit in channel if "scale" in hit]
    assert len([channel for channel in channels if channel]) == 2
    for scale in scales:
        assert len(scale["domain"]) == len(scale["range"]) == len({json.dumps(each) for each in scale["range"]})


@pytest.mark.parametrize("ways", [COLORS, DASHES, MARKS])
def test_there_are_looks_for_all_kd_trees(ways):
    assert len(ways) == len({json.dumps(way) for way in ways}) >= len(KD)


def test_the_grid_of_the_rule_is_marked_and_named():
    chart = drawn("e2e 5")
    assert [row["side"] for row in rows(chart) if row["heuristic"]] == [50]
    assert "UG's rule comes nearest to 50: 0.65" in chart["description"]
    assert found(chart["layer"], "filter") == ["datum.heuristic", "datum.heuristic"]


@pytest.mark.parametrize(
    ("name", "methods"),
    [(name, {*METHODS[:3], "Leaky (NOT PRIVATE)", "BestNonPriv (NOT PRIVATE)"}) for name in ("e2e 10", "e2e 11a")]
    + [("5", {*KD[:-2], "kd-true (NOT PRIVATE)", "kd-pure (NOT PRIVATE)"})],
)
def test_methods_that_are_not_private_say_so_and_sizes_are_in_percent(name, methods):
    chart = drawn(name)
    assert {row["method"] for row in rows(chart)} == methods
    assert ("kd-pure (NOT PRIVATE)" if name == "5" else "BestNonPriv (NOT PRIVATE)") in chart["description"]
    assert name == "5" or {row["size"] for row in rows(chart)} <= {5, 10, 50}


def test_shares_are_lines_of_one_method():
    chart = drawn("e2e 11b")
    assert {row["share"] for row in rows(chart)} == {"20 % for tuning", "25 % for tuning", "75 % for tuning"}
    assert {row["method"] for row in rows(chart)} == {"Tuned"}
    assert "Tuned" in chart["title"]["text"]


def test_sensitivities_are_the_table_s_by_bound_and_grid():
    chart = drawn("e2e 11c")
    bounds = {row["bound"] for row in rows(chart)}
    assert bounds == {"response, 40 × 40", "response, 60 × 60", "response, 80 × 80", "overlap", "largest grid", "clipped"}
    assert sorted(row["sensitivity"] for row in rows(chart)) == pytest.approx(sorted(figure_11c()["sensitivity"]))
    assert "clipped: 0.002:" in chart["description"]


def test_worst_cases_are_the_paper_s():
    shown = {(row["height"], row["split"]): row["error"] for row in rows(drawn("2"))}
    assert shown[10, "uniform"] == 121 * 2047
    assert shown[10, "geometric"] == pytest.approx(91_189.55)
    assert "uniform: 5: 2,268" in drawn("2")["description"]


def test_one_epsilon_is_shown_with_shapes_in_order_and_spreads_that_stay_on_the_axis():
    chart = drawn("3, far spreads")
    assert [row["shape"] for row in rows(chart)] == ["1 × 1", "10 × 10", "15 × 0.2"] * 2
    assert {row["epsilon"] for row in rows(chart)} == {0.1}
    assert all(0 < row["low drawn"] <= row["error drawn"] <= row["high drawn"] for row in rows(chart))
    assert "ε = 0.1" in chart["title"]["text"]
    single = rows(drawn("3, a single run"))
    assert all(row["low"] == row["error"] == row["high"] for row in single)
    assert {row["spread shown"] for row in single} == {"–"}


def test_one_shape_is_shown_by_height_of_the_tree():
    chart = drawn("6")
    assert {(row["width"], row["height"]) for row in rows(chart)} == {(15, 0.2)}
    assert {row["steps"] for row in rows(chart)} == {6, 7}
    assert "15 × 0.2 degrees" in chart["title"]["text"]


def test_build_times_are_shown_in_seconds_and_in_sorts_and_matching_in_percent_for_one_height():
    assert [row["label"] for row in rows(drawn("7a"))] == ["0.1 s, 0.2 sorts", "1.2 s, 2.5 sorts"]
    assert "kd-standard: 2.5" in drawn("7a")["description"]
    saved, kept = drawn("7b reduction"), drawn("7b recall")
    assert [row["reduction"] for row in rows(saved)] == pytest.approx([95, 97])
    assert "work saved" in saved["title"]["text"]
    assert "0.1: 99, 0.5: 100" in kept["description"]
    assert "height 3" in kept["title"]["text"]
