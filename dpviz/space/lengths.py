"""How wide and high the cells of a domain's lattice are, in metres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Geod

from dpviz.arrays import Floats
from dpviz.space.domain import Domain

_EARTH = Geod(ellps="WGS84")


def unit_of_length(domain: Domain) -> str:
    """Return "m", or "" on a plane without a map, whose unit is not known.

    >>> unit_of_length(Domain(bounds=(0, 0, 8, 8), crs=None, order=3))
    ''
    """
    return "" if domain.crs is None or CRS(domain.crs).is_engineering else "m"


def cell_lengths(domain: Domain, row: NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Compute the widths and heights of lattice cells by their row.

    Args:
        domain: the public domain.
        row: (k,) rows of the lattice, 0 in the south.

    Returns:
        (k,) widths and (k,) heights in metres: in the middle of the row, on the WGS 84 ellipsoid for a CRS in degrees, on the plane for a
        projection. In units of the plane without a map.

    >>> widths, heights = cell_lengths(Domain(bounds=(0, 0, 2, 60), crs="EPSG:4326", order=1), np.array([0, 1]))
    >>> (widths / 1000).round().tolist(), (heights / 1000).round().tolist()
    ([108.0, 79.0], [3319.0, 3334.0])
    """
    width, height = domain.cell_size
    if not domain.is_geographic:
        metres = CRS(domain.crs).axis_info[0].unit_conversion_factor if unit_of_length(domain) else 1.0
        return np.full(len(row), width * metres), np.full(len(row), height * metres)
    latitude = np.radians(domain.bounds[1] + (np.asarray(row) + 0.5) * height)
    flat = 1 - _EARTH.es * np.sin(latitude) ** 2
    prime, meridian = _EARTH.a / np.sqrt(flat), _EARTH.a * (1 - _EARTH.es) / flat**1.5
    return np.radians(width) * prime * np.cos(latitude), np.radians(height) * meridian
