"""The receipt of a release: what was spent on what, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpviz.errors import BudgetError, RefusedError
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget

PRIVATE, SIMULATION, NOT_PRIVATE = "private release", "SIMULATION: not private", "NOT PRIVATE"
"""What every table of a release says in its column `status`."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One spending: enough for a stranger to recompute the guarantee.

    Attributes:
        purpose: what was measured or chosen.
        amount: epsilon (or rho) that one unit loses here at most; disjoint counts are paid for once.
        sensitivity: the largest total change that one unit causes; for Gaussian noise the largest sum of squared changes.
        noise: the law, for example "discrete Laplace".
        scale: its exact parameter: sensitivity / epsilon for Laplace, the variance sensitivity / (2 rho) for Gaussian, and for
            the exponential mechanism the s of weights exp(-error / s), which is 2 sensitivity / epsilon.
        level: level of the tree of partitions, or stage of a tree of pairs, 0 for the whole; None where it has none.
        counts: how many numbers were measured; None where that number is private.
        delta: that one unit loses here at most; 0 for pure steps and under zCDP.
        instead: spent on paths that end here, in place of what later steps spend on the others; not added up.
    """

    purpose: str
    amount: Fraction
    sensitivity: Fraction
    noise: str
    scale: Fraction
    level: int | None = None
    counts: int | None = None
    delta: Fraction = Fraction(0)
    instead: bool = False


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What was spent on what. Steps compose sequentially; within a step the counts are disjoint.

    Attributes:
        total: the budget that was handed in.
        steps: the spendings, in order.
        unit: what is protected: "record", "trip" or "person".
        neighbours: what may change: "add or remove one", "replace one".
        contributions: m, records per unit at most.
        unprotected: what the release takes as public.
        notes: settings that had to be cut, and why less than the total was spent.
        converted: the rho that (epsilon, delta) was turned into; the steps' amounts are in rho then.
        conversion: "tight" or "simple": how; None where nothing was converted.
        unit_definition: what one unit is, in words, where that is more than its name: "a person is one value of the column ..."; "" if
            nothing is said.
        private: False for references that show the cost of privacy: what they reveal is bounded by no budget.

    Raises:
        BudgetError: there is no step, or the steps add up to more than the total.
    """

    total: Budget
    steps: tuple[Step, ...]
    unit: str = "record"
    neighbours: str = "add or remove one"
    contributions: int = 1
    unprotected: tuple[str, ...] = ("the domain and its lattice", "the mechanism and its settings")
    notes: tuple[str, ...] = ()
    converted: ZcdpBudget | None = None
    conversion: str | None = None
    unit_definition: str = ""
    private: bool = True

    def __post_init__(self) -> None:
        if self.private and not self.steps:
            raise BudgetError("A receipt needs at least one step: something must have been measured.")
        if self.used > self.available or self._delta > getattr(self.total, "delta", 0):
            raise BudgetError("The steps spend more than the budget: a bug in the mechanism, nothing was released.")

    @property
    def currency(self) -> str:
        """What the steps' amounts are in: "ε" or "ρ"."""
        return "ρ" if isinstance(self.converted or self.total, ZcdpBudget) else "ε"

    @property
    def available(self) -> Fraction:
        """What the steps could spend, in their currency."""
        budget = self.converted or self.total
        return budget.rho if isinstance(budget, ZcdpBudget) else budget.epsilon

    @property
    def used(self) -> Fraction:
        """The sum of the steps' amounts along the worst path, in their currency."""
        return sum((step.amount for step in self.steps if not step.instead), Fraction(0))

    @property
    def spent(self) -> Budget:
        """What the worst unit loses: the sum of all steps, as the kind of budget that was handed in.

        Raises:
            BudgetError: the release is not private, so nothing bounds the loss.
        """
        if not self.private:
            raise BudgetError("NOT PRIVATE: no budget bounds what this release reveals.")
        if self.converted is not None:
            return self._back(self.converted)
        if isinstance(self.total, ZcdpBudget):
            return ZcdpBudget(self.used)
        if isinstance(self.total, ApproxBudget):
            return ApproxBudget(self.used, self._delta)
        return PureBudget(self.used)

    def _back(self, converted: ZcdpBudget) -> Budget:
        """The (epsilon, delta) that the spent rho stands for; all of it where all of rho was spent."""
        if self.used == converted.rho or not isinstance(self.total, ApproxBudget):
            return self.total
        back = ZcdpBudget(self.used).to_approx(self.total.delta, self.conversion or "tight")
        return back if back.epsilon < self.total.epsilon else self.total

    @property
    def _delta(self) -> Fraction:
        return sum((step.delta for step in self.steps), Fraction(0))

    def status(self, *, simulation: bool) -> str:
        """What a release with this receipt is, for every table made of it: `PRIVATE`, `SIMULATION` or `NOT_PRIVATE`."""
        if not self.private:
            return NOT_PRIVATE
        return SIMULATION if simulation else PRIVATE

    def refuse_unpublishable(self, *, simulation: bool) -> None:
        """Raise what forbids publishing: exact counts or structure, or noise that a seed can subtract.

        Raises:
            RefusedError: a simulation, or made by a reference that is not private.
        """
        if not self.private:
            raise RefusedError("NOT PRIVATE: this is a reference that shows what privacy costs; it must not be published.")
        if simulation:
            raise RefusedError("A simulation must not be published: whoever knows the seed can subtract the noise.")
