"""Neighbours of whole files: one row, or all rows of one person, change the counts by their own records, whatever stands in them."""

import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpviz.data.counting.engines import ENGINES
from dpviz.data.counting.files import read_areas, read_points, read_trips
from dpviz.data.reading.text_rows import LINE_BYTES
from tests.data.reading.files import PLANE, TOWNS, WORLD, upload
from tests.often import named, often

NUMBERS = ["zq", "", " ", "nan", "-inf", "1e999", "9" * 400, "1,5", '"1,5"', "0x1", "1_0", "-1", "99", "\u0661", '"1', "1\0"]
WHOLE = [*NUMBERS, "0", "2.0", "1.5", "1e15", "9007199254740993", str(2**63), str(2**64 + 1)]
IDS = ["", " ", "unknown", '"a', '"b"', "a,b", "=a", b"\xff", "\0", "a\r"]
NOTES = ['"oops', 'a"b', '"', '""b', '"b""', "\0", "a\rb", "\u2028", "=1", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf"]
"""Cells of a column that nobody reads."""
STORED = [None, float("nan"), float("inf"), -1e308, 1e308, -0.0, 99.0]
TEXTS = [None, "", " ", "unknown", "a\0", '"a', "=a", "9" * 400]
GEOMETRIES = [
    None,
    "zq",
    5,
    {},
    {"type": "Point"},
    {"type": "Polygon", "coordinates": []},
    {"type": "GeometryCollection", "geometries": []},
]
GEOMETRIES += [
    {"type": "Point", "coordinates": place} for place in ([], [1], ["zq", 1], {"zq": 1}, [None, 1], [1e308, 1], [1, 2, 3], [[1, 2]])
]


@dataclass(frozen=True, kw_only=True)
class Case:
    """How files of a format are written and read.

    Attributes:
        name: of the file.
        write: from rows to bytes.
        rows: of a person p, or of nobody; each is one record at most.
        others: rows of other people.
        read: the reader with the public frame.
        foreign: rows in which p's own id is missing or damaged.
        engines: that read the format.
    """

    name: str
    write: Callable[[list[Any]], bytes]
    rows: list[Any]
    others: list[Any]
    read: Callable[..., Any]
    foreign: list[Any]
    engines: tuple[str, ...] = ENGINES


def bad_rows(good: list[Any], *cells: list[Any]) -> list[list[Any]]:
    """A good row with each bad cell in its place."""
    return [[*good[:place], cell, *good[place + 1 :]] for place, bad in enumerate(cells) for cell in bad]


def other_rows(*columns: list[Any]) -> list[list[Any]]:
    """The rows of seven other people."""
    return [[*(cells[k % len(cells)] for cells in columns), f"{k % 7}", "n"] for k in range(30)]


def text(header: str, good: list[str], cells: list[list[Any]], columns: list[list[str]], read: Callable, end: bytes = b"\n") -> Case:
    """Lines, also of too many cells or too few; the last two columns are the person and a note."""

    def line(row: list[Any]) -> bytes:
        return b",".join(cell if isinstance(cell, bytes) else cell.encode() for cell in row)

    blank = [[], [""] * len(good), ['"'] * len(good), good[:1], good[:-1], [*good, "more"], good * 99, ["x" * LINE_BYTES]]
    return Case(
        name="a.csv",
        write=lambda lines: end.join([header.encode(), *lines, b""]),
        rows=[line(row) for row in [good, *bad_rows(good, *cells), *blank, *bad_rows(good, *[[]] * (len(good) - 1), NOTES)]],
        foreign=[line(row) for row in bad_rows(good, *[[]] * (len(good) - 2), IDS)],
        others=[line(row) for row in other_rows(*columns)],
        read=read,
    )


def parquet(header: str, good: list[Any], cells: list[list[Any]], columns: list[list[Any]], read: Callable) -> Case:
    names = header.split(",")
    types = [pa.float64() if isinstance(cell, float) else pa.string() for cell in good]

    def write(rows: list[list[Any]]) -> bytes:
        buffer = io.BytesIO()
        arrays = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
        pq.write_table(pa.table(arrays, names), buffer)
        return buffer.getvalue()

    return Case(
        name="a.parquet",
        write=write,
        rows=[good, *bad_rows(good, *cells), *bad_rows(good, *[[]] * (len(good) - 1), TEXTS)],
        foreign=bad_rows(good, *[[]] * (len(good) - 2), TEXTS),
        others=other_rows(*columns),
        read=read,
    )


def geojson(read: Callable) -> Case:
    def feature(x: float, y: float, who: Any, **more: Any) -> dict:
        return {"type": "Feature", "properties": {"who": who, "note": "n"}, "geometry": {"type": "Point", "coordinates": [x, y]}} | more

    good = feature(1.5, 2.5, "p")
    odd = [
        {"id": 5},
        {"id": [1]},
        {"bbox": "zq"},
        {"properties": {"who": "p", "note": [{"a": 1}]}},
        {"properties": {"who": "p", "x": 1, "X": 2}},
    ]
    foreign = [{"properties": None}, {"properties": "zq"}, {"properties": {}}, {"properties": {"Who": "q", "who": "p"}}, {"type": "zq"}]
    return Case(
        name="a.geojson",
        write=lambda features: json.dumps({"type": "FeatureCollection", "features": features}).encode(),
        rows=[good, *(good | more for more in odd), *(good | {"geometry": each} for each in GEOMETRIES)],
        foreign=[*(good | more for more in foreign), *(feature(1.5, 2.5, who) for who in (None, "", 7, 1.5, True, [1], {"a": 1}))],
        others=[feature(k % 3 + 0.5, k % 5, k % 7) for k in range(30)],
        read=read,
        engines=ENGINES[:1],
    )


PLACES, LEAVES = [["0.5", "3.5", "7"], ["1", "4.5"]], [["a", "b", "c"], ["a", "c"]]
IN_PLANE, OF_TOWNS, IN_TOWNS = partial(read_points, domain=PLANE), partial(read_trips, regions=TOWNS), partial(read_areas, regions=TOWNS)
CASES = {
    "points": text("x,y,who,note", ["1.5", "2.5", "p", "n"], [NUMBERS, NUMBERS], PLACES, IN_PLANE),
    "trips": text("from,to,who,note", ["a", "b", "p", "n"], [IDS, IDS], LEAVES, OF_TOWNS),
    "areas": text("town,who,note", ["a", "p", "n"], [IDS], LEAVES[:1], partial(IN_TOWNS, region="town")),
    "counts": text(
        "x,y,n,who,note",
        ["1.5", "2.5", "1", "p", "n"],
        [NUMBERS, NUMBERS, WHOLE],
        [*PLACES, ["1"]],
        partial(IN_PLANE, count="n"),
    ),
    "points, CRLF": text("x,y,who,note", ["1.5", "2.5", "p", "n"], [NUMBERS, NUMBERS], PLACES, IN_PLANE, b"\r\n"),
    "points of parquet": parquet("x,y,who,note", [1.5, 2.5, "p", "n"], [STORED, STORED], [[0.5, 3.5, 7.0], [1.0, 4.5]], IN_PLANE),
    "trips of parquet": parquet("from,to,who,note", ["a", "b", "p", "n"], [TEXTS, TEXTS], LEAVES, OF_TOWNS),
    "areas of parquet": parquet("town,who,note", ["a", "p", "n"], [TEXTS], LEAVES[:1], partial(IN_TOWNS, region="town")),
    "points of geojson": geojson(partial(read_points, domain=WORLD)),
}
UNITS = [{}] + [{"person": "who", "contributions": 2, "key": b"k", "distinct": distinct} for distinct in (False, True)]


def units_of(case: Case) -> list[dict[str, Any]]:
    """With and without people; a row of several records is bounded only by the person's bound."""
    return UNITS[1:] if case is CASES["counts"] else UNITS


def counts_of(found: Any) -> Counter:
    """Records by cell, pair or leaf."""
    places = [getattr(found, name).tolist() for name in ("column", "row", "origin", "destination", "leaf") if hasattr(found, name)]
    return Counter(dict(zip(zip(*places, strict=True), found.count.tolist(), strict=True)))


def added(without: Counter, found: Counter) -> int:
    """How many records came; none may have gone."""
    assert without.total() > 0
    assert not without - found
    return (found - without).total()


@pytest.mark.parametrize("case", named(CASES, ["points", "trips"]))
@pytest.mark.parametrize("beside", often([1, 30], 1))
def test_a_row_counts_for_itself_alone(case, beside):
    """At the beginning, in the middle and at the end, beside one other row or many."""
    for unit in units_of(case):

        def count(rows: list[Any], unit: dict[str, Any] = unit) -> Counter:
            return counts_of(case.read(upload(case.write(rows), case.name), bad_rows="drop", **unit))

        kept, seen = case.others[:beside], []
        without = count(kept)
        for place in {0, beside // 2, beside}:
            seen += [added(without, count([*kept[:place], row, *kept[place:]])) for row in [*case.rows, *case.foreign]]
        assert {*seen} == ({0, 1, 2} if case is CASES["counts"] and not unit["distinct"] else {0, 1})


@pytest.mark.parametrize(
    ("case", "engine"),
    [
        pytest.param(case, engine, id=f"{name}, {engine}", marks=() if engine in ENGINES[:2] else pytest.mark.slow)
        for name, case in CASES.items()
        for engine in case.engines
    ],
)
def test_all_rows_of_a_person_count_for_the_bound_at_most(case, engine, counted_by, tmp_path):
    own = case.rows * 2
    mixed = [row for k, other in enumerate(case.others) for row in (other, *own[k :: len(case.others)])]
    for unit in units_of(case):
        found = []
        for name, rows in (("without", case.others), ("with", mixed)):
            path = tmp_path / f"{name} {case.name}"
            path.write_bytes(case.write(rows))
            found.append(counts_of(case.read(path, bad_rows="drop", **unit, **counted_by(engine))))
        assert 0 < added(*found) <= unit.get("contributions", len(own))
