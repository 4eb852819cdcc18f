"""The noise that a mechanism says it would put on a tree is the noise that it puts there; so are the levels of its parts of the budget."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.errors import BudgetError
from dpviz.mechanisms import AdaptiveGrid, Dawa, HilbertTree, Identity, Kdtree, PathTree, PrivTree, Quadtree, UniformGrid
from dpviz.mechanisms.run import level_variances
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree
from tests.mechanisms.test_contract import DEFAULTS, DELTA, VARIANTS, points_of, released

SPLIT = {"split": "custom", "weights": (2.0, 0.0, 1.0, 5.0)}
MORE = {
    "quadtree, fan-out 16": Quadtree(fan_out=16),
    "quadtree, a split": Quadtree(height=3, **SPLIT),
    "quadtree, no total": Quadtree(count_root=False),
    "quadtree as measured": Quadtree(least_squares=False, shrink_small=True, fill="interpolated"),
    "quadtree, all on the total": Quadtree(height=3, split="custom", weights=(1.0, 0.0, 0.0, 0.0)),
    "kdtree, a split": Kdtree(height=3, median_share=0.7, **SPLIT),
    "kdtree, deep": Kdtree(height=24),
    "dawa, a split": Dawa(structure_share=0.2, split="custom", weights=(2.0, 0.0, 1.0, 5.0, 0.0, 0.0, 0.0)),
    "hilbert_tree, a split": HilbertTree(height=3, **SPLIT),
    "hilbert_tree in halves": HilbertTree(fan_out=2),
    "uniform_grid, a size": UniformGrid(side=13),
    "uniform_grid, a declared number": UniformGrid(declared_total=400),
    "identity, small cells zeroed": Identity(threshold=True),
    "privtree, a split": PrivTree(structure_share=0.2),
    "path_tree, skipping": PathTree(tau=0.5, big=1.0),
}
SAY = {"quadtree", "kdtree", "hilbert_tree", "uniform_grid", "identity", "privtree", "path_tree", "dawa"}


def said(mechanism, release):
    return mechanism.count_variances(release, release.receipt.total)


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("mechanism", [pytest.param(made, id=name) for name, made in (DEFAULTS | VARIANTS | MORE).items()])
def test_they_are_those_of_a_release(mechanism, contributions):
    release = released(mechanism, replace(points_of(400), contributions=contributions), 0.7, Entropy.seeded(5))
    variance = said(mechanism, release)
    if mechanism.key not in SAY:
        assert variance is None
    else:
        measured = ~np.isnan(release.noisy)
        np.testing.assert_allclose(variance, np.where(measured, release.noise_variance, np.inf), rtol=1e-12)


@pytest.mark.parametrize("mechanism", [Quadtree(height=4), Kdtree(height=4), HilbertTree(height=4)])
def test_another_split_or_budget_gives_other_variances(mechanism):
    release = released(mechanism, points_of(400), 0.7, Entropy.seeded(5))
    number, variance = len(mechanism.shares(release.domain)), said(mechanism, release)
    for changed in (said(mechanism.with_shares([1] * number), release), said(mechanism, replace_total(release, 0.71))):
        assert (np.abs(changed / variance - 1) > 0.01).any()


def replace_total(release, epsilon):
    return replace(release, receipt=replace(release.receipt, total=PureBudget(epsilon)))


def test_nothing_is_said_of_trees_that_end_elsewhere():
    release = released(Quadtree(height=3), points_of(400), 1, Entropy.seeded(5))
    assert said(Quadtree(height=3, prune=2.0), release) is None
    assert said(Kdtree(height=3, prune=2.0), release) is None
    assert said(Quadtree(height=4), release) is None, "it would go on below"
    assert np.isinf(said(Quadtree(height=2), release)[21:]).all(), "it would end above"


def test_a_budget_of_another_kind_is_refused():
    release = released(Quadtree(height=3), points_of(10), 1, Entropy.seeded(5))
    for mechanism in (Kdtree(), PrivTree(), PathTree()):
        with pytest.raises(BudgetError, match="the help page on mechanisms says which take rho"):
            mechanism.count_variances(release, ZcdpBudget(1))
    for mechanism in (Quadtree(), UniformGrid(), Identity()):
        with pytest.raises(BudgetError, match="delta greater than 0"):
            mechanism.count_variances(release, ApproxBudget(1, 0))
    smooth = Kdtree(variant="smooth-sensitivity", height=3)
    assert np.isfinite(smooth.count_variances(release, ApproxBudget(1, DELTA))).all()
    with pytest.raises(BudgetError):
        smooth.count_variances(release, PureBudget(1))


def test_a_depth_without_budget_is_not_measured():
    tree = quadtree(Domain(bounds=(0, 0, 4, 4), crs=None, order=2), 2)
    split = PureBudget(1).split([1, 0, 1])
    assert np.isinf(level_variances(tree, split, Sensitivity(contributions=1))).tolist() == [False] + [True] * 4 + [False] * 16


@pytest.mark.parametrize(
    ("mechanism", "levels"),
    [
        (Quadtree(height=3), [0, 1, 2, 3]),
        (Quadtree(height=9, fan_out=16), [0, 2, 4, 5]),
        (Kdtree(height=3), [None, 0, 1, 2, 3]),
        (Kdtree(height=3, variant="cell"), [None, 0, 1, 2, 3]),
        (Kdtree(height=3, fan_out=2), [None, 0, None, 1, None]),
        (HilbertTree(height=2), [None, 0, 1, 2]),
        (UniformGrid(), [None, None]),
        (AdaptiveGrid(), [None, None, None]),
        (Identity(), [None]),
        (PathTree(), [1, 2, 3, 4, 5]),
    ],
)
def test_parts_know_the_zoom_level_of_their_counts(mechanism, levels):
    assert [part.level for part in mechanism.shares(points_of(10, 5).domain)] == levels
