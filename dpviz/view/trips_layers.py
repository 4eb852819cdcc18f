"""Layers of a map of trips: regions that can be clicked, and arcs that are faint at the origin and strong at the destination."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pydeck
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.view.basemap import Bounds, RegionShapes
from dpviz.view.colors import Colors
from dpviz.view.deck import MOST_FEATURES

SMALLEST_POINT, LARGEST_POINT = 3.0, 16.0  # radius in pixels
_FEW_POINTS = 300  # with more points each is smaller
_HIGHLIGHT = (212, 78, 150)
_BEND = 0.3  # height of an arc, relative to deck.gl's usual one
_DECIMALS = 4  # of degrees, about ten metres
_MOST_NAMES, _CANDIDATES = 12, 200  # names on a map, and how many of the largest regions are tried
_NAME_ROOM = (0.14, 0.06)  # width and height of a name, as shares of the window


@dataclass(frozen=True, kw_only=True)
class TooltipTexts:
    """Texts of tooltips, one per object, without markup; names must have passed `escape.deck`.

    Attributes:
        title: names of the objects.
        text: released numbers, one a line.
        truth: sentences with true numbers; None where the truth must not be shown.
    """

    title: list[str]
    text: list[str]
    truth: list[str] | None

    def fields(self, indices: Sequence[int] | None = None) -> dict[str, list[str]]:
        """Return the texts by the field names that `template` uses: of the objects with the given indices, or of all objects."""
        columns = {"n": self.title, "t": [text.replace("\n", "; ") for text in self.text]} | (
            {} if self.truth is None else {"e": self.truth}
        )
        return columns if indices is None else {key: [texts[index] for index in indices] for key, texts in columns.items()}

    def lines(self) -> list[str]:
        """Write each object's texts as one, in lines."""
        truth = [""] * len(self.title) if self.truth is None else [f"\n{text}" for text in self.truth]
        return [f"{title}\n{text}{true}" for title, text, true in zip(self.title, self.text, truth, strict=True)]

    def template(self) -> str:
        """Write the HTML template of the tooltip; all layers of a deck share one template."""
        return "<b>{n}</b><br>{t}" if self.truth is None else "<b>{n}</b><br>{t}<br>{e}"


@dataclass(frozen=True, kw_only=True)
class Arcs:
    """Arcs from the centre of one region to that of another; later ones are drawn over earlier ones.

    Attributes:
        start: (k, 2) longitude and latitude of the origins.
        end: (k, 2) of the destinations.
        color: (k, 4) red, green, blue, alpha at the destinations.
        width: (k,) pixels.
        origin: (k,) indices of the origins.
        destination: (k,) indices of the destinations.
        texts: of the tooltips.
    """

    start: Floats
    end: Floats
    color: Colors
    width: Floats
    origin: Integers
    destination: Integers
    texts: TooltipTexts


@dataclass(frozen=True, kw_only=True)
class Areas:
    """The look of the regions of a level.

    Attributes:
        shapes: polygons or centres.
        color: (n, 4) red, green, blue, alpha.
        size: (n,) 0 to 1, for the radius of regions that are drawn as points.
        texts: of the tooltips.
    """

    shapes: RegionShapes
    color: Colors
    size: Floats
    texts: TooltipTexts


