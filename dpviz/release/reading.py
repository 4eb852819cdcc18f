"""Read a release that was written: checked against its manifest, and equal in every field to what was released."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.arrow_memory import in_arrow_memory
from dpviz.errors import InputError
from dpviz.release.accounting import receipt_of
from dpviz.release.archive import MOST_BYTES, Members, Source, guarded, opened
from dpviz.release.contents import POINTS
from dpviz.release.files import MANIFEST, seal
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import SCHEMA_FILES, SCHEMA_VERSION, breach, facts_of
from dpviz.release.older import as_stated, is_older, manifest_now, name_then, table_now
from dpviz.release.partitions import LEVELS, TABLE, finest_counts, point_release
from dpviz.release.point_release import Release
from dpviz.release.trip_tables import ACROSS, DESTINATIONS, FLOWS, ORIGINS, REGIONS, STAGES, finest_trips, trip_release
from dpviz.release.utility import utility_facts

Facts = dict[str, Any]

MOST_MANIFEST_BYTES = 16 * 2**20
_NOT_WHOLE = "The release's tables and its manifest do not fit together: they were not written by dpviz, or by another version."


def read_release(source: Source) -> Release | FlowRelease:
    """A release as it was when `write_release` wrote it; it answers as before.

    The checks find accidents and careless edits. SHA-256 and seal are checksums, no signature: whoever makes a whole release
    anew, can make them fit.

    Args:
        source: the folder, a zip of it (a path, or an open binary file).

    Returns:
        A release that equals the one that was written in every field, bit for bit.

    Raises:
        InputError: no release; a file is missing, changed, or not listed; the manifest says something else than the tables; or
            it was published without GeoParquet.
    """
    with opened(source) as members:
        manifest = _manifest(members)
        tables = {name: guarded(_NOT_WHOLE, partial(_table, members, manifest, name)) for name in _needed(manifest)}
        release = guarded(_NOT_WHOLE, lambda: _release(manifest, tables))
        guarded(_NOT_WHOLE, partial(_check_main, tables, release))
    contradicted = guarded(_NOT_WHOLE, partial(_contradicted, manifest, release))
    if contradicted is not None:
        raise InputError(f"The manifest contradicts the release that it describes, at {contradicted}: it was changed, or made up.")
    return release


def read_manifest(source: Source) -> Facts:
    """The manifest of a release, after the same checks of every file as in `read_release`.

    In one of an earlier version (see its `schema_version`) levels are counted as they are today: 0 is the whole.

    Raises:
        InputError: no release, or a file is missing, changed, or not listed.
    """
    with opened(source) as members:
        return _manifest(members)


def _manifest(members: Members) -> Facts:
    text = guarded("The manifest cannot be read.", lambda: members.read(MANIFEST, MOST_MANIFEST_BYTES))
    manifest: Facts = guarded(
        "The manifest is not JSON.", lambda: json.loads(text.decode(), object_pairs_hook=_once, parse_constant=_no_constant)
    )
    version = _known_version(manifest)
    broken = guarded("The manifest breaks its schema.", lambda: breach(manifest, version))
    if broken is not None:
        raise InputError(f"The manifest breaks its schema at {broken}.")
    if manifest["seal"] != seal(manifest):
        raise InputError("The manifest was changed after the release was written: its seal does not fit.")
    _check_files(members, manifest["files"])
    return manifest_now(manifest)


def _known_version(manifest: Any) -> str:
    """The version of a manifest's schema; today's where none is stated, which that schema then refuses."""
    identity = manifest.get("identity") if isinstance(manifest, dict) else None
    version = identity.get("schema_version") if isinstance(identity, dict) else None
    if not isinstance(version, str):
        return SCHEMA_VERSION
    if version not in SCHEMA_FILES:
        known = " and ".join(SCHEMA_FILES)
        raise InputError(f"The release was written by another version of dpviz: this one reads manifests of versions {known}. Update it.")
    return version


def _check_files(members: Members, listed: list[Facts]) -> None:
    names = [entry["name"] for entry in listed]
    if len(set(names)) < len(names) or MANIFEST in names:
        raise InputError("The manifest lists a file twice.")
    strangers = sorted(set(members.sizes) - {MANIFEST, *names})
    if strangers:
        shown = "; ".join(repr(name[:60]) for name in strangers[:3])
        raise InputError(f"What the manifest does not list is in the release: {shown}. Take it out.")
    for entry in listed:
        if entry["name"] not in members.sizes:
            raise InputError(f"The release's {entry['name']} is missing.")
        found = guarded(f"The release's {entry['name']} cannot be read.", partial(members.digest, entry["name"]))
        if found != (entry["sha256"], entry["bytes"]):
            raise InputError(f"The release's {entry['name']} was changed after it was written: its SHA-256 does not fit.")


def _needed(manifest: Facts) -> list[str]:
    """The tables that the release is made of, and its main table where that is another one."""
    contents = manifest["contents"]
    main = [] if is_older(manifest) else [TABLE if contents["kind"] == POINTS else FLOWS]
    if contents["kind"] == POINTS:
        names = [*main, LEVELS]
    else:
        stems = [REGIONS] if contents["destinations"] is None else [ORIGINS, DESTINATIONS]
        names = [*main, STAGES, *(f"{stem}.parquet" for stem in stems), *([ACROSS] if contents["across"] else [])]
    if not {name_then(manifest, name) for name in names} <= {entry["name"] for entry in manifest["files"]}:
        raise InputError("The release was published without GeoParquet, so it cannot be read back; its files can.")
    return names


def _table(members: Members, manifest: Facts, name: str) -> Any:
    content = pa.BufferReader(in_arrow_memory(members.read(name_then(manifest, name), MOST_BYTES)))
    file = pq.ParquetFile(content)
    if sum(file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups)) > MOST_BYTES:
        raise InputError(f"The release's {name} unpacks to more than the limit of {MOST_BYTES:,} bytes.")
    if name in (f"{stem}.parquet" for stem in (REGIONS, ORIGINS, DESTINATIONS)):
        content.seek(0)
        return geopandas.read_parquet(content)
    return table_now(manifest, name, file.read(columns=[column for column in file.schema_arrow.names if column != "geometry"]))


def _check_main(tables: dict[str, Any], release: Release | FlowRelease) -> None:
    """Raise unless the main table, which the release is not read from, has its finest counts; older releases have none beside."""
    name, rows = (TABLE, finest_counts(release)) if isinstance(release, Release) else (FLOWS, finest_trips(release))
    found = tables.get(name, rows)
    if not set(rows.column_names) <= set(found.column_names) or not found.select(rows.column_names).equals(rows):
        raise InputError(f"The release's {name} has other counts than its tables of all levels.")


def _release(manifest: Facts, tables: dict[str, Any]) -> Release | FlowRelease:
    contents, steps = manifest["contents"], tuple(manifest["post_processing"])
    receipt = receipt_of(manifest["privacy"], manifest["accounting"])
    if contents["kind"] == POINTS:
        return point_release(contents, tables[LEVELS], receipt, steps)
    return trip_release(contents, tables, receipt, steps)


def _contradicted(manifest: Facts, release: Release | FlowRelease) -> str | None:
    """The first part of a manifest that does not follow from its release; None if all that can follow does."""
    facts = facts_of(release) | {"utility": utility_facts(release)}
    facts["kind"], stated = facts["contents"]["kind"], manifest | {"kind": manifest["identity"]["kind"]}
    if is_older(manifest):
        facts = as_stated(facts, stated)
    return next((name for name, fact in facts.items() if not _alike(fact, stated[name])), None)


def _alike(one: Any, other: Any) -> bool:
    """Whether two facts say the same; standard deviations may differ in the last digits, from one computer to another."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def _once(pairs: list[tuple[str, Any]]) -> Facts:
    if len({name for name, _ in pairs}) < len(pairs):
        raise InputError("The manifest has a name twice.")
    return dict(pairs)


def _no_constant(_: str) -> None:
    raise InputError("The manifest has a number that is not finite.")
