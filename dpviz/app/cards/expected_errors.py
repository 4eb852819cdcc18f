"""What Curate says before a payment, from public values: which errors to expect at a level, and which ε a wanted error needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np
import streamlit as st

from dpviz.amounts import format_decimal
from dpviz.app.cards.bargain import Bargain, LevelBargain
from dpviz.app.cards.cards import GOOD, Cards
from dpviz.app.cards.public_guess import Guess, choose_guess
from dpviz.app.components.fields import Field, in_range
from dpviz.app.components.words import amount_text
from dpviz.app.jobs.results import Results
from dpviz.app.session.ledger import Funding
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import carry_out, show_error
from dpviz.app.state.draft import Draft
from dpviz.arrays import Integers
from dpviz.data.points import PointCounts
from dpviz.errors import DpvizError, SettingError
from dpviz.families import POINT_FAMILY
from dpviz.mechanisms.base import AnyLevel, AnyMechanism
from dpviz.privacy.budget import Budget, exact
from dpviz.publishing.dry_run import FoundEpsilon, WantedError, compute_error, dry_run, expected_errors, find_epsilon
from dpviz.publishing.guessed_records import PublicGuess, guess_records
from dpviz.publishing.private_data import PrivateData
from dpviz.publishing.simulated_errors import USEFUL
from dpviz.view.escape import markdown

_KEPT = 60  # results that a session keeps
_NOTHING_HELPS = (
    "Nothing that the cap leaves makes a coarser size useful either. What helps is a larger cap, fewer records of a person that count, or"
    " another mechanism."
)
_NOISE_OF_USABLE = 2.5  # an average count is usable if it is so many times its noise


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The levels of a page, of which one is looked at.

    Attributes:
        names: of the levels, coarsest first, by their numbers.
        usual: the level that is chosen at first.
        part: what a count of a level is, such as "square".
        parts_at: returns how many parts a level has.
        slots: of counts by category, the levels of categories, coarsest first, by their numbers.
        slots_at: returns how many categories such a level has.
    """

    names: dict[int, str]
    usual: int
    part: str
    parts_at: Callable[[int], int]
    slots: dict[int, str] = field(default_factory=dict)
    slots_at: Callable[[int], int] = lambda _: 1

    def each(self) -> list[AnyLevel]:
        """List the levels, of counts by category each by each level of categories."""
        return [(level, slot) if slot else level for level in self.names for slot in (self.slots or (0,))]

    def size(self, level: AnyLevel) -> int:
        """Return how many parts a level, or a pair of levels, has."""
        place, slot = level if isinstance(level, tuple) else (level, 0)
        return self.parts_at(place) * self.slots_at(slot)

    def name(self, level: AnyLevel) -> str:
        """Return the name of a level, or of a pair of levels."""
        return f"{self.names[level[0]]} by {self.slots[level[1]]}" if isinstance(level, tuple) else self.names[level]


@dataclass(frozen=True, kw_only=True, eq=False)
class Coarser:
    """Larger cells that could be declared.

    Attributes:
        frame: as of `show_expected`, with these cells.
        levels: of that frame.
        take: declares them.
    """

    frame: PrivateData
    levels: Levels
    take: Callable[[], object]


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """What is expected of a level.

    Attributes:
        level: the level, or a pair of levels.
        error: root mean square error of a count; without a guess, from noise alone.
        guess: (k,) guessed counts of the squares of the level; None without a guess, and for regions.
        bargain: what each level would be worth; None without a guess.
    """

    level: AnyLevel
    error: float
    guess: Integers | None
    bargain: Bargain | None

    @property
    def place(self) -> int:
        """The level of what is on the map."""
        return self.level[0] if isinstance(self.level, tuple) else self.level


