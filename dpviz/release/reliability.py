"""The reliability of released counts, by their coefficient of variation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpviz.arrays import Floats

RELIABILITY = ((0.12, "high"), (0.40, "medium"))
"""Limits of the coefficient of variation, stddev / count, with the grades up to them; above the last one the grade is `LEAST_RELIABLE`."""
LEAST_RELIABLE = "low"


def grade_reliability(count: NDArray[Any], stddev: Floats) -> pa.DictionaryArray:
    """Grade the reliability of counts by their coefficient of variation, stddev / count.

    Args:
        count: (n,) counts.
        stddev: (n,) standard deviations of their noise.

    Returns:
        (n,) texts: "high" up to 12 %, "medium" up to 40 %, else "low". A count of 0 or less is "low", unless it is exact.
    """
    grades = np.full(len(stddev), len(RELIABILITY), np.int8)
    for grade, (bound, _) in reversed(list(enumerate(RELIABILITY))):
        grades[stddev <= bound * np.maximum(count, 0)] = grade
    return pa.DictionaryArray.from_arrays(grades, [*(name for _, name in RELIABILITY), LEAST_RELIABLE])
