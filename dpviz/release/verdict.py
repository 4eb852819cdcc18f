"""The verdict on a release: which of its levels are precise enough to use, judged by released numbers alone. Reports begin with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any

import numpy as np
import scipy

from dpviz.amounts import format_decimal, format_percent
from dpviz.families import FAMILIES
from dpviz.release.base import NoisyRelease
from dpviz.release.count_release import CountRelease
from dpviz.release.cross_release import CrossRelease
from dpviz.release.point_release import PointRelease
from dpviz.release.squares import is_quartered, level_like, square_errors, zoom_like
from dpviz.release.trip_release import TripRelease

USABLE, ROUGH, NOISE = _GRADES = "usable", "rough", "mostly noise"
NOT_JUDGED = "not judged"  # of contrasts, which state no noise
TOO_FINE = "too fine"  # of squares: counts of larger partitions are spread over them
MOST_USABLE, MOST_ROUGH = 0.4, 1.0  # noise divided by the average number, up to which a level is usable, and rough
MOST_EMPTY_USABLE, MOST_EMPTY_ROUGH = 0.25, 0.5  # share of released pairs that may be noise, up to which a level is usable, and rough
_CLASSES, _SMALL = np.array([-3.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0]), 1e-9  # lower ends of classes of numbers, in standard deviations
_ROUNDS = 100
_FEW_PAIRS = 10  # released pairs of a stage below which each counts as noise that does not stand out
_LEAST_STANDING = 0.25  # share of all records in small partitions that stand out, from which the verdict says so
_MOST_DOUBTFUL = 0.5  # share of the parts that look occupied that may be empty, up to which a level is usable
_PRESENT = 0.5  # released count from which a part looks occupied
_MOST_UNSURE = 0.05  # share of the parts that look occupied that may be empty, from which it is said
_SQUARES = "squares"
LARGE_NOISE, MAYBE_EMPTY, TOO_LOW = "large noise", "may be empty", "too low"
"""Why a level is not usable."""
RULE = (
    "A level is usable if its noise (the mean standard deviation) is at most 40 % of an average number: the released total divided by"
    " how many {parts} {counted_parts}. Up to 100 % it is rough; beyond that the noise is larger than what is"
    " counted. This follows from released numbers alone."
)
SQUARES_RULE = (
    "A level is usable if the error of a square (root mean square) is at most 40 % of an average number: the released total divided by how"
    " many equal squares the level has. Up to 100 % it is rough; beyond that the error is larger than what is counted. Where squares cut"
    " partitions, the error is estimated: records are taken to lie there as unevenly as released counts do just above the finest ones."
)
OCCUPIED_RULE = (
    " The finest of the levels that are not mostly noise is rough at best if more than half of its parts that look occupied may be empty,"
    " by how many numbers are below 0."
)
PAIRS_RULE = (
    " Besides, at most about 25 % of its released pairs may be noise; up to 50 % the level is rough. As many may be noise as pairs without"
    " a single {unit} could reach such numbers by noise alone; in a list, no more than its bound allows. Pairs with few {counted} count as"
    " noise, too, since nobody can tell."
)
FEW_PAIRS_RULE = (
    f" Where a level has fewer than {_FEW_PAIRS} released pairs, every one counts as noise whose standard deviation is over 40 % of its"
    " number."
)
_REST_NOTE = " {rest} of all {counted} are in no listed pair; {above} them."
_DROPPED_NOTE = (
    " {parts} of fewer than about {least:,} {counted} were dropped after the noise, and every sum lacks them: {above} too low"
    " by an unknown number."
)


@dataclass(frozen=True, kw_only=True)
class LevelVerdict:
    """The grade of one level.

    Attributes:
        level: 0 for the whole.
        name: name of the level, for example "level 3", or "state to state".
        parts: the number of squares or regions in the level, or of pairs that were counted (with noise or exactly).
        mean: the released total divided by `parts`, in records or trips, at least 0.
        stddev: mean standard deviation of the level's numbers.
        grade: `USABLE`, `ROUGH` or `NOISE`; of squares `TOO_FINE`, too.
        cause: why it is not usable: `LARGE_NOISE`, `MAYBE_EMPTY` or `TOO_LOW`; "" if it is.
        empty: of trips, the share of the released pairs that may have no trips (`estimate_empty_share`); else 0.
    """

    level: int
    name: str
    parts: int
    mean: float
    stddev: float
    grade: str
    cause: str = ""
    empty: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The grades of all levels of a release, and sentences about them. PUBLIC: post-processing of released numbers.

    Attributes:
        levels: the grade of each level, the whole first.
        counted: "records" or "trips", or another unit that the caller knows.
        parts: "squares", "pairs" or "regions".
        dropped: the smallest released number, if smaller ones were dropped and are missing from all sums, too; else None.
        listed: the number of pairs in the list of the finest level; None if that level is no list.
        rest: the share of all trips, in percent, that are in no listed pair; None if there is no list, or no trips.
        stages: of trips, the grade of each stage, those between two levels included; `LevelVerdict.level` is then the stage.
        exception: a sentence after the headline, on parts of noisy levels that can be read all the same; "" without any.
        occupied: a sentence after the headline on points and areas, on empty parts of a readable level that are released as occupied; ""
            if they are few.
        doubt: of points and areas, why a level is rough although its noise is small: how many of its parts may be empty; "" without one.

    >>> level = LevelVerdict(level=0, name="level 0", parts=1, mean=1000.0, stddev=12.0, grade=USABLE)
    >>> Verdict(levels=(level,), counted="records", parts=_SQUARES).headline
    'The only level, the whole, is usable.'
    """

    levels: tuple[LevelVerdict, ...]
    counted: str
    parts: str
    dropped: int | None = None
    listed: int | None = None
    rest: float | None = None
    stages: tuple[LevelVerdict, ...] = ()
    exception: str = ""
    occupied: str = ""
    doubt: str = ""

    @property
    def runs(self) -> list[tuple[str, list[LevelVerdict]]]:
        """Groups of consecutive levels with the same grade, the whole first."""
        return [(grade, list(run)) for grade, run in groupby(self.levels, key=lambda level: level.grade)]

    @property
    def headline(self) -> str:
        """Which levels are usable and which are not, and how many false positives there are if they are many: one sentence or two."""
        return f"{self._describe_grades()} {self.occupied}".rstrip()

    def _describe_grades(self) -> str:
        if self.levels and self.levels[0].grade == NOT_JUDGED:
            return "NOT PRIVATE: this method states no noise, so that no level can be judged."
        if any(stage.grade != USABLE for stage in self.stages):
            return self._describe_stages()
        grades = self.runs
        if len(grades) == 1 and grades[0][0] == USABLE:
            if len(self.levels) == 1:
                return "The only level, the whole, is usable."
            finest = self.levels[-1]
            if self.listed is not None:
                return f"All levels are usable; {finest.name} lists {self.listed:,} of its {finest.parts:,} {self.parts}."
            off = format_percent(finest.stddev / finest.mean)
            kind = "an error" if self.parts == _SQUARES else "noise"
            size = f", with {kind} of {off} of an average number" if finest.stddev else ""
            return f"All levels are usable, down to the {finest.parts:,} {self.parts} of {finest.name}{size}."
        if not any(grade == USABLE for grade, _ in grades):
            return f"No level is usable: even the total is {self.levels[0].grade}."
        phrases = [self._describe_run(grade, run) for grade, run in grades]
        return f"{_capitalise('; '.join(phrases))}.{f' {self.exception}' if self.exception else ''}"

    def _describe_run(self, grade: str, run: list[LevelVerdict]) -> str:
        """Write the names of consecutive levels with their grade, and why, if noise is not the reason."""
        phrase = f"{_name_levels(run)} {'is' if len(run) == 1 else 'are'} {grade}"
        if grade == TOO_FINE:
            return f"{phrase}: {'its' if len(run) == 1 else 'their'} counts are spread, not measured"
        return f"{phrase}: {self.doubt}" if run[-1].cause == MAYBE_EMPTY else phrase

    @property
    def detail(self) -> str:
        """A few sentences: mean number and noise of the finest usable level and of the finest level, and what is not listed."""
        usable = [level for level in self.levels if level.grade == USABLE]
        finest = self.levels[-1]
        described = [finest] if finest in usable or not usable else [usable[-1], finest]
        return " ".join([*map(self._describe_level, described), self.lacks]).rstrip()

    @property
    def lacks(self) -> str:
        """What the counts lack: numbers that were dropped, and what is not listed; "" if they lack nothing."""
        notes, is_deep = [], len(self.levels) > 2
        if self.dropped is not None:
            above = "coarser levels are" if is_deep else "the total is"
            notes.append(_DROPPED_NOTE.format(parts=self.parts.capitalize(), least=self.dropped, counted=self.counted, above=above))
        if self.rest is not None:
            above = "coarser levels count" if is_deep else "the total counts"
            notes.append(_REST_NOTE.format(rest=f"{self.rest:.3g} %", counted=self.counted, above=above))
        return "".join(notes).strip()

    @property
    def rule(self) -> str:
        """The text of the rule by which levels are graded."""
        if self.parts == _SQUARES:
            return SQUARES_RULE + OCCUPIED_RULE
        if self.parts == "pairs":
            rule = RULE.format(parts=self.parts, counted_parts="of the level were counted, with noise or exactly")
            return rule + PAIRS_RULE.format(counted=self.counted, unit=self.counted.removesuffix("s")) + FEW_PAIRS_RULE
        return RULE.format(parts=self.parts, counted_parts="the level has, empty ones included") + OCCUPIED_RULE

    def _describe_stages(self) -> str:
        """Write which stages of trips can be believed, and why the others cannot."""
        runs = [list(run) for _, run in groupby(self.stages, key=lambda stage: (stage.grade, stage.cause))]
        believed = [self._name_run(run) for run in runs if run[0].grade == USABLE]
        others = {cause: [run for run in runs if run[0].cause == cause] for cause in (TOO_LOW, LARGE_NOISE, MAYBE_EMPTY)}
        sentences = [f"Believe {', and '.join(believed)}." if believed else "Believe no level."]
        if low := others[TOO_LOW]:
            verb = "is" if len(low) == len(low[0]) == 1 else "are"
            sentences.append(f"{_capitalise(', and '.join(map(self._name_run, low)))} {verb} too low: small pairs were dropped.")
        if others[MAYBE_EMPTY]:
            sentences.append(f"{'But about' if believed else 'About'} {_name_empty_shares(others[MAYBE_EMPTY])} may be noise.")
        alike = ([run for run in others[LARGE_NOISE] if run[0].grade == grade] for grade in (ROUGH, NOISE))
        noisy = [runs for runs in alike if runs]
        sentences += [f"At {', and '.join(map(_name_levels, runs))}, the noise is {_compare_with_average(runs)}." for runs in noisy]
        return " ".join(sentences)

    def _name_run(self, run: list[LevelVerdict]) -> str:
        """Write the names of consecutive stages, and how many pairs the finest lists."""
        last = run[-1]
        listed = f", which lists {self.listed:,} of its {last.parts:,} pairs" if self.listed is not None and last is self.stages[-1] else ""
        if run[0] is not self.stages[0]:
            return _name_levels(run) + listed
        return "the total" if len(run) == 1 else f"all levels down to {last.name}{listed}"

    def _describe_level(self, level: LevelVerdict) -> str:
        name = _capitalise(level.name)
        part = self.parts.removesuffix("s")
        size = format_decimal(level.stddev, 3) if math.isfinite(level.stddev) else "unknown size"
        kind = "an error" if self.parts == _SQUARES else "noise"
        noise = f"with {kind} of ±\u00a0{size}" if level.stddev else "exactly"
        noise = "with an error that is not stated" if level.grade == NOT_JUDGED else noise
        if level.parts == 1:
            return f"{name}: {format_decimal(level.mean, 3)} {self.counted}, {noise}."
        return f"{name}, {level.parts:,} {self.parts}: {format_decimal(level.mean, 3)} {self.counted} in an average {part}, {noise}."


