"""The Trips page: data, mechanism and budget on the left; on the right, the trips that would be released, with the tabs under the map."""

from __future__ import annotations

from functools import partial

from dpviz.app.modes.page import show_in_mode
from dpviz.app.modes.sidebar import teach_controls
from dpviz.app.pages.trips.curate import PARTS
from dpviz.app.pages.trips.data import trips_controls
from dpviz.app.pages.trips.state import TRIPS
from dpviz.app.pages.trips.teach import show_teach

_ONE_TRIP = "**Protected:** replacing one trip between the regions by another, or adding or removing it"
_PROTECTED = {
    "trip": f"{_ONE_TRIP}.",
    "person": "**Protected:** replacing one person, with all trips of this person, by another, or adding or removing one.",
    "": f"{_ONE_TRIP} (or all trips of one person, where that is declared).",
}
_NOT_PROTECTED = "**Not protected:** the regions, the mechanism and its settings, and the total where neighbours are *bounded*."


def trips_page() -> None:
    """Draw the page."""
    controls = partial(teach_controls, TRIPS, trips_controls, lambda data: data.counts.regions)
    show_in_mode(TRIPS, controls, show_teach, PARTS, _PROTECTED, _NOT_PROTECTED)
