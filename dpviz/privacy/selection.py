"""Choosing one of a few candidates for many nodes at once: permute-and-flip with exact coins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpviz.errors import BudgetError, InputError
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import coins, exp_minus

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

LARGEST_SCORE = 2**61
_FLOAT_ERROR = 2.0**-44


def permute_and_flip(scores: Integers, valid: Mask, budget: PureBudget, entropy: Entropy, sensitivity: int = 1) -> Integers:
    """Choose one candidate per node, better ones more often; the nodes share no record, so the budget is spent once for all.

    A candidate whose score is g below the best of its node shows heads with p = exp(-epsilon g / (2 sensitivity)), the best one
    always; one of the heads is chosen, all alike. Looking at the candidates in random order and taking the first that shows
    heads is the same law, since the order has nothing to do with the coins: P(i) is the integral over t from 0 to 1 of
    p_i times the product of 1 - t p_j over all j but i.

    Args:
        scores: (n, k) whole, larger is better, within 2**61 of 0; one unit changes each of them by `sensitivity` at most.
        valid: (n, k) public: which entries are candidates at all, at least one per node.
        budget: spent once for all nodes together.
        entropy: where randomness comes from.
        sensitivity: a whole number, at least 1.

    Returns:
        (n,) chosen places. The law is exact: coins that floating point leaves open are settled with as many digits as it takes.

    Raises:
        BudgetError: not a PureBudget, or a sensitivity below 1.
        InputError: scores beyond 2**61, or a node without a candidate.

    Privacy:
        The same law is that of the largest of score + E, E exponential with mean 2 sensitivity / epsilon. Given all E but that
        of i, i is chosen if its E exceeds some t; on a neighbouring input t rises by 2 sensitivity at most, and P(E > t + 2
        sensitivity) >= exp(-epsilon) P(E > t) for every t.

    Source:
        McKenna, Sheldon, "Permute-and-flip: a new mechanism for differentially private selection", NeurIPS 2020, Algorithm 1;
        Ding et al., "The permute-and-flip mechanism is identical to report-noisy-max with exponential noise", 2021.
    """
    if not isinstance(budget, PureBudget):
        raise BudgetError("Permute-and-flip takes a PureBudget(epsilon).")
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int | np.integer) or sensitivity < 1:
        raise BudgetError("The sensitivity must be a whole number, at least 1.")
    if not valid.any(axis=1).all():
        raise InputError("Every node needs a candidate.")
    if len(scores) and not -LARGEST_SCORE <= scores[valid].min() <= scores[valid].max() <= LARGEST_SCORE:
        raise InputError("Scores must lie within 2**61 of zero.")
    best = np.where(valid, scores, -LARGEST_SCORE).max(axis=1, initial=-LARGEST_SCORE)
    gap = np.where(valid, best[:, None] - scores, 0)
    heads = valid & (gap == 0)
    tossed = np.nonzero(gap)
    heads[tossed] = _exp_coins(gap[tossed], budget.epsilon / (2 * int(sensitivity)), entropy)
    chosen = entropy.below_each(heads.sum(axis=1))
    return np.asarray(np.argmax(np.cumsum(heads, axis=1) > chosen[:, None], axis=1), np.int64)


def _exp_coins(gap: Integers, rate: Fraction, entropy: Entropy) -> Mask:
    """(n,) coins with P(True) = exp(-rate gap), exactly.

    Up to rate gap = 50 floating point knows the probability to a relative 2**-45; beyond, it is below 2**-72 anyway, which is
    within what `coins` leaves open.
    """
    share = np.exp(-gap * float(rate))
    return coins(share, _FLOAT_ERROR, lambda place: exp_minus(int(gap[place]) * rate), entropy)
