"""Figures of the paper on private spatial decompositions as tables: budgets, quadtrees, kd-trees and all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import PointMechanism
from dpviz.mechanisms.exact_kdtree import ExactKdtree
from dpviz.mechanisms.points.hilbert_tree import HilbertTree
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.papers.psd_queries import EPSILONS, REPEATS, SEED, SHAPES, Shape, median_errors, occupied_boxes
from dpviz.privacy.allocation import worst_error

PRUNED = 32
CELL_ORDER = 11


def figure_2(heights: Iterable[int] = range(5, 11)) -> pd.DataFrame:
    """Worst-case error of a range query on a quadtree with a uniform and with a geometric budget.

    Args:
        heights: of the quadtree.

    Returns:
        One row per height and split: height, split, error (bound on the variance, in units of 16 / epsilon**2 as the paper
        draws it).

    Source:
        Cormode et al., ICDE 2012, Figure 2.
    """
    rows = [(height, split, worst_error(height, 1.0, split) / 16) for height in heights for split in ("uniform", "geometric")]
    return pd.DataFrame(rows, columns=["height", "split", "error"])


def figure_3(
    points: PointCounts,
    *,
    epsilons: Sequence[float] = EPSILONS,
    shapes: Sequence[Shape] = SHAPES,
    height: int = 10,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Accuracy of quadtrees with and without a geometric budget and least squares.

    Args:
        points: `figures_queries.paper_points()` for the paper's setting.
        epsilons: budgets.
        shapes: width and height of the queries, in units of the domain's CRS.
        height: of all quadtrees.
        repeats: releases with fresh noise, averaged.
        seed: of queries and noise.

    Returns:
        As `figures_queries.median_errors`: method, epsilon, width, height, error (percent), spread.

    Source:
        Cormode et al., ICDE 2012, Figure 3.
    """
    questions = [occupied_boxes(points, shape, seed=seed) for shape in shapes]
    quads = {
        "quad-baseline": Quadtree(height=height, split="uniform", least_squares=False),
        "quad-geo": Quadtree(height=height, least_squares=False),
        "quad-post": Quadtree(height=height, split="uniform"),
        "quad-opt": Quadtree(height=height),
    }
    return median_errors(points, quads, questions, epsilons, repeats=repeats, seed=seed)


def figure_5(
    points: PointCounts,
    *,
    epsilons: Sequence[float] = EPSILONS,
    shapes: Sequence[Shape] = SHAPES,
    height: int = 8,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Accuracy of kd-trees that find their splits in different ways, pruned at 32; and of two that are NOT PRIVATE.

    Args:
        points: `figures_queries.paper_points()` for the paper's setting.
        epsilons: budgets.
        shapes: width and height of the queries, in units of the domain's CRS.
        height: of all trees.
        repeats: releases with fresh noise, averaged.
        seed: of queries and noise.

    Returns:
        As `figures_queries.median_errors`: method, epsilon, width, height, error (percent), spread. Beyond the paper:
        "kd-noisymean, middle" halves a node evenly where the noisy mean falls outside of it, which is what `Kdtree` does, and
        "kd-smooth" has medians by smooth sensitivity with delta 1e-4.

    Source:
        Cormode et al., ICDE 2012, Figure 5. Its cells of 0.01 degrees are 0.0107 x 0.0086 here: a grid of order 11.
    """
    questions = [occupied_boxes(points, shape, seed=seed) for shape in shapes]
    return median_errors(points, kd_trees(height), questions, epsilons, repeats=repeats, seed=seed)


def kd_trees(height: int = 8) -> dict[str, PointMechanism]:
    """The kd-trees of Figure 5, and two of ours, by name."""
    return {
        "kd-standard": Kdtree(height=height, prune=PRUNED),
        "kd-hybrid": Kdtree(variant="hybrid", height=height, prune=PRUNED),
        "kd-cell": Kdtree(variant="cell", cell_order=CELL_ORDER, height=height, prune=PRUNED),
        "kd-noisymean": Kdtree(variant="noisy-mean", outside="nearest", height=height, prune=PRUNED),
        "kd-noisymean, middle": Kdtree(variant="noisy-mean", height=height, prune=PRUNED),
        "kd-smooth": Kdtree(variant="smooth-sensitivity", height=height, prune=PRUNED),
        "kd-true": ExactKdtree(height=height, prune=PRUNED),
        "kd-pure": ExactKdtree(counts="exact", height=height, prune=PRUNED),
    }


def figure_6(
    points: PointCounts,
    *,
    heights: Iterable[int] = range(6, 12),
    shapes: Sequence[Shape] = ((1, 1), (10, 10), (15, 0.2)),
    epsilon: float = 0.5,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Accuracy of the best of each family by height, all pruned at 32.

    Args:
        points: `figures_queries.paper_points()` for the paper's setting.
        heights: of the trees.
        shapes: width and height of the queries, in units of the domain's CRS.
        epsilon: budget.
        repeats: releases with fresh noise, averaged.
        seed: of queries and noise.

    Returns:
        As `figures_queries.median_errors`, with a column `steps`, the height of the trees, before the others.

    Source:
        Cormode et al., ICDE 2012, Figure 6. Whether its quadtree is pruned is not said; Section VII recommends it for all trees.
    """
    questions = [occupied_boxes(points, shape, seed=seed) for shape in shapes]
    parts = [(steps, median_errors(points, families(steps), questions, [epsilon], repeats=repeats, seed=seed)) for steps in heights]
    return pd.concat([part.assign(steps=steps)[["steps", *part.columns]] for steps, part in parts], ignore_index=True)


def families(height: int) -> dict[str, PointMechanism]:
    """The trees of Figure 6 by name; kd-cell with the paper's cells of 0.01 degrees, though coarser ones do better on these data."""
    return {
        "quad-opt": Quadtree(height=height, prune=PRUNED),
        "kd-cell": Kdtree(variant="cell", cell_order=CELL_ORDER, height=height, prune=PRUNED),
        "kd-hybrid": Kdtree(variant="hybrid", height=height, prune=PRUNED),
        "Hilbert-R": HilbertTree(height=height, prune=PRUNED),
    }
