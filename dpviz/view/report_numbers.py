"""The numbers of a report: budget per level, noise per level, examples of released numbers, and code that reads the files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.amounts import MISSING, format_count, format_decimal, format_percent, format_upper_bound, round_to
from dpviz.arrays import Floats, Integers
from dpviz.privacy.budget import Budget, PureBudget, ZcdpBudget
from dpviz.privacy.receipt import Receipt
from dpviz.release.base import NoisyRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.reliability import grade_reliability
from dpviz.release.tables import FLOWS, REST, TABLE, escape_formulas, format_level
from dpviz.release.trip_release import TripRelease
from dpviz.release.verdict import grades
from dpviz.space.domain import Domain

_PRIORS = (0.01, 0.1, 0.5)  # beliefs of an attacker before the release
_DELTA_OF_RHO = Fraction(1, 10**6)  # at which rho is converted to epsilon, for readers
_LARGEST_EXPONENT = 700.0  # exp of more overflows
RELIABILITIES = ("high", "medium", "low")
_LOGARITHMIC_FROM = 20.0  # largest standard deviation divided by the smallest, from which on an axis is logarithmic
_POSITIONS = {
    "at the centre": (1 / 2, 1 / 2),
    "south-west": (1 / 4, 1 / 4),
    "south-east": (3 / 4, 1 / 4),
    "north-west": (1 / 4, 3 / 4),
    "north-east": (3 / 4, 3 / 4),
}
"""Positions in the domain, as shares of its width and height; fixed in advance, so that no count decides which partition is shown."""
_POINTS_CODE = """import {library}
import shapely

table = {library}.{read}
parts = {parts}
box = shapely.box({box})
share = shapely.area(shapely.intersection(parts, box)) / shapely.area(parts)
print((table["count"] * share).sum())"""
_READ_PARQUET = '{name} = pandas.read_parquet("{file}")'
_READ_CSV = """{name} = pandas.read_csv("{file}", dtype=str, keep_default_na=False)
{name}["count"] = pandas.to_numeric({name}["count"])"""
_CSV_COMMENT = "# From CSV: read as texts, ids such as 09001 and NA stay as they are."
_SUM_CODE = """{table}
print(table.loc[table["{column}"] == {region!r}, "count"].sum())"""
_LIST_CODE = """{listed}
{rest}
in_list = listed.loc[listed["{column}"] == {region!r}, "count"].sum()
in_rest = rest.loc[rest["{side}"] == {region!r}, "count"].sum()
print(in_list + in_rest)"""
_SHAPES_CODE, _BOUNDS_CODE = "table.geometry.to_numpy()", 'shapely.box(table["west"], table["south"], table["east"], table["north"])'


@dataclass(frozen=True, kw_only=True)
class PairRows:
    """Released pairs of one level, most trips first.

    Attributes:
        level: 1 for the coarsest.
        origin: (k,) indices of origin regions.
        destination: (k,) indices of destination regions.
        count: (k,) trips, above 0.
        stddev: (k,) standard deviations of the noise.
        low: (k,) lower ends of 95 % intervals that hold for all pairs at once, since the shown pairs are chosen by size.
        high: (k,) upper ends.
    """

    level: int
    origin: Integers
    destination: Integers
    count: Integers
    stddev: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class LevelSpending:
    """One row of the chart of the budget: what was spent at one level.

    Attributes:
        name: the level's name, or the purpose of a step that has no level.
        counts: share of the whole budget that was spent on counts, 0 to 1.
        structure: share of the whole budget that was spent on the structure, 0 to 1.
        amount: both together, as a decimal.
        exact: both together, as a fraction.
        percent: both together, in percent of the whole budget.
    """

    name: str
    counts: float
    structure: float
    amount: str
    exact: str
    percent: str


@dataclass(frozen=True, kw_only=True)
class Odds:
    """The privacy guarantee in numbers for lay readers; each is rounded so that the statement stays true.

    Attributes:
        epsilon: the bound, as a decimal.
        factor: e to the epsilon.
        twice: the square of that factor, for conclusions that involve two units.
        delta: as a decimal; "" if it is 0.
        one_in: 1 / delta, for "1 in 1,000"; "" if delta is 0.
        rho: as a decimal, for zero-concentrated privacy, for which epsilon is converted from rho at this delta; else "".
        beliefs: rows of an attacker's belief in percent: before the release, and the least and the most after seeing it.
    """

    epsilon: str
    factor: str
    twice: str
    delta: str
    one_in: str
    rho: str
    beliefs: list[tuple[str, str, str]]


@dataclass(frozen=True, kw_only=True)
class LevelRow:
    """One level of a release.

    Attributes:
        level: its number, 0 for the whole.
        name: name of the level, for readers.
        parts: how many partitions, or released pairs, it has.
        size: median area of its partitions in km2 (units of area on a plain plane); None for trips.
        median: median of the standard deviation of the noise; None if it is not known.
        p95: 95th percentile of the standard deviation.
        width: median width of the 95 % intervals.
        shares: percent of the partitions or pairs that have high, medium and low reliability.
        grade: "usable", "rough" or "mostly noise".
    """

    level: int
    name: str
    parts: int
    size: float | None
    median: float | None
    p95: float | None
    width: float | None
    shares: tuple[float, float, float]
    grade: str


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The horizontal axis of a chart.

    Attributes:
        ticks: position (0 to 1) and text of each tick.
        logarithmic: whether positions grow with the logarithm of values.
        low: value at the left end.
        high: value at the right end.
    """

    ticks: list[tuple[float, str]]
    logarithmic: bool
    low: float
    high: float

    def position(self, value: float) -> float:
        """Compute the position of a value, 0 to 1; values beyond the ends are placed on the ends."""
        if self.logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Example:
    """One released number.

    Attributes:
        kind: how the partition or pair was chosen.
        where: name of the partition or pair.
        count: the released count, as a text.
        low: lower end of its interval.
        high: upper end.
        relative: standard deviation in percent of the count; "–" where the count is not above 0.
        reliability: "high", "medium" or "low".
        mark: "*" if negative counts were spread, and the count lies outside its interval; else "".
        rate: of areas with a denominator, the count and its interval divided by it, as a text; else "".
    """

    kind: str
    where: str
    count: str
    low: str
    high: str
    relative: str
    reliability: str
    mark: str = ""
    rate: str = ""


