"""Growing a kd-tree level by level, whatever says where its nodes are halved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.data.node_cells import NodeCells
from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.median_tree import Grown
from dpviz.privacy.node_values import NodeValues
from dpviz.space.levels import tree_of

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Halving:
    """The nodes of one binary level that are about to be halved. PRIVATE but for the public attributes.

    Attributes:
        rectangles: (n, 4) west, south, east, north as lattice lines; public.
        across: (n,) halved by a line between columns, else between rows; public.
        cells: the occupied cells of all nodes of the level.
        halved: which of them are halved: all but single cells; public.
    """

    rectangles: Integers
    across: Mask
    cells: NodeCells
    halved: Mask

    @property
    def low(self) -> Integers:
        """(n,) first column or row of each node."""
        return np.where(self.across, self.rectangles[:, 0], self.rectangles[:, 1])

    @property
    def high(self) -> Integers:
        """(n,) the end of its columns or rows."""
        return np.where(self.across, self.rectangles[:, 2], self.rectangles[:, 3])

    def middles(self) -> Integers:
        """(n,) lines in the middle, whatever the data."""
        return (self.low + self.high) // 2

    def values(self) -> NodeValues:
        """Places of the records along the axis on which their node is halved."""
        cells = self.cells.kept(self.halved)
        value, count = cells.along(self.across)
        return NodeValues(value=value, count=count, start=cells.start, low=self.low, high=self.high)


Splitter = Callable[[int, Halving], Integers]
"""From the binary level, 0 at the root, and its nodes to their (n,) lines, strictly inside them."""


def grow(points: PointCounts, height: int, cuts: int, lines: Splitter) -> Grown:
    """Halve every node `cuts` times per step, columns first, then rows and so on.

    A node one cell wide is halved along its other axis; a single cell stays whole, and is a leaf if a step begins with it.

    Args:
        points: private.
        height: steps.
        cuts: binary levels per step.
        lines: says where; it pays for what it reveals.
    """
    side = points.domain.side
    rectangles, cells = np.array([[0, 0, side, side]]), NodeCells.of(points)
    levels, fans, true = [rectangles], [], [cells.records()]
    for step in range(height):
        inner = _sides(rectangles).prod(axis=1) > 1
        rectangles, cells = rectangles[inner], cells.kept(inner)
        parent = np.flatnonzero(inner)
        for cut in range(cuts):
            level = step * cuts + cut
            rectangles, cells, parent = _halved(rectangles, cells, parent, level, lines)
        fans.append(np.bincount(parent, minlength=len(inner)))
        levels.append(rectangles)
        true.append(cells.records())
    fans.append(np.zeros(len(rectangles), np.int64))
    return Grown(tree=tree_of(levels, fans), true=np.concatenate(true))


def _sides(rectangles: Integers) -> Integers:
    """(n, 2) widths and heights."""
    return rectangles[:, 2:] - rectangles[:, :2]


def _halved(rectangles: Integers, cells: NodeCells, parent: Integers, level: int, lines: Splitter) -> tuple[Integers, NodeCells, Integers]:
    """Rectangles, cells and parents of the parts of all nodes; single cells stay as they are."""
    width, height = _sides(rectangles).T
    halved = width * height > 1
    across = (height == 1) | ((width > 1) & (level % 2 == 0))
    line = np.zeros(len(rectangles), np.int64)
    line[halved] = lines(level, Halving(rectangles=rectangles[halved], across=across[halved], cells=cells, halved=halved))
    parts = np.repeat(rectangles, 1 + halved, axis=0)
    second = np.cumsum(1 + halved)[halved] - 1
    axis = np.where(across[halved], 0, 1)
    parts[second - 1, axis + 2] = line[halved]
    parts[second, axis] = line[halved]
    return parts, cells.cut(across, line, halved), np.repeat(parent, 1 + halved)
