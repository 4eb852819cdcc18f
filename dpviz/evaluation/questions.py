"""Workloads: what the releases of a study are asked, and the true answers.

Points: `random` boxes between two random lattice lines each way; `small`, `medium` and `large` blocks of a thousandth, a hundredth and a
tenth of the area anywhere; `zooms`, all equal blocks of each zoom level (rows "zoom 0", "zoom 1", ...); `sizes`, the blocks of one zoom
level by their true count (rows "size 0", "size 1-9", "size 10-99", ...).
Trips: a level by its name, the pairs between its regions that are released or have true trips; `levels`, all of them; `sizes`, the pairs
of the finest level by their true count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpviz.errors import SettingError
from dpviz.evaluation.flow_metrics import evaluate_flows
from dpviz.evaluation.metrics import error_figures, true_answers
from dpviz.space.workloads import area_share, random_rectangles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from dpviz.data.flows import Flows
    from dpviz.data.points import PointCounts
    from dpviz.release.flow_release import FlowRelease
    from dpviz.release.point_release import Release

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Row = dict[str, Any]

ZOOMS, SIZES, LEVELS = "zooms", "sizes", "levels"
SHARES = {"small": 0.001, "medium": 0.01, "large": 0.1}
POINT_WORKLOADS = ("random", *SHARES, ZOOMS, SIZES)
FINEST_ZOOM, SIZES_ZOOM = 7, 6
_LARGEST_POWER = 15


@dataclass(frozen=True, kw_only=True, eq=False)
class PointQuestions:
    """Boxes and blocks, with the true counts in them.

    Attributes:
        points: the data.
        boxes: (q, 4) all lists of boxes, one after the other.
        lists: where each list lies in them.
        blocks: by name, a zoom level and which of its blocks, or None for all.
        truth: (k,) true counts by name, of lists and blocks alike.
    """

    points: PointCounts
    boxes: Floats
    lists: dict[str, slice]
    blocks: dict[str, tuple[int, Mask | None]]
    truth: dict[str, Integers]

    @staticmethod
    def checked(points: PointCounts, workloads: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG004
        """The workloads, or the usual one; raises `SettingError` for unknown ones."""
        return _known(workloads or POINT_WORKLOADS[:1], POINT_WORKLOADS)

    @classmethod
    def of(cls, points: PointCounts, workloads: tuple[str, ...], queries: int, seed: int) -> PointQuestions:
        """The questions of some workloads, of `queries` boxes each where boxes are random."""
        made = {name: _boxes(points, name, queries, seed) for name in workloads if name in ("random", *SHARES)}
        boxes = np.concatenate([np.zeros((0, 4)), *made.values()])
        lists = {name: slice(place * queries, (place + 1) * queries) for place, name in enumerate(made)}
        true = true_answers(points, boxes)
        blocks: dict[str, tuple[int, Mask | None]] = {}
        order = points.domain.order
        if ZOOMS in workloads:
            blocks = {f"zoom {zoom}": (zoom, None) for zoom in range(min(order, FINEST_ZOOM) + 1)}
        if SIZES in workloads:
            zoom = min(order, SIZES_ZOOM)
            blocks |= {name: (zoom, chosen) for name, chosen in by_size(points.blocks(zoom).ravel())}
        truth = {name: true[part] for name, part in lists.items()}
        truth |= {name: _blocks(points.blocks, zoom, chosen) for name, (zoom, chosen) in blocks.items()}
        return cls(points=points, boxes=boxes, lists=lists, blocks=blocks, truth=truth)

    def names(self) -> list[str]:
        """Of the rows that each run gives."""
        return list(self.truth)

    def rows(self, release: Release, *, parts: bool) -> list[Row]:
        """The four figures of every workload; with `parts`, mean sizes of the error's two parts, which can cancel each other."""
        total, estimates = int(self.points.count.sum()), self._answers(release)
        held = self._answers(true_to(release, self.points)) if parts else {}
        rows = []
        for name, truth in self.truth.items():
            row = {"workload": name, "questions": len(truth), **error_figures(estimates[name], truth, total)}
            if parts:
                row["noise"] = float(np.abs(estimates[name] - held[name]).mean())
                row["uniformity"] = float(np.abs(held[name] - truth).mean())
            rows.append(row | {"partitions": len(release.tree.leaves)})
        return rows

    def _answers(self, release: Release) -> dict[str, Floats]:
        boxes = release.answer(self.boxes) if len(self.boxes) else np.zeros(0)
        found = {zoom: release.blocks(zoom) for zoom in {zoom for zoom, _ in self.blocks.values()}}
        answers = {name: boxes[part] for name, part in self.lists.items()}
        return answers | {name: _blocks(found.__getitem__, zoom, chosen) for name, (zoom, chosen) in self.blocks.items()}


def true_to(release: Release, points: PointCounts) -> Release:
    """The same partitions with their true counts: what is wrong with its answers is the assumption inside partitions."""
    return replace(release, count=release.tree.sums(points.column, points.row, points.count).astype(np.float64))


