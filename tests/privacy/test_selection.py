"""Permute-and-flip: its exact distribution, its exact privacy, and what it refuses."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

from dpviz.errors import BudgetError, InputError, SettingError
from dpviz.privacy import selection
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.selection import (
    GRAIN,
    LAWS,
    SENSITIVITY,
    Scores,
    _unit,
    bounded_scores,
    choice_step,
    choose,
    clipped_scores,
    permute_and_flip,
)
from tests.laws import permute_and_flip_law

CASES = [[0], [0, 0], [5, 3], [3, 5, 5], [0, -1, -2, -7], [1000, 998, 1], [2, 2, 2, 0, 1]]


def by_integral(scores: Sequence[int], rate: float) -> np.ndarray:
    """Probabilities by the docstring's integral, exactly for polynomials; only differences of scores count."""
    return _by_integral(tuple(max(scores) - score for score in scores), rate)


@cache
def _by_integral(gaps: tuple[int, ...], rate: float) -> np.ndarray:
    heads = [math.exp(-rate * gap) for gap in gaps]
    chance = []
    for own in range(len(gaps)):
        others = np.polynomial.Polynomial([1.0])
        for head in heads[:own] + heads[own + 1 :]:
            others *= np.polynomial.Polynomial([1.0, -head])
        chance.append(heads[own] * others.integ()(1.0))
    return np.array(chance)


@pytest.mark.parametrize("scores", CASES)
def test_the_integral_is_the_distribution_of_the_published_algorithm(scores):
    np.testing.assert_allclose(by_integral(scores, 0.35), permute_and_flip_law(scores, 0.35), atol=1e-12)


def test_many_nodes_in_one_call_each_follow_their_own_distribution():
    width, runs, rate = 5, 20_000, 0.35
    table = np.array([scores + [10**9] * (width - len(scores)) for scores in CASES])
    valid = np.array([[place < len(scores) for place in range(width)] for scores in CASES])
    node = np.arange(runs * len(CASES)) % len(CASES)
    chosen = permute_and_flip(table[node], valid[node], PureBudget(2 * 3 * Fraction(35, 100)), Entropy.seeded(1), sensitivity=3)
    for place, scores in enumerate(CASES):
        seen = np.bincount(chosen[node == place], minlength=width)
        law = permute_and_flip_law(scores, rate)
        assert seen[len(scores) :].sum() == 0
        likely = law * runs > 5
        assert seen[: len(scores)][~likely].sum() <= 5
        if likely.sum() > 1:
            expected = law[likely] / law[likely].sum() * seen[: len(scores)][likely].sum()
            assert stats.chisquare(seen[: len(scores)][likely], expected).pvalue > 1e-4
    off = drawn([5, 3, 0], 20_000, 0.7 * 1.3, 2)
    assert stats.chisquare(off, 20_000 * permute_and_flip_law([5, 3, 0], 0.35)).pvalue < 1e-6, "a rate that is 30 % off is noticed"


def drawn(scores: list[int], copies: int, budget, seed: int, valid: list[bool] | None = None) -> np.ndarray:
    """How often each candidate is chosen among copies of the same scores."""
    table = np.tile(scores, (copies, 1))
    among = np.tile(valid or [True] * len(scores), (copies, 1))
    return np.bincount(permute_and_flip(table, among, PureBudget(budget), Entropy.seeded(seed)), minlength=len(scores))


@pytest.mark.parametrize("sensitivity", [1, 2])
def test_no_neighbouring_scores_can_be_distinguished_by_more_than_epsilon_and_some_nearly_by_that(sensitivity):
    epsilon, worst = 1.3, 0.0
    rate = epsilon / (2 * sensitivity)
    for scores in product((0, 1, 5), repeat=3):
        law = np.log(by_integral(scores, rate))
        for move in product(range(-sensitivity, sensitivity + 1), repeat=3):
            moved = [score + change for score, change in zip(scores, move, strict=True)]
            worst = max(worst, np.abs(np.log(by_integral(moved, rate)) - law).max())
    assert 0.5 * epsilon < worst <= epsilon + 1e-12
    law, moved = by_integral([0, 8, 8], epsilon), by_integral([1, 7, 7], epsilon)
    assert np.abs(np.log(law) - np.log(moved)).max() > epsilon, "an exponent without the factor two would be caught"


def test_coins_that_floating_point_leaves_open_are_settled_exactly(monkeypatch):
    monkeypatch.setattr(selection, "_FLOAT_ERROR", 0.2)
    assert stats.chisquare(drawn([4, 3, 1], 4000, 0.8, 3), 4000 * permute_and_flip_law([4, 3, 1], 0.4)).pvalue > 1e-3


def test_far_scores_and_huge_budgets_give_the_best_and_no_nodes_give_no_choices():
    scores = np.array([[-(2**61), 2**61, 0], [7, 6, 7]])
    chosen = permute_and_flip(scores, np.ones((2, 3), bool), PureBudget(10**9), Entropy.seeded(4))
    assert chosen[0] == 1
    assert chosen[1] in (0, 2)
    assert permute_and_flip(scores[:0], np.ones((0, 3), bool), PureBudget(1), Entropy.seeded(6)).shape == (0,)


def test_tiny_budgets_choose_all_alike_and_never_what_is_no_candidate():
    seen = drawn([0, 10, 5, 99], 6000, "1e-12", 5, [True, True, True, False])
    assert seen[3] == 0
    assert stats.chisquare(seen[:3]).pvalue > 1e-4


