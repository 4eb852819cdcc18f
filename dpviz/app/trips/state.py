"""State of the Trips page: its configuration, the last draw of one or two mechanisms, and the truth where it may be seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

import streamlit as st

from dpviz.app.ledger import Funding, SessionDraws, Source, make_order, pay_and_draw, session_draws
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
from dpviz.app.session import Reader, amount_reader, choice_reader, flag_reader, newest_result, number_reader, read_settings, result_slot
from dpviz.data.flows import Flows
from dpviz.errors import RefusedError
from dpviz.evaluation.flow_metrics import FlowEvaluation, evaluate_flows
from dpviz.mechanisms import FLOW_MECHANISMS, TRIP_FAMILY, FlowMechanism
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.flow_release import FlowRelease
from dpviz.samples.flows import FLOW_SAMPLES
from dpviz.view.trips_map import PAIR_FILTERS, SHOWN_TRIPS

MOST_ARCS = 5000
ALONE = "nothing"  # value of `TripsConfig.beside`: no second mechanism


@dataclass(frozen=True, kw_only=True)
class TripsConfig:
    """Everything on the Trips page that can be shared as a link: parameters only, never data.

    Attributes:
        mode: "Teach" or "Curate".
        source: "sample", "upload" or "path"; a link always opens a sample.
        sample: key of the sample.
        mechanism: key of the mechanism.
        settings: its settings that differ from the defaults.
        epsilon: epsilon of the budget; a fraction if no decimal number is equal to it.
        delta: delta of the budget, for mechanisms that need one.
        beside: key of a second mechanism to compare with, or "nothing".
        level: the geographic level shown, 1 to g; None for the finest level that is easy to read.
        shown: name of the map that is shown.
        top: the most arcs on a map.
        least: the smallest released number of trips, without its sign, that is drawn.
        pairs: which released pairs are drawn, one of `PAIR_FILTERS`.
        run: number of the run in Teach, the seed of its noise.
        present: whether the page is shown in large type without the controls on the left, for a projector.
    """

    always_in_link: ClassVar[tuple[str, ...]] = ("mechanism",)

    mode: str = TEACH
    source: str = "sample"
    sample: str = "us_flights"
    mechanism: str = TRIP_FAMILY.usual[0]
    settings: dict[str, Any] = field(default_factory=lambda: dict(FLOW_MECHANISMS[TRIP_FAMILY.usual[0]].page_settings))
    epsilon: float | Fraction = 1.0
    delta: float = 1e-8
    beside: str = ALONE
    level: int | None = None
    shown: str = SHOWN_TRIPS[0]
    top: int = 500
    least: int = 1
    pairs: str = PAIR_FILTERS[0]
    run: int = 1
    present: bool = False

    def build(self) -> FlowMechanism:
        """Build the mechanism with its settings; raise `SettingError` if one is out of range."""
        return FLOW_MECHANISMS[self.mechanism].from_settings(self.settings)

    def build_all(self) -> list[FlowMechanism]:
        """Build the mechanism, and the one beside it with its page settings but the same neighbours and accounting."""
        mechanisms = [self.build()]
        if self.beside != ALONE:
            other = FLOW_MECHANISMS[self.beside]
            known = {rule.name for rule in other.rules()}
            shared = {
                name: value for name, value in mechanisms[0].chosen().items() if name in ("neighbours", "accounting") and name in known
            }
            mechanisms.append(other.from_settings({**other.page_settings, **shared}))
        return mechanisms

    def budget(self) -> PureBudget | ApproxBudget:
        """Return the budget of the mechanism."""
        return self.budget_for(self.build())

    def budget_for(self, mechanism: FlowMechanism) -> PureBudget | ApproxBudget:
        """Return the budget of one draw with a mechanism; it has a delta exactly where the mechanism needs one."""
        return ApproxBudget(self.epsilon, repr(self.delta)) if mechanism.needs_delta else PureBudget(self.epsilon)

    def same_draw(self, other: TripsConfig) -> bool:
        """Return whether both configurations draw from the same data in the same way; what is shown of the release does not matter."""
        views: dict[str, Any] = {"level": None, "shown": "", "top": 0, "least": 0, "pairs": "", "run": 1, "present": False}
        return replace(self, **views) == replace(other, **views)

    def resets(self) -> dict[str, Any]:
        """Return new values of parameters for when the mechanism or a setting changes: none, since levels are those of the regions."""
        return {}

    @classmethod
    def update_link(cls, query: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters of a link as today's version writes them: earlier versions left out TopDown, their default."""
        return {"mechanism": "top_down", "settings": "{}", **query} if query and "mechanism" not in query else dict(query)

    @classmethod
    def readers(cls) -> dict[str, Reader]:
        """Return the reader of each parameter of a link."""
        return {
            "mode": choice_reader(TEACH, CURATE),
            "sample": choice_reader(*FLOW_SAMPLES),
            "mechanism": choice_reader(*FLOW_MECHANISMS),
            "settings": read_settings,
            "epsilon": amount_reader(SMALLEST_EPSILON, LARGEST_EPSILON),
            "delta": number_reader(SMALLEST_DELTA, LARGEST_DELTA, float),
            "beside": choice_reader(ALONE, *FLOW_MECHANISMS),
            "level": number_reader(1, 16, int),
            "shown": choice_reader(*SHOWN_TRIPS),
            "top": number_reader(1, MOST_ARCS, int),
            "least": number_reader(1, 2**53 - 1, int),
            "pairs": choice_reader(*PAIR_FILTERS),
            "run": number_reader(1, 2**31, int),
            "present": flag_reader,
        }


TRIPS = PageState(key="trips config", kind=TripsConfig, families=(TRIP_FAMILY,))


