"""The Trips page: data, mechanism and budget on the left; on the right, the trips that would be released, with the tabs under the map."""

from __future__ import annotations

from dpviz.app.first_row import describe_unprotected
from dpviz.app.page_state import TEACH
from dpviz.app.sidebar import teach_controls
from dpviz.app.trips.curate import show_curate
from dpviz.app.trips.data import trips_controls
from dpviz.app.trips.state import SECOND_RUN, TRIPS, TripsData
from dpviz.app.trips.teach import show_teach
from dpviz.app.two_modes import show_in_mode

_ONE_TRIP = "**Protected:** replacing one trip between the regions by another, or adding or removing it"
_PROTECTED = {
    "trip": f"{_ONE_TRIP}.",
    "person": "**Protected:** replacing one person, with all trips of this person, by another, or adding or removing one.",
    "": f"{_ONE_TRIP} (or all trips of one person, where that is declared).",
}
_NOT_PROTECTED = "**Not protected:** the regions, the mechanism and its settings, and the total where neighbours are *bounded*."


def trips_page() -> None:
    """Draw the page."""
    show_in_mode(TRIPS, _show_controls, show_teach, show_curate, _describe_protected)


def _describe_protected(unit: str) -> str:
    """Write what a release protects, and what not; `unit` is "trip" or "person", or "" where it is not known."""
    how = TRIPS.config()
    if how.mode == TEACH and not TRIPS.mechanisms[how.mechanism].private:
        return describe_unprotected(TRIPS.mechanisms[how.mechanism])
    return f"{_PROTECTED[unit]} {_NOT_PROTECTED}"


def _show_controls() -> tuple[TripsData | None, bool]:
    """Show the controls of Teach."""
    return teach_controls(TRIPS, SECOND_RUN, trips_controls, lambda data: data.counts.regions)
