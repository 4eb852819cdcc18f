"""TopDown against a slow Algorithm 1, what its settings do, and where its budget goes."""

from fractions import Fraction

import numpy as np
import pytest

from dpviz.data.flows import Flows
from dpviz.errors import BudgetError, SettingError
from dpviz.mechanisms import TopDown
from dpviz.mechanisms import noisy_flows as flow_measure
from dpviz.privacy.allocation import stage_weights
from dpviz.privacy.budget import GRAIN, ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.false_positives import discovery_threshold, stddev_threshold
from dpviz.privacy.noise import discrete_gaussian
from dpviz.privacy.whole_numbers import nearest_whole_numbers
from dpviz.space.pair_tree import PairTree
from tests.flow_cases import children_of, flows_of, random_flows, random_regions, regular, released_at, sums_between, trips_of
from tests.often import often

RHO = ZcdpBudget("0.05")


class Recorder:
    """The true noise, and a list of all of it."""

    def __init__(self) -> None:
        self.noise: list[int] = []

    def __call__(self, counts, *rest):
        noisy = discrete_gaussian(counts, *rest)
        self.noise += (noisy - counts).tolist()
        return noisy


def slow_stages(mechanism: TopDown, flows: Flows, noise: list[int], variances: list[Fraction]) -> list[dict[tuple[int, int], int]]:
    """Algorithm 1 (and 3), one node at a time: released pairs of every stage, with zeros dropped; `noise` is used up in order."""
    tree = PairTree(origins=flows.regions, destinations=flows.ends, first=mechanism.tree)
    left, total = iter(noise), int(flows.count.sum())
    if mechanism.neighbours == "add_remove":
        total = max(total + next(left), 0)
    stages = [{(0, 0): total} if total else {}]
    for stage in range(1, tree.height + 1):
        true, noisy = sums_between(flows, tree.levels(stage)), {}
        for parent in stages[-1]:
            noisy[parent] = [(child, true.get(child, 0) + next(left)) for child in children_of(tree, stage, parent)]
        released: dict[tuple[int, int], int] = {}
        least = slow_threshold(mechanism, [value for family in noisy.values() for _, value in family], variances[stage])
        for parent, family in noisy.items():
            least_here = min(least, max(value for _, value in family))
            believed = [(child, value) for child, value in family if value >= least_here]
            released |= slow_family(mechanism, believed, stages[-1][parent])
        order = {child: place for place, child in enumerate(child for family in noisy.values() for child, _ in family)}
        stages.append({child: released[child] for child in sorted(released, key=order.get) if released[child]})
    assert next(left, None) is None
    return stages


def slow_family(mechanism: TopDown, family: list[tuple[tuple[int, int], int]], total: int) -> dict[tuple[int, int], int]:
    order = "ascending" if mechanism.lowered == "smallest" else "descending"
    values = np.array([value for _, value in family], np.int64)
    found = nearest_whole_numbers(values, total=total, distance=mechanism.optimiser, order=order)
    return {child: int(value) for (child, _), value in zip(family, found, strict=True)}


def slow_threshold(mechanism: TopDown, noisy: list[int], variance: Fraction) -> float:
    if mechanism.dial:
        return stddev_threshold(variance, mechanism.dial)
    if mechanism.false_discovery is not None:
        return discovery_threshold(np.array(noisy, np.int64), variance, mechanism.false_discovery)
    return -np.inf


