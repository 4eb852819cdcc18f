"""What a map of trips shows, however it is drawn: arcs between regions over dots, or coloured regions; texts, scales and legend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.amounts import format_count, format_percent, format_short, format_signed
from dpviz.arrays import Floats, Integers, Mask
from dpviz.errors import DomainError, check_choice
from dpviz.release.simultaneous_intervals import count_of_region_numbers, pairs_of_regions, region_intervals, rest_intervals
from dpviz.release.trip_release import PairSums, TripRelease
from dpviz.space.nested import ROOT
from dpviz.space.regions import Regions
from dpviz.view.basemap import RegionShapes, prepare_shapes
from dpviz.view.canvas import MOST_FEATURES, Legend, make_legend, to_css
from dpviz.view.colors import FALSE_NEGATIVE, FALSE_POSITIVE, PAPER, Colors, Scale, scale_top_of
from dpviz.view.escape import deck, line
from dpviz.view.trips_layers import LARGEST_DOT, Arcs, Areas, TooltipTexts, fade_at_origins, fit_points, size_dots, size_points

if TYPE_CHECKING:
    from collections.abc import Sequence

RELEASED, TRUE, ERROR, FALSE_POSITIVES = "Released", "True", "Error", "False positives"
SHOWN_TRIPS = (RELEASED, TRUE, ERROR, FALSE_POSITIVES)
"""What a map can show: trips, errors, or which pairs are false positives and false negatives."""
NOT_LISTED = "Not listed"
"""What a map can show besides of a release with a list: for each region, the share of its trips that are in no listed pair."""
ARCS, AREAS = "Arcs", "Areas"
MARKS = (ARCS, AREAS)
"""What the numbers are drawn with: arcs between regions, over a dot per region; or the colours of the regions."""
ALL_PAIRS, ABOVE_ZERO, BELOW_ZERO, CERTAIN = "all", "above zero", "below zero", "certain"
PAIR_FILTERS = (ALL_PAIRS, ABOVE_ZERO, BELOW_ZERO, CERTAIN)
"""Which released pairs a map draws. A pair is certain if its interval, which holds for all pairs at once, is above 0."""
NO_ERROR, RELEASED_ONLY, TRUE_ONLY = 0, 1, 2
"""Kinds of errors of a pair: neither of the two that follow; a false positive; a false negative."""
MOST_ARCS = 5_000
_PAIRS_TEXT = {
    RELEASED: "pairs with released {unit}",
    TRUE: "pairs with true {unit}",
    ERROR: "pairs whose released {unit} are not the true ones",
    FALSE_POSITIVES: "pairs that are released or true",
}

_AREAS_TEXT = "Each region is coloured by all of its {unit}: those that leave, arrive and stay."

Totals = Mapping[str, Integers]
"""(n,) trips of the regions of a level, by whether they leave, arrive or stay within."""
LEAVING, ARRIVING, WITHIN = "leaving", "arriving", "within"
# Colours on light and on dark pages: of dots, of trips (those that leave a chosen region), of trips into it, and of pairs below zero.
DOT_COLOR = {False: (226, 196, 140), True: (112, 90, 52)}
LEAVING_COLOR = {False: (11, 110, 143), True: (79, 176, 206)}
_LARGEST_COLOR = {False: (14, 51, 91), True: (183, 217, 207)}  # to which trips tend as they get more, unless a region is chosen
ARRIVING_COLOR = {False: (201, 124, 0), True: (240, 180, 60)}
BELOW_ZERO_COLOR = {False: (200, 0, 180), True: (240, 105, 225)}

Color = tuple[int, int, int]
THINNEST, WIDEST = 1.0, 9.0  # pixels
_FEW_ARCS, _LEAST_WIDE = 100, 3.5  # up to so many arcs the widest has `WIDEST` pixels; with more it is narrower, but never under 3.5
_SAMPLES = (0.01, 0.25, 1.0)  # arcs of the legend, as shares of the top of the scale
_SAMPLE_DOT = 0.25  # in the same way
_FAINTEST_ARC, _STRONGEST_ARC = 45, 245  # alpha at destinations
_CORRECT = (128, 128, 128, 90)
GREY = (140, 132, 124)  # of the directions of errors
_DASHED_SAMPLE = 2.0  # pixels: width of the dashed line of the legend
_FAINTEST_NEGATIVE = 90  # alpha of pairs below zero


@dataclass(frozen=True, kw_only=True)
class TripsMapSettings:
    """The settings of a map of trips.

    Attributes:
        level: of the regions, 1 for the coarsest.
        shown: one of `SHOWN_TRIPS`, of which all but "Released" need the truth, or `NOT_LISTED`.
        marks: one of `MARKS`.
        top: largest number of arcs, at most 5,000; the arcs of the largest trips (or errors) are drawn.
        least: smallest number of trips, without its sign, that gets an arc.
        pairs: one of `PAIR_FILTERS`; only the view "Released" has this filter.
        chosen: index of an origin region of the level: only trips from or to it are drawn; None for all.
        unit: what is counted, in the plural, for example "commuters".
        dark: whether the page is dark.
        tops: tops of the scales, shared with other maps; None for scales of its own.
    """

    level: int
    shown: str = RELEASED
    marks: str = ARCS
    top: int = 500
    least: int = 1
    pairs: str = ALL_PAIRS
    chosen: int | None = None
    unit: str = "trips"
    dark: bool = False
    tops: ScaleTops | None = None


@dataclass(frozen=True, kw_only=True)
class TripsDrawing:
    """What a map shows.

    Attributes:
        areas: the look of the regions; a second one if trips end in other regions than they begin in.
        arcs: the look of the pairs; none where the regions show everything.
        legend: of all colours and widths.
        note: what is shown and what was left out, as plain text.
        description: alternative text, plain.
        drawn: number of arcs.
        total: number of pairs that could have been drawn.
        view: the settings, within their limits.
    """

    areas: list[Areas]
    arcs: Arcs
    legend: Legend
    note: str
    description: str
    drawn: int
    total: int
    view: TripsMapSettings


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of different regions of one level, ordered by origin, then destination.

    Attributes:
        origin: (k,) indices of origin regions.
        destination: (k,) indices of destination regions.
        released: (k,) trips; 0 where a pair was not released.
        low: (k,) lower ends of intervals that hold for all pairs at once; 0 where a pair was not released.
        high: (k,) upper ends; infinite or NaN where none is known.
        true: (k,) trips; None where the truth must not be shown.
    """

    origin: Integers
    destination: Integers
    released: Integers
    low: Floats
    high: Floats
    true: Integers | None

    def __getitem__(self, chosen: NDArray[np.bool_] | Integers) -> Pairs:
        """Select some of the pairs, by a mask or by indices."""
        arrays: dict[str, Any] = {name: None if array is None else array[chosen] for name, array in vars(self).items()}
        return Pairs(**arrays)

    @property
    def certain(self) -> NDArray[np.bool_]:
        """(k,) whether the interval is above 0; True, too, where a contrast states none."""
        return (self.low > 0) | np.isnan(self.low)

    @property
    def true_or_released(self) -> Integers:
        """(k,) true trips; released ones where the truth must not be shown."""
        return self.released if self.true is None else self.true

    @property
    def error(self) -> Integers:
        """(k,) released minus true."""
        return self.released - self.true_or_released

    @property
    def error_kind(self) -> Integers:
        """(k,) `RELEASED_ONLY` for false positives, `TRUE_ONLY` for false negatives, `NO_ERROR` for all others."""
        true = self.true_or_released
        conditions = [(self.released > 0) & (true == 0), (self.released <= 0) & (true > 0)]
        return np.select(conditions, [RELEASED_ONLY, TRUE_ONLY], NO_ERROR).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Widths:
    """The scale of arc widths: pixels grow with the square root of trips; arcs are narrower where there are many.

    Attributes:
        top: number of trips from which on arcs have the largest width; public.
        arcs: number of arcs; public.
    """

    top: float
    arcs: int

    def strength(self, values: ArrayLike) -> Floats:
        """Compute the (k,) square roots of the values relative to the top, 0 to 1."""
        return np.clip(np.asarray(values, np.float64) / self.top, 0.0, 1.0) ** 0.5

    def pixels(self, values: ArrayLike) -> Floats:
        """Compute the (k,) widths of arcs, in pixels."""
        widest = max(WIDEST * math.pow(_FEW_ARCS / max(self.arcs, _FEW_ARCS), 0.3), _LEAST_WIDE)
        return THINNEST + (widest - THINNEST) * self.strength(values)

    def samples(self, color: Color, largest: Color | None = None) -> tuple[tuple[str, float, str], ...]:
        """Describe sample arcs with their numbers, for `Legend.lines`; colours are as of `_deepen`."""
        numbers = [value for value in (share * self.top for share in _SAMPLES) if value >= 1] or [self.top]
        texts = [*map(format_short, numbers[:-1]), f"{format_short(numbers[-1])}+"]
        colors = _deepen(color, largest or color, self.strength(numbers)).tolist()
        return tuple((_css(each), width, text) for each, width, text in zip(colors, self.pixels(numbers).tolist(), texts, strict=True))


