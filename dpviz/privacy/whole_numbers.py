"""Replace noisy numbers by the nearest non-negative whole numbers that add up to given totals, for many groups at once.

A group is the noisy counts of one family of siblings, and its total is the count of their parent. For both
distances, the results lie between max(x - d, 0) and max(x + u, 0), for one u and one d per group. `_chebyshev` and `_euclidean`
compute u and d; `_lower` starts at the upper ends, and lowers the entries of each group until they add up to its total.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpviz.arrays import Integers
from dpviz.errors import InputError, SettingError, check_choice
from dpviz.privacy.noise import LARGEST_COUNT, check_whole

DISTANCES = ("chebyshev", "euclidean", "solver")
ORDERS = ("ascending", "descending")
LARGEST_SUM = 2.0**62
SOLVER_CHILDREN = 64
SOLVER_NUMBERS = 50_000
SOLVER_LARGEST = 10**7
_BLOCK = 1 << 16
_SOLVER_BLOCK = 256
_KEY_BITS = 63
_INSTEAD = 'the distance "chebyshev" minimises the same and has no such limit'


def nearest_whole_numbers(x: Integers, *, total: int, distance: str = "chebyshev", order: str = "ascending") -> Integers:
    """The non-negative whole numbers nearest to `x` that add up to `total`.

    Args:
        x: (b,) whole numbers, which may be negative: the noisy counts of one family of siblings.
        total: the required sum, from 0 to 2**60: the count of their parent.
        distance: "chebyshev", "euclidean" or "solver", as in `nearest_in_groups`.
        order: "ascending" or "descending", as in `nearest_in_groups`.

    Returns:
        (b,) int64.

    Raises:
        SettingError: as `nearest_in_groups`.
        InputError: as `nearest_in_groups`; or the total is not a whole number, is out of range, or is above 0 although `x` is empty.

    >>> nearest_whole_numbers(np.array([5, -2, 9]), total=10).tolist()
    [3, 0, 7]
    """
    if isinstance(total, bool) or not isinstance(total, int | np.integer):
        raise InputError("The total must be a whole number.")
    if not 0 <= total <= LARGEST_COUNT:
        raise InputError("A total must lie between 0 and 2**60.")
    groups = min(1, np.size(x))
    if total and not groups:
        raise InputError("A total above 0 needs at least one number.")
    return nearest_in_groups(x, np.zeros(groups, np.int64), np.full(groups, total, np.int64), distance=distance, order=order)


def nearest_in_groups(
    x: Integers, starts: Integers, totals: Integers, *, distance: str = "chebyshev", order: str = "ascending"
) -> Integers:
    """For each group of numbers, the nearest non-negative whole numbers that add up to the group's total.

    Usually several results are nearest. One is chosen deterministically: the entries of a group are lowered one after the other,
    each as far as the distance allows, until the sum is right. Equal entries are lowered in the order of their indices.

    Args:
        x: (n,) whole numbers; group g is x[starts[g]:starts[g + 1]], and the last group ends with `x`.
        starts: (groups,) index at which each group begins: 0 first, strictly ascending.
        totals: (groups,) the required sums, at least 0.
        distance: what is minimised in each group: "chebyshev": the largest change; "euclidean": the sum of the squared changes;
            "solver": the largest change, by mixed-integer programming, with any of the nearest results; for small problems.
        order: "ascending" lowers small entries first, so that fewer true zeros stay positive; "descending" lowers large entries
            first, so that fewer true positive counts become 0. The solver ignores it.

    Returns:
        (n,) int64. Except for "solver", computed in whole numbers with O(n log n) operations.

    Raises:
        SettingError: the distance or the order is unknown, or the problem is too large for the solver.
        InputError: the numbers have no integer dtype or exceed 2**60; the magnitudes in a group and its total add up to more than
            2**62; the starts do not cut `x` into non-empty groups; or a total is negative.

    Source:
        Boninsegna, Silvestri, "Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown
        Approach", 2025: "chebyshev" is Algorithm 4 (IntOpt) with a stable sort and its rounds in closed form.
        "euclidean" is our rounding of the real projection max(x - theta, 0). Start at max(x - ceil(theta), 0), whose sum is too
        small by less than the number of positive entries, and raise entries by one. Raising any entry that is positive in the
        projection costs the same, since these all have the same fractional part; raising another one costs more. A sum of convex
        functions is minimised by taking the cheapest step each time.
    """
    check_choice(distance, DISTANCES, "The distance")
    check_choice(order, ORDERS, "The order")
    values, first_indices, sums = check_whole(x, "The numbers"), check_whole(starts, "The starts"), check_whole(totals, "The totals")
    _check_groups(values, first_indices, sums)
    sizes = np.diff(first_indices, append=values.size)
    _check_size(values, first_indices, sums, sizes)
    if distance == "solver":
        return _solve_groups(values, sizes, sums)
    nearest = np.empty(values.size, np.int64)
    for groups, entries in _cut_blocks(sizes, _BLOCK):
        families = _Families(values[entries], sizes[groups], sums[groups])
        bounds = _euclidean(families) if distance == "euclidean" else _chebyshev(families)
        nearest[entries] = _lower(families, *bounds, descending=order == "descending")
    return nearest


def _check_groups(x: Integers, starts: Integers, totals: Integers) -> None:
    if starts.size != totals.size:
        raise InputError(f"Each group needs one start and one total; {starts.size:,} starts and {totals.size:,} totals were given.")
    if bool(starts.size) != bool(x.size) or (starts.size and starts[0] != 0):
        raise InputError("The first group must begin at 0, and every number must belong to a group.")
    if (np.diff(starts, append=x.size) <= 0).any():
        raise InputError("Every group must hold at least one number: starts must grow and stay below the number of numbers.")
    if (totals < 0).any():
        raise InputError("A total must be at least 0.")


def _check_size(x: Integers, starts: Integers, totals: Integers, sizes: Integers) -> None:
    """Refuse groups whose sums might overflow int64. If a cheap bound does not exclude that, the sums are computed in floats."""
    if not x.size or max(-int(x.min()), int(x.max())) * int(sizes.max()) + int(totals.max()) <= LARGEST_SUM:
        return
    if (np.add.reduceat(np.abs(x.astype(np.float64)), starts) + totals > LARGEST_SUM).any():
        raise InputError("The magnitudes of a group and its total must add up to at most 2**62.")


def _cut_blocks(sizes: Integers, entries: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of consecutive whole groups, and of their numbers, about `entries` at a time, to fit the processor's cache."""
    edges = np.concatenate([[0], np.cumsum(sizes)])
    cuts = np.unique(np.append(np.searchsorted(edges, np.arange(0, edges[-1], entries)), sizes.size))
    for first, last in pairwise(cuts.tolist()):
        yield slice(first, last), slice(int(edges[first]), int(edges[last]))


