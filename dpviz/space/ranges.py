"""Range queries on a tree: find the nodes, and the share of each, that add up to the answer for a box or a polygon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Lines, number_runs, slices
from dpviz.space.borders import common_areas
from dpviz.space.corner_sums import accumulate, corner_sums, sums_at
from dpviz.space.domain import Domain
from dpviz.space.hierarchy import Hierarchy
from dpviz.space.mask import CellMask, open_cells
from dpviz.space.tree import Tree, intervals

Overlap = Callable[[Integers, Integers], Floats]
"""A function of (k,) queries and (k,) nodes that returns the (k,) share of each node that is in its query, 0 to 1."""

MOST_RASTER_CELLS = 2**22
RELATIVE_ERROR = 1e-9
QUERIES_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class Front:
    """The overlapping pairs of a query and a node of one depth of the tree.

    Attributes:
        query: (k,) number of the query.
        node: (k,) index of the node.
        share: (k,) share of the node's area in the query, above 0; exact where `ends` is True.
        ends: (k,) whether the node is a leaf or wholly inside the query, so that its share of the count is added to the answer.
            Otherwise its children are visited.
        origin: (k,) index, in the front of the depth above, of the pair of the same query and the node's parent.
    """

    query: Integers
    node: Integers
    share: Floats
    ends: NDArray[np.bool_]
    origin: Integers


def fronts(tree: Tree, overlap: Overlap, queries: Integers) -> list[Front]:
    """Decompose many queries at once into nodes (canonical decomposition).

    From the root down, a node wholly inside a query counts in full, a leaf that the query cuts counts by its share, and any other
    node that the query cuts is replaced by its children.

    Args:
        tree: any tree.
        overlap: function that returns the shares: 0 for disjoint, 1 for wholly inside, exact for leaves.
        queries: (q,) numbers of queries, which `overlap` understands.

    Returns:
        One front per depth, the root's first; the list ends when no node is left to be replaced.
    """
    query, node, origin = queries, np.zeros(len(queries), np.int64), np.arange(len(queries))
    levels = []
    while len(node):
        share = overlap(query, node)
        touched = np.flatnonzero(share > 0)
        query, node, share, origin = query[touched], node[touched], share[touched], origin[touched]
        ends = (share == 1) | (tree.children[node] == 0)
        levels.append(Front(query=query, node=node, share=share, ends=ends, origin=origin))
        origin = np.flatnonzero(~ends)
        parent, child = number_runs(tree.children[node[origin]].astype(np.int64))
        query, node, origin = query[origin][parent], tree.first_child[node[origin]][parent] + child, origin[parent]
    return levels


def fronts_of_weights(tree: Hierarchy, weights: Any) -> list[Front]:
    """Make the fronts of weighted sums of nodes: of the nodes that have a weight, and of all above them.

    Args:
        tree: of n nodes.
        weights: (q, n) the weight of each node in each sum, a sparse matrix.

    Returns:
        The fronts of all depths, from the root down, in which `share` is the weight.
    """
    entries, n = scipy.sparse.coo_array(weights), np.int64(len(tree))
    pairs, depth_of = entries.row * n + entries.col, tree.depth[entries.col]
    below, levels = np.zeros(0, np.int64), []
    for depth in range(tree.height, -1, -1):
        own = depth_of == depth
        parents = below // n * n + tree.parent[below % n]
        here, index = np.unique(np.concatenate([parents, pairs[own]]), return_inverse=True)
        weight = np.bincount(index[len(parents) :], entries.data[own].astype(np.float64), len(here)).astype(np.float64)
        levels.append((here, weight, index[: len(parents)]))
        below = here
    origins = [np.arange(len(below)), *(origin for _, _, origin in levels[:0:-1])]
    return [
        Front(query=here // n, node=here % n, share=weight, ends=weight != 0, origin=origin)
        for (here, weight, _), origin in zip(levels[::-1], origins, strict=True)
    ]


def batches(tree: Tree, overlap: Overlap, count: int) -> Iterator[tuple[slice, list[Front]]]:
    """Decompose queries in batches, so that memory stays bounded.

    Args:
        tree: any tree.
        overlap: as for `fronts`.
        count: the number of queries.

    Yields:
        The slice of queries of a batch, and its fronts.
    """
    for part in slices(count, QUERIES_AT_ONCE):
        yield part, fronts(tree, overlap, np.arange(part.start, part.stop))


def box_overlap(tree: Tree, boxes: Floats, mask: CellMask | None = None) -> Overlap:
    """Make the function that computes the shares of nodes in boxes.

    Args:
        tree: any tree.
        boxes: (q, 4) west, south, east, north in lattice units.
        mask: of the domain, if it has one; shares are then those of the open cells.
    """
    if mask is not None:
        return _open_box_overlap(tree, boxes, mask)
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


def _open_box_overlap(tree: Tree, boxes: Floats, mask: CellMask) -> Overlap:
    """Make the function that computes the shares of the open cells of nodes in boxes; 0 for nodes without any."""

    def overlap(query: Integers, node: Integers) -> Floats:
        rectangles, box = tree.rectangles(node).astype(np.float64), boxes[query]
        common = np.concatenate([np.maximum(rectangles[:, :2], box[:, :2]), np.minimum(rectangles[:, 2:], box[:, 2:])], axis=1)
        touched = np.flatnonzero((common[:, :2] < common[:, 2:]).all(axis=1))
        share, cells = np.zeros(len(node)), mask.cells_in(rectangles[touched], tree.order)
        part = mask.cells_in(common[touched], tree.order)
        share[touched] = np.minimum(np.divide(part, cells, out=np.zeros(len(cells)), where=cells > 0), 1.0)
        return share

    return overlap


def area_overlap(tree: Tree, domain: Domain, areas: NDArray[np.object_]) -> Overlap:
    """Make the function that computes the shares of nodes in polygons. Areas are planar, in the domain's CRS.

    Args:
        tree: any tree.
        domain: the domain, which converts the nodes to coordinates. If it has a mask, shares are those of the open cells.
        areas: (q,) shapely geometries in the domain's CRS.
    """
    shapely.prepare(areas)

    def overlap(query: Integers, node: Integers) -> Floats:
        boxes = domain.boxes(tree.rectangles(node))
        share = shapely.intersects(areas[query], boxes).astype(np.float64) * 0.5
        share[shapely.covers(areas[query], boxes)] = 1.0
        cut = np.flatnonzero((share == 0.5) & (tree.children[node] == 0))
        if domain.mask is None:
            share[cut] = np.minimum(common_areas(areas, query[cut], boxes[cut]) / shapely.area(boxes[cut]), 1.0)
            return share
        owner, parts = domain.mask.rectangles_in(tree.rectangles(node[cut]), domain.order)
        open_parts = domain.boxes(parts)
        inside = np.bincount(owner, common_areas(areas, query[cut][owner], open_parts), len(cut))
        total = np.bincount(owner, shapely.area(open_parts), len(cut))
        share[cut] = np.minimum(np.divide(inside, total, out=np.zeros(len(cut)), where=total > 0), 1.0)  # 0 if no part is open
        return share

    return overlap


@dataclass(frozen=True, kw_only=True, eq=False)
class Cumulative:
    """Cumulative sums over a raster of lattice lines, from which the sum in any box takes four look-ups.

    A raster cell that a box covers in part counts by the covered share of its area.

    Attributes:
        columns: (c,) lattice lines of the raster, ascending.
        rows: (r,) lattice lines, ascending.
        sums: (r, c) the sum of everything south-west of each crossing of lines.
    """

    columns: Floats
    rows: Floats
    sums: Floats

    def at(self, x: Floats, y: Floats) -> Floats:
        """Compute the sums of everything south-west of points, by bilinear interpolation, which is exact if raster cells are uniform.

        Args:
            x: columns, with fractions, in lattice units, in any shape.
            y: rows, of the same shape.

        Returns:
            Sums, of the same shape.
        """
        return sums_at(self.sums, _find_intervals(self.columns, x), _find_intervals(self.rows, y))

    def boxes(self, boxes: Floats) -> Floats:
        """Compute (q,) sums in boxes; (q, 4) west, south, east, north in lattice units."""
        west, south, east, north = boxes.T
        return self.at(east, north) - self.at(west, north) - self.at(east, south) + self.at(west, south)

    def blocks(self, per_side: int, side: int) -> Floats:
        """Compute sums in equal blocks of the domain.

        Args:
            per_side: number of blocks per side.
            side: number of columns of the lattice.

        Returns:
            (per_side, per_side) sums, [row, column], row 0 in the south.
        """
        lines = np.linspace(0, side, per_side + 1)
        (column, right), (row, up) = _find_intervals(self.columns, lines), _find_intervals(self.rows, lines)
        at_columns = self.sums[:, column] * (1 - right) + self.sums[:, column + 1] * right
        sums = at_columns[row] * (1 - up)[:, None] + at_columns[row + 1] * up[:, None]
        return np.diff(np.diff(sums, axis=0), axis=1)


def _find_intervals(lines: Floats, values: Floats) -> tuple[Integers, Floats]:
    index = np.clip(np.searchsorted(lines, values, side="right") - 1, 0, len(lines) - 2)
    return index, (values - lines[index]) / (lines[index + 1] - lines[index])


def cumulative(tree: Tree, count: Floats, mask: CellMask | None = None) -> Cumulative | None:
    """Compute cumulative sums of the leaves' counts over the raster of all their edges.

    Args:
        tree: any tree.
        count: (n,) counts per node; only the counts of leaves are used.
        mask: of the domain, if it has one; the count of a leaf then spreads over its open cells, and the raster has the mask's lines, too.

    Returns:
        The sums; None if the raster would have more than 2**22 cells, or if leaves overlap and their sum would not be precise enough.
    """
    cells = None if mask is None else open_cells(tree, mask)[tree.leaves]
    if tree.lines is not None and (cells is None or np.isin(cells / tree.cells[tree.leaves], (0.0, 1.0)).all()):
        return _sum_grid(tree, *tree.lines, count)
    rectangles = tree.rectangles(tree.leaves)
    if tree.overlaps and mask is not None:
        cells = mask.cells_in(rectangles, tree.order)
    columns, rows = (_used_lines(rectangles[:, axis], rectangles[:, axis + 2]) for axis in (0, 1))
    if mask is not None:
        of_mask = np.arange(mask.side, dtype=np.int32) << (tree.order - mask.order)
        columns, rows = (np.union1d(lines, of_mask).astype(np.int32) for lines in (columns, rows))
    if (len(columns) - 1) * (len(rows) - 1) > MOST_RASTER_CELLS:
        return None
    density = _sum_densities(rectangles, columns, rows, count[tree.leaves], cells, overlaps=tree.overlaps)
    if density is None:
        return None
    if mask is not None:
        density *= mask.holds(*np.meshgrid(columns[:-1], rows[:-1]), tree.order)
    sums = corner_sums(density * (np.diff(rows).astype(np.float64)[:, None] * np.diff(columns)))
    return Cumulative(columns=columns.astype(np.float64), rows=rows.astype(np.float64), sums=sums)


def block_sums(tree: Tree, count: Floats, zoom: int, mask: CellMask | None = None) -> Floats:
    """Answer all equal blocks of the domain at once, with the same answers as by canonical decomposition.

    A node within one block counts there, unless its parent is within one block, too. A leaf in several blocks is distributed by area.

    Args:
        tree: any tree; its counts need not add up.
        count: (n,) counts per node.
        zoom: 2**zoom blocks per side.
        mask: of the domain, if it has one; a leaf in several blocks is then distributed by its open cells.

    Returns:
        (2**zoom, 2**zoom) sums, [row, column], row 0 in the south.
    """
    side, shift = 1 << zoom, tree.order - zoom
    column, row = tree.west >> shift, tree.south >> shift
    inside = (column == (tree.east - 1) >> shift) & (row == (tree.north - 1) >> shift)
    ends = np.flatnonzero(inside & ~np.where(tree.parent >= 0, inside[tree.parent], False))
    sums = np.zeros((side, side))
    np.add.at(sums, (row[ends], column[ends]), count[ends])
    spanning = np.flatnonzero(~inside & (tree.children == 0) & (count != 0))
    if not len(spanning):
        return sums
    if mask is None:
        west, south, east, north = tree.rectangles(spanning).T.astype(np.float64)
        return sums + _spread(tree, spanning, count[spanning] / ((east - west) * (north - south)), zoom)
    cells = mask.cells_in(tree.rectangles(spanning), tree.order)
    density = np.divide(count[spanning], cells, out=np.zeros(len(cells)), where=cells > 0)
    finer = max(zoom, mask.order)
    spread = _spread(tree, spanning, density, finer) * mask.blocks(finer)
    return np.asarray(sums + spread.reshape(side, 1 << (finer - zoom), side, -1).sum(axis=(1, 3)))


def _spread(tree: Tree, leaves: Integers, density: Floats, zoom: int) -> Floats:
    """Add up, in (2**zoom, 2**zoom) blocks, the densities of (k,) leaves times the cells that leaf and block have in common."""
    side, shift = 1 << zoom, tree.order - zoom
    steps = np.zeros((side + 1, side + 1))
    for column, across in _difference_array(tree.west[leaves], tree.east[leaves], shift):
        for row, up in _difference_array(tree.south[leaves], tree.north[leaves], shift):
            np.add.at(steps, (row, column), density * across * up)
    return np.asarray(accumulate(steps)[:-1, :-1])


def _difference_array(low: Lines, high: Lines, shift: int) -> list[tuple[Integers, Integers]]:
    """Return the difference array of the overlaps of (k,) ranges with the blocks of an axis: pairs of (k,) blocks and (k,) differences.

    There are four, but of ranges of whole blocks only two, since the others would add 0.
    """
    block, first, last = 1 << shift, low.astype(np.int64) >> shift, (high.astype(np.int64) - 1) >> shift
    starts = np.minimum((first + 1) << shift, high) - low
    ends = np.where(first == last, block, high - (last << shift))
    steps = [(first, starts), (first + 1, block - starts), (last, ends - block), (last + 1, -ends)]
    return [(blocks, differences) for blocks, differences in steps if differences.any()]


def _sum_grid(tree: Tree, columns: Lines, rows: Lines, count: Floats) -> Cumulative:
    bottom = tree.at_depth(tree.height)
    sums = np.zeros((len(rows), len(columns)))
    index = (intervals(rows, tree.south[bottom]) + 1) * len(columns) + intervals(columns, tree.west[bottom]) + 1
    sums.ravel()[index] = count[bottom]
    np.cumsum(sums, axis=0, out=sums)
    np.cumsum(sums, axis=1, out=sums)
    return Cumulative(columns=columns.astype(np.float64), rows=rows.astype(np.float64), sums=sums)


def _used_lines(low: Lines, high: Lines) -> Lines:
    used = np.zeros(int(high.max()) + 1, np.bool_)
    used[low] = used[high] = True
    return np.flatnonzero(used).astype(np.int32)


def _sum_densities(rectangles: Lines, columns: Lines, rows: Lines, count: Floats, cells: Floats | None, *, overlaps: bool) -> Floats | None:
    """Add up the densities of the leaves that cover each raster cell: (rows - 1, columns - 1) sums.

    If leaves overlap, densities are rounded to whole multiples of a quantum and added as integers. With floats, rounding errors of a
    dense leaf would remain in cells outside it, since the sums are made by a difference array. The result is None if the quantum could
    cause a relative error of more than `RELATIVE_ERROR`.
    """
    edges = [np.searchsorted(lines, rectangles[:, axis]) for axis, lines in ((0, columns), (1, rows), (2, columns), (3, rows))]
    west, south, east, north = rectangles.T.astype(np.float64)
    cells = (east - west) * (north - south) if cells is None else cells
    density = np.divide(count, cells, out=np.zeros(len(count)), where=cells > 0)
    if not overlaps:
        return np.asarray(density[sum_covering(edges, np.arange(len(count)), (len(rows), len(columns)))])
    quantum = float(np.abs(density).sum()) / 2**61
    if quantum * east.max() * north.max() > RELATIVE_ERROR * np.abs(count).sum():
        return None
    quantum = quantum or 1.0
    return np.asarray(sum_covering(edges, np.rint(density / quantum).astype(np.int64), (len(rows), len(columns))) * quantum)


def sum_covering(edges: list[Integers], values: Integers, shape: tuple[int, int]) -> Integers:
    """Add up the values of the leaves that cover each raster cell, by a difference array: (rows - 1, columns - 1) sums.

    Intermediate sums may overflow and wrap around; the results are exact.
    """
    west, south, east, north = edges
    steps = np.zeros(shape, np.int64)
    for row, column, signed_values in ((south, west, values), (north, east, values), (south, east, -values), (north, west, -values)):
        np.add.at(steps.reshape(-1), row * shape[1] + column, signed_values)
    return accumulate(steps)[:-1, :-1]
