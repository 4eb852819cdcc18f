"""Charts: complete without a network, with alternative texts, and true to their tables."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpviz.evaluation.metrics import error_by_size as by_size
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.receipt import Receipt, Step
from dpviz.view import charts
from dpviz.view.charts import GREY
from tests.charts import assert_complete, assert_plain_axes, rows

UNIT = 'people"}</script>'


def a_table(rmse=(0.0, 3.5, 12_345.678), low=0.0):
    zoom = np.arange(len(rmse))
    known = {"zoom": zoom, "blocks": 4**zoom, "mae": rmse, "rmse": rmse, "expected": [1.0] * len(rmse), "low": low, "high": 2.0}
    rates = {"empty": 2 * zoom, "false_positives": zoom, "false_positive_records": 1234.5 * zoom, "false_negatives": 1}
    return pd.DataFrame(known | {"relative": 1.0} | rates)


def a_step(purpose, amount, level, *, replaces_later=False):
    exact = {"amount": Fraction(amount), "sensitivity": Fraction(1), "scale": Fraction(2)}
    return Step(purpose=purpose, noise="discrete Laplace", level=level, replaces_later=replaces_later, **exact)


def a_receipt(*first):
    steps = [a_step("medians", "1/7", 0), a_step("medians", "1/7", 0), a_step("counts", "1/3", 1), a_step("counts", "1/3", 2)]
    return Receipt(total=PureBudget(1), steps=(*first, *steps))


CHARTS = {
    "accuracy": lambda: charts.accuracy_by_zoom(a_table(), UNIT),
    "accuracy in percent": lambda: charts.accuracy_by_zoom(a_table(), UNIT, total=12_345.0),
    "expected": lambda: charts.expected_by_zoom(a_table()[["zoom", "expected"]], UNIT),
    "false positives": lambda: charts.false_positives_by_zoom(a_table(), UNIT),
    "by size": lambda: charts.error_by_size(by_size([0, 0, 5, 1234, 2000], [1, 0, 4, 1300, 2000]), UNIT),
    "receipt": lambda: charts.receipt_by_level(a_receipt()),
    "parts": lambda: charts.parts_of_error(-12.25, 2000.0, UNIT),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_complete_and_small_and_its_text_has_units_and_thousands(name):
    chart = CHARTS[name]().to_dict()
    assert_complete(chart, letters=40)
    assert_plain_axes(chart, untitled=name == "parts")
    assert len(rows(chart)) < 300
    if name != "receipt":
        assert UNIT in chart["description"] or name == "false positives"
        assert UNIT in json.dumps(chart).replace('\\"', '"')
    if name in ("accuracy", "false positives", "parts"):
        assert any("," in str(row.get(column)) for row in rows(chart) for column in row if column.endswith(" shown"))


@pytest.mark.parametrize("rmse", [(0.0, 0.0), (0.0, 3.5, 12_345.678), (2.0,)])
def test_zeros_stay_on_the_log_axis(rmse):
    table = a_table(rmse)
    chart = charts.accuracy_by_zoom(table, "people").to_dict()
    drawn = [row[column] for row in rows(chart) for column in row if column.endswith(" drawn")]
    assert min(drawn) >= chart["layer"][0]["encoding"]["y"]["scale"]["domainMin"] > 0
    assert max(drawn) < math.inf
    assert [row["rmse"] for row in rows(chart)] == list(rmse)
    assert charts.expected_by_zoom(table.assign(expected=0.0), "people").to_dict()


def test_errors_in_percent_are_parts_of_the_average_square_of_their_level():
    measured = charts.accuracy_by_zoom(a_table(), "people", total=640.0).to_dict()
    assert [row["rmse"] for row in rows(measured)] == pytest.approx([0.0, 100 * 3.5 / 160, 100 * 12_345.678 / 40])
    expected = charts.expected_by_zoom(a_table()[["zoom", "expected"]], "people", total=640.0).to_dict()
    assert [row["expected"] for row in rows(expected)] == pytest.approx([100 / 640, 100 / 160, 100 / 40])
    assert measured["layer"][0]["encoding"]["y"]["title"] == "typical error of a square (%)"
    assert "% of average people" in measured["description"]
    assert charts.accuracy_by_zoom(a_table(), "people", total=-3.0).to_dict() == charts.accuracy_by_zoom(a_table(), "people").to_dict()


def test_the_band_and_both_lines_share_one_legend_and_false_positives_are_shares_in_two_colours():
    layers = charts.accuracy_by_zoom(a_table(), "people").to_dict()["layer"]
    assert [layer["mark"]["type"] for layer in layers] == ["area", "line", "line"]
    assert [layer["transform"][0]["calculate"] for layer in layers] == ["'noise alone (95 % band)'"] * 2 + ["'measured'"]
    assert layers[2]["encoding"]["color"]["scale"]["range"] == ["#0b6e8f", GREY]
    contrast = charts.accuracy_by_zoom(a_table().assign(expected=math.nan, low=math.nan, high=math.nan), "people").to_dict()
    assert [layer["mark"]["type"] for layer in contrast["layer"]] == ["line"], "no band, and none in a legend, where no noise is stated"
    assert "noise" not in json.dumps(contrast)
    chart = charts.false_positives_by_zoom(a_table(), "people").to_dict()
    shares = {(row["kind"], row["zoom"]): row["share"] for row in rows(chart)}
    assert shares["false positives, of empty squares", 2] == pytest.approx(100 * 2 / 4)
    assert shares["false negatives, of occupied squares", 1] == pytest.approx(100 * 1 / 2)
    assert ("false positives, of empty squares", 0) not in shares, "no square is empty"
    assert chart["layer"][0]["encoding"]["color"]["scale"]["range"] == ["#d55e00", "#0072b2"]


def test_sizes_are_named_missing_percentages_are_a_dash_and_parts_of_an_error_add_up():
    chart = CHARTS["by size"]().to_dict()
    assert [row["size"] for row in rows(chart)] == ["0", "1–9", "1,000–9,999"]
    assert rows(chart)[0]["relative shown"] == "–"
    chart = charts.parts_of_error(-12.25, 2000.0, "people").to_dict()
    bars = [row for row in rows(chart) if "part" in row]
    assert [row["error"] for row in bars] == [-12.25, 2000.0, 1987.75]
    assert [row["label"] for row in bars] == ["noise −12.25", "uniformity +2,000", "total +1,988"]


def test_receipt_sums_by_zoom_in_exact_fractions_and_separates_structure_from_counts():
    chart = CHARTS["receipt"]().to_dict()
    steps = [(row["bar"], row["step"], row["kind"], row["exact"]) for row in rows(chart)]
    assert steps[0] == ("zoom 0", "medians, zoom 0 (2 steps)", "structure", "2/7")
    assert steps[1:] == [("zoom 1", "counts, zoom 1", "counts", "1/3"), ("zoom 2", "counts, zoom 2", "counts", "1/3")]
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["structure", "counts"]


def test_receipt_does_not_add_steps_that_early_leaves_take_instead_of_later_ones():
    early = a_step("counts of early leaves", "2/3", 1, replaces_later=True)
    chart = charts.receipt_by_level(a_receipt(a_step("grid of cells", "1/21", None), early)).to_dict()
    kinds = {row["bar"]: row["kind"] for row in rows(chart)}
    structure, counts = dict.fromkeys(("grid of cells", "zoom 0"), "structure"), dict.fromkeys(("zoom 1", "zoom 2"), "counts")
    assert kinds == structure | counts | {"early leaves, zoom 1": "early leaves"}
    assert chart["layer"][0]["encoding"]["y"]["sort"] == list(kinds)
    assert "; 1 of 1 in all. Not added up, since leaves above the finest level" in chart["description"]


def test_receipt_of_gaussian_noise_counts_rho():
    receipt = Receipt(total=ApproxBudget(1, "1e-6"), steps=(a_step("counts", "1/50", 0),), converted=ZcdpBudget("1/50"), conversion="exact")
    encoding = charts.receipt_by_level(receipt).to_dict()["layer"][0]["encoding"]
    assert encoding["x"]["title"] == "privacy budget ρ"
    assert {"ρ", "ρ exactly"} <= {each["title"] for each in encoding["tooltip"]}


def test_steps_that_find_splits_are_structure_and_a_reference_says_that_it_is_not_private():
    for purpose in ("medians", "grid of cells", "sums of places, in node widths", "numbers for means"):
        receipt = Receipt(total=PureBudget(1), steps=(a_step(purpose, "1/2", 0), a_step("counts", "1/2", 0)), private=False)
        chart = charts.receipt_by_level(receipt).to_dict()
        assert {row["step"]: row["kind"] for row in rows(chart)} == {f"{purpose}, zoom 0": "structure", "counts, zoom 0": "counts"}
        assert chart["title"]["text"].startswith("NOT PRIVATE")
