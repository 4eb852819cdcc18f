"""The third card of Curate: which errors to expect at a level for this budget, and which ε a wanted error needs. All from public values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from dpviz.amounts import format_decimal
from dpviz.app.cards import GOOD, Cards
from dpviz.app.fields import in_range, show_problem
from dpviz.app.ledger import Funding
from dpviz.app.page_state import PageState
from dpviz.app.session import carry_out, show_error
from dpviz.app.words import amount_text
from dpviz.arrays import Integers
from dpviz.data.points import PointCounts
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.publishing.dry_run import FoundEpsilon, WantedError, compute_error, dry_run, find_epsilon
from dpviz.publishing.private_data import PrivateData
from dpviz.publishing.public_guess import EVEN, SPREADS, count_residents, guess_points
from dpviz.view.escape import markdown

T = TypeVar("T")
MOST_RECORDS, MOST_RESIDENTS, USUAL_RECORDS = 10_000_000, 1_000_000, 100_000
_KEPT = 60  # results that a session keeps
_TIMES = 10  # from which a ratio of error and count is no percentage
_MOST_BURIED = 0.5  # share of the parts whose guessed count is below the noise, from which the card warns


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The levels of a page for the third card.

    Attributes:
        names: of the levels, coarsest first, by their numbers.
        usual: the level that is chosen at first.
        part: what a count of a level is, such as "square".
        parts_at: returns how many parts a level has.
    """

    names: dict[int, str]
    usual: int
    part: str
    parts_at: Callable[[int], int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """What is expected of a level.

    Attributes:
        level: the level.
        error: root mean square error of a count, from noise alone.
        guess: guessed counts of the parts of the level; None without a guess.
    """

    level: int
    error: float
    guess: Integers | None


def show_expected(
    page: PageState, cards: Cards, frame: PrivateData | None, levels: Levels | None, unit: str, funding: Funding | None
) -> Expected | None:
    """Show what error a release would have, and find the ε for a wanted error.

    Args:
        page: state of the page.
        cards: the cards; the third one is written.
        frame: domain or regions, unit and bound of what would be released; its records are not used. None while they are missing.
        levels: the levels of that frame; None while it is missing.
        unit: what is counted, in the plural.
        funding: the account that would pay; None while it is not known.

    Returns:
        What is expected; None while the frame is missing or does not fit the mechanism.
    """
    if frame is None or levels is None:
        st.caption("The expected error is shown here once whom and where are said.")
        return None
    level = _choose_level(page, levels)
    how = page.config()
    records, spread = _choose_guess(page, frame, unit, lambda: _depends_on_data(how, frame))
    wanted = WantedError(error=1.0, level=level, delta=float(how.delta), records=records, spread=spread)
    try:
        mechanism = how.build()
        error = _kept(
            ("error", mechanism, _frame_key(frame), str(how.epsilon), wanted),
            lambda: compute_error(mechanism, frame, wanted, float(how.epsilon)),
        )
    except DpvizError as problem:
        cards.ask(GOOD, "Choose settings that fit: the expected error cannot be computed.")
        show_error(str(problem))
        return None
    guess = None if records is None or not isinstance(frame, PointCounts) else _guess(frame, records, spread, level)
    _describe(error, levels, level, records, guess, unit)
    left = None if funding is None or funding.account is None else funding.account.left.get("epsilon")
    _find_epsilon(page, frame, mechanism, wanted, unit, left)
    if funding is not None and funding.account is not None:
        st.caption(f"The cap leaves {amount_text(funding.account.left)}.")
    return Expected(level=level, error=error, guess=guess)


def _choose_level(page: PageState, levels: Levels) -> int:
    key, numbers = f"good level {page.key}", list(levels.names)
    if st.session_state.get(key) not in numbers:
        st.session_state[key] = levels.usual
    if len(numbers) == 1:
        return numbers[0]
    return int(
        st.select_slider("At level", numbers, key=key, persist_state="session", format_func=lambda number: markdown(levels.names[number]))
    )


def _choose_guess(page: PageState, frame: PrivateData, unit: str, needs_guess: Callable[[], bool]) -> tuple[int | None, str]:
    """Ask for a public guess of how many records there are and, of points, how they lie.

    Where the mechanism's partitions depend on the data and nothing is typed, the residents of towns are the guess; elsewhere there is
    none then.
    """
    key, label = f"good records {page.key}", f"How many {unit}, about?"
    left, right = st.columns(2, vertical_alignment="bottom")
    text = "A guess from public knowledge, not from the data. With it, errors are compared with counts."
    records = left.number_input(label, value=None, step=1000, key=key, persist_state="session", help=text, placeholder="a public guess")
    good = show_problem(key, in_range(label, 1, MOST_RECORDS, optional=True)(records))
    if not isinstance(frame, PointCounts):
        return (int(records) if records is not None and good else None), EVEN
    spread = str(right.selectbox("They lie", SPREADS[::-1], key=f"good spread {page.key}", persist_state="session"))
    if records is not None and good:
        return int(records), spread
    if not needs_guess():
        return None, spread
    residents = min(count_residents(frame.domain), MOST_RESIDENTS)
    if not residents:
        st.caption(f"This mechanism chooses partitions by the data. As if there were {USUAL_RECORDS:,} {unit}: type a better guess.")
        return USUAL_RECORDS, spread
    st.caption(
        f"This mechanism chooses partitions by the data. As if each of {residents:,} residents of towns had one: type a better guess."
    )
    return residents, spread


def _describe(error: float, levels: Levels, level: int, records: int | None, guess: Integers | None, unit: str) -> None:
    """Say how large the error is, and warn where most counts will be noise."""
    noise = f"**± {format_decimal(error, 2)} {unit}**"
    if records is None:
        st.markdown(f"{noise} in a {levels.part} of {markdown(levels.names[level])}")
        return
    average = records / levels.parts_at(level)
    share = f"{format_decimal(100 * error / average, 2)} %" if error < _TIMES * average else f"{error / average:,.0f} times the count"
    st.markdown(f"{noise} in a {levels.part} of {markdown(levels.names[level])}, {share} of an average one ({format_decimal(average, 2)})")
    buried = float((guess < error).mean()) if guess is not None else float(average < error)
    if buried > _MOST_BURIED:
        st.warning(
            f"{buried:.0%} of these {levels.part}s have fewer {unit} than their noise. Read a coarser level, or choose a larger ε or fewer"
            " levels."
        )


def _find_epsilon(
    page: PageState, frame: PrivateData, mechanism: AnyMechanism, wanted: WantedError, unit: str, left_to_spend: Fraction | None
) -> None:
    """Ask for a wanted error, and find the ε that it needs once that is asked for; one above what is left is not offered."""
    key, label = f"good wanted {page.key}", f"Wanted: at most ± {unit}"
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    error = left.number_input(label, value=None, key=key, persist_state="session", placeholder="for example 20", format="%.12g")
    if not show_problem(key, in_range(label, 1e-6, 1e12, optional=True)(error)) or error is None:
        return
    question = WantedError(error=float(error), level=wanted.level, delta=wanted.delta, records=wanted.records, spread=wanted.spread)
    slot = ("epsilon", mechanism, _frame_key(frame), question)
    asked = right.button("Which ε?", key=f"good find {page.key}", width="stretch")
    if not asked and slot not in _results():
        return
    try:
        with st.spinner("Searching ..."):
            found: FoundEpsilon = _kept(slot, lambda: find_epsilon(mechanism, frame, question))
    except DpvizError as problem:
        show_error(str(problem))
        return
    if found.epsilon is None:
        st.caption(f":orange[{markdown(found.note)}]")
        return
    if left_to_spend is not None and Fraction(str(found.epsilon)) > left_to_spend:
        st.caption(f":orange[That needs ε {found.epsilon:g}, more than the cap leaves: read a coarser level, or want less.]")
        return
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.markdown(f"That needs **ε {found.epsilon:g}**.", help=markdown(found.note))
    right.button(
        f"Use ε {found.epsilon:g}",
        key=f"good use {page.key}",
        width="stretch",
        on_click=carry_out(lambda: page.change(epsilon=found.epsilon)),
    )


def _guess(frame: PointCounts, records: int, spread: str, level: int) -> Integers:
    """Return the guessed counts of the squares of a level."""
    points = _kept(("guess", _frame_key(frame), records, spread), lambda: guess_points(frame, records, spread))
    return np.asarray(points.blocks(level), np.int64)


def _depends_on_data(how: Any, frame: PrivateData) -> bool:
    """Return whether the partitions of a mechanism depend on the data; what cannot be built says so later."""
    try:
        mechanism, budget = how.build(), how.budget()
        return _kept(
            ("depends", mechanism, _frame_key(frame), str(budget)),
            lambda: bool(mechanism.depends_on_data(dry_run(mechanism, frame, budget))),
        )
    except DpvizError:
        return False


def _frame_key(frame: PrivateData) -> Hashable:
    """Return what identifies the public frame, the unit and the bound."""
    if isinstance(frame, PointCounts):
        return (frame.domain, frame.unit, frame.contributions)
    return (frame.regions, frame.ends, frame.unit, frame.contributions)


def _results() -> OrderedDict[Hashable, Any]:
    return st.session_state.setdefault("expected errors", OrderedDict())  # type: ignore[no-any-return]


def _kept(key: Hashable, compute: Callable[[], T]) -> T:
    """Return a result of this session by its question; compute it first if it is new. All of them are public."""
    results = _results()
    if key not in results:
        results[key] = compute()
        while len(results) > _KEPT:
            results.popitem(last=False)
    return results[key]  # type: ignore[no-any-return]
