"""Which epsilon gives a wanted expected error at a wanted level, from the mechanism alone."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpviz.app.cached import keeper
from dpviz.app.compare_state import COMPARE, CompareData
from dpviz.app.compare_words import of_points
from dpviz.app.fields import check, in_range
from dpviz.app.inverse_job import InverseJob
from dpviz.app.ledger import note_teach_look
from dpviz.data.flows import Flows
from dpviz.mechanisms.base import AnyMechanism
from dpviz.publishing.dry_run import Wanted
from dpviz.view.escape import markdown

COARSEST, FINEST = 0, 8
FOUND = "compare found epsilons"
PATIENCE, TICK = 0.6, 0.7  # seconds before a search is shown as running, and between looks at it


def inverse_block(data: CompareData, mechanisms: dict[str, AnyMechanism]) -> None:
    """Ask for an error and a level; give the smallest epsilon of every mechanism.

    Args:
        data: give the public frame, the unit and the bound.
        mechanisms: by their name on screen.
    """
    left, middle, right = st.columns([2, 3, 2], vertical_alignment="bottom")
    error = left.number_input(
        f"Typical error of at most ({data.unit})",
        value=20.0,
        key="wanted error",
        persist_state="session",
        help="Root mean square error of one block or pair, from noise alone.",
    )
    with middle:
        level = _level(data)
    fits = check("wanted error", in_range("Typical error", 0.01, 1e9)(error))
    asked = _asked(data, mechanisms, error, level)
    if right.button("Find ε", key="find epsilon", width="stretch", disabled=not fits) and fits:
        with st.spinner("Looking for ε ..."):
            wanted = _wanted(data, error, level)
            if wanted.records is None or note_teach_look(data):
                _start(asked, data, mechanisms, wanted)
    made: InverseJob | None = st.session_state.get(FOUND)
    if made is not None and made.asked == asked:
        st.fragment(_answers, run_every=TICK if made.running else None)(made, data, made.running)
    looked = "of the data only the number of records is used, rounded to one digit" if of_points(data) else "no trip is looked at"
    st.caption(f"Noise alone, from the mechanisms on the public frame: {looked}. Nothing is spent, and no study is needed.")


def _level(data: CompareData) -> int:
    """Zoom level of points, geographic level of trips."""
    if isinstance(data.data, Flows):
        names = data.data.regions.levels
        chosen = st.selectbox("Between regions of level", names, index=len(names) - 1, key="wanted region level", persist_state="session")
        return names.index(chosen) + 1
    finest = min(data.data.domain.order, FINEST)
    told = "Zoom z cuts the domain into 2^z x 2^z equal blocks."
    return int(st.slider("In blocks of zoom level", COARSEST, finest, min(4, finest), key=f"wanted zoom {finest}", help=told))


def _asked(data: CompareData, mechanisms: dict[str, AnyMechanism], error: float, level: int) -> tuple[object, ...]:
    """What an answer belongs to."""
    return (data.key, tuple((label, tuple(map(str, made.chosen().items()))) for label, made in mechanisms.items()), error, level)


def _wanted(data: CompareData, error: float, level: int) -> Wanted:
    records = _rounded(int(data.data.count.sum())) if of_points(data) else None
    return Wanted(error=error, level=level, delta=COMPARE.config().delta, records=records)


def _start(asked: object, data: CompareData, mechanisms: dict[str, AnyMechanism], wanted: Wanted) -> None:
    """Search in the background; the search before is stopped."""
    fresh = InverseJob(asked, data.data, mechanisms, wanted)
    keeper().take(fresh)
    st.session_state[FOUND] = fresh
    fresh.start(PATIENCE)


def _answers(made: InverseJob, data: CompareData, ran: bool) -> None:
    """What was found so far, and how far the search is.

    Args:
        made: the search.
        data: for the unit.
        ran: whether it ran when the whole page was drawn.
    """
    if ran and not made.running:
        st.rerun()
    if made.running:
        left, right = st.columns([6, 1], vertical_alignment="center")
        left.progress(made.share, f"{markdown(made.at)}: noise is looked at for one ε after the other ...")
        if right.button("Stop", key="stop inverse", width="stretch"):
            made.stop()
            st.rerun()
    elif made.at:
        st.caption(f":orange[Stopped at {markdown(made.at)}: press *Find ε* to look again.]")
    if made.rows:
        _found(pd.DataFrame(made.rows), data)


def _found(rows: pd.DataFrame, data: CompareData) -> None:
    """The table, and under it how each answer was found: notes are long, and shared by several."""
    shown = rows.drop(columns="note").rename(columns={"error": f"typical error there, noise alone ({data.unit})"})
    st.dataframe(shown.round(2), hide_index=True, width="stretch")
    for note, same in rows.groupby("note", sort=False):
        st.caption(f"**{markdown(', '.join(same['Configuration']))}**: {markdown(note)}")


def _rounded(records: int) -> int:
    """To one digit: a guess, as it would be declared."""
    return max(1, int(float(f"{records:.0e}")))
