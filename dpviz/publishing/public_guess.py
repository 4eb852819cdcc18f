"""Public guesses of the data: made-up records from which errors are expected before the data are looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from pyproj import Transformer

from dpviz.arrays import Floats, Integers
from dpviz.data.areas import AreaCounts
from dpviz.data.cells import OUTSIDE, cells_of
from dpviz.data.leaf_regions import crs_of_leaves, leaf_finder
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.release.area_release import AreaRelease
from dpviz.release.base import NoisyRelease
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions, are_areas
from dpviz.view.basemap import WGS84
from dpviz.view.places import read_towns

EVEN, TOWNS, RELEASED = "evenly", "as towns are", "as in an earlier release"
SPREADS = (EVEN, TOWNS, RELEASED)
"""How made-up records lie: evenly; most of them as the residents of towns of GeoNames do; or by the counts of a release."""
Released = TypeVar("Released", bound=NoisyRelease)
SEED = 0
_AROUND_TOWNS = 0.8  # part of the records that lie around towns; the others lie evenly
_IN_TOWNS = 0.98  # the same in regions, where evenly means as many in a large region as in a small one
_PLACED = 50_000  # made-up residents by whose places regions are weighed
_KM_OF_A_MILLION = 6.0  # standard deviation of the places of the residents of a town of a million; it grows with the square root
_KM_PER_DEGREE = 111.2
_KEPT = "_shares by towns"  # name under which regions keep theirs
ELSEWHERE = "The earlier release has no records in this domain: choose one of the same area."
NO_SHARED_LEVEL = "No level of the earlier release has the regions of a level here: choose one of the same regions."


def guess_points(data: PointCounts, records: int, spread: str = EVEN, like: PointRelease | None = None) -> PointCounts:
    """Replace data by made-up records; domain, unit and bound stay. The result is public.

    Args:
        data: only its domain, unit and bound are used.
        records: how many records there may be, a public number.
        spread: one of `SPREADS`. Without a town in the domain, and on a plain plane, the records lie evenly.
        like: a release, perhaps a coarser one, by whose counts the records lie; for `RELEASED` only.

    Raises:
        SettingError: another spread, or a release is missing, is no private release, or has no record in this domain.

    >>> domain = Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=4)
    >>> empty = PointCounts.from_xy([], [], domain=domain)
    >>> even, towns = (guess_points(empty, 10_000, spread) for spread in (EVEN, TOWNS))
    >>> int(even.count.sum()), int(towns.count.max()) > 3 * int(even.count.max())
    (10000, True)
    """
    if spread not in SPREADS or (spread == RELEASED) != (like is not None):
        raise SettingError(f"Made-up records lie {', '.join(SPREADS[:-1])}, or {RELEASED}, which must be given.")
    rng = np.random.default_rng(SEED)
    cells = _cells_anywhere(data.domain, records, rng)
    if like is not None:
        cells = _cells_like(data.domain, records, check_guess(like), rng)
    elif spread == TOWNS:
        around = _cells_around_towns(data.domain, round(_AROUND_TOWNS * records), rng)
        cells[: len(around)] = around
    cell, count = np.unique(cells, return_counts=True)
    row, column = (part.astype(np.int32) for part in np.divmod(cell, data.domain.side))
    return replace(data, column=column, row=row, count=count.astype(np.int64), dropped=0, outside=0, bad=0, over=0)


def check_guess(release: Released) -> Released:
    """Return a release that may serve as a guess.

    Raises:
        SettingError: a simulation or a reference, which are not private.
    """
    if release.simulation or not release.receipt.private:
        raise SettingError("A simulation is not private: only a release that was paid for may serve as a guess.")
    return release


def guess_total(release: NoisyRelease) -> int:
    """Return how many records a release has in all, at least 1."""
    return max(release.total, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class GuessedCounts:
    """Guessed counts of the regions of a level.

    Attributes:
        count: (n,) guessed counts.
        number: (n,) how many regions have that count.
    """

    count: Floats
    number: Floats


def guess_regions(areas: AreaCounts, level: int, release: AreaRelease) -> GuessedCounts:
    """Guess the counts of the regions of a level by a release of the same regions; where it is coarser, by even parts of its regions.

    Args:
        areas: only its regions are used.
        level: of the regions, 1 for the coarsest.
        release: an earlier release.

    Raises:
        SettingError: a simulation, or the release and the regions have no level in common.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> table = pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]})
    >>> fine, coarse = (dv.Regions.from_table(rows, levels=[*rows]) for rows in (table, table[["district"]].drop_duplicates()))
    >>> counts = dv.AreaCounts.from_counts([900, 400], regions=coarse)
    >>> earlier = dv.FlatAreas().release(counts, dv.PureBudget(1000), dv.Entropy.system())
    >>> guessed = guess_regions(dv.AreaCounts.from_counts([0, 0, 0], regions=fine), 2, earlier)
    >>> guessed.count.tolist(), guessed.number.tolist()
    ([450.0, 400.0], [2.0, 1.0])
    """
    released, regions = check_guess(release).regions, areas.regions
    nearest = [*range(level, 0, -1), *range(level + 1, regions.depth + 1)]  # sums of finer regions come last
    shared = next((each for each in nearest if is_level_of(regions, released, each)), 0)
    if not shared:
        raise SettingError(NO_SHARED_LEVEL)
    of = released.levels.index(regions.levels[shared - 1]) + 1
    count = np.maximum(release.count[release.nodes(of)], 0)[released.find(regions.ids_of(shared), of)]
    if shared > level:
        summed = np.bincount(regions.ancestors(level, shared), weights=count, minlength=regions.size(level)).astype(np.float64)
        return GuessedCounts(count=summed, number=np.ones(len(summed)))
    inside = np.bincount(regions.ancestors(shared, level), minlength=regions.size(shared)).astype(np.float64)
    return GuessedCounts(count=count / inside, number=inside)


def weigh_regions(regions: Regions) -> Floats:
    """Return (n,) shares of the records in each of the finest regions, nearly as many as of the residents of towns in them. PUBLIC.

    Where nothing says which towns lie in a region, or none does, each is as large as a town that is drawn at random: a few are large.

    >>> regions = Regions.from_prefixes(["a1", "a2", "b1", "b2"], lengths=[1, 2], levels=["letter", "place"])
    >>> weigh_regions(regions).round(2).tolist()
    [0.11, 0.18, 0.23, 0.47]
    """
    kept = vars(regions)  # as their other derived values
    if _KEPT not in kept:
        rng, size = np.random.default_rng(SEED), regions.size(regions.depth)
        residents = _count_residents(regions, rng)
        weight = rng.choice(read_towns().population, size).astype(np.float64) if residents is None else residents
        kept[_KEPT] = _IN_TOWNS * weight / weight.sum() + (1 - _IN_TOWNS) / size
    return np.asarray(kept[_KEPT])


def _count_residents(regions: Regions, rng: np.random.Generator) -> Floats | None:
    """Count made-up residents of towns in the finest regions; None without polygons on a map, or towns in them."""
    crs, shapes = crs_of_leaves(regions), regions.geometry[-1]
    if crs is None or (regions.grid is None and (shapes is None or not are_areas(shapes))):
        return None
    towns, to_regions = read_towns(), Transformer.from_crs(WGS84, crs, always_xy=True)
    find = leaf_finder(regions, may_overlap=True)

    def leaves_at(longitude: Floats, latitude: Floats) -> Integers:
        x, y = to_regions.transform(longitude, latitude)
        return find(np.asarray(x, np.float64), np.asarray(y, np.float64))

    inside = np.flatnonzero(leaves_at(towns.longitude, towns.latitude) >= 0)
    leaves = leaves_at(*_scatter_around(inside, _PLACED, rng)) if len(inside) else inside
    found = leaves[leaves >= 0]
    return np.bincount(found, minlength=regions.size(regions.depth)).astype(np.float64) if len(found) else None


def is_level_of(regions: Regions, released: Regions, level: int) -> bool:
    """Return whether a release has a level of this name with the same regions."""
    name = regions.levels[level - 1]
    return name in released.levels and set(released.ids_of(released.levels.index(name) + 1)) == set(regions.ids_of(level))


def _cells_anywhere(domain: Domain, records: int, rng: np.random.Generator) -> Integers:
    """Choose lattice cells evenly, of a domain with a mask among the open ones."""
    if domain.mask is None:
        return rng.integers(0, 4**domain.order, records)
    row, column = np.divmod(rng.choice(np.flatnonzero(domain.mask.open), records), domain.mask.side)
    width = domain.side >> domain.mask.order
    across, up = rng.integers(0, width, (2, records))
    return np.asarray((row * width + up) * domain.side + column * width + across)


def _cells_around_towns(domain: Domain, records: int, rng: np.random.Generator) -> Integers:
    """Choose lattice cells around the towns in a domain, by their residents; those that would lie outside are left out."""
    towns = read_towns()
    inside = np.flatnonzero(_find_cells(domain, towns.longitude, towns.latitude) >= 0)
    if not len(inside):
        return np.zeros(0, np.int64)
    cells = _find_cells(domain, *_scatter_around(inside, records, rng))
    return cells[cells >= 0]


def _scatter_around(inside: Integers, records: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw longitudes and latitudes of residents of some towns, by their numbers, around the middle of each."""
    towns = read_towns()
    residents = towns.population[inside] / towns.population[inside].sum()
    town = inside[rng.choice(len(inside), records, p=residents)]
    degrees = _KM_OF_A_MILLION / _KM_PER_DEGREE * np.sqrt(towns.population[town] / 1e6)
    latitude = towns.latitude[town] + degrees * rng.standard_normal(records)
    longitude = towns.longitude[town] + degrees * rng.standard_normal(records) / np.cos(np.radians(towns.latitude[town]))
    return longitude, latitude


