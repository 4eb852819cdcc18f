"""Importing dpviz costs little more than importing GeoPandas, and loads nothing heavy that only few need."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ["scipy.special", "scipy.optimize", "scipy.spatial", "scipy.stats", "jsonschema", "jinja2", "tqdm", "streamlit", "altair", "pydeck"]
MOST_SECONDS = 0.5
ROUNDS = 5


def of_fresh_python(code):
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def seconds(module):
    """Processor time until a module is there: other people's load on the machine is not in it."""
    return float(of_fresh_python(f"import time, {module}; print(time.process_time())"))


def test_nothing_heavy_is_loaded_before_it_is_used():
    assert of_fresh_python(f"import sys, dpviz; print([name for name in {HEAVY} if name in sys.modules])") == "[]\n"


def test_dpviz_is_there_soon_after_geopandas():
    """The least of several rounds: a busy machine only ever adds to the work."""
    rounds = [(seconds("dpviz"), seconds("geopandas")) for _ in range(ROUNDS)]
    ours, theirs = (min(column) for column in zip(*rounds, strict=True))
    assert ours - theirs < MOST_SECONDS, f"{ours - theirs:.2f} s more than geopandas"


def test_proj_asks_no_network_whatever_the_environment_says():
    code = "import os; os.environ['PROJ_NETWORK'] = 'ON'; import dpviz; from pyproj import network; print(network.is_network_enabled())"
    assert of_fresh_python(code) == "False\n"
