"""The tables of a release as files: partitions or trips in Parquet, GeoJSON, GeoPackage and CSV, and how they are read back.

Those of points and areas are in `dpviz.release.count_tables`.
"""

from __future__ import annotations

import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pyogrio  # type: ignore[import-untyped]
import shapely
from pandas.api.types import is_numeric_dtype
from pyproj import Transformer
from pyproj.exceptions import ProjError

from dpviz.arrays import Floats, Places, Texts
from dpviz.errors import DomainError, DpvizError, InputError
from dpviz.privacy.receipt import Receipt
from dpviz.release.columns import describe_trip_columns
from dpviz.release.facts import Contents, RegionLevel, Stage, TripContents
from dpviz.release.manifest import describe_trip_contents, read_grid
from dpviz.release.reliability import grade_reliability
from dpviz.release.trip_release import PairSums, RegionTotals, StageCounts, TripRelease
from dpviz.space.nested import ROOT
from dpviz.space.pair_tree import PairTree
from dpviz.space.region_builders import Grid
from dpviz.space.regions import NO_GEOMETRY, Regions

GEOPARQUET, PARQUET, GEOJSON, CSV, GEOPACKAGE = "GeoParquet", "Parquet", "GeoJSON", "CSV", "GeoPackage"
FORMATS = ("geoparquet", "geojson", "csv", "geopackage")
"""The formats of the files of a release; only GeoParquet is read back."""
USUAL_FORMATS = FORMATS[:3]
"""The formats that are written unless others are asked for."""
DEGREES = "EPSG:4326"
NO_CRS = "There is no CRS: GeoJSON and longitudes need a place on the globe, and a plain plane has none."
OFF_THE_GLOBE = "The CRS gives some corners no longitude and latitude."
_INVISIBLE = ("Cc", "Cf", "Zl", "Zp", "Zs")  # categories of characters that a spreadsheet may leave out: controls, direction marks, blanks
_COORDINATE_DIGITS = 10
_GDAL_DATE, _FIXED_DATE = "OGR_CURRENT_DATE", "1980-01-01T00:00:00.000Z"
Columns = dict[str, Any]
"""Columns of a table by name."""

TABLE, AREAS_TABLE, LEVELS = "partitions.parquet", "areas.parquet", "levels.parquet"

FLOWS, STAGES, ACROSS, REST, TOTALS = "flows.parquet", "stages.parquet", "across.parquet", "rest.parquet", "totals.parquet"
_ABOUT_TOTALS = (
    "Trips that leave and that arrive in each region, those within it included: as released, and as an unbiased estimate (count_noisy),"
    " around which the intervals are."
)
REGIONS, ORIGINS, DESTINATIONS = "regions", "origins", "destinations"
ESCAPED_NOTE = " An id that a spreadsheet would take for a formula has an apostrophe in front here, but not in GeoJSON and Parquet."
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 24  # characters
_DIRECTIONS = {REGIONS: ("leaving", "arriving"), ORIGINS: ("leaving",), DESTINATIONS: ("arriving",)}


