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

from dpviz.view.charts import DARK, FONT, GREY, INDEPENDENT, LIGHT, STAMP, copy_part, render, set_theme

WIDTH, HEIGHT = 1920, 1080
_MARGIN, _TITLE_SIZE, _QUESTION_SIZE, _SMALL_SIZE = 80, 64, 36, 22
_LETTER = 0.49
"""Mean width of a letter as a part of its size."""
_ZOOM = 2.0
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
        _text(foot, bottom + 40, _SMALL_SIZE, f'fill="{GREY}"'),
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
    rows = (
        f'<text x="{_MARGIN}" y="{y + round(1.3 * size * i)}" font-size="{size}" {look}>{escape(t)}</text>' for i, t in enumerate(lines)
    )
    return "".join(rows)


def _figure(rows: Sequence[Sequence[Any]], box: tuple[int, int, int, int], *, dark: bool) -> str:
    """Draw rows of charts into a box (left, top, width, height) of the slide, as SVG."""
    left, top, width, height = box
    widths = [width / _ZOOM / len(row) for row in rows]
    heights = [height / _ZOOM / len(rows)] * len(rows)
    wide, high = _natural_size(_concat(rows, widths, heights, dark=dark))  # with axes and titles, which Vega adds to the size
    widths = [each - (wide - width / _ZOOM) / len(row) for each, row in zip(widths, rows, strict=True)]
    heights = [each - (high - height / _ZOOM) / len(rows) for each in heights]
    svg = _concat(rows, widths, heights, dark=dark)
    wide, high = _natural_size(svg)
    view = f'x="{left}" y="{top}" width="{width}" height="{height}" viewBox="0 0 {wide:g} {high:g}"'
    return re.sub(r"<svg\b[^>]*>", f'<svg {view} preserveAspectRatio="xMidYMid meet">', svg, count=1)


def _concat(rows: Sequence[Sequence[Any]], widths: Sequence[float], heights: Sequence[float], *, dark: bool) -> str:
    sized = [
        alt.hconcat(*(copy_part(chart).properties(width=wide, height=high) for chart in row)).resolve_scale(**INDEPENDENT)
        for row, wide, high in zip(rows, widths, heights, strict=True)
    ]
    chart = alt.vconcat(*sized, padding=0).resolve_scale(**INDEPENDENT)
    return render(set_theme(chart, dark=dark, text_size=12), "svg").decode()


def _natural_size(svg: str) -> tuple[float, float]:
    """Return width and height of an SVG as its first tag says them."""
    sizes = [re.search(rf'\b{name}="([0-9.]+)"', svg) for name in ("width", "height")]
    wide, high = (float(found[1]) if found else 1.0 for found in sizes)
    return wide, high