@dataclass(frozen=True, kw_only=True, eq=False)
class TripQuestions:
    """Levels of regions, between which trips are compared.

    Attributes:
        flows: the data.
        levels: by name, their number, 1 for the coarsest.
        sizes: names of the groups of pairs of the finest level by their true count.
    """

    flows: Flows
    levels: dict[str, int]
    sizes: tuple[str, ...]

    @staticmethod
    def checked(flows: Flows, workloads: tuple[str, ...]) -> tuple[str, ...]:
        """The workloads, or the usual one; raises `SettingError` for unknown ones."""
        levels = flows.regions.levels
        return _known(workloads or levels[-1:], (*levels, LEVELS, SIZES))

    @classmethod
    def of(cls, flows: Flows, workloads: tuple[str, ...]) -> TripQuestions:
        """The questions of some workloads."""
        levels = {name: place for place, name in enumerate(flows.regions.levels, 1) if name in workloads or LEVELS in workloads}
        truth = np.append(flows.count, 0)
        sizes = tuple(name for name, _ in by_size(truth)) if SIZES in workloads and SIZES not in levels else ()
        return cls(flows=flows, levels=levels, sizes=sizes)

    def names(self) -> list[str]:
        """Of the rows that each run gives."""
        return [*self.levels, *self.sizes]

    def rows(self, release: FlowRelease, *, parts: bool) -> list[Row]:  # noqa: ARG002
        """The figures of every workload; `parts` are always there."""
        evaluation, finest = evaluate_flows(release, self.flows), self.flows.regions.depth
        tables = {level: evaluation.compare(level) for level in {*self.levels.values(), *([finest] if self.sizes else ())}}
        rows = [{"workload": name} | trip_figures(tables[level], self.flows) for name, level in self.levels.items()]
        if self.sizes:
            group = dict(by_size(tables[finest]["true"].to_numpy()))
            nothing = np.zeros(len(tables[finest]), bool)
            groups = {name: tables[finest][group.get(name, nothing)] for name in self.sizes}
            rows += [{"workload": name} | trip_figures(pairs, self.flows) for name, pairs in groups.items()]
        return rows


def trip_figures(pairs: pd.DataFrame, flows: Flows) -> Row:
    """Errors of pairs of regions that are released or have true trips.

    Args:
        pairs: from `FlowEvaluation.compare`, all or some.
        flows: the true trips.

    Returns:
        questions (how many pairs), the four figures of `error_figures`, noise and suppression (trips per pair: how far released pairs
        are off, and what was left out of the others; they add up to mae), max_error (trips), false_discovery (percent of released
        pairs without true trips), false_negative (percent of pairs with true trips that are not released), pairs (released).
    """
    error, true = pairs["error"].abs().to_numpy(), pairs["true"].to_numpy()
    kind = pairs["kind"].cat.codes.to_numpy()
    missed, false, released = kind == 2, int((kind == 1).sum()), int((kind < 2).sum())
    present = int((kind != 1).sum())
    of = max(len(pairs), 1)
    return {
        "questions": len(pairs),
        **error_figures(pairs["released"].to_numpy(), true, int(flows.count.sum())),
        "noise": float(error[~missed].sum()) / of,
        "suppression": float(error[missed].sum()) / of,
        "max_error": int(error.max(initial=0)),
        "false_discovery": 100.0 * false / max(released, 1),
        "false_negative": 100.0 * int(missed.sum()) / max(present, 1),
        "pairs": released,
    }


def by_size(truth: Integers) -> Iterator[tuple[str, Mask]]:
    """Names and members of the groups of true counts that occur: 0, 1-9, 10-99, and so on.

    >>> [name for name, _ in by_size(np.array([0, 3, 250]))]
    ['size 0', 'size 1-9', 'size 100-999']
    """
    edges = np.array([0, *(10**power for power in range(_LARGEST_POWER + 1))])
    group = np.searchsorted(edges, truth, side="right") - 1
    for place in np.unique(group):
        yield ("size 0" if place == 0 else f"size {edges[place]}-{10 * edges[place] - 1}"), group == place


def _known(workloads: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    for name in workloads:
        if name not in known:
            raise SettingError(f"There is no workload {str(name)[:40]!r} for these data; there are {', '.join(known)}.")
    if len(set(workloads)) < len(workloads):
        raise SettingError("The same workload stands there twice.")
    return workloads


def _boxes(points: PointCounts, name: str, queries: int, seed: int) -> Floats:
    make: Callable[..., Floats] = random_rectangles if name == "random" else partial(area_share, share=SHARES[name])
    return make(points.domain, count=queries, seed=seed)


def _blocks(counts: Callable[[int], Any], zoom: int, chosen: Mask | None) -> Any:
    found = counts(zoom).ravel()
    return found if chosen is None else found[chosen]
