"""One reader of tables: points, trips and regions are refused for the same lines, headers and sizes, and columns are read as they stand."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data.counting.engines import ENGINES
from dpviz.data.counting.files import read_points, read_trips
from dpviz.data.reading.regions import read_regions
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.tables import open_table
from dpviz.errors import DpvizError
from dpviz.space.regions import Regions
from tests.data.reading.files import PLANE, TOWNS, refused, text, upload

LIMITS = Limits()
READERS = {
    "points": ("x,y,note", "1,2,", lambda source, limits: read_points(source, domain=PLANE, limits=limits)),
    "trips": ("from,to,note", "a,b,", lambda source, limits: read_trips(source, regions=TOWNS, limits=limits)),
    "regions": ("town,name,note", "a,A,", lambda source, limits: read_regions(source, levels=["town"], limits=limits)),
}


def refusal(kind, lines, limits=LIMITS):
    """The text of the refusal of a file with the kind's header and one good row, and then some lines."""
    header, row, read = READERS[kind]
    content = "\n".join([header, row + "fine", *(line.format(row=row) for line in lines)])
    return refused(read, text(content, "a.csv"), limits, error=DpvizError)


LINES = [('{row}"open', "quotation mark"), ('{row}an "inner" one', "quotation mark"), ("{row}one,more", "more or fewer cells")]
LINES += [("1", "more or fewer cells"), ("{row}" + "z" * 2**20, "longer than")]


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(("line", "words"), LINES)
def test_every_reader_refuses_the_same_lines(kind, line, words):
    assert words in refusal(kind, [line])


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_has_the_same_limits(kind):
    assert "more rows than the limit of 2" in refusal(kind, ["{row}", "{row}"], Limits(rows=2))
    assert "more columns than the limit of 2" in refusal(kind, [], Limits(columns=2))
    assert "larger than the limit of 5" in refusal(kind, [], Limits(file_bytes=5))


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_takes_headers_by_the_same_rule(kind):
    header, row, read = READERS[kind]
    contents = {header.replace(",", ";") + "\n" + row: "no comma", header.replace("note", '"no') + "\n" + row: "quotation marks do not fit"}
    for content, words in (contents | {"\n\n": "empty"}).items():
        assert words in refused(read, text(content), LIMITS, error=DpvizError)


def test_numbers_are_read_as_such_unless_an_entry_is_none():
    def columns(content, **options):
        return open_table("CSV", content.encode(), LIMITS).take([0, 1], numbers=[0], **options).columns

    assert [column.to_pylist() for column in columns("n,id\n1,007\n2.5,NA\n")] == [[1.0, 2.5], ["007", "NA"]]
    assert [column.to_pylist() for column in columns("n,id\n1,007\n2km,NA\n")] == [["1", "2km"], ["007", "NA"]]
    assert [column.to_pylist() for column in columns("n,id\n1,007\nNA,NA\n", missing_words=True)] == [[1.0, None], ["007", None]]


def test_a_stored_index_comes_first_where_it_is_wanted():
    buffer = io.BytesIO()
    pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=pd.Index(["u", "v"], name="from")).to_parquet(buffer)
    opened = open_table("Parquet", upload(buffer.getvalue(), "a.parquet").read(), LIMITS)
    assert (opened.names, opened.index_first().names) == (("a", "b", "from"), ("from", "a", "b"))
    first, last = opened.index_first().take([0, 2]).columns
    assert (first.to_pylist(), last.to_pylist()) == (["u", "v"], [3, 4])
    assert opened.index_first().index_first().names == ("from", "a", "b")
    assert np.array_equal(opened.take([0]).columns[0], [1, 2])


CODES = Regions.from_prefixes(["36001", "36003", "50001"], lengths=[2, 5], levels=["state", "county"])
CELLS = [b"\xff", b"\xed\xa0\x80", b"zq\xc3"]
TEXT = pa.string()
KINDS = [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def texts(cells, kind=TEXT):
    """A column of texts whose bytes Arrow does not check."""
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    plain = pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells)))
    return pa.chunked_array([plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain]).cast(kind)


def undecodable(path, column, cell, kind=TEXT):
    """Four records in two places of three people, with one cell replaced."""
    columns = {"x": [b"1.5", b"1.5", b"6.5", b"6.5"], "y": [b"2.5"] * 4, "n": [b"1"] * 4, "who": [b"\xc3\xa9", b"a", b"a", b"b"]}
    columns[column][3] = cell
    pq.write_table(pa.table({name: texts(cells, kind) for name, cells in columns.items()}), path)
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", ["x", "n", "who"])
def test_a_text_that_is_not_utf8_is_missing_in_its_own_row_alone(engine, column, counted_by, tmp_path):
    options = {"domain": PLANE, "count": "n", "person": "who", "contributions": 2, "key": bytes(32), **counted_by(engine)}
    for cell, kind in [*((cell, TEXT) for cell in CELLS), *((CELLS[0], kind) for kind in KINDS if column == "who")]:
        found = read_points(undecodable(tmp_path / "p.parquet", column, cell, kind), bad_rows="drop", **options)
        assert (found.count.tolist(), found.bad) == ([2, 1], 1)
    assert column in refused(read_points, undecodable(tmp_path / "p.parquet", column, CELLS[2]), **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", ["from", "to", "trips", "who"])
def test_a_text_that_is_not_utf8_is_missing_among_trips_too(engine, column, counted_by, tmp_path):
    columns = {"from": [b"36001", b"36001"], "to": [b"50001", b"36003"], "trips": [b"2", b"1"], "who": [b"a", b"b"]}
    columns[column][1] = b"\xff"
    pq.write_table(pa.table({name: texts(cells) for name, cells in columns.items()}), tmp_path / "t.parquet")
    options = {"regions": CODES, "count": "trips", "person": "who", "contributions": 2, "bad_rows": "drop"}
    trips = read_trips(tmp_path / "t.parquet", **options, **counted_by(engine))
    assert (trips.count.tolist(), trips.bad) == ([2], 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_people_in_bytes_stay_as_they_are(engine, counted_by, tmp_path):
    who = pa.array([b"\xff", b"\xff", b"a"], pa.binary())
    pq.write_table(pa.table({"x": [1.5] * 3, "y": texts([b"2.5", b"2.5", b"\xff"]), "who": who}), tmp_path / "p.parquet")
    found = read_points(tmp_path / "p.parquet", domain=PLANE, person="who", bad_rows="drop", **counted_by(engine))
    assert (found.count.tolist(), found.over, found.bad) == ([1], 1, 1)
