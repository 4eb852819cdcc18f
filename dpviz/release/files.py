"""A release as a folder or a zip: written whole or not at all, read back only if it agrees with its manifest."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.arrow_memory import in_arrow_memory
from dpviz.errors import DpvizError, InputError, SettingError
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import POINTS, SCHEMA_FILE, SCHEMA_FILES, SCHEMA_VERSION, breach, facts_of, receipt_of, spelt, utility_facts
from dpviz.release.older import as_stated, is_older, manifest_now, name_then, table_now
from dpviz.release.point_release import Release
from dpviz.release.tables import (
    ACROSS,
    DESTINATIONS,
    FLOWS,
    FORMATS,
    LEVELS,
    ORIGINS,
    REGIONS,
    STAGES,
    TABLE,
    Member,
    Plan,
    finest_counts,
    finest_trips,
    point_files,
    point_release,
    trip_files,
    trip_release,
)

Source = str | os.PathLike[str] | BinaryIO
T = TypeVar("T")

MOST_MEMBERS = 256
MOST_BYTES = 4 * 2**30
LITTER = (".DS_Store", "Thumbs.db")
"""What file managers leave in folders that they show: no part of a release, and never read."""
_AT_ONCE = 2**20
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Members:
    """Files of a release by name, whatever holds them.

    Attributes:
        sizes: bytes of each, as declared.
        open: opens one by name.
    """

    sizes: dict[str, int]
    open: Callable[[str], BinaryIO]

    def read(self, name: str, most: int) -> bytes:
        """A file's content.

        Raises:
            InputError: it is missing, or larger than `most` bytes.
        """
        if name not in self.sizes:
            raise InputError(f"The release has no {name}.")
        with self.open(name) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InputError(f"The release's {name} is larger than the limit of {most:,} bytes.")
        return content

    def digest(self, name: str) -> tuple[str, int]:
        """SHA-256 and number of bytes of a file, read piece by piece and never beyond the limit."""
        digest, size = hashlib.sha256(), 0
        with self.open(name) as file:
            while size <= MOST_BYTES and (part := file.read(_AT_ONCE)):
                digest.update(part)
                size += len(part)
        return digest.hexdigest(), size


def guarded(rule: str, read: Callable[[], T]) -> T:
    """What `read` gives; whatever goes wrong becomes an InputError, raised outside the handler so that it carries no values.

    Raises:
        InputError: with the rule, and the words of our own error if it was one.
    """
    error = InputError(rule)
    try:
        return read()
    except InputError as own:
        error = own
    except DpvizError as own:
        error = InputError(f"{rule} {own}")
    except Exception:  # noqa: BLE001, S110  (libraries document no common root)
        pass
    raise error


@contextmanager
def opened(source: Source) -> Iterator[Members]:
    """The files of a folder, a zip, or an open binary file that holds a zip.

    Raises:
        InputError: no such folder or file, no zip, too many or too large members, or members that are no plain files.
    """
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        yield _checked(guarded("The folder cannot be read.", lambda: _folder(Path(source))))
        return
    with guarded("The file is not a zip archive, or it cannot be read.", lambda: _archive(source)) as archive:
        yield _checked(guarded("The zip archive cannot be read.", lambda: _zip(archive)))


def _archive(source: Source) -> zipfile.ZipFile:
    if isinstance(source, str | os.PathLike):
        if not Path(source).is_file():
            raise InputError("A release is a folder, or a zip of one: there is no such folder or file.")
        return zipfile.ZipFile(source)
    content = source.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"The archive is larger than the limit of {MOST_BYTES:,} bytes.")
    return zipfile.ZipFile(io.BytesIO(content))


def _folder(folder: Path) -> Members:
    sizes = {}
    for path in (path for path in folder.iterdir() if path.name not in LITTER):
        if path.is_symlink() or not path.is_file():
            raise InputError("The folder holds something that is no plain file; a release has neither folders nor links in it.")
        sizes[path.name] = path.stat().st_size
    return Members(sizes, lambda name: (folder / name).open("rb"))


def _zip(archive: zipfile.ZipFile) -> Members:
    members = [member for member in archive.infolist() if not member.is_dir() and PurePosixPath(member.filename).name not in LITTER]
    for member in members:
        _check_member(member)
    paths = [PurePosixPath(member.filename) for member in members]
    if len({path.parent for path in paths}) > 1 or any(len(path.parts) > 2 for path in paths):
        raise InputError("The archive must hold the files of one release, all in one folder, or in none.")
    by_name = {path.name: member for path, member in zip(paths, members, strict=True)}
    if len(by_name) < len(members):
        raise InputError("The archive has two members of one name.")
    return Members({name: member.file_size for name, member in by_name.items()}, lambda name: archive.open(by_name[name]))  # type: ignore[return-value,arg-type]


def _check_member(member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in member.filename:
        raise InputError("The archive has a member whose path leads out of it.")
    if (member.external_attr >> 16) & 0o170000 == 0o120000:
        raise InputError("The archive has a member that is a link.")
    if member.flag_bits & 0x1:
        raise InputError("The archive is encrypted; unpack it and zip it without a password.")
    if member.compress_type not in _PLAIN_METHODS:
        raise InputError("The archive is compressed in an unusual way; zip it with the ordinary method (deflate).")


def _checked(members: Members) -> Members:
    if len(members.sizes) > MOST_MEMBERS:
        raise InputError(f"The release has more files than the limit of {MOST_MEMBERS:,}.")
    if sum(members.sizes.values()) > MOST_BYTES:
        raise InputError(f"The release's files are larger than the limit of {MOST_BYTES:,} bytes together.")
    return members


Facts = dict[str, Any]

MANIFEST, SCHEMA = "manifest.json", SCHEMA_FILE.name
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_EXTRA_FORMATS = {".html": "HTML", ".json": "JSON", ".md": "Markdown", ".pdf": "PDF", ".png": "PNG", ".svg": "SVG", ".txt": "text"}


def write_release(
    release: Release | FlowRelease,
    folder: str | os.PathLike[str],
    manifest: Facts,
    *,
    formats: Sequence[str] = FORMATS,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a release with its manifest: either the whole folder is there, or nothing.

    Everything is written into a hidden folder beside the target, forced to disk and renamed in one step.

    Args:
        release: of points or trips, drawn with entropy of the operating system.
        folder: where to; must not exist, but the folder around it must.
        manifest: as `describe` gave it for this release.
        formats: some of "geoparquet", "geojson" and "csv"; only with "geoparquet" can the release be read back.
        files: further members by name, such as {"report.html": ...}.

    Returns:
        The folder. `manifest.json` lists each file with its SHA-256, and what could not be written with the reason.

    Raises:
        RefusedError: a simulation, or a reference that is not private; nothing is written.
        SettingError: the folder exists, unknown formats, a bad name of a file, or the manifest of another release.
        DpvizError: the disk does not take it; nothing is left behind.
    """
    release.refuse_unpublishable()
    target, extra = Path(folder), dict(files or {})
    _check(release, manifest, tuple(formats), extra)
    if os.path.lexists(target):
        raise SettingError("The folder for the release exists already; releases are never overwritten. Choose another one.")
    plan = point_files(release, tuple(formats)) if isinstance(release, Release) else trip_files(release, tuple(formats))
    write_whole(target, lambda fresh: _fill(fresh, plan, manifest, extra))
    return target


