"""A row of a text table is a function of its own line: by every reader, wherever the file is cut."""

import io
import random

import numpy as np
import pyarrow as pa
import pytest

import dpviz as dv
from dpviz.data.counting.files import read_points
from dpviz.data.reading import text_rows
from dpviz.data.reading.text_rows import LINE_BYTES, BadLines, TextLayout, cut_lines, cut_text, header_of, line_begins, read_lines
from tests.data.reading.files import PLANE, TOWNS, refusal, refused, text

WIDTH = 3
GOOD = {b"a,b,c": ["a", "b", "c"], b",,": [None, None, None], b'"",b,""': [None, "b", None], b'"a,b",c,"d""e"': ["a,b", "c", 'd"e']}
GOOD |= {b'"""","""a""",","': ['"', '"a"', ","], "ä,\ufeff,€".encode(): ["ä", "\ufeff", "€"], b"a\rb,c\r,\rd": ["a\rb", "c\r", "\rd"]}
GOOD |= {b'"a\r",\0,c': ["a\r", "\0", "c"], b"\xef\xbb\xbfa,b,c": ["\ufeffa", "b", "c"], b" a , b,c\t": [" a ", " b", "c\t"]}
BAD = {b"a,b": "cells", b"a,b,c,d": "cells", b"a": "cells", b"\r\r": "cells", b'"a,b,c': "marks", b'a,"b"c,d': "marks"}
BAD |= {b'a,b"c",d': "marks", b'a,b""c,d': "marks", b'a,b,c"': "marks", b'a,b,""" ': "marks", b'a,"b"",c': "marks", b'a, "b",c': "marks"}
BAD |= {b"a,\xff,c": "not_utf8", b"a,b,\xc3": "not_utf8", b'"\xed\xa0\x80,b': "not_utf8", b"a,b," + b"c" * LINE_BYTES: "long"}
EMPTY = [b"", b""]


def layout(separator=",", **options):
    return TextLayout(separator=separator, width=WIDTH, types=dict.fromkeys(range(WIDTH), pa.string()), missing=("",), **options)


def cells(table):
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("line", [*GOOD, *BAD], ids=lambda line: repr(line)[:30])
def test_every_line_is_judged_alone(line, end):
    table, bad = cut_lines(line + end, layout())
    assert cells(table) == ([GOOD[line]] if line in GOOD else [])
    assert bad == (BadLines() if line in GOOD else BadLines(**{BAD[line]: 1}))


@pytest.mark.parametrize("block", [1, 40, 2**22])
def test_lines_together_give_what_each_gives_alone(monkeypatch, block):
    monkeypatch.setattr(text_rows, "TEXT_BLOCK", block)
    rng = random.Random(block)
    lines = rng.choices([*GOOD, *list(BAD)[:-1], *EMPTY], k=400)
    data = b"head\n" + b"".join(line + rng.choice([b"\n", b"\r\n"]) for line in lines)
    expected = [GOOD[line] for line in lines if line in GOOD]
    table, bad = cut_text(data, 5, layout())
    assert cells(table) == expected
    assert bad.total == sum(line in BAD for line in lines)
    parts = [cut_lines(part, layout()) for part in read_lines(io.BytesIO(data), 5, len(data))]
    assert [row for part, _ in parts for row in cells(part)] == expected
    assert sum((each for _, each in parts), BadLines()) == bad


def test_marks_of_tsv_files_are_letters():
    table, bad = cut_lines(b'"a\tb"c"\t"\n', layout("\t"))
    assert cells(table) == [['"a', 'b"c"', '"']]
    assert bad == BadLines()


def test_lines_begin_after_line_feeds_alone():
    data = b'head\na\r"\nb\n\n\r\nc'
    file = io.BytesIO(data)
    begins = [0, *(place + 1 for place, sign in enumerate(data) if sign == ord("\n"))]
    for place in range(len(data)):
        assert line_begins(file, place) == min([begin for begin in begins if begin >= place], default=len(data))


