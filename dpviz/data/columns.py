"""Find the columns that are meant, and turn their cells into numbers or into codes for people."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.arrays import Floats
from dpviz.data.bounding import People, people
from dpviz.data.reading.safety import attempt
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyproj import CRS

X_NAMES = ("lon", "lng", "long", "longitude", "x", "easting")
Y_NAMES = ("lat", "latitude", "y", "northing")
COUNT_NAMES = ("count", "counts", "n", "records", "people")
PERSON_NAMES = ("person", "person_id", "personid", "user", "user_id", "userid", "uid", "device", "device_id", "subject", "subject_id")

_WEIGHT = re.compile(r"weight|wgt|(^|[^a-z]|per|hh|fin|pop|samp)wt(s|[^a-z]|$)")
WEIGHTS_REFUSED = (
    "Survey weights are refused: one row would move a count by its weight, more than the privacy guarantee covers."
    " Leave the column out to count one per row."
)

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"  # of a text without blanks around it

NOT_POINTS = "The geometries are not points. Explode multipoints, or take centroids, before loading."


@dataclass(frozen=True, kw_only=True)
class PointColumns:
    """Names of the columns that make up a point record; None where there is none.

    Attributes:
        x: easting or longitude; None too if the file has geometries.
        y: northing or latitude.
        count: records that a row stands for.
        person: who a row belongs to.
    """

    x: str | None = None
    y: str | None = None
    count: str | None = None
    person: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RawPoints:
    """Rows of a file before any rule was applied to them. PRIVATE.

    Attributes:
        x: (n,) in the CRS of the file; NaN where a cell is no number or a geometry is no point.
        y: (n,) likewise.
        count: (n,) NaN where a cell is no number; None without a counts column.
        person: who each row belongs to; None without a person column.
        ragged: further rows of a text table that have more or fewer cells than the header.
        has_other_shapes: some geometries are not points.
    """

    x: Floats = field(repr=False)
    y: Floats = field(repr=False)
    count: Floats | None = field(repr=False)
    person: People | None = field(repr=False)
    ragged: int = field(default=0, repr=False)
    has_other_shapes: bool = field(default=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class OpenFile:
    """What a file's header or metadata says, and the way to its columns.

    Attributes:
        format: CSV, TSV, GeoJSON, GeoPackage, GeoParquet, Parquet or Shapefile.
        names: of the columns, geometry left out.
        has_geometry: whether points come from geometries, not from two columns.
        crs: as the file declares it; None if it does not.
        rows: how many, where the file says it; private.
        take: reads the columns it is given by the file's own names; the text is the caller's rule for bad rows.
    """

    format: str
    names: tuple[str, ...]
    has_geometry: bool
    crs: CRS | None
    rows: int | None = field(repr=False)
    take: Callable[[PointColumns, str], RawPoints] = field(repr=False)


def folded(name: str) -> str:
    """The form in which names are compared: trimmed, any case alike."""
    return name.strip().casefold()


def candidates(names: Iterable[str], aliases: Sequence[str]) -> list[str]:
    """Those of a file's column names that are one of the aliases, in any case."""
    return [name for name in names if folded(name) in aliases]


def only_candidate(names: Iterable[str], aliases: Sequence[str]) -> str | None:
    """The one column that is called by an alias; None if there is none, or several to choose from."""
    found = candidates(names, aliases)
    return found[0] if len(found) == 1 else None


def resolved(names: Sequence[str], asked: PointColumns, *, has_geometry: bool) -> PointColumns:
    """The file's own names of the columns that were asked for; x and y are detected if they were not.

    Raises:
        InputError: a name is not there, or two columns fit; the counts column is called a weight.
    """
    if has_geometry and (asked.x is not None or asked.y is not None):
        raise InputError("The file has point geometries of its own: leave x and y out.")
    x = None if has_geometry else _coordinate(names, asked.x, X_NAMES, "x")
    y = None if has_geometry else _coordinate(names, asked.y, Y_NAMES, "y")
    if x is not None and x == y:
        raise InputError(f"x and y are the same column {x!r}; they must differ.")
    count = None if asked.count is None else _named(names, asked.count)
    if count is not None and _WEIGHT.search(folded(count)):
        raise InputError(f"Column {count!r} is called a weight. {WEIGHTS_REFUSED}")
    return PointColumns(x=x, y=y, count=count, person=None if asked.person is None else _named(names, asked.person))


def _coordinate(names: Sequence[str], asked: str | None, aliases: Sequence[str], axis: str) -> str:
    if asked is not None:
        return _named(names, asked)
    found = candidates(names, aliases)
    if not found:
        raise InputError(
            f"No column for {axis}: the header names none of {', '.join(aliases)}. Say which one it is with {axis}='...';"
            " the first line of a text table must hold the names, separated by commas (.csv) or tabs (.tsv)."
        )
    if len(found) > 1:
        raise InputError(f"Several columns could be {axis}: {' and '.join(map(repr, found))}. Say which one it is with {axis}='...'.")
    return found[0]


