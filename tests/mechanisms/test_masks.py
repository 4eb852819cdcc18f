"""Public masks: masked cells are exactly 0, nothing is drawn for them, and neighbours cost no more than the budget."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import dpviz as dv
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from tests.often import named
from tests.transcripts import EPSILON, Script, loss, run, worst_loss

TAKING = {
    "quadtree": dv.Quadtree(),
    "quadtree of 16 parts, as measured": dv.Quadtree(fan_out=16, least_squares=False),
    "quadtree on leaves": dv.Quadtree(split="leaf"),
    "pruned quadtree": dv.Quadtree(prune=1.5, shrink_small=True),
    "identity": dv.Identity(threshold=True),
    "uniform grid": dv.UniformGrid(total_share=0.5, c=0.1),
    "uniform grid of 3": dv.UniformGrid(side=3),
    "adaptive grid": dv.AdaptiveGrid(c=0.1),
    "privtree": dv.PrivTree(),
    "path tree": dv.PathTree(tau=0.5),
    "hilbert tree": dv.HilbertTree(height=3),
    "hilbert tree of halves": dv.HilbertTree(height=5, fan_out=2),
    "dawa": dv.Dawa(shrink_small=False),
    "dawa in halves": dv.Dawa(fan_out=2),
}
REFUSING = {key for key, row in dv.MECHANISMS.of("points").items() if not row.takes_mask}
OFTEN = ("quadtree", "adaptive grid", "privtree", "path tree")
EVERY = pytest.mark.parametrize("mechanism", named(TAKING, OFTEN))
MASK = dv.CellMask.from_open(np.array([[1, 0, 1, 1], [1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 0]], np.bool_))
"""One quarter is wholly masked, the others are open, or masked in part."""


def domain_of(order, mask):
    return dv.Domain(bounds=(0, 0, 1 << order, 1 << order), crs=None, order=order, mask=mask)


def counted(matrix, mask, **changed):
    domain = domain_of(len(matrix).bit_length() - 1, mask)
    return replace(dv.PointCounts.from_matrix(matrix, domain=domain), dropped=0, outside=0, **changed)


def neighbours(matrix, cells, mask):
    """A matrix, and the same with one person's records in the cells."""
    more = matrix.copy()
    np.add.at(more.ravel(), cells, 1)
    return counted(matrix, mask, contributions=len(cells)), counted(more, mask, contributions=len(cells))


@EVERY
@pytest.mark.parametrize("order", [3, 6])
def test_without_noise_counts_are_true_and_answers_fill_open_cells_alone(mechanism, order):
    rng = np.random.default_rng(order)
    mask = dv.CellMask.from_open(rng.random((8, 8)) < 0.6)
    points = counted(rng.poisson(3, (1 << order, 1 << order)), mask)
    mechanism = replace(mechanism, prune=0.0, shrink_small=False) if isinstance(mechanism, dv.Quadtree) else mechanism
    release = mechanism.release(points, PureBudget(2**24), Entropy.seeded(1))
    np.testing.assert_allclose(release.count, release.tree.sums(points.column, points.row, points.count), atol=1e-5)
    masked = release.open_cells == 0
    assert (release.count[masked] == 0).all()
    assert (release.node_stddev[masked] == 0).all()
    assert np.isnan(release.noisy[masked]).all()
    is_open, side = mask.blocks(order), 1 << order
    assert abs(release.blocks(order)[~is_open]).max() < 1e-9
    row, column = np.divmod(np.arange(side**2), side)
    cells = np.stack([column, row, column + 1, row + 1], axis=1)
    boxes = np.sort(rng.uniform(0, side, (50, 2, 2)), axis=1).reshape(-1, 4)
    for inside in ("uniform",) if release.tree.overlaps else ("uniform", "interpolated", "log-linear"):
        each = release.answer(cells, fill=inside)
        assert abs(each[~is_open.ravel()]).max() < 1e-6
        assert each.sum() == pytest.approx(points.count.sum())
        np.testing.assert_allclose(release.answer(boxes, fill=inside), release.answer(boxes, fill=inside, spread=True)[0], atol=1e-5)


