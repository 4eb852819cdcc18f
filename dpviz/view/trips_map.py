"""The map of a release of trips by pydeck: layers, the first view, and the legend as HTML."""

from __future__ import annotations

from dataclasses import dataclass

import pydeck

from dpviz.release.flow_release import FlowRelease, PairSums
from dpviz.view.basemap import fit_bounds
from dpviz.view.canvas import Legend
from dpviz.view.deck import CompactDeck, Window, deck_in
from dpviz.view.escape import html
from dpviz.view.trips_drawing import TripsDrawing, TripsMapSettings, draw_trips, hierarchies_of
from dpviz.view.trips_layers import make_arc_layer, make_area_layer, make_chosen_layer, make_label_layer


@dataclass(frozen=True, kw_only=True)
class TripsMap:
    """A map with its texts.

    Attributes:
        deck: the map; the objects of its layer "regions" have the index of their region as `i`.
        legend: one line of HTML.
        note: what is shown and what was left out, as plain text.
        description: alternative text, plain.
        drawn: number of arcs.
        total: number of pairs that could have been drawn.
    """

    deck: CompactDeck
    legend: str
    note: str
    description: str
    drawn: int
    total: int


def trips_map(release: FlowRelease, view: TripsMapSettings, truth: PairSums | None = None) -> TripsMap:
    """Draw the trips of one level, as `draw_trips` chooses them; the first view depends on the public regions alone.

    Args:
        release: public.
        view: the settings.
        truth: true trips between the regions of the level, from an evaluation. CURATOR ONLY.

    Raises:
        DomainError: no such level, view or region, or regions without geometry (see `has_geometry`).
    """
    drawing = draw_trips(release, view, truth)
    window = Window(bounds=fit_bounds(hierarchies_of(release), view.width, view.height), width=view.width, height=view.height)
    under, over = _make_layers(drawing)
    over.append(make_label_layer(drawing.areas[0], window.bounds, view.chosen, dark=view.dark))
    return TripsMap(
        deck=deck_in(window, under, over, tooltip=drawing.arcs.texts.template(), dark=view.dark),
        legend=write_legend(drawing.legend),
        note=drawing.note,
        description=drawing.description,
        drawn=drawing.drawn,
        total=drawing.total,
    )


def _make_layers(drawing: TripsDrawing) -> tuple[list[pydeck.Layer], list[pydeck.Layer]]:
    """Make the layers below the borders and those above. Points lie over arcs, so that they can be clicked where many arcs meet."""
    view, areas, arcs = drawing.view, drawing.areas, drawing.arcs
    line = [225, 230, 235, 50] if view.dark else [90, 100, 110, 75]
    layers = [make_area_layer(area, line=line, name=name) for area, name in zip(areas, ("regions", "ends"), strict=False)]
    ring = [235, 240, 245, 255] if view.dark else [20, 28, 34, 255]
    chosen = [] if view.chosen is None else [make_chosen_layer(areas[0], view.chosen, ring), make_arc_layer(arcs, copy=True)]
    polygons = [layer for layer, area in zip(layers, areas, strict=True) if area.shapes.polygons]
    points = [layer for layer, area in zip(layers, areas, strict=True) if not area.shapes.polygons]
    return polygons[::-1], [*chosen, make_arc_layer(arcs), *points[::-1]]


def write_legend(legend: Legend) -> str:
    """Write a legend as one line of HTML."""
    return f'<div class="dpviz-legend">{"".join(_write_parts(legend))}</div>'


def _write_parts(legend: Legend) -> list[str]:
    gap = '<span class="dpviz-gap"></span>'
    parts = [f"<b>{html(legend.title)}</b> "] if legend.title else []
    if legend.bar:
        parts.append(f"{html(legend.low)} {_write_bar(legend.bar, 90)} {html(legend.top)}")
    for color, pixels, words in legend.lines:
        style = f"width:26px;height:{pixels:.1f}px;background:{color};vertical-align:middle;outline:none"
        parts.append(f'<span class="dpviz-bar" style="{style}"></span> {html(words)} ')
    for colors, words in legend.marks:
        swatch = _write_bar(colors, 40) if len(colors) > 1 else f'<span class="dpviz-mark" style="background:{colors[0]}"></span>'
        parts.append(f"{gap}{swatch} {html(words)}")
    return parts if legend.also is None else [*parts, gap, *_write_parts(legend.also)]


def _write_bar(colors: tuple[str, ...], width: int) -> str:
    return f'<span class="dpviz-bar" style="width:{width}px;background:linear-gradient(90deg,{",".join(colors)})"></span>'
