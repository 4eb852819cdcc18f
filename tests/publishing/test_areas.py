"""Areas from configuration to publication: the data are opened, errors foreseen, a failed report recovered, and code and studies agree."""

import tomllib
from dataclasses import replace

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
import tomli_w

from dpviz.data.areas import AreaCounts
from dpviz.data.empty import refuse_empty_data
from dpviz.errors import DpvizError, InputError, SettingError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.tables import tidy
from dpviz.families import AREA_FAMILY
from dpviz.mechanisms import FlatAreas, RegionTree
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.publishing.code import CodeRun, write_python, write_study_python
from dpviz.publishing.config import DataConfig, DataPart, from_tables, read_config, to_toml
from dpviz.publishing.dry_run import WantedError, compute_error, expected_errors, find_epsilon
from dpviz.publishing.kept import differences, kept_draws, recover
from dpviz.publishing.order import Order
from dpviz.publishing.private_data import fingerprints_of, left_out
from dpviz.publishing.publish import publish, write
from dpviz.publishing.study_config import study_from
from dpviz.publishing.toml_tables import read_file
from dpviz.release.files import read_release
from dpviz.view import report
from tests.publishing.configs import changed, data_of
from tests.release_cases import areas_on, assert_same, regions_with_shapes

REGIONS = regions_with_shapes()
AREAS = {
    "data": {"points": "homes.csv", "crs": "EPSG:4326"},
    "regions": {"file": "towns.geojson", "levels": ["state", "town"]},
    "mechanism": {"key": "region_tree"},
    "budget": {"epsilon": 1},
    "dataset": {"name": "homes", "unit": "record", "cap_epsilon": 2},
    "publication": {"name": "Homes", "curator": "The office", "description": ""},
    "output": {"folder": "out"},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with points, polygons and ids, which is the current one."""
    rng = np.random.default_rng(2)
    homes = pd.DataFrame({"lon": rng.uniform(-0.5, 2, 300), "lat": rng.uniform(50, 52, 300), "who": rng.integers(0, 90, 300)})
    homes.to_csv(tmp_path / "homes.csv", index=False)
    write_towns(tmp_path)
    pd.DataFrame({"town": ["a", "d", "d"], "n": [70, 2, 3]}).to_csv(tmp_path / "counts.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_towns(folder, shift=0.0):
    table = {"state": ["01", "01", "02", "02"], "town": list("abcd"), "people": [10, 0, 30, 40]}
    shapes = [shapely.box(x + shift, 50 + y, x + 1, 51 + y) for x in (0, 1) for y in (0, 1)]
    geopandas.GeoDataFrame(table, geometry=shapes, crs="EPSG:4326").to_file(folder / "towns.geojson", driver="GeoJSON")


def configured(folder, tables=AREAS):
    (folder / "release.toml").write_text(tomli_w.dumps(tables), "utf-8")
    return read_config(folder / "release.toml")


def test_points_beside_regions_are_areas_and_their_configuration_is_written_as_it_was_read(here):
    config = configured(here)
    assert config.family is AREA_FAMILY
    assert config.mechanism.build(config.family) == RegionTree()
    assert from_tables(read_file(here / "release.toml")) == config
    (here / "again.toml").write_text(to_toml(config), "utf-8")
    assert read_config(here / "again.toml") == config
    found = data_of(config)
    assert isinstance(found.data, AreaCounts)
    assert left_out(found.data) == f"left out {found.data.outside:,}: {found.data.outside:,} in no region."
    ids = data_of(configured(here, changed(AREAS, "data", {"points": "counts.csv", "region": "town", "count": "n"}))).data
    assert (ids.leaf.tolist(), ids.count.tolist()) == ([0, 3], [70, 5])


WITHOUT_IDS = {
    "hexagons of a box": {"h3": [2, 3], "area": [0, 50, 2, 52]},
    "hexagons of polygons": {"h3": [2, 3], "area_file": "towns.geojson"},
    "squares": {"squares": [1, 3], "bounds": [-100_000, 6_400_000, 300_000, 6_800_000], "crs": "EPSG:3857"},
    "flat polygons": {"polygons": "towns.geojson"},
}


@pytest.mark.parametrize("kind", WITHOUT_IDS)
def test_regions_without_ids_are_written_as_they_were_read_and_their_code_reads_the_same(here, kind):
    if "hexagons" in kind:
        pytest.importorskip("h3")
    config = configured(here, changed(AREAS, "regions", WITHOUT_IDS[kind]))
    assert from_tables(tomllib.loads(to_toml(config))) == config
    data = data_of(config).data
    assert data.count.sum() + data.outside == 300
    assert data.outside < 150
    variables = {}
    exec(write_python(config, [CodeRun(mechanism=RegionTree(), budget=PureBudget(1), seed=3)]), variables)  # noqa: S102
    assert variables["regions"] == data.regions
    assert variables["areas"].count.tolist() == data.count.tolist()


def test_a_sample_of_areas_needs_no_regions(here):
    tables = changed(changed(AREAS, "data", {"sample": "made_up_city"}), "regions", None)
    assert data_of(configured(here, tables)).data.regions.levels == ("district", "tract", "block")
    with pytest.raises(SettingError, match="this sample is counted in its own regions"):
        configured(here, changed(tables, "domain", {"bounds": [0, 0, 1, 1], "crs": "none"}))
    with pytest.raises(SettingError, match="a sample has its own frame"):
        configured(here, changed(AREAS, "data", {"sample": "made_up_city"}))
    with pytest.raises(SettingError, match=r"\[data\] region has no meaning beside trips"):
        configured(here, changed(AREAS, "data", {"trips": "homes.csv", "region": "who"}))
    domain = changed(changed(AREAS, "regions", None), "domain", {"bounds": [0, 0, 1, 1], "crs": "none"})
    with pytest.raises(SettingError, match=r"give \[regions\] with their file instead of \[domain\]"):
        configured(here, changed(domain, "data", {"points": "counts.csv", "region": "town"}))
    with pytest.raises(SettingError, match=r"region_tree is for areas, which have \[regions\] instead of \[domain\]"):
        configured(here, domain)


def test_the_same_file_shares_a_fingerprint_as_points_and_as_areas(here):
    areas = data_of(configured(here))
    tables = changed(changed(AREAS, "regions", None), "domain", {"bounds": [-1, 49, 3, 53], "crs": "EPSG:4326"})
    points = data_of(configured(here, changed(tables, "mechanism.key", "quadtree")))
    assert len(set(areas.fingerprints) & set(points.fingerprints)) == 1
    assert len(set(areas.fingerprints) | set(points.fingerprints)) == 3
    assert fingerprints_of(areas.data) != fingerprints_of(replace(areas.data, count=areas.data.count + 1))


def test_emptied_and_made_up_areas_keep_what_is_public():
    areas = replace(areas_on(REGIONS), unit="person", contributions=3, dropped=8, outside=8)
    for made in (areas.without_records(), areas.made_up()):
        assert (made.regions, made.unit, made.contributions, made.dropped, made.outside) == (REGIONS, "person", 3, 0, 0)
    assert len(areas.without_records().count) == 0
    assert areas.made_up().count.tolist() == [10_000] * 4
    with pytest.raises(InputError, match="There is no record"):
        refuse_empty_data(areas.without_records())
    with pytest.raises(InputError, match="No record lies in a region"):
        refuse_empty_data(replace(areas.without_records(), dropped=3, outside=3))
    refuse_empty_data(areas)


@pytest.mark.parametrize("budget", [PureBudget("1/2"), ZcdpBudget("1/3"), ApproxBudget(1, "1e-6")])
@pytest.mark.parametrize("mechanism", [RegionTree(), FlatAreas(), RegionTree(count_root=True, nonnegative=True)])
def test_expected_errors_are_those_of_a_real_release(mechanism, budget):
    areas = areas_on(REGIONS)
    found = expected_errors(mechanism, areas, budget).by_level
    real = mechanism.release(areas, budget, Entropy.seeded(5))
    np.testing.assert_allclose(found["stddev"], [np.sqrt(np.mean(real.stddev(level) ** 2)) for level in range(3)])
    assert found["of"].tolist() == ["the whole", "state", "town"]
    assert found["numbers"].tolist() == [1, 2, 4]


def test_the_smallest_epsilon_for_a_wanted_error_is_found_on_each_level():
    areas = areas_on(REGIONS)
    for level in range(3):
        found = find_epsilon(RegionTree(), areas, WantedError(error=10, level=level))
        assert found.error <= 10 < compute_error(RegionTree(), areas, WantedError(error=10, level=level), 0.98 * found.epsilon)
    with pytest.raises(SettingError, match="These regions have levels 0 to 2"):
        find_epsilon(RegionTree(), areas, WantedError(error=10, level=3))


def test_a_release_whose_report_fails_is_recovered_and_only_published_with_its_own_regions(here, ledger, words, monkeypatch):
    config = configured(here)
    found = data_of(config)
    order = Order(
        data=found.data, mechanism=RegionTree(), budget=PureBudget(1), dataset="homes", fingerprints=found.fingerprints, cap=PureBudget(2)
    )

    def failing(*_, **__):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(report, "report_html", failing)
        with pytest.raises(DpvizError, match="The budget is spent"):
            publish(order, words, ledger)
    assert len(kept_draws(ledger)) == 1
    paid = recover(1, ledger)
    assert differences(paid, config) == []
    assert differences(paid, configured(here, changed(AREAS, "regions.denominator", "people"))) == ["[regions]"]
    write_towns(here, shift=0.25)
    assert differences(paid, config) == ["[regions]"]
    assert differences(paid, configured(here, changed(AREAS, "budget.epsilon", 2))) == ["[budget]", "[regions]"]
    done = write(paid, words, ledger)
    assert_same(read_release(done.folder), paid.release)
    assert ledger.account("homes").draws == 1


def test_code_makes_the_same_release(here):
    tables = changed(AREAS, "regions.denominator", "people")
    for data in ({"points": "homes.csv", "crs": "EPSG:4326"}, {"points": "counts.csv", "region": "town", "count": "n"}):
        config = configured(here, changed(tables, "data", data))
        code = write_python(config, [CodeRun(mechanism=RegionTree(), budget=ZcdpBudget("1/7"), seed=3)])
        assert "areas = dv.read_areas(" in code
        variables = {}
        exec(compile(code, "code", "exec"), variables)  # noqa: S102
        assert_same(variables["release"], RegionTree().release(data_of(config).data, ZcdpBudget("1/7"), Entropy.seeded(3)))
    code = write_python(DataConfig(data=DataPart(sample="us_residents")), [CodeRun(mechanism=FlatAreas(), budget=PureBudget(1), seed=1)])
    assert 'areas = dv.load_sample("us_residents")' in code


STUDY = {
    "seed": 7,
    "epsilons": [0.5, "1/3"],
    "data": {"points": "homes.csv", "crs": "EPSG:4326", "public": True},
    "regions": AREAS["regions"],
    "mechanism": [{"key": "region_tree", "vary": {"split": ["minimax", "uniform"]}}, {"key": "flat"}],
}


def test_area_mechanisms_are_compared_by_level(here, run, ledger):
    config = study_from(STUDY, base=here)
    study = config.build_study(data_of(config, "refuse").data)
    table = tidy(study, compare(study))
    assert set(table["mechanism"]) == {"region_tree", "flat"}
    (here / "study.toml").write_text(tomli_w.dumps(STUDY), "utf-8")
    code, out, err = run("compare", here / "study.toml")
    assert code == 0, err
    assert len(out.splitlines()) == 1 + len(table)
    variables = {}
    exec(compile(write_study_python(config), "code", "exec"), variables)  # noqa: S102
    drop = [name for name in table.columns if "second" in name or "time" in name]
    pd.testing.assert_frame_equal(variables["table"].drop(columns=drop), table.drop(columns=drop))
