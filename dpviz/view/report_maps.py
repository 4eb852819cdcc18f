"""The maps of a report as SVG: partitions coloured by density, or arcs of the largest pairs, on equal-area projections."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import geopandas
import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer

from dpviz.amounts import format_count, format_short
from dpviz.arrays import Floats, Integers
from dpviz.errors import DomainError
from dpviz.release.nouns import counted_noun
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import NOISE, verdict
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from dpviz.view.basemap import OUTLINES, WGS84, Bounds, find_map_bounds, fit_bounds, outlines_around
from dpviz.view.colors import Scale, scale_top_of
from dpviz.view.partition_looks import MASKED, OVERLAP, density_scale, large_first, mark_outside, open_areas

Shapes = NDArray[np.object_]
WIDTH = 9000
"""Width of an SVG in its own units, about ten per pixel, so that whole-numbered coordinates are fine enough."""
_TALLEST = 8000  # sheet units, as all lengths here unless said otherwise
_MARGIN, _LAND_MARGIN = 0.03, 0.15  # around the shown area, and around it for land; shares of its extent
_DETAIL = 6.0  # details of shapes that are smaller are left out
_CLIP_MARGIN = 60  # around the sheet, so that the edges of cut shapes are not seen
_FINEST_LAND = 3000  # details of land that are smaller than the extent divided by this are left out
_WIDEST_DEGREES = 110.0  # an area that is wider or higher is drawn by the Equal Earth projection
_STEPS = np.linspace(0.0, 1.0, 33)  # positions along each side of an area, to find its bounds once it is projected

MOST_SHAPES = 5_000  # partitions on a map
COARSE_LEVEL = 2  # levels up to it may be drawn although they are mostly noise
_ABOVE, _BELOW = 24, 8  # number of CSS classes for values above and below zero
ABOVE_CLASSES = [f"p{step}" for step in range(_ABOVE + 1)]
BELOW_CLASSES = [f"n{step}" for step in range(1, _BELOW + 1)]
_OPACITY_IF_OVERLAPPING = 0.7  # of partitions that lie over each other

MOST_REGIONS, MOST_ARCS = 5_000, 200  # on each side of a map of trips; arcs on it
_THINNEST, _THICKEST = 9.0, 70.0
_SHORTEST = 0.015 * WIDTH  # a shorter arc is not seen
BEND = 0.22  # of the length of an arc
_SAMPLES = (0.05, 0.3, 1.0)  # arcs of the legend, as shares of the top of the scale


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The SVG sheet of a map: converts coordinates of a projected plane to whole sheet units, counted from the north-west corner.

    Attributes:
        crs: the plane's CRS; None for a plain plane, on which no land is drawn.
        west: western edge of the sheet, in units of the plane.
        north: northern edge of the sheet, in units of the plane.
        scale: sheet units per unit of the plane.
        width: of the sheet, in sheet units.
        height: of the sheet, in sheet units.
    """

    crs: str | None
    west: float
    north: float
    scale: float
    width: int
    height: int

    def to_sheet(self, xy: Floats) -> Integers:
        """Convert (k, 2) coordinates of the plane to (k, 2) columns and rows of the sheet."""
        return np.rint(self._to_unrounded(xy)).astype(np.int64)

    def _to_unrounded(self, xy: Floats) -> Floats:
        """Convert (k, 2) coordinates of the plane to (k, 2) columns and rows, not rounded."""
        return np.column_stack([(xy[:, 0] - self.west) * self.scale, (self.north - xy[:, 1]) * self.scale])

    def place(self, points: Floats) -> Integers:
        """Convert (k, 2) longitudes and latitudes to (k, 2) columns and rows of the sheet."""
        projected = geopandas.GeoSeries(shapely.points(points), crs=WGS84).to_crs(self.crs)
        return self.to_sheet(shapely.get_coordinates(projected.to_numpy()))

    def write_paths(self, shapes: geopandas.GeoSeries) -> list[str]:
        """Write shapes in the sheet's CRS as SVG paths, cut to the sheet and simplified; "" for a shape that lies outside."""
        geometries = np.asarray(shapes.to_numpy(), object)
        on_sheet = shapely.transform(shapely.force_2d(geometries), self._to_unrounded)
        edge = (-_CLIP_MARGIN, -_CLIP_MARGIN, self.width + _CLIP_MARGIN, self.height + _CLIP_MARGIN)
        lines, owner = _collect_lines(shapely.clip_by_rect(on_sheet, *edge))
        paths = [""] * len(geometries)
        for text, index in zip(_write_paths(shapely.simplify(lines, _DETAIL)), owner.tolist(), strict=True):
            paths[index] += text
        return paths

    def write_land(self, bounds: Bounds) -> dict[str, str]:
        """Write the outlines "land", "countries" and "states" around bounds in degrees as SVG paths; "" on a plain plane."""
        if self.crs is None:
            return dict.fromkeys(OUTLINES, "")
        extent = max(bounds[2] - bounds[0], bounds[3] - bounds[1])
        return {name: self._write_outline(name, bounds, extent) for name in OUTLINES}

    def _write_outline(self, name: str, bounds: Bounds, extent: float) -> str:
        parts = outlines_around(name, bounds, _LAND_MARGIN * extent, extent / _FINEST_LAND)
        projected = geopandas.GeoSeries(parts, crs=WGS84).to_crs(self.crs)
        finite = np.isfinite(projected.bounds.to_numpy()).all(axis=1)
        return "".join(self.write_paths(projected[finite]))


