"""What DuckDB may do, what it says when it cannot, and what it leaves behind: no text of its own, no cell, no file."""

import glob
import re
import threading
import traceback
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpviz as dv
from dpviz.data.bounding import bound_of
from dpviz.data.counting import duckdb_session as count_duckdb_session
from dpviz.data.counting.duckdb import count_with_duckdb
from dpviz.data.counting.duckdb_session import NO_ROOM, DuckDBSettings, connect
from dpviz.data.counting.job import Job, Progress, XyCells
from dpviz.data.reading.safety import NO_FOLDER

DOMAIN = dv.Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
CELL = "4.2424242"
PEOPLE, LITTLE = 1_000_000, 32 * 2**20


def job_of(path, **rest):
    schema = pq.read_schema(path) if path.suffix == ".parquet" else pa.schema([(name, pa.string()) for name in ("x", "y")])
    kind = "Parquet" if path.suffix == ".parquet" else "CSV"
    finder = XyCells(x="x", y="y", domain=DOMAIN)
    return Job(files=(path,), format=kind, schema=schema, finder=finder, drop=True, size=path.stat().st_size, **rest)


def points_in(path, rows=50_000, **columns):
    rng = np.random.default_rng(2)
    pq.write_table(pa.table({"x": rng.uniform(0, 8, rows), "y": rng.uniform(0, 8, rows)} | columns), path, compression=None)
    return path


def refusal(job, tmp_path, watch=None, kind=dv.InputError, **settings):
    """The text of the error, which has no other behind it; the folder for spilling is empty again."""
    spill = tmp_path / "spill"
    spill.mkdir(exist_ok=True)
    with pytest.raises(kind) as caught:
        count_with_duckdb(job, watch or Progress(), DuckDBSettings(**{"folder": spill} | settings))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    whole = "".join(traceback.format_exception(caught.value))
    assert CELL not in whole
    assert not re.search(r"\b_?duckdb\.\w*(Error|Exception)", whole)
    assert not list(spill.iterdir())
    return str(caught.value)


def test_files_that_are_damaged_or_changed_after_they_were_found(tmp_path):
    path = points_in(tmp_path / "points.parquet")
    job, content = job_of(path), path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:4] + bytes(2000) + content[2004:], b""):
        path.write_bytes(damaged)
        assert "damaged or cut short" in refusal(job, tmp_path)
    for columns in ({"x": [CELL], "y": ["no number " + CELL]}, {"x": [1.0]}):
        pq.write_table(pa.table(columns), path)
        assert "damaged or cut short" in refusal(job, tmp_path)
    path.unlink()
    assert "damaged or cut short" in refusal(job, tmp_path)


def test_texts_that_are_no_utf8(tmp_path):
    path = tmp_path / "points.csv"
    path.write_bytes(b"x,y\n" + CELL.encode() + b",\xff\n1,2\n")
    with pytest.raises(dv.InputError, match="UTF-8"):
        dv.read_points(path, domain=DOMAIN, engine="duckdb")
    assert dv.read_points(path, domain=DOMAIN, engine="duckdb", bad_rows="drop").bad == 1


