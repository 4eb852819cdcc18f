"""Planar Laplace noise on a lattice, with exact probabilities: the noise of geo-indistinguishability."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

from dpviz.arrays import Integers
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import toss_coins
from dpviz.privacy.noise import discrete_laplace

_SHARE = Fraction(7, 10)  # below 1 / sqrt(2), so that no proposal is too rare
_SLACK = 2.0**-36


def planar_laplace(n: int, rates: tuple[Fraction, Fraction], entropy: Entropy) -> tuple[Integers, Integers]:
    """Draw steps on the lattice of all whole numbers: P(i, j) proportional to exp(-sqrt((a i)**2 + (b j)**2)).

    Args:
        n: how many steps.
        rates: a and b, above 0: epsilon times the width, and times the height, of a cell.
        entropy: source of random bits.

    Returns:
        (n,) steps i to the east and (n,) steps j to the north.

    Guarantee:
        Let d(x, y) = sqrt((a (x1 - y1))**2 + (b (x2 - y2))**2). The lattice has no end, so that the normalizing constant is the same
        for every start: P(y | x) = exp(-d(x, y)) / Z. By the triangle inequality, P(y | x) <= exp(d(x, x')) P(y | x') for any two
        starts x and x' and every y: geo-indistinguishability, epsilon times the distance. What is computed from y alone, such as the
        nearest cell in a domain, keeps it.

    Exactness:
        Rejection from two independent discrete Laplace steps with rates 0.7 a and 0.7 b, accepted with probability exp(-g) for
        g = d - 0.7 (a |i| + b |j|), which is at least 0, as (u + v) / sqrt(2) <= sqrt(u**2 + v**2). About 77 % are accepted if steps are
        long. The probability is irrational: it is compared with a uniform number by interval, with more bits and digits until the
        comparison is certain (`toss_coins`). While a |i| + b |j| is below 2**13, floating-point rounding changes g by less than 2**-37;
        beyond, g is over 58, and both the true and the computed probability are below 2**-60, which `toss_coins` decides exactly, too.

    Source:
        Andres, Bordenabe, Chatzikokolakis, Palamidessi, "Geo-indistinguishability: differential privacy for location-based systems",
        CCS 2013. They draw continuous noise in polar coordinates and round it, for which the finite precision costs a part of epsilon
        (Section 4); on a lattice no real number is drawn, and nothing is lost.

    >>> east, north = planar_laplace(4, (Fraction(1, 2), Fraction(1, 2)), Entropy.seeded(1))
    >>> east.tolist(), north.tolist()
    ([2, -1, -1, 4], [-1, -5, 0, -1])
    """
    a, b = map(float, rates)
    steps, pending = np.zeros((2, n), np.int64), np.arange(n)
    while pending.size:
        start = np.zeros(pending.size, np.int64)
        east, north = (discrete_laplace(start, PureBudget(_SHARE * rate), entropy) for rate in rates)
        u, v = a * np.abs(east), b * np.abs(north)
        gap = np.maximum(np.hypot(u, v) - float(_SHARE) * (u + v), 0.0)

        def chance(index: int, east: Integers = east, north: Integers = north) -> Decimal:
            return _acceptance(rates, abs(int(east[index])), abs(int(north[index])))

        accepted = toss_coins(np.exp(-gap), _SLACK, chance, entropy)
        steps[:, pending[accepted]] = east[accepted], north[accepted]
        pending = pending[~accepted]
    return steps[0], steps[1]


def _acceptance(rates: tuple[Fraction, Fraction], i: int, j: int) -> Decimal:
    """Compute exp(0.7 (a i + b j) - sqrt((a i)**2 + (b j)**2)) in the precision of the current decimal context, for i, j >= 0."""
    u, v = rates[0] * i, rates[1] * j
    squares, sizes = u * u + v * v, _SHARE * (u + v)
    gap = (Decimal(squares.numerator) / Decimal(squares.denominator)).sqrt() - Decimal(sizes.numerator) / Decimal(sizes.denominator)
    return (-max(gap, Decimal(0))).exp()
