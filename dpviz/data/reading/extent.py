"""The box around the points of public files. Of private data it would tell where their outermost records lie."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from dpviz.data.columns import PointColumns
from dpviz.data.reading.points import PointsRequest, read_rows
from dpviz.data.reading.sources import FoundFiles

Bounds: TypeAlias = tuple[float, float, float, float]

_MARGIN = 0.02  # of the extent, on each side
_SMALLEST = 1e-3  # of the coordinates' size: what a single point is given


def find_extent(files: FoundFiles, columns: PointColumns, *, centroids: bool = False) -> Bounds | None:
    """Find the box around the points of public files, with a margin, rounded outward to two digits of its size.

    Args:
        files: the files.
        columns: of the coordinates; x and y are found by their names if they are None.
        centroids: whether polygons are read as their centroids.

    Returns:
        West, south, east and north in the coordinates of the files; None if no row has a place.

    Raises:
        InputError: a file cannot be read, or the columns are not clear.
    """
    request = PointsRequest(target=None, columns=columns, bad_rows="drop", text_format=files.text_format, centroids=centroids)
    parts = [read_rows(source, request) for source in files.sources]
    x, y = np.concatenate([part.x for part in parts]), np.concatenate([part.y for part in parts])
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return None
    (west, east), (south, north) = (_widen(float(values[known].min()), float(values[known].max())) for values in (x, y))
    return west, south, east, north


def _widen(low: float, high: float) -> tuple[float, float]:
    """Widen an interval by the margin, and round it outward.

    >>> _widen(4.71, 5.04), _widen(500_000.0, 512_345.0), _widen(7.5, 7.5)
    ((4.7, 5.05), (499000.0, 513000.0), (7.4998, 7.5002))
    """
    size = max(high - low, _SMALLEST * max(abs(low), abs(high), 1.0))
    digits = 1 - math.floor(math.log10(size))
    step = 10.0**-digits
    return (
        round(math.floor((low - _MARGIN * size) / step) * step, digits),
        round(math.ceil((high + _MARGIN * size) / step) * step, digits),
    )
