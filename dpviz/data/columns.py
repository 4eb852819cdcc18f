"""Find columns by their names, and read their entries as numbers, texts or people."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.amounts import LONGEST_NUMBER
from dpviz.arrays import Floats
from dpviz.data.bounding import People, find_people, plain_values
from dpviz.data.fingerprints import RowSum
from dpviz.data.library_errors import or_none
from dpviz.data.roles import (
    AXES,
    ENDS,
    NO_COUNT,
    NO_TYPES,
    Pair,
    PublicHeader,
    complete_pairs,
    fold_name,
    is_like_name,
    is_number,
    is_text,
    missing_role,
    plain_type,
    quote_names,
    say_shapes,
    say_ten_millionths,
    says_none,
)
from dpviz.errors import DpvizError, InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyproj import CRS

_WEIGHT = re.compile(r"weight|wgt|(^|[^a-z]|per|hh|fin|pop|samp)wt(s|[^a-z]|$)")
WEIGHTS_REFUSED = (
    "Survey weights are refused: one row would move a count by its weight, more than the privacy guarantee covers."
    " Where each row is one record, and its weight is not to count, say so with count='none'. The sum or mean of a number of each record"
    " can be released between public bounds: see dv.Summed."
)

_USUAL_PAIRS = {
    AXES: "a pair of names alike, such as longitude and latitude, x and y, or easting and northing",
    ENDS: "a pair of names such as origin and destination, from and to, or home and work",
}
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"  # how a number is written, without blanks around it
_LONGEST_EXACT = 16  # digits of which floats do not hold all numbers
MAY_BE_THOUSANDS = r"^[+-]?[0-9]{1,3}\.[0-9]{3}$"  # how a count must not be written: the point may be a mark of thousands
DECLARE_MARKS = (
    "A mark before three digits may be one of thousands: in a text table, declare"
    ' text_format=dv.reading.TextFormat(thousands=",") (or another mark) or text_format=dv.reading.TextFormat(decimal="."); elsewhere,'
    " store numbers."
)

NOT_POINTS = (
    "The geometries are not points. Explode multipoints before loading; polygons are read as their centroids if that is asked for:"
    " centroids=True."
)


class UnusableFileError(InputError):
    """The error for a file of which a column, or the geometries, have entries, and not one can be used.

    A single row may be all that a file has. So where bad rows are dropped, it refuses several files only if it is true of each of them.

    Attributes:
        rows: number of rows of the file; private.
    """

    def __init__(self, text: str, rows: int = 0) -> None:
        super().__init__(text)
        self.rows = rows


@dataclass(frozen=True, kw_only=True)
class PointColumns:
    """Names of the columns of a file of points. None stands for no column, or for a column that is still to be found by its name.

    Attributes:
        x: the column of easting or longitude; None if the points are geometries.
        y: the column of northing or latitude.
        geometry: the column of points in WKT, texts such as POINT (13.4 52.5), instead of x and y.
        count: the column of records that a row stands for.
        person: the column that says who a row belongs to.
    """

    x: str | None = None
    y: str | None = None
    count: str | None = None
    person: str | None = None
    geometry: str | None = None

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The columns of coordinates that are named: x, y and geometry."""
        return tuple(name for name in (self.x, self.y, self.geometry) if name is not None)


@dataclass(frozen=True, kw_only=True, eq=False)
class RawPoints:
    """Rows of a file before bad rows are refused or dropped. PRIVATE.

    Attributes:
        x: (n,) coordinates in the CRS of the file; NaN where an entry is no number or a geometry is no point.
        y: (n,) likewise.
        count: (n,) records of each row, NaN where an entry is no number; None without a counts column.
        person: who each row belongs to; None without a person column.
        ragged: number of further, bad lines of a text table; see `BadLines`.
        has_other_shapes: whether some geometries are not points.
        rows: of the rows of persons, by which the ledger recognises them; None without persons.
    """

    x: Floats = field(repr=False)
    y: Floats = field(repr=False)
    count: Floats | None = field(repr=False)
    person: People | None = field(repr=False)
    ragged: int = field(default=0, repr=False)
    has_other_shapes: bool = field(default=False, repr=False)
    rows: RowSum | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class OpenFile:
    """The header or metadata of a file of points, and a function that reads its rows.

    Attributes:
        format: CSV, TSV, GeoJSON, GeoPackage, GeoParquet, Parquet or Shapefile.
        names: names of the columns, geometry left out.
        has_geometry: whether points come from geometries, not from two columns.
        crs: the CRS that the file declares; None if it declares none.
        rows: number of rows, where the file states it; private.
        take: a function that reads the rows, from the names of their columns as the file spells them, and `bad_rows`.
        types: the declared types of columns by name, where the format declares them.
    """

    format: str
    names: tuple[str, ...]
    has_geometry: bool
    crs: CRS | None
    rows: int | None = field(repr=False)
    take: Callable[[PointColumns, str], RawPoints] = field(repr=False)
    types: Mapping[str, pa.DataType] = field(default_factory=dict, repr=False)

    @property
    def header(self) -> PublicHeader:
        """What is public of the file before a row is read."""
        return PublicHeader(names=self.names, types=self.types, has_geometry=self.has_geometry)


