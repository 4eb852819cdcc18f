"""Texts on budgets and releases that pages share: amounts, the verdict, and the receipt with its small print."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dpviz.amounts import format_budget_symbols
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED
from dpviz.privacy.accounts import Amount, amount_of
from dpviz.privacy.budget import Budget
from dpviz.privacy.receipt import Receipt
from dpviz.release.base import NoisyRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.mean_release import MeanRelease
from dpviz.release.tables import escape_texts
from dpviz.release.verdict import describe_pairs, verdict
from dpviz.view.escape import markdown

AT_ONCE = "The 95 % intervals hold for all {numbers:,} numbers of the release at once, and so also for the largest ones, which stand first."
NO_INTERVALS = "This method states no noise: it has neither standard deviations nor intervals. That is not an error of 0."
_CHOICES = {BOUNDED: "one is replaced", ADD_REMOVE: "one is added or removed"}
CHOSEN_BEFOREHAND = "It holds for what was chosen without a look at the counts, not for the largest of many."


def show_table(table: pd.DataFrame | Styler, **options: Any) -> None:
    """Show a table, over which Streamlit offers a download as CSV: texts that a spreadsheet would take for formulas are escaped.

    Args:
        table: to show; one with a style has escaped texts already.
        options: of `st.dataframe`.
    """
    st.dataframe(escape_texts(table) if isinstance(table, pd.DataFrame) else table, hide_index=True, width="stretch", **options)


def budget_text(epsilon: Fraction | float, delta: Fraction | float = 0) -> str:
    """Return a budget as it is written on screen; delta only where there is one.

    >>> budget_text(Fraction(1, 2)), budget_text(0.5, 1e-6)
    ('ε 0.5', 'ε 0.5, δ 1e-6')
    """
    return format_budget_symbols({"epsilon": epsilon, "delta": delta})


def amount_text(amount: Amount) -> str:
    """Return an amount of the ledger as it is written on screen.

    >>> amount_text({"rho": Fraction(1, 8)}), amount_text({"epsilon": Fraction(1), "delta": Fraction(0)})
    ('ρ 0.125', 'ε 1')
    """
    return format_budget_symbols(amount)


def budget_words(budget: Budget) -> str:
    """Return a budget of any kind as it is written on screen."""
    return amount_text(amount_of(budget))


def choice_words(choice: object) -> str:
    """Return a choice of a setting as it is written on screen.

    >>> choice_words("bounded"), choice_words("least_squares"), choice_words(4)
    ('one is replaced', 'least squares', '4')
    """
    return markdown(plain_choice(choice))


def plain_choice(choice: object) -> str:
    """Return the same before it is escaped."""
    return _CHOICES.get(str(choice), str(choice).replace("_", " "))


def number_of(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1.

    >>> number_of(1, "repeat"), number_of(1200, "repeat")
    ('1 repeat', '1,200 repeats')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def show_chart(chart: Any, place: Any = st) -> None:
    """Show a chart as wide as its place. Its specification is not checked again, which takes most of the time: the tests do so."""
    place.vega_lite_chart(chart.to_dict(validate=False), width="stretch")


def show_noise(column: Any, stddev: float, of: str) -> None:
    """Show the typical noise as a key figure; `of` says whose median it is. Of a contrast it is not stated."""
    shown = f"{stddev:,.1f}" if math.isfinite(stddev) else "not stated"
    help_text = f"Median standard deviation {of}; known without the truth." if math.isfinite(stddev) else NO_INTERVALS
    column.metric("Typical noise (standard deviation)", shown, help=help_text)


def show_interval(column: Any, title: str, ends: tuple[float, float], help_text: str) -> None:
    """Show an interval as a key figure, or that there is none."""
    if math.isfinite(ends[1]):
        column.metric(title, f"{ends[0]:,.0f} to {ends[1]:,.0f}", help=help_text)
    else:
        column.metric(title, "not stated", help=NO_INTERVALS)


def receipt_table(receipt: Receipt, column: str = "", name_of: Callable[[int | None], Any] = str) -> None:
    """Show the steps of a receipt as a table, with their budgets and noises.

    Args:
        receipt: receipt of the release.
        column: title of the column of levels; without it there is none, since what a step is for says its level.
        name_of: returns the name of a step's level in that column.
    """
    if not receipt.private:
        text = "The steps say only what its noise was made from." if receipt.steps else "Nothing has noise that a budget pays for."
        st.caption(f":orange[**NOT PRIVATE**: no budget bounds what this release reveals. {text}]")
    if not receipt.steps:
        return
    unit, has_early, has_delta = (
        receipt.currency,
        any(step.replaces_later for step in receipt.steps),
        any(step.delta for step in receipt.steps),
    )
    rows = [
        {
            "for": step.purpose,
            **({column: name_of(step.level)} if column else {}),
            unit: float(step.amount),
            f"{unit} exactly": str(step.amount),
            **({"δ": f"{float(step.delta):.3g}" if step.delta else ""} if has_delta else {}),
            **({"in the sum": not step.replaces_later} if has_early else {}),
            "sensitivity": float(step.sensitivity),
            "noise": step.noise,
            "scale": float(step.scale),
            "counts": step.counts,
        }
        for step in receipt.steps
    ]
    exact_column = st.column_config.TextColumn(help="Parts are multiples of the whole / 2^32, so that they add up to it without rounding.")
    show_table(pd.DataFrame(rows), column_config={f"{unit} exactly": exact_column})
    if receipt.private:
        st.caption(_sum_up(receipt))
    if has_early:
        st.caption(
            "Early leaves end above the lowest level. Paths that end there spend at once what later steps spend on the others:"
            " in place of those steps, so it is not added up."
        )


def _sum_up(receipt: Receipt) -> str:
    """Return sentences on the spent budget, the available budget, and how the steps add up."""
    delta, allowed = sum((step.delta for step in receipt.steps), Fraction(0)), getattr(receipt.total, "delta", 0)
    delta_text = f", δ {float(delta):.3g} of {float(allowed):.3g}" if delta else ""
    completeness = "exactly" if receipt.used == receipt.available and (not delta or delta == allowed) else "less than"
    return (
        f"Spent {receipt.currency} {float(receipt.used):g} of {float(receipt.available):g}{delta_text}: {completeness} all of it. Steps add"
        " up along every record's path; counts within a step are disjoint and are paid for once."
    )


def small_print(receipt: Receipt, steps: Sequence[str], approximate: str | None, further_lines: Sequence[str]) -> None:
    """Show what is protected, what is not, post-processing and notes; `further_lines` come before the line on the spread."""
    bound = "" if receipt.contributions == 1 else f", at most {receipt.contributions:,} records each"
    lines = [
        f"**Protected**: {markdown(receipt.neighbours)} {markdown(receipt.unit)}{bound}."
        if receipt.private
        else "**NOT PRIVATE**: nothing is protected.",
        f"**Not protected**: {markdown(', '.join(receipt.unprotected))}.",
        f"**Post-processing**, in order: {markdown(', '.join(steps)) or 'none'}.",
        *(f"**Note**: {markdown(note)}" for note in receipt.notes),
        *further_lines,
        *([f"**Spread**: {markdown(approximate)}."] if approximate else []),
    ]
    st.markdown("\n".join(f"- {line}" for line in lines))


def verdict_row(release: NoisyRelease, title: str = "") -> None:
    """Show which levels of a release are usable, and the rule. Nothing is shown of references, which have no noise that could be judged.

    Args:
        release: the release that is shown.
        title: title of its mechanism, if several releases are shown side by side.
    """
    if not release.receipt.private:
        return
    result, name = verdict(release), f"{markdown(title)}: " if title else ""
    by_slot = describe_pairs(release) if isinstance(release, CrossRelease) and not isinstance(release, MeanRelease) else ""
    st.markdown(f"{name}**{markdown(result.headline)}** {markdown(f'{result.detail}{by_slot}')}", help=markdown(result.rule))
