"""Tables in memory are read by the rules of files."""

import duckdb
import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import dpviz as dv

DOMAIN = dv.Domain(bounds=(0, 0, 8, 8), crs="EPSG:4326", order=3)
COLUMNS = {"lon": [1.5, 1.5, 6.0, 7.0], "lat": [2.5, 2.5, 3.0, 79.0], "who": ["a", "a", "b", "b"]}
FRAME = pd.DataFrame(COLUMNS)
OPTIONS = {"domain": DOMAIN, "crs": "EPSG:4326", "person": "who", "key": b"k"}


class Polars:
    """A table as other libraries hand it over: by Arrow's stream alone."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "homes.csv"
    FRAME.to_csv(path, index=False)
    return dv.read_points(path, **OPTIONS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FRAME,
        lambda: pa.table(COLUMNS),
        lambda: pa.table(COLUMNS).to_batches()[0],
        lambda: {name: np.array(column) for name, column in COLUMNS.items()},
        lambda: Polars(pa.table(COLUMNS)),
        lambda: duckdb.connect().from_arrow(pa.table(COLUMNS)),
        lambda: duckdb.connect().sql(f"FROM (VALUES {', '.join(map(str, zip(*COLUMNS.values(), strict=True)))}) t ({', '.join(COLUMNS)})"),
        lambda: pa.table(COLUMNS).to_reader(),
        lambda: [FRAME.iloc[:2], FRAME.iloc[2:]],
        lambda: FRAME.astype({"who": "category"}).set_index(pd.Index([5, 5, 6, 7])),
    ],
)
def test_a_table_gives_the_counts_of_a_file_with_its_rows(make, expected):
    read = dv.read_points(make(), **OPTIONS)
    for name in ("column", "row", "count"):
        assert getattr(read, name).tolist() == getattr(expected, name).tolist()
    assert (read.unit, read.over, read.outside) == ("person", expected.over, expected.outside)


def test_a_geodataframe_keeps_its_crs_and_its_columns(expected):
    shapes = geopandas.GeoDataFrame(FRAME[["who"]], geometry=geopandas.points_from_xy(FRAME.lon, FRAME.lat), crs="EPSG:4326")
    usable = shapes.iloc[:3]
    read = dv.read_points(usable.to_crs("EPSG:3857"), domain=DOMAIN, person="who", key=b"k")
    assert read.count.tolist() == expected.count.tolist()
    named = dv.PointCounts.from_geodataframe(usable, domain=DOMAIN, person="who", key=b"k")
    assert named.count.tolist() == expected.count.tolist()
    with pytest.raises(dv.InputError, match="no column 'whom'"):
        dv.PointCounts.from_geodataframe(usable, domain=DOMAIN, person="whom")


def test_a_table_without_a_crs_is_called_a_table_and_a_geoseries_has_its_own(expected):
    with pytest.raises(dv.InputError, match="This table does not state its CRS"):
        dv.read_points(FRAME, domain=DOMAIN)
    shapes = geopandas.GeoSeries(geopandas.points_from_xy([1.5], [2.5]), crs="EPSG:4326")
    assert dv.read_points(shapes, domain=DOMAIN).count.tolist() == [1]
    with pytest.raises(dv.InputError, match="regions must be Regions"):
        dv.read_trips({"origin": ["a"], "destination": ["a"]}, regions=shapes.to_frame())


def test_trips_and_areas_are_read_from_tables_too():
    table = pd.DataFrame({"state": ["A", "A", "B"], "town": ["01", "02", "03"]})
    regions = dv.Regions.from_table(table, levels=["state", "town"])
    trips = {"origin": ["01", "02"], "destination": ["03", "03"], "count": [9, 4]}
    assert dv.read_trips(trips, regions=regions).count.tolist() == [9, 4]
    areas = dv.read_areas({"town": ["01", "03"], "n": [5, 6]}, regions=regions, region="town", count="n")
    assert areas.count.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pd.DataFrame({"lon": [1, "MARY"], "lat": [2, 3]}), "values of one kind"),
        (pd.DataFrame([[1.0, 2.0, 3.0]], columns=["lon", "lat", "lat"]), "same name"),
        (pd.DataFrame({"lon": [1.0], "latt": [2.0]}), "column"),
        (7, "DataFrame"),
        ([{"lon": 1.0, "lat": 2.0}], r"pandas\.DataFrame\(records\)"),
    ],
)
def test_what_cannot_be_read_is_named_without_a_value(table, words):
    with pytest.raises(dv.InputError, match=words) as raised:
        dv.read_points(table, domain=DOMAIN, crs="EPSG:4326")
    assert "MARY" not in str(raised.value)


def test_a_table_beyond_the_limits_says_how_to_read_it():
    with pytest.raises(dv.InputError, match=r"Pass limits=dv\.reading\.Limits\(file_bytes=") as raised:
        dv.read_points(FRAME, domain=DOMAIN, crs="EPSG:4326", limits=dv.reading.Limits(file_bytes=9))
    assert "MARY" not in str(raised.value)
    assert dv.read_points(FRAME, domain=DOMAIN, crs="EPSG:4326", limits=dv.reading.Limits(file_bytes=10**6)).count.sum() == 3


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (["longtude", "lat"], {}, "No column for x: there is not a pair of names alike, .* The columns are 'longtude', 'lat'. Say which"),
        (
            ["longtude", "lat"],
            {"x": "longitude"},
            "no column named 'longitude'. The columns are 'longtude', 'lat'. Did you mean 'longtude'?",
        ),
    ],
)
def test_a_missing_column_is_named_beside_those_there_are(columns, options, words):
    with pytest.raises(dv.InputError, match=words) as raised:
        dv.read_points(FRAME[["lon", "lat"]].set_axis(columns, axis=1), domain=DOMAIN, crs="EPSG:4326", **options)
    assert "text table" not in str(raised.value)


def test_bounds_with_a_crs_are_a_domain_and_without_one_say_what_to_write():
    read = dv.read_points(FRAME.iloc[:3], domain=(0, 0, 8, 8), crs="EPSG:4326")
    assert read.domain == dv.Domain(bounds=(0, 0, 8, 8), crs="EPSG:4326")
    with pytest.raises(dv.DomainError, match=r"dv\.Domain.*crs=\"EPSG:4326\" beside"):
        dv.read_points(FRAME, domain=(0, 0, 8, 8))


def test_a_rectangle_is_a_domain_in_its_own_crs_or_in_that_of_the_points():
    square, metres = shapely.box(0, 0, 8, 8), geopandas.GeoSeries([shapely.box(0, 0, 9e5, 9e5)], crs="EPSG:3857")
    domain, points = dv.Domain(bounds=(0, 0, 8, 8), crs="EPSG:4326"), FRAME.iloc[:3]
    assert dv.read_points(points, domain=square, crs="EPSG:4326").domain == domain
    assert dv.read_points(points, domain=metres, crs="EPSG:4326").domain.crs == "EPSG:3857"
    frame = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([1], [2]), crs="EPSG:4326")
    assert all(dv.PointCounts.from_geodataframe(frame, domain=given).domain == domain for given in (square, (0, 0, 8, 8)))
    assert dv.PointCounts.from_xy([1], [2], domain=geopandas.GeoDataFrame(geometry=[square], crs="EPSG:4326")).domain == domain


def test_one_box_one_polygon_and_a_seed_need_no_wrapping_or_say_which(expected):
    release = dv.Quadtree(height=2).release(expected, dv.PureBudget(1), dv.Entropy.seeded(1))
    assert release.answer((0, 0, 4, 4)) == release.answer([[0, 0, 4, 4]])
    assert release.answer_areas(shapely.box(0, 0, 4, 4)) == pytest.approx(release.answer([[0, 0, 4, 4]]))
    assert release.coverage(shapely.box(0, 0, 4, 4)) == [1]
    with pytest.raises(dv.SettingError, match=r"dv\.Entropy\.seeded\(7\)"):
        dv.Quadtree().release(expected, dv.PureBudget(1), 7)
    with pytest.raises(dv.SettingError, match=r"dv\.Entropy\.seeded\(7\)"):
        dv.noise.discrete_laplace(np.array([1]), dv.PureBudget(1), 7)
    with pytest.raises(dv.SettingError, match=r"dv\.Entropy\.seeded\(7\)"):
        dv.noise.discrete_gaussian(np.array([1]), dv.ZcdpBudget(1), 7)
