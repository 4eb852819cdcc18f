"""What a map of a point release colours: released counts, true counts, or the error between them."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.interpolate import UNIFORM
from dpviz.view.basemap import map_bounds
from dpviz.view.colors import Colors, Scale, scale_top_of
from dpviz.view.partition_looks import density_scale, open_areas, row_areas

SHOWN = ("Released", "True", "Error", "False positives")
INTERPOLATED = "Interpolated"
PRESENT = 0.5
_MOST_PIXELS = 1024


def error_top(release: PointRelease, nodes: Integers, truth: NDArray[np.int64] | None) -> float:
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


def can_show_interpolation(release: PointRelease) -> bool:
    """Return whether the release interpolates inside its partitions, and a bitmap of the interpolation can be drawn."""
    return release.fill != UNIFORM and fits_bitmap(release)


def color_interpolated(release: PointRelease, *, unit: str, dark: bool, top: float | None = None) -> tuple[Colors, Scale, bool]:
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


def choose_values(release: PointRelease, nodes: Integers, shown: str, unit: str, truth: NDArray[np.int64] | None) -> tuple[Floats, Scale]:
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


def fits_bitmap(release: PointRelease) -> bool:
    """Return whether a picture of equal blocks lies right on the map: in degrees, or on a plain plane."""
    return release.domain.crs is None or release.domain.is_geographic


def find_pixels(release: PointRelease, nodes: Integers) -> Integers:
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


def color_pixels(release: PointRelease, nodes: Integers, colors: Colors) -> Colors:
    """Return (rows, columns, 4) the colour of the node under each pixel, of (k, 4) colours of `nodes`; transparent where there is none."""
    return np.concatenate([colors, np.zeros((1, 4), np.uint8)])[find_pixels(release, nodes)]


def draw_picture(domain: Domain, colors: Colors) -> bytes:
    """Draw a grid of blocks as a PNG in the web map's projection.

    Args:
        domain: the public domain, in degrees or on a plain plane.
        colors: (rows, columns, 4) colours of equal blocks, row 0 in the south.
    """
    _, south, _, north = map_bounds(domain)
    rows = max(len(colors), _MOST_PIXELS)  # from the top, of equal height in the projection
    top, bottom = (math.asinh(math.tan(math.radians(latitude))) for latitude in (north, south))
    middle = top - (np.arange(rows) + 0.5) / rows * (top - bottom)
    shares = (np.degrees(np.arctan(np.sinh(middle))) - south) / (north - south)  # of the range of latitudes
    image = colors[np.clip(shares * len(colors), 0, len(colors) - 1).astype(np.int64)]
    from PIL import Image  # noqa: PLC0415 - of the extras: a report, which needs none, has no such picture

    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", compress_level=2)
    return file.getvalue()
