"""The subcommands: each takes parsed arguments and prints its result; accounts and entries of the ledger as text and as JSON."""

from __future__ import annotations

import json
import math
import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.amounts import format_budget, format_decimal
from dpviz.cli import check, serve
from dpviz.cli.class_options import ClassOptions
from dpviz.cli.compare import run_compare
from dpviz.cli.console import DONE, REFUSED, give, run_with_bar, say, step_bar
from dpviz.cli.init import run_init
from dpviz.cli.mechanisms import run_mechanisms
from dpviz.cli.paper import run_paper
from dpviz.data.counting.scheduler import Scheduler, scheduler_at
from dpviz.errors import DpvizError, RefusedError, SettingError, did_you_mean
from dpviz.evaluation.audits import audit_all, audit_targets
from dpviz.privacy.accounts import Account, Amount, Entry, amount_of
from dpviz.privacy.audit import AuditPlan
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.config import ReleaseConfig, read_config
from dpviz.publishing.dry_run import ExpectedErrors, compute_expected_errors
from dpviz.publishing.kept import differences, kept_draws, recover
from dpviz.publishing.order import TEXT_NAMES, Order, PublicationTexts, Published
from dpviz.publishing.private_data import file_fingerprints, left_out, open_data, open_frame, resolve_path
from dpviz.publishing.publish import preview_payment, publish, write
from dpviz.publishing.toml_tables import SEED_REFUSED
from dpviz.space.regions import Regions

Facts = dict[str, Any]


def account_facts(account: Account) -> Facts:
    """Convert an account to JSON values; amounts are exact fractions as text."""
    terms = account.terms
    return {
        "name": account.name,
        "unit": terms.unit,
        "person": terms.person if terms.unit == "person" else None,
        "neighbours": terms.neighbours,
        "currency": terms.currency,
        "cap": _exact_texts(terms.limit),
        "spent": _exact_texts(account.spent),
        "left": _exact_texts(account.left),
        "draws": account.draws,
        "created": account.created,
        "truth_seen": account.truth_seen,
    }


def _exact_texts(amount: Amount) -> dict[str, str]:
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


ALL = "all"


def run_app(arguments: Namespace) -> int:
    """Start the app; return its exit code."""
    options = ClassOptions.of(arguments)
    return serve.serve(port=arguments.port, headless=arguments.headless, token=not arguments.no_token, options=options)


def run_release(arguments: Namespace) -> int:
    """Make and publish the release of a configuration; with --dry-run, print its cost and expected errors. Return the exit code."""
    if arguments.seed is not None:
        raise RefusedError(SEED_REFUSED)
    scheduler = scheduler_at(arguments.address, insecure=arguments.insecure_address)
    config = read_config(Path(arguments.config), for_dry_run=arguments.dry_run)
    config = replace(config, data=config.data.with_engine(arguments.engine, scheduler))
    words = publication_texts(config) if arguments.output is None else replace(publication_texts(config), folder=Path(arguments.output))
    unfit = _find_unfit(config, words)
    if unfit is not None and not arguments.dry_run:
        raise unfit
    if arguments.paid is not None:
        _print_published(_write_kept(arguments.paid, config, words), None, as_json=arguments.json)
        return DONE
    order, engine = _read_order(config, scheduler, shows=arguments.left_out)
    if arguments.dry_run:
        return _print_dry_run(order, engine, unfit, config.left_out, as_json=arguments.json)
    _print_published(publish(order, words, Ledger(), say=say), engine, as_json=arguments.json)
    return DONE


def _write_kept(entry: int, config: ReleaseConfig, words: PublicationTexts) -> Published:
    """Publish a paid release kept on the disk, with the texts of a configuration; no private data are read, and nothing is spent.

    Raises:
        SettingError: no release of that entry is kept, or the configuration describes another release.
    """
    paid = recover(entry, Ledger())
    different = differences(paid, config)
    if different:
        raise SettingError(f"Draw {entry} was made with another {', '.join(different)}: give the configuration that it was drawn with.")
    say(f"Publishing draw {entry} of {paid.account.name!r} as it was drawn; nothing is spent.")
    return write(paid, words, Ledger(), say=say)


def _print_published(published: Published, engine: str | None, *, as_json: bool) -> None:
    """Print folder, files and account of a published release."""
    facts = {
        "folder": str(published.folder),
        "release_id": published.manifest["identity"]["release_id"],
        "files": sorted(path.name for path in published.folder.iterdir()),
        "dataset": account_facts(published.account),
        "engine": engine,
    }
    left = format_budget(published.account.left)
    message = f"Published in {published.folder}."
    try:
        give(facts, [message, f"{published.account.name}: {draws(published.account)}, left {left}."], as_json=as_json)
    except OSError:
        say(f"{message} The details could not be printed, as the output is closed.")
        raise


