"""What a page releases: paid for in Curate, made with seeded noise in Teach, and compared with the truth where it may be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, cast

import streamlit as st

from dpviz.app.session.ledger import Funding, LoadedData, make_order, open_ledger
from dpviz.app.session.page_state import UNPAID, FamilyState, truth_allowed
from dpviz.app.session.widgets import newest_result, result_slot
from dpviz.app.state.draft import Draft
from dpviz.errors import RefusedError
from dpviz.mechanisms.base import AnyLevel
from dpviz.privacy.entropy import Entropy
from dpviz.publishing import publish
from dpviz.publishing.publish import PaidRelease
from dpviz.release.base import NoisyRelease

Output = TypeVar("Output", bound=NoisyRelease)
Data = TypeVar("Data", bound=LoadedData)
Evaluation = TypeVar("Evaluation")


@dataclass(frozen=True, kw_only=True)
class OneRelease(Generic[Output, Data, Evaluation]):
    """A release of one mechanism, kept until the next one.

    Attributes:
        release: the release.
        data: data that the release was made from.
        draft: what was chosen for the draw, with its run alone.
        seconds: seconds that the release took on the server.
        number: in Curate the number of the draw in this session, in Teach the number of the run; from 1 on.
        paid: the payment in the ledger; None in Teach.
        evaluation: the comparison with the truth, made together with the run; None in Curate, where it is made when it may be seen.
        beside: a release of another mechanism that the same press paid for; None if there is none.
        bought: the level (or pair) that was looked at before it was paid for, and what was expected of it, in a phrase; None in Teach.
    """

    release: Output
    data: Data
    draft: Draft
    seconds: float
    number: int
    paid: PaidRelease | None = None
    evaluation: Evaluation | None = None
    beside: Self | None = None
    bought: tuple[AnyLevel, str] | None = None

    @property
    def title(self) -> str:
        """The title of its mechanism."""
        return str(self.draft.kind.family.choices[self.release.mechanism].title)

    @property
    def account(self) -> str | None:
        """The name of the account in the ledger that paid; None in Teach."""
        return None if self.paid is None else str(self.paid.account.name)

    @property
    def runs(self) -> list[Self]:
        """All releases of the same press, this one last."""
        return [self] if self.beside is None else [*self.beside.runs, self]

    @property
    def compared(self) -> Evaluation:
        """The comparison with the truth of a run in Teach, which was made together with it.

        Raises:
            RefusedError: the run was made in Curate.
        """
        if self.evaluation is None:
            raise RefusedError("The truth of private counts is shown behind its switch alone.")
        return self.evaluation


def drawn_slot(page: FamilyState) -> str:
    """Return the key of the slot that keeps what a page released last in Curate."""
    return f"{page.prefix}drawn Curate"


@dataclass(frozen=True, kw_only=True)
class Releases(Generic[Output, Data, Evaluation]):
    """How a page makes its releases.

    Attributes:
        page: state of the page.
        evaluate: compares a release with private counts.
        refuse: raises an error if a run in Teach is too large.
    """

    page: FamilyState
    evaluate: Callable[[Any, Any], Evaluation]
    refuse: Callable[[Output], object] = lambda _: None

    def newest(self) -> OneRelease[Output, Data, Evaluation] | None:
        """Return what was released last in Curate; None before the first release."""
        return newest_result(drawn_slot(self.page))  # type: ignore[no-any-return]

    def newest_payments(self) -> dict[int, PaidRelease]:
        """Return what the last press in Curate paid for, by the numbers of the payments, the newest first."""
        newest = self.newest()
        return {} if newest is None else {run.paid.entry: run.paid for run in reversed(newest.runs) if run.paid is not None}

    def pay(self, data: Any, funding: Funding | None, bought: tuple[AnyLevel, str] | None = None) -> None:
        """Release once with each mechanism in Curate and keep the results. The ledger counts each draw before its noise is drawn.

        Args:
            data: data as loaded.
            funding: account that pays for the draws.
            bought: a level, and what is expected of it from the first mechanism, in a phrase.

        Raises:
            SettingError: a reference, which is not private, is chosen; nothing is spent.
            DpvizError: a draw failed, and no further one was made; those before are kept. The text says whether the budget is spent
                nevertheless.
        """
        self.page.refuse_reference()
        if funding is None:
            raise RefusedError(UNPAID)
        how = self.page.draft
        mechanisms = how.build_all()
        for mechanism in mechanisms:
            mechanism.check_data(data.counts)
        drawn = f"{self.page.prefix}draws"
        number = st.session_state[drawn] = st.session_state.get(drawn, 0) + 1
        slot, ledger = result_slot(drawn_slot(self.page)), open_ledger()  # from here on no call into Streamlit: it could lose the draw
        made: OneRelease[Output, Data, Evaluation] | None = None
        for mechanism in mechanisms:
            start = time.perf_counter()
            paid = publish.draw(make_order(data, mechanism, how.budget_for(mechanism), funding), ledger, keeps=True)
            made = OneRelease(
                release=cast("Output", paid.release),
                data=data,
                draft=how,
                seconds=time.perf_counter() - start,
                number=number,
                paid=paid,
                beside=made,
                bought=bought,
            )
            slot.append(made)

    def run(self, data: Any, how: Draft, check: Callable[[], None]) -> OneRelease[Output, Data, Evaluation]:
        """Release public data in Teach, with seeded noise, and compare the release with the truth.

        Args:
            data: public data.
            how: mechanism, settings, budget and number of the run, which is the seed.
            check: called now and then; its exception ends the run.
        """
        mechanism, start = how.build(), time.perf_counter()
        mechanism.check_data(data.counts)
        release = mechanism.release(data.counts, how.budget(), Entropy.seeded(how.run.seed).interrupted_by(check))
        seconds = time.perf_counter() - start
        check()
        evaluation = self.evaluate(release, data.counts)
        self.refuse(release)
        return OneRelease(release=release, data=data, draft=how, seconds=seconds, number=how.run.seed, evaluation=evaluation)

    def find_truths(self, what: OneRelease[Output, Data, Evaluation]) -> list[Evaluation] | list[None]:
        """Compare the releases of a press with the truth, one evaluation for each; None for each unless `truth_allowed`."""
        if not truth_allowed(what.data, what.account):
            return [None] * len(what.runs)
        if what.evaluation is not None:
            return [run.compared for run in what.runs]
        key, drawn = f"{self.page.prefix}evaluation", (what.number, len(what.runs))
        evaluated, evaluations = st.session_state.get(key, (None, []))
        if evaluated != drawn:
            evaluations = [self.evaluate(run.release, run.data.counts) for run in what.runs]
            st.session_state[key] = (drawn, evaluations)
        return evaluations  # type: ignore[no-any-return]
