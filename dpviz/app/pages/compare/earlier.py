"""Earlier rows of a study: those of this session, those that this server made on a sample, and those of a table that was downloaded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pandas as pd
import streamlit as st

from dpviz.app.jobs.job import DONE
from dpviz.app.jobs.results import Results
from dpviz.app.jobs.study import StudyJob, make_study_job, study_id, table_of
from dpviz.app.pages.compare.state import COMPARE, JOB, OWN, CompareConfig, CompareData, job, study_of
from dpviz.app.server.class_mode import is_class, refuse_in_class
from dpviz.app.session import cached
from dpviz.app.session.widgets import read_link, show_error, to_query
from dpviz.errors import DpvizError, InputError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import finished_runs, parse_rows

LOADED, PROBLEM, FILE = "compare loaded", "compare load problem", "compare table"  # keys of the session's state
RESTORED = "compare restored"  # key of the session's state: whether the settings of a loaded table were just chosen
WANTED = "compare study wanted"  # key of the session's state: whether the study is to be started by itself
FIRST_LOOK = "compare first look"  # key of the session's state: the study that was shown before a button was pressed
LOOK_STEPS, LOOK_REPEATS = 3, 2  # of a first look; the usual study has these ε and repeats, too
MOST_OF_LINK = 1000  # releases of a study that a link starts by itself
BEFORE, MOST_BEFORE = "compare studies before", 2
LARGEST_TABLE = 100_000_000  # bytes
ANOTHER_STUDY = (
    "This table belongs to another study: other data, another seed or another version of dpviz. Choose the data, the resolution and the"
    " seed of that study on the left, and its releases are taken over. They are kept until then."
)
OTHER_RUNS = (
    "This table belongs to these data and this seed, but none of its releases has a mechanism, settings and an ε that are chosen on the"
    " left. Choose those of the table, and its releases are taken over. They are kept until then."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedTable:
    """The table of a study, as it was downloaded.

    Attributes:
        fingerprint: of the study.
        rows: the rows, as `make_study_job` takes them.
        config: the configuration of the study; None if the table does not state it, as for data of one's own.
    """

    fingerprint: str
    rows: list[dict[str, Any]]
    config: CompareConfig | None

    def belongs_to(self, study: Study) -> bool:
        """Return whether some releases of the table are releases of a study."""
        return self.fingerprint == study.fingerprint and _has_runs(study, self.rows)


def known_rows(study: Study, data: CompareData) -> Results | None:
    """Return the rows that sessions share for a study on a sample; None for data of one's own, which stay in their session."""
    return cached.sample_study_rows(study.fingerprint) if is_shared(data) else None


def is_shared(data: CompareData) -> bool:
    """Return whether the rows of studies on these data are shared by sessions: only those of samples that come with the package."""
    return data.is_shared and COMPARE.config().source != OWN


def earlier_rows(study: Study, data: CompareData) -> tuple[list[dict[str, Any]], bool]:
    """Return the rows with the fingerprint of a study: of the last studies of this session, of the server, and of a loaded table.

    Returns:
        The rows, and whether this server made all of them on a sample, so that other sessions may see them.
    """
    unique: dict[tuple[str, str], dict[str, Any]] = {}
    may_share = is_shared(data)
    for rows, is_own in _sources(study, data):
        may_share = may_share and (is_own or not rows)
        for row in rows:
            unique.setdefault((row["run"], row["workload"]), row)
    return list(unique.values()), may_share


def has_earlier_rows(study: Study, data: CompareData) -> bool:
    """Return whether there are rows with the fingerprint of a study."""
    return any(rows for rows, _ in _sources(study, data))


def _sources(study: Study, data: CompareData) -> Iterator[tuple[list[dict[str, Any]], bool]]:
    """Yield lists of rows with the fingerprint of a study, and whether this server made them; a loaded table comes last."""
    for study_job in filter(None, (job(), *reversed(st.session_state.get(BEFORE, ())))):
        if study_job.of.study.fingerprint == study.fingerprint:
            yield list(study_job.results), study_job.is_shared
    loaded, shared = loaded_table(), known_rows(study, data)
    if shared is not None:
        yield shared.values(), True
    if loaded is not None and loaded.fingerprint == study.fingerprint:
        yield loaded.rows, False


