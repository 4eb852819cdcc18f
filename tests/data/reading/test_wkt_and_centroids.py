"""Points in WKT, and polygons as their centroids: only where they are declared, and one bad shape spoils no other."""

import io
import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.data.cells import polygons_as_points
from dpviz.data.columns import PointColumns
from dpviz.data.counting.files import read_points
from dpviz.data.reading.points import PointsRequest, read_rows
from dpviz.data.reading.text_format import TextFormat
from tests.data.reading.files import PLANE, WORLD, refusal, refused, shapefile, stored, text, upload, zipped

GOOD = ["POINT (1.5 2.5)", "point(3 4)", " POINT Z (5 6 7)", "Point (1e0 7)"]
BAD = ["", "POINT EMPTY", "POINT (nan 1)", "POINT (1)", "POINT (1 2", "POINT (1,5 2,5)", "LINESTRING (0 0, 1 1)", "MULTIPOINT (1 1)"]
BAD += ["POINTLESS", "zq", "GEOMETRYCOLLECTION(" * 10_000, "SRID=4326;POINT (1 2)", "POINT (" * 1000]

BARS = TextFormat(separator="|")


def rows_of(*shapes):
    return text("wkt|who\n" + "".join(f"{shape}|zq\n" for shape in shapes))


@pytest.mark.parametrize("shape", BAD, ids=lambda shape: shape[:20])
def test_a_row_without_a_point_is_one_bad_row(shape):
    options = {"geometry": "wkt", "text_format": BARS, "domain": PLANE}
    points = read_points(rows_of(*GOOD[:2], shape, *GOOD[2:]), bad_rows="drop", **options)
    alone = read_points(rows_of(*GOOD), **options)
    assert points.bad == 1
    for name in ("row", "column", "count"):
        np.testing.assert_array_equal(getattr(points, name), getattr(alone, name))
    assert alone.count.sum() == 4
    assert "no point in WKT" in refusal(rows_of(*GOOD, shape), **options)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.floats(-1, 9), st.floats(-1, 9), st.sampled_from("ab")), min_size=1, max_size=8))
def test_points_in_wkt_are_those_of_two_columns(rows):
    plain = pd.DataFrame(rows, columns=["x", "y", "who"])
    wkt = pd.DataFrame([(f"POINT ({x!r} {y!r})", who) for x, y, who in rows], columns=["the_geom", "who"])
    for form in ("csv", "plain"):
        one, two = (
            read_rows(stored(table, form), PointsRequest(target=None, columns=PointColumns(person="who", geometry=name)))
            for table, name in ((plain, None), (wkt, "the_geom"))
        )
        np.testing.assert_array_equal(one.x, two.x)
        np.testing.assert_array_equal(one.y, two.y)


def test_wkt_is_declared_proposed_and_never_guessed(tmp_path):
    source = rows_of(*GOOD)
    assert "declare geometry='wkt'" in refusal(source, domain=PLANE, text_format=BARS)
    assert dv.reading.inspect_points(source, text_format=BARS).geometry == "wkt"
    assert dv.reading.inspect_points(source, through=True, text_format=BARS, geometry="wkt").geometry == "wkt"
    assert "no column named" in refusal(source, domain=PLANE, text_format=BARS, geometry="geom")
    assert "two columns x and y, or in one" in refusal(source, domain=PLANE, text_format=BARS, geometry="wkt", x="who")
    assert "holds no point in WKT" in refusal(source, domain=PLANE, text_format=BARS, geometry="who", bad_rows="drop")
    assert "holds no point in WKT" in refusal(stored(pd.DataFrame({"wkt": [1, 2]}), "plain"), domain=PLANE, geometry="wkt", bad_rows="drop")
    (tmp_path / "a.csv").write_bytes(source.getvalue())
    for engine in ("duckdb", "dask"):
        assert "engine='numpy'" in refusal(tmp_path / "a.csv", domain=PLANE, text_format=BARS, geometry="wkt", engine=engine)


