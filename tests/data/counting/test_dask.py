"""The counting pass on a real cluster gives what the pass in memory gives, whatever happens to a worker on the way."""

import logging
import os
import signal
import threading

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from distributed import Client, LocalCluster

from dpviz.data.bounding import People, bound_of
from dpviz.data.cell_counts import count_rows
from dpviz.data.counting import dask as count_dask
from dpviz.data.counting import dask_cluster as count_dask_cluster
from dpviz.data.counting import dask_tables as count_dask_parts
from dpviz.data.counting.dask import DaskCluster, count_with_dask
from dpviz.data.counting.job import GeometryCells, IdPairs, Job, LeafIds, Progress, XyCells, XyPairs
from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import DpvizError, InputError
from dpviz.space.domain import Domain

pytestmark = pytest.mark.slow  # workers in processes of their own; within this process the engine is in test_counting
UNIT = Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=6)
XY = XyCells(x="x", y="y", domain=UNIT)
ROWS, GROUP = 6000, 1000
PATIENCE = 120  # seconds: on a busy machine, workers take long to start
IDS = tuple("abcdefgh")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    patient = dask.config.set({"distributed.comm.timeouts.connect": PATIENCE, "distributed.comm.timeouts.tcp": PATIENCE})
    with (
        patient,
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
            local_directory=str(tmp_path_factory.mktemp("workers")),
        ) as started,
    ):
        yield started


@pytest.fixture(scope="module")
def where(cluster):
    return DaskCluster(scheduler=Scheduler(address=cluster.scheduler_address))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(count_dask, "_LEAST_ROWS", GROUP)
    monkeypatch.setattr(count_dask, "_MOST_ROWS", GROUP)


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
    """A pass over one Parquet file, that drops bad rows unless told otherwise."""
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


class Quarters:
    """Leaf regions of a plane cut into four; stands for a look-up, and travels to workers by value."""

    def __new__(cls):
        class Quarter:
            def find(self, x, y):
                found = np.where(np.isfinite(x) & np.isfinite(y), 0, -2)
                found = np.where((found == 0) & ((x < 0) | (x >= 1) | (y < 0) | (y >= 1)), -1, found)
                return np.where(found == 0, 2 * (y >= 0.5) + (x >= 0.5), found).astype(np.int64)

        return Quarter()


PLACINGS = {
    "x and y": XY,
    "WKB": GeometryCells(geometry="WKB", encoding="WKB", domain=UNIT),
    "geoarrow": GeometryCells(geometry="point", encoding="point", domain=UNIT),
    "ids": IdPairs(origin="from", destination="to", starts=LeafIds(texts=IDS), ends=LeafIds(texts=IDS[:5])),
}


@pytest.mark.parametrize("kind", PLACINGS)
def test_places_are_those_of_the_pass_in_memory(where, file, table, kind):
    job = job_of(file, PLACINGS[kind], count="n")
    found = count_with_dask(job, cluster=where)
    assert_same(found, in_memory(job, table))
    assert found.outside
    assert found.bad
    assert repr(found) == "CellCounts()"


def test_coordinate_pairs_are_looked_up_by_workers(where, file, table):
    finder = XyPairs(origin=("x", "y"), destination=("x2", "y2"), starts=Quarters(), ends=Quarters(), leaves=(4, 4), crs=None)
    job = job_of(file, finder)
    assert_same(count_with_dask(job, cluster=where), in_memory(job, table))


@pytest.mark.parametrize(
    "options",
    [
        {"person": "who", "bound": bound_of(2, b"k")},
        {"person": "who", "bound": bound_of(3, b"k"), "count": "n"},
        {"person": "number", "bound": bound_of(4, b"other", distinct=True), "count": "n"},
        {"person": "who", "bound": bound_of(9, b"k", fewer="drop")},
    ],
    ids=["2", "3 with counts", "4 distinct", "exactly 9"],
)
def test_people_keep_what_they_keep_in_memory(where, file, table, options):
    job = job_of(file, **options)
    found = count_with_dask(job, cluster=where)
    assert_same(found, in_memory(job, table))
    assert found.over


@pytest.mark.parametrize("person", ["who", None])
def test_a_worker_that_is_killed_changes_nothing(cluster, where, table, tmp_path, monkeypatch, person):
    monkeypatch.setattr(count_dask, "_MOST_ROWS", 100)
    monkeypatch.setattr(count_dask, "_LEAST_ROWS", 100)
    monkeypatch.setattr(count_dask, "_ROWS_PER_PARTITION", 1000)
    pq.write_table(table, tmp_path / "points.parquet", row_group_size=100)
    bound = None if person is None else bound_of(3, b"k")
    job = job_of(tmp_path / "points.parquet", person=person, bound=bound)
    with Client(cluster, set_as_default=False) as client:
        victims = list(client.run(os.getpid).values())
    killed, told = [], []

    def kill(done):
        told.append(done)
        if not killed and (0.05 < done < 1 or len(told) == 3):  # the first word comes before the work
            os.kill(victims[0], signal.SIGKILL)
            killed.append(done)

    assert_same(count_with_dask(job, Progress(progress=kill), where), in_memory(job, table))
    assert killed


