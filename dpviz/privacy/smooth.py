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
from dpviz.privacy.node_values import NodeValues, brought_inside
from dpviz.privacy.noise import rounded_laplace

ROUNDING = 2.0**-36
"""Bound on the relative error of computed sensitivities; they are raised by it."""
_NEAR = 1 - 2.0**-40


def smooth_medians(
    nodes: NodeValues, budget: ApproxBudget, entropy: Entropy, contributions: int = 1, *, outside: str = "nearest"
) -> Integers:
    """Split lines at the median plus Laplace noise of scale b = 2 S / epsilon, S the smooth sensitivity of the median.

    Args:
        nodes: the records; no two nodes share one.
        budget: spent once for all nodes together, however a unit's records are spread over them.
        entropy: where randomness comes from.
        contributions: m, records per protected unit.
        outside: what becomes of a noisy median outside its node: "nearest" line, or "middle" of the node.

    Returns:
        (n,) lines, low + 1 to high - 1: the one above median + noise, whose scale is b = 2 m S / epsilon for m records.

    Privacy:
        Several records of a unit: they may lie in one node or in m, where each moves a median of its own by almost all of S. So all
        lines together are (e, d)-DP for one record, e = epsilon / m and d = delta / (m exp(epsilon)), and m records, added one after
        the other, cost m e = epsilon and d (1 + exp(e) + ... + exp((m - 1) e)) <= delta. What follows is for one record, which lies
        in one node, with e and d in place of epsilon and delta.

        Noise is rounded and cut, which is post-processing, and its law is exact for the floating-point b. Between neighbours
        the median moves by at most either S, a factor of exp(epsilon / 2), and b changes by a factor of exp(L), |L| <= xi. Let
        b be the larger scale, and change it first, at its own median: its density exceeds exp(epsilon / 2) times the other's only
        beyond t b, t = (epsilon / 2 + L) / (exp(L) - 1), which has probability exp(-t); the other way round the factor is exp(L)
        at most, and L <= epsilon / 2. With xi as in Definition 4, epsilon / 2 = 2 xi (1 + ln(2 / delta)), and
        exp(L) - 1 <= 2 L up to L = 1.25, so t >= ln(2 / delta). Rounding makes L at most xi + 2 r, r = 2**-36, which leaves
        t >= ln(1 / delta) if 2 r ln(2 / delta) <= xi; that is checked, and xi is cut at 1.

    Raises:
        BudgetError: delta = 0, or an epsilon so small, or for several records so large, that rounding would not be covered.

    Source:
        Nissim, Raskhodnikova, Smith, STOC 2007; Cormode et al., ICDE 2012, Definition 4, both for one record. Groups: Dwork, Roth,
        2014, Theorem 2.2, and Vadhan, "The complexity of differential privacy", 2017, Lemma 2.2.
    """
    sensitivity = smooth_sensitivity(nodes, _xi(budget, contributions))
    scale = sensitivity * (float(2 * contributions / budget.epsilon) * (1 + 2.0**-50))
    noise = rounded_laplace(scale, nodes.high.astype(np.int64) - nodes.low, entropy)
    return brought_inside(nodes, _medians(nodes).value + noise + 1, outside)


def _xi(budget: ApproxBudget, contributions: int) -> float:
    """The rate xi of Definition 4, at most 1, for the e and d that are left for each of a unit's records."""
    if budget.delta == 0:
        raise BudgetError("Smooth sensitivity cannot meet delta = 0: give a delta greater than 0.")
    log = math.log(2) - math.log(budget.delta.numerator) + math.log(budget.delta.denominator)
    if contributions > 1:
        log += math.log(contributions) + float(budget.epsilon)
    xi = min(float(budget.epsilon / contributions) / (4 * (1 + log)), 1.0)
    if xi < 2 * ROUNDING * log:
        size = "too small" if budget.epsilon < 1 else "too large for several records per person"
        raise BudgetError(f"epsilon is {size} with smooth sensitivity: rounding would not be covered. Change it, or choose another median.")
    return xi


@dataclass(frozen=True, kw_only=True, eq=False)
class _Medians:
    """(n,) place of the lower median of each node, its low end if it is empty, and (n,) its 1-based number, 0 if it is empty."""

    value: Integers
    number: Integers


def _medians(nodes: NodeValues) -> _Medians:
    passed = np.cumsum(nodes.count, dtype=np.int64)
    before = np.concatenate([[0], passed])[nodes.start[:-1]]
    number = (nodes.records + 1) // 2
    value, some = nodes.low.astype(np.int64), np.flatnonzero(number)
    value[some] = nodes.value[np.searchsorted(passed, (before + number)[some])]
    return _Medians(value=value, number=number)