@dataclass(frozen=True, kw_only=True)
class Member:
    """A file to be written.

    Attributes:
        name: of the file.
        format: "GeoParquet", "Parquet", "GeoJSON", "GeoPackage" or "CSV".
        about: one sentence about the content of the file.
        write: writes the file to a path.
    """

    name: str
    format: str
    about: str
    write: Callable[[Path], None]


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A file that cannot be made for this release.

    Attributes:
        name: of the file.
        reason: one sentence that says why.
    """

    name: str
    reason: str


Layers = Mapping[str, tuple[Callable[[], pa.Table], geopandas.GeoSeries]]
"""Layers of a GeoPackage by name: a function that makes the table of each, and the shapes of its rows."""
Plan = list[Member | LeftOut]
"""The files of a release: those to be written, and those that cannot be made."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The tables of the releases of a family.

    Attributes:
        contents: class of the contents of their manifests, on top of `Contents` (`dpviz.release.facts`), with the family's name as `kind`.
        describe: makes them from a release, and from what the contents of all releases say.
        columns: describes every column that a table may have, by name.
        main: name of the main table.
        plan: plans the files of a release in some formats.
        tables: lists the tables that store a release, from the manifest's contents.
        rebuild: rebuilds a release from the manifest's contents, the tables, the receipt and the post-processing steps.
        finest: makes the columns of the main table that are not computed from others, to compare them with a table that was read.
    """

    contents: type[Contents]
    describe: Callable[[Any, dict[str, Any]], Contents]
    columns: Callable[[Any], dict[str, str]]
    main: str
    plan: Callable[[Any, tuple[str, ...]], Plan]
    tables: Callable[[Any], list[str]]
    rebuild: Callable[[Any, dict[str, Any], Receipt, tuple[str, ...]], Any]
    finest: Callable[[Any], pa.Table]


def escape_formulas(texts: Iterable[str]) -> list[str]:
    """Put an apostrophe before each text that a spreadsheet might take for a formula: this is the one place that decides which.

    Such a text begins with =, +, - or @, in any width, after any blanks, tabs, line ends, direction marks and other invisible
    characters; or it begins with a tab or a line end, which may end a cell. Distinct texts stay distinct: apostrophes at the
    beginning are passed over, so that a text that already has one before a formula gets one more. Without it the text is as before.

    >>> escape_formulas(["=1+1", "06037", "'=1+1", "\u200e =1+1"])
    ["'=1+1", '06037', "''=1+1", "'\u200e =1+1"]
    """
    return [f"'{text}" if _is_like_a_formula(text) else text for text in texts]


def _is_like_a_formula(text: str) -> bool:
    first = next((character for character in text if character != "'" and unicodedata.category(character) not in _INVISIBLE), "")
    return unicodedata.normalize("NFKC", first) in ("=", "+", "-", "@") or text.lstrip("'")[:1] in ("\t", "\r", "\n")


def escape_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts are escaped by `escape_formulas`; all else stays as it is."""

    def escape(cell: object) -> object:
        return escape_formulas([cell])[0] if isinstance(cell, str) else cell

    return table.assign(**{str(name): column.map(escape) for name, column in table.items() if not is_numeric_dtype(column)})


def make_constant_column(text: str, rows: int) -> pa.DictionaryArray:
    """Make a column of `rows` rows with the same text in every row."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), [text])


def decode_dictionaries(table: pa.Table) -> pa.Table:
    """Convert the dictionary-encoded columns of a table to plain text columns."""
    columns = [pc.cast(column, pa.string()) if pa.types.is_dictionary(column.type) else column for column in table.columns]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table as CSV in UTF-8: a header, numbers in full precision, missing numbers empty, texts in quotes and escaped."""
    plain = decode_dictionaries(table)
    columns = [_escape_column(column) if pa.types.is_string(column.type) else column for column in plain.columns]
    pyarrow.csv.write_csv(pa.table(dict(zip(plain.column_names, columns, strict=True))), path)


def _escape_column(texts: pa.ChunkedArray) -> pa.Array:
    """Escape the texts of a column, each distinct one once."""
    distinct = pc.unique(texts).drop_null()
    return pa.array(escape_formulas(distinct.to_pylist()), pa.string()).take(pc.index_in(texts, distinct))


