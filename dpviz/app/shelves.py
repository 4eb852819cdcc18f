"""Where results are laid that must not be lost: plain objects in the session, taken out before anything is spent.

A click while a draw is being made stops the run that makes it at its next call into Streamlit, and each look into the session state is
such a call. So a run takes its shelf out first, and once something is spent it only appends to it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import streamlit as st


def shelf(key: str, most: int = 1) -> deque[Any]:
    """The shelf of this session with that name; nothing that is appended to it later touches the session state.

    Args:
        key: in session state.
        most: what it holds; the oldest goes first.
    """
    if key not in st.session_state:
        st.session_state[key] = deque(maxlen=most)
    return st.session_state[key]  # type: ignore[no-any-return]


def newest(key: str) -> Any:
    """What was laid on a shelf last; None if nothing was."""
    found = tuple(st.session_state.get(key, ()))
    return found[-1] if found else None
