"""Each format, each rule about the CRS, each refusal with its own message."""

import io
import json
import os
import sqlite3
import struct
import zipfile
from contextlib import nullcontext
from decimal import Decimal

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

from dpviz.data.load import Limits, PointsFile, inspect_points, read_points
from dpviz.errors import InputError, SettingError
from dpviz.space.domain import Domain

WORLD = Domain(bounds=(-180.0, -90.0, 180.0, 90.0), crs="EPSG:4326", order=4)
PLANE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
X, Y = [10.0, 10.1, -70.5, 151.2], [50.0, 50.1, 42.25, -33.9]
USER, N = ["a", "007", "7", "7"], [1, 2, 0, 4]
TABLES = ("csv", "tsv", "plain")
GEOMETRIES = ("geojson", "gpkg", "parquet", "geoarrow", "zip")
NAMES = {"plain": "parquet", "geoarrow": "geoparquet"}


def upload(data, name):
    file = io.BytesIO(data)
    file.name = name
    return file


def text(content, name="points.csv"):
    return upload(content.encode(), name)


def frame(crs="EPSG:4326", geometry=None, **columns):
    geometry = gpd.points_from_xy(X, Y) if geometry is None else geometry
    return gpd.GeoDataFrame(columns or {"user": USER, "n": N}, geometry=geometry, crs=crs)


