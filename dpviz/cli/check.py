"""Check a file: what it contains, what it can be used for, and which settings are missing. No cell of the file is shown."""

from __future__ import annotations

import glob
import os
import zipfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from dpviz.cli.console import DONE, give, say
from dpviz.cli.ledger import ledger_facts, note_look
from dpviz.cli.release import check_config
from dpviz.data.counting.engines import AUTO, choose_engine
from dpviz.data.counting.file_fingerprints import file_fingerprints
from dpviz.data.leaf_regions import describe_overlaps
from dpviz.data.library_errors import attempt
from dpviz.data.reading.areas import AreasFile, inspect_areas, propose_area_columns
from dpviz.data.reading.flows import FlowsFile, inspect_flows
from dpviz.data.reading.geometries import open_shapes
from dpviz.data.reading.inspect import (
    MOST_SHOWN,
    Pair,
    RepeatedColumn,
    coordinate_columns,
    describe_flows,
    describe_points,
    find_repeated_columns,
)
from dpviz.data.reading.points import PointsFile, inspect_points
from dpviz.data.reading.regions import RegionsFile, inspect_regions, propose_levels, read_regions
from dpviz.data.reading.safety import FORMATS, Limits, Source, format_of, name_of, read_checked, refuse_url
from dpviz.data.reading.sources import TABLES, FoundFiles, find_files, list_files, refuse_copies, refuse_rowless
from dpviz.data.reading.tables import open_table
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat, detect_text_format
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.errors import DpvizError, InputError, SettingError
from dpviz.privacy.ledger import Ledger
from dpviz.release.area_release import AreaRelease
from dpviz.release.files import read_release
from dpviz.release.flow_release import FlowRelease
from dpviz.release.nouns import AnyRelease, kind_of

MANIFEST, SCHEMA = "manifest.json", "manifest.schema.json"
MOST_NAMED = 40
NOTHING = (
    "The file can be read, but its columns cannot be used: points need a longitude and a latitude or geometries, trips an origin and a"
    " destination, regions an id per level."
)
_LIMITS = Limits()

_PARTS = {"points": "partitions", "trips": "pairs", "areas": "regions"}

Facts = dict[str, Any]


def run_check(arguments: Namespace) -> int:
    """Print what a file contains, what it can be used for and which settings are missing; of a configuration, what its release costs."""
    path = Path(arguments.file)
    if path.suffix.lower() == ".toml":
        if arguments.people:
            raise SettingError("--people searches the columns of data: give the data in place of a configuration.")
        return check_config(path, as_json=arguments.json, shows=arguments.left_out, copies=arguments.copies)
    if arguments.left_out:
        raise SettingError("--left-out counts the records that a configuration leaves out: give its TOML file in place of data.")
    facts = check(path, copies=arguments.copies)
    if arguments.people:
        facts |= _search_persons(path, facts)
    give(facts, write_lines(facts), as_json=arguments.json)
    return DONE


def _search_persons(path: Path, facts: Facts) -> Facts:
    """Search the columns of a file for persons; the ledger records that before anything is read. Return what is added to the facts.

    Raises:
        SettingError: the file's columns cannot be searched.
        RefusedError: the ledger cannot record the search.
    """
    use = _searchable_use(facts)
    if use is None:
        raise SettingError("--people searches a single file of points, areas or trips that is not large; leave it out.")
    ledger = Ledger()
    note_look(ledger, file_fingerprints([path]), searches=True)
    say(
        f"Distinct values of columns are counted, to find persons: the ledger {ledger.path} records that, and releases of these data"
        " will say so."
    )
    columns = find_repeated(path, facts)
    return {"may_be_persons": _describe_repeated(columns or ()), **ledger_facts(ledger)}


