"""Permute-and-flip: its exact distribution, its exact privacy, and what it refuses."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

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
from tests.laws import SEEDED, by_integral, p_of_counts, permute_and_flip_law

CASES = [[0], [0, 0], [5, 3], [3, 5, 5], [0, -1, -2, -7], [1000, 998, 1], [2, 2, 2, 0, 1]]


@pytest.mark.parametrize("scores", CASES)
def test_the_integral_is_the_distribution_of_the_published_algorithm(scores):
    np.testing.assert_allclose(by_integral(scores, 0.35), permute_and_flip_law(scores, 0.35), atol=1e-12)


def test_many_nodes_in_one_call_each_follow_their_own_distribution():
    width, copies, rate = 5, 20_000, 0.35
    table = np.array([scores + [10**9] * (width - len(scores)) for scores in CASES])
    valid = np.array([[place < len(scores) for place in range(width)] for scores in CASES])
    budget = PureBudget(2 * 3 * Fraction(35, 100))
    chosen = permute_and_flip(np.tile(table, (copies, 1)), np.tile(valid, (copies, 1)), budget, Entropy.seeded(1), sensitivity=3)
    for own, scores in zip(chosen.reshape(copies, -1).T, CASES, strict=True):
        assert own.max() < len(scores)
        assert p_of_counts(np.bincount(own, minlength=len(scores)), permute_and_flip_law(scores, rate)) > SEEDED
    off = drawn([5, 3, 0], copies, 0.7 * 1.3, 2)
    assert p_of_counts(off, permute_and_flip_law([5, 3, 0], rate)) < SEEDED, "a rate that is 30 % off is noticed"


def drawn(scores: list[int], copies: int, budget, seed: int, valid: list[bool] | None = None) -> np.ndarray:
    """How often each candidate is chosen among copies of the same scores."""
    table = np.tile(scores, (copies, 1))
    among = np.tile(valid or [True] * len(scores), (copies, 1))
    return np.bincount(permute_and_flip(table, among, PureBudget(budget), Entropy.seeded(seed)), minlength=len(scores))


def test_coins_that_floating_point_leaves_open_are_settled_exactly(monkeypatch):
    monkeypatch.setattr(selection, "_FLOAT_ERROR", 0.2)
    assert p_of_counts(drawn([4, 3, 1], 4000, 0.8, 3), permute_and_flip_law([4, 3, 1], 0.4)) > SEEDED


def test_tiny_budgets_choose_all_alike_never_what_is_no_candidate_and_huge_ones_the_best():
    seen = drawn([0, 10, 5, 99], 6000, "1e-12", 5, [True, True, True, False])
    assert seen[3] == 0
    assert p_of_counts(seen[:3], np.full(3, 1 / 3)) > SEEDED
    assert drawn([-(2**61), 2**61, 0], 100, 10**9, 4).tolist() == [0, 100, 0]
    assert drawn([0], 0, 1, 6).tolist() == [0]


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


def law_of(errors: Sequence[int], rate: Fraction, law: str) -> np.ndarray:
    """The exact probabilities of choosing each candidate."""
    if law == LAWS[0]:
        return permute_and_flip_law([-error for error in errors], float(rate))
    heads = np.exp([-(error - min(errors)) * float(rate) for error in errors])
    return heads / heads.sum()


def test_scaled_scores_are_floors_in_units_of_the_sensitivity_and_no_error_is_in_a_repr():
    assert Scores(error=(10, 7, 0), sensitivity=(3, 3, 9)).scaled() == [10 * GRAIN // 3, 7 * GRAIN // 3, 0]
    assert Scores(error=(2**62,), sensitivity=(1,)).scaled() == [2**61]
    assert Fraction(GRAIN + 1, GRAIN) == SENSITIVITY
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
@pytest.mark.parametrize("sensitivity", [1, 2])
def test_no_change_within_the_sensitivity_is_worth_more_than_epsilon_and_some_nearly_that(law, sensitivity):
    epsilon, worst, changes = 1.3, 0.0, range(-sensitivity, sensitivity + 1)
    for one in product((0, 1, 2, 5), repeat=3):
        for step in product(changes, repeat=3):
            other = [error + change for error, change in zip(one, step, strict=True)]
            first, second = (law_of(errors, epsilon / (2 * sensitivity), law) for errors in (one, other))
            worst = max(worst, np.abs(np.log(first / second)).max())
    assert 0.5 * epsilon < worst <= epsilon + 1e-12


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
