"""How often intervals of released pairs hold: sets of trips, mechanisms, and the shares of covered pairs over many runs."""

from unittest import mock

import numpy as np

from dpviz.mechanisms import FittedTree, FlatGaussian, StabilityHistogram, TopDown
from dpviz.mechanisms.trips import fitted_tree
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.intervals import count_ends, half_widths
from dpviz.samples.trips import load_trip_sample
from tests.trip_cases import random_trips, regular, trip_counts_of
from tests.view import trips_cases

LISTED = FittedTree(false_discovery=0.05)
CASES = {
    "fitted_tree, list": LISTED,
    "fitted_tree, list of 20 %, add/remove": FittedTree(false_discovery=0.2, neighbours="add_remove", tree="origin"),
    "fitted_tree": FittedTree(),
    "fitted_tree, pruned, list": LISTED,
    "fitted_tree, pruned": FittedTree(),
    "top_down": TopDown(),
    "top_down, dial": TopDown(dial=3.0),
    "flat_gaussian": FlatGaussian(),
    "flat_gaussian, from 15 on": FlatGaussian(threshold=15),
    "stability_histogram": StabilityHistogram(),
}
"""Mechanisms by name; those that are called pruned measure only the children of released pairs, as they do in large trees."""


def sparse_trips():
    """1 to 29 trips on 150 of 2,304 pairs of towns."""
    rng = np.random.default_rng(3)
    pairs, counts = rng.choice(48 * 48, 150, replace=False), rng.integers(1, 30, 150)
    return trip_counts_of(regular(6, 8), {divmod(int(pair), 48): int(count) for pair, count in zip(pairs, counts, strict=True)})


SETS = {
    "sparse": sparse_trips,
    "three levels": lambda: random_trips(np.random.default_rng(3), regular(3, 4, 4), most=3000, pairs=300),
    "grid": lambda: trips_cases.random_trips(trips_cases.grid()),
    "us_flights": lambda: load_trip_sample("us_flights"),
}


def true_numbers(trips, tree, stage):
    """True trips of all pairs of a stage, as a table of origins by destinations."""
    levels = tree.levels(stage)
    table = np.zeros([side.size(level) for side, level in zip((tree.origins, tree.destinations), levels, strict=True)], np.int64)
    np.add.at(
        table, (tree.origins.ancestors(levels[0])[trips.origin], tree.destinations.ancestors(levels[1])[trips.destination]), trips.count
    )
    return table


def plain_interval(release, stage):
    """The intervals of a stage for pairs that are chosen without a look at the counts: too narrow for those that noise chose."""
    return count_ends(release.stages[stage].noisy, half_widths(release.noise, release.stage_stddev(stage)))


def released_often(name, trips, epsilon, runs, seed=1):
    """Releases with the mechanism of a name."""
    most = 1 if "pruned" in name else fitted_tree.MOST_MEASURED_LEAVES
    with mock.patch.object(fitted_tree, "MOST_MEASURED_LEAVES", most):
        for stream in Entropy.seeded(seed).spawn(runs):
            yield CASES[name].release(trips, ApproxBudget(epsilon, "1e-6"), stream)


def shares_covered(name, trips, epsilon, runs, *rules):
    """For each rule, (runs, T) shares of released pairs of stages 1 to T whose interval holds.

    A share is 1 where no pair is released, and NaN where intervals have no upper end. A rule takes a release and a stage.
    """
    rows, truth = [], {}
    for release in released_often(name, trips, epsilon, runs):
        for stage in range(1, release.tree.height + 1):
            if stage not in truth:
                truth[stage] = true_numbers(trips, release.tree, stage)
            at = release.stages[stage]
            rows += [_share(truth[stage][at.origin, at.destination], *rule(release, stage)) for rule in rules]
    return np.moveaxis(np.reshape(rows, (runs, -1, len(rules))), 2, 0)


def _share(true, low, high):
    covered = np.where(np.isnan(high), np.nan, (low <= true) & (true <= high))
    return covered.mean() if len(covered) else 1.0


def lowest(shares):
    """The least that the mean share of every stage may be: 95 % less three standard errors; (T,) each."""
    return 0.95 - 3 * shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
