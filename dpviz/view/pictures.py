"""Charts as a file to take away, drawn on this computer without a network."""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import altair as alt

from dpviz.view.chart_parts import GREY

WIDTH, SCALE = 760, 2
STAMP = "dpviz, Learn: made-up data and seeded noise. A simulation, not a release."
_LINE = 110
_LIGHT, _DARK = ("#ffffff", "#1d282e", "#dde3e6"), ("#101518", "#e4e9eb", "#3d484e")
"""Ground, ink and thin lines: those of the two themes."""


def picture(charts: Sequence[Any], title: str, about: str, kind: str, *, dark: bool = False) -> bytes:
    """Charts one above the other, with a title, the settings and what the picture is.

    Args:
        charts: as made by `dpviz.view.chart_parts.finish`.
        title: of the picture.
        about: the settings.
        kind: "svg" or "png".
        dark: light lines and texts on a dark ground, as on a dark page.
    """
    parts = [_part(chart) for chart in charts]
    ground, ink, line = _DARK if dark else _LIGHT
    heading = alt.Title(title, subtitle=[*wrap(about, _LINE), STAMP], subtitleColor=GREY, fontSize=16, anchor="start", offset=14)
    whole = alt.vconcat(*parts, title=heading, background=ground, padding=16).resolve_scale(
        color="independent", shape="independent", strokeDash="independent", size="independent", opacity="independent", xOffset="independent"
    )
    whole = whole.configure(font="Arial, sans-serif").configure_title(color=ink).configure_legend(labelColor=ink, titleColor=ink)
    looks = {"labelColor": ink, "titleColor": ink, "gridColor": line, "domainColor": line, "tickColor": line}
    whole = whole.configure_axis(labelFontSize=11, titleFontSize=11, **looks).configure_view(stroke=line)
    if kind == "svg":
        text = io.StringIO()
        whole.save(text, format="svg")
        return text.getvalue().encode()
    content = io.BytesIO()
    whole.save(content, format="png", scale_factor=SCALE)
    return content.getvalue()


def _part(chart: Any) -> Any:
    """A chart with a width of its own in place of its container's."""
    part = chart.copy(deep=True)
    for only_on_top in ("autosize", "padding", "background", "config"):
        setattr(part, only_on_top, alt.Undefined)
    if part.title is not alt.Undefined:
        part.title.anchor = "start"
    return part.properties(width=WIDTH)
