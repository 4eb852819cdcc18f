"""Mechanisms against figures that others published or that were measured once, with data and questions that can be made again.

Trips: TopDown on the sets of its paper, and at the size of its real data. Points, made-up crowds:

Data: a million normal places with deviation S around a random centre on 1,024 x 1,024 cells. Questions: 2,000 random boxes. Figures:
`n3`, the mean error relative to the true count or a thousandth of all records, whichever is larger, in percent; `mae`, in records.
AG, DAWA and QuadTree are the public implementations of DPBench (Hay, Machanavajjhala, Miklau, Chen, Zhang, SIGMOD 2016), run by us;
PrivTree is a quick floating-point version of the published algorithm, with half or 0.3 of epsilon on the structure.
"""

from functools import cache

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import true_answers
from dpviz.evaluation.trip_metrics import error_bounds, evaluate_trips
from dpviz.mechanisms import AdaptiveGrid, Dawa, PathTree, PointMechanism, PrivTree, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.trips import made_up_country, synthetic_trips

DELTA = "1e-8"
EPSILONS = ("0.1", "1", "10")
# InfTDA on pairs of leaves, delta 1e-8, mean of 10 runs: largest error, and false discovery rate in percent. Published by its
# authors with the code of Boninsegna and Silvestri, 2025 (aidaLabDEI/TDA_hierarchical); their noise had the variance 2 T / rho.
PUBLISHED = {
    ("binary", "complete"): ((873.9, 0.0), (138.8, 0.0), (19.3, 0.0)),
    ("binary", "dense"): ((825.6, 46.1286), (142.4, 35.7085), (19.0, 26.0447)),
    ("binary", "sparse"): ((847.2, 97.8727), (132.2, 89.7301), (16.8, 75.7904)),
    ("random", "complete"): ((990.9, 0.0), (130.0, 0.0), (17.1, 0.0)),
    ("random", "dense"): ((898.3, 46.9439), (121.8, 36.218), (16.3, 20.9591)),
    ("random", "sparse"): ((690.4, 97.7498), (117.1, 83.8392), (15.2, 63.8452)),
}


@pytest.mark.slow
def test_on_all_sets_largest_errors_are_smaller_than_published_and_there_are_no_more_false_discoveries():
    """With half the budget, the ratio of errors is above 0.8."""
    ratios = []
    for key, figures in PUBLISHED.items():
        trips = synthetic_trips(*key)
        for epsilon, (error, discovery) in zip(EPSILONS, figures, strict=True):
            releases = [TopDown().release(trips, ApproxBudget(epsilon, DELTA), entropy) for entropy in Entropy.seeded(2025).spawn(5)]
            leaves = [evaluate_trips(release, trips).by_stage.iloc[-1] for release in releases]
            ratios.append(np.mean([row["max_error"] for row in leaves]) / error)
            assert np.mean([row["false_discovery"] for row in leaves]) <= discovery + 1e-9
    assert np.exp(np.log(ratios).mean()) <= 0.70


@pytest.mark.slow
def test_the_largest_error_of_a_whole_country_stays_under_118():
    trips = made_up_country()
    assert int(trips.count.sum()) == 28_800_000
    assert 500_000 <= len(trips.count) <= 600_000
    for entropy in (Entropy.system(), Entropy.seeded(1)):
        release = TopDown().release(trips, ApproxBudget(1, DELTA), entropy)
        stages = evaluate_trips(release, trips).by_stage
        assert stages["max_error"].iloc[-1] < 118
        assert (stages["max_error"] <= error_bounds(release)).all()
        assert release.inconsistencies()["mismatches"].sum() == 0


KEYS = [(deviation, epsilon) for deviation in (20, 50, 100) for epsilon in (0.1, 0.5, 1.0)]
"""Deviation S and epsilon of the figures."""

N3 = [1.6487, 0.3853, 0.2057, 2.5162, 0.5971, 0.3924, 2.4847, 0.9515, 0.623]
MAE = [152.86, 51.2, 28.62, 310.28, 97.29, 45.15, 280.87, 121.72, 87.94]
HALF = dict(zip(KEYS, zip(N3, MAE, strict=True), strict=True))
"""PrivTree with half of epsilon on the structure: n3 and mae; ten seeds."""

N3 = [1.6501, 0.4757, 0.2166, 2.344, 0.5996, 0.3711, 2.9701, 0.8488, 0.5482]
MAE = [117.71, 43.75, 21.06, 162.38, 61.38, 41.16, 194.19, 78.7, 53.13]
THIRD = dict(zip(KEYS, zip(N3, MAE, strict=True), strict=True))
"""PrivTree with 0.3 of epsilon on the structure; ten seeds."""

