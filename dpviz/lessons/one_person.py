"""Lesson: what one person changes in a released count, and what an attacker concludes from it; exact probabilities, no noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import altair as alt
import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers
from dpviz.lessons.charts import (
    COLORS,
    RED,
    Look,
    band,
    curve_chart,
    horizontal_line,
    join_series,
    series_text,
    style_channel,
    vertical_line,
    x_axis,
    y_axis,
)
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, epsilon_setting
from dpviz.mechanisms.base import setting
from dpviz.privacy.budget import ApproxBudget
from dpviz.view.charts import add_texts, finish, format_cell, tooltip

OTHERS = 20
DELTA = 1e-6
LAPLACE, GAUSSIAN = "discrete Laplace", "discrete Gaussian"
NOISES = (LAPLACE, GAUSSIAN)
_MOST_SHOWN = 80
_TAIL = 40
OUT, IN = "person not in", "person in"


@dataclass(frozen=True, kw_only=True)
class OnePerson(Lesson):
    """The distributions of a noisy count with and without one person, and an attacker's belief after seeing the count."""

    key: ClassVar[str] = "one_person"
    title: ClassVar[str] = "One person more or less"
    text: ClassVar[str] = (
        "A noisy count follows one distribution if a person is in the data and another if not, and ε-differential privacy keeps the"
        " ratio of the two between $e^{-ε}$ and $e^{ε}$ at every output. So whatever is released, and whatever else an attacker knows of"
        " the others, the odds that this person is in change by at most a factor $e^{ε}$; how sure the attacker ends up depends on the"
        " belief before."
    )
    task: ClassVar[str] = "set ε to 0.1 and then to 5: when can one release make a 50 % guess nearly certain?"
    question: ClassVar[str] = (
        "An attacker knows everybody in a group but you, and thinks it 50 % likely that you are in it, too. One noisy count of the"
        " group is released with a privacy budget of ε = 1. How sure of you can the attacker be afterwards, at most?"
    )
    choices: ClassVar[tuple[str, ...]] = ("50 %: nothing is learned", "73 %", "95 %", "100 %, if the count is far off")
    right: ClassVar[int] = 1
    answer: ClassVar[str] = (
        "50 % are odds of 1 : 1. A count with ε = 1 multiplies them by at most $e^1$ = 2.72, and odds of 2.72 : 1 are 73.1 % (those of"
        " 1 : 2.72 are 26.9 %). Something is learned from every release, but never more than that, however strange the count is. The"
        " limit depends on ε and on the belief before: at ε = 0.1 it is 52.5 %, at ε = 5 it is 99.3 %."
    )
    in_class: ClassVar[str] = (
        "Let each student first write a number between 50 and 100, then show the figure. Two wrong beliefs are to be expected: that"
        " private means *nothing is learned*, and that a rare, extreme count gives somebody away. Move the count that is seen from 23 to"
        " 40: the belief stays at 73 %, since the noise decays exactly as slowly as ε allows. Close with ε = 5: the mathematics is the"
        " same, and the promise is nearly worth nothing."
    )

    epsilon: float = epsilon_setting()
    prior: int = setting(50, "Belief before, %", low=1, high=99, help="How sure the attacker is beforehand that the person is in the data.")
    seen: int = setting(23, "Released count that is seen", low=0, high=40, help="The attacker knows the 20 others; the person makes it 21.")
    noise: str = setting(LAPLACE, "Noise", choices=NOISES, help="Laplace keeps the bound for every output, Gaussian except for δ = 1e-6.")

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        noise = Noise(kind=self.noise, epsilon=self.epsilon)
        counts = shown_counts(noise, self.seen)
        likely = {OUT: noise.probabilities(counts - OTHERS), IN: noise.probabilities(counts - OTHERS - 1)}
        distributions = join_series(counts, {name: 100 * each for name, each in likely.items()})
        prior = self.prior / 100
        low, high = (100 * float(posterior(prior, sign * self.epsilon)) for sign in (-1, 1))
        belief = pd.DataFrame({"x": counts, "y": 100 * posterior(prior, noise.log_odds(counts)), "low": low, "high": high})
        belief["series"] = "belief after seeing a count"
        gain = float(noise.log_odds(np.array([self.seen]))[0])
        after = 100 * float(posterior(prior, gain))
        charts = (distribution_chart(distributions, self.seen), belief_chart(belief, (self.prior, after, high), self.seen))
        figures = (
            Figure("Odds change at most", f"× {math.exp(self.epsilon):.3g}", "$e^{ε}$, up or down; with Gaussian noise except for δ."),
            Figure(f"Seeing {self.seen} changes them", f"× {math.exp(gain):.3g}", "P(seen | in) / P(seen | out)."),
            Figure("Belief", f"{self.prior} % → {after:.1f} %", "Bayes' theorem: prior odds times that ratio."),
            Figure("Allowed by $e^{ε}$", f"{low:.1f} to {high:.1f} %", "The grey band, for this belief before."),
        )
        return LessonFigure(rows=(charts,), asked=(charts[:1],), figures=figures, note=_note(noise, self))


