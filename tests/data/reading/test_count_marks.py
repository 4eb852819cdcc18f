"""Counts with marks: in no format and no engine is 1.000 or 1,000 taken for one, and what is declared is read exactly."""

import json
import re
from functools import partial

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.counting.files import read_areas, read_points, read_trips
from dpviz.data.reading.text_format import TextFormat
from tests.data.reading.files import PLANE, TOWNS, refused, stored, text, upload

ENGINES = ("numpy", "duckdb", "dask")
MARKED = [
    "1.000",
    "12.000",
    "+1.000",
    " 1.000 ",
    "1,000",
    "1'000",
    "1 000",
    "1\u00a0000",
    "1\u202f000",
    "1\u2009000",
    "1’000",
    "1_000",
    "1.000.000",
]
FINE = {"7": 7, "1.0": 1, "1.00": 1, "1000.000": 1000, "12.0000": 12, "1e3": 1000}
DECLARED = [  # decimal, thousands, what is written, the count
    *((None, ",", written, count) for written, count in {"1,234": 1234, "1,234,567": 1234567, "1,234.0": 1234, "12": 12}.items()),
    *((None, ",", written, None) for written in ("1,23", "12,34,567", "1234,567", "1,", "1.000", "1,234.5")),
    *((None, ".", written, count) for written, count in {"1.234": 1234, "350": 350, "1.0": None, "1.23": None}.items()),
    *((",", ".", written, count) for written, count in {"1.234,0": 1234, "2,0": 2, "2,000": 2, "1.2340": None}.items()),
    *((".", None, written, count) for written, count in {"1.000": 1, "12.000": 12, "1.500": None, "1,000": None}.items()),
    *((",", None, written, count) for written, count in {"1,000": 1, "1.000": None}.items()),
    *((None, " ", written, 1200) for written in ("1 200", "1\u00a0200", "1\u202f200", "1\u2009200")),
    *((None, "'", written, 1200) for written in ("1'200", "1’200")),
]


def table(kind, cells):
    """Points, records by id or trips with a column n of texts."""
    places = {"points": {"x": 1.5, "y": 2.5}, "areas": {"town": "a"}, "trips": {"from": "a", "to": "b"}}[kind]
    return pd.DataFrame({**{name: [value] * len(cells) for name, value in places.items()}, "n": cells})


READERS = {
    "points": partial(read_points, domain=PLANE, x="x", y="y", count="n"),
    "areas": partial(read_areas, regions=TOWNS, region="town", count="n"),
    "trips": partial(read_trips, regions=TOWNS, count="n"),
}


def sources(kind, cells, folder):
    """The same rows in every form that holds texts: paths for all engines, then what only memory holds."""
    rows = table(kind, cells)
    rows.to_csv(folder / "a.tsv", index=False, sep="\t")
    rows.to_parquet(folder / "a.parquet")
    yield from ((path, engine) for path in (folder / "a.tsv", folder / "a.parquet") for engine in ENGINES)
    yield rows, "numpy"
    if kind == "points":
        point = {"type": "Point", "coordinates": [1.5, 2.5]}
        features = [{"type": "Feature", "geometry": point, "properties": {"n": cell}} for cell in cells]
        crs = {"type": "name", "properties": {"name": "EPSG:3857"}}
        yield upload(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}).encode(), "a.geojson"), "numpy"


marks = st.sampled_from([None, ".", ","])


def slow_count(written, decimal, thousands):
    """A count as the rule says it, digit by digit; None if it is bad."""
    digits = re.fullmatch(r"[+]?(.*)", written)[1]
    if decimal is None and re.fullmatch(r"[0-9]{1,3}[.][0-9]{3}", digits) and thousands != ".":
        return None
    point = decimal or (None if thousands == "." else ".")
    whole, *rest = digits.split(point) if point else [digits]
    if thousands is not None and thousands in whole:
        first, *groups = whole.split(thousands)
        whole = first + "".join(groups) if 1 <= len(first) <= 3 and all(len(group) == 3 for group in groups) else "bad"
    if len(rest) > 1 or not re.fullmatch("[0-9]+", whole) or any(set(part) - {"0"} for part in rest):
        return None
    return int(whole)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.text("0123.,", min_size=1, max_size=9), min_size=1, max_size=30), marks, marks)
def test_counts_follow_the_slow_definition(cells, decimal, thousands):
    if decimal == thousands is not None:
        return
    cells = [cell for cell in cells if not cell.startswith((".", ","))] + ["2"]
    expected = [slow_count(cell, decimal, thousands) for cell in cells]
    source = stored(table("trips", cells), "tsv")
    trips = read_trips(source, regions=TOWNS, count="n", bad_rows="drop", text_format=TextFormat(decimal=decimal, thousands=thousands))
    assert (trips.count.sum(), trips.bad) == (sum(count or 0 for count in expected), expected.count(None))


@pytest.mark.parametrize("kind", READERS)
def test_in_every_format_and_engine_a_count_that_may_have_a_mark_is_a_bad_row_of_its_own(kind, tmp_path, counted_by):
    cells = [*FINE, *MARKED, "5"]
    for source, engine in sources(kind, cells, tmp_path):
        own = {"x": None, "y": None} if str(getattr(source, "name", "")).endswith("geojson") else {}
        counted = READERS[kind](source, bad_rows="drop", **own, **counted_by(engine))
        assert (counted.count.sum(), counted.bad) == (sum(FINE.values()) + 5, len(MARKED))
    (tmp_path / "b.csv").write_text(table(kind, ["1.000", "2"]).to_csv(index=False))
    for engine in ENGINES:
        message = refused(READERS[kind], tmp_path / "b.csv", **counted_by(engine))
        assert re.search(r"declare text_format=.*thousands=.* or .*decimal=", message)


@pytest.mark.parametrize("kind", READERS)
def test_declared_marks_are_read_exactly_and_other_ways_are_bad(kind, tmp_path, counted_by):
    for decimal, thousands in dict.fromkeys(case[:2] for case in DECLARED):
        cases = {written: count for *marks, written, count in DECLARED if tuple(marks) == (decimal, thousands)} | {"3": 3}
        rows = table(kind, list(cases)).astype(str)
        if decimal == ",":
            rows = rows.apply(lambda cells: cells.str.replace(".", ",") if cells.name in "xy" else cells)
        rows.to_csv(tmp_path / "a.csv", index=False, sep=";")
        for engine in ENGINES:
            written = TextFormat(separator=";", decimal=decimal, thousands=thousands)
            declared = {"text_format": written, "bad_rows": "drop"} | counted_by(engine)
            counted = READERS[kind](tmp_path / "a.csv", **declared)
            assert counted.count.sum() == sum(count or 0 for count in cases.values())
            assert counted.bad == list(cases.values()).count(None)


def test_matrices_and_weights_have_the_same_rule():
    matrix = text('home,a,b\na,"1,200",2\nb,1.000,4\n')
    assert read_trips(matrix, regions=TOWNS, bad_rows="drop").count.tolist() == [2, 4]
    assert read_trips(matrix, regions=TOWNS, bad_rows="drop", text_format=TextFormat(thousands=",")).count.tolist() == [1200, 2, 4]