def show_expected(
    page: FamilyState,
    cards: Cards,
    frame: PrivateData | None,
    levels: Levels | None,
    unit: str,
    funding: Funding | None,
    coarser: Callable[[], Iterable[Coarser]] | None = None,
) -> Expected | None:
    """Show what error a release would have, and find the ε for a wanted error. Without a guess of the number of records, the button waits.

    Args:
        page: state of the page.
        cards: the cards; the third one is written.
        frame: domain or regions, unit and bound of what would be released; its records are not used. None while they are missing.
        levels: the levels of that frame; None while it is missing.
        unit: what is counted, in the plural.
        funding: the account that would pay; None while it is not known.
        coarser: returns larger cells that could be declared, the smallest first; None where the frame is no grid of cells.

    Returns:
        What is expected; None while the frame is missing or does not fit the mechanism, or nothing can be said without a guess.
    """
    if frame is None or levels is None:
        st.caption("The expected error is shown here once whom and where are said.")
        return None
    guess = choose_guess(page, frame, unit)
    level = _choose_level(page, levels)
    if guess.records is None:
        cards.ask(GOOD, f"Say about how many {unit} there are: a public guess, by which the page says what a payment buys.")
    left = None if funding is None or funding.account is None else funding.account.left
    epsilon_left = None if left is None else left.get("epsilon")
    question = _Question(page=page, how=page.draft, frame=frame, guess=guess, level=level, left=epsilon_left, coarser=coarser)
    try:
        expected = question.answer(levels)
    except DpvizError as problem:
        cards.ask(GOOD, "Choose settings that fit: the expected error cannot be computed.")
        show_error(str(problem))
        return None
    if expected is None:
        st.caption("This mechanism chooses partitions by the data: what to expect is shown once it is said how many there are, about.")
        return None
    _describe(question, expected, levels, unit)
    _find_epsilon(page, question, unit)
    if left is not None:
        st.caption(f"The cap leaves {amount_text(left)}.")
    return expected