def is_number_text(name: str) -> bool:
    """Return whether a name is written as a number, with a point or a comma before decimals.

    The file may then have no header, so that this is an entry of its first row.
    """
    return re.fullmatch(NUMBER, name.strip().replace(",", ".", 1), re.ASCII) is not None


def resolve_columns(
    names: Sequence[str],
    wanted: PointColumns,
    *,
    has_geometry: bool,
    is_file: bool = True,
    types: Mapping[str, pa.DataType] = NO_TYPES,
) -> PointColumns:
    """Return the wanted columns as the file spells them. x and y are found by their names if they are None.

    Args:
        names: the columns.
        wanted: names of columns.
        has_geometry: whether points are geometries.
        is_file: whether the names are of a file, and may be private: then a search for x and y lists none of them.
        types: the declared types of columns.

    Raises:
        InputError: no column has a wanted name, or several have; the column of counts has the name of a survey weight.
    """
    if has_geometry and wanted.coordinates:
        raise InputError("The points are geometries already: leave x and y out, or geometry.")
    if wanted.geometry is not None and (wanted.x is not None or wanted.y is not None):
        raise InputError("A point is in two columns x and y, or in one column geometry: leave out what does not apply.")
    geometry = None if wanted.geometry is None else find_column(names, wanted.geometry)
    by_axes = not has_geometry and geometry is None
    advice = say_shapes(PublicHeader(names=tuple(names), types=types))
    x, y = find_pair(names, AXES, (wanted.x, wanted.y), is_file=is_file, advice=advice) if by_axes else (None, None)
    count = find_count(names, wanted.count)
    person = None if wanted.person is None else find_column(names, wanted.person)
    return PointColumns(x=x, y=y, count=count, person=person, geometry=geometry)


def find_count(names: Sequence[str], wanted: str | None) -> str | None:
    """Return the wanted column of counts as the file spells it; None if none is wanted, or "none", which says that each row is one.

    Raises:
        InputError: no column or several have the name; it is that of a survey weight; or "none" is also the name of a column, so that
            either could be meant.
    """
    if wanted is None:
        return None
    if not says_none(wanted):
        count = find_column(names, wanted)
        if _WEIGHT.search(fold_name(count)):
            raise InputError(f"Column {count!r} is called a weight. {WEIGHTS_REFUSED}")
        return count
    if any(fold_name(name) == NO_COUNT for name in names):
        raise InputError(
            f"A column is called {NO_COUNT!r}, and count={NO_COUNT!r} says that each row is one: rename the column to count by it, or leave"
            " count out if each row is one."
        )
    return None


def find_pair(
    names: Sequence[str], roles: Pair, wanted: Sequence[str | None], *, is_file: bool, advice: Iterable[str] = ()
) -> tuple[str, str]:
    """Return the columns of a pair of roles: the named ones, or those of the only pair whose names say so, with what is named.

    Args:
        names: the columns.
        roles: `AXES` or `ENDS`.
        wanted: the name of each; None if it is found by its name.
        is_file: as for `resolve_columns`.
        advice: sentences that follow in the error if there is no such pair.

    Raises:
        InputError: there is no such pair, or several; no column has a wanted name, or several have it; one column has both roles.
    """
    named = {role: find_column(names, name) for role, name in zip(roles, wanted, strict=True) if name is not None}
    if len(named) < 2:
        pairs = complete_pairs(names, roles, named)
        if not pairs:
            role = missing_role(names, roles, named)
            missing = f"No column for {role}: there is not {_USUAL_PAIRS[roles]}.{list_columns([] if is_file else names)}"
            raise InputError(" ".join([f"{missing} Say which one it is with {role}='...'.", *advice]))
        if len(pairs) > 1:
            say = f"Say which one it is with {roles[0]}='...' and {roles[1]}='...'."
            raise InputError(f"Several pairs of columns could be {' and '.join(roles)}: {join_pairs(pairs)}. {say}")
        if roles == AXES and (divide := say_ten_millionths(pairs[0])):
            raise InputError(f"{divide}.")
        named = {role: find_column(names, name) for role, name in zip(roles, pairs[0], strict=True)}
    first, second = (named[role] for role in roles)
    if first == second:
        raise InputError(f"{' and '.join(roles)} are the same column {first!r}; they must differ.")
    return first, second


