"""Files of points: every format is read, and what columns and rows hold is found, requested, refused or dropped, and never quoted."""

import json
import sqlite3
import struct
from contextlib import closing, nullcontext

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from dpviz.data.bounding import find_people
from dpviz.data.columns import PointColumns, RawPoints
from dpviz.data.counting.files import read_points
from dpviz.data.reading.geojson import flatten_json
from dpviz.data.reading.points import PointsFile, PointsRequest, inspect_points, read_rows
from dpviz.space.domain import Domain
from tests.data.reading import files
from tests.data.reading.files import PLANE, TABLES, WORLD, N, X, Y, declared, frame, left_out, refusal, refused, stored, text, upload
from tests.data.reading.whole import parquet

FORMS = (*TABLES, *files.GEOMETRIES)


def feature(properties):
    return {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": properties}


def collection(*features, **members):
    return text(json.dumps({"type": "FeatureCollection", **members, "features": features}), "a.geojson")


@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_read_from_paths_of_any_kind_and_from_open_files(form, tmp_path):
    source = stored(frame(), form, tmp_path)
    points = read_points(source, domain=WORLD, crs=declared(form))
    assert (points.count.tolist(), points.dropped, points.unit) == ([1, 1, 2], 0, "record")
    assert read_points(source, domain=WORLD, crs=declared(form), count="N").count.tolist() == [4, 3]
    path = tmp_path / "Some Folder & more!" / f"points.{files.NAMES.get(form, form).upper()}"
    path.parent.mkdir()
    path.write_bytes(source.getvalue())
    with path.open("rb") as file:
        for each in (path, str(path), file):
            assert read_points(each, domain=WORLD, crs=declared(form)).count.sum() == 4


@pytest.mark.parametrize("form", FORMS)
def test_a_file_says_what_it_is(form, tmp_path):
    facts = inspect_points(stored(frame(person_id=files.USER, n=N), form, tmp_path))
    table = form in TABLES
    assert (facts.x, facts.y) == (("lon", "lat") if table else (None, None))
    assert (facts.count, facts.person, facts.has_geometry, facts.needs_crs) == ("n", "person_id", not table, table)
    assert {"person_id", "n"} <= set(facts.columns)
    assert facts.rows == (None if form in ("csv", "tsv") else 4)
    assert "4" not in repr(facts).replace("EPSG:4326", "").replace("CRS84", "")


def test_of_several_candidates_none_is_proposed_and_a_first_line_of_data_is_not_shown():
    assert "first line" in refused(inspect_points, text("12.5,zq\n13.5,zq\n"))
    columns = ("lon", "lng", "LAT", "count", "n", "user", "uid")
    facts = {"format": "CSV", "columns": columns, "has_geometry": False, "crs": None, "rows": None}
    assert inspect_points(text(",".join(columns) + "\n")) == PointsFile(x=None, y=None, count=None, person=None, **facts)


PAIRS = (("lon", "LAT"), ("LNG", " Lat"), (" Long ", "latitude"), ("Longitude", "lat"), ("x", "Y"), ("EASTING", "Northing"))
READ = [(f"{x},{y}\n1,2\n", 1) for x, y in PAIRS]
READ += [("lon,lat\n1,2\n", 1), ("lon,lat\r\n1,2\r\n", 1), ("lon,lat\n1,2", 1), ("\ufefflon,lat\n1,2\n", 1), ("\n\nlon,lat\n1,2\n\n", 1)]
READ += [("lon, lat\n 1 , 2.0\n", 1), ('"lon","lat"\n"1","2"\n', 1), ('lon,lat,"a,""b"""\r\n\r\n1,2,"c ""d"""\r\n', 1)]
READ += [("lon,lat\n", 0), ("lon,lat", 0), ("lon,lat\n\n", 0), ("\ufefflon,lat\r\n", 0), ("lon,lat,count\n1,2,50\n", 1)]


@pytest.mark.parametrize(("content", "rows"), READ)
def test_tables_are_read_however_they_are_written(content, rows):
    """Columns are found by their names; a count is applied only where it is named; a header without rows is a file without records."""
    points = read_points(text(content), domain=PLANE)
    assert (points.column.tolist(), points.row.tolist()) == ([1] * rows, [2] * rows)
    assert (points.count.tolist(), points.dropped) == ([1] * rows, 0)


@pytest.mark.parametrize("form", [*TABLES, "geojson", "fgb", "gpkg", "parquet", "zip"])
def test_files_without_rows_have_no_records(form, tmp_path):
    source = stored(frame().iloc[:0], form, tmp_path, geometry_type="Point")
    points = read_points(source, domain=WORLD, crs=declared(form), person="user", count="n")
    assert (len(points.count), points.dropped) == (0, 0)


def test_a_parquet_file_with_geometry_can_be_read_by_its_columns(tmp_path):
    source = stored(frame(lon=X, lat=Y), "parquet", tmp_path)
    assert read_points(source, domain=WORLD, x="lon", y="lat", crs="EPSG:4326").count.sum() == 4
    assert "CRS" in refusal(source, x="lon", y="lat")


def test_a_bad_line_of_geojson_lines_is_one_bad_row_and_takes_nothing_with_it():
    line = json.dumps(feature({"user": 7}))
    bad = ["{", '{"type": "Feature"', "[" * 5000, '"', "7", '{"a": {"type": "Feature"}}', "\x1e", line.replace("1, 2", "null, 2")]
    for end in ("\n", "\r\n"):
        source = text(end.join([line, *bad, f"\x1e{line}", ""]), "a.geojsonl")
        assert left_out(source) == (2, len(bad) - 1)
    assert "each line" in refusal(text(f"{line}\n{line}\n", "a.geojson"))


def test_the_id_of_a_feature_is_its_column_id_unless_it_has_a_property_of_that_name():
    named, unnamed = {**feature({"id": "b"}), "id": "a"}, {**feature({}), "id": "b"}
    counts = read_points(collection(named, unnamed, {**feature({}), "id": 7}), domain=WORLD, person="id")
    assert (int(counts.count.sum()), counts.over) == (2, 1)


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ({"type": "Topology", "objects": {}}, "ogr2ogr"),
        ({"locations": []}, "'locations'"),
        (7, "no GeoJSON"),
        ([["NAME", "state"], ["Ohio", "39"]], "none of its entries"),
        ({"type": "FeatureCollection", "features": [{"type": "FeatureCollection", "features": [feature({})]}]}, "none of its entries"),
    ],
)
def test_json_that_is_no_geojson_says_what_was_seen(top, words):
    assert words in refusal(text(json.dumps(top), "a.json"))


