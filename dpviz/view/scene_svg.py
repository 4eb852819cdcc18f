"""The maps of a canvas as SVG, for print and for pages that run no script: the same shapes and colours, with titles and legends.

The canvas itself is drawn by WebGL, of which there is no SVG. So the maps are drawn again, on sheets.
"""

from __future__ import annotations

import base64
import math
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

import geopandas
import numpy as np
import shapely

from dpviz.amounts import format_count
from dpviz.view.basemap import WGS84, Bounds, RegionShapes
from dpviz.view.canvas import MASKED_ON_DARK, MASKED_ON_LIGHT, Cells, Legend, Pane, Scene, to_css
from dpviz.view.colors import Colors
from dpviz.view.escape import html
from dpviz.view.places import ATTRIBUTION, TILE
from dpviz.view.sheet import MERCATOR, Sheet, make_sheet, write_corners

WIDTH, MARGIN, GAP = 1600, 40, 16  # pixels, as all lengths here unless said otherwise
TALLEST = 1000  # a map
_EARTH = 6_378_137.0  # metres
_LETTER = 0.58  # estimated width of a letter, as a share of the font size
_HEAD = 102  # over a map: its title, two lines of a legend and a note
LEGEND_LINE = 22  # between two lines of a legend
_BAR, _SHORT_BAR, _MARK = 110, 36, 14  # widths of gradients in a legend
_LINE = 28  # between two lines of the caption
_BEND = 0.3  # height of an arc, as a share of its length; `trips.js` has the same
_DASH, _DASH_GAP = 7, 5  # of dashed arcs
_RGBA = re.compile(r"rgba\((\d+,\d+,\d+),([\d.]+)\)")
_NUMBER = re.compile(r"\{(\w+)(?::([^}]*))?\}")
_ON_LIGHT = {"paper": "#ffffff", "land": "#eceff1", "line": "#8b949b", "edge": "#56616a", "text": "#141c22", "box": "#d55e00"}
_ON_DARK = {"paper": "#101518", "land": "#20272c", "line": "#76818a", "edge": "#a3adb5", "text": "#ebf0f4", "box": "#ff963c"}


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Colours as CSS classes, each for light and for dark pages.

    Attributes:
        names: of the classes, by their rules on light and on dark pages.
    """

    names: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, kind: str, light: str, dark: str) -> str:
        """Return the class of a colour: of a "fill", a "stroke" or a "stop"; the colours are "#rrggbb" or "rgba(r,g,b,a)"."""
        return self.names.setdefault((_write_rule(kind, light), _write_rule(kind, dark)), f"c{len(self.names)}")

    def write(self, *, dark: bool) -> str:
        """Write the style sheet."""
        return "".join(f".{name}{{{rules[dark]}}}" for rules, name in self.names.items())


def _write_rule(kind: str, css: str) -> str:
    """Write a colour as declarations that every program that reads SVG knows.

    >>> _write_rule("stop", "rgba(255,0,0,0.20)")
    'stop-color:rgb(255,0,0);stop-opacity:0.20'
    """
    name, found = "stop-color" if kind == "stop" else kind, _RGBA.fullmatch(css)
    return f"{name}:{css}" if found is None else f"{name}:rgb({found[1]});{kind}-opacity:{found[2]}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Pen:
    """Draws one pane of a scene.

    Attributes:
        scenes: the scene on light and on dark pages; the same one twice for one that stays as it is.
        sheet: of the map.
        pixel: sheet units per pixel.
        looks: where the colours are collected.
        place: of the pane in the scene.
        key: begins the names in the drawing, which a page must not have twice.
        titles: whether shapes have their texts.
    """

    scenes: tuple[Scene, Scene]
    sheet: Sheet
    pixel: float
    looks: Looks
    place: int = 0
    key: str = ""
    titles: bool = False

    @property
    def scene(self) -> Scene:
        """The scene, for all but colours."""
        return self.scenes[0]

    @property
    def panes(self) -> tuple[Pane, Pane]:
        """The pane on light and on dark pages."""
        return self.scenes[0].panes[self.place], self.scenes[1].panes[self.place]

    def paint(self, kind: str, name: str) -> str:
        """Return the class of a colour of the ground."""
        light, dark = ((_ON_DARK if scene.dark else _ON_LIGHT)[name] for scene in self.scenes)
        return self.looks.add(kind, light, dark)

    def paint_all(self, kind: str, colors: Iterable[Colors]) -> list[str]:
        """Return the classes of (k, 4) colours on light pages, and as many on dark ones."""
        return [self.looks.add(kind, light, dark) for light, dark in zip(*map(to_css, colors), strict=True)]

    def line(self, path: str, name: str, pixels: float) -> str:
        """Draw a line in a colour of the ground; "" for none."""
        width = f"{pixels * self.pixel:.1f}"
        return f'<path class="{self.paint("stroke", name)}" fill="none" stroke-width="{width}" d="{path}"/>' if path else ""

    def title(self, text: str) -> str:
        """Write the text of a shape."""
        return f"<title>{html(text)}</title>" if self.titles else ""


def draw_svg(scene: Scene) -> str:
    """Draw the panes of a scene, two in a row, each with the whole domain.

    Returns:
        The text of an SVG file, 1,600 pixels wide.
    """
    colors, looks = _ON_DARK if scene.dark else _ON_LIGHT, Looks()
    columns = min(2, len(scene.panes))
    corners = Sheet.project(np.array(scene.bounds).reshape(2, 2), MERCATOR)
    sheet = make_sheet(MERCATOR, tuple(corners.ravel().tolist()))
    width = (WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns
    width = min(width, TALLEST * sheet.width / sheet.height)
    height = width * sheet.height / sheet.width
    parts, top = [], 80
    for place, pane in enumerate(scene.panes):
        left = MARGIN + (place % columns) * (width + GAP)
        y = top + (place // columns) * (height + _HEAD + GAP)
        pen = Pen(scenes=(scene, scene), sheet=sheet, pixel=sheet.width / width, looks=looks, place=place, key=f"{place}-")
        box = f'x="{left:.1f}" y="{y + _HEAD:.1f}" width="{width:.1f}" height="{height:.1f}" viewBox="0 0 {sheet.width} {sheet.height}"'
        parts += [_draw_head(pen, pane, (left, y, width)), f"<svg {box}>{draw_map(pen)}</svg>"]
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
        f"<style>{looks.write(dark=scene.dark)}</style>"
        f'<rect width="100%" height="100%" fill="{colors["paper"]}"/>{_write(MARGIN, 52, scene.title, 32, bold=True)}'
        f"{''.join(parts)}{''.join(notes)}</svg>\n"
    )


def _draw_head(pen: Pen, pane: Pane, box: tuple[float, float, float]) -> str:
    """Draw title, legend and note over a map, in a box: left, top and width."""
    left, top, width = box
    about, end = left + _width(pane.title, 20, bold=True) + 12, left + width
    texts = [_write(left, top + 20, pane.title, 20, bold=True), _write(about, top + 20, _shorten(pane.about, end - about, 16), 16)]
    legend, _ = draw_legend(pen, (left, top + 46, width))
    return "".join([*texts, legend, _write(left, top + _HEAD - 10, _shorten(pane.note, width, 13), 13)])


def _shorten(text: str, room: float, size: int) -> str:
    """Cut a text that is wider than its room."""
    letters = int(room / (size * _LETTER))
    return text if len(text) <= letters else text[: max(letters - 1, 0)].rstrip() + "…" * (letters > 0)


@dataclass(frozen=True, kw_only=True)
class _Swatch:
    """A part of a legend that is no text: its colours, from left to right, its size and its shape."""

    colors: tuple[str, ...]
    width: float
    height: float = 13.0
    dashed: bool = False
    round: bool = False


def _legend_items(legend: Legend) -> list[list[str | _Swatch]]:
    """Return what a legend consists of: items that stay in one piece, each of texts and of swatches."""
    items: list[list[str | _Swatch]] = [[legend.title]] if legend.title else []
    if legend.bar:
        items.append([legend.low, _Swatch(colors=legend.bar, width=_BAR), legend.top])
    items += [[_Swatch(colors=(color,), width=26, height=height), words] for color, height, words in legend.lines]
    items += [[_Swatch(colors=(color,), width=31, height=height, dashed=True), words] for color, height, words in legend.dashed]
    items += [[_Swatch(colors=(color,), width=2 * radius, height=2 * radius, round=True), words] for color, radius, words in legend.dots]
    items += [[_Swatch(colors=bar, width=_SHORT_BAR if len(bar) > 1 else _MARK), words] for bar, words in legend.marks]
    return items


def draw_legend(pen: Pen, box: tuple[float, float, float]) -> tuple[str, int]:
    """Draw the gradients of a legend with their words; `box` is left, top and width.

    Returns:
        The drawing, and the number of lines that it has in this width.
    """
    left, top, room = box
    parts: list[str] = []
    at, line = left, 0
    for number, items in enumerate(zip(*(_legend_items(pane.legend) for pane in pen.panes), strict=True)):
        needs = sum(_width(part, 14) + 8 if isinstance(part, str) else part.width + 8 for part in items[0])
        if at > left and at + needs > left + room:
            at, line = left, line + 1
        for place, (part, other) in enumerate(zip(*items, strict=True)):
            base = top + LEGEND_LINE * line
            if isinstance(part, str) or isinstance(other, str):
                parts.append(_write(at, base, str(part), 14))
                at += _width(str(part), 14) + 8
            else:
                parts.append(_draw_swatch(pen, (part, other), f"{pen.key}legend-{number}-{place}", at, base))
                at += part.width + 8
    return "".join(parts), line + 1


def _draw_swatch(pen: Pen, swatches: tuple[_Swatch, _Swatch], name: str, left: float, base: float) -> str:
    """Draw the colours of a swatch, its middle at the height of small letters: a dot, a dashed line or a gradient."""
    swatch, other = swatches
    if swatch.round:
        radius, look = swatch.width / 2, pen.looks.add("fill", swatch.colors[0], other.colors[0])
        return f'<circle cx="{left + radius:.1f}" cy="{base - 5}" r="{radius:.1f}" class="{look}"/>'
    if swatch.dashed:
        look = pen.looks.add("stroke", swatch.colors[0], other.colors[0])
        path = f'd="M{left:.1f} {base - 5}h{swatch.width}" stroke-width="{swatch.height:.1f}"'
        return f'<path {path} stroke-dasharray="{_DASH} {_DASH_GAP}" class="{look}"/>'
    last = max(len(swatch.colors) - 1, 1)
    looks = [pen.looks.add("stop", *pair) for pair in zip(swatch.colors, other.colors, strict=True)]
    rim = pen.paint("stroke", "line")
    stops = "".join(f'<stop offset="{number / last:.3f}" class="{look}"/>' for number, look in enumerate(looks))
    return (
        f'<linearGradient id="{name}">{stops}</linearGradient><rect x="{left:.1f}" y="{base - 5 - swatch.height / 2:.1f}"'
        f' width="{swatch.width}" height="{swatch.height:.1f}" fill="url(#{name})" class="{rim}" stroke-width="0.5"/>'
    )


def draw_map(pen: Pen) -> str:
    """Draw one map: land, rectangles or picture, coasts and borders, the domain's edge, the box of the range query, and names."""
    scene, sheet = pen.scene, pen.sheet
    land = sheet.write_land(scene.bounds) if scene.ground["land"] else dict.fromkeys(("land", "countries", "states"), "")
    return (
        (f'<path d="{land["land"]}" class="{pen.paint("fill", "land")}"/>' if land["land"] else "")
        + f"{_draw_shapes(pen)}{_draw_masked(pen)}"
        + pen.line(land["land"] + land["countries"] + land["states"], "line", 1)
        + (pen.line(_write_edge(scene, sheet), "edge", 1.5) if scene.edge else "")
        + (pen.line(_write_box(scene.box, sheet), "box", 2) if scene.box else "")
        + "".join(pen.line(_write_ring(ring, sheet), "box", 2) for ring in scene.outline)
        + _draw_names(pen)
    )


