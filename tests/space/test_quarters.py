"""Quadtrees that are split node by node, against rectangles cut by hand."""

import numpy as np
import pytest

from dpviz.space.domain import Domain
from dpviz.space.grids import parts, quadtree, quarter_tree, rectangles


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
        nodes.append(parts(nodes[-1][split], step))
        halved.append(halved[-1] + step)
        below = [box for box, cut in zip(boxes[-1], split.tolist(), strict=True) if cut]
        for _ in range(step):
            below = [quarter for box in below for quarter in quarters(box)]
        boxes.append(below)
    return nodes, [*children, np.zeros(len(nodes[-1]), np.int64)], halved, boxes


def test_parts_of_nodes_stand_together_in_the_order_of_their_parents():
    assert parts(np.array([0, 5])).tolist() == [0, 1, 2, 3, 20, 21, 22, 23]
    assert parts(np.array([2, 1]), 2).tolist() == [*range(32, 48), *range(16, 32)]
    assert parts(np.array([], np.int64)).tolist() == []


@pytest.mark.parametrize(("order", "steps"), [(1, (1,)), (4, (1, 1, 1)), (5, (2, 2, 1)), (5, (1, 2, 1)), (6, (1,) * 6), (9, (2, 2, 2))])
@pytest.mark.parametrize("seed", range(4))
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
        nodes.append(parts(nodes[-1], step))
        halved.append(halved[-1] + step)
    fans = [np.full(len(level), 4**step) for level, step in zip(nodes, (1, 2, 1, 0), strict=True)]
    fans[-1][:] = 0
    bottom = quarter_tree(nodes, fans, halved, 5).rectangles(slice(-256, None))
    np.testing.assert_array_equal(bottom, quadtree(domain, 4).rectangles(slice(-256, None)))


def test_a_root_alone_is_a_tree():
    tree = quarter_tree([np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [0], 24)
    assert (len(tree), tree.height, tree.rectangles().tolist()) == (1, 0, [[0, 0, 2**24, 2**24]])


def test_the_finest_lattice_fits():
    levels, fans = [np.zeros(1, np.int64)], []
    for _ in range(24):
        fans.append(np.append(np.zeros(len(levels[-1]) - 1, np.int64), 4))
        levels.append(parts(levels[-1][-1:]))
    tree = quarter_tree(levels, [*fans, np.zeros(4, np.int64)], range(25), 24)
    assert tree.rectangles()[-1].tolist() == [2**24 - 1, 2**24 - 1, 2**24, 2**24]
    assert (tree.height, tree.cells[tree.leaves].sum()) == (24, 4.0**24)
