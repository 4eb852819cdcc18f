"""What a change of a part of a page brings with it: the one place where such rules stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpviz.app.state.draft import Draft
from dpviz.app.state.page import Page
from dpviz.app.state.run import Run
from dpviz.app.state.values import SMALLEST_EPSILON
from dpviz.app.state.view import View
from dpviz.privacy.budget import exact

SECOND_BUDGET = 10  # a further run begins with this part of the first run's ε
_NEW_DATA = ("source", "sample")
_NEW_LEVELS = ("mechanism", "settings")


@dataclass(frozen=True, kw_only=True)
class Change:
    """New values of parts of a page, by their names.

    Attributes:
        draft: parts of the draft.
        run: parts of a run.
        index: which run.
        view: parts of the view.
    """

    draft: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    index: int = 0
    view: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[str]:
        """Names of the parts that it changes, by which undo knows quick changes of the same parts."""
        return frozenset([*self.draft, *self.view, *(f"{name} of run {self.index}" for name in self.run)])


def apply_change(page: Page, change: Change) -> Page:
    """Return a page with a change, and with what that brings with it.

    A new ε or δ takes the place of the ρ of an opened configuration. Another sample has its usual size. Other data have other levels, and
    so may have another mechanism. Where records come to be counted by category, runs have a mechanism that counts so; where they no longer
    are, none has. A map that shows a run which is not there yet starts it, with less budget, so that the maps differ at once. What the
    change itself says goes before these rules.

    Raises:
        IndexError: there is no run of that index.
    """
    run = _change_run(page.draft.runs[change.index], change.run)
    runs = (*page.draft.runs[: change.index], run, *page.draft.runs[change.index + 1 :])
    has_new_sample = change.draft.get("sample", page.draft.sample) != page.draft.sample
    new_sample = {"size": None} if has_new_sample else {}
    draft = replace(page.draft, **{"runs": runs, **new_sample, **change.draft})
    view = replace(page.view, **_changed_view(page, draft, change))
    runs = draft.runs if "runs" in change.draft or "mechanism" in change.run else runs_that_count(draft, page.draft)
    return Page(draft=replace(draft, runs=_with_missing_runs(runs, view)), view=view)


def runs_that_count(draft: Draft, before: Draft) -> tuple[Run, ...]:
    """Return the runs of a draft, with mechanisms for what is counted now: by category, or by place alone."""
    if draft.by_category == before.by_category:
        return draft.runs
    family = draft.kind.family
    usual = next(key for key, kind in family.choices.items() if kind.by_category) if draft.by_category else family.usual[0]
    parts: dict[str, Any] = {"mechanism": usual, "settings": dict(family.choices[usual].page_settings)}
    stays = [run.mechanism in family.choices and family.choices[run.mechanism].by_category == draft.by_category for run in draft.runs]
    return tuple(run if as_it_is else replace(run, **parts) for run, as_it_is in zip(draft.runs, stays, strict=True))


def _change_run(run: Run, parts: Mapping[str, Any]) -> Run:
    replaced = {"rho": None} if parts.keys() & {"epsilon", "delta"} else {}
    return replace(run, **{**replaced, **parts})


def _changed_view(page: Page, draft: Draft, change: Change) -> dict[str, Any]:
    """Return the parts of the view that change: those that are named, and those that have no meaning any more."""
    has_new_data = any(getattr(draft, name) != getattr(page.draft, name) for name in _NEW_DATA)
    has_new_levels = draft.kind.levels_of_run and bool(change.run.keys() & set(_NEW_LEVELS))
    parts: dict[str, Any] = {"level": None} if has_new_data or has_new_levels else {}
    parts |= change.view
    if parts.get("level", page.view.level) != page.view.level or has_new_data:
        parts = {"asked": (), **parts}
    return {"slots": None, **parts} if has_new_data else parts


def _with_missing_runs(runs: tuple[Run, ...], view: View) -> tuple[Run, ...]:
    missing = max((pane.run for pane in view.panes), default=0) + 1 - len(runs)
    return (*runs, *[_weaker(runs[0])] * missing)


def _weaker(run: Run) -> Run:
    """Return a run with a tenth of the ε, and ε and δ in place of ρ."""
    if run.epsilon is None:
        return replace(run, rho=None)
    return replace(run, rho=None, epsilon=max(run.epsilon / SECOND_BUDGET, exact(SMALLEST_EPSILON, "ε")))
