"""Leaf look-up: the answer of geopandas.sjoin, on borders that of a lattice, slivers and lattice lines included, in far less time."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.errors import DomainError, InputError
from dpviz.space import leaf_lookup as leaf_lattice
from dpviz.space.borders import borders_of
from dpviz.space.leaf_lookup import BAD, OUTSIDE, LeafLookup, border_pairs, lattice_around
from dpviz.space.regions import Regions

COUNTIES = Path(__file__).parents[2] / "sample_data" / "us_counties.parquet"
ORDERS = st.sampled_from([None, 4, 5, 7])
CRS = "EPSG:3857"
SQUARES = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1), shapely.box(0, 1, 2, 2)]


def regions_of(polygons, crs=CRS):
    """Regions of one level whose places are the polygons' positions."""
    ids = [f"{number:06d}" for number in range(len(polygons))]
    return Regions.from_table(gpd.GeoDataFrame({"leaf": ids}, geometry=list(polygons), crs=crs), levels=["leaf"])


def lookup_of(polygons, order=None):
    return LeafLookup.from_regions(regions_of(polygons), order=order)


def first_with(leaves, x, y, predicate):
    """(n,) the smallest place of the leaves that geopandas.sjoin gives a point, OUTSIDE if none."""
    points, areas = gpd.GeoDataFrame(geometry=gpd.points_from_xy(x, y)), gpd.GeoDataFrame(geometry=list(leaves))
    places = gpd.sjoin(points, areas, predicate=predicate, how="left")["index_right"]
    return places.fillna(OUTSIDE).groupby(level=0).min().to_numpy(np.int64)


def joined(lookup, x, y):
    """(n,) the answer by joins: of what is inside, of what is inside once moved from a border, and of what is touched."""
    (across, up), touched = lookup.lattice.hair, first_with(lookup.leaves, x, y, "intersects")
    answers = [first_with(lookup.leaves, x, y, "within")]
    for east, north in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        answers.append(np.where(touched == OUTSIDE, OUTSIDE, first_with(lookup.leaves, x + east * across, y + north * up, "within")))
    answers = np.stack([*answers, touched])
    return answers[np.argmax(answers != OUTSIDE, axis=0), np.arange(len(x))]


def on_borders(leaves, rng, number):
    """(number,) points on straight pieces of borders: corners, and places between them as close as rounding permits."""
    ends = borders_of(np.asarray(leaves)).ends
    x0, y0, x1, y1 = ends[:, rng.integers(ends.shape[1], size=number)]
    share = rng.choice([0, 1 / 4, 1 / 3, 1 / 2, 0.7, 1], number)
    return x0 + share * (x1 - x0), y0 + share * (y1 - y0)


def on_lines(lattice, rng, number):
    """(number,) points on lattice lines, the outermost included, or the next floating-point number beside them.

    Not beside zero: for 5e-324 GEOS answers differently when the polygon is prepared.
    """
    lines = rng.integers(0, lattice.side + 1, (2, number)) - leaf_lattice.MARGIN
    places = np.array([lattice.west + lines[0] / lattice.across, lattice.south + lines[1] / lattice.up])
    beside = rng.choice([-np.inf, 0, np.inf], (2, number))
    return np.where((beside == 0) | (places == 0), places, np.nextafter(places, beside))


def probes(lookup, seed, number=200):
    """(2, n) points where a look-up might go wrong."""
    rng = np.random.default_rng(seed)
    low, high = shapely.total_bounds(lookup.leaves).reshape(2, 2, 1)
    size = high - low
    anywhere = rng.uniform(low - size / 4, high + size / 4, (2, number))
    edges = np.take_along_axis(
        np.hstack([low, high, low - 9 * size, high + 9 * size, (low + high) / 2]), rng.integers(0, 5, (2, 20)), axis=1
    )
    border, lines = on_borders(lookup.leaves, rng, number), on_lines(lookup.lattice, rng, number)
    return np.hstack([anywhere, edges, border, lines, [border[0], lines[1]]])


def agrees(lookup, seed):
    x, y = probes(lookup, seed)
    np.testing.assert_array_equal(lookup.find(x, y), joined(lookup, x, y))


def covers_its_borders(lookup, x, y):
    """Whether every point on a leaf's border falls into a cell that is held to be crossed by it."""
    pairs = border_pairs(borders_of(lookup.leaves), lookup.lattice)
    cells = lookup.lattice.cells(x, y)
    return bool(np.isin(cells, pairs & (lookup.lattice.size - 1)).all())


