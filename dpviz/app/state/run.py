"""A run as it is chosen on a page: a mechanism with its settings, a budget as it was typed, and the seed of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpviz.app.state.linked import in_link, in_link_of
from dpviz.app.state.readers import choice_reader, fraction_reader, number_reader, read_settings
from dpviz.app.state.values import (
    CURATE,
    LARGEST_DELTA,
    LARGEST_EPSILON,
    LARGEST_RHO,
    LARGEST_SEED,
    SMALLEST_DELTA,
    SMALLEST_EPSILON,
    SMALLEST_RHO,
)
from dpviz.errors import SettingError
from dpviz.families import Family
from dpviz.mechanisms import AnyMechanism
from dpviz.mechanisms.base import GAUSSIAN, LAPLACE, NOISES
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget


@dataclass(frozen=True, kw_only=True)
class Run:
    """A mechanism, its settings, a budget and a seed. Every part may be missing.

    Attributes:
        mechanism: key of the mechanism.
        settings: its settings that differ from the defaults, by name.
        epsilon: ε of the budget, exactly as typed.
        delta: δ of the budget, where it has one.
        rho: ρ of the budget in Curate, in place of ε and δ, where the budget has a δ. A configuration may have it; ε and δ are about what
            it implies.
        noise: "Laplace" or "Gaussian", where the kind of the budget decides the noise; Gaussian noise takes a δ.
        seed: the seed of the noise in Teach; in Curate there is none, whatever this says.

    >>> from dpviz.families import POINT_FAMILY
    >>> run = Run(mechanism="quadtree", settings={"height": 4}, epsilon=Fraction(1, 3))
    >>> run.budget(POINT_FAMILY)
    PureBudget(epsilon=Fraction(1, 3))
    """

    mechanism: str | None = field(default=None, metadata=in_link_of(lambda kind: choice_reader(*kind.family.choices)))
    settings: dict[str, Any] = field(default_factory=dict, metadata=in_link(read_settings))
    epsilon: Fraction | None = field(default=None, metadata=in_link(fraction_reader(SMALLEST_EPSILON, LARGEST_EPSILON)))
    delta: Fraction | None = field(default=None, metadata=in_link(fraction_reader(SMALLEST_DELTA, LARGEST_DELTA)))
    rho: Fraction | None = field(default=None, metadata=in_link(fraction_reader(SMALLEST_RHO, LARGEST_RHO)))
    noise: str = field(default=LAPLACE, metadata=in_link(choice_reader(*NOISES)))
    seed: int = field(default=1, metadata=in_link(number_reader(1, LARGEST_SEED, int), "run"))

    def build(self, family: Family) -> AnyMechanism:
        """Build the mechanism.

        Raises:
            SettingError: it is missing or not known, or a setting is not known or out of its range.
        """
        if self.mechanism is None:
            raise SettingError("Choose a mechanism.")
        if self.mechanism not in family.choices:
            raise SettingError(f"There is no such mechanism of {family.name}: choose another one.")
        built: AnyMechanism = family.choices[self.mechanism].from_settings(self.settings)
        return built

    def takes_delta(self, mechanism: AnyMechanism) -> bool:
        """Return whether the budget of a draw with a mechanism has a δ."""
        return mechanism.needs_delta or (mechanism.noise_by_budget and self.noise == GAUSSIAN)

    def budget(self, family: Family, *, mode: str = CURATE) -> Budget:
        """Return the budget; it has a δ, or is a ρ, exactly where the noise takes one.

        Args:
            family: of the mechanism.
            mode: Teach, which has no ρ, or Curate.

        Raises:
            SettingError: mechanism, ε or δ are missing.
        """
        return self.budget_for(self.build(family), mode=mode)

    def budget_for(self, mechanism: AnyMechanism, *, mode: str = CURATE) -> Budget:
        """Return the budget of one draw with another mechanism; as for `budget`."""
        takes_delta = self.takes_delta(mechanism)
        if takes_delta and self.rho is not None and mode == CURATE:
            return ZcdpBudget(self.rho)
        if self.epsilon is None:
            raise SettingError("Type a privacy budget ε.")
        if not takes_delta:
            return PureBudget(self.epsilon)
        if self.delta is None:
            raise SettingError("Type δ, which this noise takes.")
        return ApproxBudget(self.epsilon, self.delta)


def convert_to_currency(mechanism: AnyMechanism, budget: Budget, cap: Budget | None) -> Budget:
    """Return the budget in the account's currency: (epsilon, delta) is converted to rho where the account counts rho."""
    if isinstance(cap, ZcdpBudget) and isinstance(budget, ApproxBudget):
        return budget.to_zcdp(conversion=mechanism.conversion)
    return budget
