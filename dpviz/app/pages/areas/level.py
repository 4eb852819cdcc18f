"""Which level of the regions the maps show, what colours them, and which regions are asked for."""

from __future__ import annotations

import streamlit as st

from dpviz.app.pages.areas.state import AREAS, EASY_TO_SEE, AreasData
from dpviz.app.session.widgets import is_dark, widget_for
from dpviz.app.state.values import COUNTS, MEASURES, MOST_ASKED
from dpviz.space.regions import Regions
from dpviz.view.areas_drawing import AreasMapSettings, Denominator

MEASURE_WIDTH = 120  # pixels


def shown_level(regions: Regions) -> int:
    """Return the level that is shown: the chosen one, or the finest with at most `EASY_TO_SEE` regions; 1 if every level has more."""
    easy = max((level for level in range(1, regions.depth + 1) if regions.size(level) <= EASY_TO_SEE), default=1)
    return min(AREAS.view.level or easy, regions.depth)


def change_level(level: int) -> None:
    """Show another level; regions that were asked for are of their own level, so they are let go."""
    AREAS.change(view={"level": level})


def offered_measures(data: AreasData) -> list[str]:
    """Return what can colour the regions of some data."""
    return [measure for measure in MEASURES if measure == COUNTS or measure in data.denominators]


def shown_measure(data: AreasData) -> str:
    """Return what colours the regions; counts if the data have no number to divide by."""
    return AREAS.view.measure if AREAS.view.measure in offered_measures(data) else COUNTS


def choose_measure(data: AreasData) -> None:
    """Ask what colours the regions, if there is a choice."""
    offered = offered_measures(data)
    if len(offered) < 2:
        return
    shown = widget_for("measure", shown_measure(data), lambda value: AREAS.change(view={"measure": value}))
    st.selectbox("Colours", offered, label_visibility="collapsed", width=MEASURE_WIDTH, **shown)


def shown_rate(data: AreasData) -> Denominator | None:
    """Return what counts are divided by for the colours; None for counts."""
    return data.denominators.get(shown_measure(data))


def make_settings(data: AreasData, level: int) -> AreasMapSettings:
    """Return the settings of all maps of some data."""
    also = next(iter(data.denominators.values()), None)
    return AreasMapSettings(level=level, rate=shown_rate(data), also=also, unit=data.unit, dark=is_dark())


def asked_regions(regions: Regions) -> tuple[int, ...]:
    """Return the indices of the regions of the shown level that are asked for."""
    return tuple(region for region in AREAS.view.asked if region < regions.size(shown_level(regions)))


def toggle_asked(regions: Regions, region: int) -> None:
    """Ask for a region that was clicked, too, or no longer."""
    asked = asked_regions(regions)
    others = tuple(each for each in asked if each != region)
    AREAS.change(view={"asked": others if region in asked else (*asked, region)[-MOST_ASKED:]})