AG = {(20, 0.1): (7.8177, 160.46), (50, 0.1): (7.0492, 195.96), (100, 0.1): (4.3301, 185.0)}
"""AG; two or three seeds, which leaves an error of about 8 % in the geometric mean of these n3."""

DAWA = {(20, 0.1): (1.5131, 911.99), (50, 0.1): (7.2937, 3749.29), (100, 0.1): (25.5008, 10971.27)}
"""DAWA along the Hilbert curve, which rounds its counts; one seed."""

QUADTREE = {0.1: 611.07, 0.5: 122.0, 1.0: 61.1}
"""QuadTree's mae on 256 x 256 cells, which depends on no data: its leaves are the cells."""

SEEDS = 10


@cache
def case(deviation: int) -> tuple[PointCounts, np.ndarray, np.ndarray]:
    """Points, 2,000 boxes and the true counts in them."""
    rng = np.random.default_rng(7)
    centre = rng.uniform(0, 1024, 2)
    place = np.floor(centre + deviation * rng.standard_normal((1_000_000, 2)))
    place = place[((place >= 0) & (place < 1024)).all(axis=1)].astype(np.int64)
    matrix = np.zeros((1024, 1024), np.int64)
    np.add.at(matrix, tuple(place.T), 1)
    points, boxes = PointCounts.from_matrix(matrix), questions(1024)
    return points, boxes, true_answers(points, boxes)


def questions(side: int) -> np.ndarray:
    """(2000, 4) boxes whose edges are two different lattice lines per axis, rows first."""
    rng, ranges = np.random.default_rng(20211102), []
    for _ in range(2):
        one, other = rng.integers(0, side + 1, 2000), rng.integers(0, side, 2000)
        other += other >= one
        ranges.append((np.minimum(one, other), np.maximum(one, other)))
    (south, north), (west, east) = ranges
    return np.stack([west, south, east, north], axis=1).astype(float)


def figures(mechanism: PointMechanism, deviation: int, epsilon: float) -> np.ndarray:
    """n3 and mae, averaged over seeds."""
    points, boxes, truth = case(deviation)
    found = []
    for seed in range(SEEDS):
        error = np.abs(mechanism.release(points, PureBudget(epsilon), Entropy.seeded(seed)).answer(boxes) - truth)
        found.append((100 * (error / np.maximum(truth, points.count.sum() / 1000)).mean(), error.mean()))
    return np.mean(found, axis=0)


def ratios(mechanism: PointMechanism, rows: dict) -> np.ndarray:
    """Geometric means of n3 and mae over those of the rows."""
    return np.exp(np.mean([np.log(figures(mechanism, *key) / row) for key, row in rows.items()], axis=0))


@pytest.mark.long
def test_the_path_budget_tree_has_less_than_half_the_error_of_the_better_privtree():
    better = {key: np.minimum(HALF[key], THIRD[key]) for key in HALF}
    n3, mae = ratios(PathTree(), better)
    assert n3 <= 0.45
    assert mae <= 0.43


@pytest.mark.slow
@pytest.mark.parametrize(("share", "rows"), [(0.5, HALF), (0.3, THIRD)], ids=["half", "0.3"])
def test_privtree_is_as_accurate_as_its_published_algorithm(share, rows):
    assert (ratios(PrivTree(structure_share=share), rows) <= 1.10).all()


@pytest.mark.slow
def test_ag_is_as_accurate_as_its_public_implementation():
    n3, mae = ratios(AdaptiveGrid(), AG)
    assert n3 <= 1.10 + 3 * 0.08
    assert mae <= 1.10


@pytest.mark.long
def test_dawa_has_half_the_error_of_its_public_implementation():
    n3, mae = ratios(Dawa(), DAWA)
    assert n3 <= 0.5
    assert mae <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", sorted(QUADTREE))
def test_the_quadtree_is_as_accurate_as_its_public_implementation(epsilon):
    points, boxes = PointCounts.from_matrix(np.zeros((256, 256), np.int64)), questions(256)
    errors = [np.abs(Quadtree().release(points, PureBudget(epsilon), entropy).answer(boxes)) for entropy in Entropy.seeded(1).spawn(20)]
    assert np.mean(errors) <= 1.10 * QUADTREE[epsilon]


PARTS = {
    "interpolation": ({"fill": "uniform"}, 1.4),
    "log-linear interpolation": ({"fill": "interpolated"}, 1.07),
    "zeroing": ({"shrink_small": False}, 1.1),
    "spreading": ({"negative": "keep"}, 1.08),
}


@pytest.mark.long
@pytest.mark.parametrize(("without", "worth"), PARTS.values(), ids=PARTS)
def test_each_step_of_the_finish_of_the_path_budget_tree_pays(without, worth):
    cases = [(deviation, 0.5) for deviation in (20, 50, 100)]
    assert ratios(PathTree(**without), {key: figures(PathTree(), *key) for key in cases})[0] >= worth
