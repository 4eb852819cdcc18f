"""Where the kd-tree's variants may split: evenly below the hybrid's switch, on lines of the noisy grid, at medians and means."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import noisy_counts as measure
from tests.mechanisms.points.test_kdtree import points_of, released, steps_of


@pytest.mark.parametrize(("switch", "private"), [(1, 1), (3, 3), (None, 2), (9, 5)])
def test_below_its_switch_the_hybrid_halves_evenly_whatever_the_data(switch, private):
    release = released(variant="hybrid", switch=switch, fan_out=2, height=5)
    assert len(steps_of(release, "medians")) == private
    assert len(steps_of(released(variant="hybrid", switch=switch, height=5), "medians")) == 2 * private
    tree = release.tree
    for node in np.flatnonzero((tree.depth >= private) & (tree.children > 0)).tolist():
        west, south, east, north = tree.rectangles(np.array([node]))[0].tolist()
        child = tree.rectangles(np.array([tree.first_child[node]]))[0].tolist()
        assert child in ([west, south, (west + east) // 2, north], [west, south, east, (south + north) // 2])


def test_the_hybrids_switch_is_half_of_the_height_that_was_asked_for():
    found = released(variant="hybrid", split="custom", weights=(1, 1, 1, 0, 0, 0), height=5, fan_out=2)
    assert (found.tree.height, len(steps_of(found, "medians"))) == (2, 2)


def test_a_switch_at_the_height_makes_the_hybrid_the_standard_one():
    one, other = (released(height=3, **settings) for settings in ({"variant": "hybrid", "switch": 7}, {}))
    np.testing.assert_array_equal(one.tree.rectangles(), other.tree.rectangles())
    np.testing.assert_array_equal(one.noisy, other.noisy)


@pytest.mark.parametrize(("cell_order", "width"), [(1, 16), (2, 8), (3, 4), (5, 1), (8, 1)])
def test_cell_splits_lie_on_lines_of_the_grid_or_in_the_middle(cell_order, width):
    release = released(variant="cell", cell_order=cell_order, height=8, fan_out=2)
    tree = release.tree
    for node in np.flatnonzero(tree.children).tolist():
        west, south, east, north = tree.rectangles(np.array([node]))[0].tolist()
        child = tree.rectangles(np.array([tree.first_child[node]]))[0].tolist()
        for low, line, high in ((west, child[2], east), (south, child[3], north)):
            inside = [at for at in range(low + 1, high) if at % width == 0]
            assert line == high or line in inside or (not inside and line == (low + high) // 2)
    grid = steps_of(release, "grid of cells")
    assert [step.counts for step in grid] == [4 ** min(cell_order, 5)]
    assert any("The grid of cells has order 5" in note for note in release.receipt.notes) == (cell_order > 5)


def test_cell_splits_are_a_function_of_the_noisy_grid_alone(monkeypatch):
    """The same made-up grid over other records gives the same tree, and it is the slow search's."""
    noisy = np.random.default_rng(5).integers(-9, 40, (8, 8))
    honest = measure.discrete_laplace

    def scripted(counts, *given):
        return noisy.ravel().copy() if len(counts) == 64 else honest(counts, *given)

    monkeypatch.setattr(measure, "discrete_laplace", scripted)
    inputs = points_of(3), PointCounts.from_matrix(np.zeros((8, 8), int))
    trees = [released(points, variant="cell", cell_order=3, height=2, fan_out=2).tree for points in inputs]
    np.testing.assert_array_equal(trees[0].rectangles(), trees[1].rectangles())
    columns = noisy.sum(axis=0)
    uneven = [abs(2 * columns[:line].sum() - columns.sum()) for line in range(1, 8)]
    line = 1 + uneven.index(min(uneven))
    assert trees[0].rectangles(np.array([1]))[0].tolist() == [0, 0, line, 8]
    rows = noisy[:, :line].sum(axis=1)
    uneven = [abs(2 * rows[:at].sum() - rows.sum()) for at in range(1, 8)]
    assert trees[0].rectangles(np.array([3]))[0].tolist() == [0, 0, line, 1 + uneven.index(min(uneven))]


@pytest.mark.parametrize("variant", ["standard", "smooth-sensitivity", "cell", "noisy-mean"])
def test_with_a_huge_budget_splits_are_even_as_their_kind_of_median_says(variant):
    points = points_of(6, 2000)
    tree = released(points, 10**9, variant=variant, fan_out=2, height=1, cell_order=6).tree
    line = int(tree.east[1])
    records = np.repeat(points.column, points.count)
    if variant == "noisy-mean":
        assert abs(line - records.mean() - 0.5) <= 0.5 + 1e-6
    else:
        assert abs((records < line).mean() - 0.5) < 0.02
