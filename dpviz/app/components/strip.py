"""The strip under a map: for each level of a release its share of the budget, to be dragged, and its errors, in aligned columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from dpviz.app.session.widgets import carry_out
from dpviz.errors import BudgetError, DpvizError
from dpviz.privacy.shares import normalise_shares

KINDS = ("level", "unit", "moved", "drag")
"""What a message from the browser may change, in the order in which the changes take effect."""

_UNCHANGED = 1e-6
_LARGEST_SERIAL = 2**53
_HERE = Path(__file__).parent
_HTML = """
<div class="strip" role="group" aria-label="Levels of the release">
  <div class="scroll"><div class="grid"></div></div>
  <div class="note" aria-hidden="true">
    <div class="legend"><span><i class="mark measured"></i>measured</span><span><i class="mark expected"></i>expected from noise</span
      ><span><i class="mark before"></i>run before</span><span class="hint">Drag a bar to move budget</span></div><div class="tip"></div>
  </div>
  <div class="live" role="status"></div>
</div>
"""
_strip = st.components.v2.component(
    "dpviz_strip", html=_HTML, css=(_HERE / "strip.css").read_text("utf-8"), js=(_HERE / "strip.js").read_text("utf-8")
)


@dataclass(frozen=True, kw_only=True)
class StripLevel:
    """One column: a level of a release, whose squares are all of the same size.

    Attributes:
        name: a short name, such as "3".
        about: what the squares are, in a few words, such as "64 squares of 12 km"; may be "".
        mean: average count of a square, in records; None where it is unknown. Without it there are no errors in percent.
        expected: expected error of a square, in records; None where it is unknown.
        measured: measured error, in records; None where it is unknown or must not be shown.
        before: error of the run before, in records, measured or expected as in this run; None if there was no such run.
        base: number of squares that could be false positives, or pairs that were released; None if it is unknown or must not be shown.
        wrong: number of those that are false; None likewise.
        there: number of squares, or of pairs, in which something is; None likewise.
        missed: number of those that are released as empty, or not at all; None likewise.
        finer: whether the release has no partitions so small: the level cannot be shown, and its errors are those of counts that are
            spread evenly.
        closed: why the maps cannot show the level, as a sentence; "" if they can.
    """

    name: str
    about: str = ""
    mean: float | None = None
    expected: float | None = None
    measured: float | None = None
    before: float | None = None
    base: int | None = None
    wrong: int | None = None
    there: int | None = None
    missed: int | None = None
    finer: bool = False
    closed: str = ""


@dataclass(frozen=True, kw_only=True)
class StripRow:
    """What the strip calls a row of shares.

    Attributes:
        title: of the row.
        help: what the row says.
        base: the things of which it is a share.
        wrong: what the wrong ones of them are.
        none: said where there is no such thing.
    """

    title: str
    help: str
    base: str
    wrong: str
    none: str


@dataclass(frozen=True, kw_only=True)
class StripWords:
    """What the strip calls things.

    Attributes:
        part: one of the things that a level counts.
        rows: of `StripLevel.wrong` and of `StripLevel.missed`.
    """

    part: str
    rows: tuple[StripRow, StripRow]


def _words_of(part: str, further: str = "") -> StripWords:
    """Return the words for parts that are released as occupied or as empty; `further` is said of false positives, too."""
    return StripWords(
        part=part,
        rows=(
            StripRow(
                title="False positives",
                help=f"Of the {part}s in which nothing is: how many are released as occupied, that is, with 0.5 or more{further}",
                base=f"empty {part}s",
                wrong="are released as occupied",
                none=f"no {part} is empty",
            ),
            StripRow(
                title="Missed",
                help=f"Of the {part}s in which something is: how many are released as empty, that is, with less than 0.5",
                base=f"occupied {part}s",
                wrong="are released as empty",
                none=f"no {part} is occupied",
            ),
        ),
    )


SQUARES = _words_of(
    "square",
    ". Counts are spread evenly inside a partition: the small squares of a large one may all fall below 0.5, so that a finer level can have"
    " fewer",
)
REGIONS = _words_of("region")
PAIRS = StripWords(
    part="pair",
    rows=(
        StripRow(
            title="False discoveries",
            help="Of the released pairs: how many have no trips",
            base="released pairs",
            wrong="have no trips",
            none="no pair is released",
        ),
        StripRow(
            title="Missed",
            help="Of the pairs with trips: how many are not released",
            base="pairs with trips",
            wrong="are not released",
            none="no pair has trips",
        ),
    ),
)


@dataclass(frozen=True, kw_only=True)
class StripPart:
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
class StripCalls:
    """What is called with a change from the browser, once it was checked, before the script runs again.

    Attributes:
        on_level: with the index of the chosen level.
        on_shares: with (p,) new shares, which add up to 1; None if the split cannot be changed.
        on_drag: while a share is dragged, with (p,) shares that are tried; returns the expected error of each level with them, in
            records, None where it is unknown; or None if nothing is known. No expected errors are asked for without it.
        on_unit: with whether errors are shown in percent.
    """

    on_level: Callable[[int], object]
    on_shares: Callable[[list[float]], object] | None = None
    on_drag: Callable[[list[float]], Sequence[float | None] | None] | None = None
    on_unit: Callable[[bool], object]


def strip(
    levels: Sequence[StripLevel],
    parts: Sequence[StripPart],
    *,
    shown: int,
    unit: str,
    relative: bool,
    key: str,
    on_level: Callable[[int], object],
    on_unit: Callable[[bool], object],
    on_shares: Callable[[list[float]], object] | None = None,
    on_drag: Callable[[list[float]], Sequence[float | None] | None] | None = None,
    words: StripWords = SQUARES,
    whole: str = "",
) -> None:
    """Show the levels of a release in aligned columns: a button to show the level, its share of the budget, its errors.

    The caller stores the level, the shares and the unit: the callbacks should store what they get, and the next run pass it on. While a
    share is dragged, the other unlocked shares keep their proportions, as by `dpviz.privacy.shares.redistribute`. Errors are on one
    logarithmic scale. The row of false positives is there if a measured error is. It does not work inside `st.form`; inside
    `st.fragment` a drag runs only the fragment.

    Args:
        levels: (n,) columns, coarsest first, at least one.
        parts: (p,) parts of the budget, in the order of the mechanism's shares. With a single part nothing can be dragged.
        shown: index of the level that the map shows.
        unit: what is counted, such as "people".
        relative: whether errors are in percent of the average count of a square; else in `unit`.
        key: unique in the app.
        on_level: see `StripCalls`, as for the other callbacks.
        on_unit: see `StripCalls`.
        on_shares: see `StripCalls`; None if the split cannot be changed.
        on_drag: see `StripCalls`; None if nothing is known before a run.
        words: what the strip calls things.
        whole: one sentence on why nothing can be dragged; "" if a share can be, or could be in another run.

    Raises:
        BudgetError: shares are not finite numbers of at least 0, or all of them are 0.
        IndexError: `shown` is not the index of a level.
    """
    calls = StripCalls(on_level=on_level, on_shares=on_shares, on_drag=on_drag, on_unit=on_unit)
    memory: dict[str, Any] = st.session_state.setdefault(f"{key}.memory", new_memory())

    def sent() -> None:
        receive((st.session_state.get(key) or {}).get("sent"), memory, levels, parts, calls)

    data = message(levels, parts, memory, calls) | {"shown": range(len(levels))[shown], "unit": unit, "relative": relative}
    data |= {"words": asdict(words), "whole": whole}
    _strip(key=key, data=data, on_sent_change=carry_out(sent))


def new_memory() -> dict[str, Any]:
    """Make what a page remembers of a strip: the serial number of the newest change of each kind, and the answer to the newest drag."""
    return {"serials": dict.fromkeys(KINDS, 0), "answer": None}


def message(levels: Sequence[StripLevel], parts: Sequence[StripPart], memory: dict[str, Any], calls: StripCalls) -> dict[str, Any]:
    """Make what is sent to the browser of the levels and parts: numbers that are not finite become None.

    A part whose level has no column, or already has a part, gets a column of its own.

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
        "levels": [{name: _finite(value) for name, value in asdict(level).items()} for level in levels],
        "parts": [
            asdict(part) | {"share": share, "level": own_level.get(index)}
            for index, (part, share) in enumerate(zip(parts, shares, strict=True))
        ],
        "editable": calls.on_shares is not None,
        "live": calls.on_drag is not None,
        "serials": dict(memory["serials"]),
        "answer": memory["answer"],
    }


