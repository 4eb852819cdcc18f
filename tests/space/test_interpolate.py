"""Interpolation inside leaves: against its definition block by block, and what it must keep on any tree."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import DomainError
from dpviz.mechanisms import HilbertTree, PathTree, Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space import interpolate
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree
from dpviz.space.interpolate import divide_log_linearly, divide_with_limited_slopes, interpolated_blocks
from dpviz.space.tree import Tree, remove_descendants
from tests import trees
from tests.space.curves import lattice

SLOPE = PointCounts.from_matrix(np.outer(np.arange(16), np.arange(16)))


def random_quadtree(rng: np.random.Generator, order: int) -> Tree:
    """A quadtree down to single cells, here and there cut short."""
    tree = quadtree(lattice(order), order)
    stop = (tree.children > 0) & (tree.depth > 0) & (rng.random(len(tree)) < 0.3)
    return remove_descendants(tree, stop)[0]


def leaf_counts(rng: np.random.Generator, tree: Tree) -> np.ndarray:
    """(n,) counts that add up; about a sixth of the leaves under 0, some exactly 0."""
    counts = np.round(rng.gamma(1, 10, len(tree.leaves)) - 2) * (rng.random(len(tree.leaves)) < 0.9)
    return trees.leaf_matrix(tree) @ counts


def slow_raster(tree: Tree, count: np.ndarray, steepness: float | None, depth: int) -> np.ndarray:
    """The definition, one block at a time, of limited slopes or (None) of log-linear ones; (2**depth, 2**depth)."""
    blocks = {(0, 0): (float(count[0]), len(tree.leaves) == 1)}
    for zoom in range(1, depth + 1):
        above, blocks = blocks, {}
        for row, column in np.ndindex(1 << zoom, 1 << zoom):
            parent, inside = above[row // 2, column // 2]
            if inside:
                slopes = [slope(above, (row // 2, column // 2), axis, steepness) for axis in (0, 1)]
                signs = [1 if place % 2 else -1 for place in (row, column)]
                blocks[row, column] = (parent / 4 * (1 + signs[0] * slopes[0]) * (1 + signs[1] * slopes[1]), True)
            else:
                box = np.array([[column, row, column + 1, row + 1]]) * ((1 << tree.order) >> zoom)
                share = trees.shares_of(tree, box, tree.leaves)[0]
                alone = (share * tree.cells[tree.leaves] == np.prod(box[:, 2:] - box[:, :2])).any()  # one leaf holds all of the block
                blocks[row, column] = (share @ count[tree.leaves], alone)
    return np.array([value for value, _ in blocks.values()]).reshape(1 << depth, 1 << depth)


def slope(blocks: dict, place: tuple[int, int], axis: int, steepness: float | None) -> float:
    """r of one block along one axis."""
    q = max(blocks[place][0] / 4, 0)
    if q == 0:
        return 0.0
    places = ((place[0] + step * (axis == 0), place[1] + step * (axis == 1)) for step in (-1, 1))
    low, high = (max(blocks.get(each, blocks[place])[0] / 4, 0) for each in places)
    if steepness is None:
        low, high = (min(max(each / q, np.exp(-6)), np.exp(6)) for each in (low, high))
        return float(np.tanh(np.log(high / low) / 8))
    left, right = q - low, high - q
    choices = [steepness * left, steepness * right, (left + right) / 2]
    smallest = min(choices) if min(choices) > 0 else max(choices) if max(choices) < 0 else 0.0
    return min(max(smallest / 4, -q), q) / q


CASES = [("quadtree", *case) for case in ((0, 1.0), (1, 4.0), (2, 3.0), (3, 1.0), (3, 3.0), (3, 4.0))]
CASES += [("any tree", seed, 3.0) for seed in range(3)] + [("quadtree", 3, None), ("any tree", 1, None)]


@pytest.mark.parametrize(("kind", "seed", "steepness"), CASES)
def test_it_is_the_definition_block_by_block(kind, seed, steepness):
    rng = np.random.default_rng(seed)
    tree = random_quadtree(rng, 1 + seed % 4) if kind == "quadtree" else trees.random_tree(rng, side=16, height=3 + seed)
    count = leaf_counts(rng, tree)
    slow = slow_raster(tree, count, steepness, tree.order)
    divide = divide_log_linearly if steepness is None else partial(divide_with_limited_slopes, steepness=steepness)
    np.testing.assert_allclose(interpolated_blocks(tree, count, divide), slow, rtol=1e-9, atol=1e-9)


WAYS = {"interpolated": divide_with_limited_slopes, "log-linear": divide_log_linearly}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "consistent"), [("quadtree", True), ("any tree", True), ("any tree", False)])
def test_answers_are_sums_over_the_raster_and_blocks_are_answers(kind, consistent, way):
    rng = np.random.default_rng(2)
    tree = random_quadtree(rng, 5) if kind == "quadtree" else trees.random_tree(rng, side=32)
    variance = trees.random_variances(rng, tree, 0.0 if consistent else 1.0, 1.0)
    release = trees.release_of(tree, rng.normal(30, 20, len(tree)), variance, consistent=consistent)
    cells, boxes, lines = interpolated_blocks(tree, release.count, WAYS[way]), trees.random_boxes(rng, 32, 90), np.arange(33)
    across, up = (
        np.maximum(np.minimum(boxes[:, high, None], lines[1:]) - np.maximum(boxes[:, low, None], lines[:-1]), 0)
        for low, high in ((0, 2), (1, 3))
    )
    wanted = np.einsum("qr,rc,qc->q", up, cells, across)
    assert np.abs(release.answer(boxes) - wanted).max() > 0.1
    estimate, stddev = release.answer(boxes, fill=way, spread=True)
    np.testing.assert_array_equal(stddev, release.answer(boxes, spread=True)[1])
    own = replace(release, fill=way)
    for found in (release.answer(boxes, fill=way), estimate, own.answer(boxes)):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-6)
    for zoom in (0, 1, 3, 5):
        blocks = cells.reshape(1 << zoom, 32 >> zoom, 1 << zoom, 32 >> zoom).sum((1, 3))
        np.testing.assert_allclose(own.blocks(zoom), blocks, rtol=1e-8, atol=1e-6)


def test_levels_that_do_not_agree_keep_their_answers_for_whole_leaves():
    found = Quadtree(height=2, least_squares=False).release(SLOPE, PureBudget("0.5"), Entropy.seeded(1))
    assert found.spread is None
    for nodes in map(found.nodes, range(3)):
        boxes = found.tree.rectangles(nodes).astype(float)
        np.testing.assert_allclose(found.answer(boxes, fill="interpolated"), found.count[nodes], atol=1e-8)


@pytest.mark.parametrize(("kind", "finest"), [("any tree", 0), ("any tree", 4), ("quadtree", 2)])
def test_below_the_finest_raster_answers_are_even_in_large_leaves_and_exact_in_small_ones(monkeypatch, kind, finest):
    monkeypatch.setattr(interpolate, "FINEST_ORDER", finest)
    rng = np.random.default_rng(finest)
    tree = random_quadtree(rng, 6) if kind == "quadtree" else trees.random_tree(rng, side=64, height=6)
    release = trees.release_of(tree, rng.normal(30, 20, len(tree)), np.where(tree.children > 0, np.inf, 1.0))
    coarse, width = slow_raster(tree, release.count, 3.0, finest), 64 >> finest
    assert interpolated_blocks(tree, release.count).shape == coarse.shape
    even = np.zeros((64, 64))
    for value, (west, south, east, north) in zip(release.count[tree.leaves], tree.rectangles(tree.leaves).tolist(), strict=True):
        even[south:north, west:east] = value / ((east - west) * (north - south))
    lean = (coarse - even.reshape(1 << finest, width, 1 << finest, width).sum((1, 3))) / width**2
    wanted = even + np.kron(lean, np.ones((width, width)))
    cells = np.array([(column, row, column + 1, row + 1) for row, column in np.ndindex(64, 64)], float)
    np.testing.assert_allclose(release.answer(cells, fill="interpolated"), wanted.ravel(), atol=1e-8)
    small = tree.leaves[(tree.east - tree.west)[tree.leaves] * (1 << finest) < 64]
    np.testing.assert_allclose(release.answer(tree.rectangles(small).astype(float), fill="interpolated"), release.count[small], atol=1e-7)


@pytest.mark.slow
def test_a_lattice_of_order_24_is_answered_with_leaves_of_single_cells():
    domain = Domain(bounds=(0, 0, 2**24, 2**24), crs=None, order=24)
    points = PointCounts.from_xy([3.0], [9.0], domain=domain, count=[5000])
    found = PathTree().release(points, PureBudget(5), Entropy.seeded(1))
    (cell,) = np.flatnonzero((found.tree.cells == 1) & (found.tree.west == 3) & (found.tree.south == 9))
    assert found.answer([[3, 9, 4, 10]])[0] == pytest.approx(found.count[cell], abs=1e-6)
    assert found.answer([[0, 0, 2**24, 2**24]])[0] == pytest.approx(found.count[0])
    assert found.blocks(1).sum() == pytest.approx(found.count[0])


def test_the_way_is_a_choice_of_the_answer_and_overlap_and_unknown_ways_are_refused():
    seeded, boxes = Entropy.seeded(1), np.array([[5.0, 5, 6, 7]])
    found = Quadtree(height=2).release(SLOPE, PureBudget(50), seeded)
    assert (found.fill, PathTree().release(SLOPE, PureBudget(1), seeded).fill) == ("uniform", "log-linear")
    assert found.answer(boxes) == found.answer(boxes, fill="uniform")
    assert len({found.answer(boxes, fill=way).item() for way in ("uniform", *WAYS)}) == 3
    with pytest.raises(DomainError, match="uniform, interpolated, log-linear"):
        found.answer(boxes, fill="linear")
    curve = HilbertTree().release(SLOPE, PureBudget(1), seeded)
    with pytest.raises(DomainError, match="overlap"):
        curve.answer(boxes, fill="interpolated")
    assert np.isfinite(curve.answer(boxes, fill="uniform")).all()
