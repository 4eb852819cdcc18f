"""The Points page: data, mechanism and budget on the left; on the right, what would be released, with the tabs under the map."""

from __future__ import annotations

import streamlit as st

from dpviz.app.components.panes import load_deck
from dpviz.app.controls import mechanism_controls, privacy_controls, without_settings
from dpviz.app.dataset_block import dataset_block, describe_spent
from dpviz.app.fields import show_lock, start_checks
from dpviz.app.first_row import NO_EXPORT, NOT_PRIVATE, WATERMARK, curate_row, show_forgotten, show_refused, teach_row, truth_switch
from dpviz.app.ledger import Funding
from dpviz.app.page_state import CURATE, TEACH
from dpviz.app.points.data import points_controls
from dpviz.app.points.state import POINTS, SECOND_RUN, Data, Drawn, config, draw, drawn, truth_of
from dpviz.app.points.tabs import key_figures, partition_box, tabs
from dpviz.app.points.teach import show_teach
from dpviz.app.saved_config import save_button
from dpviz.app.session import accept_presses, is_dark, serve_press, show_error, show_refusal
from dpviz.app.two_runs import choose_run
from dpviz.app.words import verdict_row
from dpviz.errors import BudgetError, DpvizError, SettingError
from dpviz.evaluation.metrics import Evaluation
from dpviz.view.basemap import Bounds
from dpviz.view.deck import MOST_FEATURES
from dpviz.view.escape import html
from dpviz.view.points_map import INTERPOLATED, SHOWN, can_show_interpolation, points_map

MAP_HEIGHT = 620
_PROTECTED = {
    "record": "**Protected:** adding or removing one record.",
    "person": "**Protected:** adding or removing one person, with all records that count.",
    "": "**Protected:** adding or removing one record (or one person, where a person column is given).",
}
_NOT_PROTECTED = "**Not protected:** the domain, its resolution, the mechanism and its settings, totals that you declare."
_UNPROTECTED = "**NOT PRIVATE:** the chosen reference protects nothing. It shows what privacy costs."


def points_page() -> None:
    """Draw the page."""
    if show_forgotten():
        return
    show_refused(POINTS)
    teaches = config().mode == TEACH
    if teaches:
        load_deck()
        row = teach_row(POINTS)
    else:
        curate_row(POINTS, _describe_protected(""))  # the data of this run are not known yet
    with st.sidebar:
        data, funding, fits = _show_controls()
    POINTS.write_address()
    if teaches:
        protected = _describe_protected(POINTS.protected) if POINTS.mechanisms[config().mechanism].private else _UNPROTECTED
        show_teach(data, row, protected, fits=fits)
    else:
        _show_draws(data, funding)
    accept_presses(POINTS.key)


def _show_draws(data: Data | None, funding: Funding | None) -> None:
    """Show the last draw in Curate; before the first one, what to do next."""
    what = drawn()
    if what is not None:
        _show_curate(what.number, data is not None and what.data.points is data.points)
    elif data is None:
        st.info("Choose data on the left to begin.")
    else:
        st.info(f"Set the mechanism and the budget on the left, then press *Draw a release*. {describe_spent(funding)}")


def _describe_protected(unit: str) -> str:
    """Write what a release protects, and what not; `unit` is "record" or "person", or "" where it is not known."""
    return f"{_PROTECTED[unit]} {_NOT_PROTECTED}"


def _show_controls() -> tuple[Data | None, Funding | None, bool]:
    """Show the controls.

    A choice that does not fit is reported beside its control, and nothing that was typed is lost.

    Returns:
        The data, None while something is missing; the account that would pay for a draw in Curate; and whether all choices fit.
    """
    start_checks()
    data, how = None, config()
    if how.mode == CURATE:
        POINTS.remember(None)
    try:
        data = points_controls()
    except DpvizError as error:
        show_error(str(error))
    POINTS.offer(data)
    page_state = choose_run(POINTS, SECOND_RUN)
    try:
        mechanism_controls(page_state)
        strip_has_split = how.mode == TEACH and page_state is POINTS
        privacy_controls(page_state, data.points.domain if data else None, bar=not strip_has_split)
        how.second_run().build()
    except (SettingError, BudgetError) as error:
        show_error(str(error))
        if page_state.config().mechanism in POINTS.offered_mechanisms():
            st.button("Back to the default settings", on_click=without_settings, args=(page_state,))
        return data, None, False
    if how.mode == TEACH:
        fits = not show_lock()
        if data is not None and fits:
            save_button(data, how, None)
        return data, None, fits
    if data is not None:
        return data, _draw_controls(data), True
    st.button("Draw a release", type="primary", width="stretch", disabled=True, key="draw")
    return None, None, True


def _draw_controls(data: Data) -> Funding | None:
    """Show the button that draws in Curate, and the account that pays; return the account."""
    how = config()
    funding = dataset_block(data, [(how.build(), how.budget())])
    has_problem = show_lock()
    if not has_problem:
        POINTS.remember(data)  # before the draw: the user may open the Release page while the release is made
    locked = has_problem or funding is None or funding.problem is not None
    if st.button("Draw a release", type="primary", width="stretch", disabled=locked, key="draw") and not locked:
        serve_press(POINTS.key, lambda: draw(data, funding), "Drawing ...")
    show_refusal(POINTS.key)
    if not has_problem:
        save_button(data, how, funding)
    return funding


@st.fragment
def _show_curate(number: int, same_data: bool) -> None:  # noqa: ARG001 - a new draw makes a new fragment
    """Show the map of a draw in Curate with its controls, the key figures and the tabs; moving a control draws no noise.

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
    picture = points_map(what.release, level, shown, unit=what.data.unit, dark=is_dark(), truth=truth)
    if what.config.mode == CURATE:
        st.html(NO_EXPORT if truth is None else NO_EXPORT + WATERMARK)
    if not what.release.receipt.private:
        st.html(NOT_PRIVATE)
    chosen = st.pydeck_chart(
        picture.deck, height=MAP_HEIGHT, key="map", on_select="rerun", selection_mode="single-object", alt=picture.description
    )
    st.html(picture.legend + "".join(f'<div class="dpviz-note">{note}</div>' for note in [html(picture.note or ""), _stamp(what)] if note))
    with st.container(key="figures"):
        key_figures(what, evaluation, level)
        tabs(what, evaluation, level, _clicked_box(what, chosen))


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


def _clicked_box(what: Drawn, chosen: object) -> Bounds | None:
    """Return the box of the partition that was clicked, by its index in the release, not in the map layer; None if there is none."""
    selection = getattr(chosen, "selection", None) or {}
    objects = selection.get("objects", {}).get("partitions", [])
    node = objects[0].get("i") if objects else None
    return partition_box(what.release, node) if isinstance(node, int) and 0 <= node < len(what.release.tree) else None
