"""A public file of regions: which columns are its levels, how it is described, and how a saved configuration names it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from dpviz.app.cards.cards import FILES, Cards
from dpviz.app.cards.columns import NONE, pick
from dpviz.app.cards.uploads import ask_for_file, upload_types
from dpviz.app.components.fields import Field
from dpviz.app.session import cached
from dpviz.app.session.page_state import FamilyState
from dpviz.app.state.answers import take_regions
from dpviz.app.state.parts import ChosenRegions
from dpviz.app.state.toml import file_name
from dpviz.publishing.config import RegionsPart
from dpviz.space.regions import Regions
from dpviz.view.escape import markdown

_NO_NUMBERS = "The numbers of characters must be whole numbers with commas between them, such as 2, 5."


def describe_regions(regions: Regions) -> str:
    """Write the number of regions of each level, as a sentence."""
    sizes = ", ".join(f"{regions.size(level):,} of level {markdown(name)}" for level, name in enumerate(regions.levels, start=1))
    return f"Regions: {sizes}."


def ask_for_regions(cards: Cards, file: str, noun: str, *, has_regions: bool, has_records: bool) -> None:
    """Ask for a file of regions and one of records, as far as they are missing.

    Args:
        cards: say what is missing.
        file: what the file of records is.
        noun: what it holds: "points" or "trips".
        has_regions: whether their file is chosen, or they need none.
        has_records: whether the file of records is there.
    """
    missing = [*([] if has_regions else ["a public file of regions"]), *([] if has_records else [file])]
    if missing:
        cards.ask(FILES, f"Choose {', and '.join(missing)}.")
    if cards.curates:
        cards.whom.caption("Asked once the regions are there." if has_records else f"Asked once the file of {noun} is read.")
        if not has_regions:
            cards.where.caption("Shown once the file of regions is read.")


def make_regions_part(regions: ChosenRegions) -> RegionsPart:
    """Describe a file of regions as a part of a configuration."""
    keys = ("file", "levels", "names", "prefixes", "denominator", "crs")
    return RegionsPart(**{name: getattr(regions, name) for name in keys})


def choose_regions(
    page: FamilyState, cards: Cards, role: str, title: str, *, part: str = "regions", rates: bool = False
) -> cached.UploadedRegions | None:
    """Ask for a file of regions, the columns of its levels, and levels by prefixes of ids; None until it is chosen.

    Args:
        page: state of the page.
        cards: say which columns are missing.
        role: beginning of the slot of the file and of the keys of the widgets.
        title: of the file.
        part: of the draft that holds the answers: "regions" or "destinations".
        rates: whether to ask for a column of numbers by which counts are divided.
    """
    said: ChosenRegions = getattr(page.draft, part) or ChosenRegions()
    text = "Polygons, points or a table: a column of ids per level, or region_id and parent_id."
    kept = ask_for_file(page, title, upload_types(), role, text, named=said.file, what="file of regions")
    if kept is None:
        return None
    name, body = kept
    digest, config = cached.digest_of(body), page.draft.opened
    about = cached.inspect_regions_file(digest, name, body)
    named = None if config is None else getattr(config, part)
    said = take_regions(said, named, name, digest, lambda: about.levels or cached.propose_region_levels(digest, name, body))
    lost = [] if about.nested else [level for level in said.levels if level not in about.columns]
    page.change_for_good(draft={part: replace(said, levels=tuple(level for level in said.levels if level not in lost))})
    if named is not None and named.file is not None and (wanted := file_name(named.file)) != name:
        st.caption(f":orange[The opened configuration is for {markdown(wanted)}: its levels are filled in once you choose it.]")
    for column in lost:
        st.caption(f":orange[The opened configuration names a column {markdown(column)}, which this file does not have.]")
    levels, prefixes = ((), ()) if about.nested else _choose_levels(page, cards, role, part, about.columns, digest)
    if levels is None or prefixes is None:
        return None
    denominator = _choose_denominator(page, role, part, cached.list_region_denominators(digest, name, body), levels) if rates else None
    said = getattr(page.draft, part)
    return cached.read_regions_file(digest, name, body, levels, prefixes, tuple(said.names.items()), said.crs, denominator)


def _choose_levels(
    page: FamilyState, cards: Cards, role: str, part: str, columns: Sequence[str], digest: str
) -> tuple[tuple[str, ...] | None, tuple[int, ...] | None]:
    """Ask for the columns of ids and for levels by prefixes of ids; None for what is missing or wrong."""
    shown = page.widget(part, "levels", f"{role} levels {digest}", show=list, take=tuple)
    text = "One column per level; the last one is that of the regions that the data name."
    levels: tuple[str, ...] = tuple(st.multiselect("Columns of ids, coarsest level first", columns, help=text, **shown))
    if not levels:
        cards.ask(FILES, "Say which columns hold the ids of the regions, coarsest level first.")
        return None, None
    label, said = "Group by the first characters of the id", page.part(part, "prefixes")
    field = Field(
        key=f"{role} prefixes {digest}",
        label=label,
        value=", ".join(map(str, said)),
        problem=lambda typed: None if read_whole_numbers(typed) is not None else _NO_NUMBERS,
        use=lambda typed: page.set(part, prefixes=read_whole_numbers(typed)),
    )
    text = "Adds coarser levels: 2 makes states out of county codes, 2, 5 states and counties out of tracts. Left empty: none."
    return levels, said if field.show(st.text_input, placeholder="for example 2, 5", help=text) else None


def read_whole_numbers(typed: str | None) -> tuple[int, ...] | None:
    """Return whole numbers with commas or spaces between them; None if there is something else.

    >>> read_whole_numbers("2, 5"), read_whole_numbers(""), read_whole_numbers("2.5")
    ((2, 5), (), None)
    """
    parts = (typed or "").replace(",", " ").split()
    return tuple(map(int, parts)) if all(part.isdecimal() and part.isascii() for part in parts) else None


def _choose_denominator(page: FamilyState, role: str, part: str, found: Sequence[str], levels: Sequence[str]) -> str | None:
    """Ask for the column by which counts are divided to rates; none if the file has no other numbers than ids."""
    said: ChosenRegions = getattr(page.draft, part)
    columns = [column for column in found if column not in levels]
    if not columns and said.denominator is None:
        return None
    text = "A public number of each region, such as its residents: maps and releases have rates per 1,000. No record enters."
    key = f"{role} denominator {said.digest}"
    chosen: str | None = pick(
        "Rates per 1,000 of", [NONE, *columns], said.denominator, lambda name: page.set(part, denominator=name), key, text
    )
    return chosen
