"""Made-up points of the size and kind of the data on which grids were first tuned privately: Storage, Landmark and Gowalla."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from dpviz.bundled import folder
from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.samples.made_up import SEED, check_size, table
from dpviz.space.domain import Domain

_USA = (-125.5, 25.0, -65.5, 50.0)
_WORLD = (-160.0, -60.0, 180.0, 80.0)
_CITIES = 4_000
_KM_PER_DEGREE = 111.2

Floats = NDArray[np.float64]
Bounds = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class TuningSet:
    """One of the paper's three sets of points and how it was tuned there; all of it public.

    Attributes:
        key: its name in `TUNING_SETS`.
        size: records.
        bounds: west, south, east, north in degrees.
        sides: the candidates, cells per side.
        sanity: delta of the sanity bound rho = delta |D|.
        order: of a lattice whose cells are well below the finest candidate's.
    """

    key: str
    size: int
    bounds: Bounds
    sides: tuple[int, ...]
    sanity: float
    order: int

    @property
    def domain(self) -> Domain:
        """Its public frame."""
        return Domain(bounds=self.bounds, crs="EPSG:4326", order=self.order)


_LISTED = (
    TuningSet(key="storage", size=8_938, bounds=_USA, sides=(30, 40, 50, 60, 70, 80), sanity=0.1, order=10),
    TuningSet(key="landmark", size=869_976, bounds=_USA, sides=(200, 250, 300, 350, 400), sanity=0.01, order=12),
    TuningSet(key="gowalla", size=6_442_841, bounds=_WORLD, sides=(300, 400, 500, 600, 700, 800), sanity=0.001, order=13),
)
TUNING_SETS: dict[str, TuningSet] = {each.key: each for each in _LISTED}


def tuning_points(key: str, size: int | None = None, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Made-up coordinates that stand for one of the three sets.

    Storage: facilities around the towns of the United States, by population, at its edges. Landmark: schools, offices and
    stations of the same towns, smaller ones with more than their share, and a quarter in open country. Gowalla: check-ins at
    a few thousand made-up cities of the world, most of them in the largest, at venues that are visited again and again.

    Args:
        key: "storage", "landmark" or "gowalla".
        size: records, 1 to 10,000,000; as many as the paper has if None.
        seed: same key, size and seed, same points.

    Returns:
        (size,) longitude and (size,) latitude in degrees, within the set's bounds; Gowalla's check-ins venue by venue.

    Raises:
        InputError: an unknown key, or a size out of range.

    Source:
        Own models, in place of the data of Fanaeepour, Rubinstein, 2017, Section 8.2, which are not at hand; size and bounds are
        the paper's. It prints Gowalla's bounds as "(80.0, -60.0) and (180.0, -160.0)" for longitude and latitude, in that
        order; they are taken the other way round.
    """
    about = _about(key)
    size = about.size if size is None else size
    check_size(size)
    placed = _MAKERS[key](np.random.default_rng(seed), size)
    low, high = np.array(about.bounds).reshape(2, 2)
    x, y = _reflected(placed, low, high).T
    return x.copy(), y.copy()


def tuning_counts(key: str, size: int | None = None, *, seed: int = SEED) -> PointCounts:
    """The same points, counted on the set's lattice; arguments as for `tuning_points`."""
    x, y = tuning_points(key, size, seed=seed)
    return PointCounts.from_xy(x, y, domain=_about(key).domain)


def _about(key: str) -> TuningSet:
    if key not in TUNING_SETS:
        raise InputError(f"There is no such set; choose one of {', '.join(TUNING_SETS)}.")
    return TUNING_SETS[key]


def _storage(rng: np.random.Generator, size: int) -> Floats:
    """(size, 2) degrees: a ring around the middle of each town, wider for larger ones."""
    place, population = _towns()
    town = rng.choice(len(place), size, p=_shares(population**0.95))
    radius = 0.4 * (population[town] / 1000) ** 0.4 * rng.lognormal(0.0, 0.5, size)
    return _around(rng, place[town], radius)


def _landmark(rng: np.random.Generator, size: int) -> Floats:
    """(size, 2) degrees: three quarters in towns, the rest far around them."""
    place, population = _towns()
    town = rng.choice(len(place), size, p=_shares(population**0.7))
    country = rng.random(size) < 0.25
    town[country] = rng.integers(0, len(place), int(country.sum()))
    radius = np.where(country, 25.0, 0.6 * (population[town] / 1000) ** 0.35) * rng.lognormal(0.0, 0.6, size)
    return _around(rng, place[town], radius)


def _gowalla(rng: np.random.Generator, size: int) -> Floats:
    """(size, 2) degrees: venues around made-up cities on land, both visited by Zipf's law."""
    cities = _on_land(rng, _CITIES)
    venues = max(size // 5, 1)
    city = rng.choice(_CITIES, venues, p=_shares(np.arange(1.0, _CITIES + 1) ** -0.9))
    venue = _around(rng, cities[city], rng.lognormal(1.6, 0.9, venues))
    return np.repeat(venue, rng.multinomial(size, _shares(np.asarray(rng.pareto(1.3, venues) + 0.1))), axis=0)


_MAKERS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "storage": _storage,
    "landmark": _landmark,
    "gowalla": _gowalla,
}


def _towns() -> tuple[Floats, Floats]:
    """(t, 2) degrees and (t,) population of the towns of the United States."""
    places = table("us_places")
    return places[["longitude", "latitude"]].to_numpy(), np.maximum(places["population"].to_numpy(np.float64), 100)


def _shares(weight: Floats) -> Floats:
    return np.asarray(weight / weight.sum())


def _around(rng: np.random.Generator, place: Floats, radius: Floats) -> Floats:
    """(n, 2) degrees, scattered around (n, 2) places by (n,) radii in km."""
    km = _KM_PER_DEGREE * np.stack([np.cos(np.radians(place[:, 1])), np.ones(len(place))], axis=1)
    return np.asarray(place + radius[:, None] * rng.standard_normal(place.shape) / km)


def _on_land(rng: np.random.Generator, number: int) -> Floats:
    """(number, 2) degrees, evenly over the land of the world's outline map within the bounds."""
    land = shapely.from_geojson((folder("assets") / "land.json").read_text("utf-8"))
    tree = shapely.STRtree(shapely.get_parts(shapely.get_parts(land)))
    tried = rng.uniform(_WORLD[:2], _WORLD[2:], (4 * number, 2))
    inside, _ = tree.query(shapely.points(tried), predicate="within")
    return np.asarray(tried[np.resize(np.unique(inside), number)])


def _reflected(place: Floats, low: Floats, high: Floats) -> Floats:
    """(n, 2) the same places, mirrored at the bounds where they lie beyond."""
    inside = np.where(place < low, 2 * low - place, place)
    inside = np.where(inside > high, 2 * high - inside, inside)
    return np.asarray(np.clip(inside, low, high))
