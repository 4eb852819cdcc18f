"""What the strips under the maps of Points, Trips and Areas share: the parts of the budget, and what a press or a drag changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.mechanism_controls import share_locks, use_shares
from dpviz.app.components.strip import StripPart
from dpviz.app.modes.page_changes import note_change, rerun_if_changed
from dpviz.app.session.page_state import FamilyState
from dpviz.app.state.draft import Draft
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyMechanism, Share
from dpviz.view.escape import html


def find_shares(how: Draft, frame: Any) -> list[Share]:
    """Return the shares of the budget on a public frame, as on the left; one share where the split does not fit it."""
    try:
        return how.shares(frame)
    except DpvizError:
        return [Share(label="counts", share=1.0)]


def make_parts(shares: Sequence[Share], levels: Sequence[int | None]) -> list[StripPart]:
    """Make the parts of the budget, each at its level; None for a part that no level of the strip stands for."""
    locks = share_locks(len(shares)) if len(shares) > 1 else [False]
    return [
        StripPart(label=share.label, share=share.share, locked=locked, level=level, structure=share.structure)
        for share, locked, level in zip(shares, locks, levels, strict=True)
    ]


def strip_options(
    page: FamilyState,
    mechanism: AnyMechanism,
    shares: list[Share],
    expect: Callable[[list[float]], Any],
    choose: Callable[[int], object],
    *,
    fresh: bool,
) -> dict[str, Any]:
    """Return the arguments of `strip` that follow from page and mechanism alone.

    Args:
        page: state of the page; a change runs it again, see `end_strip`.
        mechanism: of the run that is shown.
        shares: of its budget.
        expect: computes the expected errors with other shares while one is dragged.
        choose: shows a level of the strip on the maps.
        fresh: whether the run is that of the controls; if not, the strip shows its split and cannot change it.
    """
    changes = fresh and len(shares) > 1

    def noting(change: Callable[[Any], object]) -> Callable[[Any], None]:
        def change_and_note(value: Any) -> None:
            change(value)
            note_change(_key(page))

        return change_and_note

    return {
        "relative": page.view.relative,
        "key": _key(page),
        "on_level": noting(choose),
        "on_unit": noting(lambda relative: page.change(view={"relative": relative})),
        "on_shares": noting(partial(use_shares, page, shares)) if changes else None,
        "on_drag": expect if changes else None,
        "whole": mechanism.whole_budget if len(shares) == 1 else "",
    }


def end_strip(page: FamilyState, title: str) -> None:
    """Write of which run the strip is, and run the page again if the strip has changed it."""
    st.html(f'<div class="dpviz-note row">{html(title)}</div>')
    rerun_if_changed(_key(page))


def _key(page: FamilyState) -> str:
    return f"{page.prefix}strip"
