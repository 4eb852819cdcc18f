"""Check a file: what it contains, what it can be used for, and which settings are missing. No cell of the file is shown."""

from __future__ import annotations

import glob
import os
import zipfile
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import shapely
from pyproj import CRS

from dpviz.cli.advice import advise_on_command_line
from dpviz.cli.console import DONE, give, say
from dpviz.cli.ledger import ledger_facts, note_look
from dpviz.cli.release import check_config
from dpviz.data.cells import REMEDY
from dpviz.data.columns import find_column, find_count, join_pairs, list_columns
from dpviz.data.counting.engines import AUTO, choose_engine
from dpviz.data.counting.file_fingerprints import file_fingerprints
from dpviz.data.leaf_regions import describe_overlaps
from dpviz.data.library_errors import or_none
from dpviz.data.reading.areas import AreasFile, inspect_areas
from dpviz.data.reading.formats import is_table
from dpviz.data.reading.geometries import open_shapes
from dpviz.data.reading.id_fits import NO_REGION, count_id_fits, read_ids
from dpviz.data.reading.inspect import (
    MOST_SHOWN,
    RepeatedColumn,
    describe_ids,
    describe_points,
    describe_trip_files,
    find_repeated_columns,
)
from dpviz.data.reading.points import PointsFile, inspect_points
from dpviz.data.reading.regions import RegionsFile, inspect_regions, propose_levels, read_regions
from dpviz.data.reading.safety import DEFAULT_LIMITS, FORMATS, Source, format_of, name_of, read_checked, refuse_url
from dpviz.data.reading.sources import TABLES, FoundFiles, find_files, list_files, refuse_copies, refuse_rowless
from dpviz.data.reading.tables import open_table
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat, detect_text_format
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.data.reading.trips import TripsFile, inspect_trips
from dpviz.data.roles import (
    AXES,
    ENDS,
    NOTHING_CHOSEN,
    PublicHeader,
    Use,
    are_levels,
    fold_name,
    may_count,
    quote_unread,
    say_each_row,
    say_shapes,
    say_ten_millionths,
    says_none,
)
from dpviz.errors import DpvizError, InputError, SettingError
from dpviz.families import FAMILIES
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.config import NO_CRS
from dpviz.release.files import MANIFEST, SCHEMA, read_release

MOST_NAMED = 40
_NOTHING = (
    "The file can be read, but its columns cannot be used by their names alone.{columns} Say what they are: points have"
    " --x COLUMN --y COLUMN, or --geometry COLUMN; trips --origin COLUMN --destination COLUMN; records with ids of regions --region COLUMN;"
    " regions --levels COLUMN ..., an id per level.{text}"
)
OPTIONS = {
    "x and y": "--x COLUMN --y COLUMN",
    "origin and destination": "--origin COLUMN --destination COLUMN",
    "x": "--x COLUMN",
    "y": "--y COLUMN",
    "origin": "--origin COLUMN",
    "destination": "--destination COLUMN",
    "region": "--region COLUMN",
}
_ROLES_OF_KIND = {"points": (*AXES, "geometry"), "trips": ENDS, "areas": ("region",), "regions": ("levels",)}

_REGIONS_OF_IDS = "[regions] file: the public regions that its ids name"

Facts = dict[str, Any]
_File = TypeVar("_File")


def run_check(arguments: Namespace) -> int:
    """Print what a file contains, what it can be used for and which settings are missing; of a configuration, what its release costs."""
    path = Path(arguments.file)
    chosen, written = chosen_columns(arguments), declared_format(arguments)
    if path.suffix.lower() == ".toml":
        if chosen or written or arguments.regions is not None:
            raise SettingError("A configuration names its columns and regions itself, under [data] and [regions]: leave these options out.")
        if arguments.people:
            raise SettingError("--people searches the columns of data: give the data in place of a configuration.")
        return check_config(path, as_json=arguments.json, shows=arguments.left_out, copies=arguments.copies)
    if arguments.left_out:
        raise SettingError("--left-out counts the records that a configuration leaves out: give its TOML file in place of data.")
    if arguments.ids and arguments.regions is None:
        raise SettingError("--ids compares ids with those of regions: give the file of regions, too.")
    if arguments.regions is None:
        facts = check(path, chosen, written, copies=arguments.copies)
    else:  # whose columns the levels are
        facts = check(path, {role: column for role, column in chosen.items() if role != "levels"}, written, copies=arguments.copies)
        facts = {**facts, **_compare_ids(path, facts, arguments)}
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
    likeliest = (find_repeated(path, facts) or ())[:MOST_SHOWN]
    found = [{"column": c.name, "values": c.values, "rows": c.rows, "once": c.once} for c in likeliest]
    return {"may_be_persons": found, **ledger_facts(ledger)}


