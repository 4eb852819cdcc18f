"""Layers of a map of trips: regions that can be clicked, and arcs that are light where trips begin and strong where they end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pydeck
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.view.basemap import Bounds, Ground
from dpviz.view.colors import Colors
from dpviz.view.deck import MOST_FEATURES

SMALLEST_POINT, LARGEST_POINT = 3.0, 16.0
_FEW_POINTS = 300
_HIGHLIGHT = (212, 78, 150)
_BEND = 0.3
_DECIMALS = 4
_MOST_NAMES, _CANDIDATES, _ROOM = 12, 200, (0.14, 0.06)


@dataclass(frozen=True, kw_only=True)
class Told:
    """What tooltips say, one text per object, without markup: names must have passed `escape.deck`.

    Attributes:
        title: names.
        text: what was released.
        truth: what is true; None where that is not to be seen.
    """

    title: list[str]
    text: list[str]
    truth: list[str] | None

    def fields(self, places: Sequence[int] | None = None) -> dict[str, list[str]]:
        """The texts of some objects by the short names that `template` uses."""
        columns = {"n": self.title, "t": self.text} | ({} if self.truth is None else {"e": self.truth})
        return columns if places is None else {key: [texts[place] for place in places] for key, texts in columns.items()}

    def template(self) -> str:
        """The tooltip of every layer: one deck has but one."""
        return "<b>{n}</b><br>{t}" if self.truth is None else "<b>{n}</b><br>{t}<br>{e}"


@dataclass(frozen=True, kw_only=True)
class Arcs:
    """What is drawn from centre to centre, the most important ones last.

    Attributes:
        start: (k, 2) longitude and latitude of the origins.
        end: (k, 2) of the destinations.
        color: (k, 4) red, green, blue, alpha of the strong ends.
        width: (k,) pixels.
        origin: (k,) places of the origins.
        destination: (k,) places of the destinations.
        told: what the tooltips say.
    """

    start: Floats
    end: Floats
    color: Colors
    width: Floats
    origin: Integers
    destination: Integers
    told: Told


@dataclass(frozen=True, kw_only=True)
class Areas:
    """The regions of a level, as they are drawn.

    Attributes:
        ground: where they are.
        color: (n, 4) red, green, blue, alpha.
        size: (n,) 0 to 1, how large those are that are points.
        told: what the tooltips say.
    """

    ground: Ground
    color: Colors
    size: Floats
    told: Told


def bar(colors: Colors, width: int) -> str:
    """A gradient for a legend, as a piece of HTML."""
    stops = ",".join(f"rgba({r},{g},{b},{a / 255:.2f})" for r, g, b, a in colors.tolist())
    return f'<span class="dpviz-bar" style="width:{width}px;background:linear-gradient(90deg,{stops})"></span>'


def at_origins(colors: Colors) -> Colors:
    """The colours of arcs where they begin: the same, but light."""
    return np.column_stack([colors[:, :3], colors[:, 3] // 7]).astype(np.uint8)


def arc_layer(arcs: Arcs, *, again: bool = False) -> pydeck.Layer:
    """Arcs that bend to their right, so that both directions of a pair are seen.

    Args:
        arcs: what is drawn.
        again: a second time below the first, without texts: after a click, Streamlit fades all that was not clicked to 0.4.
    """
    columns: dict[str, NDArray[Any]] = {
        "s": np.round(arcs.start, _DECIMALS),
        "d": np.round(arcs.end, _DECIMALS),
        "a": at_origins(arcs.color),
        "b": arcs.color,
        "w": np.round(arcs.width, 1),
    }
    told = {} if again else {"o": arcs.origin.tolist(), "z": arcs.destination.tolist(), **arcs.told.fields()}
    return pydeck.Layer(
        "ArcLayer",
        _rows({key: column.tolist() for key, column in columns.items()} | told),
        id="arcs again" if again else "arcs",
        get_source_position="s",
        get_target_position="d",
        get_source_color="a",
        get_target_color="b",
        get_width="w",
        get_height=_BEND,
        get_tilt=90,
        pickable=not again,
        auto_highlight=True,
        highlight_color=[*_HIGHLIGHT, 255],
    )


def area_layer(areas: Areas, *, line: list[int], name: str = "regions") -> pydeck.Layer:
    """Regions that can be hovered and clicked: polygons, or points sized by their trips where they have no outlines."""
    if not areas.ground.polygons:
        return _point_layer(areas, line, name)
    owner = areas.ground.owner
    rows = {
        "p": areas.ground.polygons,
        "c": areas.color[owner].tolist(),
        "i": owner,
        **areas.told.fields(owner),
    }
    return pydeck.Layer(
        "PolygonLayer",
        _rows(rows),
        id=name,
        get_polygon="p",
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


def _point_layer(areas: Areas, line: list[int], name: str) -> pydeck.Layer:
    """The largest points, small ones above large ones."""
    kept = np.argsort(-areas.size, kind="stable")[:MOST_FEATURES].tolist()
    rows = {
        "p": np.round(areas.ground.centres[kept], _DECIMALS).tolist(),
        "r": np.round(_radius(areas)[kept], 1).tolist(),
        "c": areas.color[kept].tolist(),
        "i": kept,
        **areas.told.fields(kept),
    }
    return pydeck.Layer(
        "ScatterplotLayer",
        _rows(rows),
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


def _radius(areas: Areas) -> Floats:
    """(n,) pixels; smaller where there are many points."""
    share = math.pow(_FEW_POINTS / max(len(areas.size), _FEW_POINTS), 0.6)
    return share * (SMALLEST_POINT + (LARGEST_POINT - SMALLEST_POINT) * areas.size)


def chosen_layer(areas: Areas, place: int, color: list[int]) -> pydeck.Layer:
    """A line around one region."""
    polygons = [polygon for polygon, owner in zip(areas.ground.polygons, areas.ground.owner, strict=True) if owner == place]
    if polygons:
        options: dict[str, Any] = {"type": "PolygonLayer", "data": [{"p": polygon} for polygon in polygons], "get_polygon": "p"}
    else:
        centre = np.round(areas.ground.centres[place], _DECIMALS).tolist()
        radius = round(float(_radius(areas)[place]) + 3, 1)
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


def label_layer(areas: Areas, window: Bounds, chosen: int | None, *, dark: bool) -> pydeck.Layer:
    """Names of the largest regions, where they do not lie on each other; that of the chosen region in any case."""
    order = np.argsort(-areas.size, kind="stable")[:_CANDIDATES]
    places = _apart(areas.ground.centres, order if chosen is None else np.append(chosen, order), window)
    rows = {"p": np.round(areas.ground.centres[places], _DECIMALS).tolist(), "n": [areas.told.title[place] for place in places]}
    light = {"get_background_color": [190, 200, 206, 200] if dark else [255, 255, 255, 170]}  # text is black, which a click does not fade
    plate = {"get_background_color": [16, 21, 24, 170], "get_color": [235, 240, 244, 255]} if dark and chosen is None else light
    return pydeck.Layer(
        "TextLayer",
        _rows(rows),
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
        **plate,
    )


def _apart(centres: Floats, places: Integers, window: Bounds) -> list[int]:
    """Those of some places, the first before the later ones, that have room for a name in the window."""
    west, south, east, north = window
    scaled = (centres - [west, south]) / [(east - west) * _ROOM[0], (north - south) * _ROOM[1]]
    kept: list[int] = []
    for place in places.tolist():
        near = (np.abs(scaled[kept] - scaled[place]) < 1).all(axis=1)
        if not near.any() and len(kept) < _MOST_NAMES:
            kept.append(place)
    return kept


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
