"""What files that were found say about their columns, from headers and schemas alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyproj import CRS

from dpviz.data.columns import COUNT_NAMES, PERSON_NAMES, X_NAMES, Y_NAMES, folded, only_candidate
from dpviz.data.reading.flow_columns import HEADLESS, headless, may_be_matrix, proposed
from dpviz.data.reading.flows import FlowsFile, inspect_flows
from dpviz.data.reading.points import DEFAULT_LIMITS, PointsFile, inspect_points
from dpviz.data.reading.safety import guarded
from dpviz.data.reading.sources import FoundFiles
from dpviz.errors import InputError

Pair = tuple[str, str]


def found_points(found: FoundFiles) -> PointsFile:
    """What points files say about themselves; of tables, which may be large, not a row is read.

    Raises:
        InputError: as `inspect_points`.
    """
    if found.schema is None:
        return inspect_points(found.sources[0])
    geo = found.geo
    names = tuple(name for name in found.schema.names if geo is None or name not in geo["columns"])
    x, y = (None if geo is not None else only_candidate(names, aliases) for aliases in (X_NAMES, Y_NAMES))
    if found.format != "Parquet" and x is None and y is None and any(headless([name]) for name in names):
        raise InputError("The first line must hold the names of the columns; this one holds numbers.")
    declared = None if geo is None else geo["crs"]
    crs = None if declared is None else guarded("The GeoParquet's CRS is not known.", lambda: CRS.from_user_input(declared))
    return PointsFile(
        format=found.format if geo is None else "GeoParquet",
        columns=names,
        has_geometry=geo is not None,
        x=x,
        y=y,
        count=only_candidate(names, COUNT_NAMES),
        person=only_candidate(names, PERSON_NAMES),
        crs=None if crs is None else crs.to_string(),
        rows=found.rows,
    )


def found_flows(found: FoundFiles) -> FlowsFile:
    """What trips files say about themselves; rows are read only to tell a matrix from a table, of files small enough.

    Raises:
        InputError: as `inspect_flows`.
    """
    if found.schema is None:
        return inspect_flows(found.sources[0])
    names = tuple(found.schema.names)
    if headless(names):
        raise InputError(HEADLESS)
    if may_be_matrix(names) and coordinate_columns(names) is None and found.within(DEFAULT_LIMITS):
        return inspect_flows(found.sources[0])
    named = proposed(names)
    return FlowsFile(
        format=found.format,
        columns=names,
        matrix=False,
        origin=named.origin,
        destination=named.destination,
        count=named.count,
        person=only_candidate(names, PERSON_NAMES),
        rows=found.rows,
    )


def coordinate_columns(names: Sequence[str]) -> tuple[Pair, Pair] | None:
    """Columns of x and y of origins and of destinations, if at least two names hold a word for each; the first two in their order.

    >>> coordinate_columns(["pickup_lng", "pickup_lat", "dropoff_lng", "dropoff_lat", "fare"])
    (('pickup_lng', 'pickup_lat'), ('dropoff_lng', 'dropoff_lat'))
    >>> coordinate_columns(["from", "to", "lon"]) is None
    True
    """
    x, y = ([name for name in names if set(re.findall("[^\\W\\d_]+", folded(name))) & set(aliases)] for aliases in (X_NAMES, Y_NAMES))
    return ((x[0], y[0]), (x[1], y[1])) if len(x) > 1 and len(y) > 1 else None
