"""State of the Areas page: what is chosen and looked at, the data, and runs that follow the controls."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import OneRelease, Releases
from dpviz.app.state import kinds
from dpviz.data.areas import AreaCounts
from dpviz.evaluation.area_metrics import AreaEvaluation, evaluate_areas
from dpviz.families import AREA_FAMILY
from dpviz.release.area_release import AreaRelease
from dpviz.view.areas_drawing import Denominator, RegionsOnMap

EASY_TO_SEE = 4000  # regions on a map

AREAS = FamilyState(key=kinds.AREAS.key, kind=kinds.AREAS, families=(AREA_FAMILY,))


@dataclass(frozen=True, kw_only=True)
class AreasData(PageData[AreaCounts]):
    """Loaded counts of areas, and what the page may say about them.

    Attributes:
        on_map: where their regions lie; public.
        denominators: public numbers of the regions, by which counts can be divided, by their names among `MEASURES`.
    """

    on_map: RegionsOnMap
    denominators: dict[str, Denominator]


AreasDrawn = OneRelease[AreaRelease, AreasData, AreaEvaluation]
"""A release of areas."""
RELEASES = Releases[AreaRelease, AreasData, AreaEvaluation](page=AREAS, evaluate=evaluate_areas)