def verdict(release: NoisyRelease) -> Verdict:
    """Grade every level of a release by its noise and the released total alone.

    The rule: r = s / (t / k). Here s is the mean standard deviation of the level's numbers and t the released total, at least 0. k is
    the number of parts: all regions of areas, including empty ones; for trips all pairs that were counted, including those that
    were dropped afterwards. (Pairs below a released zero are never counted. So the average over all possible pairs would be smaller
    than t / k.) A level is usable up to r = 0.4, which is the limit of medium reliability for an average number; rough up to r = 1;
    beyond that, the noise is larger than the average number. If t is 0, only exact levels are usable.

    Of points, the levels are zoom levels and the parts their equal squares, whatever the partitions are, so that a level that was cut
    off because of a small budget is not forgotten: s is the expected error of a square, from noise and from what is not known inside
    partitions (`square_errors`).

    Of points and areas, the finest level that is usable or rough is rough at best if more than half of its parts that look occupied may
    be empty (`_count_doubtful`). Coarser levels are judged by their errors alone: few of their parts look occupied, so that this share
    is mostly chance, and a larger budget, with which a tree has more empty partitions, would make them rough.

    With a smaller budget fewer levels are usable, on average over releases, with two exceptions. A uniform grid that chooses its side by
    the budget may fit clustered records better when it is coarser: its true errors then fall, too. And DAWA is judged too harshly, since
    it keeps those squares whole that are even inside, while unevenness is taken from the squares above them, which it divided.

    No single number is selected, such as the largest one or those above a threshold. So a level does not look usable because the noise
    of some of its many numbers is large by chance. For a level that is mostly empty the rule is strict: its few full partitions may be
    known well.

    Trips have a second rule, since the noise on an average pair says nothing about the many pairs without trips: a level is usable if
    at most 25 % of its released pairs may have no trips (`estimate_empty_share`), and rough up to 50 %. The worse grade holds.

    If pairs below a threshold were dropped before sums were made, the amount that is missing in the sums is unknown. Then coarser
    levels are rough at best.

    Args:
        release: of points, trips or areas.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 16, (2, 1000)), domain=domain)
    >>> verdict(dv.Quadtree(height=3).release(points, dv.PureBudget(0.2), dv.Entropy.seeded(1))).headline
    'Levels 0 to 2 are usable; level 3 is mostly noise; level 4 is too fine: its counts are spread, not measured.'
    """
    judged: Verdict = FAMILIES[release.family].judge(release)
    return judged


