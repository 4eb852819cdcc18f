"""Speed as ratios against work measured in the same run, so that the bars hold on any machine: pytest -m benchmark."""

import numpy as np
import opendp.prelude as dp
import pytest

from dpviz.data.points import PointCounts
from dpviz.mechanisms import Kdtree, Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from tests.benchmarks.measures import best, printed

pytestmark = pytest.mark.benchmark

DRAWS, REFEREES = 1_000_000, 50_000
POINTS = 10_000_000


def laplace_draws(entropy: Entropy) -> np.ndarray:
    return discrete_laplace(np.zeros(DRAWS, np.int64), PureBudget("0.5"), entropy)


def test_a_million_exact_laplace_draws_take_a_tenth_of_opendps_time(line):
    dp.enable_features("contrib")
    referee = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=2.0)
    zeros = [0] * REFEREES
    theirs = best(lambda: referee(zeros), 3) * DRAWS / REFEREES
    system = best(lambda: laplace_draws(Entropy.system()))
    seeded = best(lambda: laplace_draws(Entropy.seeded(1)))
    line("1 M discrete Laplace draws, system entropy", system, theirs, "OpenDP vector sampler", 0.1)
    line("1 M discrete Laplace draws, seeded", seeded, theirs, "OpenDP vector sampler", max(system / theirs, 0.1))


@pytest.fixture(scope="module")
def places() -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(1).random((2, POINTS))


def test_counting_ten_million_points_takes_a_twelfth_of_histogram2d(line, places):
    x, y = places
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=10)
    theirs = best(lambda: np.histogram2d(x, y, bins=1024, range=[[0, 1], [0, 1]]), 2)
    ours = best(lambda: PointCounts.from_xy(x, y, domain=domain))
    line("count 10 M points on 1024 x 1024", ours, theirs, "numpy.histogram2d", 1 / 12)


def test_counting_ten_million_points_on_an_order_16_lattice_takes_at_most_four_lexsorts(line, places):
    x, y = places
    domain = Domain(bounds=(0, 0, 1, 1), crs=None, order=16)
    columns, rows = (x * 65536).astype(np.int64), (y * 65536).astype(np.int64)
    theirs = best(lambda: np.lexsort((rows, columns)), 1)
    ours = best(lambda: PointCounts.from_xy(x, y, domain=domain), 2)
    line("count 10 M points on 65,536 x 65,536", ours, theirs, "numpy.lexsort of them", 4)


@pytest.fixture(scope="module")
def towns() -> PointCounts:
    x, y = np.random.default_rng(2).normal(512, 150, (2, 500_000)).clip(0, 1024)
    return PointCounts.from_xy(x, y, domain=Domain(bounds=(0, 0, 1024, 1024), crs=None, order=10))


@pytest.fixture(scope="module")
def quadtree_release(towns) -> PointRelease:
    return Quadtree(height=10).release(towns, PureBudget("0.5"), Entropy.system())


def test_a_quadtree_release_takes_little_more_than_its_noise(line, towns, quadtree_release):
    amounts = [step.amount for step in quadtree_release.receipt.steps]

    def noise() -> None:
        entropy = Entropy.system()
        for depth, amount in enumerate(amounts):
            discrete_laplace(np.zeros(4**depth, np.int64), PureBudget(amount), entropy)

    theirs = best(noise, 7)
    ours = best(lambda: Quadtree(height=10).release(towns, PureBudget("0.5"), Entropy.system()), 7)
    line("Quadtree(height=10) on 1024 x 1024, system entropy", ours, theirs, "its noise alone", 1.8)


def fresh(release: PointRelease) -> PointRelease:
    """The same release without anything that it has worked out before."""
    return PointRelease(**{name: getattr(release, name) for name in PointRelease.__dataclass_fields__})


def best_answer(release: PointRelease, boxes: np.ndarray, times: int, *, spread: bool = False) -> float:
    """Seconds of the fastest of several first answers."""
    releases = [fresh(release) for _ in range(times)]
    return best(lambda: releases.pop().answer(boxes, spread=spread), times)


def random_boxes(side: float, count: int = 2000) -> np.ndarray:
    x, y = np.sort(np.random.default_rng(3).uniform(0, side, (2, count, 2)), axis=2)
    return np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1)


def shuffled_places(count: int = 1_630_000) -> tuple[np.ndarray, np.ndarray]:
    places = np.random.default_rng(4).normal(32768, 9000, (2, count)).clip(0, 65535).astype(np.int64)
    return places[0].copy(), places[1].copy()


@pytest.fixture(scope="module")
def lexsort() -> float:
    columns, rows = shuffled_places()
    return best(lambda: np.lexsort((rows, columns)), 3)


def test_two_thousand_boxes_on_a_fresh_quadtree_release_take_a_tenth_of_a_second(line, quadtree_release, lexsort):
    boxes = random_boxes(1024)
    ours, spread = best_answer(quadtree_release, boxes, 5), best_answer(quadtree_release, boxes, 2, spread=True)
    line("2,000 boxes on that release, first answer", ours, lexsort, "lexsort of 1.63 M", 0.1 / lexsort)
    line("2,000 boxes on that release, with their spreads", spread, lexsort, "lexsort of 1.63 M")


@pytest.fixture(scope="module")
def irregular_release() -> PointRelease:
    """About 65,536 leaves between lines at the medians of places."""
    x, y = shuffled_places()
    points = PointCounts.from_xy(x + 0.5, y + 0.5, domain=Domain(bounds=(0, 0, 65536, 65536), crs=None, order=16))
    release = Kdtree(height=8).release(points, PureBudget("0.5"), Entropy.seeded(1))
    assert 55_000 < len(release.tree.leaves) < 66_000
    return release


def test_two_thousand_boxes_on_65_thousand_irregular_leaves_take_half_a_lexsort(line, irregular_release, lexsort):
    boxes = random_boxes(65536)
    ours, spread = best_answer(irregular_release, boxes, 5), best_answer(irregular_release, boxes, 3, spread=True)
    line(f"2,000 boxes on {len(irregular_release.tree.leaves):,} irregular leaves", ours, lexsort, "lexsort of 1.63 M", 0.6)
    line("the same with their spreads", spread, lexsort, "lexsort of 1.63 M")


def test_least_squares_on_a_million_leaves_takes_a_third_of_a_lexsort(line, quadtree_release, lexsort):
    tree, noisy, variance = quadtree_release.tree, quadtree_release.noisy, quadtree_release.noise_variance
    ours = best(lambda: least_squares(tree, noisy, variance))
    spreads = best(lambda: quadtree_release.spread.variances(tree))
    line("least squares on 1,398,101 nodes", ours, lexsort, "lexsort of 1.63 M", 0.3)
    line("the variances of all its nodes", spreads, lexsort, "lexsort of 1.63 M", 0.3)


def test_importing_dpviz_costs_about_as_much_as_importing_geopandas(line):
    """The least of several rounds, in processor time of fresh interpreters: a busy machine only ever adds to the work."""
    ours, theirs = (min(seconds_to_import(module) for _ in range(5)) for module in ("dpviz", "geopandas"))
    line("import dpviz", ours, theirs, "import geopandas", 2.5)


def seconds_to_import(module: str) -> float:
    return printed(f"import time, {module}; print(time.process_time())")
