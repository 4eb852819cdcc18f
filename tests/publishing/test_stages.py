"""A release enters the module that reads private data once per stage, reads each file once, and nothing private before all is checked."""

import sys
import threading
from contextlib import contextmanager

import pytest

from dpviz.data.counting import files as counting
from dpviz.data.reading import sources as finding
from dpviz.publishing import private_data
from tests.often import often
from tests.publishing.configs import FLOWS, POINTS, changed, written

AREAS = {
    **FLOWS,
    "data": {"points": "trips.csv", "region": "to", "count": "count"},
    "mechanism": {"key": "region_tree"},
    "budget": {"epsilon": 1},
}
AREAS["dataset"] = {"name": "trips", "unit": "record", "cap_epsilon": 2}
CASES = {"points": POINTS, "trips": FLOWS, "areas": AREAS}
STAGES = ["open_sources", "make_frame", "read_data"]


@contextmanager
def entered(module):
    """The names of the functions of a module that others call, in the order of the calls, on all threads."""
    names, lock = [], threading.Lock()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename == module.__file__ and frame.f_back.f_code.co_filename != module.__file__:
            with lock:
                names.append(frame.f_code.co_name)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield names
    finally:
        threading.setprofile(None)
        sys.setprofile(before)


@contextmanager
def calls(monkeypatch, module, *names):
    """How often functions of a module are called by their names."""
    found = dict.fromkeys(names, 0)

    def counted(name, function):
        def call(*given, **options):
            found[name] += 1
            return function(*given, **options)

        return call

    with monkeypatch.context() as patch:
        for name in names:
            patch.setattr(module, name, counted(name, getattr(module, name)))
        yield found


@pytest.mark.parametrize("kind", CASES)
def test_a_release_enters_the_reading_of_private_data_once_per_stage(kind, run, tmp_path):
    path = written(tmp_path, CASES[kind])
    with entered(private_data) as names:
        assert run("release", path, "--dry-run", "--left-out")[0] == 0
    assert names == [*STAGES, "left_out"]
    for command in (["check", path], ["release", path]):
        with entered(private_data) as names:
            assert run(*command)[0] == 0
        assert names == STAGES, command


@pytest.mark.parametrize("kind", CASES)
def test_files_are_described_and_fingerprinted_once_and_regions_read_once(kind, run, tmp_path, monkeypatch):
    path = written(tmp_path, CASES[kind])
    with (
        calls(monkeypatch, finding, "_describe") as headers,
        calls(monkeypatch, counting, "source_fingerprints") as fingerprints,
        calls(monkeypatch, private_data, "read_regions", "find_files") as stages,
    ):
        assert run("release", path)[0] == 0
    assert headers == {"_describe": 1}
    assert fingerprints == {"source_fingerprints": 1}
    assert stages == {"read_regions": 0 if kind == "points" else 1, "find_files": 1}


def test_equal_regions_of_origins_and_destinations_are_read_once(tmp_path, monkeypatch, run):
    tables = FLOWS | {"destinations": FLOWS["regions"]}
    with calls(monkeypatch, private_data, "read_regions") as found:
        assert run("release", written(tmp_path, tables))[0] == 0
    assert found == {"read_regions": 1}


@pytest.mark.parametrize(
    ("kind", "key", "value", "text"),
    often(
        [
            ("points", "budget.rho", 0.5, "epsilon"),
            ("trips", "budget.delta", None, "delta"),
            ("points", "domain.study_area", "crowd.csv", "never taken from the data"),
            ("points", "domain.study_area", "nowhere.geojson", "cannot be read"),
            ("points", "output.folder", ".", "exists already"),
            ("points", "output.formats", ["csv"], "geoparquet"),
            ("trips", "regions.file", "trips.csv", "never taken from the data"),
            ("trips", "regions.levels", ["state", "nothing"], "nothing"),
            ("areas", "regions.file", "//share/towns.csv", "network share"),
        ],
        3,
    ),
)
def test_nothing_private_is_read_for_a_release_of_which_something_public_is_refused(kind, key, value, text, run, tmp_path, monkeypatch):
    path = written(tmp_path, changed(CASES[kind], key, value))
    monkeypatch.setattr(private_data, "find_files", lambda *_, **__: pytest.fail("private files were read"))
    code, _, err = run("release", path)
    assert code != 0
    assert text in err