def _cells_like(domain: Domain, records: int, release: PointRelease, rng: np.random.Generator) -> Integers:
    """Choose lattice cells by the counts of a release; records that would lie outside the domain are replaced by some that lie inside."""
    leaves = release.tree.leaves
    weights = np.maximum(release.count[leaves], 0)
    if not weights.sum():
        raise SettingError(ELSEWHERE)
    leaf = rng.choice(leaves, records, p=weights / weights.sum())
    low_x, low_y, high_x, high_y = release.tree.rectangles(leaf).T / release.domain.side
    (west, south, east, north), share = release.domain.bounds, rng.random((2, records))
    x = west + (east - west) * (low_x + share[0] * (high_x - low_x))
    y = south + (north - south) * (low_y + share[1] * (high_y - low_y))
    cells = cells_of(*_transform(x, y, release.domain.crs, domain.crs), domain)
    inside = cells[cells >= 0]
    if not len(inside):
        raise SettingError(ELSEWHERE)
    return np.concatenate([inside, rng.choice(inside, records - len(inside))])


def _transform(x: Floats, y: Floats, source: str | None, target: str | None) -> tuple[Floats, Floats]:
    """Transform coordinates between two CRS; on plain planes they stay as they are."""
    if source == target:
        return x, y
    if source is None or target is None:
        raise SettingError("The earlier release has another CRS than the domain, and one of them is a plain plane: choose another release.")
    x, y = Transformer.from_crs(source, target, always_xy=True).transform(x, y)
    return np.asarray(x, np.float64), np.asarray(y, np.float64)


def _find_cells(domain: Domain, longitude: Floats, latitude: Floats) -> Integers:
    """Return (n,) lattice cells of places in degrees, negative outside the domain; a plain plane has no place in degrees."""
    if domain.crs is None:
        return np.full(len(longitude), OUTSIDE)
    x, y = Transformer.from_crs(WGS84, domain.crs, always_xy=True).transform(longitude, latitude)
    return cells_of(np.asarray(x, np.float64), np.asarray(y, np.float64), domain)
