"""The Points page: data, mechanism and budget on the left; on the right, what would be released."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.dataset_block import dataset_block, describe_spent
from dpviz.app.fields import show_lock, start_checks
from dpviz.app.first_row import NO_EXPORT, NOT_PRIVATE, WATERMARK, mode_row, show_forgotten, truth_switch
from dpviz.app.ledger import Funding, record_public_look
from dpviz.app.points_data import points_controls
from dpviz.app.points_state import (
    CURATE,
    POINTS,
    Data,
    Drawn,
    config,
    draw,
    drawn,
    truth_of,
)
from dpviz.app.points_tabs import tabs
from dpviz.app.saved_config import save_button
from dpviz.app.session import accept_presses, serve_press, show_error, show_refusal
from dpviz.app.words import budget_text, verdict_row
from dpviz.errors import BudgetError, DpvizError, SettingError
from dpviz.evaluation.metrics import Evaluation
from dpviz.privacy.receipt import Receipt
from dpviz.view.deck import MOST_FEATURES
from dpviz.view.escape import html
from dpviz.view.points_map import INTERPOLATED, PRESENT, SHOWN, can_show_interpolation, points_map, truth_map

MAP_HEIGHT = 620
FIRST_ZOOM = 6  # zoom level of the map before the first draw: few blocks, so that the map is there at once
_PROTECTED = (
    "**Protected:** adding or removing one record (or one person, where a person column is given)."
    " **Not protected:** the domain, its lattice, the mechanism and its settings, totals that you declare."
)
_UNPROTECTED = "**NOT PRIVATE:** the chosen reference protects nothing. It shows what privacy costs."


def points_page() -> None:
    """Draw the page."""
    if show_forgotten():
        return
    private = config().mode == CURATE or POINTS.mechanisms[config().mechanism].private
    mode_row(POINTS, _PROTECTED if private else _UNPROTECTED)
    with st.sidebar:
        data, purse = _left()
    POINTS.write_address()
    what = drawn()
    if what is None:
        _before_the_first_draw(data, purse)
    else:
        _result(what.number, data is not None and what.data.points is data.points)
    accept_presses(POINTS.key)


def _left() -> tuple[Data | None, Funding | None]:
    """Show the controls. Return the data, and the account that would pay for a draw in Curate.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.
    """
    start_checks()
    data = None
    if config().mode == CURATE:
        POINTS.remember(None)
    try:
        data = points_controls()
    except DpvizError as error:
        show_error(str(error))
    POINTS.offer(data)
    try:
        mechanism_controls(POINTS)
        privacy_controls(POINTS, data.points.domain if data else None)
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        if config().mechanism in POINTS.offered():
            st.button("Back to the default settings", on_click=without_settings, args=(POINTS,))
        return data, None
    if data is not None:
        return data, _draw_controls(data)
    st.button("Draw a release", type="primary", width="stretch", disabled=True, key="draw")
    return None, None


def _draw_controls(data: Data) -> Funding | None:
    """Show the button that draws and, in Curate, the account that pays; return the account."""
    how = config()
    purse = dataset_block(data, [(how.built(), how.budget())]) if how.mode == CURATE else None
    wrong = show_lock()
    if how.mode == CURATE and not wrong:
        POINTS.remember(data)  # before the draw: the user may open the Release page while the release is made
    locked = wrong or (purse is not None and purse.problem is not None)
    if st.button("Draw a release", type="primary", width="stretch", disabled=locked, key="draw") and not locked:
        serve_press(POINTS.key, lambda: draw(data, purse), "Drawing ...")
    show_refusal(POINTS.key)
    if not wrong:
        save_button(data, how, purse)
    return purse


def _before_the_first_draw(data: Data | None, purse: Funding | None) -> None:
    """Say what to do next; in Teach, show the true data, which are public."""
    if data is None:
        st.info("Choose data on the left to begin.")
        return
    if config().mode == CURATE:
        st.info(f"Set the mechanism and the budget on the left, then press *Draw a release*. {describe_spent(purse)}")
        return
    st.markdown(f"**{data.title}**: the true data, which are public. Press *Draw a release* to see what could be published instead.")
    if not record_public_look(data):
        return
    picture = truth_map(data.points.domain, _truth_zoom(data), data.points.blocks, unit=data.unit, dark=_dark())
    st.pydeck_chart(picture.deck, height=MAP_HEIGHT, key="map before", alt=picture.description)
    st.html(picture.legend)


def _truth_zoom(data: Data) -> int:
    return min(FIRST_ZOOM, data.points.domain.order)


def _dark() -> bool:
    return st.context.theme.type == "dark"


@st.fragment
def _result(number: int, same_data: bool) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the map with its controls, the key figures and the tabs; moving a control draws no noise.

    Args:
        number: number of the draw.
        same_data: whether the data on the left are still those of the draw.
    """
    what = drawn()
    if what is None:
        return
    if not (same_data and what.config.same_draw(config())):
        stale = f"The data or settings on the left have changed since draw {what.number}. Press *Draw a release* to see their effect."
        st.caption(f":orange[{stale}]")
    verdict_row(what.release)
    truth_switch(what.data, what.config.mode)
    evaluation = truth_of(what)
    shown, level = _map_controls(what, evaluation)
    truth = None if evaluation is None else evaluation.truth
    picture = points_map(what.release, level, shown, unit=what.data.unit, dark=_dark(), truth=truth)
    if what.config.mode == CURATE:
        st.html(NO_EXPORT if truth is None else NO_EXPORT + WATERMARK)
    if not what.release.receipt.private:
        st.html(NOT_PRIVATE)
    chosen = st.pydeck_chart(
        picture.deck, height=MAP_HEIGHT, key="map", on_select="rerun", selection_mode="single-object", alt=picture.description
    )
    st.html(picture.legend + "".join(f'<div class="dpviz-note">{note}</div>' for note in [html(picture.note or ""), _stamp(what)] if note))
    with st.container(key="figures"):
        _key_figures(what, evaluation, level)
        tabs(what, evaluation, level, _clicked(chosen))


