"""Files of a release of trips: its tables, regions as GeoJSON, and CSV that opens in flowmap.blue."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely

from dpviz.errors import DomainError
from dpviz.release.flow_release import FlowRelease
from dpviz.release.members import (
    CSV,
    GEOJSON,
    OFF_THE_GLOBE,
    LeftOut,
    Member,
    Plan,
    neutral,
    numbers,
    off_the_globe,
    write_csv,
    write_geojson,
)
from dpviz.release.trip_tables import DESTINATIONS, ORIGINS, REGIONS, flow_table, geographies, trip_tables
from dpviz.space.regions import ROOT, Regions

Facts = dict[str, Any]

NO_PLACES = "The regions have no geometry, so there is no place on the map for them."
_NEUTRAL = " An id that a spreadsheet would take for a formula has an apostrophe in front here, but not in GeoJSON and Parquet."
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 24
_SIDES = {REGIONS: ("leaving", "arriving"), ORIGINS: ("leaving",), DESTINATIONS: ("arriving",)}


def trip_files(release: FlowRelease, formats: tuple[str, ...]) -> Plan:
    """The files of a release of trips, in the formats asked for."""
    plan: Plan = []
    if "geoparquet" in formats:
        plan += trip_tables(release)
    if "geojson" in formats:
        plan += [_geojson(release, stem, level) for stem, _ in geographies(release.tree) for level in range(1, release.depth + 1)]
    if "csv" in formats:
        for level in range(1, release.depth + 1):
            plan += [_flows_csv(release, level), _locations_csv(release, level)]
    return plan


def _geojson(release: FlowRelease, stem: str, level: int) -> Member | LeftOut:
    """The regions of a level, with the released trips that leave and arrive."""
    regions = release.tree.destinations if stem == DESTINATIONS else release.tree.origins
    name, sides = f"{stem}_{numbered(regions, level)}.geojson", _SIDES[stem]
    shapes = _shapes(regions, level)
    if shapes is None:
        return LeftOut(name=name, reason=NO_PLACES)
    reason = off_the_globe(shapes.crs, *shapely.get_coordinates(shapes.to_numpy()).T)
    if reason is not None:
        return LeftOut(name=name, reason=reason)
    about = f"Regions of level {level}, in EPSG:4326, with the released trips that leave and arrive."

    def write(path: Path) -> None:
        columns = _region_columns(release, regions, level, sides)
        write_geojson(geopandas.GeoDataFrame(columns, geometry=shapes.to_numpy(), crs=shapes.crs), path)

    return Member(name=name, format=GEOJSON, about=about, write=write)


def _shapes(regions: Regions, level: int) -> geopandas.GeoSeries | None:
    """Polygons of a level, or its points."""
    return regions.geometry[level - 1] if regions.outlines(level) is None else regions.outlines(level)


def _region_columns(release: FlowRelease, regions: Regions, level: int, sides: tuple[str, ...]) -> Facts:
    ids = regions.ids_of(level)
    columns = {"region_id": ids, "level": level, "level_name": regions.levels[level - 1], "name": regions.names_of(level)}
    everywhere = np.full(len(ids), ROOT, object)
    for side in sides:
        ends, levels = ((ids, everywhere), (level, 0)) if side == "leaving" else ((everywhere, ids), (0, level))
        columns[side], columns[f"{side}_stddev"] = release.answer(*ends, levels=levels, spread=True)
    return columns | {"status": release.status}


def numbered(regions: Regions, level: int) -> str:
    """A level's number, and its name as far as it can stand in a file's name."""
    slug = _SLUG.sub("_", regions.levels[level - 1].lower()).strip("_")[:_LONGEST_SLUG]
    return f"{level}_{slug}" if slug else str(level)


def _flows_csv(release: FlowRelease, level: int) -> Member:
    about = f"Trips, {release.tree.title(2 * level)}, nonzero pairs only; opens in flowmap.blue with the locations of the same level."
    about += _NEUTRAL
    name = f"flows_{numbered(release.tree.origins, level)}.csv"
    return Member(name=name, format=CSV, about=about, write=lambda path: write_csv(flow_table(release, level, neutral, "dest"), path))


def _locations_csv(release: FlowRelease, level: int) -> Member | LeftOut:
    name = f"locations_{numbered(release.tree.origins, level)}.csv"
    places = [_locations(regions, level) for _, regions in geographies(release.tree)]
    missing = next((place for place in places if isinstance(place, str)), None)
    if missing is not None:
        return LeftOut(name=name, reason=missing)
    table = pd.concat([place for place in places if not isinstance(place, str)], ignore_index=True).drop_duplicates(ignore_index=True)
    if table["id"].duplicated().any():
        return LeftOut(name=name, reason="Origins and destinations use the same id for different places.")
    columns = {
        "id": pa.array(table["id"].tolist(), pa.string()),
        "lat": table["lat"],
        "lon": table["lon"],
        "name": pa.array(table["name"].tolist(), pa.string()),
    }
    about = f"A place inside each region, in EPSG:4326 (degrees).{_NEUTRAL}"
    return Member(name=name, format=CSV, about=about, write=lambda path: write_csv(numbers(columns), path))


def _locations(regions: Regions, level: int) -> pd.DataFrame | str:
    """Id, lat, lon and name of a level's regions, or why there are none."""
    try:
        centres = regions.centres(level)
    except DomainError:
        return OFF_THE_GLOBE
    if centres is None:
        return NO_PLACES
    texts = {"id": neutral(regions.ids_of(level)), "name": neutral(regions.names_of(level))}
    return pd.DataFrame({"id": texts["id"], "lat": centres[:, 1], "lon": centres[:, 0], "name": texts["name"]}, dtype=None)
