"""The Trips page: its data, its words, and the trips that would be released."""

from __future__ import annotations

from dpviz.app.modes.family_page import FamilyPage
from dpviz.app.pages.trips.curate import choose_second, count_useful, list_levels, offer_add_remove, show_declared, show_release
from dpviz.app.pages.trips.data import Declared, trips_controls
from dpviz.app.pages.trips.state import RELEASES
from dpviz.app.pages.trips.teach import describe_idle, make_teach
from dpviz.families import TRIP_FAMILY

_ONE_TRIP = "**Protected:** replacing, adding or removing one trip between the regions"

PAGE = FamilyPage(
    releases=RELEASES,
    controls=trips_controls,
    nothing=Declared(),
    frame_of=lambda declared: None if declared.regions is None else declared.regions[0].regions,
    protected={
        "trip": f"{_ONE_TRIP}.",
        "person": "**Protected:** replacing, adding or removing one person, with all trips of this person.",
        "": f"{_ONE_TRIP} (or all trips of one person, where that is declared).",
    },
    not_protected="**Not protected:** the regions, the mechanism and its settings, and the total where neighbours are *bounded*.",
    weigh=lambda what: float(sum(len(stage.count) for stage in what.release.stages)),
    room=3_000_000,  # pairs
    idle=describe_idle,
    teach=make_teach,
    raw=" or estimated, before post-processing makes them whole and the levels agree.",
    streets="street map of trips",
    counts_of=Declared.frame,
    levels_of=list_levels,
    unit_of=lambda data: TRIP_FAMILY.counted if data is None else data.unit,
    show_declared=show_declared,
    show_release=show_release,
    count_useful=count_useful,
    below_mechanism=choose_second,
    below_errors=offer_add_remove,
)
