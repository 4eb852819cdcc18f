"""What every release says of itself, whatever it counts: how it was made, what was spent, and what kind of noise is in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from dpviz.cards import Mapped
from dpviz.families import FAMILIES
from dpviz.privacy.receipt import Receipt
from dpviz.release.intervals import Noise, noise_of
from dpviz.release.same import is_same

Level = int | str
"""A level of a release by its number, 0 for the whole, or by its name."""


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

    def refuse_unpublishable(self) -> None:
        """Raise `RefusedError` if the release is a simulation, or was made by a reference that is not private."""
        self.receipt.refuse_unpublishable(simulation=self.simulation)

    def same_as(self, other: Any) -> bool:
        """Return whether another release says the same: of the same kind, with the same frame, numbers, spread, receipt and steps.

        A release that was read from its files is the same as the one that was written.
        """
        return is_same(self, other)
