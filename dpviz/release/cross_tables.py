"""The tables of a release by place and slot beside those of its places: one long table of all pairs, and the categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpviz.arrays import Floats, Texts
from dpviz.errors import InputError
from dpviz.privacy.tree_product import ProductSpread
from dpviz.release.cross_release import CrossRelease
from dpviz.release.facts import Slots
from dpviz.release.mean_release import MeanRelease
from dpviz.release.tables import (
    ESCAPED_NOTE,
    Columns,
    Plan,
    decode_dictionaries,
    find_ids,
    make_constant_column,
    make_table,
    plan_csv,
    plan_parquet,
)
from dpviz.space.categories import Categories
from dpviz.space.nested import ROOT, Nested
from dpviz.space.summed import Summed

BY_SLOT, CATEGORIES = "by_slot.parquet", "categories.parquet"
_ALL_PAIRS = (
    "Regions of all levels by categories of all levels; level 0 is the whole of each. Each pair of levels counts all records, so add up a"
    " single pair."
)


_MEANS = "Regions of all levels, 0 for the whole: records with a value, their sum and their mean."


def plan_cross_files(release: CrossRelease, formats: tuple[str, ...]) -> Plan:
    """Plan the files of a release by slot that a release of areas does not have: in GeoParquet and CSV; other formats have the places only.

    A release of means has a table of them beside those of its two slots.

    Args:
        release: by place and slot.
        formats: some of `FORMATS`.
    """
    plan: Plan = []
    if "geoparquet" in formats:
        about = f"{_ALL_PAIRS} With the tables beside it, dpviz can read the whole release back from this file."
        plan.append(plan_parquet(BY_SLOT, about, lambda: _make_pairs(release)))
        plan.append(plan_parquet(CATEGORIES, "Every category of every level.", lambda: _make_categories(release.categories)))
        if isinstance(release, MeanRelease):
            plan.append(plan_parquet("means.parquet", _MEANS, lambda: _make_means(release)))
    if "csv" in formats:
        plan.append(plan_csv("by_slot.csv", f"{_ALL_PAIRS}{ESCAPED_NOTE}", lambda: _make_pairs(release)))
        if isinstance(release, MeanRelease):
            plan.append(plan_csv("means.csv", f"{_MEANS}{ESCAPED_NOTE}", lambda: _make_means(release)))
    return plan


def _make_means(release: MeanRelease) -> pa.Table:
    levels = [release.means(level).drop(columns="name") for level in range(release.regions.depth + 1)]
    table = pd.concat(levels, ignore_index=True).rename(columns={"region": "region_id"})
    columns = {name: table[name].to_numpy() for name in table.columns if name not in ("region_id", "status")}
    return make_table(
        {
            "level": release.hierarchy.depth.astype(np.int32),
            "region_id": pa.array(table["region_id"], pa.string()),
            **columns,
            "status": make_constant_column(release.status, len(table)),
        }
    )


def _ids_of_nodes(nested: Nested) -> Texts:
    return np.concatenate([nested.ids_of(level) for level in range(nested.depth + 1)])


def _make_pairs(release: CrossRelease) -> pa.Table:
    """Make the table of all pairs, one region after the other, those of coarser levels first."""
    places, slots = release.hierarchy, release.slot_hierarchy
    (low, high), (all_low, all_high) = release.pair_interval(), release.pair_interval(joint=True)
    tables = {
        "count": release.cross_count,
        "count_noisy": release.cross_noisy,
        "count_unbiased": release.cross_centre,
        "stddev": release.cross_stddev,
        "ci_low": low,
        "ci_high": high,
        "all_low": all_low,
        "all_high": all_high,
    }
    ids = [pa.array(_ids_of_nodes(nested), pa.string()) for nested in (release.regions, release.categories)]
    columns: Columns = {
        "level": np.repeat(places.depth.astype(np.int32), len(slots)),
        "region_id": pa.DictionaryArray.from_arrays(np.repeat(np.arange(len(places)), len(slots)), ids[0]),
        "slot_level": np.tile(slots.depth.astype(np.int32), len(places)),
        "slot_id": pa.DictionaryArray.from_arrays(np.tile(np.arange(len(slots)), len(places)), ids[1]),
        **{name: table.ravel() for name, table in tables.items()},
        "status": make_constant_column(release.status, release.cross_count.size),
    }
    return make_table(columns)


def _make_categories(categories: Categories) -> pa.Table:
    above = [categories.ids_of(level)[parent] for level, parent in enumerate(categories.parent)]
    return make_table(
        {
            "slot_level": np.repeat(np.arange(1, categories.depth + 1, dtype=np.int32), [len(ids) for ids in categories.ids]),
            "slot_id": pa.array(np.concatenate(categories.ids), pa.string()),
            "parent_id": pa.array(np.concatenate(above), pa.string()),
            "name": pa.array(np.concatenate(categories.names), pa.string()),
        }
    )


def rebuild_cross_release(stated: Slots, places: dict[str, Any], tables: dict[str, Any]) -> CrossRelease:
    """Rebuild a release by place and slot from its tables.

    Args:
        stated: what the manifest says of the categories.
        places: the fields of a release of areas.
        tables: the Parquet tables by name.

    Raises:
        InputError: the table of pairs does not have one row for each pair, in their order, or another total of places.
    """
    categories = _rebuild_categories(stated, tables[CATEGORIES])
    hierarchy, slots = places["regions"].hierarchy, categories.hierarchy
    table = decode_dictionaries(tables[BY_SLOT])
    rows = {name: table.column(name).to_numpy(zero_copy_only=False) for name in ("region_id", "slot_id", "level", "slot_level")}
    expected = {
        "region_id": np.repeat(_ids_of_nodes(places["regions"]), len(slots)),
        "slot_id": np.tile(_ids_of_nodes(categories), len(hierarchy)),
        "level": np.repeat(hierarchy.depth, len(slots)),
        "slot_level": np.tile(slots.depth, len(hierarchy)),
    }
    if any(not np.array_equal(rows[name], values) for name, values in expected.items()):
        raise InputError(f"The release's {BY_SLOT} does not have one row for each pair of a region and a category.")

    def read(name: str) -> Floats:
        return np.array(table.column(name).to_numpy(zero_copy_only=False), np.float64).reshape(len(hierarchy), len(slots))

    count, unbiased = read("count"), read("count_unbiased")
    if not np.array_equal(count[:, 0], places["count"]) or not np.array_equal(unbiased[:, 0], places["unbiased"]):
        raise InputError(f"The release's {BY_SLOT} has other counts of places than its table of all levels.")
    noise = np.full((hierarchy.height + 1, slots.height + 1), np.inf)
    for pair in stated.pairs:
        noise[pair.level, pair.slot_level] = np.inf if pair.variance is None else pair.variance
    is_biased = places["approximate"] is not None
    kind: type[CrossRelease] = MeanRelease if isinstance(categories, Summed) else CrossRelease
    return kind(
        **places | {"spread": ProductSpread.of_noise(hierarchy, slots, noise), "unbiased": places["unbiased"] if is_biased else None},
        categories=categories,
        cross_noisy=read("count_noisy"),
        cross_count=count,
        cross_unbiased=unbiased if is_biased else None,
    )


def _rebuild_categories(stated: Slots, table: pa.Table) -> Categories:
    if stated.step is not None:
        return Summed(low=stated.edges[0], high=stated.edges[1], step=stated.step)
    columns = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    here = [columns["slot_level"] == level for level in range(1, len(stated.levels) + 1)]
    ids = [columns["slot_id"][rows] for rows in here]
    above = [np.array([ROOT], object), *ids]
    return Categories(
        levels=stated.levels,
        ids=tuple(ids),
        names=tuple(columns["name"][rows] for rows in here),
        parent=tuple(find_ids(known, columns["parent_id"][rows]) for known, rows in zip(above, here, strict=False)),
        read_as=stated.read_as,
        edges=stated.edges,
        zone=stated.zone,
        other=stated.other,
    )
