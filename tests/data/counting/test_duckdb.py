"""The counting pass in DuckDB gives what the one in memory gives; it leaves behind no text of its own, no cell, no file."""

import itertools
import threading
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial

import duckdb
import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import shapely

import dpviz as dv
from dpviz.data.bounding import bound_of
from dpviz.data.counting import duckdb as count_duckdb
from dpviz.data.counting.block import StreamSettings
from dpviz.data.counting.duckdb import NO_ROOM, connect
from dpviz.data.counting.engines import count_stream
from dpviz.data.counting.job import Job, Progress, XyColumns
from tests.data.counting.lattice import cells_on
from tests.data.reading.files import PLANE, refused
from tests.often import often

pytestmark = pytest.mark.filterwarnings("ignore::dpviz.errors.UnreadColumnsWarning")

DOMAIN = dv.Domain(bounds=(-125.0, 25.0, -65.5, 50.0), crs="EPSG:4326", order=7)
WHOLE = {"person": "who", "key": b"k", "bad_rows": "drop"}
BOUNDS = [{}, {"count": "n"}, {"person": "who", "contributions": 3, "key": b"k"}]
BOUNDS += [{"person": "who", "contributions": 40, "key": b"k", "count": "n"}]
BOUNDS += [{"person": "who", "contributions": 2, "key": b"j", "count": "n", "distinct": True}]
BOUNDS += [{"person": "who", "contributions": 2**70, "key": b"j"}]


