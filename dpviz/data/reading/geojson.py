"""Read GeoJSON files of points as rows, with checks that the reader of regions uses, too.

A feature's member `id` (RFC 7946, Section 3.2) is read as its property `id`, unless it has a property of that name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely
from pyproj import CRS

from dpviz.amounts import LONGEST_NUMBER
from dpviz.data.bounding import canonical_text
from dpviz.data.cells import polygons_as_points, xy_of
from dpviz.data.columns import NOT_POINTS, OpenFile, PointColumns, RawPoints, UnusableFileError, raw_points
from dpviz.data.library_errors import or_none, without_private_text
from dpviz.data.reading.text_rows import NOT_UTF8
from dpviz.data.roles import fold_name, quote_names
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


TWICE = object()
_COLLECTION = "FeatureCollection"
NAMED_TWICE = "The GeoJSON names a member twice, and which one is meant is not guessed; save the file again."
_LINE_BY_LINE = (
    "The file has a JSON text in each line. If each is a GeoJSON Feature, let the file's name end in .geojsonl; each line is then one row."
)
_NO_FEATURES = (
    "The file is JSON, but none of its entries is a GeoJSON Feature with a geometry: save it as GeoJSON, or its rows as CSV or Parquet."
)
_MOST_NESTED = 100
_RECORD_SEPARATOR = b"\x1e"  # begins each text in RFC 8142
_OPENINGS, _BRACKETS = (np.frombuffer(characters, np.uint8) for characters in (b"[{", b"[{]}"))


class _Feature(NamedTuple):
    """The part of a GeoJSON feature that is needed: its point, or its polygon as JSON, and the wanted properties."""

    x: float = np.nan
    y: float = np.nan
    is_other_shape: bool = False
    properties: dict[str, Any] = {}  # noqa: RUF012  (never written to)
    polygon: str | None = None


_NO_FEATURE = _Feature()


def open_geojson(data: bytes, wanted: PointColumns, *, centroids: bool = False, by_line: bool = False) -> OpenFile:
    """Open a GeoJSON FeatureCollection, a list of Features, or one Feature; of the properties only the wanted columns are read.

    An error in the syntax of JSON damages the file as a whole, or where each line is a Feature, its line alone. Control characters within
    texts and deep nesting are accepted.

    Args:
        data: the content.
        wanted: the columns that the caller names.
        centroids: whether polygons are read as their centroids.
        by_line: whether each line is a Feature.
    """
    names: dict[str, None] = {}
    wanted_names = {fold_name(str(name)): str(name) for name in (wanted.count, wanted.person) if name is not None}

    def collapse(pairs: list[tuple[str, Any]]) -> Any:
        member = object_of_pairs(pairs)
        if not isinstance(member, dict) or member.get("type") != "Feature" or "geometry" not in member:
            return member
        properties = member.get("properties")
        if properties is TWICE:
            return _Feature()
        properties = properties if isinstance(properties, dict) else {}
        if "id" in member:
            properties = {"id": member["id"], **properties}
        if wanted_names:
            own = {name: wanted_names.get(fold_name(name), name) for name in properties}  # a wanted name in other letters, upper or lower
            properties = {name if own[name] in properties else own[name]: value for name, value in properties.items()}
        names.update(dict.fromkeys(properties))
        wanted_properties = {name: properties[name] for name in wanted_names.values() if name in properties}
        return _make_feature(member.get("geometry"), wanted_properties, centroids=centroids)

    def parse(text: bytes) -> Any:
        flat = flatten_json(text).decode("utf-8-sig", "replace")
        return json.loads(
            flat,
            object_pairs_hook=collapse,
            parse_int=lambda digits: int(digits) if len(digits) < 19 else digits,
            parse_float=lambda digits: float(digits) if len(digits) <= LONGEST_NUMBER else digits,
            strict=False,
        )

    top = [or_none(lambda line=line: parse(line)) for line in split_lines(data)] if by_line else load_json(data, parse)  # type: ignore[misc]
    features = [feature if isinstance(feature, _Feature) else _NO_FEATURE for feature in features_of(top, _Feature)]

    def take(columns: PointColumns, bad_rows: str) -> RawPoints:
        if bad_rows == "refuse" and or_none(lambda: data.decode("utf-8")) is None:
            raise InputError(NOT_UTF8)
        return _from_features(features, columns)

    if not features:
        names = dict.fromkeys(filter(None, (wanted.count, wanted.person)))
    return OpenFile(format="GeoJSON", names=tuple(names), has_geometry=True, crs=geojson_crs(top), rows=len(features), take=take)


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a text of JSON texts, without blank ones and the record separators of RFC 8142."""
    return [line for line in (line.strip().removeprefix(_RECORD_SEPARATOR) for line in data.split(b"\n")) if line]


