"""A release is written whole or not at all, read only if every file is there, unchanged and listed; whatever else is a clear error."""

import contextlib
import errno
import functools
import hashlib
import io
import itertools
import json
import operator
import os
import re
import shutil
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpviz.errors import DpvizError, InputError, RefusedError, SettingError
from dpviz.mechanisms import ExactKdtree, Quadtree, RegionTree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release import files as release_files
from dpviz.release import tables as members
from dpviz.release.facts import SCHEMA_FILE
from dpviz.release.files import compute_seal, read_manifest, read_release, write_folder, write_release, zip_release
from dpviz.release.manifest import describe
from tests.often import often
from tests.release_cases import (
    WORDS,
    area_release,
    areas_on,
    assert_same,
    point_release,
    points_of,
    regions_with_shapes,
    trip_counts_on,
    trip_release,
)
from tests.trip_cases import trips_of

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def written(release, folder, **options):
    return write_release(release, folder, describe(release, WORDS, created=WHEN, release_id="one"), **options)


TRIPS = ApproxBudget(1, "1e-6")
UNPUBLISHABLE = {
    "simulation": lambda: Quadtree().release(points_of(50), PureBudget(1), Entropy.seeded(1)),
    "reference": lambda: ExactKdtree().release(points_of(50), PureBudget(1), Entropy.system()),
    "simulated areas": lambda: RegionTree().release(areas_on(regions_with_shapes()), PureBudget(1), Entropy.seeded(1)),
    "simulated trips": lambda: TopDown().release(trips_of(50), TRIPS, Entropy.seeded(1)),
}


@pytest.mark.parametrize("release", UNPUBLISHABLE.values(), ids=UNPUBLISHABLE)
def test_what_must_not_be_published_is_neither_described_nor_written(release, tmp_path):
    with pytest.raises(RefusedError, match=r"must not be published"):
        describe(release(), WORDS)
    with pytest.raises(RefusedError, match=r"must not be published"):
        write_release(release(), tmp_path / "out", describe(point_release(), WORDS))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_has_these_files_each_with_its_digest(tmp_path):
    folder = written(point_release(), tmp_path / "points", files={"report.html": b"<p>"})
    tables = {"partitions.parquet", "partitions.geojson", "partitions.csv", "levels.parquet", "levels.csv"}
    assert set(members_of(folder)) == tables | {"report.html", "manifest.json", "manifest.schema.json"}
    listed = {entry.pop("name"): entry for entry in read_manifest(folder)["files"]}
    assert all(entry.pop("about") and entry.pop("format") for entry in listed.values())
    assert listed == {name: facts_of_file(folder / name) for name in members_of(folder) if name != "manifest.json"}
    assert (folder / "manifest.schema.json").read_bytes() == SCHEMA_FILE.read_bytes()
    folder = written(TopDown().release(trip_counts_on(regions_with_shapes()), TRIPS, Entropy.system()), tmp_path / "trips")
    tables = {"flows.parquet", "stages.parquet", "regions.parquet", "regions_1_state.geojson", "regions_2_town.geojson"}
    lists = {f"{kind}_{level}.csv" for kind in ("flows", "locations", "arcs") for level in ("1_state", "2_town")}
    assert set(members_of(folder)) == tables | lists | {"manifest.json", "manifest.schema.json"}
    folder = written(area_release(), tmp_path / "areas")
    tables = {"areas.parquet", "levels.parquet", "regions.parquet", "areas_0_whole.csv"}
    levels = {f"areas_{level}.{ending}" for level in ("1_state", "2_town") for ending in ("csv", "geojson")}
    assert set(members_of(folder)) == tables | levels | {"manifest.json", "manifest.schema.json"}


def test_only_the_formats_requested_are_written_and_others_are_refused_and_geoparquet_is_what_is_read_back(tmp_path):
    endings = {"csv": ".csv", "geojson": ".geojson", "geoparquet": ".parquet"}
    for place, formats in enumerate([("csv",), ("geojson",), ("geoparquet",), ["csv", "geoparquet"]]):
        folder = written(point_release(), tmp_path / str(place), formats=formats)
        assert {path.suffix for path in folder.iterdir()} == {".json", *(endings[each] for each in formats)}
        assert read_manifest(folder)["data_product"]["name"] == WORDS.name
        if "geoparquet" not in formats:
            assert_refused(folder, "without GeoParquet")
    for wrong in (("shapefile",), (), ("csv", "xlsx")):
        with pytest.raises(SettingError, match="geoparquet, geojson, csv"):
            written(point_release(), tmp_path / "out", formats=wrong)
    assert not (tmp_path / "out").exists()


