"""Files that the user names by path (a file, a pattern or a folder): the engine that counts them, and the count."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import Cards
from dpviz.app.cards.opened_config import offer_path
from dpviz.app.cards.text_format import choose_text_format, propose_text_format
from dpviz.app.jobs.counting import CountingJob, make_count_job
from dpviz.app.jobs.job import FAILED, STOPPING
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session import cached
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import show_error
from dpviz.app.state.answers import take_files
from dpviz.data.counting.engines import AUTO, DASK, DUCKDB, ENGINES, NUMPY, choose_engine
from dpviz.data.counting.scheduler import ADDRESS_VARIABLE, Scheduler, scheduler_of_app
from dpviz.data.reading.safety import DEFAULT_LIMITS, refuse_share
from dpviz.data.reading.sources import LARGE_SHARE, TABLES, FoundFiles, find_files, list_files, memory_bytes
from dpviz.errors import DpvizError, InputError
from dpviz.families import TRIP_FAMILY
from dpviz.publishing.private_data import CountRequest, OpenedData, count_files, file_stamps
from dpviz.view.escape import markdown

SMALL = 64 * 2**20  # bytes; files up to this size are counted at once
TICK = 1.0  # seconds between two refreshes of a running count
_TITLES = {AUTO: "Automatic", NUMPY: "NumPy, in memory", DUCKDB: "DuckDB, on this computer", DASK: "Dask, on a cluster"}
_TAKES = {
    NUMPY: "It reads whole files into memory.",
    DUCKDB: "It reads the files in blocks, and spills rows of persons to a private folder on the disk where they need more than 640 MiB.",
    DASK: "Its workers read the files in parts, each at the path that is typed here.",
}


COUNT_COPIES = "Count copies, too"
_COPIES_HELP = "Files count that are copies of others, by their names or their content: each of their records counts several times."


@dataclass(frozen=True, kw_only=True)
class PathFiles:
    """Files that the user named by a path.

    Attributes:
        found: the files.
        digest: identifies the files by their paths, sizes and times of change.
        path: of the files, whole.
        engine: the engine that the user chose; "auto" for the one that fits the size of the files.
        scheduler: the Dask scheduler that was set when the app was started; None for workers of this computer.
        counting: the engine that counts.
        copies: whether files count that are copies of others.
    """

    found: FoundFiles
    digest: str
    path: str
    engine: str
    scheduler: Scheduler | None
    counting: str
    copies: bool

    def content(self, opened: OpenedData) -> str:
        """Return a digest of the files' content when they were counted."""
        return cached.digest_of_fingerprints(opened.data.fingerprints.files)

    @property
    def at_once(self) -> bool:
        """Whether the files are counted as soon as they are chosen: they are small, and Dask is not the engine."""
        return self.found.size <= SMALL and self.counting != DASK


def path_files(page: FamilyState, cards: Cards) -> PathFiles | None:
    """Ask for a path and an engine; None until there is a path.

    Args:
        page: state of the page.
        cards: say that how the files are written is to be confirmed.

    Raises:
        InputError: there is no such file, the files differ, or the engine does not count them.
    """
    refuse_in_class("files, paths or engines")
    offer_path(page)
    pattern, example = "A file, a pattern such as data/homes-*.parquet, or a folder of Parquet files.", "for example data/homes.csv"
    st.text_input("Path on this computer", placeholder=example, help=pattern, **page.widget("draft", "path", f"{page.prefix}path"))
    text = page.draft.path
    if not text:
        noun = "trips" if page.draft.kind.family is TRIP_FAMILY else "points"
        st.info(f"Type the path of files of {noun} on the computer that runs this app.")
        return None
    refuse_share(text)
    expanded = os.path.expanduser(text)  # noqa: PTH111  (a pattern is no path)
    listed, path = list_files(expanded), str(Path(expanded).absolute())
    first, digest = listed[0], cached.digest_of(repr((path, file_stamps(map(Path, map(str, listed))))).encode())
    page.keep_files(take_files(page.draft, path, digest, lambda: propose_text_format(first, str(first))))
    text_format = choose_text_format(page, first, str(first), str(first), cards)
    if text_format is None:
        return None
    copies = len(listed) > 1 and st.checkbox(COUNT_COPIES, help=_COPIES_HELP, **page.widget("data", "copies", f"copies {path}"))
    found = find_files(expanded, text_format, copies=copies)
    engine, scheduler = _engine_control(page)
    counting = choose_engine(found, engine, scheduler, DEFAULT_LIMITS)
    if counting == NUMPY and not found.within(DEFAULT_LIMITS):
        most = f"Engine numpy reads files of at most {DEFAULT_LIMITS.file_bytes // 2**20} MiB and {DEFAULT_LIMITS.rows:,} rows into memory."
        raise InputError(f"{most} {'Choose' if found.format in TABLES else 'Save them as Parquet or CSV for'} duckdb or dask.")
    st.caption(_engine_sentences(found, engine, counting))
    return PathFiles(found=found, digest=digest, path=path, engine=engine, scheduler=scheduler, counting=counting, copies=copies)


