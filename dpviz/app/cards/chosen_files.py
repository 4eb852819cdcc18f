"""Files of records that the user has chosen, by upload or by path: what they say of themselves, and their count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import streamlit as st

from dpviz.app.cards.cards import FILES, Cards
from dpviz.app.cards.columns import say_lacking
from dpviz.app.cards.opened_config import say_other_files
from dpviz.app.cards.path_files import COUNT_COPIES, count_by_path, path_files
from dpviz.app.cards.text_format import choose_text_format, propose_text_format
from dpviz.app.cards.unit import describe_left_out, show_left_out
from dpviz.app.cards.uploads import kept_file
from dpviz.app.session import cached
from dpviz.app.session.advice import advise_in_app
from dpviz.app.session.ledger import Source
from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import name_content, show_error
from dpviz.app.state.answers import fit_columns, names_files, take_files
from dpviz.app.state.values import CURATE
from dpviz.data.columns import PointColumns
from dpviz.data.reading.safety import DEFAULT_LIMITS, read_checked
from dpviz.data.reading.sources import FoundFiles, find_files
from dpviz.errors import DpvizError, InputError
from dpviz.publishing.private_data import CountRequest, OpenedData
from dpviz.view.basemap import Bounds
from dpviz.view.escape import markdown

About = TypeVar("About")
Frame = TypeVar("Frame")
_KEYS = {"record": "points", "trip": "trips"}  # key of [data] that names the files, by what a row is
_PRIVATE = "This is the file of the private data, and what is taken from it as public would tell of its records: choose a public file."


@dataclass(frozen=True, kw_only=True)
class ChosenFiles(Generic[About, Frame]):
    """Files that the user has chosen, and how they are counted.

    Attributes:
        about: what the headers of the files say.
        digest: identifies the files.
        path: of the files, or the name of an upload.
        count: counts the files in a public frame with the given options; returns None while the count is not finished.
        content: returns a digest of the content, from the counted data.
        found: returns the files themselves.
        written: how text tables are written, where it is not the usual way.
    """

    about: About
    digest: str
    path: str
    count: Callable[[Frame, cached.Options], OpenedData | None]
    content: Callable[[OpenedData], str]
    found: Callable[[], FoundFiles]
    written: cached.Options

    @property
    def key(self) -> str:
        """What identifies the files in the keys of widgets."""
        return name_content(self.digest)


@dataclass(frozen=True, kw_only=True)
class FileKind(Generic[About, Frame]):
    """The files of records that a page reads.

    Attributes:
        page: state of the page.
        describe_upload: describes an upload from its digest, name, bytes and how it is written.
        describe: describes files that were found.
        frame_of: returns the public frame as engines take it.
        key_of: identifies the frame in the keys of caches.
        title: of the data on screen.
        unit: what is counted.
    """

    page: FamilyState
    describe_upload: Callable[[str, str, bytes, cached.Options], About]
    describe: Callable[[FoundFiles], About]
    frame_of: Callable[[Frame], Any]
    key_of: Callable[[Frame], object]
    title: str
    unit: str


def read_upload(kind: FileKind[About, Frame], name: str, body: bytes, cards: Cards) -> ChosenFiles[About, Frame] | None:
    """Return an uploaded file by its name and bytes; None until it is confirmed how it is written."""
    page, digest = kind.page, cached.digest_of(body)
    page.keep_files(take_files(page.draft, name, digest, lambda: propose_text_format(cached.named_file(name, body), name)))
    say_other_files(page, name)
    text_format = choose_text_format(page, cached.named_file(name, body), name, f"{page.prefix}{name_content(digest)}", cards)
    if text_format is None:
        return None
    written = tuple(text_format.declarations().items())

    return ChosenFiles(
        about=kind.describe_upload(digest, name, body, written),
        digest=digest,
        path=name,
        count=lambda frame, options: cached.count_upload(digest, name, body, kind.key_of(frame), kind.frame_of(frame), options),
        content=lambda _: digest,
        found=lambda: find_files(cached.named_file(name, body), text_format),
        written=written,
    )


def choose_files(
    kind: FileKind[About, Frame], cards: Cards, ask: Callable[[], tuple[str, bytes] | None]
) -> ChosenFiles[About, Frame] | None:
    """Ask for files by upload, which `ask` does, or by path; None until they are chosen."""
    if kind.page.draft.source != "upload":
        return _choose_paths(kind, cards)
    kept = ask()
    return None if kept is None else read_upload(kind, *kept, cards)


def _choose_paths(kind: FileKind[About, Frame], cards: Cards) -> ChosenFiles[About, Frame] | None:
    """Ask for the path of files; None until files are found there."""
    prefix = kind.page.prefix
    files = path_files(kind.page, cards)
    if files is None:
        return None
    copies = {"copies": True} if files.copies else {}

    def count(frame: Frame, options: cached.Options) -> OpenedData | None:
        request = CountRequest(
            frame=kind.frame_of(frame), options={**dict(options), **copies}, engine=files.engine, scheduler=files.scheduler
        )
        return count_by_path(prefix, files, request, (kind.key_of(frame), options, files.copies))

    return ChosenFiles(
        about=kind.describe(files.found),
        digest=files.digest,
        path=files.path,
        count=count,
        content=files.content,
        found=lambda: files.found,
        written=tuple(files.found.text_format.declarations().items()),
    )


def is_among(chosen: ChosenFiles[Any, Any], digest: str, size: int) -> bool:
    """Return whether one of the files has this digest and so many bytes."""
    found = chosen.found()
    same_size = [source for source, own in zip(found.sources, found.sizes, strict=True) if own == size]
    return any(cached.digest_of(read_checked(source, DEFAULT_LIMITS)[1]) == digest for source in same_size)


def refuse_as_public(chosen: ChosenFiles[Any, Any], role: str | None) -> None:
    """Refuse a file of the private data as one of the public frame: which regions there are would tell where its records lie.

    Args:
        chosen: the private files.
        role: beginning of the slots of the public file, such as that of regions; None without one.

    Raises:
        InputError: they are the same.
    """
    kept = None if role is None else kept_file(role)
    if kept is not None and is_among(chosen, cached.digest_of(kept[1]), len(kept[1])):
        raise InputError(_PRIVATE)


def find_public_extent(chosen: ChosenFiles[Any, Any], options: Mapping[str, Any]) -> Bounds | None:
    """Return the box around the points of files that were said to be public, in their coordinates; None if it cannot be found.

    Args:
        chosen: the files.
        options: of the count, which name the columns.
    """
    columns = PointColumns(**{role: options.get(role) for role in ("x", "y", "geometry")})
    return cached.public_extent(chosen.digest, columns, bool(options.get("centroids")), chosen.found())


def take_columns(page: FamilyState, chosen: ChosenFiles[Any, Any], found: Mapping[str, Any]) -> None:
    """Keep what is found of columns, by key of [data], where nothing is said; say which ones an opened configuration names in vain."""
    columns = chosen.about.columns
    header = cached.digest_of(repr((tuple(columns), chosen.written)).encode())
    page.keep_files(fit_columns(page.draft, columns, header, found))
    say_lacking(page, columns)


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

    In Curate it has been said by now whom to protect; without persons it is each record or trip.

    Args:
        chosen: the files.
        frame: the public frame.
        options: of the count.
        cards: say what is missing.
        noun: what is counted: "records" or "trips".
        offer_way_out: shows what may help against an error, from its text.
    """
    if cards.curates and "person" not in options and options.get("contributions", 1) == 1:
        options = {**options, "unit": "record"}
    try:
        opened = chosen.count(frame, tuple(sorted(options.items())))
    except DpvizError as error:
        show_error(str(error))
        cards.ask(FILES, f"Correct the data, or how they are read: {advise_in_app(str(error))}")
        offer_way_out(str(error))
        return None
    if opened is None:
        cards.ask(FILES, f"Count the {noun}.")
        return None
    for note in map(advise_in_app, opened.notes):
        st.warning(f"Curator only: {markdown(note)}")
        cards.ask(FILES, f"Some files have the same content: delete a copy, or tick “{COUNT_COPIES}” on the left.")
    return opened