VARIANTS = {
    "default": TopDown(),
    "origins first": TopDown(tree="origin"),
    "add or remove": TopDown(neighbours="add_remove"),
    "least squares": TopDown(optimiser="euclidean"),
    "largest lowered": TopDown(lowered="largest", tree="origin"),
    "levels": TopDown(split="levels"),
    "dial": TopDown(dial=1.3),
    "false discovery": TopDown(false_discovery=0.3, tree="origin"),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", often(range(6), [1, 2, 5]))
def test_it_is_algorithm_1_node_by_node(monkeypatch, variant, seed):
    rng, recorder, mechanism = np.random.default_rng(seed), Recorder(), VARIANTS[variant]
    depth = 1 + seed % 3
    origins = random_regions(rng, depth, 4, "from ")
    destinations = random_regions(rng, depth, 3, "to ") if seed % 2 else None
    flows = random_flows(rng, origins, destinations, most=60)
    monkeypatch.setattr(flow_measure, "discrete_gaussian", recorder)
    release = mechanism.release(flows, RHO, Entropy.seeded(seed))
    assert release.tree.first == mechanism.tree
    variances = [Fraction(0)] * (mechanism.neighbours == "bounded") + [step.scale for step in release.receipt.steps]
    for stage, released in enumerate(slow_stages(mechanism, flows, recorder.noise, variances)):
        assert list(released_at(release, stage).items()) == list(released.items())
    assert len({int(at.count.sum()) for at in release.stages}) == 1
    if mechanism.neighbours == "bounded":
        assert release.stages[0].count.tolist() == [flows.count.sum()]


def rates(mechanism: TopDown, flows: Flows, rho: ZcdpBudget = RHO) -> tuple[float, float]:
    """False discovery rate and false negative rate of pairs of leaves over many runs."""
    true, false, released, missed, runs = sums_between(flows, (flows.regions.depth,) * 2), 0, 0, 0, 20
    for entropy in Entropy.seeded(9).spawn(runs):
        pairs = released_at(mechanism.release(flows, rho, entropy), 2 * flows.regions.depth)
        released += len(pairs)
        false += len(pairs.keys() - true.keys())
        missed += len(true.keys() - pairs.keys())
    return false / max(released, 1), missed / (len(true) * runs)


@pytest.fixture(scope="module")
def sparse() -> Flows:
    return random_flows(np.random.default_rng(5), regular(5, 6), pairs=60, most=400)


def test_lowering_the_smallest_first_makes_fewer_false_positives_and_the_largest_first_fewer_false_negatives(sparse):
    smallest, largest = (rates(TopDown(lowered=lowered), sparse) for lowered in ("smallest", "largest"))
    assert smallest[0] < largest[0]
    assert smallest[1] > largest[1]


def test_the_dial_lowers_the_false_discovery_rate_step_by_step(sparse):
    found = [rates(TopDown(dial=dial), sparse)[0] for dial in (0.0, 1.0, 2.0, 3.0)]
    assert found[0] > found[1] > found[2] > found[3] - 0.01
    assert found[0] > 1.4 * found[3]


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_aiming_at_a_false_discovery_rate_lowers_it_and_costs_false_negatives(sparse, rate):
    """It is not kept: where no sibling is believed, the parent's trips must go somewhere all the same."""
    budget = ZcdpBudget("0.5")
    without, aimed = rates(TopDown(), sparse, budget), rates(TopDown(false_discovery=rate), sparse, budget)
    assert aimed[0] < 0.75 * without[0]
    assert aimed[1] > without[1]


def test_a_dial_wins_over_an_aim_and_the_steps_say_which_was_used():
    flows = trips_of(500)
    both, dial, aim, none = (
        TopDown(**settings).release(flows, RHO, Entropy.seeded(1))
        for settings in ({"dial": 1.0, "false_discovery": 0.1}, {"dial": 1.0}, {"false_discovery": 0.1}, {})
    )
    for stage in range(5):
        assert released_at(both, stage) == released_at(dial, stage)
    assert both.steps == dial.steps
    assert "1 standard deviations" in dial.steps[0]
    assert "0.1" in aim.steps[0]
    assert len(none.steps) == 2
    assert all(release.steps[-1] == "zeros dropped" for release in (both, aim, none))
    assert all("nearest whole consistent counts (chebyshev" in release.steps[-2] for release in (both, aim, none))


@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
@pytest.mark.parametrize("split", ["uniform", "levels", "custom"])
def test_stage_budgets_are_exact_shares_of_rho_and_the_last_stage_takes_the_remainder(neighbours, split):
    regions, first = regular(3, 2), 1 if neighbours == "bounded" else 0
    custom = tuple(range(1, 6 - first)) if split == "custom" else ()
    mechanism, rho = TopDown(neighbours=neighbours, split=split, weights=custom), Fraction("0.7000000000000001")
    release = mechanism.release(random_flows(np.random.default_rng(1), regions), ZcdpBudget(rho), Entropy.seeded(1))
    sizes = [release.tree.size(stage) for stage in range(first, 5)]
    parts = [Fraction(repr(weight)) for weight in stage_weights(split, sizes, custom=custom)]
    wanted = [rho * (GRAIN * part // sum(parts)) / GRAIN for part in parts]
    wanted[-1] += rho - sum(wanted)
    assert [step.amount for step in release.receipt.steps] == wanted
    assert [step.level for step in release.receipt.steps] == list(range(first, 5))
    assert sum(wanted) == rho
    assert release.stages[0].variance == pytest.approx(0 if first else float(release.receipt.steps[0].scale))


@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
@pytest.mark.parametrize("tree", ["destination", "origin"])
def test_shares_name_every_measured_stage_and_come_back_as_custom_weights(neighbours, tree):
    regions, mechanism = regular(3, 2), TopDown(neighbours=neighbours, tree=tree, split="levels")
    shares = mechanism.shares(regions)
    pairs = PairTree(origins=regions, destinations=regions, first=tree)
    assert [part.label for part in shares] == ["total"] * (neighbours == "add_remove") + [pairs.title(stage) for stage in range(1, 5)]
    assert sum(part.share for part in shares) == pytest.approx(1)
    again = mechanism.with_shares([part.share for part in shares])
    assert (again.split, again.neighbours, again.tree) == ("custom", neighbours, tree)
    assert [part.share for part in again.shares(regions)] == pytest.approx([part.share for part in shares])
    again.check(regions)


@pytest.mark.parametrize("weights", [(), (1, 1, 1), (1, 1, 1, 1, 1), (1, 1, 0, 1), (0.5, 0.2, 0.2, 0.2), (0, 0, 0, 0)])
def test_custom_weights_that_do_not_fit_are_refused_before_anything_is_spent(weights):
    mechanism = TopDown(split="custom", weights=weights)
    for refused in (mechanism.check, mechanism.shares):
        with pytest.raises(BudgetError, match=r"[Cc]ustom|add up"):
            refused(regular(2, 2))
    with pytest.raises(BudgetError, match=r"[Cc]ustom|add up"):
        mechanism.release(trips_of(10), RHO, Entropy.seeded(1))


@pytest.mark.parametrize("optimiser", ["chebyshev", "solver"])
def test_the_solver_finds_the_same_distance_as_the_closed_form_in_every_family(monkeypatch, optimiser):
    recorder, flows = Recorder(), random_flows(np.random.default_rng(2), regular(4, 3), most=40)
    monkeypatch.setattr(flow_measure, "discrete_gaussian", recorder)
    release = TopDown(optimiser=optimiser).release(flows, RHO, Entropy.seeded(2))
    noise, tree = iter(recorder.noise), release.tree
    for stage in range(1, 5):
        true, count = sums_between(flows, tree.levels(stage)), released_at(release, stage)
        for parent, total in released_at(release, stage - 1).items():
            family = children_of(tree, stage, parent)
            noisy = np.array([true.get(child, 0) + next(noise) for child in family])
            found = np.array([count.get(child, 0) for child in family])
            assert found.sum() == total
            assert np.abs(found - noisy).max() == np.abs(nearest_whole_numbers(noisy, total=total) - noisy).max()


def test_groups_too_large_for_the_solver_are_refused_before_anything_is_spent():
    for regions in (regular(100), regular(1, 65)):
        with pytest.raises(SettingError, match=r"solver.* at most 64 parts"):
            TopDown(optimiser="solver").check_data(flows_of(regions, {(0, 0): 5}))


def test_a_hierarchy_of_single_regions_gives_the_total_at_every_stage():
    flows = flows_of(regular(1, 1, 1), {(0, 0): 1234})
    release = TopDown().release(flows, ZcdpBudget("1e-6"), Entropy.seeded(1))
    assert [at.count.tolist() for at in release.stages] == [[1234]] * 7


def test_the_tight_conversion_means_less_noise_than_the_papers():
    flows, budget = trips_of(100), ApproxBudget(1, "1e-8")
    tight, simple = (TopDown(conversion=way).release(flows, budget, Entropy.seeded(1)).stages[-1].variance for way in ("tight", "simple"))
    assert (tight / simple) ** 0.5 == pytest.approx(0.88, abs=0.01)


def test_a_stage_that_is_dragged_to_nothing_keeps_a_little():
    weights = TopDown().with_shares([0.0, 0.25, 0.25, 0.5]).weights
    assert min(weights) == pytest.approx(0.001, rel=0.01)
    assert sum(weights) == pytest.approx(1)
    assert len(TopDown(split="custom", weights=weights).shares(regular(2, 3))) == 4
