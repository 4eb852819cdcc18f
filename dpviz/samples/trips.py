"""Samples of trips: real flights, made-up commuters, a made-up country, and synthetic sets as in the TopDown paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import geopandas
import numpy as np
import pandas as pd
import scipy
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, number_runs
from dpviz.bundled import folder
from dpviz.data.fingerprints import sample_fingerprint
from dpviz.data.leaf_regions import directions
from dpviz.data.trips import TripCounts
from dpviz.errors import InputError
from dpviz.samples.made_up import SEED, find_sample, table
from dpviz.samples.points import SampleInfo
from dpviz.space.regions import Regions

PAPER_SEED = 253_866  # the random partition of this seed has 435 leaves, like the paper's
PARTITIONS = ("binary", "random")
DENSITIES = {"complete": 1.0, "dense": 0.5, "sparse": 0.01}
MOST_PAIRS = 20_000_000

_BINARY_LEVELS, _RANDOM_LEVELS = 8, 4
_FEWEST_PARTS, _MOST_PARTS = 2, 10
_PARETO_EXPONENT = 3.0
_MEAN_TRIPS = {  # mean number of trips of a pair that has trips: users divided by pairs, from Table 1 of the paper
    ("binary", "complete"): 1_051_271 / 65_536,
    ("binary", "dense"): 734_688 / 32_768,
    ("binary", "sparse"): 23_302 / 655,
    ("random", "complete"): 2_019_580 / 189_225,
    ("random", "dense"): 1_003_943 / 95_612,
    ("random", "sparse"): 67_840 / 1_892,
}


def synthetic_trips(partition: str, density: str, *, seed: int = PAPER_SEED) -> TripCounts:
    """Make up trips with a heavy-tailed distribution between the leaves of an abstract nested partition.

    "binary" cuts every area in two, 8 times: 256 leaves. "random" cuts every area into 2 to 10 parts (uniformly distributed), 4 times;
    the default seed gives 435 leaves, as in the paper. A random share of the pairs has trips: all ("complete"), 50 % ("dense") or
    1 % ("sparse"), rounded down. The number of trips of such a pair has the Pareto distribution P(X > x) = (1 + x / s)**-3; it is rounded,
    and at least 1.

    The paper states neither exponent nor scale. Exponent 3 and s = 2 * mean, with the means of its Table 1, agree with the false negative
    rates that it publishes for the stability histogram, which are the shares of pairs below the thresholds.

    Args:
        partition: "binary" or "random".
        density: "complete", "dense" or "sparse".
        seed: seed of the partition and of the trips; the partition does not depend on the density.

    Returns:
        Trips between regions without geometry.

    Raises:
        InputError: the partition or density is unknown, or the seed's random partition has more than 20,000,000 pairs.

    Source:
        Boninsegna, Silvestri, "Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown
        Approach", 2025, Section 5, "Synthetic Datasets", and Table 1.
    """
    if partition not in PARTITIONS or density not in DENSITIES:
        raise InputError(f"Choose one of {', '.join(PARTITIONS)} and one of {', '.join(DENSITIES)}.")
    rng = np.random.default_rng(seed)
    regions = _make_partition(rng, partition)
    width = regions.size(regions.depth)
    if width * width > MOST_PAIRS:
        raise InputError("This seed gives a partition with too many pairs; choose another seed.")
    number = int(DENSITIES[density] * width * width)
    pair = np.sort(rng.choice(width * width, number, replace=False, shuffle=False))
    origin, destination = np.divmod(pair, width)
    trips = np.rint((_PARETO_EXPONENT - 1) * _MEAN_TRIPS[partition, density] * rng.pareto(_PARETO_EXPONENT, number))
    trips = np.maximum(trips, 1).astype(np.int64)
    return TripCounts(regions=regions, origin=origin.astype(np.int32), destination=destination.astype(np.int32), count=trips)


def _make_partition(rng: np.random.Generator, partition: str) -> Regions:
    """Make nested regions whose ids are paths: "1.3" is the third part of the first area."""
    path = np.array([""], object)
    ancestors: list[NDArray[np.object_]] = []
    for level in range(_BINARY_LEVELS if partition == "binary" else _RANDOM_LEVELS):
        number = np.full(2**level, 2)
        if partition == "random":
            number = rng.integers(_FEWEST_PARTS, _MOST_PARTS, len(path), endpoint=True)
        area, part = number_runs(number)
        path = path[area] + "." + (part + 1).astype(str).astype(object)
        ancestors = [np.repeat(above, number) for above in ancestors] + [path]
    frame = pd.DataFrame({f"level {depth}": ids for depth, ids in enumerate(ancestors, start=1)}).apply(lambda ids: ids.str[1:])
    return Regions.from_table(frame, levels=list(frame.columns))


COUNTY_LEVELS = ("division", "state", "county")
COUNTRY_LEVELS = ("region", "province", "municipality")
COUNTRY_SIZES = (20, 110, 8_092)
COUNTRY_TRIPS = 28_800_000

_WORKERS = 0.45  # workers per resident
_COUNTY_REACH = ((1.0, 15.0), (2e-3, 80.0))
_COUNTRY_REACH = ((1.0, 5.0), (4e-5, 43.0))
_STRIP_KM = np.array([1_000.0, 220.0])
_COUNTRY_CENTRE = np.array([-24.0, -2.0])  # degrees: the middle of the country, in the open Atlantic by the equator
_COUNTRY_ROTATION = np.radians(-40.0)
_EARTH_KM = 6_371.0088
_CHUNK = 256
_NEAR_COAST = 0.1  # degrees from an airport to the coast of its island


Indices = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Gravity:
    """A gravity model of trips between areas.

    Attributes:
        centre: (n, 2) longitude and latitude of the middle of each area, in degrees.
        trips: (n,) number of trips that begin in each area.
        pull: (n,) attraction of each area for trips from other areas; only ratios matter.
        stay: (n,) share of the trips that end in the area where they began, 0 to 1.
        reach: pairs (weight, km): at a distance of d km the attraction is multiplied by the sum of weight * exp(-d / km).
    """

    centre: Floats
    trips: Integers
    pull: Floats
    stay: Floats
    reach: tuple[tuple[float, float], ...]

    def draw(self, rng: np.random.Generator, regions: Regions) -> TripCounts:
        """Draw a destination for every trip between regions whose leaves are the areas."""
        cartesian = _EARTH_KM * directions(*np.radians(self.centre).T).T  # distances between them are chord lengths
        starts = range(0, len(cartesian), _CHUNK)
        parts = [self._draw_rows(rng, cartesian, np.arange(start, min(start + _CHUNK, len(cartesian)))) for start in starts]
        origin, destination, count = (np.concatenate(column) for column in zip(*parts, strict=True))
        return TripCounts(regions=regions, origin=origin.astype(np.int32), destination=destination.astype(np.int32), count=count)

    def _draw_rows(self, rng: np.random.Generator, cartesian: Floats, rows: Indices) -> tuple[Indices, Indices, Integers]:
        distance = scipy.spatial.distance.cdist(cartesian[rows], cartesian)
        share = sum(weight * np.exp(distance / -km) for weight, km in self.reach) * self.pull
        own_area = np.arange(len(rows)), rows
        share[own_area] = 0.0
        share *= ((1.0 - self.stay[rows]) / share.sum(1))[:, None]
        share[own_area] = self.stay[rows]
        count = rng.multinomial(self.trips[rows], share)
        row, destination = np.nonzero(count)
        return rows[row], destination, count[row, destination]


def us_commuters(*, seed: int = SEED) -> TripCounts:
    """Make up commuters between the real counties of the United States, by a gravity model.

    45 of 100 residents work. The share of workers who stay in their own county grows with the county's area and density. Other workers
    choose a county by its attraction (population and density), times exp(-d / 15 km) + 0.002 exp(-d / 80 km) at the distance d.

    Args:
        seed: equal seeds give equal commuters.

    Returns:
        147.7 million trips, one per worker.

    Source:
        Own model. Counties and populations are real: see sample_data/README.md.
    """
    counties = us_counties()
    regions = county_regions(counties)
    counties = counties.set_index("county").loc[regions.ids_of(regions.depth)]
    population, area = (counties[column].to_numpy(np.float64) for column in ("population", "area_km2"))
    crowding = (population / area / 100.0) ** 0.15
    rng = np.random.default_rng(seed)
    model = Gravity(
        centre=_centroids(regions),
        trips=np.rint(_WORKERS * population).astype(np.int64),
        pull=population * crowding * rng.lognormal(0.0, 0.25, len(counties)),
        stay=1.0 - np.clip(0.85 * np.exp(-np.sqrt(area / np.pi) / 22.0) / crowding, 0.03, 0.8),
        reach=_COUNTY_REACH,
    )
    return model.draw(rng, regions)


def us_counties() -> geopandas.GeoDataFrame:
    """Read the bundled table of counties; sample_data/README.md describes it."""
    return geopandas.read_parquet(folder("sample_data") / "us_counties.parquet")


def county_regions(counties: geopandas.GeoDataFrame, levels: Sequence[str] = COUNTY_LEVELS) -> Regions:
    """Make the regions of counties: division > state > county, with outlines.

    Args:
        counties: rows of `us_counties()`.
        levels: the last two or three of these levels.
    """
    labelled = counties.assign(label=counties["name"] + ", " + counties["state"].astype(str))
    return Regions.from_table(labelled, levels=levels, names={"state": "state_name", "county": "label"})


def made_up_country(*, seed: int = SEED) -> TripCounts:
    """Make up 28.8 million trips between the 8,092 municipalities of an invented country with 110 provinces and 20 regions.

    The table has the size of Italy's census of commuters and about the same sparsity: with the default seed, the number of pairs with
    trips at each stage of the tree of pairs differs from the census by at most a fifth. The country is in the open Atlantic.

    Args:
        seed: seed of the municipalities and of the trips.

    Returns:
        Trips between municipalities, which are points; about 550,000 of 65 million pairs have trips.

    Source:
        Own model. It has the size of the ISTAT data in Boninsegna, Silvestri, "Differentially Private Release of
        Hierarchical Origin/Destination Data with a TopDown Approach", 2025, Section 5.
    """
    rng = np.random.default_rng(seed)
    regions, size = _make_country(rng)
    trips = rng.multinomial(COUNTRY_TRIPS, size / size.sum())
    stay = np.clip(0.5 + 0.08 * np.log(np.maximum(trips, 1) / 1_000.0), 0.1, 0.95)
    model = Gravity(centre=_centroids(regions), trips=trips, pull=size, stay=stay, reach=_COUNTRY_REACH)
    return model.draw(rng, regions)


def _make_country(rng: np.random.Generator) -> tuple[Regions, Floats]:
    """Make up municipalities. Return their regions, and (n,) relative sizes.

    A municipality belongs to the province of the nearest seat, and a seat to the region of the nearest capital.
    """
    regions_count, provinces_count, towns_count = COUNTRY_SIZES
    capital = rng.uniform(0.0, _STRIP_KM, (regions_count, 2))
    capital[:, 0] = (np.arange(regions_count) + rng.random(regions_count)) * _STRIP_KM[0] / regions_count
    seat = np.concatenate([capital, rng.uniform(0.0, _STRIP_KM, (provinces_count - regions_count, 2))])
    town = np.concatenate([seat, rng.uniform(0.0, _STRIP_KM, (towns_count - provinces_count, 2))])
    size = rng.lognormal(0.0, 1.35, towns_count)
    size[:provinces_count] *= 8.0
    size[:regions_count] *= 3.0
    province = np.asarray(scipy.spatial.cKDTree(seat).query(town)[1])
    region = np.asarray(scipy.spatial.cKDTree(capital).query(seat)[1])[province]
    order = np.lexsort((province, region))
    return _country_regions(region[order], province[order], town[order]), size[order]


def _country_regions(region: Integers, province: Integers, town: Floats) -> Regions:
    """Make nested regions of (n, 2) towns in km, numbered in the given order. The km are converted to degrees in the Atlantic."""
    numbers = [1 + np.cumsum(np.diff(code, prepend=code[0]) != 0) for code in (region, province)]
    numbers.append(1 + np.arange(len(town)))
    across, up = (town - _STRIP_KM / 2).T / np.radians(_EARTH_KM)
    longitude = _COUNTRY_CENTRE[0] + across * np.cos(_COUNTRY_ROTATION) - up * np.sin(_COUNTRY_ROTATION)
    latitude = _COUNTRY_CENTRE[1] + across * np.sin(_COUNTRY_ROTATION) + up * np.cos(_COUNTRY_ROTATION)
    frame = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(longitude, latitude), crs="EPSG:4326")
    for level, number, size in zip(COUNTRY_LEVELS, numbers, COUNTRY_SIZES, strict=True):
        digits = pd.Series(number.astype(str)).str.zfill(len(str(size)))
        frame[level], frame[f"{level} name"] = digits, f"{level.capitalize()} " + digits.str.lstrip("0")
    return Regions.from_table(frame, levels=COUNTRY_LEVELS, names={level: f"{level} name" for level in COUNTRY_LEVELS})


def _centroids(regions: Regions) -> Floats:
    """Return the leaves' centroids: (n, 2) longitude and latitude in degrees."""
    return shapely.get_coordinates(shapely.centroid(np.asarray(regions.geometry[-1], object)))


