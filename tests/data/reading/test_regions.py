"""Public files of regions: every form gives the same ones, and what cannot be read is refused with a reason."""

import json
import tempfile
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.reading.regions import inspect_regions, list_denominators, propose_levels, read_regions
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.text_format import TextFormat
from dpviz.errors import DomainError, InputError
from dpviz.space.regions import Regions
from tests.data.reading.files import GEOMETRIES, TABLES, refused, shapefile, stored, text, upload, zipped
from tests.space.nested import level_names, map_of, parents_of, paths, regions_of, squares, table_of

few = settings(max_examples=12, deadline=None, derandomize=True, database=None)
ROWS = [["09", "09001"], ["09", "09003"], ["36", "36001"], ["36", "36003"]]
LEVELS = {"levels": ["state", "county"]}
COLUMN_PER_LEVEL = map_of(ROWS, squares(4, columns=2)).rename(columns={"level 1": "state", "level 2": "county"})


def refusal(source, error=DomainError, **options):
    return refused(read_regions, source, error=error, **options)


@pytest.mark.parametrize("form", TABLES)
@few
@given(st.data())
def test_a_table_gives_the_regions_that_were_written(form, data):
    rows = data.draw(paths())
    expected = regions_of(rows)
    with tempfile.TemporaryDirectory() as folder:
        by_level = stored(table_of(rows), form, Path(folder))
        by_parent = stored(parents_of(rows, root=True).astype({"level": np.int64}), form, Path(folder))
    assert read_regions(by_level, levels=level_names(len(rows[0]))) == expected
    assert read_regions(by_parent) == expected


@pytest.mark.parametrize("form", GEOMETRIES)
@settings(few, max_examples=8)
@given(st.data())
def test_shapes_give_the_regions_that_were_written(form, data):
    rows = data.draw(paths(most_depth=3, ids=st.from_regex(r"[0-9A-Za-z]{1,5}", fullmatch=True)))
    points = data.draw(st.booleans())
    geometry = [shape.centroid for shape in squares(len(rows))] if points else squares(len(rows))
    crs = "EPSG:4326" if form.startswith("geojson") else data.draw(st.sampled_from(["EPSG:4326", "EPSG:32633", "EPSG:4269"]))
    frame = map_of(rows, geometry, crs)
    with tempfile.TemporaryDirectory() as folder:
        found = read_regions(stored(frame, form, Path(folder)), levels=level_names(len(rows[0])))
    expected = Regions.from_table(frame, levels=level_names(len(rows[0])))
    assert found == expected
    assert shapely.equals_exact(found.geometry[-1].to_numpy(), expected.geometry[-1].to_numpy(), tolerance=1e-9, normalize=True).all()
    assert found.geometry[-1].crs.equals(pyproj.CRS(crs), ignore_axis_order=True)


@pytest.mark.parametrize("form", GEOMETRIES)
def test_shapes_of_every_level_by_parents(form, tmp_path):
    table = parents_of(ROWS)
    shapes, leaves = [shapely.box(0, 0, 2, 1), shapely.box(0, 1, 2, 2)], [path[1] for path in ROWS]
    outlines = dict(zip(["09", "36", *leaves], [*shapes, *squares(4, columns=2)], strict=True))
    geometry = [outlines[region] for region in table["region_id"]]
    frame = gpd.GeoDataFrame(table.astype({"level": np.int64}), geometry=geometry, crs="EPSG:4326")
    regions = read_regions(stored(frame, form, tmp_path))
    assert [ids.tolist() for ids in regions.ids] == [["09", "36"], leaves]
    assert all(one.equals(other) for one, other in zip(regions.outlines(1), shapes, strict=True))


ALIASES = ["region_id,parent_id,level,name", "GEOID,Parent,Level_Name,NAME"]
ALIASES += ["id,parent_region,LVL,label", "tile_id,parent_code,admin_level,title"]


@pytest.mark.parametrize("names", ALIASES)
def test_parents_are_found_by_the_names_of_their_columns(names):
    rows = "09,,state,Connecticut\n36,,state,New York\n09001,09,county,Fairfield\n36001,36,county,Albany\n"
    regions = read_regions(text(f"{names}\n{rows}", "a.csv"))
    assert regions.levels == ("state", "county")
    assert [each.tolist() for each in regions.names] == [["Connecticut", "New York"], ["Fairfield", "Albany"]]


