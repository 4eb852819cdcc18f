"""What counting by person costs, beside a bare query that keeps three records of each person, and beside a sort in memory.

    pytest -n 0 -s -m benchmark tests/benchmarks/test_person.py

Each measurement is a process of its own, and the table shows ratios of seconds in one run. The environment variables PERSON_ROWS and
PERSON_PEOPLE set another size than 20 million records of 2 million people (then DuckDB alone is measured), and TMPDIR another disk.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpviz as dv

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(7200)]

ROWS, PEOPLE = int(os.environ.get("PERSON_ROWS", "20000000")), int(os.environ.get("PERSON_PEOPLE", "2000000"))
USUAL = "PERSON_ROWS" not in os.environ
SIDE, LEAVES, MOST, GROUP = 1024, 1000, 3, 2**20
TIMES_BARE, TIMES_LEXSORT, MOST_BYTES = 1.8, 1.5, 1.2e9
"""Bars: seconds beside the bare query, and beside the sort; memory of a count in DuckDB."""
_RUN = """
import json, resource, sys, tempfile, time
from pathlib import Path
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import dpviz as dv
from dpviz.data.bounding import bound_of
from dpviz.data.counting.job import Job, LeafColumn, Pairs, Progress, XyColumns
from dpviz.data.counting.block import StreamSettings
from dpviz.data.counting.engines import count_stream
from dpviz.data.leaf_ids import LeafIds
from tests.data.counting.lattice import cells_on

which, path, folder, side, leaves, most = json.loads(sys.argv[1])
domain = dv.Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=10)
ids = LeafIds(texts=tuple(f"{leaf:05}" for leaf in range(leaves)))
bound = bound_of(most, b"key")


def bare():
    options = {"threads": 2, "temp_directory": folder, "preserve_insertion_order": "false"}
    cell = f"cast(floor(y * {side}::double) as integer) * {side} + cast(floor(x * {side}::double) as integer)"
    rows = f"select person, {cell} as cell from '{path}'"
    kept = f"select unnest(min_by(cell, hash(person, cell), {most})) as cell from ({rows}) group by person"
    return int(duckdb.connect(config=options).execute(f"select cell, count(*) as n from ({kept}) group by cell").fetchnumpy()["n"].sum())


def engine(finder, **options):
    schema = pq.read_schema(path)
    job = Job(files=(Path(path),), format="Parquet", schema=schema, finder=finder, person="person", bound=bound, **options)
    return int(count_stream(job, Progress(), StreamSettings(threads=2, folder=Path(folder))).counts.sum())


def records():
    finder = cells_on(XyColumns(x="x", y="y"), domain)
    job = Job(files=(Path(path),), format="Parquet", schema=pq.read_schema(path), finder=finder)
    return int(count_stream(job, Progress(), StreamSettings(threads=2, folder=Path(folder))).counts.sum())


def points():
    return engine(cells_on(XyColumns(x="x", y="y"), domain))


def trips():
    return engine(
        Pairs(origin=LeafColumn(region="origin", leaves=ids), destination=LeafColumn(region="destination", leaves=ids)), refuse_outside=True
    )


def lexsort():
    return len(np.lexsort((cells, table["person"].to_numpy())))


def memory():
    x, y, person = (table[name].to_numpy() for name in ("x", "y", "person"))
    return int(dv.PointCounts.from_xy(x, y, domain=domain, person=person, contributions=most, key=b"key").count.sum())


if which in ("lexsort", "memory"):
    table = pq.read_table(path)
    cells = (table["y"].to_numpy() * side).astype(np.int64) * side + (table["x"].to_numpy() * side).astype(np.int64)
