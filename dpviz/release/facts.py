"""The objects of a manifest, as dataclasses: what they declare is what a manifest holds, and its JSON Schema is made from them.

`MANIFESTS` reads and writes them. `python -m dpviz.release.facts` writes the schema, which goes with every release.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, TypeAlias, Union, get_args

from dpviz.codec import Codec, Limit, Scalar, Schema, Table
from dpviz.errors import SettingError, check_choice
from dpviz.families import FAMILIES
from dpviz.privacy.series import Protects
from dpviz.space.periods import Kind as PeriodKind

SCHEMA_FILE = Path(__file__).with_name("manifest.schema.json")
Version = Literal["2.0", "2.1", "2.2", "2.3", "2.4", "2.5"]
SCHEMA_VERSIONS: tuple[Version, ...] = get_args(Version)
"""The versions that are read, oldest first: one schema describes them all."""
SCHEMA_VERSION = SCHEMA_VERSIONS[-1]
Kind = NewType("Kind", str)
"""The name of a family: "points", "trips" or "areas"."""
TruthSeen: TypeAlias = Literal[True, False, "not recorded"]

Filled = Annotated[str, Limit("minLength", 1)]
Number = Annotated[int, Limit("minimum", 0)]
OneOrMore = Annotated[int, Limit("minimum", 1)]
Order = Annotated[int, Limit("minimum", 1), Limit("maximum", 24)]
Size = Annotated[float, Limit("minimum", 0)]
Bounds = tuple[float, float, float, float]
RELEASE_ID, FILE_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
FileName = Annotated[str, Limit("pattern", f"^{FILE_NAME}$")]
Digest = Annotated[str, Limit("pattern", "^[0-9a-f]{64}$")]


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Which release this is, and what made it.

    Attributes:
        schema_version: version of this schema. A manifest of version 2.0 has no exact conversion; up to 2.1, counts may be negative, no
            answer is log-linear, and no trust model is stated; up to 2.2, it is not stated whether columns were searched for persons; up
            to 2.4, intervals of boxes that cut partitions cover the noise only.
        release_id: name of this release, unique among the curator's; random unless chosen.
        created: when the manifest was made, in UTC.
        mode: always a private release: simulations and references without privacy are never written.
        kind: points: counts of places. trips: counts between places. areas: counts of nested regions.
        versions: versions of Python, dpviz and the libraries that computed it, by their names.
    """

    schema_version: Version
    release_id: Annotated[str, Limit("pattern", f"^{RELEASE_ID}$")]
    created: Annotated[str, Limit("pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
    mode: Literal["private release"] = "private release"
    kind: Kind
    versions: Annotated[dict[str, str], Limit("required", ("python", "dpviz", "numpy"))]


@dataclass(frozen=True, kw_only=True)
class DataProduct:
    """What the curator says about the data, in the curator's words. Show it as text only, never as markup.

    Attributes:
        name: name of the data product.
        curator: who answers for it.
        description: what was counted, when and how it was collected; may be empty.
        region: the part of the world that it covers; may be empty.
        intended_use: what it was made for, and what not; may be empty.
        trust_model: who is trusted with the records, and who is not.
        budget_reason: why the budget is as large as it is, in the curator's words.
        unit_in_words: whom or what the release protects, in the curator's words; what holds is under privacy.
        licence: licence under which the data product may be used.
        contact: whom to ask.
        url: where the data product, or a page on it, can be found.
        citation: how to cite the data product.
    """

    name: Filled
    curator: Filled
    description: str
    region: str
    intended_use: str
    trust_model: Filled | None = None
    budget_reason: Filled | None = None
    unit_in_words: Filled | None = None
    licence: Filled | None = None
    contact: Filled | None = None
    url: Annotated[str, Limit("pattern", "^https?://")] | None = None
    citation: Filled | None = None


@dataclass(frozen=True, kw_only=True)
class Amount:
    """An exact number.

    Attributes:
        exact: exact value: a whole number or a fraction in lowest terms.
        decimal: the nearest floating-point number, for people only.
    """

    exact: Annotated[str, Limit("pattern", "^-?[0-9]{1,4300}(/[1-9][0-9]{0,4299})?$")]
    decimal: float


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """An amount of privacy: epsilon, epsilon and delta, or rho.

    Attributes:
        epsilon: epsilon; null where rho is counted.
        delta: delta; null where it is not counted.
        rho: rho of zero-concentrated differential privacy; null where epsilon is counted.
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The guarantee.

    Attributes:
        variant: the definition that the budget is stated in.
        unit: what is protected: one record, one trip, or one person with all that is theirs up to the contribution bound.
        unit_definition: what one unit is, in words: for persons the column of the data whose values are persons, and the most records of
            each that were counted. Null where nothing more is said than the unit's name.
        neighbouring_relation: which change of the data is hidden: one unit added or removed, or one replaced by another.
        contribution_bound: the most records of one unit that were counted.
        epsilon: epsilon handed in; null under zero-concentrated differential privacy.
        delta: delta handed in; null where the variant has none.
        rho: rho handed in; null unless the variant is zero-concentrated differential privacy.
        converted_rho: the rho that (epsilon, delta) was turned into before it was spent; null where nothing was converted.
        conversion: how epsilon, delta and rho were converted. exact: the largest rho whose noise, in exactly the steps under accounting, is
            (epsilon, delta)-differentially private by privacy-loss distributions; it holds for this release alone, so add up releases by
            epsilon and delta or by rho, and never convert this rho by a formula. tight: minimum over Renyi orders (Canonne, Kamath,
            Steinke, NeurIPS 2020, Proposition 12). simple: epsilon = rho + 2 sqrt(rho ln(1 / delta)) (Bun, Steinke, TCC 2016,
            Proposition 1.3). null where nothing was converted.
        spent: what the worst unit loses in this release, never more than what was handed in.
        unprotected: what the release takes as public: it is not protected, and some of it may be published exactly.
    """

    variant: Literal["pure differential privacy", "approximate differential privacy", "zero-concentrated differential privacy"]
    unit: str
    unit_definition: str | None
    neighbouring_relation: str
    contribution_bound: OneOrMore
    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    converted_rho: Fraction | None
    conversion: Literal["exact", "tight", "simple"] | None
    spent: Amounts
    unprotected: tuple[str, ...]


Composition = Literal["adds to the other steps", "in place of later steps, on paths that end here"]


@dataclass(frozen=True, kw_only=True)
class Spending:
    """One spending.

    Attributes:
        purpose: what was measured or chosen.
        level: level of the tree of partitions, or stage of the tree of pairs, 0 for the whole; null where it has none. Levels below the
            deepest partition were planned and not reached.
        amount: epsilon or rho that one unit loses here at most; disjoint counts are paid for once.
        delta: delta that one unit loses here at most.
        sensitivity: the largest total change that one unit causes; for Gaussian noise the largest sum of squared changes.
        noise: the law of the noise or of the choice.
        scale: its exact parameter: sensitivity / epsilon for Laplace noise, the variance sensitivity / (2 rho) for Gaussian noise,
            2 sensitivity / epsilon for the exponential mechanism and for the Laplace noise of a noisy minimum.
        counts: how many numbers were measured; null where that number is itself private.
        composition: whether the amount is added to those of the other steps, or is what some paths spend instead of later ones.
    """

    purpose: str
    level: Number | None
    amount: Fraction
    delta: Fraction
    sensitivity: Fraction
    noise: str
    scale: Fraction
    counts: Number | None
    composition: Composition


@dataclass(frozen=True, kw_only=True)
class Accounting:
    """What was spent on what: enough to compute the guarantee again.

    Attributes:
        currency: what the amounts of the steps are in.
        composition: how the steps add up.
        available: what the steps could spend, in their currency.
        used: what they spent: the exact sum of all steps that add to the others.
        steps: the spendings, in order.
        notes: settings that had to be cut, and why less than the budget was spent.
    """

    currency: Literal["epsilon", "rho"]
    composition: str
    available: Fraction
    used: Fraction
    steps: Annotated[tuple[Spending, ...], Limit("minItems", 1)]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MaskRuns:
    """Where nobody can be, declared in public. Masked cells have count 0, without noise.

    Attributes:
        order: the mask has 2**order columns and rows, each a block of one or more columns or rows of the lattice.
        open_cells: cells of the mask in which records can be.
        runs: lengths of runs of masked and open cells by turns, masked ones first, row by row from the south-west.
    """

    order: Annotated[int, Limit("minimum", 1), Limit("maximum", 11)]
    open_cells: Annotated[int, Limit("minimum", 1), Limit("maximum", 4194304)]
    runs: Annotated[str, Limit("pattern", "^[0-9]{1,7}( [0-9]{1,7})*$")]


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """A public rectangle and its lattice.

    Attributes:
        bounds: west, south, east, north, in units of the CRS.
        crs: coordinate reference system, as a text that PROJ understands; null for a plain plane.
        order: the lattice has 2**order columns and rows.
        mask: where nobody can be; missing if records can be everywhere.
    """

    bounds: Bounds
    crs: str | None
    order: Order
    mask: MaskRuns | None = None


@dataclass(frozen=True, kw_only=True)
class SquareCells:
    """The squares of a lattice, which are the finest regions.

    Attributes:
        cells: kind of cells.
        bounds: west, south, east, north, in units of the CRS.
        crs: coordinate reference system, as a text that PROJ understands; null for a plain plane.
        order: the lattice has 2**order columns and rows.
    """

    cells: Literal["squares of a lattice"] = "squares of a lattice"
    bounds: Bounds
    crs: str | None
    order: Order


@dataclass(frozen=True, kw_only=True)
class HexagonCells:
    """H3 cells, which are the finest regions. Shapes of coarser ones are approximate.

    Attributes:
        cells: kind of cells.
        resolution: of the finest cells.
    """

    cells: Literal["H3 cells"] = "H3 cells"
    resolution: Annotated[int, Limit("minimum", 0), Limit("maximum", 15)]


Cells: TypeAlias = SquareCells | HexagonCells
"""Cells by which a point finds its finest region."""


@dataclass(frozen=True, kw_only=True)
class IndependentErrors:
    """Independent errors, with the column noise_variance.

    Attributes:
        errors: kind of spread.
    """

    errors: Literal["independent"] = "independent"


@dataclass(frozen=True, kw_only=True)
class LeastSquaresErrors:
    """Errors after least squares, with the columns share and slack.

    The error of a child is e_child = share e_parent + u - share (sum of u over siblings), u independent with variance slack.

    Attributes:
        errors: kind of spread.
        root_variance: variance of the count of the whole.
    """

    errors: Literal["least squares"] = "least squares"
    root_variance: Size


@dataclass(frozen=True, kw_only=True)
class WaveletErrors:
    """Independent errors of Haar coefficients.

    Attributes:
        errors: kind of spread.
        order: the table has 2**order places per axis.
        variance: variance of the noise on a coefficient.
        width: lattice cells per place and axis.
    """

    errors: Literal["wavelet"] = "wavelet"
    order: Annotated[int, Limit("minimum", 0), Limit("maximum", 24)]
    variance: Size
    width: OneOrMore


@dataclass(frozen=True, kw_only=True)
class Partitions:
    """The partitions: columns level, parent, first_child, children, and bounds as lines of the lattice, such as west_line.

    Attributes:
        shape: stretches of a curve are curve_first..curve_last - 1; their rectangles are boxes around them and may overlap.
        nodes: how many partitions there are on all levels.
        leaves: how many of them are not divided.
        curve_order: the curve runs through 2**order x 2**order squares; null without a curve.
    """

    shape: Literal["nested rectangles", "one grid", "stretches of a Hilbert curve"]
    nodes: OneOrMore
    leaves: OneOrMore
    curve_order: Order | None


@dataclass(frozen=True, kw_only=True)
class RegionLevel:
    """A level of regions.

    Attributes:
        level: name of the level.
        regions: how many regions it has.
        shapes: whether the level has shapes of its own.
    """

    level: Filled
    regions: OneOrMore
    shapes: bool


RegionLevels = Annotated[tuple[RegionLevel, ...], Limit("minItems", 1), Limit("maxItems", 16)]


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What the contents of all releases say.

    Attributes:
        mechanism: key of the mechanism.
        settings: the mechanism's settings, by name. All are public; a seed among them draws public boxes for tuning, never noise.
        approximate: why the stated spread is only approximate; null if it is exact.
        kind: name of the family.
        columns: columns of the tables, by name, with their meaning. Not every table has every column.
    """

    mechanism: str
    settings: dict[str, Any]
    approximate: str | None
    kind: str
    columns: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class PointContents(Contents):
    """A release of points. Its main table is partitions (GeoParquet, GeoJSON, CSV): the finest partitions, each record in one of them.

    All levels are in levels (Parquet, CSV); the release is read back from levels.parquet.

    Attributes:
        kind: counts of places.
        domain: the public rectangle and its lattice.
        height: the finest level of the tree as it was built, where 0 is the whole domain; pruning may leave the tree less deep.
        inside: how answers fill partitions that a question cuts: by share of area, or leaning towards fuller neighbours, by limited slopes
            or log-linearly.
        nonnegative: present if negative counts were spread over their siblings: no count is below 0.
        spread: how the errors of the counts hang together.
        tree: the partitions.
    """

    kind: Literal["points"] = "points"
    domain: Lattice
    height: Annotated[int, Limit("minimum", 0), Limit("maximum", 64)]
    inside: Literal["uniform", "interpolated", "log-linear"]
    nonnegative: Literal[True] | None = None
    spread: IndependentErrors | LeastSquaresErrors | WaveletErrors
    tree: Partitions


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of the tree of pairs.

    Attributes:
        stage: its number.
        between: names of the levels of origins and destinations.
        pairs: how many pairs were released; a pair that is missing was released as 0.
        measured: how many numbers were measured, dropped ones included; 0 if the stage was not measured; how many were released where that
            number is private.
        variance: variance of the noise in each number of count_noisy: 0 if the stage is exact, null if it was neither measured nor
            estimated.
    """

    stage: Number
    between: str
    pairs: Number
    measured: Number
    variance: Size | None


@dataclass(frozen=True, kw_only=True)
class TripContents(Contents):
    """A release of trips. Its main table is flows.parquet: the pairs of the finest level, as in the last of the CSV files.

    The CSV files have one level each. The release is read back from stages.parquet, which has all stages, and regions.parquet or
    origins.parquet and destinations.parquet.

    Attributes:
        kind: counts between places.
        refined_first: which side of a pair the odd stages of the tree refine by one level; even stages refine the other.
        every_pair: whether a measured stage measured every pair, empty ones included; else the children of released nodes.
        across: whether across.parquet has sums that the list of the finest stage, with pairs left out, cannot give.
        totals: present if totals.parquet has unbiased estimates of what leaves and arrives, the centres of their intervals.
        intervals: present from version 2.5 on: each interval holds at the level 1 - 0.05 R / m, where R of the m possible pairs of a level
            are released, so that on average at least 95 % of the intervals of released pairs contain the true number. Where it is missing,
            an interval holds for a pair that was chosen without a look at the counts, and less often for pairs that are released because
            of their noise.
        origins: levels of the origins, coarsest first.
        destinations: levels of the destinations; null where they are the origins' own.
        grid_of_origins: present if the finest origins are cells that find their points.
        grid_of_destinations: present if the finest destinations are such cells of their own.
        stages: the stages of the tree of pairs, the pair of everything first.
    """

    kind: Literal["trips"] = "trips"
    refined_first: Literal["destination", "origin"]
    every_pair: bool
    across: bool
    totals: Literal[True] | None = None
    intervals: Literal["of released pairs"] | None = None
    origins: RegionLevels
    destinations: RegionLevels | None
    grid_of_origins: Cells | None = None
    grid_of_destinations: Cells | None = None
    stages: Annotated[tuple[Stage, ...], Limit("minItems", 1)]


@dataclass(frozen=True, kw_only=True)
class AreaLevel:
    """A level of counts.

    Attributes:
        level: its number, 0 for the whole.
        regions: how many regions it has. All of them are released, empty ones too.
        variance: variance of the noise in each number of count_noisy; null if the level was not measured.
    """

    level: Number
    regions: OneOrMore
    variance: Size | None


@dataclass(frozen=True, kw_only=True)
class ProductErrors:
    """Errors after least squares on regions and categories: exact variances follow from those of the noise on each pair of levels.

    Attributes:
        errors: kind of spread.
    """

    errors: Literal["least squares on a product"] = "least squares on a product"


@dataclass(frozen=True, kw_only=True)
class PairLevel:
    """A pair of a level of regions and one of categories.

    Attributes:
        level: number of the level of regions, 0 for the whole.
        slot_level: number of the level of categories, 0 for the whole.
        variance: variance of the noise in each number of count_noisy; null if the pair was not measured.
    """

    level: Number
    slot_level: Number
    variance: Size | None


@dataclass(frozen=True, kw_only=True)
class Slots:
    """The categories by which records were counted beside the region. A finest one is a slot.

    Attributes:
        levels: names of their levels, coarsest first.
        read_as: how an entry found its slot: by its id, by the bin of its number, or by the hour, weekday or month of its time; or whether
            it is a value that was added up, each record in both slots, split between the bounds.
        edges: of bins, ascending; a bin has its lower edge, and not its upper one. Of values, both bounds. Empty for others.
        zone: of times, the time zone; null for others.
        other: whether the last slot has the records that lie in no other one; else they were left out.
        pairs: the pairs of levels, with the noise on their counts.
        step: of values, the width of their grid; left out for others.
    """

    levels: Annotated[tuple[Filled, ...], Limit("minItems", 1), Limit("maxItems", 16)]
    read_as: Literal["ids", "bins", "hour", "weekday", "month", "value"]
    edges: tuple[float, ...]
    zone: str | None
    other: bool
    pairs: Annotated[tuple[PairLevel, ...], Limit("minItems", 1)]
    step: Annotated[float, Limit("exclusiveMinimum", 0)] | None = None


@dataclass(frozen=True, kw_only=True)
class Denominator:
    """A public number of each region, by which counts are divided to rates.

    Attributes:
        column: name of its column in the public file of regions.
        per: rates are per so many.
    """

    column: Filled
    per: Annotated[float, Limit("exclusiveMinimum", 0)]


@dataclass(frozen=True, kw_only=True)
class AreaContents(Contents):
    """A release of areas. Its main table is areas.parquet: the finest regions, as in the last of the CSV and GeoJSON files.

    The CSV and GeoJSON files have one level each. The release is read back from levels.parquet, which has all levels, and regions.parquet.

    Attributes:
        kind: counts of nested regions.
        regions: levels of the regions, coarsest first.
        grid: cells by which a point finds its finest region; null where the regions' polygons decide.
        levels: the levels, the whole first.
        spread: how the errors of the counts hang together.
        hidden: whether numbers of finest regions under a public threshold are missing in all tables but levels.parquet, whose column hidden
            says which.
        denominator: the public number of each region by which counts are divided to rates; left out where there is none.
        slots: what was counted beside the region; left out where it was the region alone. by_slot.parquet, and by_slot.csv, have all
            pairs of regions and categories, and categories.parquet has the categories; all other tables count all slots together.
    """

    kind: Literal["areas"] = "areas"
    regions: RegionLevels
    grid: Cells | None
    levels: Annotated[tuple[AreaLevel, ...], Limit("minItems", 2), Limit("maxItems", 17)]
    spread: LeastSquaresErrors | ProductErrors
    hidden: bool
    denominator: Denominator | None = None
    slots: Slots | None = None


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How the settings were found.

    Attributes:
        truth_seen: whether somebody looked at true counts beside noisy ones before publishing. If so, the choice of settings may itself
            tell something about the data. "not recorded": the release was made where nothing records looks, as in Python.
        persons_searched: whether distinct values of columns were counted, to find out which column says whose record a row is. No count of
            a place is seen by that. Releases before version 2.3 do not say it.
    """

    truth_seen: TruthSeen
    persons_searched: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """How the noise was drawn.

    Attributes:
        sampler: method of the sampler.
        entropy: where the random bits came from.
        arithmetic: kind of numbers that each part was computed with.
        timing_hardened: whether the running time is independent of the data.
        tuning: how the settings were found.
    """

    sampler: str
    entropy: Literal["operating system"] = "operating system"
    arithmetic: str
    timing_hardened: bool
    tuning: Tuning


@dataclass(frozen=True, kw_only=True)
class SeriesPart:
    """The series of releases to which this one belongs, each for another period of the same data.

    Attributes:
        name: the period of this release, such as 2026-11.
        kind: what a period is.
        periods: the most periods that are ever released.
        protects: what the cap is for: all that one person (or record, if each is its own person) has in all periods; what one person has in
            a single period; or one record.
        time: the column that says in which period a row counts; null where the data of each release are the period's.
        zone: the time zone in which periods begin; null where the column has months, or there is none.
        in_all: the most that all periods together cost somebody with records in each of them.
    """

    name: Filled
    kind: PeriodKind
    periods: OneOrMore
    protects: Protects
    time: str | None
    zone: str | None
    in_all: Amounts


@dataclass(frozen=True, kw_only=True)
class LedgerAccount:
    """What the curator's ledger says about the same data.

    Attributes:
        draws: how many draws on this dataset were made, this one included. They add up.
        spent: what all draws have spent together, this one included; of a series, all draws of its period. Null where no ledger was kept.
        cap: the most that the ledger lets be spent; of a series, in its period. Null where no ledger was kept.
        series: the series to which the release belongs, if it does.
    """

    draws: OneOrMore
    spent: Amounts | None
    cap: Amounts | None
    series: SeriesPart | None = None


@dataclass(frozen=True, kw_only=True)
class LevelUtility:
    """Spread of one level.

    Attributes:
        level: 0 for the whole domain, or everything; counted downwards to the finest partitions, or the leaf regions.
        between: trips: the names of the levels of origins and destinations.
        partitions: how many partitions (or released pairs) the level has.
        stddev_median: median standard deviation of the noise in a count; null if there are no counts.
        stddev_p95: 95th percentile of the standard deviations.
        interval_width_median: median width of the intervals.
    """

    level: Number
    between: str | None
    partitions: Number
    stddev_median: Size | None
    stddev_p95: Size | None
    interval_width_median: Size | None


@dataclass(frozen=True, kw_only=True)
class Utility:
    """How far the counts may be off because of the noise, computed from the mechanism and never from the truth.

    Attributes:
        confidence: probability with which an interval holds the true count; of pairs of regions, the share of released pairs whose
            intervals do, on average.
        interval: how the intervals are made, and what they do not cover.
        approximate: why the stated spread is only approximate; null if it is exact.
        levels: one entry per level, coarsest first.
    """

    confidence: Annotated[float, Limit("exclusiveMinimum", 0), Limit("maximum", 1)]
    interval: str
    approximate: str | None
    levels: tuple[LevelUtility, ...]


@dataclass(frozen=True, kw_only=True)
class Grades:
    """Which levels are usable, from released numbers alone: noise beside the average number of a level.

    Attributes:
        headline: which levels are usable, rough and mostly noise.
        detail: numbers and noise of the finest usable level and of the finest one, and what was dropped.
        rule: when a level is usable.
        usable: levels of this grade, 0 for the whole.
        rough: levels of this grade, 0 for the whole.
        mostly_noise: levels of this grade, 0 for the whole.
    """

    headline: str
    detail: str
    rule: str
    usable: tuple[Number, ...]
    rough: tuple[Number, ...]
    mostly_noise: tuple[Number, ...]


@dataclass(frozen=True, kw_only=True)
class ReleaseFile:
    """One file.

    Attributes:
        name: name, in the folder of the manifest.
        format: format.
        about: what is in it.
        bytes: size.
        sha256: SHA-256 of its bytes, in hexadecimal digits.
    """

    name: FileName
    format: str
    about: str
    bytes: Number
    sha256: Digest


@dataclass(frozen=True, kw_only=True)
class MissingFile:
    """One file that cannot exist.

    Attributes:
        name: name that it would have had.
        reason: why it cannot exist.
    """

    name: FileName
    reason: str


@dataclass(frozen=True, kw_only=True)
class Description:
    """A manifest before its files are written.

    Attributes:
        identity: which release this is, and what made it.
        data_product: what the curator says about the data, in the curator's words. Show it as text only, never as markup.
        privacy: the guarantee.
        accounting: what was spent on what: enough to compute the guarantee again.
        post_processing: what was done to the noisy numbers afterwards, in order. It costs no privacy; the raw noisy numbers stay beside it
            as count_noisy.
        contents: mechanism, public frame, and how the tables are to be read.
        implementation: how the noise was drawn.
        dataset: what the curator's ledger says about the same data.
        utility: how far the counts may be off because of the noise, computed from the mechanism and never from the truth.
        verdict: which levels are usable, from released numbers alone: noise beside the average number of a level.
        limits: what the guarantee does not cover, and what was not checked.
    """

    identity: Identity
    data_product: DataProduct
    privacy: Privacy
    accounting: Accounting
    post_processing: tuple[str, ...]
    contents: Contents
    implementation: Implementation
    dataset: LedgerAccount
    utility: Utility
    verdict: Grades
    limits: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Manifest(Description):
    """What a stranger must know to judge a release made by dpviz, and to rebuild it from its tables.

    It holds no seed of the noise, no true count that is not named as unprotected, no number of records, and nothing about the input file.

    Attributes:
        files: every file of the release but the manifest itself.
        left_out: files that were asked for but cannot exist for this release.
        seal: SHA-256, in hexadecimal digits, of this manifest without its seal, written as JSON with names in alphabetical order, no
            spaces, and characters beyond ASCII escaped. It shows accidents and careless edits; it is no signature.
    """

    files: tuple[ReleaseFile, ...]
    left_out: tuple[MissingFile, ...]
    seal: Digest


def read_setting(value: Any, name: str) -> Any:
    """Read the value of a setting, called `name` in messages; lists become tuples.

    Raises:
        SettingError: a value that JSON cannot express.
    """
    if isinstance(value, list | tuple):
        return tuple(read_setting(part, name) for part in value)
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise SettingError(f"{name} must be a text, a finite number, true, false or null, or a list of these.")


def _read_fraction(value: Any, name: str) -> Fraction:
    return Fraction(MANIFESTS.read(Amount, value, name).exact)


def _read_kind(value: Any, name: str) -> Kind:
    check_choice(value, tuple(FAMILIES), name)
    return Kind(value)


def _all_contents() -> Any:
    """Return the union of the contents of all families."""
    return Union[tuple(family.layout.contents for family in FAMILIES.values())]  # noqa: UP007  (of types that are looked up)


def _read_contents(value: Any, name: str) -> Contents:
    contents: Contents = MANIFESTS.read_value(_all_contents(), value, name)
    return contents


def _write_fraction(value: Fraction) -> Table:
    """Write a fraction as an `Amount`; its decimal is at most the largest floating-point number."""
    decimal = float(value) if abs(value) <= sys.float_info.max else math.copysign(sys.float_info.max, value)
    return {"exact": str(value), "decimal": decimal}


MANIFESTS = Codec(
    scalars={
        Fraction: Scalar(read=_read_fraction, write=_write_fraction, schema={"$ref": "#/$defs/Amount"}),
        Kind: Scalar(read=_read_kind, schema={}),
        Contents: Scalar(read=_read_contents, schema={}),
        Any: Scalar(read=read_setting, schema={"$ref": "#/$defs/Setting"}),
    },
    step="/",
)
"""How manifests are read and written: exact numbers are fractions, and lists in settings are tuples.

>>> MANIFESTS.write(Amounts(epsilon=Fraction(1, 4), delta=None, rho=None))
{'epsilon': {'exact': '1/4', 'decimal': 0.25}, 'delta': None, 'rho': None}
"""


def make_schema() -> Schema:
    """Make the JSON Schema (2020-12) of manifests."""
    setting = {"anyOf": [{"type": ["null", "boolean", "number", "string"]}, {"type": "array", "items": {"$ref": "#/$defs/Setting"}}]}
    defined: Schema = {
        "Amount": MANIFESTS.schema(Amount),
        "Setting": {"description": "Value of a setting; lists stand for tuples."} | setting,
    }
    contents = MANIFESTS.value_schema(_all_contents(), defined)
    of_families = {
        Kind: replace(MANIFESTS.scalars[Kind], schema={"enum": [*FAMILIES]}),
        Contents: replace(MANIFESTS.scalars[Contents], schema=contents),
    }
    start = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dpviz:manifest:{SCHEMA_VERSION}",
        "title": "Manifest of a differentially private release of locations",
    }
    codec = replace(MANIFESTS, scalars={**MANIFESTS.scalars, **of_families})
    return start | codec.schema(Manifest, defined) | {"$defs": defined}


def schema_for(kind: str) -> bytes:
    """Return the file of the schema that goes with a release of a kind: of a family of another package, one that knows it."""
    packaged = SCHEMA_FILE.read_bytes()
    if kind in json.loads(packaged)["$defs"]["Identity"]["properties"]["kind"]["enum"]:
        return packaged
    return _encode_schema().encode()


def _encode_schema() -> str:
    return json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(_encode_schema(), "utf-8")
