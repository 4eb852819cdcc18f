"""Which nodes of a tree, and what share of each, answer a box or a polygon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Lines
from dpviz.space.domain import Domain
from dpviz.space.tree import Tree, intervals

Overlap = Callable[[Integers, Integers], Floats]

MOST_RASTER_CELLS = 2**22
RELATIVE_ERROR = 1e-9
QUERIES_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class Front:
    """The nodes of one depth that a batch of queries touches.

    Attributes:
        query: (k,) which query.
        node: (k,) which node.
        share: (k,) part of the node that lies in the query, above 0; exact where the pair ends.
        ends: (k,) the node is a leaf or lies wholly inside, so its count enters the answer; else its children are visited.
        origin: (k,) place of the parent's pair in the front above.
    """

    query: Integers
    node: Integers
    share: Floats
    ends: NDArray[np.bool_]
    origin: Integers


def fronts(tree: Tree, overlap: Overlap, queries: Integers) -> list[Front]:
    """Canonical decomposition of many queries at once, depth by depth.

    From the root down, a node wholly inside a query ends there, a leaf ends with its share, other touched nodes are
    replaced by their children.

    Args:
        tree: any tree.
        overlap: (k,) queries and (k,) nodes to (k,) shares; 0 for disjoint, 1 for wholly inside, exact for leaves.
        queries: (q,) numbers handed to `overlap`.
    """
    query, node, origin = queries, np.zeros(len(queries), np.int64), np.arange(len(queries))
    found = []
    while len(node):
        share = overlap(query, node)
        touched = np.flatnonzero(share > 0)
        query, node, share, origin = query[touched], node[touched], share[touched], origin[touched]
        ends = (share == 1) | (tree.children[node] == 0)
        found.append(Front(query=query, node=node, share=share, ends=ends, origin=origin))
        origin = np.flatnonzero(~ends)
        query, node, origin = _children(tree, query[origin], node[origin], origin)
    return found


def _children(tree: Tree, query: Integers, node: Integers, origin: Integers) -> tuple[Integers, Integers, Integers]:
    fan = tree.children[node].astype(np.int64)
    place = np.arange(fan.sum()) - np.repeat(np.cumsum(fan) - fan, fan)
    return np.repeat(query, fan), np.repeat(tree.first_child[node], fan) + place, np.repeat(origin, fan)


def batches(tree: Tree, overlap: Overlap, count: int) -> Iterator[tuple[slice, list[Front]]]:
    """Fronts of `count` queries, a bounded number at a time, so that memory stays bounded."""
    for start in range(0, count, QUERIES_AT_ONCE):
        part = slice(start, min(start + QUERIES_AT_ONCE, count))
        yield part, fronts(tree, overlap, np.arange(part.start, part.stop))


def box_overlap(tree: Tree, boxes: Floats) -> Overlap:
    """Shares of nodes in boxes; (q, 4) west, south, east, north in lattice units."""
    west, south, east, north = np.ascontiguousarray(boxes.T)

    def overlap(query: Integers, node: Integers) -> Floats:
        low, high = tree.west[node], tree.east[node]
        across = np.minimum(high, east[query]) - np.maximum(low, west[query])
        share: Floats = np.maximum(across, 0) / (high - low)
        touched = np.flatnonzero(share)
        query, node = query[touched], node[touched]
        low, high = tree.south[node], tree.north[node]
        up = np.minimum(high, north[query]) - np.maximum(low, south[query])
        share[touched] *= np.maximum(up, 0) / (high - low)
        return share

    return overlap


def area_overlap(tree: Tree, domain: Domain, areas: NDArray[np.object_]) -> Overlap:
    """Shares of nodes in polygons; (q,) shapely geometries in the domain's CRS. Shares are planar in that CRS."""
    shapely.prepare(areas)

    def overlap(query: Integers, node: Integers) -> Floats:
        boxes = domain.boxes(tree.rectangles(node))
        share = shapely.intersects(areas[query], boxes).astype(np.float64) * 0.5
        share[shapely.covers(areas[query], boxes)] = 1.0
        cut = np.flatnonzero((share == 0.5) & (tree.children[node] == 0))
        parts = shapely.area(shapely.intersection(areas[query[cut]], boxes[cut]))
        share[cut] = np.minimum(parts / shapely.area(boxes[cut]), 1.0)
        return share

    return overlap