def join_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of pairs of columns, in quotes.

    >>> join_pairs([("x", "y"), ("lon", "lat")])
    "'x' and 'y', or 'lon' and 'lat'"
    """
    return ", or ".join(f"{first!r} and {second!r}" for first, second in pairs)


def list_columns(names: Sequence[str], wanted: str = "") -> str:
    """Return a sentence that lists the columns, and one that proposes the most like a wanted one, with a space before each.

    Where entries seem to stand in place of names, none is shown.

    >>> list_columns(["longitud", "lat"], "longitude")
    " The columns are 'longitud', 'lat'. Did you mean 'longitud'?"
    """
    like_names = list(filter(is_like_name, names))
    if any(map(is_number_text, names)) or not like_names:
        return " In a text table, the first line must hold the names, separated by commas (.csv) or tabs (.tsv), or as it is declared."
    return f" The columns are {quote_names(names)}.{did_you_mean(wanted, like_names)}"


def find_column(names: Sequence[str], wanted: str, error: type[DpvizError] = InputError) -> str:
    """Return the column with the wanted name, as the file spells it.

    Raises:
        InputError: no column has the name, or several have it.
    """
    exact = [name for name in names if name == wanted]
    matches = exact or [name for name in names if fold_name(name) == fold_name(str(wanted))]  # or but for case and blanks around
    if not matches:
        raise error(f"There is no column named {wanted!r}.{list_columns(names, wanted)}")
    if len(matches) > 1:
        raise error(f"Several columns have the name {wanted!r}, in upper or lower case; rename all but one.")
    return matches[0]


def parse_numbers(values: NDArray[np.object_] | pa.ChunkedArray, name: str, *, are_counts: bool = False) -> Floats:
    """Return (n,) numbers of a column, NaN where an entry is no number, or where a count `MAY_BE_THOUSANDS`.

    Raises:
        InputError: the column has entries, and not one is a number.
    """
    if isinstance(values, pa.ChunkedArray):
        numbers, kind = readable_numbers(values, are_counts=are_counts), plain_type(values.type)
        if is_text(kind):
            filled = bool(pc.any(pc.not_equal(values.cast(kind), "")).as_py())
        else:  # a column of stored numbers is never refused as a whole
            filled = len(values) > 0 and not pa.types.is_null(kind) and not is_number(kind)
    else:
        texts = pd.Series(values, dtype=object)
        are_long = or_none(lambda: texts.str.len() > LONGEST_NUMBER)  # without any text there is no `str`
        texts = texts if are_long is None else texts.mask(are_long, "-")  # too long for a number
        numbers = np.asarray(pd.to_numeric(texts, errors="coerce"), np.float64)
        if are_counts:
            marked = [isinstance(text, str) and re.match(MAY_BE_THOUSANDS, text.strip()) is not None for text in texts]
            numbers = np.where(marked, np.nan, numbers)
        filled = bool((texts.notna() & (texts != "")).any())
    if filled and np.isnan(numbers).all():
        raise UnusableFileError(str(no_number(name)), len(numbers))
    return numbers


def no_number(*names: str) -> InputError:
    """Return the error for columns that have entries, none of which is a number."""
    return InputError(
        f"Column {' or '.join(map(repr, names))} holds no number. A number is written in digits, with a point before decimals,"
        ' without units or degree signs. If decimals have commas in a text table, declare text_format=dv.reading.TextFormat(decimal=",");'
        ' if counts have marks of thousands, declare text_format=dv.reading.TextFormat(thousands=",").'
    )


def decode_texts(column: pa.ChunkedArray, encoding: str) -> pa.ChunkedArray:
    """Decode the texts of a column; a text whose bytes are not valid in the encoding is missing."""
    encoded = pa.concat_arrays(column.cast(pa.large_binary()).chunks or [pa.array([], pa.large_binary())]).dictionary_encode()
    texts = [or_none(lambda raw=raw: raw.decode(encoding)) for raw in encoded.dictionary.to_pylist()]  # type: ignore[misc]
    return pa.chunked_array([pa.array(texts, pa.large_string()).take(encoded.indices)])


def readable_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in which texts that are not UTF-8 are missing; Parquet does not check texts.

    Every text must lie inside the column's memory: what Parquet's reader gives does, and `open_arrow` checks it.
    """
    kind = plain_type(column.type)
    if not is_text(kind):
        return column
    if pa.types.is_string_view(kind):  # Arrow lacks functions for views
        kind = pa.large_string()
        column = column.cast(pa.dictionary(column.type.index_type, kind) if pa.types.is_dictionary(column.type) else kind)
    if or_none(lambda: column.validate(full=True) or column) is None:
        return decode_texts(column.cast(kind), "utf-8")
    return column


