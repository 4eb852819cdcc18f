"""The Points page: data, mechanism and budget on the left; on the right, what would be released, with the tabs under the map."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.app.first_row import describe_unprotected
from dpviz.app.page_state import TEACH
from dpviz.app.points.curate import show_curate
from dpviz.app.points.data import points_controls
from dpviz.app.points.state import POINTS, SECOND_RUN, Data, config
from dpviz.app.points.teach import show_teach
from dpviz.app.sidebar import teach_controls
from dpviz.app.two_modes import show_in_mode

_PROTECTED = {
    "record": "**Protected:** adding or removing one record.",
    "person": "**Protected:** adding or removing one person, with all records that count.",
    "": "**Protected:** adding or removing one record (or one person, where a person column is given).",
}
_NOT_PROTECTED = (
    "**Not protected:** the domain, its resolution and where people can be, the mechanism and its settings, totals that you declare."
)


def points_page(areas: StreamlitPage | None = None) -> None:
    """Draw the page; `areas` is the page of points that are counted in regions, to which a button beside the data leads."""
    show_in_mode(POINTS, partial(_show_controls, areas), show_teach, show_curate, _describe_protected)


def _describe_protected(unit: str) -> str:
    """Write what a release protects, and what not; `unit` is "record" or "person", or "" where it is not known."""
    if config().mode == TEACH and not POINTS.mechanisms[config().mechanism].private:
        return describe_unprotected(POINTS.mechanisms[config().mechanism])
    return f"{_PROTECTED[unit]} {_NOT_PROTECTED}"


def _show_controls(areas: StreamlitPage | None) -> tuple[Data | None, bool]:
    """Show the controls of Teach; `areas` is as of `points_page`."""
    return teach_controls(POINTS, SECOND_RUN, points_controls, lambda data: data.counts.domain, below_data=partial(_offer_areas, areas))


def _offer_areas(areas: StreamlitPage | None) -> None:
    """Show a button that leads to the page of points in regions."""
    help_text = "Points counted in counties, blocks, hexagons or other declared regions, in place of squares."
    if areas is not None and st.button("Points in regions", key="to areas", type="tertiary", icon=":material/hexagon:", help=help_text):
        st.switch_page(areas)
