"""The Points page: its data, its words, and what would be released."""

from __future__ import annotations

import streamlit as st

from dpviz.app.modes.family_page import FamilyPage, Pages
from dpviz.app.pages.points.curate import count_useful, empty_counts, list_levels, show_declared, show_release
from dpviz.app.pages.points.data import Declared, points_controls
from dpviz.app.pages.points.state import POINTS, RELEASES
from dpviz.app.pages.points.teach import begin, describe_idle, make_teach
from dpviz.app.state.page import usual_page
from dpviz.evaluation.metrics import evaluate_points
from dpviz.families import AREA_FAMILY, POINT_FAMILY
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_point_sample
from dpviz.view.canvas import ground_of, names_of


def _offer_areas(pages: Pages) -> None:
    """Show a button that leads to the page of points in regions."""
    help_text = "Points counted in counties, blocks, hexagons or other declared regions, in place of squares."
    label, icon = "Points in regions", ":material/hexagon:"
    if AREA_FAMILY.name in pages and st.button(label, key="to areas", type="tertiary", icon=icon, help=help_text):
        st.switch_page(pages[AREA_FAMILY.name])


def _run_first() -> None:
    """Make the run that the page shows first, so that its sample and the land around it are in memory; the run is thrown away."""
    how = usual_page(POINTS.kind).draft
    points = load_point_sample(str(how.sample))
    ground_of(points.domain)
    names_of(points.domain)
    evaluate_points(how.build().release(points, how.budget(), Entropy.seeded(how.run.seed)), points)


PAGE = FamilyPage(
    releases=RELEASES,
    controls=points_controls,
    nothing=Declared(data=None),
    frame_of=lambda declared: declared.domain,
    protected={
        "record": "**Protected:** adding or removing one record.",
        "person": "**Protected:** adding or removing one person, with all records that count.",
        "": "**Protected:** adding or removing one record (or one person, where a person column is given).",
    },
    not_protected="**Not protected:** the domain, its resolution and where people can be, the mechanism and its settings, totals that you"
    " declare.",
    below_data=_offer_areas,
    prepare=_run_first,
    weigh=lambda what: len(what.release.tree),
    room=600_000,  # nodes
    begin=begin,
    idle=describe_idle,
    teach=make_teach,
    raw=", before post-processing makes the levels agree.",
    streets="street map",
    counts_of=empty_counts,
    levels_of=list_levels,
    unit_of=lambda _: POINT_FAMILY.counted,
    show_declared=show_declared,
    show_release=show_release,
    count_useful=count_useful,
)
