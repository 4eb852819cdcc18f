"""Record matching: what survives blocking is what a look at every pair would find."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dpviz as dv
from dpviz.evaluation.matching import Blocking, block, guess_presence, made_up_holders
from dpviz.mechanisms import HilbertTree, Kdtree

DOMAIN = dv.Domain(bounds=(10.0, -5.0, 26.0, 3.0), crs=None, order=4)
MECHANISMS = {
    "quadtree, budget on leaves": dv.Quadtree(height=3, split="leaf"),
    "pruned quadtree": dv.Quadtree(height=4, prune=20),
    "grid that does not divide the lattice": dv.UniformGrid(side=7),
    "cells": dv.Identity(),
    "kd-tree": Kdtree(height=2, split="leaf"),
    "boxes that overlap": HilbertTree(height=3, split="leaf"),
}


def people(number, seed=3):
    rng = np.random.default_rng(seed)
    low, high = np.array(DOMAIN.bounds[:2]), np.array(DOMAIN.bounds[2:])
    return rng.uniform(low, high, (number, 2)) * [1, 0.5] + [0, rng.uniform(-2, 0)]


def cells(points):
    """One row per record: column and row."""
    return np.repeat(np.column_stack([points.column, points.row]), points.count, axis=0)


def slow(release, holders, threshold, margin):
    """Survivors, by looking at every pair of records."""

    @cache
    def block_of(column, row):
        leaf = int(release.tree.leaf_of(np.array([column]), np.array([row]))[0])
        return release.domain.coordinates(release.tree.rectangles(np.array([leaf])))[0], release.count[leaf] >= threshold

    def survives(a, b):
        (west, south, east, north), kept = block_of(*a)
        x, y = np.array(DOMAIN.bounds[:2]) + (b + 0.5) * DOMAIN.cell_size
        return kept and west - margin < x < east + margin and south - margin < y < north + margin

    first, second = cells(holders.first), cells(holders.second)
    survivors = sum(survives(a, b) for a in first for b in second)
    return survivors, len(first) * len(second), sum(survives(pair[:2], pair[2:]) for pair in holders.known)


@pytest.mark.parametrize("name", MECHANISMS)
def test_blocking_is_a_look_at_every_pair(name):
    for seed, (threshold, margin) in enumerate(((-np.inf, 0.0), (0.0, 0.3), (2.5, 1.1), (1e9, 0.3))):
        holders = made_up_holders(*people(40, seed).T, domain=DOMAIN, common=0.3, disagreement=0.4, seed=seed)
        release = MECHANISMS[name].release(holders.first, dv.PureBudget(2), dv.Entropy.seeded(5))
        found = block(release, holders, threshold=threshold, margin=margin)
        assert (found.survivors, found.pairs, found.found) == slow(release, holders, threshold, margin)
        assert found.kept == (release.count[release.tree.leaves] >= threshold).sum()
        assert (found.leaves, found.matches) == (len(release.tree.leaves), 12)


def test_a_higher_threshold_saves_work_and_costs_matches():
    holders = made_up_holders(*people(2_000).T, domain=DOMAIN, disagreement=0.1)
    release = dv.Quadtree(height=4, split="leaf").release(holders.first, dv.PureBudget(0.5), dv.Entropy.seeded(1))
    found = [block(release, holders, threshold=threshold, margin=0.6) for threshold in (-100, 2, 5, 10, 20)]
    reduction, recall = ([getattr(each, name) for each in found] for name in ("reduction", "recall"))
    assert reduction == sorted(reduction)
    assert recall == sorted(recall, reverse=True)
    assert (reduction[0] > 0.8, recall[0] > 0.98, recall[-1] < 0.9) == (True, True, True)
    everything = block(release, holders, threshold=-np.inf, margin=100)
    assert (everything.reduction, everything.recall) == (0, 1)


def test_padding_compares_what_was_released():
    holders = made_up_holders(*people(50).T, domain=DOMAIN)
    release = dv.Quadtree(height=2, split="leaf").release(holders.first, dv.PureBudget(1), dv.Entropy.seeded(2))
    fuller = replace(release, count=release.tree.sums(holders.first.column, holders.first.row, holders.first.count) + 0.5)
    plain, padded = block(fuller, holders), block(replace(fuller, count=fuller.count - 0.5), holders)
    assert padded.padded == padded.survivors == plain.survivors
    assert plain.padded == plain.survivors + holders.second.count.sum()


def test_people_known_to_both_are_dealt_to_both():
    x, y = people(1_000).T
    holders = made_up_holders(x, y, domain=DOMAIN, common=0.2)
    assert holders.first.domain == holders.second.domain == DOMAIN
    assert holders.first.count.sum() == holders.second.count.sum() == 600
    assert len(holders.known) == 200
    assert np.array_equal(holders.known[:, :2], holders.known[:, 2:])
    together = holders.first.blocks(4) + holders.second.blocks(4)
    np.subtract.at(together, (holders.known[:, 1], holders.known[:, 0]), 1)
    assert np.array_equal(together, dv.PointCounts.from_xy(x, y, domain=DOMAIN).blocks(4))


def test_disagreement_moves_the_second_holder_s_records_within_the_domain():
    x, y = people(500).T
    holders = made_up_holders(x, y, domain=DOMAIN, common=1.0, disagreement=2.0)
    assert holders.first.count.sum() == holders.second.count.sum() == 500
    moved = holders.known[:, 2:] - holders.known[:, :2]
    assert 1.5 < (moved[:, 0] * DOMAIN.cell_size[0]).std() < 2.1
    assert holders.known.min() >= 0
    assert holders.known.max() < DOMAIN.side


def test_the_same_seed_gives_the_same_holders_and_nothing_private_is_shown():
    first, again, other = (made_up_holders(*people(30).T, domain=DOMAIN, disagreement=1.0, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.known, again.known)
    assert not np.array_equal(first.known, other.known)
    assert "30" not in repr(first)


def test_nothing_to_compare_is_no_ratio():
    empty = Blocking(leaves=1, kept=1, pairs=0, survivors=0, padded=0, matches=0, found=0)
    assert np.isnan([empty.reduction, empty.padded_reduction, empty.recall]).all()


def test_what_does_not_fit_is_refused():
    holders = made_up_holders(*people(10).T, domain=DOMAIN)
    release = dv.Quadtree(height=2).release(holders.first, dv.PureBudget(1), dv.Entropy.seeded(1))
    elsewhere = replace(release, domain=dv.Domain(bounds=DOMAIN.bounds, crs=None, order=5))
    with pytest.raises(dv.InputError, match="same domain"):
        block(elsewhere, holders)
    for wrong in ({"margin": -1.0}, {"margin": np.inf}, {"threshold": np.nan}):
        with pytest.raises(dv.SettingError, match="margin"):
            block(release, holders, **wrong)
    for wrong in ({"common": 1.5}, {"disagreement": -1.0}):
        with pytest.raises(dv.InputError, match="share"):
            made_up_holders(*people(10).T, domain=DOMAIN, **wrong)
    with pytest.raises(dv.InputError, match="inside"):
        made_up_holders([0.0], [0.0], domain=DOMAIN)


LEAVES_ONLY = dv.Quadtree(height=8, split="leaf", least_squares=False)
WIDE = dv.Domain(bounds=(0.0, 0.0, 256.0, 256.0), crs=None, order=8)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_an_attacker_is_right_as_often_as_the_noise_says(epsilon):
    """In theory: exp(e) / (1 + exp(e)) for the release, which is the most that epsilon allows; a / (2 + 2 a) less than 1 with dummies."""
    x, y = np.random.default_rng(3).uniform(0, 256, (2, 30_000))
    points = dv.PointCounts.from_xy(x, y, domain=WIDE)
    found = guess_presence(points, LEAVES_ONLY, dv.PureBudget(str(epsilon)), people=20_000, threshold=-np.inf)
    allowed, less = 1 / (1 + np.exp(-epsilon)), np.exp(-epsilon)
    assert found.released == pytest.approx(allowed, abs=0.015)
    assert found.padded == pytest.approx(1 - less / (2 + 2 * less), abs=0.015)
    assert found.sizes == 1.0
    assert found == guess_presence(points, LEAVES_ONLY, dv.PureBudget(str(epsilon)), people=20_000, threshold=-np.inf)


def test_an_attacker_who_sees_ten_times_the_noise_hardly_guesses():
    """A wrong scale would show: with a tenth of epsilon the rate of the whole epsilon is far away."""
    x, y = np.random.default_rng(3).uniform(0, 256, (2, 30_000))
    points = dv.PointCounts.from_xy(x, y, domain=WIDE)
    found = guess_presence(points, LEAVES_ONLY, dv.PureBudget("0.2"), people=20_000)
    assert abs(found.released - 1 / (1 + np.exp(-2.0))) > 0.3


def test_blocks_of_exactly_the_released_size_hide_the_true_one_and_cost_matches():
    """A slow count: every kept leaf takes part with its released count, and a person with the chance to be among the records kept."""
    holders = made_up_holders(*people(400).T, domain=DOMAIN, common=0.5, disagreement=0.2)
    release = MECHANISMS["quadtree, budget on leaves"].release(holders.first, dv.PureBudget("0.4"), dv.Entropy.seeded(5))
    found = block(release, holders, threshold=1, margin=0.3)
    tree, second = release.tree, cells(holders.second)
    true = np.bincount(tree.leaf_of(*cells(holders.first).T), minlength=len(tree))
    pairs, kept = 0, 0.0
    for leaf in tree.leaves[release.count[tree.leaves] >= 1]:
        west, south, east, north = DOMAIN.coordinates(tree.rectangles(np.array([leaf])))[0] + [-0.3, -0.3, 0.3, 0.3]
        x, y = (np.array(DOMAIN.bounds[:2]) + (second + 0.5) * DOMAIN.cell_size).T
        pairs += int(np.ceil(release.count[leaf])) * ((west < x) & (x < east) & (south < y) & (y < north)).sum()
        known = holders.known[tree.leaf_of(holders.known[:, 0], holders.known[:, 1]) == leaf]
        kx, ky = (np.array(DOMAIN.bounds[:2]) + (known[:, 2:] + 0.5) * DOMAIN.cell_size).T
        near = ((west < kx) & (kx < east) & (south < ky) & (ky < north)).sum()
        kept += near * min(1.0, np.ceil(release.count[leaf]) / max(true[leaf], 1))
    assert (found.cut, found.cut_found) == (pairs, pytest.approx(kept))
    assert found.cut_recall < found.recall
