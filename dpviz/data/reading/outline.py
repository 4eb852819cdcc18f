"""Read a public file of polygons: regions without ids, or the outline of an area."""

from __future__ import annotations

import re
from dataclasses import replace

import geopandas
import numpy as np
import shapely
from numpy.typing import NDArray

from dpviz.bundled import folder
from dpviz.data.library_errors import without_private_text
from dpviz.data.reading.geometries import OpenShapes, open_shapes
from dpviz.data.reading.regions import crs_of, parse_crs
from dpviz.data.reading.safety import DEFAULT_LIMITS, Limits, Source, read_checked, too_many_rows
from dpviz.data.roles import PublicHeader, find_wkt
from dpviz.errors import DomainError, InputError
from dpviz.space.outline import POLYGONS, Outline

MOST_POLYGONS = 5_000
OUTLINE_LIMITS = replace(DEFAULT_LIMITS, rows=MOST_POLYGONS, file_bytes=64 * 2**20)
LAND = "land"
"""The name of the study area of `land_outline`, where others have the name of a file."""
_WKT_POLYGON = r"(?i)\s*(?:MULTI)?POLYGON[\sZM(]"


def read_outline(source: Source, *, crs: object = None, limits: Limits = OUTLINE_LIMITS) -> Outline:
    r"""Read the outline of an area from a public file of polygons.

    Formats: GeoJSON, GeoPackage, GeoParquet, zipped Shapefile, and tables with one column of polygons in WKT. Rows without a shape are
    passed over.

    Args:
        source: a path, or an open binary file (an upload) with a `name`, whose ending says the format. Never a URL.
        crs: the CRS of the coordinates, if the file does not state it; not used if it does.
        limits: the most that the file may hold.

    Raises:
        InputError: the file cannot be opened, is damaged or too large.
        DomainError: the file holds no polygons, other shapes or too many; or its CRS is not known.

    >>> import io
    >>> upload = io.BytesIO(b"name\tgeometry\nold town\tPOLYGON ((4.8 45.7, 4.9 45.7, 4.9 45.8, 4.8 45.7))\n")
    >>> upload.name = "town.tsv"
    >>> read_outline(upload, crs="EPSG:4326").bounds_in("EPSG:4326")
    (4.8, 45.7, 4.9, 45.8)
    """
    kind, data = read_checked(source, limits)
    try:
        opened = open_shapes(kind, data, limits)
        shapes = _take_shapes(opened)
    except InputError as error:
        if str(error) != str(too_many_rows(limits)):
            raise
        shapes = None
    if shapes is None:
        raise DomainError(
            f"The file has more than {limits.rows:,} polygons: choose the outline of the whole area, or drag a box on the map."
        )
    if opened.crs is None and crs is None:
        raise DomainError("This file does not state its CRS, which is never guessed: type it as CRS of the domain, such as EPSG:4326.")
    return Outline(shapes=shapes, crs=opened.crs or parse_crs(crs))


def land_outline() -> Outline:
    """Read the outline of the land that comes with dpviz: public, and coarse.

    It is finest in the contiguous United States, by the Census Bureau, and around Los Angeles, by Natural Earth at 1:10 million; elsewhere
    it is by Natural Earth at 1:50 million, with steps of some kilometres and without islands under 100 km2.

    >>> len(land_outline().shapes) > 100
    True
    """
    return read_outline(folder("assets") / "land.json", crs="EPSG:4326")


def read_polygons(source: Source, *, crs: object = None, limits: Limits = DEFAULT_LIMITS) -> geopandas.GeoSeries:
    r"""Read polygons from a public file: the list of `Regions.from_polygons`, or the area of `Regions.h3`.

    Formats: those of `read_outline`. Rows without a shape are passed over.

    Args:
        source: a path, or an open binary file (an upload) with a `name`, whose ending says the format. Never a URL.
        crs: the CRS of the coordinates, if the file does not state it.
        limits: the most that the file may hold.

    Returns:
        (n,) polygons in their CRS, in the order of the file.

    Raises:
        InputError: the file cannot be opened, is damaged or too large.
        DomainError: the file holds no polygons, or other shapes; its CRS is not known, or is another than `crs`.

    >>> import io
    >>> upload = io.BytesIO(b"name\tgeometry\nold town\tPOLYGON ((4.8 45.7, 4.9 45.7, 4.9 45.8, 4.8 45.7))\n")
    >>> upload.name = "town.tsv"
    >>> read_polygons(upload, crs="EPSG:4326").total_bounds.tolist()
    [4.8, 45.7, 4.9, 45.8]
    """
    opened = open_shapes(*read_checked(source, limits), limits)
    shapes = _take_shapes(opened)
    shapes = shapes[~(shapely.is_missing(shapes) | shapely.is_empty(shapes))]
    if not len(shapes) or not np.isin(shapely.get_type_id(shapes), POLYGONS).all():
        raise DomainError("The file has no polygons, or also other shapes: choose one of polygons alone.")
    return geopandas.GeoSeries(shapes, crs=crs_of(opened, crs))


def _take_shapes(opened: OpenShapes) -> NDArray[np.object_]:
    """Read the shapes alone; of a table without geometries, those in its column of WKT."""
    rule = f"The shapes cannot be read as {opened.format}: the file is damaged."
    if opened.has_geometry:
        _, shapes = without_private_text(rule, lambda: opened.take([]))
        return np.asarray(shapes, object)
    columns = find_wkt(PublicHeader(names=tuple(opened.names)))
    if len(columns) != 1:
        raise DomainError(
            "The file has no polygons: choose one with shapes, or a table with polygons in WKT in its column geometry or wkt."
        )
    table, _ = without_private_text(rule, lambda: opened.take(columns))
    return _parse_wkt(table[columns[0]].to_numpy())


def _parse_wkt(entries: NDArray[np.object_]) -> NDArray[np.object_]:
    """Parse polygons in WKT. Other shapes are not parsed: they could be nested so deeply that the parser would crash."""
    texts = np.array([entry if isinstance(entry, str) and entry.strip() else None for entry in entries], object)
    filled = np.array([text is not None for text in texts], np.bool_)
    polygons = np.array([text is not None and re.match(_WKT_POLYGON, text) is not None for text in texts], np.bool_)
    shapes = np.full(len(texts), None, object)
    shapes[polygons] = shapely.from_wkt(texts[polygons], on_invalid="ignore")
    if (filled & shapely.is_missing(shapes)).any():
        raise DomainError("The column of shapes has an entry that is no polygon in WKT, such as POLYGON ((4 45, 5 45, 5 46, 4 45)).")
    return shapes
