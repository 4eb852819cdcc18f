"""What every point mechanism must keep, whatever its method. A new one is tested without an edit here; see test_contract_settings, too."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DpvizError, InputError, SettingError
from dpviz.mechanisms import MECHANISMS, AdaptiveGrid, Dawa, Htf, Kdtree, PathTree
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from tests.often import named, often

VARIANTS = {
    "adaptive_grid as measured": AdaptiveGrid(least_squares=False),
    "htf as measured": Htf(least_squares=False),
    "htf in halves": Htf(search="middle", combine=False, shrink_small=False, fill="uniform"),
    "path_tree as measured": PathTree(least_squares=False, fill="uniform"),
    "dawa in halves": Dawa(fan_out=2, shrink_small=False, fill="uniform"),
    "kdtree in halves": Kdtree(fan_out=2),
    "kdtree, hybrid": Kdtree(variant="hybrid"),
    "kdtree, cell": Kdtree(variant="cell"),
    "kdtree, noisy-mean": Kdtree(variant="noisy-mean"),
    "kdtree, smooth-sensitivity": Kdtree(variant="smooth-sensitivity"),
}
"""Settings under which a row is another method."""
DEFAULTS = {key: row() for key, row in MECHANISMS.of("points").items()}
EVERY = pytest.mark.parametrize("mechanism", [pytest.param(made, id=name) for name, made in (DEFAULTS | VARIANTS).items()])
OFTEN = pytest.mark.parametrize(
    "mechanism", named(DEFAULTS | VARIANTS, {*DEFAULTS} - {"dawa", "kdtree", "hilbert_tree", "tuned", "tuned_grid"})
)
"""Many runs of all; of methods that share their counts with another one in the slow run."""
KINDS = {
    "discrete Laplace": ((1, 49), 1),  # 49: the coefficients of a wavelet of order 6 that one record changes
    "discrete Laplace, along a path": ((Fraction(7, 3),), 1),
    "exponential mechanism": ((Fraction(1, 2),), 2),
    "noisy minimum, discrete Laplace": ((2**17 + 1,), 2),
    "permute-and-flip": ((2**17 + 1, 1 + Fraction(1, 2**20)), 1),
    "rounded Laplace": ((1,), 1),
    "Laplace, smooth sensitivity": ((1,), 2),
}
"""Sensitivities for one record, and the scale as a multiple of sensitivity / epsilon."""
DELTA = Fraction("1e-6")
BOUNDS = (-10.0, 40.0, 6.0, 56.0)


def released(mechanism, points: PointCounts, epsilon: float | str, entropy: Entropy) -> PointRelease:
    """A release with the kind of budget that the mechanism takes."""
    budget = ApproxBudget(epsilon, DELTA) if mechanism.needs_delta else PureBudget(epsilon)
    return mechanism.release(points, budget, entropy)


def points_of(records: int, order: int = 6, **options) -> PointCounts:
    """Two clusters on a background, always the same for the same number."""
    rng = np.random.default_rng(records)
    centre = np.array([[-6.0, 44.0], [2.0, 52.0], [-2.0, 48.0]])[rng.integers(0, 3, records)]
    x, y = np.clip(rng.normal(centre, [1.2, 0.8]), BOUNDS[:2], BOUNDS[2:]).T if records else np.zeros((2, 0))
    return PointCounts.from_xy(x, y, domain=Domain(bounds=BOUNDS, crs="EPSG:4326", order=order), **options)


@EVERY
@pytest.mark.parametrize("epsilon", often(["1/3", "1e-3", "7.000000000000000000001", "0.1"], 3))
def test_it_spends_all_of_the_budget_and_never_more(mechanism, epsilon):
    receipt = released(mechanism, points_of(200), epsilon, Entropy.seeded(1)).receipt
    assert receipt.total.epsilon == Fraction(epsilon)
    assert receipt.spent == receipt.total
    assert sum(step.amount for step in receipt.steps if not step.replaces_later) == Fraction(epsilon)
    assert sum(step.delta for step in receipt.steps) == (DELTA if mechanism.needs_delta else 0)
    for step in receipt.steps:
        sensitivities, factor = KINDS[step.noise]
        assert step.sensitivity in sensitivities
        assert step.scale == factor * step.sensitivity / step.amount


@EVERY
@pytest.mark.parametrize("records", [0, 1, 1000])
@pytest.mark.parametrize("entropy", [Entropy.system(), Entropy.seeded(2)], ids=["system", "seeded"])
def test_it_works_on_no_one_and_a_thousand_records(mechanism, records, entropy):
    points = points_of(records)
    release = released(mechanism, points, 0.5, entropy)
    nodes = len(release.tree)
    assert (release.domain, release.simulation) == (points.domain, entropy.simulation)
    assert (release.mechanism, release.settings) == (mechanism.key, mechanism.chosen())
    assert release.noisy.shape == release.noise_variance.shape == release.count.shape == release.node_stddev.shape == (nodes,)
    assert np.isfinite([release.count, release.node_stddev]).all()
    assert (release.node_stddev > 0).all()
    assert abs(release.count[0] - records) < 60 * release.node_stddev[0]


@EVERY
@pytest.mark.parametrize("order", often([1, 2, 6, 10, 16], (1, 10)))
def test_its_default_settings_work_on_every_lattice(mechanism, order):
    points = points_of(500, order)
    release = released(mechanism, points, 1, Entropy.seeded(3))
    assert release.tree.cells[release.tree.leaves].sum() == points.domain.side**2
    assert release.receipt.spent.epsilon == 1
    assert len(release.answer([BOUNDS])) == 1


@EVERY
def test_the_same_seed_gives_the_same_release_and_another_seed_or_a_second_draw_another(mechanism):
    entropy = Entropy.seeded(4)
    one, other, same, third = (released(mechanism, points_of(300), 0.5, each) for each in (entropy, entropy, *map(Entropy.seeded, (4, 5))))
    for name in ("noisy", "noise_variance", "count", "node_stddev"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    np.testing.assert_array_equal(one.tree.rectangles(), same.tree.rectangles())
    assert one.receipt == same.receipt
    for each in (other, third):
        assert len(one.count) != len(each.count) or (one.count != each.count).any()


@EVERY
def test_it_leaves_its_input_alone(mechanism):
    points = points_of(300)
    before = [part.copy() for part in (points.column, points.row, points.count)]
    release = released(mechanism, points, 10**6, Entropy.seeded(7))
    release.count[:] = -1
    for part, copy in zip((points.column, points.row, points.count), before, strict=True):
        np.testing.assert_array_equal(part, copy)


@EVERY
def test_a_split_that_says_nothing_is_refused(mechanism):
    number = len(mechanism.shares(points_of(10).domain))
    for share in (0.0, -1.0, np.nan, np.inf) if number > 1 else ():
        with pytest.raises(DpvizError):
            released(mechanism.with_shares([share] * number), points_of(10), 1, Entropy.seeded(1))


@EVERY
def test_shares_add_up_and_come_back_as_they_were_given(mechanism):
    domain = points_of(10).domain
    shares = [part.share for part in mechanism.shares(domain)]
    assert sum(shares) == pytest.approx(1)
    assert [part.share for part in mechanism.with_shares(shares).shares(domain)] == pytest.approx(shares)


@EVERY
def test_children_add_up_to_their_parents_unless_they_are_left_as_measured(mechanism):
    release = released(mechanism, points_of(1000), 0.3, Entropy.seeded(9))
    tree = release.tree
    inner = np.flatnonzero(tree.children)
    sums = np.bincount(tree.parent[1:], release.count[1:], len(tree))[inner]
    if mechanism.chosen().get("least_squares", True):
        np.testing.assert_allclose(sums, release.count[inner], atol=1e-6)
    else:
        assert not any("least squares" in step for step in release.steps)
        measured = np.isfinite(release.noise_variance[inner]) & ~np.isnan(release.noisy[inner])
        np.testing.assert_array_equal(release.count[inner][measured], release.noisy[inner][measured])
        assert np.abs(sums - release.count[inner]).max() > 1


@EVERY
@pytest.mark.parametrize("order", [2, 6])
def test_with_a_huge_budget_every_count_is_that_of_the_cells_it_stands_for(mechanism, order):
    points = points_of(1000, order)
    release = released(mechanism, points, 10**7, Entropy.seeded(10))
    np.testing.assert_allclose(release.count, release.tree.sums(points.column, points.row, points.count), atol=1e-6)
    assert release.count[0] == pytest.approx(1000)


@OFTEN
@pytest.mark.parametrize("contributions", often([3, 1], 1))
def test_counts_and_answers_are_unbiased_and_their_stated_spread_is_that_of_many_runs_where_it_claims_so(mechanism, contributions):
    points, runs, scores = replace(points_of(400, 3), contributions=contributions), 400, []
    boxes = np.array([BOUNDS, (-8, 42, 4, 54), (-10, 40, -2, 48), (-4, 46, -2, 56)])
    if (words := released(mechanism, points, 0.8, Entropy.seeded(11)).approximate) is not None:
        assert len(words) > 20
        return
    for entropy in Entropy.seeded(11).spawn(runs):
        release = released(mechanism, points, 0.8, entropy)
        truth = replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(float))
        answer, stddev = release.answer(boxes, spread=True)
        leaves = release.tree.leaves
        chosen = [0, leaves[0], leaves[-1], leaves[len(leaves) // 3], len(release.tree) // 2]
        of_counts = (release.count - truth.count)[chosen] / release.node_stddev[chosen]
        scores.append([*of_counts, *((answer - truth.answer(boxes)) / stddev)])
    assert (np.abs(np.mean(scores, axis=0)) < 5 / np.sqrt(runs)).all()
    assert (np.abs(np.mean(np.square(scores), axis=0) - 1) < 5 * np.sqrt(5 / runs)).all()


@EVERY
@pytest.mark.parametrize("contributions", [2, 5])
def test_every_sensitivity_grows_with_the_records_per_person(mechanism, contributions):
    rng = np.random.default_rng(13)
    x, y = rng.uniform(BOUNDS[0], BOUNDS[2], 400), rng.uniform(BOUNDS[1], BOUNDS[3], 400)
    domain = Domain(bounds=BOUNDS, crs=None, order=5)
    points = PointCounts.from_xy(x, y, domain=domain, person=np.arange(400) // 2, contributions=contributions)
    one = released(mechanism, replace(points, contributions=1, unit="record"), 100, Entropy.seeded(14))
    many = released(mechanism, points, 100, Entropy.seeded(14))
    assert (many.receipt.unit, many.receipt.contributions) == ("person", contributions)
    assert (one.receipt.unit, one.receipt.contributions) == ("record", 1)
    paid = [[step for step in release.receipt.steps if not step.replaces_later] for release in (one, many)]
    for alone, step in zip(*paid, strict=True):
        assert (step.purpose, step.amount) == (alone.purpose, alone.amount)
        if "smooth sensitivities" not in step.purpose:  # which have the records per unit inside
            assert step.sensitivity == contributions * alone.sensitivity
            assert step.scale == contributions * alone.scale


@EVERY
def test_other_arguments_than_points_the_right_budget_and_a_stream_are_refused(mechanism):
    right, words = (ApproxBudget, r"ApproxBudget\(epsilon, delta\)") if mechanism.needs_delta else (PureBudget, r"PureBudget\(epsilon\)")
    rights = (right, ZcdpBudget) if mechanism.noise_by_budget else (right,)
    for budget in (PureBudget(1), ApproxBudget(1, 1e-6), ApproxBudget(1, 0), ZcdpBudget(0.5), 0.5, None):
        if mechanism.noise_by_budget and isinstance(budget, ApproxBudget):
            continue  # see test_point_gaussian
        if isinstance(budget, rights):
            assert mechanism.needs_delta or mechanism.release(points_of(10), budget, Entropy.seeded(1)).receipt.total == budget
            continue
        with pytest.raises(BudgetError, match=words) as refusal:
            mechanism.release(points_of(10), budget, Entropy.seeded(1))
        assert mechanism.title in str(refusal.value)
        assert type(budget).__name__ in str(refusal.value)
    with pytest.raises(SettingError, match=r"Entropy\.system"):
        released(mechanism, points_of(10), 1, 7)
    with pytest.raises(InputError, match="PointCounts"):
        released(mechanism, np.ones((4, 4)), 1, Entropy.seeded(1))
