"""The maps of a canvas as one SVG, for print: the same shapes and colours, with titles, legends, caption and stamp, and no script.

The canvas itself is drawn by WebGL, of which there is no SVG. So the maps are drawn again, on sheets as those of a report.
"""

from __future__ import annotations

import base64
import math
import re
import textwrap
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from dpviz.arrays import Floats
from dpviz.view.basemap import MOST_NORTH, Bounds, corner_coordinates
from dpviz.view.canvas import MASKED_ON_DARK, MASKED_ON_LIGHT, Legend, Pane, Scene
from dpviz.view.escape import html
from dpviz.view.places import ATTRIBUTION, TILE
from dpviz.view.report_maps import Sheet, make_sheet

WIDTH, MARGIN, GAP = 1600, 40, 16  # pixels, as all lengths here unless said otherwise
TALLEST = 1000  # a map
_EARTH = 6_378_137.0  # metres
_LETTER = 0.54  # estimated width of a letter, as a share of the font size
_HEAD = 102  # over a map: its title, two lines of a legend and a note
_LEGEND_LINE = 22  # between two lines of a legend
_BAR, _SHORT_BAR, _MARK = 110, 36, 14  # widths of gradients in a legend
_LINE = 28  # between two lines of the caption
_BEND = 0.3  # height of an arc, as a share of its length; `trips.js` has the same
_RGBA = re.compile(r"rgba\((\d+),(\d+),(\d+),([\d.]+)\)")
_ON_LIGHT = {"paper": "#ffffff", "water": "#eef2f4", "land": "#dfe3e5", "line": "#70767b", "text": "#141c22", "box": "#d55e00"}
_ON_DARK = {"paper": "#101518", "water": "#1a2126", "land": "#252c31", "line": "#9aa1a6", "text": "#ebf0f4", "box": "#ff963c"}


