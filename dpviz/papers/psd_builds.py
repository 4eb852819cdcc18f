"""Figure 7 of the paper on private spatial decompositions as tables: how long they take to build, and record matching with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from dpviz.data.points import PointCounts
from dpviz.evaluation.matching import Blocking, Holders, block, made_up_holders
from dpviz.mechanisms.base import PointMechanism
from dpviz.mechanisms.points.hilbert_tree import HilbertTree
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.papers.psd import CELL_ORDER
from dpviz.papers.psd_queries import ORDER, REPEATS, SEED, budget_of
from dpviz.privacy.entropy import Entropy
from dpviz.samples.residents import SQUARE, los_angeles
from dpviz.samples.road_points import BOUNDS, PAPER_SIZE, road_points
from dpviz.space.domain import Domain

COUNTING = "counting on the lattice"
MATCHED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
DISAGREEMENT = 0.001  # degrees: about 100 m
MARGIN = 0.004


def figure_7a(size: int = PAPER_SIZE, *, order: int = ORDER, epsilon: float = 0.5, repeats: int = 3, seed: int = SEED) -> pd.DataFrame:
    """Time to build each decomposition from counted points, in seconds and in sorts of the same points.

    Args:
        size: made-up road crossings.
        order: of the lattice.
        epsilon: budget.
        repeats: the shortest of so many runs is taken, of the sort too.
        seed: of the noise.

    Returns:
        One row per method: method, seconds, and lexsorts, the same in units of one np.lexsort of the points' two coordinates;
        the first row is counting the coordinates on the lattice, which comes before every method.

    Source:
        Cormode et al., ICDE 2012, Figure 7 (a): quadtrees of height 10, all others of height 8 with fan-out 4.
    """
    x, y = road_points(size)
    domain = Domain(bounds=BOUNDS, crs="EPSG:4326", order=order)
    points = PointCounts.from_xy(x, y, domain=domain)
    sort = _shortest(lambda: np.lexsort((x, y)), repeats)
    rows = {COUNTING: _shortest(lambda: PointCounts.from_xy(x, y, domain=domain), repeats)}
    for name, mechanism in _builds(order).items():
        rows[name] = _shortest(partial(mechanism.release, points, budget_of(mechanism, epsilon), Entropy.seeded(seed)), repeats)
    return pd.DataFrame({"method": list(rows), "seconds": list(rows.values()), "lexsorts": [each / sort for each in rows.values()]})


def _builds(order: int) -> dict[str, PointMechanism]:
    height = min(8, order)
    return {
        "quad-baseline": Quadtree(height=min(10, order), split="uniform", least_squares=False),
        "quad-opt": Quadtree(height=min(10, order)),
        "kd-noisymean": Kdtree(variant="noisy-mean", height=height),
        "kd-hybrid": Kdtree(variant="hybrid", height=height),
        "kd-standard": Kdtree(height=height),
        "kd-standard, 1 % sample": Kdtree(height=height, sample=0.01),
        "kd-cell": Kdtree(variant="cell", cell_order=CELL_ORDER, height=height),
        "Hilbert-R": HilbertTree(height=height),
    }


def _shortest(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs."""
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def made_up_register(size: int = 50_000, *, order: int = 12, seed: int = SEED) -> Holders:
    """Two made-up registers of residents of Los Angeles who agree to about 100 m on a fifth of them.

    Args:
        size: people in all.
        order: of the lattice; 12 makes cells of 17 m.
        seed: of who is where and in which register.
    """
    domain = Domain(bounds=SQUARE, crs="EPSG:4326", order=order)
    return made_up_holders(*los_angeles(size, seed=seed), domain=domain, common=0.2, disagreement=DISAGREEMENT, seed=seed)


def figure_7b(
    holders: Holders,
    *,
    epsilons: Sequence[float] = MATCHED,
    heights: Sequence[int] = (3, 6),
    threshold: float = 0.0,
    margin: float = MARGIN,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """How much work blocking by a private decomposition saves in record matching, and how many matches it keeps.

    Args:
        holders: for example `made_up_register()`.
        epsilons: budgets.
        heights: of all trees, fan-out 4. The paper does not say; its ratios of 0.93 to 0.95 are those of some dozens of leaves.
        threshold: leaves with a smaller released count are dropped.
        margin: around leaves, in units of the domain's CRS.
        repeats: releases with fresh noise, averaged.
        seed: of the noise.

    Returns:
        One row per height, epsilon and method: height, epsilon, method, reduction (share of pairs not compared, 0 to 1), spread
        (its standard deviation over the repeats), padded (the same share if kept leaves are filled up to their released counts)
        and recall (share of true matches that survive, 0 to 1).

    Source:
        Cormode et al., ICDE 2012, Figure 7 (b): all of the count budget on leaves, no least squares. Recall is ours to report.
    """
    streams = iter(Entropy.seeded(seed).spawn(len(heights) * len(epsilons) * 3 * repeats))
    rows = []
    for height in heights:
        for epsilon in epsilons:
            for name, mechanism in _matchers(height).items():
                budget = budget_of(mechanism, epsilon)
                runs = (mechanism.release(holders.first, budget, next(streams)) for _ in range(repeats))
                found = [block(release, holders, threshold=threshold, margin=margin) for release in runs]
                rows.append({"height": height, "epsilon": epsilon, "method": name} | _means(found))
    return pd.DataFrame(rows)


def _matchers(height: int) -> dict[str, PointMechanism]:
    return {
        "quad-baseline": Quadtree(height=height, split="leaf", least_squares=False),
        "kd-noisymean": Kdtree(variant="noisy-mean", outside="nearest", height=height, split="leaf", least_squares=False),
        "kd-standard": Kdtree(height=height, split="leaf", least_squares=False),
    }


def _means(found: Sequence[Blocking]) -> dict[str, float]:
    reduction = np.array([each.reduction for each in found])
    return {
        "reduction": float(reduction.mean()),
        "spread": float(reduction.std(ddof=1)) if len(found) > 1 else float("nan"),
        "padded": float(np.mean([each.padded_reduction for each in found])),
        "recall": float(np.mean([each.recall for each in found])),
    }
