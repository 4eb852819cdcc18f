"""Where the rows of files lie: a locator for each way of saying it. It reads the rows into memory, or tells an engine how to read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from dpviz.data.cells import cells_by_slot, cells_in_period, pairs_of
from dpviz.data.columns import NOT_POINTS, PointColumns, find_column, resolve_columns
from dpviz.data.counting.engines import OnlyNumpyError, make_job, refuse_other_crs, schema_of
from dpviz.data.counting.job import BySlot, GeometryColumn, InPeriod, LeafColumn, Pairs, PointCells, XyColumns
from dpviz.data.fingerprints import sum_rows
from dpviz.data.leaf_ids import LeafIds
from dpviz.data.library_errors import or_none
from dpviz.data.placed_rows import PlacedRows
from dpviz.data.reading.formats import declares_columns
from dpviz.data.reading.geometries import NO_SHAPES, crs_of_file
from dpviz.data.reading.points import header_of, read_rows, weights_of
from dpviz.data.reading.trips import cut_length, is_matrix, open_rows, read_columns, read_ids, resolve_id_columns
from dpviz.data.roles import EachRow, each_row_of, fold_name, unread_columns
from dpviz.data.slots import check_slots
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.arrays import Floats, Integers
    from dpviz.data.bounding import Bound
    from dpviz.data.counting.job import Job
    from dpviz.data.reading.points import PointsRequest
    from dpviz.data.reading.safety import Source
    from dpviz.data.reading.sources import FoundFiles
    from dpviz.data.reading.trips import IdColumns, IdsRequest
    from dpviz.space.categories import Categories
    from dpviz.space.periods import Period

_MATRIX = "The file is a matrix of trips, which only engine='numpy' reads."
_NO_WKT = (
    "Points in WKT are read by engine='numpy' only: store x and y in two columns, or the file as GeoParquet, or choose engine='numpy'."
)


@dataclass(frozen=True, kw_only=True)
class PointLocator:
    """Finds points by coordinates or geometries.

    Attributes:
        request: names the columns; its target is the CRS of the domain, or of the regions.
        find: finds the cell of each point: see `PointCells`.
        size: the number of cells.
        target: what has the target CRS, "domain" or "regions", for errors.
    """

    request: PointsRequest
    find: Callable[[Floats, Floats], Integers] = field(repr=False)
    size: int
    target: str

    def place(self, source: Source) -> PlacedRows:
        """Read the rows of a file, and find the cell of each."""
        raw = read_rows(source, self.request)
        cells = self.find(raw.x, raw.y).astype("int64", copy=False)
        return PlacedRows(cells=cells, count=weights_of(raw), person=raw.person, ragged=raw.ragged, rows=raw.rows)

    def job(self, files: FoundFiles, bound: Bound | None) -> Job:
        """Make the job of counting tables of points."""
        request = self.request
        geo = None if request.columns.coordinates else files.geo
        names = [name for name in schema_of(files).names if geo is None or name not in geo.columns]
        columns = resolve_columns(names, request.columns, has_geometry=geo is not None, types=files.header(geo).types)
        if columns.geometry is not None:
            raise OnlyNumpyError(_NO_WKT)
        if request.centroids and geo is None:
            raise InputError(NO_SHAPES)
        kind = f"{files.format if geo is None else 'GeoParquet'} file"
        crs = crs_of_file(kind, None if geo is None else geo.crs, request.crs, request.target)
        refuse_other_crs(crs, request.target, self.target)
        if geo is not None and not ((geo.may_be_points or request.centroids) and geo.encoding in ("WKB", "point")):
            raise InputError(NOT_POINTS)
        points: XyColumns | GeometryColumn = XyColumns(x=str(columns.x), y=str(columns.y))
        if geo is not None:
            points = GeometryColumn(geometry=geo.primary, encoding=geo.encoding, centroids=request.centroids)
        finder = PointCells(points=points, find=self.find, size=self.size)
        return make_job(files, finder, columns, bound, drop=request.bad_rows == "drop")

    def unread(self, files: FoundFiles) -> EachRow | None:
        """Return what is said of columns that may be counts."""
        if self.request.columns.count is not None:
            return None
        header, columns = header_of(files, self.request)
        unread = unread_columns(header, {*columns.coordinates, str(columns.person)})
        return each_row_of("record", unread, declared=declares_columns(files.format))


@dataclass(frozen=True, kw_only=True)
class IdLocator:
    """Finds leaf regions, or pairs of them, by ids in the columns that `request` names; or reads a matrix of trips."""

    request: IdsRequest

    @property
    def size(self) -> int:
        """The number of leaves or pairs."""
        return math.prod(side.size(side.depth) for side in self.request.sides)

    def place(self, source: Source) -> PlacedRows:
        """Read the rows of a file, and find the leaf or pair of each."""
        return read_ids(source, self.request)

    def job(self, files: FoundFiles, bound: Bound | None) -> Job:
        """Make the job of counting tables of ids."""
        names, request = schema_of(files).names, self.request
        if is_matrix(names, request):
            raise OnlyNumpyError(_MATRIX)
        columns = resolve_id_columns(names, request.columns)
        leaves = [
            LeafColumn(region=name, leaves=LeafIds.from_regions(side, cut_length(name, side)))
            for name, side in zip(columns.found, request.sides, strict=True)
        ]
        finder = leaves[0] if len(leaves) == 1 else Pairs(origin=leaves[0], destination=leaves[1])
        return make_job(files, finder, columns, bound, drop=request.bad_rows == "drop")

    def unread(self, files: FoundFiles) -> EachRow | None:
        """Return what is said of columns that may be counts."""
        names, request = files.header(None).names, self.request
        if request.columns.count is not None or or_none(lambda: is_matrix(names, request)) is not False:
            return None  # the index of pandas, which is stored last, may make the header of a matrix look wrong here
        columns = resolve_id_columns(names, request.columns)
        return _unread_beside(files, "record" if len(request.sides) == 1 else "trip", columns.found, columns)


@dataclass(frozen=True, kw_only=True)
class SlotLocator:
    """Finds places by slots: the place as another locator does, and the slot by one more column of a table.

    Attributes:
        place_of: finds the place.
        column: the column whose entries say the slot.
        categories: what slots there are.
    """

    place_of: PointLocator | IdLocator
    column: str
    categories: Categories

    @property
    def request(self) -> PointsRequest | IdsRequest:
        """How rows are read."""
        return self.place_of.request

    @property
    def size(self) -> int:
        """The number of places times that of slots."""
        return self.place_of.size * self.categories.entries

    def place(self, source: Source) -> PlacedRows:
        """Read the rows of a table, and find the place and the slot of each."""
        placed = self.place_of.place(source)
        slots = _read_slots(source, self.request, self.column, self.categories)
        return replace(placed, cells=cells_by_slot(placed.cells, slots, self.categories.entries))

    def job(self, files: FoundFiles, bound: Bound | None) -> Job:
        """Make the job of counting tables with a column of slots."""
        job = self.place_of.job(files, bound)
        if not isinstance(job.finder, PointCells | LeafColumn):
            raise OnlyNumpyError(_MATRIX)
        return replace(job, finder=BySlot(place=job.finder, column=find_column(job.schema.names, self.column), categories=self.categories))

    def unread(self, files: FoundFiles) -> EachRow | None:
        """Return what is said of columns that may be counts, that of slots not among them."""
        return _leave_out(self.place_of.unread(files), self.column)


@dataclass(frozen=True, kw_only=True)
class PointPairLocator:
    """Finds pairs of leaf regions by the coordinates of origins and destinations.

    Attributes:
        request: names the columns of counts and persons; its x and y are not used.
        finder: names the columns of coordinates, and finds the leaves.
    """

    request: PointsRequest
    finder: Pairs[PointCells]

    @property
    def size(self) -> int:
        """The number of pairs."""
        return self.finder.size

    def place(self, source: Source) -> PlacedRows:
        """Read the trips of a table, and find the pair of each."""
        (x, y), (x_end, y_end) = self.finder.origin.columns, self.finder.destination.columns
        starts = read_rows(source, replace(self.request, columns=replace(self.request.columns, x=x, y=y)))
        ends = read_rows(source, replace(self.request, columns=PointColumns(x=x_end, y=y_end)))
        origin, destination = self.finder.origin.find(starts.x, starts.y), self.finder.destination.find(ends.x, ends.y)
        count = weights_of(starts)
        rows = None if starts.person is None else sum_rows((starts.x, starts.y, ends.x, ends.y), count, starts.person)
        cells = pairs_of(origin, destination, self.finder.destination.size)
        return PlacedRows(cells=cells, count=count, person=starts.person, ragged=starts.ragged, rows=rows)

    def job(self, files: FoundFiles, bound: Bound | None) -> Job:
        """Make the job of counting tables of trips between coordinates."""
        names, request = schema_of(files).names, self.request

        def resolve(side: PointCells, columns: PointColumns) -> tuple[PointCells, PointColumns]:
            x, y = side.columns
            found = resolve_columns(names, replace(columns, x=x, y=y), has_geometry=False)
            return replace(side, points=XyColumns(x=str(found.x), y=str(found.y))), found

        origin, columns = resolve(self.finder.origin, request.columns)
        destination, _ = resolve(self.finder.destination, PointColumns())
        refuse_other_crs(crs_of_file(f"{files.format} file", None, request.crs, request.target), request.target, "regions")
        return make_job(files, Pairs(origin=origin, destination=destination), columns, bound, drop=request.bad_rows == "drop")

    def unread(self, files: FoundFiles) -> EachRow | None:
        """Return what is said of columns that may be counts."""
        return _unread_beside(files, "trip", self.finder.columns, self.request.columns)


@dataclass(frozen=True, kw_only=True)
class PeriodLocator:
    """Finds the rows of one period: their cells as another locator does, and the period by one more column of a table.

    Attributes:
        cell_of: finds the cell of each row.
        period: its column, and its months.
    """

    cell_of: PointLocator | IdLocator | SlotLocator | PointPairLocator
    period: Period

    @property
    def request(self) -> PointsRequest | IdsRequest:
        """How rows are read."""
        return self.cell_of.request

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.cell_of.size

    def place(self, source: Source) -> PlacedRows:
        """Read the rows of a table, and find the cell of each that is of the period."""
        placed = self.cell_of.place(source)
        slots = _read_slots(source, self.request, self.period.time, self.period.categories())
        return replace(placed, cells=cells_in_period(placed.cells, slots))

    def job(self, files: FoundFiles, bound: Bound | None) -> Job:
        """Make the job of counting tables with a column of times."""
        job = self.cell_of.job(files, bound)
        column = find_column(job.schema.names, self.period.time)
        if isinstance(job.finder, InPeriod):
            raise InputError("Rows are of one period only.")
        return replace(job, finder=InPeriod(cell=job.finder, column=column, months=self.period.categories()))

    def unread(self, files: FoundFiles) -> EachRow | None:
        """Return what is said of columns that may be counts, that of times not among them."""
        return _leave_out(self.cell_of.unread(files), self.period.time)


def _read_slots(source: Source, rules: PointsRequest | IdsRequest, column: str, categories: Categories) -> Integers:
    """Return (n,) slots of the rows of a table, from one column."""
    opened = open_rows(source, rules.limits, text_format=rules.text_format, quoted_newlines=rules.quoted_newlines)
    name = find_column(opened.names, column)
    at = [opened.names.index(name)]
    (entries,) = read_columns(opened, at, rules.bad_rows, numbers=at if categories.are_numbers else ()).columns
    return check_slots(entries, categories, f"Column {name!r}", rules.bad_rows)


def _leave_out(each_row: EachRow | None, column: str) -> EachRow | None:
    """Return what is said of columns that may be counts, without one that is none."""
    unread = () if each_row is None else tuple(name for name in each_row.unread if fold_name(name) != fold_name(column))
    return None if each_row is None or not unread else replace(each_row, unread=unread)


def _unread_beside(files: FoundFiles, noun: str, places: Collection[str], columns: PointColumns | IdColumns) -> EachRow | None:
    """Return what is said of tables in which `places` say where: one column of ids, or the coordinates of origins and destinations."""
    if columns.count is not None:
        return None
    header = files.header(None)
    folded = {fold_name(name) for name in (*places, str(columns.person))}
    return each_row_of(noun, unread_columns(header, [name for name in header.names if fold_name(name) in folded]))


Locator: TypeAlias = PointLocator | IdLocator | SlotLocator | PointPairLocator | PeriodLocator
"""What a family adds to the reading of files: which columns say where a row is, and how rows become cells.

`place` reads the rows of a file into memory and finds the cell of each; it raises as `read_points`, `read_areas` and `read_trips` do.
`job` makes the job of counting tables for an engine that reads them itself: `InputError` says that a column is missing or has the wrong
type, or that the CRS is unknown, and `OnlyNumpyError` that only "numpy" reads such files. `unread` returns what is said of columns that
are not read and may be counts, by names and declared types alone.
"""
