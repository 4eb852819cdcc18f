"""What is read back is what was released: every mechanism, every setting under which a release has other parts, and what is odd."""

import io
import json
from dataclasses import replace

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from geopandas.testing import assert_geodataframe_equal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpviz.data.points import PointCounts
from dpviz.errors import InputError, SettingError
from dpviz.mechanisms import (
    MECHANISMS,
    AdaptiveGrid,
    FittedTree,
    FlatAreas,
    FlatGaussian,
    HilbertTree,
    Htf,
    Kdtree,
    PathTree,
    Privelet,
    Quadtree,
    RegionTree,
    TopDown,
    UniformGrid,
)
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import compute_seal, read_release, write_release, zip_release
from dpviz.release.manifest import describe
from dpviz.space.domain import Domain
from dpviz.space.interpolate import FILLS
from dpviz.space.mask import CellMask
from dpviz.space.regions import Regions
from tests.area_cases import records_of
from tests.often import named, often
from tests.release_cases import (
    BOUNDS,
    WORDS,
    area_release,
    areas_on,
    assert_same,
    point_release,
    points_of,
    regions_with_shapes,
    trip_counts_on,
    trip_release,
)
from tests.strategies import domains
from tests.trip_cases import random_regions, random_trips, regular, trip_counts_of, trips_of

BUDGET, PURE = ApproxBudget(2, "1e-5"), PureBudget("1/3")
VARIANTS = {
    "quadtree, pruned": Quadtree(height=5, prune=20),
    "quadtree, drawn to 0": Quadtree(height=4, shrink_small=True),
    "quadtree, as measured": Quadtree(height=3, least_squares=False),
    "quadtree of 16, custom": Quadtree(height=1, fan_out=16, split="custom", weights=(0.25, 0.75)),
    "quadtree, interpolated": Quadtree(height=3, fill="interpolated", count_root=False),
    "kdtree, smooth-sensitivity": Kdtree(variant="smooth-sensitivity"),
    "kdtree, sample": Kdtree(sample=0.5),
    "uniform grid, declared": UniformGrid(declared_total=400),
    "coarse wavelet": Privelet(order=3),
    "shorter curve": HilbertTree(order=16),
    "path tree, drawn to 0": PathTree(shrink_small=True, negative="keep", fill="interpolated"),
    "kdtree, spread": Kdtree(negative="spread", shrink_small=True),
    "htf, leaves alone": Htf(combine=False, shrink_small=False, height=4),
}
POINTS = {key: row() for key, row in MECHANISMS.of("points").items()} | VARIANTS
TRIPS = {
    **{key: row() for key, row in MECHANISMS.of("trips").items()},
    **{f"{key}, add_remove": row(neighbours="add_remove") for key, row in MECHANISMS.of("trips").items()},
    "top_down, from the origin": TopDown(tree="origin", split="levels", optimiser="euclidean"),
    "top_down, dial": TopDown(dial=1.5, accounting="paper"),
    "top_down, false discovery": TopDown(false_discovery=0.1),
    "flat_gaussian, pairs left out": FlatGaussian(threshold=10),
    "fitted_tree, list": FittedTree(false_discovery=0.2),
}


def back(release, folder):
    """The release after a journey through a folder, and again through a zip: as it was, bit for bit."""
    read = read_release(write_release(release, folder, describe(release, WORDS)))
    assert_same(read, release)
    assert_same(read_release(io.BytesIO(zip_release(folder))), release)
    return read


def system(mechanism, points, budget=PURE):
    return mechanism.release(points, BUDGET if mechanism.needs_delta else budget, Entropy.system())


@pytest.mark.parametrize("budget", often([BUDGET, ZcdpBudget("1/7")], 1), ids=str)
@pytest.mark.parametrize("mechanism", [Quadtree(height=3), Privelet(order=3)], ids=["quadtree", "privelet"])
def test_gaussian_noise_comes_back_with_its_intervals_and_its_receipt(mechanism, budget, tmp_path):
    release = system(mechanism, points_of(1000), budget)
    read = back(release, tmp_path / "out")
    assert (read.noise, read.receipt) == ("gaussian", release.receipt)
    assert_same(read.answer_interval([BOUNDS]), release.answer_interval([BOUNDS]))


