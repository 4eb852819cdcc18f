"""Odd arrays and frames: refused with an error of our own, or counted right."""

import math
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.space.domain import Domain

SQUARE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)


def test_coordinates_that_are_no_numbers_are_refused():
    texts = [
        ["1"],
        [True],
        [1j],
        [b"1"],
        np.array(["2020-01-01"], "M8[D]"),
        np.array(["1"], object),
        np.array([True], object),
        pd.Series(["1"]),
    ]
    for values in texts:
        for xy in ((values, [1.0]), ([1.0], values)):
            with pytest.raises(InputError, match="must hold numbers"):
                PointCounts.from_xy(*xy, domain=SQUARE, bad_rows="drop")


def test_numbers_may_be_held_in_many_ways():
    held = [
        (1, 2),
        np.array([1, 2.5], object),
        pd.Series([1, 2]),
        pd.Series([1, 2], dtype="Int64"),
        np.array([1, 2], np.float16),
        range(1, 3),
    ]
    for values in held:
        assert PointCounts.from_xy(values, values, domain=SQUARE).column.tolist() == [1, 2]
    gaps = [np.array([1, None], object), pd.Series([1, None], dtype="Int64"), pd.Series([1, None]), np.array([1, pd.NA], object)]
    for values in gaps:
        points = PointCounts.from_xy(values, [1, 2], domain=SQUARE, bad_rows="drop")
        assert (points.column.tolist(), points.dropped) == ([1], 1)


@pytest.mark.parametrize("kind", [np.int64, np.float64, object])
def test_hidden_values_are_missing(kind):
    hidden = np.ma.masked_array(np.array([1, 2, 3], kind), mask=[False, True, False])
    for options in ({"x": hidden, "y": [1, 2, 3]}, {"x": [1, 2, 3], "y": hidden}):
        with pytest.raises(InputError, match="missing"):
            PointCounts.from_xy(**options, domain=SQUARE)
        points = PointCounts.from_xy(**options, domain=SQUARE, bad_rows="drop")
        assert (points.column.tolist(), points.dropped) == ([1, 3], 1)


def test_hidden_counts_are_bad():
    hidden = np.ma.masked_array([1, 2], mask=[False, True])
    with pytest.raises(InputError, match="whole numbers"):
        PointCounts.from_xy([1, 2], [1, 2], domain=SQUARE, count=hidden)
    assert PointCounts.from_xy([1, 2], [1, 2], domain=SQUARE, count=hidden, bad_rows="drop").count.tolist() == [1]
    with pytest.raises(InputError, match="whole numbers"):
        PointCounts.from_matrix(np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]))


def test_ragged_lists_are_refused():
    with pytest.raises(InputError, match="square"):
        PointCounts.from_matrix([[1, 2], [3]])
    with pytest.raises(InputError, match="one number per row"):
        PointCounts.from_xy([1, 2], [1, 2], domain=SQUARE, count=[[1], [1, 2]])
    with pytest.raises(InputError, match="numbers"):
        PointCounts.from_xy([[1], [1, 2]], [1, 2], domain=SQUARE)


@pytest.mark.parametrize("frame", [gpd.GeoDataFrame({"a": [1]}), pd.DataFrame({"geometry": [1]}), pd.DataFrame({"a": [1]}), None])
def test_frames_without_geometry_are_refused(frame):
    with pytest.raises(InputError, match="geometry column"):
        PointCounts.from_geodataframe(frame, domain=SQUARE)


def fields(**changes):
    return {"domain": SQUARE, "column": np.array([1, 2]), "row": np.array([0, 0]), "count": np.array([3, 4])} | changes


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"column": np.array([1])}, "same length"),
        ({"count": np.array([[3, 4]])}, "one dimension"),
        ({"count": np.array([3.0, 4.0])}, "whole numbers"),
        ({"count": [3, 4]}, "array"),
        ({"count": np.array([3, 0])}, "at least 1"),
        ({"count": np.array([3, -4])}, "at least 1"),
        ({"count": np.array([2**53, 1])}, "2\\*\\*53"),
        ({"count": np.array([2**63, 1], np.uint64)}, "too large"),
        ({"column": np.array([1, 8])}, "lattice"),
        ({"column": np.array([1, 2**40])}, "too large"),
        ({"row": np.array([-1, 0])}, "lattice"),
        ({"column": np.array([2, 1])}, "ordered"),
        ({"column": np.array([1, 1])}, "distinct"),
        ({"contributions": 0}, "contributions"),
        ({"contributions": 1.0}, "contributions"),
        ({"unit": "household"}, "unit"),
        ({"dropped": -1}, "dropped"),
        ({"dropped": math.nan}, "dropped"),
    ],
)
def test_fields_that_make_no_sense_are_refused(changes, rule):
    with pytest.raises(InputError, match=rule):
        PointCounts(**fields(**changes))


def test_the_callers_arrays_stay_the_callers():
    own = fields()
    view = own["count"][:]
    view.flags.writeable = False
    points, viewed = PointCounts(**own), PointCounts(**own | {"count": view})
    own["count"][0] = 99
    assert points.count.tolist() == viewed.count.tolist() == [3, 4]
    assert (points.column.dtype, points.row.dtype, points.count.dtype) == (np.int32, np.int32, np.int64)
    assert replace(points, dropped=1).count is points.count