def test_an_exact_name_goes_before_its_aliases():
    regions = read_regions(text("region_id,id,parent_id,level,label,name\na,1,,1,x,A\nb,2,,1,y,B\n", "a.csv"))
    assert (regions.ids[0].tolist(), regions.names[0].tolist()) == (["a", "b"], ["A", "B"])


def test_names_of_columns_are_compared_in_any_case_and_cells_without_the_blanks_around_them():
    regions = read_regions(text("State, County\n x ,09001\n x, 36001 \n", "a.csv"), levels=["STATE", " county "])
    assert (regions.levels, regions.ids[1].tolist()) == (("State", " County"), ["09001", "36001"])


LABELS = [("state,county,name", None, [["09"], ["A", "B"]]), ("state,county,county_name", None, [["09"], ["A", "B"]])]
LABELS += [("state,county,State_Name", None, [["A"], ["09001", "09003"]]), ("state,county,other", None, [["09"], ["09001", "09003"]])]
LABELS += [("state,county,other", {"county": "OTHER"}, [["09"], ["A", "B"]]), ("state,county,name", {}, [["09"], ["09001", "09003"]])]


@pytest.mark.parametrize(("header", "names", "expected"), LABELS)
def test_names_are_found_or_named(header, names, expected):
    regions = read_regions(text(f"{header}\n09,09001,A\n09,09003,B\n", "a.csv"), levels=["state", "county"], names=names)
    assert [each.tolist() for each in regions.names] == expected


def test_locations_of_a_flow_map_are_one_level_of_points_and_need_no_levels():
    """Id, lat, lon, name, as flow maps have it; another column makes the levels unclear."""
    source = text("id,lat,lon,name\n06037,34.1,-118.2,Los Angeles\n36061,40.8,-74.0,New York\n", "locations.csv")
    regions = read_regions(source)
    assert regions == read_regions(source, levels=["id"])
    assert (regions.levels, regions.ids[0].tolist()) == (("id",), ["06037", "36061"])
    assert regions.names[0].tolist() == ["Los Angeles", "New York"]
    np.testing.assert_allclose(regions.centres(1), [[-118.2, 34.1], [-74.0, 40.8]])
    assert regions.outlines(1) is None
    wider = text("id,lat,lon,state\n06037,34.1,-118.2,CA\n36061,40.8,-74.0,NY\n", "a.csv")
    np.testing.assert_allclose(read_regions(wider, levels=["state", "id"]).centres(1), [[-118.2, 34.1], [-74.0, 40.8]])
    assert "levels" in refusal(wider)


@pytest.mark.parametrize("form", TABLES)
def test_tables_give_points_in_the_declared_crs(form, tmp_path):
    table = pd.DataFrame({"place": ["a", "b"], "Easting": [500000.0, 510000.0], "Northing": [5e6, 5.1e6]})
    source = stored(table, form, tmp_path)
    regions = read_regions(source, levels=["place"], crs="EPSG:32633")
    assert regions.geometry[0].crs == "EPSG:32633"
    assert regions.geometry[0].x.tolist() == [500000.0, 510000.0]
    assert "never guessed" in refusal(source, levels=["place"])
    degrees = stored(table.rename(columns={"Easting": "LNG", "Northing": "Latitude"}).assign(LNG=[1, 2], Latitude=[3, 4]), form, tmp_path)
    assert read_regions(degrees, levels=["place"]).geometry[0].crs == "EPSG:4326"
    assert read_regions(degrees, levels=["place"], crs="EPSG:4269").geometry[0].crs == "EPSG:4269"


def test_points_of_the_leaves_are_enough_where_parents_are_named():
    rows = "a,,1,,\nb,,1,,\naa,a,2,10,50\nba,b,2,20,51\n"
    regions = read_regions(text("id,parent,level,lon,lat\n" + rows, "a.csv"))
    assert regions.geometry[0] is None
    assert regions.centres(1).tolist() == [[10, 50], [20, 51]]


