"""How the papers' figures ask: boxes of one shape that hold records, and the median relative error of repeated releases on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.evaluation.metrics import true_answers
from dpviz.mechanisms.base import PointMechanism
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release
from dpviz.samples.road_points import BOUNDS, PAPER_SIZE, road_points
from dpviz.space.domain import Domain
from dpviz.space.workloads import fixed_size

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
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
    """Boxes of one shape that all hold records. CURATOR ONLY: they were chosen by looking at private data.

    Attributes:
        shape: width and height, in units of the domain's CRS.
        boxes: (q, 4) west, south, east, north.
        truth: (q,) true answers, at least 1.
    """

    shape: Shape
    boxes: Floats
    truth: Integers

    def median_error(self, release: Release) -> float:
        """Median of |answer - truth| / truth, in percent."""
        return float(100 * np.median(np.abs(release.answer(self.boxes) - self.truth) / self.truth))


def paper_points(size: int = PAPER_SIZE, *, order: int = ORDER) -> PointCounts:
    """The made-up road crossings that stand for the paper's data, counted.

    Args:
        size: crossings.
        order: of the lattice. 16 makes cells of 25 x 30 m, a third of a block: 98 % of the paper's number of crossings have a cell
            of their own, so that median lines are as fine as those of bare coordinates, and quadtrees up to height 16 fit.
    """
    x, y = road_points(size)
    return PointCounts.from_xy(x, y, domain=Domain(bounds=BOUNDS, crs="EPSG:4326", order=order))


def occupied_boxes(points: PointCounts, shape: Shape, count: int = QUERIES, *, seed: int = SEED) -> Questions:
    """Boxes of one shape, anywhere in the domain, without those that hold no record.

    Args:
        points: private; looked at to leave boxes out, so this is for studies only.
        shape: width and height in units of the domain's CRS, rounded to whole lattice cells.
        count: q, how many.
        seed: the same seed gives the same boxes.

    Raises:
        DomainError: a shape that is not positive or larger than the domain.
        InputError: hardly any box of this shape holds a record.

    Source:
        Cormode et al., ICDE 2012, Section VIII-A: 600 queries "that have a non-zero answer" for each shape.
    """
    boxes, truths, found = [np.zeros((0, 4))], [np.zeros(0, np.int64)], 0
    for part in range(_ROUNDS):
        drawn = fixed_size(points.domain, *shape, count, seed + part)
        truth = true_answers(points, drawn)
        boxes.append(drawn[truth > 0])
        truths.append(truth[truth > 0])
        found += len(boxes[-1])
        if found >= count:
            return Questions(shape=shape, boxes=np.concatenate(boxes)[:count], truth=np.concatenate(truths)[:count])
    raise InputError("Hardly any box of this shape holds a record; ask for a larger shape or fewer boxes.")


def median_errors(
    points: PointCounts,
    mechanisms: Mapping[str, PointMechanism],
    questions: Sequence[Questions],
    epsilons: Sequence[float] = EPSILONS,
    *,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Release again and again, and ask every time.

    Args:
        points: private.
        mechanisms: by the name that the table shall have.
        questions: one set of boxes per shape.
        epsilons: budgets.
        repeats: releases with fresh noise per mechanism and epsilon.
        seed: of the noise.

    Returns:
        One row per mechanism, epsilon and shape: method, epsilon, width, height, error (percent: mean over the repeats of
        the median relative error) and spread (its standard deviation over the repeats; NaN for one).
    """
    rows = []
    streams = iter(Entropy.seeded(seed).spawn(len(mechanisms) * len(epsilons) * repeats))
    for name, mechanism in mechanisms.items():
        for epsilon in epsilons:
            budget = budget_of(mechanism, epsilon)
            runs = (mechanism.release(points, budget, next(streams)) for _ in range(repeats))
            errors = np.array([[asked.median_error(release) for asked in questions] for release in runs])
            rows += [_row(name, epsilon, asked.shape, errors[:, place]) for place, asked in enumerate(questions)]
    return pd.DataFrame(rows)


def budget_of(mechanism: Any, epsilon: float) -> Any:
    """The budget of the kind that a mechanism takes; delta is the paper's 1e-4 where there is one."""
    return ApproxBudget(str(epsilon), DELTA) if mechanism.needs_delta else PureBudget(str(epsilon))


def _row(name: str, epsilon: float, shape: Shape, errors: Floats) -> dict[str, object]:
    spread = float(errors.std(ddof=1)) if len(errors) > 1 else float("nan")
    width, height = shape
    return {"method": name, "epsilon": epsilon, "width": width, "height": height, "error": float(errors.mean()), "spread": spread}