def _compare_ids(path: Path, facts: Facts, arguments: Namespace) -> Facts:
    """Count how many ids fit public regions after which rewriting, if that is asked for: it is a look at private values.

    Raises:
        InputError: the file has no column of ids, or a file cannot be read.
        DomainError: the regions are not valid.
        RefusedError: the ledger cannot note the look.
    """
    found: Facts = next((use["found"] for use in facts["uses"] if use["as"] in ("trips", "areas") and "matrix" not in use["found"]), {})
    columns = [found[role] for role in (*ENDS, "region") if isinstance(found.get(role), str)]
    if "files" in facts or not columns:
        raise InputError("Ids are compared of one file with a column of ids: name it with --region, or with --origin and --destination.")
    public = Path(arguments.regions)
    file = inspect_regions(public)
    levels = arguments.levels or (None if file.nested else file.levels or propose_levels(public)) or None
    regions = read_regions(public, levels=levels)
    if not arguments.ids:
        return {"ids": None}
    ledger = Ledger()
    note_look(ledger, file_fingerprints([path]))
    say(f"Ids are compared with those of the regions: the ledger {ledger.path} records that, and releases of these data will say so.")
    return {**ledger_facts(ledger), "ids": count_id_fits(read_ids(path, columns, TextFormat(**facts.get("text_format", {}))), regions)}


def chosen_columns(arguments: Namespace) -> dict[str, Any]:
    """Return the columns and the CRS that options name, by role.

    Raises:
        SettingError: an end of trips is neither one column nor a pair, or the CRS is not known.
    """
    chosen = {role: getattr(arguments, role) for role in (*AXES, "geometry", *ENDS, "count", "region", "person", "levels", "crs")}
    for role in ENDS:
        if chosen[role] is not None and len(chosen[role]) > len(AXES):
            raise SettingError(f"--{role} is one column of ids, or two of coordinates.")
        chosen[role] = None if chosen[role] is None else chosen[role][0] if len(chosen[role]) == 1 else tuple(chosen[role])
    if chosen["crs"] is not None and fold_name(chosen["crs"]) != NO_CRS and or_none(lambda: CRS.from_user_input(chosen["crs"])) is None:
        raise SettingError("--crs is not known: give an EPSG code such as EPSG:4326.")
    return {role: column for role, column in chosen.items() if column}


def declared_format(arguments: Namespace) -> dict[str, str]:
    r"""Return how a text table is written, as far as options say it; a tab may be typed as \t."""
    said = {item.name: getattr(arguments, item.name) for item in fields(TextFormat)}
    written = {name: mark.replace("\\t", "\t") for name, mark in said.items() if mark is not None}
    TextFormat(**written)  # refuses what is no mark
    return written


def check(
    path: Path, chosen: Mapping[str, Any] = NOTHING_CHOSEN, written: Mapping[str, str] = NOTHING_CHOSEN, *, copies: bool = False
) -> Facts:
    """Find out what a file or a release contains, and what it can be used for.

    If the columns are unambiguous, all rows of a single file are read, so that damage and bad rows are found before a release.

    Args:
        path: a file of points, trips or regions, a pattern or folder of such tables, or a release as a folder or zip.
        chosen: the columns that the curator names, by role: x, y, geometry, region, origin and destination (each one column, or a pair of
            coordinates), count (or "none"), person, and levels of regions; and crs.
        written: settings of `TextFormat` that the curator declares; the others are proposed.
        copies: whether files are allowed that are copies of others.

    Returns:
        Facts with "kind": "data" or "release". For data: format, columns (the first 40) and uses (as points, areas, trips or regions), the
        likeliest first. Each use has the columns that were found, the entries of the configuration that are missing, and the columns that
        are not read and may hold the number of records of a row, if no column of counts is known; if a text
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
    large = _find_several_or_large(path, written, folder=folder, copies=copies)
    return _file_uses(path, chosen, written) if large is None else _table_uses(large, chosen, written, copies=copies)


def resolve_chosen(names: Sequence[str], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that the curator names as the file spells them.

    Raises:
        InputError: no column or several have such a name.
    """

    def resolve(role: str, column: Any) -> Any:
        if role == "crs" or (role == "count" and says_none(column)):
            find_count(names, column if role == "count" else None)
            return column
        return find_column(names, column) if isinstance(column, str) else type(column)(find_column(names, name) for name in column)

    return {role: resolve(role, column) for role, column in chosen.items() if column}