SENSELESS = [("id,name\na,A\n", {}, ["no column 'parent_id'", "levels=[...]", "'id', 'name'"])]
SENSELESS += [("id,parent_id\na,\n", {}, ["no column 'level'"]), ("zone_no,parent_id,level\na,,1\n", {}, ["no column 'region_id'"])]
SENSELESS += [("id,geoid,parent_id,level\na,1,,1\n", {}, ["'region_id'", "'id', 'geoid'"])]
SENSELESS += [("id,title,label,parent_id,level\na,A,A,,1\n", {}, ["'name'", "'title', 'label'"])]
SENSELESS += [("id,name\na,A\n", {"levels": ["state"]}, ["no column named 'state'", "'id', 'name'"])]
SENSELESS += [("id,ID\na,A\n", {"levels": ["Id"]}, ["Several columns have the name"])]
SENSELESS += [("id,name\na,A\n", {"levels": "id"}, ["must be a list"]), ("id,name\na,A\n", {"levels": []}, ["must be a list"])]
SENSELESS += [("id,name\na,A\n", {"levels": ["id"], "names": {"id": "title"}}, ["no column named 'title'"])]
SENSELESS += [("id,name\na,A\n", {"levels": ["id"], "names": {"name": "name"}}, ["not one of the levels"])]
SENSELESS += [("id,name\na,A\n", {"levels": ["id"], "crs": "EPSG:4326"}, ["leave crs out"])]
SENSELESS += [("id,lon,lat\na,1,2\n", {"levels": ["id"], "crs": "EPSG:999999"}, ["CRS is not known"])]
SENSELESS += [("id,lon,lat\na,1,2\n", {"levels": ["id"], "crs": "EPSG:5703"}, ["no positions on a map"])]
SENSELESS += [("id,lon,lng,lat\na,1,1,2\n", {"levels": ["id"]}, ["could be coordinates", "'lon' and 'lat', or 'lng' and 'lat'"])]
SENSELESS += [("id,x,y\na,1,2\n", {"levels": ["id"]}, ["pass crs"])]
SENSELESS += [("id,lon,lat\na,zq,2\nb,1,2\n", {"levels": ["id"]}, ["'lon' has a cell that is no finite number"])]
SENSELESS += [("id,lon,lat\na,1,inf\nb,1,2\n", {"levels": ["id"]}, ["'lat' has a cell that is no finite number"])]
SENSELESS += [("id,lon,lat\na,1,\nb,1,2\n", {"levels": ["id"]}, ["one coordinate without the other"])]
SENSELESS += [("id,lon,lat\na,,\nb,1,2\n", {"levels": ["id"]}, ["without a shape"])]
SENSELESS += [("id,lon,lat\na,40,-100\nb,1,2\n", {"levels": ["id"]}, ["are x and y swapped"])]
SENSELESS += [("id,name\nzq,A\nzq,B\n", {"levels": ["id"]}, ["duplicate id"]), ("id,name\n,A\n", {"levels": ["id"]}, ["missing or blank"])]
SENSELESS += [("id,parent_id,level\nzq,b,1\n", {}, ["no row of its own"])]


PEOPLE = {"levels": ["id"], "denominator": "people"}
SENSELESS += [("id,name,n\na,A,1\n", PEOPLE, ["no column named 'people'", "'id', 'name', 'n'"])]
SENSELESS += [("id,people\na,zq\nb,1\n", PEOPLE, ["'people' is not numeric"]), ("id,people\na,inf\n", PEOPLE, ["is not numeric"])]
SENSELESS += [("id,people\na,-1\n", PEOPLE, ["negative"]), ("id,people\na,\nb,1\n", PEOPLE, ["blank", "write 0"])]


@pytest.mark.parametrize(("content", "options", "words"), SENSELESS)
def test_what_makes_no_sense_is_refused(content, options, words):
    message = refusal(text(content, "a.csv"), **options)
    assert all(word in message for word in words)


def test_a_denominator_follows_its_region_through_sorting_and_new_levels():
    read = read_regions(text("id,People\nB1,3\nA2, 2.5 \nB2,0\nA1,1\n", "a.csv"), levels=["id"], denominator="people").grouped([1])
    assert read.ids[1].tolist() == ["B1", "B2", "A2", "A1"]
    assert (read.denominator.name, read.denominator.to_dict()) == ("People", {"B1": 3, "B2": 0, "A2": 2.5, "A1": 1})
    assert read.denominator.index.tolist() == read.ids[1].tolist()
    by_parents = "region_id,parent_id,level,n\na,,1,\na1,a,2,4\na2,a,2,0\nb,,1,\nb1,b,2,9\n"
    assert read_regions(text(by_parents, "a.csv"), denominator="n").denominator.tolist() == [4, 0, 9]
    assert list_denominators(text("id,n,change,note\na,1,-1,x\nb,,2,\n", "a.csv")) == ("n",)


