"""Declared formats of text tables: they give the counts of the plain table, a malformed row stays alone, and a proposal shows no cell."""

import csv
import io
import os
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.data.counting.files import read_points, read_trips
from dpviz.data.library_errors import or_none
from dpviz.data.reading import text_rows
from dpviz.data.reading.inspect import find_repeated_columns
from dpviz.data.reading.sources import find_files, refuse_rowless
from dpviz.data.reading.text_format import ENCODINGS, TextFormat, detect_text_format
from dpviz.data.reading.text_rows import CODECS, TextLayout, cut_lines, utf8_lines, utf16_to_utf8
from dpviz.errors import SettingError
from tests.data.reading.files import PLANE, TOWNS, read_or_refused, refusal, refused, text, upload

MARKS = {"utf-8": ("utf-8", "utf-8-sig"), "utf-16": ("utf-16-le", "utf-16-be"), **{name: (codec,) for name, codec in CODECS.items()}}
TRIED = ("utf-8", "utf-16", "latin-1", "windows-1250", "gb18030")
SEPARATORS = (",", ";", "|", "\t")
formats = st.builds(
    TextFormat, separator=st.sampled_from(SEPARATORS), decimal=st.sampled_from((None, ".", ",")), encoding=st.sampled_from(TRIED)
)
coordinates = st.floats(-1, 9).map(lambda value: round(value, 3) + 0.0)
people = st.text('aé;|,". äß', max_size=3).map(lambda name: f"w{name}")
rows = st.lists(st.tuples(coordinates, coordinates, st.integers(0, 5), people), max_size=8)


def encoded(lines, codec):
    """Bytes with the byte order mark that the codec needs; letters that it lacks are replaced by one that it has."""
    mark = "\ufeff" if codec.startswith("utf-16") else ""
    letter = next(letter for letter in "äéЖαאأกあ가" if or_none(lambda letter=letter: letter.encode(codec)))
    return (mark + "".join(one if or_none(lambda one=one: one.encode(codec)) else letter for one in lines)).encode(codec)


def written(table, form, codec, end="\n"):
    """The lines of a table, in a declared format."""
    cells = [[cell if isinstance(cell, str) else str(cell).replace(".", form.decimal or ".") for cell in row] for row in table]
    if form.separator == "\t":
        return encoded("".join("\t".join(row) + end for row in cells), codec)
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=form.separator, lineterminator=end).writerows(cells)
    return encoded(buffer.getvalue(), codec)


def counts(points):
    found = {name: getattr(points, name).tolist() for name in ("row", "column", "origin", "destination", "count") if hasattr(points, name)}
    return found | {name: getattr(points, name) for name in ("outside", "bad", "over")}


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(rows, formats, st.data())
def test_a_declared_format_gives_the_counts_of_the_plain_table(table, form, data):
    table = [("xé", "y", "n", "who"), *table]
    plain = upload(written(table, TextFormat(separator=","), "utf-8"), "a.csv")
    content = written(table, form, data.draw(st.sampled_from(MARKS[form.encoding])), data.draw(st.sampled_from(["\n", "\r\n"])))
    other = upload(content, "a" + data.draw(st.sampled_from([".csv", ".tsv"])))
    for chosen in ({}, {"count": "n", "person": "who", "contributions": 3, "key": b"k"}):
        read = partial(read_points, domain=PLANE, x="xé", y="y", bad_rows="drop", **chosen)
        one, two = read(plain), read(other, text_format=form)
        assert counts(one) == counts(two)


def test_the_usual_format_needs_no_declaration():
    assert TextFormat().declarations() == {}
    assert TextFormat().lines() == []
    assert [TextFormat().separator_of(kind) for kind in ("CSV", "TSV")] == [",", "\t"]


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [("separator", ":", "semicolon"), ("decimal", ";", "a comma"), ("thousands", "|", "a blank"), ("encoding", "zq8", "windows-1252")],
)
def test_unknown_settings_are_refused(setting, value, words):
    with pytest.raises(SettingError, match=words):
        TextFormat(**{setting: value})


@pytest.mark.parametrize("mark", [".", ","])
def test_one_mark_for_decimals_and_thousands_is_refused(mark):
    with pytest.raises(SettingError, match="different marks"):
        TextFormat(decimal=mark, thousands=mark)


