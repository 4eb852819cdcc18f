"""The manifest: everything that a reader needs to judge a release (publication, budget, contents, columns, accuracy), and its schema.

A manifest is made of dictionaries of plain values, called *facts* here, and is written as JSON.
"""

from __future__ import annotations

import json
import math
import platform
import re
import sys
import unicodedata
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from dpviz.amounts import format_budget
from dpviz.arrays import Floats
from dpviz.errors import InputError, SettingError
from dpviz.privacy.accounts import exact_amount
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import Receipt, Step
from dpviz.privacy.wavelet import WaveletSpread
from dpviz.release.area_release import AreaRelease
from dpviz.release.intervals import OF_RELEASED_PAIRS, Noise
from dpviz.release.nouns import AREAS, POINTS, TRIPS, AnyRelease, kind_of
from dpviz.release.point_release import PointRelease
from dpviz.release.trip_release import ESTIMATED, TripRelease
from dpviz.release.verdict import describe_verdict
from dpviz.space.denominators import RATES_PER
from dpviz.space.domain import Domain
from dpviz.space.mask import CellMask
from dpviz.space.region_builders import Grid
from dpviz.space.regions import Regions

_COUNT_COLUMNS = {
    "count": "Released count, after post-processing.",
    "count_noisy": "The count as it was first measured; missing where it was not measured.",
    "stddev": "Standard deviation of the noise in the count.",
    "ci_low": "Lower end of the interval around the count.",
    "ci_high": "Upper end of the interval around the count.",
    "reliability": "high: standard deviation up to 12 % of the count; medium: up to 40 %; low: above.",
    "status": "What the release is: the same in every row.",
}
_JOINT_COLUMNS = {
    "all_low": "Lower end of an interval that holds for all numbers of the release at once.",
    "all_high": "Upper end of this interval.",
}
_POINT_COLUMNS = {
    "partition_id": "Number of the partition, the same in every table; 0 is the whole domain.",
    "level": "Level of the partition, 0 for the whole domain; one that is not divided stands for itself on all finer levels.",
    **_COUNT_COLUMNS,
    **_JOINT_COLUMNS,
    "leaf": "Whether the partition is not divided: these, and no others, are in the main table.",
    "west": "Western bound, in the domain's CRS.",
    "south": "Southern bound.",
    "east": "Eastern bound.",
    "north": "Northern bound.",
    "noise_variance": "Variance of the noise on what was measured; infinite where nothing was.",
    "parent": "partition_id of the partition that was divided into this one and others; -1 for the whole domain.",
    "first_child": "partition_id of the first of its parts; the others follow it.",
    "children": "Number of its parts.",
    "west_line": "Western bound as a line of the lattice, 0 in the west.",
    "south_line": "Southern bound, 0 in the south.",
    "east_line": "Eastern bound.",
    "north_line": "Northern bound.",
    "geometry": "The partition as a polygon.",
}
_TRIP_COLUMNS = {
    "stage": "Stage of the tree of pairs, 0 for the pair of everything.",
    "origin_level": "Level of the origins, 0 for everything.",
    "destination_level": "Level of the destinations, 0 for everything.",
    "origin": "Id of the region where trips begin.",
    "destination": "Id of the region where trips end.",
    "dest": "The same, under the name that flowmap.blue wants.",
    **_COUNT_COLUMNS,
    **_JOINT_COLUMNS,
    "level": "Level of the region, 1 for the coarsest.",
    "level_name": "Name of the level.",
    "region_id": "Id of the region.",
    "parent_id": "Id of the region that it lies in.",
    "name": "Name of the region.",
    "leaving": "Released trips that begin in the region, wherever they end.",
    "leaving_stddev": "Standard deviation of the noise in them.",
    "arriving": "Released trips that end in the region, wherever they begin.",
    "arriving_stddev": "Standard deviation of the noise in them.",
    "id": "Id of the region.",
    "lat": "Latitude of a place inside the region, in degrees.",
    "lon": "Longitude of it.",
    "origin_lng": "Longitude of a place inside the origin, in degrees.",
    "origin_lat": "Latitude of it.",
    "dest_lng": "Longitude of a place inside the destination, in degrees.",
    "dest_lat": "Latitude of it.",
    "geometry": "The region's own shape.",
}
_AREA_COLUMNS = {
    "level": "Level of the region, 0 for the whole, 1 for the coarsest regions.",
    "level_name": "Name of the level.",
    "region_id": "Id of the region.",
    "parent_id": "Id of the region that it lies in; missing for the whole.",
    "name": "Name of the region.",
    **_COUNT_COLUMNS,
    "count_unbiased": "The best unbiased estimate of the count, from the noisy counts of all levels, on which the intervals are centred.",
    "ci_low": "Lower end of an interval that holds for a region chosen without looking at the counts.",
    "ci_high": "Upper end of this interval.",
    **_JOINT_COLUMNS,
    "share": "How much of the error of the region that it lies in is in this one's: see spread.",
    "slack": "Variance of what is this region's own in its error: see spread.",
    "geometry": "The region's shape.",
}
_HIDDEN_COLUMN = {"hidden": "Whether the region's numbers are missing elsewhere, since its noisy count is under a public threshold."}

