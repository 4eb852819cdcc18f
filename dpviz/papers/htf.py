"""Figures 3 to 6 of the HTF paper as tables: HTF against kd-trees, grids and quadtrees, by height, budget and query size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import workload_errors
from dpviz.mechanisms.points.adaptive_grid import AdaptiveGrid
from dpviz.mechanisms.points.base import PointMechanism
from dpviz.mechanisms.points.htf import Htf
from dpviz.mechanisms.points.identity import Identity
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.points.path_tree import PathTree
from dpviz.mechanisms.points.privelet import Privelet
from dpviz.mechanisms.points.privtree import PrivTree
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.mechanisms.points.uniform_grid import UniformGrid
from dpviz.mechanisms.run import Run
from dpviz.papers.parts import join_parts
from dpviz.papers.psd import budget_of
from dpviz.privacy.entropy import Entropy
from dpviz.samples.made_up import SEED
from dpviz.samples.points import CLUSTERS, load_point_sample
from dpviz.space.domain import Domain
from dpviz.space.workloads import area_share, random_rectangles

Workloads = Mapping[str, Floats]
Case = tuple[dict[str, Any], PointMechanism]

PAPER_SIZE = 3_500_000
CLUSTER_SIZE = 1_000_000
EPSILONS = (0.1, 0.3, 0.5)
HEIGHTS = (8, 10, 12, 14, 16, 18)
QUERIES = 2000
SHARES = {"2 %": 0.02, "6 %": 0.06, "10 %": 0.1}
STOPS = (10, 50, 100)
SPLIT_EPSILONS = {"HTF (5e-4)": 5e-4, "HTF (1e-3)": 1e-3}
OUR_NAME = "HTF (ours)"
REPEATS = 10
FIGURES = ("mre", "n3", "mae")


def la_points(size: int = PAPER_SIZE) -> PointCounts:
    """Make up residents of the paper's square of 70 x 70 km, since its data are not public, and count them on its 1024 x 1024 lattice."""
    return load_point_sample("la_residents", size=size)


def paper_sets(size: int = PAPER_SIZE, cluster_size: int = CLUSTER_SIZE) -> dict[str, PointCounts]:
    """Make up the paper's seven data sets, by name: Los Angeles, and for each sigma two Gaussian clusters with different centres.

    Args:
        size: residents of Los Angeles.
        cluster_size: points per cluster. The paper states neither this number nor how the two sets of a sigma differ.
    """
    sets = {"Los Angeles": la_points(size)}
    for key, sigma in sorted(CLUSTERS.items(), key=lambda item: item[1]):
        for number, letter in enumerate("ab"):
            sets[f"σ = {sigma}, {letter}"] = load_point_sample(key, size=cluster_size, seed=SEED + number)
    return sets


def workloads(domain: Domain, count: int = QUERIES, seed: int = SEED) -> dict[str, Floats]:
    """Draw the paper's workloads, by name: (count, 4) boxes of random shape and size, and squares of 2, 6 and 10 % of the domain's area."""
    squares = {name: area_share(domain, share, count, seed) for name, share in SHARES.items()}
    return {"random": random_rectangles(domain, count, seed), **squares}


