"""The strip under the maps of Teach: level, budget and error, with what another split of the budget would give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.mechanism_controls import share_locks, use_shares
from dpviz.app.components.strip import SQUARES, StripLevel, StripPart, StripWords, strip
from dpviz.app.modes.page_changes import note_change, rerun_if_changed
from dpviz.app.modes.second_run import ShownRun
from dpviz.app.session.page_state import FamilyState
from dpviz.app.state.draft import Draft
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyMechanism, Share
from dpviz.privacy.budget import Budget
from dpviz.view.escape import html

_WHOLE = [Share(label="counts", share=1.0)]


@dataclass(frozen=True, kw_only=True)
class StripParts:
    """What the strip of a page shows.

    Attributes:
        about: a sentence on what its levels are.
        frame: the public frame of the run, as mechanisms take it.
        levels: its columns, the coarsest level first.
        shown: index of the level that the maps show.
        place_shares: returns the level at which each share of the budget stands; None for one that no level stands for.
        expect: returns the expected error of each level, given mechanism and budget, without noise; None if nothing is known before a run.
        choose: shows a level on the maps.
        words: what the strip calls things.
    """

    about: str
    frame: Any
    levels: Sequence[StripLevel]
    shown: int
    place_shares: Callable[[Sequence[Share]], Sequence[int | None]]
    expect: Callable[[Any, Budget], Iterable[float] | None]
    choose: Callable[[int], object]
    words: StripWords = SQUARES


@st.fragment
def show_strip(state: FamilyState, shown: ShownRun, parts: StripParts, title: str) -> None:
    """Show the strip of the run of the right map; while a share is dragged, only this function runs.

    Args:
        state: state of the page; a change runs it again.
        shown: the runs; if they are not those of the controls, the strip shows their split and cannot change it.
        parts: what the strip shows.
        title: of which run it is.
    """
    key, how = f"{state.prefix}strip", state.draft if shown.fresh else shown.first.draft
    mechanism: AnyMechanism = how.build()
    shares = _find_shares(how, parts.frame)
    changes = shown.fresh and len(shares) > 1

    def noting(change: Callable[[Any], object]) -> Callable[[Any], None]:
        def change_and_note(value: Any) -> None:
            change(value)
            note_change(key)

        return change_and_note

    strip(
        parts.levels,
        _make_parts(shares, parts.place_shares(shares)),
        shown=parts.shown,
        unit=shown.first.data.unit,
        relative=state.view.relative,
        key=key,
        on_level=noting(parts.choose),
        on_unit=noting(lambda relative: state.change(view={"relative": relative})),
        on_shares=noting(partial(use_shares, state, shares)) if changes else None,
        on_drag=partial(_expect, state, parts) if changes else None,
        words=parts.words,
        whole=mechanism.whole_budget if len(shares) == 1 else "",
    )
    st.html(f'<div class="dpviz-note row">{html(f"{title} {parts.about}")}</div>')
    rerun_if_changed(key)


def _expect(state: FamilyState, parts: StripParts, shares: list[float]) -> list[float | None] | None:
    """Compute the expected error of each level with other shares."""
    errors = parts.expect(state.draft.build().with_shares(shares), state.draft.budget())
    return None if errors is None else [float(error) if math.isfinite(error) else None for error in errors]


def _find_shares(how: Draft, frame: Any) -> list[Share]:
    """Return the shares of the budget on a public frame, as on the left; one share where the split does not fit it."""
    try:
        return how.shares(frame)
    except DpvizError:
        return _WHOLE


def _make_parts(shares: Sequence[Share], levels: Sequence[int | None]) -> list[StripPart]:
    locks = share_locks(len(shares)) if len(shares) > 1 else [False]
    return [
        StripPart(label=share.label, share=share.share, locked=locked, level=level, structure=share.structure)
        for share, locked, level in zip(shares, locks, levels, strict=True)
    ]
