"""Columns and rows: what is found, asked for, refused or dropped, and never quoted."""

import io
import json
import sqlite3
import zipfile
from contextlib import closing

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

from dpviz.data.bounding import find_people
from dpviz.data.columns import PointColumns, RawPoints
from dpviz.data.counting.files import read_points
from dpviz.data.reading.points import PointsRequest, read_rows
from tests.data.reading.files import PLANE, WORLD, X, Y, frame, left_out, refusal, shapefile, stored, text, upload, zipped


@pytest.mark.parametrize(
    ("header", "options", "words"),
    [
        ("lon,x,lat", {}, ["'lon'", "'x'", "x='...'"]),
        ("lon,LAT,latitude", {}, ["'LAT'", "'latitude'", "y='...'"]),
        ("lon,lon,lat", {}, ["x='...'"]),
        ("zq1,lat,c", {}, ["No column for x"]),
        ("lon,zq2,c", {}, ["No column for y"]),
        ("lon,lat,c", {"x": "easting"}, ["no column named 'easting'"]),
        ("lon,lat,c", {"person": "who"}, ["no column named 'who'"]),
        ("lon,lat,c", {"count": "people"}, ["no column named 'people'"]),
        ("lon,lat,c", {"x": "lon", "y": "Lon"}, ["the same column"]),
        ("c,C,lat", {"x": " c "}, ["Several columns have the name"]),
        ("lon;lat;zq", {}, ["commas"]),
    ],
)
def test_columns_that_cannot_be_told_are_asked_for(header, options, words):
    message = refusal(text(f"{header}\n1,2,3\n"), domain=PLANE, **options)
    assert all(word in message for word in words)


def test_a_count_is_never_applied_unasked():
    assert read_points(text("lon,lat,count\n1,2,50\n"), domain=PLANE).count.tolist() == [1]


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


def test_fractional_counts_are_weights():
    all_fractions, one = text("lon,lat,n\n1,2,1.5\n2,2,2.5\n"), text("lon,lat,n\n1,2,1.5\n2,2,2.0\n")
    for source in (all_fractions, one):
        assert "Survey weights are refused" in refusal(source, domain=PLANE, count="n")
    assert "Survey weights are refused" in refusal(all_fractions, domain=PLANE, count="n", bad_rows="drop")
    assert left_out(one, domain=PLANE, count="n") == (2, 1)


@pytest.mark.parametrize("column", ["lon", "lat", "n"])
@pytest.mark.parametrize("cells", [("zq", "zq"), ("1.234,5", "1,5"), ("12\u00b030'", "13\u00b0"), ("1 000,5", "")])
def test_a_column_without_a_number_is_refused(column, cells):
    rows = pd.DataFrame({"lon": [1, 2], "lat": [1, 2], "n": [1, 2]}).assign(**{column: cells})
    for bad_rows in ("refuse", "drop"):
        message = refusal(text(rows.to_csv(index=False)), domain=PLANE, count="n", bad_rows=bad_rows)
        assert f"{column!r} holds no number" in message
        assert "thousands" in message


@pytest.mark.parametrize("kind", [pa.bool_(), pa.timestamp("s"), pa.list_(pa.int64())])
def test_parquet_columns_of_another_kind_hold_no_number(kind):
    buffer = io.BytesIO()
    pq.write_table(pa.table({"x": pa.nulls(2, kind) if kind == pa.list_(pa.int64()) else pa.array([0, 1]).cast(kind), "y": [1, 2]}), buffer)
    assert "holds no number" in refusal(upload(buffer.getvalue(), "a.parquet"), domain=PLANE)


BAD_CELLS = {
    "text": "zqtext",
    "blank": "",
    "nan": "NaN",
    "infinite": "inf",
    "negative infinite": "-inf",
    "comma": '"1,5"',
    "too large": "1e999",
}


@pytest.mark.parametrize("cell", BAD_CELLS.values(), ids=BAD_CELLS)
@pytest.mark.parametrize("column", ["lon", "lat", "n"])
def test_bad_cells_are_refused_by_column_or_dropped(cell, column):
    rows = [{"lon": "1", "lat": "2", "n": "1"} for _ in range(3)]
    rows[1][column] = cell
    source = text("lon,lat,n\n" + "".join(",".join(row.values()) + "\n" for row in rows))
    message = refusal(source, domain=PLANE, count="n")
    assert f"Column {column!r} has a cell that is no finite number" in message
    assert not any(sign.isdigit() for sign in message)
    assert left_out(source, domain=PLANE, count="n") == (2, 1)


def test_counts_below_zero_are_refused_or_dropped():
    source = text("lon,lat,n\n1,2,1\n1,2,-3\n")
    assert "negative" in refusal(source, domain=PLANE, count="n")
    assert left_out(source, domain=PLANE, count="n") == (1, 1)