SHAPES = [
    shapely.box(0, 0, 20, 10),
    shapely.MultiPolygon([shapely.box(0, 0, 2, 2), shapely.box(40, 40, 42, 42)]),
    shapely.box(-70, 40, -68, 42),
]
AREAS = gpd.GeoDataFrame({"who": ["a", "a", "b"]}, geometry=SHAPES, crs="EPSG:4326")


def areas(form, folder, frame=AREAS):
    if form == "zip":
        return upload(zipped(shapefile(frame, folder)), "a.zip")
    buffer = io.BytesIO()
    if form == "parquet":
        frame.to_parquet(buffer)
    else:
        frame.to_file(folder / f"a.{form}")
        buffer.write((folder / f"a.{form}").read_bytes())
    return upload(buffer.getvalue(), f"a.{form}")


@pytest.mark.parametrize("form", ["geojson", "gpkg", "parquet", "zip"])
def test_polygons_are_points_only_where_their_centroids_are_asked_for(tmp_path, form):
    source = areas(form, tmp_path)
    assert "centroids=True" in refusal(source)
    found = read_points(source, domain=WORLD, centroids=True, person="who", contributions=5)
    centers = AREAS.geometry.to_crs("EPSG:4326").apply(shapely.centroid)
    expected = dv.PointCounts.from_xy(centers.x, centers.y, domain=WORLD, person=AREAS["who"], contributions=5)
    for name in ("row", "column", "count"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert dv.reading.inspect_points(source, through=True, centroids=True).has_geometry


@pytest.mark.parametrize("form", ["geojson", "gpkg", "parquet"])
def test_points_stay_points_and_other_shapes_are_bad_rows(tmp_path, form):
    others = [shapely.Point(3, 4), shapely.LineString([(0, 0), (1, 1)]), shapely.Polygon(), None]
    mixed = gpd.GeoDataFrame(geometry=[*SHAPES, *others], crs="EPSG:4326")
    source = areas(form, tmp_path, mixed)
    points = read_points(source, domain=WORLD, centroids=True, bad_rows="drop")
    assert (int(points.count.sum()), points.bad) == (4, 3)
    assert read_points(source, domain=WORLD, bad_rows="drop").count.sum() == 1


def test_a_malformed_polygon_of_a_geojson_is_one_bad_row():
    good = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 0]]]}
    malformed = [
        [],
        "zq",
        None,
        [[[0, 0]]],
        [[["zq", 0]] * 4],
        [[[0, 0], [2, 0], [2, float("nan")], [0, 0]]],
        [[[1e999] * 2] * 4],
        {"a": 1},
    ]
    malformed = [
        *({"type": kind, "coordinates": each} for each in [*malformed, {"a": 1}] for kind in ("Polygon", "MultiPolygon")),
        {"type": "Polygon"},
    ]
    for shape in malformed:
        features = [{"type": "Feature", "properties": {}, "geometry": each} for each in (good, shape, good)]
        source = text(json.dumps({"type": "FeatureCollection", "features": features}), "a.geojson")
        points = read_points(source, domain=WORLD, centroids=True, bad_rows="drop")
        assert (points.count.tolist(), points.bad) == ([2], 1)


def test_a_polygon_that_shapely_cannot_use_has_no_centroid_and_spoils_no_other(monkeypatch):
    centroid = shapely.centroid

    def fail_for_the_widest(shapes):
        if (shapely.area(shapes) > 100).any():
            raise shapely.GEOSException("zq")
        return centroid(shapes)

    monkeypatch.setattr(shapely, "centroid", fail_for_the_widest)
    found = polygons_as_points(np.array([*SHAPES, *SHAPES, shapely.Point(1, 2), None], object))
    assert [None if shape is None else shape.geom_type for shape in found] == [None, "Point", "Point"] * 2 + ["Point", None]


def test_centroids_are_refused_where_there_are_no_shapes():
    assert "leave it out for a table" in refused(read_points, text("x,y\n1,2\n"), domain=PLANE, centroids=True)
    assert "leave it out for a table" in refusal(rows_of(*GOOD), domain=PLANE, text_format=BARS, geometry="wkt", centroids=True)
