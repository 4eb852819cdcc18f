"""A number of each record, between public bounds: its sum and its mean are released as counts in two slots."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpviz.arrays import Floats, Integers, Places, Texts
from dpviz.errors import DomainError
from dpviz.space.categories import MOST_SLOTS, VALUE, Categories

LOW, HIGH = "low", "high"
"""The ids of the two slots."""
MOST_SUM = 2**60  # of the counts of all places in one slot, in steps


def _two_slots() -> tuple[Texts, ...]:
    return (np.array([LOW, HIGH], object),)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Summed(Categories):
    """A number of each record, such as an income, between public bounds on a public grid. PUBLIC: never derived from private data.

    A record with the value v lies in both of two slots: for (v - low) / (high - low) of it at the upper bound, in the slot "high", and for
    the rest at the lower bound, in "low". So the two slots add up to the number of records, low + (high - low) times the share of "high" is
    the mean, and both are measured with noise as counts of any two slots are.

    What is counted are whole steps: sum of (high - v) / step in "low", and of (v - low) / step in "high". Each v is cut to the bounds and
    rounded to the grid, by itself, before it is added; a record without a number is in no slot, and is left out.

    Privacy: a record adds `per_record` = (high - low) / step to the two slots together. With m records of a person, the counts of a level
    change by at most m `per_record` in absolute values, and by its square in squares, since a + b <= d implies a**2 + b**2 <= d**2 for
    a, b >= 0. If records are replaced, both are at most twice that.

    Attributes:
        low: the lower bound L, in the unit of the values.
        high: the upper bound U.
        step: width g of the grid; (U - L) / g is whole, and at most 65,535. A finer grid costs no privacy, and hardly any accuracy is won
            by one that is finer than the noise.

    Raises:
        DomainError: bounds or a step that are not finite, a lower bound that is not below the upper one, or that are not on one grid.

    Source:
        A sum and a count as two such numbers have the errors of the mean that a sum around the middle of the bounds has, and need no split
        of the budget between sum and count.

    >>> ages = Summed(low=0, high=120)
    >>> ages, ages.per_record
    (Summed(0 to 120 in steps of 1), 120)
    """

    levels: tuple[str, ...] = ("value",)
    ids: tuple[Texts, ...] = field(default_factory=_two_slots)
    names: tuple[Texts, ...] = field(default_factory=_two_slots)
    parent: tuple[Places, ...] = field(default_factory=lambda: (np.zeros(2, np.int32),))
    read_as: str = VALUE
    low: float
    high: float
    step: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(math.isfinite(number) for number in (self.low, self.high, self.step)) or self.low >= self.high or self.step <= 0:
            raise DomainError("Values need a lower bound that is below the upper one, and a step above 0.")
        steps = (Fraction(str(self.high)) - Fraction(str(self.low))) / Fraction(str(self.step))
        if steps.denominator != 1 or steps >= MOST_SLOTS:
            raise DomainError(f"The upper bound must be a whole number of steps above the lower one, at most {MOST_SLOTS - 1:,}.")

    def __repr__(self) -> str:
        return f"Summed({self.low:.15g} to {self.high:.15g} in steps of {self.step:.15g})"

    def with_other(self, name: str = "other") -> Categories:  # noqa: ARG002
        """Refuse a slot for other records: one without a number has no value to add up.

        Raises:
            DomainError: always.
        """
        raise DomainError("Values that are added up have no slot for other records: those without a number are left out.")

    @property
    def _reading(self) -> tuple[object, ...]:
        return self.read_as, self.low, self.high, self.step

    @property
    def per_record(self) -> int:
        """How many steps one record adds to both slots together: (U - L) / g."""
        return round((self.high - self.low) / self.step)

    @property
    def entries(self) -> int:
        """How many values the grid has."""
        return self.per_record + 1

    def find_steps(self, numbers: Floats) -> Floats:
        """Return (n,) steps from the lower bound to each of n numbers, cut to the bounds and rounded; NaN stays."""
        return np.asarray(np.clip(np.floor((numbers - self.low) / self.step + 0.5), 0, self.per_record))

    def add_to_slots(self, table: Integers, places: Places, entries: Places, records: Integers) -> None:
        """Add records to (n, 2) counts of places by slots, in steps; `entries` are their steps from the lower bound.

        A count is cut to 2**60 by the number of places, which depends on public facts alone. A cell has at most 10**9 records of less than
        2**16 steps, and a place less than 2**16 + 1 cells, so that no sum wraps around before.
        """
        above = entries.astype(np.int64)
        for slot, steps in enumerate((self.per_record - above, above)):
            np.add.at(table[:, slot], places, steps * records)
        np.minimum(table, MOST_SUM // len(table), out=table)
