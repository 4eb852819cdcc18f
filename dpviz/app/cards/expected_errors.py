"""The third card of Curate: which errors to expect at a level for this budget, and which ε a wanted error needs. All from public values."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import streamlit as st

from dpviz.amounts import format_decimal
from dpviz.app.cards.cards import GOOD, Cards
from dpviz.app.cards.public_guess import Guess, choose_guess
from dpviz.app.components.fields import Field, in_range
from dpviz.app.components.words import amount_text
from dpviz.app.jobs.results import Results
from dpviz.app.session.ledger import Funding
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import carry_out, show_error
from dpviz.arrays import Integers
from dpviz.data.points import PointCounts
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.budget import Budget, exact
from dpviz.publishing.dry_run import FoundEpsilon, WantedError, compute_error, dry_run, expected_errors, find_epsilon
from dpviz.publishing.guessed_records import PublicGuess, guess_records
from dpviz.publishing.private_data import PrivateData
from dpviz.view.escape import markdown

_KEPT = 60  # results that a session keeps
_TIMES = 10  # from which a ratio of error and count is no percentage
_NOISE_OF_USABLE = 2.5  # an average count is usable if it is so many times its noise
_LEAST_USEFUL = 0.5  # share of the parts that are useful, below which the card warns


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
        error: root mean square error of a count; without a guess, from noise alone.
        guess: (k,) guessed counts of the squares of the level; None without a guess, and for regions.
    """

    level: int
    error: float
    guess: Integers | None


