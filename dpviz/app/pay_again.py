"""The second choice before a dataset is paid for once more, while a release of it waits or was made in this session."""

from __future__ import annotations

import streamlit as st

from dpviz.app.ledger import session_draws
from dpviz.app.paid_list import find_kept


def choose_again(dataset: str) -> bool:
    """Ask whether another release is paid for; True at once for a dataset without a release that waits or was made in this session."""
    waiting, made = _draws_of(dataset)
    if not made:
        return True
    others = waiting - set(_made_in_session(dataset))
    if others:
        text = (
            "1 release of these data is paid for and waits"
            if len(others) == 1
            else f"{len(others):,} releases of these data are paid for and wait"
        )
        st.info(f"{text} on this computer: publish it below or on the Release page, and nothing more is paid.")
    label = "Pay once more: the release below stays, and this is another one" if not others else "Pay once more, for another release"
    return st.checkbox(label, key=_key(made))


def is_repeat(dataset: str) -> bool:
    """Return whether a release of this dataset is there, and another one has not been asked for."""
    _, made = _draws_of(dataset)
    return bool(made) and not st.session_state.get(_key(made), False)


def _draws_of(dataset: str) -> tuple[set[int], set[int]]:
    """Return the numbers of the draws that wait on the disk, and of all that wait or were made in this session."""
    waiting = {entry.id for entry in find_kept(set(), {dataset})}
    return waiting, waiting | set(_made_in_session(dataset))


def _made_in_session(dataset: str) -> list[int]:
    return [each.paid.entry for each in session_draws().kept if each.paid.account.name == dataset]


def _key(numbers: set[int]) -> str:
    return f"pay again {max(numbers)}"
