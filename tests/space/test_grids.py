"""Quadtrees that are split node by node, and grids whose cells are cut into grids of their own, against rectangles and edges by hand."""

from itertools import pairwise

import numpy as np
import pytest

from dpviz.space.grids import Subgrids, quarter_tree, rectangles, split_nodes
from tests.space.curves import lattice


def quarters(box: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """South-west, south-east, north-west, north-east."""
    west, south, east, north = box
    x, y = (west + east) // 2, (south + north) // 2
    return [(west, south, x, y), (x, south, east, y), (west, y, x, north), (x, y, east, north)]


def grown(rng: np.random.Generator, order: int, steps: tuple[int, ...]):
    """Random splits: nodes, children and halvings as a mechanism grows them, and the boxes that they must have."""
    nodes, halved, children, boxes = [np.zeros(1, np.int64)], [0], [], [[(0, 0, 1 << order, 1 << order)]]
    for step in steps:
        split = rng.random(len(nodes[-1])) < 0.6
        split[0] = True
        children.append(np.where(split, 4**step, 0))
        nodes.append(split_nodes(nodes[-1][split], step))
        halved.append(halved[-1] + step)
        below = [box for box, cut in zip(boxes[-1], split.tolist(), strict=True) if cut]
        for _ in range(step):
            below = [quarter for box in below for quarter in quarters(box)]
        boxes.append(below)
    return nodes, [*children, np.zeros(len(nodes[-1]), np.int64)], halved, boxes


@pytest.mark.parametrize(("order", "steps"), [(1, (1,)), (4, (1, 1, 1)), (5, (2, 2, 1)), (5, (1, 2, 1)), (6, (1,) * 6), (9, (2, 2, 2))])
@pytest.mark.parametrize("seed", range(2))
def test_the_tree_has_the_rectangles_of_cutting_by_hand(order, steps, seed):
    nodes, children, halved, boxes = grown(np.random.default_rng(seed), order, steps)
    tree = quarter_tree(nodes, children, halved, order)
    assert [len(level) for level in boxes] == np.diff(tree.starts).tolist()
    for depth, level in enumerate(boxes):
        np.testing.assert_array_equal(rectangles(nodes[depth], halved[depth], order), level)
        np.testing.assert_array_equal(tree.rectangles(tree.at_depth(depth)), level)
    inner = np.flatnonzero(tree.children)
    np.testing.assert_array_equal(np.bincount(tree.parent[1:], tree.cells[1:], len(tree))[inner], tree.cells[inner])
    column, row = np.indices((1 << min(order, 6),) * 2).reshape(2, -1)
    west, south, east, north = tree.rectangles(tree.leaf_of(column, row)).T
    assert ((west <= column) & (column < east) & (south <= row) & (row < north)).all()


def test_a_root_alone_and_the_finest_lattice_are_trees():
    tree = quarter_tree([np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [0], 24)
    assert (len(tree), tree.height, tree.rectangles().tolist()) == (1, 0, [[0, 0, 2**24, 2**24]])
    levels, fans = [np.zeros(1, np.int64)], []
    for _ in range(24):
        fans.append(np.append(np.zeros(len(levels[-1]) - 1, np.int64), 4))
        levels.append(split_nodes(levels[-1][-1:]))
    tree = quarter_tree(levels, [*fans, np.zeros(4, np.int64)], range(25), 24)
    assert tree.rectangles()[-1].tolist() == [2**24 - 1, 2**24 - 1, 2**24, 2**24]
    assert (tree.height, tree.cells[tree.leaves].sum()) == (24, 4.0**24)


def subgrids_of(order: int, side: int, wanted: list[int] | np.ndarray) -> Subgrids:
    return Subgrids.of(lattice(order), side, np.array(wanted))


def by_hand(subgrids: Subgrids) -> list[tuple[int, int, int, int]]:
    """Rectangles of all parts, row by row within each cell: edges at floor(k width / parts)."""
    boxes = []
    cells = subgrids.base.rectangles(subgrids.base.leaves).tolist()
    for (west, south, east, north), across, up in zip(cells, subgrids.columns.tolist(), subgrids.rows.tolist(), strict=True):
        columns = [west + k * (east - west) // across for k in range(across + 1)]
        rows = [south + k * (north - south) // up for k in range(up + 1)]
        boxes += [(a, b, c, d) for b, d in pairwise(rows) for a, c in pairwise(columns)]
    return boxes


CASES = pytest.mark.parametrize(
    ("order", "side", "most"), [(1, 1, 1), (1, 2, 5), (3, 1, 20), (4, 3, 4), (4, 10, 3), (6, 7, 12), (6, 10, 2), (6, 64, 3), (7, 5, 30)]
)


@CASES
@pytest.mark.parametrize("seed", range(3))
def test_parts_have_their_cells_and_are_leaves_under_the_cell_they_cut_in_groups_of_four_at_most(order, side, most, seed):
    subgrids = subgrids_of(order, side, np.random.default_rng(seed).integers(1, most + 1, side * side))
    (tree, node_of), base, boxes = subgrids.tree(), subgrids.base, by_hand(subgrids)
    row, column = np.indices((1 << order,) * 2).reshape(2, -1).astype(np.int32)
    part = subgrids.part_of(column, row)
    west, south, east, north = np.array(boxes)[part].T
    assert ((west <= column) & (column < east) & (south <= row) & (row < north)).all()
    assert subgrids.offset[-1] == len(boxes)
    np.testing.assert_array_equal(tree.rectangles(node_of), boxes)
    np.testing.assert_array_equal(np.sort(node_of), tree.leaves)
    np.testing.assert_array_equal(tree.rectangles(slice(0, len(base))), base.rectangles())
    assert tree.children.max() <= 4
    cells = tree.at_depth(base.height)
    np.testing.assert_array_equal(tree.children[cells] == 1, (subgrids.columns == 1) & (subgrids.rows == 1))
    assert (tree.children[cells] > 0).all()
    assert (tree.children[cells.stop :] != 1).all()
    parent, child = tree.rectangles(tree.parent[1:]), tree.rectangles(slice(1, None))
    assert (child[:, :2] >= parent[:, :2]).all()
    assert (child[:, 2:] <= parent[:, 2:]).all()
    area = np.bincount(tree.parent[1:], tree.cells[1:], len(tree))
    np.testing.assert_array_equal(area[tree.children > 0], tree.cells[tree.children > 0])
    counts = np.bincount(part, minlength=len(boxes))
    assert counts.all()
    np.testing.assert_array_equal(tree.sums(column, row, np.ones(4**order, np.int64))[node_of], counts)


def test_no_cell_is_cut_finer_than_the_lattice_nor_into_more_levels_than_the_finest_cell_needs():
    subgrids = subgrids_of(3, 3, [100] * 9)
    box = subgrids.base.rectangles(subgrids.base.leaves)
    np.testing.assert_array_equal(np.stack([subgrids.columns, subgrids.rows], axis=1), box[:, 2:] - box[:, :2])
    assert subgrids.offset[-1] == 64
    assert {*subgrids.columns.tolist()} == {2, 3}
    assert subgrids_of(10, 4, [1] * 16).tree()[0].height == 2 + 1
    assert subgrids_of(10, 4, [33] + [1] * 15).tree()[0].height == 2 + 6
