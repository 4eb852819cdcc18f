"""The Learn page: ten lessons on made-up data, each with figures and a widget per setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.code import show_code
from dpviz.app.controls import fits_buttons, share_field, split_bar
from dpviz.app.session import read_link
from dpviz.lessons import LESSONS
from dpviz.lessons.lesson import MOST_DRAWS, Lesson, ShareBar, Shown
from dpviz.mechanisms.base import Rule
from dpviz.privacy.shares import redistribute
from dpviz.publishing.code import write_lesson_python
from dpviz.view.charts import picture

BY_KEY = {lesson.key: lesson for lesson in LESSONS}
_DRAW = "draw"
_LESSON_KEY, _SETTINGS, _SHOWN = "learn at", "learn knobs", "learn shown"
_CONTENTS, _CHANGED, _ADDRESS = "learn contents", "learn moved", "learn address"

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
    keep_empty = _page_was_shown() and not st.query_params.to_dict()
    lesson = _current_lesson()
    with st.sidebar:
        _lesson_list(lesson)
    _write_address(lesson, plain=keep_empty and lesson == LESSONS[0]())
    _step_buttons(lesson, "top")
    st.markdown(lesson.text)
    st.info(f"**Try:** {lesson.task}", icon=":material/touch_app:")
    left, right = st.columns([1, 3], gap="medium")
    with left, st.container(key="learn-controls"):
        _controls(lesson)
        with st.container(horizontal=True):
            _draw_button(lesson)
            st.button("Reset", key="learn reset", help="Back to how this lesson began.", on_click=_reset)
    with right, st.container(key="learn-figure"):
        shown = _compute_shown(lesson)
        _show(lesson, shown)
        _downloads(lesson, shown)
    _step_buttons(lesson, "bottom")
    st.html(_TO_THE_TOP.replace("STOP", lesson.key), unsafe_allow_javascript=True)


def _current_lesson() -> Lesson:
    """Return the lesson of this session with its settings; the address decides on the first visit, and after the browser's back button."""
    query, changed = st.query_params.to_dict(), st.session_state.pop(_CHANGED, False)
    gone_back = _page_was_shown() and not changed and query != st.session_state[_ADDRESS]
    if _LESSON_KEY not in st.session_state or gone_back or (not _page_was_shown() and "stop" in query):
        kind = BY_KEY.get(query.get("stop", ""), LESSONS[0])
        st.session_state[_LESSON_KEY] = kind.key
        st.session_state.setdefault(_SETTINGS, {})[kind.key] = read_link(kind, query)
    kind = BY_KEY[st.session_state[_LESSON_KEY]]
    lesson: Lesson = st.session_state[_SETTINGS].setdefault(kind.key, kind())
    return lesson


def _page_was_shown() -> bool:
    """Return whether the run before showed this page too. Streamlit forgets the widgets of a page that the user leaves."""
    return _CONTENTS in st.session_state and _ADDRESS in st.session_state


def _change_settings(**settings: Any) -> None:
    """Show the lesson with other settings."""
    key = st.session_state[_LESSON_KEY]
    st.session_state[_CHANGED] = True
    st.session_state[_SETTINGS][key] = replace(st.session_state[_SETTINGS][key], **settings)


def _reset() -> None:
    st.session_state[_CHANGED] = True
    st.session_state[_SETTINGS].pop(st.session_state[_LESSON_KEY], None)


def _go_to(key: str) -> None:
    st.session_state[_LESSON_KEY], st.session_state[_CHANGED] = key, True


def _write_address(lesson: Lesson, *, plain: bool) -> None:
    """Write the lesson and its settings into the address.

    Args:
        lesson: the lesson that is shown.
        plain: leave an empty address empty. The back button led to it; a new address there would keep the user from going back further.
    """
    query = {"stop": lesson.key, **lesson.to_query()}
    if st.query_params.to_dict() != query and not plain:
        st.query_params.from_dict(query)
    st.session_state[_ADDRESS] = st.query_params.to_dict()


def _lesson_list(lesson: Lesson) -> None:
    """Show the list of lessons."""
    st.session_state[_CONTENTS] = lesson.key
    st.radio(
        "The walk",
        list(BY_KEY),
        key=_CONTENTS,
        format_func=lambda key: f"{list(BY_KEY).index(key) + 1}. {BY_KEY[key].title}",
        on_change=lambda: _go_to(st.session_state[_CONTENTS]),
    )
    st.caption("All data here are made up and all noise is seeded: nothing is private, and nothing is spent.")


def _step_buttons(lesson: Lesson, position: str) -> None:
    """Show buttons to the previous and the next lesson; at the top, the title is between them."""
    index, last = list(BY_KEY).index(lesson.key), len(LESSONS) - 1
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key=f"learn-steps-{position}"):
        _step_button("Previous", LESSONS[max(index - 1, 0)], position, disabled=index == 0, icon=":material/arrow_back:")
        if position == "top":
            st.header(f"{index + 1}. {lesson.title}", anchor=False, width="content")
        following = LESSONS[min(index + 1, last)]
        _step_button("Next", following, position, disabled=index == last, icon=":material/arrow_forward:", icon_position="right")


def _step_button(label: str, target: type[Lesson], position: str, **options: Any) -> None:
    st.button(label, key=f"learn {label.lower()} {position}", on_click=_go_to, args=(target.key,), help=target.title, **options)


