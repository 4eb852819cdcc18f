"""Accounts: the terms under which a dataset's privacy loss is added up, the loss so far, and the cost of one more draw.

All amounts are exact fractions. A *draw* is one run of a mechanism on the dataset, whether its output is published or only looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction

from dpviz.amounts import format_budget
from dpviz.errors import BudgetError, RefusedError, SettingError, check_choice
from dpviz.privacy.budget import LARGEST, ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.series import Series
from dpviz.space.periods import check_name

Amount = dict[str, Fraction]
"""Exact numbers by name: {"epsilon": ...}, {"epsilon": ..., "delta": ...} or {"rho": ...}."""

UNITS = ("record", "person", "trip")
LONGEST_TEXT = 120
_LARGEST_DENOMINATOR, _LARGEST_SUM_DENOMINATOR = 10**100, 10**4000
_KINDS: dict[tuple[str, ...], type[PureBudget | ApproxBudget | ZcdpBudget]] = {
    ("epsilon",): PureBudget,
    ("epsilon", "delta"): ApproxBudget,
    ("rho",): ZcdpBudget,
}


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of a dataset's account: chosen when it is opened, fixed by its first draw.

    Attributes:
        unit: what is protected: "record", "person" or "trip".
        neighbours: how two neighbouring inputs differ, as receipts state it: "add or remove one" or "replace one".
        cap: the most that all draws together may spend. Its type chooses the currency: a `PureBudget` or `ApproxBudget` counts
            (epsilon, delta), a `ZcdpBudget` counts rho.
        person: for the unit "person", the column whose values identify persons; "" if there is no such column and the curator
            vouches for the grouping by person; None if an older version opened the account without noting it. "" for other units.
            The most records per person are not part of the terms: they may differ between draws, and each draw protects everything
            that a person contributed to it.
        series: releases for one period after another, each of which may spend its own part of the cap; None for an account whose draws
            all spend from one cap.

    Raises:
        SettingError: the unit is unknown, or not one that the series protects; neighbours or person is not a short text; or a person is
            given for another unit.
        BudgetError: the cap is not a budget.

    >>> terms = Terms(unit="record", neighbours="add or remove one", cap=PureBudget(2))
    >>> terms.currency, exact_text(terms.limit)
    ('epsilon, delta', 'epsilon 2, delta 0')
    """

    unit: str
    neighbours: str
    cap: Budget
    person: str | None = ""
    series: Series | None = None

    def __post_init__(self) -> None:
        check_choice(self.unit, UNITS, "unit")
        require_short_text(self.neighbours, "neighbours")
        if self.person != "":
            if self.unit != "person":
                raise SettingError("A column of persons is possible for the unit 'person' only.")
            if self.person is not None:
                require_short_text(self.person, "The name of the column of persons")
        amount_of(self.cap)
        if self.series is not None:
            self.series.check_unit(self.unit)

    @property
    def currency(self) -> str:
        """The names of the amounts that are added up: "epsilon, delta" or "rho"."""
        return ", ".join(self.limit)

    @property
    def limit(self) -> Amount:
        """The cap in its currency: exact epsilon and delta, or rho."""
        parts = amount_of(self.cap)
        return parts if "rho" in parts else {"epsilon": parts["epsilon"], "delta": parts.get("delta", Fraction(0))}

    @property
    def share(self) -> Amount:
        """The most that one period of the series may spend, exact; the cap without a series."""
        return self.limit if self.series is None else self.series.share_of(self.limit)

    def cost(self, budget: Budget) -> Amount:
        """The cost of a draw in this account's currency. In rho, a pure epsilon costs epsilon**2 / 2.

        Args:
            budget: the whole budget of the draw.

        Returns:
            Exact epsilon and delta, or rho.

        Raises:
            RefusedError: the budget cannot be converted exactly to this currency.
            BudgetError: `budget` is not a budget.

        Source:
            Basic composition: Dwork, Roth, 2014, Theorem 3.16. Rho: Bun, Steinke, TCC 2016, Lemma 1.7 and Proposition 1.4.
        """
        parts = amount_of(budget)
        if "rho" in self.limit:
            if isinstance(budget, ApproxBudget) and budget.delta:
                here = format_budget({"rho": budget.to_zcdp().rho})
                raise RefusedError(
                    "This dataset's ledger counts rho, which (epsilon, delta) does not bound: use a ZcdpBudget, that is rho alone"
                    f" (ApproxBudget.to_zcdp gives it: here {here}), or a PureBudget, that is epsilon alone."
                )
            return {"rho": parts["rho"] if "rho" in parts else parts["epsilon"] ** 2 / 2}
        if "rho" in parts:
            raise RefusedError(
                "This dataset's ledger counts (epsilon, delta), which rho does not determine before a delta is chosen:"
                " use an ApproxBudget (ZcdpBudget.to_approx gives it) or a PureBudget."
            )
        return {"epsilon": parts["epsilon"], "delta": parts.get("delta", Fraction(0))}

    @property
    def descriptions(self) -> dict[str, str]:
        """Unit, definition of a person, neighbouring relation, currency, cap and series as texts, to be shown and compared."""
        return {
            "unit": self.unit,
            "definition of a person": self.person_text,
            "neighbouring relation": self.neighbours,
            "currency": self.currency,
            "cap": exact_text(self.limit),
            "series": "none" if self.series is None else self.series.describe(),
        }

    @property
    def person_text(self) -> str:
        """A text that says what identifies a person; "-" if the unit is not a person."""
        if self.unit != "person":
            return "-"
        if self.person is None:
            return "not known (an older version did not note it)"
        return f"one value of the column {self.person!r}" if self.person else "what the curator vouches for, without a column"

    def check_period(self, period: str | None) -> None:
        """Refuse a name that is none of a period of the series, and a period without a series.

        Raises:
            SettingError: it is refused.
        """
        if self.series is not None and period is None:
            raise SettingError(f"These data are released in a series: say which {self.series.period} pays.")
        if self.series is None and period is not None:
            raise SettingError("These data are not released in a series: they have one cap, and no period pays from it.")
        if self.series is not None and period is not None:
            check_name(period, self.series.period)

    def take_over_person(self, terms: Terms) -> Terms:
        """These terms, with the definition of a person of `terms` if an older version did not note it."""
        return replace(self, person=terms.person) if self.person is None and terms.unit == self.unit else self


