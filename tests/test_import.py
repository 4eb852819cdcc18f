"""Importing dpviz loads no extra and nothing heavy that only few need, and asks no network."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ["scipy.special", "scipy.optimize", "scipy.spatial", "scipy.stats", "jsonschema", "jinja2", "tqdm"]
EXTRAS = ["streamlit", "pydeck", "altair", "duckdb", "dask", "distributed", "matplotlib", "xarray", "dpviz.view.notebook"]
CODE = f"""
import json, os, sys
os.environ["PROJ_NETWORK"] = "ON"
import dpviz
loaded = [name for name in {HEAVY + EXTRAS} if name in sys.modules]
from pyproj import network
print(json.dumps([loaded, network.is_network_enabled()]))
"""


def test_a_fresh_python_loads_little_and_asks_no_network_whatever_the_environment_says():
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], False]