@st.composite
def mosaics(draw):
    """Unions of triangles between whole-numbered points: parts, holes, common borders and corners, overlaps, gaps."""
    corners, extent, leaves = draw(st.integers(3, 25)), draw(st.sampled_from([4, 20, 1000])), draw(st.integers(1, 6))
    rng, overlaps = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.booleans())
    points = shapely.multipoints(np.concatenate([[[0, 0], [extent, 0], [0, extent]], rng.integers(0, extent, (corners, 2))]))
    triangles = shapely.get_parts(shapely.delaunay_triangles(points))
    owners = rng.integers(-1, leaves, len(triangles))
    mosaic = [shapely.union_all(triangles[(owners == leaf) | (overlaps & (rng.random(len(triangles)) < 0.2))]) for leaf in range(leaves)]
    scale, shift = draw(st.sampled_from([1, 0.1, 1e-7, 12345.678])), draw(st.sampled_from([0, -73.9, 1e6]))
    shapes = [shape for shape in mosaic if not shape.is_empty] or triangles[:1]
    return [shapely.transform(shape, lambda xy: xy * scale + shift) for shape in shapes]


@settings(max_examples=40, derandomize=True, database=None)
@given(mosaics(), ORDERS, st.integers(0, 2**32 - 1))
def test_any_polygons_get_the_answer_of_sjoin_and_every_cell_that_a_border_touches_is_tested(polygons, order, seed):
    lookup = lookup_of(polygons, order)
    agrees(lookup, seed)
    assert covers_its_borders(lookup, *shapely.get_coordinates(lookup.leaves).T)
    assert covers_its_borders(lookup, *on_borders(lookup.leaves, np.random.default_rng(seed), 500))


def voronoi(number):
    """Cells around random points."""
    return shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(np.random.default_rng(1).random((number, 2)))))


def test_borders_belong_east_and_north_and_the_smallest_place_has_what_several_cover():
    lookup = lookup_of(SQUARES)
    x, y = [1, 1, 0.5, 1.5, 2, 2, 0, 2.1, 1], [0.5, 1, 1, 1, 1, 2, 0, 1, -1e-300]
    assert lookup.find(x, y).tolist() == [1, 2, 2, 2, 2, 2, 0, OUTSIDE, OUTSIDE]
    whole, part = shapely.box(0, 0, 10, 10), shapely.box(3, 3, 4, 4)
    lookup = lookup_of([part, whole, whole])
    assert lookup.find([3.5, 3, 9], [3.5, 3.5, 9]).tolist() == [0, 1, 1]
    agrees(lookup, 1)


@settings(max_examples=40, derandomize=True, database=None)
@given(st.integers(2, 9), st.permutations(range(12)), st.sampled_from([(0.1, 3), (25.0, 2_485_800), (1e-3, -73)]), ORDERS)
def test_corners_of_a_grid_of_squares_go_where_a_lattice_has_them_whatever_the_order_of_the_polygons(rows, shuffled, at, order):
    step, start = at
    columns, order_of = 4, np.argsort([*shuffled, *range(12, 99)][: 4 * rows], kind="stable")
    x, y = (start + step * np.arange(number + 1) for number in (columns, rows))
    squares = np.array([shapely.box(x[i], y[j], x[i + 1], y[j + 1]) for j in range(rows) for i in range(columns)])
    at_x, at_y = (part.ravel() for part in np.meshgrid(np.sort(np.r_[x, x[:-1] + step / 3]), np.sort(np.r_[y, y[:-1] + step / 3])))
    expected = np.minimum(np.searchsorted(y, at_y, "right") - 1, rows - 1) * columns
    expected += np.minimum(np.searchsorted(x, at_x, "right") - 1, columns - 1)
    assert order_of[lookup_of(squares[order_of], order).find(at_x, at_y)].tolist() == expected.tolist()


def inside_once_moved(ring, x, y, east, north):
    """Whether a ring of whole-numbered corners contains (x + east e, y + north e²) for every small enough e: by crossings, exactly."""
    crossings = 0
    for ends in pairwise((east * corner_x, north * corner_y) for corner_x, corner_y in ring):
        (x0, y0), (x1, y1) = sorted(ends, key=itemgetter(1))
        crossings += y0 <= north * y < y1 and (x1 - x0) * (north * y - y0) > (y1 - y0) * (east * x - x0)
    return crossings % 2 == 1


