"""State of the Points page: the configuration that a link carries, the data, what was released last, and runs that follow the controls."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

import streamlit as st

from dpviz.app.ledger import Funding, Source, make_order, pay_and_draw, session_draws
from dpviz.app.opening import LEAST_CUT, MOST_CUT, Camera, read_camera
from dpviz.app.page_state import (
    CURATE,
    LARGEST_DELTA,
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    SMALLEST_EPSILON,
    TEACH,
    UNPAID,
    PageState,
    truth_allowed,
)
from dpviz.app.session import (
    Reader,
    amount_reader,
    choice_reader,
    flag_reader,
    newest_result,
    number_reader,
    read_amount,
    read_settings,
    result_slot,
)
from dpviz.data.points import PointCounts
from dpviz.errors import DpvizError, RefusedError
from dpviz.evaluation.metrics import Evaluation, evaluate
from dpviz.mechanisms import POINT_FAMILY, PointMechanism
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release
from dpviz.samples.points import SAMPLES
from dpviz.view.points_canvas import RELEASED, TRUE
from dpviz.view.points_map import INTERPOLATED, SHOWN

LARGEST_ORDER = 16
MOST_SCALES = 40
SECOND = "Second run"  # what the left map shows: another mechanism or budget


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything on the Points page that can be shared as a link: parameters only, never data and never a path.

    Attributes:
        mode: "Teach" or "Curate".
        source: "sample", "upload" or "path"; a link always opens a sample.
        sample: key of the sample.
        size: records of a made-up sample, None for its usual number.
        mechanism: key of the mechanism.
        settings: its settings that differ from the defaults.
        epsilon: epsilon of the budget; a fraction if no decimal number is equal to it.
        delta: delta of the budget, for mechanisms that need one.
        order: order of the domain's lattice.
        zoom: the zoom level shown; None for a level that is easy to read.
        shown: what the map shows; in Teach, what the right one of two maps shows.
        left: what the left map shows, in Teach.
        run: number of the run in Teach, the seed of its noise.
        second: mechanism, settings, epsilon (as text) and delta of the second run, in Teach; empty until a map shows it.
        editing: whether the controls of mechanism and budget are those of the second run.
        raw: whether counts are shown as first measured, in Teach.
        relative: whether errors are in percent of an average count, or else in records.
        scales: tops of the colour scales that were kept, by what they are for.
        camera: longitude, latitude and zoom of the map; None for the whole domain.
        swipe: position of the bar between two maps that lie over each other, as a share of the width; None for maps side by side.
        present: whether the page is shown in large type without the controls on the left, for a projector.
    """

    always_in_link: ClassVar[tuple[str, ...]] = ("mechanism",)

    mode: str = TEACH
    source: str = "sample"
    sample: str = "la_residents"
    size: int | None = None
    mechanism: str = POINT_FAMILY.usual[0]
    settings: dict[str, Any] = field(default_factory=dict)
    epsilon: float | Fraction = 0.5
    delta: float = 1e-6
    order: int = 10
    zoom: int | None = None
    shown: str = RELEASED
    left: str = TRUE
    run: int = 1
    second: dict[str, Any] = field(default_factory=dict)
    editing: bool = False
    raw: bool = False
    relative: bool = True
    scales: dict[str, float] = field(default_factory=dict)
    camera: Camera | None = None
    swipe: float | None = None
    present: bool = False

    def build(self) -> PointMechanism:
        """Build the mechanism with its settings; raise `SettingError` if one is out of range."""
        return POINT_FAMILY.choices[self.mechanism].from_settings(self.settings)

    def budget(self) -> PureBudget | ApproxBudget:
        """Return the budget of one draw; it has a delta exactly where the mechanism needs one."""
        return ApproxBudget(self.epsilon, self.delta) if self.build().needs_delta else PureBudget(self.epsilon)

    def same_draw(self, other: Config) -> bool:
        """Return whether both configurations draw from the same data in the same way; what is shown of the release does not matter."""
        return self._without_view() == other._without_view()

    def _without_view(self) -> Config:
        view: dict[str, Any] = {"zoom": None, "shown": "", "left": "", "run": 1, "second": {}, "editing": False, "raw": False}
        return replace(self, **view, relative=True, scales={}, camera=None, swipe=None, present=False)

    @property
    def shows_second(self) -> bool:
        """Whether the left map shows the second run."""
        return self.mode == TEACH and self.left == SECOND

    def second_run(self) -> Config:
        """Return the configuration of the second run: the same data, with a mechanism, settings and budget of its own."""
        if not self.second:
            return self
        return replace(
            self,
            mechanism=self.second["mechanism"],
            settings=self.second["settings"],
            epsilon=read_amount(self.second["epsilon"], "ε", SMALLEST_EPSILON, LARGEST_EPSILON),
            delta=self.second["delta"],
        )

    def as_second(self) -> dict[str, Any]:
        """Return mechanism, settings and budget in the form of `second`."""
        return {"mechanism": self.mechanism, "settings": self.settings, "epsilon": str(self.epsilon), "delta": self.delta}

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
        return {
            "mode": choice_reader(TEACH, CURATE),
            "left": choice_reader(*SHOWN, INTERPOLATED, SECOND),
            "run": number_reader(1, 2**31, int),
            "second": _read_second,
            "editing": flag_reader,
            "raw": flag_reader,
            "present": flag_reader,
            "relative": flag_reader,
            "scales": _read_scales,
            "camera": read_camera,
            "swipe": number_reader(LEAST_CUT, MOST_CUT, float),
            "sample": choice_reader(*SAMPLES),
            "size": number_reader(1, 10_000_000, int),
            "mechanism": choice_reader(*POINT_FAMILY.choices),
            "settings": read_settings,
            "epsilon": amount_reader(SMALLEST_EPSILON, LARGEST_EPSILON),
            "delta": number_reader(SMALLEST_DELTA, LARGEST_DELTA, float),
            "order": number_reader(1, LARGEST_ORDER, int),
            "zoom": number_reader(0, 24, int),
            "shown": choice_reader(*SHOWN, INTERPOLATED),
        }