AIRPORT_LEVELS = ("division", "state", "airport")
NORTHEAST = ("New England", "Middle Atlantic")


def northeast_of(commuters: TripCounts) -> TripCounts:
    """Select the commuters who live and work in New England or the Middle Atlantic states.

    Args:
        commuters: trips from `us_commuters`.
    """
    regions = _northeast_regions()
    leaf_of = regions.find(commuters.regions.ids_of(commuters.regions.depth), regions.depth)
    origin, destination = leaf_of[commuters.origin], leaf_of[commuters.destination]
    is_kept = (origin >= 0) & (destination >= 0)
    return TripCounts(regions=regions, origin=origin[is_kept], destination=destination[is_kept], count=commuters.count[is_kept])


def _northeast_regions() -> Regions:
    counties = us_counties()
    return county_regions(counties[counties["division"].isin(NORTHEAST)])


def _northeast_commuters(*, seed: int) -> TripCounts:
    if seed != SEED:
        return northeast_of(us_commuters(seed=seed))
    return TripCounts.from_table(table("northeast_commuters"), regions=_northeast_regions(), unit="trip")


@cache
def flight_regions() -> Regions:
    """Make the regions of airports: division > state > airport. They are kept, for to unite counties takes most of the time of a load."""
    airports = table("us_airports")
    points = geopandas.points_from_xy(airports["longitude"], airports["latitude"])
    frame = geopandas.GeoDataFrame(airports, geometry=points, crs="EPSG:4326")
    frame["label"] = frame["city"] + " (" + frame["airport"] + ")"
    regions = Regions.from_table(frame, levels=AIRPORT_LEVELS, names={"state": "state_name", "airport": "label"})
    outlines = _outline_states(frame).loc[regions.ids_of(2)].reset_index(drop=True)
    return replace(regions, geometry=(None, outlines, regions.geometry[-1]))


