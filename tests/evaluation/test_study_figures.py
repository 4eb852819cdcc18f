"""Figures by level in the rows of studies are those of the evaluation; tables of before still open."""

import numpy as np
import pandas as pd
import pytest

from dpviz.evaluation.compare import compare
from dpviz.evaluation.metrics import error_by_size, evaluate_points
from dpviz.evaluation.rows import make_rows
from dpviz.evaluation.tables import finished_runs, frontier, summary, tidy
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.families import TRIP_FAMILY
from dpviz.mechanisms import ExactKdtree, FlatGaussian, Identity, Quadtree, TopDown
from tests.evaluation.test_compare import CROWD, PLANE, study
from tests.mechanisms.joined import installed
from tests.trip_cases import random_regions, random_trips

POINT_FIGURES = ["false_positives", "false_negatives"]
TRIP_FIGURES = {"max_error": "max_error", "false_discovery": "false_discovery", "false_negative": "false_negative"}
TRIP_FIGURES |= {"mae": "mean_error_present", "pairs": "released_pairs"}
"""Figures of a study by the names that the evaluation has for them."""
TRIP_MECHANISMS = {"top": TopDown(), "flat": FlatGaussian(), "flat from 3": FlatGaussian(threshold=3)}
PUBLIC_COUNT = {"mechanisms": {"exact": ExactKdtree(height=5), "coarse": Quadtree(height=2), "cells": Identity()}, "repeats": 1}


@pytest.mark.parametrize("place", range(6))
def test_figures_of_every_zoom_level_and_size_are_those_of_the_evaluation(place):
    which = study(**PUBLIC_COUNT, workloads=("zooms", "sizes", "random"))
    run = which.runs()[place]
    release, rows = which.release(run), pd.DataFrame(make_rows(which, run)).set_index("workload")
    zooms, sizes = rows.filter(like="zoom", axis=0), rows.filter(like="size", axis=0)
    by_zoom, by_size = evaluate_points(release, CROWD).by_zoom, error_by_size(CROWD.blocks(4).ravel(), release.blocks(4).ravel())
    assert rows.index.tolist() == ["random", *(f"zoom {zoom}" for zoom in range(PLANE.order + 1)), "size 0", "size 1-9"]
    for own, theirs in (("mae", "mae"), ("mean20", "relative"), *zip(POINT_FIGURES, POINT_FIGURES, strict=True)):
        assert zooms[own].tolist() == pytest.approx(by_zoom[theirs].tolist())
    assert sizes[["mae", "questions"]].to_numpy() == pytest.approx(by_size[["mae", "partitions"]].to_numpy())
    assert sizes[POINT_FIGURES].sum().tolist() == zooms.loc["zoom 4", POINT_FIGURES].tolist()


@pytest.mark.parametrize("name", [*TRIP_MECHANISMS, "theirs"])
def test_errors_and_rates_of_every_level_of_trips_are_those_of_the_evaluation(name, tmp_path):
    with installed(tmp_path):
        mechanism = TRIP_FAMILY.mechanisms["their_pairs"]() if name == "theirs" else TRIP_MECHANISMS[name]
        for seed in range(12):
            rng = np.random.default_rng(seed)
            trips = random_trips(rng, random_regions(rng, 2, 4, "from "), random_regions(rng, 2, 4, "to "), most=40)
            which = study(data=trips, mechanisms={name: mechanism}, epsilons=("0.3",), delta="1e-3", repeats=1, workloads=("levels",))
            release = which.release(which.runs()[0])
            rows, stages = pd.DataFrame(make_rows(which, which.runs()[0])), evaluate_trips(release, trips).by_stage
            assert rows[[*TRIP_FIGURES]].to_numpy() == pytest.approx(stages.loc[[2, 4], [*TRIP_FIGURES.values()]].to_numpy(float))


def test_tables_have_the_figures_and_a_table_of_before_is_resumed_and_summed_up_without_them():
    which = study(**PUBLIC_COUNT, workloads=("zooms",))
    rows = pd.DataFrame(compare(which))
    found = summary(tidy(which, rows))
    assert {*POINT_FIGURES} <= {*found["figure"]}
    best = frontier(found.query("figure == 'false_positives' and workload == 'zoom 4'"))
    assert len(best)
    assert "exact" not in {*best["label"]}
    before = rows.drop(columns=POINT_FIGURES)
    half = before[before["run"] == rows["run"].iloc[0]]
    assert finished_runs(which, before) == {*rows["run"]}
    mixed = summary(tidy(which, [*half.to_dict("records"), *compare(which, done=half)]))
    counts = {each: mixed.query(f"figure == '{each}' and workload == 'zoom 4'")["runs"].sum() for each in ("mae", "false_negatives")}
    assert counts == {"mae": 6, "false_negatives": 5}
    assert not {*POINT_FIGURES} & {*summary(tidy(which, before))["figure"]}