@pytest.mark.parametrize("top", [[feature({})], {"features": [feature({})]}])
def test_json_that_is_geojson_without_saying_so_is_read(top):
    assert read_points(text(json.dumps(top), "a.json"), domain=WORLD).count.tolist() == [1]


def test_a_flatgeobuf_that_is_cut_short_is_refused(tmp_path):
    whole = stored(frame(), "fgb", tmp_path).getvalue()
    for length in range(8, len(whole), 3):
        assert refusal(upload(whole[:length], "points.fgb"))
    assert "not a FlatGeobuf" in refusal(upload(b'{"type": "FeatureCollection", "features": []}', "points.fgb"))


@pytest.mark.parametrize("missing", range(4))
def test_a_missing_geometry_of_a_flatgeobuf_is_one_bad_row_and_takes_nothing_with_it(missing, tmp_path):
    shapes = frame()
    shapes.loc[missing, "geometry"] = None
    assert left_out(stored(shapes, "fgb", tmp_path)) == (3, 1)


def test_a_latitude_beyond_the_poles_is_a_bad_row_and_in_most_rows_a_sign_of_swapped_columns():
    one, most = "lon,lat\n12.6,55.7\n12.5,55.6\n181,91\n", "lon,lat\n34,-118\n35,-117\n36,-80\n"
    assert "write 91 where none is known" in refusal(text(one), crs="EPSG:4326")
    assert left_out(text(one), crs="EPSG:4326") == (2, 1)
    assert "swapped" in refusal(text(most), crs="EPSG:4326")
    metres = json.dumps(feature({})).replace("1, 2", "2600000, 1200000")
    assert "metres" in refusal(text(metres, "a.geojson"))


