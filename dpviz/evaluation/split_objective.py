"""The split objective of HTF at all lines of the domain, and the noise with which a private search compares lines. CURATOR ONLY."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.htf import SENSITIVITY, UNITS_PER_RECORD, Htf, candidates
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.noise import laplace_variance
from dpviz.space.domain import Domain

MOST_LINES = 256
DEFAULTS = Htf()


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectiveCurve:
    """The split objective by the line that splits the domain. CURATOR ONLY: computed from private data without noise.

    The objective of a line is the sum over all lattice cells of |records - mean of the cell's part|. It is 0 if all cells of a part have
    equal counts, and nearly twice the number of records if all records lie in few cells.

    Attributes:
        domain: the public domain.
        across: whether lines run from south to north and separate columns; else they separate rows.
        lines: (k,) lattice lines strictly inside the domain, ascending: all lines, or at most 256 evenly spaced ones.
        objective: (k,) objectives at `lines`, in records.
        unsplit: objective of the domain without a split, in records.
        best: the lattice line with the smallest objective.
        least: the smallest objective, in records.
        visited: (v,) lattice lines that Algorithm 1 visits without noise, in this order.
        visited_objective: (v,) objectives at `visited`, in records.
        last_visited: the line that the algorithm returns.
        tried: (t,) lattice lines among which HTF chooses by default; they do not depend on data.
        tried_objective: (t,) objectives at `tried`, in records.
        noise: standard deviation of the noise on each value that Algorithm 1 compares, in records.
        choice_noise: standard deviation, in records, of the noise of the default choice, which is distributed as if exponential noise
            were added to each tried value.
    """

    domain: Domain
    across: bool
    lines: Integers
    objective: Floats
    unsplit: float
    best: int
    least: float
    visited: Integers
    visited_objective: Floats
    last_visited: int
    tried: Integers
    tried_objective: Floats
    noise: float
    choice_noise: float

    def __repr__(self) -> str:
        return "ObjectiveCurve(curator only: holds sums of true counts)"

    def places(self, lines: Integers) -> Floats:
        """Return (k,) coordinates of lattice lines: x if `across`, else y, in units of the domain's CRS."""
        return self.domain.coordinates(np.repeat(lines[:, None], 4, axis=1))[:, 0 if self.across else 1]


def objective_curve(points: PointCounts, budget: PureBudget, *, across: bool = True, rounds: int = DEFAULTS.rounds) -> ObjectiveCurve:
    """Compute the split objective of the whole domain along one axis. CURATOR ONLY: for teaching on public data, never for export.

    Args:
        points: private; used without noise.
        budget: budget of the splits of one level; only the stated noise depends on it.
        across: whether lines separate columns; else rows.
        rounds: number of rounds, T of Algorithm 1.

    Source:
        Shaham et al., "HTF: homogeneous tree framework", SIGSPATIAL 2021, Equation (5), Algorithm 1 and Theorem 1.
    """
    side = points.domain.side
    value = split_objectives(points, across=across)
    best = 1 + int(value[1:side].argmin())
    scale = Fraction(SENSITIVITY * points.contributions, UNITS_PER_RECORD) / budget.epsilon
    visited, returned = run_without_noise(value, rounds)
    low, high = np.zeros(1, np.int64), np.full(1, side)
    tried, valid = candidates(low, high, DEFAULTS.lines, DEFAULTS.inner)
    lines = np.unique(np.linspace(1, side - 1, min(side - 1, MOST_LINES)).round().astype(np.int64))
    return ObjectiveCurve(
        domain=points.domain,
        across=across,
        lines=lines,
        objective=value[lines],
        unsplit=float(value[0]),
        best=best,
        least=float(value[best]),
        visited=visited,
        visited_objective=value[visited],
        last_visited=returned,
        tried=tried[valid],
        tried_objective=value[tried[valid]],
        noise=math.sqrt(laplace_variance(scale * (2 * rounds + 1))),
        choice_noise=float(2 * scale),
    )


def split_objectives(points: PointCounts, *, across: bool = True) -> Floats:
    """Compute the split objective at every lattice line. CURATOR ONLY.

    In a part with N records on A cells, the cells with more than N / A records are those with more than q = floor(N / A), and
    sum |c - N / A| = 2 sum of c - N / A over these cells. Lines whose parts have the same q share one pass over the occupied cells;
    cells of one column (or row) with equal counts are grouped. Time and memory grow with the lattice's side.

    Args:
        points: private.
        across: whether lines separate columns; else rows.

    Returns:
        (side + 1,) objectives in records; the first and the last value are the objective of the domain without a split.
    """
    side = points.domain.side
    place = (points.column if across else points.row).astype(np.int64)
    (position, count), number = np.unique(np.stack([place, points.count]), axis=1, return_counts=True)
    below = _part_objective(position, count, number, side)
    above = _part_objective(side - 1 - position, count, number, side)[::-1]
    return below + above


def _part_objective(position: Integers, count: Integers, number: Integers, side: int) -> Floats:
    """Compute (side + 1,) objectives of the parts that have the columns (or rows) below 0, 1, ... side."""
    area = np.maximum(np.arange(side + 1) * side, 1)
    records = np.concatenate([[0], np.bincount(position, count * number, side).astype(np.int64).cumsum()])
    whole, result = records // area, np.zeros(side + 1)
    for q in np.unique(whole):
        lines, large = np.flatnonzero(whole == q), count > q
        cells = np.bincount(position[large], number[large], side).cumsum()
        excess = np.bincount(position[large], (count - q)[large] * number[large], side).cumsum()
        fraction = (records[lines] - q * area[lines]) / area[lines]
        result[lines] = 2 * (excess[lines - 1] - cells[lines - 1] * fraction)
    result[0] = 0.0
    return result


def run_without_noise(objective: Floats, rounds: int = DEFAULTS.rounds) -> tuple[Integers, int]:
    """Run Algorithm 1 without noise on a whole domain.

    Args:
        objective: (side + 1,) objectives at every lattice line.
        rounds: number of rounds, T of Algorithm 1.

    Returns:
        (v,) lines in the order in which the algorithm visits them, and the line that it returns.

    Source:
        Shaham et al., 2021, Algorithm 1, read as `dpviz.mechanisms.points.htf.by_rounds` does.
    """
    left, right = 0, len(objective) - 1
    best = right // 2
    visited = [best]
    for _ in range(rounds if right > 2 else 0):
        lower, upper = left + (best - left) // 2, best + (right - best) // 2
        neighbours = [line for line, end in ((lower, left), (upper, best)) if line > end]
        visited += neighbours
        best_of_three = min([best, *neighbours], key=lambda line: objective[line])
        if best_of_three == best:
            left, right = lower, upper
        elif best_of_three == lower:
            right, best = best, lower
        else:
            left, best = best, upper
    return np.array(visited, np.int64), best
