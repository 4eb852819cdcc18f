"""Mechanisms x settings x budgets x repeats on public data: one row per run. Simulations, never for publication."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpviz.answers.flow_metrics import evaluate_flows
from dpviz.answers.metrics import SMALL_SHARE, workload_errors
from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DomainError, SettingError
from dpviz.privacy.budget import ApproxBudget, PureBudget, exact
from dpviz.privacy.entropy import Entropy
from dpviz.release.flow_release import FlowRelease
from dpviz.release.release import Release
from dpviz.space.workloads import random_rectangles

MOST_RUNS = 100_000
LARGEST_SEED = 2**63 - 1

Row = dict[str, Any]


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What is compared with what.

    Attributes:
        data: public data, or data declared to be public: errors against the truth are shown.
        mechanisms: by label, built.
        epsilons: of the budgets.
        delta: of the budgets of mechanisms that need one; None if none does.
        repeats: runs per mechanism and epsilon, at least 1.
        seed: a whole number of at least 0; the same seed gives the same table, but for the seconds.
        queries: how many random boxes points are asked, on lattice lines; at least 1.
        level: geographic level at which trips are compared, a number or a name; None for the finest.

    Raises:
        SettingError: nothing to compare, too many runs, the same mechanism with the same settings twice, or numbers out of range.
        BudgetError: an epsilon or delta out of range, or no delta where one is needed.
        DomainError: a mechanism that does not fit the frame, or no such level.
    """

    data: PointCounts | Flows
    mechanisms: dict[str, Any]
    epsilons: tuple[Fraction, ...]
    delta: Fraction | None = None
    repeats: int = 1
    seed: int = 0
    queries: int = 500
    level: int | str | None = None

    def __post_init__(self) -> None:
        for name, low, high in (("repeats", 1, MOST_RUNS), ("queries", 1, 10**6), ("seed", 0, LARGEST_SEED)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise SettingError(f"{name} must be a whole number from {low:,} to {high:,}.")
        object.__setattr__(self, "epsilons", tuple(exact(epsilon, "epsilon") for epsilon in self.epsilons))
        if not self.mechanisms or not self.epsilons:
            raise SettingError("A comparison needs at least one mechanism and one epsilon.")
        if len(self) > MOST_RUNS:
            raise SettingError(
                f"These are {len(self):,} runs; at most {MOST_RUNS:,} are made. Leave some settings, epsilons or repeats out."
            )
        self._check_mechanisms()
        if isinstance(self.data, Flows):
            self.level_number()

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

    def level_number(self) -> int:
        """The geographic level of trips as a number, 1 for the coarsest."""
        levels = self.data.regions.levels if isinstance(self.data, Flows) else ()
        if self.level is None:
            return len(levels)
        number = levels.index(self.level) + 1 if self.level in levels else self.level
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(levels):
            raise DomainError(f"The regions have levels 1 to {len(levels)}: {', '.join(levels)}.")
        return number


def compare(study: Study) -> Iterator[Row]:
    """Make the runs one by one; give a row as soon as it is there.

    Yields:
        label, mechanism (key), settings (those that differ from the defaults, as JSON), epsilon, delta, repeat, run (its id), the figures
        of `point_figures` or `trip_figures`, and seconds (of the release alone).
    """
    for run in study.runs():
        yield row_of(study, run)


def row_of(study: Study, run: Run) -> Row:
    """One run, whichever process makes it: a function of the study and the run alone, but for the seconds."""
    start = time.perf_counter()
    release = run.mechanism.release(study.data, run.budget, _noise(study.seed, run))
    seconds = time.perf_counter() - start
    changed = {
        rule.name: getattr(run.mechanism, rule.name) for rule in run.mechanism.rules() if getattr(run.mechanism, rule.name) != rule.default
    }
    return {
        "label": run.label,
        "mechanism": run.mechanism.key,
        "settings": json.dumps(changed),
        "epsilon": float(run.budget.epsilon),
        "delta": float(getattr(run.budget, "delta", 0)),
        "repeat": run.repeat,
        "run": run.id,
        **figures(study, release),
        "seconds": seconds,
    }


def _noise(seed: int, run: Run) -> Entropy:
    digest = hashlib.blake2b(f"{seed}/{run.id}".encode(), digest_size=16).digest()
    return Entropy.seeded(int.from_bytes(digest))


def figures(study: Study, release: Release | FlowRelease) -> Row:
    """How far a release is from the truth: `point_figures` or `trip_figures`."""
    if isinstance(study.data, Flows):
        return trip_figures(release, study.data, study.level_number())  # type: ignore[arg-type]
    return point_figures(release, study.data, study)  # type: ignore[arg-type]


def point_figures(release: Release, points: PointCounts, study: Study) -> Row:
    """Errors on the study's random boxes: n3, mae, mean20 and median20 as in `workload_errors`; and how many partitions there are."""
    errors = workload_errors(release, points, random_rectangles(points.domain, study.queries, study.seed))
    return {
        "n3": errors.n3,
        "mae": errors.mae,
        "mean20": errors.mean20,
        "median20": errors.median20,
        "partitions": len(release.tree.leaves),
    }


def trip_figures(release: FlowRelease, flows: Flows, level: int) -> Row:
    """Errors between the regions of one level, over pairs that are released or have true trips.

    Returns:
        n3 (mean of |error| / max(truth, N / 1000), percent), mae and max_error (trips), false_discovery (percent of released pairs
        without true trips), false_negative (percent of pairs with true trips that are not released) and pairs (released).
    """
    pairs = evaluate_flows(release, flows).compare(level)
    error, true = pairs["error"].abs().to_numpy(), pairs["true"].to_numpy()
    smoothed = np.maximum(true, max(SMALL_SHARE * float(flows.count.sum()), 1.0))
    kinds = pairs["kind"].value_counts()
    released, present = kinds["true positive"] + kinds["false positive"], kinds["true positive"] + kinds["false negative"]
    return {
        "n3": float(100 * (error / smoothed).mean()) if len(pairs) else 0.0,
        "mae": float(error.mean()) if len(pairs) else 0.0,
        "max_error": int(error.max(initial=0)),
        "false_discovery": 100.0 * int(kinds["false positive"]) / max(int(released), 1),
        "false_negative": 100.0 * int(kinds["false negative"]) / max(int(present), 1),
        "pairs": int(released),
    }