@dataclass(frozen=True, kw_only=True)
class Swatch:
    """One CSS class of the map: its colour on light and on dark pages.

    Attributes:
        name: name of the class.
        light: colour on a light page, as CSS.
        dark: colour on a dark page, as CSS.
        opacity: 0 to 1, on both pages.
    """

    name: str
    light: str
    dark: str
    opacity: str


@dataclass(frozen=True, kw_only=True)
class DensityPicture:
    """Values for the template of a map coloured by density: of partitions, or of regions.

    Attributes:
        sheet: of the map.
        land: paths of land and borders by name.
        frame: path of the domain's edge; "" for regions.
        shapes: CSS class, path and text of each partition or region, in drawing order.
        swatches: all CSS classes.
        above: classes from 0 to the top of the scale, weakest first.
        below: classes for values below zero, weakest first; empty if no value is below zero.
        title: what the colours show, with unit.
        ticks: texts at 0, at a quarter of the top (the middle of the legend, as colours follow the square root) and at the top.
        level: the drawn level, 0 for the whole.
        note: how to read the map; None if nothing needs to be said.
    """

    sheet: Sheet
    land: dict[str, str]
    frame: str
    shapes: list[tuple[str, str, str]]
    swatches: list[Swatch]
    above: list[str]
    below: list[str]
    title: str
    ticks: tuple[str, str, str]
    level: int
    note: str | None


@dataclass(frozen=True, kw_only=True)
class PairRows:
    """Released pairs of one level, most trips first.

    Attributes:
        level: 1 for the coarsest.
        origin: (k,) indices of origin regions.
        destination: (k,) indices of destination regions.
        count: (k,) trips, above 0.
        stddev: (k,) standard deviations of the noise.
        low: (k,) lower ends of 95 % intervals that hold for all pairs at once, since the shown pairs are chosen by size.
        high: (k,) upper ends.
    """

    level: int
    origin: Integers
    destination: Integers
    count: Integers
    stddev: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class Arc:
    """The arc of one pair.

    Attributes:
        path: as SVG.
        ends: column and row of the origin, column and row of the destination: the ends of the colour gradient.
        width: in sheet units.
        strength: opacity, 0 to 1.
        text: shown on hovering.
    """

    path: str
    ends: tuple[int, int, int, int]
    width: int
    strength: str
    text: str


@dataclass(frozen=True, kw_only=True)
class TripsPicture:
    """Values for the template of a map of trips.

    Attributes:
        sheet: of the map.
        land: paths of land and borders by name.
        regions: path and name of each region that has an outline.
        dots: column, row and name of each region without an outline.
        arcs: the arcs of the largest pairs, the largest last.
        samples: for each arc of the legend, its number of trips and its width.
        level: the drawn level.
        drawable: how many pairs of different regions were released with trips.
        outside: whether pairs were left out because an end lies outside the sheet.
    """

    sheet: Sheet
    land: dict[str, str]
    regions: list[tuple[str, str]]
    dots: list[tuple[int, int, str]]
    arcs: list[Arc]
    samples: list[tuple[str, int]]
    level: int
    drawable: int
    outside: bool


def make_domain_sheet(domain: Domain) -> Sheet:
    """Make the sheet for a map of partitions, in a projection in which partitions stay rectangles.

    Degrees are projected by a cylindrical equal-area projection whose standard parallel is the middle of the domain. Other coordinates
    are used as they are.
    """
    crs = _choose_plane(domain) if domain.crs is None or not CRS(domain.crs).is_engineering else None
    return make_sheet(crs, tuple(project_rectangles(domain, np.array([[0, 0, domain.side, domain.side]]))[0].tolist()))