@dataclass(frozen=True, kw_only=True)
class ErrorSums:
    """How errors add up from the smallest parts to the whole.

    Attributes:
        parts: how many smallest parts there are.
        single: median standard deviation of the smallest parts.
        independent: standard deviation of the sum of the smallest parts, if their errors were independent.
        stated: standard deviation of the number for the whole.
        accumulates: whether the errors add up like independent ones: `stated` is more than 80 % of `independent`.
        consistent: whether the released numbers of the smallest parts add up to the number of the whole.
    """

    parts: int
    single: float
    independent: float
    stated: float
    accumulates: bool
    consistent: bool


def add_up_spending(release: NoisyRelease) -> list[LevelSpending]:
    """Add up what was spent at each level, the whole area first; steps without a level come before the levels.

    Steps that early leaves take instead of later steps are left out, since they do not add to the others.
    """
    sums: dict[tuple[bool, int | str], tuple[Fraction, Fraction]] = {}
    for step in release.receipt.steps:
        if not step.replaces_later:
            key = (step.level is not None, step.level if step.level is not None else step.purpose)
            counts, structure = sums.get(key, (Fraction(0), Fraction(0)))
            sums[key] = (counts, structure + step.amount) if release.is_structure(step) else (counts + step.amount, structure)
    rows = [(key[1], *parts) for key, parts in sums.items()]
    levels = sorted((row for row in rows if isinstance(row[0], int)), key=lambda row: row[0])
    return [_make_level_spending(release, *row) for row in [*(row for row in rows if isinstance(row[0], str)), *levels]]


def name_step(release: NoisyRelease, level: int | None) -> str:
    """Return the name of a step's level, or of its stage; a dash for None."""
    return MISSING if level is None else release.name_step(level)


