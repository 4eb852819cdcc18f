"""The tabs under the map of points: accuracy, errors by size, range query, receipt and table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.app.components.drawers import ASK
from dpviz.app.components.fields import Field, in_range
from dpviz.app.components.panes import Chosen
from dpviz.app.components.words import (
    AT_ONCE,
    CHOSEN_BEFOREHAND,
    NO_INTERVALS,
    budget_words,
    receipt_table,
    show_chart,
    show_interval,
    show_noise,
    show_table,
)
from dpviz.app.modes.tabs import MOST_ROWS, end_receipt, show_open_tab
from dpviz.app.pages.points.state import POINTS, Drawn
from dpviz.app.session.widgets import carry_out
from dpviz.app.state.values import CURATE, FARTHEST, TEACH
from dpviz.evaluation.metrics import PRESENT, Evaluation, error_by_size, true_answers
from dpviz.evaluation.split_objective import objective_curve
from dpviz.families import POINT_FAMILY
from dpviz.privacy.budget import PureBudget
from dpviz.release.intervals import ASSUMED
from dpviz.release.point_release import PointRelease
from dpviz.release.squares import FINEST_ZOOM, expected_error
from dpviz.space.coverage import TOLERANCE, percent_outside
from dpviz.space.domain import Domain
from dpviz.view import charts
from dpviz.view.basemap import Bounds, box_to_domain
from dpviz.view.partition_looks import OUTSIDE
from dpviz.view.points_canvas import ReleaseView, SquaresView, cell_box
from dpviz.view.study_charts import objective_chart

QUERY_TAB = "Range query"
_BOX_STAYS = "query box stays"
"""What the page says of the interval of a box that cuts partitions, where too little is learned to assume how records lie inside."""
SIZE_TAB = "By size"
NAMES = (SIZE_TAB, QUERY_TAB, "Receipt", "Table")
ACCURACY_TAB = "Accuracy by zoom"  # of Curate: in Teach the rail says it
_CUT_PARTITIONS = {
    "uniform": "count by the share of their area",
    "interpolated": "lean towards fuller neighbours",
    "log-linear": "follow the logarithm of the density around them",
}
SIDES = ("West", "South", "East", "North")


def tabs(what: Drawn, evaluation: Evaluation | None, level: int) -> None:
    """Draw the tabs; only the open one is computed.

    Args:
        what: the release.
        evaluation: its comparison with the truth; None where that must not be shown.
        level: the level that the map shows.
    """
    keep_box(what.release.domain)
    extra = POINT_FAMILY.choices[what.release.mechanism].extra_tab
    draw_extra = EXTRA_TABS.get(extra) if evaluation is not None else None
    shows: list[Callable[[], object]] = [
        partial(_accuracy, what, evaluation),
        partial(_by_size, what, evaluation, level),
        partial(show_query, what, evaluation),
        partial(_receipt, what),
        partial(_table, what, level),
    ]
    named = dict(zip((ACCURACY_TAB, *NAMES), shows, strict=True)) | ({} if draw_extra is None else {extra: partial(draw_extra, what)})
    if what.draft.mode == TEACH:  # the rail and a drawer have these
        named.pop(ACCURACY_TAB)
        named.pop(QUERY_TAB)
    show_open_tab(list(named), "tab", list(named.values()))


def key_figures(what: Drawn, level: int) -> None:
    """Show what the rail does not say of the release at the level shown; in Curate, which has no rail, the total and the budget, too."""
    release, nodes = what.release, what.release.open_nodes(level)
    columns = st.columns(4)
    shown_help = f"At the zoom level of the map; at the finest level the release has {len(release.tree.leaves):,}."
    columns[0].metric("Partitions shown", f"{len(nodes):,}", help=shown_help)
    show_noise(columns[1], float(np.median(release.node_stddev[nodes])), f"of a shown partition, in {what.data.unit}")
    if what.draft.mode == CURATE:
        total, spread = release.count[0], release.node_stddev[0]
        columns[2].metric("Released total", f"{total:,.0f} ± {spread:,.0f}", help="Estimate and standard deviation of the whole domain.")
        spent = budget_words(release.receipt.spent) if release.receipt.private else "NOT PRIVATE"
        columns[3].metric("Budget of this draw", spent, help="See the Receipt tab.")


def _accuracy(what: Drawn, evaluation: Evaluation | None) -> None:
    total = float(what.release.count[0])
    if evaluation is None:
        zooms = range(min(what.release.domain.order, what.release.tree.height, FINEST_ZOOM) + 1)
        noise = [expected_error(what.release, zoom) for zoom in zooms]
        squares = [what.release.domain.count_open_blocks(zoom) for zoom in zooms]
        expected = pd.DataFrame({"zoom": zooms, "blocks": squares, "expected": noise})
        show_chart(charts.expected_by_zoom(expected, what.data.unit, total=total))
        st.caption(f"Expected from the noise alone. Assumptions on how {what.data.unit} lie in a partition add errors of their own.")
        return
    table = evaluation.by_zoom
    left, right = st.columns(2)
    show_chart(charts.accuracy_by_zoom(table, what.data.unit, total=total), left)
    show_chart(charts.false_positives_by_zoom(table, what.data.unit), right)
    st.caption(
        f"Each zoom level cuts the domain into equal squares, four times as many as the level before. {_describe_band(what)} False"
        f" positives are a share of the squares that are empty in truth; a square counts as occupied if {PRESENT} or more is released."
    )


def _describe_band(what: Drawn) -> str:
    """Write what the errors are compared with in the chart of accuracy."""
    cut = f"partitions that a square cuts {_CUT_PARTITIONS[what.release.fill]}"
    if not what.release.states_noise:
        return f"This method states no noise, so that there is no band; {cut}."
    return f"Errors above the band come from assuming how {what.data.unit} lie in a partition: {cut}."


def _by_size(what: Drawn, evaluation: Evaluation | None, level: int) -> None:
    if evaluation is None:
        st.info("Error by true size needs the truth: in Curate, turn on *Show curator-only truth* above the map.")
        return
    nodes = what.release.open_nodes(level)
    table = error_by_size(evaluation.truth[nodes], what.release.count[nodes])
    show_chart(charts.error_by_size(table, what.data.unit))
    st.caption("The same noise weighs little on large partitions and buries small ones.")


def show_query(what: Drawn, evaluation: Evaluation | None) -> None:
    """Ask for a box, and show the answer; `evaluation` is None where the truth must not be shown."""
    box: list[float] = st.session_state["query box"]
    fits = [_side_field(what.release, box, side, column) for side, column in enumerate(st.columns(4))]
    if not all(fits):
        return
    if not (box[0] < box[2] and box[1] < box[3]):
        st.error("A box needs an area: West below East, and South below North.")
        return
    share = float(what.release.coverage([box])[0])
    if share == 0:
        st.error("The box lies outside the domain, where nothing was counted.")
        return
    if share < 1 - TOLERANCE:
        outside = f"{percent_outside(share)} of the box lies outside the domain, where nothing was counted"
        st.warning(f"{outside}: the numbers are of the part inside.")
    _show_answer(what, evaluation, _part_inside(what.release, box))


def describe_answer(what: Drawn) -> str:
    """Write the answer for the box of the query as one sentence, with its interval and, where it is known, the truth."""
    box, release = st.session_state["query box"], what.release
    if not (box[0] < box[2] and box[1] < box[3]):
        return "a box needs an area."
    share = float(release.coverage([box])[0])
    if share == 0:
        return "outside the domain, where nothing was counted."
    inside = _part_inside(release, box)
    released, (low, high) = float(release.answer([inside])[0]), (float(end[0]) for end in release.answer_interval([inside]))
    mark = "" if low <= released <= high or not release.nonnegative else OUTSIDE
    text = f"released {released:,.0f} {what.data.unit}"
    text += f" ({_kind_of_interval(release, inside)}: {low:,.0f} to {high:,.0f}{mark})" if release.states_noise else " (no noise is stated)"
    if what.evaluation is not None:
        parts = _answer_parts(what, what.evaluation, inside)
        text += f", true {parts.truth:,.0f}: {parts.noise:+,.0f} by {'noise' if release.states_noise else 'the method'}"
        text += f", {parts.spreading:+,.0f} by what is assumed inside partitions that the box cuts" if round(parts.spreading) else ""
    return f"{text}." if share >= 1 - TOLERANCE else f"{text}, for the part inside the domain."


@dataclass(frozen=True, kw_only=True)
class _AnswerParts:
    """The true answer for a box, and what makes the released one differ. CURATOR ONLY.

    Attributes:
        truth: the true count.
        noise: the part of the error that noise in the counts of the partitions makes.
        spreading: the part that comes from the assumption on how records lie in partitions that the box cuts.
    """

    truth: float
    noise: float
    spreading: float


def _answer_parts(what: Drawn, evaluation: Evaluation, box: list[float]) -> _AnswerParts:
    truth = float(true_answers(what.data.counts, [box])[0])
    without_noise = float(replace(what.release, count=evaluation.truth.astype(float)).answer([box])[0])
    return _AnswerParts(truth=truth, noise=float(what.release.answer([box])[0]) - without_noise, spreading=without_noise - truth)


def _part_inside(release: PointRelease, box: list[float]) -> list[float]:
    west, south, east, north = release.domain.bounds
    return [max(box[0], west), max(box[1], south), min(box[2], east), min(box[3], north)]


def _show_answer(what: Drawn, evaluation: Evaluation | None, box: list[float]) -> None:
    """Show the answer for a box inside the domain, with its interval and, if `evaluation` is given, the truth."""
    estimate, (low, high) = float(what.release.answer([box])[0]), (float(end[0]) for end in what.release.answer_interval([box]))
    left, middle, right = st.columns(3)
    left.metric("Released answer", f"{estimate:,.0f} {what.data.unit}")
    cut = bool(what.release.cuts([box])[0])
    label = f"Interval: {_kind_of_interval(what.release, box)}" if cut else "95 % interval, noise only"
    show_interval(middle, label, (low, high), _interval_help(what.release, cut))
    if what.release.states_noise and not low <= max(estimate, 0.0) <= high:
        stands = "ends at 0 and stands around" if what.release.nonnegative or low == 0 else f"is centred on {(low + high) / 2:,.0f},"
        st.caption(
            f"The interval {stands} the count without biased steps. The released answer lies outside, since small or negative counts were"
            " changed."
        )
    if evaluation is None:
        st.caption(f"Two partitions clicked on the map set the box. Partitions that the box cuts {_CUT_PARTITIONS[what.release.fill]}.")
        return
    parts = _answer_parts(what, evaluation, box)
    right.metric("True answer", f"{parts.truth:,.0f}", delta=f"{estimate - parts.truth:+,.0f} error", delta_color="off")
    show_chart(charts.parts_of_error(parts.noise, parts.spreading, what.data.unit))


def _kind_of_interval(release: PointRelease, box: list[float]) -> str:
    """Say how often the interval of the answer for a box holds, and what it covers; its help text says more."""
    if not release.cuts([box])[0]:
        return "95 %, noise only"
    return release.says_of_cut_boxes


def _interval_help(release: PointRelease, cut: bool) -> str:
    """Return the help text of the interval of an answer: what it covers, and what it does not; `cut` if the box cuts partitions."""
    text = f"It covers the noise. {CHOSEN_BEFOREHAND}"
    if cut and release.unevenness.is_learned:
        text = (
            f"It holds in {ASSUMED}: that records lie as unevenly inside the partitions that the box cuts as released counts do just above"
            f" them. It is no guarantee. {CHOSEN_BEFOREHAND}"
        )
    elif cut:
        text = (
            "It covers the noise, and reaches from none to all of the records in partitions that the box cuts: counts are too few above"
            f" the noise, or too uneven, to learn how records lie inside. {CHOSEN_BEFOREHAND}"
        )
    return f"{text} It is approximate: {release.approximate}." if release.approximate else text


def _side_field(release: PointRelease, box: list[float], side: int, column: DeltaGenerator) -> bool:
    """Show the field of one side of the box, which may reach outside the domain; return whether the field holds a number that fits."""
    field = Field(
        key=f"query {SIDES[side]}",
        label=SIDES[side],
        value=box[side],
        problem=in_range(SIDES[side], -FARTHEST, FARTHEST),
        use=lambda typed: box.__setitem__(side, typed),
    )
    return field.show(column.number_input, value=None, format="%.12g", step=float(f"{4 * release.domain.cell_size[side % 2]:.1g}"))


def set_query_box(box: Bounds) -> None:
    """Ask the range query for a box, in the domain's coordinates; it stays on the maps until it is removed."""
    st.session_state.setdefault("query box", [0.0] * 4)[:] = box
    st.session_state[_BOX_STAYS] = True