@pytest.mark.parametrize("cell", ["", "NA", "null", " "])
def test_a_missing_person_is_refused_or_dropped(cell):
    source = text(f"lon,lat,who\n1,2,a\n1,2,{cell}\n")
    assert "'who' has a missing cell" in refusal(source, domain=PLANE, person="who")
    assert left_out(source, domain=PLANE, person="who") == (1, 1)


@pytest.mark.parametrize("row", ["1", "1,2,3,zq", "1,5,2,5"])
def test_ragged_rows_are_refused_or_dropped(row):
    source = text(f"lon,lat,n\n1,2,3\n{row}\n3,4,5\n")
    assert "more or fewer cells" in refusal(source, domain=PLANE)
    assert left_out(source, domain=PLANE) == (2, 1)


def test_an_open_quote_never_stops_a_run():
    source = text('lon,lat,n\n1,2,3\n1,"zq,5\n' + "3,4,5\n" * 300_000)
    assert "not closed on its line" in refusal(source, domain=PLANE)
    assert left_out(source, domain=PLANE) == (300_001, 1)


def test_text_in_another_encoding_is_refused_or_its_rows_dropped():
    source = upload("lon,lat,who\n1,2,a\n1,2,zqé\nzqé,2,b\n".encode("latin-1"), "a.csv")
    assert "UTF-8" in refusal(source, domain=PLANE, person="who")
    assert left_out(source, domain=PLANE, person="who") == (1, 2)
    assert "UTF-8" in refusal(upload("lon,lat,zqé\n1,2,3\n".encode("latin-1"), "a.csv"), domain=PLANE)
    assert "UTF-8" in refusal(upload("lon,lat\n1,2\n".encode("utf-16"), "a.csv"), domain=PLANE)
    assert "UTF-8" in refusal(upload('{"type": "FeatureCollection", "features": [], "zq": "é"}'.encode("latin-1"), "a.json"))


@pytest.mark.parametrize("form", ["geojson", "gpkg", "zip", "parquet"])
def test_missing_geometries_are_refused_or_dropped(form, tmp_path):
    geometry = gpd.points_from_xy(X, Y).to_numpy().copy()
    geometry[1] = None
    source = stored_any(frame(geometry=geometry), form, tmp_path)
    assert "geometry is missing" in refusal(source)
    assert left_out(source) == (3, 1)


def stored_any(points, form, folder):
    """Like `stored`, for geometries without x and y."""
    buffer = io.BytesIO()
    if form == "parquet":
        points.to_parquet(buffer)
        return upload(buffer.getvalue(), "a.parquet")
    if form == "zip":
        return upload(zipped(shapefile(points, folder)), "a.zip")
    pyogrio.write_dataframe(points, folder / f"any.{form}")
    return upload((folder / f"any.{form}").read_bytes(), f"a.{form}")


@pytest.mark.parametrize("form", ["geojson", "gpkg", "parquet"])
def test_some_geometries_that_are_no_points_are_refused_or_dropped(form, tmp_path):
    geometry = gpd.points_from_xy(X, Y).to_numpy().copy()
    geometry[1] = shapely.box(0, 0, 1, 1)
    source = stored_any(frame(geometry=geometry), form, tmp_path)
    assert "Some geometries are not points" in refusal(source)
    assert left_out(source) == (3, 1)


@pytest.mark.parametrize("form", ["geojson", "gpkg", "zip", "parquet"])
@pytest.mark.parametrize("wkt", ["POLYGON ((0 0, 1 0, 1 1, 0 0))", "MULTIPOINT ((1 1))"])
def test_files_without_a_point_are_refused(form, wkt, tmp_path):
    source = stored_any(frame(geometry=np.full(4, shapely.from_wkt(wkt))), form, tmp_path)
    for bad_rows in ("refuse", "drop"):
        assert "not points" in refusal(source, bad_rows=bad_rows)


@pytest.mark.parametrize(
    "geometry",
    [
        None,
        {"type": "Point"},
        {"type": "Point", "coordinates": []},
        {"type": "Point", "coordinates": ["zq", 1]},
        {"type": "Point", "coordinates": {"zq": 1}},
        "zq",
        5,
    ],
)
def test_malformed_points_in_geojson_are_bad_rows(geometry):
    good = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": None}
    source = text(json.dumps({"type": "FeatureCollection", "features": [good, {**good, "geometry": geometry}, "zq"]}), "a.geojson")
    assert "geometry is missing" in refusal(source)
    assert left_out(source) == (1, 2)


def test_geojson_cells_of_any_kind_are_bad_rows():
    cells = [1, "2", None, True, [1], {"a": 1}, 1.5, "zq", -1]
    features = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"n": cell, "who": str(i)}}
        for i, cell in enumerate(cells)
    ]
    source = text(json.dumps({"type": "FeatureCollection", "features": features}), "a.json")
    assert "'n'" in refusal(source, count="n")
    assert left_out(source, count="n") == (3, 7)
    assert left_out(source, person="n") == (8, 1)


