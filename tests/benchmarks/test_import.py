"""Importing dpviz, all of it used, against importing geopandas in the same run: pytest -m benchmark."""

import subprocess
import sys

import pytest

from tests.benchmarks.measures import best

pytestmark = pytest.mark.benchmark


def test_importing_dpviz_takes_little_more_than_importing_geopandas(line):
    def seconds(code):
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 5)

    geopandas = seconds("import geopandas")
    line("import dpviz, every public name", seconds("import dpviz; dpviz.Domain"), geopandas, "import geopandas", 1.3)
    line("import dpviz, no name used", seconds("import dpviz"), geopandas, "import geopandas", 0.3)
