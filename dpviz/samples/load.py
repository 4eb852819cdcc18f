"""Samples of every family by one name: points, trips and areas that come with the package."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

from dpviz.errors import InputError
from dpviz.samples.areas import AREA_SAMPLES, load_area_sample
from dpviz.samples.made_up import find_sample
from dpviz.samples.points import POINT_SAMPLES, SampleInfo, load_point_sample
from dpviz.samples.trips import TRIP_SAMPLES, load_trip_sample
from dpviz.space.domain import Domain

_LOADERS: tuple[tuple[Mapping[str, SampleInfo], Callable[..., Any], tuple[str, ...]], ...] = (
    (POINT_SAMPLES, load_point_sample, ("domain", "size", "seed")),
    (TRIP_SAMPLES, load_trip_sample, ("seed",)),
    (AREA_SAMPLES, load_area_sample, ()),
)
"""For each family its samples, what loads one, and what may be chosen of it."""
SAMPLES: Mapping[str, SampleInfo] = ChainMap[str, Any](AREA_SAMPLES, TRIP_SAMPLES, POINT_SAMPLES)  # the last one comes first
"""The samples of every family by key: of points, of trips, of areas."""


def load_sample(key: str, *, domain: Domain | None = None, size: int | None = None, seed: int | None = None) -> Any:
    """Load a sample of points, trips or areas, or make it up.

    Args:
        key: a key of `dv.samples.load.SAMPLES`.
        domain: of points: a domain in the sample's CRS; None for the sample's own domain.
        size: of points: number of made-up records, 1 to 10,000,000; None for the sample's default.
        seed: of points and trips: seed of made-up data; None for the sample's default.

    Returns:
        `PointCounts`, `TripCounts` or `AreaCounts`: the private counts that a mechanism takes.

    Raises:
        InputError: the key is unknown, the sample has no such choice, or a size is out of range or given for real data.

    >>> import dpviz as dv
    >>> points, trips = dv.load_sample("la_residents", size=1_000), dv.load_sample("us_flights")
    >>> int(points.count.sum()), trips.regions.levels
    (1000, ('division', 'state', 'airport'))
    >>> dv.load_sample("us_residents")
    AreaCounts(Regions(51 state, 3,142 county), unit='record', contributions=1)
    """
    chosen = {name: value for name, value in (("domain", domain), ("size", size), ("seed", seed)) if value is not None}
    find_sample(SAMPLES, key)
    load, choices = next((load, choices) for samples, load, choices in _LOADERS if key in samples)
    if beyond := [name for name in chosen if name not in choices]:
        raise InputError(f"The sample {key} has no {beyond[0]} to choose; leave it out.")
    return load(key, **chosen)