def compute_odds(receipt: Receipt) -> Odds:
    """Compute the numbers that explain what the spent budget guarantees."""
    spent: Budget = receipt.spent
    rho = spent.rho if isinstance(spent, ZcdpBudget) else None
    bound = spent.to_approx(_DELTA_OF_RHO) if isinstance(spent, ZcdpBudget) else spent
    epsilon, delta = float(bound.epsilon), Fraction(0) if isinstance(bound, PureBudget) else bound.delta
    factor = math.exp(min(epsilon, _LARGEST_EXPONENT))
    return Odds(
        epsilon=format_upper_bound(bound.epsilon),
        factor=_format_factor(factor),
        twice=_format_factor(math.exp(min(2 * epsilon, _LARGEST_EXPONENT))),
        delta=format_upper_bound(delta, 3) if delta else "",
        one_in=format_count(1 / delta) if delta else "",
        rho="" if rho is None else format_upper_bound(rho),
        beliefs=[_compute_beliefs(prior, factor) for prior in _PRIORS],
    )


def _compute_beliefs(prior: float, factor: float) -> tuple[str, str, str]:
    """Compute one row of beliefs: before the release, and the least and the most after seeing the release."""
    least = _format_percent_bound(_update_belief(prior, 1 / factor), ROUND_FLOOR)
    return f"{100 * prior:.0f} %", least, _format_percent_bound(_update_belief(prior, factor), ROUND_CEILING)


def _update_belief(prior: float, factor: float) -> float:
    """Compute the probability after its odds are multiplied by a factor."""
    return prior * factor / (prior * factor + 1 - prior)


def _format_factor(factor: float) -> str:
    """Write a factor as text, rounded up."""
    if factor < 1000:
        return f"{Decimal(factor).quantize(Decimal('0.01'), ROUND_CEILING):,}"
    return f"{math.ceil(factor):,}" if factor < 1e9 else f"{round_to(Fraction(factor), 2, ROUND_CEILING):.1e}"


def _format_percent_bound(share: float, rounding: str) -> str:
    """Write a probability in percent: one decimal, or two digits below 10 %. The rounding direction keeps a bound a bound."""
    percent = Decimal(100 * share)
    if percent < Decimal("0.1") and rounding == ROUND_FLOOR:
        return "0 %"
    if percent < 10:
        return f"{float(round_to(Fraction(percent), 2, rounding)):.2g} %"
    return f"{percent.quantize(Decimal('0.1'), rounding)} %".replace(".0 ", " ")


def _make_level_spending(release: NoisyRelease, level: int | str, counts: Fraction, structure: Fraction) -> LevelSpending:
    """Make a row of the chart of the budget from the amounts spent on counts and on the structure."""
    available, amount = release.receipt.available, counts + structure
    return LevelSpending(
        name=level if isinstance(level, str) else name_step(release, level),
        counts=float(counts / available),
        structure=float(structure / available),
        amount=format_decimal(amount),
        exact=str(amount),
        percent=format_percent(amount / available),
    )


def list_level_rows(release: NoisyRelease, levels: list[dict[str, Any]]) -> list[LevelRow]:
    """Make one row per level, coarsest first.

    Args:
        release: public.
        levels: the expected utility per level, from the manifest.
    """
    rows = enumerate(zip(levels, grades(release), strict=True))
    return [_make_level_row(release, level, facts, grade) for level, (facts, grade) in rows]


def choose_axis(rows: list[LevelRow]) -> Axis:
    """Choose an axis for all standard deviations; logarithmic if they differ by a factor of 20 or more."""
    values = [value for row in rows for value in (row.median, row.p95) if value]
    low, high = min(values, default=1.0), max(values, default=1.0)
    if high < _LOGARITHMIC_FROM * low:
        power = 10.0 ** math.floor(math.log10(high / 4))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= high / 4 * (1 - 1e-9))
        ends = step * math.ceil(high / step - 1e-9)
        ticks = [(k * step / ends, f"{k * step:,.3g}" if step < 1 else f"{k * step:,.0f}") for k in range(round(ends / step) + 1)]
        return Axis(ticks=ticks, logarithmic=False, low=0.0, high=ends)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = range(first, last + 1)
    ticks = [((power - first) / (last - first), f"{10.0**power:,.0f}" if power >= 0 else f"{10.0**power:g}") for power in powers]
    return Axis(ticks=ticks, logarithmic=True, low=10.0**first, high=10.0**last)