class _Families(NamedTuple):
    """Non-empty groups of numbers, stored one after the other, with their required sums.

    Attributes:
        x: (n,) numbers.
        sizes: (groups,) number of numbers of each group.
        totals: (groups,) required sums.
    """

    x: Integers
    sizes: Integers
    totals: Integers

    def per_group(self, ufunc: np.ufunc, numbers: Integers | NDArray[np.bool_]) -> Integers:
        """(groups,) `ufunc` (a sum, minimum or maximum) over each group of (n,) numbers."""
        reduced: Integers = ufunc.reduceat(numbers, np.cumsum(self.sizes) - self.sizes, dtype=np.int64)
        return reduced

    def above(self, level: Integers) -> tuple[Integers, Integers]:
        """(k,) indices of the numbers above their group's level, and (groups,) how many of them each group has."""
        is_above = self.x > np.repeat(level, self.sizes)
        return np.flatnonzero(is_above), self.per_group(np.add, is_above)


def _chebyshev(families: _Families) -> tuple[Integers, Integers]:
    """(groups,) u and (groups,) d: the nearest results lie between max(x - d, 0) and max(x + u, 0), and some of them has the total.

    If all numbers are raised by the smallest u for which x + u adds up to at least the total, max(x + u, 0) adds up to at least the
    total, too. The largest change must be at least |u|, and at least -x for every x, as results are not negative: d is the larger
    of these. If max(x - d, 0) still adds up to more than the total, d must be larger: the smallest d that suffices. Then, as d - 1
    does not suffice, max(x - (d - 1), 0) adds up to more than the total, and u = 1 - d.
    """
    raise_by = _ceiling(families.totals - families.per_group(np.add, families.x), families.sizes)
    least_cut = np.maximum(np.abs(raise_by), -families.per_group(np.minimum, families.x))
    cut = _least_cut(families, least_cut)
    return np.where(cut == least_cut, raise_by, 1 - cut), cut


