"""Made-up residents of Los Angeles, placed around real towns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
import shapely
from numpy.typing import NDArray

from dpviz.bundled import folder
from dpviz.samples.made_up import SEED, check_size, table

SQUARE = (-118.62277, 33.73670, -117.86459, 34.36776)
DECIMALS = 5

_DOWNTOWN = (-118.24368, 34.05223)
_KM = np.array([92.327, 110.923])  # of one degree of longitude and latitude in Los Angeles
_MARGIN_KM = 10.0
_CHUNK = 1_000_000
_ROUNDS = 6

Floats = NDArray[np.float64]


def los_angeles(size: int = 200_000, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Made-up residents of the 70 x 70 km square around Los Angeles.

    Towns of GeoNames are scattered into neighbourhoods in proportion to their population, and residents around these
    with heavy tails; a small part lives in thin country. Nobody lives in the sea. The neighbourhoods depend on the
    seed, not on the size.

    Args:
        size: residents, 1 to 10,000,000.
        seed: same seed and size, same residents.

    Returns:
        (size,) longitude and (size,) latitude, degrees rounded to 5 decimals (1 m), in no order.

    Raises:
        InputError: a size out of range.

    Source:
        Own model. The square is that of Shaham et al., HTF, SIGSPATIAL 2021, section 5.1; their data are not public.
    """
    check_size(size)
    rng = np.random.default_rng(seed)
    neighbourhoods = _neighbourhoods(rng)
    starts = range(0, size, _CHUNK)
    x, y = np.concatenate([_residents(rng, neighbourhoods, min(_CHUNK, size - start)) for start in starts]).T
    return x.copy(), y.copy()


@dataclass(frozen=True, kw_only=True)
class _Neighbourhoods:
    """(k, 2) centres in degrees, (k,) radius in km, (k,) cumulative share of the residents."""

    centre: Floats
    radius: Floats
    share: Floats


def _neighbourhoods(rng: np.random.Generator) -> _Neighbourhoods:
    town = _town_centres(rng, 6_000)
    country = _on_land(rng.uniform(SQUARE[:2], SQUARE[2:], (600, 2)))
    centre = np.concatenate([town, country])
    weight = rng.gamma(2.0, 0.5, len(centre))
    weight[len(town) :] *= 0.01 * len(town) / len(country)
    radius = np.r_[rng.lognormal(np.log(0.6), 0.5, len(town)), np.full(len(country), 1.5)]
    share = np.cumsum(weight)
    return _Neighbourhoods(centre=centre, radius=radius, share=share / share[-1])


def _town_centres(rng: np.random.Generator, number: int) -> Floats:
    """(up to number, 2) degrees: around towns, within the radius of 3,500 people per km2, rarely far from any named place."""
    places, population = _towns()
    town = rng.choice(len(places), 5 * number, p=population / population.sum())
    spread = np.sqrt(population[town] / (3_500 * np.pi)) / 1.5
    around = np.round(places[town] + spread[:, None] * rng.standard_normal((len(town), 2)) / _KM, DECIMALS)
    distance, _ = scipy.spatial.cKDTree(places * _KM).query(around * _KM)
    return _on_land(around[rng.random(len(around)) < np.exp(-((distance / 4.0) ** 4))])[:number]


def _towns() -> tuple[Floats, Floats]:
    """(t, 2) degrees and (t,) population of the places in and closely around the square."""
    named = table("us_places")
    places = named[["longitude", "latitude"]].to_numpy()
    half = (np.array(SQUARE[2:]) - np.array(SQUARE[:2])) / 2 * _KM
    near = (np.abs(places - _DOWNTOWN) * _KM <= half + _MARGIN_KM).all(1)
    return places[near], named["population"].to_numpy(np.float64)[near]


def _residents(rng: np.random.Generator, homes: _Neighbourhoods, size: int) -> Floats:
    """(size, 2) degrees; those who fall into the sea or off the square try again, and at last live at the centre."""
    which = np.searchsorted(homes.share, rng.random(size))
    place = homes.centre[which]
    lost = np.arange(size)
    for _ in range(_ROUNDS):
        tail = np.sqrt(1.5 / rng.standard_gamma(1.5, len(lost)))  # Student's t with 3 degrees of freedom
        step = (homes.radius[which[lost]] * tail)[:, None] * rng.standard_normal((len(lost), 2)) / _KM
        moved = np.round(homes.centre[which[lost]] + step, DECIMALS)
        good = _is_land(moved)
        place[lost[good]] = moved[good]
        lost = lost[~good]
    return place


def _on_land(places: Floats) -> Floats:
    places = np.round(places, DECIMALS)
    return places[_is_land(places)]


def _is_land(places: Floats) -> NDArray[np.bool_]:
    """(n,) whether (n, 2) degrees lie in the square and not in the sea."""
    return np.asarray(shapely.contains_xy(_land(), places))


@cache
def _land() -> shapely.Geometry:
    """The land in the square, prepared for many questions."""
    world = shapely.from_geojson((folder("assets") / "land.json").read_text(encoding="utf-8"))
    land = shapely.union_all(shapely.clip_by_rect(shapely.get_parts(world), *SQUARE))
    shapely.prepare(land)
    return land
