"""Indexes of occupied cells against slow definitions: by node, along the Z-order curve, and as sums south-west of crossings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data import indexes
from dpviz.data.indexes import Cells, CornerCounts, CurveCells, NodeCells
from dpviz.data.points import PointCounts
from dpviz.space.domain import Domain
from dpviz.space.morton import cells_at

Slow = list[list[tuple[int, int, int]]]
"""(column, row, count) of the cells of each node, in no particular order."""

several = settings(max_examples=15, deadline=None, derandomize=True)
matrices = st.tuples(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.5, 1.0])).map(
    lambda drawn: np.random.default_rng(drawn[0]).integers(1, 9, (8, 8)) * (np.random.default_rng(drawn[0]).random((8, 8)) < drawn[1])
)
orders = st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.booleans()), min_size=16, max_size=16), min_size=1, max_size=4)


def slow_of(points: PointCounts) -> Slow:
    return [list(zip(points.column.tolist(), points.row.tolist(), points.count.tolist(), strict=True))]


def slow_cut(nodes: Slow, across: list[bool], line: list[int], halved: list[bool]) -> Slow:
    parts: Slow = []
    for cells, columns, at, cut in zip(nodes, across, line, halved, strict=True):
        below = [cell for cell in cells if not cut or cell[0 if columns else 1] < at]
        parts += [below, [cell for cell in cells if cell not in below]] if cut else [below]
    return parts


def as_lists(found: NodeCells, order: str) -> Slow:
    cells: Cells = getattr(found, order)
    rows = list(zip(cells.column.tolist(), cells.row.tolist(), cells.count.tolist(), strict=True))
    return [rows[begin:end] for begin, end in zip(found.start[:-1].tolist(), found.start[1:].tolist(), strict=True)]


def assert_same(found: NodeCells, slow: Slow) -> None:
    """Both orders hold each node's cells, sorted by column and row, or by row and column."""
    assert as_lists(found, "by_column") == [sorted(cells) for cells in slow]
    assert as_lists(found, "by_row") == [sorted(cells, key=lambda cell: (cell[1], cell[0])) for cells in slow]
    assert found.records().tolist() == [sum(cell[2] for cell in cells) for cells in slow]
    assert found.start[-1] == len(found.by_row.column)


@pytest.fixture(params=[2**18, 1, 9])
def batch(request, monkeypatch):
    monkeypatch.setattr(indexes, "_CELLS_AT_ONCE", request.param)


def both_cut(matrix, cuts):
    """The indexed cells and the slow ones before and after each of some cuts."""
    points = PointCounts.from_matrix(matrix)
    found, slow = NodeCells.of(points), slow_of(points)
    yield found, slow
    for cut in cuts:
        across, line, halved = (list(part) for part in zip(*(cut * 32)[: len(slow)], strict=True))
        found, slow = found.cut(np.array(across), np.array(line), np.array(halved)), slow_cut(slow, across, line, halved)
        yield found, slow


@several
@given(matrices, orders)
def assert_cuts_are_the_slow_ones(matrix, cuts):
    for found, slow in both_cut(matrix, cuts):
        assert_same(found, slow)


def test_any_cuts_of_any_nodes_are_the_slow_ones(batch):
    """Mixed axes, lines at and beyond the ends, nodes that stay whole and nodes without a cell, whatever the batches."""
    assert_cuts_are_the_slow_ones()


@several
@given(matrices, orders, st.lists(st.booleans(), min_size=64, max_size=64))
def test_kept_nodes_keep_their_cells_and_their_order(matrix, cuts, keep):
    *_, (found, slow) = both_cut(matrix, cuts)
    chosen = np.array((keep * 8)[: len(slow)])
    assert_same(found.filter_nodes(chosen), [cells for cells, stays in zip(slow, chosen, strict=True) if stays])
    assert_same(found.filter_nodes(np.zeros(len(slow), np.bool_)), [])
    assert found.filter_nodes(np.ones(len(slow), np.bool_)) is found


@several
@given(matrices, st.lists(st.booleans(), min_size=4, max_size=4), st.booleans(), st.integers(1, 7))
def test_places_along_the_axis_of_each_node_ascend_with_their_counts(matrix, across, first, line):
    found = NodeCells.of(PointCounts.from_matrix(matrix))
    for columns in (first, not first):
        nodes = len(found.start) - 1
        found = found.cut(np.full(nodes, columns), np.full(nodes, line), np.ones(nodes, np.bool_))
    value, count = found.along(np.array(across))
    assert len(value) == len(count) == found.start[-1]
    for node, columns in enumerate(across):
        own, slow = slice(*found.start[node : node + 2].tolist()), as_lists(found, "by_column")[node]
        assert (np.diff(value[own]) >= 0).all()
        pairs = sorted(zip(value[own].tolist(), count[own].tolist(), strict=True))
        assert pairs == sorted((cell[0 if columns else 1], cell[2]) for cell in slow)


