"""A format of files is one declaration: everything reads it, and none is read whose bytes are not checked first."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpviz as dv
from dpviz.app.cards.uploads import upload_types
from dpviz.arrow_memory import copy_to_arrow
from dpviz.cli.check import check
from dpviz.data.reading import formats, safety
from dpviz.data.reading.formats import Format, named, register, say_tables, table_names
from dpviz.data.reading.inspect import find_repeated_columns
from dpviz.data.reading.safety import FORMATS, Limits, check_json
from dpviz.data.reading.sources import find_files
from dpviz.data.reading.tables import open_arrow, text_table
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.errors import InputError, SettingError
from tests.data.reading.files import TOWNS as REGIONS
from tests.data.reading.files import WORLD, frame, stored, text, upload
from tests.data.reading.whole import regions_frame
from tests.publishing.configs import FLOWS, POINTS, changed, per_person, written

PLANE = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
PEOPLE = pd.DataFrame(
    {"lon": [1.5, 1.5, 2.5, 9.0, 3.5], "lat": [1.5, 1.5, 3.5, 9.0, 1.0], "who": ["zqRosa", "zqRosa", "zqIda", "zqTom", "zqTom"]}
)
TRIPS = pd.DataFrame({"from": ["a", "b", "c"], "to": ["c", "c", "a"], "count": [900, 40, 500]})
TOWNS = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})


def check_rows(data, limits):
    """The rows of this format may include another file, which its library would open."""
    if b'"include"' in data:
        raise InputError("A row includes another file; put its rows into this one.")
    return check_json(data, limits, by_line=True)


def open_rows(data, limits):
    """JSON objects, one per line."""
    return open_arrow("Rows", pa.Table.from_pylist([json.loads(line) for line in data.splitlines()]), limits)


ROWS = Format(name="Rows", endings=(".rows",), check=check_rows, open_table=open_rows)


def open_held(data, limits):
    """An Arrow table as it is held in memory."""
    with pa.ipc.open_file(pa.BufferReader(copy_to_arrow(data))) as file:
        return open_arrow("Held", file.read_all(), limits)


HELD = Format(name="Held", endings=(".held",), check=lambda data, limits: data, open_table=open_held)
FEATURES = replace(named("GeoJSON"), name="Features", endings=(".features",))
BARS = text_table("BSV", (".bsv",), "|")


@pytest.fixture(autouse=True)
def _registered():
    register(ROWS)
    yield
    for each in (ROWS, BARS, FEATURES, HELD):
        formats._BY_NAME.pop(each.name, None)
        SEPARATORS.pop(each.name, None)
        for ending in each.endings:
            FORMATS.pop(ending, None)


def rows(table):
    """A table as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in table.to_dict("records")).encode()


def uploaded(table):
    return upload(rows(table), "data.rows")


def test_points_trips_areas_and_regions_are_read_as_from_other_tables(tmp_path):
    read = {"domain": PLANE, "person": "who", "contributions": 1, "key": b"0" * 32}
    plain, toy = (dv.read_points(source, **read) for source in (text(PEOPLE.to_csv(index=False)), uploaded(PEOPLE)))
    assert np.array_equal(plain.count, toy.count)
    assert (plain.over, plain.fingerprints.rows) == (toy.over, toy.fingerprints.rows)
    (tmp_path / "towns.rows").write_bytes(rows(TOWNS))
    regions = dv.read_regions(tmp_path / "towns.rows", levels=["state", "town"])
    assert dv.read_trips(uploaded(TRIPS), regions=regions).count.tolist() == [900, 40, 500]
    assert dv.read_areas(uploaded(TRIPS), regions=regions, region="to", count="count").count.tolist() == [500, 940]
    assert [column.name for column in find_repeated_columns(find_files(uploaded(PEOPLE)))] == ["who"]


