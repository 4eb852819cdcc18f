"""How often intervals of boxes hold, and how wide they are: data by recipe, boxes of several kinds, and the tables of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import scipy.ndimage

from dpviz.data.points import PointCounts
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain

ORDER = 8
SIDE = 1 << ORDER
DOMAIN = Domain(bounds=(0.0, 0.0, float(SIDE), float(SIDE)), crs=None, order=ORDER)
KINDS = ("coast", "thin", "one dense cell", "empty", "empty near full", "large", "any")
Matrix = np.ndarray


def _crowds(rng, places, sizes, widths):
    """Count normal crowds in cells; what falls outside is left out."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return _count(np.asarray(places)[owner] + rng.normal(size=(len(owner), 2)) * np.asarray(widths)[owner][:, None])


def _count(points):
    """Count (n, 2) columns and rows in cells; what falls outside is left out."""
    cells = np.floor(points).astype(int)
    cells = cells[((cells >= 0) & (cells < SIDE)).all(axis=1)]
    return np.bincount(cells[:, 1] * SIDE + cells[:, 0], minlength=SIDE**2).reshape(SIDE, SIDE)


def _even(rng, many):
    return _count(rng.uniform(0, SIDE, (many, 2)))


def _distance_to_river(row, column):
    return np.abs(row - (128 + 40 * np.sin(column / 35)))


def two_centres(rng):
    places = np.concatenate([[[90, 120], [170, 150]], rng.uniform(30, 226, (40, 2))])
    sizes = np.r_[30_000, 20_000, rng.integers(200, 2_500, 40)]
    return _crowds(rng, places, sizes, np.r_[14, 9, rng.uniform(1, 7, 40)]) + _even(rng, 2_000)