def project_rectangles(domain: Domain, rectangles: NDArray[np.integer]) -> Floats:
    """Convert (k, 4) lattice rectangles to west, south, east, north on the plane of `make_domain_sheet`."""
    west, south, east, north = domain.coordinates(rectangles).T
    if domain.is_geographic:
        to_plane = Transformer.from_crs(domain.crs, _choose_plane(domain), always_xy=True)
        west, south = to_plane.transform(west, south)
        east, north = to_plane.transform(east, north)
    return np.column_stack([west, south, east, north])


def _choose_plane(domain: Domain) -> str | None:
    """Choose the CRS of the sheet of a domain; None for a plain plane."""
    if not domain.is_geographic:
        return domain.crs
    west, south, east, north = domain.bounds
    return f"+proj=cea +lat_ts={(south + north) / 2:.4f} +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"


def make_regions_sheet(bounds: Bounds) -> Sheet:
    """Make the sheet for regions within bounds in degrees: Lambert azimuthal equal-area, or Equal Earth beyond 110 degrees."""
    west, south, east, north = bounds
    crs = f"+proj=laea +lat_0={(south + north) / 2:.4f} +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"
    if max(east - west, north - south) > _WIDEST_DEGREES:
        crs = f"+proj=eqearth +lon_0={(west + east) / 2:.4f} +ellps=WGS84 +units=m"
    across, up = west + (east - west) * _STEPS, south + (north - south) * _STEPS
    edge = np.concatenate([np.column_stack([across, 0 * across + y]) for y in (south, north)])
    sides = np.concatenate([np.column_stack([0 * up + x, up]) for x in (west, east)])
    points = geopandas.GeoSeries(shapely.points(np.concatenate([edge, sides])), crs=WGS84).to_crs(crs)
    return make_sheet(crs, tuple(points.total_bounds.tolist()))


def make_sheet(crs: str | None, bounds: tuple[float, ...]) -> Sheet:
    """Make the sheet that shows given bounds (west, south, east, north) of a plane, with a small margin."""
    west, south, east, north = map(float, bounds)
    margin = _MARGIN * max(east - west, north - south)
    across, up = east - west + 2 * margin, north - south + 2 * margin
    scale = min(WIDTH / across, _TALLEST / up)
    return Sheet(
        crs=crs,
        west=west - margin,
        north=north + margin,
        scale=scale,
        width=max(1, math.ceil(across * scale)),
        height=max(1, math.ceil(up * scale)),
    )


def _collect_lines(shapes: Shapes) -> tuple[Shapes, Integers]:
    """Collect all lines of shapes, the rings of their polygons included.

    Returns:
        (k,) rings and lines, in the order of the shapes, and (k,) the index of the shape of each.
    """
    parts, owner = shapely.get_parts(np.array(shapes), return_index=True)  # before 2.2 shapely takes no array that is read-only
    areas = np.isin(shapely.get_type_id(parts), (3, 6))
    polygons, part_of_area = shapely.get_parts(parts[areas], return_index=True)
    rings, ring_of = shapely.get_rings(polygons, return_index=True)
    lines = np.isin(shapely.get_type_id(parts), (1, 2, 5))
    all_lines = np.concatenate([rings, parts[lines]])
    owner_of_line = np.concatenate([owner[areas][part_of_area][ring_of], owner[lines]])
    order = np.argsort(owner_of_line, kind="stable")
    return all_lines[order], owner_of_line[order]


def _write_paths(lines: Shapes) -> list[str]:
    """Write SVG paths with relative steps. Corners are rounded before steps are taken, so that rounding errors do not add up."""
    corners = np.rint(shapely.get_coordinates(lines)).astype(np.int64)
    ends = np.r_[0, np.cumsum(shapely.get_num_coordinates(lines))]
    closed = shapely.is_closed(lines).tolist()
    return [_write_path(corners[start:stop], ring) for (start, stop), ring in zip(pairwise(ends.tolist()), closed, strict=True)]


def _write_path(corners: Integers, ring: bool) -> str:
    """Write the SVG path of one line or ring with (k, 2) corners; "" if all its corners are the same after rounding."""
    steps = np.diff(corners, axis=0)
    steps = steps[(steps != 0).any(axis=1)]
    fewest = 2 if ring else 1
    if len(steps) < fewest:
        return ""
    start = corners[0].tolist()
    moves = " ".join(map(str, (steps[:-1] if ring else steps).ravel().tolist()))
    return f"M{start[0]} {start[1]}l{moves.replace(' -', '-')}{'z' if ring else ''}"


