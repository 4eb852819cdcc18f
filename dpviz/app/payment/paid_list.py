"""What is paid for, as the ledger and the disk know it: releases that wait to be published, and the list of all draws."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dpviz.app.components.words import budget_words, show_table, verdict_row
from dpviz.app.payment.paid_map import show_paid_map
from dpviz.app.payment.release_files import is_published, show_bundle
from dpviz.app.session.ledger import open_ledger
from dpviz.app.session.widgets import show_error
from dpviz.errors import DpvizError
from dpviz.privacy.accounts import Entry
from dpviz.publishing.kept import describe_interrupted, kept_draws, recover, remove_interrupted
from dpviz.publishing.order import PaidRelease
from dpviz.view.escape import line, markdown

_KNOWN = "datasets of this session"


def ask_dataset() -> set[str]:
    """Ask of which dataset earlier draws are looked for: other users of the app see nothing of a dataset unless they know its name.

    Returns:
        Names of datasets: what was typed here, and those of this session's own data.
    """
    typed = st.text_input(
        "Earlier draws of the dataset named",
        key="earlier dataset",
        help="Draws that were paid for before, in any session on this computer, are found by the exact name of their dataset.",
    )
    return {str(typed or "").strip(), *st.session_state.get(_KNOWN, ())} - {""}


def know_dataset(name: str) -> None:
    """Note that this session has loaded the data of a dataset, so that its earlier draws are shown without asking for its name."""
    st.session_state.setdefault(_KNOWN, set()).add(name)


def find_kept(known: set[int], datasets: set[str]) -> list[Entry]:
    """Find the payments whose releases are kept on the disk, newest first.

    Args:
        known: numbers of payments that are left out, because the page has their releases already.
        datasets: names of the datasets that are looked for.

    Without a ledger that can be read, none are found: the account block says why.
    """
    try:
        kept = reversed(kept_draws(open_ledger()))
        return [entry for account, entry in kept if entry.id not in known and account.name in datasets]
    except DpvizError:
        return []


def show_kept(entries: list[Entry]) -> None:
    """Ask which kept release is published or discarded, and show how."""
    by_number = {entry.id: entry for entry in entries}
    number = st.selectbox("Draw", list(by_number), key="kept draw", format_func=lambda number: _describe(by_number[number]))
    if number not in by_number:
        return
    try:
        recovered: dict[int, PaidRelease] = st.session_state.setdefault("recovered draws", {})
        kept = recovered.get(number)
        if kept is None or kept.kept is None or not kept.kept.exists():
            recovered[number] = recover(number, open_ledger())
        paid = recovered[number]
    except DpvizError as error:
        show_error(str(error))
        return
    verdict_row(paid.release)
    show_paid_map(paid.release, number)
    show_bundle(paid)


def show_waiting(fingerprints: tuple[str, ...]) -> None:
    """Show on Curate how a release is published that was paid for before the page was loaded anew, and what was published since.

    Args:
        fingerprints: of the data, which are there again: by them the ledger finds the account, not by a name that was typed.
    """
    try:
        account = open_ledger().find_by_fingerprints(fingerprints)
    except DpvizError:  # the account block says why
        return
    if account is None:
        return
    if entries := find_kept(set(), {account.name}):
        show_kept(entries)
        return
    recovered = list(st.session_state.get("recovered draws", {}).values())
    published = [paid for paid in recovered if paid.account.name == account.name and is_published(paid)]
    if published:
        show_bundle(published[-1])


def _describe(entry: Entry) -> str:
    return f"Draw {entry.id:d}, {line(entry.time[:16].replace('T', ' '))}, {line(entry.mechanism)}, {budget_words(entry.budget)}"


def show_all_draws(datasets: set[str]) -> None:
    """List all draws of these datasets, published or not."""
    try:
        ledger = open_ledger()
        lost: dict[int, str] = st.session_state.setdefault("interrupted draws", {})
        lost.update({entry.id: describe_interrupted(account, entry) for account, entry in remove_interrupted(ledger, datasets)})
        waiting = {entry.id for _, entry in kept_draws(ledger)}
        rows: list[dict[str, Any]] = [
            {
                "draw": entry.id,
                "time (UTC)": entry.time[:16].replace("T", " "),
                "dataset": account.name,
                "mechanism": entry.mechanism,
                "spent": budget_words(entry.budget),
                "published": "published"
                if entry.published
                else "no, interrupted: nothing can be recovered"
                if entry.id in lost
                else "no, kept on this computer"
                if entry.id in waiting
                else "no",
            }
            for account in ledger.accounts()
            if account.name in datasets
            for entry in ledger.entries(account.name)
        ]
    except DpvizError as error:  # on the Release page nothing else may say that the ledger is missing, in use or damaged
        show_error(str(error))
        return
    for number in sorted({row["draw"] for row in rows} & set(lost)):
        st.caption(markdown(lost[number]))
    if rows:
        with st.expander(f"All draws that are paid for ({len(rows):,})"):
            show_table(pd.DataFrame(rows).sort_values("draw", ascending=False))
