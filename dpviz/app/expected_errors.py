"""The third card of Curate: which errors to expect at a level for this budget, and which ε a wanted error needs. All from public values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import streamlit as st

from dpviz.amounts import format_decimal
from dpviz.app.cards import GOOD, Cards
from dpviz.app.fields import in_range, show_problem
from dpviz.app.guess import Guess, choose_guess
from dpviz.app.ledger import Funding
from dpviz.app.page_state import PageState
from dpviz.app.session import carry_out, show_error
from dpviz.app.words import amount_text
from dpviz.arrays import Integers
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.budget import Budget
from dpviz.publishing.dry_run import FoundEpsilon, WantedError, compute_error, compute_errors, dry_run, find_epsilon
from dpviz.publishing.private_data import PrivateData
from dpviz.publishing.public_guess import GuessedCounts, guess_pairs, guess_points, guess_regions, guess_total
from dpviz.release.area_release import AreaRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import TripRelease
from dpviz.view.escape import markdown

T = TypeVar("T")
_KEPT = 60  # results that a session keeps
_TIMES = 10  # from which a ratio of error and count is no percentage
_NOISE_OF_USABLE = 2.5  # an average count is usable if it is so many times its noise
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
    guess = choose_guess(page, frame, unit, lambda: _find_finest(how, frame) is None)
    like = guess.release if isinstance(guess.release, PointRelease) else None
    budget: dict[str, Any] = {"delta": float(how.delta), "gaussian": how.takes_delta}
    wanted = WantedError(error=1.0, level=level, **budget, records=guess.records, spread=guess.spread, like=like)
    try:
        mechanism = how.build()
        guessed = _guess_counts(frame, guess, levels, level)
        error = _kept(
            ("error", mechanism, _frame_key(frame), str(how.epsilon), wanted),
            lambda: compute_error(mechanism, frame, wanted, float(how.epsilon)),
        )
    except DpvizError as problem:
        cards.ask(GOOD, "Choose settings that fit: the expected error cannot be computed.")
        show_error(str(problem))
        return None
    if _describe(error, levels, level, guessed, unit):
        _advise_level(levels, unit, _errors_of(frame, how, wanted, level), partial(_guess_counts, frame, guess, levels))
    if guessed is None and isinstance(frame, PointCounts) and (finest := _find_finest(how, frame)) is not None and level > finest:
        st.caption(
            f":orange[The partitions of this mechanism end at level {finest:d}: finer squares are even parts of them, and how wrong that is"
            " depends on the data.]"
        )
    left = None if funding is None or funding.account is None else funding.account.left.get("epsilon")
    _find_epsilon(page, frame, mechanism, wanted, unit, left)
    if funding is not None and funding.account is not None:
        st.caption(f"The cap leaves {amount_text(funding.account.left)}.")
    squares = guessed.count.astype(np.int64) if guessed is not None and isinstance(frame, PointCounts) else None
    return Expected(level=level, error=error, guess=squares)


def _choose_level(page: PageState, levels: Levels) -> int:
    key, numbers = f"good level {page.key}", list(levels.names)
    if st.session_state.get(key) not in numbers:
        st.session_state[key] = levels.usual
    if len(numbers) == 1:
        return numbers[0]
    return int(
        st.select_slider("At level", numbers, key=key, persist_state="session", format_func=lambda number: markdown(levels.names[number]))
    )


def _guess_counts(frame: PrivateData, guess: Guess, levels: Levels, level: int) -> GuessedCounts | None:
    """Guess the counts of the squares, pairs or regions of a level, of wholly masked squares none; None without a guess."""
    if guess.records is None:
        return None
    if isinstance(frame, PointCounts):
        like, records = guess.release if isinstance(guess.release, PointRelease) else None, guess.records or 0
        key = ("guess", _frame_key(frame), records, guess.spread, like)
        points = _kept(key, lambda: guess_points(frame, records, guess.spread, like))
        squares, is_open = points.blocks(level), frame.domain.open_blocks(level)
        return GuessedCounts(count=squares.ravel().astype(np.float64), number=is_open.ravel().astype(np.float64))
    if guess.release is not None:
        if isinstance(frame, TripCounts):  # `choose_guess` has checked that the release is of the same kind
            released = guess_pairs(frame, level, cast("TripRelease", guess.release))
        else:
            released = guess_regions(frame, level, cast("AreaRelease", guess.release))
        return replace(released, count=released.count * guess.records / guess_total(guess.release))
    everything = levels.parts_at(level)
    pairs = min(guess.pairs or everything, everything)
    return GuessedCounts(count=np.array([guess.records / pairs]), number=np.array([float(pairs)]))


def _describe(error: float, levels: Levels, level: int, guessed: GuessedCounts | None, unit: str) -> bool:
    """Say how large the error is; return whether most counts will be noise."""
    noise, where = f"**± {format_decimal(error, 2)} {unit}**", f"in a {levels.part} of {markdown(levels.names[level])}"
    if guessed is None:
        st.markdown(f"{noise} {where}")
        needed = _NOISE_OF_USABLE * error * levels.parts_at(level)
        st.caption(f"Counts of this level are usable from about {needed:,.0f} {unit} in all: type about how many there are.")
        return False
    average = float(guessed.count @ guessed.number / guessed.number.sum())
    share = f"{format_decimal(100 * error / average, 2)} %" if error < _TIMES * average else f"{error / average:,.0f} times the count"
    st.markdown(f"{noise} {where}, {share} of an average one ({format_decimal(average, 2)})")
    if (buried := _share_buried(guessed, error)) <= _MOST_BURIED:
        return False
    st.warning(f"{buried:.0%} of these {levels.part}s have fewer {unit} than their noise.")
    return True


def _share_buried(guessed: GuessedCounts, error: float) -> float:
    """Return the share of the guessed counts that are smaller than their error."""
    return float(guessed.number[guessed.count < error].sum() / guessed.number.sum())


def _advise_level(levels: Levels, unit: str, errors: dict[int, float], guess_at: Callable[[int], GuessedCounts | None]) -> None:
    """Name the finest coarser level at which most counts are above their noise, and what else helps."""
    for coarser in sorted(errors, reverse=True):
        guessed = guess_at(coarser)
        if guessed is not None and _share_buried(guessed, errors[coarser]) <= _MOST_BURIED:
            where = f"{markdown(levels.names[coarser])} (± {format_decimal(errors[coarser], 2)} {unit})"
            st.caption(f"Most counts are above their noise up to {where}. A larger ε or fewer levels help, too.")
            return
    st.caption("So it is at every coarser level: choose a larger ε or fewer levels." if errors else "A larger ε helps.")


def _errors_of(frame: PrivateData, how: Any, wanted: WantedError, below: int) -> dict[int, float]:
    """Return the expected errors of the levels that are coarser than one."""
    mechanism, question = how.build(), replace(wanted, level=0)
    slot = ("errors", mechanism, _frame_key(frame), str(how.epsilon), question, below)
    first = 0 if isinstance(frame, PointCounts) else 1
    return _kept(slot, lambda: compute_errors(mechanism, frame, question, float(how.epsilon), range(first, below)))


def _find_epsilon(
    page: PageState, frame: PrivateData, mechanism: AnyMechanism, wanted: WantedError, unit: str, left_to_spend: Fraction | None
) -> None:
    """Ask for a wanted error, and find the ε that it needs once that is asked for; one above what is left is not offered."""
    key, label = f"good wanted {page.key}", f"Wanted: at most ± {unit}"
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    error = left.number_input(label, value=None, key=key, persist_state="session", placeholder="for example 20", format="%.12g")
    if not show_problem(key, in_range(label, 1e-6, 1e12, optional=True)(error)) or error is None:
        return
    question = replace(wanted, error=float(error))
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


def _find_finest(how: Any, frame: PrivateData) -> int | None:
    """Return the level at which partitions end that do not depend on the data; None for others, and for what cannot be built."""

    def find(mechanism: AnyMechanism, budget: Budget) -> int | None:
        release = dry_run(mechanism, frame, budget)
        return None if mechanism.depends_on_data(release) or isinstance(release, AreaRelease) else release.tree.height

    try:
        mechanism, budget = how.build(), how.budget()
        return _kept(("finest", mechanism, _frame_key(frame), str(budget)), lambda: find(mechanism, budget))
    except DpvizError:
        return None


def _frame_key(frame: PrivateData) -> Hashable:
    """Return what identifies the public frame, the unit and the bound."""
    if isinstance(frame, PointCounts):
        return (frame.domain, frame.unit, frame.contributions)
    regions: tuple[Hashable, ...] = (frame.regions, frame.ends) if isinstance(frame, TripCounts) else (frame.regions,)
    return (*regions, frame.unit, frame.contributions)


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