def ask_in_box(domain: Domain, box: Bounds) -> bool:
    """Ask the range query for a box that was dragged on a map, in degrees; return that this changes the page."""
    set_query_box(box_to_domain(domain, box))
    st.session_state["tab"] = QUERY_TAB
    return True


def ask_in_cell(view: ReleaseView | SquaresView, chosen: Chosen) -> bool:
    """Ask the range query for the rectangle that was clicked, two of them for the box around both; return whether it was one."""
    box = None if chosen.cell is None else cell_box(view, chosen.cell)
    if box is not None:
        keep_box(view.release.domain, box)
    return box is not None


def shows_box() -> bool:
    """Return whether the maps show the box of the range query: one that was dragged, clicked or linked, or its fields are shown."""
    asks = POINTS.view.drawer == ASK if POINTS.draft.mode == TEACH else st.session_state.get("tab") == QUERY_TAB
    return asks or bool(st.session_state.get(_BOX_STAYS))


def offer_no_box() -> None:
    """Show a small button that removes the box from the maps."""
    st.button("Remove the box", key="remove box", on_click=carry_out(_remove_box))


def _remove_box() -> None:
    st.session_state[_BOX_STAYS] = False
    if POINTS.view.drawer == ASK:
        POINTS.look(drawer="")


def open_linked_box(domain: Domain) -> None:
    """When a session begins, show the box that the configuration holds, as a link does."""
    box = POINTS.view.box
    if box is not None and "query box" not in st.session_state:
        keep_box(domain)
        set_query_box(box)


