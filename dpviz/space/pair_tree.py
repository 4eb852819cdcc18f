"""The tree of origin/destination pairs: every stage refines the destinations or the origins by one level, in turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Places
from dpviz.errors import DomainError
from dpviz.space.regions import Regions

SIDES = ("destination", "origin")


@dataclass(frozen=True, kw_only=True)
class Children:
    """The children of chosen nodes of a stage, group by group.

    Attributes:
        origin: (k,) places at the new stage's level of origins.
        destination: (k,) places at its level of destinations.
        starts: (nodes,) where each node's children begin.
        sizes: (nodes,) how many each has.
    """

    origin: Places
    destination: Places
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PairTree:
    """The destination tree of a pair of hierarchies, or its mirror, the origin tree. PUBLIC.

    Stage 0 is the pair of both roots. In the destination tree, odd stages refine the destination and even stages the
    origin, so stage 2k holds the pairs of regions of level k, and T = 2g is the stage of pairs of leaves.

    Attributes:
        origins: regions where trips begin.
        destinations: regions where they end, of the same depth; the same object where there is one geography.
        first: "destination" or "origin": which of them is refined first.

    Raises:
        DomainError: depths that differ, or another `first`.

    Source:
        Boninsegna, Silvestri, "Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown
        Approach", 2025, Section 3. T counts the stages below the root, as Algorithm 1 does.
    """

    origins: Regions
    destinations: Regions
    first: str = "destination"

    def __post_init__(self) -> None:
        if self.origins.depth != self.destinations.depth:
            raise DomainError("Origins and destinations need hierarchies of the same depth.")
        if self.first not in SIDES:
            raise DomainError("The tree must start with 'destination' or 'origin'.")

    @property
    def height(self) -> int:
        """T = 2g, the number of the last stage."""
        return 2 * self.origins.depth

    def refined(self, stage: int) -> str:
        """Which side stage `stage` >= 1 refines: "origin" or "destination"."""
        return self.first if stage % 2 else SIDES[1 - SIDES.index(self.first)]

    def levels(self, stage: int) -> tuple[int, int]:
        """Level of the origins and level of the destinations at a stage."""
        if stage not in range(self.height + 1):
            raise DomainError(f"The tree has stages 0 to {self.height}.")
        early, late = (stage + 1) // 2, stage // 2
        return (late, early) if self.first == "destination" else (early, late)

    def size(self, stage: int) -> int:
        """How many pairs a stage has, empty ones included."""
        origin, destination = self.levels(stage)
        return self.origins.size(origin) * self.destinations.size(destination)

    def title(self, stage: int) -> str:
        """What the pairs of a stage are, for example "county to state"."""
        origin, destination = self.levels(stage)
        return f"{self.level_name('origin', origin)} to {self.level_name('destination', destination)}"

    def level_name(self, side: str, level: int) -> str:
        """The name of a level; "all" for the root's."""
        regions = self.origins if side == "origin" else self.destinations
        return "all" if level == 0 else regions.levels[level - 1]

    def children(self, stage: int, origin: Places, destination: Places) -> Children:
        """Every child of some nodes, whether or not any trip lies there.

        Args:
            stage: of the children, 1 to T.
            origin: (n,) places of the nodes at stage - 1.
            destination: (n,) likewise.
        """
        below = self.refined(stage) == "destination"
        regions, chosen = (self.destinations, destination) if below else (self.origins, origin)
        first = regions.first_child(self.levels(stage - 1)[1 if below else 0])
        begin = first[chosen]
        sizes = first[chosen + 1] - begin
        ends = np.cumsum(sizes)
        starts = ends - sizes
        total = int(ends[-1]) if len(ends) else 0
        refined = np.arange(total, dtype=np.int32)
        refined += np.repeat((begin - starts).astype(np.int32), sizes)
        kept = np.repeat(origin if below else destination, sizes)
        one, other = (kept, refined) if below else (refined, kept)
        return Children(origin=one, destination=other, starts=starts, sizes=sizes)
