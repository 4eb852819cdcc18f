"""The borders of polygons as straight segments, and the repair of polygons whose borders cross themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers
from dpviz.errors import DomainError

MOST_CROSSINGS = 2_000
"""The most places at which polygons may cross themselves: their repair takes minutes from about ten times as many."""
_AREAS = (3, 6)
_MANY_CORNERS, _CORNERS_PER_PIECE, _MOST_CUTS = 512, 64, 12
_PAIRS_AT_ONCE = 2**22
_MOST_PAIRS = 2**27  # of edges whose boxes meet, which takes some seconds to test


@dataclass(frozen=True, kw_only=True, eq=False)
class Borders:
    """Every straight segment of every ring of polygons, holes included.

    Attributes:
        ends: (4, s) x and y of one end, x and y of the other.
        leaf: (s,) index of the polygon, ascending.
    """

    ends: Floats
    leaf: Integers


def borders_of(leaves: NDArray[np.object_]) -> Borders:
    """Collect the border segments of (l,) polygons or multipolygons."""
    parts, leaf = shapely.get_parts(np.array(leaves), return_index=True)  # before 2.2 shapely takes no array that is read-only
    rings, part = shapely.get_rings(parts, return_index=True)
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    first = np.flatnonzero(ring[1:] == ring[:-1])
    return Borders(ends=np.concatenate([corners[first].T, corners[first + 1].T]), leaf=leaf[part[ring[first]]].astype(np.int64))


def edges_of(polygons: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the (s,) border segments of polygons as lines, without those of no length."""
    ends = borders_of(polygons).ends
    return np.asarray(shapely.linestrings(ends.T[(ends[:2] != ends[2:]).any(axis=0)].reshape(-1, 2, 2)), object)


def repaired_parts(shapes: NDArray[np.object_]) -> tuple[NDArray[np.object_], Integers]:
    """Cut polygons into valid ones. Inside a part that crosses itself is what an odd number of its borders divides from the outside.

    Args:
        shapes: (n,) polygons or multipolygons.

    Returns:
        (p,) valid polygons, without what has no area, and (p,) the index of the shape that each is a part of, ascending.

    Raises:
        DomainError: polygons cross themselves more than `MOST_CROSSINGS` times, or have so many long edges that this cannot be counted.
    """
    parts, owner = shapely.get_parts(np.array(shapes), return_index=True)
    broken = ~shapely.is_valid(parts)
    if broken.any():
        _refuse_tangles(parts[broken])
        parts[broken] = shapely.make_valid(parts[broken])
    return _polygons_in(parts, owner)


def _polygons_in(shapes: NDArray[np.object_], owner: Integers) -> tuple[NDArray[np.object_], Integers]:
    """Return the polygons that shapes consist of, without lines, points and empty ones, and the owner of each."""
    for _ in range(2):  # a collection of lines and multipolygons
        shapes, part = shapely.get_parts(shapes, return_index=True)
        owner = owner[part]
    areal = (shapely.get_type_id(shapes) == _AREAS[0]) & ~shapely.is_empty(shapes)
    return shapes[areal], owner[areal]


def common_areas(shapes: NDArray[np.object_], shape: Integers, others: NDArray[np.object_]) -> Floats:
    """Compute the (k,) areas that k of (n,) valid polygons, by their indexes, have in common with k others.

    Polygons of many corners are cut into pieces before: the time to intersect one can grow with the square of its corners.
    """
    is_large = (shapely.get_num_coordinates(shapes) > _MANY_CORNERS)[shape]
    common = np.zeros(len(shape))
    common[~is_large] = shapely.area(shapely.intersection(shapes[shape[~is_large]], others[~is_large]))
    if is_large.any():
        (large, index), rest = np.unique(shape[is_large], return_inverse=True), others[is_large]
        pieces, owner = _cut_in_pieces(shapes[large])
        other, piece = shapely.STRtree(pieces).query(rest, predicate="intersects")
        own = owner[piece] == index[other]
        other, piece = other[own], piece[own]
        common[is_large] = np.bincount(other, shapely.area(shapely.intersection(pieces[piece], rest[other])), len(rest))
    return common


def _cut_in_pieces(shapes: NDArray[np.object_]) -> tuple[NDArray[np.object_], Integers]:
    """Cut (n,) polygons into quarters of their boxes, again and again, until no piece has many corners.

    Returns:
        (p,) polygons, and (p,) the index of the shape that each is a piece of.
    """
    pieces, owner = shapely.get_parts(np.array(shapes), return_index=True)
    for _ in range(_MOST_CUTS):
        large = shapely.get_num_coordinates(pieces) > _CORNERS_PER_PIECE
        if not large.any():
            break
        west, south, east, north = shapely.bounds(pieces[large]).T
        x, y = (west + east) / 2, (south + north) / 2
        boxes = [shapely.box(*sides) for sides in ((west, south, x, y), (x, south, east, y), (west, y, x, north), (x, y, east, north))]
        parts = np.concatenate([shapely.intersection(pieces[large], box) for box in boxes])
        quarters, owners = _polygons_in(parts, np.tile(owner[large], len(boxes)))
        pieces, owner = np.concatenate([pieces[~large], quarters]), np.concatenate([owner[~large], owners])
    return pieces, owner


def _refuse_tangles(polygons: NDArray[np.object_]) -> None:
    """Refuse polygons whose edges meet too many edges that are not their neighbours; the search ends once there are too many."""
    edges = edges_of(polygons)
    tree, near, met = shapely.STRtree(edges), 0, 0
    step = max(_PAIRS_AT_ONCE // max(len(edges), 1), 1)
    for start in range(0, len(edges), step):
        chosen = edges[start : start + step]
        near += len(tree.query(chosen)[0])
        met += len(tree.query(chosen, predicate="intersects")[0]) - 3 * len(chosen)  # an edge meets itself and both neighbours
        if met > 2 * MOST_CROSSINGS or near > _MOST_PAIRS:
            raise DomainError("The polygons cross themselves, and are too tangled to be repaired: save them repaired, or simpler.")
