"""The attack on one person's many fixes: it is the best there is, it fails on a wrong scale, and the game is the one that is bounded."""

import math

import numpy as np
import pytest

from dpviz.evaluation.attacks.fixes import find_trace, group_bound, guess_homes, home_scores, play_homes
from dpviz.evaluation.attacks.game import guess_bound
from dpviz.privacy.entropy import Entropy

HOMES = np.array([[2, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0]])
"""Kept fixes of a person (3 of them) in four cells, for three homes."""
MOST, REACH = 3, 40


def chances(trace, epsilon, most):
    """(4, n) probabilities of every count around the cells' noise, as given by the noise's distribution."""
    count = np.arange(-REACH, REACH + 1)
    rate = epsilon / most
    return math.tanh(rate / 2) * np.exp(-rate * np.abs(count - trace[:, None]))


def test_scores_are_log_likelihoods_but_for_a_constant():
    noisy = np.random.default_rng(1).integers(-6, 9, (5, 4))
    others = np.array([4, 0, 2, 7])
    rate = 0.4
    exact = np.stack([(-rate * np.abs(noisy - trace)).sum(1) for trace in HOMES], axis=1)
    scores = home_scores(noisy + others, others, HOMES, rate)
    assert scores - scores[:, :1] == pytest.approx(exact - exact[:, :1])


def test_no_home_is_more_than_two_steps_from_another_at_the_persons_scale_but_it_is_at_the_scale_of_a_record():
    def largest_ratio(most):
        logs = [np.log(chances(trace, 1.0, most)) for trace in HOMES]
        return max(float((one - other).max(axis=1).sum()) for one in logs for other in logs)

    assert largest_ratio(MOST) <= 2.0 + 1e-9
    assert largest_ratio(1) > 4


def test_the_best_guess_wins_no_more_often_than_allowed_by_exact_enumeration():
    pair = np.array([[3, 0], [0, 3]])

    def best(most):
        one, other = (np.multiply.outer(*chances(trace, 1.0, most)) for trace in pair)
        return float(np.maximum(one, other).sum() / 2)

    assert best(MOST) <= guess_bound(2, 1.0)
    assert best(1) > guess_bound(2, 1.0)
    assert best(1) <= group_bound(2, 1.0, 3)
    won = play_homes(pair, 1.0, MOST, 2000, Entropy.seeded(3))
    assert won.interval(0.999)[0] < best(MOST) < won.interval(0.999)[1]


def test_a_person_of_many_records_is_found_in_every_game_and_nothing_is_promised():
    many = np.eye(4, dtype=np.int64) * 500
    assert play_homes(many, 1.0, 1, 50, Entropy.seeded(1)).wins == 50
    assert group_bound(4, 1.0, 500) == 1.0
    assert play_homes(many, 1.0, 500, 200, Entropy.seeded(1)).keeps(guess_bound(4, 1.0))


def test_the_most_likely_home_is_named_whatever_the_others_are():
    others = np.array([100, 3, 50, 9])
    assert guess_homes(HOMES + others, others, HOMES, 1.0).tolist() == [0, 1, 2]


def test_noise_alone_gives_less_than_one_false_cell_on_average_and_a_trace_is_found():
    rate, cells = 0.5, 400
    beyond = math.floor(math.log(cells) / rate) + 1
    tail = math.exp(-rate * beyond) / (1 + math.exp(-rate))
    assert cells * tail < 1
    noisy = np.zeros(cells, np.int64)
    noisy[[3, 9]] = 60, beyond - 1
    assert np.flatnonzero(find_trace(noisy, np.zeros(cells, np.int64), rate)).tolist() == [3]
