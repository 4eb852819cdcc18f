"""How partitions look on any map: in which order they are drawn, and by which scale they are coloured."""

from __future__ import annotations

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain
from dpviz.view.colors import Scale, top_of

OVERLAP = "Rectangles overlap: each is the box around a piece of the Hilbert curve."


def large_first(release: Release, nodes: Integers) -> Integers:
    """Partitions that overlap in the order in which they are drawn: small ones lie on top, where they can be pointed at."""
    if not release.tree.overlaps:
        return nodes
    west, south, east, north = release.tree.rectangles(nodes).T.astype(np.float64)
    return nodes[np.argsort((west - east) * (north - south), kind="stable")]


def density_scale(density: Floats, area: Floats, domain: Domain, unit: str) -> Scale:
    """The scale that serves most of the map's area: the noise of a tiny partition is a huge density that few pixels show."""
    per = "unit of area" if domain.crs is None else "km²"
    return Scale(kind="density", top=top_of(np.maximum(density, 0), area), title=f"{unit} per {per}")
