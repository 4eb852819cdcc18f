"""State of the Trips page: what is chosen and looked at, the last draw of one or two mechanisms, and the truth where it may be seen."""

from __future__ import annotations

from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import OneRelease, Releases
from dpviz.app.state import kinds
from dpviz.data.trips import TripCounts
from dpviz.evaluation.trip_metrics import TripEvaluation, evaluate_trips
from dpviz.families import TRIP_FAMILY
from dpviz.release.trip_release import TripRelease

TRIPS = FamilyState(key=kinds.TRIPS.key, kind=kinds.TRIPS, families=(TRIP_FAMILY,))


def _evaluate(release: TripRelease, trips: TripCounts) -> TripEvaluation:
    evaluation = evaluate_trips(release, trips)
    evaluation.by_stage  # noqa: B018 - computed here, of a run in the background, and kept
    return evaluation


TripsData = PageData[TripCounts]
"""Loaded trips."""
TripsDrawn = OneRelease[TripRelease, TripsData, TripEvaluation]
"""A release of trips."""
RELEASES = Releases[TripRelease, TripsData, TripEvaluation](page=TRIPS, evaluate=_evaluate)