def _draw_shapes(pen: Pen) -> str:
    """Draw what a pane shows: a picture, regions with arcs, or rectangles."""
    pane = pen.panes[0]
    if pane.picture:
        return _draw_picture(pane, pen.scene.bounds, pen.sheet)
    return _draw_trips(pen, pane) if pane.areas else _draw_cells(pen, pen.scene.cells[pane.cells])


def _draw_masked(pen: Pen) -> str:
    """Draw where nobody can be."""
    (look,) = pen.paint_all("fill", [np.array([MASKED_ON_DARK if scene.dark else MASKED_ON_LIGHT]) for scene in pen.scenes])
    paths = ("".join(_write_ring(ring, pen.sheet) for ring in rings) for rings in pen.scene.masked)
    return "".join(f'<path d="{path}" class="{look}" fill-rule="evenodd"/>' for path in paths)


def _draw_trips(pen: Pen, pane: Pane) -> str:
    """Draw regions as polygons, which have no colour where they have dots, then the dots, then arcs."""
    under, dots, sheet = [], [], pen.sheet
    for side, name in enumerate(pane.areas):
        areas, looks = pen.scene.areas[name], pen.paint_all("fill", [each.fills[side] for each in pen.panes])
        shapes, titles = areas.shapes.with_polygons(), [pen.title(text) for text in (pane.texts or areas.texts)]
        radii = pane.dots[side] if pane.dots else np.zeros(0)
        filled = [f'class="{look}"' for look in looks] if not len(radii) else ['fill-opacity="0"'] * len(looks)
        under += [
            f'<path d="{path}" {look}>{title}</path>'
            for path, look, title in zip(_write_regions(shapes, sheet), filled, titles, strict=True)
            if path
        ]
        at, order = sheet.place(shapes.centres).tolist(), np.argsort(-radii, kind="stable").tolist()
        dots += [
            f'<circle cx="{at[i][0]}" cy="{at[i][1]}" r="{radii[i] * pen.pixel:.0f}" class="{looks[i]}">{titles[i]}</circle>' for i in order
        ]
    rim = f'stroke="#808080" stroke-width="{0.6 * pen.pixel:.1f}"'
    shapes_of_regions = f'<g class="shapes" fill-rule="evenodd" {rim}>{"".join(under)}</g><g class="shapes" {rim}>{"".join(dots)}</g>'
    return f'{shapes_of_regions}<g class="shapes">{_draw_arcs(pen, pane)}</g>'


