"""The question whom a release protects: each person, by a column and a bound, or each record. In Curate nothing is preselected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.app.cards.cards import WHOM, Cards
from dpviz.app.components.fields import in_range, show_problem
from dpviz.app.session.ledger import IdentifiedData, record_public_look, record_search
from dpviz.app.state.values import EVERY_ROW, MOST_PER_PERSON, PERSON, VOUCHED
from dpviz.data.reading.inspect import MOST_SHOWN, RepeatedColumn
from dpviz.view.escape import markdown


@dataclass(frozen=True, kw_only=True)
class UnitQuestion:
    """The question whom the release of a file protects, with what its widgets need.

    Attributes:
        noun: what a row is: "record" or "trip".
        columns: columns that may identify the person of a row; empty for a wide matrix.
        key: ending of the keys of its widgets: the mode and the file.
        private: True in Curate; in Teach, where data are public, each row is its own person unless something else is chosen.
        place: in what records are counted.
    """

    noun: str
    columns: Sequence[str]
    key: str
    private: bool
    place: str = "cell"

    def titles(self) -> dict[str, str]:
        """Return the possible answers by key, each with the text that is shown."""
        noun, answers = self.noun, {}
        if self.columns:
            answers[PERSON] = f"Each person: a column says whose {noun} a row is"
        if noun == "trip":
            answers[VOUCHED] = "Each person: I vouch for how many trips one has at most"
        return answers | {EVERY_ROW: f"Each {noun} is its own person"}


def unit_controls(question: UnitQuestion, cards: Cards) -> dict[str, Any] | None:
    """Ask whom to protect.

    Args:
        question: what is asked.
        cards: says what is missing.

    Returns:
        Options of the count, as far as they were chosen: person, contributions, distinct, exactly. None while an answer is missing.
    """
    titles, key, noun = question.titles(), question.key, question.noun
    answers = list(titles)
    preset = None if question.private else len(answers) - 1
    if st.session_state.get(f"unit {key}") not in (None, *answers):  # an opened configuration names persons, and this is a matrix
        del st.session_state[f"unit {key}"]
    chosen = st.radio("Whom to protect", answers, preset, format_func=titles.__getitem__, key=f"unit {key}", persist_state="session")
    if chosen is None:
        cards.ask(WHOM, "Say whom the release protects: nothing is preselected.")
        return None
    if chosen == EVERY_ROW:
        return {}
    options: dict[str, Any] = {}
    if chosen == PERSON:
        if st.session_state.get(f"person {key}") not in (None, *question.columns):  # an opened configuration names it
            st.session_state.pop(f"person {key}", None)
        options["person"] = st.selectbox(
            "Person",
            question.columns,
            index=0 if len(question.columns) == 1 else None,
            key=f"person {key}",
            placeholder="Choose the column",
            persist_state="session",
        )
    most = _bound_field(question, enforced=chosen == PERSON)
    if most is None or (chosen == PERSON and options["person"] is None):
        request = "Choose the column of persons, and say" if chosen == PERSON else "Say"
        cards.ask(WHOM, f"{request} the most {noun}s of one person that count.")
        return None
    more_options = _further_controls(question, most, enforced=chosen == PERSON)
    return options | {"contributions": most} | {name: True for name, on in more_options.items() if on}


def _bound_field(question: UnitQuestion, *, enforced: bool) -> int | None:
    """Ask for the most records of one person; return None until a valid number is typed.

    Args:
        question: the question whose widgets are shown.
        enforced: whether further records are left out; otherwise the curator vouches that no person has more.
    """
    label, key = f"{question.noun.capitalize()}s per person, at most", f"contributions {question.key}"
    help_text = f"{question.noun.capitalize()}s beyond it are left out, chosen at random."
    most = st.number_input(
        label,
        value=None if question.private else 1,
        step=1,
        key=key,
        persist_state="session",
        help=f"{help_text if enforced else 'It is not enforced: you vouch for it.'} The noise grows with it.",
    )
    return most if show_problem(key, in_range(label, 1, MOST_PER_PERSON, optional=True)(most)) else None


def _further_controls(question: UnitQuestion, most: int, *, enforced: bool) -> dict[str, Any]:
    """Ask whether a person's records count once per cell or pair, and whether everybody has exactly the bound."""
    options: dict[str, Any] = {}
    if enforced:
        if question.noun == "trip":
            label, where, kept = "Each person once per pair", "between two regions", "pairs"
        else:
            label, where, kept = f"Each person once per {question.place}", f"in a {question.place}", f"{question.place}s"
        help_text = f"However many {question.noun}s a person has {where}, they count as one; at most that many {kept} are kept."
        options["distinct"] = st.toggle(label, key=f"distinct {question.key}", persist_state="session", help=help_text)
    if question.noun == "trip" and most > 1:
        exact_help = "Needed for bounded neighbours: replacing a person must leave the total as it is."
        label = "Everybody has exactly that many"
        options["exactly"] = st.toggle(label, key=f"exactly {question.key}", persist_state="session", help=exact_help)
    return options


def show_left_out(data: IdentifiedData, notes: Iterable[str], *, private: bool) -> None:
    """Show how many rows were left out, and why. In Curate these are private numbers: they are shown once that is asked for and recorded.

    Args:
        data: data as loaded.
        notes: the sentences, empty ones are left out.
        private: whether the page is in Curate.
    """
    if private:
        text = "How many rows were left out, and why. They come from the private data: the ledger records the look."
        if not st.toggle(
            "Show what was left out", key=f"left out {data.digest}", help=text, persist_state="session"
        ) or not record_public_look(data):
            return
    said = [f"Curator only: {markdown(note)}" for note in notes if note]
    for sentence in said or (["Curator only: nothing was left out."] if private else []):
        st.caption(sentence)


def show_repeated(data: IdentifiedData, search: Callable[[], Sequence[RepeatedColumn] | None], noun: str) -> None:
    """If the curator asks for it, show which columns look like ids, where each row counts as a person. The search is recorded first.

    Args:
        data: data as loaded.
        search: finds the columns whose values repeat; it returns None if no column can be searched.
        noun: what a row is.
    """
    text = "Counts the distinct values of the other columns, to find persons with several rows. The ledger records the search."
    asked = st.toggle("Search the other columns for persons", key=f"search {data.digest}", help=text, persist_state="session")
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
