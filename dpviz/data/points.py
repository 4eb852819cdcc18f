"""How many records lie in each occupied lattice cell: the private input of every point mechanism."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.errors import DomainError, InputError
from dpviz.space.domain import Domain

if TYPE_CHECKING:
    import geopandas

MOST_RECORDS = 2**53
_DENSE_CELLS = 2**22
_CHUNK = 1 << 16
_NOWHERE = np.zeros(0, np.int64)

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PointCounts:
    """Records per occupied lattice cell. PRIVATE: only a mechanism or a study may look inside.

    Attributes:
        domain: the public frame.
        column: (k,) lattice columns of the occupied cells, ordered by row, then column.
        row: (k,) their lattice rows, 0 in the south.
        count: (k,) records in each, at least 1.
        contributions: m, the most records that one protected unit has here; mechanisms scale every sensitivity by it.
        unit: "record", or "person" when a person column was given and the bound was enforced with it.
        dropped: rows left out (outside the domain, unreadable, over the bound); for the curator only, never released.
    """

    domain: Domain
    column: NDArray[np.int32]
    row: NDArray[np.int32]
    count: Integers
    contributions: int = 1
    unit: str = "record"
    dropped: int = 0

    def __post_init__(self) -> None:
        for array in (self.column, self.row, self.count):
            array.flags.writeable = False

    def __repr__(self) -> str:
        """A text without a single private number, so that logs and tracebacks cannot leak."""
        return f"PointCounts(domain={self.domain!r}, unit={self.unit!r}, contributions={self.contributions})"

    @classmethod
    def from_xy(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        *,
        domain: Domain,
        count: ArrayLike | None = None,
        person: ArrayLike | None = None,
        contributions: int = 1,
        bad_rows: str = "refuse",
        key: bytes | None = None,
    ) -> PointCounts:
        """Count coordinates on the domain's lattice.

        Args:
            x: (n,) easting or longitude, in the domain's CRS.
            y: (n,) northing or latitude.
            domain: the public frame; points outside it are dropped, points on its east and north edge kept.
            count: (n,) records that each row stands for, whole and >= 0; 1 each if None.
            person: (n,) who a record belongs to; each person then keeps at most `contributions` records,
                chosen at random. Without it the protected unit is one record.
            contributions: m >= 1.
            bad_rows: "refuse" raises on a coordinate, count or person that is missing or not finite, "drop" leaves it out.
            key: bytes that decide which records a person keeps; fresh from the operating system if None.

        Raises:
            InputError: shapes differ, a bad row under "refuse", a negative or fractional count, more than 2**53 records.
        """
        x, y = _vector(x, "x"), _vector(y, "y")
        if x.shape != y.shape:
            raise InputError("x and y must have the same length.")
        if isinstance(contributions, bool) or not isinstance(contributions, int | np.integer) or contributions < 1:
            raise InputError("contributions must be a whole number, at least 1.")
        if bad_rows not in ("refuse", "drop"):
            raise InputError("bad_rows must be 'refuse' or 'drop'.")
        weight = None if count is None else _whole_counts(count, len(x), bad_rows)
        total = len(x) if weight is None else int(np.abs(weight).sum())
        cells, inside = _cells(x, y, domain)
        good = np.ones(len(x), np.bool_) if inside else _finite(x, y, bad_rows)
        if weight is not None:
            good &= weight >= 0
        if person is not None:
            rows, weight = _bounded(person, good, weight, int(contributions), bad_rows, key or secrets.token_bytes(16))
            cells, good = cells[rows], good[rows]
        elif contributions != 1:
            raise InputError("contributions above 1 needs a person column to enforce it with; without one the unit is a record.")
        if not inside or weight is not None:
            good &= cells >= 0
            cells, weight = cells[good], None if weight is None else weight[good]
        unit = "record" if person is None else "person"
        occupied, counts = _occupied(cells, weight, domain.side**2)
        return cls._from_cells(occupied, counts, domain, contributions=int(contributions), unit=unit, dropped=total - int(counts.sum()))

    @classmethod
    def from_geodataframe(cls, frame: geopandas.GeoDataFrame, *, domain: Domain, **options: Any) -> PointCounts:
        """Count a GeoDataFrame's points; reprojected to the domain's CRS. `options` as for `from_xy`.

        Raises:
            InputError: no CRS on a frame whose domain has one, or geometries that are not points.
        """
        geometry = frame.geometry
        if domain.crs is not None:
            if frame.crs is None:
                raise InputError("The GeoDataFrame has no CRS; set it with frame.set_crs(...), it is never guessed.")
            geometry = geometry.to_crs(domain.crs)
        kinds = set(geometry.geom_type.dropna().unique())
        if kinds - {"Point"}:
            raise InputError("The geometry column must hold points only.")
        empty = geometry.is_empty | geometry.isna()
        x, y = np.full(len(geometry), np.nan), np.full(len(geometry), np.nan)
        x[~empty], y[~empty] = geometry[~empty].x, geometry[~empty].y
        return cls.from_xy(x, y, domain=domain, **options)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, *, domain: Domain | None = None) -> PointCounts:
        """Take a dense frequency matrix.

        Args:
            matrix: (side, side) whole counts, [row, column], row 0 in the south; side a power of two, at least 2.
            domain: a frame of one's own with the same side; else bounds (0, 0, side, side) on a plain plane.

        Raises:
            InputError: not square, side no power of two, counts that are negative or not whole.
            DomainError: `domain` has another side.
        """
        matrix = np.asarray(matrix)
        side = matrix.shape[0] if matrix.ndim == 2 else 0
        if matrix.ndim != 2 or matrix.shape[1] != side or side < 2 or side & (side - 1):
            raise InputError("A matrix must be square with a side that is a power of two, at least 2.")
        if domain is None:
            domain = Domain(bounds=(0.0, 0.0, float(side), float(side)), crs=None, order=side.bit_length() - 1)
        if domain.side != side:
            raise DomainError("The matrix and the domain's lattice must have the same side.")
        counts = _whole_counts(matrix.ravel(), matrix.size, "refuse")
        occupied = np.flatnonzero(counts)
        return cls._from_cells(occupied, counts[occupied], domain)

    @classmethod
    def _from_cells(cls, occupied: Integers, counts: Integers, domain: Domain, **rest: Any) -> PointCounts:
        row, column = (occupied >> domain.order).astype(np.int32), (occupied & (domain.side - 1)).astype(np.int32)
        return cls(domain=domain, column=column, row=row, count=counts, **rest)

    def blocks(self, zoom: int) -> Integers:
        """(2**zoom, 2**zoom) true counts of equal blocks of the domain, [row, column], row 0 in the south."""
        shift, side = self.domain.order - zoom, 1 << zoom
        place = (self.row >> shift).astype(np.int64) * side + (self.column >> shift)
        return _sums(place, self.count, side * side).reshape(side, side)


def _sums(place: Integers, counts: Integers, size: int) -> Integers:
    """(size,) exact integer sums of `counts` by `place`; float64 holds every total up to 2**53."""
    return np.bincount(place, weights=counts, minlength=size).astype(np.int64)


def _vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = None
    with suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(values, np.float64)
    if array is None:
        raise InputError(f"Column {name} must hold numbers.")  # outside a handler: a context would quote the cell
    if array.ndim != 1:
        raise InputError(f"Column {name} must have one dimension.")
    return array


def _whole_counts(values: ArrayLike, length: int, bad_rows: str) -> Integers:
    """(n,) int64 counts; -1 marks a row to drop."""
    array = np.asarray(values)
    if array.shape != (length,):
        raise InputError("The counts column must have one number per row.")
    if array.dtype == bool or not np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.complexfloating):
        raise InputError("The counts column must hold whole numbers.")
    if np.issubdtype(array.dtype, np.integer):
        bad = (array < 0) | (array > MOST_RECORDS)
    else:
        bad = ~((array >= 0) & (array <= MOST_RECORDS) & (array == np.floor(array)))
    if bad.any():
        if bad_rows == "refuse":
            raise InputError(
                "The counts column must hold whole numbers, at least 0. Survey weights are refused:"
                " one row would move a count by its weight, more than the privacy guarantee covers."
            )
        array = np.where(bad, -1, array)
    counts = array.astype(np.int64)
    if float(np.clip(counts, 0, None).sum(dtype=np.float64)) > MOST_RECORDS:
        raise InputError("The counts column adds up to more than 2**53 records.")
    return counts


def _finite(x: NDArray[np.float64], y: NDArray[np.float64], bad_rows: str) -> NDArray[np.bool_]:
    good = np.isfinite(x)
    good &= np.isfinite(y)
    if bad_rows == "refuse" and not good.all():
        raise InputError("A coordinate is missing, NaN or infinite. Clean the columns, or pass bad_rows='drop' to leave such rows out.")
    return good


def _bounded(
    person: ArrayLike, good: NDArray[np.bool_], weight: Integers | None, most: int, bad_rows: str, key: bytes
) -> tuple[Integers, Integers | None]:
    """Rows to keep so that nobody has more than `most` records, chosen evenly at random.

    Each record gets an independent priority and a person keeps the smallest ones, so a person's choice does not
    depend on anybody else's records: adding a person changes at most `most` of the kept records.
    """
    codes, _ = pd.factorize(np.asarray(person), use_na_sentinel=True)
    if codes.shape != good.shape:
        raise InputError("The person column must have one entry per row.")
    if bad_rows == "refuse" and (codes < 0).any():
        raise InputError("The person column has missing entries. Clean it, or pass bad_rows='drop'.")
    rows = np.flatnonzero(good & (codes >= 0))
    if weight is not None:
        rows = np.repeat(rows, np.minimum(weight[rows], most))
    words = np.random.SeedSequence(int.from_bytes(key, "little")).generate_state(2, np.uint64)
    priority = np.random.Generator(np.random.Philox(key=words)).integers(0, 2**63, len(rows), dtype=np.int64)
    order = np.lexsort((priority, codes[rows]))
    ranked = codes[rows][order]
    first = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.empty(0, np.int64)
    rank = np.arange(len(ranked)) - np.repeat(first, np.diff(np.r_[first, len(ranked)]))
    return rows[order[rank < most]], None


def _cells(x: NDArray[np.float64], y: NDArray[np.float64], domain: Domain) -> tuple[Integers, bool]:
    """(n,) lattice cell numbers, row * side + column, -1 outside the domain or not finite; and whether all are inside.

    Works in chunks that stay in cache, on floats (exact: cells are below 2**48) until the last step.
    """
    cells, buffers, inside = np.empty(len(x), np.int64), np.empty((2, _CHUNK)), True
    west, south, east, north = domain.bounds
    for start in range(0, len(x), _CHUNK):
        part = slice(start, start + _CHUNK)
        column, row = buffers[:, : min(_CHUNK, len(x) - start)]
        outside = _place(x[part], west, east, domain.side, column)
        beyond = _place(y[part], south, north, domain.side, row)
        row *= domain.side
        row += column
        row[outside] = -1
        row[beyond] = -1
        cells[part] = row
        inside = inside and not (outside.size or beyond.size)
    return cells, inside


def _place(values: NDArray[np.float64], low: float, high: float, side: int, out: NDArray[np.float64]) -> Integers:
    """Write lattice places along one axis to `out`; give the indices of those outside. The upper edge is in the last place."""
    with np.errstate(over="ignore", invalid="ignore"):
        np.subtract(values, low, out=out)
        np.multiply(out, side / (high - low), out=out)
        np.floor(out, out=out)
        np.minimum(out, side - 1, out=out)
    if values.min() >= low and values.max() < high:
        return _NOWHERE
    odd = np.flatnonzero(~((values >= low) & (values < high)))
    edge = values[odd] == high
    out[odd] = np.where(edge, side - 1, 0)
    return np.asarray(odd[~edge])


def _occupied(cells: Integers, weight: Integers | None, size: int) -> tuple[Integers, Integers]:
    """Distinct cell numbers, ascending, and the records in each."""
    if size <= max(_DENSE_CELLS, 4 * len(cells)):
        total = np.bincount(cells, minlength=size) if weight is None else _sums(cells, weight, size)
        occupied = np.flatnonzero(total)
        return occupied, total[occupied]
    if weight is None:
        occupied, counts = np.unique(cells, return_counts=True)
        return occupied, counts.astype(np.int64)
    occupied, place = np.unique(cells, return_inverse=True)
    counts = _sums(place, weight, len(occupied))
    keep = counts > 0
    return occupied[keep], counts[keep]
