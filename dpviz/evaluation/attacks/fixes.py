"""One person's many fixes: which of k homes the person's whole trace belongs to, with the record or the person as protected unit.

The game: one of k homes is drawn, all with probability 1/k, and the person's whole trace is moved there. A release counts the fixes of
everybody in the cells of a grid, with discrete Laplace noise. The attacker knows the records of all others, the k traces fix by fix,
which fixes of each are kept, and the noise's scale; everything but the home. The attacker sees the release, names a home, and wins if it
is the right one.

*The person as unit.* At most m fixes of a person are kept, so that a person changes the counts by at most m in all, and the noise has scale
m / epsilon. The release is epsilon-DP for adding or removing a person, whatever the rule that chooses the fixes: it looks at one person's
records only. The data with the person at home i are one such step from the data without the person, the same for every i, so the
attacker wins with probability at most `guess_bound(k, epsilon)`.

*The record as unit.* All g fixes are kept and the noise has scale 1 / epsilon. Between the data with and without the person lie g steps, so
the same argument holds with g epsilon in place of epsilon (group privacy: Dwork, Roth, "The algorithmic foundations of differential
privacy", 2014, Theorem 2.2). For g = 50,000 and epsilon = 1 the bound is 1 but for a part of e**-50000: nothing is promised, and nothing
is kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Mask
from dpviz.evaluation.attacks.game import Success, count_wins, guess_bound
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.noise import discrete_laplace


def group_bound(homes: int, epsilon: float, fixes: int) -> float:
    """Return the largest probability to name the home of a person with `fixes` records, where each record is protected by epsilon.

    >>> group_bound(8, 1.0, 50_000), round(group_bound(8, 1.0, 1), 3)
    (1.0, 0.34)
    """
    return guess_bound(homes, epsilon * fixes)


def home_scores(noisy: NDArray[np.number], others: Integers, traces: Integers, rate: float) -> Floats:
    """Return the log-likelihood of each home, but for a constant: -rate times the sum of |noise| that the home would mean.

    Args:
        noisy: (games, cells) released counts.
        others: (cells,) counts of everybody else.
        traces: (k, cells) kept fixes of the person in each cell, for each home.
        rate: 1 / scale of the discrete Laplace noise: epsilon / m.

    Returns:
        (games, k) logarithms.
    """
    noise = np.asarray(noisy - others, np.float64)
    visited = ((trace, np.flatnonzero(trace)) for trace in traces)  # in other cells all homes mean the same noise
    gains = [np.abs(noise[:, cells]).sum(axis=1) - np.abs(noise[:, cells] - trace[cells]).sum(axis=1) for trace, cells in visited]
    return np.asarray(rate * np.stack(gains, axis=1), np.float64)


def guess_homes(noisy: NDArray[np.number], others: Integers, traces: Integers, rate: float) -> Integers:
    """Name the most likely home after each release.

    With equally likely homes no attack on the same release wins more often (Bayes). Arguments as of `home_scores`.

    Returns:
        (games,) indices of homes.

    >>> traces = np.array([[9, 0, 1], [0, 9, 1]])
    >>> guess_homes(np.array([[12, 4, 7], [3, 11, 6]]), np.array([3, 3, 3]), traces, 1.0).tolist()
    [0, 1]
    """
    return np.asarray(home_scores(noisy, others, traces, rate).argmax(axis=1), np.int64)


def play_homes(traces: Integers, epsilon: float, most: int, games: int, entropy: Entropy) -> Success:
    """Play the game on noisy counts of the cells; the others' counts, which the attacker knows and subtracts, are left out.

    Args:
        traces: (k, cells) kept fixes of the person in each cell, for each home; at most `most` in all for each.
        epsilon: of a release, for the unit.
        most: m, the most by which the unit changes the counts: 1 if the unit is a record.
        games: how many releases are attacked.
        entropy: source of random bits.

    >>> traces = np.array([[50, 0], [0, 50]])
    >>> play_homes(traces, 1.0, 1, 20, Entropy.seeded(1)).rate
    1.0
    """
    homes = require_entropy(entropy).below(len(traces), games)
    visited = np.flatnonzero(traces.any(axis=0))
    counts = traces[:, visited]
    noisy = discrete_laplace(counts[homes].ravel(), PureBudget(epsilon), entropy, most).reshape(games, len(visited))
    return count_wins(guess_homes(noisy, np.zeros(len(visited), np.int64), counts, epsilon / most), homes)


def find_trace(noisy: NDArray[np.number], others: Integers, rate: float) -> Mask:
    """Find cells that the person has visited, without knowing anything about the trace.

    A cell is found if what is left without the others is more than ln(cells) / rate, which noise alone passes in less than one cell on
    average.

    Args:
        noisy: (cells,) released counts.
        others: (cells,) counts of everybody else.
        rate: 1 / scale of the noise.

    Returns:
        (cells,) which cells are found.

    >>> find_trace(np.array([5, 61, 8]), np.array([4, 20, 9]), 1.0).tolist()
    [False, True, False]
    """
    return np.asarray(noisy - others > np.log(len(others)) / rate, np.bool_)
