"""The subcommand `dpviz release`: publish what a configuration describes, or say what that would cost."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.amounts import format_budget, format_decimal
from dpviz.cli.advice import advise_on_command_line
from dpviz.cli.console import DONE, REFUSED, finite, give, run_with_bar, say
from dpviz.cli.ledger import account_facts, draws, exact_texts, ledger_facts, note_look
from dpviz.data.counting.scheduler import Scheduler, scheduler_at
from dpviz.errors import DpvizError, RefusedError, SettingError
from dpviz.privacy.accounts import Account, amount_of
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.series_words import say_series
from dpviz.publishing.config import ReleaseConfig, read_config
from dpviz.publishing.dry_run import FROM_DATA, ExpectedErrors, expected_errors
from dpviz.publishing.guessed_records import DENOMINATOR, PublicGuess, check_fits, count_no_records
from dpviz.publishing.kept import differences, recover
from dpviz.publishing.order import TEXT_NAMES, Order, PublicationTexts, Published
from dpviz.publishing.paths import resolve_path
from dpviz.publishing.private_data import left_out, make_frame, open_sources, read_data
from dpviz.publishing.public_guess import EVEN, TOWNS
from dpviz.publishing.publish import check_public, describe_made, preview_payment, publish, write
from dpviz.publishing.toml_tables import SEED_REFUSED

Facts = dict[str, Any]


def run_release(arguments: Namespace) -> int:
    """Make and publish the release of a configuration; with --dry-run, print its cost and expected errors. Return the exit code."""
    if arguments.seed is not None:
        raise RefusedError(SEED_REFUSED)
    guess = _read_guess(arguments)
    scheduler = scheduler_at(arguments.address, insecure=arguments.insecure_address)
    config = read_config(Path(arguments.config), for_dry_run=arguments.dry_run)
    config = replace(config, data=config.data.with_engine(arguments.engine, scheduler).with_copies(arguments.copies))
    if arguments.paid is None or arguments.period is not None:  # what was paid for knows its period
        config = config.in_period(arguments.period)
    words = publication_texts(config) if arguments.output is None else replace(publication_texts(config), folder=Path(arguments.output))
    unfit = _find_unfit(config, words)
    if unfit is not None and not arguments.dry_run:
        raise unfit
    ledger = Ledger()
    if not arguments.dry_run:
        ledger.exists()  # one that was named and is not there is refused before the data are read
    if arguments.paid is not None:
        _print_published(_write_kept(arguments.paid, config, words, ledger), ledger, None, as_json=arguments.json)
        return DONE
    if arguments.dry_run:
        return _dry_run(config, unfit, scheduler, shows=arguments.left_out, as_json=arguments.json, guess=guess)
    order, engine = read_order(config, ledger, scheduler, shows=arguments.left_out, asks=True)
    _print_published(publish(order, words, ledger, say=say), ledger, engine, as_json=arguments.json)
    return DONE


def _read_guess(arguments: Namespace) -> PublicGuess | None:
    """Return the public guess of a dry run; None without one.

    Raises:
        SettingError: a guess that nothing uses, or a number out of its range.
    """
    if arguments.records is None and arguments.spread is None:
        return None
    if not arguments.dry_run or arguments.records is None:
        raise SettingError("--records and --spread are a guess for --dry-run: --spread says how that many records lie.")
    spread = {"towns": TOWNS, "denominator": DENOMINATOR}.get(arguments.spread, EVEN)
    return PublicGuess(records=arguments.records, spread=spread)


def _write_kept(entry: int, config: ReleaseConfig, words: PublicationTexts, ledger: Ledger) -> Published:
    """Publish a paid release kept on the disk, with the texts of a configuration; no private data are read, and nothing is spent.

    Raises:
        SettingError: no release of that entry is kept, or the configuration describes another release.
    """
    paid = recover(entry, ledger)
    different = differences(paid, config)
    if different:
        raise SettingError(f"Draw {entry} was made with another {', '.join(different)}: give the configuration that it was drawn with.")
    say(f"Publishing draw {entry} of {paid.account.name!r} as it was drawn; nothing is spent.")
    return write(paid, words, ledger, say=say)


def _print_published(published: Published, ledger: Ledger, engine: str | None, *, as_json: bool) -> None:
    """Print folder, files, account and ledger of a published release."""
    facts = {
        "folder": str(published.folder),
        "release_id": published.manifest["identity"]["release_id"],
        "files": sorted(path.name for path in published.folder.iterdir()),
        "dataset": account_facts(published.account),
        **ledger_facts(ledger),
        "engine": engine,
    }
    left = format_budget(published.account.left_in(published.period))
    left = left if published.period is None else f"{left} in {published.period}"
    message = f"Published in {published.folder}."
    try:
        account_text = f"{published.account.name}: {draws(published.account)}, left {left}."
        give(facts, [message, f"Ledger: {ledger.path}", account_text], as_json=as_json)
    except OSError:
        say(f"{message} The details could not be printed, as the output is closed.")
        raise


def publication_texts(config: ReleaseConfig) -> PublicationTexts:
    """Return the curator's texts and the folder of a configuration."""
    texts, output = config.publication, config.output
    own_texts = {name: getattr(texts, name) for name in TEXT_NAMES}
    return PublicationTexts(folder=resolve_path(config.base, output.folder), formats=output.formats, **own_texts)


