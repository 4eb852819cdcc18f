"""What every trip mechanism must keep, whatever its method. A new one is tested without an edit here; see test_contract_settings, too."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpviz.data.trips import TripCounts
from dpviz.errors import BudgetError, InputError, SettingError
from dpviz.mechanisms import MECHANISMS
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.trip_release import TripRelease
from tests.trip_cases import from_parents, random_regions, random_trips, regular, released_at, sums_between, trips_of

EVERY = pytest.mark.parametrize("mechanism", [pytest.param(row, id=key) for key, row in MECHANISMS.of("trips").items()])
BOTH = pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
BUDGET, HUGE = ApproxBudget(2, "1e-5"), ApproxBudget(10**5, "1e-8")


def made(mechanism, trips: TripCounts, budget=BUDGET, seed: int = 1, **settings) -> TripRelease:
    return mechanism(**settings).release(trips, budget, Entropy.seeded(seed))


def numbers(release: TripRelease) -> list[list]:
    """Everything that a release counts."""
    return [
        [part.tolist() for part in (at.origin, at.destination, at.count, at.noisy)] + [at.variance, at.measured] for at in release.stages
    ]


def checked_steps(receipt) -> Fraction:
    """What the steps spend, after a look at every scale."""
    for step in receipt.steps:
        gaussian = step.noise == "discrete Gaussian"
        assert gaussian or step.noise == "discrete Laplace"
        assert step.scale == step.sensitivity / (2 * step.amount if gaussian else step.amount)
    return sum(step.amount for step in receipt.steps)


@EVERY
@BOTH
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-8"), ("1/3", "1e-5"), ("7.000000000000000000001", "1/1000")])
def test_it_spends_all_of_epsilon_and_delta_and_never_more(mechanism, neighbours, epsilon, delta):
    budget, conversions = ApproxBudget(epsilon, delta), {"exact": "exact", "tight": "tight", "paper": "simple"}
    choices = [{"accounting": choice} for rule in mechanism.rules() if rule.name == "accounting" for choice in rule.choices]
    for settings in choices or [{}]:
        receipt = made(mechanism, trips_of(200), budget, neighbours=neighbours, **settings).receipt
        assert receipt.spent == receipt.total == budget
        assert checked_steps(receipt) == receipt.available == receipt.used
        if settings:
            conversion = conversions[settings["accounting"]]
            assert (receipt.conversion, receipt.currency) == (conversion, "ρ")
            exact = receipt.converted.rho > budget.to_zcdp().rho
            assert exact if conversion == "exact" else receipt.converted == budget.to_zcdp(conversion)
        else:
            assert (receipt.converted, receipt.currency, receipt.available) == (None, "ε", Fraction(epsilon))
            assert sum(step.delta for step in receipt.steps) == Fraction(delta)


@EVERY
@BOTH
@pytest.mark.parametrize("rho", ["0.1", "1/3", "1e-3", "7.000000000000000000001"])
def test_it_spends_all_of_rho_where_it_takes_it(mechanism, neighbours, rho):
    if mechanism.key == "stability_histogram":
        with pytest.raises(BudgetError, match="takes an ApproxBudget"):
            made(mechanism, trips_of(200), ZcdpBudget(rho), neighbours=neighbours)
        return
    receipt = made(mechanism, trips_of(200), ZcdpBudget(rho), neighbours=neighbours).receipt
    assert receipt.spent == receipt.total == ZcdpBudget(rho)
    assert (receipt.converted, receipt.conversion, receipt.currency) == (None, None, "ρ")
    assert checked_steps(receipt) == Fraction(rho)


@EVERY
@pytest.mark.parametrize("trips", [0, 1, 1000])
@pytest.mark.parametrize("entropy", [Entropy.system(), Entropy.seeded(2)], ids=["system", "seeded"])
def test_it_works_on_no_one_and_a_thousand_trips(mechanism, trips, entropy):
    trip_counts = trips_of(trips)
    release = mechanism().release(trip_counts, BUDGET, entropy)
    assert (release.mechanism, release.settings, release.simulation) == (mechanism.key, mechanism().chosen(), entropy.simulation)
    assert repr(release).startswith(f"TripRelease({mechanism.key}, ")
    assert ("SIMULATION: not private" in repr(release)) == entropy.simulation
    assert release.tree.origins == release.tree.destinations == trip_counts.regions
    assert len(release.stages) == release.tree.height + 1 == 5
    for stage, at in enumerate(release.stages):
        assert len(at.origin) == len(at.destination) == len(at.count) == len(at.noisy) <= release.tree.size(stage)
        assert len(set(zip(at.origin.tolist(), at.destination.tolist(), strict=True))) == len(at.count)
        assert at.count.dtype == at.noisy.dtype == np.int64
        for places, level in zip((at.origin, at.destination), release.tree.levels(stage), strict=True):
            assert 0 <= places.min(initial=0) <= places.max(initial=0) < trip_counts.regions.size(level)
        assert (at.count != 0).all()
        assert len(release.stage(stage)) == len(at.count)
        assert np.isfinite(release.stage_stddev(stage)).all()


@EVERY
def test_the_same_seed_gives_the_same_release_and_another_seed_or_a_second_draw_another(mechanism):
    entropy = Entropy.seeded(4)
    one, other, same, third = (
        mechanism().release(trips_of(3000), BUDGET, each) for each in (entropy, entropy, *map(Entropy.seeded, (4, 5)))
    )
    assert (numbers(one), one.receipt) == (numbers(same), same.receipt)
    assert numbers(one) not in (numbers(other), numbers(third))


@EVERY
def test_it_leaves_its_input_alone(mechanism):
    trips = trips_of(3000)
    before = [part.copy() for part in (trips.origin, trips.destination, trips.count)]
    release = made(mechanism, trips, HUGE)
    for at in release.stages:
        for part in (at.count, at.noisy, at.origin, at.destination):
            if part.flags.writeable:
                part[:] = -1
    for part, copy in zip((trips.origin, trips.destination, trips.count), before, strict=True):
        np.testing.assert_array_equal(part, copy)


FRAMES = {
    "one level": (regular(5), None),
    "two levels": (regular(3, 4), None),
    "eight levels": (random_regions(np.random.default_rng(8), 8, 2), None),
    "one region": (from_parents([[0]]), None),
    "one region per level": (from_parents([[0], [0], [0]]), None),
    "two geographies": (regular(3, 2, prefix="from "), regular(2, 5, prefix="to ")),
    "one origin": (from_parents([[0], [0]]), random_regions(np.random.default_rng(3), 2, 5)),
}


@EVERY
@BOTH
@pytest.mark.parametrize("frame", FRAMES)
def test_a_huge_budget_gives_the_truth_at_every_stage_of_every_frame(mechanism, neighbours, frame):
    origins, destinations = FRAMES[frame]
    trips = random_trips(np.random.default_rng(7), origins, destinations, pairs=60)
    trips = replace(trips, count=trips.count + 1)
    release = made(mechanism, trips, HUGE, neighbours=neighbours)
    for stage in range(release.tree.height + 1):
        assert released_at(release, stage) == sums_between(trips, release.tree.levels(stage))


@EVERY
@BOTH
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("trips", [0, 5000])
def test_it_adds_up_from_stage_to_stage_on_every_frame(mechanism, neighbours, frame, trips):
    origins, destinations = FRAMES[frame]
    trip_counts = random_trips(np.random.default_rng(8), origins, destinations, pairs=trips // 50)
    release = made(mechanism, trip_counts, ApproxBudget(1, "1e-3"), neighbours=neighbours)
    gaps = release.inconsistencies()
    assert gaps["mismatches"].sum() == gaps["largest_gap"].sum() == 0
    assert len(gaps) == release.tree.height
    if mechanism.key != "flat_gaussian":
        assert all((at.count > 0).all() for at in release.stages)


@EVERY
@BOTH
def test_the_receipt_names_the_unit_the_neighbours_and_what_is_not_protected(mechanism, neighbours):
    receipt = made(mechanism, trips_of(1234), neighbours=neighbours).receipt
    assert (receipt.unit, receipt.contributions) == ("trip", 1)
    assert receipt.neighbours == ("replace one" if neighbours == "bounded" else "add or remove one")
    text = "; ".join(receipt.unprotected)
    assert "regions" in text
    assert "settings" in text
    assert ("number of trips" in text) == (neighbours == "bounded")
    exact_total = mechanism.key in ("top_down", "fitted_tree")
    assert ("1,234" in text) == (neighbours == "bounded" and exact_total), "only these publish the total"


@EVERY
def test_under_add_remove_no_word_of_the_release_depends_on_the_number_of_trips(mechanism):
    few, many = (made(mechanism, trips_of(number), neighbours="add_remove") for number in (900, 1000))
    assert (few.steps, few.settings, few.approximate) == (many.steps, many.settings, many.approximate)
    assert replace(few.receipt, steps=many.receipt.steps) == many.receipt
    for one, other in zip(few.receipt.steps, many.receipt.steps, strict=True):
        assert replace(one, counts=other.counts) == other


@EVERY
def test_every_choice_of_a_setting_makes_a_release_that_spends_its_budget(mechanism):
    for name, choice in [(rule.name, choice) for rule in mechanism.rules() for choice in rule.choices if choice != "custom"]:
        release = made(mechanism, trips_of(500, 1), **{name: choice})
        assert release.settings[name] == choice
        assert release.receipt.spent == BUDGET


@EVERY
def test_other_arguments_than_trips_the_right_budget_and_a_stream_are_refused(mechanism):
    for budget in (PureBudget(1), 0.5, None, "1"):
        with pytest.raises(BudgetError, match=r"takes an ApproxBudget\(epsilon, delta\)") as refusal:
            made(mechanism, trips_of(10), budget)
        assert mechanism.title in str(refusal.value)
        assert type(budget).__name__ in str(refusal.value)
    with pytest.raises(BudgetError, match="delta = 0"):
        made(mechanism, trips_of(10), ApproxBudget(1, 0))
    with pytest.raises(SettingError, match=r"Entropy\.system"):
        mechanism().release(trips_of(10), BUDGET, 7)
    with pytest.raises(InputError, match="TripCounts"):
        mechanism().release(np.ones((4, 4)), BUDGET, Entropy.seeded(1))


@EVERY
def test_shares_are_parts_of_one_and_checks_need_no_trips(mechanism):
    for origins, _ in FRAMES.values():
        shares = mechanism().shares(origins)
        assert sum(part.share for part in shares) == pytest.approx(1)
        assert all(part.label for part in shares)
        mechanism().check(origins)
