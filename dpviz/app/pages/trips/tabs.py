"""Key figures and tabs under the maps of trips; only the open tab is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.amounts import format_percent
from dpviz.app.components.panes import Chosen
from dpviz.app.components.words import (
    AT_ONCE,
    CHOSEN_BEFOREHAND,
    NO_INTERVALS,
    receipt_table,
    show_chart,
    show_interval,
    show_noise,
    show_table,
)
from dpviz.app.modes.tabs import MOST_ROWS, end_receipt, show_beside, show_open_tab, show_title
from dpviz.app.pages.trips.filters import toggle_region
from dpviz.app.pages.trips.state import TripsDrawn
from dpviz.app.session.widgets import show_error
from dpviz.app.state.values import CURATE, TEACH
from dpviz.errors import DpvizError
from dpviz.evaluation.pair_lists import compare_lists
from dpviz.evaluation.trip_metrics import TripEvaluation, error_bounds
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.intervals import OF_RELEASED_PAIRS
from dpviz.release.trip_release import TripRelease
from dpviz.space.regions import Regions
from dpviz.view import trips_charts as charts
from dpviz.view.escape import markdown
from dpviz.view.trips_charts import MATRIX_CAPTION, matrix_chart
from dpviz.view.trips_drawing import TripsDrawing, TripsMapSettings

REGION_TAB, PAIR_TAB = "Region", "Pair of regions"
TAB_TITLES = ("Errors by level", REGION_TAB, PAIR_TAB, "Consistency", "Receipt", "Table", "Matrix")
_MAP_INTERVALS = "The intervals on the maps are wider: they hold for all pairs at once."
Runs = Sequence[TripsDrawn]
Truths = Sequence[TripEvaluation | None]
"""Of each run its comparison with the truth; None where that must not be shown."""
LEVEL_ZERO = "all"  # name of the level above all regions, and id of its one region


def show_figures(runs: Runs, truths: Truths, view: TripsMapSettings) -> None:
    """Show the numbers that sum each run up at the level shown, and the tabs."""
    for what, truth in zip(runs, truths, strict=True):
        show_title(what, runs)
        _show_key_figures(what, truth, view.level)
    shows: list[Callable[[], object]] = [
        partial(_show_errors, runs, truths),
        partial(_show_region, runs, truths, view),
        partial(_show_pair, runs, truths),
        partial(_show_consistency, runs, truths),
        *(partial(show_beside, runs, truths, show, view) for show in (_show_receipt, _show_table, _show_matrix)),
    ]
    named = dict(zip(TAB_TITLES, shows, strict=True))
    if runs[0].draft.mode == TEACH:
        named = {title: show for title, show in named.items() if title not in (REGION_TAB, PAIR_TAB)}  # they have a drawer of their own
    show_open_tab(list(named), "trips tab", list(named.values()))


def show_questions(runs: Runs, truths: Truths, view: TripsMapSettings) -> None:
    """Show what leaves, arrives and stays in a region, or the trips between two."""
    shows = [partial(_show_region, runs, truths, view), partial(_show_pair, runs, truths)]
    show_open_tab((REGION_TAB, PAIR_TAB), "trips tab", shows)


def _show_key_figures(what: TripsDrawn, evaluation: TripEvaluation | None, level: int) -> None:
    release = what.release
    counts = release.stages[2 * level].count
    negative, is_list = int((counts < 0).sum()), release.half_step_sums is not None and level == release.depth
    columns = iter(st.columns(3 + bool(negative) + is_list + (evaluation is None)))
    possible = release.tree.size(2 * level)
    released = "listed pairs" if is_list else "pairs with a count above 0"
    pairs_help = f"{what.title}: {released} of this level, out of {possible:,} possible ones. {_describe_list_bound(release, level)}"
    pairs_help += "" if evaluation is None else f" {_explain_false(release, level, what.data.unit)}"
    next(columns).metric(
        "Pairs above zero" if negative else "Pairs released",
        f"{int((counts > 0).sum()):,}",
        delta=_describe_within(release, level),
        delta_color="off",
        delta_arrow="off",
        help=pairs_help,
    )
    if negative:
        negative_help = "Pairs with a count below zero: noise on pairs with few trips or none. They keep sums unbiased."
        next(columns).metric("Below zero", f"{negative:,}", help=negative_help)
    if is_list:
        rest, total = int(release.unlisted_trips(0, 0).count.sum()), max(int(release.stages[0].count.sum()), 1)
        above = "coarser levels count" if level > 1 else "the total counts"
        rest_help = f"{100 * rest / total:.1f} % of all {what.data.unit} are in no listed pair; {above} them."
        next(columns).metric("Not listed", f"{rest:,}", help=rest_help)
    stddev = release.stddev(level)
    show_noise(next(columns), float(np.median(stddev)) if len(stddev) and release.states_noise else math.nan, "of a released pair")
    if evaluation is None:
        next(columns).metric("Released total", f"{int(release.stages[0].count.sum()):,}", help=f"All {what.data.unit}.")
        next(columns).metric("Budget of this draw", f"ε {float(what.draft.run.epsilon or 0):g}", help="See the Receipt tab.")
        return
    row = evaluation.by_stage.to_dict("records")[2 * level]
    next(columns).metric("Largest error", f"{row['max_error']:,}", help=f"Of any pair of this level, in {what.data.unit}.")


def _describe_within(release: TripRelease, level: int) -> str | None:
    """Write how many pairs above 0 are between two regions, which have arcs on a map, and how many within one; None if there are none."""
    stage = release.stages[2 * level]
    within = int(((stage.count > 0) & (stage.origin == stage.destination)).sum())
    if release.tree.origins != release.tree.destinations or not within:
        return None
    return f"{int((stage.count > 0).sum()) - within:,} between regions, {within:,} within"


def _describe_list_bound(release: TripRelease, level: int) -> str:
    """Write how many released pairs of a level may be empty; "" for a release whose list does not bound it."""
    if release.most_false is None:
        return ""
    if level < release.depth:
        return f"Any number of them may be empty: the limit of {format_percent(release.most_false)} holds at the finest level."
    return f"On average, at most {format_percent(release.most_false)} of the listed pairs are empty."


def _explain_false(release: TripRelease, level: int, unit: str) -> str:
    """Write why released pairs can be empty, and at which level their share is bounded."""
    few = f"Pairs with few {unit} cannot be told apart from pairs with none."
    if release.most_false is None:
        return few
    limit = f"The limit of {format_percent(release.most_false)} is an average over runs"
    if level == release.depth:
        return f"{limit}; pairs that noise may explain are not listed."
    return f"{few} {limit}, for the list of the finest level alone; this level has no list, and releases every pair above 0."


def _show_errors(runs: Runs, truths: Truths) -> None:
    """Show measured errors by level, or without the truth those that are expected from the noise."""
    unit = runs[0].data.unit
    known = [truth for truth in truths if truth is not None]
    if not known:
        for what in runs:
            show_title(what, runs)
            show_chart(charts.expected_by_stage(what.release, unit))
        st.caption("Expected from the mechanism alone: the noise on each measured number, before counts are made whole and consistent.")
        return
    _offer_lists(runs[0])
    if len(known) > 1:
        show_beside(
            runs,
            known,
            lambda what, truth: show_chart(charts.errors_by_stage(truth.by_stage, error_bounds(what.release), unit)),
        )
        tables = {what.title: truth.by_stage for what, truth in zip(runs, known, strict=True)}
        for metric, column in zip(("mean_error", "false_discovery", "false_negative"), st.columns(3), strict=True):
            show_chart(charts.compare_stages(tables, metric, unit), column)
        return
    release, table = runs[0].release, known[0].by_stage
    left, middle, right = st.columns(3)
    show_chart(charts.errors_by_stage(table, error_bounds(release), unit), left)
    show_chart(charts.rates_by_stage(table), middle)
    show_chart(charts.pairs_by_stage(table), right)
    bound = (
        " The bound holds for all pairs of a level at once with probability 95 %; it is a worst case, known without the truth."
        if np.isfinite(error_bounds(release)).any()
        else ""
    )
    st.caption(f"From one level to the next, either the destinations or the origins become finer.{bound}")


def _offer_lists(what: TripsDrawn) -> None:
    """Offer to compare lists of pairs by several mechanisms, on public data only: each setting is a release of its own."""
    budget, slot = what.draft.budget(), f"lists of draw {what.number}"
    if what.draft.mode == CURATE or not isinstance(budget, ApproxBudget):
        return
    pressed = st.button("Compare lists of pairs", help="Releases these trips once with each setting of three mechanisms.")
    if pressed and slot not in st.session_state:
        with st.spinner("Releasing with every setting ..."):
            neighbours, entropy = what.draft.build().neighbours, Entropy.seeded(what.number)
            try:
                st.session_state[slot] = compare_lists(what.data.counts, budget, entropy, neighbours=neighbours)
            except DpvizError as error:
                show_error(str(error))
    if slot in st.session_state:
        show_chart(charts.lists_chart(st.session_state[slot]))
        st.caption(
            "One release each. The fitted tree's list bounds the share of false pairs beforehand; TopDown's dial has no such bound, and the"
            " trips of the pairs that it drops go to other pairs (see the largest error in the tooltips)."
        )


def _show_region(runs: Runs, truths: Truths, view: TripsMapSettings) -> None:
    """Show the trips that start in the chosen region, that end there, and that do both."""
    if view.chosen is None:
        st.info("Click a region on the map, or choose it at *Trips from and to*.")
        return
    regions, unit = runs[0].release.tree.origins, runs[0].data.unit
    name, ident = str(regions.names_of(view.level)[view.chosen]), regions.ids_of(view.level)[view.chosen]
    st.markdown(f"**{markdown(name)}**")

    def show_totals(what: TripsDrawn, truth: TripEvaluation | None, region: int) -> None:
        release = what.release
        rows = _list_totals(release, ident, view.level, truth)
        show_chart(charts.totals_bars(rows, unit))
        show_table(rows)
        if "do both" not in set(rows["trips"]) and _regions_exist(release, ident, ident, (view.level, view.level)):
            st.caption(f"Start and end here: {_describe_rest(release, (region, region), unit)}")
        if release.approximate:
            st.caption(f"The intervals are approximate: {release.approximate}." if release.states_noise else NO_INTERVALS)

    show_beside(runs, truths, show_totals, view.chosen)
    st.caption(
        f"In {unit}. Each 95 % interval (low to high) covers the noise only; for sums over many regions, it is that of the best"
        f" single level. {OF_RELEASED_PAIRS}"
    )


def _list_totals(release: TripRelease, ident: str, level: int, truth: TripEvaluation | None) -> pd.DataFrame:
    """Make a table of the trips that start or end in a region or do both, with their intervals, and true numbers if `truth` is given.

    A region whose trips to itself are not listed has no row for them.
    """
    questions = (
        ("start here", ident, LEVEL_ZERO, (level, 0)),
        ("end here", LEVEL_ZERO, ident, (0, level)),
        ("do both", ident, ident, (level, level)),
    )
    rows = []
    for title, origin, destination, levels in questions:
        if not _regions_exist(release, origin, destination, levels):
            continue
        u, v = release.tree.origins.find([origin], levels[0]), release.tree.destinations.find([destination], levels[1])
        if release.is_unlisted(levels, u, v)[0]:
            continue
        count = release.answer([origin], [destination], levels=levels)
        low, high = release.answer_interval([origin], [destination], levels=levels)
        row: dict[str, Any] = {"trips": title, "released": int(count[0]), "low": low[0], "high": high[0], "status": release.status}
        if truth is not None:
            row["true"] = int(truth.true_sums(*levels).at(u, v)[0])
        rows.append(row)
    return pd.DataFrame(rows)


def _regions_exist(release: TripRelease, origin: str, destination: str, levels: tuple[int, int]) -> bool:
    """Return whether both regions exist; destinations may have a hierarchy of their own."""
    found = release.tree.origins.find([origin], levels[0])[0], release.tree.destinations.find([destination], levels[1])[0]
    return bool(min(found) >= 0)


def _show_pair(runs: Runs, truths: Truths) -> None:
    """Show the released answer for any pair of regions at any two levels; a click on an arc fills the pair in."""
    tree = runs[0].release.tree
    left, right = st.columns(2)
    origin_level, origin = _choose_region(left, "From", tree.origins)
    destination_level, destination = _choose_region(right, "To", tree.destinations)
    if origin is None or destination is None:
        st.info("Choose a region on both sides.")
        return
    show_beside(runs, truths, _show_answer, (origin_level, destination_level), (origin, destination))


def _show_answer(what: TripsDrawn, truth: TripEvaluation | None, levels: tuple[int, int], pair: tuple[int, int]) -> None:
    """Show the released number of one pair with its interval, or where the trips of a pair that is not listed are counted."""
    release, unit = what.release, what.data.unit
    tree, (origin, destination) = release.tree, (np.array([index], np.int32) for index in pair)
    ids = [tree.origins.ids_of(levels[0])[pair[0]]], [tree.destinations.ids_of(levels[1])[pair[1]]]
    true = None if truth is None else int(truth.true_sums(*levels).at(origin, destination)[0])
    one, two, three = st.columns(3)
    if release.is_unlisted(levels, origin, destination)[0]:
        one.metric("Released answer", "not listed")
        st.caption(_describe_rest(release, pair, unit))
        if true is not None:
            three.metric("True answer", f"{true:,}")
        return
    count, (low, high) = int(release.answer(*ids, levels=levels)[0]), release.answer_interval(*ids, levels=levels)
    one.metric("Released answer", f"{count:,} {unit}")
    kind = f"Approximate: {release.approximate}." if release.approximate else "Exact for the noise."
    holds = OF_RELEASED_PAIRS if release.for_released else CHOSEN_BEFOREHAND
    show_interval(two, "95 % interval, this pair alone", (low[0], high[0]), f"{kind} {holds} {_MAP_INTERVALS}")
    if true is not None:
        three.metric("True answer", f"{true:,}", delta=f"{count - true:+,} error", delta_color="off")


def _describe_rest(release: TripRelease, pair: tuple[int, int], unit: str) -> str:
    """Write where the trips of a pair that is not listed are counted: in the rest of the pair of larger regions that it lies in.

    Args:
        release: with a list.
        pair: indices of the origin and the destination, at the level of the leaves.
        unit: what is counted, in the plural.
    """
    tree, depth = release.tree, release.depth
    above = tree.levels(tree.height - 1)
    u, v = int(tree.origins.ancestors(above[0], depth)[pair[0]]), int(tree.destinations.ancestors(above[1], depth)[pair[1]])
    rest = int(release.unlisted_trips(*above).at(np.array([u], np.int32), np.array([v], np.int32))[0])
    names = markdown(tree.origins.names_of(above[0])[u]), markdown(tree.destinations.names_of(above[1])[v])
    return f"This pair has no number of its own. All pairs from {names[0]} to {names[1]} that are not listed have {rest:,} {unit} together."


def take_chosen(regions: Regions, drawing: TripsDrawing, chosen: Chosen) -> bool:
    """Choose the region that was clicked, or put the ends of an arc into the tab of pairs; return whether it was one of these."""
    if chosen.cell is None:
        return False
    if chosen.kind == "arc" and chosen.cell < len(drawing.arcs.origin):
        for title, ends in (("From", drawing.arcs.origin), ("To", drawing.arcs.destination)):
            st.session_state[f"pair {title} level"] = regions.levels[drawing.view.level - 1]
            st.session_state[f"pair {title} region {drawing.view.level}"] = int(ends[chosen.cell])
        st.session_state["trips tab"] = PAIR_TAB
    elif chosen.kind == "area" and chosen.cell < len(drawing.areas[0].color):
        toggle_region(chosen.cell)
        st.session_state["trips tab"] = REGION_TAB
    return True


def _choose_region(column: Any, title: str, regions: Regions) -> tuple[int, int | None]:
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
    region = column.selectbox(
        f"{title}: region", range(regions.size(level)), key=key, format_func=lambda index: str(labels[index]), persist_state="session"
    )
    return level, region


def _show_consistency(runs: Runs, truths: Truths) -> None:
    """Show whether each level adds up to the one above it, as checked on the released numbers."""
    show_beside(runs, truths, _check_sums)
    st.caption("Checked on the released numbers: each pair against the sum of the pairs that it is refined into.")


def _check_sums(what: TripsDrawn, truth: TripEvaluation | None) -> None:  # noqa: ARG001 - tabs are called alike
    release = what.release
    table = release.inconsistencies()
    wrong = int(table["mismatches"].sum())
    left_out = "".join(f" ({markdown(step)})" for step in release.steps if "left out" in step)
    rest = "; listed pairs do so together with their rest" if release.half_step_sums is not None else ""
    text = f"{wrong:,} pairs do not add up{left_out}." if wrong else f"Every level adds up to the one above it, pair by pair{rest}."
    st.markdown(f":green[{text}]" if wrong == 0 else f":orange[{text}]")
    show_table(table.drop(columns="stage").rename(columns={"between": "level", "largest_gap": "largest gap"}))


def _show_receipt(what: TripsDrawn, truth: TripEvaluation | None, view: TripsMapSettings) -> None:  # noqa: ARG001 - tabs are called alike
    """Show what the budget was spent on."""
    receipt = what.release.receipt
    if receipt.steps:
        show_chart(charts.receipt_by_stage(receipt))
    receipt_table(receipt)
    end_receipt(what)


def _show_table(what: TripsDrawn, truth: TripEvaluation | None, view: TripsMapSettings) -> None:  # noqa: ARG001 - tabs are called alike
    """Show the released pairs of the level, the largest first."""
    release = what.release
    table = release.to_frame(view.level).sort_values("count", ascending=False, kind="stable")
    if release.states_noise:
        known, ends = ["origin", "destination", "count", "count_noisy", "stddev", "status"], {"all_low": "95 % from", "all_high": "to"}
        table = table[[*known, *ends]].rename(columns=ends)
    else:
        table = table[["origin", "destination", "count", "status"]].rename(columns={"count": "count (NOT PRIVATE)"})
        st.caption(":orange[**NOT PRIVATE**: this table must never be published.]")
    show_table(table.head(MOST_ROWS))
    st.caption(AT_ONCE.format(numbers=int(release.numbers)) if release.states_noise else NO_INTERVALS)
    if len(table) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} largest of {len(table):,} released pairs.")
    if release.simulation:
        st.caption("Simulation: seeded noise, not private.")


def _show_matrix(what: TripsDrawn, truth: TripEvaluation | None, view: TripsMapSettings) -> None:  # noqa: ARG001 - tabs are called alike
    """Show the pairs of the largest regions as a matrix."""
    show_chart(matrix_chart(what.release, view.level, view.unit))
    st.caption(MATRIX_CAPTION)
