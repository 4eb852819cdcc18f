"""dpviz works with the lowest versions that pyproject.toml allows: a release, its files, and a handful of tests; then with its extras."""

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
TESTS_OF_EXTRAS = {
    "h3": ["space/test_region_builders.py"],
    "plot": ["view/test_notebook.py", "view/test_explore.py", "release/test_regular_grid.py"],
    "scale": [
        "data/counting/test_areas.py::test_dask_counts_as_numpy_does",
        "data/counting/test_duckdb.py::test_points_are_those_of_memory",
    ],
    "app": ["app/payment/test_release_files.py::TestWords"],
}
RELEASE = """
import sys
import dpviz as dv
homes = dv.load_sample("la_residents", size=1_000)
dv.publish(homes, dv.PathTree(), dv.PureBudget(1), dataset="homes", publication={"name": "Homes", "curator": "A town"},
           folder=sys.argv[1], cap=dv.PureBudget(3), ledger=dv.Ledger.new(sys.argv[1] + ".sqlite"))
print(dv.read_release(sys.argv[1]).receipt.total, dv.load_sample("us_flights"), dv.load_sample("us_residents"))
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(os.name != "posix", reason="paths of a POSIX environment"),
    pytest.mark.skipif(sys.version_info >= (3, 13), reason="the lowest versions have no wheels for this Python"),
]


def lowest(*extras):
    """The lowest allowed version of each dependency, or of those of some extras, as pip's constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stated = [each for extra in extras for each in project["optional-dependencies"][extra]] if extras else project["dependencies"]
    return sorted({re.sub(r">=([\d.]+).*", lambda found: f"=={found[1]}", each) for each in stated})


def install(python, names):
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *names], capture_output=True, text=True, check=False
    )
    if done.returncode and re.search("No matching distribution|connection|Temporary failure|Could not fetch", done.stderr):
        pytest.skip(f"no package index that has them can be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def run_tests(python, folder, names):
    options = ["-q", "-o", "addopts=", "--import-mode=importlib", "-m", "not slow and not benchmark", "-o", "filterwarnings=default"]
    options += ["-p", "no:cacheprovider", "--basetemp", folder / "run"]
    words = [python, "-m", "pytest", *options, *(f"tests/{name}" for name in names)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5_000:]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Python in an environment of the lowest versions, and of what runs tests."""
    home = tmp_path_factory.mktemp("lowest")
    venv.create(home / "env", with_pip=True, symlinks=True)
    found = home / "env" / "bin" / "python"
    install(found, [*lowest(), "pytest", "pytest-xdist", "hypothesis"])
    return found


def test_every_dependency_has_a_lowest_version():
    assert [each for each in (*lowest(), *lowest(*TESTS_OF_EXTRAS)) if "==" not in each] == []


def test_a_release_is_made_and_read(python, tmp_path):
    done = subprocess.run([python, "-c", RELEASE, tmp_path / "homes"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("epsilon 1")


def test_a_handful_of_tests_passes(python, tmp_path):
    run_tests(python, tmp_path, TESTS)


def test_the_extras_work_too(python, tmp_path):
    """Last, for they stay in the environment."""
    install(python, [*lowest(), *lowest(*TESTS_OF_EXTRAS)])
    run_tests(python, tmp_path, [name for names in TESTS_OF_EXTRAS.values() for name in names])
