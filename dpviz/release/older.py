"""Releases that earlier versions wrote: how they differ from today's, and how they are read as today's."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pyarrow as pa

from dpviz.release.manifest import POINTS, SCHEMA_VERSION
from dpviz.release.tables import FLOWS, LEVELS, STAGES, TABLE

Facts = dict[str, Any]

_NAMES = {LEVELS: TABLE, STAGES: FLOWS}
"""Up to version 1.0 the main table held all levels."""


def is_older(manifest: Facts) -> bool:
    """Whether a manifest is of an earlier version of the schema."""
    return bool(manifest["identity"]["schema_version"] != SCHEMA_VERSION)


def name_then(manifest: Facts, name: str) -> str:
    """What a table of today was called when a release was written."""
    return _NAMES.get(name, name) if is_older(manifest) else name


def table_now(manifest: Facts, name: str, table: Any) -> Any:
    """A table with levels as they are counted today: up to version 1.0 level 0 was the finest one of points, beside a depth."""
    if not is_older(manifest) or name != LEVELS:
        return table
    depth = table.column("depth").cast(pa.int32())
    return table.set_column(table.schema.get_field_index("level"), "level", depth).drop_columns(["depth"])


def manifest_now(manifest: Facts) -> Facts:
    """A manifest with levels as they are counted today; its version, its files and its seal stay what they are.

    Steps of trees that were planned deeper than they grew counted from the deepest level planned.
    """
    if not is_older(manifest) or manifest["contents"]["kind"] != POINTS:
        return manifest
    now, height = deepcopy(manifest), manifest["contents"]["height"]
    steps = [step for step in now["accounting"]["steps"] if step["level"] is not None]
    planned = max([height, *(step["level"] for step in steps)])
    for step in steps:
        step["level"] = planned - step["level"]
    for row in now["utility"]["levels"]:
        row["level"] = height - row["level"]
    return now


def as_stated(fact: Any, stated: Any) -> Any:
    """A fact without the names that an earlier version did not state."""
    if isinstance(fact, dict) and isinstance(stated, dict):
        return {name: as_stated(value, stated[name]) for name, value in fact.items() if name in stated}
    if isinstance(fact, list) and isinstance(stated, list) and len(fact) == len(stated):
        return [as_stated(*pair) for pair in zip(fact, stated, strict=True)]
    return fact
