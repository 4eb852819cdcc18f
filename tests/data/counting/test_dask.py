"""The counting pass on a real cluster gives what the pass in memory gives, whatever happens to a worker or scheduler on the way.

Workers of this machine are shut off from the network and leave nothing behind.
"""

import logging
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import dask
import geopandas as gpd
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from distributed import Client, LocalCluster

from dpviz.data.bounding import People, bound_of
from dpviz.data.cell_counts import count_rows
from dpviz.data.counting import dask as count_dask
from dpviz.data.counting import dask_cluster
from dpviz.data.counting.dask import DaskCluster, count_with_client, count_with_dask
from dpviz.data.counting.dask_cluster import connect
from dpviz.data.counting.job import GeometryColumn, Job, LeafColumn, Pairs, PointCells, Progress, XyColumns
from dpviz.data.counting.scheduler import Scheduler
from dpviz.data.leaf_ids import LeafIds
from dpviz.data.reading import safety
from dpviz.data.reading.safety import PREFIX
from dpviz.errors import DpvizError, InputError
from dpviz.space.domain import Domain
from dpviz.space.leaf_lookup import LeafLookup
from dpviz.space.mask import CellMask
from dpviz.space.regions import Regions
from tests.data.counting.lattice import cells_on
from tests.data.reading.files import refused

slow = pytest.mark.slow  # workers in processes of their own; within this process the engine is in test_files, test_text_rows, test_tables
linux = pytest.mark.skipif(sys.platform != "linux", reason="signals and processes as on Linux")
UNIT = Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=6)
XY = cells_on(XyColumns(x="x", y="y"), UNIT)
ROWS, GROUP = 6000, 1000
PATIENCE = 120  # seconds: on a busy machine, workers take long to start
NO_DASHBOARD = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}, "silence_logs": logging.CRITICAL}
IDS = tuple("abcdefgh")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    patient = dask.config.set({"distributed.comm.timeouts.connect": PATIENCE, "distributed.comm.timeouts.tcp": PATIENCE})
    folder = str(tmp_path_factory.mktemp("workers"))
    with patient, LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", local_directory=folder, **NO_DASHBOARD) as started:
        yield started


@pytest.fixture(scope="module")
def where(cluster):
    return DaskCluster(scheduler=Scheduler(address=cluster.scheduler_address))


@pytest.fixture(autouse=True)
def rows_of_parts(monkeypatch):
    """Sets how many rows a part has; 1,000 unless called."""

    def change(rows):
        monkeypatch.setattr(count_dask, "_LEAST_ROWS_PER_PART", rows)
        monkeypatch.setattr(count_dask, "_MOST_ROWS_PER_PART", rows)

    change(GROUP)
    return change


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(8)
    x, y = rng.uniform(-0.02, 1.02, (2, ROWS))
    ends = rng.choice([*IDS, "nowhere"], (2, ROWS))
    return pa.table(
        {
            "x": pa.array(x.astype(np.float32)),
            "y": pa.array(np.where(np.arange(ROWS) % 997 == 0, np.nan, y)),
            "x2": rng.uniform(0.0, 1.0, ROWS),
            "y2": rng.uniform(0.0, 1.0, ROWS),
            "from": pa.array(ends[0]),
            "to": pa.array(ends[1]),
            "n": pa.array(rng.integers(-1, 5, ROWS)),
            "who": pa.array([None if person == 13 else f"person {person}" for person in rng.zipf(1.4, ROWS) % 900]),
            "number": pa.array(rng.zipf(1.4, ROWS) % 900),
            "WKB": shapely.to_wkb(shapely.points(x, y)),
            "point": pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"]),
        }
    )


