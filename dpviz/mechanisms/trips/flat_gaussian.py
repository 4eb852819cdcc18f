"""VanillaGauss: the same Gaussian noise on every pair of leaf regions, empty ones included."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers, Places
from dpviz.data.trips import TripCounts
from dpviz.errors import DomainError
from dpviz.mechanisms.base import least_count_setting
from dpviz.mechanisms.budget_noise import accounting_setting
from dpviz.mechanisms.run import Run
from dpviz.mechanisms.trips.base import (
    TripMechanism,
    add_coarser_stages,
    bound_largest_noise,
    count_most_leaf_pairs,
    make_measured_stage,
    make_summed_stage,
    neighbours_setting,
)
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.false_positives import gaussian_tail
from dpviz.release.trip_release import TripRelease, sum_pairs
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import Regions

MOST_PAIRS = 2**28  # pairs of leaves that get noise; more are refused
MOST_KEPT = 2**21  # pairs of leaves that are all released; of more, those under a threshold are left out
_PAIRS_PER_BLOCK = 2**20
_MOST_EMPTY_KEPT = 2**19  # pairs, on average, if no pair had a trip


@dataclass(frozen=True, kw_only=True)
class FlatGaussian(TripMechanism):
    """VanillaGauss: discrete Gaussian noise on every pair of leaves; larger regions are sums of noisy pairs.

    Protects: replacing one trip by another (with a person column or a declared bound: one person's m trips), or adding or
    removing them. The squared sensitivity is 2 m**2 or m**2, that of m trips on one pair. This is the worst case, since m trips on
    several pairs change the counts by a smaller sum of squares.

    Source:
        Canonne, Kamath, Steinke, NeurIPS 2020, Theorem 4; "VanillaGauss" of Boninsegna, Silvestri, 2025, Section 5.

    Deviations:
        Noise is drawn block by block, never for millions of empty pairs at once. Every pair is released if the regions have at most
        2,097,152 pairs of leaves. If there are more, pairs under a public threshold are left out of the finest stage, since a list that
        is nearly all noise is of no use. Sums over larger regions are taken before pairs are left out, so the sums stay unbiased.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> dv.FlatGaussian().release(trips, dv.ApproxBudget(1, 1e-6), dv.Entropy.seeded(1))
    TripRelease(flat_gaussian, 87,522 pairs, epsilon 1, delta 1e-06, SIMULATION: not private)
    """

    key: ClassVar[str] = "flat_gaussian"
    title: ClassVar[str] = "Flat Gaussian (VanillaGauss)"
    summary: ClassVar[str] = (
        "Adds the same noise to every pair of regions, empty ones too: unbiased, but sums drift and false trips abound."
    )
    advice: ClassVar[str] = (
        "Take it where every number must be unbiased, also below zero: the finest pairs err by at most 44 trips on the made-up country."
        " Sums over regions drift: by 10,000 trips between regions, by 3,500 between provinces."
    )

    neighbours: str = neighbours_setting("Which data must look alike: one trip (or person) more or less, or another one.")
    threshold: int | None = least_count_setting(
        "Smallest count kept",
        "Pairs of leaves under it are left out of the list, not of the sums. Left empty: none, unless there are more than 2,097,152 pairs.",
    )
    accounting: str = accounting_setting("tight")

    def release(self, trips: TripCounts, budget: Budget, entropy: Entropy) -> TripRelease:
        """Spend (epsilon, delta) or rho on `trips`.

        Returns:
            The release: noisy counts of pairs of leaves, negative ones included, and their sums for every coarser stage.

        Raises:
            BudgetError: a pure budget, or delta = 0.
            InputError: m > 1 under "bounded" without the declaration that everybody has exactly m trips.
            DomainError: more than 2**28 pairs of leaves.
        """
        run = Run.of(self, trips, budget, entropy, gaussian=True)
        (rho,) = run.split([1.0])
        tree = PairTree(origins=trips.regions, destinations=trips.ends)
        run.record("every pair of leaves", rho, level=tree.height, counts=tree.size(tree.height))
        least = self.choose_threshold(tree.size(tree.height), run.steps[0].scale)
        (origin, destination, noisy), above, across = _measure_pairs(run, tree, rho, least)
        summed = make_summed_stage(*_find_nonzero(above))
        leaves = make_measured_stage(origin, destination, noisy, run.variance(rho), tree.size(tree.height))
        stages = [*add_coarser_stages(tree, summed, tree.height - 1), leaves]
        left_out = () if least is None else (f"pairs under {least:,} left out of the finest level",)
        return self.make_release(
            run,
            tree,
            stages,
            steps=("larger regions are sums of all noisy pairs", *left_out),
            every_pair=True,
            half_step_sums=None if least is None else sum_pairs(*_find_nonzero(across), across.shape[1]),
            approximate=None if least is None else "pairs that were left out of the finest level have an unknown error",
        )

    def choose_threshold(self, pairs: int, parameter: Fraction) -> int | None:
        """Choose the public threshold of the finest stage: the setting `threshold`, or one that on average at most 2**19 empty pairs pass.

        Args:
            pairs: number of pairs of leaves.
            parameter: sigma squared of the discrete Gaussian noise.

        Returns:
            The smallest count that is kept; None if every pair is kept.
        """
        if self.threshold is not None or pairs <= MOST_KEPT:
            return self.threshold
        candidates = np.arange(1, 2 + int(10 * float(parameter) ** 0.5))
        return int(candidates[np.argmax(pairs * gaussian_tail(candidates, float(parameter)) <= _MOST_EMPTY_KEPT)])

    def error_bounds(self, release: TripRelease, beta: float) -> Floats:
        """Bound the errors (Proposition 1 with its constants): sigma sqrt(B) sqrt(2 ln(2 n / beta)) for n pairs of a stage.

        B is the largest number of leaf pairs in one pair: a sum of B independent noises is sub-Gaussian with variance sigma**2 B. At
        the finest stage, a pair that is left out because its noisy count is below a threshold t errs by at most t - 1 more than its noise.

        Source:
            Boninsegna, Silvestri, 2025, Proposition 1, Eq. (4).
        """
        tree, sigma = release.tree, math.sqrt(release.receipt.steps[0].scale)  # of Gaussian noise the scale is sigma squared
        sizes = np.array([tree.size(stage) for stage in range(tree.height + 1)], np.float64)
        bounds = np.sqrt(count_most_leaf_pairs(tree)) * bound_largest_noise(np.full(len(sizes), sigma), sizes, beta)
        least = self.choose_threshold(tree.size(tree.height), release.receipt.steps[0].scale)
        bounds[-1] += 0 if least is None else least - 1
        return bounds

    def check(self, frame: Regions) -> None:
        """Raise an error if there are too many pairs of leaves."""
        self.check_pairs(frame, frame)

    def check_pairs(self, origins: Regions, destinations: Regions) -> None:
        """Raise an error if there are too many pairs of leaves between two hierarchies."""
        tree = PairTree(origins=origins, destinations=destinations)
        if tree.size(tree.height) > MOST_PAIRS:
            raise DomainError(f"There are more than {MOST_PAIRS:,} pairs of leaf regions; noise on each is not feasible. Choose TopDown.")


def _find_nonzero(sums: Integers) -> tuple[Places, Places, Integers]:
    """List the origins, destinations and values of a dense table of sums; zeros are left out."""
    origin, destination = np.nonzero(sums)
    return origin.astype(np.int32), destination.astype(np.int32), sums[origin, destination]


def _measure_pairs(
    run: Run[TripCounts], tree: PairTree, rho: Fraction, least: int | None
) -> tuple[tuple[Places, Places, Integers], Integers, Integers]:
    """Measure every pair of leaves, block by block.

    Returns:
        The kept pairs (origins, destinations, noisy counts), and two tables of sums of all noisy pairs: (origins one level above the
        leaves, leaves) and (leaves, destinations one level above the leaves).
    """
    trips, width = run.data, tree.destinations.size(tree.destinations.depth)
    parent = tree.origins.parent[-1]
    above, kept = np.zeros((int(parent[-1]) + 1, width), np.int64), []
    column = tree.destinations.first_child(tree.destinations.depth - 1)[:-1]
    across = np.zeros((len(parent), len(column)), np.int64)
    rows = max(_PAIRS_PER_BLOCK // width, 1)
    for start in range(0, len(parent), rows):
        stop = min(start + rows, len(parent))
        part = slice(*np.searchsorted(trips.origin, [start, stop]))
        block = np.zeros((stop - start) * width, np.int64)
        block[(trips.origin[part] - np.int64(start)) * width + trips.destination[part]] = trips.count[part]
        block = run.draw(block, rho)
        pair_index = np.flatnonzero(block if least is None else block >= least)
        kept.append((pair_index + start * width, block[pair_index]))
        first = np.flatnonzero(np.diff(parent[start:stop], prepend=-1))
        above[parent[start:stop][first]] += np.add.reduceat(block.reshape(-1, width), first, axis=0)
        across[start:stop] = np.add.reduceat(block.reshape(-1, width), column, axis=1)
    pair, noisy = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    origin, destination = np.divmod(pair, width)
    return (origin.astype(np.int32), destination.astype(np.int32), noisy), above, across
