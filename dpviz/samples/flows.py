"""Samples of trips: real flights, made-up commuters, a made-up country, and synthetic sets like those of the TopDown paper."""

from __future__ import annotations

from dataclasses import dataclass

import geopandas
import numpy as np
import pandas as pd
import scipy
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Places
from dpviz.bundled import folder
from dpviz.data.flows import Flows
from dpviz.errors import InputError
from dpviz.samples.points import SEED, SampleInfo
from dpviz.space.regions import Regions

PAPER_SEED = 253_866  # the random partition of this seed has 435 leaves, like the paper's
PARTITIONS = ("binary", "random")
DENSITIES = {"complete": 1.0, "dense": 0.5, "sparse": 0.01}
MOST_PAIRS = 20_000_000

_BINARY_LEVELS, _RANDOM_LEVELS = 8, 4
_FEWEST, _MOST = 2, 10
_SHAPE = 3.0
_MEAN = {  # mean number of trips of a pair that has trips: users divided by pairs, from Table 1 of the paper
    ("binary", "complete"): 1_051_271 / 65_536,
    ("binary", "dense"): 734_688 / 32_768,
    ("binary", "sparse"): 23_302 / 655,
    ("random", "complete"): 2_019_580 / 189_225,
    ("random", "dense"): 1_003_943 / 95_612,
    ("random", "sparse"): 67_840 / 1_892,
}


def synthetic_flows(partition: str, density: str, *, seed: int = PAPER_SEED) -> Flows:
    """Make up trips with a heavy-tailed distribution between the leaves of an abstract nested partition.

    "binary" cuts every area in two, 8 times: 256 leaves. "random" cuts every area into 2 to 10 parts (uniformly distributed), 4 times;
    the default seed gives 435 leaves, as in the paper. A random share of the pairs has trips: all ("complete"), 50 % ("dense") or
    1 % ("sparse"), rounded down. The number of trips of such a pair has the Pareto distribution P(X > x) = (1 + x / s)**-3; it is rounded,
    and at least 1.

    The paper states neither exponent nor scale. Exponent 3 and s = 2 mean, with the means of Table 1, agree with its published false
    negative rates of the stability histogram, which are the shares of pairs below its thresholds.

    Args:
        partition: "binary" or "random".
        density: "complete", "dense" or "sparse".
        seed: seed of the partition and of the trips; the partition does not depend on the density.

    Returns:
        Trips between regions without geometry.

    Raises:
        InputError: an unknown partition or density, or a seed whose random partition has more than 20,000,000 pairs.

    Source:
        Boninsegna, Silvestri, "Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown
        Approach", 2025, Section 5, "Synthetic Datasets", and Table 1.
    """
    if partition not in PARTITIONS or density not in DENSITIES:
        raise InputError(f"Choose one of {', '.join(PARTITIONS)} and one of {', '.join(DENSITIES)}.")
    rng = np.random.default_rng(seed)
    regions = _partition(_cuts_per_area(rng, partition))
    width = regions.size(regions.depth)
    if width * width > MOST_PAIRS:
        raise InputError("This seed gives a partition with too many pairs; choose another seed.")
    number = int(DENSITIES[density] * width * width)
    pair = np.sort(rng.choice(width * width, number, replace=False, shuffle=False))
    origin, destination = np.divmod(pair, width)
    return Flows(regions, origin.astype(np.int32), destination.astype(np.int32), _pareto(rng, number, _MEAN[partition, density]))


def _pareto(rng: np.random.Generator, number: int, mean: float) -> Integers:
    """Draw (number,) rounded Pareto variates, at least 1."""
    return np.maximum(np.rint((_SHAPE - 1) * mean * rng.pareto(_SHAPE, number)), 1).astype(np.int64)


def _cuts_per_area(rng: np.random.Generator, partition: str) -> list[Integers]:
    """Choose how many parts each area is cut into: one (areas,) array per level."""
    if partition == "binary":
        return [np.full(2**level, 2) for level in range(_BINARY_LEVELS)]
    parts: list[Integers] = []
    for _ in range(_RANDOM_LEVELS):
        areas = int(parts[-1].sum()) if parts else 1
        parts.append(rng.integers(_FEWEST, _MOST, areas, endpoint=True))
    return parts


def _partition(parts: list[Integers]) -> Regions:
    """Make nested regions whose ids are paths: "1.3" is the third part of the first area."""
    path = np.array([""], object)
    ancestors: list[NDArray[np.object_]] = []
    for number in parts:
        step = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number) + 1
        path = np.repeat(path, number) + "." + step.astype(str).astype(object)
        ancestors = [np.repeat(above, number) for above in ancestors] + [path]
    table = pd.DataFrame({f"level {depth}": ids for depth, ids in enumerate(ancestors, start=1)}).apply(lambda ids: ids.str[1:])
    return Regions.from_table(table, levels=list(table.columns))


COUNTY_LEVELS = ("division", "state", "county")
COUNTRY_LEVELS = ("region", "province", "municipality")
COUNTRY_SIZES = (20, 110, 8_092)
COUNTRY_TRIPS = 28_800_000

