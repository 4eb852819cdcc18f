"""What each subcommand does: words in, a result for stdout out; the ledger in words and as JSON."""

from __future__ import annotations

import json
import math
import os
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.amounts import format_budget
from dpviz.cli import check, serve
from dpviz.cli.compare import run_compare
from dpviz.cli.console import DONE, REFUSED, counted_bar, followed, give, say
from dpviz.data.counting.scheduler import Scheduler, scheduler_at
from dpviz.errors import RefusedError, SettingError
from dpviz.evaluation.audits import audit_all, audited
from dpviz.privacy.accounts import Account, Amount, Entry
from dpviz.privacy.audit import AuditPlan
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.config import ReleaseConfig, read_config
from dpviz.publishing.dry_run import Expected, expected
from dpviz.publishing.kept import differences, kept_draws, recovered
from dpviz.publishing.order import Order, Published, Words
from dpviz.publishing.private_data import PrivateData, file_marks, left_out, open_data, open_frame, placed
from dpviz.publishing.publish import publish, write
from dpviz.publishing.toml_tables import SEED_REFUSED

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
    spent, left = format_budget(account.spent), format_budget(account.left)
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


ALL = "all"


def run_app(asked: Namespace) -> int:
    """Start the app; gives its exit code."""
    return serve.serve(port=asked.port, headless=asked.headless, token=not asked.no_token)


def run_release(asked: Namespace) -> None:
    """Publish what a configuration describes, or say what that would cost."""
    if asked.seed is not None:
        raise RefusedError(SEED_REFUSED)
    scheduler = scheduler_at(asked.address, insecure=asked.insecure_address)
    config = read_config(Path(asked.config))
    config = replace(config, data=config.data.counted_by(asked.engine, scheduler))
    words = words_of(config) if asked.output is None else replace(words_of(config), folder=Path(asked.output))
    words.check()
    if asked.paid is not None:
        _give_published(_write_kept(asked.paid, config, words), None, as_json=asked.json)
        return
    say("Reading the data.")
    order, engine = order_of(config, scheduler)
    if engine is not None:
        say(f"Counted by engine {engine}.")
    for told in curator_only(order.data):
        say(f"Curator only: {told}")
    if asked.dry_run:
        found = expected(order.mechanism, order.data, order.budget)
        give({**_dry_facts(order, found), "engine": engine}, _dry_lines(order, found), as_json=asked.json)
        return
    _give_published(publish(order, words, Ledger(), say=say), engine, as_json=asked.json)


def _write_kept(entry: int, config: ReleaseConfig, words: Words) -> Published:
    """Publish a draw that is paid for and kept on the disk, in the words of a configuration; no data are read, nothing is spent.

    Raises:
        SettingError: no such draw is kept, or the configuration describes another one.
    """
    paid = recovered(entry, Ledger())
    other = differences(paid, config)
    if other:
        raise SettingError(f"Draw {entry} was made with another {', '.join(other)}: give the configuration that it was drawn with.")
    say(f"Publishing draw {entry} of {paid.account.name!r} as it was drawn; nothing is spent.")
    return write(paid, words, Ledger(), say=say)


def _give_published(done: Published, engine: str | None, *, as_json: bool) -> None:
    """Say what was published, and where."""
    facts = {
        "folder": str(done.folder),
        "release_id": done.manifest["identity"]["release_id"],
        "files": sorted(path.name for path in done.folder.iterdir()),
        "dataset": account_facts(done.account),
        "engine": engine,
    }
    left = format_budget(done.account.left)
    published = f"Published in {done.folder}."
    try:
        give(facts, [published, f"{done.account.name}: {draws(done.account)}, left {left}."], as_json=as_json)
    except OSError:
        say(f"{published} Nobody reads what more there is to say.")
        raise


def words_of(config: ReleaseConfig) -> Words:
    """What a configuration says about the publication, and where it goes."""
    said, output = config.publication, config.output
    return Words(
        name=said.name,
        curator=said.curator,
        folder=placed(config.base, output.folder),
        description=said.description,
        region=said.region,
        intended_use=said.intended_use,
        formats=output.formats,
    )


def order_of(config: ReleaseConfig, scheduler: Scheduler | None = None) -> tuple[Order, str | None]:
    """What a configuration asks to be drawn, and the engine that counted it; reads the data, leaving out bad rows.

    Raises:
        DpvizError: whatever is wrong with settings, frame or files.
    """
    mechanism, budget = config.mechanism.built(points=config.data.is_points), config.budget.budget()
    frame = open_frame(config)
    opened = followed("counting", lambda watch: open_data(config, frame, bad_rows="drop", watch=watch, scheduler=scheduler))
    for note in opened.notes:
        say(f"Curator only: {note}")
    order = Order(
        data=opened.data,
        mechanism=mechanism,
        budget=budget,
        dataset=config.dataset.name,
        marks=opened.marks,
        cap=config.dataset.cap(),
        person=config.data.person or "",
    )
    return order, opened.engine


