"""State of the Trips page: its configuration, the last draw of one or two mechanisms, and the truth where it may be seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from dpviz.app.one_release import OneRelease, Releases
from dpviz.app.page_config import PageConfig
from dpviz.app.page_data import PageData
from dpviz.app.page_state import PageState
from dpviz.app.state.readers import Reader, choice_reader, number_reader, read_level
from dpviz.app.state.values import ALONE, LARGEST_LEAST, MOST_ARCS, MOST_REGIONS, SECOND, TEACH
from dpviz.app.two_runs import second_run_of
from dpviz.data.trips import TripCounts
from dpviz.evaluation.trip_metrics import TripEvaluation, evaluate_trips
from dpviz.families import TRIP_FAMILY, Family
from dpviz.mechanisms import TripMechanism
from dpviz.release.trip_release import TripRelease
from dpviz.samples.trips import TRIP_SAMPLES
from dpviz.view.trips_drawing import MARKS, NOT_LISTED, PAIR_FILTERS, RELEASED, SHOWN_TRIPS, TRUE


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
    family: ClassVar[Family] = TRIP_FAMILY
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
            other, chosen = TRIP_FAMILY.mechanisms[self.beside], mechanisms[0].chosen()
            known = {rule.name for rule in other.rules()} & chosen.keys() & {"neighbours", "accounting"}
            mechanisms.append(other.from_settings({**other.page_settings, **{name: chosen[name] for name in known}}))
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
            "level": read_level,
            "shown": choice_reader(*kinds),
            "left": choice_reader(*kinds, SECOND),
            "marks": choice_reader(*MARKS),
            "top": number_reader(1, MOST_ARCS, int),
            "least": number_reader(1, LARGEST_LEAST, int),
            "pairs": choice_reader(*PAIR_FILTERS),
            "region": number_reader(0, MOST_REGIONS, int),
        }


TRIPS = PageState(key="trips config", kind=TripsConfig, families=(TRIP_FAMILY,))
SECOND_RUN = second_run_of(TRIPS)


def _evaluate(release: TripRelease, trips: TripCounts) -> TripEvaluation:
    evaluation = evaluate_trips(release, trips)
    evaluation.by_stage  # noqa: B018 - computed here, of a run in the background, and kept
    return evaluation


TripsData = PageData[TripCounts]
"""Loaded trips."""
TripsDrawn = OneRelease[TripRelease, TripsData, TripsConfig, TripEvaluation]
"""A release of trips."""
RELEASES = Releases[TripRelease, TripsData, TripsConfig, TripEvaluation](page=TRIPS, evaluate=_evaluate)
