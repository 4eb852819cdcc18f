"""The one way to a publication, for command line and app: check what is public, spend, draw, describe, report, write."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dpviz.amounts import format_budget
from dpviz.data.flows import Flows
from dpviz.errors import BudgetError, DpvizError, RefusedError
from dpviz.privacy.accounts import Account, Entry, Terms, exact_text
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.dry_run import dry_run
from dpviz.publishing.kept import discard, keep
from dpviz.publishing.order import Order, Paid, Published, Words, unit_definition
from dpviz.publishing.rehearsal import defined, rehearse
from dpviz.release.files import MANIFEST, write_release
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import check_describable, describe
from dpviz.release.point_release import Release

__all__ = [
    "REPORT",
    "Order",
    "Paid",
    "Published",
    "Words",
    "draw",
    "once_spent",
    "open_account",
    "publish",
    "write",
]

Say = Callable[[str], object]
T = TypeVar("T")

REPORT = "report.html"
_JOINS = (
    "The account {name!r} has not had these data before: they join it as a later version of its data. If they are other data, or a column's"
    " name now means something else, draw from another account next time."
)


def publish(order: Order, words: Words, ledger: Ledger, *, say: Say = lambda _: None) -> Published:
    """Check all that is public, rehearse, spend, draw with entropy of the operating system, keep, describe, report and write.

    From the draw until it is published the release is kept on the disk, beside the ledger: after a crash or a failure
    `kept.recovered` gives it back, to be written.

    Args:
        order: what is drawn.
        words: what is said about it, and where it goes.
        ledger: counts the draw before it is made.
        say: is told what happens, line by line.

    Raises:
        DpvizError: with nothing spent if its text does not say so. Once the draw is paid for, every failure says that it is.
        RefusedError: the cap would be passed, the ledger cannot be trusted or written, or the mechanism is not private.
        KeyboardInterrupt: with a text, if the draw is paid for by then.
    """
    words.check()
    paid = draw(order, ledger, words=words, say=say)
    return once_spent(paid.account.name, paid.entry, lambda: write(paid, words, ledger, say=say, rescue=True), kept=paid.kept)


def draw(order: Order, ledger: Ledger, *, words: Words | None = None, say: Say = lambda _: None) -> Paid:
    """Pay for one draw and make it: the way of Curate, and the first half of `publish`.

    Args:
        order: what is drawn.
        ledger: counts it before it is made; what is refused leaves no trace in it.
        words: what will be said about it if it is drawn to be published: that is rehearsed before anything is spent, and the release is
            kept on the disk until it is published. None for a draw to look at.
        say: is told what happens.
    """
    terms = open_account(order, ledger)
    known, definition = _known(order, ledger), unit_definition(order)
    joins = known is not None and ledger.recognised(order.marks) is None
    if words is not None:
        rehearse(order, words, unit_definition=definition)
    account, entry = _pay(order, ledger, terms, "draw" if words is None else "release")
    lines = [_JOINS.format(name=account.name)] * joins + _about_payment(order, known, account)

    def made() -> Paid:
        for line in lines:
            say(line)
        release = _drawn(order, account, definition)
        kept = None if words is None else _kept(release, account, entry, (ledger, say))
        return Paid(release=release, account=account, entry=entry.id, kept=kept)

    return once_spent(account.name, entry.id, made)


def _about_payment(order: Order, known: Account | None, account: Account) -> list[str]:
    """What is worth saying once a draw is paid for."""
    lines = []
    if account.name != order.dataset:
        lines.append(f"The ledger knows these data as {account.name!r}: this draw counts there.")
    if known is not None and known.terms.person is None and account.terms.person is not None:
        lines.append(
            f"The ledger had not noted what a person of {account.name!r} is: from now on {account.terms.person_text}."
            " What its earlier draws spent stays spent."
        )
    return [*lines, f"Spent {order.budget}; left: {format_budget(account.left)}. Drawing."]


def _drawn(order: Order, account: Account, definition: str) -> Release | FlowRelease:
    """The draw itself, with entropy of the operating system: nothing else may be published."""
    release: Release | FlowRelease = order.mechanism.release(order.data, order.budget, Entropy.system())
    _check_price(release.receipt, order)
    _check_promise(release.receipt, account.terms)
    return defined(release, definition)


def _kept(release: Release | FlowRelease, account: Account, entry: Entry, how: tuple[Ledger, Say]) -> Path | None:
    """Where the release is kept until it is published; None, and said, where the disk does not take it: the draw goes on in memory."""
    ledger, say = how
    try:
        return keep(release, account, entry, ledger)
    except Exception as error:  # noqa: BLE001  (whatever it is, the draw is paid for and goes on)
        reason = str(error) if isinstance(error, DpvizError) else f"{getattr(error, 'strerror', None) or type(error).__name__}."
    say(f"Draw {entry.id} is paid for, and could not be kept beside the ledger until it is published: {reason}")
    return None


def _pay(order: Order, ledger: Ledger, terms: Terms, purpose: str) -> tuple[Account, Entry]:
    key, contributions = order.mechanism.key, order.data.contributions
    try:
        return ledger.pay(order.dataset, order.marks, terms, order.budget, mechanism=key, purpose=purpose, contributions=contributions)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Interrupted while the draw was paid for: nothing was drawn; dpviz ledger show says what counts.") from None


def write(paid: Paid, words: Words, ledger: Ledger, *, say: Say = lambda _: None, rescue: bool = False) -> Published:
    """Publish a draw that is already paid for, whether just now or earlier in Curate.

    Args:
        paid: the draw.
        words: what is said about it, and where it goes.
        ledger: says how many draws there were, and is told that this one is published.
        say: is told what happens.
        rescue: where the folder cannot be written, write a temporary one: for a caller with whom the draw would be lost.

    Raises:
        SettingError: the words; nothing is written.
        RefusedError: a simulation or a reference, or the ledger cannot be read or written.
        DpvizError: the disk does not take it; nothing is left behind.
        KeyboardInterrupt: with a text, if the files are there by then.
    """
    from dpviz.view.report import report_html  # noqa: PLC0415  (its templates load slowly, and a draw alone needs none)

    words.check()
    paid.release.refuse_unpublishable()
    account = ledger.account(paid.account.name)
    publication = words.publication(
        draws=account.draws,
        truth_seen=account.truth_seen,
        dataset_spent=exact_text(account.spent),
        dataset_cap=exact_text(account.terms.limit),
    )
    manifest = describe(paid.release, publication)
    release_id = manifest["identity"]["release_id"]
    say("Writing the report and the files.")
    files = {REPORT: report_html(paid.release, manifest, formats=words.formats)}

    def into(folder: Path) -> Path:
        def put() -> None:
            write_release(paid.release, folder, manifest, formats=words.formats, files=files)
            ledger.published(paid.entry, release_id)

        _telling(put, folder, release_id)
        return folder

    folder = _rescued(into, words.folder, say) if rescue else into(words.folder)
    if paid.kept is not None and folder == words.folder:  # a rescued one is in a temporary folder, which does not last
        discard(paid.kept)
    return Published(folder=folder, manifest=manifest, account=account)


def _telling(put: Callable[[], None], folder: Path, release_id: str) -> None:
    """Write and note; whatever fails once the files are there, the error says that they are.

    Raises:
        DpvizError: as `put` does; `NotNotedError` once the release is there.
        KeyboardInterrupt: likewise, with a text once it is there.
    """
    failed: BaseException
    try:
        return put()
    except (KeyboardInterrupt, Exception) as error:
        if not _is_there(folder, release_id):
            raise
        failed = error
    told = f"Published in {folder}; the ledger could not note it."
    if isinstance(failed, KeyboardInterrupt):
        raise KeyboardInterrupt(f"Interrupted. {told}")
    raise NotNotedError(f"{told} {failed}" if isinstance(failed, DpvizError) else told)


class NotNotedError(RefusedError):
    """The release is published, and the ledger does not know it."""


def _is_there(folder: Path, release_id: str) -> bool:
    try:
        return bool(json.loads((folder / MANIFEST).read_bytes())["identity"]["release_id"] == release_id)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _rescued(into: Callable[[Path], Path], folder: Path, say: Say) -> Path:
    """Where the release is: in its folder, or where that cannot be written in a temporary one.

    Raises:
        DpvizError: why it could not be written into its own folder, if neither takes it.
    """
    try:
        return into(folder)
    except NotNotedError:
        raise
    except DpvizError as error:
        failed, around = error, None
    try:
        around = Path(tempfile.mkdtemp(prefix="dpviz-"))
        found = into(around / "release")
    except (DpvizError, OSError) as error:
        failed = error if isinstance(error, NotNotedError) else failed
    else:
        say(f"{failed} It is in {found} instead: move it from there, temporary folders do not last.")
        return found
    if around is not None and not isinstance(failed, NotNotedError):
        _removed(around)
    raise failed.with_traceback(None) from None


def _removed(folder: Path) -> None:
    """Remove an empty folder, if it can be."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def open_account(order: Order, ledger: Ledger) -> Terms:
    """Check all that is public about an order, and give the terms of its account; nothing is spent or written.

    The mechanism runs once on no records at all: whatever settings, frame or budget make it fail, or its release impossible to
    describe, fails now, and its receipt says what it protects and what it costs.

    Raises:
        RefusedError: the mechanism is not private, states another price than it is paid, or the data have an account with other
            terms.
        BudgetError: a first draw without a cap.
        DpvizError: settings, frame or budget that do not fit.
    """
    if not getattr(order.mechanism, "private", False):
        raise RefusedError("NOT PRIVATE: this is a reference that shows what privacy costs; it is never drawn from private data.")
    if isinstance(order.data, Flows):
        order.mechanism.check_flows(order.data)
    else:
        order.mechanism.check(order.data.domain)
    rehearsed = dry_run(order.mechanism, order.data, order.budget)
    receipt = rehearsed.receipt
    _check_price(receipt, order)
    check_describable(rehearsed)
    cap = order.cap
    if cap is None:
        known = _known(order, ledger)
        if known is None:
            raise BudgetError("The ledger sees these data for the first time: say the most that may ever be spent on them (a cap).")
        cap = known.terms.cap
    person = order.person if receipt.unit == "person" else ""
    terms = Terms(unit=receipt.unit, neighbours=receipt.neighbours, cap=cap, person=person)
    terms.cost(order.budget)
    return terms