def write_geojson(frame: geopandas.GeoDataFrame, path: Path) -> None:
    """Write shapes as GeoJSON by RFC 7946: in longitude and latitude (WGS 84), cut at the antimeridian.

    Raises:
        DpvizError: writing failed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame.to_file(path, driver="GeoJSON", engine="pyogrio", RFC7946="YES", SIGNIFICANT_FIGURES=_COORDINATE_DIGITS)
        complete = path.read_bytes()[-16:].rstrip().endswith(b"}")
    except Exception:  # noqa: BLE001  (GDAL's errors have no common root with OSError)
        complete = False
    if not complete:
        raise DpvizError("The GeoJSON could not be written: is the disk full?")


def write_geopackage(layers: Layers, path: Path) -> None:
    """Write tables as layers of one GeoPackage, with a fixed date in it, so that equal releases have equal files.

    Args:
        layers: by their names; each table is made when it is written.
        path: of the new file.

    Raises:
        DpvizError: writing failed.
    """
    pyogrio.set_gdal_config_options({_GDAL_DATE: _FIXED_DATE})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, (make, shapes) in layers.items():
                pyogrio.write_dataframe(make_frame(make(), shapes), path, layer=name, driver="GPKG")
        complete = True
    except Exception:  # noqa: BLE001  (GDAL's errors have no common root with OSError)
        complete = False
    finally:
        pyogrio.set_gdal_config_options({_GDAL_DATE: None})
    if not complete:
        raise DpvizError("The GeoPackage could not be written: is the disk full?")


def explain_missing_degrees(shapes: geopandas.GeoSeries) -> str | None:
    """Explain why some corners of shapes have no longitude and latitude: a sentence; None if all have."""
    if shapes.crs is None:
        return NO_CRS
    try:
        degrees = Transformer.from_crs(shapes.crs, DEGREES, always_xy=True).transform(*shapely.get_coordinates(shapes.to_numpy()).T)
    except ProjError:
        return "The CRS is not one of the Earth's surface."
    return None if np.isfinite(degrees).all() else OFF_THE_GLOBE


def make_table(columns: Columns) -> pa.Table:
    """Make an Arrow table of columns by name; NaN becomes missing."""
    return pa.table(
        {name: column if isinstance(column, pa.Array) else pa.array(column, from_pandas=True) for name, column in columns.items()}
    )


def make_frame(table: pa.Table, shapes: geopandas.GeoSeries) -> geopandas.GeoDataFrame:
    """Make a GeoDataFrame of the rows of a table and their shapes."""
    return geopandas.GeoDataFrame(decode_dictionaries(table).to_pandas(), geometry=shapes.to_numpy(), crs=shapes.crs)


def plan_parquet(name: str, about: str, make: Callable[[], pa.Table], shapes: geopandas.GeoSeries | None = None) -> Member:
    """Plan a Parquet file of a table: GeoParquet if its rows have shapes."""

    def write(path: Path) -> None:
        if shapes is None:
            pq.write_table(decode_dictionaries(make()), path)
        else:
            make_frame(make(), shapes).to_parquet(path, index=False)

    return Member(name=name, format=PARQUET if shapes is None else GEOPARQUET, about=about, write=write)


def plan_geojson(name: str, about: str, make: Callable[[], pa.Table], shapes: geopandas.GeoSeries | None) -> Member | LeftOut:
    """Plan a GeoJSON file of a table whose rows have shapes; without them, or off the globe, it is left out."""
    reason = NO_GEOMETRY if shapes is None else explain_missing_degrees(shapes)
    if shapes is None or reason is not None:
        return LeftOut(name=name, reason=reason or NO_GEOMETRY)
    return Member(name=name, format=GEOJSON, about=about, write=lambda path: write_geojson(make_frame(make(), shapes), path))


def plan_geopackage(name: str, about: str, layers: Layers) -> Member | LeftOut:
    """Plan a GeoPackage of some layers; without any it is left out."""
    if not layers:
        return LeftOut(name=name, reason=NO_GEOMETRY)
    return Member(name=name, format=GEOPACKAGE, about=about, write=lambda path: write_geopackage(layers, path))


def plan_csv(name: str, about: str, make: Callable[[], pa.Table]) -> Member:
    """Plan a CSV file of a table."""
    return Member(name=name, format=CSV, about=about, write=lambda path: write_csv(make(), path))


def read_base(contents: Contents, receipt: Receipt, steps: tuple[str, ...]) -> dict[str, Any]:
    """Read what every release says of itself, the attributes of `NoisyRelease`, from the manifest's contents."""
    return {
        "mechanism": contents.mechanism,
        "settings": contents.settings,
        "receipt": receipt,
        "steps": steps,
        "simulation": False,
        "approximate": contents.approximate,
    }