def _controls(lesson: Lesson) -> None:
    """Show one widget per setting that matters."""
    values = lesson.chosen()
    for rule in lesson.rules():
        if rule.name != _DRAW and not isinstance(rule.default, tuple) and rule.matters(values):
            _widget(lesson, rule, values[rule.name])
    if lesson.share_bar is not None:
        _share_controls(lesson.share_bar, values[lesson.share_bar.setting])


def _widget(lesson: Lesson, rule: Rule, value: Any) -> None:
    key = f"learn {lesson.key} {rule.name}"
    st.session_state[key] = value
    common: dict[str, Any] = {"key": key, "help": rule.help, "on_change": lambda: _change_settings(**{rule.name: st.session_state[key]})}
    if isinstance(rule.default, bool):
        st.toggle(rule.label, **common)
    elif rule.choices and isinstance(rule.default, str):
        if fits_buttons(rule.choices):
            st.segmented_control(rule.label, rule.choices, required=True, **common)
        else:
            st.selectbox(rule.label, rule.choices, **common)
    elif rule.choices:
        st.select_slider(rule.label, rule.choices, format_func=lambda choice: f"{choice:g}", **common)
    else:
        kind = type(rule.default)
        st.slider(rule.label, kind(rule.low), kind(rule.high), **common)


def _share_controls(bar: ShareBar, shares: tuple[float, ...]) -> None:
    """Show presets, the bar to drag, and fields to type the shares."""
    key = "learn split preset"
    st.session_state[key] = bar.preset_of(shares)
    st.selectbox(
        "Preset",
        list(bar.presets),
        key=key,
        index=None,
        placeholder="your own",
        format_func=lambda name: name[:1].upper() + name[1:],
        on_change=lambda: _use_preset(bar, st.session_state[key]),
        help=bar.presets_help,
    )
    st.caption(bar.caption)
    use = partial(_use_shares, bar)
    split_bar(list(bar.parts), list(shares), locked=[False] * len(shares), key="learn split bar", on_change=use)
    with st.expander("Type the shares"):
        parts = [share / sum(shares) for share in shares]
        for index, (name, share) in enumerate(zip(bar.parts, parts, strict=True)):
            field = share_field(f"learn share {index}", f"{name}, %", share, partial(_use_share, bar, parts, index))
            field.show(st.number_input, value=None, step=1.0, format="%.2f")


def _use_preset(bar: ShareBar, name: str | None) -> None:
    if name is not None:
        _change_settings(**{bar.setting: bar.presets[name]})


def _use_shares(bar: ShareBar, shares: Sequence[float]) -> None:
    _change_settings(**{bar.setting: tuple(round(share, 4) for share in shares)})


def _use_share(bar: ShareBar, shares: list[float], index: int, share: float) -> None:
    """Set one share; the others change in proportion."""
    _use_shares(bar, redistribute(shares, [False] * len(shares), index, share))


def _draw_button(lesson: Lesson) -> None:
    """Show a button for the next seeded run, if the lesson has noise."""
    values = lesson.chosen()
    if _DRAW in values:
        next_seed = values[_DRAW] % MOST_DRAWS + 1
        st.button(
            "Run again", key="learn draw", help="Seeded noise on made-up data: free.", on_click=lambda: _change_settings(draw=next_seed)
        )


def _compute_shown(lesson: Lesson) -> Shown:
    """Return the charts and texts of the lesson, which are computed again only when the settings change."""
    cache: dict[str, tuple[Lesson, Shown]] = st.session_state.setdefault(_SHOWN, {})
    if lesson.key not in cache or cache[lesson.key][0] != lesson:
        cache[lesson.key] = lesson, lesson.show()
    return cache[lesson.key][1]


def _show(lesson: Lesson, shown: Shown) -> None:
    for row_index, row in enumerate(shown.rows):
        for index, (column, chart) in enumerate(zip(st.columns(len(row)), row, strict=True)):
            column.altair_chart(chart, width="stretch", key=f"learn {lesson.key} chart {row_index} {index}")
    if shown.figures:
        with st.container(horizontal=True, key="learn-figures"):
            for figure in shown.figures:
                st.metric(figure.label, figure.value, help=figure.help)
    if shown.note:
        st.caption(shown.note)
    if shown.source:
        st.caption(f"Source: {shown.source}")


def _downloads(lesson: Lesson, shown: Shown) -> None:
    """Offer the charts as files, each made when its button is pressed, and the Python that makes them."""
    settings_text, dark = describe(lesson), st.context.theme.type == "dark"
    with st.container(horizontal=True, key="learn-take"):
        for kind, mime in (("svg", "image/svg+xml"), ("png", "image/png")):
            st.download_button(
                f"Picture ({kind.upper()})",
                partial(picture, shown.charts, lesson.title, settings_text, kind, dark=dark),
                file_name=f"dpviz-learn-{lesson.key}.{kind}",
                mime=mime,
                on_click="ignore",
                key=f"learn picture {kind}",
                help="This figure with its settings, as a file in the colours of this theme. Made on this computer.",
            )
        show_code(write_lesson_python(lesson), None)


def describe(lesson: Lesson) -> str:
    """Return the settings that matter in one line, for a picture of the lesson."""
    values = lesson.chosen()
    return "; ".join(f"{rule.label}: {_format_value(values[rule.name])}" for rule in lesson.rules() if rule.matters(values))


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:.2g}" for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
