"""What a map of regions shows, however it is drawn: the colours of a level's regions, their texts, the scale and the legend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from dpviz.amounts import MISSING, format_count, format_decimal, format_signed
from dpviz.arrays import Floats, Integers, Mask
from dpviz.errors import DomainError, check_choice
from dpviz.evaluation.metrics import presence_errors
from dpviz.release.area_release import AreaRelease
from dpviz.release.mean_release import MeanRelease
from dpviz.space.denominators import RATES_PER, describe_rate
from dpviz.space.regions import Regions
from dpviz.view.basemap import Bounds, RegionShapes, fit_bounds, prepare_shapes
from dpviz.view.canvas import Legend, choose_shades, make_legend, make_marks_legend, make_palette, to_css
from dpviz.view.colors import Colors, Scale, occupied_top, scale_top_of
from dpviz.view.escape import deck, line
from dpviz.view.trips_layers import Areas, TooltipTexts, size_points

RELEASED, TRUE, ERROR, FALSE_POSITIVES = "Released", "True", "Error", "False positives"
SHOWN_AREAS = (RELEASED, TRUE, ERROR, FALSE_POSITIVES)
"""What a map can show: counts, errors, or which regions are false positives and false negatives."""
NO_NUMBER = (128, 128, 128, 60)
"""Colour of regions without a number: their denominator is 0, or they are not shown."""
_WIDTH, _HEIGHT = 700, 420  # pixels of a pane, about
_TOP_QUANTILE = 0.97  # of counts or rates: a few regions have far more than all others, which would look alike


@dataclass(frozen=True, kw_only=True)
class Denominator:
    """A public number of each leaf region, by which counts are divided: residents, or square kilometres.

    Attributes:
        words: what follows a rate, such as "per 1,000 residents".
        numbers: by the ids of the leaves.
        per: rates are per so many.
    """

    words: str
    numbers: pd.Series
    per: float = 1.0

    @classmethod
    def of(cls, regions: Regions) -> Denominator | None:
        """Return the denominator that regions have; None if they have none."""
        numbers = regions.denominator
        return None if numbers is None else cls(words=describe_rate(numbers), numbers=numbers, per=RATES_PER)

    def factors(self, regions: Regions, level: int) -> Floats:
        """Return the (n,) factors that turn counts of a level's regions into rates; NaN where the number is 0."""
        leaves = self.numbers.reindex(regions.ids_of(regions.depth)).to_numpy(np.float64)
        sums = np.bincount(regions.ancestors(level), leaves, regions.size(level))
        return np.where(sums > 0, self.per / np.where(sums > 0, sums, 1.0), np.nan)


