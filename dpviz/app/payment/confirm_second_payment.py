"""The second choice before a dataset is paid for once more, whoever paid before: this session, another one, or the command line."""

from __future__ import annotations

import streamlit as st

from dpviz.app.payment.paid_list import find_kept
from dpviz.privacy.accounts import Account

_GROUPS = (
    "If this file has another group than the last one, such as the other sex: on *Areas*, one release counts groups by category, each with"
    " all of its ε, and they add up."
)


def choose_again(account: Account) -> bool:
    """Ask whether another release is paid for; True at once for a dataset that nothing was paid for yet."""
    if not account.draws:
        return True
    waiting = len(find_kept({account.name}))
    if waiting:
        text = (
            "1 release of these data is paid for and waits" if waiting == 1 else f"{waiting:,} releases of these data are paid for and wait"
        )
        st.caption(f"{text} on this computer: it can be published without paying again, under *How good*.")
    st.caption(_GROUPS)
    made = "one release of these data was" if account.draws == 1 else f"{account.draws:,} releases of these data were"
    return st.checkbox(f"Pay once more, for another release: {made} paid for before", key=_key(account))


def is_repeat(account: Account) -> bool:
    """Return whether something was paid for this dataset before, and another release has not been asked for."""
    return bool(account.draws) and not st.session_state.get(_key(account), False)


def _key(account: Account) -> str:
    return f"pay again {account.draws}"
