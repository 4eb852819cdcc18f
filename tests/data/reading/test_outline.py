"""Public files of polygons, whose box becomes a domain: every format gives the same one, and what is none is refused with a sentence."""

import json

import geopandas as gpd
import numpy as np
import pytest
import shapely

from dpviz.data.reading.outline import MOST_POLYGONS, read_outline
from dpviz.errors import DomainError, InputError
from dpviz.space.outline import Outline
from tests.data.reading.files import GEOMETRIES, frame, refused, stored, text, upload

TOWN = shapely.Polygon([(4.80006, 45.70006), (4.9, 45.71), (4.85, 45.79994)])
METRES = "EPSG:2154"
CSV = 'name,wkt\ntown,"{}"\n'


def file_of(*shapes, crs="EPSG:4326", form="geojson", folder=None):
    return stored(frame(crs, list(shapes), user=["a"] * len(shapes)), form, folder)


def refusal(source, error=DomainError, **options):
    return refused(read_outline, source, error=error, **options)


@pytest.mark.parametrize("form", GEOMETRIES)
def test_every_format_gives_the_box_rounded_outward(form, tmp_path):
    outline = read_outline(file_of(TOWN, form=form, folder=tmp_path))
    assert (outline.code, outline.bounds_in("EPSG:4326")) == ("EPSG:4326", (4.8, 45.7, 4.9, 45.8))


@pytest.mark.parametrize("shape", [TOWN, shapely.MultiPolygon([TOWN])])
def test_a_table_with_polygons_in_wkt_needs_a_crs(shape):
    source = CSV.format(shape.wkt)
    assert "does not state its CRS" in refusal(text(source))
    assert read_outline(text(source), crs="EPSG:4326").bounds_in("EPSG:4326") == (4.8, 45.7, 4.9, 45.8)
    assert "CRS is not known" in refusal(text(source), crs="nowhere")


def test_a_crs_that_the_file_states_is_not_overruled(tmp_path):
    metres = gpd.GeoSeries([TOWN], crs="EPSG:4326").to_crs(METRES)
    outline = read_outline(file_of(metres[0], crs=METRES, form="gpkg", folder=tmp_path), crs="EPSG:4326")
    assert outline.code == METRES
    low, high = np.array(outline.bounds_in(METRES)).reshape(2, 2)
    assert (low == np.floor(metres.total_bounds[:2])).all()
    assert (high == np.ceil(metres.total_bounds[2:])).all()


def test_in_another_crs_the_box_holds_the_curved_edges():
    wide = Outline(shapes=np.array([shapely.box(-10, 40, 30, 60)]), crs="EPSG:4326")
    north = wide.bounds_in("EPSG:3035")[3]
    corners = gpd.GeoSeries([shapely.box(-10, 40, 30, 60)], crs="EPSG:4326").to_crs("EPSG:3035").total_bounds
    assert north >= corners[3]
    assert wide.bounds_in("EPSG:3035")[1] < corners[1] - 50_000, "the southern edge is a curve"


def test_a_crs_without_a_code_has_its_box_in_degrees():
    own = Outline(shapes=np.array([shapely.box(-1000, -1000, 1000, 1000)]), crs="+proj=aeqd +lat_0=45.75 +lon_0=4.85")
    assert own.code == "EPSG:4326"
    west, south, east, north = own.bounds_in(own.code)
    assert (west, south) < (4.85, 45.75) < (east, north)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ([shapely.Point(4, 45)], "shapes that are no polygons"),
        ([TOWN, shapely.Point(4, 45)], "shapes that are no polygons"),
        ([shapely.LineString([(4, 45), (5, 45)])], "shapes that are no polygons"),
        ([None], "has no polygon"),
        ([shapely.Polygon([(4, 45), (5, 45), (4, 45)])], "has no polygon"),
        ([shapely.box(400, 45, 401, 46)], "out of range"),
    ],
)
def test_what_is_no_outline_is_refused(shapes, said, tmp_path):
    assert said in refusal(file_of(*shapes, form="parquet", folder=tmp_path))


def test_too_many_polygons_are_refused_in_every_kind_of_file(tmp_path):
    shapes = [TOWN] * (MOST_POLYGONS + 1)
    for form in ("geojson", "gpkg", "parquet"):
        assert "more than 5,000 polygons" in refusal(file_of(*shapes, form=form, folder=tmp_path))
    assert "more than 5,000 polygons" in refusal(text("wkt\n" + f'"{TOWN.wkt}"\n' * (MOST_POLYGONS + 1)))


@pytest.mark.parametrize("table", ["lon,lat\n4,45\n", "a,geometry,wkt\n1,2,3\n"])
def test_a_table_without_polygons_is_refused(table):
    assert "no polygons: choose one with shapes" in refusal(text(table))


@pytest.mark.parametrize("entry", ["POINT (4 45)", "zq", "GEOMETRYCOLLECTION (" * 50_000, "POLYGON ((zq))", "POLYGON " + "(" * 50_000])
def test_an_entry_that_is_no_polygon_is_refused_and_not_parsed(entry):
    assert "no polygon in WKT" in refusal(text(CSV.format(entry)))


def test_no_file_of_polygons_at_all():
    refusal(upload(b"{", "a.geojson"), error=InputError)
    refusal(upload(b"", "a.geojson"), error=InputError)
    refusal(upload(json.dumps({"type": "Polygon", "coordinates": []}).encode(), "a.geojson"), error=InputError)
    assert "has no polygon" in refusal(upload(b'{"type":"FeatureCollection","features":[]}', "a.geojson"))