def test_an_order_that_no_cut_disturbs_is_not_copied():
    found = NodeCells.of(PointCounts.from_matrix(np.arange(16).reshape(4, 4)))
    for across in (True, False):
        parts = found.cut(np.array([across]), np.array([2]), np.array([True]))
        assert (parts.by_column is found.by_column, parts.by_row is found.by_row) == (across, not across)
        assert parts.along(np.full(2, across))[0] is (parts.by_column.column if across else parts.by_row.row)


def test_the_finest_lattice_and_large_counts_fit():
    """The four corners of a lattice of 2**24 x 2**24, by node and along the curve."""
    column, row = np.array([0, 1, 0, 1]) * (2**24 - 1), np.array([0, 0, 1, 1]) * (2**24 - 1)
    count = 2**45 + np.arange(4)
    points = PointCounts(domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=24), column=column, row=row, count=count)
    found = NodeCells.of(points)
    for columns in (True, False):
        nodes = len(found.start) - 1
        found = found.cut(np.full(nodes, columns), np.full(nodes, 2**23), np.ones(nodes, np.bool_))
    assert found.records().tolist() == count[[0, 2, 1, 3]].tolist()
    cells = CurveCells.of(points)
    assert cells.records(np.array([0]), 0).tolist() == [4 * 2**45 + 6]
    assert cells.records(np.arange(4), 1).tolist() == count.tolist()
    assert cells.records(np.array([0, 4**24 - 1]), 24).tolist() == [2**45, 2**45 + 3]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_the_records_of_every_node_of_every_depth_are_those_of_its_cells(order, share):
    rng, side = np.random.default_rng(order), 1 << order
    matrix = rng.integers(1, 9, (side, side)) * (rng.random((side, side)) < share)
    cells = CurveCells.of(PointCounts.from_matrix(matrix))
    for depth in range(order + 1):
        nodes, width = np.arange(4**depth), side >> depth
        column, row = cells_at(nodes)
        wanted = matrix.reshape(1 << depth, width, 1 << depth, width).sum((1, 3))[row, column]
        np.testing.assert_array_equal(cells.records(nodes, depth), wanted)
        some = rng.permutation(nodes)[:7]
        np.testing.assert_array_equal(cells.records(some, depth), wanted[some])
        assert cells.records(nodes[:0], depth).shape == (0,)


def test_cells_are_sorted_along_the_curve():
    cells = CurveCells.of(PointCounts.from_matrix(np.arange(64).reshape(8, 8)))
    assert (cells.position.tolist(), cells.below[-1]) == (list(range(1, 64)), 63 * 32)


def case(order: int, size: int, lines: int | list[int], seed: int) -> CornerCounts:
    rng = np.random.default_rng(seed)
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=order)
    points = PointCounts.from_xy(rng.random(size) ** 2, rng.random(size), domain=domain, count=rng.integers(1, 9, size))
    edges = [lines if isinstance(lines, list) else rng.choice(domain.side + 1, min(lines, domain.side) + 1, replace=False) for _ in "xy"]
    columns, rows = (np.sort(np.array(each, np.int32)) for each in edges)
    return CornerCounts(points=points, columns=columns, rows=rows)


@pytest.mark.parametrize(
    ("order", "size", "lines"), [(1, 9, 1), (3, 0, 5), (3, 60, 30), (3, 60, [0, 2, 4]), (6, 300, 9), (6, 300, 300), (20, 500, 40)]
)
def test_both_ways_count_the_records_south_west_of_every_crossing(order, size, lines, monkeypatch):
    sums = case(order, size, lines, seed=order + size)
    points, (row, column) = sums.points, np.indices((len(sums.rows), len(sums.columns)))
    west, south = points.column < sums.columns[:, None], points.row < sums.rows[:, None]
    wanted = (south * points.count) @ west.T
    np.testing.assert_array_equal(sums.table, wanted)
    np.testing.assert_array_equal(sums.at(row, column), wanted)
    monkeypatch.setattr(indexes, "MOST_CELLS", 0)
    np.testing.assert_array_equal(sums.at(row, column), wanted)
    np.testing.assert_array_equal(sums.at(row[:, :1], column[:1]), wanted)


def test_many_crossings_of_many_lines_need_no_table():
    sums = case(24, 10**5, 2**15, seed=1)
    row, column = np.random.default_rng(2).integers(0, len(sums.rows), (2, 50))
    inside = (sums.points.row < sums.rows[row, None]) & (sums.points.column < sums.columns[column, None])
    np.testing.assert_array_equal(sums.at(row, column), inside @ sums.points.count)
    assert "table" not in vars(sums)


def test_no_record_is_in_any_repr():
    sevens = PointCounts.from_matrix(np.full((4, 4), 77))
    assert repr(NodeCells.of(sevens)) == "NodeCells(1 nodes)"
    assert repr(CurveCells.of(sevens)) == "CurveCells(order 2)"
    assert "77" not in repr(CornerCounts(points=sevens, columns=[0, 2], rows=[0, 2])).split(" at ")[0]