def check(path: Path, *, copies: bool = False) -> Facts:
    """Find out what a file or a release contains, and what it can be used for.

    If the columns are unambiguous, all rows of a single file are read, so that damage and bad rows are found before a release.

    Args:
        path: a file of points, trips or regions, a pattern or folder of such tables, or a release as a folder or zip.
        copies: whether files are allowed that are copies of others.

    Returns:
        Facts with "kind": "data" or "release". For data: format, columns (the first 40) and uses (as points, areas, trips or regions), the
        likeliest first. Each use has the columns that were found, and the entries of the configuration that are missing; if a text
        table is written in another way than the usual one, these are the settings that say how, which are "text_format", too. For several
        tables or a large one, whose rows are not read, also the number of files and the engine that would count them. For a release:
        facts of its manifest and receipt.

    Raises:
        InputError: the file does not exist, cannot be opened, is damaged, has bad rows or no rows, or cannot be used; or a file is a copy
            of another, by its name or its content.
        DpvizError: the release was changed or is damaged.
    """
    refuse_url(str(path))
    if not glob.has_magic(str(path)) and not os.path.lexists(path):
        raise InputError("There is no such file or folder, or you may not read it: look at its spelling, and at the folder you are in.")
    folder = os.path.isdir(path)  # noqa: PTH112  (gives False without permission, where Path.is_dir raises)
    if (folder and os.path.isfile(path / MANIFEST)) or (not folder and _holds_manifest(path)):  # noqa: PTH113
        return _release_facts(path)
    large = _find_several_or_large(path, folder=folder, copies=copies)
    return _file_uses(path) if large is None else _table_uses(large, copies=copies)


def _file_uses(path: Path) -> Facts:
    """Find what a single file can be used for; all of its rows are read."""
    tabular = FORMATS.get(path.suffix.lower()) in (*SEPARATORS, "Parquet")
    text_format = _propose_text_format(path)
    tables = attempt(lambda: find_files(path, text_format)) if tabular else None
    if tables is not None:
        refuse_rowless(tables)
    _refuse_bad_lines(path, text_format)
    attempts: list[Callable[[], Facts]] = []
    if tabular:
        attempts.append(lambda: _as_trips(inspect_flows(path, through=True, text_format=text_format)))
        attempts.append(lambda: _as_areas(inspect_areas(path, text_format=text_format)))
    attempts.append(lambda: _as_points(_inspect_points(path, text_format), lambda: _shapes(path)))
    attempts.append(lambda: _as_regions(path, text_format))
    return _with_text_format(_data_facts(attempts), text_format)


def _table_uses(found: FoundFiles, *, copies: bool) -> Facts:
    """Find what several tables or a large one can be used for, by their headers alone."""
    refuse_rowless(found)
    if not copies:
        refuse_copies(found)
    attempts: list[Callable[[], Facts]] = [lambda: _as_trips(describe_flows(found))]
    if found.schema is not None:
        names = found.schema.names
        attempts.append(lambda: _as_areas(propose_area_columns(found.format, names)))
    attempts.append(lambda: _as_points(describe_points(found), lambda: {"point"}))
    facts = {**_data_facts(attempts), "files": len(found.sources), "engine": choose_engine(found, AUTO, None, _LIMITS)}
    return _with_text_format(facts, found.text_format)


def _propose_text_format(source: Source) -> TextFormat:
    """Propose how a text table is written; the usual format for other files, and for files that cannot be opened."""
    kind = attempt(lambda: format_of(name_of(source)))
    return (attempt(lambda: detect_text_format(source)) or PLAIN_TEXT) if kind in SEPARATORS else PLAIN_TEXT


def _find_proposed(path: Path, *, copies: bool) -> FoundFiles:
    """Find the files that a path names, and read their headers as it is proposed for the first of them."""
    return find_files(path, _propose_text_format(list_files(path)[0]), copies=copies)


def _with_text_format(facts: Facts, text_format: TextFormat) -> Facts:
    """Add the settings of a text table to the facts, and to what is missing for a use as points or trips."""
    declared = text_format.declarations()
    if not declared:
        return facts
    settings = [f"[data] {line}: the file seems to be written so" for line in text_format.lines()]
    uses = [{**use, "missing": [*settings, *use["missing"]]} if use["as"] != "regions" else use for use in facts["uses"]]
    return {**facts, "uses": uses, "text_format": declared}


