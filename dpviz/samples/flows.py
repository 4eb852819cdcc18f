"""The named examples of trips: real flights, made-up commuters, and the TopDown paper's synthetic sets."""

from __future__ import annotations

from dataclasses import dataclass

import geopandas
import pandas as pd

from dpviz.bundled import folder
from dpviz.data.flows import Flows
from dpviz.errors import InputError
from dpviz.samples.gravity import COUNTRY_LEVELS, COUNTY_LEVELS, county_regions, made_up_country, us_commuters, us_counties
from dpviz.samples.points import SEED, About
from dpviz.samples.synthetic_flows import DENSITIES, PAPER_SEED, PARTITIONS, synthetic_flows
from dpviz.space.regions import Regions

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
        source="Made up by dpviz.samples.gravity.us_commuters; counties and populations of 2019 from the US Census Bureau.",
        licence="Apache-2.0",
        unit="commuters",
        synthetic=True,
        levels=COUNTY_LEVELS,
    ),
    FlowSample(
        key="made_up_country",
        title="A made-up country the size of Italy",
        description="28.8 million made-up trips between 8,092 municipalities, about as sparse as Italy's census of commuters.",
        source="Made up by dpviz.samples.gravity.made_up_country.",
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
