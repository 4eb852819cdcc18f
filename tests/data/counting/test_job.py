"""What engines are handed: places, weights and people of rows, each a function of its row; and what rows break."""

import pickle

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.bounding import bound_of
from dpviz.data.cell_counts import Totals
from dpviz.data.cells import BAD, OUTSIDE, cells_of, pairs_of
from dpviz.data.columns import readable_numbers
from dpviz.data.counting.job import GeometryColumn, Job, LeafColumn, Pairs, PointCells, Progress, XyColumns, leaves_of, person_texts
from dpviz.data.leaf_ids import LeafIds
from dpviz.data.points import PointCounts
from dpviz.data.reading.text_rows import NO_BAD_LINES, BadLines
from dpviz.data.trips import TripCounts
from dpviz.space.leaf_lookup import LeafLookup
from dpviz.space.regions import Regions
from tests.data.counting.lattice import cells_on
from tests.data.reading.files import PLANE, TOWNS, refused

few = settings(max_examples=30, deadline=None, derandomize=True)
ODD = [np.nan, np.inf, -np.inf, 8.0, np.nextafter(8.0, 0), -0.0, 0.0, -1e-300, 1e308, 7.999999999999999]


POINTS = cells_on(XyColumns(x="x", y="y"), PLANE)
TRIPS = Pairs(**{side: LeafColumn(region=side[0], leaves=LeafIds.from_regions(TOWNS)) for side in ("origin", "destination")})


def column(values, kind=None):
    return pa.chunked_array([pa.array(values, kind, from_pandas=False)])


def job(finder, kind=None, **options):
    schema = pa.schema([(name, kind or pa.string()) for name in (*finder.columns, "n", "who")])
    return Job(files=(), format="CSV" if kind is None else "Parquet", schema=schema, finder=finder, **options)


@few
@given(st.lists(st.tuples(*[st.one_of(st.floats(-1, 9), st.sampled_from(ODD))] * 2), min_size=1))
def test_cells_are_those_of_the_counts(rows):
    x, y = np.array(rows).T
    places = pickle.loads(pickle.dumps(POINTS)).cells({"x": column(x), "y": column(y)})  # noqa: S301
    np.testing.assert_array_equal(places, cells_of(x, y, PLANE))
    np.testing.assert_array_equal(places == BAD, ~(np.isfinite(x) & np.isfinite(y)))
    np.testing.assert_array_equal(places == OUTSIDE, np.isfinite(x) & np.isfinite(y) & ((x < 0) | (x > 8) | (y < 0) | (y > 8)))
    points = PointCounts.from_xy(x, y, domain=PLANE, bad_rows="drop")
    occupied, counts = np.unique(places[places >= 0], return_counts=True)
    np.testing.assert_array_equal(points.row * 8 + points.column, occupied)
    np.testing.assert_array_equal(points.count, counts)
    assert (points.outside, points.bad) == ((places == OUTSIDE).sum(), (places == BAD).sum())


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int8(), pa.int64(), pa.uint64(), pa.decimal128(21, 2), pa.string()])
def test_numbers_of_every_kind_are_the_same_numbers(kind):
    values = column([3, 0, None], pa.int64()).cast(kind)
    np.testing.assert_array_equal(readable_numbers(values), [3, 0, np.nan])
    np.testing.assert_array_equal(readable_numbers(values.dictionary_encode()), [3, 0, np.nan])


FIVES = ("5", " 5 ", "+5", "5.", "5e0", "0.5E+1", "\t5", "50e-1", "05")
NO_NUMBERS = ("", " ", "1,000", "5 km", "0x5", "5_0", "1e", "--5", "+ 5", "nan", "inf", "５", "\u00a05", "5\n6")


def test_numbers_in_texts_are_read_by_one_rule():
    found = readable_numbers(column([*FIVES, *NO_NUMBERS, "0.1", "1.7976931348623157e308"]))
    np.testing.assert_array_equal(found, [5.0] * len(FIVES) + [np.nan] * len(NO_NUMBERS) + [0.1, 1.7976931348623157e308])


def test_columns_that_hold_no_numbers_have_none():
    for values in (column([True, False]), column([b"1"]), column([[1.0]]), column([None])):
        assert np.isnan(readable_numbers(values)).all()


def test_geometries_are_points_or_bad():
    finder = cells_on(GeometryColumn(geometry="g", encoding="WKB"), PLANE)
    assert (finder.columns, finder.size) == (("g",), 64)
    shapes = [shapely.Point(1.5, 2.5), shapely.Point(9, 1), shapely.Point(), shapely.box(0, 0, 1, 1)]
    assert finder.cells({"g": column([*shapely.to_wkb(shapes), b"zq", b"", None])}).tolist() == [17, OUTSIDE, *[BAD] * 5]
    points = column([{"x": 1.5, "y": 2.5}, {"x": 9.0, "y": 1.0}, {"x": np.nan, "y": np.nan}, None])
    assert cells_on(GeometryColumn(geometry="g", encoding="point"), PLANE).cells({"g": points}).tolist() == [
        17,
        OUTSIDE,
        BAD,
        BAD,
    ]


IDS = st.one_of(st.sampled_from(["a", " b", "c ", "", " ", "x", "A", None]))


@few
@given(st.lists(st.tuples(IDS, IDS), min_size=1))
def test_pairs_of_ids_are_those_of_the_trips(rows):
    sides = {name: [row[place] for row in rows] for place, name in enumerate(("o", "d"))}
    places = pickle.loads(pickle.dumps(TRIPS)).cells({name: column(cells, pa.string()) for name, cells in sides.items()})  # noqa: S301
    table = pd.DataFrame({"origin": sides["o"], "destination": sides["d"]}, dtype=object)
    trips = TripCounts.from_table(table, regions=TOWNS, bad_rows="drop")
    pairs, counts = np.unique(places[places >= 0], return_counts=True)
    np.testing.assert_array_equal(trips.origin * 3 + trips.destination, pairs)
    np.testing.assert_array_equal(trips.count, counts)
    assert (trips.outside, trips.bad, trips.over) == ((places == OUTSIDE).sum(), (places == BAD).sum(), 0)