LONGEST_TEXT = 20_000  # characters
_LAYOUT = "\n\t"  # the control characters that a text may have
_NUMBER = "(0|[1-9][0-9]{0,4299})(/[1-9][0-9]{0,4299})?"
_AMOUNT = re.compile(f"epsilon {_NUMBER}(, delta {_NUMBER})?|rho {_NUMBER}")

Facts = dict[str, Any]
"""A part of the manifest: a dictionary of plain values."""
PURE, APPROX, ZCDP = "pure differential privacy", "approximate differential privacy", "zero-concentrated differential privacy"
SEQUENTIAL, REPLACES_LATER = "adds to the other steps", "in place of later steps, on paths that end here"
COMPOSITION = "The amounts of the steps add up; within a step the counted places are disjoint, so one unit pays once."
PARTS = ("epsilon", "delta", "rho")
CURRENCIES = {"ε": "epsilon", "ρ": "rho"}

INDEPENDENT, LEAST_SQUARES, WAVELET = "independent", "least squares", "wavelet"
SQUARES, H3 = "squares of a lattice", "H3 cells"
NESTED, GRID, CURVE = "nested rectangles", "one grid", "stretches of a Hilbert curve"
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")

CONFIDENCE = 0.95
_INTERVALS: dict[Noise, str] = {
    "laplace": "{centre} ± ln(20) / √2 ≈ 2.12 stddev, rounded outwards and not under 0.",
    "gaussian": "{centre} ± 1.96 stddev, rounded outwards and not under 0.",
}
OF_RELEASED = "of released pairs"
"""What intervals of trips hold for; in manifests before version 2.5, which do not say it, for pairs that were chosen beforehand."""
_OF_RELEASED = f"count_noisy ± the least whole number that the noise exceeds with probability 0.05 R / m at most. {OF_RELEASED_PAIRS}"
_NO_UPPER_ENDS = (
    "missing for larger regions, whose numbers are sums that lack the pairs that were left out, and so may be too low by any number."
)
_COVERS = "Covers the noise only: neither what is assumed inside partitions nor what was wrong in the data."

SCHEMA_VERSION = "2.5"
SCHEMA_FILE = Path(__file__).with_name("manifest.schema.json")
SCHEMA_VERSIONS = ("2.0", "2.1", "2.2", "2.3", "2.4", SCHEMA_VERSION)
"""The versions that are read, oldest first: one schema describes them all."""
NOT_RECORDED: Literal["not recorded"] = "not recorded"
"""What a manifest says of looks at the truth where nothing records them, as in Python."""
TruthSeen: TypeAlias = bool | Literal["not recorded"]
_LIBRARIES = ("dpviz", "numpy", "scipy", "pandas", "geopandas", "shapely", "pyproj", "pyarrow")
_RELEASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_URL = re.compile(r"https?://[^\s<>\"']+")
TRUST_MODEL = "central: the curator holds all records and is trusted with them; readers of the release are not trusted"
"""The trust model of every release of dpviz, unless the curator has other words for it."""
_MORE_TEXTS = ("budget_reason", "unit_in_words", "licence", "contact", "url", "citation")
_LIMITS = (
    "Protected is what the unit and the neighbouring relation say, no more: what is listed as unprotected is taken as public.",
    "What others publish about the same people adds up with this release; no ledger knows of it.",
    "How long the computation took is not hidden: timing is not hardened.",
    "Whether the records are true, and whether the unit is the right one for them, was not checked.",
)


