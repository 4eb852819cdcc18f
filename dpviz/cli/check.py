"""Check a file: what it contains, what it can be used for, and what is missing. The file is read, but none of its cells is shown."""

from __future__ import annotations

import glob
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from dpviz.data.counting.engines import AUTO, choose_engine
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
from dpviz.data.reading.regions import inspect_regions
from dpviz.data.reading.safety import FORMATS, Limits, attempt, read_checked
from dpviz.data.reading.sources import TABLES, FoundFiles, find_files, refuse_copies
from dpviz.data.reading.tables import open_table
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.errors import DpvizError, InputError
from dpviz.release.files import read_release
from dpviz.release.flow_release import FlowRelease

MANIFEST, SCHEMA = "manifest.json", "manifest.schema.json"
MOST_NAMED = 40
NOTHING = (
    "The file can be read, but its columns cannot be used: points need a longitude and a latitude or geometries, trips an origin and a"
    " destination, regions an id per level."
)
_LIMITS = Limits()

Facts = dict[str, Any]


def check(path: Path) -> Facts:
    """Find out what a file or a release contains, and what it can be used for.

    All rows of a single file are read if the columns are unambiguous, so that damage and bad rows are found here and not in a release.

    Args:
        path: a file of points, trips or regions, a pattern or folder of such tables, or a release as a folder or zip.

    Returns:
        Facts with "kind": "data" or "release". For data: format, columns (the first 40) and uses (as points, trips or regions), the
        likeliest first. Each use has the columns that were found, and the entries of the configuration that are missing. For several
        tables or a large one, whose rows are not read, also the number of files and the engine that would count them. For a release:
        facts of its manifest and receipt.

    Raises:
        InputError: the file does not exist, cannot be opened, is damaged, has bad rows or no rows, or cannot be used; or several files
            have equal content.
        DpvizError: the release was changed or is damaged.
    """
    folder = os.path.isdir(path)  # noqa: PTH112  (gives False without permission, where Path.is_dir raises)
    if (folder and os.path.isfile(path / MANIFEST)) or (not folder and _holds_manifest(path)):  # noqa: PTH113
        return _release(path)
    found = _several_or_large(path, folder=folder)
    tabular = found is not None or FORMATS.get(path.suffix.lower()) in (*SEPARATORS, "Parquet")
    tables = found if found is not None or not tabular else attempt(lambda: find_files(path))
    if tables is not None and all(tables.rowless):
        raise InputError("No row follows the header: nothing could be counted or released.")
    if found is None:
        _refuse_bad_lines(path)
        looks = [*([lambda: _as_trips(inspect_flows(path, through=True))] if tabular else [])]
        looks += [lambda: _as_points(inspect_points(path, through=True), lambda: _shapes(path)), lambda: _as_regions(path)]
        return _data(looks)
    refuse_copies(found)
    looks = [lambda: _as_trips(describe_flows(found)), lambda: _as_points(describe_points(found), lambda: {"point"})]
    return {**_data(looks), "files": len(found.sources), "engine": choose_engine(found, AUTO, None, _LIMITS)}


def _refuse_bad_lines(path: Path) -> None:
    """Refuse a text table with a malformed line."""
    if FORMATS.get(path.suffix.lower()) in SEPARATORS:
        kind, data = read_checked(path, _LIMITS)
        open_table(kind, data, _LIMITS).take([0]).bad.refuse("Correct the file; a release would leave such rows out.")


def _several_or_large(path: Path, *, folder: bool) -> FoundFiles | None:
    """Find the tables of a pattern or a folder, or one large table; they are not read into memory. None for a single ordinary file."""
    if folder:
        if os.path.isfile(path / SCHEMA):  # noqa: PTH113
            raise InputError(f"The folder holds a release without its {MANIFEST}, which describes its tables.")
        try:
            return find_files(path)
        except InputError as error:
            refusal = f"The folder holds no release: there is no {MANIFEST}. {error}"
        raise InputError(refusal)
    if not os.path.isfile(path):  # noqa: PTH113
        return find_files(path) if glob.has_magic(str(path)) else None
    large = path.stat().st_size > _LIMITS.file_bytes and FORMATS.get(path.suffix.lower()) in TABLES
    return find_files(path) if large else None


