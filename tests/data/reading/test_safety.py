"""Files that cannot be opened, limits and archives; and private folders for what does not fit in memory, which never stay behind."""

import stat
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyogrio
import pytest

from dpviz.data.counting.files import read_points
from dpviz.data.reading.regions import read_regions
from dpviz.data.reading.safety import MEMORY_PER_BYTE, NO_FOLDER, PREFIX, Limits, private_folder
from dpviz.errors import InputError, SettingError
from tests.data.reading import files
from tests.data.reading.broken_packed import geopackage
from tests.data.reading.broken_packed import shapefile as packed_shapefile
from tests.data.reading.files import GEOMETRIES, PLANE, TABLES, WORLD, declared, frame, refusal, shapefile, stored, text, upload, zipped
from tests.data.reading.whole import parquet, parts, whole_files

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="locks and modes of files are those of POSIX")

URLS = "http://zq/a.csv https://zq/a.geojson ftp://zq/a.csv s3://zq/a.parquet http://zq/*.parquet file:///zq/a.csv zip://zq.zip!a.shp"


@pytest.mark.parametrize("name", [*URLS.split(), "/vsicurl/http://zq/a.gpkg", "/vsizip/zq.zip/a.csv"])
def test_urls_and_virtual_paths_are_never_opened(name):
    assert "URLs" in refusal(name)
    assert "URLs" in refusal(upload(b"lon,lat\n", name))


UNOPENED = {
    "zq.csv.gz": "Compressed",
    "zq.7z": "Compressed",
    "zq.shp": "one .zip",
    "zq.xlsx": "as CSV",
    "zq.kml": "ogr2ogr",
    "zq.gpx": "track_points",
}
UNOPENED |= {"zq": "there are .csv", "zq.csv": "cannot be read", "zq\0.csv": "cannot be read"}


@pytest.mark.parametrize("name", UNOPENED)
def test_files_that_cannot_be_opened(name, tmp_path):
    assert UNOPENED[name] in refusal(str(tmp_path / name))


def test_a_geopackage_of_several_layers_or_of_none_is_refused(tmp_path):
    for layer in ("one", "two"):
        pyogrio.write_dataframe(frame(), tmp_path / "a.gpkg", layer=layer, append=layer == "two")
    assert "several layers" in refusal(tmp_path / "a.gpkg")
    pyogrio.write_dataframe(pd.DataFrame({"state": ["a"]}), tmp_path / "b.gpkg", layer="one")
    assert "no layer with geometries" in refusal(tmp_path / "b.gpkg")


GEOPACKAGE = {"view": ["its layer is a view", "its contents are a view", "its list of layers never ends"]}
GEOPACKAGE |= {"virtual table": ["its layer is virtual", "a virtual table over another file"], "not a GeoPackage": ["not marked as one"]}
SHAPEFILE = {"leads out": ["a path upwards", "an absolute path", "a path with backslashes", "a path with a drive"]}
SHAPEFILE |= {"no Shapefile": ["another file only", "nothing"], "several": ["two Shapefiles"], "another archive": ["an archive inside"]}
SHAPEFILE |= {".shx": ["no index"], "times its size": ["a bomb"], "cannot be read": ["a bomb that understates its size"]}
SHAPEFILE |= {"shapes (.shp)": ["shapes that are text", "shapes that are empty"]}
SHAPEFILE |= {"members": ["too many members"], "encrypted": ["a password"], "deflate": ["another compression"]}


def test_faults_of_databases_and_archives_are_refused_by_rule(tmp_path):
    """Content is in `broken_packed`; here, which rule is said."""
    whole = whole_files(tmp_path)
    members = parts(tmp_path / "points" / "shapefile")
    for form, words_of, faults in (
        ("gpkg", GEOPACKAGE, geopackage(whole["points", "gpkg"], tmp_path)),
        ("zip", SHAPEFILE, packed_shapefile(whole["points", "shapefile"], members)),
    ):
        for words, names in words_of.items():
            assert [name for name in names if words not in refusal(upload(faults[name], f"a.{form}"))] == []
    limits = Limits(unpacked_bytes=1_000_000, expansion=10_000)
    assert "unpacks to more" in refusal(upload(faults["a bomb"], "a.zip"), limits=limits)


