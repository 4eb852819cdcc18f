"""Public trees: complete quadtrees, and grids under a pyramid of 2 x 2 groups."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpviz.errors import DomainError
from dpviz.space.domain import Domain
from dpviz.space.morton import morton, places
from dpviz.space.tree import Indices, Lines, Tree

MOST_NODES = 2**25
BYTES_PER_NODE = 120


def quadtree(domain: Domain, height: int, fan_out: int = 4) -> Tree:
    """The complete quadtree: every node cut into equal quarters (or sixteenths).

    Args:
        domain: gives the lattice.
        height: steps below the root; a step halves each side once (fan-out 4) or twice (16, the last one once if the
            lattice has no more).
        fan_out: 4 or 16.

    Raises:
        DomainError: finer than the lattice, or too large for memory.
    """
    halvings = 1 if fan_out == 4 else 2
    steps = tuple(min(halvings, domain.order - halvings * step) for step in range(height))
    if height < 1 or fan_out not in (4, 16) or min(steps) < 1:
        raise DomainError(f"A quadtree of fan-out {fan_out} and height {height} does not fit a lattice of order {domain.order}.")
    side = 1 << sum(steps)
    return _pyramid(domain.order, side, side, steps)


def grid(domain: Domain, columns: int, rows: int) -> Tree:
    """`columns` x `rows` leaves of nearly equal size, edges snapped to lattice lines, under a pyramid of 2 x 2 groups.

    The pyramid makes range queries and coarser zoom levels cheap; nothing in it needs to be measured.

    Raises:
        DomainError: finer than the lattice, or too large for memory.
    """
    if not (1 <= columns <= domain.side and 1 <= rows <= domain.side):
        raise DomainError(f"A grid needs 1 to {domain.side} columns and rows on this lattice.")
    height = max(1, (max(columns, rows) - 1).bit_length())
    return _pyramid(domain.order, columns, rows, (1,) * height)


@lru_cache(maxsize=2)
def _pyramid(order: int, columns: int, rows: int, steps: tuple[int, ...]) -> Tree:
    """A grid of leaves under nodes that group 2**step x 2**step of the next depth; public, so it may be kept."""
    _check_size(columns, rows, steps)
    xs, ys = snapped(columns, 1 << order), snapped(rows, 1 << order)
    levels = []
    for depth in range(len(steps) + 1):
        width = 1 << sum(steps[depth:])
        across, up = -(-columns // width), -(-rows // width)
        i, j = (part.ravel() for part in np.meshgrid(np.arange(across), np.arange(up)))
        code = np.sort(morton(i, j))
        levels.append((width, *places(code), code))
    return _assembled(levels, xs, ys, steps)


def _assembled(levels: list[tuple[int, Indices, Indices, Indices]], xs: Lines, ys: Lines, steps: tuple[int, ...]) -> Tree:
    sizes = [len(level[1]) for level in levels]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parents, fans = [np.array([-1])], []
    for depth, step in enumerate(steps):
        up = np.searchsorted(levels[depth][3], levels[depth + 1][3] >> (2 * step))
        parents.append(up + starts[depth])
        fans.append(np.bincount(up, minlength=sizes[depth]))
    children = np.concatenate([*fans, np.zeros(sizes[-1], np.int64)])
    edges = [
        np.concatenate([lines[np.minimum((place[axis] + side) * place[0], len(lines) - 1)] for place in levels])
        for axis, lines, side in ((1, xs, 0), (2, ys, 0), (1, xs, 1), (2, ys, 1))
    ]
    return Tree(
        parent=np.concatenate(parents).astype(np.int32),
        first_child=(np.cumsum(children) - children + 1).astype(np.int32),
        children=children.astype(np.int32),
        west=edges[0],
        south=edges[1],
        east=edges[2],
        north=edges[3],
        starts=tuple(starts.tolist()),
        lines=(xs, ys),
    )


def snapped(parts: int, side: int) -> Lines:
    """(parts + 1,) lattice lines nearest to even spacing; distinct because parts <= side."""
    return ((np.arange(parts + 1) * side + parts // 2) // parts).astype(np.int32)


def _check_size(columns: int, rows: int, steps: tuple[int, ...]) -> None:
    nodes = sum(-(-columns // (1 << sum(steps[depth:]))) * -(-rows // (1 << sum(steps[depth:]))) for depth in range(len(steps) + 1))
    if nodes > MOST_NODES:
        raise DomainError(
            f"{columns:,} x {rows:,} partitions need {nodes:,} nodes and about {nodes * BYTES_PER_NODE / 2**30:,.0f} GiB of memory;"
            f" at most {MOST_NODES:,} nodes are allowed. Choose a smaller height, side or order."
        )
