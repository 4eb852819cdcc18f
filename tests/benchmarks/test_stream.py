"""What the counting of blocks costs beside a bare query of DuckDB that finds the same cells, without a check of a single row.

    pytest -n 0 -s -m benchmark tests/benchmarks/test_stream.py

Each measurement is a process of its own, the two take turns, and the table shows processor time and ratios in one run. The environment
variable STREAM_ROWS sets another number of rows than 20 million. What persons cost is in test_person.py.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dpviz as dv

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

ROWS, GROUP, TIMES = int(os.environ.get("STREAM_ROWS", "20000000")), 2**20, 3
TIMES_BARE, MOST_BYTES = 1.15, 1.2e9
_RUN = """
import json, resource, sys, time
from pathlib import Path
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import dpviz as dv
from dpviz.data.counting.job import Job, LeafColumn, Pairs, Progress, XyColumns
from dpviz.data.counting.engines import count_stream
from dpviz.data.leaf_ids import LeafIds
from tests.data.counting.lattice import cells_on

which, what, path = sys.argv[1:]
domain = dv.Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=10)
ids = LeafIds(texts=tuple(f"{leaf:05}" for leaf in range(1000)))


def bare():
    cell = "cast(floor(y * 1024::double) as bigint) * 1024 + cast(floor(x * 1024::double) as bigint)"
    cell = "origin, destination" if what == "pairs" else cell
    within = "true" if what == "pairs" else "x >= 0 and x < 1 and y >= 0 and y < 1"
    return duckdb.sql(f"select {cell}, count(*) as n from '{path}' where {within} group by all").fetchnumpy()["n"].sum()


def stream():
    sides = [LeafColumn(region=name, leaves=ids) for name in ("origin", "destination")]
    finder = Pairs(origin=sides[0], destination=sides[1]) if what == "pairs" else cells_on(XyColumns(x="x", y="y"), domain)
    is_text = path.endswith(".csv")
    schema = pa.schema([(name, pa.string()) for name in ("x", "y")]) if is_text else pq.read_schema(path)
    size = Path(path).stat().st_size
    job = Job(files=(Path(path),), format="CSV" if is_text else "Parquet", schema=schema, finder=finder, size=size)
    return count_stream(job, Progress()).counts.sum()


wall, cpu = time.perf_counter(), time.process_time()
records = int(globals()[which]())
spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
print(json.dumps(spent | {"records": records, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def write(path, what):
    rng, names = np.random.default_rng(1), pa.array([f"{leaf:05}" for leaf in range(1000)])
    file = None
    for size in (min(GROUP, ROWS - start) for start in range(0, ROWS, GROUP)):
        if what == "pairs":
            table = pa.table({name: names.take(pa.array((1000 * rng.random(size) ** 2).astype(int))) for name in ("origin", "destination")})
        else:
            table = pa.table(dict(zip("xy", rng.normal(0.5, 0.15, (2, size)).clip(0, 0.999), strict=True)))
        if file is None:
            kind = pacsv.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
            file = kind(str(path), table.schema)
        file.write_table(table)
    file.close()


def spent(which, what, path):
    script = path.with_name("run.py")  # with -c, DuckDB takes the process for a console
    script.write_text(_RUN)
    environment = os.environ | {"PYTHONPATH": str(Path(dv.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(script), which, what, str(path)], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(("what", "ending"), [("points", "parquet"), ("pairs", "parquet"), ("points", "csv")])
def test_blocks_beside_a_bare_query(tmp_path, what, ending):
    path = tmp_path / f"rows.{ending}"
    write(path, what)
    runs = {"bare": [], "stream": []}
    for _ in range(TIMES):
        for which, found in runs.items():
            found.append(spent(which, what, path))
    path.unlink()
    cpu = {which: statistics.median(run["cpu"] for run in found) for which, found in runs.items()}
    peak = max(run["peak"] for run in runs["stream"])
    print(f"\n{what}, {ending}, {ROWS:,} rows: {cpu}, {cpu['stream'] / cpu['bare']:.2f} times the bare query, {peak / 2**20:.0f} MB")
    assert len({run["records"] for found in runs.values() for run in found}) == 1
    assert peak <= MOST_BYTES
    assert cpu["stream"] <= TIMES_BARE * cpu["bare"]
