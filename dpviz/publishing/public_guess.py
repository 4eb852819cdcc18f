"""Public guesses of the data: made-up records from which errors are expected before the data are looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pyproj import Transformer

from dpviz.arrays import Floats, Integers
from dpviz.data.cells import OUTSIDE, cells_of
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.space.domain import Domain
from dpviz.view.basemap import WGS84
from dpviz.view.places import read_towns

EVEN, TOWNS = "evenly", "as towns are"
SPREADS = (EVEN, TOWNS)
"""How made-up records lie in the domain: evenly, or most of them around the towns of GeoNames, by their residents."""
SEED = 0
_AROUND_TOWNS = 0.8  # part of the records that lie around towns; the others lie evenly
_KM_OF_A_MILLION = 6.0  # standard deviation of the places of the residents of a town of a million; it grows with the square root
_KM_PER_DEGREE = 111.2


def guess_points(data: PointCounts, records: int, spread: str = EVEN) -> PointCounts:
    """Replace data by made-up records; domain, unit and bound stay. The result is public.

    Args:
        data: only its domain, unit and bound are used.
        records: how many records there may be, a public number.
        spread: one of `SPREADS`. Without a town in the domain, and on a plain plane, the records lie evenly.

    Raises:
        SettingError: another spread.

    >>> domain = Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=4)
    >>> empty = PointCounts.from_xy([], [], domain=domain)
    >>> even, towns = (guess_points(empty, 10_000, spread) for spread in SPREADS)
    >>> int(even.count.sum()), int(towns.count.max()) > 3 * int(even.count.max())
    (10000, True)
    """
    if spread not in SPREADS:
        raise SettingError(f"Made-up records lie {' or '.join(SPREADS)}.")
    rng = np.random.default_rng(SEED)
    cells = rng.integers(0, 4**data.domain.order, records)
    if spread == TOWNS:
        around = _cells_around_towns(data.domain, round(_AROUND_TOWNS * records), rng)
        cells[: len(around)] = around
    cell, count = np.unique(cells, return_counts=True)
    row, column = (part.astype(np.int32) for part in np.divmod(cell, data.domain.side))
    return replace(data, column=column, row=row, count=count.astype(np.int64), dropped=0, outside=0, bad=0, over=0)


def count_residents(domain: Domain) -> int:
    """Return how many residents the towns of GeoNames in a domain have; 0 on a plain plane.

    >>> count_residents(Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=4)) > 1_000_000
    True
    """
    towns = read_towns()
    inside = _find_cells(domain, towns.longitude, towns.latitude) >= 0
    return int(towns.population[inside].sum(dtype=np.int64))


def _cells_around_towns(domain: Domain, records: int, rng: np.random.Generator) -> Integers:
    """Choose lattice cells around the towns in a domain, by their residents; those that would lie outside are left out."""
    towns = read_towns()
    inside = np.flatnonzero(_find_cells(domain, towns.longitude, towns.latitude) >= 0)
    if not len(inside):
        return np.zeros(0, np.int64)
    residents = towns.population[inside] / towns.population[inside].sum()
    town = inside[rng.choice(len(inside), records, p=residents)]
    degrees = _KM_OF_A_MILLION / _KM_PER_DEGREE * np.sqrt(towns.population[town] / 1e6)
    latitude = towns.latitude[town] + degrees * rng.standard_normal(records)
    longitude = towns.longitude[town] + degrees * rng.standard_normal(records) / np.cos(np.radians(towns.latitude[town]))
    cells = _find_cells(domain, longitude, latitude)
    return cells[cells >= 0]


def _find_cells(domain: Domain, longitude: Floats, latitude: Floats) -> Integers:
    """Return (n,) lattice cells of places in degrees, negative outside the domain; a plain plane has no place in degrees."""
    if domain.crs is None:
        return np.full(len(longitude), OUTSIDE)
    x, y = Transformer.from_crs(WGS84, domain.crs, always_xy=True).transform(longitude, latitude)
    return cells_of(np.asarray(x, np.float64), np.asarray(y, np.float64), domain)
