"""How boxes lie over grids, against the slow definition cell by cell."""

import tracemalloc

import numpy as np
import pytest

from dpviz.data.indexes import CornerCounts
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.evaluation.metrics import true_answers
from dpviz.mechanisms.expected_error import Boxes, BoxQueries, grid_bias, grid_cover, tuning_boxes
from dpviz.space.domain import Domain
from dpviz.space.grids import grid

CASES = pytest.mark.parametrize(("order", "side"), [(1, 1), (1, 2), (3, 3), (5, 7), (6, 64), (6, 17)])


def case(order, side):
    rng = np.random.default_rng(order * 100 + side)
    domain = Domain(bounds=(0, 0, 4, 1), crs=None, order=order)
    points = PointCounts.from_xy(4 * rng.random(300) ** 2, rng.random(300), domain=domain)
    edges = np.sort(rng.integers(0, domain.side + 1, (60, 2, 2)), axis=1).reshape(60, 4)
    edges[:, 2:] = np.maximum(edges[:, 2:], edges[:, :2] + 1)
    edges[:, 2:] = np.minimum(edges[:, 2:], domain.side)
    edges[:, :2] = np.minimum(edges[:, :2], edges[:, 2:] - 1)
    return points, Boxes(domain=domain, lattice=edges)


def shares(boxes: Boxes, side: int) -> np.ndarray:
    """(q, side, side) share of every cell in every box, [row, column]."""
    columns, rows = grid(boxes.domain, side, side).lines
    found = []
    for west, south, east, north in boxes.lattice:
        across = np.clip(np.minimum(east, columns[1:]) - np.maximum(west, columns[:-1]), 0, None) / np.diff(columns)
        up = np.clip(np.minimum(north, rows[1:]) - np.maximum(south, rows[:-1]), 0, None) / np.diff(rows)
        found.append(np.outer(up, across))
    return np.array(found)


@CASES
def test_true_counts_are_those_of_the_metrics(order, side):
    points, boxes = case(order, side)
    np.testing.assert_array_equal(
        BoxQueries(points=points, boxes=boxes).truth, true_answers(points, boxes.domain.coordinates(boxes.lattice))
    )


@CASES
def test_answers_squares_and_areas_are_sums_over_cells(order, side):
    points, boxes = case(order, side)
    lines = grid(points.domain, side, side).lines
    counted, cover, alpha = CornerCounts(points=points, columns=lines[0], rows=lines[1]), grid_cover(boxes, side), shares(boxes, side)
    sums, cells = counted.at, np.diff(np.diff(counted.table, axis=0), axis=1)
    assert cells.sum() == points.count.sum()
    np.testing.assert_allclose(cover.weighted(sums), (alpha * cells).sum(axis=(1, 2)), rtol=1e-14)
    np.testing.assert_allclose(cover.area, alpha.sum(axis=(1, 2)), rtol=1e-14)
    np.testing.assert_allclose(cover.squares, (alpha**2).sum(axis=(1, 2)), rtol=1e-14)
    cut = np.where(alpha < 1, alpha**2 * cells, 0).sum(axis=(1, 2))
    np.testing.assert_allclose(cover.cut(sums), cut, rtol=1e-14)
    west, south, east, north = cover.whole().T
    np.testing.assert_array_equal((east - west) * (north - south), (alpha == 1).sum(axis=(1, 2)))


@CASES
def test_the_numbers_of_boxes_that_share_a_cell_or_a_place_are_counted(order, side):
    _, boxes = case(order, side)
    alpha = shares(boxes, side)
    assert grid_cover(boxes, side).most_cut == ((alpha > 0) & (alpha < 1)).sum(axis=0).max()
    assert boxes.most_inside == (shares(boxes, boxes.domain.side) == 1).sum(axis=0).max()


def test_as_many_boxes_as_are_allowed_on_the_finest_lattice_need_no_table_of_their_corners():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=24)
    rng = np.random.default_rng(1)
    points = PointCounts.from_xy(rng.random(10**5) ** 2, rng.random(10**5), domain=domain)
    boxes = tuning_boxes(domain, tuple(0.05 * size for size in range(1, 17)), 1000, 7)
    tracemalloc.start()
    try:
        queries = BoxQueries(points=points, boxes=boxes)
        truth, bias, _ = queries.truth, grid_bias(queries, 4096), boxes.most_inside
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * 2**20
    some = slice(0, 16_000, 800)
    np.testing.assert_array_equal(truth[some], true_answers(points, domain.coordinates(boxes.lattice[some])))
    assert bias.max() < 0.01 * len(points.count)


def test_tuning_boxes_have_the_domains_proportions_and_come_from_the_seed():
    domain = Domain(bounds=(0, 0, 4, 1), crs=None, order=6)
    boxes = tuning_boxes(domain, (0.1, 0.5), 30, 7)
    assert len(boxes) == 60
    np.testing.assert_array_equal(boxes.lattice[:30, 2:] - boxes.lattice[:30, :2], np.full((30, 2), 6))
    np.testing.assert_array_equal(boxes.lattice[30:, 2:] - boxes.lattice[30:, :2], np.full((30, 2), 32))
    assert tuning_boxes(domain, (0.1, 0.5), 30, 7) is boxes
    assert (tuning_boxes(domain, (0.1, 0.5), 30, 8).lattice != boxes.lattice).any()
    for sizes, number in (((), 5), ((0.5,) * 17, 1000)):
        with pytest.raises(SettingError, match="16,384"):
            tuning_boxes(domain, sizes, number, 7)