def test_encodings_have_the_other_names_that_python_knows():
    names = {"CP1250": "windows-1250", "gbk": "gb18030", "latin2": "iso-8859-2", "SJIS": "shift_jis", "mac_roman": "macintosh"}
    assert {name: TextFormat(encoding=name).encoding for name in names} == names
    assert {*ENCODINGS} == {*CODECS, "utf-8", "utf-16"}


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(list(CODECS)), st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"")), min_size=1, max_size=6))
def test_lines_of_every_encoding_become_utf8_each_by_itself_and_what_has_no_letter_is_no_utf8(encoding, lines):
    together = utf8_lines(b"".join(line + b"\n" for line in lines), encoding).split(b"\n")
    assert together == [*(utf8_lines(line, encoding) for line in lines), b""]
    for line, converted in zip(lines, together, strict=False):
        letters = or_none(lambda line=line: line.decode(CODECS[encoding]).encode("utf-8"))
        assert converted == letters if letters is not None else or_none(lambda converted=converted: converted.decode("utf-8")) is None


def test_a_line_is_long_by_its_own_bytes_although_it_is_shorter_in_utf8(monkeypatch):
    monkeypatch.setattr(text_rows, "LINE_BYTES", 10)
    layout = TextLayout(separator=",", width=1, types={0: pa.string()}, encoding="gb18030")
    assert [cut_lines("þ".encode("gb18030") * number + b"\n", layout)[1].long for number in (2, 3)] == [0, 1]


GOOD = ["1,5;2,5;ä", "6;7;b", '"3,0";4;";"']
BAD = ["1.5;2;a", "1;2", "1;2;3;4", '1;2;"a', "1.000,5;2;a", "zq;1;a", ";;", "1_5;2;a", "0x1;2;a", "1,5,5;2;a"]


@pytest.mark.parametrize("encoding", TRIED)
@pytest.mark.parametrize("line", BAD)
def test_a_malformed_row_changes_no_other(encoding, line):
    form = TextFormat(separator=";", decimal=",", encoding=encoding)
    options = {"text_format": form, "person": "who", "key": b"k", "domain": PLANE, "bad_rows": "drop"}
    for codec in MARKS[encoding]:
        without, with_one = (encoded("\n".join(["x;y;who", *GOOD[:2], *others, GOOD[2]]), codec) for others in ([], [line]))
        one, two = (read_points(upload(content, "a.csv"), **options) for content in (without, with_one))
        assert counts(two) == counts(one) | {"bad": 1}
        assert one.count.sum() == 3


def test_what_an_encoding_does_not_have_is_bad_in_its_own_row(monkeypatch):
    read = partial(read_points, domain=PLANE, bad_rows="drop", person="who", x="x", y="y")
    points = read(upload(b"x,y,who\n1,2,a\n3,4,\x81\xe9\n5,6,\xe4\n", "a.csv"), text_format=TextFormat(encoding="windows-1252"))
    assert (points.count.tolist(), points.bad) == ([1, 1], 1)
    assert read(upload(b"x,y,who\n1,2,a\n3,4,\x81\xe9\n5,6,\xe4\n", "a.csv"), text_format=TextFormat(encoding="latin-1")).bad == 0
    head, tail = "\ufeffx,y,who\n1,2,a\n3,4,".encode("utf-16-be"), "\n5,6,b\n".encode("utf-16-be")
    for half in (b"\xd8\x00", b"\xdc\x00", b"\xdc\x00\xd8\x00"):
        points = read(upload(head + half + tail, "a.csv"), text_format=TextFormat(encoding="utf-16"))
        assert (points.count.tolist(), points.bad) == ([1, 1], 1)
    assert read(upload(head + b"\0a" + tail[:-1], "a.csv"), text_format=TextFormat(encoding="utf-16")).bad == 1
    broken, form = upload(head + b"\xd8\x00" + tail, "a.csv"), TextFormat(encoding="utf-16")
    assert "in the encoding that is declared" in refusal(broken, domain=PLANE, text_format=form)
    whole = utf16_to_utf8(head + "\U0001f600".encode("utf-16-be") + tail)
    for block in (1, 2, 7):
        monkeypatch.setattr(text_rows, "TEXT_BLOCK", block)
        assert utf16_to_utf8(head + "\U0001f600".encode("utf-16-be") + tail) == whole


def test_trips_have_decimal_commas_in_counts_and_coordinates_never_in_ids():
    form = TextFormat(separator=";", decimal=",")
    read = partial(read_trips, regions=TOWNS, text_format=form, bad_rows="drop")
    trips = read(text("from;to;trips\na;b;2,0\nb;c;1.000\nc;c;3\n"))
    assert (trips.count.tolist(), trips.bad) == ([2, 3], 1)
    matrix = read(text("home;a;b;c\na;1,0;2;\nb;1.0;0;0\nc;0;0;4\n"))
    assert (matrix.count.tolist(), matrix.bad) == ([1, 2, 4], 1)
    regions = dv.Regions.from_prefixes(["1.1", "1.2", "2,1"], lengths=[1, 3], levels=["one", "two"])
    assert read_trips(text("from;to;trips\n1.1;2,1;2,0\n"), regions=regions, text_format=form).count.tolist() == [2]


