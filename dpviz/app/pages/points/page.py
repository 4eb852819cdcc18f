"""The Points page: data, mechanism and budget on the left; on the right, what would be released, with the tabs under the map."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.app.modes.page import show_in_mode
from dpviz.app.modes.sidebar import teach_controls
from dpviz.app.pages.points.curate import PARTS
from dpviz.app.pages.points.data import points_controls
from dpviz.app.pages.points.state import POINTS
from dpviz.app.pages.points.teach import show_teach
from dpviz.app.state.page import usual_page
from dpviz.evaluation.metrics import evaluate_points
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_point_sample
from dpviz.view.canvas import ground_of, names_of

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
    domain_of, below = (lambda data: data.counts.domain), partial(_offer_areas, areas)
    controls = partial(teach_controls, POINTS, points_controls, domain_of, below_data=below)
    show_in_mode(POINTS, controls, show_teach, PARTS, _PROTECTED, _NOT_PROTECTED)


def _offer_areas(areas: StreamlitPage | None) -> None:
    """Show a button that leads to the page of points in regions."""
    help_text = "Points counted in counties, blocks, hexagons or other declared regions, in place of squares."
    if areas is not None and st.button("Points in regions", key="to areas", type="tertiary", icon=":material/hexagon:", help=help_text):
        st.switch_page(areas)


def run_first() -> None:
    """Make the run that the page shows first, so that its sample and the land around it are in memory; the run is thrown away."""
    how = usual_page(POINTS.kind).draft
    points = load_point_sample(str(how.sample))
    ground_of(points.domain)
    names_of(points.domain)
    evaluate_points(how.build().release(points, how.budget(), Entropy.seeded(how.run.seed)), points)