def test_a_query_that_runs_away_is_cut_short(tmp_path, monkeypatch):
    source = stored(frame(), "gpkg", tmp_path)
    assert read_points(source, domain=WORLD).count.sum() == 4
    monkeypatch.setattr("dpviz.data.reading.safety._MOST_STEPS", 3)
    monkeypatch.setattr("dpviz.data.reading.safety._INSTRUCTIONS_PER_STEP", 1)
    assert "damaged" in refusal(source)


def test_limits_are_whole_numbers():
    for value in (0, -1, 1.5, True, None):
        assert "rows" in files.refused(Limits, rows=value, error=SettingError)


@pytest.mark.parametrize("form", [*TABLES, *GEOMETRIES])
def test_files_over_a_limit_are_refused(form, tmp_path):
    source = stored(frame(), form, tmp_path)
    size = len(source.getvalue())
    assert "bytes" in refusal(source, limits=Limits(file_bytes=size - 1))
    (tmp_path / source.name).write_bytes(source.getvalue())
    assert "bytes" in refusal(tmp_path / source.name, limits=Limits(file_bytes=size - 1), engine="numpy")
    assert "rows" in refusal(source, limits=Limits(rows=3), crs=declared(form))
    if not form.startswith("geojson"):  # whose features each have names of their own: one must not decide
        assert "columns" in refusal(source, limits=Limits(columns=1), crs=declared(form))
    exact = Limits(file_bytes=size, rows=4, columns=4)
    assert read_points(source, domain=WORLD, crs=declared(form), limits=exact).count.sum() == 4


def test_rows_end_in_line_feeds():
    assert "rows" in refusal(text("lon,lat\r\n" + "1,2\r\n" * 5), domain=PLANE, limits=Limits(rows=4))
    assert "carriage returns alone" in refusal(text("lon,lat\r" + "1,2\r" * 5), domain=PLANE)


def test_parquet_that_unpacks_to_too_much_is_refused():
    content = parquet(x=np.zeros(1_000_000), y=np.zeros(1_000_000))
    assert len(content) < 100_000
    assert "unpacks" in refusal(upload(content, "a.parquet"), domain=PLANE, limits=Limits(unpacked_bytes=1_000_000))


ROWS = 200_000
ZEROS, LETTERS = np.zeros(ROWS), pa.DictionaryArray.from_arrays(np.zeros(ROWS, np.int32), ["a" * 40]).cast(pa.string())
LISTS = pa.array([[0.0] * 5] * ROWS)


