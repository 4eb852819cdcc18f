"""The map of a report about points: partitions as SVG shapes, coloured by released density."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpviz.release.nouns import noun
from dpviz.release.point_release import Release
from dpviz.release.verdict import NOISE, verdict
from dpviz.space.domain import Domain
from dpviz.view.colors import Scale, short
from dpviz.view.partition_looks import OVERLAP, density_scale, large_first
from dpviz.view.places import map_bounds
from dpviz.view.report_paper import Paper, domain_paper, on_plane

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MOST_SHAPES = 5_000
LEAST_LEVEL = 2
_ABOVE, _BELOW = 24, 8
_SEEN_THROUGH = 0.7


@dataclass(frozen=True, kw_only=True)
class Swatch:
    """A colour by its class in the style sheet.

    Attributes:
        name: of the class.
        light: on a light page, as CSS.
        dark: on a dark page.
        opacity: 0 to 1, in both.
    """

    name: str
    light: str
    dark: str
    opacity: str


@dataclass(frozen=True, kw_only=True)
class PointsPicture:
    """What the template draws.

    Attributes:
        paper: the sheet.
        land: paths of land and borders by name.
        frame: path of the domain.
        shapes: look, path and text of each partition, in the order in which they are drawn.
        swatches: the looks, and of them `above` and `below` zero for the legend, weakest first.
        above: looks from 0 to the top.
        below: looks from just below zero; empty if nothing is.
        title: what colours mean, with unit.
        ticks: texts at 0, a quarter of the top and the top of the scale, which grows with the square root.
        level: which is drawn, 0 for the whole.
        note: what was left out, or how to read it; None if nothing needs to be said.
    """

    paper: Paper
    land: dict[str, str]
    frame: str
    shapes: list[tuple[str, str, str]]
    swatches: list[Swatch]
    above: list[str]
    below: list[str]
    title: str
    ticks: tuple[str, str, str]
    level: int
    note: str | None


def drawn_level(release: Release) -> int:
    """The finest level that is not mostly noise and has no more than 5,000 partitions; level 2 at least, where there is one."""
    fine = [level for level in range(release.height + 1) if len(release.nodes(level)) <= MOST_SHAPES]
    known = {each.level for each in verdict(release).levels if each.grade != NOISE}
    return max(level for level in fine if level in known or level <= LEAST_LEVEL)


def points_picture(release: Release) -> PointsPicture:
    """Draw the finest level that is not too fine."""
    level = drawn_level(release)
    nodes = large_first(release, release.nodes(level))
    rectangles = release.tree.rectangles(nodes)
    paper = domain_paper(release.domain)
    area = release.domain.areas_km2(rectangles)
    density = np.divide(release.count[nodes], area, out=np.zeros(len(nodes)), where=area > 0)
    scale = density_scale(density, np.nan_to_num(area), release.domain, noun(release))
    looks = _looks(density, scale.top)
    paths = _rectangles(release.domain, paper, rectangles)
    return PointsPicture(
        paper=paper,
        land=paper.land(map_bounds(release.domain)),
        frame=_rectangles(release.domain, paper, np.array([[0, 0, release.domain.side, release.domain.side]]))[0],
        shapes=list(zip(looks, paths, _told(release, nodes), strict=True)),
        swatches=_swatches(scale, overlaps=release.tree.overlaps),
        above=[f"p{step}" for step in range(_ABOVE + 1)],
        below=[f"n{step}" for step in range(1, _BELOW + 1)] if (density < 0).any() else [],
        title=scale.title,
        ticks=("0", short(scale.top / 4), f"{short(scale.top)} and more"),
        level=level,
        note=OVERLAP if release.tree.overlaps else None,
    )


def _looks(density: Floats, top: float) -> list[str]:
    """Classes of (k,) densities: steps of the scale's square root."""
    strength = np.sqrt(np.minimum(np.abs(density) / top, 1.0))
    above, below = np.rint(strength * _ABOVE).astype(int), np.maximum(np.rint(strength * _BELOW).astype(int), 1)
    return [
        f"n{low}" if value < 0 else f"p{high}" for value, high, low in zip(density.tolist(), above.tolist(), below.tolist(), strict=True)
    ]


def _swatches(scale: Scale, *, overlaps: bool) -> list[Swatch]:
    """The colours of all classes, on light and on dark pages."""
    steps = [(f"p{step}", (step / _ABOVE) ** 2) for step in range(_ABOVE + 1)]
    steps += [(f"n{step}", -((step / _BELOW) ** 2)) for step in range(1, _BELOW + 1)]
    values = scale.top * np.array([value for _, value in steps])
    light, dark = (replace(scale, dark=mode).colors(values).tolist() for mode in (False, True))
    through = _SEEN_THROUGH if overlaps else 1.0
    return [
        Swatch(
            name=name,
            light="rgb({},{},{})".format(*one[:3]),
            dark="rgb({},{},{})".format(*other[:3]),
            opacity=f"{one[3] * through / 255:.2f}",
        )
        for (name, _), one, other in zip(steps, light, dark, strict=True)
    ]


def _rectangles(domain: Domain, paper: Paper, rectangles: NDArray[np.integer]) -> list[str]:
    """SVG paths of (k, 4) lattice rectangles; neighbours share their edges exactly."""
    west, south, east, north = on_plane(domain, rectangles).T
    left, bottom = paper.place(np.column_stack([west, south])).T
    right, top = paper.place(np.column_stack([east, north])).T
    columns = (left, top, right - left, bottom - top, left - right)
    return [f"M{a} {b}h{c}v{d}h{e}z" for a, b, c, d, e in zip(*(column.tolist() for column in columns), strict=True)]


def _told(release: Release, nodes: Indices) -> list[str]:
    """What pointing at partitions shows: each with the interval that it has alone."""
    unit = noun(release)
    low, high = release.interval(nodes)
    counts = np.rint(release.count[nodes]) + 0.0
    return [
        f"{count:,.0f} {unit}, 95 % between {a:,.0f} and {b:,.0f} for this one alone"
        for count, a, b in zip(counts.tolist(), low.tolist(), high.tolist(), strict=True)
    ]