def curator_only(data: PrivateData) -> list[str]:
    """What was left out on the way in; true numbers, for the curator's terminal and nothing else."""
    return [*getattr(data, "notes", ()), *filter(None, [left_out(data)])]


def _dry_facts(order: Order, found: Expected) -> Facts:
    levels = [{name: _finite(value) for name, value in row.items()} for row in found.by_level.to_dict("records")]
    receipt = found.receipt
    return {"budget": str(order.budget), "unit": receipt.unit, "neighbours": receipt.neighbours, "levels": levels, "note": found.note}


def _finite(value: Any) -> Any:
    return None if value is None or (isinstance(value, float) and not math.isfinite(value)) else value


def _dry_lines(order: Order, found: Expected) -> list[str]:
    spent = f"Would spend {order.budget}, protecting one {found.receipt.unit} ({found.receipt.neighbours}). Nothing was spent."
    table = found.by_level.dropna(axis=1, how="all")
    shown = table.to_string(index=False, na_rep="-", float_format=lambda number: f"{number:,.3g}")
    return [spent, *shown.splitlines(), found.note]


def run_check(asked: Namespace) -> None:
    """Say what a file is."""
    path = Path(asked.file)
    facts = check.check(path)
    columns = check.repeated(path, facts)
    if columns is not None:
        try:
            _note_look(path)
            facts = check.with_repeated(facts, columns)
            say("Columns were looked at for ids of persons: the ledger records that, and releases of these data will say so.")
        except RefusedError as error:
            say(f"Which columns look like ids of persons is not shown, since that the data were looked at cannot be recorded. {error}")
    give(facts, check.lines(facts), as_json=asked.json)


def _note_look(path: Path) -> None:
    """Note in the ledger, before it is shown, that a file's content was looked at."""
    Ledger().note_seen(file_marks([path]))


def run_audit(asked: Namespace) -> int:
    """Audit one mechanism or all; gives 1 if a declared budget was contradicted."""
    plan = AuditPlan(runs=asked.runs, confidence=asked.confidence, seed=asked.seed)
    known = audited()
    if asked.mechanism not in (ALL, *known):
        raise SettingError(f"There is no such mechanism; choose {ALL}, or one of: {'; '.join(known)}.")
    chosen = known if asked.mechanism == ALL else {asked.mechanism: known[asked.mechanism]}
    with counted_bar(len(chosen), "audit") as step:

        def progress(done: int, total: int, name: str) -> None:  # noqa: ARG001
            step()

        table = audit_all(chosen, plan=plan, progress=progress, processes=min(os.cpu_count() or 1, len(chosen)))
    shown = table[["mechanism", "epsilon", "delta", "lower_bound", "passed"]].to_string(index=False)
    meaning = (
        f"With confidence {asked.confidence:g} in all rows together, epsilon is at least lower_bound. That finds faults; it proves no"
        " privacy."
    )
    give(json.loads(table.to_json(orient="records")), [*shown.splitlines(), meaning], as_json=asked.json)
    return DONE if table["passed"].all() else REFUSED


def run_ledger(asked: Namespace) -> None:
    """Show every account, or one with its draws."""
    ledger = Ledger()
    if asked.name is None:
        accounts = ledger.accounts()
        listed = [account_facts(account) for account in accounts]
        kept = [(account.name, entry.id) for account, entry in kept_draws(ledger)]
        shown = [account_line(account) for account in accounts] or ["The ledger is empty."]
        shown += [kept_line(name, entry) for name, entry in kept]
        facts: Facts = {"ledger": str(ledger.path), "datasets": listed, "kept": [{"dataset": name, "entry": entry} for name, entry in kept]}
        give(facts, shown, as_json=asked.json)
        return
    if asked.name not in (known := [account.name for account in ledger.accounts()]):
        raise SettingError(f"The ledger has no dataset of that name; it has: {'; '.join(known) or 'none yet'}.")
    account, entries = ledger.account(asked.name), ledger.entries(asked.name)
    own = [entry.id for owner, entry in kept_draws(ledger) if owner.name == account.name]
    facts = {**account_facts(account), "entries": [entry_facts(entry) for entry in entries], "kept": own}
    lines = [account_line(account), *map(entry_line, entries), *(kept_line(account.name, entry) for entry in own)]
    give(facts, lines, as_json=asked.json)


COMMANDS: dict[str, Callable[[Namespace], int | None]] = {
    "app": run_app,
    "release": run_release,
    "compare": run_compare,
    "check": run_check,
    "audit": run_audit,
    "ledger": run_ledger,
}


def run(asked: Namespace) -> int:
    """Do what was asked; gives the exit code."""
    return COMMANDS[asked.command](asked) or 0
