"""A release of trips answers: any pair of regions at any two levels, spreads, intervals, consistency, refusals."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpviz.errors import DomainError, RefusedError
from dpviz.mechanisms import FittedTree, FlatGaussian, StabilityHistogram, TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import PRIVATE, SIMULATION
from dpviz.release.trip_release import TripRelease, sum_pairs
from tests.trip_cases import children_of, random_regions, random_trips, regular, released_at, sums_between, trip_counts_of, trips_of

BUDGET, RHO = ApproxBudget(2, "1e-3"), ZcdpBudget("0.05")
MECHANISMS = {
    "top_down": TopDown(),
    "top_down_origin": TopDown(tree="origin", neighbours="add_remove"),
    "flat_gaussian": FlatGaussian(),
    "stability_histogram": StabilityHistogram(),
}
EVERY = pytest.mark.parametrize("mechanism", MECHANISMS)


def released(mechanism: str, seed: int = 1, depth: int = 3) -> TripRelease:
    rng = np.random.default_rng(seed)
    trips = random_trips(rng, random_regions(rng, depth, 3, "from "), random_regions(rng, depth, 4, "to "))
    return MECHANISMS[mechanism].release(trips, BUDGET, Entropy.seeded(seed))


def every_pair(tree, a: int, b: int):
    """Places and ids of all pairs of regions of two levels."""
    o, d = np.indices((tree.origins.size(a), tree.destinations.size(b))).reshape(2, -1)
    return o, d, (tree.origins.ids_of(a)[o], tree.destinations.ids_of(b)[d])


@EVERY
@pytest.mark.parametrize("seed", range(2))
def test_answers_between_any_two_levels_are_sums_of_the_finest_pairs(mechanism, seed):
    release = released(mechanism, seed)
    at, tree = release.stages[-1], release.tree
    finest = SimpleNamespace(regions=tree.origins, ends=tree.destinations, origin=at.origin, destination=at.destination, count=at.count)
    for a, b in product(range(4), repeat=2):
        o, d, ids = every_pair(tree, a, b)
        sums = sums_between(finest, (a, b))
        answer = release.answer(*ids, levels=(a, b))
        assert answer.dtype == np.int64
        assert answer.tolist() == [sums.get(pair, 0) for pair in zip(o, d, strict=True)]
        counts, stddev = release.answer(*ids, levels=(a, b), spread=True)
        assert counts.tolist() == answer.tolist()
        assert np.isfinite(stddev).all()


@EVERY
def test_stages_are_tables_in_the_order_of_places_and_levels_are_stages_by_number_or_name(mechanism):
    release = released(mechanism)
    tree = release.tree
    for stage in range(7):
        a, b = tree.levels(stage)
        table = release.stage(stage)
        numbers = ["count", "count_noisy", "stddev", "ci_low", "ci_high", "all_low", "all_high"]
        assert table.columns.tolist() == ["origin", "destination", *numbers, "status"]
        origin, destination = tree.origins.find(table["origin"], a), tree.destinations.find(table["destination"], b)
        assert min(origin.min(), destination.min()) >= 0
        assert (np.diff(origin.astype(np.int64) * 10**6 + destination) > 0).all()
        assert sorted(table["stddev"]) == sorted(release.stage_stddev(stage))
        np.testing.assert_array_equal(release.answer(table["origin"], table["destination"], levels=(a, b)), table["count"])
    for level in range(1, 4):
        table = release.to_frame(level)
        pd.testing.assert_frame_equal(table, release.to_frame(f"level {level}"))
        pd.testing.assert_frame_equal(table, release.stage(2 * level))
        assert table["stddev"].tolist() == release.stddev(level).tolist()
        assert table["count"].ne(0).all()
        first = table.iloc[:1]
        answer = release.answer(first["origin"], first["destination"], levels=(f"level {level}", level))
        assert answer.tolist() == first["count"].tolist()
    pd.testing.assert_frame_equal(release.to_frame(), release.to_frame(3))
    assert release.stddev().tolist() == release.stddev(3).tolist()
    assert release.to_frame(0)[["origin", "destination"]].to_numpy().tolist() == [["all", "all"]]
    assert release.answer("all", "all", levels=(0, 0)).tolist() == release.to_frame(0)["count"].tolist()
    assert release.answer([], []).tolist() == []


def test_what_does_not_exist_is_refused():
    release = released("top_down")
    for stage in (-1, 7):
        with pytest.raises(DomainError, match="stages 0 to 6"):
            release.stage(stage)
    for level in (-1, 4, "county", 1.5, True):
        with pytest.raises(DomainError, match="0 to 3, or level 1, level 2, level 3"):
            release.to_frame(level)
    for origins, ends in ((["from c0", "from c1"], ["to c0"]), ([["from c0"]], [["to c0"]])):
        with pytest.raises(DomainError, match="same length"):
            release.answer(origins, ends)
    for origin, levels in (("nowhere", None), ("from c0", (2, 3)), ("to c0", None), (None, None)):
        with pytest.raises(DomainError, match="not a region of the given level"):
            release.answer([origin], ["to c0"], levels=levels)


@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
def test_spreads_of_the_flat_gaussian_add_the_variances_of_all_pairs_of_leaves(neighbours):
    rng = np.random.default_rng(4)
    trips = random_trips(rng, random_regions(rng, 2, 3), random_regions(rng, 2, 4))
    release = FlatGaussian(neighbours=neighbours).release(trips, RHO, Entropy.seeded(0))
    assert release.approximate is None
    for a, b in product(range(3), repeat=2):
        o, d, ids = every_pair(release.tree, a, b)
        inside = release.tree.origins.leaf_count(a)[o] * release.tree.destinations.leaf_count(b)[d]
        assert release.answer(*ids, levels=(a, b), spread=True)[1] ** 2 == pytest.approx(inside * release.stages[-1].variance)


def slow_variance(release: TripRelease, levels: tuple[int, int], pair: tuple[int, int]) -> float:
    """Of the stage with the least: its variance times its measured numbers inside a pair, one by one."""
    tree, found, single, measured = release.tree, [], [], [(0, 0)]
    for stage, at in enumerate(release.stages):
        a, b = tree.levels(stage)
        if a >= levels[0] and b >= levels[1] and np.isfinite(at.variance):
            up = tree.origins.ancestors(levels[0], a), tree.destinations.ancestors(levels[1], b)
            inside = sum((up[0][o], up[1][d]) == pair for o, d in measured)
            single.append(at.variance)
            found += [at.variance * inside] * (inside > 0)
        if stage < tree.height:
            measured = [child for parent in released_at(release, stage) for child in children_of(tree, stage + 1, parent)]
    return min(found, default=min(single))


@pytest.mark.parametrize("mechanism", ["top_down", "top_down_origin"])
@pytest.mark.parametrize("seed", range(2))
def test_spreads_of_top_down_are_those_of_the_best_stages_measured_numbers_one_by_one(mechanism, seed):
    release = released(mechanism, seed, depth=2)
    assert "best single level" in release.approximate
    for a, b in product(range(3), repeat=2):
        o, d, ids = every_pair(release.tree, a, b)
        expected = [slow_variance(release, (a, b), pair) for pair in zip(o, d, strict=True)]
        assert release.answer(*ids, levels=(a, b), spread=True)[1] ** 2 == pytest.approx(expected)


@pytest.mark.parametrize("mechanism", [TopDown(), TopDown(tree="origin"), TopDown(neighbours="add_remove"), FlatGaussian()])
@pytest.mark.parametrize("rho", ["0.5", "0.005"])
def test_intervals_around_measured_numbers_cover_at_least_95_percent_where_no_count_is_small(rho, mechanism):
    trips = trip_counts_of(regular(3, 3), dict.fromkeys(product(range(9), repeat=2), 5000))
    inside, number = np.zeros(5), 40 * 3 ** np.arange(5)
    for entropy in Entropy.seeded(3).spawn(40):
        release = mechanism.release(trips, ZcdpBudget(rho), entropy)
        for stage, pairs in enumerate((1, 3, 9, 27, 81)):
            table, true = release.stage(stage), 81 * 5000 / pairs
            assert len(table) == pairs
            inside[stage] += ((table["ci_low"] <= true) & (true <= table["ci_high"])).sum()
    assert (inside / number > 0.95 - 4 * (0.0475 / number) ** 0.5).all()
    assert (inside / number < 0.995)[3:].all()


def gaps_of(release: TripRelease, stage: int, **parts) -> tuple[list[int], list[int]]:
    """Mismatches and largest gaps, stage by stage, of a release of which one stage has other parts."""
    stages = list(release.stages)
    stages[stage] = replace(stages[stage], **parts)
    gaps = replace(release, stages=tuple(stages)).inconsistencies()
    return gaps["mismatches"].tolist(), gaps["largest_gap"].tolist()


@EVERY
def test_nothing_is_inconsistent_until_a_number_or_a_missing_parent_is_planted(mechanism):
    release = released(mechanism, 2)
    gaps = release.inconsistencies()
    assert gaps["stage"].tolist() == list(range(6))
    assert gaps["between"].tolist() == [release.tree.title(stage) for stage in range(6)]
    assert gaps["pairs"].tolist() == [len(at.count) for at in release.stages[:-1]]
    assert gaps_of(release, 0) == ([0] * 6, [0] * 6)
    count = release.stages[3].count.copy()
    count[1] += 5
    assert gaps_of(release, 3, count=count) == ([0, 0, 1, 1, 0, 0], [0, 0, 5, 5, 0, 0])
    at = release.stages[4]
    rest, lost = np.arange(len(at.count)) != 2, abs(int(at.count[2]))
    missing = {name: getattr(at, name)[rest] for name in ("origin", "destination", "count", "noisy")}
    assert gaps_of(release, 4, **missing) == ([0, 0, 0, 1, 1, 0], [0, 0, 0, lost, lost, 0])


LISTS = {
    "flat": FlatGaussian(threshold=5),
    "fitted": FittedTree(false_discovery=0.05, accounting="tight"),
    "fitted, origins first": FittedTree(false_discovery=0.05, accounting="tight", tree="origin"),
}


@pytest.mark.parametrize("mechanism", LISTS.values(), ids=LISTS)
def test_the_pairs_of_a_list_and_the_rest_add_up_at_every_pair_of_levels(mechanism):
    release = mechanism.release(random_trips(np.random.default_rng(1), regular(3, 4)), RHO, Entropy.seeded(1))
    leaves = released_at(release, release.tree.height)
    for origin, destination in product(range(3), repeat=2):
        if (origin, destination) == (2, 2):
            continue
        found, rest = release.sums(origin, destination), release.unlisted_trips(origin, destination)
        above = dict.fromkeys(product(range(release.tree.origins.size(origin)), range(release.tree.destinations.size(destination))), 0)
        for (a, b), count in leaves.items():
            above[release.tree.origins.ancestors(origin)[a], release.tree.destinations.ancestors(destination)[b]] += count
        pairs = np.array(list(above), np.int32).T
        assert (found.at(*pairs) - rest.at(*pairs)).tolist() == list(above.values())
        assert rest.count.sum() == release.unlisted_trips(0, 0).count.sum() != 0
    gaps = release.inconsistencies()
    assert gaps["rest"].tolist() == [0, 0, 0, release.unlisted_trips(0, 0).count[0]]
    assert gaps["mismatches"].tolist() == [0] * 4
    changed = replace(release, half_step_sums=replace(release.half_step_sums, count=release.half_step_sums.count + 1))
    assert (changed.inconsistencies()["mismatches"] > 0).tolist() == [False, False, False, True]
    with pytest.raises(DomainError, match="coarser level"):
        release.unlisted_trips(2, 2)
    with pytest.raises(DomainError, match="Levels are"):
        release.unlisted_trips(4, 0)
    assert release.unlisted_trips("level 1", 1).count.tolist() == release.unlisted_trips(1, 1).count.tolist()
    with pytest.raises(DomainError, match="indices"):
        release.is_unlisted((2, 2), ["c0"], ["c1"])


@pytest.mark.parametrize("mechanism", LISTS.values(), ids=LISTS)
def test_a_pair_that_is_not_listed_has_no_interval_and_a_released_pair_has_that_of_its_stage(mechanism):
    release = mechanism.release(random_trips(np.random.default_rng(1), regular(3, 4)), RHO, Entropy.seeded(1))
    for stage in range(release.tree.height + 1):
        levels = release.tree.levels(stage)
        table = release.stage(stage)
        ends = release.answer_interval(table["origin"], table["destination"], levels=levels)
        if np.isfinite(release.stages[stage].variance):
            assert [end.tolist() for end in ends] == [table["ci_low"].tolist(), table["ci_high"].tolist()]
        o, d, ids = every_pair(release.tree, *levels)
        count, stddev = release.answer(*ids, levels=levels, spread=True)
        unlisted = release.is_unlisted(levels, o, d)
        assert (np.isnan(stddev) == unlisted).all()
        single, joint = (release.answer_interval(*ids, levels=levels, joint=joint) for joint in (False, True))
        assert all((np.isnan(end) == unlisted).all() for end in single)
        assert (np.isnan(joint[0]) | ((joint[0] <= single[0]) & (joint[1] >= single[1]))).all()
        assert unlisted.tolist() == ((count == 0) & (stage == release.tree.height)).tolist()


@pytest.mark.parametrize(("entropy", "status"), [(Entropy.seeded(1), SIMULATION), (Entropy.system(), PRIVATE)], ids=["seeded", "system"])
def test_every_frame_states_its_status_also_without_rows_and_a_simulation_must_not_be_published(entropy, status):
    release = TopDown().release(trips_of(500, 2), BUDGET, entropy)
    for frame in (release.to_frame(), *map(release.stage, range(5)), release.inconsistencies()):
        assert set(frame["status"]) == {status}
    assert "status" in TopDown().release(trips_of(0, 2), BUDGET, entropy).to_frame(2).columns
    with nullcontext() if status == PRIVATE else pytest.raises(RefusedError, match="simulation must not be published"):
        release.refuse_unpublishable()


def test_pair_sums_add_up_and_are_found_again_also_on_a_frame_too_wide_for_32_bits():
    rng = np.random.default_rng(1)
    origin, destination = rng.integers(0, 7, (2, 200)).astype(np.int32)
    count = rng.integers(-10, 10**12, 200)
    slow = pd.DataFrame({"o": origin, "d": destination, "c": count}).groupby(["o", "d"])["c"].sum()
    sums = sum_pairs(origin, destination, count, 7)
    assert list(zip(sums.origin.tolist(), sums.destination.tolist(), strict=True)) == slow.index.tolist()
    assert sums.count.tolist() == slow.tolist()
    every = np.indices((7, 7)).reshape(2, -1).astype(np.int32)
    assert sums.at(*every).tolist() == [slow.get(pair, 0) for pair in product(range(7), repeat=2)]
    assert sum_pairs(origin[:0], origin[:0], count[:0], 5).at(*every[:, :2]).tolist() == [0, 0]
    big = np.array([2**24 - 1, 0], np.int32)
    sums = sum_pairs(big, big, np.array([3, 4]), 2**24)
    assert sums.origin.tolist() == sums.destination.tolist() == [0, 2**24 - 1]
    assert sums.at(big, big).tolist() == [3, 4]
