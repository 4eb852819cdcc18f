"""The cells of a domain that touch polygons: along their borders by scan lines, and between them by one test for each gap.

A border is followed through the rows of cells, or through the columns if it crosses fewer of them. Where it enters and leaves a row is
computed in floating point, within a known bound. Cells that are in doubt by that bound are decided by GEOS, which is exact. So time grows
with the number of rows or columns that the edges cross, and not with cells times corners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
import shapely

from dpviz.arrays import Floats, Integers, Mask
from dpviz.errors import DomainError
from dpviz.space.borders import borders_of
from dpviz.space.coverage import Shapes
from dpviz.space.domain import Domain
from dpviz.space.mask import count_up

Report = Callable[[float], object]

MOST_STEPS = 2**26
"""The most rows and columns that all edges together may cross: this takes up to a minute."""
_STEPS_AT_ONCE = 2**20
_PAIRS_AT_ONCE = 2**22
_FAR = 2.0**40  # blocks; farther positions need not be told apart
_ROUNDING = 2.0**-48  # relative to the largest coordinates; a position along a border is computed within 10 * 2**-52 of them


def find_touched(domain: Domain, shapes: Shapes, order: int, report: Report = lambda _: None) -> Mask:
    """Find the blocks of a domain that have a point in common with polygons, be it on an edge or at a corner.

    Args:
        domain: the public domain.
        shapes: (n,) polygons or multipolygons in the domain's CRS. The parts of a multipolygon count one by one; in a part that crosses
            itself, that is inside which an odd number of borders separates from the outside.
        order: there are 2**order x 2**order equal blocks.
        report: called with the part that is done, 0 to 1; ends the search by an error of its own.

    Returns:
        (2**order, 2**order) whether each block touches them, [row, column], row 0 in the south.

    Raises:
        DomainError: the borders cross more than `MOST_STEPS` rows and columns.
    """
    numbers = np.arange((1 << order) + 1) * (domain.side >> order)
    lines = domain.coordinates(np.stack([numbers] * 4, axis=1))[
        :, :2
    ].T  # (2, n) x and y between blocks, the very numbers of `Domain.boxes`
    walks = _walks_of(borders_of(shapes).ends, lines)
    steps = sum(int(walk.number.sum()) for walk in walks)
    if steps > MOST_STEPS:
        raise DomainError(
            f"The polygons' edges cross {steps:,} rows and columns of the domain's cells, and at most {MOST_STEPS:,} are followed: simplify"
            " the polygons, or choose a lower resolution."
        )
    touched = _mark_borders(walks, lines, report)
    return touched | _fill_gaps(touched, shapely.get_parts(shapes), lines, report)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Walk:
    """Edges that are followed from strip to strip, along the axis on which they cross fewer strips.

    Attributes:
        axis: 0 if strips are columns, 1 if they are rows.
        ends: (4, s) position of the lower end along the axis, and across it; then of the upper end.
        first: (s,) first strip that each edge meets.
        number: (s,) number of strips that it meets, at least 1.
    """

    axis: int
    ends: Floats
    first: Integers
    number: Integers


def _walks_of(ends: Floats, lines: Floats) -> tuple[_Walk, _Walk]:
    """Choose the axis of each edge; edges outside the domain are left out. Which strips an edge meets is exact."""
    first, number = np.zeros((2, ends.shape[1]), np.int64), np.zeros((2, ends.shape[1]), np.int64)
    for axis in (0, 1):
        low, high = np.sort(ends[axis::2], axis=0)
        first[axis] = np.searchsorted(lines[axis, 1:], low)
        number[axis] = np.searchsorted(lines[axis, :-1], high, side="right") - first[axis]
    inside = (number > 0).all(axis=0)

    def choose(axis: int, chosen: Mask) -> _Walk:
        turned = ends[[axis, 1 - axis, axis + 2, 3 - axis]][:, chosen]
        upward = np.where(turned[0] <= turned[2], turned, turned[[2, 3, 0, 1]])
        return _Walk(axis=axis, ends=upward, first=first[axis, chosen], number=number[axis, chosen])

    return choose(0, inside & (number[0] < number[1])), choose(1, inside & (number[0] >= number[1]))


def _mark_borders(walks: tuple[_Walk, _Walk], lines: Floats, report: Report) -> Mask:
    """Return (side, side) whether an edge touches each block, [row, column]."""
    side = lines.shape[1] - 1
    touched = np.zeros((side, side), np.bool_)
    total, done = sum(int(walk.number.sum()) for walk in walks), 0
    for walk in walks:
        table, turns, doubtful = touched.T if walk.axis == 0 else touched, np.zeros((side, side + 1), np.int64), np.zeros((3, 0), np.int64)
        stops = np.cumsum(walk.number)
        cuts = np.searchsorted(stops, np.arange(_STEPS_AT_ONCE, stops[-1] if len(stops) else 0, _STEPS_AT_ONCE))
        for edges in np.split(np.arange(len(stops)), cuts):
            report(0.9 * done / max(total, 1))
            doubtful = np.concatenate([doubtful, _mark_strips(turns, walk, edges, lines)], axis=1)
            done += int(walk.number[edges].sum())
            if doubtful.shape[1] > _STEPS_AT_ONCE:
                doubtful = _settle(table, turns, walk, doubtful, lines)
        _settle(table, turns, walk, doubtful, lines)
    return touched


def _mark_strips(turns: Integers, walk: _Walk, edges: Integers, lines: Floats) -> Integers:
    """Add where runs of blocks that edges touch begin and end to `turns`, [strip, block], and return the blocks that are in doubt.

    Returns:
        (3, d) edge, strip and block for each pair of edge and block that rounding leaves in doubt.
    """
    side = len(turns)
    index, strip = count_up(walk.first[edges], walk.first[edges] + walk.number[edges])
    edge = edges[index]
    low, high, doubt = _cross_strips(walk.ends[:, edge], lines[walk.axis, strip], lines[walk.axis, strip + 1], lines[1 - walk.axis])
    first, last = _to_blocks(low + doubt, side), _to_blocks(high - doubt, side)
    may_start, may_stop = _to_blocks(low - doubt, side), _to_blocks(high + doubt, side) + 1
    start, stop = np.maximum(first, 0), np.minimum(last, side - 1) + 1
    certain = start < stop
    for value, sign in ((start, 1), (stop, -1)):
        turns += sign * np.bincount((strip * (side + 1) + value)[certain], minlength=turns.size).reshape(side, -1)
    may_start, may_stop = np.maximum(may_start, 0), np.minimum(may_stop, side)
    start, stop = np.where(certain, start, may_stop), np.where(certain, stop, may_stop)
    found = []
    for begin, end in ((may_start, start), (stop, may_stop)):
        pairs = np.flatnonzero(begin < end)
        step, block = count_up(begin[pairs], end[pairs])
        found.append(np.stack([edge[pairs[step]], strip[pairs[step]], block]))
    return np.concatenate(found, axis=1)


def _cross_strips(ends: Floats, near: Floats, far: Floats, lines: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute from where to where each edge lies in its strip, in blocks from the first line, and the bound of their errors."""
    along, across, along_end, across_end = ends
    length = np.where(along_end > along, along_end - along, 1.0)
    enter, leave = ((np.clip(line, along, along_end) - along) / length for line in (near, far))
    leave[along_end == along] = 1.0
    scale = (len(lines) - 1) / (lines[-1] - lines[0])
    at = [(across * (1 - share) + across_end * share - lines[0]) * scale for share in (enter, leave)]
    doubt = _ROUNDING * scale * (np.abs(across) + np.abs(across_end) + abs(lines[0]) + abs(lines[-1]))
    low, high, doubt = (np.clip(value, -_FAR, _FAR) for value in (np.minimum(*at), np.maximum(*at), doubt))
    return low, high, doubt