def load_json(data: bytes, parse: Callable[[bytes], Any]) -> Any:
    """Parse a file that is one JSON text.

    Raises:
        InputError: each line is a JSON text of its own.
        ValueError: the text is no JSON.
    """
    top = or_none(lambda: parse(data))
    if top is None and or_none(lambda: parse(split_lines(data)[0])) is not None and len(split_lines(data)) > 1:
        raise InputError(_LINE_BY_LINE)
    return parse(data) if top is None else top


def columns_of_features(data: bytes, *, most_rows: int, by_line: bool = False) -> dict[str, pa.Array]:
    """Return the properties of the first features as columns; those of mixed kinds, and lines that are no JSON, are missing entries."""

    def parse(text: bytes) -> Any:
        return json.loads(text.decode("utf-8-sig", "replace"))

    top = [or_none(lambda line=line: parse(line)) or {} for line in split_lines(data)] if by_line else load_json(data, parse)  # type: ignore[misc]
    features = [feature.get("properties") or {} for feature in features_of(top, dict)[:most_rows]]
    names = dict.fromkeys(name for properties in features for name in properties)
    cells = {name: [properties.get(name) for properties in features] for name in names}
    arrays = {name: or_none(lambda values=values: pa.array(values)) for name, values in cells.items()}  # type: ignore[misc]
    return {name: pa.nulls(len(features)) if column is None else column for name, column in arrays.items()}


def features_of(top: Any, feature: type) -> list[Any]:
    """Return the features of a GeoJSON text: of a FeatureCollection, a list of features, or one feature.

    Args:
        top: the parsed text.
        feature: the type of a parsed feature.

    Raises:
        InputError: the text is TopoJSON, or another JSON; the text names its members as far as they look like names.
    """
    if top is TWICE:
        raise InputError(NAMED_TWICE)
    if isinstance(top, feature) and not (isinstance(top, dict) and top.get("type") != "Feature"):
        return [top]
    features = top.get("features") if isinstance(top, dict) and top.get("type", _COLLECTION) == _COLLECTION else top
    if isinstance(features, list):
        return features
    if isinstance(top, dict) and top.get("type") == "Topology":
        raise InputError("The file is TopoJSON, which is not read: ogr2ogr -f GeoJSON new.geojson FILE makes a GeoJSON of it.")
    members = f" with the members {quote_names(list(top))}" if isinstance(top, dict) else ""
    raise InputError(
        f"The file is JSON{members}, and no GeoJSON: that is a FeatureCollection with a list of features. Save it as GeoJSON, or its rows"
        " as CSV."
    )


