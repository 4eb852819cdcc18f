"""Payments, and looks at the truth, recorded in the ledger for the pages.

A draw on private data is paid for before its noise is drawn, and is kept for publishing. A look at the truth is recorded before the truth
is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import streamlit as st

from dpviz.app.server.class_mode import is_class, refuse_in_class
from dpviz.app.session.widgets import show_error
from dpviz.app.state.run import convert_to_currency
from dpviz.errors import RefusedError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.accounts import Account
from dpviz.privacy.budget import Budget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing import publish
from dpviz.publishing.config import CategoriesPart, DataConfig, DataPart, DomainPart, RegionsPart
from dpviz.publishing.private_data import PrivateData

_NOT_RECORDED = "The truth is not shown, since the ledger cannot record that it is looked at."
Draws = Sequence[tuple[AnyMechanism, Budget]]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The origin of data, as a saved configuration names it. It holds a file's name or path, and is never part of a release.

    Attributes:
        data_part: the file or sample, and its columns.
        domain: the public frame of points.
        regions: the public frame of trips.
        destinations: the public frame of the ends of trips, if they have a hierarchy of their own.
        categories: what is counted beside the place; None for nothing.
        bad_rows: whether rows that cannot be read are left out ("drop") or refused ("refuse").
    """

    data_part: DataPart
    domain: DomainPart | None = None
    regions: RegionsPart | None = None
    destinations: RegionsPart | None = None
    categories: CategoriesPart | None = None
    bad_rows: str = "drop"

    @property
    def inputs(self) -> DataConfig:
        """Data and public frame as a configuration has them."""
        frame = {"domain": self.domain, "regions": self.regions, "destinations": self.destinations, "categories": self.categories}
        return DataConfig(data=self.data_part, **frame)  # type: ignore[arg-type]


def open_ledger() -> Ledger:
    """Open the ledger; a class has none."""
    refuse_in_class("ledger")
    return Ledger()


class IdentifiedData(Protocol):
    """Data that the ledger and the caches can recognise."""

    @property
    def digest(self) -> str:
        """A digest that identifies the content."""
        ...

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprints by which the ledger recognises the data."""
        ...

    @property
    def bundled(self) -> bool:
        """Whether the data are a sample, which comes with the package and is public."""
        ...


class LoadedData(IdentifiedData, Protocol):
    """Private data as a page has loaded them: points or trips."""

    @property
    def counts(self) -> PrivateData:
        """The counts."""
        ...

    @property
    def title(self) -> str:
        """The name of the data on screen."""
        ...

    @property
    def unit(self) -> str:
        """What is counted."""
        ...

    @property
    def source(self) -> Source:
        """The origin of the data."""
        ...


@dataclass(frozen=True, kw_only=True)
class Funding:
    """The account that would pay for a draw.

    Attributes:
        name: name of the dataset's account, or the name that the curator typed for a new account.
        cap: cap of a new account, which the first draw opens; None for an existing account.
        account: the account in the ledger, or as the first draw will open it; None if there is neither.
        problem: why nothing may be drawn; None if a draw is allowed.
        known: whether the ledger could be read; only then does a missing account mean that nothing was spent.
    """

    name: str
    cap: Budget | None
    account: Account | None
    problem: str | None
    known: bool = True


def make_order(data: LoadedData, mechanism: AnyMechanism, budget: Budget, funding: Funding) -> publish.Order:
    """Make the order for `publish.draw` from the data, the mechanism, the budget and the account that pays."""
    cap = funding.account.terms.cap if funding.account is not None else funding.cap
    return publish.Order(
        data=data.counts,
        mechanism=mechanism,
        budget=convert_to_currency(mechanism, budget, cap),
        dataset=funding.name,
        fingerprints=data.fingerprints,
        cap=funding.cap,
        person=data.source.data_part.person or "",
        may_be_empty=data.source.data_part.may_be_empty,
    )


def seen_digests() -> set[str]:
    """Return digests of the datasets whose truth was looked at in this session, in either mode; the ledger has recorded these looks."""
    return st.session_state.setdefault("looked_at", set())  # type: ignore[no-any-return]


def record_public_look(data: IdentifiedData) -> bool:
    """Record in the ledger that Teach or Compare shows the truth, before it is shown, whether or not the data have an account.

    Returns:
        Whether the truth may be shown. If the look cannot be recorded, the truth may not be shown, and the page shows the reason: a later
        release of these data could claim that nobody looked at the truth. Samples are public, and are shown even without a ledger.
    """
    if is_class():
        return data.bundled
    recorded: set[str] = st.session_state.setdefault("recorded fingerprints", set())  # those of counts change with the public frame
    if data.digest in seen_digests() and (data.bundled or recorded.issuperset(data.fingerprints)):
        return True
    try:
        open_ledger().note_truth_seen(data.fingerprints)
    except RefusedError as error:
        if data.bundled:
            return True
        another = "" if "DPVIZ_LEDGER" in str(error) else " DPVIZ_LEDGER can name a ledger that can be written."
        show_error(f"{_NOT_RECORDED} {error}{another}")
        return False
    seen_digests().add(data.digest)
    recorded.update(data.fingerprints)
    return True


def record_private_look(data: LoadedData, account: str) -> bool:
    """Record in the ledger that the truth is looked at, before it is shown. Return whether that succeeded; if not, show the reason."""
    recorded = st.session_state.setdefault("recorded looks", set())
    if data.digest not in recorded:
        try:
            open_ledger().note_account_truth_seen(account)
        except RefusedError as error:
            show_error(f"{_NOT_RECORDED} {error}")
            return False
        recorded.add(data.digest)
        seen_digests().add(data.digest)
    return True


def record_search(data: IdentifiedData) -> bool:
    """Record in the ledger that columns are searched for persons, before that is done. Return whether that succeeded; if not, show why."""
    recorded: set[str] = st.session_state.setdefault("recorded searches", set())
    if not recorded.issuperset(data.fingerprints):
        try:
            open_ledger().note_persons_searched(data.fingerprints)
        except RefusedError as error:
            show_error(f"The columns are not searched, since the ledger cannot record it. {error}")
            return False
        recorded.update(data.fingerprints)
    return True


def show_missing_ledger() -> None:
    """Say that the ledger that was named is not there, as long as that is so."""
    try:
        open_ledger().exists()
    except RefusedError as error:
        show_error(f"{error} Until then nothing can be paid for here; Teach works with data that are public.")


def describe_look(account: str) -> str:
    """Return the manifest's statement on whether the truth was looked at, as a text."""
    try:
        seen = open_ledger().account(account).truth_seen
    except RefusedError:
        return "not known, the ledger cannot be read"
    return "yes, recorded for the manifest" if seen else "no"