@pytest.mark.parametrize("mechanism", named(POINTS, 8))
def test_points_come_back_bit_for_bit_and_answer_as_before(mechanism, tmp_path):
    release = system(mechanism, points_of(1000))
    read = back(release, tmp_path / "out")
    boxes = np.array([BOUNDS, (-8.3, 42, 4, 54.1), (-4, 46, -2.2, 56)])
    for inside in FILLS[: 1 if release.tree.overlaps else 3]:
        assert_same(read.answer(boxes, spread=True, fill=inside), release.answer(boxes, spread=True, fill=inside))
    areas = geopandas.GeoSeries([shapely.Point(-3, 47).buffer(2)], crs="EPSG:4326")
    assert_same(read.answer_areas(areas, spread=True), release.answer_areas(areas, spread=True))
    for level in range(release.height + 1):
        assert_geodataframe_equal(read.to_frame(level), release.to_frame(level))
    assert read.receipt.spent == release.receipt.spent


MASKED = {key: row() for key, row in MECHANISMS.of("points").items() if row.takes_mask}


@pytest.mark.parametrize("mechanism", named(MASKED, ["path_tree"]))
def test_a_mask_comes_back_and_answers_as_before(mechanism, tmp_path):
    domain = replace(points_of(1).domain, mask=CellMask.from_open(np.random.default_rng(1).random((16, 16)) < 0.7))
    x, y = np.random.default_rng(1).uniform(BOUNDS[:2], BOUNDS[2:], (500, 2)).T
    release = system(mechanism, PointCounts.from_xy(x, y, domain=domain))
    read = back(release, tmp_path / "out")
    assert read.domain.mask == domain.mask
    areas = geopandas.GeoSeries([shapely.Point(-3, 47).buffer(2)], crs="EPSG:4326")
    assert_same(read.answer_areas(areas, spread=True), release.answer_areas(areas, spread=True))
    folder = tmp_path / "out"
    text = (folder / "manifest.json").read_text().replace(f'"runs": "{domain.mask.runs}"', '"runs": "0 250 6"')
    facts = json.loads(text)
    (folder / "manifest.json").write_text(json.dumps(facts | {"seal": compute_seal(facts)}))
    with pytest.raises(InputError):
        read_release(folder)


RARE = [(0, None, list(MECHANISMS.of("points"))), (1, "EPSG:3857", list(VARIANTS))]


@pytest.mark.parametrize(("records", "crs", "mechanisms"), often(RARE, 1))
def test_hardly_any_points_come_back(records, crs, mechanisms, tmp_path):
    for key in mechanisms:
        back(system(POINTS[key], points_of(records, order=2, crs=crs)), tmp_path / key)


def test_second_measurements_and_a_bound_per_person_come_back(tmp_path):
    release = system(AdaptiveGrid(), replace(points_of(500), unit="person", contributions=3))
    back(replace(release, second_measurement=np.where(np.arange(len(release.count)) % 3, np.nan, -0.0)), tmp_path / "out")


@pytest.mark.parametrize("mechanism", named(TRIPS, 4))
def test_trips_come_back_bit_for_bit_and_answer_as_before_also_none(mechanism, tmp_path):
    release = mechanism.release(trip_counts_on(regions_with_shapes()), BUDGET, Entropy.system())
    read = back(release, tmp_path / "shapes")
    assert read.tree.destinations is read.tree.origins
    back(mechanism.release(trips_of(0), BUDGET, Entropy.system()), tmp_path / "none")
    plain = mechanism.release(trips_of(3000, 3), BUDGET, Entropy.system())
    read = back(plain, tmp_path / "plain")
    assert read.same_as(plain)
    assert not read.same_as(mechanism.release(trips_of(3000, 3), BUDGET, Entropy.seeded(2)))
    for stage in range(plain.tree.height + 1):
        assert read.stage(stage).equals(plain.stage(stage))
    for levels in ((3, 3), (3, 1), (1, 3), (2, 0)):
        u, v = (plain.tree.origins.ids_of(level)[plain.tree.origins.ancestors(level)] for level in levels)
        assert_same(read.answer(u, v[::-1], levels=levels, spread=True), plain.answer(u, v[::-1], levels=levels, spread=True))


