"""The tables of a release of areas as files: regions with counts in Parquet, GeoJSON, GeoPackage and CSV, and how they are read back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely

from dpviz.errors import InputError
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import Receipt
from dpviz.release.area_release import AreaRelease
from dpviz.release.manifest import read_settings
from dpviz.release.reliability import grade_reliability
from dpviz.release.tables import (
    CSV,
    ESCAPED_NOTE,
    GEOJSON,
    GEOPACKAGE,
    GEOPARQUET,
    LEVELS,
    NO_GEOMETRY,
    PARQUET,
    REGIONS,
    Columns,
    Facts,
    LeftOut,
    Member,
    Plan,
    decode_dictionaries,
    explain_missing_degrees,
    find_shapes,
    format_level,
    make_constant_column,
    make_table,
    plan_regions,
    read_grid,
    rebuild_regions,
    write_csv,
    write_geojson,
    write_geopackage,
)
from dpviz.space.regions import Regions

AREAS_TABLE = "areas.parquet"
WHOLE = "whole"
_NUMBERS = ("count", "count_noisy", "count_unbiased", "ci_low", "ci_high", "all_low", "all_high", "rate", "rate_low", "rate_high")
"""Columns that are missing for a hidden region."""
_LEVELS_ABOUT = (
    "The regions of all levels; level 0 is the whole. Each level counts all records, so add up a single level. With the regions beside it,"
    " dpviz can read the whole release back from this file"
)
_HIDDEN_NOTE = " Numbers of regions under the public threshold are missing."
_HIDDEN_STORED = " It also has the noisy numbers that are hidden elsewhere: they cost no privacy, and sums need them."


def plan_area_files(release: AreaRelease, formats: tuple[str, ...]) -> Plan:
    """Plan the files of a release of areas.

    Args:
        release: of areas.
        formats: some of `FORMATS`.

    Returns:
        For GeoParquet the finest regions, all levels, and the regions; for GeoJSON and CSV one file per level; for GeoPackage one layer.
    """
    plan: Plan = []
    if "geoparquet" in formats:
        plan += [_plan_main_table(release), _plan_levels(release), plan_regions(REGIONS, release.regions, "of the release")]
    if "geojson" in formats:
        plan += [_plan_geojson(release, level) for level in range(1, release.regions.depth + 1)]
    if "geopackage" in formats:
        plan.append(_plan_geopackage(release))
    if "csv" in formats:
        plan += [_plan_csv(release, level) for level in range(release.regions.depth + 1)]
    return plan


def _make_columns(release: AreaRelease, level: int) -> Columns:
    """Make the columns of a level's counts and their errors, with one row per region; those of hidden regions, too."""
    nodes = release.nodes(level)
    return {
        **release.node_columns(nodes),
        "count_unbiased": release.centre[nodes],
        "reliability": grade_reliability(release.count[nodes], release.node_stddev[nodes]),
        **_make_rates(release, level),
    }


def _make_rates(release: AreaRelease, level: int) -> Columns:
    """Make the columns of a level's rates with their intervals; none if the regions have no denominator."""
    if release.regions.denominator is None:
        return {}
    rates = release.rates(level)
    columns = {"denominator": "denominator", "rate": "rate", "rate_low": "ci_low", "rate_high": "ci_high"}
    return {name: rates[column].to_numpy() for name, column in columns.items()}


def _make_level_table(release: AreaRelease, level: int) -> pa.Table:
    """Make a table of the regions of a level, in their order, without the numbers of hidden regions.

    Args:
        release: of areas.
        level: 0 to g.
    """
    columns, regions = _make_columns(release, level), release.regions
    if release.hidden is not None and level == regions.depth:
        columns |= {name: np.where(release.hidden, np.nan, columns[name]) for name in _NUMBERS if name in columns}
        shown = pc.cast(columns["reliability"], pa.string())
        columns["reliability"] = pc.if_else(pa.array(release.hidden), pa.scalar(None, pa.string()), shown)
    texts = {"region_id": regions.ids_of(level), "name": regions.names_of(level)}
    if level:
        texts["parent_id"] = regions.ids_of(level - 1)[regions.parent[level - 1]]
    named = {name: pa.array(values.tolist(), pa.string()) for name, values in texts.items()}
    named.setdefault("parent_id", pa.nulls(1, pa.string()))
    place = {
        "level": np.full(regions.size(level), level, np.int32),
        "level_name": make_constant_column(_name_level(regions, level), regions.size(level)),
    }
    return make_table(named | place | columns | {"status": make_constant_column(release.status, regions.size(level))})


