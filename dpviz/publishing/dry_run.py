"""The error of a release before it is made, and the epsilon that a wanted error needs, from the mechanism alone: nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.evaluation.metrics import expected_error
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.private_data import PrivateData, emptied
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release

__all__ = ["Answer", "Wanted", "error_at", "wanted_epsilon"]

SEED = 0
FROM_DATA = (
    "This mechanism chooses partitions by the data. These figures are those of no data at all: a real release has other partitions,"
    " and other errors on them."
)
ONLY_NOISE = "These figures are the noise alone: what is assumed inside partitions, and what later steps change, is not in them."


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """What can be said before anything is spent. PUBLIC: made from no records.

    Attributes:
        by_level: one row per level, coarsest first: level (0 for the whole), of (what it is),
            numbers (partitions; missing for trips, whose released pairs are data), stddev (of the noise on a count, root mean
            square; 0 if exact; missing where a level below the whole is not measured and only adds up) and
            interval (half the width of the 95 % interval).
        receipt: what would be spent on what.
        note: what these figures leave out, in words.
    """

    by_level: pd.DataFrame
    receipt: Receipt
    note: str


def expected(mechanism: AnyMechanism, data: PrivateData, budget: Budget) -> Expected:
    """Expected error per level, by running the mechanism on the same public frame without a single record.

    Args:
        mechanism: built.
        data: give the frame, the unit and the bound per unit; their records are dropped before anything is done.
        budget: what would be spent.

    Raises:
        DpvizError: settings, frame or budget that do not fit: what a real draw would raise, too.
    """
    release = dry_run(mechanism, data, budget)
    rows = [vars(level) for level in mechanism.level_errors(release)]
    notes = [FROM_DATA] if mechanism.depends_on_data(release) else []
    return Expected(by_level=pd.DataFrame(rows), receipt=release.receipt, note=" ".join([*notes, ONLY_NOISE]))


def dry_run(mechanism: AnyMechanism, data: PrivateData, budget: Budget) -> Release | FlowRelease:
    """A release of no records, on the frame and with the unit and bounds of `data`; seeded, so never published."""
    release: Release | FlowRelease = mechanism.release(emptied(data), budget, Entropy.seeded(SEED))
    return release


SMALLEST, LARGEST = 0.001, 100.0
STRIDES = 10  # from the largest epsilon downwards, each to a third of the one before
STEPS = 9  # halvings of the last stride: epsilon to some thousandths of itself
ROUNDINGS = 10  # epsilons of three digits that are tried, upwards
MOST_LOOKS = 1 + STRIDES + STEPS + ROUNDINGS
NOWHERE = "With this mechanism no ε from 0.001 to 100 gives so small an error there: choose a coarser level, or a larger error."
EVEN = (
    "This mechanism chooses partitions by the data. They are approximated by those of {records:,} made-up records, spread evenly: on real"
    " data, which are not, dense places have finer partitions and more noise, empty ones coarser partitions and less."
)
SUPPRESSED = "Pairs that are not released count as 0. What they lose is not in this figure, and can be far more: a study shows it."
ADDED_UP = (
    "Refused: this mechanism leaves small pairs out, and this level only adds up those that are released. What is missing there weighs far"
    " more than the noise, and depends on the data: choose the finest level, or make a study."
)
ALWAYS = "Even at ε 0.001 the error is smaller than that."


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked.

    Attributes:
        error: the largest root mean square error that is good enough, in records or trips; above 0.
        level: zoom level of points (2**level x 2**level equal blocks), or geographic level of trips, 1 for the coarsest.
        delta: for mechanisms that need one.
        records: a public guess at how many records there are. Partitions that depend on the data are then those of that many made-up
            records, spread evenly; None: those of no records.
    """

    error: float
    level: int
    delta: float = 1e-8
    records: int | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The smallest epsilon that is enough, and how good the answer is.

    Attributes:
        epsilon: None where there is none in the range.
        error: that it gives there; NaN without one.
        note: how it was found and what it leaves out, in words.
    """

    epsilon: float | None
    error: float
    note: str


def wanted_epsilon(mechanism: AnyMechanism, data: PrivateData, wanted: Wanted, *, look: Callable[[], object] = int) -> Answer:
    """Go down from the largest epsilon while the expected error is small enough, then halve the last stride, on a logarithmic scale.

    So every larger epsilon that was looked at is enough, too. That matters where small budgets make coarse partitions, with little noise
    of their own and much error of what is assumed inside them, which is not in these figures: there, noise grows with epsilon at first.

    The error is that of the noise alone, in a release of no records on the same public frame (see `expected`). Where partitions of
    points depend on the data, it is one of made-up records in their place; that is an approximation, and the note says so.

    Args:
        mechanism: built.
        data: give the frame, the unit and the bound per unit; their records are dropped before anything is done.
        wanted: the error, and where.
        look: called before each of at most `MOST_LOOKS` epsilons is tried, to follow the search; what it raises ends it.

    Raises:
        SettingError: an error that is not above 0, or no such level.
        DpvizError: settings or frame that do not fit.
    """

    def error(epsilon: float) -> float:
        look()
        return error_at(mechanism, data, wanted, epsilon)

    if not (math.isfinite(wanted.error) and wanted.error > 0):
        raise SettingError("The wanted error must be a finite number above 0.")
    if _suppressed_sums(mechanism, data, wanted):
        return Answer(epsilon=None, error=math.nan, note=ADDED_UP)
    if not error(LARGEST) <= wanted.error:
        return Answer(epsilon=None, error=math.nan, note=f"{NOWHERE} {_note(mechanism, data, wanted)}")
    note, high = _note(mechanism, data, wanted), math.log(LARGEST)
    stride = (math.log(LARGEST) - math.log(SMALLEST)) / STRIDES
    for place in range(1, STRIDES + 1):
        low = math.log(LARGEST) - place * stride
        if error(math.exp(low)) > wanted.error:
            break
        high = low
    else:
        least = error(SMALLEST)
        return Answer(epsilon=SMALLEST, error=least, note=f"{ALWAYS} {note}")
    for _ in range(STEPS):
        middle = (low + high) / 2
        enough = error(math.exp(middle)) <= wanted.error
        low, high = (low, middle) if enough else (middle, high)
    epsilon, found = _rounded(math.exp(high), wanted, error)
    return Answer(epsilon=epsilon, error=found, note=note)


def _rounded(epsilon: float, wanted: Wanted, error: Callable[[float], float]) -> tuple[float, float]:
    """The next epsilon of three digits that is enough, and its error; where noise depends on partitions, not each is."""
    tried = epsilon
    for _ in range(ROUNDINGS):
        tried = _rounded_up(tried)
        if (found := error(tried)) <= wanted.error:
            return tried, found
        tried *= 1.000_01
    return epsilon, error(epsilon)


def error_at(mechanism: AnyMechanism, data: PrivateData, wanted: Wanted, epsilon: float) -> float:
    """Root mean square error of the noise at the wanted level with some epsilon; raises as `wanted_epsilon`."""
    budget = ApproxBudget(repr(epsilon), repr(wanted.delta)) if mechanism.needs_delta else PureBudget(repr(epsilon))
    release = dry_run(mechanism, data, budget) if wanted.records is None else _stand_in(mechanism, data, budget, wanted.records)
    if isinstance(release, FlowRelease):
        if not 1 <= wanted.level <= release.depth:
            raise SettingError(f"Trips have levels 1 to {release.depth}.")
        variance = release.stages[2 * wanted.level].variance
        return float(np.sqrt(variance)) if np.isfinite(variance) else _added_up(release, wanted.level)
    if not 0 <= wanted.level <= release.domain.order:
        raise SettingError(f"Points on this domain have zoom levels 0 to {release.domain.order}.")
    return expected_error(release, wanted.level)


def _stand_in(mechanism: AnyMechanism, data: PrivateData, budget: Budget, records: int) -> Any:
    """A release of made-up records in place of the data; of none where that makes no difference."""
    release = dry_run(mechanism, data, budget)
    if not isinstance(data, PointCounts) or not mechanism.depends_on_data(release):
        return release
    return mechanism.release(evenly(data, records), budget, Entropy.seeded(SEED))


def evenly(data: PointCounts, records: int) -> PointCounts:
    """Made-up records on the same frame, each in any lattice cell with equal chance, with the unit and bound of the data."""
    place, count = np.unique(np.random.default_rng(SEED).integers(0, 4**data.domain.order, records), return_counts=True)
    row, column = (part.astype(np.int32) for part in np.divmod(place, data.domain.side))
    return replace(data, column=column, row=row, count=count.astype(np.int64), dropped=0, outside=0, bad=0, over=0)


def _added_up(release: FlowRelease, level: int) -> float:
    """The error of a pair that only adds up finer ones: the finest stage's noise on a pair of mean size, were all of them released."""
    tree = release.tree
    finest = release.stages[tree.height].variance
    if not np.isfinite(finest):
        return math.inf
    return float(np.sqrt(finest * tree.size(tree.height) / tree.size(2 * level)))


