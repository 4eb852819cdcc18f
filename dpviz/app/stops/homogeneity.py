"""Stop: homogeneity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, draw_setting
from dpviz.evaluation.split_objective import ObjectiveCurve, objective_curve
from dpviz.lessons.homogeneity import REPEATS, chosen_lines, near_best
from dpviz.lessons.maps import Cells, cell_map, chosen, split_curve
from dpviz.lessons.town import TOWNS, TWO, town
from dpviz.mechanisms.base import setting
from dpviz.privacy.budget import PureBudget

ORDER, PEOPLE, ZOOM = 5, 20_000, 5
EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
COLUMNS, ROWS = "left and right", "lower and upper"


@dataclass(frozen=True, kw_only=True)
class Homogeneity(Knobs):
    """Settings of the stop."""

    town: str = setting(TWO, "Town", choices=TOWNS, help=f"{PEOPLE:,} made-up people.")
    parts: str = setting(COLUMNS, "Split into", choices=(COLUMNS, ROWS), help="Which way the line runs.")
    epsilon: float = setting(0.01, "ε for this split", choices=EPSILONS, help="HTF spends little on each split: the paper 0.0005 or 0.001.")
    draw: int = draw_setting()


def show(knobs: Homogeneity) -> Shown:
    """The objective over all lines, the town with the best one, and where private choices fall."""
    points, across = town(ORDER, PEOPLE, knobs.town), knobs.parts == COLUMNS
    curve = objective_curve(points, PureBudget(knobs.epsilon), across=across)
    picked = chosen_lines(points, knobs.epsilon, knobs.draw, across=across)
    gain = 100 * (1 - curve.least / curve.unsplit)
    return Shown(
        rows=((_map(knobs, curve), split_curve(curve, curve_axis(across))), (chosen(picked, curve_axis(across)),)),
        figures=(
            Figure(label="Best line", value=f"{curve.best} of {points.domain.side}", help="Where unevenness is least, without noise."),
            Figure(label="It takes away", value=f"{gain:.1f} %", help="Of the unevenness without a split."),
            Figure(
                label="Noise of the choice",
                value=f"± {curve.choice_noise:,.0f}",
                help="The choice is as if exponential noise of this standard deviation, 4/ε people, were on each line that is tried.",
            ),
            Figure(
                label="Good choices", value=f"{near_best(curve, picked):.0f} %", help="Draws at least half as good as the best tried line."
            ),
        ),
        note="Unevenness: how far each cell is from the mean of its part, added up. Grey band: the noise of the choice. Bars: where"
        f" permute-and-flip, the default, falls among the few evenly spaced lines that it tries, in {REPEATS} seeded draws.",
        source="Shaham et al., HTF: Homogeneous Tree Framework for Differentially-Private Release of Location Data, SIGSPATIAL 2021,"
        " Equation 5.",
    )


def curve_axis(across: bool) -> str:
    """What a line's place is called."""
    return f"{'x' if across else 'y'} of the line"


def _map(knobs: Homogeneity, curve: ObjectiveCurve) -> object:
    side = 1 << ORDER
    width = side >> ZOOM
    blocks = town(ORDER, PEOPLE, knobs.town).blocks(ZOOM)
    row, column = (width * part.ravel() for part in np.indices(blocks.shape))
    cells = pd.DataFrame({"x": column, "y": row, "x2": column + width, "y2": row + width, "value": blocks.ravel()})
    best = curve.best
    left, right = ((0, 0, best, side), (best, 0, side, side)) if curve.across else ((0, 0, side, best), (0, best, side, side))
    parts = pd.DataFrame([left, right], columns=["x", "y", "x2", "y2"])
    look = Cells(
        table=cells[cells["value"] > 0],
        title="The town, and the best line",
        value="people per cell",
        low=0.0,
        high=max(float(blocks.max()), 1.0),
        told=f"The best line is at {curve_axis(curve.across)[0]} = {best} of {side}.",
    )
    return cell_map(look, outlines=parts, strong=True)


HOMOGENEITY = Stop(
    key="homogeneity",
    title="Homogeneity",
    says="The count of an evenly filled part says all there is, so HTF looks for the split that makes both parts as even as possible: the"
    " least sum of all cells' distances from the mean of their part. One person changes that sum by at most 2, so noise of a known size"
    " makes the choice private, and where the noise is larger than the dip the choice is mostly chance.",
    task="lower ε to 0.001 and find out which town's best line survives the noise longest.",
    knobs=Homogeneity,
    show=show,
)
