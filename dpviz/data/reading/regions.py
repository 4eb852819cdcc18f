"""Read public files of regions, between which trips are counted."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely
from pyproj import CRS

from dpviz.data.columns import find_column, join_pairs
from dpviz.data.library_errors import or_none, without_private_text
from dpviz.data.reading.geometries import OpenShapes, advise_metres, open_shapes
from dpviz.data.reading.safety import DEFAULT_LIMITS, Limits, Source, read_checked
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.text_rows import plain_counts, with_decimal_points
from dpviz.data.roles import find_levels, find_pairs, find_region_roles, fold_name, in_degrees, in_ten_millionths, quote_names
from dpviz.errors import DomainError
from dpviz.space.denominators import parse_numbers
from dpviz.space.nested import MOST_LEVELS
from dpviz.space.region_tables import ID, LEVEL, NAME, PARENT, is_blank
from dpviz.space.regions import DEGREES, Regions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from dpviz.data.reading.geometries import Shapes

NO_REGIONS = "The file of regions has no rows: there is no region to count in."


@dataclass(frozen=True, kw_only=True)
class RegionsFile:
    """The header or metadata of a file of regions.

    Attributes:
        format: CSV, TSV, Parquet, GeoJSON, GeoPackage, GeoParquet or Shapefile.
        columns: the columns' names as the file spells them, geometry left out.
        has_geometry: whether it holds shapes.
        nested: whether it has a column of parents, so that `read_regions` needs no levels.
        levels: a proposal for a single level: the only column with the name of an id; empty if there is none, or several.
        ids: all columns with the name of an id of a level.
    """

    format: str
    columns: tuple[str, ...]
    has_geometry: bool
    nested: bool
    levels: tuple[str, ...]
    ids: tuple[str, ...] = ()


def inspect_regions(
    source: Source, *, through: bool = False, text_format: TextFormat = PLAIN_TEXT, limits: Limits = DEFAULT_LIMITS
) -> RegionsFile:
    r"""Describe a file of regions by its header or metadata; its rows are read only with `through`.

    Args:
        source: a path, or an open binary file with a `name`.
        through: whether to read every row as well: the regions are made if their levels and CRS are known, else damage is looked for.
        text_format: how a text table is written.
        limits: the most that the file may hold.

    Raises:
        InputError: the file cannot be opened, is damaged or too large.
        DomainError: the regions are not valid.

    >>> import io
    >>> upload = io.BytesIO(b"region_id,parent_id,level\n06,,state\n06037,06,county\n06073,06,county\n")
    >>> upload.name = "counties.csv"
    >>> found = inspect_regions(upload, through=True)
    >>> found.columns, found.nested
    (('region_id', 'parent_id', 'level'), True)
    """
    opened = open_shapes(*read_checked(source, limits), limits, text_format)
    roles = find_region_roles(opened.names)
    nested = all(roles[role] for role in (ID, PARENT, LEVEL))
    ids = roles[ID] if nested else find_levels(opened.names)
    if through:
        _read_through(opened, nested)
    return RegionsFile(
        format=opened.format,
        columns=tuple(opened.names),
        has_geometry=opened.has_geometry,
        nested=nested,
        levels=ids if len(ids) == 1 else (),
        ids=ids,
    )


def holds_points(source: Source, *, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return whether a shape of a file of regions is a point, as homes are, and not a polygon.

    Raises:
        InputError: the file cannot be opened, is damaged or too large.
    """
    opened = open_shapes(*read_checked(source, limits), limits)
    shapes = opened.take(())[1] if opened.has_geometry else None
    return shapes is not None and bool((shapely.get_type_id(shapes) == shapely.GeometryType.POINT).any())


def _read_through(opened: OpenShapes, nested: bool) -> None:
    """Make the regions if their levels and CRS are known; otherwise read all rows."""
    needs_crs = (opened.has_geometry and opened.crs is None) or not all(map(in_degrees, _coordinate_columns(opened.names)))
    if not needs_crs and (nested or _are_locations(opened.names)):
        _make_regions(opened, None, None, None)
    else:
        _read_rows(opened, opened.names)