@dataclass(frozen=True, kw_only=True)
class CuratorTexts:
    """The curator's texts on a release. PUBLIC: every word of them is published. They are escaped wherever they are shown.

    Attributes:
        name: name of the publication.
        curator: person or institution that is responsible for it.
        description: what was counted, when and how.
        region: where it was counted.
        intended_use: what the release is suited for.
        trust_model: who is trusted with the records; "" for dpviz's own, a curator who holds them all.
        budget_reason: why this epsilon, or this rho, was chosen.
        unit_in_words: whom or what the release protects, in words that a reader knows.
        licence: under which the release may be used, such as CC BY 4.0.
        contact: whom to ask, such as a mail address.
        url: where the release, or a page on it, can be found; begins with https:// or http://.
        citation: how to cite the release.
    """

    name: str
    curator: str
    description: str
    region: str
    intended_use: str
    trust_model: str = ""
    budget_reason: str = ""
    unit_in_words: str = ""
    licence: str = ""
    contact: str = ""
    url: str = ""
    citation: str = ""


@dataclass(frozen=True, kw_only=True)
class Publication(CuratorTexts):
    """The curator's part of a manifest: the texts of `CuratorTexts`, and what the ledger knows.

    Attributes:
        draws: the number of releases of this dataset in the ledger, this one included; at least 1.
        truth_seen: whether anyone looked at true counts while the settings were chosen: True, False, or "not recorded".
        dataset_spent: sum of all budgets spent on this dataset according to the ledger, this release included, as exact text such as
            "epsilon 3/10, delta 1/100000000" or "rho 1/2"; None if no ledger was kept.
        dataset_cap: the cap of the dataset's account, in the same form.
        persons_searched: whether distinct values of columns were counted, to find out which column says whose record a row is.

    Raises:
        SettingError: name or curator is blank, or a value is of the wrong type, too long, or not printable.

    >>> Publication(
    ...     name="Walks", curator="A town", description="", region="A plane", intended_use="An example", draws=1, truth_seen=False
    ... ).curator
    'A town'
    """

    draws: int
    truth_seen: TruthSeen
    dataset_spent: str | None = None
    dataset_cap: str | None = None
    persons_searched: bool = False

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type == "str" or (item.type == "str | None" and value is not None):
                _check_text(item.name, value)
        for name in ("dataset_spent", "dataset_cap"):
            amount = getattr(self, name)
            if amount is not None and not _AMOUNT.fullmatch(amount):
                raise SettingError(f"The publication's {name} must be exact: epsilon 3/10, or epsilon 3/10, delta 1/100000000, or rho 1/2.")
        for name in ("name", "curator"):
            if not getattr(self, name).strip():
                raise SettingError(f"The publication's {name} must not be blank: readers must know what this is and whom to ask.")
        check_url(self.url)
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or self.draws < 1:
            raise SettingError("The publication's draws must be a whole number of at least 1, since this release counts, too.")
        if not isinstance(self.truth_seen, bool) and self.truth_seen != NOT_RECORDED:
            raise SettingError(f"The publication's truth_seen must be True, False or {NOT_RECORDED!r}.")
        if not isinstance(self.persons_searched, bool):
            raise SettingError("The publication's persons_searched must be True or False.")


