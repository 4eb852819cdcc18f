"""Trees: structure, tiling, sums, finding leaves, pruning, sizes."""

from dataclasses import replace

import numpy as np
import pytest
import shapely
from geopandas.tools.hilbert_curve import _encode

from dpviz.errors import DomainError
from dpviz.space.grids import MOST_NODES, grid, quadtree
from dpviz.space.morton import morton
from dpviz.space.tree import Tree, intervals, remove_descendants
from tests.space.curves import CURVE_TREES, TILING_TREES, lattice

TILED = pytest.mark.parametrize("tree", TILING_TREES.values(), ids=TILING_TREES)
CURVED = pytest.mark.parametrize("tree", CURVE_TREES.values(), ids=CURVE_TREES)
EVERY = pytest.mark.parametrize("tree", [*TILING_TREES.values(), *CURVE_TREES.values()], ids=[*TILING_TREES, *CURVE_TREES])


def every_cell(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of all lattice cells."""
    return tuple(np.indices((tree.east[0], tree.east[0]), np.int32).reshape(2, -1))


@EVERY
def test_nodes_stand_in_breadth_first_order_with_contiguous_children_and_cannot_be_changed(tree):
    assert tree.parent[0] == -1
    assert (np.diff(tree.parent) >= 0).all()
    assert (tree.starts[0], tree.starts[-1], len(tree.starts)) == (0, len(tree), tree.height + 2)
    assert (np.diff(tree.starts) > 0).all()
    np.testing.assert_array_equal(tree.children, np.bincount(tree.parent[1:], minlength=len(tree)))
    for node in np.flatnonzero(tree.children).tolist():
        first, count = tree.first_child[node], tree.children[node]
        assert (tree.parent[first : first + count] == node).all()
        assert (tree.depth[first : first + count] == tree.depth[node] + 1).all()
    np.testing.assert_array_equal(tree.leaves, np.flatnonzero(tree.children == 0))
    none = np.zeros(0, np.int32)
    assert tree.sums(none, none, np.zeros(0, np.int64)).tolist() == [0] * len(tree)
    with pytest.raises(ValueError, match="read-only"):
        tree.west[0] = 1


@TILED
def test_children_and_every_cut_tile_what_they_are_parts_of(tree):
    assert (tree.east > tree.west).all()
    assert (tree.north > tree.south).all()
    boxes = shapely.box(*tree.rectangles().T.astype(float))
    np.testing.assert_array_equal(tree.cells, shapely.area(boxes))
    parts = [np.flatnonzero(tree.parent == node) for node in np.flatnonzero(tree.children)]
    for whole, children in [
        *zip(np.flatnonzero(tree.children), parts, strict=True),
        *((0, tree.cut(depth)) for depth in range(tree.height + 1)),
    ]:
        assert shapely.equals(shapely.union_all(boxes[children]), boxes[whole])
        assert tree.cells[children].sum() == tree.cells[whole]


@TILED
def test_sums_are_those_of_the_cells_of_every_node(tree):
    counts = np.random.default_rng(4).integers(0, 3, (tree.east[0], tree.east[0]))
    row, column = every_cell(tree)
    total = tree.sums(column, row, counts.ravel())
    assert total.dtype == np.int64
    assert total.tolist() == [counts[south:north, west:east].sum() for west, south, east, north in tree.rectangles().tolist()]


@CURVED
def test_stretches_of_children_tile_that_of_their_parent_and_their_boxes_lie_in_its_box(tree):
    first, last, box = tree.curve.first, tree.curve.last, tree.rectangles()
    assert (first[0], last[0]) == (0, 4**tree.curve.order)
    for node in np.flatnonzero(tree.children).tolist():
        below = slice(tree.first_child[node], tree.first_child[node] + tree.children[node])
        np.testing.assert_array_equal(np.r_[first[below], last[node]], np.r_[first[node], last[below]])
        np.testing.assert_array_equal(np.r_[box[below, :2].min(axis=0), box[below, 2:].max(axis=0)], box[node])
    assert tree.overlaps
    assert tree.cells[tree.leaves].sum() == tree.cells[0] == 32 * 32


@CURVED
def test_sums_over_stretches_are_those_of_their_cells(tree):
    row, column = every_cell(tree)
    count = np.random.default_rng(4).integers(0, 3, len(row))
    shift = 5 - tree.curve.order
    place = _encode(tree.curve.order, column >> shift, row >> shift)
    inside = (tree.curve.first[:, None] <= place) & (place < tree.curve.last[:, None])
    np.testing.assert_array_equal(tree.sums(column, row, count), inside @ count)
    np.testing.assert_array_equal(tree.cells, inside.sum(axis=1))
    assert inside[tree.leaf_of(column, row), np.arange(len(row))].all()


def test_sums_are_exact_up_to_the_largest_number_of_records():
    place = np.array([0, 3], np.int32)
    assert quadtree(lattice(2), 2).sums(place, place, np.array([2**53 - 1, 1]))[0] == 2**53


@EVERY
def test_the_leaf_of_every_cell_is_one_that_covers_it_also_without_the_shortcut_of_grids(tree):
    row, column = every_cell(tree)
    leaf = tree.leaf_of(column, row)
    assert (tree.children[leaf] == 0).all()
    west, south, east, north = tree.rectangles(leaf).T
    assert ((west <= column) & (column < east) & (south <= row) & (row < north)).all()
    np.testing.assert_array_equal(replace(tree, lines=None).leaf_of(column, row), leaf)


@EVERY
def test_sums_over_siblings_and_values_of_parents_are_as_node_by_node(tree):
    values = np.random.default_rng(5).normal(size=len(tree))
    for depth in range(tree.height):
        here, below = tree.at_depth(depth), tree.at_depth(depth + 1)
        slow = np.bincount(tree.parent[below] - here.start, values[below], here.stop - here.start)
        np.testing.assert_allclose(tree.sum_children(depth, values[below]), slow, atol=1e-12)
        np.testing.assert_array_equal(tree.to_children(depth, values[here]), values[tree.parent[below]])


STEPS = [(5, 5, 4, [1, 2, 4, 8, 16, 32]), (5, 3, 16, [1, 4, 16, 32]), (4, 2, 16, [1, 4, 16]), (10, 1, 16, [1, 4])]


@pytest.mark.parametrize(("order", "height", "fan_out", "sides"), STEPS)
def test_a_quadtree_halves_each_side_once_or_twice_per_step(order, height, fan_out, sides):
    tree = quadtree(lattice(order), height, fan_out)
    assert tree.height == height
    for depth, side in enumerate(sides):
        width = (tree.east - tree.west)[tree.at_depth(depth)]
        assert set(width.tolist()) == {(1 << order) // side}
        assert len(width) == side**2


def test_siblings_of_a_quadtree_stand_sw_se_nw_ne_and_public_trees_are_shared():
    assert quadtree(lattice(1), 1).rectangles(slice(1, 5)).tolist() == [[0, 0, 1, 1], [1, 0, 2, 1], [0, 1, 1, 2], [1, 1, 2, 2]]
    assert quadtree(lattice(6), 4) is quadtree(lattice(6), 4)


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (3, 5), (7, 16), (16, 16)])
def test_grid_edges_lie_within_half_a_cell_of_even_spacing(columns, rows):
    tree = grid(lattice(4), columns, rows)
    for edges, parts in ((tree.west, columns), (tree.south, rows)):
        np.testing.assert_allclose(np.unique(edges[tree.leaves]), np.arange(parts) * 16 / parts, atol=0.5)


TOO_LARGE = rf"nodes and about [\d,]+ GiB of memory; at most {MOST_NODES:,}"
REFUSED = [
    *[(quadtree, options, "does not fit") for options in ((3, 4, 4), (3, 3, 16), (4, 0, 4), (4, -1, 4), (4, 2, 9), (4, 2, 2))],
    *[(grid, (3, columns, rows), "1 to 8 columns") for columns, rows in ((0, 1), (1, 0), (9, 1), (1, 9))],
    *[(quadtree, options, TOO_LARGE) for options in ((24, 13), (24, 24), (24, 12, 16))],
    *[(grid, options, TOO_LARGE) for options in ((24, 2**24, 2**24), (16, 8000, 8000))],
]


@pytest.mark.parametrize(("make", "options", "rule"), REFUSED)
def test_trees_that_do_not_fit_the_lattice_or_memory_are_refused_before_they_are_built(make, options, rule):
    order, *sizes = options
    with pytest.raises(DomainError, match=rule):
        make(lattice(order), *sizes)


@pytest.mark.parametrize("name", ["quadtree", "random 1", "random 2", "curve 1", "curve 2"])
def test_pruning_removes_exactly_the_descendants_of_marked_nodes(name):
    tree = (TILING_TREES | CURVE_TREES)[name]
    stop, alive = np.random.default_rng(1).random(len(tree)) < 0.25, np.ones(len(tree), bool)
    smaller, kept = remove_descendants(tree, stop)
    for node in range(1, len(tree)):
        alive[node] = alive[tree.parent[node]] and not stop[tree.parent[node]]
    assert kept.tolist() == np.flatnonzero(alive).tolist()
    assert smaller.overlaps == tree.overlaps
    np.testing.assert_array_equal(smaller.rectangles(), tree.rectangles(kept))
    np.testing.assert_array_equal(smaller.children, np.where(stop[kept], 0, tree.children[kept]))
    if smaller.curve is not None:
        np.testing.assert_array_equal(smaller.curve.rectangles(5), smaller.rectangles())


def test_morton_codes_interleave_the_bits_up_to_24():
    for bits in (1, 5, 12, 13, 24):
        column, row = np.random.default_rng(6).integers(0, 1 << bits, (2, 200))
        slow = [int(f"{b:b}", 4) * 2 + int(f"{a:b}", 4) for a, b in zip(column.tolist(), row.tolist(), strict=True)]
        assert morton(column, row).tolist() == slow
    last = np.array([2**24 - 1])
    assert morton(last, last).tolist() == [4**24 - 1]
    assert morton(last[:0], last[:0]).shape == (0,)


@pytest.mark.parametrize("lines", [[0, 4, 8, 12, 16], [0, 3, 6, 9], [0, 1, 2, 3], [0, 4, 8, 11], [0, 16], [0, 5, 6, 16]])
def test_intervals_are_those_between_lines_whatever_their_spacing(lines):
    values = np.arange(lines[-1], dtype=np.int32)
    slow = [max(place for place, low in enumerate(lines) if low <= value) for value in values.tolist()]
    assert intervals(np.array(lines, np.int32), values).tolist() == slow


def test_blocks_are_as_large_as_the_edges_of_all_nodes_allow():
    assert [quadtree(lattice(5), height).block_order for height in (1, 3, 5)] == [1, 3, 5]
