"""The values of the records of many nodes along one axis, the input of every private median."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Integers
from dpviz.errors import InputError, check_choice

Whole = NDArray[Any]

LARGEST_VALUE = 2**48
_VALUES_AT_ONCE = 2**20


OUTSIDE = ("nearest", "middle")


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeValues:
    """The values of records along one axis, such as their lattice columns, node by node. PRIVATE.

    A node covers the whole values low..high - 1 and can be split at the lines low + 1..high - 1: a record with value v goes left of
    line s if v < s. A node may have no records.

    Attributes:
        value: (k,) whole numbers, in ascending order within each node; a value may be repeated.
        count: (k,) how many records have each value, at least 1.
        start: (n + 1,) the values of node i are value[start[i]:start[i + 1]].
        low: (n,) smallest possible value of each node, 0 to 2**48. PUBLIC.
        high: (n,) one more than the largest possible value; at least low + 2, so that there is a line. PUBLIC.

    Raises:
        InputError: the lengths of the arrays do not fit together, values are out of order or outside their node, or a node has no line.

    >>> NodeValues(
    ...     value=np.array([3, 5, 9]), count=np.array([1, 2, 1]), start=np.array([0, 2, 3]), low=np.array([0, 8]), high=np.array([8, 16])
    ... ).records.tolist()
    [3, 1]
    """

    value: Whole
    count: Whole
    start: Integers
    low: Whole
    high: Whole

    def __post_init__(self) -> None:
        if len(self.value) != len(self.count) or not len(self.low) == len(self.high) == len(self.start) - 1:
            raise InputError("value and count need one length, and start one entry more than low and high.")
        sizes = np.diff(self.start)
        if self.start[0] != 0 or self.start[-1] != len(self.value) or (len(sizes) and sizes.min() < 0):
            raise InputError("start must rise from 0 to the number of values.")
        if len(sizes) and (self.low.min() < 0 or self.high.max() > LARGEST_VALUE or (self.high - self.low).min() < 2):
            raise InputError("A node needs at least two possible values, from 0 to 2**48.")
        nonempty = np.flatnonzero(sizes)
        first, last = self.value[self.start[nonempty]], self.value[self.start[nonempty + 1] - 1]
        falls = np.count_nonzero(self._steps < 0) - np.count_nonzero(self._steps[self.start[nonempty[1:]] - 1] < 0)
        if falls or (first < self.low[nonempty]).any() or (last >= self.high[nonempty]).any():
            raise InputError("The values of a node must be in order and inside it.")

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.low)

    def __repr__(self) -> str:
        return f"NodeValues({len(self):,} nodes)"

    @classmethod
    def of_one(cls, values: ArrayLike, low: int, high: int) -> Self:
        """One node with the given records.

        Args:
            values: (n,) whole numbers in any order, one per record.
            low: the smallest possible value.
            high: one more than the largest possible value.

        Raises:
            InputError: a value is outside the node, or the node has no line.

        >>> NodeValues.of_one([3, 1, 3], 0, 8).count.tolist()
        [1, 2]
        """
        value, count = np.unique(np.asarray(values, np.int64), return_counts=True)
        return cls(value=value, count=count, start=np.array([0, len(value)]), low=np.array([low]), high=np.array([high]))

    @cached_property
    def _steps(self) -> Whole:
        return np.diff(self.value)

    @cached_property
    def records(self) -> Integers:
        """(n,) records in each node."""
        sums = np.concatenate([[0], np.cumsum(self.count, dtype=np.int64)])
        return np.diff(sums[self.start])

    @property
    def middle(self) -> Integers:
        """(n,) the public middle line of each node."""
        return (self.low.astype(np.int64) + self.high) // 2

    def first_entries(self) -> Integers:
        """(g,) index in `value` of the first entry of each distinct value of each node."""
        is_first = np.ones(len(self.value), np.bool_)
        np.not_equal(self._steps, 0, out=is_first[1:])
        is_first[self.start[:-1][np.diff(self.start) > 0]] = True
        return np.flatnonzero(is_first)

    def batches(self) -> Iterator[Self]:
        """Yield parts of the nodes, in order, with about a million values each, so that memory stays bounded."""
        first, nodes = 0, len(self)
        while first < nodes:
            last = int(np.searchsorted(self.start, self.start[first] + _VALUES_AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), nodes)
            yield self._part(first, last)
            first = last

    def _part(self, first: int, last: int) -> Self:
        if (first, last) == (0, len(self)):
            return self
        begin, end = self.start[first], self.start[last]
        return type(self)(
            value=self.value[begin:end],
            count=self.count[begin:end],
            start=self.start[first : last + 1] - begin,
            low=self.low[first:last],
            high=self.high[first:last],
        )


def move_inside(nodes: NodeValues, line: Integers, outside: str) -> Integers:
    """Replace lines outside their nodes.

    Args:
        nodes: n nodes.
        line: (n,) whole numbers.
        outside: what replaces a line outside: the "nearest" line of the node, or its "middle".

    Returns:
        (n,) lines strictly inside their nodes.

    Raises:
        SettingError: `outside` is unknown.
    """
    check_choice(outside, OUTSIDE, "outside")
    clipped = np.clip(line, nodes.low.astype(np.int64) + 1, nodes.high.astype(np.int64) - 1)
    return np.where(clipped == line, line, nodes.middle) if outside == "middle" else clipped
