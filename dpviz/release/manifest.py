"""The manifest: all that a reader needs to judge a release, described from the release and checked. Its objects are in `facts`."""

from __future__ import annotations

import json
import math
import platform
import re
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast, get_args

import numpy as np

from dpviz.amounts import format_budget
from dpviz.arrays import Floats
from dpviz.codec import Table, keys_of
from dpviz.errors import InputError, SettingError
from dpviz.families import FAMILIES
from dpviz.privacy.accounts import Terms, exact_amount
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import Receipt, Step
from dpviz.privacy.tree_product import ProductSpread
from dpviz.privacy.wavelet import WaveletSpread
from dpviz.release import facts
from dpviz.release.area_release import AreaRelease
from dpviz.release.base import NoisyRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.facts import MANIFESTS, SCHEMA_VERSION, Accounting, Amounts, Privacy, Utility, read_setting
from dpviz.release.point_release import PointRelease
from dpviz.release.publication import CuratorTexts, Publication
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import describe_verdict
from dpviz.space.denominators import RATES_PER
from dpviz.space.domain import Domain
from dpviz.space.mask import CellMask
from dpviz.space.region_builders import Grid, H3Cells
from dpviz.space.regions import Regions
from dpviz.space.summed import Summed

COMPOSITION = "The amounts of the steps add up; within a step the counted places are disjoint, so one unit pays once."
SEQUENTIAL, REPLACES_LATER = get_args(facts.Composition)
PARTS = ("epsilon", "delta", "rho")
_OF_STEPS = ("purpose", "level", "amount", "delta", "sensitivity", "noise", "scale", "counts")
"""What a receipt and a manifest call by the same names."""
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")

CONFIDENCE = 0.95
_LIBRARIES = ("dpviz", "numpy", "scipy", "pandas", "geopandas", "shapely", "pyproj", "pyarrow")
TRUST_MODEL = "central: the curator holds all records and is trusted with them; readers of the release are not trusted"
"""The trust model of every release of dpviz, unless the curator has other words for it."""
_LIMITS = (
    "Protected is what the unit and the neighbouring relation say, no more: what is listed as unprotected is taken as public.",
    "What others publish about the same people adds up with this release; no ledger knows of it.",
    "How long the computation took is not hidden: timing is not hardened.",
    "Whether the records are true, and whether the unit is the right one for them, was not checked.",
)


def describe_privacy(receipt: Receipt) -> Privacy:
    """Describe the guarantee: definition of privacy, unit, neighbours, bound, budget, conversion, and what is not protected."""
    variants: dict[type[Budget], Any] = {
        PureBudget: "pure differential privacy",
        ApproxBudget: "approximate differential privacy",
        ZcdpBudget: "zero-concentrated differential privacy",
    }
    return Privacy(
        variant=variants[type(receipt.total)],
        unit=receipt.unit,
        unit_definition=receipt.unit_definition or None,
        neighbouring_relation=receipt.neighbours,
        contribution_bound=receipt.contributions,
        **_amounts_of(receipt.total),
        converted_rho=None if receipt.converted is None else receipt.converted.rho,
        conversion=cast("Any", receipt.conversion),
        spent=Amounts(**_amounts_of(receipt.spent)),
        unprotected=tuple(receipt.unprotected),
    )


def describe_accounting(receipt: Receipt) -> Accounting:
    """Describe how the budget was spent: the rule by which amounts add up, and each step."""
    return Accounting(
        currency="epsilon" if receipt.currency == "ε" else "rho",
        composition=COMPOSITION,
        available=receipt.available,
        used=receipt.used,
        steps=tuple(_describe_step(step) for step in receipt.steps),
        notes=tuple(receipt.notes),
    )


def _describe_step(step: Step) -> facts.Spending:
    same = {name: getattr(step, name) for name in _OF_STEPS}
    return facts.Spending(**same, composition=REPLACES_LATER if step.replaces_later else SEQUENTIAL)