def describe_columns(release: AnyRelease) -> dict[str, str]:
    """Describe the meaning of every column that a table of a release may have, by name."""
    if isinstance(release, TripRelease):
        estimated = {"count_noisy": "The best unbiased estimate of the count, from the noisy counts of all stages."}
        direction = {"direction": "leaving or arriving: whether the trips begin or end in the region."}
        chosen = {"ci_low": f"Lower end of the interval. {OF_RELEASED_PAIRS}"} if release.for_released else {}
        chosen |= {"ci_high": f"{_COUNT_COLUMNS['ci_high'][:-1]}; {_NO_UPPER_ENDS}"} if release.for_released and release.lacks_pairs else {}
        return (
            _TRIP_COLUMNS | chosen | (estimated if ESTIMATED in release.steps else {}) | (direction if release.totals is not None else {})
        )
    if isinstance(release, AreaRelease):
        rates = {} if (number := release.regions.denominator) is None else _describe_rates(str(number.name))
        return _AREA_COLUMNS | rates | (_HIDDEN_COLUMN if release.hidden is not None else {})
    columns = dict(_POINT_COLUMNS)
    if release.unbiased is not None:
        columns["count_unbiased"] = "The count before a biased step, on which the interval is centred."
    if release.nonnegative:
        columns["count_outside"] = "Whether the released count lies outside its own interval, because a biased step moved it."
    if release.second_measurement is not None:
        columns["count_again"] = "The second measurement; missing where there was none."
    if isinstance(release.spread, Spread):
        columns["share"] = "How much of the parent's error is in this one's: see spread."
        columns["slack"] = "Variance of what is this partition's own in its error: see spread."
    if release.domain.mask is not None:
        columns["noise_variance"] = f"{columns['noise_variance'][:-1]}, and 0 where the domain's mask leaves no cell open."
    if release.tree.curve is not None:
        columns["curve_first"] = "First place of the partition's stretch of the curve."
        columns["curve_last"] = "The place after its last one."
    return columns


def check_url(url: str) -> None:
    """Refuse an address that is none on the web; "" is allowed.

    Raises:
        SettingError: it does not begin with https:// or http://, or has spaces or signs that no address has.
    """
    if url and not _URL.fullmatch(url):
        raise SettingError("The publication's url must begin with https:// or http:// and have no spaces.")


def _describe_rates(column: str) -> dict[str, str]:
    return {
        "denominator": f"A public number, not of the data: the column {column!r} of the file of regions, added up over finest regions.",
        "rate": f"The released count per {RATES_PER:,.0f} of the denominator; missing where the denominator is 0.",
        "rate_low": "Lower end of the rate's interval: ci_low divided in the same way.",
        "rate_high": "Upper end of the rate's interval: ci_high divided in the same way.",
    }


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise SettingError(f"The publication's {name} must be a text.")
    if len(value) > LONGEST_TEXT:
        raise SettingError(f"The publication's {name} is longer than {LONGEST_TEXT:,} characters.")
    if any(unicodedata.category(character) in ("Cc", "Cs") and character not in _LAYOUT for character in value):
        raise SettingError(f"The publication's {name} has a control character or a lone surrogate; write plain text.")


def describe_amount(value: Fraction | None) -> Facts | None:
    """Describe a number as facts: an exact string, and the nearest floating-point number for people. None stays None.

    >>> describe_amount(Fraction(1, 4))
    {'exact': '1/4', 'decimal': 0.25}
    """
    return None if value is None else {"exact": str(value), "decimal": _to_float(value)}


def describe_privacy(receipt: Receipt) -> Facts:
    """Describe the guarantee as facts: definition of privacy, unit, neighbours, bound, budget, conversion, and what is not protected."""
    return {
        "variant": {PureBudget: PURE, ApproxBudget: APPROX, ZcdpBudget: ZCDP}[type(receipt.total)],
        "unit": receipt.unit,
        "unit_definition": receipt.unit_definition or None,
        "neighbouring_relation": receipt.neighbours,
        "contribution_bound": receipt.contributions,
        **_describe_budget(receipt.total),
        "converted_rho": describe_amount(None if receipt.converted is None else receipt.converted.rho),
        "conversion": receipt.conversion,
        "spent": _describe_budget(receipt.spent),
        "unprotected": list(receipt.unprotected),
    }


def describe_accounting(receipt: Receipt) -> Facts:
    """Describe as facts how the budget was spent: the rule by which amounts add up, and each step."""
    return {
        "currency": CURRENCIES[receipt.currency],
        "composition": COMPOSITION,
        "available": describe_amount(receipt.available),
        "used": describe_amount(receipt.used),
        "steps": [_describe_step(step) for step in receipt.steps],
        "notes": list(receipt.notes),
    }


def read_receipt(privacy: Facts, accounting: Facts) -> Receipt:
    """Rebuild the receipt that `describe_privacy` and `describe_accounting` describe.

    Raises:
        BudgetError: amounts that do not add up.
    """
    converted = privacy["converted_rho"]
    return Receipt(
        total=_read_budget(privacy),
        steps=tuple(_read_step(facts) for facts in accounting["steps"]),
        unit=privacy["unit"],
        neighbours=privacy["neighbouring_relation"],
        contributions=privacy["contribution_bound"],
        unprotected=tuple(privacy["unprotected"]),
        notes=tuple(accounting["notes"]),
        converted=None if converted is None else ZcdpBudget(_read_fraction(converted)),
        conversion=privacy["conversion"],
        unit_definition=privacy.get("unit_definition") or "",  # version 1.0 did not state it
    )


