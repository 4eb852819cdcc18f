"""Made-up road crossings of Washington and New Mexico: as skewed as the data on which private decompositions were first tried."""

from __future__ import annotations

from dataclasses import dataclass

import geopandas
import numpy as np
import scipy
import shapely
from numpy.typing import NDArray

from dpviz.bundled import folder
from dpviz.samples.made_up import SEED, check_size, table

BOUNDS = (-124.82, 31.33, -103.00, 49.00)
PAPER_SIZE = 1_630_000

_DEGREE_KM = np.array([111.32, 111.1])  # of longitude at the equator, of latitude
_BLOCK_KM = 0.08
_SPRAWL = 8.0
_NEIGHBOURS = 3
_MILE_KM = 1.609
_NEAR_KM = 12.0
_OVERDRAWN = 1.25

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class _State:
    """A state: its share of all crossings; of these, the shares in towns and along roads; (t, 2) places of towns, (t,) pull."""

    outline: shapely.Geometry
    share: float
    towns: float
    roads: float
    place: Floats
    pull: Floats


def road_points(size: int = PAPER_SIZE, *, seed: int = SEED) -> tuple[Floats, Floats]:
    """Made-up road crossings of the states of Washington and New Mexico; the rest of the rectangle is empty.

    Towns of GeoNames become street grids, close in the middle and wider outwards, as large as their population to the
    power 0.9; roads join each town to its nearest three; the rest lies in patches of country, most of them near towns,
    along the lines of a survey grid of one mile. Nothing lies in the sea or beyond the two states. Where the patches are
    depends on the seed, not on the size.

    Args:
        size: crossings, 1 to 10,000,000; the paper has 1.63 million.
        seed: same seed and size, same crossings.

    Returns:
        (size,) longitude and (size,) latitude in degrees, in no order, within [-124.82, -103.00] x [31.33, 49.00].

    Raises:
        InputError: a size out of range.

    Source:
        Own model, in place of the data of Cormode et al., ICDE 2012, Section VIII-A: 1.63 million road intersections of the
        two states from TIGER/Line 2006, US Census Bureau, which are not at hand. The rectangle is the paper's; the shares are ours.
    """
    check_size(size)
    states, block = _states(), _BLOCK_KM * np.sqrt(PAPER_SIZE / size)
    north = round(size * states[0].share)
    streams = np.random.default_rng(seed).spawn(3)
    parts = [_crossings(*each, block) for each in zip(streams, states, (north, size - north), strict=False)]
    x, y = streams[2].permutation(np.concatenate(parts)).T
    return x.copy(), y.copy()


def _states() -> tuple[_State, _State]:
    places = table("us_places")
    counties = geopandas.read_parquet(folder("sample_data") / "us_counties.parquet", columns=["state", "geometry"])

    def state(code: str, share: float, towns: float, roads: float) -> _State:
        own = places[places["state"] == code]
        outline = shapely.union_all(counties.loc[counties["state"] == code, "geometry"].to_numpy())
        return _State(
            outline=shapely.clip_by_rect(outline, *BOUNDS),
            share=share,
            towns=towns,
            roads=roads,
            place=own[["longitude", "latitude"]].to_numpy(),
            pull=np.maximum(own["population"].to_numpy(np.float64), 60) ** 0.9,
        )

    return state("WA", 0.6, 0.6, 0.1), state("NM", 0.4, 0.45, 0.15)


def _crossings(rng: np.random.Generator, state: _State, number: int, block: float) -> Floats:
    """(number, 2) degrees inside the state; more are made, as some fall into the sea or over the border."""
    made = int(_OVERDRAWN * number) + 64
    in_towns, on_roads = int(made * state.towns), int(made * state.roads)
    country = _country(rng, state, made - in_towns - on_roads)
    streets = _streets(rng, state.place, rng.multinomial(in_towns, state.pull / state.pull.sum()), block)
    crossings = np.concatenate([streets, _roads(rng, state.place, on_roads), country])
    shapely.prepare(state.outline)
    inside = np.flatnonzero(shapely.contains_xy(state.outline, crossings))
    return crossings[np.resize(rng.permutation(inside), number)]