def test_wrong_budgets_sensitivities_and_scores_are_refused():
    scores, valid = np.zeros((2, 2), np.int64), np.ones((2, 2), bool)
    with pytest.raises(BudgetError, match="PureBudget"):
        permute_and_flip(scores, valid, ZcdpBudget(1), Entropy.seeded(7))
    for sensitivity in (0, True, 1.5):
        with pytest.raises(BudgetError, match="sensitivity"):
            permute_and_flip(scores, valid, PureBudget(1), Entropy.seeded(7), sensitivity)
    with pytest.raises(InputError, match="candidate"):
        permute_and_flip(scores, np.array([[True, False], [False, False]]), PureBudget(1), Entropy.seeded(7))
    with pytest.raises(InputError, match="2\\*\\*61"):
        permute_and_flip(scores + 2**62, valid, PureBudget(1), Entropy.seeded(7))


def law_of(errors: list[int], rate: Fraction, law: str) -> np.ndarray:
    """The exact probabilities of choosing each candidate; by all outcomes of the coins for permute-and-flip."""
    heads = [math.exp(-(error - min(errors)) * rate) for error in errors]
    if law == LAWS[1]:
        return np.array(heads) / sum(heads)
    chosen = np.zeros(len(errors))
    for coins in product((0, 1), repeat=len(errors)):
        share = math.prod(p if coin else 1 - p for p, coin in zip(heads, coins, strict=True))
        if any(coins):
            chosen += share * np.array(coins) / sum(coins)
    return chosen


def test_scaled_scores_are_floors_in_units_of_the_sensitivity_and_no_error_is_in_a_repr():
    scores = Scores(error=(10, 7, 0), sensitivity=(3, 3, 9))
    assert scores.scaled() == [10 * GRAIN // 3, 7 * GRAIN // 3, 0]
    assert Fraction(GRAIN + 1, GRAIN) == SENSITIVITY
    assert Scores(error=(2**62,), sensitivity=(1,)).scaled() == [2**61]
    found = bounded_scores(np.array([[7777.0]]), np.array([7777]), 7777.0, 8000.0, [7777.0])
    assert not any(character.isdigit() for character in repr(found).split(" at ")[0])


def test_clipped_scores_are_rho_times_the_clipped_relative_error_and_others_keep_a_sensitivity_of_their_own():
    errors, truth = np.array([[1.0, 30.0], [2.0, 0.5]]), np.array([4, 20])
    scores = clipped_scores(errors, truth, 8.0, 1.0, [3.0, 5.0], 2)
    assert scores.error == ((1 + 8) * GRAIN, math.floor(2 * GRAIN) + math.floor(0.5 / 20 * 8 * GRAIN))
    assert scores.sensitivity[0] == scores.sensitivity[1] == math.ceil((5 + 2) * GRAIN * (1 + 2**-44)) + 2 * 2
    scores = bounded_scores(np.array([[16.0], [40.0]]), np.array([4]), 8.0, 50.0, [0.25, 0.5])
    assert scores.error == (16 * GRAIN, 40 * GRAIN)
    assert [sensitivity // GRAIN for sensitivity in scores.sensitivity] == [2, 4]


@pytest.mark.parametrize("largest", [1e-9, 0.3, 1.0, 2.0**28, 3e9, 2.0**53, 1e30])
def test_sums_of_the_largest_scores_fit_64_bits(largest):
    assert largest / _unit(largest) * 2**14 < 2**63
    assert _unit(largest) >= 2.0**-20


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bound", [1, 3])
def test_the_choice_follows_its_distribution(law, bound):
    scores, runs = Scores(error=(5, 9, 5, 30, 12), sensitivity=(2,) * 5), 2000
    step = choice_step("choice", Fraction(1, 2), law, bound, 5)
    wanted, doubled = (law_of(scores.scaled(), epsilon / (2 * bound * (GRAIN + 1)), law) for epsilon in (Fraction(1, 2), Fraction(1)))
    assert wanted.sum() == pytest.approx(1)
    found = np.bincount([choose(scores, step, bound, entropy) for entropy in Entropy.seeded(5).spawn(runs)], minlength=5) / runs
    assert np.abs(found - wanted).max() < 4.5 * np.sqrt(0.25 / runs) < np.abs(found - doubled).max()


@pytest.mark.parametrize("law", LAWS)
def test_no_change_within_the_sensitivity_is_worth_more_than_epsilon(law):
    epsilon, worst = Fraction(1), 0.0
    for one in product((0, 1, 2, 5), repeat=3):
        for step in product((-1, 0, 1), repeat=3):
            other = [max(a + b, 0) for a, b in zip(one, step, strict=True)]
            first, second = (law_of(list(errors), epsilon / 2, law) for errors in (one, other))
            worst = max(worst, np.abs(np.log(first / second)).max())
    assert 0.7 < worst <= 1 + 1e-12


def test_the_receipt_says_what_the_distribution_needs_and_other_distributions_are_refused():
    step = choice_step("size", Fraction(1, 5), LAWS[0], 2, 6)
    assert (step.sensitivity, step.scale, step.counts) == (2 * SENSITIVITY, 10 * SENSITIVITY, 6)
    with pytest.raises(SettingError, match="permute-and-flip"):
        choice_step("size", Fraction(1, 5), "best", 1, 6)


def test_huge_gaps_never_win_and_a_huge_budget_chooses_the_best():
    scores = Scores(error=(10**15, 3, 10**17), sensitivity=(1, 1, 1))
    for law in LAWS:
        step = choice_step("choice", Fraction(10**6), law, 1, 3)
        assert {choose(scores, step, 1, entropy) for entropy in Entropy.seeded(2).spawn(20)} == {1}
