"""E2EPriv: what it spends, what it takes as public, what it chooses; and its privacy with scripted noise and exact laws."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, SettingError
from dpviz.mechanisms import tuning
from dpviz.mechanisms.base import shares_of
from dpviz.mechanisms.points.tuned import Tuned, TunedGrid
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.selection import LAWS
from dpviz.release.point_release import Release
from tests.transcripts import EPSILON, pair, worst_loss

POINTS = PointCounts.from_matrix(np.random.default_rng(1).poisson(5, (64, 64)))
QUICK = {"sizes": (0.5, 1.0), "per_size": 6}
VARIANTS = {
    "default": TunedGrid(sides=(1, 2, 4), **QUICK),
    "declared total": TunedGrid(sides=(1, 2, 3), declared_total=200, clip=0.5, sanity=0.02, **QUICK),
    "the paper's way": TunedGrid(
        sides=(1, 2), total="declared", declared_total=120, sanity=0.1, bound="paper", law="exponential mechanism", **QUICK
    ),
    "heights": Tuned(values=(1, 2), **QUICK),
    "thresholds": Tuned(tune="pruning threshold", values=(0, 1.5, 3), clip=0.2, declared_total=1000, sanity=0.1, **QUICK),
    "sizes": Tuned(tune="grid size", values=(1, 2, 4), law="exponential mechanism", **QUICK),
}


def release(mechanism, epsilon: float | str = 1, seed: int = 1, points: PointCounts = POINTS) -> Release:
    return mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed))


def side_of(found: Release) -> int:
    return round(len(found.tree.leaves) ** 0.5)


def test_by_default_it_buys_the_total_then_chooses_then_counts():
    total, choice, cells = release(TunedGrid(), "0.5").receipt.steps
    assert [float(step.amount) for step in (total, choice, cells)] == pytest.approx([0.01, 0.1, 0.39])
    assert sum(step.amount for step in (total, choice, cells)) == Fraction("0.5")
    assert (choice.noise, choice.counts, choice.sensitivity) == ("permute-and-flip", 5, 1 + Fraction(1, 2**20))
    assert (total.purpose, choice.purpose) == ("total, for the sanity bound", "size of the grid")


def test_a_declared_total_is_listed_as_unprotected_and_saves_its_share():
    found = release(TunedGrid(declared_total=20_000))
    assert [float(step.amount) for step in found.receipt.steps] == pytest.approx([0.2, 0.8])
    assert found.receipt.unprotected[-1] == "the declared number of records (20,000)"
    assert "declared" not in "".join(release(TunedGrid()).receipt.unprotected)


def test_a_single_candidate_costs_nothing():
    for mechanism in (TunedGrid(sides=(8,)), TunedGrid(sides=(64, 128, 512)), Tuned(values=(3,))):
        found = release(mechanism)
        assert "choice" not in str(found.receipt.steps)
        assert found.receipt.spent.epsilon == 1
        assert [share.share for share in mechanism.shares(POINTS.domain)] == [1.0]


def test_sizes_are_cut_to_the_lattice_and_the_receipt_says_so():
    assert [each.side for each in TunedGrid(sides=(100, 3, 64, 3)).candidates(POINTS.domain)] == [3, 64]
    assert release(TunedGrid()).receipt.notes == ("Grids have at most 64 cells per side: the lattice is no finer.",)
    assert release(TunedGrid(sides=(3, 64))).receipt.notes == ()


def test_with_a_large_budget_it_chooses_the_best_candidate_under_either_law():
    fine = PointCounts.from_matrix(np.kron(np.eye(32, dtype=int) * 50, np.array([[1, 0], [0, 1]])))
    flat = PointCounts.from_matrix(np.full((64, 64), 1))
    for law in LAWS:
        for options in ({}, {"total": "declared", "declared_total": 3200}):
            mechanism = TunedGrid(sides=(2, 8, 64), law=law, sizes=(0.1, 0.3), **options)
            assert {side_of(release(mechanism, 10**5, seed, fine)) for seed in range(5)} == {64}
    coarse = TunedGrid(sides=(2, 64), tuning_share=0.8, sizes=(1.0,), clip=0.1)
    assert {side_of(release(coarse, 2, seed, flat)) for seed in range(5)} == {2}


def test_settings_that_make_no_sense_are_refused():
    for wrong in ({"sides": ()}, {"sides": (2.5,)}, {"bound": "loose"}, {"law": "best"}, {"sizes": (0.0,)}):
        with pytest.raises(SettingError):
            TunedGrid(**wrong)
    many = "16,384 boxes"
    wrong = ({"total": "declared"}, "Declared number of records"), ({"sizes": ()}, many), ({"sizes": (0.5,) * 20, "per_size": 1000}, many)
    for settings, told in wrong:
        mechanism = TunedGrid(**settings)
        for refused in (mechanism.check, lambda _, each=mechanism: release(each)):
            with pytest.raises(SettingError, match=told):
                refused(POINTS.domain)


def test_the_parts_of_the_budget_can_be_moved():
    mechanism = TunedGrid()
    assert [share.share for share in mechanism.shares(POINTS.domain)] == pytest.approx([0.02, 0.2, 0.78])
    moved = mechanism.with_shares([0.05, 0.5, 0.45])
    assert (moved.total_share, moved.tuning_share) == (0.05, 0.5)
    assert [float(step.amount) for step in release(moved).receipt.steps] == pytest.approx([0.05, 0.5, 0.45])
    declared = TunedGrid(declared_total=5).with_shares([3, 1])
    assert (declared.tuning_share, declared.total_share) == (0.75, 0.02)
    assert mechanism.with_shares([0, 0, 1]).tuning_share == 0.01
    assert mechanism.with_shares([1]) is mechanism


@pytest.mark.parametrize("mechanism", [TunedGrid(), Tuned()])
@pytest.mark.parametrize("shares", [(0, 0), (0.0, 0.0, 0.0), (-1, 2), (math.nan, 1), (math.inf, 1), (1e308, 1e308, 1e308)])
def test_a_split_that_says_nothing_is_refused(mechanism, shares):
    with pytest.raises(SettingError, match="shares of a split"):
        mechanism.with_shares(shares)
    assert shares_of([3, 1]) == [0.75, 0.25]
    assert shares_of((0, 0.0, 2)) == [0, 0, 1]
    assert sum(shares_of([0.1] * 10)) == pytest.approx(1)


def neighbours(bound: int):
    rng = np.random.default_rng(2)
    for base in (np.zeros((4, 4), int), rng.integers(0, 2, (4, 4)), np.diag([0, 2, 0, 9])):
        for place in range(16):
            yield pair(base, [place, *rng.integers(0, 16, bound - 1)])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bound", [1, 2])
def test_no_record_and_no_person_costs_more_than_epsilon_whatever_is_drawn_and_chosen(monkeypatch, variant, bound):
    VARIANTS[variant].release(next(neighbours(bound))[0], PureBudget(EPSILON), Entropy.seeded(0))  # what is public is kept from here on
    found = [worst_loss(monkeypatch, VARIANTS[variant], *inputs, seed) for seed, inputs in enumerate(neighbours(bound))]
    assert 0.7 * EPSILON < max(found) <= float(EPSILON) + 1e-9


def test_it_catches_scores_whose_sensitivity_is_understated(monkeypatch):
    mechanism, honest = TunedGrid(sides=(1, 2, 4), declared_total=200, tuning_share=0.8, **QUICK), tuning.clipped_scores
    assert max(worst_loss(monkeypatch, mechanism, *inputs, 3) for inputs in neighbours(1)) <= EPSILON
    understated = lambda *given: honest(*given[:4], [0.1 * each for each in given[4]], 0)  # noqa: E731
    monkeypatch.setattr(tuning, "clipped_scores", understated)
    assert max(worst_loss(monkeypatch, mechanism, *inputs, 3) for inputs in neighbours(1)) > 1.5 * EPSILON


def test_it_catches_a_release_that_forgets_what_tuning_cost(monkeypatch):
    honest = tuning.Tuning.tune_by
    monkeypatch.setattr(tuning.Tuning, "tune_by", lambda self, *rest: replace(honest(self, *rest), remaining=EPSILON))
    with pytest.raises(BudgetError, match="more than the budget"):
        release(TunedGrid(), str(EPSILON))
