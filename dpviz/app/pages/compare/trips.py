"""Trips on the Compare page: pairs of regions, and maps of arcs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import streamlit as st

from dpviz.app.components.words import show_chart
from dpviz.app.pages.compare.kinds import Compared
from dpviz.app.pages.compare.maps import NOTHING, choose_level, choose_shown, draw_regions, show_canvas
from dpviz.app.pages.compare.state import CompareData
from dpviz.app.session import cached
from dpviz.app.session.widgets import is_dark
from dpviz.data.trips import TripCounts
from dpviz.evaluation.study import LEVELS, SIZES
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.samples.points import SampleInfo
from dpviz.samples.trips import TRIP_SAMPLES
from dpviz.view.canvas import Areas, ground_in, names_among
from dpviz.view.escape import markdown
from dpviz.view.trips_canvas import areas_of, bounds_of, make_pane, names_of_dots
from dpviz.view.trips_charts import matrix_chart
from dpviz.view.trips_drawing import TripsMapSettings, choose_public_tops, draw_trips, has_geometry, merge_tops

FEWER_ARCS, EASY_TO_SEE = 200, 60


class ComparedTrips(Compared):
    """Trips on the Compare page; see `Compared`."""

    samples: ClassVar[Mapping[str, SampleInfo]] = TRIP_SAMPLES
    usual_sample: ClassVar[str] = "northeast_commuters"
    workloads: ClassVar[tuple[str, ...]] = (LEVELS, SIZES)
    places: ClassVar[str] = "pairs"
    one_place: ClassVar[str] = "pair of the finest level"
    parts_about: ClassVar[str] = (
        "Per pair that is released or has trips. Noise: how far released pairs are off. Suppression: trips of pairs that were left out."
        " Together they are the mean absolute error."
    )

    def load(self, sample: str) -> TripCounts:
        """Return the counts of a sample."""
        return cached.trip_sample(sample)

    def show_maps(self, data: CompareData, releases: dict[str, Any], link: bool) -> None:
        """Show releases side by side; see `Compared.show_maps`."""
        trips: Any = data.data
        left, right = st.columns([3, 2], vertical_alignment="center")
        shown, level = choose_shown(left), choose_level(right, trips.regions, EASY_TO_SEE)
        if not has_geometry(trips.regions, level):
            columns = [column for _ in range(0, len(releases), 2) for column in st.columns(min(2, len(releases)))]
            for column, (title, release) in zip(columns, releases.items(), strict=False):
                with column:
                    st.markdown(f"**{markdown(title)}**")
                    show_chart(matrix_chart(release, level, data.unit))
            return
        first = next(iter(releases.values()))
        truth, bounds = evaluate_trips(first, trips).true_level(level), bounds_of(first)
        view = TripsMapSettings(level=level, shown=shown, top=FEWER_ARCS, unit=data.unit, dark=is_dark())
        view = replace(view, tops=merge_tops([choose_public_tops(release, truth, view) for release in releases.values()]))
        made, drawings = draw_regions(
            releases, shown, lambda release, kind: draw_trips(release, replace(view, shown=kind), truth), make_pane
        )
        areas: dict[str, Areas] = {}
        for name, drawing in drawings.items():
            areas |= areas_of(drawing, name)
        places = names_of_dots(drawings["0"]) or names_among(areas, bounds)
        parts: dict[str, Any] = {"areas": areas, "edge": False, "nothing": NOTHING, "ground": ground_in(bounds), "places": places}
        show_canvas("compare trips canvas", data, made, (trips.regions, trips.ends), link=link, bounds=bounds, **parts)


COMPARED = ComparedTrips()
