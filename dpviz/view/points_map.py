"""The map of a point release: released counts, true counts, or the error between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.amounts import format_count, format_signed
from dpviz.arrays import Floats, Integers
from dpviz.release.point_release import Release
from dpviz.space.interpolate import UNIFORM
from dpviz.view.colors import Colors, Scale, scale_top_of
from dpviz.view.deck import MOST_FEATURES, CompactDeck, deck, partitions, picture
from dpviz.view.escape import html
from dpviz.view.partition_looks import OVERLAP, density_scale, large_first, mark_outside, open_areas, row_areas

SHOWN = ("Released", "True", "Error", "False positives")
INTERPOLATED = "Interpolated"
PRESENT = 0.5
_MOST_PIXELS = 1024
_OPACITY_OF_OVERLAPS = 0.7


@dataclass(frozen=True, kw_only=True)
class PointsMap:
    """A map with its texts.

    Attributes:
        deck: the map.
        legend: one line of HTML.
        note: what the map simplifies or leaves out, and that partitions overlap; None if there is nothing to say.
        description: alternative text.
    """

    deck: CompactDeck
    legend: str
    note: str | None
    description: str


def drawable_level(release: Release, wanted: int) -> tuple[int, str | None]:
    """Choose the finest level, at most `wanted`, that the map can show.

    A level with more than 20,000 partitions is drawn as a bitmap; that needs coordinates in degrees, or a plain plane.

    Returns:
        The level, and a note if it is not the wanted one.
    """
    level = wanted
    while not fits_bitmap(release) and len(release.nodes(level)) > MOST_FEATURES:
        level -= 1
    return level, None if level == wanted else f"Zoom level {level} is shown: finer ones have more than {MOST_FEATURES:,} partitions."


def points_map(
    release: Release, level: int, shown: str, *, unit: str, dark: bool, truth: NDArray[np.int64] | None = None, top: float | None = None
) -> PointsMap:
    """Draw one level of a release.

    Args:
        release: public.
        level: 0 for the whole domain.
        shown: one of `SHOWN` or `INTERPOLATED`; all of `SHOWN` but "Released" need the truth.
        unit: what is counted, in the plural.
        dark: whether the page is dark.
        truth: (n,) true counts per node, from an `Evaluation`. CURATOR ONLY.
        top: top of the colour scale, for maps that share a scale (see `choose_scale_top`); None for a scale of its own.
    """
    if shown == INTERPOLATED:
        return _interpolated_map(release, unit=unit, dark=dark)
    level, note = drawable_level(release, level)
    nodes = large_first(release, release.open_nodes(level))
    values, scale = choose_values(release, nodes, shown, unit, truth)
    scale = replace(scale, dark=dark, top=scale.top if top is None else top)
    colors = scale.colors(values)
    if len(nodes) > MOST_FEATURES:
        note = f"{len(nodes):,} partitions are drawn as one picture; hover and click work at zoom levels 0 to {_hover_level(release)}."
        layer = picture(release.domain, color_pixels(release, nodes, colors))
        tooltip = None
    else:
        if release.tree.overlaps:
            colors[:, 3] = colors[:, 3] * _OPACITY_OF_OVERLAPS
            note = OVERLAP if note is None else f"{note} {OVERLAP}"
        fields = _fields(release, nodes, truth)
        layer = partitions(release.domain, release.tree.rectangles(nodes), colors, fields)
        tooltip = _tooltip(unit, with_interval=release.states_noise, with_truth=truth is not None)
    negatives = bool((release.count[nodes] < 0).any())
    return PointsMap(
        deck=deck([layer], release.domain, tooltip=tooltip, dark=dark),
        legend=scale.legend(negatives=negatives),
        note=note,
        description=f"Map of {len(nodes):,} partitions, {shown.lower()}: {scale.title}.",
    )


def choose_scale_top(release: Release, level: int, shown: str, *, unit: str) -> float:
    """Choose the top of a map's colour scale, from released values alone. Maps side by side share the largest of their tops.

    Args:
        release: public.
        level: 0 for the whole domain.
        shown: one of `SHOWN`.
        unit: what is counted, in the plural.
    """
    nodes = release.nodes(drawable_level(release, level)[0])
    if shown == "Error":
        return error_top(release, nodes, None)
    return choose_values(release, nodes, SHOWN[0], unit, None)[1].top


def error_top(release: Release, nodes: Integers, truth: NDArray[np.int64] | None) -> float:
    """Choose the top of a scale of errors: three stated standard deviations.

    Of a contrast, which states no noise and is never private, it follows from the errors themselves if the truth is given; else it is 1.

    Args:
        release: public, or a contrast.
        nodes: (k,) partitions.
        truth: (n,) true counts per node, or None. CURATOR ONLY.
    """
    if release.states_noise or truth is None:
        return scale_top_of(3 * release.node_stddev[nodes])
    return scale_top_of(release.count[nodes] - truth[nodes])


def can_show_interpolation(release: Release) -> bool:
    """Return whether the release interpolates inside its partitions, and a bitmap of the interpolation can be drawn."""
    return release.inside != UNIFORM and fits_bitmap(release)


def _interpolated_map(release: Release, *, unit: str, dark: bool) -> PointsMap:
    """Draw the density that answers assume inside partitions, as a bitmap of equal blocks."""
    colors, scale, negatives = color_interpolated(release, unit=unit, dark=dark)
    return PointsMap(
        deck=deck([picture(release.domain, colors)], release.domain, tooltip=None, dark=dark),
        legend=scale.legend(negatives=negatives),
        note="Post-processing: inside a partition, density is interpolated between neighbours. Each partition keeps its released count.",
        description=f"Map of {len(colors):,} x {len(colors):,} blocks, interpolated inside partitions: {scale.title}.",
    )


def color_interpolated(release: Release, *, unit: str, dark: bool, top: float | None = None) -> tuple[Colors, Scale, bool]:
    """Colour the density that answers assume inside partitions.

    Returns:
        (rows, columns, 4) colours of equal blocks, row 0 in the south; their scale; and whether some blocks are below zero.
    """
    domain, zoom = release.domain, min(release.domain.order, _MOST_PIXELS.bit_length() - 1)
    counts, areas = release.blocks(zoom), row_areas(domain, zoom)
    area = np.repeat(areas, len(counts)) * (1.0 if domain.mask is None else domain.mask.open_shares(zoom).ravel())
    density = np.divide(counts.ravel(), area, out=np.zeros(counts.size), where=area > 0)
    scale = density_scale(density, area, domain, unit)
    scale = replace(scale, dark=dark, top=scale.top if top is None else top)
    colors = scale.colors(density)
    colors[area == 0] = 0
    return colors.reshape(*counts.shape, 4), scale, bool((counts < 0).any())


def choose_values(release: Release, nodes: Integers, shown: str, unit: str, truth: NDArray[np.int64] | None) -> tuple[Floats, Scale]:
    """Compute the values that a map colours, and their scale, which depends on released counts and stated deviations, never on the truth.

    Args:
        release: public.
        nodes: (k,) partitions.
        shown: one of `SHOWN`; without the truth, released counts.
        unit: what is counted, in the plural.
        truth: (n,) true counts per node, or None. CURATOR ONLY.

    Returns:
        (k,) densities, errors, or kinds of mistakes (0 none, 1 false positive, 2 false negative), and their scale.
    """
    count = release.count[nodes]
    if truth is None or shown in ("Released", "True"):
        area = open_areas(release.domain, release.tree.rectangles(nodes))
        numbers = truth[nodes] if truth is not None and shown == "True" else count
        return numbers / area, density_scale(count / area, area, release.domain, unit)
    if shown == "Error":
        top = error_top(release, nodes, truth)
        return count - truth[nodes], Scale(kind="signed", top=top, title=f"released minus true, {unit} per partition")
    wrong = np.where((truth[nodes] == 0) & (count >= PRESENT), 1, np.where((truth[nodes] > 0) & (count < PRESENT), 2, 0))
    return wrong.astype(np.float64), Scale(kind="marks", top=1.0, title="wrong about whether records are there")


def _fields(release: Release, nodes: Integers, truth: NDArray[np.int64] | None) -> dict[str, list[Any]]:
    """Make the texts of tooltips: short names, since the page receives them once per node.

    Returns:
        Lists of k entries: i (the node), n (its count), a and b (ends of its interval), and with the truth t (true count) and e (error).
    """
    low, high = release.node_interval(nodes)
    fields: dict[str, list[Any]] = {
        "i": nodes.tolist(),
        "n": _format_counts(release.count[nodes]),
        "a": _format_counts(low),
        "b": [f"{end}{mark}" for end, mark in zip(_format_counts(high), mark_outside(release, nodes), strict=True)],
    }
    if truth is not None:
        fields["t"] = _format_counts(truth[nodes])
        fields["e"] = [format_signed(value) for value in (np.rint(release.count[nodes]) - truth[nodes]).tolist()]
    return fields


def _format_counts(values: NDArray[Any]) -> list[str]:
    return [format_count(value) for value in values.tolist()]


def _tooltip(unit: str, *, with_interval: bool, with_truth: bool) -> str:
    text = f"<b>{{n}}</b> {html(unit)}"
    text += "<br>95 %: {a} to {b}, for this one alone" if with_interval else ""
    return text + "<br>true {t}, error {e}" if with_truth else text


def fits_bitmap(release: Release) -> bool:
    """Return whether a picture of equal blocks lies right on the map: in degrees, or on a plain plane."""
    return release.domain.crs is None or release.domain.is_geographic


def _hover_level(release: Release) -> int:
    return max(zoom for zoom in range(release.height + 1) if len(release.nodes(zoom)) <= MOST_FEATURES)


def find_pixels(release: Release, nodes: Integers) -> Integers:
    """Find the node under each pixel: (rows, columns) indices in `nodes`, -1 where there is none; row 0 is in the south."""
    tree, side = release.tree, min(release.domain.side, _MOST_PIXELS)
    step = release.domain.side // side
    centre = (np.arange(side, dtype=np.int32) * step + step // 2).astype(np.int32)
    column, row = (part.ravel() for part in np.meshgrid(centre, centre))
    index_of_node = np.full(len(tree), -1, np.int64)
    index_of_node[nodes] = np.arange(len(nodes))
    node = tree.leaf_of(column, row)
    while (above := (node >= 0) & (index_of_node[node] < 0)).any():
        node = np.where(above, tree.parent[node], node)
    return np.where(node >= 0, index_of_node[node], -1).reshape(side, side)


def color_pixels(release: Release, nodes: Integers, colors: Colors) -> Colors:
    """Return (rows, columns, 4) the colour of the node under each pixel, of (k, 4) colours of `nodes`; transparent where there is none."""
    return np.concatenate([colors, np.zeros((1, 4), np.uint8)])[find_pixels(release, nodes)]
