import math
from itertools import product

import numpy as np
import pytest

from dpviz.lessons.one_person import DELTA, GAUSSIAN, LAPLACE, OTHERS, Noise, bound_violation, posterior, shown_counts
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace, gaussian_variance, laplace_variance
from tests.laws import p_of_counts

EVERY = np.arange(-3000, 3001)
NOISES = [Noise(kind=kind, epsilon=epsilon) for kind in (LAPLACE, GAUSSIAN) for epsilon in (0.1, 1.0, 5.0)]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_laws_add_up_have_the_variance_that_is_stated_and_log_odds_of_their_ratio(noise):
    law = noise.probabilities(EVERY)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    stated = laplace_variance(1 / noise.epsilon) if noise.kind == LAPLACE else gaussian_variance(noise.variance)
    assert (law * EVERY**2).sum() == pytest.approx(stated, rel=1e-6)
    seen = np.arange(OTHERS - 5, OTHERS + 7)
    slow = np.log(noise.probabilities(seen - OTHERS - 1) / noise.probabilities(seen - OTHERS))
    assert noise.log_odds(seen) == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN])
def test_the_laws_are_those_of_the_noise_that_mechanisms_draw(kind):
    noise, zeros = Noise(kind=kind, epsilon=1.0), np.zeros(40_000, np.int64)
    if kind == LAPLACE:
        drawn = discrete_laplace(zeros, PureBudget(1), Entropy.seeded(1))
    else:
        drawn = discrete_gaussian(zeros, ApproxBudget(1, DELTA).to_zcdp(), Entropy.seeded(1))
    k = np.arange(-round(2 * noise.width), round(2 * noise.width) + 1)
    observed = np.array([(drawn == each).sum() for each in k])

    def p_value(law):
        return p_of_counts(np.append(observed, len(drawn) - observed.sum()), np.append(law, 1 - law.sum()))

    assert p_value(noise.probabilities(k)) > 1e-3
    assert p_value(Noise(kind=kind, epsilon=1.3).probabilities(k)) < 1e-6


def test_every_output_of_laplace_noise_meets_the_bound_exactly_and_the_one_that_is_seen_is_shown():
    assert np.abs(Noise(kind=LAPLACE, epsilon=0.7).log_odds(np.arange(-50, 90))) == pytest.approx(0.7)
    assert bound_violation(Noise(kind=LAPLACE, epsilon=0.7)) == (0.0, 0.0)
    for epsilon, seen in product((0.05, 5.0), (0, 20, 40)):
        assert seen in shown_counts(Noise(kind=LAPLACE, epsilon=epsilon), seen)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_gaussian_noise_passes_the_bound_rarely_and_within_delta(epsilon):
    noise = Noise(kind=GAUSSIAN, epsilon=epsilon)
    passed, least = bound_violation(noise)
    slow = np.maximum(0, noise.probabilities(EVERY - 1) - math.exp(epsilon) * noise.probabilities(EVERY)).sum()
    assert least == pytest.approx(slow, rel=1e-6)
    assert 0 < least <= DELTA
    assert passed > least


@pytest.mark.parametrize("prior", [0.01, 0.5, 0.9])
def test_the_posterior_is_bayes_theorem(prior):
    noise, seen = Noise(kind=LAPLACE, epsilon=1.5), np.array([18, 20, 21, 25])
    inside, outside = noise.probabilities(seen - OTHERS - 1), noise.probabilities(seen - OTHERS)
    found = posterior(prior, noise.log_odds(seen))
    assert found == pytest.approx(prior * inside / (prior * inside + (1 - prior) * outside))
    assert (found <= posterior(prior, 1.5) + 1e-12).all()