SEMICOLONS = "lon;lat;who\n1,5;2,5;zqa\n1,5;2,5;zqa\n3,5;2,5;zqb\n"
UNDECLARED = {
    "semicolons": (SEMICOLONS.encode(), "a.csv", {}, ["separated by semicolons", 'text_format=dv.reading.TextFormat(separator=";")']),
    "tabs": (SEMICOLONS.replace(";", "\t").encode(), "a.csv", {}, ["separated by tabs", 'separator="\\t"']),
    "bars": (SEMICOLONS.replace(";", "|").encode(), "a.csv", {}, ["separated by bars"]),
    "commas in tsv": (b"lon,lat\n1,2\n", "a.tsv", {}, ["no tab", "separated by commas"]),
    "another is declared": (b"lon,lat\n1,2\n", "a.csv", {"separator": ";"}, ["no semicolon", "separated by commas"]),
    "decimal commas": (
        SEMICOLONS.encode(),
        "a.csv",
        {"separator": ";"},
        ["'lon' holds no number", 'text_format=dv.reading.TextFormat(decimal=",")'],
    ),
    "UTF-16": (SEMICOLONS.encode("utf-16"), "a.csv", {}, ["byte order mark of UTF-16", 'encoding="utf-16"']),
    "UTF-16 without a mark": (SEMICOLONS.encode("utf-16-le"), "a.csv", {"encoding": "utf-16"}, ["no byte order mark"]),
    "a mark of UTF-8": (b"\xef\xbb\xbflon,lat\n1,2\n", "a.csv", {"encoding": "latin-1"}, ["byte order mark of UTF-8"]),
    "umlauts": (
        "lon,lat,größe\n1,2,3\n".encode("latin-1"),
        "a.csv",
        {},
        ["not encoded in UTF-8", "save the file", "declare"],
    ),
    "no text table": (b"{}", "a.geojson", {"separator": ";", "decimal": ","}, ["separator and decimal", "text tables"]),
    "Parquet": (b"PAR1", "a.parquet", {"encoding": "latin-1"}, ["encoding can be declared for text tables"]),
    "empty": (b"", "a.csv", {}, ["is empty", "line of column names"]),
    "only a mark": ("\ufeff\n".encode("utf-16-le"), "a.csv", {"encoding": "utf-16"}, ["is empty"]),
}


@pytest.mark.parametrize("name", UNDECLARED)
def test_what_does_not_fit_the_declaration_is_refused_with_what_to_declare(name):
    content, file_name, options, words = UNDECLARED[name]
    message = refusal(upload(content, file_name), domain=PLANE, text_format=TextFormat(**options))
    assert all(word in message for word in words)


PROPOSED = {
    "semicolons and decimal commas": (SEMICOLONS, "utf-8", TextFormat(separator=";", decimal=",")),
    "UTF-16": (SEMICOLONS, "utf-16", TextFormat(separator=";", decimal=",", encoding="utf-16")),
    "umlauts, whose encoding is not guessed": (
        "Länge;Breite\n13,4;52,5\n",
        "latin-1",
        TextFormat(separator=";", decimal=","),
    ),
    "thousands": ('from,to,trips\na,b,"1,000"\na,b,50\n', "utf-8", TextFormat()),
    "thousands beside semicolons": ("from;to;trips\na;b;1,000\na;b;2,000\n", "utf-8", TextFormat(separator=";")),
    "three decimals of coordinates": ("start lon;start lat\n13,405;52,520\n", "utf-8", TextFormat(separator=";", decimal=",")),
    "bars": ("lon|lat|note\n1.5|2.5|a, b; c\n", "utf-8", TextFormat(separator="|")),
    "a header alone": ("lon;lat;who", "utf-8", TextFormat(separator=";")),
    "the usual": ("lon,lat,note\n1.5,2.5,a;b;c\n", "utf-8", TextFormat()),
    "a mark of UTF-8": ("lon,lat,größe\n1.5,2.5,3\n", "utf-8-sig", TextFormat()),
    "one broken line": ("lon,lat,größe\n1,2,ä\n1,2,ö\n1,2,\udcff\n", "utf-8", TextFormat()),
    "thousands in quotes": ('lon,lat,n\n1.5,2.5,"1,234"\n1.5,2.5,"1,234"\n', "utf-8", TextFormat()),
    "commas in a name": ("lon;lat;name, first name\n1,5;2,5;a\n", "utf-8", TextFormat(separator=";", decimal=",")),
    "quoted decimal commas": ('lon,lat\n"1,5","2,5"\n', "utf-8", TextFormat(decimal=",")),
    "carriage returns": ("lon;lat\r\n1,5;2,5\r\n", "utf-8", TextFormat(separator=";", decimal=",")),
}


