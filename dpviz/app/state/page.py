"""A page: what is chosen on it, and what is looked at. Links, files, code and undo all take and give this one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpviz.app.state.draft import Draft
from dpviz.app.state.kinds import PageKind
from dpviz.app.state.run import Run
from dpviz.app.state.values import TEACH
from dpviz.app.state.view import View
from dpviz.families import POINT_FAMILY, TRIP_FAMILY

_BUDGETS = {"points": ("1/10", "1e-6"), "trips": ("1/20", "1e-8")}
"""ε and δ with which a page opens: what noise does is seen at once."""
_SAMPLES = {"points": "la_residents", "trips": "us_flights", "areas": "made_up_city"}


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of a family.

    Attributes:
        draft: what is chosen and typed.
        view: what is looked at.
    """

    draft: Draft = field(default_factory=Draft)
    view: View = field(default_factory=View)

    @property
    def edited(self) -> int:
        """Index of the run whose settings the controls show: another one than the first only in Teach, while a map shows it."""
        shown = {pane.run for pane in self.view.panes}
        return self.view.edited if self.draft.mode == TEACH and self.view.edited in shown else 0

    @property
    def shown_runs(self) -> tuple[int, ...]:
        """Indices of the runs that the maps show; the first run is always among them, and in Curate it is the only one."""
        further = {pane.run for pane in self.view.panes if self.draft.mode == TEACH}
        return tuple(sorted({0} | further))


def usual_page(kind: PageKind) -> Page:
    """Return a page as it opens.

    >>> from dpviz.app.state.kinds import AREAS
    >>> usual_page(AREAS).draft.sample
    'made_up_city'
    """
    family = kind.family
    settings = {} if family is POINT_FAMILY else dict(family.choices[family.usual[0]].page_settings)
    epsilon, delta = _BUDGETS.get(family.name, ("1/2", "1e-6"))
    run = Run(mechanism=family.usual[0], settings=settings, epsilon=Fraction(epsilon), delta=Fraction(delta))
    sample = _SAMPLES.get(family.name, next(iter(kind.samples), None))
    return Page(draft=Draft(family=family.name, sample=sample, runs=(run,)), view=View(level=2 if family is TRIP_FAMILY else None))
