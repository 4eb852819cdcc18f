"""TopDown against a slow Algorithm 1, its true counts pair by pair, what its settings do, and where its budget goes."""

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.data.trips import TripCounts
from dpviz.errors import BudgetError, SettingError
from dpviz.mechanisms import TopDown
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.trips import true_stages as stages_module
from dpviz.mechanisms.trips.true_stages import sum_true_stages
from dpviz.privacy.allocation import stage_weights
from dpviz.privacy.budget import GRAIN, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.false_positives import discovery_threshold, stddev_threshold
from dpviz.privacy.whole_numbers import nearest_whole_numbers
from dpviz.space.pair_tree import PairTree
from tests.often import often
from tests.space.nested import paths, regions_of
from tests.trip_cases import (
    children_of,
    random_regions,
    random_trips,
    recorded,
    regular,
    released_at,
    sums_between,
    trip_counts_of,
    trips_of,
)

RHO = ZcdpBudget("0.05")


def slow_stages(
    mechanism: TopDown, trip_counts: TripCounts, noise: list[int], variances: list[Fraction]
) -> list[dict[tuple[int, int], int]]:
    """Algorithm 1 (and 3), one node at a time: released pairs of every stage, with zeros dropped; `noise` is used up in order."""
    tree = PairTree(origins=trip_counts.regions, destinations=trip_counts.ends, first=mechanism.tree)
    left, total = iter(noise), int(trip_counts.count.sum())
    order = "ascending" if mechanism.lowered == "smallest" else "descending"
    if mechanism.neighbours == "add_remove":
        total = max(total + next(left), 0)
    stages = [{(0, 0): total} if total else {}]
    for stage in range(1, tree.height + 1):
        true, noisy = sums_between(trip_counts, tree.levels(stage)), {}
        for parent in stages[-1]:
            noisy[parent] = [(child, true.get(child, 0) + next(left)) for child in children_of(tree, stage, parent)]
        released: dict[tuple[int, int], int] = {}
        least = slow_threshold(mechanism, [value for family in noisy.values() for _, value in family], variances[stage])
        for parent, family in noisy.items():
            least_here = min(least, max(value for _, value in family))
            believed = [(child, value) for child, value in family if value >= least_here]
            values = np.array([value for _, value in believed], np.int64)
            found = nearest_whole_numbers(values, total=stages[-1][parent], distance=mechanism.optimiser, order=order)
            released |= {child: int(value) for (child, _), value in zip(believed, found, strict=True) if value}
        in_order = [child for family in noisy.values() for child, _ in family if child in released]
        stages.append({child: released[child] for child in in_order})
    assert next(left, None) is None
    return stages


def slow_threshold(mechanism: TopDown, noisy: list[int], variance: Fraction) -> float:
    if mechanism.dial:
        return stddev_threshold(variance, mechanism.dial)
    if mechanism.false_discovery is not None:
        return discovery_threshold(np.array(noisy, np.int64), variance, mechanism.false_discovery)
    return -np.inf


