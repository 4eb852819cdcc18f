"""State of the Points page: the configuration that a link carries, the data, what was released last, and runs that follow the controls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import streamlit as st

from dpviz.app.ledger import Funding, Source, make_order, pay_and_draw, session_draws
from dpviz.app.page_config import SECOND, PageConfig
from dpviz.app.page_state import UNPAID, PageState, truth_allowed
from dpviz.app.session import Reader, choice_reader, newest_result, number_reader, result_slot
from dpviz.app.two_runs import SecondRun
from dpviz.data.points import PointCounts
from dpviz.errors import RefusedError
from dpviz.evaluation.metrics import Evaluation, evaluate
from dpviz.mechanisms import POINT_FAMILY, AnyFamily
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release
from dpviz.samples.points import SAMPLES
from dpviz.view.basemap import Bounds
from dpviz.view.points_canvas import RELEASED, TRUE
from dpviz.view.points_map import INTERPOLATED, SHOWN

LARGEST_ORDER = 16
SIDES = ("west", "south", "east", "north")  # keys of the fields of the domain's bounds
OWN_BOUNDS = "Type the bounds"
FARTHEST = 1e12  # larger than any coordinate on Earth; a box within it has a finite area


@dataclass(frozen=True, kw_only=True)
class Config(PageConfig):
    """Everything on the Points page that can be shared as a link: parameters only, never data and never a path.

    Attributes:
        sample: key of the sample.
        size: records of a made-up sample, None for its usual number.
        order: order of the domain's lattice.
        zoom: the zoom level shown; None for a level that is easy to read.
        box: west, south, east, north of the range query in the domain's coordinates while its tab is open in Teach; else None.
    """

    family: ClassVar[AnyFamily] = POINT_FAMILY
    view_parts: ClassVar[tuple[str, ...]] = (*PageConfig.view_parts, "zoom", "box")

    sample: str = "la_residents"
    size: int | None = None
    mechanism: str = POINT_FAMILY.usual[0]
    order: int = 10
    zoom: int | None = None
    box: Bounds | None = None
    shown: str = RELEASED
    left: str = TRUE

    def resets(self) -> dict[str, Any]:
        """Return new values of parameters for when the mechanism or a setting changes: the zoom level may not exist any more."""
        return {"zoom": None}

    @classmethod
    def update_link(cls, query: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters of a link as today's version writes them: earlier versions left out the quadtree, their default."""
        return {"mechanism": "quadtree", **query} if query and "mechanism" not in query else dict(query)

    @classmethod
    def readers(cls) -> dict[str, Reader]:
        """Return the reader of each parameter of a link."""
        return cls.run_readers() | {
            "left": choice_reader(*SHOWN, INTERPOLATED, SECOND),
            "sample": choice_reader(*SAMPLES),
            "size": number_reader(1, 10_000_000, int),
            "order": number_reader(1, LARGEST_ORDER, int),
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


SECOND_RUN = SecondRun(key="config", kind=Config, families=(POINT_FAMILY,), first=POINTS)


@dataclass(frozen=True, kw_only=True)
class Data:
    """Loaded points: private counts, and what the page may say about them.

    Attributes:
        points: the private counts.
        digest: identifies the content; never shown.
        fingerprints: fingerprints by which the ledger recognises the data; never shown.
        title: name of the data on screen.
        unit: what one record is.
        source: where the data come from.
    """

    points: PointCounts
    digest: str
    fingerprints: tuple[str, ...]
    title: str
    unit: str
    source: Source

    @property
    def private(self) -> PointCounts:
        """The private counts, by the name that data of points and of trips have in common."""
        return self.points

    @property
    def bundled(self) -> bool:
        """Whether the data are a sample, which comes with the package and is public."""
        return self.source.data_part.sample is not None


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The last draw, kept until the next one.

    Attributes:
        release: the release.
        data: data that the release was made from.
        config: configuration of the draw.
        seconds: seconds that the draw took on the server.
        number: in Curate the number of the draw in this session, in Teach the number of the run; from 1 on.
        account: name of the account in the ledger that paid; None in Teach.
        evaluation: the comparison with the truth, made together with the run; None in Curate, where it is made when it may be seen.
    """

    release: Release
    data: Data
    config: Config
    seconds: float
    number: int
    account: str | None = None
    evaluation: Evaluation | None = None


def config() -> Config:
    """Return the configuration of the Points page."""
    return POINTS.config()  # type: ignore[no-any-return]


def drawn() -> Drawn | None:
    """Return what was released last in Curate; None before the first release."""
    return newest_result("drawn Curate")  # type: ignore[no-any-return]


def draw(data: Data, funding: Funding | None) -> None:
    """Release once in Curate and keep the result. The ledger counts the draw before any noise is drawn.

    Args:
        data: data as loaded.
        funding: account that pays for the draw.

    Raises:
        SettingError: a reference, which is not private, is chosen; nothing is spent.
        DpvizError: the draw failed; the text says whether the budget is spent nevertheless.
    """
    POINTS.refuse_reference()
    if funding is None:
        raise RefusedError(UNPAID)
    how, number = config(), st.session_state.get("draws", 0) + 1
    mechanism, budget = how.build(), how.budget()
    mechanism.check_data(data.points)
    st.session_state["draws"] = number
    slot, draws = result_slot("drawn Curate"), session_draws()  # from here on no call into Streamlit: it could lose the draw
    start = time.perf_counter()
    paid = pay_and_draw(data, make_order(data, mechanism, budget, funding), draws)
    seconds = time.perf_counter() - start
    slot.append(
        Drawn(release=cast("Release", paid.release), data=data, config=how, seconds=seconds, number=number, account=paid.account.name)
    )


def question_of(data: Data, how: Config) -> tuple[object, ...]:
    """Return what identifies a run in Teach: data, mechanism, settings, budget and number.

    The data are identified by the counts themselves, not by their content: one file can be counted in several ways.
    """
    settings = tuple(sorted((name, str(value)) for name, value in how.settings.items()))
    return (data.points, how.mechanism, settings, how.budget(), how.run)


def run_of(data: Data, how: Config, check: Callable[[], None]) -> Drawn:
    """Release public data in Teach, with seeded noise, and compare the release with the truth.

    Args:
        data: public data.
        how: mechanism, settings, budget and number of the run, which is the seed.
        check: called now and then; its exception ends the run.
    """
    mechanism, start = how.build(), time.perf_counter()
    mechanism.check_data(data.points)
    release = mechanism.release(data.points, how.budget(), Entropy.seeded(how.run).interrupted_by(check))
    seconds = time.perf_counter() - start
    check()
    evaluation = evaluate(release, data.points)
    return Drawn(release=release, data=data, config=how, seconds=seconds, number=how.run, evaluation=evaluation)


def truth_of(what: Drawn) -> Evaluation | None:
    """Return the comparison of a release with the truth; None unless `truth_allowed`."""
    if not truth_allowed(what.data, what.account):
        return None
    if what.evaluation is not None:
        return what.evaluation
    number, evaluation = st.session_state.get("evaluation", (None, None))
    if number != what.number:
        evaluation = evaluate(what.release, what.data.points)
        st.session_state["evaluation"] = (what.number, evaluation)
    return evaluation  # type: ignore[no-any-return]
