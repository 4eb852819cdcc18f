"""The rail under the maps of Teach: ε with the error that it buys, levels with their shares, and what the shown one is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.mechanism_controls import EPSILONS, USUAL_DELTA, share_locks, use_shares
from dpviz.app.components.rail import RailCalls, RailEpsilon, RailLevel, RailPart, rail
from dpviz.app.jobs.curve import CurveQuestion, Curves, make_curve_job
from dpviz.app.jobs.results import Results
from dpviz.app.modes.page_changes import note_change, rerun_if_changed
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.server.class_limits import TICK_OF_CLASS, in_class
from dpviz.app.session.cached import keeper
from dpviz.app.session.page_state import FamilyState
from dpviz.app.state.draft import Draft
from dpviz.errors import DpvizError
from dpviz.evaluation.level_worth import EMPTY, WorthWords, describe_error
from dpviz.mechanisms.base import GAUSSIAN, AnyMechanism, Share
from dpviz.privacy.budget import Budget
from dpviz.view.points_canvas import FALSE_POSITIVES, RELEASED

_WHOLE = [Share(label="counts", share=1.0)]
_TICK = 1.5  # seconds between two looks at errors that are being computed
_MOST_CURVES = 200  # of samples, which all sessions share; a session keeps as many of its own data
_SHARED = Results(_MOST_CURVES)


@dataclass(frozen=True, kw_only=True)
class RailParts:
    """What the rail of a page shows.

    Attributes:
        frame: the public frame of the run, as mechanisms take it.
        levels: of the first run, the coarsest first, without their curves.
        levels_of: makes the levels of any run.
        numbers: of the levels, as `levels_over_epsilon` numbers them; None for one that it does not know.
        shown: index of the level that the maps show.
        place_shares: returns the level at which each share of the budget stands; None for one that no level stands for.
        expect: returns the expected error of each level, given mechanism and budget, without noise; None if nothing is known before a run.
        choose: shows a level on the maps.
        words: what the sentence calls things.
        slots: of counts by category, the slots that the levels are about, together; None for all of them.
    """

    frame: Any
    levels: Sequence[RailLevel]
    levels_of: Callable[[Any], Sequence[RailLevel]]
    numbers: Sequence[int | None]
    shown: int
    place_shares: Callable[[Sequence[Share]], Sequence[int | None]]
    expect: Callable[[Any, Budget], Iterable[float] | None]
    choose: Callable[[int], object]
    words: WorthWords = EMPTY
    slots: tuple[str, ...] | None = None

    @property
    def sentence(self) -> str:
        """What the shown level is worth in the first run."""
        level = self.levels[self.shown]
        return self.words.describe(level.subject, level.worth)

    def describe_error(self, what: Any) -> str:
        """Write how far off the shown level of a run is."""
        levels = self.levels_of(what)
        level = levels[min(self.shown, len(levels) - 1)]
        return describe_error(level.subject, level.worth)


def show_rail(state: FamilyState, shown: ShownRuns, parts: RailParts, *, waits: bool) -> None:
    """Show the rail of the first run, and have its errors over ε computed.

    Args:
        state: state of the page; a change runs it again.
        shown: the runs; if they are not those of the controls, the rail shows their split and cannot change it.
        parts: what it shows.
        waits: whether a run is being made that follows the one that is shown.
    """
    curves = find_curves(shown.first.data, shown.first.draft, parts.slots)
    computes = curves is None and _is_computing()
    show: Any = st.fragment(_show, run_every=in_class(_TICK, TICK_OF_CLASS) if computes else None)
    show(state, shown, _with_curves(parts, curves, shown.first.draft), computes, waits)


def _show(state: FamilyState, shown: ShownRuns, parts: RailParts, computes: bool, waits: bool) -> None:
    """Show the rail; while a share is dragged, only this function runs."""
    key, how = f"{state.prefix}budget rail", state.draft if shown.fresh else shown.first.draft
    rerun_if_changed(key)
    if computes and not _is_computing():
        st.rerun()
    mechanism: AnyMechanism = how.build()
    shares = _find_shares(how, parts.frame)
    splits = shown.fresh and len(shares) > 1

    def noting(change: Callable[[Any], object]) -> Callable[[Any], None]:
        def change_and_note(value: Any) -> None:
            change(value)
            note_change(key)

        return change_and_note

    def show_map(falses: bool) -> None:
        state.change(view={"panes": state.view.with_shown(FALSE_POSITIVES if falses else RELEASED)})

    of_run = shown.first.draft.run.epsilon if mechanism.spends else None
    rail(
        parts.levels,
        _make_parts(shares, parts.place_shares(shares)),
        RailEpsilon(
            chosen=float(state.draft.run.epsilon or 0) or EPSILONS[0],
            of_run=None if of_run is None else float(of_run),
            steps=EPSILONS,
            waits=waits,
            computes=computes,
        ),
        RailCalls(
            on_epsilon=noting(lambda epsilon: state.change(run={"epsilon": epsilon})),
            on_level=noting(parts.choose),
            on_false=noting(show_map),
            on_shares=noting(partial(use_shares, state, shares)) if splits else None,
            on_drag=partial(_expect, state, parts) if splits else None,
        ),
        shown=parts.shown,
        key=key,
        words=parts.words,
        shows_false=state.view.shown == FALSE_POSITIVES,
        whole=mechanism.whole_budget if len(shares) == 1 else "",
    )


def find_curves(data: Any, how: Draft, slots: tuple[str, ...] | None = None) -> Curves | None:
    """Return the errors over ε of each level, for public data; None while they are computed, which this starts, and without any ε."""
    mechanism = how.build()
    if not mechanism.spends:
        return None
    delta, gaussian = float(how.run.delta or USUAL_DELTA), how.run.noise == GAUSSIAN
    key = (data.counts, mechanism.key, str(mechanism.chosen()), delta if how.takes_delta else 0, gaussian, slots)
    known: Results = _SHARED if data.bundled else st.session_state.setdefault("curves", Results(_MOST_CURVES))
    if (found := known.get(key)) is not None:
        return found  # type: ignore[no-any-return]
    kept = keeper().find("curve")
    if kept is None or kept.key != key:
        question = CurveQuestion(mechanism=mechanism, counts=data.counts, delta=delta, gaussian=gaussian, slots=slots, known=known)
        job = make_curve_job(key, question)
        keeper().take(job)
        job.start()
    return None


def _is_computing() -> bool:
    job = keeper().find("curve")
    return job is not None and job.is_running


def _with_curves(parts: RailParts, curves: Curves | None, how: Draft) -> RailParts:
    """Return what a rail shows with the errors over ε, which at the ε of the run are those that were measured."""
    if curves is None or how.run.epsilon is None:
        return parts

    def join(level: RailLevel, number: int | None) -> RailLevel:
        curve = None if number is None else curves.get(number)
        worth, epsilon = level.worth, float(how.run.epsilon or 0)
        return level if curve is None else replace(level, curve=curve.joined_to(epsilon, worth.error, worth.false_share))

    return replace(parts, levels=[join(*each) for each in zip(parts.levels, parts.numbers, strict=True)])


def _expect(state: FamilyState, parts: RailParts, shares: list[float]) -> list[float | None] | None:
    """Compute the expected error of each level with other shares."""
    errors = parts.expect(state.draft.build().with_shares(shares), state.draft.budget())
    return None if errors is None else [float(error) if math.isfinite(error) else None for error in errors]


def _find_shares(how: Draft, frame: Any) -> list[Share]:
    """Return the shares of the budget on a public frame, as on the left; one share where the split does not fit it."""
    try:
        return how.shares(frame)
    except DpvizError:
        return _WHOLE


def _make_parts(shares: Sequence[Share], levels: Sequence[int | None]) -> list[RailPart]:
    locks = share_locks(len(shares)) if len(shares) > 1 else [False]
    return [
        RailPart(label=share.label, share=share.share, locked=locked, level=level, structure=share.structure)
        for share, locked, level in zip(shares, locks, levels, strict=True)
    ]