def _only_wanted(attempts: Mapping[str, Callable[[], Facts]], chosen: Mapping[str, Any]) -> dict[str, Callable[[], Facts]]:
    """Return the attempts at the uses that the named columns ask for; all if none of them says where."""
    wanted = {kind for kind, roles in _ROLES_OF_KIND.items() if set(roles) & set(chosen)} or set(attempts)
    return {kind: try_use for kind, try_use in attempts.items() if kind in wanted}


def _file_uses(path: Path, chosen: Mapping[str, Any], written: Mapping[str, str]) -> Facts:
    """Find what a single file can be used for; all of its rows are read."""
    tabular = is_table(FORMATS.get(path.suffix.lower()))
    text_format = _propose_text_format(path, written)
    tables = or_none(lambda: find_files(path, text_format)) if tabular else None
    if tables is not None:
        refuse_rowless(tables)
        chosen = resolve_chosen(tables.header(None).names, chosen)
    if FORMATS.get(path.suffix.lower()) in SEPARATORS:
        kind, data = read_checked(path, DEFAULT_LIMITS)
        table = open_table(kind, data, DEFAULT_LIMITS, text_format=text_format)
        table.take([0]).bad.refuse("Correct the file; a release would leave such rows out.")
    attempts: dict[str, Callable[[], Facts]] = {}
    if tabular:
        as_trips = partial(inspect_trips, path, text_format=text_format, chosen=chosen)
        as_areas = partial(inspect_areas, path, text_format=text_format, chosen=chosen)
        attempts["trips"] = lambda: _read_through(as_trips, lambda file: _as_trips(file, chosen))
        attempts["areas"] = lambda: _read_through(as_areas, _as_areas)
    as_points = partial(_inspect_points, path, text_format, chosen)
    attempts["points"] = lambda: _read_through(as_points, lambda file: _as_points(file, chosen, lambda: _shapes(path)))
    if not text_format.declarations():
        attempts["regions"] = lambda: _as_regions(path, chosen)
    header = PublicHeader(names=()) if tables is None else tables.header(tables.geo)
    nothing = _say_nothing(header.names, text_format, path)
    facts = _data_facts(_only_wanted(attempts, chosen), nothing, say_shapes(header), says_counts="count" in chosen)
    return _with_text_format(facts, text_format, written)


def _read_through(inspect: Callable[..., _File], describe: Callable[[_File], Facts]) -> Facts:
    """Describe a file whose rows are all read; rows that do not say where are said, as a release leaves them out."""
    try:
        return describe(inspect(through=True))
    except InputError as error:
        if not error.only_rows:
            raise
        said = str(error).removesuffix(REMEDY)
    return {**describe(inspect(through=False)), "bad_rows": f"{said}A release leaves such rows out."}


def _table_uses(found: FoundFiles, chosen: Mapping[str, Any], written: Mapping[str, str], *, copies: bool) -> Facts:
    """Find what several tables or a large one can be used for, by their headers alone."""
    refuse_rowless(found)
    if not copies:
        refuse_copies(found)
    header = PublicHeader(names=())
    attempts: dict[str, Callable[[], Facts]] = {"trips": lambda: _as_trips(describe_trip_files(found, chosen), chosen)}
    if found.schema is not None:
        header = found.header(found.geo)
        chosen = resolve_chosen(found.header(None).names, chosen)
        attempts["areas"] = lambda: _as_areas(describe_ids(found, chosen))
    attempts["points"] = lambda: _as_points(describe_points(found, chosen), chosen, lambda: {"point"})
    nothing = _say_nothing(header.names, found.text_format, found.sources[0])
    uses = _data_facts(_only_wanted(attempts, chosen), nothing, say_shapes(header), says_counts="count" in chosen)
    facts = {**uses, "files": len(found.sources), "engine": choose_engine(found, AUTO, None, DEFAULT_LIMITS)}
    return _with_text_format(facts, found.text_format, written)


def _say_nothing(names: Sequence[str], text_format: TextFormat, source: Source) -> str:
    """Return the refusal of a file of which no use is known: its columns, and what can be said of them."""
    text = ""
    if text_format.declarations():
        written = text_format.describe(format_of(name_of(source)))
        text = f" The text seems to have {written}; regions are read from commas or tabs, decimal points and UTF-8 only."
    return _NOTHING.format(columns=list_columns(names) if names else "", text=text)


