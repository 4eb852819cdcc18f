"""The base of every mechanism of points, and its helper that counts with noise, keeps the receipt and makes the release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.errors import DomainError, InputError
from dpviz.mechanisms.audit_points import USUAL, Added, point_pair
from dpviz.mechanisms.base import LevelError, Mechanism, setting
from dpviz.mechanisms.budget_noise import Change, split_budget
from dpviz.privacy.audit import Neighbours
from dpviz.privacy.budget import Budget, PureBudget, ZcdpBudget
from dpviz.privacy.consistency import Spread, add_up, least_squares, shrink_small_counts
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace
from dpviz.privacy.nonnegative_counts import nonnegative_counts
from dpviz.privacy.receipt import Receipt, Step
from dpviz.release.intervals import half_widths
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain
from dpviz.space.interpolate import INTERPOLATED, LOG_LINEAR, UNIFORM
from dpviz.space.mask import CellMask, open_cells
from dpviz.space.tree import Tree

MOST_GROWN = 2**23
NO_POINTS = "A mechanism takes PointCounts: see PointCounts.from_xy and read_points."
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
class PointMechanism(Mechanism[PointCounts, Domain, Release]):
    """Base of every mechanism of points: it counts records in the cells of a domain's lattice and releases a tree of noisy counts.

    Class attributes:
        audit_inputs: made-up neighbours for audits. A mechanism whose faults would not show on the default list has its own list.
        takes_mask: whether the mechanism may be given a domain with a mask. It may if its docstring says why: which nodes are measured, and
            how, must follow from the mask and from released numbers, and no wholly masked node may be measured or split.

    A mechanism in full, which counts the quarters of the domain:

    >>> from dpviz.privacy.budget import require_pure
    >>> from dpviz.space.grids import quadtree
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Quarters(PointMechanism):
    ...     key, title, summary = "quarters", "Quarters", "Counts the quarters of the domain with noise."
    ...     def release(self, points, budget, entropy):
    ...         counter, tree = NoisyCounts(points=points, entropy=entropy), quadtree(points.domain, 1)
    ...         epsilons = all_on_leaves(tree, require_pure(budget, self.title).epsilon)
    ...         return counter.make_release(Finish(mechanism=self, budget=budget), tree, *counter.count_levels(tree, epsilons))
    >>> points = PointCounts.from_matrix(np.ones((4, 4), int))
    >>> Quarters().release(points, PureBudget(1000), Entropy.seeded(1)).count.tolist()
    [16.0, 4.0, 4.0, 4.0, 4.0]
    """

    family: ClassVar[str] = "points"
    audit_inputs: ClassVar[tuple[Added, ...]] = USUAL
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
        if not isinstance(data, PointCounts):
            raise InputError(NO_POINTS)
        self.refuse_mask(data.domain)
        self.check(data.domain)

    def depends_on_data(self, release: Release) -> bool:
        """Return whether other data could lead to other partitions: some budget pays for partitions, or the spread is approximate."""
        return release.approximate is not None or any(share.structure for share in self.shares(release.domain))

    def level_errors(self, release: Release) -> list[LevelError]:
        """List the root mean square deviation of the partitions of each level, in records."""
        errors = []
        for level in range(release.height + 1):
            nodes = release.open_nodes(level)
            stddev = np.sqrt(np.mean(release.node_stddev[nodes] ** 2))
            of = "the whole domain" if len(nodes) == 1 else f"partitions of level {level}"
            interval = float(half_widths(release.noise, stddev))
            errors.append(LevelError(level=level, of=of, numbers=len(nodes), stddev=float(stddev), interval=interval))
        return errors

    def count_variances(self, release: Release, budget: Budget) -> Floats | None:  # noqa: ARG002
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

    def audit_pairs(self, budget: Budget) -> list[Neighbours]:
        """List a pair of neighbours for each of `audit_inputs`, with runs of the mechanism on both."""
        return [point_pair(added, lambda points, entropy: self.release(points, budget, entropy)) for added in self.audit_inputs]


@dataclass(frozen=True, kw_only=True)
class Finish:
    """Settings of post-processing, and the public facts that the release and its receipt state.

    Attributes:
        mechanism: the mechanism with its settings.
        budget: the total budget of the release.
        unprotected: facts that the mechanism took as public, beyond the domain and the settings.
        notes: settings that had to be cut, and reasons why less than the budget was spent.
        approximate: why the stated spread is only approximate; None if it is exact for the partitions as they are.
        least_squares: whether least squares makes the levels agree; if leaves were not measured, least squares is used in any case.
        zero: whether small counts of leaves are drawn towards 0 before least squares; without effect if least squares is not used.
        inside: how answers to queries spread a cut partition's count inside it: "uniform", "interpolated" or "log-linear".
        negative: what becomes of negative counts: "keep", or "spread", for which see `nonnegative_counts`; without effect if least squares
            is not used. With `inside="log-linear"`, quarters are then drawn towards the interpolation, too.
    """

    mechanism: PointMechanism
    budget: Budget
    unprotected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    approximate: str | None = None
    least_squares: bool = True
    zero: bool = False
    inside: str = UNIFORM
    negative: str = KEEP

    @property
    def is_nonnegative(self) -> bool:
        """Whether negative counts are spread."""
        return self.negative == SPREAD and self.least_squares


@dataclass(frozen=True, kw_only=True)
class NoisyCounts:
    """One run of a mechanism on private points: adds noise to counts, and keeps the receipt.

    Attributes:
        points: the private input; its contribution bound scales every sensitivity.
        entropy: the stream from which noise is drawn.
        gaussian: whether noise is discrete Gaussian, and amounts are of rho; else it is discrete Laplace, and they are of epsilon.
        steps: the steps spent so far, for the receipt.
        notes: notes so far on what had to be cut, for the receipt.
        conversions: the rho to which (epsilon, delta) was converted, and the conversion; empty without one.
    """

    points: PointCounts
    entropy: Entropy
    gaussian: bool = False
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conversions: list[tuple[ZcdpBudget, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not isinstance(self.points, PointCounts):
            raise InputError(NO_POINTS)
        require_entropy(self.entropy)

    def has_room(self, nodes: int) -> bool:
        """Return whether memory has room for a tree of this many nodes; if not, the tree must not grow, and a note says so.

        The number of nodes must be a function of released numbers alone. Then ending the tree is post-processing.
        """
        if nodes <= MOST_GROWN:
            return True
        self.notes.append(f"The tree ends where it would have passed {MOST_GROWN:,} nodes; what was left went to its leaves.")
        return False

    def split(self, budget: Budget, mechanism: str, weights: Sequence[float], *, ones: int = 1) -> list[Fraction]:
        """Split a budget over counts that are measured one after the other; (epsilon, delta) is converted to rho.

        One record per unit changes one count of each part by one, so that (epsilon, delta) buys what the exact accounting says that this
        noise costs. With more records per unit, the tight conversion is used, and the receipt says so. The exact accounting takes it that
        every part is measured with its own amount: the tree has no leaves above the bottom, which take those of later parts, too.

        Args:
            budget: of the kind that decided `gaussian`.
            mechanism: the name of the mechanism, for errors.
            weights: of the parts; at least 0.
            ones: how many numbers of a part one record changes, by one each, if they are not counts of disjoint cells.

        Returns:
            Parts of epsilon, or of rho.

        Raises:
            BudgetError: not a budget, delta = 0, or weights out of range.
        """
        split = split_budget(budget, mechanism, weights, self._change(ones))
        if split.converted is not None and split.conversion is not None:
            self.conversions.append((split.converted, split.conversion))
        self.notes.extend(split.notes)
        return list(split.parts)

    def _change(self, ones: int) -> Change:
        return Change(contributions=self.points.contributions, ones=ones)

    def count(
        self, purpose: str, true: Integers, amount: Fraction, level: int | None = None, *, replaces_later: bool = False, ones: int = 1
    ) -> tuple[Integers, float]:
        """Count disjoint nodes with exact noise.

        Args:
            purpose: what is counted, for the receipt.
            true: (k,) true counts of nodes, no two of which share a record.
            amount: epsilon, or rho, that one unit spends on these counts.
            level: level of the tree, 0 for the whole domain; for the receipt.
            replaces_later: whether this count replaces later steps, on paths that end at these nodes.
            ones: how many of the numbers one record changes, by one each, if they are not counts of disjoint nodes.

        Returns:
            (k,) noisy counts, and the variance of the noise on each.
        """
        change, gaussian = self._change(ones), self.gaussian
        facts: dict[str, Any] = {"purpose": purpose, "level": level, "counts": len(true), "replaces_later": replaces_later}
        self.steps.append(change.step(amount, gaussian=gaussian, **facts))
        if gaussian:
            noisy = discrete_gaussian(true, ZcdpBudget(amount), self.entropy, change.squares)
        else:
            noisy = discrete_laplace(true, PureBudget(amount), self.entropy, change.total)
        return noisy, change.variance(amount, gaussian=gaussian)

    def count_levels(self, tree: Tree, amounts: Sequence[Fraction], true: Integers | None = None) -> tuple[Floats, Floats]:
        """Count every node of the levels that have a budget.

        A leaf above the bottom is measured with the amounts of its own level and all levels below, since nothing else is measured on
        its path. Nodes that the domain's mask covers are not measured: no record can be there.

        Args:
            tree: a public tree, or one that was paid for.
            amounts: of epsilon or rho, one per depth, root first; a depth with 0 is not measured.
            true: (n,) true counts of the nodes; computed from the points if None.

        Returns:
            (n,) noisy counts, NaN where a node is not measured, and (n,) variances, infinite where a node is not measured.
        """
        if true is None:
            true = tree.sums(self.points.column, self.points.row, self.points.count)
        noisy, variance = np.full(len(tree), np.nan), np.full(len(tree), np.inf)
        for group in measured_nodes(tree, amounts, open_cells(tree, self.points.domain.mask)):
            noisy[group.nodes], variance[group.nodes] = self.count(
                "counts of early leaves" if group.early else "counts",
                true[group.nodes],
                group.amount,
                group.depth,
                replaces_later=group.early,
            )
        return noisy, variance

    def make_release(self, finish: Finish, tree: Tree, noisy: Floats, variance: Floats) -> Release:
        """Make the release of a tree's noisy counts, made consistent by least squares or left as they are.

        Args:
            finish: post-processing, and the facts that the release states.
            tree: the tree, public or paid for.
            noisy: (n,) noisy counts of the nodes, NaN where a node is not measured.
            variance: (n,) variances of the noise, infinite where a node is not measured. What is given of wholly masked nodes is not used:
                their counts are 0, with variance 0.
        """
        mask = self.points.domain.mask
        finish.mechanism.refuse_mask(self.points.domain)
        cells = open_cells(tree, mask)
        noisy, measured = np.where(cells > 0, noisy, np.nan), np.where(cells > 0, variance, np.inf)
        count, variance, spread = reconcile(tree, noisy, measured, by_least_squares=finish.least_squares, cells=cells)
        changed = _change_counts(finish, tree, (noisy, measured), count, mask)
        several = spread is not None and np.isfinite(variance[cells > 0]).sum() > (cells[tree.leaves] > 0).sum()
        return Release(
            mechanism=finish.mechanism.key,
            settings=finish.mechanism.chosen(),
            domain=self.points.domain,
            tree=tree,
            noisy=noisy,
            noise_variance=variance,
            count=count if changed is None else changed,
            unbiased=None if changed is None else count,
            spread=spread,
            receipt=self.receipt(finish),
            steps=_describe_steps(finish, several=bool(several)),
            simulation=self.entropy.simulation,
            height=tree.height,
            approximate=_explain_approximation(finish),
            inside=finish.inside,
            nonnegative=finish.is_nonnegative,
        )

    def receipt(self, finish: Finish) -> Receipt:
        """Make the receipt of all steps so far."""
        converted, conversion = self.conversions[0] if self.conversions else (None, None)
        return Receipt(
            total=finish.budget,
            steps=tuple(self.steps),
            unit=self.points.unit,
            contributions=self.points.contributions,
            row_stable=self.points.row_stable,
            unit_declared=self.points.unit_declared,
            unprotected=(*Receipt.unprotected, *describe_mask(self.points.domain), *finish.unprotected),
            notes=(*finish.notes, *self.notes, *((SPREAD_NOTE,) if finish.is_nonnegative else ())),
            converted=converted,
            conversion=conversion,
            private=finish.mechanism.private,
        )


def _change_counts(finish: Finish, tree: Tree, measured: tuple[Floats, Floats], count: Floats, mask: CellMask | None) -> Floats | None:
    """Make the counts of a biased finish.

    Args:
        finish: its settings.
        tree: of n nodes.
        measured: (n,) noisy counts and (n,) variances.
        count: (n,) counts by least squares.
        mask: of the domain, if it has one.

    Returns:
        (n,) counts; None if nothing is to be changed.
    """
    if finish.is_nonnegative:
        smooth = finish.inside == LOG_LINEAR
        return nonnegative_counts(tree, *measured, total=count[0], zero=finish.zero, smooth=smooth, mask=mask)
    if finish.zero and finish.least_squares:
        return least_squares(tree, *shrink_small_counts(tree, *measured), least=0.0, cells=open_cells(tree, mask))[0]
    return None


def _describe_steps(finish: Finish, *, several: bool) -> tuple[str, ...]:
    """Describe post-processing; `several` says whether least squares combined several measurements."""
    zero, spread = finish.zero and finish.least_squares, finish.is_nonnegative
    steps = {
        "small leaves drawn towards 0": zero and not spread,
        "small leaves drawn towards 0, those with nothing around them more": zero and spread,
        "least squares, the total at least 0": zero and not spread,
        "least squares": spread or (several and not zero),
        "quarters drawn towards a log-linear interpolation of their surroundings": spread and finish.inside == LOG_LINEAR,
        "negative counts spread over their siblings, the total kept": spread,
        "answers lean towards fuller neighbours inside leaves": finish.inside == INTERPOLATED,
        "answers follow a log-linear interpolation inside leaves": finish.inside == LOG_LINEAR,
    }
    return tuple(text for text, done in steps.items() if done)


def _explain_approximation(finish: Finish) -> str | None:
    """Return why the stated spread is only approximate; None if it is exact."""
    zeroed = ZEROED if finish.zero and finish.least_squares else None
    spread, leaning = NONNEGATIVE if finish.is_nonnegative else None, None if finish.inside == UNIFORM else LEANING
    return join_reasons(finish.approximate, zeroed, spread, leaning)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredNodes:
    """Nodes of one depth that are measured with the same part of the budget.

    Attributes:
        depth: their depth.
        nodes: (k,) their indices, or a slice.
        amount: epsilon, or rho, that one unit spends on their counts.
        early: whether they are leaves above the bottom, which also spend the amounts of the depths below.
    """

    depth: int
    nodes: Integers | slice
    amount: Fraction
    early: bool = False


def describe_mask(domain: Domain) -> tuple[str, ...]:
    """Write what a domain's mask takes as public, for the receipt; nothing without a mask.

    >>> describe_mask(Domain(bounds=(0, 0, 2, 2), crs=None, order=1))
    ()
    """
    mask = domain.mask
    return () if mask is None else (f"where nobody can be (a mask of {mask.open.size - mask.cells_open:,} of {mask.open.size:,} cells)",)


def measured_nodes(tree: Tree, amounts: Sequence[Fraction], cells: Floats | None = None) -> Iterator[MeasuredNodes]:
    """Find which nodes of a tree are measured, and with what part of the budget, if each depth has a part of its own.

    A leaf above the bottom is measured with the amounts of its own depth and all depths below, since nothing else is measured on its
    path.

    Args:
        tree: any tree.
        amounts: of epsilon or rho, one per depth, root first; a depth with 0, or without an amount of its own, is not measured.
        cells: (n,) open cells of each node, of which those without any are not measured: see `open_cells`. None if all nodes have some.

    Yields:
        Groups of nodes, coarsest depth first; no node is in two groups.
    """
    for depth, amount in enumerate(amounts):
        inner: Integers | slice = tree.at_depth(depth)
        if depth < tree.height and not tree.fan_outs[depth]:
            nodes = np.arange(tree.starts[depth], tree.starts[depth + 1])
            ends, inner = nodes[tree.children[nodes] == 0], nodes[tree.children[nodes] > 0]
            remaining = sum(amounts[depth:], Fraction(0))
            ends = ends if cells is None else ends[cells[ends] > 0]
            if ends.size and remaining:
                yield MeasuredNodes(depth=depth, nodes=ends, amount=remaining, early=True)
        if amount:
            if cells is not None and not (cells[inner] > 0).all():
                inner = np.arange(len(tree))[inner]
                inner = inner[cells[inner] > 0]
            yield MeasuredNodes(depth=depth, nodes=inner, amount=amount)


def level_variances(
    tree: Tree, amounts: Sequence[Fraction], contributions: int, cells: Floats | None = None, *, gaussian: bool = False
) -> Floats | None:
    """Compute the variances with which `NoisyCounts.count_levels` would count the nodes of a tree; nothing is drawn.

    Args:
        tree: any tree.
        amounts: of epsilon or rho, one per depth, root first; a depth with 0 is not measured.
        contributions: the bound on the records of one unit.
        cells: as for `measured_nodes`.
        gaussian: whether amounts are of rho, for Gaussian noise.

    Returns:
        (n,) variances, infinite where a node is not measured; None if there are amounts for depths that the tree does not have.

    >>> from dpviz.space.grids import quadtree
    >>> tree = quadtree(Domain(bounds=(0, 0, 2, 2), crs=None, order=1), height=1)
    >>> level_variances(tree, [Fraction(0), Fraction(1)], contributions=1).round(2).tolist()
    [inf, 1.84, 1.84, 1.84, 1.84]
    """
    if len(amounts) > tree.height + 1:
        return None
    variance, change = np.full(len(tree), np.inf), Change(contributions=contributions)
    for group in measured_nodes(tree, amounts, cells):
        variance[group.nodes] = change.variance(group.amount, gaussian=gaussian)
    return variance


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


def finish_settings(mechanism: PointMechanism) -> dict[str, Any]:
    """Return the settings of a mechanism that are also arguments of `Finish`: least_squares, zero, inside, negative, if it has them."""
    return {name: value for name, value in mechanism.chosen().items() if name in ("least_squares", "zero", "inside", "negative")}


def negative_setting(default: str = KEEP, when: tuple[str, Any] | None = ("least_squares", True)) -> Any:
    """Declare the setting `negative` of a mechanism; `when` is None if it always uses least squares."""
    return setting(
        default,
        "Negative counts",
        choices=NEGATIVE,
        when=when,
        help="Spread makes them 0 and takes as much from their siblings: sums stay right, nearly empty places come out too large.",
    )


def join_reasons(*reasons: str | None) -> str | None:
    """Join the reasons why a spread is approximate to one text; None if there are no reasons."""
    return "; ".join(filter(None, reasons)) or None


def all_on_leaves(tree: Tree, amount: Fraction) -> list[Fraction]:
    """Return the part of the budget of each depth if everything is spent on the leaves of a balanced tree."""
    return [Fraction(0)] * tree.height + [amount]
