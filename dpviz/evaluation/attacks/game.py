"""Attacks as games: how often they succeed, and the most that (epsilon, delta) allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.errors import SettingError
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED
from dpviz.privacy.audit import lower_limit, upper_limit

CONFIDENCE = 0.95
_MOST_COUNTS = 20
Table = NDArray[np.integer]
"""(n,) the index of each block's region: a partition of the blocks by which records are counted."""


@dataclass(frozen=True, kw_only=True)
class Success:
    """How many of several independent games an attacker won.

    Attributes:
        wins: games won.
        games: games played, at least 1.

    >>> found = Success(wins=97, games=100)
    >>> found.rate, [round(end, 3) for end in found.interval()], found.passes(0.75)
    (0.97, [0.915, 0.994], True)
    """

    wins: int
    games: int

    @property
    def rate(self) -> float:
        """The share of games won."""
        return self.wins / self.games

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the Clopper-Pearson interval of the probability to win; each end fails with probability (1 - confidence) / 2."""
        level = (1 - confidence) / 2
        return float(lower_limit(self.wins, self.games, level)), float(upper_limit(self.wins, self.games, level))

    def keeps(self, bound: float) -> bool:
        """Whether the whole interval is within a bound: the upper end is at most the bound."""
        return self.interval()[1] <= bound

    def passes(self, bound: float) -> bool:
        """Whether the whole interval is above a bound: no mechanism that guarantees the bound wins so often, beyond chance."""
        return self.interval()[0] > bound


def membership_bound(epsilon: float, delta: float = 0.0) -> float:
    """Return the largest probability to tell two neighbouring inputs apart, of which either is the true one with probability 1/2.

    Proof: let E be the outputs at which the attacker says "in", P their distribution with the unit and Q without it. The attacker is
    right with probability S = (P(E) + Q(not E)) / 2. By (epsilon, delta)-DP, P(E) <= e**epsilon Q(E) + delta and
    Q(not E) <= e**epsilon P(not E) + delta. The sum of both is 2 S <= e**epsilon (2 - 2 S) + 2 delta, since Q(E) + P(not E) = 2 - 2 S.
    So S <= (e**epsilon + delta) / (e**epsilon + 1), which is (1 + (e**epsilon - 1 + 2 delta) / (e**epsilon + 1)) / 2. A single count with
    discrete Laplace noise attains it. Whatever else the attacker knows, and whatever is computed from the release, is covered.

    Args:
        epsilon: of all that the attacker sees, for the unit that is in or out; at least 0.
        delta: of the same, 0 to 1.

    Source:
        Wasserman, Zhou, "A statistical framework for differential privacy", JASA 2010, Theorem 2.4; Kairouz, Oh, Viswanath, "The
        composition theorem for differential privacy", ICML 2015, Theorem 2.1 (the region of both errors).

    >>> round(membership_bound(1), 4), membership_bound(0), membership_bound(0, 0.5)
    (0.7311, 0.5, 0.75)
    """
    return guess_bound(2, epsilon, delta, neighbours=BOUNDED)


def guess_bound(cells: int, epsilon: float, delta: float = 0.0, *, neighbours: str = ADD_REMOVE) -> float:
    """Return the largest probability to guess the one of k cells that a unit is in, all of which are equally likely beforehand.

    Proof: let P_i be the distribution of the release with the unit in cell i, and E_i the outputs at which the attacker says i. The
    events E_i are disjoint, and the attacker is right with probability S = (sum over i of P_i(E_i)) / k.

    *Replacing* is one step ("bounded"): P_i(E_i) <= e**epsilon P_j(E_i) + delta for every j other than i. The sum over all such pairs is
    (k - 1) k S <= e**epsilon k (1 - S) + k (k - 1) delta, since the P_j(E_i) over i other than j add up to at most 1 - P_j(E_j). So
    S <= (e**epsilon + (k - 1) delta) / (e**epsilon + k - 1), which k-ary randomized response attains.

    *Adding and removing* are the steps ("add_remove"): let Q be the distribution without the unit, and q_i = Q(E_i), which add up to at
    most 1. One step leads from Q to P_i, so P_i(E_i) <= e**epsilon q_i + delta; and for the complement,
    1 - q_i <= e**epsilon (1 - P_i(E_i)) + delta. So P_i(E_i) <= f(q_i) with f(q) = min(e**epsilon q + delta,
    1 - (1 - q - delta) / e**epsilon). As f increases and is concave, S <= f(1 / k) by Jensen's inequality. This is below
    what two steps by group privacy give, e**(2 epsilon) / (e**(2 epsilon) + k - 1), as a short calculation for delta = 0 shows.

    Args:
        cells: k, at least 2.
        epsilon: of all that the attacker sees, for the unit that is somewhere; at least 0.
        delta: of the same, 0 to 1.
        neighbours: "bounded" or "add_remove": what one step of the guarantee is.

    Raises:
        SettingError: a number out of its range, or other neighbours.

    Source:
        The same argument as for two hypotheses, `membership_bound`; k-ary randomized response is in Kairouz, Oh, Viswanath, "Extremal
        mechanisms for local differential privacy", JMLR 2016, Section 2.

    >>> round(guess_bound(64, 1), 4), round(guess_bound(64, 1, neighbours="bounded"), 4)
    (0.0425, 0.0414)
    """
    if cells < 2 or not epsilon >= 0 or not 0 <= delta <= 1 or neighbours not in (ADD_REMOVE, BOUNDED):
        raise SettingError(
            "A bound takes at least 2 cells, epsilon of at least 0, delta from 0 to 1, and neighbours add_remove or bounded."
        )
    shrink = math.exp(-epsilon)
    if neighbours == BOUNDED:
        return min(1.0, (1 + (cells - 1) * delta * shrink) / (1 + (cells - 1) * shrink))
    return min(1.0, 1 - shrink * (1 - 1 / cells - delta), math.exp(min(epsilon, 700.0)) / cells + delta)


def membership_success(epsilon: Sequence[float]) -> float:
    """Return the exact probability that the best attacker wins on noisy counts, in each of which the unit is one record or none.

    Proof: a count with discrete Laplace noise of scale 1 / e favours "in" exactly if it is above that of the others, and then its log-odds
    are e, else -e (`membership_log_odds`). That is right with probability 1 / (1 + exp(-e)), in or out: P(noise >= 0) is 1 / (1 + exp(-e)),
    and P(noise >= 1) is the rest. So t counts say no more than t independent answers, and the best attacker wins with half the sum of the
    larger probabilities of all 2**t patterns. A single count attains `membership_bound`; several that share an epsilon stay below it.

    Args:
        epsilon: (t,) epsilon of each count for the unit, t up to 20.

    Raises:
        SettingError: more than 20 counts, or a negative epsilon.

    >>> [round(membership_success([1 / t] * t), 4) for t in (1, 3, 12)], round(membership_bound(1), 4)
    ([0.7311, 0.6227, 0.5562], 0.7311)
    """
    rates = np.asarray(epsilon, np.float64)
    if len(rates) > _MOST_COUNTS or not (rates >= 0).all():
        raise SettingError(f"Exact success is computed for up to {_MOST_COUNTS} counts, each with an epsilon of at least 0.")
    within, without = np.ones(1), np.ones(1)
    for right in 1 / (1 + np.exp(-rates)):
        within, without = np.outer(within, [right, 1 - right]).ravel(), np.outer(without, [1 - right, right]).ravel()
    return float(np.maximum(within, without).sum() / 2)


def guess_success(places: int, counts: int, epsilon: float) -> float:
    """Return the exact probability that the best attacker names the place of one record, after noisy counts of all places.

    Proof: let Q be the distribution of the counts without the record, and P_i with the record at place i. Each count is an answer as in
    `membership_success`, and P_i / Q is e**epsilon if the count of place i says "in", else e**-epsilon. The best guess wins with the sum
    over all answers of max P_i, over k. The largest ratio is e**epsilon unless all n counts say "out", with probability Q of p**n for
    p = 1 / (1 + exp(-epsilon)). So it is (e**epsilon (1 - p**n) + e**-epsilon p**n) / k: below e**epsilon / k, but near it for many counts.

    Args:
        places: k, all equally likely, at least 2.
        counts: n, in how many separate counts they are: k, or fewer if some places share one.
        epsilon: of each count for the record, at least 0.

    Raises:
        SettingError: a number out of its range.

    >>> [round(guess_success(8, counts, 1), 4) for counts in (8, 1)], round(guess_bound(8, 1), 4)
    ([0.3158, 0.125], 0.3398)
    """
    if places < 2 or not 1 <= counts <= places or not epsilon >= 0:
        raise SettingError(
            "Exact success takes at least 2 places, in 1 count or more, but not more than places, and epsilon of at least 0."
        )
    shrink = math.exp(-epsilon)
    power = -counts * math.log1p(shrink)
    some = -math.expm1(power) / shrink if shrink else float(counts)
    return (some + shrink * math.exp(power)) / places


def membership_log_odds(noisy: Integers, others: Integers, epsilon: Sequence[float], shift: int = 1) -> Floats:
    """Return the log-odds that a unit is counted in each of several noisy counts, rather than in none of them.

    The attacker knows the number of others in each count. By the lemma of Neyman and Pearson, no test on the same counts wins more often
    than to say "in" where the log-odds are at least 0.

    Args:
        noisy: (..., t) counts with independent discrete Laplace noise of scale `shift` / epsilon.
        others: (..., t) the true counts without the unit.
        epsilon: (t,) epsilon of each count for the unit.
        shift: records by which the unit changes every count.

    Returns:
        (...,) natural logarithms of P(counts | in) / P(counts | out).

    >>> noisy, others = np.array([[8, 12], [7, 9]]), np.array([7, 9])
    >>> membership_log_odds(noisy, others, [0.5, 1.0]).tolist()
    [1.5, -1.5]
    """
    excess = noisy - others
    rate = np.asarray(epsilon, np.float64) / shift
    return np.asarray(((np.abs(excess) - np.abs(excess - shift)) * rate).sum(axis=-1), np.float64)


def gaussian_log_odds(noisy: Integers, others: Integers, variance: Sequence[float], shift: int = 1) -> Floats:
    """Return log-odds as `membership_log_odds`, for counts with independent discrete Gaussian noise.

    Args:
        noisy: (..., t) noisy counts.
        others: (..., t) the true counts without the unit.
        variance: (t,) the parameter of the noise of each count.
        shift: records by which the unit changes every count.

    >>> gaussian_log_odds(np.array([[9, 12]]), np.array([7, 9]), [4.0, 4.0]).tolist()
    [1.0]
    """
    gain = (2 * (noisy - others) - shift) * shift / (2 * np.asarray(variance, np.float64))
    return np.asarray(gain.sum(axis=-1), np.float64)


def count_wins(guesses: NDArray[np.generic], truth: NDArray[np.generic]) -> Success:
    """Count the games in which the attacker guessed right.

    Args:
        guesses: (games,) what the attacker said.
        truth: (games,) what is true.

    >>> count_wins(np.array([True, False, True]), np.array([True, True, True]))
    Success(wins=2, games=3)
    """
    return Success(wins=int((guesses == truth).sum()), games=len(truth))