def test_only_some_of_many_columns_are_listed():
    message = refusal(text(",".join(f"c{k}" for k in range(30)) + "\n" + "1," * 29 + "1\n", "a.csv"))
    assert "'c19' and 10 more" in message


def geojson(features, **members):
    return text(json.dumps({"type": "FeatureCollection", **members, "features": features}), "a.geojson")


def feature(geometry=None, **properties):
    shape = shapely.geometry.mapping(geometry) if isinstance(geometry, shapely.Geometry) else geometry
    return {"type": "Feature", "properties": properties, "geometry": shape}


def test_ids_of_geojson_may_be_whole_numbers_and_one_feature_is_a_file():
    found = read_regions(geojson([feature(shapely.Point(1, 2), id=number) for number in (10**25, 7)]), levels=["id"])
    assert found.ids[0].tolist() == ["1" + "0" * 25, "7"]
    assert read_regions(text(json.dumps(feature(shapely.Point(1, 2), id="a")), "a.json"), levels=["id"]).size(1) == 1


PLACE, AREA = shapely.Point(1, 2), shapely.box(0, 0, 1, 1)
SENSELESS_FEATURES = [([feature(PLACE, id="zq"), feature(PLACE)], "missing or blank")]
SENSELESS_FEATURES += [([feature(PLACE, id="zq"), feature(None, id="b")], "without a shape")]
SENSELESS_FEATURES += [([feature(PLACE, id=1.5), feature(PLACE, id=["zq"])], "must hold texts")]
SENSELESS_FEATURES += [([feature(PLACE, id="zq"), feature(AREA, id="b")], "mixes polygons and points")]
SENSELESS_FEATURES += [([feature(AREA.boundary, id="zq")], "neither polygons nor points")]


@pytest.mark.parametrize(("features", "words"), SENSELESS_FEATURES)
def test_features_that_make_no_sense_are_refused(features, words):
    assert words in refusal(geojson(features), levels=["id"])


def test_a_file_of_shapes_without_a_crs_needs_one(tmp_path):
    bare = COLUMN_PER_LEVEL.set_crs(None, allow_override=True)
    parts = {name: data for name, data in shapefile(COLUMN_PER_LEVEL, tmp_path, "a").items() if not name.endswith(".prj")}
    assert "declares another CRS" in refusal(stored(COLUMN_PER_LEVEL, "parquet"), crs="EPSG:3857", **LEVELS)
    for source in (upload(zipped(parts), "a.zip"), stored(bare, "parquet")):
        assert "does not state its CRS" in refusal(source, **LEVELS)
        assert read_regions(source, crs="EPSG:4326", **LEVELS).geometry[1].crs == "EPSG:4326"


@pytest.mark.parametrize("form", ["gpkg", "parquet", "geojson", "zip"])
def test_shapes_that_are_missing_are_refused_and_polygons_that_cross_themselves_repaired(form, tmp_path):
    bow = shapely.from_wkt("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))")
    missing, crossed = (COLUMN_PER_LEVEL.assign(geometry=[shape, *COLUMN_PER_LEVEL.geometry[1:]]) for shape in (None, bow))
    assert "without a shape" in refusal(stored(missing, form, tmp_path), **LEVELS)
    assert read_regions(stored(crossed, form, tmp_path), **LEVELS).outlines(1).is_valid.all()


@pytest.mark.parametrize("form", ["geojson", "gpkg"])
@pytest.mark.parametrize("limit", ["rows", "columns"])
def test_shapes_over_a_limit_are_refused(form, limit, tmp_path):
    assert limit in refusal(stored(COLUMN_PER_LEVEL, form, tmp_path), limits=Limits(**{limit: 1}), error=InputError, **LEVELS)


@pytest.mark.parametrize(
    ("header", "nested", "levels"),
    [("Id,name", False, ("Id",)), ("id,geoid", False, ()), ("id,parent_id,level", True, ("id",)), ("state,county", False, ())],
)
def test_a_file_says_what_it_may_be_read_as(header, nested, levels):
    found = inspect_regions(text(f"{header}\n{'zq,' * header.count(',')}zq\n", "a.csv"))
    assert (found.format, found.columns, found.has_geometry) == ("CSV", tuple(header.split(",")), False)
    assert (found.nested, found.levels) == (nested, levels)
    assert "zq" not in repr(found)


