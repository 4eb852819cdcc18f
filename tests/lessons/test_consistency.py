import numpy as np
import pytest

from dpviz.lessons import consistency as street
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy


def design():
    """(15, 8): which areas each part holds."""
    tree = street.street_tree()
    return np.array([[west <= area < east for area in range(8)] for west, east in zip(tree.west, tree.east, strict=True)], float)


def test_parts_hold_the_areas_they_should_and_noise_free_counts_have_no_gaps():
    assert (design() @ np.array(street.STREET) == street.true_counts()).all()
    assert len(street.street_tree()) == 2 ** (street.HEIGHT + 1) - 1
    assert (street.gaps(street.street_tree(), street.true_counts().astype(float)) == 0).all()


@pytest.mark.parametrize("split", ["uniform", "geometric"])
def test_counts_and_theory_are_the_dense_weighted_solution_and_its_covariance(split):
    noisy, variance = street.measure_street(split, 0.5, Entropy.seeded(3))
    weight = 1 / np.sqrt(variance)
    areas = np.linalg.lstsq(design() * weight[:, None], noisy * weight, rcond=None)[0]
    assert least_squares(street.street_tree(), noisy, variance)[0] == pytest.approx(design() @ areas)
    covariance = design() @ np.linalg.inv((design().T / variance) @ design()) @ design().T
    theory, _ = street.errors_by_level(split, 0.5, 1)
    before, after = (theory.loc[theory["series"] == name, "error"].to_numpy() for name in (street.BEFORE, street.AFTER))
    assert after == pytest.approx(np.sqrt(np.diag(covariance))[[0, 1, 3, 7]])
    assert (after < before).all()


def test_draws_scatter_as_theory_says():
    theory, drawn = street.errors_by_level("uniform", 1.0, 5)
    ratio = drawn["error"].to_numpy() / theory["error"].to_numpy()
    assert ((ratio > 0.8) & (ratio < 1.25)).all()


def test_one_draw_contradicts_itself_before_and_never_after():
    table = street.street_counts("uniform", 0.5, 1)
    before, after = (table[table["series"] == name] for name in (street.BEFORE, street.AFTER))
    assert (before["gap"].abs() > 0.5).any()
    assert after["gap"].abs().max() < 1e-9
    assert set(table["level"]) == set(street.LEVELS)
