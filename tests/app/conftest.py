"""An installed Chromium, and a Streamlit server on a free port, for tests that look at the app as a person does."""

import functools
import http.client
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
PATIENCE = 40.0
MAIN = sys.modules["__main__"]  # before any test: a fixture of a whole module may run a page before a test begins


@pytest.fixture(autouse=True)
def ledger_path(tmp_path, monkeypatch):
    """A ledger of each test's own: none may write into the one of whoever runs it."""
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("DPVIZ_LEDGER", str(path))
    return path


@pytest.fixture(autouse=True)
def main_module():
    """Streamlit's tests leave a page in place of the main module, which processes that are started later would run."""
    yield
    sys.modules["__main__"] = MAIN


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
    """A browser driven by Playwright; skips where none is installed."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        if os.environ.get("DPVIZ_REQUIRE_BROWSER"):
            pytest.fail("no Chromium found, and DPVIZ_REQUIRE_BROWSER says that the browser tests must run")
        pytest.skip("no Chromium found: browser tests skipped")
    load = importlib.import_module if os.environ.get("DPVIZ_REQUIRE_BROWSER") else pytest.importorskip
    sync_api = load("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """`serve(script, *options, env=None, cwd=None)` gives the address of a Streamlit server that ends with the test module.

    `options` are command line options such as "--theme.base=dark"; `env` adds to the environment; `cwd` (else the
    repository, with its settings) is where `.streamlit` is looked for. Each server has a ledger of its own.
    """
    running = []

    def start(script, *options, env=None, cwd=None):
        folder = tmp_path_factory.mktemp("serve")
        log = (folder / "log.txt").open("w+b")
        port = _free_port()
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            _command(script, port, options),
            cwd=cwd or ROOT,
            env={**os.environ, "PYTHONPATH": paths, "DPVIZ_LEDGER": str(folder / "ledger.sqlite"), **(env or {})},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        running.append((process, log))
        _wait(process, port, log)
        return f"http://127.0.0.1:{port}"

    yield start
    for process, log in running:
        _stop(process)
        log.close()


@pytest.fixture(scope="module")
def dpviz_app(tmp_path_factory):
    """`dpviz_app(*options)` runs `dpviz app` and gives its process, the address that it prints and what it said, for the test module."""
    running = []

    def start(*options):
        folder, port = tmp_path_factory.mktemp("app"), _free_port()
        log = (folder / "log.txt").open("w+b")
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [sys.executable, "-m", "dpviz", "app", "--headless", f"--port={port}", *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths, "DPVIZ_LEDGER": str(folder / "ledger.sqlite")},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        running.append((process, log))
        _wait(process, port, log)
        text = Path(log.name).read_text()
        return process, text.split()[1], text

    yield start
    for process, log in running:
        _stop(process)
        log.close()


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _command(script, port, options):
    settings = {"server.headless": "true", "server.address": "127.0.0.1", "server.port": port, "browser.gatherUsageStats": "false"}
    fixed = [f"--{name}={value}" for name, value in {**settings, "server.fileWatcherType": "none"}.items()]
    return [sys.executable, "-m", "streamlit", "run", str(script), *fixed, *options]


def _wait(process, port, log):
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        if _healthy(port):
            return
        time.sleep(0.05)
    _stop(process)
    log.seek(0)
    pytest.fail(f"Streamlit did not start within {PATIENCE:g} s:\n{log.read().decode(errors='replace')[-3000:]}")


def _healthy(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status in (http.HTTPStatus.OK, http.HTTPStatus.FORBIDDEN)  # with a token, nothing is open
    except OSError:
        return False
    finally:
        connection.close()


def _stop(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
