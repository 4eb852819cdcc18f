"""The strip of slots under the maps: a bar for the count of each slot, which is also the control that chooses slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.app.session.widgets import carry_out

_HERE = Path(__file__).parent
_HTML = """
<div class="profile" role="group" aria-label="Counts by slot">
  <div class="head"><span class="said" role="status"></span><button type="button" class="all"></button>
    <span class="key" aria-hidden="true"></span></div>
  <div class="scale" aria-hidden="true"><span class="top"></span><span class="zero"></span></div>
  <div class="chart" role="slider" tabindex="0" aria-valuemin="0"><svg preserveAspectRatio="none" aria-hidden="true"></svg>
    <div class="slots" aria-hidden="true"></div></div>
  <div class="groups" aria-hidden="true"></div>
  <table class="unseen"></table>
</div>
"""
_profile = st.components.v2.component(
    "dpviz_profile", html=_HTML, css=(_HERE / "profile.css").read_text("utf-8"), js=(_HERE / "profile.js").read_text("utf-8")
)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A slot, or a category of several slots where there are too many.

    Attributes:
        name: for readers.
        first: index of its first slot.
        last: index of its last slot.
        count: released.
        low: lower end of the 95 % interval of the unbiased estimate, not cut at 0.
        high: upper end.
        true: the true count; None where it must not be shown. CURATOR ONLY.
    """

    name: str
    first: int
    last: int
    count: float
    low: float
    high: float
    true: int | None = None


def profile(
    bars: Sequence[Bar],
    groups: Sequence[Sequence[tuple[str, int, int]]],
    *,
    key: str,
    chosen: tuple[int, int] | None,
    on_slots: Callable[[tuple[int, int] | None], object],
    said: str,
    unit: str,
    every: str,
    by: str,
    dark: bool,
) -> None:
    """Show the counts of slots. A press takes a slot, a drag a range; arrow keys move it, and with Shift they make it wider or narrower.

    The caller stores the range: the callback should store what it gets, and the next run pass it on.

    Args:
        bars: at least one, in the order of their slots.
        groups: the coarser levels, coarsest first: name, first and last slot of each category.
        key: unique in the app.
        chosen: first and last of the slots that are shown; None for all.
        on_slots: called with new slots, None for all, once they were checked.
        said: a sentence on the slots that are shown.
        unit: what is counted, in the plural.
        every: words for all slots.
        by: name of the level of the bars.
        dark: whether the page is dark.
    """
    memory: dict[str, int] = st.session_state.setdefault(f"{key}.memory", {"serial": 0})

    def sent() -> None:
        receive((st.session_state.get(key) or {}).get("sent"), memory, bars, on_slots)

    data = {"bars": [_round(bar) for bar in bars], "groups": groups, "chosen": chosen, "serial": memory["serial"]}
    _profile(key=key, data=data | {"said": said, "unit": unit, "every": every, "by": by, "dark": dark}, on_sent_change=carry_out(sent))


def _round(bar: Bar) -> dict[str, Any]:
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in asdict(bar).items()}


def receive(event: object, memory: dict[str, int], bars: Sequence[Bar], on_slots: Callable[[tuple[int, int] | None], object]) -> None:
    """Check a message from the browser, and pass on the slots in it if it is newer than the last one.

    Args:
        event: untrusted: a serial number, and the slots, which are the first and the last one of bars, or None.
        memory: the serial number of the last message; changed.
        bars: as shown when the message was sent.
        on_slots: what is called.
    """
    if not isinstance(event, dict) or type(event.get("serial")) is not int or not memory["serial"] < event["serial"] < 2**53:
        return
    memory["serial"] = event["serial"]
    slots = event.get("slots")
    if slots is None:
        on_slots(None)
    elif isinstance(slots, list) and len(slots) == 2 and all(type(slot) is int for slot in slots):
        first, last = slots
        if first in {bar.first for bar in bars} and last in {bar.last for bar in bars} and first <= last:
            on_slots(None if (first, last) == (bars[0].first, bars[-1].last) else (first, last))