def _euclidean(families: _Families) -> tuple[Integers, Integers]:
    """(groups,) 1 - d and (groups,) d, where d = ceil(theta) for the Euclidean projection max(x - theta, 0) onto the simplex."""
    largest, total = families.per_group(np.maximum, families.x), families.per_group(np.add, families.x)
    cut = _least_cut(families, np.maximum(largest - families.totals, _ceiling(total - families.totals, families.sizes)))
    return 1 - cut, cut


def _least_cut(families: _Families, at_least: Integers) -> Integers:
    """(groups,) the smallest whole t >= at_least for which the sum of max(0, x - t) is at most the total.

    That is the maximum, over k, of ceil((S_k - total) / k), where S_k is the sum of the k largest numbers of the group.
    """
    indices, counts = families.above(at_least)
    if not indices.size:
        return at_least
    x = families.x[indices]
    sums = _running_sums(x[_sort_order(-x, counts)])
    firsts = np.cumsum(counts) - counts
    excess = sums[1:] - np.repeat(sums[firsts] + families.totals, counts)
    rank = np.arange(1, x.size + 1) - np.repeat(firsts, counts)
    cut, nonempty = at_least.copy(), counts > 0
    cut[nonempty] = np.maximum(cut[nonempty], np.maximum.reduceat(_ceiling(excess, rank), firsts[nonempty]))
    return cut


def _lower(families: _Families, up: Integers, down: Integers, *, descending: bool) -> Integers:
    """(n,) max(x + up, 0), in which entries are lowered in order, at most to max(x - down, 0), until each total is reached."""
    indices, counts = families.above(-up)
    y = families.x[indices] + np.repeat(up, counts)
    order = _sort_order(-y if descending else y, counts)
    sums, edges = _running_sums(y), np.cumsum(counts)
    excess = sums[edges] - sums[edges - counts] - families.totals
    room = np.minimum(y, np.repeat(up + down, counts))[order]
    available = _running_sums(room)
    excess_before = np.repeat(excess + available[edges - counts], counts) - available[:-1]
    y[order] -= np.clip(excess_before, 0, room)
    lowered = np.zeros(families.x.size, np.int64)
    lowered[indices] = y
    return lowered


def _running_sums(numbers: Integers) -> Integers:
    """(n + 1,) cumulative sum, starting with 0. It may overflow; its differences within a group are below 2**63 and stay exact."""
    sums = np.zeros(numbers.size + 1, np.int64)
    np.cumsum(numbers, out=sums[1:])
    return sums


