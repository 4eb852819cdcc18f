"""The Hilbert curve against geopandas' encoder, and boxes around its stretches against all of their places."""

import numpy as np
import pytest
from geopandas.tools.hilbert_curve import _encode

from dpviz.space.hilbert import Curve, boxes, cells_at, hilbert


def some_places(order: int, count: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Random columns and rows, and the four corners."""
    rng, last = np.random.default_rng(order), (1 << order) - 1
    column, row = rng.integers(0, 1 << order, (2, count))
    return np.r_[column, 0, last, 0, last], np.r_[row, 0, 0, last, last]


@pytest.mark.parametrize("order", range(1, 17))
def test_positions_are_those_of_geopandas(order):
    column, row = some_places(order)
    np.testing.assert_array_equal(hilbert(column, row, order), _encode(order, column, row))


@pytest.mark.parametrize("order", range(17, 25))
def test_finer_curves_refine_those_of_geopandas(order):
    (column, row), finer = some_places(order), order - 16
    found = hilbert(column, row, order)
    np.testing.assert_array_equal(found >> 2 * finer, _encode(16, column >> finer, row >> finer))
    assert found.max() < 4**order


@pytest.mark.parametrize("order", range(1, 25))
def test_columns_and_rows_come_back_from_positions(order):
    column, row = some_places(order)
    for given in (np.int32, np.int64):
        found = hilbert(column.astype(given), row.astype(given), order)
        assert found.dtype == np.int64
        for part, expected in zip(cells_at(found, order), (column, row), strict=True):
            np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("order", [1, 2, 3, 6, 7, 8])
def test_the_curve_visits_every_cell_once_by_unit_steps_from_corner_to_corner(order):
    column, row = cells_at(np.arange(4**order), order)
    assert len(np.unique(column << order | row)) == 4**order
    assert (np.abs(np.diff(column)) + np.abs(np.diff(row)) == 1).all()
    assert (column[0], row[0], column[-1], row[-1]) == (0, 0, 2**order - 1, 0)


@pytest.mark.parametrize("order", [17, 18, 23, 24])
def test_fine_curves_take_unit_steps(order):
    rng = np.random.default_rng(order)
    start = np.r_[0, 4**order - 200, rng.integers(0, 4**order - 200, 50), 4 ** rng.integers(7, order, 20) - 100]
    column, row = (part.reshape(-1, 200) for part in cells_at((start[:, None] + np.arange(200)).ravel(), order))
    assert (np.abs(np.diff(column)) + np.abs(np.diff(row)) == 1).all()


def test_nothing_has_no_place_and_many_are_found_like_few():
    none = np.zeros(0, np.int64)
    assert hilbert(none, none, 7).shape == cells_at(none, 7)[0].shape == (0,)
    assert boxes(none, none, 7).shape == (0, 4)
    column, row = some_places(20, 40_000)
    np.testing.assert_array_equal(hilbert(column, row, 20)[::10_001], hilbert(column[::10_001], row[::10_001], 20))


def box_of(column: np.ndarray, row: np.ndarray) -> list[int]:
    return [column.min(), row.min(), column.max() + 1, row.max() + 1]


def stretches(rng: np.random.Generator, order: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Stretches of every length, single places and the whole among them."""
    size = 4**order
    length = np.exp(rng.uniform(0, np.log(size), count)).astype(np.int64)
    length[:3], length[-1] = 1, size
    first = rng.integers(0, size - length + 1)
    return first, first + length


def test_boxes_of_all_stretches_of_small_curves_are_those_of_their_positions():
    for order in (1, 2, 3):
        column, row = cells_at(np.arange(4**order), order)
        first, last = np.triu_indices(4**order)
        expected = [box_of(column[low : high + 1], row[low : high + 1]) for low, high in zip(first, last, strict=True)]
        np.testing.assert_array_equal(boxes(first, last + 1, order), expected)


@pytest.mark.parametrize("order", [4, 5, 7, 8])
def test_boxes_of_random_stretches_are_those_of_their_positions(order):
    column, row = cells_at(np.arange(4**order), order)
    first, last = stretches(np.random.default_rng(order), order, 2000)
    expected = [box_of(column[low:high], row[low:high]) for low, high in zip(first, last, strict=True)]
    found = boxes(first, last, order)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("order", [18, 24])
def test_boxes_on_fine_curves_are_those_of_coarse_ones_where_these_divide_them(order):
    fine = order - 5
    first, last = stretches(np.random.default_rng(order), 5, 500)
    np.testing.assert_array_equal(boxes(first << 2 * fine, last << 2 * fine, order), boxes(first, last, 5) << fine)
    first, last = stretches(np.random.default_rng(order), 6, 300)
    column, row = cells_at(np.arange(4**6) + (4**order - 4**7), order)
    found = boxes(first + (4**order - 4**7), last + (4**order - 4**7), order)
    expected = [box_of(column[low:high], row[low:high]) for low, high in zip(first, last, strict=True)]
    np.testing.assert_array_equal(found, expected)


def test_a_curve_on_a_finer_lattice_is_one_of_blocks():
    curve = Curve(order=2, first=np.array([0, 3, 4]), last=np.array([16, 4, 6]))
    np.testing.assert_array_equal(curve.rectangles(5), boxes(curve.first, curve.last, 2) * 8)
    row, column = (part.ravel() for part in np.indices((32, 32)))
    np.testing.assert_array_equal(curve.positions(column, row, 5), hilbert(column // 8, row // 8, 2))
    with pytest.raises(ValueError, match="read-only"):
        curve.first[0] = 1
