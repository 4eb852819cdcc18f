"""The public guess of Curate: how many records there may be, and how they lie. Nothing of it comes from the data."""

from __future__ import annotations

import io
from dataclasses import dataclass

import streamlit as st

from dpviz.app.components.fields import Field, in_range
from dpviz.app.server.class_mode import refuse_in_class
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.widgets import show_error
from dpviz.data.counts import PERSON
from dpviz.errors import DpvizError, InputError
from dpviz.publishing.private_data import PrivateData
from dpviz.publishing.public_guess import EVEN, RELEASED, TOWNS, check_guess, guess_total
from dpviz.release.base import NoisyRelease
from dpviz.release.files import read_release

MOST_RECORDS = 10_000_000
LARGEST_BUNDLE = 200_000_000  # bytes
_CHOOSE_BUNDLE = ":orange[Choose the earlier release: the bundle (zip) that this app or the command line made.]"


@dataclass(frozen=True, kw_only=True, eq=False)
class Guess:
    """A public guess of the data.

    Attributes:
        records: how many records or trips there may be; None without a guess.
        spread: how they lie, one of `SPREADS`.
        pairs: on how many pairs of the finest level trips may lie; None for all of them.
        release: the earlier release by whose counts they lie; None for another spread.
    """

    records: int | None
    spread: str = EVEN
    pairs: int | None = None
    release: NoisyRelease | None = None


def choose_guess(page: FamilyState, frame: PrivateData, unit: str) -> Guess:
    """Ask how many records there are, about, and how they lie. The number is never filled in; an earlier release gives both.

    Args:
        page: state of the page.
        frame: domain or regions, unit and bound; its records are not used.
        unit: what is counted, in the plural.
    """
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        records = _choose_number(page, "records", f"How many {unit}{_say_bound(frame)}, about?", "a public guess")
    spreads = [EVEN, RELEASED] if len(frame.sides) == 2 else [TOWNS, EVEN, RELEASED]
    spread = said if (said := page.draft.guess.spread) in spreads else spreads[0]
    right.selectbox("They lie", spreads, **page.widget("guess", "spread", f"good spread {page.key}", show=lambda _: spread))
    if spread == RELEASED:
        release = _choose_release(page, frame)
        if release is None:
            return Guess(records=None)
        return Guess(records=records or min(guess_total(release), MOST_RECORDS), spread=spread, release=release)
    if len(frame.sides) == 2:
        if records is None:
            return Guess(records=None)
        label = "On how many pairs of the finest level, about?"
        return Guess(records=records, pairs=_choose_number(page, "pairs", label, "all of them"))
    return Guess(records=records, spread=spread)


def _say_bound(frame: PrivateData) -> str:
    """Say which records a guess is of, where some of a person's do not count."""
    return f" that count, at most {frame.contributions:,} of each person" if frame.unit == PERSON else ""


def _choose_number(page: FamilyState, part: str, label: str, placeholder: str) -> int | None:
    text = "A guess from public knowledge, not from the data: errors are compared with counts of that many."
    within = in_range(label, 1, MOST_RECORDS, optional=True)
    field = Field.of(page, "guess", part, key=f"good {part} {page.key}", label=label, problem=within)
    return field.value if field.show(st.number_input, value=None, step=1000, help=text, placeholder=placeholder) else None


def _choose_release(page: FamilyState, frame: PrivateData) -> NoisyRelease | None:
    """Ask for the bundle of an earlier release of the same kind of data; None until there is one that can be read."""
    refuse_in_class("files")
    slot = f"good release {page.key}"
    text = "A public release of other data of the same area: of the year before, or a coarser one."
    st.file_uploader("Earlier release", ["zip"], key=f"{slot} file", on_change=lambda: _take_bundle(slot), help=text)
    if problem := st.session_state.get(f"{slot} problem"):
        show_error(problem)
    release: NoisyRelease | None = st.session_state.get(slot)
    if release is None:
        st.caption(_CHOOSE_BUNDLE)
        return None
    if release.family != frame.family:
        show_error(f"This is a release of {release.family}: choose one of the same kind of data.")
        return None
    return release


def _take_bundle(slot: str) -> None:
    """Read the chosen bundle; one that cannot be read leaves none, and a sentence why. Without a file, what was read stays."""
    file = st.session_state.get(f"{slot} file")
    if file is None:
        return
    st.session_state.update({slot: None, f"{slot} problem": ""})
    try:
        if file.size > LARGEST_BUNDLE:
            raise InputError(f"A bundle has at most {LARGEST_BUNDLE // 10**6} MB: choose the zip that was downloaded from the app.")
        st.session_state[slot] = check_guess(read_release(io.BytesIO(file.getvalue())))
    except DpvizError as error:
        st.session_state[f"{slot} problem"] = str(error)
