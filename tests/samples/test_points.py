"""Samples of points and the outlines: reproducible, on land, licensed, small."""

import ast
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shapely

from dpviz.bundled import folder
from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.samples.points import MOST_SAMPLES, SAMPLES, SEED, gaussian_cluster, load_sample, los_angeles, road_points, sample_xy

OUTLINES = ("land.json", "countries.json", "us_states.json")
KM = np.array([92.327, 110.923])
OPEN_SEA = ((-118.62, 33.74, -118.47, 33.94), (-118.62, 33.74, -118.44, 33.77))
MOUNTAINS = (-118.1, 34.25, -117.87, 34.36)
MIDDLE = (-118.4, 33.9, -118.0, 34.15)


@pytest.fixture(scope="module")
def residents() -> np.ndarray:
    return np.column_stack(sample_xy("la_residents"))


def inside(points: np.ndarray, box: tuple[float, float, float, float]) -> int:
    return int(((points >= box[:2]) & (points <= box[2:])).all(1).sum())


def outline(name: str) -> shapely.Geometry:
    return shapely.from_geojson((folder("assets") / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("key", SAMPLES)
def test_every_sample_loads_into_its_domain_with_nothing_dropped(key):
    """And keeps every record that it has."""
    points = load_sample(key)
    assert points.domain == SAMPLES[key].domain
    assert points.dropped == 0
    assert points.count.sum() == len(sample_xy(key)[0]) > 0
    assert SAMPLES[key].key == key
    assert SAMPLES[key].unit in {"places", "crossings", "records"}
    assert (SAMPLES[key].usual is None) != SAMPLES[key].synthetic


@pytest.mark.parametrize("key", SAMPLES)
def test_coordinates_are_float64_vectors_inside_the_bounds(key):
    x, y = sample_xy(key)
    west, south, east, north = SAMPLES[key].domain.bounds
    assert x.dtype == y.dtype == np.float64
    assert x.shape == y.shape == (len(x),)
    assert west <= x.min() <= x.max() <= east
    assert south <= y.min() <= y.max() <= north


@pytest.mark.parametrize("key", ["la_residents", "gaussian_cluster", "road_crossings"])
def test_same_seed_same_data_and_another_seed_other_data(key):
    first, again, other = (np.array(sample_xy(key, 3_000, seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_the_neighbourhoods_stay_where_they_are_when_the_size_grows():
    """Counts per 16 x 16 block of 20,000 and 200,000 residents differ no more than two samples of one distribution."""
    small, large = (load_sample("la_residents", size=size, seed=5).blocks(4).ravel() for size in (20_000, 200_000))
    other = load_sample("la_residents", size=200_000, seed=6).blocks(4).ravel()
    assert np.abs(small / 20_000 - large / 200_000).sum() < 0.1 < np.abs(other - large).sum() / 200_000


def test_the_stored_residents_are_those_of_the_default_seed(residents):
    assert residents.shape == (200_000, 2)
    np.testing.assert_allclose(residents, np.column_stack(los_angeles(200_000, seed=SEED)), rtol=0, atol=1.5e-5)
    assert np.array_equal(residents, np.round(residents, 5))


def test_the_square_measures_70_by_70_km_around_the_paper_s_centre():
    domain = SAMPLES["la_residents"].domain
    west, south, east, north = domain.bounds
    assert domain.areas_km2([[0, 0, domain.side, domain.side]])[0] == pytest.approx(4_900, rel=1e-3)
    assert ((west + east) / 2, (south + north) / 2) == pytest.approx((-118.24368, 34.05223), abs=1e-5)


@pytest.mark.parametrize("box", OPEN_SEA)
def test_no_residents_are_in_the_open_sea(residents, box):
    assert inside(residents, box) == 0


def test_all_residents_are_on_the_land_of_the_basemap(residents):
    coast = shapely.union_all(shapely.clip_by_rect(shapely.get_parts(outline("land.json")), -119, 33, -117, 35))
    shapely.prepare(coast)
    assert shapely.intersects_xy(coast, residents).all()


def test_the_densest_place_is_near_downtown_and_the_mountains_are_nearly_empty(residents):
    counts, east, north = np.histogram2d(*residents.T, bins=35)
    column, row = np.unravel_index(counts.argmax(), counts.shape)
    densest = np.array([east[column : column + 2].mean(), north[row : row + 2].mean()])
    assert np.hypot(*((densest - (-118.24368, 34.05223)) * KM)) < 12
    assert inside(residents, MOUNTAINS) / len(residents) < 0.01 < 0.3 < inside(residents, MIDDLE) / len(residents)


def test_residents_follow_the_population_of_the_towns(residents):
    """Blocks of 12 km hold residents in proportion to the towns' people, Los Angeles itself left out as it fills many."""
    places = pd.read_parquet(folder("sample_data") / "us_places.parquet")
    towns = places[places["population"] < 1_000_000]
    west, south, east, north = SAMPLES["la_residents"].domain.bounds
    grid = {"bins": 6, "range": [[west, east], [south, north]]}
    people, _, _ = np.histogram2d(towns["longitude"], towns["latitude"], weights=towns["population"], **grid)
    homes, _, _ = np.histogram2d(*residents.T, **grid)
    assert np.corrcoef(people.ravel(), homes.ravel())[0, 1] > 0.6


def test_rejection_does_not_pile_residents_up_on_single_spots(residents):
    _, repeats = np.unique(residents, axis=0, return_counts=True)
    assert repeats.max() <= 6


@pytest.mark.parametrize("size", [0, -1, MOST_SAMPLES + 1, 1.5, True])
@pytest.mark.parametrize("make", [los_angeles, gaussian_cluster, road_points, lambda size: load_sample("la_residents", size=size)])
def test_a_size_out_of_range_is_refused(make, size):
    with pytest.raises(InputError, match="whole number from 1 to"):
        make(size)


@pytest.mark.parametrize("size", [1, 2, 1_000_001])
def test_every_size_in_range_is_kept_to_the_last_resident(size):
    x, y = los_angeles(size, seed=1)
    assert len(x) == len(y) == size


def test_real_data_has_no_size_and_unknown_samples_are_refused():
    with pytest.raises(InputError, match="fixed size"):
        load_sample("us_places", size=10)
    with pytest.raises(InputError, match="choose one of la_residents"):
        load_sample("mars")


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_a_sigma_out_of_range_is_refused(sigma):
    with pytest.raises(InputError, match="sigma"):
        gaussian_cluster(10, sigma)


@pytest.mark.parametrize("sigma", [20, 50, 100])
def test_the_gaussian_cluster_is_the_published_protocol_s_matrix(sigma):
    """The protocol: default_rng(7), centre, floor, outside dropped; rows first."""
    rng = np.random.default_rng(7)
    centre = rng.uniform(0, 1024, 2)
    cells = np.floor(centre + sigma * rng.standard_normal((1_000_000, 2))).astype(int)
    cells = cells[((cells >= 0) & (cells < 1024)).all(1)]
    matrix = np.zeros((1024, 1024), np.int64)
    np.add.at(matrix, (cells[:, 0], cells[:, 1]), 1)
    points = PointCounts.from_xy(*gaussian_cluster(sigma=sigma, seed=7), domain=SAMPLES["gaussian_cluster"].domain)
    assert np.array_equal(points.blocks(10), matrix)


def test_places_are_of_the_contiguous_states_and_known_ones_are_where_they_are():
    places = pd.read_parquet(folder("sample_data") / "us_places.parquet")
    assert list(places.columns) == ["name", "state", "population", "longitude", "latitude"]
    assert len(set(places["state"])) == 49
    assert not {"AK", "HI", "PR"} & set(places["state"])
    assert (places["population"] >= 0).all()
    boston = places[(places["name"] == "Boston") & (places["state"] == "MA")].iloc[0]
    assert (boston["longitude"], boston["latitude"]) == pytest.approx((-71.06, 42.36), abs=0.02)
    assert load_sample("us_places").count.sum() == len(places)


def test_a_sample_can_be_counted_on_another_domain():
    domain = SAMPLES["la_residents"].domain
    finer = type(domain)(bounds=domain.bounds, crs=domain.crs, order=12)
    assert load_sample("la_residents", domain=finer).domain.side == 4096


@pytest.mark.parametrize("name", OUTLINES)
def test_outlines_are_valid_geojson_with_longitude_and_latitude_in_range(name):
    collection = json.loads((folder("assets") / name).read_text(encoding="utf-8"))
    assert collection["type"] == "FeatureCollection"
    assert {feature["type"] for feature in collection["features"]} == {"Feature"}
    kinds = {feature["geometry"]["type"] for feature in collection["features"]}
    assert kinds == ({"Polygon"} if name == "land.json" else {"MultiLineString"})
    shape = outline(name)
    assert shapely.is_valid(shapely.get_parts(shape)).all()
    west, south, east, north = shapely.bounds(shape)
    assert -180 <= west < east <= 180
    assert -85 <= south < north <= 85


def test_the_outlines_together_stay_small():
    sizes = [(folder("assets") / name).stat().st_size for name in OUTLINES]
    assert sum(sizes) < 600_000
    assert (folder("sample_data") / "la_residents.parquet").stat().st_size < 2_500_000


@pytest.mark.parametrize("name", ["countries.json", "us_states.json"])
def test_each_border_is_stored_once(name):
    lines = shapely.get_parts(shapely.get_parts(outline(name)))
    assert shapely.length(shapely.union_all(lines)) == pytest.approx(shapely.length(lines).sum(), rel=1e-3)


@pytest.mark.parametrize(
    ("place", "dry"),
    [
        ((-118.24, 34.05), True),  # Los Angeles
        ((-118.5, 33.9), False),  # Santa Monica Bay
        ((-118.4, 33.4), True),  # Santa Catalina
        ((-87.0, 43.0), False),  # Lake Michigan
        ((-98.0, 49.0), True),  # the border to Canada has no gap
        ((-106.4, 31.75), True),  # nor has that to Mexico
        ((-179.0, 67.0), True),  # Chukotka, beyond the 180th meridian
        ((-150.0, 67.5), True),  # Alaska
        ((-40.0, 72.0), True),  # Greenland
        ((0.0, -80.0), True),  # Antarctica
        ((100.0, 70.0), True),  # Taymyr
        ((-30.0, 40.0), False),  # the Atlantic
        ((-170.0, -17.0), False),  # the Pacific beside Fiji's meridian
        ((51.0, 42.0), False),  # the Caspian Sea
    ],
)
def test_land_is_land_and_sea_is_sea(place, dry):
    assert shapely.contains_xy(shapely.get_parts(outline("land.json")), *place).any() == dry


def test_the_readme_names_source_licence_and_rows_of_every_file():
    lines = (folder("sample_data") / "README.md").read_text(encoding="utf-8").splitlines()
    files = [*folder("sample_data").glob("*.parquet"), *(folder("assets") / name for name in OUTLINES), folder("assets") / "logo.svg"]
    for file in files:
        row = next(line for line in lines if line.startswith(f"| `{file.name}`"))
        assert any(licence in row for licence in ("Creative Commons Attribution 4.0", "public domain", "Apache-2.0"))
        if file.suffix == ".parquet":
            assert f"{len(pd.read_parquet(file)):,}" in row
    assert f"{len(json.loads((folder('assets') / 'land.json').read_text())['features']):,} polygons" in "\n".join(lines)


@pytest.mark.parametrize("name", ["assets", "sample_data"])
def test_the_scripts_that_rebuild_say_how_to_run_them(name):
    script = Path(folder(name)) / "make.py"
    if not script.exists():
        pytest.skip("not part of an installed package")
    assert f"{name}/make.py" in str(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))))
