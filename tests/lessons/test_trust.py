"""Who do you have to trust: the errors of the three ways, and the theory of answers that trust nobody."""

import numpy as np
import pytest

from dpviz.lessons import trust


def test_the_theory_without_trust_is_what_answers_by_unary_encoding_give():
    rng, people, cells, epsilon = np.random.default_rng(1), 2_000, 16, 1.0
    true = np.zeros((people, cells), bool)
    true[:, 0] = True
    q, errors = 1 / (np.exp(epsilon) + 1), []
    for _ in range(40):
        answers = np.where(true, rng.random(true.shape) < 0.5, rng.random(true.shape) < q)
        errors.append((answers.sum(axis=0) - people * q) / (0.5 - q))
    empty = np.std(np.array(errors)[:, 1:])
    assert empty == pytest.approx(trust.error_without_trust(people, epsilon), rel=0.06)


def test_errors_of_coarser_squares_are_those_of_sums():
    truth, released = np.zeros((256, 256), np.int64), np.ones((256, 256))
    assert trust.errors_by_zoom(released, truth).tolist() == [4.0 ** (8 - zoom) for zoom in range(1, 9)]


def test_blurred_places_keep_the_number_of_people_and_err_the_more_the_larger_the_radius():
    near, far = (trust.blurred_counts(2_000, radius, 1) for radius in (100.0, 5000.0))
    assert near.sum() == far.sum() == trust.true_counts(2_000).sum()
    errors = [trust.errors_by_zoom(each, trust.true_counts(2_000)) for each in (near, far)]
    assert (errors[0] < errors[1]).all()
