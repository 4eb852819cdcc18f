"""The number of records in each occupied lattice cell, the private input of every point mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpviz.arrays import Floats, Integers, Places
from dpviz.data.bounding import Bound, People
from dpviz.data.cell_counts import CellCounts, count_coordinates
from dpviz.data.cells import (
    array_of,
    cells_of,
    leave_masked_out,
    most_per_cell,
    total_of,
    whole_counts,
    xy_of_frame,
)
from dpviz.data.counts import Counts
from dpviz.data.empty import NONE_IN_DOMAIN
from dpviz.data.frame_columns import each_row_of_frame, named_columns
from dpviz.data.marks import declares_unit
from dpviz.data.roles import warn_each_row
from dpviz.errors import DomainError, InputError
from dpviz.space.domain import Domain, as_domain

if TYPE_CHECKING:
    import geopandas

    from dpviz.space.rectangle import Bounds


@dataclass(frozen=True, kw_only=True, eq=False)
class PointCounts(Counts):
    """Records per occupied lattice cell. PRIVATE: only a mechanism or a study may look inside.

    Attributes:
        domain: the public domain.
        column: (k,) lattice columns of the occupied cells, ordered by row, then column.
        row: (k,) lattice rows of the occupied cells, 0 in the south.

    The others, and what is refused, are those of `dpviz.data.counts.Counts`; a record in a cell that the domain's mask covers is outside.

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

    family: ClassVar[str] = "points"
    none_inside: ClassVar[str] = NONE_IN_DOMAIN
    beyond_frame: ClassVar[str] = "outside the domain"
    frame_words: ClassVar[str] = "a Domain"
    has_levels: ClassVar[str] = "Points on this domain have zoom levels"
    places: ClassVar[tuple[str, ...]] = ("column", "row")

    domain: Domain
    column: Places
    row: Places

    def _check_places(self) -> None:
        if min(self.column.min(), self.row.min()) < 0 or max(self.column.max(), self.row.max()) >= self.domain.side:
            raise InputError("column and row must lie on the domain's lattice.")
        mask = self.domain.mask
        if mask is not None and not mask.holds(self.column, self.row, self.domain.order).all():
            raise InputError("column and row must lie in cells that the domain's mask leaves open.")
        cell = self.row * np.int64(self.domain.side) + self.column
        if (cell[1:] <= cell[:-1]).any():
            raise InputError("Cells must be distinct and ordered by row, then column.")

    def __repr__(self) -> str:
        """A text without a single private number, so that logs and tracebacks cannot leak."""
        return f"PointCounts(domain={self.domain!r}, unit={self.unit!r}, contributions={self.contributions})"

    @property
    def frame(self) -> Domain:
        """The domain."""
        return self.domain

    @property
    def level_range(self) -> range:
        """The zoom levels."""
        return range(self.domain.order + 1)

    @property
    def leaves(self) -> int:
        """How many cells the lattice has."""
        return self.domain.side**2

    def places_of(self, leaves: Integers) -> dict[str, Places]:
        """Return column and row of cells, without those that the domain's mask covers; see `Counts.places_of`."""
        cell = leaves.copy()
        leave_masked_out(cell, self.domain)
        row, column = np.divmod(cell[cell >= 0], self.domain.side)
        return {"column": column.astype(np.int32), "row": row.astype(np.int32)}

    def identity(self) -> tuple[Any, ...]:
        """Return plain values that identify the domain, but for its mask, in a fingerprint of the counts."""
        return "points", self.domain.bounds, self.domain.crs, self.domain.order

    @classmethod
    def empty_in(cls, frame: Any, contributions: int = 1, *, exactly: bool = False) -> PointCounts | None:
        """Make counts without any record on a domain; None for another frame. PUBLIC."""
        nowhere, none = np.zeros(0, np.int32), np.zeros(0, np.int64)
        empty = cls(domain=frame, column=nowhere, row=nowhere, count=none) if isinstance(frame, Domain) else None
        return empty if empty is None or contributions == 1 else empty.of_persons(contributions, exactly=exactly)

    @property
    def is_masked(self) -> bool:
        """Whether the domain has a mask."""
        return self.domain.mask is not None

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
        row, column = (counted.cells >> domain.order).astype(np.int32), (counted.cells & (domain.side - 1)).astype(np.int32)
        return cls.of_cells(counted, bound, domain=domain, column=column, row=row, **marks)

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
        return cls.from_cell_counts(CellCounts(cells=occupied, counts=counts[occupied], outside=outside), domain, None)

    def blocks(self, zoom: int) -> Integers:
        """Return (2**zoom, 2**zoom) true counts of equal blocks of the domain, [row, column], row 0 in the south."""
        shift, side = self.domain.order - zoom, 1 << zoom
        block = (self.row >> shift).astype(np.int64) * side + (self.column >> shift)
        sums = np.bincount(block, weights=self.count, minlength=side * side)  # exact: float64 holds every total up to 2**53
        return sums.astype(np.int64).reshape(side, side)
