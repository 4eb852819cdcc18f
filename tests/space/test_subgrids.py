"""Grids whose cells are cut into grids of their own: places by formula against edges by hand, and the tree above the parts."""

import numpy as np
import pytest

from dpviz.space.domain import Domain
from dpviz.space.grids import Subgrids


def random_subgrids(seed: int, order: int, side: int, most: int = 9) -> Subgrids:
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=order)
    return Subgrids.of(domain, side, np.random.default_rng(seed).integers(1, most + 1, side * side))


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
@pytest.mark.parametrize("seed", range(3))
def test_every_lattice_cell_lies_in_the_part_whose_edges_enclose_it(order, side, most, seed):
    subgrids = random_subgrids(seed, order, side, most)
    wanted = np.full((1 << order, 1 << order), -1)
    for part, (west, south, east, north) in enumerate(by_hand(subgrids)):
        assert west < east
        assert south < north
        wanted[south:north, west:east] = part
    row, column = (line.ravel().astype(np.int32) for line in np.indices(wanted.shape))
    np.testing.assert_array_equal(subgrids.part_of(column, row), wanted.ravel())
    assert len(by_hand(subgrids)) == subgrids.offset[-1]


@CASES
@pytest.mark.parametrize("seed", range(3))
def test_the_tree_has_the_parts_as_leaves_under_their_cell_in_groups_of_four_at_most(order, side, most, seed):
    subgrids = random_subgrids(seed, order, side, most)
    tree, node_of = subgrids.tree()
    base = subgrids.base
    np.testing.assert_array_equal(tree.rectangles(node_of), by_hand(subgrids))
    np.testing.assert_array_equal(np.sort(node_of), tree.leaves)
    np.testing.assert_array_equal(tree.rectangles(slice(0, len(base))), base.rectangles())
    assert tree.children.max() <= 4
    cells = tree.at_depth(base.height)
    assert (tree.children[cells] > 0).all()
    whole = (subgrids.columns == 1) & (subgrids.rows == 1)
    assert ((tree.children[cells] == 1) == whole).all()
    below = np.arange(cells.stop, len(tree))
    assert (tree.children[below] != 1).all()
    parent = tree.rectangles(tree.parent[1:])
    child = tree.rectangles(slice(1, None))
    assert (child[:, :2] >= parent[:, :2]).all()
    assert (child[:, 2:] <= parent[:, 2:]).all()
    area = np.bincount(tree.parent[1:], tree.cells[1:], len(tree))
    np.testing.assert_array_equal(area[tree.children > 0], tree.cells[tree.children > 0])


@CASES
def test_sums_over_the_tree_are_those_of_the_parts(order, side, most):
    subgrids, rng = random_subgrids(4, order, side, most), np.random.default_rng(4)
    tree, node_of = subgrids.tree()
    column, row = rng.integers(0, 1 << order, (2, 50)).astype(np.int32)
    counts = np.bincount(subgrids.part_of(column, row), minlength=len(node_of))
    np.testing.assert_array_equal(tree.sums(column, row, np.ones(50, np.int64))[node_of], counts)


def test_no_cell_is_cut_finer_than_the_lattice_also_where_widths_differ():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=3)
    subgrids = Subgrids.of(domain, 3, np.full(9, 100))
    box = subgrids.base.rectangles(subgrids.base.leaves)
    np.testing.assert_array_equal(subgrids.columns, box[:, 2] - box[:, 0])
    np.testing.assert_array_equal(subgrids.rows, box[:, 3] - box[:, 1])
    assert subgrids.offset[-1] == 64
    assert {*subgrids.columns.tolist()} == {2, 3}


def test_it_takes_no_more_levels_than_the_finest_cell_needs():
    subgrids = random_subgrids(1, 10, 4, 1)
    assert subgrids.tree()[0].height == subgrids.base.height + 1
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=10)
    deep = Subgrids.of(domain, 4, np.array([33] + [1] * 15)).tree()[0]
    assert deep.height == 2 + 6