def test_of_a_line_that_never_ends_only_the_beginning_is_held(monkeypatch):
    monkeypatch.setattr(text_rows, "TEXT_BLOCK", 2**18)
    data = b"a,b,c\n" + b'"' * (5 * 2**20) + b"\na,b,c"
    parts = list(read_lines(io.BytesIO(data), 0, len(data)))
    assert sum(map(len, parts)) < 2 * LINE_BYTES
    assert sum((cut_lines(part, layout())[1] for part in parts), BadLines()) == BadLines(long=1)


HEADLESS = [
    (b"", "empty"),
    (b"\xef\xbb\xbf\r\n\n", "empty"),
    (b"a,b\r1,2\r3,4\r", "carriage returns alone"),
    (b"sep=;\na;b\n", "take that line out"),
]
HEADLESS += [(b'a,"b\nc"\n', "quotation marks"), (b"a,\xe9\n", "UTF-8"), ("a,b\n".encode("utf-16"), "UTF-8")]
HEADLESS += [("a,b\n".encode("utf-16-le"), "UTF-8"), (b"a" * 2**20, "does not end")]


@pytest.mark.parametrize(("head", "words"), HEADLESS)
def test_headers_that_are_no_line_of_names_are_refused(head, words):
    assert words in refused(header_of, head, ",")


@pytest.mark.parametrize("engine", dv.data.counting.engines.ENGINES[1:])
def test_engines_leave_out_the_same_lines(tmp_path, engine, counted_by):
    rng = random.Random(3)
    lines = [line.replace(b"a", b"1").replace(b"b", b"2").replace(b"c", b"3") for line in rng.choices([*GOOD, *BAD, *EMPTY], k=300)]
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y,who\n" + b"\n".join([*lines, *[b"1,2,3"] * 50, b'4,5,"6']))
    for options in ({}, {"person": "who", "key": b"k", "contributions": 3}):
        one, two = (dv.read_points(path, domain=PLANE, bad_rows="drop", **counted_by(each), **options) for each in ("numpy", engine))
        assert (one.bad, one.outside, one.over) == (two.bad, two.outside, two.over)
        assert one.bad > 50
        np.testing.assert_array_equal(one.count, two.count)


REFUSED = [(b'1,2,"x', ["not closed on its line", "Parquet", "quoted_newlines"]), (b"1,2", ["fewer cells"]), (b"1,2,\xff", ["UTF-8"])]
REFUSED += [(b"1,2," + b"x" * 2**20, ["longer"])]


@pytest.mark.parametrize("engine", dv.data.counting.engines.ENGINES)
@pytest.mark.parametrize(("line", "words"), REFUSED, ids=["marks", "cells", "utf8", "long"])
def test_bad_lines_are_refused_by_rule(tmp_path, engine, line, words, counted_by):
    (tmp_path / "a.csv").write_bytes(b"x,y,who\n1,2,a\n" + line + b"\n1,2,a\n")
    message = refused(dv.read_points, tmp_path / "a.csv", domain=PLANE, **counted_by(engine))
    assert all(word in message for word in words)


ACROSS = 'lon,lat,note\n1,2,"of\ntwo lines"\n3,4,one\n'


def test_line_ends_within_cells_are_declared_and_read_in_memory_only(tmp_path):
    assert read_points(text(ACROSS), domain=PLANE, bad_rows="drop").bad == 2
    assert "Parquet, or pass quoted_newlines=True" in refusal(text(ACROSS), domain=PLANE)
    assert read_points(text(ACROSS), domain=PLANE, quoted_newlines=True).count.tolist() == [1, 1]
    trips = text('from,to,note\na,b,"of\ntwo lines"\n')
    assert dv.read_trips(trips, regions=TOWNS, quoted_newlines=True).count.tolist() == [1]
    (tmp_path / "a.csv").write_text(ACROSS)
    assert read_points(tmp_path / "a.csv", domain=PLANE, quoted_newlines=True).count.sum() == 2
    for engine in dv.data.counting.engines.ENGINES[1:]:
        assert "Parquet" in refusal(tmp_path / "a.csv", domain=PLANE, quoted_newlines=True, engine=engine)
