"""Averaging: repeated releases of the same count, each rounded at random or with fresh noise, converge to the truth."""

from __future__ import annotations

import numpy as np

from dpviz.arrays import Floats, Integers


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
