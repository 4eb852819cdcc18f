"""The setting `negative` of every mechanism that has it: what a release without negative counts keeps, and what it says."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import true_answers
from dpviz.mechanisms import MECHANISMS, PathTree, Quadtree
from dpviz.mechanisms.points.base import SPREAD_NOTE
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.manifest import describe_contents, describe_utility
from dpviz.release.point_release import PointRelease
from dpviz.space.interpolate import FILLS
from tests.mechanisms.test_contract import points_of
from tests.trees import random_boxes

SPREADING = {key: row(negative="spread") for key, row in MECHANISMS.of("points").items() if "negative" in row().chosen()}
SPREADING |= {"quadtree, pruned": Quadtree(negative="spread", prune=6.0), "quadtree, zero": Quadtree(negative="spread", shrink_small=True)}
SPARSE = points_of(2000)


def both(mechanism) -> tuple[PointRelease, PointRelease]:
    """Seeded releases with negative counts spread and kept."""
    made = (mechanism, replace(mechanism, negative="keep"))
    return tuple(each.release(SPARSE, PureBudget(1), Entropy.seeded(4)) for each in made)


def boxes_of(release: PointRelease) -> np.ndarray:
    """(100, 4) random boxes in the domain of a release."""
    return release.domain.coordinates(random_boxes(np.random.default_rng(1), release.domain.side, 100))


@pytest.mark.parametrize("mechanism", SPREADING.values(), ids=SPREADING)
def test_counts_are_at_least_0_and_add_up_and_total_noise_and_cost_stay(mechanism):
    spread, kept = both(mechanism)
    tree, whole = spread.tree, np.arange(len(spread.tree))
    sums = np.bincount(tree.parent[1:], spread.count[1:], len(tree))
    assert spread.count.min() == 0 > kept.count.min()
    np.testing.assert_allclose(sums[tree.children > 0], spread.count[tree.children > 0], rtol=1e-9, atol=1e-6)
    assert spread.count[0] == max(spread.unbiased[0], 0)
    assert spread.answer(boxes_of(spread), fill=FILLS[0 if tree.overlaps else -1]).min() >= 0
    assert (spread.nonnegative, kept.nonnegative) == (True, False)
    assert spread.receipt.steps == kept.receipt.steps
    assert spread.receipt.notes == (*kept.receipt.notes, SPREAD_NOTE)
    if not mechanism.chosen().get("prune"):
        estimate = kept.count if kept.unbiased is None else kept.unbiased
        for name, wanted in (("noisy", kept.noisy), ("node_stddev", kept.node_stddev), ("unbiased", estimate)):
            np.testing.assert_array_equal(getattr(spread, name), wanted)
        for found, before in zip(spread.node_interval(whole), kept.node_interval(whole), strict=True):
            np.testing.assert_array_equal(found, np.maximum(before, 0))
        assert min(end.min() for end in (*spread.node_interval(whole, joint=True), *spread.answer_interval([(-10, 40, -9, 41)]))) >= 0


def test_with_gaussian_noise_intervals_are_cut_at_0_too():
    spread, kept = (Quadtree(negative=way).release(SPARSE, ZcdpBudget("0.1"), Entropy.seeded(2)) for way in ("spread", "keep"))
    assert spread.count.min() == 0 > kept.count.min()
    whole = np.arange(len(kept.tree))
    for found, before in (
        (spread.node_interval(whole), kept.node_interval(whole)),
        (spread.node_interval(whole, joint=True), kept.node_interval(whole, joint=True)),
    ):
        np.testing.assert_array_equal(found, np.maximum(before, 0))
    assert describe_utility(spread).interval.startswith("count_unbiased ± 1.96 stddev, rounded outwards and not under 0.")


def test_a_count_outside_its_interval_is_marked_and_the_manifest_says_what_that_is():
    spread, kept = both(PathTree())
    nodes = spread.nodes()
    outside, frame = spread.lies_outside(nodes), spread.to_frame()
    low, high = spread.node_interval(nodes)
    assert 0 < outside.sum() < len(nodes)
    np.testing.assert_array_equal(outside, (spread.count[nodes] < low) | (spread.count[nodes] > high))
    np.testing.assert_array_equal(frame["count_outside"], outside)
    assert "count_outside" in describe_contents(spread).columns
    assert describe_contents(spread).nonnegative is True
    assert describe_contents(kept).nonnegative is None
    for found in (kept.to_frame(), describe_contents(kept).columns):
        assert "count_outside" not in found


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [PathTree(), Quadtree(negative="spread")], ids=["path_tree", "quadtree"])
def test_intervals_of_fixed_boxes_hold_at_least_93_times_in_100_also_of_empty_ones(mechanism):
    """The edges of the boxes are those of quarters, so that little is assumed inside partitions; the third and fourth box are empty."""
    rng = np.random.default_rng(3)
    matrix = np.zeros((32, 32), np.int64)
    np.add.at(matrix, tuple(np.clip(rng.normal(8, 3, (2000, 2)), 0, 31).astype(int).T), 1)
    points = PointCounts.from_matrix(matrix)
    boxes = np.array([[0, 0, 32, 32], [0, 0, 16, 16], [16, 16, 32, 32], [24, 0, 28, 4], [8, 8, 16, 16], [4, 8, 5, 9]], float)
    true = true_answers(points, boxes)
    held = np.zeros(len(boxes))
    for entropy in Entropy.seeded(8).spawn(400):
        low, high = mechanism.release(points, PureBudget("0.5"), entropy).answer_interval(boxes)
        held += (low <= true) & (true <= high)
    assert (held / 400).min() >= 0.93
    assert true[[2, 3]].tolist() == [0, 0]