def _amounts_of(budget: Budget) -> dict[str, Fraction | None]:
    """Describe epsilon, delta and rho of a budget; None for those that it does not have."""
    return {name: getattr(budget, name, None) for name in PARTS}


def read_receipt(privacy: Privacy, accounting: Accounting) -> Receipt:
    """Rebuild the receipt that `describe_privacy` and `describe_accounting` describe.

    Raises:
        BudgetError: amounts that do not add up.
    """
    kinds: dict[str, Callable[..., Budget]] = {"pure": PureBudget, "approximate": ApproxBudget, "zero-concentrated": ZcdpBudget}
    amounts = [amount for amount in (privacy.epsilon, privacy.delta, privacy.rho) if amount is not None]
    return Receipt(
        total=kinds[privacy.variant.partition(" ")[0]](*amounts),
        steps=tuple(_read_step(spending) for spending in accounting.steps),
        unit=privacy.unit,
        neighbours=privacy.neighbouring_relation,
        contributions=privacy.contribution_bound,
        unprotected=privacy.unprotected,
        notes=accounting.notes,
        converted=None if privacy.converted_rho is None else ZcdpBudget(privacy.converted_rho),
        conversion=privacy.conversion,
        unit_definition=privacy.unit_definition or "",
    )


def _read_step(spending: facts.Spending) -> Step:
    return Step(**{name: getattr(spending, name) for name in _OF_STEPS}, replaces_later=spending.composition == REPLACES_LATER)


def _describe_ledger_amount(text: str | None) -> Amounts | None:
    """Describe an amount of the ledger, such as "epsilon 3/10, delta 0". None stays None."""
    if text is None:
        return None
    parts = exact_amount(text)
    return Amounts(**{name: parts.get(name) for name in PARTS})


def describe_series_part(terms: Terms, period: str | None) -> facts.SeriesPart | None:
    """Describe the series of an account, and the period of a release; None without a series."""
    series = terms.series
    if series is None or period is None:
        return None
    sums = series.sum_of(terms.limit)
    return facts.SeriesPart(
        name=period,
        kind=series.period,
        periods=series.periods,
        protects=series.protects,
        time=series.time,
        zone=series.zone,
        in_all=Amounts(**{name: sums.get(name) for name in PARTS}),
    )


def format_amount(amounts: Table) -> str:
    """Write an amount of privacy as the manifest states it in decimals, for people. A delta of 0 is left out.

    >>> format_amount({"epsilon": {"exact": "3/2", "decimal": 1.5}, "delta": {"exact": "0", "decimal": 0.0}, "rho": None})
    'epsilon 1.5'
    """
    return format_budget({name: amounts[name]["decimal"] for name in PARTS if amounts[name] is not None})


def describe_contents(release: NoisyRelease) -> facts.Contents:
    """Describe mechanism, settings, public frame and layout of the tables.

    Raises:
        SettingError: a setting, or the name of a region, cannot be written as JSON.
    """
    layout = FAMILIES[release.family].layout
    settings = {name: read_setting(value, f"The mechanism's setting {name!r}") for name, value in release.settings.items()}
    shared = {
        "mechanism": release.mechanism,
        "settings": settings,
        "approximate": release.approximate,
        "columns": layout.columns(release),
    }
    contents: facts.Contents = layout.describe(release, shared)
    return contents


def describe_point_contents(release: PointRelease, shared: Table) -> facts.PointContents:
    """Describe what is in a release of points: the domain and its tree of partitions; `shared` is what the contents of all releases say."""
    tree = release.tree
    shape: Any = "stretches of a Hilbert curve" if tree.curve is not None else "one grid" if tree.lines is not None else "nested rectangles"
    order = None if tree.curve is None else tree.curve.order
    return facts.PointContents(
        **shared,
        domain=describe_domain(release.domain),
        height=release.height,
        inside=cast("Any", release.fill),
        nonnegative=release.nonnegative or None,
        spread=_describe_spread(release.spread),
        tree=facts.Partitions(shape=shape, nodes=len(tree), leaves=len(tree.leaves), curve_order=order),
    )