def choose_level(release: PointRelease) -> int:
    """Choose the level of the map: the finest one with at most 5,000 partitions that is not mostly noise or is at most level 2."""
    drawable = [level for level in range(release.height + 1) if len(release.nodes(level)) <= MOST_SHAPES]
    usable = {level_verdict.level for level_verdict in verdict(release).levels if level_verdict.grade != NOISE}
    return max(level for level in drawable if level in usable or level <= COARSE_LEVEL)


def draw_points(release: PointRelease) -> DensityPicture:
    """Draw the level that `choose_level` chooses."""
    level = choose_level(release)
    nodes = large_first(release, release.open_nodes(level))
    rectangles = release.tree.rectangles(nodes)
    sheet = make_domain_sheet(release.domain)
    area = open_areas(release.domain, rectangles)
    density = np.divide(release.count[nodes], area, out=np.zeros(len(nodes)), where=area > 0)
    scale = density_scale(density, np.nan_to_num(area), release.domain, counted_noun(release))
    looks = choose_css_classes(density, scale.top)
    paths = write_rectangles(release.domain, sheet, rectangles)
    return DensityPicture(
        sheet=sheet,
        land=draw_land(release.domain, sheet),
        frame=write_rectangles(release.domain, sheet, np.array([[0, 0, release.domain.side, release.domain.side]]))[0],
        shapes=list(zip(looks, paths, _write_partition_texts(release, nodes), strict=True)),
        swatches=list_swatches(scale, overlaps=release.tree.overlaps),
        above=ABOVE_CLASSES,
        below=BELOW_CLASSES if (density < 0).any() else [],
        title=scale.title,
        ticks=("0", format_short(scale.top / 4), f"{format_short(scale.top)} and more"),
        level=level,
        note=" ".join([OVERLAP] * release.tree.overlaps + [MASKED] * (release.domain.mask is not None)) or None,
    )


def draw_land(domain: Domain, sheet: Sheet) -> dict[str, str]:
    """Draw land and borders around a domain as SVG paths; "" where it has no place on the globe."""
    bounds = None if sheet.crs is None else find_map_bounds(domain)
    return dict.fromkeys(OUTLINES, "") if bounds is None else sheet.write_land(bounds)


def choose_css_classes(density: Floats, top: float) -> list[str]:
    """Choose the CSS class of each density: "p0" to "p24" from zero up, "n1" to "n8" below zero, in steps of the square root."""
    strength = np.sqrt(np.minimum(np.abs(density) / top, 1.0))
    above, below = np.rint(strength * _ABOVE).astype(int), np.maximum(np.rint(strength * _BELOW).astype(int), 1)
    return [
        f"n{low}" if value < 0 else f"p{high}" for value, high, low in zip(density.tolist(), above.tolist(), below.tolist(), strict=True)
    ]


def list_swatches(scale: Scale, *, overlaps: bool) -> list[Swatch]:
    """List all CSS classes with their colours."""
    steps = [(f"p{step}", (step / _ABOVE) ** 2) for step in range(_ABOVE + 1)]
    steps += [(f"n{step}", -((step / _BELOW) ** 2)) for step in range(1, _BELOW + 1)]
    values = scale.top * np.array([value for _, value in steps])
    light, dark = (replace(scale, dark=mode).colors(values).tolist() for mode in (False, True))
    transparency = _OPACITY_IF_OVERLAPPING if overlaps else 1.0
    return [
        Swatch(
            name=name,
            light="rgb({},{},{})".format(*on_light[:3]),
            dark="rgb({},{},{})".format(*on_dark[:3]),
            opacity=f"{on_light[3] * transparency / 255:.2f}",
        )
        for (name, _), on_light, on_dark in zip(steps, light, dark, strict=True)
    ]


def write_rectangles(domain: Domain, sheet: Sheet, rectangles: NDArray[np.integer]) -> list[str]:
    """Write (k, 4) lattice rectangles as SVG paths. Neighbours share their edges exactly: corners are rounded before differences."""
    west, south, east, north = project_rectangles(domain, rectangles).T
    left, bottom = sheet.to_sheet(np.column_stack([west, south])).T
    right, top = sheet.to_sheet(np.column_stack([east, north])).T
    columns = (left, top, right - left, bottom - top, left - right)
    return [f"M{a} {b}h{c}v{d}h{e}z" for a, b, c, d, e in zip(*(column.tolist() for column in columns), strict=True)]


