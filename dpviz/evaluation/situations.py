"""How mechanisms of points compare in typical situations: the numbers on which the advice in menus rests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd

from dpviz.data.points import PointCounts
from dpviz.errors import check_choice
from dpviz.evaluation.compare import compare
from dpviz.evaluation.study import Study
from dpviz.mechanisms import PointMechanism
from dpviz.privacy.budget import exact
from dpviz.samples.points import POINT_SAMPLES, load_point_sample
from dpviz.space.domain import Domain

EPSILONS, WORKLOADS = (0.1, 1.0), ("small", "large")
_SEED, _QUERIES, _EVEN = 1, 200, "even"
_SAMPLES = {
    "city": ("la_residents", 200_000),
    "few records": ("la_residents", 4_000),
    "one crowd": ("gaussian_cluster", 200_000),
    "roads": ("road_crossings", 200_000),
    "routes of one person": ("daily_routes", 50_000),
    _EVEN: ("", 200_000),
}
SITUATIONS = tuple(_SAMPLES)
"""Kinds of made-up data, by how their records lie: in most cells of a city, in a small part of the cells around one crowd."""

FEW = 3_000
"""N ε, the number of records times ε, under which little is to be seen through the noise, so that partitions gain little from the data."""


def begin_with(records: int | None, epsilon: Fraction | float) -> str:
    """Say which mechanism of points to begin with, in the words of the page.

    Args:
        records: how many records there may be, N, as it was declared: a public number, never one of private data. None if none was.
        epsilon: of the budget.

    >>> begin_with(1_000, 0.5)
    'N ε is about 500, under 3,000: begin with a grid (UG, AG) where records fill the land, and around crowds with the path-budget tree.'
    """
    if records is None:
        grids = f"with a grid (UG, AG) if records lie evenly, or if N ε, their number times ε, is under {FEW:,}"
        return f"Begin with the path-budget tree; {grids}."
    counted = f"N ε is about {float(records * epsilon):,.0f}, "
    if records * epsilon < FEW:
        return (
            f"{counted}under {FEW:,}: begin with a grid (UG, AG) where records fill the land, and around crowds with the path-budget tree."
        )
    return f"{counted}at least {FEW:,}: begin with the path-budget tree, and with a grid (UG, AG) only if records lie evenly."


def make_points(situation: str, order: int) -> PointCounts:
    """Make up the records of a situation, the same each time, on a lattice of 2**order x 2**order cells.

    Raises:
        SettingError: an unknown situation.

    >>> points = make_points("few records", order=6)
    >>> points.domain.order, int(points.count.sum())
    (6, 4000)
    """
    check_choice(situation, SITUATIONS, "situation")
    key, size = _SAMPLES[situation]
    if situation == _EVEN:
        x, y = np.random.default_rng(_SEED).random((2, size))
        return PointCounts.from_xy(x, y, domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    return load_point_sample(key, size=size, domain=replace(POINT_SAMPLES[key].domain, order=order), seed=_SEED)


def compare_in_situations(
    mechanisms: Mapping[str, PointMechanism], *, order: int = 8, repeats: int = 10, situations: Iterable[str] = SITUATIONS, workers: int = 1
) -> pd.DataFrame:
    """Compare the errors of mechanisms in each situation, with little and with much budget, on small and on large boxes.

    Args:
        mechanisms: mechanisms with their settings, by label.
        order: of the lattice, which has 2**order x 2**order cells.
        repeats: releases of each mechanism in each situation.
        situations: some of `SITUATIONS`.
        workers: processes that make the releases.

    Returns:
        One row per mechanism, by label, and a column per (situation, epsilon, workload): the mean absolute error, as a multiple of
        the least one in this column. Workloads are those of a study: small boxes have a thousandth, large ones a tenth of the area.

    >>> import dpviz as dv
    >>> mechanisms = {"tree": dv.PathTree(), "grid": dv.UniformGrid()}
    >>> table = compare_in_situations(mechanisms, order=5, repeats=1, situations=["one crowd", "even"])
    >>> table.loc["tree", ("one crowd", 0.1, "small")], table.loc["grid", ("even", 1.0, "small")]
    (np.float64(1.0), np.float64(1.0))
    """
    errors = pd.concat({situation: _errors(mechanisms, situation, order, repeats, workers) for situation in situations}, axis=1)
    return (errors / errors.min()).loc[list(mechanisms)].rename_axis(index=None, columns=["situation", "epsilon", "boxes"])


def _errors(mechanisms: Mapping[str, PointMechanism], situation: str, order: int, repeats: int, workers: int) -> pd.DataFrame:
    """Return the mean absolute errors in one situation, one row per mechanism and one column per (epsilon, workload)."""
    study = Study(
        data=make_points(situation, order),
        public=True,
        mechanisms=dict(mechanisms),
        epsilons=tuple(exact(epsilon, "epsilon") for epsilon in EPSILONS),
        repeats=repeats,
        seed=_SEED,
        queries=_QUERIES,
        workloads=WORKLOADS,
    )
    rows = pd.DataFrame(list(compare(study, workers=workers)))
    return rows.pivot_table(index="label", columns=["epsilon", "workload"], values="mae")
