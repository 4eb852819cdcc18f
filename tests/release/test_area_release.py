"""Releases of areas: tables, answers for regions and polygons with their exact spread, rates, fitness, hidden counts."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import dpviz as dv
from dpviz.errors import DomainError, RefusedError
from dpviz.release.area_fitness import fitness
from dpviz.release.verdict import verdict
from dpviz.samples.areas import area_population, load_area_sample
from dpviz.space.area_shares import leaf_shares
from tests.area_cases import areas_of, dense_covariance, dense_fit, membership, records_of
from tests.trip_cases import regular

MECHANISMS = {"flat": dv.FlatAreas(), "tree": dv.RegionTree(), "non-negative": dv.RegionTree(nonnegative=True)}
ONE = dv.PureBudget(1)
EVERY = pytest.mark.parametrize("mechanism", [pytest.param(each, id=name) for name, each in MECHANISMS.items()])


@pytest.fixture(scope="module")
def city():
    return load_area_sample("made_up_city")


def made(areas, mechanism=MECHANISMS["tree"], budget=ONE, seed=1):
    return mechanism.release(areas, budget, dv.Entropy.seeded(seed))


def refusal(call) -> str:
    with pytest.raises(DomainError) as refused:
        call()
    return str(refused.value)


@EVERY
def test_a_table_has_a_row_per_region_with_intervals_around_estimates(city, mechanism):
    release = made(city, mechanism)
    for level, name in enumerate(("the whole", *city.regions.levels)):
        table = release.to_frame(level)
        assert isinstance(table, gpd.GeoDataFrame)
        assert list(table["region"]) == list(city.regions.ids_of(level))
        np.testing.assert_array_equal(table["count"], release.count[release.nodes(level)])
        estimate = release.centre[release.nodes(level)]
        assert ((table["ci_low"] <= np.maximum(estimate, 0)) & (estimate <= table["ci_high"])).all()
        assert (table["all_low"] <= table["ci_low"]).all()
        assert (table["ci_high"] <= table["all_high"]).all()
        assert (table["ci_low"] >= 0).all()
        bounds = [table["stddev"] <= bound * table["count"] for bound in (0.12, 0.4)]
        assert (table["reliability"] == np.select(bounds, ["high", "medium"], "low")).all()
        assert set(table["status"]) == {"SIMULATION: not private"}
        assert table.attrs == {"private": False, "simulation": True, "approximate_shapes": False}
        assert table.crs == city.regions.crs
        areas = [shapely.area(shapes.to_numpy()).sum() for shapes in (table.geometry, city.regions.geometry[-1])]
        assert areas[0] == pytest.approx(areas[1], rel=1e-6)
        if level:
            pd.testing.assert_frame_equal(table, release.to_frame(name))
    assert "Levels are 0 to 3" in refusal(lambda: release.to_frame("county"))


def test_regions_without_shapes_have_tables_without_shapes():
    table = made(records_of(100)).to_frame(1)
    assert table.geometry.isna().all()
    assert table.crs is None


def test_coarser_h3_cells_have_approximate_shapes_and_polygons_are_answered_by_leaves():
    pytest.importorskip("h3")
    regions = dv.Regions.h3((-74.05, 40.65, -73.95, 40.75), resolutions=(6, 8))
    release = made(dv.AreaCounts.from_counts(np.arange(regions.size(2)), regions=regions))
    assert [release.to_frame(level).attrs["approximate_shapes"] for level in (1, 2)] == [True, False]
    leaves = regions.outlines(2)
    parent = gpd.GeoSeries([leaves[regions.ancestors(1) == 0].union_all()], crs=leaves.crs)
    assert release.answer_areas(parent) == pytest.approx([release.count[release.nodes(1)][0]], rel=1e-6)


@EVERY
@pytest.mark.parametrize("budget", [dv.PureBudget("0.7"), dv.ZcdpBudget("0.2")], ids=str)
def test_answers_for_regions_are_sums_with_their_exact_spread(mechanism, budget):
    areas = records_of(800)
    release = made(areas, mechanism, budget)
    leaves, covariance = dense_fit(release)
    regions, nodes = release.regions, membership(release.regions)
    for level in range(4):
        ids = regions.ids_of(level).tolist()
        queries = [*ids, ids, [ids[0], ids[-1]], [ids[0], ids[0]], []]
        count, stddev = release.answer(queries, level=level, spread=True)
        first = sum(regions.size(above) for above in range(level))
        rows = nodes[first : first + len(ids)]
        weights = np.array([*rows, rows.sum(0), np.minimum(rows[0] + rows[-1], 1), rows[0], 0 * rows[0]])
        np.testing.assert_allclose(count, weights @ release.count[release.nodes()], atol=1e-6)
        np.testing.assert_allclose(stddev**2, np.diag(weights @ covariance @ weights.T), rtol=1e-8, atol=1e-9)
        if release.approximate is None:
            np.testing.assert_allclose(count, weights @ leaves, atol=1e-6)
    np.testing.assert_array_equal(release.answer(regions.ids_of(3).tolist()), release.count[release.nodes(3)])


def test_ids_are_found_on_any_level_and_a_list_counts_nothing_twice():
    release = made(records_of(800))
    regions = release.regions
    coarse, fine = (regions.ids_of(level).tolist() for level in (1, 3))
    child = fine[int(np.flatnonzero(regions.ancestors(1) == 0)[0])]
    count, stddev = release.answer([coarse[0], [coarse[0], child], [*coarse, child], fine[-1], "all"], spread=True)
    for found, stated in ((count, release.count), (stddev, release.node_stddev)):
        np.testing.assert_allclose(found, [stated[1], stated[1], stated[0], stated[-1], stated[0]], atol=1e-9)
    same = dv.Regions.from_table(pd.DataFrame({"county": ["x", "x"], "town": ["x", "y"]}), levels=["county", "town"])
    towns = made(dv.AreaCounts.from_counts([5, 900], regions=same), budget=dv.PureBudget(100))
    assert towns.answer(["x"])[0] == towns.count[towns.nodes(2)][0], "the finest level that has the id"
    assert towns.answer(["x"], level=1)[0] == pytest.approx(towns.count[towns.nodes(1)][0])


def test_unknown_ids_are_refused():
    release = made(records_of(10))
    assert "not a region;" in refusal(lambda: release.answer(["nowhere"]))
    assert "not a region of level 1" in refusal(lambda: release.answer([release.regions.ids_of(3)[0]], level=1))
    assert "list of ids" in refusal(lambda: release.answer("nowhere"))
    assert "Levels are" in refusal(lambda: release.answer(["all"], level=7))


def test_answers_for_polygons_are_shares_with_their_exact_spread(city):
    release = made(areas_of(city.regions, np.ones(city.regions.size(3), int)), budget=dv.ZcdpBudget("0.5"))
    west, south, east, north = city.regions.geometry[-1].total_bounds
    boxes = [shapely.box(west, south, (west + east) / 2, (south + north) / 2), shapely.box(west, south, east, north)]
    polygons = gpd.GeoSeries([city.regions.outlines(1)[3], *boxes], crs="EPSG:4326")
    count, stddev, covered = release.answer_areas(polygons, spread=True, outside="inside_part")
    share, _ = leaf_shares(city.regions, polygons.to_numpy())
    covariance, dense = dense_covariance(release), share.toarray()
    np.testing.assert_allclose(count, dense @ release.count[release.nodes()])
    np.testing.assert_allclose(stddev**2, np.diag(dense @ covariance @ dense.T), rtol=1e-6)
    assert count[0] == pytest.approx(release.count[release.nodes(1)][3])
    assert stddev[0] == pytest.approx(release.stddev("district")[3])
    assert covered[0] == pytest.approx(1)
    assert covered[2] < 0.95, "the river has no blocks"
    assert "2 of 3 polygons lie at least partly in no region" in refusal(lambda: release.answer_areas(polygons))
    assert release.answer_areas(polygons[:1]).shape == (1,)
    np.testing.assert_allclose(release.answer_areas(polygons.to_crs(3857)[:1]), count[:1], rtol=1e-6)


def test_cut_regions_may_be_divided_by_a_public_weight():
    squares = gpd.GeoSeries([shapely.box(0, 0, 2, 2), shapely.box(2, 0, 4, 2)], crs="EPSG:3857")
    release = made(dv.AreaCounts.from_counts([100, 900], regions=dv.Regions.from_polygons(squares)), budget=dv.PureBudget(10**6))
    query = gpd.GeoSeries([shapely.box(0, 0, 3, 2)], crs="EPSG:3857")
    built = gpd.GeoDataFrame(geometry=[shapely.box(3.5, 0, 4, 1), shapely.box(2.9, 0, 3.1, 1)], crs="EPSG:3857")
    assert release.answer_areas(query) == pytest.approx([550])
    assert release.answer_areas(query, weights=built) == pytest.approx([100 + 900 / 7])


@pytest.mark.parametrize(
    ("areas", "options", "words"),
    [
        (gpd.GeoSeries([shapely.box(0, 0, 1, 1)]), {}, "no CRS"),
        (gpd.GeoSeries([shapely.Point(0, 0)], crs=4326), {}, "valid polygons"),
        ([shapely.box(0, 0, 1, 1)], {}, "GeoDataFrame or a GeoSeries"),
        (gpd.GeoSeries([shapely.box(0, 0, 1, 1)], crs=4326), {"outside": "drop"}, "outside must be one of"),
        (gpd.GeoSeries([shapely.box(0, 0, 1, 1)], crs=4326), {"weights": 3}, "The polygon lies at least partly in no region"),
    ],
)
def test_polygons_that_cannot_be_answered_are_refused(city, areas, options, words):
    assert words in refusal(lambda: made(city).answer_areas(areas, **options))


def test_polygons_need_shapes_of_the_leaves():
    area = gpd.GeoSeries([shapely.box(0, 0, 1, 1)], crs=4326)
    assert "has no polygons" in refusal(lambda: made(records_of(10)).answer_areas(area))


def test_rates_divide_counts_and_intervals_by_public_numbers(city):
    release, population = made(city), area_population("made_up_city")
    table, rates = release.to_frame("tract"), release.rates("tract", population)
    people = population.groupby(population.index.str.rsplit(".", n=1).str[0]).sum().reindex(table["region"]).to_numpy()
    np.testing.assert_array_equal(rates["denominator"], people)
    some = people > 0
    for rate, name in (("rate", "count"), ("stddev", "stddev"), ("ci_low", "ci_low"), ("all_high", "all_high")):
        np.testing.assert_allclose(rates[rate][some], 1000 * table[name][some] / people[some])
    assert rates[["rate", "ci_low", "stddev"]][~some].isna().all(axis=None)
    assert release.rates("block", population)["rate"].isna().sum() == (population == 0).sum()
    of_tracts = pd.Series(people, index=table["region"])
    pd.testing.assert_frame_equal(release.rates("tract", of_tracts.to_dict(), per=1000), rates)


def test_rates_per_square_kilometre():
    areas = load_area_sample("us_residents")
    rates = made(areas, budget=dv.PureBudget(10)).rates("state", "area", per=1).set_index("name")
    assert rates.loc["Rhode Island", "rate"] == pytest.approx(1_059_361 / rates.loc["Rhode Island", "denominator"], rel=1e-3)
    assert rates.loc["Texas", "denominator"] == pytest.approx(695_000, rel=0.02)


@pytest.mark.parametrize("denominator", [{}, {"nowhere": 1.0}, "population", pd.Series([1.0]), {"all": -1.0}, {"all": np.inf}])
def test_denominators_that_lack_a_region_are_refused(denominator):
    assert "denominator" in refusal(lambda: made(records_of(10)).rates(0, denominator))


def test_hidden_counts_are_not_shown_but_part_of_larger_regions():
    areas = areas_of(regular(2, 2), [100, 1, 0, 200])
    release = made(areas, dv.FlatAreas(threshold=50), dv.PureBudget(5))
    assert release.hidden.tolist() == [False, True, True, False]
    table = release.to_frame(2)
    assert (
        table["count"].isna().tolist()
        == table["ci_high"].isna().tolist()
        == table["count_noisy"].isna().tolist()
        == release.hidden.tolist()
    )
    shown = made(areas, dv.FlatAreas(), dv.PureBudget(5))
    np.testing.assert_array_equal(release.to_frame(1)["count"], shown.to_frame(1)["count"])
    ids = release.regions.ids_of(2).tolist()
    assert np.isnan(release.answer(ids)).tolist() == release.hidden.tolist()
    np.testing.assert_array_equal(release.answer([ids[:2]]), shown.answer([ids[:2]]))
    assert release.rates(2, dict.fromkeys(ids, 2.0))["rate"].isna().tolist() == release.hidden.tolist()
    assert release.steps[-1] == "finest regions under 50 not shown"


def test_a_level_is_graded_by_released_numbers_alone(city):
    release = made(city, budget=dv.PureBudget("0.02"))
    table, graded = fitness(release), verdict(release)
    assert table["grade"].tolist() == [level.grade for level in graded.levels] == ["usable", "usable", "rough", "mostly noise"]
    assert "the whole and district are usable; tract is rough; block is mostly noise" in graded.headline.lower()
    assert "1,608 regions" in graded.detail
    assert table["regions"].tolist() == [1, 12, 108, 1608]
    np.testing.assert_allclose(table[["high", "medium", "low"]].sum(axis=1), 100)
    for row in table.itertuples():
        low, high = release.interval(row.level)
        assert row.narrow == pytest.approx(100 * np.mean(high - low < release.count[release.nodes(row.level)] / 2))
        assert row.stddev == pytest.approx(np.mean(release.stddev(row.level)))
        assert row.mean == pytest.approx(release.centre[release.nodes(0)][0] / row.regions)


def test_only_private_releases_may_be_published(city):
    with pytest.raises(RefusedError):
        made(city).refuse_unpublishable()
    private = dv.FlatAreas().release(city, dv.PureBudget(1), dv.Entropy.system())
    private.refuse_unpublishable()
    assert private.status == "private release"
    assert private.to_frame(1).attrs["private"]