@dataclass(frozen=True, kw_only=True)
class Look:
    """The look of the arcs of pairs.

    Attributes:
        color: (k, 4) red, green, blue, alpha at the destinations.
        width: (k,) pixels.
        dashed: (k,) whether the interval of the number contains 0.
        legend: of colours, widths and dashes.
    """

    color: Colors
    width: Floats
    dashed: Mask
    legend: Legend


@dataclass(frozen=True, kw_only=True)
class ScaleTops:
    """The tops of a map's scales; all of them are public.

    Attributes:
        trips: trips of a pair, for the widest arc.
        arcs: number of arcs; the more arcs, the narrower they are.
        error: error of a pair, in trips, for the strongest colour.
        dot: trips that leave a region, or arrive in it, for the largest dot under arcs.
        size: all trips of a region, for the strongest colour and the largest point where the regions are coloured.
        area_error: error of all trips of a region, for the strongest colour.
    """

    trips: float
    arcs: int
    error: float
    dot: float
    size: float
    area_error: float


@dataclass(frozen=True, kw_only=True)
class RegionNumbers:
    """Numbers of the n regions of one level, as origins, as destinations, or as both.

    Attributes:
        released: released trips.
        true: true trips; None where the truth must not be shown.
        rest: (n,) released trips that are in no listed pair; 0 unless the level's pairs are a list.
        texts: n texts on the released numbers, with their intervals.
        wrong: (n,) percentage of the region's released pairs that have no trips; 0 without released pairs, or without the truth.
    """

    released: Totals
    true: Totals | None
    rest: Integers
    texts: Sequence[str]
    wrong: Floats

    def values(self, shown: str) -> Floats:
        """Return (n,) what the regions show: trips, their error, or a percentage."""
        released, true = sum(self.released.values()), sum((self.true or self.released).values())
        if shown == FALSE_POSITIVES:
            return self.wrong
        if shown == NOT_LISTED:
            both = len(self.released) > 1
            counted_twice = released + (self.released[WITHIN] if both else 0)  # trips within a region are among both of its rests
            return np.asarray(100.0 * self.rest / np.maximum(counted_twice, 1))
        return np.asarray({RELEASED: released, TRUE: true, ERROR: released - true}[shown], np.float64)


