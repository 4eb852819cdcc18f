"""The one way to a publication, for command line and app: check what is public, spend, draw, describe, report, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from dpviz.data.flows import Flows
from dpviz.errors import BudgetError, DpvizError, RefusedError, SettingError
from dpviz.privacy.accounts import Account, Amount, Terms
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.expected import dry_run
from dpviz.publishing.opening import PrivateData
from dpviz.release.export import write_release
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import describe
from dpviz.release.members import FORMATS
from dpviz.release.publication import Publication
from dpviz.release.release import Release

Say = Callable[[str], object]
T = TypeVar("T")

REPORT = "report.html"


@dataclass(frozen=True, kw_only=True)
class Order:
    """One draw that is asked for: all but the records themselves is public.

    Attributes:
        data: the private counts.
        mechanism: built.
        budget: what it is handed.
        dataset: what the curator calls the data.
        marks: what the ledger recognises them by; see `marks_of`.
        cap: the most that the dataset may ever lose; None if the ledger has to know it already.
    """

    data: PrivateData
    mechanism: Any
    budget: Budget
    dataset: str
    marks: tuple[str, ...]
    cap: Budget | None = None

    def __repr__(self) -> str:
        return f"Order({self.mechanism.key}, {self.budget}, {self.data!r})"


@dataclass(frozen=True, kw_only=True)
class Paid:
    """A draw that the ledger counted before it was made.

    Attributes:
        release: what was drawn.
        account: the dataset's account just after this draw was paid for.
        entry: the draw's number in the ledger.
    """

    release: Release | FlowRelease
    account: Account
    entry: int


@dataclass(frozen=True, kw_only=True)
class Published:
    """What is on the disk now.

    Attributes:
        folder: with data, manifest and report.
        manifest: what the manifest says.
        account: the dataset's account.
    """

    folder: Path
    manifest: dict[str, Any]
    account: Account


@dataclass(frozen=True, kw_only=True)
class Words:
    """What only the curator can say, and where it goes.

    Attributes:
        name: of the publication.
        curator: who answers for it.
        folder: made by the release; must not exist, the folder around it must.
        description: what was counted, when and how.
        region: where.
        intended_use: what it is good for.
        formats: some of geoparquet, geojson and csv.
    """

    name: str
    curator: str
    folder: Path
    description: str = ""
    region: str = ""
    intended_use: str = ""
    formats: Sequence[str] = FORMATS

    def check(self) -> None:
        """Raise what would keep the release from being written, before it is paid for.

        Raises:
            SettingError: blank or unprintable texts, unknown formats, a folder that exists or that has none around it.
        """
        self.publication(draws=1, truth_seen=False)
        if "geoparquet" not in self.formats or not set(self.formats) <= set(FORMATS):
            raise SettingError(f"The formats must be some of {', '.join(FORMATS)}, geoparquet among them: only it reads back without loss.")
        if os.path.lexists(self.folder):
            raise SettingError("The folder for the release exists already; releases are never overwritten. Choose another one.")
        if not os.path.isdir(self.folder.parent):  # noqa: PTH112  (says no where a path may not be looked at; Path.is_dir raises)
            raise SettingError("The folder around the release's folder does not exist; make it first.")
        if not os.access(self.folder.parent, os.W_OK | os.X_OK):
            raise SettingError("The folder around the release's folder cannot be written: choose another one.")

    def publication(self, **known: Any) -> Publication:
        """The curator's part of the manifest, with what the ledger knows."""
        return Publication(
            name=self.name,
            curator=self.curator,
            description=self.description,
            region=self.region,
            intended_use=self.intended_use,
            **known,
        )


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
    words.check()
    paid = draw(order, ledger, purpose="release", say=say)
    return once_spent(paid.account.name, paid.entry, lambda: write(paid, words, ledger, say=say))


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
    entry = _pay(order, ledger, account.name, purpose)
    return once_spent(account.name, entry, lambda: _drawn(order, terms, ledger.account(account.name), entry, say))


