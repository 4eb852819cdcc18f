"""Files that cannot be opened, limits and archives."""

import io
import os
import sqlite3
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest

from dpviz.data.counting.files import read_points
from dpviz.data.reading.points import Limits
from dpviz.errors import SettingError
from tests.data.reading.files import GEOMETRIES, PLANE, TABLES, WORLD, declared, frame, refusal, shapefile, stored, text, upload, zipped


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
    assert "holds no Parquet file" in refusal(tmp_path / "folder.csv")
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


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'layer' || max(i) AS table_name FROM n"


def test_a_geopackage_whose_list_of_layers_never_ends_is_refused_unread(tmp_path):
    path = tmp_path / "a.gpkg"
    pyogrio.write_dataframe(frame(), path, layer="one")
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE gpkg_geometry_columns")
        database.execute(f"CREATE VIEW GPKG_geometry_columns AS {ENDLESS}")
    database.close()
    assert "view" in refusal(path)


def test_a_query_that_runs_away_is_cut_short(tmp_path, monkeypatch):
    path = tmp_path / "a.gpkg"
    pyogrio.write_dataframe(frame(), path, layer="one")
    with sqlite3.connect(path) as database:
        database.executemany("INSERT INTO gpkg_contents (table_name, data_type) VALUES (?, 'features')", [(f"t{i}",) for i in range(2000)])
        database.execute(
            "INSERT INTO gpkg_geometry_columns SELECT table_name, 'geom', 'POINT', 4326, 0, 0 FROM gpkg_contents WHERE table_name != 'one'"
        )
    database.close()
    assert read_points(path, domain=WORLD).count.sum() == 4
    monkeypatch.setattr("dpviz.data.reading.safety._MOST_STEPS", 3)
    assert "damaged" in refusal(path)


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
    assert "bytes" in refusal(tmp_path / source.name, limits=Limits(file_bytes=size - 1), engine="numpy")
    assert "rows" in refusal(source, limits=Limits(rows=3), crs=declared(form))
    if form != "geojson":  # whose features each have names of their own: one must not decide
        assert "columns" in refusal(source, limits=Limits(columns=1), crs=declared(form))
    exact = Limits(file_bytes=size, rows=4, columns=4)
    assert read_points(source, domain=WORLD, crs=declared(form), limits=exact).count.sum() == 4


def test_rows_end_in_line_feeds():
    assert "rows" in refusal(text("lon,lat\r\n" + "1,2\r\n" * 5), domain=PLANE, limits=Limits(rows=4))
    assert "carriage returns alone" in refusal(text("lon,lat\r" + "1,2\r" * 5), domain=PLANE)


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
