"""Private trips laid over the tree of pairs: the true count of every occupied node of every stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.data.flows import Flows
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import Places

Integers = NDArray[np.int64]

_BITS = 63


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueStage:
    """Occupied nodes of one stage, in tree order. PRIVATE.

    Attributes:
        parent: (k,) place of each node's parent among the occupied nodes of the stage before.
        child: (k,) which of its parent's children it is, 0 for the first.
        origin: (k,) place of its origin region.
        destination: (k,) place of its destination region.
        count: (k,) trips.
    """

    parent: Integers
    child: Places
    origin: Places
    destination: Places
    count: Integers


def true_stages(flows: Flows, tree: PairTree) -> list[TrueStage]:
    """The occupied nodes of stages 0 to T, with one sort of the pairs in all.

    Pairs are sorted in tree order, so that the nodes of every stage are runs of neighbours; each finer stage only adds
    places where a run ends.
    """
    ways = [_way(flows, tree, stage) for stage in range(1, tree.height + 1)]
    order = _tree_order([child for _, child in ways], len(flows.count))
    count = flows.count[order]
    begins = np.zeros(len(count), np.bool_)
    begins[:1] = True
    first = np.flatnonzero(begins)
    nothing = np.zeros(len(first), np.int32)
    stages = [TrueStage(parent=first * 0, child=nothing, origin=nothing, destination=nothing, count=_sums(count, first))]
    sides = {"origin": np.zeros(len(count), np.int32), "destination": np.zeros(len(count), np.int32)}
    for stage, (unsorted, child) in enumerate(ways, start=1):
        parent = np.cumsum(begins) - 1
        sides[tree.refined(stage)] = place = unsorted[order]
        begins[1:] |= place[1:] != place[:-1]
        first = np.flatnonzero(begins)
        stages.append(
            TrueStage(
                parent=parent[first],
                child=child[order[first]],
                origin=sides["origin"][first],
                destination=sides["destination"][first],
                count=_sums(count, first),
            )
        )
    return stages


def _way(flows: Flows, tree: PairTree, stage: int) -> tuple[Places, Places]:
    """(k,) place of each leaf pair's region on the side that a stage refines, and which child of its parent that is."""
    side = tree.refined(stage)
    regions, leaf = (tree.origins, flows.origin) if side == "origin" else (tree.destinations, flows.destination)
    level = tree.levels(stage)[0 if side == "origin" else 1]
    number = np.arange(regions.size(level)) - regions.first_child(level - 1)[regions.parent[level - 1]]
    place = regions.ancestors(level)[leaf]
    return place, number.astype(np.int32)[place]


def _tree_order(children: list[Places], size: int) -> Integers:
    """(size,) order of the leaf pairs by their ways from the root: one packed sort, or a lexsort where 63 bits are too few."""
    width = [int(child.max(initial=0)).bit_length() for child in children]
    spare = size.bit_length()
    if sum(width) + spare > _BITS:
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


def _sums(count: Integers, first: Integers) -> Integers:
    return np.add.reduceat(count, first) if len(first) else np.zeros(0, np.int64)
