"""Charts of the paper's figures: complete, with alternative texts, true to their tables, series distinct in two ways."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpviz.papers import psd_charts
from dpviz.papers.psd import figure_2
from dpviz.view.charts import COLORS, DASHES, MARKS
from tests.charts import assert_complete, found, rows

SHAPES = ((1, 1), (10, 10), (15, 0.2))
EPSILONS = (0.1, 0.5)


def errors(methods, spread=0.25):
    rows = [(m, e, *shape) for m in methods for e in EPSILONS for shape in SHAPES]
    table = pd.DataFrame(rows, columns=["method", "epsilon", "width", "height"])
    return table.assign(error=0.5 * 1.7 ** np.arange(len(table)), spread=spread)


def by_height():
    parts = [errors(["quad-opt", "Hilbert-R"]).query("epsilon == 0.5").assign(steps=steps) for steps in (6, 7)]
    return pd.concat(parts, ignore_index=True)


def medians():
    rows = [(method, depth, 1024 / 2**depth, 3.5 * (depth + 1), 0.5, 0.02) for method in ("EM", "SS_s") for depth in range(3)]
    return pd.DataFrame(rows, columns=["method", "depth", "records", "error", "spread", "seconds"])


def builds():
    return pd.DataFrame({"method": ["quad-opt", "kd-standard"], "seconds": [0.1, 1.25], "lexsorts": [0.2, 2.5]})


def matching():
    rows = [(3, 0.1, "kd-standard", 0.95, 0.01, 0.94, 0.99), (3, 0.5, "kd-standard", 0.97, 0.01, 0.96, 1.0)]
    rows += [(6, 0.1, "kd-standard", 0.99, 0.01, 0.98, 0.9)]
    return pd.DataFrame(rows, columns=["height", "epsilon", "method", "reduction", "spread", "padded", "recall"])


KD = ["kd-standard", "kd-hybrid", "kd-cell", "kd-noisymean", "kd-noisymean, middle", "kd-smooth", "kd-true", "kd-pure"]
CHARTS = {
    "2": lambda: psd_charts.figure_2(figure_2()),
    "3": lambda: psd_charts.figure_3(errors(["quad-baseline", "quad-opt"]), 0.1),
    "4 error": lambda: psd_charts.figure_4(medians()),
    "4 seconds": lambda: psd_charts.figure_4(medians(), "seconds"),
    "5": lambda: psd_charts.figure_5(errors(KD), 0.5),
    "6": lambda: psd_charts.figure_6(by_height(), (15, 0.2)),
    "7a": lambda: psd_charts.figure_7a(builds()),
    "7b reduction": lambda: psd_charts.figure_7b(matching(), 3),
    "7b recall": lambda: psd_charts.figure_7b(matching(), 3, "recall"),
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


@pytest.mark.parametrize("name", [name for name in CHARTS if name not in ("7a", "7b reduction", "7b recall")])
def test_errors_and_times_have_logarithmic_axes(name):
    scales = [axis["scale"] for axis in found(drawn(name)["layer"], "y")]
    assert {scale["type"] for scale in scales} == {"log"}
    assert min(scale["domainMin"] for scale in scales) > 0


@pytest.mark.parametrize("name", [name for name in CHARTS if name != "7a"])
def test_series_differ_in_colour_and_in_form(name):
    chart = drawn(name)
    channels = [found(chart["layer"], channel) for channel in ("color", "shape", "strokeDash")]
    scales = [channel[0]["scale"] for channel in channels if channel]
    assert len(scales) == 2
    for scale in scales:
        assert len(scale["domain"]) == len(scale["range"]) == len({json.dumps(each) for each in scale["range"]})


@pytest.mark.parametrize("ways", [COLORS, DASHES, MARKS])
def test_there_are_looks_for_all_kd_trees(ways):
    assert len(ways) == len({json.dumps(way) for way in ways}) >= len(KD)


def test_worst_cases_are_the_paper_s():
    shown = {(row["height"], row["split"]): row["error"] for row in rows(drawn("2"))}
    assert shown[10, "uniform"] == 121 * 2047
    assert shown[10, "geometric"] == pytest.approx(91_189.55)
    assert "uniform: 5: 2,268" in drawn("2")["description"]


def test_one_epsilon_is_shown_with_shapes_in_order_and_spreads_that_stay_on_the_axis():
    chart = psd_charts.figure_3(errors(["quad-baseline", "quad-opt"], spread=1e6), 0.1).to_dict()
    assert [row["shape"] for row in rows(chart)] == ["1 × 1", "10 × 10", "15 × 0.2"] * 2
    assert {row["epsilon"] for row in rows(chart)} == {0.1}
    assert all(0 < row["low drawn"] <= row["error drawn"] <= row["high drawn"] for row in rows(chart))
    assert "ε = 0.1" in chart["title"]["text"]


def test_a_single_run_has_no_spread():
    chart = psd_charts.figure_3(errors(["quad-opt"], spread=np.nan), 0.5).to_dict()
    assert all(row["low"] == row["error"] == row["high"] for row in rows(chart))
    assert {row["spread shown"] for row in rows(chart)} == {"–"}


def test_trees_that_are_not_private_say_so():
    chart = drawn("5")
    assert {row["method"] for row in rows(chart)} == {*KD[:-2], "kd-true (NOT PRIVATE)", "kd-pure (NOT PRIVATE)"}
    assert "kd-pure (NOT PRIVATE)" in chart["description"]


def test_one_shape_is_shown_by_height_of_the_tree():
    chart = drawn("6")
    assert {(row["width"], row["height"]) for row in rows(chart)} == {(15, 0.2)}
    assert {row["steps"] for row in rows(chart)} == {6, 7}
    assert "15 × 0.2 degrees" in chart["title"]["text"]


def test_build_times_are_shown_in_seconds_and_in_sorts():
    chart = drawn("7a")
    assert [row["label"] for row in rows(chart)] == ["0.1 s, 0.2 sorts", "1.2 s, 2.5 sorts"]
    assert "kd-standard: 2.5" in chart["description"]


def test_matching_is_shown_in_percent_for_one_height():
    saved, kept = (drawn(f"7b {measure}") for measure in ("reduction", "recall"))
    assert [row["reduction"] for row in rows(saved)] == pytest.approx([95, 97])
    assert "work saved" in saved["title"]["text"]
    assert "0.1: 99, 0.5: 100" in kept["description"]
    assert "height 3" in kept["title"]["text"]