def judge_points(release: PointRelease) -> Verdict:
    """Judge a release of points as `verdict` does: its zoom levels, by the expected errors of their squares."""
    errors, noise = square_errors(release)
    return _doubt_occupied(release, square_verdict(release, errors.tolist(), noise=noise.tolist()))


def judge_trips(release: TripRelease) -> Verdict:
    """Judge a release of trips as `verdict` does: its levels, and the stages between them."""
    lacking = release.states_noise and not release.every_pair and not any(math.isfinite(stage.variance) for stage in release.stages[:-1])
    dropped = int(release.stages[-1].count.min()) if lacking and len(release.stages[-1].count) else None  # coarser stages are sums
    total = float(release.stages[0].count.sum())
    stages = tuple(_grade_stage(release, stage, lacking=dropped is not None) for stage in range(release.tree.height + 1))
    return Verdict(
        levels=tuple(replace(graded, level=level) for level, graded in enumerate(stages[::2])),
        counted=release.counted,
        parts="pairs",
        dropped=dropped,
        listed=None if release.half_step_sums is None else len(release.stages[-1].count),
        rest=None if release.half_step_sums is None or total <= 0 else 100.0 * int(release.unlisted_trips(0, 0).count.sum()) / total,
        stages=stages,
    )


def judge_levels(release: CountRelease, parts: str = "regions") -> Verdict:
    """Judge a release of counts as `verdict` does: each of its levels, by the noise on the counts of its nodes.

    Args:
        release: of areas, or of another family whose levels have public nodes.
        parts: what the nodes of a level are, in the plural.
    """
    levels, total = [], float(release.centre[0])
    for level in range(release.level_number(None) + 1):
        nodes = release.open_nodes(level)
        levels.append(grade_level(level, release.name_level(level), len(nodes), total, float(np.mean(release.node_stddev[nodes]))))
    return _doubt_occupied(release, Verdict(levels=tuple(levels), counted=release.counted, parts=parts))