def _name_level(regions: Regions, level: int) -> str:
    return regions.levels[level - 1] if level else WHOLE


def _plan_main_table(release: AreaRelease) -> Member:
    """Plan the table of the finest regions, with their shapes if they have some."""
    level = release.regions.depth
    shapes = find_shapes(release.regions, level)
    about = f"The finest regions, {release.regions.levels[-1]}, each record in one of them, so counts may be added up."
    about += _describe_hidden(release)

    def write(path: Path) -> None:
        table = decode_dictionaries(_make_level_table(release, level))
        if shapes is None:
            pq.write_table(table, path)
        else:
            geopandas.GeoDataFrame(table.to_pandas(), geometry=shapes.to_numpy(), crs=shapes.crs).to_parquet(path, index=False)

    return Member(name=AREAS_TABLE, format=PARQUET if shapes is None else GEOPARQUET, about=about, write=write)


def _describe_hidden(release: AreaRelease) -> str:
    return "" if release.hidden is None else _HIDDEN_NOTE


def _plan_levels(release: AreaRelease) -> Member:
    about = f"{_LEVELS_ABOUT}.{'' if release.hidden is None else _HIDDEN_STORED}"
    return Member(name=LEVELS, format=PARQUET, about=about, write=lambda path: _write_levels(release, path))


def _write_levels(release: AreaRelease, path: Path) -> None:
    """Write the table of all levels, with all that is needed to read the release back; levels follow each other."""
    regions, parts = release.regions, []
    for level in range(regions.depth + 1):
        size = regions.size(level)
        columns = {"level": np.full(size, level, np.int32), "region_id": pa.array(regions.ids_of(level), pa.string())}
        columns |= _make_columns(release, level)
        nodes = regions.hierarchy.at_depth(level)
        columns["share"], columns["slack"] = (
            part[nodes] if level else np.array([np.nan]) for part in (release.spread.share, release.spread.slack)
        )
        if release.hidden is not None:
            columns["hidden"] = release.hidden if level == regions.depth else np.zeros(size, np.bool_)
        parts.append(decode_dictionaries(make_table(columns | {"status": make_constant_column(release.status, size)})))
    pq.write_table(pa.concat_tables(parts), path)


def _plan_geojson(release: AreaRelease, level: int) -> Member | LeftOut:
    """Plan a file of the regions of a level as shapes with their counts."""
    regions = release.regions
    name = f"areas_{format_level(regions, level)}.geojson"
    shapes = find_shapes(regions, level)
    if shapes is None:
        return LeftOut(name=name, reason=NO_GEOMETRY)
    reason = explain_missing_degrees(shapes.crs, *shapely.get_coordinates(shapes.to_numpy()).T)
    if reason is not None:
        return LeftOut(name=name, reason=reason)

    def write(path: Path) -> None:
        write_geojson(_make_level_frame(release, level), path)

    about = (
        f"Regions of level {level}, {regions.levels[level - 1]}, with their counts, in EPSG:4326.{_describe_level_hidden(release, level)}"
    )
    return Member(name=name, format=GEOJSON, about=about, write=write)


def _make_level_frame(release: AreaRelease, level: int) -> geopandas.GeoDataFrame:
    """Make a GeoDataFrame of the regions of a level that have shapes."""
    shapes = find_shapes(release.regions, level)
    assert shapes is not None  # noqa: S101  (for the type checker: callers have looked)
    table = decode_dictionaries(_make_level_table(release, level)).to_pandas()
    return geopandas.GeoDataFrame(table, geometry=shapes.to_numpy(), crs=shapes.crs)


def _plan_geopackage(release: AreaRelease) -> Member | LeftOut:
    """Plan a file of all levels that have shapes, one layer each."""
    regions = release.regions
    levels = [level for level in range(1, regions.depth + 1) if find_shapes(regions, level) is not None]
    if not levels:
        return LeftOut(name="areas.gpkg", reason=NO_GEOMETRY)
    layers = {f"areas_{format_level(regions, level)}": partial(_make_level_frame, release, level) for level in levels}
    about = f"Layers: {', '.join(layers)}. Regions with their counts; add up a single layer.{_describe_hidden(release)}"
    return Member(name="areas.gpkg", format=GEOPACKAGE, about=about, write=lambda path: write_geopackage(layers, path))


