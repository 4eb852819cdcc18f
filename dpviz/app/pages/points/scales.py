"""The density scale of public points, which stays the same whatever is released."""

from __future__ import annotations

import streamlit as st

from dpviz.data.points import PointCounts
from dpviz.release.point_release import PointRelease
from dpviz.view.partition_looks import row_areas
from dpviz.view.points_canvas import density_top

SCALE_ZOOM = 6  # the blocks of this zoom level decide the density scale
_SLOT = "density scale"


def public_density_top(points: PointCounts, release: PointRelease, unit: str) -> float:
    """Choose the top of the density scale from public counts; the last one is kept for the session.

    Args:
        points: public counts.
        release: names the unit of area.
        unit: what is counted, in the plural.
    """
    kept, top = st.session_state.get(_SLOT, (None, 0.0))
    if kept is not points:
        zoom = min(SCALE_ZOOM, points.domain.order)
        top = density_top(points.blocks(zoom), row_areas(points.domain, zoom), release, unit)
        st.session_state[_SLOT] = (points, top)
    return float(top)