def receive(event: object, memory: dict[str, Any], levels: Sequence[StripLevel], parts: Sequence[StripPart], calls: StripCalls) -> None:
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
    changes = _new_changes(event, memory["serials"])
    for kind, (value, serial) in changes.items():
        if kind == "drag":
            if not serial < memory["serials"]["moved"]:
                memory["answer"] = {"serial": serial, "expected": _answer(value, levels, parts, calls)}
        elif kind == "moved":
            memory["answer"] = None
            with suppress(BudgetError):
                if calls.on_shares is not None:
                    calls.on_shares(check_shares(value, parts))
        elif kind == "level":
            if _is_whole(value) and value in range(len(levels)) and not (levels[value].finer or levels[value].closed):
                calls.on_level(value)
        elif isinstance(value, bool):
            calls.on_unit(value)
        memory["serials"][kind] = serial


def check_shares(values: object, parts: Sequence[StripPart]) -> list[float]:
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


def _answer(values: object, levels: Sequence[StripLevel], parts: Sequence[StripPart], calls: StripCalls) -> list[float | None] | None:
    """Return (n,) expected errors with shares that are tried; None if they are refused or nothing is known."""
    with suppress(DpvizError):
        expected = None if calls.on_drag is None else calls.on_drag(check_shares(values, parts))
        if expected is not None and len(expected) == len(levels):
            return [_finite(number) for number in expected]
    return None


def _finite(value: Any) -> Any:
    """Return a text or a flag unchanged, a finite number as a float, and None for everything else."""
    if value is None or isinstance(value, str | bool):
        return value
    return float(value) if math.isfinite(value) else None


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
