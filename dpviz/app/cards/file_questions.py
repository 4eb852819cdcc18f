"""What is asked of files of records on Points, Trips and Areas: whom to protect, what to do with bad rows, and whether they are public."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.cards.cards import Cards
from dpviz.app.cards.chosen_files import ChosenFiles
from dpviz.app.cards.unit import UnitQuestion, show_repeated, unit_controls
from dpviz.app.session import cached
from dpviz.app.session.page_data import PageData
from dpviz.app.session.page_state import FamilyState
from dpviz.app.state.values import CURATE
from dpviz.view.escape import markdown


def ask_whom(page: FamilyState, question: UnitQuestion, person: str | None, cards: Cards) -> dict[str, Any] | None:
    """Ask whom a release protects, and point at a column of persons.

    Args:
        page: state of the page.
        question: what is asked.
        person: the column that looks like one of persons; None if there is none.
        cards: the question stands in the first one.

    Returns:
        As of `unit_controls`.
    """
    with cards.whom:
        unit = unit_controls(page, question, cards)
        if person is not None and "person" not in (unit or ()):
            text = f"There is a column *{markdown(person)}*: choose it above to protect persons, not {question.noun}s."
            st.caption(f":orange[{text}]")
    return unit


def leave_out_bad_rows(page: FamilyState, fault: str) -> str:
    """Ask whether bad rows are left out; return the option `bad_rows` of a count. `fault` says what is wrong with a cell of such a row."""
    text = f"Rows with {fault} cell. Off: the file is refused if there is one."
    st.toggle("Leave out bad rows", help=text, **page.widget("files", "drop_bad_rows", f"{page.prefix}drop"))
    return page.draft.files.bad_rows


def are_public(page: FamilyState, digest: str) -> bool:
    """In Teach ask whether the files are public, and return the answer; in Curate they are private, and nothing is asked."""
    if page.draft.mode == CURATE or st.checkbox("These data are already public", key=f"public {digest}", persist_state="session"):
        return True
    st.info("Teach shows the truth beside the release. Confirm that the data are public, or switch to Curate.")
    return False


def show_repeats(
    page: FamilyState, chosen: ChosenFiles[Any, Any], data: PageData[Any], used: tuple[str, ...], noun: str, cards: Cards
) -> None:
    """In Curate offer to search for columns that look like ids, for files of which each row counts as a person.

    Args:
        page: state of the page.
        chosen: the files.
        data: as loaded.
        used: columns that say where a row belongs, or how often it counts.
        noun: what a row is: "record" or "trip".
        cards: it stands in the first one.
    """
    if page.draft.mode == CURATE:
        with cards.whom:
            show_repeated(data, lambda: cached.find_id_columns(f"{chosen.digest} {chosen.written}", used, chosen.found()), noun)
