"""The exact cost of discrete Gaussian noise: never below the sums that define it, and close to them."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_discrete_gaussian_mechanism
from scipy.stats import norm

from dpviz.errors import BudgetError
from dpviz.mechanisms import FittedTree, FlatGaussian, TopDown, run
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.exact_accounting import certified_delta, find_exact_rho
from dpviz.privacy.noise import discrete_gaussian
from tests.often import often
from tests.trip_cases import trips_of

ONE_STAGE = [([Fraction(1, 4)], 12), ([Fraction(3, 10)], 10), ([Fraction(2)], 4), ([Fraction(200)], "1/2"), ([Fraction(10**4)], "1/20")]
TWO_STAGES = [([Fraction(2), Fraction(8)], 3), ([Fraction(1, 2), Fraction(7, 10)], 8), ([Fraction(50), Fraction(80)], "4/5")]


def summed_delta(variances, epsilon, changes):
    """The sum that defines delta, over all noise values within 12 standard deviations."""
    mass, loss = np.ones(1), np.zeros(1)
    for variance in map(float, variances):
        reach = int(12 * math.sqrt(variance)) + 12
        values = np.arange(-reach, reach + 1.0)
        density = np.exp(-(values**2) / (2 * variance))
        single = total = density / density.sum()
        for _ in range(changes - 1):
            total = np.convolve(total, single)
        sums = np.arange(-changes * reach, changes * reach + 1.0)
        mass = np.multiply.outer(mass, total).ravel()
        loss = np.add.outer(loss, (2 * sums + changes) / (2 * variance)).ravel()
    above = loss > epsilon
    return float((mass[above] * -np.expm1(epsilon - loss[above])).sum())


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize(("variances", "epsilon"), ONE_STAGE + TWO_STAGES)
def test_the_bound_is_above_the_sum_and_within_three_thousandths(variances, epsilon, changes):
    found, expected = certified_delta(variances, Fraction(epsilon), changes), summed_delta(variances, float(Fraction(epsilon)), changes)
    assert expected * (1 - 1e-12) <= found <= expected * 1.003 + 1e-25


@pytest.mark.parametrize("changes", [3, 4, 9])
@pytest.mark.parametrize(("variance", "epsilon"), [("1/2", 9), ("4", 3), ("60", "4/5"), ("4000", "1/8")])
def test_of_many_changes_the_bound_is_above_the_sum_and_within_a_hundredth(variance, epsilon, changes):
    """Where a unit changes many numbers by one each, as in a wavelet, every loss is put on the grid by itself."""
    variances, epsilon = [Fraction(variance)], Fraction(epsilon)
    found, expected = certified_delta(variances, epsilon, changes), summed_delta(variances, float(epsilon), changes)
    assert expected * (1 - 1e-12) <= found <= expected * 1.01 + 1e-25


@pytest.mark.parametrize(("epsilon", "delta"), often([("1", "1e-6"), ("0.1", "1e-6"), ("5", "1e-9")], 1))
def test_many_changes_together_cost_nearly_what_one_continuous_gaussian_does(epsilon, delta):
    """121 shifts by one, of a wavelet of order 10: as one shift by 11. Continuous noise has a delta in closed form (Balle, Wang, 2018)."""
    budget, changes = ApproxBudget(epsilon, delta), 121
    rho = find_exact_rho(budget, [Fraction(1)], changes).rho

    def continuous(shift):
        apart = float(budget.epsilon) / shift
        return norm.cdf(shift / 2 - apart) - math.exp(budget.epsilon) * norm.cdf(-shift / 2 - apart)

    assert float(budget.delta) * 0.97 <= continuous(math.sqrt(2 * rho)) <= float(budget.delta)
    assert certified_delta([changes / (2 * rho)], budget.epsilon, changes) <= float(budget.delta)


@pytest.mark.parametrize(("epsilon", "most"), [("0.1", 0.942), ("1", 0.949), ("10", 0.961)])
def test_the_noise_is_smaller_than_that_of_the_tight_conversion(epsilon, most):
    budget = ApproxBudget(epsilon, "1e-8")
    for shares in ([Fraction(1, 5), Fraction(4, 5)], [Fraction(1, 6)] * 6):
        rho = find_exact_rho(budget, shares, 2).rho
        assert math.sqrt(budget.to_zcdp().rho / rho) <= most
        assert budget.delta * Fraction(98, 100) <= certified_delta([2 / (2 * rho * share) for share in shares], budget.epsilon, 2)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.01", "1e-3"), ("3", "1e-12"), ("50", "1e-8"), ("1000", "1e-8"), ("1e6", "1e-6"), ("1/2", "0.9")]
)
@pytest.mark.parametrize("changes", [1, 2])
def test_what_is_granted_keeps_delta_and_a_hundredth_more_would_not(epsilon, delta, changes):
    budget, shares = ApproxBudget(epsilon, delta), [Fraction(1, 3), Fraction(0), Fraction(2, 3)]
    rho = find_exact_rho(budget, shares, changes).rho

    def delta_at(factor):
        return certified_delta([changes / (2 * factor * rho * share) for share in shares if share], budget.epsilon, changes)

    assert delta_at(1) <= float(budget.delta) < delta_at(Fraction(101, 100))


def test_more_epsilon_costs_less_and_another_stage_costs_more():
    one, two = [Fraction(9)], [Fraction(9), Fraction(90)]
    bounds = [certified_delta(one, Fraction(epsilon, 2), 2) for epsilon in range(1, 9)]
    assert bounds == sorted(bounds, reverse=True)
    assert all(certified_delta(two, Fraction(epsilon, 2), 2) > bound for epsilon, bound in enumerate(bounds, start=1))


def test_noise_that_is_too_large_for_it_and_a_delta_too_small_are_left_to_the_tight_conversion():
    assert find_exact_rho(ApproxBudget("1e-5", "1e-8"), [Fraction(1)], 2) is None
    assert find_exact_rho(ApproxBudget(1, "1e-300"), [Fraction(1)], 2) is None


@pytest.mark.parametrize("variances", [[], [Fraction(0)], [Fraction(1), Fraction(-1)]])
def test_stages_without_noise_are_refused(variances):
    with pytest.raises(BudgetError, match="variance above 0"):
        certified_delta(variances, Fraction(1), 2)


@pytest.mark.parametrize(("variances", "epsilon"), often([([400, 900, 100], 0.5), ([2, 8], 3), ([50, 80], 0.8)], 1))
def test_dp_accounting_finds_the_same_delta(variances, epsilon):
    """Google's library composes the same distributions on a coarser grid; its bound is from above, too."""
    losses = [from_discrete_gaussian_mechanism(math.sqrt(v), value_discretization_interval=1e-5) for v in variances for _ in range(2)]
    theirs = reduce(lambda one, other: one.compose(other), losses).get_delta_for_epsilon(epsilon)
    ours = certified_delta([Fraction(variance) for variance in variances], Fraction(epsilon), 2)
    assert ours == pytest.approx(theirs, rel=4e-3)


@pytest.mark.parametrize("mechanism", [FittedTree(), TopDown(accounting="exact"), FlatGaussian(accounting="exact")], ids=lambda m: m.key)
@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
def test_from_epsilon_and_delta_to_the_noise_of_a_release(mechanism, neighbours, monkeypatch):
    """The scales of the noise that is drawn, not only those of the receipt, cost at most delta, and nearly all of it."""
    drawn = []

    def record(true, budget, entropy, squared_sensitivity):
        drawn.append(squared_sensitivity / (2 * budget.rho))
        return discrete_gaussian(true, budget, entropy, squared_sensitivity)

    monkeypatch.setattr(run, "discrete_gaussian", record)
    budget = ApproxBudget(2, "1e-4")
    receipt = replace(mechanism, neighbours=neighbours).release(trips_of(500, 1), budget, Entropy.seeded(1)).receipt
    variances = sorted(set(drawn)) if mechanism.key == "flat_gaussian" else drawn
    assert sorted(variances) == sorted(step.scale for step in receipt.steps)
    true = summed_delta(variances, 2.0, 2 if neighbours == "bounded" else 1)
    assert 0.98e-4 < true <= 1e-4
    assert receipt.spent == budget
