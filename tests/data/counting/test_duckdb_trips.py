"""Trips that DuckDB counts are those of memory, by ids and by coordinates."""

from decimal import Decimal

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import dpviz as dv
from tests.data.counting.tables_on_disk import written

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def regions():
    return dv.Regions.from_prefixes(["01001", "01003", "06001", "06037"], lengths=[2, 5], levels=["state", "county"])


def same_flows(source, regions, **options):
    results = []
    for engine in ("numpy", "duckdb"):
        try:
            found = dv.read_flows(source, regions=regions, engine=engine, **options)
            lists = [found.origin.tolist(), found.destination.tolist(), found.count.tolist()]
            results.append((lists, found.outside, found.bad, found.over))
        except dv.DpvizError as error:
            results.append((type(error), str(error) if "declared" in str(error) else ""))
    assert results[0] == results[1]
    return results[0]


def read_all_trips(rows=5_000, kind=str):
    rng = np.random.default_rng(5)
    ids = np.array(["01001", "01003", "06001", "06037", " 06037 ", "99999", "", "1001"], object)
    start, end = rng.choice(ids, rows, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.04, 0.01]), rng.choice(ids[:5], rows)
    count = rng.choice(np.array(["1", "2", "3.0", "1e1", "x", "-1", "9007199254740993", "1.00000000000000000001"], object), rows)
    return pa.table({"from": start, "to": end, "trips": count.tolist(), "who": rng.integers(0, 900, rows).astype(str)})


def test_namibia_is_a_region_like_any_other(tmp_path):
    """A cell that reads NA, null or nan is an id."""
    regions = dv.Regions.from_table(pd.DataFrame({"land": ["NA", "US", "nan", "null"]}), levels=["land"])
    (tmp_path / "trips.csv").write_text("from,to\nNA,US\nUS,nan\nnull,NA\nN/A,US\n")
    lists, outside, bad, _over = same_flows(str(tmp_path / "trips.csv"), regions, bad_rows="drop")
    assert (sum(lists[2]), outside, bad) == (3, 1, 0)


def test_coordinates_come_in_pairs(tmp_path, regions):
    (tmp_path / "trips.csv").write_text("a,b,c,d,e\n1,2,3,4,5\n")
    for engine in dv.data.counting.engines.ENGINES:
        with pytest.raises(dv.InputError, match="pair of columns"):
            dv.read_flows(
                tmp_path / "trips.csv", regions=regions, origin=("a", "b", "c"), destination=("d", "e"), crs="EPSG:4326", engine=engine
            )


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"person": "who", "contributions": 3},
        {"person": "who", "contributions": 2, "distinct": True},
        {"person": "who", "exactly": True, "contributions": 9},
    ],
)
def test_trips_by_ids_are_those_of_memory(tmp_path, regions, ending, options):
    source = written(read_all_trips(), tmp_path / f"trips{ending}", parts=2)
    lists, outside, bad, _ = same_flows(source, regions, bad_rows="drop", key=b"k", **options)
    assert sum(lists[2]) > 100
    assert outside > 0
    assert bad > 0
    same_flows(source, regions, bad_rows="refuse", key=b"k", **options)


def test_somebody_with_fewer_trips_is_refused(tmp_path, regions):
    table = pa.table({"from": ["01001"] * 3, "to": ["01003"] * 3, "who": [1, 1, 2]})
    kind, text = same_flows(written(table, tmp_path / "few.parquet"), regions, person="who", contributions=2, exactly=True)
    assert kind is dv.InputError
    assert "fewer trips" in text


def test_ids_stored_as_numbers(tmp_path):
    regions = dv.Regions.from_prefixes(["1001", "1003", "6001"], lengths=[1, 4], levels=["state", "county"])
    for made, kind in ((int, pa.int32()), (float, pa.float64()), (Decimal, pa.decimal128(6, 0))):
        table = pa.table({"from": pa.array([*map(made, (1001, 1003, 6001, 77)), None], kind), "to": pa.array([made(1001)] * 5, kind)})
        same_flows(written(table, tmp_path / f"{kind}.parquet"), regions, bad_rows="drop")


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
        lists, outside, bad, _ = same_flows(source, regions, **options)
        assert outside > 0
        assert bad >= 50
        assert len(lists[0]) == 81
        same_flows(source, regions, person="who", contributions=4, key=b"k", **options)
