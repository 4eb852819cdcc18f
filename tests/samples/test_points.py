"""Samples of points and the outlines: reproducible, on land, skewed like towns, licensed, small."""

import json

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from scipy.spatial import cKDTree

from dpviz.bundled import folder
from dpviz.data.points import PointCounts
from dpviz.families import POINT_FAMILY
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.made_up import MOST_SAMPLES, SEED
from dpviz.samples.points import (
    BOUNDS,
    PAPER_SIZE,
    POINT_SAMPLES,
    daily_routes,
    gaussian_cluster,
    load_point_sample,
    los_angeles,
    road_points,
    sample_xy,
)
from dpviz.space.domain import Domain
from tests.data.reading.files import refused

OUTLINES = ("land.json", "countries.json", "us_states.json")
KM = np.array([92.327, 110.923])
OPEN_SEA = ((-118.62, 33.74, -118.47, 33.94), (-118.62, 33.74, -118.44, 33.77))
MOUNTAINS = (-118.1, 34.25, -117.87, 34.36)
MIDDLE = (-118.4, 33.9, -118.0, 34.15)


@pytest.fixture(scope="module")
def residents() -> np.ndarray:
    return np.column_stack(sample_xy("la_residents"))


@pytest.fixture(scope="module")
def places() -> pd.DataFrame:
    return pd.read_parquet(folder("sample_data") / "us_places.parquet")


def correlation(points: np.ndarray, towns: pd.DataFrame, bounds, bins: int) -> float:
    """Between the people of towns and points, counted in blocks."""
    west, south, east, north = bounds
    grid = {"bins": bins, "range": [[west, east], [south, north]]}
    people, _, _ = np.histogram2d(towns["longitude"], towns["latitude"], weights=towns["population"], **grid)
    homes, _, _ = np.histogram2d(*points.T, **grid)
    return np.corrcoef(people.ravel(), homes.ravel())[0, 1]


def inside(points: np.ndarray, box: tuple[float, float, float, float]) -> int:
    return int(((points >= box[:2]) & (points <= box[2:])).all(1).sum())