def propose_levels(source: Source) -> tuple[str, ...]:
    r"""Propose the columns of ids of a public file with a column per level, coarsest first; none if they are not clear.

    They are clear if all columns of texts or whole numbers, names left out, are nested in one way: each id of a level lies in one id of
    the level above, and the ids of the last level are unique; or else if those of texts alone are. Whoever reads the regions decides.

    Args:
        source: a path, or an open binary file with a `name`.

    Raises:
        InputError: the file cannot be opened, is damaged or too large.
        DomainError: there is no region in it.

    >>> import io
    >>> upload = io.BytesIO(b"block,block_name,district\nN1,Hill,N\nN2,Mill,N\nS1,Lake,S\n")
    >>> upload.name = "blocks.csv"
    >>> propose_levels(upload)
    ('district', 'block')
    """
    opened = open_shapes(*read_checked(source, DEFAULT_LIMITS), DEFAULT_LIMITS)
    _refuse_no_features(opened)
    labels = find_region_roles(opened.names)[NAME]
    names = [name for name in opened.names if name not in labels and not fold_name(name).endswith("_name")]
    if not 0 < len(names) <= MOST_LEVELS:
        return ()
    table, _ = _read_rows(opened, names)
    if not len(table):
        raise DomainError(NO_REGIONS)
    with_texts = [name for name in names if any(isinstance(value, str) for value in table[name])]
    sizes = {name: table[name].nunique() for name in names if _are_ids(table[name])}
    if not sizes.keys() >= set(with_texts):
        return ()
    return _find_nested(table, sizes) or _find_nested(table, {name: sizes[name] for name in with_texts})


