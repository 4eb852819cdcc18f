"""Files counted by place and slot: all engines and formats give what a table in memory gives, and leave out what lies in no slot."""

import io

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from dpviz.data.areas import AreaCounts
from dpviz.data.counting.files import read_areas
from dpviz.data.reading.text_format import TextFormat
from dpviz.errors import InputError
from dpviz.space.categories import Categories
from dpviz.space.regions import Regions
from dpviz.space.summed import Summed

REGIONS = Regions.from_table(pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]}), levels=["district", "tract"])
SQUARES = Regions.from_polygons(gpd.GeoSeries([shapely.box(x, 0, x + 1, 1) for x in range(3)], crs="EPSG:3857"))
HOURS = Categories.hours("Europe/Berlin")
ENGINES = pytest.mark.parametrize("engine", ["numpy", "duckdb"])


def visits(seed: int = 1, rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    at = pd.Timestamp("2026-07-01") + pd.to_timedelta(rng.integers(0, 40 * 24 * 60, rows), unit="min")
    return pd.DataFrame(
        {"region": rng.choice(["a", "b", "c"], rows), "at": at, "who": rng.integers(0, 40, rows), "x": rng.random(rows) * 3, "y": 0.5}
    )


def written(table: pd.DataFrame, tmp_path, kind: str):
    path = tmp_path / f"visits.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return path


def assert_equal(one: AreaCounts, other: AreaCounts) -> None:
    for name in ("leaf", "slot", "count"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.outside, one.bad, one.over, one.per_slot) == (other.outside, other.bad, other.over, other.per_slot)


@ENGINES
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("persons", [{}, {"person": "who", "contributions": 6, "per_slot": 1, "key": b"k"}], ids=["records", "persons"])
@pytest.mark.parametrize("categories", [HOURS, Categories.months("2026-07", "2026-07", "UTC")], ids=["hours", "one month"])
def test_every_engine_and_format_counts_what_a_table_counts(tmp_path, engine, kind, persons, categories):
    options = {"categories": categories, "slot": "at", **persons}
    expected = AreaCounts.from_table(visits(), regions=REGIONS, count="none", **options)
    path = written(visits(), tmp_path, kind)
    assert_equal(read_areas(path, regions=REGIONS, region="region", count="none", engine=engine, **options), expected)
    assert expected.outside > 0 or categories is HOURS


@ENGINES
def test_points_are_counted_by_slot_too(tmp_path, engine):
    path, table = written(visits(), tmp_path, "csv"), visits()
    areas = read_areas(path, regions=SQUARES, x="x", y="y", crs="EPSG:3857", categories=HOURS, slot="at", count="none", engine=engine)
    counts = np.zeros((3, 24), int)
    np.add.at(counts, (table.x.astype(int), table["at"].dt.hour), 1)
    np.testing.assert_array_equal(areas.cross_counts()[-3:, -24:], counts)


@ENGINES
def test_what_cannot_be_read_is_refused_or_left_out(tmp_path, engine):
    table = visits().astype({"at": str})
    table.loc[3, "at"] = "noon"
    path = written(table, tmp_path, "csv")
    options = {"regions": REGIONS, "region": "region", "categories": HOURS, "slot": "at", "count": "none", "engine": engine}
    with pytest.raises(InputError, match="'at' has a cell that is missing or"):
        read_areas(path, **options)
    assert read_areas(path, bad_rows="drop", **options).bad == 1
    with pytest.raises(InputError, match="no column named 'hour'"):
        read_areas(path, **options | {"slot": "hour"})


@ENGINES
def test_an_unknown_region_is_refused_and_what_lies_in_no_slot_is_not(tmp_path, engine):
    august = {
        "regions": REGIONS,
        "region": "region",
        "categories": Categories.months("2026-08", "2026-08", "UTC"),
        "slot": "at",
        "count": "none",
    }
    table = visits()
    assert read_areas(written(table, tmp_path, "csv"), engine=engine, **august).outside == (table["at"].dt.month != 8).sum()
    table.loc[0, "region"] = "z"
    with pytest.raises(InputError, match="no leaf region"):
        read_areas(written(table, tmp_path, "csv"), engine=engine, **august)


@ENGINES
@pytest.mark.parametrize("persons", [{}, {"person": "who", "contributions": 3, "key": b"k"}], ids=["records", "persons"])
def test_values_of_every_engine_and_format_are_those_of_a_table(tmp_path, engine, persons):
    rng = np.random.default_rng(2)
    table = visits().assign(income=np.where(rng.random(400) < 0.1, np.nan, rng.normal(20, 30, 400).round(2)))
    options = {"regions": REGIONS, "categories": Summed(low=0, high=50, step=0.5), "slot": "income", **persons}
    expected = AreaCounts.from_table(table, count="none", **options)
    assert expected.outside == table["income"].isna().sum()
    for kind in ("csv", "parquet"):
        path = written(table, tmp_path, kind)
        assert_equal(read_areas(path, region="region", count="none", engine=engine, **options), expected)
    european = tmp_path / "european.csv"
    table.to_csv(european, index=False, sep=";", decimal=",")
    written_so = TextFormat(separator=";", decimal=",")
    assert_equal(read_areas(european, region="region", count="none", engine=engine, text_format=written_so, **options), expected)


def test_an_upload_is_read_as_a_file_is():
    upload = io.BytesIO(visits().to_csv(index=False).encode())
    upload.name = "visits.csv"
    areas = read_areas(upload, regions=REGIONS, region="region", categories=HOURS, slot="at", count="none")
    assert_equal(areas, AreaCounts.from_table(visits(), regions=REGIONS, categories=HOURS, slot="at", count="none"))


ODD = ("", "n/a", " 2 ", "inf", "1e2", "-4", "1e400", "0x10", "1_0", "9" * 40)


@ENGINES
def test_an_odd_value_decides_nothing_of_the_rows_beside_it(tmp_path, engine):
    def read(*values: str) -> tuple[np.ndarray, int]:
        path = tmp_path / "values.csv"
        path.write_text("region,v\n" + "".join(f"a,{value}\n" for value in values), "utf-8")
        options = {"regions": REGIONS, "region": "region", "categories": Summed(low=0, high=10), "slot": "v", "count": "none"}
        areas = read_areas(path, engine=engine, **options)
        return np.bincount(areas.slot, areas.count, 11), areas.outside

    counts = read("5.5")[0]
    alone = [read("5.5", value) for value in ODD]
    together = read("5.5", *ODD)
    np.testing.assert_array_equal(together[0], counts + sum(each - counts for each, _ in alone))
    assert together[1] == sum(left_out for _, left_out in alone) == 6