def describe_domain(domain: Domain) -> facts.Lattice:
    """Describe a domain; with its mask, if it has one, as the lengths of runs of masked and open cells."""
    mask = domain.mask
    runs = None if mask is None else facts.MaskRuns(order=mask.order, open_cells=mask.cells_open, runs=mask.runs)
    return facts.Lattice(bounds=domain.bounds, crs=domain.crs, order=domain.order, mask=runs)


def read_domain(lattice: facts.Lattice) -> Domain:
    """Rebuild the domain that `describe_domain` describes.

    Raises:
        DomainError: there is no such domain.
    """
    mask = None if lattice.mask is None else CellMask.from_runs(lattice.mask.order, lattice.mask.runs)
    return Domain(bounds=lattice.bounds, crs=lattice.crs, order=lattice.order, mask=mask)


def _describe_spread(spread: Spread | WaveletSpread | ProductSpread | None) -> Any:
    if spread is None:
        return facts.IndependentErrors()
    if isinstance(spread, ProductSpread):
        return facts.ProductErrors()
    if isinstance(spread, WaveletSpread):
        return facts.WaveletErrors(order=spread.order, variance=spread.variance, width=spread.width)
    return facts.LeastSquaresErrors(root_variance=spread.root)


def describe_trip_contents(release: TripRelease, shared: Table) -> facts.TripContents:
    """Describe what is in a release of trips: the regions and the stages; `shared` is what the contents of all releases say."""
    tree = release.tree
    destinations = None if tree.destinations is tree.origins else tree.destinations
    stages = (
        facts.Stage(
            stage=stage,
            between=tree.title(stage),
            pairs=len(counts.count),
            measured=int(counts.measured),
            variance=float(counts.variance) if math.isfinite(counts.variance) else None,
        )
        for stage, counts in enumerate(release.stages)
    )
    return facts.TripContents(
        **shared,
        refined_first=cast("Any", tree.first),
        every_pair=release.every_pair,
        across=release.half_step_sums is not None,
        totals=None if release.totals is None else True,
        intervals="of released pairs" if release.for_released else None,
        origins=_describe_regions(tree.origins),
        destinations=None if destinations is None else _describe_regions(destinations),
        grid_of_origins=_describe_grid(tree.origins.grid),
        grid_of_destinations=None if destinations is None else _describe_grid(destinations.grid),
        stages=tuple(stages),
    )


def describe_area_contents(release: AreaRelease, shared: Table) -> facts.AreaContents:
    """Describe what is in a release of areas: the regions and their levels; `shared` is what the contents of all releases say."""
    regions, denominator = release.regions, release.regions.denominator
    variances = release.noise_variance[[*regions.hierarchy.starts[:-1]]].tolist()
    levels = (
        facts.AreaLevel(level=level, regions=regions.size(level), variance=variance if math.isfinite(variance) else None)
        for level, variance in enumerate(variances)
    )
    return facts.AreaContents(
        **shared,
        regions=_describe_regions(regions),
        grid=_describe_grid(regions.grid),
        levels=tuple(levels),
        spread=_describe_spread(release.spread),
        hidden=release.hidden is not None,
        denominator=None if denominator is None else facts.Denominator(column=str(denominator.name), per=RATES_PER),
        slots=_describe_slots(release) if isinstance(release, CrossRelease) else None,
    )


def _describe_slots(release: CrossRelease) -> facts.Slots:
    categories, noise = release.categories, release.spread.noise
    _refuse_lone_surrogates(*categories.ids, *categories.names, categories.levels)
    summed = categories if isinstance(categories, Summed) else None
    variances = ((pair, float(noise[pair]) if _is_measured(release, pair) else None) for pair in np.ndindex(noise.shape))
    return facts.Slots(
        levels=categories.levels,
        read_as=cast("Any", categories.read_as),
        zone=categories.zone,
        other=categories.other,
        edges=categories.edges if summed is None else (summed.low, summed.high),
        step=None if summed is None else summed.step,
        pairs=tuple(facts.PairLevel(level=pair[0], slot_level=pair[1], variance=variance) for pair, variance in variances),
    )


