"""A release answers: boxes, polygons, blocks, spreads and intervals, each against its slow definition."""

import math
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import partial

import geopandas
import numpy as np
import pytest
import shapely

from dpviz.data.points import PointCounts
from dpviz.errors import DomainError, RefusedError
from dpviz.evaluation.metrics import true_answers
from dpviz.mechanisms import ExactKdtree, Privelet, Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.privacy.receipt import NOT_PRIVATE, PRIVATE, SIMULATION
from dpviz.release.point_release import PointRelease
from dpviz.space import ranges
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree
from dpviz.space.tree import Tree, remove_descendants
from tests.release_cases import points_of
from tests.trees import canonical_shares, polygons, random_boxes, random_tree, random_variances, release_of, shares_of

LATTICE = Domain(bounds=(0, 0, 32, 32), crs=None, order=5)
MATRIX = PointCounts.from_matrix(np.random.default_rng(1).integers(0, 5, (32, 32)))


def random_release(seed: int, *, unknown: bool = False) -> PointRelease:
    """A consistent release on a random tree; with `unknown` some leaves have no measurement below the root either."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, side=32)
    variance = random_variances(rng, tree, spread=2)
    if unknown:
        variance[rng.random(len(tree)) < 0.4] = np.inf
        variance[0] = 3.0
    noisy = np.where(np.isfinite(variance), rng.normal(30, 10, len(tree)), np.nan)
    return release_of(tree, noisy, variance)


def dense_covariance(tree: Tree, variance: np.ndarray) -> np.ndarray:
    """(n, n) covariance of least squares, which is linear: the response to one measurement at a time."""
    seen = np.flatnonzero(np.isfinite(variance))
    response = np.stack([least_squares(tree, (np.arange(len(tree)) == node).astype(float), variance)[0] for node in seen], axis=1)
    return response * variance[seen] @ response.T


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_answers_and_their_spreads_are_those_of_the_dense_covariance_with_and_without_a_raster(seed, unknown, monkeypatch):
    release = random_release(seed, unknown=unknown)
    tree, boxes = release.tree, random_boxes(np.random.default_rng(seed + 100), 32, 60)
    answer, stddev = release.answer(boxes, spread=True)
    share = shares_of(tree, boxes, tree.leaves)
    covariance = dense_covariance(tree, release.noise_variance)
    leaves = covariance[np.ix_(tree.leaves, tree.leaves)]
    np.testing.assert_allclose(answer, share @ release.count[tree.leaves], atol=1e-8)
    np.testing.assert_allclose(stddev**2, np.einsum("qi,ij,qj->q", share, leaves, share), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(release.node_stddev**2, np.diag(covariance), rtol=1e-7, atol=1e-12)
    blocks = release.blocks(3)
    np.testing.assert_allclose(release.answer(boxes), answer, atol=1e-8)
    np.testing.assert_allclose(blocks.sum(), release.count[0])
    monkeypatch.setattr(ranges, "MOST_RASTER_CELLS", 0)
    slow = replace(release)
    np.testing.assert_allclose(slow.answer(boxes), answer, atol=1e-8)
    np.testing.assert_allclose(slow.blocks(3), blocks, atol=1e-8)


NOT_CONSISTENT = {
    "all levels": Quadtree(height=4, least_squares=False),
    "pruned": Quadtree(height=4, least_squares=False, count_root=False, prune=40.0),
    "two levels": Quadtree(height=3, split="custom", weights=(1, 0, 0, 1), least_squares=False),
}


@pytest.mark.parametrize("mechanism", NOT_CONSISTENT.values(), ids=NOT_CONSISTENT)
def test_counts_that_do_not_agree_are_answered_by_the_canonical_decomposition(mechanism):
    release = mechanism.release(MATRIX, PureBudget(0.5), Entropy.seeded(2))
    assert release.spread is None
    boxes = random_boxes(np.random.default_rng(3), 32, 80)
    weights = canonical_shares(release.tree, boxes)
    answer, stddev = release.answer(boxes, spread=True)
    np.testing.assert_allclose(answer, weights @ release.count, atol=1e-8)
    np.testing.assert_allclose(stddev**2, weights**2 @ np.where(weights.any(0), release.noise_variance, 0), atol=1e-8)
    np.testing.assert_allclose(release.answer(boxes), answer)
    south, west = (part.ravel() * 8 for part in np.indices((4, 4)))
    np.testing.assert_allclose(release.blocks(2).ravel(), release.answer(np.stack([west, south, west + 8, south + 8], axis=1)))


def frame_of(shapes, crs: str | None = None) -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame(geometry=list(shapes), crs=crs)


RELEASES = {
    "consistent": random_release(0),
    "partly measured": random_release(1, unknown=True),
    "wavelet": Privelet(order=4).release(MATRIX, PureBudget(1), Entropy.seeded(1)),
}


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_polygons_are_answered_by_the_overlay_of_every_leaf_and_boxes_as_polygons_like_boxes(release):
    boxes = random_boxes(np.random.default_rng(1), 32, 60)
    boxes = boxes[(boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])]
    as_areas = release.answer_areas(frame_of(shapely.box(*boxes.T)), spread=True)
    np.testing.assert_allclose(as_areas, release.answer(boxes, spread=True), atol=1e-6)
    areas = polygons(np.random.default_rng(4), 15)
    leaves = release.domain.boxes(release.tree.rectangles(release.tree.leaves))
    share = shapely.area(shapely.intersection(areas[:, None], leaves)) / shapely.area(leaves)
    found, covered = release.answer_areas(frame_of(areas), outside="inside_part")
    np.testing.assert_allclose(found, share @ release.count[release.tree.leaves], atol=1e-6)
    np.testing.assert_allclose(release.answer_areas(frame_of(areas).geometry, outside="inside_part"), (found, covered))


def test_polygons_in_another_crs_are_reprojected_to_the_domains():
    points = PointCounts.from_xy([3e5], [5.6e6], domain=Domain(bounds=(0, 5.5e6, 6e5, 6.1e6), crs="EPSG:3857", order=5), count=[5000])
    release = Quadtree(height=4).release(points, PureBudget(5), Entropy.seeded(5))
    here = geopandas.GeoSeries([shapely.box(1e5, 5.51e6, 4.1e5, 5.7e6), shapely.Point(3e5, 5.8e6).buffer(1e5)], crs="EPSG:3857")
    np.testing.assert_allclose(release.answer_areas(here.to_crs("EPSG:4326")), release.answer_areas(here), rtol=1e-6)
    assert release.answer_areas(here)[0] == pytest.approx(5000, abs=100)


def test_areas_are_valid_polygons_in_the_crs_of_the_domain_and_empty_ones_hold_nothing():
    release, bow_tie = random_release(1), shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    for shape in (shapely.Point(1, 1), shapely.LineString([(0, 0), (1, 1)]), None, bow_tie):
        with pytest.raises(DomainError, match="make_valid"):
            release.answer_areas(geopandas.GeoSeries([shapely.box(0, 0, 1, 1), shape]))
    assert release.answer_areas(geopandas.GeoSeries([shapely.Polygon()])).tolist() == [0]
    assert [part.shape for part in release.answer(np.zeros((0, 4)), spread=True)] == [(0,), (0,)]
    with pytest.raises(DomainError, match="box"):
        release.answer([[2, 0, 1, 1]])
    with pytest.raises(DomainError, match="GeoDataFrame"):
        release.answer_areas([1, 2])
    with pytest.raises(DomainError, match="set_crs"):
        release_in_metres().answer_areas(frame_of([shapely.box(0, 0, 1, 1)]))


def release_in_metres() -> PointRelease:
    tree = quadtree(LATTICE, 2)
    return release_of(tree, np.zeros(len(tree)), np.ones(len(tree)), crs="EPSG:3857")


OUTSIDE = np.array([[100.0, 100, 200, 200], [-16, 0, 16, 32], [0, 0, 32, 33]])


def test_answers_outside_the_domain_are_refused():
    release, points = random_release(2), PointCounts.from_matrix(np.ones((32, 32), int))
    for box in OUTSIDE:
        for answer in (
            release.answer,
            partial(release.answer, spread=True, fill="interpolated"),
            release.answer_interval,
            lambda boxes: release.answer_areas(frame_of(shapely.box(*boxes.T))),
            partial(true_answers, points),
        ):
            with pytest.raises(DomainError, match="outside='inside_part'"):
                answer(box[None])
    with pytest.raises(DomainError, match="outside must be one of refuse, inside_part"):
        release.answer(OUTSIDE, outside="clip")


def test_the_part_inside_is_answered_together_with_its_coverage():
    release, clipped = random_release(2), np.clip(OUTSIDE, 0, 32)
    share, areas = np.array([0, 1 / 2, 32 / 33]), frame_of(shapely.box(*OUTSIDE.T))
    for found, wanted in (
        (release.answer(OUTSIDE, outside="inside_part"), (release.answer(clipped),)),
        (release.answer(OUTSIDE, spread=True, outside="inside_part"), release.answer(clipped, spread=True)),
        (release.answer_interval(OUTSIDE, outside="inside_part"), release.answer_interval(clipped)),
        (release.answer_areas(areas, outside="inside_part"), (release.answer(clipped),)),
        (release.answer_areas(areas, spread=True, outside="inside_part"), release.answer(clipped, spread=True)),
    ):
        for part, other in zip(found, (*wanted, share), strict=True):
            np.testing.assert_allclose(part, other, atol=1e-6)
    np.testing.assert_allclose(release.coverage(OUTSIDE), share)
    np.testing.assert_allclose(release.coverage(areas), share)


PRUNED = Quadtree(height=5, prune=10.0).release(MATRIX, PureBudget(1), Entropy.seeded(7))


@pytest.mark.parametrize("release", [random_release(8, unknown=True), PRUNED], ids=lambda each: each.mechanism)
def test_the_frame_of_every_level_tiles_the_domain_and_other_levels_are_refused(release):
    for level in range(release.tree.height + 1):
        frame = release.to_frame(level=level)
        assert frame.geometry.area.sum() == pytest.approx(32 * 32)
        assert shapely.area(shapely.union_all(frame.geometry)) == pytest.approx(32 * 32)
        assert frame["count"].sum() == pytest.approx(release.count[0])
        assert (frame["level"] == release.tree.depth[frame["partition_id"]]).all()
        assert (frame["level"] <= level).all()
        np.testing.assert_array_equal(frame["stddev"], release.node_stddev[frame["partition_id"]])
        np.testing.assert_array_equal(frame["count_noisy"], release.noisy[frame["partition_id"]])
        assert ((frame["ci_low"] <= frame["count"].clip(0)) & (frame["count"].clip(0) <= frame["ci_high"])).all()
    np.testing.assert_array_equal(release.to_frame()["partition_id"], release.tree.leaves)
    assert release_in_metres().to_frame(1).crs == "EPSG:3857"
    for level in (-1, 3):
        with pytest.raises(DomainError, match="levels 0 to 2"):
            release_in_metres().to_frame(level)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", "1", "2", "3", "5", "7", "10", "20"])
def test_the_interval_of_one_laplace_count_covers_at_least_95_percent_exactly(epsilon):
    root, _ = remove_descendants(quadtree(LATTICE, 1), np.ones(5, bool))
    release = release_of(root, np.array([1000.0]), np.array([laplace_variance(1 / Fraction(epsilon))]))
    low, high = (float(end[0]) for end in release.node_interval(np.array([0])))
    reach = (high - low) / 2
    assert (low + high) / 2 == 1000
    assert reach == int(reach)
    assert 2 * math.exp(-float(epsilon) * (reach + 1)) / (1 + math.exp(-float(epsilon))) <= 0.05


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
def test_intervals_of_whole_partitions_stand_around_the_unbiased_estimate_and_cover_95_percent(epsilon):
    rng = np.random.default_rng(3)
    points = PointCounts.from_matrix(rng.poisson(2.0, (32, 32)) * (rng.random((32, 32)) < 0.2))
    boxes, answers = np.rint(random_boxes(rng, 32, 60)), []
    for entropy in Entropy.seeded(4).spawn(40):
        release = Quadtree(height=5, shrink_small=True, fill="interpolated").release(points, PureBudget(epsilon), entropy)
        release = replace(release, count=release.count + 7.0)  # a bias that intervals must not have
        low, high = release.answer_interval(boxes)
        truth = replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(float))
        exact = truth.answer(boxes, fill="uniform")
        answers.append((low <= exact) & (exact <= high))
        plain = replace(release, count=release.unbiased, unbiased=None, fill="uniform")
        centre, stddev = plain.answer(boxes, spread=True)
        np.testing.assert_array_equal(low, np.maximum(np.floor(centre - np.log(20) / np.sqrt(2) * stddev), 0))
        np.testing.assert_array_equal(high, np.maximum(np.ceil(centre + np.log(20) / np.sqrt(2) * stddev), 0))
        width = np.log(20) / np.sqrt(2) * release.node_stddev
        ends = np.floor(release.unbiased - width), np.ceil(release.unbiased + width)
        np.testing.assert_array_equal(release.node_interval(slice(None)), np.maximum(ends, 0))
    assert np.mean(answers) > 0.95
    assert [word in release.approximate for word in ("towards 0", "fuller neighbours")] == [True, True]


KINDS = {
    "simulation": (Quadtree(height=2), Entropy.seeded(1), SIMULATION, "simulation must not be published"),
    "private": (Quadtree(height=2), Entropy.system(), PRIVATE, None),
    "reference": (ExactKdtree(height=2), Entropy.system(), NOT_PRIVATE, "NOT PRIVATE: this is a reference"),
    "seeded reference": (ExactKdtree(height=2), Entropy.seeded(1), NOT_PRIVATE, "NOT PRIVATE: this is a reference"),
}


@pytest.mark.parametrize(("mechanism", "entropy", "status", "refusal"), KINDS.values(), ids=KINDS)
def test_a_release_and_its_frames_state_their_status_and_only_private_ones_may_be_published(mechanism, entropy, status, refusal, tmp_path):
    release = mechanism.release(points_of(200), PureBudget(0.5), entropy)
    assert release.status == status
    assert repr(release).endswith(f" partitions, epsilon 0.5{f', {status}' * (status != PRIVATE)})")
    for level in (None, *range(release.height + 1)):
        assert set(release.to_frame(level)["status"]) == {status}
    release.to_frame().to_file(tmp_path / "plain.geojson", driver="GeoJSON")
    assert set(geopandas.read_file(tmp_path / "plain.geojson")["status"]) == {status}
    with pytest.raises(RefusedError, match=refusal) if refusal else nullcontext():
        release.refuse_unpublishable()