def written(table, path, parts=1):
    """The table as files of the path's format."""
    step = -(-table.num_rows // parts)
    for number in range(parts):
        part, file = table.slice(number * step, step), path.with_stem(f"{path.stem}-{number}")
        if path.suffix == ".parquet":
            pq.write_table(part, file, row_group_size=5_000)
        else:
            pacsv.write_csv(part, file)
    return str(path.with_stem(f"{path.stem}-*"))


def table_of(rows=20_000, seed=1, kind=np.float64):
    """Clustered points, some on the edges or outside, of people of unequal sizes."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(-95, 14, rows).astype(kind), rng.normal(38, 6, rows).astype(kind)
    x[:6], y[:6] = [-125.0, -65.5, -65.5, -100.0, -125.0, -65.500001], [25.0, 50.0, 30.0, 50.0, 50.0, 26.0]
    who = (rng.pareto(1.0, rows) * 40).astype(np.int64)
    return pa.table({"lon": x, "LON ": y, "n": rng.integers(0, 7, rows), "who": who, "note": np.where(who % 2, "a,b", 'say "so"')})


def same(read, fields, **options):
    """What both engines give, or the kind of error with which both refuse, without another error behind it."""
    results = []
    for engine in ("numpy", "duckdb"):
        try:
            found = read(engine=engine, **options)
            results.append(([getattr(found, name).tolist() for name in fields], found.outside, found.bad, found.over, found.contributions))
        except dv.DpvizError as error:
            results.append((type(error), "declared" in str(error), error.__cause__, error.__context__))
    assert results[0] == results[1]
    return results[0]


def same_points(source, domain=DOMAIN, **options):
    crs = None if "geo" in str(source) or domain.crs is None else "EPSG:4326"
    return same(partial(dv.read_points, source), ("row", "column", "count"), domain=domain, crs=crs, **options)


def same_trips(source, regions, **options):
    return same(partial(dv.read_trips, source), ("origin", "destination", "count"), regions=regions, **options)


@pytest.mark.parametrize(
    ("ending", "options"), [*((".parquet", options) for options in BOUNDS), *((".csv", options) for options in BOUNDS[::2])]
)
def test_points_are_those_of_memory(tmp_path, ending, options):
    source = written(table_of(), tmp_path / f"points{ending}", parts=3)
    lists, outside, bad, *_ = same_points(source, x="lon", y="LON ", **options)
    assert len(lists[0]) > 100
    assert (outside > 0, bad) == (True, 0)


@pytest.mark.parametrize("options", often(BOUNDS, BOUNDS[3:4]))
def test_records_in_masked_cells_are_outside_the_domain_in_every_engine(tmp_path, options):
    """They are left out before a person's records are chosen, as those outside are."""
    is_open = np.random.default_rng(1).random((32, 32)) < 0.6
    masked, table = replace(DOMAIN, mask=dv.CellMask.from_open(is_open)), table_of()
    source = written(table, tmp_path / "points.parquet", parts=2)
    lists, outside, *_ = same_points(source, masked, x="lon", y="LON ", **options)
    assert outside > same_points(source, x="lon", y="LON ", **options)[1]
    assert masked.mask.holds(np.array(lists[1]), np.array(lists[0]), 7).all()
    column, row = ((table[name].to_numpy() - low) / width for name, low, width in (("lon", -125, 59.5 / 32), ("LON ", 25, 25 / 32)))
    inside = (column >= 0) & (column <= 32) & (row >= 0) & (row <= 32)
    column, row = np.minimum(column, 31), np.minimum(row, 31)  # points on the east and north edges are inside
    inside[inside] = is_open[row[inside].astype(int), column[inside].astype(int)]
    pq.write_table(table.filter(pa.array(inside)), tmp_path / "inside.parquet")
    assert same_points(tmp_path / "inside.parquet", x="lon", y="LON ", **options)[0] == lists


def test_float32_and_decimals_are_widened_before_anything_is_computed(tmp_path):
    same_points(written(table_of(kind=np.float32), tmp_path / "points.parquet"), x="lon", y="LON ")
    x = pa.array([Decimal("-100.123456789012345678"), Decimal("-99.1"), None], pa.decimal128(30, 18))
    source = written(pa.table({"x": x, "y": pa.array([30, 31, 32], pa.int8())}), tmp_path / "decimals.parquet")
    same_points(source, bad_rows="drop")


@pytest.mark.parametrize("order", [1, 16, 20])
def test_cells_are_numpys_next_to_every_lattice_line(tmp_path, order):
    domain = dv.Domain(bounds=(-0.1, 0.3, 0.7, 1.9), crs=None, order=order)
    rng = np.random.default_rng(order)
    line = -0.1 + rng.integers(0, domain.side + 1, 3_000) * (0.8 / domain.side)
    x = np.concatenate([line, np.nextafter(line, -1), np.nextafter(line, 1)])
    y = np.nextafter(0.3 + rng.integers(0, domain.side + 1, len(x)) * (1.6 / domain.side), rng.choice([-1.0, 3.0], len(x)))
    pq.write_table(pa.table({"x": x, "y": y}), tmp_path / "lines.parquet")
    same_points(tmp_path / "lines.parquet", domain=domain)


WORDS = "1 +3 -4.5 .5 6. 1e1 1E+1 -2.5e-1 1_0 +-1 1,5 NA nan inf -inf 1e400 0x1 --1 1e e1 1e1.5 true 12° \u0661 1e-400 1d $1 ."
NUMBERS = [*WORDS.split(), "", " 2 ", "1 2", "1\u00a0", "0.1000000000000000055511151231257827"]


@pytest.mark.parametrize(("ending", "column"), often(itertools.product((".parquet", ".csv"), "xn"), [(".csv", "x"), (".parquet", "n")]))
def test_numbers_in_texts_are_read_by_one_rule(tmp_path, ending, column):
    """All of them together, where each has a cell of its own; and one by one beside a good one, where it decides about the file."""
    apart = [str(place) for place in range(len(NUMBERS))]
    texts = pa.table({"x": apart, "y": ["30"] * len(NUMBERS), "n": ["1"] * len(NUMBERS)} | {column: NUMBERS})
    domain = dv.Domain(bounds=(-128.0, -128.0, 128.0, 128.0), crs=None, order=12)
    _, _, bad, *_ = same_points(written(texts, tmp_path / f"texts{ending}"), domain, bad_rows="drop", count="n")
    assert bad > 10
    for place in range(2 * (column == "n") + (ending == ".csv"), len(NUMBERS), 4):  # the four cases share them
        two = pa.concat_tables([texts.slice(0, 1), texts.slice(place, 1)])
        same_points(written(two, tmp_path / f"one{place}{ending}"), domain, bad_rows="refuse", count="n")


def test_faults_are_counted_alike(tmp_path):
    rows = {"x": [-100.0, None, np.nan, np.inf, -100.0, -100.0, 0.0, -100.0, 0.0, None]}
    rows |= {"y": [30.0, 30.0, 30.0, 30.0, None, 30.0, 30.0, 30.0, 30.0, 30.0], "n": [1.0, 2.0, 3.0, None, 5.0, 1.5, 6.0, 7.0, -1.0, 8.0]}
    rows |= {"who": ["a", "b", "c", "d", "e", "f", "g", None, "  ", "\u2003"]}
    source = written(pa.table(rows), tmp_path / "faults.parquet")
    for options in ({}, {"count": "n"}, {"person": "who"}, {"count": "n", "person": "who"}):
        _, _, bad, *_ = same_points(source, bad_rows="drop", **options)
        assert bad > 0
        same_points(source, bad_rows="refuse", **options)


@pytest.mark.parametrize("largest", [8.0, 7.0, 180.0])
def test_nan_is_bad_whatever_the_files_smallest_and_largest_values_are(tmp_path, largest):
    """A Parquet file's statistics leave NaN out."""
    x = np.r_[np.full(500, np.nan), np.linspace(0.0, largest, 1000)]
    table = pa.table({"x": x, "y": np.r_[np.linspace(0.0, 8.0, 1499), np.nan], "n": np.r_[np.ones(1499), np.nan]})
    pq.write_table(table, tmp_path / "points.parquet")
    domain = dv.Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3)
    for options in ({}, {"count": "n"}):
        _, _, bad, *_ = same_points(tmp_path / "points.parquet", domain, bad_rows="drop", **options)
        assert bad == 501
        assert same_points(tmp_path / "points.parquet", domain, **options)[0] is dv.InputError


