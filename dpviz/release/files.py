"""Write a release as a folder, all of it or nothing; and pack the folder."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpviz.errors import DpvizError, SettingError
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import SCHEMA_FILE, breach, facts_of, spelt
from dpviz.release.members import FORMATS, Member, Plan
from dpviz.release.partitions import point_files
from dpviz.release.point_release import Release
from dpviz.release.trips import trip_files

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
