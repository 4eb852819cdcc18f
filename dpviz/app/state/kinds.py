"""The pages of points, trips and areas: what differs between them in what a page may hold. A family names its own: `Family.page_kind`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpviz.app.state.readers import Reader, number_reader, read_level
from dpviz.app.state.values import FINEST_ZOOM, MOST_LEVELS
from dpviz.errors import SettingError
from dpviz.families import AREA_FAMILY, FAMILIES, POINT_FAMILY, TRIP_FAMILY, Family
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.samples.points import POINT_SAMPLES
from dpviz.samples.trips import TRIP_SAMPLES
from dpviz.view.areas_drawing import SHOWN_AREAS
from dpviz.view.points_map import INTERPOLATED, SHOWN
from dpviz.view.trips_drawing import NOT_LISTED, SHOWN_TRIPS


@dataclass(frozen=True, kw_only=True, eq=False)
class PageKind:
    """The page of a family.

    Attributes:
        family: the family.
        key: key of the page in the state of a session.
        button: of buttons that lead to the page.
        samples: its samples, by key.
        shown: what a map may show, such as "Released".
        level: name in links of the level that is shown.
        read_level: reads that level.
        levels_of_run: whether the levels are those of the mechanism's release, so that another mechanism may lack the one that is shown.
        always: parameters that stand in every link, whatever their value.
    """

    family: Family
    key: str
    button: str
    samples: Mapping[str, Any]
    shown: tuple[str, ...]
    level: str = "level"
    read_level: Reader
    levels_of_run: bool = False
    always: tuple[str, ...] = ("mechanism",)

    @property
    def name(self) -> str:
        """Name of the family."""
        return self.family.name


POINTS = PageKind(
    family=POINT_FAMILY,
    key="config",
    button="Open the map",
    samples=POINT_SAMPLES,
    shown=(*SHOWN, INTERPOLATED),
    level="zoom",
    read_level=number_reader(0, FINEST_ZOOM, int),
    levels_of_run=True,
)
TRIPS = PageKind(
    family=TRIP_FAMILY,
    key="trips config",
    button="Open the trips",
    samples=TRIP_SAMPLES,
    shown=(*SHOWN_TRIPS, NOT_LISTED),
    read_level=read_level,
    always=("mechanism", "epsilon", "level", "top"),
)
AREAS = PageKind(
    family=AREA_FAMILY,
    key="areas config",
    button="Open the areas",
    samples=AREA_SAMPLES,
    shown=SHOWN_AREAS,
    read_level=number_reader(1, MOST_LEVELS, int),
)
KINDS: dict[str, PageKind] = {kind.name: kind for kind in (POINTS, TRIPS, AREAS)}
"""The pages of the families of this package, by their names."""


def kind_of(name: str) -> PageKind:
    """Return the page of a family.

    Raises:
        SettingError: there is no such family.
    """
    if name not in FAMILIES:
        raise SettingError(f"There is no page of {name[:40]!r}.")
    kind: PageKind = FAMILIES[name].page_kind
    return kind
