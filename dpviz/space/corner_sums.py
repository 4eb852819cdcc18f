"""Sums over everything south-west of the corners of a raster, from which the sum in any box takes four look-ups."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers


def corner_sums(blocks: NDArray[Any]) -> Floats:
    """Add up (r, c) blocks, [row, column], to the (r + 1, c + 1) sums of all blocks south-west of each corner."""
    sums = np.zeros((blocks.shape[0] + 1, blocks.shape[1] + 1))
    sums[1:, 1:] = blocks
    return accumulate(sums)


def accumulate(blocks: NDArray[Any]) -> NDArray[Any]:
    """Add to each of (r, c) blocks, in place, all blocks south-west of it, and return them.

    NumPy's cumulative sum down the columns of a large raster takes nine times as long as adding its rows.
    """
    for below, row in pairwise(blocks):
        np.add(row, below, out=row)
    return np.cumsum(blocks, axis=1, out=blocks)


def sums_at(sums: Floats, columns: tuple[Integers, Floats], rows: tuple[Integers, Floats]) -> Floats:
    """Interpolate sums between corners, which is exact if blocks are uniform.

    Args:
        sums: of everything south-west of each corner.
        columns: the index of the column of each point, and how far the point lies in it, 0 to 1.
        rows: the same of its row.
    """
    (i, right), (j, up) = columns, rows
    low = sums[j, i] * (1 - right) + sums[j, i + 1] * right
    high = sums[j + 1, i] * (1 - right) + sums[j + 1, i + 1] * right
    return np.asarray(low * (1 - up) + high * up)
