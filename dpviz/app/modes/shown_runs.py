"""The runs that the maps of Teach show: that of the controls, and further ones with mechanisms, settings and budgets of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from dpviz.app.components.words import budget_text
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import carry_out, widget_for
from dpviz.app.state.page import Page
from dpviz.app.state.run import Run
from dpviz.app.state.values import FURTHER, LARGEST_EPSILON, ORDINALS, SMALLEST_EPSILON
from dpviz.app.state.view import Pane
from dpviz.families import Family
from dpviz.privacy.budget import exact
from dpviz.publishing.code import CodeRun
from dpviz.view.points_canvas import RELEASED, TRUE

TWO, FOUR, SLOTS = "Two", "Four", "Slots"
_TWO_MAPS = (Pane(shows=TRUE), Pane())
_FOUR_MAPS = (Pane(shows=TRUE), Pane(run=1), Pane(), Pane(run=2))  # the second run has more ε than the first one, the third less
_APART = 5  # times as much ε, and as little


@dataclass(frozen=True, kw_only=True)
class ShownRuns:
    """What the maps show.

    Attributes:
        results: the results by the indices of their runs; that of the first run, 0, is always there.
        panes: what each map shows of them.
        fresh: whether the runs are those of the present settings.
    """

    results: Mapping[int, Any]
    panes: tuple[Pane, ...]
    fresh: bool

    @property
    def first(self) -> Any:
        """The result of the first run, which the rail and the numbers are about."""
        return self.results[0]

    @property
    def different(self) -> list[Any]:
        """The different results, that of the first run first: two runs with the same settings have one."""
        return list({id(result): result for result in self.results.values()}.values())

    def of_pane(self, pane: Pane) -> Any:
        """Return the result that a map shows."""
        return self.results[pane.run]

    def tell_apart(self, run: int) -> str:
        """Write what tells a run apart from the others on the maps; "" if it is the only one."""
        return tell_apart({index: result.draft.run for index, result in self.results.items()}, self.first.draft.kind.family, run)

    def named(self) -> list[tuple[str, Any]]:
        """Return each result with the name of its map; the name is "" if there is only one."""
        if len(self.results) == 1:
            return [("", self.first)]
        return [(name_map_of(self.panes, run), result) for run, result in self.results.items()]


def name_maps(panes: Sequence[Pane]) -> list[str]:
    """Return the names of maps by their places.

    >>> name_maps([Pane(), Pane()]), name_maps([Pane()] * 3)
    (['Left map', 'Right map'], ['First map', 'Second map', 'Third map'])
    """
    places = ("left", "right") if len(panes) == 2 else ORDINALS[: len(panes)]
    return [f"{place.capitalize()} map" for place in places]


def name_map_of(panes: Sequence[Pane], run: int) -> str:
    """Return the name of the last map that shows a run; "First run" for the first one if no map does."""
    return dict(zip([pane.run for pane in panes], name_maps(panes), strict=True)).get(run, "First run")


def list_code(shown: ShownRuns) -> list[CodeRun]:
    """Return what the code of a page makes: each run that a map shows."""
    drafts = [(title, result.draft) for title, result in shown.named()]
    return [CodeRun(mechanism=how.build(), budget=how.budget(), seed=how.run.seed, title=title) for title, how in drafts]


def choose_run(state: FamilyState) -> None:
    """Where the maps show several runs, ask whose settings the controls are."""
    page = state.page
    if len(page.shown_runs) == 1:
        return
    name = partial(name_map_of, page.view.panes)
    shown = widget_for("editing", page.edited, lambda run: state.change(view={"edited": run}))
    places = [pane.run for pane in page.view.panes]
    runs = sorted(page.shown_runs, key=lambda run: places.index(run) if run in places else -1)
    st.segmented_control("Settings of", runs, format_func=name, required=True, **shown)
    other = 0 if page.edited else page.shown_runs[1]
    text, about = f"Copy from the {name(other).lower()}", "Mechanism, settings and budget of the other map's run."
    st.button(text, key="copy run", help=about, on_click=carry_out(partial(_copy_run, state, other)))


def _copy_run(state: FamilyState, other: int) -> None:
    """Give the run that is edited the settings of another one; each keeps its seed."""
    page = state.page
    parts = {name: getattr(page.draft.runs[other], name) for name in ("mechanism", "settings", "epsilon", "delta", "noise")}
    replace(state, index=page.edited).change(run=parts, view={"level": page.view.level})


def choose_number(state: FamilyState, *, has_slots: bool = False) -> None:
    """Ask for two maps or four: the truth, and the run of the controls with five times its ε, with its own, and with a fifth.

    Args:
        state: state of the page.
        has_slots: whether there may be a map for each of a few slots.
    """
    view = state.view
    chosen = SLOTS if has_slots and view.by_slot else FOUR if len(view.panes) > 2 else TWO
    about = "Four: the truth, and one mechanism with five times ε, with ε, and with a fifth of it."
    about += " Slots: a map for each part of the day, say, against the whole's usual share." if has_slots else ""
    shown = widget_for("maps", chosen, partial(_change_number, state))
    st.segmented_control("Maps", (TWO, FOUR, *((SLOTS,) if has_slots else ())), required=True, help=about, **shown)


def _change_number(state: FamilyState, number: str) -> None:
    first = state.page.draft.run
    if number != FOUR:
        state.change(view={"panes": _TWO_MAPS, "edited": 0, "by_slot": number == SLOTS})
        return
    runs = (first, _with_epsilon_times(first, _APART), _with_epsilon_times(first, 1 / _APART))
    state.change(draft={"runs": runs}, view={"panes": _FOUR_MAPS, "edited": 0, "by_slot": False})


def _with_epsilon_times(run: Run, factor: float) -> Run:
    if run.epsilon is None:
        return replace(run, rho=None)
    epsilon = min(max(float(run.epsilon) * factor, SMALLEST_EPSILON), LARGEST_EPSILON)
    return replace(run, rho=None, epsilon=exact(float(f"{epsilon:.2g}"), "ε"))


def choose_panes(state: FamilyState, kinds: Sequence[str], part: str = "") -> None:
    """Ask what each map shows; the answer is the title of the map.

    Args:
        state: state of the page.
        kinds: what a map may show of the first run; the first one is taken where the view has another. Nothing is asked without any.
        part: what part of the data the maps show, which the titles say; "" for all of them.
    """
    page, panes = state.page, state.view.panes if kinds else ()
    further = FURTHER[: max(1, len(page.draft.runs) - 1, len(panes) - 2)]
    for at, (pane, name) in enumerate(zip(panes, name_maps(panes), strict=True)):
        chosen = FURTHER[pane.run - 1] if pane.run else pane.shows if pane.shows in kinds else kinds[0]
        st.selectbox(
            name,
            [*kinds, *(further if at + 1 < len(panes) or len(panes) > 2 else [])],  # of two maps the right one is what the rail is about
            format_func=partial(_write_choice, page, part),
            label_visibility="collapsed",
            **widget_for(f"pane {at}{_tell_apart(page, pane.run)}{part}", chosen, partial(_change_pane, state, at)),
        )
    if kinds and len(page.shown_runs) > 1:  # the map that the rail and the sentence are about
        main = f'[class*="st-key-pane-{state.view.main}"]'
        st.html(f"<style>{main} > div {{ outline: 2px solid var(--st-primary-color, #0b6e8f); }}</style>")


def _write_choice(page: Page, part: str, kind: str) -> str:
    """Write what a map may show, and of what part of the data; of several runs on the maps, what tells them apart."""
    run = FURTHER.index(kind) + 1 if kind in FURTHER else 0
    apart = _tell_apart(page, run) if run in page.shown_runs and kind in (RELEASED, *FURTHER) else ""
    return ", ".join(filter(None, (f"{RELEASED}{apart}" if apart else kind, part)))


def _tell_apart(page: Page, run: int) -> str:
    """Write after a comma what tells a run apart. It is part of a menu's key, too: the browser keeps the words of a chosen entry."""
    apart = tell_apart({index: page.draft.runs[index] for index in page.shown_runs}, page.draft.kind.family, run)
    return f", {apart}" if apart else ""


