"""The subcommand `dpviz ledger`: accounts and entries of the ledger, as text and as JSON."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from dpviz.amounts import format_budget
from dpviz.cli.console import give
from dpviz.errors import SettingError, did_you_mean
from dpviz.privacy.accounts import Account, Amount, Entry, amount_of
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.kept import kept_draws

Facts = dict[str, Any]


def run_ledger(arguments: Namespace) -> None:
    """Print all accounts, or one account with its entries."""
    ledger = Ledger()
    if arguments.name is None:
        accounts = ledger.accounts()
        listed = [account_facts(account) for account in accounts]
        kept = [(account.name, entry.id) for account, entry in kept_draws(ledger)]
        lines = [account_line(account) for account in accounts] or ["The ledger is empty."]
        lines += [kept_line(name, entry) for name, entry in kept]
        facts: Facts = {"ledger": str(ledger.path), "datasets": listed, "kept": [{"dataset": name, "entry": entry} for name, entry in kept]}
        give(facts, lines, as_json=arguments.json)
        return
    if arguments.name not in (names := [account.name for account in ledger.accounts()]):
        raise SettingError(
            f"The ledger has no dataset of that name; it has: {'; '.join(names) or 'none yet'}.{did_you_mean(arguments.name, names)}"
        )
    account, entries = ledger.account(arguments.name), ledger.entries(arguments.name)
    kept_entries = [entry.id for owner, entry in kept_draws(ledger) if owner.name == account.name]
    facts = {**account_facts(account), "entries": [entry_facts(entry) for entry in entries], "kept": kept_entries}
    lines = [account_line(account), *map(entry_line, entries), *(kept_line(account.name, entry) for entry in kept_entries)]
    give(facts, lines, as_json=arguments.json)


def account_facts(account: Account) -> Facts:
    """Convert an account to JSON values; amounts are exact fractions as text."""
    terms = account.terms
    return {
        "name": account.name,
        "unit": terms.unit,
        "person": terms.person if terms.unit == "person" else None,
        "neighbours": terms.neighbours,
        "currency": terms.currency,
        "cap": exact_texts(terms.limit),
        "spent": exact_texts(account.spent),
        "left": exact_texts(account.left),
        "draws": account.draws,
        "created": account.created,
        "truth_seen": account.truth_seen,
    }


def exact_texts(amount: Amount) -> dict[str, str]:
    """Write amounts as exact fractions, for JSON."""
    return {name: str(value) for name, value in amount.items()}


def account_line(account: Account) -> str:
    """Format an account as one line of text."""
    seen = "; the truth was looked at" if account.truth_seen else ""
    spent, left = format_budget(account.spent), format_budget(account.left)
    terms = account.terms
    unit = f"one person ({terms.person_text})" if terms.unit == "person" else f"one {terms.unit}"
    return f"{account.name}: {draws(account)}, spent {spent}, left {left}; {unit}, {terms.neighbours}{seen}"


def entry_facts(entry: Entry) -> Facts:
    """Convert an entry of the ledger to JSON values."""
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
    """Format an entry of the ledger as one line of text."""
    published = f", published as {entry.published}" if entry.published else ""
    return f"  {entry.id}  {entry.time}  {entry.mechanism}  {format_budget(amount_of(entry.budget))}  {entry.purpose}{published}"


def kept_line(name: str, entry: int) -> str:
    """Format, as one line of text, an entry whose release is kept until it is published."""
    return f"Draw {entry} of {name!r} is paid for and kept until it is published: dpviz release CONFIG --paid {entry} publishes it."


def draws(account: Account) -> str:
    """Format the number of draws: "1 draw", "2 draws"."""
    return f"{account.draws:,} draw{'' if account.draws == 1 else 's'}"
