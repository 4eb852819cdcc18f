"""What people do today: each method does what it says, exactly, and one person's difference is what it gives away."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import DomainError
from dpviz.mechanisms import (
    JitteredPoints,
    MergedAreas,
    MergedCells,
    MergedTrips,
    RoundedAreas,
    RoundedCounts,
    RoundedTrips,
    SuppressedAreas,
    SuppressedCounts,
    SuppressedTrips,
)
from dpviz.mechanisms.contrasts import PUBLISHED, SUMMED, round_counts
from dpviz.mechanisms.points.moved import MOST_MOVED
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from dpviz.space.mask import CellMask
from tests.area_cases import areas_of
from tests.laws import SEEDED, p_of_counts
from tests.trip_cases import random_trips, regular, trip_counts_of

MATRIX = np.random.default_rng(3).poisson(3, (16, 16)) * (np.random.default_rng(4).random((16, 16)) < 0.7)
POINTS = PointCounts.from_matrix(MATRIX)
FLOWS = random_trips(np.random.default_rng(5), regular(3, 3), most=40, pairs=60)


def released(mechanism, data=POINTS, seed=1):
    return mechanism.release(data, PureBudget(1), Entropy.seeded(seed))


def true_counts(release, points=POINTS):
    return release.tree.sums(points.column, points.row, points.count)


def test_suppression_leaves_out_small_counts_of_every_level_and_shows_all_others_and_empty_cells_exactly():
    release = released(SuppressedCounts(side=16, threshold=5))
    truth = true_counts(release)
    small = (truth > 0) & (truth < 5)
    assert small.any()
    np.testing.assert_array_equal(np.isnan(release.noisy), small)
    np.testing.assert_array_equal(release.count, np.where(small, 0, truth))


def test_a_total_minus_its_other_parts_is_a_suppressed_count_and_two_tables_differ_by_one_person():
    release = released(SuppressedCounts(side=16, threshold=5))
    tree, truth = release.tree, true_counts(release)
    hidden = np.flatnonzero(np.isnan(release.noisy) & (tree.children == 0))
    parents = tree.parent[hidden]
    alone = next(node for node in hidden if (parents == tree.parent[node]).sum() == 1 and release.count[tree.parent[node]] > 0)
    siblings = np.flatnonzero((tree.parent == tree.parent[alone]) & (np.arange(len(tree)) != alone))
    assert release.count[tree.parent[alone]] - release.count[siblings].sum() == truth[alone]
    with_one_more = MATRIX + (np.arange(256).reshape(16, 16) == 17)
    after = released(SuppressedCounts(side=16, threshold=5), PointCounts.from_matrix(with_one_more))
    assert after.count[0] - release.count[0] == 1


@pytest.mark.parametrize("mechanism", [SuppressedCounts(side=16, totals=SUMMED), RoundedCounts(side=16, totals=SUMMED)])
def test_summed_totals_are_those_of_the_published_cells(mechanism):
    release = released(mechanism)
    for depth in range(release.tree.height):
        below = release.count[release.tree.at_depth(depth + 1)]
        np.testing.assert_array_equal(release.count[release.tree.at_depth(depth)], release.tree.sum_children(depth, below))
    assert np.isnan(release.noisy[release.tree.children > 0]).all()


@pytest.mark.parametrize("base", [3, 5])
def test_random_rounding_is_unbiased_with_exact_chances_and_nearest_rounding_is_near(base):
    for count in range(2 * base):
        rounded = round_counts(np.full(3000, count), base, "random", Entropy.seeded(count))
        up = np.array([np.count_nonzero(rounded > count - count % base), np.count_nonzero(rounded == count - count % base)])
        share = np.array([count % base, base - count % base]) / base
        assert up.sum() == 3000
        assert p_of_counts(up, share) > SEEDED if count % base else up[0] == 0
    counts = np.arange(1000)
    assert np.abs(round_counts(counts, base, "nearest", Entropy.seeded(1)) - counts).max() == base // 2
    release = released(RoundedCounts(side=16, base=base))
    assert (release.count % base == 0).all()
    assert np.abs(release.count - true_counts(release)).max() < base


def test_rounding_with_another_chance_is_rejected():
    rounded = round_counts(np.full(3000, 4), 3, "random", Entropy.seeded(1))
    up = np.array([np.count_nonzero(rounded == 6), np.count_nonzero(rounded == 3)])
    assert p_of_counts(up, np.array([1, 2]) / 3) > SEEDED
    assert p_of_counts(up, np.array([1, 1]) / 2) < SEEDED


def test_merged_cells_have_nobody_or_k_and_only_small_quarters_are_merged():
    release = released(MergedCells(k=12, height=4))
    tree, truth = release.tree, true_counts(release)
    np.testing.assert_array_equal(release.count, truth)
    leaves = truth[tree.leaves]
    assert ((leaves == 0) | (leaves >= 12)).all()
    assert tree.cells[tree.leaves].sum() == 256
    assert len(leaves) > 4
    for node in tree.leaves[tree.depth[tree.leaves] < 4]:
        west, south, east, north = tree.rectangles(np.array([node]))[0]
        half = (east - west) // 2
        quarters = MATRIX[south:north, west:east].reshape(2, half, 2, half).sum(axis=(1, 3))
        assert ((quarters > 0) & (quarters < 12)).any()
    few = released(MergedCells(k=5), PointCounts.from_matrix(np.eye(2, dtype=int)))
    assert (few.count.tolist(), len(few.tree)) == ([0.0], 1)


@pytest.mark.parametrize("crs", [None, "EPSG:4326"])
def test_jittered_points_stay_within_their_circle_fill_it_evenly_and_keep_their_number(crs):
    bounds = (0, 0, 1024, 1024) if crs is None else (4.0, 60.0, 4.02, 60.01)
    domain = Domain(bounds=bounds, crs=crs, order=10)
    middle = [(bounds[0] + bounds[2]) / 2], [(bounds[1] + bounds[3]) / 2]
    points = PointCounts.from_xy(*middle, domain=domain, count=[4000])
    radius = 100.0 if crs is None else 200.0
    column, row = JitteredPoints(radius=radius).move(points, Entropy.seeded(1))
    width, height = (1.0, 1.0) if crs is None else (0.02 * 55_800 / 1024, 0.01 * 111_412 / 1024)
    away = np.hypot((column - 512) * width, (row - 512) * height)
    assert away.max() < radius + max(width, height)
    ring = np.bincount((away > radius * np.sqrt(0.5)).astype(int), minlength=2)
    assert abs(ring[0] / 4000 - 0.5) < 0.05
    at_the_edge = PointCounts.from_xy([bounds[0]], [bounds[1]], domain=domain, count=[100])
    assert released(JitteredPoints(radius=radius), at_the_edge).count[0] == 100
    crowd = PointCounts.from_xy(*middle, domain=domain, count=[MOST_MOVED + 1])
    with pytest.raises(DomainError, match="one by one"):
        released(JitteredPoints(), crowd)


def test_grids_take_a_mask_and_moved_points_do_not():
    mask = CellMask.from_open(np.triu(np.ones((16, 16), bool)))
    masked = PointCounts.from_matrix(MATRIX, domain=Domain(bounds=(0, 0, 16, 16), crs=None, order=4, mask=mask))
    release = released(SuppressedCounts(side=16), masked)
    assert release.count[0] == masked.count.sum()
    with pytest.raises(DomainError, match="cannot take a study area into account"):
        released(JitteredPoints(), masked)


def test_suppressed_and_rounded_trips_are_those_of_each_stage():
    exact = released(SuppressedTrips(threshold=2), FLOWS)
    assert [int(stage.count.sum()) for stage in exact.stages[:1]] == [FLOWS.count.sum()]
    for totals in (PUBLISHED, SUMMED):
        release = released(SuppressedTrips(threshold=9, totals=totals), FLOWS)
        assert release.stages[-1].count.min() >= 9
        assert (release.stages[0].count.sum() == FLOWS.count.sum()) == (totals == PUBLISHED)
        rounded = released(RoundedTrips(base=5, totals=totals), FLOWS)
        assert all((stage.count % 5 == 0).all() for stage in rounded.stages)
        assert (rounded.inconsistencies()["mismatches"].sum() == 0) == (totals == SUMMED)


@pytest.mark.parametrize("k", [2, 8, 30])
def test_of_merged_trips_every_number_and_every_rest_is_zero_or_at_least_k(k):
    release = released(MergedTrips(k=k), FLOWS)
    for stage in range(release.tree.height):
        assert release.stages[stage].count.min() >= k
        levels = release.tree.levels(stage)
        shown, below = release._sum_pairs(stage, levels, release.stages[stage].count), release.stages[stage + 1]
        parts = release._sum_pairs(stage + 1, levels, below.count)
        rest = shown.count - parts.at(shown.origin, shown.destination)
        assert ((rest == 0) | (rest >= k)).all()
        assert parts.count.sum() + rest.sum() == FLOWS.count.sum() if stage == 0 else True
    true = dict(zip(zip(FLOWS.origin.tolist(), FLOWS.destination.tolist(), strict=True), FLOWS.count.tolist(), strict=True))
    leaves = release.stages[-1]
    pairs = zip(leaves.origin.tolist(), leaves.destination.tolist(), leaves.count.tolist(), strict=True)
    assert all(true[origin, destination] == count for origin, destination, count in pairs)


def test_fewer_trips_than_k_are_not_shown_at_all_and_no_trips_are_none():
    for trips in ({(0, 1): 3}, {}):
        release = released(MergedTrips(k=5), trip_counts_of(regular(2, 2), trips))
        assert [len(stage.count) for stage in release.stages] == [0] * 5


AREAS = areas_of(regular(3, 4, 5), np.random.default_rng(6).poisson(4, 60) * (np.random.default_rng(7).random(60) < 0.6))
TRUE = np.concatenate(AREAS.level_counts())


def test_suppressed_areas_show_all_but_small_counts_and_a_total_gives_a_missing_one_away():
    release = released(SuppressedAreas(threshold=5), AREAS)
    small = (TRUE > 0) & (TRUE < 5)
    assert small.any()
    np.testing.assert_array_equal(np.isnan(release.noisy), small)
    np.testing.assert_array_equal(release.count, np.where(small, 0, TRUE))
    regions = AREAS.regions.hierarchy
    missing = np.bincount(regions.parent[1:][small[1:]], minlength=len(TRUE))
    alone = next(node for node in np.flatnonzero(small) if missing[regions.parent[node]] == 1 and not small[regions.parent[node]])
    parts = np.flatnonzero(regions.parent == regions.parent[alone])
    assert release.count[regions.parent[alone]] - release.count[parts].sum() == TRUE[alone]


@pytest.mark.parametrize("base", [3, 5])
def test_rounded_areas_are_multiples_near_the_truth_and_do_not_add_up_unless_they_are_summed(base):
    release = released(RoundedAreas(base=base), AREAS)
    assert (release.count % base == 0).all()
    assert np.abs(release.count - TRUE).max() < base
    for mechanism in (SuppressedAreas(totals=SUMMED), RoundedAreas(base=base, totals=SUMMED)):
        summed, regions = released(mechanism, AREAS), AREAS.regions.hierarchy
        for depth in range(regions.height):
            below = summed.count[regions.at_depth(depth + 1)]
            np.testing.assert_array_equal(summed.count[regions.at_depth(depth)], regions.sum_children(depth, below))
        assert np.isnan(summed.noisy[regions.children > 0]).all()


@pytest.mark.parametrize("k", [2, 6, 15, 10**6])
def test_merged_areas_show_nobody_or_k_and_leave_no_smaller_rest(k):
    release, regions = released(MergedAreas(k=k), AREAS), AREAS.regions.hierarchy
    shown = ~np.isnan(release.noisy)
    np.testing.assert_array_equal(release.noisy[shown], TRUE[shown])
    assert ((release.count == 0) | (release.count >= k)).all()
    parts = np.bincount(regions.parent[1:], release.count[1:], minlength=len(TRUE))
    rest = (release.count - parts)[shown & (regions.children > 0)]
    assert ((rest == 0) | (rest >= k)).all()
    assert not (shown[1:] & ~shown[regions.parent[1:]]).any(), "what is merged is not divided further"
    assert shown.any() == (TRUE.sum() >= k)
