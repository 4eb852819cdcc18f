"""Audits of every mechanism: lower bounds on its epsilon from many releases of made-up neighbouring inputs."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from typing import Any

import pandas as pd

from dpviz.errors import SettingError, did_you_mean
from dpviz.families import FAMILIES
from dpviz.mechanisms import (
    AdaptiveGrid,
    AnyMechanism,
    CrossTree,
    Dawa,
    FlatAreas,
    FlatGaussian,
    HilbertTree,
    Htf,
    Identity,
    Kdtree,
    PathTree,
    PrivTree,
    Quadtree,
    RegionTree,
    StabilityHistogram,
    TopDown,
    Tuned,
    TunedGrid,
    UniformGrid,
)
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED
from dpviz.privacy.audit import AuditPlan, AuditResult, audit_neighbours
from dpviz.privacy.budget import ApproxBudget, Budget, Number, PureBudget

EPSILON, DELTA, RUNS = 2, "0.03", 2000
Progress = Callable[[int, int, str], None]

VARIANTS: dict[str, AnyMechanism] = {
    "quadtree, equal shares, as measured": Quadtree(split="uniform", least_squares=False),
    "quadtree without root, pruned": Quadtree(count_root=False, prune=2),
    "path_tree, splits early": PathTree(tau=0.5, shrink_small=False),
    "privtree of 16 parts": PrivTree(fan_out=16, structure_share=0.8),
    "htf in rounds": Htf(search="rounds", split_share=0.5),
    "kdtree of one step, nearly all for medians": Kdtree(height=1, fan_out=2, median_share=0.9),
    "kdtree, hybrid": Kdtree(variant="hybrid"),
    "kdtree, cell": Kdtree(variant="cell"),
    "kdtree, noisy-mean": Kdtree(variant="noisy-mean", height=1, fan_out=2, median_share=0.5),
    "kdtree, smooth-sensitivity": Kdtree(variant="smooth-sensitivity", outside="nearest"),
    "kdtree on a sample": Kdtree(sample=0.5, height=1, fan_out=2, median_share=0.5),
    "dawa, nearly all for the partition": Dawa(structure_share=0.85, price=6),
    "hilbert_tree of one step, nearly all for medians": HilbertTree(height=1, fan_out=2, median_share=0.9),
    "adaptive_grid, mostly the first grid": AdaptiveGrid(alpha=0.8, c=1),
    "uniform_grid of 4": UniformGrid(side=4),
    "uniform_grid, larger total": UniformGrid(total_share=0.5, c=0.5),
    "tuned_grid, half for tuning": TunedGrid(sides=(1, 2, 4), tuning_share=0.5),
    "tuned_grid, declared": TunedGrid(sides=(1, 2, 4), total="declared", declared_total=100, tuning_share=0.5),
    "tuned, grid size": Tuned(tune="grid size", values=(1, 2, 4), tuning_share=0.5),
    "tuned, pruning threshold": Tuned(tune="pruning threshold", values=(0, 8)),
    "identity, small cells at zero": Identity(threshold=True),
    "top_down, add or remove": TopDown(neighbours=ADD_REMOVE),
    "top_down, least squares, dial": TopDown(optimiser="euclidean", dial=1, tree="origin"),
    "flat_gaussian, add or remove": FlatGaussian(neighbours=ADD_REMOVE),
    "region_tree, replace one, with the whole": RegionTree(neighbours=BOUNDED, count_root=True, split="uniform"),
    "region_tree, non-negative": RegionTree(nonnegative=True),
    "cross_tree, replace one, unbiased": CrossTree(neighbours=BOUNDED, lean=False, slot_split="uniform"),
    "flat, replace one, small counts hidden": FlatAreas(neighbours=BOUNDED, threshold=3),
    "stability_histogram, add or remove": StabilityHistogram(neighbours=ADD_REMOVE),
}
"""Mechanisms by name, with settings under which they release other quantities than by default. Defaults are audited by their keys."""


def _kinds() -> dict[str, type[AnyMechanism]]:
    """List the mechanisms of every family, by key."""
    return {key: kind for family in FAMILIES.values() for key, kind in family.mechanisms.items()}


def gaussian_targets() -> dict[str, AnyMechanism]:
    """List the mechanisms whose noise the kind of the budget decides, by name: they are audited with a delta, too."""
    return {f"{key}, Gaussian noise": kind() for key, kind in _kinds().items() if kind.noise_by_budget}


def audit_targets() -> dict[str, AnyMechanism]:
    """List the mechanisms that `audit_all` audits, by name: each one with defaults, `VARIANTS` and `gaussian_targets`."""
    return {key: kind() for key, kind in _kinds().items()} | VARIANTS | gaussian_targets()


def audit_budget(mechanism: AnyMechanism, epsilon: Number = EPSILON, *, gaussian: bool = False) -> Budget:
    """Return the budget for a mechanism's audit. Where there is a delta it is 0.03, so that few runs suffice to show most of epsilon.

    Args:
        mechanism: the mechanism.
        epsilon: of the budget.
        gaussian: whether there is a delta where the kind of the budget decides the noise.
    """
    return ApproxBudget(epsilon, DELTA) if mechanism.needs_delta or gaussian else PureBudget(epsilon)


def audit(
    mechanism: str | AnyMechanism,
    *,
    budget: Budget | None = None,
    runs: int = RUNS,
    confidence: float = 0.95,
    tests: int = 1,
    seed: int = 0,
) -> AuditResult:
    """Compute a lower bound on the epsilon of a mechanism, from many seeded releases on made-up neighbours; see `audit` for its meaning.

    Args:
        mechanism: a key, the name of a variant in `audit_targets()`, or a mechanism with its own settings.
        budget: the budget of each release; `audit_budget` if None.
        runs: number of releases of each input of each pair of neighbours.
        confidence: confidence of the bounds of all `tests` audits together, 0 to 1.
        tests: number of audits whose bounds must hold together.
        seed: seed of the noise.

    Raises:
        SettingError: an unknown key, or a number out of its range.
        BudgetError: a budget of the wrong kind.
        DpvizError: the mechanism does not fit the made-up inputs.

    Here a mechanism spends more than its budget, and the audit shows it:

    >>> import dpviz as dv
    >>> class Overspent(dv.UniformGrid):
    ...     audit_inputs = dv.UniformGrid.audit_inputs[:1]
    ...     def release(self, points, budget, entropy):
    ...         return super().release(points, dv.PureBudget(20), entropy)
    >>> result = dv.audit(Overspent(side=2), budget=dv.PureBudget(1), runs=100)
    >>> result.epsilon, result.lower_bound > 1, result.passed
    (1.0, True, False)
    """
    name, target = _find_target(mechanism)
    plan = AuditPlan(runs=runs, confidence=confidence, tests=tests, seed=seed)
    budget = audit_budget(target, EPSILON, gaussian=name in gaussian_targets()) if budget is None else budget
    return audit_neighbours(name, target.audit_pairs(budget), budget, plan)


def audit_all(
    mechanisms: Mapping[str, AnyMechanism] | None = None,
    *,
    plan: AuditPlan | None = None,
    progress: Progress | None = None,
    processes: int = 1,
) -> pd.DataFrame:
    """Audit several mechanisms; with the plan's confidence, all bounds hold together.

    Args:
        mechanisms: mechanisms by name; all of `audit_targets()` if None.
        plan: runs, confidence and seed; the plan's number of tests is replaced by the number of mechanisms.
        progress: called after each row with the number of finished rows, the number of all rows, and the name of the mechanism.
        processes: number of processes. If there are several, they are fresh interpreters, so a script needs the usual
            `if __name__ == "__main__"`.

    Returns:
        DataFrame with one row per mechanism: the fields of `AuditResult` and `passed`.

    Raises:
        DpvizError: a mechanism does not fit the made-up inputs, such as weights for another number of levels.

    >>> import dpviz as dv
    >>> from dpviz.privacy.audit import AuditPlan
    >>> class Grid(dv.UniformGrid):
    ...     audit_inputs = dv.UniformGrid.audit_inputs[:1]
    >>> found = dv.evaluation.audit_all({"one cell": Grid(side=1), "four cells": Grid(side=2)}, plan=AuditPlan(runs=100))
    >>> found[["mechanism", "epsilon", "passed"]].values.tolist()
    [['one cell', 2.0, True], ['four cells', 2.0, True]]
    """
    targets = audit_targets() if mechanisms is None else dict(mechanisms)
    plan = plan or AuditPlan(runs=RUNS)
    jobs = [(name, mechanism, plan.runs, plan.confidence, len(targets), plan.seed) for name, mechanism in targets.items()]
    rows = []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) if processes > 1 else nullcontext() as pool:
        for finished, row in enumerate((pool.map if pool else map)(_audit_job, jobs), 1):
            rows.append(row)
            if progress is not None:
                progress(finished, len(jobs), row["mechanism"])
    return pd.DataFrame(rows)


def _audit_job(job: tuple[str, AnyMechanism, int, float, int, int]) -> dict[str, Any]:
    name, mechanism, runs, confidence, tests, seed = job
    budget = audit_budget(mechanism, gaussian=gaussian_targets().get(name) == mechanism)
    result = audit(mechanism, budget=budget, runs=runs, confidence=confidence, tests=tests, seed=seed)
    return {**result.to_dict(), "mechanism": name}


def _find_target(mechanism: str | AnyMechanism) -> tuple[str, AnyMechanism]:
    """Return the name and the mechanism, for a name or a mechanism."""
    if not isinstance(mechanism, str):
        return mechanism.key, mechanism
    known = audit_targets()
    if mechanism not in known:
        keys = list(_kinds())
        raise SettingError(f"There is no such mechanism; choose one of {', '.join(keys)}.{did_you_mean(mechanism, keys)}")
    return mechanism, known[mechanism]
