"""The rail under the maps: ε to be moved, with the error that it buys, a chip per level with its share of the budget, and one sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.app.session.widgets import carry_out
from dpviz.errors import BudgetError, DpvizError
from dpviz.evaluation.level_worth import EMPTY, LevelWorth, WorthWords
from dpviz.privacy.budget import exact
from dpviz.privacy.shares import normalise_shares
from dpviz.publishing.errors_over_epsilon import ErrorsOverEpsilon
from dpviz.release.verdict import MOST_EMPTY_ROUGH, MOST_EMPTY_USABLE, MOST_ROUGH, MOST_USABLE

KINDS = ("level", "false", "epsilon", "moved", "drag")
"""What a message from the browser may change, in the order in which the changes take effect."""
LOW, HIGH = 0.01, 10.0
"""The ends of the rail."""

_UNCHANGED = 1e-6
_LARGEST_SERIAL = 2**53
_EPSILON = re.compile(r"(0|[1-9]\d?)(\.\d{1,3})?")
_LIMITS = {"error": (MOST_USABLE, MOST_ROUGH), "false": (MOST_EMPTY_USABLE, MOST_EMPTY_ROUGH)}
_HERE = Path(__file__).parent
_HTML = """
<div class="rail" role="group" aria-label="Budget and what it buys">
  <p class="said"></p>
  <div class="line">
    <div class="name"><b></b><small></small></div>
    <div class="slider" role="slider" tabindex="0" aria-label="Budget ε" aria-valuemin="0.01" aria-valuemax="10">
      <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true"><polyline></polyline></svg>
      <div class="track"></div><div class="marks" aria-hidden="true"></div><div class="thumb" aria-hidden="true"></div>
    </div>
  </div>
  <div class="scroll"><div class="grid"></div></div>
  <div class="note" hidden></div>
  <div class="live" role="status"></div>
