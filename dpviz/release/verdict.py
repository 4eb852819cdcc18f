"""The verdict on a release: which of its levels are precise enough to use, judged by released numbers alone. Reports begin with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.release.flow_release import FlowRelease
from dpviz.release.nouns import counted_noun
from dpviz.release.point_release import Release

USABLE, ROUGH, NOISE = "usable", "rough", "mostly noise"
MOST_USABLE, MOST_ROUGH = 0.4, 1.0  # noise divided by the average number, up to which a level is usable, and rough
RULE = (
    "A level is usable if its noise (the mean standard deviation) is at most 40 % of an average number: the released total divided by"
    " how many {parts} {counted_parts}. Up to 100 % it is rough; beyond that the noise is larger than what is"
    " counted. This follows from released numbers alone."
)
SQUARES_RULE = (
    "A level is usable if the error of a square (root mean square) is at most 40 % of an average number: the released total divided by how"
    " many equal squares the level has. Up to 100 % it is rough; beyond that the error is larger than what is counted."
)
_REST_NOTE = " {rest} of all {counted} are in pairs that are not listed; coarser levels count them."
_DROPPED_NOTE = (
    " {parts} of fewer than about {least:,} {counted} were dropped after the noise, and every sum lacks them: coarser levels are too low"
    " by an unknown number."
)


@dataclass(frozen=True, kw_only=True)
class LevelVerdict:
    """The grade of one level.

    Attributes:
        level: 0 for the whole.
        name: name of the level, for example "level 3", or "state to state".
        parts: the number of partitions in the level, or of pairs that were counted (with noise or exactly).
        mean: the released total divided by `parts`, in records or trips, at least 0.
        stddev: mean standard deviation of the level's numbers.
        grade: `USABLE`, `ROUGH` or `NOISE`.
    """

    level: int
    name: str
    parts: int
    mean: float
    stddev: float
    grade: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The grades of all levels of a release, and sentences about them. PUBLIC: post-processing of released numbers.

    Attributes:
        levels: the grade of each level, the whole first.
        counted: "records" or "trips", or another unit that the caller knows.
        parts: "partitions", "squares" or "pairs".
        dropped: the smallest released number, if smaller ones were dropped and are missing from all sums, too; else None.
        listed: the number of pairs in the list of the finest level; None if that level is no list.
        rest: the share of all trips, in percent, that are in no listed pair; None if there is no list, or no trips.

    >>> level = LevelVerdict(level=0, name="level 0", parts=1, mean=1000.0, stddev=12.0, grade=USABLE)
    >>> Verdict(levels=(level,), counted="records", parts="partitions").headline
    'The only level, the whole, is usable.'
    """

    levels: tuple[LevelVerdict, ...]
    counted: str
    parts: str
    dropped: int | None = None
    listed: int | None = None
    rest: float | None = None

    @property
    def runs(self) -> list[tuple[str, list[LevelVerdict]]]:
        """Groups of consecutive levels with the same grade, the whole first."""
        return [(grade, list(run)) for grade, run in groupby(self.levels, key=lambda level: level.grade)]

    @property
    def headline(self) -> str:
        """One sentence that says which levels are usable and which are not."""
        grades = self.runs
        if len(grades) == 1 and grades[0][0] == USABLE:
            if len(self.levels) == 1:
                return "The only level, the whole, is usable."
            finest = self.levels[-1]
            if self.listed is not None:
                return f"All levels are usable; {finest.name} lists {self.listed:,} of its {finest.parts:,} {self.parts}."
            return f"All levels are usable, down to the {finest.parts:,} {self.parts} of {finest.name}."
        if not any(grade == USABLE for grade, _ in grades):
            return f"No level is usable: even the total is {self.levels[0].grade}."
        phrases = [f"{_name_levels(run)} {'is' if len(run) == 1 else 'are'} {grade}" for grade, run in grades]
        return f"{_capitalise('; '.join(phrases))}."

    @property
    def detail(self) -> str:
        """A few sentences: mean number and noise of the finest usable level and of the finest level, and what is not listed."""
        usable = [level for level in self.levels if level.grade == USABLE]
        finest = self.levels[-1]
        described = [finest] if finest in usable or not usable else [usable[-1], finest]
        words = {"parts": self.parts.capitalize(), "least": self.dropped, "counted": self.counted}
        text = " ".join(self._describe_level(level) for level in described)
        if self.dropped is not None:
            text += _DROPPED_NOTE.format(**words)
        if self.rest is not None:
            text += _REST_NOTE.format(rest=f"{self.rest:.3g} %", counted=self.counted)
        return text

    @property
    def rule(self) -> str:
        """The text of the rule by which levels are graded."""
        if self.parts == "squares":
            return SQUARES_RULE
        which = "of the level were counted, with noise or exactly" if self.parts == "pairs" else "the level has, empty ones included"
        return RULE.format(parts=self.parts, counted_parts=which)

    def _describe_level(self, level: LevelVerdict) -> str:
        name = _capitalise(level.name)
        part = self.parts.removesuffix("s")
        size = format_decimal(level.stddev, 3) if math.isfinite(level.stddev) else "unknown size"
        kind = "an error" if self.parts == "squares" else "noise"
        noise = f"with {kind} of ±\u00a0{size}" if level.stddev else "exactly"
        if level.parts == 1:
            return f"{name}: {format_decimal(level.mean, 3)} {self.counted}, {noise}."
        return f"{name}, {level.parts:,} {self.parts}: {format_decimal(level.mean, 3)} {self.counted} in an average {part}, {noise}."