def publication_texts(config: ReleaseConfig) -> PublicationTexts:
    """Return the curator's texts and the folder of a configuration."""
    texts, output = config.publication, config.output
    own_texts = {name: getattr(texts, name) for name in TEXT_NAMES}
    return PublicationTexts(folder=resolve_path(config.base, output.folder), formats=output.formats, **own_texts)


def _read_order(config: ReleaseConfig, scheduler: Scheduler | None = None, *, shows: bool) -> tuple[Order, str | None]:
    """Return `order_of` a configuration, and tell the curator on stderr how its data were counted; if `shows`, what was left out, too.

    How many records were left out is a true number, by which settings could be chosen, the bounds of a domain above all. So the ledger
    records first that it is looked at, as in the app.
    """
    say("Reading the data.")
    order, engine = order_of(config, scheduler)
    if engine is not None:
        say(f"Counted by engine {engine}.")
        say(_LEFT_OUT_HINT if not shows else _record_look(order) or _describe_left_out(order))
    for line in getattr(order.data, "notes", ()):
        say(f"Curator only: {line}")
    return order, engine


_LEFT_OUT_HINT = (
    "How many records were left out, and why, is shown with --left-out: it comes from the private data, and the ledger notes the look."
)


def _record_look(order: Order) -> str:
    """Record that true numbers of the data are looked at; return why they are not shown, "" if they may be."""
    try:
        Ledger().note_truth_seen(order.fingerprints)
    except RefusedError as error:
        return f"What was left out is not shown, since the ledger cannot record the look. {error}"
    return ""


def _describe_left_out(order: Order) -> str:
    return f"Curator only: {left_out(order.data) or 'nothing was left out.'}"


def order_of(config: ReleaseConfig, scheduler: Scheduler | None = None) -> tuple[Order, str | None]:
    """Read the data of a configuration, without bad rows, and make its order.

    Returns:
        The order, and the engine that counted the data; None for a sample.

    Raises:
        DpvizError: settings, domain, regions or files cannot be used.
    """
    mechanism, budget = config.mechanism.build(config.family), config.budget.budget()
    frame = open_frame(config)
    if isinstance(frame, Regions):
        mechanism.check(frame)
    opened = run_with_bar("counting", lambda watch: open_data(config, frame, bad_rows="drop", watch=watch, scheduler=scheduler))
    for note in opened.notes:
        say(f"Curator only: {note}")
    order = Order(
        data=opened.data,
        mechanism=mechanism,
        budget=budget,
        dataset=config.dataset.name,
        fingerprints=opened.fingerprints,
        cap=config.dataset.cap(),
        person=config.data.person or "",
    )
    return order, opened.engine


def _find_unfit(config: ReleaseConfig, words: PublicationTexts) -> DpvizError | None:
    """Return what is wrong with the texts of a publication; None if they can be published, or are left out for a dry run."""
    if {"publication", "output"} & set(config.left_out):
        return None
    try:
        words.check()
    except DpvizError as error:
        return error
    return None


def _print_dry_run(order: Order, engine: str | None, unfit: DpvizError | None, left_out: Sequence[str], *, as_json: bool) -> int:
    """Print what a release would cost and its expected errors, or why it would be refused; return the exit code of that.

    Texts that cannot be published yet, as in a configuration that was saved before they were written, are named beside the cost. Of
    tables that are left out it is said what is not known without them; without [dataset] the ledger is not asked.
    """
    errors = compute_expected_errors(order.mechanism, order.data, order.budget)
    account, refusal = None, None if unfit is None else str(unfit)
    try:
        account = None if "dataset" in left_out else preview_payment(order, Ledger())
    except DpvizError as error:
        refusal = str(error)
    unknown = [_UNKNOWN[name] for name in left_out]
    cost = [] if account is None else [_cost_line(order, account, errors)]
    refused = [] if refusal is None else [f"This release would be refused: {refusal}"]
    lines = [*refused, *cost, *_error_lines(errors), *unknown]
    give({**_dry_run_facts(order, account, refusal, errors), "unknown": unknown, "engine": engine}, lines, as_json=as_json)
    return DONE if refusal is None else REFUSED


_UNKNOWN = {
    "dataset": "Not known without [dataset]: whether the ledger would allow the release, and what the cap would leave. A release needs it,"
    " and for data without a person column its unit.",
    "publication": "Not known without [publication]: what readers would be told. A release needs it.",
    "output": "Not known without [output]: whether the files could be written. A release needs it.",
}
"""For each table that a dry run works without, what it cannot say then."""


