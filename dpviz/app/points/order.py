"""The resolution of the domain of points."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpviz.app.controls import without_split
from dpviz.app.points.state import LARGEST_ORDER, POINTS, Config, config
from dpviz.app.session import show_value, when_chosen
from dpviz.errors import BudgetError
from dpviz.space.domain import Domain


def choose_order() -> int:
    """Ask for the resolution, and return the order of the lattice."""
    show_value("order", config().order, without=1)
    st.select_slider(
        "Resolution",
        range(1, LARGEST_ORDER + 1),
        key="order",
        format_func=describe_resolution,
        help="The domain is cut into so many cells; nothing finer than a cell is ever looked at.",
        on_change=when_chosen("order", _change_order),
    )
    return config().order


def describe_resolution(order: int) -> str:
    """Write the number of cells of a lattice.

    >>> describe_resolution(10)
    '1,024 x 1,024 cells'
    """
    return f"{2**order:,} x {2**order:,} cells"


def _change_order(order: int) -> None:
    """Change the resolution. A custom split that has a share for each level of the old one is dropped, for both runs."""
    how = config()
    second = {**how.second, "settings": _fitting_settings(how.second_run(), order)} if how.second else {}
    POINTS.change(order=order, settings=_fitting_settings(how, order), second=second)


def _fitting_settings(how: Config, order: int) -> dict[str, Any]:
    """Return the settings of a run, without its custom split if that does not fit a resolution."""
    try:
        how.build().check(Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    except BudgetError:
        return without_split(how.settings)
    return how.settings