def has_geometry(regions: Regions, level: int) -> bool:
    """Return whether the regions of a level can be drawn on a map: they or their subregions have outlines or points."""
    return regions.centres(level) is not None


def draw_trips(release: TripRelease, view: TripsMapSettings, truth: PairSums | None = None) -> TripsDrawing:
    """Choose what a map of the trips of one level shows.

    Scales and the choice of arcs depend on released trips and public regions. The truth decides which arcs are drawn only in views that
    show it.

    Args:
        release: public.
        view: the settings.
        truth: true trips between the regions of the level, from an evaluation. CURATOR ONLY.

    Raises:
        DomainError: no such level, view or region, or regions without geometry (see `has_geometry`).
    """
    hierarchies = hierarchies_of(release)
    view = _limit_settings(view, release, truth)
    shapes = [_require_shapes(regions, view.level) for regions in hierarchies]
    pairs = _collect_pairs(release, view, truth)
    drawn, total = _choose_drawn(pairs, view)
    tops = view.tops or choose_tops(release, view, pairs)
    shown = pairs[drawn]
    color_by = {ERROR: _color_by_error, FALSE_POSITIVES: _color_by_error_kind}.get(view.shown, _color_by_trips)
    look = color_by(shown, view, Widths(top=tops.error if view.shown == ERROR else tops.trips, arcs=tops.arcs))
    texts = _write_arc_texts(release, view, shown)
    regions = _sum_regions(release, view, truth)
    return TripsDrawing(
        areas=[_make_areas(each, shape, view, side, tops) for each, shape, side in zip(hierarchies, shapes, regions, strict=True)],
        arcs=Arcs(color=look.color, width=look.width, dashed=look.dashed, origin=shown.origin, destination=shown.destination, texts=texts),
        legend=_join_legends(look.legend, view, regions, tops, "" if shapes[0].polygons else hierarchies[0].levels[view.level - 1]),
        note=_write_note(release, view, pairs, shown, total),
        description=_describe_map(release, view, len(drawn)),
        drawn=len(drawn),
        total=total,
        view=view,
    )


def hierarchies_of(release: TripRelease) -> list[Regions]:
    """Return the regions where trips begin and, if they are others, those where trips end."""
    origins, destinations = release.tree.origins, release.tree.destinations
    return [origins] if origins == destinations else [origins, destinations]


def _limit_settings(view: TripsMapSettings, release: TripRelease, truth: PairSums | None) -> TripsMapSettings:
    """Apply the limits to the settings. Without the truth, the map shows released trips; only a list has trips that are not listed."""
    origins = release.tree.origins
    check_choice(view.marks, MARKS, "marks", DomainError)
    check_choice(view.pairs, PAIR_FILTERS, "pairs", DomainError)
    check_choice(view.shown, (*SHOWN_TRIPS, NOT_LISTED), "shown", DomainError)
    if not 1 <= view.level <= origins.depth:
        raise DomainError(f"Levels on a map are 1 to {origins.depth}.")
    if view.chosen is not None and not 0 <= view.chosen < origins.size(view.level):
        raise DomainError("The chosen region does not exist on that level.")
    shown = RELEASED if truth is None and view.shown in SHOWN_TRIPS else view.shown
    if shown == NOT_LISTED and (release.half_step_sums is None or view.level < release.depth):
        shown = RELEASED
    marks = AREAS if shown == NOT_LISTED else view.marks
    return replace(view, shown=shown, marks=marks, top=max(1, min(view.top, MOST_ARCS)), least=max(1, view.least))


def _require_shapes(regions: Regions, level: int) -> RegionShapes:
    """Return the shapes of a level; raise a `DomainError` if it has none."""
    shapes = prepare_shapes(regions, level)
    if shapes is None:
        raise DomainError("These regions have neither outlines nor points: show them as a matrix, not on a map.")
    return shapes


def _write_note(release: TripRelease, view: TripsMapSettings, pairs: Pairs, drawn: Pairs, total: int) -> str:
    """Write what the map shows, and what it leaves out, as sentences.

    Args:
        release: public.
        view: the settings of the map.
        pairs: all pairs that were released or have true trips.
        drawn: those of them that have an arc.
        total: number of pairs that could be drawn.
    """
    intervals = [] if view.shown == TRUE else _note_intervals(release)
    if view.marks == AREAS:
        listed = _note_list(release, view) if view.shown in (RELEASED, NOT_LISTED) else []
        return " ".join([_AREAS_TEXT.format(unit=view.unit), *listed, *intervals])
    arcs = len(drawn.origin)
    order = ", the wrong ones first" if view.shown == FALSE_POSITIVES else ", the largest first"
    first = order if arcs < total else ""
    least = f", from {view.least:,} {view.unit} on" if view.least > 1 else ""
    chosen = f", only those {view.pairs}" if view.shown == RELEASED and view.pairs != ALL_PAIRS else ""
    sentences = [f"Showing {arcs:,} of {total:,} {_PAIRS_TEXT[view.shown].format(unit=view.unit)}{first}{least}{chosen}."]
    if view.shown == RELEASED and view.chosen is None:
        sentences += _note_uncertain(release, view, pairs, drawn)
    if view.shown == FALSE_POSITIVES:
        invented, missed = (int((pairs.error_kind == kind).sum()) for kind in (RELEASED_ONLY, TRUE_ONLY))
        sentences.append(f"Of all between two regions, {invented:,} are false positives and {missed:,} false negatives.")
    if view.chosen is not None:
        sentences.append(f"Only those from or to {_name_chosen(release, view)}.")
    size = release.tree.origins.size(view.level)
    if size > MOST_FEATURES:
        sentences.append(f"Of {size:,} regions, the {MOST_FEATURES:,} with the most trips can be clicked.")
    return " ".join(sentences + intervals)


