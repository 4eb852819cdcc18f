"""The question whom a release protects: each person, by a column and a bound, or each record. In Curate nothing is preselected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import WHOM, Cards
from dpviz.app.components.fields import Field, in_range
from dpviz.app.session.ledger import IdentifiedData, record_public_look, record_search
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import name_content, widget_for
from dpviz.app.state.values import EVERY_ROW, MOST_PER_PERSON, PERSON, VOUCHED
from dpviz.data.reading.inspect import MOST_SHOWN, RepeatedColumn
from dpviz.publishing.private_data import PrivateData, left_out
from dpviz.view.escape import markdown


@dataclass(frozen=True, kw_only=True)
class UnitQuestion:
    """The question whom the release of a file protects, with what its widgets need.

    Attributes:
        noun: what a row is: "record" or "trip".
        columns: columns that may identify the person of a row; empty for a wide matrix.
        key: ending of the keys of its widgets: the mode and the file.
        place: in what records are counted.
        slot: what records are counted by beside the place, such as "hour"; "" for nothing.
    """

    noun: str
    columns: Sequence[str]
    key: str
    place: str = "cell"
    slot: str = ""

    def titles(self) -> dict[str, str]:
        """Return the possible answers by key, each with the text that is shown."""
        noun, answers = self.noun, {}
        if self.columns:
            answers[PERSON] = f"Each person: a column says whose {noun} a row is"
        if noun == "trip":
            answers[VOUCHED] = "Each person: I vouch for how many trips one has at most"
        return answers | {EVERY_ROW: f"Each {noun} is its own person"}


def unit_controls(page: FamilyState, question: UnitQuestion, cards: Cards) -> dict[str, Any] | None:
    """Ask whom to protect.

    Args:
        page: state of the page.
        question: what is asked.
        cards: says what is missing.

    Returns:
        Options of the count, as far as they were chosen: person, contributions, per_slot, distinct, exactly. None while an answer is
        missing.
    """
    titles, key, noun, mode = question.titles(), question.key, question.noun, page.draft.mode
    answer = page.draft.files.whom_in(mode)
    chosen = answer if answer in titles else None  # an opened configuration may name persons where this is a matrix

    def take(whom: str) -> None:
        page.keep_files(page.draft.files.protecting(whom, mode, question.columns))

    shown = widget_for(f"unit {key}", chosen, take)
    st.radio("Whom to protect", list(titles), None, format_func=titles.__getitem__, **shown)
    if chosen is None:
        cards.ask(WHOM, "Say whom the release protects: nothing is preselected.")
        return None
    if chosen == EVERY_ROW:
        return {}
    person, enforced = page.draft.files.data.person, chosen == PERSON
    person = person if person in question.columns else None
    if enforced:
        shown = page.widget("data", "person", f"person {key}", show=lambda _: person)
        st.selectbox("Person", question.columns, None, placeholder="Choose the column", **shown)
    most = _bound_field(page, question, enforced=enforced)
    per_slot = _slot_field(page, question) if enforced and question.slot else None
    if most is None or (enforced and person is None):
        request = "Choose the column of persons, and say" if enforced else "Say"
        cards.ask(WHOM, f"{request} the most {noun}s of one person that count.")
        return None
    if enforced and question.slot and per_slot is None:
        cards.ask(WHOM, f"Say the most {noun}s of one person that count in each {question.slot}.")
        return None
    options: dict[str, Any] = {"person": person} if enforced else {}
    options |= {} if per_slot is None else {"per_slot": per_slot}
    return {**options, "contributions": most, **dict.fromkeys(_further_controls(page, question, most, enforced=enforced), True)}


def _bound_field(page: FamilyState, question: UnitQuestion, *, enforced: bool) -> int | None:
    """Ask for the most records of one person; return None until a valid number is typed.

    Args:
        page: state of the page.
        question: the question whose widgets are shown.
        enforced: whether further records are left out; otherwise the curator vouches that no person has more.
    """
    label = f"{question.noun.capitalize()}s per person, at most"
    help_text = f"{question.noun.capitalize()}s beyond it are left out, chosen at random."
    help_text = f"{help_text if enforced else 'It is not enforced: you vouch for it.'} The noise grows with it."
    within = in_range(label, 1, MOST_PER_PERSON, optional=True)
    typed = Field.of(page, "data", "contributions", key=f"contributions {question.key}", label=label, problem=within)
    return typed.value if typed.show(st.number_input, value=None, step=1, help=help_text) else None


def _slot_field(page: FamilyState, question: UnitQuestion) -> int | None:
    """Ask for the most records of one person in each slot; return None until a valid number is typed."""
    label = f"{question.noun.capitalize()}s per person in each {question.slot}, at most"
    text = "Over all regions; others are left out, chosen at random. It lowers Gaussian noise (ε and δ); under ε alone it lowers none."
    within = in_range(label, 1, MOST_PER_PERSON, optional=True)
    typed = Field.of(page, "data", "per_slot", key=f"per slot {question.key}", label=markdown(label), problem=within)
    shown = typed.show(st.number_input, value=None, step=1)
    st.caption(text)
    return typed.value if shown else None


def _further_controls(page: FamilyState, question: UnitQuestion, most: int, *, enforced: bool) -> list[str]:
    """Ask whether a person's records count once per cell or pair, and whether everybody has exactly the bound; list what holds."""
    said = []
    if enforced:
        if question.noun == "trip":
            label, where, kept = "Each person once per pair", "between two regions", "pairs"
        else:
            label, where, kept = f"Each person once per {question.place}", f"in a {question.place}", f"{question.place}s"
        help_text = f"However many {question.noun}s a person has {where}, they count as one; at most that many {kept} are kept."
        said += ["distinct"] if st.toggle(label, help=help_text, **page.widget("data", "distinct", f"distinct {question.key}")) else []
    if question.noun == "trip" and most > 1:
        exact_help = "Needed for bounded neighbours: replacing a person must leave the total as it is."
        label, shown = "Everybody has exactly that many", page.widget("data", "exactly", f"exactly {question.key}")
        said += ["exactly"] if st.toggle(label, help=exact_help, **shown) else []
    return said


