"""The report of a release of areas: a map per level, coloured by density, the fitness of each level, and examples of released numbers."""

from __future__ import annotations

from typing import Any

import geopandas
import numpy as np
import shapely

from dpviz.amounts import MISSING, format_count, format_decimal, format_short
from dpviz.arrays import Floats
from dpviz.errors import DomainError
from dpviz.release.area_fitness import fitness
from dpviz.release.area_release import AreaRelease
from dpviz.release.nouns import counted_noun
from dpviz.release.tables import AREAS_TABLE, format_level
from dpviz.space.denominators import describe_rate
from dpviz.view.basemap import fit_bounds
from dpviz.view.colors import Scale, scale_top_of
from dpviz.view.report_maps import (
    ABOVE_CLASSES,
    BELOW_CLASSES,
    MOST_SHAPES,
    DensityPicture,
    Sheet,
    Swatch,
    choose_css_classes,
    list_swatches,
    make_regions_sheet,
)
from dpviz.view.report_numbers import Example, format_example, write_sum_snippet

Facts = dict[str, Any]

MOST_SHAPES_IN_ALL = 8_000  # on all maps of a report together
_JOINED = "\N{NO-BREAK SPACE}"
_LARGEST = 10  # regions that the report lists
_HIDDEN = Swatch(name="hidden", light="rgb(128,128,128)", dark="rgb(160,160,160)", opacity="0.15")
_FIXED = (0.0, 0.25, 0.5, 0.75, 1.0)  # positions in the list of regions, fixed in advance, so that no count decides which one is shown


def draw_areas(release: AreaRelease) -> list[DensityPicture]:
    """Draw a map per level, coarsest first: at most 5,000 regions on each, and 8,000 on all; none if there are no polygons on a globe."""
    regions, pictures, shapes = release.regions, [], 0
    if regions.outlines(regions.depth) is None:
        return []
    try:
        sheet = make_regions_sheet(bounds := fit_bounds([regions], 900, 700))
        land = sheet.write_land(bounds)
    except DomainError:  # nowhere on the globe
        return []
    for level in range(1, regions.depth + 1):
        shapes += regions.size(level)
        outlines = regions.outlines(level) if regions.size(level) <= MOST_SHAPES and shapes <= MOST_SHAPES_IN_ALL else None
        if outlines is not None:
            pictures.append(_draw_level(release, level, outlines, sheet, land))
    return pictures


def _draw_level(release: AreaRelease, level: int, outlines: geopandas.GeoSeries, sheet: Sheet, land: dict[str, str]) -> DensityPicture:
    """Draw the regions of a level. The sheet's projection keeps areas, so that densities follow from the projected shapes."""
    projected: geopandas.GeoSeries = outlines.to_crs(sheet.crs)
    area = shapely.area(projected.to_numpy()) / 1e6
    density = np.divide(release.count[release.nodes(level)], area, out=np.zeros(len(area)), where=area > 0)
    scale = Scale(kind="density", top=scale_top_of(np.maximum(density, 0), area), title=f"{counted_noun(release)} per km²")
    looks = choose_css_classes(density, scale.top)
    if release.hidden is not None and level == release.regions.depth:
        looks = [_HIDDEN.name if hidden else look for look, hidden in zip(looks, release.hidden.tolist(), strict=True)]
    shapes = zip(looks, sheet.write_paths(projected), _write_texts(release, level), strict=True)
    return DensityPicture(
        sheet=sheet,
        land=land,
        frame="",
        shapes=[shape for shape in shapes if shape[1]],
        swatches=[*list_swatches(scale, overlaps=False), _HIDDEN],
        above=ABOVE_CLASSES,
        below=BELOW_CLASSES if not set(BELOW_CLASSES).isdisjoint(looks) else [],
        title=scale.title,
        ticks=("0", format_short(scale.top / 4), f"{format_short(scale.top)} and more"),
        level=level,
        note=None,
    )


def _write_texts(release: AreaRelease, level: int) -> list[str]:
    """Write the texts shown on hovering over regions: count, the interval of one region alone, and that of all regions at once."""
    unit, (low, high), (all_low, all_high) = counted_noun(release), release.interval(level), release.interval(level, joint=True)
    columns = (release.count[release.nodes(level)], low, high, all_low, all_high)
    texts = [
        f"{name}: {format_count(count)} {unit} (95 %: {format_count(a)} to {format_count(b)} for this one alone, {format_count(c)} to"
        f" {format_count(d)} for all of the level)"
        for name, count, a, b, c, d in zip(release.regions.names_of(level), *(column.tolist() for column in columns), strict=True)
    ]
    if release.regions.denominator is not None:
        words = describe_rate(release.regions.denominator)
        texts = [f"{text}; {words}: {rate}" for text, rate in zip(texts, list_rates(release, level), strict=True)]
    if release.hidden is None or level < release.regions.depth:
        return texts
    names = release.regions.names_of(level).tolist()
    return [f"{name}: not shown" if hid else text for name, text, hid in zip(names, texts, release.hidden.tolist(), strict=True)]


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
    grades, has_rates = release.reliability(level), release.regions.denominator is not None
    rates = list_rates(release, level, at_once=kind is None) if has_rates else [""] * len(count)
    return [
        Example(
            kind=str(rank) if kind is None else kind,
            where=_name_region(release, level, i),
            **format_example(count[i], stddev[i], low[i], high[i]),
            reliability=str(grades[i]),
            rate=rates[i],
        )
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
