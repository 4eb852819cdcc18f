"""The base of every mechanism of points, which counts the nodes of a tree and makes the release; noise is drawn in `Run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.errors import DomainError
from dpviz.mechanisms.audit import USUAL, Added
from dpviz.mechanisms.base import LevelError, Mechanism, Share, setting, shares_of, split_shares
from dpviz.mechanisms.budget_noise import split_budget
from dpviz.mechanisms.run import Run, level_variances
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.budget import Budget
from dpviz.privacy.consistency import Spread, add_up, least_squares, shrink_small_counts
from dpviz.privacy.nonnegative_counts import nonnegative_counts
from dpviz.privacy.receipt import Receipt
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.interpolate import FILLS, INTERPOLATED, LOG_LINEAR, UNIFORM
from dpviz.space.mask import CellMask, open_cells
from dpviz.space.tree import Tree

SMALLEST_SHARE, LARGEST_SHARE = 0.01, 0.99
"""Of the budget, for what finds the partitions."""
LEANING = "answers that cut a leaf lean towards fuller neighbours, and have the spread of those that do not"
ZEROED = "the spread is that of the noise before small counts were drawn towards 0, which adds bias"
KEEP, SPREAD = "keep", "spread"
NEGATIVE = (KEEP, SPREAD)
"""What becomes of negative counts: they stay, or they become 0 and their siblings lose as much."""
NONNEGATIVE = (
    "the spread is that of the noise before negative counts were spread, which makes empty places too large and full ones too small"
)
SPREAD_NOTE = (
    "No count is negative: negative ones became 0, and their siblings lost as much, so that children add up and the total is kept. On"
    " average that makes nearly empty places too large, and fuller places beside them too small, by as much in all."
)


@dataclass(frozen=True, kw_only=True)
class PointMechanism(Mechanism[PointCounts, Domain, PointRelease]):
    """Base of every mechanism of points: it counts records in the cells of a domain's lattice and releases a tree of noisy counts.

    Class attributes:
        takes_mask: whether the mechanism may be given a domain with a mask. It may if its docstring says why: which nodes are measured, and
            how, must follow from the mask and from released numbers, and no wholly masked node may be measured or split.

    A mechanism in full, which counts the quarters of the domain:

    >>> from dpviz.privacy.budget import PureBudget
    >>> from dpviz.privacy.entropy import Entropy
    >>> from dpviz.space.grids import quadtree
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Quarters(PointMechanism):
    ...     key, title, summary = "quarters", "Quarters", "Counts the quarters of the domain with noise."
    ...     def release(self, points, budget, entropy):
    ...         run, tree = Run.of(self, points, budget, entropy), quadtree(points.domain, 1)
    ...         return self.make_release(run, tree, *self.count_levels(run, tree, run.split([0, 1])))
    >>> points = PointCounts.from_matrix(np.ones((4, 4), int))
    >>> Quarters().release(points, PureBudget(1000), Entropy.seeded(1)).count.tolist()
    [16.0, 4.0, 4.0, 4.0, 4.0]
    """

    family: ClassVar[str] = "points"
    takes: ClassVar[tuple[type[Any], str]] = PointCounts, "A mechanism takes PointCounts: see PointCounts.from_xy and read_points"
    audit_inputs: ClassVar[tuple[Added[Any], ...]] = USUAL
    takes_mask: ClassVar[bool] = False

    def refuse_mask(self, frame: Domain) -> None:
        """Raise a `DomainError` if the domain has a mask and the mechanism cannot use the knowledge that masked cells are empty."""
        if frame.mask is not None and not self.takes_mask:
            raise DomainError(
                f"{self.title} cannot take a study area into account: leave out the study area (the mask of the domain), or choose a"
                " mechanism that takes one, such as the path-budget tree or the quadtree."
            )

    def check_data(self, data: PointCounts) -> None:
        """Raise an error if the input is not PointCounts, or its domain does not fit the settings (see `check`).

        Raises:
            InputError: not PointCounts.
            DpvizError: settings that do not fit the domain, or a mask that the mechanism does not take.
        """
        self.check_type(data)
        self.refuse_mask(data.domain)
        self.check(data.domain)

    def count_levels(
        self, run: Run[PointCounts], tree: Tree, amounts: Sequence[Fraction], true: Integers | None = None
    ) -> tuple[Floats, Floats]:
        """Count every node of the levels that have a budget, by `Run.measure_levels`; nodes that the domain's mask covers are not measured.

        Args:
            run: of this mechanism.
            tree: a public tree, or one that was paid for.
            amounts: of epsilon or rho, one per depth, root first; a depth with 0 is not measured.
            true: (n,) true counts of the nodes; computed from the points if None.

        Returns:
            (n,) noisy counts, NaN where a node is not measured, and (n,) variances, infinite where a node is not measured.
        """
        if true is None:
            true = tree.sums(run.data.column, run.data.row, run.data.count)
        return run.measure_levels(tree, amounts, true, open_cells(tree, run.data.domain.mask))

    def make_release(
        self,
        run: Run[PointCounts],
        tree: Tree,
        noisy: Floats,
        variance: Floats,
        *,
        unprotected: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        approximate: str | None = None,
        **finish: Any,
    ) -> PointRelease:
        """Make the release of a tree's noisy counts, made consistent by least squares or left as they are.

        Args:
            run: of this mechanism.
            tree: the tree, public or paid for.
            noisy: (n,) noisy counts of the nodes, NaN where a node is not measured.
            variance: (n,) variances of the noise, infinite where a node is not measured. What is given of wholly masked nodes is not used:
                their counts are 0, with variance 0.
            unprotected: facts that the mechanism took as public, beyond the domain and the settings.
            notes: settings that had to be cut, and reasons why less than the budget was spent.
            approximate: why the stated spread is only approximate; None if it is exact for the partitions as they are.
            finish: fields of `PostProcessing` that are not those of the settings.
        """
        domain, how = run.data.domain, PostProcessing(**post_settings(self) | finish)
        cells = open_cells(tree, domain.mask)
        noisy, measured = np.where(cells > 0, noisy, np.nan), np.where(cells > 0, variance, np.inf)
        count, noise_variance, spread = reconcile(tree, noisy, measured, by_least_squares=how.least_squares, cells=cells)
        changed = how.change_counts(tree, (noisy, measured), count, domain.mask)
        several = spread is not None and np.isfinite(noise_variance[cells > 0]).sum() > (cells[tree.leaves] > 0).sum()
        return PointRelease(
            domain=domain,
            tree=tree,
            noisy=noisy,
            noise_variance=noise_variance,
            count=count if changed is None else changed,
            unbiased=None if changed is None else count,
            spread=spread,
            **self.release_facts(
                self.receipt(run, unprotected, (*notes, *run.notes, *((SPREAD_NOTE,) if how.is_nonnegative else ()))), run.entropy
            ),
            steps=how.describe(several=bool(several)),
            height=tree.height,
            approximate=join_reasons(approximate, how.approximate),
            fill=how.fill,
            nonnegative=how.is_nonnegative,
        )

    def receipt(self, run: Run[PointCounts], unprotected: tuple[str, ...], notes: tuple[str, ...]) -> Receipt:
        """Make the receipt of all steps so far; `unprotected` are public facts beyond the settings, the domain and its mask."""
        return run.receipt((*Receipt.unprotected, *describe_mask(run.data.domain), *unprotected), notes)

    def depends_on_data(self, release: PointRelease) -> bool:
        """Return whether other data could lead to other partitions: some budget pays for partitions, or the spread is approximate."""
        return release.approximate is not None or any(share.structure for share in self.shares(release.domain))

    def level_errors(self, release: PointRelease) -> list[LevelError]:
        """List the root mean square deviation of the partitions of each level, in records."""
        errors = []
        for level in range(release.height + 1):
            nodes = release.open_nodes(level)
            of = "the whole domain" if len(nodes) == 1 else f"partitions of level {level}"
            errors.append(LevelError.of_noise(level, of, release.node_stddev[nodes], release.noise))
        return errors

    def count_variances(self, release: PointRelease, budget: Budget) -> Floats | None:  # noqa: ARG002
        """Compute the variance of the noise that this mechanism would put on the count of each partition of a release; nothing is drawn.

        Args:
            release: made by this mechanism with the same settings, but perhaps with another split of the budget. Its partitions, and which
                of them were measured, stay as they are.
            budget: the budget that is split.

        Returns:
            (n,) variances, in records squared, infinite where a node would not be measured. None if the mechanism cannot say without a
            run, or if it would not end where the tree ends; by default, always.

        Raises:
            BudgetError: another kind of budget, or a split that does not fit the domain.
        """
        return None

    def plan_variances(self, release: PointRelease, budget: Budget, weights: Sequence[float], *, on_leaves: bool = False) -> Floats | None:
        """Compute `count_variances` where weights split the budget over the depths, or (`on_leaves`) the last one is that of the leaves."""
        sensitivity = Sensitivity(contributions=release.receipt.contributions, neighbours=self.neighbours)
        split = split_budget(budget, self, weights, sensitivity)
        amounts = all_on_leaves(release.tree, split.parts[-1]) if on_leaves else split.parts
        return level_variances(release.tree, amounts, sensitivity, release.open_cells, gaussian=split.gaussian)

    def partition_exactly(self, points: PointCounts, budget: Budget) -> tuple[Tree, Floats] | None:  # noqa: ARG002
        """Choose partitions as this mechanism would if its counts had no noise. NOT PRIVATE: only for public data.

        Args:
            points: public counts.
            budget: the budget that is split.

        Returns:
            The tree, and (n,) the variance of the noise that each node's count would have, infinite where a node would not be measured.
            None, by default, where partitions depend on no count, or cannot be chosen without noise.

        Raises:
            BudgetError: another kind of budget, or a split that does not fit the domain.
        """
        return None


Kind = TypeVar("Kind", bound=PointMechanism)


@dataclass(frozen=True, kw_only=True)
class PostProcessing:
    """How a release is post-processed; a mechanism's settings of these names are taken as they are.

    Attributes:
        least_squares: whether least squares makes the levels agree; if leaves were not measured, least squares is used in any case.
        shrink_small: whether small counts of leaves are drawn towards 0 before least squares; without effect if least squares is not used.
        fill: how answers to queries spread a cut partition's count inside it: "uniform", "interpolated" or "log-linear".
        negative: what becomes of negative counts: "keep", or "spread", for which see `nonnegative_counts`; without effect if least squares
            is not used. With `fill="log-linear"`, quarters are then drawn towards the interpolation, too.
    """

    least_squares: bool = True
    shrink_small: bool = False
    fill: str = UNIFORM
    negative: str = KEEP

    @property
    def is_nonnegative(self) -> bool:
        """Whether negative counts are spread."""
        return self.negative == SPREAD and self.least_squares

    @property
    def approximate(self) -> str | None:
        """Why the stated spread is only approximate; None if it is exact."""
        zeroed = ZEROED if self.shrink_small and self.least_squares else None
        return join_reasons(zeroed, NONNEGATIVE if self.is_nonnegative else None, None if self.fill == UNIFORM else LEANING)

    def change_counts(self, tree: Tree, measured: tuple[Floats, Floats], count: Floats, mask: CellMask | None) -> Floats | None:
        """Make the counts of a biased finish.

        Args:
            tree: of n nodes.
            measured: (n,) noisy counts and (n,) variances.
            count: (n,) counts by least squares.
            mask: of the domain, if it has one.

        Returns:
            (n,) counts; None if nothing is to be changed.
        """
        if self.is_nonnegative:
            smooth = self.fill == LOG_LINEAR
            return nonnegative_counts(tree, *measured, total=count[0], zero=self.shrink_small, smooth=smooth, mask=mask)
        if self.shrink_small and self.least_squares:
            return least_squares(tree, *shrink_small_counts(tree, *measured), least=0.0, cells=open_cells(tree, mask))[0]
        return None

    def describe(self, *, several: bool) -> tuple[str, ...]:
        """Describe the steps; `several` says whether least squares combined several measurements."""
        shrunk, nonnegative = self.shrink_small and self.least_squares, self.is_nonnegative
        steps = {
            "small leaves drawn towards 0": shrunk and not nonnegative,
            "small leaves drawn towards 0, those with nothing around them more": shrunk and nonnegative,
            "least squares, the total at least 0": shrunk and not nonnegative,
            "least squares": nonnegative or (several and not shrunk),
            "quarters drawn towards a log-linear interpolation of their surroundings": nonnegative and self.fill == LOG_LINEAR,
            "negative counts spread over their siblings, the total kept": nonnegative,
            "answers lean towards fuller neighbours inside leaves": self.fill == INTERPOLATED,
            "answers follow a log-linear interpolation inside leaves": self.fill == LOG_LINEAR,
        }
        return tuple(text for text, done in steps.items() if done)


def zoom_shares(weights: Sequence[float], halvings: int, order: int, part: float = 1.0) -> list[Share]:
    """List the shares of the depths of a tree, which together have a part of the budget.

    Args:
        weights: of the depths, root first.
        halvings: how often a step down the tree halves a node, by columns or by rows; two halvings are a zoom level.
        order: of the lattice, the finest zoom level.
        part: of the budget, 0 to 1.
    """
    levels = [None if depth * halvings % 2 else min(depth * halvings // 2, order) for depth in range(len(weights))]
    return split_shares([f"zoom {depth}" for depth in range(len(weights))], weights, levels, part=part)


def drag_structure(mechanism: Kind, name: str, shares: Sequence[float]) -> Kind:
    """Return a copy with another share for the structure and custom weights, one per depth.

    If nothing is left for counts, the weights do not change.

    Args:
        mechanism: with settings `split` and `weights`.
        name: the setting that is the share of the structure, limited to 0.01 to 0.99.
        shares: that of the structure first, then those of the depths.
    """
    counts = sum(shares[1:])
    custom = {"split": "custom", "weights": tuple(share / counts for share in shares[1:])} if counts else {}
    return replace(mechanism, **{name: min(max(shares_of(shares)[0], SMALLEST_SHARE), LARGEST_SHARE)}, **custom)


def describe_mask(domain: Domain) -> tuple[str, ...]:
    """Write what a domain's mask takes as public, for the receipt; nothing without a mask.

    >>> describe_mask(Domain(bounds=(0, 0, 2, 2), crs=None, order=1))
    ()
    """
    mask = domain.mask
    return () if mask is None else (f"where nobody can be (a mask of {mask.open.size - mask.cells_open:,} of {mask.open.size:,} cells)",)


def reconcile(
    tree: Tree, noisy: Floats, variance: Floats, *, by_least_squares: bool, cells: Floats | None = None
) -> tuple[Floats, Floats, Spread | None]:
    """Estimate all counts of a tree from the measured ones.

    Args:
        tree: any tree of n nodes.
        noisy: (n,) noisy counts, ignored where a node is not measured.
        variance: (n,) variances of the noise, infinite where a node is not measured.
        by_least_squares: whether least squares makes the levels agree; if a leaf was not measured, least squares is used in any case.
        cells: (n,) open cells of each node; the counts of nodes without any are known to be 0. None if all nodes have some.

    Returns:
        (n,) counts; (n,) variances of the noise, for inner nodes that were not measured and got the sum of their children that of the
        sum, and 0 for nodes without open cells; and the joint distribution of the errors, None if they are independent.
    """
    if cells is not None:
        variance = np.where(cells > 0, variance, 0.0)
    if by_least_squares or not np.isfinite(variance[tree.leaves]).all():
        count, spread = least_squares(tree, noisy, variance, cells=cells)
        return count, variance, spread
    return *add_up(tree, noisy, variance, cells), None


def post_settings(mechanism: PointMechanism) -> dict[str, Any]:
    """Return those settings of a mechanism that `PostProcessing` takes: least_squares, shrink_small, fill, negative, if it has them."""
    return {name: value for name, value in mechanism.chosen().items() if name in ("least_squares", "shrink_small", "fill", "negative")}


def negative_setting(default: str = KEEP, when: tuple[str, Any] | None = ("least_squares", True)) -> Any:
    """Declare the setting `negative` of a mechanism; `when` is None if it always uses least squares."""
    return setting(
        default,
        "Negative counts",
        choices=NEGATIVE,
        when=when,
        help="Spread makes them 0 and takes as much from their siblings: sums stay right, nearly empty places come out too large.",
    )


def structure_setting(default: float, label: str, text: str) -> Any:
    """Declare a share of the budget for what finds the partitions; `text` is its help."""
    return setting(default, label, low=SMALLEST_SHARE, high=LARGEST_SHARE, help=text)


def declared_total_setting(text: str, *, high: float = 2**53, when: tuple[str, Any] | None = None) -> Any:
    """Declare the setting `declared_total`; `text` is its help."""
    return setting(None, "Declared number of records", optional=True, low=0, high=high, when=when, help=text)


def name_declared(total: int | None) -> tuple[str, ...]:
    """Name a declared number of records among the facts that are not protected; nothing if none is declared."""
    return () if total is None else (f"the declared number of records ({total:,})",)


def least_squares_setting() -> Any:
    """Declare the setting `least_squares`: whether the levels are made to agree."""
    return setting(True, "Least squares", help="Make the levels agree in the most accurate way; free post-processing.")


def shrink_setting(*, default: bool, when: tuple[str, Any] | None = ("least_squares", True)) -> Any:
    """Declare the setting `shrink_small`; `when` is None for a mechanism that always uses least squares."""
    return setting(default, "Shrink small leaves", when=when, help="Leaves that are hardly more than noise become smaller; biased.")


def fill_setting(default: str = UNIFORM) -> Any:
    """Declare the setting `fill`."""
    return setting(default, "Inside partitions", choices=FILLS, help="How answers fill partitions that are cut.")


def prune_setting() -> Any:
    """Declare the setting `prune`: the estimate under which a node has no descendants."""
    return setting(
        0.0, "Prune below", low=0, high=1e12, help="Remove what lies under nodes with a smaller estimate; 0 is off, the paper has 32."
    )


def height_setting() -> Any:
    """Declare the setting `height` of a tree whose smallest partitions are that many steps below the whole."""
    return setting(8, "Height", low=1, high=24, help="Steps from the whole domain to the smallest partitions; cut to the resolution.")


def order_setting(high: int, more: str = "") -> Any:
    """Declare the setting `order` of a grid of 2**order x 2**order cells; `more` ends its help."""
    return setting(
        10,
        "Resolution, 2^n cells per side",
        low=1,
        high=high,
        help=f"The number n: 8 makes 256 cells per side; never finer than the resolution of the domain.{more}",
    )


def join_reasons(*reasons: str | None) -> str | None:
    """Join the reasons why a spread is approximate to one text; None if there are no reasons."""
    return "; ".join(filter(None, reasons)) or None


def all_on_leaves(tree: Tree, amount: Fraction) -> list[Fraction]:
    """Return the part of the budget of each depth if everything is spent on the leaves of a balanced tree."""
    return [Fraction(0)] * tree.height + [amount]
