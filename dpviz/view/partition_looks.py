"""Drawing order, colour scale and marks of partitions, for the map of the app and the map of the report."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.view.colors import Scale, occupied_top

OVERLAP = "Rectangles overlap: each is the bounding box of a piece of the Hilbert curve."
MASKED = "Where nobody can be, as declared, no partition is drawn; one that reaches there has all of its count in the rest."
OUTSIDE = " (the released number lies outside)"


def large_first(release: PointRelease, nodes: Integers) -> Integers:
    """Sort overlapping partitions by area, largest first: small ones are drawn last, on top, where they can be pointed at."""
    if not release.tree.overlaps:
        return nodes
    west, south, east, north = release.tree.rectangles(nodes).T.astype(np.float64)
    return nodes[np.argsort((west - east) * (north - south), kind="stable")]


def open_areas(domain: Domain, rectangles: NDArray[np.integer]) -> Floats:
    """Compute (k,) areas of lattice rectangles, without what the domain's mask covers, in km2 or units of a plane."""
    area, mask = domain.areas_km2(rectangles), domain.mask
    if mask is None:
        return area
    west, south, east, north = rectangles.T.astype(np.float64)
    return np.asarray(area * mask.cells_in(rectangles, domain.order) / ((east - west) * (north - south)))


def density_scale(density: Floats, area: Floats, domain: Domain, unit: str) -> Scale:
    """Choose the colour scale of a map of densities.

    Values are weighted by area: the noise of a tiny partition may be a huge density, but few pixels show it.

    Args:
        density: (k,) released counts per unit of area.
        area: (k,) of the partitions, in km2, or in square units of a plain plane.
        domain: names the unit of area.
        unit: what is counted, in the plural.
    """
    per = "unit of area" if domain.crs is None else "km²"
    return Scale(kind="density", top=occupied_top(density, area), title=f"{unit} per {per}")


def row_areas(domain: Domain, zoom: int) -> Floats:
    """Compute (2**zoom,) the area of an equal block in each row of a zoom level, row 0 in the south, in km2 or units of a plane."""
    width = domain.side >> zoom
    south = np.arange(1 << zoom, dtype=np.int32) * width
    return np.asarray(domain.areas_km2(np.stack([0 * south, south, 0 * south + width, south + width], axis=1)), np.float64)
