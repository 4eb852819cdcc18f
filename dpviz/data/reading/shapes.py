"""Public files of regions: polygons or points with their columns, or plain tables.

GDAL sees GeoPackages and Shapefiles only, and only after a check of their bytes: under other names it would open
descriptions of network services.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyogrio  # type: ignore[import-untyped]
import shapely
from pyproj import CRS

from dpviz.data.columns import PointColumns
from dpviz.data.reading.geometries import too_many_rows
from dpviz.data.reading.safety import Limits, attempt, checked_geopackage, guarded, repacked_shapefile
from dpviz.data.reading.tables import OpenTable, open_table
from dpviz.data.reading.text_formats import NAMED_TWICE, TWICE, once, open_geojson
from dpviz.data.reading.text_rows import NOT_UTF8, SEPARATORS
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Shapes = NDArray[np.object_]

_DRIVERS = ("GPKG", "ESRI Shapefile")


@dataclass(frozen=True, kw_only=True)
class OpenShapes:
    """What a file of regions says about itself, and the way to its columns. PUBLIC.

    Attributes:
        format: CSV, TSV, Parquet, GeoJSON, GeoPackage, GeoParquet or Shapefile.
        names: of the columns, geometry left out.
        crs: as the file declares it; None if it does not.
        has_geometry: whether the file has shapes of its own.
        take: the columns of the given names, as objects, and (n,) shapes, None where one is missing; no shapes without geometry.
    """

    format: str
    names: tuple[str, ...]
    crs: CRS | None
    has_geometry: bool
    take: Callable[[Sequence[str]], tuple[pd.DataFrame, Shapes | None]]


def open_shapes(kind: str, data: bytes, limits: Limits) -> OpenShapes:
    """Open checked bytes of a file of regions.

    Raises:
        InputError: the content is not of that format, or passes a limit.
    """
    readers: dict[str, Callable[[], OpenShapes]] = {
        "GeoJSON": lambda: _open_geojson(data, limits),
        "Parquet": lambda: _open_table(kind, data, limits),
        "GeoPackage": lambda: _open_vector(kind, checked_geopackage(data), limits),
        "Shapefile": lambda: _open_vector(kind, repacked_shapefile(data, limits), limits),
    }
    rule = f"The content cannot be read as {kind}: the file is damaged, or its ending is wrong."
    opened = guarded(rule, readers.get(kind, lambda: _open_table(kind, data, limits)))
    if len(opened.names) > limits.columns:
        raise InputError(f"The file has more columns than the limit of {limits.columns:,}.")
    if len(set(opened.names)) < len(opened.names):
        raise InputError("The header has a name twice; rename all but one of the columns.")
    return opened


def _open_geojson(data: bytes, limits: Limits) -> OpenShapes:
    text = attempt(lambda: data.decode("utf-8-sig"))
    if text is None:
        raise InputError(NOT_UTF8)
    top = json.loads(text, object_pairs_hook=_once)
    features = [top] if isinstance(top, dict) and top.get("type") == "Feature" else top.get("features")
    if not isinstance(features, list) or not all(map(_is_feature, features)):
        raise InputError("The file is no GeoJSON FeatureCollection.")
    if len(features) > limits.rows:
        raise too_many_rows(limits)
    empty = {"type": "FeatureCollection", "crs": top.get("crs"), "features": []}
    crs = open_geojson(json.dumps(empty).encode(), PointColumns()).crs
    properties = [feature.get("properties") or {} for feature in features]
    names = dict.fromkeys(name for each in properties for name in each)

    def take(wanted: Sequence[str]) -> tuple[pd.DataFrame, Shapes]:
        table = pd.DataFrame({name: pd.Series([each.get(name) for each in properties], dtype=object) for name in wanted})
        texts = [None if feature.get("geometry") is None else json.dumps(feature["geometry"]) for feature in features]
        return table, shapely.from_geojson(np.array(texts, object), on_invalid="raise")

    return OpenShapes(format="GeoJSON", names=tuple(names), crs=crs, has_geometry=True, take=take)


def _once(pairs: list[tuple[str, Any]]) -> Any:
    if (thing := once(pairs)) is TWICE:
        raise InputError(NAMED_TWICE)
    return thing


def _is_feature(thing: object) -> bool:
    return isinstance(thing, dict) and isinstance(thing.get("properties") or {}, dict)


def _open_table(kind: str, data: bytes, limits: Limits) -> OpenShapes:
    """A text table, Parquet or GeoParquet."""
    opened = open_table(kind, data, limits)
    geo = json.loads(opened.geo) if opened.geo else None
    if geo is not None:
        return _with_geometry(opened, geo)

    def take(wanted: Sequence[str]) -> tuple[pd.DataFrame, None]:
        return _frame(opened, wanted), None

    return OpenShapes(format=kind, names=opened.names, crs=None, has_geometry=False, take=take)


def _with_geometry(opened: OpenTable, geo: dict[str, Any]) -> OpenShapes:
    primary = geo["primary_column"]
    facts = geo["columns"][primary]
    declared = facts.get("crs", "OGC:CRS84")  # by specification: CRS84 if the key is absent, unknown if it is null
    crs = None if declared is None else guarded("The GeoParquet's CRS is not known.", lambda: CRS.from_user_input(declared))

    def take(wanted: Sequence[str]) -> tuple[pd.DataFrame, Shapes]:
        cells = opened.take([opened.names.index(primary)]).columns[0]
        return _frame(opened, wanted), _decoded(cells, str(facts["encoding"]))

    names = tuple(name for name in opened.names if name not in geo["columns"])
    return OpenShapes(format="GeoParquet", names=names, crs=crs, has_geometry=True, take=take)


def _decoded(cells: pa.ChunkedArray, encoding: str) -> Shapes:
    """Shapes of a GeoParquet column, from WKB or from one of the native encodings."""
    if encoding == "WKB":
        return np.asarray(shapely.from_wkb(cells.to_numpy(zero_copy_only=False), on_invalid="raise"), object)
    kind = pa.field("geometry", cells.type, metadata={"ARROW:extension:name": f"geoarrow.{encoding}", "ARROW:extension:metadata": "{}"})
    table = pa.Table.from_arrays([cells], schema=pa.schema([kind]))
    return np.asarray(geopandas.GeoDataFrame.from_arrow(table).geometry.to_numpy(), object)


def _frame(opened: OpenTable, wanted: Sequence[str]) -> pd.DataFrame:
    """Columns as objects; from text tables, without spaces around the cells."""
    read = opened.take([opened.names.index(name) for name in wanted])
    read.bad.refuse("Correct the file.")
    cells = [column.to_pylist() for column in read.columns]
    if opened.format in SEPARATORS:
        cells = [[None if value is None else value.strip() for value in column] for column in cells]
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in zip(wanted, cells, strict=True)})


def _open_vector(kind: str, data: bytes, limits: Limits) -> OpenShapes:
    """A GeoPackage or Shapefile, by GDAL."""
    layers = [name for name, geometry in pyogrio.list_layers(io.BytesIO(data)) if geometry is not None]
    if not layers:
        raise InputError("The file has no layer with geometries.")
    if len(layers) > 1:
        raise InputError("The file has several layers with geometries; save the one to be read by itself.")
    facts = pyogrio.read_info(io.BytesIO(data), layer=layers[0], force_feature_count=True)
    if facts["driver"] not in _DRIVERS:
        raise InputError("The file's content is not what its ending says.")
    if (rows := facts["features"]) > limits.rows:
        raise too_many_rows(limits)

    def take(wanted: Sequence[str]) -> tuple[pd.DataFrame, Shapes]:
        options = {"layer": layers[0], "columns": list(wanted), "force_2d": True, "max_features": rows}
        rule = "A text or a geometry in the file is damaged; is its encoding declared?"
        meta, _fids, shapes, cells = guarded(rule, lambda: pyogrio.raw.read(io.BytesIO(data), **options))
        table = pd.DataFrame({name: pd.Series(list(column), dtype=object) for name, column in zip(meta["fields"], cells, strict=True)})
        return table, shapely.from_wkb(shapes, on_invalid="raise")

    crs = CRS.from_user_input(facts["crs"]) if facts["crs"] else None
    crs = None if crs is not None and crs.name.lower().startswith("undefined") else crs
    return OpenShapes(format=kind, names=tuple(facts["fields"]), crs=crs, has_geometry=True, take=take)