@pytest.mark.parametrize("holes", [True, False])
@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
def test_geometries(tmp_path, encoding, holes):
    table = table_of(3_000)
    points = shapely.points(table["lon"].to_numpy(), table["LON "].to_numpy())
    if holes:
        points[5], points[6] = None, shapely.Point()
    frame = gpd.GeoDataFrame({"who": table["who"].to_numpy(), "n": table["n"].to_numpy()}, geometry=points, crs="EPSG:4326")
    frame.to_parquet(tmp_path / "geo.parquet", geometry_encoding=encoding)
    for options in ({"bad_rows": "drop"}, {}, WHOLE | {"count": "n", "contributions": 2}):
        same_points(tmp_path / "geo.parquet", **options)


PEOPLE = {"small": pa.array([1, 2, 1, 255], pa.uint8()), "large": pa.array([2**63, 2**64 - 1, 2**63, 0], pa.uint64())}
PEOPLE |= {"float": pa.array([7.0, 7.5, 7.0, -0.0])}
PEOPLE |= {"decimal": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("1.50"), None], pa.decimal128(5, 2))}
PEOPLE |= {"texts": pa.array(["7", " 7", "7", "NA"]), "packed": pa.array(["7", " 7", "7", None]).dictionary_encode()}
PEOPLE |= {"flag": pa.array([True, False, True, None]), "day": pa.array([1, 2, 1, None], pa.date32())}


@pytest.mark.parametrize("kind", PEOPLE)
def test_people_of_any_type_are_those_of_memory(tmp_path, kind):
    who = pa.chunked_array([PEOPLE[kind]] * 30)
    spread = np.random.default_rng(3).uniform(-120, -70, len(who))
    source = written(pa.table({"x": spread, "y": spread / -3, "who": who}), tmp_path / "people.parquet")
    _, _, _, over, _ = same_points(source, contributions=5, **WHOLE)
    assert over > 0


@pytest.fixture(scope="module")
def regions():
    return dv.Regions.from_prefixes(["01001", "01003", "06001", "06037"], lengths=[2, 5], levels=["state", "county"])


def trips_of(rows=5_000, kind=str):
    rng = np.random.default_rng(5)
    ids = np.array(["01001", "01003", "06001", "06037", " 06037 ", "99999", "", "1001"], object)
    start, end = rng.choice(ids, rows, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.04, 0.01]), rng.choice(ids[:5], rows)
    count = rng.choice(np.array(["1", "2", "3.0", "1e1", "x", "-1", "9007199254740993", "1.00000000000000000001"], object), rows)
    return pa.table({"from": start, "to": end, "trips": count.tolist(), "who": rng.integers(0, 900, rows).astype(str)})


def test_ids_may_read_na_null_or_nan(tmp_path):
    regions = dv.Regions.from_table(pd.DataFrame({"land": ["NA", "US", "nan", "null"]}), levels=["land"])
    (tmp_path / "trips.csv").write_text("from,to\nNA,US\nUS,nan\nnull,NA\nN/A,US\n")
    lists, outside, bad, *_ = same_trips(str(tmp_path / "trips.csv"), regions, bad_rows="drop")
    assert (sum(lists[2]), outside, bad) == (3, 1, 0)


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize(
    "options", [{}, {"contributions": 3}, {"contributions": 2, "distinct": True}, {"exactly": True, "contributions": 9}], ids=str
)
def test_trips_by_ids_are_those_of_memory(tmp_path, regions, ending, options):
    source = written(trips_of(), tmp_path / f"trips{ending}", parts=2)
    options = options | {"key": b"k", "person": "who" if options else None}
    lists, outside, bad, *_ = same_trips(source, regions, bad_rows="drop", **options)
    assert sum(lists[2]) > 100
    assert min(outside, bad) > 0
    same_trips(source, regions, bad_rows="refuse", **options)


