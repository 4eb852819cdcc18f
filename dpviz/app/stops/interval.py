"""Stop: reading an interval."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, draw_setting, epsilon_setting
from dpviz.lessons.charts import interval_rows
from dpviz.lessons.interval import AREAS, BLOCK, HELD, MISSED, ORDER, REPEATS, intervals, usual_range
from dpviz.mechanisms.base import setting
from dpviz.view.charts import signed


@dataclass(frozen=True, kw_only=True)
class Interval(Knobs):
    """Settings of the stop."""

    area: str = setting(BLOCK, "Area", choices=tuple(AREAS), help="What is asked of every release.")
    epsilon: float = epsilon_setting(0.5)
    height: int = setting(4, "Height of the tree", low=3, high=5, help="Higher: smaller partitions, less bias, more noise on each.")
    draw: int = draw_setting()


def show(knobs: Interval) -> Shown:
    """A hundred intervals."""
    found = intervals(knobs.area, knobs.epsilon, knobs.height, knobs.draw)
    low, high = usual_range()
    width = (1 << ORDER) >> knobs.height
    return Shown(
        rows=((interval_rows(found.table, found.truth, (HELD, MISSED)),),),
        figures=(
            Figure(
                label="Hold the true count", value=f"{found.held} of {REPEATS}", help=f"At exactly 95 %, {low} to {high} would be usual."
            ),
            Figure(label="Noise, as stated", value=f"± {found.stddev:.3g}", help="Standard deviation, known without the truth."),
            Figure(
                label="Bias",
                value=signed(round(found.bias, 1)) if round(found.bias, 1) else "0",
                help="Of assuming that partitions are evenly filled; in no interval.",
            ),
            Figure(label="True count", value=f"{found.truth:,.0f}", help="Shown here because the town is made up."),
        ),
        note=f"Partitions are {width} × {width} cells. Intervals reach 2.12 standard deviations to both sides and are rounded outwards:"
        " exact for one Laplace count, cautious for sums of many.",
    )


INTERVAL = Stop(
    key="interval",
    title="Reading an interval",
    says="The 95 % is about the procedure: of many releases of the same data, at least 95 in 100 on average state an interval that holds"
    " the true count; one interval holds it or does not. It covers the noise only: where an area cuts through partitions, assuming that"
    " people are spread evenly in them adds a bias that no interval shows.",
    task="choose the area that cuts through partitions, then make the tree higher: what happens to bias, noise and the number that hold?",
    knobs=Interval,
    show=show,
)
