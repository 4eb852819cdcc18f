"""The split objective of HTF over all lines of the domain: where both parts are most evenly filled, and how much of that noise hides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.htf import SENSITIVITY, UNITS, Htf, candidates
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.noise import laplace_variance
from dpviz.space.domain import Domain

MOST_LINES = 256
FORM = Htf()


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectiveCurve:
    """How unevenly the two parts of the domain are filled, by where it is split. CURATOR ONLY: looks at private data.

    The objective of a line is the sum over all lattice cells of |records - mean of the cell's part|: 0 if all cells of a part
    hold alike, nearly twice the records if they crowd in few cells.

    Attributes:
        domain: the public frame.
        across: lines run from south to north and part columns; else they part rows.
        lines: (k,) lattice lines strictly inside the domain, ascending: all of them, or evenly spaced ones.
        objective: (k,) in records, at these.
        unsplit: of the domain as one part, in records.
        best: the lattice line with the least objective of all, and
        least: its objective.
        visited: (v,) lattice lines that Algorithm 1 looks at if there is no noise, in this order.
        visited_objective: (v,) in records.
        closes_in_on: the one of them that it ends with.
        tried: (t,) lattice lines among which HTF chooses by default, whatever the data.
        tried_objective: (t,) in records.
        noise: standard deviation of the noise on each value that Algorithm 1 sees, in records.
        choice_noise: the same for the default's choice, which is as if exponential noise were on each of the tried.
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
    closes_in_on: int
    tried: Integers
    tried_objective: Floats
    noise: float
    choice_noise: float

    def __repr__(self) -> str:
        return "ObjectiveCurve(curator only: holds sums of true counts)"

    def places(self, lines: Integers) -> Floats:
        """(k,) coordinates of lattice lines: x if `across`, else y, in units of the domain's CRS."""
        return self.domain.coordinates(np.repeat(lines[:, None], 4, axis=1))[:, 0 if self.across else 1]


def objective_curve(points: PointCounts, budget: PureBudget, *, across: bool = True, rounds: int = FORM.rounds) -> ObjectiveCurve:
    """The split objective of the whole domain along one axis. CURATOR ONLY: for teaching on public data, never for export.

    Args:
        points: private; looked at without noise.
        budget: what the splits of one level may spend; only decides how much noise there would be.
        across: between columns, else between rows.
        rounds: T of Algorithm 1.

    Source:
        Shaham et al., "HTF: homogeneous tree framework", SIGSPATIAL 2021, Equation (5), Algorithm 1 and Theorem 1.
    """
    side = points.domain.side
    value = objectives(points, across=across)
    best = 1 + int(value[1:side].argmin())
    scale = Fraction(SENSITIVITY * points.contributions, UNITS) / budget.epsilon
    visited, last = closing_in(value, rounds)
    low, high = np.zeros(1, np.int64), np.full(1, side)
    tried, valid = candidates(low, high, FORM.lines, FORM.inner)
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
        closes_in_on=last,
        tried=tried[valid],
        tried_objective=value[tried[valid]],
        noise=math.sqrt(laplace_variance(scale * (2 * rounds + 1))),
        choice_noise=float(2 * scale),
    )


def objectives(points: PointCounts, *, across: bool = True) -> Floats:
    """(side + 1,) the split objective at every lattice line, in records; at both ends it is that of the whole. CURATOR ONLY.

    With N records on A cells and q = floor(N / A), the cells of a part that hold more than N / A are those with more than q, and
    sum |c - N / A| = 2 sum of c - N / A over them. Lines whose part has the same q share one pass over the occupied cells, of
    which those of one column or row with the same count are taken together. Time and memory grow with the lattice's side.

    Args:
        points: private.
        across: between columns, else between rows.
    """
    side = points.domain.side
    place, count, number = _alike(points.column if across else points.row, points.count)
    below = _part(place, count, number, side)
    above = _part(side - 1 - place, count, number, side)[::-1]
    return below + above


def _part(place: Integers, count: Integers, number: Integers, side: int) -> Floats:
    """(side + 1,) objective of the part with places under 0, 1, ... side."""
    area = np.maximum(np.arange(side + 1) * side, 1)
    records = np.concatenate([[0], np.bincount(place, count * number, side).astype(np.int64).cumsum()])
    whole, result = records // area, np.zeros(side + 1)
    for q in np.unique(whole):
        lines, large = np.flatnonzero(whole == q), count > q
        cells = np.bincount(place[large], number[large], side).cumsum()
        excess = np.bincount(place[large], (count - q)[large] * number[large], side).cumsum()
        rest = (records[lines] - q * area[lines]) / area[lines]
        result[lines] = 2 * (excess[lines - 1] - cells[lines - 1] * rest)
    result[0] = 0.0
    return result


def _alike(place: NDArray[np.int32], count: Integers) -> tuple[Integers, Integers, Integers]:
    """Different pairs of place and count, and how many cells have each."""
    pairs, number = np.unique(np.stack([place.astype(np.int64), count]), axis=1, return_counts=True)
    return pairs[0], pairs[1], number


def closing_in(objective: Floats, rounds: int = FORM.rounds) -> tuple[Integers, int]:
    """Algorithm 1 without noise on a whole domain.

    Args:
        objective: (side + 1,) at every lattice line.
        rounds: T.

    Returns:
        (v,) lines in the order in which it looks at them, and the line that it ends with.

    Source:
        Shaham et al., 2021, Algorithm 1, read as `dpviz.mechanisms.points.htf.by_rounds` does.
    """
    left, right = 0, len(objective) - 1
    best = right // 2
    visited = [best]
    for _ in range(rounds if right > 2 else 0):
        lower, upper = left + (best - left) // 2, best + (right - best) // 2
        around = [line for line, end in ((lower, left), (upper, best)) if line > end]
        visited += around
        nearest = min([best, *around], key=lambda line: objective[line])
        if nearest == best:
            left, right = lower, upper
        elif nearest == lower:
            right, best = best, lower
        else:
            left, best = best, upper
    return np.array(visited, np.int64), best
