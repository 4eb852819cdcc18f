"""The tabs under the maps of trips: errors by stage, one region, one pair, consistency, the receipt, the table and the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.app.ledger import describe_look
from dpviz.app.points_state import CURATE
from dpviz.app.trips_state import TripsDrawn
from dpviz.app.words import AT_ONCE, CHOSEN_BEFOREHAND, receipt_table, small_print
from dpviz.evaluation.flow_metrics import FlowEvaluation, error_bounds
from dpviz.release.at_once import count_of_numbers, pair_intervals
from dpviz.release.flow_release import FlowRelease, interval
from dpviz.space.regions import Regions
from dpviz.view import trips_charts as charts
from dpviz.view.escape import markdown
from dpviz.view.trips_map import TripsMapSettings

NAMES = ("Errors by stage", "Region", "Pair of regions", "Consistency", "Receipt", "Table", "Matrix")
MOST_ROWS = 5000
LEVEL_ZERO = "all"


def trips_tabs(what: TripsDrawn, truths: tuple[FlowEvaluation, ...], view: TripsMapSettings) -> None:
    """Draw the tabs; only the open one is computed."""
    errors, region, pair, consistency, receipt, table, matrix = st.tabs(NAMES, key="trips tab", on_change="rerun")
    if errors.open:
        with errors:
            _errors(what, truths)
    if region.open:
        with region:
            _region(what, truths, view)
    if pair.open:
        with pair:
            _pair(what, truths)
    if consistency.open:
        with consistency:
            _consistency(what)
    for tab, drawing in ((receipt, _receipt), (table, _table), (matrix, _matrix)):
        if tab.open:
            with tab:
                for place, column in enumerate(st.columns(len(what.releases))):
                    with column:
                        _heading(what, place)
                        drawing(what, place, view)


def _heading(what: TripsDrawn, place: int) -> None:
    if len(what.releases) > 1:
        st.markdown(f"**{what.titles[place]}**")


def _errors(what: TripsDrawn, truths: tuple[FlowEvaluation, ...]) -> None:
    if not truths:
        for place, release in enumerate(what.releases):
            _heading(what, place)
            st.altair_chart(charts.expected_by_stage(release, what.data.unit), width="stretch")
        st.caption("Expected from the mechanism alone: the noise on each measured number, before counts are made whole and consistent.")
        return
    if len(truths) > 1:
        tables = {title: each.by_stage for title, each in zip(what.titles, truths, strict=True)}
        for place, column in enumerate(st.columns(len(truths))):
            with column:
                _heading(what, place)
                bounds = error_bounds(what.releases[place])
                st.altair_chart(charts.errors_by_stage(truths[place].by_stage, bounds, what.data.unit), width="stretch")
        for metric, column in zip(("mean_error", "false_discovery", "false_negative"), st.columns(3), strict=True):
            column.altair_chart(charts.compare_stages(tables, metric, what.data.unit), width="stretch")
        return
    release, table = what.releases[0], truths[0].by_stage
    left, middle, right = st.columns(3)
    left.altair_chart(charts.errors_by_stage(table, error_bounds(release), what.data.unit), width="stretch")
    middle.altair_chart(charts.rates_by_stage(table), width="stretch")
    right.altair_chart(charts.pairs_by_stage(table), width="stretch")
    st.caption(
        "A stage refines the destinations or the origins by one level. The bound holds for all pairs of a stage at once with"
        " probability 95 %; it is a worst case, known without the truth."
    )


def _region(what: TripsDrawn, truths: tuple[FlowEvaluation, ...], view: TripsMapSettings) -> None:
    """Show trips out of, into and within the chosen region."""
    if view.chosen is None:
        st.info("Click a region on the map, or choose one in the box above it.")
        return
    regions = what.releases[0].tree.origins
    name, ident = str(regions.names_of(view.level)[view.chosen]), regions.ids_of(view.level)[view.chosen]
    st.markdown(f"**{markdown(name)}**")
    for place, (release, column) in enumerate(zip(what.releases, st.columns(len(what.releases)), strict=True)):
        with column:
            _heading(what, place)
            rows = _totals(release, ident, view.level, truths[place] if truths else None)
            st.altair_chart(charts.totals_bars(rows, what.data.unit), width="stretch")
            st.dataframe(rows, hide_index=True, width="stretch")
    st.caption(
        f"In {what.data.unit}. The interval is that of the noise alone; sums over many regions take the best single stage. Where counts"
        " are made whole and consistent, it is approximate: between 86 and 98 % of true sums were inside in our tests."
    )


def _totals(release: FlowRelease, ident: str, level: int, truth: FlowEvaluation | None) -> pd.DataFrame:
    """Return the trips that leave, arrive or stay as a table, with their intervals, and true numbers if `truth` is given."""
    asked = (
        ("leaving or staying", ident, LEVEL_ZERO, (level, 0)),
        ("arriving or staying", LEVEL_ZERO, ident, (0, level)),
        ("staying", ident, ident, (level, level)),
    )
    rows = []
    for title, origin, destination, levels in asked:
        if not _known(release, origin, destination, levels):
            continue
        count, stddev = release.answer([origin], [destination], levels=levels, spread=True)
        low, high = interval(count, stddev)
        row: dict[str, Any] = {"trips": title, "released": int(count[0]), "low": low[0], "high": high[0], "status": release.status}
        if truth is not None:
            u, v = release.tree.origins.find([origin], levels[0]), release.tree.destinations.find([destination], levels[1])
            row["true"] = int(truth.true_sums(*levels).at(u, v)[0])
        rows.append(row)
    return pd.DataFrame(rows)


def _known(release: FlowRelease, origin: str, destination: str, levels: tuple[int, int]) -> bool:
    """Return whether both regions exist; destinations may have a hierarchy of their own."""
    found = release.tree.origins.find([origin], levels[0])[0], release.tree.destinations.find([destination], levels[1])[0]
    return bool(min(found) >= 0)


def _pair(what: TripsDrawn, truths: tuple[FlowEvaluation, ...]) -> None:
    """Show the released answer for any pair of regions at any two levels; a click on an arc fills the pair in."""
    tree = what.releases[0].tree
    left, right = st.columns(2)
    a, u = _choose(left, "From", tree.origins)
    b, v = _choose(right, "To", tree.destinations)
    if u is None or v is None:
        st.info("Choose a region on both sides.")
        return
    for place, (release, column) in enumerate(zip(what.releases, st.columns(len(what.releases)), strict=True)):
        count, stddev = release.answer([tree.origins.ids_of(a)[u]], [tree.destinations.ids_of(b)[v]], levels=(a, b), spread=True)
        low, high = interval(count, stddev)
        with column:
            _heading(what, place)
            one, two, three = st.columns(3)
            one.metric("Released answer", f"{count[0]:,} {what.data.unit}")
            kind = f"Approximate: {release.approximate}." if release.approximate else "Exact for the noise."
            two.metric("95 % interval, noise only", f"{low[0]:,.0f} to {high[0]:,.0f}", help=f"{kind} {CHOSEN_BEFOREHAND}")
            if truths:
                where = np.array([u], np.int32), np.array([v], np.int32)
                true = int(truths[place].true_sums(a, b).at(*where)[0])
                three.metric("True answer", f"{true:,}", delta=f"{int(count[0]) - true:+,} error", delta_color="off")


def ask_for_pair(regions: Regions, level: int, origin: object, destination: object) -> None:
    """Put the pair of an arc that was clicked into the tab of pairs."""
    for title, place in (("From", origin), ("To", destination)):
        if isinstance(place, int):
            st.session_state[f"pair {title} level"] = regions.levels[level - 1]
            st.session_state[f"pair {title} region {level}"] = place


def _choose(column: Any, title: str, regions: Regions) -> tuple[int, int | None]:
    """Ask for a level and a region of it; return the level and the region's index."""
    names = (LEVEL_ZERO, *regions.levels)
    slot = f"pair {title} level"
    if st.session_state.get(slot) not in names:
        st.session_state[slot] = names[1]
    level = names.index(column.selectbox(f"{title}: level", names, key=slot, persist_state="session"))
    labels = regions.names_of(level)
    key = f"pair {title} region {level}"
    if (st.session_state.get(key) or 0) >= regions.size(level):
        st.session_state[key] = 0
    place = column.selectbox(
        f"{title}: region", range(regions.size(level)), key=key, format_func=lambda place: str(labels[place]), persist_state="session"
    )
    return level, place


