"""The map of a release of areas by pydeck: for notebooks, and for browsers that cannot load the canvas."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.arrays import Integers
from dpviz.release.area_release import AreaRelease
from dpviz.view.areas_drawing import AreasMapSettings, RegionsOnMap, draw_areas
from dpviz.view.deck import CompactDeck, Window, deck_in
from dpviz.view.trips_layers import make_area_layer
from dpviz.view.trips_map import write_legend


@dataclass(frozen=True, kw_only=True)
class AreasMap:
    """A map with its texts.

    Attributes:
        deck: the map; the objects of its layer "regions" have the index of their region as `i`.
        legend: one line of HTML.
        note: what was left out, as plain text.
        description: alternative text, plain.
    """

    deck: CompactDeck
    legend: str
    note: str
    description: str


def areas_map(release: AreaRelease, view: AreasMapSettings, truth: Integers | None = None, on_map: RegionsOnMap | None = None) -> AreasMap:
    """Draw the regions of one level; the first view depends on the public regions alone.

    Args:
        release: public.
        view: the settings.
        truth: as of `draw_areas`. CURATOR ONLY.
        on_map: where the regions lie, if that is known already.

    Raises:
        DomainError: no such level or view, or regions without geometry.
    """
    on_map = RegionsOnMap(release.regions) if on_map is None else on_map
    drawing = draw_areas(release, on_map, view, truth)
    line = [225, 230, 235, 50] if view.dark else [90, 100, 110, 75]
    layer = make_area_layer(drawing.areas, line=line)
    under, over = ([], [layer]) if drawing.areas.shapes.are_dots else ([layer], [])
    return AreasMap(
        deck=deck_in(Window(bounds=on_map.bounds), under, over, tooltip=drawing.areas.texts.template(), dark=view.dark),
        legend=write_legend(drawing.legend),
        note=drawing.note,
        description=drawing.description,
    )