def test_no_record_inside_is_said_before_anything_is_counted():
    town = Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=4)
    assert "No record lies in the domain" in refusal(text("x,y\n34.05,-58.24\n34.1,-58.3\n"), domain=town, crs="EPSG:4326")


def test_geojson_features_may_be_alone_and_have_heights_and_topologies_are_none():
    feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2.5, 99]}, "properties": {"user": 7, "type": "Feature"}}
    assert read_points(text(json.dumps(feature), "one.json"), domain=WORLD).count.sum() == 1
    assert "TopoJSON" in refusal(text('{"type": "Topology", "features": []}', "a.geojson"))
    several = collection(feature, *({**feature, "properties": {"user": user}} for user in "78"))
    assert read_points(several, domain=WORLD, person="USER").count.sum() == 2


@pytest.mark.parametrize("form", TABLES)
def test_tables_need_a_crs_unless_the_domain_is_a_plane(form, tmp_path):
    source = stored(frame(), form, tmp_path)
    assert "crs=" in refusal(source)
    assert left_out(source, domain=Domain(bounds=(-200, -200, 200, 200), crs=None)) == (4, 0)
    assert "domain has no CRS" in refusal(source, domain=PLANE, crs="EPSG:4326")


@pytest.mark.parametrize("form", ["gpkg", "zip", "parquet"])
def test_geometries_without_a_crs_need_one(form, tmp_path):
    with nullcontext() if form == "parquet" else pytest.warns(UserWarning, match="crs"):
        source = stored(frame(crs=None), form, tmp_path)
    assert inspect_points(source).needs_crs
    assert "never guessed" in refusal(source)
    assert read_points(source, domain=WORLD, crs=4326).count.sum() == 4


def test_geoparquet_without_the_crs_key_is_in_longitude_and_latitude(tmp_path):
    table = pq.read_table(stored(frame(), "parquet", tmp_path))
    geo = json.loads(table.schema.metadata[b"geo"])
    del geo["columns"]["geometry"]["crs"]
    source = upload(parquet(geometry=table["geometry"].combine_chunks(), metadata={"geo": json.dumps(geo)}), "a.parquet")
    assert inspect_points(source).crs == "OGC:CRS84"
    assert read_points(source, domain=WORLD).count.sum() == 4


@pytest.mark.parametrize("form", ["gpkg", "zip", "parquet"])
def test_declared_crs_is_used_and_must_not_be_contradicted(form, tmp_path):
    domain = Domain(bounds=(-180.0, -80.0, 180.0, 80.0), crs="EPSG:4326", order=6)
    expected = read_points(stored(frame(), "geojson", tmp_path), domain=domain)
    source = stored(frame().to_crs("EPSG:3857"), form, tmp_path)
    for crs in (None, "EPSG:3857", 3857):
        points = read_points(source, domain=domain, crs=crs)
        assert (points.column.tolist(), points.row.tolist()) == (expected.column.tolist(), expected.row.tolist())
    assert "another CRS" in refusal(source, domain=domain, crs="EPSG:4326")


def test_a_crs_must_be_known():
    assert "not known" in refusal(text("lon,lat\n1,2\n"), crs="EPSG:zq")


def test_tables_are_reprojected_to_the_domain():
    domain = Domain(bounds=(-2.1e7, -2.1e7, 2.1e7, 2.1e7), crs="EPSG:3857", order=1)
    points = read_points(text("lat,lon\n40,-100\n-30,100\n"), domain=domain, crs="EPSG:4326")
    assert list(zip(points.column, points.row, strict=True)) == [(1, 0), (0, 1)]


