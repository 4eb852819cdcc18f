"""A small country's trips, released by TopDown, stage by stage, with both optimisers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd

from dpviz.data.flows import Flows
from dpviz.evaluation.flow_metrics import evaluate_flows
from dpviz.mechanisms.trips.top_down import TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian
from dpviz.privacy.whole_numbers import nearest_whole_numbers
from dpviz.release.flow_release import FlowRelease, PairSums
from dpviz.space.regions import Regions

CHEBYSHEV, EUCLIDEAN = "IntOpt (Chebyshev)", "least squares"
OPTIMISERS = {CHEBYSHEV: "chebyshev", EUCLIDEAN: "euclidean"}
STAGES = 4
DELTA = 1e-6
REPEATS = 12
KINDS = ("right", "false positive", "false negative", "both 0")
FAMILY = (60, 30, 0, 0, 0, 0, 0, 0, 0)
_TOWNS = {
    "North": ("Ash", "Bay", "Cove", "Dale", "East", "Ford"),
    "Middle": ("Glen", "Hill", "Isle", "Jay", "Knoll", "Lake"),
    "South": ("Mill", "Nook", "Oak", "Pond", "Quay", "Rock"),
}
_SEED, _PAIRS = 5, 40


@lru_cache(maxsize=1)
def country() -> Flows:
    """Eighteen towns in three regions; trips between few pairs of towns, most of them within a region."""
    table = pd.DataFrame([{"region": region, "town": town} for region, towns in _TOWNS.items() for town in towns])
    regions = Regions.from_table(table, levels=["region", "town"])
    rng = np.random.default_rng(_SEED)
    towns = table["town"].to_numpy()
    pairs = rng.choice(len(towns) ** 2, _PAIRS, replace=False)
    origin, destination = pairs // len(towns), pairs % len(towns)
    near = np.where(origin // 6 == destination // 6, 4.0, 1.0)
    count = np.ceil(near * (rng.pareto(1.2, _PAIRS) + 0.3) * 25).astype(np.int64)
    trips = pd.DataFrame({"origin": towns[origin], "destination": towns[destination], "count": np.minimum(count, 900)})
    return Flows.from_table(trips, regions=regions)


def released(optimiser: str, epsilon: float, draw: int) -> FlowRelease:
    """One TopDown release; both optimisers get the same stream of noise, and the same noise until their choices part."""
    mechanism = TopDown(optimiser=OPTIMISERS[optimiser])
    return mechanism.release(country(), _budget(epsilon), Entropy.seeded(draw))


@lru_cache(maxsize=32)
def _budget(epsilon: float) -> ZcdpBudget:
    """What (epsilon, delta) buys; kept, since the tight conversion is the slowest part of a release."""
    return ApproxBudget(epsilon, DELTA).to_zcdp()


def stage_pairs(release: FlowRelease, stage: int) -> pd.DataFrame:
    """Every pair of a stage: origin and destination (names), true, released, and kind, one of `KINDS`."""
    evaluation, tree = evaluate_flows(release, country()), release.tree
    levels = tree.levels(stage)
    names = [side.names_of(level) for side, level in zip((tree.origins, tree.destinations), levels, strict=True)]
    origin, destination = (part.ravel().astype(np.int32) for part in np.indices((len(names[0]), len(names[1]))))
    true = evaluation.true_sums(*levels).at(origin, destination)
    given = release.sums(*levels).at(origin, destination)
    kind = np.select([(true > 0) & (given > 0), given > 0, true > 0], [0, 1, 2], 3)
    return pd.DataFrame(
        {
            "origin": names[0][origin],
            "destination": names[1][destination],
            "true": true,
            "released": given,
            "kind": np.array(KINDS)[kind],
        }
    )


def false_by_stage(epsilon: float, draw: int) -> pd.DataFrame:
    """Pairs released although nobody travels there, stage by stage, over `REPEATS` draws from `draw` on.

    Returns:
        stage, series (an optimiser), mean, and low and high: the middle 80 % of the draws.
    """
    rows = []
    for name in OPTIMISERS:
        counts = np.array([_false_positives(name, epsilon, draw + repeat) for repeat in range(REPEATS)])
        low, high = np.quantile(counts, (0.1, 0.9), axis=0)
        rows.append(pd.DataFrame({"stage": range(STAGES + 1), "series": name, "mean": counts.mean(axis=0), "low": low, "high": high}))
    return pd.concat(rows, ignore_index=True)


@lru_cache(maxsize=4096)
def _false_positives(optimiser: str, epsilon: float, draw: int) -> tuple[int, ...]:
    """(STAGES + 1,) of one draw."""
    release = released(optimiser, epsilon, draw)
    return tuple(
        int((truth.at(stage.origin, stage.destination) == 0)[stage.count > 0].sum())
        for stage, truth in zip(release.stages, _true_stages(), strict=True)
    )


@lru_cache(maxsize=1)
def _true_stages() -> list[PairSums]:
    """True trips of every stage."""
    evaluation = evaluate_flows(released(CHEBYSHEV, 1.0, 0), country())
    return [evaluation.true_sums(*evaluation.release.tree.levels(stage)) for stage in range(STAGES + 1)]


def empty_pairs() -> list[int]:
    """How many pairs of each stage have no trips."""
    tree = released(CHEBYSHEV, 1.0, 0).tree
    return [tree.size(stage) - len(truth.count) for stage, truth in enumerate(_true_stages())]


def family(variance: float, draw: int) -> pd.DataFrame:
    """One family of siblings, measured with noise and made to add up by both optimisers: child, series, count.

    Args:
        variance: parameter of the discrete Gaussian noise.
        draw: seed.
    """
    true = np.array(FAMILY, np.int64)
    noisy = discrete_gaussian(true, ZcdpBudget(Fraction(1) / (2 * Fraction(variance))), Entropy.seeded(draw))
    parts = {"true": true, "noisy": noisy}
    for name, distance in OPTIMISERS.items():
        parts[name] = nearest_whole_numbers(noisy, total=int(true.sum()), distance=distance)
    return pd.concat([pd.DataFrame({"child": np.arange(1, len(true) + 1), "series": name, "count": each}) for name, each in parts.items()])
