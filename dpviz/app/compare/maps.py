"""Small multiples: the releases of up to four configurations on maps, with one zoom control."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from dpviz.app.areas.state import EASY_TO_SEE as AREAS_EASY_TO_SEE
from dpviz.app.camera import keep_camera, opening
from dpviz.app.compare.answer import shown_picks
from dpviz.app.compare.state import (
    AREAS_KIND,
    COMPARE,
    MOST_PICKED,
    MOST_ZOOM,
    POINTS_KIND,
    TRIPS_KIND,
    CompareData,
    Pick,
    describe_pick,
    is_in_address,
    possible_picks,
)
from dpviz.app.components.panes import panes
from dpviz.app.jobs import StudyJob
from dpviz.app.points.scales import public_density_top
from dpviz.app.session import is_dark, show_error, widget_for
from dpviz.app.streets import streets_switch, streets_wanted
from dpviz.app.words import show_chart
from dpviz.data.points import PointCounts
from dpviz.errors import DpvizError
from dpviz.evaluation.study import Run
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.release.point_release import PointRelease
from dpviz.space.regions import Regions
from dpviz.view.areas_canvas import areas_of as area_texts_of
from dpviz.view.areas_canvas import make_pane as make_area_pane
from dpviz.view.areas_drawing import AreasMapSettings, RegionsOnMap, draw_areas
from dpviz.view.areas_drawing import choose_tops as choose_area_tops
from dpviz.view.basemap import map_bounds
from dpviz.view.canvas import Areas, Cells, Pane, Scene, ground_in, ground_of, names_in, names_of
from dpviz.view.escape import markdown
from dpviz.view.masked_area import find_masked_area
from dpviz.view.points_canvas import ERROR, FALSE_POSITIVES, TRUE, ReleaseView, SquaresView
from dpviz.view.points_map import SHOWN, error_top
from dpviz.view.trips_canvas import areas_of, bounds_of, make_pane, names_of_dots
from dpviz.view.trips_charts import matrix_chart
from dpviz.view.trips_drawing import TripsMapSettings, choose_public_tops, draw_trips, has_geometry, merge_tops

FEWER_ARCS, CANVAS_HEIGHT = 200, 430
USUAL_ZOOM, EASY_TO_SEE = 5, 60
_STREETS, _NOTHING = "compare street map", "No region is here."
_ZOOM = "Every map shows the level of its release that has about as many partitions as there are blocks at this zoom level."


def side_by_side(job: StudyJob, data: CompareData) -> None:
    """Show the choice of configurations, and their maps."""
    picked = shown_picks(job)
    if not picked:
        st.info("Click a point of the chart, or choose configurations here: their releases are repeated from their seeds.")
        _pick_controls(job, picked)
        return
    repeat = min(COMPARE.config().repeat, job.study.repeats)
    runs = {(run.label, float(run.budget.epsilon)): run for run in job.study.runs() if run.repeat == repeat}
    releases = _repeat_releases(job, {pick: runs[pick] for pick in picked})
    if releases:
        with st.container(key="multiples", gap="xsmall"):
            maps = {POINTS_KIND: _show_points, TRIPS_KIND: _show_trips, AREAS_KIND: _show_areas}[job.config[0].kind]
            maps(data, releases, is_in_address(job))
    left, right = st.columns([6, 1])
    with left:
        _pick_controls(job, picked)
    with right:
        if job.study.repeats > 1:
            about, key = "Each repeat has noise of its own.", f"compare repeat {job.study.repeats}"
            st.slider("Repeat", 1, job.study.repeats, help=about, **widget_for(key, repeat, lambda value: COMPARE.change(repeat=value)))
    st.caption("Simulations with seeded noise: the same releases that the study measured, repeated from their seeds.")


def _repeat_releases(job: StudyJob, runs: dict[Pick, Run]) -> dict[str, Any]:
    """Make the releases of some runs again from their seeds, by their names. A run that failed fails again, and its error is shown."""
    releases = {}
    for pick, run in runs.items():
        title = describe_pick(job, pick)
        try:
            releases[title] = job.release(run)
        except DpvizError as error:
            show_error(f"{title}: {error}")
    return releases


def _pick_controls(job: StudyJob, picked: list[Pick]) -> None:
    """Ask which releases are shown; the chosen ones are those that the maps show already."""
    options = list(possible_picks(job))
    st.session_state["compare picked"] = [options.index(pick) for pick in picked]
    st.multiselect(
        "Side by side, up to four",
        range(len(options)),
        key="compare picked",
        max_selections=MOST_PICKED,
        format_func=lambda index: describe_pick(job, options[index]),
        on_change=lambda: COMPARE.change(picked=tuple(options[index] for index in st.session_state["compare picked"])),
    )


def _show_points(data: CompareData, releases: dict[str, PointRelease], link: bool) -> None:
    """Show releases of points, and the truth beside them if there are at most three, in one canvas with one camera.

    Args:
        data: the data of the study.
        releases: by configuration and epsilon.
        link: whether a link to the maps can be copied.
    """
    points: PointCounts = data.data  # type: ignore[assignment]
    domain, height = points.domain, min(points.domain.order, MOST_ZOOM)
    left, right = st.columns([3, 2], vertical_alignment="center")
    shown, zoom = _choose_shown(left), 0
    if height:
        zoom = min(USUAL_ZOOM if COMPARE.config().zoom is None else COMPARE.config().zoom, height)
        widget = widget_for(f"compare zoom {height}", zoom, lambda value: COMPARE.change(zoom=value))
        zoom = int(right.slider("Zoom level", 0, height, help=_ZOOM, **widget))
    truths = {title: release.tree.sums(points.column, points.row, points.count).astype(np.int64) for title, release in releases.items()}
    levels = {title: level_like(release, zoom) for title, release in releases.items()}
    cells, made = _make_panes(points, releases, levels, truths, data.unit, shown, zoom)
    parts = {"cells": cells, "ground": ground_of(domain), "masked": find_masked_area(domain), "places": names_of(domain)}
    scene = _make_scene(data, made, domain, link=link, bounds=map_bounds(domain), **parts)
    panes(scene, key="compare canvas", on_camera=partial(keep_camera, COMPARE))
    streets_switch(_STREETS, on_earth=domain.crs is not None)


def _make_scene(data: CompareData, made: list[Pane], frame: object, *, link: bool, **parts: Any) -> Scene:
    """Make the canvas of maps with one camera.

    Args:
        data: the data of the study.
        made: the maps.
        frame: the public frame of the maps.
        link: whether a link to the maps can be copied.
        parts: what differs between points, trips and areas.
    """
    opens = opening(COMPARE, frame)
    return Scene(
        panes=tuple(made),
        description="; ".join(f"{pane.title} {pane.about}" for pane in made),
        dark=is_dark(),
        height=CANVAS_HEIGHT if len(made) <= 2 else 2 * CANVAS_HEIGHT,
        title=data.title,
        stamp="Simulations with seeded noise, not private.",
        camera=opens.camera,
        visit=opens.visit,
        link=link,
        streets=streets_wanted(_STREETS),
        **parts,
    )


def _make_panes(
    points: PointCounts, releases: dict[str, PointRelease], levels: dict[str, int], truths: dict[str, Any], unit: str, shown: str, zoom: int
) -> tuple[dict[str, Cells], list[Pane]]:
    """Make the panes of releases of points, the truth first if there is room, and the rectangles that they show, by name."""
    views = [
        ReleaseView.of(release, levels[title], unit=unit, dark=is_dark(), truth=truths[title], about=title)
        for title, release in releases.items()
    ]
    density = public_density_top(points, views[0].release, unit)
    if shown == FALSE_POSITIVES:
        squares = [SquaresView.of(release, points.blocks, zoom, dark=is_dark(), about=title) for title, release in releases.items()]
        cells = {str(place): view.cells() for place, view in enumerate(squares) if view.fits}
        made = [_name_first(view.pane(cells=str(place))) for place, view in enumerate(squares)]
    else:
        cells = {str(place): view.cells() for place, view in enumerate(views) if view.fits}
        top = max(error_top(view.release, view.nodes, view.truth) for view in views) if shown == ERROR else density
        made = [_name_first(view.pane(shown, cells=str(place), top=top)) for place, view in enumerate(views)]
    if shown != TRUE and len(made) < MOST_PICKED:
        truth = SquaresView.of(views[0].release, points.blocks, zoom, dark=is_dark())
        made.insert(0, truth.truth_pane(cells="truth", unit=unit, top=density))
        cells |= {"truth": truth.cells()} if truth.fits else {}
    return cells, made


def _name_first(pane: Pane) -> Pane:
    """Return a pane whose title is the configuration, since that is what differs; of the truth there is only one."""
    return replace(pane, title=pane.about, about=pane.title) if pane.about else pane


def level_like(release: PointRelease, zoom: int) -> int:
    """Return the level whose number of partitions is nearest, as a ratio, to the 2**zoom x 2**zoom blocks of a zoom level."""
    return min(reversed(range(release.height + 1)), key=lambda level: abs(math.log(len(release.nodes(level))) - zoom * math.log(4)))


def _choose_shown(column: Any) -> str:
    """Ask what the maps show: the same choices for all kinds of data."""
    shown = COMPARE.widget("shown", "compare shown")
    return str(column.segmented_control("Map", SHOWN, required=True, label_visibility="collapsed", **shown))


def _choose_level(column: Any, regions: Regions, easy: int) -> int:
    """Ask for the level of the maps of trips or areas; without one of these regions, the finest with at most `easy` regions is shown."""
    numbers, level = range(1, regions.depth + 1), COMPARE.config().level
    if level not in numbers:
        level = max((number for number in numbers if regions.size(number) <= easy), default=1)
    chosen = column.segmented_control(
        "Level",
        numbers,
        required=True,
        format_func=lambda number: markdown(regions.levels[number - 1]),
        label_visibility="collapsed",
        **widget_for(f"compare level {' '.join(regions.levels)}", level, lambda value: COMPARE.change(level=value)),
    )
    return int(chosen)


def _draw_regions(
    releases: dict[str, Any], shown: str, draw: Callable[[Any, str], Any], make: Callable[..., Pane]
) -> tuple[list[Pane], dict[str, Any]]:
    """Draw releases of trips or areas, and make their panes, the truth first if there is room.

    Args:
        releases: by configuration and epsilon.
        shown: what the maps show.
        draw: draws a release, or the truth if that is shown.
        make: makes the pane of a drawing.

    Returns:
        The panes; and the drawings of the releases, by the names that the panes have for their regions.
    """
    drawings = {str(place): draw(release, shown) for place, release in enumerate(releases.values())}
    named = zip(drawings.items(), releases, strict=True)
    made = [_name_first(make(drawing, areas=name, about=title)) for (name, drawing), title in named]
    if shown != TRUE and len(made) < MOST_PICKED:
        made.insert(0, make(draw(next(iter(releases.values())), TRUE), areas="0", about=""))
    return made, drawings


def _show_trips(data: CompareData, releases: dict[str, Any], link: bool) -> None:
    """Show releases of trips; the arguments are those of `_show_points`."""
    trips: Any = data.data
    left, right = st.columns([3, 2], vertical_alignment="center")
    shown, level = _choose_shown(left), _choose_level(right, trips.regions, EASY_TO_SEE)
    if not has_geometry(trips.regions, level):
        columns = [column for _ in range(0, len(releases), 2) for column in st.columns(min(2, len(releases)))]
        for column, (title, release) in zip(columns, releases.items(), strict=False):
            with column:
                st.markdown(f"**{markdown(title)}**")
                show_chart(matrix_chart(release, level, data.unit))
        return
    first = next(iter(releases.values()))
    truth, bounds = evaluate_trips(first, trips).true_level(level), bounds_of(first)
    view = TripsMapSettings(level=level, shown=shown, top=FEWER_ARCS, unit=data.unit, dark=is_dark())
    view = replace(view, tops=merge_tops([choose_public_tops(release, truth, view) for release in releases.values()]))
    made, drawings = _draw_regions(releases, shown, lambda release, kind: draw_trips(release, replace(view, shown=kind), truth), make_pane)
    areas: dict[str, Areas] = {}
    for name, drawing in drawings.items():
        areas |= areas_of(drawing, name)
    places = names_of_dots(drawings["0"]) or names_in(bounds)
    parts = {"areas": areas, "edge": False, "nothing": _NOTHING, "ground": ground_in(bounds), "places": places}
    scene = _make_scene(data, made, (trips.regions, trips.ends), link=link, bounds=bounds, **parts)
    panes(scene, key="compare trips canvas", on_camera=partial(keep_camera, COMPARE))
    streets_switch(_STREETS)


def _show_areas(data: CompareData, releases: dict[str, Any], link: bool) -> None:
    """Show releases of areas, and the truth beside them if there are at most three; the arguments are those of `_show_points`."""
    areas: Any = data.data
    left, right = st.columns([3, 2], vertical_alignment="center")
    shown, level = _choose_shown(left), _choose_level(right, areas.regions, AREAS_EASY_TO_SEE)
    on_map: RegionsOnMap | None = st.session_state.get("compare regions on map")
    if on_map is None or on_map.regions is not areas.regions:
        on_map = st.session_state["compare regions on map"] = RegionsOnMap(areas.regions)
    if on_map.shapes(level) is None:
        st.caption("These regions have neither outlines nor coordinates: there is no map of them.")
        return
    truth = areas.level_counts()[level]
    view = AreasMapSettings(level=level, shown=shown, unit=data.unit, dark=is_dark())
    tops = [choose_area_tops(release, view, truth) for release in releases.values()]
    view = replace(view, tops=replace(tops[0], error=max(top.error for top in tops)))
    made, drawings = _draw_regions(
        releases, shown, lambda release, kind: draw_areas(release, on_map, replace(view, shown=kind), truth), make_area_pane
    )
    texts, bounds = {name: area_texts_of(drawing) for name, drawing in drawings.items()}, on_map.bounds
    parts = {"areas": texts, "edge": False, "nothing": _NOTHING, "ground": ground_in(bounds), "places": names_in(bounds)}
    scene = _make_scene(data, made, areas.regions, link=link, bounds=bounds, **parts)
    panes(scene, key="compare areas canvas", on_camera=partial(keep_camera, COMPARE))
    streets_switch(_STREETS)
