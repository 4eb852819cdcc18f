"""Names of cities and towns on a map, without a map service: which names are shown, and from which zoom level on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from dpviz.arrays import Floats
from dpviz.bundled import folder
from dpviz.view.basemap import MOST_NORTH, Bounds, measure_distance

ATTRIBUTION = "Place data by GeoNames, geonames.org (CC BY 4.0)"
TILE = 512  # pixels: the width of the world at zoom 0
LETTER, HEIGHT = 7.0, 14.0  # pixels: the width of a letter, and the height of a name
BESIDE, ABOVE = 18.0, 12.0  # pixels that stay empty between two names that stand beside or above each other
STEPS = 16  # zoom levels are rounded up to 1/16, so that 32 bits hold them exactly
EARLIEST = 1e6  # residents: a place with fewer is shown 2 zoom levels later for each factor of 10, even where there is room
_FEWEST = 100.0  # residents: a smaller figure counts as this
_SMALLEST_EXTENT = 1e-4  # degrees
_MARGIN = 0.05  # of the area's extent: a place this near to the area has its name, too


@dataclass(frozen=True, kw_only=True)
class Places:
    """Names of n places, largest first.

    Attributes:
        name: n texts.
        longitude: (n,) degrees east.
        latitude: (n,) degrees north.
        zoom: (n,) zoom level of a web map of 512-pixel tiles from which on the name is shown. At every zoom level, no two of the
            shown names overlap if each is centred on its place, `HEIGHT` pixels high and `LETTER` pixels wide per letter.
    """

    name: list[str]
    longitude: Floats
    latitude: Floats
    zoom: NDArray[np.float32]


@lru_cache(maxsize=64)
def place_names(bounds: Bounds, *, most: int = 400) -> Places:
    """Select the names of a map: those in its area, and just beyond, that appear first when a person zooms in.

    Args:
        bounds: west, south, east, north in degrees.
        most: how many names are selected, at most.

    Returns:
        The names; whoever shows them must show `ATTRIBUTION` as well. They are shared between callers and must not be changed.

    >>> places = place_names((-119.0, 33.6, -117.6, 34.9), most=3)
    >>> places.name, places.zoom.tolist()
    (['Los Angeles', 'Long Beach', 'Lancaster'], [0.75, 5.75, 4.5625])
    """
    table = read_towns()
    west, south, east, north = bounds
    bottom, top = project(np.array([south, north]))
    extent = max(east - west, top - bottom, _SMALLEST_EXTENT)
    near = np.flatnonzero(measure_distance(table.longitude, table.up, (west, bottom, east, top)) <= _MARGIN * extent)
    chosen = np.sort(near[np.argsort(table.zoom[near], kind="stable")[:most]])
    return Places(
        name=table.name.take(pa.array(chosen)).to_pylist(),
        longitude=table.longitude[chosen],
        latitude=table.latitude[chosen],
        zoom=table.zoom[chosen],
    )


def first_zooms(letters: NDArray[np.int64], longitude: Floats, latitude: Floats, population: NDArray[np.int64]) -> NDArray[np.float32]:
    """Compute the zoom level from which on each name is shown.

    A name is shown as soon as it is clear of all shown names before it. Two names that are clear of each other at one zoom level are
    clear at all finer ones, so a name that is shown once stays.

    Args:
        letters: (n,) lengths of the names; names that come first have priority.
        longitude: (n,) degrees.
        latitude: (n,) degrees.
        population: (n,) residents.

    Returns:
        (n,) zoom levels of 512-pixel tiles, at least 0, in steps of 1 / `STEPS`; infinite for a name at the place of another.
    """
    widths, up = LETTER * letters + BESIDE, project(latitude)
    zoom = np.ceil(STEPS * 2 * np.log10(EARLIEST / np.clip(population, _FEWEST, EARLIEST))) / STEPS
    for place in range(1, len(letters)):
        before = slice(place)
        across = np.abs(longitude[before] - longitude[place])
        with np.errstate(divide="ignore"):
            beside = (widths[before] + widths[place]) / 2 / np.minimum(across, 360 - across)
            above = (HEIGHT + ABOVE) / np.abs(up[before] - up[place])
        clear = np.log2(np.minimum(beside, above) * 360 / TILE)
        zoom[place] = np.ceil(STEPS * np.max(clear, where=clear > zoom[before], initial=zoom[place])) / STEPS
    return np.asarray(zoom, np.float32)


def project(latitude: Floats) -> Floats:
    """Compute the y coordinate of latitudes in the web map's projection, in degrees of longitude; beyond its ends, that of the end."""
    return np.asarray(np.degrees(np.arcsinh(np.tan(np.radians(np.clip(latitude, -MOST_NORTH, MOST_NORTH))))))


def find_towns(text: str, *, most: int = 4) -> list[tuple[str, float, float]]:
    """Find places by the beginning of their names, the largest first.

    Args:
        text: what a person typed; upper and lower case are the same.
        most: how many places are returned, at most.

    Returns:
        Name, longitude and latitude of each.

    >>> find_towns("los ang", most=1)
    [('Los Angeles', -118.244, 34.052)]
    """
    wanted, table = text.strip().casefold(), read_towns()
    if not wanted:
        return []
    found = [place for place, name in enumerate(table.name.to_pylist()) if name.casefold().startswith(wanted)][:most]
    return [(table.name[place].as_py(), float(table.longitude[place]), float(table.latitude[place])) for place in found]


@dataclass(frozen=True, kw_only=True)
class Towns:
    """All places of the bundled file, largest first; `up` is the latitude in the web map's projection."""

    name: pa.Array
    longitude: Floats
    latitude: Floats
    population: NDArray[np.int32]
    up: Floats
    zoom: NDArray[np.float32]


@lru_cache(maxsize=1)
def read_towns() -> Towns:
    """Read the bundled file of places, once."""
    table = parquet.read_table(folder("assets") / "cities.parquet").combine_chunks()
    longitude, latitude = (table[name].cast(pa.float64()).to_numpy() for name in ("longitude", "latitude"))
    name = table["name"].combine_chunks()
    population, zoom = table["population"].to_numpy(), table["zoom"].to_numpy()
    return Towns(name=name, longitude=longitude, latitude=latitude, population=population, up=project(latitude), zoom=zoom)