def _outline_states(airports: geopandas.GeoDataFrame) -> geopandas.GeoSeries:
    """Make the outlines of the states of airports, by their ids: unions of counties, or for islands without counties their coasts.

    The coasts are those of the bundled map. It lacks some small islands: an airport there gets a circle.
    """
    outlines = us_counties().astype({"state": str}).dissolve("state").geometry
    coasts = geopandas.read_file(folder("assets") / "land.json").geometry.explode(ignore_index=True).to_numpy()
    for state, points in airports.groupby(airports["state"].astype(str)).geometry:
        if state not in outlines.index:
            near = [list(coasts[shapely.distance(coasts, point) < _NEAR_COAST]) or [point.buffer(_NEAR_COAST / 2)] for point in points]
            outlines[state] = shapely.union_all([shape for shapes in near for shape in shapes])
    return outlines.set_crs("EPSG:4326")  # pandas 2.2 loses it where rows are added


@dataclass(frozen=True, kw_only=True)
class TripSample(SampleInfo):
    """The public description of a sample of trips, before it is loaded.

    Attributes:
        levels: names of the levels of its regions, coarsest first.
        make: makes it up from a `seed`; real data do not depend on it.
        seed: the default seed.
    """

    levels: tuple[str, ...]
    make: Callable[..., TripCounts] = field(repr=False, compare=False)
    seed: int = SEED