def judge_pairs(release: CrossRelease) -> dict[tuple[int, int], LevelVerdict]:
    """Grade each pair of a level of regions and one of categories by its noise, as `judge_levels` grades levels.

    Returns:
        The grades by the numbers of both levels, the whole first; `LevelVerdict.level` is that of the regions.
    """
    total = float(release.cross_centre[0, 0])
    pairs = product(range(release.regions.depth + 1), range(release.categories.depth + 1))
    stddevs = {pair: release.stddev(pair) for pair in pairs}
    return {
        pair: grade_level(pair[0], release.name_pair(pair), stddev.size, total, float(stddev.mean())) for pair, stddev in stddevs.items()
    }


def describe_pairs(release: CrossRelease) -> str:
    """Write the grade of each level of regions by the finest categories, such as " By hour: district usable, block mostly noise."."""
    judged, finest = judge_pairs(release), release.categories.depth
    listed = ", ".join(f"{release.name_level(level)} {judged[level, finest].grade}" for level in range(1, release.regions.depth + 1))
    return f" By {release.categories.levels[-1]}: {listed}."


def grades(release: NoisyRelease) -> list[str]:
    """Return the grade of each level of a release, the whole first; of points, that of the squares that are like its partitions."""
    judged = verdict(release)
    levels = range(release.level_number(None) + 1)
    return [judged.levels[_place_in_verdict(release, judged, level)].grade for level in levels]