def _propose_text_format(source: Source, written: Mapping[str, str]) -> TextFormat:
    """Propose how a text table is written, where that is not declared; the usual format for files that cannot be opened.

    Raises:
        InputError: something is declared, and the file is no text table.
    """
    kind = or_none(lambda: format_of(name_of(source)))
    if kind is None or kind not in SEPARATORS:
        TextFormat(**written).refuse_for(kind or "it")
        return PLAIN_TEXT
    proposed = (or_none(lambda: detect_text_format(source)) or PLAIN_TEXT).declarations()
    return TextFormat(
        **{name: mark for name, mark in proposed.items() if mark != written.get("thousands") or name != "decimal"} | {**written}
    )


def _find_proposed(path: Path, written: Mapping[str, str], *, copies: bool) -> FoundFiles:
    """Find the files that a path names, and read their headers as it is proposed for the first of them."""
    return find_files(path, _propose_text_format(list_files(path)[0], written), copies=copies)


def _with_text_format(facts: Facts, text_format: TextFormat, written: Mapping[str, str]) -> Facts:
    """Add the settings of a text table to the facts, and to what is missing for a use as points or trips."""
    declared = text_format.declarations()
    if not declared:
        return facts
    whose = ["as the option says" if name in written else "the file seems to be written so" for name in declared]
    settings = [f"[data] {line}: {said}" for line, said in zip(text_format.lines(), whose, strict=True)]
    uses = [{**use, "missing": [*settings, *use["missing"]]} if use["as"] != "regions" else use for use in facts["uses"]]
    return {**facts, "uses": uses, "text_format": declared}


def _inspect_points(path: Path, text_format: TextFormat, chosen: Mapping[str, Any], *, through: bool) -> PointsFile:
    """Inspect points, and perhaps read them through; if a column may hold points in WKT, and no two hold coordinates, read that one."""
    chosen = {role: column for role, column in chosen.items() if role != "crs" or fold_name(column) != NO_CRS}
    file = inspect_points(path, through=through, text_format=text_format, chosen=chosen)
    if file.has_geometry:  # whose other columns are known only now
        file = inspect_points(path, text_format=text_format, chosen=resolve_chosen(file.columns, chosen))
    if file.rows == 0:
        raise InputError("The file holds no feature and no row: nothing could be counted or released.")
    if through and "geometry" in file.use.found and not chosen.get("geometry"):
        inspect_points(path, through=True, text_format=text_format, geometry=file.geometry)
    return file


def _find_several_or_large(path: Path, written: Mapping[str, str], *, folder: bool, copies: bool) -> FoundFiles | None:
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
        return _find_proposed(path, written, copies=copies) if glob.has_magic(str(path)) else None
    large = path.stat().st_size > DEFAULT_LIMITS.file_bytes and FORMATS.get(path.suffix.lower()) in TABLES
    return _find_proposed(path, written, copies=copies) if large else None


def _data_facts(attempts: Mapping[str, Callable[[], Facts]], nothing: str, shapes: Sequence[str], *, says_counts: bool) -> Facts:
    """Collect the uses that fit the data: each function of `attempts` tries one use, and raises an error if it cannot.

    Where no use has coordinates, `shapes` are said, the columns that may hold some and are not read.
    """
    uses, refusals = [], {}
    for kind, try_use in attempts.items():
        try:
            uses.append(try_use())
        except DpvizError as error:
            refusals[kind] = str(error)
    fitting = sorted((use for use in uses if use.pop("fits")), key=lambda use: ("matrix" in use["found"], len(use["missing"])))
    fitting = _leave_unlikely_out(fitting, says_counts=says_counts)
    if not fitting:
        raise InputError(" ".join(dict.fromkeys([*(refusals.values() or [nothing]), *shapes])))
    file_facts = [use.pop("about") for use in fitting]
    refused = {kind: refusals[kind] for kind in ("trips", "points") if kind in refusals}
    has_places = any({"x", "geometry"} & {*use["found"]} or isinstance(use["found"].get("origin"), list) for use in fitting)
    further = {"refused": refused, "not_read": [] if has_places or "points" in {use["as"] for use in fitting} else list(shapes)}
    return {"kind": "data", **file_facts[0], "uses": fitting, **{name: said for name, said in further.items() if said}}


