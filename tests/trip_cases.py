"""Regions, trips and their stages for tests: small builders, and the slow definitions that fast code is held against."""

from collections import Counter

import numpy as np

from dpviz.data.trips import TripCounts
from dpviz.release.trip_release import TripRelease
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import Regions

Sums = dict[tuple[int, int], int]


def from_parents(parents: list[list[int]], prefix: str = "") -> Regions:
    """Regions from the place of each one's parent, level by level."""
    ids = tuple(
        np.array([f"{prefix}{'abcdefghijklmnop'[k]}{place}" for place in range(len(level))], object) for k, level in enumerate(parents)
    )
    return Regions(
        levels=tuple(f"level {k}" for k in range(1, len(parents) + 1)),
        ids=ids,
        parent=tuple(np.array(level, np.int32) for level in parents),
        names=ids,
        geometry=(None,) * len(parents),
    )


def regular(*fan_outs: int, prefix: str = "") -> Regions:
    """Regions that each have as many children as their level says."""
    sizes = np.cumprod([1, *fan_outs])
    return from_parents([np.repeat(np.arange(size), fan).tolist() for size, fan in zip(sizes, fan_outs, strict=False)], prefix)


def random_regions(rng: np.random.Generator, depth: int, most: int = 3, prefix: str = "") -> Regions:
    """Regions with 1 to `most` children each."""
    parents, size = [], 1
    for _ in range(depth):
        parents.append(np.repeat(np.arange(size), rng.integers(1, most + 1, size)).tolist())
        size = len(parents[-1])
    return from_parents(parents, prefix)


def trip_counts_of(regions: Regions, trips: Sums, destinations: Regions | None = None, **options) -> TripCounts:
    """Trips from a table of places; pairs without trips are left out."""
    rows = np.array(sorted((*pair, count) for pair, count in trips.items() if count), np.int64).reshape(-1, 3)
    origin, destination = rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32)
    return TripCounts(regions=regions, origin=origin, destination=destination, count=rows[:, 2], destinations=destinations, **options)


def person(neighbours: str, bound: int) -> dict:
    """How counts say that a unit has `bound` trips."""
    return {} if bound == 1 else {"contributions": bound, "unit": "person", "exactly": neighbours == "bounded"}


def random_trips(rng: np.random.Generator, regions: Regions, destinations: Regions | None = None, *, most=1000, pairs=None) -> TripCounts:
    """Heavy-tailed trips, at most so many, on a third of all pairs or on `pairs` of them."""
    ends = destinations or regions
    width = ends.size(ends.depth)
    every = regions.size(regions.depth) * width
    pairs = max(every // 3, 1) if pairs is None else pairs
    chosen = rng.choice(every, min(pairs, every), replace=False)
    count = np.minimum(1 + rng.pareto(0.8, len(chosen)) * 3, most).astype(int)
    return trip_counts_of(regions, {divmod(int(pair), width): int(c) for pair, c in zip(chosen, count, strict=True)}, destinations)


def trips_of(number: int, depth: int = 2, **options) -> TripCounts:
    """So many trips over an uneven hierarchy, always the same for the same number and depth."""
    rng = np.random.default_rng([number, depth])
    regions = random_regions(np.random.default_rng(depth), depth, 3 if depth < 5 else 2)
    leaves = regions.size(depth)
    ends = (leaves * rng.random((number, 2)) ** 2).astype(int)
    return trip_counts_of(regions, Counter(map(tuple, ends.tolist())), **options)


def sums_between(trips: TripCounts, levels: tuple[int, int]) -> Sums:
    """True trips between two levels, pair by pair: places to trips."""
    sums: Counter[tuple[int, int]] = Counter()
    a, b = trips.regions.ancestors(levels[0]), trips.ends.ancestors(levels[1])
    for origin, destination, count in zip(trips.origin.tolist(), trips.destination.tolist(), trips.count.tolist(), strict=True):
        sums[int(a[origin]), int(b[destination])] += count
    return dict(sums)


def released_at(release: TripRelease, stage: int) -> Sums:
    """Released trips of a stage: places to trips."""
    at = release.stages[stage]
    return {(o, d): c for o, d, c in zip(at.origin.tolist(), at.destination.tolist(), at.count.tolist(), strict=True)}


def recorded(monkeypatch, module, law: str) -> list[int]:
    """The noise that a module will draw from a law, in order."""
    honest, noise = getattr(module, law), []

    def draw(counts, *rest):
        noisy = honest(counts, *rest)
        noise.extend((noisy - counts).tolist())
        return noisy

    monkeypatch.setattr(module, law, draw)
    return noise


def noise_of(release: TripRelease, trips: TripCounts, stage: int) -> np.ndarray:
    """(k,) noise on the released nodes of a measured stage."""
    at, true = release.stages[stage], sums_between(trips, release.tree.levels(stage))
    return at.noisy - np.array([true.get(pair, 0) for pair in zip(at.origin.tolist(), at.destination.tolist(), strict=True)], np.int64)


def children_of(tree: PairTree, stage: int, pair: tuple[int, int]) -> list[tuple[int, int]]:
    """Every child, at `stage`, of a pair of the stage before, in tree order."""
    side = 0 if tree.refined_side(stage) == "origin" else 1
    regions, level = (tree.origins, tree.destinations)[side], tree.levels(stage)[side]
    below = [place for place, parent in enumerate(regions.parent[level - 1].tolist()) if parent == pair[side]]
    return [(place, pair[1]) if side == 0 else (pair[0], place) for place in below]