def _note_intervals(release: TripRelease) -> list[str]:
    """Write what the intervals of tooltips mean."""
    if not release.states_noise:
        return ["NOT PRIVATE: this method states no noise, so that no number has an interval."]
    sentence = "Intervals (95 %) in tooltips hold for all numbers of their kind at once."
    if not release.has_unbiased_sums:
        return [sentence, "A total of a region without an interval has an unknown error."]
    adjusted = "Released counts are adjusted to add up, so that one can lie outside its interval."
    return [sentence, adjusted] if release.totals is not None else [sentence]


def _note_uncertain(release: TripRelease, view: TripsMapSettings, pairs: Pairs, drawn: Pairs) -> list[str]:
    """Write sentences on pairs below zero, on uncertain pairs, on pairs within a region, and on trips that are in no listed pair."""
    released = pairs.released != 0
    negative, uncertain = int((pairs.released < 0).sum()), int((released & ~pairs.certain).sum())
    counts = release.stages[2 * view.level].count
    within, below_within = int(np.count_nonzero(counts)) - int(released.sum()), int((counts < 0).sum()) - negative
    sentences = []
    if negative:
        missing = "" if (drawn.released < 0).any() else "; none of them is drawn"
        sentences.append(f"{_count_of(negative)} below zero, by noise{missing}.")
    if uncertain > negative:
        unseen = "" if ((drawn.released > 0) & ~drawn.certain).any() or view.pairs == BELOW_ZERO else "; none of them is drawn"
        sentences.append(f"Of {uncertain - negative:,}{' more' if negative else ''} the interval contains 0{unseen}.")
    if within > 0:
        lower = f" ({below_within:,} of them below zero)" if below_within else ""
        sentences.append(f"{_count_of(within, 'more')} within one region, without an arc{lower}.")
    return sentences + _note_list(release, view)


def _count_of(number: int, more: str = "") -> str:
    """Write how many there are, as the beginning of a sentence."""
    return f"{number:,}{' ' * bool(more)}{more} {'is' if number == 1 else 'are'}"


def _note_list(release: TripRelease, view: TripsMapSettings) -> list[str]:
    """Write sentences on the list of the finest level: the trips of other pairs, and how many listed pairs may be empty."""
    if release.half_step_sums is None:
        return []
    bound = None if release.most_false is None else format_percent(release.most_false)
    if view.level < release.depth:
        return [] if bound is None else [f"Any number of these pairs may be empty: the limit of {bound} holds at the finest level."]
    rest = int(release.unlisted_trips(0, 0).count.sum())
    sentence = f"{rest:,} {view.unit} are in pairs that are not listed; tooltips of regions say how many each has."
    return [sentence] if bound is None else [sentence, f"On average, at most {bound} of the listed pairs have no {view.unit}."]


def _describe_map(release: TripRelease, view: TripsMapSettings, drawn: int) -> str:
    """Write the alternative text."""
    regions = release.tree.origins
    chosen = "" if view.chosen is None else f", from or to {_name_chosen(release, view)}"
    content = f"{regions.size(view.level):,} regions ({line(regions.levels[view.level - 1])})"
    if view.marks == AREAS:
        return f"Map of {content}, {view.shown.lower()}: {view.unit} of each region."
    return f"Map of {content} and {drawn:,} arcs between them{chosen}, {view.shown.lower()}: {view.unit} per pair."


def _name_chosen(release: TripRelease, view: TripsMapSettings) -> str:
    """Return the name of the chosen region, as one clean line."""
    return line(release.tree.origins.names_of(view.level)[view.chosen])


def _sum_regions(release: TripRelease, view: TripsMapSettings, truth: PairSums | None) -> list[RegionNumbers]:
    """Add up the numbers of the regions of the level, for each of `hierarchies_of`."""
    origins, destinations = release.tree.origins, release.tree.destinations
    released = _sum_released_totals(release, view.level)
    true = (None, None) if truth is None else _sum_true_totals(truth, origins, destinations, view.level)
    texts = _write_region_texts(release, view, released)
    rests, wrong = _sum_rests(release, view.level), _share_false_pairs(release, view.level, truth)
    return [
        RegionNumbers(released=released[side], true=true[side], rest=rests[side], texts=texts[side], wrong=wrong[side])
        for side in range(len(hierarchies_of(release)))
    ]


def _sum_rests(release: TripRelease, level: int) -> tuple[Integers, Integers]:
    """Return (n,) the trips of each origin, and of each destination, that are in no listed pair; together if both are the same regions."""
    if release.half_step_sums is None or level < release.depth:
        return np.zeros(release.tree.origins.size(level), np.int64), np.zeros(release.tree.destinations.size(level), np.int64)
    sides = (pairs_of_regions(release, level, side) for side in ("origin", "destination"))
    leaving, arriving = (release.unlisted_trips(*levels).at(*pairs) for levels, pairs in sides)
    if release.tree.origins == release.tree.destinations:
        return leaving + arriving, leaving + arriving
    return leaving, arriving


def _share_false_pairs(release: TripRelease, level: int, truth: PairSums | None) -> tuple[Floats, Floats]:
    """Return (n,) the percentage of each region's released pairs that have no trips, of origins and of destinations. PRIVATE."""
    sizes = release.tree.origins.size(level), release.tree.destinations.size(level)
    sums = release.sums(level, level)
    positive = sums.count > 0
    ends = [sums.origin[positive], sums.destination[positive]]
    false = np.zeros(len(ends[0]), np.bool_) if truth is None else truth.at(ends[0], ends[1]) == 0
    pairs = [np.bincount(end, minlength=size) for end, size in zip(ends, sizes, strict=True)]
    wrong = [np.bincount(end[false], minlength=size) for end, size in zip(ends, sizes, strict=True)]
    if release.tree.origins == release.tree.destinations:
        pairs, wrong = [pairs[0] + pairs[1]] * 2, [wrong[0] + wrong[1]] * 2
    shares = [100.0 * some / np.maximum(every, 1) for some, every in zip(wrong, pairs, strict=True)]
    return shares[0], shares[1]