def test_a_person_with_fewer_trips_is_refused(tmp_path, regions):
    table = pa.table({"from": ["01001"] * 3, "to": ["01003"] * 3, "who": [1, 1, 2]})
    found = same_trips(written(table, tmp_path / "few.parquet"), regions, person="who", contributions=2, exactly=True)
    assert found[:2] == (dv.InputError, True)


def test_ids_stored_as_numbers(tmp_path):
    regions = dv.Regions.from_prefixes(["1001", "1003", "6001"], lengths=[1, 4], levels=["state", "county"])
    for made, kind in ((int, pa.int32()), (float, pa.float64()), (Decimal, pa.decimal128(6, 0))):
        table = pa.table({"from": pa.array([*map(made, (1001, 1003, 6001, 77)), None], kind), "to": pa.array([made(1001)] * 5, kind)})
        same_trips(written(table, tmp_path / f"{kind}.parquet"), regions, bad_rows="drop")


def test_trips_by_coordinates_are_those_of_memory(tmp_path):
    squares = [shapely.box(x, y, x + 1, y + 1) for x in range(3) for y in range(3)]
    frame = gpd.GeoDataFrame({"area": [f"a{place}" for place in range(9)]}, geometry=squares, crs="EPSG:4326")
    regions = dv.Regions.from_table(frame, levels=["area"])
    rng = np.random.default_rng(6)
    columns = {name: rng.uniform(-0.2, 3.2, 4_000) for name in ("x", "y", "u", "v")}
    columns["x"][:50] = np.nan
    for ending in (".parquet", ".csv"):
        source = written(pa.table(columns | {"who": rng.integers(0, 300, 4_000)}), tmp_path / f"pairs{ending}")
        options = {"origin": ("x", "y"), "destination": ("u", "v"), "crs": "EPSG:4326", "bad_rows": "drop"}
        lists, outside, bad, *_ = same_trips(source, regions, **options)
        assert (outside > 0, bad >= 50, len(lists[0])) == (True, True, 81)
        same_trips(source, regions, person="who", contributions=4, key=b"k", **options)


STORED = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", STORED, ids=str)
@pytest.mark.parametrize("encoding", [None, "DELTA_BYTE_ARRAY"])
def test_ids_are_found_however_parquet_stores_texts(tmp_path, regions, kind, encoding):
    """Ids that are stored as dictionaries are looked up once each."""
    if encoding is not None and pa.types.is_dictionary(kind):
        pytest.skip("Arrow does not read these")
    texts = pa.array(["01001", "06037", None, "", " 01003", "nowhere"] * 200).cast(kind)
    options = {} if encoding is None else {"use_dictionary": False, "column_encoding": {"from": encoding, "to": encoding}}
    pq.write_table(pa.table({"from": texts, "to": texts}), tmp_path / "trips.parquet", row_group_size=500, **options)
    lists, outside, bad, *_ = same_trips(str(tmp_path / "trips.parquet"), regions, bad_rows="drop")
    assert (sum(lists[2]), outside, bad) == ((0, 0, 1200) if kind == pa.binary() else (600, 200, 400))


CELL = "4.2424242"
CROWD, LITTLE = 2_000_000, 20 * 2**20


def job_of(path, **rest):
    schema = pq.read_schema(path) if path.suffix == ".parquet" else pa.schema([(name, pa.string()) for name in ("x", "y")])
    kind = "Parquet" if path.suffix == ".parquet" else "CSV"
    finder = cells_on(XyColumns(x="x", y="y"), PLANE)
    return Job(files=(path,), format=kind, schema=schema, finder=finder, drop=True, size=path.stat().st_size, **rest)


def points_in(path, rows=50_000, **columns):
    rng = np.random.default_rng(2)
    pq.write_table(pa.table({"x": rng.uniform(0, 8, rows), "y": rng.uniform(0, 8, rows)} | columns), path, compression=None)
    return path