_WORKERS = 0.45  # workers per resident
_COUNTY_REACH = ((1.0, 15.0), (2e-3, 80.0))
_COUNTRY_REACH = ((1.0, 5.0), (4e-5, 43.0))
_STRIP_KM = np.array([1_000.0, 220.0])
_MIDDLE = np.array([-24.0, -2.0])  # degrees: the middle of the country, in the open Atlantic by the equator
_TURN = np.radians(-40.0)
_EARTH_KM = 6_371.0088
_CHUNK = 256


Indices = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Gravity:
    """A gravity model of trips between areas.

    Attributes:
        place: (n, 2) longitude and latitude of each area, in degrees.
        trips: (n,) number of trips that begin in each area.
        pull: (n,) attraction of each area for trips from others; only ratios matter.
        stay: (n,) share of the trips that end in the area where they began, 0 to 1.
        reach: pairs (weight, km): at a distance of d km the attraction is multiplied by the sum of weight * exp(-d / km).
    """

    place: Floats
    trips: Integers
    pull: Floats
    stay: Floats
    reach: tuple[tuple[float, float], ...]

    def draw(self, rng: np.random.Generator) -> tuple[Places, Places, Integers]:
        """Draw a destination for every trip.

        Returns:
            (k,) origin, (k,) destination and (k,) count of the pairs that have trips, ordered by origin, then destination.
        """
        across = _cartesian_km(self.place)
        starts = range(0, len(across), _CHUNK)
        parts = [self._draw_rows(rng, across, np.arange(start, min(start + _CHUNK, len(across)))) for start in starts]
        origin, destination, count = (np.concatenate(column) for column in zip(*parts, strict=True))
        return origin.astype(np.int32), destination.astype(np.int32), count

    def _draw_rows(self, rng: np.random.Generator, across: Floats, rows: Indices) -> tuple[Indices, Indices, Integers]:
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
    """Make up commuters between the real counties of the United States, by a gravity model.

    45 of 100 residents work. The share of workers who stay in their own county grows with the county's area and density. The others
    choose a county by its attraction (population and density) and its distance d, which weighs exp(-d / 15 km) + 0.002 exp(-d / 80 km).

    Args:
        seed: equal seeds give equal commuters.

    Returns:
        147.7 million trips, one per worker.

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
    """Read the bundled table of counties; sample_data/README.md describes it."""
    return geopandas.read_parquet(folder("sample_data") / "us_counties.parquet")


def county_regions(table: geopandas.GeoDataFrame) -> Regions:
    """Make the regions of counties: division > state > county, with outlines.

    Args:
        table: rows of `us_counties()`.
    """
    named = table.assign(label=table["name"] + ", " + table["state"].astype(str))
    return Regions.from_table(named, levels=COUNTY_LEVELS, names={"state": "state_name", "county": "label"})


def made_up_country(*, seed: int = SEED) -> Flows:
    """Make up 28.8 million trips between the 8,092 municipalities of an invented country with 110 provinces and 20 regions.

    The table has the size of Italy's census of commuters and about the same sparsity: with the default seed, the number of pairs with
    trips at each stage of the tree of pairs differs from the census by at most a fifth. The country lies in the open Atlantic.

    Args:
        seed: seed of the municipalities and of the trips.

    Returns:
        Trips between municipalities, which are points; about 550,000 of 65 million pairs have trips.

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
    """Make up municipalities in the province of the nearest seat; seats are in the region of the nearest capital. Also (n,) sizes."""
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
    """Make nested regions of towns, numbered in the order given; the (n, 2) km are converted to degrees in the Atlantic."""
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
    """Return the leaves' centroids: (n, 2) longitude and latitude in degrees."""
    return shapely.get_coordinates(shapely.centroid(np.asarray(regions.geometry[-1], object)))


def _cartesian_km(place: Floats) -> Floats:
    """Convert (n, 2) degrees to (n, 3) Cartesian coordinates in km from the Earth's centre, so that distances are lengths of chords."""
    longitude, latitude = np.radians(place).T
    flat = np.cos(latitude)
    return _EARTH_KM * np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


AIRPORT_LEVELS = ("division", "state", "airport")
NORTHEAST = ("New England", "Middle Atlantic")


@dataclass(frozen=True, kw_only=True)
class FlowSample(SampleInfo):
    """What is known about a sample of trips before it is loaded.

    Attributes:
        levels: names of the levels of its regions, coarsest first.
    """

    levels: tuple[str, ...]


