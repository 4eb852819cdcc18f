"""The noise that trip mechanisms really draw: of the stated law at every stage, and fresh for every node."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from dpviz.mechanisms import FlatGaussian, StabilityHistogram, TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from tests.laws import SEEDED, bins, gaussian_below, laplace_below, p_value
from tests.often import often
from tests.trip_cases import noise_of, person, regular, trip_counts_of

CROWDED = dict.fromkeys(product(range(4), repeat=2), 50_000)
RHO, RUNS = Fraction("0.1"), 400


def assert_noise(draws: np.ndarray, below: Callable, scale: float) -> None:
    """(runs, nodes) noise follows a law of this scale and none of half or twice the scale."""
    for factor in (1, 0.5, 2):
        law = partial(below, **{"sigma" if below is gaussian_below else "scale": factor * scale})
        assert (p_value(draws.ravel(), law, bins(law, factor * scale, 20)) > SEEDED) == (factor == 1)


def assert_fresh(draws: np.ndarray) -> None:
    """(runs, nodes) noise is drawn for every node and run on its own."""
    for values in (draws, np.abs(draws)):
        correlation = np.corrcoef(values.T) - np.eye(draws.shape[1])
        assert np.abs(correlation).max() < 5.5 / np.sqrt(len(draws))
    assert len(np.unique(draws, axis=0)) == len(draws)


UNEVEN = {"split": "custom", "weights": (5.0, 1.0, 2.0, 4.0)}
MORE = {"split": "custom", "weights": (5.0, 1.0, 2.0, 4.0, 3.0), "neighbours": "add_remove"}
USUAL = [(TopDown(), 1), (TopDown(tree="origin", **MORE), 3), (FlatGaussian(), 1), (FlatGaussian(neighbours="add_remove"), 3)]
MEASURED = [*dict(USUAL), TopDown(neighbours="add_remove"), TopDown(**UNEVEN)]


@pytest.mark.parametrize(("mechanism", "bound"), often(product(MEASURED, (1, 3)), USUAL))
def test_every_measured_stage_has_fresh_noise_of_the_variance_that_its_share_of_rho_buys(mechanism, bound):
    trips = trip_counts_of(regular(2, 2), CROWDED, **person(mechanism.neighbours, bound))
    releases = [mechanism.release(trips, ZcdpBudget(RHO), entropy) for entropy in Entropy.seeded(bound).spawn(RUNS)]
    first, distance = (1, 2 * bound**2) if mechanism.neighbours == "bounded" else (0, bound**2)
    first = first if isinstance(mechanism, TopDown) else 4
    parts = getattr(mechanism, "weights", ()) or (1.0,) * (5 - first)
    draws = []
    for stage, part, step in zip(range(first, 5), parts, releases[0].receipt.steps, strict=True):
        assert all(len(release.stages[stage].count) == release.tree.size(stage) for release in releases)
        stated = distance / (2 * float(RHO) * part / sum(parts))
        assert releases[0].stages[stage].variance == pytest.approx(stated, rel=1e-6)
        assert float(step.scale) == pytest.approx(stated, rel=1e-6)
        draws.append(np.array([noise_of(release, trips, stage) for release in releases]))
        assert_noise(draws[-1], gaussian_below, stated**0.5)
        assert draws[-1].var() == pytest.approx(stated, rel=5 * (2 / draws[-1].size) ** 0.5)
    assert_fresh(np.hstack(draws))


@pytest.mark.parametrize(("neighbours", "scale"), [("bounded", 20.0), ("add_remove", 10.0)])
def test_the_stability_histogram_has_fresh_laplace_noise_of_the_stated_scale(neighbours, scale):
    trips, mechanism = trip_counts_of(regular(2, 2), CROWDED), StabilityHistogram(neighbours=neighbours)
    releases = [mechanism.release(trips, ApproxBudget("0.1", "1e-8"), entropy) for entropy in Entropy.seeded(2).spawn(RUNS)]
    draws = np.array([noise_of(release, trips, 4) for release in releases])
    assert releases[0].receipt.steps[0].scale == scale
    assert_noise(draws, laplace_below, scale)
    assert_fresh(draws)
    assert draws.var() == pytest.approx(releases[0].stages[4].variance, rel=5 * (5 / draws.size) ** 0.5)
