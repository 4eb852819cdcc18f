"""The Compare page: a study of mechanisms on public data, made in the background while the page stays alive."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.cached import keeper
from dpviz.app.compare_controls import compare_data, study_controls
from dpviz.app.compare_inverse import inverse_block
from dpviz.app.compare_maps import side_by_side
from dpviz.app.compare_state import COMPARE, JOB, MOST_PICKED, CompareConfig, CompareData, Pick, job, pickable, still_public, study_of
from dpviz.app.compare_tabs import compare_tabs
from dpviz.app.compare_words import usual_workload, workload_words
from dpviz.app.fields import start_checks, stopped
from dpviz.app.forget import forget_button, forgotten
from dpviz.app.ledger import note_teach_look
from dpviz.app.session import refusal, said, serve, settle
from dpviz.app.study_job import DONE, FAILED, RUNNING, STOPPED, StudyJob
from dpviz.errors import DpvizError
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import frontier, summary
from dpviz.view.escape import html, markdown
from dpviz.view.study_charts import FIGURES, PICKED, error_by_epsilon, under_axis

TICK = 1.0  # seconds between looks at a running study
FIRST_ROWS = 1.2  # seconds to wait for them before the page is drawn: with them it has its chart at once
CHART = "compare chart"
SEEN = "compare seen"  # by the last run of the whole page; what only a part of it has changed is shown by another
_STEADY = "<style>.st-key-study [data-stale='true'] { opacity: 1 !important; transition: none !important; }</style>"
_SAID = {"stopped": "Stopped", "done": "Done", "failed": "Failed"}


def compare_page() -> None:
    """Draw the page."""
    if forgotten():
        return
    left, right = st.columns([19, 3], vertical_alignment="center")
    left.caption(
        "**Mechanisms side by side**, on samples or on data that are declared public: every release is a simulation with seeded noise,"
        " and errors are measured against the truth. Nothing is spent, and no private data can be chosen here."
    )
    with right:
        forget_button("compare")
    with st.sidebar:
        data = _left()
    COMPARE.write_address()
    st.session_state[SEEN] = COMPARE.config()
    made = job()
    if made is None:
        _nothing_yet(data)
    elif still_public(made):
        _results(made)
    else:
        _hidden(made)
    settle("compare")


def _left() -> CompareData | None:
    """The controls, and the buttons that start, stop and resume."""
    start_checks()
    data = None
    try:
        data = compare_data()
    except DpvizError as error:
        refusal(str(error))
    study_controls()
    study: Study | None = None
    if data is not None:
        try:
            study = study_of(data)
        except DpvizError as error:
            refusal(str(error))
            st.button("Back to the usual mechanisms", on_click=lambda: COMPARE.change(mechanisms=(), settings={}))
    _buttons(study, data)
    return data if study is not None else None


def _buttons(study: Study | None, data: CompareData | None) -> None:
    made = job()
    state = None if made is None else made.state
    done = made is not None and state == DONE and made.config[0].same_study(COMPARE.config())
    label = "Start the study"
    if study is not None:
        st.caption(f"{len(study):,} releases: {len(study.mechanisms)} configurations x {len(study.epsilons)} ε x {study.repeats} repeats.")
        label = "Resume the study" if state in (STOPPED, FAILED) and _rows_for(study) else label
    if done:
        st.caption("All of them are there. Another seed draws new noise.")
    wrong = stopped()
    pressed = st.button(label, type="primary", width="stretch", disabled=wrong or study is None or state == RUNNING or done, key="draw")
    if pressed and not wrong and study is not None and data is not None:
        serve("compare", lambda: _start(study, data), "Starting ...")
    said("compare")


def _start(study: Study, data: CompareData) -> None:
    """A study in the background; rows of runs that are the same are kept."""
    fresh = StudyJob(study, (COMPARE.config(), data), _rows_for(study))
    keeper().take(fresh)
    st.session_state[JOB] = fresh
    fresh.start(FIRST_ROWS)


def _rows_for(study: Study) -> list[dict[str, Any]]:
    """What the last study made of this one's runs, if it was on the same data with the same seed."""
    made = job()
    return made.rows if made is not None and made.study.mark == study.mark else []


def _nothing_yet(data: CompareData | None) -> None:
    """What to do, and what can be asked without a study."""
    st.markdown("##### Which mechanism loses least?")
    st.info("Choose data, mechanisms and budgets on the left, then press *Start the study*. Each is drawn many times, with new noise.")
    st.caption(
        "What comes: error against ε with its spread over the repeats, the frontier of the best, releases of up to four configurations"
        " on the map, errors by zoom level and by size, what they are made of, the time that releases take, and the table."
    )
    if data is not None:
        st.markdown("##### Which ε is enough?")
        inverse_block(data, COMPARE.config().built())


