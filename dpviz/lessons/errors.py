"""Errors of sums over squares of all sizes, by theory and measured: for flat noise, and for trees with different splits of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.identity import Identity
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.hilbert import hilbert
from dpviz.space.workloads import fixed_size

ANYWHERE, ALIGNED = "anywhere", "nodes of the tree"
PLACEMENTS = (ANYWHERE, ALIGNED)
FLAT, TREE = "flat noise", "tree"
SMALLEST_LEAF_SHARE = 0.01
_SQUARES, _SEED = 200, 5
_MOST_STEPS = 400


def town_domain(order: int) -> Domain:
    """Return a plain plane of 2**order x 2**order unit cells."""
    return Domain(bounds=(0.0, 0.0, float(1 << order), float(1 << order)), crs=None, order=order)


@lru_cache(maxsize=8)
def empty_town(order: int) -> PointCounts:
    """Return a town without people. Noise does not depend on the data, so a release of this town shows the error of any release."""
    return PointCounts.from_xy([], [], domain=town_domain(order))


def squares(order: int, placement: str) -> dict[int, Floats]:
    """Return (q, 4) squares with sides 1, 2, 4 ..., by number of cells: aligned to blocks of a quadtree (`ALIGNED`) or `ANYWHERE`."""
    boxes_by_size = {}
    for side in (1 << step for step in range(order + 1)):
        if placement == ANYWHERE:
            boxes_by_size[side * side] = fixed_size(town_domain(order), side, side, _SQUARES, _SEED)
        else:
            west, south = (part.ravel().astype(float) for part in np.meshgrid(*[np.arange(0, 1 << order, side)] * 2))
            boxes_by_size[side * side] = np.stack([west, south, west + side, south + side], axis=1)[:: max(1, len(west) // _SQUARES)]
    return boxes_by_size


def stated_errors(release: PointRelease, order: int, placement: str) -> pd.DataFrame:
    """Return the typical error by theory (root mean square over the squares of a size), in people: columns cells, error."""
    rows = [(cells, math.sqrt((release.answer(boxes, spread=True)[1] ** 2).mean())) for cells, boxes in squares(order, placement).items()]
    return pd.DataFrame(rows, columns=["cells", "error"])


def measured_errors(releases: Sequence[PointRelease], order: int, placement: str) -> pd.DataFrame:
    """Return the typical error measured on releases of `empty_town`, whose answers are their errors: columns cells, error (people)."""
    rows = [
        (cells, math.sqrt(np.mean([(release.answer(boxes) ** 2).mean() for release in releases])))
        for cells, boxes in squares(order, placement).items()
    ]
    return pd.DataFrame(rows, columns=["cells", "error"])


def join_errors(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put tables of errors below each other as curves: columns x (cells), y (error) and series, the table's name."""
    return pd.concat([table.assign(series=name) for name, table in tables.items()], ignore_index=True).rename(
        columns={"cells": "x", "error": "y"}
    )


def flat_and_tree(order: int, epsilon: float, draw: int) -> dict[str, PointRelease]:
    """Release `empty_town` twice with the same epsilon: with noise on every cell, and as a geometric quadtree."""
    first, second = Entropy.seeded(draw).spawn(2)
    budget = PureBudget(epsilon)
    flat = Identity(order=order).release(empty_town(order), budget, first)
    return {FLAT: flat, TREE: Quadtree(height=order).release(empty_town(order), budget, second)}


def running_errors(releases: dict[str, PointRelease], order: int, epsilon: float) -> pd.DataFrame:
    """Return the error of the sum of the first n cells along a Hilbert curve through the town.

    Returns:
        Columns cells (n), error, series, and low and high: the range of 95 % of sums of n cells' flat noise, by the normal
        approximation.
    """
    row, column = (part.ravel() for part in np.indices((1 << order, 1 << order)))
    order_of_cells = np.argsort(hilbert(column, row, order))
    n = np.unique(np.linspace(1, order_of_cells.size, min(order_of_cells.size, _MOST_STEPS)).round().astype(np.int64))
    reach = 1.96 * np.sqrt(n * laplace_variance(1 / epsilon))
    sums = {name: release.blocks(order).ravel()[order_of_cells].cumsum()[n - 1] for name, release in releases.items()}
    parts = [pd.DataFrame({"cells": n, "error": error, "series": name, "low": -reach, "high": reach}) for name, error in sums.items()]
    return pd.concat(parts, ignore_index=True)


def with_leaf_share(shares: Sequence[float]) -> tuple[float, ...]:
    """Scale shares to a total of 1, with at least 1 % for the last level, since a tree has no counts below its deepest measured level."""
    total, last = sum(shares), shares[-1] / sum(shares)
    if last >= SMALLEST_LEAF_SHARE:
        return tuple(share / total for share in shares)
    factor = (1 - SMALLEST_LEAF_SHARE) / (1 - last)
    return (*(share / total * factor for share in shares[:-1]), SMALLEST_LEAF_SHARE)


def split_tree(shares: Sequence[float], *, least_squares: bool) -> Quadtree:
    """Return the quadtree whose levels get these shares, root first."""
    total = sum(shares)
    weights = tuple(float(round(1e9 * share / total)) for share in shares)
    return Quadtree(height=len(shares) - 1, split="custom", weights=weights, least_squares=least_squares)


@lru_cache(maxsize=64)
def split_theory(shares: tuple[float, ...], epsilon: float, least_squares: bool, placement: str) -> pd.DataFrame:
    """Return `stated_errors` of a tree with these shares; they are the same for every seed."""
    order = len(shares) - 1
    release = split_tree(shares, least_squares=least_squares).release(empty_town(order), PureBudget(epsilon), Entropy.seeded(0))
    return stated_errors(release, order, placement)


def split_draws(shares: tuple[float, ...], epsilon: float, options: dict[str, Any], draw: int, repeats: int) -> pd.DataFrame:
    """Return `measured_errors` of `repeats` releases; `options` has the keys least_squares and placement."""
    order, tree = len(shares) - 1, split_tree(shares, least_squares=options["least_squares"])
    streams = Entropy.seeded(draw).spawn(repeats)
    releases = [tree.release(empty_town(order), PureBudget(epsilon), stream) for stream in streams]
    return measured_errors(releases, order, options["placement"])
