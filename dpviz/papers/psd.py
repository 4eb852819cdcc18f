"""Figures 2 to 7 of the paper on private spatial decompositions as tables: budgets, trees, medians, build times, record matching."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.evaluation.matching import Holders, block, guess_presence, made_up_holders
from dpviz.evaluation.metrics import true_answers
from dpviz.mechanisms.base import AnyMechanism
from dpviz.mechanisms.points.base import PointMechanism
from dpviz.mechanisms.points.hilbert_tree import HilbertTree
from dpviz.mechanisms.points.kdtree import Kdtree
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.mechanisms.references import ExactKdtree
from dpviz.papers.clock import seconds_now
from dpviz.papers.parts import join_parts
from dpviz.privacy.allocation import worst_case_variance
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import cell_medians, exponential_medians, noisy_mean_medians
from dpviz.privacy.node_values import NodeValues
from dpviz.privacy.noise import discrete_laplace
from dpviz.privacy.sampling import delta_before_sampling, epsilon_before_sampling, sample_records
from dpviz.privacy.smooth import smooth_medians
from dpviz.release.point_release import PointRelease
from dpviz.samples.points import BOUNDS, PAPER_SIZE, SQUARE, los_angeles, road_points
from dpviz.space.domain import Domain
from dpviz.space.workloads import fixed_size

Shape = tuple[float, float]

SHAPES: tuple[Shape, ...] = ((1, 1), (5, 5), (10, 10), (15, 0.2))
QUERIES = 600
EPSILONS = (0.1, 0.5, 1.0)
REPEATS = 20
DELTA = "1e-4"
ORDER = 16
SEED = 2012
_ROUNDS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class Questions:
    """A workload: boxes of one shape that contain records. CURATOR ONLY: the boxes depend on private data.

    Attributes:
        shape: width and height, in units of the domain's CRS.
        boxes: (q, 4) west, south, east, north.
        truth: (q,) true answers, at least 1.
    """

    shape: Shape
    boxes: Floats
    truth: Integers

    def median_error(self, release: PointRelease) -> float:
        """Return the median of |answer - truth| / truth, in percent."""
        return float(100 * np.median(np.abs(release.answer(self.boxes) - self.truth) / self.truth))


def paper_points(size: int = PAPER_SIZE, *, order: int = ORDER) -> PointCounts:
    """Make up road crossings, in place of the paper's data, and count them.

    Args:
        size: number of crossings.
        order: of the lattice. With 16, cells are 25 x 30 m, and 98 % of the crossings have a cell of their own. So medians are as fine as
            medians of coordinates, and quadtrees up to height 16 are possible.
    """
    x, y = road_points(size)
    return PointCounts.from_xy(x, y, domain=Domain(bounds=BOUNDS, crs="EPSG:4326", order=order))


def occupied_boxes(points: PointCounts, shape: Shape, count: int = QUERIES, *, seed: int = SEED) -> Questions:
    """Draw random boxes of one shape that contain records. CURATOR ONLY.

    Args:
        points: private; boxes without any of these points are left out.
        shape: width and height in units of the domain's CRS, rounded to whole lattice cells.
        count: number of boxes.
        seed: equal seeds give equal boxes.

    Raises:
        DomainError: the shape is not positive, or larger than the domain.
        InputError: too few boxes of this shape contain a record.

    Source:
        Cormode et al., ICDE 2012, Section VIII-A: 600 queries "that have a non-zero answer" for each shape.
    """
    boxes, truths, occupied = [np.zeros((0, 4))], [np.zeros(0, np.int64)], 0
    for part in range(_ROUNDS):
        candidates = fixed_size(points.domain, *shape, count, seed + part)
        truth = true_answers(points, candidates)
        boxes.append(candidates[truth > 0])
        truths.append(truth[truth > 0])
        occupied += len(boxes[-1])
        if occupied >= count:
            return Questions(shape=shape, boxes=np.concatenate(boxes)[:count], truth=np.concatenate(truths)[:count])
    raise InputError("Too few boxes of this shape contain a record; choose a larger shape or fewer boxes.")


def median_errors(
    points: PointCounts,
    mechanisms: Mapping[str, PointMechanism],
    questions: Sequence[Questions],
    epsilons: Sequence[float] = EPSILONS,
    *,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Make several releases by each mechanism and measure their median relative errors. CURATOR ONLY.

    Args:
        points: private.
        mechanisms: the mechanisms by name.
        questions: a workload per shape.
        epsilons: budgets.
        repeats: releases with fresh noise per mechanism and epsilon.
        seed: of the noise.

    Returns:
        One row per mechanism, epsilon and shape: method, epsilon, width, height, error (percent: mean over the repeats of
        the median relative error) and spread (standard deviation of that error over the repeats; NaN for a single one).
    """
    rows = []
    streams = iter(Entropy.seeded(seed).spawn(len(mechanisms) * len(epsilons) * repeats))
    for name, mechanism in mechanisms.items():
        for epsilon in epsilons:
            budget = budget_of(mechanism, epsilon)
            runs = (mechanism.release(points, budget, next(streams)) for _ in range(repeats))
            errors = np.array([[workload.median_error(release) for workload in questions] for release in runs])
            for workload, of_shape in zip(questions, errors.T, strict=True):
                key = {"method": name, "epsilon": epsilon, "width": workload.shape[0], "height": workload.shape[1]}
                rows.append(key | _mean_and_spread("error", of_shape))
    return pd.DataFrame(rows)


