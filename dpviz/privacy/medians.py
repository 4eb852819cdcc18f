"""Private medians of many nodes at once: lines that leave about half of a node's records on each side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.errors import SettingError
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.inversion import coins, exp_minus
from dpviz.privacy.node_values import LARGEST_VALUE, NodeValues, brought_inside
from dpviz.privacy.noise import LARGEST_COUNT, discrete_laplace, rounded_laplace

EXPONENTS = ("sharp", "paper")
SLACK = 2.0**-38
"""Bound on the relative error of floating-point weights: they only propose; see `_tickets`."""


def exponential_medians(
    nodes: NodeValues, epsilon: Fraction, entropy: Entropy, contributions: int = 1, exponent: str = "sharp"
) -> Integers:
    """Split lines by the exponential mechanism: P(s) proportional to exp(-a |rank(s) - n/2|), a = epsilon / contributions.

    rank(s) is the number of a node's n records below the line s; every line of the node can be chosen, occupied or not, and
    an empty node is split, too.

    Args:
        nodes: the records; no two nodes share one.
        epsilon: spent once for all nodes together.
        entropy: where randomness comes from.
        contributions: m, records per protected unit.
        exponent: "sharp" as above; "paper" has a = epsilon / (2 m) and so spends half of epsilon.

    Returns:
        (n,) lines, low + 1 to high - 1.

    Privacy:
        One more record changes rank(s) by 0 or 1 and n/2 by 1/2, so |rank(s) - n/2| by 1/2 at most, the weight of a line and
        the sum of all weights by a factor of exp(a / 2) at most each: epsilon-DP for m records. Against a rounded n/2 it would
        be up to twice that. The law is exact: see `_chosen`.

    Raises:
        SettingError: no such exponent.

    Source:
        McSherry, Talwar, FOCS 2007; Cormode et al., ICDE 2012, Definition 5, whose exponent is epsilon / 2.
    """
    if exponent not in EXPONENTS:
        raise SettingError(f"The exponent must be one of {', '.join(EXPONENTS)}.")
    rate = epsilon / contributions / (1 if exponent == "sharp" else 2)
    return _each(nodes, lambda part: _exponential(_intervals(part), rate / 2, entropy))


def exact_medians(nodes: NodeValues) -> Integers:
    """(n,) lines in the middle of the best interval. NOT PRIVATE: for showing what privacy costs."""
    return _each(nodes, lambda part: _nearest(_intervals(part)))


def noisy_mean_medians(
    nodes: NodeValues, epsilon: Fraction, entropy: Entropy, contributions: int = 1, *, outside: str = "nearest"
) -> Integers:
    """Split lines at a noisy mean: half of epsilon on the sum of places, half on the number of records.

    Args:
        nodes: the records; no two nodes share one.
        epsilon: spent once for all nodes together.
        entropy: where randomness comes from.
        contributions: m, records per protected unit.
        outside: what becomes of a noisy mean outside its node: "nearest" line, or "middle" of the node.

    Returns:
        (n,) lines; the middle where the noisy number is below 1.

    Privacy:
        Places count from the node's low end, so one record changes the sum by at most high - low - 1, and no more after it is
        cut to 2**60. Its noise is continuous Laplace noise of that sensitivity, rounded. Noise is cut only where the noisy sum,
        which is itself cut to half as much, no longer depends on it, so that cutting is post-processing, too.

    Source:
        Inan, Kantarcioglu, Ghinita, Bertino, EDBT 2010; Cormode et al., ICDE 2012, Section VI-A.
    """
    number = discrete_laplace(nodes.records, PureBudget(epsilon / 2), entropy, contributions)
    widths = nodes.high.astype(np.int64) - nodes.low
    sums = _sums(nodes)
    scales = np.nextafter((widths - 1) * np.nextafter(float(2 * contributions / epsilon), np.inf), np.inf)
    sums = np.clip(sums + rounded_laplace(scales, 2 * LARGEST_COUNT, entropy), -LARGEST_COUNT, LARGEST_COUNT)
    mean = nodes.low + sums / np.maximum(number, 1) + 0.5
    line = np.where(number < 1, nodes.middle, np.rint(np.clip(mean, -1, LARGEST_VALUE + 1)))
    return brought_inside(nodes, line.astype(np.int64), outside)


def cell_medians(nodes: tuple[Integers, Integers], start: Integers, line: Integers, below: Floats, total: Floats) -> Integers:
    """Split lines from noisy counts of the cells of a fixed grid: post-processing of released numbers.

    Args:
        nodes: (n,) low and (n,) high ends.
        start: (n + 1,) the grid's lines inside node i are start[i]..start[i + 1] - 1.
        line: (k,) lines of the grid strictly inside the nodes.
        below: (k,) noisy number of the node's records below each.
        total: (n,) noisy number of all of them.

    Returns:
        (n,) the line with the most even noisy halves, the first of equal ones; the middle where no grid line is inside.

    Source:
        Xiao, Xiong, Yuan, SDM at VLDB 2010; Cormode et al., ICDE 2012, Section VI-A.
    """
    low, high = nodes
    chosen, sizes = (low + high) // 2, np.diff(start)
    full = np.flatnonzero(sizes)
    if full.size:
        uneven = np.abs(below - np.repeat(total / 2, sizes))
        least = np.minimum.reduceat(uneven, start[full])
        place = np.where(uneven == np.repeat(least, sizes[full]), np.arange(len(line)), len(line))
        chosen[full] = line[np.minimum.reduceat(place, start[full])]
    return chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class _Intervals:
    """Lines of equal rank: one interval per distinct place, and a closing one behind the last place of each node.

    Attributes:
        first: (g + n,) first line; the n closing intervals stand behind the g others.
        length: (g + n,) lines, 0 where there are none.
        distance: (g + n,) |2 rank - n|: twice the rank's distance from n/2.
        start: (n + 1,) the intervals of node i are start[i]..start[i + 1] - 1, and g + i.
    """

    first: Integers
    length: Integers
    distance: Integers
    start: Integers

    def least(self, values: NDArray[Any]) -> NDArray[Any]:
        """(n,) smallest value of each node."""
        return self._reduced(np.minimum, values)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """(n,) sum of each node's values."""
        return self._reduced(np.add, values)

    def _reduced(self, how: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        g, full = self.start[-1], np.flatnonzero(np.diff(self.start))
        found = values[g:].copy()
        if full.size:
            found[full] = how(found[full], how.reduceat(values[:g], self.start[full]))
        return found

    def at_intervals(self, values: NDArray[Any]) -> NDArray[Any]:
        """(g + n,) each node's value at its intervals."""
        return np.concatenate([np.repeat(values, np.diff(self.start)), values])


def _intervals(nodes: NodeValues) -> _Intervals:
    head, low, high = nodes.heads(), nodes.low, nodes.high
    start = np.searchsorted(head, nodes.start)
    sizes, full = np.diff(start), np.flatnonzero(np.diff(start))
    g, place = len(head), nodes.value[head]
    edges = np.empty(g + 1, np.int64)
    edges[1:] = place
    edges[start[full]] = low[full]
    first, length = np.empty((2, g + len(nodes)), np.int64)
    first[:g] = edges[:-1]
    closing = low.astype(np.int64)
    closing[full] = place[start[full + 1] - 1]
    first[g:] = closing
    length[:g], length[g:] = place - edges[:-1], high - 1 - closing
    first += 1
    below = np.concatenate([[0], np.cumsum(nodes.count, dtype=np.int64)])
    ends = below[nodes.start]
    distance = np.empty(g + len(nodes), np.int64)
    np.subtract(2 * below[head], np.repeat(ends[:-1] + ends[1:], sizes), out=distance[:g])
    distance[g:] = np.diff(ends)
    return _Intervals(first=first, length=length, distance=np.abs(distance, out=distance), start=start)


def _exponential(intervals: _Intervals, rate: Fraction, entropy: Entropy) -> Integers:
    """(n,) lines; the weight of a line is exp(-rate distance)."""
    place = _chosen(intervals, rate, entropy)
    return intervals.first[place] + entropy.below_each(intervals.length[place])


def _chosen(intervals: _Intervals, rate: Fraction, entropy: Entropy) -> Integers:
    """(n,) the interval that each node draws, P proportional to length exp(-rate distance), exactly.

    Each interval holds whole numbers of tickets, at least as many as its weight times the node's scale, though hardly more. A
    node draws one ticket; its interval is accepted with probability weight * scale / tickets, else the node draws again. The
    law of what is accepted is in proportion to the weights whatever the tickets, and the coin is decided exactly: in floating
    point if that is certain, else by as many digits as it takes.
    """
    least = intervals.least(intervals.distance)
    weight, scale, tickets = _tickets(intervals, least, rate)
    g = int(intervals.start[-1])
    passed = np.concatenate([[0], np.cumsum(tickets[:g])])
    before, closing = passed[intervals.start[:-1]], tickets[g:]
    groups = passed[intervals.start[1:]] - before
    place, todo = np.empty(len(least), np.int64), np.arange(len(least))
    while todo.size:
        ticket = entropy.below_each((groups + closing)[todo])
        inside = np.searchsorted(passed[1:], before[todo] + ticket, side="right")
        drawn = np.where(ticket < groups[todo], inside, g + todo)
        share = weight[drawn] * scale[todo] / tickets[drawn]

        def exactly(which: int, drawn: Integers = drawn, todo: Integers = todo) -> Decimal:
            interval, node = int(drawn[which]), int(todo[which])
            steps = int(intervals.distance[interval] - least[node])
            portion = Fraction(float(scale[node])) * int(intervals.length[interval]) / int(tickets[interval])
            return exp_minus(rate * steps) * portion.numerator / portion.denominator

        accepted = coins(share, SLACK, exactly, entropy)
        place[todo[accepted]] = drawn[accepted]
        todo = todo[~accepted]
    return place


def _tickets(intervals: _Intervals, least: Integers, rate: Fraction) -> tuple[Floats, Floats, Integers]:
    """Floating-point weights (g + n,), scales (n,), and whole tickets (g + n,) that are no fewer than the true weight * scale.

    Weights are relative to the node's most even interval; their relative error is far below `SLACK` (that of exp times its
    argument, at most 745 where it is not 0). All tickets of a call add up to less than 2**62.
    """
    weight = intervals.distance - intervals.at_intervals(least)
    weight = np.exp(np.multiply(weight, -float(rate)))
    weight *= intervals.length
    scale = 2.0 ** (60 - len(least).bit_length()) / intervals.sums(weight)
    tickets = np.ceil(weight * intervals.at_intervals(scale * (1 + SLACK))).astype(np.int64)
    np.maximum(tickets, intervals.length > 0, out=tickets)
    return weight, scale, tickets


def _nearest(intervals: _Intervals) -> Integers:
    """(n,) the middle line of the most even interval, the first of equal ones."""
    distance = np.where(intervals.length > 0, intervals.distance, np.iinfo(np.int64).max)
    best = distance == intervals.at_intervals(intervals.least(distance))
    place = intervals.least(np.where(best, np.arange(len(best)), len(best)))
    return np.asarray(intervals.first[place] + (intervals.length[place] - 1) // 2, np.int64)


def _sums(nodes: NodeValues) -> Integers:
    """(n,) exact sums of places from the node's low end over its records, cut to 2**60.

    Sums wrap around at 2**64, which leaves those below 2**63 exact; where a sum in floating point is beyond doubt far above
    2**60, it is cut without them.
    """
    sizes = np.diff(nodes.start)
    offset = nodes.value - np.repeat(nodes.low.astype(np.int64), sizes)
    sums = np.diff(np.concatenate([[0], np.cumsum(offset * nodes.count)])[nodes.start])
    nearly = np.bincount(np.repeat(np.arange(len(nodes)), sizes), offset.astype(np.float64) * nodes.count, len(nodes))
    return np.where(nearly > 2 * LARGEST_COUNT, LARGEST_COUNT, np.minimum(sums, LARGEST_COUNT))


def _each(nodes: NodeValues, medians: Callable[[NodeValues], Integers]) -> Integers:
    """Medians of all nodes, a bounded number of values at a time."""
    return np.concatenate([np.zeros(0, np.int64), *(medians(part) for part in nodes.batches())])
