"""The Compare page: it runs a study of mechanisms on public data in the background, and shows the results.

A line across the chart of the study is the error that is wanted: from each curve it reads the epsilon that reaches it. The tabs under the
chart show releases on the map, errors by level, size and part, times, and the table of all runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.components.code import OF_STUDY, show_code
from dpviz.app.components.fields import Field, in_range, show_lock, start_checks
from dpviz.app.components.panes import load_deck
from dpviz.app.components.target_line import target_line
from dpviz.app.components.words import number_of, show_chart, show_table
from dpviz.app.jobs.job import DONE, FAILED, STOPPED, WAITING
from dpviz.app.jobs.study import StudyJob, table_of
from dpviz.app.modes.header import forget_button, show_forgotten
from dpviz.app.pages.compare.answer import (
    describe_answer,
    describe_contrasts,
    describe_target,
    equal_epsilons,
    list_contrasts,
    shown_picks,
    target_epsilons,
    usual_target,
)
from dpviz.app.pages.compare.controls import ask_for_own_data, compare_data, study_controls
from dpviz.app.pages.compare.earlier import (
    WANTED,
    find_again,
    has_earlier_rows,
    is_first_look,
    load_controls,
    name_shown_study,
    remember_study,
    show_first_look,
    start_study,
    stop_study,
    table_with_link,
)
from dpviz.app.pages.compare.figures import (
    describe_accounting,
    figure_about,
    figure_column,
    figure_controls,
    figure_title,
    figure_unit,
    figures_of,
    shown_figure,
    shown_workload,
    size_words,
    workload_words,
)
from dpviz.app.pages.compare.kinds import Compared, compared_of
from dpviz.app.pages.compare.looks import keep_looks, looks_of
from dpviz.app.pages.compare.maps import side_by_side
from dpviz.app.pages.compare.state import (
    COMPARE,
    LARGEST_TARGET,
    MOST_PICKED,
    OWN,
    CompareData,
    Pick,
    changed_parts,
    is_current,
    job,
    leave_out_by_mask,
    picks,
    possible_picks,
    settle_pick,
    still_public,
    study_config_of,
    study_of,
)
from dpviz.app.server.class_mode import is_class
from dpviz.app.session.cached import keeper
from dpviz.app.session.ledger import record_public_look
from dpviz.app.session.widgets import accept_presses, serve_press, show_error, show_refusal, show_refused_link
from dpviz.app.state.readers import list_words
from dpviz.errors import DpvizError, SettingError
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import csv_text, frontier, summary
from dpviz.mechanisms.base import AnyMechanism
from dpviz.publishing.code import write_study_python
from dpviz.publishing.study_config import study_to_toml
from dpviz.view.escape import html, markdown
from dpviz.view.study_charts import (
    PARTS,
    PICKED,
    Target,
    choose_band,
    ends_with_target,
    error_by_epsilon,
    legend_height,
    lines_with_spread,
    parts_by_label,
    seconds_by_label,
    tiny_means_note,
)
from dpviz.view.study_figures import FIGURES

TICK = 1.0  # seconds between two refreshes of a running study
FIRST_ROWS = 1.2  # seconds that a start waits for the first rows, so that the page shows its chart at once
CHART = "compare chart"
CONFIG_SHOWN = "compare seen"  # key of the configuration that the whole page last showed; a fragment that finds another one runs the page
_STYLE = (  # no fading while a study runs; the buttons of the chart lie in its own upper corner, not over *Stop*; a tab keeps its place
    "<style>.st-key-study [data-stale='true'] { opacity: 1 !important; transition: none !important; }"
    ".st-key-study [data-testid='stElementToolbar'] { top: 0 !important; }"
    ".st-key-results [role='tabpanel'] { min-height: calc(100vh - 7rem); }</style>"  # else a tab without its content yet lets the page jump
)
_GREY = "<style>.st-key-results { filter: grayscale(1); opacity: 0.8; }</style>"
_STATE_WORDS = {"stopping": "Stopping", "stopped": "Stopped", "done": "Done", "failed": "Failed"}
TABS = MAPS, LEVELS, SIZES, PARTS_TAB, TIME, TABLE = (
    "On the map",
    "By level",
    "By size",
    "Parts of the error",
    "Time",
    "Table",
)
HEIGHT, HEIGHT_ABOVE = 340, 260  # of charts in the tabs, and of the one above them
ABOUT = (
    "Mechanisms on samples, or on data that are declared public. Every release is a simulation with seeded noise, and errors are measured"
    " against the truth. Nothing is spent, and no private data can be chosen here."
)
NO_STUDY = "In grey: what is chosen on the left makes no study yet, and this one was made before."
CONTRASTS = "A method without ε is a contrast: its error is the same at every ε, and no ε bounds what it reveals."
TARGET_ABOUT = (
    "The dashed line of the chart, which can be dragged, too. The ε from which on each configuration reaches it are read from its line"
    " between the ε of the study."
)
NO_FIGURE = "These runs have no such figure: they were made before it was measured. Choose another error, or start the study again."
WAIT = "Another study of this class is running: this one begins when it has ended."
COLUMNS = {
    "label": "Configuration",
    "settings": "Settings",
    "epsilon": "ε",
    "delta": "δ",
    "runs": "Runs",
    "mean": "Mean",
    "low": "95 % from",
    "high": "95 % to",
    "stddev": "Standard deviation",
    "p10": "10 % under",
    "p90": "90 % under",
    "least": "Least",
    "most": "Largest",
}


def compare_page() -> None:
    """Show the page."""
    if show_forgotten():
        return
    load_deck()
    show_refused_link(COMPARE.refused)
    first_row = st.container()  # the button is beside what it changes, on a phone, too, where the settings are in a menu
    with st.sidebar:
        data = _sidebar(first_row)
        if not is_class():
            forget_button("compare")
    name_shown_study()
    COMPARE.write_address()
    st.session_state[CONFIG_SHOWN] = COMPARE.config()
    ask_for_own_data()
    study_job = job()
    if study_job is not None:
        keeper().take(study_job)  # once more after the connection was lost for a moment, when the session let go of it
    if study_job is None:
        _show_introduction(data)
    elif still_public(study_job):
        _show_results(study_job, NO_STUDY if data is None else _describe_change(study_job, data))
    else:
        study_job.stop(wait=False)
        config, data = study_job.of.config
        st.info(
            f"The study of {markdown(data.title)} is not shown any more: these data are no longer open in Teach as public ones."
            f" Open them there on the {config.kind} page to see it again, or start another study."
        )
    accept_presses("compare")


def _sidebar(first_row: DeltaGenerator) -> CompareData | None:
    """Show the controls; in the first row, the button that starts or resumes the study. Return the data; None if they make no study."""
    start_checks()
    data = None
    try:
        data = compare_data()
    except DpvizError as error:
        show_error(str(error))
    study_controls()
    study: Study | None = None
    if data is not None:
        try:
            study = study_of(data, COMPARE.config())
            keep_looks(study)
        except DpvizError as error:
            show_error(str(error))
            st.button("Back to the usual mechanisms", on_click=lambda: COMPARE.change(mechanisms=(), settings={}))
    if study is not None and data is not None:
        find_again(study, data)
        show_first_look(study, data)
    with first_row:
        _start_button(study, data)
    load_controls(study)
    return data if study is not None else None


def _start_button(study: Study | None, data: CompareData | None) -> None:
    study_job = job()
    state = None if study_job is None else study_job.state
    is_chosen = study_job is not None and is_current(study_job, data)
    is_done = is_chosen and state == DONE
    label, about = "Start the study", ""
    if study is not None:
        parts = f"{number_of(len(study.mechanisms), 'configuration')} x {len(study.epsilons)} ε x {number_of(study.repeats, 'repeat')}"
        about = f"{number_of(len(study), 'release')}: {parts}.{_describe_left_out(data)}"
        is_begun = state in (STOPPED, FAILED) and data is not None and has_earlier_rows(study, data)
        label = "Resume the study" if is_begun and study_job is not None and not is_first_look(study_job) else label
    if is_done:
        about += " All of them are made. Another seed draws new noise."
    is_locked, is_running = show_lock(), study_job is not None and not study_job.has_ended
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button(label, type="primary", disabled=is_locked or study is None or is_running or is_done, key="draw")
        if study is not None and data is not None and (config := study_config_of(study, data, COMPARE.config())) is not None:
            toml: str | None = None
            with suppress(SettingError):  # a value that TOML cannot say
                toml = study_to_toml(config)
            show_code(write_study_python(config), toml, note=OF_STUDY)
        if about:
            st.caption(about, width="content")
    is_shown = is_chosen and (is_done or is_running)
    wanted = st.session_state.pop(WANTED, False) and not is_shown
    if (pressed or wanted) and not is_locked and study is not None and data is not None:
        serve_press("compare", lambda: _start_study(study, data), "Starting ...")
    show_refusal("compare")


def _describe_left_out(data: CompareData | None) -> str:
    """Write which of the chosen mechanisms take no mask, and so are not in the study; "" if all are."""
    titles = () if data is None else leave_out_by_mask(data, COMPARE.config())[1]
    return f" :orange[Left out, for taking no study area: {markdown(list_words(titles))}.]" if titles else ""


def _start_study(study: Study, data: CompareData) -> None:
    """Start a study in the background; earlier rows that belong to the same runs are kept, and so is what the maps show.

    What was picked for the new study, as a link may do, comes first. Maps that lack configurations, since their releases were not made
    yet, are chosen anew at the end.
    """
    before = job()
    on_maps = [] if before is None else shown_picks(before)
    if before is not None and len(on_maps) < min(MOST_PICKED - 1, len(before.of.study.mechanisms)):
        on_maps = []
    remember_study(study, data)
    started = start_study(study, data, FIRST_ROWS)
    possible = set(possible_picks(started))
    if not picks(started) and (kept := tuple(each for each in on_maps if each in possible)):
        COMPARE.change(picked=kept)


def _show_introduction(data: CompareData | None) -> None:
    """Show what to do first."""
    st.markdown("##### Which mechanism loses least?", help=ABOUT)
    st.info("Choose data, mechanisms and budgets on the left, and press *Start the study*. Each is drawn many times, with new noise.")
    st.caption(
        "You will see error against ε with its spread over the repeats, the ε that reaches the error you want, the frontier of the best,"
        " releases of up to four configurations on the map, errors by zoom level and by size, the parts of the errors, the time that"
        " releases take, and the table."
    )
    if data is not None:
        _show_accounting(leave_out_by_mask(data, COMPARE.config())[0].build(), COMPARE.config().gaussian(), data)


def _describe_change(study_job: StudyJob, data: CompareData) -> str:
    """Say in Markdown why a study is not the one that is chosen on the left; "" if it is."""
    if is_current(study_job, data):
        return ""
    config, of_study = study_job.of.config
    parts = [f"another {name}" if name in ("seed", "δ") else f"other {name}" for name in changed_parts(config, COMPARE.config())]
    if data.key != of_study.key or not parts:
        parts.insert(0, f"other data, *{markdown(of_study.title)}*")
    return f"In grey: this study has {list_words(parts)}. The button above makes the one that is chosen on the left."


def _show_results(study_job: StudyJob, note: str) -> None:
    """Show the chart, which follows a running study, and the tabs under it; `note` says why it is not the study on the left, or is ""."""
    config, data = study_job.of.config
    if not record_public_look(data):
        return
    with st.container():  # always there, so that what follows keeps its place in the page
        if note:
            st.markdown(f":orange[{note}]")
        if config.source == OWN:
            st.caption("This study is kept for this session only: download study.csv under *Table*, and load it again on the left.")
        st.html(_STYLE + (_GREY if note else ""))
    with st.container(key="results"):
        was_running, table = not study_job.has_ended, table_of(study_job)
        with st.container(key="study", gap="xsmall"):
            st.fragment(_show_progress_and_chart, run_every=TICK if was_running else None)(study_job, data, was_running, len(table))
        if len(table):
            compare_tabs(study_job, data, summary(table), lambda: side_by_side(study_job, data))


def _show_progress_and_chart(study_job: StudyJob, data: CompareData, was_running: bool, rows_shown: int) -> None:
    """Show the progress and the chart of a study. The whole page is run again when the first rows arrive and when the study ends.

    Args:
        study_job: the study.
        data: the data of the study.
        was_running: whether the study was running when the whole page was drawn.
        rows_shown: number of rows when the whole page was drawn.
    """
    if (was_running and study_job.has_ended) or (not rows_shown and len(table_of(study_job))):
        st.rerun()
    table, answer = table_of(study_job), st.container()
    *columns, wanted, end = st.columns([3, 3, 2, 2], vertical_alignment="bottom")
    figure, workload = figure_controls(study_job.of.study.questions.names(), data, columns)
    with end:
        _show_progress(study_job)
    if not len(table):
        first = WAIT if study_job.state == WAITING else "The first releases are being made ..."
        answer.caption("No release was made yet." if study_job.has_ended else first)
        return
    rows = summary(table[table["workload"] == workload])
    rows = rows[rows["figure"] == figure].reset_index(drop=True)
    if len(rows):
        with wanted:
            target = _ask_target(rows, figure, figure_unit(figure, data, workload))
        with answer:
            _show_answer(study_job, rows, figure, workload, target)
        pick(study_job, _show_chart(rows, figure, workload, study_job, target))
        _show_accounting(study_job.of.study.mechanisms, study_job.of.study.gaussian, data)
    else:
        st.info(NO_FIGURE)
    if COMPARE.config() != st.session_state.get(CONFIG_SHOWN):
        st.rerun()


def _ask_target(rows: pd.DataFrame, figure: str, unit: str) -> Target:
    """Ask for the error that is wanted, and find from which ε on each configuration reaches it."""
    scale, chosen = FIGURES[figure].scale, COMPARE.config().target
    error = usual_target(rows, scale) if chosen is None else chosen
    label = f"Target: at most ({markdown(unit)})"
    check = in_range("The target", 0, LARGEST_TARGET)
    field = Field(key="compare target", label=label, value=error, problem=check, use=lambda typed: COMPARE.change(target=typed))
    field.show(st.number_input, value=None, step=None, format="%.6g", help=TARGET_ABOUT)
    return Target(error=error, epsilons=target_epsilons(rows, error, scale))


def _show_answer(study_job: StudyJob, rows: pd.DataFrame, figure: str, workload: str, target: Target) -> None:
    """Say in sentences which configuration loses least, and which ε the target takes; while the study runs, that this may change."""
    data: CompareData = study_job.of.config[1]
    unit, scale = figure_unit(figure, data, workload), FIGURES[figure].scale
    answer = describe_answer(rows, unit, workload_words(workload, data))
    looks_first = study_job.state == STOPPED and is_first_look(study_job)
    so_far = "" if study_job.state == DONE else ", a first look" if looks_first else ", so far"
    st.markdown(f"{markdown(data.title)}{so_far}: {answer}", help=ABOUT)
    st.markdown(describe_target(rows, target, unit))
    if contrasts := describe_contrasts(rows, list_contrasts(study_job), scale):
        st.markdown(f"{contrasts} {CONTRASTS}")


def _show_chart(rows: pd.DataFrame, figure: str, workload: str, study_job: StudyJob, target: Target) -> Pick | None:
    """Show the figure against epsilon, and its definition; return the configuration and epsilon of a point that was clicked."""
    data: CompareData = study_job.of.config[1]
    scale, title = FIGURES[figure].scale, figure_title(figure, data, workload)
    looks, where = looks_of(study_job), workload_words(workload, data)
    options: dict[str, Any] = {"height": HEIGHT_ABOVE, "scale": scale, "looks": looks, "target": target}
    chart = error_by_epsilon(rows, frontier(rows), title, where, **options)
    with st.container(key="chart", gap=None):
        ends = ends_with_target(rows, target.error, scale)
        unit = figure_unit(figure, data, workload)
        moved: dict[str, Any] = {"key": "compare line", "scale": scale, "on_move": lambda error: COMPARE.change(target=error)}
        target_line(".st-key-chart", target.error, ends, unit, **moved)
        chart_state = st.altair_chart(chart, key=CHART, width="stretch", on_select="rerun", selection_mode=PICKED)
    about = figure_about(figure, data, workload)
    st.html(
        f'<div class="dpviz-note">{html(about)}{" " if about else ""}Bands: {choose_band(rows).about}. In grey the frontier: no'
        " private configuration has a smaller error at the same or a smaller ε. The dashed line is the target; drag it. Click a point to"
        f" see that release.{html(tiny_means_note(rows, scale))}</div>"
    )
    return _clicked_point(chart_state)


def _show_accounting(mechanisms: dict[str, AnyMechanism], gaussian: tuple[str, ...], data: CompareData) -> None:
    if text := describe_accounting(mechanisms, gaussian, data):
        st.caption(markdown(text))


def _show_progress(study_job: StudyJob) -> None:
    state = study_job.state
    words = "A first look, made" if state == STOPPED and is_first_look(study_job) else _STATE_WORDS.get(state, "Running")
    text = f"{words}: {study_job.made:,} of {number_of(study_job.total, 'release')}"
    with st.container(horizontal=True, vertical_alignment="bottom", key="progress"):
        st.progress(study_job.share, text)
        is_stopped = study_job.is_running and st.button("Stop", key="stop study")
    if is_stopped:
        with st.spinner("Stopping ..."):
            stop_study(study_job)
        st.rerun()
    if state == FAILED:
        show_error(study_job.error)


def _clicked_point(chart_state: Any) -> Pick | None:
    """Return the configuration and epsilon of the point that was clicked; None if no new point was clicked."""
    selection = getattr(chart_state, "selection", None) or {}
    points = selection.get(PICKED) or []
    point = points[0] if isinstance(points, list) and points else {}
    clicked = (point.get("label"), point.get("epsilon"))
    if clicked == st.session_state.get("compare clicked"):
        return None
    st.session_state["compare clicked"] = clicked
    return clicked if isinstance(clicked[0], str) and isinstance(clicked[1], int | float) else None  # type: ignore[return-value]


def pick(study_job: StudyJob, clicked: Pick | None) -> None:
    """Add a configuration to those shown side by side; if four are shown already, the first of them is removed."""
    clicked = None if clicked is None else settle_pick(study_job, clicked)
    if clicked not in set(possible_picks(study_job)):
        return
    others = tuple(other for other in shown_picks(study_job) if other != clicked)
    COMPARE.change(picked=(*others, clicked)[-(MOST_PICKED - 1) :])  # the truth keeps its place


def compare_tabs(study_job: StudyJob, data: CompareData, rows: pd.DataFrame, maps: Callable[[], None]) -> None:
    """Show the tabs; only the open one is computed.

    Args:
        study_job: the study.
        data: the data of the study.
        rows: the summary of the rows so far.
        maps: shows the first tab.
    """
    show_tab: dict[str, Callable[[], None]] = {
        MAPS: maps,
        LEVELS: lambda: _show_by_level(study_job, rows),
        SIZES: lambda: _show_by_size(study_job, rows),
        PARTS_TAB: lambda: _show_parts(study_job, data, rows),
        TIME: lambda: _show_times(study_job, rows),
        TABLE: lambda: _show_table(study_job, data, rows),
    }
    names = tabs_of(compared_of(data))
    if st.session_state.get("compare tab") not in (None, *names):
        st.session_state["compare tab"] = names[0]
    for tab, name in zip(st.tabs(names, key="compare tab", on_change="rerun"), names, strict=True):
        if tab.open:
            with tab:
                show_tab[name]()


def tabs_of(compared: Compared) -> list[str]:
    """Return the tabs of a kind of data: *By size* if its studies ask by size, *Parts of the error* if it has several."""
    left_out = {SIZES: "sizes" not in compared.workloads, PARTS_TAB: not compared.parts_about}
    return [name for name in TABS if not left_out.get(name)]


def _epsilon_control(rows: pd.DataFrame, key: str) -> float:
    """Return one of the study's epsilons; ask which if there are several."""
    values = sorted(rows["epsilon"].unique().tolist())
    if len(values) == 1:
        return float(values[0])
    return float(st.select_slider("ε", values, values[len(values) // 2], key=f"compare epsilon {key} {values}", format_func="{:g}".format))


def _show_by_level(study_job: StudyJob, rows: pd.DataFrame) -> None:
    """Show the chosen error measure by zoom level (points) or by geographic level (trips)."""
    data: CompareData = study_job.of.config[1]
    epsilon, figure = _epsilon_control(rows, "level"), shown_figure(data)
    rows = rows[(rows["epsilon"] == epsilon) & (rows["figure"] == figure)]
    rows, title, by, about = compared_of(data).by_level(rows)
    _show_lines(rows, title, figure, study_job, f"Error by {by}, ε = {epsilon:g}")
    st.caption(about)


def _show_by_size(study_job: StudyJob, rows: pd.DataFrame) -> None:
    """Show the chosen error measure by the true count."""
    data: CompareData = study_job.of.config[1]
    epsilon, figure = _epsilon_control(rows, "size"), shown_figure(data)
    rows = rows[(rows["epsilon"] == epsilon) & (rows["figure"] == figure) & rows["workload"].str.startswith("size ")]
    rows = rows.assign(x=rows["workload"].map(lambda name: int(name.removeprefix("size ").split("-")[0])))
    title = f"true count of the {compared_of(data).one_place}, lower end of the group ({data.unit})"
    _show_lines(rows, title, figure, study_job, f"Error by true count, ε = {epsilon:g}")
    groups = ", ".join(size_words(name) for name in rows["workload"].unique())
    st.caption(f"Groups of true counts: {groups}. The same noise weighs little on large counts and buries small ones.")


def _show_lines(rows: pd.DataFrame, title: str, figure: str, study_job: StudyJob, heading: str) -> None:
    """Show a figure against the column "x", and its definition.

    Args:
        rows: of the summary, for this figure, with a column "x".
        title: of the x axis.
        figure: key of the figure.
        study_job: the study.
        heading: title of the chart.
    """
    data: CompareData = study_job.of.config[1]
    if not len(rows):
        st.info(NO_FIGURE)
        return
    band = choose_band(rows)
    names = {"label": "configuration", "x": title, "mean": figure_title(figure, data), band.low: "from", band.high: "to", "runs": "runs"}
    height, scale = legend_height(rows["label"].unique().tolist(), HEIGHT), FIGURES[figure].scale
    columns, ends = ("x", "label", "mean", "stddev"), (band.low, band.high)
    rows = rows.reset_index(drop=True)
    show_chart(lines_with_spread(rows, columns, names, heading, height, scale=scale, looks=looks_of(study_job), ends=ends))
    st.caption(markdown(f"{figure_about(figure, data)}{tiny_means_note(rows, scale)} Lines up and down: {band.about}.".strip()))


def _show_parts(study_job: StudyJob, data: CompareData, rows: pd.DataFrame) -> None:
    epsilon = _epsilon_control(rows, "parts")
    names = study_job.of.study.questions.names()
    workload = shown_workload(names, shown_figure(data))
    rows = rows[(rows["epsilon"] == epsilon) & (rows["workload"] == workload) & rows["figure"].isin(PARTS)].reset_index(drop=True)
    chart = parts_by_label(rows, epsilon, data.unit, workload_words(workload, data), looks=looks_of(study_job))
    show_chart(chart)
    st.caption(f"{compared_of(data).parts_about} Lines: {choose_band(rows).about}.")


def _show_times(study_job: StudyJob, rows: pd.DataFrame) -> None:
    epsilon = _epsilon_control(rows, "time")
    times = rows[(rows["figure"] == "seconds") & (rows["epsilon"] == epsilon)]
    times = times[times["workload"] == times["workload"].iloc[0]].reset_index(drop=True)
    show_chart(seconds_by_label(times, epsilon, looks=looks_of(study_job)))
    st.caption(f"Seconds of the mechanism only, while other releases ran at the same time; lines: {choose_band(times).about}.")


def _show_table(study_job: StudyJob, data: CompareData, rows: pd.DataFrame) -> None:
    """Show the summary of the chosen workload and figure, and means of further figures; offer all rows and the summary as files."""
    figure = shown_figure(data)
    workload = shown_workload(study_job.of.study.questions.names(), figure)
    further = [name for name in figures_of(data) if FIGURES[name].families and name != figure]
    table = summary_table(rows[rows["workload"] == workload], figure, further)
    of_figure = rows[(rows["workload"] == workload) & (rows["figure"] == figure)]
    equal = equal_epsilons(of_figure, list_contrasts(study_job), FIGURES[figure].scale)
    if equal:
        best = next(iter(equal.values()))[0]
        found = table["label"].map({label: epsilon for label, (_, epsilon, _) in equal.items()})
        table.insert(len(COLUMNS), f"ε at which {best} is as useful", found)
    accounting = table["label"].map({label: study_job.of.study.accounting(label) for label in study_job.of.study.mechanisms})
    if accounting.any():
        table.insert(list(table.columns).index("delta") + 1, "Accounting", accounting)
    if len(table):
        table = table.rename(columns=COLUMNS | {name: figure_column(name, data, workload) for name in further})
        show_table(table, column_config={"δ": st.column_config.NumberColumn(format="%.3g")})
    else:
        st.info(NO_FIGURE)
    about = " ".join(filter(None, (figure_about(name, data, workload) for name in (figure, *further))))
    st.caption(
        f"{markdown(figure_title(figure, data, workload))}; {markdown(workload_words(workload, data))}. 95 %: confidence"
        " interval of the mean, by Student's t over the repeats. 10 % under and 90 % under: this share of the repeats lies below;"
        " with few repeats look at the least and the largest."
        f" Columns after these are means of further figures. {markdown(about)} The files hold all workloads and"
        " errors; rows with the same fingerprint in the column study can be joined, and a study can be resumed from them:"
        " *Load a study* on the left takes study.csv."
    )
    left, right, _ = st.columns([2, 2, 3])
    for place, text, key, make in (
        (left, "Download every run (CSV)", "study rows", lambda: csv_text(table_with_link(study_job))),
        (right, "Download the summary (CSV)", "study summary", lambda: csv_text(rows)),
    ):
        name = "study.csv" if place is left else "summary.csv"
        place.download_button(text, make, name, "text/csv", on_click="ignore", key=key, width="stretch")


def summary_table(rows: pd.DataFrame, figure: str, further: list[str]) -> pd.DataFrame:
    """Return the columns of `COLUMNS` for one figure, and the means of further figures.

    Args:
        rows: of the summary, for one workload.
        figure: key of the figure.
        further: keys of the further figures; those that no row has are left out.

    Returns:
        One row per configuration and epsilon.
    """
    table = rows[rows["figure"] == figure]
    table = table.assign(settings=table["settings"].replace("{}", "defaults"))[list(COLUMNS)]
    means = rows.pivot_table(index=["label", "epsilon"], columns="figure", values="mean")
    return table.join(means[[name for name in further if name in means]], on=["label", "epsilon"])
