"""The widgets of a lesson on the Learn page: one per setting, a bar for shares, another run, and back to the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.mechanism_controls import fits_buttons, share_field, split_bar
from dpviz.app.pages.learn.path import change_settings, reset_settings
from dpviz.lessons.lesson import MOST_DRAWS, Lesson, ShareBar
from dpviz.mechanisms.base import SettingSpec
from dpviz.privacy.shares import redistribute

_DRAW = "draw"


def show_controls(lesson: Lesson) -> None:
    """Show one widget per setting that matters, and the buttons for another run and for the settings of the beginning."""
    values = lesson.chosen()
    for rule in lesson.rules():
        if rule.name != _DRAW and not isinstance(rule.default, tuple) and rule.matters(values):
            _widget(lesson, rule, values[rule.name])
    if lesson.share_bar is not None:
        _share_controls(lesson.share_bar, values[lesson.share_bar.setting])
    with st.container(horizontal=True):
        _draw_button(lesson)
        st.button("Reset", key="learn reset", help="Back to how this lesson began.", on_click=reset_settings)


def _widget(lesson: Lesson, rule: SettingSpec, value: Any) -> None:
    key = f"learn {lesson.key} {rule.name}"
    st.session_state[key] = value
    common: dict[str, Any] = {"key": key, "help": rule.help, "on_change": lambda: change_settings(**{rule.name: st.session_state[key]})}
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
        change_settings(**{bar.setting: bar.presets[name]})


def _use_shares(bar: ShareBar, shares: Sequence[float]) -> None:
    change_settings(**{bar.setting: tuple(round(share, 4) for share in shares)})


def _use_share(bar: ShareBar, shares: list[float], index: int, share: float) -> None:
    """Set one share; the others change in proportion."""
    _use_shares(bar, redistribute(shares, [False] * len(shares), index, share))


def _draw_button(lesson: Lesson) -> None:
    """Show a button for the next seeded run, if the lesson has noise."""
    values = lesson.chosen()
    if _DRAW in values:
        next_seed = values[_DRAW] % MOST_DRAWS + 1
        st.button(
            "Run again", key="learn draw", help="Seeded noise on made-up data: free.", on_click=lambda: change_settings(draw=next_seed)
        )
