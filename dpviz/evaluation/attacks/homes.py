"""Homes: where somebody lives follows from a few jittered points, and hardly from a private release of the same points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.evaluation.attacks.game import Table, membership_log_odds

_TIE = 1e-9


def count_discs(points: Integers, candidates: Integers, radius: float, cell: tuple[float, float] = (1.0, 1.0)) -> Integers:
    """Count, for each candidate cell, the jittered points that can have come from its middle.

    Every point lies within the radius of the true place, so the true place lies within the radius of every point: in the intersection of
    the discs. As points are published by their cell, a disc is widened to the nearest edge of that cell, and no true place is lost.

    Args:
        points: (n, 2) columns and rows of the cells of one person's jittered points, n up to some thousands.
        candidates: (k, 2) columns and rows of cells in which the person may live.
        radius: of the jitter, in the unit of `cell`.
        cell: width and height of a cell.

    Returns:
        (k,) numbers of points, n for a candidate that explains all of them.

    >>> points = np.array([[2, 0], [6, 0]])
    >>> count_discs(points, np.array([[0, 0], [4, 0], [7, 0]]), 2.0).tolist()
    [1, 2, 1]
    """
    gaps = np.maximum(np.abs(points[:, None, :] - candidates[None, :, :]) - 0.5, 0.0) * np.asarray(cell)
    return np.asarray(((gaps**2).sum(axis=2) < radius**2).sum(axis=0), np.int64)


def guess_home(points: Integers, candidates: Integers, area: Table, radius: float, cell: tuple[float, float] = (1.0, 1.0)) -> int:
    """Guess the area in which somebody lives: the one with the most candidates in the most discs.

    With even jitter in a disc every candidate that explains all points is about equally likely, and no other is possible. So the guess is
    the most likely area. Points that are not from home make no candidate impossible: the most discs then decide.

    Args:
        points: (n, 2) columns and rows of the cells of one person's jittered points.
        candidates: (k, 2) columns and rows of cells in which the person may live.
        area: (k,) the area of each candidate.
        radius: of the jitter, in the unit of `cell`.
        cell: width and height of a cell.

    Source:
        Krumm, "Inference attacks on location tracks", Pervasive 2007: homes behind perturbed tracks. Hassan, Hussain, Bates, "Analysis
        of privacy protections in fitness tracking social networks", USENIX Security 2018: intersections of circles around homes.

    >>> column = np.arange(8)
    >>> guess_home(np.array([[2, 0], [6, 0]]), np.stack([column, 0 * column], axis=1), column // 2, 2.0)
    2
    """
    discs = count_discs(points, candidates, radius, cell)
    return int(np.bincount(area, weights=discs == discs.max()).argmax())


def home_log_odds(
    noisy: Sequence[Integers], others: Sequence[Integers], tables: Sequence[Table], epsilon: Sequence[float], shift: int
) -> Floats:
    """Return the log-odds that a person lives in each area, rather than that there is no such person, from noisy counts.

    The attacker knows everybody else. The person's records are all in one area; every table counts them in one region. By Bayes' theorem
    the beliefs in areas that were equally likely are proportional to e to the power of these numbers, so the largest is the best guess.

    Args:
        noisy: for each table (..., regions) counts with independent discrete Laplace noise of scale `shift` / epsilon.
        others: for each table (regions,) the true counts without the person.
        tables: for each table (areas,) the region of each area, such as the levels of a tree.
        epsilon: epsilon of each table for the person.
        shift: records of the person.

    Returns:
        (..., areas) natural logarithms of P(counts | home there) / P(counts | no such person).

    >>> noisy = [np.array([9, 2]), np.array([5, 4, 1, 1])]
    >>> others = [np.array([6, 2]), np.array([3, 3, 1, 1])]
    >>> home_log_odds(noisy, others, [np.array([0, 0, 1, 1]), np.arange(4)], [0.5, 0.5], 2).tolist()
    [1.0, 0.5, -1.0, -1.0]
    """
    found = zip(noisy, others, tables, epsilon, strict=True)
    gains = [membership_log_odds(seen[..., None], known[..., None], [rate], shift)[..., table] for seen, known, table, rate in found]
    return np.asarray(sum(gains), np.float64)


def guess_area(log_odds: Floats, coins: Floats) -> Integers:
    """Guess the likeliest area of each game; equally likely ones are decided by coins.

    Args:
        log_odds: (games, areas) from `home_log_odds`.
        coins: (games, areas) even random numbers from 0 to 1.

    >>> guess_area(np.array([[1.0, 0.5, 1.0]]), np.array([[0.2, 0.9, 0.3]])).tolist()
    [2]
    """
    best = log_odds >= log_odds.max(axis=-1, keepdims=True) - _TIE
    return np.asarray(np.where(best, coins, -1.0).argmax(axis=-1), np.int64)
