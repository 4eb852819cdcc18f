"""Charts of trips: complete without a network, with alternative texts, in the order of stages, true to their tables."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.evaluation.trip_metrics import error_bounds
from dpviz.view import trips_charts as charts
from dpviz.view.colors import ACCENT
from tests.charts import assert_complete, assert_plain_axes, assert_series_differ, found, rows
from tests.view.trips_cases import grid, random_trips, released

UNIT = 'trips"}</script>'
STAGES = ["all to all", "all to state", "state to state", "state to county", "county to county"]


@pytest.fixture(scope="module")
def case():
    return released(random_trips(grid()))


@pytest.fixture(scope="module")
def flat():
    return released(random_trips(grid()), "flat_gaussian")


def totals(**other):
    bounds = {"low": [11_900.0, 850, 0], "high": [12_100.0, 950, 20]}
    return pd.DataFrame({"trips": ["leaving", "arriving", "within"], "released": [12_000, 900, 0]} | bounds | other)


CHARTS = {
    "errors_by_stage": lambda case, unit: charts.errors_by_stage(case[1].by_stage, error_bounds(case[0]), unit),
    "rates_by_stage": lambda case, unit: charts.rates_by_stage(case[1].by_stage),
    "pairs_by_stage": lambda case, unit: charts.pairs_by_stage(case[1].by_stage),
    "expected_by_stage": lambda case, unit: charts.expected_by_stage(case[0], unit),
    "receipt_by_stage": lambda case, unit: charts.receipt_by_stage(case[0].receipt),
    "compare_stages": lambda case, unit: charts.compare_stages({"one": case[1].by_stage, "two": case[1].by_stage}, "max_error", unit),
    "totals_bars": lambda _, unit: charts.totals_bars(totals(true=[12_001, 899, 1]), unit),
    "matrix_chart": lambda case, unit: charts.matrix_chart(case[0], 2, unit),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_complete_and_small_and_loads_nothing_and_stages_stand_in_their_order(case, name):
    chart = CHARTS[name](case, UNIT).to_dict()
    assert_complete(chart, letters=60)
    assert_plain_axes(chart)
    assert len(json.dumps(chart)) < 300_000
    assert " nan" not in chart["description"].lower()
    if name not in ("rates_by_stage", "pairs_by_stage", "receipt_by_stage"):
        assert UNIT in chart["description"]
        assert UNIT in json.dumps(chart["layer"]).replace('\\"', '"')
    if name in ("errors_by_stage", "rates_by_stage", "pairs_by_stage", "compare_stages"):
        assert [axis["sort"] for axis in found(chart["layer"], "x")] == [STAGES]
        assert_series_differ(chart)


def test_errors_bounds_and_rates_are_those_of_the_table(case):
    table, bounds = case[1].by_stage, error_bounds(case[0])
    chart = CHARTS["errors_by_stage"](case, UNIT).to_dict()
    for series, expected in (("largest error", table["max_error"]), ("mean error", table["mean_error"]), ("bound, 95 %", bounds)):
        assert [row["value"] for row in rows(chart) if row["series"] == series] == pytest.approx(list(expected))
    assert chart["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"
    drawn = [row["value drawn"] for row in rows(chart)]
    assert min(drawn) >= chart["layer"][0]["encoding"]["y"]["scale"]["domainMin"] > 0
    assert all(math.isfinite(value) for value in drawn)
    chart = CHARTS["rates_by_stage"](case, UNIT).to_dict()
    line = chart["layer"][0]["encoding"]
    assert line["color"]["scale"] == {"domain": ["false discovery rate", "false negative rate"], "range": ["#d55e00", "#0072b2"]}
    assert line["y"]["scale"] == {"domainMax": 100, "domainMin": 0}
    for series, column in (("false discovery rate", "false_discovery"), ("false negative rate", "false_negative")):
        assert [row["value"] for row in rows(chart) if row["series"] == series] == pytest.approx(list(case[1].by_stage[column]))


def test_a_bound_that_is_not_known_is_left_out_and_a_release_without_any_error_can_be_drawn(case):
    table = case[1].by_stage
    chart = charts.errors_by_stage(table, np.full(len(table), np.nan), "trips").to_dict()
    assert {row["series"] for row in rows(chart)} == {"largest error", "mean error"}
    assert "NaN" not in json.dumps(rows(chart))
    table = table.assign(max_error=0, mean_error=0.0, false_discovery=0.0, false_negative=0.0)
    drawn = charts.errors_by_stage(table, np.zeros(5), "trips"), charts.compare_stages({"one": table}, "max_error")
    assert all(chart.to_dict() for chart in (*drawn, charts.rates_by_stage(table)))


def test_expected_noise_needs_no_truth_and_names_the_numbers_measured(case, flat):
    chart = rows(charts.expected_by_stage(case[0]).to_dict())
    assert [row["between"] for row in chart] == STAGES
    assert chart[0]["label"] == "exact"
    assert [row["measured"] for row in chart] == [at.measured for at in case[0].stages]
    assert chart[2]["label"].endswith(f"{case[0].stages[2].measured:,} measured")
    chart = rows(charts.expected_by_stage(flat[0]).to_dict())
    assert [row["label"].split(", ")[1] for row in chart[:-1]] == ["sums of finer pairs"] * 4
    assert chart[-1]["label"].endswith("576 measured")
    spread = [row["spread"] for row in chart]
    assert spread == sorted(spread, reverse=True)


def test_the_receipt_has_shares_and_exact_amounts_and_numbers_steps_of_equal_purpose(case):
    receipt = case[0].receipt
    chart = charts.receipt_by_stage(receipt).to_dict()
    assert [row["step"] for row in rows(chart)] == [step.purpose for step in receipt.steps] == STAGES[1:]
    assert sum(row["share"] for row in rows(chart)) == pytest.approx(100)
    assert [row["exact"] for row in rows(chart)] == [str(step.amount) for step in receipt.steps]
    assert "ρ" in chart["layer"][0]["encoding"]["x"]["title"]
    twice = replace(receipt, steps=(receipt.steps[0], receipt.steps[0]))
    assert [row["step"] for row in rows(charts.receipt_by_stage(twice).to_dict())] == ["all to state", "all to state (2)"]


@pytest.mark.parametrize("metric", charts.METRICS)
def test_mechanisms_are_compared_stage_by_stage(case, flat, metric):
    tables = {"TopDown": case[1].by_stage, "Flat": flat[1].by_stage}
    chart = charts.compare_stages(tables, metric, "flights").to_dict()
    for title, table in tables.items():
        assert [row["value"] for row in rows(chart) if row["series"] == title] == pytest.approx(list(table[metric]))
        assert f"{title}: all to all: " in chart["description"]
    line = chart["layer"][0]["encoding"]
    assert line["color"]["scale"]["domain"] == ["TopDown", "Flat"]
    assert line["color"]["scale"]["range"][0] == ACCENT
    assert line["y"]["title"].endswith(("(%)", "(flights)", "(pairs)"))


def test_levels_that_mean_different_pairs_have_both_names(case):
    table = case[1].by_stage
    mirrored = table.assign(between=[" to ".join(reversed(name.split(" to "))) for name in table["between"]])
    chart = charts.compare_stages({"one": table, "two": mirrored}, "max_error").to_dict()
    assert found(chart["layer"], "sort") == [
        ["all to all", "all to state or state to all", "state to state", "state to county or county to state", "county to county"]
    ]


def test_totals_show_intervals_and_the_truth_only_if_it_was_given():
    with_truth, without = (charts.totals_bars(table, "trips").to_dict() for table in (totals(true=[1, 2, 3]), totals()))
    assert [layer["mark"]["type"] for layer in without["layer"]] == ["bar", "rule"]
    assert [layer["mark"]["type"] for layer in with_truth["layer"]] == ["bar", "rule", "tick"]
    assert "true" not in json.dumps(without).replace(": true", "")
    assert "12,000" in with_truth["description"]


def test_the_matrix_holds_the_released_pairs_with_intervals_for_all_at_once(case):
    chart = charts.matrix_chart(case[0], 2, "trips").to_dict()
    at, names = case[0].stages[4], case[0].tree.origins.names_of(2)
    pairs = zip(names[at.origin], names[at.destination], at.count, *case[0].stage_interval(4, joint=True), strict=True)
    cells = {tuple(row[name] for name in ("origin", "destination", "count", "low", "high")) for row in rows(chart)}
    assert cells == {pair for pair in pairs if pair[2] > 0}
    assert domain_of(chart, "x") == list(names)


def domain_of(chart, axis):
    """The regions on an axis of a matrix."""
    return found(chart["layer"], axis)[0]["scale"]["domain"]


def test_the_matrix_shows_the_regions_with_the_most_trips_only():
    release, _ = released(random_trips(grid(10, 10), pairs=2000), epsilon=10)
    chart = charts.matrix_chart(release, 2).to_dict()
    sums = release.sums(2, 2)
    total = np.bincount(sums.origin, sums.count, 100) + np.bincount(sums.destination, sums.count, 100)
    largest = release.tree.origins.names_of(2)[np.argsort(-total)[: charts.LARGEST_MATRIX]]
    assert set(domain_of(chart, "x")) == set(largest)
    assert len(rows(chart)) <= charts.LARGEST_MATRIX**2
    assert len(json.dumps(chart)) < 1_000_000


def test_the_matrix_works_without_geometry_with_two_geographies_and_equal_names():
    regions = grid(shapes=None)
    regions = replace(regions, names=(regions.names[0], np.full(24, "Washington", object)))
    release, _ = released(random_trips(regions, destinations=grid(4, 4, name="Port")))
    chart = charts.matrix_chart(release, 2).to_dict()
    assert domain_of(chart, "y")[:2] == ["Washington", "Washington (2)"]
    assert len(domain_of(chart, "x")) == 16


def test_a_release_without_trips_has_charts():
    release, evaluation = released(random_trips(grid(), pairs=0))
    assert "none" in charts.matrix_chart(release, 1).to_dict()["description"]
    assert charts.expected_by_stage(release).to_dict()
    assert charts.errors_by_stage(evaluation.by_stage, error_bounds(release), "trips").to_dict()