@pytest.fixture(scope="module")
def file(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "points.parquet"
    pq.write_table(table, path, row_group_size=GROUP)
    return path


def job_of(file, finder=XY, **options):
    """A pass over one Parquet file, that drops bad rows unless `drop=False` is passed."""
    return Job(files=(file,), format="Parquet", schema=pq.read_schema(file), finder=finder, **{"drop": True} | options)


def in_memory(job, table):
    """What the pass in memory gives."""
    columns = {name: table.column(name) for name in job.columns}
    weight = None if job.count is None else job.weights(columns[job.count])
    people = None
    if job.person is not None:
        encoded = job.persons(columns[job.person]).combine_chunks().dictionary_encode()
        people = People(codes=encoded.indices.fill_null(-1).to_numpy().astype(np.int64), distinct=encoded.dictionary.to_pylist())
    return count_rows(job.finder.cells(columns), weight, people, job.bound, job.finder.size)


def assert_same(one, other):
    assert one.cells.tolist() == other.cells.tolist()
    assert one.counts.tolist() == other.counts.tolist()
    assert (one.outside, one.bad, one.over) == (other.outside, other.bad, other.over)


MASKED = replace(UNIT, mask=CellMask.from_open(np.arange(64).reshape(8, 8) % 3 > 0))
PLACINGS = {
    "x and y": XY,
    "x and y, masked": cells_on(XyColumns(x="x", y="y"), MASKED),
    "WKB": cells_on(GeometryColumn(geometry="WKB", encoding="WKB"), UNIT),
}
PLACINGS |= {"geoarrow": cells_on(GeometryColumn(geometry="point", encoding="point"), UNIT)}
STARTS, ENDS = LeafColumn(region="from", leaves=LeafIds(texts=IDS)), LeafColumn(region="to", leaves=LeafIds(texts=IDS[:5]))
PLACINGS |= {"ids": Pairs(origin=STARTS, destination=ENDS)}
SQUARES = gpd.GeoDataFrame({"area": ["a", "b"]}, geometry=shapely.box([0, 0.5], 0, [0.5, 1], 1), crs="EPSG:4326")
LOOKUP = LeafLookup.from_regions(Regions.from_table(SQUARES, levels=["area"]))
CORNERS = [PointCells(points=XyColumns(x=x, y=y), find=LOOKUP.find, size=2) for x, y in (("x", "y"), ("x2", "y2"))]
PLACINGS |= {"pairs of coordinates": Pairs(origin=CORNERS[0], destination=CORNERS[1])}


@slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {"count": "n"}) for kind in PLACINGS),
        ("WKB", {"person": "who", "bound": bound_of(2, b"k")}),
        ("x and y", {"person": "who", "bound": bound_of(3, b"k"), "count": "n"}),
        ("geoarrow", {"person": "number", "bound": bound_of(4, b"other", distinct=True), "count": "n"}),
        ("ids", {"person": "who", "bound": bound_of(9, b"k", fewer="drop")}),
    ],
)
def test_places_and_what_people_keep_are_those_of_the_pass_in_memory(where, file, table, kind, options):
    job = job_of(file, PLACINGS[kind], **options)
    found = count_with_dask(job, cluster=where)
    assert_same(found, in_memory(job, table))
    assert min(found.outside, found.bad, found.over if job.person else 1) > 0
    assert repr(found) == "CellCounts()"


@slow
@pytest.mark.parametrize("person", ["who", None])
def test_a_worker_that_is_killed_changes_nothing(cluster, where, table, tmp_path, monkeypatch, rows_of_parts, person):
    rows_of_parts(200)
    monkeypatch.setattr(count_dask, "_ROWS_PER_PARTITION", 1000)
    pq.write_table(table, tmp_path / "points.parquet", row_group_size=200)
    job = job_of(tmp_path / "points.parquet", person=person, bound=None if person is None else bound_of(3, b"k"))
    with Client(cluster, set_as_default=False) as client:
        victims = list(client.run(os.getpid).values())
    killed, shares = [], []

    def kill(done):
        shares.append(done)
        if not killed and (0.05 < done < 1 or len(shares) == 3):  # the first comes before the work
            os.kill(victims[0], signal.SIGKILL)
            killed.append(done)

    assert_same(count_with_dask(job, Progress(progress=kill), where), in_memory(job, table))
    assert killed


GOOD = cells_on(XyColumns(x="x", y="x2"), UNIT)
REFUSED = [(XY, {}, "Column 'x' or 'y' has a cell that is no finite number")]
REFUSED += [(GOOD, {"count": "n"}, "Column 'n' has a cell that is not a whole number")]
REFUSED += [(GOOD, {"person": "who", "bound": bound_of(1, b"k")}, "'who' has a missing cell")]
REFUSED += [(PLACINGS["ids"], {"refuse_outside": True}, "has an id that is no leaf region")]
REFUSED += [(GOOD, {"person": "number", "bound": bound_of(9, b"k", fewer="refuse")}, "A person has fewer trips")]


@slow
@pytest.mark.parametrize(("finder", "options", "rule"), REFUSED)
def test_bad_rows_are_refused_by_column_and_rule(where, file, finder, options, rule):
    assert rule in refused(count_with_dask, job_of(file, finder, **options, drop=False), cluster=where)


@slow
def test_a_cut_file_and_one_of_another_schema_are_refused(where, file, table, tmp_path):
    whole, schema = file.read_bytes(), pq.read_schema(file)
    for name, content in (("cut", whole[: len(whole) // 2]), ("rotten", whole[:4] + b"\xff" * 4000 + whole[4004:])):
        (tmp_path / name).write_bytes(content)
        job = Job(files=(tmp_path / name,), format="Parquet", schema=schema, finder=XY, drop=name == "rotten")
        assert "damaged or cut short" in refused(count_with_dask, job, cluster=where)
    pq.write_table(pa.table({"x": table.column("x"), "y": table.column("who")}), tmp_path / "other")
    job = Job(files=(file, tmp_path / "other"), format="Parquet", schema=schema, finder=XY, drop=True)
    assert "do not have the same columns" in refused(count_with_dask, job, cluster=where)


@slow
def test_progress_rises_to_one_and_cancel_ends(where, file, tmp_path):
    seen, cancel = [], threading.Event()
    count_with_dask(job_of(file), Progress(progress=seen.append), where)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)
    with pytest.raises(DpvizError, match="cancelled") as caught:
        count_with_dask(job_of(file), Progress(progress=lambda done: cancel.set(), cancel=cancel), where)
    assert not isinstance(caught.value, InputError)
    pq.write_table(pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}), tmp_path / "none.parquet")
    assert not len(count_with_dask(job_of(tmp_path / "none.parquet"), cluster=where).cells)


