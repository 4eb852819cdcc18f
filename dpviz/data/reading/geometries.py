"""One reader per file format: first what the header or metadata says, then only the columns that are needed.

GDAL sees GeoPackages and Shapefiles only, and only after a check of their bytes: under other names it would open
descriptions of network services.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyogrio  # type: ignore[import-untyped]
import shapely
from pyproj import CRS

from dpviz.arrow_memory import in_arrow_memory
from dpviz.data.columns import NOT_POINTS, OpenFile, PointColumns, RawPoints, decoded, is_text, raw_points
from dpviz.data.places import xy_of
from dpviz.data.reading.parquet import open_parquet, read_columns
from dpviz.data.reading.safety import Limits, checked_geopackage, guarded, repacked_shapefile
from dpviz.data.reading.text_formats import open_geojson, open_text
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


_DAMAGED = "A text or a geometry in the file is damaged; is its encoding declared?"
_UNNAMED_GEOMETRY = "wkb_geometry"


def open_format(kind: str, data: bytes, limits: Limits, asked: PointColumns, *, quoted_newlines: bool = False) -> OpenFile:
    """Open checked bytes of a known format; `quoted_newlines` says that cells of a text table may hold line ends.

    Raises:
        InputError: the content is not of that format, or passes a limit.
    """
    readers: dict[str, Callable[[], OpenFile]] = {
        "CSV": lambda: open_text(kind, data, quoted_newlines=quoted_newlines),
        "TSV": lambda: open_text(kind, data, quoted_newlines=quoted_newlines),
        "GeoJSON": lambda: open_geojson(data, asked),
        "Parquet": lambda: _open_parquet(data, limits, asked),
        "GeoPackage": lambda: _open_vector(kind, checked_geopackage(data)),
        "Shapefile": lambda: _open_vector(kind, repacked_shapefile(data, limits)),
    }
    if kind in ("CSV", "TSV") and data.count(b"\n") > limits.rows + 1:
        raise too_many_rows(limits)
    opened = guarded(f"The content cannot be read as {kind}: the file is damaged, or its ending is wrong.", readers[kind])
    if kind != "GeoJSON" and len(opened.names) > limits.columns:  # whose features each have names of their own
        raise InputError(f"The file has more columns than the limit of {limits.columns:,}.")
    if opened.rows is not None and opened.rows > limits.rows:
        raise too_many_rows(limits)
    return opened


def too_many_rows(limits: Limits) -> InputError:
    """The error for a file that is too long."""
    return InputError(f"The file has more rows than the limit of {limits.rows:,}.")


def _open_parquet(data: bytes, limits: Limits, asked: PointColumns) -> OpenFile:
    memory = in_arrow_memory(data)
    file = open_parquet(memory, limits)
    geo = json.loads((file.schema_arrow.metadata or {}).get(b"geo", b"null"))
    schema, rows = file.schema_arrow, file.metadata.num_rows

    def take_named(names: set[str | None]) -> pa.Table:
        return read_columns(memory, [name for name in schema.names if name in names], limits)

    if geo is None or asked.x is not None or asked.y is not None:

        def take_columns(columns: PointColumns, _bad_rows: str) -> RawPoints:
            table = take_named({columns.x, columns.y, columns.count, columns.person})
            return raw_points(columns, table.column)

        return OpenFile(format="Parquet", names=tuple(schema.names), has_geometry=False, crs=None, rows=rows, take=take_columns)
    primary = geo["primary_column"]
    facts = geo["columns"][primary]

    def take(columns: PointColumns, _bad_rows: str) -> RawPoints:
        table = take_named({primary, columns.count, columns.person})
        return raw_points(columns, table.column, **_parquet_places(table.column(primary), facts["encoding"]))

    names = tuple(name for name in schema.names if name not in geo["columns"])
    return OpenFile(format="GeoParquet", names=names, has_geometry=True, crs=_parquet_crs(facts), rows=rows, take=take)


def _parquet_crs(facts: dict[str, Any]) -> CRS | None:
    """By specification: CRS84 if the key is absent, unknown if it is null."""
    declared = facts.get("crs", "OGC:CRS84")
    return None if declared is None else guarded("The GeoParquet's CRS is not known.", lambda: CRS.from_user_input(declared))


def _parquet_places(column: pa.ChunkedArray, encoding: str) -> dict[str, Any]:
    if encoding == "point":
        return {axis: pc.struct_field(column, axis).to_numpy(zero_copy_only=False).astype(np.float64) for axis in "xy"}
    if encoding != "WKB":
        raise InputError(NOT_POINTS)
    return _places(shapely.from_wkb(column.to_numpy(zero_copy_only=False), on_invalid="ignore"))


def _open_vector(kind: str, data: bytes) -> OpenFile:
    """A GeoPackage or Shapefile, by GDAL."""
    layers = [name for name, geometry in pyogrio.list_layers(io.BytesIO(data)) if geometry is not None]
    if not layers:
        raise InputError("The file has no layer with geometries.")
    if len(layers) > 1:
        raise InputError("The file has several layers with geometries; save the one to be read by itself.")
    facts = pyogrio.read_info(io.BytesIO(data), layer=layers[0], force_feature_count=True)
    if facts["driver"] not in ("GPKG", "ESRI Shapefile"):
        raise InputError("The file's content is not what its ending says.")
    if facts["geometry_type"].removeprefix("2.5D ").split()[0] not in ("Point", "Unknown"):
        raise InputError(NOT_POINTS)
    rows = facts["features"]

    def take(columns: PointColumns, bad_rows: str) -> RawPoints:
        wanted = list(filter(None, {columns.count, columns.person}))
        options = {"layer": layers[0], "columns": wanted, "max_features": rows}
        meta, table = guarded(_DAMAGED, lambda: pyogrio.raw.read_arrow(io.BytesIO(data), **options))
        cells = {name: _texts(table.column(name), meta["encoding"]) for name in wanted}
        if bad_rows == "refuse" and any(column.null_count > table.column(name).null_count for name, column in cells.items()):
            raise InputError(_DAMAGED)
        geometry = table.column(meta["geometry_name"] or _UNNAMED_GEOMETRY).to_numpy(zero_copy_only=False)
        return raw_points(columns, cells.__getitem__, **_places(shapely.from_wkb(geometry, on_invalid="ignore")))

    crs = CRS.from_user_input(facts["crs"]) if facts["crs"] else None
    crs = None if crs is not None and crs.name.lower().startswith("undefined") else crs
    return OpenFile(format=kind, names=tuple(facts["fields"]), has_geometry=True, crs=crs, rows=rows, take=take)


def _texts(column: pa.ChunkedArray, encoding: str) -> pa.ChunkedArray:
    return decoded(column, encoding) if is_text(column.type) else column


def _places(geometries: NDArray[np.object_]) -> dict[str, Any]:
    """x, y and has_strangers of (n,) shapely geometries."""
    kinds = shapely.get_type_id(geometries)
    strangers = kinds > 0
    if strangers.any() and not (kinds == 0).any():
        raise InputError(NOT_POINTS)
    x, y = xy_of(geometries)
    return {"x": x, "y": y, "has_strangers": bool(strangers.any())}