@pytest.mark.parametrize("name", PROPOSED)
def test_a_proposal_follows_from_the_structure_of_the_first_lines(name):
    content, codec, expected = PROPOSED[name]
    assert detect_text_format(upload(content.encode(codec, "surrogateescape"), "a.csv")) == expected


def test_a_proposal_is_right_for_tsv_and_refused_for_other_files(tmp_path):
    assert detect_text_format(text("lon\tlat\n1,5\t2,5\n", "a.tsv")) == TextFormat(decimal=",")
    assert "text tables" in refused(detect_text_format, text("{}", "a.geojson"))
    assert "is empty" in refused(detect_text_format, text(""))
    assert "without a byte order mark" in refused(detect_text_format, upload("lon;lat\n".encode("utf-16-le"), "a.csv"))
    assert "does it exist" in refused(detect_text_format, tmp_path / "zq.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "cannot be read" in refused(detect_text_format, tmp_path / "pipe.csv")


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.binary(max_size=80))
def test_a_proposal_for_any_bytes_is_a_format_or_a_refusal(content):
    found = or_none(lambda: detect_text_format(upload(content, "a.csv")))
    if found is None:
        assert b"\0" in content[:2] or not content
        read_or_refused(detect_text_format, upload(content, "a.csv"))
    else:
        assert found == TextFormat(**found.declarations())


def test_files_are_described_and_searched_in_their_declared_format():
    source, form = upload(SEMICOLONS.encode("utf-16"), "a.csv"), TextFormat(separator=";", decimal=",", encoding="utf-16")
    found = dv.reading.inspect_points(source, through=True, text_format=form)
    assert (found.columns, found.x, found.y) == (("lon", "lat", "who"), "lon", "lat")
    assert [column.name for column in find_repeated_columns(find_files(source, form))] == ["who"]
    trips = dv.reading.inspect_trips(text("from;to;trips\na;b;2,0\n"), through=True, text_format=TextFormat(separator=";", decimal=","))
    assert (trips.origin, trips.destination, trips.count) == ("from", "to", "trips")
    headless = text("1,5;2,5\n3,5;4,5\n")
    assert "holds numbers" in refused(dv.reading.inspect_points, headless, text_format=TextFormat(separator=";", decimal=","))


@pytest.mark.parametrize("content", ["lon;lat\n".encode("utf-16"), "lon;lat\r\n\r\n".encode("utf-16-le").join([b"\xff\xfe", b""])])
def test_a_header_alone_is_a_table_without_a_row(content):
    form = TextFormat(separator=";", encoding="utf-16")
    files = find_files(upload(content, "a.csv"), form)
    assert files.rowless == (True,)
    assert "No row follows the header" in refused(refuse_rowless, files)
    assert not np.any(read_points(upload(content, "a.csv"), domain=PLANE, text_format=form).count)


def grid(points):
    """Records per cell, and the rows that were left out."""
    cells = np.zeros((8, 8), int)
    cells[points.row, points.column] = points.count
    return cells, np.array([points.outside, points.bad, points.over])


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    st.sampled_from(list(ENCODINGS)), st.sampled_from(SEPARATORS), st.lists(st.binary(max_size=12) | st.just(b'"'), max_size=4), st.data()
)
@pytest.mark.slow
def test_whatever_a_row_holds_it_adds_the_same_beside_others(encoding, separator, pieces, data):
    codec = data.draw(st.sampled_from(MARKS[encoding]))
    form = TextFormat(separator=separator, decimal=",", encoding=encoding)
    unit = 2 if encoding == "utf-16" else 1
    end, sep = ("\n".encode(codec)[-unit:], separator.encode(codec)[-unit:])
    row = sep.join(piece[: len(piece) // unit * unit] for piece in pieces)
    row = b"".join(row[at : at + unit] for at in range(0, len(row), unit) if row[at : at + unit] != end) + end
    head = written([("x", "y", "who")], form, codec)
    others = [written([(1.5, 2.5, "ä"), (6, 7, "b")], form, codec)[2 if unit == 2 else 3 if codec == "utf-8-sig" else 0 :]] * 2
    read = partial(read_points, domain=PLANE, bad_rows="drop", text_format=form)
    contents = (others[0] + row + others[1], others[0] + others[1], row + others[0], others[0])
    together, without, beside, beside_nothing = (grid(read(upload(head + content, "a.csv"))) for content in contents)
    for one, two, three, four in zip(together, without, beside, beside_nothing, strict=True):
        np.testing.assert_array_equal(one - two, three - four)