def draw_svg(scene: Scene) -> str:
    """Draw the panes of a scene, two in a row, each with the whole domain.

    Returns:
        The text of an SVG file, 1,600 pixels wide.
    """
    colors = _ON_DARK if scene.dark else _ON_LIGHT
    columns = min(2, len(scene.panes))
    sheet = _make_sheet(scene)
    width = (WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns
    width = min(width, TALLEST * sheet.width / sheet.height)
    height = width * sheet.height / sheet.width
    parts, top = [], 80
    for place, pane in enumerate(scene.panes):
        left = MARGIN + (place % columns) * (width + GAP)
        y = top + (place // columns) * (height + _HEAD + GAP)
        parts += [
            _draw_head(pane, place, (left, y, width), colors),
            _draw_map(scene, pane, place, (left, y + _HEAD, width, height), colors, sheet),
        ]
    bottom = top + math.ceil(len(scene.panes) / columns) * (height + _HEAD + GAP)
    lines = textwrap.wrap(scene.caption, int((WIDTH - 2 * MARGIN) / (20 * _LETTER)))
    notes = [_write(MARGIN, bottom + 24 + _LINE * number, line, 20) for number, line in enumerate(lines)]
    bottom += _LINE * len(lines) + 24
    credit = ATTRIBUTION if scene.places else ""  # no streets: the file holds what this computer has
    notes.append(_write(MARGIN, bottom, "  ·  ".join(filter(None, [scene.stamp, credit])), 16))
    size = f"0 0 {WIDTH} {bottom + 24:.0f}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" width="{WIDTH}" height="{bottom + 24:.0f}" role="img"'
        f' font-family="sans-serif" fill="{colors["text"]}"><title>{html(scene.title)}</title><desc>{html(scene.description)}</desc>'
        f'<rect width="100%" height="100%" fill="{colors["paper"]}"/>{_write(MARGIN, 52, scene.title, 32, bold=True)}'
        f"{''.join(parts)}{''.join(notes)}</svg>\n"
    )


def _make_sheet(scene: Scene) -> Sheet:
    """Make the sheet of every map, in the projection of the canvas; a plain plane has no CRS, so no land is drawn on it."""
    west, south, east, north = scene.bounds
    corners = _to_mercator(np.array([[west, south], [east, north]]))
    return make_sheet("EPSG:3857" if scene.ground["land"] else None, tuple(corners.ravel().tolist()))


def _to_mercator(degrees: Floats) -> Floats:
    """Convert (..., 2) longitudes and latitudes to (..., 2) metres of the web map's projection."""
    latitude = np.clip(degrees[..., 1], -MOST_NORTH, MOST_NORTH)
    return _EARTH * np.stack([np.radians(degrees[..., 0]), np.arcsinh(np.tan(np.radians(latitude)))], axis=-1)


def _draw_head(pane: Pane, place: int, box: tuple[float, float, float], colors: dict[str, str]) -> str:
    """Draw title, legend and note over a map, in a box: left, top and width."""
    left, top, width = box
    about, end = left + _width(pane.title, 20, bold=True) + 12, left + width
    texts = [_write(left, top + 20, pane.title, 20, bold=True), _write(about, top + 20, _shorten(pane.about, end - about, 16), 16)]
    legend = _draw_legend(pane.legend, f"legend{place}", (left, top + 46, width), colors)
    return "".join([*texts, legend, _write(left, top + _HEAD - 10, _shorten(pane.note, width, 13), 13)])


def _shorten(text: str, room: float, size: int) -> str:
    """Cut a text that is wider than its room."""
    letters = int(room / (size * _LETTER))
    return text if len(text) <= letters else text[: max(letters - 1, 0)].rstrip() + "…" * (letters > 0)


@dataclass(frozen=True, kw_only=True)
class _Swatch:
    """A part of a legend that is no text: its colours, from left to right, and its size."""

    colors: tuple[str, ...]
    width: float
    height: float = 13.0


def _legend_items(legend: Legend) -> list[list[str | _Swatch]]:
    """Return what a legend consists of: items that stay in one piece, each of texts and of swatches."""
    items: list[list[str | _Swatch]] = [[legend.title]] if legend.title else []
    if legend.bar:
        items.append([legend.low, _Swatch(colors=legend.bar, width=_BAR), legend.top])
    items += [[_Swatch(colors=(color,), width=26, height=height), words] for color, height, words in legend.lines]
    items += [[_Swatch(colors=bar, width=_SHORT_BAR if len(bar) > 1 else _MARK), words] for bar, words in legend.marks]
    return items if legend.also is None else [*items, *_legend_items(legend.also)]


def _draw_legend(legend: Legend, name: str, box: tuple[float, float, float], colors: dict[str, str]) -> str:
    """Draw the gradients of a legend with their words, in as many lines as the width asks for; `box` is left, top and width."""
    left, top, room = box
    parts: list[str] = []
    at, line = left, 0
    for number, item in enumerate(_legend_items(legend)):
        needs = sum(_width(part, 14) + 8 if isinstance(part, str) else part.width + 8 for part in item)
        if at > left and at + needs > left + room:
            at, line = left, line + 1
        for place, part in enumerate(item):
            base = top + _LEGEND_LINE * line
            if isinstance(part, str):
                parts.append(_write(at, base, part, 14))
                at += _width(part, 14) + 8
            else:
                parts.append(_draw_swatch(part, f"{name}-{number}-{place}", at, base, colors))
                at += part.width + 8
    return "".join(parts)


def _draw_swatch(swatch: _Swatch, name: str, left: float, base: float, colors: dict[str, str]) -> str:
    """Draw the colours of a swatch as a gradient, its middle at the height of small letters."""
    last = max(len(swatch.colors) - 1, 1)
    stops = "".join(f'<stop offset="{number / last:.3f}" {_css_color(css, "stop")}/>' for number, css in enumerate(swatch.colors))
    return (
        f'<linearGradient id="{name}">{stops}</linearGradient><rect x="{left:.1f}" y="{base - 5 - swatch.height / 2:.1f}"'
        f' width="{swatch.width}" height="{swatch.height:.1f}" fill="url(#{name})" stroke="{colors["line"]}" stroke-width="0.5"/>'
    )


def _draw_map(scene: Scene, pane: Pane, place: int, box: tuple[float, float, float, float], colors: dict[str, str], sheet: Sheet) -> str:
    """Draw one map: land, rectangles or picture, borders, the domain's edge, the box of the range query, and names."""
    left, top, width, height = box
    bounds = scene.bounds
    land = sheet.write_land(bounds)
    pixel = sheet.width / width
    line = f'fill="none" stroke="{colors["line"]}"'
    return (
        f'<svg x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" viewBox="0 0 {sheet.width} {sheet.height}">'
        f'<rect width="{sheet.width}" height="{sheet.height}" fill="{colors["water"]}"/>'
        f'<path d="{land["land"]}" fill="{colors["land"]}" stroke="{colors["line"]}" stroke-width="{pixel:.1f}"/>'
        f"{_draw_shapes(scene, pane, place, sheet, pixel)}{_draw_masked(scene, sheet)}"
        f'<path d="{land["countries"]}{land["states"]}" {line} stroke-width="{pixel:.1f}"/>'
        + (f'<path d="{_write_box(bounds, sheet)}" {line} stroke-width="{1.5 * pixel:.1f}"/>' if scene.edge else "")
        + (
            f'<path d="{_write_box(scene.box, sheet)}" fill="none" stroke="{colors["box"]}" stroke-width="{2 * pixel:.1f}"/>'
            if scene.box
            else ""
        )
        + "".join(
            f'<path d="{_write_ring(np.array(ring), sheet)}" fill="none" stroke="{colors["box"]}" stroke-width="{2 * pixel:.1f}"/>'
            for ring in scene.outline
        )
        + f"{_draw_names(scene, sheet, pixel, colors)}</svg>"
    )


def _draw_shapes(scene: Scene, pane: Pane, place: int, sheet: Sheet, pixel: float) -> str:
    """Draw what a pane shows: a picture, regions with arcs, or rectangles."""
    if pane.picture:
        return _draw_picture(pane, scene.bounds, sheet)
    return _draw_trips(scene, pane, place, sheet, pixel) if pane.areas else _draw_cells(scene, pane, place, sheet)


def _draw_masked(scene: Scene, sheet: Sheet) -> str:
    """Draw where nobody can be."""
    fill = _svg_color(MASKED_ON_DARK if scene.dark else MASKED_ON_LIGHT, "fill")
    paths = ("".join(_write_ring(np.array(ring), sheet) for ring in rings) for rings in scene.masked)
    return "".join(f'<path d="{path}" {fill} fill-rule="evenodd"/>' for path in paths)


def _draw_trips(scene: Scene, pane: Pane, place: int, sheet: Sheet, pixel: float) -> str:
    """Draw regions as polygons, then arcs, then regions as dots."""
    under, dots = [], []
    for name, fill in zip(pane.areas, pane.fills, strict=True):
        areas, looks = scene.areas[name], [_svg_color(color, "fill") for color in fill.tolist()]
        shapes = areas.shapes.with_polygons()
        for polygon, region in zip(shapes.polygons, shapes.owner, strict=True):
            rings = polygon if isinstance(polygon[0][0], list) else [polygon]
            path = "".join(_write_ring(np.array(ring), sheet) for ring in rings)
            under.append(f'<path d="{path}" {looks[region]} fill-rule="evenodd" stroke="#808080" stroke-width="{0.6 * pixel:.1f}"/>')
        if shapes.are_dots:
            at, order = sheet.to_sheet(_to_mercator(areas.shapes.centres)).tolist(), np.argsort(-areas.radius, kind="stable").tolist()
            dots += [f'<circle cx="{at[i][0]}" cy="{at[i][1]}" r="{areas.radius[i] * pixel:.0f}" {looks[i]}/>' for i in order]
    return "".join(under) + _draw_arcs(scene, pane, place, sheet, pixel) + "".join(dots)


def _draw_arcs(scene: Scene, pane: Pane, place: int, sheet: Sheet, pixel: float) -> str:
    """Draw arcs as half ellipses to the left of their direction, with a gradient from their origin to their destination."""
    if pane.arcs is None:
        return ""
    arcs, drawn = pane.arcs, []
    from_to = [(scene.areas[pane.areas[0]], arcs.origin), (scene.areas[pane.areas[-1]], arcs.destination)]
    start, end = (sheet.to_sheet(_to_mercator(areas.shapes.centres[index])).reshape(-1, 2) for areas, index in from_to)
    rows = zip(start.tolist(), end.tolist(), arcs.start_color.tolist(), arcs.color.tolist(), arcs.width.tolist(), strict=True)
    for number, ((a, b), (c, d), first, last, width) in enumerate(rows):
        far, turn, name = math.hypot(c - a, d - b), math.degrees(math.atan2(d - b, c - a)), f"arc{place}-{number}"
        drawn.append(
            f'<linearGradient id="{name}" gradientUnits="userSpaceOnUse" x1="{a}" y1="{b}" x2="{c}" y2="{d}">'
            f'<stop {_svg_color(first, "stop")}/><stop offset="1" {_svg_color(last, "stop")}/></linearGradient>'
            f'<path d="M{a} {b}A{far / 2:.0f} {_BEND * far / 2:.0f} {turn:.1f} 0 1 {c} {d}" fill="none" stroke="url(#{name})"'
            f' stroke-width="{width * pixel:.0f}"/>'
        )
    return "".join(drawn)


def _write_ring(corners: Floats, sheet: Sheet) -> str:
    """Write (k, 2) corners in degrees as a closed path."""
    return "M" + "L".join(f"{x} {y}" for x, y in sheet.to_sheet(_to_mercator(corners)).tolist()) + "z"


def _svg_color(color: list[int], kind: str) -> str:
    """Write red, green, blue and alpha, 0 to 255, as attributes."""
    red, green, blue, alpha = color
    attribute = "stop-color" if kind == "stop" else kind
    return f'{attribute}="rgb({red},{green},{blue})" {kind}-opacity="{alpha / 255:.3f}"'


def _draw_cells(scene: Scene, pane: Pane, place: int, sheet: Sheet) -> str:
    """Draw rectangles in their order; neighbours in this order that have the same shade share one path."""
    cells = scene.cells[pane.cells]
    corners = sheet.to_sheet(_to_mercator(corner_coordinates(cells.domain, cells.rectangles)).reshape(-1, 2))
    paths = [
        f"M{a} {b}h{c - a}v{f - d}h{a - c}z" if b == d and c == e and f == h and g == a else f"M{a} {b}L{c} {d} {e} {f} {g} {h}z"
        for a, b, c, d, e, f, g, h in corners.reshape(-1, 8).tolist()
    ]
    shades = pane.shades.tolist()
    looks = "".join(
        f".p{place}s{shade}{{fill:rgb({r},{g},{b});fill-opacity:{a / 255:.3f}}}"
        for shade, (r, g, b, a) in enumerate(pane.palette.tolist())
        if shade in set(shades)
    )
    groups = groupby(range(len(paths)), shades.__getitem__)
    drawn = "".join(f'<path class="p{place}s{shade}" d="{"".join(paths[cell] for cell in group)}"/>' for shade, group in groups)
    return f'<style>{looks}</style><g shape-rendering="crispEdges">{drawn}</g>'


def _draw_picture(pane: Pane, bounds: Bounds, sheet: Sheet) -> str:
    """Draw the picture of a pane over the whole domain; it has the projection of the sheet."""
    west, south, east, north = bounds
    (left, top), (right, bottom) = sheet.to_sheet(_to_mercator(np.array([[west, north], [east, south]]))).tolist()
    code = base64.b64encode(pane.picture).decode()
    return (
        f'<image x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" preserveAspectRatio="none" image-rendering="pixelated"'
        f' href="data:image/png;base64,{code}"/>'
    )


def _write_box(box: Bounds, sheet: Sheet) -> str:
    """Write a box in degrees as the path of a rectangle."""
    west, south, east, north = box
    (left, top), (right, bottom) = sheet.to_sheet(_to_mercator(np.array([[west, north], [east, south]]))).tolist()
    return f"M{left} {top}h{right - left}v{bottom - top}h{left - right}z"


def _draw_names(scene: Scene, sheet: Sheet, pixel: float, colors: dict[str, str]) -> str:
    """Draw the names that the canvas shows when it is as large as the map here, but for those that the edge would cut."""
    metres_per_pixel = pixel / sheet.scale
    zoom = math.log2(2 * math.pi * _EARTH / (TILE * metres_per_pixel))
    shown = [(name, longitude, latitude) for name, longitude, latitude, begin in scene.places if begin <= zoom]
    if not shown:
        return ""
    at = sheet.to_sheet(_to_mercator(np.array([[longitude, latitude] for _, longitude, latitude in shown])))
    halo = f'stroke="{colors["paper"]}" stroke-opacity="0.7" stroke-width="{3 * pixel:.0f}" paint-order="stroke"'
    texts = [
        f'<text x="{x}" y="{y}">{html(name)}</text>'
        for (name, _, _), (x, y) in zip(shown, at.tolist(), strict=True)
        if _width(name, 12) * pixel / 2 <= min(x, sheet.width - x) and 12 * pixel <= y <= sheet.height
    ]
    return f'<g font-size="{12 * pixel:.0f}" text-anchor="middle" {halo}>{"".join(texts)}</g>'


def _write(x: float, y: float, text: str, size: int, *, bold: bool = False) -> str:
    """Write one line of text; "" if there is none."""
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{weight}>{html(text)}</text>' if text else ""


def _width(text: str, size: int, *, bold: bool = False) -> float:
    """Estimate the width of a text."""
    return len(text) * size * _LETTER * (1.08 if bold else 1.0)


def _css_color(css: str, kind: str) -> str:
    """Write a colour "rgba(r,g,b,a)" as attributes that every program that reads SVG knows.

    >>> _css_color("rgba(255,0,0,0.20)", "stop")
    'stop-color="rgb(255,0,0)" stop-opacity="0.20"'
    """
    found = _RGBA.fullmatch(css)
    if found is None:
        raise ValueError(css)
    red, green, blue, alpha = found.groups()
    attribute = "stop-color" if kind == "stop" else kind
    return f'{attribute}="rgb({red},{green},{blue})" {kind}-opacity="{alpha}"'
