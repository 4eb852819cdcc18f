"""Figures by level in the rows of studies against their definitions, block by block and pair by pair; tables of before still open."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from dpviz.evaluation.compare import compare
from dpviz.evaluation.metrics import evaluate
from dpviz.evaluation.rows import make_rows
from dpviz.evaluation.tables import finished_runs, frontier, summary, tidy
from dpviz.mechanisms import TRIP_FAMILY, ExactKdtree, FlatGaussian, Identity, Quadtree, TopDown
from tests.evaluation.test_compare import CROWD, PLANE, study
from tests.flow_cases import random_flows, random_regions, released_at, sums_between
from tests.mechanisms.joined import installed

POINT_FIGURES, TRIP_FIGURES = ["false_positives", "false_negatives"], ["max_error", "false_discovery", "false_negative"]
TRIP_MECHANISMS = {"top": TopDown(), "flat": FlatGaussian(), "flat from 3": FlatGaussian(least=3)}
PUBLIC_COUNT = {"mechanisms": {"exact": ExactKdtree(height=5), "coarse": Quadtree(height=2), "cells": Identity()}, "repeats": 1}


def slow_blocks(release, zoom):
    """False positives and negatives of the blocks of a zoom level, one after the other."""
    width, wrong = 16 >> zoom, [0, 0]
    for column, row in product(range(1 << zoom), repeat=2):
        box = [column * width, row * width, (column + 1) * width, (row + 1) * width]
        inside = (CROWD.column // width == column) & (CROWD.row // width == row)
        occupied, shown = CROWD.count[inside].sum() > 0, release.answer([box])[0] >= 0.5
        wrong[0] += shown and not occupied
        wrong[1] += occupied and not shown
    return wrong


def slow_pairs(release, flows, level):
    """Maximum error and rates of all pairs of a level, one after the other."""
    true, out = sums_between(flows, (level, level)), released_at(release, 2 * level)
    every = list(product(range(flows.regions.size(level)), range(flows.ends.size(level))))
    shown, occupied = ([pair for pair in every if counts.get(pair, 0) > 0] for counts in (out, true))
    false, missed = [pair for pair in shown if pair not in true], [pair for pair in occupied if pair not in shown]
    return [
        max(abs(out.get(pair, 0) - true.get(pair, 0)) for pair in every),
        100 * len(false) / max(len(shown), 1),
        100 * len(missed) / max(len(occupied), 1),
    ]


@pytest.mark.parametrize("place", range(6))
def test_false_blocks_of_every_zoom_level_are_counted_one_by_one_and_as_the_evaluation_counts_them(place):
    which = study(**PUBLIC_COUNT, workloads=("zooms", "sizes", "random"))
    run = which.runs()[place]
    release, rows = which.release(run), pd.DataFrame(make_rows(which, run)).set_index("workload")
    zooms = rows.loc[[f"zoom {zoom}" for zoom in range(PLANE.order + 1)], POINT_FIGURES]
    assert zooms.to_numpy().tolist() == [slow_blocks(release, zoom) for zoom in range(PLANE.order + 1)]
    assert zooms.to_numpy().tolist() == evaluate(release, CROWD).by_zoom[POINT_FIGURES].to_numpy().tolist()
    assert rows.filter(like="size", axis=0)[POINT_FIGURES].sum().tolist() == zooms.loc["zoom 4"].tolist()
    assert (rows["false_positives"] + rows["false_negatives"] <= rows["questions"]).all()


@pytest.mark.parametrize("name", [*TRIP_MECHANISMS, "theirs"])
def test_errors_and_rates_of_every_level_of_trips_are_found_pair_by_pair(name, tmp_path):
    with installed(tmp_path):
        mechanism = TRIP_FAMILY.mechanisms["their_pairs"]() if name == "theirs" else TRIP_MECHANISMS[name]
        for seed in range(12):
            rng = np.random.default_rng(seed)
            flows = random_flows(rng, random_regions(rng, 2, 4, "from "), random_regions(rng, 2, 4, "to "), most=40)
            which = study(data=flows, mechanisms={name: mechanism}, epsilons=("0.3",), delta="1e-3", repeats=1, workloads=("levels",))
            release = which.release(which.runs()[0])
            rows = pd.DataFrame(make_rows(which, which.runs()[0]))[TRIP_FIGURES]
            assert rows.to_numpy() == pytest.approx(np.array([slow_pairs(release, flows, level) for level in (1, 2)]))


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