def flatten_json(data: bytes) -> bytes:
    """Replace values of JSON that are nested deeper than 100 by 0, because the parser would refuse them.

    Whether a value is replaced depends on its own depth alone, so that no feature affects another one.
    """
    if data.count(b"[") + data.count(b"{") <= _MOST_NESTED:  # the usual line of a text of lines
        return data
    content = np.frombuffer(data, np.uint8)
    quotes, backslashes = np.flatnonzero(content == ord('"')), np.flatnonzero(content == ord("\\"))
    run_starts = np.flatnonzero(np.r_[True, np.diff(backslashes) > 1][: len(backslashes)])
    run_lengths = np.diff(np.r_[run_starts, len(backslashes)])
    quotes = np.setdiff1d(quotes, (backslashes[run_starts] + run_lengths)[run_lengths % 2 == 1], assume_unique=True)
    positions = np.flatnonzero(np.isin(content, _BRACKETS))
    positions = positions[np.searchsorted(quotes, positions) % 2 == 0]
    is_opening = np.isin(content[positions], _OPENINGS)
    depth = np.cumsum(np.where(is_opening, 1, -1))
    begins, ends = positions[is_opening & (depth == _MOST_NESTED + 1)], positions[~is_opening & (depth == _MOST_NESTED)]
    if not len(begins) or len(begins) != len(ends):
        return data
    depth_change = np.zeros(len(content) + 1, np.int8)
    depth_change[begins], depth_change[ends + 1] = 1, -1
    flattened = np.where(np.cumsum(depth_change[:-1], dtype=np.int8) > 0, ord(" "), content)
    flattened[begins] = ord("0")
    return flattened.astype(np.uint8).tobytes()


def object_of_pairs(pairs: list[tuple[str, Any]]) -> Any:
    """Return the object of the pairs that a JSON parser passes to its hook; TWICE if a name occurs twice."""
    value = dict(pairs)
    return value if len(value) == len(pairs) else TWICE


def _make_feature(geometry: Any, properties: dict[str, Any], *, centroids: bool) -> _Feature:
    if not isinstance(geometry, dict):
        return _Feature(properties=properties)
    if centroids and geometry.get("type") in ("Polygon", "MultiPolygon"):
        return _Feature(properties=properties, polygon=or_none(lambda: json.dumps(geometry)))
    if geometry.get("type") != "Point":
        return _Feature(is_other_shape=True, properties=properties)
    point = geometry.get("coordinates")
    if isinstance(point, list) and len(point) >= 2 and all(type(value) in (int, float) for value in point[:2]):
        return _Feature(float(point[0]), float(point[1]), False, properties)
    return _Feature(properties=properties)


def geojson_crs(top: Any) -> CRS:
    """Return CRS84, unless the parsed file has the member `crs` of GeoJSON before RFC 7946."""
    declared = top.get("crs") if isinstance(top, dict) else None
    if declared is None:
        return CRS("OGC:CRS84")
    if not isinstance(declared, dict) or declared.get("type") != "name":
        raise InputError("The GeoJSON's crs member is not a name; links are never followed. Save the file in longitude and latitude.")
    return without_private_text("The GeoJSON's crs member names no known CRS.", lambda: CRS.from_user_input(declared["properties"]["name"]))


def _from_features(features: list[_Feature], columns: PointColumns) -> RawPoints:
    if features and all(feature is _NO_FEATURE for feature in features):
        raise UnusableFileError(_NO_FEATURES, len(features))
    others = sum(feature.is_other_shape for feature in features)
    if others and others == len(features):
        raise UnusableFileError(NOT_POINTS, len(features))
    x = np.array([feature.x for feature in features], np.float64)
    y = np.array([feature.y for feature in features], np.float64)
    polygons = [index for index, feature in enumerate(features) if feature.polygon is not None]
    shapes = shapely.from_geojson(np.array([features[index].polygon for index in polygons], object), on_invalid="ignore")
    x[polygons], y[polygons] = xy_of(polygons_as_points(np.asarray(shapes, object)))

    def person(value: Any) -> str | None:
        return None if value is None or value != value else canonical_text(value).decode("utf-8", "surrogatepass")

    def number_or_text(value: Any) -> Any:
        return value if type(value) in (int, float, str) else None

    def read(name: str) -> NDArray[np.object_]:
        cells = np.empty(len(features), object)
        cells[:] = list(map(person if name == columns.person else number_or_text, (each.properties.get(name) for each in features)))
        return cells

    return raw_points(columns, read, x=x, y=y, has_other_shapes=others > 0)
