"""Small seeded releases stay what they are: a change here is a change of what people reproduce.

`python tests/mechanisms/test_golden.py` writes the files anew, after a change that was meant.
"""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpviz as dv

GOLDEN = Path(__file__).parents[1] / "golden"
MECHANISMS = {
    "quadtree": dv.Quadtree(height=3),
    "quadtree_16_pruned": dv.Quadtree(height=2, fan_out=16, split="uniform", prune=4.0),
    "uniform_grid": dv.UniformGrid(c=1.0),
    "identity_threshold": dv.Identity(order=3, threshold=True),
    "kdtree": dv.Kdtree(height=2),
    "adaptive_grid": dv.AdaptiveGrid(),
    "dawa": dv.Dawa(),
    "hilbert_tree": dv.HilbertTree(height=2),
    "htf": dv.Htf(),
    "htf_paper": dv.Htf(search="rounds", reuse_splits=False, combine=False, shrink_small=False, fill="uniform", stop="count", height=4),
    "path_tree": dv.PathTree(),
    "privelet": dv.Privelet(order=3),
    "privtree": dv.PrivTree(),
    "tuned": dv.Tuned(),
    "tuned_grid": dv.TunedGrid(sides=(2, 4, 8)),
    "kdtree_hybrid_pruned": dv.Kdtree(height=3, variant="hybrid", switch=1, fan_out=2, prune=8.0),
}


def released(mechanism, budget=dv.PureBudget("0.8")):  # noqa: B008
    """Everything that a seeded release says, on an 8 x 8 matrix with a few crowded cells."""
    matrix = np.add.outer(np.arange(8), np.arange(8)) % 5 * (np.eye(8, dtype=np.int64)[::-1] * 20 + 1)
    release = mechanism.release(dv.PointCounts.from_matrix(matrix), budget, dv.Entropy.seeded(20211102))
    return {
        "rectangles": release.tree.rectangles().tolist(),
        "noisy": [None if np.isnan(value) else int(value) for value in release.noisy],
        "count": release.count.round(9).tolist(),
        "stddev": release.node_stddev.round(9).tolist(),
        "spent": [[step.purpose, step.level, str(step.amount)] for step in release.receipt.steps],
        "steps": list(release.steps),
    }


GAUSSIAN = {
    "quadtree_rho": (dv.Quadtree(height=3), dv.ZcdpBudget("0.3")),
    "quadtree_delta": (dv.Quadtree(height=3), dv.ApproxBudget("0.8", "1e-5")),
    "uniform_grid_delta": (dv.UniformGrid(c=1.0), dv.ApproxBudget("0.8", "1e-5")),
    "identity_threshold_rho": (dv.Identity(order=3, threshold=True), dv.ZcdpBudget("0.3")),
    "privelet_delta": (dv.Privelet(order=3), dv.ApproxBudget("0.8", "1e-5")),
}
"""Mechanisms of points with Gaussian noise, with their budgets."""


TRIP_MECHANISMS = {
    "top_down": dv.TopDown(),
    "top_down_add_remove_dial": dv.TopDown(neighbours="add_remove", tree="origin", split="levels", dial=1.5),
    "top_down_euclidean": dv.TopDown(optimiser="euclidean", lowered="largest", false_discovery=0.2, accounting="paper"),
    "flat_gaussian": dv.FlatGaussian(threshold=4),
    "stability_histogram": dv.StabilityHistogram(),
}


def released_trips(mechanism):
    """Everything that a seeded release says, on six towns in two counties, some pairs crowded, most empty."""
    towns = [f"{county}{town}" for county in "AB" for town in range(3)]
    regions = dv.Regions.from_table(pd.DataFrame({"county": [town[0] for town in towns], "town": towns}), levels=["county", "town"])
    rows = [(o, d, 7 * (k % 5) ** 3) for k, (o, d) in enumerate(product(towns, repeat=2)) if k % 4 == 1]
    trips = dv.TripCounts.from_table(pd.DataFrame(rows, columns=["origin", "destination", "count"]), regions=regions)
    release = mechanism.release(trips, dv.ApproxBudget("0.8", "1e-5"), dv.Entropy.seeded(20211102))
    tables = [release.stage(stage) for stage in range(5)]
    return {
        "stages": [table[["origin", "destination", "count", "count_noisy"]].to_numpy().tolist() for table in tables],
        "stddev": [table["stddev"].round(6).tolist() for table in tables],
        "measured": [at.measured for at in release.stages],
        "spent": [[step.purpose, step.level, str(step.amount), str(step.scale)] for step in release.receipt.steps],
        "steps": list(release.steps),
    }


