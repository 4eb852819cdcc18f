"""Hypothesis strategies for the public frame and for points on it; reused by every test that needs either."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpviz.space.domain import Domain

CRSS = (None, "EPSG:4326", "EPSG:3857", "EPSG:32633")
WINDOWS = {
    None: (-1e4, -1e4, 1e4, 1e4),
    "EPSG:4326": (-179, -84, 179, 84),
    "EPSG:3857": (-1.9e7, -1.9e7, 1.9e7, 1.9e7),
    "EPSG:32633": (3e5, 4e6, 7e5, 7e6),
}


@st.composite
def domains(draw: st.DrawFn, *, crss: tuple[str | None, ...] = CRSS, orders: tuple[int, int] = (1, 12)) -> Domain:
    """Valid domains: a rectangle of at least a thousandth of the CRS's own window on each axis."""
    crs = draw(st.sampled_from(crss))
    west, south, east, north = WINDOWS[crs]
    share = st.lists(st.integers(0, 1000), min_size=2, max_size=2, unique=True).map(lambda ends: np.sort(ends) / 1000)
    (left, right), (low, high) = (start + (end - start) * draw(share) for start, end in ((west, east), (south, north)))
    bounds = (float(left), float(low), float(right), float(high))
    return Domain(bounds=bounds, crs=crs, order=draw(st.integers(*orders)))


@st.composite
def points_in(draw: st.DrawFn, domain: Domain, *, most: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """(n,) x and (n,) y of 0 to `most` points inside a domain, its edges included."""
    length = draw(st.integers(0, most))
    share = hnp.arrays(np.float64, length, elements=st.floats(0, 1, width=32))
    west, south, east, north = domain.bounds
    x = west + (east - west) * draw(share)
    y = south + (north - south) * draw(share)
    return np.clip(x, west, east), np.clip(y, south, north)


@st.composite
def lattice_rectangles(draw: st.DrawFn, domain: Domain, *, most: int = 20) -> np.ndarray:
    """(n, 4) west, south, east, north as lattice lines, each with at least one cell."""
    length = draw(st.integers(1, most))
    lines = draw(hnp.arrays(np.int64, (length, 2, 2), elements=st.integers(0, domain.side)))
    low, high = lines.min(axis=1), lines.max(axis=1)
    low = np.minimum(low, domain.side - 1)
    return np.concatenate([low, np.maximum(high, low + 1)], axis=1)


def dense(points):
    """(side, side) counts of `PointCounts`, [row, column]."""
    table = np.zeros((points.domain.side, points.domain.side), np.int64)
    table[points.row, points.column] = points.count
    return table
