"""Every mechanism stays within its declared epsilon as far as an attacker can tell; mechanisms with planted faults do not."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpviz.errors import BudgetError, SettingError
from dpviz.evaluation.audits import EPSILON, audit, audit_all, audit_budget, audit_targets, gaussian_targets
from dpviz.mechanisms import (
    MECHANISMS,
    Dawa,
    ExactKdtree,
    FlatGaussian,
    Identity,
    PrivTree,
    Quadtree,
    StabilityHistogram,
    TopDown,
    Tuned,
    TunedGrid,
    UniformGrid,
)
from dpviz.mechanisms import run as measure
from dpviz.mechanisms.audit import Added
from dpviz.mechanisms.points import dawa, kdtree, path_tree, privtree
from dpviz.mechanisms.points.median_tree import MedianTree
from dpviz.privacy import smooth
from dpviz.privacy.audit import AuditPlan, audit_neighbours
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.consistency import Spread
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import exact_medians
from dpviz.privacy.node_values import move_inside
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace, rounded_laplace
from tests.often import named, often

SIMPLE = ("identity", "uniform_grid", "quadtree")
LEVELS = Quadtree(split="uniform", least_squares=False)


@pytest.mark.parametrize(
    ("key", "runs", "least"), [("identity", 300, 0.4), *(pytest.param(key, 2000, 0.75, marks=pytest.mark.long) for key in SIMPLE)]
)
def test_much_of_the_epsilon_of_simple_mechanisms_is_seen(key, runs, least):
    found = audit(key, runs=runs)
    assert least * EPSILON <= found.lower_bound <= EPSILON
    assert found.passed


QUICK = ("quadtree", "privelet", "stability_histogram")


@pytest.mark.parametrize(
    "keys", [QUICK, pytest.param((*MECHANISMS.of("points"), *MECHANISMS.of("trips")), marks=pytest.mark.long)], ids=["some", "all"]
)
def test_mechanisms_pass_a_short_audit(keys):
    rows, defaults = [], {key: audit_targets()[key] for key in keys}
    table = audit_all(defaults, plan=AuditPlan(runs=100), progress=lambda done, of, name: rows.append(f"{done} of {of}: {name}"))
    assert table["passed"].all()
    assert set(table["tests"]) == {len(table)}
    assert table["mechanism"].tolist() == [*keys]
    assert rows[0] == f"1 of {len(table)}: {table['mechanism'][0]}"
    assert len(rows) == len(table)


@pytest.mark.benchmark
@pytest.mark.timeout(900)
def test_every_mechanism_and_variant_passes_a_long_audit_that_sees_much_of_what_plain_counts_spend():
    table = audit_all(plan=AuditPlan(runs=500)).set_index("mechanism")
    assert table["passed"].all()
    assert set(table["tests"]) == {len(audit_targets())}
    assert (table.loc[[*SIMPLE, "uniform_grid of 4"], "lower_bound"] > 0.4 * EPSILON).all()
    assert table.loc["stability_histogram, add or remove", "lower_bound"] > 0.5 * EPSILON


def halved(counts, budget, entropy, sensitivity=1):
    return discrete_laplace(counts, PureBudget(budget.epsilon * 2), entropy, sensitivity)


def halved_gaussian(counts, budget, entropy, squared_sensitivity=1):
    return discrete_gaussian(counts, ZcdpBudget(budget.rho * 4), entropy, squared_sensitivity)


def all_of_epsilon(counts, budget, entropy, sensitivity=1):
    """Every step's noise as if it had all of epsilon: it is spent again and again."""
    return discrete_laplace(counts, PureBudget(EPSILON), entropy, sensitivity)


def unspent(counts, budget, entropy, sensitivity=1):
    """No noise at all."""
    return counts.copy()


def an_eighth(counts, budget, entropy, sensitivity=1):
    return discrete_laplace(counts, PureBudget(budget.epsilon * 8), entropy, sensitivity)


def siblings_share(counts, budget, entropy, sensitivity=1):
    """The first two counts of a step have one draw."""
    noisy = discrete_laplace(counts, budget, entropy, sensitivity)
    noisy[1:2] = counts[1:2] + (noisy - counts)[:1]
    return noisy


def path_shares():
    """Noise whose draw of the root is used again for the first node of each level below."""
    last = np.zeros(1, np.int64)

    def noise(counts, budget, entropy, sensitivity=1):
        noisy = discrete_laplace(counts, budget, entropy, sensitivity)
        if len(counts) == 1:
            last[:] = noisy - counts
        else:
            noisy[0] = counts[0] + last[0]
        return noisy

    return noise