def tell_apart(runs: Mapping[int, Run], family: Family, run: int) -> str:
    """Write what tells one of some runs apart from the others: its mechanism, its ε, or else its place; "" if it is the only one.

    >>> from dpviz.families import POINT_FAMILY
    >>> runs = {0: Run(mechanism="quadtree", epsilon=exact("0.1", "ε")), 2: Run(mechanism="quadtree", epsilon=exact("0.02", "ε"))}
    >>> tell_apart(runs, POINT_FAMILY, 2), tell_apart({0: runs[0]}, POINT_FAMILY, 0)
    ('ε 0.02', '')
    """
    if len(runs) == 1:
        return ""
    keys = [each.mechanism for each in runs.values()]
    if len(set(keys)) == len(keys) and runs[run].mechanism in family.choices:
        return str(family.choices[str(runs[run].mechanism)].title)
    if len({each.epsilon for each in runs.values()}) == len(runs):
        return budget_text(runs[run].epsilon or 0)
    return f"{ORDINALS[run]} run"


def _change_pane(state: FamilyState, at: int, kind: str) -> None:
    """Show something else on a map."""
    pane = Pane(run=FURTHER.index(kind) + 1) if kind in FURTHER else Pane(shows=kind)
    state.change(view={"panes": state.view.with_pane(at, pane)})
