"""The question of a lesson: asked before the figure can be moved, with the answer after it, which the text under the figure explains."""

from __future__ import annotations

import streamlit as st

from dpviz.lessons.lesson import Lesson

_ANSWERS = "learn answers"


def is_asked_first(lesson: Lesson) -> bool:
    """Return whether the question is still open and the figure is as it began; a link with other settings has moved it already."""
    return bool(lesson.question) and not is_answered(lesson) and lesson == type(lesson)()


def is_answered(lesson: Lesson) -> bool:
    """Return whether a choice was made, or the question skipped."""
    return lesson.key in _answers()


def show_question(lesson: Lesson) -> None:
    """Ask the question of a lesson; once a choice is made, or the question is skipped, show the answer."""
    if not lesson.question:
        return
    key, answers = f"learn answer {lesson.key}", _answers()
    st.session_state[key] = answers.get(lesson.key)
    with st.container(key="learn-question"):
        st.markdown(f"**{lesson.question}**")
        st.radio(
            lesson.question,
            list(range(len(lesson.choices))),
            key=key,
            index=None,
            format_func=lambda choice: lesson.choices[choice],
            horizontal=True,
            label_visibility="collapsed",
            on_change=lambda: _take_answer(lesson.key, st.session_state[key]),
        )
        if is_answered(lesson):
            _show_answer(lesson, answers[lesson.key])
        else:
            st.button("Skip to the answer", key="learn skip", on_click=_take_answer, args=(lesson.key, None))


def _answers() -> dict[str, int | None]:
    """Return the choices of this session by the key of the lesson; None for a question that was skipped."""
    answers: dict[str, int | None] = st.session_state.setdefault(_ANSWERS, {})
    return answers


def _take_answer(key: str, choice: int | None) -> None:
    _answers()[key] = choice


def _show_answer(lesson: Lesson, choice: int | None) -> None:
    right = lesson.choices[lesson.right]
    if choice == lesson.right:
        st.success(f"**Yes: {right}.**", icon=":material/check_circle:")
    elif choice is None:
        st.info(f"**The answer: {right}.**", icon=":material/lightbulb:")
    else:
        st.info(f"**Not yet, though many believe it. The answer: {right}.**", icon=":material/lightbulb:")
