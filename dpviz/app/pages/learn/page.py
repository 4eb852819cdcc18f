"""The Learn page: lessons on made-up data, each with a question, figures and a widget per setting, on a short and a long path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.code import show_code
from dpviz.app.pages.learn.controls import show_controls
from dpviz.app.pages.learn.path import current_lesson, is_at_the_beginning, page_was_shown, refused, show_walk, step_buttons, write_address
from dpviz.app.pages.learn.question import is_answered, is_asked_first, show_question
from dpviz.app.session.widgets import is_dark, show_refused_link
from dpviz.lessons.lesson import Lesson, LessonFigure
from dpviz.publishing.code import write_lesson_python
from dpviz.view.charts import picture
from dpviz.view.slides import Slide, draw_slide

_SHOWN = "learn shown"
_MIME = {"svg": "image/svg+xml", "png": "image/png"}

# After a change of lesson, scroll to its top, and move the keyboard focus to its heading unless the user is in another widget.
_TO_THE_TOP = """<script>
(() => {
  const stop = "STOP", before = window.dpvizStop;
  window.dpvizStop = stop;
  if (before === undefined || before === stop) return;
  document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
  const heading = document.querySelector(".st-key-learn-steps-top h2");
  const focused = document.activeElement;
  if (!heading || (focused !== document.body && !focused.closest('[class*="st-key-learn-steps"]'))) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
})();
</script>"""


def learn_page() -> None:
    """Show the page."""
    keep_empty = page_was_shown() and not st.query_params.to_dict()
    lesson = current_lesson()
    with st.sidebar:
        show_walk(lesson)
    write_address(lesson, plain=keep_empty and is_at_the_beginning(lesson))
    show_refused_link(refused())
    step_buttons(lesson, "top")
    show_question(lesson)
    if is_asked_first(lesson):
        shown = _compute_shown(lesson)
        _charts(lesson, shown.asked or shown.rows, columns=2)
        with st.container(horizontal=True, key="learn-take"):
            _slides(lesson, shown, shown.asked or shown.slide or shown.rows)
    else:
        _figure_to_move(lesson)
    if lesson.in_class:
        st.expander("In class: notes for the teacher", key="learn class").markdown(lesson.in_class)
    step_buttons(lesson, "bottom")
    st.html(_TO_THE_TOP.replace("STOP", lesson.key), unsafe_allow_javascript=True)


def _figure_to_move(lesson: Lesson) -> None:
    """Show the figures of a lesson beside the task and the widgets that move them, and below them the answer and the text."""
    left, right = st.columns([1, 3], gap="medium")
    with left, st.container(key="learn-controls"):
        st.markdown(f"**Try:** {lesson.task}")
        show_controls(lesson)
    with right, st.container(key="learn-figure"):
        shown = _compute_shown(lesson)
        _charts(lesson, shown.rows)
        _words(shown)
        if is_answered(lesson):
            st.markdown(lesson.answer)
        st.markdown(lesson.text)
        _downloads(lesson, shown)


def _compute_shown(lesson: Lesson) -> LessonFigure:
    """Return the charts and texts of the lesson, which are computed again only when the settings change."""
    cache: dict[str, tuple[Lesson, LessonFigure]] = st.session_state.setdefault(_SHOWN, {})
    if lesson.key not in cache or cache[lesson.key][0] != lesson:
        cache[lesson.key] = lesson, lesson.show()
    return cache[lesson.key][1]


def _charts(lesson: Lesson, rows: Sequence[Sequence[Any]], columns: int = 1) -> None:
    """Show rows of charts, each row in at least so many columns."""
    for row_index, row in enumerate(rows):
        for index, (column, chart) in enumerate(zip(st.columns(max(len(row), columns)), row, strict=False)):
            column.altair_chart(chart, width="stretch", key=f"learn {lesson.key} chart {row_index} {index}")


def _words(shown: LessonFigure) -> None:
    if shown.figures:
        with st.container(horizontal=True, key="learn-figures"):
            for figure in shown.figures:
                st.metric(figure.label, figure.value, help=figure.help)
    if shown.note:
        st.caption(shown.note)
    if shown.source:
        st.caption(f"Source: {shown.source}")


def _downloads(lesson: Lesson, shown: LessonFigure) -> None:
    """Offer the charts as files, each made when its button is pressed, and the Python that makes them."""
    settings, dark = describe(lesson), is_dark()
    with st.container(horizontal=True, key="learn-take"):
        for kind in ("svg", "png"):
            make = partial(picture, shown.charts, lesson.title, settings, kind, dark=dark)
            help_text = "This figure with its settings, as a file in the colours of this theme. Made on this computer."
            _download("Picture", lesson, kind, make, help_text)
        _slides(lesson, shown, shown.slide or shown.rows)
        show_code(write_lesson_python(lesson), None)


def _slides(lesson: Lesson, shown: LessonFigure, rows: Sequence[Sequence[Any]]) -> None:
    """Offer what is on the page as a slide; while the question is open, without what answers it."""
    slide = Slide(rows=rows, title=lesson.title, question=lesson.question, settings=describe(lesson), source=shown.source)
    for kind in ("svg", "png"):
        help_text = "The figure as it stands here under its question, 1920 by 1080, in the colours of this theme. Made on this computer."
        _download("Slide", lesson, kind, partial(draw_slide, slide, kind, dark=is_dark()), help_text)


def _download(what: str, lesson: Lesson, kind: str, make: Callable[[], bytes], help_text: str) -> None:
    st.download_button(
        f"{what} ({kind.upper()})",
        make,
        file_name=f"dpviz-{'learn' if what == 'Picture' else 'slide'}-{lesson.key}.{kind}",
        mime=_MIME[kind],
        on_click="ignore",
        key=f"learn {what.lower()} {kind}",
        help=help_text,
    )


def describe(lesson: Lesson) -> str:
    """Return the settings that matter in one line, for a picture of the lesson."""
    values = lesson.chosen()
    return "; ".join(f"{rule.label}: {_format_value(values[rule.name])}" for rule in lesson.rules() if rule.matters(values))


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:.2g}" for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