def test_a_file_of_shapes_says_so(tmp_path):
    names = ("GeoJSON", "GeoPackage", "GeoParquet", "GeoParquet", "Shapefile", "GeoJSON", "FlatGeobuf")
    for form, name in zip(GEOMETRIES, names, strict=True):
        found = inspect_regions(stored(COLUMN_PER_LEVEL, form, tmp_path))
        assert (found.format, found.columns, found.has_geometry) == (name, ("state", "county"), True)


@pytest.mark.parametrize(
    ("table", "proposed"),
    [
        ("district,block\nN,N1\nN,N2\nS,S1\n", ("district", "block")),
        ("block,name,district\nN1,a,N\nN2,b,N\nS1,c,S\n", ("district", "block")),
        ("town\nA\nB\n", ("town",)),
        ("district,use,block\nN,park,N1\nN,mill,N2\nS,park,S1\n", ()),
        ("code_a,code_b\nN,1\nS,2\n", ()),
        ("district,block\nN,N1\nN,N1\n", ()),
        ("country,block\nX,N1\nX,N2\n", ()),
        ("district,block\nN,N1\n,N2\n", ()),
        ("name\nA\nB\n", ()),
    ],
)
def test_levels_are_proposed_only_where_all_columns_are_nested_in_one_way(table, proposed):
    assert propose_levels(text(table)) == proposed


def test_levels_of_polygons_are_proposed(tmp_path):
    squares_of_counties = COLUMN_PER_LEVEL.to_crs("EPSG:4326") if COLUMN_PER_LEVEL.crs else COLUMN_PER_LEVEL.set_crs("EPSG:4326")
    assert propose_levels(stored(squares_of_counties, "gpkg", tmp_path)) == ("state", "county")


SHAPES = {"one": shapely.box(0, 0, 1, 1), "two": shapely.box(1, 0, 2, 1)}


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"zone": ["a", "a"]}, {}, "dissolve"),
        ({"zone": ["a", "b"], "LEVL_CODE": [0, 1]}, {}, "levels: keep those of the finest one"),
        ({"zone": [1.5, 2.0]}, {}, "write its ids as texts"),
        ({"zone": ["a", "b"]}, {"crs": "EPSG:2056"}, "ogr2ogr -f GeoJSON -s_srs"),
    ],
)
def test_a_refusal_of_regions_says_the_next_step(columns, options, words):
    shapes = gpd.GeoDataFrame(columns, geometry=[*SHAPES.values()], crs="EPSG:4326")
    with pytest.raises((DomainError, InputError), match=words):
        read_regions(text(shapes.to_json(), "zones.geojson"), levels=["zone"], **options)


def test_whole_numbers_that_a_shapefile_stores_as_floats_are_ids():
    shapes = gpd.GeoDataFrame({"zone": [1.0, 2.0]}, geometry=[*SHAPES.values()], crs="EPSG:4326")
    assert read_regions(text(shapes.to_json(), "zones.geojson"), levels=["zone"]).ids[0].tolist() == ["1", "2"]


def test_a_text_table_of_regions_is_read_as_it_is_declared_to_be_written():
    content = "land;gebiet;lat;lon;einwohner\nBö;a;50,5;9,25;1.250\nBö;b;49,5;8,5;13,5\n"
    written = TextFormat(separator=";", decimal=",", thousands=".", encoding="latin-1")
    regions = read_regions(
        upload(content.encode("latin-1"), "gebiete.csv"), levels=["land", "gebiet"], denominator="einwohner", text_format=written
    )
    assert regions.ids_of(1).tolist() == ["Bö"]
    assert [(point.x, point.y) for point in regions.geometry[-1]] == [(9.25, 50.5), (8.5, 49.5)]
    assert regions.denominator.tolist() == [1250.0, 13.5]
    assert inspect_regions(upload(content.encode("latin-1"), "gebiete.csv"), text_format=written).columns[-1] == "einwohner"
    with pytest.raises(InputError, match="separator can be declared for text tables"):
        read_regions(upload(b"{}", "a.geojson"), text_format=TextFormat(separator=";"))