class RegionsOnMap:
    """Where regions lie on a map. PUBLIC: outlines are simplified once, and used for every release of the same regions.

    H3 cells are drawn by deck.gl's own layer, which needs their indexes only, if this pydeck brings it; else by their outlines.

    Args:
        regions: with geometry.
        by_deck: whether deck.gl draws them; without it, H3 cells have outlines as all other regions.
    """

    def __init__(self, regions: Regions, *, by_deck: bool = True) -> None:
        self.regions, self._by_deck = regions, by_deck
        self._shapes: dict[int, RegionShapes | None] = {}

    def shapes(self, level: int) -> RegionShapes | None:
        """Return the shapes of a level's regions; None if they have no geometry."""
        if level not in self._shapes:
            self._shapes[level] = prepare_shapes(self.regions, level, h3=self._by_deck and _has_hexagon_layer())
        return self._shapes[level]

    @cached_property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees of the first view."""
        return fit_bounds([self.regions], _WIDTH, _HEIGHT)


def _has_hexagon_layer() -> bool:
    from dpviz.view.deck import has_hexagon_layer  # noqa: PLC0415 - of the extras, which a report does not need

    return has_hexagon_layer()


@dataclass(frozen=True, kw_only=True)
class AreaTops:
    """The tops of a map's scales, in what the map shows: counts, or rates.

    Attributes:
        count: of released and true numbers.
        error: of errors.
    """

    count: float
    error: float


@dataclass(frozen=True, kw_only=True)
class AreasMapSettings:
    """The settings of a map of regions.

    Attributes:
        level: of the regions, 1 for the coarsest.
        shown: one of `SHOWN_AREAS`, of which all but "Released" need the truth.
        rate: what counts are divided by for the colours; None for counts.
        also: what counts are divided by in the texts, where `rate` is None; None for no rate.
        raw: whether counts are shown as first measured, before post-processing.
        unit: what is counted, in the plural.
        part: what part of it, such as "07 to 09"; "" for all.
        dark: whether the page is dark.
        tops: tops of the scales, shared with other maps; None for scales of its own.
    """

    level: int
    shown: str = RELEASED
    rate: Denominator | None = None
    also: Denominator | None = None
    raw: bool = False
    unit: str = "records"
    part: str = ""
    dark: bool = False
    tops: AreaTops | None = None

    @property
    def per(self) -> str:
        """What follows the unit where rates are shown, with a space; "" for counts."""
        return "" if self.rate is None else f" {line(self.rate.words)}"


@dataclass(frozen=True, kw_only=True)
class AreasDrawing:
    """What a map shows.

    Attributes:
        areas: the look of the regions.
        title: of the map.
        legend: of its colours.
        note: what is left out, as plain text; "" if nothing.
        description: alternative text, plain.
        view: the settings.
    """

    areas: Areas
    title: str
    legend: Legend
    note: str
    description: str
    view: AreasMapSettings


def draw_areas(release: AreaRelease, on_map: RegionsOnMap, view: AreasMapSettings, truth: Integers | None = None) -> AreasDrawing:
    """Choose what a map of one level of regions shows.

    Args:
        release: public.
        on_map: where its regions lie.
        view: the settings.
        truth: (n,) true counts of the level's regions, from an evaluation; the map shows released counts without it. CURATOR ONLY.

    Raises:
        DomainError: no such level or view, or regions without geometry.
    """
    check_choice(view.shown, SHOWN_AREAS, "shown", DomainError)
    if not 1 <= view.level <= release.regions.depth:
        raise DomainError(f"Levels on a map are 1 to {release.regions.depth}.")
    shapes = on_map.shapes(view.level)
    if shapes is None:
        raise DomainError("These regions have neither outlines nor points: there is no map of them.")
    view = replace(view, shown=RELEASED) if truth is None else view
    tops = view.tops or choose_tops(release, view, release.count[release.nodes(view.level)] if truth is None else truth)
    if view.shown == FALSE_POSITIVES and truth is not None:
        color, legend = _color_marks(release, view, truth)
    else:
        color, legend = _color_numbers(release, view, truth, tops)
    counts = truth if view.shown == TRUE and truth is not None else shown_counts(release, view)
    size = np.sqrt(np.clip(np.nan_to_num(counts * _factors(release, view)) / tops.count, 0.0, 1.0))
    dots = size_points(size) if shapes.are_dots else np.zeros(0)
    areas = Areas(shapes=shapes, color=color, dots=dots, texts=_write_texts(release, view, truth))
    name = line(release.regions.levels[view.level - 1])
    regions, circles = f"{release.regions.size(view.level):,} regions ({name})", f"; one circle per {name}" if shapes.are_dots else ""
    part = f", {line(view.part)}" if view.part else ""
    return AreasDrawing(
        areas=areas,
        title=_write_title(view),
        legend=replace(legend, title=f"{legend.title}{circles}"),
        note=_write_note(release, view),
        description=f"Map of {regions}, {view.shown.lower()}: {view.unit}{view.per} of each region{part}.",
        view=view,
    )


def choose_tops(release: AreaRelease, view: AreasMapSettings, counts: Floats | Integers) -> AreaTops:
    """Choose the tops of the scales: of numbers from public or released counts, of errors from the noise.

    Args:
        release: public.
        view: the settings of the map.
        counts: (n,) counts of the level's regions.
    """
    factors = _factors(release, view)
    errors = 3 * release.stddev(view.level) * factors
    return AreaTops(
        count=occupied_top(counts * factors, quantile=_TOP_QUANTILE),
        error=scale_top_of(errors[np.isfinite(errors)], quantile=0.5),
    )


def shown_counts(release: AreaRelease, view: AreasMapSettings) -> Floats:
    """Return the (n,) counts that a map shows: released, or as first measured where they were; NaN for hidden regions."""
    noisy, count = (each[release.nodes(view.level)] for each in (release.noisy, release.count))
    shown = np.where(np.isnan(noisy), count, noisy) if view.raw else count
    return np.where(_hidden(release, view.level), np.nan, shown)


def _hidden(release: AreaRelease, level: int) -> Mask:
    hidden = release.hidden_at(level)
    return np.zeros(release.regions.size(level), np.bool_) if hidden is None else hidden


def _factors(release: AreaRelease, view: AreasMapSettings) -> Floats:
    return np.ones(release.regions.size(view.level)) if view.rate is None else view.rate.factors(release.regions, view.level)


def _color_numbers(release: AreaRelease, view: AreasMapSettings, truth: Integers | None, tops: AreaTops) -> tuple[Colors, Legend]:
    """Colour regions by counts, rates or errors; regions that are or may be empty are pale."""
    shown, factors = shown_counts(release, view), _factors(release, view)
    values = shown * factors
    if truth is not None and view.shown in (TRUE, ERROR):
        values = truth * factors if view.shown == TRUE else (shown - truth) * factors
    known = np.isfinite(values)
    scale = _choose_scale(view, tops)
    pale, which = _choose_pale(release, view, truth)
    values, pale = np.where(known, values, 0.0), pale & known
    color = make_palette(scale)[choose_shades(scale, values, pale)]
    color[~known] = NO_NUMBER
    legend = make_legend(scale, negatives=bool((values < 0).any()), pale=which if pale.any() else "")
    hidden = _hidden(release, view.level)
    reasons = ["not shown: under the threshold"] if view.shown != TRUE and hidden.any() else []
    reasons += ["nothing to divide by"] if view.rate is not None and (~known & ~hidden).any() else []
    marks = [(to_css(np.array([NO_NUMBER], np.uint8)), why) for why in reasons]
    return color, replace(legend, marks=(*legend.marks, *marks))


def _choose_scale(view: AreasMapSettings, tops: AreaTops) -> Scale:
    if view.shown == ERROR:
        return Scale(kind="signed", top=tops.error, title=f"released minus true, {view.unit}{view.per} of a region", dark=view.dark)
    return Scale(kind="density", top=tops.count, title=f"{view.unit}{view.per or ' of a region'}", dark=view.dark)


def _choose_pale(release: AreaRelease, view: AreasMapSettings, truth: Integers | None) -> tuple[Mask, str]:
    """Return which regions are drawn pale, since they are or may be empty, and what pale means where it says more than the number 0."""
    if view.shown == TRUE and truth is not None:
        return truth == 0, ""
    if view.shown == RELEASED and release.receipt.private and not view.raw:
        low, _ = release.interval(view.level)
        return low <= 0, "may be 0"
    return np.zeros(release.regions.size(view.level), np.bool_), ""


def _color_marks(release: AreaRelease, view: AreasMapSettings, truth: Integers) -> tuple[Colors, Legend]:
    """Colour regions that are released as occupied though they are empty, and the other way round."""
    count = release.count[release.nodes(view.level)]
    wrong, empty = presence_errors(count, truth), truth == 0
    kinds = np.where(empty & (count >= 0.5), 1, np.where(~empty & (count < 0.5), 2, 0))
    colors = Scale(kind="marks", top=1.0, title="", dark=view.dark).colors(np.arange(3))
    return colors[kinds], make_marks_legend(colors, wrong, int(empty.sum()), len(truth))


def _write_texts(release: AreaRelease, view: AreasMapSettings, truth: Integers | None) -> TooltipTexts:
    """Write for each region its name, its released count with both intervals, its rate, and the true count if given."""
    level, unit = view.level, deck(view.unit)
    columns = (shown_counts(release, replace(view, raw=False)), *release.interval(level), *release.interval(level, joint=True))
    more = map("".join, zip(_write_rates(release, view), _write_means(release, view), strict=True))
    rows = zip(*(column.tolist() for column in columns), more, strict=True)
    measured = [""] * release.regions.size(level)
    if view.raw:
        noisy = release.noisy[release.nodes(level)].tolist()
        measured = [f"measured {format_count(count)}\n" if np.isfinite(count) else "not measured\n" for count in noisy]
    texts = [
        f"{raw}released {format_count(count)} {unit}\n95 %: {format_count(low)} to {format_count(high)}"
        f"\nall regions at once: {format_count(first)} to {format_count(last)}{rate}"
        if np.isfinite(count)
        else "not shown: its count is under the threshold"
        for raw, (count, low, high, first, last, rate) in zip(measured, rows, strict=True)
    ]
    true = None
    if truth is not None:
        pairs = zip(truth.tolist(), np.nan_to_num(release.count[release.nodes(level)] - truth).tolist(), strict=True)
        true = [f"true {format_count(count)}, error {format_signed(error)}" for count, error in pairs]
    return TooltipTexts(title=name_regions(release.regions, level), text=texts, truth=true)


def name_regions(regions: Regions, level: int) -> list[str]:
    """Name the regions of a level for tooltips: a name that is but an id stands after that of the level."""
    kind, names = deck(regions.levels[level - 1]), zip(regions.names_of(level), regions.ids_of(level), strict=True)
    return [f"{kind} {deck(name)}" if name == ident else deck(name) for name, ident in names]


def _write_rates(release: AreaRelease, view: AreasMapSettings) -> list[str]:
    """Write for each region its released rate with its interval, as a line of its own; "" without a denominator."""
    denominator = view.rate or view.also
    if denominator is None:
        return [""] * release.regions.size(view.level)
    words, factors = deck(denominator.words), denominator.factors(release.regions, view.level)
    rates = (number * factors for number in (release.count[release.nodes(view.level)], *release.interval(view.level)))
    return [
        f"\n{format_decimal(rate)} {words} (95 %: {format_decimal(low)} to {format_decimal(high)})" if np.isfinite(rate) else ""
        for rate, low, high in zip(*(column.tolist() for column in rates), strict=True)
    ]


def _write_means(release: AreaRelease, view: AreasMapSettings) -> list[str]:
    """Write for each region the mean of its values with its interval, as a line of its own; "" where none were added up."""
    if not isinstance(release, MeanRelease):
        return [""] * release.regions.size(view.level)
    rows = release.means(view.level)[["mean", "mean_low", "mean_high"]].itertuples(index=False)
    return [
        f"\nmean {format_decimal(mean) if np.isfinite(mean) else MISSING} (95 %: {format_decimal(low)} to {format_decimal(high)})"
        for mean, low, high in rows
    ]


def _write_title(view: AreasMapSettings) -> str:
    titles = {TRUE: f"True {view.unit}{view.per}", ERROR: "Error: released minus true", FALSE_POSITIVES: "False positives and negatives"}
    released = f"Measured {view.unit}, before post-processing" if view.raw else f"Released {view.unit}{view.per}"
    return ", ".join(filter(None, (titles.get(view.shown, released), line(view.part))))


def _write_note(release: AreaRelease, view: AreasMapSettings) -> str:
    """Write what a map does not show as it is."""
    hidden = int(_hidden(release, view.level).sum())
    notes = [f"{hidden:,} regions are under the threshold and not shown; larger regions include them."] if hidden else []
    if view.raw and np.isnan(release.noisy[release.nodes(view.level)]).all():
        notes.append("This level was not measured itself: its regions are sums of finer ones.")
    return " ".join(notes)
