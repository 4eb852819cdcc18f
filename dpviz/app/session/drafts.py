"""What a curator has chosen and typed, kept on the disk so that a reload, *Back* or a copied tab loses nothing but the data.

A draft is a private file beside the ledger. Its name is a random word that only the address of the page holds, so that no other session
finds it. It holds choices, column names and texts, and the files' names, by which they are asked for again; never the files themselves.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.app.session.ledger import open_ledger
from dpviz.app.session.page_state import DRAFT, DRAFT_WORD, FamilyState
from dpviz.app.state.draft_file import read_drafts, write_drafts
from dpviz.app.state.kinds import kind_of
from dpviz.app.state.linked import never_in_link
from dpviz.app.state.page import Page
from dpviz.errors import DpvizError, RefusedError, SettingError

DAYS = 30  # after which a draft that nobody changed is removed
_WRITTEN = "draft written"
_WORD = re.compile("[0-9a-f]{32}")


def restore(page: FamilyState) -> None:
    """At the beginning of a session, take the pages of the draft that the address names; without one, nothing happens.

    What a link carries is as the address of the shown page says, and all else as the draft says. A draft that cannot be read is refused.

    Args:
        page: state of the page that is shown.
    """
    if DRAFT_WORD in st.session_state:
        return
    now, name = page.page, st.query_params.get(DRAFT, "")
    st.session_state[DRAFT_WORD] = name if _WORD.fullmatch(name) else secrets.token_hex(16)
    try:
        pages = read_drafts(_path().read_text("utf-8"))
    except SettingError as error:
        page.refuse(str(error))
        return
    except (OSError, ValueError, RefusedError):  # without a draft there is nothing to take
        return
    for family, kept in pages.items():
        key = kind_of(family).key
        if key == page.key:
            declared = {part: getattr(kept.draft, part) for part in never_in_link(type(kept.draft))}
            st.session_state[key] = replace(now, draft=replace(now.draft, **declared))
        else:
            st.session_state.setdefault(key, kept)


def save(page: FamilyState) -> None:
    """Keep the pages of this session, if they have changed since they were kept last. Without a disk, only the draft is lost.

    Args:
        page: state of the page that is shown.
    """
    kept: dict[str, Page] = {value.draft.family: value for value in _pages()} | {page.kind.name: page.page}
    text = write_drafts(kept)
    if text == st.session_state.get(_WRITTEN):
        return
    st.session_state[_WRITTEN] = text
    with suppress(OSError, RefusedError):  # without the ledger that was named, no folder is made beside its path
        open_ledger().exists()
        _write(text)


def _pages() -> list[Page]:
    values: list[Any] = list(st.session_state.to_dict().values())
    return [value for value in values if isinstance(value, Page)]


def discard_if_any() -> None:
    """Remove the draft of this session, if it has one."""
    if DRAFT_WORD in st.session_state:
        with suppress(OSError, DpvizError):
            _path().unlink()


def _folder() -> Path:
    return Path(f"{os.fspath(open_ledger().path)}.drafts")


def _path() -> Path:
    return _folder() / f"{st.session_state[DRAFT_WORD]}.json"


def _write(text: str) -> None:
    """Write the draft into a private folder, by a rename, and remove drafts that are old."""
    folder, path = _folder(), _path()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    partial = path.with_suffix(".partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)
    for other in folder.glob("*.json"):
        if other.stat().st_mtime < time.time() - DAYS * 86_400:
            other.unlink()
