"""What is compared with what: mechanisms x settings x budgets x workloads x repeats on public data, as one frozen object."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, InputError, RefusedError, SettingError
from dpviz.evaluation.questions import PointQuestions, TripQuestions
from dpviz.mechanisms.base import Settings
from dpviz.privacy.budget import ApproxBudget, PureBudget, exact
from dpviz.privacy.entropy import Entropy

MOST_RUNS = 100_000
LARGEST_SEED = 2**63 - 1
NOT_PUBLIC = (
    "A comparison shows errors against the truth, which would reveal private data: it takes samples and made-up data, or data that you"
    " declare to be already public with public=True."
)
_NO_DATA = (
    "data must be counted points, as from read_points or load_sample, or trips, as from read_flows or load_flow_sample; not {kind}. A"
    " release is no data: it is what a study makes."
)
_BUILT = '{"tree": dpviz.Quadtree()}'


@dataclass(frozen=True, kw_only=True)
class Run:
    """One release that a study makes. Its noise follows from the study's seed and its id, whatever runs before or beside it.

    Attributes:
        label: what the study calls the mechanism with its settings.
        mechanism: built.
        budget: what it is handed.
        repeat: 1 for the first.
    """

    label: str
    mechanism: Any
    budget: PureBudget | ApproxBudget
    repeat: int

    @property
    def id(self) -> str:
        """Stands for mechanism, settings, budget and repeat; the label is not in it."""
        amounts = [str(self.budget.epsilon), str(getattr(self.budget, "delta", 0))]
        text = json.dumps([self.mechanism.key, self.mechanism.chosen(), amounts, self.repeat], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def settings(self) -> str:
        """Those that differ from the defaults, as JSON."""
        values = {rule.name: (getattr(self.mechanism, rule.name), rule.default) for rule in self.mechanism.rules()}
        return json.dumps({name: value for name, (value, default) in values.items() if value != default})


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What is compared with what. Its releases are simulations, never for publication.

    Attributes:
        data: samples or made-up data, or data declared to be already public: errors against the truth are shown.
        public: the declaration that the data are public.
        mechanisms: by label, built.
        epsilons: of the budgets.
        delta: of the budgets of mechanisms that need one, at least 0 and below 1; None if none does.
        repeats: runs per mechanism and epsilon, at least 1.
        seed: a whole number of at least 0; the same seed gives the same table, but for the seconds.
        queries: how many boxes points are asked in each list of random boxes; at least 1.
        workloads: what the releases are asked, see `dpviz.evaluation.questions`; left out: random boxes of points, or trips between
            the finest regions.
        parts: also take the errors apart, which asks every release once more: noise and uniformity (points). Those of trips are
            noise and suppression, and cost nothing.

    Raises:
        RefusedError: data that are not declared public.
        InputError: data that are neither counted points nor trips.
        SettingError: nothing to compare, an unknown workload, too many runs, the same mechanism with the same settings twice, numbers out
            of range, no list where one is needed, or mechanisms that are not built or are for the other kind of data.
        BudgetError: an epsilon or delta out of range, or no delta where one is needed.
        DomainError: a mechanism that does not fit the frame.
    """

    data: PointCounts | Flows
    public: bool = False
    mechanisms: dict[str, Any]
    epsilons: tuple[Fraction, ...]
    delta: Fraction | None = None
    repeats: int = 1
    seed: int = 0
    queries: int = 500
    workloads: tuple[str, ...] = ()
    parts: bool = False

    def __post_init__(self) -> None:
        if self.public is not True:
            raise RefusedError(NOT_PUBLIC)
        if not isinstance(self.data, PointCounts | Flows):
            raise InputError(_NO_DATA.format(kind=type(self.data).__name__[:40]))
        _check_built(self.mechanisms, trips=isinstance(self.data, Flows))
        for name, low, high in (("repeats", 1, MOST_RUNS), ("queries", 1, 10**6), ("seed", 0, LARGEST_SEED)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise SettingError(f"{name} must be a whole number from {low:,} to {high:,}.")
        object.__setattr__(self, "epsilons", tuple(exact(epsilon, "epsilon") for epsilon in _listed(self.epsilons, "epsilons", "(0.5, 1)")))
        object.__setattr__(self, "workloads", _listed(self.workloads, "workloads", '("random",)'))
        if self.delta is not None:
            object.__setattr__(self, "delta", ApproxBudget(1, self.delta).delta)
        if not self.mechanisms or not self.epsilons:
            raise SettingError("A comparison needs at least one mechanism and one epsilon.")
        if len(self) > MOST_RUNS:
            raise SettingError(
                f"These are {len(self):,} runs; at most {MOST_RUNS:,} are made. Leave some settings, epsilons or repeats out."
            )
        self._check_mechanisms()
        kind = TripQuestions if isinstance(self.data, Flows) else PointQuestions
        object.__setattr__(self, "workloads", kind.checked(self.data, self.workloads))  # type: ignore[arg-type]

    def _check_mechanisms(self) -> None:
        plans = [run.id for run in self.runs() if run.repeat == 1]
        if len(set(plans)) < len(plans):
            raise SettingError("The same mechanism with the same settings, or the same epsilon, stands there twice.")
        for mechanism in self.mechanisms.values():
            if isinstance(self.data, Flows):
                mechanism.check_flows(self.data)
            else:
                mechanism.check(self.data.domain)

    def __len__(self) -> int:
        return len(self.mechanisms) * len(self.epsilons) * self.repeats

    def runs(self) -> list[Run]:
        """All of them; repeats outermost, so that whoever stops early has some of each."""
        return [
            Run(label=label, mechanism=mechanism, budget=self._budget(mechanism, epsilon), repeat=repeat)
            for repeat in range(1, self.repeats + 1)
            for label, mechanism in self.mechanisms.items()
            for epsilon in self.epsilons
        ]

    def _budget(self, mechanism: Any, epsilon: Fraction) -> PureBudget | ApproxBudget:
        if not mechanism.needs_delta:
            return PureBudget(epsilon)
        if self.delta is None:
            raise BudgetError(f"{mechanism.title} needs a delta: give one beside the epsilons.")
        return ApproxBudget(epsilon, self.delta)

    @cached_property
    def questions(self) -> PointQuestions | TripQuestions:
        """What every release is asked, with the true answers."""
        if isinstance(self.data, Flows):
            return TripQuestions.of(self.data, self.workloads)
        return PointQuestions.of(self.data, self.workloads, self.queries, self.seed)

    @cached_property
    def mark(self) -> str:
        """Stands for all that rows of one table share: data, seed, queries and the version of dpviz; mechanisms are not in it."""
        digest = hashlib.blake2b(
            repr((_frame(self.data), self.seed, self.queries, self.parts, version_of("dpviz"))).encode(), digest_size=8
        )
        names = ("origin", "destination", "count") if isinstance(self.data, Flows) else ("column", "row", "count")
        for name in names:
            digest.update(np.ascontiguousarray(getattr(self.data, name)).tobytes())
        return digest.hexdigest()

    def release(self, run: Run) -> Any:
        """The release of a run; always the same one."""
        text = hashlib.blake2b(f"{self.seed}/{run.id}".encode(), digest_size=16).digest()
        return run.mechanism.release(self.data, run.budget, Entropy.seeded(int.from_bytes(text)))


def _listed(values: Any, name: str, example: str) -> tuple[Any, ...]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise SettingError(f"{name} must be a list or tuple, such as {example}.")
    return tuple(values)


def _check_built(mechanisms: Any, *, trips: bool) -> None:
    """Raise where these are no built mechanisms by label, for points or for trips."""
    if not isinstance(mechanisms, Mapping) or not all(isinstance(label, str) for label in mechanisms):
        raise SettingError(f"mechanisms must be a dict of built mechanisms by label, such as {_BUILT}.")
    for label, mechanism in mechanisms.items():
        where = f"mechanisms, {label[:80]!r}"
        if isinstance(mechanism, type):
            raise SettingError(f"{where}: give a built mechanism, {mechanism.__name__[:40]}(), not its class.")
        if not isinstance(mechanism, Settings):
            raise SettingError(f"{where}: give a built mechanism, such as {_BUILT}, not {type(mechanism).__name__[:40]}.")
        if trips != hasattr(mechanism, "check_flows"):
            made, given = ("points", "trips") if trips else ("trips", "points")
            raise SettingError(f"{where}: {mechanism.title} is a mechanism for {made}, and the data are {given}.")


def version_of(package: str) -> str:
    """The installed version of a package, or that it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _frame(data: PointCounts | Flows) -> tuple[object, ...]:
    held = (data.contributions, data.unit)
    if isinstance(data, Flows):
        return ("trips", *held, data.exactly, *([*side.ids[-1]] for side in (data.regions, data.ends)))
    return ("points", *held, data.domain.bounds, str(data.domain.crs), data.domain.order)
