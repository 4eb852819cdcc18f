"""Samples of trips: reproducible, of the stated sizes, with known flights and counties, licensed, small."""

import numpy as np
import pandas as pd
import pytest
import shapely

from dpviz.bundled import folder
from dpviz.data.trips import TripCounts
from dpviz.samples import trips as made
from dpviz.samples.made_up import SEED
from dpviz.samples.trips import TRIP_SAMPLES, load_trip_sample, northeast_of, synthetic_trips, us_commuters, us_counties
from dpviz.space.pair_tree import PairTree
from tests.data.reading.files import refused

FILES = ("us_airports", "us_flights", "us_counties", "northeast_commuters")
TABLE_1 = {
    "binary_complete": (1_051_271, 65_536),
    "binary_dense": (734_688, 32_768),
    "binary_sparse": (23_302, 655),
    "random_complete": (2_019_580, 189_225),
    "random_dense": (1_003_943, 95_612),
    "random_sparse": (67_840, 1_892),
}
ITALY = (1, 20, 236, 948, 4_129, 47_765, 556_120)


@pytest.fixture(scope="module")
def samples() -> dict[str, TripCounts]:
    return {key: load_trip_sample(key) for key in TRIP_SAMPLES}


def stored(name: str) -> pd.DataFrame:
    return pd.read_parquet(folder("sample_data") / f"{name}.parquet")


def between(trips: TripCounts, origin: str, destination: str) -> int:
    """Trips of one pair."""
    one, other = trips.regions.find([origin, destination], trips.regions.depth)
    return int(trips.count[(trips.origin == one) & (trips.destination == other)].sum())


def stages(trips: TripCounts) -> list[int]:
    """Pairs with trips at every stage of the destination tree."""
    up, tree = trips.regions.ancestors, PairTree(origins=trips.regions, destinations=trips.ends)
    pairs = (up(one)[trips.origin] * np.int64(10_000) + up(other)[trips.destination] for one, other in map(tree.levels, range(7)))
    return [len(np.unique(pair)) for pair in pairs]


def same(one: TripCounts, other: TripCounts) -> bool:
    arrays = ("origin", "destination", "count")
    return one.regions == other.regions and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)


@pytest.mark.parametrize("key", TRIP_SAMPLES)
def test_every_sample_loads_as_it_is_described(samples, key):
    sample, trips = TRIP_SAMPLES[key], samples[key]
    assert (sample.key, sample.levels) == (key, trips.regions.levels)
    assert sample.unit in {"flights", "commuters", "trips"}
    assert sample.licence in {"Apache-2.0", "public domain, US government"}
    assert (trips.dropped, trips.contributions, trips.unit) == (0, 1, "trip")
    assert trips.count.min() >= 1


def test_the_flights_are_those_of_2008_between_airports_where_they_are(samples):
    flights = samples["us_flights"]
    regions = flights.regions
    assert [regions.size(level) for level in range(4)] == [1, 10, 51, 305]
    assert (len(flights.count), flights.count.sum()) == (5_366, 7_009_728)
    assert between(flights, "SFO", "LAX") == flights.count.max() == 13_788
    assert between(flights, "ABE", "ATL") == 853
    assert not TRIP_SAMPLES["us_flights"].synthetic
    boston, marquette = regions.find(["BOS", "MQT"], 3)
    assert regions.centres(3)[boston] == pytest.approx((-71.0052, 42.3643), abs=1e-3)
    assert regions.names_of(3)[boston] == "Boston (BOS)"
    assert regions.ids_of(2)[regions.ancestors(2)[marquette]] == "MI"
    assert (regions.ids_of(1)[-1], regions.leaf_count(1)[-1]) == ("Territories", 5)


def test_states_and_divisions_of_airports_have_outlines_in_which_their_airports_are(samples):
    regions = samples["us_flights"].regions
    airports, states = (regions.geometry[level].to_numpy() for level in (2, 1))
    assert len(regions.outlines(1)) == 10
    assert set(shapely.get_type_id(states)) == {3, 6}
    assert shapely.is_valid(states).all()
    assert shapely.distance(airports, states[regions.parent[2]]).max() < 0.05
    assert regions.outlines(3) is None


