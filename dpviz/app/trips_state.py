"""What the Trips page knows: its configuration, the last draw of one or two mechanisms, and the truth where it may be seen."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from dpviz.answers.flow_metrics import FlowEvaluation, evaluate_flows
from dpviz.app.link import Reader, number, one_of, settings
from dpviz.app.state import (
    CURATE,
    LARGEST_DELTA,
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    SMALLEST_EPSILON,
    TEACH,
    Desk,
    Spend,
    looked_at,
    spends,
    truth_wanted,
)
from dpviz.data.flow_samples import FLOW_SAMPLES
from dpviz.data.flows import Flows
from dpviz.mechanisms import FLOW_MECHANISMS
from dpviz.mechanisms.base import FlowMechanism
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.flow_release import FlowRelease
from dpviz.view.trips_map import SHOWN_TRIPS

SOURCES = ("sample", "upload")
MOST_ARCS = 5000
ALONE = "nothing"


@dataclass(frozen=True, kw_only=True)
class TripsConfig:
    """Everything on the Trips page that can be shared as a link: parameters only, never data.

    Attributes:
        mode: "Teach" or "Curate".
        source: "sample" or "upload"; a link always opens a sample.
        sample: key of the sample.
        mechanism: key of the mechanism.
        settings: its settings that differ from the defaults.
        epsilon: of the budget.
        delta: of the budget.
        beside: key of a second mechanism to compare with, or "nothing".
        level: the geographic level shown, 1 to g; None for one that a map can show well.
        shown: which map.
        top: how many arcs at most.
        least: the smallest released number of trips that is drawn.
    """

    mode: str = TEACH
    source: str = "sample"
    sample: str = "us_flights"
    mechanism: str = "top_down"
    settings: dict[str, Any] = field(default_factory=dict)
    epsilon: float = 1.0
    delta: float = 1e-8
    beside: str = ALONE
    level: int | None = None
    shown: str = SHOWN_TRIPS[0]
    top: int = 500
    least: int = 1

    def built(self) -> FlowMechanism:
        """The mechanism with its settings; raises `SettingError` if one is out of range."""
        return FLOW_MECHANISMS[self.mechanism](**self.settings)  # type: ignore[no-any-return]

    def all_built(self) -> list[Any]:
        """The mechanism, and the one beside it with its default settings and the same neighbours."""
        mechanisms: list[Any] = [self.built()]
        if self.beside != ALONE:
            other = FLOW_MECHANISMS[self.beside]
            known = {rule.name for rule in other.rules()}
            shared = {name: value for name, value in self.settings.items() if name in ("neighbours", "conversion") and name in known}
            mechanisms.append(other(**shared))
        return mechanisms

    def budget(self) -> ApproxBudget:
        """The budget of each mechanism."""
        return ApproxBudget(self.epsilon, repr(self.delta))

    def same_draw(self, other: TripsConfig) -> bool:
        """Whether both would draw from the same data in the same way; what is shown of it does not matter."""
        looks: dict[str, Any] = {"level": None, "shown": "", "top": 0, "least": 0}
        return replace(self, **looks) == replace(other, **looks)

    def back_to_overview(self) -> dict[str, Any]:
        """What is forgotten when the mechanism or a setting changes: nothing, the levels are those of the regions."""
        return {}

    @classmethod
    def readers(cls) -> dict[str, Reader]:
        """How each parameter of a link is read."""
        return {
            "mode": one_of(TEACH, CURATE),
            "sample": one_of(*FLOW_SAMPLES),
            "mechanism": one_of(*FLOW_MECHANISMS),
            "settings": settings,
            "epsilon": number(SMALLEST_EPSILON, LARGEST_EPSILON, float),
            "delta": number(SMALLEST_DELTA, LARGEST_DELTA, float),
            "beside": one_of(ALONE, *FLOW_MECHANISMS),
            "level": number(1, 16, int),
            "shown": one_of(*SHOWN_TRIPS),
            "top": number(1, MOST_ARCS, int),
            "least": number(1, 2**53 - 1, int),
        }


TRIPS = Desk(key="trips config", kind=TripsConfig, mechanisms=FLOW_MECHANISMS)


@dataclass(frozen=True, kw_only=True)
class TripsData:
    """What is loaded: private trips, and what the page may say about them.

    Attributes:
        flows: the private trips.
        digest: recognises the content; never shown.
        title: for the screen.
        unit: what is counted, for example "commuters".
    """

    flows: Flows
    digest: str
    title: str
    unit: str


@dataclass(frozen=True, kw_only=True)
class TripsDrawn:
    """The last draw, kept until the next one.

    Attributes:
        releases: one, or two that are compared.
        titles: of their mechanisms.
        data: what they were drawn from.
        config: how.
        seconds: server time of each.
        number: counts draws in this session.
    """

    releases: tuple[FlowRelease, ...]
    titles: tuple[str, ...]
    data: TripsData
    config: TripsConfig
    seconds: tuple[float, ...]
    number: int


def drawn() -> TripsDrawn | None:
    """The last draw of the present mode, None before the first."""
    return st.session_state.get(f"trips drawn {TRIPS.config().mode}")


def draw(data: TripsData) -> None:
    """Spend once per mechanism and keep the results. In Curate a spend is written down before its noise is drawn."""
    how, count = TRIPS.config(), st.session_state.get("trips draws", 0) + 1
    mechanisms, budget = how.all_built(), how.budget()
    for mechanism in mechanisms:
        mechanism.check_flows(data.flows)
    st.session_state["trips draws"] = count
    releases, seconds = [], []
    for mechanism in mechanisms:
        if how.mode == CURATE:
            spends().append(Spend(digest=data.digest, epsilon=budget.epsilon, delta=budget.delta, mechanism=mechanism.title))
        entropy = Entropy.system() if how.mode == CURATE else Entropy.seeded(count)
        start = time.perf_counter()
        releases.append(mechanism.release(data.flows, budget, entropy))
        seconds.append(time.perf_counter() - start)
    st.session_state[f"trips drawn {how.mode}"] = TripsDrawn(
        releases=tuple(releases),
        titles=tuple(mechanism.title for mechanism in mechanisms),
        data=data,
        config=how,
        seconds=tuple(seconds),
        number=count,
    )


def truths_of(what: TripsDrawn) -> tuple[FlowEvaluation, ...]:
    """The comparisons with the truth, where the mode allows them: always in Teach, in Curate only once asked for; else none."""
    if what.config.mode == CURATE and not truth_wanted(what.data):
        return ()
    key = f"trips evaluation {what.config.mode}"
    count, evaluations = st.session_state.get(key, (None, ()))
    looked_at().add(what.data.digest)
    if count != what.number:
        evaluations = tuple(evaluate_flows(release, what.data.flows) for release in what.releases)
        st.session_state[key] = (what.number, evaluations)
    return evaluations  # type: ignore[no-any-return]