_SINGLE_SAMPLES = (
    TripSample(
        key="us_flights",
        title="United States, flights of 2008",
        description="Real flights between 305 airports; the made-up division Territories holds Puerto Rico and the Virgin Islands.",
        source="U.S. Bureau of Transportation Statistics, flights of the larger airlines in 2008, by way of vega-datasets 3.2.1.",
        licence="public domain, US government",
        unit="flights",
        synthetic=False,
        levels=AIRPORT_LEVELS,
        make=lambda **_: TripCounts.from_table(table("us_flights"), regions=flight_regions(), unit="trip"),
    ),
    TripSample(
        key="northeast_commuters",
        title="Northeast of the United States, made-up commuters",
        description="Made-up commuters between the 217 counties of New England and the Middle Atlantic states.",
        source="The commuters of the sample us_commuters who both live and work in these states.",
        unit="commuters",
        levels=COUNTY_LEVELS,
        make=_northeast_commuters,
    ),
    TripSample(
        key="us_commuters",
        title="United States, made-up commuters",
        description="Made-up commuters between 3,142 real counties, by population, density and distance.",
        source="Made up by dpviz.samples.trips.us_commuters; counties and populations of 2019 from the US Census Bureau.",
        unit="commuters",
        levels=COUNTY_LEVELS,
        make=us_commuters,
    ),
    TripSample(
        key="made_up_country",
        title="A made-up country the size of Italy",
        description="28.8 million made-up trips between 8,092 municipalities, about as sparse as Italy's census of commuters.",
        source="Made up by dpviz.samples.trips.made_up_country.",
        unit="trips",
        levels=COUNTRY_LEVELS,
        make=made_up_country,
    ),
)


