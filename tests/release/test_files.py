"""A release is written whole or not at all, and never one that must not be published."""

import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpviz.errors import DpvizError, RefusedError, SettingError
from dpviz.mechanisms import ExactKdtree, ExactTunedGrid, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release import files as release_files
from dpviz.release import tables as members
from dpviz.release.files import read_release, write_release, write_whole, zip_release
from dpviz.release.manifest import describe, manifest_schema
from tests.flow_cases import trips_of
from tests.often import often
from tests.release_cases import WORDS, assert_same, flows_on, point_release, points_of, regions_with_shapes, trip_release

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def written(release, folder, **options):
    return write_release(release, folder, describe(release, WORDS, created=WHEN, release_id="one"), **options)


@pytest.mark.parametrize(
    "release",
    [
        pytest.param(lambda: Quadtree().release(points_of(50), PureBudget(1), Entropy.seeded(1)), id="simulation"),
        pytest.param(lambda: ExactKdtree().release(points_of(50), PureBudget(1), Entropy.system()), id="exact kdtree"),
        pytest.param(lambda: ExactTunedGrid().release(points_of(50), PureBudget(1), Entropy.system()), id="exact tuned grid"),
        pytest.param(lambda: TopDown().release(trips_of(50), ApproxBudget(1, "1e-6"), Entropy.seeded(1)), id="trips, simulation"),
    ],
)
def test_what_must_not_be_published_is_neither_described_nor_written(release, tmp_path):
    made = release()
    with pytest.raises(RefusedError, match=r"must not be published"):
        describe(made, WORDS)
    with pytest.raises(RefusedError, match=r"must not be published"):
        write_release(made, tmp_path / "out", describe(point_release(), WORDS))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_points_has_these_files_each_with_its_digest(tmp_path):
    folder = written(point_release(), tmp_path / "out", files={"report.html": b"<p>"})
    names = {"partitions.parquet", "partitions.geojson", "partitions.csv", "levels.parquet", "levels.csv"}
    names |= {"manifest.schema.json", "report.html"}
    assert {path.name for path in folder.iterdir()} == names | {"manifest.json"}
    listed = json.loads((folder / "manifest.json").read_text("utf-8"))["files"]
    assert {entry["name"]: entry["sha256"] for entry in listed} == {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names
    }
    assert all(entry["bytes"] == (folder / entry["name"]).stat().st_size and entry["about"] for entry in listed)
    assert json.loads((folder / "manifest.schema.json").read_text("utf-8")) == manifest_schema()


def test_a_folder_of_trips_has_these_files(tmp_path):
    folder = written(TopDown().release(flows_on(regions_with_shapes()), ApproxBudget(1, "1e-6"), Entropy.system()), tmp_path / "out")
    tables = {"flows.parquet", "stages.parquet", "regions.parquet", "regions_1_state.geojson", "regions_2_town.geojson"}
    lists = {f"{kind}_{level}.csv" for kind in ("flows", "locations") for level in ("1_state", "2_town")}
    assert {path.name for path in folder.iterdir()} == tables | lists | {"manifest.json", "manifest.schema.json"}


@pytest.mark.parametrize("formats", [("csv",), ("geojson",), ("geoparquet",), ["csv", "geoparquet"]])
def test_only_the_formats_requested_are_written(formats, tmp_path):
    folder = written(point_release(), tmp_path / "out", formats=formats)
    endings = {"csv": ".csv", "geojson": ".geojson", "geoparquet": ".parquet"}
    assert {path.suffix for path in folder.iterdir()} == {".json", *(endings[each] for each in formats)}


@pytest.mark.parametrize("options", [{"formats": ("shapefile",)}, {"formats": ()}, {"formats": ("csv", "xlsx")}])
def test_other_formats_are_refused_with_the_known_ones(options, tmp_path):
    with pytest.raises(SettingError, match="geoparquet, geojson, csv"):
        written(point_release(), tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../report.html", "a/b", "", ".hidden", "manifest.json", "manifest.schema.json", "a\nb", "é.html", "x" * 200, "C:x", 3]
)
def test_further_files_need_plain_names(name, tmp_path):
    with pytest.raises(SettingError, match="plain name"):
        written(point_release(), tmp_path / "out", files={name: b""})
    assert list(tmp_path.iterdir()) == []


