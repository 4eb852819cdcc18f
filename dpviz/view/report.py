"""The report of a release: one HTML file for a stranger who must judge the data, without scripts and without a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpviz.amounts import MISSING, format_count, format_decimal
from dpviz.release.at_once import how_many
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import stated_amount
from dpviz.release.nouns import noun
from dpviz.release.point_release import Release
from dpviz.release.tables import FORMATS
from dpviz.release.verdict import verdict
from dpviz.view.escape import clean
from dpviz.view.report_maps import drawn_level, points_picture, trips_picture
from dpviz.view.report_numbers import (
    error_axis,
    is_structure,
    largest_pairs,
    level_rows,
    odds,
    place_name,
    point_examples,
    pyramid,
    snippet,
    sums_of,
    trip_examples,
)

Facts = dict[str, Any]

_LARGEST = 10


def report_html(release: Release | FlowRelease, manifest: Facts, *, formats: Sequence[str] = FORMATS) -> bytes:
    """The report as one file, the same for the same release and manifest.

    Args:
        release: of points or trips, drawn with entropy of the operating system.
        manifest: what `describe` says of it; with its list of files, if they have been written.
        formats: that the files are written in, for the lines of Python that read them.

    Returns:
        HTML in UTF-8 that holds nothing but what release and manifest hold, and outlines of land and borders.

    Raises:
        RefusedError: a simulation, or a reference that is not private.
    """
    release.refuse_unpublishable()
    return _page(release, manifest, formats)


def check_reportable(release: Release | FlowRelease, manifest: Facts, *, formats: Sequence[str] = FORMATS) -> None:
    """Make the report of a release like the one that is wanted, and hand nothing out: simulations may be tried.

    Args:
        release: of points or trips, also a simulation.
        manifest: as `check_describable` gave it.
        formats: that the files will be written in.

    Raises:
        Exception: whatever keeps the report from being made.
    """
    _page(release, manifest, formats)


def _page(release: Release | FlowRelease, manifest: Facts, formats: Sequence[str]) -> bytes:
    """The report of any release."""
    about = _points(release) if isinstance(release, Release) else _trips(release)
    rows = level_rows(release, manifest["utility"]["levels"])
    page: str = _template().render(
        manifest=manifest,
        receipt=release.receipt,
        steps=_steps(release),
        pyramid=pyramid(release),
        odds=odds(release.receipt),
        levels=rows,
        axis=error_axis(rows),
        sums=sums_of(release),
        approximate=release.approximate,
        snippet=snippet(release, formats),
        unit=release.receipt.unit,
        counted=noun(release),
        verdict=verdict(release),
        at_once=how_many(release),
        **about,
    )
    return page.encode()


def _points(release: Release) -> Facts:
    """What only reports of points say."""
    level = drawn_level(release)
    return {
        "kind": "points",
        "parts": "partitions",
        "picture": points_picture(release),
        "examples": point_examples(release, level),
        "largest": [],
        "example_level": level,
        "finest": len(release.tree.leaves),
        "negatives": bool((release.count[release.tree.leaves] < -0.5).any()),
        "recentred": release.unbiased is not None,
        "area_unit": "unit of area" if release.domain.crs is None else "km²",
        "interpolated": release.inside == "interpolated",
    }


def _trips(release: FlowRelease) -> Facts:
    """What only reports of trips say."""
    picture = trips_picture(release)
    return {
        "kind": "trips",
        "parts": "pairs",
        "picture": picture,
        "examples": trip_examples(release),
        "largest": largest_pairs(release, _LARGEST),
        "example_level": min(1, release.depth),
        "finest": len(release.stages[-1].count),
        "negatives": bool((release.stages[-1].count < 0).any()),
        "recentred": bool((release.stages[-1].noisy != release.stages[-1].count).any()),
        "area_unit": None,
        "interpolated": False,
        "pair_kind": release.tree.title(release.tree.height),
        "map_kind": None if picture is None else release.tree.title(2 * picture.level),
        "every_pair": release.every_pair,
    }


def _steps(release: Release | FlowRelease) -> list[Facts]:
    """The accounting as rows of a table."""
    return [
        {
            "purpose": step.purpose,
            "place": place_name(release, step.level),
            "exact": str(step.amount),
            "amount": format_decimal(step.amount),
            "delta": format_decimal(step.delta, 3) if step.delta else "",
            "structure": is_structure(step, release),
            "instead": step.instead,
            "noise": step.noise,
            "sensitivity": format_decimal(step.sensitivity, 6),
            "scale": format_decimal(step.scale, 6),
            "counts": "private" if step.counts is None else format_count(step.counts),
        }
        for step in release.receipt.steps
    ]


@cache
def _template() -> Any:
    """The page's template; every value that it shows is cleaned and escaped."""
    loader = PackageLoader("dpviz", "view")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_clean)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters |= {"whole": format_count, "plain_number": _short_decimal, "decimal": format_decimal, "amount": stated_amount}
    return environment.get_template("report.html.jinja")


def _clean(value: object) -> object:
    """Texts as a page may hold them; jinja escapes them afterwards."""
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _short_decimal(value: float | None) -> str:
    """A standard deviation or an area with three digits, or a dash where it is not known."""
    return MISSING if value is None else format_decimal(value, 3)
