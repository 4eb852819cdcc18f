"""The number of records in each occupied lattice cell, the private input of every point mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers
from dpviz.cards import PrivateCard
from dpviz.data.bounding import Bound, People
from dpviz.data.cell_counts import CellCounts, count_coordinates
from dpviz.data.cells import (
    array_of,
    cells_of,
    check_whole,
    freeze,
    leave_masked_out,
    most_per_cell,
    too_many,
    total_of,
    whole_counts,
    xy_of_frame,
)
from dpviz.data.empty import NONE_IN_DOMAIN
from dpviz.data.fingerprints import UNKNOWN, Fingerprints, fingerprints_of_rows
from dpviz.data.frame_columns import each_row_of_frame, named_columns
from dpviz.data.marks import declares_unit
from dpviz.data.roles import EachRow, warn_each_row
from dpviz.errors import DomainError, InputError, check_choice
from dpviz.space.domain import Domain, as_domain

if TYPE_CHECKING:
    import geopandas

    from dpviz.space.rectangle import Bounds


@dataclass(frozen=True, kw_only=True, eq=False)
class PointCounts(PrivateCard):
    """Records per occupied lattice cell. PRIVATE: only a mechanism or a study may look inside.

    Attributes:
        domain: the public domain.
        column: (k,) lattice columns of the occupied cells, ordered by row, then column.
        row: (k,) lattice rows of the occupied cells, 0 in the south.
        count: (k,) records in each cell, at least 1.
        contributions: m, the most records that one protected unit has here; mechanisms scale every sensitivity by it.
        unit: "record", or "person" when a person column was given and the bound was enforced with it.
        dropped: records left out; for the curator only, never released.
        outside: dropped records outside the domain, or in cells that its mask covers.
        bad: dropped records of rows with a missing or malformed entry; one for a row whose count is bad or that cannot be cut into cells.
        over: dropped records that the bound leaves out, or that are beyond the most that a cell holds (`most_per_cell`).
        row_stable: whether each row decided only itself when the data were read; without that no release of them is published.
        unit_declared: whether it was said what is protected, if rows stand for numbers of records; likewise.
        fingerprints: of the files or rows that were counted; private, and not in a pickle.
        each_row: what is said because no column of counts was chosen, and one may be there; None if there is nothing to say. Public, but
            for names of columns that the file does not declare.

    Raises:
        InputError: the arrays differ in length, a cell is outside the lattice, masked or out of order, a count is under 1, the counts add
            up to more than 2**53, the unit is unknown, or outside, bad and over do not add up to dropped.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5, 1.6, 9.5, 99.0], [2.5, 2.4, 2.5, 2.5], domain=domain)
    >>> points.column.tolist(), points.row.tolist(), points.count.tolist(), points.outside
    ([1, 9], [2, 2], [2, 1], 1)

    With a person column, the protected unit is a person, who keeps at most `contributions` records:

    >>> people = dv.PointCounts.from_xy([1.5, 1.6, 9.5], [2.5, 2.4, 2.5], domain=domain, person=["a", "a", "b"], contributions=1)
    >>> people.unit, people.count.tolist(), people.over
    ('person', [1, 1], 1)
    """

    none_inside: ClassVar[str] = NONE_IN_DOMAIN

    domain: Domain
    column: NDArray[np.int32]
    row: NDArray[np.int32]
    count: Integers
    contributions: int = 1
    unit: str = "record"
    dropped: int = 0
    outside: int = 0
    bad: int = 0
    over: int = 0
    row_stable: bool = True
    unit_declared: bool = True
    fingerprints: Fingerprints = field(default=UNKNOWN, repr=False)
    each_row: EachRow | None = None

    def __post_init__(self) -> None:
        for name, kind in (("column", np.int32), ("row", np.int32), ("count", np.int64)):
            object.__setattr__(self, name, freeze(getattr(self, name), kind, name))
        for name, least in (("contributions", 1), ("dropped", 0), ("outside", 0), ("bad", 0), ("over", 0)):
            object.__setattr__(self, name, check_whole(getattr(self, name), name, least))
        if self.outside + self.bad + self.over not in (0, self.dropped):
            raise InputError("outside, bad and over must add up to dropped.")
        check_choice(self.unit, ("record", "person"), "unit", InputError)
        self._check_cells()

    def _check_cells(self) -> None:
        if not len(self.column) == len(self.row) == len(self.count):
            raise InputError("column, row and count must have the same length.")
        if not len(self.count):
            return
        if min(self.column.min(), self.row.min()) < 0 or max(self.column.max(), self.row.max()) >= self.domain.side:
            raise InputError("column and row must lie on the domain's lattice.")
        mask = self.domain.mask
        if mask is not None and not mask.holds(self.column, self.row, self.domain.order).all():
            raise InputError("column and row must lie in cells that the domain's mask leaves open.")
        cell = self.row * np.int64(self.domain.side) + self.column
        if (cell[1:] <= cell[:-1]).any():
            raise InputError("Cells must be distinct and ordered by row, then column.")
        if self.count.min() < 1 or too_many(self.count):
            raise InputError("Counts must be at least 1 and add up to at most 2**53.")

    def __repr__(self) -> str:
        """A text without a single private number, so that logs and tracebacks cannot leak."""
        return f"PointCounts(domain={self.domain!r}, unit={self.unit!r}, contributions={self.contributions})"

    @classmethod
    def from_xy(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        *,
        domain: Domain | Bounds,
        count: ArrayLike | None = None,
        person: ArrayLike | People | None = None,
        contributions: int = 1,
        distinct: bool = False,
        bad_rows: str = "refuse",
        key: bytes | None = None,
        unit: str | None = None,
        _own: tuple[Floats, Floats] | None = None,
    ) -> PointCounts:
        """Count coordinates on the domain's lattice.

        Args:
            x: (n,) easting or longitude, in the domain's CRS.
            y: (n,) northing or latitude.
            domain: the public domain; points outside it or in its masked cells are dropped, points on its east and north edge are kept.
                Or a rectangle with a CRS: a GeoSeries or GeoDataFrame of one row.
            count: (n,) records that each row stands for, whole and >= 0; if None, each row is one record.
            person: (n,) who a record belongs to; each person then keeps at most `contributions` of the records inside
                the domain, chosen at random. Without it the protected unit is one record.
            contributions: m >= 1.
            distinct: whether each person counts once in each cell, and keeps at most m distinct cells.
            bad_rows: "refuse" raises on a coordinate, count or person that is missing or not finite, "drop" leaves the row out.
            key: bytes that decide which records a person keeps; fresh from the operating system if None.
            unit: "record" declares that each record is protected by itself, whoever has it. Needed to publish `count` without `person`:
                without it the counts are marked, and a release of them is for studies.

        Raises:
            InputError: shapes differ, a column holds no numbers, a row is bad under "refuse", or `unit` is given beside `person`.
            DomainError: `domain` is neither a domain nor a rectangle with a CRS.
        """
        domain, is_declared = as_domain(domain, None), declares_unit(unit, person)
        counted, bound = count_coordinates(
            (x, y),
            lambda x, y: cells_of(x, y, domain),
            domain.side**2,
            count=count,
            person=person,
            contributions=contributions,
            distinct=distinct,
            bad_rows=bad_rows,
            key=key,
            own=_own,
        )
        return cls.from_cell_counts(counted, domain, bound, unit_declared=is_declared or count is None)

    @classmethod
    def from_cell_counts(cls, counted: CellCounts, domain: Domain, bound: Bound | None, **marks: bool) -> PointCounts:
        """Make point counts of the records per cell that an engine counted with this `bound`; the unit is a record if there is none.

        `marks` are the fields row_stable and unit_declared.
        """
        left_out = {"outside": counted.outside, "bad": counted.bad, "over": counted.over}
        unit = {} if bound is None else {"contributions": bound.most, "unit": "person"}
        known = {"dropped": sum(left_out.values()), "fingerprints": fingerprints_of_rows(counted.rows)}
        return cls._from_cells(counted.cells, counted.counts, domain, **known, **left_out, **unit, **marks)

    @classmethod
    def from_geodataframe(cls, frame: geopandas.GeoDataFrame, *, domain: Domain | Bounds, **options: Any) -> PointCounts:
        """Count a GeoDataFrame's points, reprojected to the domain's CRS.

        Args:
            frame: n rows with points as geometry, in a CRS if the domain has one.
            domain: the public domain; points outside it are dropped. Or bounds: four numbers or a rectangle, in the CRS of `frame` unless
                they state their own.
            options: count, person, contributions, distinct, bad_rows, key and unit, as for `from_xy`; count and person may be names of
                columns, and count "none" says that each row is one record. Without it, an `UnreadColumnsWarning` names columns of numbers.

        Raises:
            InputError: there is no geometry column, no such column, no CRS although the domain has one, or a geometry that is not a
                point, under "drop" not one that is; the points cannot be reprojected; or as for `from_xy`.
            DomainError: bounds without a CRS, or as for `Domain`.
        """
        domain = as_domain(domain, getattr(frame, "crs", None))
        xy, own = xy_of_frame(frame, domain.crs, "domain", options.get("bad_rows"))
        points = cls.from_xy(*xy, domain=domain, _own=own, **options | named_columns(frame, options))
        each_row = each_row_of_frame("record", frame, options.get("count"), [options.get("person")])
        warn_each_row(each_row)
        return replace(points, each_row=each_row)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, *, domain: Domain | None = None) -> PointCounts:
        """Make point counts of a dense frequency matrix; the protected unit is one of the records that are counted, whoever has it.

        Args:
            matrix: (side, side) whole counts, [row, column], row 0 in the south; side a power of two, at least 2.
            domain: a domain of the same side, whose masked cells are dropped; if None, bounds (0, 0, side, side) and no CRS.

        Raises:
            InputError: the matrix is not square, its side is no power of two, or a count is negative or not whole.
            DomainError: `domain` has another side.
        """
        table = array_of(matrix)
        side = len(table) if table is not None and table.ndim == 2 else 0
        if table is None or table.shape != (side, side) or side < 2 or side & (side - 1):
            raise InputError("A matrix must be square with a side that is a power of two, at least 2.")
        if domain is None:
            domain = Domain(bounds=(0.0, 0.0, float(side), float(side)), crs=None, order=side.bit_length() - 1)
        if domain.side != side:
            raise DomainError("The matrix and the domain's lattice must have the same side.")
        counts = np.minimum(whole_counts(table.ravel(), table.size, "refuse"), most_per_cell(table.size))
        occupied = np.flatnonzero(counts)
        cells = occupied.copy()
        leave_masked_out(cells, domain)
        outside = total_of(counts[occupied[cells < 0]])
        occupied = occupied[cells >= 0]
        return cls._from_cells(occupied, counts[occupied], domain, dropped=outside, outside=outside)

    @classmethod
    def _from_cells(cls, occupied: Integers, counts: Integers, domain: Domain, **options: Any) -> PointCounts:
        row, column = (occupied >> domain.order).astype(np.int32), (occupied & (domain.side - 1)).astype(np.int32)
        for array in (column, row, counts):
            array.flags.writeable = False  # the constructor takes read-only arrays without a copy
        return cls(domain=domain, column=column, row=row, count=counts, **options)

    def blocks(self, zoom: int) -> Integers:
        """Return (2**zoom, 2**zoom) true counts of equal blocks of the domain, [row, column], row 0 in the south."""
        shift, side = self.domain.order - zoom, 1 << zoom
        block = (self.row >> shift).astype(np.int64) * side + (self.column >> shift)
        return _sum_blocks(block, self.count, side * side).reshape(side, side)


def _sum_blocks(block: Integers, counts: Integers, size: int) -> Integers:
    """Return (size,) exact integer sums of the counts in each block; float64 holds every total up to 2**53."""
    return np.bincount(block, weights=counts, minlength=size).astype(np.int64)