_LISTED = (
    FlowSample(
        key="us_flights",
        title="United States, flights of 2008",
        description="Real flights between 305 airports; the made-up division Territories holds Puerto Rico and the Virgin Islands.",
        source="U.S. Bureau of Transportation Statistics, flights of the larger airlines in 2008, by way of vega-datasets 3.2.1.",
        licence="public domain, US government",
        unit="flights",
        synthetic=False,
        levels=AIRPORT_LEVELS,
    ),
    FlowSample(
        key="northeast_commuters",
        title="Northeast of the United States, made-up commuters",
        description="Made-up commuters between the 217 counties of New England and the Middle Atlantic states.",
        source="The sample us_commuters, cut to people who both live and work in these states.",
        licence="Apache-2.0",
        unit="commuters",
        synthetic=True,
        levels=COUNTY_LEVELS,
    ),
    FlowSample(
        key="us_commuters",
        title="United States, made-up commuters",
        description="Made-up commuters between 3,142 real counties, by population, density and distance.",
        source="Made up by dpviz.samples.flows.us_commuters; counties and populations of 2019 from the US Census Bureau.",
        licence="Apache-2.0",
        unit="commuters",
        synthetic=True,
        levels=COUNTY_LEVELS,
    ),
    FlowSample(
        key="made_up_country",
        title="A made-up country the size of Italy",
        description="28.8 million made-up trips between 8,092 municipalities, about as sparse as Italy's census of commuters.",
        source="Made up by dpviz.samples.flows.made_up_country.",
        licence="Apache-2.0",
        unit="trips",
        synthetic=True,
        levels=COUNTRY_LEVELS,
    ),
)


def _synthetic_sample(partition: str, density: str) -> FlowSample:
    """Describe one of the six synthetic sets."""
    cuts = {"binary": "256 areas, 8 times cut in two", "random": "435 areas, 4 times cut into 2 to 10 parts"}
    depth = {"binary": 8, "random": 4}
    return FlowSample(
        key=f"{partition}_{density}",
        title=f"Synthetic, {partition} and {density}",
        description=f"Like the TopDown paper's: {cuts[partition]}; trips with a heavy tail on {DENSITIES[density]:.0%} of the pairs.",
        source="Boninsegna, Silvestri, Hierarchical Origin/Destination Data with a TopDown Approach, 2025, section 5; drawn anew.",
        licence="Apache-2.0",
        unit="trips",
        synthetic=True,
        levels=tuple(f"level {level}" for level in range(1, depth[partition] + 1)),
    )


_SYNTHETIC = tuple(_synthetic_sample(partition, density) for partition in PARTITIONS for density in DENSITIES)

FLOW_SAMPLES: dict[str, FlowSample] = {sample.key: sample for sample in (*_LISTED, *_SYNTHETIC)}


def load_flow_sample(key: str, *, seed: int | None = None) -> Flows:
    """Load a sample of trips, or make it up.

    Args:
        key: a key of `FLOW_SAMPLES`.
        seed: seed of made-up trips; None for the sample's default.

    Raises:
        InputError: an unknown key, or a seed for real data.

    >>> import dpviz as dv
    >>> flows = dv.load_flow_sample("us_flights")
    >>> flows.regions.levels, flows.regions.size(3)
    (('division', 'state', 'airport'), 305)
    """
    if key not in FLOW_SAMPLES:
        raise InputError(f"There is no such sample; choose one of {', '.join(FLOW_SAMPLES)}.")
    if key == "us_flights":
        if seed is not None:
            raise InputError("This sample is real data; leave the seed out.")
        return _us_flights()
    if key == "northeast_commuters":
        return _northeast() if seed in (None, SEED) else northeast_of(us_commuters(seed=seed or 0))
    if key == "us_commuters":
        return us_commuters(seed=SEED if seed is None else seed)
    if key == "made_up_country":
        return made_up_country(seed=SEED if seed is None else seed)
    return synthetic_flows(*key.split("_"), seed=PAPER_SEED if seed is None else seed)


def northeast_of(commuters: Flows) -> Flows:
    """Select the commuters who live and work in New England or the Middle Atlantic states.

    Args:
        commuters: trips from `us_commuters`.
    """
    regions = _northeast_regions()
    place = regions.find(commuters.regions.ids_of(commuters.regions.depth), regions.depth)
    origin, destination = place[commuters.origin], place[commuters.destination]
    kept = (origin >= 0) & (destination >= 0)
    return Flows(regions, origin[kept], destination[kept], commuters.count[kept])


def _northeast() -> Flows:
    return Flows.from_table(_table("northeast_commuters"), regions=_northeast_regions())


def _northeast_regions() -> Regions:
    counties = us_counties()
    return county_regions(counties[counties["division"].isin(NORTHEAST)])


def _us_flights() -> Flows:
    airports = _table("us_airports")
    places = geopandas.points_from_xy(airports["longitude"], airports["latitude"])
    frame = geopandas.GeoDataFrame(airports, geometry=places, crs="EPSG:4326")
    frame["label"] = frame["city"] + " (" + frame["airport"] + ")"
    regions = Regions.from_table(frame, levels=AIRPORT_LEVELS, names={"state": "state_name", "airport": "label"})
    return Flows.from_table(_table("us_flights"), regions=regions)


def _table(name: str) -> pd.DataFrame:
    return pd.read_parquet(folder("sample_data") / f"{name}.parquet")
