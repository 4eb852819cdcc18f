"""The lossless tables of a release of trips: stages, regions, and sums across levels; written and read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpviz.errors import InputError
from dpviz.privacy.receipt import Receipt
from dpviz.release.contents import settings_of
from dpviz.release.flow_release import FlowRelease, StageCounts, interval
from dpviz.release.members import GEOPARQUET, PARQUET, Member, always, numbers, plain
from dpviz.release.pair_sums import PairSums
from dpviz.release.utility import reliability
from dpviz.space.pair_tree import PairTree
from dpviz.space.regions import ROOT, Places, Regions, Texts

Facts = dict[str, Any]

FLOWS, STAGES, ACROSS = "flows.parquet", "stages.parquet", "across.parquet"
REGIONS, ORIGINS, DESTINATIONS = "regions", "origins", "destinations"


def trip_tables(release: FlowRelease) -> list[Member]:
    """The finest trips, and the tables that a release of trips is made of."""
    finest, last = f"Trips of the finest level, {release.tree.title(release.tree.height)}, nonzero pairs only.", release.depth
    about = "Every stage of the tree of pairs, 0 the pair of everything, nonzero pairs only: every stage has all trips, so add up the rows"
    about += " of one alone. With the regions, the whole release, which is read back from here."
    members = [Member(name=FLOWS, format=PARQUET, about=finest, write=lambda path: pq.write_table(plain(flow_table(release, last)), path))]
    members.append(Member(name=STAGES, format=PARQUET, about=about, write=lambda path: pq.write_table(_stages(release), path)))
    members += [_regions_member(stem, regions) for stem, regions in geographies(release.tree)]
    return members if release.across is None else [*members, _across_member(release, release.across)]


def geographies(tree: PairTree) -> list[tuple[str, Regions]]:
    """The hierarchies of a tree of pairs, with the names that their files begin with."""
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
            "origin": pa.array(release.tree.origins.ids_of(origin_level), pa.string()).take(pa.array(at.origin)),
            "destination": pa.array(release.tree.destinations.ids_of(destination_level), pa.string()).take(pa.array(at.destination)),
        }
        parts.append(plain(numbers(columns | measures(at.count, at.noisy, release.stddev(stage)) | _status(release, size))))
    return pa.concat_tables(parts)


def flow_table(release: FlowRelease, level: int, ids: Callable[[Texts], Any] = list, destination: str = "destination") -> pa.Table:
    """The released pairs of a level, ordered by origin, then destination.

    Args:
        release: public.
        level: 1 to g.
        ids: turns the ids of all regions into texts.
        destination: name of that column.
    """
    at, tree = release.stages[2 * level], release.tree
    order = np.lexsort((at.destination, at.origin))
    ends = {
        "origin": pa.array(ids(tree.origins.ids_of(level)), pa.string()).take(pa.array(at.origin[order])),
        destination: pa.array(ids(tree.destinations.ids_of(level)), pa.string()).take(pa.array(at.destination[order])),
    }
    columns = measures(at.count[order], at.noisy[order], release.stddev(2 * level)[order])
    return numbers(ends | columns | _status(release, len(order)))


def _status(release: FlowRelease, rows: int) -> Facts:
    return {"status": always(release.status, rows)}


def measures(count: NDArray[np.int64], noisy: NDArray[np.int64], stddev: NDArray[np.float64]) -> Facts:
    """Columns of counts and their spread."""
    low, high = interval(noisy, stddev)
    columns = {"count": count, "count_noisy": noisy, "stddev": stddev, "ci_low": low, "ci_high": high}
    return columns | {"reliability": reliability(count, stddev)}


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
    frame = geopandas.GeoDataFrame(columns, geometry=np.concatenate(shapes), crs=known[0].crs if known else None)
    frame.to_parquet(path, index=False)


def _across_member(release: FlowRelease, across: PairSums) -> Member:
    depth = release.depth
    about = "Sums between origins of the last level and destinations one level up, where small pairs were left out of the list."

    def write(path: Path) -> None:
        origin = pa.array(release.tree.origins.ids_of(depth), pa.string()).take(pa.array(across.origin))
        destination = pa.array(release.tree.destinations.ids_of(depth - 1), pa.string()).take(pa.array(across.destination))
        columns = {"origin": origin, "destination": destination, "count": across.count} | _status(release, len(across.count))
        pq.write_table(plain(numbers(columns)), path)

    return Member(name=ACROSS, format=PARQUET, about=about, write=write)


def finest_trips(release: FlowRelease) -> pa.Table:
    """The columns of the main table that the release itself has."""
    return flow_table(release, release.depth).select(["origin", "destination", "count", "count_noisy"])


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
        stages=_read_stages(contents["stages"], tree, tables[STAGES]),
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
