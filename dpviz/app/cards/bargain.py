"""What a payment buys, beside its price: how many parts of a level are useful, and how far off they are. All from public values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import streamlit as st

from dpviz.amounts import format_decimal
from dpviz.app.components.words import number_of
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import carry_out
from dpviz.errors import DpvizError
from dpviz.mechanisms.base import AnyLevel
from dpviz.privacy.budget import exact
from dpviz.view.escape import markdown

LEAST_USEFUL = 0.5  # share of the parts of a level that are useful, from which on the level is
_TIMES = 10  # from which a ratio of error and count is no percentage


@dataclass(frozen=True, kw_only=True)
class LevelBargain:
    """What one level of a release would be worth.

    Attributes:
        name: of the level.
        method: title of the mechanism, if a press pays for several: the one with the largest error.
        part: what a count of the level is, such as "square".
        error: root mean square error of a count.
        average: count of an average part, by the curator's public guess.
        parts: number of parts.
        useful: of how many of them the error is at most 40 % of the count.
        lie: how records lie by the guess, such as "evenly".
        places: of a pair of levels, number of regions.
        readable: of a pair of levels, how many of them have a readable profile, by the names of the levels of categories: that of the pair
            first, then coarser ones.
    """

    name: str
    part: str
    error: float
    average: float
    parts: int
    useful: float
    method: str = ""
    lie: str = "evenly"
    places: int = 0
    readable: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_useful(self) -> bool:
        """Whether most parts are useful; of a pair of levels, whether most regions have a readable profile."""
        useful, parts = next(((each, self.places) for each in self.readable.values()), (self.useful, self.parts))
        return useful >= LEAST_USEFUL * parts

    @property
    def is_noise(self) -> bool:
        """Whether the error of an average part is larger than its count, or no part is useful."""
        return self.error > self.average or self.useful < 1

    @property
    def share(self) -> str:
        """The error beside an average count, in words that it follows.

        >>> LevelBargain(name="1.1 km", part="square", error=49.6, average=48.8, parts=4096, useful=25).share
        '102 % of'
        """
        if self.error >= _TIMES * self.average:
            return f"{self.error / self.average:,.0f} times" if self.average else "more than"
        return f"{format_decimal(100 * self.error / self.average, 3)} % of"

    @property
    def title(self) -> str:
        """The name of the level, or of the pair of levels."""
        return " by ".join([self.name, *list(self.readable)[:1]])

    @property
    def text(self) -> str:
        """What it is, in one phrase.

        >>> LevelBargain(name="1.1 km", part="square", error=49.6, average=48.8, parts=4096, useful=25).text
        'about 25 useful squares of 4,096 at 1.1 km if records lie evenly, ± 102 % of an average one'
        >>> day = {"hour": 12, "part of day": 80}
        >>> text = LevelBargain(name="tract", part="region", error=5, average=10, parts=2592, useful=99, places=108, readable=day).text
        >>> text.partition(", if")[0]
        'about 12 regions of 108 at tract with a readable profile by hour, 80 by part of day'
        """
        if self.readable:
            first, *others = ((name, f"{number:,.0f}") for name, number in self.readable.items())
            by = ", ".join([f"by {first[0]}", *(f"{number} by {name}" for name, number in others)])
            useful = f"about {first[1]} {self.part}s of {self.places:,} at {self.name} with a readable profile {by},"
            return f"{useful} if records lie {self.lie}, ± {self.share} an average count"
        by = f" by {self.method}" if self.method else ""
        useful = f"about {number_of(round(self.useful), f'useful {self.part}')} of {self.parts:,} at {self.name}{by}"
        return f"{useful} if records lie {self.lie}, ± {self.share} an average one"


@dataclass(frozen=True, kw_only=True)
class Bargain:
    """What a payment buys.

    Attributes:
        level: number of the level that it is said of, or a pair of levels.
        levels: what each level would be worth, by their numbers, the coarsest first.
        find_epsilon: finds the ε with which an average part of the level is useful; a `DpvizError` says why there is none.
        take_size: takes cells of a useful size in place of the declared ones, likewise; None where there are none.
        take_both: takes a coarser size with the ε that makes it useful, likewise.
    """

    level: AnyLevel
    levels: Mapping[AnyLevel, LevelBargain]
    find_epsilon: Callable[[], float]
    take_size: Callable[[], object] | None = None
    take_both: Callable[[], object]

    @property
    def shown(self) -> LevelBargain:
        """What the level is worth."""
        return self.levels[self.level]

    @property
    def useful_levels(self) -> list[AnyLevel]:
        """The finest coarser level of which most parts are useful, if there is one.

        For a pair it is one with coarser categories, and one with coarser regions; where neither is useful, one with both.
        """
        if not isinstance(self.level, tuple):
            return self._first_useful(range(self.level - 1, -1, -1))
        places, slots = (range(level - 1, 0, -1) for level in self.level)
        place, slot = self.level
        one = [*self._first_useful((place, each) for each in slots), *self._first_useful((each, slot) for each in places)]
        return one or self._first_useful((each, other) for other in slots for each in places)

    def _first_useful(self, levels: Iterable[AnyLevel]) -> list[AnyLevel]:
        """Return the first of some levels that is useful, in a list; an empty one if none is."""
        return [level for level in levels if level in self.levels and self.levels[level].is_useful][:1]


def show_bargain(page: FamilyState, bargain: Bargain | None, price: str, left: str) -> bool:
    """Show what a press buys, with suggestions where most of it is of no use; return whether the curator takes it.

    What is mostly noise wants a tick, and each other bargain of this kind another one.

    Args:
        page: state of the page.
        bargain: what is bought; None while it is not known.
        price: the budget of the press, in words; "" while it is not known.
        left: what the account has left, in words; "" while it is not known.
    """
    if bargain is None:
        return False
    worth = bargain.shown
    text = f"{worth.text[:1].upper()}{worth.text[1:]}" + (f", {price}" if price else "") + (f" of {left} left" if price and left else "")
    st.markdown(f":red[**{markdown(text)}**]" if worth.is_noise else markdown(text))
    if not worth.is_useful:
        _suggest(page, bargain)
    if not worth.is_noise:
        return True
    return st.checkbox("I know that most of this is noise", key=f"noise known {page.key} {worth.text} {price}")


def _suggest(page: FamilyState, bargain: Bargain) -> None:
    """Offer a coarser level of which most parts are useful, and the ε with which those of this level are; one press each."""
    with st.container(horizontal=True):
        if (take := bargain.take_size) is not None:
            st.button("Suggest a size", key=f"suggest size {page.key}", on_click=carry_out(lambda: _try(page, bargain, take)))
        else:
            for index, level in enumerate(bargain.useful_levels):
                place, slot = level if isinstance(level, tuple) else (level, page.draft.guess.slot_level)
                st.button(
                    f"Suggest a size: {markdown(bargain.levels[level].title)}",
                    key=f"suggest level {page.key}{' too' * index}",
                    on_click=carry_out(partial(page.set, "guess", level=place, slot_level=slot)),
                )
        take_epsilon = lambda: page.change(run={"epsilon": exact(bargain.find_epsilon(), "ε")})  # noqa: E731
        st.button("Suggest ε", key=f"suggest epsilon {page.key}", on_click=carry_out(lambda: _try(page, bargain, take_epsilon)))
    text, problem = st.session_state.get(_slot(page), ("", ""))
    if text == bargain.shown.text:  # it is said of this bargain alone
        st.caption(f":orange[{markdown(problem)}]")
        st.button(
            "Suggest a size and ε", key=f"suggest both {page.key}", on_click=carry_out(lambda: _try(page, bargain, bargain.take_both))
        )


def _try(page: FamilyState, bargain: Bargain, take: Callable[[], object]) -> None:
    """Take what is suggested, or keep why there is nothing to suggest."""
    try:
        take()
    except DpvizError as error:
        st.session_state[_slot(page)] = (bargain.shown.text, str(error))


def _slot(page: FamilyState) -> str:
    """Return the key under which the session keeps for which bargain nothing was suggested, and why."""
    return f"no suggestion {page.key}"
