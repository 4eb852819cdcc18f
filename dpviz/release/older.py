"""What settings were called in manifests 2.x, and so in kept draws: translated when they are read, and refused anywhere else."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dpviz.errors import did_you_mean

Facts = dict[str, Any]

RENAMED = {
    "conversion": "accounting",
    "inside": "fill",
    "zero": "shrink_small",
    "least": "threshold",
    "suppressed_flows": "suppressed_trips",
    "rounded_flows": "rounded_trips",
    "merged_flows": "merged_trips",
}
"""Old names of settings and mechanisms, each with today's."""
_DIGESTED = {"fill": "inside", "shrink_small": "zero"}
_DIGESTED_OF = {key: {"threshold": "least"} for key in ("flat", "flat_gaussian")}
"""Names of settings in the digest of a run of a study, where they are not today's: of every mechanism, and of one."""
_RENAMED_VALUES = {("conversion", "simple"): "paper"}
"""Old values, under the old name of their setting, each with today's."""
LATER_COLUMNS = ("origin_lng", "origin_lat", "dest_lng", "dest_lat")
"""Columns of files that releases have got since, under the same version of the schema."""
_INTERVAL_COLUMNS = ("ci_low", "ci_high", "all_low", "all_high")


def translate_manifest(manifest: Facts) -> Facts:
    """Return a manifest with today's names of its mechanism's settings; its version, files and seal are unchanged."""
    settings: Facts = {
        RENAMED.get(name, name): _RENAMED_VALUES.get((name, value), value) if isinstance(value, str) else value
        for name, value in manifest["contents"]["settings"].items()
    }
    if manifest["contents"]["kind"] == "trips" and settings.get("split", "custom") != "custom":
        settings |= {"weights": []}  # up to 2.1 they were stated without being used
    return manifest | {"contents": manifest["contents"] | {"settings": settings}}


def first_names(key: str, settings: Facts) -> tuple[str, Facts]:
    """Return the key of a mechanism and its settings under the names that digests are made of: a new name must not change a run's noise.

    >>> first_names("flat", {"threshold": 3}), first_names("privtree", {"threshold": 3, "fill": "uniform"})
    (('flat', {'least': 3}), ('privtree', {'threshold': 3, 'inside': 'uniform'}))
    """
    before, names = {new: old for old, new in RENAMED.items() if old.endswith("_flows")}, _DIGESTED | _DIGESTED_OF.get(key, {})
    return before.get(key, key), {names.get(name, name): value for name, value in settings.items()}


def hint_at_name(name: str, known: Collection[str]) -> str:
    """Return a sentence that says what an old name is called now, or else proposes the name most like an unknown one.

    >>> hint_at_name("conversion", ["neighbours", "accounting"])
    " It is called 'accounting' now."
    """
    return f" It is called {RENAMED[name]!r} now." if RENAMED.get(name) in known else did_you_mean(name, known)


def say_new_names(text: str) -> str:
    """Write what the old names in settings, written as JSON, are called now; "" if there are none.

    >>> say_new_names('{"conversion":"simple"}')
    "'conversion' is called 'accounting' now."
    """
    return " ".join(f"{old!r} is called {new!r} now." for old, new in RENAMED.items() if f'"{old}"' in text)


def keep_stated_intervals(current: Facts, stated: Facts) -> Facts:
    """Return the facts of a release with what a manifest before version 2.5 says of intervals.

    Up to version 2.4 those of boxes that cut partitions covered the noise only; those of trips held for a pair that was chosen
    beforehand, and had no `all_low` and `all_high`. Up to version 2.3 those of points were cut at 0 only if no count was negative, and had
    no `all_low` and `all_high`; those of areas held for a level.
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
