"""A text in a Parquet file that is not UTF-8 is missing in its own row, on every engine."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data.counting.files import read_flows, read_points
from dpviz.errors import InputError
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

ENGINES = ("numpy", "duckdb", "dask")
PLANE = Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
REGIONS = Regions.from_prefixes(["36001", "36003", "50001"], lengths=[2, 5], levels=["state", "county"])
CELLS = [b"\xff", b"\xed\xa0\x80", b"zq\xc3"]
TEXT = pa.string()
KINDS = [TEXT, pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def texts(cells, kind=TEXT):
    """A column of texts whose bytes Arrow does not check."""
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    plain = pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells)))
    return pa.chunked_array([plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain]).cast(kind)


def points(path, column, cell, kind=TEXT):
    """Four records in two places of three people, with one cell replaced."""
    columns = {"x": [b"1.5", b"1.5", b"6.5", b"6.5"], "y": [b"2.5"] * 4, "n": [b"1"] * 4, "who": [b"\xc3\xa9", b"a", b"a", b"b"]}
    columns[column][3] = cell
    pq.write_table(pa.table({name: texts(cells, kind) for name, cells in columns.items()}), path)
    return path


def dropped(path, **options):
    found = read_points(path, domain=PLANE, count="n", person="who", contributions=2, bad_rows="drop", key=bytes(32), **options)
    return found.count.tolist(), found.bad


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", ["x", "n", "who"])
def test_only_its_own_row_is_left_out(engine, column, counted_by, tmp_path):
    for cell in CELLS:
        assert dropped(points(tmp_path / "p.parquet", column, cell), **counted_by(engine)) == ([2, 1], 1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_whichever_type_the_texts_have(engine, kind, counted_by, tmp_path):
    assert dropped(points(tmp_path / "p.parquet", "who", b"\xff", kind), **counted_by(engine)) == ([2, 1], 1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", ["x", "n", "who"])
def test_it_is_refused_by_rule(engine, column, counted_by, tmp_path):
    with pytest.raises(InputError, match=column) as caught:
        read_points(points(tmp_path / "p.parquet", column, b"zq\xff"), domain=PLANE, count="n", person="who", **counted_by(engine))
    assert "zq" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", ["from", "to", "trips", "who"])
def test_so_it_is_among_trips(engine, column, counted_by, tmp_path):
    columns = {"from": [b"36001", b"36001"], "to": [b"50001", b"36003"], "trips": [b"2", b"1"], "who": [b"a", b"b"]}
    columns[column][1] = b"\xff"
    pq.write_table(pa.table({name: texts(cells) for name, cells in columns.items()}), tmp_path / "t.parquet")
    options = {"regions": REGIONS, "count": "trips", "person": "who", "contributions": 2, "bad_rows": "drop"}
    flows = read_flows(tmp_path / "t.parquet", **options, **counted_by(engine))
    assert (flows.count.tolist(), flows.bad) == ([2], 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_people_in_bytes_stay_as_they_are(engine, counted_by, tmp_path):
    who = pa.array([b"\xff", b"\xff", b"a"], pa.binary())
    pq.write_table(pa.table({"x": [1.5] * 3, "y": texts([b"2.5", b"2.5", b"\xff"]), "who": who}), tmp_path / "p.parquet")
    found = read_points(tmp_path / "p.parquet", domain=PLANE, person="who", bad_rows="drop", **counted_by(engine))
    assert (found.count.tolist(), found.over, found.bad) == ([1], 1, 1)