def _plan_trip_tables(release: TripRelease) -> list[Member]:
    """List the Parquet files of a release of trips: the finest trips, and the tables from which the release is read back."""
    tree, height = release.tree, release.tree.height
    about_stages = "All stages of the tree of pairs, nonzero pairs only; stage 0 is the pair of everything. Each stage counts all trips, so"
    about_stages += " add up a single stage. With the regions beside it, dpviz can read the whole release back from this file."
    about_trips = f"Trips of the finest level, {tree.title(height)}, {_describe_pairs(release, release.depth)}."
    members = [
        plan_parquet(FLOWS, about_trips, lambda: _make_trip_table(release, release.depth)),
        plan_parquet(STAGES, about_stages, lambda: _make_stage_table(release)),
    ]
    members += [plan_regions(stem, regions, "of the trips") for stem, regions in _list_hierarchies(tree)]
    if release.half_step_sums is not None:
        across, levels = release.half_step_sums, release.half_step_levels
        side = "origins" if levels[0] == release.depth else "destinations"
        about = f"Sums between {side} of the last level and regions one level up, with the pairs that the last level leaves out."
        members.append(plan_parquet(ACROSS, about, lambda: _make_pair_table(release, levels, across, {"count": across.count})))
        about = f"The rest, {tree.title(height - 1)}: trips of these pairs that are in no pair of {FLOWS}. Both together add up to every"
        members.append(plan_parquet(REST, f"{about} coarser stage.", lambda: _make_rest_table(release)))
    if release.totals is not None:
        members.append(plan_parquet(TOTALS, _ABOUT_TOTALS, lambda: _make_totals_table(release)))
    return members


def _list_hierarchies(tree: PairTree) -> list[tuple[str, Regions]]:
    """List the hierarchies of regions in a tree of pairs, one or two, each with the beginning of its files' names."""
    if tree.destinations is tree.origins:
        return [(REGIONS, tree.origins)]
    return [(ORIGINS, tree.origins), (DESTINATIONS, tree.destinations)]


def _make_stage_table(release: TripRelease) -> pa.Table:
    """Make the table of all stages, in order; the rows of a stage are in the order of its arrays."""
    parts = []
    for stage, counts in enumerate(release.stages):
        levels = release.tree.levels(stage)
        places = {"stage": stage, "origin_level": levels[0], "destination_level": levels[1]}
        first = make_table({name: np.full(len(counts.count), value, np.int32) for name, value in places.items()})
        columns = add_reliability(release.stage_columns(stage))
        pairs = _make_pair_table(release, levels, counts, columns)
        parts.append(decode_dictionaries(pa.table([*first.columns, *pairs.columns], [*first.column_names, *pairs.column_names])))
    return pa.concat_tables(parts)


def _make_trip_table(release: TripRelease, level: int, destination: str = "destination") -> pa.Table:
    """Make a table of the released pairs of a level, ordered by origin, then destination.

    Args:
        release: of trips.
        level: 1 to g.
        destination: name of the column of destinations.
    """
    counts = release.stages[2 * level]
    columns = add_reliability(release.stage_columns(2 * level))
    return _make_pair_table(release, (level, level), counts, columns, destination).take(pa.array(counts.order))


def _make_pair_table(
    release: TripRelease, levels: tuple[int, int], pairs: StageCounts | PairSums, columns: Columns, destination: str = "destination"
) -> pa.Table:
    """Make a table of pairs of regions of two levels: origin, destination (under the given name), columns of (k,) numbers, and status."""
    tree = release.tree
    regions = {
        "origin": pa.array(tree.origins.ids_of(levels[0]), pa.string()).take(pa.array(pairs.origin)),
        destination: pa.array(tree.destinations.ids_of(levels[1]), pa.string()).take(pa.array(pairs.destination)),
    }
    return make_table(regions | columns | {"status": make_constant_column(release.status, len(pairs.count))})


def add_reliability(columns: Columns) -> Columns:
    """Add to columns of counts and their errors a column that grades how reliable each count is."""
    return columns | {"reliability": grade_reliability(columns["count"], columns["stddev"])}


def plan_regions(stem: str, regions: Regions, whose: str) -> Member:
    """Plan the file of a hierarchy of regions, from which `rebuild_regions` makes an equal one.

    Args:
        stem: the beginning of the file's name: "regions", "origins" or "destinations".
        regions: the regions.
        whose: what they belong to, for people, such as "of the trips".
    """
    about = f"Every region of every level, with its own shape where it has one: {stem} {whose}."
    return Member(name=f"{stem}.parquet", format=GEOPARQUET, about=about, write=lambda path: _write_regions(regions, path))