wall, cpu = time.perf_counter(), time.process_time()
records = globals()[which]()
spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
print(json.dumps(spent | {"records": records, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def write_points(path, *, texts=False):
    """Points in two columns of float32, and whose they are: numbers, or the same numbers with a letter in front."""
    rng = np.random.default_rng(1)
    schema = pa.schema([("x", pa.float32()), ("y", pa.float32()), ("person", pa.string() if texts else pa.int64())])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression=None) as file:
        for size in sizes():
            x, y = np.clip(rng.normal(0.5, 0.15, (2, size)), 0.0, 0.999).astype(np.float32)
            person = rng.integers(0, PEOPLE, size)
            people = pa.array(np.char.add("p", person.astype(np.str_))) if texts else pa.array(person)
            file.write_table(pa.table([x, y, people], schema=schema))
    return path


def write_trips(path):
    """Trips between regions of which some are much more frequent, and whose they are."""
    rng = np.random.default_rng(2)
    names = pa.array([f"{leaf:05}" for leaf in range(LEAVES)])
    with pq.ParquetWriter(path, pa.schema([(name, pa.string()) for name in ("origin", "destination")] + [("person", pa.int64())])) as file:
        for size in sizes():
            ends = [names.take(pa.array((LEAVES * rng.random(size) ** 2).astype(np.int64))) for _ in range(2)]
            file.write_table(pa.table([*ends, rng.integers(0, PEOPLE, size)], schema=file.schema))
    return path


def sizes():
    return [min(GROUP, ROWS - start) for start in range(0, ROWS, GROUP)]


def spent(which, path):
    """Seconds of clock and of processors, records, and the most memory, of a process of its own."""
    script = path.with_name("run.py")
    script.write_text(_RUN)
    job = json.dumps([which, str(path), str(path.parent), SIDE, LEAVES, MOST])
    environment = os.environ | {"PYTHONPATH": str(Path(dv.__file__).parents[1])}
    done = subprocess.run([sys.executable, str(script), job], capture_output=True, text=True, env=environment)  # noqa: PLW1510
    return json.loads(done.stdout) if done.returncode == 0 else None


def show(title, runs):
    """Print what the runs cost, and how many times the first one they took."""
    first = next((run for run in runs.values() if run), None)
    print(f"\n{title}, {ROWS:,} of {PEOPLE:,} people\n{'':<28}  wall s  cpu s  peak MB   wall   cpu")
    for what, run in runs.items():
        if run is None:
            print(f"{what:<28}  failed (memory)")
            continue
        ratios = f"{run['wall'] / first['wall']:6.2f} {run['cpu'] / first['cpu']:5.2f}"
        print(f"{what:<28} {run['wall']:7.1f} {run['cpu']:6.1f} {run['peak'] / 2**20:8.0f}  {ratios}  {run['records']:,} kept")


def cheapest(which, path, times=2):
    """The run of the least processor time; None where it failed."""
    runs = [spent(which, path) for _ in range(times if USUAL else 1)]
    return None if None in runs else min(runs, key=lambda run: run["cpu"])


@pytest.mark.parametrize("texts", [False, True] if USUAL else [False], ids=["numbers", "texts"][: 1 + USUAL])
def test_points_beside_a_bare_query(tmp_path, texts):
    path = write_points(tmp_path / "points.parquet", texts=texts)
    runs = {"bare min_by(cell, hash, 3)": cheapest("bare", path)} if USUAL else {}  # beyond that it needs more memory than there is
    runs |= {"duckdb by person": cheapest("points", path), "duckdb by record": cheapest("records", path)}
    show("points, people as texts" if texts else "points, people as numbers", runs)
    assert runs["duckdb by person"]["records"] > 0
    assert runs["duckdb by person"]["peak"] <= MOST_BYTES
    if USUAL:
        assert runs["duckdb by person"]["wall"] <= TIMES_BARE * runs["bare min_by(cell, hash, 3)"]["wall"]
    path.unlink()


def test_trips(tmp_path):
    path = write_trips(tmp_path / "trips.parquet")
    run = cheapest("trips", path)
    show("trips", {"duckdb by person": run})
    assert run["records"] > 0
    assert run["peak"] <= MOST_BYTES
    path.unlink()


@pytest.mark.skipif(not USUAL, reason="larger than memory")
def test_memory_beside_a_lexsort(tmp_path):
    path = write_points(tmp_path / "points.parquet")
    runs = {"lexsort of (person, cell)": cheapest("lexsort", path), "numpy": cheapest("memory", path)}
    show("in memory", runs)
    assert runs["numpy"]["records"] > 0
    assert runs["numpy"]["wall"] <= TIMES_LEXSORT * runs["lexsort of (person, cell)"]["wall"]
    path.unlink()
