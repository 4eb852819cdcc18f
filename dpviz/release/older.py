"""Releases of earlier versions of dpviz: converted to today's form when they are read."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pyarrow as pa

from dpviz.release.nouns import POINTS
from dpviz.release.tables import FLOWS, LEVELS, STAGES, TABLE

Facts = dict[str, Any]

_OLDER_NAMES = {LEVELS: TABLE, STAGES: FLOWS}
"""Today's names of tables, and what they were called up to version 1.0, when the main table had all levels."""
_LATER_COLUMNS = ("origin_lng", "origin_lat", "dest_lng", "dest_lat")
_INTERVAL_COLUMNS = ("ci_low", "ci_high", "all_low", "all_high")
"""Columns of files that earlier versions did not write, under the same version of the schema."""


def is_older(manifest: Facts) -> bool:
    """Return whether a manifest has version 1.0 of the schema. Versions 2.0 and 2.1 differ from today's in nothing that is read."""
    return bool(manifest["identity"]["schema_version"] == "1.0")


def stored_name(manifest: Facts, name: str) -> str:
    """Return the name that today's table `name` had in the version that wrote a release."""
    return _OLDER_NAMES.get(name, name) if is_older(manifest) else name


def upgrade_table(manifest: Facts, name: str, table: Any) -> Any:
    """Convert a table to today's numbering of levels.

    Up to version 1.0, level 0 of points was the finest, and a column `depth` had today's numbers.

    Args:
        manifest: of the release.
        name: today's name of the table.
        table: the Arrow table as it was read.
    """
    if not is_older(manifest) or name != LEVELS:
        return table
    depth = table.column("depth").cast(pa.int32())
    return table.set_column(table.schema.get_field_index("level"), "level", depth).drop_columns(["depth"])


def upgrade_manifest(manifest: Facts) -> Facts:
    """Convert a manifest to today's numbering of levels; its version, files and seal are unchanged.

    Up to version 1.0, the levels of steps were counted upwards from the deepest level that the mechanism had planned, which may be
    deeper than the tree became.
    """
    if not is_older(manifest) or manifest["contents"]["kind"] != POINTS:
        return manifest
    upgraded, height = deepcopy(manifest), manifest["contents"]["height"]
    steps = [step for step in upgraded["accounting"]["steps"] if step["level"] is not None]
    deepest = max([height, *(step["level"] for step in steps)])
    for step in steps:
        step["level"] = deepest - step["level"]
    for row in upgraded["utility"]["levels"]:
        row["level"] = height - row["level"]
    return upgraded


def drop_later_columns(current: Facts, stated: Facts) -> Facts:
    """Return the contents of a manifest without those columns that releases have got since, where `stated` does not have them."""
    kept = {name: text for name, text in current["columns"].items() if name not in _LATER_COLUMNS or name in stated["columns"]}
    return current | {"columns": kept}


def keep_stated_intervals(current: Facts, stated: Facts) -> Facts:
    """Return the facts of a release with what a manifest before version 2.4 says of intervals.

    Those of points were cut at 0 only if no count was negative, and had no `all_low` and `all_high`; those of areas held for a level.
    """
    known, utility = stated["contents"].get("columns", {}), stated["utility"]
    columns = {name: text for name, text in current["contents"]["columns"].items() if name not in _INTERVAL_COLUMNS}
    columns |= {name: known[name] for name in _INTERVAL_COLUMNS if name in known}
    levels = current["utility"]["levels"]
    if len(levels) == len(utility["levels"]):
        pairs = zip(levels, utility["levels"], strict=True)
        levels = [level | {"interval_width_median": other["interval_width_median"]} for level, other in pairs]
    contents = current["contents"] | {"columns": columns}
    return current | {"contents": contents, "utility": current["utility"] | {"interval": utility["interval"], "levels": levels}}


def restrict_to_stated(current: Any, stated: Any) -> Any:
    """Return `current` without the dictionary entries that `stated`, written by an earlier version, does not have."""
    if isinstance(current, dict) and isinstance(stated, dict):
        return {name: restrict_to_stated(value, stated[name]) for name, value in current.items() if name in stated}
    if isinstance(current, list) and isinstance(stated, list) and len(current) == len(stated):
        return [restrict_to_stated(*pair) for pair in zip(current, stated, strict=True)]
    return current
