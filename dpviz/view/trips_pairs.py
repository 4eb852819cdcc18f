"""Which pairs of regions a map of trips draws, and what it tells of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpviz.release.at_once import pair_intervals
from dpviz.release.flow_release import FlowRelease
from dpviz.release.pair_sums import PairSums
from dpviz.view.colors import top_of
from dpviz.view.escape import deck
from dpviz.view.trips_layers import Told

if TYPE_CHECKING:
    from dpviz.view.trips_map import TripsView

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of different regions of one level, ordered by origin, then destination.

    Attributes:
        origin: (k,) places.
        destination: (k,) places.
        released: (k,) trips; 0 where a pair was not released.
        true: (k,) trips; None where the truth is not to be seen.
    """

    origin: Integers
    destination: Integers
    released: Integers
    true: Integers | None

    def __getitem__(self, chosen: NDArray[np.bool_] | Integers) -> Pairs:
        """Some of the pairs."""
        true = None if self.true is None else self.true[chosen]
        return Pairs(origin=self.origin[chosen], destination=self.destination[chosen], released=self.released[chosen], true=true)

    @property
    def error(self) -> Integers:
        """(k,) released minus true."""
        return self.released - (self.released if self.true is None else self.true)

    @property
    def marks(self) -> Integers:
        """(k,) 1 for false positives, 2 for false negatives, 0 for all others."""
        true = self.released if self.true is None else self.true
        marks = np.where((self.released > 0) & (true == 0), 1, np.where((self.released <= 0) & (true > 0), 2, 0))
        return marks.astype(np.int64)


def pairs_of(release: FlowRelease, view: TripsView, truth: PairSums | None) -> Pairs:
    """Every pair that is released or true and belongs to the chosen region, if there is one."""
    sums = release.sums(view.level, view.level)
    key = sums.origin * np.int64(sums.width) + sums.destination
    if truth is not None:
        key = np.union1d(key, truth.origin * np.int64(sums.width) + truth.destination)
    origin, destination = np.divmod(key, sums.width)
    kept = np.ones(len(key), np.bool_)
    same = release.tree.origins == release.tree.destinations
    if same:
        kept &= origin != destination
    if view.chosen is not None:
        kept &= (origin == view.chosen) | ((destination == view.chosen) & same)
    origin, destination = origin[kept], destination[kept]
    true = None if truth is None else truth.at(origin.astype(np.int32), destination.astype(np.int32))
    released = sums.at(origin.astype(np.int32), destination.astype(np.int32))
    return Pairs(origin=origin, destination=destination, released=released, true=true)


def ranked(pairs: Pairs, view: TripsView) -> tuple[Integers, int]:
    """Places of the pairs that are drawn, the most important one last, and how many there are to choose from.

    Released trips decide, and the truth only in those views that show it.
    """
    true = pairs.released if pairs.true is None else pairs.true
    if view.shown == "Error":
        size, rank = np.maximum(np.abs(pairs.released), true), np.abs(pairs.error)
    elif view.shown == "False positives":
        size = np.maximum(pairs.released, true)
        rank = size + (pairs.marks > 0) * (size.max(initial=0) + 1)
    else:
        size = rank = true if view.shown == "True" else pairs.released
    present = rank > 0
    fits = np.flatnonzero(present & (size >= view.least))
    return fits[np.argsort(-rank[fits], kind="stable")[: view.top]][::-1], int(present.sum())


def released_most(pairs: Pairs, view: TripsView) -> tuple[float, int]:
    """The number of trips that gets the widest arc, and how many arcs "Released" draws: in every view, from released trips alone."""
    fits = np.sort(pairs.released[pairs.released >= view.least])[-view.top :]
    return top_of(fits), len(fits)


def error_top(release: FlowRelease, level: int) -> float:
    """The error that gets the strongest colour: three standard deviations of the noise, which are public."""
    stddev = release.stddev(2 * level)
    return top_of(3 * stddev[np.isfinite(stddev)])


def arcs_told(release: FlowRelease, view: TripsView, pairs: Pairs) -> Told:
    """What tooltips say of pairs: "A to B", what was released, and the truth where it may be seen.

    Pairs are drawn for their size, so their intervals are those that hold for all pairs at once.
    """
    origins, destinations = release.tree.origins.names_of(view.level), release.tree.destinations.names_of(view.level)
    names = zip(origins[pairs.origin], destinations[pairs.destination], strict=True)
    low, high = _spread(release, view.level, pairs)
    unit = deck(view.unit)
    texts = [
        f"{count:,} {unit}" + (f", 95 % between {a:,.0f} and {b:,.0f} for all pairs at once" if b < np.inf else "")
        for count, a, b in zip(pairs.released.tolist(), low.tolist(), high.tolist(), strict=True)
    ]
    true = [] if pairs.true is None else zip(pairs.true.tolist(), pairs.error.tolist(), strict=True)
    return Told(
        title=[f"{deck(one)} to {deck(other)}" for one, other in names],
        text=texts,
        truth=None if pairs.true is None else [f"true {count:,}, error {error:+,}" for count, error in true],
    )


def _spread(release: FlowRelease, level: int, pairs: Pairs) -> tuple[Floats, Floats]:
    """Ends of the intervals of pairs; infinite where a pair was not released, so that nothing is known."""
    at, width = release.stages[2 * level], release.tree.destinations.size(level)
    low, high = np.zeros(len(pairs.origin)), np.full(len(pairs.origin), np.inf)
    if len(at.count):
        key = at.origin * np.int64(width) + at.destination
        order = np.argsort(key, kind="stable")
        wanted = pairs.origin * width + pairs.destination
        place = order[np.minimum(np.searchsorted(key[order], wanted), len(order) - 1)]
        found = key[place] == wanted
        low[found], high[found] = (end[place][found] for end in pair_intervals(release, 2 * level))
    return low, high
