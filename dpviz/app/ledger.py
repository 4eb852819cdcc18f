"""Draws on private data: paid for in the ledger before noise is drawn, and kept for publishing; looks at the truth, noted first."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import streamlit as st

from dpviz.app.session import result_slot, show_error
from dpviz.errors import RefusedError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.accounts import Account
from dpviz.privacy.budget import ApproxBudget, Budget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing import publish
from dpviz.publishing.config import DataPart, DomainPart, RegionsPart
from dpviz.publishing.private_data import PrivateData

MOST_KEPT = 12
_NOT_RECORDED = "The truth is not shown, since that it is looked at cannot be recorded."
Draws = Sequence[tuple[AnyMechanism, Budget]]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where data come from, as a saved configuration says it. Holds a file's name or path: never part of a release.

    Attributes:
        data: the file or sample, and its columns.
        domain: the public frame of points.
        regions: the public frame of trips.
        destinations: where trips end, if that is another hierarchy.
    """

    data: DataPart
    domain: DomainPart | None = None
    regions: RegionsPart | None = None
    destinations: RegionsPart | None = None


class IdentifiedData(Protocol):
    """Data that the ledger and the caches can recognise."""

    @property
    def digest(self) -> str:
        """Stands for the content."""
        ...

    @property
    def marks(self) -> tuple[str, ...]:
        """What the ledger recognises them by."""
        ...

    @property
    def bundled(self) -> bool:
        """Whether they are a sample, which comes with the package and is public."""
        ...


class LoadedData(IdentifiedData, Protocol):
    """Private data as a page has loaded them: points or trips."""

    @property
    def private(self) -> PrivateData:
        """The counts."""
        ...

    @property
    def title(self) -> str:
        """For the screen."""
        ...

    @property
    def unit(self) -> str:
        """What is counted."""
        ...

    @property
    def source(self) -> Source:
        """Where they come from."""
        ...


@dataclass(frozen=True, kw_only=True)
class Funding:
    """The account that would pay for a draw.

    Attributes:
        name: of the dataset's account, or the one that the curator typed for a new account.
        cap: of an account that the first draw opens; None for one that is there.
        account: as the ledger knows it; for a new one, what it will be.
        problem: why nothing may be drawn; None if it may.
        known: whether the ledger could be read, so that no account means that nothing was spent.
    """

    name: str
    cap: Budget | None
    account: Account | None
    problem: str | None
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class PaidDraw:
    """A draw of this session that is paid for, and may be published.

    Attributes:
        paid: the release and its entry in the ledger.
        data: what it was drawn from.
        mechanism: that drew it.
        time: when, UTC.
    """

    paid: publish.PaidRelease
    data: LoadedData
    mechanism: AnyMechanism
    time: datetime


@dataclass(frozen=True, kw_only=True)
class SessionDraws:
    """What this session keeps of draws that are paid for: plain objects, taken out of the session state before a draw is paid.

    Attributes:
        kept: the last draws that are paid for, oldest first.
        published: the ledger's numbers of draws that were published.
    """

    kept: deque[PaidDraw]
    published: set[int]

    def keep(self, paid: publish.PaidRelease, data: LoadedData, mechanism: AnyMechanism) -> PaidDraw:
        """Keep a draw that is paid for, so that it can be published."""
        made = PaidDraw(paid=paid, data=data, mechanism=mechanism, time=datetime.now(UTC))
        self.kept.append(made)
        return made


def session_draws() -> SessionDraws:
    """The draws of this session, for a run that may be ended by a click."""
    published: set[int] = st.session_state.setdefault("published entries", set())
    return SessionDraws(kept=result_slot("kept draws", MOST_KEPT), published=published)


def in_currency(mechanism: AnyMechanism, budget: Budget, cap: Budget | None) -> Budget:
    """The budget in the account's currency: (epsilon, delta) is converted to rho where the account counts rho."""
    if isinstance(cap, ZcdpBudget) and isinstance(budget, ApproxBudget):
        return budget.to_zcdp(conversion=mechanism.conversion)
    return budget


def make_order(data: LoadedData, mechanism: AnyMechanism, budget: Budget, purse: Funding) -> publish.Order:
    """The order to the ledger and the mechanism: what to draw, and what pays for it."""
    cap = purse.account.terms.cap if purse.account is not None else purse.cap
    return publish.Order(
        data=data.private,
        mechanism=mechanism,
        budget=in_currency(mechanism, budget, cap),
        dataset=purse.name,
        marks=data.marks,
        cap=purse.cap,
        person=data.source.data.person or "",
    )


def pay_and_draw(data: LoadedData, order: publish.Order, draws: SessionDraws) -> publish.PaidRelease:
    """Pay for one draw, make it, and keep it for publishing. Nothing here calls into Streamlit: such a call could lose the draw.

    Args:
        data: that are drawn from.
        order: to the ledger and the mechanism.
        draws: where the draw is kept.

    Raises:
        DpvizError: nothing was drawn; the text says so if it is spent all the same.
    """
    paid = publish.draw(order, Ledger())
    draws.keep(paid, data, order.mechanism)
    return paid


def paid_draws() -> list[PaidDraw]:
    """The last draws of this session that are paid for, oldest first."""
    return list(st.session_state.get("kept draws", ()))


def seen_digests() -> set[str]:
    """Digests of datasets whose truth was looked at in this session, in either mode: the ledger has recorded these looks."""
    return st.session_state.setdefault("looked_at", set())  # type: ignore[no-any-return]


def record_public_look(data: IdentifiedData) -> bool:
    """Record in the ledger that Teach or Compare shows the truth, before it is shown, whether or not the data have an account.

    Returns:
        Whether the truth may be shown. If the look cannot be recorded it may not, and the reason is shown: a release of these data could
        later claim that the truth was not looked at. Samples are public, and are shown without a ledger, too.
    """
    if data.digest in seen_digests():
        return True
    try:
        Ledger().note_truth_seen(data.marks)
    except RefusedError as error:
        if data.bundled:
            return True
        show_error(f"{_NOT_RECORDED} {error} DPVIZ_LEDGER can name a file that can be written.")
        return False
    seen_digests().add(data.digest)
    return True


def record_private_look(data: LoadedData, account: str) -> bool:
    """Record in the ledger that the truth is looked at, before it is shown; if that fails, nothing is shown."""
    recorded = st.session_state.setdefault("looks told", set())
    if data.digest not in recorded:
        try:
            Ledger().note_account_truth_seen(account)
        except RefusedError as error:
            show_error(f"{_NOT_RECORDED} {error}")
            return False
        recorded.add(data.digest)
        seen_digests().add(data.digest)
    return True


def describe_look(account: str) -> str:
    """Whether the truth was looked at, as the manifest will say it."""
    try:
        seen = Ledger().account(account).truth_seen
    except RefusedError:
        return "not known, the ledger cannot be read"
    return "yes, recorded for the manifest" if seen else "no"
