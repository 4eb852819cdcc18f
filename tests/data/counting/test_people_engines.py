"""Every engine keeps the same records of each person as the definition does, however files, types and batches hold them."""

import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.data import bounding
from dpviz.data.bounding import Bound
from dpviz.data.counting import duckdb, sorted_people
from dpviz.data.counting.block import Part
from dpviz.data.counting.dask import bound_people, count_people_of_part, part_frame
from dpviz.data.counting.engines import count_stream
from dpviz.data.counting.job import Job, Progress, XyColumns
from tests.data.counting.lattice import cells_on
from tests.data.reading.files import PLANE
from tests.data.slow_bound import slow_bound
from tests.often import often

pytestmark = pytest.mark.filterwarnings("ignore::dpviz.errors.UnreadColumnsWarning")

WHOLE = st.one_of(st.integers(0, 5), st.sampled_from([-3, 2**31, 2**53 + 1, 2**63 - 1]))
SMALL = st.integers(0, 5)
KINDS = {
    "int64": (WHOLE, lambda values: pa.array(values, pa.int64())),
    "uint64": (st.one_of(SMALL, st.sampled_from([2**63, 2**64 - 1])), lambda values: pa.array(values, pa.uint64())),
    "int16": (SMALL, lambda values: pa.array(values, pa.int16())),
    "double": (SMALL, lambda values: pa.array(values, pa.float64())),
    "decimal": (SMALL, lambda values: pa.array([Decimal(value) for value in values], pa.decimal128(8, 2))),
    "texts": (WHOLE, lambda values: pa.array(map(str, values), pa.string())),
    "large texts": (st.sampled_from(["a", "7", "007", "ü b", "7.5", "😀", "\uffff"]), lambda values: pa.array(values, pa.large_string())),
    "packed": (WHOLE, lambda values: pa.array(map(str, values)).dictionary_encode()),
    "CSV": (WHOLE, lambda values: pa.array(values, pa.int64())),
}


def write(rows, kind, folder):
    """Two files of columns x, y, n and who."""
    for number, part in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
        cells = np.array([row[1] for row in part], np.int64)
        columns = {"x": cells % 8 + 0.5, "y": cells // 8 + 0.5, "n": np.array([row[2] for row in part], np.int64)}
        table = pa.table(columns | {"who": KINDS[kind][1]([row[0] for row in part])})
        if kind == "CSV":
            pacsv.write_csv(table, folder / f"{number}.csv")
        else:
            pq.write_table(table, folder / f"{number}.parquet", row_group_size=max(4, len(rows) // 8))
    return sorted(folder.iterdir())


def dense(cells, counts):
    whole = np.zeros(64, np.int64)
    whole[cells] = counts
    return whole.tolist()


def by_memory(paths, weighted, bound):
    points = dv.read_points(
        [str(path) for path in paths],
        domain=PLANE,
        person="who",
        count="n" if weighted else None,
        contributions=bound.most,
        distinct=bound.distinct,
        key=bound.key,
        engine="numpy",
        bad_rows="drop",
        copies=True,
    )
    return dense(points.row * 8 + points.column, points.count)


def job_of(paths, weighted, bound):
    is_text = paths[0].suffix == ".csv"
    schema = pa.schema([(name, pa.string()) for name in ("x", "y", "n", "who")]) if is_text else pq.read_schema(paths[0])
    finder = cells_on(XyColumns(x="x", y="y"), PLANE)
    options = {"person": "who", "count": "n" if weighted else None, "bound": bound, "drop": True}
    return Job(files=tuple(paths), format="CSV" if is_text else "Parquet", schema=schema, finder=finder, size=1, **options)


def by_duckdb(job):
    found = count_stream(job, Progress())
    return dense(found.cells, found.counts)


def by_dask(job):
    """What two workers do with a file each, without a cluster."""
    last = 10**6 if job.is_text else None
    parts = [Part(str(path), 0, last or pq.read_metadata(path).num_row_groups) for path in job.files]
    if job.is_text:
        parts = [part._replace(first=len(Path(part.path).read_bytes().split(b"\n")[0]) + 1) for part in parts]
    people = pd.concat([count_people_of_part(part_frame(part), job) for part in parts], ignore_index=True)
    found = bound_people(people, job.bound, 64)
    found = found[found["cell"] >= 0]
    return dense(found["cell"].to_numpy(), found["count"].to_numpy())


@st.composite
def cases(draw):
    kind = draw(st.sampled_from([name for name in KINDS if name != "decimal"]))
    row = st.tuples(KINDS[kind][0], st.sampled_from([0, 1, 2, 9, 63]), st.integers(0, 4))
    bound = Bound(most=draw(st.integers(1, 5)), distinct=draw(st.booleans()), key=draw(st.binary(min_size=1, max_size=4)))
    return kind, draw(st.lists(row, min_size=2, max_size=24)), bound, draw(st.booleans()), draw(st.sampled_from([1, 3, 2**18]))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases())
def test_all_engines_keep_what_the_definition_says(case):
    kind, rows, bound, weighted, at_once = case
    expected = np.zeros(64, np.int64)
    for (_, cell), records in slow_bound(rows if weighted else [(*row[:2], 1) for row in rows], bound).items():
        expected[cell] += records
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in (bounding, sorted_people):
            patch.setattr(module, "RECORDS_AT_ONCE", at_once)
        paths = write(rows, kind, Path(folder))
        job = job_of(paths, weighted, bound)
        assert by_memory(paths, weighted, bound) == by_duckdb(job) == by_dask(job) == expected.tolist()


@pytest.mark.parametrize("kind", often(KINDS, ["int64", "decimal", "large texts"]))
def test_people_keep_the_same_in_files_of_every_type(tmp_path, kind):
    """Files of more rows than DuckDB hands over at once."""
    rng, size = np.random.default_rng(5), 20_000
    numbers = rng.integers(0, 3_000, size)
    whos = [f"p{number}" for number in numbers] if kind == "large texts" else numbers.tolist()
    rows = list(zip(whos, rng.integers(0, 64, size).tolist(), rng.integers(0, 3, size).tolist(), strict=True))
    paths, bound = write(rows, kind, tmp_path), Bound(most=4, key=b"key")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "_BATCH_ROWS", 2048)
        found = by_duckdb(job_of(paths, True, bound))
    assert found == by_memory(paths, True, bound) == by_dask(job_of(paths, True, bound))
    if kind not in ("large texts", "decimal"):  # 7.00 is not 7
        other = tmp_path / "int64"
        other.mkdir()
        assert found == by_duckdb(job_of(write(rows, "int64", other), True, bound))
