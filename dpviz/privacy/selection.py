"""Private selection: choose one of several candidates by their scores, for many nodes at once, with exact probabilities.

Scores are whole numbers of known sensitivity. The choice is made by permute-and-flip or by the exponential mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.errors import BudgetError, InputError, check_choice
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.inversion import exp_minus, toss_coins
from dpviz.privacy.receipt import Step

LARGEST_SCORE = 2**61
_FLOAT_ERROR = 2.0**-44  # bound on the relative error of floating-point probabilities and scores


def permute_and_flip(scores: Integers, valid: Mask, budget: PureBudget, entropy: Entropy, sensitivity: int = 1) -> Integers:
    """Choose one candidate per node, better ones with higher probability. No two nodes share a record.

    A candidate whose score is g below the best one of its node tosses a coin with P(heads) = exp(-epsilon g / (2 sensitivity)); the
    best one always has heads. Then one of the candidates with heads is chosen uniformly.

    The published algorithm visits the candidates in random order and takes the first with heads. The coins do not depend on the
    order, and in a random order each of the candidates with heads is equally likely to be the first. So the distribution is the same.

    Args:
        scores: (n, k) whole numbers within 2**61 of 0, larger is better. One unit changes each of them by at most `sensitivity`.
        valid: (n, k) which entries are candidates, at least one per node. PUBLIC.
        budget: spent once for all nodes together.
        entropy: source of random bits.
        sensitivity: a whole number, at least 1.

    Returns:
        (n,) columns of the chosen candidates. The distribution is exact: see `dpviz.privacy.inversion.toss_coins`.

    Raises:
        BudgetError: the budget is not a PureBudget, or the sensitivity is below 1.
        InputError: a score is beyond 2**61, or a node has no candidate.

    Privacy:
        The same distribution results from choosing the largest score_i + E_i, with independent E_i, exponential with mean
        2 sensitivity / epsilon (Ding et al.). Fix all E_j but that of candidate i. Then i is chosen if E_i exceeds some t. On a
        neighbouring input, every score changes by at most the sensitivity, so t rises by at most 2 sensitivity. And for every t,
        P(E_i > t + 2 sensitivity) >= exp(-epsilon) P(E_i > t). So the probability of i falls by a factor of at most exp(epsilon).

    Source:
        McKenna, Sheldon, "Permute-and-flip: a new mechanism for differentially private selection", NeurIPS 2020, Algorithm 1;
        Ding et al., "The permute-and-flip mechanism is identical to report-noisy-max with exponential noise", 2021.
    """
    require_entropy(entropy)
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

    Up to rate gap = 50, the floating-point probability has a relative error below 2**-45. Beyond, the probability is below 2**-72,
    where `toss_coins` allows an absolute error of 2**-60.
    """
    probability = np.exp(-gap * float(rate))
    return toss_coins(probability, _FLOAT_ERROR, lambda index: exp_minus(int(gap[index]) * rate), entropy)


LAWS = ("permute-and-flip", "exponential mechanism")
GRAIN = 2**20
SENSITIVITY = Fraction(GRAIN + 1, GRAIN)
_MOST_BITS = 48