def test_trips_between_two_geographies_and_those_of_one_region_come_back(tmp_path):
    rng = np.random.default_rng(3)
    homes, works = random_regions(rng, 3, prefix="h"), random_regions(rng, 3, prefix="w")
    release = TopDown().release(random_trips(rng, homes, works), ZcdpBudget("1/7"), Entropy.system())
    read = back(release, tmp_path / "two")
    assert read.tree.destinations is not read.tree.origins
    alone = FlatGaussian().release(random_trips(rng, regular(1), pairs=1), BUDGET, Entropy.system())
    back(alone, tmp_path / "one")


AREAS = {
    **{key: row() for key, row in MECHANISMS.of("areas").items()},
    "flat, hidden": FlatAreas(threshold=150),
    "region_tree, non-negative": RegionTree(nonnegative=True, count_root=True),
    "region_tree, one level not measured": RegionTree(split="custom", weights=(0, 1), neighbours="bounded"),
}


@pytest.mark.parametrize("mechanism", named(AREAS, ["flat, hidden", "region_tree, non-negative"]))
def test_areas_come_back_bit_for_bit_and_answer_as_before_also_none(mechanism, tmp_path):
    for place, budget in enumerate([PURE, BUDGET, ZcdpBudget("1/7")]):
        release = mechanism.release(areas_on(regions_with_shapes()), budget, Entropy.system())
        read = back(release, tmp_path / str(place))
        for level in range(3):
            assert_geodataframe_equal(read.to_frame(level), release.to_frame(level))
        assert_same(read.answer(["01", ["a", "d"]], spread=True), release.answer(["01", ["a", "d"]], spread=True))
        box = geopandas.GeoSeries([shapely.box(0.2, 50.1, 1.7, 51.3)], crs="EPSG:4326")
        assert_same(read.answer_areas(box, spread=True), release.answer_areas(box, spread=True))
    deep = replace(mechanism, weights=(0, 1, 1)) if getattr(mechanism, "weights", ()) else mechanism
    for number in (0, 1, 3000):
        back(deep.release(records_of(number), PURE, Entropy.system()), tmp_path / f"plain {number}")


def test_areas_on_grids_and_in_one_region_come_back(tmp_path):
    for place, crs in enumerate([None, "EPSG:4326"]):
        squares = Regions.squares(Domain(bounds=BOUNDS, crs=crs, order=5), zooms=(1, 3))
        back(RegionTree().release(areas_on(squares), PURE, Entropy.system()), tmp_path / str(place))
    one = Regions.from_table(pd.DataFrame({"town": ["'=1"]}), levels=["town"])
    back(RegionTree().release(areas_on(one), PURE, Entropy.system()), tmp_path / "one")


def test_trips_between_squares_come_back_with_the_grid_of_each_side(tmp_path):
    squares = Regions.squares(Domain(bounds=(0, 0, 4, 4), crs="EPSG:4326", order=2), zooms=(1, 2))
    polygons = replace(squares, grid=None)
    for sides in ({}, {"destinations": polygons}):
        trips = replace(trip_counts_on(squares), **sides)
        tree = back(FlatGaussian().release(trips, BUDGET, Entropy.system()), tmp_path / str(len(sides))).tree
        assert (tree.origins.grid, tree.destinations.grid) == (squares.grid, None if sides else squares.grid)


def test_areas_of_h3_cells_come_back(tmp_path):
    pytest.importorskip("h3")
    cells = Regions.h3((-74.02, 40.7, -74.0, 40.72), resolutions=(5, 7, 8))
    read = back(RegionTree().release(areas_on(cells), PURE, Entropy.system()), tmp_path / "h3")
    assert read.to_frame(1).attrs["approximate_shapes"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inside: st.lists(inside, max_size=4).map(tuple),
    max_leaves=6,
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.dictionaries(TEXTS, VALUES, max_size=5), words=st.lists(TEXTS, min_size=4, max_size=4))
@pytest.mark.slow
def test_any_settings_and_texts_survive_the_files(chosen, words, tmp_path_factory):
    receipt = replace(point_release().receipt, notes=tuple(words), unprotected=(words[2],), neighbours=words[3])
    odd = {"settings": chosen, "mechanism": words[0], "steps": tuple(words), "approximate": words[1], "receipt": receipt}
    for release in (point_release(), trip_release(1), area_release()):
        back(replace(release, **odd), tmp_path_factory.mktemp("odd") / "out")


