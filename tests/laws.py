"""Exact laws of discrete noise, and the chi-square tests that hold draws against them."""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import permutations

import numpy as np
from scipy import special, stats

SEEDED = 1e-6
"""Smallest p-value of a seeded run: it is the same in every run, so it can never flake."""

SYSTEM = 1e-11
"""Smallest p-value on system entropy: a false alarm once in 1e11 tests."""


def laplace_below(k: np.ndarray, scale: float) -> np.ndarray:
    """(n,) P(X < k) of discrete Laplace noise, P(x) proportional to exp(-|x| / scale)."""
    k = np.asarray(k, np.float64)
    whole = 1 + math.exp(-1 / scale)
    return np.where(k > 0, 1 - np.exp(-np.abs(k) / scale) / whole, np.exp(-np.abs(np.minimum(k, 0) - 1) / scale) / whole)


def gaussian_below(k: np.ndarray, sigma: float) -> np.ndarray:
    """(n,) P(X < k) of discrete Gaussian noise; above sigma 1,000 the continuous law is the same to 1e-7."""
    k = np.asarray(k, np.float64)
    if sigma > 1000:
        return special.ndtr((k - 0.5) / sigma)
    reach = math.ceil(12 * sigma) + 2
    weight = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma**2))
    below = np.concatenate([[0.0], np.cumsum(weight)]) / weight.sum()
    return below[np.clip(k + reach, 0, 2 * reach + 1).astype(np.int64)]


def bins(below, scale: float, parts: int = 60) -> np.ndarray:
    """Whole numbers that cut a symmetric law into about `parts` equally likely bins."""
    reach = max(3, math.ceil(40 * scale))
    grid = np.unique(np.linspace(-reach, reach, min(2 * reach + 1, 200_001)).astype(np.int64))
    places = np.searchsorted(below(grid), np.arange(1, parts) / parts)
    return np.unique(grid[np.minimum(places, len(grid) - 1)])


def p_value(draws: np.ndarray, below, cuts: np.ndarray) -> float:
    """Chi-square p-value of draws against a law, bins with fewer than 5 expected draws merged into their neighbours."""
    share = np.diff(np.concatenate([[0.0], below(cuts), [1.0]]))
    observed = np.bincount(np.searchsorted(cuts, draws, side="right"), minlength=len(share))
    return p_of_counts(observed, share)


def p_of_counts(observed: np.ndarray, share: np.ndarray) -> float:
    """Chi-square p-value of counts of bins against their probabilities."""
    groups, total = [[0.0, 0.0]], observed.sum()
    for seen, expected in zip(observed.tolist(), (share * total).tolist(), strict=True):
        if groups[-1][1] >= 5:
            groups.append([0.0, 0.0])
        groups[-1][0] += seen
        groups[-1][1] += expected
    if groups[-1][1] < 5 and len(groups) > 1:
        last = groups.pop()
        groups[-1] = [groups[-1][0] + last[0], groups[-1][1] + last[1]]
    if len(groups) == 1:
        return 1.0
    return float(stats.chi2.sf(sum((seen - expected) ** 2 / expected for seen, expected in groups), len(groups) - 1))


def p_same(one: np.ndarray, other: np.ndarray, parts: int = 40) -> float:
    """Chi-square p-value of two samples having one law."""
    pooled = np.sort(np.concatenate([one, other]))
    cuts = np.unique(pooled[np.arange(1, parts) * len(pooled) // parts])
    table = [np.bincount(np.searchsorted(cuts, draws, side="right"), minlength=len(cuts) + 1) for draws in (one, other)]
    table = np.array(table)[:, np.sum(table, axis=0) > 0]
    return float(stats.chi2_contingency(table).pvalue)


def exp_minus(x: Fraction, bits: int = 700) -> int:
    """floor(2**bits exp(-x)) to within 2**50 or so, by decimals of 300 digits."""
    with localcontext(prec=300):
        return int((Decimal(-x.numerator) / x.denominator).exp() * 2**bits)


def permute_and_flip_law(scores: Sequence[int], rate: float) -> np.ndarray:
    """Probabilities of permute-and-flip, by playing Algorithm 1 of the paper for every order of the candidates."""
    heads = [math.exp(-rate * (max(scores) - score)) for score in scores]
    chance = np.zeros(len(scores))
    for order in permutations(range(len(scores))):
        open_still = 1 / math.factorial(len(scores))
        for candidate in order:
            chance[candidate] += open_still * heads[candidate]
            open_still *= 1 - heads[candidate]
    return chance


def by_integral(scores: Sequence[int], rate: float) -> np.ndarray:
    """Probabilities of permute-and-flip by its integral, exactly for polynomials; only differences of scores count."""
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
