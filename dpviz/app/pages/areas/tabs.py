"""Key figures and tabs under the maps of regions; only the open tab is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dpviz.amounts import MISSING, format_decimal
from dpviz.app.components.panes import Chosen
from dpviz.app.components.words import CHOSEN_BEFOREHAND, budget_words, receipt_table, show_chart, show_noise, show_table
from dpviz.app.modes.tabs import MOST_ROWS, end_receipt, show_beside, show_open_tab
from dpviz.app.pages.areas.level import asked_regions, shown_level, shown_rate, toggle_asked
from dpviz.app.pages.areas.state import AREAS, AreasDrawn
from dpviz.app.session.widgets import carry_out, widget_for
from dpviz.app.state.values import CURATE, MOST_ASKED, TEACH
from dpviz.evaluation.area_metrics import AreaEvaluation
from dpviz.release.area_fitness import fitness
from dpviz.release.area_release import AreaRelease
from dpviz.release.tables import escape_texts
from dpviz.release.verdict import verdict
from dpviz.space.regions import Regions
from dpviz.view import areas_charts as charts
from dpviz.view.areas_drawing import AreasDrawing
from dpviz.view.escape import markdown
from dpviz.view.trips_charts import receipt_by_stage

ASK_TAB = "Regions to ask"
TAB_TITLES = ("Worst regions", ASK_TAB, "Receipt", "Table")
ACCURACY_TAB = "Accuracy by level"  # of Curate: in Teach the rail says it
MOST_WORST = 15
NO_PLACES = "These regions have neither outlines nor coordinates: the tab *Table* has their counts."


def _show_key_figures(what: AreasDrawn, level: int) -> None:
    """Show what the rail does not say of a run at the level shown; in Curate, which has no rail, the total and the budget, too."""
    known, columns = fitness(what.release).to_dict("records")[level], st.columns(4)
    name = markdown(known["name"])
    narrow_help = "Share of the regions of this level whose 95 % interval is narrower than half of the released count."
    columns[1].metric("Narrow intervals", f"{known['narrow']:.3g} %", help=narrow_help)
    show_noise(columns[0], float(np.median(what.release.stddev(level))), f"of a region, {name}, in {what.data.unit}")
    if what.draft.mode == CURATE:
        total, spread = float(what.release.count[0]), float(what.release.node_stddev[0])
        columns[2].metric(
            "Released total", f"{total:,.0f} ± {spread:,.0f}", help="Estimate and standard deviation of all regions together."
        )
        columns[3].metric("Budget of this draw", budget_words(what.release.receipt.total), help="See the Receipt tab.")


def show_figures(runs: list[AreasDrawn], evaluations: Sequence[AreaEvaluation | None], level: int) -> None:
    """Show the numbers that sum each run up at the level shown, and the tabs."""
    for what in runs:
        _show_key_figures(what, level)

    def shows_beside(show: Callable[..., None]) -> Callable[[], None]:
        return lambda: show_beside(runs, evaluations, show, level)

    accuracy, worst, receipt, table = map(shows_beside, (_show_accuracy, _show_worst, _show_receipt, _show_table))
    shows = dict(
        zip((ACCURACY_TAB, *TAB_TITLES), (accuracy, worst, lambda: show_sums(runs, evaluations, level), receipt, table), strict=True)
    )
    if runs[0].draft.mode == TEACH:  # the rail and a drawer have these
        shows.pop(ACCURACY_TAB)
        shows.pop(ASK_TAB)
    show_open_tab(list(shows), "areas tab", list(shows.values()))


def show_sums(runs: list[AreasDrawn], evaluations: Sequence[AreaEvaluation | None], level: int) -> None:
    """Ask for regions of the level shown, and show the sum of each run."""
    _choose_asked(runs[0])
    show_beside(runs, evaluations, _show_ask, level)


def _show_accuracy(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int) -> None:  # noqa: ARG001 - tabs are called alike
    """Show errors, false positives and narrow intervals of each level; without the truth what released numbers say."""
    if evaluation is None:
        show_table(style_fitness(what.release))
        st.caption(f"Judged by released numbers alone, in {what.data.unit}: nothing true was looked at.")
        return
    table = evaluation.by_level
    table = table.assign(mean=[graded.mean for graded in verdict(what.release).levels])
    left, right = st.columns(2)
    show_chart(charts.errors_by_level(table), left)
    show_chart(charts.shares_by_level(table), right)
    columns = {"name": "level", "regions": "regions", "mae": "mean error", "rmse": "typical error", "expected": "expected from noise"}
    columns |= {"relative": "mean error, %", "empty": "empty", "false_positives": "false positives", "false_negatives": "missed"}
    columns |= {"max_error": "largest error", "worst": "of region", "narrow": "narrow intervals, %"}
    show_table(table[list(columns)].rename(columns=columns).round(3))
    st.caption(
        f"Errors in {what.data.unit}; the mean error in percent divides by the true count, or by 20 where that is smaller. A region counts"
        " as occupied if 0.5 or more is released."
    )


def style_fitness(release: AreaRelease) -> Styler:
    """Return the table of levels judged by released numbers alone; a dash where the average count is 0: no noise is a share of it."""
    columns = {"name": "level", "regions": "regions", "mean": "average count", "stddev": "noise", "relative": "noise, %"}
    columns |= {"grade": "grade", "narrow": "narrow intervals, %"}
    table = fitness(release)[[*columns]].rename(columns=columns).replace(np.inf, np.nan)
    return escape_texts(table).style.format(precision=2, thousands=",", na_rep=MISSING)


def _show_worst(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int) -> None:
    """Show the regions of the level with the largest errors."""
    if evaluation is None:
        st.info("The largest errors need the truth: turn on *Show curator-only truth* above the map.")
        return
    release, regions = what.release, what.release.regions
    low, high = release.interval(level, joint=True)
    numbers: dict[str, Any] = {"true": evaluation.truth[level], "released": release.count[release.nodes(level)], "low": low, "high": high}
    table = charts.list_worst(regions.ids_of(level), regions.names_of(level), numbers, MOST_WORST)
    show_chart(charts.worst_regions(table, what.data.unit))
    st.caption(
        "The intervals hold for all regions of all levels at once with probability 95 %, and so also for the ones with the largest errors."
        " They end at 0; a released count below zero comes from noise."
    )


def _choose_asked(what: AreasDrawn) -> None:
    """Ask which regions of the level are added up; a click on the map asks, too."""
    regions = what.release.regions
    level, asked = shown_level(regions), asked_regions(regions)
    names = regions.names_of(level)
    st.multiselect(
        f"Regions of level {markdown(regions.levels[level - 1])}",
        range(regions.size(level)),
        format_func=lambda index: str(names[index]),
        placeholder="Click regions on a map, or choose them here",
        max_selections=MOST_ASKED,
        **widget_for("asked", list(asked), lambda chosen: AREAS.change(view={"asked": tuple(chosen)})),
    )


@dataclass(frozen=True, kw_only=True)
class _Sum:
    """The released count of several regions together.

    Attributes:
        count: released; NaN where it is not shown.
        low: lower end of its 95 % interval.
        high: upper end.
        true: the true count; None where it must not be shown. CURATOR ONLY.
    """

    count: float
    low: float
    high: float
    true: int | None


def _add_up(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int, asked: list[int]) -> _Sum:
    ids = [[str(ident) for ident in what.release.regions.ids_of(level)[asked]]]
    parts = (what.release.answer(ids, level=level), *what.release.answer_interval(ids, level=level))
    count, low, high = (float(part[0]) for part in parts)
    return _Sum(count=count, low=low, high=high, true=None if evaluation is None else int(evaluation.truth[level][asked].sum()))


def describe_sum(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int, asked: list[int]) -> str:
    """Write the sum of regions as one sentence, with its interval and, where it may be shown, the truth."""
    regions, found = what.release.regions, _add_up(what, evaluation, level, asked)
    name = str(regions.names_of(level)[asked[0]]) if len(asked) == 1 else f"{len(asked):,} regions together"
    released = f"released {found.count:,.0f}" if np.isfinite(found.count) else "not shown"
    true = "" if found.true is None else f", true {found.true:,}"
    return f"{name}: {released} {what.data.unit} (95 %: {found.low:,.0f} to {found.high:,.0f}){true}."


def take_chosen(regions: Regions, drawing: AreasDrawing, chosen: Chosen) -> bool:
    """Ask for the region that was clicked; return whether it was one."""
    if chosen.cell is None or chosen.kind != "area" or chosen.cell >= len(drawing.areas.color):
        return False
    toggle_asked(regions, chosen.cell)
    st.session_state["areas tab"] = ASK_TAB
    return True


def offer_no_regions() -> None:
    """Show a small button that lets all regions go that were asked for."""
    st.button("No region", key="no region", icon=":material/close:", on_click=carry_out(partial(AREAS.change, view={"asked": ()})))


def _show_ask(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int) -> None:
    """Show the sum of the regions that are asked for, with its interval, its rate and the truth."""
    regions, asked = what.release.regions, list(asked_regions(what.release.regions))
    if not asked:
        st.info("Click one region or more on a map: their sum stands here, with its interval.")
        return
    found, columns = _add_up(what, evaluation, level, asked), st.columns(4)
    known = np.isfinite(found.count)
    shown = f"{found.count:,.0f} {what.data.unit}" if known else "not shown"
    columns[0].metric("Released answer", shown, help=f"The sum of {len(asked):,} regions.")
    columns[1].metric("95 % interval", f"{found.low:,.0f} to {found.high:,.0f}", help=f"Of the sum. {CHOSEN_BEFOREHAND}")
    if found.true is not None:
        error = f"{found.count - found.true:+,.0f} error" if known else None
        columns[2].metric("True answer", f"{found.true:,}", delta=error, delta_color="off")
    denominator = shown_rate(what.data) or next(iter(what.data.denominators.values()), None)
    together = 0.0 if denominator is None else float(np.nansum(1 / denominator.factors(regions, level)[asked]))
    if denominator is not None and together > 0 and known:
        ends = f"95 %: {format_decimal(found.low / together)} to {format_decimal(found.high / together)}."
        columns[3].metric(f"Rate {markdown(denominator.words)}", format_decimal(found.count / together), help=ends)
    text = "Click more regions"
    if len(asked) > 1:
        low, high = what.release.interval(level)
        width, parts = found.high - found.low, float((high - low)[asked].sum())
        text = f"The interval is {width:,.0f} wide; those of the {len(asked):,} regions add up to {parts:,.0f}"
    st.caption(f"{text}: noise partly cancels in a sum.")


def _show_receipt(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int) -> None:  # noqa: ARG001 - tabs are called alike
    """Show what the budget was spent on."""
    receipt = what.release.receipt
    show_chart(receipt_by_stage(receipt))
    receipt_table(receipt)
    end_receipt(what)


def _show_table(what: AreasDrawn, evaluation: AreaEvaluation | None, level: int) -> None:  # noqa: ARG001 - tabs are called alike
    """Show the released regions of the level, the largest first."""
    table = pd.DataFrame(what.release.to_frame(level).drop(columns="geometry")).sort_values("count", ascending=False, kind="stable")
    table = table.rename(columns={"ci_low": "95 % from", "ci_high": "to", "all_low": "all at once, from", "all_high": "all at once, to"})
    show_table(table.head(MOST_ROWS).round(2))
    note = f" The {MOST_ROWS:,} largest of {len(table):,} regions." if len(table) > MOST_ROWS else ""
    stamp = " Simulation: seeded noise, not private." if what.release.simulation else ""
    st.caption(
        "The first interval is for a region that was chosen without a look at the counts; *all at once* holds for all regions of all"
        f" levels, and so also for the largest, which stand first.{note}{stamp}"
    )
