"""One release of a page: paid for in Curate, made with seeded noise in Teach, and compared with the truth where it may be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

from dpviz.app.ledger import Funding, LoadedData, make_order, pay_and_draw, session_draws
from dpviz.app.page_config import PageConfig
from dpviz.app.page_state import UNPAID, PageState, truth_allowed
from dpviz.app.session import result_slot
from dpviz.errors import RefusedError
from dpviz.privacy.entropy import Entropy
from dpviz.release.nouns import AnyRelease

Output = TypeVar("Output", bound=AnyRelease)
Data = TypeVar("Data", bound=LoadedData)
Config = TypeVar("Config", bound=PageConfig)
Evaluation = TypeVar("Evaluation")
Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class OneRelease(Generic[Output, Data, Config, Evaluation]):
    """A release of one mechanism, kept until the next one.

    Attributes:
        release: the release.
        data: data that the release was made from.
        config: configuration of the draw.
        seconds: seconds that the release took on the server.
        number: in Curate the number of the draw in this session, in Teach the number of the run; from 1 on.
        account: name of the account in the ledger that paid; None in Teach.
        evaluation: the comparison with the truth, made together with the run; None in Curate, where it is made when it may be seen.
    """

    release: Output
    data: Data
    config: Config
    seconds: float
    number: int
    account: str | None = None
    evaluation: Evaluation | None = None

    @property
    def title(self) -> str:
        """The title of its mechanism."""
        return str(self.config.family.choices[self.release.mechanism].title)


def count_draw(page: PageState) -> int:
    """Count one more draw of this session in Curate; return its number, from 1 on."""
    key = f"{page.prefix}draws"
    st.session_state[key] = st.session_state.get(key, 0) + 1
    return int(st.session_state[key])


def drawn_slot(page: PageState) -> str:
    """Return the key of the slot that keeps what a page released last in Curate."""
    return f"{page.prefix}drawn Curate"


def pay_for_release(page: PageState, kind: Callable[..., Any], data: Any, funding: Funding | None) -> None:
    """Release once in Curate and keep the result. The ledger counts the draw before any noise is drawn.

    Args:
        page: state of the page; its configuration has mechanism and budget.
        kind: makes the result that is kept, a `OneRelease`.
        data: data as loaded.
        funding: account that pays for the draw.

    Raises:
        SettingError: a reference, which is not private, is chosen; nothing is spent.
        DpvizError: the draw failed; the text says whether the budget is spent nevertheless.
    """
    page.refuse_reference()
    if funding is None:
        raise RefusedError(UNPAID)
    how = page.config()
    mechanism, budget = how.build(), how.budget()
    mechanism.check_data(data.private)
    number = count_draw(page)
    slot, draws = result_slot(drawn_slot(page)), session_draws()  # from here on no call into Streamlit: it could lose the draw
    start = time.perf_counter()
    paid = pay_and_draw(data, make_order(data, mechanism, budget, funding), draws)
    seconds, account = time.perf_counter() - start, paid.account.name
    slot.append(kind(release=paid.release, data=data, config=how, seconds=seconds, number=number, account=account))


def make_run(
    kind: Callable[..., Made], data: Any, how: PageConfig, check: Callable[[], None], evaluate: Callable[[Any, Any], object]
) -> Made:
    """Release public data in Teach, with seeded noise, and compare the release with the truth.

    Args:
        kind: makes the result, a `OneRelease`.
        data: public data.
        how: mechanism, settings, budget and number of the run, which is the seed.
        check: called now and then; its exception ends the run.
        evaluate: compares a release with private counts.
    """
    mechanism, start = how.build(), time.perf_counter()
    mechanism.check_data(data.private)
    release = mechanism.release(data.private, how.budget(), Entropy.seeded(how.run).interrupted_by(check))
    seconds = time.perf_counter() - start
    check()
    return kind(release=release, data=data, config=how, seconds=seconds, number=how.run, evaluation=evaluate(release, data.private))


def find_truth(
    page: PageState, what: OneRelease[Any, Any, Any, Evaluation], evaluate: Callable[[Any, Any], Evaluation]
) -> Evaluation | None:
    """Return the comparison of a release with the truth; None unless `truth_allowed`.

    Args:
        page: state of the page, whose session keeps the comparison.
        what: the release.
        evaluate: compares it with private counts, where that was not done yet.
    """
    if not truth_allowed(what.data, what.account):
        return None
    if what.evaluation is not None:
        return what.evaluation
    key = f"{page.prefix}evaluation"
    number, evaluation = st.session_state.get(key, (None, None))
    if number != what.number:
        evaluation = evaluate(what.release, what.data.private)
        st.session_state[key] = (what.number, evaluation)
    return evaluation  # type: ignore[no-any-return]
