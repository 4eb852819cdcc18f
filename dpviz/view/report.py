"""The report of a release: one HTML file for readers who must judge the data; it runs no script and loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpviz.amounts import MISSING, UNKNOWN, format_count, format_decimal
from dpviz.families import FAMILIES
from dpviz.release.base import NoisyRelease
from dpviz.release.manifest import format_amount
from dpviz.release.tables import USUAL_FORMATS
from dpviz.release.verdict import verdict
from dpviz.view.escape import clean
from dpviz.view.report_kinds import ReportKind
from dpviz.view.report_numbers import (
    add_up_errors,
    add_up_spending,
    choose_axis,
    compute_odds,
    list_level_rows,
    name_step,
)

Facts = dict[str, Any]
"""A part of the manifest, or values of the template by name."""

_LEFT_OUT: Facts = {"picture": None, "pictures": [], "looks": None, "fitness": [], "largest": [], "simultaneous": 0, "area_unit": None}
"""Values of the template that a family may leave out."""
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


def report_html(release: NoisyRelease, manifest: Facts, *, formats: Sequence[str] = USUAL_FORMATS) -> bytes:
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


def check_reportable(release: NoisyRelease, manifest: Facts, *, formats: Sequence[str] = USUAL_FORMATS) -> None:
    """Check that a report can be made, by making one and discarding it; simulations are allowed.

    Args:
        release: of points, trips or areas, also a simulation.
        manifest: from `check_describable`.
        formats: of the files that will be written.

    Raises:
        Exception: any error that making the report raises.
    """
    _render(release, manifest, formats)


def _render(release: NoisyRelease, manifest: Facts, formats: Sequence[str]) -> bytes:
    """Render the report without checking whether the release may be published."""
    kind: ReportKind = FAMILIES[release.family].report
    rows = list_level_rows(release, manifest["utility"]["levels"])
    page: str = load_template(kind.template).render(
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
        snippet=kind.snippet(release, formats),
        unit=release.receipt.unit,
        counted=release.counted,
        unknown=UNKNOWN,
        verdict=verdict(release),
        more_texts=[(title, text) for name, title in _MORE_TEXTS.items() if (text := manifest["data_product"].get(name))],
        **kind.words(),
        **_LEFT_OUT | kind.values(release),
    )
    return page.encode()


def _write_step_rows(release: NoisyRelease) -> list[Facts]:
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
