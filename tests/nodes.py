"""Nodes of a few places, their neighbours, and slow definitions to hold private medians against."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, combinations_with_replacement, product
from operator import add

import numpy as np
import pytest
from numpy.typing import ArrayLike

from dpviz.privacy import medians
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.node_values import NodeValues

Histogram = tuple[int, ...]
"""Records at each place of a node, from its low end."""


def histograms(width: int, counts: tuple[int, ...]) -> list[Histogram]:
    """Every node of `width` places with each count from `counts`."""
    return list(product(counts, repeat=width))


def of_records(width: int, most: int) -> list[Histogram]:
    """Every node of `width` places with at most `most` records."""
    every = chain.from_iterable(combinations_with_replacement(range(width), records) for records in range(most + 1))
    return [tuple(map(places.count, range(width))) for places in every]


def added(histogram: Histogram, most: int = 1) -> Iterator[Histogram]:
    """All neighbours with 1 to `most` records more."""
    for more in of_records(len(histogram), most)[1:]:
        yield tuple(map(add, histogram, more))


def packed(found: list[Histogram], low: int = 0, dtype: type = np.int64) -> NodeValues:
    """The nodes of one call, each from `low` on."""
    value = [np.flatnonzero(histogram) + low for histogram in found]
    count = [[records for records in histogram if records] for histogram in found]
    return NodeValues(
        value=np.concatenate([np.zeros(0, int), *value]).astype(dtype),
        count=np.concatenate([np.zeros(0, int), *count]).astype(np.int64),
        start=np.cumsum([0, *map(len, value)]),
        low=np.full(len(found), low, dtype),
        high=np.array([low + len(histogram) for histogram in found], dtype),
    )


def tiled(nodes: NodeValues, copies: int) -> NodeValues:
    """All nodes `copies` times, interleaved as they are."""
    sizes = np.tile(np.diff(nodes.start), copies)
    return NodeValues(
        value=np.tile(nodes.value, copies),
        count=np.tile(nodes.count, copies),
        start=np.concatenate([[0], np.cumsum(sizes)]),
        low=np.tile(nodes.low, copies),
        high=np.tile(nodes.high, copies),
    )


def exponential_logs(histogram: Histogram, rate: float, centre: Callable[[int], float] = lambda n: n / 2) -> np.ndarray:
    """(width - 1,) logarithm of each line's chance, record by record: exp(-rate |rank - centre|) over their sum."""
    records = sum(histogram)
    return normed([-rate * abs(sum(histogram[:line]) - centre(records)) for line in range(1, len(histogram))])


def normed(logs: ArrayLike) -> np.ndarray:
    """Logarithms of chances from logarithms of weights."""
    logs = np.asarray(logs, np.float64) - np.max(logs)
    return logs - math.log(math.fsum(np.exp(logs)))


def sampler_logs(nodes: NodeValues, rate: float) -> list[np.ndarray]:
    """The same of what the sampler draws from, out of its own intervals; every line must be in exactly one of them."""
    intervals = medians._make_intervals(nodes)
    logs, several = [], int(intervals.start[-1])
    for node in range(len(nodes)):
        weight = np.full(int(nodes.high[node] - nodes.low[node]) - 1, np.nan)
        for place in [*range(intervals.start[node], intervals.start[node + 1]), several + node]:
            begin = int(intervals.first[place] - nodes.low[node]) - 1
            lines = slice(begin, begin + int(intervals.length[place]))
            assert np.isnan(weight[lines]).all()
            weight[lines] = -rate / 2 * int(intervals.distance[place])
        assert not np.isnan(weight).any()
        logs.append(normed(weight))
    return logs


def worst_loss(logs: Mapping[Histogram, np.ndarray], most: int = 1) -> float:
    """Largest |ln P - ln Q| of any line over all neighbours in the table that differ by up to `most` records."""
    pairs = [(one, other) for one in logs for other in added(one, most) if other in logs]
    assert len(pairs) > len(logs) / 2
    one, other = (np.array([logs[pair[side]] for pair in pairs]) for side in (0, 1))
    return float(np.abs(one - other).max())


def places(histogram: Histogram) -> list[int]:
    return [place for place, count in enumerate(histogram) for _ in range(count)]


def slow_median(histogram: Histogram) -> int:
    """The place of the lower median; the low end of an empty node."""
    return [0, *places(histogram)][(sum(histogram) + 1) // 2]


def smooth_law(histogram: Histogram, scale: float, outside: str) -> np.ndarray:
    """(width - 1,) chances of each line at median + 1 + noise of a scale, P(|noise| >= k) = exp(-(k - 1/2) / scale)."""
    width, home = len(histogram), slow_median(histogram) + 1

    def above(k: int) -> float:
        return 0.5 * math.exp(-(k - 0.5) / scale) if k >= 1 else 1 - 0.5 * math.exp(-(0.5 - k) / scale)

    law = np.array([above(line - home) - above(line - home + 1) for line in range(1, width)])
    low, high = 1 - above(1 - home), above(width - home)
    law[0 if outside == "nearest" else width // 2 - 1] += low
    law[-1 if outside == "nearest" else width // 2 - 1] += high
    assert abs(math.fsum(law) - 1) < 1e-12
    return law


def hockey_stick(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """Largest P(A) - exp(epsilon) Q(A) of any set of lines, both ways round."""
    return max(math.fsum(np.maximum(p - math.exp(epsilon) * q, 0)) for p, q in ((one, other), (other, one)))


def scripted(*words: int) -> Entropy:
    """A stream that gives these 64-bit words, and fails when they are used up."""
    left = list(words)
    return Entropy._make(lambda n: np.array([left.pop(0) for _ in range(n)], np.uint64), None)


def counted(monkeypatch: pytest.MonkeyPatch, owner: object, function: str) -> list[int]:
    """How often a function of a module or a class is called from now on, in the list's only place."""
    honest, times = getattr(owner, function), [0]

    def wrapped(*given):
        times[0] += 1
        return honest(*given)

    monkeypatch.setattr(owner, function, wrapped)
    return times
