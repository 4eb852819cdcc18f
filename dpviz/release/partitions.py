"""Files of a release of points: its finest partitions, and all levels with their places in the tree; and back again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray
from pyproj import CRS

from dpviz.errors import InputError
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import Receipt
from dpviz.privacy.wavelet import WaveletSpread
from dpviz.release.contents import CURVE, GRID, INDEPENDENT, WAVELET, settings_of
from dpviz.release.members import (
    CSV,
    GEOJSON,
    GEOPARQUET,
    PARQUET,
    LeftOut,
    Member,
    Plan,
    always,
    numbers,
    off_the_globe,
    plain,
    write_csv,
    write_geojson,
)
from dpviz.release.point_release import Release
from dpviz.release.utility import reliability
from dpviz.space.domain import Domain
from dpviz.space.hilbert import Curve
from dpviz.space.tree import Tree

Facts = dict[str, Any]

TABLE, LEVELS = "partitions.parquet", "levels.parquet"
_MAIN = "The finest partitions, each record in one of them, so counts may be added up"
_ALL = (
    "The partitions of all levels, 0 the whole domain. Every level has all records, so add up one alone: level k is the rows with"
    " level = k, and those with leaf = true above it"
)
_EDGE = 64
_OWN = {"count_noisy": "noisy", "noise_variance": "noise_variance", "count": "count", "count_unbiased": "unbiased", "count_again": "again"}
_LINES = ("west", "south", "east", "north")


def point_files(release: Release, formats: tuple[str, ...]) -> Plan:
    """The files of a release of points, in the formats asked for: the finest partitions in each, and all levels in a table beside."""
    plan: Plan = []
    columns = _columns(release)
    finest = {
        name: values.take(pa.array(release.tree.leaves)) if isinstance(values, pa.Array) else values[release.tree.leaves]
        for name, values in columns.items()
    }
    if "geoparquet" in formats:
        about = f"{_ALL}. With their places in the tree: the whole release, which is read back from here."
        plan.append(Member(name=TABLE, format=GEOPARQUET, about=f"{_MAIN}. In the domain's CRS.", write=_geoparquet(release, finest)))
        plan.append(Member(name=LEVELS, format=PARQUET, about=about, write=lambda path: _write_levels(release, columns, path)))
    if "geojson" in formats:
        plan.append(_geojson(release, finest))
    if "csv" in formats:
        bounds = " With bounds in the domain's CRS."
        plan.append(Member(name="partitions.csv", format=CSV, about=f"{_MAIN}.{bounds}", write=_csv(finest | _bounds(release, finest))))
        plan.append(Member(name="levels.csv", format=CSV, about=f"{_ALL}.{bounds}", write=_csv(_with_leaves(release, columns))))
    return plan


def _columns(release: Release) -> Facts:
    """What people read of every node."""
    tree = release.tree
    low, high = release.interval(np.arange(len(tree)))
    return {
        "partition_id": np.arange(len(tree)),
        "level": tree.depth.astype(np.int32),
        "count_noisy": release.noisy,
        "count": release.count,
        "stddev": release.stddev,
        "ci_low": low,
        "ci_high": high,
        "reliability": reliability(release.count, release.stddev),
        "status": always(release.status, len(tree)),
    }


def _bounds(release: Release, columns: Facts) -> Facts:
    """West, south, east and north of the partitions in a table."""
    bounds = release.domain.coordinates(release.tree.rectangles(columns["partition_id"]))
    return dict(zip(_LINES, np.ascontiguousarray(bounds.T), strict=True))


def _with_leaves(release: Release, columns: Facts) -> Facts:
    """The table of all levels for people: which partitions are not divided, and their bounds."""
    return columns | {"leaf": release.tree.children == 0} | _bounds(release, columns)


def _write_levels(release: Release, columns: Facts, path: Path) -> None:
    tree, spread = release.tree, release.spread
    everything = _with_leaves(release, columns)
    everything |= {name: values for name, own in _OWN.items() if (values := getattr(release, own)) is not None}
    if isinstance(spread, Spread):
        everything |= {"share": spread.share, "slack": spread.slack}
    everything |= {"parent": tree.parent, "first_child": tree.first_child, "children": tree.children}
    everything |= {f"{side}_line": getattr(tree, side) for side in _LINES}
    if tree.curve is not None:
        everything |= {"curve_first": tree.curve.first, "curve_last": tree.curve.last}
    pq.write_table(plain(numbers(everything)), path)


def _csv(columns: Facts) -> Callable[[Path], None]:
    return lambda path: write_csv(numbers(columns), path)


def _geoparquet(release: Release, finest: Facts) -> Callable[[Path], None]:
    return lambda path: _frame(release, finest).to_parquet(path, index=False)


def _frame(release: Release, finest: Facts) -> geopandas.GeoDataFrame:
    """The finest partitions, with their rectangles in the domain's CRS."""
    shapes = release.domain.boxes(release.tree.rectangles(release.tree.leaves))
    return geopandas.GeoDataFrame(plain(numbers(finest)).to_pandas(), geometry=shapes, crs=release.domain.crs)


