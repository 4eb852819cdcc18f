"""The tree of origin/destination pairs: each stage refines either the destinations or the origins by one level, alternately."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Places
from dpviz.errors import DomainError, check_choice
from dpviz.space.regions import Regions

SIDES = ("destination", "origin")


@dataclass(frozen=True, kw_only=True)
class Children:
    """The children of some nodes of a stage, node by node. They are pairs of the next stage.

    Attributes:
        origin: (k,) index of each child's origin region in its level.
        destination: (k,) index of each child's destination region in its level.
        starts: (nodes,) index at which each node's children begin.
        sizes: (nodes,) number of children of each node.
    """

    origin: Places
    destination: Places
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PairTree:
    """The tree of pairs of regions on which trips are counted: the destination tree, or its mirror image, the origin tree. PUBLIC.

    Stage 0 is the pair of both roots. In the destination tree, odd stages refine the destination by one level and even stages the
    origin. So stage 2k has the pairs of regions of level k, and the last stage, T = 2g, the pairs of leaves.

    Attributes:
        origins: regions where trips begin.
        destinations: regions where trips end, with the same number of levels; the same object if both use one geography.
        first: the side that is refined first: "destination" or "origin".

    Raises:
        DomainError: origins and destinations differ in the number of levels, or `first` is unknown.

    Source:
        Boninsegna, Silvestri, "Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown
        Approach", 2025, Section 3. T counts the stages below the root, as Algorithm 1 does.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
    >>> regions = Regions.from_table(table, levels=["state", "town"])
    >>> tree = PairTree(origins=regions, destinations=regions)
    >>> [tree.title(stage) for stage in range(tree.height + 1)]
    ['all to all', 'all to state', 'state to state', 'state to town', 'town to town']
    """

    origins: Regions
    destinations: Regions
    first: str = "destination"

    def __post_init__(self) -> None:
        if self.origins.depth != self.destinations.depth:
            raise DomainError("Origins and destinations need hierarchies of the same depth.")
        check_choice(self.first, SIDES, "first", DomainError)

    @property
    def height(self) -> int:
        """T = 2g: the last stage, for g levels of regions."""
        return 2 * self.origins.depth

    def refined_side(self, stage: int) -> str:
        """Return the side that a stage refines: "origin" or "destination".

        Args:
            stage: 1 to T.
        """
        return self.first if stage % 2 else SIDES[1 - SIDES.index(self.first)]

    def levels(self, stage: int) -> tuple[int, int]:
        """Return the level of the origins and the level of the destinations at a stage.

        Args:
            stage: 0 to T.

        Raises:
            DomainError: there is no such stage.
        """
        if stage not in range(self.height + 1):
            raise DomainError(f"The tree has stages 0 to {self.height}.")
        first_level, other_level = (stage + 1) // 2, stage // 2  # of the side that is refined first, and of the other
        return (other_level, first_level) if self.first == "destination" else (first_level, other_level)

    def size(self, stage: int) -> int:
        """Return the number of pairs in a stage, including pairs without trips."""
        origin, destination = self.levels(stage)
        return self.origins.size(origin) * self.destinations.size(destination)

    def title(self, stage: int) -> str:
        """Return a name for the pairs of a stage, for example "county to state"."""
        origin, destination = self.levels(stage)
        return f"{self.level_name('origin', origin)} to {self.level_name('destination', destination)}"

    def level_name(self, side: str, level: int) -> str:
        """Return the name of a level of a side ("origin" or "destination"); "all" for level 0."""
        regions = self.origins if side == "origin" else self.destinations
        return "all" if level == 0 else regions.levels[level - 1]

    def children(self, stage: int, origin: Places, destination: Places) -> Children:
        """List all children of some nodes, including pairs without trips.

        Args:
            stage: the stage of the children, 1 to T.
            origin: (n,) origin regions of the nodes, as indices in their level at stage - 1.
            destination: (n,) destination regions, likewise.
        """
        refines_destinations = self.refined_side(stage) == "destination"
        regions, parents = (self.destinations, destination) if refines_destinations else (self.origins, origin)
        first_child = regions.first_child(self.levels(stage - 1)[1 if refines_destinations else 0])
        child_begin = first_child[parents]
        sizes = first_child[parents + 1] - child_begin
        ends = np.cumsum(sizes)
        starts = ends - sizes
        total = int(ends[-1]) if len(ends) else 0
        refined = np.arange(total, dtype=np.int32)  # the next line shifts each node's part to its first child
        refined += np.repeat((child_begin - starts).astype(np.int32), sizes)
        unchanged = np.repeat(origin if refines_destinations else destination, sizes)
        origins, destinations = (unchanged, refined) if refines_destinations else (refined, unchanged)
        return Children(origin=origins, destination=destinations, starts=starts, sizes=sizes)
