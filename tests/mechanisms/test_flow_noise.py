"""The noise that trip mechanisms really draw: of the stated law at every stage, fresh for every node, on all children."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpviz.mechanisms import FlatGaussian, StabilityHistogram, TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from tests.flow_cases import children_of, flows_of, noise_of, random_flows, regular, trips_of
from tests.laws import SEEDED, bins, gaussian_below, laplace_below, p_value
from tests.often import often

CROWDED = dict.fromkeys(product(range(4), repeat=2), 50_000)


def weights(neighbours: str) -> tuple[float, ...]:
    return (5.0, 1.0, 2.0, 4.0, 3.0)[: 4 if neighbours == "bounded" else 5]


def p_of_gaussian(draws: np.ndarray, variance: float) -> float:
    sigma = float(variance) ** 0.5
    return p_value(draws, lambda k: gaussian_below(k, sigma), bins(lambda k: gaussian_below(k, sigma), sigma, 20))


def assert_gaussian(draws: np.ndarray, variance: float) -> None:
    """The law fits, and the same look at the draws refuses half and twice the variance."""
    assert p_of_gaussian(draws, variance) > SEEDED
    assert draws.var() == pytest.approx(variance, rel=5 * (2 / len(draws)) ** 0.5)
    for wrong in (variance / 2, variance * 2):
        assert p_of_gaussian(draws, wrong) < SEEDED
        assert draws.var() != pytest.approx(wrong, rel=5 * (2 / len(draws)) ** 0.5)


@pytest.mark.parametrize(
    ("bound", "neighbours", "split"),
    often(product((1, 3), ("bounded", "add_remove"), ("uniform", "custom")), [(1, "bounded", "uniform"), (3, "add_remove", "custom")]),
)
def test_every_stage_of_top_down_has_noise_of_the_variance_that_its_share_buys(bound, neighbours, split):
    who = {"contributions": bound, "unit": "person", "exactly": neighbours == "bounded"} if bound > 1 else {}
    flows, rho = flows_of(regular(2, 2), CROWDED, **who), Fraction("0.1")
    parts = weights(neighbours) if split == "custom" else (1.0,) * len(weights(neighbours))
    mechanism = TopDown(neighbours=neighbours, split=split, weights=parts if split == "custom" else ())
    releases = [mechanism.release(flows, ZcdpBudget(rho), entropy) for entropy in Entropy.seeded(bound).spawn(400)]
    first = 5 - len(parts)
    for stage in range(first, 5):
        assert all(len(release.stages[stage].count) == release.tree.size(stage) for release in releases)
        stated = (2 if neighbours == "bounded" else 1) * bound**2 / (2 * float(rho) * parts[stage - first] / sum(parts))
        assert releases[0].stages[stage].variance == pytest.approx(stated, rel=1e-6)
        assert float(releases[0].receipt.steps[stage - first].scale) == pytest.approx(stated, rel=1e-6)
        assert_gaussian(np.concatenate([noise_of(release, flows, stage) for release in releases]), stated)


@pytest.mark.parametrize("bound", [1, 3])
@pytest.mark.parametrize("neighbours", ["bounded", "add_remove"])
def test_the_flat_gaussian_has_noise_of_the_variance_that_rho_buys(bound, neighbours):
    who = {"contributions": bound, "unit": "person", "exactly": neighbours == "bounded"} if bound > 1 else {}
    flows, rho = flows_of(regular(2, 2), CROWDED, **who), Fraction("0.1")
    releases = [
        FlatGaussian(neighbours=neighbours).release(flows, ZcdpBudget(rho), entropy) for entropy in Entropy.seeded(bound).spawn(200)
    ]
    stated = (2 if neighbours == "bounded" else 1) * bound**2 / (2 * float(rho))
    assert releases[0].stages[-1].variance == pytest.approx(stated, rel=1e-6)
    assert_gaussian(np.concatenate([noise_of(release, flows, 4) for release in releases]), stated)


@pytest.mark.parametrize(("neighbours", "scale"), [("bounded", 20.0), ("add_remove", 10.0)])
def test_the_stability_histogram_has_laplace_noise_of_the_stated_scale(neighbours, scale):
    flows, mechanism = flows_of(regular(2, 2), CROWDED), StabilityHistogram(neighbours=neighbours)
    releases = [mechanism.release(flows, ApproxBudget("0.1", "1e-8"), entropy) for entropy in Entropy.seeded(2).spawn(200)]
    draws = np.concatenate([noise_of(release, flows, 4) for release in releases])
    assert releases[0].receipt.steps[0].scale == scale
    for factor, holds in ((1, True), (0.5, False), (2, False)):
        wrong = factor * scale
        found = p_value(
            draws, lambda k, wrong=wrong: laplace_below(k, wrong), bins(lambda k, wrong=wrong: laplace_below(k, wrong), wrong, 20)
        )
        assert (found > SEEDED) == holds
    assert draws.var() == pytest.approx(releases[0].stages[4].variance, rel=5 * (5 / len(draws)) ** 0.5)


@pytest.mark.parametrize("mechanism", [TopDown(), TopDown(neighbours="add_remove", tree="origin"), FlatGaussian(), StabilityHistogram()])
def test_noise_is_drawn_afresh_for_every_node_of_every_stage(mechanism):
    flows, runs = flows_of(regular(2, 2), CROWDED), 500
    first = 4 if mechanism.key != "top_down" else 0 if mechanism.neighbours == "add_remove" else 1
    budget = ApproxBudget("0.5", "1e-8") if mechanism.key == "stability_histogram" else ZcdpBudget("0.005")
    releases = [mechanism.release(flows, budget, entropy) for entropy in Entropy.seeded(3).spawn(runs)]
    draws = np.array([np.concatenate([noise_of(release, flows, stage) for stage in range(first, 5)]) for release in releases])
    for values in (draws, np.abs(draws)):
        correlation = np.corrcoef(values.T) - np.eye(draws.shape[1])
        assert np.abs(correlation).max() < 5.5 / np.sqrt(runs)
    assert len(np.unique(draws, axis=0)) == runs


def test_large_noise_hardly_ever_repeats_within_a_release():
    flows = flows_of(regular(8, 8), {pair: 10**12 for pair in product(range(64), repeat=2) if sum(pair) < 60})
    release = TopDown().release(flows, ZcdpBudget("1e-11"), Entropy.system())
    draws = np.concatenate([noise_of(release, flows, stage) for stage in range(1, 5)])
    assert len(np.unique(draws)) > 0.99 * len(draws) > 1000


MEASURING = {
    "default": TopDown(),
    "origins first": TopDown(tree="origin"),
    "dial": TopDown(dial=1.5),
    "add or remove": TopDown(neighbours="add_remove"),
    "least squares": TopDown(optimiser="euclidean"),
}


@pytest.mark.parametrize("variant", MEASURING)
@pytest.mark.parametrize("seed", range(5))
def test_all_children_of_released_nodes_and_no_others_are_measured_whether_or_not_trips_lie_there(variant, seed):
    flows = random_flows(np.random.default_rng(seed), regular(3, 4), pairs=12)
    release = MEASURING[variant].release(flows, ZcdpBudget("0.02"), Entropy.seeded(seed))
    counts = {step.level: step.counts for step in release.receipt.steps}
    for stage in range(1, 5):
        above, at = release.stages[stage - 1], release.stages[stage]
        parents = zip(above.origin.tolist(), above.destination.tolist(), strict=True)
        children = [child for parent in parents for child in children_of(release.tree, stage, parent)]
        assert at.measured == counts[stage] == len(children)
        released = list(zip(at.origin.tolist(), at.destination.tolist(), strict=True))
        places = [children.index(pair) for pair in released]
        assert places == sorted(places)
    false = release.stages[4].count[noise_of(release, flows, 4) == release.stages[4].noisy]
    assert len(false) > 0, "empty pairs must be measured, too"


def test_which_numbers_are_measured_says_nothing_about_trips_elsewhere():
    """With the same stage 1 numbers, stage 2 measures the same pairs: here under a node that has no trips at all."""
    regions, budget = regular(2, 2), ZcdpBudget("0.001")
    for seed in range(10):
        one, other = (TopDown().release(flows_of(regions, {pair: 40}), budget, Entropy.seeded(seed)).stages for pair in ((0, 0), (3, 1)))
        assert one[1].noisy.tolist() == other[1].noisy.tolist()
        assert [at.measured for at in one[:3]] == [at.measured for at in other[:3]]


@pytest.mark.parametrize("trips", [0, 1, 10_000])
def test_the_flat_gaussian_measures_every_pair_whatever_the_trips(trips):
    release = FlatGaussian().release(trips_of(trips), ZcdpBudget("0.1"), Entropy.seeded(1))
    assert release.stages[-1].measured == release.tree.size(4) == release.receipt.steps[0].counts
    assert release.every_pair
    assert all(np.isinf(at.variance) for at in release.stages[:-1])


def test_the_stability_histogram_keeps_the_number_of_pairs_with_trips_to_itself():
    release = StabilityHistogram().release(trips_of(10_000), ApproxBudget(1, "1e-6"), Entropy.seeded(1))
    assert release.receipt.steps[0].counts is None
    assert release.stages[-1].measured == len(release.stages[-1].count)