VARIANTS = {
    "default": TopDown(),
    "origins first": TopDown(tree="origin"),
    "add or remove": TopDown(neighbours="add_remove"),
    "least squares": TopDown(optimiser="euclidean"),
    "largest lowered": TopDown(lowered="largest", tree="origin"),
    "levels": TopDown(split="levels"),
    "dial": TopDown(dial=1.3),
    "false discovery": TopDown(false_discovery=0.3, tree="origin"),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", often(range(6), [1, 2, 5]))
def test_it_is_algorithm_1_node_by_node(monkeypatch, variant, seed):
    rng, mechanism = np.random.default_rng(seed), VARIANTS[variant]
    depth = 1 + seed % 3
    origins = random_regions(rng, depth, 4, "from ")
    destinations = random_regions(rng, depth, 3, "to ") if seed % 2 else None
    trip_counts = random_trips(rng, origins, destinations, most=60)
    noise = recorded(monkeypatch, measure, "discrete_gaussian")
    release = mechanism.release(trip_counts, RHO, Entropy.seeded(seed))
    assert release.tree.first == mechanism.tree
    steps, public = release.receipt.steps, mechanism.neighbours == "bounded"
    assert [at.measured for at in release.stages[public:]] == [step.counts for step in steps]
    variances = [Fraction(0)] * public + [step.scale for step in steps]
    for stage, released in enumerate(slow_stages(mechanism, trip_counts, noise, variances)):
        assert list(released_at(release, stage).items()) == list(released.items())
    assert len({int(at.count.sum()) for at in release.stages}) == 1
    if public:
        assert release.stages[0].count.tolist() == [trip_counts.count.sum()]


def test_a_dial_wins_over_an_aim_and_the_steps_say_which_was_used():
    thresholds = {"dial": 1.0, "false_discovery": 0.1}, {"dial": 1.0}, {"false_discovery": 0.1}, {}
    both, dial, aim, none = (TopDown(**each).release(trips_of(500), RHO, Entropy.seeded(1)) for each in thresholds)
    assert [released_at(both, stage) for stage in range(5)] == [released_at(dial, stage) for stage in range(5)]
    assert both.steps == dial.steps
    assert "1 standard deviations" in dial.steps[0]
    assert "0.1" in aim.steps[0]
    assert len(none.steps) == 2
    for release in (both, aim, none):
        assert "nearest whole consistent counts (chebyshev" in release.steps[-2]
        assert release.steps[-1] == "zeros dropped"


@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
@pytest.mark.parametrize("split", ["uniform", "levels", "custom"])
def test_stage_budgets_are_exact_shares_of_rho_and_the_last_stage_takes_the_remainder(neighbours, split):
    regions, first = regular(3, 2), 1 if neighbours == "bounded" else 0
    custom = tuple(range(1, 6 - first)) if split == "custom" else ()
    mechanism, rho = TopDown(neighbours=neighbours, split=split, weights=custom), Fraction("0.7000000000000001")
    release = mechanism.release(random_trips(np.random.default_rng(1), regions), ZcdpBudget(rho), Entropy.seeded(1))
    sizes = [release.tree.size(stage) for stage in range(first, 5)]
    parts = [Fraction(repr(weight)) for weight in stage_weights(split, sizes, custom=custom)]
    wanted = [rho * (GRAIN * part // sum(parts)) / GRAIN for part in parts]
    wanted[-1] += rho - sum(wanted)
    assert [step.amount for step in release.receipt.steps] == wanted
    assert [step.level for step in release.receipt.steps] == list(range(first, 5))
    assert sum(wanted) == rho
    assert release.stages[0].variance == pytest.approx(0 if first else float(release.receipt.steps[0].scale))


@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
@pytest.mark.parametrize("tree", ["destination", "origin"])
def test_shares_name_every_measured_stage_and_come_back_as_custom_weights(neighbours, tree):
    regions, mechanism = regular(3, 2), TopDown(neighbours=neighbours, tree=tree, split="levels")
    shares = mechanism.shares(regions)
    pairs = PairTree(origins=regions, destinations=regions, first=tree)
    assert [part.label for part in shares] == ["total"] * (neighbours == "add_remove") + [pairs.title(stage) for stage in range(1, 5)]
    assert sum(part.share for part in shares) == pytest.approx(1)
    again = mechanism.with_shares([part.share for part in shares])
    assert (again.split, again.neighbours, again.tree) == ("custom", neighbours, tree)
    assert [part.share for part in again.shares(regions)] == pytest.approx([part.share for part in shares])
    again.check(regions)
    assert min(mechanism.with_shares([0.0, *[1.0] * (len(shares) - 1)]).weights) > 0, "a stage keeps a little"


@pytest.mark.parametrize("weights", [(), (1, 1, 1), (1, 1, 1, 1, 1), (1, 1, 0, 1), (0.5, 0.2, 0.2, 0.2), (0, 0, 0, 0)])
def test_custom_weights_that_do_not_fit_are_refused_before_anything_is_spent(weights):
    mechanism = TopDown(split="custom", weights=weights)
    for refused in (mechanism.check, mechanism.shares):
        with pytest.raises(BudgetError, match=r"[Cc]ustom|add up"):
            refused(regular(2, 2))
    with pytest.raises(BudgetError, match=r"[Cc]ustom|add up"):
        mechanism.release(trips_of(10), RHO, Entropy.seeded(1))


def test_groups_too_large_for_the_solver_are_refused_before_anything_is_spent():
    for regions in (regular(100), regular(1, 65)):
        with pytest.raises(SettingError, match=r"solver.* at most 64 parts"):
            TopDown(optimiser="solver").check_data(trip_counts_of(regions, {(0, 0): 5}))


def check(trip_counts, first):
    """True counts of every stage against sums pair by pair; the place of each node in its parent, and the order."""
    tree, before = PairTree(origins=trip_counts.regions, destinations=trip_counts.ends, first=first), []
    stages = sum_true_stages(trip_counts, tree)
    assert len(stages) == tree.height + 1
    for number, stage in enumerate(stages):
        own = list(zip(stage.origin.tolist(), stage.destination.tolist(), strict=True))
        assert dict(zip(own, stage.count.tolist(), strict=True)) == sums_between(trip_counts, tree.levels(number))
        if number:
            key = list(zip(stage.parent.tolist(), stage.child.tolist(), strict=True))
            assert key == sorted(set(key)), "nodes stand in tree order"
            assert own == [children_of(tree, number, before[parent])[child] for parent, child in key]
        before = own


@st.composite
def trips(draw):
    """Trips between the leaves of one geography, or of two of the same depth."""
    origins = draw(paths(most_depth=3))
    regions, depth = regions_of(origins), len(origins[0])
    ends = regions if draw(st.booleans()) else regions_of(draw(paths(most_depth=3).filter(lambda rows: len(rows[0]) == depth)))
    pair = st.tuples(st.integers(0, regions.size(depth) - 1), st.integers(0, ends.size(depth) - 1))
    found = draw(st.dictionaries(pair, st.integers(1, 2**40), max_size=25))
    return trip_counts_of(regions, found, None if ends is regions else ends)


SIDES = ("destination", "origin")


@settings(max_examples=20, deadline=None, derandomize=True, database=None)
@given(trips(), st.sampled_from(SIDES))
@pytest.mark.parametrize("bits", [stages_module._KEY_BITS, -1], ids=["in one key", "in many keys"])
def test_true_counts_of_stages_are_sums_however_the_way_down_is_sorted(bits, trip_counts, first):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages_module, "_KEY_BITS", bits)
        check(trip_counts, first)


DEEP_AND_WIDE = {
    "wide": (lambda rng: regular(300), True),
    "two wide levels": (lambda rng: regular(40, 25), True),
    "deep": (lambda rng: random_regions(rng, 9, 2), True),
    "deep and wide": (lambda rng: lopsided(14, 33), False),
    "one wide leaf": (lambda rng: lopsided(8, 257), False),
}


@pytest.mark.parametrize("first", SIDES)
@pytest.mark.parametrize("name", DEEP_AND_WIDE)
def test_deep_and_wide_trees(name, first):
    rng, (make, packed) = np.random.default_rng(5), DEEP_AND_WIDE[name]
    regions = make(rng)
    leaves = regions.size(regions.depth)
    found = {(int(a), int(b)): int(n) for a, b, n in zip(*rng.integers(0, leaves, (2, 60)), rng.integers(1, 99, 60), strict=True)}
    trip_counts = trip_counts_of(regions, found | {(leaves - 1, leaves - 1): 7, (0, 0): 3})
    with mock.patch.object(np, "lexsort", wraps=np.lexsort) as sort:
        check(trip_counts, first)
    assert sort.called != packed, "several keys are sorted where one of 63 bits does not do"
    check(trip_counts_of(regions, {}), first)


def lopsided(depth, wide):
    """Each level has one region with many children, so that the way to a leaf takes many bits on every level."""
    rows = [[]]
    for level in range(depth):
        rows = [[*path, f"{level}.{place}.{k}"] for place, path in enumerate(rows) for k in range(wide if place == len(rows) - 1 else 1)]
    return regions_of(rows)


def test_counts_of_2_to_the_53_stay_exact():
    trip_counts = trip_counts_of(regular(2, 2), {(0, 0): 2**53 - 1, (3, 3): 1})
    stages = sum_true_stages(trip_counts, PairTree(origins=trip_counts.regions, destinations=trip_counts.regions))
    assert [stage.count.sum() for stage in stages] == [2**53] * 5
    assert stages[1].count.tolist() == [2**53 - 1, 1]
