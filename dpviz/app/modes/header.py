"""What first rows of pages share: Teach or Curate, what is protected, the switch to the truth, and the button that forgets the session."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpviz.app.cards.cards import FILES
from dpviz.app.server.class_mode import is_class
from dpviz.app.session import cached, drafts
from dpviz.app.session.ledger import LoadedData
from dpviz.app.session.page_state import FamilyState, truth_key, truth_wanted
from dpviz.app.session.widgets import widget_for
from dpviz.app.state.values import CURATE, TEACH
from dpviz.mechanisms import AnyMechanism

_FORGOTTEN = "forgotten"
_STAMP = """<style>
.st-key-map { position: relative; }
.st-key-map::after { content: "STAMP"; position: absolute; inset: 0; z-index: 1;
  pointer-events: none; display: flex; align-items: center; justify-content: center; font-size: 5rem; font-weight: 700;
  letter-spacing: 0.3rem; rotate: -20deg; opacity: 0.3; }
.st-key-figures { border-left: 4px dashed #d55e00; padding-left: 0.8rem; }
.st-key-figures::before { content: "STAMP: WHY"; font-size: 0.8rem; font-weight: 700; color: #d55e00; }
</style>"""
WATERMARK = _STAMP.replace("STAMP", "CURATOR ONLY").replace("WHY", "what follows is computed from the true data")
NOT_PRIVATE = _STAMP.replace("STAMP", "NOT PRIVATE").replace("WHY", "a reference that shows what privacy costs; never to be published")
CONTRAST = _STAMP.replace("STAMP", "NOT PRIVATE").replace("WHY", "a contrast without a budget; never to be published")


def not_private_stamp(mechanism: type[AnyMechanism]) -> str:
    """Return the stamp of a release that is not private."""
    return NOT_PRIVATE if mechanism.spends else CONTRAST


def describe_unprotected(mechanism: type[AnyMechanism]) -> str:
    """Write, in place of what a release protects, that a reference protects nothing by a budget."""
    if mechanism.spends:
        return "**NOT PRIVATE:** the chosen reference protects nothing. It shows what privacy costs."
    return "**NOT PRIVATE:** no budget bounds what the chosen method reveals. It is here as a contrast."


NO_EXPORT = """<style>:is(.st-key-figures, .st-key-map) [data-testid="stElementToolbar"]:not(:has([aria-label*="ullscreen"])) {
  display: none; }</style>"""


_PRESENT = """<style>
html { font-size: 19px !important; --dpviz-header: 0rem !important; --dpviz-status: 2.6rem !important; --dpviz-rail: 11rem !important;
  --dpviz-icons: 0rem !important; }
[data-testid="stHeader"] { display: none !important; }
@media (min-width: 901px) { .st-key-first-row { top: auto !important; bottom: 0; right: 1rem !important; height: 2.6rem !important; } }
</style>"""


def present_button(page_state: FamilyState) -> None:
    """Show the button that switches to large type without header and drawers, and back."""
    presents = page_state.view.present
    st.button(
        "Back to the controls" if presents else "Present",
        key="present",
        help="Usual type, with header and drawers." if presents else "Large type for a projector, without header and drawers.",
        on_click=lambda: page_state.look(present=not presents),
    )
    if presents:
        st.html(_PRESENT)


def forget_button(key: str) -> None:
    """Show the button that makes the session forget its data; `key` is the page's name in the key of the button."""
    help_text = "Removes uploads, draws and whatever was typed from this session. What was spent stays in the ledger."
    st.button("Forget my data", key=f"forget {key}", on_click=forget, help=help_text)


def forget() -> None:
    """Remove everything of this session: uploaded files, counts, draws, caches, typed texts, and the address' parameters."""
    drafts.discard_if_any()
    st.session_state.clear()
    cached.forget()
    st.query_params.clear()
    context = get_script_run_ctx()
    if context is not None:
        context.uploaded_file_mgr.remove_session_files(context.session_id)
    st.session_state[_FORGOTTEN] = True


def show_forgotten() -> bool:
    """Show a note instead of the page right after the session has forgotten its data; return whether that was the case.

    While the page is not shown, the browser removes its widgets and the values that it kept for them.
    """
    if not st.session_state.pop(_FORGOTTEN, False):
        return False
    context = get_script_run_ctx()
    if context is not None:  # Streamlit keeps names of widgets that are gone, and their functions, which may hold draws
        context.session_state._state._new_widget_state.widget_metadata.clear()  # noqa: SLF001
        context.session_state._state._key_id_mapper.clear()  # noqa: SLF001
    st.success(
        "Forgotten: the uploads, counts, draws and texts of this session are gone from the app's memory. What was spent stays in the"
        " ledger. Files that you downloaded, and other tabs, are not touched."
    )
    st.button("Start again", type="primary")
    return True


def mode_switch(page_state: FamilyState) -> None:
    """Show the switch between Teach and Curate; a class has Teach alone."""
    if is_class():
        return

    def take(mode: str) -> None:
        page_state.change(draft={"mode": mode})
        page_state.look(drawer=FILES if mode == CURATE else "")

    shown = widget_for("mode", page_state.draft.mode, take)
    st.segmented_control("Mode", (TEACH, CURATE), required=True, label_visibility="collapsed", **shown)


def first_row(page_state: FamilyState) -> DeltaGenerator:
    """Show the first row, which begins with the switch of the mode; return it for what else belongs there.

    It is always there: if it changed its place, the browser would build the maps below it anew.
    """
    row = st.container(horizontal=True, vertical_alignment="center", key="first row")
    if page_state.draft.mode == CURATE or not page_state.view.present:
        with row:
            mode_switch(page_state)
    return row


def truth_switch(data: LoadedData) -> None:
    """Show the switch for a dataset's truth, with a warning."""
    left, right = st.columns([1, 4], vertical_alignment="center")
    left.toggle("Show curator-only truth", key=truth_key(data), persist_state="session")
    if truth_wanted(data):
        warning = (
            "**CURATOR ONLY.** Choosing settings by the truth leaks, and ε does not cover that."
            " The ledger records that the truth was looked at."
        )
        right.caption(f":orange[{warning}]")
