"""The region tree: its shares, its bars against flat noise and whole budgets, and the same least squares as the quadtree's."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.data.areas import AreaCounts
from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, SettingError
from dpviz.mechanisms import FlatAreas, Quadtree, RegionTree
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.base import NEIGHBOURS
from dpviz.privacy.allocation import CENSUS, fitted_variance, region_weights
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.load import load_sample
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions
from tests.area_cases import areas_of, records_of
from tests.trip_cases import regular

STATES = regular(51, 62)
COUNTIES = areas_of(STATES, np.random.default_rng(1).poisson(300, 51 * 62))
BUDGETS = {"epsilon": PureBudget("0.1"), "rho": ZcdpBudget("0.01")}
BOTH = pytest.mark.parametrize("budget", [pytest.param(budget, id=name) for name, budget in BUDGETS.items()])


def made(mechanism, areas, budget, seed: int = 1):
    return mechanism.release(areas, budget, Entropy.seeded(seed))


def stddev_with_the_whole_budget(budget, level: int) -> float:
    """Of a count if all is spent on its level."""
    sizes = (51, 62)[:level]
    areas = areas_of(regular(*sizes), np.full(int(np.prod(sizes)), 100))
    return float(made(FlatAreas(), areas, budget).stddev(level)[0])


def test_with_a_fifth_for_states_counties_lose_little_and_states_gain_much():
    budget = BUDGETS["rho"]
    tree, flat = made(RegionTree(split="custom", weights=(0.2, 0.8)), COUNTIES, budget), made(FlatAreas(), COUNTIES, budget)
    assert (tree.stddev(2) / flat.stddev(2)).max() <= 1.12
    assert (tree.stddev(1) / flat.stddev(1)).max() <= 0.29


@BOTH
def test_minimax_loses_no_more_than_its_bar_at_any_level(budget):
    most = 2.0 if isinstance(budget, PureBudget) else 1.42
    release = made(RegionTree(), COUNTIES, budget)
    for level in (1, 2):
        assert release.stddev(level).max() <= most * stddev_with_the_whole_budget(budget, level)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("sizes", [(51, 3162), (10, 300, 3000, 100_000), (1, 51, 3162), (4, 4, 5), (7,)])
def test_no_other_shares_have_a_smaller_worst_level(sizes, gaussian):
    fan = np.array(sizes) / np.array((1, *sizes[:-1]))

    def worst(shares):
        weight = np.concatenate([[0.0], shares if gaussian else shares**2])
        return np.sqrt(fitted_variance(fan, weight, root=True)[1:]).max()

    shares = np.array(region_weights("minimax", sizes, gaussian=gaussian))
    assert shares.sum() == pytest.approx(1, abs=1e-3)
    rng = np.random.default_rng(1)
    others = [np.maximum(shares + rng.normal(0, scale, len(shares)), 1e-6) for scale in (0.002, 0.02, 0.1) for _ in range(300)]
    assert worst(shares / shares.sum()) <= 1.01 * min(
        [worst(np.full(len(sizes), 1 / len(sizes))), *(worst(each / each.sum()) for each in others)]
    )


def test_a_balanced_split_counts_the_whole_unless_neighbours_are_bounded():
    city = load_sample("made_up_city").regions
    mechanisms = {neighbours: RegionTree(split="balanced", neighbours=neighbours) for neighbours in NEIGHBOURS}
    labels = {neighbours: [part.label for part in mechanism.shares(city)] for neighbours, mechanism in mechanisms.items()}
    assert labels == {"add_remove": ["the whole", *city.levels], "bounded": [*city.levels]}


def test_balanced_finest_regions_have_little_more_noise_than_flat_counts_and_the_whole_less_than_half_as_much_as_minimax():
    """Block 1.65 instead of 3.98, and whole .75 of minimax."""
    city = load_sample("made_up_city").regions
    balanced, minimax = (
        [each.stddev for each in RegionTree(split=split).expected_errors(city, PureBudget(1))] for split in ("balanced", "minimax")
    )
    assert balanced[-1] < 1.65 < 3.9 < minimax[-1]
    assert balanced[0] < 0.75 * minimax[0]


def test_other_splits():
    assert region_weights("geometric", (4, 16, 64), gaussian=False) == pytest.approx([4 ** (depth / 6) for depth in (1, 2, 3)])
    assert region_weights("geometric", (4, 16, 64), gaussian=True) == pytest.approx([4 ** (depth / 4) for depth in (1, 2, 3)])
    six = areas_of(regular(1, 2, 2, 2, 2, 2), np.arange(32))
    assert [part.share for part in RegionTree(split="census").shares(six.regions)] == pytest.approx(
        np.array(CENSUS.parts) / sum(CENSUS.parts)
    )
    assert made(RegionTree(split="census", count_root=True), records_of(9, 5), BUDGETS["rho"]).receipt.steps[0].level == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"split": "census"}, "for 6 levels, and 3 are measured"),
        ({"split": "custom", "weights": (1, 2)}, "needs 3 weights for this tree, the coarsest level first; 2 were given"),
        ({"split": "custom", "weights": (1, 2, 3), "count_root": True}, "needs 4 weights for this tree, the whole first; 3 were given"),
        ({"split": "custom", "weights": (0.5, 0.2, 0.2)}, "add up to 0.9"),
        ({"split": "custom", "weights": (1, 2, 0)}, "finest level must be greater than 0"),
        ({"split": "custom"}, "needs 3 weights"),
    ],
)
def test_splits_that_do_not_fit_are_refused_before_anything_is_spent(monkeypatch, settings, words):
    monkeypatch.setattr(measure, "discrete_laplace", None)
    mechanism = RegionTree(**settings)
    for call in (lambda: made(mechanism, records_of(10), PureBudget(1)), lambda: mechanism.check(records_of(10).regions)):
        with pytest.raises(BudgetError, match=words):
            call()


def test_weights_without_a_split_that_takes_them_have_no_effect():
    release = made(RegionTree(weights=(1, 2, 3)), records_of(100), BUDGETS["rho"])
    np.testing.assert_array_equal(release.count, made(RegionTree(), records_of(100), BUDGETS["rho"]).count)
    with pytest.raises(SettingError, match="Custom weights"):
        RegionTree(weights=(-1, 2))


@pytest.mark.parametrize("root", [True, False])
def test_on_squares_its_least_squares_are_those_of_the_quadtree(monkeypatch, root):
    """With the same noise: squares and nodes of the quadtree are both in Z-order."""
    domain = Domain(bounds=(0, 0, 16, 16), crs=None, order=3)
    x, y = np.random.default_rng(2).uniform(0, 16, (2, 4000)) ** 2 / 16
    points, squares = PointCounts.from_xy(x, y, domain=domain), Regions.squares(domain, zooms=(1, 2, 3))
    areas = AreaCounts.from_xy(x, y, regions=squares)
    noise = {size: np.random.default_rng(size).integers(-20, 20, size) for size in (1, 4, 16, 64)}
    monkeypatch.setattr(measure, "discrete_laplace", lambda true, *rest: true + noise[len(true)])
    weights = (1.0, 2.0, 3.0, 5.0) if root else (0.0, 2.0, 3.0, 5.0)
    quadtree = Quadtree(height=3, split="custom", weights=weights).release(points, PureBudget("0.3"), Entropy.seeded(1))
    tree = RegionTree(split="custom", weights=weights if root else weights[1:], count_root=root)
    release = made(tree, areas, PureBudget("0.3"))
    for level in range(4):
        nodes = quadtree.tree.at_depth(level)
        np.testing.assert_allclose(release.count[release.nodes(level)], quadtree.count[nodes], rtol=0, atol=1e-9)
        np.testing.assert_allclose(release.stddev(level), quadtree.node_stddev[nodes], rtol=1e-9)
    for one, other in zip(quadtree.receipt.steps, release.receipt.steps, strict=True):
        assert (one.amount, one.scale, one.level, one.counts) == (other.amount, other.scale, other.level, other.counts)


def test_non_negative_counts_are_whole_and_estimates_stay_unbiased():
    areas = areas_of(regular(4, 8), np.r_[np.zeros(24, int), np.arange(8) * 30])
    plain, whole = (made(RegionTree(nonnegative=yes), areas, BUDGETS["epsilon"]) for yes in (False, True))
    assert plain.count[1:].min() < 0
    for level in range(3):
        np.testing.assert_array_equal(plain.centre[plain.nodes(level)], whole.centre[whole.nodes(level)])
        np.testing.assert_array_equal(plain.stddev(level), whole.stddev(level))
        assert (whole.count[whole.nodes(level)] >= 0).all()
    assert "non-negative" in whole.approximate
    assert plain.approximate is None
    error = [np.abs(release.count[release.nodes(2)] - areas.level_counts()[2]).mean() for release in (plain, whole)]
    assert error[1] < error[0]


def test_the_whole_is_closer_if_it_is_counted():
    counted, summed = (made(RegionTree(count_root=yes), COUNTIES, BUDGETS["rho"]) for yes in (True, False))
    assert counted.stddev(0)[0] < 0.3 * summed.stddev(0)[0]


def test_shares_say_what_each_level_gets():
    regions = Regions.from_table(pd.DataFrame({"state": ["A", "A", "B"], "county": ["a", "b", "c"]}), levels=["state", "county"])
    assert [part.label for part in RegionTree().shares(regions)] == ["state", "county"]
    assert [part.level for part in RegionTree(count_root=True).shares(regions)] == [0, 1, 2]
    assert replace(RegionTree(), split="uniform").with_shares([0.2, 0.8]) == RegionTree(split="custom", weights=(0.2, 0.8))
