"""Accounts: the terms a dataset's privacy is counted in, what it has lost, and what a draw would add, all exact."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction

from dpviz.amounts import format_budget
from dpviz.errors import BudgetError, RefusedError, SettingError
from dpviz.privacy.budget import LARGEST, ApproxBudget, Budget, PureBudget, ZcdpBudget

Amount = dict[str, Fraction]

UNITS = ("record", "person", "trip")
LONGEST_TEXT = 120
_FINEST, _FINEST_SUM = 10**100, 10**4000
_KINDS: dict[tuple[str, ...], type[PureBudget | ApproxBudget | ZcdpBudget]] = {
    ("epsilon",): PureBudget,
    ("epsilon", "delta"): ApproxBudget,
    ("rho",): ZcdpBudget,
}


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a dataset's privacy is counted in: chosen when its account is opened, fixed by its first draw.

    Attributes:
        unit: whose presence is hidden: "record", "person" or "trip".
        neighbours: what may change, in a receipt's words: "add or remove one", "replace one".
        cap: what may be spent in all. Its kind chooses the currency: a `PureBudget` or `ApproxBudget` counts (epsilon, delta),
            a `ZcdpBudget` counts rho.
        person: what one person is, for the unit "person": the column whose values are persons; "" where no column says it and the
            curator vouches for it; None in an account that an older version opened without noting it. "" for other units. How many
            records of a person are counted is no part of it: whatever the bound of a draw is, all that a person has is protected.

    Raises:
        SettingError: another unit, or neighbours or a person that are no short text, or a person where the unit is another one.
        BudgetError: a cap that is no budget.
    """

    unit: str
    neighbours: str
    cap: Budget
    person: str | None = ""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SettingError(f"unit must be one of: {', '.join(UNITS)}.")
        checked_text(self.neighbours, "neighbours")
        if self.person != "":
            if self.unit != "person":
                raise SettingError("A column of persons has a meaning for the unit 'person' only.")
            if self.person is not None:
                checked_text(self.person, "The name of the column of persons")
        amount_of(self.cap)

    @property
    def currency(self) -> str:
        """What is added up: "epsilon, delta" or "rho"."""
        return ", ".join(self.limit)

    @property
    def limit(self) -> Amount:
        """The cap in its currency: exact epsilon and delta, or rho."""
        parts = amount_of(self.cap)
        return parts if "rho" in parts else {"epsilon": parts["epsilon"], "delta": parts.get("delta", Fraction(0))}

    def cost(self, budget: Budget) -> Amount:
        """What a draw with `budget` adds, in this currency; pure epsilon counts epsilon**2 / 2 in rho.

        Raises:
            RefusedError: the budget has no exact price in this currency.

        Source:
            Basic composition: Dwork, Roth, 2014, Theorem 3.16. Rho: Bun, Steinke, TCC 2016, Lemma 1.7 and Proposition 1.4.
        """
        parts = amount_of(budget)
        if "rho" in self.limit:
            if parts.get("delta"):
                raise RefusedError(
                    "This dataset's ledger counts rho, which (epsilon, delta) does not bound: draw with a ZcdpBudget"
                    " (ApproxBudget.to_zcdp gives it) or a PureBudget."
                )
            return {"rho": parts["rho"] if "rho" in parts else parts["epsilon"] ** 2 / 2}
        if "rho" in parts:
            raise RefusedError(
                "This dataset's ledger counts (epsilon, delta), which rho does not fix before a delta is chosen:"
                " draw with an ApproxBudget (ZcdpBudget.to_approx gives it) or a PureBudget."
            )
        return {"epsilon": parts["epsilon"], "delta": parts.get("delta", Fraction(0))}

    @property
    def described(self) -> dict[str, str]:
        """Unit, what a person is, neighbouring relation, currency and cap, to be compared and shown."""
        return {
            "unit": self.unit,
            "definition of a person": self.person_text,
            "neighbouring relation": self.neighbours,
            "currency": self.currency,
            "cap": exact_text(self.limit),
        }

    @property
    def person_text(self) -> str:
        """What a person is, in words; "-" where the unit is another one."""
        if self.unit != "person":
            return "-"
        if self.person is None:
            return "not known (an older version did not note it)"
        return f"one value of the column {self.person!r}" if self.person else "what the curator vouches for, without a column"

    def adopted(self, terms: Terms) -> Terms:
        """These terms; where an older version did not note what a person is, with the definition that `terms` name."""
        return replace(self, person=terms.person) if self.person is None and terms.unit == self.unit else self


