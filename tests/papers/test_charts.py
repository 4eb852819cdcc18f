"""Charts of the papers' figures: complete, with alternative texts, true to their tables, series distinct in two ways."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpviz.papers import e2epriv_charts, psd_charts
from dpviz.papers.e2epriv import figure_11c
from dpviz.papers.psd import figure_2
from tests.charts import assert_complete, assert_series_differ, found, rows

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
    charts = {
        "e2e 5": e2epriv_charts.figure_5(errors(side=[10, 50, 100]).assign(heuristic=[False, True, False])),
        "e2e 10": e2epriv_charts.figure_10(errors(method=METHODS, size=[0.05, 0.1, 0.5])),
        "e2e 11a": e2epriv_charts.figure_11a(errors(epsilon=[0.2, 1.0], method=METHODS, size=[0.1])),
        "e2e 11b": e2epriv_charts.figure_11b(by_share, "Tuned"),
        "e2e 11c": e2epriv_charts.figure_11c(figure_11c()),
        "2": psd_charts.figure_2(figure_2()),
        "3": psd_charts.figure_3(by_shape(["quad-baseline", "quad-opt"], 1e6), 0.1),
        "4 error": psd_charts.figure_4(medians()),
        "4 seconds": psd_charts.figure_4(medians(), "seconds"),
        "5": psd_charts.figure_5(by_shape(KD), 0.5),
        "6": psd_charts.figure_6(by_height, (15, 0.2)),
        "7a": psd_charts.figure_7a(builds),
        "7b reduction": psd_charts.figure_7b(matching(), 3),
        "7b recall": psd_charts.figure_7b(matching(), 3, "recall"),
    }
    return {name: chart.to_dict() for name, chart in charts.items()}


SAYS = {
    "e2e 5": (None, "UG's rule comes nearest to 50: 0.65"),
    "e2e 10": (None, "BestNonPriv (NOT PRIVATE)"),
    "e2e 11a": (None, "BestNonPriv (NOT PRIVATE)"),
    "e2e 11b": ("Tuned", None),
    "e2e 11c": (None, "clipped: 0.002:"),
    "2": (None, "uniform: 5: 2,268"),
    "3": ("ε = 0.1", None),
    "4 error": (None, None),
    "4 seconds": (None, None),
    "5": (None, "kd-pure (NOT PRIVATE)"),
    "6": ("15 × 0.2 degrees", None),
    "7a": (None, "kd-standard: 2.5"),
    "7b reduction": ("work saved", None),
    "7b recall": ("height 3", "0.1: 99, 0.5: 100"),
}
"""What titles and alternative texts hold."""


@pytest.mark.parametrize("name", SAYS)
def test_every_chart_is_complete_loads_nothing_and_has_logarithmic_axes_for_errors_and_times(name):
    chart, (title, words) = drawings()[name], SAYS[name]
    assert_complete(chart, letters=80)
    assert (title or "") in chart["title"]["text"]
    assert (words or "") in chart["description"]
    axes = found(chart["layer"], "y")
    assert all(axis.get("title") for axis in axes if axis["type"] == "quantitative")
    assert all(axis.get("title") for axis in found(chart["layer"], "x"))
    if not name.startswith("7"):
        assert {axis["scale"]["type"] for axis in axes} == {"log"}
        assert min(axis["scale"]["domainMin"] for axis in axes) > 0


@pytest.mark.parametrize("name", sorted(SAYS.keys() - {"e2e 5", "7a"}))
def test_series_differ_in_colour_and_in_form(name):
    assert_series_differ(drawings()[name])


ROWS = [
    ("e2e 10", "method", {*METHODS[:3], "Leaky (NOT PRIVATE)", "BestNonPriv (NOT PRIVATE)"}),
    ("e2e 10", "size", {5, 10, 50}),
    ("e2e 11b", "share", {"20 % for tuning", "25 % for tuning", "75 % for tuning"}),
    ("e2e 11c", "bound", {"response, 40 × 40", "response, 60 × 60", "response, 80 × 80", "overlap", "largest grid", "clipped"}),
    ("3", "shape", {"1 × 1", "10 × 10", "15 × 0.2"}),
    ("5", "method", {*KD[:-2], "kd-true (NOT PRIVATE)", "kd-pure (NOT PRIVATE)"}),
    ("6", "steps", {6, 7}),
    ("7a", "label", {"0.1 s, 0.2 sorts", "1.2 s, 2.5 sorts"}),
    ("7b reduction", "reduction", {95, 97}),
]


@pytest.mark.parametrize(("name", "column", "values"), ROWS)
def test_what_is_drawn_is_in_the_units_and_by_the_names_that_are_shown(name, column, values):
    assert {row[column] for row in rows(drawings()[name])} == values


def test_far_spreads_stay_on_the_axis_and_a_single_run_has_none():
    assert all(0 < row["low drawn"] <= row["error drawn"] <= row["high drawn"] for row in rows(drawings()["3"]))
    single = rows(psd_charts.figure_3(by_shape(["quad-opt"], np.nan), 0.5).to_dict())
    assert all(row["low"] == row["error"] == row["high"] for row in single)
    assert {row["spread shown"] for row in single} == {"–"}
