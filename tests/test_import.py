"""Importing dpviz loads no extra and nothing heavy that only few need, and asks no network."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpviz
from dpviz.renamed import RENAMED

ROOT = Path(__file__).parents[1]
HEAVY = ["scipy.special", "scipy.optimize", "scipy.spatial", "scipy.stats", "jsonschema", "jinja2", "tqdm"]
EXTRAS = ["streamlit", "pydeck", "altair", "duckdb", "dask", "distributed", "matplotlib", "xarray", "dpviz.view.notebook"]
CODE = f"""
import json, os, sys
os.environ["PROJ_NETWORK"] = "ON"
import dpviz
dpviz.Domain
loaded = [name for name in {HEAVY + EXTRAS} if name in sys.modules]
from pyproj import network
print(json.dumps([loaded, network.is_network_enabled()]))
"""


def test_a_fresh_python_loads_little_and_asks_no_network_whatever_the_environment_says():
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], False]


@pytest.mark.parametrize("words", [["--help"], ["release", "--help"], ["--version"], ["relase"]])
def test_help_version_and_wrong_usage_load_nothing_heavy(words):
    code = f"""
import sys
from dpviz.__main__ import main
try:
    main({words})
except SystemExit:
    pass
print(sorted(sys.modules), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.strip().splitlines()[-1].strip("[]").replace("'", "").split(", "))
    assert "dpviz.cli.console" in loaded
    assert not loaded & {"numpy", "pandas", "pyarrow", "shapely", "geopandas", "scipy", *HEAVY, *EXTRAS}


def test_reports_and_cards_of_notebooks_need_no_extra():
    code = f"import sys, dpviz.view.report, dpviz.view.notebook; print([name for name in {[*EXTRAS[:-1], 'PIL']} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_there_however_they_are_asked_for():
    code = """
import dpviz as dv
assert "Domain" in dir(dv)
print(dv.privacy.noise.__name__)
from dpviz import *
print(Domain.__name__, dv.errors.__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["dpviz.privacy.noise", "Domain", "dpviz.errors"]
    with pytest.raises(AttributeError, match="no attribute 'Domian'"):
        dpviz.Domian  # noqa: B018


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Release", "PointRelease"),
        ("read_flows", "read_trips"),
        ("discrete_laplace", "noise.discrete_laplace"),
        ("SuppressedCounts", "contrasts.SuppressedCounts"),
        ("POINT_MECHANISMS", 'MECHANISMS.of("points")'),
        *RENAMED.items(),
    ],
)
def test_an_old_name_is_refused_with_the_new_one_which_is_there(old, new):
    with pytest.raises(AttributeError, match=re.escape(f"it is dv.{new} now")):
        getattr(dpviz, old)
    assert eval(f"dpviz.{new}") is not None  # noqa: S307  (our own table)
