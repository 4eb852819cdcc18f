"""Which epsilon gives a wanted expected error at a wanted level, from the mechanism alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.app.compare_state import COMPARE, CompareData
from dpviz.app.compare_words import of_points
from dpviz.data.flows import Flows
from dpviz.errors import DpvizError
from dpviz.publishing.wanted_epsilon import Wanted, wanted_epsilon

COARSEST, FINEST = 0, 8
FOUND = "compare found epsilons"


def inverse_block(data: CompareData, mechanisms: dict[str, Any]) -> None:
    """Ask for an error and a level; give the smallest epsilon of every mechanism.

    Args:
        data: give the public frame, the unit and the bound.
        mechanisms: by their name on screen.
    """
    left, middle, right = st.columns([2, 3, 2], vertical_alignment="bottom")
    error = left.number_input(
        f"Typical error of at most ({data.unit})",
        0.01,
        1e9,
        20.0,
        key="wanted error",
        persist_state="session",
        help="Root mean square error of one block or pair.",
    )
    with middle:
        level = _level(data)
    if right.button("Find ε", key="find epsilon", width="stretch"):
        with st.spinner("Looking for ε ..."):
            st.session_state[FOUND] = (_asked(data, mechanisms, error, level), _answers(data, mechanisms, error, level))
    asked, rows = st.session_state.get(FOUND, (None, []))
    if asked == _asked(data, mechanisms, error, level):
        _found(pd.DataFrame(rows), data)
    st.caption("From the mechanisms alone, on the public frame: no record is looked at, nothing is spent, and no study is needed.")


def _level(data: CompareData) -> int:
    """Zoom level of points, geographic level of trips."""
    if isinstance(data.data, Flows):
        names = data.data.regions.levels
        chosen = st.selectbox("Between regions of level", names, index=len(names) - 1, key="wanted region level", persist_state="session")
        return names.index(chosen) + 1
    finest = min(data.data.domain.order, FINEST)
    told = "Zoom z cuts the domain into 2^z x 2^z equal blocks."
    return int(st.slider("In blocks of zoom level", COARSEST, finest, min(4, finest), key=f"wanted zoom {finest}", help=told))


def _asked(data: CompareData, mechanisms: dict[str, Any], error: float, level: int) -> tuple[object, ...]:
    """What an answer belongs to."""
    return (data.key, tuple((label, tuple(map(str, made.chosen().items()))) for label, made in mechanisms.items()), error, level)


def _answers(data: CompareData, mechanisms: dict[str, Any], error: float, level: int) -> list[dict[str, Any]]:
    """A row per mechanism."""
    records = _rounded(int(data.data.count.sum())) if of_points(data) else None
    wanted = Wanted(error=error, level=level, delta=COMPARE.config().delta, records=records)
    rows = []
    for label, mechanism in mechanisms.items():
        try:
            found = wanted_epsilon(mechanism, data.data, wanted)
            rows.append({"Configuration": label, "ε": found.epsilon, "error": found.error, "note": found.note})
        except DpvizError as refused:
            rows.append({"Configuration": label, "ε": None, "error": np.nan, "note": str(refused)})
    return rows


def _found(rows: pd.DataFrame, data: CompareData) -> None:
    """The table, and under it how each answer was found: notes are long, and shared by several."""
    shown = rows.drop(columns="note").rename(columns={"error": f"typical error there ({data.unit})"})
    st.dataframe(shown.round(2), hide_index=True, width="stretch")
    for note, same in rows.groupby("note", sort=False):
        st.caption(f"**{', '.join(same['Configuration'])}**: {note}")


def _rounded(records: int) -> int:
    """To one digit: a guess, as it would be declared."""
    return max(1, int(float(f"{records:.0e}")))
