"""The tables of a release of areas: what they hold, and what is hidden in them."""

import json
from dataclasses import replace

import geopandas
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from geopandas.testing import assert_geodataframe_equal

from dpviz.mechanisms import RegionTree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import read_manifest, read_release, write_release
from dpviz.release.manifest import describe
from tests.release_cases import WORDS, area_release, areas_on, assert_same, hidden_release, regions_with_shapes

FILES = {0: "areas_0_whole", 1: "areas_1_state", 2: "areas_2_town"}
NUMBERS = ["count", "count_noisy", "stddev", "ci_low", "ci_high", "all_low", "all_high"]


def written(release, folder):
    return write_release(release, folder, describe(release, WORDS))


def test_each_level_has_the_released_numbers_in_every_format(tmp_path):
    release, folder = area_release(), written(area_release(), tmp_path / "out")
    package = write_release(release, tmp_path / "package", describe(release, WORDS), formats=["geopackage"]) / "areas.gpkg"
    for level, stem in FILES.items():
        expected = release.to_frame(level)
        table = pd.read_csv(folder / f"{stem}.csv", dtype={"region_id": str, "parent_id": str})
        assert table["region_id"].tolist() == expected["region"].tolist()
        np.testing.assert_array_equal(table[NUMBERS], expected[NUMBERS])
        assert set(table["status"]) == {"private release"}
        if level:
            shapes = geopandas.read_file(folder / f"{stem}.geojson")
            np.testing.assert_allclose(shapes[NUMBERS].astype(float), expected[NUMBERS], rtol=1e-9)
            assert shapes.geometry.geom_equals(expected.geometry).all()
            layer = geopandas.read_file(package, layer=stem)
            np.testing.assert_array_equal(layer[NUMBERS], expected[NUMBERS])
            assert layer.geometry.geom_equals(expected.geometry).all()
    main = geopandas.read_parquet(folder / "areas.parquet")
    expected = release.to_frame("town")
    assert main["parent_id"].tolist() == ["01", "01", "02", "02"]
    assert_geodataframe_equal(main[["name", "count", "geometry"]], expected[["name", "count", "geometry"]], check_dtype=False)


def test_every_column_is_described(tmp_path):
    for place, release in enumerate([area_release(), hidden_release(), with_denominator(hidden_release())]):
        folder = written(release, tmp_path / str(place))
        described = set(read_manifest(folder)["contents"]["columns"])
        for path in folder.glob("*.parquet"):
            assert set(pq.read_schema(path).names) <= described, path.name
        for path in folder.glob("*.csv"):
            assert set(pd.read_csv(path).columns) <= described
        for path in folder.glob("*.geojson"):
            assert set(json.loads(path.read_text("utf-8"))["features"][0]["properties"]) <= described


def with_denominator(release):
    """The release with a public number of each town; nobody lives in the last one."""
    numbers = pd.Series([*range(1, len(release.regions.ids[-1])), 0], index=release.regions.ids[-1], name="residents", dtype=float)
    return replace(release, regions=replace(release.regions, denominator=numbers))


def test_rates_are_in_every_table_read_back_and_missing_where_the_denominator_is_0(tmp_path):
    release = with_denominator(area_release())
    folder = written(release, tmp_path / "out")
    for level, stem in FILES.items():
        table, expected = pd.read_csv(folder / f"{stem}.csv"), release.rates(level, per=1000)
        for name, column in {"rate": "rate", "rate_low": "ci_low", "rate_high": "ci_high", "denominator": "denominator"}.items():
            np.testing.assert_array_equal(table[name], expected[column])
    assert pd.read_csv(folder / "areas_2_town.csv")[["rate", "rate_low", "rate_high"]].iloc[-1].isna().all()
    contents = read_manifest(folder)["contents"]
    assert (contents["denominator"], "'residents'" in contents["columns"]["denominator"]) == ({"column": "residents", "per": 1000.0}, True)
    assert_same(read_release(folder), release)


def test_rates_of_hidden_regions_are_hidden(tmp_path):
    release, folder = with_denominator(hidden_release()), tmp_path / "out"
    table = pd.read_csv(written(release, folder) / "areas_2_town.csv")
    assert table.loc[release.hidden, ["rate", "rate_low", "rate_high"]].isna().all(axis=None)
    assert_same(read_release(folder), release)


def test_numbers_under_the_public_threshold_are_in_the_table_of_all_levels_alone(tmp_path):
    release, folder = hidden_release(), written(hidden_release(), tmp_path / "out")
    assert release.hidden[0]  # nobody is there, and 50 is far
    tables = [pd.read_csv(folder / "areas_2_town.csv"), geopandas.read_file(folder / "areas_2_town.geojson")]
    for table in [*tables, geopandas.read_parquet(folder / "areas.parquet")]:
        assert table.loc[0, ["count", "count_noisy", "count_unbiased", "ci_low", "all_high", "reliability"]].isna().all()
        assert table["count"].notna().tolist() == (~release.hidden).tolist()
    stored = pq.read_table(folder / "levels.parquet").to_pandas()
    np.testing.assert_array_equal(stored.loc[stored["level"] == 2, "count"], release.count[release.nodes(2)])
    assert stored["hidden"].tolist() == [False] * 3 + release.hidden.tolist()
    about = {entry["name"]: entry["about"] for entry in read_manifest(folder)["files"]}
    assert "threshold are missing" in about["areas.parquet"]
    assert "threshold" not in about["areas_1_state.csv"]


def test_regions_without_shapes_have_no_geojson_and_texts_like_formulas_are_escaped_in_csv(tmp_path):
    plain = regions_with_shapes(names=["=1+1", "B", "C", "D"])
    release = RegionTree().release(areas_on(plain), PureBudget(1), Entropy.system())
    assert pd.read_csv(written(release, tmp_path / "shapes") / "areas_2_town.csv")["name"][0] == "'=1+1"
    without = type(plain)(levels=plain.levels, ids=plain.ids, parent=plain.parent, names=plain.names, geometry=(None, None))
    folder = written(RegionTree().release(areas_on(without), PureBudget(1), Entropy.system()), tmp_path / "plain")
    manifest = read_manifest(folder)
    assert [entry["name"] for entry in manifest["left_out"]] == ["areas_1_state.geojson", "areas_2_town.geojson"]
    assert all("no geometry" in entry["reason"] for entry in manifest["left_out"])
    assert "geometry" not in pq.read_schema(folder / "areas.parquet").names


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_level_adds_up_to_the_whole(level, tmp_path):
    stored = pq.read_table(written(area_release(), tmp_path / "out") / "levels.parquet").to_pandas()
    assert stored.loc[stored["level"] == level, "count"].sum() == pytest.approx(area_release().count[0])
