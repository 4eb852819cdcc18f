"""HTF: its budget, its height, where it stops, what its forms release, and what shares they show."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms.points import htf
from dpviz.mechanisms.points.htf import SENSITIVITY, Htf
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import laplace_variance
from dpviz.space.domain import Domain
from tests.often import rarely

MEASURED = {"reuse_splits": False, "combine": False, "shrink_small": False, "fill": "uniform"}
PAPER = Htf(search="rounds", split_epsilon=1e-3, ratio="2^(1/3)", extra=0, stop="count", stop_cells=5, **MEASURED)
FORMS = {"default": Htf(), "paper": PAPER, "rounds": Htf(search="rounds"), "plain": Htf(combine=False, shrink_small=False)}
ALL = pytest.mark.parametrize("form", FORMS)


def towns(order: int = 6, records: int = 20_000, seed: int = 1) -> PointCounts:
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0.1, 0.9, (5, 2))[rng.integers(0, 5, records)]
    x, y = np.clip(rng.normal(centre, 0.04), 0, 1).T
    return PointCounts.from_xy(x, y, domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=order))


def spending(mechanism: Htf, points: PointCounts, epsilon: str, seed: int = 1) -> tuple[htf.Spending, Run]:
    run = Run.of(mechanism, points, PureBudget(epsilon), Entropy.seeded(seed))
    return mechanism.spending(run, Fraction(epsilon)), run


@ALL
@pytest.mark.parametrize("epsilon", ["1e-3", "0.1", "1/3", "1", "1e7"])
def test_what_a_path_spends_adds_up_to_epsilon_exactly(form, epsilon):
    spent, run = spending(FORMS[form], towns(), epsilon)
    height = sum((step.amount for step in run.steps), Fraction(0))
    assert height + spent.height * spent.splits + sum(spent.counts) == Fraction(epsilon)
    assert spent.remaining(spent.height) == spent.counts[-1]
    for depth in range(spent.height):
        spared = spent.splits if FORMS[form].reuse_splits else 0
        assert spent.remaining(depth) == spent.counts[depth] + spared + spent.remaining(depth + 1)


@pytest.mark.parametrize(("epsilon", "height"), [("1", "0.01"), ("0.005", "1e-4"), ("0.0005", "0.00005")])
def test_the_papers_budgets_are_as_corrected(epsilon, height):
    spent, run = spending(PAPER, towns(), epsilon)
    assert run.steps[0].amount == Fraction(height)
    assert spent.splits == min(Fraction("1e-3"), Fraction(epsilon) / 4 / spent.height)
    np.testing.assert_allclose([float(b / a) for a, b in pairwise(spent.counts)], 2 ** (1 / 3), rtol=1e-4)


@pytest.mark.parametrize(
    ("total", "epsilon", "height"), [(20_000, 100, 12), (20_000, 1, 10), (320, 1, 5), (319, 1, 4), (-50, 1, 1), (0, 1, 1), (10**9, 9, 12)]
)
def test_the_height_is_the_logarithm_of_the_noisy_total_within_its_limits(monkeypatch, total, epsilon, height):
    monkeypatch.setattr(Run, "measure", lambda run, *rest, **more: (np.array([total]), 1.0))
    for extra in (0, 3):
        assert spending(replace(PAPER, extra=extra), towns(), str(epsilon))[0].height == height + extra
    given, run = spending(Htf(height=20), towns(order=2), "1")
    assert (given.height, run.steps) == (20, [])


@ALL
def test_receipts_charge_every_planned_level_and_early_leaves_instead(form):
    points, mechanism = towns(), FORMS[form]
    release = mechanism.release(points, PureBudget("0.5"), Entropy.seeded(2))
    tree, steps = release.tree, release.receipt.steps
    assert set(tree.children.tolist()) == {0, 2}
    assert (tree.cells[tree.children > 0] >= max(mechanism.stop_cells, 2)).all()
    kept = np.isfinite(release.noise_variance)
    assert kept[tree.leaves].all()
    assert kept.all() if mechanism.combine else kept.sum() == len(tree.leaves)
    height = max(step.level for step in steps if step.level is not None)
    assert steps[0].purpose == "total, for the height"
    splits = [step for step in steps if step.purpose.startswith("splits")]
    assert [step.level for step in splits] == list(range(height))
    assert {step.sensitivity for step in splits} == {SENSITIVITY * (7 if mechanism.search == "rounds" else 1)}
    assert len([step for step in steps if step.purpose == "counts"]) == height + 1
    leaves = sum(step.counts or 0 for step in steps if "leaves" in step.purpose) + (steps[-1].counts or 0)
    assert leaves == len(tree.leaves)
    assert (release.approximate is None) == (not mechanism.reuse_splits), "only the form without reuse states an exact spread"


def test_halves_cost_nothing_and_lie_in_the_middle():
    release = Htf(search="middle", height=6).release(towns(), PureBudget(1), Entropy.seeded(5))
    assert not any(step.purpose.startswith("splits") for step in release.receipt.steps)
    assert release.receipt.notes[0] == "All splits are halves, which cost nothing."
    tree = release.tree
    inner = np.flatnonzero(tree.children)
    np.testing.assert_array_equal(2 * tree.cells[tree.first_child[inner]], tree.cells[inner])
    assert len(inner) > 10


def test_an_epsilon_for_splits_that_had_to_be_cut_is_in_the_notes():
    dear, cheap = (
        Htf(split_epsilon=each, height=4).release(towns(), PureBudget("0.1"), Entropy.seeded(5)).receipt.notes for each in (10, 1e-3)
    )
    assert "Splits got ε 0.00625 per level" in dear[1]
    assert not any("Splits got" in note for note in cheap)


@pytest.mark.parametrize("mechanism", [rarely(PAPER), replace(PAPER, search="permute-and-flip")])
def test_the_papers_leaves_are_unbiased_with_the_stated_variance(mechanism):
    points, scores = towns(order=3, records=1000), []
    for entropy in Entropy.seeded(5).spawn(150):
        release = mechanism.release(points, PureBudget("0.4"), entropy)
        leaves = release.tree.leaves
        error = release.noisy[leaves] - release.tree.sums(points.column, points.row, points.count)[leaves]
        scores.append((error / np.sqrt(release.noise_variance[leaves]))[[0, -1]])
    assert (np.abs(np.mean(scores, axis=0)) < 5 / np.sqrt(150)).all()
    assert (np.abs(np.mean(np.square(scores), axis=0) - 1) < 5 * np.sqrt(5 / 150)).all()


@pytest.mark.parametrize("reuse", [False, True])
def test_the_papers_early_leaves_are_counted_with_what_is_left_for_counts_alone(reuse):
    """Algorithm 3: epsilon_remain = epsilon_data - epsilon_accu, in which epsilon_prt has no part."""
    release = replace(PAPER, height=6, split_epsilon=0.04, reuse_splits=reuse).release(towns(), PureBudget(1), Entropy.seeded(5))
    data, splits = PureBudget(1 - 6 * Fraction("0.04")).split([2 ** (depth / 3) for depth in range(7)]), Fraction("0.04")
    found = {}
    for leaf in release.tree.leaves.tolist():
        found.setdefault(int(release.tree.depth[leaf]), set()).add(float(release.noise_variance[leaf]))
    assert min(found) < 6, "some leaves end early"
    for depth, variances in found.items():
        spared = reuse * splits * (6 - depth)
        left = [sum(data[start:]) + spared for start in (depth, depth + 1) if start < 7]
        assert variances <= {laplace_variance(1 / each) for each in left}


def test_small_noisy_counts_and_small_partitions_end_a_path():
    points = towns()
    many = replace(PAPER, stop_count=50, height=12).release(points, PureBudget(50), Entropy.seeded(6)).tree
    true = many.sums(points.column, points.row, points.count)
    assert true[many.children > 0].min() > 45
    few = Htf(height=12, stop_cells=100, stop_noise=0).release(points, PureBudget(50), Entropy.seeded(6)).tree
    assert few.cells[few.children > 0].min() >= 100
    assert len(Htf(height=3, stop="count", stop_count=10**9).release(points, PureBudget(1), Entropy.seeded(6)).tree) == 1


def test_levels_are_split_by_turns_rows_on_even_ones_and_thin_nodes_along_their_other_axis():
    points = PointCounts.from_matrix(np.full((4, 4), 1000))
    for height, sides in ((8, (2, 0)), (7, (3, 1))):
        tree = Htf(height=height, stop_noise=0).release(points, PureBudget(10), Entropy.seeded(7)).tree
        first = tree.rectangles(tree.at_depth(1))
        assert (first[:, sides[0]] - first[:, sides[1]]).tolist() == [4, 4]
        assert len(tree.leaves) == 16


@pytest.mark.parametrize(
    ("form", "labels"),
    [
        (Htf(), ["height", "splits", "counts"]),
        (Htf(height=5), ["splits", "counts"]),
        (PAPER, ["height", "splits and counts"]),
        (Htf(search="middle", height=6), ["counts"]),
        (Htf(search="middle"), ["height", "counts"]),
    ],
)
def test_shares_name_what_is_paid_for_and_tell_structure_from_counts(form, labels):
    shares = form.shares(towns().domain)
    assert [(share.label, share.structure) for share in shares] == [(label, label in ("height", "splits")) for label in labels]


def test_shares_can_be_moved_within_their_ranges():
    moved = Htf().with_shares([0.05, 0.25, 0.7])
    assert (moved.height_share, moved.split_share) == pytest.approx((0.05, 0.25))
    assert Htf().with_shares([1, 0, 0]) == Htf(height_share=0.1, split_share=0.001)
    assert Htf(height=5).with_shares([0.25, 0.75]).split_share == pytest.approx(0.25)
    assert PAPER.with_shares([0.02, 0.98]) == replace(PAPER, height_share=0.02)
    assert Htf(search="middle").with_shares([0.05, 0.95]).height_share == 0.05
    assert Htf(height=5, split_epsilon=0.1).with_shares([1.0]) == Htf(height=5, split_epsilon=0.1)


def test_settings_that_matter_are_named():
    rules = {rule.name: rule for rule in Htf.rules()}
    assert [name for name, rule in rules.items() if not rule.matters(PAPER.chosen())] == ["lines", "inner", "split_share", "stop_noise"]
    unused = [name for name, rule in rules.items() if not rule.matters(Htf(height=3).chosen())]
    assert unused == ["rounds", "height_share", "extra", "stop_count"]
