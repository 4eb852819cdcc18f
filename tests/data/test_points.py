"""Points on a lattice: counted as numpy counts them, whatever holds the coordinates, and nothing private in errors or texts."""

import math
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.points import PointCounts
from dpviz.errors import DomainError, InputError
from dpviz.space.domain import Domain
from tests.data.reading.files import refused
from tests.strategies import dense, domains, points_in

few = settings(max_examples=20, deadline=None, derandomize=True)
SQUARE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
RAGGED = [[1], [1, 2]]


def middles(cells, domain):
    """(n,) x and (n,) y of the middles of (n,) lattice cells, numbered row by row."""
    row, column = np.divmod(cells, domain.side)
    west, south, east, north = domain.coordinates(np.stack([column, row, column + 1, row + 1], axis=1)).T
    return (west + east) / 2, (south + north) / 2


@few
@given(st.data())
def test_counts_agree_with_numpys_histogram(data):
    domain = data.draw(domains(orders=(1, 8)))
    cells = np.array(data.draw(st.lists(st.integers(0, domain.side**2 - 1), max_size=50)), np.int64)
    x, y = middles(cells, domain)
    west, south, east, north = domain.bounds
    expected, _, _ = np.histogram2d(y, x, bins=domain.side, range=((south, north), (west, east)))
    np.testing.assert_array_equal(dense(PointCounts.from_xy(x, y, domain=domain)), expected)


@pytest.mark.parametrize("count", [None, np.arange(60) % 3])
def test_counts_are_the_same_on_a_lattice_too_fine_for_a_table_of_its_cells(count):
    x, y = np.random.default_rng(1).choice([0.5, 1.5, 7.9], (2, 60))
    fine = PointCounts.from_xy(x, y, domain=replace(SQUARE, order=16), count=count)
    np.testing.assert_array_equal(fine.blocks(3), dense(PointCounts.from_xy(x, y, domain=SQUARE, count=count)))


@few
@given(st.data())
def test_a_counts_column_means_that_many_rows(data):
    x, y = data.draw(points_in(SQUARE))
    count = np.array(data.draw(st.lists(st.integers(0, 5), min_size=len(x), max_size=len(x))), np.int64)
    one = PointCounts.from_xy(x, y, domain=SQUARE, count=count)
    other = PointCounts.from_xy(np.repeat(x, count), np.repeat(y, count), domain=SQUARE)
    np.testing.assert_array_equal(dense(one), dense(other))


@pytest.mark.parametrize("big", [10**9 + 1, 2**54, np.uint64(2**63), 1e300])
def test_counts_beyond_what_a_cell_holds_are_cut(big):
    assert PointCounts.from_xy([1.0], [1.0], domain=SQUARE, count=[10**9 - 1]).count.tolist() == [10**9 - 1]
    assert PointCounts.from_xy([1.0, 1.0], [1.0, 1.0], domain=SQUARE, count=[big, big]).count.tolist() == [10**9]
    assert PointCounts.from_matrix(np.array([[0, big], [1, 1]])).count.tolist() == [10**9, 1, 1]


@pytest.mark.parametrize("count", [[0.5], [-1], [math.nan], [math.inf]])
def test_counts_that_are_not_whole_are_refused_or_dropped(count):
    assert "whole numbers" in refused(PointCounts.from_xy, [1.0], [1.0], domain=SQUARE, count=count)
    left = PointCounts.from_xy([1.0], [1.0], domain=SQUARE, count=count, bad_rows="drop")
    assert (left.count.sum(), left.dropped) == (0, 1)


@pytest.mark.parametrize("count", [["1"], [True], [1j], [[1]], RAGGED, [1, 2], [None]])
def test_counts_of_another_kind_are_refused(count):
    assert "counts column" in refused(PointCounts.from_xy, [1.0], [1.0], domain=SQUARE, count=count, bad_rows="drop")


def test_dropped_adds_up_over_every_reason():
    small = Domain(bounds=(0.0, 0.0, 1e-3, 1e-3), crs=None)
    assert PointCounts.from_xy([1e308, -1e308], [0.0, 0.0], domain=small).dropped == 2
    x = [1.0, 99.0, math.nan, 1.0, 1.0, 1.0]
    person = ["a", "b", "c", None, "a", "d"]
    points = PointCounts.from_xy(x, [1.0] * 6, domain=SQUARE, person=person, bad_rows="drop")
    assert (points.count.sum(), points.dropped) == (2, 4)  # one of a's two, and d's