def widened(nodes, budget, entropy, contributions=1, *, outside="nearest"):
    """Smooth medians whose m records are taken to lie in one node: a wider window, and the noise of one record."""
    xi = smooth._xi(budget, 1)
    sensitivity = smooth.smooth_sensitivity(nodes, xi / contributions) * math.exp(xi - xi / contributions)
    noise = rounded_laplace(sensitivity * 2 / float(budget.epsilon), nodes.high.astype(np.int64) - nodes.low, entropy)
    return move_inside(nodes, smooth._medians(nodes)[0] + noise + 1, outside)


def of_fixed_seed(kind):
    """A mechanism whose noise is always the same."""

    class FixedSeed(kind):
        def release(self, data, budget, entropy):
            return super().release(data, budget, Entropy.seeded(5))

    return FixedSeed()


FAULTS = {
    "noise of half the scale, every cell": (measure, "discrete_laplace", halved, Identity(), 150),
    "one draw for two siblings": (measure, "discrete_laplace", siblings_share, Identity(), 150),
    "budget spent on every level again": (measure, "discrete_laplace", all_of_epsilon, Quadtree(), 250),
    "splits without noise, quarters": (privtree, "discrete_laplace", unspent, PrivTree(), 150),
    "a threshold that forgets delta": (StabilityHistogram, "compute_threshold", lambda mechanism, budget: 1, "stability_histogram", 150),
    "noise of half the scale, pairs with trips": (measure, "discrete_laplace", halved, "stability_histogram", 250),
    "one draw for the root and its first child": (measure, "discrete_laplace", path_shares(), LEVELS, 150),
    "budget spent on every step of a path again": (path_tree, "discrete_laplace", all_of_epsilon, "path_tree", 400),
    "partition without noise": (dawa, "discrete_laplace", unspent, Dawa(structure_share=0.85, price=6), 150),
    "noise of an eighth of the scale, partition": (dawa, "discrete_laplace", an_eighth, Dawa(structure_share=0.85, price=6.3), 800),
    "splits without noise, medians": (MedianTree, "median", lambda tree, study, nodes, *_: exact_medians(nodes), "kdtree", 150),
}
"""The first three are planted in the ordinary run."""


@pytest.mark.parametrize("fault", named(FAULTS, 2))
def test_planted_faults_are_caught(monkeypatch, fault):
    where, name, planted, mechanism, runs = fault
    monkeypatch.setattr(where, name, planted)
    found = audit(mechanism, runs=runs)
    assert found.lower_bound > EPSILON * 1.02
    assert not found.passed


@pytest.mark.parametrize("planted", [False, True])
def test_smooth_medians_that_forget_that_a_person_is_in_many_nodes_are_caught(monkeypatch, planted):
    mechanism = audit_targets()["kdtree, smooth-sensitivity"]
    budget = audit_budget(mechanism)
    if planted:
        monkeypatch.setattr(kdtree, "smooth_medians", widened)
    found = audit_neighbours("kdtree", mechanism.audit_pairs(budget)[-1:], budget, AuditPlan(runs=200))
    assert found.passed != planted
    assert found.lower_bound > EPSILON * 1.1 or not planted


@pytest.mark.parametrize(("mechanism", "runs"), often([(FlatGaussian(), 1000), (TopDown(), 1500)], 1))
def test_gaussian_noise_of_half_the_scale_is_caught(monkeypatch, mechanism, runs):
    """On one pair of inputs, where it shows."""
    budget = audit_budget(mechanism)
    monkeypatch.setattr(measure, "discrete_gaussian", halved_gaussian)
    found = audit_neighbours(mechanism.key, mechanism.audit_pairs(budget)[:1], budget, AuditPlan(runs=runs))
    assert found.lower_bound > EPSILON
    assert not found.passed


@pytest.mark.parametrize("kind", [Identity, FlatGaussian])
def test_a_fixed_seed_is_caught_and_said_to_repeat(kind):
    found = audit(of_fixed_seed(kind), runs=100)
    assert found.repeated
    assert found.lower_bound > EPSILON
    assert not found.passed


@pytest.mark.parametrize("mechanism", [TunedGrid(sides=(8,)), Tuned(tune="grid size", values=(8,)), Quadtree(), UniformGrid()])
def test_more_nodes_than_are_looked_at_are_not_said_to_repeat(monkeypatch, mechanism):
    """Of more than 40 nodes only a path is seen, whose few noises do come again."""
    monkeypatch.setattr(type(mechanism), "audit_inputs", (Added.to_cells(order=3, occupied=((0, 0, 20),)),))
    found = audit(mechanism, runs=100)
    assert (found.repeated, found.passed) == (False, True)


