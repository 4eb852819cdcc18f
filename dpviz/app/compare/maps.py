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
    COMPARE,
    MOST_PICKED,
    MOST_ZOOM,
    CompareData,
    Pick,
    describe_pick,
    is_in_address,
    is_points,
    possible_picks,
)
from dpviz.app.components.panes import panes
from dpviz.app.jobs import StudyJob
from dpviz.app.points.scales import public_density_top
from dpviz.app.session import is_dark, show_error, show_value, when_chosen
from dpviz.app.streets import streets_switch, streets_wanted
from dpviz.app.words import show_chart
from dpviz.data.areas import AreaCounts
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
_STREETS = "compare street map"
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
            _choose_maps(data)(data, releases, is_in_address(job))
    left, right = st.columns([6, 1])
    with left:
        _pick_controls(job, picked)
    with right:
        _repeat_control(job.study.repeats)
    st.caption("Simulations with seeded noise: the same releases that the study measured, repeated from their seeds.")


def _choose_maps(data: CompareData) -> Callable[[CompareData, dict[str, Any], bool], None]:
    """Return the function that shows the maps of this kind of data."""
    if isinstance(data.data, AreaCounts):
        return _show_area_maps
    return _point_maps if is_points(data) else _trip_maps


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


def _repeat_control(repeats: int) -> None:
    """Ask which repeat is shown, if there are several."""
    if repeats == 1:
        return
    text, key = "Each repeat has noise of its own.", f"compare repeat {repeats}"
    show_value(key, min(COMPARE.config().repeat, repeats))
    st.slider("Repeat", 1, repeats, key=key, help=text, on_change=_keep("repeat", key))


def _keep(part: str, key: str) -> Callable[[], None]:
    """Return a callback that stores what a widget shows as a part of the configuration."""
    return when_chosen(key, lambda chosen: COMPARE.change(**{part: chosen}))


def _map_columns(number: int) -> list[Any]:
    """Return a column per map: two beside each other, all of one size."""
    columns: list[Any] = []
    while len(columns) < number:
        columns += st.columns(min(2, number))
    return columns[:number]


def _point_maps(data: CompareData, releases: dict[str, PointRelease], link: bool) -> None:
    """Show releases of points, and the truth beside them if there are at most three, in one canvas with one camera.

    Args:
        data: the data of the study.
        releases: by configuration and epsilon.
        link: whether a link to the maps can be copied.
    """
    points: PointCounts = data.data  # type: ignore[assignment]
    height = min(points.domain.order, MOST_ZOOM)
    left, right = st.columns([3, 2], vertical_alignment="center")
    shown = _shown_control(left)
    zoom = _zoom_control(right, height) if height else 0
    truths = {title: _true_counts(data, release) for title, release in releases.items()}
    levels = {title: level_like(release, zoom) for title, release in releases.items()}
    cells, made = _make_panes(points, releases, levels, truths, data.unit, shown, zoom)
    opens = opening(COMPARE, points.domain)
    scene = Scene(
        bounds=map_bounds(points.domain),
        cells=cells,
        panes=tuple(made),
        description="; ".join(f"{pane.title} {pane.about}" for pane in made),
        dark=is_dark(),
        height=CANVAS_HEIGHT if len(made) <= 2 else 2 * CANVAS_HEIGHT,
        title=data.title,
        stamp="Simulations with seeded noise, not private.",
        ground=ground_of(points.domain),
        masked=find_masked_area(points.domain),
        places=names_of(points.domain),
        camera=opens.camera,
        visit=opens.visit,
        link=link,
        streets=streets_wanted(_STREETS),
    )
    panes(scene, key="compare canvas", on_camera=partial(keep_camera, COMPARE))
    streets_switch(_STREETS, on_earth=points.domain.crs is not None)


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


def _true_counts(data: CompareData, release: PointRelease) -> Any:
    counts: Any = data.data
    return release.tree.sums(counts.column, counts.row, counts.count).astype(np.int64)


def _trip_maps(data: CompareData, releases: dict[str, Any], link: bool) -> None:
    """Show releases of trips; the arguments are those of `_point_maps`."""
    trips: Any = data.data
    regions: Regions = trips.regions
    left, right = st.columns([3, 2], vertical_alignment="center")
    shown = _shown_control(left)
    level = _level_control(right, regions)
    if not has_geometry(regions, level):
        _show_matrices(releases, level, data.unit)
    else:
        _trip_canvas(data, level, shown, releases, link)


def _shown_control(column: Any) -> str:
    """Ask what the maps show: the same choices for points and for trips."""
    key = "compare shown"
    show_value(key, COMPARE.config().shown)
    keep = _keep("shown", key)
    return str(column.segmented_control("Map", SHOWN, key=key, required=True, label_visibility="collapsed", on_change=keep))


def _zoom_control(column: Any, finest: int) -> int:
    """Ask for the zoom level of the maps of points."""
    zoom, key = COMPARE.config().zoom, f"compare zoom {finest}"
    show_value(key, min(USUAL_ZOOM if zoom is None else zoom, finest))
    return int(column.slider("Zoom level", 0, finest, key=key, help=_ZOOM, on_change=_keep("zoom", key)))


