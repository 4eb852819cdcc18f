"""Whole scores: rounding, sensitivities and the exact distributions of the choice."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.errors import SettingError
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.selection import GRAIN, LAWS, SENSITIVITY, Scores, _unit, bounded_scores, choice_step, choose, clipped_scores


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


def test_scaled_scores_are_floors_in_units_of_the_sensitivity():
    scores = Scores(error=(10, 7, 0), sensitivity=(3, 3, 9))
    assert scores.scaled() == [10 * GRAIN // 3, 7 * GRAIN // 3, 0]
    assert Fraction(GRAIN + 1, GRAIN) == SENSITIVITY
    assert Scores(error=(2**62,), sensitivity=(1,)).scaled() == [2**61]


def test_no_error_is_in_a_repr():
    found = bounded_scores(np.array([[7777.0]]), np.array([7777]), 7777.0, 8000.0, [7777.0])
    assert "7777" not in repr(found).split(" at ")[0]
    assert not any(character.isdigit() for character in repr(found).split(" at ")[0])


def test_clipped_scores_are_rho_times_the_clipped_relative_error_in_whole_units():
    errors, truth = np.array([[1.0, 30.0], [2.0, 0.5]]), np.array([4, 20])
    scores = clipped_scores(errors, truth, 8.0, 1.0, [3.0, 5.0], 2)
    assert scores.error == ((1 + 8) * GRAIN, math.floor(2 * GRAIN) + math.floor(0.5 / 20 * 8 * GRAIN))
    assert scores.sensitivity[0] == scores.sensitivity[1] == math.ceil((5 + 2) * GRAIN * (1 + 2**-44)) + 2 * 2


def test_scores_that_are_not_clipped_keep_a_sensitivity_of_their_own():
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
    scores, runs = Scores(error=(5, 9, 5, 30, 12), sensitivity=(2,) * 5), 2500
    step = choice_step("choice", Fraction(1, 2), law, bound, 5)
    wanted = law_of(scores.scaled(), Fraction(1, 2) / (2 * bound * (GRAIN + 1)), law)
    assert wanted.sum() == pytest.approx(1)
    found = np.bincount([choose(scores, step, bound, entropy) for entropy in Entropy.seeded(5).spawn(runs)], minlength=5) / runs
    assert np.abs(found - wanted).max() < 4.5 * np.sqrt(0.25 / runs)
    doubled = law_of(scores.scaled(), Fraction(1) / (2 * bound * (GRAIN + 1)), law)
    assert np.abs(found - doubled).max() > 4.5 * np.sqrt(0.25 / runs)


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
