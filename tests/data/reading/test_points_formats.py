"""Every format is read, and coordinates end in the domain's CRS."""

import io
import json
import struct
from contextlib import nullcontext
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data.counting.files import read_points
from dpviz.data.reading.points import PointsFile, inspect_points
from dpviz.errors import InputError
from dpviz.space.domain import Domain
from tests.data.reading.files import (
    GEOMETRIES,
    NAMES,
    PLANE,
    TABLES,
    USER,
    WORLD,
    N,
    X,
    Y,
    declared,
    frame,
    left_out,
    refusal,
    shapefile,
    stored,
    text,
    upload,
    zipped,
)


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
        'lon,lat,"a,""b"""\r\n\r\n1,2,"c ""d"""\r\n',
    ],
)
def test_ordinary_ways_to_write_csv(content):
    points = read_points(text(content), domain=PLANE)
    assert (points.column.tolist(), points.row.tolist()) == ([1], [2])


def test_spaces_around_numbers_do_not_matter():
    assert read_points(text("lon, lat\n 1 , 2.0\n"), domain=PLANE).count.tolist() == [1]


def test_long_cells_of_other_columns_do_not_matter_up_to_a_mebibyte():
    assert read_points(text(f"lon,lat,note\n1,2,{'long ' * 200_000}\n3,4,short\n"), domain=PLANE).count.sum() == 2
    long = text(f"lon,lat,note\n1,2,{'long ' * 300_000}\n3,4,short\n")
    assert "longer than" in refusal(long, domain=PLANE)
    assert left_out(long, domain=PLANE) == (1, 1)


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


@pytest.mark.parametrize("form", TABLES)
def test_tables_ask_for_a_crs_unless_the_domain_is_a_plane(form, tmp_path):
    source = stored(frame(), form, tmp_path)
    assert "crs=" in refusal(source)
    assert left_out(source, domain=Domain(bounds=(-200, -200, 200, 200), crs=None)) == (4, 0)
    assert "domain has no CRS" in refusal(source, domain=PLANE, crs="EPSG:4326")


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