def test_old_geojson_may_declare_a_crs_but_never_a_link():
    def crs(kind, **properties):
        return collection(crs={"type": kind, "properties": properties})

    assert inspect_points(crs("name", name="urn:ogc:def:crs:EPSG::25832")).crs == "EPSG:25832"
    assert "never followed" in refusal(crs("link", href="http://127.0.0.1:9/zq"))
    assert "no known CRS" in refusal(crs("name", name="zq"))


def test_swapped_columns_are_suspected_under_refuse_only():
    source = text("lon,lat\n40.1,-100.5\n30.2,-97.7\n")
    assert "swapped" in refusal(source, crs="EPSG:4326")
    assert left_out(source, crs="EPSG:4326") == (0, 2)
    assert read_points(source, domain=WORLD, x="lat", y="lon", crs="EPSG:4326").count.sum() == 2


UNCLEAR = [("lon,lng,lat", {}, ["'lon'", "'lng'", "x='...'"]), ("lon,LAT,latitude", {}, ["'LAT'", "'latitude'", "y='...'"])]
UNCLEAR += [
    ("lon,lon,lat", {}, ["Several columns have the name"]),
    ("zq1,lat,c", {}, ["No column for x"]),
    ("lon,zq2,c", {}, ["No column for y"]),
]
UNCLEAR += [
    ("lon,lat,c", {"x": "easting"}, ["no column named 'easting'"]),
    ("lon,lat,c", {"person": "who"}, ["no column named 'who'. The columns are 'lon', 'lat', 'c'."]),
]
UNCLEAR += [("lon,lat,c", {"count": "people"}, ["no column named 'people'"]), ("lon,lat,c", {"x": "lon", "y": "Lon"}, ["the same column"])]
UNCLEAR += [("c,C,lat", {"x": " c "}, ["Several columns have the name"]), ("lon;lat;zq", {}, ["commas"])]


@pytest.mark.parametrize(("header", "options", "words"), UNCLEAR)
def test_unclear_columns_are_refused_with_their_names(header, options, words):
    message = refusal(text(f"{header}\n1,2,3\n"), domain=PLANE, **options)
    assert all(word in message for word in words)


def test_a_file_that_may_have_no_header_is_not_quoted():
    message = refusal(text("4.9,52.4,Kowalska\n4.8,52.3,Nowak\n"), domain=PLANE, x="lon", y="lat")
    assert message.startswith("There is no column named 'lon'. In a text table, the first line must hold the names")
    assert not any(entry in message for entry in ("4.9", "52.4", "Kowalska"))


def test_geometries_leave_no_choice_of_coordinates(tmp_path):
    assert "leave x and y out" in refusal(stored(frame(lon=X), "gpkg", tmp_path), x="lon")


@pytest.mark.parametrize("name", ["weight", "Weights", "WGT", "pweight", "pwgtp", "perwt", "final_wt", "hh_wt", "survey weight"])
def test_columns_that_are_called_weights_are_refused(name):
    message = refusal(text(f"lon,lat,{name}\n1,2,3\n"), domain=PLANE, count=name)
    assert "Survey weights are refused" in message
    assert "one row would move a count by its weight" in message


@pytest.mark.parametrize("name", ["n", "growth", "records", "town_count"])
def test_other_names_are_no_weights(name):
    assert read_points(text(f"lon,lat,{name}\n1,2,3\n"), domain=PLANE, count=name).count.tolist() == [3]


def test_a_column_of_fractions_holds_weights_even_where_bad_rows_are_dropped():
    assert "Survey weights are refused" in refusal(text("lon,lat,n\n1,2,1.5\n2,2,2.5\n"), domain=PLANE, count="n", bad_rows="drop")


