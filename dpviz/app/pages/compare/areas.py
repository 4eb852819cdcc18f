"""Areas on the Compare page: regions, and maps of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import streamlit as st

from dpviz.app.pages.areas.state import EASY_TO_SEE
from dpviz.app.pages.compare.kinds import Compared
from dpviz.app.pages.compare.maps import NOTHING, choose_level, choose_shown, draw_regions, show_canvas
from dpviz.app.pages.compare.state import CompareData
from dpviz.app.session import cached
from dpviz.app.session.widgets import is_dark
from dpviz.data.areas import AreaCounts
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.samples.points import SampleInfo
from dpviz.view.areas_canvas import areas_of, make_pane
from dpviz.view.areas_drawing import AreasMapSettings, RegionsOnMap, choose_tops, draw_areas
from dpviz.view.canvas import ground_in, names_among


class ComparedAreas(Compared):
    """Areas on the Compare page; see `Compared`."""

    samples: ClassVar[Mapping[str, SampleInfo]] = AREA_SAMPLES
    usual_sample: ClassVar[str] = "made_up_city"

    def load(self, sample: str) -> AreaCounts:
        """Return the counts of a sample."""
        return cached.area_sample(sample).areas

    def show_maps(self, data: CompareData, releases: dict[str, Any], link: bool) -> None:
        """Show releases side by side; see `Compared.show_maps`."""
        areas: Any = data.data
        left, right = st.columns([3, 2], vertical_alignment="center")
        shown, level = choose_shown(left), choose_level(right, areas.regions, EASY_TO_SEE)
        on_map: RegionsOnMap | None = st.session_state.get("compare regions on map")
        if on_map is None or on_map.regions is not areas.regions:
            on_map = st.session_state["compare regions on map"] = RegionsOnMap(areas.regions)
        if on_map.shapes(level) is None:
            st.caption("These regions have neither outlines nor coordinates: there is no map of them.")
            return
        truth = areas.level_counts()[level]
        view = AreasMapSettings(level=level, shown=shown, unit=data.unit, dark=is_dark())
        tops = [choose_tops(release, view, truth) for release in releases.values()]
        view = replace(view, tops=replace(tops[0], error=max(top.error for top in tops)))
        made, drawings = draw_regions(
            releases, shown, lambda release, kind: draw_areas(release, on_map, replace(view, shown=kind), truth), make_pane
        )
        texts, bounds = {name: areas_of(drawing) for name, drawing in drawings.items()}, on_map.bounds
        parts: dict[str, Any] = {
            "areas": texts,
            "edge": False,
            "nothing": NOTHING,
            "ground": ground_in(bounds),
            "places": names_among(texts, bounds),
        }
        show_canvas("compare areas canvas", data, made, areas.regions, link=link, bounds=bounds, **parts)


COMPARED = ComparedAreas()
