"""Types of numpy arrays, by their content, and the numbering of runs and slices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Places = NDArray[np.int32]
"""Indices of regions within their level."""
Lines = NDArray[np.int32]
"""Indices of lattice lines, from 0 in the west or south."""
Texts = NDArray[np.object_]
"""Texts of any length, such as ids and names."""


def number_runs(lengths: Integers) -> tuple[Integers, Integers]:
    """Number the entries of consecutive runs: return each entry's run, and its position in the run, from 0.

    >>> run, position = number_runs(np.array([2, 0, 3]))
    >>> run.tolist(), position.tolist()
    ([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])
    """
    run = np.repeat(np.arange(len(lengths)), lengths)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def slices(size: int, most: int) -> Iterator[slice]:
    """Yield consecutive slices of 0..size - 1, of at most `most` entries each.

    >>> list(slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(start, min(start + most, size)) for start in range(0, size, most))
