"""A study: mechanisms x settings x budgets x workloads x repeats on public data, as one frozen object.

Workloads of points:
    random: boxes whose sides lie on random lattice lines.
    small, medium, large: boxes at random positions, with a thousandth, a hundredth and a tenth of the domain's area.
    zooms: all equal blocks of each zoom level, as rows "zoom 0", "zoom 1", ...
    sizes: the blocks of one zoom level, grouped by their true count, as rows "size 0", "size 1-9", "size 10-99", ...
Workloads of trips:
    the name of a level: the pairs of regions of this level that are released or have true trips.
    levels: every level.
    sizes: the pairs of the finest level, grouped by their true count.
Workloads of areas:
    the name of a level: the regions of this level.
    levels: every level.

Rows of points also count the blocks (or boxes) that are wrongly released as occupied or as empty, see `presence_errors`. Rows of trips
also have the largest error of a pair and the rates of false pairs, see `trip_figures`.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpviz.arrays import Floats, Integers, Mask
from dpviz.cards import HtmlCard
from dpviz.data.areas import AreaCounts
from dpviz.data.points import PointCounts
from dpviz.data.trips import TripCounts
from dpviz.errors import BudgetError, InputError, RefusedError, SettingError, did_you_mean
from dpviz.evaluation.metrics import error_figures, presence_errors, true_answers
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.families import FAMILIES, Family, family_of_counts
from dpviz.mechanisms import AnyMechanism, Mechanism
from dpviz.privacy.budget import ApproxBudget, PureBudget, exact
from dpviz.privacy.entropy import Entropy
from dpviz.release.older import first_names
from dpviz.space.workloads import area_share, random_rectangles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from dpviz.release.area_release import AreaRelease
    from dpviz.release.point_release import PointRelease
    from dpviz.release.trip_release import TripRelease
    from dpviz.space.regions import Regions

Row = dict[str, Any]

ZOOMS, SIZES, LEVELS = "zooms", "sizes", "levels"
SHARES = {"small": 0.001, "medium": 0.01, "large": 0.1}
POINT_WORKLOADS = ("random", *SHARES, ZOOMS, SIZES)
FINEST_ZOOM, SIZES_ZOOM = 7, 6
_LARGEST_POWER = 15


class Questions(ABC):
    """The questions that every release of a study answers, with the true answers. Each family has its own class: `Family.questions`."""

    arrays: ClassVar[tuple[str, ...]]
    """Names of the attributes of the data that hold the counts and their positions."""

    @staticmethod
    @abstractmethod
    def check_workloads(data: Any, workloads: tuple[str, ...]) -> tuple[str, ...]:
        """Return the workloads, or the default one if there are none; raises `SettingError` for unknown or repeated names."""

    @staticmethod
    @abstractmethod
    def frame_facts(data: Any) -> tuple[object, ...]:
        """Return plain values that identify the public frame, the protected unit and the bound per unit."""

    @classmethod
    @abstractmethod
    def of(cls, data: Any, workloads: tuple[str, ...], queries: int, seed: int) -> Self:
        """Make the questions of some workloads, with `queries` boxes for each random workload."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the rows that each run gives."""

    @abstractmethod
    def rows(self, release: Any, *, parts: bool) -> list[Row]:
        """Make one row per name: workload, questions (how many), the four metrics of `error_figures`, and others of this kind of data.

        Args:
            release: of any mechanism of the family.
            parts: whether to divide the errors into noise and uniformity, where this takes extra work.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class PointQuestions(Questions):
    """Boxes and blocks, with the true counts in them.

    Attributes:
        points: the data.
        boxes: (q, 4) the boxes of all lists, one list after the other: west, south, east, north in the domain's CRS.
        lists: the slice of `boxes` that each list takes, by name.
        blocks: a zoom level and a mask of its blocks (None for all blocks), by name; blocks without an open cell are left out.
        truth: the true counts of each entry of `lists` and of `blocks`, by name: one count per box, or per block.
    """

    arrays: ClassVar[tuple[str, ...]] = ("column", "row", "count")

    points: PointCounts
    boxes: Floats
    lists: dict[str, slice]
    blocks: dict[str, tuple[int, Mask | None]]
    truth: dict[str, Integers]

    @staticmethod
    def check_workloads(points: PointCounts, workloads: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG004
        """Return the workloads, or "random" if there are none; raises `SettingError` for unknown or repeated names."""
        return _check_known(workloads or POINT_WORKLOADS[:1], POINT_WORKLOADS)

    @staticmethod
    def frame_facts(points: PointCounts) -> tuple[object, ...]:
        """Return the bound per unit, the unit and the domain, as plain values."""
        domain, mask = points.domain, points.domain.mask
        facts = ("points", points.contributions, points.unit, domain.bounds, str(domain.crs), domain.order)
        return facts if mask is None else (*facts, mask.order, mask.runs)

    @classmethod
    def of(cls, points: PointCounts, workloads: tuple[str, ...], queries: int, seed: int) -> PointQuestions:
        """Make the questions of some workloads, with `queries` boxes for each workload of random boxes."""
        make: dict[str, Callable[..., Floats]] = {name: partial(area_share, share=share) for name, share in SHARES.items()}
        make["random"] = random_rectangles
        boxes_by_name = {name: make[name](points.domain, count=queries, seed=seed) for name in workloads if name in make}
        boxes = np.concatenate([np.zeros((0, 4)), *boxes_by_name.values()])
        lists = {name: slice(number * queries, (number + 1) * queries) for number, name in enumerate(boxes_by_name)}
        box_truth = true_answers(points, boxes)
        blocks: dict[str, tuple[int, Mask | None]] = {}
        order, mask = points.domain.order, points.domain.mask
        if ZOOMS in workloads:
            zooms = range(min(order, FINEST_ZOOM) + 1)
            blocks = {f"zoom {zoom}": (zoom, None if mask is None else mask.blocks(zoom).ravel()) for zoom in zooms}
        if SIZES in workloads:
            zoom = min(order, SIZES_ZOOM)
            is_open = points.domain.open_blocks(zoom).ravel()
            blocks |= {name: (zoom, group & is_open) for name, group in group_by_size(points.blocks(zoom).ravel())}
        truth = {name: box_truth[part] for name, part in lists.items()}
        truth |= {name: _select_blocks(points.blocks, zoom, mask) for name, (zoom, mask) in blocks.items()}
        return cls(points=points, boxes=boxes, lists=lists, blocks=blocks, truth=truth)

    def names(self) -> list[str]:
        """Return the names of the rows that each run gives."""
        return list(self.truth)

    def rows(self, release: PointRelease, *, parts: bool) -> list[Row]:
        """Compute the four metrics of every workload, its false positives and negatives (questions), and the number of partitions.

        With `parts`, a row also has the mean absolute errors from noise and from uniformity, in records. These two parts of an error can
        cancel each other.
        """
        total, estimates = int(self.points.count.sum()), self._answers(release)
        without_noise = self._answers(with_true_counts(release, self.points)) if parts else {}
        rows = []
        for name, truth in self.truth.items():
            row = {"workload": name, "questions": len(truth), **error_figures(estimates[name], truth, total)}
            row |= presence_errors(estimates[name], truth)
            if parts:
                row["noise"] = float(np.abs(estimates[name] - without_noise[name]).mean())
                row["uniformity"] = float(np.abs(without_noise[name] - truth).mean())
            rows.append(row | {"partitions": len(release.tree.leaves)})
        return rows

    def _answers(self, release: PointRelease) -> dict[str, Floats]:
        boxes = release.answer(self.boxes) if len(self.boxes) else np.zeros(0)
        blocks_by_zoom = {zoom: release.blocks(zoom) for zoom in {zoom for zoom, _ in self.blocks.values()}}
        answers = {name: boxes[part] for name, part in self.lists.items()}
        return answers | {name: _select_blocks(blocks_by_zoom.__getitem__, zoom, mask) for name, (zoom, mask) in self.blocks.items()}


def with_true_counts(release: PointRelease, points: PointCounts) -> PointRelease:
    """Return the release with the true counts of its partitions; its answers err only by the assumption inside partitions."""
    return replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(np.float64))


@dataclass(frozen=True, kw_only=True, eq=False)
class TripQuestions(Questions):
    """Levels of regions, between which trips are compared.

    Attributes:
        trips: the data.
        levels: numbers of the levels by name, 1 for the coarsest.
        sizes: names of the groups into which true counts divide the pairs of the finest level.
    """

    arrays: ClassVar[tuple[str, ...]] = ("origin", "destination", "count")

    trips: TripCounts
    levels: dict[str, int]
    sizes: tuple[str, ...]

    @staticmethod
    def check_workloads(trips: TripCounts, workloads: tuple[str, ...]) -> tuple[str, ...]:
        """Return the workloads, or the finest level if there are none; raises `SettingError` for unknown or repeated names."""
        levels = trips.regions.levels
        return _check_known(workloads or levels[-1:], (*levels, LEVELS, SIZES))

    @staticmethod
    def frame_facts(trips: TripCounts) -> tuple[object, ...]:
        """Return the bound per unit, the unit, whether everybody has exactly this many trips, and the names of the finest regions."""
        ids = ([*side.ids[-1]] for side in (trips.regions, trips.ends))
        return ("trips", trips.contributions, trips.unit, trips.exactly, *ids)

    @classmethod
    def of(cls, trips: TripCounts, workloads: tuple[str, ...], queries: int, seed: int) -> TripQuestions:  # noqa: ARG003
        """Make the questions of some workloads; none of them are random, so `queries` and `seed` have no effect."""
        levels = _chosen_levels(trips.regions, workloads)
        truth = np.append(trips.count, 0)
        sizes = tuple(name for name, _ in group_by_size(truth)) if SIZES in workloads and SIZES not in levels else ()
        return cls(trips=trips, levels=levels, sizes=sizes)

    def names(self) -> list[str]:
        """Return the names of the rows that each run gives."""
        return [*self.levels, *self.sizes]

    def rows(self, release: TripRelease, *, parts: bool) -> list[Row]:  # noqa: ARG002
        """Compute the metrics of every workload (see `trip_figures`); `parts` has no effect, since both parts of the error are included.

        The max_error of a level is that of all its pairs, also of those without true trips that are released as less than 0.
        """
        evaluation, finest = evaluate_trips(release, self.trips), self.trips.regions.depth
        tables = {level: evaluation.compare(level) for level in {*self.levels.values(), *([finest] if self.sizes else ())}}
        rows: list[Row] = [
            {"workload": name} | trip_figures(tables[level], self.trips) | {"max_error": evaluation.largest_error(2 * level)}
            for name, level in self.levels.items()
        ]
        if self.sizes:
            group = dict(group_by_size(tables[finest]["true"].to_numpy()))
            no_pair = np.zeros(len(tables[finest]), bool)
            groups = {name: tables[finest][group.get(name, no_pair)] for name in self.sizes}
            rows += [{"workload": name} | trip_figures(pairs, self.trips) for name, pairs in groups.items()]
        return rows


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaQuestions(Questions):
    """Levels of regions, whose counts are compared.

    Attributes:
        areas: the data.
        levels: numbers of the levels by name, 1 for the coarsest.
        truth: g + 1 arrays of true counts, the whole first.
    """

    arrays: ClassVar[tuple[str, ...]] = ("leaf", "count")

    areas: AreaCounts
    levels: dict[str, int]
    truth: list[Integers]

    @staticmethod
    def check_workloads(areas: AreaCounts, workloads: tuple[str, ...]) -> tuple[str, ...]:
        """Return the workloads, or the finest level if there are none; raises `SettingError` for unknown or repeated names."""
        levels = areas.regions.levels
        return _check_known(workloads or levels[-1:], (*levels, LEVELS))

    @staticmethod
    def frame_facts(areas: AreaCounts) -> tuple[object, ...]:
        """Return the bound per unit, the unit, and the names of the finest regions."""
        return ("areas", areas.contributions, areas.unit, [*areas.regions.ids[-1]])

    @classmethod
    def of(cls, areas: AreaCounts, workloads: tuple[str, ...], queries: int, seed: int) -> AreaQuestions:  # noqa: ARG003
        """Make the questions of some workloads; none of them are random, so `queries` and `seed` have no effect."""
        return cls(areas=areas, levels=_chosen_levels(areas.regions, workloads), truth=areas.level_counts())

    def names(self) -> list[str]:
        """Return the names of the rows that each run gives."""
        return list(self.levels)

    def rows(self, release: AreaRelease, *, parts: bool) -> list[Row]:  # noqa: ARG002
        """Compute the four metrics of every level, its false positives and negatives, and its largest error; `parts` has no effect."""
        rows = []
        for name, level in self.levels.items():
            truth, count = self.truth[level], release.count[release.nodes(level)]
            row = {"workload": name, "questions": len(truth), **error_figures(count, truth, int(self.areas.count.sum()))}
            rows.append(row | presence_errors(count, truth) | {"max_error": float(np.abs(count - truth).max())})
        return rows


def trip_figures(pairs: pd.DataFrame, trips: TripCounts) -> Row:
    """Measure the errors of pairs of regions that are released or have true trips.

    Args:
        pairs: rows of `TripEvaluation.compare`, all or some.
        trips: the true trips.

    Returns:
        questions (how many pairs), the four metrics of `error_figures`, noise (absolute error of released pairs, in trips per pair),
        suppression (trips of pairs that are not released, in trips per pair; noise and suppression add up to mae), max_error (trips),
        false_discovery (percent of released pairs without true trips), false_negative (percent of pairs with true trips that are not
        released), pairs (number of released pairs).
    """
    error, true = pairs["error"].abs().to_numpy(), pairs["true"].to_numpy()
    missed, false = ((pairs["kind"] == kind).to_numpy() for kind in ("false negative", "false positive"))
    released, with_trips = int((~missed).sum()), int((~false).sum())
    number = max(len(pairs), 1)
    return {
        "questions": len(pairs),
        **error_figures(pairs["released"].to_numpy(), true, int(trips.count.sum())),
        "noise": float(error[~missed].sum()) / number,
        "suppression": float(error[missed].sum()) / number,
        "max_error": int(error.max(initial=0)),
        "false_discovery": 100.0 * int(false.sum()) / max(released, 1),
        "false_negative": 100.0 * int(missed.sum()) / max(with_trips, 1),
        "pairs": released,
    }


def group_by_size(truth: Integers) -> Iterator[tuple[str, Mask]]:
    """Group true counts by size: 0, 1-9, 10-99, and so on; yield the name and the members' mask of each group that occurs.

    >>> [name for name, _ in group_by_size(np.array([0, 3, 250]))]
    ['size 0', 'size 1-9', 'size 100-999']
    """
    edges = np.array([0, *(10**power for power in range(_LARGEST_POWER + 1))])
    group = np.searchsorted(edges, truth, side="right") - 1
    for power in np.unique(group):
        yield ("size 0" if power == 0 else f"size {edges[power]}-{10 * edges[power] - 1}"), group == power


def _check_known(workloads: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    for name in workloads:
        if name not in known:
            meant = did_you_mean(str(name), known)
            raise SettingError(f"There is no workload {str(name)[:40]!r} for these data; there are {', '.join(known)}.{meant}")
    if len(set(workloads)) < len(workloads):
        raise SettingError("The same workload is listed twice; remove one.")
    return workloads


def _chosen_levels(regions: Regions, workloads: tuple[str, ...]) -> dict[str, int]:
    return {name: number for number, name in enumerate(regions.levels, 1) if name in workloads or LEVELS in workloads}


def _select_blocks(counts: Callable[[int], Any], zoom: int, mask: Mask | None) -> Any:
    blocks = counts(zoom).ravel()
    return blocks if mask is None else blocks[mask]


def accounting_of(mechanism: AnyMechanism, data: Any, *, gaussian: bool = False) -> str:
    """Return how a mechanism finds the noise that (epsilon, delta) asks for on these data, so that like can be compared with like.

    Args:
        mechanism: the mechanism with its settings.
        data: of its family.
        gaussian: whether it gets (epsilon, delta) where the kind of the budget decides the noise.

    Returns:
        "exact", "tight" or "paper", as the mechanism's setting `accounting` says, or "exact" for Gaussian noise without this setting;
        "tight" in place of "exact" for several trips or records per person, as in releases. "" for other mechanisms, and for epsilon alone.

    >>> import dpviz as dv
    >>> trips = dv.load_sample("us_flights")
    >>> accounting_of(dv.FittedTree(), trips), accounting_of(dv.TopDown(), trips), accounting_of(dv.Quadtree(), trips)
    ('exact', 'tight', '')
    """
    if mechanism.noise_by_budget and not gaussian:
        return ""
    accounting = mechanism.chosen().get("accounting", "exact" if gaussian else "")
    return "tight" if accounting == "exact" and data.contributions > 1 else str(accounting)


MOST_RUNS = 100_000
LARGEST_SEED = 2**63 - 1
NOT_PUBLIC = (
    "A comparison shows errors against the truth, which would reveal private data: it takes samples and made-up data, or data that you"
    " declare to be already public with public=True."
)
_NO_DATA = (
    "data must be counted points, trips or areas, as from read_points, read_trips, read_areas or load_sample; not {kind}. A release"
    " is no data: it is what a study makes."
)
_EXAMPLE = '{"tree": dpviz.Quadtree()}'


@dataclass(frozen=True, kw_only=True)
class Run:
    """One release that a study makes. Its noise follows from the study's seed and the run's id alone, not from other runs.

    Attributes:
        label: the study's name for the mechanism with its settings.
        mechanism: the mechanism with its settings.
        budget: the budget that the mechanism gets.
        repeat: number of the repeat, 1 for the first.
    """

    label: str
    mechanism: AnyMechanism
    budget: PureBudget | ApproxBudget
    repeat: int

    @property
    def delta(self) -> Fraction:
        """Delta of the budget; 0 for a pure budget."""
        return self.budget.delta if isinstance(self.budget, ApproxBudget) else Fraction(0)

    @property
    def id(self) -> str:
        """Digest of mechanism, settings, budget and repeat, but not of the label. It is the same whatever settings are called."""
        amounts = [str(self.budget.epsilon), str(self.delta)]
        text = json.dumps([*first_names(self.mechanism.key, self.mechanism.chosen()), amounts, self.repeat], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def settings(self) -> str:
        """Settings of the mechanism that differ from the defaults, as JSON."""
        return json.dumps(self.mechanism.non_defaults())


@dataclass(frozen=True, kw_only=True, eq=False)
class Study(HtmlCard):
    """A comparison of mechanisms and budgets on public data. Its releases are simulations, never for publication.

    Attributes:
        data: samples, made-up data, or data that are declared to be already public, because errors against the truth are shown.
        public: the declaration that the data are public; must be True.
        mechanisms: mechanisms with their settings, by label.
        epsilons: epsilons of the budgets.
        delta: delta of the budgets of mechanisms that need one, at least 0 and below 1; None if no mechanism does.
        gaussian: labels of mechanisms that get (epsilon, delta), and so Gaussian noise, though epsilon alone would do. A mechanism can be
            listed twice, under two labels, to compare both noises.
        repeats: runs per mechanism and epsilon, at least 1.
        seed: a whole number of at least 0; the same seed gives the same table, except for the seconds that runs take.
        queries: number of boxes in each list of random boxes, for points; at least 1.
        workloads: the questions that releases answer, see `dpviz.evaluation.study`. By default these are random boxes (points), or the
            trips between the finest regions (trips).
        parts: whether to divide the errors of points into noise and uniformity, for which every release answers all questions a second
            time. The errors of trips are always divided into noise and suppression, at no cost.

    Raises:
        RefusedError: data that are not declared public.
        InputError: data that are neither counted points, trips nor areas.
        SettingError: nothing to compare, an unknown workload, too many runs, the same mechanism with the same settings twice, numbers out
            of range, something else where a list is needed, or mechanisms that are classes or are for another kind of data.
        BudgetError: an epsilon or delta out of range, or no delta where one is needed, or a label under `gaussian` whose mechanism has
            one kind of noise.
        DomainError: a mechanism that does not fit the frame.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> points = dv.PointCounts.from_xy([1.5] * 40, [2.5] * 40, domain=domain)
    >>> mechanisms = {"quadtree": dv.Quadtree(height=2), "grid": dv.UniformGrid(side=4)}
    >>> study = dv.Study(data=points, public=True, mechanisms=mechanisms, epsilons=(0.5, 1), repeats=2, queries=20)
    >>> len(study), study.questions.names()
    (8, ['random'])
    >>> table = dv.tidy(study, dv.compare(study))
    >>> table.groupby(["label", "epsilon"])["n3"].size().to_dict()
    {('grid', 0.5): 2, ('grid', 1.0): 2, ('quadtree', 0.5): 2, ('quadtree', 1.0): 2}

    Laplace against Gaussian noise at equal (epsilon, delta):

    >>> mechanisms = {"Laplace": dv.Quadtree(height=2), "Gaussian": dv.Quadtree(height=2)}
    >>> study = dv.Study(data=points, public=True, mechanisms=mechanisms, gaussian=("Gaussian",), epsilons=(1,), delta="1e-6")
    >>> [str(run.budget) for run in study.runs()]
    ['epsilon 1', 'epsilon 1, delta 1e-06']
    """

    data: PointCounts | TripCounts | AreaCounts
    public: bool = False
    mechanisms: dict[str, AnyMechanism]
    epsilons: tuple[Fraction, ...]
    delta: Fraction | None = None
    gaussian: tuple[str, ...] = ()
    repeats: int = 1
    seed: int = 0
    queries: int = 500
    workloads: tuple[str, ...] = ()
    parts: bool = False

    def __post_init__(self) -> None:
        if self.public is not True:
            raise RefusedError(NOT_PUBLIC)
        family = family_of_counts(self.data)
        if family is None:
            raise InputError(_NO_DATA.format(kind=type(self.data).__name__[:40]))
        _check_mechanism_dict(self.mechanisms, family)
        for name, low, high in (("repeats", 1, MOST_RUNS), ("queries", 1, 10**6), ("seed", 0, LARGEST_SEED)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise SettingError(f"{name} must be a whole number from {low:,} to {high:,}.")
        epsilons = _as_tuple(self.epsilons, "epsilons", "(0.5, 1)")
        object.__setattr__(self, "epsilons", tuple(exact(epsilon, "epsilon") for epsilon in epsilons))
        object.__setattr__(self, "workloads", _as_tuple(self.workloads, "workloads", '("random",)'))
        object.__setattr__(self, "gaussian", _as_tuple(self.gaussian, "gaussian", '("tree",)'))
        for label in self.gaussian:
            self._check_gaussian(label)
        if self.delta is not None:
            object.__setattr__(self, "delta", ApproxBudget(1, self.delta).delta)
        if not self.mechanisms or not self.epsilons:
            raise SettingError("A comparison needs at least one mechanism and one epsilon.")
        if len(self) > MOST_RUNS:
            raise SettingError(
                f"These are {len(self):,} runs; at most {MOST_RUNS:,} are made. Leave some settings, epsilons or repeats out."
            )
        self._check_mechanisms()
        object.__setattr__(self, "workloads", family.questions.check_workloads(self.data, self.workloads))

    def _check_gaussian(self, label: str) -> None:
        if label not in self.mechanisms:
            known = ", ".join(self.mechanisms)
            raise SettingError(f"gaussian names {str(label)[:80]!r}, which is no label of a mechanism; there are {known}.")
        if not self.mechanisms[label].noise_by_budget:
            raise BudgetError(f"{label[:80]}: {self.mechanisms[label].title} has one kind of noise: leave it out of gaussian.")

    def _check_mechanisms(self) -> None:
        ids = [run.id for run in self.runs() if run.repeat == 1]
        if len(set(ids)) < len(ids):
            raise SettingError("The same mechanism with the same settings, or the same epsilon, is listed twice; remove one.")
        for mechanism in self.mechanisms.values():
            mechanism.check_data(self.data)

    def __len__(self) -> int:
        return len(self.mechanisms) * len(self.epsilons) * self.repeats

    def runs(self) -> list[Run]:
        """List all runs: first repeats of all mechanisms and epsilons, then second ones, so that a study stopped early has some of each."""
        return [
            Run(label=label, mechanism=mechanism, budget=self._budget(label, mechanism, epsilon), repeat=repeat)
            for repeat in range(1, self.repeats + 1)
            for label, mechanism in self.mechanisms.items()
            for epsilon in self.epsilons
        ]

    def _budget(self, label: str, mechanism: AnyMechanism, epsilon: Fraction) -> PureBudget | ApproxBudget:
        if not mechanism.needs_delta and label not in self.gaussian:
            return PureBudget(epsilon)
        if self.delta is None:
            raise BudgetError(f"{mechanism.title} needs a delta: give one beside the epsilons.")
        return ApproxBudget(epsilon, self.delta)

    def accounting(self, label: str) -> str:
        """Return how a mechanism of this study finds the noise for (epsilon, delta), see `accounting_of`."""
        return accounting_of(self.mechanisms[label], self.data, gaussian=label in self.gaussian)

    @property
    def _questions_class(self) -> type[Questions]:
        return FAMILIES[self.data.family].questions  # type: ignore[no-any-return]

    @cached_property
    def questions(self) -> Questions:
        """Questions that every release answers, with the true answers."""
        return self._questions_class.of(self.data, self.workloads, self.queries, self.seed)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of what all rows of one table have in common: data, seed, queries and the version of dpviz, but not the mechanisms."""
        facts = (self._questions_class.frame_facts(self.data), self.seed, self.queries, self.parts, version_of("dpviz"))
        digest = hashlib.blake2b(repr(facts).encode(), digest_size=8)
        for name in self._questions_class.arrays:
            digest.update(np.ascontiguousarray(getattr(self.data, name)).tobytes())
        return digest.hexdigest()

    def release(self, run: Run) -> Any:
        """Make the release of a run; the same run always gives the same release."""
        text = hashlib.blake2b(f"{self.seed}/{run.id}".encode(), digest_size=16).digest()
        return run.mechanism.release(self.data, run.budget, Entropy.seeded(int.from_bytes(text)))


def _as_tuple(values: Any, name: str, example: str) -> tuple[Any, ...]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise SettingError(f"{name} must be a list or tuple, such as {example}.")
    return tuple(values)


def _check_mechanism_dict(mechanisms: object, family: Family) -> None:
    """Raise an error unless `mechanisms` is a dict of mechanisms of the family by label."""
    if not isinstance(mechanisms, Mapping) or not all(isinstance(label, str) for label in mechanisms):
        raise SettingError(f"mechanisms must be a dict of built mechanisms by label, such as {_EXAMPLE}.")
    for label, mechanism in mechanisms.items():
        entry = f"mechanisms, {label[:80]!r}"
        if isinstance(mechanism, type):
            raise SettingError(f"{entry}: give a built mechanism, {mechanism.__name__[:40]}(), not its class.")
        if not isinstance(mechanism, Mechanism):
            raise SettingError(f"{entry}: give a built mechanism, such as {_EXAMPLE}, not {type(mechanism).__name__[:40]}.")
        if mechanism.family != family.name:
            raise SettingError(f"{entry}: {mechanism.title} is a mechanism for {mechanism.family}, and the data are {family.name}.")


def version_of(package: str) -> str:
    """Return the installed version of a package, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