def zipped(folder: str | os.PathLike[str]) -> bytes:
    """A release's folder as a zip archive; the same folder gives the same bytes.

    Raises:
        DpvizError: there is no manifest, or a file that it lists cannot be read.
    """
    source, packed = Path(folder), io.BytesIO()
    try:
        names = [MANIFEST, *(entry["name"] for entry in json.loads((source / MANIFEST).read_bytes())["files"])]
        contents = {name: (source / name).read_bytes() for name in names if FILE_NAME.fullmatch(name)}
    except (OSError, ValueError, LookupError, TypeError):
        contents = {}
    if not contents:
        raise DpvizError("The folder is not a whole release: its manifest.json, or a file that it lists, cannot be read.")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            member = zipfile.ZipInfo(name, _ZIP_TIME)
            member.external_attr, member.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return packed.getvalue()


def seal(manifest: Facts) -> str:
    """SHA-256 of a manifest without its seal, in a spelling that does not depend on spaces or the order of names."""
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def partial_beside(target: Path) -> Path:
    """Where a folder is filled before it gets its name: hidden, beside it, and new each time."""
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.partial"


def write_whole(target: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder that is complete from the moment it has its name.

    Args:
        target: does not exist.
        fill: puts files, and no folders, into the folder that it is given.

    Raises:
        DpvizError: the disk does not take it.
    """
    fresh = partial_beside(target)
    reason = None
    try:
        fresh.mkdir()
        fill(fresh)
        for path in sorted(fresh.iterdir()):
            _force(path)
        _force(fresh)
        fresh.rename(target)
        _force(target.parent)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    if reason is not None:
        raise DpvizError(f"The release could not be written ({reason}).")


def _force(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check(release: Release | FlowRelease, manifest: Facts, formats: tuple[str, ...], extra: Facts) -> None:
    if not formats or not set(formats) <= set(FORMATS):
        raise SettingError(f"The formats of a release are some of {', '.join(FORMATS)}.")
    for name, content in extra.items():
        if not isinstance(name, str) or not FILE_NAME.fullmatch(name) or name in (MANIFEST, SCHEMA):
            raise SettingError("A further file of a release needs a plain name: letters, digits, dots, underscores and hyphens.")
        if not isinstance(content, bytes):
            raise SettingError("A further file of a release must be given as bytes.")
    if not isinstance(manifest, dict) or any(manifest.get(name) != value for name, value in facts_of(release).items()):
        raise SettingError("The manifest is not that of this release; make it with describe(release, publication).")


def _fill(fresh: Path, plan: Plan, manifest: Facts, extra: dict[str, bytes]) -> None:
    listed = []
    for member in plan:
        if isinstance(member, Member):
            member.write(fresh / member.name)
            listed.append(_entry(fresh / member.name, member.format, member.about))
    for name, content in ({SCHEMA: SCHEMA_FILE.read_bytes()} | extra).items():
        if (fresh / name).exists():
            raise SettingError("A further file of a release has the name of one of its own files.")
        (fresh / name).write_bytes(content)
        about = "What every field of the manifest means." if name == SCHEMA else "For people, made with the release."
        listed.append(_entry(fresh / name, _EXTRA_FORMATS.get(Path(name).suffix, "other"), about))
    left_out = [{"name": each.name, "reason": each.reason} for each in plan if not isinstance(each, Member)]
    whole = {**manifest, "files": listed, "left_out": left_out}
    whole["seal"] = seal(whole)
    broken = breach(whole)
    if broken is not None:
        raise SettingError(f"The manifest breaks its schema at {broken}; make it with describe(release, publication).")
    (fresh / MANIFEST).write_bytes(spelt(whole))


def _entry(path: Path, kind: str, about: str) -> Facts:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "format": kind, "about": about, "bytes": path.stat().st_size, "sha256": digest}


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
