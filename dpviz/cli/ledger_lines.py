"""What the ledger holds, in words and as JSON."""

from __future__ import annotations

from typing import Any

from dpviz.privacy.accounts import Account, Amount, Entry
from dpviz.publishing.publish import amount_text

Facts = dict[str, Any]


def account_facts(account: Account) -> Facts:
    """An account for JSON; amounts are exact fractions as text."""
    terms = account.terms
    return {
        "name": account.name,
        "unit": terms.unit,
        "person": terms.person if terms.unit == "person" else None,
        "neighbours": terms.neighbours,
        "currency": terms.currency,
        "cap": _exact(terms.limit),
        "spent": _exact(account.spent),
        "left": _exact(account.left),
        "draws": account.draws,
        "created": account.created,
        "truth_seen": account.truth_seen,
    }


def _exact(amount: Amount) -> dict[str, str]:
    return {name: str(value) for name, value in amount.items()}


def account_line(account: Account) -> str:
    """An account for a person."""
    seen = "; the truth was looked at" if account.truth_seen else ""
    spent, left = amount_text(account.spent), amount_text(account.left)
    terms = account.terms
    unit = f"one person ({terms.person_text})" if terms.unit == "person" else f"one {terms.unit}"
    return f"{account.name}: {draws(account)}, spent {spent}, left {left}; {unit}, {terms.neighbours}{seen}"


def entry_facts(entry: Entry) -> Facts:
    """A draw for JSON."""
    return {
        "id": entry.id,
        "time": entry.time,
        "mechanism": entry.mechanism,
        "budget": str(entry.budget),
        "purpose": entry.purpose,
        "contributions": entry.contributions,
        "published": entry.published,
    }


def entry_line(entry: Entry) -> str:
    """A draw for a person."""
    published = f", published as {entry.published}" if entry.published else ""
    return f"  {entry.id}  {entry.time}  {entry.mechanism}  {entry.budget}  {entry.purpose}{published}"


def kept_line(name: str, entry: int) -> str:
    """A draw whose release is kept until it is published, for a person."""
    return f"Draw {entry} of {name!r} is paid for and kept until it is published: dpviz release CONFIG --paid {entry} publishes it."


def draws(account: Account) -> str:
    """How many draws there were."""
    return f"{account.draws:,} draw{'' if account.draws == 1 else 's'}"
