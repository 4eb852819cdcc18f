"""How boxes lie over grids, against the slow definition cell by cell; error bounds, and what a record changes of them."""

import tracemalloc
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpviz.data.indexes import CornerCounts
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.evaluation.metrics import true_answers
from dpviz.mechanisms import UniformGrid
from dpviz.mechanisms import expected_error as bounds
from dpviz.mechanisms.expected_error import (
    Boxes,
    BoxQueries,
    expected_grid,
    grid_bias,
    grid_cover,
    largest_overlap,
    noise_part,
    tuning_boxes,
)
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.selection import clipped_scores
from dpviz.space.domain import Domain
from dpviz.space.grids import grid
from tests.often import often, rarely

CASES = pytest.mark.parametrize(("order", "side"), [(1, 1), (1, 2), (3, 3), (5, 7), (6, 64), (6, 17)])


def case(order, side):
    rng = np.random.default_rng(order * 100 + side)
    domain = Domain(bounds=(0, 0, 4, 1), crs=None, order=order)
    points = PointCounts.from_xy(4 * rng.random(300) ** 2, rng.random(300), domain=domain)
    low = rng.integers(0, domain.side, (60, 2))
    return points, Boxes(domain=domain, lattice=np.hstack([low, rng.integers(low + 1, domain.side + 1)]))


def shares(boxes: Boxes, side: int) -> np.ndarray:
    """(q, side, side) share of every cell in every box, [row, column]."""
    columns, rows = grid(boxes.domain, side, side).lines
    found = []
    for west, south, east, north in boxes.lattice:
        across = np.clip(np.minimum(east, columns[1:]) - np.maximum(west, columns[:-1]), 0, None) / np.diff(columns)
        up = np.clip(np.minimum(north, rows[1:]) - np.maximum(south, rows[:-1]), 0, None) / np.diff(rows)
        found.append(np.outer(up, across))
    return np.array(found)


@CASES
def test_counts_answers_squares_areas_and_overlaps_are_sums_over_cells(order, side):
    points, boxes = case(order, side)
    np.testing.assert_array_equal(
        BoxQueries(points=points, boxes=boxes).truth, true_answers(points, boxes.domain.coordinates(boxes.lattice))
    )
    columns, rows = grid(points.domain, side, side).lines
    counted, cover, alpha = CornerCounts(points=points, columns=columns, rows=rows), grid_cover(boxes, side), shares(boxes, side)
    sums, cells = counted.at, np.diff(np.diff(counted.table, axis=0), axis=1)
    assert cells.sum() == points.count.sum()
    for found, wanted in (
        (cover.weighted(sums), alpha * cells),
        (cover.area, alpha),
        (cover.squares, alpha**2),
        (cover.cut(sums), np.where(alpha < 1, alpha**2 * cells, 0)),
    ):
        np.testing.assert_allclose(found, wanted.sum(axis=(1, 2)), rtol=1e-14)
    west, south, east, north = cover.whole().T
    np.testing.assert_array_equal((east - west) * (north - south), (alpha == 1).sum(axis=(1, 2)))
    assert cover.most_cut == ((alpha > 0) & (alpha < 1)).sum(axis=0).max()
    assert boxes.most_inside == (shares(boxes, boxes.domain.side) == 1).sum(axis=0).max()


@pytest.mark.slow
def test_as_many_boxes_as_are_allowed_on_the_finest_lattice_need_no_table_of_their_corners():
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=24)
    rng = np.random.default_rng(1)
    points = PointCounts.from_xy(rng.random(10**5) ** 2, rng.random(10**5), domain=domain)
    boxes = tuning_boxes(domain, tuple(0.05 * size for size in range(1, 17)), 1000, 7)
    tracemalloc.start()
    try:
        queries = BoxQueries(points=points, boxes=boxes)
        truth, bias, _ = queries.truth, grid_bias(queries, 4096), boxes.most_inside
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
    some = slice(0, 16_000, 800)
    np.testing.assert_array_equal(truth[some], true_answers(points, domain.coordinates(boxes.lattice[some])))
    assert bias.max() < 0.01 * len(points.count)


def test_tuning_boxes_have_the_domains_proportions_and_come_from_the_seed():
    domain = Domain(bounds=(0, 0, 4, 1), crs=None, order=6)
    boxes = tuning_boxes(domain, (0.1, 0.5), 30, 7)
    assert len(boxes) == 60
    np.testing.assert_array_equal(boxes.lattice[:30, 2:] - boxes.lattice[:30, :2], np.full((30, 2), 6))
    np.testing.assert_array_equal(boxes.lattice[30:, 2:] - boxes.lattice[30:, :2], np.full((30, 2), 32))
    assert tuning_boxes(domain, (0.1, 0.5), 30, 7) is boxes
    assert (tuning_boxes(domain, (0.1, 0.5), 30, 8).lattice != boxes.lattice).any()
    for sizes, number in (((), 5), ((0.5,) * 17, 1000)):
        with pytest.raises(SettingError, match="16,384"):
            tuning_boxes(domain, sizes, number, 7)