def _place_in_verdict(release: Any, judged: Verdict, level: int) -> int:
    """Return where a level of a release is among those that a verdict judges, which of points are zoom levels."""
    return zoom_like(release, level) if judged.parts == _SQUARES else level


def _finest_readable(found: Verdict) -> LevelVerdict | None:
    """Return the finest level that is usable or rough; None if there is none."""
    return next((level for level in reversed(found.levels) if level.grade in (USABLE, ROUGH)), None)


def _doubt_occupied(release: CountRelease, found: Verdict) -> Verdict:
    """Say in a verdict how many parts of its finest readable level that look occupied may be empty, from released numbers alone.

    This level is no more than rough if these are over half: its noise is small beside an average number only because few parts have nearly
    all records.
    """
    finest = _finest_readable(found)
    if finest is None:
        return found
    unsure, looks = _count_doubtful(release, _level_of(release, found, finest))
    if unsure < max(_MOST_UNSURE * looks, 1):
        return found
    name = "partitions" if found.parts == _SQUARES else f"{found.parts} of {finest.name}"
    said = f"up to about {unsure:,} of the {looks:,} {name} that look occupied may be empty"
    if finest.grade == ROUGH or unsure <= _MOST_DOUBTFUL * looks:
        return replace(found, occupied=f"But {said}.")
    rough = replace(finest, grade=ROUGH, cause=MAYBE_EMPTY)
    return replace(found, levels=tuple(rough if level is finest else level for level in found.levels), doubt=said)


def _level_of(release: Any, found: Verdict, level: LevelVerdict) -> int:
    """Return the level of a release that a level of its verdict is of, or is like."""
    return level_like(release, level.level) if found.parts == _SQUARES else level.level


def _count_doubtful(release: CountRelease, level: int) -> tuple[int, int]:
    """Count the parts of a level that may be empty although they look occupied, and all that look so.

    The noise of an unbiased estimate is symmetric. So of the parts without records, about as many are above a number by noise alone as are
    below its negative; parts with few records add to the latter. The number here is the smallest that looks occupied. Numbers that are
    hidden do not look occupied.
    """
    nodes, is_hidden = release.nodes(level), release.hidden_at(level)
    count = release.count[nodes] if is_hidden is None else release.count[nodes][~is_hidden]
    looks = count[count >= _PRESENT]
    return 0 if not len(looks) else min(int((release.centre[nodes] <= -looks.min()).sum()), len(looks)), len(looks)


def square_verdict(release: PointRelease, errors: Sequence[float], unit: str = "", noise: Sequence[float] | None = None) -> Verdict:
    """Grade zoom levels, by the rule of `verdict`, for the equal squares into which each cuts the domain, whatever the partitions are.

    Squares that the domain's mask covers are not counted.

    Args:
        release: of points; only its released total is used.
        errors: (n,) errors of a square at zoom levels 0 to n - 1, in records: expected (`expected_error`), or measured on public data.
        unit: what is counted, in the plural; "records" without it.
        noise: (n,) the part of `errors` that comes from noise. A level whose error is larger than what is counted is `TOO_FINE` if less
            than half of its squared error is noise, or that of a coarser one: the rest comes from spreading the counts of larger
            partitions.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 16, (2, 1000)), domain=domain)
    >>> release = dv.Quadtree(height=3).release(points, dv.PureBudget(0.2), dv.Entropy.seeded(1))
    >>> square_verdict(release, [10, 20, 30, 40]).headline
    'Levels 0 and 1 are usable; level 2 is rough; level 3 is mostly noise.'
    >>> square_verdict(release, [10, 20, 30, 40], noise=[10, 20, 30, 25]).headline
    'Levels 0 and 1 are usable; level 2 is rough; level 3 is too fine: its counts are spread, not measured.'
    """
    total = float(release.centre[0])
    domain = release.domain
    name = "level" if is_quartered(release) else "zoom level"
    levels = tuple(grade_level(zoom, f"{name} {zoom}", domain.count_open_blocks(zoom), total, error) for zoom, error in enumerate(errors))
    parts = errors if noise is None else noise
    spread = [level.grade == NOISE and part**2 < error**2 / 2 for level, error, part in zip(levels, errors, parts, strict=True)]
    first = spread.index(True) if True in spread else len(levels)
    levels = tuple(replace(level, grade=TOO_FINE) if level.level >= first and level.grade == NOISE else level for level in levels)
    counted = unit or release.counted
    return Verdict(levels=levels, counted=counted, parts=_SQUARES, exception=_describe_standing(release, levels, counted))


