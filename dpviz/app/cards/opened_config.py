"""*Open a configuration* in Curate: a TOML file of the command line sets the page; its data are asked for by name, never opened by a path.

What it says of files and of their account holds once the person has chosen these files (`dpviz.app.state.answers`).
"""

from __future__ import annotations

from pathlib import PurePath

import streamlit as st

from dpviz.app.components.fields import REFUSED
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.saved_config import describe_kept
from dpviz.app.session.widgets import carry_out, show_error
from dpviz.app.state.answers import names_files, opened_files
from dpviz.app.state.toml import file_name, read_toml
from dpviz.errors import DpvizError
from dpviz.publishing.toml_tables import LARGEST_FILE
from dpviz.view.escape import markdown

_PROBLEM, _TURN = "opened problem", "opened turn"


def show_uploader(page: FamilyState) -> None:
    """Show the field that opens a configuration, why the last one was refused, and what the page does not show of the last one."""
    refuse_in_class("configurations to open")
    kind, turn = page.kind.name, st.session_state.get(_TURN, 0)
    key = f"open {kind} {turn}"
    with st.popover("Open a configuration", width="stretch", key=f"opener {kind} {turn}"):  # closed again by its new key
        st.file_uploader(
            "Configuration of a release (TOML)",
            key=key,
            max_upload_size=1,
            on_change=carry_out(lambda: _receive(page, key)),
            help="A file of *Save this configuration* or of the command line. It sets this page; the data are asked for by name.",
        )
    if problem := st.session_state.get(f"{_PROBLEM} {kind}"):
        show_error(f"{problem} The page is as it was.")
    if (config := page.draft.opened) is not None and (hidden := describe_kept(config)):
        st.caption(markdown(hidden))


def _receive(page: FamilyState, key: str) -> None:
    """Open the file that was chosen, or keep why it is refused; the field is empty again afterwards."""
    file = st.session_state[key]
    if file is None:
        return
    st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
    problem = f"{_PROBLEM} {page.kind.name}"
    st.session_state.pop(problem, None)
    try:
        open_text(page, file.read(LARGEST_FILE + 1))
    except DpvizError as error:
        st.session_state[problem] = str(error)


def open_text(page: FamilyState, body: bytes) -> None:
    """Set a page by a configuration, all or nothing.

    Args:
        page: state of the page.
        body: the TOML.

    Raises:
        DpvizError: it is no configuration of a release for this page, or says what the page cannot show; nothing has changed.
    """
    refuse_in_class("configurations to open")
    page.replace(read_toml(body, page.page))
    st.session_state[REFUSED] = {}


def say_other_files(page: FamilyState, name: str) -> None:
    """Say which file an opened configuration is for, if another one was chosen."""
    config = opened_files(page.draft)
    if config is not None and not names_files(page.draft, name):
        wanted = file_name(config.data.files[0])
        st.caption(f":orange[The opened configuration is for {markdown(wanted)}: columns and unit are filled in once you choose it.]")


def offer_path(page: FamilyState) -> None:
    """Offer the path of the opened configuration, which is read only once it is chosen or typed."""
    config = opened_files(page.draft)
    if config is None or page.draft.path:
        return
    path = config.data.files[0]
    is_whole = PurePath(path).is_absolute()
    st.caption(f"The opened configuration names {markdown(path)}: {'press to read it' if is_whole else 'type where it is'}.")
    if is_whole:
        key = f"offered {page.prefix}path"
        st.button(f"Read {markdown(path)}", key=key, on_click=carry_out(lambda: page.set("draft", path=path)))
