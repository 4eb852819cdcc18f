"""Budgets over levels: the strategies, and the paper's bounds against counting by brute force."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.errors import BudgetError
from dpviz.privacy.allocation import (
    PUBLISHED,
    STAGE_STRATEGIES,
    STRATEGIES,
    balanced_shares,
    fitted_variance,
    level_weights,
    minimax_shares,
    stage_weights,
    worst_case_variance,
)
from dpviz.privacy.budget import GRAIN, PureBudget
from dpviz.privacy.nonnegative_fit import NoisyStage, Root, fit_unbiased
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree
from dpviz.space.tree import Tree
from tests.often import often

LATTICE = Domain(bounds=(0, 0, 1, 1), crs=None, order=5)


def most_nodes_touched(height):
    """The most nodes of each level that one range query on a quadtree can add up: Cormode et al., ICDE 2012, Lemma 2 (i)."""
    return 8 * 2 ** np.arange(height + 1)


@pytest.mark.parametrize("height", [1, 4, 10])
def test_uniform_gives_every_level_the_same(height):
    assert level_weights("uniform", height) == [1.0] * (height + 1)
    parts = PureBudget(height + 1).split(level_weights("uniform", height))
    assert all(abs(part - 1) <= Fraction((height + 1) ** 2, GRAIN) for part in parts)


@pytest.mark.parametrize(("fan_out", "ratio"), [(4, 2 ** (1 / 3)), (2, 2 ** (1 / 6)), (16, 4 ** (1 / 3))])
def test_geometric_grows_towards_the_leaves_by_the_sixth_root_of_the_fan_out(fan_out, ratio):
    weights = level_weights("geometric", 8, fan_out=fan_out)
    np.testing.assert_allclose(np.divide(weights[1:], weights[:-1]), ratio)


@pytest.mark.parametrize("gaussian", [False, True])
def test_geometric_gives_the_least_sum_of_variances_over_the_nodes_that_a_query_touches(gaussian):
    """With parts s of epsilon the variance is 1 / s**2, of rho 1 / s; every shift of a share from one level to another is worse."""
    weights = np.array(level_weights("geometric", 5, gaussian=gaussian))
    shares, nodes = weights / weights.sum(), 2.0 ** np.arange(6)

    def error(shares):
        return (nodes / shares ** (1 if gaussian else 2)).sum()

    moves = [0.01 * (np.eye(6)[a] - np.eye(6)[b]) for a in range(6) for b in range(6) if a != b]
    assert all(error(shares + move) > error(shares) for move in moves)


def test_leaf_puts_everything_on_the_leaves_and_custom_weights_are_taken_as_given():
    assert PureBudget("0.7").split(level_weights("leaf", 3)) == [0, 0, 0, Fraction("0.7")]
    for custom in ((0, 1, 3), (0.2, 0.3, 0.5), (1, 2, 4), (0.3333, 0.3333, 0.3334), (0.0, 0.0, 1.0)):
        assert level_weights("custom", 2, custom=custom) == list(custom)
    assert stage_weights("uniform", [4, 16, 64, 256]) == [1.0] * 4
    for custom in ((1.0, 3.0), (0.25, 0.75)):
        assert stage_weights("custom", [4, 16], custom=custom) == list(custom)


NOT_NUMBERS = (-1, float("nan"), float("inf"))
THREE_WRONG = [(), (1, 2), (1, 2, 3, 4), (0, 0, 0), *((1, wrong, 1) for wrong in NOT_NUMBERS)]
TWO_WRONG = [(), (1,), (1, 2, 3), (0, 1), (1, 0), (0, 0), (0.5, 0.6), *((wrong, 1) for wrong in NOT_NUMBERS)]


@pytest.mark.parametrize("custom", [*THREE_WRONG, (0.5, 0.2, 0.1), (0.5, 0.6, 0.1), (0.5, 1, 1.5)])
def test_custom_weights_that_do_not_fit_and_shares_that_do_not_add_up_are_refused(custom):
    with pytest.raises(BudgetError, match="add up to" if 0.5 in custom else r"[Cc]ustom"):
        level_weights("custom", 2, custom=custom)


@pytest.mark.parametrize("custom", TWO_WRONG)
def test_custom_weights_of_stages_that_do_not_fit_are_refused(custom):
    with pytest.raises(BudgetError, match=r"[Cc]ustom|add up to"):
        stage_weights("custom", [4, 16], custom=custom)


def test_an_unknown_strategy_is_refused_and_the_known_ones_named():
    with pytest.raises(BudgetError, match=", ".join(STRATEGIES)):
        level_weights("best", 2)
    with pytest.raises(BudgetError, match="uniform and the geometric"):
        worst_case_variance(3, 1.0, "leaf")
    with pytest.raises(BudgetError, match=", ".join(STAGE_STRATEGIES)):
        stage_weights("geometric", [4, 16])


def maximally_contained(tree: Tree, box: np.ndarray) -> np.ndarray:
    """(height + 1,) nodes per level, the whole domain first, that lie in a box while their parent does not."""
    west, south, east, north = tree.rectangles().T
    inside = (west >= box[0]) & (south >= box[1]) & (east <= box[2]) & (north <= box[3])
    alone = inside & ~np.concatenate([[False], inside[tree.parent[1:]]])
    return np.bincount(tree.depth[alone], minlength=tree.height + 1)


@pytest.mark.parametrize("height", [1, 2, 3, 5])
def test_no_box_contains_more_nodes_per_level_than_lemma_2_allows_and_one_cell_inside_the_domain_comes_near(height):
    tree, edges = quadtree(LATTICE, height), np.sort(np.random.default_rng(1).integers(0, 33, (150, 2, 2)), axis=1)
    boxes = np.concatenate([[[1, 1, 31, 31], [1, 0, 31, 32], [0, 0, 32, 32], [0, 0, 0, 0]], edges.reshape(150, 4)])
    found = np.array([maximally_contained(tree, box) for box in boxes])
    assert (found <= most_nodes_touched(height)).all()
    assert found.max() > 0
    if height == 5:
        assert found[0, -1] == 4 * (32 - 2) - 4
        assert found[0, -1] > most_nodes_touched(5)[-1] * 0.45


def geometric_epsilons(height: int, epsilon: float) -> np.ndarray:
    """Of each level, the whole domain first."""
    weights = np.array(level_weights("geometric", height))
    return epsilon * weights / weights.sum()


@pytest.mark.parametrize("height", [0, 1, 2, 5, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_worst_errors_are_twice_nodes_over_squared_epsilons_added_over_levels(height, epsilon):
    nodes = most_nodes_touched(height)
    assert worst_case_variance(height, epsilon, "uniform") == pytest.approx((2 * nodes / (epsilon / (height + 1)) ** 2).sum())
    assert worst_case_variance(height, epsilon, "geometric") == pytest.approx((2 * nodes / geometric_epsilons(height, epsilon) ** 2).sum())


def level_bounds(sizes: list[int], rho: np.ndarray) -> float:
    """Sum over the geographic levels of twice the largest noise of all stages down to each, up to a constant."""
    noise = np.sqrt(np.log(2 * np.array(sizes)) / rho)
    return sum(noise[: len(sizes) - above].sum() for above in range(0, len(sizes), 2))


SIZES = {"two levels": [3, 9, 27, 81], "uneven": [50, 2500, 160_000, 10_240_000], "total first": [1, 3, 9, 90, 900], "one level": [4, 16]}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_no_other_split_over_stages_has_a_smaller_sum_of_bounds_than_levels(sizes):
    rng, weights = np.random.default_rng(3), np.array(stage_weights("levels", sizes))
    best = level_bounds(sizes, weights / weights.sum())
    for spread in (0.01, 0.1, 1.0):
        for _ in range(100):
            other = weights * np.exp(rng.normal(0, spread, len(sizes)))
            assert level_bounds(sizes, other / other.sum()) >= best * (1 - 1e-12)
    assert best <= level_bounds(sizes, np.full(len(sizes), 1 / len(sizes)))


@pytest.mark.parametrize("height", [1, 2, 3, 8])
@pytest.mark.parametrize("published", PUBLISHED, ids=lambda each: each.title)
def test_a_published_split_keeps_its_total_and_its_order_on_any_tree(published, height):
    weights = published.weights(height)
    assert len(weights) == height + 1
    assert sum(weights) == pytest.approx(sum(published.parts))
    if height + 1 >= len(published.parts):
        assert [weight for weight in weights if weight] == list(published.parts)


FANS = ([4, 4, 8, 8], [50, 50], [1, 1, 5, 5], [3, 3, 1, 1], [2] * 14, [12, 12, 9, 9, 8.3, 8.3])


@pytest.mark.parametrize("fan", often(FANS, 4))
@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("pruned", [False, True])
def test_shares_add_up_and_every_level_has_one(fan, root, between, pruned):
    shares = np.array(minimax_shares(fan, root=root, between=between, pruned=pruned))
    assert shares.sum() == pytest.approx(1)
    assert (shares[2::2] > 0).all()
    assert (shares[0] > 0) == root
    assert (shares[1:-2:2] > 0).all() == (between or len(fan) == 2)
    assert (shares[-2] > 0) == (between or (pruned and len(fan) > 2))


def test_no_other_split_of_two_levels_has_a_smaller_largest_ratio():
    fan = np.array([4.0, 4, 8, 8])
    top_down = 3 / 4 * 4 + (3 / 4 * 4) / 16  # of the pairs of the first level, four stages with a quarter each
    reference, weight = np.array([top_down, 1.0]), np.array([1, 1.07])

    def largest(leaf):
        variance = fitted_variance(fan, np.array([0, 0, 1 - leaf, 0, leaf]), root=False)[[2, 4]]
        return (np.sqrt(variance / reference) * weight).max()

    chosen = minimax_shares(fan, root=False, between=False, pruned=False)[-1]
    assert largest(chosen) <= min(largest(leaf) for leaf in np.linspace(0.02, 0.98, 49)) * 1.01


@pytest.mark.parametrize("root", [False, True])
def test_the_variance_of_a_regular_tree_is_that_of_the_fit(root):
    fan, weight, size, stages = [3, 2, 4], np.array([0.5, 0.7, 0.0, 1.5]), 1, []
    for stage, children in enumerate(fan, start=1):
        starts = np.arange(size) * children
        size *= children
        noisy = np.zeros(size) if weight[stage] else None
        stages.append(NoisyStage(starts=starts, noisy=noisy, variance=1 / weight[stage] if weight[stage] else 0.0, size=size))
    _, variances = fit_unbiased(Root(count=0.0, variance=1 / weight[0] if root else 0.0), stages)
    found = fitted_variance(np.array(fan, float), weight if root else weight * [0, 1, 1, 1], root=root)
    assert [float(at[0]) for at in variances] == pytest.approx(found.tolist())


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("sizes", [(1, 12, 108, 1608), (12, 108, 1608), (1, 4, 24), (1, 51, 3162), (1, 5, 10, 50), (1, 3, 9, 27, 81)])
def test_balanced_shares_are_the_best_of_all_sets_of_levels(sizes, gaussian):
    def log_spread(shares):
        fan = np.array(sizes) / np.array((1, *sizes[:-1]))
        variance = fitted_variance(fan, np.concatenate([[0.0], shares if gaussian else shares**2]), root=True)[1:]
        return np.array([0.5] * (len(sizes) - 1) + [2]) @ np.log(variance) / 2

    shares = np.array(balanced_shares(sizes, gaussian=gaussian))
    assert shares.sum() == pytest.approx(1)
    rng = np.random.default_rng(1)
    for levels in product([False, True], repeat=len(sizes) - 1):
        others = rng.dirichlet(np.ones(len(sizes)), 200) ** 2 * [*levels, True]
        assert log_spread(shares) <= min(log_spread(each / each.sum()) for each in others) + 1e-4
