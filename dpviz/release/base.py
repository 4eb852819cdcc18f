"""What every release says of itself, whatever it counts: how it was made, what was spent, and what kind of noise is in it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from dpviz.arrays import Floats
from dpviz.cards import Mapped
from dpviz.families import FAMILIES
from dpviz.privacy.receipt import Receipt, Step
from dpviz.release.intervals import COVERS, MADE, Noise, noise_of
from dpviz.release.same import is_same

Level = int | str
"""A level of a release by its number, 0 for the whole, or by its name."""


class Rows(NamedTuple):
    """Numbers of k places of a release, which have labels: (k,) values of each quantity by its name."""

    labels: list[tuple[Hashable, ...]]
    values: dict[str, Any]


@dataclass(frozen=True)
class LevelNumbers:
    """The numbers of one level of a release: (k,) counts, their standard deviations, and the ends of their intervals."""

    count: Floats
    stddev: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyRelease(Mapped):
    """A release. PUBLIC: everything in it was released by a mechanism.

    A family's class states its name (`family`) beside the attributes.

    Attributes:
        mechanism: the key of the mechanism, for example "quadtree".
        settings: the mechanism's settings.
        receipt: how the budget was spent.
        steps: descriptions of the post-processing steps, in order.
        simulation: True if the noise came from a seed: not private, and never written as a publication.
        approximate: why the stated standard deviations are only approximate; None if they are exact.
    """

    family: ClassVar[str]
    coarse_level: ClassVar[int] = 1  # levels up to it may be drawn although they are mostly noise
    no_map: ClassVar[str] = "There is no map of a release of this kind."

    mechanism: str
    settings: dict[str, Any]
    receipt: Receipt
    steps: tuple[str, ...]
    simulation: bool
    approximate: str | None = None

    @property
    def counted(self) -> str:
        """What is counted, in the plural: "records" or "trips"; see `Family.counted`."""
        return FAMILIES[self.family].counted

    @property
    def noise(self) -> Noise:
        """The kind of the noise; "laplace", too, where there is none."""
        return noise_of(self.receipt)

    @property
    def status(self) -> str:
        """The status that every table of the release states: "private release", "SIMULATION: not private" or "NOT PRIVATE"."""
        return self.receipt.status(simulation=self.simulation)

    @property
    def attrs(self) -> dict[Any, Any]:
        """What the `attrs` of its tables state: whether it is "private", and whether it is a "simulation"."""
        return {"private": self.receipt.private and not self.simulation, "simulation": self.simulation}

    def level(self, level: Any) -> pd.DataFrame:
        """Make the table of a level, as `to_frame(level)` does."""
        return self.to_frame(level)

    def to_frame(self, level: Any = None) -> pd.DataFrame:
        """Make the table of a level, of the finest if None."""
        raise NotImplementedError

    def level_number(self, level: Any) -> int:
        """Return the number of a level, 0 for the whole; None is the finest.

        Raises:
            DomainError: no such level.
        """
        raise NotImplementedError

    def level_numbers(self, level: int) -> LevelNumbers:
        """Return the numbers of a level by which its accuracy is judged: of all its places in which records can be."""
        raise NotImplementedError

    def drawable_levels(self) -> dict[int, int]:
        """Return how many shapes the map of each level has, by its number: only of levels that have a place on a map, coarsest first."""
        return {}

    def name_level(self, level: int) -> str:
        """Name a level for readers, 0 for the whole."""
        raise NotImplementedError

    def name_step(self, level: int) -> str:
        """Name a level as steps of the receipt number it."""
        return self.name_level(level)

    def between(self, level: int) -> str | None:  # noqa: ARG002
        """Return the name of a level in the manifest; None if it has but a number."""
        return None

    def typical_size(self, level: int) -> float | None:  # noqa: ARG002
        """Return the median area of a level's places, in km2 or square units of a plane; None if they have no area of their own."""
        return None

    @property
    def frame(self) -> Any:
        """The public frame: a domain, regions, or the regions of both ends of trips."""
        raise NotImplementedError

    @property
    def total(self) -> int:
        """How many records it has in all, none of its finest counts taken for less than 0."""
        raise NotImplementedError

    @property
    def finest_numbers(self) -> int:
        """How many counts its finest level has."""
        raise NotImplementedError

    @property
    def lists_pairs(self) -> bool:
        """Whether the finest level lists only some places, and the records of the others are in coarser levels."""
        return False

    def is_sum(self, level: int) -> bool:  # noqa: ARG002
        """Return whether a level is a sum of finer counts of which some may be left out, and not measured itself."""
        return False

    @property
    def centred_on(self) -> str:
        """The column of its tables on which intervals are centred."""
        return "count"

    def describe_intervals(self) -> str:
        """Say how its intervals are made, and what they cover, in the words of the manifest."""
        return f"{MADE[self.noise].format(centre=self.centred_on)} {COVERS}"

    @property
    def interval_note(self) -> str:
        """What intervals hold for, if that must be said beside them; else ""."""
        return ""

    def is_structure(self, step: Step) -> bool:  # noqa: ARG002
        """Return whether a step chose the structure (splits, medians, sizes); else it measured counts that are published."""
        return False

    def add_up_errors(self) -> tuple[Floats, float, float]:
        """Return how the errors of the smallest parts stand to that of the whole.

        Returns:
            (k,) standard deviations of the finest counts, as measured; that of the whole; and the sum of the finest counts less the count
            of the whole.
        """
        raise NotImplementedError

    def observe(self, leaves: tuple[int, ...]) -> tuple[list[Rows], Floats]:
        """Return every number that can show a person's records in some leaves of the frame, for audits; and the variances of their noise.

        Args:
            leaves: indices of leaves of the public frame: cells, row by row from the south, finest regions, or pairs of them, by origin.
        """
        raise NotImplementedError

    def refuse_unpublishable(self) -> None:
        """Raise `RefusedError` if the release is a simulation, or was made by a reference that is not private."""
        self.receipt.refuse_unpublishable(simulation=self.simulation)

    def same_as(self, other: Any) -> bool:
        """Return whether another release says the same: of the same kind, with the same frame, numbers, spread, receipt and steps.

        A release that was read from its files is the same as the one that was written.
        """
        return is_same(self, other)
