"""Non-negative counts by place and slot: what noise drowns is borrowed from the split of the larger place around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.space.hierarchy import Hierarchy

PLACES, SLOTS = 0, 1  # axes
_ADDED, _SCALED = 2, 2  # rounds in which both sums are met by adding, and then by multiplying


@dataclass(frozen=True, kw_only=True, eq=False)
class Families:
    """The nodes of a depth of a hierarchy, in families of one parent each, along one axis of a table of places by slots.

    Attributes:
        axis: `PLACES` or `SLOTS`.
        starts: (parents,) the first node of each family.
        parent: (nodes,) the number of each node's family.
        size: (parents,) nodes of each family.
    """

    axis: int
    starts: Integers
    parent: Integers
    size: Integers

    @classmethod
    def at_depth(cls, hierarchy: Hierarchy, depth: int, axis: int) -> Families:
        """Return the families of the nodes of a depth, 1 or more."""
        above, here = hierarchy.at_depth(depth - 1), hierarchy.at_depth(depth)
        return cls(
            axis=axis,
            starts=hierarchy.first_child[above].astype(np.int64) - here.start,
            parent=hierarchy.parent[here].astype(np.int64) - above.start,
            size=hierarchy.children[above].astype(np.int64),
        )

    def sum(self, values: Floats) -> Floats:
        """Add up values over each family."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=self.axis))

    def spread(self, totals: Floats) -> Floats:
        """Repeat what each family has for its nodes."""
        if self.axis == PLACES:
            return totals.take(self.parent, axis=PLACES)
        return np.repeat(totals, self.size, axis=SLOTS)  # several times as fast along the rows

    def mean_of(self, sums: Floats) -> Floats:
        """Divide what each family has by its number of nodes."""
        return np.asarray(sums / (self.size if self.axis == SLOTS else self.size[:, None]))

    def project(self, values: Floats, totals: Floats) -> Floats:
        """Find the nearest values of at least 0 that add up to totals of at least 0 in each family.

        The difference is shared equally within a family, values that fall below 0 are set to 0, and what is then too much is taken from the
        others, until none falls below 0. Values of at least 0 that add up to their totals stay as they are.
        """
        found = values + self.spread(self.mean_of(totals - self.sum(values)))
        free = found >= 0
        while not free.all():
            found *= free
            number = np.maximum(np.add.reduceat(free, self.starts, axis=self.axis, dtype=np.int32), 1)
            found += self.spread((totals - self.sum(found)) / number)
            found *= free
            if not (found < 0).any():
                break
            free &= found >= 0
        return found

    def scale(self, values: Floats, totals: Floats) -> Floats:
        """Multiply values of at least 0 so that each family adds up to its total; a family of zeros stays."""
        sums = self.sum(values)
        return np.asarray(values * self.spread(np.divide(totals, sums, out=np.zeros_like(sums), where=sums > 0)))


