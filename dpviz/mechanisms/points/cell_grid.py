"""A grid of noisy cells, and medians read from it: the structure of the cell-based kd-tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.privacy.medians import cell_medians

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class CellGrid:
    """Noisy counts of the cells of a fixed grid. PUBLIC: they were paid for.

    Attributes:
        sums: (c + 1, c + 1) noisy number of records south-west of each crossing, [row, column].
        width: lattice cells per grid cell.
    """

    sums: Integers
    width: int

    @classmethod
    def of(cls, noisy: Integers, width: int) -> CellGrid:
        """From (c, c) noisy counts, [row, column], row 0 in the south."""
        side = len(noisy)
        sums = np.zeros((side + 1, side + 1), np.int64)
        np.cumsum(np.cumsum(noisy, axis=0), axis=1, out=sums[1:, 1:])
        return cls(sums=sums, width=width)

    def medians(self, rectangles: Integers, across: Mask) -> Integers:
        """(n,) split lines of (n, 4) rectangles; columns where `across`, else rows. The middle where no grid line is inside."""
        low, high = (np.where(across, rectangles[:, side], rectangles[:, side + 1]) for side in (0, 2))
        first, last = low // self.width, -(-high // self.width)
        sizes = last - first - 1
        start = np.concatenate([[0], np.cumsum(sizes)])
        line = np.arange(start[-1]) + np.repeat(first + 1 - start[:-1], sizes)
        node = np.repeat(np.arange(len(rectangles)), sizes)
        below = self._below(rectangles[node], across[node], line) - np.repeat(self._below(rectangles, across, first), sizes)
        total = self._below(rectangles, across, last) - self._below(rectangles, across, first)
        return cell_medians((low, high), start, line * self.width, below.astype(np.float64), total.astype(np.float64))

    def _below(self, rectangles: Integers, across: Mask, line: Integers) -> Integers:
        """(k,) noisy records in the grid cells that a rectangle touches along the other axis, below a line of the grid."""
        near = np.where(across, rectangles[:, 1], rectangles[:, 0]) // self.width
        far = -(-np.where(across, rectangles[:, 3], rectangles[:, 2]) // self.width)
        low = self.sums[np.where(across, near, line), np.where(across, line, near)]
        high = self.sums[np.where(across, far, line), np.where(across, line, far)]
        return high - low