WRONG = [({"contributions": most}, rule) for most, rule in ((0, "at least 1"), (1.5, "whole"), (math.nan, "whole"), (True, "whole"))]
WRONG += [({"contributions": 2}, "person column"), ({"bad_rows": "ignore"}, "bad_rows")]
WRONG += [({"person": ["a"]}, "one entry per row"), ({"person": ["a", None]}, "missing")]


@pytest.mark.parametrize(("options", "rule"), WRONG)
def test_options_that_make_no_sense_are_refused(options, rule):
    assert rule in refused(PointCounts.from_xy, [1.0, 2.0], [1.0, 2.0], domain=SQUARE, **options)


def test_no_private_number_is_in_the_repr_and_arrays_cannot_be_changed():
    points = PointCounts.from_xy([1.0] * 7771, [1.0] * 7771, domain=SQUARE, count=np.full(7771, 13))
    assert not [word for word in ("7771", "count", "dropped", "column", "row") if word in repr(points)]
    with pytest.raises(ValueError, match="read-only"):
        points.count[0] = 5


@pytest.mark.parametrize("matrix", [[1, 2], [[1, 2]], np.zeros((3, 3)), np.zeros((1, 1)), np.zeros((0, 0)), np.zeros((2, 2, 2)), 5, RAGGED])
def test_matrices_of_a_wrong_shape_are_refused(matrix):
    assert "power of two" in refused(PointCounts.from_matrix, matrix)


def test_a_matrix_holds_counts_and_fits_its_domain():
    matrix = np.arange(16).reshape(4, 4)
    for kind in (np.int64, np.uint8, np.float32):
        points = PointCounts.from_matrix(matrix.astype(kind))
        np.testing.assert_array_equal(dense(points), matrix)
        assert points.domain == Domain(bounds=(0, 0, 4, 4), crs=None, order=2)
    for bad in (-1, 0.5, math.nan, math.inf):
        assert "whole numbers" in refused(PointCounts.from_matrix, [[0, 1], [2, bad]])
    assert "whole numbers" in refused(PointCounts.from_matrix, np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]))
    assert PointCounts.from_matrix(np.ones((8, 8)), domain=SQUARE).domain == SQUARE
    assert "same side" in refused(PointCounts.from_matrix, np.ones((4, 4)), domain=SQUARE, error=DomainError)


@few
@given(st.data())
def test_blocks_are_sums_of_cells_at_every_zoom(data):
    domain = data.draw(domains(orders=(1, 6)))
    x, y = data.draw(points_in(domain))
    points = PointCounts.from_xy(x, y, domain=domain)
    for zoom in range(domain.order + 1):
        size = domain.side >> zoom
        np.testing.assert_array_equal(points.blocks(zoom), dense(points).reshape(1 << zoom, size, 1 << zoom, size).sum(axis=(1, 3)))


def test_geodataframes_are_reprojected_and_need_a_crs():
    domain = Domain(bounds=(-2e6, -2e6, 2e6, 2e6), crs="EPSG:3857", order=2)
    frame = gpd.GeoDataFrame(geometry=gpd.points_from_xy([10.0, -10.0], [10.0, -10.0]), crs="EPSG:4326")
    points = PointCounts.from_geodataframe(frame, domain=domain)
    assert list(zip(points.column, points.row, strict=True)) == [(0, 0), (3, 3)]
    assert "no CRS" in refused(PointCounts.from_geodataframe, frame.set_crs(None, allow_override=True), domain=domain)
    with pytest.raises(InputError, match="points only"):
        PointCounts.from_geodataframe(frame.set_geometry(shapely.box([0, 0], 0, 1, 1), crs="EPSG:4326"), domain=domain)
    frame = gpd.GeoDataFrame(geometry=gpd.GeoSeries.from_wkt(["POINT (1 1)", None, "POINT EMPTY"]))
    assert "missing" in refused(PointCounts.from_geodataframe, frame, domain=SQUARE)
    assert PointCounts.from_geodataframe(frame, domain=SQUARE, bad_rows="drop").dropped == 2
    mixed = gpd.GeoDataFrame(geometry=[shapely.Point(1, 1), shapely.box(0, 0, 1, 1)])
    assert "points only" in refused(PointCounts.from_geodataframe, mixed, domain=SQUARE)
    assert PointCounts.from_geodataframe(mixed, domain=SQUARE, bad_rows="drop").bad == 1
    assert "points only" in refused(PointCounts.from_geodataframe, mixed[1:], domain=SQUARE, bad_rows="drop")


