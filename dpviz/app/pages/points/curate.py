"""Curate on the Points page: the levels of its bargain, and the map before and after a payment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from dpviz.app.cards.expected_errors import Expected, Levels
from dpviz.app.components.panes import Chosen, panes
from dpviz.app.modes.curate import choose_map, show_map_to_drag
from dpviz.app.pages.points.data import Declared
from dpviz.app.pages.points.levels import size_of_squares, zooms_of
from dpviz.app.pages.points.state import POINTS, Drawn
from dpviz.app.pages.points.tabs import ask_in_box, ask_in_cell, keep_box, key_figures, shows_box, tabs
from dpviz.app.pages.points.where import take_box
from dpviz.app.session.widgets import is_dark
from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import Evaluation
from dpviz.publishing.simulated_errors import USEFUL
from dpviz.release.point_release import PointRelease
from dpviz.release.squares import block_boxes
from dpviz.view.basemap import Bounds, box_to_map
from dpviz.view.declared_canvas import ExpectedSquares, declared_scene
from dpviz.view.points_canvas import ReleaseView, find_readable_level, released_scene
from dpviz.view.points_map import INTERPOLATED, SHOWN, can_show_interpolation

MAP_HEIGHT = 620
DECLARED_HEIGHT = 380
EASY_LEVEL = 6  # the level whose expected error is shown at first
_DECLARED_MAP = "declared map"
_FINEST_COUNTED = 8  # zoom level whose squares are looked at one by one, in less than a second


def empty_counts(declared: Declared) -> PointCounts | None:
    """Return the declared frame, unit and bound without a single record; None while the domain or the unit is missing."""
    if declared.domain is None or declared.unit is None:
        return None
    empty = PointCounts.from_xy([], [], domain=declared.domain)
    return replace(empty, unit=declared.unit, contributions=declared.bound)


def list_levels(points: PointCounts) -> Levels:
    """Return the levels of equal squares of the domain."""
    zooms = zooms_of(points.domain)
    sizes = {zoom: size_of_squares(points.domain, zoom) for zoom in zooms}
    names = {zoom: f"level {zoom} ({size})" if size else f"level {zoom}" for zoom, size in sizes.items()}
    return Levels(names=names, usual=min(EASY_LEVEL, zooms[-1]), part="square", parts_at=points.domain.count_open_blocks)


@st.fragment
def show_declared(declared: Declared, expected: Expected | None, unit: str) -> None:
    """Show the declared domain on land, with the expected error of its squares; a box that is dragged declares the domain."""
    squares = None if expected is None else ExpectedSquares(level=expected.place, error=expected.error, guess=expected.guess)
    boxes, outline = list(declared.boxes), declared.outline
    scene = declared_scene(declared.domain, squares, boxes, unit=unit, dark=is_dark(), height=DECLARED_HEIGHT, outline=outline)
    show_map_to_drag(POINTS, scene, _DECLARED_MAP, _take_box)


def _take_box(box: Bounds) -> None:
    POINTS.set("domain", place="")  # the box is no longer around a place that was typed
    take_box(box)


def count_useful(release: PointRelease, zoom: int) -> int | None:
    """Count the squares of a zoom level whose error is at most 40 % of their released count; None of too many to look at each."""
    if zoom > _FINEST_COUNTED:
        return None
    boxes = block_boxes(release.domain, zoom, *np.divmod(np.arange(4**zoom), 1 << zoom))
    noise, cut = release.error_parts(boxes)
    return int((np.sqrt(noise**2 + cut.variance) <= USEFUL * release.answer(boxes)).sum())


def show_release(what: Drawn, truths: Sequence[Evaluation | None]) -> None:
    """Show the map of a release with its controls, the key figures and the tabs."""
    keep_box(what.release.domain)
    (evaluation,) = truths
    shown, level = _map_controls(what, evaluation)
    truth = None if evaluation is None else evaluation.truth
    view = ReleaseView.of(what.release, level, unit=what.data.unit, dark=is_dark(), truth=truth)

    def ask_for_box(box: Bounds) -> None:
        ask_in_box(what.release.domain, box)

    def ask_for_cell(chosen: Chosen) -> None:
        ask_in_cell(view, chosen)

    with st.container(key="map"):
        box = box_to_map(what.release.domain, st.session_state["query box"]) if shows_box() else None
        panes(
            replace(released_scene(view, shown, height=MAP_HEIGHT), asks=True, box=box, fills=True),
            key="released map",
            on_box=ask_for_box,
            on_chosen=ask_for_cell,
        )
    with st.container(key="figures"):
        key_figures(what, level)
        tabs(what, evaluation, level)


def _map_controls(what: Drawn, evaluation: Evaluation | None) -> tuple[str, int]:
    """Ask which map and which level of the tree is shown."""
    height = what.release.height
    left, right = st.columns([3, 2], vertical_alignment="center")
    options = list(SHOWN if evaluation is not None else SHOWN[:1])
    if can_show_interpolation(what.release):
        options.insert(1, INTERPOLATED)
    shown = choose_map(POINTS, options, left)
    zoom = find_readable_level(what.release) if POINTS.view.level is None else min(POINTS.view.level or 0, height)
    st.session_state["zoom"] = zoom
    if height > 0:
        right.slider("Zoom level", 0, height, key="zoom", on_change=lambda: POINTS.change(view={"level": st.session_state["zoom"]}))
    return shown, zoom
