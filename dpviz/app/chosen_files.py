"""Files of records that the user has chosen, by upload or by path: what they say of themselves, whom to protect, and their count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

from dpviz.app import cached, opened_config
from dpviz.app.advice import advise_in_app
from dpviz.app.cards import DATA, Cards
from dpviz.app.files import count_by_path, path_files
from dpviz.app.page_data import PageData
from dpviz.app.page_state import CURATE, PageState
from dpviz.app.session import show_error
from dpviz.app.text_format import choose_text_format
from dpviz.app.unit_controls import UnitQuestion, show_repeated, unit_controls
from dpviz.data.counting.engines import NUMPY
from dpviz.data.reading.sources import FoundFiles, find_files
from dpviz.errors import DpvizError
from dpviz.publishing.config import DataPart
from dpviz.publishing.private_data import CountRequest, OpenedData, refuse_empty_data
from dpviz.view.escape import markdown

About = TypeVar("About")
Frame = TypeVar("Frame")


@dataclass(frozen=True, kw_only=True)
class ChosenFiles(Generic[About, Frame]):
    """Files that the user has chosen, and how they are counted.

    Attributes:
        about: what the headers of the files say.
        digest: identifies the files in the keys of widgets.
        part: fields of a saved configuration that name the files: points or trips, and for files by path the engine.
        opened: the table [data] of an opened configuration, if it is for these files.
        count: counts the files in a public frame with the given options; returns None while the count is not finished.
        content: returns a digest of the content, from the counted data.
        found: returns the files themselves.
        written: how text tables are written, where it is not the usual way.
    """

    about: About
    digest: str
    part: dict[str, Any]
    opened: DataPart | None
    count: Callable[[Frame, cached.Options], OpenedData | None]
    content: Callable[[OpenedData], str]
    found: Callable[[], FoundFiles]
    written: cached.Options


@dataclass(frozen=True, kw_only=True)
class FileKind(Generic[About, Frame]):
    """The files of records that a page reads.

    Attributes:
        page: state of the page.
        kind: of its configurations: "points", "trips" or "areas".
        field: of a saved configuration that names the files: "points" or "trips".
        describe_upload: describes an upload from its digest, name, bytes and how it is written.
        describe: describes files that were found.
        count_upload: counts an upload from its digest, name and bytes, the frame and the options.
        frame_of: returns the public frame as engines take it.
        key_of: identifies the frame in the keys of caches.
    """

    page: PageState
    kind: str
    field: str
    describe_upload: Callable[[str, str, bytes, cached.Options], About]
    describe: Callable[[FoundFiles], About]
    count_upload: Callable[[str, str, bytes, Frame, cached.Options], Any]
    frame_of: Callable[[Frame], Any]
    key_of: Callable[[Frame], object]


def read_upload(kind: FileKind[About, Frame], name: str, body: bytes, cards: Cards) -> ChosenFiles[About, Frame] | None:
    """Return an uploaded file by its name and bytes; None until it is confirmed how it is written."""
    digest = cached.digest_of(body)
    key = f"{kind.page.prefix}{digest}"
    opened = opened_config.fill_in_upload(kind.kind, name, digest, key)
    text_format = choose_text_format(cached.named_file(name, body), name, key, cards)
    if text_format is None:
        return None
    written = tuple(text_format.declarations().items())

    def count(frame: Frame, options: cached.Options) -> OpenedData:
        counts = kind.count_upload(digest, name, body, frame, options)
        refuse_empty_data(counts)
        fingerprints = cached.fingerprints(digest, (kind.key_of(frame), options), counts, body)
        return OpenedData(data=counts, fingerprints=fingerprints, engine=NUMPY)

    return ChosenFiles(
        about=kind.describe_upload(digest, name, body, written),
        digest=digest,
        part={kind.field: name},
        opened=opened,
        count=count,
        content=lambda _: digest,
        found=lambda: find_files(cached.named_file(name, body), text_format),
        written=written,
    )


def choose_paths(kind: FileKind[About, Frame], cards: Cards) -> ChosenFiles[About, Frame] | None:
    """Ask for the path of files; None until files are found there."""
    prefix = kind.page.prefix
    files = path_files(prefix, kind.kind, cards)
    if files is None:
        return None

    def count(frame: Frame, options: cached.Options) -> OpenedData | None:
        request = CountRequest(frame=kind.frame_of(frame), options=dict(options), engine=files.engine, scheduler=files.scheduler)
        return count_by_path(prefix, files, request, (kind.key_of(frame), options))

    return ChosenFiles(
        about=kind.describe(files.found),
        digest=files.digest,
        part={kind.field: files.written, "engine": files.engine},
        opened=files.opened,
        count=count,
        content=files.content,
        found=lambda: files.found,
        written=tuple(files.found.text_format.declarations().items()),
    )


def ask_whom(question: UnitQuestion, person: str | None, cards: Cards) -> dict[str, Any] | None:
    """Ask whom a release protects, and point at a column of persons.

    Args:
        question: what is asked.
        person: the column that looks like one of persons; None if there is none.
        cards: the question stands in the first one.

    Returns:
        As of `unit_controls`.
    """
    with cards.whom:
        unit = unit_controls(question, cards)
        if person is not None and "person" not in (unit or ()):
            text = f"There is a column *{markdown(person)}*: choose it above to protect persons, not {question.noun}s."
            st.caption(f":orange[{text}]")
    return unit


def leave_out_bad_rows(page: PageState, fault: str) -> str:
    """Ask whether bad rows are left out; return the option `bad_rows` of a count. `fault` says what is wrong with a cell of such a row."""
    text = f"Rows with {fault} cell. Off: the file is refused if there is one."
    drop = st.toggle("Leave out bad rows", key=f"{page.prefix}drop", persist_state="session", help=text)
    return "drop" if drop else "refuse"


def are_public(page: PageState, digest: str) -> bool:
    """In Teach ask whether the files are public, and return the answer; in Curate they are private, and nothing is asked."""
    if page.config().mode == CURATE or st.checkbox("These data are already public", key=f"public {digest}", persist_state="session"):
        return True
    st.info("Teach shows the truth beside the release. Confirm that the data are public, or switch to Curate.")
    return False


def _ignore(_: str) -> None:
    """Offer no way out of an error."""


def count_chosen(
    chosen: ChosenFiles[Any, Frame],
    frame: Frame,
    options: dict[str, Any],
    cards: Cards,
    noun: str,
    offer_way_out: Callable[[str], None] = _ignore,
) -> OpenedData | None:
    """Count the chosen files; None while the count is not finished, or if they are refused.

    Args:
        chosen: the files.
        frame: the public frame.
        options: of the count.
        cards: say what is missing.
        noun: what is counted: "records" or "trips".
        offer_way_out: shows what may help against an error, from its text.
    """
    try:
        opened = chosen.count(frame, tuple(sorted(options.items())))
    except DpvizError as error:
        show_error(str(error))
        cards.ask(DATA, f"Correct the data, or how they are read: {advise_in_app(str(error))}")
        offer_way_out(str(error))
        return None
    if opened is None:
        cards.ask(DATA, f"Count the {noun}.")
    return opened


def show_repeats(page: PageState, chosen: ChosenFiles[Any, Any], data: PageData, used: tuple[str, ...], noun: str, cards: Cards) -> None:
    """In Curate show which columns look like ids, for files of which each row counts as a person.

    Args:
        page: state of the page.
        chosen: the files.
        data: as loaded.
        used: columns that say where a row belongs, or how often it counts.
        noun: what a row is: "record" or "trip".
        cards: it stands in the first one.
    """
    if page.config().mode == CURATE:
        with cards.whom:
            show_repeated(data, cached.find_id_columns(f"{chosen.digest} {chosen.written}", used, chosen.found()), noun)
