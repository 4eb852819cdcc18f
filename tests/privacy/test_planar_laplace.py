"""Planar Laplace noise: the exact guarantee on a small lattice by brute force, and draws against the exact probabilities."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import PlanarLaplace
from dpviz.privacy import inversion
from dpviz.privacy import planar_laplace as noise
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from tests.laws import SEEDED, p_of_counts

REACH = 60  # steps beyond this have a chance below 1e-20 at the rates of these tests
RATES = (Fraction(1), Fraction(3, 2))


def exact_chances(rates, reach=REACH):
    """(2 reach + 1, 2 reach + 1) probabilities of the steps, [north, east]."""
    steps = np.arange(-reach, reach + 1)
    weight = np.exp(-np.hypot(*np.meshgrid(float(rates[0]) * steps, float(rates[1]) * steps)))
    return weight / weight.sum()


def clamped_chances(start, side, rates):
    """(side, side) probabilities of the perturbed place in the domain of a person at `start`: steps that leave it end at its border."""
    steps, ends = np.arange(-REACH, REACH + 1), np.zeros((side, side))
    east, north = (np.clip(place + steps, 0, side - 1) for place in start)
    np.add.at(ends, (np.repeat(north, len(steps)), np.tile(east, len(steps))), exact_chances(rates).ravel())
    return ends


@pytest.mark.parametrize("rates", [RATES, (Fraction(2), Fraction(2))])
def test_two_places_are_told_apart_by_at_most_exp_of_their_distance_everywhere_in_the_domain(rates):
    side = 4
    chances = {start: clamped_chances(start, side, rates) for start in product(range(side), repeat=2)}
    assert all(abs(each.sum() - 1) < 1e-12 for each in chances.values())
    largest = 0.0
    for one, other in product(chances, repeat=2):
        distance = np.hypot(*(float(rate) * (a - b) for rate, a, b in zip(rates, one, other, strict=True)))
        ratio = float(np.log(chances[one] / chances[other]).max())
        assert ratio <= distance + 1e-9
        largest = max(largest, ratio / distance if distance else 0.0)
    assert largest > 0.99, "the bound is reached, so that a smaller one would be wrong"


def test_the_exponential_mechanism_on_the_domain_alone_would_break_the_bound():
    cells = np.array(list(product(range(4), repeat=2)), float)
    distance = np.hypot(*(cells[:, None] - cells).T)
    chances = np.exp(-distance) / np.exp(-distance).sum(axis=1, keepdims=True)
    excess = np.log(chances[:, None] / chances[None]).max(axis=2) - distance
    assert excess.max() > 0.1


def p_value(steps, rates):
    """Chi-square p-value of steps against the exact probabilities."""
    east, north = (np.clip(part + REACH, 0, 2 * REACH) for part in steps)
    observed = np.bincount(north * (2 * REACH + 1) + east, minlength=(2 * REACH + 1) ** 2)
    chances = exact_chances(rates).ravel()
    order = np.argsort(-chances)
    return p_of_counts(observed[order], chances[order])


@pytest.mark.parametrize("rates", [RATES, (Fraction(1, 3), Fraction(1, 2))])
def test_draws_have_the_exact_probabilities_and_a_wrong_scale_is_rejected(rates):
    steps = noise.planar_laplace(60_000, rates, Entropy.seeded(1))
    assert p_value(steps, rates) > SEEDED
    wrong = [(rates[0] * Fraction(11, 10), rates[1]), (rates[0], rates[1] * Fraction(10, 11)), rates[::-1]]
    assert all(p_value(steps, other) < SEEDED for other in wrong)


def test_steps_that_keep_every_proposal_would_be_rejected(monkeypatch):
    monkeypatch.setattr(noise, "toss_coins", lambda share, *_: np.ones(len(share), bool))
    assert p_value(noise.planar_laplace(60_000, RATES, Entropy.seeded(1)), RATES) < SEEDED


def test_chances_are_decided_exactly_where_floating_point_numbers_do_not_decide_them(monkeypatch):
    asked = []
    exactly = noise._acceptance
    monkeypatch.setattr(noise, "_SLACK", 0.5)
    monkeypatch.setattr(noise, "_acceptance", lambda *given: asked.append(given) or exactly(*given))
    steps = noise.planar_laplace(3_000, RATES, Entropy.seeded(2))
    assert len(asked) > 1000
    monkeypatch.undo()
    for one, other in zip(steps, noise.planar_laplace(3_000, RATES, Entropy.seeded(2)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("step", [(0, 0), (3, 4), (1, 0), (900, 700)])
def test_the_chance_of_a_proposal_is_that_of_the_noise_over_that_of_the_proposal(step):
    u, v = (float(rate) * size for rate, size in zip(RATES, step, strict=True))
    with inversion._digits_for(64):
        chance = float(noise._acceptance(RATES, *step))
    assert chance == pytest.approx(np.exp(0.7 * (u + v) - np.hypot(u, v)), rel=1e-10)
    assert 0 < chance <= 1


def test_the_mechanism_measures_by_the_narrowest_cells_and_keeps_everybody():
    domain = Domain(bounds=(0, 50, 2, 60), crs="EPSG:4326", order=4)
    points = PointCounts.from_xy([1.0, 0.0], [59.0, 50.0], domain=domain, count=[500, 300])
    across, up = PlanarLaplace(radius=1000, level=2).rates(domain)
    assert float(across) == pytest.approx(2 / 1000 * (2 / 16) * 111_320 * np.cos(np.radians(59.7)), rel=0.01)
    assert float(up) == pytest.approx(2 / 1000 * (10 / 16) * 111_250, rel=0.01)
    release = PlanarLaplace(radius=30_000).release(points, PureBudget(1), Entropy.seeded(1))
    assert release.count[0] == 800
    assert "Each location by itself: two places within 30,000 m of each other" in release.receipt.notes[-2]
    assert "choose a finer resolution" in release.receipt.notes[-1]
