"""The receipt of a release as a table, and the small print below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.privacy.receipt import Receipt


def receipt_table(receipt: Receipt, place: str, place_of: Callable[[int | None], Any]) -> None:
    """What was spent on what; `place` names the column of levels or stages, which `place_of` translates."""
    unit = receipt.currency
    rows = [
        {
            "for": step.purpose,
            place: place_of(step.level),
            unit: float(step.amount),
            f"{unit} exactly": str(step.amount),
            "sensitivity": float(step.sensitivity),
            "noise": step.noise,
            "scale": float(step.scale),
            "counts": step.counts,
        }
        for step in receipt.steps
    ]
    exactly = st.column_config.TextColumn(help="Parts are multiples of the whole / 2^32, so that they add up to it without rounding.")
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", column_config={f"{unit} exactly": exactly})
    exact = "exactly all of it" if receipt.spent == receipt.total else "less than all of it"
    st.caption(
        f"Spent {unit} {float(receipt.used):g} of {float(receipt.available):g}: {exact}. Steps add up along every record's path;"
        " counts within a step are disjoint and are paid for once."
    )


def small_print(receipt: Receipt, steps: Sequence[str], approximate: str | None, extra: Sequence[str]) -> None:
    """What is protected, what is not, post-processing and notes; `extra` lines stand before what is said of the spread."""
    bound = "" if receipt.contributions == 1 else f", at most {receipt.contributions:,} records each"
    lines = [
        f"**Protected**: {receipt.neighbours} {receipt.unit}{bound}.",
        f"**Not protected**: {', '.join(receipt.unprotected)}.",
        f"**Post-processing**, in order: {', '.join(steps) or 'none'}.",
        *(f"**Note**: {note}" for note in receipt.notes),
        *extra,
        *([f"**Spread**: {approximate}."] if approximate else []),
    ]
    st.markdown("\n".join(f"- {line}" for line in lines))
