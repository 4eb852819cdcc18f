"""Convert between lattice cells and positions on the Hilbert curve, and compute bounding boxes of stretches of the curve.

The curve visits the cells of a 2**order x 2**order grid one after the other. A *position* is a cell's number on it, from 0. A *stretch*
is a range of consecutive positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Lines, slices

_BITS = 6
_POSITIONS_AT_ONCE = 1 << 14  # they fit the processor's cache
_TURNS = np.array([1, 0, 0, 2])


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """The stretch of the Hilbert curve that each node of a tree covers.

    Attributes:
        order: the curve visits ``2**order`` x ``2**order`` squares; each is a lattice cell or a square block of cells.
        first: (n,) first position of each stretch.
        last: (n,) the position after the last one of each stretch, greater than `first`.
    """

    order: int
    first: Integers
    last: Integers

    def __post_init__(self) -> None:
        self.first.flags.writeable = self.last.flags.writeable = False

    def select(self, nodes: Integers) -> Curve:
        """Select the stretches of the nodes with (k,) indices `nodes`."""
        return replace(self, first=self.first[nodes], last=self.last[nodes])

    def positions(self, column: NDArray[np.integer], row: NDArray[np.integer], lattice: int) -> Integers:
        """Compute positions of lattice cells on the curve.

        Args:
            column: (k,) columns.
            row: (k,) rows.
            lattice: the lattice's order, at least that of the curve.

        Returns:
            (k,) positions of the squares that contain the cells.
        """
        shift = lattice - self.order
        return hilbert(column >> shift, row >> shift, self.order)

    def rectangles(self, lattice: int) -> Lines:
        """Compute bounding boxes of the stretches.

        Args:
            lattice: the lattice's order, at least that of the curve.

        Returns:
            (n, 4) west, south, east, north as lattice lines.
        """
        return boxes(self.first, self.last, self.order) << (lattice - self.order)


def hilbert(column: NDArray[np.integer], row: NDArray[np.integer], order: int) -> Integers:
    """Compute positions of grid cells on the Hilbert curve, which runs from the south-western to the south-eastern corner.

    A quarter of a position, rounded down, is the position of the containing cell on the curve of one order less.

    Args:
        column: (k,) columns, below ``2**order``.
        row: (k,) rows, below ``2**order``.
        order: the order of the curve, 1 to 24.

    Returns:
        (k,) positions, below ``4**order``.

    >>> hilbert(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), 1).tolist()
    [0, 1, 2, 3]
    """
    code = np.empty(len(column), np.int64)
    for part in slices(len(column), _POSITIONS_AT_ONCE):
        x, y = column[part].astype(np.int32), row[part].astype(np.int32)
        state, result = np.zeros(len(x), np.int32), np.zeros(len(x), np.int64)
        for bits, shift in _chunk_bits(order):
            low = (1 << bits) - 1
            step = _encoding_table(bits)[state << 2 * bits | ((x >> shift) & low) << bits | (y >> shift) & low]
            result <<= 2 * bits
            result |= step >> 2
            state = step & 3
        code[part] = result
    return code


def cells_at(code: Integers, order: int) -> tuple[Integers, Integers]:
    """Find the grid cells at positions on the Hilbert curve: the inverse of `hilbert`.

    Args:
        code: (k,) positions.
        order: the order of the curve, 1 to 24.

    Returns:
        (k,) columns and (k,) rows.

    >>> [part.tolist() for part in cells_at(np.arange(4), 1)]
    [[0, 0, 1, 1], [0, 1, 1, 0]]
    """
    column, row, state = (np.zeros(len(code), np.int64) for _ in range(3))
    for bits, shift in _chunk_bits(order):
        xs, ys, states = _walk_tables(bits)
        key = state, (code >> 2 * shift) & (4**bits - 1)
        column, row, state = column << bits | xs[key], row << bits | ys[key], states[key]
    return column, row


def boxes(first: Integers, last: Integers, order: int) -> Lines:
    """Compute bounding boxes of stretches of the curve.

    Args:
        first: (n,) first position of each stretch.
        last: (n,) the position after the last one of each stretch; first < last.
        order: the order of the curve.

    Returns:
        (n, 4) west, south, east, north as lines of the curve's grid, 0 to ``2**order``.
    """
    result = np.empty((len(first), 4), np.int32)
    for part in slices(len(first), _POSITIONS_AT_ONCE):
        result[part] = _boxes(first[part], last[part] - 1, order).T
    return result


def _boxes(low: Integers, high: Integers, order: int) -> Lines:
    """Compute (4, n) bounding boxes of stretches from `low` to `high`, both included.

    The curve is a tree of quarters. From the top down, the paths to both ends are followed, and the quarters between them are added to
    the box. As long as both paths are in the same quarter, these are the quarters strictly between their next steps. After that they
    are the quarters after the next step of the lower path, and the quarters before the next step of the upper one.
    """
    between, quarter, next_state = _between_tables()
    ends, size = np.stack([low, high]), len(low)
    corner, state = np.zeros((2, 2, size), np.int32), np.zeros((2, size), np.int32)
    lowest, highest = np.full_like(corner, 1 << order), np.zeros_like(corner)
    coincide = np.ones(size, np.bool_)
    for shift in range(order - 1, -1, -1):
        step = (ends >> 2 * shift).astype(np.int32) & 3
        after, before = np.where(coincide, step[0], -1), np.where(coincide, step[1], 4)
        union = between[:, (state * 5 + np.stack([step[0], after]) + 1) * 5 + np.stack([before, step[1]])]
        corner <<= 1
        np.minimum(lowest, (corner + union[:2]) << shift, out=lowest)
        np.maximum(highest, (corner + union[2:]) << shift, out=highest)
        key = state << 2 | step
        corner += quarter[:, key]
        state = next_state[key]
        coincide &= step[0] == step[1]
    return np.concatenate([np.minimum(lowest, corner).min(axis=1), np.maximum(highest, corner + 1).max(axis=1)])


def _chunk_bits(order: int) -> Iterator[tuple[int, int]]:
    """Yield chunks of an order's bits, highest first: the number of bits in the chunk and below it. The first chunk may be short."""
    for shift in range((order - 1) // _BITS * _BITS, -1, -_BITS):
        yield min(_BITS, order - shift), shift


@lru_cache(maxsize=_BITS)
def _walk_tables(bits: int) -> tuple[Lines, Lines, Lines]:
    """Walk all paths of `bits` steps down the tree of quarters, from each of four states: (4, 4**bits) columns, rows and final states.

    A state is an orientation of the curve in a quarter. State 0 visits SW, NW, NE, SE. State 1 is its mirror image in the main
    diagonal, state 2 in the other diagonal, state 3 in both. Two mirror images combine by exclusive or.
    """
    state = np.arange(4)[:, None]
    column, row = np.zeros_like(state), np.zeros_like(state)
    step = np.arange(4)
    across, up = step >> 1, step >> 1 ^ step & 1
    for _ in range(bits):
        state = state[..., None]
        mirrored, next_state = (state ^ state >> 1) & 1 == 1, state >> 1
        column = (2 * column[..., None] + (np.where(mirrored, up, across) ^ next_state)).reshape(4, -1)
        row = (2 * row[..., None] + (np.where(mirrored, across, up) ^ next_state)).reshape(4, -1)
        state = (state ^ _TURNS).reshape(4, -1)
    return column.astype(np.int32), row.astype(np.int32), state.astype(np.int32)


@lru_cache(maxsize=_BITS)
def _encoding_table(bits: int) -> NDArray[np.int32]:
    """Make a table whose index is a state and `bits` bits of column and row, and whose entries are position bits and the next state."""
    column, row, state = _walk_tables(bits)
    table = np.empty((4, 4**bits), np.int32)
    np.put_along_axis(table, (column << bits | row).astype(np.int64), np.arange(4**bits, dtype=np.int32) << 2 | state, axis=1)
    return table.ravel()


@lru_cache(maxsize=1)
def _between_tables() -> tuple[Lines, Lines, Lines]:
    """Make tables for one step down the tree of quarters.

    Returns:
        (4, 100) the box of the quarters strictly between two steps: west, south, east, north, in quarters. The index is state,
        first step + 1, second step. If there are none, the box is 2, 2, 0, 0, which changes no minimum or maximum.
        (2, 16) column and row of the quarter of a step, by state and step.
        (16,) the state in that quarter.
    """
    column, row, state = _walk_tables(1)
    edges = np.stack([column, row, column + 1, row + 1])
    after, before, step = np.ogrid[-1:4, 0:5, 0:4]
    inside = (after < step) & (step < before)
    low = np.where(inside, edges[:2, :, None, None, :], 2).min(-1)
    high = np.where(inside, edges[2:, :, None, None, :], 0).max(-1)
    between = np.concatenate([low, high]).reshape(4, 100)
    return between, np.stack([column.ravel(), row.ravel()]), state.ravel()
