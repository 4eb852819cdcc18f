"""Figure 4 of the paper on private spatial decompositions as a table: how good private medians are, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.papers.psd_queries import REPEATS, SEED
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import cell_medians, exponential_medians, noisy_mean_medians
from dpviz.privacy.node_values import NodeValues
from dpviz.privacy.noise import discrete_laplace
from dpviz.privacy.sampling import before_sampling, delta_before_sampling, thinned
from dpviz.privacy.smooth import smooth_medians

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Medians = Callable[[NodeValues], Integers]

EPSILON = Fraction(1, 100)
DELTA = Fraction(1, 10_000)
RATE = Fraction(1, 100)
CELL = 2**10
METHODS = ("EM", "SS", "NM", "cell", "cell_t", "EM_s", "SS_s")


def figure_4(
    size: int = 2**20, width: int = 2**26, *, levels: int = 10, cell: int = CELL, repeats: int = REPEATS, seed: int = SEED
) -> pd.DataFrame:
    """How far private medians are from the middle, level by level of a binary tree over uniform whole numbers.

    Every method splits a tree of its own, with epsilon 0.01 per level, delta 1e-4 for smooth sensitivity, and samples of 1 %
    for EM_s and SS_s. The cell method needs one noisy grid for the whole tree. The paper does not say what the grid may cost:
    "cell" gives it the epsilon of one level, so that each level by itself costs all methods the same; "cell_t" that of all
    levels together, so that all trees do: it passes EM on nodes of about 2**12 records and fewer.

    Args:
        size: records.
        width: they lie in 0..width - 1.
        levels: of the tree; the root is depth 0.
        cell: length of a cell of the cell method.
        repeats: trees with fresh noise per method, averaged.
        seed: of records and noise.

    Returns:
        One row per method (EM: exponential mechanism, SS: smooth sensitivity, NM: noisy mean, cell, cell_t; _s: on samples) and depth:
        method, depth, records (mean per node that holds any), error (percent of n/2: mean, over those nodes, of the
        split's distance in rank from n/2; 100 is a split that separates nothing), spread (standard deviation over the
        repeats) and seconds (mean, for all splits of the level; making the grid counts at depth 0).

    Source:
        Cormode et al., ICDE 2012, Figure 4 (a) and (b).
    """
    records = NodeValues.of_one(np.random.default_rng(seed).integers(0, width, size), 0, width)
    streams = iter(Entropy.seeded(seed).spawn(len(METHODS) * repeats))
    rows = []
    for method in METHODS:
        for _ in range(repeats):
            rows += [{"method": method, **row} for row in _tree(records, method, next(streams), levels, cell)]
    table = pd.DataFrame(rows).groupby(["method", "depth"], sort=False)
    means = table[["records", "error", "seconds"]].mean()
    return means.assign(spread=table["error"].std()).reset_index()[["method", "depth", "records", "error", "spread", "seconds"]]


def _tree(nodes: NodeValues, method: str, entropy: Entropy, levels: int, cell: int) -> list[dict[str, float]]:
    """One tree of a method: its figures per depth."""
    rows, begun = [], time.perf_counter()
    medians = _medians(nodes, method, entropy, levels, cell)
    for depth in range(levels):
        line = medians(nodes)
        seconds = time.perf_counter() - begun
        below, some = _below(nodes, line), nodes.records > 0
        error = np.abs(2 * below - nodes.records)[some] / nodes.records[some]
        rows.append({"depth": depth, "records": float(nodes.records[some].mean()), "error": float(100 * error.mean()), "seconds": seconds})
        nodes = _halved(nodes, line)
        begun = time.perf_counter()
    return rows


def _medians(nodes: NodeValues, method: str, entropy: Entropy, levels: int, cell: int) -> Medians:
    if method.startswith("cell"):
        return _Grid.of(nodes, EPSILON * (levels if method == "cell_t" else 1), entropy, cell).medians
    if method == "NM":
        return lambda part: noisy_mean_medians(part, EPSILON, entropy)
    rate = RATE if method.endswith("_s") else Fraction(1)
    epsilon = before_sampling(EPSILON, rate)
    if method.startswith("EM"):
        return lambda part: exponential_medians(thinned(part, rate, entropy), epsilon, entropy)
    budget = ApproxBudget(epsilon, delta_before_sampling(DELTA, rate))
    return lambda part: smooth_medians(thinned(part, rate, entropy), budget, entropy)


def _below(nodes: NodeValues, line: Integers) -> Integers:
    """(n,) records of each node below its line; the nodes lie beside each other in order."""
    passed = np.concatenate([[0], np.cumsum(nodes.count)])
    return np.asarray(passed[np.searchsorted(nodes.value, line)] - passed[nodes.start[:-1]])


def _halved(nodes: NodeValues, line: Integers) -> NodeValues:
    """Both sides of every line, without those too narrow to be split again."""
    place = np.searchsorted(nodes.value, line)
    start = np.append(np.column_stack([nodes.start[:-1], place]).ravel(), nodes.start[-1])
    low, high = np.column_stack([nodes.low, line]).ravel(), np.column_stack([line, nodes.high]).ravel()
    wide, sizes = high - low >= 2, np.diff(start)
    here = np.repeat(wide, sizes)
    return NodeValues(
        value=nodes.value[here],
        count=nodes.count[here],
        start=np.concatenate([[0], np.cumsum(sizes[wide])]),
        low=low[wide],
        high=high[wide],
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Grid:
    """Noisy counts of cells: (c + 1,) their sums from the left, at the lines between cells, which are `cell` apart."""

    sums: Floats
    cell: int

    @classmethod
    def of(cls, nodes: NodeValues, epsilon: Fraction, entropy: Entropy, cell: int) -> _Grid:
        """The grid over one node that starts at 0."""
        counts = np.bincount(nodes.value // cell, nodes.count, -(-int(nodes.high[0]) // cell)).astype(np.int64)
        noisy = discrete_laplace(counts, PureBudget(epsilon), entropy)
        return cls(sums=np.concatenate([[0.0], np.cumsum(noisy)]), cell=cell)

    def medians(self, nodes: NodeValues) -> Integers:
        """(n,) lines; looks at the public ends of the nodes only."""
        first = nodes.low // self.cell + 1
        inner = np.maximum(-(-nodes.high // self.cell) - first, 0)
        start = np.concatenate([[0], np.cumsum(inner)])
        line = np.arange(start[-1]) - np.repeat(start[:-1], inner) + np.repeat(first, inner)
        before = self._at(nodes.low)
        below = self.sums[line] - np.repeat(before, inner)
        return cell_medians((nodes.low, nodes.high), start, line * self.cell, below, self._at(nodes.high) - before)

    def _at(self, place: Integers) -> Floats:
        """Noisy number of records below each place, even within cells."""
        return np.interp(place, np.arange(len(self.sums)) * self.cell, self.sums)
