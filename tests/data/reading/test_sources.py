"""Paths, globs, folders, lists and uploads: what they stand for, and files that do not go together."""

import io
import os

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data.reading.safety import Limits
from dpviz.data.reading.sources import find_files, memory_bytes
from dpviz.errors import InputError
from tests.data.reading.files import text, upload

TABLE = pd.DataFrame({"lon": [1.0, 2.0], "lat": [1.0, 2.0], "who": ["zq17", "b"]})


def refused(source):
    """The text of the refusal; no cell is in it, nor in what hangs on it."""
    with pytest.raises(InputError) as caught:
        find_files(source)
    assert "zq17" not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def names(found):
    return [path.name for path in found.paths]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "year=2020").mkdir()
    (tmp_path / "_temporary").mkdir()
    for place in ("b.parquet", "a.parquet", "year=2020/c.parquet", ".hidden.parquet", "_temporary/d.parquet"):
        TABLE.to_parquet(tmp_path / place)
    (tmp_path / "note.txt").write_text("no table")
    return tmp_path


def test_a_folder_stands_for_its_parquet_files(folder):
    found = find_files(folder)
    assert names(found) == ["a.parquet", "b.parquet", "c.parquet"]
    assert (found.format, found.rows, found.geo) == ("Parquet", 2, None)
    assert found.schema.names == ["lon", "lat", "who"]
    assert found.size == sum(path.stat().st_size for path in found.paths)


def test_globs_and_lists_stand_for_their_files(folder):
    assert names(find_files(str(folder / "*.parquet"))) == ["a.parquet", "b.parquet"]
    assert names(find_files(str(folder / "**" / "c.parquet"))) == ["c.parquet"]
    assert names(find_files([folder / "b.parquet", str(folder / "a.*")])) == ["b.parquet", "a.parquet"]
    assert names(find_files((folder / "year=2020", folder / "a.parquet"))) == ["c.parquet", "a.parquet"]


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path):
    TABLE.to_parquet(tmp_path / "a[1].parquet")
    assert names(find_files(tmp_path / "a[1].parquet")) == ["a[1].parquet"]


def test_links_are_followed_to_real_files(folder):
    (folder / "link.parquet").symlink_to(folder / "a.parquet")
    assert names(find_files(folder / "link.parquet")) == ["a.parquet"]
    assert names(find_files(folder)) == ["a.parquet", "b.parquet", "c.parquet"]


def test_a_file_is_one_file_whatever_leads_to_it(folder):
    (folder / "z.parquet").hardlink_to(folder / "b.parquet")
    (folder / "links").mkdir()
    (folder / "links" / "c.parquet").symlink_to(folder / "a.parquet")
    every = [folder / "b.parquet", str(folder / "[ab].parquet"), folder, str(folder / "links" / "*"), folder / "links" / ".." / "a.parquet"]
    assert names(find_files(every)) == ["b.parquet", "a.parquet", "c.parquet"]
    twice = text("lon,lat\n1,2\n", "a.csv")
    assert len(find_files([twice, twice]).sources) == 1


def test_a_table_without_a_row_says_so(tmp_path):
    texts = {"0": "lon,lat", "1": "\ufeff\n\nlon,lat\r\n\r\n\n", "2": "lon,lat\n1,2", "3": "lon,lat\n \n"}
    for name, content in texts.items():
        (tmp_path / f"{name}.csv").write_text(content, "utf-8", newline="")
    assert find_files(str(tmp_path / "*.csv")).rowless == (True, True, False, False)
    TABLE.iloc[:0].to_parquet(tmp_path / "a.parquet")
    assert find_files(tmp_path).rowless == (True,)


def test_uploads_stand_for_themselves():
    found = find_files([text("lon,lat\n1,2\n", "a.csv"), text("lon,lat\n1,2\n", "b.csv")])
    assert (found.are_paths, found.paths, found.size, found.schema.names) == (False, (), 24, ["lon", "lat"])
    geo = find_files(upload(b"{}", "a.geojson"))
    assert (geo.format, geo.schema, geo.rows) == ("GeoJSON", None, None)


def test_a_geoparquet_says_its_geometry(tmp_path):
    frame = gpd.GeoDataFrame(TABLE, geometry=gpd.points_from_xy(TABLE.lon, TABLE.lat), crs="EPSG:4326")
    frame.to_parquet(tmp_path / "a.parquet")
    geo = find_files(tmp_path).geo
    assert (geo.primary, geo.encoding, geo.columns) == ("geometry", "WKB", ("geometry",))
    frame.to_crs("EPSG:3857").to_parquet(tmp_path / "b.parquet")
    assert "geometries or CRS" in refused(tmp_path)


