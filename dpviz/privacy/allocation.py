"""Split a budget over the levels of a tree, and bound the worst-case error of each split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from dpviz.arrays import Floats
from dpviz.errors import BudgetError, check_choice

ROUNDING = 1e-4
STRATEGIES = ("geometric", "uniform", "leaf", "custom")
STAGE_STRATEGIES = ("uniform", "levels", "custom")
REGION_STRATEGIES = ("minimax", "balanced", "uniform", "geometric", "census", "custom")
_FINEST_WEIGHT, _OTHER_WEIGHT = 2.0, 0.5  # of the logarithm of a level's standard deviation in balanced shares
_LEAST_GAIN = 1e-4  # in this mean, for which one more level is measured
PRUNED_LEAVES = 0.6
LEAF_WEIGHT = 1.07  # the errors of the leaves count for this many times those of other levels
_SHARPNESS = 60.0  # of the smooth maximum over levels
_LEAST_SHARE = 1e-3
_STEP = 1e-4  # of a share that was searched for: processors round in different ways, and seeded noise depends on the shares
_NO_VARIANCE = 1e-9  # where one child is all of its parent, an exact parent leaves no variance


def level_weights(strategy: str, height: int, *, fan_out: int = 4, gaussian: bool = False, custom: Sequence[float] = ()) -> list[float]:
    """Weights of the levels of a tree: each level gets a share of the budget in proportion to its weight.

    With a share s of epsilon, Laplace noise has a variance proportional to 1 / s**2; with a share s of rho, Gaussian noise 1 / s.

    Args:
        strategy: "uniform": equal weights; "geometric": weights that grow by fan_out**(1/6) per level (2**(1/3) for a quadtree), for
            Gaussian noise by fan_out**(1/4) (2**(1/2)); "leaf": the whole budget for the leaves; "custom": the weights in `custom`.
        height: the number of levels below the root.
        fan_out: children per node.
        gaussian: whether noise is Gaussian, and shares are of rho.
        custom: for "custom", height + 1 numbers, root first; 0 means that the level is not counted. Either fractions that add up
            to 1, or whole numbers as relative weights.

    Returns:
        height + 1 weights, from the root (level 0) to the leaves.

    Raises:
        BudgetError: the strategy is unknown, or the custom weights are too few, too many, negative, not finite, all 0, or fractions
            that do not add up to 1.

    Source:
        Cormode et al., ICDE 2012, Section IV-B: geometric is Lemma 3. A query adds up at most a number of nodes that grows by the square
        root r of the fan-out per level. The sum of r**depth v over the levels, each with a variance v, is least for shares that grow by
        r**(1/3) if v is 1 / s**2, and by r**(1/2) if v is 1 / s.
    """
    if strategy == "uniform":
        return [1.0] * (height + 1)
    if strategy == "geometric":
        return [float(fan_out ** (depth / (4 if gaussian else 6))) for depth in range(height + 1)]
    if strategy == "leaf":
        return [0.0] * height + [1.0]
    check_choice(strategy, STRATEGIES, "The split", BudgetError)
    return custom_weights(custom, height + 1, "root")


def measured_part(weights: list[float]) -> list[float]:
    """The weights from the root to the deepest level with a weight, but at least to level 1.

    >>> measured_part([1.0, 2.0, 0.0]), measured_part([1.0, 0.0, 0.0])
    ([1.0, 2.0], [1.0, 0.0])
    """
    return weights[: max(1, *(level for level, weight in enumerate(weights) if weight > 0)) + 1]


def stage_weights(strategy: str, sizes: Sequence[int], *, custom: Sequence[float] = ()) -> list[float]:
    """Weights of the measured stages of a TopDown release.

    Args:
        strategy: "uniform": equal weights; "levels": the weights that minimise the sum, over the geographic levels, of a bound on
            the level's largest error; "custom": the weights in `custom`.
        sizes: the number of pairs in each measured stage, in order. The last stage has the leaves; counted back from it, every
            second stage is a geographic level.
        custom: for "custom", one number above 0 per measured stage: fractions that add up to 1, or whole numbers as relative
            weights.

    Returns:
        One weight per measured stage, in order.

    Raises:
        BudgetError: the strategy is unknown, the custom weights are not valid (see `level_weights`), or one is 0 (every stage refines
            the one before, so all are measured).

    Source:
        "levels" is our own. By Eq. (11) of Boninsegna, Silvestri, 2025, the error of a level is at most twice the sum, over the
        stages down to it, of the stage's largest noise. The largest of n noise values is about sigma sqrt(2 ln(2 n)). So a stage
        that affects w levels contributes w sqrt(ln(2 n)) / sqrt(rho_stage), up to a constant. The sum is least if rho_stage is
        proportional to (w sqrt(ln(2 n)))**(2/3).
    """
    if strategy == "uniform":
        return [1.0] * len(sizes)
    if strategy == "levels":
        affected = [(len(sizes) - stage + 1) // 2 for stage in range(len(sizes))]
        return [float((levels * np.sqrt(np.log(2 * size))) ** (2 / 3)) for levels, size in zip(affected, sizes, strict=True)]
    check_choice(strategy, STAGE_STRATEGIES, "The split", BudgetError)
    weights = custom_weights(custom, len(sizes), "first level")
    if min(weights) == 0:
        raise BudgetError("Custom weights of levels must be greater than 0: every level is measured.")
    return weights


def custom_weights(weights: Sequence[float], number: int, first: str) -> list[float]:
    """Check weights that a user chose.

    Args:
        weights: of at least 0: fractions that add up to 1, or whole numbers.
        number: how many there must be.
        first: what the first one is for, as the error names it.

    Raises:
        BudgetError: too few or too many weights, negative, not finite or all 0, or fractions that do not add up to 1.
    """
    weights = [float(weight) for weight in weights]
    if len(weights) != number:
        raise BudgetError(f"A custom split needs {number} weights for this tree, {first} first; {len(weights)} were given.")
    if not np.isfinite(weights).all() or min(weights) < 0 or max(weights) == 0:
        raise BudgetError("Custom weights must be finite, at least 0, and one of them greater than 0.")
    if not all(weight.is_integer() for weight in weights) and abs(sum(weights) - 1) > ROUNDING:
        raise BudgetError(f"These shares add up to {sum(weights):.6g}, not to 1; correct them, or give whole numbers as relative weights.")
    return weights


@dataclass(frozen=True, kw_only=True)
class PublishedSplit:
    """The split of a real deployment's budget over its levels, as a preset for trees of any height.

    Attributes:
        title: the name of the preset in a menu.
        parts: relative shares, from the coarsest level to the finest.
        source: where the split was published.
    """

    title: str
    parts: tuple[float, ...]
    source: str

    def weights(self, height: int) -> list[float]:
        """The published shares as custom weights of a tree.

        The published levels are spread evenly from the root to the leaves. If the tree has fewer levels, neighbouring shares are
        added up.

        Args:
            height: the number of levels below the root.

        Returns:
            height + 1 weights, root first.

        >>> PUBLISHED[0].weights(4)
        [0.11, 0.0, 0.11, 0.0, 0.22]
        """
        weights = [0.0] * (height + 1)
        for level, part in zip(np.linspace(0, height, len(self.parts)).round().astype(int).tolist(), self.parts, strict=True):
            weights[level] += part
        return weights


PUBLISHED = (
    PublishedSplit(
        title="Google mobility reports",
        parts=(0.11, 0.11, 0.22),
        source="Aktay et al., Google COVID-19 Community Mobility Reports: Anonymization Process Description, 2020:"
        " epsilon 0.11 for countries, 0.11 for their first and 0.22 for their second subdivisions",
    ),
    PublishedSplit(
        title="US Census 2020 (persons)",
        parts=(104, 1440, 447, 687, 1256, 165),
        source="US Census Bureau, settings of the TopDown algorithm for the 2020 redistricting data, 2021: shares of rho out of 4,099"
        " for nation, state, county, tract, block group and block; where the budget is epsilon, used as shares of it",
    ),
)

CENSUS = PUBLISHED[1]


def worst_case_variance(height: int, epsilon: float, strategy: str) -> float:
    """Upper bound on the variance of a range query on a quadtree without least squares, for continuous Laplace noise.

    Args:
        height: the number of levels below the root.
        epsilon: the whole budget.
        strategy: "uniform" or "geometric".

    Returns:
        A variance, in squared records.

    Raises:
        BudgetError: the strategy is another one.

    Source:
        Cormode et al., ICDE 2012, Section IV-B: 16 (h+1)**2 (2**(h+1) - 1) / epsilon**2 for uniform and Lemma 3's
        16 (2**((h+1)/3) - 1)**3 / (epsilon**2 (2**(1/3) - 1)**3) for geometric; divided by 16 these are Figure 2. The
        lemma's further bound 2**(h+7) / epsilon**2 does not follow and is too small from height 2 on; it is not used.
    """
    if strategy == "uniform":
        return float(16 * (height + 1) ** 2 * (2 ** (height + 1) - 1) / epsilon**2)
    if strategy == "geometric":
        return float(16 * (2 ** ((height + 1) / 3) - 1) ** 3 / (epsilon**2 * (2 ** (1 / 3) - 1) ** 3))
    raise BudgetError("The bound is known for the uniform and the geometric split.")


def minimax_shares(fan_outs: Sequence[float], *, root: bool, between: bool, pruned: bool) -> list[float]:
    """Choose the share of rho of every stage.

    The rule for the geographic levels, which are the even stages: the largest ratio over the levels of two standard deviations is as
    small as possible. One is that of a level's counts after least squares on a regular tree with these fan-outs. The other is the
    smaller one of two simple methods with the same budget: sums of pairs of leaves with flat noise, and uniform shares over all
    stages with the counts of each family corrected by their parent (TopDown). The ratio of the leaves counts `LEAF_WEIGHT` times.

    The rule for the stages between levels: none of the budget. With `between`, each gets a tenth of the share of the level below it.
    With `pruned`, the leaves get `PRUNED_LEAVES` times their share, since the leaves that are measured say less of the sums above them;
    the stage above the leaves gets as much as the level above it, since it decides which leaves are measured at all. Both are our own
    choices, made on one made-up country.

    Args:
        fan_outs: (T,) mean number of children of the nodes of stages 0 to T - 1.
        root: whether the root is measured, too.
        between: whether the stages between levels are measured.
        pruned: whether leaves are measured only below nodes that were kept.

    Returns:
        T + 1 shares, the root's first, which add up to 1; 0 for a stage that is not measured. What the search finds is rounded to steps of
        1e-4, so that every computer has the same shares.

    >>> [round(share, 2) for share in minimax_shares([4, 4, 8, 8], root=False, between=False, pruned=False)]
    [0.0, 0.0, 0.2, 0.0, 0.8]
    """
    return list(_shares(tuple(float(fan) for fan in fan_outs), root, between, pruned))


@lru_cache(maxsize=64)
def _shares(fan_outs: tuple[float, ...], root: bool, between: bool, pruned: bool) -> tuple[float, ...]:
    fan = np.array(fan_outs)
    shares = _minimax(fan, root=root)
    height = len(fan)
    if between:
        shares[1::2] = shares[2::2] / 10
    if pruned and height > 2:
        shares[height] *= PRUNED_LEAVES
        shares[height - 1] = max(shares[height - 1], shares[height - 2])
    return tuple((shares / shares.sum()).tolist())


def _minimax(fan: Floats, *, root: bool) -> Floats:
    """Find the (T + 1,) shares of the even stages, in steps of `_STEP`."""
    levels = np.arange(0 if root else 2, len(fan) + 1, 2)
    reference = np.maximum(_reference(fan, root=root)[levels], _NO_VARIANCE)
    weight = np.where(levels == len(fan), LEAF_WEIGHT, 1.0)
    found = np.zeros(len(fan) + 1)

    def log_ratios(shares: Floats) -> Floats:
        found[levels] = shares
        variance = np.maximum(fitted_variance(fan, found, root=root)[levels], _NO_VARIANCE)
        return np.log(variance / reference) / 2 + np.log(weight)

    found[levels] = _minimise_largest(log_ratios, np.where(levels == len(fan), 2.0, 0.0))
    return found


def _minimise_largest(log_ratios: Callable[[Floats], Floats], start: Floats) -> Floats:
    """Find the shares, in steps of `_STEP`, for which the largest of several smooth ratios is as small as possible.

    Args:
        log_ratios: function from (n,) shares, which add up to 1, to the logarithms of the ratios.
        start: (n,) logarithms of the shares, up to a constant, from which the search starts.

    Returns:
        (n,) shares.
    """

    def shares(logs: Floats) -> Floats:
        free = np.exp(logs - logs.max())
        return np.asarray(_LEAST_SHARE + (1 - _LEAST_SHARE * len(logs)) * free / free.sum())

    def worst(logs: Floats) -> float:
        ratio = log_ratios(shares(logs))
        largest = ratio.max()
        return float(largest + np.log(np.exp(_SHARPNESS * (ratio - largest)).sum()) / _SHARPNESS)

    found = shares(scipy.optimize.minimize(worst, start, method="L-BFGS-B", options={"maxiter": 800}).x)
    return np.asarray(np.round(found / _STEP) * _STEP)


def region_weights(strategy: str, sizes: Sequence[int], *, gaussian: bool, custom: Sequence[float] = (), root: bool = False) -> list[float]:
    """Weights of the levels of nested regions: each measured level gets a share of epsilon (or of rho) in proportion to its weight.

    With a share s of epsilon, Laplace noise has a variance proportional to 1 / s**2; with a share s of rho, Gaussian noise 1 / s.

    Args:
        strategy: "minimax": the largest ratio, over the levels, of a count's standard deviation after least squares to that with the whole
            budget on its level is as small as possible, on a regular tree with the mean fan-outs; "balanced": `balanced_shares`;
            "uniform": equal weights;
            "geometric": weights that grow with the numbers of regions, by the power of 1/6 for Laplace and 1/4 for Gaussian noise;
            "census": the published shares of the US Census of 2020; "custom": the weights in `custom`.
        sizes: the number of regions of each measured level, coarsest first; 1 for the whole.
        gaussian: whether noise is Gaussian; otherwise it is Laplace noise.
        custom: for "custom", one number per measured level: fractions that add up to 1, or whole numbers as relative weights; the
            last one above 0.
        root: whether the first measured level is the whole.

    Raises:
        BudgetError: the strategy is unknown, the custom weights are not valid (see `level_weights`), the finest level has none, or
            the published shares are for another number of levels.

    Source:
        "geometric" is Lemma 3 of Cormode et al., ICDE 2012, for regions of any fan-out: a compact query touches about the square root of
        a level's n regions, and the sum of sqrt(n) v over the levels, each with a variance v, is least with these weights. "minimax" is our
        own. "census": `PUBLISHED`; under Laplace noise the published shares of rho are taken as shares of epsilon.

    >>> [round(weight, 2) for weight in region_weights("minimax", [51, 3162], gaussian=True)]
    [0.5, 0.5]
    >>> region_weights("uniform", [51, 3162], gaussian=True)
    [1.0, 1.0]
    """
    if strategy == "uniform":
        return [1.0] * len(sizes)
    if strategy == "geometric":
        return [float(size ** (1 / 4 if gaussian else 1 / 6)) for size in sizes]
    if strategy == "minimax":
        return list(_region_minimax(tuple(sizes), gaussian))
    if strategy == "balanced":
        return balanced_shares(sizes, gaussian=gaussian)
    if strategy == "census":
        if len(sizes) != len(CENSUS.parts):
            raise BudgetError(f"The shares of the US Census are for {len(CENSUS.parts)} levels, and {len(sizes)} are measured here.")
        return [float(part) for part in CENSUS.parts]
    check_choice(strategy, REGION_STRATEGIES, "The split", BudgetError)
    weights = custom_weights(custom, len(sizes), "the whole" if root else "the coarsest level")
    if weights[-1] == 0:
        raise BudgetError("The custom weight of the finest level must be greater than 0: its regions are measured in any case.")
    return weights


@lru_cache(maxsize=64)
def _region_minimax(sizes: tuple[int, ...], gaussian: bool) -> tuple[float, ...]:
    """Find the (n,) shares for which the worst level loses least against the whole budget on that level."""
    above = np.array([1, *sizes], np.float64)
    fan = above[1:] / above[:-1]

    def log_ratios(shares: Floats) -> Floats:
        weight = np.concatenate([[0.0], shares if gaussian else shares**2])
        return np.asarray(np.log(fitted_variance(fan, weight, root=True)[1:]) / 2)

    if len(sizes) == 1:
        return (1.0,)
    return tuple(_minimise_largest(log_ratios, np.zeros(len(sizes))).tolist())


def balanced_shares(sizes: Sequence[int], *, gaussian: bool) -> list[float]:
    """Choose the shares of levels for which the weighted sum of the logarithms of their standard deviations is least.

    The standard deviations are those after least squares on a regular tree with the mean fan-outs. That of the finest level has the weight
    2, any other 1/2. A level may get no share: under epsilon, most coarse ones do not. Logarithms of products add up, so that on the
    product of two trees the best shares of each are those that it has alone.

    Args:
        sizes: the number of nodes of each level that can be measured, coarsest first; 1 for the whole.
        gaussian: whether the shares are of rho, for Gaussian noise; else of epsilon, for Laplace noise.

    Returns:
        One share per level, in steps of 1e-4; they add up to 1, and the finest one is above 0.

    Source:
        Our own. Levels are taken in and out one at a time, as long as that lowers the sum by 1e-4: on the trees of
        `test_balanced_shares_are_the_best_of_all_sets_of_levels`, no set of levels is better.

    >>> balanced_shares([1, 12, 108, 1608], gaussian=False)
    [0.1399, 0.0, 0.0, 0.8601]
    """
    return list(_balanced(tuple(sizes), gaussian))


@lru_cache(maxsize=64)
def _balanced(sizes: tuple[int, ...], gaussian: bool) -> tuple[float, ...]:
    finest = len(sizes) - 1
    measured, (least, shares) = {finest}, _balance((finest,), sizes, gaussian=gaussian)
    while True:
        others = [measured ^ {level} for level in range(finest)]
        found = [_balance(tuple(sorted(levels)), sizes, gaussian=gaussian) for levels in others]
        best = min(range(finest), key=lambda level: found[level][0], default=None)
        if best is None or found[best][0] > least - _LEAST_GAIN:
            return shares
        measured, (least, shares) = others[best], found[best]


def _balance(measured: tuple[int, ...], sizes: Sequence[int], *, gaussian: bool) -> tuple[float, tuple[float, ...]]:
    """Find the best shares of some levels, the finest among them. Return the weighted sum of logarithms, and one share per level."""
    above = np.array([1, *sizes], np.float64)
    fan, levels, weight = above[1:] / above[:-1], np.array(measured), np.full(len(sizes), _OTHER_WEIGHT)
    weight[-1] = _FINEST_WEIGHT

    def share_of(logs: Floats) -> Floats:
        shares = np.zeros(len(sizes))
        free = np.exp(logs - logs.max())
        shares[levels] = free / free.sum()
        return shares

    def log_spread(shares: Floats) -> float:
        precision = np.concatenate([[0.0], shares if gaussian else shares**2])
        variance = np.maximum(fitted_variance(fan, precision, root=True)[1:], _NO_VARIANCE)
        return float(weight @ np.log(variance) / 2)

    def spread_of(logs: Floats) -> float:
        return log_spread(share_of(logs))

    found = np.zeros(len(levels))
    if len(levels) > 1:
        found = scipy.optimize.minimize(spread_of, found, method="L-BFGS-B").x
    shares = np.round(share_of(found) / _STEP) * _STEP
    shares[-1] += 1 - shares.sum()
    return log_spread(shares), tuple(np.round(shares, 4).tolist())


def fitted_variance(fan: Floats, weight: Floats, *, root: bool) -> Floats:
    """Compute the variance of every stage's counts after least squares on a regular tree.

    Args:
        fan: (T,) children of each node of stages 0 to T - 1.
        weight: (T + 1,) inverse variance of the noise of each stage; 0 for a stage that is not measured.
        root: whether the root is measured; otherwise it is exact.

    Returns:
        (T + 1,) variances.
    """
    height = len(fan)
    below, variance = np.full(height + 2, np.inf), np.zeros(height + 1)
    for stage in range(height, -1, -1):
        of_children = 1 / (fan[stage] * below[stage + 1]) if stage < height else 0.0
        precision = weight[stage] + of_children
        below[stage] = 1 / precision if precision > 0 else np.inf
    variance[0] = below[0] if root else 0.0
    for stage in range(1, height + 1):
        fan_out = fan[stage - 1]
        variance[stage] = below[stage] * (1 - 1 / fan_out) + variance[stage - 1] / fan_out**2
    return variance


def _reference(fan: Floats, *, root: bool) -> Floats:
    """Compute the (T + 1,) smaller variances of two simple methods: sums of leaves with flat noise, and top-down corrections."""
    size = np.concatenate([[1.0], np.cumprod(fan)])
    measured = len(fan) + root
    down = np.zeros(len(fan) + 1)
    down[0] = measured if root else 0.0
    for stage in range(1, len(fan) + 1):
        fan_out = fan[stage - 1]
        down[stage] = (1 - 1 / fan_out) * measured + down[stage - 1] / fan_out**2
    return np.asarray(np.minimum(size[-1] / size, down))