def link_box() -> None:
    """Put the box of the range query into the configuration while the maps show it, so that a link holds it."""
    west, south, east, north = (float(f"{side:.12g}") for side in st.session_state["query box"])
    asks = shows_box() and west < east and south < north
    POINTS.look(box=(west, south, east, north) if asks else None)


def keep_box(domain: Domain, clicked: Bounds | None = None) -> None:
    """Update the box of the query: it starts as the middle of each new domain, and spans the last two partitions that were clicked."""
    west, south, east, north = domain.bounds
    box = st.session_state.setdefault("query box", [0.0] * 4)
    last_clicked = st.session_state.setdefault("clicked", [])
    if st.session_state.get("query domain") != (domain.bounds, domain.crs):
        st.session_state["query domain"] = (domain.bounds, domain.crs)
        last_clicked.clear()
        st.session_state.pop(_BOX_STAYS, None)
        width, height = (east - west) / 4, (north - south) / 4
        box[:] = [west + width, south + height, east - width, north - height]
    if clicked is not None and [clicked] != last_clicked[-1:]:
        last_clicked[:] = [*last_clicked[-1:], clicked]
        st.session_state[_BOX_STAYS] = True
        sides = np.array(last_clicked)
        box[:] = [*sides[:, :2].min(axis=0).tolist(), *sides[:, 2:].max(axis=0).tolist()]


