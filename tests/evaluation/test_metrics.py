"""Metrics: the truth counted exactly, four honest figures, accuracy and false positives per zoom."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpviz as dv
from dpviz.evaluation.metrics import error_by_size, true_answers, workload_errors

SIDE = 32


def matrix_of(seed=1, side=SIDE):
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(30 * rng.random((side, side)) ** 6)
    matrix[:8, :8] = 0
    return matrix


@pytest.fixture(scope="module")
def points():
    return dv.PointCounts.from_matrix(matrix_of())


@pytest.fixture(scope="module")
def release(points):
    return dv.Quadtree(height=5).release(points, dv.PureBudget(1.0), dv.Entropy.seeded(1))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.integers(1, 40))
def test_true_answers_are_plain_sums(seed, count):
    matrix = matrix_of(seed % 7)
    points = dv.PointCounts.from_matrix(matrix)
    boxes = dv.evaluation.random_rectangles(points.domain, count, seed)
    slow = [matrix[int(s) : int(n), int(w) : int(e)].sum() for w, s, e, n in boxes]
    assert true_answers(points, boxes).tolist() == slow


def test_true_answers_on_a_lattice_too_fine_for_a_raster():
    rng = np.random.default_rng(2)
    domain = dv.Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=20)
    x, y = rng.random((2, 5000))
    points = dv.PointCounts.from_xy(x, y, domain=domain)
    boxes = dv.evaluation.random_rectangles(domain, 2500, 3)
    slow = [((x >= w) & (x < e) & (y >= s) & (y < n)).sum() for w, s, e, n in boxes[::50]]
    assert true_answers(points, boxes)[::50].tolist() == slow
    assert true_answers(points, boxes[:0]).tolist() == []


def test_the_four_figures_by_hand(points, release):
    boxes = dv.evaluation.random_rectangles(points.domain, 300, 1)
    truth, total = true_answers(points, boxes), matrix_of().sum()
    error, errors = np.abs(release.answer(boxes) - truth), workload_errors(release, points, boxes)
    assert errors.mae == pytest.approx(error.mean())
    assert errors.mean20 == pytest.approx(np.mean(100 * error / np.maximum(truth, 20)))
    assert errors.median20 == pytest.approx(np.median(100 * error / np.maximum(truth, 20)))
    assert errors.n3 == pytest.approx(np.mean(100 * error / np.maximum(truth, 0.001 * total)))


@pytest.mark.parametrize("zoom", range(6))
def test_a_zoom_level_sums_both_sides_over_equal_blocks(points, release, zoom):
    row = dv.evaluate(release, points).by_zoom.iloc[zoom]
    width = SIDE >> zoom
    truth = matrix_of().reshape(1 << zoom, width, 1 << zoom, width).sum((1, 3))
    lines = np.arange(1 << zoom) * width
    west, south = (part.ravel() for part in np.meshgrid(lines, lines))
    estimate = release.answer(np.stack([west, south, west + width, south + width], axis=1)).reshape(truth.shape)
    wrong = (truth == 0) & (estimate >= 0.5)
    assert row["blocks"] == 4**zoom
    assert row["rmse"] == pytest.approx(np.sqrt(((estimate - truth) ** 2).mean()))
    assert row["mae"] == pytest.approx(np.abs(estimate - truth).mean())
    assert row["empty"] == (truth == 0).sum()
    assert row["false_positives"] == wrong.sum()
    assert row["false_positive_records"] == pytest.approx(estimate[wrong].sum())
    assert row["false_negatives"] == ((truth > 0) & (estimate < 0.5)).sum()


@pytest.fixture(scope="module")
def draws(points):
    """Many releases of the same points."""
    return [dv.Quadtree(height=5).release(points, dv.PureBudget(0.5), dv.Entropy.seeded(seed)) for seed in range(150)]


def test_the_expected_band_holds_the_measured_error_of_most_draws(points, draws):
    tables = [dv.evaluate(draw, points).by_zoom for draw in draws[:60]]
    inside = [(table["low"] <= table["rmse"]) & (table["rmse"] <= table["high"]) for table in tables]
    assert np.mean(inside) > 0.9
    assert np.mean(inside, axis=0).min() > 0.8


def test_expected_error_needs_no_truth_and_agrees_with_the_spread_of_many_draws(points, draws):
    for zoom in (0, 2, 5):
        truth = points.blocks(zoom)
        measured = np.sqrt(np.mean([(draw.blocks(zoom) - truth) ** 2 for draw in draws]))
        assert measured == pytest.approx(dv.evaluation.expected_error(draws[0], zoom), rel=0.12)


def test_an_evaluation_holds_aggregates_of_the_same_domain_and_shows_no_truth(points, release):
    evaluation = dv.evaluate(release, points)
    assert not any(character.isdigit() for character in repr(evaluation))
    assert not any(isinstance(value, dv.PointCounts) for value in vars(evaluation).values())
    with pytest.raises(dv.DomainError):
        dv.evaluate(release, dv.PointCounts.from_matrix(matrix_of(side=16)))


def test_error_by_size_groups_by_powers_of_ten():
    truth = np.array([0, 0, 1, 9, 10, 99, 100, 5000])
    released = truth + np.array([3, -1, 2, 2, -5, 5, 10, -10])
    table = error_by_size(truth, released)
    assert table[["low", "high", "partitions"]].to_numpy().tolist() == [[0, 0, 2], [1, 9, 2], [10, 99, 2], [100, 999, 1], [1000, 9999, 1]]
    assert table["mae"].tolist() == [2, 2, 5, 10, 10]
    assert table["bias"].tolist() == [1, 2, 0, 10, -10]
    assert np.isnan(table["relative"][0])
    assert table["relative"][1] == pytest.approx(40)