def zipped(members, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def shapefile(points, folder, stem="points"):
    """Name -> bytes of the parts of a Shapefile."""
    pyogrio.write_dataframe(points, folder / f"{stem}.shp")
    return {path.name: path.read_bytes() for path in sorted(folder.glob(f"{stem}.*"))}


def stored(points, form, folder):
    """An upload of a GeoDataFrame in one of the forms."""
    table = pd.DataFrame(points.drop(columns="geometry")).assign(lon=points.geometry.x, lat=points.geometry.y)
    buffer = io.BytesIO()
    if form == "csv":
        table.to_csv(buffer, index=False)
    elif form == "tsv":
        table.to_csv(buffer, index=False, sep="\t")
    elif form == "plain":
        table.to_parquet(buffer)
    elif form == "parquet":
        points.to_parquet(buffer)
    elif form == "geoarrow":
        points.to_parquet(buffer, geometry_encoding="geoarrow")
    elif form == "zip":
        buffer.write(zipped(shapefile(points, folder)))
    else:
        pyogrio.write_dataframe(points, folder / f"points.{form}", layer="points")
        buffer.write((folder / f"points.{form}").read_bytes())
    return upload(buffer.getvalue(), f"points.{NAMES.get(form, form)}")


def declared(form):
    return None if form in GEOMETRIES else "EPSG:4326"


def refusal(source, domain=WORLD, **options):
    """The text of the refusal; no private word or number of these tests may be in it, nor in what hangs on it."""
    with pytest.raises(InputError) as caught:
        read_points(source, domain=domain, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "zq" not in repr(caught.value)
    return str(caught.value)


def left_out(source, domain=WORLD, **options):
    points = read_points(source, domain=domain, bad_rows="drop", **options)
    return int(points.count.sum()), points.dropped


# Formats


@pytest.mark.parametrize("form", [*TABLES, *GEOMETRIES])
def test_every_format_is_read(form, tmp_path):
    source = stored(frame(), form, tmp_path)
    points = read_points(source, domain=WORLD, crs=declared(form))
    assert (points.count.sum(), points.dropped, points.unit) == (4, 0, "record")
    assert points.count.tolist() == [1, 1, 2]
    counted = read_points(source, domain=WORLD, crs=declared(form), count="N")
    assert counted.count.tolist() == [4, 3]


@pytest.mark.parametrize("form", [*TABLES, *GEOMETRIES])
def test_persons_are_bounded_and_their_ids_stay_text(form, tmp_path):
    source = stored(frame(user=["7", "7", "007", "007"]), form, tmp_path)
    for most, kept in ((1, 2), (2, 4), (3, 4)):
        points = read_points(source, domain=WORLD, crs=declared(form), person="user", contributions=most, key=b"k")
        assert (points.count.sum(), points.unit, points.contributions) == (kept, "person", most)


@pytest.mark.parametrize("form", [*TABLES, *GEOMETRIES])
def test_paths_of_any_kind_are_read(form, tmp_path):
    path = tmp_path / "Some Folder & more!" / f"points.{NAMES.get(form, form).upper()}"
    path.parent.mkdir()
    path.write_bytes(stored(frame(), form, tmp_path).getvalue())
    for source in (path, str(path)):
        assert read_points(source, domain=WORLD, crs=declared(form)).count.sum() == 4
    with path.open("rb") as file:
        assert read_points(file, domain=WORLD, crs=declared(form)).count.sum() == 4


@pytest.mark.parametrize("form", [*TABLES, *GEOMETRIES])
def test_a_file_says_what_it_is(form, tmp_path):
    facts = inspect_points(stored(frame(person_id=USER, n=N), form, tmp_path))
    table = form in TABLES
    assert (facts.x, facts.y) == (("lon", "lat") if table else (None, None))
    assert (facts.count, facts.person, facts.has_geometry, facts.needs_crs) == ("n", "person_id", not table, table)
    assert {"person_id", "n"} <= set(facts.columns)
    assert facts.rows == (None if form in ("csv", "tsv") else 4)
    assert "4" not in repr(facts).replace("EPSG:4326", "").replace("CRS84", "")


def test_several_candidates_are_left_to_the_curator():
    facts = inspect_points(text("lon,x,LAT,count,n,user,uid\n"))
    assert facts == PointsFile(
        format="CSV",
        columns=("lon", "x", "LAT", "count", "n", "user", "uid"),
        has_geometry=False,
        x=None,
        y="LAT",
        count=None,
        person=None,
        crs=None,
        rows=None,
    )


def test_a_first_line_of_data_is_not_shown_as_names():
    with pytest.raises(InputError, match="first line") as caught:
        inspect_points(text("12.5,zq\n13.5,zq\n"))
    assert "zq" not in str(caught.value)


@pytest.mark.parametrize("name", ["lon", "LNG", " Long ", "Longitude", "x", "EASTING"])
def test_columns_are_found_by_name_in_any_case(name):
    assert read_points(text(f"{name},Northing\n1,2\n"), domain=PLANE).count.sum() == 1


@pytest.mark.parametrize(
    "content",
    [
        "lon,lat\n1,2\n",
        "lon,lat\r\n1,2\r\n",
        "lon,lat\n1,2",
        "\ufefflon,lat\n1,2\n",
        "\n\nlon,lat\n1,2\n\n",
        '"lon","lat"\n"1","2"\n',
        'lon,lat,"a\nb"\n1,2,"c\nd"\n',
    ],
)
def test_ordinary_ways_to_write_csv(content):
    points = read_points(text(content), domain=PLANE)
    assert (points.column.tolist(), points.row.tolist()) == ([1], [2])


def test_spaces_around_numbers_do_not_matter():
    assert read_points(text("lon, lat\n 1 , 2.0\n"), domain=PLANE).count.tolist() == [1]


def test_long_cells_that_nobody_asked_for_do_not_matter():
    assert read_points(text(f"lon,lat,note\n1,2,{'long ' * 700_000}\n3,4,short\n"), domain=PLANE).count.sum() == 2


@pytest.mark.parametrize("content", ["lon,lat\n", "lon,lat", "lon,lat\n\n", "\ufefflon,lat\r\n"])
def test_a_header_without_rows_is_a_file_without_records(content):
    points = read_points(text(content), domain=PLANE)
    assert (len(points.count), points.dropped) == (0, 0)


@pytest.mark.parametrize("form", ["csv", "tsv", "plain", "geojson", "gpkg", "parquet", "zip"])
def test_files_without_rows_have_no_records(form, tmp_path):
    if form == "zip":  # written by hand: a GeoDataFrame without rows does not say that it would have held points
        source = upload(zipped(without_rows(shapefile(frame(), tmp_path))), "points.zip")
    else:
        source = stored(frame().iloc[:0], form, tmp_path)
    points = read_points(source, domain=WORLD, crs=declared(form), person="user", count="n")
    assert (len(points.count), points.dropped) == (0, 0)


def without_rows(parts):
    header = lambda data: data[:24] + struct.pack(">i", 50) + data[28:100]  # noqa: E731
    table = parts["points.dbf"]
    size = struct.unpack("<H", table[8:10])[0]
    empty = {
        "points.dbf": table[:4] + bytes(4) + table[8:size],
        "points.shp": header(parts["points.shp"]),
        "points.shx": header(parts["points.shx"]),
    }
    return parts | empty


def test_a_parquet_file_with_geometry_can_be_read_by_its_columns(tmp_path):
    source = stored(frame(lon=X, lat=Y), "parquet", tmp_path)
    assert read_points(source, domain=WORLD, x="lon", y="lat", crs="EPSG:4326").count.sum() == 4
    assert "CRS" in refusal(source, x="lon", y="lat")


def test_parquet_numbers_of_every_kind_are_numbers():
    table = pa.table(
        {
            "x": pa.array([1, 2], pa.int8()),
            "y": pa.array(["1.5", "2.5"]).dictionary_encode(),
            "n": pa.array([Decimal(1), Decimal(2)], pa.decimal128(5, 1)),
            "user": pa.array(["a", "a"]).dictionary_encode(),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    points = read_points(upload(buffer.getvalue(), "t.parquet"), domain=PLANE, count="n", person="user", contributions=3)
    assert points.count.sum() == 3


def test_geojson_features_alone_and_in_three_dimensions():
    feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2.5, 99]}, "properties": {"user": 7, "type": "Feature"}}
    assert read_points(text(json.dumps(feature), "one.json"), domain=WORLD).count.sum() == 1
    several = {
        "type": "FeatureCollection",
        "features": [feature, {**feature, "properties": {"user": "7"}}, {**feature, "properties": {"user": "8"}}],
    }
    assert read_points(text(json.dumps(several), "a.geojson"), domain=WORLD, person="USER").count.sum() == 2


# CRS


@pytest.mark.parametrize("form", TABLES)
def test_tables_ask_for_a_crs_unless_the_domain_is_a_plane(form, tmp_path):
    source = stored(frame(), form, tmp_path)
    assert "crs=" in refusal(source)
    assert left_out(source, domain=Domain(bounds=(-200, -200, 200, 200), crs=None)) == (4, 0)
    assert "plain plane" in refusal(source, domain=PLANE, crs="EPSG:4326")


@pytest.mark.parametrize("form", ["gpkg", "zip", "parquet"])
def test_geometries_without_a_crs_ask_for_one(form, tmp_path):
    with nullcontext() if form == "parquet" else pytest.warns(UserWarning, match="crs"):
        source = stored(frame(crs=None), form, tmp_path)
    assert inspect_points(source).needs_crs
    assert "never guessed" in refusal(source)
    assert read_points(source, domain=WORLD, crs=4326).count.sum() == 4


def test_geoparquet_without_the_crs_key_is_in_longitude_and_latitude(tmp_path):
    table = pq.read_table(stored(frame(), "parquet", tmp_path))
    geo = json.loads(table.schema.metadata[b"geo"])
    del geo["columns"]["geometry"]["crs"]
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({b"geo": json.dumps(geo).encode()}), buffer)
    source = upload(buffer.getvalue(), "a.parquet")
    assert inspect_points(source).crs == "OGC:CRS84"
    assert read_points(source, domain=WORLD).count.sum() == 4


