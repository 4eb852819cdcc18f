"""The occupied nodes of every stage of the tree of pairs, with their true counts. PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.arrays import Integers, Places
from dpviz.data.trips import TripCounts
from dpviz.space.pair_tree import Children, PairTree

_KEY_BITS = 63  # of a non-negative 64-bit integer


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueStage:
    """Occupied nodes of one stage, in tree order. PRIVATE.

    Attributes:
        parent: (k,) index of each node's parent among the occupied nodes of the stage above.
        child: (k,) position of each node among all children of its parent, 0 for the first.
        origin: (k,) index of each node's origin region.
        destination: (k,) index of each node's destination region.
        count: (k,) number of trips of each node.
    """

    parent: Integers
    child: Places
    origin: Places
    destination: Places
    count: Integers

    def among(self, children: Children, above: Integers) -> tuple[Integers, Integers]:
        """Find these nodes among the children of the kept nodes of the stage above. PRIVATE.

        Args:
            children: all of them, c in all.
            above: index of each occupied node of the stage above among its kept nodes, -1 if it was dropped.

        Returns:
            (k,) indices, -1 for a node below a dropped one; and (c,) the true count of each child.
        """
        parent = above[self.parent]
        index = np.where(parent >= 0, np.append(children.starts, 0)[parent] + self.child, -1)
        count = np.zeros(len(children.origin), np.int64)
        count[index[index >= 0]] = self.count[index >= 0]
        return index, count


def sum_true_stages(trips: TripCounts, tree: PairTree) -> list[TrueStage]:
    """Add up the trips of the occupied nodes of stages 0 to T; the pairs are sorted only once. PRIVATE.

    In tree order, the pairs of each node follow each other, at every stage. So the nodes of a stage are runs in the sorted list, and
    each finer stage cuts these runs into shorter ones.
    """
    steps = [_find_refined_regions(trips, tree, stage) for stage in range(1, tree.height + 1)]
    order = _sort_by_path([child for _, child in steps], len(trips.count))
    count = trips.count[order]
    begins = np.zeros(len(count), np.bool_)  # whether a sorted pair is the first of its node
    begins[:1] = True
    first = np.flatnonzero(begins)
    zeros = np.zeros(len(first), np.int32)
    stages = [TrueStage(parent=first * 0, child=zeros, origin=zeros, destination=zeros, count=_sum_runs(count, first))]
    sides = {"origin": np.zeros(len(count), np.int32), "destination": np.zeros(len(count), np.int32)}
    for stage, (refined, child) in enumerate(steps, start=1):
        parent = np.cumsum(begins) - 1
        sides[tree.refined_side(stage)] = index = refined[order]
        begins[1:] |= index[1:] != index[:-1]
        first = np.flatnonzero(begins)
        stages.append(
            TrueStage(
                parent=parent[first],
                child=child[order[first]],
                origin=sides["origin"][first],
                destination=sides["destination"][first],
                count=_sum_runs(count, first),
            )
        )
    return stages


def _find_refined_regions(trips: TripCounts, tree: PairTree, stage: int) -> tuple[Places, Places]:
    """Return, for each leaf pair, (k,) its region on the side that a stage refines, and (k,) this region's position among siblings."""
    side = tree.refined_side(stage)
    regions, leaf = (tree.origins, trips.origin) if side == "origin" else (tree.destinations, trips.destination)
    level = tree.levels(stage)[0 if side == "origin" else 1]
    number = np.arange(regions.size(level)) - regions.first_child(level - 1)[regions.parent[level - 1]]
    index = regions.ancestors(level)[leaf]
    return index, number.astype(np.int32)[index]


def _sort_by_path(children: list[Places], size: int) -> Integers:
    """Return (size,) the order of the leaf pairs by their paths from the root: by one packed key, or a lexsort if 63 bits are too few."""
    width = [int(child.max(initial=0)).bit_length() for child in children]
    spare = size.bit_length()
    if sum(width) + spare > _KEY_BITS:
        return np.lexsort(children[::-1])
    key = np.zeros(size, np.int64)
    for child, bits in zip(children, width, strict=True):
        key <<= bits
        key |= child
    key <<= spare
    key |= np.arange(size)
    key.sort()
    key &= (1 << spare) - 1
    return key


def _sum_runs(count: Integers, first: Integers) -> Integers:
    """Add up (n,) counts per run; `first` has the (k,) indices at which runs begin."""
    return np.add.reduceat(count, first) if len(first) else np.zeros(0, np.int64)
