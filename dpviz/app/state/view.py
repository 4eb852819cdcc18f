"""What is looked at on a page: maps, level, camera, and what is marked on them. Nothing of it changes what is drawn or paid."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpviz.app.state.linked import STAYS, in_link, in_parts
from dpviz.app.state.readers import (
    Camera,
    choice_reader,
    flag_reader,
    number_reader,
    read_asked,
    read_box,
    read_camera,
    read_scales,
    read_slots,
)
from dpviz.app.state.values import COUNTS, LARGEST_LEAST, LEAST_CUT, MEASURES, MOST_ARCS, MOST_CUT, MOST_REGIONS
from dpviz.view.areas_drawing import RELEASED, TRUE
from dpviz.view.basemap import Bounds
from dpviz.view.trips_drawing import MARKS, PAIR_FILTERS


@dataclass(frozen=True, kw_only=True)
class Pane:
    """A map.

    Attributes:
        run: index of the run that it shows, among those of the draft.
        shows: what of it: "Released", "True", "Error" and so on.
    """

    run: int = 0
    shows: str = RELEASED


@dataclass(frozen=True, kw_only=True)
class View:
    """What is looked at on a page.

    Attributes:
        panes: the maps, from left to right: two or four. Curate shows `main`.
        edited: index of the run whose settings the controls show.
        level: the level that is shown; None for one that is easy to read. Of points, it counts zooms.
        camera: longitude, latitude and zoom; None for the whole area.
        swipe: position of the bar between two maps that lie over each other, as a share of the width; None for maps side by side.
        scales: tops of the colour scales that were kept, by what they are for.
        box: of points, west, south, east, north of the range query in the domain's coordinates; None without one.
        drawer: name of the part that is open beside the maps; "" if none is.
        raw: whether counts are shown as first measured, in Teach.
        present: whether the page is shown in large type without the controls, for a projector.
        marks: of trips, whether they are drawn as arcs or as the colours of regions.
        top: of trips, the most arcs on a map.
        least: of trips, the smallest released number, without its sign, that is drawn.
        pairs: of trips, which released pairs are drawn, one of `PAIR_FILTERS`.
        region: of trips, index of the region of the level from and to which they are drawn; None for all.
        measure: of areas, what colours the regions, one of `MEASURES`.
        asked: of areas, indices of regions of the level, which are outlined and added up.
        slots: of areas by category, first and last of the slots whose counts are shown, by their indices; None for all.
        by_slot: of areas by category, whether there is a map for each of a few categories in place of `panes`.
    """

    panes: tuple[Pane, ...] = field(default=(Pane(shows=TRUE), Pane()), metadata=in_parts("left", "shown", "panes"))
    edited: int = field(default=0, metadata=in_parts("editing"))
    level: int | None = field(default=None, metadata=in_parts("level", "zoom"))
    camera: Camera | None = field(default=None, metadata=in_link(read_camera) | STAYS)
    swipe: float | None = field(default=None, metadata=in_link(number_reader(LEAST_CUT, MOST_CUT, float)) | STAYS)
    scales: dict[str, float] = field(default_factory=dict, metadata=in_link(read_scales) | STAYS)
    box: Bounds | None = field(default=None, metadata=in_link(read_box, of=("points",)) | STAYS)
    drawer: str = field(default="", metadata=STAYS)
    raw: bool = field(default=False, metadata=in_link(flag_reader))
    present: bool = field(default=False, metadata=in_link(flag_reader) | STAYS)
    marks: str = field(default=MARKS[0], metadata=in_link(choice_reader(*MARKS), of=("trips",)))
    top: int = field(default=1500, metadata=in_link(number_reader(1, MOST_ARCS, int), of=("trips",)))
    least: int = field(default=1, metadata=in_link(number_reader(1, LARGEST_LEAST, int), of=("trips",)))
    pairs: str = field(default=PAIR_FILTERS[0], metadata=in_link(choice_reader(*PAIR_FILTERS), of=("trips",)))
    region: int | None = field(default=None, metadata=in_link(number_reader(0, MOST_REGIONS, int), of=("trips",)))
    measure: str = field(default=COUNTS, metadata=in_link(choice_reader(*MEASURES), of=("areas",)))
    asked: tuple[int, ...] = field(default=(), metadata=in_link(read_asked, of=("areas",)))
    slots: tuple[int, int] | None = field(default=None, metadata=in_link(read_slots, of=("areas",)))
    by_slot: bool = field(default=False, metadata=in_link(flag_reader, of=("areas",)))

    @property
    def main(self) -> int:
        """Index of the map that the rail is about: the last one of the first run; of all if none shows it. Curate shows this one alone."""
        last = len(self.panes) - 1
        return max((at for at, pane in enumerate(self.panes) if pane.run == 0), default=last)

    @property
    def shown(self) -> str:
        """What the map `main` shows."""
        return self.panes[self.main].shows

    def shows(self, kind: str) -> bool:
        """Return whether a map shows something, of whichever run."""
        return any(pane.shows == kind for pane in self.panes)

    def with_pane(self, at: int, pane: Pane) -> tuple[Pane, ...]:
        """Return the maps with another one in a place."""
        return (*self.panes[:at], pane, *self.panes[at + 1 :])

    def with_shown(self, kind: str) -> tuple[Pane, ...]:
        """Return the maps, of which `main` shows something else of the first run."""
        return self.with_pane(self.main, Pane(shows=kind))
