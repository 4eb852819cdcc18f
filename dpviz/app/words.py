"""How amounts are written on screen."""

from __future__ import annotations

from fractions import Fraction

from dpviz.amounts import format_budget_symbols
from dpviz.privacy.accounts import Amount, amount_of
from dpviz.privacy.budget import Budget

AT_ONCE = (
    "Ordered by released count, so the intervals are those that hold for all {numbers:,} numbers of the release at once, with a"
    " probability of 95 %: one that was chosen as the largest lies in its interval, too."
)
CHOSEN_BEFOREHAND = "It holds for what was chosen without a look at the counts, not for the largest of many."


def in_words(epsilon: Fraction | float, delta: Fraction | float = 0) -> str:
    """A budget as it is written on screen; delta only where there is one.

    >>> in_words(Fraction(1, 2)), in_words(0.5, 1e-6)
    ('ε 0.5', 'ε 0.5, δ 1e-6')
    """
    return format_budget_symbols({"epsilon": epsilon, "delta": delta})


def amount_words(amount: Amount) -> str:
    """An amount of the ledger as it is written on screen.

    >>> amount_words({"rho": Fraction(1, 8)}), amount_words({"epsilon": Fraction(1), "delta": Fraction(0)})
    ('ρ 0.125', 'ε 1')
    """
    return format_budget_symbols(amount)


def budget_words(budget: Budget) -> str:
    """A budget of any kind as it is written on screen."""
    return amount_words(amount_of(budget))
