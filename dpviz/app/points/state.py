"""State of the Points page, and what all pages share: the configuration that a link carries, the data, the last draw, and the truth."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, cast

import streamlit as st

from dpviz.app.ledger import Funding, Source, make_order, pay_and_draw, session_draws
from dpviz.app.page_state import CURATE, LARGEST_DELTA, LARGEST_EPSILON, SMALLEST_DELTA, SMALLEST_EPSILON, TEACH, PageState, truth_allowed
from dpviz.app.session import (
    Reader,
    amount_reader,
    choice_reader,
    newest_result,
    number_reader,
    read_settings,
    result_slot,
)
from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import Evaluation, evaluate
from dpviz.mechanisms import POINT_FAMILY, PointMechanism
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release
from dpviz.samples.points import SAMPLES
from dpviz.view.points_map import INTERPOLATED, SHOWN

LARGEST_ORDER = 16


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
        zoom: the zoom level shown; None for the finest that can be hovered.
        shown: name of the map that is shown.
    """

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
    shown: str = SHOWN[0]

    def build(self) -> PointMechanism:
        """Build the mechanism with its settings; raise `SettingError` if one is out of range."""
        return POINT_FAMILY.choices[self.mechanism].from_settings(self.settings)

    def budget(self) -> PureBudget | ApproxBudget:
        """Return the budget of one draw; it has a delta exactly where the mechanism needs one."""
        return ApproxBudget(self.epsilon, self.delta) if self.build().needs_delta else PureBudget(self.epsilon)

    def same_draw(self, other: Config) -> bool:
        """Return whether both configurations draw from the same data in the same way; zoom and map do not matter."""
        return replace(self, zoom=None, shown="") == replace(other, zoom=None, shown="")

    def resets(self) -> dict[str, Any]:
        """Return new values of parameters for when the mechanism or a setting changes: the zoom level may not exist any more."""
        return {"zoom": None}

    @classmethod
    def readers(cls) -> dict[str, Reader]:
        """Return the reader of each parameter of a link."""
        return {
            "mode": choice_reader(TEACH, CURATE),
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


POINTS = PageState(key="config", kind=Config, families=(POINT_FAMILY,))


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
        number: number of the draw in this session, from 1 on.
        account: name of the account in the ledger that paid; None in Teach.
    """

    release: Release
    data: Data
    config: Config
    seconds: float
    number: int
    account: str | None = None


def config() -> Config:
    """Return the configuration of the Points page."""
    return POINTS.config()  # type: ignore[no-any-return]


def drawn() -> Drawn | None:
    """Return the last draw of the present mode; None before the first."""
    return newest_result(f"drawn {config().mode}")  # type: ignore[no-any-return]


def draw(data: Data, funding: Funding | None = None) -> None:
    """Draw once and keep the result. In Curate the ledger counts the draw before any noise is drawn.

    Args:
        data: data as loaded.
        funding: account that pays for the draw in Curate; None in Teach.

    Raises:
        SettingError: a reference, which is not private, is chosen in Curate; nothing is spent.
        DpvizError: the draw failed; the text says whether the budget is spent nevertheless.
    """
    POINTS.refuse_reference()
    POINTS.refuse_unpaid(funding)
    how, number = config(), st.session_state.get("draws", 0) + 1
    mechanism, budget = how.build(), how.budget()
    mechanism.check_data(data.points)
    st.session_state["draws"] = number
    slot, draws = result_slot(f"drawn {how.mode}"), session_draws()  # from here on no call into Streamlit: it could lose the draw
    start, account = time.perf_counter(), None
    if funding is None:
        release = mechanism.release(data.points, budget, Entropy.seeded(number))
    else:
        paid = pay_and_draw(data, make_order(data, mechanism, budget, funding), draws)
        release, account = cast("Release", paid.release), paid.account.name
    seconds = time.perf_counter() - start
    slot.append(Drawn(release=release, data=data, config=how, seconds=seconds, number=number, account=account))


def truth_of(what: Drawn) -> Evaluation | None:
    """Return the comparison of a release with the truth; None unless `truth_allowed`."""
    if not truth_allowed(what.data, what.account):
        return None
    key = f"evaluation {what.config.mode}"
    number, evaluation = st.session_state.get(key, (None, None))
    if number != what.number:
        evaluation = evaluate(what.release, what.data.points)
        st.session_state[key] = (what.number, evaluation)
    return evaluation  # type: ignore[no-any-return]
