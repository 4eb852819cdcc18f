"""Open files of points and of regions, and find their CRS. The header or metadata is read first, then only the columns that are needed.

GDAL opens only GeoPackages and Shapefiles, after a check of their bytes. Without it, GDAL would also open files that name network services.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyogrio  # type: ignore[import-untyped]
import shapely
from pyproj import CRS, Transformer

from dpviz.arrays import Floats
from dpviz.data.cells import REMEDY, polygons_as_points, shapes_of_wkb, xy_of
from dpviz.data.columns import (
    NOT_POINTS,
    OpenFile,
    PointColumns,
    RawPoints,
    UnusableFileError,
    decode_texts,
    raw_points,
)
from dpviz.data.library_errors import or_none, without_private_text
from dpviz.data.reading.formats import Format, named
from dpviz.data.reading.geojson import (
    NAMED_TWICE,
    TWICE,
    columns_of_features,
    features_of,
    geojson_crs,
    load_json,
    object_of_pairs,
    open_geojson,
    split_lines,
)
from dpviz.data.reading.safety import Limits, check_flatgeobuf, check_geopackage, check_json, repack_shapefile
from dpviz.data.reading.tables import PARQUET, UNREADABLE, OpenTable, open_table, refuse_nested
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.text_rows import NOT_UTF8, SEPARATORS
from dpviz.data.roles import is_text, plain_type
from dpviz.errors import InputError
from dpviz.space.domain import is_horizontal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Shapes = NDArray[np.object_]

_DAMAGED = "A text or a geometry in the file is damaged; is its encoding declared?"
_DEFAULT_GEOMETRY_NAME = "wkb_geometry"


NO_SHAPES = (
    "centroids=True is for the polygons of GeoJSON, GeoPackage, GeoParquet and zipped Shapefiles: leave it out for a table with columns x"
    " and y, or of points in WKT."
)
_NO_WKT = "Column {name!r} holds no point in WKT, such as POINT (13.4 52.5); other shapes are no points."
_WKT_POINT = r"(?i)^\s*POINT[\sZM(]"
pyogrio.set_gdal_config_options({"OGR_FLATGEOBUF_STREAM_BASE_IMPL": "YES"})  # GDAL's other way garbles the rows after a missing geometry


def open_format(
    kind: str,
    data: bytes,
    limits: Limits,
    wanted: PointColumns,
    *,
    quoted_newlines: bool = False,
    text_format: TextFormat = PLAIN_TEXT,
    centroids: bool = False,
) -> OpenFile:
    """Open checked bytes of a file of points.

    Args:
        kind: the format.
        data: the content.
        limits: the most that the file may hold.
        wanted: the columns that the caller names. If x, y or geometry is named, the geometries of a Parquet file are ignored.
        quoted_newlines: whether entries of a text table may hold line ends.
        text_format: the declared format of a text table.
        centroids: whether polygons are read as their centroids.

    Raises:
        InputError: the content is not of that format, or passes a limit.
    """
    form = named(kind)
    open_checked = form.open_points
    if open_checked is None:
        table = open_table(kind, data, limits, quoted_newlines=quoted_newlines, text_format=text_format)
        return _open_points_table(table, wanted, centroids=centroids)
    text_format.refuse_for(kind)
    opened: OpenFile = without_private_text(
        UNREADABLE.format(kind=kind), lambda: open_checked(form.check(data, limits), wanted, centroids=centroids)
    )
    limits.check(rows=opened.rows, columns=len(opened.names) if form.declares_columns else 0)
    return opened


def _open_points_table(opened: OpenTable, wanted: PointColumns, *, centroids: bool) -> OpenFile:
    """Open a table of points. They are its geometries if it has some and no column of coordinates is named, else these columns."""
    geo = None if wanted.coordinates else opened.geo
    if centroids and geo is None:
        raise InputError(NO_SHAPES)

    def take(columns: PointColumns, bad_rows: str) -> RawPoints:
        names = [columns.x, columns.y, columns.count, columns.person, columns.geometry if geo is None else geo.primary]
        needed = list(dict.fromkeys(name for name in names if name is not None))
        numbers = [{opened.names.index(name) for name in some if name not in (None, columns.person)} for some in (names[:2], names[2:3])]
        positions = [opened.names.index(name) for name in needed]
        read_cells = opened.take(positions, numbers=numbers[0], counts=numbers[1], missing_words=True)
        if bad_rows == "refuse":
            read_cells.bad.refuse(REMEDY)
        cells = dict(zip(needed, read_cells.columns, strict=True))
        refuse_nested(column for name, column in cells.items() if name == columns.person)  # coordinates and counts are numbers, or refused
        points: dict[str, Any] = {"ragged": read_cells.bad.total}
        if geo is not None and geo.encoding == "point":
            points |= {axis: pc.struct_field(cells[geo.primary], axis).to_numpy(zero_copy_only=False).astype(np.float64) for axis in "xy"}
        elif geo is not None and geo.encoding != "WKB":
            raise InputError(NOT_POINTS)
        elif geo is not None:
            points |= _points_of_geometries(shapes_of_wkb(cells[geo.primary].to_numpy(zero_copy_only=False)), centroids=centroids)
        elif columns.geometry is not None:
            points |= dict(zip("xy", _points_in_wkt(cells[columns.geometry], columns.geometry), strict=True))
        return raw_points(columns, cells.__getitem__, **points)

    return OpenFile(
        format=opened.format if geo is None else _with_geometries(opened.format),
        names=tuple(name for name in opened.names if geo is None or name not in geo.columns),
        has_geometry=geo is not None,
        crs=None if geo is None else geo.crs,
        rows=opened.rows,
        types=opened.types,
        take=take,
    )


def _with_geometries(kind: str) -> str:
    """Return what a table of a format is called if it has geometries."""
    return "GeoParquet" if kind == PARQUET.name else kind


def _points_in_wkt(column: pa.ChunkedArray, name: str) -> tuple[Floats, Floats]:
    """Return (n,) x and (n,) y of points in WKT; NaN where an entry is missing, empty, malformed or of another shape.

    Only texts that begin as points do are parsed: others could be nested so deeply that the parser would crash.

    Raises:
        InputError: the column holds no texts, or has entries, none of which is a point.
    """
    column = column.cast(plain_type(column.type))
    if not (is_text(column.type) or pa.types.is_null(column.type)):
        raise InputError(_NO_WKT.format(name=name))
    texts = column.cast(pa.large_string())
    point_texts = pc.if_else(pc.match_substring_regex(texts, _WKT_POINT), texts, pa.scalar(None, texts.type))
    shapes = np.asarray(shapely.from_wkt(point_texts.to_numpy(zero_copy_only=False), on_invalid="ignore"), object)
    if texts.null_count < len(texts) and not (shapely.get_type_id(shapes) == shapely.GeometryType.POINT).any():
        raise UnusableFileError(_NO_WKT.format(name=name), len(texts))
    return xy_of(shapes)


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """The one layer with geometries of a GeoPackage or Shapefile, as GDAL describes it."""

    name: str
    columns: tuple[str, ...]
    crs: CRS | None
    geometry_type: str
    rows: int
    types: dict[str, pa.DataType]


def _describe_only_layer(data: bytes) -> _Layer:
    """Describe the only layer with geometries.

    Raises:
        InputError: there is no layer with geometries, or there are several; the content is of another format.
    """
    layers = [name for name, geometry in pyogrio.list_layers(io.BytesIO(data)) if geometry is not None]
    if not layers:
        raise InputError("The file has no layer with geometries.")
    if len(layers) > 1:
        raise InputError("The file has several layers with geometries; save the one to be read by itself.")
    info = pyogrio.read_info(io.BytesIO(data), layer=layers[0], force_feature_count=True)
    if info["driver"] not in ("GPKG", "ESRI Shapefile", "FlatGeobuf"):
        raise InputError("The file's content is not what its ending says.")
    crs = CRS.from_user_input(info["crs"]) if info["crs"] else None
    crs = None if crs is not None and crs.name.lower().startswith("undefined") else crs
    rows, columns = info["features"], tuple(info["fields"])
    are_numbers = [kind.startswith(("int", "uint", "float")) for kind in info["dtypes"]]
    types = {name: pa.float64() if is_number else pa.string() for name, is_number in zip(columns, are_numbers, strict=True)}
    return _Layer(name=layers[0], columns=columns, crs=crs, geometry_type=info["geometry_type"], rows=rows, types=types)


def _open_points_layer(kind: str, data: bytes, _wanted: PointColumns, *, centroids: bool) -> OpenFile:
    """Open the points of a GeoPackage or Shapefile with GDAL."""
    layer = _describe_only_layer(data)
    readable = ("Point", "Unknown", *(("Polygon", "MultiPolygon") if centroids else ()))
    if layer.geometry_type.removeprefix("2.5D ").split()[0] not in readable:
        raise InputError(NOT_POINTS)

    def take(columns: PointColumns, bad_rows: str) -> RawPoints:
        wanted = list(filter(None, {columns.count, columns.person}))
        options = {"layer": layer.name, "columns": wanted, "max_features": layer.rows}
        meta, table = without_private_text(_DAMAGED, lambda: pyogrio.raw.read_arrow(io.BytesIO(data), **options))
        columns_read = {name: table.column(name) for name in wanted}
        cells = {name: decode_texts(each, meta["encoding"]) if is_text(each.type) else each for name, each in columns_read.items()}
        if bad_rows == "refuse" and any(each.null_count > columns_read[name].null_count for name, each in cells.items()):
            raise InputError(_DAMAGED)
        _refuse_cut_short(len(table), layer)
        geometry = table.column(meta["geometry_name"] or _DEFAULT_GEOMETRY_NAME).to_numpy(zero_copy_only=False)
        return raw_points(columns, cells.__getitem__, **_points_of_geometries(shapes_of_wkb(geometry), centroids=centroids))

    return OpenFile(format=kind, names=layer.columns, has_geometry=True, crs=layer.crs, rows=layer.rows, take=take, types=layer.types)


def _refuse_cut_short(rows: int, layer: _Layer) -> None:
    """Refuse a layer of which fewer rows are read than it declares: GDAL reads the rest of a cut FlatGeobuf in silence."""
    if rows != layer.rows:
        raise InputError("The file holds fewer rows than it declares: it is cut short or damaged.")


def _points_of_geometries(geometries: NDArray[np.object_], *, centroids: bool) -> dict[str, Any]:
    """Return the fields x, y and has_other_shapes of `RawPoints` for (n,) shapely geometries; with `centroids`, polygons become points.

    Raises:
        InputError: there are geometries, none of which is a point.
    """
    if centroids:
        geometries = polygons_as_points(geometries)
    type_ids = shapely.get_type_id(geometries)
    are_others = type_ids > 0
    if are_others.any() and not (type_ids == 0).any():
        raise UnusableFileError(NOT_POINTS, len(geometries))
    x, y = xy_of(geometries)
    return {"x": x, "y": y, "has_other_shapes": bool(are_others.any())}


@dataclass(frozen=True, kw_only=True)
class OpenShapes:
    """The header or metadata of a file of regions, and a function that reads its columns. PUBLIC.

    Attributes:
        format: CSV, TSV, Parquet, GeoJSON, GeoPackage, GeoParquet or Shapefile.
        names: names of the columns, geometry left out.
        crs: the CRS that the file declares; None if it declares none.
        has_geometry: whether the file has shapes of its own.
        take: a function that reads the named columns, as objects, and (n,) shapes, with None for a missing shape. It returns None
            in place of the shapes if the file has no geometry.
    """

    format: str
    names: tuple[str, ...]
    crs: CRS | None
    has_geometry: bool
    take: Callable[[Sequence[str]], tuple[pd.DataFrame, Shapes | None]]
    text_format: TextFormat = PLAIN_TEXT


def open_shapes(kind: str, data: bytes, limits: Limits, text_format: TextFormat = PLAIN_TEXT) -> OpenShapes:
    """Open checked bytes of a file of regions.

    Raises:
        InputError: the file is damaged, a limit is exceeded, a name occurs twice, or a text format is declared for another file.
    """
    text_format.refuse_for(kind)
    form = named(kind)

    def open_checked() -> OpenShapes:
        if form.open_shapes is None:
            return _open_shapes_table(open_table(kind, data, limits, text_format=text_format).index_first())
        opened: OpenShapes = form.open_shapes(form.check(data, limits), limits)
        return opened

    opened = without_private_text(UNREADABLE.format(kind=kind), open_checked)
    limits.check(columns=len(opened.names))
    if len(set(opened.names)) < len(opened.names):
        raise InputError("The header has a name twice; rename all but one of the columns.")
    return replace(opened, text_format=text_format)


def _open_geojson(data: bytes, limits: Limits, *, by_line: bool = False) -> OpenShapes:
    if or_none(lambda: data.decode("utf-8-sig")) is None:
        raise InputError(NOT_UTF8)

    def unrepeated(pairs: list[tuple[str, Any]]) -> Any:
        if (value := object_of_pairs(pairs)) is TWICE:
            raise InputError(NAMED_TWICE)
        return value

    def parse(text: bytes) -> Any:
        return json.loads(text.decode("utf-8-sig"), object_pairs_hook=unrepeated)

    top = list(map(parse, split_lines(data))) if by_line else load_json(data, parse)
    features = features_of(top, dict)
    if not all(isinstance(feature, dict) and isinstance(feature.get("properties") or {}, dict) for feature in features):
        raise InputError("The file is no GeoJSON FeatureCollection.")
    limits.check(rows=len(features))
    crs = geojson_crs(top)
    properties = [{name: feature[name] for name in ("id",) if name in feature} | (feature.get("properties") or {}) for feature in features]
    names = dict.fromkeys(name for feature_properties in properties for name in feature_properties)

    def take(wanted: Sequence[str]) -> tuple[pd.DataFrame, Shapes]:
        table = pd.DataFrame(
            {name: pd.Series([feature_properties.get(name) for feature_properties in properties], dtype=object) for name in wanted}
        )
        texts = [None if feature.get("geometry") is None else json.dumps(feature["geometry"]) for feature in features]
        return table, shapely.from_geojson(np.array(texts, object), on_invalid="raise")

    return OpenShapes(format="GeoJSON", names=tuple(names), crs=crs, has_geometry=True, take=take)


def _open_shapes_table(opened: OpenTable) -> OpenShapes:
    """Open regions in a table, with or without geometries."""
    geo = opened.geo
    if geo is None:
        return OpenShapes(
            format=opened.format, names=opened.names, crs=None, has_geometry=False, take=lambda wanted: (_read_frame(opened, wanted), None)
        )
    column, encoding = opened.names.index(geo.primary), geo.encoding

    def take(wanted: Sequence[str]) -> tuple[pd.DataFrame, Shapes]:
        table, cells = _read_frame(opened, wanted), opened.take([column]).columns[0]
        if encoding == "WKB":
            return table, np.asarray(shapely.from_wkb(cells.to_numpy(zero_copy_only=False), on_invalid="raise"), object)
        native = {"ARROW:extension:name": f"geoarrow.{encoding}", "ARROW:extension:metadata": "{}"}
        shapes = pa.Table.from_arrays([cells], schema=pa.schema([pa.field("geometry", cells.type, metadata=native)]))
        return table, np.asarray(geopandas.GeoDataFrame.from_arrow(shapes).geometry.to_numpy(), object)

    names = tuple(name for name in opened.names if name not in geo.columns)
    return OpenShapes(format=_with_geometries(opened.format), names=names, crs=geo.crs, has_geometry=True, take=take)


def _read_frame(opened: OpenTable, wanted: Sequence[str]) -> pd.DataFrame:
    """Read columns as objects. Entries of text tables lose the blanks around them."""
    read_cells = opened.take([opened.names.index(name) for name in wanted])
    read_cells.bad.refuse("Correct the file.")
    cells = [column.to_pylist() for column in read_cells.columns]
    if opened.format in SEPARATORS:
        cells = [[None if value is None else value.strip() for value in column] for column in cells]
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in zip(wanted, cells, strict=True)})


def _open_shapes_layer(kind: str, data: bytes, limits: Limits) -> OpenShapes:
    """Open the shapes of a GeoPackage or Shapefile with GDAL."""
    layer = _describe_only_layer(data)
    limits.check(rows=layer.rows)

    def take(wanted: Sequence[str]) -> tuple[pd.DataFrame, Shapes]:
        options = {"layer": layer.name, "columns": list(wanted), "force_2d": True, "max_features": layer.rows}
        meta, _fids, shapes, cells = without_private_text(_DAMAGED, lambda: pyogrio.raw.read(io.BytesIO(data), **options))
        _refuse_cut_short(len(shapes), layer)
        table = pd.DataFrame({name: pd.Series(list(column), dtype=object) for name, column in zip(meta["fields"], cells, strict=True)})
        return table, shapely.from_wkb(shapes, on_invalid="raise")

    return OpenShapes(format=kind, names=layer.columns, crs=layer.crs, has_geometry=True, take=take)


MOST_ROWS = 1_000_000  # from the beginning of a file, of which columns are looked through


def _columns_of_layer(data: bytes) -> dict[str, pa.Array]:
    layer = next(name for name, geometry in pyogrio.list_layers(io.BytesIO(data)) if geometry is not None)
    layer_content = pyogrio.raw.read(io.BytesIO(data), layer=layer, read_geometry=False, max_features=MOST_ROWS)
    return {name: pa.array(cells, from_pandas=True) for name, cells in zip(layer_content[0]["fields"], layer_content[3], strict=True)}


def _layer_format(name: str, ending: str, check: Callable[[bytes, Limits], bytes]) -> Format:
    return Format(
        name=name,
        endings=(ending,),
        check=check,
        open_points=partial(_open_points_layer, name),
        open_shapes=partial(_open_shapes_layer, name),
        first_columns=_columns_of_layer,
    )


def _json_format(name: str, endings: tuple[str, ...], *, by_line: bool) -> Format:
    return Format(
        name=name,
        endings=endings,
        check=partial(check_json, by_line=by_line),
        open_points=partial(open_geojson, by_line=by_line),
        open_shapes=partial(_open_geojson, by_line=by_line),
        first_columns=partial(columns_of_features, most_rows=MOST_ROWS, by_line=by_line),
        declares_columns=False,
    )


GEOJSON = _json_format("GeoJSON", (".geojson", ".json"), by_line=False)
GEOJSON_LINES = _json_format("GeoJSON lines", (".geojsonl", ".geojsons", ".ndjson", ".jsonl"), by_line=True)
GEOPACKAGE = _layer_format("GeoPackage", ".gpkg", check_geopackage)
FLATGEOBUF = _layer_format("FlatGeobuf", ".fgb", check_flatgeobuf)
SHAPEFILE = _layer_format("Shapefile", ".zip", repack_shapefile)

_FAR = np.finfo(np.float64).max


def crs_of_file(kind: str, declared: CRS | None, crs: object, target: object) -> CRS | None:
    """Return the CRS of the file's coordinates; None if the domain has no CRS, so that coordinates are used as they are.

    Args:
        kind: what the source is, such as "CSV file", for errors.
        declared: the CRS that the file declares.
        crs: the CRS that the caller gives.
        target: the domain's CRS; None if it has none.

    Raises:
        InputError: neither the file nor the caller states a CRS, the two differ, the CRS is not known, or it does not fit the domain.
    """
    if target is None:
        if crs is not None:
            raise InputError("The domain has no CRS: leave crs out, or give the domain a CRS.")
        return None
    if crs is None:
        if declared is None:
            raise InputError(f"This {kind} does not state its CRS, which is never guessed: pass crs=..., such as crs='EPSG:4326'.")
        return check_on_map(declared)
    chosen = without_private_text("The CRS is not known; give an EPSG code such as 'EPSG:4326'.", lambda: CRS.from_user_input(crs))
    if declared is not None and not same_crs(chosen, declared):
        noun = kind.rpartition(" ")[2]
        raise InputError(f"The {noun} declares another CRS than crs=...; leave crs out, or correct the {noun}.{advise_metres(declared)}")
    return check_on_map(chosen)


def advise_metres(declared: CRS) -> str:
    """Say what helps where a GeoJSON holds metres: without a crs member, it is in degrees by its standard."""
    if not same_crs(declared, CRS("OGC:CRS84")):
        return ""
    return (
        " A GeoJSON that names no CRS is in longitude and latitude (RFC 7946). If this one holds metres, convert it:"
        " ogr2ogr -f GeoJSON -s_srs EPSG:2056 -t_srs EPSG:4326 new.geojson FILE, with its own CRS in place of EPSG:2056."
    )


def check_on_map(crs: CRS) -> CRS:
    """Check that the coordinates of a CRS are positions on a map, and return it.

    Raises:
        InputError: the coordinates are not positions on a map.
    """
    if not is_horizontal(crs):
        raise InputError(
            "The CRS of the points has no positions on a map (heights only, or geocentric); convert them to EPSG:4326, for instance."
        )
    return crs


def same_crs(one: CRS, other: CRS) -> bool:
    """Return whether two CRS give every point the same x and y (longitude first in both)."""
    return one.equals(other, ignore_axis_order=True) or (one.to_epsg() is not None and one.to_epsg() == other.to_epsg())


def reproject(raw: RawPoints, source: CRS | None, crs: object) -> tuple[Floats, Floats]:
    """Return (n,) x and (n,) y in another CRS. Points that cannot be reprojected get huge coordinates, which are outside every domain."""
    target = None if crs is None else CRS.from_user_input(crs)
    if source is None or target is None or same_crs(source, target):
        return raw.x, raw.y
    x, y = without_private_text(
        "The coordinates cannot be reprojected from the file's CRS to the domain's.",
        lambda: Transformer.from_crs(source, target, always_xy=True).transform(raw.x, raw.y),
    )
    unmapped = np.isfinite(raw.x) & np.isfinite(raw.y) & ~(np.isfinite(x) & np.isfinite(y))
    return np.where(unmapped, _FAR, x), np.where(unmapped, _FAR, y)
