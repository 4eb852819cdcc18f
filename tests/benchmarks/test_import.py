"""Importing dpviz, all of it used, against importing geopandas in the same run: pytest -m benchmark."""

import os
import subprocess
import sys

import pytest

from tests.benchmarks.measures import best

pytestmark = pytest.mark.benchmark


def test_importing_dpviz_takes_no_time_and_using_it_no_more_than_geopandas_twice(line, tmp_path):
    """As installed: the first run writes the bytecode, which an environment may forbid, and which takes longest to make."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def seconds(code):
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment), 5)

    geopandas = seconds("import geopandas")
    line("import dpviz, every public name", seconds("import dpviz; dpviz.Domain"), geopandas, "import geopandas", 1.9)
    line("import dpviz, no name used", seconds("import dpviz"), geopandas, "import geopandas", 0.3)
