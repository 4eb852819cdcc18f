import numpy as np
import pytest

from dpviz.evaluation.split_objective import objective_curve
from dpviz.lessons.homogeneity import REPEATS, chosen_lines, percent_near_best
from dpviz.lessons.town import EVEN, TWO_CROWDS, town
from dpviz.mechanisms.points.htf import SENSITIVITY, UNITS_PER_RECORD
from dpviz.privacy.budget import PureBudget
from tests.laws import p_of_counts, permute_and_flip_law


@pytest.mark.parametrize("across", [True, False])
def test_a_large_budget_finds_the_best_tried_line(across):
    points = town(5, 20_000, TWO_CROWDS)
    curve = objective_curve(points, PureBudget(10), across=across)
    chosen = chosen_lines(points, 10.0, 1, across=across)
    assert chosen["place"].tolist() == curve.tried.tolist()
    best = curve.tried[curve.tried_objective.argmin()]
    assert chosen.set_index("place")["percent"][best] == 100
    assert percent_near_best(curve, chosen) == 100


def test_only_another_draw_chooses_other_lines():
    chosen, again, other = (chosen_lines(town(5, 20_000, EVEN), 1e-9, draw, across=True) for draw in (2, 2, 3))
    assert chosen["percent"].sum() == pytest.approx(100)
    assert chosen.equals(again)
    assert not chosen.equals(other)


def test_choices_have_the_law_of_permute_and_flip():
    points, epsilon = town(5, 20_000, TWO_CROWDS), 0.003
    value = np.floor(UNITS_PER_RECORD * objective_curve(points, PureBudget(1)).tried_objective).astype(int)
    law = permute_and_flip_law(-value, epsilon / (2 * SENSITIVITY))
    drawn = sum(chosen_lines(points, epsilon, draw, across=True)["percent"] * REPEATS / 100 for draw in range(1, 11))
    assert law.sum() == pytest.approx(1)
    assert p_of_counts(drawn.to_numpy(), law) > 1e-3
