"""How many rectangles lie over each other at most, without a table of all places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def deepest(rectangles: Integers, weight: Integers | None = None) -> int:
    """The largest sum of the weights of the rectangles that hold one and the same place; at least 0.

    A line sweeps over the columns. A binary tree over the rows keeps, for every node, the largest sum of what lies under it and not
    over all of it, as a list of the columns where that changes; the lists of a level are made from those below, all at once. A
    rectangle has at most eight entries per level: time grows like n log(n)**2 and memory like n, whatever the coordinates.

    Args:
        rectangles: (n, 4) west, south, east, north, half-open; those without an inside count nowhere.
        weight: (n,) whole weights of either sign; 1 each if None.
    """
    solid = (rectangles[:, :2] < rectangles[:, 2:]).all(axis=1)
    weight = (np.ones(len(rectangles), np.int64) if weight is None else weight)[solid]
    if not len(weight):
        return 0
    west, south, east, north = rectangles[solid].T
    edges, rows = np.unique(np.concatenate([south, north]), return_inverse=True)
    low, high = (np.tile(part, 2) for part in rows.reshape(2, -1))
    column, step = np.concatenate([west, east]), np.concatenate([weight, -weight])
    lists = np.zeros((3, 0), np.int64)
    for _ in range((len(edges) - 2).bit_length() + 1):
        first, last = (low < high) & (low % 2 == 1), (low < high) & (high % 2 == 1)
        whole = np.stack([np.concatenate(pair) for pair in ((low[first], high[last] - 1), *((c[first], c[last]) for c in (column, step)))])
        lists = _level(lists, whole)
        low, high = (low + first) // 2, (high - last) // 2
    return max(int(lists[2].max()), 0)


def _level(below: Integers, whole: Integers) -> Integers:
    """The lists of one level of nodes.

    Args:
        below: (3, k) node, column, largest sum from there on: the lists of the children.
        whole: (3, l) node, column, by how much the weight of what lies over all of the node changes.

    Returns:
        (3, m) node, column, largest sum from there on, in this order.
    """
    kind = np.concatenate([below[0] % 2, np.full(whole.shape[1], 2)])
    node, column, value = np.concatenate([np.stack([below[0] // 2, *below[1:]]), whole], axis=1)
    order = np.lexsort((column, node))
    node, column, value, kind = node[order], column[order], value[order], kind[order]
    place, fresh = np.arange(len(node)), np.diff(node, prepend=-1) > 0
    start = np.maximum.accumulate(np.where(fresh, place, 0))
    over = np.concatenate([[0], np.cumsum(np.where(kind == 2, value, 0))])
    latest = (np.maximum.accumulate(np.where(kind == side, place, -1)) for side in (0, 1))
    left, right = (np.where(seen >= start, value[seen], 0) for seen in latest)
    found = np.stack([node, column, over[1:] - over[start] + np.maximum(left, right)])
    ends = np.append((node[1:] != node[:-1]) | (column[1:] != column[:-1]), True)
    return found[:, ends]