def _to_blocks(positions: Floats, side: int) -> Integers:
    """Return the block of each position, -1 before all blocks and `side` behind them."""
    return np.clip(np.floor(positions), -1, side).astype(np.int64)


def _settle(table: Mask, turns: Integers, walk: _Walk, doubtful: Integers, lines: Floats) -> Integers:
    """Mark in `table` the blocks of the runs in `turns`, and of those in doubt the ones that their edge touches; return no doubts."""
    table |= np.cumsum(turns, axis=1)[:, :-1] > 0
    edge, strip, block = doubtful[:, ~table[doubtful[1], doubtful[2]]]
    segments = shapely.linestrings(walk.ends[:, edge].T.reshape(-1, 2, 2))
    near, far = lines[walk.axis], lines[1 - walk.axis]
    meets = shapely.intersects(segments, shapely.box(near[strip], far[block], near[strip + 1], far[block + 1]))
    table[strip[meets], block[meets]] = True
    return doubtful[:, :0]


def _fill_gaps(touched: Mask, polygons: Shapes, lines: Floats, report: Report) -> Mask:
    """Return (side, side) whether each block that no edge touches is inside a polygon.

    Such blocks that share a corner are all inside or all outside, so one of them is tested for each connected set. GEOS counts the borders
    between a point and the outside, so that polygons need no repair.
    """
    sets, number = scipy.ndimage.label(~touched, structure=np.ones((3, 3)))
    block = np.zeros(number + 1, np.int64)
    block[sets.ravel()] = np.arange(sets.size)
    row, column = np.divmod(block[1:], len(touched))
    x, y = (lines[axis, at] / 2 + lines[axis, at + 1] / 2 for axis, at in enumerate((column, row)))
    tree, inside = shapely.STRtree(shapely.points(x, y)), np.zeros(number + 1, np.bool_)
    step = max(_PAIRS_AT_ONCE // max(number, 1), 1)
    for start in range(0, len(polygons), step):
        report(0.9 + 0.1 * start / len(polygons))
        inside[tree.query(polygons[start : start + step], predicate="intersects")[1] + 1] = True
    return inside[sets]
