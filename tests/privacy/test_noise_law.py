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

SCALES = ("1e-6", "0.05", "0.3", "1", "2", "7.5", "63", "65", "1000", "16385", "1e6", "1e9", "1e12")
SIGMAS = ("0.1", "0.3", "0.5", "1", "3.5", "10", "100", "577", "1023", "1025", "1e4", "1e5", "1e6", "1e8")
DRAWS = 40_000


def entropy_of(kind: str) -> tuple[Entropy, float]:
    return (Entropy.seeded(20), SEEDED) if kind == "seeded" else (Entropy.system(), SYSTEM)


def laplace(scale: str | Fraction, entropy: Entropy, n: int = DRAWS) -> np.ndarray:
    return discrete_laplace(np.zeros(n, np.int64), PureBudget(1 / Fraction(scale)), entropy)


def gaussian(sigma: str, entropy: Entropy, n: int = DRAWS) -> np.ndarray:
    return discrete_gaussian(np.zeros(n, np.int64), ZcdpBudget(1 / (2 * Fraction(sigma) ** 2)), entropy)


def moment(below, reach: int, power: int) -> float:
    """E X**power of a symmetric distribution, summed over -reach..reach."""
    k = np.arange(1, reach + 1)
    return 2 * float((k.astype(float) ** power * (below(1 - k) - below(-k))).sum())


def laplace_moment(scale: float, power: int) -> float:
    return math.factorial(power) * scale**power if scale > 500 else moment(partial(laplace_below, scale=scale), int(90 * scale) + 5, power)


def gaussian_moment(sigma: float, power: int) -> float:
    if sigma > 500:
        return math.prod(range(1, power, 2)) * sigma**power
    return moment(partial(gaussian_below, sigma=sigma), int(12 * sigma) + 2, power)


@pytest.mark.parametrize("kind", ["seeded", "system"])
@pytest.mark.parametrize("scale", SCALES)
def test_laplace_draws_follow_the_exact_distribution_at_every_scale(scale, kind):
    entropy, least = entropy_of(kind)
    below = partial(laplace_below, scale=float(scale))
    assert p_value(laplace(scale, entropy), below, bins(below, float(scale))) > least


@pytest.mark.parametrize("kind", ["seeded", "system"])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_draws_follow_the_exact_distribution_at_every_sigma(sigma, kind):
    entropy, least = entropy_of(kind)
    below = partial(gaussian_below, sigma=float(sigma))
    assert p_value(gaussian(sigma, entropy), below, bins(below, float(sigma))) > least


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["0.3", "2", "65", "16385", "1e9"])
def test_eight_million_laplace_draws_still_follow_the_exact_distribution(scale):
    below = partial(laplace_below, scale=float(scale))
    assert p_value(laplace(scale, Entropy.system(), 8_000_000), below, bins(below, float(scale), 1000)) > SYSTEM


@pytest.mark.slow
@pytest.mark.parametrize("sigma", ["0.5", "10", "1023", "1e4", "1e8"])
def test_four_million_gaussian_draws_still_follow_the_exact_distribution(sigma):
    below = partial(gaussian_below, sigma=float(sigma))
    assert p_value(gaussian(sigma, Entropy.system(), 4_000_000), below, bins(below, float(sigma), 1000)) > SYSTEM


@pytest.mark.parametrize("scale", SCALES)
def test_second_and_fourth_moment_of_laplace_draws_are_right(scale):
    draws = laplace(scale, Entropy.seeded(21)).astype(float)
    for power in (2, 4):
        expected = laplace_moment(float(scale), power)
        error = math.sqrt(max(laplace_moment(float(scale), 2 * power) - expected**2, 0) / DRAWS)
        assert abs((draws**power).mean() - expected) <= 5 * error