def compute_reliability_shares(count: NDArray[Any], stddev: Floats) -> tuple[float, float, float]:
    """Compute which percentages of the counts have high, medium and low reliability.

    Args:
        count: (k,) released counts.
        stddev: (k,) their standard deviations.
    """
    grades = grade_reliability(count, stddev)
    names = np.array(grades.dictionary.to_pylist(), object)[grades.indices.to_numpy()]
    return tuple(100 * float((names == name).sum()) / max(len(names), 1) for name in RELIABILITIES)  # type: ignore[return-value]


def _make_level_row(release: NoisyRelease, level: int, facts: dict[str, Any], grade: str) -> LevelRow:
    numbers = release.level_numbers(level)
    return LevelRow(
        level=level,
        name=release.name_level(level),
        parts=facts["partitions"],
        size=release.typical_size(level),
        median=facts["stddev_median"],
        p95=facts["stddev_p95"],
        width=facts["interval_width_median"],
        shares=compute_reliability_shares(numbers.count, numbers.stddev),
        grade=grade,
    )


def list_point_examples(release: PointRelease, level: int) -> list[Example]:
    """List the partitions of a level at the centre of the domain and at the centres of its quarters, and the whole; no masked ones.

    The partitions are chosen without looking at the counts, so that each interval holds with its stated probability.
    """
    nodes = _find_nodes_at_positions(release, release.nodes(level))
    examples = [_make_point_example(release, kind, node) for node, kind in nodes.items() if release.open_cells[node] > 0]
    return examples if 0 in nodes else [*examples, _make_point_example(release, "the whole", 0)]


def _find_nodes_at_positions(release: PointRelease, nodes: NDArray[np.int64]) -> dict[int, str]:
    """Find the nodes at the fixed positions, each once, with the names of the positions."""
    tree, side = release.tree, release.domain.side
    column, row = (np.array([int(share[axis] * side) for share in _POSITIONS.values()], np.int32) for axis in (0, 1))
    is_shown = np.zeros(len(tree), np.bool_)
    is_shown[nodes] = True
    names_of_nodes: dict[int, str] = {}
    for kind, leaf in zip(_POSITIONS, tree.leaf_of(column, row).tolist(), strict=True):
        node = leaf
        while not is_shown[node]:
            node = int(tree.parent[node])
        names_of_nodes.setdefault(node, kind)
    return names_of_nodes


def _make_point_example(release: PointRelease, kind: str, node: int) -> Example:
    """Make an example of one node; `kind` says how it was chosen."""
    nodes = np.array([node])
    bounds = _format_bounds(release.domain, release.tree.rectangles(nodes)[0])
    numbers = (part[0] for part in (release.count[nodes], release.node_stddev[nodes], *release.node_interval(nodes)))
    where = "the whole area" if node == 0 else f"partition {node:,} ({bounds})"
    mark = "*" if release.nonnegative and release.lies_outside(nodes)[0] else ""
    return make_example(kind, where, *numbers, mark=mark)


def select_pairs(release: TripRelease, level: int) -> PairRows:
    """Select the pairs of a level that were released with more than 0 trips."""
    counts, stddev = release.stages[2 * level], release.stage_stddev(2 * level)
    low, high = release.stage_interval(2 * level, joint=True)
    order = np.lexsort((counts.destination, counts.origin, -counts.count))
    order = order[counts.count[order] > 0]
    return PairRows(
        level=level,
        origin=counts.origin[order].astype(np.int64),
        destination=counts.destination[order].astype(np.int64),
        count=counts.count[order],
        stddev=stddev[order],
        low=low[order],
        high=high[order],
    )