@settings(max_examples=40, derandomize=True, database=None)
@given(st.integers(0, 2**32 - 1), ORDERS)
def test_on_a_partition_each_corner_and_middle_is_in_the_one_triangle_beside_it_by_exact_arithmetic(seed, order):
    corners = 2 * np.random.default_rng(seed).integers(0, 20, (12, 2))
    triangles = shapely.get_parts(shapely.delaunay_triangles(shapely.multipoints([*corners, (0, 0), (40, 2), (2, 40)])))
    rings = [shapely.get_coordinates(triangle).astype(int).tolist() for triangle in triangles]
    ends = borders_of(triangles).ends.astype(int)
    places = np.unique([*ends[:2].T, *((ends[:2] + ends[2:]) // 2).T], axis=0).tolist()
    for (x, y), leaf in zip(places, lookup_of(triangles, order).find(*np.transpose(places)).tolist(), strict=True):
        beside = [[place for place, ring in enumerate(rings) if inside_once_moved(ring, x, y, *way)] for way in leaf_lattice._BESIDE]
        assert all(len(found) <= 1 for found in beside)
        assert [leaf] == next(filter(None, beside), [leaf])


@pytest.mark.parametrize("order", [None, 4])
def test_leaves_smaller_than_a_cell_are_found(order):
    sliver = shapely.Polygon([(0, 5), (10, 5 + 1e-9), (10, 5 - 1e-9)])
    dot = shapely.box(7, 7, 7 + 1e-6, 7 + 1e-6)
    rest = shapely.box(0, 0, 10, 10).difference(sliver).difference(dot)
    x = y = [5, 7 + 5e-7, 1]  # inside of the sliver, of the dot, of the rest
    for polygons, places in (([sliver, dot, rest], [0, 1, 2]), ([rest, dot, sliver], [2, 1, 0])):
        lookup = lookup_of(polygons, order)
        assert lookup.find(x, y).tolist() == places
        agrees(lookup, 2)


@pytest.mark.parametrize("order", [None, 4])
def test_one_leaf_is_enough_and_numbers_of_every_dtype_are_read(order):
    for shape in (shapely.box(0, 0, 1, 1), shapely.Point(3, 4).buffer(2), shapely.Polygon([(0, 0), (1e6, 1), (0, 1)])):
        agrees(lookup_of([shape], order), 5)
    lookup = lookup_of([shapely.box(-1, -1, 3, 3)], order)
    for dtype in (np.float32, np.float16, np.int8, np.uint64, object, np.float64):
        assert lookup.find(np.array([1, 2, 7], dtype), np.array([1, 3, 0], dtype)).tolist() == [0, 0, OUTSIDE]


def test_points_without_coordinates_are_bad_and_what_is_beyond_all_numbers_is_outside():
    nan, inf = np.nan, np.inf
    lookup = lookup_of(SQUARES)
    assert lookup.find([nan, inf, -inf, 0.5, 0.5, nan, 0.5], [0.5, 0.5, 0.5, nan, inf, nan, 0.5]).tolist() == [BAD] * 6 + [0]
    for x in ([None, 0.5], np.ma.array([0.5, 0.5], mask=[True, False])):
        assert lookup.find(x, [0.5, 0.5]).tolist() == [BAD, 0]
    assert (lookup.find([], []).shape, lookup.find([], []).dtype) == ((0,), np.int64)
    far = [1.7e308, -1.7e308, 0.5, 0.5]
    assert lookup_of([shapely.box(-1e300, -1e300, 1e300, 1e300)]).find(far, far[::-1]).tolist() == [OUTSIDE] * 4


NO_NUMBERS = [["zq"], [pd.NA], [1j], [True], [[1], [1, 2]], [pd.Timestamp(0)]]
NO_COLUMNS = [([1.0], [1.0, 2.0], "same length"), ([[1.0]], [[1.0]], "same length")]


@pytest.mark.parametrize(("x", "y", "says"), [*NO_COLUMNS, *((wrong, [1.0], "columns of numbers") for wrong in NO_NUMBERS)])
def test_columns_that_are_no_coordinates_are_refused(x, y, says):
    with pytest.raises(InputError, match=says) as caught:
        lookup_of(SQUARES).find(x, y)
    assert "zq" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_leaves_without_polygons_and_spans_that_floats_cannot_cut_are_refused():
    bare = Regions.from_table(pd.DataFrame({"leaf": ["a"]}), levels=["leaf"])
    for regions in (bare, regions_of([shapely.Point(0, 0), shapely.Point(1, 1)])):
        with pytest.raises(DomainError, match=r"has no polygons.*leaves' ids"):
            LeafLookup.from_regions(regions)
    for bounds in ((1e6, 1e6, 1e6 + 1e-9, 1e6 + 1), (-1e308, 0, 1e308, 1), (0, 0, 1e-310, 1)):
        with pytest.raises(DomainError, match="floating-point"), np.errstate(over="ignore"):
            lookup_of([shapely.box(*bounds)])


def test_a_pickled_lookup_is_small_and_answers_the_same_also_in_threads():
    lookup = lookup_of(voronoi(100))
    packed = pickle.dumps(lookup)
    again = pickle.loads(packed)  # noqa: S301
    assert (again.crs, again.lattice) == (lookup.crs, lookup.lattice)
    assert len(packed) < lookup.table.nbytes / 2
    x, y = probes(lookup, 7, 2000)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: again.find(x, y), range(8)))
    assert all(np.array_equal(answer, lookup.find(x, y)) for answer in answers)
    for held in (lookup, again):
        with pytest.raises(AttributeError):
            held.crs = None
        with pytest.raises(ValueError, match="read-only"):
            held.table[0] = 1


def test_a_lookup_states_its_size_which_has_a_bound():
    assert repr(lookup_of(SQUARES, 4)) == "LeafLookup(3 leaves, 16 x 16 cells)"
    x, y = (part.ravel() for part in np.meshgrid(np.arange(100), np.arange(100)))
    assert lattice_around(borders_of(shapely.box(x, y, x + 1, y + 1))).order == leaf_lattice.FINEST_ORDER
    assert lookup_of(SQUARES).lattice.order < leaf_lattice.FINEST_ORDER


def test_chunks_do_not_show(monkeypatch):
    cells = [*voronoi(30), shapely.box(0.2, 0.2, 0.7, 0.7), shapely.box(0, 0, 1, 1)][::-1]
    lookup = lookup_of(cells)
    x, y = probes(lookup, 8)
    for name, most in (("_LOOKED_UP_AT_ONCE", 7), ("_TESTED_AT_ONCE", 20), ("_CELLS_AT_ONCE", 50)):
        monkeypatch.setattr(leaf_lattice, name, most)
    other = lookup_of(cells)
    assert np.array_equal(other.table, lookup.table)
    assert np.array_equal(other.candidates, lookup.candidates)
    assert np.array_equal(other.find(x, y), lookup.find(x, y))


@pytest.fixture(scope="module")
def counties():
    """The 3,108 counties of the contiguous United States."""
    table = gpd.read_parquet(COUNTIES)
    regions = Regions.from_table(table[~table["county"].str[:2].isin(["02", "15"])], levels=["state", "county"])
    assert regions.size(2) == 3108
    return regions


def around(regions, number):
    west, south, east, north = regions.geometry[-1].total_bounds
    rng = np.random.default_rng(1)
    return rng.uniform(west, east, number), rng.uniform(south, north, number)


def seconds(run):
    """What a run gives, and the seconds that one processor worked on it, however many other programs it had to wait for."""
    start = time.process_time()
    return run(), time.process_time() - start


@pytest.mark.benchmark
def test_ten_million_points_take_a_tenth_of_sjoin(counties):
    """The join is given its points and polygons ready made; the look-up has to be built first. The best of three rounds counts."""
    x, y = around(counties, 10_000_000)
    points = gpd.GeoDataFrame(geometry=gpd.points_from_xy(x, y, crs=counties.geometry[-1].crs))
    areas = gpd.GeoDataFrame(geometry=counties.geometry[-1])
    places, ours = min((seconds(lambda: LeafLookup.from_regions(counties).find(x, y)) for _ in range(3)), key=itemgetter(1))
    found, joining = seconds(lambda: gpd.sjoin(points, areas, predicate="intersects", how="left")["index_right"])
    np.testing.assert_array_equal(places, found.fillna(OUTSIDE).groupby(level=0).min())
    print(f"\n10 M points, 3,108 counties: {ours:.2f} s; sjoin {joining:.1f} s: {joining / ours:.1f} to 1")
    assert joining >= 10 * ours