def _data(looks: Sequence[Callable[[], Facts]]) -> Facts:
    """Collect the uses that fit the data: each function of `looks` tries one use, and raises an error if it cannot."""
    uses, refusals = [], []
    for look in looks:
        try:
            uses.append(look())
        except DpvizError as error:
            refusals.append(str(error))
    fitting = sorted((use for use in uses if use.pop("fits")), key=lambda use: ("matrix" in use["found"], len(use["missing"])))
    if not fitting:
        raise InputError(" ".join(dict.fromkeys(refusals)) or NOTHING)
    about = [use.pop("about") for use in fitting]
    return {"kind": "data", **about[0], "uses": fitting}


def _holds_manifest(path: Path) -> bool:
    if not os.path.isfile(path):  # noqa: PTH113  (reading a pipe would wait forever)
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(Path(name).name == MANIFEST and name.count("/") <= 1 for name in archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def _as_trips(about: FlowsFile) -> Facts:
    pairs = None if about.matrix else coordinate_columns(about.columns)
    found = {"origin": about.origin, "destination": about.destination, "count": about.count, "person": about.person}
    named = {role: name for role, name in found.items() if name is not None}
    ends = [role for role in ("origin", "destination") if role not in named and not about.matrix]
    if pairs is not None and ends:
        return _between_coordinates(about, pairs, named)
    return {
        "as": "trips",
        "fits": about.matrix or bool({"origin", "destination"} & set(named)),
        "found": {"matrix": True} if about.matrix else named,
        "missing": [*(f"[data] {role}: the column" for role in ends), "[regions] file: the public regions that its ids name"],
        "about": _about(about.format, () if about.matrix else about.columns),
    }


def _between_coordinates(about: FlowsFile, pairs: tuple[Pair, Pair], named: Facts) -> Facts:
    rest = {role: name for role, name in named.items() if role in ("count", "person")}
    return {
        "as": "trips",
        "fits": True,
        "found": {"origin": list(pairs[0]), "destination": list(pairs[1]), **rest},
        "missing": [
            "[data] origin and destination: the pairs of columns, if they are meant",
            "[data] crs: which CRS the coordinates are in; it is never guessed",
            "[regions] file: the public regions, with polygons",
        ],
        "about": _about(about.format, about.columns),
    }


def _as_points(about: PointsFile, shapes: Callable[[], set[str]]) -> Facts:
    kinds = shapes() if about.has_geometry else set()
    found = {"x": about.x, "y": about.y, "count": about.count, "person": about.person}
    named = {role: name for role, name in found.items() if name is not None}
    missing = [f"[data] {role}: the column" for role in ("x", "y") if role not in named and not about.has_geometry]
    missing += ["[data] crs: which CRS the coordinates are in; it is never guessed"] if about.needs_crs else []
    return {
        "as": "points",
        "fits": "point" in kinds or {"x", "y"} <= set(named),
        "found": {"geometry": True, **named} if about.has_geometry else named,
        "missing": [*missing, "[domain] bounds and crs: declared in public, never taken from the file"],
        "about": _about(about.format, about.columns),
    }


def _as_regions(path: Path) -> Facts:
    about = inspect_regions(path, through=True)
    polygons = about.has_geometry and "polygon" in _shapes(path)
    found = {"nested": about.nested, "levels": list(about.levels), "geometry": about.has_geometry}
    return {
        "as": "regions",
        "fits": about.nested or bool(about.levels) or polygons,
        "found": {name: value for name, value in found.items() if value},
        "missing": [] if about.nested else ["[regions] levels: the columns of ids, coarsest first (one is enough)"],
        "about": _about(about.format, about.columns),
    }


def _about(kind: str, columns: tuple[str, ...]) -> Facts:
    return {"format": kind, "columns": list(columns[:MOST_NAMED]), "further_columns": max(len(columns) - MOST_NAMED, 0)}


def _shapes(path: Path) -> set[str]:
    """Find the kinds of geometries: "point", "polygon" or both; empty if they cannot be read."""
    shapes = attempt(lambda: open_shapes(*read_checked(path, _LIMITS), _LIMITS).take([])[1])
    kinds = set() if shapes is None else {int(kind) for kind in np.unique(shapely.get_type_id(shapes))}
    names = {"point": {shapely.GeometryType.POINT}, "polygon": {shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON}}
    return {name for name, those in names.items() if kinds & those}


def _release(path: Path) -> Facts:
    release = read_release(path)
    receipt = release.receipt
    trips = isinstance(release, FlowRelease)
    return {
        "kind": "release",
        "of": "trips" if trips else "points",
        "verified": "every file has the SHA-256 that the manifest lists, and the manifest fits the tables; a checksum, no signature",
        "mechanism": release.mechanism,
        "budget": str(receipt.total),
        "unit": receipt.unit,
        "neighbours": receipt.neighbours,
        "contributions": receipt.contributions,
        "numbers": len(release.stages[-1].count) if isinstance(release, FlowRelease) else len(release.tree.leaves),
        "uses": [],
    }


def repeated(path: Path, facts: Facts) -> tuple[RepeatedColumn, ...] | None:
    """Find columns of points or trips whose repeated values may identify persons. CURATOR ONLY: numbers come from private data.

    Args:
        path: path of the file.
        facts: what `check` found out about the file.

    Returns:
        The columns; None if no content was looked at: for releases, regions, and several or large files.
    """
    use = next(iter(facts["uses"]), None)
    if use is None or "files" in facts or use["as"] == "regions" or "matrix" in use["found"]:
        return None
    used = [use["found"][role] for role in ("x", "y", "origin", "destination", "count") if role in use["found"]]
    return find_repeated_columns(find_files(path), but=[name for each in used for name in ((each,) if isinstance(each, str) else each)])


def add_repeated_columns(facts: Facts, columns: Sequence[RepeatedColumn]) -> Facts:
    """Add the columns that are likeliest to identify persons to the facts."""
    return {
        **facts,
        "may_be_persons": [{"column": c.name, "values": c.values, "rows": c.rows, "once": c.once} for c in columns[:MOST_SHOWN]],
    }


def _questions(columns: Sequence[Facts]) -> list[str]:
    """Ask the curator about the columns whose values repeat, as lines of text."""
    known = [RepeatedColumn(name=each["column"], values=each["values"], rows=each["rows"], once=each["once"]) for each in columns]
    question = "Is one of these columns a person, a household or a vehicle? Then name it under [data] person:"
    return [question, *(f"  {each.name}: {each.consequence}" for each in known)] if known else []


def _protects(facts: Facts) -> str:
    most, counted = facts["contributions"], "trips" if facts["of"] == "trips" else "records"
    bound = f", with at most {most:,} {counted if most > 1 else counted.removesuffix('s')}" if facts["unit"] == "person" else ""
    return f"Protects one {facts['unit']}{bound} ({facts['neighbours']})."


def lines(facts: Facts) -> list[str]:
    """Show the facts of `check` as lines of text."""
    if facts["kind"] == "release":
        number = f"{facts['numbers']:,} {'pairs' if facts['of'] == 'trips' else 'partitions'}"
        return [
            f"A release of {facts['of']}: {facts['mechanism']}, {facts['budget']}, {number}.",
            _protects(facts),
            f"Verified: {facts['verified']}.",
        ]
    more = f" and {facts['further_columns']:,} more" if facts["further_columns"] else ""
    shown = [f"{facts['format']}; columns: {', '.join(facts['columns']) or 'none'}{more}."]
    if "files" in facts:
        shown.append(f"{facts['files']:,} files, which engine {facts['engine']} would count; no row was read now.")
    for use in facts["uses"]:
        found = ", ".join(name if value is True else f"{name} = {value}" for name, value in use["found"].items())
        shown.append(f"As {use['as']}: {found}.")
        shown += [f"  missing: {each}" for each in use["missing"]] or ["  nothing is missing"]
    return shown + _questions(facts.get("may_be_persons", ()))
