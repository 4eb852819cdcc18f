"""Growing trees by halving, wherever the lines are put: they tile, cut what can be cut, and hold what lies in them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.median_tree import Grown, Halving, grow

several = settings(max_examples=12, deadline=None, derandomize=True)


class RandomLines:
    """A splitter that puts lines anywhere, and keeps the nodes and its lines of every level."""

    def __init__(self, seed: int) -> None:
        self.rng, self.seen, self.answers = np.random.default_rng(seed), [], []

    def __call__(self, level: int, nodes: Halving) -> np.ndarray:
        assert level == len(self.seen)
        self.seen.append(nodes)
        low, high = nodes.ends
        self.answers.append(self.rng.integers(low + 1, high))
        return self.answers[-1]


def points_of(order: int, seed: int = 0, filled: float = 0.4) -> PointCounts:
    rng, side = np.random.default_rng(seed), 1 << order
    return PointCounts.from_matrix(rng.integers(1, 5, (side, side)) * (rng.random((side, side)) < filled))


def slow_tree(side: int, height: int, cuts: int, given: RandomLines) -> list[list[tuple[int, ...]]]:
    """Rectangles of every depth, node by node, from the lines that were given; checks what each level was shown."""
    levels, binary = [[(0, 0, side, side)]], 0
    for _ in range(height):
        parts = [node for node in levels[-1] if (node[2] - node[0]) * (node[3] - node[1]) > 1]
        for _ in range(cuts):
            shown = [node for node in parts if (node[2] - node[0]) * (node[3] - node[1]) > 1]
            assert [tuple(row) for row in given.seen[binary].rectangles.tolist()] == shown
            lines, after = iter(zip(given.answers[binary].tolist(), given.seen[binary].across.tolist(), strict=True)), []
            for west, south, east, north in parts:
                if (east - west) * (north - south) == 1:
                    after.append((west, south, east, north))
                    continue
                line, across = next(lines)
                columns_first = binary % 2 == 0
                assert across == (north - south == 1 or (columns_first and east - west > 1))
                below = (west, south, *((line, north) if across else (east, line)))
                after += [below, (*((line, south) if across else (west, line)), east, north)]
            parts, binary = after, binary + 1
        levels.append(parts)
    return levels


@several
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([1, 2]), st.data())
def test_trees_are_those_of_cutting_node_by_node_and_count_what_lies_in_them(seed, order, cuts, data):
    height = data.draw(st.integers(1, 2 * order // cuts))
    points, lines = points_of(order, seed, data.draw(st.sampled_from([0, 0.4]))), RandomLines(seed)
    grown = grow(points, height, cuts, lines)
    levels = slow_tree(points.domain.side, height, cuts, lines)
    assert [tuple(row) for row in grown.tree.rectangles().tolist()] == [node for level in levels for node in level]
    assert grown.tree.starts == tuple(np.cumsum([0, *map(len, levels)]).tolist())
    assert_sound(grown, points)


def assert_sound(grown: Grown, points: PointCounts) -> None:
    """Children tile their parents, leaves the domain; only single cells end early; counts are those of the cells."""
    tree, side = grown.tree, points.domain.side
    np.testing.assert_array_equal(grown.true, tree.sums(points.column, points.row, points.count))
    covered = np.zeros((side, side), int)
    for west, south, east, north in tree.rectangles(tree.leaves).tolist():
        covered[south:north, west:east] += 1
    assert (covered == 1).all()
    sums = np.bincount(tree.parent[1:], tree.cells[1:], len(tree))
    np.testing.assert_array_equal(sums[tree.children > 0], tree.cells[tree.children > 0])
    early = (tree.children == 0) & (tree.depth < tree.height)
    np.testing.assert_array_equal(early, (tree.cells == 1) & (tree.depth < tree.height))
    np.testing.assert_array_equal(np.bincount(tree.parent[1:], minlength=len(tree)), tree.children)


@several
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_values_are_the_records_of_each_node_along_its_axis(seed, order):
    points, lines = points_of(order, seed), RandomLines(seed)
    grow(points, order, 2, lines)
    columns, rows = (np.repeat(part, points.count) for part in (points.column, points.row))
    for nodes in lines.seen:
        values = nodes.values()
        np.testing.assert_array_equal([values.low, values.high], nodes.ends)
        for node, (west, south, east, north) in enumerate(nodes.rectangles.tolist()):
            inside = (columns >= west) & (columns < east) & (rows >= south) & (rows < north)
            own = slice(*values.start[node : node + 2].tolist())
            records = np.repeat(values.value[own], values.count[own])
            np.testing.assert_array_equal(records, np.sort((columns if nodes.across[node] else rows)[inside]))


def test_no_private_array_shows():
    lines = RandomLines(1)
    grown, nodes = grow(PointCounts.from_matrix(np.full((4, 4), 77)), 1, 1, lines), lines.seen[0]
    assert "NodeCells(1 nodes)" in repr(nodes)
    for private in (grown, nodes.cells, nodes.cells.by_row, nodes.values()):
        assert "77" not in repr(private).split(" object at ")[0]
