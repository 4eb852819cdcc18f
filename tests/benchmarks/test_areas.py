"""Areas at the size of a country: counting against a spatial join, releases against their own noise, memory: pytest -m benchmark."""

import time

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

from dpviz.data.areas import AreaCounts
from dpviz.mechanisms import RegionTree
from dpviz.privacy.budget import PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace
from dpviz.samples.areas import load_area_sample
from dpviz.space.regions import Regions
from tests.benchmarks.measures import best, peak

pytestmark = pytest.mark.benchmark

MOST_BYTES = 10**9
PEAK = """
rng, regions = np.random.default_rng(1), dv.load_sample("us_residents").regions
x, y = rng.uniform(-125, -66, 10**7), rng.uniform(25, 49, 10**7)
dv.AreaCounts.from_xy(x, y, regions=regions)
"""


def test_ten_million_points_are_counted_in_counties_faster_than_a_join(line):
    regions = load_area_sample("us_residents").regions
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-125, -66, 10**7), rng.uniform(25, 49, 10**7)
    points = gpd.GeoDataFrame(geometry=gpd.points_from_xy(x[: 10**6], y[: 10**6]), crs="EPSG:4326")
    counties = gpd.GeoDataFrame({"county": regions.ids_of(2)}, geometry=regions.geometry[-1])
    ours = best(lambda: AreaCounts.from_xy(x, y, regions=regions), 3)
    line("10 M points in 3,142 counties", ours, 10 * best(lambda: gpd.sjoin(points, counties), 3), "10 x sjoin of 1 M points", 1.5)


def test_ten_million_points_stay_under_a_gigabyte():
    most = peak(PEAK)
    print(f"\npeak memory {most / 2**20:,.0f} MiB")
    assert most < MOST_BYTES


@pytest.mark.parametrize("budget", [PureBudget(1), ZcdpBudget("0.1")], ids=str)
def test_a_release_of_100_000_leaves_takes_a_few_times_its_own_noise(line, budget):
    sizes = (10, 200, 4_000, 100_000)
    table = pd.DataFrame({f"level {size}": [str(leaf * size // sizes[-1]) for leaf in range(sizes[-1])] for size in sizes})
    areas = AreaCounts.from_counts(
        np.random.default_rng(1).poisson(5, sizes[-1]), regions=Regions.from_table(table, levels=[*table.columns])
    )
    mechanism, pure = RegionTree(), isinstance(budget, PureBudget)
    mechanism.release(areas, budget, Entropy.system())
    ours, noises = [], []
    for _ in range(15):
        start = time.perf_counter()
        release = mechanism.release(areas, budget, Entropy.system())
        ours.append(time.perf_counter() - start)
        truth = areas.level_counts()
        start = time.perf_counter()
        for step in release.receipt.steps:
            if pure:
                discrete_laplace(truth[step.level], PureBudget(step.amount), Entropy.system())
            else:
                discrete_gaussian(truth[step.level], ZcdpBudget(step.amount), Entropy.system())
        noises.append(time.perf_counter() - start)
    line(f"Region tree, 100,000 leaves, {budget}", float(np.median(ours)), float(np.median(noises)), "its own noise", 3)
