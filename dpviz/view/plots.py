"""Releases as pictures by Matplotlib, for papers and slides; with the colours and arcs of the other maps."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import geopandas
import numpy as np
import shapely
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import FuncNorm, ListedColormap

from dpviz.arrays import Floats
from dpviz.errors import DomainError
from dpviz.privacy.receipt import PRIVATE
from dpviz.release.area_release import AreaRelease
from dpviz.release.base import Level, NoisyRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.space.domain import EQUAL_AREA
from dpviz.space.regions import Regions
from dpviz.view.basemap import OUTLINES, WGS84, Bounds, find_map_bounds, fit_bounds, outlines_in
from dpviz.view.colors import ACCENT, Scale, occupied_top, scale_top_of
from dpviz.view.levels import find_level
from dpviz.view.partition_looks import density_scale, large_first, open_areas
from dpviz.view.report_maps import MOST_ARCS
from dpviz.view.report_numbers import select_pairs
from dpviz.view.trips_drawing import hierarchies_of

_LINE, _LAND = "#8b949b", "#eceff1"
_STEPS = 128  # colours of a scale on each side of zero
_WIDTHS = (0.4, 5.0)  # of arcs, in points
_ALONG = np.linspace(0.0, 1.0, 25)[:, None]  # positions along an arc
_FINEST_LAND = 1500  # details of land that are smaller than the extent divided by this are left out
_BEND = 0.22  # of the length of an arc
_MARGIN = 0.03  # around what is drawn, as a share of its extent


def plot(release: NoisyRelease, level: Level | None = None, ax: Axes | None = None) -> Axes:
    """Draw a level of a release.

    Args:
        release: of any family.
        level: number or name; None for the finest one that is not mostly noise.
        ax: axes to draw into; None makes new ones.

    Returns:
        The axes.

    Raises:
        DomainError: no such level, regions without geometry, or a family without pictures.
    """
    number = find_level(release, level)
    axes = plt.subplots(figsize=(8, 6), layout="constrained")[1] if ax is None else ax
    axes.set_title(f"{release.mechanism}, {release.receipt.total}: {draw(release, number, axes)}", fontsize="medium", wrap=True)
    if release.status != PRIVATE:
        axes.text(0.01, 0.01, release.status, transform=axes.transAxes, color="#8a3b00", fontsize="small", weight="bold")
    return axes


@singledispatch
def draw(release: NoisyRelease, level: int, axes: Axes) -> str:  # noqa: ARG001
    """Draw a level into axes, and return in words what is drawn."""
    raise DomainError(f"There is no picture of {release.family}; explore may have a map.")


@draw.register
def _(release: PointRelease, level: int, axes: Axes) -> str:
    domain, nodes = release.domain, large_first(release, release.open_nodes(level))
    rectangles = release.tree.rectangles(nodes)
    area = open_areas(domain, rectangles)
    density = np.divide(release.count[nodes], area, out=np.zeros(len(nodes)), where=area > 0)
    scale = density_scale(density, area, domain, release.counted)
    west, south, east, north = domain.coordinates(rectangles).T
    corners = np.stack([west, south, east, south, east, north, west, north], axis=1).reshape(-1, 4, 2)
    if domain.crs is not None and (bounds := find_map_bounds(domain)) is not None:
        _draw_land(axes, bounds, domain.crs)
    _color(axes, PolyCollection(list(corners), linewidths=0.1, edgecolors="face"), density, scale)
    _frame(axes, domain.bounds, geographic=domain.is_geographic)
    return f"{len(nodes):,} partitions (level {level})"


@draw.register
def _(release: AreaRelease, level: int, axes: Axes) -> str:
    regions, bounds = release.regions, fit_bounds([release.regions], 800, 600)
    _draw_land(axes, bounds, WGS84)
    shapes, are_polygons = _find_shapes(regions, level)
    hidden = release.hidden_at(level)
    shown = np.ones(len(shapes), np.bool_) if hidden is None else ~hidden
    if are_polygons:
        area = np.asarray(shapes.to_crs(EQUAL_AREA).area, np.float64) / 1e6
        values = np.divide(release.count[release.nodes(level)], area, out=np.zeros(len(area)), where=area > 0)
        title = f"{release.counted} per km²"
    else:
        area, values, title = np.ones(len(shapes)), release.count[release.nodes(level)], release.counted
    scale = Scale(kind="density", top=occupied_top(values[shown], area[shown]), title=title)
    before = len(axes.collections)
    shapes[shown].plot(ax=axes, color="white", aspect=None)
    _color(axes, axes.collections[before], values[shown], scale)
    if not shown.all():
        shapes[~shown].plot(ax=axes, color="#80808026")
    _frame(axes, bounds, geographic=True)
    return f"{len(shapes):,} regions ({regions.levels[level - 1]})"


@draw.register
def _(release: TripRelease, level: int, axes: Axes) -> str:
    origins, destinations = release.tree.origins, release.tree.destinations
    hierarchies = hierarchies_of(release)
    bounds = fit_bounds(hierarchies, 800, 600)
    _draw_land(axes, bounds, WGS84)
    for regions in hierarchies:
        shapes, are_polygons = _find_shapes(regions, level)
        if are_polygons:
            shapes.boundary.plot(ax=axes, color=_LINE, linewidth=0.3)
        else:
            shapes.plot(ax=axes, color=_LINE, markersize=4)
    start, end = (np.asarray(regions.centres(level)) for regions in (origins, destinations))
    rows = select_pairs(release, level)
    differ = rows.origin != rows.destination if len(hierarchies) == 1 else np.ones(len(rows.count), np.bool_)
    chosen = np.flatnonzero(differ)[:MOST_ARCS][::-1]
    top = scale_top_of(rows.count[chosen])
    strength = np.sqrt(np.minimum(rows.count[chosen] / top, 1.0))
    _draw_arcs(axes, start[rows.origin[chosen]], end[rows.destination[chosen]], strength, bounds)
    _frame(axes, bounds, geographic=True)
    return f"{len(chosen):,} largest pairs of {int(differ.sum()):,} ({release.tree.title(2 * level)})"


def _find_shapes(regions: Regions, level: int) -> tuple[geopandas.GeoSeries, bool]:
    """Return the shapes of a level in degrees, and whether they are polygons; else they are points."""
    outlines = regions.outlines(level)
    if outlines is not None:
        return outlines.to_crs(WGS84).reset_index(drop=True), True
    return geopandas.GeoSeries(shapely.points(np.asarray(regions.centres(level))), crs=WGS84), False


def _color(axes: Axes, collection: Any, values: Floats, scale: Scale) -> None:
    """Colour a collection by values, and explain the colours beside the map."""
    low = -scale.top if (values < 0).any() else 0.0
    steps = np.linspace(-1.0 if low else 0.0, 1.0, _STEPS * (2 if low else 1))
    colors = scale.colors(np.sign(steps) * steps**2 * scale.top) / 255
    collection.set(array=values, cmap=ListedColormap(colors), norm=FuncNorm((_root, _square), vmin=low, vmax=scale.top))
    if collection.axes is None:
        axes.add_collection(collection, autolim=False)
    bar = axes.figure.colorbar(collection, ax=axes, extend="both" if low else "max", shrink=0.7, label=scale.title)
    ticks = scale.top * np.array([0.0, 0.25, 1.0])
    bar.set_ticks([*(-ticks[:0:-1] if low else []), *ticks])


def _root(values: Floats) -> Floats:
    return np.sign(values) * np.sqrt(np.abs(values))


def _square(values: Floats) -> Floats:
    return np.sign(values) * np.square(values)


def _draw_arcs(axes: Axes, start: Floats, end: Floats, strength: Floats, bounds: Bounds) -> None:
    """Draw (k, 2) starts and ends as arcs that bend to the right, so that both directions of a pair are seen, faint at the origin."""
    stretch = np.array([_stretch(bounds), 1.0])
    step = (end - start) / stretch
    bent = (start + end) / 2 + _BEND * np.column_stack([step[:, 1], -step[:, 0]]) * stretch
    curve = (1 - _ALONG) ** 2 * start[:, None] + 2 * (1 - _ALONG) * _ALONG * bent[:, None] + _ALONG**2 * end[:, None]
    pieces = np.stack([curve[:, :-1], curve[:, 1:]], axis=2)
    alpha = (0.3 + 0.6 * strength)[:, None] * (0.1 + 0.9 * _ALONG[1:, 0])
    widths = np.repeat(_WIDTHS[0] + (_WIDTHS[1] - _WIDTHS[0]) * strength, pieces.shape[1])
    axes.add_collection(
        LineCollection(list(pieces.reshape(-1, 2, 2)), linewidths=widths, colors=ACCENT, alpha=alpha.ravel(), capstyle="butt"),
        autolim=False,
    )


def _draw_land(axes: Axes, bounds: Bounds, crs: str) -> None:
    extent = max(bounds[2] - bounds[0], bounds[3] - bounds[1])
    for name in OUTLINES:
        lines = outlines_in(crs, name, bounds, extent / 2, extent / _FINEST_LAND)
        if len(lines):
            if name == "land":
                lines.plot(ax=axes, aspect=None, color=_LAND)
                lines = lines.boundary
            lines.plot(ax=axes, aspect=None, linewidth=0.6, color=_LINE, zorder=1.5)  # over the shapes, which are opaque


def _frame(axes: Axes, bounds: tuple[float, ...], *, geographic: bool) -> None:
    """Show the bounds with a small margin, in their proportions."""
    west, south, east, north = bounds
    margin = _MARGIN * max(east - west, north - south)
    axes.set_xlim(west - margin, east + margin)
    axes.set_ylim(south - margin, north + margin)
    axes.set_aspect(_stretch((west, south, east, north)) if geographic else 1.0)
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")


def _stretch(bounds: Bounds) -> float:
    """How many degrees of longitude are as long as one of latitude, in the middle of the bounds."""
    return float(1 / np.cos(np.radians(np.clip((bounds[1] + bounds[3]) / 2, -80, 80))))