BAD_NAMES = ["../report.html", "a/b", "", ".hidden", "manifest.json", "manifest.schema.json", "a\nb", "é.html", "x" * 200, "C:x", 3]


def test_further_files_have_plain_names_are_bytes_and_do_not_replace_our_own(tmp_path):
    wrong = [({name: b""}, "plain name") for name in BAD_NAMES]
    wrong += [({"report.html": "<p>"}, "bytes"), ({"partitions.csv": b""}, "the name of one of the release's own files")]
    for files, rule in wrong:
        with pytest.raises(SettingError, match=rule):
            written(point_release(), tmp_path / "out", files=files)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "full" / "mine").mkdir(parents=True)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "broken link").symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))
    for name in ("folder", "full", "file", "broken link"):
        with pytest.raises(SettingError, match="exists already"):
            written(point_release(), tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_manifest_must_be_that_of_the_release(tmp_path):
    own, other = describe(point_release(), WORDS), Quadtree(height=3).release(points_of(400), PureBudget("0.1"), Entropy.system())
    manifest = describe(other, WORDS)
    for wrong in (manifest, {}, None, {**own, "privacy": manifest["privacy"]}, describe(trip_release(), WORDS)):
        with pytest.raises(SettingError, match="belongs to another release"):
            write_release(point_release(), tmp_path / "out", wrong)
    with pytest.raises(SettingError, match="breaks its schema: manifest"):
        write_release(point_release(), tmp_path / "out", {**own, "seed": 7})
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "secret path")

    def half(self, path, **_):
        Path(path).write_text('{"type": "FeatureCollection", "features": [')

    def fill(folder):
        (folder / "half").write_text("half")
        raise ZeroDivisionError

    monkeypatch.setattr(release_files.os, "fsync", full)
    with pytest.raises(DpvizError, match="The release could not be written") as refusal:
        written(point_release(), tmp_path / "out")
    monkeypatch.undo()
    assert os.strerror(errno.ENOSPC) in str(refusal.value)
    assert "secret" not in str(refusal.value)
    with pytest.raises(DpvizError, match="No such file"):
        written(point_release(), tmp_path / "not" / "there")
    with pytest.raises(ZeroDivisionError):
        write_folder(tmp_path / "out", fill)
    monkeypatch.setattr(members.geopandas.GeoDataFrame, "to_file", half)
    with pytest.raises(DpvizError, match="GeoJSON could not be written"):
        written(point_release(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def raising_at(stop: int, raised: type[BaseException]):
    """A tracer that raises at one line of files.py, counted from the start, and its list of the lines that ran."""
    seen = []

    def trace(frame, event, _):
        if frame.f_code.co_filename != release_files.__file__:
            return None
        if event == "line":
            seen.append(frame.f_lineno)
            if len(seen) == stop:
                raise raised
        return trace

    return trace, seen


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file that was open at the interrupt
@pytest.mark.parametrize(("raised", "step"), often([(KeyboardInterrupt, 3), (MemoryError, 1)], 1))
def test_an_interrupt_at_any_line_leaves_the_whole_release_or_nothing(raised, step, tmp_path):
    release, manifest = point_release(), describe(point_release(), WORDS)
    outcomes, before = [], sys.gettrace()
    for stop in itertools.count(1, step):
        folder = tmp_path / str(stop)
        folder.mkdir()
        trace, seen = raising_at(stop, raised)
        sys.settrace(trace)
        try:
            with contextlib.suppress(raised):
                write_release(release, folder / "out", manifest, formats=("geoparquet",))
        finally:
            sys.settrace(before)
        outcomes.append(members_of(folder))
        if outcomes[-1]:
            assert_same(read_release(folder / "out"), release)
        if len(seen) < stop:
            break
    assert stop > 50
    assert outcomes == sorted(outcomes)
    assert outcomes[0] == []
    assert outcomes[-1] == ["out"]
    assert step > 1 or outcomes.count(["out"]) > 1  # also between the renaming and the end


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the names of open files")
def test_everything_is_on_the_disk_before_the_folder_has_its_name(tmp_path, monkeypatch):
    """So a process or a computer that stops at any moment leaves the whole release or a folder `.out.*`."""
    log, fsync, rename = [], os.fsync, Path.rename

    def forced(handle):
        log.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    def renamed(self, target):
        assert {path.name for path in self.iterdir()} <= set(log)
        log.append("renamed")
        return rename(self, target)

    monkeypatch.setattr(release_files.os, "fsync", forced)
    monkeypatch.setattr(Path, "rename", renamed)
    folder = written(point_release(), tmp_path / "out")
    place = log.index("renamed")
    assert len(set(log[:place])) == len(members_of(folder)) + 1
    assert log[place - 1].startswith(".out.")
    assert log[place + 1 :] == [tmp_path.name]


def test_a_zip_is_the_same_each_time_and_holds_the_folder_if_that_is_a_whole_release(tmp_path):
    folder = written(point_release(), tmp_path / "out")
    packed = zip_release(folder)
    assert packed == zip_release(folder)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == contents_of(folder)
    (tmp_path / "empty").mkdir()
    (folder / "partitions.csv").unlink()
    for wrong in (folder, tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(DpvizError, match="not a whole release"):
            zip_release(wrong)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of points, one of trips and one of areas, written once; tests work on copies."""
    around = tmp_path_factory.mktemp("written")
    trips = TopDown().release(trip_counts_on(regions_with_shapes()), ApproxBudget(1, "1e-6"), Entropy.system())
    for name, release in (("points", point_release()), ("trips", trips), ("areas", area_release())):
        write_release(release, around / name, describe(release, WORDS), files={"report.html": b"<p>text</p>"})
    return around


@pytest.fixture(params=["points", "trips", "areas"])
def folder(request, folders, tmp_path):
    return Path(shutil.copytree(folders / request.param, tmp_path / "copy"))


def members_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def resealed(folder: Path, change) -> None:
    """Change the manifest and seal it again, as a forger would; digests of tables are brought up to date."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    change(manifest)
    for entry in manifest["files"]:
        if (folder / entry["name"]).exists():
            entry.update(facts_of_file(folder / entry["name"]))
    manifest["seal"] = compute_seal(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


def facts_of_file(path: Path) -> dict:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}


def assert_refused(source, rule: str = "") -> None:
    """It is not read, and the reason carries no other error with it."""
    with pytest.raises(InputError) as refusal:
        read_release(source)
    assert re.search(rule, str(refusal.value))
    assert refusal.value.__cause__ is None


def assert_only_clear_errors(source) -> None:
    """A release, or an InputError that carries no other error with it."""
    error = None
    try:
        read_release(source)
    except InputError as found:
        error = found
    assert error is None or (error.__cause__, error.__context__) == (None, None)


def packed(files: dict[str, bytes], **options) -> io.BytesIO:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", **options) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return io.BytesIO(target.getvalue())


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_changed_byte_of_every_file_is_noticed_and_every_missing_file_is_named(folder):
    for name in members_of(folder):
        path = folder / name
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 2):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            assert_refused(folder)
        path.write_bytes(content + b" ")
        if name != "manifest.json":  # whose spaces mean nothing
            assert_refused(folder, f"{name} was changed")
        path.write_bytes(content[:-7])
        assert_refused(folder)
        path.unlink()
        assert_refused(folder, f"has no {name}" if name == "manifest.json" else f"{name} is missing")
        path.write_bytes(content)
    assert read_release(folder)


def test_an_extra_file_is_named_but_for_what_file_managers_leave_behind_and_folders_and_links_are_not_followed(folder):
    whole, files = read_release(folder), contents_of(folder)
    for name in ("extra.csv", "manifest (1).json", ".hidden"):
        (folder / name).write_text("x")
        assert_refused(folder, f"its manifest does not list: '{re.escape(name)}'")
        (folder / name).unlink()
    for name in (".DS_Store", "Thumbs.db"):
        (folder / name).write_bytes(b"x")
    assert_same(read_release(folder), whole)
    assert_same(read_release(packed(files | {".DS_Store": b"x"})), whole)
    (folder / "more").mkdir()
    assert_refused(folder, "not a plain file")
    (folder / "more").rmdir()
    (folder / "report.html").symlink_to((folder / "report.html").rename(folder.parent / "elsewhere.html"))
    assert_refused(folder, "not a plain file")


def words_of(facts, found=()):
    """Every place in a manifest, as a path of names and numbers."""
    steps = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    for step, below in steps:
        yield (*found, step)
        yield from words_of(below, (*found, step))


def holder_of(manifest, place):
    """The part of a manifest that holds the last step of a path."""
    return functools.reduce(operator.getitem, place[:-1], manifest)


NO_MANIFESTS = ["", "{", "[]", "null", '{"a": NaN}', '{"a": 1, "a": 2}', "\udcff", "[" * 100_000, '{"a": ' + "9" * 5000 + "}", "7"]


def test_every_changed_word_of_the_manifest_is_noticed_and_one_that_is_none_refused(folder):
    text = (folder / "manifest.json").read_text("utf-8")
    places = list(words_of(json.loads(text)))
    assert len(places) > 100
    for place in places[::5]:
        manifest = json.loads(text)
        holder = holder_of(manifest, place)
        holder[place[-1]] = "other" if holder[place[-1]] != "other" else "another"
        (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
        assert_refused(folder, r"breaks its schema: |seal does not fit|another version of dpviz")
    for text in NO_MANIFESTS:
        (folder / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        assert_refused(folder)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_forged_manifest_never_gives_another_error(folders, tmp_path, data):
    """Seal and digests fit, but a value is another one: a release or an InputError, nothing else."""
    name = data.draw(st.sampled_from(["points", "trips", "areas"]))
    copy = Path(shutil.copytree(folders / name, tmp_path / "forged", dirs_exist_ok=True))
    places = list(words_of(json.loads((copy / "manifest.json").read_text("utf-8"))))
    place = data.draw(st.sampled_from([each for each in places if each[0] in ("privacy", "accounting", "contents", "files")]))
    value = data.draw(st.none() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5) | st.just([]))
    try:
        resealed(copy, lambda manifest: operator.setitem(holder_of(manifest, place), place[-1], value))
    except (AttributeError, KeyError, TypeError, ValueError, OSError):
        return
    assert_only_clear_errors(copy)


NO_TREE = [
    ("parent", lambda values: np.roll(values, 1)),
    ("children", lambda values: values + 1),
    ("first_child", lambda values: values + 1),
    ("level", lambda values: values + 1),
    ("east_line", lambda values: values + 9),
    ("west_line", lambda values: values[::-1]),
    ("north_line", lambda values: values * 0),
]
FORGED = [
    *[("points", "levels.parquet", *each, "no tree of nested rectangles") for each in NO_TREE],
    ("trips", "stages.parquet", "origin", lambda values: ["nowhere", *values[1:]], ""),
    ("trips", "regions.parquet", "region_id", lambda values: [values[0]] * len(values), ""),
    ("trips", "regions.parquet", "parent_id", lambda values: ["nowhere"] * len(values), ""),
    ("areas", "levels.parquet", "region_id", lambda values: values[::-1].tolist(), "one row for each region"),
    ("areas", "levels.parquet", "level", lambda values: values + 1, "one row for each region"),
    ("areas", "regions.parquet", "parent_id", lambda values: ["nowhere"] * len(values), ""),
    ("areas", "areas.parquet", "count", lambda values: values + 1, "areas.parquet has other counts"),
    ("points", "partitions.parquet", "count", lambda values: values + 1, "partitions.parquet has other counts"),
    ("trips", "flows.parquet", "count", lambda values: values + 1, "flows.parquet has other counts"),
]


@pytest.mark.parametrize(("kind", "table", "column", "change", "rule"), FORGED)
def test_forged_tables_are_noticed(kind, table, column, change, rule, folders, tmp_path):
    copy = Path(shutil.copytree(folders / kind, tmp_path / "copy"))
    stored = pq.read_table(copy / table)
    field = stored.schema.field(column)
    values = change(stored.column(column).to_numpy())
    forged = pa.array(values if isinstance(values, list) else values.astype(field.type.to_pandas_dtype()), field.type)
    pq.write_table(stored.set_column(stored.schema.get_field_index(column), column, forged), copy / table)
    resealed(copy, lambda manifest: None)
    assert_refused(copy, rule)


def test_a_zip_is_read_from_a_path_or_an_open_file_with_or_without_a_folder_inside(folder, tmp_path):
    path, expected = tmp_path / "out.zip", read_release(folder)
    path.write_bytes(zip_release(folder))
    inside = packed({"county/": b"", **{f"county/{name}": content for name, content in contents_of(folder).items()}})
    with path.open("rb") as file:
        for source in (file, path, str(path), inside):
            assert_same(read_release(source), expected)


STRANGE_MEMBERS = {
    "leads out": ["../evil", "/etc/passwd", "a\\..\\evil", "C:evil"],
    "all in one folder": ["one/evil", "a/b/evil"],
    "does not list": ["evil.csv"],
}


def test_members_of_a_zip_that_do_not_belong_are_refused(folder):
    wrong = [([name], rule) for rule, names in STRANGE_MEMBERS.items() for name in names]
    for names, rule in (*wrong, ([f"more{number}" for number in range(300)], "more files than the limit of 256")):
        assert_refused(packed(contents_of(folder) | dict.fromkeys(names, b"x")), rule)
    assert not Path("evil").exists()
    target = io.BytesIO(zip_release(folder))
    with zipfile.ZipFile(target, "a") as made, pytest.warns(UserWarning, match="Duplicate"):
        made.writestr("manifest.json", b"{}")
    assert_refused(io.BytesIO(target.getvalue()), "two members of one name")


def test_links_encryption_and_unusual_compression_in_a_zip_are_refused(folder):
    content = contents_of(folder)
    assert_refused(packed(content, compression=zipfile.ZIP_LZMA), "unusual way")
    link = zipfile.ZipInfo("manifest.json")
    link.external_attr = 0o120777 << 16
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        made.writestr(link, "/etc/passwd")
    assert_refused(io.BytesIO(target.getvalue()), "a link")
    data = bytearray(zip_release(folder))
    place = data.rindex(b"PK\x01\x02")
    data[place + 8] |= 1
    assert_refused(io.BytesIO(bytes(data)), "encrypted")


def test_zip_bombs_and_tables_that_unpack_to_too_much_are_refused(folder, monkeypatch):
    content = contents_of(folder) | {"report.html": bytes(10**6)}
    monkeypatch.setattr(release_files, "MOST_BYTES", 500_000)
    assert_refused(packed(content, compression=zipfile.ZIP_DEFLATED), "files are larger than the limit of 500,000 bytes together")
    assert_refused(packed(content), "archive is larger than the limit")
    monkeypatch.setattr(release_files, "MOST_BYTES", 2_000)
    assert_refused(folder, "limit of 2,000 bytes")


def test_what_is_no_release_or_half_a_zip_is_refused(folders, tmp_path):
    for source in ("missing", 7, None, io.StringIO("x"), b"PK"):
        assert_refused(source)
    whole = zip_release(folders / "trips")
    for cut in (0, 1, 100, 1000, -1):
        (tmp_path / "half.zip").write_bytes(whole[:cut])
        for source in (io.BytesIO(whole[:cut]), tmp_path / "half.zip"):
            assert_refused(source, "not a zip")


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
def test_any_changed_byte_of_a_zip_gives_the_same_release_or_a_clear_error(folders, place, value):
    data = bytearray(zip_release(folders / "trips"))
    data[int(place * len(data))] = value
    assert_only_clear_errors(io.BytesIO(bytes(data)))


@pytest.mark.slow
def test_the_report_needs_no_library_of_the_app():
    code = "import sys; sys.modules.update(dict.fromkeys(['pydeck', 'altair', 'PIL', 'streamlit'])); import dpviz.view.report"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)


NINTH = {"exact": "1/9", "decimal": 1 / 9}
CONTRADICTIONS = [
    (("utility", "levels", 0, "stddev_median"), 0.5, "at utility"),
    (("accounting", "used"), NINTH, "at accounting"),
    (("privacy", "spent", "epsilon"), NINTH, "at privacy"),
    (("accounting", "steps", 0, "amount", "decimal"), 0.25, "at accounting"),
    (("identity", "kind"), "another", "contradicts"),
    (("privacy", "epsilon", "exact"), "1/2", "spend more than the budget|at privacy"),
]


@pytest.mark.parametrize(("place", "value", "rule"), CONTRADICTIONS)
def test_a_manifest_sealed_again_that_contradicts_its_release_is_refused(folder, place, value, rule):
    if value == "another":
        value = "points" if "flows.parquet" in members_of(folder) else "trips"
    resealed(folder, lambda manifest: operator.setitem(holder_of(manifest, place), place[-1], value))
    assert_refused(folder, rule)


def test_trips_written_before_their_files_had_arcs_are_read(tmp_path):
    """Their manifest does not describe the columns of those files; nor may it leave out any other one."""
    folder = written(TopDown().release(trip_counts_on(regions_with_shapes()), TRIPS, Entropy.system()), tmp_path / "trips")
    for name in ("origin_lng", "origin_lat", "dest_lng", "dest_lat"):
        resealed(folder, lambda manifest, name=name: manifest["contents"]["columns"].pop(name))
    assert read_release(folder).mechanism == "top_down"
    resealed(folder, lambda manifest: manifest["contents"]["columns"].pop("lat"))
    assert_refused(folder, "contents")
