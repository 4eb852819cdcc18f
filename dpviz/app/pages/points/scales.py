"""The density scale of public points, which stays the same whatever is released."""

from __future__ import annotations

import streamlit as st

from dpviz.data.points import PointCounts
from dpviz.release.point_release import PointRelease
from dpviz.view.partition_looks import row_areas
from dpviz.view.points_canvas import density_top

_SLOT = "density scale"


def public_density_top(points: PointCounts, release: PointRelease, unit: str, zoom: int) -> float:
    """Choose the top of the density scale of a zoom level from public counts; those of the last points are kept for the session.

    Args:
        points: public counts.
        release: names the unit of area.
        unit: what is counted, in the plural.
        zoom: the zoom level whose squares decide, 0 for the whole domain.
    """
    kept, tops = st.session_state.get(_SLOT, (None, {}))
    if kept is not points:
        kept, tops = st.session_state[_SLOT] = (points, {})
    if zoom not in tops:
        tops[zoom] = density_top(points.blocks(zoom), row_areas(points.domain, zoom), release, unit)
    return float(tops[zoom])
