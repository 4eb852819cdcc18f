"""Axes of errors: no value lies outside of them, zeros have a place of their own, and percentages go from 0 to 100."""

import numpy as np
import pandas as pd
import pytest

from dpviz.view.error_axis import COUNT, LOG, PERCENT, error_axis
from dpviz.view.study_charts import error_by_epsilon, lines_with_spread, tiny_means_note

ROWS = pd.DataFrame({"label": "a", "epsilon": [0.1, 1.0, 2.0], "mean": [0.0, 3.0, 90.0], "low": np.nan, "high": np.nan, "runs": 3})
ROWS = ROWS.assign(least=[0.0, 1.0, 80.0], most=[0.0, 4.0, 99.0], stddev=[0.0, 2.0, 30.0])


def axis(scale, values):
    drawn, make_y = error_axis(pd.DataFrame({"mean": values}), ["mean"], "error", scale)
    y = make_y("mean drawn").to_dict()
    return drawn["mean drawn"].tolist(), y["scale"], y["axis"].get("values")


def test_percentages_are_drawn_as_they_are_between_0_and_100():
    drawn, scale, _ = axis(PERCENT, [0.0, 12.5, 104.0])
    assert (drawn, scale) == ([0.0, 12.5, 100.0], {"domainMin": 0, "domainMax": 100})


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 0.0], [0, 1, 2, 5]),
        ([0.2, 3.0], [0, 1, 2, 5]),
        ([0.0, 4000.0], [0, 1, 10, 100, 1000]),
        ([30.0, 4000.0], [10, 100, 1000]),
        ([np.nan, 30.0, 400.0], [10, 20, 50, 100, 200, 500]),
        ([], [0, 1, 2, 5]),
    ],
)
def test_counts_keep_their_zeros_and_begin_at_0_only_if_there_are_some(values, ticks):
    drawn, scale, found = axis(COUNT, values)
    assert drawn == pytest.approx(values, nan_ok=True)
    assert (scale["type"], scale["domain"], found) == ("symlog", [ticks[0], np.nanmax([1.0, *values])], ticks)


@pytest.mark.parametrize(("scale", "kind"), [(LOG, "log"), (PERCENT, None), (COUNT, "symlog")])
def test_both_charts_of_the_compare_page_take_every_axis(scale, kind):
    names = {"label": "configuration", "epsilon": "ε", "mean": "rate", "stddev": "spread"}
    charts = [
        error_by_epsilon(ROWS, ROWS.iloc[:1], "rate", "pairs of level county", scale=scale).to_dict(),
        lines_with_spread(ROWS, ("epsilon", "label", "mean", "stddev"), names, "Rates", 340, scale=scale).to_dict(),
    ]
    for chart in charts:
        for layer in chart["layer"]:
            assert (layer["encoding"]["y"]["title"], layer["encoding"]["y"]["scale"].get("type")) == ("rate", kind)
    shown = next(iter(charts[1]["datasets"].values()))
    assert all(row["low drawn"] <= row["mean drawn"] <= row["high drawn"] for row in shown)
    assert scale != PERCENT or {row["high drawn"] for row in shown} == {0, 5, 100}
    assert (tiny_means_note(ROWS, scale) != "") == (scale == LOG)