@pytest.mark.parametrize("column", ["lon", "lat", "n"])
@pytest.mark.parametrize("cells", [("zq", "zq"), ("1.234,5", "1,5"), ("12\u00b030'", "13\u00b0"), ("1 000,5", "")])
def test_a_column_without_a_number_is_refused(column, cells):
    rows = pd.DataFrame({"lon": [1, 2], "lat": [1, 2], "n": [1, 2]}).assign(**{column: cells})
    for bad_rows in ("refuse", "drop"):
        message = refusal(text(rows.to_csv(index=False)), domain=PLANE, count="n", bad_rows=bad_rows)
        assert f"{column!r} holds no number" in message
        assert "thousands" in message


@pytest.mark.parametrize("column", [[True, False], pa.array([0, 1], pa.timestamp("s")), pa.nulls(2, pa.list_(pa.int64()))], ids=str)
def test_parquet_columns_of_another_kind_hold_no_number(column):
    assert "holds no number" in refusal(upload(parquet(x=column, y=[1, 2]), "a.parquet"), domain=PLANE)


@pytest.mark.parametrize("cell", ["zqtext", "", "NaN", "inf", "-inf", '"1,5"', "1e999"])
@pytest.mark.parametrize("column", ["lon", "lat", "n"])
def test_bad_cells_are_refused_by_column_or_dropped(cell, column):
    bad = ",".join(({"lon": "1", "lat": "2", "n": "1"} | {column: cell}).values())
    source = text(f"lon,lat,n\n1,2,1\n{bad}\n1,2,1\n")
    message = refusal(source, domain=PLANE, count="n")
    assert f"Column {column!r} has a cell that is no finite number" in message
    assert not any(sign.isdigit() for sign in message)
    assert left_out(source, domain=PLANE, count="n") == (2, 1)


BAD = [("lon,lat,n\n1,2,1\n1,2,-3\n", {"count": "n"}, "negative", (1, 1))]
BAD += [(f"lon,lat,who\n1,2,a\n1,2,{cell}\n", {"person": "who"}, "'who' has a missing cell", (1, 1)) for cell in ("", "NA", "null", " ")]
BAD += [(f"lon,lat,n\n1,2,3\n{row}\n3,4,5\n", {}, "more or fewer cells", (2, 1)) for row in ("1", "1,2,3,zq", "1,5,2,5")]
BAD += [('lon,lat,n\n1,2,3\n1,"zq,5\n' + "3,4,5\n" * 300_000, {}, "not closed on its line", (300_001, 1))]
BAD += [("lon,lat,n\n1,2,1.5\n2,2,2.0\n", {"count": "n"}, "Survey weights are refused", (2, 1))]


@pytest.mark.parametrize(("content", "options", "words", "left"), BAD, ids=lambda value: str(value)[:30])
def test_bad_rows_are_refused_by_rule_or_dropped(content, options, words, left):
    assert words in refusal(text(content), domain=PLANE, **options)
    assert left_out(text(content), domain=PLANE, **options) == left


MISSING, EMPTY, OTHER = "geometry is missing", "missing, empty or not finite", "Some geometries are not points"
SHAPES = [(form, MISSING, None) for form in ("geojson", "gpkg", "zip", "parquet")]
SHAPES += [(form, EMPTY, shapely.Point()) for form in ("geojson", "gpkg", "parquet", "geoarrow")]
SHAPES += [(form, OTHER, shapely.box(0, 0, 1, 1)) for form in ("geojson", "gpkg", "parquet")]


@pytest.mark.parametrize(("form", "words", "shape"), SHAPES)
def test_geometries_that_are_missing_empty_or_no_points_are_refused_or_dropped(form, words, shape, tmp_path):
    geometry = gpd.points_from_xy(X, Y).to_numpy().copy()
    geometry[1] = shape
    source = stored(frame(geometry=geometry), form, tmp_path)
    assert words in refusal(source)
    assert left_out(source) == (3, 1)