@dataclass(frozen=True, kw_only=True, eq=False)
class Cumulative:
    """Running sums over a raster of leaf edges: any box is four look-ups, cut leaves counting by their share of area.

    Attributes:
        columns: (c,) lattice lines.
        rows: (r,) lattice lines.
        sums: (r, c) total south-west of each crossing.
    """

    columns: Floats
    rows: Floats
    sums: Floats

    def at(self, x: Floats, y: Floats) -> Floats:
        """Totals south-west of points in lattice units; bilinear between lines, which is exact for uniform leaves."""
        (i, right), (j, up) = _between(self.columns, x), _between(self.rows, y)
        low = self.sums[j, i] * (1 - right) + self.sums[j, i + 1] * right
        high = self.sums[j + 1, i] * (1 - right) + self.sums[j + 1, i + 1] * right
        return np.asarray(low * (1 - up) + high * up)

    def boxes(self, boxes: Floats) -> Floats:
        """(q,) sums in (q, 4) boxes in lattice units."""
        west, south, east, north = boxes.T
        return self.at(east, north) - self.at(west, north) - self.at(east, south) + self.at(west, south)

    def blocks(self, per_side: int, side: int) -> Floats:
        """(per_side, per_side) sums in equal blocks of a lattice of `side` columns, [row, column], row 0 in the south."""
        lines = np.linspace(0, side, per_side + 1)
        x, y = np.meshgrid(lines, lines)
        return np.diff(np.diff(self.at(x, y), axis=0), axis=1)


def _between(lines: Floats, values: Floats) -> tuple[Integers, Floats]:
    place = np.clip(np.searchsorted(lines, values, side="right") - 1, 0, len(lines) - 2)
    return place, (values - lines[place]) / (lines[place + 1] - lines[place])


def cumulative(tree: Tree, count: Floats) -> Cumulative | None:
    """Running sums of the leaves' counts; None if their raster would be too fine, or too coarse a sum of overlapping ones.

    Args:
        tree: leaves may have any sizes.
        count: (n,) counts per node; only the leaves' are used.
    """
    if tree.lines is not None:
        return _grid_sums(tree, *tree.lines, count)
    rectangles = tree.rectangles(tree.leaves)
    columns, rows = (_lines(rectangles[:, axis], rectangles[:, axis + 2]) for axis in (0, 1))
    if (len(columns) - 1) * (len(rows) - 1) > MOST_RASTER_CELLS:
        return None
    density = _raster(rectangles, columns, rows, count[tree.leaves], tree.overlaps)
    if density is None:
        return None
    area = np.diff(rows).astype(np.float64)[:, None] * np.diff(columns)
    sums = np.zeros((len(rows), len(columns)))
    np.cumsum(np.cumsum(density * area, axis=0), axis=1, out=sums[1:, 1:])
    return Cumulative(columns=columns.astype(np.float64), rows=rows.astype(np.float64), sums=sums)