def _geojson(release: Release, finest: Facts) -> Member | LeftOut:
    name, domain, leaves = "partitions.geojson", release.domain, release.tree.leaves
    west, south, east, north = domain.coordinates(release.tree.rectangles(leaves)).T
    crs = None if domain.crs is None else CRS(domain.crs)
    reason = off_the_globe(crs, np.concatenate([west, east, west, east]), np.concatenate([south, south, north, north]))
    if reason is not None:
        return LeftOut(name=name, reason=reason)

    def write(path: Path) -> None:
        frame = _frame(release, finest)
        if not domain.is_geographic:  # edges that are straight in the domain are curves in degrees
            longest = max(domain.bounds[2] - domain.bounds[0], domain.bounds[3] - domain.bounds[1]) / _EDGE
            frame.geometry = shapely.segmentize(frame.geometry.to_numpy(), longest)
        write_geojson(frame, path)

    return Member(name=name, format=GEOJSON, about=f"{_MAIN}. In EPSG:4326.", write=write)


def finest_counts(release: Release) -> pa.Table:
    """The columns of the main table that the release itself has."""
    leaves = release.tree.leaves
    level = release.tree.depth[leaves].astype(np.int32)
    return numbers({"partition_id": leaves, "level": level, "count_noisy": release.noisy[leaves], "count": release.count[leaves]})


def point_release(contents: Facts, table: pa.Table, receipt: Receipt, steps: tuple[str, ...]) -> Release:
    """The release that was written.

    Raises:
        InputError: the table is not that of a tree.
    """
    columns = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    domain = Domain(**contents["domain"] | {"bounds": tuple(contents["domain"]["bounds"])})
    own = {own: np.array(columns[name], np.float64) for name, own in _OWN.items() if name in columns}
    return Release(
        mechanism=contents["mechanism"],
        settings=settings_of(contents),
        domain=domain,
        tree=_tree(contents["tree"], columns, domain.side),
        spread=_spread(contents["spread"], columns),
        receipt=receipt,
        steps=steps,
        simulation=False,
        height=contents["height"],
        approximate=contents["approximate"],
        inside=contents["inside"],
        **own,
    )


def _spread(facts: Facts, columns: Facts) -> Spread | WaveletSpread | None:
    if facts["errors"] == INDEPENDENT:
        return None
    if facts["errors"] == WAVELET:
        return WaveletSpread(order=facts["order"], variance=facts["variance"], width=facts["width"])
    share, slack = (np.array(columns[name], np.float64) for name in ("share", "slack"))
    return Spread(share=share, slack=slack, root=facts["root_variance"])


def _tree(facts: Facts, columns: Facts, side: int) -> Tree:
    level, sides = columns["level"], {name: np.array(columns[f"{name}_line"], np.int32) for name in _LINES}
    arrays = {name: np.array(columns[name], np.int32) for name in ("parent", "first_child", "children")}
    _check(level, arrays, sides, side)
    starts = (0, *np.cumsum(np.bincount(level)).tolist())
    curve = None
    if facts["shape"] == CURVE:
        first, last = (np.array(columns[name], np.int64) for name in ("curve_first", "curve_last"))
        curve = Curve(order=facts["curve_order"], first=first, last=last)
    lines = None
    if facts["shape"] == GRID:
        bottom = slice(starts[-2], starts[-1])
        lines = tuple(np.unique(np.concatenate([sides[a][bottom], sides[b][bottom]])) for a, b in (("west", "east"), ("south", "north")))
    return Tree(**arrays, **sides, starts=starts, lines=lines, curve=curve)  # type: ignore[arg-type]


def _check(level: NDArray[Any], arrays: dict[str, NDArray[np.int32]], sides: dict[str, NDArray[np.int32]], lattice: int) -> None:
    """Raise unless the nodes are a tree in breadth-first order, each inside its parent."""
    parent, first, children = arrays["parent"], arrays["first_child"], arrays["children"]
    nodes, above = len(parent), parent[1:]
    whole = nodes > 0 and parent[0] == -1 and level[0] == 0 and [int(sides[name][0]) for name in _LINES] == [0, 0, lattice, lattice]
    sound = whole and (np.diff(above) >= 0).all() and (above >= 0).all() and (above < np.arange(1, nodes)).all()
    sound = sound and (level[1:] == level[above] + 1).all() and (children == np.bincount(above, minlength=nodes)).all()
    sound = sound and (first[children > 0] == np.flatnonzero(np.diff(above, prepend=-1)) + 1).all()
    sound = sound and (sides["west"] < sides["east"]).all() and (sides["south"] < sides["north"]).all()
    sound = sound and all((sides[name][1:] >= sides[name][above]).all() for name in ("west", "south"))
    sound = sound and all((sides[name][1:] <= sides[name][above]).all() for name in ("east", "north"))
    if not sound:
        raise InputError("The partitions of the release are no tree of nested rectangles: its table was not written by dpviz.")