def _describe_standing(release: PointRelease, levels: Sequence[LevelVerdict], counted: str) -> str:
    """Write how many small partitions stand out from the noise, if they hold much of the whole; else "".

    The average square of a sparse level is empty, so that noise is larger than its number; full squares are known well all the same.
    """
    first = next((level.level for level in levels if level.grade in (NOISE, TOO_FINE)), None)
    total = float(release.count[0])
    if first is None or total <= 0:
        return ""
    leaves = release.tree.leaves
    small = leaves[release.tree.cells[leaves] <= 4.0 ** (release.tree.order - first)]
    standing = small[release.node_interval(small, joint=True)[0] > 0]
    share = float(release.count[standing].sum()) / total
    if share < _LEAST_STANDING:
        return ""
    some, stand = ("1 partition", "stands") if len(standing) == 1 else (f"{len(standing):,} partitions", "stand")
    return f"Yet {some} as small as at level {first} {stand} out, with {format_percent(share)} of all {counted}."


def describe_verdict(release: NoisyRelease) -> dict[str, Any]:
    """Describe the verdict in the form of the manifest: sentences, rule, and the levels of each grade."""
    result = verdict(release)
    grade_names = {"usable": (USABLE,), "rough": (ROUGH,), "mostly_noise": (NOISE, TOO_FINE)}
    levels = {name: [level.level for level in result.levels if level.grade in grade] for name, grade in grade_names.items()}
    return {"headline": result.headline, "detail": result.detail, "rule": result.rule, **levels}


def estimate_empty_share(release: TripRelease, stage: int) -> float:
    """Estimate how many of the released pairs of a stage may have no trips, from public numbers alone.

    Released numbers are sorted into classes by their size in standard deviations. Of n pairs without trips, noise brings n p into a class
    that noise reaches with probability p; so up to min(r, n p) of a class with r released pairs may have none. Here n is the number of the
    pairs that were counted and not released, plus the estimate itself. For a list, the share is at most the bound that it was made for.

    Chance takes r below n p in some classes, so that the sum would be too low where few pairs have trips. Where no pair was chosen by its
    number, since those below 0 are released, too, r + sqrt(r) stands for r; elsewhere the estimate is too high rather than too low.

    Pairs with few trips cannot be told apart from those without: where most pairs have some, the estimate is too high.

    With fewer than 10 released pairs, a sum over classes of one or two says little. Then all pairs, but for the whole, may be empty whose
    numbers are below 2.5 standard deviations, as noise alone makes them in 99 of 100 pairs, if these are more than the sum. (Of 5,000 and
    40 trips and two pairs of a few, the sum said 5 % at the first stage, and 21 % were empty.)

    Args:
        release: of trips.
        stage: 0 to T.

    Returns:
        A share, 0 to 1; 0 if no pair was released.
    """
    counts = release.stages[stage]
    positive = counts.count > 0
    stddev = release.stddev_by_pair(stage)[positive]
    noisy = np.isfinite(stddev) & (stddev > 0)
    size, stddev, numbers = int(positive.sum()), stddev[noisy], counts.noisy[positive][noisy]
    if not len(numbers):
        return 0.0
    edges = np.maximum(_CLASSES, (numbers / stddev).min() - _SMALL)
    limits = np.floor(edges[:, None] * stddev)
    above = np.append((numbers > limits).sum(axis=1), 0)
    tails = np.append(scipy.special.ndtr(-(limits + 0.5) / stddev).mean(axis=1), 0.0)
    of_class, chance = above[:-1] - above[1:], tails[:-1] - tails[1:]
    counted = release.tree.size(stage) if release.every_pair else max(counts.measured, len(counts.count))
    most = of_class + np.sqrt(of_class) if len(counts.count) > size else of_class  # numbers below 0 are there, too: none was chosen
    empty = float(size)
    for _ in range(_ROUNDS):
        expected = (counted - size + empty) * chance
        empty = min(float(np.minimum(most, expected).sum()), float(size))
    if stage and size < _FEW_PAIRS:
        empty = max(empty, float((numbers < stddev / MOST_USABLE).sum()))
    bound = release.most_false if stage == release.tree.height else None
    return min(empty / size, 1.0 if bound is None else bound)


