"""The expected errors of another split are those of a release that was made with this split."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError
from dpviz.evaluation.expected_split import expected_of_split
from dpviz.mechanisms import AdaptiveGrid, Dawa, HilbertTree, Kdtree, PathTree, Quadtree, UniformGrid, run
from dpviz.mechanisms.points import dawa, median_tree, path_tree, privtree
from dpviz.privacy import medians
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.squares import expected_error
from dpviz.samples.points import POINT_SAMPLES, load_point_sample
from dpviz.space.domain import Domain

BUDGET, ORDER = PureBudget(0.8), 6
ZOOMS = range(ORDER + 1)
MADE = {
    "quadtree": Quadtree(height=5),
    "quadtree, fan-out 16": Quadtree(height=3, fan_out=16),
    "quadtree as measured": Quadtree(height=5, least_squares=False),
    "kdtree": Kdtree(height=5),
    "kdtree in halves": Kdtree(height=7, fan_out=2),
    "hilbert_tree": HilbertTree(height=5),
    "dawa": Dawa(),
    "path_tree": PathTree(),
    "path_tree as measured": PathTree(least_squares=False),
}
SPLITS = ("uniform", "leaf-heavy", "random", "random again")
EVERY = pytest.mark.parametrize("mechanism", [pytest.param(made, id=name) for name, made in MADE.items()])


def crowd():
    rng = np.random.default_rng(8)
    points = rng.normal([20, 40], [3, 8], (5000, 2)).clip(0, 63.9)
    return PointCounts.from_xy(*points.T, domain=Domain(bounds=(0, 0, 64, 64), crs=None, order=ORDER), person=np.arange(5000) // 2)


POINTS = replace(crowd(), contributions=2)


def shares_of(name, parts):
    """A split of so many parts; parts of the structure keep what they have by default, so that trees stay comparable."""
    counts = [part for part in parts if not part.structure]
    weights = {
        "uniform": np.ones(len(counts)),
        "leaf-heavy": 3.0 ** np.arange(len(counts)),
        "random": np.random.default_rng(1).dirichlet(np.ones(len(counts))),
        "random again": np.random.default_rng(2).dirichlet(np.ones(len(counts))),
    }[name]
    left = iter((1 - sum(part.share for part in parts if part.structure)) * weights / weights.sum())
    return [part.share if part.structure else float(next(left)) for part in parts]


def drawn(mechanism, seed=3):
    return mechanism.release(POINTS, BUDGET, Entropy.seeded(seed))


def expected(release):
    return np.array([expected_error(release, zoom) for zoom in ZOOMS])


def without_noise_facts(release):
    """The release without what it knows of its own noise: all of that must come from the mechanism."""
    return replace(release, noise_variance=np.ones(len(release.tree)), spread=None)


@EVERY
@pytest.mark.parametrize("split", SPLITS)
def test_they_are_those_of_a_release_with_this_split_and_of_no_other(mechanism, split):
    parts = mechanism.shares(POINTS.domain)
    tried = mechanism.with_shares(shares_of(split, parts))
    real = drawn(tried)
    on = real if mechanism.key == "path_tree" or any(part.structure for part in parts) else drawn(mechanism)  # partitions depend on noise
    found = expected_of_split(without_noise_facts(on), tried, BUDGET, ZOOMS)
    np.testing.assert_allclose(found, expected(real), rtol=0.01)
    for other in set(SPLITS) - {split}:
        wrong = expected_of_split(on, mechanism.with_shares(shares_of(other, parts)), BUDGET, ZOOMS)
        assert np.abs(wrong / expected(real) - 1).max() > 0.05


@pytest.mark.parametrize("shares", [[1] * 8, [1, 1, 1, 1, 1, 4, 1, 1], [1, 1, 1, 1, 6, 1, 1, 1]])
def test_partitions_that_depend_on_counts_are_chosen_anew_from_public_ones(shares):
    residents = load_point_sample("la_residents", domain=replace(POINT_SAMPLES["la_residents"].domain, order=8))
    budget, zooms = PureBudget("0.5"), range(9)
    tried, other = PathTree().with_shares(shares), PathTree().release(residents, budget, Entropy.seeded(1))
    runs = [tried.release(residents, budget, Entropy.seeded(seed)) for seed in range(4)]
    mean = np.mean([[expected_error(run, zoom) for zoom in zooms] for run in runs], axis=0)
    anew, kept = (np.abs(expected_of_split(other, tried, budget, zooms, points) / mean - 1).max() for points in (residents, None))
    assert anew < 0.35
    assert anew < kept or max(shares) == 1


@EVERY
def test_no_noise_is_drawn(mechanism, monkeypatch):
    release = drawn(mechanism)

    def refuse(*_, **__):
        raise AssertionError("noise was drawn")

    for module in (run, privtree, path_tree, dawa):
        monkeypatch.setattr(module, "discrete_laplace", refuse)
    for module in (median_tree, medians):
        monkeypatch.setattr(module, "exponential_medians", refuse)
    monkeypatch.setattr(Entropy, "__getattribute__", refuse)
    assert expected_of_split(release, mechanism, BUDGET, ZOOMS) == pytest.approx(expected(release))


@pytest.mark.parametrize("mechanism", [Quadtree(height=4), Kdtree(height=4), HilbertTree(height=4)], ids=lambda made: made.key)
@pytest.mark.parametrize("weights", [(0, 1, 0, 0, 2), (1, 0, 0, 0, 0), (0, 0, 1, 0, 0), (0, 1, 1, 1, 0), (0, 0, 0, 0, 1)])
def test_levels_without_budget(mechanism, weights):
    tried = replace(mechanism, split="custom", weights=tuple(map(float, weights)))
    found = expected_of_split(drawn(mechanism), tried, BUDGET, ZOOMS)
    assert (found > 0).all()
    assert np.isfinite(found).all()
    if mechanism.key == "quadtree":
        np.testing.assert_allclose(found, expected(drawn(tried)), rtol=0.01)


def test_all_on_the_structure_but_a_hundredth_and_the_other_way_round():
    release = drawn(Kdtree(height=4))
    few, many = (expected_of_split(release, release_with(share), BUDGET, ZOOMS) for share in ([1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]))
    assert (few > 50 * many).all(), "a hundredth of ε against 99 of them"


def release_with(shares):
    return Kdtree(height=4, split="uniform").with_shares(shares)


def test_a_grid_and_its_total():
    grid = UniformGrid(side=8)
    assert expected_of_split(drawn(grid), grid, BUDGET, ZOOMS) == pytest.approx(expected(drawn(grid)))
    half = UniformGrid().with_shares([1, 1])
    release = drawn(half)
    assert expected_of_split(release, half, BUDGET, ZOOMS) == pytest.approx(expected(release))
    less = expected_of_split(release, UniformGrid().with_shares([1, 99]), BUDGET, ZOOMS)
    np.testing.assert_allclose(less / expected(release), 0.5 / 0.99, rtol=0.02)


def test_nothing_is_said_without_a_run_or_of_another_mechanism():
    release = drawn(Quadtree(height=3))
    assert expected_of_split(release, Kdtree(height=3), BUDGET, ZOOMS) is None
    assert expected_of_split(release, Quadtree(height=3, prune=1.0), BUDGET, ZOOMS) is None
    assert expected_of_split(drawn(AdaptiveGrid()), AdaptiveGrid(), BUDGET, ZOOMS) is None
    with pytest.raises(BudgetError):
        expected_of_split(drawn(Kdtree(height=3)), Kdtree(height=3), ZcdpBudget(1), ZOOMS)
    with pytest.raises(BudgetError):
        expected_of_split(release, Quadtree(height=3, split="custom", weights=(1.0, 2.0)), BUDGET, ZOOMS)


def test_of_gaussian_noise_the_errors_of_another_split_are_those_of_a_release_with_it():
    budget, other = ApproxBudget(1, "1e-6"), Quadtree(height=3, split="custom", weights=(1.0, 1.0, 2.0, 6.0))
    expected = expected_of_split(Quadtree(height=3).release(POINTS, budget, Entropy.seeded(1)), other, budget, ZOOMS)
    made = other.release(POINTS, budget, Entropy.seeded(2))
    assert expected == pytest.approx([expected_error(made, zoom) for zoom in ZOOMS])


def test_the_release_stays_as_it_was():
    release = drawn(Quadtree(height=3))
    before = [array.copy() for array in (release.count, release.noise_variance, release.node_stddev)]
    expected_of_split(release, Quadtree(height=3, split="leaf"), BUDGET, ZOOMS)
    for array, copy in zip((release.count, release.noise_variance, release.node_stddev), before, strict=True):
        np.testing.assert_array_equal(array, copy)
