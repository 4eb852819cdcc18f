"""The receipt of a release: how much of the budget each step spent, in exact fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pandas as pd

from dpviz.cards import HtmlCard
from dpviz.data.marks import refuse_marked
from dpviz.errors import BudgetError, RefusedError
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget

PRIVATE, SIMULATION, NOT_PRIVATE = "private release", "SIMULATION: not private", "NOT PRIVATE"
"""The values of the column `status` in every table of a release."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a mechanism that spent budget, with everything that is needed to recompute its guarantee.

    Attributes:
        purpose: what was measured or chosen.
        amount: the most epsilon (or rho) that one unit loses in this step. Counts of disjoint sets of records cost it once together.
        sensitivity: the largest total change that one unit can cause; for Gaussian noise the largest sum of squared changes.
        noise: the distribution, for example "discrete Laplace".
        scale: its exact parameter: sensitivity / epsilon for Laplace; the variance sensitivity / (2 rho) for Gaussian; for the
            exponential mechanism, whose weights are exp(-error / scale), and for the Laplace noise of a noisy minimum,
            2 sensitivity / epsilon.
        level: level of the tree of partitions, or stage of the tree of pairs, 0 for the whole; None if the step has none.
        counts: the number of measured numbers; None if it is private.
        delta: the most delta that one unit loses in this step; 0 for pure steps and under zCDP.
        replaces_later: True for a step on nodes that are not divided further, which replaces the later steps on these nodes' descendants.
            Its amount is not added to the later steps, since no record is counted in both.

    >>> step = Step(purpose="counts", amount=Fraction(1), sensitivity=Fraction(1), noise="discrete Laplace", scale=Fraction(1))
    >>> step.delta
    Fraction(0, 1)
    """

    purpose: str
    amount: Fraction
    sensitivity: Fraction
    noise: str
    scale: Fraction
    level: int | None = None
    counts: int | None = None
    delta: Fraction = Fraction(0)
    replaces_later: bool = False


@dataclass(frozen=True, kw_only=True)
class Receipt(HtmlCard):
    """How a release spent its budget. Steps compose sequentially; within a step, the counts are of disjoint sets of records.

    Attributes:
        total: the budget that was given to the mechanism.
        steps: the steps that spent it, in order.
        unit: what is protected: "record", "trip" or "person".
        neighbours: how two neighbouring inputs differ: "add or remove one" or "replace one".
        contributions: m, the most records of one unit.
        unprotected: what the release treats as public.
        notes: settings that had to be reduced, and why less than the total was spent.
        converted: the rho to which a total of (epsilon, delta) was converted; the steps' amounts are then in rho. None without a
            conversion.
        conversion: the conversion: "tight" or "simple", which hold for rho as such, or "exact", which holds for the noise of exactly
            these steps, and for this release alone; None without one.
        unit_definition: a definition of the unit, if its name is not enough: "a person is one value of the column ..."; else "".
        private: False for references that show the cost of privacy: no budget bounds what they reveal.
        row_stable: False if one row could decide others when the data were read; see `dpviz.data.marks`.
        unit_declared: False if rows stood for any number of records or trips, and it was not said what is protected.

    Raises:
        BudgetError: there is no step, or the steps add up to more than the total.

    >>> step = Step(purpose="counts", amount=Fraction(1, 2), sensitivity=Fraction(1), noise="discrete Laplace", scale=Fraction(2))
    >>> receipt = Receipt(total=PureBudget(1), steps=(step,))
    >>> receipt.currency, receipt.spent
    ('ε', PureBudget(epsilon=Fraction(1, 2)))
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
    row_stable: bool = True
    unit_declared: bool = True

    def __post_init__(self) -> None:
        if self.private and not self.steps:
            raise BudgetError("A receipt needs at least one step: something must have been measured.")
        if self.used > self.available or self._delta > getattr(self.total, "delta", 0):
            raise BudgetError("The steps spend more than the budget: the mechanism has a bug, and nothing was released.")
        replaced = Fraction(0)
        for step in reversed(self.steps):
            if step.replaces_later and step.amount > replaced:
                raise BudgetError(
                    "A step spends more than the later ones that it replaces: the mechanism has a bug, and nothing was released."
                )
            replaced += 0 if step.replaces_later else step.amount

    @property
    def currency(self) -> str:
        """The symbol of the steps' amounts: "ε" or "ρ"."""
        return "ρ" if isinstance(self.converted or self.total, ZcdpBudget) else "ε"

    @property
    def available(self) -> Fraction:
        """The most that the steps together may spend, in their currency."""
        budget = self.converted or self.total
        return budget.rho if isinstance(budget, ZcdpBudget) else budget.epsilon

    @property
    def used(self) -> Fraction:
        """The sum of the steps' amounts, in their currency, without the steps that replace later ones."""
        return sum((step.amount for step in self.steps if not step.replaces_later), Fraction(0))

    @property
    def spent(self) -> Budget:
        """The most that any unit loses in all steps, as a budget of the same type as `total`.

        Raises:
            BudgetError: the release is not private, so that no budget bounds the loss.
        """
        if not self.private:
            raise BudgetError("NOT PRIVATE: no budget bounds what this release reveals.")
        if self.converted is not None:
            return self._convert_back(self.converted)
        if isinstance(self.total, ZcdpBudget):
            return ZcdpBudget(self.used)
        if isinstance(self.total, ApproxBudget):
            return ApproxBudget(self.used, self._delta)
        return PureBudget(self.used)

    def to_frame(self) -> pd.DataFrame:
        """Make a table of the steps.

        Returns:
            DataFrame with one row per step: purpose, level (missing if the step has none), amount (in `currency`), delta, noise, scale,
            sensitivity, counts (missing if it is private) and replaces_later. Amount, delta, scale and sensitivity are exact fractions;
            `astype(float)` makes numbers of them.

        >>> step = Step(purpose="counts", amount=Fraction(1, 3), sensitivity=Fraction(1), noise="discrete Laplace", scale=Fraction(3))
        >>> Receipt(total=PureBudget(1), steps=(step, step)).to_frame()["amount"].sum()
        Fraction(2, 3)
        """
        names = ("purpose", "level", "amount", "delta", "noise", "scale", "sensitivity", "counts", "replaces_later")
        table = pd.DataFrame({name: pd.Series([getattr(step, name) for step in self.steps], dtype=object) for name in names})
        return table.astype({"level": "Int64", "counts": "Int64", "replaces_later": bool})

    def _convert_back(self, converted: ZcdpBudget) -> Budget:
        """The (epsilon, delta) that the spent rho implies; exactly `total` if all of rho was spent.

        After the exact conversion it is always `total`: no formula leads back from rho, and fewer steps lose no more than all of them.
        """
        if self.used == converted.rho or self.conversion == "exact" or not isinstance(self.total, ApproxBudget):
            return self.total
        implied = ZcdpBudget(self.used).to_approx(self.total.delta, self.conversion or "tight")
        return implied if implied.epsilon < self.total.epsilon else self.total

    @property
    def _delta(self) -> Fraction:
        return sum((step.delta for step in self.steps), Fraction(0))

    def describe_total(self) -> str:
        """Return the total behind a comma, for the text of a release; "" if a release that is not private spends nothing."""
        return f", {self.total}" if self.private or self.steps else ""

    def status(self, *, simulation: bool) -> str:
        """The status of a release with this receipt, as every table of it states it: `PRIVATE`, `SIMULATION` or `NOT_PRIVATE`.

        Args:
            simulation: whether its noise came from a seed.
        """
        if not self.private:
            return NOT_PRIVATE
        if simulation:
            return SIMULATION
        return PRIVATE if self.row_stable else NOT_PRIVATE

    def refuse_unpublishable(self, *, simulation: bool) -> None:
        """Raise an error if a release with this receipt must not be published.

        Args:
            simulation: whether its noise came from a seed.

        Raises:
            RefusedError: the release is a simulation, was made by a reference that is not private, or of counts that are marked.
        """
        if not self.private:
            raise RefusedError("NOT PRIVATE: this is a reference that shows what privacy costs; it must not be published.")
        if simulation:
            raise RefusedError("A simulation must not be published: anyone who knows the seed can subtract the noise.")
        refuse_marked(self)
