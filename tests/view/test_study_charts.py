"""Charts of studies and of the split objective: true to their tables, with alternative texts, series distinct in two ways."""

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpviz.app.pages.compare.state import MOST_CONFIGURATIONS
from dpviz.data.points import PointCounts
from dpviz.evaluation.compare import compare
from dpviz.evaluation.split_objective import objective_curve
from dpviz.evaluation.tables import frontier, summary, tidy
from dpviz.privacy.budget import PureBudget
from dpviz.space.domain import Domain
from dpviz.view import study_charts
from dpviz.view.error_axis import COUNT, LOG, PERCENT, axis_ends
from dpviz.view.study_charts import (
    PARTS,
    PICKED,
    Target,
    choose_band,
    ends_with_target,
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


def test_errors_have_a_band_with_two_edges_a_line_points_and_the_frontier(table):
    mae = table[table["figure"] == "mae"].reset_index(drop=True)
    best = frontier(mae)
    chart = error_by_epsilon(mae, best, "mean absolute error (people)", "random boxes").to_dict()
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["line", "area", "line", "line", "line", "point"]
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
    few = few.assign(mean=[1e-15, 50.0], least=[1e-15, 40.0], most=[1e-15, 60.0])
    chart = error_by_epsilon(few, frontier(few), "error", "boxes").to_dict()
    assert chart["layer"][-1]["encoding"]["y"]["scale"]["domainMin"] == pytest.approx(1e-5)
    assert "at the lower end of the axis" in chart["description"]
    shown = chart["datasets"][chart["layer"][-1]["data"]["name"]]
    assert (shown[0]["mean"], shown[0]["mean drawn"], shown[0]["mean shown"]) == (1e-15, pytest.approx(1e-5), "1e-15")
    assert tiny_means_note(few.assign(mean=float("nan"))) == ""


@pytest.mark.parametrize(
    ("repeats", "sides", "about"),
    [
        ([12, 30], ("p10", "p90"), "the middle 80 % of the repeats"),
        ([3, 3], ("least", "most"), "the least to the largest of 3 repeats, too few"),
        ([2, 12], ("least", "most"), "the least to the largest of 2 to 12 repeats, too few"),
        ([1, 1], ("least", "most"), "none, since one repeat has no spread"),
    ],
)
def test_a_band_says_what_it_is_and_of_few_repeats_it_is_their_range(repeats, sides, about):
    band = choose_band(pd.DataFrame({"runs": repeats}))
    assert (band.low, band.high) == sides
    assert band.about.startswith(about)


@pytest.mark.parametrize("scale", [LOG, PERCENT, COUNT])
def test_both_sides_of_a_band_of_three_repeats_lie_within_the_chart_and_around_the_mean(scale):
    found = pd.DataFrame({"label": "a", "epsilon": [0.1, 1.0], "runs": 3, "low": np.nan, "high": np.nan, "p10": np.nan, "p90": np.nan})
    found = found.assign(mean=[30.0, 4.0], least=[1.0, 0.5], most=[80.0, 9.0], private=True)
    drawn = rows(error_by_epsilon(found, frontier(found), "error", "boxes", scale=scale).to_dict())
    low, high = axis_ends(found, ["mean", "least", "most"], scale)
    for row in drawn:
        assert low <= row["least drawn"] == row["least"] < row["mean drawn"] < row["most drawn"] == row["most"] <= high


def test_a_target_is_a_line_with_a_mark_where_a_curve_reaches_it(table):
    mae = table[table["figure"] == "mae"].reset_index(drop=True)
    target = Target(error=25.0, epsilons={"tree": 0.7, "cells": math.inf, "other": 0.0})
    chart = error_by_epsilon(mae, frontier(mae), "mean absolute error (people)", "random boxes", target=target).to_dict()
    line, marks = (chart["datasets"][layer["data"]["name"]] for layer in chart["layer"][-2:])
    assert line == [{"target drawn": 25.0}]
    assert [(row["label"], row["epsilon"], row["target drawn"]) for row in marks] == [("tree", 0.7, 25.0)]
    assert "Target 25: tree: 0.7." in chart["description"]
    assert ends_with_target(mae, 1e6, LOG)[1] == 1e6, "the line is in the chart wherever it is drawn"


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


def curve(crs=None, across=True, matrix=None):
    bounds = (0, 0, 16, 16) if crs is None else (-118.6, 33.7, -117.8, 34.3)
    cells = np.random.default_rng(1).poisson(np.linspace(0, 8, 16), (16, 16)) if matrix is None else matrix
    points = PointCounts.from_matrix(cells, domain=Domain(bounds=bounds, crs=crs, order=4))
    return objective_curve(points, PureBudget("0.5"), across=across)


CHARTS = {
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
