"""What Teach says beside a release that is not private: which attack breaks the method, and which ε makes a private one as useful."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dpviz.amounts import format_decimal
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import carry_out
from dpviz.app.state.view import Pane
from dpviz.lessons import LESSONS
from dpviz.mechanisms import AnyMechanism
from dpviz.mechanisms.contrasts import NO_BUDGET
from dpviz.privacy.budget import exact
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.dry_run import LARGEST, SMALLEST, WantedError, compute_error
from dpviz.view.escape import markdown

_STEPS = 10  # bisections of the logarithm of ε, which determine it to about 1 %
_LESSON_TITLES = {lesson.key: lesson.title for lesson in LESSONS}


@dataclass(frozen=True, kw_only=True)
class Equal:
    """How useful a contrast is, compared with a private mechanism.

    Attributes:
        text: a sentence.
        private: the private mechanism.
        epsilon: the ε at which it has the same error, to two digits; None if there is none in the range of the pages.
    """

    text: str
    private: AnyMechanism
    epsilon: float | None = None


def show_contrasts(page: FamilyState, shown: ShownRuns, private: AnyMechanism, wanted_of: Callable[[Any], tuple[WantedError, str]]) -> None:
    """Say of each run on the maps that is a contrast why it is not private, and which ε makes a private mechanism as useful.

    Args:
        page: state of the page.
        shown: the runs.
        private: the private mechanism.
        wanted_of: returns the error of a run that the private mechanism should have, and where it has it, as of `compare_with_private`.
    """
    for whose, what in shown.named():
        if (mechanism := type(what.draft.build())).attack:
            useful = compare_with_private(private, what.data.counts, *wanted_of(what), what.data.unit)
            show_contrast(page, mechanism, what.release.receipt, useful, whose)


def show_contrast(page: FamilyState, mechanism: type[AnyMechanism], receipt: Receipt, equal: Equal, whose: str = "") -> None:
    """Show why a method is not private, with the lesson in which the attack runs, what it does promise, and how useful it is.

    Args:
        page: state of the page.
        mechanism: the method.
        receipt: of its release, whose further notes are shown.
        equal: how useful it is.
        whose: the map that shows it; "" if there is only one run, which a private one as useful can then be put beside.
    """
    name = f"{markdown(whose)}: " if whose else ""
    lesson = f" Try it in Learn: {link_to_lesson(mechanism.lesson)}." if mechanism.lesson in _LESSON_TITLES else ""
    notes = [note for note in receipt.notes if note != NO_BUDGET and not note.startswith("NOT PRIVATE")]
    st.markdown(f"{name}:orange[**NOT PRIVATE**]: {markdown(mechanism.attack)}{lesson} {markdown(' '.join([*notes, equal.text]))}")
    if equal.epsilon is not None and not whose:
        text = f"Show {markdown(equal.private.title)} at ε {equal.epsilon:g} beside it"
        st.button(text, key=f"{page.prefix}equal", on_click=carry_out(lambda: _show_beside(page, equal)))


def _show_beside(page: FamilyState, equal: Equal) -> None:
    """Put the private mechanism on the left map, at the ε at which it is as useful."""
    first = page.page.draft.run
    epsilon, settings = exact(equal.epsilon, "ε"), equal.private.non_defaults()
    private = replace(first, mechanism=equal.private.key, settings=settings, epsilon=epsilon, rho=None)
    page.change(draft={"runs": (first, private)}, view={"panes": page.view.with_pane(0, Pane(run=1)), "edited": 0})


def link_to_lesson(key: str) -> str:
    """Return a Markdown link to a lesson, with its title."""
    return f"[{markdown(_LESSON_TITLES[key])}](learn?stop={markdown(key)})"


def compare_with_private(private: AnyMechanism, data: Any, wanted: WantedError, where: str, unit: str) -> Equal:
    """Find at which ε a private mechanism has the same error as a contrast. The answer is kept in the session.

    Args:
        private: the mechanism, whose error is that of its noise alone.
        data: points or trips; their frame, unit and bound per person are used.
        wanted: the measured error of the contrast, and its level.
        where: the parts whose error it is, such as "squares of level 6".
        unit: what is counted, in the plural.
    """
    if not wanted.error > 0:
        text = f"It has no error at {where}: no ε makes {private.title} as exact, since a private count must be able to differ."
        return Equal(text=text, private=private)
    kept: dict[object, float] = st.session_state.setdefault("equal epsilons", {})
    question = (id(data), private, wanted.error, wanted.level, wanted.delta)
    if question not in kept:
        kept[question] = find_equal_epsilon(private, data, wanted)
    epsilon = kept[question]
    text = f"At {where} its typical error is {format_decimal(wanted.error, 2)} {unit}: {_write_equal(private.title, epsilon)}."
    return Equal(text=text, private=private, epsilon=float(f"{epsilon:.2g}") if 0 < epsilon < math.inf else None)


def find_equal_epsilon(private: AnyMechanism, data: Any, wanted: WantedError) -> float:
    """Find the ε at which the expected error of a private mechanism is the wanted one, to about 1 %.

    Returns:
        ε; infinite if even `LARGEST` has a larger error, 0 if even `SMALLEST` has a smaller one.
    """
    low, high = math.log(SMALLEST), math.log(LARGEST)
    if compute_error(private, data, wanted, LARGEST) > wanted.error:
        return math.inf
    if compute_error(private, data, wanted, SMALLEST) < wanted.error:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if compute_error(private, data, wanted, math.exp(middle)) > wanted.error else (low, middle)
    return math.exp((low + high) / 2)


def _write_equal(title: str, epsilon: float) -> str:
    if not epsilon:
        return f"{title} is more useful even at ε {SMALLEST:g}"
    if math.isinf(epsilon):
        return f"{title} is less useful even at ε {LARGEST:g}"
    return f"about as useful as {title}, which is private, at ε {format_decimal(epsilon, 2)}"
