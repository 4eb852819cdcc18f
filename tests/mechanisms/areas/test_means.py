"""Sums and means: what one person's values change, what is released of them, and how often intervals hold."""

from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from dpviz.mechanisms.run import Run
from tests.trip_cases import from_parents

PLACES = from_parents([[0, 0], [0, 1, 1]])
"""Three towns in two states."""
FINEST = PLACES.ids_of(2).tolist()
BUDGETS = pytest.mark.parametrize("budget", [dv.PureBudget(1), dv.ZcdpBudget("0.1")], ids=["epsilon", "rho"])


def areas_of(entries, values, **options):
    """Counts of a table with a row for each entry (place, value)."""
    table = pd.DataFrame({"region": [FINEST[place] for place, _ in entries], "v": [value for _, value in entries], "who": "x"})
    return dv.AreaCounts.from_table(table, regions=PLACES, categories=values, slot="v", count="none", **options)


@pytest.mark.parametrize("values", [dv.Summed(low=0, high=3), dv.Summed(low=-1, high=0.5, step=0.5), dv.Summed(low=4, high=5)])
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("neighbours", ["add_remove", "bounded"])
def test_no_values_of_a_person_change_more_than_is_stated_and_some_change_as_much(neighbours, most, values):
    inside = np.arange(values.low, values.high + values.step / 2, values.step).tolist()
    beyond = [values.low - 100.0, values.high + 1e12]  # cut to the bounds before they are added
    chosen = [units for m in range(most + 1) for units in combinations_with_replacement(product(range(3), inside + beyond), m)]
    chosen = [*chosen[:: max(len(chosen) // 400, 1)], ((0, values.low),) * most, ((2, values.high),) * most]
    sums = np.array([areas_of(units, values).cross_counts() if units else np.zeros((6, 3), np.int64) for units in chosen])
    options = {"unit": "person", "contributions": most}
    mechanism = dv.CrossTree(neighbours=neighbours, split="uniform", slot_split="uniform")
    none = np.zeros(0, np.int64)
    frame = dv.AreaCounts(regions=PLACES, categories=values, leaf=none, slot=none, count=none, **options)
    for budget, power in ((dv.PureBudget(1), 1), (dv.ZcdpBudget(1), 2)):
        for step in mechanism.release(frame, budget, dv.Entropy.seeded(1)).receipt.steps:
            of_slots = slice(1, 3) if " by " in step.purpose else slice(0, 1)
            parts = sums[:, PLACES.hierarchy.at_depth(step.level), of_slots].reshape(len(sums), -1)
            changes = parts[:, None] if neighbours == "add_remove" else parts[:, None] - parts
            largest = (np.abs(changes) ** power).sum(axis=-1).max()
            assert largest <= step.sensitivity
            if neighbours == "add_remove" or (step.level and power == 2) or (power == 1 and step.level):
                assert largest == step.sensitivity


def test_values_are_cut_and_rounded_one_by_one_and_rows_without_one_are_left_out_and_counted():
    rows = [(0, 5), (0, 1e300), (1, "-7"), (1, None), (2, "n/a"), (2, 2.5), (2, float("inf"))]
    areas = areas_of(rows, dv.Summed(low=0, high=10), bad_rows="refuse")
    assert (areas.outside, areas.bad, int(areas.count.sum())) == (3, 0, 4)
    assert areas.cross_counts()[PLACES.hierarchy.starts[-2] :].tolist() == [[20, 5, 15], [10, 10, 0], [10, 7, 3]]
    alone = areas_of([(2, 2.5)], dv.Summed(low=0, high=10)).cross_counts()
    without = areas_of(rows[:5], dv.Summed(low=0, high=10)).cross_counts()
    assert (areas.cross_counts() - without == alone).all()


@pytest.mark.parametrize("options", [{"high": 0}, {"step": 0}, {"step": 3}, {"high": 1e6}, {"high": float("nan")}, {"step": 0.3}])
def test_bounds_and_steps_that_do_not_fit_are_refused(options):
    with pytest.raises(dv.DpvizError, match=r"lower bound|whole number of steps|slots|finite"):
        dv.Summed(**{"low": 0, "high": 10, **options})


def test_records_per_slot_and_exact_accounting_do_not_apply():
    with pytest.raises(dv.InputError, match="not values"):
        areas_of([(0, 1)], dv.Summed(low=0, high=2), person="who", per_slot=1)
    receipt = dv.CrossTree().release(areas_of([(0, 1)], dv.Summed(low=0, high=9)), dv.ApproxBudget(1, "1e-6"), dv.Entropy.seeded(1)).receipt
    assert receipt.conversion == "tight"
    assert any("not the exact one" in note for note in receipt.notes)
    assert any("adds 9 steps" in note for note in receipt.notes)


def test_a_sum_can_never_wrap_around():
    most = dv.Summed(low=0, high=65535)
    areas = dv.AreaCounts(
        regions=PLACES, categories=most, leaf=np.zeros(3, np.int64), slot=np.arange(65533, 65536), count=np.full(3, 10**9)
    )
    counts = areas.cross_counts()
    assert counts.min() >= 0
    assert counts[0, 2] == 10**9 * (65533 + 65534 + 65535)
    full = dv.AreaCounts(
        regions=PLACES, categories=most, leaf=np.zeros(65536, np.int64), slot=np.arange(65536), count=np.full(65536, 10**9)
    )
    assert full.cross_counts()[0].tolist() == [2 * (2**60 // 3), 2**60 // 3, 2**60 // 3]


@BUDGETS
@pytest.mark.parametrize("lean", [True, False])
def test_counts_sums_and_means_are_those_of_the_two_slots(budget, lean):
    rows = [(place, value) for place, number in enumerate((400, 90, 5)) for value in np.arange(number) % 41 + 20]
    values = dv.Summed(low=0, high=100)
    release = dv.CrossTree(lean=lean).release(areas_of(rows, values), budget, dv.Entropy.seeded(2))
    for level in range(3):
        table, at = release.means(level), release.nodes(level)
        low, high = release.cross_count[at, 1], release.cross_count[at, 2]
        np.testing.assert_allclose(table["count"], low + high, atol=1e-9)
        np.testing.assert_allclose(table["sum"], 100 * high, atol=1e-7)
        known = table["mean"].notna()
        np.testing.assert_allclose(table["mean"][known], (table["sum"] / table["count"])[known].clip(0, 100))
        assert ((table["mean_low"] >= 0) & (table["mean_high"] <= 100) & (table["mean_low"] <= table["mean_high"])).all()
        narrow = table["mean_high"] - table["mean_low"] <= 50
        assert (known == narrow).all()
    assert release.means("level 1" if "level 1" in PLACES.levels else 1)["mean"].notna().any()


@BUDGETS
@pytest.mark.parametrize(
    ("values", "mean"), [(dv.Summed(low=0, high=40), 3), (dv.Summed(low=-20, high=20), 0), (dv.Summed(low=0, high=2), 1)]
)
def test_intervals_of_means_and_sums_hold_as_often_as_they_say(budget, values, mean):
    """At most 96 % where the noise of a slot is wider than 10 steps; of narrow noise, whose steps are coarse, they hold more often."""
    rng = np.random.default_rng(7)
    rows = [(place, value) for place, number in enumerate((60, 25, 400)) for value in rng.normal(mean, 6, number)]
    areas = areas_of(rows, values)
    true = areas.cross_counts()
    of_high = values.low + (values.high - values.low) * true[:, 2] / true[:, 0]
    sums = (true[:, 1] * values.low + true[:, 2] * values.high) / values.per_record
    held, sums_held, entropy = [], [], dv.Entropy.seeded(11)
    for one in entropy.spawn(400):
        release = dv.CrossTree(split="uniform").release(areas, budget, one)
        for level in range(3):
            table, at = release.means(level), release.nodes(level)
            held.append(((table["mean_low"] <= of_high[at] + 1e-9) & (of_high[at] <= table["mean_high"] + 1e-9)).mean())
            sums_held.append(((table["sum_low"] <= sums[at]) & (sums[at] <= table["sum_high"])).mean())
    assert np.mean(held) >= 0.94
    assert np.mean(sums_held) >= 0.93
    if values.per_record > 30:
        assert np.mean(held) <= 0.975


def test_noise_of_another_scale_misses_as_often_as_it_should(monkeypatch):
    """Counts whose noise is half as wide as stated are not what this suite would let pass."""
    values, rows = dv.Summed(low=0, high=40), [(place, 20) for place in range(3) for _ in range(100)]
    areas = areas_of(rows, values)
    variance = Run.variance
    monkeypatch.setattr(Run, "variance", lambda self, amount: variance(self, amount) / 4)
    missed = []
    for one in dv.Entropy.seeded(3).spawn(200):
        table = dv.CrossTree(split="uniform").release(areas, dv.PureBudget(1), one).means()
        missed.append(((table["mean_low"] > 20) | (table["mean_high"] < 20)).mean())
    assert np.mean(missed) > 0.15
