"""The question by what records are counted beside the place: by a time, by bins of a number, or by listed values. All of it is public."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import available_timezones

import streamlit as st

from dpviz.app.cards.cards import FILES, WHERE, Cards
from dpviz.app.cards.uploads import Role, ask_for_file, kept_file, upload_types
from dpviz.app.components.fields import Field, problem_with
from dpviz.app.components.mechanism_controls import numbers_in
from dpviz.app.components.words import number_of
from dpviz.app.pages.areas.state import AREAS
from dpviz.app.session import cached
from dpviz.app.session.widgets import show_error, widget_for
from dpviz.app.state.parts import TIMES_OF
from dpviz.app.state.toml import file_name
from dpviz.app.state.values import BINS, COUNTED_BY, HOURS, MONTHS, NO_ZONE, OTHERS, SUMS, VALUES, WEEKDAYS
from dpviz.data.reading.points import PointsFile
from dpviz.data.roles import only
from dpviz.errors import DpvizError, SettingError
from dpviz.publishing.config import CategoriesPart
from dpviz.space.categories import Categories
from dpviz.space.summed import Summed
from dpviz.view.escape import markdown

ROLE = "areas categories"  # beginning of the slots of the public file of values
LEFT_OUT, OWN_SLOT = "Left out, and counted", "A slot of their own"
_NO_TIMES = {HOURS: "hours from 0 to 23", WEEKDAYS: "English names of days", MONTHS: "months such as 2026-11"}
_SLOTS = {HOURS: "hour", WEEKDAYS: "weekday", MONTHS: "month", BINS: "bin", VALUES: "value", SUMS: ""}


@dataclass(frozen=True, kw_only=True)
class CountedBy:
    """What records are counted by beside the place, once it is declared.

    Attributes:
        part: the table of a configuration that declares the categories.
        categories: the public categories.
        digest: identifies the public file of values; "" without one.
    """

    part: CategoriesPart
    categories: Categories
    digest: str = ""

    @property
    def key(self) -> object:
        """What identifies the categories in the keys of caches."""
        return repr(self.part), self.digest

    def promise(self, most: int, per_slot: int | None) -> str:
        """Say what a release protects, and what of the frame is public.

        Args:
            most: the most records of one person; 1 where each record is its own person.
            per_slot: the most of them in each slot; None where each record is its own person.
        """
        slot = slot_word()
        records = f"all that one person did, at most {number_of(most, 'record')}" if most > 1 or per_slot else "one record"
        in_slot = f" and {per_slot:,} in each {slot}" if per_slot else ""
        return f"Protects {records}{in_slot}. {f'{slot.capitalize()}s' if slot else 'Bounds of values'} and regions are public."


def slot_word() -> str:
    """Return what a slot is called, such as "hour"; "" where the place alone counts, or values are added up."""
    return _SLOTS[AREAS.draft.counted_by] if AREAS.draft.by_category else ""


def file_of_values() -> Role:
    """Return what the public file of values is in the drop zone."""
    said = AREAS.draft.categories
    named = said.file if AREAS.draft.counted_by == VALUES else None
    return Role(slot=ROLE, words="Public: values", digest=said.digest, named=named, when_chosen=_take_file)


def _take_file(name: str | None) -> None:
    """Count by the values of a public file, or no longer by those of one; an opened configuration may know its path and columns."""
    said, kept = AREAS.draft.categories, kept_file(ROLE)
    if name is None or kept is None:
        AREAS.set("categories", file=None, levels=(), names={}, digest="")
        return
    digest = cached.digest_of(kept[1])
    is_named = said.file is not None and file_name(said.file) == name and said.digest in ("", digest)
    file = replace(said, digest=digest) if is_named else replace(said, file=name, levels=(), names={}, digest=digest)
    AREAS.change(draft={"counted_by": VALUES, "categories": file})


def choose_counted_by() -> None:
    """Ask by what records are counted beside the place."""
    shown = widget_for("areas counted by", AREAS.draft.counted_by, _take_kind)
    text = "In each region, records are counted by the hour, for instance. Every region has every hour, empty ones too."
    st.segmented_control("Counted by", COUNTED_BY, required=True, help=text, **shown)


def declare_categories(cards: Cards, about: PointsFile, used: Sequence[str], key: str) -> CountedBy | None:
    """Ask which slots there are, and for their column; None where the place alone counts, and while something is missing, which is said.

    Args:
        cards: say what is missing.
        about: the header of the file.
        used: its columns that say something else.
        key: ending of the keys of the widgets.
    """
    if not AREAS.draft.by_category:
        return None
    slot = _choose_column(cards, about, [name for name in about.columns if name not in used], key)
    with cards.where if cards.curates else nullcontext():
        _choose_categories()
        if _may_lie_outside():
            _choose_others()
        return _declare(cards, slot)


def _take_kind(kind: str) -> None:
    AREAS.set("data", slot=None)
    AREAS.change(draft={"counted_by": kind})


def _choose_column(cards: Cards, about: PointsFile, columns: Sequence[str], key: str) -> str | None:
    """Ask for the column that says the slot, where there are several; the only one that may hold times is proposed."""
    by, said = AREAS.draft.counted_by, AREAS.part("data", "slot")
    times = [name for name in columns if name in about.times] if by in TIMES_OF else []
    known = said if said in columns else only(columns) or only(times)
    if known != said:
        AREAS.set("data", slot=known)
    if len(columns) == 1:
        st.caption(f"Counted by the column *{markdown(columns[0])}*.")
        return known
    st.selectbox(
        "Column of times" if by in TIMES_OF else "Column to count by",
        columns,
        None,
        placeholder="Choose the column",
        **AREAS.widget("data", "slot", f"areas slot {by} {key}", show=lambda _: known),
    )
    if known is None:
        cards.ask(FILES, "Choose the column by which records are counted, on the left.")
    return known


def _choose_categories() -> None:
    """Ask which slots there are."""
    by = AREAS.draft.counted_by
    if by in TIMES_OF:
        _choose_zone(by)
        if by == MONTHS:
            for side, column in zip(("first", "last"), st.columns(2), strict=True):
                key, label = f"areas {side} month", f"{side.capitalize()} month"
                shown = AREAS.widget("categories", side, key, show=lambda text: text or "", take=lambda text: text.strip() or None)
                column.text_input(label, placeholder="2026-01", **shown)
    elif by == BINS:
        text = "A bin has its lower edge, and not its upper one: 0, 6, 18 makes 0 to 6 and 6 to 18."
        _field("bins", "Edges of the bins", "0, 6, 18, 65", _read_numbers, Categories.bins, text, coarser={})
    elif by == SUMS:
        text = "Smallest and largest: known without the data. Each value is cut to them; narrow ones make the noise small."
        _field("sum_between", "Values between", "0, 120", _read_numbers, lambda ends: CategoriesPart(sum_between=ends), text)
        text = "Values are rounded to it: 10 makes 0, 10, 20 and so on. Empty for 1."
        st.number_input("Step", value=None, min_value=0.0, format="%.12g", help=text, **AREAS.widget("categories", "step", "areas step"))
    elif not _choose_file():
        text = "As the column has them; their order is that of the release."
        _field("values", "Values", "car, bus, train", _read_values, Categories.values, text)


def _choose_zone(by: str) -> None:
    """Ask for the time zone of times; that of the browser or of the server says nothing of the data."""
    titles = {NO_ZONE: f"none: the column has {_NO_TIMES[by]}"}
    st.selectbox(
        "Time zone",
        [NO_ZONE, *sorted(available_timezones())],
        None,
        format_func=lambda zone: titles.get(zone, zone),
        placeholder="Choose the time zone",
        help="In which hours and days begin. Times that state their offset are converted to it; any other is taken as a time there.",
        **AREAS.widget("categories", "zone", f"areas zone {by}"),
    )


def _read_numbers(text: str) -> tuple[float, ...]:
    numbers = numbers_in(text)
    if isinstance(numbers, str):
        raise SettingError("Edges must be numbers with commas between them, such as 0, 6, 18.")
    return numbers


def _read_values(text: str) -> tuple[str, ...]:
    return tuple(value for part in text.split(",") if (value := part.strip()))


def _field(
    name: str,
    label: str,
    example: str,
    read: Callable[[str], tuple[Any, ...]],
    make: Callable[[Any], object],
    text: str,
    **resets: Any,
) -> None:
    """Ask for a list with commas, of which categories can be made; `resets` are parts that another list takes back."""
    values = getattr(AREAS.draft.categories, name)
    field = Field(
        key=f"areas {name}",
        label=label,
        value=", ".join(f"{value:.15g}" if isinstance(value, float) else value for value in values),
        problem=lambda typed: problem_with(lambda: make(read(typed))) if typed else None,
        use=lambda typed: AREAS.set("categories", **{name: read(typed)}, **resets),
    )
    field.show(st.text_input, placeholder=f"for example {example}", help=text)


def _choose_file() -> bool:
    """Ask for a public file of values and the columns of its levels; return whether there is one."""
    said = AREAS.draft.categories
    text = "One row per value; with a column per level, such as kind and mode."
    named, types = said.file, upload_types(tables=True)
    kept = ask_for_file(AREAS, "Or a public file of values", types, ROLE, text, named=named, what="file of values", when_chosen=_take_file)
    if kept is None:
        return said.file is not None
    name, body = kept
    columns = cached.inspect_regions_file(said.digest, name, body).columns
    if not said.levels and len(columns) == 1:
        AREAS.set("categories", levels=columns)
    elif len(columns) > 1:
        shown = AREAS.widget("categories", "levels", f"areas levels of values {said.digest}", show=list, take=tuple)
        st.multiselect(f"Columns of {markdown(name)}, coarsest level first", columns, **shown)
    return True


def _may_lie_outside() -> bool:
    """Return whether other records may have a slot: each time lies in an hour and on a weekday, and what has no value adds nothing."""
    by, said = AREAS.draft.counted_by, AREAS.draft.categories
    return by != SUMS and (by not in (HOURS, WEEKDAYS) or said.zone == NO_ZONE or said.other is not None)


def _choose_others() -> None:
    """Ask what becomes of records that lie in no slot."""
    said = AREAS.draft.categories.other
    shown = widget_for("areas others", LEFT_OUT if said is None else OWN_SLOT, _take_others)
    st.segmented_control("Others", [LEFT_OUT, OWN_SLOT], required=True, help="Records that lie in none of these slots.", **shown)


def _take_others(answer: str) -> None:
    AREAS.set("categories", other=None if answer == LEFT_OUT else AREAS.draft.categories.other or OTHERS)


def _declare(cards: Cards, slot: str | None) -> CountedBy | None:
    """Make the categories of what is said; None while something is missing or wrong, which is said."""
    said, kept = AREAS.draft.categories, kept_file(ROLE)
    try:
        part = said.checked(AREAS.draft.counted_by)
        if part is None or slot is None:
            return None
        if part.file is not None and kept is None:
            cards.ask(WHERE, f"Choose {file_name(part.file)} again.")
            return None
        categories = cached.make_categories(said.digest, part, None if part.file is None else kept)
    except SettingError as missing:
        cards.ask(WHERE, str(missing))
        return None
    except DpvizError as wrong:
        show_error(str(wrong))
        cards.ask(WHERE, "Correct what records are counted by.")
        return None
    st.caption(describe_categories(categories))
    return CountedBy(part=part, categories=categories, digest=said.digest)


def describe_categories(categories: Categories) -> str:
    """Write the number of categories of each level, or the bounds of values, as a sentence."""
    if isinstance(categories, Summed):
        bounds = f"{categories.low:,.15g} to {categories.high:,.15g} in steps of {categories.step:,.15g}"
        return f"Values from {bounds}; a record without one is left out."
    sizes = ", ".join(f"{categories.size(level):,} of level {markdown(name)}" for level, name in enumerate(categories.levels, start=1))
    return f"Slots: {sizes}."