def describe_ledger_amount(text: str | None) -> Facts | None:
    """Describe an amount of the ledger as facts. None stays None.

    Args:
        text: exact text such as "epsilon 3/10, delta 0".
    """
    if text is None:
        return None
    parts = exact_amount(text)
    return {name: describe_amount(parts.get(name)) for name in PARTS}


def format_amount(facts: Facts) -> str:
    """Write the amount that `describe_ledger_amount` describes in decimals, for people. A delta of 0 is left out.

    >>> format_amount(describe_ledger_amount("epsilon 3/2, delta 0"))
    'epsilon 1.5'
    """
    amounts = {name: facts[name]["decimal"] for name in PARTS if facts[name] is not None}
    return format_budget(amounts)


def _to_float(value: Fraction) -> float:
    """Convert to the nearest floating-point number; to the largest one if the value is larger."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max


def _describe_budget(budget: Budget) -> Facts:
    """Describe epsilon, delta and rho of a budget as facts; None for those that it does not have."""
    return {name: describe_amount(getattr(budget, name, None)) for name in PARTS}


def _read_budget(privacy: Facts) -> Budget:
    if privacy["variant"] == ZCDP:
        return ZcdpBudget(_read_fraction(privacy["rho"]))
    epsilon = _read_fraction(privacy["epsilon"])
    return PureBudget(epsilon) if privacy["variant"] == PURE else ApproxBudget(epsilon, _read_fraction(privacy["delta"]))


def _read_fraction(facts: Facts) -> Fraction:
    return Fraction(facts["exact"])


def _describe_step(step: Step) -> Facts:
    return {
        "purpose": step.purpose,
        "level": step.level,
        "amount": describe_amount(step.amount),
        "delta": describe_amount(step.delta),
        "sensitivity": describe_amount(step.sensitivity),
        "noise": step.noise,
        "scale": describe_amount(step.scale),
        "counts": step.counts,
        "composition": REPLACES_LATER if step.replaces_later else SEQUENTIAL,
    }


def _read_step(facts: Facts) -> Step:
    return Step(
        purpose=facts["purpose"],
        amount=_read_fraction(facts["amount"]),
        sensitivity=_read_fraction(facts["sensitivity"]),
        noise=facts["noise"],
        scale=_read_fraction(facts["scale"]),
        level=facts["level"],
        counts=facts["counts"],
        delta=_read_fraction(facts["delta"]),
        replaces_later=facts["composition"] == REPLACES_LATER,
    )


def describe_contents(release: AnyRelease) -> Facts:
    """Describe mechanism, settings, public frame and layout of the tables, as facts.

    Raises:
        SettingError: a setting, or the name of a region, cannot be written as JSON.
    """
    facts = {
        "mechanism": release.mechanism,
        "settings": {name: _to_json(name, value) for name, value in release.settings.items()},
        "approximate": release.approximate,
    }
    if isinstance(release, AreaRelease):
        return facts | _describe_area_contents(release)
    return facts | (_describe_point_contents(release) if isinstance(release, PointRelease) else _describe_trip_contents(release))


def read_settings(contents: Facts) -> dict[str, Any]:
    """Read the mechanism's settings that `describe_contents` describes; lists become tuples again."""
    return {name: _from_json(value) for name, value in contents["settings"].items()}


def _describe_point_contents(release: PointRelease) -> Facts:
    domain, tree = release.domain, release.tree
    shape = CURVE if tree.curve is not None else GRID if tree.lines is not None else NESTED
    order = None if tree.curve is None else tree.curve.order
    return {
        "kind": POINTS,
        "columns": describe_columns(release),
        "domain": describe_domain(domain),
        "height": release.height,
        "inside": release.fill,
        **({"nonnegative": True} if release.nonnegative else {}),
        "spread": _describe_spread(release.spread),
        "tree": {"shape": shape, "nodes": len(tree), "leaves": len(tree.leaves), "curve_order": order},
    }


