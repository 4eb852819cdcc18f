"""How arcs look: colours, widths and the legend that tells them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.view.colors import FALSE_NEGATIVE, FALSE_POSITIVE, Colors, Scale
from dpviz.view.escape import html
from dpviz.view.trips_layers import at_origins, bar
from dpviz.view.trips_pairs import Pairs

if TYPE_CHECKING:
    from dpviz.view.trips_map import TripsView

Floats = NDArray[np.float64]
Color = tuple[int, int, int]

THINNEST, WIDEST = 1.0, 9.0
_FEW_ARCS, _LEAST_WIDE = 100, 3.5
_SAMPLES = (0.01, 0.25, 1.0)
_FAINTEST, _STRONGEST = 45, 245
_RIGHT, _GREY = (128, 128, 128, 90), (128, 128, 128)


@dataclass(frozen=True, kw_only=True)
class Widths:
    """From numbers of trips to pixels: by their square roots, narrower where there are many arcs.

    Attributes:
        top: the number that gets the widest arc; larger ones too. Public.
        arcs: how many arcs there are, a public number.
    """

    top: float
    arcs: int

    def strength(self, values: ArrayLike) -> Floats:
        """(k,) 0 to 1."""
        return np.clip(np.asarray(values, np.float64) / self.top, 0.0, 1.0) ** 0.5

    def pixels(self, values: ArrayLike) -> Floats:
        """(k,) widths."""
        widest = max(WIDEST * math.pow(_FEW_ARCS / max(self.arcs, _FEW_ARCS), 0.3), _LEAST_WIDE)
        return THINNEST + (widest - THINNEST) * self.strength(values)

    def legend(self, color: Color) -> str:
        """Samples with their numbers, as a piece of HTML."""
        numbers = [value for value in (share * self.top for share in _SAMPLES) if value >= 1] or [self.top]
        pieces = []
        for value, width in zip(numbers, self.pixels(numbers).tolist(), strict=True):
            style = f"width:26px;height:{width:.1f}px;background:rgb{color};vertical-align:middle;outline:none"
            pieces.append(f'<span class="dpviz-bar" style="{style}"></span> {value:,.0f}')
        return f"{' '.join(pieces)} and more"


@dataclass(frozen=True, kw_only=True)
class Look:
    """The look of pairs.

    Attributes:
        color: (k, 4) red, green, blue, alpha of the strong ends.
        width: (k,) pixels.
        legend: pieces of HTML.
    """

    color: Colors
    width: Floats
    legend: list[str]


def leaving_color(dark: bool) -> Color:
    """The accent, for trips as released or as they are."""
    return (79, 176, 206) if dark else (11, 110, 143)


def arriving_color(dark: bool) -> Color:
    """For trips into a chosen region."""
    return (240, 180, 60) if dark else (201, 124, 0)


def plain_look(pairs: Pairs, view: TripsView, widths: Widths) -> Look:
    """Released or true trips, by number; into and out of a chosen region in two colours."""
    shown = pairs.true if pairs.true is not None and view.shown == "True" else pairs.released
    out, into = leaving_color(view.dark), arriving_color(view.dark)
    base = np.where((pairs.destination == (-1 if view.chosen is None else view.chosen))[:, None], into, out)
    title = f"<b>{'true ' if view.shown == 'True' else ''}{html(view.unit)} per pair</b>"
    both = "" if view.chosen is None else f"{_mark(out)}leaving {_mark(into)}arriving"
    return Look(
        color=_faded(base, widths.strength(shown)),
        width=widths.pixels(shown),
        legend=[f"{title} {widths.legend(out)}", both, _direction(out)],
    )


def error_look(pairs: Pairs, view: TripsView, widths: Widths) -> Look:
    """Released minus true, on a scale with two signs."""
    scale = Scale(kind="signed", top=widths.top, title=f"released minus true, {view.unit} per pair", dark=view.dark)
    inner = scale.legend().removeprefix('<div class="dpviz-legend">').removesuffix("</div>")
    size = np.abs(pairs.error)
    color = _faded(scale.colors(pairs.error)[:, :3], widths.strength(size))
    return Look(color=color, width=widths.pixels(size), legend=[inner, _direction(_GREY)])


def marks_look(pairs: Pairs, view: TripsView, widths: Widths) -> Look:
    """Trips that are made up, and trips that are missing, among those that are right."""
    colors = np.array([_RIGHT, (*FALSE_POSITIVE, 230), (*FALSE_NEGATIVE, 230)], np.uint8)
    true = pairs.released if pairs.true is None else pairs.true
    entries = (
        (FALSE_POSITIVE, "false positive: released, no such trip"),
        (FALSE_NEGATIVE, "false negative: trips that the release lacks"),
        (_GREY, "released and true"),
    )
    marks = "".join(f"{_mark(color)}{text} " for color, text in entries)
    return Look(
        color=colors[pairs.marks],
        width=widths.pixels(np.maximum(pairs.released, true)),
        legend=[marks, f"<b>{html(view.unit)} per pair</b> {widths.legend(_GREY)}", _direction(_GREY)],
    )


def legend_line(pieces: list[str]) -> str:
    """Pieces as one line of HTML."""
    gap = '<span class="dpviz-gap"></span>'
    return f'<div class="dpviz-legend">{gap.join(piece for piece in pieces if piece)}</div>'


def _faded(base: NDArray[np.integer], strength: Floats) -> Colors:
    return np.column_stack([base, _FAINTEST + (_STRONGEST - _FAINTEST) * strength]).astype(np.uint8)


def _direction(color: Color) -> str:
    ends = np.array([[*color, 240]], np.uint8)
    return f"from {bar(np.concatenate([at_origins(ends), ends]), 60)} to"


def _mark(color: Color) -> str:
    return f'<span class="dpviz-mark" style="background:rgb{color}"></span> '
