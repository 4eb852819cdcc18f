"""PrivTree: quarters are split while their noisy, depth-biased count exceeds a threshold, to any depth at one price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers
from dpviz.data.indexes import CurveCells
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import TREES, Share, setting, shares_of
from dpviz.mechanisms.points.base import PointMechanism, fill_setting, negative_setting, shrink_setting, structure_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import Budget, PureBudget, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import LARGEST_SCALE, discrete_laplace, laplace_variance
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import have_open_cells, quarter_tree, split_nodes
from dpviz.space.mask import open_cells
from dpviz.space.tree import Tree


@dataclass(frozen=True, kw_only=True)
class PrivTree(PointMechanism):
    """A quadtree that is split where records are, however deep: one budget pays for the splits of a whole path.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie on m paths: lambda is m times as large as for one record, so that each record costs epsilon / m on its own path.

    Privacy:
        A node of depth d is split if b + X > theta, with b = max(count - d delta, theta - delta) and X discrete Laplace noise of scale
        lambda. Let q = exp(-1 / lambda), and let beta be the fan-out. One more record raises b by 1 along one path, and only where
        b > theta - delta with this record. If b <= theta with this record, the probability of a split grows by a factor of 1 / q. If
        b = theta + s with s >= 1, it grows by a factor of 1 + q**(s-1) (1 - q) / (1 + q - q**(s-1)). The probability of no split, which
        occurs once, at the end of a path, shrinks by a factor of at most 1 / q. So one more record multiplies the probability of a tree
        by at least q, and by at most the product of the factors of its splits. On a path b falls by at least delta per step, since
        counts do not grow. So at most one node of the path has theta - delta < b <= theta, and the others have s >= 1, 1 + delta,
        1 + 2 delta, ..., since delta is whole. With q**delta <= 1 / beta the j-th of these costs at most beta**-j / lambda, because
        (1 - q) / (1 + q - beta**-j) <= 1 / lambda for all j >= 1 and beta >= 4. The total is
        (1 + beta / (beta - 1)) / lambda = (2 beta - 1) / ((beta - 1) lambda), which is the epsilon of the splits. m records are m such
        changes, one after the other. The proof needs whole theta and delta, as they are here: with the paper's real-valued delta and
        whole noise, b could come within less than 1 of theta again and again. Splits for which memory has no room are drawn, too,
        before they are dropped.

    Mask:
        A wholly masked node has no record, whatever the data are: it is never split, and its count is 0 without noise. The nodes of a
        record's path are not wholly masked, and for them the proof holds.

    Source:
        Zhang, Xiao, Xie, "PrivTree: a differentially private algorithm for hierarchical decompositions", SIGMOD 2016,
        Algorithm 2 and Theorem 3.1.

    Deviations:
        Noise is discrete and delta is rounded up to a whole number. The tree ends at the lattice. Only leaves are counted, with
        the epsilon that the splits leave.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.PrivTree().release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(privtree, 31,120 partitions, epsilon 1, SIMULATION: not private)
    """

    takes_mask: ClassVar[bool] = True
    key: ClassVar[str] = "privtree"
    title: ClassVar[str] = "PrivTree"
    menu_group: ClassVar[str] = TREES
    summary: ClassVar[str] = "Splits quarters for as long as they seem crowded, to any depth for one price: strong where data are sparse."
    advice: ClassVar[str] = "Close to the least error on small boxes (1.1 to 2 times). Loses on large ones, up to 3.4 times."

    structure_share: float = structure_setting(
        0.5, "Share for splits", "The part of ε that decides which nodes are split; what is left pays for the counts of leaves."
    )
    fan_out: int = setting(4, "Parts per split", choices=(4, 16), help="4 halves each side, 16 halves it twice.")
    threshold: int = setting(0, "Threshold", low=0, high=1_000_000, help="Nodes are split above it; the paper has 0.")

    shrink_small: bool = shrink_setting(default=False, when=None)
    negative: str = negative_setting(when=None)
    fill: str = fill_setting()

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a pure budget on `points`; raises `BudgetError` for any other budget."""
        run = Run.of(self, points, budget, entropy)
        structure, counts = run.split([self.structure_share, 1 - self.structure_share])
        tree, true = self._grow(run, structure)
        leaves = tree.leaves[open_cells(tree, points.domain.mask)[tree.leaves] > 0]
        noisy, variance = np.full(len(tree), np.nan), np.full(len(tree), np.inf)
        noisy[leaves], variance[leaves] = run.measure("counts of leaves", true[leaves], counts)
        return self.make_release(run, tree, noisy, variance)

    def _grow(self, run: Run[PointCounts], epsilon: Fraction) -> tuple[Tree, Integers]:
        """Grow the tree by noisy splits; return it with (n,) true counts of its nodes, which are PRIVATE."""
        domain, cells = run.data.domain, CurveCells.of(run.data)
        order = domain.order
        scale = self._scale(run, epsilon)
        delta = math.ceil(min(scale, LARGEST_SCALE) * Fraction(math.log(self.fan_out) * (1 + 1e-12)))  # a larger scale is refused below
        nodes, halved, number_of_nodes = [np.zeros(1, np.int64)], [0], 1
        children: list[Integers] = []
        true: list[Integers] = []
        while halved[-1] < order and len(nodes[-1]):
            true.append(cells.records(nodes[-1], halved[-1]))
            bias = np.maximum(true[-1] - len(children) * delta, self.threshold - delta)
            split, drawn = np.zeros(len(bias), np.bool_), have_open_cells(nodes[-1], halved[-1], domain)
            split[drawn] = discrete_laplace(bias[drawn], PureBudget(1 / scale), run.entropy) > self.threshold
            step = min(1 if self.fan_out == 4 else 2, order - halved[-1])
            number_of_nodes += int(split.sum()) << 2 * step
            split &= run.has_room(number_of_nodes)
            children.append(np.where(split, 4**step, 0))
            nodes.append(split_nodes(nodes[-1][split], step))
            halved.append(halved[-1] + step)
        if len(nodes[-1]):
            true.append(cells.records(nodes[-1], halved[-1]))
            children.append(np.zeros(len(nodes[-1]), np.int64))
        else:
            nodes.pop()
            halved.pop()
        return quarter_tree(nodes, children, halved, order), np.concatenate(true)

    def _scale(self, run: Run[PointCounts], epsilon: Fraction) -> Fraction:
        """Compute lambda, the scale of the noise on splits, and write the step to the receipt."""
        sensitivity = Fraction(2 * self.fan_out - 1, self.fan_out - 1) * run.data.contributions
        run.add_step("splits", epsilon, sensitivity, "discrete Laplace, along a path", sensitivity / epsilon)
        return sensitivity / epsilon

    def count_variances(self, release: PointRelease, budget: Budget) -> Floats | None:
        """Compute the variance of the noise on the count of each node: finite for the leaves alone."""
        _, counts = require_pure(budget, self.title).split([self.structure_share, 1 - self.structure_share])
        counted = (release.tree.children == 0) & (release.open_cells > 0)
        return np.where(counted, laplace_variance(release.receipt.contributions / counts), np.inf)

    def shares(self, frame: Domain) -> list[Share]:  # noqa: ARG002
        """List the shares of the splits and of the counts."""
        return [
            Share(label="splits", share=self.structure_share, structure=True),
            Share(label="counts of leaves", share=1 - self.structure_share),
        ]

    def with_shares(self, shares: Sequence[float]) -> PrivTree:
        """Return a copy whose share for splits is the first part, limited to its range."""
        return replace(self, structure_share=min(max(shares_of(shares)[0], 0.01), 0.99))
