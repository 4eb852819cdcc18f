"""Where HTF's private choice of a split falls, over many draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd

from dpviz.data.points import PointCounts
from dpviz.evaluation.split_objective import FORM, ObjectiveCurve, objectives
from dpviz.mechanisms.points.htf import SENSITIVITY, UNITS, candidates
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.selection import permute_and_flip

REPEATS = 200


def chosen_lines(points: PointCounts, epsilon: float, draw: int, *, across: bool) -> pd.DataFrame:
    """How often each line is chosen by HTF's default (permute-and-flip over evenly spaced lines) in `REPEATS` draws.

    Returns:
        place (coordinate of the line), times (percent of the draws).
    """
    side = points.domain.side
    tried, valid = candidates(np.zeros(1, np.int64), np.full(1, side), FORM.lines, FORM.inner)
    value = np.floor(UNITS * objectives(points, across=across)[tried]).astype(np.int64)
    many = np.broadcast_to(-value, (REPEATS, value.shape[1])).copy()
    allowed = np.broadcast_to(valid, many.shape).copy()
    sensitivity = SENSITIVITY * points.contributions
    chosen = permute_and_flip(many, allowed, PureBudget(Fraction(str(epsilon))), Entropy.seeded(draw), sensitivity)
    times = np.bincount(chosen, minlength=tried.shape[1])[valid[0]]
    return pd.DataFrame({"place": tried[0][valid[0]], "times": 100 * times / REPEATS})


def near_best(curve: ObjectiveCurve, chosen: pd.DataFrame) -> float:
    """Percent of draws whose line is at least half as good as the best tried line, against not splitting at all."""
    gain = curve.unsplit - curve.tried_objective
    places = curve.tried[gain >= gain.max() / 2]
    return float(chosen.loc[chosen["place"].isin(places.tolist()), "times"].sum())