@pytest.mark.parametrize("form", ["gpkg", "zip", "parquet"])
def test_declared_crs_is_used_and_must_not_be_contradicted(form, tmp_path):
    domain = Domain(bounds=(-180.0, -80.0, 180.0, 80.0), crs="EPSG:4326", order=6)
    expected = read_points(stored(frame(), "geojson", tmp_path), domain=domain)
    source = stored(frame().to_crs("EPSG:3857"), form, tmp_path)
    for crs in (None, "EPSG:3857"):
        points = read_points(source, domain=domain, crs=crs)
        assert (points.column.tolist(), points.row.tolist()) == (expected.column.tolist(), expected.row.tolist())
    assert "another CRS" in refusal(source, domain=domain, crs="EPSG:4326")


@pytest.mark.parametrize("crs", ["EPSG:4326", "OGC:CRS84", 4326])
def test_the_same_crs_by_another_name_is_no_contradiction(crs, tmp_path):
    assert read_points(stored(frame(), "geojson", tmp_path), domain=WORLD, crs=crs).count.sum() == 4


def test_an_unknown_crs_is_refused():
    assert "not known" in refusal(text("lon,lat\n1,2\n"), crs="EPSG:zq")


def test_tables_are_reprojected_to_the_domain():
    domain = Domain(bounds=(-2.1e7, -2.1e7, 2.1e7, 2.1e7), crs="EPSG:3857", order=1)
    points = read_points(text("lat,lon\n40,-100\n-30,100\n"), domain=domain, crs="EPSG:4326")
    assert list(zip(points.column, points.row, strict=True)) == [(1, 0), (0, 1)]