def _sum_released_totals(release: TripRelease, level: int) -> tuple[Totals, Totals]:
    """Add up released trips per region of a level. Return the totals of the origins and those of the destinations.

    Totals come from the coarsest stage that has them. If origins and destinations are the same regions, both mappings are the same:
    they have the trips that leave, that arrive, and that stay within the region.
    """
    sides = (pairs_of_regions(release, level, side) for side in ("origin", "destination"))
    leaving, arriving = (release.sums(*levels).at(*pairs) for levels, pairs in sides)
    return _make_totals(leaving, arriving, release.sums(level, level) if release.tree.origins == release.tree.destinations else None)


def _sum_true_totals(truth: PairSums, origins: Regions, destinations: Regions, level: int) -> tuple[Totals, Totals]:
    """Add up true trips per region, as in `_sum_released_totals`. PRIVATE.

    Args:
        truth: true trips between the regions of the level.
        origins: regions where trips begin.
        destinations: regions where trips end.
        level: 1 for the coarsest.
    """
    sizes = origins.size(level), destinations.size(level)
    sides = (truth.origin, truth.destination)
    leaving, arriving = (np.bincount(side, truth.count, size).astype(np.int64) for side, size in zip(sides, sizes, strict=True))
    return _make_totals(leaving, arriving, truth if origins == destinations else None)


def _make_totals(leaving: Integers, arriving: Integers, pairs: PairSums | None) -> tuple[Totals, Totals]:
    """Take the trips that stay within a region, of `pairs`, out of those that leave and arrive; None where trips end in other regions."""
    if pairs is None:
        return {LEAVING: leaving}, {ARRIVING: arriving}
    index = np.arange(len(leaving), dtype=np.int32)
    within = pairs.at(index, index)
    both = {LEAVING: leaving - within, ARRIVING: arriving - within, WITHIN: within}
    return both, both


def _write_region_texts(release: TripRelease, view: TripsMapSettings, released: tuple[Totals, Totals]) -> tuple[list[str], list[str]]:
    """Write the released numbers of each region with their intervals: all trips, those that start there, end there, and do both.

    All trips are what the colour shows. Maps of one release share these texts, so that each says that its numbers are released.

    Returns:
        A text for each origin, and one for each destination; if both are the same regions, the same texts twice.
    """
    sides = enumerate(("origin", "destination"))
    unit = deck(view.unit)
    starts, ends = (_write_side(release, view.level, side, released[index], unit) for index, side in sides)
    if WITHIN not in released[0]:
        return [f"released {text}" for text in starts], [f"released {text}" for text in ends]
    level = view.level
    index, numbers = np.arange(len(starts)), np.arange(len(starts), dtype=np.int32)
    unlisted = release.is_unlisted((level, level), numbers, numbers)
    rows = zip(released[0][WITHIN].tolist(), unlisted.tolist(), *_find_intervals(release, level, index, index), strict=True)
    within = ["" if hidden else f"\n{format_count(count)} do both{_write_interval(low, high)}" for count, hidden, low, high in rows]
    every = [f"released {format_count(count)} {unit} in all" for count in _sum_totals(released[0]).tolist()]
    both = [f"{first}\n{start}\n{end}{more}" for first, start, end, more in zip(every, starts, ends, within, strict=True)]
    return both, both


def _write_side(release: TripRelease, level: int, side: str, released: Totals, unit: str) -> list[str]:
    """Write for each region the trips that start there, or that end there, and how many of them are in no listed pair."""
    name, verb = (LEAVING, f"{unit} start here") if side == "origin" else (ARRIVING, f"{unit} end here")
    totals = (released[name] + released.get(WITHIN, 0)).tolist()
    ends = region_intervals(release, level, side)
    rests = _write_rests(release, level, side, ends[1])
    intervals = map(_write_interval, *ends)
    return [f"{format_count(count)} {verb}{interval}{rest}" for count, interval, rest in zip(totals, intervals, rests, strict=True)]


def _write_rests(release: TripRelease, level: int, side: str, most: Floats) -> list[str]:
    """Write for each region how many of its trips are in no listed pair, `most` at most; "" unless the level's pairs are a list."""
    if release.half_step_sums is None or level < release.depth:
        return [""] * len(most)
    levels, pairs = pairs_of_regions(release, level, side)
    low, high = rest_intervals(release, levels, *pairs, count_of_region_numbers(release), most=most)
    texts = []
    for count, a, b in zip(release.unlisted_trips(*levels).at(*pairs).tolist(), low, high, strict=True):
        interval = (_write_interval(a, b) or " (no interval is known)") + (", not told apart from 0" if a == 0 else "")
        texts.append(f"\n{format_count(count)} of them not listed{interval}" if count else "")
    return texts


def _make_areas(regions: Regions, shapes: RegionShapes, view: TripsMapSettings, numbers: RegionNumbers, tops: ScaleTops) -> Areas:
    """Choose the look of the origins or of the destinations: coloured, or with dots under arcs.

    Args:
        regions: the origins or the destinations.
        shapes: theirs.
        view: the settings of the map.
        numbers: theirs.
        tops: of the scales.
    """
    released, true = numbers.released, numbers.true
    shown = true if true is not None and view.shown == TRUE else released
    texts = TooltipTexts(
        title=[deck(name) for name in regions.names_of(view.level)],
        text=list(numbers.texts),
        truth=None if true is None else [f"true: {text}" for text in _write_totals(true)],
    )
    if view.marks == AREAS:
        color = _area_scale(view, tops).colors(numbers.values(view.shown))
        dots = size_points(np.sqrt(np.clip(_sum_totals(shown) / tops.size, 0.0, 1.0))) if shapes.are_dots else np.zeros(0)
    else:
        color = np.tile(np.array([*DOT_COLOR[view.dark], 255], np.uint8), (len(texts.title), 1))
        dots = size_dots(np.clip(_first_values(shown) / tops.dot, 0.0, 1.0))
    return Areas(shapes=shapes, color=color, dots=dots, texts=texts)


