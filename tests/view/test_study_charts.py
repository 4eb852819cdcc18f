"""Charts of studies: what is drawn, what can be clicked, and alternative texts."""

import pandas as pd
import pytest

from dpviz.app.compare.state import MOST_CONFIGURATIONS
from dpviz.evaluation.compare import compare
from dpviz.evaluation.tables import frontier, summary, tidy
from dpviz.view.study_charts import (
    PARTS,
    PICKED,
    error_by_epsilon,
    legend_height,
    lines_with_spread,
    parts_by_label,
    seconds_by_label,
    tiny_means_note,
)
from tests.evaluation.test_compare import study


@pytest.fixture(scope="module")
def rows():
    which = study(repeats=3, parts=True)
    return summary(tidy(which, compare(which)))


def test_errors_have_a_band_a_line_points_and_the_frontier(rows):
    mae = rows[rows["figure"] == "mae"].reset_index(drop=True)
    best = frontier(mae)
    chart = error_by_epsilon(mae, best, "mean absolute error (people)", "random boxes").to_dict()
    marks = [layer["mark"]["type"] for layer in chart["layer"]]
    assert marks == ["line", "area", "line", "point"]
    assert chart["title"]["text"] == "Error against ε, random boxes"
    front, *_ = chart["layer"]
    assert len(chart["datasets"][front["data"]["name"]]) == len(best)
    point = chart["layer"][-1]
    assert point["encoding"]["x"]["field"] == "epsilon"
    assert [each["select"]["fields"] for each in chart["params"] if each["name"] == PICKED] == [["label", "epsilon"]]
    for label in ("tree", "cells"):
        assert label in chart["description"]
    assert f"On the frontier: {best['label'].iloc[0]} at" in chart["description"]


def test_many_configurations_have_looks_and_one_epsilon_has_an_axis(rows):
    many = rows[(rows["figure"] == "mae") & (rows["epsilon"] == 2)]
    many = many.loc[many.index.repeat(8)].reset_index(drop=True)
    many["label"] = [f"configuration {place}" for place in range(len(many))]
    chart = error_by_epsilon(many, frontier(many), "error", "boxes").to_dict()
    scale = chart["layer"][-1]["encoding"]["shape"]["scale"]
    assert len(scale["domain"]) == len(scale["range"]) == 16
    assert chart["layer"][1]["encoding"]["x"]["scale"]["domain"] == [1.0, 4.0]


def test_a_long_legend_makes_the_chart_higher_and_its_labels_are_whole(rows):
    many = rows[(rows["figure"] == "mae") & (rows["epsilon"] == 2)]
    many = many.loc[many.index.repeat(12)].reset_index(drop=True)
    many["label"] = [f"Quadtree (split=uniform, height={place})" for place in range(len(many))]
    chart = error_by_epsilon(many, frontier(many), "error", "boxes").to_dict()
    legend = chart["layer"][-1]["encoding"]["shape"]["legend"]
    assert chart["height"] == 400 + 20 * (8 - 2)
    assert "width" in legend["labelLimit"]["expr"]
    assert legend["columns"]["expr"] == "clamp(floor(width / 255), 1, 3)"
    assert legend_height(["a", "b"], 340) == 340


def test_tiny_values_do_not_stretch_the_axis(rows):
    few = rows[(rows["figure"] == "mae") & (rows["label"] == "tree")].reset_index(drop=True)
    assert tiny_means_note(few) == ""
    few = few.assign(mean=[1e-15, 50.0], p10=[1e-15, 40.0], p90=[1e-15, 60.0])
    chart = error_by_epsilon(few, frontier(few), "error", "boxes").to_dict()
    assert chart["layer"][-1]["encoding"]["y"]["scale"]["domainMin"] == pytest.approx(1e-5)
    assert "at the lower end of the axis" in chart["description"]
    shown = chart["datasets"][chart["layer"][-1]["data"]["name"]]
    assert (shown[0]["mean"], shown[0]["mean drawn"], shown[0]["mean shown"]) == (1e-15, pytest.approx(1e-5), "1e-15")
    assert tiny_means_note(few.assign(mean=float("nan"))) == ""


def test_lines_by_level_have_looks_for_as_many_configurations_as_the_page_takes():
    names = {"label": "configuration", "place": "zoom level", "mean": "error", "stddev": "spread"}
    rows = pd.DataFrame({"place": 1, "label": [f"c{place}" for place in range(MOST_CONFIGURATIONS)], "mean": 1.0, "stddev": 0.1})
    chart = lines_with_spread(rows, ("place", "label", "mean", "stddev"), names, "Error by zoom level", 340).to_dict()
    assert len(chart["layer"][0]["encoding"]["color"]["scale"]["range"]) == MOST_CONFIGURATIONS


def test_parts_are_drawn_side_by_side(rows):
    parts = rows[rows["figure"].isin(PARTS) & (rows["epsilon"] == 2)].reset_index(drop=True)
    chart = parts_by_label(parts, 2.0, "people", "random boxes").to_dict()
    assert chart["layer"][0]["encoding"]["yOffset"]["field"] == "figure"
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["noise", "uniformity"]
    assert "uniformity: tree:" in chart["description"]


def test_times_are_in_the_alternative_text(rows):
    seconds = rows[(rows["figure"] == "seconds") & (rows["epsilon"] == 2)]
    chart = seconds_by_label(seconds, 2.0).to_dict()
    assert chart["description"].startswith("Time of a release at ε 2. Seconds: tree:")
