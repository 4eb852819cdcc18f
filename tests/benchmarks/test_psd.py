"""Speed of private decompositions as ratios against work measured in the same run: pytest -m benchmark."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms.hilbert_tree import HilbertTree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from dpviz.space.hilbert import boxes, hilbert
from tests.benchmarks.test_speed import best

pytestmark = pytest.mark.benchmark

POINTS, RANGES = 1_630_000, 131_000


@pytest.fixture(scope="module")
def shuffled() -> tuple[np.ndarray, np.ndarray]:
    """Columns and rows of points on a lattice of order 18: towns of every size, and a tenth spread evenly."""
    rng, side = np.random.default_rng(7), 1 << 18
    towns, spread = rng.uniform(0, side, (2, 2000)), side * 0.002 * rng.pareto(1.5, 2000)
    town = rng.choice(2000, POINTS, p=spread / spread.sum())
    places = rng.normal(towns[:, town], spread[town])
    places[:, : POINTS // 10] = rng.uniform(0, side, (2, POINTS // 10))
    column, row = rng.permutation(places, axis=1).clip(0, side - 1).astype(np.int64)
    return column.copy(), row.copy()


@pytest.fixture(scope="module")
def lexsort(shuffled) -> float:
    column, row = shuffled
    return best(lambda: np.lexsort((row, column)), 3)


def test_places_on_the_curve_take_a_tenth_of_a_lexsort(line, shuffled, lexsort):
    column, row = shuffled
    ours = best(lambda: hilbert(column, row, 18))
    line("places of 1.63 M points on the order-18 curve", ours, lexsort, "lexsort of them", 0.1)
    assert ours <= 0.1 * lexsort


def test_boxes_around_131_thousand_stretches_take_less_than_half_a_lexsort(line, shuffled, lexsort):
    lines = np.unique(np.random.default_rng(8).choice(hilbert(*shuffled, 18), RANGES))
    ours = best(lambda: boxes(lines[:-1], lines[1:], 18))
    line(f"boxes around {len(lines) - 1:,} stretches of it", ours, lexsort, "lexsort of 1.63 M", 0.4)
    assert ours <= 0.4 * lexsort


def test_a_hilbert_tree_of_a_million_points_takes_four_lexsorts(line, shuffled, lexsort):
    column, row = (part + 0.5 for part in shuffled)
    points = PointCounts.from_xy(column, row, domain=Domain(bounds=(0, 0, 2**18, 2**18), crs=None, order=18))
    system = best(lambda: HilbertTree().release(points, PureBudget("0.5"), Entropy.system()), 3)
    seeded = best(lambda: HilbertTree().release(points, PureBudget("0.5"), Entropy.seeded(1)), 3)
    line("HilbertTree(height=8) of 1.63 M points, system entropy", system, lexsort, "lexsort of them", 4)
    line("the same, seeded", seeded, lexsort, "lexsort of them", 4)
    assert max(system, seeded) <= 4 * lexsort