def _known(order: Order, ledger: Ledger) -> Account | None:
    """The account that the data have, by their marks or by their name; None if there is none yet."""
    return ledger.recognised(order.marks) or next((each for each in ledger.accounts() if each.name == order.dataset), None)


def _check_price(receipt: Receipt, order: Order) -> None:
    """Refuse a release that costs something else than the ledger counts: a mechanism that states a budget or a bound of its own."""
    if receipt.total != order.budget:
        raise RefusedError(f"The mechanism was handed {order.budget}, but says that it spends another budget; nothing is published.")
    if receipt.contributions != order.data.contributions:
        raise RefusedError("The mechanism says another number of records per unit than the data have; nothing is published.")


def _check_promise(receipt: Receipt, terms: Terms) -> None:
    """Refuse a release that protects something else than its account counts: a mechanism whose receipt depends on the data."""
    if (receipt.unit, receipt.neighbours) != (terms.unit, terms.neighbours):
        raise RefusedError("The mechanism protects something else than it said before; nothing is published.")


def once_spent(dataset: str, entry: int, work: Callable[[], T], *, kept: Path | None = None) -> T:
    """What `work` gives; whatever fails in it, the error says that the budget is spent and where the draw is, and quotes no library.

    The error is raised outside the handler, so that it carries neither a cause nor a context, whose text could be a cell.
    """
    told = f"The budget is spent: draw {entry} of {dataset!r} stands in the ledger, since noise may have been drawn."
    saved = told
    if kept is not None:
        saved = f"{told} Its release is kept beside the ledger: dpviz release CONFIG --paid {entry} publishes it."
    failed: BaseException
    try:
        return work()
    except DpvizError as error:
        failed = error if told in str(error) else type(error)(f"{error} {told if isinstance(error, NotNotedError) else saved}")
    except KeyboardInterrupt as error:
        failed = KeyboardInterrupt(f"{error}" if str(error) else f"Interrupted: nothing was published. {saved}")
    except MemoryError:
        failed = DpvizError(f"There is not enough memory. {saved}")
    except Exception as error:  # noqa: BLE001
        failed = DpvizError(f"The draw failed ({type(error).__name__}). {saved}")
    raise failed
