"""Errors of releases of made-up records, level by level, and how many squares, regions or pairs will be useful. No record is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.areas import AreaCounts
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.evaluation.metrics import PRESENT
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.families import FAMILIES
from dpviz.mechanisms.base import AnyLevel, AnyMechanism, LevelError
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.guessed_records import PublicGuess, count_no_records, guess_records
from dpviz.publishing.private_data import PrivateData, PublicFrame
from dpviz.publishing.public_guess import SEED, TOWNS, weigh_regions
from dpviz.release.area_release import AreaRelease
from dpviz.release.base import NoisyRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.intervals import add_skewness, half_widths, half_widths_of_released
from dpviz.release.point_release import PointRelease
from dpviz.release.reliability import RELIABILITY
from dpviz.release.squares import block_boxes, expected_error, sample_blocks
from dpviz.release.trip_release import TripRelease
from dpviz.release.unevenness import CutSums
from dpviz.space.domain import Domain

FROM_DATA = (
    "This mechanism chooses partitions by the data. These errors are those of empty data: a real release has other partitions and other"
    " errors. A guess of how many records there are gives better ones."
)
SUPPRESSED = "Pairs that are not released count as 0. Their error is not included and can be much larger: a study shows it."
_ENOUGH_REGIONS = 30  # numbers of a level, whose errors in one release say what is usual
RUNS = 4
"""Releases of made-up trips, which are compared pair by pair."""
_FEWEST_RUNS, _RUNS_OF_POINTS = 2, 8  # where the records decide the partitions
_ENOUGH_PARTITIONS = 4096  # in all runs: few partitions lie differently from run to run, and are released quickly
USEFUL = RELIABILITY[-1][0]
"""A count is useful if its error is at most this share of it: then its reliability is at least medium."""
_FULLEST, _OTHERS, _EMPTY = 128, 512, 128
"""Squares of a level whose errors are computed: all of the fullest, some of each size of the others, some of the empty."""
_ALIKE = 1.1  # ratio of counts that are about equal
_LARGEST_TABLE = 11  # order of a lattice whose counts are added up in a table


@dataclass(frozen=True, kw_only=True)
class LevelOutlook(LevelError):  # noqa: N818  (it is no exception)
    """What to expect of a level of a release: its noise, and its errors on made-up records.

    Attributes:
        level: 0 for the whole; of points the zoom level of squares.
        slot_level: of counts by category also the level of categories, 0 for all of them together.
        of: name of what is counted, such as "state to state".
        numbers: how many squares, regions or pairs can have records.
        stddev: root mean square standard deviation of the noise of a count, in records or trips; NaN where none can be stated.
        interval: half the width of the 95 % interval, in records or trips. Of squares that cut partitions it allows for what lies inside,
            as `answer_interval` does (root mean square over squares, of intervals that are not yet cut at 0).
        average: average count of a square or region; of trips, of a pair with trips.
        error: root mean square error of a count, in records or trips: noise, what partitions hide, and what is left out. Of trips, over
            the pairs that have trips or are released.
        useful: of how many squares, regions or pairs the error is at most 40 % of the count. Of squares, moreover, the error that a reader
            of the release can know, from noise and from what may lie inside the partitions that a square cuts (`Unevenness`), is at most
            40 % of the answer of the release: a square that is right by luck alone is of no use.
        readable: of counts by category, in how many regions an average category is useful (see `count_readable`); NaN of others.
        released: of trips, how many pairs are released; else all.
        false_share: which share of the squares or regions without records is released as at least 0.5, and so looks occupied, 0 to 1; of
            trips, which share of the released pairs has no trips. 0 if there are none, NaN if it is not known.
    """

    numbers: int
    average: float
    error: float
    useful: float
    readable: float = math.nan
    released: float
    false_share: float = math.nan


@dataclass(frozen=True, kw_only=True, eq=False)
class Outlook:
    """What to expect of a release of made-up records: its levels, the whole first, and the receipt of one such release."""

    levels: tuple[LevelOutlook, ...]
    receipt: Receipt


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What is simulated. Equal rehearsals have equal results.

    Attributes:
        mechanism: with its settings.
        frame: domain or regions.
        contributions: the bound m on the records of one person.
        budget: of the release.
        guess: how many records there may be, and how they lie; None where releases are compared with counts that are public.
        density: the numbers of the regions by which records may lie, such as denominators: regions are equal without them.
        level: the only level, or pair of levels, that is wanted; None for all of them.
        seed: of the noise.
        per_slot: the bound b on the records of one person in each slot, where there are slots; None for m.
        slots: of counts by category, the slots that are looked at, together; None for all of them.
        before_run: called before each release and each comparison; an exception from it ends the simulation.
    """

    mechanism: AnyMechanism
    frame: PublicFrame
    contributions: int
    budget: Budget
    guess: PublicGuess | None
    density: tuple[bytes, ...] = ()
    level: AnyLevel | None = None
    seed: int = SEED
    per_slot: int | None = None
    slots: tuple[str, ...] | None = None
    before_run: Callable[[], object] = field(default=int, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class OutlookKind:
    """How the errors of releases of a family are expected.

    Attributes:
        runs: releases of made-up records that are needed.
        are_enough: whether the releases that were made with a mechanism are enough already, so that no other run is needed.
        levels: computes what to expect of the levels, from these releases and the made-up records.
        noise_at: computes the error of a count of a level from the noise alone, from a release without records.
        data_dependent: says what errors without records do not include, where the data decide what is released.
    """

    runs: int = 1
    are_enough: Callable[[AnyMechanism, Sequence[Any]], bool] = lambda mechanism, releases: False  # noqa: ARG005
    levels: Callable[[Rehearsal, list[Any], Any], tuple[LevelOutlook, ...]]
    noise_at: Callable[[Any, Any], float]
    data_dependent: str = FROM_DATA


def simulate_errors(
    mechanism: AnyMechanism,
    data: PrivateData,
    budget: Budget,
    guess: PublicGuess,
    before_run: Callable[[], object] = int,
    *,
    level: AnyLevel | None = None,
    seed: int = SEED,
) -> Outlook:
    """Simulate releases of made-up records, and compare them with these. Results are kept, for the next time that they are wanted.

    Of points the levels are squares, as on maps: the noise of a release and the unevenness of made-up records inside its partitions add up
    to the error, on the fullest squares of a level and on some that stand for the others. Areas have the noise that they state. Trips are
    released `RUNS` times, and every pair is compared.

    Args:
        mechanism: with its settings.
        data: only its frame, unit and bound are used.
        budget: of the release.
        guess: how many records there may be, and how they lie.
        before_run: called before each release and each comparison; an exception from it ends the simulation.
        level: the only level that is wanted, by its number, or a pair of levels; None for all of them.
        seed: of the noise.

    Raises:
        DpvizError: settings, frame, budget and guess do not fit together.
    """
    numbers = [weigh_regions(each) if guess.spread == TOWNS else each.denominator for each in data.sides]
    density = tuple(b"" if each is None else np.asarray(each, np.float64).tobytes() for each in numbers)
    question = Rehearsal(
        mechanism=mechanism,
        frame=data.frame,
        contributions=data.contributions,
        budget=budget,
        guess=guess,
        density=density,
        level=level,
        seed=seed,
        per_slot=getattr(data, "per_slot", None) if data.contributions > 1 else None,  # counts of a family without slots have none
        before_run=before_run,
    )
    return _simulate(question, guess)


@lru_cache(maxsize=64)
def _simulate(question: Rehearsal, guess: PublicGuess) -> Outlook:
    """Simulate what a rehearsal says, on records that are made up by its guess."""
    made_up = _make_up(question.mechanism, question.frame, question.contributions, guess, question.density)
    if question.per_slot is not None:
        bound: dict[str, Any] = {"per_slot": question.per_slot}
        made_up = replace(made_up, **bound)
    return compare_releases(question, made_up)


def compare_releases(question: Rehearsal, counts: PrivateData) -> Outlook:
    """Release counts as often as the family needs, and compare the releases with them.

    Args:
        question: what is simulated; its guess is not used.
        counts: made up, or public: their errors are shown as they are.
    """
    kind: OutlookKind = FAMILIES[counts.family].outlook
    releases: list[Any] = []
    for stream in Entropy.seeded(question.seed).spawn(kind.runs):
        question.before_run()
        releases.append(question.mechanism.release(counts, question.budget, stream))
        if kind.are_enough(question.mechanism, releases):
            break
    looked_at: Any = counts
    if question.slots is not None:
        releases, looked_at = [release.in_slots(question.slots) for release in releases], looked_at.in_slots(question.slots)
    return Outlook(levels=kind.levels(question, releases, looked_at), receipt=releases[0].receipt)


@lru_cache(maxsize=1)
def _make_up(mechanism: AnyMechanism, frame: PublicFrame, people: int, guess: PublicGuess, density: tuple[bytes, ...]) -> PrivateData:  # noqa: ARG001
    """Make up the records of a rehearsal, once for all budgets of a search."""
    return guess_records(count_no_records(mechanism, frame, people), guess)


def _are_enough_partitions(mechanism: AnyMechanism, releases: Sequence[PointRelease]) -> bool:
    """Return whether releases of points have enough partitions in all; one release is enough where the records do not decide them."""
    if not mechanism.depends_on_data(releases[0]):
        return True
    return len(releases) >= _FEWEST_RUNS and sum(len(release.tree.leaves) for release in releases) >= _ENOUGH_PARTITIONS


def _outlook_of_squares(question: Rehearsal, releases: Sequence[PointRelease], made_up: PointCounts) -> tuple[LevelOutlook, ...]:
    """Compute what to expect of the squares of a zoom level, or of all of them, the whole first."""
    count_in, finer, levels = _prepare_counting(made_up), _Squares.of(made_up), list[_Chosen]()
    for zoom in (each for each in range(made_up.domain.order, -1, -1) if question.level in (None, each)):
        finer = finer.coarsen(zoom)
        levels.insert(0, finer.choose())
    boxes, true = (np.concatenate(each) for each in zip(*((squares.boxes, squares.true) for squares in levels), strict=True))
    means = np.zeros((5, len(true)))
    for release in releases:
        question.before_run()
        noisy, exact = replace(release), replace(release, count=count_in(release))  # copies: their rasters take memory for one run only
        means += _compare_squares(noisy, exact, boxes, true) / len(releases)
    ends = np.cumsum([len(squares.true) for squares in levels])
    return tuple(_outlook_of_zoom(*each) for each in zip(levels, np.split(means, ends[:-1], axis=1), strict=True))


def _prepare_counting(points: PointCounts) -> Callable[[PointRelease], Floats]:
    """Return a function that counts made-up records in the partitions of a release: by a table of sums, if the lattice is coarse enough."""

    def count(release: PointRelease) -> Floats:
        return release.tree.sums(points.column, points.row, points.count).astype(np.float64)

    if points.domain.order > _LARGEST_TABLE:
        return count
    table = np.zeros((points.domain.side + 1, points.domain.side + 1))
    table[points.row + 1, points.column + 1] = points.count
    table = table.cumsum(axis=0).cumsum(axis=1)

    def count_rectangles(release: PointRelease) -> Floats:
        if release.tree.curve is not None:
            return count(release)
        west, south, east, north = release.tree.rectangles(np.arange(len(release.tree))).T
        return np.asarray(table[north, east] - table[south, east] - table[north, west] + table[south, west])

    return count_rectangles


@dataclass(frozen=True, kw_only=True, eq=False)
class _Chosen:
    """Squares of a zoom level that stand for all.

    Attributes:
        zoom: the level.
        numbers: how many squares can have records.
        boxes: (k, 4) their bounds.
        average: made-up records in an average one.
        true: (k,) made-up records in each.
        weight: (k,) for how many squares each stands.
    """

    zoom: int
    numbers: int
    average: float
    boxes: Floats
    true: Integers
    weight: Floats

    def mean(self, values: Floats) -> float:
        """Return the mean over all squares of the level."""
        return float(self.weight @ values / self.weight.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Squares:
    """The squares of a zoom level that have made-up records: (k,) numbers, ascending, and (k,) records."""

    domain: Domain
    zoom: int
    place: Integers
    count: Integers

    @classmethod
    def of(cls, points: PointCounts) -> _Squares:
        place = points.row.astype(np.int64) * points.domain.side + points.column
        return cls(domain=points.domain, zoom=points.domain.order, place=place, count=points.count)

    def coarsen(self, zoom: int) -> _Squares:
        """Return the squares of a level that is at most as fine."""
        if zoom == self.zoom:
            return self
        row, column = (part >> (self.zoom - zoom) for part in np.divmod(self.place, 1 << self.zoom))
        place, index = np.unique((row << zoom) + column, return_inverse=True)
        return replace(self, zoom=zoom, place=place, count=np.bincount(index, self.count).astype(np.int64))

    def choose(self) -> _Chosen:
        """Choose the fullest squares; of the others some of each size, and of the empty ones some at random, that stand for them."""
        rng, domain, zoom = np.random.default_rng(SEED), self.domain, self.zoom
        numbers = int(domain.open_blocks(zoom).sum()) if domain.mask is not None else 4**zoom
        order = np.argsort(-self.count, kind="stable")
        others = rest = order[_FULLEST:]
        if len(rest) > _OTHERS:
            others = rest[((np.arange(_OTHERS) + 0.5) * (len(rest) / _OTHERS)).astype(np.int64)]
        row, column = sample_blocks(domain, zoom)
        empty = (row << zoom) + column
        empty = empty[~np.isin(empty, self.place)]
        empty = rng.permutation(empty)[:_EMPTY]
        groups = ((order[:_FULLEST], len(order[:_FULLEST])), (others, len(rest)))
        place = np.concatenate([*(self.place[index] for index, _ in groups), empty])
        sizes = [*((len(index), number) for index, number in groups), (len(empty), numbers - len(self.place))]
        return _Chosen(
            zoom=zoom,
            numbers=numbers,
            average=float(self.count.sum()) / numbers,
            boxes=block_boxes(domain, zoom, *np.divmod(place, 1 << zoom)),
            true=np.concatenate([*(self.count[index] for index, _ in groups), np.zeros(len(empty), np.int64)]),
            weight=np.concatenate([np.full(size, number / max(size, 1)) for size, number in sizes]),
        )


def _compare_squares(noisy: PointRelease, exact: PointRelease, boxes: Floats, true: Integers) -> Floats:
    """Compare a release of made-up records with these, in squares.

    Args:
        noisy: the release.
        exact: the same without noise: what its partitions hide is then all that is wrong.
        boxes: (k, 4) the bounds of the squares.
        true: (k,) made-up records in each.

    Returns:
        (5, k) variance of the noise; squared error of `exact`; squared half width of the interval; 1 where the error that a reader can
        know is small beside the answer, else 0; and 1 where the square looks occupied, else 0.
    """
    noise, cut = noisy.error_parts(boxes)
    known = np.sqrt(noise**2 + cut.variance)
    bias = exact.answer(boxes) - true
    answer = noisy.answer(boxes)
    return np.stack([noise**2, bias**2, _half_widths(noisy, boxes, known, cut) ** 2, known <= USEFUL * answer, answer >= PRESENT])


def _outlook_of_zoom(squares: _Chosen, means: Floats) -> LevelOutlook:
    """Compute what to expect of the squares of a zoom level, from (5, k) means of `_compare_squares` over the runs."""
    zoom, (variance, bias, half_width, seems_useful, looks_occupied) = squares.zoom, means
    is_right = np.sqrt(variance + bias) <= USEFUL * squares.true
    return LevelOutlook(
        level=zoom,
        of=f"{1 << zoom:,} x {1 << zoom:,} squares" if zoom else "the whole domain",
        numbers=squares.numbers,
        stddev=float(np.sqrt(squares.mean(variance))),
        interval=float(np.sqrt(squares.mean(half_width))),
        average=squares.average,
        error=float(np.sqrt(squares.mean(variance + bias))),
        useful=float(squares.weight @ (seems_useful * is_right)),
        released=float(squares.numbers),
        false_share=_mean_or_zero(looks_occupied[squares.true == 0]),
    )


def _mean_or_zero(shares: Floats | Mask) -> float:
    return float(np.mean(shares)) if len(shares) else 0.0


def _half_widths(release: PointRelease, boxes: Floats, stddev: Floats, cut: CutSums) -> Floats:
    """Compute half the widths of the intervals of (k, 4) squares, as of `answer_interval`, not rounded: (k,) of (k,) deviations in all.

    Where a release has learned nothing of what lies inside partitions, they are those of its own intervals, from none to all.
    """
    if not release.unevenness.is_learned:
        low, high = release.answer_interval(boxes)
        return np.asarray((high - low) / 2)
    below = half_widths(release.noise, stddev)
    return np.asarray((below + add_skewness(below, stddev, cut.skewness(stddev))) / 2)


def _noise_of_levels(question: Rehearsal, release: NoisyRelease) -> list[LevelError]:
    """List the noise of the levels that are wanted."""
    return [noise for noise in question.mechanism.level_errors(release) if question.level in (None, noise.key)]


def _outlook_of_areas(question: Rehearsal, releases: Sequence[AreaRelease], made_up: AreaCounts) -> tuple[LevelOutlook, ...]:
    """Compute what to expect of the regions of all levels: their noise, beside made-up counts; hidden regions are of no use.

    Of public counts, for which a biased step may be better than the noise, errors are those of the release where it has regions enough to
    show them. Made-up records lie evenly over slots, which such a step would find too easy.
    """
    release, true, rows = releases[0], made_up.cross_counts(), []
    for noise in _noise_of_levels(question, release):
        count, stddev, released = _counts_at(true, made_up, noise.key), release.stddev(noise.key), _released_at(release, noise.key)
        is_measured = question.guess is None and release.approximate is not None and count.size >= _ENOUGH_REGIONS
        squared = (released - count) ** 2 if is_measured else stddev**2
        hidden = release.hidden_at(noise.level)
        shown = np.ones(count.shape, np.bool_) if hidden is None else ~hidden
        rows.append(
            LevelOutlook(
                **vars(noise),
                average=float(count.mean()),
                error=float(np.sqrt(np.mean(squared))),
                useful=float((shown & (stddev <= USEFUL * count)).sum()),
                readable=float(count_readable(stddev, count)) if noise.slot_level else math.nan,
                released=float(shown.sum()),
                false_share=_mean_or_zero((shown & (released >= PRESENT))[count == 0]),
            )
        )
    return tuple(rows)


def _counts_at(table: Integers, areas: AreaCounts, level: AnyLevel) -> Integers:
    """Return the (regions,) counts of a level, or (regions, categories) ones of a pair of levels, of an (n, s) table of all of them."""
    place, slot = level if isinstance(level, tuple) else (level, 0)
    in_level = table[areas.regions.hierarchy.at_depth(place)]
    return in_level[:, 0] if areas.categories is None or not slot else in_level[:, areas.categories.hierarchy.at_depth(slot)]


def _released_at(release: AreaRelease, level: AnyLevel) -> Floats:
    """Return the released counts of a level, or of a pair of levels."""
    if isinstance(release, CrossRelease) and isinstance(level, tuple):
        return release.of_pair(release.cross_count, level)
    return release.count[release.nodes(level)]


def count_readable(stddev: Floats, count: Floats | Integers) -> int:
    """Count the regions that have a readable profile: of which an average category is useful.

    Args:
        stddev: (regions, categories) standard deviations of the noise.
        count: (regions, categories) counts.
    """
    return int((np.sqrt(np.mean(stddev**2, axis=1)) <= USEFUL * count.mean(axis=1)).sum())


def _outlook_of_trips(question: Rehearsal, releases: Sequence[TripRelease], made_up: TripCounts) -> tuple[LevelOutlook, ...]:
    """Compare releases with made-up trips, pair by pair, on all levels."""
    truth, rows = evaluate_trips(releases[0], made_up), []
    for noise in _noise_of_levels(question, releases[0]):
        question.before_run()
        true = truth.true_level(noise.level)
        squared, wrong, pairs, shown, positive, empty = np.zeros(len(true.count)), 0.0, 0, 0, 0, 0
        for release in releases:
            released = release.sums(noise.level, noise.level)
            extra = (released.count != 0) & (true.at(released.origin, released.destination) == 0)
            squared += (released.at(true.origin, true.destination) - true.count).astype(np.float64) ** 2
            wrong += float((released.count[extra].astype(np.float64) ** 2).sum())
            pairs, shown = pairs + len(true.count) + int(extra.sum()), shown + int((released.count != 0).sum())
            positive, empty = positive + int((released.count > 0).sum()), empty + int((released.count[extra] > 0).sum())
        stated = releases[0].estimates((noise.level, noise.level), true.origin, true.destination)[1]
        numbers, mean_shown = releases[0].tree.size(2 * noise.level), shown / len(releases)
        interval = half_widths_of_released(releases[0].noise, np.array([noise.stddev]), round(mean_shown), numbers)
        rows.append(
            LevelOutlook(
                **(vars(noise) | {"numbers": numbers, "interval": float(interval[0])}),
                average=float(true.count.mean()) if len(true.count) else 0.0,
                error=float(np.sqrt((squared.sum() + wrong) / max(pairs, 1))),
                useful=_count_useful(true.count, squared / len(releases), stated),
                released=mean_shown,
                false_share=empty / max(positive, 1),
            )
        )
    return tuple(rows)


def _count_useful(true: Integers, squared: Floats, stddev: Floats) -> float:
    """Count the pairs with small errors.

    A few runs tell little of a single pair. So pairs of about equal count share the mean of their errors, in units of their noise.

    Args:
        true: (k,) made-up trips, at least 1.
        squared: (k,) squared errors, means over the runs.
        stddev: (k,) stated noise; NaN where none is, as for a pair that is not listed.
    """
    known = stddev[stddev > 0]
    unit = np.where(stddev > 0, stddev, known.mean() if len(known) else 1.0)
    alike = np.rint(np.log(true) / math.log(_ALIKE)).astype(np.int64)
    ratio = np.bincount(alike, squared / unit**2) / np.maximum(np.bincount(alike), 1)
    return float((unit * np.sqrt(ratio[alike]) <= USEFUL * true).sum())


def _noise_of_pairs(release: TripRelease, level: int) -> float:
    """Compute the error of a pair of a level; of one that was not measured, as the sum of the mean number of finest pairs, all released."""
    tree, variance = release.tree, release.stages[2 * level].variance
    if not np.isfinite(variance):
        variance = release.stages[tree.height].variance * tree.size(tree.height) / tree.size(2 * level)
    return float(np.sqrt(variance))


def _noise_of_regions(release: AreaRelease, level: int) -> float:
    return float(np.sqrt(np.mean(release.stddev(level) ** 2)))


POINT_OUTLOOK = OutlookKind(runs=_RUNS_OF_POINTS, are_enough=_are_enough_partitions, levels=_outlook_of_squares, noise_at=expected_error)
TRIP_OUTLOOK = OutlookKind(runs=RUNS, levels=_outlook_of_trips, noise_at=_noise_of_pairs, data_dependent=SUPPRESSED)
AREA_OUTLOOK = OutlookKind(levels=_outlook_of_areas, noise_at=_noise_of_regions)
