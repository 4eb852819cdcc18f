"""Bounds of games are exact, and a mechanism with too little noise is seen to pass them."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from dpviz.errors import SettingError
from dpviz.evaluation.attacks.game import (
    Success,
    count_wins,
    gaussian_log_odds,
    guess_bound,
    guess_success,
    membership_bound,
    membership_log_odds,
    membership_success,
)
from dpviz.lessons.one_person import GAUSSIAN, LAPLACE, Noise
from dpviz.lessons.success import play_noisy
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace


def best_success(cells, epsilon, delta, neighbours):
    """The largest success of any mechanism that says a cell, by a linear program over all such mechanisms: the last input is nobody."""
    inputs = cells + (neighbours == ADD_REMOVE)
    pairs = [(one, other) for one, other in itertools.permutations(range(inputs), 2) if neighbours == BOUNDED or cells in (one, other)]
    events = [event for size in range(1, cells) for event in itertools.combinations(range(cells), size)]
    rows = np.zeros((len(pairs) * len(events), inputs, cells))
    for row, ((one, other), event) in zip(rows, itertools.product(pairs, events), strict=True):
        row[one, event], row[other, event] = 1, -math.exp(epsilon)
    gain = np.zeros((inputs, cells))
    gain[range(cells), range(cells)] = 1 / cells
    sums = np.kron(np.eye(inputs), np.ones(cells))
    found = linprog(-gain.ravel(), A_ub=rows.reshape(len(rows), -1), b_ub=np.full(len(rows), delta), A_eq=sums, b_eq=np.ones(inputs))
    return -found.fun


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, BOUNDED])
@pytest.mark.parametrize(("cells", "epsilon", "delta"), [(2, 0.5, 0), (2, 2.0, 0.05), (3, 0.1, 0), (4, 1.0, 0.02), (4, 3.0, 0)])
def test_no_mechanism_wins_more_and_one_wins_as_often(cells, epsilon, delta, neighbours):
    assert guess_bound(cells, epsilon, delta, neighbours=neighbours) == pytest.approx(best_success(cells, epsilon, delta, neighbours))


def test_bounds_of_membership_are_the_formula_and_group_privacy_is_never_tighter():
    for epsilon, delta in itertools.product((0, 0.1, 1, 5, 800), (0, 1e-6, 0.1)):
        growth = math.exp(min(epsilon, 700))
        assert membership_bound(epsilon, delta) == pytest.approx((1 + (growth - 1 + 2 * delta) / (growth + 1)) / 2)
        for cells in (2, 5, 64):
            assert guess_bound(cells, epsilon) <= guess_bound(cells, 2 * epsilon, neighbours=BOUNDED) + 1e-12
            assert guess_bound(cells, 0) == pytest.approx(1 / cells)
    for wrong in ((1, 1, 0), (2, -1, 0), (2, math.nan, 0), (2, 1, 2)):
        with pytest.raises(SettingError, match="at least 2 cells"):
            guess_bound(*wrong)


def test_intervals_are_those_of_clopper_and_pearson():
    for wins, games in ((0, 100), (37, 100), (100, 100)):
        exact = stats.binomtest(wins, games).proportion_ci(0.95, method="exact")
        assert Success(wins=wins, games=games).interval() == pytest.approx((exact.low, exact.high))
    assert Success(wins=60, games=100).keeps(0.71)
    assert not Success(wins=60, games=100).keeps(0.69)


def test_log_odds_are_ratios_of_exact_probabilities():
    noisy = np.arange(-6, 9)
    for shift in (1, 3):
        ratio = [Noise(kind=LAPLACE, epsilon=0.9 / shift).probabilities(noisy - more) for more in (shift, 0)]
        assert membership_log_odds(noisy[:, None], np.array([0]), [0.9], shift) == pytest.approx(np.log(ratio[0] / ratio[1]))
    noise = Noise(kind=GAUSSIAN, epsilon=0.9)
    ratio = [noise.probabilities(noisy - more) for more in (1, 0)]
    assert gaussian_log_odds(noisy[:, None], np.array([0]), [noise.variance]) == pytest.approx(np.log(ratio[0] / ratio[1]))


def best_on_counts(inputs, rates):
    """The exact success of the best guess of the input, all equally likely, by enumerating counts with noise: one input per row."""
    reach = np.arange(-25, 27)
    laws = [[math.tanh(rate / 2) * np.exp(-rate * np.abs(reach - true)) for true, rate in zip(row, rates, strict=True)] for row in inputs]
    return float(np.max([functools.reduce(np.multiply.outer, law) for law in laws], axis=0).sum() / len(inputs))


def test_exact_successes_are_those_of_all_possible_counts_and_keep_the_bound_which_one_count_attains():
    for rates in ([1.3], [2.0, 1.0], [1.0, 2.5, 1.2]):
        assert membership_success(rates) == pytest.approx(best_on_counts([[1] * len(rates), [0] * len(rates)], rates), abs=1e-8)
        assert membership_success(rates) <= membership_bound(sum(rates)) + 1e-12
    for cells, epsilon in itertools.product((2, 3), (1.0, 2.0)):
        assert guess_success(cells, cells, epsilon) == pytest.approx(best_on_counts(np.eye(cells), [epsilon] * cells), abs=1e-8)
    shared = best_on_counts([[1, 0], [1, 0], [0, 1]], [1.0, 1.0])
    assert guess_success(3, 2, 1.0) == pytest.approx(shared, abs=1e-8)
    for epsilon in (0, 0.1, 1, 5, 800):
        assert membership_success([epsilon]) == pytest.approx(membership_bound(epsilon), rel=1e-12)
        assert all(guess_success(cells, cells, epsilon) <= guess_bound(cells, epsilon) + 1e-12 for cells in (2, 8, 64))
    for wrong in (lambda: membership_success([0.1] * 21), lambda: membership_success([-1]), lambda: guess_success(2, 3, 1)):
        with pytest.raises(SettingError, match="Exact success"):
            wrong()


def play(epsilon, spent, games=20_000):
    truth = np.random.default_rng(1).integers(0, 2, games).astype(np.bool_)
    noisy = discrete_laplace(truth.astype(np.int64), PureBudget(spent), Entropy.seeded(2))
    return count_wins(membership_log_odds(noisy[:, None], np.array([0]), [epsilon]) >= 0, truth)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_one_noisy_count_attains_the_bound_and_too_little_noise_passes_it(epsilon):
    low, high = play(epsilon, epsilon).interval(1 - 1e-6)
    assert low <= membership_bound(epsilon) <= high
    assert play(epsilon, 2 * epsilon).passes(membership_bound(epsilon))


def test_a_budget_shared_by_tables_keeps_the_bound_and_one_spent_on_each_passes_it():
    others = np.tile(np.array([3, 40, 11]), (20_000, 1))
    assert play_noisy(others, 1.0, 1).keeps(membership_bound(1.0))
    assert play_noisy(others, 3.0, 1).passes(membership_bound(1.0))


def test_gaussian_noise_keeps_the_bound_with_its_delta():
    budget, truth = ApproxBudget(1, "1e-6"), np.random.default_rng(3).integers(0, 2, 20_000).astype(np.bool_)
    noisy = discrete_gaussian(truth.astype(np.int64), budget.to_zcdp(), Entropy.seeded(4))
    said = gaussian_log_odds(noisy[:, None], np.array([0]), [float(1 / (2 * budget.to_zcdp().rho))]) >= 0
    assert count_wins(said, truth).keeps(membership_bound(1, 1e-6))