@dataclass(frozen=True, kw_only=True)
class Account:
    """One dataset as the ledger knew it when asked.

    Attributes:
        name: what the curator called it first.
        terms: unit, neighbours and cap.
        spent: exact epsilon and delta, or rho, of all draws together.
        draws: how many there were.
        created: when it was opened, UTC, ISO 8601.
        truth_seen: whether figures made from the true data were looked at, through this account or before there was one.
    """

    name: str
    terms: Terms
    spent: Amount
    draws: int
    created: str
    truth_seen: bool

    @property
    def left(self) -> Amount:
        """The cap less what is spent, exact."""
        return {name: limit - self.spent[name] for name, limit in self.terms.limit.items()}

    def after(self, budget: Budget) -> Amount:
        """What would be spent after a draw with `budget`; nothing is spent by asking.

        Raises:
            RefusedError: the cap would be passed, the text says what is left; the budget does not fit the currency; or the sum
                would have more digits than can be written.
        """
        cost = self.terms.cost(budget)
        spent = {name: self.spent[name] + part for name, part in cost.items()}
        if any(part > self.terms.limit[name] for name, part in spent.items()):
            wanted, left, limit = (format_budget(amount, zero_delta=True) for amount in (cost, self.left, self.terms.limit))
            raise RefusedError(f"The cap of '{self.name}' would be passed: the draw would spend {wanted}; left: {left} (of {limit}).")
        if any(part.denominator > _FINEST_SUM for part in spent.values()):  # Python writes no number of more than 4,300 digits
            raise RefusedError(f"The draws of '{self.name}' no longer add up exactly with this budget: give one with fewer digits.")
        return spent


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One draw that was paid for, whether or not it was then made.

    Attributes:
        id: its number in the ledger.
        time: when, UTC, ISO 8601, by this computer's clock; nothing depends on it.
        mechanism: the mechanism's key.
        budget: what was handed to it.
        purpose: "draw" or "release".
        contributions: records per unit at most.
        published: id of the release that was made of it, None as long as there is none.
    """

    id: int
    time: str
    mechanism: str
    budget: Budget
    purpose: str
    contributions: int
    published: str | None


def exact_text(amount: Amount) -> str:
    """An amount as the ledger and the manifest write it, for example "epsilon 3/10, delta 1/100000000"."""
    return ", ".join(f"{name} {value}" for name, value in amount.items())


def exact_amount(text: str) -> Amount:
    """What `exact_text` wrote.

    Raises:
        ValueError: anything else.
    """
    return {name: Fraction(value) for name, value in (part.split(" ") for part in text.split(", "))}


def amount_of(budget: Budget) -> Amount:
    """A budget's own parts: epsilon, epsilon and delta, or rho.

    Raises:
        BudgetError: no budget at all, one that was altered into what no budget can be, or one with more than a hundred digits.
    """
    if not isinstance(budget, Budget):
        raise BudgetError("A PureBudget, an ApproxBudget or a ZcdpBudget is needed.")
    amount: Amount = {field.name: getattr(budget, field.name, None) for field in fields(budget)}  # type: ignore[misc]
    if not all(_is_possible(name, value) for name, value in amount.items()):
        raise BudgetError("The budget was altered: its parts must be exact fractions above 0 (delta from 0 to below 1).")
    if any(value.denominator > _FINEST for value in amount.values()):
        raise BudgetError("The budget has too many digits to be added up exactly: a denominator may have 100 digits; round it.")
    return amount


def budget_of(amount: Amount) -> Budget:
    """The budget that `amount_of` took apart."""
    return _KINDS[tuple(amount)](**amount)


def checked_text(text: object, what: str) -> str:
    """A short line of printable text, without space around it.

    Raises:
        SettingError: anything else.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_TEXT or not text.isprintable():
        raise SettingError(f"{what} must be one line of text, 1 to {LONGEST_TEXT} characters.")
    return text.strip()


def _is_possible(name: str, value: object) -> bool:
    """Whether a part of a budget is what its constructor would have made."""
    if type(value) is not Fraction:
        return False
    return 0 <= value < 1 if name == "delta" else 0 < value <= LARGEST