def _grade_stage(release: TripRelease, number: int, *, lacking: bool) -> LevelVerdict:
    """Grade a stage of a release of trips; `lacking` says that sums lack dropped pairs, so that they are rough at best."""
    stage, total = release.stages[number], float(release.stages[0].count.sum())
    stddev, known = release.stage_stddev(number), math.isfinite(stage.variance)
    numbers = stage.measured if known and stage.measured else release.tree.size(number) if release.every_pair else len(stage.count)
    mean = math.sqrt(stage.variance) if known else float(np.mean(stddev)) if len(stddev) else math.inf
    graded = grade_level(number, release.tree.title(number), max(numbers, 1), total, mean if release.states_noise else math.nan)
    if graded.grade == NOT_JUDGED:
        return graded
    empty = estimate_empty_share(release, number)
    by_empty = USABLE if empty <= MOST_EMPTY_USABLE else ROUGH if empty <= MOST_EMPTY_ROUGH else NOISE
    graded = replace(graded, empty=empty)
    if _GRADES.index(by_empty) >= _GRADES.index(graded.grade) and by_empty != USABLE:
        graded = replace(graded, grade=by_empty, cause=MAYBE_EMPTY)
    return replace(graded, grade=ROUGH, cause=TOO_LOW) if lacking and number < release.tree.height and graded.grade == USABLE else graded


def grade_level(level: int, name: str, parts: int, total: float, stddev: float) -> LevelVerdict:
    """Grade a level of `parts` numbers by the rule of `verdict`; without a stated deviation (NaN), it is not judged."""
    mean = max(total, 0.0) / parts
    ratio = 0.0 if stddev == 0 else stddev / mean if mean > 0 else math.inf
    grade = USABLE if ratio <= MOST_USABLE else ROUGH if ratio <= MOST_ROUGH else NOISE
    if math.isnan(stddev):
        grade = NOT_JUDGED
    cause = LARGE_NOISE if grade in (ROUGH, NOISE) else ""
    return LevelVerdict(level=level, name=name, parts=parts, mean=mean, stddev=stddev, grade=grade, cause=cause)


def _name_levels(levels: list[LevelVerdict]) -> str:
    """Write the names of consecutive levels, such as "levels 0 to 2", or "all to all down to county to county"."""
    first, last = levels[0], levels[-1]
    if first is last:
        return first.name
    name = first.name.removesuffix(f"level {first.level}")
    if name == first.name or any(level.name != f"{name}level {level.level}" for level in levels):
        return f"{first.name} {'and' if last.level == first.level + 1 else 'down to'} {last.name}"
    return f"{name}levels {first.level} {'and' if last.level == first.level + 1 else 'to'} {last.level}"


def _name_empty_shares(runs: list[list[LevelVerdict]]) -> str:
    """Write of each stage how many of its released pairs may be noise: a bound of its own, since stages with one grade differ."""
    first, *others = [f"{100 * stage.empty:.0f} %{{}} at {stage.name}" for run in runs for stage in run]
    parts = [first.format(" of the released pairs"), *(other.format("") for other in others)]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _compare_with_average(runs: list[list[LevelVerdict]]) -> str:
    """Write how large the noise of stages with one grade is, beside an average number."""
    if runs[0][0].grade == NOISE:
        return "larger than an average number"
    return f"up to {100 * max(stage.stddev / stage.mean for run in runs for stage in run):.0f} % of an average number"


def _capitalise(text: str) -> str:
    """Begin a text with a capital letter; names in it keep theirs."""
    return text[:1].upper() + text[1:]
