"""State of the Trips page: its configuration, the last draw of one or two mechanisms, and the truth where it may be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

import streamlit as st

from dpviz.app.ledger import Funding, SessionDraws, make_order, pay_and_draw, session_draws
from dpviz.app.one_release import count_draw, drawn_slot
from dpviz.app.page_config import SECOND, PageConfig
from dpviz.app.page_data import PageData
from dpviz.app.page_state import TEACH, UNPAID, PageState, truth_allowed
from dpviz.app.session import Reader, choice_reader, newest_result, number_reader, result_slot
from dpviz.app.two_runs import second_run_of
from dpviz.data.trips import TripCounts
from dpviz.errors import RefusedError
from dpviz.evaluation.trip_metrics import TripEvaluation, evaluate_trips
from dpviz.mechanisms import TRIP_FAMILY, AnyFamily, TripMechanism
from dpviz.privacy.entropy import Entropy
from dpviz.release.trip_release import TripRelease
from dpviz.samples.trips import TRIP_SAMPLES
from dpviz.view.trips_drawing import MARKS, NOT_LISTED, PAIR_FILTERS, RELEASED, SHOWN_TRIPS, TRUE

MOST_ARCS = 5000
ALONE = "nothing"  # value of `TripsConfig.beside`: no second mechanism


@dataclass(frozen=True, kw_only=True)
class TripsConfig(PageConfig):
    """Everything on the Trips page that can be shared as a link: parameters only, never data.

    Attributes:
        sample: key of the sample.
        beside: in Curate, key of a second mechanism to compare with, or "nothing"; in Teach, a second run stands for it.
        level: the geographic level shown, 1 to g; None for the finest level that is easy to read.
        marks: whether trips are drawn as arcs or as the colours of regions, in Teach.
        top: the most arcs on a map.
        least: the smallest released number of trips, without its sign, that is drawn.
        pairs: which released pairs are drawn, one of `PAIR_FILTERS`.
        region: index of the region of the level shown from and to which trips are drawn; None for all.
    """

    always_in_link: ClassVar[tuple[str, ...]] = (*PageConfig.always_in_link, "epsilon", "level", "top")
    family: ClassVar[AnyFamily] = TRIP_FAMILY
    view_parts: ClassVar[tuple[str, ...]] = (*PageConfig.view_parts, "level", "marks", "top", "least", "pairs", "region")

    sample: str = "us_flights"
    mechanism: str = TRIP_FAMILY.usual[0]
    settings: dict[str, Any] = field(default_factory=lambda: dict(TRIP_FAMILY.mechanisms[TRIP_FAMILY.usual[0]].page_settings))
    epsilon: float | Fraction = 0.05
    delta: float | Fraction = 1e-8
    beside: str = ALONE
    level: int | None = 2
    shown: str = RELEASED
    left: str = TRUE
    marks: str = MARKS[0]
    top: int = 1500
    least: int = 1
    pairs: str = PAIR_FILTERS[0]
    region: int | None = None

    def build_all(self) -> list[TripMechanism]:
        """Build the mechanism, and in Curate the one beside it with its page settings but the same neighbours and accounting."""
        mechanisms = [self.build()]
        if self.beside != ALONE and self.mode != TEACH:
            mechanisms.append(TRIP_FAMILY.mechanisms[self.beside].from_settings(_settings_beside(self.beside, mechanisms[0].chosen())))
        return mechanisms

    def resets(self) -> dict[str, Any]:
        """Return new values of parameters for when the mechanism or a setting changes: none, since levels are those of the regions."""
        return {}

    @classmethod
    def readers(cls) -> dict[str, Reader]:
        """Return the reader of each parameter of a link."""
        kinds = (*SHOWN_TRIPS, NOT_LISTED)
        return cls.run_readers() | {
            "sample": choice_reader(*TRIP_SAMPLES),
            "beside": choice_reader(ALONE, *TRIP_FAMILY.mechanisms),
            "level": _read_level,
            "shown": choice_reader(*kinds),
            "left": choice_reader(*kinds, SECOND),
            "marks": choice_reader(*MARKS),
            "top": number_reader(1, MOST_ARCS, int),
            "least": number_reader(1, 2**53 - 1, int),
            "pairs": choice_reader(*PAIR_FILTERS),
            "region": number_reader(0, 2**31, int),
        }


def _read_level(text: str) -> int | None:
    """Read a level of a link; "None" stands for the finest that is easy to read."""
    return None if text == str(None) else number_reader(1, 16, int)(text)


def _settings_beside(mechanism: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the page settings of a mechanism, with the neighbours and the accounting of another one's settings."""
    other = TRIP_FAMILY.mechanisms[mechanism]
    known = {rule.name for rule in other.rules()}
    shared = {name: value for name, value in chosen.items() if name in ("neighbours", "accounting") and name in known}
    return {**other.page_settings, **shared}


