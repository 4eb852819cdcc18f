"""What is installed from the wheel works anywhere: the command, a release of a sample, and the app with its settings."""

import os
import re
import signal
import site
import socket
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
import tomli_w

from dpviz.release.files import read_release
from dpviz.view.help import PAGES
from tests.publishing.configs import POINTS

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="paths of a POSIX environment")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of what is in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, capture_output=True, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment with the wheel in it; its dependencies are those of this one. No network."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home / "env", with_pip=False, symlinks=True)
    python = home / "env" / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel], cwd=home, check=True
    )
    packages = next((home / "env" / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()), "utf-8")
    return home / "env" / "bin"


def environment(folder):
    """Environment variables of a user whose home is a folder."""
    others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    others.pop("DPVIZ_LEDGER", None)
    return others | {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}


def ran(program, folder, *words):
    return subprocess.run([program, *words], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)


def test_the_wheel_carries_the_app_its_settings_its_data_and_its_pages_of_help(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(["git", "ls-files", "assets", "sample_data"], cwd=ROOT, capture_output=True, text=True, check=False)
    bundled = [name for name in listed.stdout.split() if not Path(name).name.startswith("make") and not is_for_readers(name)]
    own = [
        "publishing/config.schema.json",
        "publishing/study.schema.json",
        "release/manifest.schema.json",
        "start/app.py",
        "start/.streamlit/config.toml",
    ]
    assert {f"dpviz/{name}" for name in (*bundled, *own, "ARCHITECTURE.md", *(f"docs/{key}.md" for key in PAGES))} <= names
    assert not any(name.startswith("tests") or Path(name).name.startswith("make") for name in names)

    assert [name for name in names if is_for_readers(name)] == [], "pictures of README and help, which no code opens"


def is_for_readers(name):
    return name.endswith(".webp") and not Path(name).name.startswith("preset_")


def test_an_index_page_has_licences_and_no_picture_or_link_that_leads_nowhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
        licences = [name for name in archive.namelist() if "/licenses/" in name]
    assert "License-Expression: Apache-2.0 AND CC-BY-4.0" in text
    assert [name.partition("/licenses/")[2] for name in licences] == ["LICENSE", "sample_data/README.md"]
    assert re.findall(r"\]\((?!https?://)", text) == []
    assert "dpviz release homes.toml --dry-run" in text


def test_it_is_what_was_installed_and_says_its_version(installed, tmp_path):
    assert ran(installed / "dpviz", tmp_path, "--version").stdout == "dpviz 0.1.0\n"
    where = ran(installed / "python", tmp_path, "-c", "import dpviz; print(dpviz.__file__)").stdout
    assert Path(where).is_relative_to(installed.parent)


@pytest.mark.parametrize(
    ("sample", "mechanism", "delta"), [("la_residents", "quadtree", {}), ("us_commuters", "top_down", {"delta": 1e-8})]
)
def test_a_large_sample_is_released(installed, tmp_path, sample, mechanism, delta):
    tables = {
        **{name: POINTS[name] for name in ("publication", "output")},
        "data": {"sample": sample},
        "mechanism": {"key": mechanism},
        "budget": {"epsilon": 1, **delta},
        "dataset": {"name": sample, "cap_epsilon": 1, **{f"cap_{name}": value for name, value in delta.items()}},
    }
    (tmp_path / "release.toml").write_text(tomli_w.dumps(tables), "utf-8")
    done = ran(installed / "dpviz", tmp_path, "release", "release.toml")
    assert done.returncode == 0, done.stderr
    assert read_release(tmp_path / "out").mechanism == mechanism


def test_the_app_starts_from_another_folder(installed, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [installed / "dpviz", "app", "--port", port, "--headless", "--no-token"]
    with (tmp_path / "log").open("wb") as log:
        app = subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), stdout=log, stderr=log)
    try:
        assert answer(app, f"http://127.0.0.1:{port}/_stcore/health") == b"ok", (tmp_path / "log").read_text("utf-8")
    finally:
        app.send_signal(signal.SIGINT)
        app.wait(timeout=120)


def answer(app, address):
    """The first answer of the app within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end and app.poll() is None:
        with suppress(OSError), urllib.request.urlopen(address, timeout=5) as reply:  # noqa: S310  (the address is ours)
            return reply.read()
        time.sleep(0.2)
    return None