@EVERY
def test_a_mask_of_nothing_changes_nothing(mechanism):
    matrix = np.random.default_rng(1).poisson(2, (16, 16))
    runs = [
        mechanism.release(counted(matrix, mask), PureBudget(1), Entropy.seeded(3))
        for mask in (None, dv.CellMask.from_open(np.ones((16, 16), np.bool_)))
    ]
    assert runs[0].domain == runs[1].domain
    for name in ("noisy", "noise_variance", "count", "node_stddev"):
        np.testing.assert_array_equal(getattr(runs[0], name), getattr(runs[1], name))
    assert runs[0].receipt == runs[1].receipt


@EVERY
@pytest.mark.parametrize("bound", [1, 2])
def test_no_person_in_open_cells_costs_more_than_epsilon(monkeypatch, mechanism, bound):
    """On small inputs, along scripts of all noise; masked cells get no noise in either input."""
    places, rng = np.flatnonzero(MASK.open), np.random.default_rng(2)
    matrices = [np.zeros((4, 4), np.int64), *(rng.integers(0, 3, (4, 4)) * MASK.open for _ in range(2))]
    people = [[place] for place in places] if bound == 1 else [rng.choice(places, 2).tolist() for _ in range(4)]
    found = []
    for seed, (matrix, cells) in enumerate(product(matrices, people)):
        pair = neighbours(matrix, cells, MASK)
        found.append(worst_loss(monkeypatch, mechanism, *pair[:: 1 if seed % 2 else -1], seed))
    assert max(found) <= EPSILON * (1 + 1e-9 if isinstance(mechanism, dv.HilbertTree) else 1)
    if isinstance(mechanism, dv.Identity | dv.Quadtree | dv.PathTree | dv.AdaptiveGrid):
        assert max(found) > EPSILON * 0.99
    if isinstance(mechanism, dv.PrivTree):  # the rest is that of the splits: see the next test
        assert max(found) == EPSILON / 2
    if isinstance(mechanism, dv.Dawa):  # the rest is that of the partition: see its own tests
        assert max(found) == EPSILON - mechanism._epsilons(domain_of(2, MASK), PureBudget(EPSILON))[0]


GAUSSIAN = {name: mechanism for name, mechanism in TAKING.items() if mechanism.noise_by_budget}


@pytest.mark.parametrize("mechanism", named(GAUSSIAN, len(GAUSSIAN)))
@pytest.mark.parametrize("bound", [1, 3])
def test_no_person_in_open_cells_costs_more_than_rho_and_one_costs_all_of_it(monkeypatch, mechanism, bound):
    """With Gaussian noise: a person's records in one open cell, and spread over some."""
    rho, rng = ZcdpBudget(Fraction("0.7")), np.random.default_rng(3)
    places, matrix = np.flatnonzero(MASK.open), rng.integers(0, 3, (4, 4)) * MASK.open
    together, spread = [[place] * bound for place in places], [rng.choice(places, bound).tolist() for _ in range(4)]
    pairs = [neighbours(matrix, cells, MASK) for cells in together + spread]
    found = [worst_loss(monkeypatch, mechanism, *pair[:: 1 if seed % 2 else -1], seed, rho) for seed, pair in enumerate(pairs)]
    assert found[: len(together)] == [rho.rho] * len(together)
    assert max(found) == rho.rho


class Splits(Script):
    """A script that also writes down the biased counts of PrivTree's splits, and the rate of their noise."""

    def split(self, bias, budget, entropy, sensitivity=1):
        self.drawn = [*getattr(self, "drawn", []), (bias.copy(), float(budget.epsilon))]
        return super().split(bias, budget, entropy, sensitivity)

    def log_chance(self):
        """The logarithm of the chance of all splits: of X > -b or X <= -b for a bias of b, X discrete Laplace."""
        total = 0.0
        for (bias, rate), answer in zip(self.drawn, self.answers, strict=False):
            least, q = np.where(answer > 0, 1 - bias, bias), math.exp(-rate)
            tail = np.where(least >= 1, q ** np.maximum(least, 0) / (1 + q), 1 - q ** np.maximum(1 - least, 1) / (1 + q))
            total += float(np.log(tail).sum())
        return total