def mixed(domain: Domain, count: int = QUERIES, seed: int = SEED) -> dict[str, Floats]:
    """Draw one workload of about `count` boxes, a quarter from each of `workloads`; the paper does not define its mixture."""
    return {"mixed": np.concatenate(list(workloads(domain, -(-count // 4), seed).values()))}


def paper_htf(split_epsilon: float, *, stop: int = 100, height: int | None = None) -> Htf:
    """Build HTF with the settings of the paper's experiments: T = 3, at least 5 cells, epsilon_height = max(1e-4, epsilon / 1000)."""
    return Htf(
        search="rounds",
        split_epsilon=split_epsilon,
        height=height,
        height_share=0.001,
        extra=0,
        ratio="2^(1/3)",
        stop="count",
        stop_count=stop,
        stop_cells=5,
        reuse_splits=False,
        combine=False,
        shrink_small=False,
        fill="uniform",
    )


def htf_forms(height: int | None = None) -> dict[str, Htf]:
    """Build HTF with the paper's two split budgets and with our defaults, by name. If `height` is None, each chooses its height."""
    forms = {name: paper_htf(epsilon, height=height) for name, epsilon in SPLIT_EPSILONS.items()}
    return {**forms, OUR_NAME: Htf(height=height)}


def kd_trees(height: int) -> dict[str, PointMechanism]:
    """Build the paper's kd-trees, by name: binary, medians by the exponential mechanism with 15 % of epsilon, least squares."""
    shared: dict[str, Any] = {"height": height, "fan_out": 2, "median_share": 0.15}
    return {"KdTree (geo)": Kdtree(**shared), "KdTree (uniform)": Kdtree(split="uniform", **shared)}


def quadtrees(height: int) -> dict[str, PointMechanism]:
    """Build the paper's quadtrees, by name, with least squares; `height` is in binary levels, two for each level of a quadtree."""
    return {"Quadtree (geo)": Quadtree(height=height // 2), "Quadtree (uniform)": Quadtree(height=height // 2, split="uniform")}


def grids() -> dict[str, PointMechanism]:
    """Build the paper's grids, by name: UG, AG, Singular, Uniform and Privelet."""
    return {
        "UG": UniformGrid(),
        "AG": AdaptiveGrid(),
        "Singular": Identity(),
        "Uniform": UniformGrid(side=1),
        "Privelet": Privelet(),
    }


class ByHeight(TypedDict, total=False):
    """What `figure_3` and `figure_5` measure, as keyword arguments; what is left out is the paper's.

    Attributes:
        epsilons: budgets, `EPSILONS`; the paper's panels by size of queries have 0.1 only.
        heights: of all trees, in binary levels, `HEIGHTS`.
        queries: boxes per workload, `QUERIES`.
        repeats: releases with fresh noise, averaged, `REPEATS`.
        seed: of queries and noise.
    """

    epsilons: Sequence[float]
    heights: Iterable[int]
    queries: int
    repeats: int
    seed: int


def figure_3(points: PointCounts, **settings: Unpack[ByHeight]) -> pd.DataFrame:
    """Compare HTF with kd-trees by height. CURATOR ONLY.

    Args:
        points: `la_points()` for the paper's setting.
        **settings: see `ByHeight`.

    Returns:
        As `measure_errors`: epsilon, method, height, estimated (whether HTF chose this height itself; with other noise it may choose
        another one), queries and the errors.

    Source:
        Shaham et al., "HTF: homogeneous tree framework", SIGSPATIAL 2021, Figure 3.
    """
    return _by_height(points, kd_trees, **settings)


def figure_4(
    points: PointCounts,
    *,
    epsilons: Sequence[float] = EPSILONS,
    stops: Sequence[int] = STOPS,
    queries: int = QUERIES,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Compare HTF with several stop counts (`stops`, in records) with grids, by budget; other arguments as for `figure_3`. CURATOR ONLY.

    Returns:
        As `measure_errors`: epsilon, method, stop (records; missing for methods without a stop count), queries and the errors.

    Source:
        Shaham et al., 2021, Figure 4, which shows UG and AG. The other grids of its Figure 6, and a quadtree of height 7, are added.
    """
    cases: list[Case] = [
        ({"method": name, "stop": stop}, paper_htf(split, stop=stop)) for stop in stops for name, split in SPLIT_EPSILONS.items()
    ]
    other_methods: dict[str, PointMechanism] = {OUR_NAME: Htf(), **grids(), "Quadtree (geo)": Quadtree(height=7)}
    cases += [({"method": name, "stop": None}, mechanism) for name, mechanism in other_methods.items()]
    queries_by_name = workloads(points.domain, queries, seed)
    table = pd.concat([measure_errors(points, cases, queries_by_name, epsilon, (repeats, seed)) for epsilon in epsilons], ignore_index=True)
    return table.astype({"stop": "Int64"})


def figure_5(points: PointCounts, **settings: Unpack[ByHeight]) -> pd.DataFrame:
    """Compare HTF with quadtrees by height; arguments and columns as for `figure_3`. A level of a quadtree counts as two. CURATOR ONLY.

    Source:
        Shaham et al., 2021, Figure 5.
    """
    return _by_height(points, quadtrees, **settings)


def figure_6(
    sets: Mapping[str, PointCounts],
    *,
    epsilon: float = 0.1,
    height: int = 14,
    queries: int = QUERIES,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Compare all methods on all data sets with mixed queries. CURATOR ONLY.

    Args:
        sets: the data sets by name; `paper_sets()` for the paper's setting.
        epsilon: budget.
        height: of kd-trees and quadtrees, in binary levels; the paper does not state it.
        queries: boxes per data set.
        repeats: releases with fresh noise, averaged.
        seed: of queries and noise.

    Returns:
        As `measure_errors`, with a column `data` first: data, epsilon, method, queries and the errors. PrivTree and the path-budget
        tree are not in the paper.

    Source:
        Shaham et al., 2021, Figure 6.
    """
    own_methods: dict[str, PointMechanism] = {"PrivTree": PrivTree(), "Path tree": PathTree()}
    methods: dict[str, PointMechanism] = {**htf_forms(), **kd_trees(height), **quadtrees(height), **grids(), **own_methods}
    cases: list[Case] = [({"method": name}, mechanism) for name, mechanism in methods.items()]
    runs = (repeats, seed)
    parts = {name: measure_errors(points, cases, mixed(points.domain, queries, seed), epsilon, runs) for name, points in sets.items()}
    return join_parts(parts, "data")


def measure_errors(
    points: PointCounts, cases: Sequence[Case], queries_by_name: Workloads, epsilon: float, runs: tuple[int, int]
) -> pd.DataFrame:
    """Make several releases by each mechanism and measure their errors. CURATOR ONLY.

    Args:
        points: private.
        cases: mechanisms, each with the columns of the table that identify it.
        queries_by_name: workloads by name.
        epsilon: budget of every release.
        runs: number of releases of each mechanism, and the seed of their noise.

    Returns:
        One row per case and workload: epsilon, the case's columns, queries, mre (mean relative error with smoothing 20, percent), n3
        (mean relative error with smoothing N / 1000, percent) and mae (mean absolute error, records). All three are means over the
        runs; mre_spread, n3_spread and mae_spread are their standard deviations over the runs, NaN for one run.
    """
    repeats, seed = runs
    streams, rows = iter(Entropy.seeded(seed).spawn(len(cases) * repeats)), []
    for key, mechanism in cases:
        for _ in range(repeats):
            release = mechanism.release(points, budget_of(mechanism, epsilon), next(streams))
            rows += [key | {"queries": name} | asdict(workload_errors(release, points, boxes)) for name, boxes in queries_by_name.items()]
    keys = [*cases[0][0], "queries"]
    groups = pd.DataFrame(rows).rename(columns={"mean20": "mre"}).groupby(keys, sort=False, dropna=False)[list(FIGURES)]
    table = groups.mean().join(groups.std().add_suffix("_spread")).reset_index()
    table.insert(0, "epsilon", epsilon)
    return table


def _by_height(
    points: PointCounts,
    other_trees: Callable[[int], Mapping[str, PointMechanism]],
    *,
    epsilons: Sequence[float] = EPSILONS,
    heights: Iterable[int] = HEIGHTS,
    queries: int = QUERIES,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Measure HTF and the compared trees at given heights, and HTF at the height that it chooses in one run."""
    cases: list[Case] = [
        ({"method": name, "height": height, "estimated": False}, mechanism)
        for make_mechanisms, height in product((other_trees, htf_forms), list(heights))
        for name, mechanism in make_mechanisms(height).items()
    ]
    queries_by_name, parts = workloads(points.domain, queries, seed), []
    for epsilon in epsilons:
        at_own_height: list[Case] = []
        for name, mechanism in htf_forms().items():
            budget = budget_of(mechanism, epsilon)
            own = mechanism.spending(Run.of(mechanism, points, budget, Entropy.seeded(seed)), budget.epsilon).height
            at_own_height.append(({"method": name, "height": own, "estimated": True}, mechanism))
        parts.append(measure_errors(points, [*cases, *at_own_height], queries_by_name, epsilon, (repeats, seed)))
    return pd.concat(parts, ignore_index=True)