AREA_MECHANISMS = {
    "flat": dv.FlatAreas(threshold=10),
    "region_tree": dv.RegionTree(),
    "region_tree_nonnegative": dv.RegionTree(nonnegative=True, count_root=True, split="geometric", neighbours="bounded"),
}


def released_areas(mechanism):
    """Everything that a seeded release says for epsilon and for rho, on twelve blocks in four tracts of two districts, some empty."""
    blocks = [f"{district}{tract}{block}" for district in "AB" for tract in "xy" for block in range(3)]
    table = pd.DataFrame({"district": [block[0] for block in blocks], "tract": [block[:2] for block in blocks], "block": blocks})
    regions = dv.Regions.from_table(table, levels=["district", "tract", "block"])
    areas = dv.AreaCounts.from_counts([7 * (k % 4) ** 3 for k in range(12)], regions=regions)
    budgets = (dv.PureBudget("0.8"), dv.ZcdpBudget("0.1"))
    releases = [mechanism.release(areas, budget, dv.Entropy.seeded(20211102)) for budget in budgets]
    every = [(release, level) for release in releases for level in range(4)]
    return {
        "noisy": [[None if np.isnan(value) else int(value) for value in release.noisy[release.nodes(level)]] for release, level in every],
        "count": [release.count[release.nodes(level)].round(9).tolist() for release, level in every],
        "stddev": [release.stddev(level).round(9).tolist() for release, level in every],
        "spent": [[step.purpose, step.level, str(step.amount), str(step.scale)] for release in releases for step in release.receipt.steps],
        "steps": list(releases[0].steps),
    }


EXACT = ("rectangles", "noisy", "stages", "measured", "steps")


@pytest.mark.parametrize("name", sorted(GAUSSIAN))
def test_a_seeded_release_with_gaussian_noise_is_what_it_was(name):
    """Shares of rho come from a search in floating point, and are rounded to 20 bits: the noise is the same on every computer."""
    wanted, found = json.loads((GOLDEN / f"{name}.json").read_text("utf-8")), released(*GAUSSIAN[name])
    assert [found[part] for part in ("rectangles", "noisy", "spent", "steps")] == [
        wanted[part] for part in ("rectangles", "noisy", "spent", "steps")
    ]
    for part in ("count", "stddev"):
        np.testing.assert_allclose(found[part], wanted[part], atol=1e-6)


@pytest.mark.parametrize("name", sorted(MECHANISMS | TRIP_MECHANISMS | AREA_MECHANISMS))
def test_a_seeded_release_is_what_it_was(name):
    wanted = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    points, areas = name in MECHANISMS, name in AREA_MECHANISMS
    found = (
        released(MECHANISMS[name]) if points else released_areas(AREA_MECHANISMS[name]) if areas else released_trips(TRIP_MECHANISMS[name])
    )
    assert [found.get(part) for part in EXACT] == [wanted.get(part) for part in EXACT]
    parts = 3 if points else 2  # amounts of rho come from a conversion in floating point
    assert [step[:parts] for step in found["spent"]] == [step[:parts] for step in wanted["spent"]]
    for part in ("count", "stddev") if points or areas else ("stddev",):
        np.testing.assert_allclose(np.hstack(found[part]), np.hstack(wanted[part]), atol=1e-6 if points or areas else 1e-4)


if __name__ == "__main__":
    for made, table in ((released, MECHANISMS), (released_trips, TRIP_MECHANISMS), (released_areas, AREA_MECHANISMS)):
        for name, mechanism in table.items():
            (GOLDEN / f"{name}.json").write_text(json.dumps(made(mechanism)) + "\n", "utf-8")
    for name, how in GAUSSIAN.items():
        (GOLDEN / f"{name}.json").write_text(json.dumps(released(*how)) + "\n", "utf-8")
