"""The references that show what privacy costs: right, and never to be published."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, RefusedError
from dpviz.evaluation.audits import audit
from dpviz.mechanisms import MECHANISMS, REFERENCES, ExactKdtree
from dpviz.mechanisms.references import ExactTunedGrid
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.area_release import AreaRelease
from dpviz.release.files import write_release
from dpviz.release.manifest import describe
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import verdict
from dpviz.space.domain import Domain
from tests.area_cases import areas_of
from tests.release_cases import WORDS
from tests.trip_cases import regular, trip_counts_of

POINTS = PointCounts.from_matrix(np.random.default_rng(1).integers(0, 9, (16, 16)))


def released(points: PointCounts = POINTS, **settings) -> PointRelease:
    return ExactKdtree(**settings).release(points, PureBudget("0.5"), Entropy.system())


@pytest.mark.parametrize("kind", [*REFERENCES.of("points").values(), *REFERENCES.of("trips").values(), *REFERENCES.of("areas").values()])
def test_a_reference_is_in_no_table_of_private_mechanisms(kind):
    assert kind not in (*MECHANISMS.of("points").values(), *MECHANISMS.of("trips").values(), *MECHANISMS.of("areas").values())
    assert not kind.private
    assert "NOT PRIVATE" in kind.title
    assert kind.summary.startswith("NOT PRIVATE")
    assert "Source:" in kind.__doc__


@pytest.mark.parametrize("counts", ["noisy", "exact"])
@pytest.mark.parametrize("kind", [ExactKdtree, partial(ExactKdtree, prune=30.0), partial(ExactTunedGrid, sides=(2, 8, 16))])
@pytest.mark.parametrize("entropy", [Entropy.system(), Entropy.seeded(1)], ids=["system", "seeded"])
def test_its_releases_say_so_everywhere_and_refuse_to_be_published(kind, counts, entropy):
    release = kind(counts=counts).release(POINTS, PureBudget("0.5"), entropy)
    assert not release.receipt.private
    assert repr(release).endswith("NOT PRIVATE)")
    with pytest.raises(RefusedError, match=r"NOT PRIVATE.*must not be published"):
        release.refuse_unpublishable()
    with pytest.raises(BudgetError, match="NOT PRIVATE: no budget bounds"):
        _ = release.receipt.spent
    assert any(note.startswith("NOT PRIVATE") for note in release.receipt.notes)
    assert "the records themselves: NOT PRIVATE" in release.receipt.unprotected
    assert bool(release.receipt.steps) == (counts == "noisy")


CONTRASTS = {
    key: kind for key, kind in {**REFERENCES.of("points"), **REFERENCES.of("trips"), **REFERENCES.of("areas")}.items() if not kind.spends
}
AREAS = areas_of(regular(2, 3), [12, 3, 0, 7, 1, 40])
TRIPS = trip_counts_of(regular(2, 2), {(0, 1): 12, (1, 3): 3, (2, 0): 40})


def contrast(key: str, entropy: Entropy) -> PointRelease | TripRelease:
    data = TRIPS if key in REFERENCES.of("trips") else AREAS if key in REFERENCES.of("areas") else POINTS
    return CONTRASTS[key]().release(data, PureBudget(1), entropy)


@pytest.mark.parametrize("key", CONTRASTS)
def test_a_contrast_spends_nothing_says_why_it_is_not_private_and_is_refused_wherever_something_is_published(key, tmp_path):
    release = contrast(key, Entropy.system())
    assert repr(release).endswith(", NOT PRIVATE)")
    assert "epsilon" not in repr(release)
    assert release.receipt.steps == ()
    assert release.receipt.notes[0] == f"NOT PRIVATE: {CONTRASTS[key].attack}"
    for refused in (release.refuse_unpublishable, lambda: describe(release, WORDS)):
        with pytest.raises(RefusedError, match="NOT PRIVATE"):
            refused()
    with pytest.raises(RefusedError, match="NOT PRIVATE"):
        write_release(release, tmp_path / "out", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", CONTRASTS)
def test_a_contrast_states_no_noise_and_so_no_interval_of_width_zero(key):
    release = contrast(key, Entropy.seeded(1))
    assert not release.states_noise
    if isinstance(release, TripRelease):
        table, ends = release.stage(2), release.stage_interval(2, joint=True)
        assert table[["stddev", "ci_low", "ci_high"]].isna().all().all()
    elif isinstance(release, AreaRelease):
        ends = release.interval(2, joint=True)
        assert release.to_frame(2)[["stddev", "ci_low", "ci_high"]].isna().all().all()
        assert np.isnan(release.answer_interval([release.regions.ids_of(1)[0]])).all()
    else:
        ends = release.node_interval(release.tree.leaves, joint=True)
        assert np.isnan(release.node_stddev).all()
        assert np.isnan(release.answer_interval([release.domain.bounds])).all()
    assert np.isnan(ends).all()
    assert verdict(release).headline == "NOT PRIVATE: this method states no noise, so that no level can be judged."
    assert "unknown" not in release._repr_html_()
    assert np.isnan([level.stddev for level in CONTRASTS[key]().level_errors(release)]).all()


@pytest.mark.slow
@pytest.mark.parametrize("key", CONTRASTS)
def test_the_audit_catches_every_contrast(key):
    runs = 400 if key in ("rounded_counts", "rounded_areas") else 100  # random rounding hides a record in one run out of three
    assert not audit(CONTRASTS[key](), runs=runs).passed


def test_splits_are_exact_medians():
    tree, columns = released(height=3).tree, np.repeat(POINTS.column, POINTS.count)
    uneven = np.abs((columns[:, None] < np.arange(1, 16)).sum(axis=0) - len(columns) / 2)
    assert uneven[tree.east[1] - 1] == uneven.min()
    np.testing.assert_array_equal(released(height=3).tree.rectangles(), tree.rectangles())


def test_exact_counts_are_exact_without_any_step_and_noisy_ones_spend_the_whole_budget():
    exact = released(counts="exact", height=3)
    np.testing.assert_array_equal(exact.count, exact.tree.sums(POINTS.column, POINTS.row, POINTS.count))
    assert (exact.node_stddev == 0).all()
    noisy = released(counts="noisy", height=3)
    assert noisy.receipt.used == Fraction("0.5")
    assert (noisy.node_stddev > 0).all()
    assert (noisy.noisy != released(counts="noisy", height=3).noisy).any()


@pytest.mark.parametrize("counts", ["noisy", "exact"])
@pytest.mark.parametrize(("records", "order"), [(0, 1), (1, 3)])
def test_it_works_on_no_one_on_one_record_and_on_the_smallest_lattice(counts, records, order):
    points = PointCounts.from_xy([0.3] * records, [0.4] * records, domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=order))
    release = released(points=points, counts=counts, height=12)
    assert release.tree.height == order
    assert release.tree.cells[release.tree.leaves].sum() == 4**order
    if counts == "exact":
        assert release.count[0] == records


def test_another_kind_of_budget_is_refused_and_no_part_of_the_right_one_is_shown_as_paying_for_splits():
    for budget in (ApproxBudget(1, "1e-6"), 0.5):
        with pytest.raises(BudgetError, match=r"PureBudget\(epsilon\)"):
            ExactKdtree().release(POINTS, budget, Entropy.seeded(1))
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=24)
    ExactKdtree(height=12).check(domain)
    assert [(part.share, part.structure) for part in ExactKdtree().shares(domain)] == [(1.0, False)]


def test_without_noise_the_best_grid_is_the_finest_one():
    fine = PointCounts.from_matrix(np.kron(np.eye(32, dtype=int) * 50, np.eye(2, dtype=int)))
    for counts, least, most in (("exact", 64, 64), ("noisy", 2, 8)):
        mechanism = ExactTunedGrid(counts=counts, sides=(2, 8, 64))
        leaves = [len(mechanism.release(fine, PureBudget("0.01"), Entropy.seeded(seed)).tree.leaves) for seed in range(5)]
        assert least**2 <= min(leaves) <= max(leaves) <= most**2