def _describe_synthetic(partition: str, density: str) -> TripSample:
    """Describe one of the six synthetic sets."""
    areas = {"binary": "256 areas, 8 times cut in two", "random": "435 areas, 4 times cut into 2 to 10 parts"}[partition]
    depth = {"binary": _BINARY_LEVELS, "random": _RANDOM_LEVELS}[partition]
    return TripSample(
        key=f"{partition}_{density}",
        title=f"Synthetic, {partition} and {density}",
        description=f"Like the TopDown paper's: {areas}; trips with a heavy tail on {DENSITIES[density]:.0%} of the pairs.",
        source="Boninsegna, Silvestri, Hierarchical Origin/Destination Data with a TopDown Approach, 2025, section 5; drawn again.",
        unit="trips",
        levels=tuple(f"level {level}" for level in range(1, depth + 1)),
        make=partial(synthetic_trips, partition, density),
        seed=PAPER_SEED,
    )


_SYNTHETIC = tuple(_describe_synthetic(shape, density) for shape in PARTITIONS for density in DENSITIES)

TRIP_SAMPLES: dict[str, TripSample] = {sample.key: sample for sample in (*_SINGLE_SAMPLES, *_SYNTHETIC)}


def load_trip_sample(key: str, *, seed: int | None = None) -> TripCounts:
    """Load a sample of trips, or make it up.

    Args:
        key: a key of `TRIP_SAMPLES`.
        seed: seed of made-up trips; None for the sample's default.

    Raises:
        InputError: the key is unknown, or a seed is given for real data.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> trips.regions.levels, trips.regions.size(3)
    (('division', 'state', 'airport'), 305)
    """
    sample = find_sample(TRIP_SAMPLES, key)
    if seed is not None and not sample.synthetic:
        raise InputError("This sample is real data; leave the seed out.")
    return replace(sample.make(seed=sample.seed if seed is None else seed), fingerprints=sample_fingerprint(key, seed=seed))
