"""Made-up towns that the lessons share."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpviz.arrays import Integers
from dpviz.data.points import PointCounts
from dpviz.lessons.errors import town_domain

SEED = 11
ONE, TWO_CROWDS, TIGHT, EVEN = "one crowd", "two crowds", "one tight crowd", "even"
TOWNS = (ONE, TWO_CROWDS, TIGHT, EVEN)
_CENTRES: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    ONE: ((0.3, 0.62, 0.07, 0.85),),
    TWO_CROWDS: ((0.24, 0.66, 0.07, 0.55), (0.78, 0.3, 0.05, 0.35)),
    TIGHT: ((0.37, 0.58, 0.03, 0.97),),
    EVEN: (),
}
"""Crowds of each kind: east and north of the centre, standard deviation, and share of the people; lengths as parts of the town's width."""


@lru_cache(maxsize=16)
def town_cells(order: int, people: int, kind: str = TWO_CROWDS, seed: int = SEED) -> tuple[Integers, Integers]:
    """Return (people,) columns and (people,) rows of made-up residents on a lattice of 2**order columns.

    Args:
        order: order of the lattice.
        people: number of residents.
        kind: one of `TOWNS`: crowds around one or two centres over a thin even background, or only an even distribution.
        seed: seed of the town.
    """
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 1, (2, people))
    group = rng.uniform(0, 1, people)
    begin = 0.0
    for east, north, width, share in _CENTRES[kind]:
        in_crowd = (begin <= group) & (group < begin + share)
        x[in_crowd], y[in_crowd] = rng.normal(east, width, in_crowd.sum()), rng.normal(north, width, in_crowd.sum())
        begin += share
    side = 1 << order
    column, row = (np.clip((part * side).astype(np.int64), 0, side - 1) for part in (x, y))
    return column, row


@lru_cache(maxsize=16)
def town(order: int, people: int, kind: str = TWO_CROWDS, seed: int = SEED) -> PointCounts:
    """Count the residents of `town_cells` by lattice cell."""
    return count_residents(*town_cells(order, people, kind, seed), order)


def count_residents(column: Integers, row: Integers, order: int) -> PointCounts:
    """Count residents by lattice cell: (n,) columns and (n,) rows, one per resident."""
    return PointCounts.from_xy(column + 0.5, row + 0.5, domain=town_domain(order))
