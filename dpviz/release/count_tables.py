"""The tables of a release of points or areas as files: nodes with counts in Parquet, GeoJSON, GeoPackage and CSV, and how they are read."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.errors import InputError
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import Receipt
from dpviz.privacy.wavelet import WaveletSpread
from dpviz.release.area_release import AreaRelease
from dpviz.release.columns import describe_area_columns, describe_point_columns
from dpviz.release.cross_release import CrossRelease
from dpviz.release.cross_tables import BY_SLOT, CATEGORIES, plan_cross_files, rebuild_cross_release
from dpviz.release.facts import AreaContents, IndependentErrors, LeastSquaresErrors, Partitions, PointContents, ProductErrors, WaveletErrors
from dpviz.release.manifest import describe_area_contents, describe_point_contents, read_domain, read_grid
from dpviz.release.point_release import PointRelease
from dpviz.release.tables import (
    AREAS_TABLE,
    ESCAPED_NOTE,
    LEVELS,
    REGIONS,
    TABLE,
    Columns,
    Layout,
    Plan,
    add_reliability,
    decode_dictionaries,
    find_shapes,
    format_level,
    make_constant_column,
    make_table,
    plan_csv,
    plan_geojson,
    plan_geopackage,
    plan_parquet,
    plan_regions,
    read_base,
    rebuild_regions,
)
from dpviz.space.hilbert import Curve
from dpviz.space.regions import Regions
from dpviz.space.tree import Tree

WHOLE = "whole"
_PARTITIONS = "partitions"
_FINEST_PARTITIONS = "The finest partitions, each record in one of them, so counts may be added up"
_ALL_PARTITIONS = (
    "The partitions of all levels; level 0 is the whole domain. Each level counts all records, so add up a single level: for level k the"
    " rows with level = k, and those with leaf = true and a smaller level"
)
_ALL_REGIONS = (
    "The regions of all levels; level 0 is the whole. Each level counts all records, so add up a single level. With the regions beside it,"
    " dpviz can read the whole release back from this file."
)
_HIDDEN_NOTE = " Numbers of regions under the public threshold are missing."
_HIDDEN_STORED = " It also has the noisy numbers that are hidden elsewhere: they cost no privacy, and sums need them."
_NUMBERS = ("count", "count_noisy", "count_unbiased", "ci_low", "ci_high", "all_low", "all_high", "rate", "rate_low", "rate_high")
"""Columns that are missing for a hidden region."""
_STORED = ("share", "slack", "hidden")
"""Columns of areas that only the table of all levels has."""
_EDGES_PER_SIDE = 64  # at least so many straight edges along a side of the domain, which may be a curve in degrees
_SIDES = ("west", "south", "east", "north")
_ATTRIBUTE_OF_COLUMN = {
    "count_noisy": "noisy",
    "noise_variance": "noise_variance",
    "count": "count",
    "count_unbiased": "unbiased",
    "count_again": "second_measurement",
}


def plan_point_files(release: PointRelease, formats: tuple[str, ...]) -> Plan:
    """Plan the files of a release of points.

    Args:
        release: of points.
        formats: some of `FORMATS`.

    Returns:
        For each format a file of the finest partitions, and for GeoParquet and CSV another one of all levels.
    """
    plan: Plan = []
    domain, tree = release.domain, release.tree
    columns = _make_partition_columns(release)
    nodes = make_table(columns)
    finest = nodes.take(pa.array(tree.leaves)).drop(["leaf"])
    main = finest.drop(list(_SIDES))
    shapes = geopandas.GeoSeries(domain.boxes(tree.rectangles(tree.leaves)), crs=domain.crs)
    if "geoparquet" in formats:
        about = f"{_ALL_PARTITIONS}. With their places in the tree, so that dpviz can read the whole release back from this file."
        plan.append(plan_parquet(TABLE, f"{_FINEST_PARTITIONS}. In the domain's CRS.", lambda: main, shapes))
        plan.append(plan_parquet(LEVELS, about, lambda: make_table(columns | _make_stored_columns(release))))
    if "geojson" in formats:
        west, south, east, north = domain.bounds  # edges that are straight in the domain are curves in degrees
        outlines = shapes if domain.is_geographic else shapes.segmentize(max(east - west, north - south) / _EDGES_PER_SIDE)
        plan.append(plan_geojson(f"{_PARTITIONS}.geojson", f"{_FINEST_PARTITIONS}. In EPSG:4326.", lambda: main, outlines))
    if "geopackage" in formats:
        about = f"{_FINEST_PARTITIONS}: layer {_PARTITIONS}, in the domain's CRS."
        plan.append(plan_geopackage(f"{_PARTITIONS}.gpkg", about, {_PARTITIONS: (lambda: main, shapes)}))
    if "csv" in formats:
        bounds = "With bounds in the domain's CRS."
        plan.append(plan_csv(f"{_PARTITIONS}.csv", f"{_FINEST_PARTITIONS}. {bounds}", lambda: finest))
        plan.append(plan_csv("levels.csv", f"{_ALL_PARTITIONS}. {bounds}", lambda: nodes))
    return plan


def plan_area_files(release: AreaRelease, formats: tuple[str, ...]) -> Plan:
    """Plan the files of a release of areas.

    Args:
        release: of areas.
        formats: some of `FORMATS`.

    Returns:
        For GeoParquet the finest regions, all levels, and the regions; for GeoJSON and CSV one file per level; for GeoPackage one layer.
    """
    plan: Plan = []
    regions, nodes = release.regions, make_table(_make_region_columns(release))
    levels = range(1, regions.depth + 1)
    names = [f"0_{WHOLE}", *(format_level(regions, level) for level in levels)]
    notes = ["" for _ in levels] + ["" if release.hidden is None else _HIDDEN_NOTE]
    shapes = {level: None if formats == ("csv",) else find_shapes(regions, level) for level in levels}
    rows = [partial(_select_level, release, nodes, level) for level in range(regions.depth + 1)]
    if "geoparquet" in formats:
        about = f"The finest regions, {regions.levels[-1]}, each record in one of them, so counts may be added up.{notes[-1]}"
        plan.append(plan_parquet(AREAS_TABLE, about, rows[-1], shapes[regions.depth]))
        about = f"{_ALL_REGIONS}{'' if release.hidden is None else _HIDDEN_STORED}"
        plan.append(plan_parquet(LEVELS, about, lambda: nodes.drop(["name", "parent_id", "level_name"])))
        plan.append(plan_regions(REGIONS, regions, "of the release"))
    what = ["The whole with its count", *(f"Regions of level {level}, {regions.levels[level - 1]}, with their counts" for level in levels)]
    if "geojson" in formats:
        for level in levels:
            about = f"{what[level]}, in EPSG:4326.{notes[level]}"
            plan.append(plan_geojson(f"areas_{names[level]}.geojson", about, rows[level], shapes[level]))
    if "geopackage" in formats:
        layers = {f"areas_{names[level]}": (rows[level], shape) for level, shape in shapes.items() if shape is not None}
        about = f"Layers: {', '.join(layers)}. Regions with their counts; add up a single layer.{notes[-1]}"
        plan.append(plan_geopackage("areas.gpkg", about, layers))
    if "csv" in formats:
        for level, table in enumerate(rows):
            plan.append(plan_csv(f"areas_{names[level]}.csv", f"{what[level]}.{notes[level]}{ESCAPED_NOTE}", table))
    return [*plan, *plan_cross_files(release, formats)] if isinstance(release, CrossRelease) else plan


def _make_partition_columns(release: PointRelease) -> Columns:
    """Make the columns that files for people have, with one row per node of the tree."""
    tree = release.tree
    return {
        "partition_id": np.arange(len(tree)),
        "level": tree.depth.astype(np.int32),
        **add_reliability(release.node_columns(slice(None))),
        "status": make_constant_column(release.status, len(tree)),
        "leaf": tree.children == 0,
        **dict(zip(_SIDES, np.ascontiguousarray(release.domain.coordinates(tree.rectangles(np.arange(len(tree)))).T), strict=True)),
    }


def _make_stored_columns(release: PointRelease) -> Columns:
    """Make the further columns that are needed to read the release back."""
    tree, spread = release.tree, release.spread
    columns: Columns = {
        "noise_variance": release.noise_variance,
        "count_unbiased": release.unbiased,
        "count_again": release.second_measurement,
    }
    if isinstance(spread, Spread):
        columns |= {"share": spread.share, "slack": spread.slack}
    columns |= {"parent": tree.parent, "first_child": tree.first_child, "children": tree.children}
    columns |= {f"{side}_line": getattr(tree, side) for side in _SIDES}
    if tree.curve is not None:
        columns |= {"curve_first": tree.curve.first, "curve_last": tree.curve.last}
    return {name: values for name, values in columns.items() if values is not None}


def _make_region_columns(release: AreaRelease) -> Columns:
    """Make the columns of all files, with one row per region, those of hidden regions, too; levels follow each other."""
    regions, hierarchy = release.regions, release.hierarchy
    levels = range(regions.depth + 1)
    ids = np.concatenate([regions.ids_of(level) for level in levels])
    counts = add_reliability(release.node_columns(slice(None)))
    columns = {
        "level": hierarchy.depth.astype(np.int32),
        "region_id": pa.array(ids, pa.string()),
        "name": pa.array(np.concatenate([regions.names_of(level) for level in levels]), pa.string()),
        "parent_id": pa.array([None, *ids[hierarchy.parent[1:]]], pa.string()),
        "level_name": pa.array([WHOLE, *regions.levels]).take(pa.array(hierarchy.depth)),
        "count": counts.pop("count"),
        "count_noisy": counts.pop("count_noisy"),
        "count_unbiased": release.centre,
        **counts,
    }
    if regions.denominator is not None:
        rates = pd.concat([release.rates(level) for level in levels])
        names = {"denominator": "denominator", "rate": "rate", "rate_low": "ci_low", "rate_high": "ci_high"}
        columns |= {name: rates[column].to_numpy() for name, column in names.items()}
    if not isinstance(release, CrossRelease):
        columns |= {"share": np.r_[np.nan, release.spread.share[1:]], "slack": np.r_[np.nan, release.spread.slack[1:]]}
    if release.hidden is not None:
        columns["hidden"] = np.r_[np.zeros(hierarchy.starts[-2], np.bool_), release.hidden]
    return columns | {"status": make_constant_column(release.status, len(ids))}


def _select_level(release: AreaRelease, nodes: pa.Table, level: int) -> pa.Table:
    """Select the rows and columns of a level from the table of all nodes, without the numbers of hidden regions."""
    starts = release.hierarchy.starts
    table = nodes.slice(starts[level], starts[level + 1] - starts[level])
    first = ["region_id", "name", "parent_id", "level", "level_name"]
    table = table.select([*first, *(name for name in table.column_names if name not in (*first, *_STORED))])
    if release.hidden is None or level < release.regions.depth:
        return table
    hidden = pa.array(release.hidden)
    for name in (*_NUMBERS, "reliability"):
        if name in table.column_names:
            at = table.column_names.index(name)
            plain = decode_dictionaries(table.select([name])).column(0)
            table = table.set_column(at, name, pc.if_else(hidden, pa.scalar(None, plain.type), plain))
    return table


def select_finest_partitions(release: PointRelease) -> pa.Table:
    """Make those columns of the main table that are not computed from others, to compare them with a table that was read."""
    main = make_table(_make_partition_columns(release)).take(pa.array(release.tree.leaves))
    return main.select(["partition_id", "level", "count_noisy", "count"])


def select_finest_regions(release: AreaRelease) -> pa.Table:
    """Make those columns of the main table that are not computed from others, to compare them with a table that was read."""
    main = _select_level(release, make_table(_make_region_columns(release)), release.regions.depth)
    return main.select(["region_id", "count", "count_noisy", "count_unbiased"])


def rebuild_point_release(contents: PointContents, tables: dict[str, Any], receipt: Receipt, steps: tuple[str, ...]) -> PointRelease:
    """Rebuild a release of points from its tables.

    Args:
        contents: of the manifest.
        tables: the Parquet tables by name.
        receipt: of the manifest.
        steps: descriptions of the post-processing steps.

    Raises:
        InputError: the table of all levels does not describe a tree.
    """
    columns, counts = _read_counts(contents, tables)
    domain = read_domain(contents.domain)
    return PointRelease(
        domain=domain,
        tree=_read_tree(contents.tree, columns, domain.side),
        height=contents.height,
        fill=contents.inside,
        nonnegative=bool(contents.nonnegative),
        **read_base(contents, receipt, steps) | counts,
    )


def rebuild_area_release(contents: AreaContents, tables: dict[str, Any], receipt: Receipt, steps: tuple[str, ...]) -> AreaRelease:
    """Rebuild a release of areas from its tables.

    Args:
        contents: of the manifest.
        tables: the Parquet tables by name; the table of regions is a GeoDataFrame.
        receipt: of the manifest.
        steps: descriptions of the post-processing steps.

    Raises:
        InputError: the table of all levels does not have one row for each region, in their order.
    """
    columns, counts = _read_counts(contents, tables)
    regions = _read_regions(contents, tables[f"{REGIONS}.parquet"], columns)
    starts = regions.hierarchy.starts
    variances = [np.inf if level.variance is None else level.variance for level in contents.levels]
    hidden = np.array(columns["hidden"][starts[-2] :], np.bool_) if contents.hidden else None
    counts["noise_variance"] = np.repeat(variances, np.diff(starts))
    fields = {"regions": regions, "hidden": hidden, **read_base(contents, receipt, steps), **counts}
    return AreaRelease(**fields) if contents.slots is None else rebuild_cross_release(contents.slots, fields, tables)


def _read_counts(contents: PointContents | AreaContents, tables: dict[str, Any]) -> tuple[Columns, dict[str, Any]]:
    """Read the columns of the table of all levels, and from them the attributes that releases of points and of areas have."""
    table = tables[LEVELS]
    columns = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    counts = {attribute: np.array(columns[name], np.float64) for name, attribute in _ATTRIBUTE_OF_COLUMN.items() if name in columns}
    return columns, counts | {"spread": _read_spread(contents.spread, columns)}


def _read_spread(
    errors: IndependentErrors | LeastSquaresErrors | WaveletErrors | ProductErrors, columns: Columns
) -> Spread | WaveletSpread | None:
    if isinstance(errors, IndependentErrors | ProductErrors):
        return None
    if isinstance(errors, WaveletErrors):
        return WaveletSpread(order=errors.order, variance=errors.variance, width=errors.width)
    share, slack = (np.array(columns[name], np.float64) for name in ("share", "slack"))
    root = errors.root_variance
    if np.isnan(share[0]):  # tables of areas leave the whole out
        share[0], slack[0] = 1.0, root
    return Spread(share=share, slack=slack, root=root)


def _read_regions(contents: AreaContents, frame: geopandas.GeoDataFrame, columns: Columns) -> Regions:
    """Rebuild the regions; raise an error unless the table of all levels has one row for each."""
    regions = rebuild_regions(contents.regions, frame, read_grid(contents.grid))
    ids = np.concatenate([regions.ids_of(level) for level in range(regions.depth + 1)])
    if not np.array_equal(columns["level"], regions.hierarchy.depth) or columns["region_id"].tolist() != ids.tolist():
        raise InputError(f"The release's {LEVELS} does not have one row for each region.")
    if contents.denominator is None:
        return regions
    numbers = np.array(columns["denominator"][regions.hierarchy.starts[-2] :], np.float64)
    return replace(regions, denominator=pd.Series(numbers, index=regions.ids[-1], name=contents.denominator.column))


def _read_tree(stated: Partitions, columns: Columns, lattice_side: int) -> Tree:
    level, edges = columns["level"], {name: np.array(columns[f"{name}_line"], np.int32) for name in _SIDES}
    arrays = {name: np.array(columns[name], np.int32) for name in ("parent", "first_child", "children")}
    _check_tree(level, arrays, edges, lattice_side)
    starts = (0, *np.cumsum(np.bincount(level)).tolist())
    curve = None
    if stated.curve_order is not None:
        first, last = (np.array(columns[name], np.int64) for name in ("curve_first", "curve_last"))
        curve = Curve(order=stated.curve_order, first=first, last=last)
    lines = None
    if stated.shape == "one grid":
        bottom = slice(starts[-2], starts[-1])
        lines = tuple(np.unique(np.concatenate([edges[a][bottom], edges[b][bottom]])) for a, b in (("west", "east"), ("south", "north")))
    return Tree(**arrays, **edges, starts=starts, lines=lines, curve=curve)  # type: ignore[arg-type]


def _check_tree(level: NDArray[Any], arrays: dict[str, NDArray[np.int32]], edges: dict[str, NDArray[np.int32]], lattice_side: int) -> None:
    """Raise an error unless the nodes are a tree in breadth-first order, each inside its parent."""
    parent, first, children = arrays["parent"], arrays["first_child"], arrays["children"]
    nodes, above = len(parent), parent[1:]
    root_edges = [int(edges[name][0]) for name in _SIDES] if nodes else []
    root_is_domain = root_edges == [0, 0, lattice_side, lattice_side] and parent[0] == -1 and level[0] == 0
    sound = root_is_domain and (np.diff(above) >= 0).all() and (above >= 0).all() and (above < np.arange(1, nodes)).all()
    sound = sound and (level[1:] == level[above] + 1).all() and (children == np.bincount(above, minlength=nodes)).all()
    sound = sound and (first[children > 0] == np.flatnonzero(np.diff(above, prepend=-1)) + 1).all()
    sound = sound and (edges["west"] < edges["east"]).all() and (edges["south"] < edges["north"]).all()
    sound = sound and all((edges[name][1:] >= edges[name][above]).all() for name in ("west", "south"))
    sound = sound and all((edges[name][1:] <= edges[name][above]).all() for name in ("east", "north"))
    if not sound:
        raise InputError("The partitions of the release are no tree of nested rectangles: its table was not written by dpviz.")


POINT_LAYOUT = Layout(
    contents=PointContents,
    describe=describe_point_contents,
    columns=describe_point_columns,
    main=TABLE,
    plan=plan_point_files,
    tables=lambda _: [LEVELS],
    rebuild=rebuild_point_release,
    finest=select_finest_partitions,
)
AREA_LAYOUT = Layout(
    contents=AreaContents,
    describe=describe_area_contents,
    columns=describe_area_columns,
    main=AREAS_TABLE,
    plan=plan_area_files,
    tables=lambda contents: [LEVELS, f"{REGIONS}.parquet", *([] if contents.slots is None else [BY_SLOT, CATEGORIES])],
    rebuild=rebuild_area_release,
    finest=select_finest_regions,
)
