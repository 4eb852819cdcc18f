"""How much one unit changes the numbers that are measured together, in exact fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED
from dpviz.privacy.noise import gaussian_variance, laplace_variance
from dpviz.privacy.receipt import Step


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How one unit changes whole numbers that are measured together, such as the counts of one level of a hierarchy.

    A unit's m records change them by a sum of m vectors, each with `changes` entries of 1 or -1. By the triangle inequality, this sum has
    an absolute sum of at most m `changes`, and a Euclidean norm of at most m sqrt(`changes`). Both are reached by m records that change
    the same numbers, such as m records in one cell, or m trips of one person in one pair. The nodes of a level share no record, so that
    the same bounds hold for each level, and for any nodes of different levels of which none lies in another.

    If at most b of the m records lie in each slot, over all places, a unit adds x_pc to the counts of places p and slots c, with sums over
    p of at most b and a sum of at most m in all. As x is at least 0, the sum of squares is at most that of (sum over p of x_pc)**2 over
    slots, a convex function of sums of at most b that add up to at most m: it is largest where as many as possible are b, that is
    floor(m / b) b**2 + (m mod b)**2. Records that replace others change the counts by y - x with x and y at least 0, so that squares are at
    most those of x and of y together. The sum of absolute changes is m all the same: epsilon gains nothing from b.

    If a record is a number whose parts a and w - a are added to two slots of its place, w whole, it changes them by w in all, and their
    squares by at most w**2, as a and w - a are at least 0: m of them by at most m w, and (m w)**2, and twice that if they replace others.

    Attributes:
        contributions: the bound m on the records of one unit.
        neighbours: "add_remove" if a unit's m records are added or removed, "bounded" if they are replaced by at most m others.
        ones: how many of the numbers a record that comes or goes changes, by one each: 1 for counts of disjoint nodes.
        most: the bound b on those of a unit's records that lie in one slot, over all places; None for m. It needs `ones` = 1.
        weight: how much one record adds in all, w: 1 for counts.

    >>> replaced = Sensitivity(contributions=3, neighbours="bounded")
    >>> replaced.total, replaced.squares
    (6, 18)
    >>> by_hour = Sensitivity(contributions=5, most=2)
    >>> by_hour.total, by_hour.squares
    (5, 9)
    """

    contributions: int
    neighbours: str = ADD_REMOVE
    ones: int = 1
    most: int | None = None
    weight: int = 1

    @property
    def changes(self) -> int:
        """How many of the numbers one record changes, by one each: a replaced one counts twice."""
        return self.ones * (2 if self.neighbours == BOUNDED else 1)

    @property
    def total(self) -> int:
        """Largest sum of absolute changes by one unit, for Laplace noise: m w `changes`."""
        return self.contributions * self.weight * self.changes

    @property
    def squares(self) -> int:
        """Largest sum of squared changes by one unit, for Gaussian noise: (m w)**2 `changes`, and less if slots hold at most b < m."""
        most = min(self.contributions, self.most or self.contributions)
        full, rest = divmod(self.contributions, most)
        return (full * most**2 + rest**2) * self.weight**2 * self.changes

    @property
    def changes_by_one(self) -> int | None:
        """How many of the numbers one unit changes, if it is by one each; None if it can be by more."""
        return self.changes if self.contributions * self.weight == 1 else None

    def scale(self, part: Fraction, *, gaussian: bool) -> Fraction:
        """Return the parameter of the noise for a part of the budget, which receipts call its scale.

        That is the scale of Laplace noise, in counts; of Gaussian noise it is sigma squared, in squared counts.
        """
        return self.squares / (2 * part) if gaussian else self.total / part

    def variance(self, part: Fraction, *, gaussian: bool) -> float:
        """Return the variance of the noise for a part of epsilon or of rho."""
        return (gaussian_variance if gaussian else laplace_variance)(self.scale(part, gaussian=gaussian))

    def step(self, part: Fraction, *, gaussian: bool, **facts: Any) -> Step:
        """Make the step of a receipt that spends a part of the budget on these numbers; `facts` are its other fields.

        Of Gaussian noise its sensitivity and its scale are squares: `squares` and sigma squared.
        """
        return Step(
            amount=part,
            sensitivity=Fraction(self.squares if gaussian else self.total),
            noise="discrete Gaussian" if gaussian else "discrete Laplace",
            scale=self.scale(part, gaussian=gaussian),
            **facts,
        )