def _write_regions(regions: Regions, path: Path) -> None:
    sizes = [len(ids) for ids in regions.ids]
    present = [shape for shape in regions.geometry if shape is not None]
    shapes = [np.full(size, None) if series is None else series.to_numpy() for size, series in zip(sizes, regions.geometry, strict=True)]
    above = [regions.ids_of(level)[parent] for level, parent in enumerate(regions.parent)]
    columns = {
        "level": np.repeat(np.arange(1, regions.depth + 1, dtype=np.int32), sizes),
        "level_name": np.repeat(np.array(regions.levels, object), sizes),
        "region_id": np.concatenate(regions.ids),
        "parent_id": np.concatenate(above),
        "name": np.concatenate(regions.names),
    }
    frame = geopandas.GeoDataFrame(columns, geometry=np.concatenate(shapes), crs=present[0].crs if present else None)
    frame.to_parquet(path, index=False)


def _describe_pairs(release: TripRelease, level: int) -> str:
    """Describe which pairs a table of a level has."""
    if release.half_step_sums is None or level < release.depth:
        return "nonzero pairs only"
    return "listed pairs only; a pair that is missing is part of the rest, and need not be empty"


def _make_rest_table(release: TripRelease) -> pa.Table:
    """Make a table of the trips, in the last stage but one, that are in no listed pair: origin, destination, count and status."""
    levels = release.tree.levels(release.tree.height - 1)
    rest = release.unlisted_trips(*levels)
    return _make_pair_table(release, levels, rest, {"count": rest.count})


def _make_totals_table(release: TripRelease) -> pa.Table:
    """Make a table of the trips that leave and that arrive in each region of each level: released, estimated, and the spread.

    Returns:
        Columns direction ("leaving" or "arriving"), level, region_id, count, count_noisy (the unbiased estimate), stddev, ci_low,
        ci_high, all_low, all_high, reliability and status.
    """
    assert release.totals is not None  # noqa: S101  (for the type checker: only then there is a table)
    sides = (("leaving", release.tree.origins, release.totals.leaving), ("arriving", release.tree.destinations, release.totals.arriving))
    parts = []
    for direction, regions, estimates in sides:
        for level, estimate in enumerate(estimates, start=1):
            found = regions.ids_of(level)
            question = _ask_for_totals(direction, level, found)
            count, stddev = release.answer(**question, spread=True)
            numbers: Columns = {"count": count, "count_noisy": estimate, "stddev": stddev}
            for name, joint in (("ci", False), ("all", True)):
                numbers[f"{name}_low"], numbers[f"{name}_high"] = release.answer_interval(**question, joint=joint)
            named = {"direction": np.full(len(found), direction, object), "level": np.full(len(found), level, np.int32)}
            columns = named | {"region_id": pa.array(found, pa.string())} | add_reliability(numbers)
            parts.append(decode_dictionaries(make_table(columns | {"status": make_constant_column(release.status, len(found))})))
    return pa.concat_tables(parts)


def _ask_for_totals(direction: str, level: int, ids: Texts) -> dict[str, Any]:
    """Return what to ask `TripRelease.answer` for the trips that leave, or arrive in, (n,) regions of a level."""
    everywhere = np.full(len(ids), ROOT, object)
    if direction == "leaving":
        return {"origins": ids, "destinations": everywhere, "levels": (level, 0)}
    return {"origins": everywhere, "destinations": ids, "levels": (0, level)}


def select_finest_trips(release: TripRelease) -> pa.Table:
    """Make those columns of the main table of trips that are not computed from others, to compare them with a table that was read."""
    return _make_trip_table(release, release.depth).select(["origin", "destination", "count", "count_noisy"])


def rebuild_trip_release(contents: TripContents, tables: dict[str, Any], receipt: Receipt, steps: tuple[str, ...]) -> TripRelease:
    """Rebuild a release of trips from its tables.

    Args:
        contents: of the manifest.
        tables: the Parquet tables by name; tables of regions are GeoDataFrames.
        receipt: of the manifest.
        steps: descriptions of the post-processing steps.

    Raises:
        InputError: a table names a region that is not in the table of regions.
    """
    stem = REGIONS if contents.destinations is None else ORIGINS
    origins = destinations = rebuild_regions(contents.origins, tables[f"{stem}.parquet"], read_grid(contents.grid_of_origins))
    if contents.destinations is not None:
        grid = read_grid(contents.grid_of_destinations)
        destinations = rebuild_regions(contents.destinations, tables[f"{DESTINATIONS}.parquet"], grid)
    tree = PairTree(origins=origins, destinations=destinations, first=contents.refined_first)
    across = None
    if contents.across:
        level, above = tree.levels(tree.height - 1)[::-1]
        across = PairSums(**_read_pairs(tree, (level, above), tables[ACROSS]), width=destinations.size(above))
    return TripRelease(
        tree=tree,
        stages=_read_stages(contents.stages, tree, tables[STAGES]),
        every_pair=contents.every_pair,
        half_step_sums=across,
        totals=_read_totals(tree, tables[TOTALS]) if contents.totals else None,
        for_released=contents.intervals is not None,
        **read_base(contents, receipt, steps),
    )