def test_several_files_of_one_kind_are_read_and_of_two_kinds_refused(tmp_path):
    for number, part in enumerate((PEOPLE.iloc[:2], PEOPLE.iloc[2:])):
        (tmp_path / f"{number}.rows").write_bytes(rows(part))
    assert dv.read_points(str(tmp_path / "*.rows"), domain=PLANE).count.sum() == len(PEOPLE)
    (tmp_path / "2.rows").write_bytes(rows(TRIPS))
    with pytest.raises(InputError, match="different columns"):
        find_files(str(tmp_path / "*.rows"))
    with pytest.raises(InputError, match="different formats"):
        find_files([tmp_path / "0.rows", text("lon,lat\n1,2\n")])


def test_the_command_line_checks_and_publishes_it(run, tmp_path):
    for name, table in (("crowd", PEOPLE), ("trips", TRIPS), ("towns", TOWNS)):
        (tmp_path / f"{name}.rows").write_bytes(rows(table))
    uses = [{use["as"] for use in check(tmp_path / f"{name}.rows")["uses"]} for name in ("crowd", "trips", "towns")]
    assert [kind in found for kind, found in zip(("points", "trips", "regions"), uses, strict=True)] == [True] * 3
    points = per_person(POINTS, {"points": "crowd.rows", "person": "who", "contributions": 1})
    trips = changed(changed(FLOWS, "data", {"trips": "trips.rows"}), "regions.file", "towns.rows")
    for number, tables in enumerate((points, trips)):
        assert run("release", written(tmp_path, changed(tables, "output.folder", f"out{number}")))[0] == 0


def test_the_lists_of_formats_have_it():
    with pytest.raises(InputError, match=r"there are .*\.rows"):
        find_files(upload(b"1", "data.nothing"))
    assert "rows" in upload_types(tables=True)
    assert {"rows", "geojson"} <= {*upload_types()}
    assert "geojson" not in upload_types(tables=True)
    assert table_names()[-1] == "Rows"
    assert re.fullmatch(r"CSV, TSV, .*Parquet.* or Rows", say_tables())
    with pytest.raises(InputError, match=f"must be {say_tables()}, not GeoJSON"):
        dv.read_trips(text("{}", "trips.geojson"), regions=dv.Regions.from_table(TOWNS, levels=["state", "town"]))


def test_what_is_refused_names_no_cell(tmp_path):
    with pytest.raises(InputError, match="cannot be read as Rows") as refusal:
        dv.read_points(upload(b'{"lon": zqRosa}', "data.rows"), domain=PLANE)
    assert "zq" not in str(refusal.value)
    assert refusal.value.__cause__ is refusal.value.__context__ is None


@pytest.mark.parametrize("read", ["points", "trips", "areas", "regions", "check", "find_files"])
def test_no_reader_opens_bytes_that_the_check_refuses(read, tmp_path):
    path = tmp_path / "data.rows"
    path.write_bytes(b'{"include": "/etc/passwd"}\n')
    regions = dv.Regions.from_table(TOWNS, levels=["state", "town"])
    readers = {
        "points": lambda: dv.read_points(path, domain=PLANE),
        "trips": lambda: dv.read_trips(path, regions=regions),
        "areas": lambda: dv.read_areas(path, regions=regions, region="town"),
        "regions": lambda: dv.read_regions(path),
        "check": lambda: check(path),
        "find_files": lambda: find_files(path),
    }
    with pytest.raises(InputError, match="includes another file"):
        readers[read]()


@pytest.mark.parametrize("limits", [Limits(memory_bytes=1000), Limits(rows=3), Limits(columns=2), Limits(file_bytes=100)])
def test_limits_hold_for_every_format(limits):
    with pytest.raises(InputError, match="limit"):
        dv.read_points(uploaded(PEOPLE), domain=PLANE, limits=limits)


def test_the_given_limits_hold_for_every_opening():
    seen = []
    register(replace(HELD, check=lambda data, limits: seen.append(limits) or data))
    larger = Limits(rows=30_000_000)
    dv.read_points(held(pa.Table.from_pandas(PEOPLE)), domain=PLANE, limits=larger)
    assert {*seen} == {larger}