def _inspect_points(path: Path, text_format: TextFormat) -> PointsFile:
    """Inspect points, and read them through; if a column may hold points in WKT, and no two hold coordinates, read that one."""
    file = inspect_points(path, through=True, text_format=text_format)
    if file.rows == 0:
        raise InputError("The file holds no feature and no row: nothing could be counted or released.")
    if file.geometry is not None and file.x is None and file.y is None:
        inspect_points(path, through=True, text_format=text_format, geometry=file.geometry)
    return file


def _refuse_bad_lines(path: Path, text_format: TextFormat) -> None:
    """Refuse a text table with a malformed line."""
    if FORMATS.get(path.suffix.lower()) in SEPARATORS:
        kind, data = read_checked(path, _LIMITS)
        table = open_table(kind, data, _LIMITS, text_format=text_format)
        table.take([0]).bad.refuse("Correct the file; a release would leave such rows out.")


def _find_several_or_large(path: Path, *, folder: bool, copies: bool) -> FoundFiles | None:
    """Find the tables of a pattern or a folder, or one large table; they are not read into memory. None for a single ordinary file."""
    if folder:
        if os.path.isfile(path / SCHEMA):  # noqa: PTH113
            raise InputError(f"The folder holds a release without its {MANIFEST}, which describes its tables.")
        try:
            return find_files(path, copies=copies)
        except InputError as error:
            refusal = f"The folder holds no release: there is no {MANIFEST}. {error}"
        raise InputError(refusal)
    if not os.path.isfile(path):  # noqa: PTH113
        return _find_proposed(path, copies=copies) if glob.has_magic(str(path)) else None
    large = path.stat().st_size > _LIMITS.file_bytes and FORMATS.get(path.suffix.lower()) in TABLES
    return _find_proposed(path, copies=copies) if large else None


def _data_facts(attempts: Sequence[Callable[[], Facts]]) -> Facts:
    """Collect the uses that fit the data: each function of `attempts` tries one use, and raises an error if it cannot."""
    uses, refusals = [], []
    for try_use in attempts:
        try:
            uses.append(try_use())
        except DpvizError as error:
            refusals.append(str(error))
    fitting = sorted((use for use in uses if use.pop("fits")), key=lambda use: ("matrix" in use["found"], len(use["missing"])))
    others = {use["as"] for use in fitting} - {"areas"}
    counts = any(use["as"] == "areas" and len(use["found"]) > 1 for use in fitting)  # beside ids: regions themselves are not counted
    if others - {"regions"} or (others and not counts):
        fitting = [use for use in fitting if use["as"] != "areas"]
    if not fitting:
        raise InputError(" ".join(dict.fromkeys(refusals)) or NOTHING)
    file_facts = [use.pop("about") for use in fitting]
    return {"kind": "data", **file_facts[0], "uses": fitting}


