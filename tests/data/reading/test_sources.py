"""Paths, globs, folders, lists and uploads: what they stand for, and files that do not go together or hold the same."""

import io
import os

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data.counting.files import read_points, read_trips
from dpviz.data.reading import sources
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.sources import find_copies, find_files, memory_bytes
from tests.data.reading.files import PLANE, TOWNS, refused, text, upload

TABLE = pd.DataFrame({"lon": [1.0, 2.0], "lat": [1.0, 2.0], "who": ["zq17", "b"]})


def refusal(source):
    return refused(find_files, source)


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
    assert (found.format, found.most_rows, found.geo) == ("Parquet", 2, None)
    assert found.schema.names == ["lon", "lat", "who"]
    assert found.size == sum(path.stat().st_size for path in found.paths)


def test_globs_and_lists_stand_for_their_files(folder):
    assert names(find_files(str(folder / "*.parquet"))) == ["a.parquet", "b.parquet"]
    assert names(find_files(str(folder / "**" / "c.parquet"))) == ["c.parquet"]
    assert names(find_files([folder / "b.parquet", str(folder / "a.*")])) == ["b.parquet", "a.parquet"]
    assert names(find_files((folder / "year=2020", folder / "a.parquet"))) == ["c.parquet", "a.parquet"]


def test_names_like_patterns_and_links_lead_to_their_files(folder, tmp_path_factory):
    odd = tmp_path_factory.mktemp("odd") / "a[1].parquet"
    TABLE.to_parquet(odd)
    assert names(find_files(odd)) == ["a[1].parquet"]
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


def test_tables_without_a_row_are_found(tmp_path):
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
    assert (geo.format, geo.schema, geo.most_rows) == ("GeoJSON", None, None)


def test_the_geometry_of_a_geoparquet_is_found(tmp_path):
    frame = gpd.GeoDataFrame(TABLE, geometry=gpd.points_from_xy(TABLE.lon, TABLE.lat), crs="EPSG:4326")
    frame.to_parquet(tmp_path / "a.parquet")
    geo = find_files(tmp_path).geo
    assert (geo.primary, geo.encoding, geo.columns) == ("geometry", "WKB", ("geometry",))
    frame.to_crs("EPSG:3857").to_parquet(tmp_path / "b.parquet")
    assert "geometries or CRS" in refusal(tmp_path)


def test_sources_without_a_file_to_read_are_refused(tmp_path):
    (tmp_path / "a.pdf").write_text("lon,lat\n")
    assert "'*.parquet'" in refusal(tmp_path / "*.parquet")
    assert "holds no Parquet file" in refusal(tmp_path)
    assert "The file cannot be read" in refusal(tmp_path / "none.csv")
    assert "'none.csv'" in refusal([tmp_path / "none.csv", tmp_path / "other.csv"])
    assert "at least one" in refusal([])
    assert "ending" in refusal(tmp_path / "*.pdf")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    assert "is not a file" in refusal(tmp_path / "a.csv")


def test_what_is_no_source_is_refused(tmp_path):
    for source in (b"a.csv", 7, None, io.BytesIO(b"a,b\n"), upload(b"", 3), {"a.csv"}):
        assert "has a name" in refusal(source)
    with (tmp_path / "a.csv").open("w+") as file:
        assert "binary" in refusal(file)


def test_files_of_different_kinds_are_refused_by_name(folder):
    TABLE.to_csv(folder / "x.csv", index=False)
    message = refusal([folder / "a.parquet", folder / "x.csv"])
    assert all(word in message for word in ("'a.parquet'", "'x.csv'", "different formats"))


def test_files_of_different_schemas_are_refused_by_name(folder):
    others = [(TABLE.rename(columns={"who": "whom"}), "columns"), (TABLE[["lat", "lon", "who"]], "columns")]
    others += [(TABLE.assign(lon=[1, 2]), "types"), (TABLE.astype({"lat": "float32"}), "types")]
    for other, words in others:
        other.to_parquet(folder / "z.parquet")
        message = refusal(folder)
        assert all(word in message for word in ("'a.parquet'", "'z.parquet'", f"different {words}"))
    assert "'b.csv'" in refusal([text("lon,lat\n1,2\n", "a.csv"), text("lon,lat,who\n1,2,zq17\n", "b.csv")])


def test_a_parquet_that_is_cut_short_is_refused_by_name(folder):
    whole = (folder / "b.parquet").read_bytes()
    for cut in (4, 100, -1):
        (folder / "b.parquet").write_bytes(whole[:cut])
        message = refusal(folder)
        assert "'b.parquet'" in message
        assert "cut short" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(folder):
    (folder / "a.parquet").chmod(0)
    assert "'a.parquet'" in refusal(folder)


