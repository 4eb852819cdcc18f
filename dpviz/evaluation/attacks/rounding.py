"""Reconstruction: exact bounds on counts behind rounded or hidden tables, by integer programming."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from dpviz.arrays import Integers
from dpviz.errors import InputError
from dpviz.evaluation.attacks.differencing import membership
from dpviz.evaluation.attacks.game import Table


def round_nearest(counts: Integers, base: int) -> Integers:
    """Round counts to the nearest multiple of an odd base. NOT PRIVATE.

    >>> round_nearest(np.arange(6), 3).tolist()
    [0, 0, 3, 3, 3, 6]
    """
    return (counts + base // 2) // base * base


def rounded_range(published: Integers, base: int, *, nearest: bool = True) -> tuple[Integers, Integers]:
    """Return the least and the largest count that can stand behind each rounded one.

    Args:
        published: (k,) multiples of the base.
        base: of the rounding; odd if `nearest`.
        nearest: counts were rounded to the nearest multiple; else to one of the two next to them, by a coin.

    >>> [ends.tolist() for ends in rounded_range(np.array([0, 6]), 3)]
    [[0, 5], [1, 7]]
    """
    reach = base // 2 if nearest else base - 1
    return np.maximum(published - reach, 0), published + reach


def bound_counts(
    tables: Sequence[Table], ranges: Sequence[tuple[Integers, Integers]], blocks: Integers | None = None
) -> tuple[Integers, Integers]:
    """Return the least and the largest count of each block that fit all published tables together.

    Every published number says in which range a sum of whole, non-negative counts lies. For each block two integer programs minimise and
    maximise its count under all ranges at once; where both agree, the count is known for certain. The bounds are exact: both ends belong to
    a table that fits.

    Args:
        tables: partitions of the same n blocks.
        ranges: for each table (regions,) the least and (regions,) the largest true count of its regions.
        blocks: (k,) indices of the blocks to bound; all if None.

    Returns:
        (k,) least and (k,) largest counts.

    Raises:
        InputError: no whole counts fit the ranges, or a block has no upper end.

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
    low, high = (np.concatenate([pair[end] for pair in ranges]).astype(np.float64) for end in (0, 1))
    system = LinearConstraint(membership(tables), low, high)
    size = len(tables[0])
    chosen = np.arange(size) if blocks is None else np.asarray(blocks)
    ends = np.array([[_extreme(block, sign, size, system) for sign in (1.0, -1.0)] for block in chosen.tolist()]).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def _extreme(block: int, sign: float, size: int, system: LinearConstraint) -> int:
    objective = np.zeros(size)
    objective[block] = sign
    found = milp(objective, constraints=system, integrality=np.ones(size), bounds=Bounds(0, np.inf))
    if found.x is None:
        raise InputError("No whole counts fit all ranges, or nothing bounds a block: check that all tables count the same records.")
    return round(sign * found.fun)


def share_pinned(least: Integers, most: Integers) -> float:
    """Return the share of blocks whose count is known for certain.

    >>> share_pinned(np.array([2, 0]), np.array([2, 1]))
    0.5
    """
    return float((least == most).mean())


def guess_member(least: Integers, most: Integers, others: Integers) -> NDArray[np.bool_]:
    """Guess from bounds whether a person is in a block.

    Args:
        least: (games,) the least count of the person's block.
        most: (games,) the largest.
        others: (games,) the number of others in that block.

    Returns:
        (games,) the guess: "out" if the count cannot exceed the others, else "in", which is as good as a coin if both fit.

    >>> guess_member(np.array([3, 0, 2]), np.array([3, 2, 4]), np.array([2, 2, 2])).tolist()
    [True, False, True]
    """
    return np.asarray(most > others)