@pytest.mark.parametrize("form", ["geojson", "gpkg", "zip", "parquet"])
@pytest.mark.parametrize("wkt", ["POLYGON ((0 0, 1 0, 1 1, 0 0))", "MULTIPOINT ((1 1))"])
def test_files_without_a_point_are_refused(form, wkt, tmp_path):
    source = stored(frame(geometry=np.full(4, shapely.from_wkt(wkt))), form, tmp_path)
    for bad_rows in ("refuse", "drop"):
        assert "not points" in refusal(source, bad_rows=bad_rows)


COORDINATES = [{"coordinates": value} for value in ([], ["zq", 1], {"zq": 1})]


@pytest.mark.parametrize("geometry", [None, "zq", 5, *({"type": "Point"} | each for each in ({}, *COORDINATES))])
def test_malformed_points_in_geojson_are_bad_rows(geometry):
    source = collection(feature(None), {**feature(None), "geometry": geometry}, "zq")
    assert "geometry is missing" in refusal(source)
    assert left_out(source) == (1, 2)


def test_geojson_cells_of_any_kind_are_bad_rows():
    cells = [1, "2", None, True, [1], {"a": 1}, 1.5, "zq", -1]
    source = collection(*(feature({"n": cell, "who": str(number)}) for number, cell in enumerate(cells)))
    assert "'n'" in refusal(source, count="n")
    assert left_out(source, count="n") == (3, 7)
    assert left_out(source, person="n") == (7, 2)  # True is 1, as in every other format


@pytest.mark.parametrize(("ids", "people"), [([7, 7.0, "7", True, 1], 2), ([float("nan"), None, "nan"], 1), ([2**60, 2.0**60], 1)])
def test_a_person_of_geojson_is_one_however_the_id_is_written(ids, people):
    """A column of whole numbers is written with decimals where someone else's id is missing: that may not make two people of one."""
    assert left_out(collection(*(feature({"who": each}) for each in ids)), person="who")[0] == people


def test_a_feature_that_writes_a_name_in_other_letters_makes_it_ambiguous_for_no_other():
    source = collection(*(feature({name: "a"}) for name in ("who", "who", "Who")), feature({"who": "b", "Who": "a"}))
    assert [left_out(source, person=name, contributions=9) for name in ("who", "WHO")] == [(4, 0)] * 2
    assert people_of(source) == ["a", "a", "a", "b"]


CURVE = struct.pack("<BII6d", 1, 8, 3, 0, 0, 1, 1, 2, 0)  # a CircularString, for which shapely raises an error


@pytest.mark.parametrize("damaged", [b"zq", CURVE], ids=["damaged", "a curve"])
@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_damaged_geometries_and_curves_in_parquet_are_bad_rows(damaged, engine, tmp_path):
    table = pq.read_table(stored(frame(), "parquet", tmp_path))
    wkb = table["geometry"].to_pylist()
    wkb[2] = damaged
    (tmp_path / "a.parquet").write_bytes(parquet(geometry=wkb, metadata=table.schema.metadata))
    assert "geometry is missing" in refusal(tmp_path / "a.parquet", engine=engine)
    assert left_out(tmp_path / "a.parquet", engine=engine) == (3, 1)


def test_a_curve_in_a_geopackage_is_a_bad_row(tmp_path):
    stored(frame(geometry=gpd.points_from_xy(X, Y)), "gpkg", tmp_path, geometry_type="Unknown", SPATIAL_INDEX="NO")
    path = next(tmp_path.glob("*.gpkg"))
    with closing(sqlite3.connect(path)) as db, db:
        table, column = db.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchone()
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f'DROP TRIGGER "{name}"')
        db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = 3', (b"GP\x00\x01" + struct.pack("<i", 4326) + CURVE,))  # noqa: S608
    assert left_out(path) == (3, 1)