BUDGET = PureBudget(2)
BOUNDS = pytest.mark.parametrize("bound", ["tight", "paper"])


def queries_of(matrix: np.ndarray) -> BoxQueries:
    points = PointCounts.from_matrix(matrix)
    lines = range(points.domain.side + 1)
    spans = [(low, high) for low in lines for high in lines if low < high]
    every = [(west, south, east, north) for (west, east), (south, north) in product(spans, repeat=2)]
    return BoxQueries(points=points, boxes=Boxes(domain=points.domain, lattice=np.array(every)))


def small_inputs(side: int):
    """Everything with up to two records per cell on 2 x 2; on 4 x 4 some inputs, empty to crowded."""
    if side == 2:
        return [np.array(each).reshape(2, 2) for each in product((0, 1, 2), repeat=4)]
    rng = np.random.default_rng(4)
    return [rng.poisson(rate, (4, 4)) for rate in (0, 0.3, 1, 3)] + [np.eye(4, dtype=int) * 7, np.diag([0, 0, 40, 0])]


def neighbours(matrices, records: int = 1):
    """Queries of every box on each input, and on the same with so many records more, wherever they are."""
    for matrix in matrices:
        first = queries_of(matrix)
        for cells in combinations_with_replacement(range(matrix.size), records):
            more = matrix.copy()
            np.add.at(more.ravel(), list(cells), 1)
            yield first, BoxQueries(points=PointCounts.from_matrix(more), boxes=first.boxes)


@BOUNDS
@pytest.mark.parametrize("epsilon", often(["0.3", "2"], 1))
def test_the_true_mean_error_stays_below_the_bound(bound, epsilon):
    queries, runs = queries_of(np.random.default_rng(1).poisson(4, (8, 8)) * (np.eye(8, dtype=int) * 3 + 1)), 100
    for side in (2, 3, 8):
        wanted = expected_grid(queries, side, PureBudget(epsilon), bound=bound).error
        boxes = queries.points.domain.coordinates(queries.boxes.lattice)
        streams = Entropy.seeded(side).spawn(runs)
        releases = (UniformGrid(side=side).release(queries.points, PureBudget(epsilon), entropy) for entropy in streams)
        mean = np.mean([np.abs(release.answer(boxes) - queries.truth) for release in releases], axis=0)
        assert (mean <= wanted * (1 + 5 / np.sqrt(runs))).all()
        if bound == "tight":
            assert mean.sum() > 0.7 * wanted.sum()


def test_no_error_and_no_record_is_in_a_repr():
    queries = queries_of(np.full((4, 4), 7777))
    for private in (queries, expected_grid(queries, 2, BUDGET)):
        assert not any(character.isdigit() for character in repr(private).split(" at ")[0])


def test_the_papers_bound_grows_with_the_number_of_cells_where_the_error_grows_with_its_root():
    queries = queries_of(np.zeros((16, 16), int))
    whole = int(np.argmax((queries.boxes.lattice[:, 2:] - queries.boxes.lattice[:, :2]).sum(axis=1)))
    paper, tight = (expected_grid(queries, 16, BUDGET, bound=bound).error[whole] for bound in ("paper", "tight"))
    assert paper == pytest.approx(256 / 2)
    assert tight == pytest.approx(16 * np.sqrt(2 * np.exp(-2) / (1 - np.exp(-2)) ** 2))


@BOUNDS
@pytest.mark.parametrize("lattice", [2, 4])
def test_no_record_moves_the_errors_of_a_grid_by_more_than_the_boxes_that_cut_one_cell(bound, lattice):
    worst = dict.fromkeys(range(1, lattice + 1), 0.0)
    for (first, second), side in product(neighbours(small_inputs(lattice)), worst):
        before, after = (expected_grid(each, side, BUDGET, bound=bound) for each in (first, second))
        moved = np.abs(after.error - before.error)
        assert before.sensitivity == after.sensitivity
        assert moved.max() <= 1 + 1e-12
        assert moved.sum() <= before.sensitivity + 1e-9
        worst[side] = max(worst[side], moved.sum() / max(before.sensitivity, 1))
    assert worst[lattice] < 1e-9
    assert worst[1] > 0.3


def largest_change(lattice: int, records: int) -> float:
    """The largest change of a whole score by so many records, in units of its sensitivity."""
    worst = 0.0
    for pair in neighbours(small_inputs(lattice), records):
        found = []
        for queries in pair:
            expected = [expected_grid(queries, side, BUDGET) for side in (1, 2, 3) if side <= lattice]
            errors, moved = np.stack([each.error for each in expected]), [each.sensitivity for each in expected]
            found.append(clipped_scores(errors, queries.truth, 1.5, 1.0, moved, queries.boxes.most_inside))
        assert found[0].sensitivity == found[1].sensitivity
        change = max(abs(a - b) for a, b in zip(found[0].error, found[1].error, strict=True))
        worst = max(worst, change / found[0].sensitivity[0])
    return worst