def test_settings_that_no_file_can_hold_are_refused_by_their_name():
    for value in (float("nan"), float("inf"), (1.0, float("-inf")), {1: 2}, object(), np.float32(1), b"x"):
        with pytest.raises(SettingError, match="'odd' must be a text, a finite number"):
            describe(replace(point_release(), settings={"odd": value}), WORDS)


def test_half_characters_are_refused_before_anything_is_written(tmp_path):
    names = np.array(["a", "\ud800"], object)
    regions = [replace(regular(2), **odd) for odd in ({"ids": (names,)}, {"names": (names,)}, {"levels": ("\ud800",)})]
    releases = [FlatGaussian().release(trip_counts_on(each), BUDGET, Entropy.system()) for each in regions]
    odd = ({"settings": {"a": "\ud800"}}, {"settings": {"\udfff": 1}}, {"mechanism": "\ud800"})
    for release in (*releases, *(replace(point_release(), **each) for each in odd)):
        with pytest.raises(SettingError, match="half a character"):
            back(release, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(domain=domains())
def test_any_domain_comes_back(domain, tmp_path_factory):
    west, south, east, north = domain.bounds
    points = PointCounts.from_xy([(west + east) / 2], [(south + north) / 2], domain=domain)
    back(system(Quadtree(height=2), points), tmp_path_factory.mktemp("domain") / "out")


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(depth=st.integers(1, 5), seed=st.integers(0, 2**32), name=TEXTS, mechanism=st.sampled_from([RegionTree(), FlatAreas(threshold=3)]))
def test_areas_of_any_regions_come_back(depth, seed, name, mechanism, tmp_path_factory):
    rng = np.random.default_rng(seed)
    regions = random_regions(rng, depth)
    names = (np.array([f"{name}{place}" for place in range(regions.size(1))], object), *regions.names[1:])
    areas = areas_on(replace(regions, names=names))
    back(
        mechanism.release(replace(areas, unit="person", contributions=3), ZcdpBudget("1/7"), Entropy.system()),
        tmp_path_factory.mktemp("areas") / "out",
    )


SYSTEMS = ["EPSG:2263", "+proj=laea +lat_0=52 +lon_0=10 +ellps=GRS80 +units=m", "OGC:CRS84", "ESRI:102003"]


@pytest.mark.parametrize("crs", often(SYSTEMS, 1))
def test_frames_in_unusual_systems_come_back(crs, tmp_path):
    regions = regions_with_shapes(crs=crs)
    back(TopDown().release(trip_counts_on(regions), BUDGET, Entropy.system()), tmp_path / "trips")
    bounds = tuple(regions.geometry[-1].total_bounds)
    points = PointCounts.from_xy([bounds[0]], [bounds[1]], domain=replace(point_release().domain, bounds=bounds, crs=crs))
    back(system(Quadtree(height=2), points), tmp_path / "points")


SHAPES = {
    "points": [shapely.Point(x, 0.1 + 1 / 3) for x in range(3)],
    "holes and parts": [
        shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 0, 3, 1)]),
        shapely.Polygon([(5, 5), (9, 5), (9, 9), (5, 9)], [[(6, 6), (7, 6), (7, 7), (6, 7)]]),
        shapely.Point(20, 20).buffer(1 / 3),
    ],
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES.keys())
def test_shapes_come_back_bit_for_bit_on_the_levels_that_have_some(shapes, tmp_path):
    own = geopandas.GeoSeries(shapes, crs="EPSG:4326")
    for place, geometry in enumerate([(None, own), (own.iloc[:1], own), (own.iloc[:1], None)]):
        regions = replace(regular(1, 3), geometry=geometry)
        back(FlatGaussian().release(trip_counts_of(regions, {(0, 1): 9}), BUDGET, Entropy.system()), tmp_path / str(place))