def _note(mechanism: AnyMechanism, data: PrivateData, wanted: Wanted) -> str:
    release = _at_one(mechanism, data, wanted)
    notes = []
    if isinstance(release, FlowRelease):
        notes += [] if release.every_pair else [SUPPRESSED]
    elif mechanism.depends_on_data(release):
        notes.append(EVEN.format(records=wanted.records) if wanted.records else FROM_DATA)
    if _adds_up(release, wanted.level):
        notes.append("This level only adds up finer pairs; all of them are counted in, and a release of fewer pairs has less noise there.")
    return " ".join([*notes, ONLY_NOISE])


def _at_one(mechanism: AnyMechanism, data: PrivateData, wanted: Wanted) -> Any:
    """A release of no records at epsilon 1."""
    return dry_run(mechanism, data, ApproxBudget("1", repr(wanted.delta)) if mechanism.needs_delta else PureBudget("1"))


def _adds_up(release: Any, level: int) -> bool:
    """Whether a level of trips is not measured."""
    known = isinstance(release, FlowRelease) and 1 <= level <= release.depth
    return known and not np.isfinite(release.stages[2 * level].variance)


def _suppressed_sums(mechanism: AnyMechanism, data: PrivateData, wanted: Wanted) -> bool:
    """Whether the level adds up what a mechanism of trips releases after leaving pairs out."""
    if not isinstance(data, Flows):
        return False
    release = _at_one(mechanism, data, wanted)
    return _adds_up(release, wanted.level) and not release.every_pair


def _rounded_up(epsilon: float) -> float:
    """To three digits, upwards, as a person would type it."""
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    return float(f"{math.ceil(round(epsilon / step, 6)) * step:.3g}")
