"""Stop: counts that agree."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, draw_setting, epsilon_setting
from dpviz.lessons.charts import LARGEST_GAP, Look, by_step, icicle
from dpviz.lessons.consistency import AFTER, BEFORE, LEVELS, REPEATS, errors_by_level, one_draw
from dpviz.mechanisms.base import setting


@dataclass(frozen=True, kw_only=True)
class Consistency(Knobs):
    """Settings of the stop."""

    epsilon: float = epsilon_setting(0.5)
    split: str = setting("uniform", "Budget over levels", choices=("uniform", "geometric"), help="How ε is shared between the four levels.")
    draw: int = draw_setting()


def show(knobs: Consistency) -> Shown:
    """The street before and after, and errors by level."""
    table = one_draw(knobs.split, knobs.epsilon, knobs.draw)
    theory, drawn = errors_by_level(knobs.split, knobs.epsilon, knobs.draw)
    names = {"level": "x", "error": "y"}
    look = Look(
        title="Error by level",
        x="level",
        y="typical error (people)",
        order=(BEFORE, AFTER),
        height=260,
        told=f"Lines are theory, rings {REPEATS} draws.",
    )
    streets = tuple(icicle(table[table["series"] == name], LEVELS, name.capitalize()) for name in (BEFORE, AFTER))
    before, after = (theory.loc[theory["series"] == name, "error"].to_numpy() for name in (BEFORE, AFTER))
    gain = 100 * (1 - after / before)
    return Shown(
        rows=(streets, (by_step(theory.rename(columns=names), look, dots=drawn.rename(columns=names)),)),
        figures=(
            Figure(
                label="Contradictions before",
                value=f"{_wrong(table, BEFORE)} of 7",
                help="Parts whose count is not the sum of their own two parts'.",
            ),
            Figure(
                label="After",
                value=f"{_wrong(table, AFTER)} of 7",
                help="Least squares makes every count the sum of its parts; rounding is only on screen.",
            ),
            Figure(
                label="Error, whole street", value=f"−{gain[0]:.0f} %", help="What least squares takes from the typical error, by theory."
            ),
            Figure(label="Error, one area", value=f"−{gain[-1]:.0f} %", help="The same for the smallest areas."),
        ),
        note="Orange: a count that its own parts contradict; in small print what they add up to. A street of eight areas is halved three"
        f" times and counted on every level. Lines: theory. Rings: {REPEATS} seeded draws. No other unbiased linear combination of the same"
        " measurements has a smaller variance, for any count or sum.",
    )


def _wrong(table: pd.DataFrame, name: str) -> int:
    """How many counts differ from the sum of their parts'."""
    return int((table.loc[table["series"] == name, "gap"].abs() > LARGEST_GAP).sum())


CONSISTENCY = Stop(
    key="consistency",
    title="Counts that agree",
    says="A whole and its parts are measured with separate noise and so contradict each other; weighted least squares finds the counts that"
    " agree and are nearest to all measurements, the precise ones weighing more. It uses released numbers only and so costs no privacy, and"
    " it makes every level more accurate.",
    task="press *Draw again* and find a part where the measurement was far off: which of its neighbours pulled it back?",
    knobs=Consistency,
    show=show,
)