def held(table):
    """A table as an upload of the format Held."""
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as target:
        target.write_table(table)
    return upload(file.getvalue(), "data.held")


@pytest.mark.parametrize("encoding", ["parquet", "geoarrow"])
def test_the_geometries_that_an_arrow_table_names_are_found(encoding, tmp_path):
    register(HELD)
    as_parquet = stored(frame(), encoding)
    (tmp_path / "homes.held").write_bytes(held(pq.read_table(as_parquet)).getvalue())
    plain, same = (dv.read_points(source, domain=WORLD, count="n") for source in (as_parquet, tmp_path / "homes.held"))
    assert np.array_equal(plain.count, same.count)
    (use,) = check(tmp_path / "homes.held")["uses"]
    assert use["as"] == "points"


def test_shapes_of_regions_are_read_of_an_arrow_table(tmp_path):
    register(HELD)
    as_parquet = stored(regions_frame(), "parquet")
    (tmp_path / "towns.held").write_bytes(held(pq.read_table(as_parquet)).getvalue())
    plain, same = (dv.read_regions(source) for source in (as_parquet, tmp_path / "towns.held"))
    assert all(map(np.array_equal, plain.ids, same.ids))
    assert [(use["as"], use["missing"]) for use in check(tmp_path / "towns.held")["uses"]] == [("regions", [])]
    assert check(tmp_path / "towns.held")["format"] == "Held"


def test_the_index_of_a_data_frame_comes_first():
    register(HELD)
    matrix = pd.DataFrame(np.arange(9).reshape(3, 3), index=pd.Index(["a", "b", "c"], name="from"), columns=["a", "b", "c"])
    assert dv.read_trips(held(pa.Table.from_pandas(matrix)), regions=REGIONS).count.tolist() == [*range(1, 9)]


def with_persons(texts):
    """The upload of a table with a place and a person per row."""
    return held(pa.table({"lon": [1.5] * len(texts), "lat": [2.5] * len(texts), "who": texts}))


def stored_as(texts, kind):
    """Texts as an Arrow array of a type."""
    if not pa.types.is_dictionary(kind):
        return pa.array(texts, kind)
    coded = pa.array(texts).dictionary_encode()
    return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(kind.value_type))


def read_held(source, **limits):
    return dv.read_points(source, domain=PLANE, person="who", limits=Limits(**limits))