def test_heights_alone_and_geocentric_coordinates_are_no_places_on_a_map():
    for crs in ("EPSG:5703", "EPSG:4978"):
        for bad_rows in ("refuse", "drop"):
            assert "no positions on a map" in refusal(text("x,y\n1,2\n"), crs=crs, bad_rows=bad_rows)
    for crs in ("EPSG:9518", "EPSG:4979"):  # heights beside a place
        assert read_points(text("x,y\n10,50\n"), domain=WORLD, crs=crs).count.sum() == 1


def test_rows_of_a_file_print_no_private_number():
    rows = RawPoints(x=np.array([7.1]), y=np.array([7.1]), count=np.array([7.0]), person=find_people(["7"]), ragged=7)
    assert "7" not in repr(rows)


def undecodable(form, folder):
    """A file of people with letters beyond ASCII; in one more row the name is no text of the declared encoding."""
    people = frame(who=["ä", "é", "ä", "é", "zzz"], geometry=gpd.points_from_xy(range(5), range(5)))
    if form == "zip":
        parts = files.shapefile(people, folder, encoding="UTF-8")
        return upload(files.zipped({name: content.replace(b"zzz", b"\xffzz") for name, content in parts.items()}), "people.zip")
    return upload(stored(people, form, folder).getvalue().replace(b"zzz", b"\xffzz"), "people.gpkg")


def people_of(source):
    rows = read_rows(source, PointsRequest(target=None, columns=PointColumns(person="who"), bad_rows="drop"))
    return [rows.person.distinct[code] if code >= 0 else None for code in rows.person.codes]


@pytest.mark.parametrize("form", ["gpkg", "zip"])
def test_one_text_that_cannot_be_decoded_leaves_the_others_as_they_are(form, tmp_path):
    source = undecodable(form, tmp_path)
    assert people_of(source) == ["ä", "é", "ä", "é", None]
    assert "encoding" in refusal(source, domain=PLANE, person="who")
    assert left_out(source, domain=PLANE) == (5, 0)


def test_a_missing_id_leaves_the_others_as_they_are(tmp_path):
    """Whole numbers do not become floats, which would make two people one."""
    source = stored(frame(who=pd.array([2**60, 2**60 + 1, None, None], "Int64")), "gpkg", tmp_path)
    assert people_of(source) == [2**60, 2**60 + 1, None, None]


POINT = '"type": "Feature", "geometry": {"type": "Point", "coordinates": [1.5, 2.5]}'
DEEP = ["[" * 5000 + "]" * 5000, '{"a":' * 5000 + "[]" + "}" * 5000]
UNREAD = [*(f'{{"who": "b", "note": {deep}}}' for deep in DEEP), *(f'{{"who": "b", "note": "zq{sign}"}}' for sign in "\x00\x01\n")]
UNREAD += [json.dumps({"who": "b"} | {f"n{place}": 0 for place in range(1500)})]


@pytest.mark.parametrize("properties", UNREAD, ids=["lists", "records", "nul", "control", "line end", "many names"])
@pytest.mark.parametrize("bad_rows", ["refuse", "drop"])
def test_other_properties_of_geojson_do_no_harm(properties, bad_rows):
    features = ", ".join(f'{{{POINT}, "properties": {each}}}' for each in ('{"who": "a"}', properties))
    source = text(f'{{"type": "FeatureCollection", "features": [{features}]}}', "p.geojson")
    points = read_points(source, domain=PLANE, crs=None, person="who", bad_rows=bad_rows)
    assert (points.count.tolist(), points.dropped) == ([2], 0)


@pytest.mark.parametrize("value", ['"]"', r'"\\"', r'"\""', r'"\\\"[{"', '"["', "{}", "1, [2], 3"])
def test_what_is_nested_deeper_than_a_hundred_is_zero(value):
    def nested(depth, inner):
        return f'{{"a": {"[" * depth}{inner}{"]" * depth}, "b": [1]}}'.encode()

    assert flatten_json(nested(98, value)) == nested(98, value)
    assert json.loads(flatten_json(nested(120, value))) == json.loads(nested(99, 0))