def test_block_codes_are_cut():
    ids = LeafIds(texts=("36001", "36003"), cut=5)
    assert leaves_of(column(["360010001001001", "36003", "3600100010010011"]), ids).tolist() == [0, 1, OUTSIDE]
    assert leaves_of(column([36003, 36001]), ids).tolist() == [1, 0]


def test_pairs_of_coordinates_are_looked_up():
    towns = gpd.GeoSeries([shapely.box(west, 0, west + 1, 1) for west in range(3)], crs="EPSG:4326")
    regions = Regions(levels=TOWNS.levels, ids=TOWNS.ids, parent=TOWNS.parent, names=TOWNS.names, geometry=(None, towns))
    lookup = LeafLookup.from_regions(regions)
    starts, ends = (PointCells(points=XyColumns(x=x, y=y), find=lookup.find, size=3) for x, y in ("ab", "cd"))
    finder = Pairs(origin=starts, destination=ends)
    cells = {"a": [0.5, 2.5, 9, None], "b": [0.5] * 4, "c": ["1.5", "0.5", "zz", "0.5"], "d": [0.5] * 4}
    assert finder.cells({name: column(values) for name, values in cells.items()}).tolist() == [1, 6, BAD, BAD]
    assert pairs_of(np.array([0, OUTSIDE, BAD, 1]), np.array([OUTSIDE, BAD, 0, 2]), 3).tolist() == [OUTSIDE, BAD, BAD, 5]


def test_weights_are_whole_numbers_or_bad():
    request = job(POINTS, count="n")
    assert request.weights(column(["3", " 4 ", "1e2", "1.5", "-1", "", None, "zz", "1e16"])).tolist() == [3, 4, 100, *[-1] * 5, 2**53]
    assert request.weights(column([3.0, 0.5, np.nan, np.inf, -1.0, 2.0**53])).tolist() == [3, -1, -1, -1, -1, 2**53]
    assert request.weights(column([0, None, 7])).tolist() == [0, -1, 7]


PEOPLE = [(["a", " ", "", None, "007", "NA", "a b"], ["a", None, None, None, "007", None, "a b"])]
PEOPLE += [([7, None, 10**15], ["7", None, "1000000000000000"]), ([7.0, 1.5, np.nan, None], ["7", "1.5", None, None])]
PEOPLE += [([True, False], ["1", "0"]), ([None, None], [None, None]), (["b", "\u3000", "NA", "\t"], ["b", None, "NA", None])]


@pytest.mark.parametrize(("values", "texts"), PEOPLE)
def test_people_have_canonical_texts(values, texts):
    words = values[0] == "a"
    assert person_texts(column(values), in_text_table=words).to_pylist() == texts
    assert person_texts(column(values).dictionary_encode(), in_text_table=words).to_pylist() == texts


def test_a_pass_names_its_columns_once_and_nothing_private():
    request = job(POINTS, count="x", person="who", bound=bound_of(1, b"zq17"))
    assert request.columns == ("x", "y", "who")
    assert "zq17" not in repr(request)
    assert pickle.loads(pickle.dumps(request)) == request  # noqa: S301


FAULTS = [(POINTS, {"lines": BadLines(cells=1), "cell": 1}, "fewer cells")]
FAULTS += [(POINTS, {"lines": BadLines(marks=1)}, "not closed on its line")]
FAULTS += [(POINTS, {"cell": 1, "count": 1}, "'x' or 'y' has a cell that is no finite number")]
FAULTS += [(TRIPS, {"cell": 1}, "'o' or 'd' has an id that is missing")]
FAULTS += [
    (cells_on(GeometryColumn(geometry="g", encoding="WKB"), PLANE), {"cell": 1}, "geometry is missing"),
    (POINTS, {"count": 1}, "'n'"),
]
FAULTS += [(POINTS, {"person": 1}, "'who' has a missing cell"), (TRIPS, {"elsewhere": 1}, "no leaf region")]


@pytest.mark.parametrize(("finder", "faults", "words"), FAULTS)
def test_faults_are_refused_by_rule_unless_they_are_dropped(finder, faults, words):
    options = {"count": "n", "person": "who", "refuse_outside": finder is TRIPS}
    lines = faults.get("lines", NO_BAD_LINES)
    totals = Totals(rows=9, **{name: rows for name, rows in faults.items() if name != "lines"})
    assert words in refused(job(finder, **options).refuse, totals, lines)
    job(finder, drop=True, **options).refuse(totals, lines)
    assert "1" not in repr(totals)


def test_columns_without_one_good_cell_are_refused_even_where_bad_rows_are_dropped():
    no_cell, no_count = Totals(rows=3, cell=3), Totals(rows=3, count=3)
    assert "holds no number" in refused(job(POINTS, drop=True).refuse, no_cell, NO_BAD_LINES)
    assert "no whole number" in refused(job(POINTS, drop=True, count="n").refuse, no_count, NO_BAD_LINES)
    job(POINTS, drop=True, kind=pa.float64()).refuse(no_cell, NO_BAD_LINES)
    job(TRIPS, drop=True).refuse(no_cell, NO_BAD_LINES)
    job(POINTS).refuse(Totals(elsewhere=5), NO_BAD_LINES)


def test_progress_is_a_share():
    shares = []
    for done in (-1, 0.5, 2):
        Progress(progress=shares.append).report(done)
    assert shares == [0.0, 0.5, 1.0]