KINDS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int32(), pa.string_view()),
]
TEXTS = ["a", "bc", "d\u00e9", None, "a"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_ending_that_had_advice_can_be_registered_and_is_read(kind, monkeypatch):
    monkeypatch.setitem(safety._CONVERSIONS, ".held", "Save the table as Parquet.")
    with pytest.raises(InputError, match="Save the table as Parquet"):
        read_held(with_persons(pa.array(TEXTS)))
    register(HELD)
    assert dv.read_points(with_persons(stored_as(TEXTS, kind)), domain=PLANE, person="who", bad_rows="drop").count.sum() == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_points_outside_its_memory_is_refused(kind):
    register(HELD)
    texts = stored_as(["x" * 20, "y" * 20, "z" * 20], kind)
    stored = texts.dictionary if pa.types.is_dictionary(kind) else texts
    positions = stored.buffers()[1].to_pybytes()
    word = slice(4, 8) if stored.type == pa.string() else slice(8, 16)
    wrong = bytearray(positions)
    wrong[word] = b"\xf0" * (word.stop - word.start - 1) + b"\x7f"
    data = with_persons(texts).getvalue()
    assert data.count(positions) == 1
    with pytest.raises(InputError, match="damaged") as refusal:
        read_held(upload(data.replace(positions, wrong), "data.held"))
    assert refusal.value.__cause__ is refusal.value.__context__ is None


@pytest.mark.parametrize("damage", [b"\xff", b"\xc3("])
def test_a_text_that_is_not_utf_8_is_missing_and_decides_nothing_else(damage):
    register(HELD)
    who = pa.array([b"a", damage, b"b"], pa.binary()).view(pa.string())
    points = dv.read_points(with_persons(who), domain=PLANE, person="who", bad_rows="drop")
    assert (points.count.sum(), points.bad) == (2, 1)


MANY, LONG = 5000, "zq" * 5000
CODES = pa.array(np.zeros(MANY, np.int16))
_, VIEW, VIEWED = pa.array([LONG], pa.string_view()).buffers()


@pytest.mark.parametrize(
    "texts",
    [
        pa.DictionaryArray.from_arrays(CODES, pa.array([LONG])),
        pa.DictionaryArray.from_arrays(CODES, pa.array([LONG], pa.large_binary())),
        pa.DictionaryArray.from_arrays(CODES, pa.array([LONG.encode()], pa.binary(len(LONG)))),
        pa.Array.from_buffers(pa.string_view(), MANY, [None, pa.py_buffer(VIEW.to_pybytes() * MANY), VIEWED]),
    ],
)
def test_a_text_that_is_stored_once_counts_for_every_row(texts):
    register(HELD)
    source = with_persons(texts)
    assert len(source.getvalue()) < 2**18
    with pytest.raises(InputError, match=r"more memory than the limit .* Save it as Parquet, or split it") as refusal:
        read_held(source, memory_bytes=200 * 2**20)
    assert "duckdb" not in str(refusal.value)
    assert read_held(held(pa.table({"lon": [1.5], "lat": [2.5], "who": ["a"]})), memory_bytes=200 * 2**20).count.sum() == 1


def test_runs_of_equal_entries_are_refused():
    register(HELD)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1], pa.int32()), pa.array(["a"]))
    with pytest.raises(InputError, match="run-end encoded"):
        read_held(held(pa.table({"who": runs})))


def test_a_text_table_with_another_separator_is_a_declaration_alone():
    register(BARS)
    points = dv.read_points(text(PEOPLE.to_csv(index=False, sep="|"), "data.bsv"), domain=PLANE)
    assert points.count.sum() == len(PEOPLE)
    assert dv.reading.detect_text_format(text("lon|lat\n1.5|2\n", "data.bsv")) == dv.reading.TextFormat()


def test_a_format_of_geometries_is_a_declaration_too(tmp_path):
    register(FEATURES)
    point = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1.5, 2.5]}, "properties": {"who": "a", "count": 3}}
    (tmp_path / "homes.features").write_text(json.dumps({"type": "FeatureCollection", "features": [point, point]}), "utf-8")
    assert dv.read_points(tmp_path / "homes.features", domain=PLANE, count="count").count.tolist() == [6]
    assert [use["as"] for use in check(tmp_path / "homes.features")["uses"]] == ["points"]
    assert {"who"} <= {column.name for column in find_repeated_columns(find_files(tmp_path / "homes.features"))}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"check": None}, "needs a check of its bytes"),
        ({"open_table": None}, "needs open_table"),
        ({"open_points": open_rows, "open_shapes": open_rows, "first_columns": dict}, "needs open_table"),
        ({"name": "CSV"}, "belongs to another"),
        ({"endings": (".geojson",)}, "belongs to another"),
        ({"endings": ()}, "endings in lower case"),
        ({"endings": ("zzz",)}, "endings in lower case"),
    ],
)
def test_a_format_without_its_check_or_with_a_name_that_is_taken_is_refused(fields, words):
    with pytest.raises(SettingError, match=words):
        register(replace(ROWS, **{"name": "Others", "endings": (".other",), **fields}))
    assert ".other" not in FORMATS


def test_every_format_has_a_check_and_the_help_names_every_ending():
    assert all(callable(named(name).check) for name in set(FORMATS.values()))
    page = (Path(dv.__file__).parent / "docs" / "reading.md").read_text("utf-8")
    assert [ending for ending in FORMATS if ending not in ROWS.endings and not re.search(rf"`\{ending}`", page)] == []