def describe_domain(domain: Domain) -> Facts:
    """Describe a domain as facts; with its mask, if it has one, as the lengths of runs of masked and open cells."""
    facts = {"bounds": list(domain.bounds), "crs": domain.crs, "order": domain.order}
    if domain.mask is None:
        return facts
    return facts | {"mask": {"order": domain.mask.order, "open_cells": domain.mask.cells_open, "runs": domain.mask.runs}}


def read_domain(facts: Facts) -> Domain:
    """Rebuild the domain that `describe_domain` describes.

    Raises:
        DomainError: facts that describe no domain.
    """
    mask = facts.get("mask")
    return Domain(
        bounds=tuple(facts["bounds"]),
        crs=facts["crs"],
        order=facts["order"],
        mask=None if mask is None else CellMask.from_runs(mask["order"], mask["runs"]),
    )


def _describe_spread(spread: Spread | WaveletSpread | None) -> Facts:
    if spread is None:
        return {"errors": INDEPENDENT}
    if isinstance(spread, WaveletSpread):
        return {"errors": WAVELET, "order": spread.order, "variance": spread.variance, "width": spread.width}
    return {"errors": LEAST_SQUARES, "root_variance": spread.root}


def _describe_trip_contents(release: TripRelease) -> Facts:
    tree = release.tree
    shared = tree.destinations is tree.origins
    return {
        "kind": TRIPS,
        "columns": describe_columns(release),
        "refined_first": tree.first,
        "every_pair": release.every_pair,
        "across": release.half_step_sums is not None,
        **({} if release.totals is None else {"totals": True}),
        **({"intervals": OF_RELEASED} if release.for_released else {}),
        "origins": _describe_regions(tree.origins),
        "destinations": None if shared else _describe_regions(tree.destinations),
        **({} if tree.origins.grid is None else {"grid_of_origins": _describe_grid(tree.origins.grid)}),
        **({} if shared or tree.destinations.grid is None else {"grid_of_destinations": _describe_grid(tree.destinations.grid)}),
        "stages": [
            {
                "stage": stage,
                "between": tree.title(stage),
                "pairs": len(counts.count),
                "measured": int(counts.measured),
                "variance": float(counts.variance) if math.isfinite(counts.variance) else None,
            }
            for stage, counts in enumerate(release.stages)
        ],
    }


def _describe_area_contents(release: AreaRelease) -> Facts:
    regions = release.regions
    return {
        "kind": AREAS,
        "columns": describe_columns(release),
        "regions": _describe_regions(regions),
        "grid": _describe_grid(regions.grid),
        "levels": [
            {"level": level, "regions": regions.size(level), "variance": variance if math.isfinite(variance) else None}
            for level, variance in enumerate(release.noise_variance[[*regions.hierarchy.starts[:-1]]].tolist())
        ],
        "spread": _describe_spread(release.spread),
        "hidden": release.hidden is not None,
    } | ({} if regions.denominator is None else {"denominator": {"column": regions.denominator.name, "per": RATES_PER}})


def _describe_grid(grid: Grid | None) -> Facts | None:
    if grid is None:
        return None
    if isinstance(grid, Domain):
        return {"cells": SQUARES, "bounds": list(grid.bounds), "crs": grid.crs, "order": grid.order}
    return {"cells": H3, "resolution": grid.resolution}


def _describe_regions(regions: Regions) -> list[Facts]:
    column = [] if regions.denominator is None else [str(regions.denominator.name)]
    all_texts: tuple[Iterable[str], ...] = (*regions.ids, *regions.names, [*regions.levels, *column])
    for texts in all_texts:
        if _LONE_SURROGATE.search("\n".join(texts)):
            raise SettingError(
                "An id or name of a region, or of a column, has a lone surrogate (half a character), which cannot be written; correct it."
            )
    shapes = zip(regions.levels, regions.ids, regions.geometry, strict=True)
    return [{"level": name, "regions": len(ids), "shapes": shape is not None} for name, ids, shape in shapes]


def _to_json(name: str, value: Any) -> Any:
    """Convert the value of the mechanism's setting `name` to one that JSON can express; tuples become lists."""
    if isinstance(value, tuple | list):
        return [_to_json(name, part) for part in value]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise SettingError(f"The mechanism's setting {name!r} cannot be written: use texts, finite numbers, True or False, and tuples of them.")