def rebuild_regions(levels: tuple[RegionLevel, ...], frame: geopandas.GeoDataFrame, grid: Grid | None = None) -> Regions:
    """Rebuild regions from their table.

    Args:
        levels: the manifest's description of the levels.
        frame: the table.
        grid: cells by which points find their leaf; None if the polygons decide.

    Raises:
        InputError: the table names a parent that is not in it.
        DomainError: the table does not describe regions.
    """
    parts = [frame[frame["level"] == level] for level in range(1, len(levels) + 1)]
    ids: list[Texts] = [part["region_id"].to_numpy(object) for part in parts]
    above = [np.array([ROOT], object), *ids]
    return Regions(
        levels=tuple(stated.level for stated in levels),
        ids=tuple(ids),
        parent=tuple(find_ids(known, part["parent_id"]) for known, part in zip(above, parts, strict=False)),
        names=tuple(part["name"].to_numpy(object) for part in parts),
        geometry=tuple(part.geometry.reset_index(drop=True) if stated.shapes else None for stated, part in zip(levels, parts, strict=True)),
        grid=grid,
    )


def find_ids(ids: Texts, wanted: Any) -> Places:
    """Find (k,) indices of (k,) wanted ids in a level's ids."""
    indices = np.asarray(pd.Index(ids, dtype=object).get_indexer(pd.Index(wanted, dtype=object)), np.int32)
    if (indices < 0).any():
        raise InputError("A table of the release names a region that is not in its table of regions.")
    return indices


def _find_column(ids: Texts, column: pa.ChunkedArray) -> Places:
    """Find (k,) indices of a column of ids in a level's ids; each distinct text is looked up once."""
    coded = pc.dictionary_encode(column.combine_chunks())
    indices = find_ids(ids, coded.dictionary.to_pylist())
    return np.asarray(indices[coded.indices.to_numpy(zero_copy_only=False)])


def _read_stages(stages: tuple[Stage, ...], tree: PairTree, table: pa.Table) -> tuple[StageCounts, ...]:
    starts, found = np.searchsorted(table.column("stage").to_numpy(), np.arange(tree.height + 2)).tolist(), []
    for stage, stated in enumerate(stages):
        rows = table.slice(starts[stage], starts[stage + 1] - starts[stage])
        noise: dict[str, Any] = {"variance": math.inf if stated.variance is None else stated.variance, "measured": stated.measured}
        noisy = np.array(rows.column("count_noisy"), np.int64)
        found.append(StageCounts(**_read_pairs(tree, tree.levels(stated.stage), rows), noisy=noisy, **noise))
    return tuple(found)


def _read_pairs(tree: PairTree, levels: tuple[int, int], table: pa.Table) -> dict[str, Any]:
    """Read origin, destination and count of pairs of regions of two levels."""
    return {
        "origin": _find_column(tree.origins.ids_of(levels[0]), table.column("origin")),
        "destination": _find_column(tree.destinations.ids_of(levels[1]), table.column("destination")),
        "count": np.array(table.column("count"), np.int64),
    }


def _read_totals(tree: PairTree, table: pa.Table) -> RegionTotals:
    """Read the unbiased totals of regions; the table must have the rows that `_make_totals_table` writes, in its order."""
    regions = {"leaving": tree.origins, "arriving": tree.destinations}
    wanted = [(direction, level, known) for direction, of in regions.items() for level, known in enumerate(of.ids, start=1)]
    rows = np.cumsum([0, *(len(known) for _, _, known in wanted)]).tolist()
    keys = [(direction, level, ident) for direction, level, known in wanted for ident in known]
    found = zip(*(table.column(name).to_pylist() for name in ("direction", "level", "region_id")), strict=True)
    if list(found) != keys:
        raise InputError(f"The release's {TOTALS} does not have one row for each region.")
    estimates = np.array(table.column("count_noisy"), np.int64)
    parts = [estimates[start:end] for start, end in pairwise(rows)]
    return RegionTotals(leaving=tuple(parts[: tree.origins.depth]), arriving=tuple(parts[tree.origins.depth :]))


