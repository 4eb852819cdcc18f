"""Publish a release, for command line and app: check all public inputs, pay, make the release, describe it, write the files."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dpviz.amounts import format_budget
from dpviz.data.empty import refuse_empty_data
from dpviz.data.marks import refuse_marked
from dpviz.errors import BudgetError, DpvizError, RefusedError, SettingError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.accounts import Account, Entry, Terms, amount_of, exact_text
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.receipt import Receipt
from dpviz.privacy.series_words import say_series
from dpviz.publishing.dry_run import dry_run
from dpviz.publishing.guessed_records import count_no_records
from dpviz.publishing.kept import discard, keep
from dpviz.publishing.order import Order, PaidRelease, PublicationTexts, Published, state_looks, unit_definition
from dpviz.publishing.private_data import PublicFrame
from dpviz.publishing.rehearsal import add_unit_definition, rehearse
from dpviz.release.base import NoisyRelease
from dpviz.release.files import MANIFEST, write_release
from dpviz.release.manifest import check_describable, describe, describe_series_part

__all__ = [
    "REPORT",
    "Order",
    "PaidRelease",
    "PublicationTexts",
    "Published",
    "call_after_payment",
    "check_order",
    "check_public",
    "describe_made",
    "draw",
    "note_publication",
    "preview_payment",
    "publish",
    "write",
]

Say = Callable[[str], object]
T = TypeVar("T")

REPORT = "report.html"
_NEW_VERSION = (
    "These data are new to the account {name!r}: they join it as a later version of its data. If they are other data, or a column's"
    " name now means something else, use another account next time."
)


def publish(order: Order, words: PublicationTexts, ledger: Ledger, *, say: Say = lambda _: None) -> Published:
    """Pay for a release, make it with entropy of the operating system, and write it with manifest and report.

    Before anything is spent, all public inputs are checked, and the publication is rehearsed on made-up records. From payment until
    publication the release is kept on the disk, beside the ledger: after a crash or a failure `kept.recover` reads it back.

    Args:
        order: the private data, mechanism, budget and account.
        words: the curator's texts, and the folder for the files.
        ledger: counts the budget before the release is made.
        say: called with each line of progress.

    Raises:
        DpvizError: the release failed. If the budget is spent by then, the text says so; else nothing is spent.
        RefusedError: the cap would be exceeded, the ledger cannot be trusted or written, or the mechanism is not private.
        KeyboardInterrupt: the work was interrupted. If the budget is spent by then, the text says so.
    """
    words.check()
    paid = draw(order, ledger, words=words, say=say)
    return call_after_payment(paid.account.name, paid.entry, lambda: write(paid, words, ledger, say=say, rescue=True), kept=paid.kept)


def draw(
    order: Order, ledger: Ledger, *, words: PublicationTexts | None = None, keeps: bool = False, say: Say = lambda _: None
) -> PaidRelease:
    """Pay for one release and make it, without publishing it. The app uses it to show a release; `publish` also writes files.

    Args:
        order: the private data, mechanism, budget and account.
        ledger: counts the budget before the release is made; a refused order leaves no entry.
        words: the curator's texts, for a release that will be published: publication is rehearsed before anything is spent, and the
            release is kept on the disk until it is published. None for a release that is only shown.
        keeps: whether a release without texts is kept on the disk, too, until it is published or discarded.
        say: called with each line of progress.

    Raises:
        DpvizError: as `publish`.
    """
    (terms, empty_release), was_made = check_order(order, ledger), ledger.made
    account_before, definition = _find_account(order, ledger), unit_definition(order, terms)
    joins_account = order.series is None and account_before is not None and ledger.find_by_fingerprints(order.fingerprints) is None
    if words is not None:
        rehearse(order, words, empty_release, unit_definition=definition, series=describe_series_part(terms, order.period))
    if account_before is None or not account_before.draws:
        for line in say_series(terms):
            say(line)
    try:
        account, entry = _pay(order, ledger, terms, "draw" if words is None else "release")
    except DpvizError:
        if ledger.made and not was_made:  # else the next order would find it there, and nobody would have heard
            say(describe_made(ledger))
        raise
    lines = _payment_lines(order, account_before, account)
    if joins_account:
        lines.insert(0, _NEW_VERSION.format(name=account.name))
    if ledger.made and not was_made:
        lines.insert(0, describe_made(ledger))

    def make_paid_release() -> PaidRelease:
        for line in lines:
            say(line)
        release = _make_release(order, account, definition)
        paid = PaidRelease(release=release, account=account, entry=entry.id, looks_recorded=order.looks_recorded, period=order.period)
        return replace(paid, kept=_keep_on_disk(paid, entry, ledger, say)) if keeps or words is not None else paid

    return call_after_payment(account.name, entry.id, make_paid_release)


def describe_made(ledger: Ledger) -> str:
    """Say that the usual ledger was made by this use of it, which a curator who expects another one must hear."""
    return f"Made a new ledger, {ledger.path}: there was none yet, so nothing that was spent before counts in it."


def _payment_lines(order: Order, account_before: Account | None, account: Account) -> list[str]:
    """Write the lines that the curator sees after payment: the account, and the remainder of its cap."""
    lines = []
    if account.name != order.dataset:
        lines.append(f"The ledger knows these data as {account.name!r}: this draw counts there.")
    if account_before is not None and account_before.terms.person is None and account.terms.person is not None:
        lines.append(
            f"The ledger had not noted what a person of {account.name!r} is: from now on {account.terms.person_text}."
            " What its earlier draws spent stays spent."
        )
    left = f"left{'' if order.period is None else f' in {order.period}'}: {format_budget(account.left_in(order.period))}"
    return [*lines, f"Spent {format_budget(amount_of(order.budget))}; {left}. Drawing."]


def _make_release(order: Order, account: Account, definition: str) -> NoisyRelease:
    """Make the release with entropy of the operating system, and check that its receipt agrees with the order and the account."""
    release: NoisyRelease = order.mechanism.release(order.data, order.budget, Entropy.system())
    _check_price(release.receipt, order)
    if (release.receipt.unit, release.receipt.neighbours) != (account.terms.unit, account.terms.neighbours):
        raise RefusedError("The mechanism's receipt protects something else than that of its dry run; nothing is published.")
    return add_unit_definition(release, definition)


def _keep_on_disk(paid: PaidRelease, entry: Entry, ledger: Ledger, say: Say) -> Path | None:
    """Keep the release on the disk, and return its folder. If that fails, print a message and return None: it is then only in memory."""
    try:
        return keep(paid, entry, ledger)
    except Exception as error:  # noqa: BLE001  (any failure: the release is paid for and must go on)
        reason = str(error) if isinstance(error, DpvizError) else f"{getattr(error, 'strerror', None) or type(error).__name__}."
    say(f"Draw {entry.id} is paid for, but its release could not be kept beside the ledger: {reason}")
    return None


def _pay(order: Order, ledger: Ledger, terms: Terms, purpose: str) -> tuple[Account, Entry]:
    key, contributions = order.mechanism.key, order.data.contributions
    try:
        return ledger.pay(
            order.dataset,
            order.fingerprints,
            terms,
            order.budget,
            mechanism=key,
            purpose=purpose,
            contributions=contributions,
            period=order.period,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Interrupted while the draw was paid for: nothing was drawn; dpviz ledger show says what counts.") from None


def write(
    paid: PaidRelease,
    words: PublicationTexts,
    ledger: Ledger,
    *,
    say: Say = lambda _: None,
    rescue: bool = False,
    notes: bool = True,
) -> Published:
    """Write the files of a release that is paid for, and note the publication in the ledger.

    Args:
        paid: the release and its entry in the ledger.
        words: the curator's texts, and the folder for the files.
        ledger: gives the number of releases so far, and notes this publication.
        say: called with each line of progress.
        rescue: whether to write into a temporary folder if the wanted one cannot be written, so that the release is not lost.
        notes: whether the publication is noted in the ledger now. Otherwise the release stays kept, and `note_publication` notes it once
            the files have left the computer's memory.

    Raises:
        SettingError: a text or the folder cannot be used; nothing is written.
        RefusedError: a simulation or a reference, or the ledger cannot be read or written.
        DpvizError: the files cannot be written; nothing is left behind.
        KeyboardInterrupt: the work was interrupted. If the files are written by then, the text says so.
    """
    from dpviz.view.report import report_html  # noqa: PLC0415  (loading its templates is slow, and `draw` does not need them)

    words.check()
    paid.release.refuse_unpublishable()
    account = ledger.account(paid.account.name)
    spent, cap = account.spent_in(paid.period), account.terms.share
    publication = words.publication(
        draws=account.draws,
        truth_seen=state_looks(account, looks_recorded=paid.looks_recorded),
        persons_searched=account.persons_searched,
        dataset_spent=exact_text(spent),
        dataset_cap=exact_text(cap),
        series=describe_series_part(account.terms, paid.period),
    )
    manifest = describe(paid.release, publication)
    release_id = manifest["identity"]["release_id"]
    say("Writing the report and the files.")
    files = {REPORT: report_html(paid.release, manifest, formats=words.formats)}

    def write_into(folder: Path) -> Path:
        def write_and_note() -> None:
            write_release(paid.release, folder, manifest, formats=words.formats, files=files)
            if notes:
                ledger.published(paid.entry, release_id)

        _write_and_note(write_and_note, folder, release_id)
        return folder

    folder = _write_or_rescue(write_into, words.folder, say) if rescue else write_into(words.folder)
    if notes and paid.kept is not None and folder == words.folder:  # a release in a temporary folder stays kept
        discard(paid.kept)
    return Published(folder=folder, manifest=manifest, account=account, ledger=ledger.path, period=paid.period)


def note_publication(paid: PaidRelease, release_id: str, ledger: Ledger) -> None:
    """Note that a release whose files were written without a note is published, and remove the copy that is kept of it.

    Args:
        paid: the release and its entry in the ledger.
        release_id: from the manifest of the files.
        ledger: notes the publication.

    Raises:
        RefusedError: the ledger cannot be read or written; the copy stays.
    """
    ledger.published(paid.entry, release_id)
    if paid.kept is not None:
        discard(paid.kept)


def _write_and_note(write_files: Callable[[], None], folder: Path, release_id: str) -> None:
    """Call `write_files`, which writes the files and notes the publication in the ledger.

    Raises:
        NotNotedError: the files are written, but the ledger could not note the publication.
        DpvizError: `write_files` failed before the files were written.
        KeyboardInterrupt: `write_files` was interrupted. If the files are written by then, the text says so.
    """
    failure: BaseException
    try:
        return write_files()
    except (KeyboardInterrupt, Exception) as error:
        if not _is_written(folder, release_id):
            raise
        failure = error
    published = f"Published in {folder}; the ledger could not note it."
    if isinstance(failure, KeyboardInterrupt):
        raise KeyboardInterrupt(f"Interrupted. {published}")
    raise NotNotedError(f"{published} {failure}" if isinstance(failure, DpvizError) else published)


class NotNotedError(RefusedError):
    """The release is published, but the ledger could not note the publication."""


def _is_written(folder: Path, release_id: str) -> bool:
    try:
        return bool(json.loads((folder / MANIFEST).read_bytes())["identity"]["release_id"] == release_id)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _write_or_rescue(write_into: Callable[[Path], Path], folder: Path, say: Say) -> Path:
    """Write the release into its folder, or into a temporary one if that fails; return the folder.

    Raises:
        DpvizError: neither folder can be written; the text says why the first could not.
    """
    try:
        return write_into(folder)
    except NotNotedError:
        raise
    except DpvizError as error:
        failure, parent = error, None
    try:
        parent = Path(tempfile.mkdtemp(prefix="dpviz-"))
        rescued = write_into(parent / "release")
    except (DpvizError, OSError) as error:
        failure = error if isinstance(error, NotNotedError) else failure
    else:
        say(f"{failure} It is in {rescued} instead: move it from there, temporary folders do not last.")
        return rescued
    if parent is not None and not isinstance(failure, NotNotedError):
        with contextlib.suppress(OSError):
            parent.rmdir()
    raise failure.with_traceback(None) from None


def check_public(mechanism: AnyMechanism, frame: PublicFrame, budget: Budget, contributions: int) -> None:
    """Refuse a mechanism, frame and budget that do not fit together, before private data are read: the mechanism runs without records.

    Args:
        mechanism: the mechanism with its settings.
        frame: the public domain; regions, of trips those of origins and of destinations.
        budget: of the release.
        contributions: the bound on the records of one person.

    Raises:
        DpvizError: settings, frame or budget do not fit the mechanism.
    """
    no_records = count_no_records(mechanism, frame, contributions)
    mechanism.check_data(no_records)
    dry_run(mechanism, no_records, budget)


def check_order(order: Order, ledger: Ledger) -> tuple[Terms, NoisyRelease]:
    """Check everything public about an order; nothing is spent or written.

    The mechanism runs once without records, so that unsuitable settings, domains, regions or budgets fail now. Its receipt says what it
    protects and what it costs.

    Returns:
        The terms of the order's account, and that release without records.

    Raises:
        RefusedError: the mechanism is not private, the data are marked (one row could decide others, or what is protected was not said),
            the receipt states another cost than the budget, or the data have an account with other terms.
        SettingError: a series without a period, a period without a series, or data that are not those of the period.
        BudgetError: the data are new to the ledger and no cap is given.
        InputError: the data have no record, and the order does not say that they may be empty.
        DpvizError: settings, domain, regions or budget do not fit the mechanism.
    """
    if not order.mechanism.private:
        raise RefusedError("NOT PRIVATE: this is a reference that shows what privacy costs; it is never run on private data.")
    if not order.may_be_empty:
        refuse_empty_data(order.data)
    order.mechanism.check_data(order.data)
    refuse_marked(order.data)
    release = dry_run(order.mechanism, order.data, order.budget)
    receipt = release.receipt
    _check_price(receipt, order)
    check_describable(release)
    cap = order.cap
    if cap is None:
        account = _find_account(order, ledger)
        if account is None:
            raise BudgetError("These data are new to the ledger: give a cap, the most that may ever be spent on them.")
        cap = account.terms.cap
    person = order.person if receipt.unit == "person" else ""
    terms = Terms(unit=receipt.unit, neighbours=receipt.neighbours, cap=cap, person=person, series=order.series)
    terms.cost(order.budget)
    _check_period(order, terms)
    return terms, release


def _check_period(order: Order, terms: Terms) -> None:
    """Refuse data that were not counted in the period that pays for them, by the column and time zone of its series."""
    terms.check_period(order.period)
    if order.series is None or order.period is None or order.data.during == (period := order.series.period_of(order.period)):
        return
    wanted = "all rows, since the series has no column of times" if period is None else f"the rows of {period.name} alone: during={period}"
    raise SettingError(f"These data were not counted as those of {order.period}: count {wanted}.")


def preview_payment(order: Order, ledger: Ledger) -> Account:
    """Return the account as the payment of an order would leave it; nothing is spent or written.

    Raises:
        DpvizError: `publish` would refuse the order.
    """
    return ledger.preview(order.dataset, order.fingerprints, check_order(order, ledger)[0], order.budget, period=order.period)


def _find_account(order: Order, ledger: Ledger) -> Account | None:
    """Find the account of the data by their fingerprints or by name; None if there is none yet."""
    return ledger.find_by_fingerprints(order.fingerprints) or ledger.find_by_name(order.dataset)


def _check_price(receipt: Receipt, order: Order) -> None:
    """Refuse a receipt with another budget or another bound per person than the order has."""
    if receipt.total != order.budget:
        raise RefusedError(f"The mechanism was given {order.budget}, but its receipt states another budget; nothing is published.")
    if receipt.contributions != order.data.contributions:
        raise RefusedError("The mechanism's receipt states another number of records per unit than the data have; nothing is published.")


def call_after_payment(dataset: str, entry: int, work: Callable[[], T], *, kept: Path | None = None) -> T:
    """Call `work`, which runs after payment, and return its result. If it fails, the error's text says that the budget is spent.

    Texts of libraries are not quoted, since they could hold a private value. For the same reason the new error is raised outside the
    handler: it then has neither cause nor context.

    Args:
        dataset: name of the account.
        entry: number of the payment in the ledger.
        work: the function to call.
        kept: folder in which the release is kept; None if it is not kept on the disk.
    """
    spent = f"The budget is spent: draw {entry} of {dataset!r} is counted in the ledger, since noise may have been drawn."
    spent_and_kept = spent
    if kept is not None:
        spent_and_kept = f"{spent} Its release is kept beside the ledger: dpviz release CONFIG --paid {entry} publishes it."
    failure: BaseException
    try:
        return work()
    except DpvizError as error:
        failure = error if spent in str(error) else type(error)(f"{error} {spent if isinstance(error, NotNotedError) else spent_and_kept}")
    except KeyboardInterrupt as error:
        failure = KeyboardInterrupt(f"{error}" if str(error) else f"Interrupted: nothing was published. {spent_and_kept}")
    except MemoryError:
        failure = DpvizError(f"There is not enough memory. {spent_and_kept}")
    except Exception as error:  # noqa: BLE001
        failure = DpvizError(f"The draw failed ({type(error).__name__}). {spent_and_kept}")
    raise failure