def blocks_of_flats(rng):
    flats = rng.lognormal(0, 1.6, (SIDE // 2, SIDE // 2)) * (rng.random((SIDE // 2, SIDE // 2)) < 0.35)
    row, column = np.mgrid[:SIDE, :SIDE]
    weight = np.repeat(np.repeat(flats, 2, axis=0), 2, axis=1) * np.exp(-np.hypot(row - 120, column - 140) / 45)
    return rng.poisson(60_000 * weight / weight.sum())


def river_city(rng):
    row, column = np.mgrid[:SIDE, :SIDE]
    away = _distance_to_river(row, column)
    weight = np.exp(-np.hypot(row - 128, column - 128) / 50) * (away > 5) * (1 + 4 * (away < 12))
    return rng.poisson(80_000 * weight / weight.sum())


def line(rng):
    along = rng.beta(2, 2, 40_000)
    course = np.stack([20 + 215 * along, 70 + 120 * along + 30 * np.sin(7 * along)], axis=1)
    return _count(course + rng.normal(size=course.shape) * 0.6)


def streets(rng):
    """Records on streets, of which one in three was kept."""
    starts, angle, length = rng.normal(128, 45, (260, 2)), rng.choice([0.35, 0.35 + np.pi / 2], 260), rng.uniform(10, 110, 260)
    owner = rng.choice(260, 90_000, p=(weight := rng.lognormal(0, 1, 260)) / weight.sum())
    along = rng.uniform(0, 1, len(owner)) * length[owner]
    places = starts[owner] + along[:, None] * np.stack([np.cos(angle[owner]), np.sin(angle[owner])], axis=1)
    return rng.binomial(_count(places), 1 / 3)


def even_with_holes(rng):
    cells, (row, column) = _even(rng, 150_000), np.mgrid[:SIDE, :SIDE]
    for x, y, radius in np.column_stack([rng.uniform(0, SIDE, (14, 2)), rng.uniform(4, 28, 14)]):
        cells[np.hypot(row - y, column - x) < radius] = 0
    return cells


def heavy_venues(rng):
    cells = _crowds(rng, rng.uniform(60, 200, (30, 2)), rng.integers(300, 1_500, 30), rng.uniform(4, 20, 30)) + _even(rng, 1_000)
    venues = rng.normal(130, 30, (2, 60)).astype(int).clip(0, SIDE - 1)
    np.add.at(cells, tuple(venues), (300 * rng.pareto(1.3, 60)).astype(int).clip(0, 9_000))
    return cells


def towns(rng):
    sizes = (60_000 / np.arange(1, 121) ** 0.9 / 4).astype(int)
    return _crowds(rng, rng.uniform(8, 248, (120, 2)), sizes, 0.35 * sizes**0.28) + _even(rng, 3_000)


def one_crowd(rng):
    return _crowds(rng, [[150, 100]], [100_000], [22])


def sea(rng):
    row, column = np.mgrid[:SIDE, :SIDE]
    away = row - 100 - 30 * np.sin(column / 20) - 15 * np.sin(column / 7)
    weight = (away > 0) * np.exp(-away.clip(0) / 40)
    return rng.poisson(60_000 * weight / weight.sum())


def rings(rng):
    angle, radius = rng.uniform(0, 2 * np.pi, 50_000), rng.choice([30, 60, 95], 50_000, p=[0.5, 0.3, 0.2])
    ring = 128 + (radius * np.stack([np.cos(angle), np.sin(angle)])).T
    return _count(ring + rng.normal(size=ring.shape) * 0.8) + _even(rng, 1_000)


def villages(rng):
    sizes = (20 * rng.pareto(1.1, 800) + 5).astype(int).clip(0, 6_000)
    return _crowds(rng, rng.uniform(0, SIDE, (800, 2)), sizes, 0.3 + 0.15 * sizes**0.4)


def rough(rng):
    field = sum(scipy.ndimage.gaussian_filter(rng.normal(size=(SIDE, SIDE)), width) * width for width in (1, 3, 9, 27))
    weight = np.exp(1.2 * field / field.std())
    return rng.poisson(100_000 * weight / weight.sum())


def even(rng):
    return _even(rng, 30_000)


def addresses(rng):
    weight = np.zeros(SIDE**2)
    weight[rng.choice(SIDE**2, 900, replace=False)] = rng.lognormal(0, 1, 900)
    return rng.poisson(40_000 * weight / weight.sum()).reshape(SIDE, SIDE)


def two_cities(rng):
    far = _crowds(rng, [[40, 50], [215, 200]], [90_000, 20_000], [8, 16])
    return far + _crowds(rng, rng.uniform(0, SIDE, (100, 2)), rng.integers(10, 300, 100), rng.uniform(0.5, 3, 100))


def straight_streets(rng):
    """Records on streets along the sides of boxes, of which two in five were kept."""
    across, street = rng.random(150_000) < 0.5, rng.choice(np.arange(6, SIDE, 11), 150_000) + rng.uniform(0, 1.2, 150_000)
    places = np.stack([street, np.clip(rng.normal(128, 50, 150_000), 0, SIDE - 0.1)])
    return rng.binomial(_count(np.where(across, places, places[::-1]).T), 0.4)


def motorway(rng):
    along, exits = rng.random(30_000), rng.random(9)
    course = np.stack([10 + 235 * along, 20 + 210 * along], axis=1) + rng.normal(size=(30_000, 2)) * 1.2
    towns_there = np.stack([10 + 235 * exits, 20 + 210 * exits], axis=1)
    return _count(course) + _crowds(rng, towns_there, rng.integers(500, 6_000, 9), rng.uniform(1, 6, 9))


def districts(rng):
    density, (row, column) = rng.choice([0.05, 0.3, 1, 4], (17, 17), p=[0.3, 0.3, 0.3, 0.1]), np.mgrid[:SIDE, :SIDE] * 17 // SIDE
    weight = density[row, column]
    return rng.poisson(80_000 * weight / weight.sum())


def lake_town(rng):
    row, column = np.mgrid[:SIDE, :SIDE]
    away = np.hypot(row - 120, column - 135)
    weight = np.exp(-np.abs(away - 40) / 18) * (away > 28)
    return rng.poisson(60_000 * weight / weight.sum())


def suburbs(rng):
    angle, away = rng.uniform(0, 2 * np.pi, 400), rng.gamma(2, 22, 400)
    sizes = (30 * rng.pareto(1.5, 400) + 10).astype(int).clip(0, 5_000)
    places = 128 + (away * np.stack([np.cos(angle), np.sin(angle)])).T
    return _crowds(rng, places, sizes, rng.uniform(0.6, 5, 400)) + _crowds(rng, [[128, 128]], [25_000], [7])


def valley(rng):
    along = rng.uniform(0, SIDE, 25_000)
    return _count(np.stack([along, 60 + 0.5 * along + 12 * np.sin(along / 15) + rng.laplace(0, 5, 25_000)], axis=1)) + _even(rng, 500)


def stalls(rng):
    cells = _even(rng, 20_000)
    np.add.at(cells, tuple(rng.integers(20, 236, (2, 150))), rng.geometric(1 / 250, 150))
    return cells


def _name(*makers):
    return {maker.__name__.replace("_", " "): maker for maker in makers}


Recipe = Callable[[np.random.Generator], Matrix]
RECIPES: dict[str, Recipe] = _name(two_centres, blocks_of_flats, river_city, line, streets, even_with_holes, heavy_venues, towns, one_crowd)
RECIPES |= _name(sea, rings, villages, rough, even, addresses, two_cities, straight_streets)
"""Seventeen sets by different recipes, on 256 x 256 cells, of 20,000 to 150,000 records. The assumption was chosen with a look at them."""
LATER: dict[str, Recipe] = _name(motorway, districts, lake_town, suburbs, valley, stalls)
"""Six more, which were made when everything was fixed."""


def few_in_the_middle(rng):
    return _crowds(rng, [[128, 128]], [800], [30])


def _thinned(make):
    """Make the recipe of 800 records of the set of a recipe."""

    def recipe(rng):
        cells = make(rng)
        return rng.binomial(cells, 800 / cells.sum())

    return recipe


FEW: dict[str, Recipe] = _name(few_in_the_middle) | {f"few of {name}": _thinned(make) for name, make in RECIPES.items()}
"""Eighteen of 800 records, with which trees of a small budget have few partitions."""


def cells_of(name: str, seed: int = 7) -> Matrix:
    """Make the (256, 256) counts of a recipe, [row, column]."""
    recipes = RECIPES | LATER | FEW
    return recipes[name](np.random.default_rng([seed, list(recipes).index(name)]))


def count_in(cells: Matrix, boxes: Matrix) -> Matrix:
    """Count (q,) records in (q, 4) boxes of whole cells: west, south, east, north."""
    sums = np.zeros((SIDE + 1, SIDE + 1))
    sums[1:, 1:] = cells.cumsum(0).cumsum(1)
    west, south, east, north = boxes.T.astype(int)
    return sums[north, east] - sums[south, east] - sums[north, west] + sums[south, west]


def _random(rng, width, height, many):
    west, south = rng.integers(0, SIDE + 1 - width, many), rng.integers(0, SIDE + 1 - height, many)
    return np.stack([west, south, west + width, south + height], axis=1)


def _some(rng, boxes, many):
    return boxes[rng.permutation(len(boxes))[:many]]


def make_boxes(cells: Matrix, many: int = 60, seed: int = 3) -> dict[str, Matrix]:
    """Make boxes of every kind, at most `many` of each, near records unless the kind says otherwise.

    Returns:
        By kind, (q, 4) boxes of whole cells: west, south, east, north. A kind that the data do not have is left out.
    """
    rng = np.random.default_rng(seed)
    small = np.concatenate([_random(rng, *size, 3_000) for size in ((5, 5), (11, 7), (20, 20), (13, 40))])
    empty = small[count_in(cells, small) == 0]
    around = scipy.ndimage.maximum_filter(scipy.ndimage.uniform_filter(cells.astype(float), 9), 9)
    level = around[(empty[:, 1] + empty[:, 3]) // 2, (empty[:, 0] + empty[:, 2]) // 2]
    shore = np.concatenate([_random(rng, *size, 4_000) for size in ((6, 6), (12, 12), (9, 24))])
    full = count_in(cells > 0, shore) / ((shore[:, 2] - shore[:, 0]) * (shore[:, 3] - shore[:, 1]))
    thin = np.concatenate([_random(rng, *size, 4 * many) for size in ((3, 128), (128, 3), (1, 200), (200, 1))])
    places = rng.choice(np.argsort(cells.ravel())[-2_000:], many)
    dense = np.stack([places % SIDE, places // SIDE, places % SIDE + 1, places // SIDE + 1], axis=1)
    large = np.concatenate([_random(rng, *size, many) for size in ((81, 81), (128, 51), (51, 128), (110, 110))])
    any_size = np.concatenate([_random(rng, *rng.integers(2, 60, 2), 1) for _ in range(12 * many)])
    kinds = {
        "coast": shore[(full > 0.25) & (full < 0.75)],
        "thin": thin[count_in(cells, thin) > 0],
        "one dense cell": dense,
        "empty": empty,
        "empty near full": empty[level > np.quantile(around[around > 0], 0.5)],
        "large": large[count_in(cells, large) > 0],
        "any": any_size[count_in(cells, any_size) > 0],
    }
    return {kind: _some(rng, boxes, many) for kind, boxes in kinds.items() if len(boxes) >= 10}


def measure(name: str, mechanism: Any, budget: Any, seeds: Iterable[int] = (1, 2, 3), many: int = 60) -> pd.DataFrame:
    """Measure every box of a set in every release.

    Returns:
        A row per box and release: kind; `true`; `answer`, `low` and `high`; and `needed`, by how much the distances of both ends from the
        answer would have to be multiplied for the interval to hold.
    """
    cells = cells_of(name)
    points, rows = PointCounts.from_matrix(cells, domain=DOMAIN), []
    kinds = make_boxes(cells, many)
    boxes, kind = np.concatenate([*kinds.values()]), np.repeat([*kinds], [len(each) for each in kinds.values()])
    true = count_in(cells, boxes)
    for seed in seeds:
        release = mechanism.release(points, budget, Entropy.seeded(1_000 + seed))
        low, high = release.answer_interval(boxes)
        rows.append(pd.DataFrame({"kind": kind, "true": true, "answer": release.answer(boxes), "low": low, "high": high}))
    return add_needed(pd.concat(rows))


def add_needed(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column `needed`: the smallest multiple of both distances with which the interval would hold."""
    off = table["true"] - table["answer"]
    reach = np.where(off > 0, table["high"] - table["answer"], table["answer"] - table["low"])
    reach = np.where(table["low"] > 0, reach, np.where(off > 0, reach, np.inf))  # an end at 0 always holds
    needed = np.where(off == 0, 0.0, np.abs(off) / np.maximum(reach, 1e-9))
    return table.assign(needed=needed, holds=(table["low"] <= table["true"]) & (table["true"] <= table["high"]))


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise by kind: `cover` (%), `width` (median) and `multiple`, the narrowest that would give 95 %."""
    rows = {}
    for kind in KINDS:
        part = table[table["kind"] == kind]
        if len(part):
            width = float((part["high"] - part["low"]).median())
            rows[kind] = {"cover": 100 * part["holds"].mean(), "width": width, "multiple": part["needed"].quantile(0.95)}
    return pd.DataFrame(rows).T