def _note(noise: Noise, lesson: OnePerson) -> str:
    if noise.kind != GAUSSIAN:
        return "Grey: what $e^{ε}$ allows. With discrete Laplace noise every output changes the odds by exactly that: never more."
    passed, least = bound_violation(noise)
    return (
        f"Grey: what $e^{{ε}}$ allows. Gaussian noise for (ε, δ) = ({lesson.epsilon:g}, {DELTA:g}): outputs far in the tail pass the bound."
        f" If the person is in, that happens with probability {passed:.2g}; the δ that it takes is {least:.2g}."
    )


def distribution_chart(table: pd.DataFrame, seen: int) -> alt.LayerChart:
    """Draw the probability of every released count, with and without one person.

    Args:
        table: columns x (released count), y (probability in percent), series (`OUT` or `IN`).
        seen: the released count that the attacker sees.
    """
    look = Look("Which count is released?", "released count", "probability (%)", order=(OUT, IN), colors=COLORS)
    names = {"series": "data", "x": look.x, "y": look.y}
    color = style_channel(alt.Color, "series", look.order, look.colors)
    base = alt.Chart(add_texts(table, list(names))).encode(x=x_axis(look, table), color=color, tooltip=tooltip(names))
    area = base.mark_area(opacity=0.18, interpolate="step", aria=False).encode(y=alt.Y(field="y", type="quantitative", stack=None))
    dash = style_channel(alt.StrokeDash, "series", look.order, ([1, 0], [6, 3]))
    line = base.mark_line(strokeWidth=2.2, interpolate="step").encode(y=y_axis(look), strokeDash=dash)
    description = f"The output looked at is {seen}. {series_text(table)}"
    return finish(alt.layer(area, line, _line_at(seen, table)), look.title, description, look.height)


def belief_chart(table: pd.DataFrame, bounds: tuple[float, float, float], seen: int) -> alt.LayerChart:
    """Draw the attacker's belief after each output, within the bounds of differential privacy.

    Args:
        table: columns x (released count), y (percent), low, high (the bounds in percent) and series, one name.
        bounds: the belief before, and the belief at `seen` and its upper bound, in percent.
        seen: the released count that the attacker sees.
    """
    before, after, most = bounds
    name = str(table["series"].iloc[0])
    shown = [format_cell(share) for share in (before, round(after, 2), round(most, 2))]
    description = f"Before: {shown[0]} %. After seeing {seen}: {shown[1]} %. Bound: {shown[2]} %."
    look = Look(
        "What does the attacker believe?",
        "released count",
        "belief that the person is in (%)",
        order=(name,),
        step=True,
        top=100,
        description=description,
    )
    mark = alt.Chart(pd.DataFrame({"x": [seen], "y": [after]})).mark_point(size=130, filled=True, color=RED, opacity=1)
    mark = mark.encode(x=alt.X(field="x", type="quantitative"), y=alt.Y(field="y", type="quantitative"))
    under = (band(table), horizontal_line(before, f"before: {before:g} %"), _line_at(seen, table), mark)
    return curve_chart(table, look, under=under)


