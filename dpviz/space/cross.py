"""Regions by categories: the public frame of counts by place and slot."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.errors import DomainError
from dpviz.space.categories import Categories
from dpviz.space.regions import Regions

MOST_CELLS = 2**26


@dataclass(frozen=True)
class Cross:
    """Every finest region by every slot. PUBLIC.

    Attributes:
        regions: where records are.
        categories: of which slot they are.

    Raises:
        DomainError: regions and slots of all levels make more than 2**26 pairs.
    """

    regions: Regions
    categories: Categories

    def __post_init__(self) -> None:
        if len(self.regions.hierarchy) * len(self.categories.hierarchy) > MOST_CELLS:
            raise DomainError(f"Regions and categories of all levels make more than {MOST_CELLS:,} pairs: take coarser ones.")


def regions_of(frame: Regions | Cross) -> Regions:
    """Return the regions of a frame of areas."""
    return frame.regions if isinstance(frame, Cross) else frame


def categories_of(frame: Regions | Cross) -> Categories | None:
    """Return the categories of a frame of areas; None for regions alone."""
    return frame.categories if isinstance(frame, Cross) else None
