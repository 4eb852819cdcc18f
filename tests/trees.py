"""Random trees of every awkward shape, built straight as flat arrays, and slow definitions to hold fast code against."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import shapely

from dpviz.privacy.budget import PureBudget
from dpviz.privacy.consistency import add_up, least_squares
from dpviz.privacy.receipt import Receipt, Step
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.tree import Tree


def build(rectangles: list[list[tuple[int, int, int, int]]], parents: list[list[int]]) -> Tree:
    """A tree from its levels: rectangles (west, south, east, north) and the place of each one's parent in the level above."""
    sizes = [len(level) for level in rectangles]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parent = np.array([-1] + [starts[depth] + place for depth, level in enumerate(parents[1:]) for place in level], np.int32)
    children = np.bincount(parent[1:], minlength=len(parent)).astype(np.int32)
    edges = np.array([rectangle for level in rectangles for rectangle in level], np.int32).T.copy()
    return Tree(
        parent=parent,
        first_child=(np.cumsum(children) - children + 1).astype(np.int32),
        children=children,
        west=edges[0],
        south=edges[1],
        east=edges[2],
        north=edges[3],
        starts=tuple(starts.tolist()),
    )


def random_tree(rng: np.random.Generator, side: int = 64, most: int = 4, height: int = 5) -> Tree:
    """Fan-outs 0 to `most`, leaves on any level, chains of fan-out 1, rectangles that tile a lattice of `side` columns."""
    rectangles, parents = [[(0, 0, side, side)]], [[-1]]
    for depth in range(height):
        level, above = [], []
        for place, rectangle in enumerate(rectangles[-1]):
            pieces = cut(rng, rectangle, int(rng.integers(0 if depth else 1, most + 1)))
            level += pieces
            above += [place] * len(pieces)
        if not level:
            break
        rectangles.append(level)
        parents.append(above)
    return build(rectangles, parents)


def cut(rng: np.random.Generator, rectangle: tuple[int, int, int, int], parts: int) -> list[tuple[int, int, int, int]]:
    """A rectangle in `parts` slices along a random axis; none if it is too thin, itself for one part."""
    west, south, east, north = rectangle
    across = bool(rng.integers(2))
    low, high = (west, east) if across else (south, north)
    if parts == 0 or high - low < parts:
        return []
    lines = [low, *np.sort(rng.choice(np.arange(low + 1, high), parts - 1, replace=False)).tolist(), high]
    if across:
        return [(a, south, b, north) for a, b in pairwise(lines)]
    return [(west, a, east, b) for a, b in pairwise(lines)]


def leaf_matrix(tree: Tree) -> np.ndarray:
    """(n, leaves) 1 where a leaf lies under a node or is it: node counts = matrix @ leaf counts."""
    matrix = np.zeros((len(tree), len(tree.leaves)))
    for place, leaf in enumerate(tree.leaves.tolist()):
        node = leaf
        while node >= 0:
            matrix[node, place] = 1
            node = int(tree.parent[node])
    return matrix


def random_variances(rng: np.random.Generator, tree: Tree, unobserved: float = 0.4, spread: float = 6.0) -> np.ndarray:
    """(n,) variances over e**-spread to e**spread; a share of inner nodes, but no leaf, unobserved (infinite)."""
    variance = np.exp(rng.uniform(-spread, spread, len(tree)))
    variance[(tree.children > 0) & (rng.random(len(tree)) < unobserved)] = np.inf
    return variance


def dense_solution(tree: Tree, noisy: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) least-squares node counts by `lstsq`, and their (n, n) covariance; meaningless if leaves are undetermined."""
    matrix, seen = leaf_matrix(tree), np.isfinite(variance)
    root = 1 / np.sqrt(variance[seen])
    design = matrix[seen] * root[:, None]
    leaves = np.linalg.lstsq(design, noisy[seen] * root, rcond=None)[0]
    return matrix @ leaves, matrix @ np.linalg.pinv(design.T @ design) @ matrix.T


def misfit(tree: Tree, count: np.ndarray, noisy: np.ndarray, variance: np.ndarray) -> float:
    """What least squares minimises: the sum of squared corrections over variances, of observed nodes."""
    seen = np.isfinite(variance[: len(tree)])
    return float(((count[seen] - noisy[seen]) ** 2 / variance[seen]).sum())


def release_of(tree: Tree, noisy: np.ndarray, variance: np.ndarray, *, consistent: bool = True, crs: str | None = None) -> PointRelease:
    """A release made by hand on a lattice with cells of one unit, `tree.east[0]` to a side."""
    side = int(tree.east[0])
    if consistent:
        count, spread = least_squares(tree, noisy, variance)
    else:
        (count, variance), spread = add_up(tree, noisy, variance), None
    step = Step(purpose="counts", amount=Fraction(1), sensitivity=Fraction(1), noise="discrete Laplace", scale=Fraction(1))
    return PointRelease(
        mechanism="by hand",
        settings={},
        domain=Domain(bounds=(0, 0, side, side), crs=crs, order=side.bit_length() - 1),
        tree=tree,
        noisy=noisy,
        noise_variance=variance,
        count=count,
        spread=spread,
        receipt=Receipt(total=PureBudget(1), steps=(step,)),
        steps=(),
        simulation=True,
        height=tree.height,
    )


def random_boxes(rng: np.random.Generator, side: float, count: int) -> np.ndarray:
    """(count, 4) boxes: some on lattice lines, some cutting cells, some along the edge, some without area, and the whole."""
    x, y = np.clip(np.sort(rng.uniform(-0.1 * side, 1.1 * side, (2, count, 2)), axis=2), 0, side)
    boxes = np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1)
    boxes[::3] = np.round(boxes[::3])
    boxes[1::7, 2] = boxes[1::7, 0]
    boxes[-1] = [0, 0, side, side]
    return boxes


def polygons(rng: np.random.Generator, count: int) -> np.ndarray:
    """Hulls of random points, a ring with a hole, two parts, one far outside, one that covers everything."""
    hulls = [shapely.MultiPoint(rng.uniform(-3, 35, (6, 2))).convex_hull for _ in range(count)]
    ring = shapely.Point(16, 16).buffer(12).difference(shapely.Point(16, 16).buffer(5))
    parts = shapely.union(shapely.box(1, 1, 4, 9), shapely.box(20, 20, 31, 22))
    return np.array([*hulls, ring, parts, shapely.box(100, 100, 101, 101), shapely.box(-1, -1, 33, 33)])


def shares_of(tree: Tree, boxes: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """(q, k) part of each node that lies in each box, the long way."""
    west, south, east, north = tree.rectangles(nodes).T.astype(float)
    across = np.minimum(boxes[:, 2, None], east) - np.maximum(boxes[:, 0, None], west)
    up = np.minimum(boxes[:, 3, None], north) - np.maximum(boxes[:, 1, None], south)
    return np.maximum(across, 0) * np.maximum(up, 0) / ((east - west) * (north - south))


def canonical_shares(tree: Tree, boxes: np.ndarray) -> np.ndarray:
    """(q, n) part of each node in the canonical answer of each box: 1 for the largest nodes inside, and the part of leaves that are cut."""
    share = shares_of(tree, boxes, np.arange(len(tree)))
    inside = share == 1
    largest = inside & ~(inside[:, np.maximum(tree.parent, 0)] & (tree.parent >= 0))
    return np.where(largest | ((tree.children == 0) & ~inside), share, 0)
