"""A family of its own, whole: accidents along a road, counted in segments that halve again and again. No file of dpviz knows of it."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from dpviz.app.pages.compare.kinds import Compared
from dpviz.arrays import Floats, Places
from dpviz.data.counts import Counts
from dpviz.errors import DomainError, InputError, SettingError
from dpviz.evaluation.metrics import error_figures
from dpviz.evaluation.study import LEVELS, Questions
from dpviz.families import Family, register_family
from dpviz.mechanisms.audit import Added
from dpviz.mechanisms.base import LevelError, Mechanism, Share, setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.consistency import Spread, least_squares
from dpviz.publishing.simulated_errors import USEFUL, LevelOutlook, OutlookKind
from dpviz.release.columns import COUNT_COLUMNS, JOINT_COLUMNS
from dpviz.release.count_release import CountRelease
from dpviz.release.facts import Contents
from dpviz.release.tables import LEVELS as LEVELS_TABLE
from dpviz.release.tables import Layout, make_table, plan_csv, plan_parquet, read_base
from dpviz.release.verdict import judge_levels
from dpviz.samples.points import SampleInfo
from dpviz.space.hierarchy import Hierarchy
from dpviz.view.report_kinds import ReportKind
from dpviz.view.report_numbers import make_example


@dataclass(frozen=True)
class Road:
    """The public frame: a road of 2**order equal segments."""

    name: str
    order: int

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The whole road, its halves, their halves, down to the segments."""
        return Hierarchy.of_levels(tuple(np.arange(2**depth) // 2 for depth in range(1, self.order + 1)))


@dataclass(frozen=True, kw_only=True, eq=False)
class RoadCounts(Counts):
    """Accidents per segment with any. PRIVATE."""

    family: ClassVar[str] = "roads"
    none_inside: ClassVar[str] = "No accident is on the road."
    places: ClassVar[tuple[str, ...]] = ("segment",)

    road: Road
    segment: Places

    def _check_places(self):
        if self.segment.min() < 0 or self.segment.max() >= 2**self.road.order or (np.diff(self.segment) <= 0).any():
            raise InputError("Segments must be of the road, distinct and in order.")

    @classmethod
    def of_segments(cls, road, counts):
        """Make counts of (2**order,) accidents per segment."""
        occupied = np.flatnonzero(counts)
        return cls(road=road, segment=occupied.astype(np.int32), count=np.asarray(counts)[occupied])

    @property
    def frame(self):
        return self.road

    @property
    def level_range(self):
        return range(self.road.order + 1)

    @property
    def leaves(self):
        return 2**self.road.order

    def places_of(self, leaves):
        return {"segment": leaves.astype(np.int32)}

    def identity(self):
        return "roads", self.road.name, self.road.order

    @classmethod
    def empty_in(cls, frame, contributions=1, *, exactly=False):
        empty = cls.of_segments(frame, np.zeros(2**frame.order, np.int64)) if isinstance(frame, Road) else None
        return empty if empty is None or contributions == 1 else empty.of_persons(contributions, exactly=exactly)

    def node_counts(self):
        """(n,) true counts of all parts of the road. PRIVATE."""
        hierarchy = self.road.hierarchy
        counts = np.zeros(len(hierarchy), np.int64)
        counts[hierarchy.leaves[self.segment]] = self.count
        return hierarchy.sum_up(counts)


@dataclass(frozen=True, kw_only=True, eq=False)
class RoadRelease(CountRelease):
    """Noisy counts of all parts of a road. PUBLIC."""

    family: ClassVar[str] = "roads"

    road: Road
    spread: Spread

    @property
    def frame(self) -> Road:
        return self.road

    @property
    def hierarchy(self) -> Hierarchy:
        return self.road.hierarchy

    def level_number(self, level: Any) -> int:
        if level is not None and level not in range(self.road.order + 1):
            raise DomainError(f"The road has levels 0 to {self.road.order}.")
        return self.road.order if level is None else int(level)

    def name_level(self, level: int) -> str:
        return f"{2**level} parts"

    def to_frame(self, level: Any = None) -> pd.DataFrame:
        nodes = self.nodes(level)
        return pd.DataFrame({"part": np.arange(len(nodes)), **self.node_columns(nodes), "status": self.status})


def _of_segments(road: Road, number: int, leaves: tuple[int, ...], origins: tuple[int, ...]) -> Added[RoadCounts]:
    """Made-up neighbours for audits: accidents of one person on some segments, beside a number on each."""
    beside = np.full(2**road.order, number)
    frame = f"{len(beside)} segments, beside {number} on each"
    return Added(frame=frame, make=partial(RoadCounts.of_segments, road), beside=beside, leaves=leaves, origins=origins)


@dataclass(frozen=True, kw_only=True)
class RoadMechanism(Mechanism[RoadCounts, Road, RoadRelease]):
    """Base of every mechanism of roads."""

    family: ClassVar[str] = "roads"
    takes: ClassVar[tuple[type[Any], str]] = RoadCounts, "A mechanism of roads takes RoadCounts: see RoadCounts.of_segments"
    audit_inputs: ClassVar[tuple[Added[Any], ...]] = (
        _of_segments(Road("A", 1), 5, (0,), (1,)),
        _of_segments(Road("B", 2), 0, (3, 0), (0, 0)),
    )

    def check_data(self, data):
        self.check_type(data)
        self.check(data.road)

    def depends_on_data(self, release):
        return False

    def level_errors(self, release):
        levels = range(release.road.order + 1)
        return [LevelError.of_noise(level, release.name_level(level), release.stddev(level), release.noise) for level in levels]


@dataclass(frozen=True, kw_only=True)
class Halving(RoadMechanism):
    """Laplace noise on every part of the road.

    Protects: adding or removing one accident. Each level's parts are disjoint, so that one accident changes one count of each level by 1,
    and the parts of the budget add up.

    Source:
        Made up, for tests.

    Deviations:
        None.
    """

    key: ClassVar[str] = "halving"
    title: ClassVar[str] = "Halving"
    summary: ClassVar[str] = "Counts the road, its halves and theirs."

    finest: float = setting(0.5, "Share of the segments", low=0.1, high=0.9, help="Part of the budget for the segments.")

    def shares(self, road):
        above = [Share(label=f"{2**level} parts", share=(1 - self.finest) / road.order) for level in range(road.order)]
        return [*above, Share(label="segments", share=self.finest)]

    def release(self, counts, budget, entropy):
        run, road = Run.of(self, counts, budget, entropy), counts.road
        amounts = run.split([share.share for share in self.shares(road)])
        noisy, variance = run.measure_levels(road.hierarchy, amounts, counts.node_counts(), purpose=lambda level: f"{2**level} parts")
        count, spread = least_squares(road.hierarchy, noisy, variance)
        facts = self.release_facts(run.receipt(("the road and its segments",)), entropy)
        return RoadRelease(road=road, noisy=noisy, noise_variance=variance, count=count, spread=spread, steps=("least squares",), **facts)


@dataclass(frozen=True, kw_only=True, eq=False)
class RoadQuestions(Questions):
    """How far the counts of a level are off."""

    arrays: ClassVar[tuple[str, ...]] = ("segment", "count")

    counts: RoadCounts
    levels: tuple[str, ...]

    @staticmethod
    def check_workloads(counts, workloads):
        known = tuple(f"{2**level} parts" for level in range(1, counts.road.order + 1))
        if set(workloads) - {*known, LEVELS}:
            raise SettingError("There is no such workload.")
        return known if LEVELS in workloads else workloads or known[-1:]

    @staticmethod
    def frame_facts(counts):
        return ("roads", counts.contributions, counts.unit, counts.road.name, counts.road.order)

    @classmethod
    def of(cls, counts, workloads, queries, seed):
        return cls(counts=counts, levels=workloads)

    def names(self):
        return list(self.levels)

    def rows(self, release, *, parts):
        true, rows = self.counts.node_counts(), []
        for name in self.levels:
            nodes = release.nodes(int(name.split()[0]).bit_length() - 1)
            figures = error_figures(release.count[nodes], true[nodes], int(true[0]))
            rows.append({"workload": name, "questions": len(nodes), **figures})
        return rows


@dataclass(frozen=True)
class RoadEvaluation:
    """Errors of all parts of a road. For the curator."""

    error: Floats


@dataclass(frozen=True, kw_only=True)
class RoadContents(Contents):
    """A release of roads.

    Attributes:
        kind: counts along a road.
        road: its name.
        order: it has 2**order segments.
        root_variance: variance of the count of the whole road.
    """

    kind: Literal["roads"] = "roads"
    road: str
    order: int
    root_variance: float


_SEGMENTS = "segments.parquet"
_ARRAYS = {"count": "count", "noisy": "count_noisy", "noise_variance": "noise_variance"}


def _make_columns(release: RoadRelease) -> pa.Table:
    numbers = release.node_columns(slice(None))
    places = {"part": np.arange(len(release.hierarchy)), "level": release.hierarchy.depth.astype(np.int32)}
    spread = {"noise_variance": release.noise_variance, "share": release.spread.share, "slack": release.spread.slack}
    return make_table(places | numbers | spread)


def _select_segments(release: RoadRelease) -> pa.Table:
    return _make_columns(release).take(pa.array(release.hierarchy.leaves)).select(["part", "count", "count_noisy"])


def _plan(release: RoadRelease, formats: tuple[str, ...]):
    plan = []
    if "geoparquet" in formats:
        plan += [
            plan_parquet(_SEGMENTS, "The segments.", lambda: _select_segments(release)),
            plan_parquet(LEVELS_TABLE, "All parts of the road.", lambda: _make_columns(release)),
        ]
    return [*plan, *([plan_csv("segments.csv", "The segments.", lambda: _select_segments(release))] if "csv" in formats else [])]


def _describe(release: RoadRelease, shared: dict[str, Any]) -> RoadContents:
    return RoadContents(**shared, road=release.road.name, order=release.road.order, root_variance=release.spread.root)


def _rebuild(contents: RoadContents, tables, receipt, steps) -> RoadRelease:
    columns = {name: tables[LEVELS_TABLE].column(name).to_numpy(zero_copy_only=False) for name in tables[LEVELS_TABLE].column_names}
    arrays = {name: np.array(columns[column], np.float64) for name, column in _ARRAYS.items()}
    share, slack = (np.array(columns[name], np.float64) for name in ("share", "slack"))
    spread = Spread(share=share, slack=slack, root=contents.root_variance)
    return RoadRelease(road=Road(contents.road, contents.order), spread=spread, **read_base(contents, receipt, steps), **arrays)


def _describe_columns(release: RoadRelease) -> dict[str, str]:
    own = {"part": "Number of the part, 0 for the whole road.", "level": "How often the road was halved.", "share": "See spread."}
    return own | COUNT_COLUMNS | JOINT_COLUMNS | {"slack": "See spread.", "noise_variance": "Variance of the noise in count_noisy."}


def _make_report_values(release: RoadRelease) -> dict[str, Any]:
    low, high = release.interval(1)
    rows = zip(release.count[release.nodes(1)], release.stddev(1), low, high, strict=True)
    return {
        "examples": [make_example("a half", f"half {number}", *row) for number, row in enumerate(rows, 1)],
        "example_level": 1,
        "finest": 2**release.road.order,
        "negatives": bool((release.count < 0).any()),
        "recentred": False,
    }


def _guess(empty: RoadCounts, guess, rng) -> RoadCounts:
    return RoadCounts.of_segments(empty.road, rng.multinomial(guess.records, np.full(empty.leaves, 1 / empty.leaves)))


def _expect(question, releases, made_up) -> tuple[LevelOutlook, ...]:
    rows = []
    for noise in question.mechanism.level_errors(releases[0]):
        count = made_up.node_counts()[releases[0].nodes(noise.level)]
        stddev = releases[0].stddev(noise.level)
        useful, released = float((stddev <= USEFUL * count).sum()), float(len(count))
        rows.append(LevelOutlook(**vars(noise), average=float(count.mean()), error=noise.stddev, useful=useful, released=released))
    return tuple(rows)


ACCIDENTS = np.array([5, 0, 40, 7, 0, 300, 12, 1])
SAMPLE = RoadCounts.of_segments(Road("Coast road", 3), ACCIDENTS)
SAMPLES = {
    "coast_road": SampleInfo(
        key="coast_road", title="Coast road", description="Accidents.", source="Made up.", licence="None", unit="accidents"
    )
}


class ComparedRoads(Compared):
    """Roads on the Compare page: a sample, and a table in place of maps."""

    samples: ClassVar[dict[str, SampleInfo]] = SAMPLES
    usual_sample: ClassVar[str] = "coast_road"
    places: ClassVar[str] = "parts"

    def load(self, sample):
        return SAMPLE

    def name_levels(self, counts):
        return tuple(f"{2**level} parts" for level in range(1, counts.road.order + 1))

    def show_maps(self, data, releases, link):
        import streamlit as st  # noqa: PLC0415

        for title, release in releases.items():
            st.table(release.to_frame().assign(of=title))


ROADS = Family(
    name="roads",
    noun="accident",
    group="dpviz.road_mechanisms",
    usual=("halving",),
    counts=RoadCounts,
    base=RoadMechanism,
    kinds=(Halving,),
    release=RoadRelease,
    layout=Layout(
        contents=RoadContents,
        describe=_describe,
        columns=_describe_columns,
        main=_SEGMENTS,
        plan=_plan,
        tables=lambda contents: [LEVELS_TABLE],
        rebuild=_rebuild,
        finest=_select_segments,
    ),
    judge=partial(judge_levels, parts="parts"),
    questions=RoadQuestions,
    evaluate=lambda release, counts: RoadEvaluation(release.count - counts.node_counts()),
    report=ReportKind(
        what="accidents", part="part", parts="parts", larger="parts", frame="road", has_ids=False, values=_make_report_values
    ),
    scene=None,
    guess=_guess,
    outlook=OutlookKind(levels=_expect, noise_at=lambda release, level: float(np.sqrt(np.mean(release.stddev(level) ** 2)))),
    page_kind="tests.mechanisms.roads_page:KIND",
    page="tests.mechanisms.roads_page:PAGE",
    compared=ComparedRoads(),
)
"""Accidents along a road."""

register_family(ROADS)
