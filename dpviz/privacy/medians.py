"""Private medians of many nodes at once: split lines with about half of a node's records on each side.

A node's records have whole values from low to high - 1 (see `NodeValues`). A split line s, low < s < high, sends the records with
value < s to one side. The rank of s is the number of records below it; a median has rank n/2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.errors import check_choice
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import exp_minus, toss_coins
from dpviz.privacy.node_values import LARGEST_VALUE, NodeValues, move_inside
from dpviz.privacy.noise import LARGEST_COUNT, discrete_laplace, rounded_laplace

EXPONENTS = ("sharp", "paper")
SLACK = 2.0**-38
"""Bound on the relative error of floating-point weights, which are used for proposals only; see `_compute_tickets`."""


def exponential_medians(
    nodes: NodeValues, epsilon: Fraction, entropy: Entropy, contributions: int = 1, exponent: str = "sharp"
) -> Integers:
    """Split lines by the exponential mechanism: P(s) proportional to exp(-a |rank(s) - n/2|), a = epsilon / contributions.

    rank(s) is the number of a node's n records below the line s. Every line of the node can be chosen, also where there are no records;
    an empty node gets a uniformly random line.

    Args:
        nodes: the records; no two nodes share one.
        epsilon: spent once for all nodes together.
        entropy: source of random bits.
        contributions: m, the most records of one protected unit.
        exponent: "sharp" as above; "paper" uses a = epsilon / (2 m), which costs only half of epsilon.

    Returns:
        (n,) lines, low + 1 to high - 1.

    Privacy:
        Adding a record changes rank(s) by 0 or 1 and n/2 by 1/2. So |rank(s) - n/2| changes by at most 1/2, and the weight of each
        line by a factor of at most exp(a / 2). The sum of all weights changes by at most the same factor. So every probability
        changes by a factor of at most exp(a) = exp(epsilon / m) per record, and by exp(epsilon) for m records. (If n/2 were rounded,
        the distance could change by 1, and the cost would be up to twice that.) The distribution is exact: see `_sample_intervals`.

    Raises:
        SettingError: the exponent is unknown.

    Source:
        McSherry, Talwar, FOCS 2007; Cormode et al., ICDE 2012, Definition 5, whose exponent is epsilon / 2.

    >>> ages = NodeValues.of_one([31, 35, 38, 40, 44], 0, 100)
    >>> exponential_medians(ages, Fraction(10), Entropy.seeded(1)).tolist()
    [40]
    """
    check_choice(exponent, EXPONENTS, "The exponent")
    rate = epsilon / contributions / (1 if exponent == "sharp" else 2)
    return _compute_in_batches(nodes, lambda part: _sample_lines(_make_intervals(part), rate / 2, entropy))


def exact_medians(nodes: NodeValues) -> Integers:
    """The exact medians: the middle one of the lines whose rank is nearest to n/2. NOT PRIVATE: a reference to compare with.

    Args:
        nodes: the records.

    Returns:
        (n,) lines.
    """
    return _compute_in_batches(nodes, lambda part: _find_middle_lines(_make_intervals(part)))


def noisy_mean_medians(
    nodes: NodeValues, epsilon: Fraction, entropy: Entropy, contributions: int = 1, *, outside: str = "nearest"
) -> Integers:
    """Split lines at a noisy mean: half of epsilon is spent on the sum of the values, half on the number of records.

    Args:
        nodes: the records; no two nodes share one.
        epsilon: spent once for all nodes together.
        entropy: source of random bits.
        contributions: m, the most records of one protected unit.
        outside: what replaces a noisy mean outside its node: the "nearest" line, or the "middle" of the node.

    Returns:
        (n,) lines; the middle of the node where the noisy number of records is below 1.

    Raises:
        SettingError: `outside` is unknown.

    Privacy:
        Values are counted from the node's low end, so one record changes their sum by at most high - low - 1. Cutting the sum at
        2**60 does not increase that change. The noise is continuous Laplace noise for this sensitivity, rounded to whole numbers.
        The noise is cut to -2**61..2**61, and the noisy sum to -2**60..2**60. As the sum lies in 0..2**60, noise beyond 2**61 gives
        the same noisy sum as noise of 2**61. So both cuts are functions of the uncut noisy sum: post-processing.

    Source:
        Inan, Kantarcioglu, Ghinita, Bertino, EDBT 2010; Cormode et al., ICDE 2012, Section VI-A.

    >>> ages = NodeValues.of_one([31, 35, 38, 40, 44], 0, 100)
    >>> noisy_mean_medians(ages, Fraction(1000), Entropy.seeded(1)).tolist()
    [38]
    """
    number = discrete_laplace(nodes.records, PureBudget(epsilon / 2), entropy, contributions)
    widths = nodes.high.astype(np.int64) - nodes.low
    sums = _sum_values(nodes)
    scales = np.nextafter((widths - 1) * np.nextafter(float(2 * contributions / epsilon), np.inf), np.inf)
    sums = np.clip(sums + rounded_laplace(scales, 2 * LARGEST_COUNT, entropy), -LARGEST_COUNT, LARGEST_COUNT)
    mean = nodes.low + sums / np.maximum(number, 1) + 0.5
    line = np.where(number < 1, nodes.middle, np.rint(np.clip(mean, -1, LARGEST_VALUE + 1)))
    return move_inside(nodes, line.astype(np.int64), outside)


def cell_medians(nodes: tuple[Integers, Integers], start: Integers, line: Integers, below: Floats, total: Floats) -> Integers:
    """Split lines from noisy counts of the cells of a fixed grid: post-processing of released numbers.

    Args:
        nodes: (n,) low ends and (n,) high ends of the nodes.
        start: (n + 1,) the grid lines inside node i are line[start[i]:start[i + 1]].
        line: (k,) lines of the grid strictly inside the nodes, node by node.
        below: (k,) noisy number of the node's records below each grid line.
        total: (n,) noisy number of all records of each node.

    Returns:
        (n,) the grid line that splits the noisy count most evenly, the first one if several do; the middle of the node if it has no
        grid line inside.

    Source:
        Xiao, Xiong, Yuan, SDM at VLDB 2010; Cormode et al., ICDE 2012, Section VI-A.

    >>> node = np.array([0]), np.array([8])
    >>> cell_medians(node, np.array([0, 3]), np.array([2, 4, 6]), np.array([3.0, 9.0, 14.0]), np.array([20.0])).tolist()
    [4]
    """
    low, high = nodes
    chosen, sizes = (low + high) // 2, np.diff(start)
    nonempty = np.flatnonzero(sizes)
    if nonempty.size:
        difference = np.abs(below - np.repeat(total / 2, sizes))
        least = np.minimum.reduceat(difference, start[nonempty])
        index = np.where(difference == np.repeat(least, sizes[nonempty]), np.arange(len(line)), len(line))
        chosen[nonempty] = line[np.minimum.reduceat(index, start[nonempty])]
    return chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class _Intervals:
    """The split lines of all nodes, grouped into intervals of equal rank.

    Each distinct value of a node has an interval: the lines above the node's next smaller value, up to the value itself. Over all nodes
    these are g intervals. Each of the n nodes has one more, of the lines above its largest value, stored after the g others.

    Attributes:
        first: (g + n,) first line of each interval.
        length: (g + n,) number of lines; may be 0.
        distance: (g + n,) |2 rank - n|: twice the distance of the rank from n/2.
        start: (n + 1,) the intervals of node i are start[i]..start[i + 1] - 1, and g + i.
    """

    first: Integers
    length: Integers
    distance: Integers
    start: Integers

    def least(self, values: NDArray[Any]) -> NDArray[Any]:
        """(n,) smallest value of each node."""
        return self._reduce(np.minimum, values)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """(n,) sum of each node's values."""
        return self._reduce(np.add, values)

    def _reduce(self, ufunc: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        g, nonempty = self.start[-1], np.flatnonzero(np.diff(self.start))
        reduced = values[g:].copy()
        if nonempty.size:
            reduced[nonempty] = ufunc(reduced[nonempty], ufunc.reduceat(values[:g], self.start[nonempty]))
        return reduced

    def at_intervals(self, values: NDArray[Any]) -> NDArray[Any]:
        """(g + n,) each node's value at its intervals."""
        return np.concatenate([np.repeat(values, np.diff(self.start)), values])


def _make_intervals(nodes: NodeValues) -> _Intervals:
    first_entries, low, high = nodes.first_entries(), nodes.low, nodes.high
    start = np.searchsorted(first_entries, nodes.start)
    sizes, nonempty = np.diff(start), np.flatnonzero(np.diff(start))
    g, value = len(first_entries), nodes.value[first_entries]
    next_smaller = np.empty(g, np.int64)
    next_smaller[1:] = value[:-1]
    next_smaller[start[nonempty]] = low[nonempty]
    first, length = np.empty((2, g + len(nodes)), np.int64)
    first[:g] = next_smaller
    largest = low.astype(np.int64)
    largest[nonempty] = value[start[nonempty + 1] - 1]
    first[g:] = largest
    length[:g], length[g:] = value - next_smaller, high - 1 - largest
    first += 1
    below = np.concatenate([[0], np.cumsum(nodes.count, dtype=np.int64)])
    records_before = below[nodes.start]
    distance = np.empty(g + len(nodes), np.int64)
    np.subtract(2 * below[first_entries], np.repeat(records_before[:-1] + records_before[1:], sizes), out=distance[:g])
    distance[g:] = np.diff(records_before)
    return _Intervals(first=first, length=length, distance=np.abs(distance, out=distance), start=start)


def _sample_lines(intervals: _Intervals, rate: Fraction, entropy: Entropy) -> Integers:
    """(n,) random lines, each with probability proportional to exp(-rate distance)."""
    interval = _sample_intervals(intervals, rate, entropy)
    return intervals.first[interval] + entropy.below_each(intervals.length[interval])


def _sample_intervals(intervals: _Intervals, rate: Fraction, entropy: Entropy) -> Integers:
    """(n,) a random interval of each node, with probability exactly proportional to length * exp(-rate distance), its weight.

    This is rejection sampling. Each interval gets a whole number of tickets, slightly more than its weight times the node's scale.
    One ticket of the node is drawn uniformly, and its interval is accepted with probability weight * scale / tickets; otherwise
    a ticket is drawn again. So an interval is drawn and accepted with a probability proportional to tickets * weight * scale / tickets,
    that is to its weight, however the tickets were rounded. The coin that accepts is exact: see `toss_coins`.
    """
    least = intervals.least(intervals.distance)
    weight, scale, tickets = _compute_tickets(intervals, least, rate)
    g = int(intervals.start[-1])
    ticket_sums = np.concatenate([[0], np.cumsum(tickets[:g])])
    tickets_before, last_tickets = ticket_sums[intervals.start[:-1]], tickets[g:]
    value_tickets = ticket_sums[intervals.start[1:]] - tickets_before
    chosen, pending = np.empty(len(least), np.int64), np.arange(len(least))
    while pending.size:
        ticket = entropy.below_each((value_tickets + last_tickets)[pending])
        value_interval = np.searchsorted(ticket_sums[1:], tickets_before[pending] + ticket, side="right")
        drawn = np.where(ticket < value_tickets[pending], value_interval, g + pending)
        probability = weight[drawn] * scale[pending] / tickets[drawn]

        def exact_probability(index: int, drawn: Integers = drawn, pending: Integers = pending) -> Decimal:
            interval, node = int(drawn[index]), int(pending[index])
            excess = int(intervals.distance[interval] - least[node])
            factor = Fraction(float(scale[node])) * int(intervals.length[interval]) / int(tickets[interval])
            return exp_minus(rate * excess) * factor.numerator / factor.denominator

        accepted = toss_coins(probability, SLACK, exact_probability, entropy)
        chosen[pending[accepted]] = drawn[accepted]
        pending = pending[~accepted]
    return chosen


def _compute_tickets(intervals: _Intervals, least: Integers, rate: Fraction) -> tuple[Floats, Floats, Integers]:
    """Floating-point weights (g + n,), scales (n,), and whole numbers of tickets (g + n,), at least the true weight * scale.

    Weights are relative to that of the node's smallest distance. Their relative error is about the absolute error of exp's argument. That
    is far below `SLACK`: beyond an argument of -745 the weight is 0. All tickets of a call add up to less than 2**62.
    """
    weight = np.exp(np.multiply(intervals.distance - intervals.at_intervals(least), -float(rate)))
    weight *= intervals.length
    scale = 2.0 ** (60 - len(least).bit_length()) / intervals.sums(weight)
    tickets = np.ceil(weight * intervals.at_intervals(scale * (1 + SLACK))).astype(np.int64)
    np.maximum(tickets, intervals.length > 0, out=tickets)
    return weight, scale, tickets


def _find_middle_lines(intervals: _Intervals) -> Integers:
    """(n,) the middle line of the interval with the smallest distance, or of the first such interval."""
    distance = np.where(intervals.length > 0, intervals.distance, np.iinfo(np.int64).max)
    best = distance == intervals.at_intervals(intervals.least(distance))
    interval = intervals.least(np.where(best, np.arange(len(best)), len(best)))
    return np.asarray(intervals.first[interval] + (intervals.length[interval] - 1) // 2, np.int64)


def _sum_values(nodes: NodeValues) -> Integers:
    """(n,) exact sums of the values, counted from the node's low end, cut to 2**60.

    Integer sums wrap around at 2**64, so sums below 2**63 are exact. If the floating-point sum exceeds 2**61, the true sum certainly
    exceeds 2**60, and the integer sum is not used.
    """
    sizes = np.diff(nodes.start)
    offset = nodes.value - np.repeat(nodes.low.astype(np.int64), sizes)
    sums = np.diff(np.concatenate([[0], np.cumsum(offset * nodes.count)])[nodes.start])
    float_sums = np.bincount(np.repeat(np.arange(len(nodes)), sizes), offset.astype(np.float64) * nodes.count, len(nodes))
    return np.where(float_sums > 2 * LARGEST_COUNT, LARGEST_COUNT, np.minimum(sums, LARGEST_COUNT))


def _compute_in_batches(nodes: NodeValues, medians: Callable[[NodeValues], Integers]) -> Integers:
    """Compute the medians of all nodes in batches, so that memory stays bounded."""
    return np.concatenate([np.zeros(0, np.int64), *(medians(part) for part in nodes.batches())])