def read_order(
    config: ReleaseConfig,
    ledger: Ledger,
    scheduler: Scheduler | None = None,
    *,
    shows: bool,
    asks: bool = False,
    guess: PublicGuess | None = None,
) -> tuple[Order, str | None]:
    """Read the data of a configuration, without bad rows, and make its order; tell the curator on stderr how they were counted.

    How many records were left out is a true number, by which settings could be chosen, the bounds of a domain above all. So the ledger
    records first that it is looked at, as in the app.

    Args:
        config: of the release.
        ledger: of the looks.
        scheduler: a running Dask scheduler; None for workers on this computer.
        shows: whether to say what was left out.
        asks: whether files of equal content are to be confirmed, if this is a terminal.
        guess: of a dry run; one that does not fit what is public is refused before a private file is opened.

    Returns:
        The order, and the engine that counted the data; None for a sample.

    Raises:
        DpvizError: settings, domain, regions, files or the guess cannot be used.
        RefusedError: files of equal content were not confirmed.
    """
    say("Reading the data.")
    mechanism, budget = config.mechanism.build(config.family), config.budget.budget()
    sources = open_sources(config)
    frame = run_with_bar("reading what is public", lambda watch: make_frame(sources, watch.report))
    if frame is not None:
        check_public(mechanism, frame, budget, config.data.contributions or 1)
        if guess is not None:
            check_fits(count_no_records(mechanism, frame), guess)
    key = _choose_key(config, ledger, makes=asks)
    opened = run_with_bar("counting", lambda watch: read_data(sources, frame, bad_rows="drop", watch=watch, scheduler=scheduler, key=key))
    for note in opened.notes:
        say(f"Curator only: {advise_on_command_line(note)}")
    if opened.notes and asks:
        _confirm_copies()
    order = Order(
        data=opened.data,
        mechanism=mechanism,
        budget=budget,
        dataset=config.dataset.name,
        fingerprints=opened.fingerprints,
        cap=config.dataset.cap(),
        person=config.data.person or "",
        may_be_empty=config.data.may_be_empty,
        series=config.dataset.series,
        period=config.period,
    )
    _say_of_count(order, opened.engine, ledger, shows=shows)
    return order, opened.engine


def _choose_key(config: ReleaseConfig, ledger: Ledger, *, makes: bool) -> bytes | None:
    """Return what chooses the records that a person keeps: of a series the ledger's secret, and otherwise a fresh one, which is None.

    Args:
        config: of the release.
        ledger: if this makes it, that is said.
        makes: whether a ledger that is not there yet is made; a dry run makes none.
    """
    if config.dataset.series is None or not (makes or ledger.exists()):
        return None
    was_made, key = ledger.made, ledger.kept_key()
    if ledger.made and not was_made:
        say(describe_made(ledger))
    return key


def _say_of_count(order: Order, engine: str | None, ledger: Ledger, *, shows: bool) -> None:
    """Tell the curator which engine counted, what was left out if that may be shown, and what the count leaves open."""
    if engine is not None:
        say(f"Counted by engine {engine}.")
        say(_look_at_left_out(order, ledger) if shows else _LEFT_OUT_HINT)
    for line in getattr(order.data, "notes", ()):
        say(f"Curator only: {line}")
    if each_row := say_each_row(order):
        say(each_row)


def say_each_row(order: Order) -> str:
    """Say that each row counts once, and what to declare; "" if there is no question."""
    each_row = order.data.each_row
    if each_row is None:
        return ""
    text, column = str(each_row), each_row.example.replace('"', "")
    return (
        f'{text[:1].upper()}{text[1:]}. Write count = "{column}", say, or count = "none" if each row is one {each_row.noun}, under [data].'
    )