def test_counties_are_all_there_with_their_people_and_valid_outlines_that_do_not_overlap():
    counties = us_counties().set_index("county")
    assert len(counties) == 3_142
    assert counties["population"].sum() == 328_239_523
    assert counties.loc["06037", "population"] == 10_039_107
    assert list(counties.loc[["24005", "24510", "51600", "51059"], "name"]) == ["Baltimore", "Baltimore city", "Fairfax city", "Fairfax"]
    assert counties.groupby("division", observed=True)["state"].nunique().tolist() == [5, 4, 3, 8, 6, 5, 9, 7, 4]
    assert counties["area_km2"].sum() == pytest.approx(9.35e6, rel=0.02)
    assert counties.is_valid.all()
    assert not counties.is_empty.any()
    assert counties.crs == "EPSG:4326"
    assert counties.total_bounds == pytest.approx((-179.14, 18.92, -66.98, 71.35), abs=0.01)
    virginia = counties[counties["state"] == "VA"].to_crs("EPSG:5070")
    assert virginia.union_all().area == pytest.approx(virginia.area.sum(), rel=1e-4)


def test_the_stored_commuters_are_those_of_the_default_seed_and_others_are_cut_out_of_the_whole_country(samples):
    stored_ones, other = samples["northeast_commuters"], load_trip_sample("northeast_commuters", seed=0)
    assert same(stored_ones, northeast_of(samples["us_commuters"]))
    assert list(stored_ones.regions.ids_of(1)) == list(made.NORTHEAST)
    assert same(other, northeast_of(us_commuters(seed=0)))
    assert not same(other, stored_ones)


def test_every_worker_commutes_once_most_stay_in_their_county_and_few_go_far(samples):
    commuters = samples["us_commuters"]
    regions = commuters.regions
    population = us_counties().set_index("county").loc[regions.ids_of(3), "population"]
    workers = np.bincount(commuters.origin, commuters.count)
    np.testing.assert_array_equal(workers, np.rint(0.45 * population))
    stay = commuters.count[commuters.origin == commuters.destination].sum() / commuters.count.sum()
    assert 0.65 < stay < 0.85
    assert 300_000 < len(commuters.count) < 500_000
    assert between(commuters, "36047", "36061") > 50_000  # Brooklyn to Manhattan
    assert between(commuters, "36061", "06037") == 0
    assert regions.ids_of(2)[regions.ancestors(2)[regions.find(["09001"], 3)[0]]] == "CT"


def test_the_country_is_as_large_as_announced_about_as_sparse_as_italy_and_most_trips_stay_in_the_province(samples):
    country = samples["made_up_country"]
    regions, home = country.regions, country.origin == country.destination
    assert tuple(regions.size(level) for level in (1, 2, 3)) == made.COUNTRY_SIZES
    assert country.count.sum() == made.COUNTRY_TRIPS
    assert 500_000 <= len(country.count) <= 600_000
    assert regions.ids_of(3)[0] == "0001"
    assert np.abs(regions.centres(3) - (-24, -2)).max() < 6
    np.testing.assert_allclose(stages(country), ITALY, rtol=0.2)
    trips = np.sort(np.bincount(country.origin, country.count))
    assert trips[-81:].sum() > 0.25 * made.COUNTRY_TRIPS  # the largest hundredth
    assert trips[0] >= 1
    province = regions.ancestors(2)
    near = province[country.origin] == province[country.destination]
    assert 0.5 < country.count[home].sum() / made.COUNTRY_TRIPS < 0.8
    assert 0.85 < country.count[near].sum() / made.COUNTRY_TRIPS < 0.97


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), SEED])
def test_other_countries_are_about_as_sparse_and_that_of_the_default_seed_is_always_the_same(samples, seed):
    country = made.made_up_country(seed=seed)
    assert country.count.sum() == made.COUNTRY_TRIPS
    np.testing.assert_allclose(stages(country), ITALY, rtol=0.35)
    assert same(samples["made_up_country"], country) == (seed == SEED)