def plan_trip_files(release: TripRelease, formats: tuple[str, ...]) -> Plan:
    """Plan the files of a release of trips.

    Args:
        release: of trips.
        formats: some of `FORMATS`.
    """
    plan: Plan = []
    tree, levels = release.tree, range(1, release.depth + 1)
    if "geoparquet" in formats:
        plan += _plan_trip_tables(release)
    if "geojson" in formats:
        for stem, regions in _list_hierarchies(tree):
            for level in levels:
                name = f"{stem}_{format_level(regions, level)}.geojson"
                about = f"Regions of level {level}, in EPSG:4326, with the released trips that leave and arrive."
                make = partial(_make_region_table, release, regions, level, _DIRECTIONS[stem])
                plan.append(plan_geojson(name, about, make, find_shapes(regions, level)))
    if "geopackage" in formats:
        layers = _list_layers(release)
        about = f"Layers: {', '.join(layers)}. The regions with the released trips that leave and arrive, and the released pairs as lines."
        plan.append(plan_geopackage("trips.gpkg", about, layers))
    if "csv" in formats:
        for level in levels:
            about = f"Trips, {tree.title(2 * level)}, {_describe_pairs(release, level)};"
            about += " opens in flowmap.blue with the locations of this level."
            make = partial(_make_trip_table, release, level, "dest")
            plan.append(plan_csv(f"flows_{format_level(tree.origins, level)}.csv", f"{about}{ESCAPED_NOTE}", make))
            plan += [_plan_locations_csv(release, level), _plan_arcs_csv(release, level)]
        if release.half_step_sums is not None:
            about = f"The rest, {tree.title(tree.height - 1)}: trips of these pairs that are in no listed pair of the finest level."
            plan.append(plan_csv("rest.csv", f"{about}{ESCAPED_NOTE}", lambda: _make_rest_table(release)))
        if release.totals is not None:
            plan.append(plan_csv("totals.csv", f"{_ABOUT_TOTALS}{ESCAPED_NOTE}", lambda: _make_totals_table(release)))
    return plan


def _list_layers(release: TripRelease) -> Layers:
    """List the regions and the pairs of each level as layers: for pairs a line from origin to destination, none within a region."""
    layers = {}
    for level in range(1, release.depth + 1):
        for stem, regions in _list_hierarchies(release.tree):
            shapes = find_shapes(regions, level)
            if shapes is not None:
                make = partial(_make_region_table, release, regions, level, _DIRECTIONS[stem])
                layers[f"{stem}_{format_level(regions, level)}"] = make, shapes
        ends = _find_ends(release, level)
        if not isinstance(ends, str):
            start, end = _find_pair_ends(release, level, ends)
            lines = np.asarray(shapely.linestrings(np.stack([start, end], axis=1)), object)
            lines[(start == end).all(axis=1)] = None
            name = f"flows_{format_level(release.tree.origins, level)}"
            layers[name] = partial(_make_trip_table, release, level), geopandas.GeoSeries(lines, crs=DEGREES)
    return layers


def _find_ends(release: TripRelease, level: int) -> tuple[Floats, Floats] | str:
    """Find the places of a level's origins and destinations, (n, 2) degrees each; or explain why there are none."""
    origins, destinations = (_find_centres(regions, level) for regions in (release.tree.origins, release.tree.destinations))
    if isinstance(origins, str):
        return origins
    return destinations if isinstance(destinations, str) else (origins, destinations)


def _find_centres(regions: Regions, level: int) -> Floats | str:
    """Find (n, 2) degrees of places inside the regions of a level; or explain why there are none."""
    try:
        centres = regions.centres(level)
    except DomainError:
        return OFF_THE_GLOBE
    return NO_GEOMETRY if centres is None else centres


