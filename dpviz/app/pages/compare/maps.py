"""Small multiples: the releases of up to four configurations on maps, with one zoom control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.panes import panes
from dpviz.app.components.streets import streets_switch, streets_wanted
from dpviz.app.jobs.study import StudyJob, release_of
from dpviz.app.pages.compare.answer import shown_picks
from dpviz.app.pages.compare.kinds import compared_of
from dpviz.app.pages.compare.looks import looks_of
from dpviz.app.pages.compare.state import COMPARE, MOST_PICKED, CompareData, Pick, describe_pick, is_in_address, job, possible_picks
from dpviz.app.session.camera import keep_camera, opening
from dpviz.app.session.widgets import is_dark, show_error, widget_for
from dpviz.errors import DpvizError
from dpviz.evaluation.study import Run
from dpviz.space.regions import Regions
from dpviz.view.canvas import Pane, Scene
from dpviz.view.escape import markdown
from dpviz.view.points_canvas import TRUE
from dpviz.view.points_map import SHOWN

CANVAS_HEIGHT = 430
STREETS, NOTHING = "compare street map", "No region is here."


def side_by_side(study_job: StudyJob, data: CompareData) -> None:
    """Show the choice of configurations, and their maps."""
    picked = shown_picks(study_job)
    if not picked:
        st.info("Click a point of the chart, or choose configurations here: their releases are repeated from their seeds.")
        _pick_controls(study_job, picked)
        return
    repeat = min(COMPARE.config().repeat, study_job.of.study.repeats)
    runs = {(run.label, float(run.budget.epsilon)): run for run in study_job.of.study.runs() if run.repeat == repeat}
    releases = _repeat_releases(study_job, {pick: runs[pick] for pick in picked})
    if releases:
        with st.container(key="multiples", gap="xsmall"):
            compared_of(data).show_maps(data, releases, is_in_address(study_job))
    left, right = st.columns([6, 1])
    with left:
        _pick_controls(study_job, picked)
    with right:
        if study_job.of.study.repeats > 1:
            about, key = "Each repeat has noise of its own.", f"compare repeat {study_job.of.study.repeats}"
            st.slider(
                "Repeat", 1, study_job.of.study.repeats, help=about, **widget_for(key, repeat, lambda value: COMPARE.change(repeat=value))
            )
    st.caption("Simulations with seeded noise: the same releases that the study measured, repeated from their seeds.")


def _repeat_releases(study_job: StudyJob, runs: dict[Pick, Run]) -> dict[str, Any]:
    """Make the releases of some runs again from their seeds, by their names. A run that failed fails again, and its error is shown."""
    releases = {}
    for pick, run in runs.items():
        title = describe_pick(study_job, pick)
        try:
            releases[title] = release_of(study_job, run)
        except DpvizError as error:
            show_error(f"{title}: {error}")
    return releases


def _pick_controls(study_job: StudyJob, picked: list[Pick]) -> None:
    """Ask which releases are shown; the chosen ones are those that the maps show already."""
    options = list(possible_picks(study_job))
    st.session_state["compare picked"] = [options.index(pick) for pick in picked]
    st.multiselect(
        "Side by side, up to four",
        range(len(options)),
        key="compare picked",
        max_selections=MOST_PICKED,
        format_func=lambda index: describe_pick(study_job, options[index]),
        on_change=lambda: COMPARE.change(picked=tuple(options[index] for index in st.session_state["compare picked"])),
    )


def show_canvas(key: str, data: CompareData, made: list[Pane], frame: object, *, on_earth: bool = True, **parts: Any) -> None:
    """Show maps with one camera, and the switch of their street map.

    Args:
        key: of the canvas.
        data: the data of the study.
        made: the maps.
        frame: the public frame of the maps.
        on_earth: whether they lie on the Earth.
        parts: what differs between points, trips and areas, and whether a `link` to the maps can be copied.
    """
    opens, study_job = opening(COMPARE, frame), job()
    marks = {} if study_job is None else colors_of_picks(study_job)
    scene = Scene(
        panes=tuple(replace(pane, mark=marks.get(pane.title, "")) for pane in made),
        description="; ".join(f"{pane.title} {pane.about}" for pane in made),
        dark=is_dark(),
        height=CANVAS_HEIGHT if len(made) <= 2 else 2 * CANVAS_HEIGHT,
        title=data.title,
        stamp="Simulations with seeded noise, not private.",
        camera=opens.camera,
        visit=opens.visit,
        streets=streets_wanted(STREETS),
        **parts,
    )
    panes(scene, key=key, on_camera=partial(keep_camera, COMPARE))
    streets_switch(STREETS, on_earth=on_earth)


def colors_of_picks(study_job: StudyJob) -> dict[str, str]:
    """Return the colours that the releases on the maps have in the charts, by their titles."""
    looks = looks_of(study_job)
    return {describe_pick(study_job, pick): looks[pick[0]].color for pick in shown_picks(study_job)}


def name_first(pane: Pane) -> Pane:
    """Return a pane whose title is the configuration, since that is what differs; of the truth there is only one."""
    return replace(pane, title=pane.about, about=pane.title) if pane.about else pane


def choose_shown(column: Any) -> str:
    """Ask what the maps show: the same choices for all kinds of data."""
    shown = COMPARE.widget("shown", "compare shown")
    return str(column.segmented_control("Map", SHOWN, required=True, label_visibility="collapsed", **shown))


def choose_level(column: Any, regions: Regions, easy: int) -> int:
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


def draw_regions(
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
    made = [name_first(make(drawing, areas=name, about=title)) for (name, drawing), title in named]
    if shown != TRUE and len(made) < MOST_PICKED:
        made.insert(0, make(draw(next(iter(releases.values())), TRUE), areas="0", about=""))
    return made, drawings
