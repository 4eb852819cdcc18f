"""Comparisons: a row per run that depends on the study and the run alone, whatever else is run."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, InputError, RefusedError, SettingError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.metrics import workload_errors
from dpviz.evaluation.rows import make_rows
from dpviz.evaluation.study import Run, Study
from dpviz.mechanisms import Identity, Kdtree, Quadtree, TopDown
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.trips import load_trip_sample
from dpviz.space.domain import Domain
from dpviz.space.workloads import random_rectangles

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
CROWD = PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 16, (2, 500)), domain=PLANE)
MECHANISMS = {"tree": Quadtree(height=3), "cells": Identity()}
COMMUTERS = load_trip_sample("northeast_commuters")


def study(**options):
    plain = {"data": CROWD, "public": True, "mechanisms": MECHANISMS, "epsilons": ("1/2", 2), "repeats": 2, "seed": 7, "queries": 30}
    return Study(**{**plain, **options})


def table(which):
    return pd.DataFrame(list(compare(which))).drop(columns="seconds")


def test_there_is_a_row_per_mechanism_epsilon_and_repeat_that_the_seed_repeats():
    rows = table(study())
    assert len(rows) == len(study()) == 8
    assert rows.groupby(["label", "epsilon"]).size().unique().tolist() == [2]
    assert rows["settings"].unique().tolist() == ['{"height": 3}', "{}"]
    assert rows["run"].is_unique
    pd.testing.assert_frame_equal(table(study()), rows)
    assert (rows["mae"] != table(study(seed=8))["mae"]).all()


def test_a_run_does_not_depend_on_what_else_is_compared():
    alone = table(study(mechanisms={"other name": Identity()}, epsilons=(2,), repeats=1)).iloc[0]
    among = table(study()).query("mechanism == 'identity' and epsilon == 2 and repeat == 1").iloc[0]
    pd.testing.assert_series_equal(alone.drop("label"), among.drop("label"), check_names=False)
    assert (table(study()).query("label == 'cells' and epsilon == 2")["mae"].nunique()) == 2


def test_rows_come_one_by_one_and_nothing_runs_ahead():
    met = []

    class Counted(Identity):
        def release(self, points, budget, entropy):
            met.append(budget)
            return super().release(points, budget, entropy)

    list(itertools.islice(compare(study(mechanisms={"cells": Counted()})), 2))
    assert len(met) == 2


def test_figures_of_points_are_those_of_the_metrics():
    which = study()
    run = Run(label="tree", mechanism=Quadtree(height=3), budget=PureBudget(10**6), repeat=1)
    (row,) = make_rows(which, run)
    release = Quadtree(height=3).release(CROWD, run.budget, Entropy.seeded(1))
    errors = workload_errors(release, CROWD, random_rectangles(PLANE, 30, 7))
    assert row["mae"] == pytest.approx(errors.mae)
    assert row["n3"] == pytest.approx(errors.n3)
    assert row["partitions"] == 64
    assert row["seconds"] > 0


def test_trips_are_compared_at_the_given_level():
    plain = {"data": COMMUTERS, "mechanisms": {"top": TopDown()}, "epsilons": (1,), "delta": Fraction(1, 10**8), "repeats": 1}
    rows = table(study(**plain, workloads=("levels",))).set_index("workload")
    assert rows.index.tolist() == ["division", "state", "county"]
    assert rows.loc["division", "pairs"] == 4
    assert table(study(**plain))["workload"].tolist() == ["county"]
    assert table(study(**plain, workloads=("state",)))["mae"].item() == rows.loc["state", "mae"]
    with pytest.raises(SettingError, match="division, state, county, levels, sizes"):
        study(**plain, workloads=("planet",))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"public": False}, RefusedError, "already public"),
        ({"workloads": ("random", "random")}, SettingError, "twice"),
        ({"workloads": ("county",)}, SettingError, "random, small, medium, large, zooms, sizes"),
        *((change, SettingError, "at least one mechanism and one epsilon") for change in ({"mechanisms": {}}, {"epsilons": ()})),
        ({"epsilons": (1, 1.0)}, SettingError, "twice"),
        ({"mechanisms": {"a": Identity(), "b": Identity()}}, SettingError, "twice"),
        ({"repeats": 0}, SettingError, "repeats"),
        ({"repeats": 50_000}, SettingError, "200,000 runs"),
        *(({"seed": seed}, SettingError, "seed") for seed in (-1, True)),
        ({"queries": 0}, SettingError, "queries"),
        ({"epsilons": (0,)}, BudgetError, "greater than 0"),
        *(({"epsilons": given}, SettingError, "epsilons must be a list") for given in (0.5, "12", None, {1: 2})),
        *(({"workloads": given}, SettingError, "workloads must be a list") for given in ("random", None)),
        *(({"mechanisms": given}, SettingError, "dict of built mechanisms by label") for given in ([Identity()], None, {1: Identity()})),
        ({"mechanisms": {"a": "quadtree"}}, SettingError, "'a': give a built mechanism, such as .*, not str"),
        ({"mechanisms": {"a": Quadtree}}, SettingError, r"'a': give a built mechanism, Quadtree\(\), not its class"),
        ({"mechanisms": {"a": TopDown()}, "delta": 0.1}, SettingError, "'a': .* is a mechanism for trips, and the data are points"),
        ({"data": COMMUTERS}, SettingError, "'tree': .* is a mechanism for points, and the data are trips"),
        ({"data": None}, InputError, "not NoneType"),
        ({"data": Identity().release(CROWD, PureBudget(1), Entropy.seeded(1))}, InputError, "not PointRelease. A release is no data"),
        *(({"delta": delta}, BudgetError, "delta must be at least 0 and below 1") for delta in (2, -1)),
        ({"delta": "much"}, BudgetError, "delta must be a number"),
        ({"mechanisms": {"medians": Kdtree(variant="smooth-sensitivity")}}, BudgetError, "needs a delta"),
        ({"mechanisms": {"tree": Quadtree(split="custom", weights=(1.0,))}}, (SettingError, BudgetError), "weights"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_the_first_run(change, error, words):
    with pytest.raises(error, match=words):
        study(**change)


@pytest.mark.parametrize("epsilons", [[0.5, 1], np.array([0.5, 1]), (each for each in ("1/2", 1))])
def test_epsilons_are_any_list(epsilons):
    assert study(epsilons=epsilons).epsilons == (Fraction(1, 2), 1)


def test_only_a_study_is_compared_and_only_a_table_resumed():
    with pytest.raises(SettingError, match="takes a Study"):
        next(compare(CROWD))
    for done in ([], [{"run": "a"}], "rows.csv"):
        with pytest.raises(SettingError, match="must be a table"):
            next(compare(study(), done=done))
    assert len(list(compare(study(), done=pd.DataFrame()))) == 8