def _ceiling(numerator: Integers, denominator: Integers) -> Integers:
    return -(-numerator // denominator)


def _sort_order(rank: Integers, counts: Integers) -> Integers:
    """(n,) indices that sort each group by rank, and equal ranks by index.

    If group, rank and index fit in 63 bits together, they are sorted as one key, which is faster.
    """
    if not rank.size:
        return np.empty(0, np.int64)
    group, low = np.repeat(np.arange(counts.size), counts), int(rank.min())
    rank_bits, index_bits = (int(rank.max()) - low).bit_length(), (rank.size - 1).bit_length()
    if (counts.size - 1).bit_length() + rank_bits + index_bits > _KEY_BITS:
        return np.lexsort((rank, group))
    group <<= rank_bits
    group += rank - low
    group <<= index_bits
    group += np.arange(rank.size)
    group.sort()
    group &= (1 << index_bits) - 1
    return group


def _solve_groups(x: Integers, sizes: Integers, totals: Integers) -> Integers:
    """(n,) nearest whole numbers by Chebyshev distance, by mixed-integer programs of several groups each."""
    if x.size and (sizes.max() > SOLVER_CHILDREN or x.size > SOLVER_NUMBERS):
        raise SettingError(f"The solver takes at most {SOLVER_CHILDREN} numbers in a group and {SOLVER_NUMBERS:,} in all; {_INSTEAD}.")
    nearest = np.empty(x.size, np.int64)
    for groups, entries in _cut_blocks(sizes, _SOLVER_BLOCK):
        nearest[entries] = _solve_block(_Families(x[entries], sizes[groups], totals[groups]))
    return nearest


def _solve_block(families: _Families) -> Integers:
    """(n,) x + z, where the largest change |z| of each group is minimal.

    The solver HiGHS is inexact. If an exact comparison shows that a group's largest change could be smaller, the program is solved again
    without this change.
    """
    missing = families.totals - families.per_group(np.add, families.x)
    low = np.maximum(_ceiling(np.abs(missing), families.sizes), -families.per_group(np.minimum, families.x))
    if low.max() > SOLVER_LARGEST:
        raise SettingError(f"The solver takes numbers that need changes up to about {SOLVER_LARGEST:,}; {_INSTEAD}.")
    largest = np.maximum(low, families.per_group(np.maximum, families.x))
    while True:
        z = _changes(families, missing, low, largest)
        change = families.per_group(np.maximum, np.abs(z))
        least_sum = families.per_group(np.add, np.maximum(-families.x, 1 - np.repeat(change, families.sizes)))
        improvable = (change > low) & (least_sum <= missing)
        if not improvable.any():
            return families.x + z
        largest[improvable] = change[improvable] - 1


def _changes(families: _Families, missing: Integers, low: Integers, most: Integers) -> Integers:
    """(n,) whole changes z of one mixed-integer program: x + z >= 0, |z| <= most, and in each group the sum of z is `missing`.

    The program minimises the sum of whole numbers beta >= 0, one per group, with |z| <= low + beta.
    """
    n, groups = families.x.size, families.sizes.size
    membership = scipy.sparse.csr_array((np.ones(n), (np.arange(n), np.repeat(np.arange(groups), families.sizes))), shape=(n, groups))
    one = scipy.sparse.eye_array(n, format="csr")
    matrix = scipy.sparse.block_array([[one, -membership], [-one, -membership], [membership.T, None]], format="csc")
    limits, largest_change = np.tile(np.repeat(low, families.sizes), 2), np.repeat(most, families.sizes)
    result = scipy.optimize.milp(
        np.repeat([0.0, 1.0], [n, groups]),
        integrality=np.ones(n + groups, np.int64),
        bounds=scipy.optimize.Bounds(
            np.append(np.maximum(-families.x, -largest_change), np.zeros(groups)), np.append(largest_change, np.full(groups, np.inf))
        ),
        constraints=scipy.optimize.LinearConstraint(matrix, np.append(np.full(2 * n, -np.inf), missing), np.append(limits, missing)),
        options={"mip_rel_gap": 0.0},
    )
    z = np.zeros(n, np.int64) if result.x is None else np.rint(result.x[:n]).astype(np.int64)
    if (
        result.x is None
        or (families.per_group(np.add, z) != missing).any()
        or (z < -families.x).any()
        or (np.abs(z) > largest_change).any()
    ):
        raise SettingError(f"The solver found no whole numbers; {_INSTEAD}.")
    return z
