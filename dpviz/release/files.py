"""A release as a folder or a zip archive: written completely or not at all, and read back only if it agrees with its manifest."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq

if sys.platform != "win32":
    import fcntl

from dpviz.arrow_memory import copy_to_arrow
from dpviz.errors import DpvizError, InputError, SettingError
from dpviz.families import FAMILIES
from dpviz.release.base import NoisyRelease
from dpviz.release.facts import FILE_NAME, MANIFESTS, SCHEMA_FILE, SCHEMA_VERSION, SCHEMA_VERSIONS, Manifest, schema_for
from dpviz.release.manifest import (
    describe_release,
    describe_utility,
    encode_manifest,
    find_violation,
    read_receipt,
)
from dpviz.release.older import LATER_COLUMNS, keep_stated_intervals, translate_manifest
from dpviz.release.tables import DESTINATIONS, FORMATS, ORIGINS, REGIONS, USUAL_FORMATS, Member, Plan

Source = str | os.PathLike[str] | BinaryIO
"""A release to read: path of a folder or of a zip archive, or an open file with an archive."""
T = TypeVar("T")
MOST_MEMBERS = 256
MOST_BYTES = 4 * 2**30
LITTER = (".DS_Store", "Thumbs.db")
"""Files that file managers leave in folders. They are not part of a release and never read."""
_BYTES_PER_READ = 2**20
_ORDINARY_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
Facts = dict[str, Any]
MANIFEST, SCHEMA = "manifest.json", SCHEMA_FILE.name
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # of all files in an archive, so that equal releases have equal archives
_EXTRA_FORMATS = {".html": "HTML", ".json": "JSON", ".md": "Markdown", ".pdf": "PDF", ".png": "PNG", ".svg": "SVG", ".txt": "text"}
MOST_MANIFEST_BYTES = 16 * 2**20
_MISMATCH = "The release's tables and its manifest do not fit together: they were not written by dpviz, or by another version."


@dataclass(frozen=True)
class Members:
    """The files of a release by name, in a folder or in an archive.

    Attributes:
        sizes: the declared size of each file, in bytes.
        open: opens a file by its name.
    """

    sizes: dict[str, int]
    open: Callable[[str], BinaryIO]

    def read(self, name: str, most: int) -> bytes:
        """Read the content of a file.

        Args:
            name: of the file.
            most: limit of its size, in bytes.

        Raises:
            InputError: the file is missing, or larger than the limit.
        """
        if name not in self.sizes:
            raise InputError(f"The release has no {name}.")
        with self.open(name) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InputError(f"The release's {name} is larger than the limit of {most:,} bytes.")
        return content

    def digest(self, name: str) -> tuple[str, int]:
        """Compute SHA-256 and size in bytes of a file. The file is read in pieces, and not beyond `MOST_BYTES`."""
        digest, size = hashlib.sha256(), 0
        with self.open(name) as file:
            while size <= MOST_BYTES and (part := file.read(_BYTES_PER_READ)):
                digest.update(part)
                size += len(part)
        return digest.hexdigest(), size


def refuse_all_errors(rule: str, read: Callable[[], T]) -> T:
    """Call a function and turn every error into an `InputError`.

    The new error is raised outside the handler, so that it has no reference to the old one, whose text may quote values.

    Args:
        rule: what is wrong if the call fails, as a sentence.
        read: the function.

    Returns:
        The result of `read`.

    Raises:
        InputError: `read` failed. An `InputError` of `read` is raised again. For another error of dpviz, its text follows the rule. For
            any other error, the text is left out.
    """
    error = InputError(rule)
    try:
        return read()
    except InputError as refusal:
        error = refusal
    except DpvizError as refusal:
        error = InputError(f"{rule} {refusal}")
    except Exception:  # noqa: BLE001, S110  (libraries document no common root)
        pass
    raise error


@contextmanager
def open_members(source: Source) -> Iterator[Members]:
    """Open a folder or a zip archive, for as long as the block lasts.

    Args:
        source: path of a folder or a zip archive, or an open binary file with a zip archive.

    Yields:
        Its files.

    Raises:
        InputError: no such folder or file; not a zip archive; too many or too large members; or members that are not plain files.
    """
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        yield _check_limits(refuse_all_errors("The folder cannot be read.", lambda: _list_folder(Path(source))))
        return
    with refuse_all_errors("The file is not a zip archive, or it cannot be read.", lambda: _open_archive(source)) as archive:
        yield _check_limits(refuse_all_errors("The zip archive cannot be read.", lambda: _list_archive(archive)))


def _open_archive(source: Source) -> zipfile.ZipFile:
    if isinstance(source, str | os.PathLike):
        if not Path(source).is_file():
            raise InputError("A release is a folder, or a zip of one: there is no such folder or file.")
        return zipfile.ZipFile(source)
    content = source.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"The archive is larger than the limit of {MOST_BYTES:,} bytes.")
    return zipfile.ZipFile(io.BytesIO(content))


def _list_folder(folder: Path) -> Members:
    sizes = {}
    for path in (path for path in folder.iterdir() if path.name not in LITTER):
        if path.is_symlink() or not path.is_file():
            raise InputError("The folder holds something that is not a plain file; a release has neither folders nor links in it.")
        sizes[path.name] = path.stat().st_size
    return Members(sizes, lambda name: (folder / name).open("rb"))


def _list_archive(archive: zipfile.ZipFile) -> Members:
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
    """Raise an error unless a member of an archive is a plain file that can be read safely."""
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in member.filename:
        raise InputError("The archive has a member whose path leads out of it.")
    if (member.external_attr >> 16) & 0o170000 == 0o120000:
        raise InputError("The archive has a member that is a link.")
    if member.flag_bits & 0x1:
        raise InputError("The archive is encrypted; unpack it and zip it without a password.")
    if member.compress_type not in _ORDINARY_METHODS:
        raise InputError("The archive is compressed in an unusual way; zip it with the ordinary method (deflate).")


def _check_limits(members: Members) -> Members:
    """Return the files; raise an error if there are too many or they are too large."""
    if len(members.sizes) > MOST_MEMBERS:
        raise InputError(f"The release has more files than the limit of {MOST_MEMBERS:,}.")
    if sum(members.sizes.values()) > MOST_BYTES:
        raise InputError(f"The release's files are larger than the limit of {MOST_BYTES:,} bytes together.")
    return members


def write_release(
    release: NoisyRelease,
    folder: str | os.PathLike[str],
    manifest: Facts,
    *,
    formats: Sequence[str] = USUAL_FORMATS,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a release with its manifest into a new folder, completely or not at all.

    Everything is written into a hidden folder beside the target, synced to the disk, and renamed in one step.

    Args:
        release: of points, trips or areas, with noise from the operating system's entropy.
        folder: path of the new folder. It must not exist; its parent must.
        manifest: the result of `describe` for this release.
        formats: some of "geoparquet", "geojson", "csv" and "geopackage". A release can only be read back if "geoparquet" is among them.
        files: additional files by name, such as {"report.html": b"..."}.

    Returns:
        The folder. Its `manifest.json` lists each file with its SHA-256, and each file that could not be made with the reason.

    Raises:
        RefusedError: a simulation, a reference that is not private, or a release of counts that are marked; nothing is written.
        SettingError: the folder exists; unknown formats; an invalid name of a file; or the manifest of another release.
        DpvizError: writing failed, for instance because the disk is full; nothing is left behind.

    >>> import tempfile
    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1, 2, 9], [1, 3, 9], domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(1), dv.Entropy.system())
    >>> words = dict(name="Walks", curator="A town", description="Made up.", region="A plane", intended_use="An example")
    >>> manifest = dv.describe(release, dv.Publication(**words, draws=1, truth_seen=False))
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = dv.write_release(release, Path(parent) / "walks", manifest, formats=["geoparquet", "csv"])
    ...     names = sorted(path.name for path in folder.iterdir())
    >>> names
    ['levels.csv', 'levels.parquet', 'manifest.json', 'manifest.schema.json', 'partitions.csv', 'partitions.parquet']
    """
    release.refuse_unpublishable()
    new_folder, extra = Path(folder), dict(files or {})
    _check_arguments(release, manifest, tuple(formats), extra)
    if os.path.lexists(new_folder):
        raise SettingError("The folder for the release exists already; releases are never overwritten. Choose another one.")
    plan = FAMILIES[release.family].layout.plan(release, tuple(formats))
    write_folder(new_folder, lambda temporary: _write_files(temporary, plan, manifest, extra))
    return new_folder