@dataclass(frozen=True, kw_only=True, eq=False)
class _Question:
    """What would be released, the guess of what it is released from, and the level whose error is wanted. All of it is public.

    Attributes:
        page: where a size and an ε are taken.
        how: mechanism and budget.
        frame: as of `show_expected`.
        guess: of the data.
        level: number of the level, or a pair of levels.
        left: ε that the account has left; None while that is not known, or counts in another currency.
        coarser: as of `show_expected`.
    """

    page: FamilyState
    how: Draft
    frame: PrivateData
    guess: Guess
    level: AnyLevel
    left: Fraction | None
    coarser: Callable[[], Iterable[Coarser]] | None = None

    @property
    def lie(self) -> dict[str, Any]:
        """How the guessed records lie, as `expected_errors` takes it."""
        return {"records": self.guess.records, "spread": self.guess.spread, "pairs": self.guess.pairs, "like": self.guess.release}

    def wanted(self, error: float) -> WantedError:
        """Return an error that is wanted at the level."""
        run = self.how.run
        return WantedError(error=error, level=self.level, delta=float(run.delta or 0), gaussian=self.how.takes_delta, **self.lie)

    def answer(self, levels: Levels) -> Expected | None:
        """Compute what to expect; None if partitions depend on the data, of which nothing is guessed."""
        mechanism, frame, guess = self.how.build(), self.frame, self.guess
        if guess.records is None:
            if not frame.sides and self.finest is None:
                return None
            key, wanted = ("error", mechanism, _frame_key(frame), str(self.how.run.epsilon), self.level), self.wanted(1.0)
            error = _results().answer(key, lambda: compute_error(mechanism, frame, wanted, float(self.how.run.epsilon or 0)))
            return Expected(level=self.level, error=error, guess=None, bargain=None)
        mechanisms = self.how.build_all()
        worth = max(
            (self.weigh_levels(levels, each, several=len(mechanisms) > 1) for each in mechanisms), key=lambda worth: worth[self.level].error
        )
        find = partial(self.find_useful_epsilon, worth[self.level].average)
        bargain = Bargain(
            level=self.level,
            levels=worth,
            find_epsilon=find,
            take_size=None if self.coarser is None else self.take_useful_size,
            take_both=partial(self.take_both, levels),
        )
        return Expected(level=self.level, error=worth[self.level].error, guess=_guess_squares(frame, guess, self.level), bargain=bargain)

    def weigh_levels(self, levels: Levels, mechanism: AnyMechanism, *, several: bool = False) -> dict[AnyLevel, LevelBargain]:
        """Return what each level would be worth; of trips, pairs without any are no parts. One of several mechanisms is named."""
        frame, budget, lie = self.frame, self.how.budget_for(mechanism), self.lie

        def compute() -> Any:
            with st.spinner("Releasing made-up records ..."):
                rows = expected_errors(mechanism, frame, budget, **lie).by_level.to_dict("records")
            return {(row["level"], row["slot_level"]) if row.get("slot_level") else row["level"]: row for row in rows}

        table = _results().answer(("expected", mechanism, _frame_key(frame), str(budget), *lie.values()), compute)
        return {
            level: LevelBargain(
                name=levels.names[level[0] if isinstance(level, tuple) else level],
                method=str(mechanism.title) if several else "",
                lie=self.guess.spread,
                part=levels.part,
                error=table[level]["error"],
                average=table[level]["average"],
                parts=round((self.guess.records or 0) / table[level]["average"]),
                useful=table[level]["useful"],
                **_readable_at(level, levels, table),
            )
            for level in levels.each()
        }

    @property
    def finest(self) -> int | None:
        """The level at which partitions end that do not depend on the data; None for others."""

        def find(mechanism: AnyMechanism, budget: Budget) -> int | None:
            release: Any = dry_run(mechanism, self.frame, budget)
            return None if mechanism.depends_on_data(release) else int(release.hierarchy.height)

        mechanism, budget = self.how.build(), self.how.budget()
        return _results().answer(("finest", mechanism, _frame_key(self.frame), str(budget)), lambda: find(mechanism, budget))

    def has_found(self, wanted: WantedError) -> bool:
        """Return whether the ε for a wanted error is known."""
        return self._slot(wanted) in _results()

    def find_epsilon(self, wanted: WantedError) -> FoundEpsilon:
        """Find the ε for a wanted error."""
        return _results().answer(self._slot(wanted), lambda: find_epsilon(self.how.build(), self.frame, wanted))

    def take_useful_size(self) -> None:
        """Declare the smallest larger cells of which most are useful.

        Raises:
            SettingError: there are none.
        """
        cells = self.find_useful_cells()
        if cells is None:
            raise SettingError("No size is useful with this ε.")
        cells.take()

    def find_useful_cells(self) -> Coarser | None:
        """Find the smallest larger cells of which most are useful; None if there are none."""
        for cells in () if self.coarser is None else self.coarser():
            place = max(cells.levels.names)
            finest = (place, self.level[1]) if isinstance(self.level, tuple) else place
            if replace(self, frame=cells.frame, level=finest).weigh_levels(cells.levels, self.how.build())[finest].is_useful:
                return cells
        return None

    def take_both(self, levels: Levels) -> None:
        """Take the finest coarser size that is useful with all of the ε that is left, and that ε, or for a level the one that it needs.

        Raises:
            SettingError: there is none, or what is left is not known.
        """
        if self.left is None:
            raise SettingError("Type the cap first: then a size and an ε within it are suggested.")
        if not self.left:
            raise SettingError(_NOTHING_HELPS)
        first, *others = self.how.runs
        richer = replace(self, how=replace(self.how, runs=(replace(first, epsilon=self.left), *others)))
        if (cells := richer.find_useful_cells()) is not None:
            cells.take()
            self.page.change(run={"epsilon": self.left})
            return
        worth = richer.weigh_levels(levels, richer.how.build())
        useful = max((_pair_of(level) for level, each in worth.items() if _is_coarser(level, self.level) and each.is_useful), default=None)
        if useful is None:
            raise SettingError(_NOTHING_HELPS)
        place, slot = useful
        level: AnyLevel = useful if slot else place
        epsilon = self.left
        with suppress(SettingError):  # an average part may need more than most parts do
            epsilon = exact(replace(self, level=level).find_useful_epsilon(worth[level].average), "ε")
        self.page.set("guess", level=place, **({"slot_level": slot} if slot else {}))
        self.page.change(run={"epsilon": epsilon})

    def _slot(self, wanted: WantedError) -> Hashable:
        return ("epsilon", self.how.build(), _frame_key(self.frame), wanted)

    def find_useful_epsilon(self, average: float) -> float:
        """Find the ε with which an average part of the level is useful.

        Args:
            average: its count.

        Raises:
            SettingError: there is none, or it is more than is left.
        """
        found = self.find_epsilon(self.wanted(USEFUL * average))
        if found.epsilon is None:
            raise SettingError(found.note)
        if self.left is not None and Fraction(str(found.epsilon)) > self.left:
            raise SettingError(f"That needs ε {found.epsilon:g}, more than the cap leaves.")
        return float(found.epsilon)


def _pair_of(level: AnyLevel) -> tuple[int, int]:
    return level if isinstance(level, tuple) else (level, 0)


def _is_coarser(level: AnyLevel, other: AnyLevel) -> bool:
    """Return whether the parts of a level, or pair of levels, are larger than those of another one."""
    return level != other and all(one <= two for one, two in zip(_pair_of(level), _pair_of(other), strict=True))


