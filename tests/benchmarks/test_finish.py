"""What each part of the finish of the path-budget tree is worth, and what spreading negative counts does to other trees of points."""

from functools import cache, partial
from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import AdaptiveGrid, HilbertTree, Htf, Kdtree, PathTree, PointMechanism, PrivTree, Quadtree
from dpviz.privacy import nonnegative_counts
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from tests.benchmarks.measures import best
from tests.mechanisms.test_published import case
from tests.strategies import dense

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

DEVIATIONS, EPSILONS, SEEDS = (20, 50, 100), (0.1, 0.5, 1.0), 5
PARTS = {
    "zeroing": PathTree(shrink_small=False),
    "spreading negative counts": PathTree(negative="keep"),
    "log-linear (limited slopes)": PathTree(fill="interpolated"),
    "interpolation": PathTree(fill="uniform"),
    "zeroing and spreading": PathTree(shrink_small=False, negative="keep"),
}
INNER = (
    ("stronger zeroing of leaves far from others", "find_far_leaves", lambda tree, count, variance: np.zeros(len(tree), np.bool_)),
    ("drawing quarters to the interpolation", "_is_quartered", lambda tree: False),
)
OTHERS = (Quadtree, PrivTree, Htf, AdaptiveGrid, Kdtree, HilbertTree)


@cache
def figures(mechanism: PointMechanism, epsilons: tuple[float, ...] = EPSILONS) -> np.ndarray:
    """(cases, 2) n3 and mae, averaged over seeds."""
    rows = []
    for deviation, epsilon in product(DEVIATIONS, epsilons):
        points, boxes, truth = case(deviation)
        least, found = points.count.sum() / 1000, []
        for entropy in Entropy.seeded(2026).spawn(SEEDS):
            error = np.abs(mechanism.release(points, PureBudget(epsilon), entropy).answer(boxes) - truth)
            found.append((100 * (error / np.maximum(truth, least)).mean(), error.mean()))
        rows.append(np.mean(found, axis=0))
    return np.array(rows)


def ratio(mechanism: PointMechanism, other: PointMechanism, epsilons: tuple[float, ...] = EPSILONS) -> np.ndarray:
    """Geometric means of n3 and mae of one over the other."""
    return np.exp(np.log(figures(mechanism, epsilons) / figures(other, epsilons)).mean(axis=0))


def test_the_parts_of_the_finish_left_out_one_by_one(monkeypatch):
    table = {name: ratio(mechanism, PathTree()) for name, mechanism in PARTS.items()}
    for name, attribute, without in INNER:
        with monkeypatch.context() as patch:
            patch.setattr(nonnegative_counts, attribute, without)
            table[name] = np.exp(np.log(figures.__wrapped__(PathTree()) / figures(PathTree())).mean(axis=0))
    print("\nPath-budget tree, n3 and mae over those of the whole finish, without")
    for name, (n3, mae) in table.items():
        print(f"{name:44} {n3:6.3f} {mae:6.3f}")
    assert min(n3 * mae for n3, mae in table.values()) >= 0.98


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.key)
def test_what_spreading_does_to_other_trees(row):
    kept, spread = row(), row(negative="spread")
    n3, mae = ratio(spread, kept, (0.5,))
    print(f"\n{row.key:16} spread over kept: n3 {n3:6.3f}, mae {mae:6.3f}")


@pytest.mark.parametrize("side", [256, 1024])
def test_how_long_a_release_takes(side):
    step, forms = 1024 // side, {"the whole finish": PathTree(), **{f"without {name}": form for name, form in PARTS.items()}}
    points = PointCounts.from_matrix(dense(case(50)[0]).reshape(side, step, side, step).sum(axis=(1, 3)))
    print(f"\nPath-budget tree on {side} x {side} cells:")
    for name, form in forms.items():
        print(f"{name:44} {best(partial(form.release, points, PureBudget(1), Entropy.seeded(1)), 3):6.3f} s")