def _area_scale(view: TripsMapSettings, tops: ScaleTops) -> Scale:
    """Choose the colour scale of regions that are coloured."""
    titles = {
        RELEASED: f"{view.unit} of a region",
        TRUE: f"{view.unit} of a region",
        ERROR: f"released minus true, {view.unit} of a region",
        FALSE_POSITIVES: "false positives among a region's released pairs, %",
        NOT_LISTED: f"of a region's {view.unit}, in pairs that are not listed, %",
    }
    top = {ERROR: tops.area_error, FALSE_POSITIVES: 100.0, NOT_LISTED: 100.0}.get(view.shown, tops.size)
    kind = {ERROR: "signed", FALSE_POSITIVES: "error", NOT_LISTED: "error"}.get(view.shown, "density")
    return Scale(kind=kind, top=top, title=titles[view.shown], dark=view.dark)


def _join_legends(of_arcs: Legend, view: TripsMapSettings, sides: Sequence[RegionNumbers], tops: ScaleTops, circles: str) -> Legend:
    """Describe the colours of the regions, or arcs and dots; `circles` names regions that are circles where they are coloured."""
    if view.marks == AREAS:
        below = bool((sides[0].values(view.shown) < 0).any())
        legend = make_legend(_area_scale(view, tops), negatives=below)
        if circles:
            legend = replace(legend, title=f"{legend.title}; one circle per {line(circles)}")
        return replace(legend, top="100") if view.shown in (FALSE_POSITIVES, NOT_LISTED) else legend
    radius = fit_points(len(sides[0].rest)) * LARGEST_DOT * math.sqrt(_SAMPLE_DOT)
    words = f"{format_short(_SAMPLE_DOT * tops.dot)} {' or '.join(next(iter(side.released)) for side in sides)}"
    return replace(of_arcs, dots=((_css(DOT_COLOR[view.dark]), radius, words),))


def _first_values(totals: Totals) -> Integers:
    """Return (n,) the trips that a dot stands for: those that leave, or, of destinations, those that arrive."""
    return next(iter(totals.values()))


def _sum_totals(totals: Totals) -> Integers:
    """Return (n,) all trips of each region, by which regions are coloured."""
    return np.asarray(np.sum(list(totals.values()), axis=0))


def _write_totals(totals: Totals) -> list[str]:
    """Write the true trips of each of n regions: all of them, those that start there, that end there, and that do both."""
    within = totals.get(WITHIN, 0)
    columns = {"start": LEAVING, "end": ARRIVING, "both": WITHIN}
    values = {word: totals[name] + (within if name != WITHIN else 0) for word, name in columns.items() if name in totals}
    if WITHIN in totals:
        values = {"in all": _sum_totals(totals), **values}
    rows = zip(*(column.tolist() for column in values.values()), strict=True)
    return [", ".join(f"{format_count(value)} {word}" for word, value in zip(values, row, strict=True)) for row in rows]


def _collect_pairs(release: TripRelease, view: TripsMapSettings, truth: PairSums | None) -> Pairs:
    """Collect all pairs that were released or have true trips; if a region is chosen, only those from or to it.

    Args:
        release: public.
        view: its level and chosen region are used.
        truth: true trips between the regions of the level; None where they must not be shown.
    """
    sums = release.sums(view.level, view.level)
    key = sums.origin * np.int64(sums.width) + sums.destination
    if truth is not None:
        key = np.sort(np.concatenate([key, truth.origin * np.int64(sums.width) + truth.destination]), kind="stable")  # two sorted runs
        key = key[np.diff(key, prepend=-1) > 0]
    origin, destination = np.divmod(key, sums.width)
    kept = np.ones(len(key), np.bool_)
    same = release.tree.origins == release.tree.destinations
    if same:
        kept &= origin != destination
    if view.chosen is not None:
        kept &= (origin == view.chosen) | ((destination == view.chosen) & same)
    origin, destination = origin[kept], destination[kept]
    true = None if truth is None else truth.at(origin.astype(np.int32), destination.astype(np.int32))
    released = sums.at(origin.astype(np.int32), destination.astype(np.int32))
    low, high = _find_intervals(release, view.level, origin, destination)
    return Pairs(origin=origin, destination=destination, released=released, low=low, high=high, true=true)


def _choose_drawn(pairs: Pairs, view: TripsMapSettings) -> tuple[Integers, int]:
    """Choose the pairs that are drawn: by released trips, and by the truth only in views that show it.

    `size` is compared with the smallest number that gets an arc; pairs of high `rank` are drawn first, those of rank 0 never.

    Returns:
        Indices of the pairs, the largest last, and the number of pairs that could be drawn.
    """
    true = pairs.true_or_released
    if view.shown == ERROR:
        size, rank = np.maximum(np.abs(pairs.released), true), np.abs(pairs.error)
    elif view.shown == FALSE_POSITIVES:
        size = np.maximum(pairs.released, true)
        rank = size + (pairs.error_kind != NO_ERROR) * (size.max(initial=0) + 1)
    elif view.shown == TRUE:
        size = rank = true
    else:
        size = rank = np.abs(pairs.released)
    drawable = (rank > 0) & _pass_filter(pairs, view)
    candidates = np.flatnonzero(drawable & (size >= view.least) & (view.marks == ARCS))
    return candidates[np.argsort(-rank[candidates], kind="stable")[: view.top]][::-1], int(drawable.sum())


