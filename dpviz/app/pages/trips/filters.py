"""Which trips the maps draw: the level of the regions, one region, and limits on the pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.fields import Field, in_range
from dpviz.app.pages.trips.state import TRIPS, TripsDrawn
from dpviz.app.session.widgets import carry_out, is_dark, widget_for
from dpviz.app.state.values import MOST_ARCS
from dpviz.space.regions import Regions
from dpviz.view.trips_drawing import PAIR_FILTERS, TripsMapSettings

EASY_TO_SEE = 400  # regions on a map


def shown_level(regions: Regions) -> int:
    """Return the level that is shown: the chosen one, or the finest with at most `EASY_TO_SEE` regions; 1 if every level has more."""
    easy = max((level for level in range(1, regions.depth + 1) if regions.size(level) <= EASY_TO_SEE), default=1)
    return min(TRIPS.view.level or easy, regions.depth)


def change_level(level: int) -> None:
    """Show another level; a chosen region is one of its own level, so it is let go."""
    TRIPS.change(view={"level": level, "region": None})


def chosen_region(regions: Regions, level: int) -> int | None:
    """Return the index of the region whose trips alone are drawn; None for all."""
    region: int | None = TRIPS.view.region
    return None if region is None or region >= regions.size(level) else region


def chosen_name(regions: Regions) -> str:
    """Return the name of the chosen region of the shown level; "" without one."""
    level = shown_level(regions)
    region = chosen_region(regions, level)
    return "" if region is None else str(regions.names_of(level)[region])


def make_settings(what: TripsDrawn, level: int) -> TripsMapSettings:
    """Return the settings of all maps of a run."""
    view, region = TRIPS.view, chosen_region(what.release.tree.origins, level)
    limits: dict[str, Any] = {"top": view.top, "least": view.least, "pairs": view.pairs}
    return TripsMapSettings(level=level, chosen=region, unit=what.data.unit, dark=is_dark(), **limits)


def offer_all_regions() -> None:
    """Show a small button that lets the chosen region go."""
    st.button("All regions", key="all regions", icon=":material/close:", on_click=carry_out(partial(TRIPS.change, view={"region": None})))


def toggle_region(region: int | None) -> None:
    """Choose a region that was clicked, or let it go if it was chosen."""
    TRIPS.change(view={"region": None if region == TRIPS.view.region else region})


def choose_filters(regions: Regions, level: int, *, stacked: bool = False) -> None:
    """Ask for a region, and which pairs are drawn.

    Args:
        regions: where trips begin.
        level: the level shown.
        stacked: whether the questions stand below each other.
    """
    view, names = TRIPS.view, regions.names_of(level)
    places: list[Any] = [st] * 4 if stacked else list(st.columns([3, 1.2, 1, 1]))
    places[0].selectbox(
        "Trips from and to",
        range(regions.size(level)),
        format_func=lambda index: str(names[index]),
        placeholder=f"every {regions.levels[level - 1]}; click one on the map, or choose it here",
        **widget_for("region", chosen_region(regions, level), lambda index: TRIPS.change(view={"region": index})),
    )
    places[1].selectbox(
        "Pairs",
        PAIR_FILTERS,
        help="Which released pairs are drawn. Noise makes some counts negative. A pair is certain if its interval, which holds for all"
        " pairs at once with probability 95 %, is above 0; the others are dashed.",
        **TRIPS.widget("view", "pairs"),
    )
    top_label, least_label = "Arcs at most", "Minimum trips"
    top = Field(
        key="top",
        label=top_label,
        value=view.top,
        problem=in_range(top_label, 1, MOST_ARCS),
        use=lambda typed: TRIPS.change(view={"top": typed}),
    )
    top.show(places[2].number_input, value=None, step=100)
    least_help = "Pairs with fewer released trips (whatever their sign) are not drawn."
    least = Field(
        key="least",
        label=least_label,
        value=view.least,
        problem=in_range(least_label, 1),
        use=lambda typed: TRIPS.change(view={"least": typed}),
    )
    least.show(places[3].number_input, value=None, step=1, help=least_help)