def _from_json(value: Any) -> Any:
    return tuple(_from_json(part) for part in value) if isinstance(value, list) else value


def describe_utility(release: AnyRelease) -> Facts:
    """Describe each level's accuracy as facts, coarsest first: how many numbers, their standard deviations and the widths of intervals."""
    names: Sequence[str | None]
    if isinstance(release, TripRelease):
        centre, names = "count_noisy", [release.tree.title(2 * level) for level in range(release.depth + 1)]
    else:
        centre = "count" if release.unbiased is None else "count_unbiased"
        names = [None, *(release.regions.levels if isinstance(release, AreaRelease) else [None] * release.height)]
    return {
        "confidence": CONFIDENCE,
        "interval": f"{_describe_interval(release, centre)} {_COVERS}",
        "approximate": release.approximate,
        "levels": [_describe_level(release, level, name) for level, name in enumerate(names)],
    }


def _describe_interval(release: AnyRelease, centre: str) -> str:
    """Describe how the intervals of a release are made."""
    if not isinstance(release, TripRelease) or not release.for_released:
        return _INTERVALS[release.noise].format(centre=centre)
    return f"{_OF_RELEASED} Upper ends are {_NO_UPPER_ENDS}" if release.lacks_pairs else _OF_RELEASED


def _describe_level(release: AnyRelease, level: int, between: str | None) -> Facts:
    """Describe the accuracy of a level; partitions that a mask covers are left out."""
    if isinstance(release, TripRelease):
        stddev, (low, high) = release.stddev(level), release.interval(level)
    else:
        nodes = release.open_nodes(level)
        stddev, (low, high) = release.node_stddev[nodes], release.node_interval(nodes)
    return {
        "level": level,
        "between": between,
        "partitions": len(stddev),
        "stddev_median": _compute_quantile(stddev, 0.5),
        "stddev_p95": _compute_quantile(stddev, CONFIDENCE),
        "interval_width_median": _compute_quantile(high - low, 0.5),
    }


def _compute_quantile(values: Floats, share: float) -> float | None:
    """Compute a quantile; None if there are no values or the quantile is not finite."""
    value = float(np.quantile(values, share)) if len(values) else np.nan
    return value if np.isfinite(value) else None


def describe(release: AnyRelease, publication: Publication, *, created: datetime | None = None, release_id: str | None = None) -> Facts:
    """Make the manifest of a release, without the list of files, which `write_release` adds.

    Args:
        release: of points, trips or areas, with noise from the operating system's entropy.
        publication: the curator's part.
        created: time at which the release was made, with a time zone; now if None.
        release_id: 1 to 64 letters, digits, dots, underscores and hyphens; a random one if None.

    Returns:
        A dictionary that is valid by `read_schema` once files are added. It has no seed, no true count, no number of rows, and
        nothing about the input file.

    Raises:
        InputError: no release, such as private counts, which have no manifest.
        RefusedError: a simulation, a reference that is not private, or a release of counts that are marked.
        SettingError: a time without time zone, a malformed id, or a setting of the mechanism that cannot be written as JSON.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1, 2, 9], [1, 3, 9], domain=domain)
    >>> release = dv.Quadtree(height=2).release(points, dv.PureBudget(1), dv.Entropy.system())
    >>> words = dict(name="Walks", curator="A town", description="Made up.", region="A plane", intended_use="An example")
    >>> manifest = dv.describe(release, dv.Publication(**words, draws=1, truth_seen=False))
    >>> manifest["privacy"]["epsilon"]
    {'exact': '1', 'decimal': 1.0}
    """
    if not isinstance(release, AnyRelease):
        raise InputError("A manifest describes a release of points, trips or areas; private counts have none.")
    release.refuse_unpublishable()
    return _build_manifest(release, publication, created, release_id)


def check_describable(release: AnyRelease, publication: Publication | None = None) -> Facts:
    """Check that a release like this one can be described, before budget is spent on it.

    Args:
        release: of points, trips or areas; may be a simulation.
        publication: the curator's part, to be checked, too; None leaves it out.

    Returns:
        A manifest for a trial of the report. No release can be written with it.

    Raises:
        SettingError: a setting, a name, or a number of the frame or the receipt cannot be written as JSON.
    """
    placeholder = Publication(name="-", curator="-", description="", region="", intended_use="", draws=1, truth_seen=False)
    manifest = _build_manifest(release, publication or placeholder, None, None)
    complete = manifest | {"files": [], "left_out": [], "seal": "0" * 64}
    encode_manifest(complete)
    violation = find_violation(complete)
    if violation is not None:
        raise SettingError(f"A fact that the mechanism states about its release breaks the manifest's schema at {violation}.")
    return manifest


