"""A counting pass as plain values that every engine is handed: which columns are counted, and which cell each row belongs to.

A cell is row * side + column of a lattice, or origin * leaves + destination. OUTSIDE marks a good row that lies outside the
domain or the regions, BAD one with a cell that is missing, not finite or unreadable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.data.bounding import Bound, canonical_text
from dpviz.data.cells import BAD, cells_of, clip_counts, pairs_of, xy_of
from dpviz.data.columns import WEIGHTS_REFUSED, is_text, no_number, readable_numbers
from dpviz.data.flows import BLOCK_CODE, counts_of, ids_of
from dpviz.data.reading.text_rows import NO_BAD_LINES, BadLines
from dpviz.errors import DpvizError, InputError
from dpviz.space.domain import Domain

if TYPE_CHECKING:
    from dpviz.space.regions import Regions


_REMEDY = "Clean the files, or pass bad_rows='drop' to leave such rows out."
_MISSING_WORDS = tuple(pyarrow.csv.ConvertOptions().null_values)


@dataclass(frozen=True, kw_only=True)
class CountingPass:
    """One reading of all rows of some files of one schema.

    Attributes:
        files: real paths, in any order; the result does not hang on it.
        format: CSV, TSV or Parquet (GeoParquet is that with `GeometryCells`).
        schema: of every file. All columns of text tables are texts.
        finder: how a row becomes a place.
        count: column of records per row; None where each row is one record.
        person: column that says who a row belongs to; None where the unit is one record.
        bound: of each person's records; None without `person`.
        drop: whether bad rows are left out; else the first kind of them is refused.
        unknown_refused: whether rows outside are refused like bad ones unless bad rows are dropped: ids that are no region.
        size: bytes of all files.
    """

    files: tuple[Path, ...] = field(repr=False)
    format: str
    schema: pa.Schema
    finder: CellFinder
    count: str | None = None
    person: str | None = None
    bound: Bound | None = None
    drop: bool = False
    unknown_refused: bool = False
    size: int = field(default=0, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, none twice."""
        return tuple(dict.fromkeys(name for name in (*self.finder.columns, self.count, self.person) if name is not None))

    @property
    def is_text(self) -> bool:
        """Whether the files are text tables."""
        return self.format in ("CSV", "TSV")

    def weights(self, column: pa.ChunkedArray) -> Integers:
        """(n,) records that each row stands for, cut to 2**53; -1 where the cell is no whole number, at least 0."""
        if isinstance(self.finder, IdPairs):
            counts = counts_of(column, "", texts=True)
            return np.where(counts.fault != 0, -1, counts.trips)
        records, whole = clip_counts(readable_numbers(column))
        return np.where(whole, records, -1)

    def persons(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """(n,) canonical texts of whom rows belong to, as large strings; null where the cell is missing or blank."""
        return person_texts(column, words=self.is_text)


def person_texts(column: pa.ChunkedArray, *, words: bool) -> pa.ChunkedArray:
    """Canonical texts of people, null where missing; `words` says that NA, null, NaN and the like are missing, as in text tables."""
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    column = column.cast(plain_type(column.type))
    nobody = _MISSING_WORDS if words else ()
    if is_text(column.type):
        texts = column.cast(pa.large_string())
        blank = pc.or_(pc.equal(pc.utf8_trim_whitespace(texts), ""), pc.is_in(texts, value_set=pa.array(nobody, pa.large_string())))
        return pc.if_else(blank, pa.scalar(None, pa.large_string()), texts)
    if pa.types.is_integer(column.type):
        return column.cast(pa.large_string())
    encoded = pa.concat_arrays(column.chunks or [pa.array([], column.type)]).dictionary_encode()
    missing = encoded.dictionary.is_null(nan_is_null=True).to_pylist()
    known = [
        None if absent else canonical_text(value).decode() for value, absent in zip(encoded.dictionary.to_pylist(), missing, strict=True)
    ]
    return pa.chunked_array([pa.array(known, pa.large_string()).take(encoded.indices)])


@dataclass(frozen=True, kw_only=True)
class Faults:
    """How many rows break which rule; a row with several faults is counted by the first of them. PRIVATE.

    Attributes:
        rows: all that were read, bad lines left out; 0 where that is not known.
        lines: those of a text table that are no rows.
        place: rows without a readable place.
        count: rows without a readable count.
        person: rows of nobody.
        outside: good rows outside the domain or the regions.
    """

    rows: int = field(default=0, repr=False)
    lines: BadLines = field(default=NO_BAD_LINES, repr=False)
    place: int = field(default=0, repr=False)
    count: int = field(default=0, repr=False)
    person: int = field(default=0, repr=False)
    outside: int = field(default=0, repr=False)

    def refuse(self, asked: CountingPass) -> None:
        """Raise what the rows break; where bad rows are dropped, only that a column has not one good cell.

        Raises:
            InputError: names the columns and the rule, never a cell or a number of rows.
        """
        if asked.drop:
            self._refuse_hopeless(asked)
            return
        self.lines.refuse(_REMEDY)
        if self.place:
            raise InputError(f"{_cell_fault(asked.finder)} {_REMEDY}")
        if self.count:
            raise InputError(f"Column {asked.count!r} has a cell that is not a whole number, at least 0. {WEIGHTS_REFUSED} {_REMEDY}")
        if self.person:
            raise InputError(f"Column {asked.person!r} has a missing cell: every row must say whom it belongs to. {_REMEDY}")
        if self.outside and asked.unknown_refused:
            listed = " or ".join(map(repr, asked.finder.columns))
            raise InputError(f"Column {listed} has an id that is no leaf region; ids are compared letter by letter. {_REMEDY}")

    def _refuse_hopeless(self, asked: CountingPass) -> None:
        """Refuse columns of texts without a single number, and counts without a whole one."""
        texts = [name for name in asked.finder.columns if is_text(plain_type(asked.schema.field(name).type))]
        if self.rows and self.place == self.rows and texts and not isinstance(asked.finder, IdPairs):
            raise no_number(*texts)
        if self.rows and self.count == self.rows:
            raise InputError(f"Column {asked.count!r} holds no whole number. {WEIGHTS_REFUSED}")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's cells; of a dictionary, that of its values."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _cell_fault(finder: CellFinder) -> str:
    if isinstance(finder, GeometryCells):
        return "A geometry is missing, empty, no point or not finite."
    listed = " or ".join(map(repr, finder.columns))
    if not isinstance(finder, IdPairs):
        return f"Column {listed} has a cell that is no finite number."
    return f"Column {listed} has an id that is missing, or is neither a text nor a whole number."


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Who follows a pass, and may end it. It stays in the process that asked.

    Attributes:
        progress: is told the part that is done, from 0 to 1.
        cancel: ends the pass once it is set.
    """

    progress: Callable[[float], object] | None = None
    cancel: threading.Event | None = None

    @property
    def cancelled(self) -> bool:
        """Whether the pass is to end."""
        return self.cancel is not None and self.cancel.is_set()

    def at(self, done: float) -> None:
        """Say that a part from 0 to 1 is done.

        Raises:
            DpvizError: the pass was cancelled.
        """
        if self.cancelled:
            raise cancelled()
        if self.progress is not None:
            self.progress(min(max(float(done), 0.0), 1.0))


def cancelled() -> DpvizError:
    """The error of a pass that was ended from outside."""
    return DpvizError("The counting was cancelled; nothing of it was kept.")


Columns = Mapping[str, pa.ChunkedArray]


class CellFinder(Protocol):
    """What every engine asks: which columns, how many places there are, and the place of each row."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, by the file's own names."""
        ...

    @property
    def size(self) -> int:
        """How many places there are: 0 to size - 1."""
        ...

    def places(self, columns: Columns) -> Integers:
        """(n,) the place of each row, OUTSIDE or BAD; a function of the row alone. `columns` are chunked Arrow columns."""
        ...


class LeafLookup(Protocol):
    """The leaf region of a coordinate pair: OUTSIDE where it lies in none, BAD where it is not finite."""

    def places(self, x: Floats, y: Floats) -> NDArray[np.int32] | Integers:
        """(n,) places of leaf regions."""
        ...


@dataclass(frozen=True, kw_only=True)
class XyCells:
    """Lattice cells of two columns of coordinates, in the domain's CRS.

    Attributes:
        x: column of easting or longitude: numbers, or texts of numbers.
        y: column of northing or latitude.
        domain: the public frame.
    """

    x: str
    y: str
    domain: Domain

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (self.x, self.y)

    @property
    def size(self) -> int:
        """Cells of the lattice."""
        return self.domain.side**2

    def places(self, columns: Columns) -> Integers:
        """(n,) the cell of each row."""
        return cells_of(readable_numbers(columns[self.x]), readable_numbers(columns[self.y]), self.domain)


@dataclass(frozen=True, kw_only=True)
class GeometryCells:
    """Lattice cells of a GeoParquet file's points, in the domain's CRS.

    Attributes:
        geometry: the column.
        encoding: "WKB", or "point" for a record of x and y.
        domain: the public frame.
    """

    geometry: str
    encoding: str
    domain: Domain

    @property
    def columns(self) -> tuple[str, ...]:
        """The column to read."""
        return (self.geometry,)

    @property
    def size(self) -> int:
        """Cells of the lattice."""
        return self.domain.side**2

    def places(self, columns: Columns) -> Integers:
        """(n,) the cell of each row; BAD where there is no point."""
        cells = columns[self.geometry]
        if self.encoding == "point":
            x, y = (readable_numbers(pc.struct_field(cells, axis)) for axis in "xy")
        else:
            x, y = xy_of(shapely.from_wkb(cells.to_numpy(zero_copy_only=False), on_invalid="ignore"))
        return cells_of(x, y, self.domain)


@dataclass(frozen=True, kw_only=True)
class LeafIds:
    """Ids of leaf regions, found letter by letter; with blanks around them only if not without.

    Attributes:
        texts: (leaves,) the ids, in the order of their places.
        cut: letters to which Census block codes of 15 are cut first; None where a column holds none.
    """

    texts: tuple[str, ...] = field(repr=False)
    cut: int | None = None

    @classmethod
    def of(cls, regions: Regions, cut: int | None = None) -> LeafIds:
        """Those of a hierarchy's finest level."""
        return cls(texts=tuple(regions.ids_of(regions.depth).tolist()), cut=cut)

    def places(self, column: pa.ChunkedArray) -> Integers:
        """(n,) places of the leaves, OUTSIDE where no leaf has the id, BAD where it is missing or no id."""
        ids = ids_of(column, "")
        texts = [text[: self.cut] if self.cut and len(text) == BLOCK_CODE else text for text in ids.texts]
        known = self._index.get_indexer(pd.Index(texts, dtype=object))
        other = np.flatnonzero(known < 0)
        known[other] = self._index.get_indexer(pd.Index([texts[place].strip() for place in other.tolist()], dtype=object))
        return np.append(known.astype(np.int64), BAD)[ids.codes]

    @cached_property
    def _index(self) -> pd.Index[str]:
        return pd.Index(self.texts, dtype=object)


@dataclass(frozen=True, kw_only=True)
class IdPairs:
    """Pairs of leaf regions from two columns of ids.

    Attributes:
        origin: column of ids.
        destination: column of ids.
        starts: the ids of the origins.
        ends: the ids of the destinations.
    """

    origin: str
    destination: str
    starts: LeafIds
    ends: LeafIds

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (self.origin, self.destination)

    @property
    def size(self) -> int:
        """Pairs there can be."""
        return len(self.starts.texts) * len(self.ends.texts)

    def places(self, columns: Columns) -> Integers:
        """(n,) the pair of each row."""
        return pairs_of(self.starts.places(columns[self.origin]), self.ends.places(columns[self.destination]), len(self.ends.texts))


@dataclass(frozen=True, kw_only=True)
class XyPairs:
    """Pairs of leaf regions from two pairs of columns of coordinates.

    Attributes:
        origin: columns of x and y.
        destination: columns of x and y.
        starts: finds the leaf regions of origins, from coordinates in the files' CRS.
        ends: finds those of destinations.
        leaves: how many origins and destinations there are.
        crs: in which the look-ups know the leaves.
    """

    origin: tuple[str, str]
    destination: tuple[str, str]
    starts: LeafLookup = field(repr=False)
    ends: LeafLookup = field(repr=False)
    leaves: tuple[int, int]
    crs: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (*self.origin, *self.destination)

    @property
    def size(self) -> int:
        """Pairs there can be."""
        return self.leaves[0] * self.leaves[1]

    def places(self, columns: Columns) -> Integers:
        """(n,) the pair of each row."""
        x, y, x_end, y_end = (readable_numbers(columns[name]) for name in self.columns)
        return pairs_of(self.starts.places(x, y), self.ends.places(x_end, y_end), self.leaves[1])