def _pass_filter(pairs: Pairs, view: TripsMapSettings) -> NDArray[np.bool_]:
    """Return (k,) which pairs pass the filter of the view "Released"; in other views all do."""
    kind = view.pairs if view.shown == RELEASED else ALL_PAIRS
    if kind == CERTAIN:
        return pairs.certain
    if kind == ABOVE_ZERO:
        return pairs.released > 0
    return pairs.released < 0 if kind == BELOW_ZERO else np.ones(len(pairs.released), np.bool_)


def _write_arc_texts(release: TripRelease, view: TripsMapSettings, pairs: Pairs) -> TooltipTexts:
    """Write the tooltips of pairs: "A to B", the released number, called so on all maps alike, and the true one if given.

    Pairs are chosen by size, so the intervals hold for all pairs at once.
    """
    origins, destinations = release.tree.origins.names_of(view.level), release.tree.destinations.names_of(view.level)
    names = zip(origins[pairs.origin], destinations[pairs.destination], strict=True)
    rest, unit = [""] * len(pairs.origin), deck(view.unit)
    if release.half_step_sums is not None and view.level != release.depth:
        sums = release.unlisted_trips(view.level, view.level)
        rests = sums.at(pairs.origin.astype(np.int32), pairs.destination.astype(np.int32)).tolist()
        rest = [f"\n{format_count(count)} of them in pairs that are not listed" if count else "" for count in rests]
    shown = [
        f"released {format_count(count)} {unit}{_write_interval(a, b)}{more}"
        for count, a, b, more in zip(pairs.released.tolist(), pairs.low.tolist(), pairs.high.tolist(), rest, strict=True)
    ]
    true = [] if pairs.true is None else zip(pairs.true.tolist(), pairs.error.tolist(), strict=True)
    return TooltipTexts(
        title=[f"{deck(origin)} to {deck(destination)}" for origin, destination in names],
        text=shown,
        truth=None if pairs.true is None else [f"true {format_count(count)}, error {format_signed(error)}" for count, error in true],
    )


def _write_interval(low: float, high: float) -> str:
    """Write the interval of a number, in trips, which holds for all numbers of its kind at once; "" where there is none."""
    return f" (95 %, all at once: {format_count(low)} to {format_count(high)})" if math.isfinite(high) else ""


def _find_intervals(release: TripRelease, level: int, origin: Integers, destination: Integers) -> tuple[Floats, Floats]:
    """Compute lower and upper ends of the intervals of pairs; from 0 to infinity where a pair was not released.

    The upper end is NaN where none is known.
    """
    counts, width = release.stages[2 * level], release.tree.destinations.size(level)
    low, high = np.zeros(len(origin)), np.full(len(origin), np.inf)
    if len(counts.count):
        key = counts.origin * np.int64(width) + counts.destination
        order = np.argsort(key, kind="stable")
        wanted = origin * np.int64(width) + destination
        index = order[np.minimum(np.searchsorted(key[order], wanted), len(order) - 1)]
        released = key[index] == wanted
        low[released], high[released] = (end[index][released] for end in release.stage_interval(2 * level, joint=True))
    return low, high


