"""The subcommand `dpviz ledger`: a new ledger, and accounts and entries of one, as text and as JSON."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from dpviz.amounts import format_budget
from dpviz.cli.console import give, say
from dpviz.errors import RefusedError, SettingError, did_you_mean
from dpviz.privacy.accounts import Account, Amount, Entry, amount_of
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.kept import describe_interrupted, kept_draws, remove_interrupted
from dpviz.publishing.publish import describe_made

Facts = dict[str, Any]


def run_ledger(arguments: Namespace) -> None:
    """Make a new ledger, or print all accounts of one, or one account with its entries.

    Raises:
        RefusedError: there is no ledger, or it cannot be trusted.
        SettingError: a new ledger has no place, or the ledger has no such dataset.
    """
    if arguments.action == "new":
        _make(arguments.name, as_json=arguments.json)
        return
    ledger = Ledger()
    if not ledger.exists():
        raise RefusedError(f"There is no ledger {ledger.path} yet: the first paid release makes it. DPVIZ_LEDGER can name another one.")
    lost = remove_interrupted(ledger)
    for account, entry in lost:
        say(describe_interrupted(account, entry))
    if arguments.name is None:
        accounts = ledger.accounts()
        listed = [account_facts(account) for account in accounts]
        kept = kept_draws(ledger)
        lines = [account_line(account) for account in accounts] or ["The ledger is empty."]
        lines += [kept_line(account.name, entry) for account, entry in kept]
        facts: Facts = {
            "ledger": str(ledger.path),
            "datasets": listed,
            "kept": [{"dataset": account.name, "entry": entry.id} for account, entry in kept],
            "interrupted": [{"dataset": account.name, "entry": entry.id} for account, entry in lost],
        }
        give(facts, [f"Ledger: {ledger.path}", *lines], as_json=arguments.json)
        return
    if arguments.name not in (names := [account.name for account in ledger.accounts()]):
        raise SettingError(
            f"The ledger has no dataset of that name; it has: {'; '.join(names) or 'none yet'}.{did_you_mean(arguments.name, names)}"
        )
    account, entries = ledger.account(arguments.name), ledger.entries(arguments.name)
    kept_entries = [entry for owner, entry in kept_draws(ledger) if owner.name == account.name]
    kept_ids = [entry.id for entry in kept_entries]
    facts = {
        **account_facts(account),
        "ledger": str(ledger.path),
        "entries": [entry_facts(entry) for entry in entries],
        "kept": kept_ids,
        "interrupted": [entry.id for owner, entry in lost if owner.name == account.name],
    }
    lines = [account_line(account), *(entry_line(entry, is_kept=entry.id in kept_ids) for entry in entries)]
    lines += [kept_line(account.name, entry) for entry in kept_entries]
    give(facts, lines, as_json=arguments.json)


def _make(path: str | None, *, as_json: bool) -> None:
    """Make a new, empty ledger, and say how it is used."""
    if not path:
        raise SettingError("Say where the new ledger is to be: dpviz ledger new PATH")
    ledger = Ledger.new(path)
    lines = [f"Made the ledger {ledger.path}, which only you can read."]
    if os.environ.get("DPVIZ_LEDGER") is None or Ledger().path != ledger.path:
        lines.append(f"To use it: export DPVIZ_LEDGER={shlex.quote(str(ledger.path))}")
    give(ledger_facts(ledger), lines, as_json=as_json)


def ledger_facts(ledger: Ledger) -> Facts:
    """Describe the ledger that a command used, and whether the command made it, as JSON values."""
    return {"ledger": str(ledger.path), "ledger_made": ledger.made}


def note_look(ledger: Ledger, fingerprints: Iterable[str], *, searches: bool = False) -> None:
    """Record that true numbers of data are looked at, or only that their columns are searched for persons.

    Args:
        ledger: if this makes it, the curator is told.
        fingerprints: of the data.
        searches: whether distinct values of columns are counted, to find persons, and nothing else is shown.

    Raises:
        RefusedError: the ledger cannot record it: show nothing then.
    """
    was_made = ledger.made
    note = ledger.note_persons_searched if searches else ledger.note_truth_seen
    note(fingerprints)
    if ledger.made and not was_made:
        say(describe_made(ledger))


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
        "persons_searched": account.persons_searched,
        "series": None if terms.series is None else asdict(terms.series),
        "spent_by_period": {period: exact_texts(amount) for period, amount in account.spent_by_period.items()},
    }


def exact_texts(amount: Amount) -> dict[str, str]:
    """Write amounts as exact fractions, for JSON."""
    return {name: str(value) for name, value in amount.items()}


def account_line(account: Account) -> str:
    """Format an account as one line of text."""
    seen = "; the truth was looked at" if account.truth_seen else ""
    seen += "; distinct values of columns were counted, to find persons" if account.persons_searched else ""
    spent, left = format_budget(account.spent), format_budget(account.left)
    terms = account.terms
    if terms.series is not None:
        paid = ", ".join(sorted(account.spent_by_period)) or "none yet"
        left = f"{left} in each further {terms.series.period}; a series of {terms.series.describe()}, paid: {paid}"
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
        "period": entry.period,
    }


def entry_line(entry: Entry, *, is_kept: bool) -> str:
    """Format an entry of the ledger as one line of text. A release that is neither published nor kept was lost, or is being made."""
    state = f", published as {entry.published}" if entry.published else ""
    if entry.purpose == "release" and not entry.published and not is_kept:
        state = ", neither published nor kept"
    period = "" if entry.period is None else f"{entry.period}  "
    return f"  {entry.id}  {entry.time}  {period}{entry.mechanism}  {format_budget(amount_of(entry.budget))}  {entry.purpose}{state}"


def kept_line(name: str, entry: Entry) -> str:
    """Format, as one line of text, an entry whose release is kept: until it is published, or because the process ended just then."""
    command = f"dpviz release CONFIG --paid {entry.id}"
    if entry.published:
        return f"Draw {entry.id} of {name!r} is published and still kept: {command} writes it once more, into another folder, at no cost."
    return f"Draw {entry.id} of {name!r} is paid for and kept until it is published: {command} publishes it."


def draws(account: Account) -> str:
    """Format the number of draws: "1 draw", "2 draws"."""
    return f"{account.draws:,} draw{'' if account.draws == 1 else 's'}"
