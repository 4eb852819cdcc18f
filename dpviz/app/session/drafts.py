"""What a curator has chosen and typed in Curate, kept on the disk so that a reload, *Back* or a copied tab loses nothing but the data.

A draft is a private file beside the ledger. Its name is a random word that only the address of the page holds, so that no other session
finds it. It holds choices, column names and texts, and the file's name, by which the file is asked for again; never the file itself.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.app.session.ledger import open_ledger
from dpviz.app.session.page_state import DRAFT, DRAFT_WORD, FamilyState
from dpviz.app.state.values import SOURCES
from dpviz.errors import RefusedError
from dpviz.view.escape import markdown

OUTLINE = "outline uploaded"  # slot of a public file whose box is the domain: the box is kept, so that the file is not needed again
DAYS = 30  # after which a draft that nobody changed is removed
_WORD = re.compile("[0-9a-f]{32}")
_FILES = {
    "uploaded": "file of points",
    "regions uploaded": "file of regions",
    "ends uploaded": "file of regions",
    "trips uploaded": "file of trips",
    "areas uploaded": "file of points",
    "areas regions uploaded": "file of regions",
    "areas outline uploaded": "file of polygons",
    OUTLINE: "file of polygons",
    "study area uploaded": "file of polygons",
}
_STARTS = (
    *("unit ", "person ", "contributions ", "distinct ", "exactly ", "column ", "trips column ", "trips ends ", "centroids "),
    *("dataset ", "publication ", "good records ", "good spread ", "good pairs ", "good level ", "good wanted "),
    *("separator ", "decimal ", "thousands ", "encoding ", "text format "),
    *("regions levels ", "regions prefixes ", "ends levels ", "ends prefixes "),
    *("areas regions levels ", "areas regions prefixes ", "areas regions denominator ", "areas ends ", "areas column "),
)
_NAMES = {
    *("frame", "west", "east", "south", "north", "crs", "domain crs", "drop", "place", "km across", "path", "engine", "outline taken"),
    "only inside",
    *("areas crs", "areas drop", "areas path", "areas engine", "areas regions kind", "areas h3", "areas squares", "areas outline crs"),
    *(f"areas grid {name}" for name in ("west", "east", "south", "north", "crs", "place", "km across")),
    *("trips crs", "trips drop", "trips apart", "trips path", "trips engine"),
    *("opened points", "opened trips", "opened areas", "opened filled in"),
}


def restore(page: FamilyState) -> None:
    """At the beginning of a session, take the choices of the draft that the address names; without one, nothing happens.

    Args:
        page: state of the page that is shown; whether its data come from a sample, an upload or a path is part of the draft.
    """
    _restore_choices()
    _send_again_after_a_file()
    source = st.session_state.get("draft sources", {}).pop(page.key, None)
    if source in SOURCES:
        view = page.view  # what the address says of the level holds for the data of the draft
        page.change_for_good(draft={"source": source}, view={"level": view.level, "asked": view.asked})


def _send_again_after_a_file() -> None:
    """Send all values to the browser again once a file was chosen or replaced.

    While a file is wrong or missing, the fields that depend on it are away. The session keeps their values, but a browser shows the fields
    that come back as if they were new.
    """
    files = {slot: id(kept[1]) for slot in _FILES if (kept := st.session_state.get(slot)) is not None}
    if files != st.session_state.setdefault("files of the last run", files):
        st.session_state["files of the last run"] = files
        for key in [str(key) for key in st.session_state.to_dict() if _is_kept(str(key))]:
            st.session_state[key] = st.session_state[key]


def _restore_choices() -> None:
    if DRAFT_WORD in st.session_state:
        return
    name = st.query_params.get(DRAFT, "")
    st.session_state[DRAFT_WORD] = name if _WORD.fullmatch(name) else secrets.token_hex(16)
    with suppress(OSError, ValueError):
        kept = json.loads(_path().read_text("utf-8"))
        for key, value in dict(kept["choices"]).items():
            if _is_kept(key):
                st.session_state[key] = value
        st.session_state["draft sources"] = dict(kept["sources"])
        st.session_state["draft files"] = {str(slot): str(name) for slot, name in dict(kept["files"]).items() if slot in _FILES}


def save(page: FamilyState) -> None:
    """Keep the choices of this session, if they have changed since they were kept last. Without a disk to write on, only the draft is lost.

    Args:
        page: state of the page that is shown.
    """
    choices = {str(key): value for key, value in st.session_state.to_dict().items() if _is_kept(str(key)) and _is_plain(value)}
    names = {slot: kept[0] for slot in _FILES if (kept := st.session_state.get(slot)) is not None}
    st.session_state.setdefault("draft sources now", {})[page.key] = page.draft.source
    sources, files = st.session_state["draft sources now"], {**st.session_state.get("draft files", {}), **names}
    text = json.dumps({"choices": choices, "files": files, "sources": sources}, sort_keys=True)
    if text == st.session_state.get("draft written") or not (choices or names):
        return
    st.session_state["draft written"] = text
    with suppress(OSError, RefusedError):  # without the ledger that was named, no folder is made beside its path
        open_ledger().exists()
        _write(text)


def discard_if_any() -> None:
    """Remove the draft of this session, if it has one."""
    if DRAFT_WORD in st.session_state:
        with suppress(OSError):
            _path().unlink()


def ask_again(slot: str) -> None:
    """Say by name which file the draft was made with, while it is not there.

    Args:
        slot: key of the session state that holds the file's name and bytes.
    """
    name = st.session_state.get("draft files", {}).get(slot)
    if name and st.session_state.get(slot) is None:
        st.caption(
            f"The bounds are those around {markdown(name)}: choose it again only to see its outline."
            if slot == OUTLINE
            else f":orange[Choose {markdown(name)} again: your choices were kept, the {_FILES[slot]} was not.]"
        )


def _is_kept(key: str) -> bool:
    return key in _NAMES or key.startswith(_STARTS)


def _is_plain(value: Any) -> bool:
    """Return whether a value is one that JSON gives back as it is."""
    return value is None or isinstance(value, str | int | float | bool) or (isinstance(value, list) and all(map(_is_plain, value)))


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