def _is_measured(release: CrossRelease, pair: tuple[int, ...]) -> bool:
    """Return whether a pair of levels was measured, as all of its numbers were, or none."""
    return bool(np.isfinite(release.cross_noisy[release.hierarchy.starts[pair[0]], release.slot_hierarchy.starts[pair[1]]]))


def _describe_grid(grid: Grid | None) -> facts.Cells | None:
    if grid is None:
        return None
    if isinstance(grid, Domain):
        return facts.SquareCells(bounds=grid.bounds, crs=grid.crs, order=grid.order)
    return facts.HexagonCells(resolution=grid.resolution)


def read_grid(cells: facts.Cells | None) -> Grid | None:
    """Rebuild the cells by which points find their finest region; None for none."""
    if cells is None:
        return None
    if isinstance(cells, facts.HexagonCells):
        return H3Cells(resolution=cells.resolution)
    return Domain(bounds=cells.bounds, crs=cells.crs, order=cells.order)


def _describe_regions(regions: Regions) -> tuple[facts.RegionLevel, ...]:
    column = [] if regions.denominator is None else [str(regions.denominator.name)]
    _refuse_lone_surrogates(*regions.ids, *regions.names, [*regions.levels, *column])
    shapes = zip(regions.levels, regions.ids, regions.geometry, strict=True)
    return tuple(facts.RegionLevel(level=name, regions=len(ids), shapes=shape is not None) for name, ids, shape in shapes)


def _refuse_lone_surrogates(*all_texts: Iterable[str]) -> None:
    for texts in all_texts:
        if _LONE_SURROGATE.search("\n".join(texts)):
            raise SettingError(
                "An id or name of a region, or of a column, has a lone surrogate (half a character), which cannot be written; correct it."
            )


def describe_utility(release: NoisyRelease) -> Utility:
    """Describe each level's accuracy, coarsest first: how many numbers, their standard deviations and the widths of intervals."""
    return Utility(
        confidence=CONFIDENCE,
        interval=release.describe_intervals(),
        approximate=release.approximate,
        levels=tuple(_describe_level(release, level) for level in range(release.level_number(None) + 1)),
    )


def _describe_level(release: NoisyRelease, level: int) -> facts.LevelUtility:
    """Describe the accuracy of a level; partitions that a mask covers are left out."""
    numbers = release.level_numbers(level)
    return facts.LevelUtility(
        level=level,
        between=release.between(level),
        partitions=len(numbers.stddev),
        stddev_median=_compute_quantile(numbers.stddev, 0.5),
        stddev_p95=_compute_quantile(numbers.stddev, CONFIDENCE),
        interval_width_median=_compute_quantile(numbers.high - numbers.low, 0.5),
    )


def _compute_quantile(values: Floats, share: float) -> float | None:
    """Compute a quantile; None if there are no values or the quantile is not finite."""
    value = float(np.quantile(values, share)) if len(values) else np.nan
    return value if np.isfinite(value) else None


