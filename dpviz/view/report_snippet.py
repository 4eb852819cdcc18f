"""A few lines of Python that read the main table of a release and add some of it up, for readers of its report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpviz.release.flow_release import FlowRelease
from dpviz.release.members import neutral
from dpviz.release.partitions import TABLE
from dpviz.release.point_release import Release
from dpviz.release.trip_tables import FLOWS
from dpviz.release.trips import numbered

_POINTS = """import {library}
import shapely

table = {library}.{read}
parts = {parts}
box = shapely.box({box})
share = shapely.area(shapely.intersection(parts, box)) / shapely.area(parts)
print((table["count"] * share).sum())"""
_TRIPS = """import pandas

table = pandas.{read}
print(table.loc[table["origin"] == {origin!r}, "count"].sum())"""
_SHAPES, _BOUNDS = "table.geometry.to_numpy()", 'shapely.box(table["west"], table["south"], table["east"], table["north"])'


def snippet(release: Release | FlowRelease, formats: Sequence[str]) -> str | None:
    """Python that adds up the released counts in a box, or the trips from a region; None where no file has a table of them.

    Args:
        release: public.
        formats: that its files are written in.
    """
    return _points(release, formats) if isinstance(release, Release) else _trips(release, formats)


def _points(release: Release, formats: Sequence[str]) -> str | None:
    """Adds up the middle of the domain, in its own coordinates; partitions that it cuts count by the share of their area."""
    crs, stem = release.domain.crs, TABLE.removesuffix(".parquet")
    west, south, east, north = release.domain.bounds
    middle = (west + (east - west) / 4, south + (north - south) / 4, east - (east - west) / 4, north - (north - south) / 4)
    box = ", ".join(f"{float(f'{value:.9g}')!r}" for value in middle)
    if "geoparquet" in formats:
        return _POINTS.format(library="geopandas", read=f'read_parquet("{TABLE}")', parts=_SHAPES, box=box)
    if "csv" in formats:
        return _POINTS.format(library="pandas", read=f'read_csv("{stem}.csv")', parts=_BOUNDS, box=box)
    if crs is None:
        return None
    return _POINTS.format(library="geopandas", read=f'read_file("{stem}.geojson").to_crs({crs!r})', parts=_SHAPES, box=box)


def _trips(release: FlowRelease, formats: Sequence[str]) -> str | None:
    """Adds up the trips that begin in the first region of the finest level."""
    origins = release.tree.origins
    first = origins.ids_of(origins.depth)[:1]
    if "geoparquet" in formats:
        return _TRIPS.format(read=f'read_parquet("{FLOWS}")', origin=str(first[0]))
    if "csv" not in formats:
        return None
    read = f'read_csv("flows_{numbered(origins, origins.depth)}.csv", dtype={{"origin": str, "dest": str}})'
    return _TRIPS.format(read=read, origin=neutral(np.asarray(first, object))[0])