def _write_partition_texts(release: PointRelease, nodes: Integers) -> list[str]:
    """Write the texts shown on hovering over partitions: count and interval, which holds for one partition alone."""
    unit = counted_noun(release)
    if not release.states_noise:
        return [f"{format_count(count)} {unit}" for count in release.count[nodes].tolist()]
    low, high = release.node_interval(nodes)
    return [
        f"{format_count(count)} {unit} (95 %: {format_count(a)} to {format_count(b)}{mark}, for this one alone)"
        for count, a, b, mark in zip(release.count[nodes].tolist(), low.tolist(), high.tolist(), mark_outside(release, nodes), strict=True)
    ]


def select_pairs(release: TripRelease, level: int) -> PairRows:
    """Select the pairs of a level that were released with more than 0 trips."""
    counts, stddev = release.stages[2 * level], release.stage_stddev(2 * level)
    low, high = release.stage_interval(2 * level, joint=True)
    order = np.lexsort((counts.destination, counts.origin, -counts.count))
    order = order[counts.count[order] > 0]
    return PairRows(
        level=level,
        origin=counts.origin[order].astype(np.int64),
        destination=counts.destination[order].astype(np.int64),
        count=counts.count[order],
        stddev=stddev[order],
        low=low[order],
        high=high[order],
    )


def name_pair(release: TripRelease, level: int, origin: int, destination: int) -> str:
    """Return the name of a pair: "A to B", or "within A".

    Args:
        release: public.
        level: 1 for the coarsest.
        origin: index of the origin region.
        destination: index of the destination region.
    """
    origin_name, destination_name = release.tree.origins.names_of(level)[origin], release.tree.destinations.names_of(level)[destination]
    return (
        f"within {origin_name}"
        if origin == destination and release.tree.origins == release.tree.destinations
        else f"{origin_name} to {destination_name}"
    )


def draw_trips(release: TripRelease) -> TripsPicture | None:
    """Draw the largest pairs of different regions as arcs over the regions; None if the regions have no geometry.

    The level is the finest on which most arcs are long enough to be seen; if there is no such level, the finest with at most 5,000
    regions on each side.
    """
    origins, destinations = release.tree.origins, release.tree.destinations
    hierarchies, levels = [origins] if origins == destinations else [origins, destinations], _list_drawable_levels(release)
    if not levels:
        return None
    bounds = fit_bounds(hierarchies, 900, 700)
    sheet = make_regions_sheet(bounds)
    rows = select_pairs(release, next((level for level in levels if _arcs_are_visible(release, level, sheet)), levels[0]))
    shapes_by_side = [draw_regions(item, rows.level, sheet) for item in hierarchies]
    start, end = _place_centres(release, rows.level, sheet)
    largest, drawable, outside = _choose_pairs(rows, (start, end), sheet, same=len(hierarchies) == 1)
    top = scale_top_of(rows.count[largest])
    strength = np.sqrt(np.minimum(rows.count[largest] / top, 1.0))
    ends = np.column_stack([start[rows.origin[largest]], end[rows.destination[largest]]])
    text = _write_pair_texts(release, rows, largest)
    return TripsPicture(
        sheet=sheet,
        land=sheet.write_land(bounds),
        regions=[row for shapes, _ in shapes_by_side for row in shapes],
        dots=[row for _, dots in shapes_by_side for row in dots],
        arcs=[_draw_arc(*item) for item in zip(ends.tolist(), strength.tolist(), text, strict=True)][::-1],
        samples=[(format_count(share * top), _choose_width(share**0.5)) for share in _SAMPLES if share * top >= 1],
        level=rows.level,
        drawable=drawable,
        outside=outside,
    )


def _list_drawable_levels(release: TripRelease) -> list[int]:
    """List the levels that can be drawn, the finest first: at most 5,000 regions on each side, all with geometry."""
    sides = release.tree.origins, release.tree.destinations
    return [level for level in range(release.depth, 0, -1) if all(can_draw(regions, level) for regions in sides)]


def can_draw(regions: Regions, level: int) -> bool:
    """Return whether a level has at most 5,000 regions, all with a place on the globe."""
    try:
        return regions.size(level) <= MOST_REGIONS and regions.centres(level) is not None
    except DomainError:  # nowhere on the globe
        return False