def block_sums(tree: Tree, count: Floats, zoom: int) -> Floats:
    """Canonical answers of all equal blocks of the domain at once, without a query per block.

    A node that lies in one block, unlike its parent, counts wholly there; leaves larger than a block by share of area.

    Args:
        tree: any tree; its counts need not add up.
        count: (n,) counts per node.
        zoom: 2**zoom blocks per side.

    Returns:
        (2**zoom, 2**zoom) sums, [row, column], row 0 in the south.
    """
    side, shift = 1 << zoom, (int(tree.east[0]).bit_length() - 1) - zoom
    column, row = tree.west >> shift, tree.south >> shift
    inside = (column == (tree.east - 1) >> shift) & (row == (tree.north - 1) >> shift)
    ends = np.flatnonzero(inside & ~np.where(tree.parent >= 0, inside[tree.parent], False))
    sums, steps = np.zeros((side, side)), np.zeros((side + 1, side + 1))
    np.add.at(sums, (row[ends], column[ends]), count[ends])
    if (inside | (tree.children > 0)).all():
        return sums
    large = np.flatnonzero(~inside & (tree.children == 0))
    west, south, east, north = tree.rectangles(large).T.astype(np.float64)
    density = count[large] / ((east - west) * (north - south))
    for column, across in zip(*_steps(tree.west[large], tree.east[large], shift), strict=True):
        for row, up in zip(*_steps(tree.south[large], tree.north[large], shift), strict=True):
            steps += np.bincount(row * (side + 1) + column, density * across * up, steps.size).reshape(steps.shape)
    sums += steps.cumsum(0).cumsum(1)[:-1, :-1]
    return sums


def _steps(low: Lines, high: Lines, shift: int) -> tuple[list[Integers], list[Integers]]:
    """Where the overlap of (k,) ranges with the blocks of an axis changes from block to block, and by how much: 4 x (k,) each."""
    block, first, last = 1 << shift, low.astype(np.int64) >> shift, (high.astype(np.int64) - 1) >> shift
    starts = np.minimum((first + 1) << shift, high) - low
    ends = np.where(first == last, block, high - (last << shift))
    return [first, first + 1, last, last + 1], [starts, block - starts, ends - block, -ends]


def _grid_sums(tree: Tree, columns: Lines, rows: Lines, count: Floats) -> Cumulative:
    bottom = tree.at_depth(tree.height)
    sums = np.zeros((len(rows), len(columns)))
    place = (intervals(rows, tree.south[bottom]) + 1) * len(columns) + intervals(columns, tree.west[bottom]) + 1
    sums.ravel()[place] = count[bottom]
    np.cumsum(sums, axis=0, out=sums)
    np.cumsum(sums, axis=1, out=sums)
    return Cumulative(columns=columns.astype(np.float64), rows=rows.astype(np.float64), sums=sums)


def _lines(low: Lines, high: Lines) -> Lines:
    used = np.zeros(int(high.max()) + 1, np.bool_)
    used[low] = used[high] = True
    return np.flatnonzero(used).astype(np.int32)


def _raster(rectangles: Lines, columns: Lines, rows: Lines, count: Floats, overlaps: bool) -> Floats | None:
    """(rows - 1, columns - 1) sum of the densities of the leaves that cover each raster cell.

    Densities that overlap are added as whole multiples of a quantum, so that nothing of a dense leaf is left over beside it;
    None if these are too coarse for what is asked of answers.
    """
    edges = [np.searchsorted(lines, rectangles[:, axis]) for axis, lines in ((0, columns), (1, rows), (2, columns), (3, rows))]
    west, south, east, north = rectangles.T.astype(np.float64)
    density = count / ((east - west) * (north - south))
    if not overlaps:
        return np.asarray(density[_covering(edges, np.arange(len(count)), (len(rows), len(columns)))])
    quantum = float(np.abs(density).sum()) / 2**61
    if quantum * east.max() * north.max() > RELATIVE_ERROR * np.abs(count).sum():
        return None
    quantum = quantum or 1.0
    return np.asarray(_covering(edges, np.rint(density / quantum).astype(np.int64), (len(rows), len(columns))) * quantum)


def _covering(edges: list[Integers], values: Integers, shape: tuple[int, int]) -> Integers:
    """(rows - 1, columns - 1) sum of the values of the leaves that cover each raster cell, by a difference array.

    Sums may wrap around on the way; what comes out is exact.
    """
    west, south, east, north = edges
    steps = np.zeros(shape, np.int64)
    for row, column, signed in ((south, west, values), (north, east, values), (south, east, -values), (north, west, -values)):
        np.add.at(steps.reshape(-1), row * shape[1] + column, signed)
    return steps.cumsum(0).cumsum(1)[:-1, :-1]