@dataclass(frozen=True, kw_only=True)
class Account:
    """The state of one dataset's account at the time it was read from the ledger.

    Attributes:
        name: the name under which the curator first opened it.
        terms: unit, neighbours and cap.
        spent: exact epsilon and delta, or rho, of all draws together.
        draws: the number of draws.
        created: when it was opened, UTC, ISO 8601.
        truth_seen: whether figures made from the true data were looked at, through this account or before it existed.
        persons_searched: whether distinct values of columns were counted, to find persons.
        spent_by_period: of a series, the same by the names of the periods that were paid for; their sum is `spent`.

    >>> terms = Terms(unit="record", neighbours="add or remove one", cap=PureBudget(2))
    >>> spent = {"epsilon": Fraction(1, 2), "delta": Fraction(0)}
    >>> account = Account(name="walks", terms=terms, spent=spent, draws=1, created="2026-01-01T00:00:00+00:00", truth_seen=False)
    >>> exact_text(account.left), exact_text(account.after(PureBudget(1)))
    ('epsilon 3/2, delta 0', 'epsilon 3/2, delta 0')
    """

    name: str
    terms: Terms
    spent: Amount
    draws: int
    created: str
    truth_seen: bool
    persons_searched: bool = False
    spent_by_period: Mapping[str, Amount] = field(default_factory=dict)

    @property
    def left(self) -> Amount:
        """The remaining budget: the cap minus what is spent, exact; of a series, what a period has that was not paid for yet, if any."""
        if self.terms.series is None:
            return {name: limit - self.spent[name] for name, limit in self.terms.limit.items()}
        is_full = len(self.spent_by_period) >= self.terms.series.periods
        return dict.fromkeys(self.terms.limit, Fraction(0)) if is_full else self.terms.share

    def spent_in(self, period: str | None) -> Amount:
        """What is spent in a period of the series, exact; without a series and a period, what is spent in all."""
        return self.spent if period is None else dict(self.spent_by_period.get(period, dict.fromkeys(self.terms.limit, Fraction(0))))

    def left_in(self, period: str | None) -> Amount:
        """The remaining budget of a period of the series, exact; without a series and a period, that of the account."""
        spent = self.spent_by_period.get(period or "")
        return self.left if spent is None else {name: share - spent[name] for name, share in self.terms.share.items()}

    def paying(self, budget: Budget, period: str | None = None) -> Account:
        """This account after one more draw. Nothing is recorded.

        Args:
            budget: the whole budget of that draw.
            period: of a series, the name of the period that pays; None without one.

        Raises:
            RefusedError: as for `after`.
            SettingError: as for `after`.
            BudgetError: as for `after`.
        """
        spent, by_period = self.after(budget, period), dict(self.spent_by_period)
        if period is not None:
            before = self.spent_in(period)
            by_period[period] = {name: before[name] + part for name, part in self.terms.cost(budget).items()}
        return replace(self, spent=spent, draws=self.draws + 1, spent_by_period=by_period)

    def after(self, budget: Budget, period: str | None = None) -> Amount:
        """The total that would be spent after one more draw. Nothing is recorded.

        Args:
            budget: the whole budget of that draw.
            period: of a series, the name of the period that pays; None without one.

        Returns:
            Exact epsilon and delta, or rho.

        Raises:
            RefusedError: the sum would exceed the cap, or a period's share of it (the text states the remaining budget), the series has no
                further period, the sum would have more digits than can be stored, or the budget cannot be converted to the account's
                currency.
            SettingError: a series without a period's name, or the other way round.
            BudgetError: `budget` is not a budget.
        """
        self._check_period(period)
        cost, left = self.terms.cost(budget), self.left_in(period)
        spent = {name: self.spent[name] + part for name, part in cost.items()}
        if any(part > left[name] for name, part in cost.items()):
            cost_text, left_text, limit_text = (format_budget(amount, zero_delta=True) for amount in (cost, left, self.terms.share))
            owner = f"'{self.name}'" if period is None else f"{period} in '{self.name}'"
            raise RefusedError(
                f"The cap of {owner} would be exceeded: the draw would spend {cost_text}; left: {left_text} (of {limit_text})."
            )
        if any(part.denominator > _LARGEST_SUM_DENOMINATOR for part in spent.values()):  # Python writes no number of more than 4,300 digits
            raise RefusedError(f"With this budget the sum for '{self.name}' has too many digits to store: use a budget with fewer digits.")
        return spent

    def _check_period(self, period: str | None) -> None:
        """Refuse a period that the terms refuse, and one beyond the last of the series."""
        self.terms.check_period(period)
        series = self.terms.series
        if series is not None and period not in self.spent_by_period and len(self.spent_by_period) >= series.periods:
            raise RefusedError(
                f"The series '{self.name}' has {series.periods} {series.period}s, and all are paid for: {period} would be one more."
            )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One draw that was paid for. A crash after the payment may have prevented the draw itself.

    Attributes:
        id: its number in the ledger.
        time: when it was paid, UTC, ISO 8601, by this computer's clock. Nothing depends on it.
        mechanism: the mechanism's key.
        budget: the whole budget given to the mechanism.
        purpose: "draw" (to look at) or "release" (to publish).
        contributions: the most records per unit that were counted.
        published: id of the release that was published from this draw; None if none was.
        period: of a series, the name of the period that paid; None without one.

    >>> Entry(
    ...     id=1,
    ...     time="2026-01-01T00:00:00+00:00",
    ...     mechanism="quadtree",
    ...     budget=PureBudget(1),
    ...     purpose="draw",
    ...     contributions=1,
    ...     published=None,
    ... ).budget
    PureBudget(epsilon=Fraction(1, 1))
    """

    id: int
    time: str
    mechanism: str
    budget: Budget
    purpose: str
    contributions: int
    published: str | None
    period: str | None = None


def exact_text(amount: Amount) -> str:
    """An amount as the exact text that the ledger and the manifest store.

    >>> exact_text({"epsilon": Fraction(3, 10), "delta": Fraction(0)})
    'epsilon 3/10, delta 0'
    """
    return ", ".join(f"{name} {value}" for name, value in amount.items())


def exact_amount(text: str) -> Amount:
    """The amount in a text that `exact_text` made.

    Raises:
        ValueError: the text does not have that form.

    >>> exact_amount("rho 1/2")
    {'rho': Fraction(1, 2)}
    """
    return {name: Fraction(value) for name, value in (part.split(" ") for part in text.split(", "))}


def amount_of(budget: Budget) -> Amount:
    """A budget's numbers by name: epsilon, epsilon and delta, or rho.

    Raises:
        BudgetError: it is not a budget, its fields were altered to impossible values, or it has a denominator above 10**100.
    """
    if not isinstance(budget, Budget):
        raise BudgetError("A PureBudget, an ApproxBudget or a ZcdpBudget is needed.")
    amount: Amount = {field.name: getattr(budget, field.name, None) for field in fields(budget)}  # type: ignore[misc]
    possible = (type(value) is Fraction and (0 <= value < 1 if name == "delta" else 0 < value <= LARGEST) for name, value in amount.items())
    if not all(possible):
        raise BudgetError("The budget was altered: its parts must be exact fractions above 0 (delta from 0 to below 1).")
    if any(value.denominator > _LARGEST_DENOMINATOR for value in amount.values()):
        raise BudgetError("The budget has too many digits to be added up exactly: a denominator may have 100 digits; round it.")
    return amount


def budget_of(amount: Amount) -> Budget:
    """The budget with these numbers: the inverse of `amount_of`.

    Raises:
        KeyError: no budget has these names.
        BudgetError: a number is out of range.
    """
    return _KINDS[tuple(amount)](**amount)


def require_short_text(text: object, name: str) -> str:
    """The text without blanks around it, if it is one printable line of 1 to 120 characters.

    Args:
        text: the value to check.
        name: the name of the value in the error.

    Raises:
        SettingError: the value is anything else.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_TEXT or not text.isprintable():
        raise SettingError(f"{name} must be one line of text, 1 to {LONGEST_TEXT} characters.")
    return text.strip()
