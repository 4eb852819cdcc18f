"""Which answers hold for what was just chosen: those that were given for it, those of an opened configuration, or what is proposed.

Files, regions and data are known by a digest: others need answers of their own. An opened configuration answers for those it names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from dpviz.app.state.draft import Draft
from dpviz.app.state.parts import Account, ChosenRegions, Files
from dpviz.app.state.toml import account_of, file_name, files_of, keys_of_regions
from dpviz.app.state.values import UPLOAD
from dpviz.data.roles import says_none
from dpviz.families import TRIP_FAMILY
from dpviz.publishing.config import DataKeys, DataPart, RegionsPart, ReleaseConfig

COLUMNS = ("x", "y", "geometry", "region", "origin", "destination", "count", "person", "slot")
"""Keys of [data] that name columns."""
_PLACES = {"geometry": ("x", "y", "geometry"), "x": ("geometry", "region"), "y": ("geometry", "region"), "region": ("x", "y", "geometry")}
"""By a column that says where a record lies, the others that are not proposed beside it."""


def opened_files(draft: Draft) -> ReleaseConfig | None:
    """Return the configuration that was opened last, if it names files of records."""
    return None if draft.opened is None or draft.opened.data.sample is not None else draft.opened


def names_files(draft: Draft, path: str) -> bool:
    """Return whether the opened configuration names the files of a path: an upload by its name, others by the end of their path."""
    config = opened_files(draft)
    if config is None:
        return False
    if draft.source == UPLOAD:
        return file_name(config.data.files[0]) == path
    named, typed = PurePath(config.data.files[0]), PurePath(path)
    return named == typed if named.is_absolute() else named.parts == typed.parts[-len(named.parts) :]


def take_files(draft: Draft, path: str, digest: str, propose: Callable[[], Mapping[str, Any]]) -> Files:
    """Return the answers for files of records.

    Args:
        draft: what was chosen before.
        path: of the files, or the name of an upload.
        digest: identifies them.
        propose: returns what is proposed of how texts are written, as keys of [data].
    """
    kept = draft.files
    if kept.digest == digest:
        return kept
    if names_files(draft, path) and draft.opened is not None:
        return replace(files_of(draft.opened), digest=digest, confirmed=True, drop_bad_rows=kept.drop_bad_rows)
    key = "trips" if draft.kind.family is TRIP_FAMILY else "points"
    crs = kept.data.crs or draft.uploaded.data.crs or draft.by_path.data.crs  # of the files before
    data = DataKeys(**{key: path, "engine": kept.data.engine, "crs": crs, **propose()})
    return Files(data=data, digest=digest, drop_bad_rows=kept.drop_bad_rows)


def fit_columns(draft: Draft, columns: Collection[str], header: str, found: Mapping[str, Any]) -> Files:
    """Return the answers for files whose columns are known: columns that they lack give way to what is found, which fills what is open.

    Args:
        draft: with the answers for these files.
        columns: of the files.
        header: identifies the columns.
        found: what is found, by key of [data].
    """
    kept = draft.files
    if kept.header == header:
        return kept
    data, values = kept.data, dict[str, Any]()
    is_named = draft.opened is not None and bool(kept.digest) and kept.data == files_of(draft.opened).data
    for key in COLUMNS:
        said, column = getattr(data, key), found.get(key)
        lacks = said is not None and not (key == "count" and says_none(said)) and not _has(columns, said)
        if lacks or (said is None and not (is_named and _says_place_without(data, key))):
            values[key] = column
    return replace(kept, data=replace(data, **values), header=header)


def _has(columns: Collection[str], said: Any) -> bool:
    return all(name in columns for name in ((said,) if isinstance(said, str) else said))


def _says_place_without(data: DataKeys, key: str) -> bool:
    """Return whether a configuration says where records lie by other columns than one, or leaves the number of records of points open."""
    if key == "count":
        return data.points is not None
    return any(getattr(data, other) is not None for other in _PLACES.get(key, ()))


def lacking_columns(draft: Draft, columns: Collection[str]) -> list[str]:
    """List the columns that the opened configuration names and the chosen files, which it names, do not have."""
    config = opened_files(draft)
    if config is None or not names_files(draft, file_name(draft.files.path or "")):
        return []
    named = [getattr(config.data, key) for key in COLUMNS]
    each = [name for said in named if said is not None for name in ((said,) if isinstance(said, str) else said)]
    return [name for name in dict.fromkeys(each) if name not in columns and not says_none(name)]


def take_regions(
    kept: ChosenRegions, named: RegionsPart | None, name: str, digest: str, propose: Callable[[], tuple[str, ...]]
) -> ChosenRegions:
    """Return the answers for a public file of regions.

    Args:
        kept: those that were given before.
        named: the regions of the opened configuration; None without them.
        name: of the file.
        digest: identifies it.
        propose: returns the proposed columns of levels.
    """
    if kept.digest == digest:
        return kept
    if named is not None and named.file is not None and file_name(named.file) == name:
        taken = keys_of_regions(named)
        return replace(taken, digest=digest, levels=taken.levels or propose())
    return replace(ChosenRegions(file=name, levels=propose(), h3=kept.h3, squares=kept.squares), digest=digest)


def take_account(draft: Draft, part: DataPart, digest: str, proposed: Account) -> Account:
    """Return the answers on the account of data.

    Args:
        draft: what was said before.
        part: where the data come from.
        digest: identifies them.
        proposed: what is proposed where nothing is said.
    """
    if draft.account.digest == digest:
        return draft.account
    config = draft.opened
    if config is None or (config.data.sample, config.data.files) != (part.sample, part.files):
        return replace(proposed, digest=digest)
    said = account_of(config)
    return replace(said if said.cap() is not None else replace(proposed, name=said.name), digest=digest)