def make_lean(places: Hierarchy, slots: Hierarchy, estimate: Floats, variance: Floats) -> Floats:
    """Make counts of at least 0 that add up along places and along slots, with less noise in small ones.

    Top down: each place keeps its own total, projected to at least 0 with those of its siblings. How the total is split over slots, level
    by level, is the parent's split, plus what the place's own estimates say beyond it, times a factor from 0 to 1 for all slots of a level:
    small where the deviations are as large as noise alone makes them. Values are then at least 0, add up to the own coarser slots, and with
    those of the siblings to the parent's slots as nearly as some rounds allow; where they do not, the parent's slots are what they add up
    to. Totals of places are those that were projected, exactly.

    Args:
        places: n nodes, all leaves at one depth.
        slots: s nodes, likewise.
        estimate: (n, s) unbiased estimates that add up.
        variance: (n, s) their variances.

    Returns:
        (n, s) counts: biased, with totals that stay as they are where no total of a sibling is below 0.

    Source:
        James, Stein, "Estimation with quadratic loss", Fourth Berkeley Symposium, 1961: the factor 1 - (d - 2) / Q for d deviations with a
        sum of squares, in units of the variance of their noise, of Q. For d < 4 it is 1 - d / (2 Q).
    """
    finished = np.zeros_like(estimate)
    finished[0] = _split_whole(slots, estimate[0])
    in_slots = [Families.at_depth(slots, depth, SLOTS) for depth in range(1, slots.height + 1)]
    for depth in range(1, places.height + 1):
        here, among = places.at_depth(depth), Families.at_depth(places, depth, PLACES)
        above = finished[places.at_depth(depth - 1)]
        split = np.zeros((here.stop - here.start, len(slots)))
        split[:, :1] = among.project(estimate[here, :1], above[:, :1])
        for level, within in enumerate(in_slots, start=1):
            coarser, finer = slots.at_depth(level - 1), slots.at_depth(level)
            usual = _split_as_parent(among.spread(above), split, within, coarser, finer)
            own = estimate[here, finer] - usual
            own -= within.spread(within.mean_of(within.sum(own)))
            own *= _factors(own, within, variance[here, coarser], variance[here, finer])[:, None]
            split[:, finer] = _meet_both(usual + own, within, split[:, coarser], among, above[:, finer])
        finished[here] = _add_up_slots(slots, split)
    finished[: places.starts[-2]] = 0
    return places.sum_up(finished)


def _split_whole(slots: Hierarchy, estimate: Floats) -> Floats:
    """Project the whole's slots to at least 0, family by family from its total down. Return (s,) counts that add up."""
    found = np.maximum(estimate[None, :], 0.0)
    for depth in range(1, slots.height + 1):
        families, finer = Families.at_depth(slots, depth, SLOTS), slots.at_depth(depth)
        found[:, finer] = families.project(estimate[None, finer], found[:, slots.at_depth(depth - 1)])
    return np.asarray(found[0])


def _split_as_parent(above: Floats, split: Floats, within: Families, coarser: slice, finer: slice) -> Floats:
    """Split the coarser slots of places into finer ones as those of their parents are, evenly where a parent has nothing."""
    whole = within.spread(above[:, coarser])
    even = np.broadcast_to(within.spread(1 / within.size[None, :]), whole.shape)
    return np.asarray(np.divide(above[:, finer], whole, out=even.copy(), where=whole > 0) * within.spread(split[:, coarser]))


def _factors(own: Floats, within: Families, of_whole: Floats, of_parts: Floats) -> Floats:
    """Return (places,) factors from 0 to 1 for deviations within families, which have mean 0.

    The noise of such deviations has an expected sum of squares, over a family of f, of the parts' variances less 1 / f of the whole's.
    """
    freedom = float((within.size - 1).sum())
    if not freedom:
        return np.ones(len(own))
    noise = of_parts.sum(axis=1) - (of_whole / within.size).sum(axis=1)
    squares = (own**2).sum(axis=1) * freedom
    drowned = max(freedom - 2, freedom / 2) * noise
    return np.asarray(np.maximum(1 - np.divide(drowned, squares, out=np.ones_like(drowned), where=squares > 0), 0.0))


def _meet_both(values: Floats, within: Families, coarser: Floats, among: Families, of_parent: Floats) -> Floats:
    """Move values to at least 0, with the given sums over slots exactly and over siblings as nearly as some rounds allow."""
    for _ in range(_ADDED):
        values = among.project(within.project(values, coarser), of_parent)
    for _ in range(_SCALED):
        values = among.scale(within.scale(values, coarser), of_parent)
    return within.project(within.scale(values, coarser), coarser)


def _add_up_slots(slots: Hierarchy, split: Floats) -> Floats:
    """Return (places, s) counts of which the coarser slots are sums of the finest ones."""
    finest = np.zeros(split.shape[::-1])
    finest[slots.at_depth(slots.height)] = split[:, slots.at_depth(slots.height)].T
    return np.ascontiguousarray(slots.sum_up(finest).T)
