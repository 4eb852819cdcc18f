"""One run of a mechanism on private counts: here noise is drawn, and what it costs is written down for the receipt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.data.counts import Counts
from dpviz.errors import BudgetError
from dpviz.mechanisms.base import BOUNDED, AnyMechanism
from dpviz.mechanisms.budget_noise import is_gaussian, split_budget
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.budget import Budget, PureBudget, ZcdpBudget, require_pure
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace
from dpviz.privacy.receipt import Receipt, Step
from dpviz.space.hierarchy import Hierarchy

MOST_GROWN = 2**23
Data = TypeVar("Data", bound=Counts)


@dataclass(frozen=True, kw_only=True)
class Run(Generic[Data]):
    """One run of a mechanism: adds noise to counts, and keeps what the receipt will say.

    Attributes:
        mechanism: with its settings.
        data: the private counts.
        budget: of the run.
        entropy: the stream from which noise is drawn.
        sensitivity: of the numbers that are measured together; it scales all noise.
        gaussian: whether noise is discrete Gaussian, and amounts are of rho; else it is discrete Laplace, and they are of epsilon.
        steps: the steps spent so far.
        notes: notes so far, on what had to be cut and on the accounting.
        conversions: the rho to which (epsilon, delta) was converted, and the conversion; empty without one.

    Raises:
        InputError: data of another family.
        DpvizError: public facts about the data rule the mechanism out, such as a mask that it does not take (`Mechanism.check_data`).
        BudgetError: rho, or (epsilon, delta), for a mechanism that draws Laplace noise alone.
        SettingError: `entropy` is not an `Entropy`.

    >>> import dpviz as dv
    >>> points = dv.PointCounts.from_matrix([[900, 0], [40, 0]])
    >>> run = Run.of(dv.Identity(order=1), points, PureBudget(1000), Entropy.seeded(1))
    >>> run.measure("counts of cells", np.array([40, 0, 900, 0]), PureBudget(1000).epsilon)[0].tolist()
    [40, 0, 900, 0]
    >>> run.receipt().spent == PureBudget(1000)
    True
    """

    mechanism: AnyMechanism
    data: Data
    budget: Budget
    entropy: Entropy
    sensitivity: Sensitivity
    gaussian: bool = False
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conversions: list[tuple[ZcdpBudget, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mechanism.check_data(self.data)
        if not self.gaussian and not self.mechanism.needs_delta:
            require_pure(self.budget, self.mechanism.title)
        require_entropy(self.entropy)

    @classmethod
    def of(
        cls,
        mechanism: AnyMechanism,
        data: Data,
        budget: Budget,
        entropy: Entropy,
        *,
        gaussian: bool | None = None,
        ones: int = 1,
        weight: int = 1,
    ) -> Run[Data]:
        """Begin a run. What does not fit is refused here, before any noise is drawn.

        Args:
            mechanism: with its settings, of which `neighbours` decides the sensitivity.
            data: the private counts.
            budget: of the run.
            entropy: the stream from which noise is drawn.
            gaussian: whether noise is Gaussian; None if the kind of the budget decides where the mechanism lets it, and is Laplace else.
            ones: how many of the numbers one record changes, if they are not counts of disjoint nodes.
            weight: how much one record adds to them in all, if its value is added up.
        """
        mechanism.check_type(data)
        if gaussian is None:
            gaussian = mechanism.noise_by_budget and is_gaussian(budget, mechanism.title)
        sensitivity = Sensitivity(contributions=data.contributions, neighbours=mechanism.neighbours, ones=ones, weight=weight)
        return cls(mechanism=mechanism, data=data, budget=budget, entropy=entropy, sensitivity=sensitivity, gaussian=gaussian)

    @property
    def epsilon(self) -> Fraction:
        """All of the budget, where it must be pure; else a `BudgetError`."""
        return require_pure(self.budget, self.mechanism.title).epsilon

    def has_room(self, nodes: int) -> bool:
        """Return whether memory has room for a tree of this many nodes; if not, the tree must not grow, and a note says so.

        The number of nodes must be a function of released numbers alone. Then ending the tree is post-processing.
        """
        if nodes <= MOST_GROWN:
            return True
        self.notes.append(f"The tree ends where it would have passed {MOST_GROWN:,} nodes; what was left went to its leaves.")
        return False

    def split(self, weights: Sequence[float | Fraction]) -> list[Fraction]:
        """Split the budget over parts that are measured one after the other, by `split_budget`: parts of epsilon, or of rho.

        Args:
            weights: of the parts; at least 0.

        Raises:
            BudgetError: not a budget, delta = 0, or weights out of range.
        """
        split = split_budget(self.budget, self.mechanism, weights, self.sensitivity, gaussian=self.gaussian)
        if split.converted is not None and split.conversion is not None:
            self.conversions.append((split.converted, split.conversion))
        self.notes.extend(split.notes)
        return list(split.parts)

    def record(self, purpose: str, amount: Fraction, **facts: Any) -> None:
        """Write down a step with the noise of `draw`; `facts` are other fields of the step, such as its level."""
        self.steps.append(self.sensitivity.step(amount, gaussian=self.gaussian, purpose=purpose, **facts))

    def add_step(self, purpose: str, amount: Fraction, sensitivity: Fraction | int, noise: str, scale: Fraction, **facts: Any) -> None:
        """Write down a step with noise, or choices, that are not those of `draw`; the arguments are fields of `Step`."""
        self.steps.append(Step(purpose=purpose, amount=amount, sensitivity=Fraction(sensitivity), noise=noise, scale=scale, **facts))

    def draw(self, true: Integers, amount: Fraction) -> Integers:
        """Return (k,) true counts with the noise that a part of epsilon, or of rho, asks for; `record` must know of it."""
        if self.gaussian:
            return discrete_gaussian(true, ZcdpBudget(amount), self.entropy, self.sensitivity.squares)
        return discrete_laplace(true, PureBudget(amount), self.entropy, self.sensitivity.total)

    def variance(self, amount: Fraction) -> float:
        """Return the variance of this noise."""
        return self.sensitivity.variance(amount, gaussian=self.gaussian)

    def with_most(self, most: int | None) -> Run[Data]:
        """Return this run for numbers of which each has at most `most` records of one unit; its steps are those of this run."""
        return replace(self, sensitivity=replace(self.sensitivity, most=most))

    def measure(
        self, purpose: str, true: Integers, amount: Fraction, level: int | None = None, *, replaces_later: bool = False
    ) -> tuple[Integers, float]:
        """Count disjoint nodes with exact noise.

        Args:
            purpose: what is counted, for the receipt.
            true: (k,) true counts of nodes, no two of which share a record. PRIVATE.
            amount: epsilon, or rho, that one unit spends on these counts.
            level: its number in the release, for the receipt; of a tree, the depth of the nodes.
            replaces_later: whether this count replaces later steps, on paths that end at these nodes.

        Returns:
            (k,) noisy counts, and the variance of the noise on each.
        """
        self.record(purpose, amount, level=level, counts=len(true), replaces_later=replaces_later)
        return self.draw(true, amount), self.variance(amount)

    def measure_total(self, purpose: str, amount: Fraction) -> int:
        """Count all records, or trips, with noise."""
        noisy, _ = self.measure(purpose, np.array([self.data.count.sum()], np.int64), amount)
        return int(noisy[0])

    def measure_levels(
        self,
        hierarchy: Hierarchy,
        amounts: Sequence[Fraction],
        true: Integers,
        cells: Floats | None = None,
        purpose: Callable[[int], str] = lambda _: "counts",
    ) -> tuple[Floats, Floats]:
        """Count every node of the levels that have a part of the budget: see `measured_nodes`.

        Args:
            hierarchy: public, or paid for.
            amounts: of epsilon or rho, one per depth, root first; a depth with 0 is not measured.
            true: (n,) true counts of the nodes. PRIVATE.
            cells: (n,) open cells of each node, of which those without any are not measured; None if all nodes have some.
            purpose: what is counted at a depth, for the receipt.

        Returns:
            (n,) noisy counts, NaN where a node is not measured, and (n,) variances, infinite where a node is not measured.

        Raises:
            BudgetError: exact accounting, which takes it that every part is spent on counts of its own, and leaves above the bottom, which
                spend several parts on one count.
        """
        noisy, variance = np.full(len(hierarchy), np.nan), np.full(len(hierarchy), np.inf)
        for group in measured_nodes(hierarchy, amounts, cells):
            if group.early and any(conversion == "exact" for _, conversion in self.conversions):
                raise BudgetError("Exact accounting holds only where all leaves have one depth; set accounting to 'tight'.")
            noisy[group.nodes], variance[group.nodes] = self.measure(
                f"{purpose(group.depth)} of early leaves" if group.early else purpose(group.depth),
                true[group.nodes],
                group.amount,
                group.depth,
                replaces_later=group.early,
            )
        return noisy, variance

    def receipt(self, unprotected: Sequence[str] = Receipt.unprotected, notes: Sequence[str] = ()) -> Receipt:
        """Make the receipt of all steps so far, with what it says is public, and its notes."""
        converted, conversion = self.conversions[0] if self.conversions else (None, None)
        return Receipt(
            total=self.budget,
            steps=tuple(self.steps),
            unit=self.data.unit,
            neighbours="replace one" if self.sensitivity.neighbours == BOUNDED else "add or remove one",
            contributions=self.data.contributions,
            row_stable=self.data.row_stable,
            unit_declared=self.data.unit_declared,
            unprotected=tuple(unprotected),
            notes=tuple(notes),
            converted=converted,
            conversion=conversion,
            private=self.mechanism.private,
        )


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


def measured_nodes(hierarchy: Hierarchy, amounts: Sequence[Fraction], cells: Floats | None = None) -> Iterator[MeasuredNodes]:
    """Find which nodes of a hierarchy are measured, and with what part of the budget, if each depth has a part of its own.

    A leaf above the bottom is measured with the amounts of its own depth and all depths below, since nothing else is measured on its
    path.

    Args:
        hierarchy: of n nodes.
        amounts: of epsilon or rho, one per depth, root first; a depth with 0, or without an amount of its own, is not measured.
        cells: (n,) open cells of each node, of which those without any are not measured: no record can be there. None if all nodes have
            some.

    Yields:
        Groups of nodes, coarsest depth first; no node is in two groups.
    """
    for depth, amount in enumerate(amounts):
        inner: Integers | slice = hierarchy.at_depth(depth)
        if depth < hierarchy.height and not hierarchy.fan_outs[depth]:
            nodes = np.arange(hierarchy.starts[depth], hierarchy.starts[depth + 1])
            ends, inner = nodes[hierarchy.children[nodes] == 0], nodes[hierarchy.children[nodes] > 0]
            remaining = sum(amounts[depth:], Fraction(0))
            ends = ends if cells is None else ends[cells[ends] > 0]
            if ends.size and remaining:
                yield MeasuredNodes(depth=depth, nodes=ends, amount=remaining, early=True)
        if amount:
            if cells is not None and not (cells[inner] > 0).all():
                inner = np.arange(len(hierarchy))[inner]
                inner = inner[cells[inner] > 0]
            yield MeasuredNodes(depth=depth, nodes=inner, amount=amount)


def level_variances(
    hierarchy: Hierarchy, amounts: Sequence[Fraction], sensitivity: Sensitivity, cells: Floats | None = None, *, gaussian: bool = False
) -> Floats | None:
    """Compute the variances with which `Run.measure_levels` would count the nodes of a hierarchy; nothing is drawn.

    Args:
        hierarchy: of n nodes.
        amounts: of epsilon or rho, one per depth, root first; a depth with 0 is not measured.
        sensitivity: of the counts.
        cells: as for `measured_nodes`.
        gaussian: whether amounts are of rho, for Gaussian noise.

    Returns:
        (n,) variances, infinite where a node is not measured; None if there are amounts for depths that the hierarchy does not have.

    >>> halves = Hierarchy.of_levels((np.zeros(2, int),))
    >>> level_variances(halves, [Fraction(0), Fraction(1)], Sensitivity(contributions=1)).round(2).tolist()
    [inf, 1.84, 1.84]
    """
    if len(amounts) > hierarchy.height + 1:
        return None
    variance = np.full(len(hierarchy), np.inf)
    for group in measured_nodes(hierarchy, amounts, cells):
        variance[group.nodes] = sensitivity.variance(group.amount, gaussian=gaussian)
    return variance