def describe(release: NoisyRelease, publication: Publication, *, created: datetime | None = None, release_id: str | None = None) -> Table:
    """Make the manifest of a release, without the list of files, which `write_release` adds.

    Args:
        release: of points, trips or areas, with noise from the operating system's entropy.
        publication: the curator's part.
        created: time at which the release was made, with a time zone; now if None.
        release_id: 1 to 64 letters, digits, dots, underscores and hyphens; a random one if None.

    Returns:
        A dictionary that is valid by the schema once files are added. It has no seed, no true count, no number of rows, and nothing about
        the input file.

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
    if not isinstance(release, NoisyRelease):
        raise InputError("A manifest describes a release of points, trips or areas; private counts have none.")
    release.refuse_unpublishable()
    return _build_manifest(release, publication, created, release_id)


def check_describable(release: NoisyRelease, publication: Publication | None = None) -> Table:
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
        raise SettingError(f"A fact that the mechanism states about its release breaks the manifest's schema: {violation}")
    return manifest


def encode_manifest(manifest: Table) -> bytes:
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


def _build_manifest(release: NoisyRelease, publication: Publication, created: datetime | None, release_id: str | None) -> Table:
    account = facts.LedgerAccount(
        draws=publication.draws,
        spent=_describe_ledger_amount(publication.dataset_spent),
        cap=_describe_ledger_amount(publication.dataset_cap),
        series=publication.series,
    )
    description = facts.Description(
        identity=_describe_identity(release, created, release_id),
        data_product=_describe_data_product(publication),
        privacy=describe_privacy(release.receipt),
        accounting=describe_accounting(release.receipt),
        post_processing=release.steps,
        contents=describe_contents(release),
        implementation=_describe_implementation(publication),
        dataset=account,
        utility=describe_utility(release),
        verdict=MANIFESTS.read(facts.Grades, describe_verdict(release), "verdict"),
        limits=_LIMITS,
    )
    return MANIFESTS.write(description)


def _describe_data_product(publication: CuratorTexts) -> facts.DataProduct:
    """Describe the curator's texts; of those that may be left out, the ones that are there."""
    texts: dict[str, Any] = {name: getattr(publication, name) for name in keys_of(facts.DataProduct)}
    optional = {name: texts[name] or None for name, key in keys_of(facts.DataProduct).items() if not key.required}
    return facts.DataProduct(**texts | optional | {"trust_model": publication.trust_model or TRUST_MODEL})


def describe_release(release: NoisyRelease) -> Table:
    """Write the parts of a manifest that follow from the release alone: privacy, accounting, post-processing and contents."""
    return {
        "privacy": MANIFESTS.write(describe_privacy(release.receipt)),
        "accounting": MANIFESTS.write(describe_accounting(release.receipt)),
        "post_processing": list(release.steps),
        "contents": MANIFESTS.write(describe_contents(release)),
    }


def find_violation(manifest: object) -> str | None:
    """Find what in a manifest breaks its schema first.

    Args:
        manifest: any object.

    Returns:
        The rule and the field that breaks it, such as "manifest/privacy/unit must be a text in quotes.", without its value; None if the
        manifest is valid.
    """
    try:
        MANIFESTS.read(facts.Manifest, manifest, "manifest")
    except SettingError as error:
        return str(error)
    return None


def _describe_identity(release: NoisyRelease, created: datetime | None, release_id: str | None) -> facts.Identity:
    time = datetime.now(UTC) if created is None else created
    identifier = str(uuid.uuid4()) if release_id is None else release_id
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise SettingError("The time of a release needs a time zone, such as datetime.now(UTC).")
    if not isinstance(identifier, str) or not re.fullmatch(facts.RELEASE_ID, identifier):
        raise SettingError("A release's id is 1 to 64 letters, digits, dots, underscores and hyphens.")
    return facts.Identity(
        schema_version=SCHEMA_VERSION,
        release_id=identifier,
        created=time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        kind=facts.Kind(release.family),
        versions={"python": platform.python_version()} | {name: _find_version(name) for name in _LIBRARIES},
    )


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _describe_implementation(publication: Publication) -> facts.Implementation:
    return facts.Implementation(
        sampler="exact integer inversion: discrete distributions on whole numbers, refined until each draw is certain",
        arithmetic="budgets and scales are exact fractions, noise is drawn and added on whole numbers; scores that only choose a"
        " structure may be floating-point numbers whose rounding is paid for; estimates after the noise are 64-bit floating-point",
        timing_hardened=False,
        tuning=facts.Tuning(truth_seen=publication.truth_seen, persons_searched=publication.persons_searched),
    )