@pytest.mark.parametrize(("lattice", "records"), [(2, 1), rarely((2, 2)), (4, 1)])
def test_no_record_moves_a_whole_score_by_more_than_its_sensitivity(lattice, records):
    assert 0.1 * records < largest_change(lattice, records) <= records


@pytest.mark.parametrize("largest", [10, 2**20, 10**9])  # a place holds no more
def test_floating_point_is_as_near_to_exact_arithmetic_as_the_sensitivity_allows_for(largest):
    rng = np.random.default_rng(5)
    matrix = rng.integers(0, largest, (8, 8)) * (rng.random((8, 8)) < 0.6)
    queries, side, rho = queries_of(matrix), 3, int(matrix.sum()) // 100 + 1
    starts = grid(queries.points.domain, side, side).lines[0][:-1]
    cells = np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1).ravel().tolist()
    error = expected_grid(queries, side, BUDGET, bound="paper").error
    noise = noise_part(grid_cover(queries.boxes, side), BUDGET, 1, "paper")
    alpha = shares(queries.boxes, side)
    for box in rng.choice(len(queries.boxes), 150, replace=False):
        exact = [Fraction(share).limit_denominator(9) for share in alpha[box].ravel().tolist()]
        answer, truth = sum(share * cell for share, cell in zip(exact, cells, strict=True)), int(queries.truth[box])
        wanted = min(1, (abs(answer - truth) + Fraction(float(noise[box]))) / max(truth, rho)) * rho
        found = min(error[box] / max(truth, rho), 1.0) * rho
        assert abs(Fraction(float(found)) - wanted) <= Fraction(2) ** -46 * 2 * rho


@pytest.mark.parametrize(("bound", "sanity"), often([("tight", 0.1), ("paper", 0.5), ("tight", 0.5), ("paper", 0.1)], 2))
def test_the_papers_sensitivities_hold_for_a_declared_total_and_are_in_order(bound, sanity):
    total, sides = 100.0, (1, 2, 3)
    rho, worst = sanity * total, np.zeros(len(sides))
    rng = np.random.default_rng(3)
    for pair in neighbours([*small_inputs(4), rng.poisson(8, (4, 4)), np.diag([0, 0, 500, 0]), np.diag([9, 11, 0, 0])]):
        noise = np.stack([noise_part(grid_cover(pair[0].boxes, side), BUDGET, 1, bound) for side in sides])
        response = bounds.response_sensitivity(total, sanity, noise)
        means = [
            [
                (bounds.combined(np.minimum(grid_bias(queries, side), total), part, bound) / np.maximum(queries.truth, rho)).mean()
                for side, part in zip(sides, noise, strict=True)
            ]
            for queries in pair
        ]
        worst = np.maximum(worst, np.abs(np.subtract(*means)) / response)
        assert (response <= bounds.overlap_sensitivity(total, sanity, noise) + 1e-15).all()
        if bound == "paper":
            assert bounds.overlap_sensitivity(total, sanity, noise) <= bounds.largest_grid_sensitivity(total, sanity, 0.5, sides)
    assert (worst <= 1).all()
    assert worst.max() > 0.001


def test_the_three_sensitivities_are_the_papers_formulas():
    noise = np.array([[2.0, 4.0], [8.0, 16.0]])
    first, last = 1 / (0.1 * 11), 1 / (10 + 0.1)
    assert bounds.response_sensitivity(100, 0.1, noise) == pytest.approx([first + 3 / 110 + last, first + 12 / 110 + last])
    assert bounds.overlap_sensitivity(100, 0.1, noise) == pytest.approx(first + 12 / 110 + last)
    assert bounds.largest_grid_sensitivity(100, 0.1, 0.5, (3, 5)) == pytest.approx(first + 12.5 / 110 + last)


def by_table(rectangles, weight, side) -> int:
    table = np.zeros((side, side), int)
    for (west, south, east, north), each in zip(rectangles, weight, strict=True):
        table[south:north, west:east] += each
    return max(int(table.max()), 0)


@pytest.mark.parametrize("number", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("side", [1, 2, 3, 8, 21])
def test_it_is_the_largest_entry_of_a_table_of_all_places(number, side):
    rng = np.random.default_rng(100 * number + side)
    for _ in range(10):
        rectangles = rng.integers(0, side + 1, (number, 4))
        ones, weight = np.ones(number, int), rng.integers(-3, 4, number)
        assert largest_overlap(rectangles) == largest_overlap(rectangles, ones) == by_table(rectangles, ones, side)
        assert largest_overlap(rectangles, weight) == by_table(rectangles, weight, side)
