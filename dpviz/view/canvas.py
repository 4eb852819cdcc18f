"""Maps side by side in one canvas: what each pane shows, as messages of bytes that the browser draws.

Of points the browser gets numbers, not shapes: rectangles as lattice lines, counts as whole numbers of the smallest type that holds
them, and one byte per rectangle for its colour. It builds the shapes itself. Of trips it gets the regions' corners or centres once, and
arcs by the numbers of the regions where they begin and end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.amounts import format_short
from dpviz.arrays import Floats, Integers, Mask
from dpviz.space.domain import Domain
from dpviz.view.basemap import WGS84, Bounds, RegionShapes, corner_coordinates, lie_near, map_bounds
from dpviz.view.colors import Colors, Scale
from dpviz.view.ground import ground_around
from dpviz.view.places import ATTRIBUTION, place_names
from dpviz.view.trips_layers import Arcs

MOST_FEATURES = 20_000  # partitions that are shown at once where nobody chose the level
MOST_CELLS = 65_536  # rectangles in a pane; more are drawn as a picture
STREETS = "https://tile.openstreetmap.org/{z}/{x}/{y}.png"  # the only address outside the app that a browser may ask, if it is told to
STREETS_CREDIT = "© OpenStreetMap contributors, openstreetmap.org/copyright"
MASKED_ON_LIGHT, MASKED_ON_DARK = [202, 206, 210, 255], [60, 66, 72, 255]  # where nobody can be
_GROUND: dict[str, tuple[list[int] | str, list[int] | str]] = {
    "land": ([40, 45, 50, 16], [255, 255, 255, 14]),
    "maskedColor": (MASKED_ON_LIGHT, MASKED_ON_DARK),
    "line": ([70, 75, 80, 150], [200, 205, 210, 150]),
    "rim": ([90, 100, 110, 75], [225, 230, 235, 50]),
    "text": ([20, 28, 34, 255], [235, 240, 244, 255]),
    "halo": ([255, 255, 255, 160], [16, 21, 24, 150]),
    "accent": ([212, 78, 150, 255], [124, 203, 226, 255]),
    "boxColor": ([213, 94, 0, 255], [255, 150, 60, 255]),
    "paper": ("#ffffff", "#101518"),
}
"""Colours on light and on dark pages: of land, lines, names, the hovered rectangle, the box, and the paper of a saved picture."""
TONES = 64  # shades of a scale on each side of zero
_LAST_PALE = 44  # of these, from which on what is pale has one colour
_BORDER = 1 / 2000  # of the extent of regions: so far beyond their simplified outlines a place has its name, too
_BAR = 12  # colours of a legend's gradient
_UNITS = 65_535  # parts into which the bounds are cut, for corners of rectangles that are not parallel to the meridians
_DIGEST = 16  # hexadecimal digits
_TYPES = ("u1", "i1", "u2", "i2", "u4", "i4")


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Rectangles of one level with whole numbers, in the order in which they are drawn.

    Attributes:
        domain: the public frame whose lattice it is.
        rectangles: (k, 4) west, south, east, north as lattice lines.
        numbers: by a short name, (k,) whole numbers that the words of a pane may name.
        near: by the name of a number, the name of another one that it is close to: their difference is sent, which takes fewer bytes.
        is_grid: whether they are all equal squares of the domain, row by row from the south; the browser then finds their lines itself.
    """

    domain: Domain
    rectangles: NDArray[np.int32]
    numbers: dict[str, Integers]
    near: dict[str, str] = field(default_factory=dict)
    is_grid: bool = False

    def differences(self) -> dict[str, Any]:
        """Return the numbers; of those that are near to another one, the difference to it."""
        return {name: numbers - self.numbers[self.near[name]] if name in self.near else numbers for name, numbers in self.numbers.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Areas:
    """Regions of one level, as polygons, as H3 cells, or as centres alone if they have no outlines.

    Attributes:
        shapes: in degrees.
        texts: n texts, which are said about the regions.
    """

    shapes: RegionShapes
    texts: list[str]


@dataclass(frozen=True, kw_only=True)
class Legend:
    """A colour scale in words and colours.

    Attributes:
        title: what is shown, with its unit.
        low: the number at the lower end of the gradient.
        top: the number at its upper end.
        bar: CSS colours of the gradient; empty if the scale has none.
        marks: further colours with their meaning: (CSS colours, words).
        lines: widths of lines with their meaning: (CSS colour, pixels, words).
        dashed: the same of dashed lines.
        dots: radii of dots with their meaning: (CSS colour, pixels, words).
    """

    title: str
    low: str = ""
    top: str = ""
    bar: tuple[str, ...] = ()
    marks: tuple[tuple[tuple[str, ...], str], ...] = ()
    lines: tuple[tuple[str, float, str], ...] = ()
    dashed: tuple[tuple[str, float, str], ...] = ()
    dots: tuple[tuple[str, float, str], ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Pane:
    """One map of the canvas: rectangles with their shades, regions with arcs between them, or a picture.

    Attributes:
        title: what it shows, in a few words.
        about: how it was made.
        words: what is said about a rectangle; {name} stands for one of the numbers of its `cells`, and {name:text} for the text
            where the number is not 0.
        legend: of its colours.
        note: what the map simplifies or leaves out; "" if nothing.
        mark: colour of what it shows in a chart beside it, such as "#0b6e8f"; "" if none.
        cells: name of the rectangles in `Scene.cells`; "" for a picture.
        shades: (k,) index of each rectangle's colour in the palette.
        palette: (c, 4) red, green, blue, alpha.
        picture: a PNG over the bounds in the web map's projection; empty for rectangles.
        areas: names of the regions in `Scene.areas`: one, or two if trips end in other regions than they begin in; none for points.
        fills: for each of `areas`, (n, 4) red, green, blue, alpha.
        dots: for each of `areas`, (n,) radii in pixels of dots at the centres, which have the colours then and are drawn under arcs, the
            larger ones first; (0,) where the regions themselves have them. None if no region is a dot.
        arcs: between the regions; None if there are none.
        chosen: numbers of regions of the first areas that are outlined.
        texts: what is said about the regions of the first areas on this map; empty if it is what `Areas` says on each.
    """

    title: str
    about: str
    words: str
    legend: Legend
    note: str = ""
    mark: str = ""
    cells: str = ""
    shades: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    palette: Colors = field(default_factory=lambda: np.zeros((0, 4), np.uint8))
    picture: bytes = b""
    areas: tuple[str, ...] = ()
    fills: tuple[Colors, ...] = ()
    dots: tuple[Floats, ...] = ()
    arcs: Arcs | None = None
    chosen: tuple[int, ...] = ()
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """Everything that the canvas shows.

    Attributes:
        bounds: west, south, east, north in degrees of what is shown at first; public.
        cells: rectangles by name, over the whole bounds; panes that show the same release share them.
        areas: regions by name, in the same way.
        panes: one to eight.
        description: alternative text.
        dark: whether the page is dark.
        height: of the canvas with its legends and tools, in pixels.
        fills: whether the canvas has the height that the page gives it instead, with legends and tools over the maps.
        titled: whether such a canvas shows the titles of its panes; else the page lays menus over them, which say what they show.
        edge: whether the bounds are outlined, as of a domain.
        nothing: what is said where there is nothing.
        camera: (longitude, latitude, zoom) of the first view; None for the whole bounds.
        swipe: position of the swipe bar, 0 to 1 of the width, if the two panes lie over each other at first; None for side by side.
        box: west, south, east, north in degrees of a box that is outlined; None if there is none.
        outline: closed lines of an area that is outlined, each a list of [longitude, latitude] in degrees; none if there is none.
        masked: polygons where nobody can be, which cover what lies under them; each is a list of rings, in degrees.
        ground: lists of land polygons, country borders and state lines, in degrees.
        places: rows of name, longitude, latitude, and the zoom from which on the name is shown.
        title: of a picture that is saved.
        caption: a sentence under that picture.
        stamp: what must be said of the numbers, such as that they are a simulation.
        link: whether the address of the page opens the same picture for somebody else.
        may_save: whether a picture can be saved; never where the truth of private data may be on the map.
        text_size: of names on the map, in pixels.
        asks: whether a box can be dragged on the map.
        asks_now: whether a drag makes a box at first, and does not move the map.
        what_box: what a box is for, as the help of its button.
        visit: number of the visit of the page; within one, the browser keeps camera and swipe bar even while the maps are away.
        streets: whether the browser lays the tiles of OpenStreetMap under the panes, whose server then sees which area is looked at.
    """

    bounds: Bounds
    panes: tuple[Pane, ...]
    description: str
    dark: bool
    cells: dict[str, Cells] = field(default_factory=dict)
    areas: dict[str, Areas] = field(default_factory=dict)
    edge: bool = True
    nothing: str = "Outside the domain, where nothing is counted."
    height: int = 500
    fills: bool = False
    titled: bool = False
    camera: tuple[float, float, float] | None = None
    swipe: float | None = None
    box: Bounds | None = None
    outline: list[list[list[float]]] = field(default_factory=list)
    masked: list[list[list[list[float]]]] = field(default_factory=list)
    ground: dict[str, list[Any]] = field(default_factory=lambda: {"land": [], "borders": [], "states": []})
    places: list[tuple[str, float, float, float]] = field(default_factory=list)
    title: str = ""
    caption: str = ""
    stamp: str = ""
    link: bool = False
    may_save: bool = True
    text_size: int = 12
    asks: bool = False
    asks_now: bool = False
    what_box: str = "Drag a box on the map: its count, with its interval. Shift and drag does the same"
    visit: int = 0
    streets: bool = False

    @property
    def credit(self) -> str:
        """Whom to name under the map."""
        return ", ".join(filter(None, [ATTRIBUTION if self.places else "", STREETS_CREDIT if self.streets else ""]))

    def pack(self, canvas: str = "") -> dict[str, bytes]:
        """Write the scene as messages, by names that stay while it changes: its parts, and last the header, which names their digests.

        Args:
            canvas: name of the canvas that shows it.
        """
        surroundings = {name: getattr(self, name) for name in ("ground", "places", "outline", "masked")}
        parts = {"surroundings": pack({"surroundings": surroundings}, {})}
        parts |= {f"cells {name}": _pack_cells(name, cells) for name, cells in self.cells.items()}
        for name, areas in self.areas.items():
            parts[f"shapes {name}"] = pack({}, _pack_areas(name, areas))
            parts[f"texts {name}"] = pack({"areas": {name: {"texts": areas.texts}}}, {})  # which change with each run
        parts |= {f"pane {place}": _pack_pane(pane, place) for place, pane in enumerate(self.panes)}
        header = self._describe() | {"canvas": canvas, "parts": [digest_of(part) for part in parts.values()]}
        return parts | {"header": pack(header, {})}

    def _describe(self) -> dict[str, Any]:
        """Return what the header says beside its parts."""
        return {
            "bounds": self.bounds,
            "camera": None if self.camera is None else dict(zip(("longitude", "latitude", "zoom"), self.camera, strict=True)),
            "swipe": self.swipe,
            "height": self.height,
            "fills": self.fills,
            "titled": self.titled,
            "textSize": self.text_size,
            "zooms": [0, 20],
            "description": self.description,
            "edge": [ring_around(self.bounds)] if self.edge else [],
            "box": self.box,
            "credit": self.credit,
            "tiles": STREETS if self.streets else "",
            "asksNow": self.asks_now,
            "maySave": self.may_save,
            "whatBox": self.what_box,
            **{name: getattr(self, name) for name in ("title", "caption", "stamp", "link", "asks", "nothing", "visit")},
            **{name: dark if self.dark else light for name, (light, dark) in _GROUND.items()},
        }


def pack(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Write a JSON header and arrays as one message: a digest of the rest, the length of the header in four bytes, the header, the arrays.

    The header gets `arrays`: name, type and length of each.

    >>> message = pack({"a": 1}, {"n": np.arange(3, dtype="<u2")})
    >>> size = int.from_bytes(message[16:20], "little")
    >>> json.loads(message[20 : 20 + size]), np.frombuffer(message[20 + size :], "<u2").tolist()
    ({'a': 1, 'arrays': [['n', 'u2', 3]]}, [0, 1, 2])
    """
    listed = [[name, array.dtype.str[1:], array.size] for name, array in arrays.items()]
    text = json.dumps(header | {"arrays": listed}, separators=(",", ":"), ensure_ascii=False).encode()
    rest = b"".join([len(text).to_bytes(4, "little"), text, *(array.tobytes() for array in arrays.values())])
    return hashlib.blake2b(rest, digest_size=_DIGEST // 2).hexdigest().encode() + rest


def digest_of(message: bytes) -> str:
    """Return the digest with which a message begins."""
    return message[:_DIGEST].decode()


def smallest_type(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the smallest type that holds them all; as 64-bit floats if no type of 32 bits does.

    >>> smallest_type(np.array([0, 255])).dtype, smallest_type(np.array([-1, 300])).dtype, smallest_type(np.array([2**40])).dtype
    (dtype('uint8'), dtype('int16'), dtype('float64'))
    """
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for kind in _TYPES:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return numbers.astype(f"<{kind}")
    return numbers.astype("<f8")


def make_palette(scale: Scale) -> Colors:
    """List the colours of a scale of numbers for `choose_shades`: below zero, above zero, and the same again in pale.

    The darkest colours would be grey in pale, which means land: pale ones end before them.

    Returns:
        (256, 4) red, green, blue, alpha.
    """
    strengths = (np.arange(TONES) / (TONES - 1)) ** 2 * scale.top
    colors = np.concatenate([scale.colors(-np.maximum(strengths, 1e-300)), scale.colors(strengths)])
    tones = np.arange(TONES)
    return np.concatenate([colors, scale.make_pale(colors[np.concatenate([tones, TONES + np.minimum(tones, _LAST_PALE)])])])


def choose_shades(scale: Scale, values: Floats, pale: Mask | None = None) -> NDArray[np.uint8]:
    """Choose the colour of each value in the palette of its scale.

    Args:
        scale: of any kind but "marks".
        values: (k,) numbers.
        pale: (k,) whether a value is drawn pale, because it may be 0; None if none is.

    Returns:
        (k,) indices into `make_palette`.
    """
    tone = np.rint(np.sqrt(np.minimum(np.abs(values) / scale.top, 1.0)) * (TONES - 1)).astype(np.uint8)
    paler = 0 if pale is None else np.where(pale, 2 * TONES, 0)
    return np.asarray(tone + np.where(values < 0, 0, TONES) + paler, np.uint8)


def make_legend(scale: Scale, *, negatives: bool, pale: str = "") -> Legend:
    """Describe a scale of numbers.

    Args:
        scale: the scale.
        negatives: whether numbers below zero are shown on a density scale.
        pale: which rectangles are pale; "" if none is.
    """
    low = -scale.top if scale.goes_below else 0.0
    marks: list[tuple[tuple[str, ...], str]] = []
    if scale.kind == "density" and negatives:
        marks.append((to_css(scale.colors(np.linspace(-scale.top / 50, -scale.top, 5))), "below zero, by noise"))
    if pale:
        halfway = TONES + TONES // 2
        full_and_pale = np.array([halfway, halfway, 2 * TONES + halfway, 2 * TONES + halfway])
        marks.append((to_css(make_palette(scale)[full_and_pale]), f"pale: {pale}"))
    return Legend(
        title=scale.title,
        low=format_short(low),
        top=f"{format_short(scale.top)} and more",
        bar=to_css(scale.colors(np.linspace(low, scale.top, _BAR))),
        marks=tuple(marks),
    )


def make_marks_legend(colors: Colors, wrong: Mapping[str, int], empty: int, number: int) -> Legend:
    """Describe the colours of false positives and negatives, and how many there are.

    Args:
        colors: (3, 4) of what is right, released as occupied though empty, and the other way round.
        wrong: how many are false positives and false negatives, as of `presence_errors`.
        empty: how many are empty in truth.
        number: how many there are in all.
    """
    meanings = (
        f"empty, released as occupied: {wrong['false_positives']:,} of {empty:,}",
        f"occupied, released as empty: {wrong['false_negatives']:,} of {number - empty:,}",
    )
    return Legend(title="", marks=tuple((to_css(colors[[kind]]), text) for kind, text in enumerate(meanings, start=1)))


def to_css(colors: Colors) -> tuple[str, ...]:
    """Write (k, 4) colours for a style sheet.

    >>> to_css(np.array([[255, 0, 0, 51]], np.uint8))
    ('rgba(255,0,0,0.20)',)
    """
    return tuple(f"rgba({r},{g},{b},{a / 255:.2f})" for r, g, b, a in colors.tolist())


def ground_of(domain: Domain) -> dict[str, list[Any]]:
    """Return land and borders around a domain, for `Scene.ground`; none for a plain plane, which lies nowhere."""
    if domain.crs is None:
        return {"land": [], "borders": [], "states": []}
    return ground_in(map_bounds(domain))


def ground_in(bounds: Bounds) -> dict[str, list[Any]]:
    """Return land and borders around bounds in degrees, for `Scene.ground`."""
    return dict(vars(ground_around(bounds)))  # a copy: what is kept serves every map of these bounds


def on_land(scene: Scene, nothing: str = "No region is here.") -> Scene:
    """Return a scene of regions with the land and borders around its bounds, which are not outlined, and the names in the regions.

    Args:
        scene: regions in their bounds.
        nothing: what is said where there is no region.
    """
    return replace(scene, edge=False, nothing=nothing, ground=ground_in(scene.bounds), places=names_among(scene.areas, scene.bounds))


def names_of(domain: Domain) -> list[tuple[str, float, float, float]]:
    """Return the names of places in a domain, for `Scene.places`; none for a plain plane."""
    return [] if domain.crs is None else names_in(map_bounds(domain))


def names_in(bounds: Bounds) -> list[tuple[str, float, float, float]]:
    """Return the names of places in bounds in degrees, for `Scene.places`."""
    places = place_names(bounds)
    numbers = (np.round(column, 3).tolist() for column in (places.longitude, places.latitude, places.zoom))
    return list(zip(places.name, *numbers, strict=True))


def names_among(areas: Mapping[str, Areas], bounds: Bounds) -> list[tuple[str, float, float, float]]:
    """Return the names of places in regions, for `Scene.places`; of regions without outlines those in their bounds."""
    rows, margin = names_in(bounds), _BORDER * max(bounds[2] - bounds[0], bounds[3] - bounds[1])
    places = np.array([row[1:3] for row in rows]).reshape(-1, 2)
    near = np.any([lie_near(each.shapes, places, margin) for each in areas.values()], axis=0)
    return [row for row, kept in zip(rows, near.tolist(), strict=True) if kept]


def _pack_cells(name: str, cells: Cells) -> bytes:
    """Write rectangles and their numbers as a part; of equal squares only how many there are in a row."""
    arrays: dict[str, NDArray[Any]] = {f"{name} {key}": smallest_type(numbers) for key, numbers in cells.differences().items()}
    about: dict[str, Any] = {"side": cells.domain.side, "near": cells.near}
    if _is_plain_grid(cells):
        about["grid"] = round(len(cells.rectangles) ** 0.5)
    else:
        arrays |= _pack_rectangles(name, cells.rectangles, cells.domain)
    return pack({"cells": {name: about}}, arrays)


def _is_plain_grid(cells: Cells) -> bool:
    """Return whether rectangles are all equal squares of a domain that is parallel to the meridians."""
    return cells.is_grid and cells.domain.crs in (None, WGS84)


def _pack_rectangles(name: str, rectangles: NDArray[np.int32], domain: Domain) -> dict[str, NDArray[Any]]:
    """Return rectangles as lattice lines; in a projected domain, where they are not parallel to the meridians, as parts of the bounds."""
    if domain.crs is None or domain.crs == WGS84:
        return {f"{name} lines": smallest_type(rectangles.ravel())}
    west, south, east, north = map_bounds(domain)
    corners = (corner_coordinates(domain, rectangles) - [west, south]) / [east - west, north - south]
    return {f"{name} corners": np.rint(np.clip(corners, 0, 1) * _UNITS).astype("<u2").ravel()}


def _pack_areas(name: str, areas: Areas) -> dict[str, NDArray[Any]]:
    """Return corners, where rings and polygons begin, the polygons' regions, and the regions' centres.

    Of H3 cells return their indexes and centres: the browser knows their corners.
    """
    shapes = areas.shapes
    if shapes.cells is not None:
        codes = np.array([int(text, 16) for text in shapes.cells], "<u8")
        return {f"{name} cells": codes.view("<u4"), f"{name} centres": shapes.centres.astype("<f4").ravel()}
    polygons = [polygon if polygon and isinstance(polygon[0][0], list) else [polygon] for polygon in shapes.polygons]
    rings = [ring for polygon in polygons for ring in polygon]
    corners = np.array([corner for ring in rings for corner in ring], np.float32).reshape(-1, 2)
    return {
        f"{name} corners": corners.astype("<f4").ravel(),
        f"{name} rings": smallest_type(np.cumsum([0, *map(len, rings)])),
        f"{name} polygons": smallest_type(np.cumsum([0, *map(len, polygons)])),
        f"{name} owner": smallest_type(np.array(shapes.owner, np.int64)),
        f"{name} centres": shapes.centres.astype("<f4").ravel(),
    }


def _pack_pane(pane: Pane, place: int) -> bytes:
    """Write a pane as a part."""
    arrays: dict[str, NDArray[Any]] = {}
    about = _describe_pane(pane, place, arrays)
    return pack({"pane": about}, arrays)


def _describe_pane(pane: Pane, place: int, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return what is said of a pane, and add its arrays to `arrays`."""
    about: dict[str, Any] = {name: getattr(pane, name) for name in ("title", "about", "words", "note", "mark", "cells")}
    about["legend"] = asdict(pane.legend)
    if pane.areas:
        return about | _describe_trips(pane, place, arrays)
    if pane.picture:
        arrays[f"{place} picture"] = np.frombuffer(pane.picture, np.uint8)
        return about | {"picture": f"{place} picture"}
    arrays[f"{place} shades"], arrays[f"{place} palette"] = pane.shades, pane.palette.ravel()
    return about | {"shades": f"{place} shades", "palette": f"{place} palette"}


def _describe_trips(pane: Pane, place: int, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return what is said of regions and arcs, and add their arrays to `arrays`."""
    fills = [f"{place} fill {side}" for side in range(len(pane.fills))]
    arrays |= {name: fill.astype(np.uint8).ravel() for name, fill in zip(fills, pane.fills, strict=True)}
    dots = {f"{place} dots {side}": np.rint(10 * radii).astype("<u1") for side, radii in enumerate(pane.dots)}
    arrays |= dots
    found: dict[str, Any] = {
        "areas": pane.areas,
        "fills": fills,
        "dots": list(dots),
        "chosen": pane.chosen,
        "texts": pane.texts,
        "arcs": None,
    }
    if (arcs := pane.arcs) is not None:
        arrays |= {f"{place} {name}": smallest_type(getattr(arcs, name)) for name in ("origin", "destination")}
        arrays |= {f"{place} {name}": getattr(arcs, name).astype(np.uint8).ravel() for name in ("color", "start_color")}
        arrays |= {f"{place} width": np.rint(10 * arcs.width).astype("<u1"), f"{place} dashed": arcs.dashed.astype("<u1")}
        found["arcs"] = {"count": len(arcs.width), "texts": arcs.texts.lines()}
    return found


def ring_around(bounds: Bounds) -> list[list[float]]:
    """Return the corners of bounds in degrees as a closed line."""
    west, south, east, north = bounds
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]
