"""One person's home and work in many releases: what all of them together allow, and what an attacker finds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from dpviz.arrays import Floats, Integers
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace

SIDE, MOST_DAYS, TABLES = 8, 100, 2
DELTA = 1e-6
HOME, WORK = (2, 5), (6, 1)
BASIC, ZCDP = "sum of ε", "zCDP, read as (ε, δ)"
_SEED = 17


@dataclass(frozen=True, kw_only=True, eq=False)
class Attack:
    """What an attacker who knows everybody else believes after each day.

    Attributes:
        home: (days + 1, SIDE, SIDE) probabilities of the home's cell [row, column], the prior first.
        work: likewise of the place of work.
    """

    home: Floats
    work: Floats

    def after(self, days: int) -> tuple[float, float]:
        """Belief in the true home and in the true place of work."""
        return float(self.home[days][HOME[1], HOME[0]]), float(self.work[days][WORK[1], WORK[0]])

    def first_sure(self, belief: float = 0.95) -> int | None:
        """The first day from which home and work are both believed with at least `belief` to the end; None if there is none."""
        both = np.minimum(self.home[:, HOME[1], HOME[0]], self.work[:, WORK[1], WORK[0]])
        unsure = np.flatnonzero(both < belief)
        last = int(unsure[-1]) + 1 if unsure.size else 0
        return last if last < len(both) else None


@lru_cache(maxsize=16)
def attack(epsilon: float, draw: int) -> Attack:
    """A table of the nights and one of the noons is released on each of `MOST_DAYS` days, each with `epsilon` and fresh noise.

    The other people stay where they are, and the attacker knows them; every cell is as likely beforehand.

    Args:
        epsilon: of each table.
        draw: seed.
    """
    nights, noons = Entropy.seeded(draw).spawn(2)
    return Attack(home=_followed(HOME, epsilon, nights, _SEED), work=_followed(WORK, epsilon, noons, _SEED + 1))


def _followed(place: tuple[int, int], epsilon: float, entropy: Entropy, seed: int) -> Floats:
    others = np.random.default_rng(seed).poisson(30, SIDE * SIDE).astype(np.int64)
    true = others.copy()
    true[place[1] * SIDE + place[0]] += 1
    budget = PureBudget(epsilon)
    seen = discrete_laplace(np.tile(true, MOST_DAYS), budget, entropy).reshape(MOST_DAYS, -1)
    evidence = np.vstack([np.zeros(SIDE * SIDE), log_odds(seen - others, epsilon).cumsum(axis=0)])
    return np.asarray(np.exp(evidence - logsumexp(evidence, axis=1, keepdims=True))).reshape(-1, SIDE, SIDE)


def log_odds(excess: Integers, epsilon: float) -> Floats:
    """What a released count adds to the log-odds that the person is in a cell: epsilon up if it exceeds the others' number, else down.

    Args:
        excess: released counts minus the others' true numbers.
        epsilon: of the discrete Laplace noise.
    """
    return np.asarray(epsilon * (np.abs(excess) - np.abs(excess - 1)), np.float64)


@lru_cache(maxsize=32)
def composed(epsilon: float) -> pd.DataFrame:
    """What a person is promised after each number of days: days, series (`BASIC`, `ZCDP`), epsilon.

    Source:
        Basic composition adds up epsilons. An epsilon-DP release is (epsilon**2 / 2)-zCDP, rhos add up (Bun, Steinke, TCC 2016,
        Proposition 1.4 and Lemma 1.7), and the sum is read as (epsilon, `DELTA`) by Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    days = np.unique(np.round(np.geomspace(1, MOST_DAYS, 12)).astype(int))
    basic = pd.DataFrame({"days": days, "series": BASIC, "epsilon": TABLES * epsilon * days})
    rho = PureBudget(epsilon).to_zcdp().rho * TABLES
    found = [float(ZcdpBudget(rho * int(day)).to_approx(DELTA).epsilon) for day in days]
    return pd.concat([basic, pd.DataFrame({"days": days, "series": ZCDP, "epsilon": found})], ignore_index=True)


def composed_at(epsilon: float, days: int) -> tuple[float, float]:
    """The same two numbers for one number of days."""
    rho = PureBudget(epsilon).to_zcdp().rho * TABLES * days
    return TABLES * epsilon * days, float(ZcdpBudget(rho).to_approx(DELTA).epsilon)