def outline(name: str) -> shapely.Geometry:
    return shapely.from_geojson((folder("assets") / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("key", POINT_SAMPLES)
def test_every_sample_loads_into_its_domain_with_every_record_and_nothing_dropped(key):
    some = 50_000 if (POINT_SAMPLES[key].usual or 0) > 500_000 else None  # millions take long
    sample, points, (x, y) = POINT_SAMPLES[key], load_point_sample(key, size=some), sample_xy(key, some)
    west, south, east, north = sample.domain.bounds
    assert points.domain == sample.domain
    counted = sample.most or len(x)
    assert points.dropped == (len(x) - counted if sample.most else 0)
    assert points.count.sum() == counted > 0
    assert sample.key == key
    assert sample.unit in {"places", "crossings", "positions", "records", "facilities", "landmarks", "check-ins"}
    assert (sample.usual is None) != sample.synthetic
    assert west <= x.min() <= x.max() <= east
    assert south <= y.min() <= y.max() <= north


@pytest.mark.parametrize("key", ["la_residents", "gaussian_cluster", "road_crossings", "daily_routes"])
def test_same_seed_same_data_and_another_seed_other_data(key):
    first, again, other = (np.array(sample_xy(key, 3_000, seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


@pytest.mark.parametrize(("key", "zoom"), [("la_residents", 4), ("road_crossings", 5), ("daily_routes", 5)])
def test_towns_stay_where_they_are_when_the_size_grows(key, zoom):
    """Shares of blocks at 20,000 and at 100,000 records differ no more than two samples of one distribution."""
    small, large, other = (
        load_point_sample(key, size=size, seed=seed).blocks(zoom).ravel() / size for size, seed in ((20_000, 5), (100_000, 5), (100_000, 6))
    )
    assert np.abs(small - large).sum() < 0.1
    assert np.abs(other - large).sum() > (0.1 if key == "la_residents" else 0)


def test_the_stored_residents_are_those_of_the_default_seed_and_do_not_pile_up_on_single_spots(residents):
    assert residents.shape == (200_000, 2)
    np.testing.assert_allclose(residents, np.column_stack(los_angeles(200_000, seed=SEED)), rtol=0, atol=1.5e-5)
    assert np.array_equal(residents, np.round(residents, 5))
    assert np.unique(residents, axis=0, return_counts=True)[1].max() <= 6


def test_the_square_measures_70_by_70_km_around_the_paper_s_centre_and_another_domain_may_be_finer():
    domain = POINT_SAMPLES["la_residents"].domain
    west, south, east, north = domain.bounds
    assert domain.areas_km2([[0, 0, domain.side, domain.side]])[0] == pytest.approx(4_900, rel=1e-3)
    assert ((west + east) / 2, (south + north) / 2) == pytest.approx((-118.24368, 34.05223), abs=1e-5)
    finer = Domain(bounds=domain.bounds, crs=domain.crs, order=12)
    assert load_point_sample("la_residents", domain=finer).domain.side == 4096


def test_all_residents_are_on_the_land_of_the_basemap_and_none_in_the_open_sea(residents):
    assert [inside(residents, box) for box in OPEN_SEA] == [0, 0]
    coast = shapely.union_all(shapely.clip_by_rect(shapely.get_parts(outline("land.json")), -119, 33, -117, 35))
    shapely.prepare(coast)
    assert shapely.intersects_xy(coast, residents).all()


def test_the_densest_place_is_near_downtown_and_the_mountains_are_nearly_empty(residents):
    counts, east, north = np.histogram2d(*residents.T, bins=35)
    column, row = np.unravel_index(counts.argmax(), counts.shape)
    densest = np.array([east[column : column + 2].mean(), north[row : row + 2].mean()])
    assert np.hypot(*((densest - (-118.24368, 34.05223)) * KM)) < 12
    assert inside(residents, MOUNTAINS) / len(residents) < 0.01 < 0.3 < inside(residents, MIDDLE) / len(residents)


def test_residents_and_crossings_follow_the_population_of_the_towns(residents, crossings, places):
    """Blocks of 12 km hold residents in proportion to the towns' people, Los Angeles itself left out as it fills many."""
    assert correlation(residents, places[places["population"] < 1_000_000], POINT_SAMPLES["la_residents"].domain.bounds, 6) > 0.6
    assert correlation(crossings, places[places["state"].isin(["WA", "NM"])], BOUNDS, 64) > 0.7


@pytest.mark.parametrize("size", [0, -1, MOST_SAMPLES + 1, 1.5, True])
@pytest.mark.parametrize(
    "make", [los_angeles, gaussian_cluster, road_points, daily_routes, lambda size: load_point_sample("la_residents", size=size)]
)
def test_a_size_out_of_range_is_refused(make, size):
    assert "whole number from 1 to" in refused(make, size)


def test_sizes_of_real_data_unknown_samples_and_a_sigma_out_of_range_are_refused():
    assert "fixed size" in refused(load_point_sample, "us_places", size=10)
    assert "choose one of la_residents" in refused(load_point_sample, "mars")
    for sigma in (0.0, -1.0, float("nan"), float("inf")):
        assert "sigma" in refused(gaussian_cluster, 10, sigma)


@pytest.mark.parametrize(("make", "sizes"), [(los_angeles, [1, 2, 1_000_001]), (road_points, [1, 2, 3, 1001])])
def test_every_size_in_range_is_kept_to_the_last_record(make, sizes):
    for size in sizes:
        xy = np.array(make(size, seed=1))
        assert (xy.shape, xy.dtype) == ((2, size), np.float64)


@pytest.mark.parametrize("sigma", [20, 50, 100])
def test_the_gaussian_cluster_is_the_published_protocol_s_matrix(sigma):
    """The protocol: default_rng(7), centre, floor, outside dropped; rows first."""
    rng = np.random.default_rng(7)
    centre = rng.uniform(0, 1024, 2)
    cells = np.floor(centre + sigma * rng.standard_normal((1_000_000, 2))).astype(int)
    cells = cells[((cells >= 0) & (cells < 1024)).all(1)]
    matrix = np.zeros((1024, 1024), np.int64)
    np.add.at(matrix, (cells[:, 0], cells[:, 1]), 1)
    points = PointCounts.from_xy(*gaussian_cluster(sigma=sigma, seed=7), domain=POINT_SAMPLES["gaussian_cluster"].domain)
    assert np.array_equal(points.blocks(10), matrix)


def test_places_are_of_the_contiguous_states_and_known_ones_are_where_they_are(places):
    assert list(places.columns) == ["name", "state", "population", "longitude", "latitude"]
    assert len(set(places["state"])) == 49
    assert not {"AK", "HI", "PR"} & set(places["state"])
    assert (places["population"] >= 0).all()
    boston = places[(places["name"] == "Boston") & (places["state"] == "MA")].iloc[0]
    assert (boston["longitude"], boston["latitude"]) == pytest.approx((-71.06, 42.36), abs=0.02)
    assert load_point_sample("us_places").count.sum() == len(places)


@pytest.mark.parametrize("name", OUTLINES)
def test_outlines_are_valid_geojson_with_longitude_and_latitude_in_range(name):
    shape = outline(name)
    parts = shapely.get_parts(shape)
    assert {part.geom_type for part in parts} == ({"Polygon"} if name == "land.json" else {"MultiLineString"})
    assert shapely.is_valid(parts).all()
    west, south, east, north = shapely.bounds(shape)
    assert -180 <= west < east <= 180
    assert -85 <= south < north <= 85
    if name != "land.json":
        lines = shapely.get_parts(parts)
        assert shapely.length(shapely.union_all(lines)) == pytest.approx(shapely.length(lines).sum(), rel=1e-3), "each border once"


LAND = {"Los Angeles": (-118.24, 34.05), "the border to Canada": (-98.0, 49.0), "the border to Mexico": (-106.4, 31.75)}
LAND |= {"Chukotka, beyond the 180th meridian": (-179.0, 67.0), "Alaska": (-150.0, 67.5), "Antarctica": (0.0, -80.0)}
SEA = {"Santa Monica Bay": (-118.5, 33.9), "Lake Michigan": (-87.0, 43.0), "the Pacific at the 180th meridian": (-170.0, -17.0)}


def test_land_is_land_and_sea_is_sea():
    parts = shapely.get_parts(outline("land.json"))
    assert [name for name, place in (LAND | SEA).items() if shapely.contains_xy(parts, *place).any()] == [*LAND]


def test_the_readme_names_source_licence_and_rows_of_every_file():
    lines = (folder("sample_data") / "README.md").read_text(encoding="utf-8").splitlines()
    files = [*folder("sample_data").glob("*.parquet"), *(folder("assets") / name for name in OUTLINES), folder("assets") / "logo.svg"]
    for file in files:
        row = next(line for line in lines if line.startswith(f"| `{file.name}`"))
        assert any(licence in row for licence in ("Creative Commons Attribution 4.0", "public domain", "Apache-2.0"))
        if file.suffix == ".parquet":
            assert f"{len(pd.read_parquet(file)):,}" in row
    assert f"{len(json.loads((folder('assets') / 'land.json').read_text())['features']):,} polygons" in "\n".join(lines)
    assert sum((folder("assets") / name).stat().st_size for name in OUTLINES) < 600_000
    assert (folder("sample_data") / "la_residents.parquet").stat().st_size < 2_500_000


SIZE = 200_000
CASCADES = (-121.7, 48.2, -120.9, 48.9)


@pytest.fixture(scope="module")
def crossings():
    return np.column_stack(road_points(SIZE))


def state(code):
    counties = geopandas.read_parquet(folder("sample_data") / "us_counties.parquet")
    return shapely.union_all(counties[counties["state"] == code].geometry.to_numpy())


def test_all_crossings_lie_in_the_paper_s_rectangle_in_two_states_six_in_ten_in_washington(crossings):
    assert POINT_SAMPLES["road_crossings"].domain.bounds == BOUNDS == (-124.82, 31.33, -103.00, 49.00)
    assert PAPER_SIZE == 1_630_000
    north, south = (shapely.contains_xy(state(code), crossings) for code in ("WA", "NM"))
    assert (north | south).all()
    assert north.mean() == pytest.approx(0.6, abs=0.001)
    assert inside(crossings, BOUNDS) == SIZE


def test_most_of_the_rectangle_is_empty_seattle_is_fullest_and_the_cascades_are_nearly_empty(crossings):
    """Of 64 x 64 blocks more than four fifths are empty, and the 1 % fullest hold more than a quarter of all crossings."""
    counts, east, north = np.histogram2d(*crossings.T, bins=64, range=[BOUNDS[::2], BOUNDS[1::2]])
    assert 0.8 < (counts == 0).mean() < 0.9
    assert np.sort(counts.ravel())[-41:].sum() > 0.25 * SIZE
    column, row = np.unravel_index(counts.argmax(), counts.shape)
    assert (east[column : column + 2].mean(), north[row : row + 2].mean()) == pytest.approx((-122.33, 47.6), abs=0.5)
    assert inside(crossings, CASCADES) / SIZE < 0.01 < 0.05 < inside(crossings, (-122.45, 47.45, -122.15, 47.75)) / SIZE


def test_towns_are_street_grids_and_crossings_do_not_pile_up(crossings):
    """In towns no two crossings of one grid are near: half the gaps to the nearest are over a third of a block."""
    assert len(np.unique(crossings, axis=0)) == SIZE
    km = crossings * np.array([111.32 * np.cos(np.radians(35.1)), 111.1])
    albuquerque = np.hypot(*(crossings - (-106.65, 35.08)).T) < 0.05
    gap, _ = cKDTree(km[albuquerque]).query(km[albuquerque], k=2)
    block = 0.08 * np.sqrt(PAPER_SIZE / SIZE)
    scattered = 0.5 / np.sqrt(albuquerque.sum() / (np.pi * 0.05**2 * 111.1 * 111.32 * np.cos(np.radians(35.1))))
    assert np.median(gap[:, 1]) > max(block / 3, 1.2 * scattered)


def test_country_lies_along_lines_a_mile_apart(crossings, places):
    """Latitudes in empty country, folded at a mile, crowd in a tenth of it."""
    south = crossings[crossings[:, 1] < 37.1]
    folded = south[:, 1] * 111.1 % 1.609
    near_line = np.minimum(folded, 1.609 - folded) < 0.08
    distance, _ = cKDTree(places[["longitude", "latitude"]].to_numpy()).query(south)
    assert near_line[distance > 0.2].mean() > 0.4 > near_line[distance < 0.03].mean()


def test_one_person_s_fixes_lie_on_few_ways_and_mostly_stand_in_a_release_that_protects_each_by_itself():
    points = load_point_sample("daily_routes")
    blocks = points.blocks(8)
    assert (points.contributions, points.unit) == (1, "record")
    assert 0.005 < (blocks > 0).mean() < 0.04
    release = POINT_FAMILY.choices["path_tree"]().release(points, PureBudget(0.5), Entropy.seeded(1))
    nodes = release.nodes(release.height)
    truth = release.tree.sums(points.column, points.row, points.count)[nodes]
    far_above_noise = release.count[nodes] > 5 * release.node_stddev[nodes]
    assert truth[far_above_noise].sum() > 0.5 * points.count.sum()
    assert (truth[far_above_noise] > 0).all()


def test_with_a_bound_ten_of_the_same_fixes_count_and_the_person_is_protected():
    points, again = (load_point_sample("daily_routes_bounded") for _ in range(2))
    assert (points.count.sum(), points.contributions, points.unit) == (10, 10, "person")
    assert np.array_equal(points.column, again.column)
    assert set(zip(points.column.tolist(), points.row.tolist(), strict=True)) <= set(
        zip(*(getattr(load_point_sample("daily_routes"), axis).tolist() for axis in ("column", "row")), strict=True)
    )