def test_further_files_are_bytes_and_do_not_replace_our_own(tmp_path):
    with pytest.raises(SettingError, match="bytes"):
        written(point_release(), tmp_path / "out", files={"report.html": "<p>"})
    with pytest.raises(SettingError, match="name of one of its own"):
        written(point_release(), tmp_path / "out", files={"partitions.csv": b""})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("made", ["folder", "full folder", "file", "broken link"])
def test_what_is_there_is_never_overwritten(made, tmp_path):
    target = tmp_path / "out"
    if made == "broken link":
        target.symlink_to(tmp_path / "nowhere")
    elif made == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        if made == "full folder":
            (target / "mine").write_text("mine")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(SettingError, match="exists already"):
        written(point_release(), target)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_the_manifest_must_be_that_of_the_release(tmp_path):
    other = Quadtree(height=3).release(points_of(400), PureBudget("0.1"), Entropy.system())
    manifest = describe(other, WORDS)
    for wrong in (
        manifest,
        {},
        None,
        {**describe(point_release(), WORDS), "privacy": manifest["privacy"]},
        describe(trip_release(), WORDS),
    ):
        with pytest.raises(SettingError, match="not that of this release"):
            write_release(point_release(), tmp_path / "out", wrong)
    with pytest.raises(SettingError, match="breaks its schema at manifest"):
        write_release(point_release(), tmp_path / "out", {**describe(point_release(), WORDS), "seed": 7})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_a_disk_that_does_not_take_it_leaves_nothing_behind(number, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(number, "secret path")

    monkeypatch.setattr(release_files.os, "fsync", fail)
    with pytest.raises(DpvizError, match="The release could not be written") as refusal:
        written(point_release(), tmp_path / "out")
    assert os.strerror(number) in str(refusal.value)
    assert "secret" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_no_folder_around_it_is_an_error_of_ours(tmp_path):
    with pytest.raises(DpvizError, match="No such file"):
        written(point_release(), tmp_path / "not" / "there")


def test_a_truncated_geojson_is_noticed(tmp_path, monkeypatch):
    def half(self, path, **_):
        Path(path).write_text('{"type": "FeatureCollection", "features": [')

    monkeypatch.setattr(members.geopandas.GeoDataFrame, "to_file", half)
    with pytest.raises(DpvizError, match="GeoJSON could not be written"):
        written(point_release(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def whole_or_nothing(folder: Path) -> bool:
    """Whether the target is there, after a check that it is whole if so and that nothing stands beside it."""
    assert [path.name for path in folder.iterdir()] in ([], ["out"])
    if (folder / "out").exists():
        assert_same(read_release(folder / "out"), point_release())
        return True
    return False


def lines_of(code, stop: int, raised: type[BaseException]):
    """A tracer that raises at one line of files.py, counted from the start, and counts them."""
    seen = [0]

    def trace(frame, event, _):
        if frame.f_code.co_filename != code:
            return None
        if event == "line":
            seen[0] += 1
            if seen[0] == stop:
                raise raised
        return trace

    return trace, seen


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file that was open at the interrupt
@pytest.mark.parametrize("raised", often([KeyboardInterrupt, MemoryError], 1))
def test_an_interrupt_at_any_line_leaves_the_whole_release_or_nothing(raised, tmp_path):
    release, manifest = point_release(), describe(point_release(), WORDS)
    outcomes, stop, before = [], 0, sys.gettrace()
    while True:
        stop += 1
        folder = tmp_path / str(stop)
        folder.mkdir()
        trace, seen = lines_of(release_files.__file__, stop, raised)
        sys.settrace(trace)
        try:
            write_release(release, folder / "out", manifest, formats=("geoparquet",))
        except raised:
            pass
        finally:
            sys.settrace(before)
        outcomes.append(whole_or_nothing(folder))
        if seen[0] < stop:
            break
    assert stop > 50
    assert outcomes == sorted(outcomes)
    assert outcomes[-1]
    assert outcomes.count(True) > 1  # also between the renaming and the end


KILLED = """
import os, signal, sys
from pathlib import Path
from dpviz.release import files as release_files
from dpviz.release.manifest import describe
from dpviz.release.files import read_release
from tests.release_cases import WORDS, assert_same, point_release

release, around = point_release(), Path(sys.argv[1])
manifest = describe(release, WORDS)
STEPS = [(os, "fsync"), (os, "open"), (Path, "mkdir"), (Path, "rename"), (Path, "write_bytes")]

def until(stop, late):
    seen = [0]
    def counted(call):
        def run(*args, **kwargs):
            seen[0] += 1
            if seen[0] == stop and not late:
                os.kill(os.getpid(), signal.SIGKILL)
            found = call(*args, **kwargs)
            if seen[0] == stop:
                os.kill(os.getpid(), signal.SIGKILL)
            return found
        return run
    for holder, name in STEPS:
        setattr(holder, name, counted(getattr(holder, name)))

outcomes = []
for stop in range(1, 1000):
    for late in (False, True):
        folder = around / f"{stop}{late}"
        folder.mkdir()
        child = os.fork()
        if not child:
            until(stop, late)
            release_files.write_release(release, folder / "out", manifest, formats=("geoparquet",))
            os._exit(0)
        done = os.waitpid(child, 0)[1]
        there = (folder / "out").exists()
        if there:
            assert_same(read_release(folder / "out"), release)
        outcomes.append(there)
    if done == 0:
        break
print(len(outcomes), outcomes.count(True), outcomes == sorted(outcomes), all(path.name == "out" or path.name.startswith(".out.")
      for folder in around.iterdir() for path in folder.iterdir()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_step_leaves_the_whole_release_or_nothing(tmp_path):
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, env=environment, cwd=root, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    steps, whole, ordered, named = done.stdout.split()
    assert int(steps) > 20
    assert int(whole) > 2
    assert (ordered, named) == ("True", "True")


def test_everything_is_on_the_disk_before_the_folder_has_its_name(tmp_path, monkeypatch):
    log, fsync, rename = [], os.fsync, Path.rename

    def forced(handle):
        log.append(Path(f"/proc/self/fd/{handle}").readlink().name if Path("/proc/self/fd").exists() else "?")
        fsync(handle)

    def renamed(self, target):
        log.append("renamed")
        return rename(self, target)

    monkeypatch.setattr(release_files.os, "fsync", forced)
    monkeypatch.setattr(Path, "rename", renamed)
    folder = written(point_release(), tmp_path / "out")
    before, after = log[: log.index("renamed")], log[log.index("renamed") + 1 :]
    if "?" not in log:
        assert {path.name for path in folder.iterdir()} <= set(before)
        assert before[-1].startswith(".out.")
        assert after == [tmp_path.name]
    assert len(before) == len(list(folder.iterdir())) + 1


def test_a_writer_that_fails_leaves_nothing_behind(tmp_path):
    def fill(folder):
        (folder / "half").write_text("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_whole(tmp_path / "out", fill)
    assert list(tmp_path.iterdir()) == []


def test_a_zip_is_the_same_each_time_and_holds_the_folder(tmp_path):
    folder = written(point_release(), tmp_path / "out")
    packed = zip_release(folder)
    assert packed == zip_release(folder)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_that_is_no_release_is_not_zipped(tmp_path):
    folder = written(point_release(), tmp_path / "out")
    (tmp_path / "empty").mkdir()
    (folder / "partitions.csv").unlink()
    for wrong in (folder, tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(DpvizError, match="not a whole release"):
            zip_release(wrong)