@pytest.mark.parametrize("sigma", SIGMAS)
def test_second_and_fourth_moment_of_gaussian_draws_are_right(sigma):
    draws = gaussian(sigma, Entropy.seeded(22)).astype(float)
    for power in (2, 4):
        expected = gaussian_moment(float(sigma), power)
        error = math.sqrt((gaussian_moment(float(sigma), 2 * power) - expected**2) / DRAWS)
        assert abs((draws**power).mean() - expected) <= 5 * error


@pytest.mark.parametrize("off", [0.9, 1.1])
@pytest.mark.parametrize("scale", SCALES[2:])
def test_a_laplace_scale_ten_percent_off_is_rejected(scale, off):
    below = partial(laplace_below, scale=float(scale) * off)
    assert p_value(laplace(scale, Entropy.seeded(23)), below, bins(below, float(scale))) < 1e-9


@pytest.mark.parametrize("off", [0.9, 1.1])
@pytest.mark.parametrize("sigma", SIGMAS[1:])
def test_a_gaussian_sigma_ten_percent_off_is_rejected(sigma, off):
    below = partial(gaussian_below, sigma=float(sigma) * off)
    assert p_value(gaussian(sigma, Entropy.seeded(24)), below, bins(below, float(sigma))) < 1e-9


@pytest.mark.parametrize("scale", ["0.5", "3", "300", "1e5"])
def test_both_signs_of_laplace_draws_are_equally_likely_and_independent_of_size(scale):
    draws = laplace(scale, Entropy.seeded(25))
    draws = draws[draws != 0]
    large = np.abs(draws) > np.median(np.abs(draws))
    for part in (draws[large], draws[~large]):
        assert abs((part > 0).mean() - 0.5) < 5 / (2 * math.sqrt(len(part)))


@pytest.mark.parametrize("scale", ["2", "1000"])
def test_neighbouring_draws_are_uncorrelated(scale):
    draws = laplace(scale, Entropy.seeded(26)).astype(float)
    for values in (draws, np.abs(draws)):
        assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / math.sqrt(DRAWS)


def opendp_laplace(scale: float, n: int) -> np.ndarray:
    with_noise = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=scale)
    return np.array(with_noise([0] * n))


def opendp_gaussian(sigma: float, n: int) -> np.ndarray:
    with_noise = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=sigma)
    return np.array(with_noise([0] * n))


@pytest.fixture(scope="module", autouse=True)
def opendp_features():
    dp.enable_features("contrib")


@pytest.mark.parametrize(("scale", "wrong"), [("0.8", "0.96"), ("5", "6"), ("100000", "120000")])
def test_laplace_draws_and_those_of_opendp_have_one_distribution_and_a_scale_twenty_percent_off_has_not(scale, wrong):
    referee = opendp_laplace(float(scale), 20_000)
    assert p_same(laplace(scale, Entropy.system(), 20_000), referee) > SYSTEM
    assert p_same(laplace(wrong, Entropy.system(), 20_000), referee) < SYSTEM


@pytest.mark.parametrize(("sigma", "wrong"), [("0.8", "0.96"), ("5", "6"), ("20000", "24000")])
def test_gaussian_draws_and_those_of_opendp_have_one_distribution_and_a_sigma_twenty_percent_off_has_not(sigma, wrong):
    referee = opendp_gaussian(float(sigma), 20_000)
    assert p_same(gaussian(sigma, Entropy.system(), 20_000), referee) > SYSTEM
    assert p_same(gaussian(wrong, Entropy.system(), 20_000), referee) < SYSTEM


@pytest.mark.parametrize("scale", ["1e-3", "0.05", "0.5", "1", "3", "20", "400"])
def test_stated_laplace_variance_is_that_of_the_exact_distribution(scale):
    assert laplace_variance(Fraction(scale)) == pytest.approx(laplace_moment(float(scale), 2), rel=1e-9, abs=1e-300)


