"""Samples of areas: known residents, a city that is the same every time, regions that nest without overlaps."""

import numpy as np
import pytest
import shapely

from dpviz.errors import InputError
from dpviz.samples.areas import AREA_SAMPLES, area_denominators, area_population, load_area_sample, made_up_city, made_up_hours


@pytest.mark.parametrize("key", AREA_SAMPLES)
def test_a_sample_is_what_its_description_says(key):
    sample, areas = AREA_SAMPLES[key], load_area_sample(key)
    assert (sample.key, sample.levels) == (key, areas.regions.levels)
    assert sample.slot_levels == (() if areas.categories is None else areas.categories.levels)
    assert all((sample.title, sample.description, sample.source, sample.licence, sample.unit))
    assert len(areas.regions.overlaps) == 0
    for _, numbers, per in area_denominators(key, areas.regions).values():
        assert set(numbers.index) == set(areas.regions.ids_of(areas.regions.depth))
        assert (numbers >= 0).all()
        assert per > 0


def test_the_residents_are_those_of_the_census_bureau():
    areas = load_area_sample("us_residents")
    assert areas.count.sum() == 328_239_523
    assert [areas.regions.size(level) for level in (1, 2)] == [51, 3142]
    assert area_population("us_residents").sum() == 328_239_523


def test_the_city_is_the_same_every_time_and_another_for_another_seed():
    (one, people), (other, _), (third, _) = made_up_city(), made_up_city(), made_up_city(seed=1)
    np.testing.assert_array_equal(one.count, other.count)
    assert one.regions == other.regions
    assert len(one.count) != len(third.count) or (one.count != third.count).any()
    assert (int(one.count.sum()), int(people.sum())) == (40_000, 200_000)
    sizes = one.regions.leaf_count(2)
    assert sizes.min() < sizes.max(), "tracts at the river have fewer blocks"
    empty = 1 - len(one.count) / one.regions.size(3)
    assert 0.1 < empty < 0.4


def test_its_blocks_fill_tracts_without_gaps_but_for_the_river():
    regions = load_area_sample("made_up_city").regions
    hull = shapely.union_all(regions.geometry[-1].to_numpy())
    assert isinstance(hull, shapely.MultiPolygon)
    assert len(hull.geoms) == 2, "one part on each side of the river"


def test_counts_are_divided_by_residents_only_where_these_are_others_than_are_counted():
    words = {key: [each for each, _, _ in area_denominators(key, load_area_sample(key).regions).values()] for key in AREA_SAMPLES}
    assert words["us_residents"] == ["per km²"]
    assert words["made_up_city"] == ["per 1,000 residents", "per km²"]


def test_a_sample_without_a_number_of_residents_says_so():
    pytest.importorskip("h3")
    with pytest.raises(InputError, match="no public number of residents"):
        area_population("la_hexagons")


def test_unknown_keys_are_refused():
    for function in (load_area_sample, area_population):
        with pytest.raises(InputError, match="choose one of us_residents, made_up_city"):
            function("a city")


def test_the_day_of_the_city_is_that_of_its_blocks_and_differs_from_district_to_district():
    one, other, city = made_up_hours(), made_up_hours(), made_up_city()[0]
    np.testing.assert_array_equal(one.cross_counts(), other.cross_counts())
    assert (one.regions, int(one.count.sum())) == (city.regions, 200_000)
    of_districts = one.cross_counts()[1:13, 1:5]
    busiest = (of_districts / of_districts.sum(axis=1, keepdims=True)).argmax(axis=1)
    assert {1, 2, 3} <= set(busiest.tolist()), "some by day, some in the evening"
    tracts = one.cross_counts()[one.regions.hierarchy.at_depth(2), 1:5]
    assert 0 < (tracts.argmax(axis=1) == 0).sum() <= 10, "a few at night"


def test_flights_by_hour_are_those_of_the_file_and_few_leave_at_night():
    flights = load_area_sample("us_departures")
    assert (int(flights.count.sum()), len(np.unique(flights.leaf))) == (2_997_490, 225)
    assert flights.cross_counts()[0, 5:].argmin() == 3
