"""Thresholds for false positives: exact tails, thresholds by definition, and the false discovery rate."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpviz.errors import SettingError
from dpviz.privacy.budget import ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.false_positives import discovery_threshold, gaussian_tail, list_nonzero, stddev_threshold
from dpviz.privacy.noise import discrete_gaussian
from tests.often import often


@pytest.mark.parametrize(
    ("variance", "rtol"), [*((variance, 1e-9) for variance in (0.05, 0.5, 1, 7.3, 150, 399)), (401, 5e-3), (10_000, 5e-3)]
)
def test_tails_are_sums_of_the_distribution_exact_for_small_variances_and_nearly_so_for_large_ones(variance, rtol):
    sigma = variance**0.5
    values = np.array([-10, -1, 0, 1, 2, 5, 30, 70] if variance < 400 else [1, int(sigma), int(3 * sigma), int(6 * sigma)])
    k = np.arange(-900 - int(6 * sigma), 901 + int(6 * sigma))
    weight = np.exp(-(k**2) / (2 * variance))
    wanted = [math.fsum(weight[k >= value]) / math.fsum(weight) for value in values]
    np.testing.assert_allclose(gaussian_tail(values, variance), wanted, rtol=rtol, atol=1e-300)


@pytest.mark.parametrize(("variance", "k", "least"), [(4, 0, 0), (4, 1, 2), (4, 1.01, 3), (Fraction(9, 4), 2, 3), (2, 1, 2), (0.01, 1, 1)])
def test_the_threshold_is_a_number_of_standard_deviations_rounded_up(variance, k, least):
    assert stddev_threshold(variance, k) == least


def test_thresholds_and_rates_out_of_range_are_refused():
    for k in (-0.1, float("nan"), float("inf")):
        with pytest.raises(SettingError, match="standard deviations"):
            stddev_threshold(1.0, k)
    for rate in (0, 1, -1, 2, float("nan")):
        with pytest.raises(SettingError, match="false discovery rate"):
            discovery_threshold(np.array([1]), 1.0, rate)


def slow_threshold(noisy: np.ndarray, variance: float, rate: float) -> int | None:
    """Benjamini and Hochberg step by step: the largest k with the k-th smallest p-value under k rate / n; None where nothing stays."""
    ordered = np.sort(noisy)[::-1]
    p = gaussian_tail(ordered, variance)
    ks = [k for k in range(1, len(ordered) + 1) if ordered[k - 1] > 0 and p[k - 1] <= k * rate / len(ordered)]
    return int(ordered[max(ks) - 1]) if ks else None


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(8))
def test_the_threshold_is_that_of_the_step_up_procedure(seed, rate):
    rng = np.random.default_rng(seed)
    variance = float(rng.choice([1.5, 30.0, 900.0]))
    noisy = np.round(rng.normal(0, variance**0.5, 200)).astype(np.int64)
    noisy[: seed * 10] += np.round(rng.exponential(5 * variance**0.5, seed * 10)).astype(np.int64)
    slow, found = slow_threshold(noisy, variance, rate), discovery_threshold(noisy, variance, rate)
    assert found >= 1
    kept = noisy >= (slow if slow is not None else noisy.max() + 1)
    np.testing.assert_array_equal(noisy >= found, kept)


def test_where_nothing_can_stay_the_threshold_is_above_every_count_and_without_noise_every_positive_count_stays():
    assert discovery_threshold(np.array([1, 2, 0, -3]), 1e4, 0.01) == 3
    assert discovery_threshold(np.array([-5, 0]), 1.0, 0.1) == 1
    assert discovery_threshold(np.zeros(0, np.int64), 1.0, 0.1) == 1
    assert discovery_threshold(np.array([0, 0, 1, 5]), Fraction(1, 10**6), 0.01) == 1


RATE = 0.05


def noise(shape, variance, seed):
    flat = np.zeros(int(np.prod(shape)), np.int64)
    return discrete_gaussian(flat, ZcdpBudget(Fraction(1, 2 * variance)), Entropy.seeded(seed), 1).reshape(shape)


def false_share(size, variance, runs, filled=0, seed=1):
    """Mean share of zeros on the list, and its standard error; `filled` counts are as large as three standard deviations."""
    counts = np.zeros(size, np.int64)
    counts[:filled] = int(3 * np.sqrt(variance))
    expected = np.maximum(counts, np.arange(size) % 3)
    shares = []
    for drawn in noise((runs, size), variance, seed):
        listed = list_nonzero(counts + drawn, expected, variance, RATE, size)
        shares.append((listed >= filled).sum() / max(len(listed), 1))
    return np.mean(shares), np.std(shares) / np.sqrt(runs)


@pytest.mark.parametrize("size", often([4, 10, 30], 1))
def test_on_nothing_but_zeros_hardly_any_list_has_an_entry(size):
    """400,000 draws at once, for equal weights; the function itself says the same of the first of them."""
    drawn, variance = noise((400_000, size), 400, seed=size), 400.0
    tail = np.sort(gaussian_tail(drawn, variance), axis=1)
    zeros = (1 + (drawn <= 0).sum(axis=1)) / (size / 2)
    fits = (tail <= RATE * np.arange(1, size + 1) / (size * zeros[:, None])) & (tail < 0.5)
    some = fits.any(axis=1)
    assert some[:1_000].tolist() == [len(list_nonzero(row, np.ones(size), variance, RATE, size)) > 0 for row in drawn[:1_000]]
    assert RATE / 2 < some.mean() <= RATE + 3 * np.sqrt(RATE / len(some))


@pytest.mark.parametrize("filled", [1, 5, 15])
def test_with_nonzero_counts_the_share_of_zeros_is_bounded_too(filled):
    share, error = false_share(20, 100, 4_000, filled)
    assert share <= RATE + 3 * error


def test_a_smaller_noise_than_stated_is_fine_and_a_larger_one_breaks_the_bound():
    drawn = noise((3_000, 10), 100, seed=5)
    broken, kept = (np.mean([len(list_nonzero(row, np.ones(10), variance, RATE, 10)) > 0 for row in drawn]) for variance in (36.0, 150.0))
    assert kept < RATE < broken


def test_the_list_is_the_longest_that_fits():
    rng = np.random.default_rng(3)
    for _ in range(200):
        size, most = int(rng.integers(1, 30)), int(rng.integers(0, 30))
        noisy, expected = rng.integers(-20, 40, size), rng.uniform(0, 50, size)
        weight = np.clip(expected, 0.5, 5000) ** 0.75
        weight /= weight.mean()
        scaled = gaussian_tail(noisy, 64.0) / weight
        zeros = (weight.max() + weight[noisy <= 0].sum()) / (size / 2)
        order = [index for index in np.argsort(scaled, kind="stable") if noisy[index] > 0]
        lengths = [k for k in range(1, min(len(order), most) + 1) if scaled[order[k - 1]] <= RATE * k / (size * zeros)]
        assert list_nonzero(noisy, expected, 64.0, RATE, most).tolist() == sorted(order[: max(lengths, default=0)])


def test_no_counts_give_no_list_and_a_rate_out_of_range_is_refused():
    assert len(list_nonzero(np.zeros(0, np.int64), np.zeros(0), 1.0, RATE, 5)) == 0
    for rate in (0, 1, -0.1, float("nan")):
        with pytest.raises(SettingError, match="above 0 and below 1"):
            list_nonzero(np.ones(2, np.int64), np.ones(2), 1.0, rate, 2)