@pytest.mark.parametrize(
    ("columns", "options", "decoded"),
    [
        ({"x": ZEROS, "y": ZEROS}, {}, 16),
        ({"x": ZEROS, "y": ZEROS, "wide": ZEROS}, {}, 16),
        ({"x": ZEROS, "y": ZEROS, "who": LETTERS}, {"person": "who"}, 16 + 48),
        ({"x": LISTS, "y": ZEROS}, {}, 5 * 8 + 8),
    ],
    ids=["numbers", "a column that is not read", "texts", "lists"],
)
def test_rows_that_take_too_much_memory_are_refused_before_they_are_counted(tmp_path, columns, options, decoded):
    """Of columns that are read, a small file may have as many rows as five times their bytes fit in the limit."""
    content = parquet(**columns)
    assert len(content) < ROWS / 10
    most = MEMORY_PER_BYTE * decoded * ROWS
    source, options = upload(content, "a.parquet"), {"domain": PLANE, "x": "x", "y": "y", **options}
    message = refusal(source, **options, limits=Limits(memory_bytes=most - 5))
    assert all(part in message for part in ("more memory than the limit", "duckdb", "limits=dv.reading.Limits(memory_bytes=...)"))
    assert "more memory" not in str(attempt_read(source, options, Limits(memory_bytes=5 * most // 4)))  # bitmaps and offsets


def attempt_read(source, options, limits):
    """The number of records that are read, or the refusal."""
    try:
        return read_points(source, **options, limits=limits).count.sum()
    except InputError as error:
        return error


def test_auto_counts_a_small_file_of_many_rows_in_parts(tmp_path):
    (tmp_path / "a.parquet").write_bytes(parquet(x=ZEROS, y=ZEROS))
    limits = Limits(memory_bytes=MEMORY_PER_BYTE * 16 * ROWS - 5)
    assert "more memory" in refusal(tmp_path / "a.parquet", domain=PLANE, limits=limits, engine="numpy")
    assert read_points(tmp_path / "a.parquet", domain=PLANE, limits=limits).count.sum() == ROWS


@pytest.mark.parametrize("regions", [False, True])
def test_shapes_that_take_too_much_memory_are_refused_before_they_are_parsed(tmp_path, regions):
    lists = upload(b'{"type": "FeatureCollection", "features": [' + b",".join([b"[]"] * 1000) + b"]}", "a.geojson")
    lines = upload(b"1\n" * 12, "a.geojsonl")
    archive = upload(zipped(shapefile(frame(), tmp_path)), "a.zip")
    read, options = (read_regions, {"levels": ["user"]}) if regions else (read_points, {"domain": WORLD})
    for source in (lists, lines, archive):
        message = files.refused(read, source, limits=Limits(memory_bytes=1500), **options)
        assert all(part in message for part in ("more memory than the limit of 1,500 bytes", "GeoParquet"))
    assert "more rows" in files.refused(read, lines, limits=Limits(rows=11), **options)
    assert read_points(archive, domain=WORLD, limits=Limits(memory_bytes=100_000)).count.sum() == 4


def test_an_archive_may_have_folders_and_litter_and_needs_neither_table_nor_code_page(tmp_path):
    parts = shapefile(frame(), tmp_path)
    litter = {f"Some Földer/{name.upper()}": data for name, data in parts.items()}
    litter |= {"readme.txt": b"zq", "__MACOSX/Some Folder/._POINTS.SHP": b"zq", "._x.shp": b"zq"}
    fewer = [{name: data for name, data in parts.items() if not name.endswith(missing)} for missing in (".dbf", ".cpg")]
    for members in (litter, *fewer):
        assert read_points(upload(zipped(members), "a.zip"), domain=WORLD).count.sum() == 4


@POSIX
def test_a_private_folder_is_for_its_owner_alone_and_is_removed_after_a_failure_too(tmp_path):
    with private_folder(tmp_path) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "spilled").write_text("private")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(ZeroDivisionError), private_folder(tmp_path) as folder:
        (folder / "spilled").write_text(str(1 / 0))
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_a_folder_in_use_is_left_alone_and_one_of_a_killed_process_is_removed(tmp_path):
    """A lock belongs to an open file: it holds within this process as well, and is gone with the process that held it."""
    with private_folder(tmp_path) as theirs, private_folder(tmp_path):
        assert [path.name for path in theirs.iterdir()] == ["in use"]
    (tmp_path / f"{PREFIX}left").mkdir()
    (tmp_path / f"{PREFIX}left" / "in use").touch()
    with private_folder(tmp_path) as ours:
        assert [path.name for path in tmp_path.iterdir()] == [ours.name]


@POSIX
def test_folders_without_a_lock_are_not_ours_to_remove_and_a_link_in_its_place_is_not_followed(tmp_path):
    for name in ("other", "trap"):
        (tmp_path / f"{PREFIX}{name}").mkdir()
    (tmp_path / "treasure").write_text("")
    (tmp_path / f"{PREFIX}trap" / "in use").symlink_to(tmp_path / "treasure")
    with private_folder(tmp_path):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}other", f"{PREFIX}trap", "treasure"]


@POSIX
def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    assert files.refused(private_folder(tmp_path / "none").__enter__) == NO_FOLDER