def _read_second(text: str) -> dict[str, Any]:
    """Read the second run of a link; raise ValueError if a mechanism could not be built from it."""
    values = read_settings(text)
    if values.keys() != {"mechanism", "settings", "epsilon", "delta"} or values["mechanism"] not in POINT_FAMILY.choices:
        raise ValueError
    settings = read_settings(json.dumps(values["settings"]))
    try:
        read_amount(values["epsilon"], "ε", SMALLEST_EPSILON, LARGEST_EPSILON)
        POINT_FAMILY.choices[values["mechanism"]].from_settings(settings)
    except DpvizError:
        raise ValueError from None
    delta = number_reader(SMALLEST_DELTA, LARGEST_DELTA, float)(values["delta"])
    return {"mechanism": values["mechanism"], "settings": settings, "epsilon": str(values["epsilon"]), "delta": delta}


def _read_scales(text: str) -> dict[str, float]:
    scales = {str(name): float(top) for name, top in read_settings(text).items()}
    if len(scales) > MOST_SCALES or not all(0 < top < math.inf for top in scales.values()):
        raise ValueError
    return scales


POINTS = PageState(key="config", kind=Config, families=(POINT_FAMILY,))


@dataclass(frozen=True, kw_only=True)
class SecondRun(PageState):
    """The page state as the controls of the second run see it: mechanism, settings and budget are those of the second run."""

    def config(self) -> Any:
        """Return the configuration with the second run in place of the first."""
        return POINTS.config().second_run()

    def change(self, **updates: Any) -> None:
        """Change the second run; other parts of the configuration, such as the level, are shared."""
        own = {name: updates.pop(name) for name in ("mechanism", "settings", "epsilon", "delta") if name in updates}
        POINTS.change(**updates, second=replace(self.config(), **own).as_second())


SECOND_RUN = SecondRun(key="config", kind=Config, families=(POINT_FAMILY,))


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
    """Return what was released last in the present mode; None before the first release."""
    return newest_result(f"drawn {config().mode}")  # type: ignore[no-any-return]


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
    slot, draws = result_slot(f"drawn {how.mode}"), session_draws()  # from here on no call into Streamlit: it could lose the draw
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