def name_pair(release: TripRelease, level: int, origin: int, destination: int) -> str:
    """Return the name of a pair: "A to B", or "within A".

    Args:
        release: public.
        level: 1 for the coarsest.
        origin: index of the origin region.
        destination: index of the destination region.
    """
    origin_name, destination_name = release.tree.origins.names_of(level)[origin], release.tree.destinations.names_of(level)[destination]
    within = origin == destination and release.tree.origins == release.tree.destinations
    return f"within {origin_name}" if within else f"{origin_name} to {destination_name}"


def list_trip_examples(release: TripRelease) -> list[Example]:
    """List released pairs of the coarsest level, chosen by their positions in the lists of regions, and all trips."""
    level, counts = min(1, release.depth), release.stages[2 * min(1, release.depth)]
    size = release.tree.origins.size(level), release.tree.destinations.size(level)
    wanted = dict.fromkeys((int(u * (size[0] - 1)), int(v * (size[1] - 1))) for u, v in ((0, 0), (0, 1), (1, 0), (0.5, 0.5), (1, 1)))
    index_of_pair = {pair: number for number, pair in enumerate(zip(counts.origin.tolist(), counts.destination.tolist(), strict=True))}
    pairs = [index_of_pair[pair] for pair in wanted if pair in index_of_pair]
    names = [name_pair(release, level, int(counts.origin[index]), int(counts.destination[index])) for index in pairs]
    rows, whole = (
        list(zip(release.stages[stage].count, release.stage_stddev(stage), *release.stage_interval(stage), strict=True))
        for stage in (2 * level, 0)  # the whole has no row if it was released as 0
    )
    examples = [make_example("by its position in the list", name, *rows[index]) for name, index in zip(names, pairs, strict=True)]
    return [*examples, *(make_example("the whole", "all trips", *row) for row in whole)]


def list_largest_pairs(release: TripRelease, most: int) -> list[Example]:
    """List the `most` released pairs of the finest level with the most trips; their intervals hold for all pairs at once."""
    rows, examples = select_pairs(release, release.depth), []
    for rank in range(min(most, len(rows.count))):
        where = name_pair(release, rows.level, int(rows.origin[rank]), int(rows.destination[rank]))
        examples.append(make_example(str(rank + 1), where, rows.count[rank], rows.stddev[rank], rows.low[rank], rows.high[rank]))
    return examples


def add_up_errors(release: NoisyRelease) -> ErrorSums:
    """Compute how the errors of the smallest parts add up to the error of the whole."""
    parts, stated, gap = release.add_up_errors()
    independent = float(np.sqrt((parts**2).sum()))
    return ErrorSums(
        parts=len(parts),
        single=float(np.median(parts)) if len(parts) else 0.0,
        independent=independent,
        stated=stated,
        accumulates=stated > 0.8 * independent,
        consistent=abs(gap) < 0.5,
    )


def make_example(kind: str, where: str, count: float, stddev: float, low: float, high: float, **more: str) -> Example:
    """Write a released number, its standard deviation and its interval as an `Example`; `more` are its other texts."""
    share = 100 * stddev / count if count >= 0.5 and stddev < 10 * count else np.nan
    relative = MISSING if np.isnan(share) else "under 0.1 %" if share < 0.1 else f"{share:.{0 if share >= 10 else 1}f} %"
    texts = {"count": format_count(count), "low": format_count(low), "high": format_count(high), "relative": relative}
    grade = grade_reliability(np.array([count]), np.array([stddev])).to_pylist()[0]
    return Example(kind=kind, where=where, reliability=str(grade), **texts | more)


def _format_bounds(domain: Domain, rectangle: NDArray[np.integer]) -> str:
    """Format the bounds of a partition, with as many decimals as its size needs."""
    west, south, east, north = domain.coordinates(rectangle).tolist()
    decimals = max(0, min(6, 1 - math.floor(math.log10(max(min(east - west, north - south), 1e-6)))))
    if not domain.is_geographic:
        return f"x {west:,.{decimals}f} to {east:,.{decimals}f}, y {south:,.{decimals}f} to {north:,.{decimals}f}"
    x = [f"{abs(value):.{decimals}f}° {'W' if value < 0 else 'E'}" for value in (west, east)]
    y = [f"{abs(value):.{decimals}f}° {'S' if value < 0 else 'N'}" for value in (south, north)]
    return f"{x[0]} to {x[1]}, {y[0]} to {y[1]}"


