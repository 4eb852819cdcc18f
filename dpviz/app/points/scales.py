"""The density scale of public points, which stays the same whatever is released."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dpviz.data.points import PointCounts
from dpviz.view.points_canvas import ReleaseView, density_top

SCALE_ZOOM = 6  # the blocks of this zoom level decide the density scale
_SLOT = "density scale"


def public_density_top(points: PointCounts, digest: str, view: ReleaseView) -> float:
    """Choose the top of the density scale from public counts; the last one is kept for the session.

    Args:
        points: public counts.
        digest: identifies their content.
        view: names the unit of what is counted and of area.
    """
    domain = points.domain
    kept, top = st.session_state.get(_SLOT, (None, 0.0))
    if kept != (digest, domain):
        zoom = min(SCALE_ZOOM, domain.order)
        counts, width = points.blocks(zoom), domain.side >> zoom
        south = np.arange(len(counts), dtype=np.int32) * width
        areas = domain.areas_km2(np.stack([0 * south, south, 0 * south + width, south + width], axis=1))
        top = density_top(counts, areas, view.release, view.unit)
        st.session_state[_SLOT] = ((digest, domain), top)
    return float(top)
