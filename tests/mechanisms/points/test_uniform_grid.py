"""The uniform grid's rule for its size, where N comes from, and what is listed as unprotected."""

from fractions import Fraction

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import UniformGrid
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain

POINTS = PointCounts.from_matrix(np.full((64, 64), 5))


def release(mechanism: UniformGrid, epsilon: float | str = 1.0, seed: int = 1, points: PointCounts = POINTS) -> PointRelease:
    return mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed))


def side_of(found: PointRelease) -> int:
    return round(len(found.tree.leaves) ** 0.5)


RULES = [(1000, 1, 10, 10), (10**6, 0.1, 10, 100), (1000, 1, 40, 5), (0, 1, 10, 1), (-50, 1, 10, 1), (1, 0.01, 10, 1), (10**6, 1, 2.5, 632)]


@pytest.mark.parametrize(("total", "epsilon", "c", "side"), RULES)
def test_the_rule_is_the_root_of_n_epsilon_over_c_and_at_least_one(total, epsilon, c, side):
    assert UniformGrid(c=c).rule(total, Fraction(epsilon)) == side


def test_by_default_a_hundredth_of_epsilon_buys_the_total_that_decides_the_size():
    found = release(UniformGrid(), "0.9")
    total, cells = found.receipt.steps
    assert total.purpose == "total, for the size of the grid"
    assert (total.counts, total.level, cells.counts) == (1, None, side_of(found) ** 2)
    assert float(total.amount) == pytest.approx(0.009, rel=1e-6)
    assert found.receipt.unprotected == release(UniformGrid(side=3)).receipt.unprotected


def test_the_size_follows_the_noisy_total_and_what_is_left_of_epsilon():
    assert {side_of(release(UniformGrid(total_share=0.5), 10, seed)) for seed in range(5)} == {64}
    small = release(UniformGrid(total_share=0.5), 1)
    assert side_of(small) == pytest.approx((64 * 64 * 5 * 0.5 / 10) ** 0.5, abs=1)
    assert len({side_of(release(UniformGrid(), "0.05", seed)) for seed in range(20)}) > 1
    assert side_of(release(UniformGrid(), 1, points=PointCounts.from_matrix(np.zeros((64, 64), int)))) <= 8


def test_a_declared_total_or_a_given_side_costs_nothing_and_only_a_total_that_is_used_is_unprotected():
    found = release(UniformGrid(declared_total=12_345), 0.2)
    assert side_of(found) == round((12_345 * 0.2 / 10) ** 0.5)
    assert found.receipt.unprotected[-1] == "the declared number of records (12,345)"
    given = [release(UniformGrid(side=7, declared_total=total)) for total in (None, 10**6)]
    assert [side_of(each) for each in given] == [7, 7]
    assert "declared" not in "".join(text for each in given for text in each.receipt.unprotected)
    assert {len(each.receipt.steps) for each in (found, *given)} == {1}


@pytest.mark.parametrize(
    ("side", "notes"), [(64, ()), (100, ("The grid has 64 cells per side, not 100: the lattice or the memory has no room for more.",))]
)
def test_a_side_finer_than_the_lattice_is_cut_and_only_cells_are_measured(side, notes):
    found = release(UniformGrid(side=side))
    inner = found.tree.children > 0
    assert (side_of(found), found.receipt.notes, found.steps) == (64, notes, ())
    np.testing.assert_array_equal(np.isnan(found.noisy), inner)
    np.testing.assert_allclose(found.node_stddev[0], 64 * found.node_stddev[~inner][0])


def test_the_parts_of_the_budget_can_be_moved():
    assert [part.share for part in UniformGrid(side=3).shares(POINTS.domain)] == [1.0]
    assert [part.structure for part in UniformGrid().shares(POINTS.domain)] == [True, False]
    found = release(UniformGrid().with_shares([0.25, 0.75]))
    assert [float(step.amount) for step in found.receipt.steps] == pytest.approx([0.25, 0.75])
    assert [UniformGrid().with_shares(shares).total_share for shares in ([0.0, 1.0], [0.9, 0.1])] == [0.001, 0.5]


def test_the_rule_counts_epsilon_per_record():
    x = np.full(8000, 0.5)
    domain = Domain(bounds=(0.0, 0.0, 1.0, 1.0), crs=None, order=6)
    many = PointCounts.from_xy(x, x, domain=domain, person=np.arange(8000) // 4, contributions=4)
    one = PointCounts.from_xy(x, x, domain=domain)
    for mechanism, epsilon in ((UniformGrid(declared_total=8000), 1), (UniformGrid(c=1000), 100)):
        assert [side_of(release(mechanism, epsilon, points=each)) for each in (one, many)] == [28, 14]
