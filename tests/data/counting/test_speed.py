"""What engines cost: DuckDB beside its bare query, and two workers of Dask against one.

Ratios of alternating runs on one machine. Two processors share one memory, which counting is bound by: two plain processes are 1.5 to
1.8 times as fast as one.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpviz as dv
from dpviz.data.bounding import bound_of
from dpviz.data.counting.dask import DaskCluster, count_with_client
from dpviz.data.counting.dask_cluster import connect
from dpviz.data.counting.job import Job, Progress, XyColumns
from tests.data.counting.lattice import cells_on

BOUNDS, ORDER, GROUP = (-125.0, 25.0, -65.5, 50.0), 10, 2**20
DOMAIN = dv.Domain(bounds=BOUNDS, crs="EPSG:4326", order=ORDER)
MEMORY, MOST_MEMORY, MILLION = 2 * 2**30, 3 * 2**30, 1_000_000
_RUN = """
import json, resource, sys, time
from pathlib import Path
import pyarrow.parquet as pq
import dpviz as dv
import duckdb
from dpviz.data.counting.job import Job, Progress, XyColumns
from dpviz.data.counting.block import StreamSettings
from dpviz.data.counting.engines import count_stream
from tests.data.counting.lattice import cells_on

which, path, folder, bounds, order, memory = json.loads(sys.argv[1])
west, south, east, north = bounds
side = 2**order
across, up = side / (east - west), side / (north - south)


def bare():
    options = {"threads": 2, "memory_limit": f"{memory // 1024}KiB", "temp_directory": folder, "preserve_insertion_order": "false"}
    column = f"cast(floor((lon - {west}::double) * {across!r}::double) as bigint)"
    row = f"cast(floor((lat - {south}::double) * {up!r}::double) as bigint)"
    inside = f"lon >= {west} and lon < {east} and lat >= {south} and lat < {north}"
    query = f"select {row} * {side} + {column} as place, count(*) as n from read_parquet('{path}') where {inside} group by 1"
    return int(duckdb.connect(config=options).execute(query).fetchnumpy()["n"].sum())


def engine():
    domain = dv.Domain(bounds=tuple(bounds), crs=None, order=order)
    finder = cells_on(XyColumns(x="lon", y="lat"), domain)
    job = Job(files=(Path(path),), format="Parquet", schema=pq.read_schema(path), finder=finder)
    return int(count_stream(job, Progress(), StreamSettings(memory=memory, threads=2, folder=Path(folder))).counts.sum())


wall, cpu = time.perf_counter(), time.process_time()
records = {"bare": bare, "engine": engine}[which]()
spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
print(json.dumps(spent | {"records": records, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def write_points(path, rows, people=0):
    """Clustered points in two columns of float32, a row group at a time; with `people`, a third column says whose they are."""
    rng = np.random.default_rng(1)
    west, south, east, north = BOUNDS
    centres = rng.uniform((west + 1, south + 1), (east - 1, north - 1), (300, 2)).astype(np.float32)
    shares = np.cumsum(rng.dirichlet(np.full(300, 0.3)))
    schema = pa.schema([("lon", pa.float32()), ("lat", pa.float32())] + [("person", pa.int64())] * bool(people))
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression=None) as file:
        for start in range(0, rows, GROUP):
            size = min(GROUP, rows - start)
            places = centres[np.minimum(np.searchsorted(shares, rng.random(size)), 299)]
            places += rng.standard_normal((size, 2), dtype=np.float32) * np.float32(0.7)
            persons = [rng.integers(0, people, size)] if people else []
            file.write_table(pa.table([places[:, 0].copy(), places[:, 1].copy(), *persons], schema=schema))
    return path


def spent(which, path, folder):
    """Seconds of clock and of processors, records, and the most memory, of a process of its own."""
    job = json.dumps([which, str(path), str(folder), BOUNDS, ORDER, MEMORY])
    root = Path(dv.__file__).parents[1]
    script = folder / "run.py"  # with -c, DuckDB takes the process for a console, and draws its progress there
    script.write_text(_RUN)
    done = subprocess.run(
        [sys.executable, str(script), job], check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(root)}
    )
    return json.loads(done.stdout)


def compared(rows, folder, repeats):
    """The least that either spent, taken in turns, on as many points."""
    path = write_points(folder / "points.parquet", rows)
    runs = {"bare": [], "engine": []}
    for _ in range(repeats):
        for which, found in runs.items():
            found.append(spent(which, path, folder))
    path.unlink()
    return {
        which: {kind: (max if kind == "peak" else min)(run[kind] for run in found) for kind in found[0]} for which, found in runs.items()
    }


@pytest.mark.benchmark
@pytest.mark.timeout(1800)
def test_the_pass_costs_little_more_than_the_bare_query(tmp_path):
    table = {rows: compared(rows, tmp_path, repeats) for rows, repeats in ((10_000_000, 4), (50_000_000, 3), (200_000_000, 3))}
    print("\n   records  query   wall s  cpu s  peak MB")
    for rows, found in table.items():
        assert found["bare"]["records"] == found["engine"]["records"] > 0.9 * rows
        for which, run in found.items():
            print(f"{rows:>10,}  {which:<6} {run['wall']:7.1f} {run['cpu']:6.1f} {run['peak'] / 2**20:8.0f}")
    engine = {rows: found["engine"] for rows, found in table.items()}
    assert engine[200_000_000]["cpu"] < 1.3 * table[200_000_000]["bare"]["cpu"]
    assert engine[200_000_000]["cpu"] < 1.3 * 20 * engine[10_000_000]["cpu"]
    assert max(run["peak"] for run in engine.values()) < MOST_MEMORY


@pytest.mark.benchmark
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("millions", "people"), [(50, 0), (10, MILLION)], ids=["50 million points", "10 million of people"])
def test_two_workers_count_faster_than_one(tmp_path, capsys, millions, people):
    path = write_points(tmp_path / "points.parquet", millions * MILLION, people)
    options = {"person": "person", "bound": bound_of(5, b"k")} if people else {}
    finder = cells_on(XyColumns(x="lon", y="lat"), DOMAIN)
    job = Job(files=(path,), format="Parquet", schema=pq.read_schema(path), finder=finder, drop=True, **options)
    seconds, found = {1: [], 2: []}, {}
    with ExitStack() as stack:
        clients = {workers: stack.enter_context(connect(DaskCluster(workers=workers))) for workers in seconds}
        for run in range(4):
            for workers, client in clients.items():
                started = time.perf_counter()
                found[workers] = count_with_client(client, job, Progress())
                if run:  # the first warms the workers up
                    seconds[workers].append(time.perf_counter() - started)
    one, two = map(statistics.median, seconds.values())
    with capsys.disabled():
        print(f"\n{millions} million records: one worker {one:.2f} s, two {two:.2f} s, {one / two:.2f} times as fast")
    assert np.array_equal(found[1].cells, found[2].cells)
    assert np.array_equal(found[1].counts, found[2].counts)
    assert one / two >= 1.1
