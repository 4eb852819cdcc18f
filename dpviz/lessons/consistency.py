"""Least squares on a tree small enough to see every number: a street of eight areas, halved three times."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.arrays import Floats
from dpviz.privacy.allocation import level_weights
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace, laplace_variance
from dpviz.space.grids import tree_of
from dpviz.space.tree import Tree

STREET = (31, 12, 4, 0, 22, 47, 9, 3)
HEIGHT = 3
LEVELS = ("street", "halves", "quarters", "areas")
BEFORE, AFTER = "as measured", "after least squares"
REPEATS = 200
_SIDE = 8


@lru_cache(maxsize=1)
def street_tree() -> Tree:
    """The street's halves of halves, on a lattice as wide as the street is long."""
    levels = []
    for depth in range(HEIGHT + 1):
        edge = np.linspace(0, _SIDE, 2**depth + 1).astype(np.int64)
        zero = np.zeros(2**depth, np.int64)
        levels.append(np.stack([edge[:-1], zero, edge[1:], zero + _SIDE], axis=1))
    fans = [np.full(2**depth, 2 if depth < HEIGHT else 0, np.int64) for depth in range(HEIGHT + 1)]
    return tree_of(levels, fans)


def true_counts() -> NDArray[np.int64]:
    """(15,) people in every part, the street first."""
    parts = [np.array(STREET, np.int64)]
    while len(parts[0]) > 1:
        parts.insert(0, parts[0].reshape(-1, 2).sum(axis=1))
    return np.concatenate(parts)


def measured(split: str, epsilon: float, entropy: Entropy) -> tuple[Floats, Floats]:
    """(15,) noisy counts, each level with its share of epsilon, and (15,) their variances."""
    tree, true = street_tree(), true_counts()
    noisy, variance = np.empty(len(tree)), np.empty(len(tree))
    for depth, share in enumerate(PureBudget(epsilon).split(level_weights(split, HEIGHT, fan_out=2))):
        here = tree.at_depth(depth)
        noisy[here] = discrete_laplace(true[here], PureBudget(share), entropy)
        variance[here] = laplace_variance(1 / share)
    return noisy, variance


def one_draw(split: str, epsilon: float, draw: int) -> pd.DataFrame:
    """Every part of the street before and after.

    Returns:
        level, west, east, series (`BEFORE` or `AFTER`), count, true, and gap: its own count minus the sum of its two parts' (0 for
        areas).
    """
    tree = street_tree()
    noisy, variance = measured(split, epsilon, Entropy.seeded(draw))
    after, _ = least_squares(tree, noisy, variance)
    shared = {"level": np.array(LEVELS)[tree.depth], "west": tree.west, "east": tree.east, "true": true_counts()}
    tables = [
        pd.DataFrame({**shared, "series": name, "count": count, "gap": gaps(tree, count)})
        for name, count in ((BEFORE, noisy), (AFTER, after))
    ]
    return pd.concat(tables, ignore_index=True)


def gaps(tree: Tree, count: Floats) -> Floats:
    """(n,) own count minus the sum of the children's; 0 for leaves."""
    gap = np.zeros(len(tree))
    for depth in range(tree.height):
        gap[tree.at_depth(depth)] = count[tree.at_depth(depth)] - tree.sum_children(depth, count[tree.at_depth(depth + 1)])
    return gap


def errors_by_level(split: str, epsilon: float, draw: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Typical error of a part, by level: in theory, and over `REPEATS` draws; columns level, series, error."""
    tree, true = street_tree(), true_counts()
    draws = [measured(split, epsilon, stream) for stream in Entropy.seeded(draw).spawn(REPEATS)]
    variance = draws[0][1]
    _, spread = least_squares(tree, *draws[0])
    theory = {BEFORE: variance, AFTER: spread.variances(tree)}
    squared = {
        BEFORE: np.mean([(noisy - true) ** 2 for noisy, _ in draws], axis=0),
        AFTER: np.mean([(least_squares(tree, *each)[0] - true) ** 2 for each in draws], axis=0),
    }
    return _by_level(tree, theory), _by_level(tree, squared)


def _by_level(tree: Tree, squared: dict[str, Floats]) -> pd.DataFrame:
    rows = [
        (level, name, math.sqrt(values[tree.at_depth(depth)].mean()))
        for name, values in squared.items()
        for depth, level in enumerate(LEVELS)
    ]
    return pd.DataFrame(rows, columns=["level", "series", "error"])
