"""Many releases as one table, such as those of the months of a year."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.errors import InputError
from dpviz.release.base import NoisyRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.files import MANIFEST, read_manifest, read_release

_PLACES = {"partition_id": "id", "region": "id", "origin": "origin", "destination": "destination", "slot": "slot"}
_NUMBERS = ("count", "ci_low", "ci_high")


def read_releases(folder: Path | str) -> pd.DataFrame:
    """Read all releases in a folder, each in a folder of its own or a zip of one, as one long table.

    Args:
        folder: anything in it that is no release is passed over.

    Returns:
        DataFrame with period (of a series, such as 2026-11; of other releases the name of their folder), folder, level (number), id of the
        region or partition (of trips origin and destination), slot where there are categories ("all" for all together), count, ci_low and
        ci_high: a row for each number, ordered by period. Where data chose the partitions, one id is another place in each release.

    Raises:
        InputError: there is no such folder, no release in it, or one that was changed.

    >>> read_releases("no such folder")
    Traceback (most recent call last):
    ...
    dpviz.errors.InputError: There is no folder with releases: give the one around the folders that were written.
    """
    root = Path(folder)
    found = [path for path in sorted(root.iterdir()) if path.suffix == ".zip" or (path / MANIFEST).is_file()] if root.is_dir() else []
    if not found:
        raise InputError("There is no folder with releases: give the one around the folders that were written.")
    tables = []
    for path in found:
        series = read_manifest(path)["dataset"].get("series")
        table = _read_levels(read_release(path))
        table.insert(0, "period", path.stem if series is None else series["name"])
        table.insert(1, "folder", path.name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True).sort_values("period", kind="stable", ignore_index=True)


def _read_levels(release: NoisyRelease) -> pd.DataFrame:
    """Make the table of all levels of a release, and of all levels of its categories."""
    levels: list[Any] = [*range(release.level_number(None) + 1)]
    if isinstance(release, CrossRelease):
        levels = [(level, slot) for level in levels for slot in range(release.categories.depth + 1)]
    tables = []
    for level in levels:
        frame = release.to_frame(level)
        table = pd.DataFrame({name: frame[column] for column, name in _PLACES.items() if column in frame})
        table.insert(0, "level", level[0] if isinstance(level, tuple) else level)
        tables.append(table.assign(**{name: frame[name] for name in _NUMBERS}))
    return pd.concat(tables, ignore_index=True)
