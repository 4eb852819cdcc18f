"""Hundreds of broken files: as many refusals in one line, by the readers and by the command line, and nothing else happens."""

import logging
import resource
import tempfile
import warnings

import pytest

from dpviz.__main__ import main
from dpviz.data.counting.files import read_points, read_trips
from dpviz.data.reading.regions import read_regions
from dpviz.errors import DpvizError, InputError
from dpviz.release.files import read_release
from tests.data.reading.broken import Broken, corpus
from tests.data.reading.files import WORLD
from tests.data.reading.whole import ENDINGS, MARKS, TABLE_FORMS, public_regions, releases, whole_files
from tests.often import often

MEGABYTES = 700
DECLARABLE = ("cells between semicolons", "utf-16")  # of points and trips: check proposes how to read them


def read(broken, path):
    """What the reader for such files gives."""
    if broken.kind == "releases":
        return read_release(path)
    if broken.kind == "regions":
        return read_regions(path)
    if broken.kind == "trips":
        return read_trips(path, regions=public_regions())
    return read_points(path, domain=WORLD, crs="EPSG:4326" if broken.form in TABLE_FORMS else None)


def assert_clear(text, what):
    """A refusal is one clear line of our own without a value or a place in it."""
    assert 15 < len(text) < 1500, (what, text)
    assert "\n" not in text, what
    for word in (*MARKS, "Traceback", "Error", "0x", tempfile.gettempdir()):
        assert word not in text, (what, text)


def tree(folder):
    return sorted((str(path), path.lstat().st_size) for path in folder.rglob("*"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return corpus(tmp_path_factory.mktemp("making"))


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder for the broken file; wherever a library could write is watched, too."""
    for name in ("TMPDIR", "TEMP", "TMP", "CPL_TMPDIR", "HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "watched"))
    monkeypatch.delenv("DPVIZ_LEDGER", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "watched"))
    (tmp_path / "watched").mkdir()
    monkeypatch.chdir(tmp_path / "watched")
    return tmp_path


def refused(broken, folder, caplog, capfd):
    """Read and check the file, and look at all that was said and written."""
    folder.mkdir()
    path, what = broken.put(folder), (broken.kind, broken.form, broken.fault)
    watched = (folder, folder.parent / "watched")
    before, error = [*map(tree, watched)], None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            read(broken, path)
        except DpvizError as found:
            error = found
        said = capfd.readouterr()
        code = main(["check", str(path)])
    checked = capfd.readouterr()
    assert error is not None, (what, "was read")
    assert isinstance(error, InputError) or broken.kind == "regions", what
    assert (error.__cause__, error.__context__) == (None, None), what
    assert_clear(str(error), what)
    is_declarable = broken.kind in ("points", "trips") and broken.form in ("csv", "tsv") and broken.fault in DECLARABLE
    if is_declarable or "bad rows: " in checked.out:  # of rows that a release leaves out, the file is still of use
        assert code == 0, (what, checked)
        assert not is_declarable or "declare it under [data]" in checked.out, what
        assert not [mark for mark in MARKS if mark in checked.out + checked.err], what
        return
    assert code == 2, (what, checked)
    assert checked.err.startswith("dpviz: "), what
    assert_clear(checked.err.strip(), what)
    assert (said.out, said.err, checked.out) == ("", "", ""), what
    assert warned == [], what
    assert not [record for record in caplog.records if any(mark in record.getMessage() for mark in MARKS)], what
    assert [*map(tree, watched)] == before, what


@pytest.mark.parametrize("step", often([4, 1], 1), ids=["a quarter", "all"])
def test_every_broken_file_is_refused(files, places, caplog, capfd, step):
    caplog.set_level(logging.DEBUG)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, broken in enumerate(files[::step]):
        refused(broken, places / f"file {number}", caplog, capfd)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024 < MEGABYTES


def test_the_whole_files_are_read(tmp_path_factory, places, capfd):
    """What was broken was whole before; nothing is written beside them but the ledger."""
    folder = tmp_path_factory.mktemp("whole")
    for (kind, form), content in whole_files(folder).items():
        broken = Broken(kind, form, "none", f"whole.{ENDINGS.get(form, form)}", content)
        path = broken.put(places)
        assert read(broken, path) is not None
        assert main(["check", str(path)]) == 0
    packed = releases(folder / "releases")
    for kind in ("points", "trips"):
        (places / "whole.zip").write_bytes(packed[f"{kind} zip"])
        assert read_release(places / "whole.zip").receipt is not None
    assert {path.name for path in (places / "watched").iterdir()} <= {"ledger.sqlite"}


def test_they_are_hundreds_of_different_files(files):
    assert len({(each.kind, each.form, each.fault) for each in files}) == len(files) > 300