def test_same_seed_same_trips_and_another_seed_other_trips():
    first, again, other = (synthetic_trips("random", "sparse", seed=seed) for seed in (3, 3, 4))
    assert same(first, again)
    assert not same(first, other)


@pytest.mark.parametrize("key", TABLE_1)
def test_the_synthetic_sets_are_like_the_paper_s_and_their_densities_exact(samples, key):
    (trips, pairs), trip_counts, (partition, density) = TABLE_1[key], samples[key], key.split("_")
    leaves = trip_counts.regions.size(trip_counts.regions.depth)
    assert leaves == {"binary": 256, "random": 435}[partition]
    assert len(trip_counts.count) == int(made.DENSITIES[density] * leaves**2)
    assert len(trip_counts.count) == pytest.approx(pairs, rel=0.011)  # the paper's 95,612 is no half of 189,225
    assert trip_counts.count.mean() == pytest.approx(trips / pairs, rel=0.1)
    assert trips / 3 < trip_counts.count.sum() < 3 * trips


def test_binary_areas_have_two_parts_and_random_ones_two_to_ten(samples):
    binary, random = samples["binary_sparse"].regions, samples["random_sparse"].regions
    assert (binary.depth, random.depth) == (8, 4)
    assert {int(each) for level in range(8) for each in np.diff(binary.first_child(level))} == {2}
    assert {int(each) for level in range(4) for each in np.diff(random.first_child(level))} == set(range(2, 11))
    assert random.ids_of(3)[random.parent[3][-1]] == random.ids_of(4)[-1].rpartition(".")[0]
    assert random == samples["random_complete"].regions


def test_synthetic_trips_have_the_pareto_tail(samples):
    """P(X >= k) is (1 + (k - 1/2) / s)**-3 after rounding, s twice the mean; the published rates of hidden pairs lie beside it."""
    count = samples["random_complete"].count
    scale = 2 * TABLE_1["random_complete"][0] / TABLE_1["random_complete"][1]
    for least in (2, 5, 20, 100):
        assert (count >= least).mean() == pytest.approx((1 + (least - 0.5) / scale) ** -3, rel=0.05)
    for threshold, hidden in ((3.7, 36.8854), (28.0, 91.7555)):
        assert 100 * (count < threshold).mean() == pytest.approx(hidden, abs=4)


def test_partitions_with_too_many_pairs_unknown_ones_and_samples_and_seeds_of_real_data_are_refused(monkeypatch):
    for unknown in (("ternary", "dense"), ("binary", "thin")):
        assert "binary, random" in refused(synthetic_trips, *unknown)
    assert "real data" in refused(load_trip_sample, "us_flights", seed=1)
    assert "choose one of us_flights" in refused(load_trip_sample, "mars")
    assert made.MOST_PAIRS >= 435**2
    assert set(TABLE_1) == {f"{partition}_{density}" for partition in made.PARTITIONS for density in made.DENSITIES}
    monkeypatch.setattr(made, "MOST_PAIRS", 100_000)
    assert "choose another" in refused(synthetic_trips, "random", "sparse", seed=made.PAPER_SEED)


def test_the_readme_describes_every_column_with_the_totals_of_the_files_which_stay_small():
    text = (folder("sample_data") / "README.md").read_text(encoding="utf-8")
    rows = {name: next(line for line in text.splitlines() if line.startswith(f"| `{name}.parquet`")) for name in FILES}
    assert all(f"`{column}`" in text for name in FILES for column in stored(name).columns)
    assert all(f"{stored(name)['count'].sum():,}" in rows[name] for name in ("us_flights", "northeast_commuters"))
    assert sum("public domain" in row for row in rows.values()) == 3
    assert "Apache-2.0" in rows["northeast_commuters"]
    sizes = {file.stem: file.stat().st_size for file in folder("sample_data").glob("*.parquet")}
    assert sum(sizes.values()) < 3_000_000
    assert sum(sizes[name] for name in FILES) < 600_000
