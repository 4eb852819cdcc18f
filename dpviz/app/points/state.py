"""State of the Points page: the configuration that a link carries, the data, what was released last, and runs that follow the controls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from dpviz.app.class_limits import refuse_large_release
from dpviz.app.one_release import OneRelease, Releases
from dpviz.app.page_config import EVERYWHERE, SECOND, STUDY_AREAS, PageConfig
from dpviz.app.page_data import PageData
from dpviz.app.page_state import PageState
from dpviz.app.session import Reader, choice_reader, number_reader
from dpviz.app.two_runs import second_run_of
from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import Evaluation, evaluate_points
from dpviz.families import POINT_FAMILY, Family
from dpviz.release.point_release import PointRelease
from dpviz.samples.points import POINT_SAMPLES
from dpviz.view.basemap import Bounds
from dpviz.view.points_canvas import RELEASED, TRUE
from dpviz.view.points_map import INTERPOLATED, SHOWN

LARGEST_ORDER = 16
FARTHEST = 1e12  # larger than any coordinate on Earth; a box within it has a finite area


@dataclass(frozen=True, kw_only=True)
class Config(PageConfig):
    """Everything on the Points page that can be shared as a link: parameters only, never data and never a path.

    Attributes:
        sample: key of the sample.
        size: records of a made-up sample, None for its usual number.
        order: order of the domain's lattice.
        study_area: where people can be, one of `STUDY_AREAS`; a link that says "file" asks for the file of polygons.
        zoom: the zoom level shown; None for a level that is easy to read.
        box: west, south, east, north of the range query in the domain's coordinates while its tab is open in Teach; else None.
    """

    family: ClassVar[Family] = POINT_FAMILY
    view_parts: ClassVar[tuple[str, ...]] = (*PageConfig.view_parts, "zoom", "box")

    sample: str = "la_residents"
    size: int | None = None
    mechanism: str = POINT_FAMILY.usual[0]
    order: int = 10
    study_area: str = EVERYWHERE
    zoom: int | None = None
    box: Bounds | None = None
    shown: str = RELEASED
    left: str = TRUE

    def resets(self) -> dict[str, Any]:
        """Return new values of parameters for when the mechanism or a setting changes: the zoom level may not exist any more."""
        return {"zoom": None}

    @classmethod
    def readers(cls) -> dict[str, Reader]:
        """Return the reader of each parameter of a link."""
        return cls.run_readers() | {
            "left": choice_reader(*SHOWN, INTERPOLATED, SECOND),
            "sample": choice_reader(*POINT_SAMPLES),
            "size": number_reader(1, 10_000_000, int),
            "order": number_reader(1, LARGEST_ORDER, int),
            "study_area": choice_reader(*STUDY_AREAS),
            "zoom": number_reader(0, 24, int),
            "box": read_box,
            "shown": choice_reader(*SHOWN, INTERPOLATED),
        }


def read_box(text: str) -> Bounds:
    """Read the box of a link; raise ValueError or TypeError if it has no area, or reaches farther than any domain."""
    west, south, east, north = (float(side) for side in json.loads(text))
    if not (-FARTHEST <= west < east <= FARTHEST and -FARTHEST <= south < north <= FARTHEST):
        raise ValueError
    return west, south, east, north


POINTS = PageState(key="config", kind=Config, families=(POINT_FAMILY,))
SECOND_RUN = second_run_of(POINTS)


Data = PageData[PointCounts]
"""Loaded points."""
Drawn = OneRelease[PointRelease, Data, Config, Evaluation]
"""A release of points."""
RELEASES = Releases[PointRelease, Data, Config, Evaluation](
    page=POINTS, evaluate=evaluate_points, refuse=lambda release: refuse_large_release(len(release.tree))
)


def config() -> Config:
    """Return the configuration of the Points page."""
    return POINTS.config()  # type: ignore[no-any-return]