def data_of_files(
    kind: FileKind[Any, Any],
    chosen: ChosenFiles[Any, Any],
    opened: OpenedData,
    options: dict[str, Any],
    *,
    make: Callable[..., Any] = PageData,
    more: Mapping[str, Any] = MappingProxyType({}),
    **frame: Any,
) -> Any:
    """Return counted files as the data of a page; in Curate what was left out of them is for the curator only.

    Args:
        kind: of the files.
        chosen: the files.
        opened: what was counted.
        options: of the count.
        make: makes the data, a `PageData`.
        more: what the data of the page have beside that.
        frame: the parts of a configuration that say what the public frame is.
    """
    draft = kind.page.draft
    named, typed = names_files(draft, chosen.path), options.get("crs")
    part = draft.checked_data()
    where: dict[str, Any] = {} if named else {_KEYS[draft.kind.family.noun]: chosen.path}
    part = replace(part, crs=typed or (part.crs if named else None), **where)
    data = make(
        counts=opened.data,
        digest=chosen.content(opened),
        fingerprints=opened.fingerprints,
        title=kind.title,
        unit=kind.unit,
        source=Source(data_part=part, bad_rows=draft.files.bad_rows, **frame),
        **more,
    )
    if draft.mode == CURATE:
        show_left_out(data, describe_left_out(opened.data))
    return data
