"""Speed of HTF as ratios against work measured in the same run: pytest -m benchmark."""

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms.points.htf import Htf
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from tests.benchmarks.measures import best, peak

pytestmark = pytest.mark.benchmark

PAPER = {"search": "rounds", "split_epsilon": 1e-3, "ratio": "2^(1/3)", "extra": 0, "stop": "count"}
PAPER |= {"reuse_splits": False, "combine": False}
FORMS = {
    "default": Htf(),
    "paper": Htf(**PAPER, stop_cells=5, shrink_small=False, fill="uniform"),
    "paper, never stopped": Htf(**PAPER, stop_count=0),
}
MOST_LEXSORTS, MOST_SPREAD, MOST_FINER = 3, 1.5, 10
PEAK = """
place = np.random.default_rng(1).choice(2**20, 60_000, replace=False)
x, y = (place % 1024) + 0.5, (place // 1024) + 0.5
points = dv.PointCounts.from_xy(x, y, domain=dv.Domain(bounds=(0, 0, 1024, 1024), crs=None, order={order}))
mechanisms.Htf(height=16).release(points, dv.PureBudget("0.5"), dv.Entropy.system())
"""


@pytest.fixture(scope="module")
def places() -> np.ndarray:
    """(2, n) the published synthetic data of medium sparsity: a Gaussian around one place, standard deviation 50 of 1,024."""
    rng = np.random.default_rng(7)
    centre = rng.uniform(0, 1024, 2)
    drawn = centre + 50 * rng.standard_normal((1_000_000, 2))
    return drawn[((drawn >= 0) & (drawn < 1024)).all(axis=1)].T.copy()


def gridded(places: np.ndarray, order: int) -> PointCounts:
    return PointCounts.from_xy(*places, domain=Domain(bounds=(0, 0, 1024, 1024), crs=None, order=order))


@pytest.fixture(scope="module")
def lexsort(places) -> float:
    column, row = places.astype(np.int64)
    return best(lambda: np.lexsort((row, column)), 3)


def seconds(form: str, points: PointCounts, entropy: Entropy) -> float:
    return best(lambda: FORMS[form].release(points, PureBudget("0.5"), entropy), 3)


@pytest.mark.parametrize("form", FORMS)
def test_a_million_points_take_at_most_three_lexsorts(line, places, lexsort, form):
    points = gridded(places, 10)
    for entropy in (Entropy.system(), Entropy.seeded(1)):
        ours = seconds(form, points, entropy)
        name = "seeded" if entropy.simulation else "system"
        line(f"HTF, {form}, of 0.98 M points on 1,024 x 1,024, {name}", ours, lexsort, "lexsort of them", MOST_LEXSORTS)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_cells_on_a_larger_lattice_cost_as_much_and_a_finer_lattice_by_its_cells(line, places, form):
    coarse = seconds(form, gridded(places, 10), Entropy.seeded(1))
    spread = seconds(form, gridded(np.floor(places), 12), Entropy.seeded(1))
    finer = seconds(form, gridded(places, 12), Entropy.seeded(1))
    line(f"HTF, {form}, the same cells on 4,096 x 4,096", spread, coarse, "the same on 1,024 x 1,024", MOST_SPREAD)
    line(f"HTF, {form}, the same points on 4,096 x 4,096", finer, coarse, "the same on 1,024 x 1,024", MOST_FINER)


def test_memory_does_not_grow_with_the_lattice():
    coarse, fine = (peak(PEAK.format(order=order)) for order in (10, 16))
    print(f"\nHTF of 60,000 points: peak memory {coarse / 2**20:,.0f} MiB on order 10, {fine / 2**20:,.0f} MiB on order 16")
    assert fine <= coarse + 40 * 2**20
