"""The counting pass in DuckDB gives what the one in memory gives, to the last record."""

from decimal import Decimal
from functools import partial
from itertools import product

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import dpviz as dv
from tests.data.counting.tables_on_disk import written
from tests.often import often

pytest.importorskip("duckdb")

DOMAIN = dv.Domain(bounds=(-125.0, 25.0, -65.5, 50.0), crs="EPSG:4326", order=7)
WHOLE = {"person": "who", "key": b"k", "bad_rows": "drop"}
BOUNDS = [
    {},
    {"count": "n"},
    {"person": "who", "contributions": 3, "key": b"k"},
    {"person": "who", "contributions": 40, "key": b"k", "count": "n"},
    {"person": "who", "contributions": 2, "key": b"j", "count": "n", "distinct": True},
    {"person": "who", "contributions": 2**70, "key": b"j"},
]


def table_of(rows=20_000, seed=1, kind=np.float64):
    """Clustered points, some on the edges or outside, of people of unequal sizes."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(-95, 14, rows).astype(kind), rng.normal(38, 6, rows).astype(kind)
    x[:6], y[:6] = [-125.0, -65.5, -65.5, -100.0, -125.0, -65.500001], [25.0, 50.0, 30.0, 50.0, 50.0, 26.0]
    who = (rng.pareto(1.0, rows) * 40).astype(np.int64)
    return pa.table({"lon": x, "LON ": y, "n": rng.integers(0, 7, rows), "who": who, "note": np.where(who % 2, "a,b", 'say "so"')})


def same_points(source, **options):
    """The counts that both engines give, or the text with which both refuse."""
    results = []
    for engine in ("numpy", "duckdb"):
        try:
            found = dv.read_points(source, domain=DOMAIN, engine=engine, crs=None if "geo" in str(source) else "EPSG:4326", **options)
            lists = [found.row.tolist(), found.column.tolist(), found.count.tolist()]
            results.append((lists, found.outside, found.bad, found.over, found.unit, found.contributions))
        except dv.DpvizError as error:
            results.append(type(error))
    assert results[0] == results[1]
    return results[0]


@pytest.mark.parametrize("options", BOUNDS)
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_points_are_those_of_memory(tmp_path, ending, options):
    source = written(table_of(), tmp_path / f"points{ending}", parts=3)
    lists, outside, bad, *_ = same_points(source, x="lon", y="LON ", **options)
    assert len(lists[0]) > 100
    assert outside > 0
    assert bad == 0


def test_float32_is_widened_before_anything_is_computed(tmp_path):
    same_points(written(table_of(kind=np.float32), tmp_path / "points.parquet"), x="lon", y="LON ")


@pytest.mark.parametrize("order", [1, 16, 20])
def test_cells_are_numpys_next_to_every_lattice_line(tmp_path, order):
    domain = dv.Domain(bounds=(-0.1, 0.3, 0.7, 1.9), crs=None, order=order)
    rng = np.random.default_rng(order)
    line = -0.1 + rng.integers(0, domain.side + 1, 3_000) * (0.8 / domain.side)
    x = np.concatenate([line, np.nextafter(line, -1), np.nextafter(line, 1)])
    y = np.nextafter(0.3 + rng.integers(0, domain.side + 1, len(x)) * (1.6 / domain.side), rng.choice([-1.0, 3.0], len(x)))
    pq.write_table(pa.table({"x": x, "y": y}), tmp_path / "lines.parquet")
    one, two = (dv.read_points(tmp_path / "lines.parquet", domain=domain, engine=engine) for engine in ("numpy", "duckdb"))
    assert np.array_equal(one.row, two.row)
    assert np.array_equal(one.column, two.column)
    assert np.array_equal(one.count, two.count)
    assert one.outside == two.outside


NUMBERS = [
    "1",
    " 2 ",
    "+3",
    "-4.5",
    ".5",
    "6.",
    "1e1",
    "1E+1",
    "-2.5e-1",
    "1_0",
    "+-1",
    "1,5",
    "",
    "NA",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "0x1",
]
NUMBERS += [
    "--1",
    "1e",
    "e1",
    "1e1.5",
    "1 2",
    "true",
    "12°",
    "\u0661",
    "1\u00a0",
    "1e-400",
    "0.1000000000000000055511151231257827",
    "1d",
    "$1",
    ".",
]


@pytest.mark.parametrize("bad_rows", ["drop", "refuse"])
@pytest.mark.parametrize(("ending", "column"), often(product((".parquet", ".csv"), "xn"), [(".csv", "x"), (".parquet", "n")]))
def test_numbers_in_texts_are_read_by_one_rule(tmp_path, ending, bad_rows, column):
    apart = [str(place) for place in range(len(NUMBERS))]  # a cell for each
    texts = {"x": apart, "y": ["30"] * len(NUMBERS), "n": ["1"] * len(NUMBERS)} | {column: NUMBERS}
    domain = dv.Domain(bounds=(-128.0, -128.0, 128.0, 128.0), crs=None, order=12)
    source = written(pa.table(texts), tmp_path / f"texts{ending}")
    for place in range(len(NUMBERS)) if bad_rows == "refuse" else ():  # one by one beside a good one, and all together
        two = pa.concat_tables([pa.table(texts).slice(0, 1), pa.table(texts).slice(place, 1)])
        _same_or_refused(written(two, tmp_path / f"one{place}{ending}"), domain=domain, bad_rows=bad_rows, count="n")
    _same_or_refused(source, domain=domain, bad_rows=bad_rows, count="n")


def _same_or_refused(source, **options):
    found = []
    for engine in ("numpy", "duckdb"):
        try:
            points = dv.read_points(source, engine=engine, **options)
            found.append((points.row.tolist(), points.column.tolist(), points.count.tolist(), points.outside, points.bad))
        except dv.InputError as error:
            found.append((type(error), error.__cause__, error.__context__))
    assert found[0] == found[1]


def test_faults_are_counted_alike(tmp_path):
    rows = {
        "x": [-100.0, None, np.nan, np.inf, -100.0, -100.0, 0.0, -100.0, 0.0, None],
        "y": [30.0, 30.0, 30.0, 30.0, None, 30.0, 30.0, 30.0, 30.0, 30.0],
        "n": [1.0, 2.0, 3.0, None, 5.0, 1.5, 6.0, 7.0, -1.0, 8.0],
        "who": ["a", "b", "c", "d", "e", "f", "g", None, "  ", "\u2003"],
    }
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
        ask = partial(dv.read_points, tmp_path / "points.parquet", domain=domain, **options)
        found, known = (ask(engine=engine, bad_rows="drop") for engine in ("duckdb", "numpy"))
        assert (found.bad, found.outside) == (known.bad, known.outside)
        assert found.bad == 501
        assert (found.count == known.count).all()
        with pytest.raises(dv.InputError, match="no finite number"):
            ask(engine="duckdb")


def test_polygons_are_refused_at_once(tmp_path):
    """What the file declares decides, not a row of it."""
    boxes = gpd.GeoDataFrame(geometry=[shapely.box(0, 0, 1, 1)] * 4, crs="EPSG:4326")
    boxes.to_parquet(tmp_path / "boxes.parquet")
    for engine in dv.data.counting.engines.ENGINES:
        with pytest.raises(dv.InputError, match="not points"):
            dv.read_points(tmp_path / "boxes.parquet", domain=DOMAIN, engine=engine, bad_rows="drop")


def test_persons_of_odd_types_are_refused(tmp_path):
    whose = pa.array([1, 2], pa.duration("s"))
    pq.write_table(pa.table({"lon": [-100.0, -90.0], "lat": [30.0, 31.0], "who": whose}), tmp_path / "odd.parquet")
    with pytest.raises(dv.InputError, match="person column 'who' must hold"):
        dv.read_points(tmp_path / "odd.parquet", domain=DOMAIN, crs="EPSG:4326", person="who", engine="duckdb")


def test_rows_that_cannot_be_cut_are_bad_rows(tmp_path):
    path = tmp_path / "ragged.csv"
    path.write_bytes(
        b'\xef\xbb\xbf\nlon,lat,who\n-100,30,a\n-100\n\n-100,30,b,4\n"-100",31,"c\nd"\n-100,32,"g,h"\n-100,32,"e""f"\n-100,33,NA\n-100,34,caf\xc3\xa9'
    )
    lists, _, bad, *_ = same_points(path, person="who", bad_rows="drop")
    assert bad == 5
    assert sum(lists[2]) == 4
    assert same_points(path, person="who", bad_rows="refuse") is dv.InputError


@pytest.mark.parametrize(
    "text", [b"lon,lat\n", b"lon,lat", b"lon,lat\r\n-100,30\r\n", b"\n\nlon,lat\r-100,30\r", b"lon,lat\n-100,30\xff\n"]
)
def test_short_and_strange_texts(tmp_path, text):
    (tmp_path / "short.csv").write_bytes(text)
    same_points(tmp_path / "short.csv", bad_rows="drop")
    same_points(tmp_path / "short.csv", bad_rows="refuse")


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


PEOPLE = {
    "small": pa.array([1, 2, 1, 255], pa.uint8()),
    "large": pa.array([2**63, 2**64 - 1, 2**63, 0], pa.uint64()),
    "float": pa.array([7.0, 7.5, 7.0, -0.0]),
    "decimal": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("1.50"), None], pa.decimal128(5, 2)),
    "texts": pa.array(["7", " 7", "7", "NA"]),
    "packed": pa.array(["7", " 7", "7", None]).dictionary_encode(),
    "flag": pa.array([True, False, True, None]),
    "day": pa.array([1, 2, 1, None], pa.date32()),
}


@pytest.mark.parametrize("kind", list(PEOPLE))
def test_people_of_any_type_are_those_of_memory(tmp_path, kind):
    who = pa.chunked_array([PEOPLE[kind]] * 30)
    spread = np.random.default_rng(3).uniform(-120, -70, len(who))
    source = written(pa.table({"x": spread, "y": spread / -3, "who": who}), tmp_path / "people.parquet")
    *_, over, _, most = same_points(source, contributions=5, **WHOLE)
    assert over > 0
    assert most == 5


def test_decimals_and_whole_numbers_are_coordinates(tmp_path):
    x = pa.array([Decimal("-100.123456789012345678"), Decimal("-99.1"), None], pa.decimal128(30, 18))
    source = written(pa.table({"x": x, "y": pa.array([30, 31, 32], pa.int8())}), tmp_path / "decimals.parquet")
    same_points(source, bad_rows="drop")


def test_the_order_of_rows_and_files_changes_nothing(tmp_path):
    table = table_of(100_000)
    shuffled = table.take(np.random.default_rng(9).permutation(table.num_rows))
    one, two = (written(each, tmp_path / f"{name}.parquet", parts=parts) for each, name, parts in ((table, "one", 1), (shuffled, "two", 4)))
    found = [
        dv.read_points(each, domain=DOMAIN, engine="duckdb", crs="EPSG:4326", x="lon", y="LON ", contributions=4, **WHOLE)
        for each in (one, two)
    ]
    assert np.array_equal(found[0].count, found[1].count)
    assert np.array_equal(found[0].row, found[1].row)
    assert found[0].over == found[1].over > 0
