"""Choosing one of a few candidates, for many nodes at once: permute-and-flip with exact coins, on whole scores of known sensitivity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.errors import BudgetError, InputError, SettingError
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import coins, exp_minus
from dpviz.privacy.receipt import Step

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


LAWS = ("permute-and-flip", "exponential mechanism")
GRAIN = 2**20
SENSITIVITY = Fraction(GRAIN + 1, GRAIN)
_MOST_BITS = 48

_COIN_ERROR = 2.0**-44


@dataclass(frozen=True, kw_only=True, repr=False)
class Scores:
    """What is known of each candidate. PRIVATE, but for the sensitivities.

    Attributes:
        error: per candidate, a whole number; smaller is better.
        sensitivity: per candidate, a whole number: how much one record may change its error at most.
    """

    error: tuple[int, ...]
    sensitivity: tuple[int, ...]

    def scaled(self) -> list[int]:
        """Errors in units of 2**-20 of their sensitivity; one record changes each by 2**20 + 1 at most."""
        pairs = zip(self.error, self.sensitivity, strict=True)
        return [min(error * GRAIN // sensitivity, LARGEST_SCORE) for error, sensitivity in pairs]


def clipped_scores(errors: Floats, truth: Integers, rho: float, clip: float, moved: Sequence[float], inside: int) -> Scores:
    """Mean clipped relative errors of candidates, in records: rho min(clip, error / max(truth, rho)), summed over questions.

    All candidates get the largest sensitivity, so that a smaller error is always the more probable choice.

    Args:
        errors: (c, q) absolute error bounds of c candidates on q boxes, at least 0. PRIVATE.
        truth: (q,) true counts. PRIVATE.
        rho: the sanity bound, a public number above 0.
        clip: B, above 0.
        moved: (c,) bounds on the sum over boxes of how much one record changes `errors`. PUBLIC.
        inside: the largest number of boxes that hold one place. PUBLIC.

    Privacy:
        Let one record be added; for one box write u, u' for the error bound before and after, w = |u' - u|, v = max(d, rho) and
        v' = max(d', rho), where d' is d + 1 if the box holds the record, else d; f = min(B, u / v) and f' = min(B, u' / v').
        If f' > f, then f = u / v < B and f' - f <= u' / v' - u / v <= w / rho, as v' >= v. If f' < f, then f' = u' / v' < B.
        With x = min(u, B v), so that f = x / v and u' >= x - w: f - f' <= x / v - (x - w) / v' = x (v' - v) / (v v') + w / v'
        <= (B (v' - v) + w) / v' <= (B [the box holds the record] + w) / rho, as x <= B v and v' - v <= 1. So rho |f' - f| <= w +
        B [holds it], and the sum over boxes changes by at most (sum of w) + B inside. For a grid w <= 1, which is (1 + B) / rho
        per box and no more in the mean; removing a record is the same change backwards, and m records are m such steps.
        On the machine rho f is rounded down to a whole number of units, which adds less than 1 unit per box. The floating-point
        error of rho f is below 2**-45 (rho + B rho) if u is computed without cancellation, up to an error of 2**-46 relative to
        the larger of u and v (see `Cover`): twice that is added per box, rounded up. Sums of whole numbers are exact.
    """
    largest = clip * rho
    capped = np.minimum(errors / np.maximum(truth, rho), clip) * rho
    unit = _unit(largest)
    error = np.floor(capped / unit).astype(np.int64).sum(axis=1)
    most = math.ceil((max(moved) + clip * inside) / unit * (1 + _FLOAT_ERROR)) + capped.shape[1] * _rounding(rho + largest, unit)
    return Scores(error=tuple(error.tolist()), sensitivity=(most,) * len(error))


def bounded_scores(errors: Floats, truth: Integers, rho: float, largest: float, mean_moves: Sequence[float]) -> Scores:
    """Relative errors that are not clipped, in records, each candidate with a sensitivity of its own.

    Args:
        errors: (c, q) absolute error bounds, from 0 to `largest`. PRIVATE.
        truth: (q,) true counts. PRIVATE.
        rho: the sanity bound, a public number above 0.
        largest: public bound on `errors`.
        mean_moves: (c,) how much one record changes the mean of errors / max(truth, rho). PUBLIC.

    Privacy:
        The sensitivities are the caller's to prove; rounding is as for `clipped_scores`.
    """
    unit = _unit(largest)
    relative = errors / np.maximum(truth, rho) * rho
    error = np.floor(relative / unit).astype(np.int64).sum(axis=1)
    rounding, boxes = _rounding(rho + largest, unit), relative.shape[1]
    sensitivity = [math.ceil(boxes * rho * move / unit * (1 + _FLOAT_ERROR)) + boxes * rounding for move in mean_moves]
    return Scores(error=tuple(error.tolist()), sensitivity=tuple(sensitivity))


def choose(scores: Scores, step: Step, bound: int, entropy: Entropy) -> int:
    """The place of one candidate: any may be chosen, those of small error more often.

    Args:
        scores: of the candidates.
        step: as made by `choice_step`; says what may be spent and by which law.
        bound: m, the most records of one unit.
        entropy: where randomness comes from.

    Privacy:
        Errors are divided by their sensitivities, so that one record changes each by 1 at most, then rounded down to 2**-20:
        by 1 + 2**-20 at most. Both laws then cost epsilon: permute-and-flip as proved in `permute_and_flip`; the exponential
        mechanism, P(i) proportional to exp(-epsilon g / (2 sensitivity)), by McSherry, Talwar, FOCS 2007, Theorem 6.
    """
    values, sensitivity = np.array([scores.scaled()], np.int64), bound * (GRAIN + 1)
    if step.noise == LAWS[0]:
        valid = np.ones(values.shape, np.bool_)
        return int(permute_and_flip(-values, valid, PureBudget(step.amount), entropy, sensitivity)[0])
    return _exponential(values[0], step.amount / (2 * sensitivity), entropy)


def choice_step(purpose: str, amount: Fraction, law: str, bound: int, candidates: int) -> Step:
    """The entry in the receipt: scores are in units of their sensitivity.

    Raises:
        SettingError: an unknown law.
    """
    if law not in LAWS:
        raise SettingError(f"The law of the choice must be one of {', '.join(LAWS)}.")
    sensitivity = bound * SENSITIVITY
    return Step(purpose=purpose, amount=amount, sensitivity=sensitivity, noise=law, scale=sensitivity / amount, counts=candidates)


def _exponential(errors: Integers, rate: Fraction, entropy: Entropy) -> int:
    """P(i) proportional to exp(-rate errors[i]), exactly: any candidate is proposed, and kept with a probability relative to the best."""
    gap = errors - errors.min()
    while True:
        place = int(entropy.below(len(gap), 1)[0])
        if _kept(int(gap[place]) * rate, entropy):
            return place


def _kept(exponent: Fraction, entropy: Entropy) -> bool:
    """One coin with P(True) = exp(-exponent), exactly; beyond 800 floating point has 0, within what `coins` leaves open."""
    share = np.exp([-float(min(exponent, Fraction(800)))])
    return bool(coins(share, _COIN_ERROR, lambda _: exp_minus(exponent), entropy)[0])


def _unit(largest: float) -> float:
    """2**-20, or as much more as keeps `largest` under 2**48 units, so that sums fit 64 bits."""
    return 2.0 ** -min(20, _MOST_BITS - math.ceil(math.log2(largest)))


def _rounding(magnitude: float, unit: float) -> int:
    return 1 + math.ceil(_FLOAT_ERROR * magnitude / unit)