@dataclass(frozen=True, kw_only=True)
class Telling(Identity):
    """Right counts of noise, beside something that shows how many records there are."""

    where: str

    def release(self, points, budget, entropy):
        made, total = super().release(points, budget, entropy), int(points.blocks(0).sum())
        shown = {
            "settings": {**made.settings, "n": total},
            "text in settings": {**made.settings, "name": f"{total} records"},
            "height": made.height + total,
            "fill": "interpolated" if total % 2 else "uniform",
            "approximate": f"as of {total} records",
            "notes": replace(made.receipt, notes=(f"{total} records",)),
            "spread": Spread(share=np.zeros(len(made.tree)), slack=np.zeros(len(made.tree)), root=100.0 + total),
        }[self.where]
        field = {"text in settings": "settings", "notes": "receipt"}.get(self.where, self.where)
        return replace(made, **{field: shown})


@pytest.mark.parametrize("where", ["settings", "text in settings", "height", "fill", "approximate", "notes", "spread"])
def test_what_a_manifest_shows_beside_counts_is_seen(where, monkeypatch):
    monkeypatch.setattr(Identity, "audit_inputs", (Added.to_cells(order=1),))
    found = audit(Telling(where=where), runs=100)
    assert found.lower_bound > EPSILON * 1.1
    assert not found.passed


@pytest.mark.slow
def test_references_that_are_not_private_are_caught():
    assert not audit(ExactKdtree(), runs=100).passed


def test_a_mechanism_may_be_given_by_key_by_variant_or_by_itself(monkeypatch):
    for kind in (Identity, UniformGrid):
        monkeypatch.setattr(kind, "audit_inputs", (Added.to_cells(order=1),))
    by_key, by_itself = (audit(given, runs=100) for given in ("identity", Identity()))
    assert by_key == by_itself
    assert audit("uniform_grid of 4", runs=100).mechanism == "uniform_grid of 4"
    with pytest.raises(SettingError, match="quadtree"):
        audit("quad", runs=200)


def test_the_budget_is_of_the_kind_that_a_mechanism_takes(monkeypatch):
    assert audit_budget(Quadtree()) == PureBudget(2)
    assert audit_budget(Quadtree(), "1/2") == PureBudget("1/2")
    assert audit_budget(TopDown(), 1) == ApproxBudget(1, "0.03")
    monkeypatch.setattr(FlatGaussian, "audit_pairs", lambda *given, real=FlatGaussian.audit_pairs: real(*given)[:1])
    found = audit(FlatGaussian(), budget=ZcdpBudget("0.2"), runs=100)
    assert (found.delta, found.passed) == (0.01, True)
    with pytest.raises(BudgetError):
        audit("path_tree", budget=ZcdpBudget(1), runs=200)


def test_gaussian_noise_is_audited_with_a_delta(monkeypatch):
    assert {audit_targets()[name].key for name in gaussian_targets()} >= {"identity", "quadtree", "flat"}
    monkeypatch.setattr(Identity, "audit_inputs", Identity.audit_inputs[:1])
    alone, listed = (
        audit("identity, Gaussian noise", runs=100),
        audit_all({"identity, Gaussian noise": Identity()}, plan=AuditPlan(runs=100)),
    )
    assert (alone.epsilon, alone.delta, alone.passed) == (2.0, 0.03, True)
    assert listed[["epsilon", "delta", "lower_bound"]].values.tolist() == [[2.0, 0.03, alone.lower_bound]]


@pytest.mark.slow
def test_two_processes_find_what_one_finds():
    some = {"identity": Identity(), "quadtree": Quadtree()}
    one, two = (audit_all(some, plan=AuditPlan(runs=100), processes=processes) for processes in (1, 2))
    assert one.equals(two)


@pytest.mark.parametrize("key", [*MECHANISMS.of("points"), *MECHANISMS.of("trips")])
def test_every_mechanism_that_takes_several_records_is_audited_on_a_person_in_several_cells(key):
    mechanism = audit_targets()[key]
    pairs = mechanism.audit_pairs(audit_budget(mechanism))
    persons = [pair.words for pair in pairs if pair.words.startswith("a person's")]
    spread = [words for words in persons if "records in 1 of" not in words]
    assert bool(spread) == (key != "stability_histogram")