def _write_regions(shapes: RegionShapes, sheet: Sheet) -> list[str]:
    """Write the polygons of each region as one path; "" for a region that has none or lies outside."""
    polygons = [polygon if isinstance(polygon[0][0], list) else [polygon] for polygon in shapes.polygons]
    series = geopandas.GeoSeries([shapely.Polygon(rings[0], rings[1:]) for rings in polygons], crs=WGS84)
    paths = [""] * len(shapes.centres)
    for region, path in zip(shapes.owner, sheet.write_paths(series.to_crs(sheet.crs)), strict=True):
        paths[region] += path
    return paths


def _draw_arcs(pen: Pen, pane: Pane) -> str:
    """Draw arcs as half ellipses to the left of their direction, with a gradient from their origin to their destination."""
    if pane.arcs is None:
        return ""
    arcs, drawn, both = pane.arcs, [], [each.arcs for each in pen.panes if each.arcs is not None]
    centres = [pen.scene.areas[name].shapes.centres for name in pane.areas]
    start, end = (pen.sheet.place(at).reshape(-1, 2) for at in (centres[0][arcs.origin], centres[-1][arcs.destination]))
    looks = pen.paint_all("stop", [each.start_color for each in both]), pen.paint_all("stop", [each.color for each in both])
    dashes = f' stroke-dasharray="{_DASH * pen.pixel:.0f} {_DASH_GAP * pen.pixel:.0f}"'
    rows = zip(start.tolist(), end.tolist(), *looks, arcs.width.tolist(), arcs.dashed.tolist(), arcs.texts.lines(), strict=True)
    for number, ((a, b), (c, d), first, last, width, dashed, text) in enumerate(rows):
        far, turn, name = math.hypot(c - a, d - b), math.degrees(math.atan2(d - b, c - a)), f"{pen.key}arc{number}"
        drawn.append(
            f'<linearGradient id="{name}" gradientUnits="userSpaceOnUse" x1="{a}" y1="{b}" x2="{c}" y2="{d}">'
            f'<stop class="{first}"/><stop offset="1" class="{last}"/></linearGradient>'
            f'<path class="arc" d="M{a} {b}A{far / 2:.0f} {_BEND * far / 2:.0f} {turn:.1f} 0 1 {c} {d}" fill="none" stroke="url(#{name})"'
            f' stroke-width="{width * pen.pixel:.0f}"{dashes if dashed else ""}>{pen.title(text)}</path>'
        )
    return "".join(drawn)


