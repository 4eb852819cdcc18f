"""The map of Curate before a release of trips: the declared regions on land with names, and the error to expect in each pair of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.arrays import Floats
from dpviz.space.regions import Regions
from dpviz.view.basemap import Bounds, RegionShapes, fit_bounds, prepare_shapes
from dpviz.view.canvas import Areas, Legend, Pane, Scene, on_land
from dpviz.view.colors import DECLARED_FILL, Colors
from dpviz.view.escape import deck, line
from dpviz.view.trips_layers import fit_points

_DOT_OPACITY = 170
_RADIUS = 5.0  # pixels; with many dots each is smaller
_WIDTH, _HEIGHT = 1000, 300  # pixels of the map, about


@dataclass(frozen=True, kw_only=True, eq=False)
class DeclaredLevel:
    """The shapes of the regions of one level.

    Attributes:
        shapes: of the regions where trips begin and, if they are others, of those where trips end.
        names: their names, escaped.
        title: name of the pairs, such as "county to county".
    """

    shapes: tuple[RegionShapes, ...]
    names: tuple[list[str], ...]
    title: str


def find_bounds(regions: Regions, ends: Regions) -> Bounds | None:
    """Choose what is in view at first: the same for each level. None if the regions have neither outlines nor points."""
    hierarchies = _distinct(regions, ends)
    if any(each.centres(each.depth) is None for each in hierarchies):
        return None
    return fit_bounds(hierarchies, _WIDTH, _HEIGHT)


def prepare_level(regions: Regions, ends: Regions, level: int) -> DeclaredLevel | None:
    """Prepare the shapes and names of a level; None if its regions have neither outlines nor points.

    Args:
        regions: where trips begin.
        ends: where trips end.
        level: 1 for the coarsest.
    """
    hierarchies = _distinct(regions, ends)
    shapes = [prepare_shapes(each, level) for each in hierarchies]
    if any(shape is None for shape in shapes):
        return None
    return DeclaredLevel(
        shapes=tuple(shape for shape in shapes if shape is not None),
        names=tuple([deck(name) for name in each.names_of(level)] for each in hierarchies),
        title=f"{line(regions.levels[level - 1])} to {line(ends.levels[level - 1])}",
    )


def regions_scene(declared: DeclaredLevel, bounds: Bounds, error: float | None, *, unit: str, dark: bool, height: int) -> Scene:
    """Show the regions of a level; the expected error is the same for each pair, and is said in words.

    Args:
        declared: the level.
        bounds: from `find_bounds`.
        error: expected error of the trips of a pair, root mean square, from public values; None if it is not known.
        unit: what is counted, in the plural.
        dark: whether the page is dark.
        height: in pixels.
    """
    said = "" if error is None else f"± {format_decimal(error, 2)} {line(unit)} in each pair of {declared.title}"
    sides = zip(declared.shapes, declared.names, strict=True)
    areas = {f"regions {side}": Areas(shapes=shapes, texts=names) for side, (shapes, names) in enumerate(sides)}
    sizes = " and ".join(f"{len(names):,}" for names in declared.names)
    pane = Pane(
        title=f"Expected error: {said}" if said else f"The declared regions, {declared.title}",
        about=f"{sizes} regions",
        words="",
        legend=Legend(title="The same for every pair, from public values: no trip was looked at" if said else ""),
        areas=tuple(areas),
        fills=tuple(_fill(shapes, dark=dark) for shapes in declared.shapes),
        dots=tuple(_size_dots(shapes) for shapes in declared.shapes),
    )
    scene = Scene(bounds=bounds, areas=areas, panes=(pane,), description=pane.title, dark=dark, height=height)
    return on_land(scene, "Outside the regions: trips from or to here are not counted.")


def _distinct(regions: Regions, ends: Regions) -> list[Regions]:
    return [regions] if regions is ends or regions == ends else [regions, ends]


def _size_dots(shapes: RegionShapes) -> Floats:
    """Return the radii of regions without outlines; none for others."""
    number = len(shapes.centres)
    return np.full(number if shapes.are_dots else 0, _RADIUS * fit_points(number))


def _fill(shapes: RegionShapes, *, dark: bool) -> Colors:
    red, green, blue, opacity = DECLARED_FILL[dark]
    color = (red, green, blue, opacity if shapes.polygons else _DOT_OPACITY)
    return np.tile(np.array(color, np.uint8), (len(shapes.centres), 1))