def _leave_unlikely_out(fitting: list[Facts], *, says_counts: bool) -> list[Facts]:
    """Leave out ids of regions beside coordinates or trips, and where nothing is counted beside them; and regions by a vague name alone."""
    only_by_name = any(use.pop("vague", False) for use in fitting)
    others = {use["as"] for use in fitting} - {"areas"}
    counts = says_counts or any(use["as"] == "areas" and (len(use["found"]) > 1 or any(map(may_count, use["unread"]))) for use in fitting)
    left_out = {"areas"} if others - {"regions"} or (others and not counts) else set()
    left_out |= {"regions"} if only_by_name and others - {"regions"} else set()
    return [use for use in fitting if use["as"] not in left_out]


def _holds_manifest(path: Path) -> bool:
    if not os.path.isfile(path):  # noqa: PTH113  (reading a pipe would wait forever)
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(Path(name).name == MANIFEST and name.count("/") <= 1 for name in archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def _use_facts(use: Use, missing: Sequence[str], about: Facts, **found: Any) -> Facts:
    """Describe a use as facts: what was found by role, what is missing, and which columns are not read."""
    columns = {role: list(column) if isinstance(column, tuple) else column for role, column in use.found.items()}
    which = {role: f"which of {join_pairs(among)} are meant" if among else "the column" for role, among in use.open.items()}
    return {
        "as": use.kind,
        "fits": use.fits,
        "found": {**found, **columns},
        "missing": [*(f"[data] {role}: {text} ({OPTIONS[role]})" for role, text in which.items()), *missing],
        "open": {role: list(among) for role, among in use.open.items()},
        "unread": list(use.unread),
        "about": about,
    }


def _as_trips(file: TripsFile, chosen: Mapping[str, Any]) -> Facts:
    missing = [_REGIONS_OF_IDS]
    if file.use is None:
        about = _file_facts(file.format, ())
        return {"as": "trips", "fits": True, "found": {"matrix": True}, "missing": missing, "open": {}, "unread": [], "about": about}
    if isinstance(file.use.found.get("origin"), tuple):
        missing = ["[regions] file: the public regions, with polygons; or h3 or squares"]
        missing[:0] = [] if chosen.get("crs") else ["[data] crs: which CRS the coordinates are in; it is never guessed"]
        missing[:0] = [] if chosen.get("origin") else ["[data] origin and destination: the pairs of columns, if they are meant"]
    return _use_facts(file.use, missing, _file_facts(file.format, file.columns))


def _as_points(file: PointsFile, chosen: Mapping[str, Any], shapes: Callable[[], set[str]]) -> Facts:
    found = file.use.found
    divide = say_ten_millionths([str(found.get(axis, "")) for axis in AXES])
    missing = [f"[data] x and y: {divide}"] if divide else []
    missing += [f'[data] geometry = "{found["geometry"]}": its column holds points in WKT'] if "geometry" in found else []
    missing += ["[data] crs: which CRS the coordinates are in; it is never guessed"] if file.needs_crs and not chosen.get("crs") else []
    missing.append("[domain] bounds and crs: declared in public, never taken from the file; or for areas [regions] file, h3 or squares")
    about = _file_facts(file.format, file.columns)
    if not file.has_geometry:
        return _use_facts(file.use, missing, about)
    return {**_use_facts(file.use, missing, about, geometry=True), "fits": "point" in shapes()}


def _as_areas(file: AreasFile) -> Facts:
    missing = [f'[data] region = "{file.region}": if its column holds ids of the finest regions', _REGIONS_OF_IDS]
    return _use_facts(file.use, missing, _file_facts(file.format, file.columns))


def _as_regions(path: Path, chosen: Mapping[str, Any]) -> Facts:
    file = inspect_regions(path, through=True)
    levels = tuple(resolve_chosen(file.columns, {"levels": chosen.get("levels")}).get("levels", ()))
    if levels:
        read_regions(path, levels=levels, crs=chosen.get("crs"))
    polygons = file.has_geometry and "polygon" in _shapes(path)
    properties = {"nested": file.nested, "levels": list(levels or file.levels), "geometry": file.has_geometry}
    overlap = _find_overlap(path, file, levels) if polygons else None
    among = f", out of {quote_unread(file.ids)}" if len(file.ids) > 1 else ""
    return {
        "as": "regions",
        "fits": file.nested or bool(levels or file.ids) or polygons,
        "vague": not (levels or file.nested or polygons or are_levels(file.columns)),
        "found": {name: value for name, value in properties.items() if value},
        "missing": [
            *([] if file.nested or levels else [f"[regions] levels: the columns of ids, coarsest first (one is enough){among}"]),
            *([] if overlap is None else [f"for records with coordinates: {overlap}"]),
        ],
        "open": {},
        "unread": [],
        "about": _file_facts(file.format, file.columns),
    }


def _find_overlap(path: Path, file: RegionsFile, chosen: tuple[str, ...]) -> str | None:
    """Return which polygons of a public file overlap; None if none do, or if its levels or its CRS are not known."""
    try:
        levels = chosen or (None if file.nested else file.levels or propose_levels(path))
        regions = None if levels == () else read_regions(path, levels=levels)
    except DpvizError:
        return None
    return None if regions is None else describe_overlaps(regions)


def _file_facts(kind: str, columns: tuple[str, ...]) -> Facts:
    return {"format": kind, "columns": list(columns[:MOST_NAMED]), "further_columns": max(len(columns) - MOST_NAMED, 0)}


def _shapes(path: Path) -> set[str]:
    """Find the kinds of geometries: "point", "polygon" or both; empty if they cannot be read."""
    shapes = or_none(lambda: open_shapes(*read_checked(path, DEFAULT_LIMITS), DEFAULT_LIMITS).take([])[1])
    kinds = set() if shapes is None else {int(kind) for kind in np.unique(shapely.get_type_id(shapes))}
    names = {"point": {shapely.GeometryType.POINT}, "polygon": {shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON}}
    return {name for name, types in names.items() if kinds & types}


def _release_facts(path: Path) -> Facts:
    release = read_release(path)
    receipt = release.receipt
    return {
        "kind": "release",
        "of": release.family,
        "verified": "every file has the SHA-256 that the manifest lists, and the manifest fits the tables; a checksum, no signature",
        "mechanism": release.mechanism,
        "budget": str(receipt.total),
        "unit": receipt.unit,
        "neighbours": receipt.neighbours,
        "contributions": receipt.contributions,
        "numbers": release.finest_numbers,
        "uses": [],
    }


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


def _write_ids(facts: Facts) -> list[str]:
    """Write how many ids fit the regions, or how to ask for it."""
    if "ids" not in facts:
        return []
    if facts["ids"] is None:
        return ["How many ids fit the regions was not counted, since that is a look at private values: add --ids. The ledger will note it."]
    numbers = [f"{number:,} {'of no region' if name == NO_REGION else name}" for name, number in facts["ids"].items()]
    return [f"Curator only: of {sum(facts['ids'].values()):,} different ids, those of regions are {'; '.join(numbers)}."]


def _questions(columns: Sequence[Facts]) -> list[str]:
    """Write the question to the curator about columns with repeated values, as lines of text."""
    lines = ["Is one of these columns a person, a household or a vehicle? Then name it under [data] person:"] if columns else []
    for column in columns:
        repeated = RepeatedColumn(name=column["column"], values=column["values"], rows=column["rows"], once=column["once"])
        lines.append(f"  {repeated.name}: {repeated.consequence}")
    return lines


def write_lines(facts: Facts) -> list[str]:
    """Write the facts of `check` as lines of text."""
    if facts["kind"] == "release":
        most, family = facts["contributions"], FAMILIES[facts["of"]]
        number = f"{facts['numbers']:,} {family.report.parts}"
        bound = f", with at most {most:,} {family.counted if most > 1 else family.noun}" if facts["unit"] == "person" else ""
        return [
            f"A release of {facts['of']}: {facts['mechanism']}, {facts['budget']}, {number}.",
            f"Protects one {facts['unit']}{bound} ({facts['neighbours']}).",
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
        texts.append(f"As {use['as']}: {found_text or 'still to be said'}.")
        texts += [f"  missing: {missing}" for missing in use["missing"]] or ["  nothing is missing"]
        texts += [f"  bad rows: {use['bad_rows']}"] if "bad_rows" in use else []
        noun = FAMILIES[use["as"]].noun if use["as"] in FAMILIES else ""
        if each_row := say_each_row(noun, use["unread"]):
            texts.append(f"  {each_row} (--count COLUMN, or --count none)")
    texts += _write_ids(facts)
    texts += [advise_on_command_line(shape) for shape in facts.get("not_read", ())]
    texts += [f"Not as {kind}: {advise_on_command_line(refusal)}" for kind, refusal in facts.get("refused", {}).items()]
    return texts + _questions(facts.get("may_be_persons", ()))
