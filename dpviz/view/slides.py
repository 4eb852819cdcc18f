"""A lesson as a slide: title and question above its charts, a line on data and source below, 1920 by 1080 pixels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any

import altair as alt
import vl_convert

from dpviz.view.charts import DARK, FONT, LIGHT, STAMP, copy_part, render, set_theme

WIDTH, HEIGHT = 1920, 1080
_MARGIN, _TITLE_SIZE, _QUESTION_SIZE, _SMALL_SIZE = 80, 64, 36, 22
_LETTER = 0.465
"""Mean width of a letter as a part of its size."""
_FIT = alt.AutoSizeParams(type="fit", contains="padding")
_GAP = 40
_ZOOM, _ZOOM_OF_SEVERAL_ROWS = 2.0, 1.45
"""Pixels of the slide per pixel of a chart: charts are drawn for a page, and a slide is read from afar."""


@dataclass(frozen=True, kw_only=True)
class Slide:
    """What stands on a slide.

    Attributes:
        rows: rows of charts as made by `dpviz.view.charts.finish`.
        title: first line.
        question: below the title; may be empty.
        settings: a text that describes the settings.
        source: source of quoted results; may be empty.
    """

    rows: Sequence[Sequence[Any]]
    title: str
    question: str
    settings: str
    source: str = ""


def draw_slide(slide: Slide, kind: str, *, dark: bool = False) -> bytes:
    """Render a slide as an image file.

    Args:
        slide: what stands on it.
        kind: "svg" or "png".
        dark: light lines and texts on a dark background.

    Returns:
        The content of the file.
    """
    theme = DARK if dark else LIGHT
    question = _wrap(slide.question, _QUESTION_SIZE)
    foot = _wrap("  ".join(filter(None, (f"{slide.settings}.", slide.source, STAMP))), _SMALL_SIZE)
    top = _MARGIN + _TITLE_SIZE + round(1.3 * _QUESTION_SIZE * len(question)) + 20
    bottom = HEIGHT - 50 - round(1.35 * _SMALL_SIZE * len(foot))
    texts = [
        _text([slide.title], _MARGIN + 40, _TITLE_SIZE, f'fill="{theme.text}" font-weight="700"'),
        _text(question, _MARGIN + _TITLE_SIZE + 30, _QUESTION_SIZE, f'fill="{theme.text}"'),
        _text(foot, bottom + 40, _SMALL_SIZE, f'fill="{theme.caption}"'),
    ]
    box = (_MARGIN, top, WIDTH - 2 * _MARGIN, bottom - top)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{WIDTH}" height="{HEIGHT}"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FONT}"><rect width="100%" height="100%" fill="{theme.background}"/>'
        f"{''.join(texts)}{_figure(slide.rows, box, dark=dark)}</svg>"
    )
    return svg.encode() if kind == "svg" else bytes(vl_convert.svg_to_png(svg, scale=1))


def _wrap(text: str, size: int) -> list[str]:
    return wrap(text, round((WIDTH - 2 * _MARGIN) / (_LETTER * size)))


def _text(lines: Sequence[str], y: int, size: int, look: str) -> str:
    """Write lines as SVG, the first one's base line at y."""
    at = [(y + round(1.3 * size * number), escape(line)) for number, line in enumerate(lines)]
    return "".join(f'<text x="{_MARGIN}" y="{base}" font-size="{size}" {look}>{text}</text>' for base, text in at)


def _figure(rows: Sequence[Sequence[Any]], box: tuple[float, float, float, float], *, dark: bool) -> str:
    """Draw rows of charts into a box (left, top, width, height) of the slide, as SVG."""
    left, top, width, height = box
    high = (height - _GAP * (len(rows) - 1)) / len(rows)
    zoom = _ZOOM if len(rows) == 1 else _ZOOM_OF_SEVERAL_ROWS
    parts = []
    for row_number, row in enumerate(rows):
        wide = (width - _GAP * (len(row) - 1)) / len(row)
        for number, chart in enumerate(row):
            place = (left + number * (wide + _GAP), top + row_number * (high + _GAP), wide, high)
            sized = copy_part(chart).properties(width=wide / zoom, height=high / zoom, autosize=_FIT)
            svg = render(set_theme(sized, dark=dark, text_size=12), "svg").decode()
            parts.append(_place(svg, place, f"chart{row_number}-{number}-"))
    return "".join(parts)


def _place(svg: str, box: tuple[float, float, float, float], prefix: str) -> str:
    """Place an SVG within that of the slide; the prefix keeps its names apart from those of other charts."""
    left, top, width, height = box
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg)
    view = f'x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}"'
    return re.sub(r'<svg\b[^>]*?(viewBox="[^"]*")[^>]*>', rf"<svg {view} \1>", svg, count=1)