def describe_left_out(counts: PrivateData) -> list[str]:
    """Write how many rows were left out, and why, in sentences; none if all were counted. CURATOR ONLY."""
    return [note for note in (left_out(counts), *getattr(counts, "notes", ())) if note]


def show_left_out(data: IdentifiedData, notes: Sequence[str]) -> None:
    """Show what was left out of private data, as `describe_left_out` writes it, once that is wanted; the ledger records it."""
    text = "How many rows were left out, and why. They come from the private data: the ledger records the look."
    key = f"left out {name_content(data.digest)}"
    if st.toggle("Show what was left out", key=key, help=text, persist_state="session") and record_public_look(data):
        for note in notes or ["nothing was left out."]:
            st.caption(f"Curator only: {markdown(note)}")


def show_repeated(data: IdentifiedData, search: Callable[[], Sequence[RepeatedColumn] | None], noun: str) -> None:
    """If the curator asks for it, show which columns look like ids, where each row counts as a person. The search is recorded first.

    Args:
        data: data as loaded.
        search: finds the columns whose values repeat; it returns None if no column can be searched.
        noun: what a row is.
    """
    text = "Counts the distinct values of the other columns, to find persons with several rows. The ledger records the search."
    asked = st.toggle("Search the other columns for persons", key=f"search {name_content(data.digest)}", help=text, persist_state="session")
    if not asked or not record_search(data):
        return
    columns = search()
    if not columns:
        st.caption("Curator only: no other column's values repeat as ids do. That the columns were searched is recorded.")
        return
    shown = "\n".join(f"- *{markdown(column.name)}*: {column.consequence}" for column in columns[:MOST_SHOWN])
    more = len(columns) - MOST_SHOWN
    st.warning(
        f"Curator only: is one of these columns a person, a household or a vehicle? Then choose it above.\n{shown}"
        + (f"\n- {more} more with values that repeat" if more > 0 else "")
    )
    st.caption(f"If none of them is, each {noun} is its own person. That the columns were searched is recorded.")
