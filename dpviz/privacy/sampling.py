"""Secrecy of the sample: what a mechanism loses when it sees only some of the records, and the sampling itself."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np

from dpviz.errors import BudgetError
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.node_values import NodeValues

LARGEST_EPSILON = 1000
_GRAIN = 2**64
_FINEST_RATE = 2**62
_RECORDS_AT_ONCE = 2**22


def amplified(epsilon: float, rate: float, contributions: int = 1) -> float:
    """What an epsilon-DP mechanism loses on a sample: ln(1 + p (exp(epsilon) - 1)).

    Args:
        epsilon: of the mechanism on what it is given.
        rate: each record's probability of being in the sample, above 0 and at most 1.
        contributions: m, records per protected unit; p is the probability that any of them is in: 1 - (1 - rate)**m.

    Source:
        Li, Qardaji, Su, ASIACCS 2012, Theorem 1; Balle, Barthe, Gaboardi, NeurIPS 2018, Theorem 8 (delta becomes p delta).
        Tight.
    """
    return math.log1p(_any(rate, contributions) * math.expm1(epsilon))


def amplified_in_paper(epsilon: float, rate: float) -> float:
    """The paper's looser bound, 2 rate exp(epsilon). Source: Cormode et al., ICDE 2012, Theorem 7."""
    return 2 * rate * math.exp(epsilon)


def before_sampling(epsilon: Fraction, rate: Fraction, contributions: int = 1) -> Fraction:
    """The inverse of `amplified`, rounded down to a multiple of 2**-64: what a mechanism on the sample may spend.

    Raises:
        BudgetError: a rate outside (0, 1], or an epsilon over 1,000.
    """
    if not 0 < rate <= 1:
        raise BudgetError("The sampling rate must be above 0 and at most 1.")
    if rate == 1:
        return epsilon
    if epsilon > LARGEST_EPSILON:
        raise BudgetError("Sampling with so large an epsilon hides nothing; set the sampling rate to 1.")
    share = 1 - (1 - rate) ** contributions
    with localcontext() as context:
        context.prec = 60 + int(epsilon)
        value = (1 + ((_decimal(epsilon).exp() - 1) / _decimal(share))).ln() * _GRAIN
        whole = int((value - Decimal("0.001")).to_integral_value(ROUND_FLOOR))
    return Fraction(max(whole, int(epsilon * _GRAIN)), _GRAIN)


def delta_before_sampling(delta: Fraction, rate: Fraction, contributions: int = 1) -> Fraction:
    """What delta a mechanism on the sample may have: delta / p, at most 1/2; p as in `amplified`."""
    return delta if rate == 1 else min(delta / (1 - (1 - rate) ** contributions), Fraction(1, 2))


def thinned(nodes: NodeValues, rate: Fraction, entropy: Entropy) -> NodeValues:
    """The same nodes with each record kept independently with probability `rate`, exactly. Cost grows with the records.

    A rate with more than 62 bits is rounded down to a multiple of 2**-62: fewer records lose no more.
    """
    if rate == 1:
        return nodes
    if rate.denominator > _FINEST_RATE:
        rate = Fraction(int(rate * _FINEST_RATE), _FINEST_RATE)
    kept = np.zeros(len(nodes.count), np.int64)
    ends = np.cumsum(nodes.count, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, _RECORDS_AT_ONCE):
        size = min(_RECORDS_AT_ONCE, total - begin)
        chosen = begin + np.flatnonzero(entropy.below(rate.denominator, size) < rate.numerator)
        np.add.at(kept, np.searchsorted(ends, chosen, side="right"), 1)
    some = kept > 0
    start = np.concatenate([[0], np.cumsum(some)])[nodes.start]
    return NodeValues(value=nodes.value[some], count=kept[some], start=start, low=nodes.low, high=nodes.high)


def _any(rate: float, contributions: int) -> float:
    return -math.expm1(contributions * math.log1p(-rate)) if rate < 1 else 1.0


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