def test_damaged_geometries_in_parquet_are_bad_rows(tmp_path):
    table = pq.read_table(stored(frame(), "parquet", tmp_path))
    wkb = table["geometry"].to_pylist()
    wkb[2] = b"zq"
    buffer = io.BytesIO()
    pq.write_table(table.set_column(table.schema.get_field_index("geometry"), "geometry", pa.array(wkb)), buffer)
    source = upload(buffer.getvalue(), "a.parquet")
    assert "geometry is missing" in refusal(source)
    assert left_out(source) == (3, 1)


def test_the_rule_for_bad_rows_must_be_known():
    assert "bad_rows" in refusal(text("lon,lat\n1,2\n"), domain=PLANE, bad_rows="skip")


@pytest.mark.parametrize("crs", ["EPSG:5703", "EPSG:4978"])
@pytest.mark.parametrize("bad_rows", ["refuse", "drop"])
def test_heights_and_geocentric_coordinates_are_no_places_on_a_map(crs, bad_rows):
    assert "no positions on a map" in refusal(text("x,y\n1,2\n"), crs=crs, bad_rows=bad_rows)


@pytest.mark.parametrize("crs", ["EPSG:9518", "EPSG:4979", "EPSG:4326"])
def test_heights_beside_a_place_do_no_harm(crs):
    assert read_points(text("x,y\n10,50\n"), domain=WORLD, crs=crs).count.sum() == 1


def test_rows_of_a_file_print_no_private_number():
    rows = RawPoints(x=np.array([7.1]), y=np.array([7.1]), count=np.array([7.0]), person=find_people(["7"]), ragged=7)
    assert "7" not in repr(rows)


@pytest.mark.parametrize("form", ["parquet", "geoarrow", "gpkg", "geojson"])
def test_empty_points_are_left_out_like_other_bad_rows(form, tmp_path):
    shapes = [shapely.Point(1.5, 2.5), shapely.Point(), shapely.Point(3, 4)]
    assert "missing, empty or not finite" in refusal(
        stored(gpd.GeoDataFrame({"n": [1, 2, 3]}, geometry=shapes, crs="EPSG:4326"), form, tmp_path)
    )
    assert left_out(stored(gpd.GeoDataFrame({"n": [1, 2, 3]}, geometry=shapes, crs="EPSG:4326"), form, tmp_path)) == (2, 1)


def undecodable(form, tmp_path):
    """A file of people with letters beyond ASCII; in one more row the name is no text of the declared encoding."""
    who = ["ä", "é", "ä", "é", "zz"]
    people = frame(who=who, geometry=gpd.points_from_xy([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]))
    if form == "zip":
        pyogrio.write_dataframe(people, tmp_path / "people.shp", encoding="UTF-8")
        table = tmp_path / "people.dbf"
        table.write_bytes(table.read_bytes().replace(b"zz", b"\xffz"))
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for part in tmp_path.glob("people.*"):
                archive.write(part, part.name)
        return upload(target.getvalue(), "people.zip")
    pyogrio.write_dataframe(people, tmp_path / "people.gpkg")
    with closing(sqlite3.connect(tmp_path / "people.gpkg")) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        database.execute("UPDATE people SET who = CAST(X'ff7a' AS TEXT) WHERE who = 'zz'")
        database.commit()
    return upload((tmp_path / "people.gpkg").read_bytes(), "people.gpkg")


@pytest.mark.parametrize("form", ["gpkg", "zip"])
def test_one_text_that_cannot_be_decoded_leaves_the_others_as_they_are(form, tmp_path):
    source = undecodable(form, tmp_path)
    request = PointsRequest(target=None, columns=PointColumns(person="who"), bad_rows="drop")
    rows = read_rows(source, request)
    names = [*map(str, rows.person.distinct), "nobody"]
    assert [names[code] for code in rows.person.codes] == ["ä", "é", "ä", "é", "nobody"]
    assert "encoding" in refusal(source, domain=PLANE, person="who")
    assert left_out(source, domain=PLANE) == (5, 0)


def test_a_missing_id_leaves_the_others_as_they_are(tmp_path):
    """Whole numbers do not become floats, which would make two people one."""
    people = frame(who=pd.array([2**60, 2**60 + 1, 7], "Int64"), geometry=gpd.points_from_xy([1, 2, 3], [1, 2, 3]))
    pyogrio.write_dataframe(people, tmp_path / "people.gpkg")
    with closing(sqlite3.connect(tmp_path / "people.gpkg")) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        database.execute("UPDATE people SET who = NULL WHERE who = 7")
        database.commit()
    source = upload((tmp_path / "people.gpkg").read_bytes(), "people.gpkg")
    rows = read_rows(source, PointsRequest(target=None, columns=PointColumns(person="who"), bad_rows="drop"))
    assert sorted(rows.person.distinct[code] for code in rows.person.codes if code >= 0) == [2**60, 2**60 + 1]
