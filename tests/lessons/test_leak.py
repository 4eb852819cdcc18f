import math

import numpy as np
import pytest

from dpviz.lessons import leak
from dpviz.lessons.town import count_residents
from dpviz.mechanisms.references import ExactKdtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import exponential_medians
from dpviz.privacy.node_values import NodeValues
from tests.laws import p_of_counts
from tests.nodes import tiled
from tests.often import often


def with_person_at(person, column, row):
    columns, rows = (part.copy() for part in leak.people())
    columns[person], rows[person] = column, row
    return count_residents(columns, rows, leak.ORDER)


@pytest.mark.parametrize("person", [4, 17, 39])
def test_a_cell_is_possible_exactly_if_the_person_there_gives_the_published_lines(person):
    release = leak.exact_release(2)
    published, belief = set(leak.published_cuts(release.tree)), leak.attack(release, person, None)
    rng = np.random.default_rng(person)
    likely = np.argwhere(belief > 0)
    tried = [*rng.choice(likely, min(25, len(likely)), replace=False), *rng.integers(0, leak.SIDE, (60, 2))]
    for row, column in tried:
        moved = ExactKdtree(height=2).release(with_person_at(person, column, row), PureBudget(1), Entropy.seeded(0))
        assert (set(leak.published_cuts(moved.tree)) == published) == (belief[row, column] > 0)
    assert belief[leak.people()[1][person], leak.people()[0][person]] > 0


@pytest.mark.parametrize("height", often([1, 2, 4], 2))
def test_how_many_people_are_given_away_is_what_the_attack_finds(height):
    release = leak.exact_release(height)
    possible = np.array([leak.summarize_attack(leak.attack(release, person, None), person)["possible"] for person in range(leak.PEOPLE)])
    assert leak.known_people(height) == ((possible == 1).sum(), (possible <= 4).sum())


def test_the_attack_recovers_most_people_from_exact_medians_and_none_from_private_ones():
    alone, few = leak.known_people(4)
    assert alone > leak.PEOPLE / 2
    assert few > 0.8 * leak.PEOPLE
    release = leak.private_release(4, 1.0, 1)
    belief_chart = [leak.summarize_attack(leak.attack(release, person, 1.0), person) for person in range(0, leak.PEOPLE, 4)]
    assert all(each["possible"] == leak.SIDE**2 for each in belief_chart)
    assert max(each["true"] for each in belief_chart) < 0.005


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_no_cell_gains_more_than_two_epsilon_against_another_at_the_rate_of_the_receipt(monkeypatch, epsilon):
    release, law, rates = leak.private_release(3, epsilon, 2), leak.line_probabilities, set()
    monkeypatch.setattr(leak, "line_probabilities", lambda *given: rates.add(given[3]) or law(*given))
    for person in (3, 20):
        belief = leak.attack(release, person, epsilon)
        assert belief.sum() == pytest.approx(1)
        assert math.log(belief.max() / belief.min()) <= 2 * epsilon
    spent = {round(float(step.amount), 6) for step in release.receipt.steps if step.purpose == "medians"}
    assert {round(rate, 6) for rate in rates} == spent


def test_the_law_of_a_private_line_is_the_one_that_is_drawn_and_a_person_inside_moves_it_by_epsilon_at_most():
    people, rate = (np.array([1, 1, 2, 6, 7]), np.array([0, 3, 2, 2, 1])), 1.2
    column, _ = people
    cuts = [leak.Cut(rectangle=(0, 0, 8, 4), across=True, line=line, level=0) for line in range(1, 8)]
    law = np.exp([leak.line_probabilities(each, *people, rate)[1] for each in cuts])
    slow = np.array([math.exp(-rate * abs((column < line).sum() - 2.5)) for line in range(1, 8)])
    assert law == pytest.approx(slow / slow.sum())
    drawn = exponential_medians(tiled(NodeValues.of_one(column, 0, 8), 3000), PureBudget(rate).epsilon, Entropy.seeded(4))
    assert p_of_counts(np.bincount(drawn, minlength=8)[1:], law) > 1e-3
    inside, outside = leak.line_probabilities(cuts[1], *people, 1.0)
    weights = [math.exp(-abs((np.append(column, 5) < line).sum() - 3)) for line in range(1, 8)]
    assert inside[5] == pytest.approx(math.log(weights[1] / sum(weights)))
    assert np.abs(inside - outside).max() <= 1.0
