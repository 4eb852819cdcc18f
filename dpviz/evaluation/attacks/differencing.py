"""Differencing: hidden small counts come back when tables of the same records are subtracted from each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers, Mask
from dpviz.evaluation.attacks.game import Table
from dpviz.mechanisms.contrasts import is_small

_ZERO = 1e-8


def count_by(table: Table, counts: Integers) -> Integers:
    """Add up the counts of blocks by the regions of a table.

    Args:
        table: (n,) the region of each block, from 0.
        counts: (n,) records in each block.

    Returns:
        (regions,) records in each region.

    >>> count_by(np.array([0, 0, 1]), np.array([4, 1, 7])).tolist()
    [5, 7]
    """
    sums = np.zeros(int(table.max()) + 1, np.int64)
    np.add.at(sums, table, counts)
    return sums


def hide_small(counts: Integers, threshold: int) -> Floats:
    """Hide counts from 1 to threshold - 1 as NaN, as offices do; empty regions are published as 0. NOT PRIVATE.

    >>> hide_small(np.array([12, 3, 0]), 5).tolist()
    [12.0, nan, 0.0]
    """
    return np.where(is_small(counts, threshold), np.nan, counts.astype(np.float64))


def membership(tables: Sequence[Table]) -> Floats:
    """Return a matrix of (regions of all tables, n blocks): 1 where the block is in the region, else 0."""
    return np.vstack([(np.arange(int(table.max()) + 1)[:, None] == table).astype(np.float64) for table in tables])


def recover_hidden(tables: Sequence[Table], published: Sequence[Floats]) -> Floats:
    """Recover the counts of blocks that follow from the published counts by adding and subtracting alone.

    Every published count is a linear equation in the counts of the blocks. A block is determined exactly if its count is the same in all
    solutions: if no vector that all published sums map to 0 changes it. Nothing is assumed about the others or the hiding; that hidden
    counts are small, whole numbers often says more (`dpviz.evaluation.attacks.rounding.bound_counts`).

    Args:
        tables: partitions of the same n blocks, up to about a thousand; the memory is n squared.
        published: for each table (regions,) its counts, NaN where hidden.

    Returns:
        (n,) the counts of blocks that are determined, NaN for the others.

    Source:
        Duke-Williams, Rees, "Can census offices publish statistics for more than one small area geography? An analysis of the
        differencing problem in statistical disclosure", International Journal of Geographical Information Science 1998.

    Three blocks by themselves, and in all; the one with 3 records is hidden, and comes back:

    >>> blocks, town = np.arange(3), np.zeros(3, np.int64)
    >>> counts = np.array([12, 3, 20])
    >>> tables = [hide_small(count_by(table, counts), 5) for table in (blocks, town)]
    >>> tables[0].tolist(), recover_hidden([blocks, town], tables).tolist()
    ([12.0, nan, 20.0], [12.0, 3.0, 20.0])
    """
    counts = np.concatenate(published)
    shown = ~np.isnan(counts)
    equations = membership(tables)[shown]
    solution = np.linalg.lstsq(equations, counts[shown], rcond=None)[0]
    free = np.abs(scipy.linalg.null_space(equations)).max(axis=1, initial=0.0) > _ZERO
    return np.where(free, np.nan, np.round(solution))


def subtract_once(tables: Sequence[Table], published: Sequence[Floats], known: Floats) -> Floats:
    """Find each block that is the only unknown one of a published region: the region's count minus its known blocks.

    Args:
        tables: partitions of the same n blocks.
        published: for each table (regions,) its counts, NaN where hidden.
        known: (n,) counts of blocks that are known already, NaN for the others.

    Returns:
        (n,) the known counts and those found.

    >>> subtract_once([np.array([0, 0, 1])], [np.array([9.0, 4.0])], np.array([7.0, np.nan, np.nan])).tolist()
    [7.0, 2.0, 4.0]
    """
    found = known.copy()
    unknown = np.isnan(known)
    for table, counts in zip(tables, published, strict=True):
        left = counts - np.bincount(table, np.nan_to_num(known), len(counts))
        alone = unknown & (np.bincount(table, unknown, len(counts)) == 1)[table] & ~np.isnan(counts)[table]
        found[alone] = left[table[alone]]
    return found


def guess_member(recovered: Floats, others: Integers) -> Mask:
    """Guess from recovered counts whether a person is in a block.

    Args:
        recovered: (games,) the recovered count of the person's block, NaN if it stayed hidden.
        others: (games,) the number of others in that block, all that the attacker knows beside the tables.

    Returns:
        (games,) the guess; "in" if the count stayed hidden, which is as good as a coin.

    >>> guess_member(np.array([3.0, 2.0, np.nan]), np.array([2, 2, 2])).tolist()
    [True, False, True]
    """
    return np.asarray(np.isnan(recovered) | (recovered > others))
