"""Convert between lattice cells and positions on the Z-order (Morton) curve, on which the cells of a quadtree node are consecutive."""

from __future__ import annotations

import numpy as np

from dpviz.arrays import Integers

_BITS = 12
_LOW = (1 << _BITS) - 1
_SPREAD_BITS = np.zeros(1 << _BITS, np.int64)
_GATHERED_BITS = np.zeros(1 << _BITS, np.int64)
for _bit in range(_BITS):
    _SPREAD_BITS |= ((np.arange(1 << _BITS) >> _bit) & 1) << (2 * _bit)
for _bit in range(_BITS // 2):
    _GATHERED_BITS |= ((np.arange(1 << _BITS) >> (2 * _bit)) & 1) << _bit


def morton(column: Integers, row: Integers) -> Integers:
    """Compute positions of lattice cells on the Z-order curve. The four children of a quadtree node have the order SW, SE, NW, NE.

    Args:
        column: (k,) columns, below 2**24.
        row: (k,) rows, below 2**24.

    Returns:
        (k,) positions.

    >>> morton(np.array([0, 1, 0, 1, 2]), np.array([0, 0, 1, 1, 0])).tolist()
    [0, 1, 2, 3, 4]
    """
    code: Integers = _SPREAD_BITS[column & _LOW] | _SPREAD_BITS[row & _LOW] << 1
    if column.size and max(column.max(), row.max()) > _LOW:
        code |= (_SPREAD_BITS[column >> _BITS] | _SPREAD_BITS[row >> _BITS] << 1) << (2 * _BITS)
    return code


def cells_at(code: Integers) -> tuple[Integers, Integers]:
    """Find the lattice cells at positions on the Z-order curve: the inverse of `morton`.

    Args:
        code: (k,) positions.

    Returns:
        (k,) columns and (k,) rows.

    >>> [part.tolist() for part in cells_at(np.arange(5))]
    [[0, 1, 0, 1, 2], [0, 0, 1, 1, 0]]
    """
    return _gather_every_second_bit(code), _gather_every_second_bit(code >> 1)


def _gather_every_second_bit(code: Integers) -> Integers:
    bits = np.zeros_like(code)
    for piece in range(4):
        bits |= _GATHERED_BITS[(code >> (_BITS * piece)) & _LOW] << (_BITS // 2 * piece)
    return bits