def verdict(release: Release | FlowRelease) -> Verdict:
    """Grade every level of a release by its noise and the released total alone.

    The rule: r = s / (t / k). Here s is the mean standard deviation of the level's numbers and t the released total, at least 0. k is
    the number of parts: for points all partitions, including empty ones; for trips all pairs that were counted, including those that
    were dropped afterwards. (Pairs below a released zero are never counted. So the average over all possible pairs would be smaller
    than t / k.) A level is usable up to r = 0.4, which is the limit of medium reliability for an average number; rough up to r = 1;
    beyond that, the noise is larger than the average number. If t is 0, only exact levels are usable.

    No single number is selected, such as the largest one or those above a threshold. So a level does not look usable because the noise
    of some of its many numbers is large by chance. For a level that is mostly empty the rule is strict: its few full partitions may be
    known well.

    If pairs below a threshold were dropped before sums were made, the amount that is missing in the sums is unknown. Then coarser
    levels are rough at best.

    Args:
        release: of points or trips.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 16, (2, 1000)), domain=domain)
    >>> verdict(dv.Quadtree(height=3).release(points, dv.PureBudget(0.2), dv.Entropy.seeded(1))).headline
    'Levels 0 to 2 are usable; level 3 is mostly noise.'
    """
    if isinstance(release, FlowRelease):
        dropped = _smallest_released(release)
        levels = tuple(_grade_trip_level(release, level, lacking=dropped is not None) for level in range(release.depth + 1))
        listed = None if release.across is None else len(release.stages[-1].count)
        return Verdict(
            levels=levels, counted=counted_noun(release), parts="pairs", dropped=dropped, listed=listed, rest=_compute_rest_percent(release)
        )
    levels = tuple(_grade_point_level(release, level) for level in range(release.height + 1))
    return Verdict(levels=levels, counted=counted_noun(release), parts="partitions")


def square_verdict(release: Release, errors: Sequence[float], unit: str = "") -> Verdict:
    """Grade zoom levels, by the rule of `verdict`, for the equal squares into which each cuts the domain, whatever the partitions are.

    Args:
        release: of points; only its released total is used.
        errors: (n,) errors of a square at zoom levels 0 to n - 1, in records: expected (`expected_error`), or measured on public data.
        unit: what is counted, in the plural; "records" without it.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy(*np.random.default_rng(1).uniform(0, 16, (2, 1000)), domain=domain)
    >>> release = dv.Quadtree(height=3).release(points, dv.PureBudget(0.2), dv.Entropy.seeded(1))
    >>> square_verdict(release, [10, 20, 30, 40]).headline
    'Levels 0 and 1 are usable; level 2 is rough; level 3 is mostly noise.'
    """
    total = float(release.count[0] if release.unbiased is None else release.unbiased[0])
    levels = tuple(_grade_level(zoom, f"level {zoom}", 4**zoom, total, error) for zoom, error in enumerate(errors))
    return Verdict(levels=levels, counted=unit or counted_noun(release), parts="squares")