def start_study(study: Study, data: CompareData, patience: float) -> StudyJob:
    """Start a study in the background with its earlier rows, or follow the same study where it is running; return its job.

    Args:
        study: the study.
        data: the data of the study.
        patience: seconds to wait at most for the first rows.
    """
    _keep_before()
    started = cached.shared_studies().start(_new_job(study, data), cached.keeper(), patience)
    st.session_state[JOB] = started
    return started


def show_study(study: Study, data: CompareData, rows: list[dict[str, Any]] | None = None) -> None:
    """Show a study as far as it was made: all of its earlier rows, or only those given."""
    _keep_before()
    new_job = _new_job(study, data, rows)
    cached.keeper().take(new_job)
    st.session_state[JOB] = new_job


def stop_study(study_job: StudyJob) -> None:
    """Stop the study of this session, and keep its rows. If another session follows it as well, it goes on there."""
    if cached.keeper().end(study_job):
        of = study_job.of
        st.session_state[JOB] = make_study_job(of.study, of.config, study_job.results, of.known, is_shared=True)
    else:
        study_job.stop()
    if COMPARE.config().study == study_job.key:
        COMPARE.change_for_good(study=study_job.of.study.fingerprint)


def _new_job(study: Study, data: CompareData, rows: list[dict[str, Any]] | None = None) -> StudyJob:
    earlier, may_share = earlier_rows(study, data) if rows is None else (rows, is_shared(data))
    return make_study_job(study, (COMPARE.config(), data), earlier, known_rows(study, data), is_shared=may_share)


def _keep_before() -> None:
    """Keep the rows of the study that is shown, before another one takes its place."""
    if (before := job()) is not None:
        kept: deque[StudyJob] = st.session_state.setdefault(BEFORE, deque(maxlen=MOST_BEFORE))
        kept.append(before)


def remember_study(study: Study, data: CompareData) -> None:
    """Write a study on a sample into the page's configuration, so that it is found again when the page is loaded anew."""
    COMPARE.change_for_good(study=study_id(study) if is_shared(data) else "")


def name_shown_study() -> None:
    """Write the study that is shown into the page's configuration, if it is the one chosen on the left and this server made its rows."""
    study_job, config = job(), COMPARE.config()
    if study_job is None or is_first_look(study_job) or not study_job.is_shared or not study_job.of.config[0].same_study(config):
        return
    if study_job.state == DONE or not study_job.has_ended:
        COMPARE.change_for_good(study=study_job.key)
    elif not config.study.startswith(study_job.of.study.fingerprint):
        COMPARE.change_for_good(study=study_job.of.study.fingerprint)


def start_when_shown() -> None:
    """Let the page start the study of its configuration as soon as it is shown, as if its button had been pressed."""
    st.session_state[WANTED] = True


def find_again(study: Study, data: CompareData) -> None:
    """Show what was made of a study before: the releases of a loaded table, or the study that the address names.

    Args:
        study: the study that is chosen on the page.
        data: the data of the study.
    """
    study_job, loaded, is_restored = job(), loaded_table(), st.session_state.pop(RESTORED, False)
    if loaded is not None and loaded.belongs_to(study):
        runs = {row["run"] for row in loaded.rows}
        is_new = study_job is None or is_restored or study_job.of.study.fingerprint != study.fingerprint
        is_new = is_new or study_job is None or not runs <= {row["run"] for row in study_job.results}
        if is_new and (study_job is None or study_job.has_ended):
            _show_rows(study, data)
    elif study_job is None and is_shared(data):
        _show_named(study, data)


def _show_named(study: Study, data: CompareData) -> None:
    """Show the study that the address names: as it runs, or as far as it was made.

    It is started by itself unless it is large, or was stopped by hand, or other settings are chosen; then the address names its rows only.
    """
    named = COMPARE.config().study
    is_same, found = named == study_id(study), cached.shared_studies().find(named)
    if found is not None and (is_same or found.is_running) and cached.keeper().take(found):
        st.session_state[JOB] = found
    elif named.startswith(study.fingerprint):
        _show_rows(study, data)
        shown = job()
        is_missing = shown is None or (is_same and shown.state != DONE)
        if is_missing and len(study) <= MOST_OF_LINK:
            start_when_shown()


def show_first_look(study: Study, data: CompareData) -> None:
    """Show a few releases of the usual study on a sample, unless another study is shown or named; they count as part of that study.

    It shows the same whatever other sessions have made. The releases take under a second, once on this server.
    """
    config, study_job, known = COMPARE.config(), job(), known_rows(study, data)
    is_free = study_job is None or (is_first_look(study_job) and not study_job.of.config[0].same_study(config))
    if known is None or not config.is_usual or config.study or not is_free:
        return
    show_study(study, data, _rows_of(study_of(data, replace(config, steps=LOOK_STEPS, repeats=LOOK_REPEATS)), known))
    st.session_state[FIRST_LOOK] = job()