def _level_control(column: Any, regions: Regions, easy: int = EASY_TO_SEE) -> int:
    """Ask for the level of the maps of trips or areas; without one of these regions, the finest with at most `easy` regions is shown."""
    numbers, level, key = range(1, regions.depth + 1), COMPARE.config().level, f"compare level {' '.join(regions.levels)}"
    if level not in numbers:
        level = max((number for number in numbers if regions.size(number) <= easy), default=1)
    show_value(key, level)
    chosen = column.segmented_control(
        "Level",
        numbers,
        key=key,
        required=True,
        format_func=lambda number: markdown(regions.levels[number - 1]),
        label_visibility="collapsed",
        on_change=_keep("level", key),
    )
    return int(chosen)


def _trip_canvas(data: CompareData, level: int, shown: str, releases: dict[str, Any], link: bool) -> None:
    """Show releases of trips, and the truth beside them if there are at most three, in one canvas with one camera."""
    trips: Any = data.data
    truth = evaluate_trips(next(iter(releases.values())), trips).true_level(level)
    view = TripsMapSettings(level=level, shown=shown, top=FEWER_ARCS, unit=data.unit, dark=is_dark())
    view = replace(view, tops=merge_tops([choose_public_tops(release, truth, view) for release in releases.values()]))
    drawings = {title: draw_trips(release, view, truth) for title, release in releases.items()}
    names = {title: str(place) for place, title in enumerate(releases)}
    made = [_name_first(make_pane(drawing, areas=names[title], about=title)) for title, drawing in drawings.items()]
    if shown != TRUE and len(made) < MOST_PICKED:
        first = next(iter(releases.values()))
        made.insert(0, make_pane(draw_trips(first, replace(view, shown=TRUE), truth), areas="0", about=""))
    areas: dict[str, Areas] = {}
    for title, drawing in drawings.items():
        areas |= areas_of(drawing, names[title])
    bounds, opens = bounds_of(next(iter(releases.values()))), opening(COMPARE, (trips.regions, trips.ends))
    scene = Scene(
        bounds=bounds,
        areas=areas,
        panes=tuple(made),
        description="; ".join(f"{pane.title} {pane.about}" for pane in made),
        dark=is_dark(),
        height=CANVAS_HEIGHT if len(made) <= 2 else 2 * CANVAS_HEIGHT,
        edge=False,
        nothing="No region is here.",
        title=data.title,
        stamp="Simulations with seeded noise, not private.",
        ground=ground_in(bounds),
        places=names_of_dots(next(iter(drawings.values()))) or names_in(bounds),
        camera=opens.camera,
        visit=opens.visit,
        link=link,
        streets=streets_wanted(_STREETS),
    )
    keep = partial(keep_camera, COMPARE)
    panes(scene, key="compare trips canvas", on_camera=keep)
    streets_switch(_STREETS)


def _show_matrices(releases: dict[str, Any], level: int, unit: str) -> None:
    """Show releases between regions without geometry."""
    for column, (title, release) in zip(_map_columns(len(releases)), releases.items(), strict=True):
        with column:
            st.markdown(f"**{markdown(title)}**")
            show_chart(matrix_chart(release, level, unit))


def _show_area_maps(data: CompareData, releases: dict[str, Any], link: bool) -> None:
    """Show releases of areas, and the truth beside them if there are at most three; the arguments are those of `_point_maps`."""
    areas: Any = data.data
    left, right = st.columns([3, 2], vertical_alignment="center")
    shown = _shown_control(left)
    level = _level_control(right, areas.regions, AREAS_EASY_TO_SEE)
    on_map = _on_map(areas.regions)
    if on_map.shapes(level) is None:
        st.caption("These regions have neither outlines nor coordinates: there is no map of them.")
        return
    truth = areas.level_counts()[level]
    view = AreasMapSettings(level=level, shown=shown, unit=data.unit, dark=is_dark())
    tops = [choose_area_tops(release, view, truth) for release in releases.values()]
    view = replace(view, tops=replace(tops[0], error=max(top.error for top in tops)))
    drawings = {title: draw_areas(release, on_map, view, truth) for title, release in releases.items()}
    names = {title: str(place) for place, title in enumerate(releases)}
    made = [_name_first(make_area_pane(drawing, areas=names[title], about=title)) for title, drawing in drawings.items()]
    if shown != TRUE and len(made) < MOST_PICKED:
        first = next(iter(releases.values()))
        made.insert(0, make_area_pane(draw_areas(first, on_map, replace(view, shown=TRUE), truth), areas="0", about=""))
    opens = opening(COMPARE, areas.regions)
    scene = Scene(
        bounds=on_map.bounds,
        areas={names[title]: area_texts_of(drawing) for title, drawing in drawings.items()},
        panes=tuple(made),
        description="; ".join(f"{pane.title} {pane.about}" for pane in made),
        dark=is_dark(),
        height=CANVAS_HEIGHT if len(made) <= 2 else 2 * CANVAS_HEIGHT,
        edge=False,
        nothing="No region is here.",
        title=data.title,
        stamp="Simulations with seeded noise, not private.",
        ground=ground_in(on_map.bounds),
        places=names_in(on_map.bounds),
        camera=opens.camera,
        visit=opens.visit,
        link=link,
        streets=streets_wanted(_STREETS),
    )
    keep = partial(keep_camera, COMPARE)
    panes(scene, key="compare areas canvas", on_camera=keep)
    streets_switch(_STREETS)


def _on_map(regions: Regions) -> RegionsOnMap:
    """Return where the regions of a study lie, as prepared before in this session."""
    known: RegionsOnMap | None = st.session_state.get("compare regions on map")
    if known is None or known.regions is not regions:
        known = st.session_state["compare regions on map"] = RegionsOnMap(regions)
    return known
