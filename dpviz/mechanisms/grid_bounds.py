"""How wrong a noisy grid is expected to be on given boxes, and how much one record changes that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpviz.data.corner_counts import CornerCounts
from dpviz.mechanisms.box_shares import Asked, Boxes, Cover
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.noise import laplace_variance
from dpviz.space.grids import snapped

Floats = NDArray[np.float64]

BOUNDS = ("tight", "paper")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Expected:
    """What a candidate is expected to do on q boxes. PRIVATE, but for `moved`.

    Attributes:
        error: (q,) bounds on the expected absolute error, computed without cancellation (see `clipped_scores`).
        moved: public bound on the sum over boxes of how much one added or removed record changes `error`.
    """

    error: Floats
    moved: float


def expected_grid(asked: Asked, side: int, budget: PureBudget, *, bound: str = "tight") -> Expected:
    """Bounds on the expected absolute error of a side x side grid of noisy counts.

    "paper" is |sum alpha c - d| + lambda sum alpha, with alpha the share of each cell in the box, c its count, d the true
    answer and lambda = m / epsilon. It adds up the sizes of all noises as if none cancelled, and so grows with the number of
    cells in a box where the true error grows with its root. On data of the paper's three sizes, with its candidates and epsilon
    1, its mean is 4 to 98 times that of "tight", nearly all of it noise, and least for the smallest candidate on all three sets,
    which "tight" and measured errors say of none: it is TOO LOOSE TO TUNE BY.
    "tight" is the root of (sum alpha c - d)**2 + v sum alpha**2, with v the variance of the noise: the root mean square error,
    which the mean error cannot exceed (Jensen's inequality).

    Args:
        asked: the questions, and the points.
        side: cells per side, at most the lattice's.
        budget: for the counts.
        bound: "tight" or "paper".

    Privacy:
        Write b for |sum alpha c - d|. A record in a cell with share alpha of a box changes b by |alpha - 1| if the box holds the
        record, else by alpha: by at most 1 for a box that cuts the cell, and not at all for one that wholly covers it (alpha =
        1, and the record is inside) or does not touch it. Noise parts are public constants, and b + n as well as the root of
        b**2 + n**2 change by no more than b does. So the sum over boxes changes by at most the number of boxes that cut one cell.

    Source:
        Fanaeepour, Rubinstein, 2017, Theorem 7.1 (i); "tight" is ours.
    """
    cover = grid_cover(asked.boxes, side)
    noise = noise_part(cover, budget, asked.points.contributions, bound)
    return Expected(error=combined(grid_bias(asked, side), noise, bound), moved=cover.most_cut)


@lru_cache(maxsize=64)
def grid_cover(boxes: Boxes, side: int) -> Cover:
    """How boxes lie over a side x side grid. PUBLIC, so it may be kept."""
    lines = snapped(side, boxes.domain.side)
    return Cover.of(boxes.lattice, lines, lines)


def grid_bias(asked: Asked, side: int) -> Floats:
    """(q,) error of a grid without noise, |sum alpha c - d|: that of assuming uniformity inside cells. PRIVATE."""
    lines = snapped(side, asked.points.domain.side)
    answer = grid_cover(asked.boxes, side).weighted(CornerCounts(points=asked.points, columns=lines, rows=lines).at)
    return np.asarray(np.abs(answer - asked.truth))


def combined(bias: Floats, noise: Floats, bound: str) -> Floats:
    """The error bound from its two parts: their sum ("paper") or the root of the sum of squares ("tight")."""
    return bias + noise if bound == "paper" else np.sqrt(bias**2 + noise**2)


def noise_part(cover: Cover, budget: PureBudget, contributions: int, bound: str) -> Floats:
    """(q,) what the noise adds: lambda sum alpha ("paper"), or its standard deviation ("tight"). PUBLIC."""
    scale = contributions / budget.epsilon
    return float(scale) * cover.area if bound == "paper" else np.sqrt(laplace_variance(scale) * cover.squares)


def response_sensitivity(total: float, sanity: float, noise: Floats) -> Floats:
    """(c,) how much one record changes the mean relative error bound of each candidate, rho = sanity x total.

    Args:
        total: |D|, declared in public, at least 100.
        sanity: delta, above 0 and at most 0.5.
        noise: (c, q) noise parts, lambda sum alpha in the paper.

    Privacy:
        For rho and |D| fixed in public and b = |sum alpha c - d| cut at |D|. In one box the bound is u / v, u = min(b, |D|) + n,
        v = max(d, rho). A record changes u by 1 at most. If v does not change, u / v changes by 1 / rho at most, which is no more
        than the first term if |D| (1 - sanity) >= 1, as it is for all that is allowed above. Else v grows by e <= 1, and u / v
        changes by u e / (v (v + e)) + 1 / (v + e) at most, which goes one way with e: it is between its values 1 / v <= 1 / rho
        for e = 0 and u / (v (v + 1)) + 1 / (v + 1) <= (|D| + n) / (rho (rho + 1)) + 1 / (rho + 1) for e = 1. The three terms are
        no less than either. In the paper rho and |D| are those of the private data, and then so are these sensitivities, which
        noise must not be scaled by: that is why |D| must be declared.

    Source:
        Fanaeepour, Rubinstein, 2017, Corollary 7.9.
    """
    return _three_terms(total, sanity, noise.mean(axis=1))


def overlap_sensitivity(total: float, sanity: float, noise: Floats) -> float:
    """The same for all candidates, with the largest noise part of each box; arguments as for `response_sensitivity`.

    Source:
        Fanaeepour, Rubinstein, 2017, Equation 7.
    """
    return float(_three_terms(total, sanity, noise.max(axis=0).mean()))


def largest_grid_sensitivity(total: float, sanity: float, scale: float, sides: Sequence[int]) -> float:
    """The same for all candidates and any boxes: as if a box covered all cells of the finest grid.

    Args:
        total: |D|.
        sanity: delta.
        scale: lambda.
        sides: cells per side.

    Source:
        Fanaeepour, Rubinstein, 2017, Equation 8.
    """
    return float(_three_terms(total, sanity, np.float64(scale * max(sides) ** 2)))


def _three_terms(total: float, sanity: float, noise: Floats | np.float64) -> Floats:
    rho = sanity * total
    return np.asarray(1 / (sanity * (rho + 1)) + noise / (rho * (rho + 1)) + 1 / (rho + sanity))