def _cost_line(order: Order, account: Account, errors: ExpectedErrors) -> str:
    """Say what a release would spend, and what its account would have left."""
    amount, cost = amount_of(order.budget), account.terms.cost(order.budget)
    counted = "" if set(amount) <= set(cost) else f" (in the ledger {format_budget(cost)})"
    return (
        f"Would spend {format_budget(amount)}{counted}, protecting one {errors.receipt.unit} ({errors.receipt.neighbours});"
        f" left after it: {format_budget(account.left)}. Nothing was spent."
    )


def _dry_run_facts(order: Order, account: Account | None, refusal: str | None, errors: ExpectedErrors) -> Facts:
    """Describe a dry run as JSON values; `account` is the account after the release, None if the release would be refused."""
    levels = [{name: _finite(value) for name, value in row.items()} for row in errors.by_level.to_dict("records")]
    receipt = errors.receipt
    return {
        "budget": str(order.budget),
        "cost": None if account is None else _exact_texts(account.terms.cost(order.budget)),
        "left": None if account is None else _exact_texts(account.left),
        "refused": refusal,
        "unit": receipt.unit,
        "neighbours": receipt.neighbours,
        "levels": levels,
        "note": errors.note,
    }


def _finite(value: Any) -> Any:
    return None if value is None or (isinstance(value, float) and not math.isfinite(value)) else value


def _error_lines(errors: ExpectedErrors) -> list[str]:
    """Format expected errors as a table, and the note under it."""
    table = errors.by_level.dropna(axis=1, how="all")
    table_text = table.to_string(index=False, na_rep="-", float_format=lambda number: format_decimal(number, 3))
    return [*table_text.splitlines(), errors.note]


def run_check(arguments: Namespace) -> int:
    """Print what a file contains, what it can be used for and which settings are missing; of a configuration, what its release costs."""
    path = Path(arguments.file)
    if path.suffix.lower() == ".toml":
        return _check_config(path, as_json=arguments.json, shows=arguments.left_out)
    facts = check.check(path)
    columns = check.repeated(path, facts)
    if columns is not None:
        try:
            _note_look(path)
            facts = check.add_repeated_columns(facts, columns)
            say("Columns were searched for ids of persons: the ledger records that, and releases of these data will say so.")
        except RefusedError as error:
            say(f"Columns that look like ids of persons are not shown, since the ledger cannot record that the data were searched. {error}")
    give(facts, check.lines(facts), as_json=arguments.json)
    return DONE


def _check_config(path: Path, *, as_json: bool, shows: bool) -> int:
    """Print what the release of a configuration would cost, and why it would be refused, as `release --dry-run` does."""
    config = read_config(path, for_dry_run=True)
    order, engine = _read_order(config, shows=shows)
    return _print_dry_run(order, engine, _find_unfit(config, publication_texts(config)), config.left_out, as_json=as_json)


def _note_look(path: Path) -> None:
    """Record in the ledger that a file's content was looked at; called before anything is shown."""
    Ledger().note_truth_seen(file_fingerprints([path]))


def run_audit(arguments: Namespace) -> int:
    """Audit one mechanism or all; return 1 if the audit contradicts a declared budget."""
    plan = AuditPlan(runs=arguments.runs, confidence=arguments.confidence, seed=arguments.seed)
    targets = audit_targets()
    if arguments.mechanism not in (ALL, *targets):
        meant = did_you_mean(arguments.mechanism, targets)
        raise SettingError(f"There is no such mechanism; choose {ALL}, or one of: {'; '.join(targets)}.{meant}")
    mechanisms = targets if arguments.mechanism == ALL else {arguments.mechanism: targets[arguments.mechanism]}
    with step_bar(len(mechanisms), "audit") as step:

        def progress(done: int, total: int, name: str) -> None:  # noqa: ARG001
            step()

        table = audit_all(mechanisms, plan=plan, progress=progress, processes=min(os.cpu_count() or 1, len(mechanisms)))
    table_text = table[["mechanism", "epsilon", "delta", "lower_bound", "passed"]].to_string(index=False)
    meaning = (
        f"With confidence {format_decimal(arguments.confidence)} for all rows together, epsilon is at least lower_bound. An audit can find"
        " faults; it cannot prove privacy."
    )
    give(json.loads(table.to_json(orient="records")), [*table_text.splitlines(), meaning], as_json=arguments.json)
    return DONE if table["passed"].all() else REFUSED


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


COMMANDS: dict[str, Callable[[Namespace], int | None]] = {
    "app": run_app,
    "release": run_release,
    "compare": run_compare,
    "check": run_check,
    "audit": run_audit,
    "ledger": run_ledger,
    "mechanisms": run_mechanisms,
    "paper": run_paper,
    "init": run_init,
}


def run(arguments: Namespace) -> int:
    """Run the subcommand of the parsed arguments; return the exit code."""
    return COMMANDS[arguments.command](arguments) or 0