def show_expected(
    page: FamilyState, cards: Cards, frame: PrivateData | None, levels: Levels | None, unit: str, funding: Funding | None
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
    how = page.draft
    guess = choose_guess(page, frame, unit, lambda: _find_finest(how, frame) is None)
    budget: dict[str, Any] = {"delta": float(how.run.delta or 0), "gaussian": how.takes_delta}
    lie: dict[str, Any] = {"records": guess.records, "spread": guess.spread, "pairs": guess.pairs, "like": guess.release}
    wanted = WantedError(error=1.0, level=level, **budget, **lie)
    try:
        mechanism = how.build()
        table = None if guess.records is None else _expect(mechanism, frame, how.budget(), lie)
        if table is None:
            key = ("error", mechanism, _frame_key(frame), str(how.run.epsilon), wanted)
            error = _results().answer(key, lambda: compute_error(mechanism, frame, wanted, float(how.run.epsilon or 0)))
        else:
            error = table[level]["error"]
    except DpvizError as problem:
        cards.ask(GOOD, "Choose settings that fit: the expected error cannot be computed.")
        show_error(str(problem))
        return None
    if table is None:
        _describe_noise(error, levels, level, unit)
    else:
        _describe(table, levels, level, unit, guess.records or 0)
    if table is None and not frame.sides and (finest := _find_finest(how, frame)) is not None and level > finest:
        st.caption(
            f":orange[The partitions of this mechanism end at level {finest:d}: finer squares are even parts of them, and how wrong that is"
            " depends on the data.]"
        )
    left = None if funding is None or funding.account is None else funding.account.left.get("epsilon")
    _find_epsilon(page, frame, mechanism, wanted, unit, left)
    if funding is not None and funding.account is not None:
        st.caption(f"The cap leaves {amount_text(funding.account.left)}.")
    return Expected(level=level, error=error, guess=_guess_squares(frame, guess, level))


def _choose_level(page: FamilyState, levels: Levels) -> int:
    numbers, said = list(levels.names), page.draft.guess.level
    if len(numbers) == 1:
        return numbers[0]
    level = said if said in numbers else levels.usual
    shown = page.widget("guess", "level", f"good level {page.key}", show=lambda _: level)
    st.select_slider("At level", numbers, format_func=lambda number: markdown(levels.names[number]), **shown)
    return level


def _guess_squares(frame: PrivateData, guess: Guess, level: int) -> Integers | None:
    """Return (k,) made-up records of the squares of a level of points; None without a guess, and for regions."""
    if guess.records is None or frame.sides:
        return None
    public, lie = frame, PublicGuess(records=guess.records, spread=guess.spread, like=guess.release)
    points = _results().answer(("guess", _frame_key(frame), lie), lambda: guess_records(public, lie))
    return cast("PointCounts", points).blocks(level).ravel().astype(np.int64)


def _expect(mechanism: AnyMechanism, frame: PrivateData, budget: Budget, lie: dict[str, Any]) -> dict[int, dict[str, float]]:
    """Return what to expect for a guess, by level and name of the column of `expected_errors`."""

    def compute() -> Any:
        with st.spinner("Releasing made-up records ..."):
            return expected_errors(mechanism, frame, budget, **lie).by_level.set_index("level").to_dict("index")

    return _results().answer(("expected", mechanism, _frame_key(frame), str(budget), *lie.values()), compute)


def _describe_noise(error: float, levels: Levels, level: int, unit: str) -> None:
    """Say how large the noise is, and how many records it needs."""
    st.markdown(f"**± {format_decimal(error, 2)} {unit}** in a {levels.part} of {markdown(levels.names[level])}")
    needed = _NOISE_OF_USABLE * error * levels.parts_at(level)
    st.caption(f"Counts of this level are usable from about {needed:,.0f} {unit} in all: type about how many there are.")


def _describe(table: dict[int, dict[str, float]], levels: Levels, level: int, unit: str, records: int) -> None:
    """Say how large the error is beside a guessed count, and on how many parts of the level it is small; name a better level if few."""
    error, average = table[level]["error"], table[level]["average"]
    share = f"{format_decimal(100 * error / average, 2)} %" if error < _TIMES * average else f"{error / average:,.0f} times the count"
    where = f"in a {levels.part} of {markdown(levels.names[level])}"
    st.markdown(f"**± {format_decimal(error, 2)} {unit}** {where}, {share} of an average one ({format_decimal(average, 2)})")
    parts = {each: round(records / row["average"]) for each, row in table.items()}  # of trips, pairs without any are no parts
    useful = {each: row["useful"] for each, row in table.items()}
    words = f"{useful[level]:,.0f} of {parts[level]:,.0f} {levels.part}s are useful: their error is at most 40 % of their count."
    if useful[level] >= _LEAST_USEFUL * parts[level]:
        st.caption(words)
        return
    st.warning(f"Only {words}")
    coarser = [each for each in levels.names if each < level]
    fitting = [each for each in coarser if useful[each] >= _LEAST_USEFUL * parts[each]]
    if fitting:
        finest = f"{markdown(levels.names[fitting[-1]])} (± {format_decimal(table[fitting[-1]]['error'], 2)} {unit})"
        st.caption(f"Most {levels.part}s are useful up to {finest}. A larger ε or fewer levels help, too.")
    else:
        st.caption("So it is at every coarser level: choose a larger ε or fewer levels." if coarser else "A larger ε helps.")


def _find_epsilon(
    page: FamilyState, frame: PrivateData, mechanism: AnyMechanism, wanted: WantedError, unit: str, left_to_spend: Fraction | None
) -> None:
    """Ask for a wanted error, and find the ε that it needs once that is asked for; one above what is left is not offered."""
    label = f"Wanted: at most ± {unit}"
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    within = in_range(label, 1e-6, 1e12, optional=True)
    field = Field.of(page, "guess", "wanted", key=f"good wanted {page.key}", label=label, problem=within)
    error = field.value
    if not field.show(left.number_input, value=None, placeholder="for example 20", format="%.12g") or error is None:
        return
    question = replace(wanted, error=float(error))
    slot = ("epsilon", mechanism, _frame_key(frame), question)
    asked = right.button("Which ε?", key=f"good find {page.key}", width="stretch")
    if not asked and slot not in _results():
        return
    try:
        with st.spinner("Searching ..."):
            found: FoundEpsilon = _results().answer(slot, lambda: find_epsilon(mechanism, frame, question))
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
        on_click=carry_out(lambda: page.change(run={"epsilon": exact(found.epsilon, "ε")})),
    )


def _find_finest(how: Any, frame: PrivateData) -> int | None:
    """Return the level at which partitions end that do not depend on the data; None for others, and for what cannot be built."""

    def find(mechanism: AnyMechanism, budget: Budget) -> int | None:
        release: Any = dry_run(mechanism, frame, budget)
        return None if mechanism.depends_on_data(release) else int(release.hierarchy.height)

    try:
        mechanism, budget = how.build(), how.budget()
        return _results().answer(("finest", mechanism, _frame_key(frame), str(budget)), lambda: find(mechanism, budget))
    except DpvizError:
        return None


def _frame_key(frame: PrivateData) -> Hashable:
    """Return what identifies the public frame, the unit and the bound."""
    return (frame.frame, frame.unit, frame.contributions)


def _results() -> Results:
    """Return the results of this session by their questions; all of them are public."""
    return st.session_state.setdefault("expected errors", Results(_KEPT))  # type: ignore[no-any-return]
