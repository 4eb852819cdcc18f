"""State of the Areas page: the configuration that a link carries, the data, and runs that follow the controls."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpviz.app.ledger import Funding
from dpviz.app.one_release import OneRelease, drawn_slot, find_truth, make_run, pay_for_release
from dpviz.app.page_config import SECOND, PageConfig
from dpviz.app.page_data import PageData
from dpviz.app.page_state import PageState
from dpviz.app.session import Reader, choice_reader, newest_result, number_reader
from dpviz.app.two_runs import second_run_of
from dpviz.data.areas import AreaCounts
from dpviz.errors import RefusedError
from dpviz.evaluation.area_metrics import AreaEvaluation, evaluate_areas
from dpviz.mechanisms import AREA_FAMILY, AnyFamily
from dpviz.release.area_release import AreaRelease
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.view.areas_drawing import RELEASED, SHOWN_AREAS, TRUE, Denominator, RegionsOnMap

COUNTS, RATES, DENSITY = "Counts", "Rates", "Per km²"
MEASURES = (COUNTS, RATES, DENSITY)
"""What colours the regions: counts, counts by a public number of the sample, or counts by area."""
MOST_ASKED = 60  # regions that are added up
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

    family: ClassVar[AnyFamily] = AREA_FAMILY
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
            "level": number_reader(1, 16, int),
            "measure": choice_reader(*MEASURES),
            "asked": _read_asked,
            "shown": choice_reader(*SHOWN_AREAS),
            "left": choice_reader(*SHOWN_AREAS, SECOND),
        }


def _read_asked(text: str) -> tuple[int, ...]:
    """Read the regions of a link: at most `MOST_ASKED` different whole numbers."""
    numbers: Any = json.loads(text)
    asked = tuple(dict.fromkeys(number_reader(0, 2**31, int)(str(number)) for number in numbers))
    if len(asked) > MOST_ASKED:
        raise ValueError
    return asked


AREAS = PageState(key="areas config", kind=AreasConfig, families=(AREA_FAMILY,))
SECOND_RUN = second_run_of(AREAS)


def config() -> AreasConfig:
    """Return the configuration of the Areas page."""
    return AREAS.config()  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class AreasData(PageData):
    """Loaded counts of areas, and what the page may say about them.

    Attributes:
        areas: the private counts.
        on_map: where their regions lie; public.
        denominators: public numbers of the regions, by which counts can be divided, by their names among `MEASURES`.
    """

    areas: AreaCounts
    on_map: RegionsOnMap
    denominators: dict[str, Denominator]

    @property
    def private(self) -> AreaCounts:
        """The counts, by the name that the data of all pages have in common."""
        return self.areas


class AreasDrawn(OneRelease[AreaRelease, AreasData, AreasConfig, AreaEvaluation]):
    """One run, kept until the next one."""


def evaluation_of(what: AreasDrawn) -> AreaEvaluation:
    """Return the comparison with the truth of a run in Teach, which was made together with it.

    Raises:
        RefusedError: the run was made in Curate.
    """
    if what.evaluation is None:
        raise RefusedError("The truth of private counts is shown behind its switch alone.")
    return what.evaluation


def drawn() -> AreasDrawn | None:
    """Return what was released last in Curate; None before the first release."""
    return newest_result(drawn_slot(AREAS))  # type: ignore[no-any-return]


def draw(data: AreasData, funding: Funding | None) -> None:
    """Release once in Curate and keep the result, see `pay_for_release`."""
    pay_for_release(AREAS, AreasDrawn, data, funding)


def truth_of(what: AreasDrawn) -> AreaEvaluation | None:
    """Return the comparison of a release with the truth; None unless `truth_allowed`."""
    return find_truth(AREAS, what, evaluate_areas)


def run_of(data: AreasData, how: AreasConfig, check: Callable[[], None]) -> AreasDrawn:
    """Release public counts in Teach, and compare the release with the truth, see `make_run`."""
    return make_run(AreasDrawn, data, how, check, evaluate_areas)
