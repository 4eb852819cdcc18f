"""Non-negative least squares on trees: against SciPy's solver and a dense covariance; whole numbers that add up."""

import numpy as np
import pytest
from scipy.optimize import nnls

from dpviz.privacy.nonnegative_fit import NoisyStage, Root, fit_nonnegative, fit_unbiased, round_to_whole


def random_tree(rng):
    """A root, exact or noisy, and one to four stages with one to four children per node; inner stages are measured or not."""
    stages, above = [], 1
    height = int(rng.integers(1, 5))
    for stage in range(height):
        children = rng.integers(1, 5, above)
        above = int(children.sum())
        noisy = rng.normal(1, 3, above) if stage == height - 1 or rng.random() < 0.6 else None
        starts = np.cumsum(children) - children
        stages.append(NoisyStage(starts=starts, noisy=noisy, variance=float(rng.uniform(0.5, 4)), size=above))
    return Root(count=float(rng.integers(0, 20)), variance=float(rng.choice([0.0, 2.0]))), stages


def equations(root, stages):
    """The rows and right-hand sides of the least-squares problem in the leaves, each over its standard deviation."""
    matrix, rows, sides = np.eye(stages[-1].size), [], []
    for stage in stages[::-1]:
        if stage.noisy is not None:
            rows.append(matrix / np.sqrt(stage.variance))
            sides.append(stage.noisy / np.sqrt(stage.variance))
        matrix = np.add.reduceat(matrix, stage.starts, axis=0)
    weight = 1e5 if root.variance == 0 else 1 / np.sqrt(root.variance)
    return np.vstack([*rows, weight * matrix]), np.concatenate([*sides, [weight * root.count]])


def adds_up(stages, counts):
    return all(
        np.allclose(np.add.reduceat(below, stage.starts), above) for above, stage, below in zip(counts, stages, counts[1:], strict=False)
    )


def test_the_fit_is_the_minimum_that_a_general_solver_finds():
    rng = np.random.default_rng(0)
    for _ in range(300):
        root, stages = random_tree(rng)
        fitted = fit_nonnegative(root, stages)
        assert np.allclose(fitted[-1], nnls(*equations(root, stages), maxiter=10_000)[0], atol=1e-6)
        assert adds_up(stages, fitted)


def test_whole_counts_add_up_and_are_next_to_the_fit():
    rng = np.random.default_rng(1)
    for _ in range(200):
        root, stages = random_tree(rng)
        fitted = fit_nonnegative(root, stages, selected=bool(rng.random() < 0.5))
        whole = round_to_whole(stages, fitted)
        assert adds_up(stages, whole)
        assert min(counts.min() for counts in whole) >= 0
        assert all(np.abs(near - counts).max() <= 1 + 1e-6 for near, counts in zip(whole, fitted, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_unbiased_estimates_have_the_variance_of_the_dense_solution(seed):
    root, stages = random_tree(np.random.default_rng(seed))
    matrix, side = equations(root, stages)
    inverse = np.linalg.pinv(matrix)
    counts, variances = fit_unbiased(root, stages)
    assert np.allclose(counts[-1], inverse @ side, atol=1e-6)
    assert np.allclose(variances[-1], (inverse**2).sum(axis=1), atol=1e-6)


def test_sums_of_selected_nodes_are_trusted_less_where_they_miss_their_parents():
    rng = np.random.default_rng(2)
    parents, families = rng.normal(50, 1, 400), 400
    below = NoisyStage(starts=np.arange(families) * 2, noisy=np.repeat(parents / 2, 2) + 20, variance=1.0, size=2 * families)
    stages = [NoisyStage(starts=np.zeros(1, np.int64), noisy=parents, variance=1.0, size=families), below]
    root = Root(count=float(parents.sum()), variance=1e6)
    trusted, doubted = (fit_nonnegative(root, stages, selected=selected)[1] for selected in (False, True))
    assert np.abs(doubted - parents).max() < 1 < np.abs(trusted - parents).min()


def test_an_empty_tree_stays_empty():
    family = NoisyStage(starts=np.zeros(1, np.int64), noisy=np.array([3.0, -4.0, 2.0]), variance=1.0, size=3)
    assert fit_nonnegative(Root(count=0.0), [family])[1].tolist() == [0, 0, 0]
    assert round_to_whole([family], [np.zeros(1), np.zeros(3)])[1].tolist() == [0, 0, 0]
