"""The resolution of the domain of points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpviz.app.components.mechanism_controls import without_split
from dpviz.app.components.resolution import resolution_slider
from dpviz.app.pages.points.state import POINTS
from dpviz.app.server.class_mode import largest_order
from dpviz.app.state.run import Run
from dpviz.app.state.values import LARGEST_ORDER
from dpviz.errors import BudgetError
from dpviz.families import POINT_FAMILY
from dpviz.space.domain import Domain


def choose_order() -> int:
    """Ask for the resolution, and return the order of the lattice."""
    resolution_slider("order", POINTS.draft.order, largest_order(LARGEST_ORDER), _change_order)
    return POINTS.draft.order


def _change_order(order: int) -> None:
    """Change the resolution. A custom split that has a share for each level of the old one is dropped, of each run."""
    draft = POINTS.page.draft
    runs = tuple(replace(run, settings=_fitting_settings(run, order)) for run in draft.runs)
    POINTS.change(draft={"order": order, "runs": runs})


def _fitting_settings(run: Run, order: int) -> dict[str, Any]:
    """Return the settings of a run, without its custom split if that does not fit a resolution."""
    try:
        run.build(POINT_FAMILY).check(Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    except BudgetError:
        return without_split(run.settings)
    return run.settings
