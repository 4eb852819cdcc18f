"""What Teach says beside a release that is not private: which attack breaks the method, and which ε makes a private one as useful."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from dpviz.amounts import format_decimal
from dpviz.lessons import LESSONS
from dpviz.mechanisms import AnyMechanism
from dpviz.publishing.dry_run import LARGEST, SMALLEST, WantedError, compute_error
from dpviz.view.escape import markdown

_STEPS = 10  # bisections of the logarithm of ε, which determine it to about 1 %
_LESSON_TITLES = {lesson.key: lesson.title for lesson in LESSONS}


def show_contrast(mechanism: type[AnyMechanism], useful: str, whose: str = "") -> None:
    """Show why a method is not private, with the lesson in which the attack runs, and how useful it is.

    Args:
        mechanism: the method.
        useful: a sentence on how useful it is; "" for none.
        whose: the map that shows it; "" if there is only one run.
    """
    name = f"{markdown(whose)}: " if whose else ""
    lesson = f" Try it in Learn: {link_to_lesson(mechanism.lesson)}." if mechanism.lesson in _LESSON_TITLES else ""
    st.markdown(f"{name}:orange[**NOT PRIVATE**]: {markdown(mechanism.attack)}{lesson} {markdown(useful)}")


def link_to_lesson(key: str) -> str:
    """Return a Markdown link to a lesson, with its title."""
    return f"[{markdown(_LESSON_TITLES[key])}](learn?stop={markdown(key)})"


def compare_with_private(private: AnyMechanism, data: Any, wanted: WantedError, where: str, unit: str) -> str:
    """Write at which ε a private mechanism has the same error as a contrast. The answer is kept in the session.

    Args:
        private: the mechanism, whose error is that of its noise alone.
        data: points or trips; their frame, unit and bound per person are used.
        wanted: the measured error of the contrast, and its level.
        where: the parts whose error it is, such as "squares of level 6".
        unit: what is counted, in the plural.
    """
    if not wanted.error > 0:
        return f"It has no error at {where}: no ε makes {private.title} as exact, since a private count must be able to differ."
    kept: dict[object, float] = st.session_state.setdefault("equal epsilons", {})
    question = (id(data), private, wanted.error, wanted.level, wanted.delta)
    if question not in kept:
        kept[question] = find_equal_epsilon(private, data, wanted)
    return f"At {where} its typical error is {format_decimal(wanted.error, 2)} {unit}: {_write_equal(private.title, kept[question])}."


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
    return f"about as useful as {title} at ε {format_decimal(epsilon, 2)}, which is private"