_LEFT_OUT_HINT = (
    "How many records were left out, and why, is shown with --left-out: it comes from the private data, and the ledger notes the look."
)


def _look_at_left_out(order: Order, ledger: Ledger) -> str:
    """Say what was left out, once the ledger has recorded that true numbers are looked at; else why it is not shown."""
    try:
        note_look(ledger, order.fingerprints)
    except RefusedError as error:
        return f"What was left out is not shown, since the ledger cannot record the look. {error}"
    return f"Curator only: {left_out(order.data) or 'nothing was left out.'}"


def _confirm_copies() -> None:
    """Ask on the terminal whether copies are to count. Without a terminal they count: see `describe_copies`.

    Raises:
        RefusedError: the curator did not say yes.
    """
    if not sys.stdin.isatty():
        say("All of these files count: no terminal is there to ask, and what files hold decides no release.")
        return
    say("Are all of these files to count? Type yes to go on:")
    try:
        answer = input().strip().lower()
    except EOFError:
        answer = ""
    if answer not in ("y", "yes"):
        raise RefusedError("Not confirmed: nothing was spent. Delete the copy or do not name it, or give --copies.")


def _find_unfit(config: ReleaseConfig, words: PublicationTexts) -> DpvizError | None:
    """Return what is wrong with the texts of a publication; None if they can be published, or are left out for a dry run."""
    if {"publication", "output"} & set(config.left_out):
        return None
    try:
        words.check()
    except DpvizError as error:
        return error
    return None


def _dry_run(
    config: ReleaseConfig,
    unfit: DpvizError | None,
    scheduler: Scheduler | None = None,
    *,
    shows: bool,
    as_json: bool,
    guess: PublicGuess | None = None,
) -> int:
    """Print what a release would cost and its expected errors, or why it would be refused; return the exit code of that.

    Texts that cannot be published yet, as in a configuration that was saved before they were written, are named beside the cost. Of
    tables that are left out it is said what is not known without them; without [dataset] the ledger is not looked up.
    """
    ledger = Ledger()
    order, engine = read_order(config, ledger, scheduler, shows=shows, guess=guess)
    guessed: Facts = {} if guess is None else {"records": guess.records, "spread": guess.spread}
    errors = expected_errors(order.mechanism, order.data, order.budget, **guessed)
    account, refusal = None, None if unfit is None else str(unfit)
    try:
        account = None if "dataset" in config.left_out else preview_payment(order, ledger)
    except DpvizError as error:
        refusal = str(error)
    unknown = [_UNKNOWN[name] for name in config.left_out]
    cost = [] if account is None else [_cost_line(order, account, errors), *say_series(account.terms)]
    refused = [] if refusal is None else [f"This release would be refused: {refusal}"]
    table = errors.by_level.dropna(axis=1, how="all")
    table_text = table.to_string(index=False, na_rep="-", float_format=lambda number: format_decimal(number, 3))
    hint = ["Give --records N for that, a number from public knowledge."] if FROM_DATA in errors.note else []
    lines = [*refused, *cost, *table_text.splitlines(), errors.note, *hint, *unknown]
    facts = {**_dry_run_facts(order, account, refusal, errors), **ledger_facts(ledger), "unknown": unknown, "engine": engine}
    give(facts, lines, as_json=as_json)
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
        f" left after it{'' if order.period is None else f' in {order.period}'}: {format_budget(account.left_in(order.period))}."
        " Nothing was spent."
    )


def _dry_run_facts(order: Order, account: Account | None, refusal: str | None, errors: ExpectedErrors) -> Facts:
    """Describe a dry run as JSON values; `account` is the account after the release, None if the release would be refused."""
    levels = [finite(row) for row in errors.by_level.to_dict("records")]
    receipt = errors.receipt
    return {
        "budget": str(order.budget),
        "cost": None if account is None else exact_texts(account.terms.cost(order.budget)),
        "left": None if account is None else exact_texts(account.left_in(order.period)),
        "refused": refusal,
        "unit": receipt.unit,
        "neighbours": receipt.neighbours,
        "levels": levels,
        "note": errors.note,
        "each_row": say_each_row(order) or None,
    }


def check_config(path: Path, *, as_json: bool, shows: bool, copies: bool) -> int:
    """Print what the release of a configuration would cost, and why it would be refused, as `release --dry-run` does."""
    config = read_config(path, for_dry_run=True)
    config = replace(config, data=config.data.with_copies(copies))
    return _dry_run(config, _find_unfit(config, publication_texts(config)), shows=shows, as_json=as_json)