def _find_pair_ends(release: TripRelease, level: int, ends: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Find where the pairs of a level begin and end, (k, 2) degrees each, in the order of `_make_trip_table`."""
    counts = release.stages[2 * level]
    order = counts.order
    return ends[0][counts.origin[order]], ends[1][counts.destination[order]]


def find_shapes(regions: Regions, level: int) -> geopandas.GeoSeries | None:
    """Find the polygons of a level, or else its points; None if it has no geometry of its own or of its parts."""
    return regions.geometry[level - 1] if regions.outlines(level) is None else regions.outlines(level)


def _make_region_table(release: TripRelease, regions: Regions, level: int, directions: tuple[str, ...]) -> pa.Table:
    """Make a table of the regions of a level, with the released trips that leave and arrive."""
    ids = regions.ids_of(level)
    columns: Columns = {
        "region_id": pa.array(ids, pa.string()),
        "level": np.full(len(ids), level),
        "level_name": make_constant_column(regions.levels[level - 1], len(ids)),
        "name": pa.array(regions.names_of(level), pa.string()),
    }
    for direction in directions:
        question = _ask_for_totals(direction, level, ids)
        columns[direction], columns[f"{direction}_stddev"] = release.answer(**question, spread=True)
    return make_table(columns | {"status": make_constant_column(release.status, len(ids))})


def format_level(regions: Regions, level: int) -> str:
    """Format a level's number and name for a file's name; of the name at most 24 letters, digits and underscores, in lower case."""
    slug = _SLUG.sub("_", regions.levels[level - 1].lower()).strip("_")[:_LONGEST_SLUG]
    return f"{level}_{slug}" if slug else str(level)


def _plan_arcs_csv(release: TripRelease, level: int) -> Member | LeftOut:
    """Plan a file of the pairs of a level with the places of their ends, in pairs of columns by whose names kepler.gl finds them."""
    name, ends = f"arcs_{format_level(release.tree.origins, level)}.csv", _find_ends(release, level)
    if isinstance(ends, str):
        return LeftOut(name=name, reason=ends)

    def make() -> pa.Table:
        table = _make_trip_table(release, level, "dest")
        places = np.column_stack(_find_pair_ends(release, level, ends)).T
        for column, values in zip(("origin_lng", "origin_lat", "dest_lng", "dest_lat"), places, strict=True):
            table = table.append_column(column, pa.array(values))
        return table

    about = f"Trips, {release.tree.title(2 * level)}, with a place inside either region; opens in kepler.gl as arcs."
    return plan_csv(name, f"{about}{ESCAPED_NOTE}", make)


def _plan_locations_csv(release: TripRelease, level: int) -> Member | LeftOut:
    name, tables = f"locations_{format_level(release.tree.origins, level)}.csv", []
    for _, regions in _list_hierarchies(release.tree):
        centres = _find_centres(regions, level)
        if isinstance(centres, str):
            return LeftOut(name=name, reason=centres)
        columns = {"id": regions.ids_of(level), "lat": centres[:, 1], "lon": centres[:, 0], "name": regions.names_of(level)}
        tables.append(pd.DataFrame(columns))
    table = pd.concat(tables, ignore_index=True).drop_duplicates(ignore_index=True)
    if table["id"].duplicated().any():
        return LeftOut(name=name, reason="Origins and destinations use the same id for different places.")
    ids, names = (pa.array(table[column].tolist(), pa.string()) for column in ("id", "name"))
    make = partial(make_table, {"id": ids, "lat": table["lat"], "lon": table["lon"], "name": names})
    return plan_csv(name, f"A place inside each region, in EPSG:4326 (degrees).{ESCAPED_NOTE}", make)


def _list_trip_tables(contents: TripContents) -> list[str]:
    stems = [REGIONS] if contents.destinations is None else [ORIGINS, DESTINATIONS]
    further = [name for name, is_there in ((ACROSS, contents.across), (TOTALS, contents.totals)) if is_there]
    return [STAGES, *(f"{stem}.parquet" for stem in stems), *further]


TRIP_LAYOUT = Layout(
    contents=TripContents,
    describe=describe_trip_contents,
    columns=describe_trip_columns,
    main=FLOWS,
    plan=plan_trip_files,
    tables=_list_trip_tables,
    rebuild=rebuild_trip_release,
    finest=select_finest_trips,
)