def _rows_of(study: Study, known: Results) -> list[dict[str, Any]]:
    """Return the rows of a small study; those that are not known yet are made, and known from then on."""
    runs = {run.id for run in study.runs()}
    rows = [row for row in known.values() if row["run"] in runs]
    done = pd.DataFrame(rows)
    if finished_runs(study, done) == runs:
        return rows
    with st.spinner("A first look ..."):
        rows.extend(known.keep((row["run"], row["workload"]), row) for row in compare(study, done=done))
    return rows


def is_first_look(study_job: StudyJob) -> bool:
    """Return whether a study is one that was shown before a button was pressed."""
    return st.session_state.get(FIRST_LOOK) is study_job


def load_controls(study: Study | None) -> None:
    """Offer to load the table of a study; say why it is not taken over, and how it would be.

    Args:
        study: the study that is chosen on the page; None if something is missing.
    """
    if is_class():
        return
    with st.expander("Load a study", expanded=bool(st.session_state.get(PROBLEM))):
        st.caption("A table that was downloaded here, study.csv: its releases are not made again.")
        st.file_uploader("Table of a study", ["csv"], key=FILE, on_change=_receive, label_visibility="collapsed")
        if problem := st.session_state.get(PROBLEM):
            show_error(problem)
    loaded = loaded_table()
    if loaded is None:
        return
    if study is None or not loaded.belongs_to(study):
        st.info(OTHER_RUNS if study is not None and study.fingerprint == loaded.fingerprint else ANOTHER_STUDY)
    if loaded.config is not None and not loaded.config.same_study(COMPARE.config()):
        st.button("Choose what the table has", key="compare restore", width="stretch", on_click=_restore, args=(loaded.config,))


def loaded_table() -> LoadedTable | None:
    """Return the table that was loaded last in this session; None if there is none."""
    return st.session_state.get(LOADED)


def table_with_link(study_job: StudyJob) -> pd.DataFrame:
    """Return the table of a study with a column "link": the parameters of the page, from which the table restores them when it is loaded.

    Data of one's own are in no link, so their tables have no such column.
    """
    shown, config, table = COMPARE.config(), study_job.of.config[0], table_of(study_job)
    config = shown if shown.source == config.source and config.same_study(shown) else config
    return table if config.source == OWN else table.assign(link=urlencode(to_query(replace(config, study="", camera=None))))


def read_table(content: bytes) -> LoadedTable:
    """Read the table of a study.

    Raises:
        InputError: the file is too large, or is no table of a study; the text names the column.
    """
    refuse_in_class("tables to load")
    if len(content) > LARGEST_TABLE:
        raise InputError(f"The table is larger than {LARGEST_TABLE // 10**6} MB: resume that study with the command dpviz compare.")
    table = parse_rows(content)
    links = set(table.pop("link").astype(str)) if "link" in table else set()
    config = read_link(CompareConfig, dict(parse_qsl(links.pop()))) if len(links) == 1 else None
    rows: list[dict[str, Any]] = table.to_dict("records")  # type: ignore[assignment]
    return LoadedTable(fingerprint=table["study"].iloc[0], rows=rows, config=config)


def _receive() -> None:
    """Read the file that was chosen, or keep why it cannot be read; without a file, forget the last one."""
    st.session_state.pop(LOADED, None)
    st.session_state.pop(PROBLEM, None)
    file = st.session_state.get(FILE)
    if file is None:
        return
    try:
        st.session_state[LOADED] = read_table(file.getvalue())
    except DpvizError as error:
        st.session_state[PROBLEM] = str(error)


def _restore(config: CompareConfig) -> None:
    """Choose the data, mechanisms and budgets of a table."""
    COMPARE.change(**{name: value for name, value in vars(config).items() if name not in ("study", "camera")})
    st.session_state[RESTORED] = True


def _has_runs(study: Study, rows: list[dict[str, Any]]) -> bool:
    return not {row["run"] for row in rows}.isdisjoint(run.id for run in study.runs())


def _show_rows(study: Study, data: CompareData) -> None:
    """Show a study as far as it was made, if anything was; the button resumes it."""
    if _has_runs(study, earlier_rows(study, data)[0]):
        show_study(study, data)
