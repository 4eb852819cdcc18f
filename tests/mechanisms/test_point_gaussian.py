"""Gaussian noise of mechanisms of points: what it costs, by enumeration and by exact sums, and that it is as large as stated."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError
from dpviz.mechanisms import MECHANISMS, Identity, Privelet, Quadtree, UniformGrid
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.audit import AuditPlan, audit_neighbours
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.exact_accounting import certified_delta
from dpviz.privacy.noise import discrete_gaussian, gaussian_variance
from dpviz.privacy.wavelet import coefficients, table
from dpviz.release.intervals import half_widths
from dpviz.release.manifest import describe_utility
from tests.mechanisms.test_contract import BOUNDS, points_of
from tests.often import often
from tests.transcripts import Script, pair, run, worst_loss

RHO, BUDGET = Fraction("0.7"), ApproxBudget(1, "1e-6")
KINDS = pytest.mark.parametrize("budget", [ZcdpBudget(RHO), BUDGET], ids=["rho", "epsilon and delta"])
OURS = {key: kind() for key, kind in MECHANISMS.of("points").items() if kind.noise_by_budget}
VARIANTS = OURS | {
    "quadtree without root": Quadtree(count_root=False, split="uniform"),
    "quadtree of 16 parts": Quadtree(fan_out=16),
    "quadtree of odd weights": Quadtree(height=1, split="custom", weights=(1 / 3, 2 / 3)),
    "pruned quadtree": Quadtree(prune=1.5),
    "uniform grid, large total share": UniformGrid(total_share=0.5, c=0.1),
    "uniform grid of 3": UniformGrid(side=3),
    "uniform grid, declared total": UniformGrid(declared_total=30, c=1.0),
    "identity with threshold": Identity(threshold=True, order=1),
    "privelet of 2 x 2": Privelet(order=1),
}
EVERY = pytest.mark.parametrize("mechanism", [pytest.param(each, id=name) for name, each in VARIANTS.items()])


def changed(mechanism, order: int) -> int:
    """How many numbers of a step one record changes."""
    return (1 + min(mechanism.order, order)) ** 2 if isinstance(mechanism, Privelet) else 1


def test_the_others_refuse_such_budgets_and_say_where_those_stand_that_take_them():
    for key in MECHANISMS.of("points").keys() - OURS:
        with pytest.raises(BudgetError, match="the help page on mechanisms says which take rho, or epsilon and delta"):
            MECHANISMS.of("points")[key]().release(points_of(10), ZcdpBudget(1), Entropy.seeded(1))


@EVERY
@KINDS
@pytest.mark.parametrize("bound", often([1, 3], 1))
def test_it_spends_all_of_the_budget_and_the_receipt_says_how(mechanism, budget, bound):
    points = replace(points_of(200, 3), contributions=bound)
    receipt = mechanism.release(points, budget, Entropy.seeded(1)).receipt
    assert (receipt.total, receipt.spent, receipt.currency, receipt.used) == (budget, budget, "ρ", receipt.available)
    exact = "exact" if bound == 1 else "tight"
    assert receipt.conversion == (None if budget == ZcdpBudget(RHO) else exact)
    assert any("tight conversion was used" in note for note in receipt.notes) == (receipt.conversion == "tight")
    for step in receipt.steps:
        assert (step.noise, step.sensitivity) == ("discrete Gaussian", bound**2 * changed(mechanism, 3))
        assert step.scale == step.sensitivity / (2 * step.amount)


@EVERY
def test_no_record_costs_more_than_rho_and_one_costs_all_of_it(monkeypatch, mechanism):
    """On inputs of 2 x 2 places with up to one record each, and on one of 4 x 4; one more record in a place."""
    rng, found = np.random.default_rng(1), []
    tiny = [np.array(base).reshape(2, 2) for base in product((0, 1), repeat=4)][::3]
    for place, matrix in enumerate([*tiny, rng.integers(0, 3, (4, 4))]):
        for cell in range(place % 2, matrix.size, 2):
            one = pair(matrix, [cell])[:: 1 if cell % 3 else -1]
            found.append(worst_loss(monkeypatch, mechanism, *one, cell, ZcdpBudget(RHO)))
    assert set(found) == {RHO}


@EVERY
@pytest.mark.parametrize("bound", often([2, 3], 1))
def test_a_persons_records_cost_no_more_than_rho_wherever_they_lie_and_all_of_it_in_one_cell(monkeypatch, mechanism, bound):
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 2, (4, 4))
    spread = [rng.integers(0, 16, bound).tolist() for _ in range(6)]
    found = [
        worst_loss(monkeypatch, mechanism, *pair(matrix, cells), seed, ZcdpBudget(RHO)) for seed, cells in enumerate([[5] * bound, *spread])
    ]
    assert found[0] == RHO == max(found)


def test_a_persons_records_in_different_cells_cost_less_than_in_one(monkeypatch):
    matrix, far = np.zeros((4, 4), np.int64), [0, 15]
    assert worst_loss(monkeypatch, Identity(), *pair(matrix, far), 0, ZcdpBudget(RHO)) == RHO / 2
    assert RHO / 2 < worst_loss(monkeypatch, Quadtree(), *pair(matrix, far), 0, ZcdpBudget(RHO)) < RHO


@pytest.mark.parametrize(("bound", "ones"), [(1, 1), (3, 1), (1, 4), (2, 4)])
def test_the_sensitivities_of_a_unit_are_those_of_its_worst_records(bound, ones):
    """Ones stand for columns of an orthogonal pattern of signs, as those of a wavelet; every way to choose `bound` of them."""
    vectors = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]) if ones == 4 else np.eye(4, dtype=int)
    sums = np.array([vectors[list(chosen)].sum(axis=0) for chosen in product(range(4), repeat=bound)])
    of_a_unit = Sensitivity(contributions=bound, ones=ones)
    assert (np.abs(sums).sum(axis=1).max(), (sums**2).sum(axis=1).max()) == (of_a_unit.total, of_a_unit.squares)


@EVERY
def test_the_noise_that_is_drawn_keeps_delta_and_uses_it(monkeypatch, mechanism):
    """By the scales of the noise that is drawn, not of the receipt; a tenth less of it would not keep delta."""
    drawn = []

    def record(true, budget, entropy, squared_sensitivity):
        drawn.append(squared_sensitivity / (2 * budget.rho))
        return discrete_gaussian(true, budget, entropy, squared_sensitivity)

    monkeypatch.setattr(measure, "discrete_gaussian", record)
    mechanism.release(points_of(300, 4), BUDGET, Entropy.seeded(1))
    ones = changed(mechanism, 4)
    assert 0.97e-6 < certified_delta(drawn, BUDGET.epsilon, ones) <= 1e-6
    assert certified_delta([variance * Fraction(81, 100) for variance in drawn], BUDGET.epsilon, ones) > 2e-6


def test_the_delta_of_a_wavelet_is_the_exact_sum_over_all_outcomes_of_its_noise():
    """Four coefficients of a 2 x 2 grid: the outcomes of the sum of four noises, each with its exact probability under both inputs."""
    budget = ApproxBudget(2, "1e-3")
    (step,) = Privelet(order=1).release(PointCounts.from_matrix(np.eye(2, dtype=np.int64)), budget, Entropy.seeded(1)).receipt.steps
    reach = int(14 * math.sqrt(step.scale)) + 10
    values = np.arange(-reach, reach + 1)
    single = np.exp(-(values**2) / (2 * float(step.scale)))
    single, four = single / single.sum(), np.ones(1)
    for _ in range(4):
        four = np.convolve(four, single)
    sums = np.arange(-4 * reach, 4 * reach + 1)
    loss = (2 * sums + 4) / (2 * float(step.scale))  # ln of the ratio of the product of four densities to that shifted by one each
    delta = float((four * -np.expm1(np.minimum(2 - loss, 0))).sum())
    assert 0.99e-3 < delta <= 1e-3


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("bound", [1, 2])
def test_privelet_is_its_slow_definition(monkeypatch, order, bound):
    """Coefficients by definition, noise of the stated distribution on each, and the inverse as a solution of linear equations."""
    side = 1 << order
    points = replace(PointCounts.from_matrix(np.random.default_rng(order).integers(0, 9, (side, side))), contributions=bound)
    axis = [np.ones(side)]
    for level in range(order):
        for node in range(1 << level):
            size, row = side >> level, np.zeros(side)
            row[node * size : node * size + size // 2], row[node * size + size // 2 : (node + 1) * size] = 1, -1
            axis.append(row)
    transform = np.array(axis)
    script = Script(budget=ZcdpBudget(RHO))
    release = run(monkeypatch, Privelet(order=order), points, script)
    (request,), (noisy,) = script.requests, script.answers
    np.testing.assert_array_equal(request.true.reshape(side, side), transform @ points.blocks(order) @ transform.T)
    assert request.scale == bound**2 * (1 + order) ** 2 / (2 * RHO)
    touched = np.abs(np.kron(transform, transform)).sum(axis=0)
    assert (touched == (1 + order) ** 2).all(), "one record of any cell changes so many coefficients, by one each"
    inverse = np.linalg.inv(np.kron(transform, transform))
    boxes = release.tree.rectangles(release.tree.leaves)
    place = boxes[:, 1] * side + boxes[:, 0]
    np.testing.assert_allclose(release.count[release.tree.leaves], (inverse @ noisy)[place], atol=1e-8)
    np.testing.assert_allclose(table(noisy.reshape(side, side)).ravel(), inverse @ noisy, atol=1e-8)
    spread = gaussian_variance(request.scale) * (inverse**2).sum(axis=1)
    np.testing.assert_allclose(release.node_stddev[release.tree.leaves] ** 2, spread[place], rtol=1e-9)


@KINDS
def test_one_release_has_noise_of_the_stated_size_on_every_level_and_coefficient(budget):
    """Within five standard deviations of a variance of n noises; the errors of a wavelet are read from its coefficients."""
    points = PointCounts.from_matrix(np.random.default_rng(1).integers(0, 9, (64, 64)))
    tree = Quadtree(height=6).release(points, budget, Entropy.seeded(2))
    noise = tree.noisy - tree.tree.sums(points.column, points.row, points.count)
    for depth in range(3, 7):
        nodes = tree.tree.at_depth(depth)
        assert np.mean(noise[nodes] ** 2) == pytest.approx(tree.noise_variance[nodes][0], rel=5 * math.sqrt(2 / 4**depth))
    wavelet = Privelet(order=6).release(points, budget, Entropy.seeded(2))
    errors = coefficients(np.asarray(wavelet.blocks(6) - points.blocks(6)))
    assert np.mean(errors**2) == pytest.approx(wavelet.spread.variance, rel=5 * math.sqrt(2 / 4**6))


UNBIASED = {
    name: VARIANTS[name] for name in ("quadtree", "privelet", "uniform grid of 3", "identity", "quadtree of odd weights", "uniform_grid")
}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [pytest.param(each, id=name) for name, each in UNBIASED.items()])
@pytest.mark.parametrize(("budget", "bound"), [(ZcdpBudget("0.2"), 2), (ApproxBudget(2, "1e-4"), 1)])
def test_counts_and_answers_are_unbiased_and_their_stated_spread_is_that_of_many_runs(mechanism, budget, bound):
    points, runs, scores = replace(points_of(400, 3), contributions=bound), 400, []
    boxes = np.array([BOUNDS, (-8, 42, 4, 54), (-10, 40, -2, 48)])
    for entropy in Entropy.seeded(11).spawn(runs):
        release = mechanism.release(points, budget, entropy)
        truth = replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(float))
        answer, stddev = release.answer(boxes, spread=True)
        nodes = [0, release.tree.leaves[0], release.tree.leaves[-1], len(release.tree) // 2]
        of_counts = (release.count - truth.count)[nodes] / release.node_stddev[nodes]
        scores.append([*of_counts, *((answer - truth.answer(boxes)) / stddev)])
    assert (np.abs(np.mean(scores, axis=0)) < 5 / np.sqrt(runs)).all()
    assert (np.abs(np.mean(np.square(scores), axis=0) - 1) < 5 * np.sqrt(2 / runs)).all()


@pytest.mark.parametrize(
    "mechanism", [Quadtree(height=3), Identity(order=3), UniformGrid(), UniformGrid(side=5)], ids=lambda made: made.key
)
@KINDS
@pytest.mark.parametrize("bound", [1, 3])
def test_the_noise_that_it_says_it_would_draw_is_that_of_a_release(mechanism, budget, bound):
    release = mechanism.release(replace(points_of(400), contributions=bound), budget, Entropy.seeded(5))
    measured = ~np.isnan(release.noisy)
    expected = np.where(measured, release.noise_variance, np.inf)
    np.testing.assert_allclose(mechanism.count_variances(release, budget), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(OURS))
@pytest.mark.parametrize("budget", [ApproxBudget(2, "0.03"), ZcdpBudget(1)], ids=str)
def test_the_audit_passes_and_rejects_noise_of_a_third_the_scale(monkeypatch, key, budget):
    mechanism = MECHANISMS.of("points")[key](order=2) if key in ("identity", "privelet") else MECHANISMS.of("points")[key]()
    found = audit_neighbours(key, mechanism.audit_pairs(budget), budget, AuditPlan(runs=200))
    assert found.passed
    monkeypatch.setattr(
        measure, "discrete_gaussian", lambda true, budget, *given: discrete_gaussian(true, ZcdpBudget(9 * budget.rho), *given)
    )
    pairs = MECHANISMS.of("points")[key].audit_pairs(mechanism, budget)
    assert not audit_neighbours(key, pairs, budget, AuditPlan(runs=600)).passed


def test_a_uniform_grid_takes_the_epsilon_whose_laplace_noise_is_as_large():
    points = PointCounts.from_matrix(np.full((64, 64), 4))
    rule, rho = UniformGrid(declared_total=16384), Fraction("0.125")
    tree = rule.release(points, ZcdpBudget(rho), Entropy.seeded(1)).tree
    assert len(tree.leaves) == rule.rule(16384, Fraction(2 * math.sqrt(rho))) ** 2
    assert gaussian_variance(1 / (2 * rho)) == pytest.approx(2 / (2 * math.sqrt(rho)) ** 2, rel=1e-6), (
        "2 / epsilon**2, as Laplace noise has"
    )


def test_each_noise_has_its_own_geometric_split_and_shares():
    domain, tree = points_of(1).domain, Quadtree(height=3)
    growths = {(1 / 3): tree.shares(domain), 0.5: tree.shares_of_rho(domain)}
    for growth, shares in growths.items():
        assert [b.share / a.share for a, b in pairwise(shares)] == pytest.approx([2**growth] * 3)
    amounts = [float(step.amount / RHO) for step in tree.release(points_of(50), ZcdpBudget(RHO), Entropy.seeded(1)).receipt.steps]
    assert amounts == pytest.approx([share.share for share in growths[0.5]])


def test_intervals_are_those_of_gaussian_noise_and_the_manifest_says_so():
    release = Quadtree(height=2).release(points_of(400, 3), BUDGET, Entropy.seeded(3))
    nodes = np.arange(len(release.tree))
    low, high = release.node_interval(nodes)
    np.testing.assert_array_equal(high, np.ceil(release.count + 1.959963984540054 * release.node_stddev))
    np.testing.assert_array_equal(release.answer_interval([BOUNDS]), [[low[0]], [high[0]]])
    assert describe_utility(release).interval.startswith("count ± 1.96 stddev")
    at_once = release.node_interval(nodes, joint=True)[1] - release.count
    np.testing.assert_array_less(at_once - half_widths("gaussian", release.node_stddev, len(nodes)), 1.0 + 1e-9)
    assert Quadtree(height=2).level_errors(release)[0].interval == pytest.approx(1.959963984540054 * release.node_stddev[0])
    laplace = Quadtree(height=2).release(points_of(400, 3), PureBudget(1), Entropy.seeded(3))
    assert describe_utility(laplace).interval.startswith("count ± ln(20)")


def test_delta_zero_is_refused():
    for key in sorted(OURS):
        with pytest.raises(BudgetError, match="delta greater than 0"):
            MECHANISMS.of("points")[key]().release(points_of(10), ApproxBudget(1, 0), Entropy.seeded(1))
