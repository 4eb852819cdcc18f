"""What one person changes in a released count, and what an attacker concludes from it: exact laws, no noise drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.privacy.budget import ApproxBudget

OTHERS = 20
DELTA = 1e-6
LAPLACE, GAUSSIAN = "discrete Laplace", "discrete Gaussian"
NOISES = (LAPLACE, GAUSSIAN)
_MOST_SHOWN = 80
_TAIL = 40


@dataclass(frozen=True, kw_only=True)
class Noise:
    """A law of noise on a count of sensitivity 1.

    Attributes:
        kind: one of `NOISES`.
        epsilon: of the guarantee; for Gaussian noise it holds with `DELTA`.
    """

    kind: str
    epsilon: float

    @property
    def variance(self) -> float:
        """The parameter of Gaussian noise: 1 / (2 rho) for the rho that (epsilon, delta) buys."""
        return _gaussian_variance(self.epsilon)

    @property
    def width(self) -> float:
        """About one standard deviation."""
        return math.sqrt(self.variance) if self.kind == GAUSSIAN else math.sqrt(2) / self.epsilon

    def law(self, k: Integers) -> Floats:
        """(n,) probabilities of noise k.

        Source:
            Ghosh, Roughgarden, Sundararajan, STOC 2009; Canonne, Kamath, Steinke, NeurIPS 2020, Definition 1.
        """
        if self.kind == LAPLACE:
            return np.asarray(math.tanh(self.epsilon / 2) * np.exp(-self.epsilon * np.abs(k)))
        far = math.ceil(_TAIL * math.sqrt(self.variance)) + 1
        every = np.exp(-(np.arange(-far, far + 1.0) ** 2) / (2 * self.variance))
        return np.asarray(np.exp(-(k.astype(np.float64) ** 2) / (2 * self.variance)) / every.sum())

    def log_odds(self, seen: Integers, others: int = OTHERS) -> Floats:
        """(n,) natural logarithm of P(seen | person in) / P(seen | person out): what seeing it adds to the log-odds."""
        away = seen.astype(np.float64) - others
        if self.kind == LAPLACE:
            return np.asarray(self.epsilon * (np.abs(away) - np.abs(away - 1)))
        return np.asarray((2 * away - 1) / (2 * self.variance))


@lru_cache(maxsize=32)
def _gaussian_variance(epsilon: float) -> float:
    return float(1 / (2 * ApproxBudget(epsilon, DELTA).to_zcdp().rho))


def shown_counts(noise: Noise, seen: int) -> Integers:
    """(n,) released counts worth drawing: four standard deviations to both sides, `seen` among them."""
    reach = min(max(math.ceil(4 * noise.width), 6), _MOST_SHOWN)
    return np.arange(min(OTHERS - reach, seen - 2), max(OTHERS + 1 + reach, seen + 2) + 1)


def posterior(prior: float, log_odds: Floats | float) -> Floats:
    """(n,) probability after evidence that adds `log_odds` to the prior's log-odds: Bayes' theorem.

    >>> round(float(posterior(0.5, math.log(3))), 6)
    0.75
    """
    return np.asarray(1 / (1 + np.exp(-(math.log(prior / (1 - prior)) + np.asarray(log_odds)))))


def beyond(noise: Noise) -> tuple[float, float]:
    """How the bound e**epsilon is passed: 0 and 0 for Laplace noise.

    Returns:
        The probability, if the person is in, of an output whose odds ratio is above e**epsilon; and the least delta with which
        (epsilon, delta) holds: the sum of max(0, P(in) - e**epsilon P(out)), the same the other way round by symmetry.
    """
    reach = math.ceil(_TAIL * noise.width) + 2
    seen = np.arange(OTHERS - reach, OTHERS + reach)
    inside, outside = noise.law(seen - OTHERS - 1), noise.law(seen - OTHERS)
    above = noise.log_odds(seen) > noise.epsilon * (1 + 1e-12)
    return float(inside[above].sum()), float((inside - math.exp(noise.epsilon) * outside)[above].sum())