NO_NUMBERS = [["zq17"], [True], [1j], [b"1"], [10**400], RAGGED, np.array(["2020-01-01"], "M8[D]"), pd.Series(["1"])]
NO_NUMBERS += [np.array([value], object) for value in ("1", True)]


@pytest.mark.parametrize(
    ("values", "words"), [*((each, "must hold numbers") for each in NO_NUMBERS), ([[1]], "one dimension"), ([1, 2], "length")]
)
def test_coordinates_are_two_columns_of_numbers_of_one_length(values, words):
    for xy in ((values, [1.0]), ([1.0], values)):
        assert words in refused(PointCounts.from_xy, *xy, domain=SQUARE, bad_rows="drop")


def test_numbers_may_be_held_in_many_ways():
    numbers, whole = pd.Series([1, 2]), pd.Series([1, 2], dtype="Int64")
    for values in ((1, 2), np.array([1, 2.5], object), numbers, whole, np.array([1, 2], np.float16), range(1, 3)):
        assert PointCounts.from_xy(values, values, domain=SQUARE).column.tolist() == [1, 2]
    gaps = [np.array([1, None], object), pd.Series([1, None], dtype="Int64"), pd.Series([1, None]), np.array([1, pd.NA], object)]
    for values in gaps:
        points = PointCounts.from_xy(values, [1, 2], domain=SQUARE, bad_rows="drop")
        assert (points.column.tolist(), points.dropped) == ([1], 1)


@pytest.mark.parametrize("kind", [np.int64, np.float64, object])
def test_masked_values_are_missing(kind):
    masked = np.ma.masked_array(np.array([1, 2, 3], kind), mask=[False, True, False])
    arguments = [{"x": masked, "y": [1, 2, 3]}, {"x": [1, 2, 3], "y": masked}]
    arguments += [{"x": [1, 2, 3], "y": [1, 2, 3], "count": masked}] if kind is not object else []
    for each in arguments:
        assert ("whole numbers" if "count" in each else "missing") in refused(PointCounts.from_xy, **each, domain=SQUARE)
        points = PointCounts.from_xy(**each, domain=SQUARE, bad_rows="drop")
        assert (points.column.tolist(), points.dropped) == ([1, 3], 1)


@pytest.mark.parametrize("frame", [gpd.GeoDataFrame({"a": [1]}), pd.DataFrame({"geometry": [1]}), pd.DataFrame({"a": [1]}), None])
def test_frames_without_geometry_are_refused(frame):
    assert "geometry column" in refused(PointCounts.from_geodataframe, frame, domain=SQUARE)


FIELDS = {"domain": SQUARE, "column": np.array([1, 2]), "row": np.array([0, 0]), "count": np.array([3, 4])}
UNFIT = [("column", np.array(value), rule) for value, rule in (([1], "same length"), ([1, 8], "lattice"), ([1, 2**40], "too large"))]
UNFIT += [("column", np.array([2, 1]), "ordered"), ("column", np.array([1, 1]), "distinct"), ("row", np.array([-1, 0]), "lattice")]
UNFIT += [("count", np.array(value), "at least 1") for value in ([3, 0], [3, -4])] + [("count", [3, 4], "array")]
UNFIT += [("count", np.array([[3, 4]]), "one dimension"), ("count", np.array([3.0, 4.0]), "whole numbers")]
UNFIT += [("count", np.array([2**53, 1]), "2**53"), ("count", np.array([2**63, 1], np.uint64), "too large")]
UNFIT += [("contributions", 0, "contributions"), ("contributions", 1.0, "contributions")]
UNFIT += [("unit", "household", "unit"), ("dropped", -1, "dropped"), ("dropped", math.nan, "dropped"), ("bad", 1, "add up")]


@pytest.mark.parametrize(("field", "value", "rule"), UNFIT)
def test_fields_that_make_no_sense_are_refused(field, value, rule):
    assert rule in refused(PointCounts, **FIELDS | {field: value})


def test_the_arrays_of_the_caller_are_copied_unless_they_are_frozen():
    own = {name: value if name == "domain" else value.copy() for name, value in FIELDS.items()}
    view = own["count"][:]
    view.flags.writeable = False
    points, viewed = PointCounts(**own), PointCounts(**own | {"count": view})
    own["count"][0] = 99
    assert points.count.tolist() == viewed.count.tolist() == [3, 4]
    assert (points.column.dtype, points.row.dtype, points.count.dtype) == (np.int32, np.int32, np.int64)
    assert replace(points, dropped=1).count is points.count
