"""How good the fitted tree must be, on the six sets of the InfTDA paper and on a made-up country; used by slow tests and benchmarks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpviz.arrays import Floats
from dpviz.data.trips import TripCounts
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms import FittedTree, FlatGaussian, StabilityHistogram, TopDown, TripMechanism
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.trips import synthetic_trips

SETS = tuple(product(("binary", "random"), ("complete", "dense", "sparse")))
EPSILONS = ("0.1", "1", "10")
PUBLISHED = {  # leaf maximum error of InfTDA at each epsilon, mean of the runs that its authors published with their code
    ("binary", "complete"): (873.9, 138.8, 19.3),
    ("binary", "dense"): (825.6, 142.4, 19.0),
    ("binary", "sparse"): (847.2, 132.2, 16.8),
    ("random", "complete"): (990.9, 130.0, 17.1),
    ("random", "dense"): (898.3, 121.8, 16.3),
    ("random", "sparse"): (690.4, 117.1, 15.2),
}
JUDGED = {"fitted_tree": FittedTree(), "top_down": TopDown(), "flat_gaussian": FlatGaussian(), "stability": StabilityHistogram()}
"""What the bars compare."""
BESIDE = {"list of 5 %": FittedTree(false_discovery=0.05), "flat, exact": FlatGaussian(accounting="exact")}
"""What the tables of benchmarks have beside it."""
MOST_MEAN, MOST_LEAF, MOST_OF_SIMPLE, MOST_OF_TOP_DOWN = 0.36, 0.47, 1.15, 1.25


@dataclass(frozen=True, kw_only=True)
class Case:
    """One set at one epsilon: (T + 1,) mean maximum errors of each mechanism's stages, by name, and the published leaf error."""

    name: str
    errors: dict[str, Floats]
    published: float

    @property
    def leaf(self) -> float:
        """The leaf error over the published one."""
        return float(self.errors["fitted_tree"][-1]) / self.published

    def over(self, *keys: str) -> Floats:
        """(g,) errors of the levels, less 1, over the smallest error of these mechanisms."""
        return (self.errors["fitted_tree"][2::2] - 1) / np.min([self.errors[key][2::2] for key in keys], axis=0)

    @property
    def over_simple(self) -> Floats:
        return self.over("flat_gaussian", "stability")

    @property
    def over_top_down(self) -> Floats:
        return self.over("top_down")


def mean_errors(mechanism: TripMechanism, trips: TripCounts, budget: ApproxBudget, runs: int) -> Floats:
    """(T + 1,) mean over the runs of the maximum error of each stage."""
    releases = (mechanism.release(trips, budget, entropy) for entropy in Entropy.seeded(7).spawn(runs))
    return np.mean([evaluate_trips(release, trips).by_stage["max_error"] for release in releases], axis=0)


def cases(runs: int, mechanisms: Mapping[str, TripMechanism] = JUDGED) -> Iterator[Case]:
    for name in SETS:
        trips = synthetic_trips(*name)
        for epsilon, published in zip(EPSILONS, PUBLISHED[name], strict=True):
            budget = ApproxBudget(epsilon, "1e-8")
            errors = {each: mean_errors(mechanism, trips, budget, runs) for each, mechanism in mechanisms.items()}
            yield Case(name=f"{' '.join(name)}, epsilon {epsilon}", errors=errors, published=published)
