"""The kd-tree's variants: where each may split, what each counts and spends, and what its receipt says."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DomainError
from dpviz.mechanisms import Kdtree
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.points import kdtree
from dpviz.mechanisms.points.kdtree import VARIANTS, CellGrid
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.privacy.receipt import Step
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from tests.trees import dense_solution

EVERY = pytest.mark.parametrize("variant", VARIANTS)
HUGE = 10**7


def points_of(order: int = 5, records: int = 600, contributions: int = 1) -> PointCounts:
    """Two clusters on a thin background."""
    rng = np.random.default_rng(records)
    places = np.clip(rng.normal([[0.2, 0.3], [0.7, 0.6]], 0.08, (records // 2, 2, 2)).reshape(-1, 2), 0, 1)
    places[::9] = rng.random((len(places[::9]), 2))
    points = PointCounts.from_xy(*places.T, domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    return replace(points, contributions=contributions)


def budget_of(mechanism: Kdtree, epsilon: str | int = "0.8") -> PureBudget | ApproxBudget:
    return ApproxBudget(epsilon, "1e-6") if mechanism.needs_delta else PureBudget(epsilon)


def released(points: PointCounts | None = None, epsilon: str | int = "0.8", seed: int = 1, **settings) -> PointRelease:
    mechanism = Kdtree(**settings)
    return mechanism.release(points or points_of(), budget_of(mechanism, epsilon), Entropy.seeded(seed))


def steps_of(release: PointRelease, *purposes: str) -> list[Step]:
    return [step for step in release.receipt.steps if step.purpose in purposes]


SMOOTH = "medians, in smooth sensitivities of the node"
MEDIANS = ("medians", SMOOTH, "grid of cells", "sums of places, in node widths", "numbers for means")


def test_the_papers_exponent_and_a_sample_show_in_the_receipt():
    half = steps_of(released(exponent="paper", height=2), "medians")[0]
    assert half.scale == 4 * half.sensitivity / half.amount
    sampled = steps_of(released(sample=0.1, height=2), "medians")[0]
    assert sampled.noise.startswith("exponential mechanism with ε 0.4")
    assert "on a sample of 10.00% (by the paper's bound 0" in sampled.noise
    assert sampled.scale < half.scale / 4
    smooth = steps_of(released(variant="smooth-sensitivity", sample=0.5, height=2), SMOOTH)[0]
    assert "on a sample of 50.00%" in smooth.noise
    with pytest.raises(BudgetError, match="delta = 0"):
        Kdtree(variant="smooth-sensitivity").release(points_of(2), ApproxBudget(1, 0), Entropy.seeded(1))


def test_an_early_leaf_has_the_variance_of_all_that_the_levels_below_would_have_spent():
    matrix = np.zeros((8, 8), int)
    matrix[5, 5] = 5000
    found = Kdtree(fan_out=2, height=6, median_share=0.9).release(PointCounts.from_matrix(matrix), PureBudget(40), Entropy.seeded(1))
    tree, amounts = found.tree, [step.amount for step in steps_of(found, "counts")]
    early = (tree.children == 0) & (tree.depth < tree.height)
    spent = [sum(amounts[depth:]) if ends else amounts[depth] for depth, ends in zip(tree.depth, early, strict=True)]
    assert found.noise_variance == pytest.approx([laplace_variance(1 / amount) for amount in spent])
    ends = steps_of(found, "counts of early leaves")
    assert all(step.replaces_later for step in ends)
    assert sum(step.counts for step in ends) == early.sum() > 0
    np.testing.assert_allclose(found.count, dense_solution(tree, found.noisy, found.noise_variance)[0], atol=1e-6)


def test_leaf_counts_custom_weights_and_zeros_among_them():
    leaves = released(split="leaf", height=2)
    assert [step.level for step in steps_of(leaves, "counts")] == [2]
    assert np.isnan(leaves.noisy[leaves.tree.children > 0]).all()
    found = released(split="custom", weights=(0, 3, 0, 1), height=3)
    amounts = {step.level: step.amount for step in steps_of(found, "counts")}
    assert sorted(amounts) == [1, 3]
    assert float(amounts[1] / amounts[3]) == pytest.approx(3, rel=1e-6)
    early = (found.tree.children == 0) & (found.tree.depth < 3)
    np.testing.assert_array_equal(np.isnan(found.noisy), np.isin(found.tree.depth, [0, 2]) & ~early)
    for weights in ((), (1, 2), (0, 0, 0, 0)):
        with pytest.raises(BudgetError, match=r"[Cc]ustom"):
            released(split="custom", weights=weights, height=3)


@EVERY
@pytest.mark.parametrize(("share", "fan_out"), [(0.01, 4), (0.3, 2), (0.99, 4)])
def test_medians_are_paid_their_share_exactly_and_evenly_on_every_binary_level_and_counts_the_rest(variant, share, fan_out):
    release = released(variant=variant, median_share=share, height=3, fan_out=fan_out)
    medians = steps_of(release, *MEDIANS)
    assert abs(sum(step.amount for step in medians) - release.receipt.used * Fraction(str(share))) < release.receipt.used / 2**26
    assert [step.level for step in steps_of(release, "counts")] == [0, 1, 2, 3]
    assert len({(step.amount, step.delta) for step in medians}) == 1
    if variant in ("standard", "smooth-sensitivity", "noisy-mean"):
        per_level = (2 if fan_out == 4 else 1) * (2 if variant == "noisy-mean" else 1)
        assert [step.level for step in medians] == [level for level in range(3) for _ in range(per_level)]


LATTICE, LEVELS = "The height is {}: the lattice is no finer.", "The tree ends at zoom level {}: nothing is measured below."
NOTED = [
    *((order, {"fan_out": 4, "height": 20}, order, LATTICE) for order in (1, 3)),
    *((order, {"fan_out": 2, "height": 20}, 2 * order, LATTICE) for order in (1, 3)),
    *((5, {"split": "custom", "weights": weights, "height": 3}, 1, LEVELS) for weights in ((0, 1, 0, 0), (1, 0, 0, 0))),
    (5, {"sample": 0.5, "height": 2}, 2, None),
]


@pytest.mark.parametrize(("order", "settings", "height", "note"), NOTED)
def test_levels_that_cannot_be_are_not_grown_nor_paid_for_and_a_note_says_so(order, settings, height, note):
    release = released(points_of(order), **settings)
    assert release.tree.height == height
    assert len(steps_of(release, "medians")) == height * (1 if settings.get("fan_out") == 2 else 2)
    assert release.receipt.notes == ((note.format(height),) if note else ())


@pytest.mark.parametrize(("variant", "function"), [("noisy-mean", "noisy_mean_medians"), ("smooth-sensitivity", "smooth_medians")])
@pytest.mark.parametrize("outside", ["middle", "nearest"])
def test_where_splits_that_miss_go_is_handed_on(monkeypatch, variant, function, outside):
    honest, used = getattr(kdtree, function), set()
    monkeypatch.setattr(kdtree, function, lambda *given, outside: used.add(outside) or honest(*given, outside=outside))
    released(variant=variant, height=2, outside=outside)
    assert used == {outside}


@pytest.mark.parametrize("height", [16, 24])
def test_trees_too_large_for_memory_are_refused_before_anything_is_spent(height):
    with pytest.raises(DomainError, match="GiB"):
        Kdtree(height=height).check(Domain(bounds=(0, 0, 1, 1), crs=None, order=20))


@EVERY
def test_the_parts_of_the_budget_that_it_shows_are_those_it_spends_and_can_be_moved(variant):
    first, *counts = Kdtree(variant=variant, height=3).shares(points_of().domain)
    release = released(variant=variant, height=3)
    spent = [sum(step.amount for step in steps_of(release, *MEDIANS)), *(step.amount for step in steps_of(release, "counts"))]
    assert [part.share for part in (first, *counts)] == pytest.approx([float(each / release.receipt.used) for each in spent], abs=1e-6)
    assert [part.structure for part in (first, *counts)] == [True, False, False, False, False]
    assert first.label == ("grid of cells" if variant == "cell" else "medians")
    moved = Kdtree(variant=variant, height=3).with_shares([2.0, 1.0, 0.0, 3.0, 4.0])
    assert (moved.variant, moved.median_share, moved.split, moved.weights) == (variant, 0.2, "custom", (0.125, 0.0, 0.375, 0.5))


def slow_median(noisy: np.ndarray, width: int, rectangle: tuple[int, int, int, int], across: bool) -> int:
    """The line of the grid inside the rectangle with the most even halves of the touched cells, else the middle."""
    west, south, east, north = rectangle
    touched = noisy[south // width : -(-north // width), west // width : -(-east // width)]
    low, high = (west, east) if across else (south, north)
    slices = touched.sum(axis=0 if across else 1)
    lines = [line for line in range(low + 1, high) if line % width == 0]
    uneven = [abs(2 * slices[: line // width - low // width].sum() - slices.sum()) for line in lines]
    return lines[uneven.index(min(uneven))] if lines else (low + high) // 2


@pytest.mark.parametrize(("cells", "width"), [(8, 4), (16, 1), (2, 16), (1, 32), (32, 1)])
def test_medians_of_rectangles_anywhere_are_the_slow_ones(cells, width):
    rng, side = np.random.default_rng(cells), cells * width
    noisy = rng.integers(-6, 20, (cells, cells))
    edges = np.sort(np.stack([rng.choice(side + 1, 2, replace=False) for _ in range(600)]).reshape(300, 2, 2), axis=2)
    rectangles = edges.transpose(0, 2, 1).reshape(300, 4)
    sides = rectangles[:, 2:] - rectangles[:, :2]
    across = (sides[:, 0] > 1) & (rng.integers(0, 2, 300) > 0)
    some = np.where(across, sides[:, 0], sides[:, 1]) > 1
    found = CellGrid.of(noisy, width).medians(rectangles[some], across[some])
    wanted = [slow_median(noisy, width, tuple(row), cut) for row, cut in zip(rectangles[some].tolist(), across[some].tolist(), strict=True)]
    assert len(wanted) > 200
    assert found.tolist() == wanted
    assert CellGrid.of(noisy, width).medians(np.zeros((0, 4), int), np.zeros(0, np.bool_)).tolist() == []


@pytest.mark.parametrize(("switch", "private"), [(1, 1), (3, 3), (None, 2), (9, 5)])
def test_below_its_switch_the_hybrid_halves_evenly_whatever_the_data(switch, private):
    release = released(variant="hybrid", switch=switch, fan_out=2, height=5)
    assert len(steps_of(release, "medians")) == private
    assert [note.startswith("Nothing is halved evenly") for note in release.receipt.notes] == ([True] if switch == 9 else [])
    assert len(steps_of(released(variant="hybrid", switch=switch, height=5), "medians")) == 2 * private
    tree = release.tree
    for node in np.flatnonzero((tree.depth >= private) & (tree.children > 0)).tolist():
        west, south, east, north = tree.rectangles(np.array([node]))[0].tolist()
        child = tree.rectangles(np.array([tree.first_child[node]]))[0].tolist()
        assert child in ([west, south, (west + east) // 2, north], [west, south, east, (south + north) // 2])


def test_the_hybrids_default_switch_is_half_of_the_height_before_it_was_cut():
    found = released(variant="hybrid", split="custom", weights=(1, 1, 1, 0, 0, 0), height=5, fan_out=2)
    assert (found.tree.height, len(steps_of(found, "medians"))) == (2, 2)


@pytest.mark.parametrize(("cell_order", "width"), [(1, 16), (2, 8), (3, 4), (5, 1), (8, 1)])
def test_the_grid_of_cells_is_counted_once_and_no_finer_than_the_lattice(cell_order, width):
    release = released(variant="cell", cell_order=cell_order, height=8, fan_out=2, sample=0.5)
    (grid,), notes = steps_of(release, "grid of cells"), release.receipt.notes
    assert grid.counts == (32 // width) ** 2
    assert release.tree.east[1] % width == 0
    assert any("The grid of cells has order 5" in note for note in notes) == (cell_order > 5)
    assert "Nothing is sampled: cell medians look at all records." in notes


def test_cell_splits_are_a_function_of_the_noisy_grid_alone(monkeypatch):
    """The same made-up grid over other records gives the same tree, and it is the slow search's."""
    noisy = np.random.default_rng(5).integers(-9, 40, (8, 8))
    honest = measure.discrete_laplace
    monkeypatch.setattr(
        measure, "discrete_laplace", lambda counts, *given: noisy.ravel().copy() if len(counts) == 64 else honest(counts, *given)
    )
    inputs = points_of(3), PointCounts.from_matrix(np.zeros((8, 8), int))
    trees = [released(points, variant="cell", cell_order=3, height=2, fan_out=2).tree for points in inputs]
    np.testing.assert_array_equal(trees[0].rectangles(), trees[1].rectangles())
    line = slow_median(noisy, 1, (0, 0, 8, 8), True)
    found = trees[0].rectangles(np.array([1, 3])).tolist()
    assert found == [[0, 0, line, 8], [0, 0, line, slow_median(noisy, 1, (0, 0, line, 8), False)]]


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