def _mean_and_spread(name: str, values: Floats) -> dict[str, float]:
    """Return the mean of (n,) values, by a name, and their standard deviation, NaN for a single one."""
    return {name: float(values.mean()), "spread": float(values.std(ddof=1)) if len(values) > 1 else math.nan}


def budget_of(mechanism: AnyMechanism, epsilon: float) -> Any:
    """Make a budget of the kind that a mechanism takes; delta is the paper's 1e-4."""
    return ApproxBudget(str(epsilon), DELTA) if mechanism.needs_delta else PureBudget(str(epsilon))


PRUNED = 32
CELL_ORDER = 11


def figure_2(heights: Iterable[int] = range(5, 11)) -> pd.DataFrame:
    """Compute the worst-case error of a range query on a quadtree, for a uniform and a geometric split of the budget.

    Args:
        heights: of the quadtree.

    Returns:
        One row per height and split: height, split, error (bound on the variance, in units of 16 / epsilon**2, as in the paper's figure).

    Source:
        Cormode et al., ICDE 2012, Figure 2.
    """
    rows = [(height, split, worst_case_variance(height, 1.0, split) / 16) for height in heights for split in ("uniform", "geometric")]
    return pd.DataFrame(rows, columns=["height", "split", "error"])


class Workload(TypedDict, total=False):
    """Queries and releases of `figure_3` and `figure_5`, as keyword arguments; what is left out is the paper's.

    Attributes:
        epsilons: budgets, `EPSILONS`.
        shapes: width and height of the queries, in units of the domain's CRS, `SHAPES`.
        queries: boxes per shape, `QUERIES`.
        repeats: releases with fresh noise, averaged, `REPEATS`.
        seed: of queries and noise, `SEED`.
    """

    epsilons: Sequence[float]
    shapes: Sequence[Shape]
    queries: int
    repeats: int
    seed: int


