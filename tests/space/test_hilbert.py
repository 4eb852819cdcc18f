"""The Hilbert curve against geopandas' encoder, and boxes around its stretches against all of their places."""

import numpy as np
import pytest
from geopandas.tools.hilbert_curve import _encode

from dpviz.space.hilbert import Curve, boxes, cells_at, hilbert


def some_places(order: int, count: int = 4000) -> np.ndarray:
    """(2, n) random columns and rows, and the four corners."""
    last = (1 << order) - 1
    return np.c_[np.random.default_rng(order).integers(0, 1 << order, (2, count)), [[0, last, 0, last], [0, 0, last, last]]]


@pytest.mark.parametrize("order", range(1, 25))
def test_positions_are_those_of_geopandas_or_refine_them_and_columns_and_rows_come_back(order):
    finer = max(order - 16, 0)
    for dtype in (np.int32, np.int64):
        column, row = some_places(order).astype(dtype)
        found = hilbert(column, row, order)
        assert found.dtype == np.int64
        assert found.max() < 4**order
        np.testing.assert_array_equal(found >> 2 * finer, _encode(order - finer, column >> finer, row >> finer))
        np.testing.assert_array_equal(cells_at(found, order), (column, row))


@pytest.mark.parametrize("order", [17, 18, 23, 24])
def test_a_curve_finer_than_that_of_geopandas_takes_unit_steps(order):
    rng = np.random.default_rng(order)
    start = np.r_[0, 4**order - 200, rng.integers(0, 4**order - 200, 50), 4 ** rng.integers(7, order, 20) - 100]
    cells = np.stack(cells_at((start[:, None] + np.arange(200)).ravel(), order)).reshape(2, -1, 200)
    assert (np.abs(np.diff(cells)).sum(axis=0) == 1).all()


def test_nothing_has_no_place_and_many_are_found_like_few():
    none = np.zeros(0, np.int64)
    assert hilbert(none, none, 7).shape == cells_at(none, 7)[0].shape == (0,)
    assert boxes(none, none, 7).shape == (0, 4)
    column, row = some_places(20, 40_000)
    np.testing.assert_array_equal(hilbert(column, row, 20)[::10_001], hilbert(column[::10_001], row[::10_001], 20))


def stretches(rng: np.random.Generator, order: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Stretches of every length, single places and the whole among them."""
    size = 4**order
    length = np.exp(rng.uniform(0, np.log(size), count)).astype(np.int64)
    length[:3], length[-1] = 1, size
    first = rng.integers(0, size - length + 1)
    return first, first + length


def box_by_box(column: np.ndarray, row: np.ndarray, first: np.ndarray, last: np.ndarray) -> list[list[int]]:
    """Bounding boxes of stretches of given cells, the long way."""
    parts = [(column[low:high], row[low:high]) for low, high in zip(first, last, strict=True)]
    return [[across.min(), up.min(), across.max() + 1, up.max() + 1] for across, up in parts]


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 7, 8])
def test_boxes_of_stretches_are_those_of_their_positions(order):
    """All stretches of small curves, random ones of larger curves."""
    first, last = stretches(np.random.default_rng(order), order, 1500)
    if order < 4:
        first, last = np.triu_indices(4**order)
        last = last + 1
    found = boxes(first, last, order)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, box_by_box(*cells_at(np.arange(4**order), order), first, last))


@pytest.mark.parametrize("order", [18, 24])
def test_boxes_on_fine_curves_are_those_of_coarse_ones_where_these_divide_them(order):
    fine, rng, start = order - 5, np.random.default_rng(order), 4**order - 4**7
    first, last = stretches(rng, 5, 500)
    np.testing.assert_array_equal(boxes(first << 2 * fine, last << 2 * fine, order), boxes(first, last, 5) << fine)
    first, last = stretches(rng, 6, 300)
    cells = cells_at(np.arange(4**6) + start, order)
    np.testing.assert_array_equal(boxes(first + start, last + start, order), box_by_box(*cells, first, last))


def test_a_curve_on_a_finer_lattice_is_one_of_blocks():
    curve = Curve(order=2, first=np.array([0, 3, 4]), last=np.array([16, 4, 6]))
    np.testing.assert_array_equal(curve.rectangles(5), boxes(curve.first, curve.last, 2) * 8)
    row, column = (part.ravel() for part in np.indices((32, 32)))
    np.testing.assert_array_equal(curve.positions(column, row, 5), hilbert(column // 8, row // 8, 2))
    with pytest.raises(ValueError, match="read-only"):
        curve.first[0] = 1