def test_places_that_cannot_be_reprojected_lie_outside():
    domain = Domain(bounds=(-1e6, -1e6, 1e6, 1e6), crs="EPSG:3857", order=1)
    points = read_points(text("lat,lon\n1,1\n90,0\n120,170\n"), domain=domain, crs="EPSG:4326")
    assert (points.count.sum(), points.dropped) == (1, 2)


def test_old_geojson_may_declare_a_crs_but_never_a_link():
    content = {"type": "FeatureCollection", "features": []}
    named = {**content, "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}}
    assert inspect_points(text(json.dumps(named), "a.geojson")).crs == "EPSG:25832"
    link = {**content, "crs": {"type": "link", "properties": {"href": "http://127.0.0.1:9/zq"}}}
    assert "never followed" in refusal(text(json.dumps(link), "a.geojson"))
    unknown = {**content, "crs": {"type": "name", "properties": {"name": "zq"}}}
    assert "no known CRS" in refusal(text(json.dumps(unknown), "a.geojson"))


def test_swapped_columns_are_suspected_under_refuse_only():
    source = text("lon,lat\n40.1,-100.5\n30.2,-97.7\n")
    assert "swapped" in refusal(source, crs="EPSG:4326")
    assert left_out(source, crs="EPSG:4326") == (0, 2)
    assert read_points(source, domain=WORLD, x="lat", y="lon", crs="EPSG:4326").count.sum() == 2


# Columns


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
        ("c,C,lat", {"x": " c "}, ["Several columns answer"]),
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


# Rows


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


@pytest.mark.parametrize("cell", ["-3", "18014398509481984"])
def test_counts_below_zero_or_beyond_reason_are_refused_or_dropped(cell):
    source = text(f"lon,lat,n\n1,2,1\n1,2,{cell}\n")
    assert "negative or too large" in refusal(source, domain=PLANE, count="n")
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
    assert "cells" in refusal(source, domain=PLANE)
    kept, dropped = left_out(source, domain=PLANE)
    assert kept >= 1
    assert dropped >= 1


def test_text_in_another_encoding_is_refused_or_its_rows_dropped():
    source = upload("lon,lat,who\n1,2,a\n1,2,zqé\nzqé,2,b\n".encode("latin-1"), "a.csv")
    assert "UTF-8" in refusal(source, domain=PLANE, person="who")
    assert left_out(source, domain=PLANE, person="who") == (2, 1)
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
    cells = [1, "2", None, True, [1], {"a": 1}, 1.5, "zq", -1, 10**30]
    features = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"n": cell, "who": str(i)}}
        for i, cell in enumerate(cells)
    ]
    source = text(json.dumps({"type": "FeatureCollection", "features": features}), "a.json")
    assert "'n'" in refusal(source, count="n")
    assert left_out(source, count="n") == (3, 8)
    assert left_out(source, person="n") == (9, 1)


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


# Files


