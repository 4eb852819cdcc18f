"""Which nodes answer what: the frontier, the raster and the dense overlap of every leaf with every query agree."""

from itertools import pairwise

import numpy as np
import pytest
import shapely

from dpviz.space import ranges
from dpviz.space.domain import Domain
from dpviz.space.ranges import QUERIES_AT_ONCE, area_overlap, batches, box_overlap, cumulative, fronts
from dpviz.space.tree import Tree
from tests.space.curves import CURVE_TREES, TILING_TREES, curve_tree, tree_of
from tests.trees import canonical_shares, leaf_matrix, polygons, random_boxes, shares_of

LATTICE = Domain(bounds=(0, 0, 32, 32), crs=None, order=5)


TREES = {name: tree for name, tree in (TILING_TREES | CURVE_TREES).items() if tree.east[0] == 32}
EVERY = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


def consistent_counts(tree: Tree, seed: int = 1) -> np.ndarray:
    return leaf_matrix(tree) @ np.random.default_rng(seed).normal(50, 30, len(tree.leaves))


def boxes_on(seed: int, count: int) -> np.ndarray:
    return np.clip(random_boxes(np.random.default_rng(seed), 32, count), 0, 32)


def frontier_sums(tree: Tree, count: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    answer = np.zeros(len(boxes))
    for part, found in batches(tree, box_overlap(tree, boxes), len(boxes)):
        assert part.stop - part.start <= QUERIES_AT_ONCE
        for front in found:
            np.add.at(answer, front.query[front.ends], (front.share * count[front.node])[front.ends])
    return answer


@EVERY
def test_frontier_raster_and_dense_overlap_give_the_same_sums(tree):
    boxes = boxes_on(2, 300)
    count = consistent_counts(tree)
    dense = shares_of(tree, boxes, tree.leaves) @ count[tree.leaves]
    np.testing.assert_allclose(frontier_sums(tree, count, boxes), dense, atol=1e-9 * np.abs(count).sum())
    np.testing.assert_allclose(cumulative(tree, count).boxes(boxes), dense, atol=1e-9 * np.abs(count).sum())


@EVERY
def test_a_query_ends_at_maximally_contained_nodes_and_at_the_leaves_that_it_cuts(tree):
    boxes = boxes_on(3, 80)
    levels = fronts(tree, box_overlap(tree, boxes), np.arange(len(boxes)))
    found = np.zeros((len(boxes), len(tree)))
    for front in levels:
        found[front.query[front.ends], front.node[front.ends]] = front.share[front.ends]
    np.testing.assert_allclose(found, canonical_shares(tree, boxes), atol=1e-12)
    for above, below in pairwise(levels):
        assert not above.ends[below.origin].any()
        np.testing.assert_array_equal(above.node[below.origin], tree.parent[below.node])
        np.testing.assert_array_equal(above.query[below.origin], below.query)
        assert (below.share > 0).all()


def test_queries_beyond_one_batch_are_answered_like_alone_and_none_with_nothing():
    tree = TREES["random 1"]
    count, boxes = consistent_counts(tree), boxes_on(5, 2 * QUERIES_AT_ONCE + 3)
    alone = [frontier_sums(tree, count, boxes[place : place + 1])[0] for place in range(0, len(boxes), 50)]
    np.testing.assert_allclose(frontier_sums(tree, count, boxes)[::50], alone)
    assert frontier_sums(tree, count, boxes[:0]).shape == cumulative(tree, count).boxes(boxes[:0]).shape == (0,)


@EVERY
def test_blocks_are_the_sums_of_equal_boxes(tree):
    count = consistent_counts(tree)
    sums = cumulative(tree, count)
    for per_side in (1, 2, 8, 64):
        step = 32 / per_side
        south, west = (part.ravel() * step for part in np.indices((per_side, per_side)))
        dense = shares_of(tree, np.stack([west, south, west + step, south + step], axis=1), tree.leaves) @ count[tree.leaves]
        np.testing.assert_allclose(sums.blocks(per_side, 32).ravel(), dense, atol=1e-8)


def test_a_raster_that_would_be_too_fine_or_could_not_tell_a_dense_cell_from_its_surroundings_is_not_built(monkeypatch):
    tree = tree_of([[(0, 4**20)], [(0, 1), (1, 4**20)]], [[-1], [0, 0]], 20, 20)
    assert cumulative(tree, np.array([1e6, 1e6, 1.0])) is None
    assert cumulative(tree, np.array([1.0, 1e-6, 1.0])) is not None
    assert cumulative(tree, np.zeros(3)).boxes(np.array([[0, 0, 9, 9.0]])).tolist() == [0]
    tree = TREES["random 3"]
    assert cumulative(tree, consistent_counts(tree)) is not None
    monkeypatch.setattr(ranges, "MOST_RASTER_CELLS", 1)
    assert cumulative(tree, consistent_counts(tree)) is None


@pytest.mark.parametrize("lattice", [12, 16, 20])
def test_overlapping_leaves_of_fine_lattices_are_summed_as_exactly_as_leaf_by_leaf(lattice):
    side, rng = 1 << lattice, np.random.default_rng(lattice)
    tree = curve_tree(rng, lattice=lattice, most=3, height=4)
    count = leaf_matrix(tree) @ (rng.normal(50, 30, len(tree.leaves)) * 10.0 ** rng.integers(-3, 6, len(tree.leaves)))
    boxes = np.clip(random_boxes(rng, side, 200), 0, side)
    dense = shares_of(tree, boxes, tree.leaves) @ count[tree.leaves]
    for found in (cumulative(tree, count).boxes(boxes), frontier_sums(tree, count, boxes)):
        np.testing.assert_allclose(found, dense, atol=1e-9 * np.abs(count[tree.leaves]).sum())


@EVERY
def test_shares_in_polygons_are_exact_at_leaves_and_never_lose_a_node(tree):
    areas = polygons(np.random.default_rng(6), 10)
    overlap = area_overlap(tree, LATTICE, areas)
    query, node = (part.ravel() for part in np.indices((len(areas), len(tree))))
    share = overlap(query, node)
    boxes = shapely.box(*tree.rectangles(node).T.astype(float))
    exact = shapely.area(shapely.intersection(areas[query], boxes)) / shapely.area(boxes)
    leaf = tree.children[node] == 0
    np.testing.assert_allclose(share[leaf], exact[leaf], atol=1e-9)
    assert (share[exact > 0] > 0).all()
    assert (exact[share == 1] > 1 - 1e-9).all()
    assert ((share >= 0) & (share <= 1)).all()


@EVERY
@pytest.mark.parametrize("zoom", [0, 3, 5])
def test_sums_of_all_blocks_are_the_canonical_answers_of_each(tree, zoom):
    count, width = np.random.default_rng(zoom).normal(50, 30, len(tree)), 32 >> zoom
    row, column = np.random.default_rng(zoom).integers(0, 1 << zoom, (2, 12))
    boxes = np.stack([column, row, column + 1, row + 1], axis=1) * float(width)
    np.testing.assert_allclose(ranges.block_sums(tree, count, zoom)[row, column], frontier_sums(tree, count, boxes))