def describe_verdict(release: Release | FlowRelease) -> dict[str, Any]:
    """Describe the verdict in the form of the manifest: sentences, rule, and the levels of each grade."""
    result = verdict(release)
    grade_names = {"usable": USABLE, "rough": ROUGH, "mostly_noise": NOISE}
    levels = {name: [level.level for level in result.levels if level.grade == grade] for name, grade in grade_names.items()}
    return {"headline": result.headline, "detail": result.detail, "rule": result.rule, **levels}


def compute_needed_total(parts: int, stddev: float) -> float:
    """Compute the smallest total with which a level is usable.

    Args:
        parts: the number of its partitions or pairs.
        stddev: the mean standard deviation of its numbers.
    """
    return parts * stddev / MOST_USABLE


def _grade_point_level(release: Release, level: int) -> LevelVerdict:
    """Grade a level of a release of points."""
    nodes = release.nodes(level)
    count = release.count if release.unbiased is None else release.unbiased
    return _grade_level(level, f"level {level}", len(nodes), float(count[0]), float(np.mean(release.stddev[nodes])))


def _grade_trip_level(release: FlowRelease, level: int, *, lacking: bool) -> LevelVerdict:
    """Grade a level of a release of trips; `lacking` says that sums lack dropped pairs, so that they are rough at best."""
    stage, total = release.stages[2 * level], float(release.stages[0].count.sum())
    stddev, known = release.stddev(2 * level), math.isfinite(stage.variance)
    numbers = stage.measured if known and stage.measured else release.tree.size(2 * level) if release.every_pair else len(stage.count)
    mean = math.sqrt(stage.variance) if known else float(np.mean(stddev)) if len(stddev) else math.inf
    graded = _grade_level(level, release.tree.title(2 * level), max(numbers, 1), total, mean)
    return replace(graded, grade=ROUGH) if lacking and level < release.depth and graded.grade == USABLE else graded


def _smallest_released(release: FlowRelease) -> int | None:
    """Find the smallest released number of the last stage; None unless coarser stages are sums that lack dropped small numbers."""
    lacking = not release.every_pair and not any(math.isfinite(stage.variance) for stage in release.stages[:-1])
    return int(release.stages[-1].count.min()) if lacking and len(release.stages[-1].count) else None


def _compute_rest_percent(release: FlowRelease) -> float | None:
    """Compute the percentage of all trips that are in no listed pair; None without a list or without trips."""
    total = int(release.stages[0].count.sum())
    return None if release.across is None or total <= 0 else 100.0 * int(release.rest(0, 0).count.sum()) / total


def _grade_level(level: int, name: str, parts: int, total: float, stddev: float) -> LevelVerdict:
    """Grade a level of `parts` numbers by the rule of `verdict`."""
    mean = max(total, 0.0) / parts
    ratio = 0.0 if stddev == 0 else stddev / mean if mean > 0 else math.inf
    grade = USABLE if ratio <= MOST_USABLE else ROUGH if ratio <= MOST_ROUGH else NOISE
    return LevelVerdict(level=level, name=name, parts=parts, mean=mean, stddev=stddev, grade=grade)


def _name_levels(levels: list[LevelVerdict]) -> str:
    """Write the names of consecutive levels, such as "levels 0 to 2", or "all to all down to county to county"."""
    first, last = levels[0], levels[-1]
    if first is last:
        return first.name
    if first.name != f"level {first.level}":
        return f"{first.name} {'and' if last.level == first.level + 1 else 'down to'} {last.name}"
    return f"levels {first.level} {'and' if last.level == first.level + 1 else 'to'} {last.level}"


def _capitalise(text: str) -> str:
    """Begin a text with a capital letter; names in it keep theirs."""
    return text[:1].upper() + text[1:]