@pytest.mark.parametrize(
    "name",
    [
        "http://zq/a.csv",
        "https://zq/a.geojson",
        "ftp://zq/a.csv",
        "s3://zq/a.parquet",
        "file:///zq/a.csv",
        "/vsicurl/http://zq/a.gpkg",
        "/vsizip/zq.zip/a.csv",
        "zip://zq.zip!a.shp",
    ],
)
def test_urls_and_virtual_paths_are_never_opened(name):
    assert "URLs" in refusal(name)
    assert "URLs" in refusal(upload(b"lon,lat\n", name))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("zq.csv.gz", "Compressed"),
        ("zq.7z", "Compressed"),
        ("zq.shp", "one .zip"),
        ("zq.xlsx", "must be one of .csv"),
        ("zq", "must be one of .csv"),
        ("zq.csv", "cannot be read"),
        ("zq\0.csv", "cannot be read"),
    ],
)
def test_files_that_cannot_be_opened(name, words, tmp_path):
    assert words in refusal(str(tmp_path / name))


@pytest.mark.parametrize("source", [b"zq.csv", None, 7, io.BytesIO(b"lon,lat\n1,2"), upload(b"", 3)])
def test_sources_without_a_name_are_refused(source):
    assert "has a name" in refusal(source)


def test_folders_devices_empty_and_text_files_are_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    assert "not a file" in refusal(tmp_path / "folder.csv")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
        assert "not a file" in refusal(tmp_path / "pipe.csv")
    (tmp_path / "empty.csv").touch()
    assert "empty" in refusal(tmp_path / "empty.csv")
    assert "empty" in refusal(text("\n\n\n"))
    (tmp_path / "a.csv").write_text("lon,lat\n1,2\n")
    with (tmp_path / "a.csv").open() as file:
        assert "binary" in refusal(file)


@pytest.mark.parametrize("name", ["a.gpkg", "a.parquet", "a.zip", "a.json"])
def test_content_of_another_format_is_refused(name):
    for content in ("zq,lat\n1,2\n", '<OGRVRTDataSource><OGRVRTLayer name="zq"/></OGRVRTDataSource>'):
        assert "cannot be read as" in refusal(text(content, name)) or "not a GeoPackage" in refusal(text(content, name))


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[]",
        "7",
        '{"type": "Topology"}',
        '{"type": "FeatureCollection"}',
        '{"type": "gdal_streamed_alg", "command_line": "zq"}',
        "[" * 100_000,
    ],
)
def test_json_that_is_no_collection_of_features_is_refused(content):
    assert "GeoJSON" in refusal(text(content, "a.json"))