def encode_manifest(manifest: Facts) -> bytes:
    """Write a manifest as the bytes of its JSON file.

    Raises:
        SettingError: a text that is not valid Unicode, or a number that is not finite.
    """
    try:
        return (json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        reason = "A text of the manifest has a lone surrogate (half a character), which cannot be written; correct it."
    except (TypeError, ValueError):
        reason = "The manifest has a number that is not finite, or a value that JSON cannot express."
    raise SettingError(reason)


def _build_manifest(release: AnyRelease, publication: Publication, created: datetime | None, release_id: str | None) -> Facts:
    return {
        "identity": _describe_identity(release, created, release_id),
        "data_product": _describe_data_product(publication),
        **describe_release(release),
        "implementation": _describe_implementation(publication),
        "dataset": {
            "draws": publication.draws,
            "spent": describe_ledger_amount(publication.dataset_spent),
            "cap": describe_ledger_amount(publication.dataset_cap),
        },
        "utility": describe_utility(release),
        "verdict": describe_verdict(release),
        "limits": list(_LIMITS),
    }


def _describe_data_product(publication: Publication) -> Facts:
    """Describe the curator's texts as facts; of those that may be left out, the ones that are there."""
    first = {name: getattr(publication, name) for name in ("name", "curator", "description", "region", "intended_use")}
    more = {name: text for name in _MORE_TEXTS if (text := getattr(publication, name))}
    return {**first, "trust_model": publication.trust_model or TRUST_MODEL, **more}


def describe_release(release: AnyRelease) -> Facts:
    """Make the parts of a manifest that follow from the release alone: privacy, accounting, post-processing and contents."""
    return {
        "privacy": describe_privacy(release.receipt),
        "accounting": describe_accounting(release.receipt),
        "post_processing": list(release.steps),
        "contents": describe_contents(release),
    }


def read_schema() -> Facts:
    """Read the JSON Schema (2020-12) of manifests. Its descriptions document every field.

    >>> read_schema()["$id"]
    'urn:dpviz:manifest:2.5'
    """
    schema: Facts = json.loads(SCHEMA_FILE.read_text("utf-8"))
    return schema


def find_violation(manifest: object) -> str | None:
    """Find the first field of a manifest that breaks its schema.

    Args:
        manifest: any object.

    Returns:
        The path of the field, such as "manifest/privacy/unit", without its value; None if the manifest is valid.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (slow to import, and rarely needed)

    error = next(Draft202012Validator(read_schema()).iter_errors(manifest), None)
    return None if error is None else "/".join(["manifest", *(str(part) for part in error.absolute_path)])


def _describe_identity(release: AnyRelease, created: datetime | None, release_id: str | None) -> Facts:
    time = datetime.now(UTC) if created is None else created
    identifier = str(uuid.uuid4()) if release_id is None else release_id
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise SettingError("The time of a release needs a time zone, such as datetime.now(UTC).")
    if not isinstance(identifier, str) or not _RELEASE_ID.fullmatch(identifier):
        raise SettingError("A release's id is 1 to 64 letters, digits, dots, underscores and hyphens.")
    return {
        "schema_version": SCHEMA_VERSION,
        "release_id": identifier,
        "created": time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "mode": "private release",
        "kind": kind_of(release),
        "versions": {"python": platform.python_version()} | {name: _find_version(name) for name in _LIBRARIES},
    }


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _describe_implementation(publication: Publication) -> Facts:
    return {
        "sampler": "exact integer inversion: discrete distributions on whole numbers, refined until each draw is certain",
        "entropy": "operating system",
        "arithmetic": "budgets and scales are exact fractions, noise is drawn and added on whole numbers; scores that only choose a"
        " structure may be floating-point numbers whose rounding is paid for; estimates after the noise are 64-bit floating-point",
        "timing_hardened": False,
        "tuning": {"truth_seen": publication.truth_seen, "persons_searched": publication.persons_searched},
    }
