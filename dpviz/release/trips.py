"""Files of a release of trips: every stage, the regions, and what flow maps open; and back again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from dpviz.errors import DomainError, InputError
from dpviz.privacy.receipt import Receipt
from dpviz.release.contents import settings_of
from dpviz.release.flow_release import FlowRelease, StageCounts, interval
from dpviz.release.members import (
    CSV,
    GEOJSON,
    GEOPARQUET,
    OFF_THE_GLOBE,
    PARQUET,
    LeftOut,
    Member,
    Plan,
    neutral,
    numbers,
    off_the_globe,
    strings,
    write_csv,
    write_geojson,
)
from dpviz.release.pair_sums import PairSums
from dpviz.release.utility import reliability
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import ROOT, Places, Regions, Texts

Facts = dict[str, Any]

FLOWS, ACROSS = "flows.parquet", "across.parquet"
REGIONS, ORIGINS, DESTINATIONS = "regions", "origins", "destinations"
NO_PLACES = "The regions have no geometry, so there is no place on the map for them."
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 24


def trip_files(release: FlowRelease, formats: tuple[str, ...]) -> Plan:
    """The files of a release of trips, in the formats asked for."""
    plan: Plan = []
    if "geoparquet" in formats:
        about = "Every stage of the tree of pairs, nonzero pairs only: with the regions, the whole release."
        plan.append(Member(name=FLOWS, format=PARQUET, about=about, write=lambda path: pq.write_table(_stages(release), path)))
        plan += [_regions_member(stem, regions) for stem, regions in _geographies(release.tree)]
        if release.across is not None:
            plan.append(_across_member(release, release.across))
    if "geojson" in formats:
        plan += [_geojson(release, stem) for stem, _ in _geographies(release.tree)]
    if "csv" in formats:
        for level in range(1, release.depth + 1):
            plan += [_flows_csv(release, level), _locations_csv(release, level)]
    return plan


def _geographies(tree: PairTree) -> list[tuple[str, Regions]]:
    if tree.destinations is tree.origins:
        return [(REGIONS, tree.origins)]
    return [(ORIGINS, tree.origins), (DESTINATIONS, tree.destinations)]


def _stages(release: FlowRelease) -> pa.Table:
    """Every stage, in order, each in its own order."""
    parts = []
    for stage, at in enumerate(release.stages):
        (origin_level, destination_level), size = release.tree.levels(stage), len(at.count)
        levels = {"stage": stage, "origin_level": origin_level, "destination_level": destination_level}
        columns = {name: np.full(size, value, np.int32) for name, value in levels.items()}
        columns |= {
            "origin": strings(release.tree.origins.ids_of(origin_level)).take(pa.array(at.origin)),
            "destination": strings(release.tree.destinations.ids_of(destination_level)).take(pa.array(at.destination)),
        }
        table = numbers(columns | _measures(at.count, at.noisy, release.stddev(stage)))
        place = table.schema.get_field_index("reliability")
        parts.append(table.set_column(place, "reliability", table.column(place).cast(pa.string())))
    return pa.concat_tables(parts)


def _measures(count: NDArray[np.int64], noisy: NDArray[np.int64], stddev: NDArray[np.float64]) -> Facts:
    low, high = interval(noisy, stddev)
    measures = {"count": count, "count_noisy": noisy, "stddev": stddev, "ci_low": low, "ci_high": high}
    return measures | {"reliability": reliability(count, stddev)}


def _regions_member(stem: str, regions: Regions) -> Member:
    about = f"Every region of every level, with its own shape where it has one: {stem} of the trips."
    return Member(name=f"{stem}.parquet", format=GEOPARQUET, about=about, write=lambda path: _write_regions(regions, path))


def _write_regions(regions: Regions, path: Path) -> None:
    sizes = [len(ids) for ids in regions.ids]
    known = [shape for shape in regions.geometry if shape is not None]
    shapes = [np.full(size, None) if own is None else own.to_numpy() for size, own in zip(sizes, regions.geometry, strict=True)]
    above = [regions.ids_of(level)[parent] for level, parent in enumerate(regions.parent)]
    columns = {
        "level": np.repeat(np.arange(1, regions.depth + 1, dtype=np.int32), sizes),
        "level_name": np.repeat(np.array(regions.levels, object), sizes),
        "region_id": np.concatenate(regions.ids),
        "parent_id": np.concatenate(above),
        "name": np.concatenate(regions.names),
    }
    for name in ("level_name", "region_id", "name"):
        strings(columns[name])
    frame = geopandas.GeoDataFrame(columns, geometry=np.concatenate(shapes), crs=known[0].crs if known else None)
    frame.to_parquet(path, index=False)


def _across_member(release: FlowRelease, across: PairSums) -> Member:
    depth = release.depth
    about = "Sums between origins of the last level and destinations one level up, where small pairs were left out of the list."

    def write(path: Path) -> None:
        origin = strings(release.tree.origins.ids_of(depth)).take(pa.array(across.origin))
        destination = strings(release.tree.destinations.ids_of(depth - 1)).take(pa.array(across.destination))
        pq.write_table(pa.table({"origin": origin, "destination": destination, "count": across.count}), path)

    return Member(name=ACROSS, format=PARQUET, about=about, write=write)


def _geojson(release: FlowRelease, stem: str) -> Member | LeftOut:
    """Regions of every level that have outlines, with the released trips that leave and arrive."""
    regions = release.tree.destinations if stem == DESTINATIONS else release.tree.origins
    name, sides = f"{stem}.geojson", {REGIONS: ("leaving", "arriving"), ORIGINS: ("leaving",), DESTINATIONS: ("arriving",)}[stem]
    shown = [level for level in range(1, regions.depth + 1) if _shapes(regions, level) is not None]
    if not shown:
        return LeftOut(name=name, reason=NO_PLACES)
    shapes = geopandas.GeoSeries(pd.concat([_shapes(regions, level) for level in shown], ignore_index=True))
    reason = off_the_globe(shapes.crs, *shapely.get_coordinates(shapes.to_numpy()).T)
    if reason is not None:
        return LeftOut(name=name, reason=reason)
    about = "Regions of every level that have shapes, in EPSG:4326, with the released trips that leave and arrive."

    def write(path: Path) -> None:
        tables = [pd.DataFrame(_region_columns(release, regions, level, sides)) for level in shown]
        write_geojson(geopandas.GeoDataFrame(pd.concat(tables, ignore_index=True), geometry=shapes), path)

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
    return columns


def _stem(release: FlowRelease, level: int) -> str:
    """A level's number, and its name as far as it can stand in a file's name."""
    slug = _SLUG.sub("_", release.tree.origins.levels[level - 1].lower()).strip("_")[:_LONGEST_SLUG]
    return f"{level}_{slug}" if slug else str(level)


def _flows_csv(release: FlowRelease, level: int) -> Member:
    def write(path: Path) -> None:
        at, tree = release.stages[2 * level], release.tree
        order = np.lexsort((at.destination, at.origin))
        ends = {
            "origin": strings(neutral(tree.origins.ids_of(level))).take(pa.array(at.origin[order])),
            "destination": strings(neutral(tree.destinations.ids_of(level))).take(pa.array(at.destination[order])),
        }
        measures = _measures(at.count[order], at.noisy[order], release.stddev(2 * level)[order])
        write_csv(numbers({"origin": ends["origin"], "dest": ends["destination"], **measures}), path)

    about = f"Trips, {release.tree.title(2 * level)}, nonzero pairs only; opens in flowmap.blue with the locations of the same level."
    return Member(name=f"flows_{_stem(release, level)}.csv", format=CSV, about=about, write=write)


def _locations_csv(release: FlowRelease, level: int) -> Member | LeftOut:
    name = f"locations_{_stem(release, level)}.csv"
    places = [_locations(regions, level) for _, regions in _geographies(release.tree)]
    missing = next((place for place in places if isinstance(place, str)), None)
    if missing is not None:
        return LeftOut(name=name, reason=missing)
    table = pd.concat([place for place in places if not isinstance(place, str)], ignore_index=True).drop_duplicates(ignore_index=True)
    if table["id"].duplicated().any():
        return LeftOut(name=name, reason="Origins and destinations use the same id for different places.")
    columns = {"id": strings(table["id"].tolist()), "lat": table["lat"], "lon": table["lon"], "name": strings(table["name"].tolist())}
    about = "A place inside each region, in EPSG:4326 (degrees)."
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


def trip_release(contents: Facts, tables: dict[str, Any], receipt: Receipt, steps: tuple[str, ...]) -> FlowRelease:
    """The release that was written.

    Args:
        contents: of the manifest.
        tables: the Parquet tables by name; regions as GeoDataFrames.
        receipt: that was stated.
        steps: of post-processing.
    """
    same = contents["destinations"] is None
    origins = _regions(contents["origins"], tables[f"{REGIONS if same else ORIGINS}.parquet"])
    destinations = origins if same else _regions(contents["destinations"], tables[f"{DESTINATIONS}.parquet"])
    tree = PairTree(origins=origins, destinations=destinations, first=contents["refined_first"])
    return FlowRelease(
        mechanism=contents["mechanism"],
        settings=settings_of(contents),
        tree=tree,
        stages=_read_stages(contents["stages"], tree, tables[FLOWS]),
        receipt=receipt,
        steps=steps,
        simulation=False,
        every_pair=contents["every_pair"],
        approximate=contents["approximate"],
        across=_read_across(tree, tables[ACROSS]) if contents["across"] else None,
    )


def _regions(levels: list[Facts], frame: geopandas.GeoDataFrame) -> Regions:
    parts = [frame[frame["level"] == level] for level in range(1, len(levels) + 1)]
    ids: list[Texts] = [part["region_id"].to_numpy(object) for part in parts]
    above = [np.array([ROOT], object), *ids]
    return Regions(
        levels=tuple(facts["level"] for facts in levels),
        ids=tuple(ids),
        parent=tuple(_places(place, part["parent_id"]) for place, part in zip(above, parts, strict=False)),
        names=tuple(part["name"].to_numpy(object) for part in parts),
        geometry=tuple(
            part.geometry.reset_index(drop=True) if facts["shapes"] else None for facts, part in zip(levels, parts, strict=True)
        ),
    )


def _places(ids: Texts, wanted: Any) -> Places:
    """(k,) places of texts among ids."""
    found = np.asarray(pd.Index(ids, dtype=object).get_indexer(pd.Index(wanted, dtype=object)), np.int32)
    if (found < 0).any():
        raise InputError("A table of the release names a region that is not in its table of regions.")
    return found


def _column_places(ids: Texts, column: pa.ChunkedArray) -> Places:
    """(k,) places of a column of texts among ids, looked up once per distinct text."""
    coded = pc.dictionary_encode(column.combine_chunks())
    known = _places(ids, coded.dictionary.to_pylist())
    return np.asarray(known[coded.indices.to_numpy(zero_copy_only=False)])


def _read_stages(stages: list[Facts], tree: PairTree, table: pa.Table) -> tuple[StageCounts, ...]:
    starts = np.searchsorted(table.column("stage").to_numpy(), np.arange(tree.height + 2)).tolist()
    return tuple(
        _read_stage(facts, tree, table.slice(starts[stage], starts[stage + 1] - starts[stage])) for stage, facts in enumerate(stages)
    )


def _read_stage(facts: Facts, tree: PairTree, table: pa.Table) -> StageCounts:
    origin_level, destination_level = tree.levels(facts["stage"])
    variance = facts["variance"]
    return StageCounts(
        origin=_column_places(tree.origins.ids_of(origin_level), table.column("origin")),
        destination=_column_places(tree.destinations.ids_of(destination_level), table.column("destination")),
        count=np.array(table.column("count"), np.int64),
        noisy=np.array(table.column("count_noisy"), np.int64),
        variance=float("inf") if variance is None else float(variance),
        measured=facts["measured"],
    )


def _read_across(tree: PairTree, table: pa.Table) -> PairSums:
    depth = tree.origins.depth
    return PairSums(
        origin=_column_places(tree.origins.ids_of(depth), table.column("origin")),
        destination=_column_places(tree.destinations.ids_of(depth - 1), table.column("destination")),
        count=np.array(table.column("count"), np.int64),
        width=tree.destinations.size(depth - 1),
    )