def test_what_fits_memory_is_a_share_of_it(folder, monkeypatch):
    found = find_files(folder)
    assert found.fit_in_memory(Limits())
    assert not found.fit_in_memory(Limits(file_bytes=10))
    assert not found.fit_in_memory(Limits(rows=1))
    monkeypatch.setattr("dpviz.data.reading.sources.memory_bytes", lambda: 8 * found.size - 1)
    assert not found.fit_in_memory(Limits())
    assert found.within(Limits())


def test_the_memory_of_the_machine_or_of_the_container_is_found(monkeypatch, tmp_path):
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
    assert "zq17" not in refusal(folder)


PLACES = pd.DataFrame({"lon": np.arange(9) - 0.5, "lat": 0.5})


COPIES = ["d (1)", "d(2)", "d - Copy", "d - Copy (2)", "Copy of d", "copy of D", "Copy (2) of d", "d copy", "d copy 2", "d_copy", "d-copy2"]
COPIES += [
    "d - Kopie",
    "Kopie von d",
    "d - copie",
    "Copie de d",
    "Co\u0301pia de d",
    "copia de d",
    "d (copy)",
    "d (another copy)",
    "Copy of d (1)",
    "Copy of Copy of d",
]


@pytest.mark.parametrize("name", COPIES)
def test_a_name_that_says_copy_is_refused_beside_its_original_or_another_copy(name):
    for other in ("d", "d (9)"):
        files = [text("lon,lat\n1,1\n", f"{other}.csv"), text("lon,lat\n2,2\n", f"{name}.csv")]
        for bad_rows in ("refuse", "drop"):
            message = refused(read_points, files, domain=PLANE, bad_rows=bad_rows)
            assert all(part in message for part in (f"{other}.csv'", f"{name}.csv'", "copies=True"))
        assert read_points(files, domain=PLANE, copies=True).count.sum() == 2


NO_COPIES = [
    ["d (1)", "e"],
    ["d (2019)", "d (2020)"],
    ["hardcopy", "hard"],
    ["copy", "of"],
    ["copy of", "d"],
    ["d1", "d2", "d"],
    ["d (1)"],
    ["(1)", "(2)"],
]


@pytest.mark.parametrize("names", NO_COPIES)
def test_other_names_are_no_copies(names):
    assert len(find_files([text(f"lon,lat\n{place},1\n", f"{name}.csv") for place, name in enumerate(names)]).sources) == len(names)


@pytest.fixture
def copies(tmp_path):
    """Two part files, and a copy of one of them by another name."""
    for name, part in (("d", PLACES), ("dd", PLACES), ("e", PLACES[::-1])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
        part.to_parquet(tmp_path / f"{name}.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_equal_content_is_refused_at_first_warned_of_under_drop_and_declared_by_copies(copies, ending, engine):
    every = str(copies / f"*.{ending}")
    message = refused(read_points, every, domain=PLANE, engine=engine)
    assert all(part in message for part in (f"'d.{ending}'", f"'dd.{ending}'", "copies=True"))
    with pytest.warns(UserWarning, match=rf"'d.{ending}' and 'dd.{ending}' have the same content"):
        assert read_points(every, domain=PLANE, engine=engine, bad_rows="drop").count.sum() == 24
    for bad_rows in ("refuse", "drop"):
        assert read_points(every, domain=PLANE, engine=engine, bad_rows=bad_rows, copies=True).count.sum() == 24
    trips = [text("from,to,count\na,b,3\n", f"{name}.csv") for name in "ab"]
    assert "'a.csv' and 'b.csv'" in refused(read_trips, trips, regions=TOWNS)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_links_and_empty_parts_are_no_copies(copies, ending):
    (copies / f"dd.{ending}").unlink()
    (copies / f"link.{ending}").hardlink_to(copies / f"e.{ending}")
    for number in range(3):
        PLACES.iloc[:0].to_csv(copies / f"empty{number}.csv", index=False)
        PLACES.iloc[:0].to_parquet(copies / f"empty{number}.parquet", index=False)
    assert read_points(str(copies / f"*.{ending}"), domain=PLANE).count.sum() == 16


def test_files_are_compared_up_to_where_they_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 12)
    read, reads = sources.read_bytes, []
    for name, row in (("a", "1,2\n5,6\n"), ("b", "3,4\n5,6\n"), ("c", "3,4\n7,8\n"), ("d", "3,4\n5,6\n"), ("e", "1,2\n")):
        (tmp_path / f"{name}.csv").write_text(f"lon,lat\n{row}")
    found = find_files(str(tmp_path / "*.csv"))
    monkeypatch.setattr(sources, "read_bytes", lambda source, most, begin: reads.append((source.name, begin)) or read(source, most, begin))
    assert find_copies(found) == [("b.csv", "d.csv")]
    assert sorted(reads) == [("a.csv", 0), ("b.csv", 0), ("b.csv", 12), ("c.csv", 0), ("c.csv", 12), ("d.csv", 0), ("d.csv", 12)]
