"""Made-up road crossings: in two states only, skewed like towns, street grids inside towns, lines of a survey outside."""

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from scipy.spatial import cKDTree

from dpviz.bundled import folder
from dpviz.data.points import PointCounts
from dpviz.samples.points import BOUNDS, PAPER_SIZE, SAMPLES, road_points
from dpviz.space.domain import Domain

SIZE = 200_000
CASCADES = (-121.7, 48.2, -120.9, 48.9)


@pytest.fixture(scope="module")
def crossings():
    return np.column_stack(road_points(SIZE))


@pytest.fixture(scope="module")
def counts(crossings):
    """(64, 64) crossings in blocks of the rectangle, [row, column], row 0 in the south."""
    return PointCounts.from_xy(*crossings.T, domain=SAMPLES["road_crossings"].domain).blocks(6)


def outline(code):
    counties = geopandas.read_parquet(folder("sample_data") / "us_counties.parquet")
    return shapely.union_all(counties[counties["state"] == code].geometry.to_numpy())


def shares(crossings, boxes):
    return [((crossings >= box[:2]) & (crossings < box[2:])).all(1).mean() for box in np.atleast_2d(boxes)]


def test_the_rectangle_and_the_number_are_the_paper_s():
    assert SAMPLES["road_crossings"].domain.bounds == BOUNDS == (-124.82, 31.33, -103.00, 49.00)
    assert PAPER_SIZE == 1_630_000


def test_all_crossings_lie_in_the_two_states_six_in_ten_in_washington(crossings):
    north, south = (shapely.contains_xy(outline(code), crossings) for code in ("WA", "NM"))
    assert (north | south).all()
    assert north.mean() == pytest.approx(0.6, abs=0.001)
    assert (crossings.min(0) >= BOUNDS[:2]).all()
    assert (crossings.max(0) <= BOUNDS[2:]).all()


def test_most_of_the_rectangle_is_empty_and_few_blocks_hold_most_of_it(counts):
    """Of 64 x 64 blocks more than four fifths are empty, and the 1 % fullest hold more than a quarter of all crossings."""
    ordered = np.sort(counts.ravel())[::-1]
    assert 0.8 < (counts == 0).mean() < 0.9
    assert ordered[:41].sum() > 0.25 * counts.sum()


def test_seattle_is_fullest_and_the_cascades_are_nearly_empty(crossings, counts):
    row, column = np.unravel_index(counts.argmax(), counts.shape)
    width, height = (BOUNDS[2] - BOUNDS[0]) / 64, (BOUNDS[3] - BOUNDS[1]) / 64
    fullest = BOUNDS[0] + (column + 0.5) * width, BOUNDS[1] + (row + 0.5) * height
    assert fullest == pytest.approx((-122.33, 47.6), abs=0.5)
    seattle, cascades = shares(crossings, [(-122.45, 47.45, -122.15, 47.75), CASCADES])
    assert cascades < 0.01 < 0.05 < seattle


def test_crossings_follow_the_population_of_the_towns(counts):
    places = pd.read_parquet(folder("sample_data") / "us_places.parquet")
    towns = places[places["state"].isin(["WA", "NM"])]
    frame = {"bins": 64, "range": [[BOUNDS[1], BOUNDS[3]], [BOUNDS[0], BOUNDS[2]]]}
    people, _, _ = np.histogram2d(towns["latitude"], towns["longitude"], weights=towns["population"], **frame)
    assert np.corrcoef(people.ravel(), counts.ravel())[0, 1] > 0.7


def test_towns_are_street_grids_and_crossings_do_not_pile_up(crossings):
    """In towns no two crossings of one grid are near: half the gaps to the nearest are over a third of a block."""
    assert len(np.unique(crossings, axis=0)) == SIZE
    km = crossings * np.array([111.32 * np.cos(np.radians(35.1)), 111.1])
    albuquerque = np.hypot(*(crossings - (-106.65, 35.08)).T) < 0.05
    gap, _ = cKDTree(km[albuquerque]).query(km[albuquerque], k=2)
    block = 0.08 * np.sqrt(PAPER_SIZE / SIZE)
    scattered = 0.5 / np.sqrt(albuquerque.sum() / (np.pi * 0.05**2 * 111.1 * 111.32 * np.cos(np.radians(35.1))))
    assert np.median(gap[:, 1]) > max(block / 3, 1.2 * scattered)


def test_country_lies_along_lines_a_mile_apart(crossings):
    """Latitudes in empty country, folded at a mile, crowd in a tenth of it."""
    state = crossings[crossings[:, 1] < 37.1]
    folded = state[:, 1] * 111.1 % 1.609
    near_line = np.minimum(folded, 1.609 - folded) < 0.08
    places = pd.read_parquet(folder("sample_data") / "us_places.parquet")
    distance, _ = cKDTree(places[["longitude", "latitude"]].to_numpy()).query(state)
    assert near_line[distance > 0.2].mean() > 0.4 > near_line[distance < 0.03].mean()


def test_places_stay_where_they_are_when_the_size_grows():
    domain = Domain(bounds=BOUNDS, crs="EPSG:4326", order=6)
    small, large, other = (
        PointCounts.from_xy(*road_points(size, seed=seed), domain=domain).blocks(5).ravel()
        for size, seed in ((20_000, 5), (100_000, 5), (100_000, 6))
    )
    assert np.abs(small / 20_000 - large / 100_000).sum() < 0.1
    assert not np.array_equal(large, other)


@pytest.mark.parametrize("size", [1, 2, 3, 1001])
def test_every_size_is_kept_to_the_last_crossing(size):
    x, y = road_points(size, seed=1)
    assert x.shape == y.shape == (size,)
    assert x.dtype == y.dtype == np.float64


@pytest.mark.slow
def test_no_two_crossings_of_the_paper_s_size_coincide():
    assert len(np.unique(np.column_stack(road_points()), axis=0)) == PAPER_SIZE
