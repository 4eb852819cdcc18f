"""What releases of points and of areas answer by the same verbs."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.mechanisms import FlatAreas, HilbertTree, PathTree, Privelet, Quadtree, RegionTree, UniformGrid
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import read_release, write_release
from dpviz.release.intervals import count_ends, half_widths
from dpviz.release.manifest import describe
from tests.area_cases import areas_of, dense_covariance, membership, records_of
from tests.release_cases import BOUNDS, WORDS, areas_on, points_of, regions_with_shapes
from tests.trip_cases import regular

POINTS = {
    "quadtree": Quadtree(height=3),
    "quadtree, spread": Quadtree(height=3, negative="spread"),
    "quadtree, no least squares": Quadtree(height=3, least_squares=False),
    "uniform_grid": UniformGrid(side=4),
    "privelet": Privelet(),
    "path_tree": PathTree(),
    "hilbert_tree": HilbertTree(),
}
AREAS = {"region_tree": RegionTree(), "region_tree, non-negative": RegionTree(nonnegative=True), "flat, hidden": FlatAreas(threshold=150)}
EVERY = POINTS | AREAS
PURE = [("path_tree", "gaussian"), ("hilbert_tree", "gaussian")]
BUDGETS = {"laplace": PureBudget("1/2"), "gaussian": ZcdpBudget("1/8")}

of_each = pytest.mark.parametrize("name", EVERY)


def made(name, budget=BUDGETS["laplace"], entropy=None):
    mechanism = EVERY[name]
    data = points_of(300) if name in POINTS else areas_on(regions_with_shapes())
    return mechanism.release(data, budget, entropy or Entropy.seeded(1))


def levels_of(release):
    return range(release.level_number(None) + 1)


@pytest.mark.parametrize(("name", "noise"), [(name, noise) for name in EVERY for noise in BUDGETS if (name, noise) not in PURE])
def test_the_noise_says_how_wide_intervals_are_and_counts_have_none_below_0(name, noise):
    release = made(name, BUDGETS[noise])
    assert release.noise == noise
    cut = 0
    for level in levels_of(release):
        nodes, stddev = release.nodes(level), release.stddev(level)
        for joint, numbers in ((False, 1), (True, release.numbers)):
            low, high = release.interval(level, joint=joint)
            width = half_widths(noise, stddev, numbers)
            np.testing.assert_array_equal(low, np.maximum(np.floor(release.centre[nodes] - width), 0))
            np.testing.assert_array_equal(high, np.maximum(np.ceil(release.centre[nodes] + width), 0))
            cut += int((low == 0).sum())
    assert cut > 0


@of_each
def test_joint_intervals_contain_single_ones_in_answers_and_tables(name):
    release = made(name)
    for level in levels_of(release):
        (low, high), (all_low, all_high) = release.interval(level), release.interval(level, joint=True)
        assert (all_low <= low).all()
        assert (high <= all_high).all()
    queries = [BOUNDS, (-10, 40, -3, 47)] if name in POINTS else ["01", ["a", "d"]]
    (low, high), (all_low, all_high) = release.answer_interval(queries), release.answer_interval(queries, joint=True)
    shown = ~np.isnan(low)
    assert (all_low <= low)[shown].all()
    assert (high <= all_high)[shown].all()
    assert (all_high - all_low > high - low)[shown].all()


@of_each
def test_tables_have_the_same_columns_and_the_numbers_of_the_verbs(name):
    release = made(name)
    for level in (*levels_of(release), None):
        table, nodes = release.to_frame(level), release.nodes(level)
        hidden = table["count"].isna().to_numpy()
        named = {"count": release.count[nodes], "count_noisy": release.noisy[nodes], "stddev": release.stddev(level)}
        named |= dict(zip(("ci_low", "ci_high"), release.interval(level), strict=True))
        named |= dict(zip(("all_low", "all_high"), release.interval(level, joint=True), strict=True))
        assert [column for column in table if column in named] == list(named)
        for column, values in named.items():
            np.testing.assert_array_equal(table[column][~hidden], values[~hidden])
        assert set(table["status"]) == {release.status}
        assert table.attrs["private"] is False
        assert table.attrs["simulation"] is True


@pytest.mark.parametrize("mechanism", AREAS.values(), ids=AREAS)
@pytest.mark.parametrize("noise", BUDGETS)
def test_deviations_of_areas_are_those_of_dense_least_squares(mechanism, noise):
    release = mechanism.release(records_of(300), BUDGETS[noise], Entropy.seeded(2))
    nodes = membership(release.regions)
    variance = np.diag(nodes @ dense_covariance(release) @ nodes.T)
    for level in levels_of(release):
        np.testing.assert_allclose(release.stddev(level) ** 2, variance[release.nodes(level)], rtol=1e-8)
        np.testing.assert_array_equal(release.stddev(level), release.node_stddev[release.nodes(level)])


@pytest.mark.parametrize(
    "mechanism", [Quadtree(height=3), UniformGrid(side=4), Quadtree(height=3, count_root=False)], ids=lambda each: each.key
)
@pytest.mark.parametrize("noise", BUDGETS)
def test_deviations_of_points_are_those_of_dense_least_squares(mechanism, noise):
    release = mechanism.release(points_of(300), BUDGETS[noise], Entropy.seeded(2))
    tree = release.tree
    below = np.zeros((len(tree), len(tree)))
    below[np.arange(len(tree)), np.arange(len(tree))] = 1
    for node in range(len(tree) - 1, 0, -1):
        below[tree.parent[node]] += below[node]
    leaves = below[:, tree.leaves]
    measured = np.isfinite(release.noise_variance)
    weighted = leaves[measured] / np.sqrt(release.noise_variance[measured])[:, None]
    variance = np.diag(leaves @ np.linalg.pinv(weighted.T @ weighted) @ leaves.T)
    for level in levels_of(release):
        np.testing.assert_allclose(release.stddev(level) ** 2, variance[release.nodes(level)], rtol=1e-7)


@of_each
def test_a_release_is_the_same_as_what_its_files_hold_and_as_no_other_draw(name, tmp_path):
    release = made(name, entropy=Entropy.system())
    read = read_release(write_release(release, tmp_path / "out", describe(release, WORDS)))
    assert read.same_as(release)
    assert release.same_as(read)
    assert made(name).same_as(made(name))
    assert not made(name).same_as(made(name, entropy=Entropy.seeded(2)))
    assert not made(name).same_as(made(name, PureBudget("1/3")))
    assert not release.same_as(replace(release, count=release.count + 1e-9))
    assert not release.same_as(replace(release, steps=(*release.steps, "another")))
    assert not release.same_as(None)


def test_no_release_is_the_same_as_one_with_another_frame():
    areas, other = (areas_of(regular(3, 4, prefix=prefix), np.arange(12)) for prefix in ("", "x"))
    one, two = (RegionTree().release(each, PureBudget(1), Entropy.seeded(1)) for each in (areas, other))
    np.testing.assert_array_equal(one.count, two.count)
    assert not one.same_as(two)
    assert not one.same_as(made("quadtree"))


def test_more_answers_than_numbers_have_wider_joint_intervals():
    release = Quadtree(height=1).release(points_of(300), PureBudget(1), Entropy.seeded(1))
    boxes = np.tile(release.domain.bounds, (release.numbers + 5, 1))
    low, high = release.answer_interval(boxes, joint=True)
    wanted = count_ends(release.centre[:1], half_widths("laplace", release.node_stddev[:1], release.numbers + 5))
    np.testing.assert_array_equal([low, high], np.tile(wanted, len(boxes)))
