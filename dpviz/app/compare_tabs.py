"""What stands under the chart of a study: maps, errors by level, size and part, times, the inverse question, the table."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from dpviz.app.compare_inverse import inverse_block
from dpviz.app.compare_state import COMPARE, CompareData
from dpviz.app.compare_words import of_points, size_words, usual_workload, workload_words
from dpviz.app.study_job import StudyJob
from dpviz.cli.compare import csv_text
from dpviz.view.escape import markdown
from dpviz.view.study_charts import FIGURES, PARTS, legend_height, lines_with_spread, parts_by_label, seconds_by_label, under_axis

MAPS, LEVELS, SIZES, PARTS_TAB, TIME, INVERSE, TABLE = (
    "On the map",
    "By level",
    "By size",
    "Parts of the error",
    "Time",
    "Which ε?",
    "Table",
)
NAMES = (MAPS, LEVELS, SIZES, PARTS_TAB, TIME, INVERSE, TABLE)
HEIGHT = 340
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
}


def compare_tabs(made: StudyJob, data: CompareData, rows: pd.DataFrame, maps: Callable[[], None]) -> None:
    """Draw the tabs; only the open one is computed.

    Args:
        made: the study.
        data: what it compares on.
        rows: the summary of what is there so far.
        maps: draws the first tab.
    """
    draws: dict[str, Callable[[], None]] = {
        MAPS: maps,
        LEVELS: lambda: _by_level(data, rows),
        SIZES: lambda: _by_size(data, rows),
        PARTS_TAB: lambda: _parts(made, data, rows),
        TIME: lambda: _time(rows),
        INVERSE: lambda: inverse_block(data, made.study.mechanisms),
        TABLE: lambda: _table(made, data, rows),
    }
    for tab, name in zip(st.tabs(NAMES, key="compare tab", on_change="rerun"), NAMES, strict=True):
        if tab.open:
            with tab:
                draws[name]()


def _epsilon(rows: pd.DataFrame, key: str) -> float:
    """One of the study's budgets."""
    values = sorted(rows["epsilon"].unique().tolist())
    if len(values) == 1:
        return float(values[0])
    return float(st.select_slider("ε", values, values[len(values) // 2], key=f"compare epsilon {key} {values}", format_func="{:g}".format))


def _figure(data: CompareData) -> tuple[str, str]:
    figure = COMPARE.config().figure
    return figure, FIGURES[figure].format(unit=data.unit)


def _by_level(data: CompareData, rows: pd.DataFrame) -> None:
    """The chosen figure by zoom level, or by geographic level."""
    epsilon, (figure, what) = _epsilon(rows, "level"), _figure(data)
    rows = rows[(rows["epsilon"] == epsilon) & (rows["figure"] == figure)]
    if of_points(data):
        rows, title = rows[rows["workload"].str.startswith("zoom ")], "zoom level"
        rows = rows.assign(place=rows["workload"].str.removeprefix("zoom ").astype(int))
    else:
        rows, title = rows[~rows["workload"].str.startswith("size ")], "level of the regions, 1 for the coarsest"
        names = rows["workload"].unique().tolist()
        rows = rows.assign(place=rows["workload"].map({name: place for place, name in enumerate(names, 1)}))
    _lines(rows, title, what, f"Error by {'zoom level' if of_points(data) else 'level'}, ε = {epsilon:g}")
    if of_points(data):
        st.caption("Zoom z cuts the domain into 2^z x 2^z equal blocks; all of them are asked. Lines up and down: one standard deviation.")
    else:
        levels = ", ".join(f"{place} {markdown(name)}" for place, name in enumerate(names, 1))
        st.caption(f"Levels: {levels}. Lines up and down: one standard deviation.")


def _by_size(data: CompareData, rows: pd.DataFrame) -> None:
    """The chosen figure by the true count."""
    epsilon, (figure, what) = _epsilon(rows, "size"), _figure(data)
    rows = rows[(rows["epsilon"] == epsilon) & (rows["figure"] == figure) & rows["workload"].str.startswith("size ")]
    rows = rows.assign(place=rows["workload"].map(lambda name: int(name.removeprefix("size ").split("-")[0])))
    asked = "block" if of_points(data) else "pair of the finest level"
    _lines(rows, f"true count of the {asked}, from ({data.unit})", what, f"Error by true count, ε = {epsilon:g}")
    groups = ", ".join(size_words(name) for name in rows["workload"].unique())
    st.caption(f"Groups of true counts: {groups}. The same noise weighs little on large counts and buries small ones.")


def _lines(rows: pd.DataFrame, title: str, what: str, heading: str) -> None:
    names = {"label": "configuration", "place": title, "mean": what, "stddev": "spread over runs", "runs": "runs"}
    height = legend_height(rows["label"].unique().tolist(), HEIGHT)
    chart = lines_with_spread(rows.reset_index(drop=True), ("place", "label", "mean", "stddev"), names, heading, height)
    st.altair_chart(chart, width="stretch")
    if told := under_axis(rows):
        st.caption(told.strip())


def _parts(made: StudyJob, data: CompareData, rows: pd.DataFrame) -> None:
    epsilon = _epsilon(rows, "parts")
    names = made.study.questions.names()
    chosen = COMPARE.config().workload
    workload = chosen if chosen in names else usual_workload(names)
    rows = rows[(rows["epsilon"] == epsilon) & (rows["workload"] == workload) & rows["figure"].isin(PARTS)].reset_index(drop=True)
    st.altair_chart(parts_by_label(rows, epsilon, data.unit, workload_words(workload, data)), width="stretch")
    if of_points(data):
        st.caption(
            "Noise: how far answers are from those of the same partitions with true counts. Uniformity: how far those are from the truth,"
            " because of what is assumed inside partitions. Their mean sizes are shown; the two can cancel each other."
        )
    else:
        st.caption(
            "Per pair that is released or has trips. Noise: how far released pairs are off. Suppression: trips of pairs that were left out."
            " Together they are the mean absolute error."
        )


def _time(rows: pd.DataFrame) -> None:
    epsilon = _epsilon(rows, "time")
    one = rows[(rows["figure"] == "seconds") & (rows["epsilon"] == epsilon)]
    one = one[one["workload"] == one["workload"].iloc[0]].reset_index(drop=True)
    st.altair_chart(seconds_by_label(one, epsilon), width="stretch")
    st.caption("Drawing alone, while other releases were drawn beside it; lines: the middle 80 % of the repeats.")


def _table(made: StudyJob, data: CompareData, rows: pd.DataFrame) -> None:
    """The summary of what is shown, and every row as a file."""
    how = COMPARE.config()
    names = made.study.questions.names()
    workload = how.workload if how.workload in names else usual_workload(names)
    shown = rows[(rows["workload"] == workload) & (rows["figure"] == how.figure)]
    shown = shown.assign(settings=shown["settings"].replace("{}", "defaults"))[list(COLUMNS)].rename(columns=COLUMNS)
    st.dataframe(shown, hide_index=True, width="stretch", column_config={"δ": st.column_config.NumberColumn(format="%.3g")})
    st.caption(
        f"{FIGURES[how.figure].format(unit=data.unit)}; {markdown(workload_words(workload, data))}. 95 %: interval of the mean over"
        " all noise, Student's t over the repeats. 10 % and 90 % of the repeats lie under the last two. The files hold all workloads and"
        " figures; rows of one study mark can be put together and resumed from."
    )
    left, right, _ = st.columns([2, 2, 3])
    left.download_button(
        "Download every run (CSV)",
        lambda: csv_text(made.table()),
        "study.csv",
        "text/csv",
        on_click="ignore",
        key="study rows",
        width="stretch",
    )
    right.download_button(
        "Download the summary (CSV)",
        lambda: csv_text(rows),
        "summary.csv",
        "text/csv",
        on_click="ignore",
        key="study summary",
        width="stretch",
    )