def _write_ring(corners: list[list[float]], sheet: Sheet) -> str:
    """Write (k, 2) corners in degrees as a closed path."""
    return "M" + "L".join(f"{x} {y}" for x, y in sheet.place(np.array(corners)).tolist()) + "z"


def _draw_cells(pen: Pen, cells: Cells) -> str:
    """Draw rectangles in their order; without texts, neighbours in this order that have the same shade share one path."""
    paths, shades = write_corners(pen.sheet.place_rectangles(cells.domain, cells.rectangles)), pen.panes[0].shades.tolist()
    used = sorted(set(shades))
    looks = dict(zip(used, pen.paint_all("fill", [pane.palette[used] for pane in pen.panes]), strict=True))
    if pen.titles:
        texts = _write_words(pen.panes[0].words, cells)
        rows = zip(paths, shades, texts, strict=True)
        drawn = "".join(f'<path class="{looks[shade]}" d="{path}">{pen.title(text)}</path>' for path, shade, text in rows)
    else:
        groups = groupby(range(len(paths)), shades.__getitem__)
        drawn = "".join(f'<path class="{looks[shade]}" d="{"".join(paths[cell] for cell in group)}"/>' for shade, group in groups)
    return f'<g class="shapes" shape-rendering="crispEdges">{drawn}</g>'


