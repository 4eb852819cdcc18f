"""Two workers against one, on files of fixed size; ratios of alternating runs on one machine.

Two processors share one memory, which counting is bound by: two plain processes are 1.5 to 1.8 times as fast as one.
"""

import statistics
import time
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data.bounding import bound_of
from dpviz.data.counting.dask import DaskCluster, count_with_client
from dpviz.data.counting.dask_cluster import connect
from dpviz.data.counting.job import Job, Progress, XyCells
from dpviz.space.domain import Domain

MILLION = 1_000_000
PLACING = XyCells(x="lon", y="lat", domain=Domain(bounds=(-125.0, 25.0, -65.5, 50.0), crs="EPSG:4326", order=10))
RUNS = 3


def written(path, millions, people):
    rng = np.random.default_rng(7)
    towns = rng.uniform((-120.0, 28.0), (-70.0, 46.0), (300, 2))
    kinds = [("lon", pa.float32()), ("lat", pa.float32())] + ([("person", pa.int64())] if people else [])
    with pq.ParquetWriter(path, pa.schema(kinds)) as writer:
        for _ in range(millions):
            town = rng.integers(0, len(towns), MILLION)
            places = (towns[town] + rng.normal(0.0, 0.5, (MILLION, 2))).astype(np.float32)
            columns = [places[:, 0], places[:, 1]] + ([rng.integers(0, people, MILLION)] if people else [])
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=pa.schema(kinds)), row_group_size=MILLION)
    options = {"person": "person", "bound": bound_of(5, b"k")} if people else {}
    return Job(files=(path,), format="Parquet", schema=pq.read_schema(path), finder=PLACING, drop=True, **options)


@pytest.mark.benchmark
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("millions", "people", "least"), [(50, 0, 1.1), (10, MILLION, 1.1)], ids=["50 million points", "10 million of people"]
)
def test_two_workers_count_faster_than_one(tmp_path, capsys, millions, people, least):
    job = written(tmp_path / "points.parquet", millions, people)
    seconds, found = {1: [], 2: []}, {}
    with ExitStack() as stack:
        clients = {workers: stack.enter_context(connect(DaskCluster(workers=workers))) for workers in seconds}
        for run in range(RUNS + 1):
            for workers, client in clients.items():
                started = time.perf_counter()
                found[workers] = count_with_client(client, job, Progress())
                if run:  # the first warms the workers up
                    seconds[workers].append(time.perf_counter() - started)
    one, two = (statistics.median(seconds[workers]) for workers in (1, 2))
    what = f"{millions} million records{' of people' * bool(people)}"
    with capsys.disabled():
        print(f"\n{what}: one worker {one:.2f} s, two {two:.2f} s, {one / two:.2f} times as fast")
        for workers, each in seconds.items():
            print(f"  {workers}: {', '.join(f'{run:.2f}' for run in each)} s")
    assert np.array_equal(found[1].cells, found[2].cells)
    assert np.array_equal(found[1].counts, found[2].counts)
    assert one / two >= least
