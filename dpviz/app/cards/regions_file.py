"""A public file of regions: which columns are its levels, how it is described, and how a saved configuration names it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpviz.app.cards import opened_config
from dpviz.app.cards.cards import DATA, Cards
from dpviz.app.cards.columns import keep_known, pick
from dpviz.app.cards.path_files import ask_for_file, upload_types
from dpviz.app.session import cached
from dpviz.app.session.saved_config import NONE
from dpviz.publishing.config import RegionsPart
from dpviz.space.regions import Regions
from dpviz.view.escape import markdown


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
        has_regions: whether the regions are there, or need no file.
        has_records: whether the file of records is there.
    """
    missing = [*([] if has_regions else ["a public file of regions"]), *([] if has_records else [file])]
    if missing:
        cards.ask(DATA, f"Choose {', and '.join(missing)}.")
    if cards.curates:
        cards.whom.caption("Asked once the regions are there." if has_records else f"Asked once the file of {noun} is read.")
        if not has_regions:
            cards.where.caption("Shown once the file of regions is read.")


def make_regions_part(role: str, uploaded: cached.UploadedRegions) -> RegionsPart:
    """Describe a file of regions as a part of a configuration; `role` is the beginning of its slots."""
    _, levels, prefix_lengths, *_, denominator = uploaded.key
    file = st.session_state[f"{role} uploaded"][0]
    part = RegionsPart(file=file, levels=levels, prefixes=prefix_lengths, denominator=denominator)  # type: ignore[arg-type]
    return opened_config.with_kept_regions(part, role)


def choose_regions(role: str, title: str, *, rates: bool = False) -> cached.UploadedRegions | None:
    """Ask for a file of regions, the columns of its levels, and levels by prefixes of ids; None until it is chosen.

    With `rates` also ask for a column of numbers by which counts are divided.
    """
    kept = ask_for_file(title, upload_types(), role, "Polygons, points or a table: a column of ids per level, or region_id and parent_id.")
    if kept is None:
        return None
    name, body = kept
    digest = cached.digest_of(body)
    about, opened = cached.inspect_regions_file(digest, name, body), opened_config.fill_in_regions(role, name, digest)
    written = ((), None) if opened is None else (tuple(opened.names.items()), opened.crs)
    if about.nested:
        return cached.read_regions_file(digest, name, body, (), (), *written, _choose_denominator(role, kept, ()) if rates else None)
    key = f"{role} levels {digest}"
    for column in st.session_state.get(key, ()):  # an opened configuration may name columns that the file does not have
        keep_known(key, about.columns, column)
    levels = st.multiselect(
        "Columns of ids, coarsest level first",
        about.columns,
        default=about.levels or cached.propose_region_levels(digest, name, body),
        key=key,
        persist_state="session",
        help="One column per level; the last one is that of the regions in the trips file.",
    )
    if not levels:
        st.info("Say which columns hold the ids of the regions, coarsest level first.")
        return None
    text = st.text_input(
        "Group by the first characters of the id",
        key=f"{role} prefixes {digest}",
        persist_state="session",
        placeholder="for example 2, 5",
        help="Adds coarser levels: 2 makes states out of county codes, 2, 5 states and counties out of tracts. Left empty: none.",
    )
    parts = text.replace(",", " ").split()
    if not all(part.isdecimal() and part.isascii() for part in parts):
        st.error("The numbers of characters must be whole numbers with commas between them, such as 2, 5.")
        return None
    prefix_lengths = tuple(int(part) for part in parts)
    denominator = _choose_denominator(role, kept, levels) if rates else None
    return cached.read_regions_file(digest, name, body, tuple(levels), prefix_lengths, *written, denominator)


def _choose_denominator(role: str, kept: tuple[str, bytes], levels: Sequence[str]) -> str | None:
    """Ask for the column by which counts are divided to rates; none if the file has no other numbers than ids."""
    name, body = kept
    digest = cached.digest_of(body)
    columns = [column for column in cached.list_region_denominators(digest, name, body) if column not in levels]
    key = f"{role} denominator {digest}"
    if not columns and key not in st.session_state:
        return None
    help_text = "A public number of each region, such as its residents: maps and releases have rates per 1,000. No record enters."
    return pick("Rates per 1,000 of", [NONE, *columns], None, key, help_text)