def refusal(job, tmp_path, watch=None, kind=dv.InputError, **settings):
    """The text of the error, which has no other behind it; the folder for spilling is empty again."""
    spill = tmp_path / "spill"
    spill.mkdir(exist_ok=True)
    text = refused(count_stream, job, watch or Progress(), StreamSettings(folder=spill, **settings), error=kind)
    assert CELL not in text
    assert not list(spill.iterdir())
    return text


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


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A count of so many crowd that it does not fit in the memory it is given below."""
    rng = np.random.default_rng(4)
    path = points_in(tmp_path_factory.mktemp("crowd") / "people.parquet", CROWD, who=rng.integers(0, CROWD, CROWD))
    return job_of(path, person="who", bound=bound_of(1, b"k"))


def test_no_room_to_spill_in(crowd, tmp_path, monkeypatch):
    monkeypatch.setattr(count_duckdb, "_CLOSED_SETTINGS", count_duckdb._CLOSED_SETTINGS | {"max_temp_directory_size": "1MiB"})
    assert refusal(crowd, tmp_path, memory=LITTLE, threads=1) == NO_ROOM


def test_a_folder_that_is_taken_away_ends_the_count_or_changes_nothing(crowd, tmp_path):
    """DuckDB makes the folder again where it can."""
    (tmp_path / "spill").mkdir()

    def take_away(_done):
        for folder in (tmp_path / "spill").iterdir():
            if any(folder.iterdir()) and not (tmp_path / "gone").exists():  # once rows are spilled
                folder.rename(tmp_path / "gone")

    settings = StreamSettings(folder=tmp_path / "spill", memory=LITTLE, threads=1)
    with suppress(dv.InputError):
        found = count_stream(crowd, Progress(progress=take_away), settings)
        np.testing.assert_array_equal(found.counts, count_stream(crowd, Progress()).counts)
    assert (tmp_path / "gone").exists()
    assert not list((tmp_path / "spill").iterdir())


def test_spilling_gives_the_same_counts_in_a_private_folder(crowd, tmp_path):
    modes, parts, files = set(), [], []

    def look(done):
        modes.update(folder.stat().st_mode & 0o777 for folder in tmp_path.iterdir())
        parts.append(done)
        files.append(len(list(tmp_path.rglob("*"))))

    small = count_stream(crowd, Progress(progress=look), StreamSettings(folder=tmp_path, memory=2 * LITTLE, threads=1))
    large = count_stream(crowd, Progress())
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
    monkeypatch.setattr(count_duckdb, "_WAIT_SECONDS", 0.001)
    for call in (1, 3):  # before the query, and within it
        cancel, calls = threading.Event(), itertools.count(1)
        watch = Progress(progress=lambda _done, cancel=cancel, calls=calls, last=call: next(calls) == last and cancel.set(), cancel=cancel)
        assert "cancelled" in refusal(job_of(path), tmp_path, watch, dv.DpvizError, threads=1)


@pytest.mark.parametrize("call", [1, 2, 5, 20])
def test_a_count_of_people_that_is_cancelled(crowd, tmp_path, call, monkeypatch):
    """While rows are sorted, and while sorted rows stream by."""
    monkeypatch.setattr(count_duckdb, "_WAIT_SECONDS", 0.001)
    cancel, calls = threading.Event(), itertools.count(1)
    watch = Progress(progress=lambda _done: next(calls) == call and cancel.set(), cancel=cancel)
    assert "cancelled" in refusal(crowd, tmp_path, watch, dv.DpvizError, threads=1)


def test_people_whose_texts_cannot_be_decoded_are_missing(tmp_path):
    texts = pa.array([b"a", b"\xff", b"a", b"b", b"7"]).view(pa.string())
    pq.write_table(pa.table({"x": [-100.0] * 5, "y": [30.0] * 5, "who": texts}), tmp_path / "texts.parquet")
    lists, outside, bad, over, _ = same_points(tmp_path / "texts.parquet", **WHOLE)
    assert (lists[2], outside, bad, over) == ([3], 0, 1, 1)


def test_an_error_of_the_caller_ends_the_count(tmp_path):
    def stop(_done):
        raise KeyboardInterrupt

    refusal(job_of(points_in(tmp_path / "points.parquet", 500_000)), tmp_path, Progress(progress=stop), KeyboardInterrupt)
    assert threading.active_count() < 20


def test_odd_file_names_stand_for_themselves(tmp_path):
    path = points_in(tmp_path / "a[1]*'b=c.parquet", 10)
    points_in(tmp_path / "a1Z'b=c.parquet", 1_000)
    assert count_stream(job_of(path), Progress()).counts.sum() == 10


def test_duckdb_is_shut_off(tmp_path):
    path = points_in(tmp_path / "points.parquet", 10)
    (tmp_path / "spill").mkdir()
    with connect(tmp_path / "spill", StreamSettings()) as connection:
        for statement in (
            f"FROM read_parquet('{path}')",
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
    assert not (tmp_path / "x.csv").exists()
