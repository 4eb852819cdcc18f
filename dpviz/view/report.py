"""The report of a release: one HTML file for readers who must judge the data; it runs no script and loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpviz.amounts import MISSING, format_count, format_decimal, format_percent
from dpviz.release.area_release import AreaRelease
from dpviz.release.intervals import ASSUMED, OF_RELEASED_PAIRS
from dpviz.release.manifest import format_amount
from dpviz.release.nouns import AREAS, POINTS, TRIPS, AnyRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.tables import USUAL_FORMATS
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import verdict
from dpviz.space.denominators import describe_rate
from dpviz.space.interpolate import UNIFORM
from dpviz.space.region_builders import H3Cells
from dpviz.view.escape import clean
from dpviz.view.report_areas import (
    list_area_examples,
    list_fitness,
    list_largest_regions,
    write_areas_snippet,
)
from dpviz.view.report_maps import draw_areas, draw_points, draw_trips
from dpviz.view.report_numbers import (
    add_up_errors,
    add_up_spending,
    choose_axis,
    compute_odds,
    find_rest_side,
    list_largest_pairs,
    list_level_rows,
    list_point_examples,
    list_trip_examples,
    name_step,
    write_points_snippet,
    write_trips_snippet,
)

Facts = dict[str, Any]
"""A part of the manifest, or values of the template by name."""

_LARGEST = 10  # pairs that the report lists
_MORE_TEXTS = {
    "trust_model": "Trust",
    "unit_in_words": "Protected, in words",
    "budget_reason": "Why this budget",
    "licence": "Licence",
    "contact": "Contact",
    "url": "Address",
    "citation": "Citation",
}
"""Titles of the texts that may be left out; manifests before version 2.2 have none of them."""


def report_html(release: AnyRelease, manifest: Facts, *, formats: Sequence[str] = USUAL_FORMATS) -> bytes:
    """Make the report of a release; equal inputs give equal bytes.

    Args:
        release: of points, trips or areas, made with entropy of the operating system.
        manifest: from `describe`; with its list of files, if they have been written.
        formats: of the release's files, for the example that reads them: "geoparquet", "geojson", "csv", "geopackage".

    Returns:
        HTML in UTF-8. It holds facts of the release and the manifest, and outlines of land and borders; nothing else.

    Raises:
        RefusedError: a simulation, or a reference that is not private.
    """
    release.refuse_unpublishable()
    return _render(release, manifest, formats)


def check_reportable(release: AnyRelease, manifest: Facts, *, formats: Sequence[str] = USUAL_FORMATS) -> None:
    """Check that a report can be made, by making one and discarding it; simulations are allowed.

    Args:
        release: of points, trips or areas, also a simulation.
        manifest: from `check_describable`.
        formats: of the files that will be written.

    Raises:
        Exception: any error that making the report raises.
    """
    _render(release, manifest, formats)


def _render(release: AnyRelease, manifest: Facts, formats: Sequence[str]) -> bytes:
    """Render the report without checking whether the release may be published."""
    specific = _MAKE_VALUES[release.family](release)
    rows = list_level_rows(release, manifest["utility"]["levels"])
    page: str = load_template("report.html.jinja").render(
        manifest=manifest,
        receipt=release.receipt,
        steps=_write_step_rows(release),
        spending=add_up_spending(release),
        odds=compute_odds(release.receipt),
        levels=rows,
        axis=choose_axis(rows),
        sums=add_up_errors(release),
        approximate=release.approximate,
        gaussian=release.noise == "gaussian",
        assumed=ASSUMED,
        snippet=_WRITE_SNIPPETS[release.family](release, formats),
        unit=release.receipt.unit,
        counted=release.counted,
        missing=MISSING,
        verdict=verdict(release),
        more_texts=[(title, text) for name, title in _MORE_TEXTS.items() if (text := manifest["data_product"].get(name))],
        **specific,
    )
    return page.encode()


def _make_point_values(release: PointRelease) -> Facts:
    """Make the template values that only reports of points have."""
    picture = draw_points(release)
    return {
        "kind": POINTS,
        "what": "locations",
        "part": "partition",
        "parts": "partitions",
        "released_parts": "partitions",
        "larger": "partitions",
        "picture": picture,
        "pictures": [],
        "looks": picture.looks,
        "fitness": [],
        "simultaneous": 0,
        "examples": list_point_examples(release, picture.level),
        "largest": [],
        "example_level": picture.level,
        "finest": len(release.tree.leaves),
        "negatives": bool((release.count[release.tree.leaves] < -0.5).any()),
        "recentred": release.unbiased is not None,
        "area_unit": "unit of area" if release.domain.crs is None else "km²",
        "interpolated": release.fill != UNIFORM,
        "nonnegative": release.nonnegative,
    }


def _make_trip_values(release: TripRelease) -> Facts:
    """Make the template values that only reports of trips have."""
    picture = draw_trips(release)
    return {
        "kind": TRIPS,
        "what": "trips",
        "part": "pair",
        "parts": "pairs",
        "released_parts": "released pairs",
        "larger": "regions",
        "picture": picture,
        "pictures": [],
        "looks": None if picture is None else picture.looks,
        "fitness": [],
        "simultaneous": release.numbers,
        "examples": list_trip_examples(release),
        "largest": list_largest_pairs(release, _LARGEST),
        "example_level": min(1, release.depth),
        "finest": len(release.stages[-1].count),
        "negatives": bool((release.stages[-1].count < 0).any()),
        "recentred": bool((release.stages[-1].noisy != release.stages[-1].count).any()),
        "area_unit": None,
        "interpolated": False,
        "pair_kind": release.tree.title(release.tree.height),
        "map_kind": None if picture is None else release.tree.title(2 * picture.level),
        "every_pair": release.every_pair,
        "of_released": OF_RELEASED_PAIRS if release.for_released else "",
        "listed": release.half_step_sums is not None,
        "most_false": None if release.most_false is None else format_percent(release.most_false),
        "rest_verb": "begin" if find_rest_side(release) == "origin" else "end",
        "rest_kind": release.tree.title(release.tree.height - 1),
    }


def _make_area_values(release: AreaRelease) -> Facts:
    """Make the template values that only reports of areas have."""
    pictures, finest = draw_areas(release), release.regions.depth
    leaves = release.hierarchy.leaves if release.hidden is None else release.hierarchy.leaves[~release.hidden]
    return {
        "kind": AREAS,
        "what": "counts of areas",
        "part": "region",
        "parts": "regions",
        "released_parts": "regions",
        "larger": "regions",
        "picture": None,
        "pictures": pictures,
        "looks": pictures[0].looks if pictures else None,
        "fitness": list_fitness(release),
        "simultaneous": release.numbers,
        "examples": list_area_examples(release),
        "largest": list_largest_regions(release),
        "example_level": 1,
        "finest": release.regions.size(finest),
        "negatives": bool((release.count[leaves] < -0.5).any()),
        "recentred": bool((release.count != release.centre).any()),
        "area_unit": None,
        "interpolated": False,
        "pair_kind": release.regions.levels[-1],
        "level_names": release.regions.levels,
        "hidden": release.hidden is not None,
        "rate_words": None if (numbers := release.regions.denominator) is None else describe_rate(numbers),
        "denominator": None if numbers is None else numbers.name,
        "approximate_shapes": isinstance(release.regions.grid, H3Cells),
    }


_MAKE_VALUES: dict[str, Callable[[Any], Facts]] = {POINTS: _make_point_values, TRIPS: _make_trip_values, AREAS: _make_area_values}
_WRITE_SNIPPETS: dict[str, Callable[[Any, Sequence[str]], str | None]] = {
    POINTS: write_points_snippet,
    TRIPS: write_trips_snippet,
    AREAS: write_areas_snippet,
}
"""Code that reads the release's files: it adds up the counts in a box, the trips from a region, or the regions in a larger one."""


def _write_step_rows(release: AnyRelease) -> list[Facts]:
    """Write the steps of the receipt as rows of a table."""
    return [
        {
            "purpose": step.purpose,
            "place": name_step(release, step.level),
            "exact": str(step.amount),
            "amount": format_decimal(step.amount),
            "delta": format_decimal(step.delta, 3) if step.delta else "",
            "structure": release.is_structure(step),
            "replaces_later": step.replaces_later,
            "noise": step.noise,
            "sensitivity": format_decimal(step.sensitivity, 6),
            "scale": format_decimal(step.scale, 6),
            "counts": "private" if step.counts is None else format_count(step.counts),
        }
        for step in release.receipt.steps
    ]


@cache
def load_template(name: str) -> Any:
    """Load a template of this room; every value in it is cleaned and escaped."""
    loader = PackageLoader("dpviz", "view")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_clean)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters |= {"whole": format_count, "decimal": format_decimal, "amount": format_amount}
    environment.filters["plain_number"] = lambda value: MISSING if value is None else format_decimal(value, 3)
    return environment.get_template(name)


def _clean(value: object) -> object:
    """Remove control characters from texts, which jinja escapes afterwards; return markup of the template unchanged."""
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
