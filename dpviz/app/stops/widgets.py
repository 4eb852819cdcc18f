"""Widgets made from what the settings of a stop declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dpviz.app.controls import fits_buttons
from dpviz.app.stops.parts import MOST_DRAWS, Stop
from dpviz.mechanisms.base import Rule

Change = Callable[..., None]
DRAW = "draw"


def widgets(stop: Stop, knobs: Any, change: Change) -> None:
    """One widget per setting."""
    values = knobs.chosen()
    for rule in knobs.rules():
        if rule.name != DRAW and not isinstance(rule.default, tuple) and rule.matters(values):
            _widget(stop, rule, values[rule.name], change)
    if stop.controls is not None:
        stop.controls(knobs, change)


def draw_button(knobs: Any, change: Change) -> None:
    """A button for the next seeded draw, where a stop draws."""
    values = knobs.chosen()
    if DRAW in values:
        following = values[DRAW] % MOST_DRAWS + 1
        st.button("Draw again", key="learn draw", help="Seeded noise on made-up data: free.", on_click=lambda: change(draw=following))


def _widget(stop: Stop, rule: Rule, value: Any, change: Change) -> None:
    key = f"learn {stop.key} {rule.name}"
    st.session_state[key] = value
    common: dict[str, Any] = {"key": key, "help": rule.help, "on_change": lambda: change(**{rule.name: st.session_state[key]})}
    if isinstance(rule.default, bool):
        st.toggle(rule.label, **common)
    elif rule.choices and isinstance(rule.default, str):
        if fits_buttons(rule.choices):
            st.segmented_control(rule.label, rule.choices, required=True, **common)
        else:
            st.selectbox(rule.label, rule.choices, **common)
    elif rule.choices:
        st.select_slider(rule.label, rule.choices, format_func=lambda each: f"{each:g}", **common)
    else:
        kind = type(rule.default)
        st.slider(rule.label, kind(rule.low), kind(rule.high), **common)