def test_laplace_variance_is_below_the_continuous_one_by_the_factors_of_the_discrete_distribution():
    assert laplace_variance(Fraction(1)) / 2 == pytest.approx(0.9207, abs=1e-4)
    assert laplace_variance(Fraction(1, 3)) / (2 / 9) == pytest.approx(0.4959, abs=1e-3)
    assert laplace_variance(Fraction(10**6)) == pytest.approx(2e12, rel=1e-9)
    assert 0 <= laplace_variance(Fraction(1, 10**9)) < 1e-300
    assert 0 <= laplace_variance(Fraction(1, 10**400)) < 1e-300


@pytest.mark.parametrize("sigma", ["0.05", "0.2", "0.5", "1", "2", "9.9", "10.1", "300"])
def test_stated_gaussian_variance_is_that_of_the_exact_distribution(sigma):
    assert gaussian_variance(Fraction(sigma) ** 2) == pytest.approx(gaussian_moment(float(sigma), 2), rel=1e-9)


@pytest.mark.parametrize("sensitivity", [1, 2, 7])
def test_the_laplace_scale_is_sensitivity_over_epsilon(sensitivity):
    draws = discrete_laplace(np.zeros(DRAWS, np.int64), PureBudget("0.5"), Entropy.seeded(27), sensitivity)
    below = partial(laplace_below, scale=2.0 * sensitivity)
    assert p_value(draws, below, bins(below, 2.0 * sensitivity)) > SEEDED


def test_the_gaussian_variance_is_squared_sensitivity_over_twice_rho():
    draws = discrete_gaussian(np.zeros(DRAWS, np.int64), ZcdpBudget("0.02"), Entropy.seeded(28), Fraction(3, 2))
    below = partial(gaussian_below, sigma=math.sqrt(37.5))
    assert p_value(draws, below, bins(below, 6.1)) > SEEDED


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


def test_no_counts_give_no_noise():
    empty = np.zeros(0, np.int64)
    assert discrete_laplace(empty, PureBudget(1), Entropy.system()).shape == (0,)
    for rho in (1, "1e-9"):
        assert discrete_gaussian(empty, ZcdpBudget(rho), Entropy.seeded(1)).shape == (0,)


@pytest.mark.parametrize("counts", [np.zeros(3), np.array([1.5]), np.array(["a"]), np.array([True])])
def test_counts_that_are_not_whole_numbers_are_refused(counts):
    with pytest.raises(InputError, match="integer dtype"):
        discrete_laplace(counts, PureBudget(1), Entropy.system())
    with pytest.raises(InputError, match="integer dtype"):
        discrete_gaussian(counts, ZcdpBudget(1), Entropy.system())


@pytest.mark.parametrize("counts", [np.array([2**60 + 1]), np.array([-(2**60) - 1]), np.array([2**63], np.uint64)])
def test_counts_near_the_ends_of_64_bits_are_refused(counts):
    with pytest.raises(InputError, match="2\\*\\*60"):
        discrete_laplace(counts, PureBudget(1), Entropy.system())


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


@pytest.mark.parametrize("sensitivity", [0, -1, 1.5, True, "1"])
def test_a_laplace_sensitivity_that_is_no_whole_number_of_at_least_one_is_refused(sensitivity):
    with pytest.raises(BudgetError, match="sensitivity"):
        discrete_laplace(np.zeros(1, np.int64), PureBudget(1), Entropy.system(), sensitivity)


@pytest.mark.parametrize("squared", [0, -1, float("nan"), "x"])
def test_a_gaussian_sensitivity_that_is_not_positive_is_refused(squared):
    with pytest.raises(BudgetError, match="sensitivity"):
        discrete_gaussian(np.zeros(1, np.int64), ZcdpBudget(1), Entropy.system(), squared)


def test_counts_of_two_dimensions_are_refused():
    with pytest.raises(InputError, match="one dimension"):
        discrete_laplace(np.zeros((2, 2), np.int64), PureBudget(1), Entropy.seeded(1))
