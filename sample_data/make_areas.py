"""Rebuild the files of the made-up city: the outlines of its blocks, and visits of patients who do not exist.

PYTHONPATH=. python sample_data/make_areas.py
"""

from __future__ import annotations

from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import shapely

from dpviz.samples.areas import CITY_LEVELS, made_up_city
from dpviz.space.regions import Regions

HERE = Path(__file__).parent
SEED, VISITS, PATIENTS, DIGITS = 7, 8_000, 5_000, 5
OUTSIDE = 0.02  # of the visits: to doctors in the river or around the city


def city_blocks(regions: Regions, residents: pd.Series) -> geopandas.GeoDataFrame:
    """Make a table of the blocks with a column of ids per level, and the number of residents."""
    columns = {name: regions.ids_of(level)[regions.ancestors(level)] for level, name in enumerate(regions.levels, start=1)}
    columns["residents"] = residents.reindex(regions.ids[-1]).to_numpy()
    return geopandas.GeoDataFrame(columns, geometry=regions.geometry[-1].set_precision(10.0**-DIGITS))


def places_in(shapes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a place in each of (n,) polygons: (n, 2) x and y."""
    west, south, east, north = shapely.bounds(shapes).T
    places, missing = np.empty((len(shapes), 2)), np.arange(len(shapes))
    while len(missing):
        xy = np.stack([rng.uniform(west, east), rng.uniform(south, north)], axis=1)[missing]
        inside = shapely.contains_xy(shapes[missing], xy[:, 0], xy[:, 1])
        places[missing[inside]] = xy[inside]
        missing = missing[~inside]
    return places


def city_visits(blocks: geopandas.GeoDataFrame, counts: np.ndarray) -> pd.DataFrame:
    """Make up visits: a place in a block for each, and one of the patients; some patients come often."""
    rng = np.random.default_rng(SEED)
    block = rng.choice(len(blocks), VISITS, p=counts / counts.sum())
    places = places_in(blocks.geometry.to_numpy()[block], rng)
    patient = (PATIENTS * rng.random(VISITS) ** 2).astype(int)
    west, south, east, north = blocks.total_bounds
    lost = rng.random(VISITS) < OUTSIDE
    places[lost] = np.stack([rng.uniform(2 * west - east, west, lost.sum()), rng.uniform(south, north, lost.sum())], axis=1)
    table = pd.DataFrame({"longitude": places[:, 0], "latitude": places[:, 1], "patient": [f"P{number:04d}" for number in patient]})
    return table.round(DIGITS)


def main() -> None:
    """Write both files beside this one."""
    areas, residents = made_up_city()
    assert areas.regions.levels == CITY_LEVELS  # noqa: S101
    blocks = city_blocks(areas.regions, residents)
    counts = np.zeros(len(blocks))
    counts[areas.leaf] = areas.count
    blocks.to_file(HERE / "city_blocks.geojson", driver="GeoJSON", engine="pyogrio", RFC7946="YES", COORDINATE_PRECISION=DIGITS)
    city_visits(blocks, counts).to_csv(HERE / "city_visits.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
