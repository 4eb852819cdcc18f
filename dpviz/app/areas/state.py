"""State of the Areas page: the configuration that a link carries, the data, and runs that follow the controls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import streamlit as st

from dpviz.app.ledger import Funding, Source, make_order, pay_and_draw, session_draws
from dpviz.app.page_config import SECOND, PageConfig
from dpviz.app.page_state import UNPAID, PageState, truth_allowed
from dpviz.app.session import Reader, choice_reader, newest_result, number_reader, result_slot
from dpviz.app.two_runs import SecondRun
from dpviz.data.areas import AreaCounts
from dpviz.errors import RefusedError
from dpviz.evaluation.area_metrics import AreaEvaluation, evaluate_areas
from dpviz.mechanisms import AREA_FAMILY, AREA_MECHANISMS, AnyFamily
from dpviz.privacy.entropy import Entropy
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
    settings: dict[str, Any] = field(default_factory=lambda: dict(AREA_MECHANISMS[AREA_FAMILY.usual[0]].page_settings))
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
SECOND_RUN = SecondRun(key="areas config", kind=AreasConfig, families=(AREA_FAMILY,), first=AREAS)


def config() -> AreasConfig:
    """Return the configuration of the Areas page."""
    return AREAS.config()  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class AreasData:
    """Loaded counts of areas, and what the page may say about them.

    Attributes:
        areas: the private counts.
        on_map: where their regions lie; public.
        denominators: public numbers of the regions, by which counts can be divided, by their names among `MEASURES`.
        digest: identifies the content; never shown.
        fingerprints: fingerprints by which the ledger recognises the data; never shown.
        title: name of the data on screen.
        unit: what is counted, for example "residents".
        source: where the data come from.
    """

    areas: AreaCounts
    on_map: RegionsOnMap
    denominators: dict[str, Denominator]
    digest: str
    fingerprints: tuple[str, ...]
    title: str
    unit: str
    source: Source

    @property
    def private(self) -> AreaCounts:
        """The counts, under the name that all data share."""
        return self.areas

    @property
    def bundled(self) -> bool:
        """Whether the data are a sample, which comes with the package and is public."""
        return self.source.data_part.sample is not None


@dataclass(frozen=True, kw_only=True)
class AreasDrawn:
    """One run, kept until the next one.

    Attributes:
        release: the release.
        data: data that the release was made from.
        config: configuration of the run.
        seconds: seconds that the release took on the server.
        number: in Curate the number of the draw in this session, in Teach the number of the run; from 1 on.
        account: name of the account in the ledger that paid; None in Teach.
        evaluation: its comparison with the truth, made together with the run; None in Curate, where it is made when it may be seen.
    """

    release: AreaRelease
    data: AreasData
    config: AreasConfig
    seconds: float
    number: int
    account: str | None = None
    evaluation: AreaEvaluation | None = None

    @property
    def title(self) -> str:
        """The title of its mechanism."""
        return str(AREA_FAMILY.choices[self.release.mechanism].title)


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
    return newest_result("areas drawn Curate")  # type: ignore[no-any-return]


def draw(data: AreasData, funding: Funding | None) -> None:
    """Release once in Curate and keep the result. The ledger counts the draw before any noise is drawn.

    Args:
        data: data as loaded.
        funding: account that pays for the draw.

    Raises:
        DpvizError: the draw failed; the text says whether the budget is spent nevertheless.
    """
    if funding is None:
        raise RefusedError(UNPAID)
    how, number = config(), st.session_state.get("areas draws", 0) + 1
    mechanism, budget = how.build(), how.budget()
    mechanism.check_data(data.areas)
    st.session_state["areas draws"] = number
    slot, draws = result_slot("areas drawn Curate"), session_draws()  # from here on no call into Streamlit: it could lose the draw
    start = time.perf_counter()
    paid = pay_and_draw(data, make_order(data, mechanism, budget, funding), draws)
    seconds, account = time.perf_counter() - start, paid.account.name
    release = cast("AreaRelease", paid.release)
    slot.append(AreasDrawn(release=release, data=data, config=how, seconds=seconds, number=number, account=account))


def truth_of(what: AreasDrawn) -> AreaEvaluation | None:
    """Return the comparison of a release with the truth; None unless `truth_allowed`."""
    if not truth_allowed(what.data, what.account):
        return None
    if what.evaluation is not None:
        return what.evaluation
    number, evaluation = st.session_state.get("areas evaluation", (None, None))
    if number != what.number:
        evaluation = evaluate_areas(what.release, what.data.areas)
        st.session_state["areas evaluation"] = (what.number, evaluation)
    return evaluation  # type: ignore[no-any-return]


def question_of(data: AreasData, how: AreasConfig) -> tuple[object, ...]:
    """Return what identifies a run in Teach: the counts themselves, mechanism, settings, budget and number."""
    mechanism = how.build()
    return (data.areas, mechanism.key, str(mechanism.chosen()), how.budget(), how.run)


def run_of(data: AreasData, how: AreasConfig, check: Callable[[], None]) -> AreasDrawn:
    """Release public counts in Teach with seeded noise, and compare the release with the truth.

    Args:
        data: public data.
        how: mechanism, budget and number of the run, which is the seed.
        check: called now and then; its exception ends the run.
    """
    mechanism, start = how.build(), time.perf_counter()
    mechanism.check_data(data.areas)
    release = mechanism.release(data.areas, how.budget(), Entropy.seeded(how.run).interrupted_by(check))
    seconds = time.perf_counter() - start
    check()
    evaluation = evaluate_areas(release, data.areas)
    return AreasDrawn(release=release, data=data, config=how, seconds=seconds, number=how.run, evaluation=evaluation)
