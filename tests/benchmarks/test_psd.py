"""Speed of private decompositions as ratios against work measured in the same run: pytest -m benchmark."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.hilbert_tree import HilbertTree
from dpviz.mechanisms.points.kdtree import VARIANTS, Kdtree
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from dpviz.space.hilbert import boxes, hilbert
from tests.benchmarks.measures import best, peak

pytestmark = pytest.mark.benchmark

POINTS, RANGES = 1_630_000, 131_000
MOST_LEXSORTS = {"standard": 5, "smooth-sensitivity": 30}
MOST_BYTES = 1.5e9
PEAK = """
x, y = np.random.default_rng(1).normal(0.5, 0.15, (2, 10_000_000)).clip(0, 1)
points = dv.PointCounts.from_xy(x, y, domain=dv.Domain(bounds=(0, 0, 1, 1), crs=None, order=16))
del x, y
mechanisms.{name}({settings}).release(points, dv.{budget}, dv.Entropy.system())
"""


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


def test_boxes_around_131_thousand_stretches_take_less_than_half_a_lexsort(line, shuffled, lexsort):
    lines = np.unique(np.random.default_rng(8).choice(hilbert(*shuffled, 18), RANGES))
    ours = best(lambda: boxes(lines[:-1], lines[1:], 18))
    line(f"boxes around {len(lines) - 1:,} stretches of it", ours, lexsort, "lexsort of 1.63 M", 0.4)


@pytest.fixture(scope="module")
def points(shuffled) -> PointCounts:
    column, row = (part + 0.5 for part in shuffled)
    return PointCounts.from_xy(column, row, domain=Domain(bounds=(0, 0, 2**18, 2**18), crs=None, order=18))


def test_a_hilbert_tree_of_a_million_points_takes_four_lexsorts(line, points, lexsort):
    system = best(lambda: HilbertTree().release(points, PureBudget("0.5"), Entropy.system()), 3)
    seeded = best(lambda: HilbertTree().release(points, PureBudget("0.5"), Entropy.seeded(1)), 3)
    line("HilbertTree(height=8) of 1.63 M points, system entropy", system, lexsort, "lexsort of them", 4)
    line("the same, seeded", seeded, lexsort, "lexsort of them", 4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_kd_tree_of_a_million_points_takes_a_few_lexsorts(line, points, lexsort, variant):
    mechanism, bar = Kdtree(variant=variant), MOST_LEXSORTS.get(variant)
    budget = ApproxBudget("0.5", "1e-6") if mechanism.needs_delta else PureBudget("0.5")
    ours = best(lambda: mechanism.release(points, budget, Entropy.system()), 3)
    line(f"Kdtree({variant!r}, height=8) of 1.63 M points", ours, lexsort, "lexsort of them", bar)


def some(count: int) -> PointCounts:
    """Points around one centre on a lattice of order 16."""
    x, y = np.random.default_rng(count).normal(0.5, 0.15, (2, count)).clip(0, 1)
    return PointCounts.from_xy(x, y, domain=Domain(bounds=(0, 0, 1, 1), crs=None, order=16))


@pytest.mark.timeout(900)
def test_what_a_point_costs_does_not_grow_with_their_number(line):
    """The nodes of the tree cost the same for any number of points, which an empty input shows; the rest is per point."""

    def seconds(count: int) -> float:
        data = some(count)
        return best(lambda: Kdtree().release(data, PureBudget("0.5"), Entropy.system()), 3)

    nodes, counts = seconds(0), (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    each = {count: seconds(count) / count for count in counts}
    for count, per_point in each.items():
        line(f"Kdtree of {count:,} points, per million", 1e6 * per_point, nodes, "the same tree of no points")
    assert each[10_000_000] <= 1.5 * each[1_000_000]
    assert 100_000 * each[100_000] <= nodes + 3 * 100_000 * each[1_000_000]


CASES = [
    ("Kdtree", "", 'PureBudget("0.5")'),
    ("Kdtree", 'variant="smooth-sensitivity"', 'ApproxBudget("0.5", "1e-6")'),
    ("HilbertTree", "", 'PureBudget("0.5")'),
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "settings", "budget"), CASES)
def test_ten_million_points_need_less_than_one_and_a_half_gigabytes(name, settings, budget):
    most = peak(PEAK.format(name=name, settings=settings, budget=budget))
    print(f"\n{name}({settings}): peak memory {most / 2**20:,.0f} MiB, points included")
    assert most < MOST_BYTES
