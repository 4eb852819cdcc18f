"""The public mask of a domain: in which cells records can be, and in which nobody can."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers, Mask, number_runs
from dpviz.errors import DomainError
from dpviz.space.corner_sums import corner_sums, sums_at
from dpviz.space.hilbert import cells_at

if TYPE_CHECKING:
    from dpviz.space.hilbert import Curve
    from dpviz.space.tree import Tree

FINEST_MASK = 11
"""The largest order of a mask. On finer lattices a cell of the mask is a square block of lattice cells."""
_NOT_SQUARE = "A mask must be a square table of True and False whose side is a power of two, from 2 to 2,048."


@dataclass(frozen=True, kw_only=True)
class CellMask:
    """The cells in which records can be, called open; the others are masked: nobody can be there.

    A mask is declared in public, as the domain is. It is never made from data. Two masks are equal if the same cells are open.

    Attributes:
        order: the mask has ``2**order`` columns and rows; 1 to 11.
        packed: one bit per cell, row by row from the south-west: 1 if the cell is open.

    Raises:
        DomainError: the order is out of range, `packed` has another size, or no cell is open.

    >>> mask = CellMask.from_open([[True, True], [True, False]])
    >>> mask, mask.open.tolist()
    (CellMask(3 of 4 cells open), [[True, True], [True, False]])
    """

    order: int
    packed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.order <= FINEST_MASK or len(self.packed) != -(-(4**self.order) // 8):
            raise DomainError(_NOT_SQUARE)
        if not self.open.any():
            raise DomainError("The mask leaves no cell open, so that no record could be anywhere.")

    def __repr__(self) -> str:
        return f"CellMask({self.cells_open:,} of {self.open.size:,} cells open)"

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what was computed from them is not sent to other processes."""
        return {"order": self.order, "packed": self.packed}

    @classmethod
    def from_open(cls, is_open: ArrayLike) -> Self:
        """Make a mask of a table.

        Args:
            is_open: (side, side) whether each cell is open, [row, column], row 0 in the south; side a power of two, 2 to 2,048.

        Raises:
            DomainError: another shape or type, or no cell is open.
        """
        table = np.asarray(is_open)
        side = len(table) if table.ndim == 2 else 0
        if table.dtype != np.bool_ or table.shape != (side, side) or side.bit_count() != 1:
            raise DomainError(_NOT_SQUARE)
        return cls(order=side.bit_length() - 1, packed=np.packbits(table).tobytes())

    @classmethod
    def from_masked_cells(cls, column: ArrayLike, row: ArrayLike, order: int) -> Self:
        """Make a mask of a list of masked cells; all others are open.

        Args:
            column: (k,) columns, 0 in the west.
            row: (k,) rows, 0 in the south.
            order: the lattice has 2**order columns and rows; 1 to 11.

        Raises:
            DomainError: the order is out of range, a cell is outside the lattice, or no cell is open.

        >>> CellMask.from_masked_cells([1], [1], order=1).open.tolist()
        [[True, True], [True, False]]
        """
        if not 1 <= order <= FINEST_MASK:
            raise DomainError(_NOT_SQUARE)
        cells = np.asarray(column), np.asarray(row)
        for part in cells:
            if part.dtype.kind not in "iu" or part.shape != cells[0].shape or ((part < 0) | (part >= 1 << order)).any():
                raise DomainError(f"Masked cells must be whole columns and rows from 0 to {(1 << order) - 1}.")
        is_open = np.ones((1 << order, 1 << order), np.bool_)
        is_open[cells[1], cells[0]] = False
        return cls.from_open(is_open)

    @classmethod
    def from_runs(cls, order: int, runs: str) -> Self:
        """Read the text that `runs` writes.

        Raises:
            DomainError: the text is not one of lengths that add up to the number of cells.
        """
        lengths = [int(part) for part in runs.split(" ") if part.isdecimal() and len(part) < 9]
        if not 1 <= order <= FINEST_MASK or sum(lengths) != 4**order or " ".join(map(str, lengths)) != runs:
            raise DomainError("The runs of the mask do not add up to its cells.")
        is_open = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
        return cls.from_open(is_open.reshape(1 << order, -1))

    @property
    def runs(self) -> str:
        """The lengths of runs of masked and open cells by turns, masked ones first, row by row from the south-west.

        >>> CellMask.from_open([[True, True], [True, False]]).runs
        '0 3 1'
        """
        turns = np.flatnonzero(np.diff(self.open.ravel(), prepend=False))
        return " ".join(map(str, np.diff(turns, prepend=0, append=self.open.size).tolist()))

    @property
    def side(self) -> int:
        """The number of columns, and of rows."""
        return 1 << self.order

    @cached_property
    def open(self) -> Mask:
        """(side, side) whether each cell is open, [row, column], row 0 in the south."""
        is_open = np.unpackbits(np.frombuffer(self.packed, np.uint8), count=4**self.order).astype(np.bool_).reshape(self.side, -1)
        is_open.flags.writeable = False
        return is_open

    @property
    def cells_open(self) -> int:
        """The number of open cells."""
        return int(self.open.sum())

    def blocks(self, order: int) -> Mask:
        """Return (2**order, 2**order) whether each block, or finer cell, has an open part, [row, column], row 0 in the south."""
        if order > self.order:
            width = 1 << (order - self.order)
            return np.repeat(np.repeat(self.open, width, axis=0), width, axis=1)
        return self._pyramid[order]

    def open_shares(self, order: int) -> Floats:
        """Return (2**order, 2**order) the open share of each block, or finer cell, 0 to 1, [row, column], row 0 in the south."""
        if order >= self.order:
            return self.blocks(order).astype(np.float64)
        step = 1 << (self.order - order)
        return np.diff(np.diff(self._sums[::step, ::step], axis=0), axis=1) / step**2

    def coarsened(self, order: int) -> CellMask | None:
        """Return the mask of a lattice of this order: the same, or one of blocks if the lattice is coarser; None if all is open then."""
        is_open = self.blocks(min(order, self.order))
        return None if is_open.all() else self if order >= self.order else CellMask.from_open(is_open)

    def holds(self, column: NDArray[np.integer], row: NDArray[np.integer], order: int) -> Mask:
        """Return (k,) whether cells of a lattice of this order, or blocks of 2**order x 2**order, have an open part."""
        shift = max(order - self.order, 0)
        return np.asarray(self._pyramid[min(order, self.order)][row >> shift, column >> shift])

    @cached_property
    def _pyramid(self) -> list[Mask]:
        """Whether blocks have an open part, by the order of the blocks: the whole domain first, single cells last."""
        levels = [self.open]
        for _ in range(self.order):
            is_open = levels[-1]
            levels.append(is_open[::2, ::2] | is_open[1::2, ::2] | is_open[::2, 1::2] | is_open[1::2, 1::2])
        return levels[::-1]

    def cells_in(self, boxes: NDArray[Any], order: int) -> Floats:
        """Count the open lattice cells in boxes. Cells that a box cuts count by the share of their area.

        If boxes are on lattice lines, all numbers here are whole multiples of a power of two and need at most 48 bits: sums are exact.

        Args:
            boxes: (k, 4) west, south, east, north in lattice units, 0 to 2**order.
            order: the order of the lattice, at least that of the mask.

        Returns:
            (k,) numbers of cells.
        """
        if order == self.order and boxes.dtype.kind in "iu":
            (west, south, east, north), sums = boxes.T, self._sums
            cells = sums[north, east] - sums[north, west] - (sums[south, east] - sums[south, west])
        else:
            west, south, east, north = np.ldexp(boxes.astype(np.float64).T, self.order - order)
            below = self._south_west
            cells = below(east, north) - below(west, north) - (below(east, south) - below(west, south))
        return np.asarray(np.ldexp(np.maximum(cells, 0.0), 2 * (order - self.order)))

    def _south_west(self, x: Floats, y: Floats) -> Floats:
        """Count (k,) open cells south-west of points, by bilinear interpolation of sums."""
        i, j = (np.minimum(value.astype(np.int64), self.side - 1) for value in (x, y))
        return sums_at(self._sums, (i, x - i), (j, y - j))

    @cached_property
    def _sums(self) -> Floats:
        """(side + 1, side + 1) the number of open cells south-west of each crossing of lines."""
        return corner_sums(self.open)

    def positions_in(self, curve: Curve) -> Integers:
        """Count (n,) open positions in stretches of a Hilbert curve whose order is at least that of the mask."""
        bits = 2 * (curve.order - self.order)
        is_open, sums = self._along_curve

        def below(position: Integers) -> Integers:
            whole = position >> bits
            return np.asarray((sums[whole] << bits) + is_open[whole] * (position - (whole << bits)))

        return np.asarray(below(curve.last) - below(curve.first))

    @cached_property
    def _along_curve(self) -> tuple[Integers, Integers]:
        """(cells + 1,) whether each cell along the Hilbert curve is open, and the number of open cells before it."""
        column, row = cells_at(np.arange(4**self.order), self.order)
        is_open = self.open[row, column].astype(np.int64)
        return np.append(is_open, 0), np.concatenate([[0], np.cumsum(is_open)])

    def rectangles_in(self, boxes: NDArray[np.integer], order: int) -> tuple[Integers, Floats]:
        """Cut the open parts of boxes into rectangles, one for each run of open cells of a row.

        Args:
            boxes: (k, 4) west, south, east, north as lattice lines.
            order: the order of the lattice, at least that of the mask.

        Returns:
            (r,) index of the box of each rectangle, ascending, and (r, 4) rectangles in lattice units.
        """
        west, south, east, north = np.ldexp(np.asarray(boxes, np.float64).T, self.order - order)
        first_row = south.astype(np.int64)
        box, row = count_up(first_row, np.ceil(north).astype(np.int64))
        starts, ends = self._runs_of_rows
        line = row * (self.side + 1)
        first = np.searchsorted(ends, line + west[box], side="right")
        pair, run = count_up(first, np.maximum(first, np.searchsorted(starts, line + east[box], side="left")))
        box, row, line = box[pair], row[pair], line[pair]
        sides = [np.maximum(starts[run] - line, west[box]), np.maximum(row, south[box])]
        sides += [np.minimum(ends[run] - line, east[box]), np.minimum(row + 1, north[box])]
        return box, np.ldexp(np.stack(sides, axis=1), order - self.order)

    @cached_property
    def _runs_of_rows(self) -> tuple[Integers, Integers]:
        """(runs,) starts and ends of the runs of open cells, as row * (side + 1) + column; both ascend."""
        padded = np.zeros((self.side, self.side + 2), np.int8)
        padded[:, 1:-1] = self.open
        steps = np.diff(padded, axis=1).ravel()  # a row has side + 1 steps
        return np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)


def open_cells(tree: Tree, mask: CellMask | None) -> Floats:
    """Count the lattice cells of each node in which records can be.

    Args:
        tree: any tree of n nodes.
        mask: of the domain; None if records can be everywhere.

    Returns:
        (n,) numbers of cells in each rectangle, or stretch of the curve; 0 for nodes that are wholly masked, which hold no record.
    """
    if mask is None:
        return tree.cells
    if tree.curve is not None:
        return np.ldexp(mask.positions_in(tree.curve).astype(np.float64), 2 * (tree.order - tree.curve.order))
    return mask.cells_in(tree.rectangles(), tree.order)


def count_up(first: Integers, last: Integers) -> tuple[Integers, Integers]:
    """Return, for (n,) ranges of whole numbers first..last - 1, the index of the range of each number, and all numbers in order."""
    index, step = number_runs(last - first)
    return index, step + first[index]
