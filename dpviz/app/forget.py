"""Forget my data: everything of this session goes, the ledger stays."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpviz.app import cached

_DONE = "forgotten"


def forget_button(key: str) -> None:
    """The button that makes the session forget; `key` is the page's."""
    with st.container(horizontal=True, horizontal_alignment="right"):
        st.button(
            "Forget my data",
            key=f"forget {key}",
            on_click=forget,
            help="Removes uploads, draws and whatever was typed from this session. What was spent stays in the ledger.",
        )


def forget() -> None:
    """Remove everything of this session: uploaded files, counts, draws, caches, what was typed, and the address' parameters."""
    st.session_state.clear()
    cached.forget()
    st.query_params.clear()
    here = get_script_run_ctx()
    if here is not None:
        here.uploaded_file_mgr.remove_session_files(here.session_id)
    st.session_state[_DONE] = True


def forgotten() -> bool:
    """Right after forgetting, say so instead of drawing the page: its widgets go, and with them what the browser kept of them."""
    if not st.session_state.pop(_DONE, False):
        return False
    here = get_script_run_ctx()
    if here is not None:  # what Streamlit keeps of widgets that are gone: their names, and functions that hold the draws they offered
        here.session_state._state._new_widget_state.widget_metadata.clear()  # noqa: SLF001
    st.success(
        "Forgotten: the uploads, counts, draws and texts of this session are gone from the app's memory. What was spent stays in the"
        " ledger. Files that you downloaded, and other tabs, are not touched."
    )
    st.button("Start again", type="primary")
    return True
