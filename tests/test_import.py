"""Importing dpviz loads nothing heavy that only few need, and asks no network."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ["scipy.special", "scipy.optimize", "scipy.spatial", "scipy.stats", "jsonschema", "jinja2", "tqdm", "streamlit", "altair", "pydeck"]


def of_fresh_python(code):
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_nothing_heavy_is_loaded_before_it_is_used():
    assert of_fresh_python(f"import sys, dpviz; print([name for name in {HEAVY} if name in sys.modules])") == "[]\n"


def test_proj_asks_no_network_whatever_the_environment_says():
    code = "import os; os.environ['PROJ_NETWORK'] = 'ON'; import dpviz; from pyproj import network; print(network.is_network_enabled())"
    assert of_fresh_python(code) == "False\n"
