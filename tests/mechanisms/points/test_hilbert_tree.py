"""The Hilbert R-tree: its pieces, its boxes, what it counts and what it spends, against all places of the curve."""

import numpy as np
import pytest
from geopandas.tools.hilbert_curve import _encode

from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.hilbert_tree import HilbertTree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from tests.trees import random_boxes, shares_of

HUGE = PureBudget(10**8)


def points_of(order: int, records: int = 2000, seed: int = 1) -> PointCounts:
    """Three clusters on an eighth of background; one of them fits into a few cells."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0.2, 0.8, (3, 2))[rng.integers(0, 3, records)]
    places = np.clip(rng.normal(centre, rng.choice([1e-4, 0.02, 0.1], records)[:, None]), 0, 1)
    places[: records // 8] = rng.random((records // 8, 2))
    return PointCounts.from_xy(*places.T, domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=order))


def released(points: PointCounts, budget: PureBudget = HUGE, seed: int = 1, **settings) -> PointRelease:
    return HilbertTree(**settings).release(points, budget, Entropy.seeded(seed))


def places_of(points: PointCounts) -> np.ndarray:
    """Places on the curve of the lattice's own order, by geopandas."""
    return _encode(points.domain.order, points.column, points.row).astype(np.int64)


@pytest.mark.parametrize("order", [1, 5, 16])
@pytest.mark.parametrize("fan_out", [2, 4])
def test_with_a_huge_budget_every_count_is_that_of_the_places_in_its_piece(order, fan_out):
    points = points_of(order)
    release, place = released(points, fan_out=fan_out, height=5), places_of(points)
    curve = release.tree.curve
    true = ((curve.first[:, None] <= place) & (place < curve.last[:, None])) @ points.count
    np.testing.assert_allclose(release.count, true, atol=1e-6)
    np.testing.assert_array_equal(np.rint(release.noisy), true)
    np.testing.assert_array_equal(release.tree.sums(points.column, points.row, points.count), true)


@pytest.mark.parametrize("epsilon", [0.01, 10**8])
@pytest.mark.parametrize("order", [1, 3, 18])
def test_pieces_tile_the_curve_and_boxes_nest(order, epsilon):
    tree = released(points_of(order), PureBudget(epsilon), height=6).tree
    first, last = tree.curve.first, tree.curve.last
    along = tree.leaves[np.argsort(first[tree.leaves])]
    assert (first[along[0]], last[along[-1]]) == (0, 4**order)
    np.testing.assert_array_equal(first[along[1:]], last[along[:-1]])
    inner = np.flatnonzero(tree.children)
    np.testing.assert_array_equal(first[tree.first_child[inner]], first[inner])
    np.testing.assert_array_equal(last[tree.first_child[inner] + tree.children[inner] - 1], last[inner])
    box, above = tree.rectangles()[1:], tree.rectangles()[tree.parent[1:]]
    assert (box[:, :2] >= above[:, :2]).all()
    assert (box[:, 2:] <= above[:, 2:]).all()


@pytest.mark.parametrize("order", [4, 16])
def test_with_a_huge_budget_every_split_is_a_best_one(order):
    points = points_of(order, 700)
    tree, place = released(points, fan_out=2, height=6).tree, np.repeat(places_of(points), points.count)
    for node in np.flatnonzero(tree.children).tolist():
        low, high = tree.curve.first[node], tree.curve.last[node]
        assert tree.children[node] == 2
        own = place[(low <= place) & (place < high)]
        lines = np.setdiff1d(np.r_[own, own + 1, low + 1, high - 1], [low, high])
        uneven = np.abs((own[:, None] < lines).sum(axis=0) - len(own) / 2)
        line = tree.curve.last[tree.first_child[node]]
        assert abs((own < line).sum() - len(own) / 2) == uneven.min()


@pytest.mark.parametrize("fan_out", [2, 4])
def test_a_piece_of_one_place_is_a_leaf_that_is_measured_with_all_that_its_path_has_left(fan_out):
    matrix = np.zeros((64, 64), np.int64)
    matrix[36:38, 20:22] = 5000
    release = released(PointCounts.from_matrix(matrix), PureBudget(4000), fan_out=fan_out, height=6)
    tree = release.tree
    single = tree.curve.last - tree.curve.first == 1
    assert (tree.children[single] == 0).all()
    assert (tree.children[~single][tree.depth[~single] < tree.height] > 1).all()
    early = np.flatnonzero(single & (tree.depth < tree.height))
    assert (release.noisy[early] == 5000).sum() >= 2
    assert (release.noise_variance[early] <= release.noise_variance[tree.starts[-2]]).all()


@pytest.mark.parametrize(("lattice", "order", "used"), [(16, 16, 16), (16, 18, 16), (18, 16, 16), (24, 24, 24)])
def test_the_curve_is_no_finer_than_the_lattice_and_a_cut_is_noted(lattice, order, used):
    points = points_of(lattice, 500)
    release = released(points, order=order, height=3)
    curve = release.tree.curve
    assert curve.order == used
    assert curve.last[0] == 4**used
    assert (f"The curve has order {used}: the lattice is no finer." in release.receipt.notes) == (used < order)
    assert (release.tree.rectangles() % (1 << lattice - used) == 0).all()
    assert release.tree.rectangles()[0].tolist() == [0, 0, 1 << lattice, 1 << lattice]
    np.testing.assert_array_equal(np.rint(release.noisy), release.tree.sums(points.column, points.row, points.count))


@pytest.mark.parametrize("order", [6, 17])
@pytest.mark.parametrize("prune", [0, 40])
def test_answers_along_the_tree_are_those_of_the_leaves_by_share_of_their_boxes(order, prune):
    release = released(points_of(order), PureBudget(1), height=5, prune=prune)
    tree, boxes = release.tree, np.clip(random_boxes(np.random.default_rng(3), 1, 200), 0, 1)
    dense = shares_of(tree, boxes * release.domain.side, tree.leaves) @ release.count[tree.leaves]
    np.testing.assert_allclose(release.answer(boxes), dense, atol=1e-5)
    np.testing.assert_allclose(release.answer(boxes, spread=True)[0], dense, atol=1e-5)
    assert release.answer([[0, 0, 1, 1]])[0] == pytest.approx(release.count[0])
    assert len(release.to_frame()) == len(tree.leaves)
