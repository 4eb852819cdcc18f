"""Workers of this machine are shut off from the network and leave nothing behind; a scheduler that is lost is one clear line."""

import logging
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster

from dpviz.data.counting import dask as count_dask
from dpviz.data.counting import dask_cluster as count_dask_cluster
from dpviz.data.counting.dask import DaskCluster, count_with_client, count_with_dask
from dpviz.data.counting.dask_cluster import connect
from dpviz.data.counting.job import Job, Progress, XyCells
from dpviz.data.counting.scheduler import Scheduler
from dpviz.data.reading import safety as spill
from dpviz.data.reading.safety import PREFIX
from dpviz.errors import InputError
from dpviz.space.domain import Domain

XY = XyCells(x="x", y="y", domain=Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=4))


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "points.parquet"
    x, y = np.random.default_rng(3).uniform(0, 1, (2, 4000))
    pq.write_table(pa.table({"x": x, "y": y}), path, row_group_size=100)
    return Job(files=(path,), format="Parquet", schema=pq.read_schema(path), finder=XY)


def listening(processes):
    """Addresses at which any of some processes listens, as the kernel says."""
    sockets = {str(link.readlink()) for pid in processes for link in Path(f"/proc/{pid}/fd").iterdir() if os.path.lexists(link)}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and f"socket:[{cells[9]}]" in sockets:
                raw = bytes.fromhex(cells[1].split(":")[0])
                found.append(socket.inet_ntoa(raw[::-1]) if table == "tcp" else raw.hex())
    return found


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_own_workers_are_shut_off_and_a_lost_scheduler_is_one_line_that_leaves_nothing(job, monkeypatch):
    monkeypatch.setattr(count_dask, "_MOST_ROWS", 100)
    monkeypatch.setattr(count_dask, "_LEAST_ROWS", 100)
    with connect(DaskCluster(workers=1)) as client:
        assert count_with_client(client, job, Progress()).counts.sum() == 4000
        scheduler = client.run_on_scheduler(os.getpid)
        (worker,) = client.run(os.getpid).values()
        (spill,) = client.run(lambda dask_worker: dask_worker.local_directory).values()
        folder = next(parent for parent in Path(spill).parents if parent.name.startswith(PREFIX))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert set(listening([scheduler, worker])) == {"127.0.0.1"}
        with pytest.raises(InputError, match="connection to the Dask scheduler was lost") as caught:
            count_with_client(client, job, Progress(progress=lambda _done: gone(scheduler) or os.kill(scheduler, signal.SIGKILL)))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    end = time.monotonic() + 10
    while not (gone(worker) and gone(scheduler)) and time.monotonic() < end:
        time.sleep(0.05)
    assert gone(worker)
    assert gone(scheduler)
    assert not folder.exists()


def test_a_scheduler_without_workers_is_one_line(job, monkeypatch):
    monkeypatch.setattr(count_dask_cluster, "SILENT_SECONDS", 0.5)
    options = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}, "silence_logs": logging.CRITICAL}
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", **options) as cluster,
        pytest.raises(InputError, match="has had no worker for"),
    ):
        count_with_dask(job, cluster=DaskCluster(scheduler=Scheduler(address=cluster.scheduler_address)))


_WAITS = """
import os, time
from dpviz.data.counting.dask_cluster import DaskCluster, connect
with connect(DaskCluster(workers=1)) as client:
    (spill,) = client.run(lambda dask_worker: dask_worker.local_directory).values()
    print(spill, client.run_on_scheduler(os.getpid), *client.run(os.getpid).values(), flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_whoever_started_them_however_that_ends(sign):
    environment = os.environ | {"PYTHONPATH": str(Path(count_dask.__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", _WAITS], stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment
    ) as parent:
        spill, *processes = parent.stdout.readline().split()
        os.killpg(parent.pid, sign)
    folder = next(above for above in Path(spill).parents if above.name.startswith(PREFIX))
    end = time.monotonic() + 30
    while (folder.exists() or not all(map(gone, processes))) and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()
    assert all(map(gone, processes))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="stops a process")
def test_a_scheduler_that_falls_silent_is_one_line(job, monkeypatch):
    monkeypatch.setattr(count_dask, "_MOST_ROWS", 100)
    monkeypatch.setattr(count_dask, "_LEAST_ROWS", 100)
    with connect(DaskCluster(workers=1)) as client:
        scheduler = client.run_on_scheduler(os.getpid)
        count_with_client(client, job, Progress())
        monkeypatch.setattr(count_dask_cluster, "SILENT_SECONDS", 5.0)
        try:
            with pytest.raises(InputError, match="connection to the Dask scheduler was lost"):
                count_with_client(client, job, Progress(progress=lambda done: os.kill(scheduler, signal.SIGSTOP)))
        finally:
            os.kill(scheduler, signal.SIGCONT)


def test_workers_that_do_not_start_are_one_line(job, monkeypatch):
    monkeypatch.setattr(count_dask_cluster, "START_SECONDS", 0.05)
    with pytest.raises(InputError, match="could not be started on this machine"):
        count_with_dask(job, cluster=DaskCluster(workers=1))


def test_no_disk_for_spilling_is_one_line(job, monkeypatch):
    def full(**_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spill.tempfile, "mkdtemp", full)
    with pytest.raises(InputError, match="no folder for temporary files") as caught:
        count_with_dask(job)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "options", [{"workers": 0}, {"workers": True}, {"workers": 1.5}, {"workers": 2, "scheduler": Scheduler(address="tls://h:1")}]
)
def test_a_number_of_workers_that_makes_no_sense_is_refused(options):
    with pytest.raises(InputError, match="workers"):
        DaskCluster(**options)
