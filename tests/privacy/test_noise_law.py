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


@pytest.mark.parametrize(("kind", "width"), CASES[1::3])
def test_draws_from_the_operating_system_have_the_exact_distribution(kind, width):
    below = law_of(kind, float(width))
    assert p_value(draws_of(kind, width, Entropy.system()), below, bins(below, float(width))) > SYSTEM


MANY = {"Laplace": ("0.3", "2", "65", "16385", "1e9"), "Gaussian": ("0.5", "10", "1023", "1e4", "1e8")}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "width"), [(kind, width) for kind, widths in MANY.items() for width in widths])
def test_four_million_draws_still_follow_the_exact_distribution(kind, width):
    below = law_of(kind, float(width))
    assert p_value(draws_of(kind, width, Entropy.system(), 4_000_000), below, bins(below, float(width), 1000)) > SYSTEM


@pytest.mark.parametrize("scale", ["0.5", "3", "300", "1e5"])
def test_both_signs_of_laplace_draws_are_equally_likely_and_independent_of_size_and_neighbours(scale):
    every = draws_of("Laplace", scale, Entropy.seeded(25))
    draws = every[every != 0]
    large = np.abs(draws) > np.median(np.abs(draws))
    for part in (draws[large], draws[~large]):
        assert abs((part > 0).mean() - 0.5) < 5 / (2 * math.sqrt(len(part)))
    for values in (every.astype(float), np.abs(every).astype(float)):
        assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / math.sqrt(DRAWS)


def opendp_draws(kind: str, width: float, n: int) -> np.ndarray:
    dp.enable_features("contrib")
    vectors = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "Laplace":
        return np.array(dp.m.make_laplace(vectors, dp.l1_distance(T=int), scale=width)([0] * n))
    return np.array(dp.m.make_gaussian(vectors, dp.l2_distance(T=float), scale=width)([0] * n))


OPENDP = {"Laplace": (("0.8", "0.96"), ("5", "6"), ("100000", "120000")), "Gaussian": (("0.8", "0.96"), ("5", "6"), ("20000", "24000"))}


@pytest.mark.parametrize(("kind", "width", "wrong"), [(kind, *pair) for kind, pairs in OPENDP.items() for pair in pairs])
def test_draws_and_those_of_opendp_have_one_distribution_and_a_width_twenty_percent_off_has_not(kind, width, wrong):
    referee = opendp_draws(kind, float(width), 20_000)
    assert p_same(draws_of(kind, width, Entropy.system(), 20_000), referee) > SYSTEM
    assert p_same(draws_of(kind, wrong, Entropy.system(), 20_000), referee) < SYSTEM


@pytest.mark.parametrize("width", ["1e-3", "0.05", "0.2", "0.5", "1", "2", "3", "9.9", "10.1", "20", "300", "400"])
def test_stated_variances_are_those_of_the_exact_distributions(width):
    assert laplace_variance(Fraction(width)) == pytest.approx(moment("Laplace", float(width), 2), rel=1e-9, abs=1e-300)
    assert width == "1e-3" or gaussian_variance(Fraction(width) ** 2) == pytest.approx(moment("Gaussian", float(width), 2), rel=1e-9)


def test_laplace_variance_is_below_the_continuous_one_by_the_factors_of_the_discrete_distribution():
    assert laplace_variance(Fraction(1)) / 2 == pytest.approx(0.9207, abs=1e-4)
    assert laplace_variance(Fraction(1, 3)) / (2 / 9) == pytest.approx(0.4959, abs=1e-3)
    assert laplace_variance(Fraction(10**6)) == pytest.approx(2e12, rel=1e-9)
    assert 0 <= laplace_variance(Fraction(1, 10**9)) < 1e-300
    assert 0 <= laplace_variance(Fraction(1, 10**400)) < 1e-300


@pytest.mark.parametrize("sensitivity", [1, 2, 7])
def test_widths_are_those_that_sensitivity_and_budget_ask_for(sensitivity):
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


NOT_WHOLE = [np.zeros(3), np.array([1.5]), np.array(["a"]), np.array([True])]
TOO_LARGE = [np.array([2**60 + 1]), np.array([-(2**60) - 1]), np.array([2**63], np.uint64)]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        *((counts, "integer dtype") for counts in NOT_WHOLE),
        *((counts, r"2\*\*60") for counts in TOO_LARGE),
        (np.zeros((2, 2), np.int64), "one dimension"),
    ],
)
def test_counts_that_are_no_vector_of_whole_numbers_well_inside_64_bits_are_refused(counts, words):
    with pytest.raises(InputError, match=words):
        discrete_laplace(counts, PureBudget(1), Entropy.system())
    with pytest.raises(InputError, match=words):
        discrete_gaussian(counts, ZcdpBudget(1), Entropy.system())


def test_noise_so_large_that_64_bits_could_overflow_is_refused():
    zero = np.zeros(1, np.int64)
    with pytest.raises(BudgetError, match="1e15"):
        discrete_laplace(zero, PureBudget("9.99e-16"), Entropy.system())
    with pytest.raises(BudgetError, match="1e15"):
        discrete_laplace(zero, PureBudget("1e-15"), Entropy.system(), sensitivity=2)
    with pytest.raises(BudgetError, match="1e16"):
        discrete_gaussian(zero, ZcdpBudget("4.9e-17"), Entropy.system())
    assert abs(int(discrete_laplace(zero, PureBudget("1e-15"), Entropy.seeded(3))[0])) < 10**17
    assert abs(int(discrete_gaussian(zero, ZcdpBudget("5e-17"), Entropy.seeded(3))[0])) < 10**10


def test_every_noise_takes_its_own_kind_of_budget():
    zero = np.zeros(1, np.int64)
    for budget in (ZcdpBudget(1), ApproxBudget(1, 1e-9), 1.0):
        with pytest.raises(BudgetError, match="PureBudget"):
            discrete_laplace(zero, budget, Entropy.system())
    for budget in (PureBudget(1), ApproxBudget(1, 1e-9), 1.0):
        with pytest.raises(BudgetError, match="ZcdpBudget"):
            discrete_gaussian(zero, budget, Entropy.system())


def test_sensitivities_that_are_no_whole_numbers_or_not_positive_are_refused():
    zero = np.zeros(1, np.int64)
    for sensitivity in (0, -1, 1.5, True, "1"):
        with pytest.raises(BudgetError, match="sensitivity"):
            discrete_laplace(zero, PureBudget(1), Entropy.system(), sensitivity)
    for squared in (0, -1, float("nan"), "x"):
        with pytest.raises(BudgetError, match="sensitivity"):
            discrete_gaussian(zero, ZcdpBudget(1), Entropy.system(), squared)
