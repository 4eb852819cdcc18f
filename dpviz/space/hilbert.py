"""Lattice place <-> place on the Hilbert curve, and the boxes around stretches of the curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Lines

_BITS = 6
_AT_ONCE = 1 << 14
_TURNS = np.array([1, 0, 0, 2])


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """The stretch of the Hilbert curve that each node of a tree stands for.

    Attributes:
        order: the curve runs through ``2**order`` x ``2**order`` squares, each a lattice cell or an equal block of them.
        first: (n,) first place of each stretch.
        last: (n,) place after its end, greater than `first`.
    """

    order: int
    first: Integers
    last: Integers

    def __post_init__(self) -> None:
        self.first.flags.writeable = self.last.flags.writeable = False

    def of(self, nodes: Integers) -> Curve:
        """The stretches of some nodes."""
        return replace(self, first=self.first[nodes], last=self.last[nodes])

    def places(self, column: NDArray[np.integer], row: NDArray[np.integer], lattice: int) -> Integers:
        """(k,) places on the curve of (k,) cells of a lattice of order `lattice`."""
        shift = lattice - self.order
        return hilbert(column >> shift, row >> shift, self.order)

    def rectangles(self, lattice: int) -> Lines:
        """(n, 4) boxes around the stretches: west, south, east, north as lines of a lattice of order `lattice`."""
        return boxes(self.first, self.last, self.order) << (lattice - self.order)


def hilbert(column: NDArray[np.integer], row: NDArray[np.integer], order: int) -> Integers:
    """(k,) places on the curve, below ``4**order``, of (k,) columns and rows below ``2**order``, `order` 1 to 24.

    The curve runs from the south-western to the south-eastern corner. A place of one order less is a quarter of it, rounded down.

    >>> hilbert(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), 1).tolist()
    [0, 1, 2, 3]
    """
    code = np.empty(len(column), np.int64)
    for part in _parts(len(column)):
        x, y = column[part].astype(np.int32), row[part].astype(np.int32)
        state, found = np.zeros(len(x), np.int32), np.zeros(len(x), np.int64)
        for bits, shift in _chunks(order):
            low = (1 << bits) - 1
            step = _encoder(bits)[state << 2 * bits | ((x >> shift) & low) << bits | (y >> shift) & low]
            found <<= 2 * bits
            found |= step >> 2
            state = step & 3
        code[part] = found
    return code


def places(code: Integers, order: int) -> tuple[Integers, Integers]:
    """(k,) columns and (k,) rows of (k,) places on the curve of an order.

    >>> [part.tolist() for part in places(np.arange(4), 1)]
    [[0, 0, 1, 1], [0, 1, 1, 0]]
    """
    column, row, state = (np.zeros(len(code), np.int64) for _ in range(3))
    for bits, shift in _chunks(order):
        xs, ys, states = _walks(bits)
        key = state, (code >> 2 * shift) & (4**bits - 1)
        column, row, state = column << bits | xs[key], row << bits | ys[key], states[key]
    return column, row


def boxes(first: Integers, last: Integers, order: int) -> Lines:
    """Bounding boxes of stretches of the curve.

    Args:
        first: (n,) first place of each stretch.
        last: (n,) place after its end; first < last.
        order: of the curve.

    Returns:
        (n, 4) west, south, east, north as lines of its grid, 0 to ``2**order``.
    """
    found = np.empty((len(first), 4), np.int32)
    for part in _parts(len(first)):
        found[part] = _boxes(first[part], last[part] - 1, order).T
    return found


def _boxes(low: Integers, high: Integers, order: int) -> Lines:
    """(4, n) boxes of closed stretches: the paths to both ends are walked from the top down, and all between is added.

    As long as the paths coincide, the quarters strictly between their next steps lie inside; once they have parted, those
    after the lower path's step and those before the upper one's.
    """
    between, quarter, turned = _unions()
    ends, size = np.stack([low, high]), len(low)
    place, state = np.zeros((2, 2, size), np.int32), np.zeros((2, size), np.int32)
    lowest, highest = np.full_like(place, 1 << order), np.zeros_like(place)
    together = np.ones(size, np.bool_)
    for shift in range(order - 1, -1, -1):
        step = (ends >> 2 * shift).astype(np.int32) & 3
        after, before = np.where(together, step[0], -1), np.where(together, step[1], 4)
        union = between[:, (state * 5 + np.stack([step[0], after]) + 1) * 5 + np.stack([before, step[1]])]
        place <<= 1
        np.minimum(lowest, (place + union[:2]) << shift, out=lowest)
        np.maximum(highest, (place + union[2:]) << shift, out=highest)
        key = state << 2 | step
        place += quarter[:, key]
        state = turned[key]
        together &= step[0] == step[1]
    return np.concatenate([np.minimum(lowest, place).min(axis=1), np.maximum(highest, place + 1).max(axis=1)])


def _parts(size: int) -> Iterator[slice]:
    """Slices that stay in cache."""
    return (slice(start, min(start + _AT_ONCE, size)) for start in range(0, size, _AT_ONCE))


def _chunks(order: int) -> Iterator[tuple[int, int]]:
    """Bits taken at once, and bits below them, from the top down; a short chunk comes first."""
    for shift in range((order - 1) // _BITS * _BITS, -1, -_BITS):
        yield min(_BITS, order - shift), shift


@lru_cache(maxsize=_BITS)
def _walks(bits: int) -> tuple[Lines, Lines, Lines]:
    """(4, 4**bits) columns, rows and last states of all walks of so many steps from each state.

    State 0 steps SW, NW, NE, SE; 1 mirrors that in the diagonal, 2 in the other one, 3 in both. Mirrors add up by exclusive or.
    """
    state = np.arange(4)[:, None]
    column, row = np.zeros_like(state), np.zeros_like(state)
    step = np.arange(4)
    across, up = step >> 1, step >> 1 ^ step & 1
    for _ in range(bits):
        state = state[..., None]
        mirrored, turned = (state ^ state >> 1) & 1 == 1, state >> 1
        column = (2 * column[..., None] + (np.where(mirrored, up, across) ^ turned)).reshape(4, -1)
        row = (2 * row[..., None] + (np.where(mirrored, across, up) ^ turned)).reshape(4, -1)
        state = (state ^ _TURNS).reshape(4, -1)
    return column.astype(np.int32), row.astype(np.int32), state.astype(np.int32)


@lru_cache(maxsize=_BITS)
def _encoder(bits: int) -> NDArray[np.int32]:
    """By state, `bits` bits of the column and of the row: bits of the place, then two of the next state."""
    column, row, state = _walks(bits)
    table = np.empty((4, 4**bits), np.int32)
    np.put_along_axis(table, (column << bits | row).astype(np.int64), np.arange(4**bits, dtype=np.int32) << 2 | state, axis=1)
    return table.ravel()


@lru_cache(maxsize=1)
def _unions() -> tuple[Lines, Lines, Lines]:
    """Tables for one step: the box of the quarters strictly between two steps, the quarter of a step, and the state in it.

    Returns:
        (4, 100) west, south, east, north in quarters by state, first step + 1 and second step (2 and 0, which change
        nothing, where nothing lies between); (2, 16) column and row by state and step; (16,) states.
    """
    column, row, state = _walks(1)
    edges = np.stack([column, row, column + 1, row + 1])
    after, before, step = np.ogrid[-1:4, 0:5, 0:4]
    inside = (after < step) & (step < before)
    low = np.where(inside, edges[:2, :, None, None, :], 2).min(-1)
    high = np.where(inside, edges[2:, :, None, None, :], 0).max(-1)
    between = np.concatenate([low, high]).reshape(4, 100)
    return between, np.stack([column.ravel(), row.ravel()]), state.ravel()
