"""The target on a chart of errors: a line that is dragged, or moved by keys, over the one that the chart draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from dpviz.app.session.widgets import carry_out
from dpviz.view.error_axis import Scale

_HTML = """
<div class="base">
  <div class="target" role="slider" tabindex="0" aria-label="Target" aria-orientation="vertical"><span></span></div>
</div>
"""
_CSS = """
.base { position: relative; height: 0; }
.target { position: absolute; z-index: 2; height: 9px; margin-top: -5px; cursor: ns-resize; touch-action: none; outline-offset: 2px; }
.target[hidden] { display: none; }
.target::before { content: ""; position: absolute; inset: 4px 0 auto; border-top: 2px solid transparent; }
.target.moving::before, .target:hover::before, .target:focus-visible::before { border-color: var(--st-primary-color); }
.target::after { content: ""; position: absolute; right: -13px; top: -3px; width: 14px; height: 14px; border-radius: 7px;
  background: var(--st-primary-color); border: 2px solid var(--st-background-color); box-sizing: border-box; }
.target span { display: none; position: absolute; right: 4px; bottom: 10px; padding: 0 4px; border-radius: 3px; font-size: 0.85rem;
  color: var(--st-text-color); background: var(--st-background-color); }
.target.moving span { display: block; }
"""
_line = st.components.v2.component("dpviz_target_line", html=_HTML, css=_CSS, js=Path(__file__).with_suffix(".js").read_text("utf-8"))


def target_line(
    around: str, error: float, ends: tuple[float, float], unit: str, *, key: str, scale: Scale, on_move: Callable[[float], object]
) -> None:
    """Lay the line over a chart.

    Args:
        around: a CSS selector of the container of the line and the chart alone.
        error: where the line is.
        ends: of the vertical axis of the chart.
        unit: of the error.
        key: key of the component.
        scale: of the axis.
        on_move: called with the error to which the line was moved.
    """

    def take() -> None:
        moved = st.session_state[key].get("moved")
        error = moved.get("error") if isinstance(moved, dict) else None
        if isinstance(error, int | float) and not isinstance(error, bool) and 0 <= error < math.inf:
            on_move(float(error))

    data = {"around": around, "error": error, "ends": list(ends), "unit": unit, "scale": scale}
    _line(key=key, data=data, height="content", on_moved_change=carry_out(take))
