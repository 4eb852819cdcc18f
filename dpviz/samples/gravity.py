"""Made-up trips by a gravity model: commuters between real counties, and a made-up country as large as Italy."""

from __future__ import annotations

from dataclasses import dataclass

import geopandas
import numpy as np
import pandas as pd
import scipy
import shapely
from numpy.typing import NDArray

from dpviz.bundled import folder
from dpviz.data.flows import Flows
from dpviz.samples.points import SEED
from dpviz.space.regions import Places, Regions

COUNTY_LEVELS = ("division", "state", "county")
COUNTRY_LEVELS = ("region", "province", "municipality")
COUNTRY_SIZES = (20, 110, 8_092)
COUNTRY_TRIPS = 28_800_000

_WORKERS = 0.45  # per resident
_COUNTY_REACH = ((1.0, 15.0), (2e-3, 80.0))
_COUNTRY_REACH = ((1.0, 5.0), (4e-5, 43.0))
_STRIP_KM = np.array([1_000.0, 220.0])
_MIDDLE = np.array([-24.0, -2.0])  # degrees: open Atlantic by the equator
_TURN = np.radians(-40.0)
_EARTH_KM = 6_371.0088
_CHUNK = 256

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Gravity:
    """What decides where trips go.

    Attributes:
        place: (n, 2) longitude and latitude of each area, degrees.
        trips: (n,) how many trips begin in each.
        pull: (n,) how strongly each draws trips from elsewhere; only ratios count.
        stay: (n,) share of the trips that end where they began, 0 to 1.
        reach: the pull at a distance of d km fades to the sum of weight * exp(-d / km), for each (weight, km) here.
    """

    place: Floats
    trips: Integers
    pull: Floats
    stay: Floats
    reach: tuple[tuple[float, float], ...]

    def draw(self, rng: np.random.Generator) -> tuple[Places, Places, Integers]:
        """Send every trip somewhere.

        Returns:
            (k,) origin, (k,) destination and (k,) count of the pairs that have trips, ordered by origin, then destination.
        """
        across = _on_the_globe(self.place)
        starts = range(0, len(across), _CHUNK)
        parts = [self._drawn(rng, across, np.arange(start, min(start + _CHUNK, len(across)))) for start in starts]
        origin, destination, count = (np.concatenate(column) for column in zip(*parts, strict=True))
        return origin.astype(np.int32), destination.astype(np.int32), count

    def _drawn(self, rng: np.random.Generator, across: Floats, rows: Indices) -> tuple[Indices, Indices, Integers]:
        distance = scipy.spatial.distance.cdist(across[rows], across)
        share = sum(weight * np.exp(distance / -km) for weight, km in self.reach) * self.pull
        here = np.arange(len(rows)), rows
        share[here] = 0.0
        share *= ((1.0 - self.stay[rows]) / share.sum(1))[:, None]
        share[here] = self.stay[rows]
        count = rng.multinomial(self.trips[rows], share)
        row, destination = np.nonzero(count)
        return rows[row], destination, count[row, destination]


def us_commuters(*, seed: int = SEED) -> Flows:
    """Made-up commuters between the real counties of the United States.

    Of 100 residents 45 work. How many stay in their county rises with its extent and its density; the others choose by
    jobs and distance: the pull fades by a factor of e every 15 km, a 500th part of it every 80 km. Jobs follow population
    and density.

    Args:
        seed: same seed, same commuters.

    Returns:
        147.7 million commuters, one per worker.

    Source:
        Own model. Counties and populations are real: see sample_data/README.md.
    """
    table = us_counties()
    regions = county_regions(table)
    table = table.set_index("county").loc[regions.ids_of(regions.depth)]
    population, area = (table[column].to_numpy(np.float64) for column in ("population", "area_km2"))
    crowding = (population / area / 100.0) ** 0.15
    rng = np.random.default_rng(seed)
    model = Gravity(
        place=_places(regions),
        trips=np.rint(_WORKERS * population).astype(np.int64),
        pull=population * crowding * rng.lognormal(0.0, 0.25, len(table)),
        stay=1.0 - np.clip(0.85 * np.exp(-np.sqrt(area / np.pi) / 22.0) / crowding, 0.03, 0.8),
        reach=_COUNTY_REACH,
    )
    return Flows(regions, *model.draw(rng))


