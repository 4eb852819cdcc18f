"""The one way to a publication, for command line and app: check what is public, spend, draw, describe, report, write."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dpviz.data.flows import Flows
from dpviz.errors import BudgetError, DpvizError, RefusedError
from dpviz.privacy.accounts import Account, Amount, Terms, exact_text, in_words
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.expected import dry_run
from dpviz.publishing.order import Order, Paid, Published, Words
from dpviz.release.export import MANIFEST, write_release
from dpviz.release.manifest import check_describable, describe

__all__ = ["REPORT", "Order", "Paid", "Published", "Words", "amount_text", "draw", "once_spent", "open_account", "publish", "write"]

Say = Callable[[str], object]
T = TypeVar("T")

REPORT = "report.html"


def publish(order: Order, words: Words, ledger: Ledger, *, say: Say = lambda _: None) -> Published:
    """Check everything that is public, spend, draw with entropy of the operating system, describe, report and write.

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
    import dpviz.view.report  # noqa: F401, PLC0415  (what is missing must be missed before anything is spent)

    words.check()
    paid = draw(order, ledger, purpose="release", say=say)
    return once_spent(paid.account.name, paid.entry, lambda: write(paid, words, ledger, say=say, rescue=True))


def draw(order: Order, ledger: Ledger, *, purpose: str = "draw", say: Say = lambda _: None) -> Paid:
    """Pay for one draw and make it: the way of Curate, and the first half of `publish`.

    Args:
        order: what is drawn.
        ledger: counts it before it is made.
        purpose: "draw" to look at, "release" to publish.
        say: is told what happens.
    """
    terms = open_account(order, ledger)
    account = ledger.open(order.dataset, order.marks, terms)
    if account.name != order.dataset:
        say(f"The ledger knows these data as {account.name!r}: this draw counts there.")
    after = replace(account, spent=account.after(order.budget), draws=account.draws + 1)
    told = f"Spent {order.budget}; left: {amount_text(after.left)}. Drawing."
    entry = _pay(order, ledger, account, purpose)
    return once_spent(account.name, entry, lambda: _drawn(order, after, entry, lambda: say(told)))


def _drawn(order: Order, account: Account, entry: int, say: Callable[[], object]) -> Paid:
    """The draw itself, with entropy of the operating system: nothing else may be published."""
    say()
    release = order.mechanism.release(order.data, order.budget, Entropy.system())
    _check_price(release.receipt, order)
    _check_promise(release.receipt, account.terms)
    return Paid(release=release, account=account, entry=entry)


def _pay(order: Order, ledger: Ledger, account: Account, purpose: str) -> int:
    contributions = order.data.contributions
    try:
        return ledger.spend(account, order.budget, mechanism=order.mechanism.key, purpose=purpose, contributions=contributions)
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
        known = ledger.recognised(order.marks) or next((each for each in ledger.accounts() if each.name == order.dataset), None)
        if known is None:
            raise BudgetError("The ledger sees these data for the first time: say the most that may ever be spent on them (a cap).")
        cap = known.terms.cap
    terms = Terms(unit=receipt.unit, neighbours=receipt.neighbours, cap=cap)
    terms.cost(order.budget)
    return terms


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


def once_spent(dataset: str, entry: int, work: Callable[[], T]) -> T:
    """What `work` gives; whatever fails in it, the error says that the budget is spent, and quotes no library.

    The error is raised outside the handler, so that it carries neither a cause nor a context, whose text could be a cell.
    """
    told = f"The budget is spent: draw {entry} of {dataset!r} stands in the ledger, since noise may have been drawn."
    failed: BaseException
    try:
        return work()
    except DpvizError as error:
        failed = error if told in str(error) else type(error)(f"{error} {told}")
    except KeyboardInterrupt as error:
        failed = KeyboardInterrupt(f"{error}" if str(error) else f"Interrupted: nothing was published. {told}")
    except MemoryError:
        failed = DpvizError(f"There is not enough memory. {told}")
    except Exception as error:  # noqa: BLE001
        failed = DpvizError(f"The draw failed ({type(error).__name__}). {told}")
    raise failed


def amount_text(amount: Amount) -> str:
    """An amount of the ledger in words, rounded down, such as "epsilon 0.5, delta 1E-8"; a delta of 0 is left out."""
    return in_words({name: value for name, value in amount.items() if value or name != "delta"})
