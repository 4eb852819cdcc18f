"""Earlier rows of a study: those of this session, those that this server made on a sample, and those of a table that was downloaded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pandas as pd
import streamlit as st

from dpviz.app import cached
from dpviz.app.compare.state import COMPARE, JOB, OWN, CompareConfig, CompareData, job, study_of
from dpviz.app.jobs import RUNNING, KnownRows, StudyJob
from dpviz.app.session import read_link, show_error, to_query
from dpviz.errors import DpvizError, InputError
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Study
from dpviz.evaluation.tables import parse_rows

LOADED, PROBLEM, FILE = "compare loaded", "compare load problem", "compare table"  # keys of the session's state
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
        rows: the rows, as `StudyJob` takes them.
        config: the configuration of the study; None if the table does not state it, as for data of one's own.
    """

    fingerprint: str
    rows: list[dict[str, Any]]
    config: CompareConfig | None

    def belongs_to(self, study: Study) -> bool:
        """Return whether some releases of the table are releases of a study."""
        return self.fingerprint == study.fingerprint and _has_runs(study, self.rows)


def known_rows(study: Study, data: CompareData) -> KnownRows | None:
    """Return the rows that sessions share for a study on a sample; None for data of one's own, which stay in their session."""
    return cached.sample_study_rows(study.fingerprint) if is_shared(data) else None


def is_shared(data: CompareData) -> bool:
    """Return whether the rows of studies on these data are shared by sessions: only those of samples that come with the package."""
    return data.bundled and COMPARE.config().source != OWN


def earlier_rows(study: Study, data: CompareData) -> list[dict[str, Any]]:
    """Return the rows with the fingerprint of a study: of the last studies of this session, of the server, and of a loaded table."""
    unique: dict[tuple[str, str], dict[str, Any]] = {}
    for row in chain.from_iterable(_sources(study, data)):
        unique.setdefault((row["run"], row["workload"]), row)
    return list(unique.values())


def has_earlier_rows(study: Study, data: CompareData) -> bool:
    """Return whether there are rows with the fingerprint of a study."""
    return any(_sources(study, data))


def _sources(study: Study, data: CompareData) -> Iterator[list[dict[str, Any]]]:
    """Yield lists of rows with the fingerprint of a study; those that this server made come before those of a loaded table."""
    for study_job in filter(None, (job(), *reversed(st.session_state.get(BEFORE, ())))):
        if study_job.study.fingerprint == study.fingerprint:
            yield study_job.rows
    loaded, shared = loaded_table(), known_rows(study, data)
    if shared is not None:
        yield shared.rows()
    if loaded is not None and loaded.fingerprint == study.fingerprint:
        yield loaded.rows


def make_job(study: Study, data: CompareData) -> StudyJob:
    """Make the job of a study, with its earlier rows, the study of this session; the rows of the last studies before it are kept."""
    before = job()
    new_job = StudyJob(study, (COMPARE.config(), data), earlier_rows(study, data), known_rows(study, data))
    if before is not None:
        kept: deque[StudyJob] = st.session_state.setdefault(BEFORE, deque(maxlen=MOST_BEFORE))
        kept.append(before)
    cached.keeper().take(new_job)
    st.session_state[JOB] = new_job
    return new_job


def remember_study(study: Study, data: CompareData) -> None:
    """Write a study on a sample into the page's configuration, so that it is found again when the page is loaded anew."""
    st.session_state[COMPARE.key] = replace(COMPARE.config(), study=study.fingerprint if is_shared(data) else "")


def start_when_shown() -> None:
    """Let the page start the study of its configuration as soon as it is shown, as if its button had been pressed."""
    st.session_state[WANTED] = True


def find_again(study: Study, data: CompareData) -> None:
    """Show what was made of a study before: the releases of a loaded table, or those of the study that the address names.

    If this server has made none of the study that the address names, it starts as if its button had been pressed, unless it is large.
    """
    study_job, loaded = job(), loaded_table()
    if loaded is not None and loaded.belongs_to(study):
        if study_job is None or (study_job.state != RUNNING and not _has_all(study_job, study, loaded.rows)):
            _show_rows(study, data)
    elif study_job is None and is_shared(data) and COMPARE.config().study == study.fingerprint:
        _show_rows(study, data)
        if job() is None and len(study) <= MOST_OF_LINK:
            start_when_shown()


def show_first_look(study: Study, data: CompareData) -> None:
    """Show a few releases of the usual study on a sample, unless another study is shown or named; they count as part of that study.

    They take under a second, once on this server.
    """
    config, study_job, known = COMPARE.config(), job(), known_rows(study, data)
    is_free = study_job is None or (is_first_look(study_job) and not study_job.config[0].same_study(config))
    if known is None or not config.is_usual or config.study or not is_free:
        return
    if not _has_runs(study, known.rows()):
        few = study_of(data, replace(config, steps=LOOK_STEPS, repeats=LOOK_REPEATS))
        with st.spinner("A first look ..."):
            for row in compare(few):
                known.add(row)
    st.session_state[FIRST_LOOK] = make_job(study, data)


def is_first_look(study_job: StudyJob) -> bool:
    """Return whether a study is one that was shown before a button was pressed."""
    return st.session_state.get(FIRST_LOOK) is study_job


def load_controls(study: Study | None) -> None:
    """Offer to load the table of a study; say why it is not taken over, and how it would be.

    Args:
        study: the study that is chosen on the page; None if something is missing.
    """
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
    config, table = study_job.config[0], study_job.table()
    return table if config.source == OWN else table.assign(link=urlencode(to_query(replace(config, study="", camera=None))))


def read_table(content: bytes) -> LoadedTable:
    """Read the table of a study.

    Raises:
        InputError: the file is too large, or is no table of a study; the text names the column.
    """
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


def _has_runs(study: Study, rows: list[dict[str, Any]]) -> bool:
    return not {row["run"] for row in rows}.isdisjoint(run.id for run in study.runs())


def _has_all(study_job: StudyJob, study: Study, rows: list[dict[str, Any]]) -> bool:
    """Return whether a job has the rows already."""
    return study_job.study.fingerprint == study.fingerprint and {row["run"] for row in rows} <= {row["run"] for row in study_job.rows}


def _show_rows(study: Study, data: CompareData) -> None:
    """Show a study as far as it was made; the button resumes it."""
    if _has_runs(study, earlier_rows(study, data)):
        make_job(study, data)
