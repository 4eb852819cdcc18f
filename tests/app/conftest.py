"""An installed Chromium, and a Streamlit server on a free port, for tests that look at the app as a person does."""

import functools
import importlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner

from dpviz.app.jobs.job import Job
from dpviz.families import FAMILIES
from dpviz.privacy.ledger import Ledger
from tests.app.calls import ask

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--disable-background-networking",
    "--no-first-run",
    "--no-proxy-server",
]
PATIENCE = 120.0
MAIN = sys.modules["__main__"]  # before any test: a fixture of a whole module may run a page before a test begins


@pytest.fixture(autouse=True)
def ledger_path(tmp_path, monkeypatch):
    """A ledger of each test's own: none may write into the user's."""
    path = Ledger.new(tmp_path / "ledger.sqlite").path
    monkeypatch.setenv("DPVIZ_LEDGER", str(path))
    return path


@pytest.fixture(autouse=True)
def main_module():
    """Streamlit's tests leave a page in place of the main module, which processes that are started later would run."""
    yield
    sys.modules["__main__"] = MAIN


@pytest.fixture(autouse=True)
def wait_for_runs(monkeypatch):
    """Pages without a browser wait for the run that follows their controls, however long it takes, and runs follow each other at once."""
    monkeypatch.setattr("dpviz.app.modes.live_runs.PATIENCE", 60.0)
    monkeypatch.setattr("dpviz.app.jobs.live.SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr("dpviz.app.session.widgets.SECONDS_OF_OLDER_VALUES", 0.0)  # only a browser sends values that were replaced


@pytest.fixture(autouse=True)
def no_curves(monkeypatch):
    """Pages without a browser leave the errors over ε out, which take seven seconds of some mechanisms; their tests compute them."""
    monkeypatch.setattr("dpviz.app.modes.rail.find_curves", lambda *_: None)


@pytest.fixture(autouse=True)
def results_of_each_test():
    """No test finds results that another one made."""
    yield
    for module in filter(None, map(sys.modules.get, (f"dpviz.app.pages.{family}.page" for family in FAMILIES))):
        module.PAGE.runs.shared.clear()


@pytest.fixture(autouse=True)
def figures_end_with_their_test(monkeypatch):
    """Papers' figures that a page measures in the background draw noise, which other tests would count."""
    start, started = Job.start, list[Job]()
    monkeypatch.setattr(Job, "start", lambda job, *args: (started.append(job), start(job, *args)))
    yield
    for job in started:
        if job.kind == "figure":
            job.stop(wait=True)


@pytest.fixture(autouse=True, scope="session")
def components_found_once():
    """Streamlit looks through all installed packages for components whenever a test starts a page; they stay the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", functools.cache(manifest_scanner.scan_component_manifests))
        yield


def pytest_collection_modifyitems(items):
    """Software rendering on a busy computer loses a click now and then: a page is visited again before it is called broken."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.fixture(scope="session")
def chromium():
    """A browser driven by Playwright; skips where none is installed, unless DPVIZ_REQUIRE_BROWSER is set."""
    required = bool(os.environ.get("DPVIZ_REQUIRE_BROWSER"))
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        (pytest.fail if required else pytest.skip)("no Chromium found for the browser tests")
    sync_api = (importlib.import_module if required else pytest.importorskip)("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    """`launch(command, env)` starts a server with a ledger of its own, and gives its process, port and log; it ends with the test module.

    `command` makes the words after `python -m` from the port.
    """
    running = []

    def start(command, env=()):
        folder, port = tmp_path_factory.mktemp("server"), _free_port()
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        variables = {**os.environ, "PYTHONPATH": paths, "DPVIZ_LEDGER": str(folder / "ledger.sqlite"), **dict(env)}
        if not Path(variables["DPVIZ_LEDGER"]).exists():
            Ledger.new(variables["DPVIZ_LEDGER"])
        log = folder / "log.txt"
        with log.open("wb") as output:
            words = [sys.executable, "-m", *command(port)]
            running.append(subprocess.Popen(words, cwd=ROOT, env=variables, stdout=output, stderr=subprocess.STDOUT))
        _wait(running[-1], port, log)
        return running[-1], port, log

    yield start
    for process in running:
        _stop(process)


@pytest.fixture(scope="module")
def serve(launch):
    """`serve(script, *options, env)` gives the address of a Streamlit server; `options` are those of its command line."""
    settings = ("server.headless=true", "server.address=127.0.0.1", "browser.gatherUsageStats=false", "server.fileWatcherType=none")
    fixed = [f"--{setting}" for setting in settings]

    def start(script, *options, env=()):
        _, port, _ = launch(lambda port: ["streamlit", "run", str(script), *fixed, f"--server.port={port}", *options], env)
        return f"http://127.0.0.1:{port}"

    return start


@pytest.fixture(scope="module")
def address(serve):
    """The address of a server with the whole app."""
    return serve(ROOT / "app.py")


@pytest.fixture(scope="module")
def dpviz_app(launch):
    """`dpviz_app(*options)` runs `dpviz app` and gives its process, the address that it prints, and all that it prints."""

    def start(*options):
        process, _, log = launch(lambda port: ["dpviz", "app", "--headless", f"--port={port}", *options])
        text = log.read_text()
        return process, text.split()[1], text

    return start


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait(process, port, log):
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        if _healthy(port):
            return
        time.sleep(0.05)
    _stop(process)
    pytest.fail(f"Streamlit did not start within {PATIENCE:g} s:\n{log.read_text(errors='replace')[-3000:]}")


def _healthy(port):
    try:
        return ask(f"http://127.0.0.1:{port}", "/_stcore/health")[0] in (200, 403)  # with a token, nothing is open
    except OSError:
        return False


def _stop(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
