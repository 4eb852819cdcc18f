"""dpviz works with the lowest versions that pyproject.toml allows: a release, its files, and a handful of tests."""

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = [
    "privacy/test_budget.py",
    "space/test_domain.py",
    "release/test_tables.py",
    "release/test_files.py",
    "samples",
    "cli/test_commands.py",
]
RELEASE = """
import sys
import dpviz as dv
homes = dv.load_sample("la_residents", size=1_000)
dv.publish(homes, dv.PathTree(), dv.PureBudget(1), dataset="homes", publication={"name": "Homes", "curator": "A town"},
           folder=sys.argv[1], cap=dv.PureBudget(3), ledger=dv.Ledger(sys.argv[1] + ".sqlite"))
print(dv.read_release(sys.argv[1]).receipt.total, dv.load_flow_sample("us_flights"), dv.load_area_sample("us_residents"))
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(os.name != "posix", reason="paths of a POSIX environment"),
    pytest.mark.skipif(sys.version_info >= (3, 13), reason="the lowest versions have no wheels for this Python"),
]


def lowest():
    """The lowest allowed version of each dependency, as pip's constraints."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    return [re.sub(r">=([\d.]+).*", lambda found: f"=={found[1]}", each) for each in stated]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Python in an environment of the lowest versions, and of what runs tests."""
    home = tmp_path_factory.mktemp("lowest")
    venv.create(home / "env", with_pip=True, symlinks=True)
    install = [home / "env" / "bin" / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    done = subprocess.run([*install, *lowest(), "pytest", "pytest-xdist", "hypothesis"], capture_output=True, text=True, check=False)
    if done.returncode and re.search("No matching distribution|connection|Temporary failure|Could not fetch", done.stderr):
        pytest.skip(f"no package index that has them can be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return install[0]


def test_every_dependency_has_a_lowest_version():
    assert [each for each in lowest() if "==" not in each] == []


def test_a_release_is_made_and_read(python, tmp_path):
    done = subprocess.run([python, "-c", RELEASE, tmp_path / "homes"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("epsilon 1")


def test_a_handful_of_tests_passes(python, tmp_path):
    options = ["-q", "-o", "addopts=", "--import-mode=importlib", "-m", "not slow and not benchmark", "-o", "filterwarnings=default"]
    options += ["-p", "no:cacheprovider", "--basetemp", tmp_path / "run"]
    words = [python, "-m", "pytest", *options, *(f"tests/{name}" for name in TESTS)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5_000:]
