"""Regions that need no file: H3 cells, the squares of a lattice, and flat lists of polygons."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import geopandas
import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Texts, slices
from dpviz.errors import DomainError
from dpviz.space.borders import repaired_parts
from dpviz.space.domain import Domain, as_domain
from dpviz.space.morton import cells_at
from dpviz.space.rectangle import Bounds

H3_CRS = "EPSG:4326"
FINEST_H3 = 15
MOST_H3_CELLS = 2**21
FINEST_SQUARES = 10
WRONG_ORDER = "west must be smaller than east and south smaller than north, in the order west, south, east, north."
_H3_MARGIN = 0.05  # of a cell's edge: borders of cells are arcs, which polygons in degrees miss by less
_LONGEST_EDGE = 90.0  # degrees: h3 takes an edge of more than 180 degrees for one that crosses the 180th meridian
_KM_PER_DEGREE = 111.2
_POINTS_AT_ONCE = 2**18
_BORDER_COST, _MOST_COMPARED = 8, 2**26


@dataclass(frozen=True, kw_only=True)
class H3Cells:
    """The H3 cells of one resolution, by which points find their leaf. PUBLIC.

    H3 cells do not nest in space: a part of a cell lies outside its parent's hexagon. So a point belongs to the cell of the finest
    resolution, and to that cell's ancestors by their index.

    Attributes:
        resolution: 0 to 15.
    """

    resolution: int

    def find(self, ids: Texts) -> Callable[[Floats, Floats], Integers]:
        """Return a function from (n,) longitudes and (n,) latitudes to the (n,) indices in `ids` of the cells that contain the points.

        Args:
            ids: (k,) indexes of cells, as hexadecimal texts.

        Returns:
            The function; -1 for a point in none of these cells, -2 where a coordinate is not finite.
        """
        codes = np.array([int(text, 16) for text in ids], np.uint64)
        order = np.argsort(codes)
        ranked = codes[order]

        def look_up(x: Floats, y: Floats) -> Integers:
            leaves = np.full(len(x), -2, np.int64)
            for part in slices(len(x), _POINTS_AT_ONCE):
                usable = np.flatnonzero(np.isfinite(x[part]) & np.isfinite(y[part])) + part.start
                found = self._codes(x[usable], y[usable])
                position = np.minimum(np.searchsorted(ranked, found), len(ranked) - 1)
                leaves[usable] = np.where(ranked[position] == found, order[position], -1)
            return leaves

        return look_up

    def _codes(self, x: Floats, y: Floats) -> Any:
        """Return (n,) indexes of cells, 0 for points off the globe. The library finds one cell per call; `map` calls it without a loop."""
        codes, on_globe = np.zeros(len(x), np.uint64), np.flatnonzero((np.abs(y) <= 90) & (np.abs(x) <= 360))
        find, resolution = _import_h3("h3.api.basic_int").latlng_to_cell, [self.resolution] * len(on_globe)
        codes[on_globe] = np.fromiter(map(find, y[on_globe].tolist(), x[on_globe].tolist(), resolution), np.uint64, len(on_globe))
        return codes


Grid = Domain | H3Cells
"""Cells that find a point's leaf without its polygon: the squares of a domain's lattice, or H3 cells."""


def _import_h3(module: str = "h3") -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise DomainError("H3 cells need the package h3: install dpviz with its extra, pip install 'dpviz[h3]'.") from None


def nest_h3_cells(area: Any, resolutions: Sequence[int]) -> tuple[geopandas.GeoDataFrame, list[str], H3Cells]:
    """List the H3 cells that touch an area, with their ancestors.

    Args:
        area: bounds west, south, east, north in degrees; a polygon in degrees; or a GeoSeries or GeoDataFrame of polygons in any CRS.
        resolutions: of the levels, coarsest first; 0 to 15.

    Returns:
        A table with one row per cell of the finest resolution, with a column of ids per level and the cell's outline as geometry; the
        names of the columns; and the cells by which points find their leaf.

    Raises:
        DomainError: the area is no polygon, off the globe, or crosses the 180th meridian; resolutions do not grow; there are too many
            cells; or the package h3 is missing.
    """
    given = _listed(resolutions, "resolutions", (5, 7, 9))
    if not all(isinstance(each, int | np.integer) and not isinstance(each, bool) and 0 <= each <= FINEST_H3 for each in given):
        raise DomainError(f"The resolutions of H3 cells must be whole numbers from 0 to {FINEST_H3}.")
    levels = list(map(int, given))
    if not levels or any(finer <= coarser for coarser, finer in itertools.pairwise(levels)):
        raise DomainError("The resolutions of H3 cells must grow from level to level, such as 5, 7, 9.")
    h3, shape = _import_h3(), _area_in_degrees(area)
    edge = h3.average_hexagon_edge_length(levels[-1], unit="km") / _KM_PER_DEGREE
    _refuse_too_many_cells(shape, edge)
    latitude = min(max(abs(shape.bounds[1]), abs(shape.bounds[3])), 85.0)
    wider = shapely.buffer(shape, _H3_MARGIN * edge / math.cos(math.radians(latitude)), join_style="mitre")
    wider = shapely.segmentize(wider, _LONGEST_EDGE)
    cells = sorted(h3.h3shape_to_cells_experimental(h3.geo_to_h3shape(wider), levels[-1], contain="overlap"))
    columns = {f"resolution {level}": [h3.cell_to_parent(cell, level) for cell in cells] for level in levels}
    return geopandas.GeoDataFrame(columns, geometry=h3_outlines(cells), crs=H3_CRS), list(columns), H3Cells(resolution=levels[-1])


def h3_outlines(cells: Sequence[str] | Texts) -> NDArray[np.object_]:
    """Make the (n,) outlines of H3 cells, in degrees.

    Raises:
        DomainError: a cell crosses the 180th meridian or contains a pole.
    """
    corners = [*map(_import_h3().cell_to_boundary, cells)]
    cell = np.repeat(np.arange(len(corners)), [len(of_cell) for of_cell in corners])
    latitude, longitude = np.concatenate(corners).T
    starts = np.searchsorted(cell, np.arange(len(corners)))
    if (np.maximum.reduceat(longitude, starts) - np.minimum.reduceat(longitude, starts) > 180).any():
        raise DomainError("The area's H3 cells cross the 180th meridian or contain a pole; choose an area that does not.")
    return np.asarray(shapely.polygons(shapely.linearrings(longitude, latitude, indices=cell)), object)


def _area_in_degrees(area: Any) -> Any:
    """Return the area as one polygon in degrees."""
    if isinstance(area, geopandas.GeoDataFrame | geopandas.GeoSeries):
        if area.crs is None:
            raise DomainError("The area has no CRS; set it with set_crs(...), it is never guessed.")
        area = shapely.union_all(repaired_parts(area.geometry.to_crs(H3_CRS).to_numpy())[0])
    elif isinstance(area, Sequence | np.ndarray) and not isinstance(area, str):
        area = _box_of(area)
    if not isinstance(area, shapely.Polygon | shapely.MultiPolygon) or area.is_empty or not area.is_valid:
        raise DomainError("An area must be bounds (west, south, east, north), or a valid polygon, in degrees.")
    west, south, east, north = area.bounds
    if west < -180 or east > 180 or south < -90 or north > 90:
        raise DomainError("The area's longitudes or latitudes are out of range; give them in degrees, or polygons with their CRS.")
    return area


def _box_of(bounds: Any) -> Any:
    """Return bounds west, south, east, north as a polygon."""
    numbers = len(bounds) == 4 and all(isinstance(bound, int | float | np.number) for bound in bounds)
    if not numbers or not np.isfinite(np.asarray(bounds, np.float64)).all():
        raise DomainError("The bounds of an area must be four numbers: west, south, east, north.")
    west, south, east, north = bounds
    if west >= east or south >= north:
        raise DomainError(f"The bounds of an area: {WRONG_ORDER}")
    return shapely.box(west, south, east, north)


def _refuse_too_many_cells(shape: Any, edge: float) -> None:
    """Refuse an area that more than `MOST_H3_CELLS` cells with edges of so many degrees would cover, or whose border takes too long.

    A cell on the border takes as long as `_BORDER_COST` others, and is compared with every corner. There are no more of them than the
    box around the area holds, however long the border is.
    """
    west, south, east, north = shape.bounds
    flat = math.cos(math.radians(min(abs(south), abs(north)) if south * north > 0 else 0.0))
    cell, box = edge**2 * 1.5 * math.sqrt(3), ((east - west) * flat + 2 * edge) * (north - south + 2 * edge)
    on_border = min(shape.length * edge, box) / cell
    if shape.area * flat / cell > MOST_H3_CELLS or on_border * _BORDER_COST > MOST_H3_CELLS:
        raise DomainError(
            f"The area has more than {MOST_H3_CELLS:,} H3 cells of the finest resolution; choose a coarser one or a smaller area."
        )
    if on_border * shapely.get_num_coordinates(shape) > _MOST_COMPARED:
        raise DomainError("The area's border has too many corners for so many H3 cells: simplify it, or choose a coarser resolution.")


def _listed(numbers: object, name: str, example: tuple[int, ...]) -> Sequence[Any]:
    """Return numbers that are listed; raise `DomainError` if there is no list."""
    if isinstance(numbers, str | bytes) or not hasattr(numbers, "__len__") or not hasattr(numbers, "__getitem__"):
        raise DomainError(f"{name} must be a list of whole numbers, coarsest first, such as {name}={example}.")
    return cast("Sequence[Any]", numbers)


def nest_squares(domain: Domain | Bounds, zooms: Sequence[int]) -> tuple[pd.DataFrame, list[str], Domain]:
    """List the squares of a domain's lattice, nested by zoom.

    Args:
        domain: the public domain; or a GeoSeries or GeoDataFrame that is its rectangle.
        zooms: of the levels, coarsest first, at least 1: there are 2**zoom x 2**zoom squares.

    Returns:
        A table with one row per square of the finest zoom in Z-order, with a column of ids "zoom/column/row" per level, and the square
        as geometry if the domain has a CRS; the names of the columns; and the domain whose lattice has these squares.

    Raises:
        DomainError: zooms that are out of range or do not grow, or a domain with a mask.
    """
    domain, zooms = as_domain(domain, None), _listed(zooms, "zooms", (2, 4, 6))
    if domain.mask is not None:
        raise DomainError("Squares are regions of a whole domain: leave its mask out.")
    whole = all(isinstance(zoom, int | np.integer) and not isinstance(zoom, bool) for zoom in zooms)
    finest = min(domain.order, FINEST_SQUARES)
    grow = all(finer > coarser for coarser, finer in itertools.pairwise(zooms))
    if not len(zooms) or not whole or not grow or not 1 <= zooms[0] <= zooms[-1] <= finest:
        raise DomainError(f"The zooms of squares must be whole numbers from 1 to {finest} that grow from level to level, such as 2, 4, 6.")
    zooms = [int(zoom) for zoom in zooms]
    column, row = cells_at(np.arange(4 ** zooms[-1]))
    columns = {}
    for zoom in zooms:
        places = zip((column >> zooms[-1] - zoom).tolist(), (row >> zooms[-1] - zoom).tolist(), strict=True)
        columns[f"zoom {zoom}"] = [f"{zoom}/{across}/{up}" for across, up in places]
    lattice = Domain(bounds=domain.bounds, crs=domain.crs, order=zooms[-1])
    table = pd.DataFrame(columns)
    if domain.crs is not None:
        shapes = lattice.boxes(np.stack([column, row, column + 1, row + 1], axis=1))
        table = geopandas.GeoDataFrame(table, geometry=shapes, crs=domain.crs)
    return table, list(columns), lattice


def list_polygons(polygons: Any, ids: Sequence[str] | None, level: str) -> geopandas.GeoDataFrame:
    """Make a table of polygons with one row and one id each; without ids, they are numbered.

    Raises:
        DomainError: no polygons, no CRS, or another number of ids.
    """
    if not isinstance(polygons, geopandas.GeoDataFrame | geopandas.GeoSeries) or not len(polygons):
        raise DomainError("Polygons must be a GeoSeries or a GeoDataFrame with at least one row.")
    texts = [f"{number:0{len(str(len(polygons)))}d}" for number in range(1, len(polygons) + 1)] if ids is None else list(ids)
    if len(texts) != len(polygons):
        raise DomainError("Polygons and their ids must be of the same number.")
    return geopandas.GeoDataFrame({level: texts}, geometry=np.asarray(polygons.geometry.to_numpy(), object), crs=polygons.crs)