@pytest.mark.parametrize("form", [*GEOMETRIES, "plain"])
def test_files_cut_short_are_refused(form, tmp_path):
    whole = stored(frame(), form, tmp_path)
    data = whole.getvalue()
    for end in (5, len(data) // 2, len(data) - 5):
        refusal(upload(data[:end], whole.name))


def test_a_geopackage_of_views_or_of_several_layers_is_refused(tmp_path):
    path = tmp_path / "a.gpkg"
    pyogrio.write_dataframe(frame(), path, layer="one")
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE gpkg_contents RENAME TO kept")
        database.execute("CREATE VIEW gpkg_contents AS SELECT * FROM kept")
    database.close()
    assert "view" in refusal(path)
    pyogrio.write_dataframe(frame(), tmp_path / "b.gpkg", layer="one")
    pyogrio.write_dataframe(frame(), tmp_path / "b.gpkg", layer="two", append=True)
    assert "several layers" in refusal(tmp_path / "b.gpkg")


# Limits and archives


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_limits_are_whole_numbers(value):
    with pytest.raises(SettingError, match="rows"):
        Limits(rows=value)


@pytest.mark.parametrize("form", [*TABLES, *GEOMETRIES])
def test_files_over_a_limit_are_refused(form, tmp_path):
    source = stored(frame(), form, tmp_path)
    size = len(source.getvalue())
    assert "bytes" in refusal(source, limits=Limits(file_bytes=size - 1))
    (tmp_path / source.name).write_bytes(source.getvalue())
    assert "bytes" in refusal(tmp_path / source.name, limits=Limits(file_bytes=size - 1))
    assert "rows" in refusal(source, limits=Limits(rows=3), crs=declared(form))
    assert "columns" in refusal(source, limits=Limits(columns=1), crs=declared(form))
    exact = Limits(file_bytes=size, rows=4, columns=4)
    assert read_points(source, domain=WORLD, crs=declared(form), limits=exact).count.sum() == 4


def test_rows_are_counted_whatever_ends_them():
    assert "rows" in refusal(text("lon,lat\r" + "1,2\r" * 5), domain=PLANE, limits=Limits(rows=4))


def test_parquet_that_unpacks_to_too_much_is_refused():
    buffer = io.BytesIO()
    pq.write_table(pa.table({"x": np.zeros(1_000_000), "y": np.zeros(1_000_000)}), buffer, compression="zstd")
    source = upload(buffer.getvalue(), "a.parquet")
    assert len(buffer.getvalue()) < 100_000
    assert "unpacks" in refusal(source, domain=PLANE, limits=Limits(unpacked_bytes=1_000_000))


@pytest.fixture
def parts(tmp_path):
    return shapefile(frame(), tmp_path)


def archive(members, name="a.zip", **options):
    return upload(zipped(members, **options), name)


def test_an_archive_may_have_folders_and_litter(parts):
    members = {f"Some Földer/{name.upper()}": data for name, data in parts.items()}
    members |= {"readme.txt": b"zq", "__MACOSX/Some Folder/._POINTS.SHP": b"zq", "._x.shp": b"zq"}
    assert read_points(archive(members), domain=WORLD).count.sum() == 4


@pytest.mark.parametrize("missing", [".dbf", ".cpg"])
def test_a_shapefile_needs_neither_table_nor_code_page(parts, missing):
    kept = {name: data for name, data in parts.items() if not name.endswith(missing)}
    assert read_points(archive(kept), domain=WORLD).count.sum() == 4


@pytest.mark.parametrize("path", ["../points.txt", "/etc/zq", "a/../../zq", "..\\zq", "C:\\zq", "zq/../points.dbf"])
def test_paths_out_of_an_archive_are_refused(parts, path):
    assert "leads out" in refusal(archive({**parts, path: b"zq"}))


def test_archives_of_nothing_several_or_other_archives_are_refused(parts, tmp_path):
    assert "no Shapefile" in refusal(archive({"zq.csv": b"lon,lat\n1,2\n"}))
    assert "no Shapefile" in refusal(archive({}))
    assert "several" in refusal(archive({**parts, **shapefile(frame(), tmp_path, "zq")}))
    assert "another archive" in refusal(archive({**parts, "zq.zip": zipped(parts)}))
    assert ".shx" in refusal(archive({name: data for name, data in parts.items() if not name.endswith(".shx")}))


def test_a_zip_bomb_is_refused_before_it_is_unpacked(parts):
    bomb = archive({**parts, "points.dbf": b"\0" * 50_000_000})
    assert len(bomb.getvalue()) < 100_000
    assert "times its size" in refusal(bomb)
    assert "unpacks to more" in refusal(bomb, limits=Limits(unpacked_bytes=1_000_000, expansion=10_000))


def test_a_zip_that_understates_its_sizes_is_refused(parts):
    honest = zipped({**parts, "points.dbf": b"\0" * 50_000_000})
    lying = honest.replace(struct.pack("<I", 50_000_000), struct.pack("<I", 100))
    assert lying != honest
    assert "cannot be read" in refusal(upload(lying, "a.zip"))


def test_too_many_members_are_refused(parts):
    assert "members" in refusal(archive({**parts, **{f"{n}.txt": b"" for n in range(80)}}))


def test_encrypted_and_unusual_archives_are_refused(parts):
    plain = zipped(parts)
    locked = bytearray(plain)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = plain.find(signature)
        while place >= 0:
            locked[place + offset] |= 1
            place = plain.find(signature, place + 4)
    assert "encrypted" in refusal(upload(bytes(locked), "a.zip"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as target:
        for name, content in parts.items():
            target.writestr(name, content)
    assert "deflate" in refusal(upload(buffer.getvalue(), "a.zip"))


def test_nothing_is_written_to_disk(parts, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP", "CPL_TMPDIR"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.chdir(folder)
    source = stored(frame(), "gpkg", tmp_path)
    read_points(source, domain=WORLD)
    read_points(archive(parts), domain=WORLD)
    assert list(folder.iterdir()) == []