def _stamp(what: Drawn) -> str | None:
    """Return an HTML note if the release is a reference or a simulation, which must not be published; else None."""
    if not what.release.receipt.private:
        return f"<b>NOT PRIVATE</b>, draw {what.number}: this reference shows what privacy costs, and must never be published."
    return f"Seeded draw {what.number}: a simulation, not private." if what.release.simulation else None


def _map_controls(what: Drawn, evaluation: Evaluation | None) -> tuple[str, int]:
    """Ask which map and which level of the tree is shown."""
    height = what.release.height
    left, right = st.columns([3, 2], vertical_alignment="center")
    options = list(SHOWN if evaluation is not None else SHOWN[:1])
    if can_show_interpolation(what.release):
        options.insert(1, INTERPOLATED)
    shown = config().shown if config().shown in options else SHOWN[0]
    st.session_state["shown"] = shown
    left.segmented_control(
        "Map",
        options,
        key="shown",
        required=True,
        label_visibility="collapsed",
        on_change=lambda: POINTS.change(shown=st.session_state["shown"]),
    )
    zoom = _hoverable_zoom(what) if config().zoom is None else min(config().zoom or 0, height)
    st.session_state["zoom"] = zoom
    if height > 0:
        right.slider("Zoom level", 0, height, key="zoom", on_change=lambda: POINTS.change(zoom=st.session_state["zoom"]))
    return shown, zoom


def _hoverable_zoom(what: Drawn) -> int:
    height = what.release.height
    return max(zoom for zoom in range(height + 1) if zoom == 0 or len(what.release.nodes(zoom)) <= MOST_FEATURES)


def _key_figures(what: Drawn, evaluation: Evaluation | None, level: int) -> None:
    """Show four numbers that sum the release up at the level shown."""
    release, nodes = what.release, what.release.nodes(level)
    columns = st.columns(4)
    finest = f"At the zoom level of the map; the release goes down to {len(release.tree.leaves):,}."
    columns[0].metric("Partitions shown", f"{len(nodes):,}", help=finest)
    stddev = float(np.median(release.stddev[nodes]))
    known = f"Median standard deviation of a shown partition, in {what.data.unit}; known without the truth."
    columns[1].metric("Typical noise", f"± {stddev:,.1f}", help=known)
    if evaluation is None:
        total, spread = release.count[0], release.stddev[0]
        columns[2].metric("Released total", f"{total:,.0f} ± {spread:,.0f}", help="Estimate and standard deviation of the whole domain.")
        columns[3].metric("Budget of this draw", _budget_of(release.receipt), help="See the Receipt tab.")
        return
    truth, count = evaluation.truth[nodes], release.count[nodes]
    error = float(np.abs(count - truth).sum() / max(truth.sum(), 1) * 100)
    summed = f"Sum of the absolute errors of all shown partitions, in percent of the true number of {what.data.unit}."
    columns[2].metric("Error, all partitions", f"{error:,.1f} %", help=summed)
    wrong = int(((truth == 0) & (count >= PRESENT)).sum())
    empty = f"Partitions released as occupied although no record is there, out of {int((truth == 0).sum()):,} empty ones."
    columns[3].metric("False positives", f"{wrong:,}", help=empty)


def _budget_of(receipt: Receipt) -> str:
    """Return what one draw spent, as the text of a key figure."""
    if not receipt.private:
        return "NOT PRIVATE"
    return budget_text(receipt.used, getattr(receipt.spent, "delta", 0))


def _clicked(chosen: object) -> int | None:
    """Return the node that was clicked, by its index in the release, not in the map layer; None if there is none."""
    selection = getattr(chosen, "selection", None) or {}
    objects = selection.get("objects", {}).get("partitions", [])
    node = objects[0].get("i") if objects else None
    return node if isinstance(node, int) else None