def us_counties() -> geopandas.GeoDataFrame:
    """The stored table of counties: see sample_data/README.md."""
    return geopandas.read_parquet(folder("sample_data") / "us_counties.parquet")


def county_regions(table: geopandas.GeoDataFrame) -> Regions:
    """Division > state > county, with the counties' outlines.

    Args:
        table: rows of `us_counties()`.
    """
    named = table.assign(label=table["name"] + ", " + table["state"].astype(str))
    return Regions.from_table(named, levels=COUNTY_LEVELS, names={"state": "state_name", "county": "label"})


def made_up_country(*, seed: int = SEED) -> Flows:
    """28.8 million trips between the 8,092 municipalities, 110 provinces and 20 regions of a country that does not exist.

    It is as large as Italy's census of commuters and about as sparse: with the default seed each stage of the pairs' tree has
    as many pairs with trips as there, within a fifth. The country lies in the open Atlantic.

    Args:
        seed: decides places and sizes, too.

    Returns:
        Trips between municipalities, which are points; about 550,000 of 65 million pairs have some.

    Source:
        Own model. Its size is that of the ISTAT data in Boninsegna, Silvestri, "Differentially Private Release of
        Hierarchical Origin/Destination Data with a TopDown Approach", 2025, Section 5.
    """
    rng = np.random.default_rng(seed)
    regions, size = _country(rng)
    trips = rng.multinomial(COUNTRY_TRIPS, size / size.sum())
    stay = np.clip(0.5 + 0.08 * np.log(np.maximum(trips, 1) / 1_000.0), 0.1, 0.95)
    model = Gravity(place=_places(regions), trips=trips, pull=size, stay=stay, reach=_COUNTRY_REACH)
    return Flows(regions, *model.draw(rng))


def _country(rng: np.random.Generator) -> tuple[Regions, Floats]:
    """Regions around 20 capitals, provinces around 110 seats (capitals too), each of the nearest; (n,) sizes with a heavy tail."""
    many, more, most = COUNTRY_SIZES
    capital = rng.uniform(0.0, _STRIP_KM, (many, 2))
    capital[:, 0] = (np.arange(many) + rng.random(many)) * _STRIP_KM[0] / many
    seat = np.concatenate([capital, rng.uniform(0.0, _STRIP_KM, (more - many, 2))])
    town = np.concatenate([seat, rng.uniform(0.0, _STRIP_KM, (most - more, 2))])
    size = rng.lognormal(0.0, 1.35, most)
    size[:more] *= 8.0
    size[:many] *= 3.0
    province = np.asarray(scipy.spatial.cKDTree(seat).query(town)[1])
    region = np.asarray(scipy.spatial.cKDTree(capital).query(seat)[1])[province]
    order = np.lexsort((province, region))
    return _country_regions(region[order], province[order], town[order]), size[order]


def _country_regions(region: Integers, province: Integers, town: Floats) -> Regions:
    """Regions of towns in tree order, numbered in that order; (n, 2) km become degrees in the Atlantic."""
    numbers = [1 + np.cumsum(np.diff(code, prepend=code[0]) != 0) for code in (region, province)]
    numbers.append(1 + np.arange(len(town)))
    across, up = (town - _STRIP_KM / 2).T / np.radians(_EARTH_KM)
    longitude = _MIDDLE[0] + across * np.cos(_TURN) - up * np.sin(_TURN)
    latitude = _MIDDLE[1] + across * np.sin(_TURN) + up * np.cos(_TURN)
    table = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(longitude, latitude), crs="EPSG:4326")
    for level, number, size in zip(COUNTRY_LEVELS, numbers, COUNTRY_SIZES, strict=True):
        digits = pd.Series(number.astype(str)).str.zfill(len(str(size)))
        table[level], table[f"{level} name"] = digits, f"{level.capitalize()} " + digits.str.lstrip("0")
    return Regions.from_table(table, levels=COUNTRY_LEVELS, names={level: f"{level} name" for level in COUNTRY_LEVELS})


def _places(regions: Regions) -> Floats:
    """(n, 2) degrees of the leaves' centroids."""
    return shapely.get_coordinates(shapely.centroid(np.asarray(regions.geometry[-1], object)))


def _on_the_globe(place: Floats) -> Floats:
    """(n, 3) km from the centre of the Earth; distances between these are straight, not around the globe."""
    longitude, latitude = np.radians(place).T
    flat = np.cos(latitude)
    return _EARTH_KM * np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)