def write_points_snippet(release: PointRelease, formats: Sequence[str]) -> str | None:
    """Write code that adds up the counts in the middle of the domain; partitions that the box cuts count by their share of area in it.

    None if no file has a table that such code could read.
    """
    crs, stem = release.domain.crs, TABLE.removesuffix(".parquet")
    west, south, east, north = release.domain.bounds
    middle = (west + (east - west) / 4, south + (north - south) / 4, east - (east - west) / 4, north - (north - south) / 4)
    box = ", ".join(f"{float(f'{value:.9g}')!r}" for value in middle)
    if "geoparquet" in formats:
        return _POINTS_CODE.format(library="geopandas", read=f'read_parquet("{TABLE}")', parts=_SHAPES_CODE, box=box)
    if "csv" in formats:
        return _POINTS_CODE.format(library="pandas", read=f'read_csv("{stem}.csv")', parts=_BOUNDS_CODE, box=box)
    if crs is None or "geojson" not in formats:
        return None
    return _POINTS_CODE.format(library="geopandas", read=f'read_file("{stem}.geojson").to_crs({crs!r})', parts=_SHAPES_CODE, box=box)


def write_sum_snippet(parquet: str, csv: str, column: str, region: str, formats: Sequence[str]) -> str | None:
    """Write code that adds up the counts of a region; None if no file has a table that such code could read.

    Args:
        parquet: the Parquet file of the table.
        csv: its CSV file.
        column: the column of ids in both.
        region: id of the region.
        formats: of the files.
    """
    tables = _READ_PARQUET.format(name="table", file=parquet), _READ_CSV.format(name="table", file=csv)
    ids = region, escape_formulas([region])[0]
    codes = [_SUM_CODE.format(table=table, column=column, region=each) for table, each in zip(tables, ids, strict=True)]
    return _join_codes(codes, formats)


def _join_codes(codes: Sequence[str], formats: Sequence[str]) -> str | None:
    """Join the codes for Parquet and for CSV, as far as there are such files."""
    parquet, csv = codes
    written = [code for word, code in (("geoparquet", parquet), ("csv", f"{_CSV_COMMENT}\n{csv}")) if word in formats]
    return "\n\n".join(["import pandas", *written]) if written else None


def write_trips_snippet(release: TripRelease, formats: Sequence[str]) -> str | None:
    """Write code that adds up the trips that begin in the first region of the finest level; for a list, those of `find_rest_side`."""
    if release.half_step_sums is not None:
        return _write_list_snippet(release, formats)
    origins = release.tree.origins
    first = origins.ids_of(origins.depth)[0]
    return write_sum_snippet(FLOWS, f"flows_{format_level(origins, origins.depth)}.csv", "origin", str(first), formats)


def find_rest_side(release: TripRelease) -> str:
    """Return the side, "origin" or "destination", on which the rest of a list has the regions of the finest level."""
    return "origin" if release.tree.levels(release.tree.height - 1)[0] == release.depth else "destination"


def _write_list_snippet(release: TripRelease, formats: Sequence[str]) -> str | None:
    """Write code that adds up the listed trips and the rest of the first region of the finest level."""
    side = find_rest_side(release)
    regions = release.tree.origins if side == "origin" else release.tree.destinations
    region, stem = str(regions.ids_of(regions.depth)[0]), f"flows_{format_level(release.tree.origins, release.depth)}"

    def write(read: str, listed: str, rest: str, column: str, region: str) -> str:
        tables = {name: read.format(name=name, file=file) for name, file in (("listed", listed), ("rest", rest))}
        return _LIST_CODE.format(**tables, column=column, side=side, region=region)

    parquet = write(_READ_PARQUET, FLOWS, REST, side, region)
    column = "origin" if side == "origin" else "dest"
    csv = write(_READ_CSV, f"{stem}.csv", "rest.csv", column, escape_formulas([region])[0])
    return _join_codes([parquet, csv], formats)