def _measure_shapes(
    points: PointCounts,
    mechanisms: Mapping[str, PointMechanism],
    *,
    epsilons: Sequence[float] = EPSILONS,
    shapes: Sequence[Shape] = SHAPES,
    queries: int = QUERIES,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Draw the queries and measure the mechanisms by `median_errors`."""
    questions = [occupied_boxes(points, shape, queries, seed=seed) for shape in shapes]
    return median_errors(points, mechanisms, questions, epsilons, repeats=repeats, seed=seed)


def figure_3(points: PointCounts, *, height: int = 10, **workload: Unpack[Workload]) -> pd.DataFrame:
    """Measure the accuracy of quadtrees with and without a geometric budget and least squares. CURATOR ONLY.

    Args:
        points: `paper_points()` for the paper's setting.
        height: of all quadtrees.
        **workload: see `Workload`.

    Returns:
        As `median_errors`: method, epsilon, width, height, error (percent), spread.

    Source:
        Cormode et al., ICDE 2012, Figure 3.
    """
    quads = {
        "quad-baseline": Quadtree(height=height, split="uniform", least_squares=False),
        "quad-geo": Quadtree(height=height, least_squares=False),
        "quad-post": Quadtree(height=height, split="uniform"),
        "quad-opt": Quadtree(height=height),
    }
    return _measure_shapes(points, quads, **workload)


def figure_5(points: PointCounts, *, height: int = 8, cell_order: int = CELL_ORDER, **workload: Unpack[Workload]) -> pd.DataFrame:
    """Measure the accuracy of kd-trees that find splits in different ways, pruned at 32; two of them are NOT PRIVATE. CURATOR ONLY.

    Args:
        points: `paper_points()` for the paper's setting.
        height: of all trees.
        cell_order: of the grid of kd-cell.
        **workload: see `Workload`.

    Returns:
        As `median_errors`: method, epsilon, width, height, error (percent), spread. Two methods are not in the paper:
        "kd-noisymean, middle" splits a node in the middle if the noisy mean lies outside the node, as `Kdtree` does by default.
        "kd-smooth" finds medians by smooth sensitivity with delta 1e-4.

    Source:
        Cormode et al., ICDE 2012, Figure 5. Its cells of 0.01 degrees are 0.0107 x 0.0086 here: a grid of order 11.
    """
    return _measure_shapes(points, kd_trees(height, cell_order), **workload)


def kd_trees(height: int = 8, cell_order: int = CELL_ORDER) -> dict[str, PointMechanism]:
    """Build the kd-trees of Figure 5 and two further ones, by name."""
    return {
        "kd-standard": Kdtree(height=height, prune=PRUNED),
        "kd-hybrid": Kdtree(variant="hybrid", height=height, prune=PRUNED),
        "kd-cell": Kdtree(variant="cell", cell_order=cell_order, height=height, prune=PRUNED),
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
    cell_order: int = CELL_ORDER,
    queries: int = QUERIES,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Measure the accuracy of the best tree of each family by height, pruned at 32, and of two other readings. CURATOR ONLY.

    Args:
        points: `paper_points()` for the paper's setting.
        heights: of the trees.
        shapes: width and height of the queries, in units of the domain's CRS.
        epsilon: budget.
        cell_order: of the grid of kd-cell.
        queries: boxes per shape.
        repeats: releases with fresh noise, averaged.
        seed: of queries and noise.

    Returns:
        As `median_errors`, with the height of the trees as first column `steps`.

    Source:
        Cormode et al., ICDE 2012, Figure 6. The paper does not say whether the trees of this figure are pruned;
        Section VII recommends pruning for all trees.
    """
    questions = [occupied_boxes(points, shape, queries, seed=seed) for shape in shapes]
    trees = {steps: families(steps, cell_order) for steps in heights}
    parts = {steps: median_errors(points, each, questions, [epsilon], repeats=repeats, seed=seed) for steps, each in trees.items()}
    return join_parts(parts, "steps")


def families(height: int, cell_order: int = CELL_ORDER) -> dict[str, PointMechanism]:
    """Build the trees of Figure 6, by name; kd-cell has the paper's cells of 0.01 degrees, although coarser ones are better here.

    Two are other readings of the paper. "quad-opt, not pruned" keeps all nodes: the paper introduces pruning where it compares kd-trees.
    "Hilbert-R, binary" halves a piece of the curve once per step, as in Section III-C; by Section VI-B all trees have a fan-out of 4.
    """
    return {
        "quad-opt": Quadtree(height=height, prune=PRUNED),
        "kd-cell": Kdtree(variant="cell", cell_order=cell_order, height=height, prune=PRUNED),
        "kd-hybrid": Kdtree(variant="hybrid", height=height, prune=PRUNED),
        "Hilbert-R": HilbertTree(height=height, prune=PRUNED),
        "quad-opt, not pruned": Quadtree(height=height),
        "Hilbert-R, binary": HilbertTree(height=height, fan_out=2, prune=PRUNED),
    }


COUNTING = "counting on the lattice"
MATCHED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
DISAGREEMENT = 0.001  # degrees: about 100 m
MARGIN = 0.004


def figure_7a(
    size: int = PAPER_SIZE,
    *,
    order: int = ORDER,
    height: int = 8,
    cell_order: int = CELL_ORDER,
    epsilon: float = 0.5,
    repeats: int = 3,
    seed: int = SEED,
) -> pd.DataFrame:
    """Measure the time to build each decomposition from counted points, in seconds and relative to sorting the points.

    Args:
        size: made-up road crossings.
        order: of the lattice; higher trees are cut to it.
        height: of all trees but quadtrees, which are two levels higher.
        cell_order: of the grid of kd-cell.
        epsilon: budget.
        repeats: number of runs; the shortest is taken.
        seed: of the noise.

    Returns:
        One row per method: method, seconds, and lexsorts (seconds divided by the seconds of one np.lexsort of the coordinates). The
        first row is the time to count the coordinates on the lattice, which every method needs.

    Source:
        Cormode et al., ICDE 2012, Figure 7 (a): quadtrees of height 10, all others of height 8 with fan-out 4.
    """
    x, y = road_points(size)
    domain = Domain(bounds=BOUNDS, crs="EPSG:4326", order=order)
    points = PointCounts.from_xy(x, y, domain=domain)
    sort = _time_fastest(lambda: np.lexsort((x, y)), repeats)
    rows = {COUNTING: _time_fastest(lambda: PointCounts.from_xy(x, y, domain=domain), repeats)}
    for name, mechanism in _timed_mechanisms(min(height, order), min(height + 2, order), cell_order).items():
        rows[name] = _time_fastest(partial(mechanism.release, points, budget_of(mechanism, epsilon), Entropy.seeded(seed)), repeats)
    return pd.DataFrame({"method": list(rows), "seconds": list(rows.values()), "lexsorts": [seconds / sort for seconds in rows.values()]})


def _timed_mechanisms(height: int, quad_height: int, cell_order: int) -> dict[str, PointMechanism]:
    return {
        "quad-baseline": Quadtree(height=quad_height, split="uniform", least_squares=False),
        "quad-opt": Quadtree(height=quad_height),
        "kd-noisymean": Kdtree(variant="noisy-mean", height=height),
        "kd-hybrid": Kdtree(variant="hybrid", height=height),
        "kd-standard": Kdtree(height=height),
        "kd-standard, 1 % sample": Kdtree(height=height, sample=0.01),
        "kd-cell": Kdtree(variant="cell", cell_order=cell_order, height=height),
        "Hilbert-R": HilbertTree(height=height),
    }


def _time_fastest(work: Callable[[], object], repeats: int) -> float:
    """Measure the seconds of the fastest of several runs."""
    durations = []
    for _ in range(repeats):
        start = seconds_now()
        work()
        durations.append(seconds_now() - start)
    return min(durations)


def made_up_register(size: int = 50_000, *, order: int = 12, seed: int = SEED) -> Holders:
    """Make up two registers of residents of Los Angeles; a fifth is in both, at coordinates that differ by about 100 m.

    Args:
        size: number of people.
        order: of the lattice; 12 makes cells of 17 m.
        seed: of the people and the registers.
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
    """Measure the comparisons that blocking by private decompositions saves in record matching, and the matches it keeps. CURATOR ONLY.

    Args:
        holders: for example `made_up_register()`.
        epsilons: budgets.
        heights: of all trees, fan-out 4. The paper does not state them; its ratios of 0.93 to 0.95 need some dozens of leaves.
        threshold: leaves with a smaller released count are dropped.
        margin: around leaves, in units of the domain's CRS.
        repeats: releases with fresh noise, averaged.
        seed: of the noise.

    Returns:
        One row per height, epsilon and method: height, epsilon, method, reduction (share of pairs not compared, 0 to 1), spread
        (its standard deviation over the repeats), padded (the same share if dummy records fill kept leaves up to their released counts),
        recall (share of true matches that are compared, 0 to 1), and cut_reduction and cut_recall, which are reduction and recall if every
        leaf takes part with exactly its released count, so that nothing else is shown.

    Source:
        Cormode et al., ICDE 2012, Figure 7 (b): all of the count budget on leaves, no least squares. It does not report recall.
    """
    streams = iter(Entropy.seeded(seed).spawn(len(heights) * len(epsilons) * 3 * repeats))
    rows = []
    for height in heights:
        for epsilon in epsilons:
            for name, mechanism in _matching_mechanisms(height).items():
                budget = budget_of(mechanism, epsilon)
                runs = (mechanism.release(holders.first, budget, next(streams)) for _ in range(repeats))
                blockings = [block(release, holders, threshold=threshold, margin=margin) for release in runs]
                row = {"height": height, "epsilon": epsilon, "method": name}
                row |= _mean_and_spread("reduction", np.array([blocking.reduction for blocking in blockings]))
                for column, measure in _MEAN_RESULTS.items():
                    row[column] = float(np.mean([getattr(blocking, measure) for blocking in blockings]))
                rows.append(row)
    return pd.DataFrame(rows)


_MEAN_RESULTS = {"padded": "padded_reduction", "recall": "recall", "cut_reduction": "cut_reduction", "cut_recall": "cut_recall"}


def _matching_mechanisms(height: int) -> dict[str, PointMechanism]:
    return {
        "quad-baseline": Quadtree(height=height, split="leaf", least_squares=False),
        "kd-noisymean": Kdtree(variant="noisy-mean", outside="nearest", height=height, split="leaf", least_squares=False),
        "kd-standard": Kdtree(height=height, split="leaf", least_squares=False),
    }


def matching_attack(
    holders: Holders, *, epsilons: Sequence[float] = MATCHED, height: int = 6, people: int = 2000, threshold: float = 0.0, seed: int = SEED
) -> pd.DataFrame:
    """Measure how often an attacker guesses right whether a person is in the first holder's file. CURATOR ONLY.

    Args:
        holders: for example `made_up_register()`.
        epsilons: budgets.
        height: of all trees. Their leaves should be about as many as the people, whose guesses then have noise of their own.
        people: guesses per release.
        threshold: leaves with a smaller released count are dropped.
        seed: of people and noise.

    Returns:
        One row per epsilon and method: epsilon, method, bound (exp(epsilon) / (1 + exp(epsilon)), the most that epsilon allows) and the
        shares of right guesses, 0 to 1, as `Guesses` names them: sees_released, sees_padded and sees_sizes.

    Source:
        Cormode et al., ICDE 2012, Section VIII-C, uses the blocks; the attack is ours.
    """
    rows = []
    for epsilon in epsilons:
        for name, mechanism in _matching_mechanisms(height).items():
            budget = budget_of(mechanism, epsilon)
            guesses = guess_presence(holders.first, mechanism, budget, people=people, threshold=threshold, seed=seed)
            rows.append({"epsilon": epsilon, "method": name, "bound": 1 / (1 + math.exp(-epsilon))})
            rows[-1] |= {f"sees_{name}": share for name, share in asdict(guesses).items()}
    return pd.DataFrame(rows)


Medians = Callable[[NodeValues], Integers]

EPSILON = Fraction(1, 100)
_MEDIANS_DELTA = Fraction(1, 10_000)
RATE = Fraction(1, 100)
CELL = 2**10
METHODS = ("EM", "SS", "NM", "cell", "cell_t", "EM_s", "SS_s")


def figure_4(
    size: int = 2**20, width: int = 2**26, *, levels: int = 10, cell: int = CELL, repeats: int = REPEATS, seed: int = SEED
) -> pd.DataFrame:
    """Rank errors of private medians, by level of a binary tree over uniformly distributed whole numbers.

    Every method splits a tree of its own, with epsilon 0.01 per level, delta 1e-4 for smooth sensitivity, and samples of 1 %
    for EM_s and SS_s. EM has the exponent of Definition 5, epsilon / 2 per rank. The cell method needs one noisy grid for the
    whole tree; the paper does not state the grid's budget. "cell" spends the epsilon of one level on the grid, so that all methods
    cost the same per level. "cell_t" spends the epsilon of all levels, so that all methods cost the same per tree.

    Args:
        size: records.
        width: records lie in 0..width - 1.
        levels: of the tree; the root has depth 0.
        cell: length of a cell of the cell method.
        repeats: trees with fresh noise per method, averaged.
        seed: of records and noise.

    Returns:
        One row per method (EM: exponential mechanism, SS: smooth sensitivity, NM: noisy mean, cell, cell_t; _s: on samples) and depth:
        method, depth, records (mean per node with records), error (mean distance of the split from the median in rank, in percent of
        n/2; 100 if all records are on one side), spread (standard deviation of the error over the repeats) and seconds (mean, for
        all splits of the level; the grid counts at depth 0).

    Source:
        Cormode et al., ICDE 2012, Figure 4 (a) and (b).
    """
    records = NodeValues.of_one(np.random.default_rng(seed).integers(0, width, size), 0, width)
    streams = iter(Entropy.seeded(seed).spawn(len(METHODS) * repeats))
    rows = []
    for method in METHODS:
        for _ in range(repeats):
            rows += [{"method": method, **row} for row in _split_tree(records, method, next(streams), levels, cell)]
    table = pd.DataFrame(rows).groupby(["method", "depth"], sort=False)
    means = table[["records", "error", "seconds"]].mean()
    return means.assign(spread=table["error"].std()).reset_index()[["method", "depth", "records", "error", "spread", "seconds"]]


def _split_tree(nodes: NodeValues, method: str, entropy: Entropy, levels: int, cell: int) -> list[dict[str, float]]:
    """Split one tree by a method, and return one row of results per depth."""
    rows, start = [], seconds_now()
    medians = _medians(nodes, method, entropy, levels, cell)
    for depth in range(levels):
        line = medians(nodes)
        seconds = seconds_now() - start
        cumulative, occupied = np.append(0, np.cumsum(nodes.count)), nodes.records > 0  # nodes are adjacent and in ascending order
        below = cumulative[np.searchsorted(nodes.value, line)] - cumulative[nodes.start[:-1]]
        error = np.abs(2 * below - nodes.records)[occupied] / nodes.records[occupied]
        records = float(nodes.records[occupied].mean())
        rows.append({"depth": depth, "records": records, "error": float(100 * error.mean()), "seconds": seconds})
        nodes = _halve(nodes, line)
        start = seconds_now()
    return rows


def _medians(nodes: NodeValues, method: str, entropy: Entropy, levels: int, cell: int) -> Medians:
    if method.startswith("cell"):
        return _Grid.of(nodes, EPSILON * (levels if method == "cell_t" else 1), entropy, cell).medians
    if method == "NM":
        return lambda part: noisy_mean_medians(part, EPSILON, entropy)
    rate = RATE if method.endswith("_s") else Fraction(1)
    epsilon = epsilon_before_sampling(EPSILON, rate)
    if method.startswith("EM"):
        return lambda part: exponential_medians(sample_records(part, rate, entropy), epsilon, entropy, exponent="paper")
    budget = ApproxBudget(epsilon, delta_before_sampling(_MEDIANS_DELTA, rate))
    return lambda part: smooth_medians(sample_records(part, rate, entropy), budget, entropy)


def _halve(nodes: NodeValues, line: Integers) -> NodeValues:
    """Cut every node at its line; parts that are too narrow to be split again are left out."""
    index = np.searchsorted(nodes.value, line)
    start = np.append(np.column_stack([nodes.start[:-1], index]).ravel(), nodes.start[-1])
    low, high = np.column_stack([nodes.low, line]).ravel(), np.column_stack([line, nodes.high]).ravel()
    wide, sizes = high - low >= 2, np.diff(start)
    here = np.repeat(wide, sizes)
    return NodeValues(
        value=nodes.value[here],
        count=nodes.count[here],
        start=np.concatenate([[0], np.cumsum(sizes[wide])]),
        low=low[wide],
        high=high[wide],
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Grid:
    """Noisy counts of cells of length `cell`, as (c + 1,) cumulative sums at the lines between cells."""

    sums: Floats
    cell: int

    @classmethod
    def of(cls, nodes: NodeValues, epsilon: Fraction, entropy: Entropy, cell: int) -> _Grid:
        """Count the records of one node, which starts at 0, and add noise."""
        counts = np.bincount(nodes.value // cell, nodes.count, -(-int(nodes.high[0]) // cell)).astype(np.int64)
        noisy = discrete_laplace(counts, PureBudget(epsilon), entropy)
        return cls(sums=np.concatenate([[0.0], np.cumsum(noisy)]), cell=cell)

    def medians(self, nodes: NodeValues) -> Integers:
        """Find (n,) split lines from the noisy grid and the public ends of the nodes alone."""
        first = nodes.low // self.cell + 1
        inner = np.maximum(-(-nodes.high // self.cell) - first, 0)
        start = np.concatenate([[0], np.cumsum(inner)])
        line = np.arange(start[-1]) - np.repeat(start[:-1], inner) + np.repeat(first, inner)
        before = self._at(nodes.low)
        below = self.sums[line] - np.repeat(before, inner)
        return cell_medians((nodes.low, nodes.high), start, line * self.cell, below, self._at(nodes.high) - before)

    def _at(self, value: Integers) -> Floats:
        """Estimate the noisy number of records below each value; cells are interpolated."""
        return np.interp(value, np.arange(len(self.sums)) * self.cell, self.sums)
