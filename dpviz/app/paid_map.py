"""The map of a release that was paid for before the page was loaded: what is published is seen first. Nothing private is used."""

from __future__ import annotations

import streamlit as st

from dpviz.app.components.panes import panes
from dpviz.app.session import is_dark
from dpviz.release.area_release import AreaRelease
from dpviz.release.nouns import AnyRelease, counted_noun
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import ROUGH, USABLE, grades
from dpviz.view.areas_canvas import released_scene as released_areas
from dpviz.view.areas_drawing import AreasMapSettings, Denominator, RegionsOnMap, draw_areas
from dpviz.view.canvas import MOST_FEATURES
from dpviz.view.escape import html
from dpviz.view.points_canvas import RELEASED, ReleaseView, released_scene
from dpviz.view.trips_canvas import released_scene as released_trips
from dpviz.view.trips_drawing import TripsMapSettings, draw_trips, has_geometry

HEIGHT = 460
_EASY_TO_SEE, _AREAS_EASY_TO_SEE = 400, 4000  # regions on a map of trips, and of areas


def show_paid_map(release: AnyRelease, key: int) -> None:
    """Show a release on a map, at its finest usable level; the page has called `load_deck`.

    Args:
        release: the release.
        key: number of its payment, which makes another map of another release.
    """
    if isinstance(release, TripRelease):
        _show_trips(release, key)
    elif isinstance(release, AreaRelease):
        _show_areas(release, key)
    else:
        _show_points(release, key)


def find_readable_level(release: PointRelease) -> int:
    """Return the finest level that is usable, or else rough, of those that a map can show; 0 if none is."""
    found = grades(release)
    shown = [level for level in range(len(found)) if level == 0 or len(release.nodes(level)) <= MOST_FEATURES]
    by_grade = ([level for level in shown if found[level] == grade] for grade in (USABLE, ROUGH))
    return max(next(filter(None, by_grade), [0]))


@st.fragment
def _show_points(release: PointRelease, key: int) -> None:
    view = ReleaseView.of(release, find_readable_level(release), unit=counted_noun(release), dark=is_dark())
    panes(released_scene(view, RELEASED, height=HEIGHT), key=f"kept map {key:d}")


@st.fragment
def _show_trips(release: TripRelease, key: int) -> None:
    regions = release.tree.origins
    level = max((level for level in range(1, regions.depth + 1) if regions.size(level) <= _EASY_TO_SEE), default=1)
    if not has_geometry(regions, level):
        return
    drawing = draw_trips(release, TripsMapSettings(level=level, dark=is_dark()))
    panes(released_trips(release, drawing, height=HEIGHT), key=f"kept map {key:d}")
    st.html(f'<div class="dpviz-note">{html(drawing.note)}</div>')


@st.fragment
def _show_areas(release: AreaRelease, key: int) -> None:
    regions, on_map = release.regions, RegionsOnMap(release.regions)
    level = max((level for level in range(1, regions.depth + 1) if regions.size(level) <= _AREAS_EASY_TO_SEE), default=1)
    if on_map.shapes(level) is None:
        return
    view = AreasMapSettings(level=level, also=Denominator.of(regions), unit=counted_noun(release), dark=is_dark())
    drawing = draw_areas(release, on_map, view)
    scene = released_areas(on_map, drawing, (), dark=is_dark(), height=HEIGHT)
    panes(scene, key=f"kept map {key:d}")