@dataclass(frozen=True, kw_only=True, repr=False)
class Scores:
    """The errors by which one of several candidates is chosen. PRIVATE, except for the sensitivities.

    Attributes:
        error: one whole number per candidate; smaller is better.
        sensitivity: one whole number per candidate: the most by which one record can change its error.
    """

    error: tuple[int, ...]
    sensitivity: tuple[int, ...]

    def scaled(self) -> list[int]:
        """Per candidate, its error in units of sensitivity / 2**20, rounded down.

        Returns:
            Whole numbers; one record changes each by at most 2**20 + 1.
        """
        pairs = zip(self.error, self.sensitivity, strict=True)
        return [min(error * GRAIN // sensitivity, LARGEST_SCORE) for error, sensitivity in pairs]


def clipped_scores(errors: Floats, truth: Integers, rho: float, clip: float, moved: Sequence[float], inside: int) -> Scores:
    """Scores of candidates by clipped relative error: rho * min(clip, error / max(truth, rho)), summed over query boxes.

    All candidates get the largest sensitivity, so that a candidate with a smaller error is always more probable.

    Args:
        errors: (c, q) bounds on the absolute error of c candidates on q boxes, at least 0, in records. PRIVATE.
        truth: (q,) true counts of the boxes. PRIVATE.
        rho: the sanity bound: relative errors of smaller counts are taken relative to rho. A public number above 0, in records.
        clip: B, the largest relative error; above 0.
        moved: (c,) bounds on the change of `errors` that one record causes, summed over the boxes. PUBLIC.
        inside: the largest number of boxes that contain one point. PUBLIC.

    Returns:
        Errors and sensitivities in one whole unit, at least 2**-20 records.

    Privacy:
        Let one record be added, and consider one box. Let u and u' be its error bound before and after, and w = |u' - u|. Let d and
        d' be its true count before and after: d' = d + h, where h is 1 if the box contains the record, else 0. Let v = max(d, rho),
        v' = max(d', rho), f = min(B, u / v) and f' = min(B, u' / v'). Then v <= v' <= v + h.

        If f' > f, then f = u / v < B. As v' >= v >= rho, f' - f <= u' / v' - u / v <= (u' - u) / v <= w / rho.

        If f' < f, then f' = u' / v' < B. Let x = min(u, B v), so that f = x / v and u' >= x - w. Then
        f - f' <= x / v - (x - w) / v' = x (v' - v) / (v v') + w / v'. As x <= B v, this is at most (B (v' - v) + w) / v',
        and so at most (B h + w) / rho.

        So rho |f' - f| <= w + B h in either case. Summed over the boxes, the change is at most (sum of w) + B * inside. (For a grid,
        w <= 1, so one box changes by at most (1 + B) / rho, and so does the mean over boxes.) Removing a record is the same change
        backwards, and m records are m such steps.

        Rounding: rho f is rounded down to a whole number of units, which changes a difference by less than 1 unit per box. The
        floating-point error of rho f is below 2**-45 (rho + B rho), provided that u is computed without cancellation, with an error
        of at most 2**-46 relative to the larger of u and v. Twice that error is added per box, rounded up. Sums of whole numbers
        are exact.
    """
    largest = clip * rho
    capped = np.minimum(errors / np.maximum(truth, rho), clip) * rho
    unit = _unit(largest)
    error = np.floor(capped / unit).astype(np.int64).sum(axis=1)
    sensitivity = math.ceil((max(moved) + clip * inside) / unit * (1 + _FLOAT_ERROR)) + capped.shape[1] * _rounding(rho + largest, unit)
    return Scores(error=tuple(error.tolist()), sensitivity=(sensitivity,) * len(error))


def bounded_scores(errors: Floats, truth: Integers, rho: float, largest: float, mean_moves: Sequence[float]) -> Scores:
    """Scores of candidates by relative error without clipping: rho * error / max(truth, rho), summed over query boxes.

    Each candidate has a sensitivity of its own.

    Args:
        errors: (c, q) bounds on the absolute error of c candidates on q boxes, from 0 to `largest`, in records. PRIVATE.
        truth: (q,) true counts of the boxes. PRIVATE.
        rho: the sanity bound, a public number above 0, in records.
        largest: public upper bound on `errors`.
        mean_moves: (c,) bounds on the change of the mean of errors / max(truth, rho) that one record causes. PUBLIC.

    Returns:
        Errors and sensitivities in one whole unit, at least 2**-20 records.

    Privacy:
        The caller proves `mean_moves`. Rounding is covered as in `clipped_scores`.
    """
    unit = _unit(largest)
    relative = errors / np.maximum(truth, rho) * rho
    error = np.floor(relative / unit).astype(np.int64).sum(axis=1)
    rounding, boxes = _rounding(rho + largest, unit), relative.shape[1]
    sensitivity = [math.ceil(boxes * rho * move / unit * (1 + _FLOAT_ERROR)) + boxes * rounding for move in mean_moves]
    return Scores(error=tuple(error.tolist()), sensitivity=tuple(sensitivity))


def choose(scores: Scores, step: Step, bound: int, entropy: Entropy) -> int:
    """Choose one candidate; candidates with smaller errors are more probable.

    Args:
        scores: the errors of the candidates.
        step: the receipt's step of the choice, made by `choice_step`; it has the epsilon to spend and the method.
        bound: m, the most records of one unit.
        entropy: source of random bits.

    Returns:
        The index of the chosen candidate.

    Privacy:
        Errors are divided by their sensitivities, so that one record changes each by at most 1, and then rounded down to a multiple
        of 2**-20, so that it changes each by at most 1 + 2**-20. Both methods then cost epsilon: permute-and-flip as proved in
        `permute_and_flip`; the exponential mechanism, P(i) proportional to exp(-epsilon g / (2 sensitivity)), by McSherry, Talwar,
        FOCS 2007, Theorem 6.
    """
    values, sensitivity = np.array([scores.scaled()], np.int64), bound * (GRAIN + 1)
    if step.noise == LAWS[0]:
        valid = np.ones(values.shape, np.bool_)
        return int(permute_and_flip(-values, valid, PureBudget(step.amount), entropy, sensitivity)[0])
    return _exponential_choice(values[0], step.amount / (2 * sensitivity), entropy)


def choice_step(purpose: str, amount: Fraction, method: str, bound: int, candidates: int) -> Step:
    """The receipt's step for a choice. Its sensitivity and scale refer to errors divided by their own sensitivities.

    Args:
        purpose: a text that says what is chosen.
        amount: the epsilon to spend.
        method: one of `LAWS`.
        bound: m, the most records of one unit.
        candidates: the number of candidates.

    Raises:
        SettingError: the method is unknown.
    """
    check_choice(method, LAWS, "The method of the choice")
    sensitivity = bound * SENSITIVITY
    return Step(purpose=purpose, amount=amount, sensitivity=sensitivity, noise=method, scale=sensitivity / amount, counts=candidates)


def _exponential_choice(errors: Integers, rate: Fraction, entropy: Entropy) -> int:
    """Choose i with probability exactly proportional to exp(-rate errors[i]).

    Rejection: a uniformly random candidate is accepted with probability exp(-rate (its error - the smallest error)).
    """
    gap = errors - errors.min()
    while True:
        index = int(entropy.below(len(gap), 1)[0])
        if _toss_coin(int(gap[index]) * rate, entropy):
            return index


def _toss_coin(exponent: Fraction, entropy: Entropy) -> bool:
    """One coin with P(True) = exp(-exponent), exactly. Beyond 800 the floating-point value is 0; `toss_coins` allows that error."""
    share = np.exp([-float(min(exponent, Fraction(800)))])
    return bool(toss_coins(share, _FLOAT_ERROR, lambda _: exp_minus(exponent), entropy)[0])


def _unit(largest: float) -> float:
    """The unit of scores: 2**-20, or a larger power of two if `largest` would exceed 2**48 units, so that sums fit 64 bits."""
    return 2.0 ** -min(20, _MOST_BITS - math.ceil(math.log2(largest)))


def _rounding(magnitude: float, unit: float) -> int:
    return 1 + math.ceil(_FLOAT_ERROR * magnitude / unit)
