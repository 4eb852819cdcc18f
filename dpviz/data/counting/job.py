"""The counting job that every engine is given: the files, their columns, and how the cell of each row is found.

`dpviz.data.cells` says what a cell is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpviz.arrays import Floats, Integers
from dpviz.data.bounding import Bound, canonical_text
from dpviz.data.cell_counts import Totals
from dpviz.data.cells import (
    BAD,
    REMEDY,
    cells_by_slot,
    cells_in_period,
    clip_counts,
    pairs_of,
    polygons_as_points,
    shapes_of_wkb,
    xy_of,
)
from dpviz.data.columns import DECLARE_MARKS, WEIGHTS_REFUSED, no_number, readable_numbers, values_of
from dpviz.data.leaf_ids import COMPARED, LeafIds
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.text_rows import MISSING_WORDS, SEPARATORS, BadLines, TextLayout
from dpviz.data.roles import is_text, plain_type
from dpviz.data.slots import slots_of
from dpviz.data.trips import counts_of, ids_of
from dpviz.errors import DpvizError, InputError
from dpviz.space.categories import Categories

_WKB_POINT_HEADER, _WKB_POINT_BYTES = b"\x01\x01\x00\x00\x00", 21  # little-endian, a point


@dataclass(frozen=True, kw_only=True)
class Job:
    """What an engine counts in one pass: all rows of some files that have one schema.

    Attributes:
        files: real paths, in any order; the counts do not depend on the order.
        format: CSV, TSV or Parquet (GeoParquet is Parquet with `GeometryColumn`).
        schema: the schema of every file. All columns of text tables are texts.
        finder: finds the cell of each row.
        count: column of records per row; None where each row is one record.
        person: column that says who a row belongs to; None where the unit is one record.
        bound: the bound of each person's records; None without `person`.
        drop: whether bad rows are left out; otherwise they are refused.
        refuse_outside: whether a row outside the domain or the regions is refused or dropped like a bad one. True for ids of regions.
        size: bytes of all files together.
        text_format: the declared format of text tables.
    """

    files: tuple[Path, ...] = field(repr=False)
    format: str
    schema: pa.Schema
    finder: CellFinder
    count: str | None = None
    person: str | None = None
    bound: Bound | None = None
    drop: bool = False
    refuse_outside: bool = False
    size: int = field(default=0, repr=False)
    text_format: TextFormat = PLAIN_TEXT

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, none twice."""
        return tuple(dict.fromkeys(name for name in (*self.finder.columns, self.count, self.person) if name is not None))

    @property
    def is_text(self) -> bool:
        """Whether the files are text tables."""
        return self.format in SEPARATORS

    def kind_of(self, name: str) -> pa.DataType:
        """Return the type of a column's entries."""
        return plain_type(self.schema.field(name).type)

    def text_layout(self, *, as_numbers: bool = False) -> TextLayout:
        """Return how the lines of text tables are cut into the job's columns, in their order.

        Args:
            as_numbers: whether coordinates are read as numbers, which fails if an entry is none; otherwise all columns are read as texts.
        """
        names = self.schema.names
        numbers = {names.index(name) for name in {*self.finder.number_columns} - {self.person}}
        counts = {names.index(name) for name in {self.count} - {self.person, None}}
        return TextLayout(
            separator=self.text_format.separator_of(self.format),
            width=len(names),
            types={
                position: pa.float64() if as_numbers and position in numbers - counts else pa.string()
                for position in map(names.index, self.columns)
            },
            missing=("",),
            encoding=self.text_format.encoding,
            coordinates=numbers,
            counts=counts,
            decimal=self.text_format.decimal,
            thousands=self.text_format.thousands,
        )

    def weights(self, column: pa.ChunkedArray) -> Integers:
        """Return (n,) records that each row stands for, cut to 2**53; -1 where the entry is no whole number of at least 0."""
        if self.finder.by_id:
            counts = counts_of(column, "", texts=True)
            return np.where(counts.fault != 0, -1, counts.trips)
        records, valid = clip_counts(readable_numbers(column, are_counts=True))
        return np.where(valid, records, -1)

    @property
    def persons_are_numbers(self) -> bool:
        """Whether the persons are stored as whole numbers that fit 64 bits with a sign."""
        kind = None if self.person is None else self.kind_of(self.person)
        return kind is not None and bool(pa.types.is_integer(kind)) and kind != pa.uint64()

    def persons(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return (n,) the rows' persons: numbers of 64 bits if all are, else canonical texts; null where the entry is missing or blank."""
        return column.cast(pa.int64()) if self.persons_are_numbers else person_texts(column, in_text_table=self.is_text)

    def refuse(self, totals: Totals, lines: BadLines) -> None:
        """Refuse the first kind of fault that occurs. If bad rows are dropped, refuse only a column without a single good entry.

        Args:
            totals: what all rows add up to.
            lines: the bad lines of text tables.

        Raises:
            InputError: there is such a fault or column. The text names the columns and the rule, never an entry or a number of rows.
        """
        named, by_id = f"Column {' or '.join(map(repr, self.finder.columns))}", self.finder.by_id
        if self.drop:
            texts = [name for name in self.finder.columns if is_text(self.kind_of(name))]
            if totals.rows and totals.cell == totals.rows and texts and not by_id:
                raise no_number(*texts)
            if totals.rows and totals.count == totals.rows:
                raise InputError(f"Column {self.count!r} holds no whole number. {WEIGHTS_REFUSED}")
            return
        lines.refuse(REMEDY)
        if totals.cell:
            raise InputError(f"{self._say_unreadable(named)} {REMEDY}")
        if totals.count:
            fault = f"Column {self.count!r} has a cell that is not a whole number, at least 0."
            raise InputError(f"{fault} {DECLARE_MARKS} {WEIGHTS_REFUSED} {REMEDY}")
        if totals.person:
            raise InputError(f"Column {self.person!r} has a missing cell: every row must say whom it belongs to. {REMEDY}")
        if totals.elsewhere and self.refuse_outside:
            raise InputError(f"{named} has an id that is no leaf region; {COMPARED}. {REMEDY}")

    def _say_unreadable(self, named: str) -> str:
        if isinstance(self.finder, BySlot | InPeriod):
            return f"{named} has a cell that is missing or cannot be read."
        if self.finder.by_id:
            return f"{named} has an id that is missing, or is neither a text nor a whole number."
        if self.finder.number_columns:
            return f"{named} has a cell that is no finite number."
        return "A geometry is missing, empty, no point or not finite."


def person_texts(column: pa.ChunkedArray, *, in_text_table: bool) -> pa.ChunkedArray:
    """Return (n,) canonical texts of persons, as large strings; null where the entry is missing or blank.

    Args:
        column: entries of a person column.
        in_text_table: whether it is a column of a text table, in which the words NA, null, NaN and the like are missing entries.
    """
    column = column.cast(plain_type(column.type))
    missing_words = MISSING_WORDS if in_text_table else ()
    if is_text(column.type):
        texts = column.cast(pa.large_string())
        blank = pc.or_(pc.equal(pc.utf8_trim_whitespace(texts), ""), pc.is_in(texts, value_set=pa.array(missing_words, pa.large_string())))
        return pc.if_else(blank, pa.scalar(None, pa.large_string()), texts)
    if pa.types.is_integer(column.type):
        return column.cast(pa.large_string())
    encoded = pa.concat_arrays(column.chunks or [pa.array([], column.type)]).dictionary_encode()
    missing = encoded.dictionary.is_null(nan_is_null=True).to_pylist()
    texts_of_values = [
        None if absent else canonical_text(value).decode() for value, absent in zip(values_of(encoded.dictionary), missing, strict=True)
    ]
    return pa.chunked_array([pa.array(texts_of_values, pa.large_string()).take(encoded.indices)])


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a count reports its progress, and how it is cancelled. It is not sent to other processes.

    Attributes:
        progress: a function that is called with the part that is done, from 0 to 1; None for no reports.
        cancel: an event that ends the count once it is set.
    """

    progress: Callable[[float], object] | None = None
    cancel: threading.Event | None = None

    @property
    def cancelled(self) -> bool:
        """Whether the count was cancelled."""
        return self.cancel is not None and self.cancel.is_set()

    def part(self, start: float, end: float) -> Progress:
        """Return the progress of a part of the work, which is reported as progress of the whole, from `start` to `end`."""
        report = self.progress
        return self if report is None else replace(self, progress=lambda done: report(start + (end - start) * done))

    def report(self, done: float) -> None:
        """Report the part that is done, from 0 to 1.

        Raises:
            DpvizError: the count was cancelled.
        """
        if self.cancelled:
            raise cancellation()
        if self.progress is not None:
            self.progress(min(max(float(done), 0.0), 1.0))


def cancellation() -> DpvizError:
    """Return the error of a count that was cancelled."""
    return DpvizError("The counting was cancelled; nothing of it was kept.")


Columns = Mapping[str, pa.ChunkedArray]


@dataclass(frozen=True, kw_only=True)
class XyColumns:
    """Points in two columns of coordinates.

    Attributes:
        x: column of easting or longitude: numbers, or texts of numbers.
        y: column of northing or latitude.
    """

    x: str
    y: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (self.x, self.y)

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Both columns."""
        return self.columns

    def coordinates(self, columns: Columns) -> tuple[Floats, Floats]:
        """Return (n,) x and (n,) y; NaN where an entry is no number."""
        return readable_numbers(columns[self.x]), readable_numbers(columns[self.y])


@dataclass(frozen=True, kw_only=True)
class GeometryColumn:
    """Points in a column of a GeoParquet file.

    Attributes:
        geometry: the column of points.
        encoding: "WKB", or "point" for a record of x and y.
        centroids: whether polygons are read as their centroids.
        number_columns: no column holds coordinates as numbers.
    """

    geometry: str
    encoding: str
    centroids: bool = False
    number_columns: ClassVar[tuple[str, ...]] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The column to read."""
        return (self.geometry,)

    def coordinates(self, columns: Columns) -> tuple[Floats, Floats]:
        """Return (n,) x and (n,) y; NaN where a geometry is missing or not a point."""
        shapes = columns[self.geometry]
        if self.encoding == "point":
            return readable_numbers(pc.struct_field(shapes, "x")), readable_numbers(pc.struct_field(shapes, "y"))
        if (points := plain_points(shapes)) is not None:
            return points
        geometries = shapes_of_wkb(shapes.to_numpy(zero_copy_only=False))
        return xy_of(polygons_as_points(geometries) if self.centroids else geometries)


def plain_points(cells: pa.ChunkedArray) -> tuple[Floats, Floats] | None:
    """Return (n,) x and y of geometries in WKB; None unless all are little-endian points in two dimensions, as in most files."""
    geometries = pa.concat_arrays(cells.chunks or [pa.array([], cells.type)])
    if not pa.types.is_binary(geometries.type) or geometries.null_count or not len(geometries):
        return None
    _, offsets, content = geometries.buffers()
    starts = np.frombuffer(offsets, np.int32)[geometries.offset : geometries.offset + len(geometries) + 1]
    if (np.diff(starts) != _WKB_POINT_BYTES).any():
        return None
    wkb = np.frombuffer(content, np.uint8)[starts[0] : starts[-1]].reshape(-1, _WKB_POINT_BYTES)
    if (wkb[:, : len(_WKB_POINT_HEADER)] != np.frombuffer(_WKB_POINT_HEADER, np.uint8)).any():
        return None
    xy = np.ascontiguousarray(wkb[:, len(_WKB_POINT_HEADER) :]).view("<f8").astype(np.float64, copy=False)
    return np.ascontiguousarray(xy[:, 0]), np.ascontiguousarray(xy[:, 1])


@dataclass(frozen=True, kw_only=True)
class PointCells:
    """Finds the cells of points, lattice cells or leaf regions, in the CRS of the domain or the regions.

    Attributes:
        points: the columns that hold the points.
        find: a function from (n,) x and (n,) y to (n,) cells, OUTSIDE and BAD included: see `leaf_finder`.
        size: the number of cells.
    """

    points: XyColumns | GeometryColumn
    find: Callable[[Floats, Floats], Integers] = field(repr=False, compare=False)
    size: int
    by_id: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return self.points.columns

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The columns of coordinates, if they are numbers."""
        return self.points.number_columns

    def cells(self, columns: Columns) -> Integers:
        """Return (n,) the cell of each row; BAD where it has no point."""
        return self.find(*self.points.coordinates(columns)).astype(np.int64, copy=False)


def leaves_of(column: pa.ChunkedArray, leaves: LeafIds) -> Integers:
    """Return (n,) indexes of the leaves of ids: OUTSIDE where no leaf has the id, BAD where the entry is missing or cannot be an id."""
    if pa.types.is_dictionary(column.type):
        encoded = pa.concat_arrays(column.chunks or [pa.array([], column.type)])
        leaf_of_value = np.append(leaves_of(pa.chunked_array([encoded.dictionary]), leaves), BAD)
        found: Integers = leaf_of_value[encoded.indices.fill_null(-1).to_numpy()]
        return found
    ids = ids_of(column, "")
    return np.append(leaves.find(ids.texts), BAD)[ids.codes]  # code -1: no id


@dataclass(frozen=True, kw_only=True)
class LeafColumn:
    """Finds leaf regions from a column of their ids.

    Attributes:
        region: column of ids.
        leaves: the ids of the leaves.
    """

    region: str
    leaves: LeafIds
    by_id: ClassVar[bool] = True
    number_columns: ClassVar[tuple[str, ...]] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The column to read."""
        return (self.region,)

    @property
    def size(self) -> int:
        """The number of leaves."""
        return len(self.leaves.texts)

    def cells(self, columns: Columns) -> Integers:
        """Return (n,) the leaf of each row."""
        return leaves_of(columns[self.region], self.leaves)


Leaves = TypeVar("Leaves", PointCells, LeafColumn)


@dataclass(frozen=True, kw_only=True)
class Pairs(Generic[Leaves]):
    """Finds pairs of leaf regions, by coordinates or by ids.

    Attributes:
        origin: finds the leaf where a trip begins.
        destination: finds the leaf where it ends.
    """

    origin: Leaves
    destination: Leaves

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (*self.origin.columns, *self.destination.columns)

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The columns of coordinates, if they are numbers."""
        return (*self.origin.number_columns, *self.destination.number_columns)

    @property
    def by_id(self) -> bool:
        """Whether the columns hold ids."""
        return self.origin.by_id

    @property
    def size(self) -> int:
        """The number of possible pairs."""
        return self.origin.size * self.destination.size

    def cells(self, columns: Columns) -> Integers:
        """Return (n,) the pair of each row."""
        return pairs_of(self.origin.cells(columns), self.destination.cells(columns), self.destination.size)


@dataclass(frozen=True, kw_only=True)
class BySlot:
    """Finds places by slots.

    Attributes:
        place: finds the place of each row.
        column: the column whose entries say the slot.
        categories: what slots there are.
    """

    place: PointCells | LeafColumn
    column: str
    categories: Categories = field(compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (*self.place.columns, self.column)

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The columns of coordinates, if they are numbers, and that of slots."""
        return (*self.place.number_columns, *((self.column,) if self.categories.are_numbers else ()))

    @property
    def by_id(self) -> bool:
        """Whether places are found by ids."""
        return self.place.by_id

    @property
    def size(self) -> int:
        """The number of places times that of slots."""
        return self.place.size * self.categories.entries

    def cells(self, columns: Columns) -> Integers:
        """Return (n,) the cell of each row."""
        return cells_by_slot(self.place.cells(columns), slots_of(columns[self.column], self.categories), self.categories.entries)


@dataclass(frozen=True, kw_only=True)
class InPeriod:
    """Finds the cells of the rows of one period, and none for other rows.

    Attributes:
        cell: finds the cell of each row.
        column: the column whose entries say the time of a row.
        months: those of the period.
    """

    cell: PointCells | LeafColumn | Pairs[PointCells] | Pairs[LeafColumn] | BySlot
    column: str
    months: Categories = field(compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (*self.cell.columns, self.column)

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The columns of numbers that say where a row is."""
        return self.cell.number_columns

    @property
    def by_id(self) -> bool:
        """Whether places are found by ids."""
        return self.cell.by_id

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.cell.size

    def cells(self, columns: Columns) -> Integers:
        """Return (n,) the cell of each row; NO_SLOT of rows of other periods."""
        return cells_in_period(self.cell.cells(columns), slots_of(columns[self.column], self.months))


CellFinder: TypeAlias = PointCells | LeafColumn | Pairs[PointCells] | Pairs[LeafColumn] | BySlot | InPeriod
"""A rule that finds the cell of each row from its `columns`.

`number_columns` are those that hold coordinates as numbers, or as texts of numbers; `by_id` says whether columns hold ids of regions.
Cells are numbered 0 to `size` - 1. What `cells` returns for a row depends on that row alone.
"""
