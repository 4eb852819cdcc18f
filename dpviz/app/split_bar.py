"""The budget split as a bar of parts whose boundaries can be dragged, or moved with the arrow keys."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpviz.errors import BudgetError
from dpviz.privacy.shares import checked_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NAME = "dpviz_split_bar"
_UNCHANGED = 1e-6

_HTML = """<div class="bar" role="group" aria-label="Split of the privacy budget"></div><div class="note" aria-hidden="true"></div>"""

_CSS = """
.bar { position: relative; height: 34px; touch-action: pan-y; user-select: none; }
.part { position: absolute; inset: 0 auto 0 0; box-sizing: border-box; overflow: hidden; border-right: 1px solid transparent;
  background-clip: padding-box; display: flex; flex-direction: column; justify-content: center; align-items: center;
  font: 11px/13px var(--st-font, sans-serif); white-space: nowrap; }
.part:first-child { border-radius: 4px 0 0 4px; }
.part.last { border-radius: 0 4px 4px 0; border-right: 0; }
.part.structure { border-right-width: 4px; }
.part.locked::after { content: ""; position: absolute; inset: 0;
  background: repeating-linear-gradient(135deg, rgba(0, 0, 0, .3) 0 1px, transparent 1px 5px); }
.part b { font-weight: 600; }
.part [hidden] { display: none; }
.handle { position: absolute; top: -3px; bottom: -3px; width: 3px; margin-left: -2px; border-radius: 2px; outline: none;
  pointer-events: none; background: var(--st-text-color, #222); opacity: 0; }
.handle.near { opacity: .55; }
.handle.moving, .handle:focus { opacity: 1; }
.handle:focus-visible { box-shadow: 0 0 0 2px var(--st-background-color, #fff), 0 0 0 4px var(--st-primary-color, #0b6e8f); }
.note { height: 18px; margin-top: 5px; font: 11px/18px var(--st-font, sans-serif); color: var(--st-text-color, #222); opacity: .75;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
"""

_JS = (Path(__file__).parent / "split_bar.js").read_text("utf-8")

_bar = st.components.v2.component(_NAME, html=_HTML, css=_CSS, js=_JS)


def split_bar(
    labels: list[str],
    shares: list[float],
    *,
    locked: list[bool],
    key: str,
    structure: Sequence[bool] | None = None,
    on_change: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """A bar of parts with widths in proportion to `shares`; moving a boundary moves share between its two unlocked neighbours.

    The caller's `shares` are the truth: hand in others and the bar shows them. Not for use inside `st.form`.

    Args:
        labels: (n,) names of the parts.
        shares: (n,) at least 0, one of them greater; brought to a total of 1.
        locked: (n,) parts that do not change.
        key: unique in the app.
        structure: (n,) parts that find the structure rather than count, in a colour of their own; none if None.
        on_change: called with the new shares before the script runs again; it should store what is handed in as `shares`.

    Returns:
        (n,) shares with a total of 1; without `on_change`, the moved ones in the run that a move starts.

    Raises:
        BudgetError: `shares` are not one finite number of at least 0 per label, or all of them are 0.
    """
    truth = checked_shares(list(shares), len(labels))
    memory: dict[str, Any] = st.session_state.setdefault(f"{key}.moved", {"serial": 0})

    def receive() -> None:
        event = (st.session_state.get(key) or {}).get("moved")
        if isinstance(event, dict) and isinstance(event.get("serial"), int):
            memory["serial"] = event["serial"]
            with suppress(BudgetError):
                moved = _moved(event.get("shares"), truth, locked)
                memory["shares"] = moved
                if on_change is not None:
                    on_change(moved)

    pending = memory.pop("shares", None)
    shown = pending if on_change is None and pending is not None and len(pending) == len(truth) else truth
    apart = [False] * len(labels) if structure is None else list(structure)
    data = {"labels": list(labels), "shares": shown, "locked": list(locked), "structure": apart, "serial": memory["serial"]}
    _bar(key=key, data=data, on_moved_change=receive)
    return shown


def _moved(values: object, before: Sequence[float], locked: Sequence[bool]) -> list[float]:
    """Checked shares from the browser; refused if a locked one has changed."""
    shares = checked_shares(values, len(before))
    if any(fixed and abs(new - old) > _UNCHANGED for new, old, fixed in zip(shares, before, locked, strict=True)):
        raise BudgetError("A locked share does not change.")
    return shares
