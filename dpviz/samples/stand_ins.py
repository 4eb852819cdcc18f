"""Made-up points in place of the three data sets of the paper on private tuning: storage facilities, landmarks and check-ins.

Their sizes and bounds are the paper's: Fanaeepour, Rubinstein, "End-to-end differentially-private parameter tuning in spatial histograms",
2017, Section 8.2. Its data are not included; the models are ours. The paper gives Gowalla's bounds as "(80.0, -60.0) and (180.0, -160.0)"
for longitude and latitude; they are taken in the opposite order.
"""

from __future__ import annotations

import numpy as np
import shapely

from dpviz.arrays import Floats
from dpviz.bundled import folder
from dpviz.samples.made_up import SEED, check_size, table

USA = (-125.5, 25.0, -65.5, 50.0)
WORLD = (-160.0, -60.0, 180.0, 80.0)
STORAGE_SIZE = 8_938
LANDMARK_SIZE = 869_976
GOWALLA_SIZE = 6_442_841

_CITIES = 4_000
_KM_PER_DEGREE = 111.2

Bounds = tuple[float, float, float, float]


def storage_facilities(size: int = STORAGE_SIZE, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Make up facilities at the edges of the towns of the United States, in proportion to about their population.

    Args:
        size: number of facilities, 1 to 10,000,000.
        seed: equal sizes and seeds give equal facilities.

    Returns:
        (size,) longitude and (size,) latitude in degrees, within `USA`.

    Raises:
        InputError: the size is out of range.

    >>> import dpviz as dv
    >>> longitude, latitude = dv.samples.stand_ins.storage_facilities(1_000, seed=1)
    >>> longitude.shape, bool((longitude < -65.5).all())
    ((1000,), True)
    """
    check_size(size)
    rng = np.random.default_rng(seed)
    centres, population = _read_towns()
    town = rng.choice(len(centres), size, p=_normalise(population**0.95))
    radius = 0.4 * (population[town] / 1000) ** 0.4 * rng.lognormal(0.0, 0.5, size)
    return _reflect(_scatter(rng, centres[town], radius), USA)


def landmarks(size: int = LANDMARK_SIZE, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Make up schools, offices and stations: three quarters around towns, relatively more in smaller ones, and a quarter in open country.

    Arguments, results and errors are as for `storage_facilities`.
    """
    check_size(size)
    rng = np.random.default_rng(seed)
    centres, population = _read_towns()
    town = rng.choice(len(centres), size, p=_normalise(population**0.7))
    country = rng.random(size) < 0.25
    town[country] = rng.integers(0, len(centres), int(country.sum()))
    radius = np.where(country, 25.0, 0.6 * (population[town] / 1000) ** 0.35) * rng.lognormal(0.0, 0.6, size)
    return _reflect(_scatter(rng, centres[town], radius), USA)


def check_ins(size: int = GOWALLA_SIZE, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Make up repeated check-ins at venues of 4,000 made-up cities of the world; the sizes of cities and of venues follow power laws.

    Arguments and errors are as for `storage_facilities`. The points lie within `WORLD` and are ordered by venue.
    """
    check_size(size)
    rng = np.random.default_rng(seed)
    cities = _draw_on_land(rng, _CITIES)
    venues = max(size // 5, 1)
    city = rng.choice(_CITIES, venues, p=_normalise(np.arange(1.0, _CITIES + 1) ** -0.9))
    venue = _scatter(rng, cities[city], rng.lognormal(1.6, 0.9, venues))
    often = rng.multinomial(size, _normalise(np.asarray(rng.pareto(1.3, venues) + 0.1)))
    return _reflect(np.repeat(venue, often, axis=0), WORLD)


def _read_towns() -> tuple[Floats, Floats]:
    """Read (t, 2) degrees and (t,) population of the towns of the United States."""
    places = table("us_places")
    return places[["longitude", "latitude"]].to_numpy(), np.maximum(places["population"].to_numpy(np.float64), 100)


def _normalise(weight: Floats) -> Floats:
    return np.asarray(weight / weight.sum())


def _scatter(rng: np.random.Generator, centres: Floats, radius: Floats) -> Floats:
    """Draw (n, 2) degrees, scattered around (n, 2) centres by (n,) radii in km."""
    km = _KM_PER_DEGREE * np.stack([np.cos(np.radians(centres[:, 1])), np.ones(len(centres))], axis=1)
    return np.asarray(centres + radius[:, None] * rng.standard_normal(centres.shape) / km)


def _draw_on_land(rng: np.random.Generator, number: int) -> Floats:
    """Draw (number, 2) degrees, evenly over the land of the world's outline map within the bounds of Gowalla."""
    land = shapely.from_geojson((folder("assets") / "land.json").read_text("utf-8"))
    tree = shapely.STRtree(shapely.get_parts(shapely.get_parts(land)))
    candidates = rng.uniform(WORLD[:2], WORLD[2:], (4 * number, 2))
    inside, _ = tree.query(shapely.points(candidates), predicate="within")
    return np.asarray(candidates[np.resize(np.unique(inside), number)])


def _reflect(coordinates: Floats, bounds: Bounds) -> tuple[Floats, Floats]:
    """Mirror (n, 2) coordinates that are outside the bounds at the bounds; return (n,) x and (n,) y."""
    low, high = np.array(bounds).reshape(2, 2)
    inside = np.where(coordinates < low, 2 * low - coordinates, coordinates)
    inside = np.where(inside > high, 2 * high - inside, inside)
    x, y = np.clip(inside, low, high).T
    return x.copy(), y.copy()