def zip_release(folder: str | os.PathLike[str]) -> bytes:
    """Pack a release's folder into a zip archive. The same folder always gives the same bytes.

    Args:
        folder: path of a folder that `write_release` made.

    Returns:
        The content of the archive, which `read_release` also reads.

    Raises:
        DpvizError: there is no manifest, or a file that it lists cannot be read.

    >>> zip_release("no such folder")
    Traceback (most recent call last):
    ...
    dpviz.errors.DpvizError: The folder is not a whole release: its manifest.json, or a file that it lists, cannot be read.
    """
    source, packed = Path(folder), io.BytesIO()
    try:
        names = [MANIFEST, *(entry["name"] for entry in json.loads((source / MANIFEST).read_bytes())["files"])]
        contents = {name: (source / name).read_bytes() for name in names if re.fullmatch(FILE_NAME, name)}
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


def compute_seal(manifest: Facts) -> str:
    """Compute the SHA-256 of a manifest without its seal, as JSON with sorted names and no spaces, in hex."""
    unsealed = {name: value for name, value in manifest.items() if name != "seal"}
    return hashlib.sha256(json.dumps(unsealed, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def choose_partial_path(target: Path) -> Path:
    """Choose the path of the temporary folder that is filled and then renamed to `target`: hidden, beside it, with a random name."""
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.partial"


def write_folder(target: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder that is complete as soon as it exists under its name.

    Args:
        target: path of the folder, which must not exist.
        fill: writes files, and no folders, into the folder that it is given.

    Raises:
        DpvizError: writing failed; nothing is left behind.
    """
    temporary = choose_partial_path(target)
    handle = reason = None
    try:
        remove_remains(target)
        handle = _make_locked(temporary)
        fill(temporary)
        for path in sorted(temporary.iterdir()):
            _sync(path)
        _sync(temporary)
        temporary.rename(target)
        _sync(target.parent)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if handle is not None:
            os.close(handle)
    if reason is not None:
        raise DpvizError(f"The release could not be written ({reason}).")


def remove_remains(target: Path) -> bool:
    """Remove the temporary folders of `target` whose process was killed, and return whether there were any.

    A process locks the folder that it fills, and the system takes the lock back when the process ends. So a folder that can be locked
    is one that nobody fills any more. On Windows, which has no such locks, nothing is removed.
    """
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.partial")
    removed = False
    with suppress(OSError):
        for folder in [path for path in target.parent.iterdir() if pattern.fullmatch(path.name)]:
            handle = _lock(folder, waits=False)
            if handle is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)
                removed = removed or not folder.exists()
    return removed


def _make_locked(folder: Path) -> int | None:
    """Make a temporary folder, and return the handle that locks it; None if the system has no such locks."""
    while True:
        folder.mkdir()
        handle = _lock(folder, waits=True)
        if folder.exists():  # else it was taken for remains before it was locked
            return handle
        if handle is not None:
            os.close(handle)


def _lock(folder: Path, *, waits: bool) -> int | None:
    """Lock a folder until the handle is closed or the process ends; None if it cannot be locked."""
    if sys.platform == "win32":
        return None
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except OSError:
            os.close(handle)
        else:
            return handle
    return None


def _sync(path: Path) -> None:
    """Sync a file or folder to the disk."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check_arguments(release: NoisyRelease, manifest: Facts, formats: tuple[str, ...], extra: Facts) -> None:
    if not formats or not set(formats) <= set(FORMATS):
        raise SettingError(f"The formats of a release are some of {', '.join(FORMATS)}.")
    for name, content in extra.items():
        if not isinstance(name, str) or not re.fullmatch(FILE_NAME, name) or name in (MANIFEST, SCHEMA):
            raise SettingError("An additional file of a release needs a plain name: letters, digits, dots, underscores and hyphens.")
        if not isinstance(content, bytes):
            raise SettingError("The content of an additional file of a release must be bytes.")
    if not isinstance(manifest, dict) or any(manifest.get(name) != value for name, value in describe_release(release).items()):
        raise SettingError("The manifest belongs to another release; make one with describe(release, publication).")


def _write_files(folder: Path, plan: Plan, manifest: Facts, extra: dict[str, bytes]) -> None:
    entries = []
    for member in plan:
        if isinstance(member, Member):
            member.write(folder / member.name)
            entries.append(_describe_file(folder / member.name, member.format, member.about))
    for name, content in ({SCHEMA: schema_for(manifest["identity"]["kind"])} | extra).items():
        if (folder / name).exists():
            raise SettingError("An additional file has the name of one of the release's own files; rename it.")
        (folder / name).write_bytes(content)
        purpose = "What every field of the manifest means." if name == SCHEMA else "For people, made with the release."
        entries.append(_describe_file(folder / name, _EXTRA_FORMATS.get(Path(name).suffix, "other"), purpose))
    left_out = [{"name": member.name, "reason": member.reason} for member in plan if not isinstance(member, Member)]
    complete = {**manifest, "files": entries, "left_out": left_out}
    complete["seal"] = compute_seal(complete)
    violation = find_violation(complete)
    if violation is not None:
        raise SettingError(f"The manifest breaks its schema: {violation} Make it with describe(release, publication).")
    (folder / MANIFEST).write_bytes(encode_manifest(complete))


def _describe_file(path: Path, format_name: str, purpose: str) -> Facts:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "format": format_name, "about": purpose, "bytes": path.stat().st_size, "sha256": digest}


def read_release(source: Source) -> NoisyRelease:
    """Read a release that `write_release` wrote.

    The checks find accidents and careless edits. SHA-256 and seal are checksums, not signatures: someone who makes a whole new release
    can make them fit.

    Args:
        source: path of the folder or of a zip archive of it, or an open binary file with the archive.

    Returns:
        A release that is the same as the one that was written (`same_as`), bit for bit.

    Raises:
        InputError: not a release; a file is missing, changed, or not listed; the manifest contradicts the tables; or the release was
            published without GeoParquet.

    >>> read_release("no such folder")
    Traceback (most recent call last):
    ...
    dpviz.errors.InputError: A release is a folder, or a zip of one: there is no such folder or file.
    """
    with open_members(source) as members:
        return refuse_all_errors(_MISMATCH, partial(_rebuild_release, members, _read_checked_manifest(members)))


def read_manifest(source: Source) -> Facts:
    """Read the manifest of a release, after the same checks of its files as in `read_release`.

    If an earlier version of dpviz wrote it (see its `schema_version`), settings have today's names.

    Args:
        source: as for `read_release`.

    Raises:
        InputError: not a release; or a file is missing, changed, or not listed.

    >>> read_manifest("no such folder")
    Traceback (most recent call last):
    ...
    dpviz.errors.InputError: A release is a folder, or a zip of one: there is no such folder or file.
    """
    with open_members(source) as members:
        return _read_checked_manifest(members)


def _read_checked_manifest(members: Members) -> Facts:
    text = refuse_all_errors("The manifest cannot be read.", lambda: members.read(MANIFEST, MOST_MANIFEST_BYTES))
    manifest: Facts = refuse_all_errors(
        "The manifest is not JSON.",
        lambda: json.loads(text.decode(), object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant),
    )
    _check_version(manifest)
    violation = refuse_all_errors("The manifest breaks its schema.", lambda: find_violation(manifest))
    if violation is not None:
        raise InputError(f"The manifest breaks its schema: {violation} It was changed, or not written by dpviz: fetch the release again.")
    if manifest["seal"] != compute_seal(manifest):
        raise InputError("The manifest was changed after the release was written: its seal does not fit.")
    _check_files(members, manifest["files"])
    return translate_manifest(manifest)


def _check_version(manifest: Any) -> None:
    """Refuse a manifest of another version of the schema; where none is stated, the schema's own check reports the missing field."""
    identity = manifest.get("identity") if isinstance(manifest, dict) else None
    version = identity.get("schema_version") if isinstance(identity, dict) else None
    if isinstance(version, str) and version not in SCHEMA_VERSIONS:
        known = ", ".join(SCHEMA_VERSIONS)
        raise InputError(
            f"The release was written by another version of dpviz: the installed one reads manifests of versions {known}. Update dpviz."
        )


def _check_files(members: Members, entries: list[Facts]) -> None:
    names = [entry["name"] for entry in entries]
    if len(set(names)) < len(names) or MANIFEST in names:
        raise InputError("The manifest lists a file twice.")
    unlisted = sorted(set(members.sizes) - {MANIFEST, *names})
    if unlisted:
        names_shown = "; ".join(repr(name[:60]) for name in unlisted[:3])
        raise InputError(f"The release has files that its manifest does not list: {names_shown}. Remove them.")
    for entry in entries:
        if entry["name"] not in members.sizes:
            raise InputError(f"The release's {entry['name']} is missing.")
        digest = refuse_all_errors(f"The release's {entry['name']} cannot be read.", partial(members.digest, entry["name"]))
        if digest != (entry["sha256"], entry["bytes"]):
            raise InputError(f"The release's {entry['name']} was changed after it was written: its SHA-256 does not fit.")


def _rebuild_release(members: Members, stated: Facts) -> NoisyRelease:
    """Rebuild the release of a manifest from its tables, and compare it with the main table and with all that the manifest states."""
    manifest = MANIFESTS.read(Manifest, stated, "manifest")
    layout = FAMILIES[manifest.contents.kind].layout
    names = [layout.main, *layout.tables(manifest.contents)]
    if not set(names) <= {file.name for file in manifest.files}:
        raise InputError("The release was published without GeoParquet, so dpviz cannot read it back. Open its files with other software.")
    tables = {name: _read_table(members, name) for name in names}
    receipt = read_receipt(manifest.privacy, manifest.accounting)
    release: NoisyRelease = layout.rebuild(manifest.contents, tables, receipt, manifest.post_processing)
    rows, table = layout.finest(release), tables[layout.main]
    if not set(rows.column_names) <= set(table.column_names) or not table.select(rows.column_names).cast(rows.schema).equals(rows):
        raise InputError(f"The release's {layout.main} has other counts than its tables of all levels.")
    contradicted = _find_contradiction(stated, release)
    if contradicted is not None:
        raise InputError(f"The manifest contradicts the release that it describes, at {contradicted}: it was changed, or made up.")
    return release


def _read_table(members: Members, name: str) -> Any:
    """Read a Parquet file of a release: a GeoDataFrame of regions, or an Arrow table without geometry."""
    content = pa.BufferReader(copy_to_arrow(members.read(name, MOST_BYTES)))
    file = pq.ParquetFile(content)
    if sum(file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups)) > MOST_BYTES:
        raise InputError(f"The release's {name} unpacks to more than the limit of {MOST_BYTES:,} bytes.")
    if name in (f"{stem}.parquet" for stem in (REGIONS, ORIGINS, DESTINATIONS)):
        content.seek(0)
        return geopandas.read_parquet(content)
    return file.read(columns=[column for column in file.schema_arrow.names if column != "geometry"])


def _find_contradiction(manifest: Facts, release: NoisyRelease) -> str | None:
    """Find the first part of a manifest that contradicts its release; None if there is none."""
    facts = describe_release(release) | {"utility": MANIFESTS.write(describe_utility(release))}
    facts["kind"], stated = facts["contents"]["kind"], manifest | {"kind": manifest["identity"]["kind"]}
    if manifest["identity"]["schema_version"] != SCHEMA_VERSION:
        facts = keep_stated_intervals(facts, stated)
    columns, known = facts["contents"]["columns"], stated["contents"]["columns"]
    facts["contents"]["columns"] = {name: text for name, text in columns.items() if name in known or name not in LATER_COLUMNS}
    return next((name for name, value in facts.items() if not _equal_up_to_rounding(value, stated[name])), None)


def _equal_up_to_rounding(one: Any, other: Any) -> bool:
    """Return whether two facts are equal, up to the last digits of numbers, which may differ from one computer to another."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal_up_to_rounding(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal_up_to_rounding, one, other))
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> Facts:
    if len({name for name, _ in pairs}) < len(pairs):
        raise InputError("The manifest has the same field twice.")
    return dict(pairs)


def _refuse_constant(_: str) -> None:
    raise InputError("The manifest has a number that is not finite.")
