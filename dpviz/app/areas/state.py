"""State of the Areas page: the configuration that a link carries, the data, and runs that follow the controls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpviz.app.one_release import OneRelease, Releases
from dpviz.app.page_config import PageConfig
from dpviz.app.page_data import PageData
from dpviz.app.page_state import PageState
from dpviz.app.state.readers import Reader, choice_reader, number_reader, read_asked
from dpviz.app.state.values import COUNTS, MEASURES, MOST_LEVELS, SECOND
from dpviz.app.two_runs import second_run_of
from dpviz.data.areas import AreaCounts
from dpviz.evaluation.area_metrics import AreaEvaluation, evaluate_areas
from dpviz.families import AREA_FAMILY, Family
from dpviz.release.area_release import AreaRelease
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.view.areas_drawing import RELEASED, SHOWN_AREAS, TRUE, Denominator, RegionsOnMap

EASY_TO_SEE = 4000  # regions on a map


@dataclass(frozen=True, kw_only=True)
class AreasConfig(PageConfig):
    """Everything on the Areas page that can be shared as a link: parameters only, never data and never a path.

    Attributes:
        sample: key of the sample.
        level: the level shown, 1 to g; None for the finest level that is easy to see.
        measure: what colours the regions, one of `MEASURES`.
        asked: indices of regions of the level shown, which are outlined and added up.
    """

    family: ClassVar[Family] = AREA_FAMILY
    view_parts: ClassVar[tuple[str, ...]] = (*PageConfig.view_parts, "level", "measure", "asked")

    sample: str = "made_up_city"
    mechanism: str = AREA_FAMILY.usual[0]
    settings: dict[str, Any] = field(default_factory=lambda: dict(AREA_FAMILY.mechanisms[AREA_FAMILY.usual[0]].page_settings))
    level: int | None = None
    measure: str = COUNTS
    asked: tuple[int, ...] = ()
    shown: str = RELEASED
    left: str = TRUE

    def resets(self) -> dict[str, Any]:
        """Return new values of parameters for when the mechanism or a setting changes: none, since levels are those of the regions."""
        return {}

    @classmethod
    def readers(cls) -> dict[str, Reader]:
        """Return the reader of each parameter of a link."""
        return cls.run_readers() | {
            "sample": choice_reader(*AREA_SAMPLES),
            "level": number_reader(1, MOST_LEVELS, int),
            "measure": choice_reader(*MEASURES),
            "asked": read_asked,
            "shown": choice_reader(*SHOWN_AREAS),
            "left": choice_reader(*SHOWN_AREAS, SECOND),
        }


AREAS = PageState(key="areas config", kind=AreasConfig, families=(AREA_FAMILY,))
SECOND_RUN = second_run_of(AREAS)


def config() -> AreasConfig:
    """Return the configuration of the Areas page."""
    return AREAS.config()  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class AreasData(PageData[AreaCounts]):
    """Loaded counts of areas, and what the page may say about them.

    Attributes:
        on_map: where their regions lie; public.
        denominators: public numbers of the regions, by which counts can be divided, by their names among `MEASURES`.
    """

    on_map: RegionsOnMap
    denominators: dict[str, Denominator]


AreasDrawn = OneRelease[AreaRelease, AreasData, AreasConfig, AreaEvaluation]
"""A release of areas."""
RELEASES = Releases[AreaRelease, AreasData, AreasConfig, AreaEvaluation](page=AREAS, evaluate=evaluate_areas)