def _receipt(what: Drawn) -> None:
    receipt = what.release.receipt
    right = st.container()
    if receipt.steps:
        left, right = st.columns([1, 2])
        show_chart(charts.receipt_by_level(receipt), left)
    with right:
        receipt_table(receipt, "zoom", lambda level: level)
    end_receipt(what)


def _table(what: Drawn, level: int) -> None:
    nodes = what.release.open_nodes(level)
    largest = nodes[np.argsort(-what.release.count[nodes], kind="stable")][:MOST_ROWS]
    boxes = what.release.domain.coordinates(what.release.tree.rectangles(largest))
    table = pd.DataFrame(boxes, columns=list(SIDES))
    table.insert(0, "partition", largest)
    table["count"] = what.release.count[largest].round(1)
    if what.release.states_noise:
        low, high = what.release.node_interval(largest, joint=True)
        table["stddev"], table["all at once, 95 % from"], table["to"] = what.release.node_stddev[largest].round(2), low, high
    table["first measured"] = what.release.noisy[largest]
    if what.release.nonnegative:
        table["count outside"] = (what.release.count[largest] < low) | (what.release.count[largest] > high)
    table["status"] = what.release.status
    if not what.release.receipt.private:
        table = table.rename(columns={"count": "count (NOT PRIVATE)"})
        st.caption(":orange[**NOT PRIVATE**: this table must never be published.]")
    show_table(table)
    st.caption(AT_ONCE.format(numbers=int(what.release.numbers)) if what.release.states_noise else NO_INTERVALS)
    if len(nodes) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} largest of {len(nodes):,} partitions, by released count.")
    if what.release.simulation:
        st.caption("Simulation: seeded noise, not private.")


def split_objective(what: Drawn) -> None:
    """Show the split objective of the first split, over all lines of an axis. It uses the truth: call it only where that is allowed."""
    axis = st.segmented_control("Split", ("columns", "rows"), default="columns", required=True, key="objective axis")
    steps = what.release.receipt.steps
    spent = max((step.amount for step in steps if step.purpose.startswith("splits")), default=Fraction(1, 1000))
    curve = objective_curve(what.data.counts, PureBudget(spent), across=axis != "rows")
    show_chart(objective_chart(curve, what.data.unit))
    st.caption(
        "HTF splits where both parts are most homogeneous: it adds up how far every cell is from the mean of its part, and looks for"
        " the line that makes this sum small, because a part that is evenly filled needs no further cuts. The band is the noise"
        f" of one look at ε {float(spent):.3g}, which one level of splits may spend. Where the band is wider than the curve is deep, the"
        " line that is found is hardly better than chance."
    )


EXTRA_TABS: dict[str, Callable[[Drawn], None]] = {"Split objective": split_objective}
"""Functions that draw the extra tab of a mechanism, by its title (`Mechanism.extra_tab`); called only where the truth may be seen."""
