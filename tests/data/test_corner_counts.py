"""Numbers of records south-west of crossings, by a table or without one, against the definition."""

import tracemalloc

import numpy as np
import pytest

from dpviz.data import indexes as corner_counts
from dpviz.data.indexes import CornerCounts
from dpviz.data.points import PointCounts
from dpviz.space.domain import Domain


def case(order: int, size: int, lines: int, seed: int) -> CornerCounts:
    rng = np.random.default_rng(seed)
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=order)
    points = PointCounts.from_xy(rng.random(size) ** 2, rng.random(size), domain=domain, count=rng.integers(1, 9, size))
    edges = [np.unique(np.append(rng.integers(0, domain.side + 1, lines), (0, domain.side))).astype(np.int32) for _ in "xy"]
    return CornerCounts(points=points, columns=edges[0], rows=edges[1])


@pytest.mark.parametrize(("order", "size", "lines"), [(1, 9, 1), (3, 0, 5), (3, 60, 30), (6, 300, 9), (6, 300, 300), (20, 500, 40)])
def test_both_ways_count_the_records_south_west_of_every_crossing(order, size, lines, monkeypatch):
    sums = case(order, size, lines, seed=order + lines)
    points, (row, column) = sums.points, np.indices((len(sums.rows), len(sums.columns)))
    west, south = points.column < sums.columns[:, None], points.row < sums.rows[:, None]
    wanted = (south * points.count) @ west.T
    np.testing.assert_array_equal(sums.table, wanted)
    np.testing.assert_array_equal(sums.at(row, column), wanted)
    monkeypatch.setattr(corner_counts, "MOST_CELLS", 0)
    np.testing.assert_array_equal(sums.at(row, column), wanted)
    np.testing.assert_array_equal(sums.at(row[:, :1], column[:1]), wanted)


def test_lines_that_end_within_the_lattice_leave_what_is_beyond_out(monkeypatch):
    points = PointCounts.from_matrix(np.arange(16).reshape(4, 4))
    for columns in ([0, 1, 2], [1, 3], [0, 2]):
        sums = CornerCounts(points=points, columns=np.array(columns, np.int32), rows=np.array([2, 3], np.int32))
        row, column = np.indices((2, len(columns)))
        table = sums.at(row, column)
        monkeypatch.setattr(corner_counts, "MOST_CELLS", 0)
        np.testing.assert_array_equal(sums.at(row, column), table)
        monkeypatch.undo()
        wanted = [[points.count[(points.row < north) & (points.column < east)].sum() for east in columns] for north in (2, 3)]
        np.testing.assert_array_equal(table, wanted)


def test_many_crossings_of_many_lines_need_no_table():
    sums = case(24, 10**6, 2**15, seed=1)
    rng = np.random.default_rng(2)
    row, column = rng.integers(0, len(sums.rows), 2**16), rng.integers(0, len(sums.columns), 2**16)
    tracemalloc.start()
    try:
        found = sums.at(row, column)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * 2**20
    for each in range(0, 2**16, 2**12):
        inside = (sums.points.row < sums.rows[row[each]]) & (sums.points.column < sums.columns[column[each]])
        assert found[each] == sums.points.count[inside].sum()


def test_no_record_is_in_its_repr():
    assert "77" not in repr(CornerCounts(points=PointCounts.from_matrix(np.full((2, 2), 77)), columns=[0, 2], rows=[0, 2])).split(" at ")[0]
