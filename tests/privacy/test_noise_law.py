"""The referee of the noise: exact distributions by chi-square, moments, OpenDP, and wrong scales that must be caught."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp
import pytest

from dpviz.errors import BudgetError, InputError
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace, gaussian_variance, laplace_variance
from tests.laws import SEEDED, SYSTEM, bins, gaussian_below, laplace_below, p_same, p_value
from tests.often import rarely

WIDTHS = {
    "Laplace": ("1e-6", "0.05", "0.3", "1", "2", "7.5", "63", "65", "1000", "16385", "1e6", "1e9", "1e12"),
    "Gaussian": ("0.1", "0.3", "0.5", "1", "3.5", "10", "100", "577", "1023", "1025", "1e4", "1e5", "1e6", "1e8"),
}
"""Scales of discrete Laplace noise and sigmas of discrete Gaussian noise."""
CASES = [(kind, width) for kind, widths in WIDTHS.items() for width in widths]
DRAWS = 40_000


def draws_of(kind: str, width: str | Fraction, entropy: Entropy, n: int = DRAWS) -> np.ndarray:
    zeros = np.zeros(n, np.int64)
    if kind == "Laplace":
        return discrete_laplace(zeros, PureBudget(1 / Fraction(width)), entropy)
    return discrete_gaussian(zeros, ZcdpBudget(1 / (2 * Fraction(width) ** 2)), entropy)


def law_of(kind: str, width: float):
    """P(X < k) as a function of k."""
    return partial(laplace_below, scale=width) if kind == "Laplace" else partial(gaussian_below, sigma=width)


def moment(kind: str, width: float, power: int) -> float:
    """E X**power: summed over the discrete law, or that of the continuous law where the width is large."""
    if width > 500:
        return (math.factorial(power) if kind == "Laplace" else math.prod(range(1, power, 2))) * width**power
    below, k = law_of(kind, width), np.arange(1, (int(90 * width) if kind == "Laplace" else int(12 * width)) + 6)
    return 2 * float((k.astype(float) ** power * (below(1 - k) - below(-k))).sum())


@pytest.mark.parametrize(("kind", "width"), CASES)
def test_draws_have_the_exact_distribution_and_moments_and_no_width_ten_percent_off(kind, width):
    draws, size = draws_of(kind, width, Entropy.seeded(20)), float(width)
    cuts = bins(law_of(kind, size), size)
    assert p_value(draws, law_of(kind, size), cuts) > SEEDED
    for off in (0.9, 1.1):
        assert p_value(draws, law_of(kind, size * off), cuts) < 1e-9 or width in ("1e-6", "0.05", "0.1")
    for power in (2, 4):
        expected = moment(kind, size, power)
        error = math.sqrt(max(moment(kind, size, 2 * power) - expected**2, 0) / DRAWS)
        assert abs((draws.astype(float) ** power).mean() - expected) <= 5 * error


MANY = [("Laplace", width) for width in ("0.3", "2", "65", "16385", "1e9")] + [
    ("Gaussian", width) for width in ("0.5", "10", "1023", "1e4", "1e8")
]


@pytest.mark.parametrize(
    ("kind", "width", "n"), [*((*case, DRAWS) for case in CASES[1::3]), *(rarely((*case, 4_000_000)) for case in MANY)]
)
def test_draws_from_the_operating_system_have_the_exact_distribution(kind, width, n):
    below = law_of(kind, float(width))
    cuts = bins(below, float(width), 60 if n == DRAWS else 1000)
    assert p_value(draws_of(kind, width, Entropy.system(), n), below, cuts) > SYSTEM


@pytest.mark.parametrize("scale", ["0.5", "3", "300", "1e5"])
def test_neighbouring_laplace_draws_are_uncorrelated_in_sign_and_size(scale):
    draws = draws_of("Laplace", scale, Entropy.seeded(25)).astype(float)
    for values in (draws, np.abs(draws)):
        assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / math.sqrt(DRAWS)


def opendp_draws(kind: str, width: float, n: int) -> np.ndarray:
    dp.enable_features("contrib")
    make, distance = (dp.m.make_laplace, dp.l1_distance(T=int)) if kind == "Laplace" else (dp.m.make_gaussian, dp.l2_distance(T=float))
    return np.array(make(dp.vector_domain(dp.atom_domain(T=int)), distance, scale=width)([0] * n))


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("width", ["0.8", "5", "20000"])
def test_draws_and_those_of_opendp_have_one_distribution_and_a_width_twenty_percent_off_has_not(kind, width):
    referee = opendp_draws(kind, float(width), 20_000)
    assert p_same(draws_of(kind, width, Entropy.system(), 20_000), referee) > SYSTEM
    assert p_same(draws_of(kind, Fraction(width) * Fraction("1.2"), Entropy.system(), 20_000), referee) < SYSTEM


@pytest.mark.parametrize("width", ["1e-3", "0.05", "0.2", "0.5", "1", "2", "3", "9.9", "10.1", "20", "300", "400"])
def test_stated_variances_are_those_of_the_exact_distributions(width):
    assert laplace_variance(Fraction(width)) == pytest.approx(moment("Laplace", float(width), 2), rel=1e-9, abs=1e-300)
    assert width == "1e-3" or gaussian_variance(Fraction(width) ** 2) == pytest.approx(moment("Gaussian", float(width), 2), rel=1e-9)


def test_tiny_scales_have_a_variance_of_practically_nothing():
    for digits in (9, 400):
        assert 0 <= laplace_variance(Fraction(1, 10**digits)) < 1e-300


@pytest.mark.parametrize("sensitivity", [1, 2, 7])
def test_widths_are_those_of_sensitivity_and_budget(sensitivity):
    """Laplace: sensitivity over epsilon; Gaussian: a variance of the squared sensitivity over twice rho."""
    draws = discrete_laplace(np.zeros(DRAWS, np.int64), PureBudget("0.5"), Entropy.seeded(27), sensitivity)
    below = law_of("Laplace", 2.0 * sensitivity)
    assert p_value(draws, below, bins(below, 2.0 * sensitivity)) > SEEDED
    draws = discrete_gaussian(np.zeros(DRAWS, np.int64), ZcdpBudget("0.02"), Entropy.seeded(28), Fraction(sensitivity, 2))
    below = law_of("Gaussian", math.sqrt(12.5 * sensitivity))
    assert p_value(draws, below, bins(below, 3.5 * math.sqrt(sensitivity))) > SEEDED


def test_noise_is_added_to_the_counts_and_leaves_them_alone():
    counts = np.array([0, 5, -3, 2**60, -(2**60)])
    before = counts.copy()
    for noisy in (
        discrete_laplace(counts, PureBudget(10**6), Entropy.system()),
        discrete_gaussian(counts, ZcdpBudget(10**6), Entropy.system()),
    ):
        assert noisy.dtype == np.int64
        assert noisy is not counts
        np.testing.assert_array_equal(noisy, before)
    np.testing.assert_array_equal(counts, before)
    empty = np.zeros(0, np.int64)
    assert discrete_laplace(empty, PureBudget(1), Entropy.system()).shape == (0,)
    for rho in (1, "1e-9"):
        assert discrete_gaussian(empty, ZcdpBudget(rho), Entropy.seeded(1)).shape == (0,)


NOT_COUNTS = {
    "integer dtype": [np.zeros(3), np.array([1.5]), np.array(["a"]), np.array([True])],
    r"2\*\*60": [np.array([2**60 + 1]), np.array([-(2**60) - 1]), np.array([2**63], np.uint64)],
    "one dimension": [np.zeros((2, 2), np.int64)],
}


@pytest.mark.parametrize(("words", "counts"), [(words, counts) for words, wrong in NOT_COUNTS.items() for counts in wrong])
def test_counts_that_are_no_vector_of_whole_numbers_well_inside_64_bits_are_refused(words, counts):
    for noise, budget in ((discrete_laplace, PureBudget(1)), (discrete_gaussian, ZcdpBudget(1))):
        with pytest.raises(InputError, match=words):
            noise(counts, budget, Entropy.system())


LARGE = [(discrete_laplace, PureBudget("9.99e-16"), 1, "1e15"), (discrete_laplace, PureBudget("1e-15"), 2, "1e15")]
LARGE += [(discrete_gaussian, ZcdpBudget("4.9e-17"), 1, "1e16")]
KINDS = [(discrete_laplace, budget, 1, "PureBudget") for budget in (ZcdpBudget(1), ApproxBudget(1, 1e-9), 1.0)]
KINDS += [(discrete_gaussian, budget, 1, "ZcdpBudget") for budget in (PureBudget(1), ApproxBudget(1, 1e-9), 1.0)]
WRONG = [(discrete_laplace, PureBudget(1), wrong, "sensitivity") for wrong in (0, -1, 1.5, True, "1")]
WRONG += [(discrete_gaussian, ZcdpBudget(1), wrong, "sensitivity") for wrong in (0, -1, float("nan"), "x")]


@pytest.mark.parametrize(("noise", "budget", "sensitivity", "words"), [*LARGE, *KINDS, *WRONG])
def test_noise_beyond_64_bits_other_kinds_of_budget_and_wrong_sensitivities_are_refused(noise, budget, sensitivity, words):
    with pytest.raises(BudgetError, match=words):
        noise(np.zeros(1, np.int64), budget, Entropy.system(), sensitivity)


def test_the_largest_noise_stays_inside_64_bits():
    zero = np.zeros(1, np.int64)
    assert abs(int(discrete_laplace(zero, PureBudget("1e-15"), Entropy.seeded(3))[0])) < 10**17
    assert abs(int(discrete_gaussian(zero, ZcdpBudget("5e-17"), Entropy.seeded(3))[0])) < 10**10