def _write_words(words: str, cells: Cells) -> list[str]:
    """Write the words of a pane for each rectangle, as the canvas does on hovering."""
    names, numbers = list(cells.numbers), zip(*(column.tolist() for column in cells.numbers.values()), strict=True)
    rows = [dict(zip(names, row, strict=True)) for row in numbers] or [{}] * len(cells.rectangles)
    return [_NUMBER.sub(lambda found: found[2] * bool(row[found[1]]) if found[2] else format_count(row[found[1]]), words) for row in rows]  # noqa: B023


def _draw_picture(pane: Pane, bounds: Bounds, sheet: Sheet) -> str:
    """Draw the picture of a pane over the whole domain; it has the projection of the sheet."""
    (left, bottom), (right, top) = sheet.place(np.array(bounds).reshape(2, 2)).tolist()
    code = base64.b64encode(pane.picture).decode()
    return (
        f'<image x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" preserveAspectRatio="none" image-rendering="pixelated"'
        f' href="data:image/png;base64,{code}"/>'
    )


def _write_edge(scene: Scene, sheet: Sheet) -> str:
    """Write the edge of the domain; on the web map, that of its bounds."""
    if sheet.crs == MERCATOR:
        return _write_box(scene.bounds, sheet)
    domain = next(iter(scene.cells.values())).domain
    return write_corners(sheet.place_rectangles(domain, np.array([[0, 0, domain.side, domain.side]])))[0]


def _write_box(box: Bounds, sheet: Sheet) -> str:
    """Write a box in degrees as the path of a rectangle."""
    west, south, east, north = box
    return write_corners(sheet.place(np.array([[west, south], [east, south], [east, north], [west, north]])))[0]


def _draw_names(pen: Pen) -> str:
    """Draw the names that the canvas shows when it is as large as the map here, but for those that the edge would cut."""
    sheet, pixel = pen.sheet, pen.pixel
    zoom = math.log2(2 * math.pi * _EARTH / (TILE * pixel / sheet.scale))
    shown = [(name, longitude, latitude) for name, longitude, latitude, begin in pen.scene.places if begin <= zoom]
    if not shown:
        return ""
    at = sheet.place(np.array([[longitude, latitude] for _, longitude, latitude in shown]))
    halo = f'class="{pen.paint("stroke", "paper")}" stroke-opacity="0.7" stroke-width="{3 * pixel:.0f}" paint-order="stroke"'
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