def _named(names: Sequence[str], asked: str) -> str:
    exact = [name for name in names if name == asked]
    found = exact or [name for name in names if folded(name) == folded(str(asked))]
    if not found:
        raise InputError(f"There is no column named {asked!r}.")
    if len(found) > 1:
        raise InputError(f"Several columns answer to the name {asked!r}; rename all but one.")
    return found[0]


def numbers(values: NDArray[np.generic] | pa.ChunkedArray, name: str) -> Floats:
    """(n,) numbers of a column, NaN where a cell holds none.

    Raises:
        InputError: the column is wholly text: it has cells, and not one is a number.
    """
    if isinstance(values, pa.ChunkedArray):
        found, filled = readable_numbers(values), _is_filled(values)
    elif values.dtype.kind in "iuf":
        return values.astype(np.float64, copy=False)
    else:
        texts = pd.Series(values, dtype=object)
        found = np.asarray(pd.to_numeric(texts, errors="coerce"), np.float64) if values.dtype.kind in "OU" else np.full(len(values), np.nan)
        filled = bool((texts.notna() & (texts != "")).any())
    if filled and np.isnan(found).all():
        raise no_number(name)
    return found


def no_number(*names: str) -> InputError:
    """The error for a column that has cells, and not one is a number; or for one of several."""
    return InputError(
        f"Column {' or '.join(map(repr, names))} holds no number. A number is written in digits, with a point before decimals,"
        " without thousands separators, units or degree signs."
    )


def _is_filled(column: pa.ChunkedArray) -> bool:
    """Whether a column that may hold numbers has cells that do not; one of stored numbers is never refused as a whole."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if is_number(kind):
        return False
    if is_text(kind):
        return bool(pc.any(pc.not_equal(column.cast(kind), "")).as_py())
    return len(column) > 0 and not pa.types.is_null(kind)


def is_number(kind: pa.DataType) -> bool:
    """Whether cells of an Arrow type are numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of an Arrow type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def decoded(column: pa.ChunkedArray, encoding: str) -> pa.ChunkedArray:
    """The texts of a column of texts, missing where the bytes of one are not of that encoding."""
    encoded = pa.concat_arrays(column.cast(pa.large_binary()).chunks or [pa.array([], pa.large_binary())]).dictionary_encode()
    texts = [attempt(lambda raw=raw: raw.decode(encoding)) for raw in encoded.dictionary.to_pylist()]  # type: ignore[misc]
    return pa.chunked_array([pa.array(texts, pa.large_string()).take(encoded.indices)])


def readable_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a Parquet file, missing where a text is not UTF-8, which Parquet does not check; one without texts as it is."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_text(kind):
        return column
    if attempt(lambda: column.validate(full=True) or column) is None:
        return decoded(column.cast(kind), "utf-8")
    return column.cast(pa.large_string()) if pa.types.is_string_view(kind) else column  # for which Arrow lacks functions


def readable_numbers(column: pa.ChunkedArray) -> Floats:
    """(n,) numbers of a column of numbers or texts, NaN where a cell holds none; each is a function of its cell alone."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_number(column.type):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    if not is_text(column.type):
        return np.full(len(column), np.nan)
    trimmed = pc.ascii_trim_whitespace(column)
    written = pc.if_else(pc.match_substring_regex(trimmed, NUMBER), trimmed, pa.scalar(None, trimmed.type))
    return np.asarray(written.cast(pa.float64()).to_numpy(), np.float64)


def owners(values: NDArray[np.generic] | pa.ChunkedArray) -> People:
    """Who each cell names, nobody where it is missing or blank; text stays text ('007' is not '7')."""
    found = _arrow_people(values) if isinstance(values, pa.ChunkedArray) else people(values)
    blank = [isinstance(value, str) and not value.strip() for value in found.distinct]
    if not any(blank):
        return found
    return People(codes=np.where(np.r_[blank, False][found.codes], -1, found.codes), distinct=found.distinct)


def _arrow_people(column: pa.ChunkedArray) -> People:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    column = column.cast(pa.large_string() if pa.types.is_string(kind) else kind)  # large: one chunk may pass 2 GiB
    encoded = pa.concat_arrays(column.chunks or [pa.array([], column.type)]).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
    missing = np.asarray(encoded.dictionary.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), bool)
    return People(codes=np.where(np.r_[missing, True][codes], -1, codes), distinct=encoded.dictionary.to_pylist())


def raw_points(columns: PointColumns, get: Callable[[str], Any], **rest: Any) -> RawPoints:
    """Rows from columns that can be asked for by name."""
    if "x" not in rest:
        assert columns.x is not None  # noqa: S101  (for the type checker: resolved columns have x and y, or geometry)
        assert columns.y is not None  # noqa: S101
        rest |= {"x": numbers(get(columns.x), columns.x), "y": numbers(get(columns.y), columns.y)}
    count = None if columns.count is None else numbers(get(columns.count), columns.count)
    return RawPoints(count=count, person=None if columns.person is None else owners(get(columns.person)), **rest)
