"""Audits of point mechanisms: neighbouring made-up points on small lattices, and what an attacker sees of their releases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpviz.arrays import Integers
from dpviz.data.points import PointCounts
from dpviz.mechanisms.audit_numbers import largest_chance, manifest_numbers, pair_of
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.wavelet import WaveletSpread, coefficients
from dpviz.release.point_release import PointRelease
from dpviz.space.tree import Tree

MOST_NODES = 40
_MOST_LISTED = 4


class Added(NamedTuple):
    """Records of one person that are added to an input.

    Attributes:
        order: order of the lattice.
        occupied: column, row and number of records of each cell that is occupied without the added records.
        cells: column and row of each added record; several records may lie in the same cell.
    """

    order: int
    occupied: tuple[tuple[int, int, int], ...] = ()
    cells: tuple[tuple[int, int], ...] = ((0, 0),)

    @property
    def words(self) -> str:
        """Description of the two inputs and their difference, for the audit's table."""
        cells, side = Counter(self.cells), 1 << self.order
        if len(cells) > _MOST_LISTED:
            return f"a person's {len(self.cells)} records in {len(cells)} cells of {side} x {side}, beside many others"
        who = "a record" if len(self.cells) == 1 else f"a person's {len(self.cells)} records"
        where = f"cell {self.cells[0]}" if len(cells) == 1 else ", ".join(f"{cell}: {times}" for cell, times in cells.items())
        others = ", ".join(f"{number} in ({column}, {row})" for column, row, number in self.occupied)
        return f"{who} in {where} of {side} x {side}, beside {others or 'none'}"

    def inputs(self) -> tuple[PointCounts, PointCounts]:
        """Make two inputs: with the added records, and without them."""
        matrix = np.zeros((1 << self.order, 1 << self.order), np.int64)
        for column, row, number in self.occupied:
            matrix[row, column] = number
        with_added = matrix.copy()
        np.add.at(with_added, tuple(np.transpose(self.cells)[::-1]), 1)
        one, other = (
            replace(PointCounts.from_matrix(cells_of_input), contributions=len(self.cells)) for cells_of_input in (with_added, matrix)
        )
        return one, other


PERSON = Added(order=2, occupied=((3, 3, 1),), cells=((3, 3), (3, 3)))
SPREAD = Added(order=2, occupied=((3, 3, 1), (1, 0, 6)), cells=((3, 3), (3, 3), (0, 0), (1, 2)))
"""One person's records in several cells and several nodes of each level; some of these nodes are split further than others."""
USUAL = (Added(order=1), PERSON, SPREAD)
MEDIANS = (Added(order=1), Added(order=2, occupied=((0, 0, 1), (1, 1, 1), (3, 3, 1)), cells=((3, 3),)), SPREAD)
TUNING = (PERSON, Added(order=3, occupied=((0, 0, 20),)), SPREAD)

BUCKETS = (*USUAL, Added(order=2, occupied=((0, 0, 9), (1, 0, 9), (0, 1, 9), (1, 1, 8)), cells=((1, 1),)))
"""With the record, the quarter around it is evenly filled and the whole less so: of two partitions, one costs less and the other more."""

_NODES = tuple((16 * column, 16 * row) for column in range(4) for row in range(4))
ACROSS = Added(
    order=6,
    occupied=tuple((west + offset, south, 50) for west, south in _NODES for offset in (1, 14)),
    cells=tuple((west + 14, south) for west, south in _NODES),
)
"""A person with one record in each of 16 nodes of one level; each moves its node's median from one end to the other."""


def point_pair(added: Added, release: Callable[[PointCounts, Entropy], PointRelease]) -> Neighbours:
    """Make two neighbouring inputs with runs of a mechanism; releases are read on the paths from the root to the added records."""

    def observe(points: PointCounts, entropy: Entropy) -> Observation:
        return read_points_release(release(points, entropy), *dict.fromkeys(added.cells))

    return pair_of(added.words, added.inputs(), observe)


def read_points_release(release: PointRelease, *cells: tuple[int, int]) -> Observation:
    """Read everything in a release that can show a person's records in some cells.

    This is, for the nodes on the path from the root to each cell: rectangles, and counts as measured first, measured again and released.
    If the tree has at most 40 nodes: the counts of all nodes by their rectangle. For a wavelet: its coefficients. And the facts of the
    manifest: settings, notes, height.
    """
    tree, numbers = release.tree, manifest_numbers(release)
    numbers["number of nodes"] = len(tree)
    paths = [_nodes_on_path(tree, cell, release.domain.order) for cell in cells]
    shown = np.arange(len(tree)) if len(tree) <= MOST_NODES else np.unique(np.concatenate(paths))
    for number, path in enumerate(paths):
        numbers |= {(*name, *((f"of cell {number}",) if number else ())): value for name, value in _read_path(release, path).items()}
    if len(shown) == len(tree):
        boxes = map(tuple, tree.rectangles().tolist())
        for box, noisy, count in zip(boxes, release.noisy.tolist(), release.count.tolist(), strict=True):
            numbers["noisy count in", *box], numbers["count in", *box] = noisy, count
    if isinstance(release.spread, WaveletSpread):
        values = coefficients(release.blocks(release.spread.order)).ravel()  # type: ignore[arg-type]
        numbers |= {("coefficient", number): round(value) for number, value in enumerate(values.tolist())}
    chance = _largest_point_chance(release, shown)
    return Observation(numbers={name: value for name, value in numbers.items() if math.isfinite(value)}, chance=chance)


def _read_path(release: PointRelease, path: Integers) -> dict[tuple[Hashable, ...], float]:
    """Return the counts, variances and rectangles of the nodes on a path from the root to a cell, by quantity and depth."""
    again = release.noisy if release.second_measurement is None else release.second_measurement
    shown = {
        "noisy count": release.noisy,
        "count": release.count,
        "second count": again,
        "variance": release.noise_variance,
        "unbiased count": release.centre,
        "deviation": release.node_stddev,
    }
    numbers: dict[tuple[Hashable, ...], float] = {}
    for depth, (node, box) in enumerate(zip(path.tolist(), release.tree.rectangles(path).tolist(), strict=True)):
        numbers |= {(f"{quantity} at depth", depth): values[node] for quantity, values in shown.items()}
        numbers |= {(f"{side} at depth", depth): line for side, line in zip(("west", "south", "east", "north"), box, strict=True)}
    return numbers


def _nodes_on_path(tree: Tree, cell: tuple[int, int], order: int) -> Integers:
    """Find the nodes that contain a cell, root first."""
    column, row = cell
    if tree.curve is not None:
        position = int(tree.curve.positions(np.array([column]), np.array([row]), order)[0])
        return np.flatnonzero((tree.curve.first <= position) & (position < tree.curve.last))
    return np.flatnonzero((tree.west <= column) & (column < tree.east) & (tree.south <= row) & (row < tree.north))


def _largest_point_chance(release: PointRelease, shown: Integers) -> float:
    """Bound the probability of the likeliest noise: on the nodes `shown`, or on all coefficients of a wavelet."""
    if isinstance(release.spread, WaveletSpread):
        return largest_chance(np.full(4**release.spread.order, release.spread.variance))
    return largest_chance(release.noise_variance[shown][~np.isnan(release.noisy[shown])])
