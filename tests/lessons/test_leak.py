import math

import numpy as np
import pytest

from dpviz.lessons.leak import (
    ORDER,
    PEOPLE,
    SIDE,
    Cut,
    attack,
    exact_release,
    known_people,
    line_probabilities,
    people,
    private_release,
    published_cuts,
    summarize_attack,
)
from dpviz.lessons.town import count_residents
from dpviz.mechanisms.references import ExactKdtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import exponential_medians
from dpviz.privacy.node_values import NodeValues
from tests.laws import p_of_counts


def with_person_at(person, column, row):
    columns, rows = (part.copy() for part in people())
    columns[person], rows[person] = column, row
    return count_residents(columns, rows, ORDER)


@pytest.mark.parametrize("person", [4, 17, 39])
def test_a_cell_is_possible_exactly_if_the_person_there_gives_the_published_lines(person):
    release = exact_release(2)
    published, belief = set(published_cuts(release.tree)), attack(release, person, None)
    rng = np.random.default_rng(person)
    likely = np.argwhere(belief > 0)
    tried = [*rng.choice(likely, min(25, len(likely)), replace=False), *rng.integers(0, SIDE, (60, 2))]
    for row, column in tried:
        moved = ExactKdtree(height=2).release(with_person_at(person, column, row), PureBudget(1), Entropy.seeded(0))
        assert (set(published_cuts(moved.tree)) == published) == (belief[row, column] > 0)
    assert belief[people()[1][person], people()[0][person]] > 0


@pytest.mark.parametrize("height", [1, 2, 4])
def test_how_many_people_are_given_away_is_what_the_attack_finds(height):
    release = exact_release(height)
    possible = np.array([summarize_attack(attack(release, person, None), person)["possible"] for person in range(PEOPLE)])
    assert known_people(height) == ((possible == 1).sum(), (possible <= 4).sum())


def test_the_attack_recovers_most_people_from_exact_medians_and_nobody_from_private_ones():
    alone, few = known_people(4)
    assert alone > PEOPLE / 2
    assert few > 0.8 * PEOPLE
    release = private_release(4, 1.0, 1)
    belief_chart = [summarize_attack(attack(release, person, 1.0), person) for person in range(0, PEOPLE, 4)]
    assert all(each["possible"] == SIDE**2 for each in belief_chart)
    assert max(each["true"] for each in belief_chart) < 0.005


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_no_cell_gains_more_than_two_epsilon_against_another(epsilon):
    release = private_release(3, epsilon, 2)
    for person in (3, 20):
        belief = attack(release, person, epsilon)
        assert belief.sum() == pytest.approx(1)
        assert math.log(belief.max() / belief.min()) <= 2 * epsilon


def test_the_law_of_a_private_line_is_the_one_that_is_drawn():
    column, row, rate = np.array([1, 1, 2, 6, 7]), np.array([0, 3, 2, 2, 1]), 1.2
    cut = [Cut(rectangle=(0, 0, 8, 4), across=True, line=line, level=0) for line in range(1, 8)]
    law = np.exp([line_probabilities(each, column, row, rate)[1] for each in cut])
    slow = np.array([math.exp(-rate * abs((column < line).sum() - 2.5)) for line in range(1, 8)])
    assert law == pytest.approx(slow / slow.sum())
    nodes = NodeValues.of_one(column, 0, 8)
    entropy = Entropy.seeded(4)
    drawn = np.array([exponential_medians(nodes, PureBudget(rate).epsilon, entropy)[0] for _ in range(3000)])
    assert p_of_counts(np.bincount(drawn, minlength=8)[1:], law) > 1e-3


def test_a_person_inside_a_node_moves_its_law_and_one_outside_does_not():
    column, row = np.array([1, 1, 2, 6, 7]), np.array([0, 3, 2, 2, 1])
    cut = Cut(rectangle=(0, 0, 8, 4), across=True, line=2, level=0)
    inside, outside = line_probabilities(cut, column, row, 1.0)
    weights = [math.exp(-abs((np.append(column, 5) < line).sum() - 3)) for line in range(1, 8)]
    assert inside[5] == pytest.approx(math.log(weights[1] / sum(weights)))
    assert np.abs(inside - outside).max() <= 1.0


def test_lines_of_a_tree_are_read_off_its_parts():
    release = exact_release(2)
    found = list(published_cuts(release.tree))
    root = found[0]
    assert root.rectangle == (0, 0, SIDE, SIDE)
    assert root.across
    columns = np.sort(people()[0])
    assert abs((columns < root.line).sum() - PEOPLE / 2) <= 2
    lines = {tuple(each.rectangle) for each in found}
    assert len(lines) == len(found)
