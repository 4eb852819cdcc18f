"""Fields that the server checks. A value that does not fit stays in its field with a message, and locks the page's button.

A browser that knows a field's limits sends no value beyond them: it would show the new value while the app uses the old one. So fields
have no limits in the browser, and the server checks every value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.app.session.page_state import Convert, FamilyState
from dpviz.app.session.widgets import carry_out, is_older_value, show_error, show_value
from dpviz.errors import DpvizError
from dpviz.view.escape import markdown

REFUSED, PROBLEMS = "refused fields", "field problems"  # keys of the session's state
Problem = Callable[[Any], str | None]


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field for a part of the configuration; a value that does not fit stays in the field, and the configuration does not change.

    Attributes:
        key: key of the widget.
        label: label of the widget, and name of the field in messages.
        value: the present value in the configuration, as the widget shows it.
        problem: returns why a typed value does not fit; None if it fits.
        use: stores in the configuration a typed value that fits.
    """

    key: str
    label: str
    value: Any
    problem: Problem
    use: Callable[[Any], object]

    @classmethod
    def of(
        cls, page: FamilyState, holder: str, part: str, *, key: str, label: str, problem: Problem, take: Convert = lambda typed: typed
    ) -> Field:
        """Return the field of a part of a page, as of `FamilyState.part`; `take` returns the value for what was typed."""
        value = page.part(holder, part)
        return cls(key=key, label=label, value=value, problem=problem, use=lambda typed: page.set(holder, **{part: take(typed)}))

    def show(self, widget: Callable[..., object], **options: Any) -> bool:
        """Show the widget and, if its value is refused, the reason below it; return whether the value is used.

        Args:
            widget: `st.number_input` or `st.text_input`, of any container.
            options: further arguments of the widget.
        """
        refused_values = _refused_values()
        value_when_refused, typed = refused_values.get(self.key, (self.value, self.value))
        if value_when_refused != self.value:  # the configuration has changed elsewhere since then
            refused_values.pop(self.key)
            typed = self.value
        show_value(self.key, typed)
        widget(self.label, key=self.key, on_change=carry_out(self._receive), **options)
        return show_problem(self.key, self.problem(typed) if self.key in refused_values else None)

    def _receive(self) -> None:
        """Use what was typed, or keep it as refused."""
        if is_older_value(self.key, times=2.5):  # a slider may show the same value: while it moves, a slow browser sends texts of before
            return
        typed = st.session_state[self.key]
        if typed == self.value and self.key not in _refused_values():
            return  # nobody typed it: the browser only sends back what the page showed, and a slider may have moved on since
        if self.problem(typed) is None:
            _refused_values().pop(self.key, None)
            self.use(typed)
        else:
            _refused_values()[self.key] = (self.value, typed)


def start_checks() -> None:
    """Clear the problems of all fields, since fields may no longer be shown; called before a page's controls."""
    st.session_state[PROBLEMS] = {}


def show_problem(key: str, problem: str | None) -> bool:
    """If a field has a problem, show it and lock the page's button; return whether the field is free of problems."""
    problems: dict[str, str] = st.session_state.setdefault(PROBLEMS, {})
    problems.pop(key, None)
    if problem is not None:
        problems[key] = problem
        show_error(problem)
    return problem is None


def show_lock() -> bool:
    """Return whether a field of the page has a problem; if so, show beside the button why the button is locked."""
    problems: dict[str, str] = st.session_state.get(PROBLEMS, {})
    if problems:
        first, *others = problems.values()
        st.caption(f":red[Locked. {markdown(first)}{f' {len(others)} more to correct.' if others else ''}]")
    return bool(problems)


def in_range(label: str, low: float | None = None, high: float | None = None, *, optional: bool = False) -> Problem:
    """Return a check that a number lies in a range, both ends included; `optional` lets an empty field pass.

    >>> in_range("Size", 1, 1000)(0)
    'Size must be a number from 1 to 1,000.'
    """
    ends = [*([f"from {_format_number(low)}"] if low is not None else []), *([f"to {_format_number(high)}"] if high is not None else [])]

    def problem(typed: Any) -> str | None:
        if typed is None and optional:
            return None
        if typed is not None and (low is None or typed >= low) and (high is None or typed <= high):
            return None
        return " ".join([f"{label} must be a number", *ends]) + "."

    return problem


def at_most(label: str, most: int) -> Problem:
    """Return a check that a text is not too long.

    >>> at_most("Name", 3)("Rosa")
    'Name: at most 3 characters; these are 4.'
    """
    return lambda typed: f"{label}: at most {most:,} characters; these are {len(typed):,}." if len(typed or "") > most else None


def problem_with(make: Callable[[], object]) -> str | None:
    """Call `make`; return the text of the `DpvizError` that it raises, None if it raises none."""
    try:
        make()
    except DpvizError as error:
        return str(error)
    return None


def _refused_values() -> dict[str, tuple[Any, Any]]:
    """Return the refused values by the widget's key: the configuration's value at that time, and what was typed."""
    return st.session_state.setdefault(REFUSED, {})  # type: ignore[no-any-return]


def _format_number(number: float) -> str:
    return f"{number:,.12g}"
