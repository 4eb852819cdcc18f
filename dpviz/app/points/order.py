"""The resolution of the domain of points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpviz.app.class_mode import largest_order
from dpviz.app.controls import without_split
from dpviz.app.points.state import POINTS, Config, config
from dpviz.app.resolution import resolution_slider
from dpviz.app.state.values import LARGEST_ORDER
from dpviz.errors import BudgetError
from dpviz.space.domain import Domain


def choose_order() -> int:
    """Ask for the resolution, and return the order of the lattice."""
    resolution_slider("order", config().order, largest_order(LARGEST_ORDER), _change_order)
    return config().order


def _change_order(order: int) -> None:
    """Change the resolution. A custom split that has a share for each level of the old one is dropped, for both runs."""
    how = config()
    second = None if how.second is None else replace(how.second, settings=_fitting_settings(how.second_run(), order))
    POINTS.change(order=order, settings=_fitting_settings(how, order), second=second)


def _fitting_settings(how: Config, order: int) -> dict[str, Any]:
    """Return the settings of a run, without its custom split if that does not fit a resolution."""
    try:
        how.build().check(Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    except BudgetError:
        return without_split(how.settings)
    return how.settings
