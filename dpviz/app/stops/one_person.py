"""Stop: one person more or less."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, epsilon_setting
from dpviz.lessons.charts import IN, OUT, beliefs, two_laws
from dpviz.lessons.one_person import DELTA, GAUSSIAN, LAPLACE, NOISES, OTHERS, Noise, beyond, posterior, shown_counts
from dpviz.mechanisms.base import setting


@dataclass(frozen=True, kw_only=True)
class OnePerson(Knobs):
    """Settings of the stop."""

    epsilon: float = epsilon_setting()
    prior: int = setting(50, "Belief before, %", low=1, high=99, help="How sure the attacker is beforehand that the person is in the data.")
    seen: int = setting(23, "Released count that is seen", low=0, high=40, help="The attacker knows the 20 others; the person makes it 21.")
    noise: str = setting(LAPLACE, "Noise", choices=NOISES, help="Laplace keeps the bound for every output, Gaussian except for δ = 1e-6.")


def show(knobs: OnePerson) -> Shown:
    """Two laws and what is concluded from an output."""
    noise = Noise(kind=knobs.noise, epsilon=knobs.epsilon)
    counts = shown_counts(noise, knobs.seen)
    laws = pd.concat(
        [pd.DataFrame({"x": counts, "y": 100 * noise.law(counts - at), "series": name}) for at, name in ((OTHERS, OUT), (OTHERS + 1, IN))]
    )
    prior = knobs.prior / 100
    low, high = (100 * float(posterior(prior, sign * knobs.epsilon)) for sign in (-1, 1))
    belief = pd.DataFrame({"x": counts, "y": 100 * posterior(prior, noise.log_odds(counts)), "low": low, "high": high})
    belief["series"] = "belief after seeing a count"
    gain = float(noise.log_odds(np.array([knobs.seen]))[0])
    after = 100 * float(posterior(prior, gain))
    charts = (two_laws(laws, knobs.seen), beliefs(belief, (knobs.prior, after, high), knobs.seen))
    return Shown(rows=(charts,), figures=_figures(knobs, (gain, after, low, high)), note=_note(noise, knobs))


def _figures(knobs: OnePerson, found: tuple[float, float, float, float]) -> tuple[Figure, ...]:
    gain, after, low, high = found
    bound = math.exp(knobs.epsilon)
    return (
        Figure(label="Odds change at most", value=f"× {bound:.3g}", help="$e^{ε}$, up or down; with Gaussian noise except for δ."),
        Figure(label=f"Seeing {knobs.seen} changes them", value=f"× {math.exp(gain):.3g}", help="P(seen | in) / P(seen | out)."),
        Figure(label="Belief", value=f"{knobs.prior} % → {after:.1f} %", help="Bayes' theorem: prior odds times that ratio."),
        Figure(label="Allowed by $e^{ε}$", value=f"{low:.1f} to {high:.1f} %", help="The grey band, for this belief before."),
    )


def _note(noise: Noise, knobs: OnePerson) -> str:
    if noise.kind != GAUSSIAN:
        return "Grey: what $e^{ε}$ allows. With discrete Laplace noise every output changes the odds by exactly that: never more."
    passed, least = beyond(noise)
    return (
        f"Grey: what $e^{{ε}}$ allows. Gaussian noise for (ε, δ) = ({knobs.epsilon:g}, {DELTA:g}): outputs far in the tail pass the bound."
        f" If the person is in, that happens with probability {passed:.2g}; the δ that it takes is {least:.2g}."
    )


ONE_PERSON = Stop(
    key="one_person",
    title="One person more or less",
    says="A noisy count follows one law if a person is in the data and another if not, and ε-differential privacy keeps the ratio of the"
    " two between $e^{-ε}$ and $e^{ε}$ at every output. So whatever is released, and whatever else an attacker knows of the others, the"
    " odds that this person is in change by at most a factor $e^{ε}$; how sure the attacker ends up depends on the belief before.",
    task="set ε to 0.1 and then to 5: when can one release make a 50 % guess nearly certain?",
    knobs=OnePerson,
    show=show,
)
