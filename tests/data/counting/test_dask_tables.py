"""What workers do with tables and with stretches of text, without a cluster."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data import bounding
from dpviz.data.bounding import People, bound_of, bound_records
from dpviz.data.cell_counts import CellSums
from dpviz.data.counting import block
from dpviz.data.counting.block import Part, parquet_parts, read_part, row_groups, text_parts
from dpviz.data.counting.dask import count_part, count_people_of_part, part_frame
from dpviz.data.counting.dask_tables import EMPTY, TableSums, Tally, bound_table, count_by_person, table, tally_table, without_person
from dpviz.data.counting.job import Job, PointCells, XyColumns
from dpviz.space.domain import Domain
from tests.data.counting.lattice import cells_on

XY = cells_on(XyColumns(x="x", y="y"), Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=4))
TEXTS = pa.schema([(name, pa.string()) for name in ("x", "y", "note")])


def of(frame):
    return dict(zip(frame["cell"].tolist(), frame["count"].tolist(), strict=True))


def added(*tables):
    sums = TableSums(cells=CellSums(size=2**40))
    for each in tables:
        sums.add(each)
    return sums.table()


def test_sums_are_of_each_place_and_of_each_counter():
    some = table(np.array([3, 9]), np.array([1, 2**53 - 1]))
    more = (some, tally_table({Tally.BAD: 2, Tally.OUTSIDE: 0}), table(np.array([3]), np.array([4])))
    assert of(added(*more)) == {Tally.BAD: 2, 3: 5, 9: 2**53 - 1}
    assert of(added(table(np.array([3, 9]), np.array([0, 1])))) == {9: 1}
    assert of(added(EMPTY)) == {}


def test_sums_are_cut_to_what_is_exact():
    tallies = (tally_table({Tally.INSIDE: 2**53, Tally.BAD: 1}), tally_table({Tally.INSIDE: 3}))
    assert of(added(*tallies)) == {Tally.INSIDE: 2**53, Tally.BAD: 1}
    some = [table(np.array([3]), np.array([2**53]))] * 2000
    assert of(added(*some)) == {3: 2**53}
    assert of(added(*some, table(np.array([2**30]), np.array([1])))) == {3: 2**53, 2**30: 1}


@pytest.mark.parametrize("at_once", [1, 7, 50, 10**6])
@pytest.mark.parametrize("options", [{}, {"distinct": True}, {"fewer": "drop"}])
@pytest.mark.parametrize("numbers", [False, True])
def test_people_are_bounded_in_runs_as_all_at_once(monkeypatch, at_once, options, numbers):
    monkeypatch.setattr(bounding, "RECORDS_AT_ONCE", at_once)
    rng, bound = np.random.default_rng(4), bound_of(4, b"k", **options)
    codes, places, records = rng.zipf(1.6, 600) % 40, rng.integers(0, 30, 600), rng.integers(0, 7, 600)
    texts = pa.array(codes) if numbers else pa.array([f"p{code}" for code in codes], pa.large_string())
    halves = [count_by_person(texts[part], places[part], records[part], bound) for part in (slice(0, 250), slice(250, 600))]
    frame = pd.concat([*halves, without_person(tally_table({Tally.BAD: 5}), as_numbers=numbers)], ignore_index=True)
    owners = People(codes=codes, distinct=np.arange(40) if numbers else [f"p{code}" for code in range(40)])
    held = bound_records(owners, places, records, bound)
    assert of(bound_table(frame, bound, 30)) == {Tally.BAD: 5} | of(added(table(held.cells, held.records)))


def test_people_with_fewer_than_declared_are_a_tally():
    bound = bound_of(2, b"k", fewer="refuse")
    frame = count_by_person(pa.array(["a", "b", "b"], pa.large_string()), np.array([1, 1, 2]), np.ones(3, np.int64), bound)
    assert of(bound_table(frame, bound, 9))[Tally.FEWER] == 1
    assert of(bound_table(without_person(EMPTY), bound, 9)) == {}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_text_is_cut_between_rows_whatever_the_size_of_parts(tmp_path, monkeypatch, end, last):
    path = tmp_path / "points.csv"
    rows = ['0.1,0.2,"a,b"', '"0.3",0.4,plain', '0.5,0.6,"he said ""no"""', "", '0.6,0.6,"open', "0.7,0.8,", '0.8,0.8,5"', "0.9,0.1,ä"]
    path.write_bytes(("\ufeff" + end + "x,y,note" + end + end.join(rows) + last).encode())
    job = Job(files=(path,), format="CSV", schema=TEXTS, finder=XY, drop=True)
    for size in range(1, path.stat().st_size + 2):
        monkeypatch.setattr(block, "TEXT_BYTES", size)
        found = [batch for part in text_parts(path, job) for batch in read_part(part, job)]
        assert [cell for batch in found for cell in batch.columns["x"].to_pylist()] == [0.1, 0.3, 0.5, 0.7, 0.9]
        assert [sum(getattr(batch.bad, rule) for batch in found) for rule in ("marks", "cells")] == [2, 0]


def test_parts_are_row_groups_in_order(tmp_path):
    path = tmp_path / "points.parquet"
    pq.write_table(pa.table({"x": np.arange(100.0)}), path, row_group_size=15)
    parts = list(parquet_parts(path, row_groups(path), 40))
    assert [(part.first, part.last) for part in parts] == [(0, 2), (2, 4), (4, 7)]


def test_what_a_worker_cannot_read_is_a_tally(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    for name, kind in (("no.csv", Tally.ABSENT), ("no.parquet", Tally.ABSENT), ("bad.parquet", Tally.DAMAGED)):
        job = Job(files=(tmp_path / name,), format="CSV" if name == "no.csv" else "Parquet", schema=TEXTS, finder=XY)
        frame = part_frame(Part(str(tmp_path / name), 0, 21))
        assert of(count_part(frame, job)) == of(count_people_of_part(frame, job)) == {kind: 1}


def test_what_fails_on_a_worker_is_a_tally(tmp_path, monkeypatch):
    path = tmp_path / "points.csv"
    path.write_text("x,y,note\n0.1,0.2,secret\n")
    job = Job(files=(path,), format="CSV", schema=TEXTS, finder=XY)
    for error, kind in ((MemoryError, Tally.MEMORY), (KeyError, Tally.FAILED)):
        monkeypatch.setattr(PointCells, "cells", lambda *_given, error=error: (_ for _ in ()).throw(error("secret")))
        assert of(count_part(part_frame(Part(str(path), 0, 99)), job)) == {kind: 1}