def readable_numbers(column: pa.ChunkedArray, *, are_counts: bool = False) -> Floats:
    """Return (n,) numbers of a column of numbers or texts, NaN where an entry is none, or where the text of a count `MAY_BE_THOUSANDS`.

    Each number depends on its own entry alone.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_number(column.type):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    if not is_text(column.type):
        return np.full(len(column), np.nan)
    if are_counts and pc.all(pc.and_(pc.ascii_is_decimal(column), pc.less(pc.binary_length(column), _LONGEST_EXACT))).as_py():
        return np.asarray(column.cast(pa.int64()).cast(pa.float64()).to_numpy(), np.float64)  # far faster, and the same
    trimmed = pc.ascii_trim_whitespace(column)
    are_numbers = pc.and_(pc.match_substring_regex(trimmed, NUMBER), pc.less_equal(pc.binary_length(column), LONGEST_NUMBER))
    if are_counts:
        are_numbers = pc.and_not(are_numbers, pc.match_substring_regex(trimmed, MAY_BE_THOUSANDS))
    written = pc.if_else(are_numbers, trimmed, pa.scalar(None, trimmed.type))
    return np.asarray(written.cast(pa.float64()).to_numpy(), np.float64)


def people_of(values: NDArray[np.generic] | pa.ChunkedArray) -> People:
    """Return the people that the entries name; a missing or blank entry is a missing person. Text stays text ('007' is not '7')."""
    if isinstance(values, pa.ChunkedArray):
        kind = plain_type(values.type)
        column = values.cast(pa.large_string() if pa.types.is_string(kind) else kind)  # large strings, because one chunk may pass 2 GiB
        encoded = pa.concat_arrays(column.chunks or [pa.array([], column.type)]).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        missing = np.asarray(encoded.dictionary.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), bool)
        are_numbers = pa.types.is_integer(kind) and not missing.any()
        distinct = plain_values(encoded.dictionary.to_numpy()) if are_numbers else values_of(encoded.dictionary)
        owners = People(codes=np.where(np.r_[missing, True][codes], -1, codes), distinct=distinct)
    else:
        owners = find_people(values)
    if isinstance(owners.distinct, np.ndarray):  # numbers are never blank
        return owners
    blank = [isinstance(value, str) and not value.strip() for value in owners.distinct]
    if not any(blank):
        return owners
    return People(codes=np.where(np.r_[blank, False][owners.codes], -1, owners.codes), distinct=owners.distinct)


def values_of(entries: pa.Array) -> list[Any]:
    """Return (n,) entries as Python's values. A date or time that Python has not is the number that is stored."""
    values: list[Any] | None = or_none(entries.to_pylist)
    if values is not None:
        return values
    return [entry.value if (value := or_none(entry.as_py)) is None and entry.is_valid else value for entry in entries]


def raw_points(columns: PointColumns, read: Callable[[str], Any], **geometry: Any) -> RawPoints:
    """Return the rows in the columns that `read` reads by their names; `geometry` gives x and y if the points are geometries."""
    if "x" not in geometry:
        geometry |= {axis: parse_numbers(read(name), name) for axis, name in zip(AXES, columns.coordinates, strict=True)}
    count = None if columns.count is None else parse_numbers(read(columns.count), columns.count, are_counts=True)
    return RawPoints(count=count, person=None if columns.person is None else people_of(read(columns.person)), **geometry)