def _streets(rng: np.random.Generator, place: Floats, nodes: Indices, block: float) -> Floats:
    """(sum of nodes, 2) degrees: the nodes of a street grid around each place, from the middle outwards with growing gaps.

    Args:
        rng: randomness.
        place: (t, 2) degrees.
        nodes: (t,) how many around each place.
        block: distance of two streets, km.
    """
    town, start = np.repeat(np.arange(len(place)), nodes), np.cumsum(nodes) - nodes
    outwards = (np.arange(len(town)) - start[town]) / nodes[town]
    passed = np.cumsum(1 + rng.poisson(_SPRAWL * outwards**2))
    rank = passed - passed[start[town]]
    across, up = _by_distance(int(rank.max()) + 1)[rank].T * block
    turn = np.where(rng.random(len(place)) < 0.7, 0.0, rng.uniform(0, np.pi / 2, len(place)))[town]
    step = np.stack([np.cos(turn) * across - np.sin(turn) * up, np.sin(turn) * across + np.cos(turn) * up], axis=1)
    step += 0.12 * block * rng.standard_normal(step.shape)
    return np.asarray(place[town] + step / _km(place[:, 1])[town])


def _by_distance(number: int) -> Indices:
    """(number, 2) the whole-numbered places nearest to the origin, nearest first."""
    reach = int(np.sqrt(number / np.pi)) + 3
    i, j = (part.ravel() for part in np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1)))
    order = np.argsort(i * i + j * j, kind="stable")[:number]
    return np.stack([i[order], j[order]], axis=1)


def _roads(rng: np.random.Generator, place: Floats, number: int) -> Floats:
    """(number, 2) degrees along slightly bent roads from each place to its nearest ones, by length up to 80 km."""
    flat = place * _km(place[:, 1].mean(keepdims=True))
    distance, end = (np.asarray(found)[:, 1:].ravel() for found in scipy.spatial.cKDTree(flat).query(flat, k=_NEIGHBOURS + 1))
    begin, length = np.repeat(np.arange(len(place)), _NEIGHBOURS), np.minimum(distance, 80.0)
    bend = 0.08 * rng.standard_normal(len(begin))
    road, way = rng.choice(len(begin), number, p=length / length.sum()), rng.random(number)
    along = (flat[end] - flat[begin])[road]
    sideways = np.stack([-along[:, 1], along[:, 0]], axis=1)
    at = flat[begin[road]] + way[:, None] * along + (bend[road] * np.sin(np.pi * way))[:, None] * sideways
    return np.asarray((at + 0.03 * rng.standard_normal(at.shape)) / _km(place[:, 1].mean(keepdims=True)))


def _country(rng: np.random.Generator, state: _State, number: int) -> Floats:
    """(number, 2) degrees in patches about 6 km wide, one coordinate on a line of the survey grid."""
    west, south, east, north = shapely.bounds(state.outline)
    patch = rng.uniform((west, south), (east, north), (6_000, 2))
    km = _km(patch[:, 1].mean(keepdims=True))
    distance, _ = scipy.spatial.cKDTree(state.place * km).query(patch * km)
    weight = rng.gamma(0.5, 1.0, len(patch)) * (np.exp(-distance / _NEAR_KM) + 0.06) * shapely.contains_xy(state.outline, patch)
    radius = rng.lognormal(np.log(6.0), 0.5, len(patch))
    chosen = rng.choice(len(patch), number, p=weight / weight.sum())
    at = patch[chosen] * km + radius[chosen, None] * rng.standard_normal((number, 2))
    row, axis = np.arange(number), rng.integers(0, 2, number)
    at[row, axis] = np.rint(at[row, axis] / _MILE_KM) * _MILE_KM + 0.03 * rng.standard_normal(number)
    return np.asarray(at / km)


def _km(latitude: Floats) -> Floats:
    """(k, 2) km of one degree of longitude and of latitude."""
    return np.asarray(_DEGREE_KM * np.stack([np.cos(np.radians(latitude)), np.ones_like(latitude)], axis=1))