def test_a_row_that_never_ends(tmp_path):
    path = tmp_path / "points.csv"
    path.write_bytes(b'x,y\n1,2\n1,"' + CELL.encode() * (2**25 // len(CELL)))
    assert count_with_duckdb(job_of(path), Progress()).bad == 1
    assert "longer than" in refusal(replace(job_of(path), drop=False), tmp_path)


def test_no_folder_to_spill_to(tmp_path):
    path = points_in(tmp_path / "points.parquet")
    with pytest.raises(dv.InputError) as caught:
        count_with_duckdb(job_of(path), Progress(), DuckDBSettings(folder=tmp_path / "none"))
    assert (str(caught.value), caught.value.__context__) == (NO_FOLDER, None)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A count of so many people that it does not fit in the memory it is given below."""
    rng = np.random.default_rng(4)
    path = points_in(tmp_path_factory.mktemp("people") / "people.parquet", PEOPLE, who=rng.integers(0, PEOPLE, PEOPLE))
    return job_of(path, person="who", bound=bound_of(1, b"k"))


def test_no_room_to_spill_in(people, tmp_path, monkeypatch):
    monkeypatch.setattr(count_duckdb_session, "_SHUT", count_duckdb_session._SHUT | {"max_temp_directory_size": "1MiB"})
    assert refusal(people, tmp_path, memory=LITTLE, threads=1) == NO_ROOM


def test_a_folder_that_is_taken_away(people, tmp_path):
    def take_away(done):
        for folder in (tmp_path / "spill").iterdir() if done > 0 else ():
            folder.rename(tmp_path / "gone")

    assert refusal(people, tmp_path, Progress(progress=take_away), memory=LITTLE, threads=1) == NO_ROOM


def test_spilling_gives_the_same_counts_in_a_private_folder(people, tmp_path):
    modes, parts, files = set(), [], []

    def look(done):
        modes.update(folder.stat().st_mode & 0o777 for folder in tmp_path.iterdir())
        parts.append(done)
        files.append(len(list(tmp_path.rglob("*"))))

    small = count_with_duckdb(people, Progress(progress=look), DuckDBSettings(folder=tmp_path, memory=2 * LITTLE, threads=1))
    large = count_with_duckdb(people, Progress())
    np.testing.assert_array_equal(small.counts, large.counts)
    assert small.over == large.over > 0
    assert (modes, max(files) > 1) == ({0o700}, True)
    assert parts == sorted(parts)
    assert parts[-1] == 1.0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_count_that_is_cancelled(tmp_path, ending, monkeypatch):
    path = tmp_path / f"points{ending}"
    points_in(path, 2_000_000) if ending == ".parquet" else path.write_bytes(b"x,y\n" + b"1.5,2.5\n" * 2_000_000)
    monkeypatch.setattr(count_duckdb_session, "_TICK", 0.001)
    for calls in (0, 1, 3):  # before it begins, before the query, and within it
        cancel, told = threading.Event(), []

        def progress(done, cancel=cancel, told=told, calls=calls):
            told.append(done)
            if len(told) == calls:
                cancel.set()

        if not calls:
            cancel.set()
        watch = Progress(progress=progress, cancel=cancel)
        assert "cancelled" in refusal(job_of(path), tmp_path, watch, dv.DpvizError, threads=1)


def test_an_error_of_the_caller_ends_the_count(tmp_path):
    path, spill = points_in(tmp_path / "points.parquet", 500_000), tmp_path / "spill"
    spill.mkdir()

    def stop(_done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_with_duckdb(job_of(path), Progress(progress=stop), DuckDBSettings(folder=spill))
    assert not list(spill.iterdir())
    assert threading.active_count() < 20


def test_odd_file_names_stand_for_themselves(tmp_path):
    path = points_in(tmp_path / "a[1]*'b=c.parquet", 10)
    points_in(tmp_path / "a1Z'b=c.parquet", 1_000)
    assert count_with_duckdb(job_of(path), Progress()).counts.sum() == 10


def test_duckdb_is_shut_off(tmp_path):
    path, other = points_in(tmp_path / "points.parquet", 10), points_in(tmp_path / "other.parquet", 10)
    spill = tmp_path / "spill"
    spill.mkdir()
    with connect(job_of(path), spill, DuckDBSettings()) as connection:
        assert connection.execute(f"FROM read_parquet('{glob.escape(str(path))}') SELECT count(*)").fetchall() == [(10,)]
        for statement in (
            f"FROM read_parquet('{other}')",
            "SELECT * FROM read_csv('/etc/hostname')",
            "SELECT * FROM read_text('/etc/hostname')",
            f"ATTACH '{tmp_path / 'x.db'}'",
            f"COPY (SELECT 1) TO '{tmp_path / 'x.csv'}'",
            "INSTALL spatial",
            "LOAD httpfs",
            "SELECT * FROM read_parquet('https://example.org/x.parquet')",
            "SET enable_external_access = true",
            "SET temp_directory = '/tmp'",
            "SET memory_limit = '100GB'",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)
    assert not Path(tmp_path / "x.csv").exists()


def test_nothing_private_in_any_repr(tmp_path):
    path = points_in(tmp_path / "points.parquet", 10)
    assert not [word for word in (CELL, str(tmp_path)) if word in repr(job_of(path))]
