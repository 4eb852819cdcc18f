"""The report of a release of areas: the fitness of each level, and examples of released numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpviz.amounts import MISSING, format_count, format_decimal
from dpviz.arrays import Floats
from dpviz.release.area_fitness import fitness
from dpviz.release.area_release import AreaRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.mean_release import MeanRelease
from dpviz.release.tables import AREAS_TABLE, format_level
from dpviz.release.verdict import judge_pairs
from dpviz.view.report_numbers import Example, make_example, write_sum_snippet

Facts = dict[str, Any]

_JOINED = "\N{NO-BREAK SPACE}"
_LARGEST = 10  # regions that the report lists
_MOST_MEANS = 60  # regions whose means the report lists
_FIXED = (0.0, 0.25, 0.5, 0.75, 1.0)  # positions in the list of regions, fixed in advance, so that no count decides which one is shown


def list_rates(release: AreaRelease, level: int, *, at_once: bool = False) -> list[str]:
    r"""Write the rate of each region of a level with its interval, or with that of all regions at once; a dash where it is missing.

    >>> import dpviz as dv, pandas as pd
    >>> table = pd.DataFrame({"tract": ["a", "b"], "residents": [2000, 0]})
    >>> regions = dv.Regions.from_table(table, levels=["tract"], denominator="residents")
    >>> areas = dv.AreaCounts.from_counts([500, 40], regions=regions)
    >>> list_rates(dv.RegionTree().release(areas, dv.PureBudget(100), dv.Entropy.seeded(1)), 1)
    ['250 (250\xa0to\xa0250)', '–']
    """
    rates = release.rates(level)
    ends = ("all_low", "all_high") if at_once else ("ci_low", "ci_high")
    rows = zip(*(rates[name].tolist() for name in ("rate", *ends)), strict=True)
    return [
        f"{format_decimal(rate, 3)} ({format_decimal(low, 3)}{_JOINED}to{_JOINED}{format_decimal(high, 3)})"
        if np.isfinite(rate)
        else MISSING
        for rate, low, high in rows
    ]


def list_fitness(release: AreaRelease) -> list[Facts]:
    """Make one row per level of the table of fitness for use: texts for readers."""
    rows = fitness(release).to_dict("records")
    return [
        {
            "level": row["level"],
            "name": row["name"],
            "regions": format_count(row["regions"]),
            "mean": format_decimal(row["mean"], 3),
            "stddev": format_decimal(row["stddev"], 3),
            "relative": f"{format_decimal(row['relative'], 3)} %" if np.isfinite(row["relative"]) else "–",
            "narrow": f"{row['narrow']:.0f} %",
            "grade": row["grade"],
        }
        for row in rows
    ]


def list_pairs(release: AreaRelease) -> list[Facts]:
    """Make one row per pair of a level of regions and a level of slots: texts for readers; none of a release of regions alone."""
    if not isinstance(release, CrossRelease):
        return []
    return [
        {
            "name": judged.name,
            "numbers": format_count(judged.parts),
            "mean": format_decimal(judged.mean, 3),
            "stddev": format_decimal(judged.stddev, 3),
            "grade": judged.grade,
        }
        for (_, slot), judged in judge_pairs(release).items()
        if slot
    ]


def list_means(release: AreaRelease) -> list[Facts]:
    """Make one row per region of the finest level that is short enough to be read, and of the whole: count, mean and interval as texts."""
    if not isinstance(release, MeanRelease):
        return []
    sizes = {level: release.regions.size(level) for level in range(1, release.regions.depth + 1)}
    shown = max((level for level, size in sizes.items() if size <= _MOST_MEANS), default=0)
    rows = [row for level in sorted({0, shown}) for row in release.means(level).to_dict("records")]
    return [
        {
            "name": row["name"],
            "count": format_decimal(max(row["count"], 0.0), 3),
            "mean": MISSING if np.isnan(row["mean"]) else format_decimal(row["mean"], 4),
            "interval": f"{format_decimal(row['mean_low'], 4)}{_JOINED}to{_JOINED}{format_decimal(row['mean_high'], 4)}",
        }
        for row in rows
    ]


def list_area_examples(release: AreaRelease) -> list[Example]:
    """List regions of the coarsest level, chosen by their positions in the list of regions, and the whole."""
    index = np.unique((np.array(_FIXED) * (release.regions.size(1) - 1)).astype(np.int64))
    if release.hidden is not None and release.regions.depth == 1:
        index = index[~release.hidden[index]]
    return [
        *_make_examples(release, 1, index, "by its position in the list", release.interval(1)),
        *_make_examples(release, 0, np.array([0]), "the whole", release.interval(0)),
    ]


def list_largest_regions(release: AreaRelease) -> list[Example]:
    """List the regions of the finest level with the largest counts; their intervals hold for all regions of the release at once."""
    level = release.regions.depth
    count: Floats = release.count[release.nodes(level)]
    order = np.argsort(-count, kind="stable")
    order = order if release.hidden is None else order[~release.hidden[order]]
    return _make_examples(release, level, order[:_LARGEST], None, release.interval(level, joint=True))


def _make_examples(
    release: AreaRelease, level: int, index: np.ndarray[Any, np.dtype[np.int64]], kind: str | None, interval: tuple[Floats, Floats]
) -> list[Example]:
    """Make examples of regions of a level; `kind` says how they were chosen, None numbers them."""
    count, stddev, (low, high) = release.count[release.nodes(level)], release.stddev(level), interval
    has_rates = release.regions.denominator is not None
    rates = list_rates(release, level, at_once=kind is None) if has_rates else [""] * len(count)
    return [
        make_example(kind or str(rank), _name_region(release, level, i), count[i], stddev[i], low[i], high[i], rate=rates[i])
        for rank, i in enumerate(index.tolist(), start=1)
    ]


def _name_region(release: AreaRelease, level: int, index: int) -> str:
    """Return the name of a region; one that has no other name than its id is called by its level and id."""
    if level == 0:
        return "the whole"
    regions = release.regions
    name = str(regions.names_of(level)[index])
    return f"{regions.levels[level - 1]} {name}" if name == regions.ids_of(level)[index] else name


def write_areas_snippet(release: AreaRelease, formats: Any) -> str | None:
    """Write code that adds up the finest regions in the first region above them; None if no file has a table that it could read."""
    regions = release.regions
    region = str(regions.ids_of(regions.depth - 1)[0])
    return write_sum_snippet(AREAS_TABLE, f"areas_{format_level(regions, regions.depth)}.csv", "parent_id", region, formats)
