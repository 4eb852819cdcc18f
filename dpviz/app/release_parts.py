"""Parts of the Release page: the dry run, and the words of a publication."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dpviz.app.fields import at_most, check
from dpviz.app.ledger import Loaded
from dpviz.app.session import refusal
from dpviz.errors import DpvizError, SettingError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.budget import Budget
from dpviz.publishing.dry_run import Expected, expected
from dpviz.release.tables import FORMATS
from dpviz.release.verdict import records_needed
from dpviz.view.escape import markdown

LONGEST_LINE, LONGEST_TEXT = 200, 4000
REQUIRED = ("name", "curator", "description")
_LABELS = {
    "name": ("Name of the publication", "for example Homes by neighbourhood, 2024"),
    "curator": ("Curator", "who answers for it, and how to reach them"),
    "region": ("Region, if you like", "where, in words"),
    "description": ("Description", "what was counted, when and how it was collected"),
    "intended_use": ("Intended use, if you like", "what it is good for, and what not"),
}
_LONG = ("description", "intended_use")


def words_form() -> dict[str, Any]:
    """What only the curator can say; kept for the session, escaped wherever it is shown later."""
    st.markdown("##### 2 Words")
    st.caption("All of this is published as it stands. Write nothing that only the data can tell.")
    said: dict[str, Any] = {}
    left, right = st.columns(2)
    for name, place in (("name", left), ("curator", right), ("description", st), ("intended_use", st), ("region", st)):
        label, example = _LABELS[name]
        common: dict[str, Any] = {"key": f"publication {name}", "placeholder": example, "persist_state": "session"}
        if name in _LONG:
            said[name] = place.text_area(label, height=80, **common)
        else:
            said[name] = place.text_input(label, **common)
        check(common["key"], at_most(label, LONGEST_TEXT if name in _LONG else LONGEST_LINE)(said[name]))
    st.session_state.setdefault("publication formats", list(FORMATS))
    said["formats"] = st.multiselect(
        "Formats",
        FORMATS,
        key="publication formats",
        persist_state="session",
        help="geoparquet is lossless and always written: only it can be read back. Manifest and report are always there.",
    )
    return said


def checked_words(said: dict[str, Any]) -> dict[str, Any]:
    """The words as they are published, without space around them.

    Raises:
        SettingError: one that is needed is missing, or one is too long.
    """
    texts = {name: str(said[name] or "").strip() for name in _LABELS}
    missing = [_LABELS[name][0].lower() for name in REQUIRED if not texts[name]]
    if missing:
        raise SettingError(f"Still missing: {', '.join(missing)}. Nothing was drawn or spent.")
    for name, text in texts.items():
        longest = LONGEST_TEXT if name in _LONG else LONGEST_LINE
        if len(text) > longest:
            raise SettingError(f"{_LABELS[name][0]}: at most {longest:,} characters. Nothing was drawn or spent.")
    formats = [name for name in FORMATS if name == FORMATS[0] or name in said["formats"]]
    return {**texts, "formats": formats}


def dry_run_block(data: Loaded, mechanism: AnyMechanism, budget: Budget) -> None:
    """Expected error per level, from the mechanism alone."""
    st.markdown("##### Dry run")
    try:
        found = _expected(data, mechanism, budget)
    except DpvizError as error:
        refusal(str(error))
        return
    table = found.by_level
    shown = pd.DataFrame({"level": table["level"], "of": table["of"]})
    if table["numbers"].notna().any():
        shown["numbers"] = table["numbers"]
    shown["± typical noise"], shown["± 95 % of the noise"] = table["stddev"], table["interval"]
    if table["numbers"].notna().all():
        shown["usable from"] = [records_needed(*row) for row in zip(table["numbers"], table["stddev"], strict=True)]
    config = {name: st.column_config.NumberColumn(format="%.1f" if name.startswith("±") else "localized") for name in shown.columns[2:]}
    st.dataframe(shown, hide_index=True, width="stretch", column_config=config)
    if "usable from" in shown:
        st.caption(f"A level is usable from that many {data.unit} in all: its noise is then at most 40 % of an average number.")
    st.caption(f"In {data.unit}, computed without a single record: nothing is spent. {markdown(found.note)}")


def _expected(data: Loaded, mechanism: AnyMechanism, budget: Budget) -> Expected:
    """The dry run of these settings, kept until they change: it holds nothing of the data."""
    key = (data.digest, data.marks, repr(mechanism), str(budget))
    known, found = st.session_state.get("dry run", (None, None))
    if known != key:
        with st.spinner("Dry run ..."):
            found = expected(mechanism, data.private, budget)
        st.session_state["dry run"] = (key, found)
    return found  # type: ignore[no-any-return]
