"""Stop: where the budget goes in a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.app.controls import share_field
from dpviz.app.split_bar import split_bar
from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, draw_setting, epsilon_setting
from dpviz.errors import SettingError
from dpviz.lessons.charts import COLORS, RED, Look, curves
from dpviz.lessons.errors import ANYWHERE, PLACEMENTS, split_draws, split_theory, with_leaves
from dpviz.mechanisms.base import setting
from dpviz.privacy.allocation import PUBLISHED, level_weights
from dpviz.privacy.shares import redistribute

HEIGHT, REPEATS = 5, 20
SIMPLE = ("uniform", "geometric", "leaf")
YOURS = "your split"


def _of(weights: list[float]) -> tuple[float, ...]:
    return tuple(round(share, 6) for share in with_leaves(weights))


PRESETS = {name: _of(level_weights(name, HEIGHT)) for name in SIMPLE} | {each.title: _of(each.weights(HEIGHT)) for each in PUBLISHED}
_WHERE = {
    "Google mobility reports": "arXiv:2004.04145",
    "US Census 2020 (persons)": "The document is 2021-06-08-privacy-loss_budgetallocation.pdf on www2.census.gov, to which the Bureau's"
    " published code (DAS_2020_Redistricting_Production_Code) refers; its block groups are made for the algorithm",
}
SOURCES = {each.title: f"{each.source}. {_WHERE[each.title]}." for each in PUBLISHED}


@dataclass(frozen=True, kw_only=True)
class Split(Knobs):
    """Settings of the stop."""

    levels: tuple[float, ...] = setting(
        PRESETS[PUBLISHED[0].title], "Shares", low=0, high=1, help="Share of ε per level, whole town first."
    )
    epsilon: float = epsilon_setting(0.5)
    squares: str = setting(ANYWHERE, "Squares", choices=PLACEMENTS, help="Anywhere in the town, or blocks that the tree itself counts.")
    least_squares: bool = setting(True, "Least squares", help="Make the levels agree in the most accurate way; free post-processing.")
    draw: int = draw_setting()

    def __post_init__(self) -> None:
        """Shares are checked beyond their range: one per level, and something in them."""
        super().__post_init__()
        if len(self.levels) != HEIGHT + 1 or not sum(self.levels) > 0:
            raise SettingError(f"Shares must be {HEIGHT + 1} numbers from 0 to 1, one of them greater than 0.")


def controls(knobs: Split, change: Callable[..., None]) -> None:
    """Presets, the bar to drag, and the shares to type."""
    known = next((name for name, shares in PRESETS.items() if _same(shares, knobs.levels)), None)
    key = "learn split preset"
    st.session_state[key] = known
    st.selectbox(
        "Preset",
        list(PRESETS),
        key=key,
        index=None,
        placeholder="your own",
        format_func=lambda name: name.capitalize() if name in SIMPLE else name,
        on_change=lambda: _use_preset(st.session_state[key], change),
        help="Published ones are spread over the five steps of this tree.",
    )
    labels = [f"zoom {depth}" for depth in range(HEIGHT + 1)]
    unlocked = [False] * len(labels)

    def use(shares: list[float]) -> None:
        change(levels=tuple(round(share, 4) for share in shares))

    st.caption("Share of ε per zoom level, whole town first: drag, or use the arrow keys.")
    split_bar(labels, list(knobs.levels), locked=unlocked, key="learn split bar", on_change=use)
    with st.expander("Type the shares"):
        whole = sum(knobs.levels)
        now = [share / whole for share in knobs.levels]
        for place, share in enumerate(now):
            _typed(place, share, partial(_use_one, now, place, use))


def _use_preset(name: str | None, change: Callable[..., None]) -> None:
    if name is not None:
        change(levels=PRESETS[name])


def _use_one(now: list[float], place: int, use: Callable[[list[float]], None], value: float) -> None:
    use(redistribute(now, [False] * len(now), place, value))


def _typed(place: int, share: float, use: Callable[[float], None]) -> None:
    share_field(f"learn share {place}", f"zoom {place}, %", share, use).show(st.number_input, value=None, step=1.0, format="%.2f")


def _same(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return all(abs(a / sum(first) - b / sum(second)) < 1e-4 for a, b in zip(first, second, strict=True))


def show(knobs: Split) -> Shown:
    """Theory for the simple splits and the chosen one, and draws of that."""
    shares, how = with_leaves(knobs.levels), {"least_squares": knobs.least_squares, "placement": knobs.squares}
    lines = {name: _theory(PRESETS[name], knobs) for name in SIMPLE} | {YOURS: _theory(shares, knobs)}
    dots = split_draws(shares, knobs.epsilon, how, knobs.draw, REPEATS).assign(series=YOURS)
    look = Look(
        title="Expected error by size of the question",
        x="cells in the square",
        y="typical error (people)",
        order=(YOURS, *SIMPLE),
        colors=(RED, *COLORS[:1], *COLORS[2:]),
        log_x=True,
        log_y=True,
        height=400,
        told=f"Lines are theory, dots {REPEATS} draws of your split.",
    )
    table = pd.concat([rows.assign(series=name) for name, rows in lines.items()], ignore_index=True)
    chart = curves(_renamed(table), look, dots=_renamed(dots))
    known = next((name for name, preset in PRESETS.items() if _same(preset, knobs.levels) and name in SOURCES), None)
    return Shown(
        rows=((chart,),),
        figures=_figures(lines),
        note=f"Lines: theory. Dots: {REPEATS} seeded draws of your split. The finest level keeps at least 1 %: below what is measured, a"
        " tree knows nothing. Only noise is in these errors. Geometric shares grow by the cube root of 2 from level to level: without"
        " least squares the best for the published bound on the error of any range query (Cormode et al. 2012, Lemma 3).",
        source=SOURCES[known] if known else "",
    )


def _theory(shares: tuple[float, ...], knobs: Split) -> pd.DataFrame:
    return split_theory(shares, knobs.epsilon, knobs.least_squares, knobs.squares)


def _renamed(table: pd.DataFrame) -> pd.DataFrame:
    return table.rename(columns={"cells": "x", "error": "y"})


def _figures(lines: dict[str, Any]) -> tuple[Figure, ...]:
    mine, best = lines[YOURS], lines["geometric"]
    sizes = (("One cell", 0), (f"{mine['cells'].iloc[3]:,} cells", 3), ("Whole town", -1))
    return tuple(
        Figure(
            label=name,
            value=f"± {mine['error'].iloc[place]:.3g}",
            help=f"Typical error of your split, in people; the geometric split has {best['error'].iloc[place]:.3g}.",
        )
        for name, place in sizes
    )


SPLIT = Stop(
    key="split",
    title="Where the budget goes in a tree",
    says="A person is counted once on every level of a tree, so the levels share ε: what one level gets, the others lose. More near the"
    " root makes large sums more accurate, more near the leaves small ones.",
    task="choose the preset *Leaf*, then drag a little back to the upper levels: how little does it take to bring the large squares down?",
    knobs=Split,
    show=show,
    controls=controls,
)
