"""Private medians by smooth sensitivity, for all nodes of a level at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.errors import BudgetError
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.node_values import NodeValues, move_inside
from dpviz.privacy.noise import rounded_laplace

ROUNDING = 2.0**-36
"""Upper bound on the relative error of computed sensitivities. They are increased by it, so that they are never too small."""
_NEARLY_BEST = 1 - 2.0**-40
"""A value counts as equal to the best one, up to rounding, from this share of it on."""


def smooth_medians(
    nodes: NodeValues, budget: ApproxBudget, entropy: Entropy, contributions: int = 1, *, outside: str = "nearest"
) -> Integers:
    """Split lines at the median plus Laplace noise of scale b = 2 S / epsilon, S the smooth sensitivity of the median.

    Args:
        nodes: the records; no two nodes share one.
        budget: spent once for all nodes together, however the records of a unit are distributed over them.
        entropy: source of random bits.
        contributions: m, the most records of one protected unit.
        outside: what replaces a noisy median outside its node: the "nearest" line, or the "middle" of the node.

    Returns:
        (n,) lines, low + 1 to high - 1: the one just above median + noise. For m records per unit, the scale is b = 2 m S / epsilon.

    Privacy:
        Several records per unit. The m records of a unit may lie in one node or in m different ones. All lines together are
        (e, d)-DP for one record, with e = epsilon / m and d = delta / (m exp(epsilon)). Adding m records one after the other costs
        m e = epsilon, and d (1 + exp(e) + ... + exp((m - 1) e)) <= delta. The rest of the proof is for one record, which lies in one
        node; epsilon and delta stand for e and d.

        What must be shown. The noise has the exact Laplace distribution of scale b, rounded and cut to the node, which is post-processing.
        So it is enough to compare median + continuous noise on two neighbouring inputs. Between them the median moves by at most S, and S
        may be taken from either input: with b = 2 S / epsilon, moving it costs a factor of exp(epsilon / 2). And b changes by a factor of
        exp(L), |L| <= xi, since S is smooth (see `smooth_sensitivity`). Change the scale first, at the median of the input with the larger
        scale, and then move the median, at the smaller scale.

        Changing the scale. Let b be the larger scale and b exp(-L) the smaller one, L >= 0, at the same median. At the distance
        z from the median, the ratio of the density of scale b to that of the smaller scale is exp(-L + (exp(L) - 1) z / b). It exceeds
        exp(epsilon / 2) only if z > t b, where t = (epsilon / 2 + L) / (exp(L) - 1); under scale b that has probability exp(-t).
        The inverse ratio is at most exp(L), and L <= epsilon / 2.

        The size of t. With xi as in Definition 4, epsilon / 2 = 2 xi (1 + ln(2 / delta)). For L <= 1.25, exp(L) - 1 <= 2 L. So
        t >= ln(2 / delta) if L <= xi <= 1. Rounding of S makes L at most xi + 2 r, r = 2**-36. Then still t >= ln(1 / delta) if
        2 r ln(2 / delta) <= xi, which is checked; xi is cut at 1.

    Raises:
        BudgetError: delta is 0; or epsilon is so small, or for several records so large, that the proof would not cover the rounding.
        SettingError: `outside` is unknown.

    Source:
        Nissim, Raskhodnikova, Smith, STOC 2007; Cormode et al., ICDE 2012, Definition 4, both for one record. Groups: Dwork, Roth,
        2014, Theorem 2.2, and Vadhan, "The complexity of differential privacy", 2017, Lemma 2.2.

    >>> ages = NodeValues.of_one(range(20, 60), 0, 100)
    >>> smooth_medians(ages, ApproxBudget(10, 1e-6), Entropy.seeded(1)).tolist()
    [40]
    """
    sensitivity = smooth_sensitivity(nodes, _xi(budget, contributions))
    scale = sensitivity * (float(2 * contributions / budget.epsilon) * (1 + 2.0**-50))
    noise = rounded_laplace(scale, nodes.high.astype(np.int64) - nodes.low, entropy)
    return move_inside(nodes, _medians(nodes)[0] + noise + 1, outside)


def _xi(budget: ApproxBudget, contributions: int) -> float:
    """The rate xi of Definition 4, at most 1, for the e and d of one record (see `smooth_medians`)."""
    if budget.delta == 0:
        raise BudgetError("Smooth sensitivity cannot meet delta = 0: give a delta greater than 0.")
    log_2_over_d = math.log(2) - math.log(budget.delta.numerator) + math.log(budget.delta.denominator)
    if contributions > 1:
        log_2_over_d += math.log(contributions) + float(budget.epsilon)
    xi = min(float(budget.epsilon / contributions) / (4 * (1 + log_2_over_d)), 1.0)
    if xi < 2 * ROUNDING * log_2_over_d:
        size = "too small" if budget.epsilon < 1 else "too large for several records per person"
        raise BudgetError(
            f"epsilon is {size} with smooth sensitivity: the proof would not cover rounding. Change epsilon, or choose another median."
        )
    return xi


def _medians(nodes: NodeValues) -> tuple[Integers, Integers]:
    """Find the lower median of each node.

    Returns:
        (n,) medians, the low end of an empty node; and (n,) their numbers among the node's records in order, from 1, or 0 if it is empty.
    """
    passed_records = np.cumsum(nodes.count, dtype=np.int64)
    records_before = np.concatenate([[0], passed_records])[nodes.start[:-1]]
    number = (nodes.records + 1) // 2
    value, nonempty = nodes.low.astype(np.int64), np.flatnonzero(number)
    value[nonempty] = nodes.value[np.searchsorted(passed_records, (records_before + number)[nonempty])]
    return value, number


def smooth_sensitivity(nodes: NodeValues, xi: float) -> Floats:
    """The smooth sensitivity of each node's median: an upper bound on how far one record can move it.

    Let x_1 <= ... <= x_n be the values of a node's records, x_i the node's low end for i < 1 and its largest value (high - 1) for
    i > n, and c the number of the lower median. The smooth sensitivity is the maximum of exp(-k xi) (x_(c+t) - x_(c+t-k-1)) over
    k >= 0 and 0 <= t <= k + 1. One record more or less shifts the numbers of records by at most one. So each window of k + 1 steps
    around c lies within a window of k + 2 steps around the neighbour's median. Hence the maximum changes by a factor of at most
    exp(xi).

    Computation: written as the maximum of exp(-(j - i - 1) xi) (x_j - x_i) over i <= c <= j, it is a search in a matrix in which the
    best j does not decrease as i grows. By divide and conquer over i, about log(n) rounds suffice, and each of them looks at each j
    about once. Values within rounding of the best one are kept on both sides, so that rounding cannot lose the maximum. The result is
    increased by 2**-36 of itself.

    Args:
        nodes: the records.
        xi: the rate, above 0.

    Returns:
        (n,) distances, in the unit of the values, at least 0.

    Source:
        Nissim, Raskhodnikova, Smith, STOC 2007, Claim 3.3; Cormode et al., ICDE 2012, Definition 4.
    """
    largest = [_find_largest(*_prune(*_make_sides(part, xi))) for part in nodes.batches()]
    return np.concatenate([np.zeros(0), *largest]) * (math.exp(xi) * (1 + ROUNDING))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Side:
    """The possible ends of windows on one side of the medians, node by node, in ascending order.

    Attributes:
        gap: (k,) distance of the end's value from the median, at least 0.
        decay: (k,) exp(-rate steps), where steps is the number of records from the median to the end.
        start: (n + 1,) the ends of node i are start[i]..start[i + 1] - 1; each node has at least one.
    """

    gap: Floats
    decay: Floats
    start: Integers

    def largest_of_node(self, values: Floats) -> Floats:
        """(n,) the largest of the (k,) `values` in each node."""
        return np.asarray(np.maximum.reduceat(values, self.start[:-1]))

    def at_ends(self, values: Floats) -> Floats:
        """(k,) the (n,) `values` of the nodes, repeated for each of their ends."""
        return np.repeat(values, np.diff(self.start))

    def filter(self, keep: NDArray[np.bool_]) -> _Side:
        """The ends for which (k,) `keep` is True."""
        start = np.concatenate([[0], np.cumsum(keep)])[self.start]
        return _Side(gap=self.gap[keep], decay=self.decay[keep], start=start)


def _make_sides(nodes: NodeValues, rate: float) -> tuple[_Side, _Side]:
    """The possible window ends left and right of the medians.

    Of records with the same value only the one nearest to the median is needed. The low or high end of the node is added.
    """
    first_entries, (middle, of_middle) = nodes.first_entries(), _medians(nodes)
    start = np.searchsorted(first_entries, nodes.start)
    sizes = np.diff(start)
    passed_records = np.concatenate([[0], np.cumsum(nodes.count, dtype=np.int64)])
    number = np.repeat(passed_records[nodes.start[:-1]] + of_middle, sizes)
    gap = nodes.value[first_entries] - np.repeat(middle, sizes)
    first_number = passed_records[first_entries] + 1  # numbers of the first and last record with each value
    last_number = passed_records[np.append(first_entries[1:], len(nodes.value))]
    steps_left, steps_right = number - np.minimum(last_number, number), np.maximum(first_number, number) - number
    below = (first_number <= number, -gap, steps_left, middle - nodes.low, of_middle)
    above = (last_number >= number, gap, steps_right, nodes.high - 1 - middle, nodes.records + 1 - of_middle)
    return _make_side(start, *below, rate=rate, last=False), _make_side(start, *above, rate=rate, last=True)


def _make_side(
    start: Integers,
    keep: NDArray[np.bool_],
    gap: Integers,
    steps: Integers,
    gap_to_end: Integers,
    steps_to_end: Integers,
    *,
    rate: float,
    last: bool,
) -> _Side:
    """The window ends for which `keep` is True, with the low or high end of each node added as the first or the last of them."""
    kept_start = np.concatenate([[0], np.cumsum(keep)])[start]
    index = kept_start[1:] if last else kept_start[:-1]
    gap, steps = np.insert(gap[keep], index, gap_to_end), np.insert(steps[keep], index, steps_to_end)
    return _Side(gap=gap.astype(np.float64), decay=np.exp(-rate * steps), start=kept_start + np.arange(len(kept_start)))


def _prune(left: _Side, right: _Side) -> tuple[_Side, _Side]:
    """Remove, on both sides, the ends whose best window is certainly smaller than another window of the node."""
    for _ in range(2):
        product = right.gap * right.decay
        largest = right.largest_of_node(product)
        decay_of_largest = right.largest_of_node(np.where(product == right.at_ends(largest), right.decay, 0.0))
        largest_window = left.largest_of_node(left.decay * (left.at_ends(largest) + left.gap * left.at_ends(decay_of_largest)))
        upper_bound = left.decay * (left.at_ends(largest) + left.gap * left.at_ends(right.largest_of_node(right.decay)))
        left = left.filter(upper_bound >= left.at_ends(largest_window) * _NEARLY_BEST)
        left, right = right, left
    return left, right


def _find_largest(left: _Side, right: _Side) -> Floats:
    """(n,) largest decay_i decay_j (gap_i + gap_j) over the left ends i and right ends j of each node.

    Divide and conquer: the best right end moves in one direction as the left end does. In each round, the left ends whose position in
    the node is an odd multiple of the stride search only between the best right ends of their neighbours at twice the stride.
    """
    sizes = np.diff(left.start)
    index = np.arange(len(left.gap)) - np.repeat(left.start[:-1], sizes) + 1
    low, high = np.repeat(right.start[:-1], sizes), np.repeat(right.start[1:] - 1, sizes)
    size, best = np.repeat(sizes, sizes), np.empty(len(left.gap))
    stride = 1 << int(sizes.max(initial=1)).bit_length()
    while stride := stride // 2:
        current = np.flatnonzero(index & (2 * stride - 1) == stride)
        above, below = current[index[current] > stride], current[index[current] + stride <= size[current]]
        low[above], high[below] = low[above - stride], high[below + stride]
        best[current], low[current], high[current] = _best_right_ends(left, right, current, low[current], high[current])
    return left.largest_of_node(best)


def _best_right_ends(left: _Side, right: _Side, current: Integers, low: Integers, high: Integers) -> tuple[Floats, Integers, Integers]:
    """The best window of each of (r,) left ends, searched among right ends low..high.

    Returns:
        (r,) values, and (r,) first and (r,) last right end whose value equals the best one up to rounding.
    """
    sizes = high - low + 1
    start = np.cumsum(sizes) - sizes
    end = np.arange(sizes.sum()) + np.repeat(low - start, sizes)
    value = right.decay[end] * (np.repeat(left.gap[current], sizes) + right.gap[end])
    best = np.maximum.reduceat(value, start)
    near = value >= np.repeat(best * _NEARLY_BEST, sizes)
    first = np.minimum.reduceat(np.where(near, end, len(right.gap)), start)
    last = np.maximum.reduceat(np.where(near, end, -1), start)
    return left.decay[current] * best, first, last
