"""References that look at the data: kd-trees at exact medians and grids tuned on the truth. NOT PRIVATE: they show what privacy costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats
from dpviz.data.points import PointCounts
from dpviz.mechanisms.audit import MEDIANS, Added
from dpviz.mechanisms.base import NOT_PRIVATE, Share, setting
from dpviz.mechanisms.expected_error import BoxQueries, grid_bias
from dpviz.mechanisms.points.base import PointMechanism, all_on_leaves, prune_setting
from dpviz.mechanisms.points.median_tree import grow
from dpviz.mechanisms.points.quadtree import prune
from dpviz.mechanisms.points.tuned import GridTuning
from dpviz.mechanisms.run import Run
from dpviz.privacy.allocation import level_weights
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import exact_medians
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import grid, refuse_too_large

COUNTS = ("noisy", "exact")


@dataclass(frozen=True, kw_only=True)
class ExactKdtree(PointMechanism):
    """A kd-tree whose splits are the exact medians. NOT PRIVATE: the splits alone reveal where records lie.

    Protects: nothing. Exact counts reveal everything. Noisy counts spend the whole budget, and nothing pays for the structure.

    Source:
        Cormode et al., ICDE 2012, Section VIII-B: kd-true (noisy counts) and kd-pure (exact counts), "to see the cost of privacy".

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.contrasts.ExactKdtree(height=4).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(exact_kdtree, 256 partitions, epsilon 1, NOT PRIVATE)
    """

    key: ClassVar[str] = "exact_kdtree"
    title: ClassVar[str] = "Exact kd-tree (NOT PRIVATE)"
    menu_group: ClassVar[str] = NOT_PRIVATE
    summary: ClassVar[str] = "NOT PRIVATE: a kd-tree at exact medians, to show what privacy costs; it must never be published."
    private: ClassVar[bool] = False
    audit_inputs: ClassVar[tuple[Added[Any], ...]] = MEDIANS

    counts: str = setting("noisy", "Counts", choices=COUNTS, help="Noisy is the paper's kd-true, exact its kd-pure. Neither is private.")
    height: int = setting(8, "Height", low=1, high=12, help="Steps from the whole domain to the smallest partitions, four parts each.")
    prune: float = prune_setting()

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Split at exact medians; noisy counts spend `budget`, geometrically over levels. The release must not be published."""
        run = Run.of(self, points, budget, entropy)
        grown = grow(points, self._height(points.domain), 2, lambda _, nodes: exact_medians(nodes.values()))
        if self.counts == "exact":
            noisy, variance = grown.true.astype(np.float64), np.zeros(len(grown.true))
        else:
            epsilons = run.split(level_weights("geometric", self._height(points.domain)))
            noisy, variance = self.count_levels(run, grown.tree, epsilons, grown.true)
        release = self.make_release(
            run,
            grown.tree,
            noisy,
            variance,
            notes=("NOT PRIVATE: the splits are the exact medians, which no budget pays for.",),
            unprotected=("the records themselves: NOT PRIVATE",),
            least_squares=self.counts == "noisy",
        )
        return prune(release, self.prune) if self.prune else release

    def check(self, frame: Domain) -> None:
        """Raise an error if the tree is too large for memory."""
        refuse_too_large(self._height(frame), 4)

    def shares(self, frame: Domain) -> list[Share]:  # noqa: ARG002
        """List one share, for the counts; nothing pays for the structure."""
        return [Share(label="counts; nothing pays for the splits", share=1.0)]

    def _height(self, domain: Domain) -> int:
        return min(self.height, domain.order)


@dataclass(frozen=True, kw_only=True)
class ExactTunedGrid(GridTuning):
    """A grid whose size is the best one for the data. NOT PRIVATE: nothing pays for the choice.

    Protects: nothing. Exact counts reveal everything. Noisy counts spend the whole budget, and the choice of the size leaks.

    Source:
        Fanaeepour, Rubinstein, 2017, Section 8.1: Leaky ("noisy": every size is released with noise, and the one with the least
        true error is kept) and BestNonPriv ("exact": no noise, so all error comes from assuming uniformity).

    Deviations:
        The size is chosen by the mean relative error with the sanity bound, as in `TunedGrid`. If no number of records is declared, the
        sanity bound follows from the true number. Shares of the budget and clipping have no effect.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.contrasts.ExactTunedGrid().release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(exact_tuned_grid, 16,384 partitions, epsilon 1, NOT PRIVATE)
    """

    key: ClassVar[str] = "exact_tuned_grid"
    title: ClassVar[str] = "Exactly tuned grid (NOT PRIVATE)"
    menu_group: ClassVar[str] = NOT_PRIVATE
    summary: ClassVar[str] = "NOT PRIVATE: the grid that fits the data best, to show what private tuning costs; never to be published."
    private: ClassVar[bool] = False

    counts: str = setting("noisy", "Counts", choices=COUNTS, help="Noisy is the paper's Leaky, exact its BestNonPriv. Neither is private.")

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Release the grid with the smallest true error; noisy counts spend `budget`. The release must not be published."""
        run = Run.of(self, points, budget, entropy)
        queries = BoxQueries(points=points, boxes=self.boxes(points.domain))
        denominator = np.maximum(queries.truth, self.rho(int(points.count.sum()) if self.declared_total is None else self.declared_total))
        results = (self._try_size(run, queries, size.value) for size in self.candidates(points.domain))
        best, _ = min(results, key=lambda release_and_errors: float((release_and_errors[1] / denominator).mean()))
        return best

    def _try_size(self, run: Run[PointCounts], queries: BoxQueries, side: int) -> tuple[PointRelease, Floats]:
        """Count a grid of one size, with all of the budget or exactly; return the release and its (q,) absolute errors. PRIVATE."""
        run, domain = replace(run, steps=[], notes=[]), run.data.domain
        tree = grid(domain, side, side)
        notes = ("NOT PRIVATE: the size of the grid is the best one for the data, which no budget pays for.", *self.cut_notes(domain))
        facts: dict[str, Any] = {"notes": notes, "unprotected": ("the records themselves: NOT PRIVATE",)}
        facts["least_squares"] = self.counts == "noisy"
        if self.counts == "exact":
            exact = tree.sums(run.data.column, run.data.row, run.data.count).astype(np.float64)
            return self.make_release(run, tree, exact, np.zeros(len(tree)), **facts), grid_bias(queries, side)
        release = self.make_release(run, tree, *self.count_levels(run, tree, all_on_leaves(tree, run.epsilon)), **facts)
        return release, np.abs(release.answer(domain.coordinates(queries.boxes.lattice)) - queries.truth)

    def shares(self, frame: Domain) -> list[Share]:  # noqa: ARG002
        """List one share, for the counts; nothing pays for the choice."""
        return [Share(label="counts; nothing pays for the choice", share=1.0)]