def _consistency(what: TripsDrawn) -> None:
    """Show whether each stage adds up to the stage above it, as checked on the released numbers."""
    for place, (release, column) in enumerate(zip(what.releases, st.columns(len(what.releases)), strict=True)):
        with column:
            _heading(what, place)
            table = release.inconsistencies()
            wrong = int(table["mismatches"].sum())
            left_out = "".join(f" ({markdown(step)})" for step in release.steps if "left out" in step)
            says = f"{wrong:,} pairs do not add up{left_out}." if wrong else "Every stage adds up to the one above it, pair by pair."
            st.markdown(f":green[{says}]" if wrong == 0 else f":orange[{says}]")
            st.dataframe(table, hide_index=True, width="stretch")
    st.caption("Checked on the released numbers: each pair against the sum of the pairs that it is refined into.")


def _receipt(what: TripsDrawn, place: int, view: TripsMapSettings) -> None:  # noqa: ARG001 - tabs are called alike
    release = what.releases[place]
    receipt = release.receipt
    st.altair_chart(charts.receipt_by_stage(receipt), width="stretch")
    receipt_table(receipt, "stage", lambda stage: stage)
    if receipt.converted is not None:
        st.caption(f"{receipt.total} buys {receipt.converted} by the {receipt.conversion} conversion.")
    extra = [f"**Time**: {what.seconds[place]:.2f} s on the server."] if what.config.mode != CURATE else []
    if what.account is not None:
        extra.append(f"**Truth looked at while tuning**: {describe_look(what.account)}.")
    small_print(receipt, release.steps, release.approximate, extra)


def _table(what: TripsDrawn, place: int, view: TripsMapSettings) -> None:
    release = what.releases[place]
    table = release.level(view.level, spread=True).drop(columns=["ci_low", "ci_high"])
    at, ends = release.stages[2 * view.level], pair_intervals(release, 2 * view.level)
    order = np.lexsort((at.destination, at.origin))
    table["all at once, 95 % from"], table["to"] = (end[order] for end in ends)
    table = table.sort_values("count", ascending=False, kind="stable")
    st.dataframe(table.head(MOST_ROWS), hide_index=True, width="stretch")
    st.caption(AT_ONCE.format(numbers=count_of_numbers(release)))
    if len(table) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} largest of {len(table):,} released pairs.")
    if release.simulation:
        st.caption("Simulation: seeded noise, not private.")


def _matrix(what: TripsDrawn, place: int, view: TripsMapSettings) -> None:
    st.altair_chart(charts.matrix_chart(what.releases[place], view.level, view.unit), width="stretch")
