"""What is read back is what was released: every mechanism, every setting under which a release has other parts."""

import io
from dataclasses import replace

import geopandas
import numpy as np
import pytest
import shapely
from geopandas.testing import assert_geodataframe_equal

from dpviz.mechanisms import (
    FLOW_MECHANISMS,
    POINT_MECHANISMS,
    AdaptiveGrid,
    FlatGaussian,
    HilbertTree,
    Htf,
    Kdtree,
    PathTree,
    Privelet,
    PrivTree,
    Quadtree,
    TopDown,
    UniformGrid,
)
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import read_release, write_release, zip_release
from dpviz.release.manifest import describe
from tests.flow_cases import random_flows, random_regions, regular, trips_of
from tests.often import named, often
from tests.release_cases import BOUNDS, WORDS, assert_same, flows_on, points_of, regions_with_shapes

VARIANTS = {
    "quadtree, pruned": Quadtree(height=5, prune=20),
    "quadtree, drawn to 0": Quadtree(height=4, zero=True),
    "quadtree, as measured": Quadtree(height=3, least_squares=False),
    "quadtree, leaves only": Quadtree(height=3, split="leaf", least_squares=False),
    "quadtree of 16, custom": Quadtree(height=1, fan_out=16, split="custom", weights=(0.25, 0.75)),
    "quadtree, interpolated": Quadtree(height=3, inside="interpolated", count_root=False),
    "kdtree in halves": Kdtree(fan_out=2),
    "kdtree, hybrid": Kdtree(variant="hybrid"),
    "kdtree, cell": Kdtree(variant="cell"),
    "kdtree, noisy-mean": Kdtree(variant="noisy-mean"),
    "kdtree, smooth-sensitivity": Kdtree(variant="smooth-sensitivity"),
    "kdtree, sample": Kdtree(sample=0.5),
    "adaptive grid, declared": AdaptiveGrid(declared_total=400),
    "uniform grid, declared": UniformGrid(declared_total=400),
    "coarse wavelet": Privelet(order=3),
    "shorter curve": HilbertTree(order=16),
    "path tree": PathTree(zero=True),
    "privtree": PrivTree(fan_out=16),
    "htf, leaves alone": Htf(combine=False, zero=False, height=4),
}
POINTS = {key: row() for key, row in POINT_MECHANISMS.items()} | VARIANTS
TRIPS = {
    **{key: row() for key, row in FLOW_MECHANISMS.items()},
    **{f"{key}, add_remove": row(neighbours="add_remove") for key, row in FLOW_MECHANISMS.items()},
    "top_down, from the origin": TopDown(tree="origin", split="levels", optimiser="euclidean"),
    "top_down, dial": TopDown(dial=1.5, conversion="simple"),
    "top_down, false discovery": TopDown(false_discovery=0.1),
    "flat_gaussian, pairs left out": FlatGaussian(least=10),
}


def back(release, folder):
    """The release after a journey through a folder, and again through a zip; both must agree."""
    write_release(release, folder, describe(release, WORDS))
    assert_same(read_release(io.BytesIO(zip_release(folder))), read_release(folder))
    return read_release(folder)


@pytest.mark.parametrize("mechanism", named(POINTS, 8))
def test_points_come_back_bit_for_bit_and_answer_as_before(mechanism, tmp_path):
    budget = ApproxBudget("1/3", "1e-6") if mechanism.needs_delta else PureBudget("1/3")
    release = mechanism.release(points_of(1000), budget, Entropy.system())
    read = back(release, tmp_path / "out")
    assert_same(read, release)
    boxes = np.array([BOUNDS, (-8.3, 42, 4, 54.1), (-4, 46, -2.2, 56)])
    for inside in ("uniform",) if release.tree.overlaps else ("uniform", "interpolated"):
        assert_same(read.answer(boxes, spread=True, inside=inside), release.answer(boxes, spread=True, inside=inside))
    areas = geopandas.GeoSeries([shapely.Point(-3, 47).buffer(2)], crs="EPSG:4326")
    assert_same(read.answer_areas(areas, spread=True), release.answer_areas(areas, spread=True))
    for level in range(release.height + 1):
        assert_geodataframe_equal(read.to_frame(level), release.to_frame(level))
    assert read.receipt.spent == release.receipt.spent


@pytest.mark.parametrize(("records", "crs"), often([(0, None), (1, "EPSG:3857")], 1))
def test_hardly_any_points_come_back(records, crs, tmp_path):
    for place, mechanism in enumerate(POINTS.values()):
        budget = ApproxBudget(1, "1e-6") if mechanism.needs_delta else PureBudget(1)
        release = mechanism.release(points_of(records, order=2, crs=crs), budget, Entropy.system())
        assert_same(back(release, tmp_path / str(place)), release)


def test_second_measurements_come_back(tmp_path):
    release = AdaptiveGrid().release(points_of(500), PureBudget(2), Entropy.system())
    twice = np.where(np.arange(len(release.count)) % 3, np.nan, -0.0)
    assert_same(back(replace(release, again=twice), tmp_path / "out"), replace(release, again=twice))


@pytest.mark.parametrize("mechanism", named(TRIPS, 4))
def test_trips_come_back_bit_for_bit_and_answer_as_before(mechanism, tmp_path):
    budget = ApproxBudget(2, "1e-5")
    release = mechanism.release(flows_on(regions_with_shapes()), budget, Entropy.system())
    read = back(release, tmp_path / "shapes")
    assert_same(read, release)
    assert read.tree.destinations is read.tree.origins
    plain = mechanism.release(trips_of(3000, 3), budget, Entropy.system())
    read = back(plain, tmp_path / "plain")
    assert_same(read, plain)
    for stage in range(plain.tree.height + 1):
        assert read.stage(stage, spread=True).equals(plain.stage(stage, spread=True))
    for levels in ((3, 3), (3, 1), (1, 3), (2, 0)):
        u, v = (plain.tree.origins.ids_of(level)[plain.tree.origins.ancestors(level)] for level in levels)
        assert_same(read.answer(u, v[::-1], levels=levels, spread=True), plain.answer(u, v[::-1], levels=levels, spread=True))


def test_trips_between_two_geographies_come_back(tmp_path):
    rng = np.random.default_rng(3)
    homes, works = random_regions(rng, 3, prefix="h"), random_regions(rng, 3, prefix="w")
    release = TopDown().release(random_flows(rng, homes, works), ZcdpBudget("1/7"), Entropy.system())
    read = back(release, tmp_path / "out")
    assert_same(read, release)
    assert read.tree.destinations is not read.tree.origins


@pytest.mark.parametrize("mechanism", named(TRIPS, 4))
def test_no_trips_come_back(mechanism, tmp_path):
    release = mechanism.release(trips_of(0), ApproxBudget(1, "1e-6"), Entropy.system())
    assert_same(back(release, tmp_path / "out"), release)


def test_one_region_comes_back(tmp_path):
    release = TopDown().release(trips_of(0), ApproxBudget(1, "1e-6"), Entropy.system())
    assert_same(back(release, tmp_path / "none"), release)
    alone = FlatGaussian().release(random_flows(np.random.default_rng(1), regular(1), pairs=1), ApproxBudget(1, "1e-6"), Entropy.system())
    assert_same(back(alone, tmp_path / "one"), alone)
