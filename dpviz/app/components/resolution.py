"""The slider of the resolution of a lattice, on the Points page and for samples of points on the Compare page."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpviz.app.session.widgets import widget_for


def resolution_slider(key: str, order: int, largest: int, change: Callable[[int], object]) -> None:
    """Ask for the order of the lattice.

    Args:
        key: of the slider.
        order: that it shows.
        largest: the largest order.
        change: called with another order.
    """
    st.select_slider(
        "Resolution",
        range(1, largest + 1),
        format_func=describe_resolution,
        help="The domain is cut into so many cells; nothing finer than a cell is ever looked at.",
        **widget_for(key, order, change, without=1),
    )


def describe_resolution(order: int) -> str:
    """Write the number of cells of a lattice.

    >>> describe_resolution(10)
    '1,024 x 1,024 cells'
    """
    return f"{2**order:,} x {2**order:,} cells"