def _find_nested(table: pd.DataFrame, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Order columns from coarse to fine by their numbers of ids; none if they are not nested in this order."""
    levels = sorted(sizes, key=lambda name: sizes[name])
    if not levels or sizes[levels[-1]] < len(table) or (len(levels) > 1 and sizes[levels[0]] == 1):
        return ()
    is_nested = all(
        sizes[above] < sizes[below] == len(table[[above, below]].drop_duplicates()) for above, below in itertools.pairwise(levels)
    )
    return tuple(levels) if is_nested else ()


def list_denominators(source: Source) -> tuple[str, ...]:
    r"""List the columns of a public file of regions that can be denominators: all their cells that are not blank are numbers of at least 0.

    Args:
        source: a path, or an open binary file with a `name`.

    Raises:
        InputError: the file cannot be opened, is damaged or too large.

    >>> import io
    >>> upload = io.BytesIO(b"block,residents,change\nN1,12,-1\nN2,0,2\n")
    >>> upload.name = "blocks.csv"
    >>> list_denominators(upload)
    ('residents',)
    """
    opened = open_shapes(*read_checked(source, DEFAULT_LIMITS), DEFAULT_LIMITS)
    if not opened.names:
        return ()
    table, _ = _read_rows(opened, opened.names)

    def can_divide(cells: pd.Series) -> bool:
        numbers, blank = parse_numbers(cells), is_blank(cells)
        return bool((~blank).any() and np.isfinite(numbers[~blank]).all() and (numbers[~blank] >= 0).all())

    return tuple(name for name in opened.names if can_divide(table[name]))


def _are_ids(column: pd.Series) -> bool:
    """Return whether all entries of a column are texts that are not blank, or whole numbers."""
    return all(bool(value.strip()) if isinstance(value, str) else type(value) in (int, np.int32, np.int64) for value in column)


def read_regions(
    source: Source,
    *,
    levels: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    crs: object = None,
    denominator: str | None = None,
    text_format: TextFormat = PLAIN_TEXT,
    limits: Limits = DEFAULT_LIMITS,
) -> Regions:
    r"""Read regions in nested levels from a public file.

    Formats: CSV, TSV (a header, and unless declared otherwise UTF-8) and Parquet; GeoJSON, GeoPackage, GeoParquet and zipped Shapefile of
    polygons or points.
    A file holds one row per leaf region with a column of ids per level, or one row per region of any level with the columns
    region_id, parent_id, level and perhaps name. A table may give points as longitude and latitude. Ids stay text.

    Args:
        source: a path, or an open binary file (an upload) with a `name`, whose ending says the format. Never a URL.
        levels: one or more columns of ids, coarsest first. None if the file has a column of parents, or is a table of locations with
            the columns id, lat, lon and perhaps name.
        names: level -> column with readable names. If None, a level's names are in the column called like the level with "_name" at
            the end; names of leaves may also be in a column called name or label.
        crs: the CRS of the coordinates, if the file does not state it; for longitude and latitude of a table EPSG:4326 if None.
        denominator: the column of a public number of each leaf, such as its residents, by which counts are divided to rates.
        text_format: how a text table is written; its marks are those of coordinates and of the denominator.
        limits: the most that the file may hold.

    Raises:
        InputError: the file cannot be opened, is damaged or too large, or a text format is declared and it is no text table.
        DomainError: a column is missing, a denominator is blank, no number or negative, or the regions are not valid: see `Regions`,
            `Regions.from_table` and `Regions.from_parents`.

    >>> import io
    >>> upload = io.BytesIO(b"id,lat,lon,name\n06037,34.1,-118.2,Los Angeles\n06073,33.0,-116.8,San Diego\n")
    >>> upload.name = "locations.csv"
    >>> regions = read_regions(upload)
    >>> regions, regions.names[0].tolist()
    (Regions(2 id), ['Los Angeles', 'San Diego'])
    """
    return _make_regions(open_shapes(*read_checked(source, limits), limits, text_format), levels, names, crs, denominator)


def _make_regions(
    opened: OpenShapes, levels: Sequence[str] | None, names: Mapping[str, str] | None, crs: object, denominator: str | None = None
) -> Regions:
    _refuse_no_features(opened)
    number = None if denominator is None else find_column(opened.names, denominator, DomainError)
    if levels is None and _are_locations(opened.names):
        levels = ["id"]
    if levels is not None:
        if isinstance(levels, str) or not levels:
            raise DomainError("levels must be a list of columns, coarsest first, such as ['state', 'county'].")
        columns = [find_column(opened.names, level, DomainError) for level in levels]
        labels = _find_labels(
            opened.names, columns, None if names is None else {find_column(opened.names, key, DomainError): names[key] for key in names}
        )
        _refuse_several_levels(opened, columns)
        table = _read_table(opened, [*columns, *labels.values()], crs, number)
        return Regions.from_table(table, levels=columns, names=labels, denominator=number)
    canonical = _find_parent_columns(opened.names)
    table = _read_table(opened, list(canonical), crs, number)
    return Regions.from_parents(table.rename(columns=canonical), denominator=None if number is None else canonical.get(number, number))


def _refuse_several_levels(opened: OpenShapes, levels: Sequence[str]) -> None:
    """Refuse a file whose rows are regions of several levels where its columns are read as those of the finest one."""
    of_level = [name for name in find_region_roles(opened.names)[LEVEL] if name not in levels]
    if len(of_level) == 1 and (found := _read_rows(opened, of_level)[0][of_level[0]].dropna().nunique()) > 1:
        raise DomainError(
            f"Column {of_level[0]!r} says that the rows are regions of {found} levels: keep those of the finest one, with a column of ids"
            " per level above; or add a column of parents, parent_id, and leave levels out."
        )


def _refuse_no_features(opened: OpenShapes) -> None:
    """Refuse a file without columns and shapes; features without properties have no columns, either."""
    shapes = None if opened.names else _read_rows(opened, [])[1]
    if not opened.names and (shapes is None or not len(shapes)):
        raise DomainError(NO_REGIONS)


def _are_locations(names: Sequence[str]) -> bool:
    """Return whether a table holds locations as flow maps use them: its columns are id, lat, lon and perhaps name, and no others."""
    return {"id", "lat", "lon"} <= {fold_name(name) for name in names} <= {"id", "lat", "lon", "name"}


def _find_labels(names: Sequence[str], levels: Sequence[str], chosen: Mapping[str, str] | None) -> dict[str, str]:
    """Map levels to columns of readable names, which the caller names, or which are found by their names."""
    if chosen is not None:
        return {level: find_column(names, column, DomainError) for level, column in chosen.items()}
    columns_of_level = {level: [name for name in names if fold_name(name) == f"{fold_name(level)}_name"] for level in levels}
    if levels and not columns_of_level[levels[-1]]:
        columns_of_level[levels[-1]] = [name for name in find_region_roles(names)[NAME] if name not in levels]
    return {level: columns[0] for level, columns in columns_of_level.items() if len(columns) == 1}


def _find_parent_columns(names: Sequence[str]) -> dict[str, str]:
    """Map the file's own names of columns to region_id, parent_id, level and name.

    Raises:
        DomainError: region_id, parent_id or level is missing, or several columns could be one of the four.
    """
    columns = {
        role: [name for name in matches if fold_name(name) == role] or list(matches) for role, matches in find_region_roles(names).items()
    }
    if missing := [role for role in (ID, PARENT, LEVEL) if not columns[role]]:
        raise DomainError(
            f"The file does not say how its regions are nested (no column {missing[0]!r}). Pass levels=[...], the columns of ids from"
            f" coarse to fine (one is enough), out of {quote_names(names)}."
        )
    for role, matches in columns.items():
        if len(matches) > 1:
            raise DomainError(f"Several columns could be {role!r}: {quote_names(matches)}. Rename all but one, or pass levels=[...].")
    return {matches[0]: role for role, matches in columns.items() if matches}


def _read_table(opened: OpenShapes, wanted: Sequence[str], crs: object, denominator: str | None) -> pd.DataFrame:
    """Return the wanted columns, with the file's shapes or, if it has none, points made of its columns of coordinates."""
    wanted = wanted if denominator is None else [*wanted, denominator]
    axes = () if opened.has_geometry else _coordinate_columns(opened.names)
    shapes_crs = crs_of(opened, crs) if opened.has_geometry else _crs_of_axes(axes, crs)
    table, shapes = _read_rows(opened, (*wanted, *axes))
    if not len(table):
        raise DomainError(NO_REGIONS)
    decimal, thousands = opened.text_format.decimal, opened.text_format.thousands
    if denominator is not None and (decimal or thousands):
        table[denominator] = plain_counts(pa.chunked_array([pa.array(table[denominator])]), decimal, thousands).to_pylist()
    if axes:
        x, y = (_parse_coordinates(table[axis], axis, decimal) for axis in axes)
        if (np.isnan(x) != np.isnan(y)).any():
            raise DomainError("A region has one coordinate without the other.")
        shapes, has_point = np.full(len(x), None, object), ~np.isnan(x)
        shapes[has_point] = shapely.points(x[has_point], y[has_point])
    return table if shapes is None else geopandas.GeoDataFrame(table[list(dict.fromkeys(wanted))], geometry=shapes, crs=shapes_crs)


def _read_rows(opened: OpenShapes, wanted: Sequence[str]) -> tuple[pd.DataFrame, Shapes | None]:
    """Read the wanted columns, each once, and the shapes if there are any."""
    rule = f"The rows cannot be read as {opened.format}: the file is damaged."
    return without_private_text(rule, lambda: opened.take(list(dict.fromkeys(wanted))))


def _coordinate_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of longitude and latitude, or of easting and northing; () unless there are both."""
    pairs = [pair for pair in find_pairs(names) if not any(map(in_ten_millionths, pair))]
    pairs = [pair for pair in pairs if all(map(in_degrees, pair))] or pairs  # which need no CRS
    if len(pairs) > 1:
        raise DomainError(f"Several pairs of columns could be coordinates: {join_pairs(pairs)}. Rename all but one.")
    return pairs[0] if pairs else ()


def _crs_of_axes(axes: Sequence[str], crs: object) -> CRS | None:
    if not axes:
        if crs is not None:
            raise DomainError("The file has neither geometry nor columns of coordinates: leave crs out.")
        return None
    if crs is None and not all(map(in_degrees, axes)):
        raise DomainError(
            f"Columns {quote_names(axes)} are coordinates without a CRS, which is never guessed: pass crs=..., or rename them."
        )
    return parse_crs(DEGREES if crs is None else crs)


def crs_of(opened: OpenShapes, crs: object) -> CRS:
    """Return the CRS of a file's shapes: its own, or `crs` where it states none.

    Raises:
        DomainError: neither is known, or they differ.
    """
    if crs is None:
        if opened.crs is None:
            raise DomainError(f"This {opened.format} file does not state its CRS, which is never guessed: pass crs=..., say 'EPSG:4326'.")
        return opened.crs
    chosen = parse_crs(crs)
    if opened.crs is not None and not chosen.equals(opened.crs, ignore_axis_order=True):
        raise DomainError(f"The file declares another CRS than crs=...; leave crs out, or correct the file.{advise_metres(opened.crs)}")
    return chosen


def parse_crs(crs: object) -> CRS:
    """Return the CRS of a text or another object of the user; raise `DomainError` if it is not known."""
    parsed = or_none(lambda: CRS.from_user_input(crs))
    if parsed is None:
        raise DomainError("The CRS is not known; give an EPSG code such as 'EPSG:4326'.")
    return parsed


def _parse_coordinates(cells: pd.Series, name: str, decimal: str | None) -> NDArray[np.float64]:
    """Return (n,) coordinates of a column, NaN where an entry is missing or blank."""
    filled = cells.notna() & (cells != "")
    if decimal == ",":
        cells = pd.Series(with_decimal_points(pa.chunked_array([pa.array(cells)])).to_pylist(), dtype=object)
    numbers = np.asarray(pd.to_numeric(cells.where(filled, None), errors="coerce"), np.float64)
    if not np.isfinite(numbers[filled.to_numpy(np.bool_)]).all():
        raise DomainError(f"Column {name!r} has a cell that is no finite number; write digits, with a point before decimals.")
    return numbers