def test_an_address_that_refuses_is_one_line(file, monkeypatch):
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 0.2)
    silent = DaskCluster(scheduler=Scheduler(address="tcp://127.0.0.1:9"))
    assert "No Dask scheduler answers at the address within" in refused(count_with_dask, job_of(file), cluster=silent)


@slow
@pytest.mark.parametrize(
    ("name", "value", "rule"), [("find_spec", None, "A Dask worker has no dpviz"), ("_own_digest", "other", "another version of dpviz")]
)
def test_workers_without_dpviz_or_with_other_code_are_refused(where, file, monkeypatch, name, value, rule):
    monkeypatch.setattr(dask_cluster, name, lambda *_name: value)
    assert rule in refused(count_with_dask, job_of(file), cluster=where)


def gone(pid):
    try:
        return psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def folder_of(spill):
    return next(parent for parent in Path(spill).parents if parent.name.startswith(PREFIX))


def assert_gone(folder, processes, seconds=30):
    end = time.monotonic() + seconds
    while (folder.exists() or not all(map(gone, processes))) and time.monotonic() < end:
        time.sleep(0.05)
    assert all(map(gone, processes))
    assert not folder.exists()


LOST = "connection to the Dask scheduler was lost"


@linux
@pytest.mark.slow
def test_own_workers_are_shut_off_and_a_lost_scheduler_is_one_line_that_leaves_nothing(file):
    job = job_of(file)
    with connect(DaskCluster(workers=1)) as client:
        assert count_with_client(client, job, Progress()).counts.sum() > 5000
        scheduler = client.run_on_scheduler(os.getpid)
        (worker,) = client.run(os.getpid).values()
        (spill,) = client.run(lambda dask_worker: dask_worker.local_directory).values()
        folder = folder_of(spill)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        sockets = [each for pid in (scheduler, worker) for each in psutil.Process(pid).net_connections() if each.status == "LISTEN"]
        assert {each.laddr.ip for each in sockets} == {"127.0.0.1"}
        kill = Progress(progress=lambda _done: gone(scheduler) or os.kill(scheduler, signal.SIGKILL))
        assert LOST in refused(count_with_client, client, job, kill)
    assert_gone(folder, [worker, scheduler])


def test_a_scheduler_without_workers_is_one_line(file, monkeypatch):
    monkeypatch.setattr(dask_cluster, "SILENT_SECONDS", 0.5)
    with LocalCluster(n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", **NO_DASHBOARD) as cluster:
        where = DaskCluster(scheduler=Scheduler(address=cluster.scheduler_address))
        assert "has had no worker for" in refused(count_with_dask, job_of(file), cluster=where)


_WAITS = """
import os, time
from dpviz.data.counting.dask_cluster import DaskCluster, connect
with connect(DaskCluster(workers=1)) as client:
    (spill,) = client.run(lambda dask_worker: dask_worker.local_directory).values()
    print(spill, client.run_on_scheduler(os.getpid), *client.run(os.getpid).values(), flush=True)
    time.sleep(60)
"""


@slow
@linux
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(sign):
    environment = os.environ | {"PYTHONPATH": str(Path(count_dask.__file__).parents[3])}
    options = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True, "env": environment}
    with subprocess.Popen([sys.executable, "-c", _WAITS], **options) as parent:
        spill, *processes = parent.stdout.readline().split()
        os.killpg(parent.pid, sign)
    assert_gone(folder_of(spill), processes)


@slow
@linux
def test_a_scheduler_that_falls_silent_is_one_line(file, monkeypatch):
    with connect(DaskCluster(workers=1)) as client:
        scheduler = client.run_on_scheduler(os.getpid)
        count_with_client(client, job_of(file), Progress())
        monkeypatch.setattr(dask_cluster, "SILENT_SECONDS", 5.0)
        stop = Progress(progress=lambda _done: os.kill(scheduler, signal.SIGSTOP))
        try:
            assert LOST in refused(count_with_client, client, job_of(file), stop)
        finally:
            os.kill(scheduler, signal.SIGCONT)


def test_workers_that_do_not_start_and_no_disk_for_spilling_are_one_line(file, monkeypatch):
    def full(**_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dask_cluster, "START_SECONDS", 0.05)
    assert "could not be started on this machine" in refused(count_with_dask, job_of(file), cluster=DaskCluster(workers=1))
    monkeypatch.setattr(safety.tempfile, "mkdtemp", full)
    assert "no folder for temporary files" in refused(count_with_dask, job_of(file))


def test_a_number_of_workers_that_makes_no_sense_is_refused():
    for options in ({"workers": 0}, {"workers": True}, {"workers": 1.5}, {"workers": 2, "scheduler": Scheduler(address="tls://h:1")}):
        assert "workers" in refused(DaskCluster, **options)
