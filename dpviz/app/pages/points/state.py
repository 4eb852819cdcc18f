"""State of the Points page: what is chosen and looked at, the data, what was released last, and runs that follow the controls."""

from __future__ import annotations

from typing import Any

from dpviz.app.server.class_limits import refuse_large_release
from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import OneRelease, Releases
from dpviz.app.state import kinds
from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import Evaluation, evaluate_points
from dpviz.families import POINT_FAMILY
from dpviz.release.point_release import PointRelease

POINTS = FamilyState(key=kinds.POINTS.key, kind=kinds.POINTS, families=(POINT_FAMILY,))


Data = PageData[PointCounts]
"""Loaded points."""
Drawn = OneRelease[PointRelease, Data, Evaluation]
"""A release of points."""
RELEASES = Releases[PointRelease, Data, Evaluation](
    page=POINTS, evaluate=evaluate_points, refuse=lambda release: refuse_large_release(len(release.tree))
)


def study_area_answer() -> tuple[str, dict[str, Any]]:
    """Return where people can be, and the arguments of the widget that shows it, for `ask_study_area`."""
    return POINTS.draft.study_area, POINTS.widget("draft", "study_area", "study area kind")
