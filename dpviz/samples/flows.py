"""Samples of trips: real flights, commuters and a country made up by a gravity model, and the TopDown paper's synthetic sets."""

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
from dpviz.samples.points import SEED, About
from dpviz.space.regions import Regions

PAPER_SEED = 253_866  # of the seeds tried: the paper's 435 random leaves
PARTITIONS = ("binary", "random")
DENSITIES = {"complete": 1.0, "dense": 0.5, "sparse": 0.01}
MOST_PAIRS = 20_000_000

_BINARY_LEVELS, _RANDOM_LEVELS = 8, 4
_FEWEST, _MOST = 2, 10
_SHAPE = 3.0
_MEAN = {  # trips per pair with trips: users over pairs in the paper's Table 1
    ("binary", "complete"): 1_051_271 / 65_536,
    ("binary", "dense"): 734_688 / 32_768,
    ("binary", "sparse"): 23_302 / 655,
    ("random", "complete"): 2_019_580 / 189_225,
    ("random", "dense"): 1_003_943 / 95_612,
    ("random", "sparse"): 67_840 / 1_892,
}


def synthetic_flows(partition: str, density: str, *, seed: int = PAPER_SEED) -> Flows:
    """Trips with a heavy tail between areas of a nested partition of nowhere.

    "binary" cuts every area in two, 8 times: 256 leaves. "random" cuts every area into 2 to 10 parts, each number as likely
    as the other, 4 times: 1,296 leaves are to be expected; the default seed was chosen for the paper's 435. A share of the
    pairs, chosen at random, has trips: all ("complete"), 50 % ("dense") or 1 % ("sparse"), rounded down. Their number is
    drawn from the Pareto law P(X > x) = (1 + x / s)**-3, rounded, at least 1.

    The paper prints neither exponent nor scale. Exponent 3 with s = 2 mean, the mean of each set being that of Table 1, agrees
    with all that is published: the stability histogram's false negative rates give the share of pairs under its
    thresholds, for example 8.2, 0.042 and 63 % over 28, 271 and 3.7 trips in "random complete", where this law has 8.1, 0.039 and 62 %.

    Args:
        partition: "binary" or "random".
        density: "complete", "dense" or "sparse".
        seed: decides the random partition, too, which is the same for the three densities.

    Returns:
        Trips between regions without geometry.

    Raises:
        InputError: an unknown partition or density; a seed whose random partition has more than 20,000,000 pairs.

    Source:
        Boninsegna, Silvestri, "Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown
        Approach", 2025, Section 5, "Synthetic Datasets", and Table 1.
    """
    if partition not in PARTITIONS or density not in DENSITIES:
        raise InputError(f"Choose one of {', '.join(PARTITIONS)} and one of {', '.join(DENSITIES)}.")
    rng = np.random.default_rng(seed)
    regions = _partition(_parts(rng, partition))
    width = regions.size(regions.depth)
    if width * width > MOST_PAIRS:
        raise InputError("This seed gives a partition with too many pairs; choose another one.")
    number = int(DENSITIES[density] * width * width)
    pair = np.sort(rng.choice(width * width, number, replace=False, shuffle=False))
    origin, destination = np.divmod(pair, width)
    return Flows(regions, origin.astype(np.int32), destination.astype(np.int32), _pareto(rng, number, _MEAN[partition, density]))


def _pareto(rng: np.random.Generator, number: int, mean: float) -> Integers:
    """(number,) whole numbers, at least 1."""
    return np.maximum(np.rint((_SHAPE - 1) * mean * rng.pareto(_SHAPE, number)), 1).astype(np.int64)


def _parts(rng: np.random.Generator, partition: str) -> list[Integers]:
    """How many parts each area is cut into, level by level."""
    if partition == "binary":
        return [np.full(2**level, 2) for level in range(_BINARY_LEVELS)]
    parts: list[Integers] = []
    for _ in range(_RANDOM_LEVELS):
        areas = int(parts[-1].sum()) if parts else 1
        parts.append(rng.integers(_FEWEST, _MOST, areas, endpoint=True))
    return parts


def _partition(parts: list[Integers]) -> Regions:
    """Regions whose ids are paths: the third part of the first part of everything is "1.3"."""
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

_WORKERS = 0.45  # per resident
_COUNTY_REACH = ((1.0, 15.0), (2e-3, 80.0))
_COUNTRY_REACH = ((1.0, 5.0), (4e-5, 43.0))
_STRIP_KM = np.array([1_000.0, 220.0])
_MIDDLE = np.array([-24.0, -2.0])  # degrees: open Atlantic by the equator
_TURN = np.radians(-40.0)
_EARTH_KM = 6_371.0088
_CHUNK = 256


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


AIRPORT_LEVELS = ("division", "state", "airport")
NORTHEAST = ("New England", "Middle Atlantic")


@dataclass(frozen=True, kw_only=True)
class FlowSample(About):
    """An example of trips: "flights", "commuters" or "trips".

    Attributes:
        levels: of its regions, coarsest first.
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
        source="Those of us_commuters who live and work there.",
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


def _of_the_paper(partition: str, density: str) -> FlowSample:
    """One of the six synthetic sets."""
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


_PAPER = tuple(_of_the_paper(partition, density) for partition in PARTITIONS for density in DENSITIES)

FLOW_SAMPLES: dict[str, FlowSample] = {sample.key: sample for sample in (*_LISTED, *_PAPER)}


def load_flow_sample(key: str, *, seed: int | None = None) -> Flows:
    """Load or make up an example.

    Args:
        key: a name in `FLOW_SAMPLES`.
        seed: of made-up trips; None for the sample's usual one.

    Raises:
        InputError: an unknown key, or a seed for real data.
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
    """Those who live and work in the Northeast.

    Args:
        commuters: from `us_commuters`.
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
