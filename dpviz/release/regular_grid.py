"""Partitions that form a grid of rows and columns, as an xarray Dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpviz.errors import DomainError, SettingError
from dpviz.space.domain import Domain

if TYPE_CHECKING:
    import xarray

NOT_REGULAR = (
    "The partitions of this level form no grid of equal rows and columns: some are divided further than others. Choose a coarser level, or"
    " use to_frame, or blocks, which estimates counts in equal blocks."
)


def make_dataset(
    domain: Domain, rectangles: NDArray[np.integer[Any]], columns: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]
) -> xarray.Dataset:
    """Arrange the numbers of partitions in rows and columns.

    Args:
        domain: the public domain.
        rectangles: (k, 4) west, south, east, north of the partitions as lattice lines.
        columns: (k,) numbers by name.
        facts: attributes of the dataset.

    Returns:
        Dataset with dimensions y and x, both ascending, whose coordinates are the centres of the partitions, in the domain's CRS. Its
        attributes are the facts, and `crs`.

    Raises:
        DomainError: the partitions form no grid.
        SettingError: xarray is not installed.
    """
    try:
        import xarray  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError:
        raise SettingError('to_xarray needs xarray, which is not installed: pip install "dpviz[plot]".') from None
    order, rows, width = _find_order(rectangles)
    west, south, east, north = domain.coordinates(rectangles[order]).T.reshape(4, rows, width)
    arranged = {name: (("y", "x"), values[order].reshape(rows, width)) for name, values in columns.items()}
    centres = {"y": ("y", (south[:, 0] + north[:, 0]) / 2), "x": ("x", (west[0] + east[0]) / 2)}
    return xarray.Dataset(arranged, coords=centres, attrs={**facts, "crs": domain.crs or ""})


def _find_order(rectangles: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], int, int]:
    """Find the order of partitions from the south, in each row from the west, and the numbers of rows and of columns.

    Raises:
        DomainError: they form no grid.
    """
    order = np.lexsort((rectangles[:, 0], rectangles[:, 1]))
    rows, width = len(np.unique(rectangles[:, 1])), len(np.unique(rectangles[:, 0]))
    if rows * width != len(rectangles):
        raise DomainError(NOT_REGULAR)
    west, south, east, north = rectangles[order].T.reshape(4, rows, width)
    same = (west == west[:1]).all() and (east == east[:1]).all() and (south == south[:, :1]).all() and (north == north[:, :1]).all()
    if not same:
        raise DomainError(NOT_REGULAR)
    return order, rows, width