def _color_by_trips(pairs: Pairs, view: TripsMapSettings, widths: Widths) -> Look:
    """Colour arcs by number of released or true trips; two colours for trips out of and into a chosen region.

    Released pairs below zero have a colour of their own. Pairs that are not certain are dashed and pale. Without a chosen region, the
    largest are the darkest, on dark pages the lightest.
    """
    true = pairs.true if view.shown == TRUE else None
    shown = np.abs(pairs.released) if true is None else true
    out, into = LEAVING_COLOR[view.dark], ARRIVING_COLOR[view.dark]
    arrives = np.zeros(len(shown), np.bool_) if view.chosen is None else pairs.destination == view.chosen
    strength, largest = widths.strength(shown), out if view.chosen is not None else _LARGEST_COLOR[view.dark]
    base = np.where(arrives[:, None], into, out)
    pale = np.zeros(len(shown), np.bool_) if true is not None else ~pairs.certain
    negative = pale & (pairs.released < 0)
    paper = np.array(PAPER[view.dark])
    full = np.where(arrives[:, None], into, _deepen(out, largest, strength))
    base = np.where(pale[:, None], (base + paper) // 2, full)
    base = np.where(negative[:, None], BELOW_ZERO_COLOR[view.dark], base)
    color = _add_alpha(base, strength)
    color[negative, 3] = np.maximum(color[negative, 3], _FAINTEST_NEGATIVE)
    marks: list[tuple[tuple[str, ...], str]] = []
    if view.chosen is not None:
        marks += [((_css(out),), "leaving"), ((_css(into),), "arriving")]
    if negative.any():
        marks.append(((_css(BELOW_ZERO_COLOR[view.dark]),), "below zero, by noise"))
    uncertain = (to_css(np.array([[*((np.array(out) + paper) // 2), 255]], np.uint8))[0], _DASHED_SAMPLE, "may be 0")
    legend = Legend(
        title=f"{view.unit} per pair",
        lines=widths.samples(out, largest),
        dashed=(uncertain,) if pale.any() else (),
        marks=(*marks, _direction_mark(out)),
    )
    return Look(color=color, width=widths.pixels(shown), dashed=pale, legend=legend)


def _color_by_error(pairs: Pairs, view: TripsMapSettings, widths: Widths) -> Look:
    """Colour arcs by error (released minus true), on a scale with a colour for each sign."""
    scale = Scale(kind="signed", top=widths.top, title=f"released minus true, {view.unit} per pair", dark=view.dark)
    legend = make_legend(scale, negatives=False)
    size = np.abs(pairs.error)
    color = _add_alpha(scale.colors(pairs.error)[:, :3], widths.strength(size))
    legend = replace(legend, marks=(_direction_mark(GREY),))
    return Look(color=color, width=widths.pixels(size), dashed=np.zeros(len(size), np.bool_), legend=legend)


def _color_by_error_kind(pairs: Pairs, view: TripsMapSettings, widths: Widths) -> Look:
    """Colour arcs of false positives and false negatives among correct ones."""
    colors = np.array([_CORRECT, (*FALSE_POSITIVE, 230), (*FALSE_NEGATIVE, 230)], np.uint8)  # by `Pairs.error_kind`
    entries = {
        "false positive: released, no such trip": FALSE_POSITIVE,
        "false negative: trips that the release lacks": FALSE_NEGATIVE,
        "released and true": GREY,
    }
    marks = (*(((_css(color),), text) for text, color in entries.items()), _direction_mark(GREY))
    return Look(
        color=colors[pairs.error_kind],
        width=widths.pixels(np.maximum(pairs.released, pairs.true_or_released)),
        dashed=np.zeros(len(pairs.released), np.bool_),
        legend=Legend(title=f"{view.unit} per pair", lines=widths.samples(GREY), marks=marks),
    )


def _deepen(color: Color, largest: Color, strength: Floats) -> NDArray[np.int64]:
    """Return (k, 3) colours from one to that of the largest number, by (k,) strengths, 0 to 1."""
    return np.rint(np.array(color) + strength[:, None] * np.subtract(largest, color)).astype(np.int64)


def _add_alpha(base: NDArray[np.integer], strength: Floats) -> Colors:
    """Add to (k, 3) colours an alpha that grows with (k,) strengths, 0 to 1."""
    return np.column_stack([base, _FAINTEST_ARC + (_STRONGEST_ARC - _FAINTEST_ARC) * strength]).astype(np.uint8)


def _css(color: Color) -> str:
    return to_css(np.array([[*color, 255]], np.uint8))[0]


def _direction_mark(color: Color) -> tuple[tuple[str, ...], str]:
    """Describe how an arc shows its direction, for `Legend.marks`."""
    ends = np.array([[*color, 240]], np.uint8)
    return to_css(np.concatenate([fade_at_origins(ends), ends])), "from, to"


def choose_tops(release: TripRelease, view: TripsMapSettings, pairs: Pairs | None = None) -> ScaleTops:
    """Choose the tops of the scales of one map.

    Args:
        release: public.
        view: the settings of the map.
        pairs: pairs of that map; computed if None. Only their released numbers are used.
    """
    pairs = _collect_pairs(release, view, None) if pairs is None else pairs
    sizes = np.abs(pairs.released[_pass_filter(pairs, view)])  # released trips alone, in every view
    sides = _sum_released_totals(release, view.level)
    return _make_tops(sizes, view, sides, _choose_error_tops(release, view.level))


def choose_public_tops(release: TripRelease, truth: PairSums, view: TripsMapSettings) -> ScaleTops:
    """Choose the tops of the scales from public trips, so that they stay the same whatever is released; those of errors from the noise.

    Args:
        release: its regions and its noise are used.
        truth: true trips between the regions of the level; public.
        view: the settings of the map.
    """
    origins, destinations = hierarchies_of(release)[0], hierarchies_of(release)[-1]
    between = np.ones(len(truth.count), np.bool_) if origins is not destinations else truth.origin != truth.destination
    sides = _sum_true_totals(truth, origins, destinations, view.level)
    return _make_tops(truth.count[between], view, sides, _choose_error_tops(release, view.level, truth))


def _make_tops(sizes: Integers, view: TripsMapSettings, sides: tuple[Totals, Totals], errors: dict[str, float]) -> ScaleTops:
    """Choose tops from (k,) trips of pairs, of which the view draws the largest, from the totals of regions, and from those of errors."""
    drawn = np.sort(sizes[sizes >= view.least])[-view.top :]
    dot = max(scale_top_of(np.maximum(_first_values(side), 0)) for side in sides)
    size = max(scale_top_of(sum(side.values())) for side in sides)
    return ScaleTops(trips=scale_top_of(drawn), arcs=len(drawn), dot=dot, size=size, **errors)


def _choose_error_tops(release: TripRelease, level: int, truth: PairSums | None = None) -> dict[str, float]:
    """Choose the tops of the two scales of errors: three standard deviations of the noise on pairs, and on what leaves and arrives.

    Both are public. A contrast states no noise: its tops follow from the errors themselves, or are 1 without the truth.
    """
    if truth is None or release.states_noise:
        ids, stddev = release.tree.origins.ids_of(level), release.stddev(level)
        of_regions = release.answer(ids, [ROOT] * len(ids), levels=(level, 0), spread=True)[1]
        return {"error": scale_top_of(3 * stddev[np.isfinite(stddev)]), "area_error": scale_top_of(3 * math.sqrt(2) * of_regions)}
    error = release.sums(level, level).at(truth.origin, truth.destination) - truth.count
    sums = np.bincount(truth.origin, error, release.tree.origins.size(level))
    return {"error": scale_top_of(error[error != 0]), "area_error": scale_top_of(sums[sums != 0])}


def as_measured(release: TripRelease) -> TripRelease:
    """Return a release with its counts as measured, or as estimated without bias, before they were made whole, non-negative or a list."""
    return replace(release, stages=tuple(replace(stage, count=stage.noisy) for stage in release.stages), half_step_sums=None)


def merge_tops(several: Sequence[ScaleTops]) -> ScaleTops:
    """Find the largest top of each scale, so that the same look means the same number on several maps."""
    return ScaleTops(**{name: max(getattr(tops, name) for tops in several) for name in ScaleTops.__dataclass_fields__})
