"""Averaging: repeated releases of the same count, each rounded at random or with fresh noise, converge to the truth."""

from __future__ import annotations

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.privacy.entropy import Entropy


def round_randomly(counts: Integers, base: int, entropy: Entropy) -> Integers:
    """Round every count to one of the two multiples of a base next to it, so that it is right on average. NOT PRIVATE.

    The probability to round up is the remainder divided by the base; multiples stay as they are.

    Args:
        counts: (n,) true counts.
        base: such as 3 or 5.
        entropy: source of random bits.

    Source:
        Fellegi, "Controlled random rounding", Survey Methodology 1975: unbiased random rounding, before it is controlled.

    >>> round_randomly(np.full(6, 7), 5, Entropy.seeded(1)).tolist()
    [5, 10, 5, 5, 10, 10]
    """
    low = counts // base * base
    return low + base * (entropy.below(base, len(counts)) < counts - low)


def rounding_log_odds(published: Integers, others: Integers, base: int) -> Floats:
    """Return the log-odds that a person is counted, rather than not, after each of several randomly rounded releases.

    A count c is rounded to v with probability 1 - |v - c| / base if v is one of the multiples next to c, and never to another. The fresh
    coins of the releases multiply these.

    Args:
        published: (games, t) rounded counts, the same count in all t releases.
        others: (games,) the number of others in the count.
        base: of the rounding.

    Returns:
        (games, t) natural logarithms of P(first releases | in) / P(first releases | out); infinite once one of the two is impossible.

    Source:
        Asghar, Kaafar, "Averaging attacks on bounded noise-based disclosure control algorithms", PoPETs 2020: averages of repeated or
        equivalent queries undo bounded noise. Here the likelihood replaces the average, and decides with fewer releases.

    >>> rounding_log_odds(np.array([[5, 10, 5]]), np.array([5]), 5).tolist()
    [[-0.2231435513142097, inf, inf]]
    """
    with np.errstate(divide="ignore"):
        chance = [np.log(np.maximum(1 - np.abs(published - others[:, None] - more) / base, 0.0)) for more in (1, 0)]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.cumsum(chance[0], axis=1) - np.cumsum(chance[1], axis=1), np.float64)


def allowed_releases(epsilon: float, cap: float) -> int:
    """Return how many releases of epsilon each a ledger allows before it refuses: their sum is at most the cap.

    >>> allowed_releases(0.1, 0.3), allowed_releases(0.5, 0.3)
    (3, 0)
    """
    return int(cap / epsilon + 1e-9)
