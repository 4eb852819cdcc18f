"""Stop: why exact medians leak."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, draw_setting, epsilon_setting
from dpviz.lessons.leak import PEOPLE, SIDE, attack, exact_release, given_away, people, private_release, summed_up
from dpviz.lessons.maps import Cells, cell_map
from dpviz.mechanisms.base import setting
from dpviz.release.point_release import Release


@dataclass(frozen=True, kw_only=True)
class Leak(Knobs):
    """Settings of the stop."""

    person: int = setting(5, "Attacked person", low=1, high=PEOPLE, help="The attacker knows where all the others live.")
    epsilon: float = epsilon_setting(1.0, "What all splits of the private tree spend together.")
    height: int = setting(4, "Height of the trees", low=1, high=4, help="Each step halves every part twice.")
    draw: int = draw_setting()


@lru_cache(maxsize=8)
def _exact(height: int) -> Release:
    return exact_release(height)


def show(knobs: Leak) -> Shown:
    """What the attacker believes after seeing the lines of either tree."""
    person = knobs.person - 1
    exact, private = _exact(knobs.height), private_release(knobs.height, knobs.epsilon, knobs.draw)
    open_belief, closed_belief = attack(exact, person, None), attack(private, person, knobs.epsilon)
    maps = (
        _map(open_belief, exact, person, "Exact medians (NOT PRIVATE)"),
        _map(closed_belief, private, person, f"Private medians, ε = {knobs.epsilon:g}"),
    )
    found, hidden = summed_up(open_belief, person), summed_up(closed_belief, person)
    alone, few = given_away(knobs.height)
    return Shown(
        rows=(maps,),
        figures=(
            Figure(label="Cells left: exact", value=f"{found['possible']:,.0f} of {SIDE**2:,}", help="That fit the published lines."),
            Figure(
                label="True cell: exact", value=f"{100 * found['true']:.3g} %", help="What the attacker believes; a blind guess is 0.024 %."
            ),
            Figure(label="True cell: private", value=f"{100 * hidden['true']:.3g} %", help="The same after the private lines."),
            Figure(label="Given away: exact", value=f"{alone} of {PEOPLE}", help=f"People pinned down to one cell; {few} to at most four."),
        ),
        note="Ring: where the person lives. Dots: everybody else, known to the attacker. Only the published lines are used, no count. Under"
        f" the private tree no cell can become more than $e^{{2ε}}$ = {math.exp(2 * knobs.epsilon):.3g} times as likely against another:"
        " moving is leaving and coming.",
    )


def _map(belief: NDArray[np.float64], release: Release, person: int, title: str) -> object:
    row, column = np.nonzero(100 * belief > 0)
    cells = pd.DataFrame({"x": column, "y": row, "x2": column + 1, "y2": row + 1, "value": 100 * belief[row, column]})
    columns, rows = people()
    marks = pd.DataFrame({"x": columns + 0.5, "y": rows + 0.5, "what": "known person", "shape": "dot"})
    marks.loc[person, ["what", "shape"]] = "the attacked person", "circle"
    boxes = pd.DataFrame(release.tree.rectangles(release.tree.leaves), columns=["x", "y", "x2", "y2"])
    told = f"{len(cells):,} cells are possible; the true one is believed with {100 * belief[rows[person], columns[person]]:.3g} %."
    return cell_map(Cells(table=cells, title=title, value="belief (%)", low=0.01, high=100.0, told=told), marks=marks, outlines=boxes)


LEAK = Stop(
    key="leak",
    title="Why exact medians leak",
    says="Splits at exact medians are exact facts about the data: an attacker who knows everybody but one tries that person in every cell"
    " and keeps the cells that give the published lines, often a single one. Private splits are drawn from a law that one person moves by"
    " a bounded factor only, so every cell stays possible, and the same attack learns little.",
    task="attack several people; then set ε to 5 and see that even a generous budget does not bring the exact tree's leak back.",
    knobs=Leak,
    show=show,
)