def _drawn(order: Order, terms: Terms, account: Account, entry: int, say: Say) -> Paid:
    """The draw itself, with entropy of the operating system: nothing else may be published."""
    say(f"Spent {order.budget}; left: {amount_text(account.left)}. Drawing.")
    release = order.mechanism.release(order.data, order.budget, Entropy.system())
    _check_promise(release.receipt, terms)
    return Paid(release=release, account=account, entry=entry)


def _pay(order: Order, ledger: Ledger, name: str, purpose: str) -> int:
    contributions = order.data.contributions
    try:
        return ledger.spend(name, order.budget, mechanism=order.mechanism.key, purpose=purpose, contributions=contributions)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Interrupted while the draw was paid for: nothing was drawn; dpviz ledger show says what counts.") from None


def write(paid: Paid, words: Words, ledger: Ledger, *, say: Say = lambda _: None) -> Published:
    """Publish a draw that is already paid for, whether just now or earlier in Curate.

    Args:
        paid: the draw.
        words: what is said about it, and where it goes.
        ledger: says how many draws there were, and is told that this one is published.
        say: is told what happens.

    Raises:
        SettingError: the words; nothing is written.
        RefusedError: a simulation or a reference, or the ledger cannot be read or written.
        DpvizError: the disk does not take it; nothing is left behind.
    """
    from dpviz.view.report import report_html  # noqa: PLC0415  (its templates load slowly, and a draw alone needs none)

    words.check()
    paid.release.refuse_unpublishable()
    account = ledger.account(paid.account.name)
    publication = words.publication(
        draws=account.draws,
        truth_seen=account.truth_seen,
        dataset_spent=amount_text(account.spent),
        dataset_cap=str(account.terms.cap),
    )
    manifest = describe(paid.release, publication)
    say("Writing the report and the files.")
    files = {REPORT: report_html(paid.release, manifest)}
    folder = write_release(paid.release, words.folder, manifest, formats=words.formats, files=files)
    ledger.published(paid.entry, manifest["identity"]["release_id"])
    return Published(folder=folder, manifest=manifest, account=account)


def open_account(order: Order, ledger: Ledger) -> Terms:
    """Check all that is public about an order, and give the terms of its account; nothing is spent or written.

    The mechanism runs once on no records at all: whatever settings, frame or budget make it fail, fails now, and its receipt says
    what it protects.

    Raises:
        RefusedError: the mechanism is not private, or the data have an account with other terms.
        BudgetError: a first draw without a cap.
        DpvizError: settings, frame or budget that do not fit.
    """
    if not getattr(order.mechanism, "private", False):
        raise RefusedError("NOT PRIVATE: this is a reference that shows what privacy costs; it is never drawn from private data.")
    if isinstance(order.data, Flows):
        order.mechanism.check_flows(order.data)
    else:
        order.mechanism.check(order.data.domain)
    receipt = dry_run(order.mechanism, order.data, order.budget).receipt
    cap = order.cap
    if cap is None:
        known = ledger.recognised(order.marks) or next((each for each in ledger.accounts() if each.name == order.dataset), None)
        if known is None:
            raise BudgetError("The ledger sees these data for the first time: say the most that may ever be spent on them (a cap).")
        cap = known.terms.cap
    terms = Terms(unit=receipt.unit, neighbours=receipt.neighbours, cap=cap)
    terms.cost(order.budget)
    return terms


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
    except KeyboardInterrupt:
        failed = KeyboardInterrupt(f"Interrupted: nothing was published. {told}")
    except MemoryError:
        failed = DpvizError(f"There is not enough memory. {told}")
    except Exception as error:  # noqa: BLE001
        failed = DpvizError(f"The draw failed ({type(error).__name__}). {told}")
    raise failed


def amount_text(amount: Amount) -> str:
    """An amount of the ledger in words, such as "epsilon 0.5, delta 1e-08"; a delta of 0 is left out."""
    return ", ".join(f"{name} {_number(value)}" for name, value in amount.items() if value or name != "delta")


def _number(value: Fraction) -> str:
    return f"{float(value):.6g}"