def test_nothing_found_is_said(tmp_path):
    assert "'*.parquet'" in refused(tmp_path / "*.parquet")
    assert "holds no Parquet file" in refused(tmp_path)
    assert "The file cannot be read" in refused(tmp_path / "none.csv")
    assert "'none.csv'" in refused([tmp_path / "none.csv", tmp_path / "other.csv"])
    assert "at least one" in refused([])


@pytest.mark.parametrize("name", ["http://x.org/*.parquet", "s3://bucket/a.parquet", "/vsicurl/a.csv", "https://x.org/a.csv"])
def test_urls_are_never_opened(name):
    assert "local file" in refused(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    assert "is not a file" in refused(tmp_path / "a.csv")


@pytest.mark.parametrize("source", [b"a.csv", 7, None, io.BytesIO(b"a,b\n"), {"a.csv"}])
def test_what_is_no_source_is_refused(source):
    assert "path" in refused(source)


def test_unknown_endings_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("lon,lat\n")
    assert "ending" in refused(tmp_path / "a.txt")
    assert "ending" in refused(tmp_path / "*.txt")


def test_files_of_different_kinds_are_refused_by_name(folder):
    TABLE.to_csv(folder / "x.csv", index=False)
    message = refused([folder / "a.parquet", folder / "x.csv"])
    assert all(word in message for word in ("'a.parquet'", "'x.csv'", "different formats"))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (TABLE.rename(columns={"who": "whom"}), "different columns"),
        (TABLE[["lat", "lon", "who"]], "different columns"),
        (TABLE.assign(lon=[1, 2]), "different types"),
        (TABLE.astype({"lat": "float32"}), "different types"),
    ],
)
def test_files_of_different_schemas_are_refused_by_name(folder, other, words):
    other.to_parquet(folder / "z.parquet")
    message = refused(folder)
    assert all(word in message for word in ("'a.parquet'", "'z.parquet'", words))


def test_text_tables_of_different_headers_are_refused_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("lon,lat\n1,2\n")
    (tmp_path / "b.csv").write_text("lon,lat,who\n1,2,zq17\n")
    assert "'b.csv'" in refused(str(tmp_path / "*.csv"))


@pytest.mark.parametrize("cut", [4, 100, -1])
def test_a_parquet_that_is_cut_short_is_refused_by_name(folder, cut):
    whole = (folder / "b.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(whole[:cut])
    message = refused(folder)
    assert "'b.parquet'" in message
    assert "cut short" in message


@pytest.mark.parametrize(("content", "words"), [(b"", "empty"), (b"a" * 2**20, "does not end"), (b"\xff\xfea\0", "UTF-8")])
def test_text_without_a_header_is_refused(tmp_path, content, words):
    (tmp_path / "a.csv").write_bytes(content)
    assert words in refused(tmp_path / "a.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(folder):
    (folder / "a.parquet").chmod(0)
    assert "'a.parquet'" in refused(folder)


def test_what_fits_memory_is_a_share_of_it(folder, monkeypatch):
    found = find_files(folder)
    assert found.fits(Limits())
    assert not found.fits(Limits(file_bytes=10))
    assert not found.fits(Limits(rows=1))
    monkeypatch.setattr("dpviz.data.reading.sources.memory_bytes", lambda: 8 * found.size - 1)
    assert not found.fits(Limits())
    assert found.within(Limits())


def test_the_machine_says_its_memory(monkeypatch, tmp_path):
    assert 2**28 < memory_bytes() < 2**50
    (tmp_path / "max").write_text("12345\n")
    monkeypatch.setattr("dpviz.data.reading.sources._CGROUP_LIMIT", tmp_path / "max")
    assert memory_bytes() == 12345
    monkeypatch.setattr("dpviz.data.reading.sources._CGROUP_LIMIT", tmp_path / "none")
    monkeypatch.setattr("dpviz.data.reading.sources.os.sysconf", lambda name: int("x"))
    assert memory_bytes() == 8 * 2**30


def test_nothing_private_is_in_a_repr(folder):
    assert "parquet" not in repr(find_files(folder))
    pq.write_table(pa.table({"lon": [1.0], "zq17": [1.0]}), folder / "y.parquet")
    assert "zq17" not in refused(folder)