def smooth_sensitivity(nodes: NodeValues, xi: float) -> Floats:
    """Smooth upper bounds on how far one record can move the median of each node.

    With x_1..x_n the records in order, x_i the node's low end for i < 1 and its last place for i > n, and c the number of the
    lower median, it is the largest exp(-k xi) (x_(c+t) - x_(c+t-k-1)) over k >= 0, 0 <= t <= k + 1. One record more or less
    shifts numbers by at most one, so a window of k + 1 steps around c lies in one of k + 2 steps of the neighbour: the bound
    changes by a factor of exp(xi) at most.

    As max over i <= c <= j of exp(-(j - i - 1) xi) (x_j - x_i), it is a search in a matrix whose best j rises with i: log(n)
    rounds that look at each j about once serve all i. Near ties stay in the range on both sides, so that rounding cannot lose
    the maximum; the result is raised by 2**-36 of itself.

    Args:
        nodes: the records.
        xi: above 0.

    Returns:
        (n,) in places, at least 0.

    Source:
        Nissim, Raskhodnikova, Smith, STOC 2007, Claim 3.3; Cormode et al., ICDE 2012, Definition 4.
    """
    found = [_largest(*_pruned(*_sides(part, xi))) for part in nodes.batches()]
    return np.concatenate([np.zeros(0), *found]) * (math.exp(xi) * (1 + ROUNDING))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Side:
    """Ends of windows on one side of the medians, node by node, in ascending order.

    Attributes:
        gap: (k,) distance of the end's place from the median, at least 0.
        decay: (k,) exp(-rate steps), steps being records from the median.
        start: (n + 1,) the ends of node i are start[i]..start[i + 1] - 1; at least one each.
    """

    gap: Floats
    decay: Floats
    start: Integers

    def most(self, values: Floats) -> Floats:
        """(n,) largest value of each node."""
        return np.asarray(np.maximum.reduceat(values, self.start[:-1]))

    def at_ends(self, values: Floats) -> Floats:
        """(k,) each node's value at its ends."""
        return np.repeat(values, np.diff(self.start))

    def kept(self, keep: NDArray[np.bool_]) -> _Side:
        """Only some of the ends."""
        start = np.concatenate([[0], np.cumsum(keep)])[self.start]
        return _Side(gap=self.gap[keep], decay=self.decay[keep], start=start)


def _sides(nodes: NodeValues, rate: float) -> tuple[_Side, _Side]:
    """Ends left and right of the medians; of records in one place only those nearest to the median, and the nodes' own ends."""
    head, middle = nodes.heads(), _medians(nodes)
    start = np.searchsorted(head, nodes.start)
    sizes = np.diff(start)
    passed = np.concatenate([[0], np.cumsum(nodes.count, dtype=np.int64)])
    number = np.repeat(passed[nodes.start[:-1]] + middle.number, sizes)
    gap = nodes.value[head] - np.repeat(middle.value, sizes)
    left, right = passed[head] + 1 <= number, passed[np.append(head[1:], len(nodes.value))] >= number
    before, behind = np.minimum(passed[np.append(head[1:], len(nodes.value))], number), np.maximum(passed[head] + 1, number)
    below = (left, -gap, number - before, middle.value - nodes.low, middle.number)
    above = (right, gap, behind - number, nodes.high - 1 - middle.value, nodes.records + 1 - middle.number)
    return _side(start, *below, rate=rate, last=False), _side(start, *above, rate=rate, last=True)


def _side(start: Integers, keep: NDArray[np.bool_], gap: Integers, steps: Integers, *ends: Integers, rate: float, last: bool) -> _Side:
    """The ends that are kept, and the node's own end as the first or the last of them."""
    kept = np.concatenate([[0], np.cumsum(keep)])[start]
    place = kept[1:] if last else kept[:-1]
    gap, steps = np.insert(gap[keep], place, ends[0]), np.insert(steps[keep], place, ends[1])
    return _Side(gap=gap.astype(np.float64), decay=np.exp(-rate * steps), start=kept + np.arange(len(kept)))


def _pruned(left: _Side, right: _Side) -> tuple[_Side, _Side]:
    """Both sides without ends whose best window certainly falls short of one that was found."""
    for _ in range(2):
        drop = right.gap * right.decay
        largest = right.most(drop)
        slowest = right.most(np.where(drop == right.at_ends(largest), right.decay, 0.0))
        found = left.most(left.decay * (left.at_ends(largest) + left.gap * left.at_ends(slowest)))
        most = left.decay * (left.at_ends(largest) + left.gap * left.at_ends(right.most(right.decay)))
        left = left.kept(most >= left.at_ends(found) * _NEAR)
        left, right = right, left
    return left, right


def _largest(left: _Side, right: _Side) -> Floats:
    """(n,) largest decay_i decay_j (gap_i + gap_j) over the left ends i and right ends j of each node.

    Left ends whose place among the node's is an odd multiple of a stride are served between the best right ends of their
    neighbours at twice the stride.
    """
    sizes = np.diff(left.start)
    place = np.arange(len(left.gap)) - np.repeat(left.start[:-1], sizes) + 1
    low, high = np.repeat(right.start[:-1], sizes), np.repeat(right.start[1:] - 1, sizes)
    size, best = np.repeat(sizes, sizes), np.empty(len(left.gap))
    stride = 1 << int(sizes.max(initial=1)).bit_length()
    while stride := stride // 2:
        now = np.flatnonzero(place & (2 * stride - 1) == stride)
        above, below = now[place[now] > stride], now[place[now] + stride <= size[now]]
        low[above], high[below] = low[above - stride], high[below + stride]
        best[now], low[now], high[now] = _served(left, right, now, low[now], high[now])
    return left.most(best)


def _served(left: _Side, right: _Side, now: Integers, low: Integers, high: Integers) -> tuple[Floats, Integers, Integers]:
    """Of (r,) left ends with right ends low..high each: the best value, and the first and last right end that come near it."""
    sizes = high - low + 1
    start = np.cumsum(sizes) - sizes
    end = np.arange(sizes.sum()) + np.repeat(low - start, sizes)
    value = right.decay[end] * (np.repeat(left.gap[now], sizes) + right.gap[end])
    best = np.maximum.reduceat(value, start)
    near = value >= np.repeat(best * _NEAR, sizes)
    first = np.minimum.reduceat(np.where(near, end, len(right.gap)), start)
    last = np.maximum.reduceat(np.where(near, end, -1), start)
    return left.decay[now] * best, first, last
