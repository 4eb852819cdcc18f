"""What is paid for, as the ledger and the disk know it: releases that wait to be published, and the list of all draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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


def show_releases(place: DeltaGenerator, made: Mapping[int, PaidRelease], dataset: str) -> None:
    """Show how a release is published: one of this page, or one that was paid for before, in any session on this computer.

    Earlier ones are found by the exact name of their dataset: users who do not know it see nothing of them.

    Args:
        place: where the release is shown; the field for the name of its dataset stands right here.
        made: what the last press paid for, by the numbers of the payments, the newest first.
        dataset: name of the dataset on the page; "" while it has no account.
    """
    with st.expander("Earlier releases"):
        help_text = "Releases that were paid for before, in any session on this computer, are found by the exact name of their dataset."
        typed = str(st.text_input("Of the dataset named", key="earlier dataset", help=help_text) or "").strip()
        datasets = {dataset, typed} - {""}
        show_all_draws(datasets)
    with place:
        paid = _choose_release(made, datasets)
        if paid is not None:
            show_bundle(paid)


def _choose_release(made: Mapping[int, PaidRelease], datasets: set[str]) -> PaidRelease | None:
    """Ask which release is published, where several wait, and show one that is not on the page; None if there is none."""
    waiting = {entry.id: entry for entry in find_kept(datasets)}
    numbers = list({**made, **waiting})
    recovered: dict[int, PaidRelease] = st.session_state.setdefault("recovered draws", {})
    if not numbers:  # one that was published since the page was loaded anew
        return next((paid for paid in reversed(recovered.values()) if paid.account.name in datasets and is_published(paid)), None)
    number = numbers[0]
    if len(numbers) > 1:
        shown = {each: _describe(waiting[each]) if each in waiting else f"Draw {each:d}, on this page" for each in numbers}
        number = st.selectbox("Release", numbers, key="kept draw", format_func=shown.__getitem__)
    if number in made:
        return made[number]
    try:
        kept = recovered.get(number)
        if kept is None or kept.kept is None or not kept.kept.exists():
            recovered[number] = recover(number, open_ledger())
    except DpvizError as error:
        show_error(str(error))
        return None
    verdict_row(recovered[number].release)
    show_paid_map(recovered[number].release, number)
    return recovered[number]


def find_kept(datasets: set[str]) -> list[Entry]:
    """Find the payments for these datasets whose releases are kept on the disk, newest first.

    Without a ledger that can be read, none are found: the account block says why.
    """
    try:
        return [entry for account, entry in reversed(kept_draws(open_ledger())) if account.name in datasets]
    except DpvizError:
        return []


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
    except DpvizError:  # the account block says why
        return
    for number in sorted({row["draw"] for row in rows} & set(lost)):
        st.caption(markdown(lost[number]))
    if rows:
        show_table(pd.DataFrame(rows).sort_values("draw", ascending=False))
