"""A release of regions by categories in some slots: the release of the regions alone, with the errors that any answer has."""

from itertools import product

import numpy as np
import pytest

from dpviz.errors import DomainError, InputError
from dpviz.evaluation.area_metrics import evaluate_areas
from dpviz.mechanisms import CrossTree
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from tests.cross_cases import cross_of, cross_records, true_cross

BUDGETS = [PureBudget("0.8"), ZcdpBudget("0.3")]


def made(areas, budget=BUDGETS[1], seed=1, **settings):
    return CrossTree(**{"split": "uniform", "slot_split": "uniform"} | settings).release(areas, budget, Entropy.seeded(seed))


def some_slots(areas):
    """All slots, a category of the coarser level, one slot, and slots that are no category."""
    part, slots = areas.categories.ids_of(1), areas.categories.ids_of(2)
    return [None, [part[0]], [slots[-1]], [slots[0], slots[-1], part[0]], []]


@pytest.mark.parametrize(("budget", "lean"), list(product(BUDGETS, [True, False])))
def test_regions_in_some_slots_have_the_answers_and_errors_of_the_whole_release(budget, lean):
    areas = cross_records(mean=40)
    release = made(areas, budget, lean=lean)
    for slots, level in product(some_slots(areas), (0, 1, 2)):
        alone, ids = release.in_slots(slots), areas.regions.ids_of(level).tolist()
        expected = release.answer(ids, level=level, slots=slots, spread=True)
        np.testing.assert_allclose(alone.count[alone.nodes(level)], expected[0], atol=1e-9)
        np.testing.assert_allclose(alone.stddev(level), expected[1], rtol=1e-9)
        np.testing.assert_allclose(
            alone.answer([ids[:2]], level=level, spread=True), release.answer([ids[:2]], level=level, slots=slots, spread=True)
        )
        for joint in (False, True):
            expected = release.answer_interval(ids, level=level, slots=slots, joint=joint)
            np.testing.assert_allclose(alone.interval(level, joint=joint), expected)


def test_what_was_measured_of_some_slots_is_their_category_or_else_their_sum():
    areas = cross_records(mean=40)
    release, (_, part, one, others, _) = made(areas), some_slots(areas)
    finest = release.slot_hierarchy.starts[2]
    for slots, columns in ((None, [0]), (part, [1]), (one, [len(release.slot_hierarchy) - 1])):
        alone = release.in_slots(slots)
        np.testing.assert_array_equal(alone.noisy, release.cross_noisy[:, columns[0]])
        depth = release.slot_hierarchy.depth[columns[0]]
        np.testing.assert_array_equal(alone.noise_variance, release.spread.noise[:, depth][release.hierarchy.depth])
    inside = finest + np.flatnonzero(areas.categories.mask_of(others))
    np.testing.assert_allclose(release.in_slots(others).noisy, release.cross_noisy[:, inside].sum(axis=1))
    alone = made(areas, slot_split="custom", slot_weights=(0, 0, 1)).in_slots(None)
    np.testing.assert_allclose(
        alone.noise_variance, release.categories.slots * made(areas, slot_split="custom", slot_weights=(0, 0, 1)).spread.noise[0, 2]
    )
    with pytest.raises(DomainError, match="not a category"):
        release.in_slots(["nowhere"])


def test_true_counts_in_some_slots_are_dense_sums_and_releases_are_compared_with_them():
    areas = cross_records(mean=1, unit="person", contributions=3, per_slot=1)
    truth, finest = true_cross(areas), areas.categories.hierarchy.starts[2]
    for slots in some_slots(areas):
        alone = areas.in_slots(slots)
        expected = truth[:, finest:] @ areas.categories.mask_of(slots)
        np.testing.assert_array_equal(np.concatenate(alone.level_counts()), expected)
        assert (alone.categories, alone.per_slot, alone.contributions) == (None, None, 3)
        assert evaluate_areas(made(areas).in_slots(slots), alone).truth[0][0] == expected[0]
    with pytest.raises(InputError, match="no categories"):
        alone.in_slots(None)


def test_a_profile_has_the_count_and_the_uncut_interval_of_each_category():
    areas = cross_records(mean=3)
    release, ids = made(areas), areas.regions.ids_of(2)[:2].tolist()
    for level in (1, 2):
        names = areas.categories.ids_of(level)
        count, low, high, centre = release.profile(ids, level=2, slot_level=level)
        exact = [release.answer([ids], level=2, slots=[name]) for name in names]
        np.testing.assert_allclose(count, np.ravel(exact))
        ends = np.array([release.answer_interval([ids], level=2, slots=[name]) for name in names])[:, :, 0]
        np.testing.assert_array_equal(np.maximum(np.floor(low), 0), ends[:, 0])
        np.testing.assert_array_equal(np.maximum(np.ceil(high), 0), ends[:, 1])
        np.testing.assert_allclose(centre, (low + high) / 2)
    assert low.min() < 0


def test_a_region_that_is_split_as_the_whole_is_seldom_looks_busier_or_quieter():
    """Every region has the same profile: an interval of its difference from the whole's share leaves out 0 in about 5 % of cases."""
    regions, categories = (cross_records().frame.regions, cross_records().frame.categories)
    areas = cross_of(regions, categories, 60 * np.outer(np.arange(1, regions.size(2) + 1), np.arange(1, categories.slots + 1)))
    part, misses = [str(categories.ids_of(1)[0])], []
    for seed in range(400):
        release = made(areas, seed=seed, lean=False)
        share, count, low, high = release.compare_with_whole(part)
        misses.append((low > 0) | (high < 0))
    assert 0.02 < np.mean(misses) < 0.08
    truth = true_cross(areas)
    assert share == pytest.approx(truth[0, 1] / truth[0, 0], rel=0.02)
    np.testing.assert_allclose(count, release.answer(regions.ids_of(2).tolist(), slots=part))
