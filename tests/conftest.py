"""Tests run in three processes, for many wait rather than work; what measures time or prints runs in one."""

import gc
import os
import sys

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from dpviz.__main__ import main
from dpviz.privacy.ledger import Ledger

settings.register_profile("dpviz", deadline=None)  # how long an example takes says more about the machine than about the code
settings.load_profile("dpviz")
LONGEST = ("test_psd.py", "test_published.py", "test_audits.py", "test_contract.py")


def pytest_configure():
    """Keep bytecode, whatever the environment says: each process, and each command that a test starts, would compile everything again."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_xdist_auto_num_workers(config):
    """Workers for `-n auto`: none with `-m benchmark` or `-s`."""
    alone = config.option.markexpr == "benchmark" or config.option.capture == "no"
    return 0 if alone else min(3, 1 + (os.cpu_count() or 1))


class OneBrowser(LoadFileScheduling):
    """A file runs in one process, and so do all tests that drive a browser: two at once lose clicks on a small computer."""

    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        return "browser" if "/test_browser" in file else file


def pytest_xdist_make_scheduler(config, log):
    return OneBrowser(config, log)


def pytest_collection_modifyitems(items):
    """A file runs in one process: those that take longest begin first."""
    items.sort(key=lambda item: item.path.name not in LONGEST and not item.path.name.startswith("test_browser"))


def pytest_collectstart():
    """Next to nothing is garbage until all tests are collected."""
    gc.disable()


def pytest_collection_finish():
    """What was imported stays until the end: the garbage collector need not go through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    gc.enable()


def pytest_unconfigure():
    """At the end all of it may go: DuckDB's bindings report what stays."""
    gc.unfreeze()


@pytest.fixture(scope="module")
def address():
    """A Dask scheduler with one worker, both in this process: starting workers of their own takes longer than most counts."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # any free port: two runs at once both want 8787
        protocol="tcp",
        host="127.0.0.1",
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def counted_by(address):
    """Options of `read_points` that choose an engine."""
    return lambda engine: {"engine": engine, "address": address} if engine == "dask" else {"engine": engine}


@pytest.fixture
def ledger(tmp_path_factory, monkeypatch):
    """A ledger of the test's own, still empty, that the command line uses as well."""
    ledger = Ledger.new(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    monkeypatch.setenv("DPVIZ_LEDGER", str(ledger.path))
    return ledger


@pytest.fixture
def run(capsys, ledger):
    """`run(*words)` runs the command line with that ledger, and gives its exit code, stdout and stderr."""

    def ran(*words):
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    return ran
