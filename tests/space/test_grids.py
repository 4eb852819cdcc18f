"""Quadtrees that are split node by node, and grids whose cells are cut into grids of their own, against rectangles and edges by hand."""

import numpy as np
import pytest

from dpviz.space.domain import Domain
from dpviz.space.grids import Subgrids, quadtree, quarter_tree, rectangles, split_nodes


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


def test_parts_of_nodes_stand_together_in_the_order_of_their_parents():
    assert split_nodes(np.array([0, 5])).tolist() == [0, 1, 2, 3, 20, 21, 22, 23]
    assert split_nodes(np.array([2, 1]), 2).tolist() == [*range(32, 48), *range(16, 32)]
    assert split_nodes(np.array([], np.int64)).tolist() == []


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
    for node in inner.tolist():
        below = np.arange(tree.first_child[node], tree.first_child[node] + tree.children[node])
        assert (tree.parent[below] == node).all()
        assert tree.cells[below].sum() == tree.cells[node]
    assert tree.cells[tree.leaves].sum() == 4**order
    column, row = (line.ravel() for line in np.meshgrid(np.arange(1 << min(order, 6)), np.arange(1 << min(order, 6))))
    west, south, east, north = tree.rectangles(tree.leaf_of(column, row)).T
    assert ((west <= column) & (column < east) & (south <= row) & (row < north)).all()


def test_all_split_it_is_the_complete_quadtree():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=5)
    nodes, halved = [np.zeros(1, np.int64)], [0]
    for step in (1, 2, 1):
        nodes.append(split_nodes(nodes[-1], step))
        halved.append(halved[-1] + step)
    fans = [np.full(len(level), 4**step) for level, step in zip(nodes, (1, 2, 1, 0), strict=True)]
    fans[-1][:] = 0
    bottom = quarter_tree(nodes, fans, halved, 5).rectangles(slice(-256, None))
    np.testing.assert_array_equal(bottom, quadtree(domain, 4).rectangles(slice(-256, None)))


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
    return Subgrids.of(Domain(bounds=(0, 0, 1, 1), crs=None, order=order), side, np.array(wanted))


def random_subgrids(seed: int, order: int, side: int, most: int = 9) -> Subgrids:
    return subgrids_of(order, side, np.random.default_rng(seed).integers(1, most + 1, side * side))


def by_hand(subgrids: Subgrids) -> list[tuple[int, int, int, int]]:
    """Rectangles of all parts, row by row within each cell: edges at floor(k width / parts)."""
    boxes = []
    cells = subgrids.base.rectangles(subgrids.base.leaves).tolist()
    for (west, south, east, north), across, up in zip(cells, subgrids.columns.tolist(), subgrids.rows.tolist(), strict=True):
        columns = [west + k * (east - west) // across for k in range(across + 1)]
        rows = [south + k * (north - south) // up for k in range(up + 1)]
        boxes += [(columns[i], rows[j], columns[i + 1], rows[j + 1]) for j in range(up) for i in range(across)]
    return boxes


CASES = pytest.mark.parametrize(
    ("order", "side", "most"), [(1, 1, 1), (1, 2, 5), (3, 1, 20), (4, 3, 4), (4, 10, 3), (6, 7, 12), (6, 10, 2), (6, 64, 3), (7, 5, 30)]
)


@CASES
def test_every_lattice_cell_lies_in_the_part_whose_edges_enclose_it(order, side, most):
    for seed in range(3):
        subgrids = random_subgrids(seed, order, side, most)
        wanted = np.full((1 << order, 1 << order), -1)
        for part, (west, south, east, north) in enumerate(by_hand(subgrids)):
            assert west < east
            assert south < north
            wanted[south:north, west:east] = part
        row, column = (line.ravel().astype(np.int32) for line in np.indices(wanted.shape))
        np.testing.assert_array_equal(subgrids.part_of(column, row), wanted.ravel())
        assert subgrids.offset[-1] == part + 1


@CASES
def test_the_tree_has_the_parts_as_leaves_under_their_cell_in_groups_of_four_at_most(order, side, most):
    subgrids = random_subgrids(2, order, side, most)
    (tree, node_of), base = subgrids.tree(), subgrids.base
    np.testing.assert_array_equal(tree.rectangles(node_of), by_hand(subgrids))
    np.testing.assert_array_equal(np.sort(node_of), tree.leaves)
    np.testing.assert_array_equal(tree.rectangles(slice(0, len(base))), base.rectangles())
    assert tree.children.max() <= 4
    cells = tree.at_depth(base.height)
    whole = (subgrids.columns == 1) & (subgrids.rows == 1)
    np.testing.assert_array_equal(tree.children[cells] == 1, whole)
    assert (tree.children[cells] > 0).all()
    assert (tree.children[cells.stop :] != 1).all()
    parent, child = tree.rectangles(tree.parent[1:]), tree.rectangles(slice(1, None))
    assert (child[:, :2] >= parent[:, :2]).all()
    assert (child[:, 2:] <= parent[:, 2:]).all()
    area = np.bincount(tree.parent[1:], tree.cells[1:], len(tree))
    np.testing.assert_array_equal(area[tree.children > 0], tree.cells[tree.children > 0])
    column, row = np.random.default_rng(4).integers(0, 1 << order, (2, 50)).astype(np.int32)
    counts = np.bincount(subgrids.part_of(column, row), minlength=len(node_of))
    np.testing.assert_array_equal(tree.sums(column, row, np.ones(50, np.int64))[node_of], counts)


def test_no_cell_is_cut_finer_than_the_lattice_also_where_widths_differ():
    subgrids = subgrids_of(3, 3, [100] * 9)
    box = subgrids.base.rectangles(subgrids.base.leaves)
    np.testing.assert_array_equal(np.stack([subgrids.columns, subgrids.rows], axis=1), box[:, 2:] - box[:, :2])
    assert subgrids.offset[-1] == 64
    assert {*subgrids.columns.tolist()} == {2, 3}


def test_it_takes_no_more_levels_than_the_finest_cell_needs():
    assert subgrids_of(10, 4, [1] * 16).tree()[0].height == 2 + 1
    assert subgrids_of(10, 4, [33] + [1] * 15).tree()[0].height == 2 + 6
