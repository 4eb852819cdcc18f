import numpy as np
import pytest

from dpviz.lessons.consistency import (
    AFTER,
    BEFORE,
    HEIGHT,
    LEVELS,
    STREET,
    errors_by_level,
    gaps,
    measure_street,
    street_counts,
    street_tree,
    true_counts,
)
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy


def design():
    """(15, 8): which areas each part holds."""
    tree = street_tree()
    return np.array([[west <= area < east for area in range(8)] for west, east in zip(tree.west, tree.east, strict=True)], float)


def test_parts_hold_the_areas_they_should():
    assert (design() @ np.array(STREET) == true_counts()).all()
    assert len(street_tree()) == 2 ** (HEIGHT + 1) - 1


@pytest.mark.parametrize("split", ["uniform", "geometric"])
def test_the_counts_after_are_the_dense_weighted_solution(split):
    noisy, variance = measure_street(split, 0.5, Entropy.seeded(3))
    weight = 1 / np.sqrt(variance)
    areas = np.linalg.lstsq(design() * weight[:, None], noisy * weight, rcond=None)[0]
    assert least_squares(street_tree(), noisy, variance)[0] == pytest.approx(design() @ areas)


@pytest.mark.parametrize("split", ["uniform", "geometric"])
def test_theory_is_the_dense_covariance(split):
    theory, _ = errors_by_level(split, 0.5, 1)
    variance = measure_street(split, 0.5, Entropy.seeded(1))[1]
    covariance = design() @ np.linalg.inv((design().T / variance) @ design()) @ design().T
    slow = np.sqrt(np.diag(covariance))[[0, 1, 3, 7]]
    after = theory.loc[theory["series"] == AFTER, "error"].to_numpy()
    assert after == pytest.approx(slow)
    assert (after < theory.loc[theory["series"] == BEFORE, "error"].to_numpy()).all()


def test_draws_scatter_as_theory_says():
    theory, drawn = errors_by_level("uniform", 1.0, 5)
    ratio = drawn["error"].to_numpy() / theory["error"].to_numpy()
    assert ((ratio > 0.8) & (ratio < 1.25)).all()


def test_one_draw_contradicts_itself_before_and_never_after():
    table = street_counts("uniform", 0.5, 1)
    before, after = (table[table["series"] == name] for name in (BEFORE, AFTER))
    assert (before["gap"].abs() > 0.5).any()
    assert after["gap"].abs().max() < 1e-9
    assert set(table["level"]) == set(LEVELS)
    assert (gaps(street_tree(), true_counts().astype(float)) == 0).all()
