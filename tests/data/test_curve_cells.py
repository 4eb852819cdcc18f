"""Counts of quadtree nodes from cells that are sorted along the Z-order curve, against counting by hand."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.indexes import CurveCells
from dpviz.data.points import PointCounts
from dpviz.space.domain import Domain
from dpviz.space.morton import places


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_the_records_of_every_node_of_every_depth_are_those_of_its_cells(order, share):
    rng, side = np.random.default_rng(order), 1 << order
    matrix = rng.integers(1, 9, (side, side)) * (rng.random((side, side)) < share)
    cells = CurveCells.of(PointCounts.from_matrix(matrix))
    for depth in range(order + 1):
        nodes, width = np.arange(4**depth), side >> depth
        column, row = places(nodes)
        wanted = matrix.reshape(1 << depth, width, 1 << depth, width).sum((1, 3))[row, column]
        np.testing.assert_array_equal(cells.records(nodes, depth), wanted)
        some = rng.permutation(nodes)[:7]
        np.testing.assert_array_equal(cells.records(some, depth), wanted[some])
        assert cells.records(nodes[:0], depth).shape == (0,)


def test_cells_are_sorted_along_the_curve_and_the_input_stays_as_it_was():
    points = PointCounts.from_matrix(np.arange(64).reshape(8, 8))
    cells, column, count = CurveCells.of(points), points.column.copy(), points.count.copy()
    assert cells.place.tolist() == list(range(1, 64))
    assert cells.below[-1] == 63 * 32
    np.testing.assert_array_equal(points.column, column)
    np.testing.assert_array_equal(points.count, count)


def test_the_finest_lattice_fits_and_so_do_large_counts():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=24)
    points = PointCounts.from_xy([0.0, 1.0], [0.0, 1.0], domain=domain)
    points = replace(points, count=np.array([2**45, 2**45 + 3]))
    cells = CurveCells.of(points)
    assert cells.records(np.array([0]), 0).tolist() == [2**46 + 3]
    assert cells.records(np.array([0, 1, 3]), 1).tolist() == [2**45, 0, 2**45 + 3]
    assert cells.records(np.array([0, 4**24 - 1]), 24).tolist() == [2**45, 2**45 + 3]


def test_it_does_not_show_what_it_holds():
    assert repr(CurveCells.of(PointCounts.from_matrix(np.full((4, 4), 7)))) == "CurveCells(order 2)"
