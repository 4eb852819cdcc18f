"""What an audit reads from any release besides its counts: receipt and contents as numbers, and a bound on the noise's probability."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np

from dpviz.arrays import Floats
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.entropy import Entropy
from dpviz.release.area_release import AreaRelease
from dpviz.release.manifest import describe_contents
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease

Numbers = dict[Hashable, float]
Inputs = TypeVar("Inputs")


def pair_of(words: str, inputs: tuple[Inputs, Inputs], observe: Callable[[Inputs, Entropy], Observation]) -> Neighbours:
    """Make a pair of neighbouring inputs with what an attacker observes of a run on each."""
    one, other = inputs
    return Neighbours(words=words, one=partial(observe, one), other=partial(observe, other))


def manifest_numbers(release: PointRelease | TripRelease) -> Numbers:
    """Collect the facts of a manifest, without its tables: the value 1 for each text, the cost and noise of each step, and the contents."""
    return receipt_numbers(release) | dict(_leaves(describe_contents(release), ("manifest",)))


def receipt_numbers(release: PointRelease | TripRelease | AreaRelease) -> Numbers:
    """Collect the facts of a receipt: the value 1 for each text, and the cost and noise of each step."""
    receipt = release.receipt
    facts = (receipt.unit, receipt.neighbours, receipt.total, receipt.contributions, receipt.converted)
    texts = (*map(str, facts), *receipt.notes, *receipt.unprotected, *release.steps)
    numbers: Numbers = {("text", text): 1.0 for text in texts}
    for number, step in enumerate(receipt.steps):
        numbers["numbers measured in step", number, step.purpose] = -1 if step.counts is None else step.counts
        numbers["amount of step", number, step.purpose, step.level, step.noise, step.replaces_later] = float(step.amount)
        numbers["scale of step", number], numbers["sensitivity of step", number] = float(step.scale), float(step.sensitivity)
        numbers["delta of step", number] = float(step.delta)
    return numbers


def _leaves(facts: object, name: tuple[Hashable, ...]) -> Iterator[tuple[Hashable, float]]:
    """Yield each number and each text of a manifest, with the path of keys that leads to it."""
    if isinstance(facts, dict | list):
        for key, value in facts.items() if isinstance(facts, dict) else enumerate(facts):
            yield from _leaves(value, (*name, key))
    elif isinstance(facts, int | float):
        yield name, float(facts)
    else:
        yield (*name, str(facts)), 1.0


def largest_chance(variance: Floats) -> float:
    """Bound the probability of the likeliest outcome of k independent whole-number noises with (k,) variances.

    The bound is the product of 1 / sqrt(1 + 2 variance) over finite variances. No symmetric log-concave distribution on whole numbers has
    a larger probability at 0.

    Source:
        Bobkov, Marsiglietti, Melbourne, "Concentration functions and entropy bounds for discrete log-concave distributions", 2022.
    """
    return float(np.exp(-np.log1p(2 * variance[np.isfinite(variance)]).sum() / 2))