</div>
"""
_rail = st.components.v2.component(
    "dpviz_rail", html=_HTML, css=(_HERE / "rail.css").read_text("utf-8"), js=(_HERE / "rail.js").read_text("utf-8")
)


@dataclass(frozen=True, kw_only=True, eq=False)
class RailLevel:
    """A level of a release, which has a chip.

    Attributes:
        name: its size or name, such as "1.1 km".
        subject: an average part of it, with which its sentence begins, such as "A 1.1 km square".
        about: how many parts it has, in a few words.
        worth: what it is worth in the run.
        curve: its errors over ε, which meet those of the run at the ε of the run; None while they are not known.
        finer: whether the release has no partitions so small: its counts are spread evenly.
        closed: why the maps cannot show the level, as a sentence; "" if they can.
    """

    name: str
    subject: str
    about: str
    worth: LevelWorth
    curve: ErrorsOverEpsilon | None = None
    finer: bool = False
    closed: str = ""


@dataclass(frozen=True, kw_only=True)
class RailPart:
    """One part of the budget.

    Attributes:
        label: what the part is spent on, such as "medians".
        share: at least 0; the shares of all parts are scaled to a total of 1.
        locked: whether the share must not change.
        level: index of the level whose counts the part pays for; None for a part with a column of its own, left of the levels.
        structure: whether the part pays for the structure; else for counts.
    """

    label: str
    share: float
    locked: bool = False
    level: int | None = None
    structure: bool = False


@dataclass(frozen=True, kw_only=True)
class RailEpsilon:
    """What the rail shows of ε.

    Attributes:
        chosen: where the thumb stands; outside of the rail it stands at the end.
        of_run: the ε of the run whose numbers are shown; None if no ε bounds it.
        steps: the values to which the arrow keys move, ascending.
        waits: whether a run with the chosen ε is being made, so that the maps are those of another one.
        computes: whether the errors over ε are being computed.
    """

    chosen: float
    of_run: float | None
    steps: Sequence[float]
    waits: bool = False
    computes: bool = False


@dataclass(frozen=True, kw_only=True)
class RailCalls:
    """What is called with a change from the browser, once it was checked, before the script runs again.

    Attributes:
        on_epsilon: with the new ε, exactly: a number of two digits from `LOW` to `HIGH`.
        on_level: with the index of the chosen level.
        on_false: once the map of false positives is to be shown, or no longer; None where there is no such map.
        on_shares: with (p,) new shares, which add up to 1; None if the split cannot be changed.
        on_drag: while a share is dragged, with (p,) shares that are tried; returns the expected error of each level with them, in
            records, None where it is unknown; or None if nothing is known. No expected errors are asked for without it.
    """

    on_epsilon: Callable[[Fraction], object]
    on_level: Callable[[int], object]
    on_false: Callable[[bool], object] | None = None
    on_shares: Callable[[list[float]], object] | None = None
    on_drag: Callable[[list[float]], Sequence[float | None] | None] | None = None


def rail(
    levels: Sequence[RailLevel],
    parts: Sequence[RailPart],
    epsilon: RailEpsilon,
    calls: RailCalls,
    *,
    shown: int,
    key: str,
    words: WorthWords = EMPTY,
    shows_false: bool = False,
    whole: str = "",
) -> None:
    """Show ε, the levels of a release, and the sentence on the level that the maps show.

    The caller stores ε, level and shares: the callbacks should store what they get, and the next run pass it on. While ε or a share is
    moved, numbers that were not measured begin with "~". Other unlocked shares keep their proportions, as by
    `dpviz.privacy.shares.redistribute`. It does not work inside `st.form`; inside `st.fragment` a drag of a share runs only the fragment.

    Args:
        levels: (n,) levels, coarsest first, at least one.
        parts: (p,) parts of the budget, in the order of the mechanism's shares. With a single part nothing can be split.
        epsilon: where ε stands.
        calls: what is called.
        shown: index of the level that the map shows.
        key: unique in the app.
        words: what the sentence calls things.
        shows_false: whether a map shows the false positives.
        whole: one sentence on why nothing can be split; "" if a share can be moved, or could be in another run.

    Raises:
        BudgetError: shares are not finite numbers of at least 0, or all of them are 0.
        IndexError: `shown` is not the index of a level.
    """
    memory: dict[str, Any] = st.session_state.setdefault(f"{key}.memory", new_memory())

    def sent() -> None:
        receive((st.session_state.get(key) or {}).get("sent"), memory, levels, parts, calls)

    data = message(levels, parts, memory, calls) | {"shown": range(len(levels))[shown], "falses": shows_false, "whole": whole}
    data |= {"epsilon": asdict(epsilon), "words": asdict(words), "low": LOW, "high": HIGH, "limits": _LIMITS}
    _rail(key=key, data=data, on_sent_change=carry_out(sent))


def new_memory() -> dict[str, Any]:
    """Make what a page remembers of a rail: the serial number of the newest change of each kind, and the answer to the newest drag."""
    return {"serials": dict.fromkeys(KINDS, 0), "answer": None}


def message(levels: Sequence[RailLevel], parts: Sequence[RailPart], memory: dict[str, Any], calls: RailCalls) -> dict[str, Any]:
    """Make what is sent to the browser of the levels and parts: numbers that are not finite become None.

    A part whose level has no chip, or already has a part, gets a column of its own.

    Raises:
        BudgetError: shares are not finite numbers of at least 0, or all of them are 0.
    """
    shares = normalise_shares([part.share for part in parts], len(parts)) if parts else []
    owners: dict[int, int] = {}
    for index, part in enumerate(parts):
        if part.level is not None and part.level in range(len(levels)):
            owners.setdefault(part.level, index)
    own_level = {index: level for level, index in owners.items()}
    return {
        "levels": [_describe_level(level) for level in levels],
        "parts": [
            asdict(part) | {"share": share, "level": own_level.get(index)}
            for index, (part, share) in enumerate(zip(parts, shares, strict=True))
        ],
        "editable": calls.on_shares is not None,
        "live": calls.on_drag is not None,
        "maps": calls.on_false is not None,
        "serials": dict(memory["serials"]),
        "answer": memory["answer"],
    }


def _describe_level(level: RailLevel) -> dict[str, Any]:
    curve = level.curve
    columns = {} if curve is None else {"at": curve.epsilon, "error": curve.error, "false": curve.false_share}
    return {
        **{name: getattr(level, name) for name in ("name", "subject", "about", "finer", "closed")},
        **{name: _finite(value) for name, value in asdict(level.worth).items()},
        "curve": {name: [_finite(number) for number in column.tolist()] for name, column in columns.items()} or None,
    }


def receive(event: object, memory: dict[str, Any], levels: Sequence[RailLevel], parts: Sequence[RailPart], calls: RailCalls) -> None:
    """Check a message from the browser, and pass on the changes in it that are new.

    A message holds changes by kind, each a dict with a value and a serial number. Whatever else comes is ignored. A change that is
    refused counts as seen, so that the browser goes back to what the next run shows.

    Args:
        event: untrusted.
        memory: from `new_memory`; changed.
        levels: as shown when the message was sent.
        parts: likewise.
        calls: what is called.
    """
    for kind, (value, serial) in _new_changes(event, memory["serials"]).items():
        if kind == "drag":
            if not serial < memory["serials"]["moved"]:
                memory["answer"] = {"serial": serial, "expected": _answer(value, levels, parts, calls)}
        elif kind == "moved":
            memory["answer"] = None
            with suppress(BudgetError):
                if calls.on_shares is not None:
                    calls.on_shares(check_shares(value, parts))
        else:
            _take_choice(kind, value, levels, calls)
        memory["serials"][kind] = serial


def _take_choice(kind: str, value: object, levels: Sequence[RailLevel], calls: RailCalls) -> None:
    """Pass on ε, a level, or whether false positives are shown, if the value is one."""
    if kind == "epsilon":
        if (epsilon := read_epsilon(value)) is not None:
            calls.on_epsilon(epsilon)
    elif kind == "level":
        if (
            isinstance(value, int)
            and _is_whole(value)
            and value in range(len(levels))
            and not (levels[value].finer or levels[value].closed)
        ):
            calls.on_level(value)
    elif isinstance(value, bool) and calls.on_false is not None:
        calls.on_false(value)


def read_epsilon(text: object) -> Fraction | None:
    """Return the ε that the browser sent, exactly; None unless it is a number of two digits from `LOW` to `HIGH`.

    >>> read_epsilon("0.1"), read_epsilon("2.5"), read_epsilon("0.123"), read_epsilon("11")
    (Fraction(1, 10), Fraction(5, 2), None, None)
    """
    if not isinstance(text, str) or not _EPSILON.fullmatch(text):
        return None
    epsilon = exact(text, "ε")
    return epsilon if LOW <= float(text) <= HIGH and exact(f"{float(text):.2g}", "ε") == epsilon else None


def check_shares(values: object, parts: Sequence[RailPart]) -> list[float]:
    """Check the shares that the browser sent.

    Args:
        values: untrusted.
        parts: as shown when the shares were sent.

    Returns:
        (p,) shares with a total of 1.

    Raises:
        BudgetError: not one finite number of at least 0 per part, all of them 0, or the share of a locked part changed.
    """
    shares = normalise_shares(values, len(parts))
    before = normalise_shares([part.share for part in parts], len(parts))
    if any(part.locked and abs(new - old) > _UNCHANGED for part, new, old in zip(parts, shares, before, strict=True)):
        raise BudgetError("A locked share does not change.")
    return shares


def _new_changes(event: object, serials: dict[str, int]) -> dict[str, tuple[Any, int]]:
    """Return value and serial number, by kind, of the changes in a message that are newer than the last one of their kind."""
    if not isinstance(event, dict):
        return {}
    changes = {kind: event[kind] for kind in KINDS if isinstance(event.get(kind), dict)}
    numbered = {kind: (change.get("value"), change.get("serial")) for kind, change in changes.items()}
    return {
        kind: (value, serial)
        for kind, (value, serial) in numbered.items()
        if _is_whole(serial) and serials[kind] < serial < _LARGEST_SERIAL
    }


def _answer(values: object, levels: Sequence[RailLevel], parts: Sequence[RailPart], calls: RailCalls) -> list[float | None] | None:
    """Return (n,) expected errors with shares that are tried; None if they are refused or nothing is known."""
    with suppress(DpvizError):
        expected = None if calls.on_drag is None else calls.on_drag(check_shares(values, parts))
        if expected is not None and len(expected) == len(levels):
            return [_finite(number) for number in expected]
    return None


def _finite(value: float | None) -> float | None:
    """Return a finite number as a float, and None for everything else."""
    return float(value) if value is not None and math.isfinite(value) else None


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
