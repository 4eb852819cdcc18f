"""Query workloads: random boxes on a public domain, chosen without looking at any data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats
from dpviz.errors import DomainError
from dpviz.space.domain import Domain


def random_rectangles(domain: Domain, count: int, seed: int) -> Floats:
    """Draw rectangles with random edges on lattice lines: every pair of lines is equally likely, along each axis.

    Args:
        domain: the public domain.
        count: q, the number of boxes.
        seed: the same seed gives the same boxes.

    Returns:
        (q, 4) west, south, east, north in the domain's CRS, on lattice lines.

    Raises:
        DomainError: count or seed is negative or not whole.

    >>> random_rectangles(Domain(bounds=(0, 0, 8, 8), crs=None, order=3), count=2, seed=1).tolist()
    [[0.0, 4.0, 7.0, 7.0], [1.0, 4.0, 8.0, 8.0]]
    """
    generator = _make_generator(count, seed)
    south, north = _random_line_pairs(generator, domain.side, count)
    west, east = _random_line_pairs(generator, domain.side, count)
    return domain.coordinates(np.stack([west, south, east, north], axis=1))


def area_share(domain: Domain, share: float, count: int, seed: int) -> Floats:
    """Draw boxes with the domain's proportions that cover a fixed share of the lattice, at random positions.

    Args:
        domain: the public domain.
        share: the share of all lattice cells, above 0 and at most 1; the box's side is rounded to whole cells, at least one.
        count: q, the number of boxes.
        seed: the same seed gives the same boxes.

    Returns:
        (q, 4) west, south, east, north in the domain's CRS, on lattice lines.

    Raises:
        DomainError: the share is out of range; count or seed is negative or not whole.

    >>> area_share(Domain(bounds=(0, 0, 8, 8), crs=None, order=3), share=0.25, count=1, seed=1).tolist()
    [[2.0, 2.0, 6.0, 6.0]]
    """
    if not 0 < share <= 1:
        raise DomainError("The share of the area must be above 0 and at most 1.")
    side = max(1, round(math.sqrt(share) * domain.side))
    return _random_boxes(domain, side, side, count, seed)


def fixed_size(domain: Domain, width: float, height: float, count: int, seed: int) -> Floats:
    """Draw boxes of a fixed width and height, at random positions in the domain.

    Args:
        domain: the public domain.
        width: the width of a box in units of the domain's CRS; rounded to whole lattice cells, at least one.
        height: the height of a box, likewise.
        count: q, the number of boxes.
        seed: the same seed gives the same boxes.

    Returns:
        (q, 4) west, south, east, north in the domain's CRS, on lattice lines.

    Raises:
        DomainError: a size is not positive, or larger than the domain; count or seed is negative or not whole.

    >>> fixed_size(Domain(bounds=(0, 0, 8, 8), crs=None, order=3), width=2, height=1, count=1, seed=1).tolist()
    [[3.0, 3.0, 5.0, 4.0]]
    """
    cell_width, cell_height = domain.cell_size
    if not (0 < width < math.inf and 0 < height < math.inf):
        raise DomainError("Width and height must be finite numbers greater than 0.")
    columns, rows = max(1, round(width / cell_width)), max(1, round(height / cell_height))
    if max(columns, rows) > domain.side:
        raise DomainError("The boxes are larger than the domain.")
    return _random_boxes(domain, columns, rows, count, seed)


def _random_boxes(domain: Domain, columns: int, rows: int, count: int, seed: int) -> Floats:
    generator = _make_generator(count, seed)
    south = generator.integers(0, domain.side - rows + 1, count)
    west = generator.integers(0, domain.side - columns + 1, count)
    return domain.coordinates(np.stack([west, south, west + columns, south + rows], axis=1))


def _make_generator(count: int, seed: int) -> np.random.Generator:
    for value, name in ((count, "count"), (seed, "seed")):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise DomainError(f"{name} must be a whole number, at least 0.")
    return np.random.default_rng(seed)


def _random_line_pairs(generator: np.random.Generator, side: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw pairs of different lattice lines, each pair equally likely. Return (count,) lower lines and (count,) upper lines."""
    first = generator.integers(0, side + 1, count)
    second = generator.integers(0, side, count)
    second += second >= first
    return np.minimum(first, second), np.maximum(first, second)
