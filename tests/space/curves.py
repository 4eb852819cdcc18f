"""Trees of every shape: of rectangles that tile the lattice, and random ones of stretches of the Hilbert curve, whose boxes overlap."""

from itertools import pairwise

import numpy as np

from dpviz.space.domain import Domain
from dpviz.space.grids import grid, quadtree
from dpviz.space.hilbert import Curve
from dpviz.space.tree import Tree, remove_descendants
from tests.trees import random_tree


def lattice(order: int) -> Domain:
    return Domain(bounds=(0, 0, 1, 1), crs=None, order=order)


def some_pruned(tree: Tree, seed: int) -> Tree:
    return remove_descendants(tree, (np.random.default_rng(seed).random(len(tree)) < 0.2) & (tree.children > 0))[0]


def curve_tree(rng: np.random.Generator, lattice: int = 5, order: int | None = None, most: int = 4, height: int = 5) -> Tree:
    """Fan-outs 0 to `most`, leaves on any level, chains of fan-out 1, on a lattice of order `lattice`, the curve of `order`."""
    order = lattice if order is None else order
    levels, parents = [[(0, 4**order)]], [[-1]]
    for depth in range(height):
        pieces = [cut(rng, stretch, int(rng.integers(0 if depth else 1, most + 1))) for stretch in levels[-1]]
        if not any(pieces):
            break
        levels.append([piece for found in pieces for piece in found])
        parents.append([place for place, found in enumerate(pieces) for _ in found])
    return tree_of(levels, parents, lattice, order)


def cut(rng: np.random.Generator, stretch: tuple[int, int], parts: int) -> list[tuple[int, int]]:
    """A stretch in `parts` pieces; none if it is too short, itself for one part."""
    first, last = stretch
    if parts == 0 or last - first < parts:
        return []
    lines = [first, *np.sort(first + 1 + rng.choice(last - first - 1, parts - 1, replace=False)).tolist(), last]
    return list(pairwise(lines))


def tree_of(levels: list[list[tuple[int, int]]], parents: list[list[int]], lattice: int, order: int) -> Tree:
    """A tree from its levels: stretches, and the place of each one's parent in the level above."""
    starts = np.cumsum([0, *map(len, levels)])
    parent = np.array([-1] + [starts[depth] + place for depth, level in enumerate(parents[1:]) for place in level], np.int32)
    children = np.bincount(parent[1:], minlength=len(parent)).astype(np.int32)
    first, last = np.array([stretch for level in levels for stretch in level], np.int64).T.copy()
    curve = Curve(order=order, first=first, last=last)
    west, south, east, north = curve.rectangles(lattice).T.copy()
    return Tree(
        parent=parent,
        first_child=(np.cumsum(children) - children + 1).astype(np.int32),
        children=children,
        west=west,
        south=south,
        east=east,
        north=north,
        starts=tuple(starts.tolist()),
        curve=curve,
    )


CURVE_TREES = {
    **{f"curve {seed}": curve_tree(np.random.default_rng(seed)) for seed in range(6)},
    "coarse curve": curve_tree(np.random.default_rng(6), lattice=5, order=3),
    "curve of order 1": curve_tree(np.random.default_rng(7), lattice=5, order=1),
    "whole curve": tree_of([[(0, 4**5)]], [[-1]], 5, 5),
    "every place": tree_of([[(0, 16)], [(place, place + 1) for place in range(16)]], [[-1], [0] * 16], 5, 2),
}
CURVE_TREES["pruned curve"] = some_pruned(CURVE_TREES["curve 2"], 3)
TILING_TREES = {
    "one step": quadtree(lattice(1), 1),
    "quadtree": quadtree(lattice(5), 5),
    "coarse quadtree": quadtree(lattice(5), 2),
    "fan-out 16, odd order": quadtree(lattice(5), 3, 16),
    "grid 1 x 1": grid(lattice(5), 1, 1),
    "grid 1 x 7": grid(lattice(3), 1, 7),
    "grid 16 x 16": grid(lattice(4), 16, 16),
    "grid 29 x 12": grid(lattice(5), 29, 12),
    "pruned quadtree": some_pruned(quadtree(lattice(5), 5), 1),
    "pruned grid": some_pruned(grid(lattice(5), 9, 13), 2),
    "pruned to the root": remove_descendants(quadtree(lattice(5), 2), np.ones(21, bool))[0],
    **{f"random {seed}": random_tree(np.random.default_rng(seed), side=32) for seed in range(5)},
    "random, more": random_tree(np.random.default_rng(9), side=64, most=6),
}