def _arcs_are_visible(release: TripRelease, level: int, sheet: Sheet) -> bool:
    """Return whether most arcs of a level's largest pairs are long enough to be seen."""
    rows, (start, end) = select_pairs(release, level), _place_centres(release, level, sheet)
    largest, _, _ = _choose_pairs(rows, (start, end), sheet, same=release.tree.origins == release.tree.destinations)
    length = np.hypot(*(start[rows.origin[largest]] - end[rows.destination[largest]]).T)
    return bool(len(largest)) and bool(np.median(length) >= _SHORTEST)


def _place_centres(release: TripRelease, level: int, sheet: Sheet) -> tuple[Integers, Integers]:
    """Compute columns and rows, on the sheet, of the centres of a level's origins and of its destinations."""
    return sheet.place(_require_centres(release.tree.origins, level)), sheet.place(_require_centres(release.tree.destinations, level))


def _require_centres(regions: Regions, level: int) -> Floats:
    """Return (n, 2) longitudes and latitudes of a level that is known to have geometry."""
    centres = regions.centres(level)
    assert centres is not None  # noqa: S101
    return centres


def draw_regions(regions: Regions, level: int, sheet: Sheet) -> tuple[list[tuple[str, str]], list[tuple[int, int, str]]]:
    """Draw the regions of a level: as outlines with names, or, if they are points, as columns, rows and names."""
    names = [str(name) for name in regions.names_of(level)]
    outlines = regions.outlines(level)
    if outlines is not None:
        shapes: geopandas.GeoSeries = outlines.to_crs(sheet.crs)
        return [(path, name) for path, name in zip(sheet.write_paths(shapes), names, strict=True) if path], []
    centres = sheet.place(_require_centres(regions, level))
    inside = _lie_on_sheet(centres, sheet).tolist()
    return [], [(x, y, name) for (x, y), name, seen in zip(centres.tolist(), names, inside, strict=True) if seen]


def _choose_pairs(rows: PairRows, ends: tuple[Integers, Integers], sheet: Sheet, *, same: bool) -> tuple[Integers, int, bool]:
    """Choose the pairs to draw.

    Args:
        rows: pairs of a level, most trips first.
        ends: (n, 2) columns and rows of the centres of origins, and of destinations.
        sheet: of the map.
        same: whether origins and destinations are the same regions; a pair of a region with itself is then not drawn.

    Returns:
        Indices of the rows to draw, the largest first; the number of pairs of different regions; and whether any of these lie outside the
        sheet.
    """
    differ = rows.origin != rows.destination if same else np.ones(len(rows.count), np.bool_)
    inside = _lie_on_sheet(ends[0], sheet)[rows.origin] & _lie_on_sheet(ends[1], sheet)[rows.destination]
    chosen = np.flatnonzero(differ & inside)
    return chosen[:MOST_ARCS], int(differ.sum()), bool((differ & ~inside).any())


def _lie_on_sheet(points: Integers, sheet: Sheet) -> NDArray[np.bool_]:
    """Return (k,) whether points, (k, 2) columns and rows, lie on the sheet."""
    return np.asarray(((points >= 0) & (points <= (sheet.width, sheet.height))).all(axis=1))


def _choose_width(strength: float) -> int:
    """Choose the width of an arc, in sheet units, from its strength, 0 to 1."""
    return round(_THINNEST + (_THICKEST - _THINNEST) * strength)


def _draw_arc(ends: list[int], strength: float, text: str) -> Arc:
    """Draw a curve that bends to the right of its direction, so that both directions of a pair are visible."""
    x, y, far_x, far_y = ends
    bent_x, bent_y = (x + far_x) / 2 - BEND * (far_y - y), (y + far_y) / 2 + BEND * (far_x - x)
    return Arc(
        path=f"M{x} {y}Q{bent_x:.0f} {bent_y:.0f} {far_x} {far_y}",
        ends=(x, y, far_x, far_y),
        width=_choose_width(strength),
        strength=f"{0.3 + 0.6 * strength:.2f}",
        text=text,
    )


def _write_pair_texts(release: TripRelease, rows: PairRows, chosen: Integers) -> list[str]:
    """Write the texts shown on hovering over the arcs of the chosen rows; their intervals hold for all pairs at once."""
    columns = (rows.origin, rows.destination, rows.count, rows.low, rows.high)
    return [
        f"{name_pair(release, rows.level, o, d)}: {count:,} trips (95 %: {format_count(low)} to {format_count(high)},"
        " for all pairs together)"
        for o, d, count, low, high in zip(*(column[chosen].tolist() for column in columns), strict=True)
    ]
