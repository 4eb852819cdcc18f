"""Intervals of boxes that cut partitions, against their definition one partition at a time; those of whole partitions are untouched."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import MECHANISMS, PathTree, Privelet, PrivTree, Quadtree, SuppressedCounts, UniformGrid
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.intervals import ASSUMED, NONE_TO_ALL, STDDEVS, count_ends, half_widths
from dpviz.release.unevenness import FEWEST_FAMILIES, LEAST_CORRELATION, MOST_EMPTY, MOST_UNEVEN, CutSums, Unevenness
from dpviz.space.domain import Domain
from dpviz.space.grids import grid, quadtree
from dpviz.space.mask import CellMask
from dpviz.space.ranges import batches, box_overlap
from tests.evaluation.box_coverage import measure
from tests.trees import random_boxes, shares_of

SIDE = 32
DOMAIN = Domain(bounds=(0, 0, SIDE, SIDE), crs=None, order=5)
LOW = {f"quadtree of {height}": Quadtree(height=height) for height in (1, 3)}
MECHANISMS_OF_POINTS = {key: mechanism() for key, mechanism in MECHANISMS.of("points").items()} | LOW


def crowd(domain=DOMAIN):
    rng = np.random.default_rng(2)
    cells = np.floor(rng.normal(12, 6, (20_000, 2))).astype(int)
    cells = cells[((cells >= 0) & (cells < SIDE)).all(axis=1)]
    matrix = np.zeros((SIDE, SIDE), int)
    np.add.at(matrix, (cells[:, 1], cells[:, 0]), 1)
    if domain.mask is not None:
        matrix *= domain.mask.blocks(5) > 0
    return PointCounts.from_matrix(matrix, domain=domain)


def made(name, epsilon="0.5"):
    return MECHANISMS_OF_POINTS[name].release(crowd(), PureBudget(epsilon), Entropy.seeded(3))


def expected(release, box):
    """The ends for one box in lattice units, one partition at a time; None if it cuts none."""
    tree, k, alike = release.tree, release.unevenness.degree, release.unevenness.correlation
    leaves = tree.leaves
    chance = squares = deviations = cubes = inside = outside = hidden = 0.0
    for leaf, f in zip(leaves, shares_of(tree, np.array([box]), leaves)[0], strict=True):
        if not 0 < f < 1:
            continue
        west, south, east, north = tree.rectangles(np.array([leaf]))[0].tolist()
        across = (min(east, box[2]) - max(west, box[0])) / (east - west)
        up = (min(north, box[3]) - max(south, box[1])) / (north - south)
        own = k * min(1.0, 2 * min(across, up) / max(across, up))
        n = max(release.count[leaf], release.node_stddev[leaf])
        chance += f * (1 - f) * n
        squares += f * (1 - f) * own * n**2
        deviations += np.sqrt(f * (1 - f) * own) * n
        cubes += f * (1 - f) * (1 - 2 * f) * (2 * own**2 / (1 + own) * n**3 + 3 * own * n**2 + n)
        inside, outside = inside + f * release.centre[leaf], outside + (1 - f) * release.centre[leaf]
        hidden += release.node_stddev[leaf] ** 2
    if chance == 0:
        return None
    plain = replace(release, count=release.centre, unbiased=None, fill="uniform", nonnegative=False)
    (answer,), ((uniform,), (noise,)), z = release.answer([box]), plain.answer([box], spread=True), STDDEVS[release.noise]
    reach = z * np.sqrt(noise**2 + hidden)
    low, high = uniform - inside - reach, uniform + outside + reach
    if release.unevenness.families >= FEWEST_FAMILIES and k < MOST_UNEVEN:
        stddev = np.sqrt(noise**2 + chance + (1 - alike) * squares + alike * deviations**2)
        upper = z + (z**2 - 1) / 6 * min(max(cubes / stddev**3, 0), 1)
        low, high = max(low, answer - z * stddev), min(high, answer + upper * stddev)
    return max(np.floor(min(low, answer)), 0), max(np.ceil(max(high, answer)), 0)


@pytest.mark.parametrize("name", ["path_tree", "kdtree", "adaptive_grid", "htf", "dawa", "privelet", "quadtree of 1", "quadtree of 3"])
def test_ends_of_cut_boxes_are_those_of_the_definition_and_stand_around_the_answer(name):
    release, boxes = made(name), np.clip(random_boxes(np.random.default_rng(4), SIDE, 40), 0, SIDE)
    low, high = release.answer_interval(boxes)
    found = 0
    for box, cut, *ends in zip(boxes, release.cuts(boxes), low, high, strict=True):
        wanted = expected(release, box.tolist())
        assert cut == (wanted is not None)
        if cut:
            np.testing.assert_array_equal(ends, wanted)
            assert ends[0] <= max(release.answer([box])[0], 0) <= ends[1]
            found += 1
    assert found > 10


@pytest.mark.parametrize("budget", [PureBudget("0.5"), ZcdpBudget("1/8")], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("joint", [False, True])
def test_boxes_of_whole_partitions_have_the_intervals_of_their_noise_alone(budget, joint):
    release = Quadtree(height=3, negative="spread").release(crowd(), budget, Entropy.seeded(3))
    boxes = np.rint(random_boxes(np.random.default_rng(5), SIDE, 50) / 4) * 4
    boxes = boxes[(boxes[:, :2] < boxes[:, 2:]).all(axis=1)]
    mixed = np.concatenate([boxes, [[1, 1, 30, 9]]])
    found = np.column_stack(release.answer_interval(mixed, joint=joint))[:-1]
    plain = replace(release, count=release.unbiased, unbiased=None, fill="uniform", nonnegative=False)
    centre, stddev = plain.answer(boxes, spread=True)
    numbers = max(release.numbers, len(mixed)) if joint else 1
    np.testing.assert_array_equal(found, np.column_stack(count_ends(centre, half_widths(release.noise, stddev, numbers))))
    assert release.cuts(mixed).tolist() == [False] * len(boxes) + [True]
    nodes = release.domain.boxes(release.tree.rectangles())
    ends = np.column_stack(release.answer_interval(np.array([node.bounds for node in nodes])))
    np.testing.assert_array_equal(ends, np.column_stack(release.node_interval(slice(None))))


@pytest.mark.parametrize("name", MECHANISMS_OF_POINTS)
def test_every_mechanism_answers_cut_boxes_with_ends_in_order_and_joint_ones_are_wider(name):
    release, boxes = made(name), random_boxes(np.random.default_rng(6), SIDE, 100)
    (low, high), (all_low, all_high) = release.answer_interval(boxes), release.answer_interval(boxes, joint=True)
    assert (all_low >= 0).all()
    assert ((all_low <= low) & (low <= high) & (high <= all_high)).all()


@pytest.mark.parametrize("make", [Privelet(order=4), UniformGrid(side=27)], ids=["even", "uneven"])
def test_patches_of_a_grid_add_up_to_what_its_cut_partitions_add(make):
    release = make.release(crowd(), PureBudget("0.5"), Entropy.seeded(3))
    boxes = np.concatenate(
        [random_boxes(np.random.default_rng(9), SIDE, 200), [[0, 0, 32, 32], [4, 4, 8, 8], [5, 5, 5, 9], [31.5, 0, 32, 0.5]]]
    )
    fast, slow = CutSums(release.unevenness, boxes), CutSums(release.unevenness, boxes)
    fast.add_all(None)
    for part, fronts in batches(release.tree, box_overlap(release.tree, boxes), len(boxes)):
        slow.add(part, fronts)
    assert fast.is_cut.tolist() == slow.is_cut.tolist()
    assert fast.is_cut.any()
    given = np.full((3, len(boxes)), [[400.0], [390.0], [9.0]])
    np.testing.assert_array_equal(*(cut.ends(*given, lambda stddev: 2 * stddev) for cut in (fast, slow)))
    np.testing.assert_allclose(fast.variance, slow.variance, rtol=1e-9)
    np.testing.assert_allclose(*(cut.skewness(given[0]) for cut in (fast, slow)), rtol=1e-9)


def test_a_box_may_have_all_or_none_of_what_it_cuts_where_few_families_are_seen():
    """All 8,000 records lie in the middle of a domain that is cut into quarters: each quarter looks like the others."""
    cells = np.zeros((SIDE, SIDE), int)
    cells[14:18, 14:18] = 500
    release = Quadtree(height=1).release(PointCounts.from_matrix(cells, domain=DOMAIN), PureBudget(10), Entropy.seeded(1))
    assert release.unevenness.families == 1
    low, high = release.answer_interval([(14, 14, 18, 18), (0, 0, 14, 32), (0, 0, 18, 16), (0, 0, 3, 3)])
    np.testing.assert_allclose(low, [0, 0, 2000, 0], atol=5)
    np.testing.assert_allclose(high, [8000, 4000, 4000, 2000], atol=5)


def test_a_box_may_have_all_or_none_of_what_it_cuts_where_records_are_at_few_addresses():
    """Each of 64 partitions has 300 records, all in one cell: their parents look as uneven as can be."""
    cells = np.zeros((SIDE, SIDE), int)
    cells[1::8, 1::8] = 300
    release = Quadtree(height=3).release(PointCounts.from_matrix(cells, domain=DOMAIN), PureBudget(10), Entropy.seeded(1))
    assert release.unevenness.families >= FEWEST_FAMILIES
    assert release.unevenness.degree >= MOST_UNEVEN
    (low,), (high,) = release.answer_interval([(1, 1, 2, 2)])
    assert low == 0
    assert high == pytest.approx(300, abs=5)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [PathTree(), PrivTree(), UniformGrid(), Quadtree(height=1), Quadtree(height=2)])
def test_intervals_hold_where_few_records_and_a_small_budget_leave_few_partitions(mechanism):
    table = measure("few in the middle", mechanism, PureBudget("0.1"), seeds=range(4))
    assert table.groupby("kind")["holds"].mean().min() > 0.93


def test_what_states_no_noise_has_no_interval():
    release = SuppressedCounts(side=4).release(crowd(), PureBudget(1), Entropy.seeded(1))
    assert np.isnan(release.answer_interval([(0.3, 0.3, 9, 9)])).all()


def found_in(tree, count, stddev=0.0):
    counts = tree.sum_up(np.where(tree.children == 0, count, 0.0))
    return Unevenness.of(tree, tree.cells, (counts, counts), np.full(len(tree), stddev), "laplace")


def unevenness_of(tree, count, stddev=0.0):
    return found_in(tree, count, stddev).degree


def test_even_counts_leave_the_least_unevenness_and_those_in_one_child_the_most():
    tree = quadtree(DOMAIN, 4)
    least = MOST_EMPTY / ((1 - MOST_EMPTY) * STDDEVS["laplace"] ** 2)
    assert unevenness_of(tree, np.full(len(tree), 100.0)) == pytest.approx(least)
    assert unevenness_of(tree, np.where(np.arange(len(tree)) % 4 == 1, 100.0, 0.0)) == pytest.approx(1.0, rel=0.02)
    f = MOST_EMPTY
    assert f == pytest.approx(STDDEVS["laplace"] * np.sqrt(least * f * (1 - f)))


@pytest.mark.parametrize("make", [lambda: quadtree(DOMAIN, 4), lambda: grid(DOMAIN, 27, 27)], ids=["quadtree", "grid"])
@pytest.mark.parametrize("level", [0.2, 0.5])
@pytest.mark.parametrize("stddev", [0.0, 20.0])
def test_the_unevenness_of_dirichlet_shares_is_found_without_that_of_noise(make, level, stddev):
    rng, tree, found = np.random.default_rng(7), make(), []
    parents = np.unique(tree.parent[tree.leaves])
    for _ in range(30):
        count = np.zeros(len(tree))
        for parent in parents:
            children = np.arange(tree.first_child[parent], tree.first_child[parent] + tree.children[parent])
            shares = rng.dirichlet(tree.cells[children] / tree.cells[children].sum() * (1 / level - 1))
            count[children] = rng.multinomial(400, shares)
        found.append(unevenness_of(tree, count + rng.normal(0, stddev, len(tree)), stddev))
    families = (tree.children[parents] > 1).sum()
    assert np.mean(found) == pytest.approx((level * families + 1) / (families + 1), rel=0.05)


def test_nothing_is_known_of_a_single_partition_or_of_counts_that_noise_hides():
    tree = quadtree(DOMAIN, 4)
    assert unevenness_of(tree, np.full(len(tree), 10.0), stddev=100.0) == 1.0
    one = grid(DOMAIN, 1, 1)
    assert unevenness_of(one, np.array([50.0] * len(one))) == 1.0


def test_masked_cells_have_no_share_in_what_is_cut():
    mask = CellMask.from_open(np.arange(SIDE)[:, None] * np.ones(SIDE) < 16)
    domain = replace(DOMAIN, mask=mask)
    release = Quadtree(height=3).release(crowd(domain), PureBudget("0.5"), Entropy.seeded(3))
    assert release.cuts([(0, 0, 8, 16), (0, 0, 8, 18), (0, 0, 8, 15), (0, 17, 8, 19)]).tolist() == [False, False, True, False]
    np.testing.assert_array_equal(*(np.column_stack(release.answer_interval([(0, 0, 8, top)])) for top in (16, 18)))


def test_a_box_that_a_side_misses_by_rounding_cuts_nothing():
    release = Quadtree(height=3).release(crowd(), PureBudget("0.5"), Entropy.seeded(3))
    boxes = np.array([[4, 4, 12, 12], [4 + 1e-12, 4, 12, 12 - 1e-12]])
    assert not release.cuts(boxes).any()
    low, high = release.answer_interval(boxes)
    assert (low[0], high[0]) == (low[1], high[1])


@pytest.mark.parametrize("make", [lambda: quadtree(DOMAIN, 4), lambda: grid(DOMAIN, 14, 14)], ids=["quadtree", "grid"])
def test_neighbours_are_alike_where_streets_are_straight_and_not_where_counts_are_independent(make):
    tree, rng = make(), np.random.default_rng(8)
    column = tree.west[tree.leaves]
    lines, alike = np.unique(column), np.zeros(len(tree))
    alike[tree.leaves] = rng.gamma(0.5, 400, len(lines))[np.searchsorted(lines, column)]
    assert found_in(tree, rng.poisson(alike), 3.0).correlation > 0.5
    assert found_in(tree, rng.poisson(rng.gamma(0.5, 400, len(tree))), 3.0).correlation == LEAST_CORRELATION


def test_pages_and_files_say_which_ends_boxes_that_cut_partitions_have():
    said = {name: made(name).describe_intervals() for name in ("path_tree", "quadtree of 1")}
    assert said["path_tree"].endswith(f" hold in {ASSUMED}.")
    assert said["quadtree of 1"].endswith(f" hold in {NONE_TO_ALL}.")
