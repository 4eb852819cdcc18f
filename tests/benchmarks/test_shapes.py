"""Masks by polygons of many corners, against one prepared test for each cell."""

from functools import partial

import numpy as np
import pytest
import shapely

import dpviz as dv
from dpviz.space.touched_cells import find_touched
from tests.benchmarks.measures import best

DOMAIN = dv.Domain(bounds=(-1, -1, 1, 1), crs=None, order=11)


def coast(corners):
    angle = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return shapely.Polygon((0.8 * (1 + 0.05 * np.sin(37 * angle)) * np.array([np.cos(angle), np.sin(angle)])).T)


def star(corners):
    angle = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return shapely.Polygon((np.where(np.arange(corners) % 2, 0.2, 0.95) * np.array([np.cos(angle), np.sin(angle)])).T)


def prepared(shape, order):
    side = 1 << order
    row, column = np.divmod(np.arange(side**2), side)
    boxes = DOMAIN.boxes(np.stack([column, row, column + 1, row + 1], axis=1) * (DOMAIN.side >> order))

    def test():
        own = shapely.from_wkb(shapely.to_wkb(shape))
        shapely.prepare(own)
        return shapely.intersects(own, boxes).reshape(side, side)

    return test


@pytest.mark.benchmark
@pytest.mark.parametrize(("make", "corners", "bar"), [(coast, 1_000, 2), (coast, 10_000, 2), (coast, 100_000, 2), (star, 3_000, 2)])
def test_a_mask_of_order_9(make, corners, bar, line):
    shape, theirs = make(corners), prepared(make(corners), 9)
    np.testing.assert_array_equal(find_touched(DOMAIN, np.array([shape]), 9), theirs())
    ours = best(lambda: find_touched(DOMAIN, np.array([shape]), 9), 3)
    line(f"{make.__name__} of {corners:,} corners, order 9", ours, best(theirs, 1), "prepare and intersects", bar)


@pytest.mark.benchmark
@pytest.mark.parametrize("make", [coast, star])
@pytest.mark.parametrize("order", [9, 11])
def test_ten_times_the_corners_take_at_most_twelve_times_as_long(make, order, line):
    few, many = (best(partial(find_touched, DOMAIN, np.array([make(corners)]), order), 1) for corners in (1_000, 10_000))
    line(f"{make.__name__} of 10,000 corners, order {order}", many, few, "1,000 corners", 12)
