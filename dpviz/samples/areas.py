"""Samples of areas: residents of real counties, real flights by hour, and a made-up city of districts, tracts and blocks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import shapely

from dpviz.arrays import Floats
from dpviz.data.areas import AreaCounts
from dpviz.data.fingerprints import sample_fingerprint
from dpviz.errors import InputError
from dpviz.samples.made_up import SEED, find_sample, table
from dpviz.samples.points import SQUARE, SampleInfo, sample_xy
from dpviz.samples.trips import AIRPORT_LEVELS, COUNTY_LEVELS, county_regions, flight_regions, us_counties
from dpviz.space.area_shares import areas_km2
from dpviz.space.categories import Categories
from dpviz.space.denominators import RATES_PER, describe_rate
from dpviz.space.regions import Regions, are_areas

CITY_LEVELS = ("district", "tract", "block")
STATE_LEVELS = COUNTY_LEVELS[1:]
HEXAGON_LEVELS = (5, 6, 7)
"""Resolutions of the sample of H3 cells."""

_BLOCKS, _BLOCKS_PER_TRACT, _TRACTS_PER_DISTRICT = (48, 36), 4, (3, 3)  # columns and rows; per side; columns and rows
_CITY_CORNER, _BLOCK_DEGREES = (-24.2, -2.1), 0.0018  # in the open Atlantic; about 200 m
_JITTER = 0.3  # of a block's side
_RIVER = 0.035  # half of its width, as a share of the city's height
_RESIDENTS, _VISITS, _VISITS_BY_HOUR = 200_000, 40_000, 200_000
_HOURS = Categories.hours()
_PEAKS = {"homes": ((8, 1.5), (18, 2.5)), "work": ((10, 2.0), (14, 2.5)), "evenings": ((20, 1.8),), "nights": ((1, 2.0),)}
"""By whom or when places are visited: hours of most visits, and standard deviations in hours."""
_EVENING_DISTRICTS, _NIGHT_TRACTS = 3, 5  # so many of the city have places for the evening, or for the night


@dataclass(frozen=True, kw_only=True)
class AreaSample(SampleInfo):
    """The public description of a sample of areas, before it is loaded.

    Attributes:
        levels: names of the levels of its regions, coarsest first.
        slot_levels: names of the levels of the categories by which it is counted beside the region, coarsest first; () for none.
        make: loads it or makes it up.
        population: returns the public number of residents of each leaf, by its id; None if it is not known.
        per: what `area_population` counts, where counts can be divided by it; "" where that would say nothing.
    """

    levels: tuple[str, ...]
    slot_levels: tuple[str, ...] = ()
    make: Callable[[], AreaCounts] = field(repr=False, compare=False)
    population: Callable[[], pd.Series] | None = field(default=None, repr=False, compare=False)
    per: str = ""


def region_denominators(regions: Regions) -> dict[str, tuple[str, pd.Series, float]]:
    """List the public numbers that regions have, in the form of `area_denominators`: their denominator, and the area of polygons.

    >>> region_denominators(Regions.from_table(pd.DataFrame({"tract": ["a", "b"]}), levels=["tract"]))
    {}
    """
    numbers, shapes = regions.denominator, regions.geometry[-1]
    rates = {} if numbers is None else {"Rates": (describe_rate(numbers), numbers, RATES_PER)}
    if shapes is None or not are_areas(shapes):
        return rates
    areas = pd.Series(areas_km2(regions), index=regions.ids_of(regions.depth))
    return rates | {"Per km²": ("per km²", areas, 1.0)}


def made_up_city(*, seed: int = SEED) -> tuple[AreaCounts, pd.Series]:
    """Make up a city: blocks with irregular sides in tracts in districts, a river without blocks, residents, and their visits.

    Args:
        seed: seed of the shapes, the residents and the visits.

    Returns:
        Visits per block; and the public number of residents of each block, by its id.
    """
    rng = np.random.default_rng(seed)
    table, centre = _make_blocks(rng)
    regions = Regions.from_table(table, levels=CITY_LEVELS)
    distance = np.hypot(*(centre - 0.5).T)
    density = np.exp(-4 * distance) * rng.lognormal(0.0, 0.7, len(centre)) * (rng.random(len(centre)) < 0.85)
    residents = rng.multinomial(_RESIDENTS, density / density.sum())
    need = residents * rng.gamma(4.0, 0.25, len(residents))
    visits = rng.multinomial(_VISITS, need / need.sum())
    population = pd.Series(residents, index=table["block"].to_numpy())
    counts = pd.DataFrame({"region": table["block"], "count": visits})
    return AreaCounts.from_table(counts, regions=regions, unit="record"), population


def made_up_hours(*, seed: int = SEED) -> AreaCounts:
    """Make up a day of visits by hour in the city of `made_up_city`: its centre by day, some districts in the evening, few tracts at night.

    Args:
        seed: seed of the city and of the visits.

    Returns:
        Visits per block and hour.
    """
    areas, residents = made_up_city(seed=seed)
    regions, rng = areas.regions, np.random.default_rng([seed, 24])
    centre = shapely.get_coordinates(shapely.centroid(np.asarray(regions.geometry[-1], object)))
    low, high = centre.min(axis=0), centre.max(axis=0)
    distance = np.hypot(*((centre - low) / (high - low) - 0.5).T)
    lively, late = (
        rng.choice(regions.size(level), chosen, replace=False) for level, chosen in ((1, _EVENING_DISTRICTS), (2, _NIGHT_TRACTS))
    )
    weights = {
        "homes": np.ones(len(residents)),
        "work": 8 * np.exp(-7 * distance),
        "evenings": 1.5 * np.isin(regions.ancestors(1), lively),
        "nights": 2.5 * np.isin(regions.ancestors(2), late),
    }
    chance = np.zeros((len(residents), 24))
    for use, weight in weights.items():
        chance += np.outer(residents * weight * rng.gamma(4.0, 0.25, len(residents)), _spread_over_day(_PEAKS[use]))
    visits = rng.multinomial(_VISITS_BY_HOUR, (chance / chance.sum()).ravel()).reshape(chance.shape)
    leaf, hour = np.nonzero(visits)
    places: dict[str, Any] = {"leaf": leaf.astype(np.int32), "slot": hour.astype(np.int32)}
    return AreaCounts(regions=regions, categories=_HOURS, **places, count=visits[leaf, hour])


def _spread_over_day(peaks: tuple[tuple[float, float], ...]) -> Floats:
    """Return the (24,) shares of the hours of a day around peaks, with a few at any time."""
    away = np.abs(np.arange(24) - np.array([[hour] for hour, _ in peaks]))
    shares = 0.04 + np.exp(-0.5 * (np.minimum(away, 24 - away) / [[width] for _, width in peaks]) ** 2).sum(axis=0)
    return np.asarray(shares / shares.sum())


def _make_blocks(rng: np.random.Generator) -> tuple[geopandas.GeoDataFrame, Floats]:
    """Make the blocks of the city, without those in the river; return a table of their ids and polygons, and (n, 2) places from 0 to 1."""
    across, up = _BLOCKS
    column, row = np.meshgrid(np.arange(across + 1), np.arange(up + 1))
    corners = np.stack([column, row], axis=2) + rng.uniform(-_JITTER, _JITTER, (up + 1, across + 1, 2))
    degrees = np.asarray(_CITY_CORNER) + corners * _BLOCK_DEGREES
    rings = np.stack([degrees[:-1, :-1], degrees[:-1, 1:], degrees[1:, 1:], degrees[1:, :-1], degrees[:-1, :-1]], axis=2)
    shapes = shapely.polygons(rings.reshape(-1, 5, 2))
    row, column = np.divmod(np.arange(across * up), across)
    tract = np.stack([column, row]) // _BLOCKS_PER_TRACT
    district = tract // np.array(_TRACTS_PER_DISTRICT)[:, None]
    numbers = (district[1] * 10 + district[0], tract[1] * 100 + tract[0], row * 100 + column)
    ids = [[f"{number:0{digits}d}" for number in level.tolist()] for level, digits in zip(numbers, (1, 3, 4), strict=True)]
    centre = np.stack([(column + 0.5) / across, (row + 0.5) / up], axis=1)
    dry = np.abs(centre[:, 1] - 0.45 - 0.15 * np.sin(5 * centre[:, 0])) > _RIVER
    columns = {level: list(map(".".join, zip(*ids[:depth], strict=True))) for depth, level in enumerate(CITY_LEVELS, start=1)}
    table = geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326")
    return table[dry].reset_index(drop=True), centre[dry]


def _us_residents() -> AreaCounts:
    table = us_counties()
    counts = pd.DataFrame({"region": table["county"].astype(str), "count": table["population"]})
    return AreaCounts.from_table(counts, regions=county_regions(table, STATE_LEVELS), unit="record")


def _us_departures() -> AreaCounts:
    flights = table("us_departures")
    counts = pd.DataFrame({"region": flights["airport"].astype(str), "hour": flights["hour"], "count": flights["count"]})
    return AreaCounts.from_table(counts, regions=flight_regions(), categories=_HOURS, slot="hour", unit="record")


def _us_population() -> pd.Series:
    table = us_counties()
    return pd.Series(table["population"].to_numpy(np.float64), index=table["county"].astype(str).to_numpy())


_ALL_SAMPLES = (
    AreaSample(
        key="us_residents",
        title="United States, residents of 2019",
        description="Residents of 3,142 real counties in 51 states (with the District of Columbia), estimated for 1 July 2019.",
        source="US Census Bureau: population estimates, vintage 2019, and cartographic boundaries of 2017.",
        licence="public domain (US Census Bureau)",
        unit="residents",
        synthetic=False,
        levels=STATE_LEVELS,
        make=_us_residents,
        population=_us_population,
    ),
    AreaSample(
        key="made_up_city",
        title="A made-up city, visits to the doctor",
        description="Made-up visits in the blocks of an invented city of 12 districts with a river, in the open Atlantic.",
        source="Made up by dpviz.samples.areas.made_up_city.",
        licence="Apache-2.0, as the project",
        unit="visits",
        levels=CITY_LEVELS,
        make=lambda: made_up_city()[0],
        population=lambda: made_up_city()[1],
        per="residents",
    ),
    AreaSample(
        key="city_by_hour",
        title="A made-up city, visits by hour",
        description="Made-up visits of one day in the same city: the centre by day, some districts in the evening, a few at night.",
        source="Made up by dpviz.samples.areas.made_up_hours.",
        licence="Apache-2.0, as the project",
        unit="visits",
        levels=CITY_LEVELS,
        slot_levels=_HOURS.levels,
        make=made_up_hours,
        population=lambda: made_up_city()[1],
        per="residents",
    ),
    AreaSample(
        key="us_departures",
        title="United States, flights by hour of departure",
        description="Real flights from 225 airports between January and June 2001, by the local hour in which they left.",
        source="U.S. Bureau of Transportation Statistics, on-time performance of the larger airlines, by way of vega-datasets 3.2.1.",
        licence="public domain, US government",
        unit="flights",
        synthetic=False,
        levels=AIRPORT_LEVELS,
        slot_levels=_HOURS.levels,
        make=_us_departures,
    ),
    AreaSample(
        key="la_hexagons",
        title="Los Angeles, made-up residents in hexagons",
        description="Made-up homes in the H3 cells of the 70 x 70 km square around Los Angeles; some of the cells are water.",
        source="Made up by dpviz.samples.points.los_angeles; cells by the package h3.",
        licence="Apache-2.0, as the project",
        unit="residents",
        levels=tuple(f"resolution {resolution}" for resolution in HEXAGON_LEVELS),
        make=lambda: AreaCounts.from_xy(*sample_xy("la_residents"), regions=Regions.h3(SQUARE, resolutions=HEXAGON_LEVELS)),
    ),
)
_HAS_H3 = importlib.util.find_spec("h3") is not None
AREA_SAMPLES: dict[str, AreaSample] = {sample.key: sample for sample in _ALL_SAMPLES if sample.key != "la_hexagons" or _HAS_H3}
"""The samples of areas by key, in the order of menus. All are public or made up. Hexagons need the package h3."""


def load_area_sample(key: str) -> AreaCounts:
    """Load a sample of areas.

    Args:
        key: a key of `AREA_SAMPLES`.

    Raises:
        InputError: there is no such sample.

    >>> load_area_sample("us_residents")
    AreaCounts(Regions(51 state, 3,142 county), unit='record', contributions=1)
    """
    return replace(find_sample(AREA_SAMPLES, key).make(), fingerprints=sample_fingerprint(key))


def area_population(key: str) -> pd.Series:
    """Return the public number of residents of each leaf of a sample, by the leaf's id: a denominator for `AreaRelease.rates`.

    Raises:
        InputError: there is no such sample, or nobody's number is known for its regions.

    >>> int(area_population("us_residents")["36061"])
    1628706
    """
    population = find_sample(AREA_SAMPLES, key).population
    if population is None:
        raise InputError("This sample has no public number of residents.")
    return population()


def area_denominators(key: str, regions: Regions) -> dict[str, tuple[str, pd.Series, float]]:
    """List the public numbers by which the counts of a sample can be divided: residents, where they are others than are counted, and area.

    Args:
        key: a key of `AREA_SAMPLES`.
        regions: its regions.

    Returns:
        By the name on the Areas page: what follows a rate, the numbers by the ids of the leaves, and per how many a rate is.

    Raises:
        InputError: there is no such sample.

    >>> [words for words, _, _ in area_denominators("us_residents", load_area_sample("us_residents").regions).values()]
    ['per km²']
    """
    about = find_sample(AREA_SAMPLES, key)
    rates = {"Rates": (f"per 1,000 {about.per}", area_population(key), 1000.0)} if about.per else {}
    return rates | region_denominators(regions)