def _hidden(made: StudyJob) -> None:
    """A study of data that are not open as public ones any more; it is stopped, and its rows are there when they are opened again."""
    made.stop(wait=False)
    how, data = made.config
    st.info(
        f"The study of {markdown(data.title)} is not shown any more: these data are no longer open in Teach as public ones."
        f" Open them there on the {how.kind} page to see it again, or start another study."
    )


def _results(made: StudyJob) -> None:
    """The chart, which follows a running study, and what can be asked about it."""
    how, data = made.config
    if not note_teach_look(data):
        return
    if not how.same_study(COMPARE.config()):
        st.caption(":orange[Data, mechanisms or budgets on the left have changed since this study: press the button to make what is new.]")
    state, table = made.state, made.table()
    st.html(_STEADY)
    with st.container(key="study"):
        st.fragment(_progress_and_chart, run_every=TICK if state == RUNNING else None)(made, data, state, len(table))
    if not len(table):
        return
    compare_tabs(made, data, summary(table), lambda: side_by_side(made, data))


def _progress_and_chart(made: StudyJob, data: CompareData, state: str, seen: int) -> None:
    """What changes while a study runs; the rest of the page follows when the first rows are there, and at the end.

    Args:
        made: the study.
        data: what it compares on.
        state: of the study when the whole page was drawn.
        seen: how many rows there were then.
    """
    if (state == RUNNING and made.state != RUNNING) or (not seen and len(made.table())):
        st.rerun()
    _progress(made, data)
    table = made.table()
    if not len(table):
        st.caption("The first releases are being drawn ..." if made.state == RUNNING else "Nothing was drawn yet.")
        return
    figure, workload = _looks(made)
    rows = summary(table[table["workload"] == workload])
    rows = rows[rows["figure"] == figure].reset_index(drop=True)
    what, about = FIGURES[figure].format(unit=data.unit), workload_words(workload, data)
    chart = error_by_epsilon(rows, frontier(rows), what, about)
    chosen = st.altair_chart(chart, key=CHART, width="stretch", on_select="rerun", selection_mode=PICKED)
    st.html(
        '<div class="dpviz-note">Bands: the middle 80 % of the repeats. Grey behind: the frontier, which no private configuration beats'
        f" with as small an ε. Click a point to see that release.{html(under_axis(rows))}</div>"
    )
    pick(made, _clicked(chosen))
    if COMPARE.config() != st.session_state.get(SEEN):
        st.rerun()


def _progress(made: StudyJob, data: CompareData) -> None:
    state = made.state
    text = f"{_SAID.get(state, 'Running')}: {made.made:,} of {made.total:,} releases, {markdown(data.title)}"
    left, right = st.columns([6, 1], vertical_alignment="center") if state == RUNNING else (st.container(), None)
    left.progress(min(made.made / made.total, 1.0), text)
    if right is not None and right.button("Stop", key="stop study", width="stretch"):
        with st.spinner("Stopping ..."):
            made.stop()
        st.rerun()
    if state == FAILED:
        refusal(made.error)


def _looks(made: StudyJob) -> tuple[str, str]:
    """Which figure of which questions is shown."""
    how: CompareConfig = COMPARE.config()
    names = made.study.questions.names()
    workload = how.workload if how.workload in names else usual_workload(names)
    left, right = st.columns(2)
    st.session_state["compare figure"], st.session_state["compare workload"] = how.figure, workload
    data = made.config[1]
    left.selectbox(
        "Error",
        list(FIGURES),
        key="compare figure",
        format_func=lambda name: FIGURES[name].format(unit=data.unit),
        help="On sparse data a smoothing of 20 is nearly degenerate: releasing zero everywhere does well. Judge by the others.",
        on_change=lambda: COMPARE.change(figure=st.session_state["compare figure"]),
    )
    right.selectbox(
        "Asked",
        names,
        key="compare workload",
        format_func=lambda name: workload_words(name, data),
        on_change=lambda: COMPARE.change(workload=st.session_state["compare workload"]),
    )
    return how.figure, workload


def _clicked(chosen: Any) -> Pick | None:
    """The point that was clicked, if it was not taken already."""
    selection = getattr(chosen, "selection", None) or {}
    found = selection.get(PICKED) or []
    point = found[0] if isinstance(found, list) and found else {}
    clicked = (point.get("label"), point.get("epsilon"))
    if clicked == st.session_state.get("compare clicked"):
        return None
    st.session_state["compare clicked"] = clicked
    return clicked if isinstance(clicked[0], str) and isinstance(clicked[1], int | float) else None  # type: ignore[return-value]


def pick(made: StudyJob, clicked: Pick | None) -> None:
    """Put a configuration beside the others; the one that was picked first goes where four are there."""
    if clicked is None or clicked not in set(pickable(made)):
        return
    others = tuple(each for each in COMPARE.config().picked if each != clicked)
    COMPARE.change(picked=(*others, clicked)[-MOST_PICKED:])