def fade_at_origins(colors: Colors) -> Colors:
    """Compute the colours of arcs at their origins: the same colours with a seventh of the alpha."""
    return np.column_stack([colors[:, :3], colors[:, 3] // 7]).astype(np.uint8)


def make_arc_layer(arcs: Arcs, *, copy: bool = False) -> pydeck.Layer:
    """Make a layer of arcs that bend to the right of their direction, so that both directions of a pair are visible.

    Args:
        arcs: to draw.
        copy: whether to make a second layer without texts, to be drawn below the first one. After a click Streamlit reduces the opacity
            of everything that was not clicked to 0.4: one layer of arcs alone would be hardly visible then.
    """
    columns: dict[str, NDArray[Any]] = {
        "s": np.round(arcs.start, _DECIMALS),
        "d": np.round(arcs.end, _DECIMALS),
        "a": fade_at_origins(arcs.color),
        "b": arcs.color,
        "w": np.round(arcs.width, 1),
    }
    texts = {} if copy else {"o": arcs.origin.tolist(), "z": arcs.destination.tolist(), **arcs.texts.fields()}
    return pydeck.Layer(
        "ArcLayer",
        _to_rows({key: column.tolist() for key, column in columns.items()} | texts),
        id="arcs again" if copy else "arcs",
        get_source_position="s",
        get_target_position="d",
        get_source_color="a",
        get_target_color="b",
        get_width="w",
        get_height=_BEND,
        get_tilt=90,
        pickable=not copy,
        auto_highlight=True,
        highlight_color=[*_HIGHLIGHT, 255],
    )


def make_area_layer(areas: Areas, *, line: list[int], name: str = "regions") -> pydeck.Layer:
    """Make a layer of regions that can be hovered and clicked: polygons, H3 cells, or points sized by trips if there are no outlines.

    Args:
        areas: the regions and their look.
        line: red, green, blue, alpha of the borders, 0 to 255.
        name: id of the layer.
    """
    if areas.shapes.are_dots:
        return _make_point_layer(areas, line, name)
    cells, owner = areas.shapes.cells, areas.shapes.owner
    kind: dict[str, Any] = {"type": "PolygonLayer", "get_polygon": "p"}
    if cells is not None:
        kind, owner = {"type": "H3HexagonLayer", "get_hexagon": "p", "extruded": False}, list(range(len(cells)))
    rows = {
        "p": areas.shapes.polygons if cells is None else cells.tolist(),
        "c": areas.color[owner].tolist(),
        "i": owner,
        **areas.texts.fields(owner),
    }
    return pydeck.Layer(
        **kind,
        data=_to_rows(rows),
        id=name,
        get_fill_color="c",
        filled=True,
        stroked=True,
        get_line_color=line,
        line_width_min_pixels=0.6,
        line_width_max_pixels=0.6,
        pickable=True,
        auto_highlight=True,
        highlight_color=[*_HIGHLIGHT, 60],
    )


def _make_point_layer(areas: Areas, line: list[int], name: str) -> pydeck.Layer:
    """Draw regions as points: the 20,000 largest, small ones over large ones."""
    kept = np.argsort(-areas.size, kind="stable")[:MOST_FEATURES].tolist()
    rows = {
        "p": np.round(areas.shapes.centres[kept], _DECIMALS).tolist(),
        "r": np.round(choose_radius(areas)[kept], 1).tolist(),
        "c": areas.color[kept].tolist(),
        "i": kept,
        **areas.texts.fields(kept),
    }
    return pydeck.Layer(
        "ScatterplotLayer",
        _to_rows(rows),
        id=name,
        get_position="p",
        get_radius="r",
        radius_units="'pixels'",
        get_fill_color="c",
        stroked=True,
        get_line_color=line,
        line_width_min_pixels=0.6,
        line_width_max_pixels=0.6,
        pickable=True,
        auto_highlight=True,
        highlight_color=[*_HIGHLIGHT, 200],
    )


def choose_radius(areas: Areas) -> Floats:
    """Choose the (n,) radii of points in pixels; smaller where there are many points."""
    factor = math.pow(_FEW_POINTS / max(len(areas.size), _FEW_POINTS), 0.6)
    return factor * (SMALLEST_POINT + (LARGEST_POINT - SMALLEST_POINT) * areas.size)


def make_chosen_layer(areas: Areas, region: int, color: list[int]) -> pydeck.Layer:
    """Make a layer with the outline of the chosen region.

    Args:
        areas: the regions and their look.
        region: index of the region.
        color: red, green, blue, alpha, 0 to 255.
    """
    polygons = [polygon for polygon, owner in zip(areas.shapes.polygons, areas.shapes.owner, strict=True) if owner == region]
    if polygons:
        options: dict[str, Any] = {"type": "PolygonLayer", "data": [{"p": polygon} for polygon in polygons], "get_polygon": "p"}
    else:
        centre = np.round(areas.shapes.centres[region], _DECIMALS).tolist()
        radius = round(float(choose_radius(areas)[region]) + 3, 1)
        options = {"type": "ScatterplotLayer", "data": [{"p": centre}], "get_position": "p", "get_radius": radius}
        options["radius_units"] = "'pixels'"
    return pydeck.Layer(
        id="chosen",
        filled=False,
        stroked=True,
        get_line_color=color,
        line_width_min_pixels=2.5,
        line_width_max_pixels=2.5,
        pickable=False,
        **options,
    )


def make_label_layer(areas: Areas, window: Bounds, chosen: int | None, *, dark: bool) -> pydeck.Layer:
    """Make a layer with names of the largest regions that do not overlap; the chosen region is always named.

    Args:
        areas: the regions and their look.
        window: west, south, east, north of the first view, in degrees.
        chosen: index of the chosen region; None if there is none.
        dark: whether the page is dark.
    """
    order = np.argsort(-areas.size, kind="stable")[:_CANDIDATES]
    labelled = _choose_labelled(areas.shapes.centres, order if chosen is None else np.append(chosen, order), window)
    rows = {"p": np.round(areas.shapes.centres[labelled], _DECIMALS).tolist(), "n": [areas.texts.title[region] for region in labelled]}
    # Without a colour of its own a text is black, and a click on the map does not fade it.
    black = {"get_background_color": [190, 200, 206, 200] if dark else [255, 255, 255, 170]}
    colors = {"get_background_color": [16, 21, 24, 170], "get_color": [235, 240, 244, 255]} if dark and chosen is None else black
    return pydeck.Layer(
        "TextLayer",
        _to_rows(rows),
        id="names",
        get_position="p",
        get_text="n",
        get_size=12,
        get_pixel_offset=[0, -14],
        background=True,
        background_padding=[3, 1],
        character_set="'auto'",
        font_family="'sans-serif'",
        pickable=False,
        **colors,
    )


def _choose_labelled(centres: Floats, candidates: Integers, window: Bounds) -> list[int]:
    """Choose the regions among `candidates` whose names do not overlap in the window; earlier candidates have priority."""
    west, south, east, north = window
    scaled = (centres - [west, south]) / [(east - west) * _NAME_ROOM[0], (north - south) * _NAME_ROOM[1]]
    kept: list[int] = []
    for region in candidates.tolist():
        near = (np.abs(scaled[kept] - scaled[region]) < 1).all(axis=1)
        if not near.any() and len(kept) < _MOST_NAMES:
            kept.append(region)
    return kept


def _to_rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Convert columns of equal length to one dictionary per row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