def _engine_control(page: FamilyState) -> tuple[str, Scheduler | None]:
    """Ask for the engine. The scheduler of Dask is the one that was set when the app was started: no page can name another one."""
    text = "What counts the records. All engines give the same counts; DuckDB and Dask take files of any size."
    shown = page.widget("data", "engine", f"{page.prefix}engine")
    st.selectbox("Engine", [AUTO, *ENGINES], format_func=_TITLES.__getitem__, help=text, **shown)
    engine = page.part("data", "engine")
    if engine != DASK:
        return engine, None
    scheduler = scheduler_of_app()
    if scheduler is None:
        st.caption(f"Workers of this computer. A cluster is named where the app is started, in {ADDRESS_VARIABLE}.")
    else:
        st.caption(f"Scheduler {markdown(scheduler.address)}, as set when the app was started. It and its workers see the private records.")
    return engine, scheduler


def _engine_sentences(found: FoundFiles, engine: str, counting: str) -> str:
    """Return sentences on the engine: which one counts, why, and what it uses."""
    number_text = "" if len(found.sources) == 1 else f"{len(found.sources):,} files, "
    size, share = _bytes(found.size), _bytes(LARGE_SHARE * memory_bytes())
    if engine == AUTO:
        small = f"the files are not larger than an eighth of the memory ({share})"
        large = f"the files are larger than an eighth of the memory ({share}), or than what is read into memory"
        choice = f"Automatic chose {counting}: {large if counting != NUMPY else small}."
    else:
        choice = f"Engine {counting}, as chosen."
    return f"{number_text}{size}. {choice} {_TAKES[counting]}"


def _bytes(size: float) -> str:
    """Return a size as a text with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def count_by_path(page: str, files: PathFiles, request: CountRequest, key: object) -> OpenedData | None:
    """Count files: small ones at once, others in the background after the user has pressed a button; None until that is done.

    Args:
        page: prefix of the keys of the page's widgets, as for `path_files`.
        files: the files.
        request: frame, columns and engine of the count.
        key: identifies `request`.

    Raises:
        DpvizError: the files cannot be counted; the text says why.
    """
    refuse_in_class("files, paths or engines")
    whole_key, counts = (files.digest, files.counting, key), cached.file_counts(page)
    job = _find_job(f"count {page}", whole_key)

    def start() -> CountingJob:
        begun = make_count_job(f"count {page}", whole_key, lambda watch: counts.keep(whole_key, count_files(files.found, request, watch)))
        cached.keeper().take(begun)
        begun.start()
        return begun

    if files.at_once and whole_key not in counts:
        with st.spinner("Counting ..."):
            job = start()
            job.wait()
        if job.error:
            raise DpvizError(job.error)
    if whole_key in counts:
        return counts.get(whole_key)  # type: ignore[no-any-return]
    if job is None or job.has_ended:
        _offer_count(page, job, start)
    else:
        st.fragment(_show_progress, run_every=TICK)(page, job)
    return None


def _find_job(kind: str, key: object) -> CountingJob | None:
    """Return the session's last job of a kind if it has this key. A running one with another key ends: no page needs it."""
    job = cached.keeper().find(kind)
    if job is None or job.key == key:
        return job
    if not job.has_ended:
        cached.keeper().end(job)
    return None


def _offer_count(page: str, job: CountingJob | None, begin: Callable[[], Any]) -> None:
    """Show the button that starts a count in the background, and the outcome of the last count."""
    if job is not None and job.state == FAILED:
        show_error(job.error)
    elif job is not None:
        st.caption("The count was cancelled; nothing of it was kept.")
    text = "Large files are counted in the background, after a press of this button; the page stays usable, and the count can be cancelled."
    st.button("Count the records", key=f"{page}count", width="stretch", on_click=begin, help=text)


def _show_progress(page: str, job: CountingJob) -> None:
    """Show the progress of a count and the button that cancels it; once it is done, the whole page is run again."""
    if job.has_ended:
        st.rerun()
    stops = job.state == STOPPING
    st.progress(job.share, "Cancelling the count: its temporary files go." if stops else f"Counting the records: {job.share:.0%}")
    if st.button("Cancel", key=f"{page}cancel", width="stretch", disabled=stops):
        with st.spinner("Cancelling ..."):
            job.stop()
        st.rerun()