def test_splits_of_privtree_cost_no_more_with_a_mask(monkeypatch):
    worst = 0.0
    for seed, place in product(range(6), np.flatnonzero(MASK.open)):
        pair = neighbours(np.random.default_rng(seed).integers(0, 3, (4, 4)) * MASK.open * (seed > 0), [place], MASK)
        first = Splits(seed=seed)
        one = run(monkeypatch, dv.PrivTree(), pair[0], first)
        second = Splits(given=first.answers)
        other = run(monkeypatch, dv.PrivTree(), pair[1], second)
        np.testing.assert_array_equal(one.tree.children, other.tree.children)
        worst = max(worst, abs(first.log_chance() - second.log_chance()) + float(loss(first, second)))
    assert EPSILON * 0.7 < worst <= EPSILON


def test_masked_places_get_no_noise_and_cost_nothing(monkeypatch):
    points = counted(np.random.default_rng(1).integers(0, 3, (4, 4)), MASK)
    for mechanism, numbers in ((dv.Identity(), [9]), (dv.Quadtree(), [1, 3, 9]), (dv.UniformGrid(side=2), [3])):
        script = Script()
        with monkeypatch.context() as patched:
            script.install(patched)
            release = mechanism.release(points, PureBudget(1), script.entropy)
        assert [len(request.true) for request in script.requests] == numbers
        assert [step.counts for step in release.receipt.steps] == numbers
        assert "where nobody can be (a mask of 7 of 16 cells)" in release.receipt.unprotected
        assert mechanism.count_variances(release, PureBudget(1))[release.open_cells == 0].min() == np.inf


def test_the_spread_is_that_of_many_runs_and_smaller_than_without_the_mask():
    points = counted(np.random.default_rng(1).poisson(20, (4, 4)), MASK)
    open_points = replace(points, domain=domain_of(2, None))
    for mechanism in (dv.Quadtree(split="uniform"), dv.Identity()):
        runs = [mechanism.release(points, PureBudget(1), entropy) for entropy in Entropy.seeded(5).spawn(100)]
        error = np.array([run.count for run in runs]) - runs[0].tree.sums(points.column, points.row, points.count)
        np.testing.assert_allclose(error.std(axis=0), runs[0].node_stddev, rtol=0.35)
        box = [[0.5, 0.0, 3.5, 4.0]]
        answers = np.array([run.answer(box)[0] for run in runs])
        stated = runs[0].answer(box, spread=True)[1][0]
        assert answers.std() == pytest.approx(stated, rel=0.25)
        assert stated < 0.95 * mechanism.release(open_points, PureBudget(1), Entropy.seeded(1)).answer(box, spread=True)[1][0]


@pytest.mark.parametrize("key", sorted(REFUSING))
def test_other_mechanisms_refuse_a_mask_before_anything_is_drawn(monkeypatch, key):
    mechanism, points = dv.MECHANISMS[key](), counted(np.ones((4, 4), np.int64), MASK)
    script = Script()
    with monkeypatch.context() as patched:
        script.install(patched)
        for refuse in (lambda: mechanism.check_data(points), lambda: mechanism.release(points, PureBudget(1), script.entropy)):
            with pytest.raises(dv.DomainError, match="cannot take a study area into account"):
                refuse()
    assert not script.requests


@pytest.mark.parametrize("inside", ["uniform", "interpolated", "log-linear"])
@pytest.mark.parametrize("negative", ["keep", "spread"])
def test_every_finish_leaves_masked_nodes_at_0_and_adds_up(negative, inside):
    mask = dv.CellMask.from_open(np.random.default_rng(4).random((16, 16)) < 0.6)
    points = counted(np.random.default_rng(5).poisson(1, (16, 16)), mask)
    for mechanism in (
        dv.Quadtree(height=4, shrink_small=True, fill=inside, negative=negative),
        dv.PathTree(fill=inside, negative=negative),
    ):
        release = mechanism.release(points, PureBudget(0.5), Entropy.seeded(2))
        tree, count = release.tree, release.count
        assert (count[release.open_cells == 0] == 0).all()
        assert np.isfinite(count).all()
        for depth in range(tree.height):
            inner = tree.children[tree.at_depth(depth)] > 0
            sums = tree.sum_children(depth, count[tree.at_depth(depth + 1)])
            np.testing.assert_allclose(sums[inner], count[tree.at_depth(depth)][inner], atol=1e-6)
        blocks = release.blocks(4)
        assert abs(blocks[~mask.open]).max() < 1e-9
        assert blocks.sum() == pytest.approx(count[0], abs=1e-6)
        assert negative == "keep" or min(count.min(), blocks.min()) >= 0
