"""Reconstruction: exact bounds on counts behind rounded or hidden tables, by integer programming."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers
from dpviz.errors import InputError
from dpviz.evaluation.attacks.differencing import membership
from dpviz.evaluation.attacks.game import Table
from dpviz.mechanisms.contrasts import NEAREST

_IMPOSSIBLE = "No whole counts fit all ranges: do all tables count the same records, and were they rounded as stated?"


def rounded_range(published: Integers, base: int, rounding: str = NEAREST) -> tuple[Integers, Integers]:
    """Return the least and the largest count that can stand behind each rounded one.

    Args:
        published: (k,) multiples of the base.
        base: of the rounding, 3 or 5.
        rounding: "nearest" multiple, or "random": one of the two multiples next to the count.

    >>> [ends.tolist() for ends in rounded_range(np.array([0, 6]), 3)]
    [[0, 5], [1, 7]]
    """
    reach = base // 2 if rounding == NEAREST else base - 1
    return np.maximum(published - reach, 0), published + reach


def bound_counts(tables: Sequence[Table], ranges: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Return the least and the largest count of each block that fit all published tables together.

    Every published number says in which range a sum of whole, non-negative counts lies. For each block two integer programs minimise and
    maximise its count under all ranges at once; where both agree, the count is known for certain. The bounds are exact: both ends belong to
    a table that fits.

    Args:
        tables: partitions of the same n blocks.
        ranges: for each table (regions,) the least and (regions,) the largest true count of its regions.

    Returns:
        (n,) least and (n,) largest counts.

    Raises:
        InputError: no whole counts fit the ranges.

    Source:
        Dinur, Nissim, "Revealing information while preserving privacy", PODS 2003: many sums with small errors give the data away.
        Garfinkel, Abowd, Martindale, "Understanding database reconstruction attacks on public data", CACM 2019, by a solver as here.

    Four blocks in two rows and two columns; only sums are published, rounded to a multiple of 3, and two blocks are known for certain:

    >>> counts = np.array([5, 0, 0, 0])
    >>> tables = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.arange(4)]
    >>> published = [np.array([6, 0]), np.array([6, 0]), np.array([6, 0, 0, 0])]
    >>> [ends.tolist() for ends in bound_counts(tables, [rounded_range(rounded, 3) for rounded in published])]
    [[5, 0, 0, 0], [7, 1, 1, 1]]
    """
    program = _make_program(tables, ranges)
    ends = [(program.least(block), program.most(block)) for block in range(program.size)]
    least, most = np.array(ends, np.int64).reshape(-1, 2).T
    return least, most


def _make_program(tables: Sequence[Table], ranges: Sequence[tuple[Integers, Integers]]) -> _Program:
    low, high = (np.concatenate([pair[end] for pair in ranges]).astype(np.float64) for end in (0, 1))
    sums = membership(tables)
    outer = scipy.optimize.Bounds(*_tighten(sums, low, high))
    return _Program(system=scipy.optimize.LinearConstraint(sums, low, high), outer=outer, size=sums.shape[1])


def _tighten(sums: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Narrow the range of each block by one sum at a time, until nothing changes: (n,) lower and (n,) upper ends, which no solution passes.

    In every sum, a block has at most what the sum's upper end leaves when all other blocks are at their lower ends, and at least what its
    lower end needs when they are at their upper ends.
    """
    inside = sums > 0
    least, most = np.zeros(sums.shape[1]), np.full(sums.shape[1], high.max())
    while True:
        room = np.where(inside, (high - sums @ least)[:, None], np.inf).min(axis=0)
        need = np.where(inside, (low - sums @ most)[:, None], -np.inf).max(axis=0)
        narrower = np.maximum(least, most + need), np.minimum(most, least + room)
        if (narrower[0] > narrower[1]).any():
            raise InputError(_IMPOSSIBLE)
        if (narrower[0] == least).all() and (narrower[1] == most).all():
            return least, most
        least, most = narrower


class _Program:
    """Integer programs over the same sums. Solutions are kept, because one that reaches the outer end of another block spares a program."""

    def __init__(self, system: scipy.optimize.LinearConstraint, outer: scipy.optimize.Bounds, size: int) -> None:
        self.system, self.outer, self.size = system, outer, size
        self.seen: list[Floats] = []

    def least(self, block: int) -> int:
        """Return the least count of a block."""
        return self._extreme(block, 1.0, float(self.outer.lb[block]))

    def most(self, block: int) -> int:
        """Return the largest count of a block."""
        return self._extreme(block, -1.0, float(self.outer.ub[block]))

    def _extreme(self, block: int, sign: float, outer: float) -> int:
        if self.outer.lb[block] == self.outer.ub[block] or any(solution[block] == outer for solution in self.seen):
            return round(outer)
        objective = np.zeros(self.size)
        objective[block] = sign
        found = scipy.optimize.milp(objective, constraints=self.system, integrality=np.ones(self.size, np.int64), bounds=self.outer)
        if found.x is None:
            raise InputError(_IMPOSSIBLE)
        self.seen.append(np.round(found.x))
        return int(self.seen[-1][block])


def share_pinned(least: Integers, most: Integers) -> float:
    """Return the share of blocks whose count is known for certain.

    >>> share_pinned(np.array([2, 0]), np.array([2, 1]))
    0.5
    """
    return float((least == most).mean())


def can_exceed(tables: Sequence[Table], ranges: Sequence[tuple[Integers, Integers]], block: int, others: int) -> bool:
    """Return whether a block can have more people than the others: if not, a person of whom the attacker asks is certainly not there.

    Saying "in" whenever that is possible wins as often as any other guess from the bounds: if "out" is possible, too, it is a coin.

    Args:
        tables: as for `bound_counts`.
        ranges: as for `bound_counts`.
        block: index of the person's block.
        others: the number of others in that block, all that the attacker knows beside the tables.

    Raises:
        InputError: no whole counts fit the ranges.

    >>> tables, ranges = [np.array([0, 0])], [(np.array([4]), np.array([6]))]
    >>> can_exceed(tables, ranges, 0, 5), can_exceed(tables, ranges, 0, 6)
    (True, False)
    """
    return _make_program(tables, ranges).most(block) > others