def _holds_manifest(path: Path) -> bool:
    if not os.path.isfile(path):  # noqa: PTH113  (reading a pipe would wait forever)
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(Path(name).name == MANIFEST and name.count("/") <= 1 for name in archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def _as_trips(file: FlowsFile) -> Facts:
    pairs = None if file.matrix else coordinate_columns(file.columns)
    columns = {"origin": file.origin, "destination": file.destination, "count": file.count, "person": file.person}
    found = {role: name for role, name in columns.items() if name is not None}
    missing_roles = [role for role in ("origin", "destination") if role not in found and not file.matrix]
    if pairs is not None and missing_roles:
        return _between_coordinates(file, pairs, found)
    return {
        "as": "trips",
        "fits": file.matrix or bool({"origin", "destination"} & set(found)),
        "found": {"matrix": True} if file.matrix else found,
        "missing": [*(f"[data] {role}: the column" for role in missing_roles), "[regions] file: the public regions that its ids name"],
        "about": _file_facts(file.format, () if file.matrix else file.columns),
    }


def _between_coordinates(file: FlowsFile, pairs: tuple[Pair, Pair], found: Facts) -> Facts:
    others = {role: name for role, name in found.items() if role in ("count", "person")}
    return {
        "as": "trips",
        "fits": True,
        "found": {"origin": list(pairs[0]), "destination": list(pairs[1]), **others},
        "missing": [
            "[data] origin and destination: the pairs of columns, if they are meant",
            "[data] crs: which CRS the coordinates are in; it is never guessed",
            "[regions] file: the public regions, with polygons; or h3 or squares",
        ],
        "about": _file_facts(file.format, file.columns),
    }


def _as_points(file: PointsFile, shapes: Callable[[], set[str]]) -> Facts:
    kinds = shapes() if file.has_geometry else set()
    columns = {"x": file.x, "y": file.y, "count": file.count, "person": file.person}
    in_wkt = file.geometry is not None and file.x is None and file.y is None
    columns |= {"geometry": file.geometry} if in_wkt else {}
    found = {role: name for role, name in columns.items() if name is not None}
    missing = [f"[data] {role}: the column" for role in ("x", "y") if role not in found and not (file.has_geometry or in_wkt)]
    missing += [f'[data] geometry = "{file.geometry}": its column holds points in WKT'] if in_wkt else []
    missing += ["[data] crs: which CRS the coordinates are in; it is never guessed"] if file.needs_crs else []
    return {
        "as": "points",
        "fits": "point" in kinds or {"x", "y"} <= set(found) or in_wkt,
        "found": {"geometry": True, **found} if file.has_geometry else found,
        "missing": [
            *missing,
            "[domain] bounds and crs: declared in public, never taken from the file; or for areas [regions] file, h3 or squares",
        ],
        "about": _file_facts(file.format, file.columns),
    }


def _as_areas(file: AreasFile) -> Facts:
    columns = {"region": file.region, "count": file.count, "person": file.person}
    return {
        "as": "areas",
        "fits": file.region is not None,
        "found": {role: name for role, name in columns.items() if name is not None},
        "missing": [
            f'[data] region = "{file.region}": if its column holds ids of the finest regions',
            "[regions] file: the public regions that its ids name",
        ],
        "about": _file_facts(file.format, file.columns),
    }


def _as_regions(path: Path, text_format: TextFormat) -> Facts:
    if text_format.declarations():
        written = text_format.describe(format_of(str(path)))
        raise InputError(
            f"{NOTHING} The text seems to have {written}; regions are read from commas or tabs, decimal points and UTF-8 only."
        )
    file = inspect_regions(path, through=True)
    polygons = file.has_geometry and "polygon" in _shapes(path)
    properties = {"nested": file.nested, "levels": list(file.levels), "geometry": file.has_geometry}
    overlap = _find_overlap(path, file) if polygons else None
    return {
        "as": "regions",
        "fits": file.nested or bool(file.levels) or polygons,
        "found": {name: value for name, value in properties.items() if value},
        "missing": [
            *([] if file.nested else ["[regions] levels: the columns of ids, coarsest first (one is enough)"]),
            *([] if overlap is None else [f"for records with coordinates: {overlap}"]),
        ],
        "about": _file_facts(file.format, file.columns),
    }


def _find_overlap(path: Path, file: RegionsFile) -> str | None:
    """Return which polygons of a public file overlap; None if none do, or if its levels or its CRS are not known."""
    try:
        levels = None if file.nested else file.levels or propose_levels(path)
        regions = None if levels == () else read_regions(path, levels=levels)
    except DpvizError:
        return None
    return None if regions is None else describe_overlaps(regions)


def _file_facts(kind: str, columns: tuple[str, ...]) -> Facts:
    return {"format": kind, "columns": list(columns[:MOST_NAMED]), "further_columns": max(len(columns) - MOST_NAMED, 0)}


def _shapes(path: Path) -> set[str]:
    """Find the kinds of geometries: "point", "polygon" or both; empty if they cannot be read."""
    shapes = attempt(lambda: open_shapes(*read_checked(path, _LIMITS), _LIMITS).take([])[1])
    kinds = set() if shapes is None else {int(kind) for kind in np.unique(shapely.get_type_id(shapes))}
    names = {"point": {shapely.GeometryType.POINT}, "polygon": {shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON}}
    return {name for name, types in names.items() if kinds & types}


def _release_facts(path: Path) -> Facts:
    release = read_release(path)
    receipt = release.receipt
    return {
        "kind": "release",
        "of": kind_of(release),
        "verified": "every file has the SHA-256 that the manifest lists, and the manifest fits the tables; a checksum, no signature",
        "mechanism": release.mechanism,
        "budget": str(receipt.total),
        "unit": receipt.unit,
        "neighbours": receipt.neighbours,
        "contributions": receipt.contributions,
        "numbers": _count_numbers(release),
        "uses": [],
    }


def _count_numbers(release: AnyRelease) -> int:
    """Count the numbers of the finest level of a release."""
    if isinstance(release, FlowRelease):
        return len(release.stages[-1].count)
    return len(release.count[-1]) if isinstance(release, AreaRelease) else len(release.tree.leaves)


def _searchable_use(facts: Facts) -> Facts | None:
    """Return the use of a file whose columns may be searched for persons; None for releases, regions, and several or large files."""
    use = next(iter(facts["uses"]), None)
    return None if use is None or "files" in facts or use["as"] == "regions" or "matrix" in use["found"] else use


def find_repeated(path: Path, facts: Facts) -> tuple[RepeatedColumn, ...] | None:
    """Find columns of points or trips whose repeated values may identify persons. CURATOR ONLY: numbers come from private data.

    Args:
        path: path of the file.
        facts: the result of `check` for the file.

    Returns:
        The columns; None for releases, regions, and several or large files, whose content is not searched.
    """
    use = _searchable_use(facts)
    if use is None:
        return None
    used = [use["found"][role] for role in ("x", "y", "geometry", "region", "origin", "destination", "count") if role in use["found"]]
    used = [columns for columns in used if columns is not True]
    return find_repeated_columns(
        find_files(path, TextFormat(**facts.get("text_format", {}))),
        but=[name for columns in used for name in ((columns,) if isinstance(columns, str) else columns)],
    )


def _describe_repeated(columns: Sequence[RepeatedColumn]) -> list[Facts]:
    """Describe the columns that are likeliest to identify persons."""
    return [{"column": c.name, "values": c.values, "rows": c.rows, "once": c.once} for c in columns[:MOST_SHOWN]]


def _questions(columns: Sequence[Facts]) -> list[str]:
    """Write the question to the curator about columns with repeated values, as lines of text."""
    repeated_columns = [
        RepeatedColumn(name=column["column"], values=column["values"], rows=column["rows"], once=column["once"]) for column in columns
    ]
    question = "Is one of these columns a person, a household or a vehicle? Then name it under [data] person:"
    return [question, *(f"  {column.name}: {column.consequence}" for column in repeated_columns)] if repeated_columns else []


def _protection_line(facts: Facts) -> str:
    most, counted = facts["contributions"], "trips" if facts["of"] == "trips" else "records"
    bound = f", with at most {most:,} {counted if most > 1 else counted.removesuffix('s')}" if facts["unit"] == "person" else ""
    return f"Protects one {facts['unit']}{bound} ({facts['neighbours']})."


def write_lines(facts: Facts) -> list[str]:
    """Write the facts of `check` as lines of text."""
    if facts["kind"] == "release":
        number = f"{facts['numbers']:,} {_PARTS[facts['of']]}"
        return [
            f"A release of {facts['of']}: {facts['mechanism']}, {facts['budget']}, {number}.",
            _protection_line(facts),
            f"Verified: {facts['verified']}.",
        ]
    more = f" and {facts['further_columns']:,} more" if facts["further_columns"] else ""
    texts = [f"{facts['format']}; columns: {', '.join(facts['columns']) or 'none'}{more}."]
    if "text_format" in facts:
        texts.append(f"The text seems to have {TextFormat(**facts['text_format']).describe(facts['format'])}; declare it under [data].")
    if "files" in facts:
        seen = "only the first lines of one were looked at now" if facts["format"] in SEPARATORS else "no row was read now"
        texts.append(f"{facts['files']:,} files, which engine {facts['engine']} would count; {seen}.")
    for use in facts["uses"]:
        found_text = ", ".join(name if value is True else f"{name} = {value}" for name, value in use["found"].items())
        texts.append(f"As {use['as']}: {found_text}.")
        texts += [f"  missing: {missing}" for missing in use["missing"]] or ["  nothing is missing"]
    return texts + _questions(facts.get("may_be_persons", ()))