@dataclass(frozen=True, kw_only=True)
class TripsData:
    """Loaded trips: private counts, and what the page may say about them.

    Attributes:
        flows: the private trips.
        digest: identifies the content; never shown.
        fingerprints: fingerprints by which the ledger recognises the data; never shown.
        title: name of the data on screen.
        unit: what is counted, for example "commuters".
        source: where the data come from.
    """

    flows: Flows
    digest: str
    fingerprints: tuple[str, ...]
    title: str
    unit: str
    source: Source

    @property
    def private(self) -> Flows:
        """The trips, under the name that points and trips share."""
        return self.flows

    @property
    def bundled(self) -> bool:
        """Whether the data are a sample, which comes with the package and is public."""
        return self.source.data_part.sample is not None


@dataclass(frozen=True, kw_only=True)
class TripsDrawn:
    """The last draw, kept until the next one.

    Attributes:
        releases: one release, or two that are compared.
        titles: titles of their mechanisms.
        data: data that the releases were made from.
        config: configuration of the draw.
        seconds: seconds that each release took on the server.
        number: in Curate the number of the draw in this session, in Teach the number of the run; from 1 on.
        account: name of the account in the ledger that paid; None in Teach.
        evaluations: comparisons with the truth, made together with the run; empty in Curate, where they are made when they may be seen.
    """

    releases: tuple[FlowRelease, ...]
    titles: tuple[str, ...]
    data: TripsData
    config: TripsConfig
    seconds: tuple[float, ...]
    number: int
    account: str | None = None
    evaluations: tuple[FlowEvaluation, ...] = ()


def drawn() -> TripsDrawn | None:
    """Return the last draw of the present mode; None before the first."""
    return newest_result(f"trips drawn {TRIPS.config().mode}")  # type: ignore[no-any-return]


def draw(data: TripsData, funding: Funding | None) -> None:
    """Release once with each mechanism in Curate and keep the results. The ledger counts each draw before its noise is drawn.

    Args:
        data: data as loaded.
        funding: account that pays for the draws.

    Raises:
        DpvizError: a release failed and no further one was drawn; releases drawn before are kept. The text says what is spent all the same.
    """
    if funding is None:
        raise RefusedError(UNPAID)
    how, count = TRIPS.config(), st.session_state.get("trips draws", 0) + 1
    mechanisms = how.build_all()
    for mechanism in mechanisms:
        mechanism.check_data(data.flows)
    st.session_state["trips draws"] = count
    slot, session = result_slot(f"trips drawn {how.mode}"), session_draws()
    drawn_so_far = TripsDrawn(releases=(), titles=(), data=data, config=how, seconds=(), number=count)
    for mechanism in mechanisms:  # from here on no call into Streamlit: it could lose what is drawn
        drawn_so_far = _add_paid_release(drawn_so_far, mechanism, funding, session)
        slot.append(drawn_so_far)


def question_of(data: TripsData, how: TripsConfig) -> tuple[object, ...]:
    """Return what identifies a run in Teach: the counts themselves, mechanisms with their settings, budget and number."""
    mechanisms = tuple((mechanism.key, str(mechanism.chosen()), how.budget_for(mechanism)) for mechanism in how.build_all())
    return (data.flows, mechanisms, how.run)


def run_of(data: TripsData, how: TripsConfig, check: Callable[[], None]) -> TripsDrawn:
    """Release public trips in Teach with each mechanism, with seeded noise, and compare the releases with the truth.

    Args:
        data: public data.
        how: mechanisms, budget and number of the run, which is the seed.
        check: called now and then; its exception ends the run.
    """
    made = TripsDrawn(releases=(), titles=(), data=data, config=how, seconds=(), number=how.run)
    for mechanism in how.build_all():
        mechanism.check_data(data.flows)
        start = time.perf_counter()
        release = mechanism.release(data.flows, how.budget_for(mechanism), Entropy.seeded(how.run).interrupted_by(check))
        made = _add_release(made, mechanism, release, time.perf_counter() - start)
        check()
    return replace(made, evaluations=tuple(evaluate_flows(release, data.flows) for release in made.releases))


def _add_release(so_far: TripsDrawn, mechanism: FlowMechanism, release: FlowRelease, seconds: float) -> TripsDrawn:
    titles = (*so_far.titles, mechanism.title)
    return replace(so_far, releases=(*so_far.releases, release), titles=titles, seconds=(*so_far.seconds, seconds))


def _add_paid_release(so_far: TripsDrawn, mechanism: FlowMechanism, funding: Funding, session: SessionDraws) -> TripsDrawn:
    """Release with one mechanism in Curate, and return the draw with this release added.

    Args:
        so_far: the draw with the releases of earlier mechanisms.
        mechanism: releases next.
        funding: account that pays.
        session: keeps the paid draws of this session.
    """
    start, budget = time.perf_counter(), so_far.config.budget_for(mechanism)
    paid = pay_and_draw(so_far.data, make_order(so_far.data, mechanism, budget, funding), session)
    made = _add_release(so_far, mechanism, cast("FlowRelease", paid.release), time.perf_counter() - start)
    return replace(made, account=paid.account.name)


def find_truths(what: TripsDrawn) -> tuple[FlowEvaluation, ...]:
    """Compare the releases with the truth, one evaluation for each; return () unless `truth_allowed`."""
    if not truth_allowed(what.data, what.account):
        return ()
    if what.evaluations:
        return what.evaluations
    key, drawn_so_far = f"trips evaluation {what.config.mode}", (what.number, len(what.releases))
    evaluated, evaluations = st.session_state.get(key, (None, ()))
    if evaluated != drawn_so_far:
        evaluations = tuple(evaluate_flows(release, what.data.flows) for release in what.releases)
        st.session_state[key] = (drawn_so_far, evaluations)
    return evaluations  # type: ignore[no-any-return]