TRIPS = PageState(key="trips config", kind=TripsConfig, families=(TRIP_FAMILY,))
SECOND_RUN = second_run_of(TRIPS)


@dataclass(frozen=True, kw_only=True)
class TripsData(PageData):
    """Loaded trips: private counts, and what the page may say about them.

    Attributes:
        trips: the private trips.
    """

    trips: TripCounts

    @property
    def private(self) -> TripCounts:
        """The trips, by the name that the data of all pages have in common."""
        return self.trips


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

    releases: tuple[TripRelease, ...]
    titles: tuple[str, ...]
    data: TripsData
    config: TripsConfig
    seconds: tuple[float, ...]
    number: int
    account: str | None = None
    evaluations: tuple[TripEvaluation, ...] = ()


def drawn() -> TripsDrawn | None:
    """Return the last draw in Curate; None before the first."""
    return newest_result(drawn_slot(TRIPS))  # type: ignore[no-any-return]


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
    how = TRIPS.config()
    mechanisms = how.build_all()
    for mechanism in mechanisms:
        mechanism.check_data(data.trips)
    number = count_draw(TRIPS)
    slot, session = result_slot(drawn_slot(TRIPS)), session_draws()
    drawn_so_far = TripsDrawn(releases=(), titles=(), data=data, config=how, seconds=(), number=number)
    for mechanism in mechanisms:  # from here on no call into Streamlit: it could lose what is drawn
        drawn_so_far = _add_paid_release(drawn_so_far, mechanism, funding, session)
        slot.append(drawn_so_far)


def run_of(data: TripsData, how: TripsConfig, check: Callable[[], None]) -> TripsDrawn:
    """Release public trips in Teach with seeded noise, and compare the release with the truth.

    Args:
        data: public data.
        how: mechanism, budget and number of the run, which is the seed.
        check: called now and then; its exception ends the run.
    """
    mechanism, start = how.build(), time.perf_counter()
    mechanism.check_data(data.trips)
    release = mechanism.release(data.trips, how.budget(), Entropy.seeded(how.run).interrupted_by(check))
    made = TripsDrawn(releases=(), titles=(), data=data, config=how, seconds=(), number=how.run)
    made = _add_release(made, mechanism, release, time.perf_counter() - start)
    check()
    evaluation = evaluate_trips(release, data.trips)
    evaluation.by_stage  # noqa: B018 - computed here, in the background, and kept
    return replace(made, evaluations=(evaluation,))


def join_runs(first: TripsDrawn, second: TripsDrawn) -> TripsDrawn:
    """Return two runs as one, for tables that compare them."""
    return replace(
        first,
        releases=first.releases + second.releases,
        titles=first.titles + second.titles,
        seconds=first.seconds + second.seconds,
        evaluations=first.evaluations + second.evaluations,
    )


def _add_release(so_far: TripsDrawn, mechanism: TripMechanism, release: TripRelease, seconds: float) -> TripsDrawn:
    titles = (*so_far.titles, mechanism.title)
    return replace(so_far, releases=(*so_far.releases, release), titles=titles, seconds=(*so_far.seconds, seconds))


def _add_paid_release(so_far: TripsDrawn, mechanism: TripMechanism, funding: Funding, session: SessionDraws) -> TripsDrawn:
    """Release with one mechanism in Curate, and return the draw with this release added.

    Args:
        so_far: the draw with the releases of earlier mechanisms.
        mechanism: releases next.
        funding: account that pays.
        session: keeps the paid draws of this session.
    """
    start, budget = time.perf_counter(), so_far.config.budget_for(mechanism)
    paid = pay_and_draw(so_far.data, make_order(so_far.data, mechanism, budget, funding), session)
    made = _add_release(so_far, mechanism, cast("TripRelease", paid.release), time.perf_counter() - start)
    return replace(made, account=paid.account.name)


def find_truths(what: TripsDrawn) -> tuple[TripEvaluation, ...]:
    """Compare the releases with the truth, one evaluation for each; return () unless `truth_allowed`."""
    if not truth_allowed(what.data, what.account):
        return ()
    if what.evaluations:
        return what.evaluations
    key, drawn_so_far = f"trips evaluation {what.config.mode}", (what.number, len(what.releases))
    evaluated, evaluations = st.session_state.get(key, (None, ()))
    if evaluated != drawn_so_far:
        evaluations = tuple(evaluate_trips(release, what.data.trips) for release in what.releases)
        st.session_state[key] = (drawn_so_far, evaluations)
    return evaluations  # type: ignore[no-any-return]