def test_text_tables_are_cut_at_lines(where, tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    lines = [f'"{x}",{y},"a ""note"", of one line",p{n % 7}' for n, (x, y) in enumerate(rng.uniform(0, 1, (2000, 2)))]
    lines[100], lines[1000], lines[1500] = "0.5,0.5", '0.5,0.5,"open,p1', "a,0.5,,p1"
    (tmp_path / "points.csv").write_text('\ufeff\n"x",y,"note, long",who\n' + "\n".join(lines))
    schema = pa.schema([(name, pa.string()) for name in ("x", "y", "note, long", "who")])
    monkeypatch.setattr(count_dask_parts, "TEXT_BYTES", 5000)
    job = Job(files=(tmp_path / "points.csv",), format="CSV", schema=schema, finder=XY, person="who", bound=bound_of(50, b"k"), drop=True)
    found = count_with_dask(job, cluster=where)
    assert (found.counts.sum(), found.bad, found.outside, found.over) == (350, 3, 0, 1997 - 350)


def test_a_stray_quotation_mark_does_not_move_rows(where, tmp_path, monkeypatch):
    rows = [f"{n / 100},0.5,a" for n in range(100)]
    rows[3] = '0.03,0.5,5" nails'
    (tmp_path / "points.tsv").write_text("x,y,note\n".replace(",", "\t") + "\n".join(row.replace(",", "\t") for row in rows))
    monkeypatch.setattr(count_dask_parts, "TEXT_BYTES", 200)
    schema = pa.schema([(name, pa.string()) for name in ("x", "y", "note")])
    job = Job(files=(tmp_path / "points.tsv",), format="TSV", schema=schema, finder=XY)
    assert count_with_dask(job, cluster=where).counts.sum() == 100


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "Column 'x' or 'y' has a cell that is no finite number"),
        ({"finder": XyCells(x="x", y="x2", domain=UNIT), "count": "n"}, "Column 'n' has a cell that is not a whole number"),
        ({"finder": XyCells(x="x", y="x2", domain=UNIT), "person": "who", "bound": bound_of(1, b"k")}, "'who' has a missing cell"),
        ({"finder": PLACINGS["ids"], "refuse_outside": True}, "has an id that is no leaf region"),
        (
            {"finder": XyCells(x="x", y="x2", domain=UNIT), "person": "number", "bound": bound_of(9, b"k", fewer="refuse")},
            "A person has fewer trips",
        ),
    ],
    ids=["place", "count", "person", "unknown", "fewer"],
)
def test_bad_rows_are_refused_by_column_and_rule(where, file, options, rule):
    with pytest.raises(InputError, match=rule) as caught:
        count_with_dask(job_of(file, **options, drop=False), cluster=where)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_cut_file_and_one_of_another_schema_are_refused(where, file, table, tmp_path):
    whole = file.read_bytes()
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole[: len(whole) // 2])
    job = job_of(file)
    with pytest.raises(InputError, match="the file is damaged"):
        count_with_dask(Job(files=(cut,), format="Parquet", schema=job.schema, finder=XY), cluster=where)
    rotten = tmp_path / "rotten.parquet"
    rotten.write_bytes(whole[:4] + b"\xff" * 4000 + whole[4004:])
    with pytest.raises(InputError, match="the file is damaged"):
        count_with_dask(Job(files=(rotten,), format="Parquet", schema=job.schema, finder=XY, drop=True), cluster=where)
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"x": table.column("x"), "y": table.column("who")}), other)
    with pytest.raises(InputError, match="do not have the same columns"):
        count_with_dask(Job(files=(file, other), format="Parquet", schema=job.schema, finder=XY, drop=True), cluster=where)


def test_too_many_records_are_cut(where, tmp_path):
    path = tmp_path / "many.parquet"
    pq.write_table(pa.table({"x": [0.5] * 4, "y": [0.5] * 4, "n": [2**52] * 4}), path, row_group_size=1)
    found = count_with_dask(job_of(path, count="n"), cluster=where)
    assert (found.counts.tolist(), found.bad, found.over) == ([10**9], 0, 2**53 - 10**9)


def test_no_rows_are_no_counts(where, tmp_path):
    path = tmp_path / "none.parquet"
    pq.write_table(pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}), path)
    assert not len(count_with_dask(job_of(path), cluster=where).cells)


def test_progress_rises_to_one_and_cancel_ends(where, file):
    seen, cancel = [], threading.Event()
    count_with_dask(job_of(file), Progress(progress=seen.append), where)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)

    with pytest.raises(DpvizError, match="cancelled") as caught:
        count_with_dask(job_of(file), Progress(progress=lambda done: cancel.set(), cancel=cancel), where)
    assert not isinstance(caught.value, InputError)


def test_an_address_that_refuses_is_one_line(file, monkeypatch):
    monkeypatch.setattr("dpviz.data.counting.dask_cluster.CONNECT_SECONDS", 0.5)
    with pytest.raises(InputError, match="No Dask scheduler answers at the address within") as caught:
        count_with_dask(job_of(file), cluster=DaskCluster(scheduler=Scheduler(address="tcp://127.0.0.1:9")))
    assert caught.value.__cause__ is None


def test_a_worker_without_dpviz_is_refused(where, file, monkeypatch):
    monkeypatch.setattr(count_dask_cluster, "find_spec", lambda _name: None)
    with pytest.raises(InputError, match="A Dask worker has no dpviz"):
        count_with_dask(job_of(file), cluster=where)


def test_a_worker_with_other_code_is_refused(where, file, monkeypatch):
    monkeypatch.setattr(count_dask_cluster, "_own_digest", lambda: "other")
    with pytest.raises(InputError, match="another version of dpviz"):
        count_with_dask(job_of(file), cluster=where)