def _plan_csv(release: AreaRelease, level: int) -> Member:
    regions = release.regions
    name = f"areas_{format_level(regions, level) if level else f'0_{WHOLE}'}.csv"
    what = f"Regions of level {level}, {regions.levels[level - 1]}, with their counts." if level else "The whole with its count."
    about = f"{what}{_describe_level_hidden(release, level)}{ESCAPED_NOTE}"
    return Member(name=name, format=CSV, about=about, write=lambda path: write_csv(_make_level_table(release, level), path))


def _describe_level_hidden(release: AreaRelease, level: int) -> str:
    return _describe_hidden(release) if level == release.regions.depth else ""


def select_finest_regions(release: AreaRelease) -> pa.Table:
    """Make those columns of the main table of areas that are not computed from others, to compare them with a table that was read."""
    return decode_dictionaries(_make_level_table(release, release.regions.depth)).select(
        ["region_id", "count", "count_noisy", "count_unbiased"]
    )


def rebuild_area_release(contents: Facts, tables: dict[str, Any], receipt: Receipt, steps: tuple[str, ...]) -> AreaRelease:
    """Rebuild a release of areas from its tables.

    Args:
        contents: of the manifest.
        tables: the Parquet tables by name; the table of regions is a GeoDataFrame.
        receipt: of the manifest.
        steps: descriptions of the post-processing steps.

    Raises:
        InputError: the table of all levels does not have one row for each region, in their order.
    """
    regions = rebuild_regions(contents["regions"], tables[f"{REGIONS}.parquet"], read_grid(contents["grid"]))
    table = tables[LEVELS]
    parts = _split_levels(table, regions)
    if "denominator" in contents:
        numbers = pd.Series(_read_numbers(parts[-1:], "denominator")[0], index=regions.ids[-1], name=contents["denominator"]["column"])
        regions = replace(regions, denominator=numbers)
    variances = [np.inf if facts["variance"] is None else float(facts["variance"]) for facts in contents["levels"]]
    root = float(contents["spread"]["root_variance"])
    columns = {name: np.concatenate(_read_numbers(parts, name)) for name in ("count_noisy", "count_unbiased", "count", "share", "slack")}
    return AreaRelease(
        mechanism=contents["mechanism"],
        settings=read_settings(contents),
        regions=regions,
        noisy=columns["count_noisy"],
        noise_variance=np.repeat(
            [np.inf if variance is None else float(variance) for variance in variances], np.diff(regions.hierarchy.starts)
        ),
        unbiased=columns["count_unbiased"],
        count=columns["count"],
        spread=Spread(share=np.r_[1.0, columns["share"][1:]], slack=np.r_[root, columns["slack"][1:]], root=root),
        receipt=receipt,
        steps=steps,
        simulation=False,
        approximate=contents["approximate"],
        hidden=np.array(parts[-1].column("hidden"), np.bool_) if contents["hidden"] else None,
    )


def _split_levels(table: pa.Table, regions: Regions) -> list[pa.Table]:
    """Cut the table of all levels into one table per level."""
    sizes = [regions.size(level) for level in range(regions.depth + 1)]
    ids = np.concatenate([regions.ids_of(level) for level in range(regions.depth + 1)])
    levels = np.repeat(np.arange(regions.depth + 1), sizes)
    same_rows = len(table) == len(ids) and np.array_equal(table.column("level").to_numpy(), levels)
    if not same_rows or table.column("region_id").to_pylist() != ids.tolist():
        raise InputError(f"The release's {LEVELS} does not have one row for each region.")
    return [table.slice(start, end - start) for start, end in pairwise(np.cumsum([0, *sizes]).tolist())]


def _read_numbers(parts: list[pa.Table], name: str) -> tuple[Any, ...]:
    """Read a column of each level; missing numbers become NaN."""
    return tuple(np.array(part.column(name).to_numpy(zero_copy_only=False), np.float64) for part in parts)