def _line_at(seen: int, table: pd.DataFrame) -> Any:
    return vertical_line(seen, f"seen: {seen}", left=bool(2 * seen > table["x"].min() + table["x"].max()))


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The distribution of the noise on a count of sensitivity 1.

    Attributes:
        kind: one of `NOISES`.
        epsilon: epsilon of the guarantee; for Gaussian noise the guarantee is (epsilon, `DELTA`).
    """

    kind: str
    epsilon: float

    @property
    def variance(self) -> float:
        """The parameter of Gaussian noise: 1 / (2 rho) for the rho that (epsilon, delta) buys."""
        return _gaussian_variance(self.epsilon)

    @property
    def width(self) -> float:
        """The standard deviation of the noise, approximately."""
        return math.sqrt(self.variance) if self.kind == GAUSSIAN else math.sqrt(2) / self.epsilon

    def probabilities(self, k: Integers) -> Floats:
        """Return (n,) probabilities that the noise is k.

        Source:
            Ghosh, Roughgarden, Sundararajan, STOC 2009; Canonne, Kamath, Steinke, NeurIPS 2020, Definition 1.
        """
        if self.kind == LAPLACE:
            return np.asarray(math.tanh(self.epsilon / 2) * np.exp(-self.epsilon * np.abs(k)))
        reach = math.ceil(_TAIL * math.sqrt(self.variance)) + 1
        weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * self.variance))
        return np.asarray(np.exp(-(k.astype(np.float64) ** 2) / (2 * self.variance)) / weights.sum())

    def log_odds(self, seen: Integers, others: int = OTHERS) -> Floats:
        """Return (n,) natural logarithms of P(seen | person in) / P(seen | person out), which are added to the prior log-odds."""
        excess = seen.astype(np.float64) - others
        if self.kind == LAPLACE:
            return np.asarray(self.epsilon * (np.abs(excess) - np.abs(excess - 1)))
        return np.asarray((2 * excess - 1) / (2 * self.variance))


@lru_cache(maxsize=32)
def _gaussian_variance(epsilon: float) -> float:
    return float(1 / (2 * ApproxBudget(epsilon, DELTA).to_zcdp().rho))


def shown_counts(noise: Noise, seen: int) -> Integers:
    """Return (n,) released counts to show: four standard deviations to both sides, `seen` among them."""
    reach = min(max(math.ceil(4 * noise.width), 6), _MOST_SHOWN)
    return np.arange(min(OTHERS - reach, seen - 2), max(OTHERS + 1 + reach, seen + 2) + 1)


def posterior(prior: float, log_odds: Floats | float) -> Floats:
    """Return (n,) probabilities after evidence that adds `log_odds` to the log-odds of `prior`, by Bayes' theorem.

    >>> round(float(posterior(0.5, math.log(3))), 6)
    0.75
    """
    return np.asarray(1 / (1 + np.exp(-(math.log(prior / (1 - prior)) + np.asarray(log_odds)))))


def bound_violation(noise: Noise) -> tuple[float, float]:
    """Compute by how much the bound e**epsilon is exceeded: 0 and 0 for Laplace noise.

    Returns:
        First, the probability, if the person is in, of an output whose odds ratio is above e**epsilon. Second, the least delta with which
        (epsilon, delta) holds: the sum over outputs of max(0, P(in) - e**epsilon P(out)), which by symmetry is the same with in and out
        exchanged.
    """
    reach = math.ceil(_TAIL * noise.width) + 2
    seen = np.arange(OTHERS - reach, OTHERS + reach)
    inside, outside = noise.probabilities(seen - OTHERS - 1), noise.probabilities(seen - OTHERS)
    above = noise.log_odds(seen) > noise.epsilon * (1 + 1e-12)
    return float(inside[above].sum()), float((inside - math.exp(noise.epsilon) * outside)[above].sum())