def _readable_at(level: AnyLevel, levels: Levels, table: dict[AnyLevel, Any]) -> dict[str, Any]:
    """Return of a pair of levels how many regions there are, and how many have a readable profile; nothing of a single level."""
    if not isinstance(level, tuple):
        return {}
    place, finest = level
    readable = {levels.slots[slot]: table[place, slot]["readable"] for slot in range(finest, 0, -1)}
    return {"places": levels.parts_at(place), "readable": readable}


def _choose_level(page: FamilyState, levels: Levels) -> AnyLevel:
    """Ask for the level, and of counts by category also for the level of categories."""
    level = _slide(page, "level", "At level", levels.names, levels.usual)
    slot = _slide(page, "slot_level", "By", levels.slots, max(levels.slots)) if levels.slots else 0
    return (level, slot) if slot else level


def _slide(page: FamilyState, part: str, label: str, names: dict[int, str], usual: int) -> int:
    """Let one of some levels be chosen by name, where there are several."""
    numbers, said = list(names), getattr(page.draft.guess, part)
    if len(numbers) == 1:
        return numbers[0]
    level: int = said if said in numbers else usual
    shown = page.widget("guess", part, f"good {part.replace('_', ' ')} {page.key}", show=lambda _: level)
    st.select_slider(label, numbers, format_func=lambda number: markdown(names[number]), **shown)
    return level


def _guess_squares(frame: PrivateData, guess: Guess, level: AnyLevel) -> Integers | None:
    """Return (k,) made-up records of the squares of a level of points; None without a guess, and for regions."""
    if guess.records is None or frame.family != POINT_FAMILY.name or isinstance(level, tuple):
        return None
    public, lie = frame, PublicGuess(records=guess.records, spread=guess.spread, like=guess.release)
    points = _results().answer(("guess", _frame_key(frame), lie), lambda: guess_records(public, lie))
    return cast("PointCounts", points).blocks(level).ravel().astype(np.int64)


def _describe(question: _Question, expected: Expected, levels: Levels, unit: str) -> None:
    """Say how large the error is: beside a guessed count, or else how many records it needs."""
    error, where = expected.error, f"in a {levels.part} of {markdown(levels.name(expected.level))}"
    if expected.bargain is not None:
        worth = expected.bargain.shown
        average = format_decimal(worth.average, 2)
        st.markdown(f"**± {format_decimal(error, 2)} {unit}** {where}, {worth.share} an average one ({average})")
        return
    st.markdown(f"**± {format_decimal(error, 2)} {unit}** {where}")
    needed = _NOISE_OF_USABLE * error * levels.size(expected.level)
    st.caption(f"Counts of this level are usable from about {needed:,.0f} {unit} in all.")
    level, finest = expected.level, None if question.frame.sides else question.finest
    if finest is not None and not isinstance(level, tuple) and level > finest:
        st.caption(
            f":orange[The partitions of this mechanism end at level {finest:d}: finer squares are even parts of them, and how wrong that is"
            " depends on the data.]"
        )


def _find_epsilon(page: FamilyState, question: _Question, unit: str) -> None:
    """Ask for a wanted error, and find the ε that it needs once that is asked for; one above what is left is not offered."""
    label = f"Wanted: at most ± {unit}"
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    within = in_range(label, 1e-6, 1e12, optional=True)
    field = Field.of(page, "guess", "wanted", key=f"good wanted {page.key}", label=label, problem=within)
    error = field.value
    if not field.show(left.number_input, value=None, placeholder="for example 20", format="%.12g") or error is None:
        return
    wanted = question.wanted(float(error))
    asked = right.button("Which ε?", key=f"good find {page.key}", width="stretch")
    if not asked and not question.has_found(wanted):
        return
    try:
        with st.spinner("Searching ..."):
            found = question.find_epsilon(wanted)
    except DpvizError as problem:
        show_error(str(problem))
        return
    if found.epsilon is None:
        st.caption(f":orange[{markdown(found.note)}]")
        return
    if question.left is not None and Fraction(str(found.epsilon)) > question.left:
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


def _frame_key(frame: PrivateData) -> Hashable:
    """Return what identifies the public frame, the unit and the bounds."""
    return (frame.frame, frame.unit, frame.contributions, getattr(frame, "per_slot", None))


def _results() -> Results:
    """Return the results of this session by their questions; all of them are public."""
    return st.session_state.setdefault("expected errors", Results(_KEPT))  # type: ignore[no-any-return]
