"""Columns that are not read and may hold the number of records of a row are said, whatever the format and the engine; never an entry."""

import warnings

import geopandas as gpd
import pandas as pd
import pytest
import shapely

import dpviz as dv
from dpviz.data.counting.files import read_points as read_in_silence
from dpviz.publishing.order import Order, unit_definition
from tests.data.reading.files import stored

PLANE = dv.Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
WORLD = dv.Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs="EPSG:4326", order=3)
TOWNS = dv.Regions.from_table(pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]}), levels=["state", "town"])
ROWS = pd.DataFrame({"x": [1.5, 2.5], "y": [1.5, 2.5], "origin": ["a", "b"], "destination": ["c", "a"], "volume": [7, 9], "id": [1, 2]})
READERS = {
    "points": lambda source, **options: dv.read_points(source, domain=PLANE, **options),
    "areas": lambda source, **options: dv.read_areas(source, regions=TOWNS, region="origin", **options),
    "trips": lambda source, **options: dv.read_trips(source, regions=TOWNS, **options),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("form", ["csv", "tsv", "plain", "frame"])
def test_every_reader_warns_of_a_column_that_may_be_a_count(kind, form):
    drop = {"points": ["origin", "destination"], "areas": ["x", "y", "destination"], "trips": ["x", "y"]}[kind]
    rows, noun = ROWS.drop(columns=drop), "trip" if kind == "trips" else "record"
    source = rows if form == "frame" else stored(rows, form)
    with pytest.warns(dv.UnreadColumnsWarning, match="not read: 'volume'. Pass count='volume', say, or count='none'") as told:
        data = READERS[kind](source)
    assert told[0].filename == __file__
    assert str(data.each_row) == f"each row counts as one {noun}; not read: 'volume'"
    assert int(data.count.sum()) == 2
    counted, each = (READERS[kind](rows if form == "frame" else stored(rows, form), count=count) for count in ("volume", "none"))
    assert (int(counted.count.sum()), int(each.count.sum())) == (16, 2)
    assert counted.each_row is each.each_row is None


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_all_engines_say_it(tmp_path, engine):
    path = tmp_path / "a.parquet"
    ROWS.to_parquet(path)
    with pytest.warns(dv.UnreadColumnsWarning, match="'volume'"):
        assert dv.read_trips(path, regions=TOWNS, engine=engine).each_row.unread == ("volume",)


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "parquet"])
def test_files_with_shapes_say_it(tmp_path, ending):
    frame = gpd.GeoDataFrame({"visits": [7, 9], "note": ["a", "b"]}, geometry=gpd.points_from_xy([1.5, 2.5], [1.5, 2.5]), crs="EPSG:4326")
    path = tmp_path / f"a.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_file(path)
    with pytest.warns(dv.UnreadColumnsWarning, match="'visits'"):
        points = dv.read_points(path, domain=WORLD)
    assert bool(points.each_row.to_publish) == (ending != "geojson"), "a single feature may have named a property"
    assert dv.read_points(path, domain=WORLD, count="visits").count.sum() == 16
    assert dv.read_points(path, domain=WORLD, count="none").each_row is None


def test_frames_say_it_and_take_a_column_or_none():
    trips = ROWS[["origin", "destination", "volume"]]
    visits = ROWS[["origin", "volume"]].rename(columns={"origin": "region"})
    frame = gpd.GeoDataFrame({"volume": [7, 9]}, geometry=gpd.points_from_xy([1.5, 2.5], [1.5, 2.5]), crs="EPSG:4326")
    squares = dv.Regions.from_polygons(gpd.GeoSeries([shapely.box(0, 0, 4, 4), shapely.box(4, 0, 8, 4)], crs="EPSG:4326"))
    makers = [
        lambda **options: dv.TripCounts.from_table(trips, regions=TOWNS, **options),
        lambda **options: dv.AreaCounts.from_table(visits, regions=TOWNS, **options),
        lambda **options: dv.PointCounts.from_geodataframe(frame, domain=WORLD, **options),
        lambda **options: dv.AreaCounts.from_geodataframe(frame, regions=squares, **options),
    ]
    for make in makers:
        with pytest.warns(dv.UnreadColumnsWarning, match="'volume'"):
            assert make().count.sum() == 2
        assert [int(make(count=count).count.sum()) for count in ("volume", "none")] == [16, 2]
        with pytest.raises(dv.InputError, match="no column"):
            make(count="volumes")


def test_matrices_and_trips_with_a_usual_count_need_no_answer():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dv.read_trips(stored(pd.DataFrame({"from": ["a"], "b": [3], "c": [4]}), "csv"), regions=TOWNS).each_row is None
        assert dv.read_trips(ROWS.rename(columns={"volume": "trips"}), regions=TOWNS).count.sum() == 16


def test_a_release_says_it_without_names_that_nobody_called_a_number(ledger):
    del ledger
    table = {"x": [1.5, 2.5], "y": [1.5, 2.5], "visits": [7, 9], "score": [5, 25]}
    points = read_in_silence(table, domain=PLANE)
    order = Order(data=points, mechanism=dv.Quadtree(height=2), budget=dv.PureBudget(1), dataset="a", fingerprints=("00",))
    assert unit_definition(order) == "each row counts as one record; not read: 'visits'"
    assert "score" in str(points.each_row)


def test_a_column_of_weights_is_refused_with_what_each_row_means():
    with pytest.raises(dv.InputError, match="say so with count='none'"):
        dv.read_points({"x": [1.5], "y": [1.5], "share": [0.5]}, domain=PLANE, count="share")
