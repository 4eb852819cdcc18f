"""HTF: nodes are split where both parts become evenly filled, and counted until few records are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import TREES, Share, setting, shares_of
from dpviz.mechanisms.points.base import PointMechanism, fill_setting, least_squares_setting, negative_setting, shrink_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import Budget, PureBudget, exact
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace
from dpviz.privacy.selection import permute_and_flip
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain
from dpviz.space.grids import tree_of
from dpviz.space.interpolate import INTERPOLATED

UNITS_PER_RECORD = 2**16
SENSITIVITY = 2 * UNITS_PER_RECORD + 1
LARGEST = 2**59


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitCells:
    """The occupied cells of the nodes of a level, in any order. PRIVATE.

    Attributes:
        column: (k,) lattice columns.
        row: (k,) lattice rows.
        count: (k,) records in each cell: whole numbers, kept as floats, since they are only added up, which is exact below 2**53.
        node: (k,) number of the node that a cell lies in.
        rectangles: (n, 4) west, south, east, north of the nodes as lattice lines; public.
    """

    column: NDArray[np.int32]
    row: NDArray[np.int32]
    count: Floats
    node: NDArray[np.int32]
    rectangles: Integers

    def __repr__(self) -> str:
        return f"SplitCells({len(self.rectangles):,} nodes)"

    @classmethod
    def of(cls, points: PointCounts) -> Self:
        """Make one node of all occupied cells."""
        side = points.domain.side
        return cls(
            column=points.column,
            row=points.row,
            count=points.count.astype(np.float64),
            node=np.zeros(len(points.column), np.int32),
            rectangles=np.array([[0, 0, side, side]], np.int64),
        )

    def records(self) -> Integers:
        """Count the records in each node, as (n,) whole numbers."""
        return np.bincount(self.node, self.count, len(self.rectangles)).astype(np.int64)

    def keep(self, keep: Mask) -> Self:
        """Keep the nodes that are True in the (n,) mask `keep`, with their cells; the kept nodes are numbered anew."""
        if keep.all():
            return self
        here = np.flatnonzero(keep[self.node])
        number = (np.cumsum(keep) - 1).astype(np.int32)
        return type(self)(
            column=self.column[here],
            row=self.row[here],
            count=self.count[here],
            node=number[self.node[here]],
            rectangles=self.rectangles[keep],
        )

    def cut(self, across: Mask, line: Integers) -> Self:
        """Cut every node in two: by a line between columns if `across`, else between rows.

        The two parts of a node are neighbours in the result; the part with the lower coordinates is the first one.
        """
        parts, first = np.repeat(self.rectangles, 2, axis=0), 2 * np.arange(len(line))
        axis = np.where(across, 0, 1)
        parts[first, axis + 2] = line
        parts[first + 1, axis] = line
        return type(self)(
            column=self.column, row=self.row, count=self.count, node=self._part_of(self.along(across), line), rectangles=parts
        )

    def ends(self, across: Mask) -> tuple[Integers, Integers]:
        """Return (n,) first and (n,) last lattice line of each node along the axis of a cut."""
        west, south, east, north = self.rectangles.T
        return np.where(across, west, south), np.where(across, east, north)

    def along(self, across: Mask) -> NDArray[np.int32]:
        """Return (k,) the column of each cell whose node is cut between columns, and the row of every other cell."""
        if across.all():
            return self.column
        if not across.any():
            return self.row
        return np.where(across[self.node], self.column, self.row)

    def _part_of(self, position: NDArray[np.int32], line: Integers) -> NDArray[np.int32]:
        """Return (k,) number of the part that each cell lies in: 2 node below the node's line, 2 node + 1 from the line on."""
        part = 2 * self.node
        part += position >= line.astype(np.int32)[self.node]
        return part

    def objective(self, across: Mask, line: Integers) -> Integers:
        """Compute (n,) 2**16 times the split objective, each part rounded down: 0 if both parts are evenly filled, 2**17 N at most.

        The objective of a node is o = sum of |c - mu| over the cells of both parts, empty cells included; c is the count of a cell and
        mu is the mean count of its part. Deviations from the mean add up to 0. So sum |c - mu| over a part is twice the sum of c - mu
        over the cells above the mean, which are all occupied. With N = q A + r records on the A cells of a part, the cells above the
        mean are those with c > q. If there are n such cells, their c - mu add up to sum (c - q) - n r / A. This fraction is rounded
        here without floating-point error. The value of a part is at most 2**59: larger values are cut to 2**59.

        One record changes 2**16 o by less than 2**17, and it changes only one part. m records change it by m times that at most: see
        `SENSITIVITY`.

        Args:
            across: (n,) whether the line of a node runs between columns; else it runs between rows.
            line: (n,) lattice lines strictly inside the nodes.

        Source:
            Shaham et al., "HTF: homogeneous tree framework for differentially-private release of location data", SIGSPATIAL
            2021, Equation (5) and Theorem 1: one more record in a part moves mu by 1 / A and its own c by 1, so the sum of |c -
            mu| changes by at most (A - 1) / A + (1 - 1 / A) = 2 - 2 / A. Rounding down adds less than 1, so the change of the
            whole number is below 2**17 + 1. (The change is a whole number, so a sensitivity of 2**17 would suffice; the larger
            number is charged.)
        """
        (low, high), (first, last) = self.ends(across), self.ends(~across)
        parts, area = 2 * len(line), (np.stack([line - low, high - line], axis=1) * (last - first)[:, None]).ravel()
        part = self._part_of(self.along(across), line)
        records = np.bincount(part, self.count, parts).astype(np.int64)
        whole, remainder = np.divmod(records, area)
        if whole.any():
            above = self.count - whole.astype(np.float64)[part]
            number, excess = np.bincount(part, above > 0, parts), np.bincount(part, np.maximum(above, 0, out=above), parts)
        else:
            number, excess = np.bincount(part, minlength=parts), records
        below, beyond = _round_down(excess.astype(np.int64), number.astype(np.int64), remainder, area).reshape(-1, 2).T
        return below + beyond


def _round_down(excess: Integers, number: Integers, remainder: Integers, area: Integers) -> Integers:
    """Compute (p,) floor(2**17 (excess - number remainder / area)), at most 2**59, with Python's integers where 64 bits are too few."""
    large = (number.astype(np.float64) * remainder > 2.0**44) | (excess > 2**41)
    product = 2 * UNITS_PER_RECORD * np.where(large, 0, number * remainder)
    value = 2 * UNITS_PER_RECORD * np.where(large, 0, excess) + (-product) // area
    for index in np.flatnonzero(large).tolist():
        n, r, cells, over = (int(array[index]) for array in (number, remainder, area, excess))
        value[index] = min(2 * UNITS_PER_RECORD * over + (-2 * UNITS_PER_RECORD * n * r) // cells, LARGEST)
    return value


NOT_TRIED = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True, eq=False)
class Splitting:
    """The nodes of a level that are about to be split. PRIVATE, except for the rectangles.

    Attributes:
        run: adds the noise and keeps the receipt.
        cells: occupied cells of the nodes.
        across: (n,) whether a node is split by a line between columns; else by a line between rows; public.
        epsilon: epsilon of all objectives that are evaluated on this level together.
        depth: of the nodes in the tree; for the receipt.
    """

    run: Run[PointCounts]
    cells: SplitCells
    across: Mask
    epsilon: Fraction
    depth: int

    @property
    def sensitivity(self) -> int:
        """Sensitivity of one objective, in units of 2**-16."""
        return SENSITIVITY * self.run.data.contributions

    @property
    def ends(self) -> tuple[Integers, Integers]:
        """First and last lattice line of each node along the axis of its split, each (n,); splits lie strictly between them."""
        return self.cells.ends(self.across)

    @property
    def middles(self) -> Integers:
        """Middle line of each node, (n,); it does not depend on the data."""
        left, right = self.ends
        return left + (right - left) // 2

    def note(self, noise: str, evaluations: int) -> None:
        """Write the step to the receipt: the name of its noise, and the number of objectives evaluated per node."""
        purpose, sensitivity = "splits, by objectives in units of 1/65,536", self.sensitivity * evaluations
        scale = sensitivity / self.epsilon
        self.run.add_step(purpose, self.epsilon, sensitivity, noise, scale, level=self.depth, counts=len(self.across))


def by_rounds(nodes: Splitting, rounds: int) -> Integers:
    """Find (n,) lines by Algorithm 1, for all nodes at the same time.

    At most 2 * rounds + 1 noisy objectives of a node are drawn, each with an equal part of epsilon. For each node the search keeps an
    interval l..r and the best line k inside it. Each round tries the middle of l..k and the middle of k..r, and narrows the interval
    around the best of the three lines. The noisy objective of k is drawn once and kept. A node two cells wide has only one line, so
    nothing is tried there.

    Source:
        Shaham et al., SIGSPATIAL 2021, Algorithm 1. The paper's midpoint floor((r - l) / 2) is read as l + floor((r - l) / 2). The
        ends of an interval are never candidates.
    """
    nodes.note("discrete Laplace", 2 * rounds + 1)
    budget = PureBudget(nodes.epsilon / (2 * rounds + 1))

    left, right = nodes.ends
    inside = left + 1

    def noisy(line: Integers, tried: Mask) -> Integers:
        value = np.full(len(line), NOT_TRIED)
        if tried.any():
            true = nodes.cells.objective(nodes.across, np.where(tried, line, inside))[tried]
            value[tried] = discrete_laplace(true, budget, nodes.run.entropy, nodes.sensitivity)
        return value

    searched = right - left > 2
    best = nodes.middles
    least = noisy(best, searched)
    for _ in range(rounds):
        lower, upper = left + (best - left) // 2, best + (right - best) // 2
        below, above = noisy(lower, searched & (lower > left)), noisy(upper, searched & (upper > best))
        down = (below < least) & (below <= above)
        up = ~down & (above < least)
        left, right = np.where(up, best, np.where(down, left, lower)), np.where(down, best, np.where(up, right, upper))
        best, least = np.where(down, lower, np.where(up, upper, best)), np.minimum(least, np.minimum(below, above))
    return best


def candidates(low: Integers, high: Integers, most: int, inner: float) -> tuple[Integers, Mask]:
    """Place evenly spaced lines in the middle part of each node; they do not depend on the data.

    Args:
        low: (n,) first lattice line of each node.
        high: (n,) last lattice line of each node, at least low + 2.
        most: largest number of lines per node.
        inner: share of the node's width in which the lines lie, above 0 and at most 1 (the whole node). This part always contains
            the middle line.

    Returns:
        (n, k) lines strictly inside the nodes, and (n, k) whether an entry is a candidate.
    """
    width = high - low
    margin = np.minimum(np.floor(width * (1 - inner) / 2).astype(np.int64), (width - 2) // 2)
    begin, span = (low + margin)[:, None], (width - 2 * margin)[:, None]
    number = np.minimum(span - 1, most)
    order = np.arange(min(most, int(span.max(initial=2)) - 1))
    valid = order < number
    return np.where(valid, begin + (order + 1) * span // (number + 1), begin + 1), valid


def by_permute_and_flip(nodes: Splitting, most: int, inner: float) -> Integers:
    """Choose (n,) lines by permute-and-flip among at most `most` `candidates` per node; one choice spends all of epsilon.

    Source:
        Own. The line with the smallest `SplitCells.objective` has the largest probability.
    """
    nodes.note("permute-and-flip", 1)
    lines, valid = candidates(*nodes.ends, most, inner)
    value = np.stack([nodes.cells.objective(nodes.across, line) for line in lines.T], axis=1)
    chosen = permute_and_flip(-value, valid, PureBudget(nodes.epsilon), nodes.run.entropy, nodes.sensitivity)
    return np.take_along_axis(lines, chosen[:, None], axis=1)[:, 0]


MIDDLE = "middle"
SEARCHES = ("permute-and-flip", "rounds", MIDDLE)
STOPS = ("noise", "count")
RATIOS = {"2^(1/3)": 2 ** (1 / 3), "2^(1/6)": 2 ** (1 / 6), "2^(1/12)": 2 ** (1 / 12)}
SMALLEST_HEIGHT_EPSILON = Fraction(1, 10_000)
LARGEST_HEIGHT_SHARE = Fraction(1, 10)
LARGEST_FIXED_SPLITS = Fraction(1, 4)
RECORDS_PER_LEAF = 10
APPROXIMATE = "released counts decide which partitions are split and are used again, which leans those near the threshold"


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The epsilons that a path from the root to a leaf spends on each level.

    Attributes:
        splits: epsilon of the splits of one level.
        counts: epsilon of the counts of each depth, root first.
        reused: whether the count of an early leaf also spends the epsilon of the splits that are not made below it.
    """

    splits: Fraction
    counts: list[Fraction]
    reused: bool = True

    @property
    def height(self) -> int:
        """Number of levels of splits."""
        return len(self.counts) - 1

    def remaining(self, depth: int) -> Fraction:
        """Return the epsilon that a path ending at `depth` has left for the counts of its last node."""
        return sum(self.counts[depth:], Fraction(0)) + self.reused * self.splits * (self.height - depth)


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """One depth of the tree as it was released.

    Attributes:
        rectangles: (n, 4) west, south, east, north as lattice lines.
        split: (n,) whether a node has two children.
        value: (n,) noisy counts; NaN where a count is not kept.
        variance: (n,) variances of the noise; infinite where a count is not kept.
    """

    rectangles: Integers
    split: Mask
    value: Floats
    variance: Floats


@dataclass(frozen=True, kw_only=True)
class Htf(PointMechanism):
    """A binary tree that is split where both parts become evenly filled, and ends where noisy counts are small.

    Protects: adding or removing one record (with a person column: one person's bounded records). A person's m records
    may lie on m paths: each costs epsilon / m on its own, for scores and counts have m times the sensitivity of one record.

    Privacy:
        A noisy total determines the height. Given what was released before, the nodes that contain a given record form one path. Each
        node on the path is counted with the epsilon of its depth. Then the node is either split, which costs the epsilon of one level of
        splits, or counted again with exactly the epsilon that its path has left. So every path spends at most epsilon. A path spends less
        in two cases only: where a node is two cells wide, its split is forced and costs nothing; and where the path ends early with
        `reuse_splits` off, the epsilon of the missing splits stays unspent. Whether a node is split is a function of released counts.
        Partitions and counts are drawn in one pass from the top, and the budget is charged as if all splits below early leaves had been
        made. If m_i of a person's m records lie in the i-th node of a level, they shift its count and scores by at most m_i times what
        one record does. The m_i add up to m, and all noise has m times the scale that it has for one record.

    Source:
        Shaham, Ghinita, Ahuja, Krumm, Shahabi, "HTF: homogeneous tree framework for differentially-private release of location
        data", SIGSPATIAL 2021, Algorithms 1 to 3. The paper's form is search="rounds", split_epsilon=1e-3 (or 5e-4), ratio=
        "2^(1/3)", extra=0, stop="count", stop_cells=5, reuse_splits=False, combine=False, shrink_small=False, fill=
        "uniform".

    Deviations:
        With all settings: noise is exact and discrete; objectives are rounded down to multiples of 2**-16. Midpoints are l + floor((r - l)
        / 2), splits lie strictly inside a node, and a node one cell wide is split along its other axis. Odd levels, counted from the
        bottom, are split between columns, as the paper's text says; its pseudocode can be read either way. The height is at least 1. A
        height that follows from the noisy total is at most twice the lattice's order, plus the extra levels. A node that is known to be a
        leaf before its count is drawn (at the bottom, or with few cells) is counted once, with all the epsilon that its path has left; at
        the bottom the paper's formula would divide by zero. With `split_epsilon`, all splits of a path together cost at most a quarter of
        epsilon. The height costs at most a tenth.
        Additions of this package, each a setting: permute-and-flip over lines in the middle part of the node, or no search at all; a
        share of epsilon for splits; levels beyond the estimated height, since uneven splits need more levels; budgets that grow more
        slowly with depth; a stopping threshold that is a multiple of the noise; early leaves that also spend the epsilon of the splits
        below them, which Algorithm 3 leaves unspent (reuse_splits); a leaf's first count combined with its second one; least squares;
        small leaves drawn towards 0; interpolation inside leaves. The lines tried are few and near the middle, because a free search
        mostly cuts off thin margins, which uses up the height.

    What does not hold here:
        In the paper HTF consistently beats grids and quadtrees (Figures 4 to 6). On a million made-up homes in Los Angeles, at epsilon
        0.1, the paper's form has mean relative errors of 6.9 to 10.1 %, depending on its settings, the default one 5.6 %, UG 9.1 % and AG
        3.2 %; at epsilon 0.5 3.1 to 5.6 %, 1.6 %, 4.0 % and 1.7 % (5 runs: dpviz paper htf 4 --size medium). On the paper's 3.5 million,
        at epsilon 0.1, it has 5.6 to 10.1 %, the default form 3.4 %, UG 15.9 % and AG 5.4 % (5 runs: dpviz paper htf 4 --size paper
        --seeds 5). On 100,000 homes at epsilon 0.1 it errs 1.9 times as much as a quadtree of 8 binary levels (1.3 to 2.8; 8 runs: dpviz
        paper htf 5). The search is what loses: with search="middle" and all else as in the paper, its error is 10.7 % in place of 25.2 %
        (100,000 homes, epsilon 0.1, 8 runs).

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> dv.Htf().release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(htf, 35,617 partitions, epsilon 1, SIMULATION: not private)
    """

    key: ClassVar[str] = "htf"
    title: ClassVar[str] = "HTF"
    menu_group: ClassVar[str] = TREES
    summary: ClassVar[str] = "Splits partitions where both sides become evenly filled, and stops where few records are left."
    advice: ClassVar[str] = (
        "Within 2.6 times the least error in a city, around one crowd and on roads. Loses where records lie evenly or on"
        " routes, up to 6 times."
    )
    extra_tab: ClassVar[str] = "Split objective"

    search: str = setting(
        "permute-and-flip",
        "Split search",
        choices=SEARCHES,
        help="One choice among a few lines, the paper's search in rounds, or halves, which cost nothing.",
    )
    lines: int = setting(
        3, "Lines tried", low=2, high=63, when=("search", "permute-and-flip"), help="Evenly spaced candidates per partition."
    )
    inner: float = setting(
        0.5,
        "Middle part tried",
        low=0.01,
        high=1,
        when=("search", "permute-and-flip"),
        help="Candidates lie in this part; 1 is everywhere.",
    )
    rounds: int = setting(3, "Rounds", low=1, high=8, when=("search", "rounds"), help="Each round looks at two more lines.")
    height: int | None = setting(
        None, "Height", low=1, high=48, optional=True, help="Levels of splits at most; found from a noisy total if empty."
    )
    height_share: float = setting(
        0.01, "Share for the height", low=0.001, high=0.1, when=("height", None), help="Part of ε for the total; at least ε = 0.0001."
    )
    extra: int = setting(
        4, "Extra levels", low=0, high=24, when=("height", None), help="Added to the height from the total: uneven splits need more."
    )
    split_share: float = setting(
        0.05, "Share for splits", low=0.001, high=0.8, when=("split_epsilon", None), help="Part of ε that finds the splits of a path."
    )
    split_epsilon: float | None = setting(
        None, "ε per level of splits", low=1e-6, high=10, optional=True, help="Instead of a share; at most a quarter of ε in all."
    )
    ratio: str = setting("2^(1/12)", "Growth of ε per level", choices=tuple(RATIOS), help="How much more the next level's counts get.")
    stop: str = setting("noise", "Stop below", choices=STOPS, help="A multiple of the noise, or a number of records.")
    stop_noise: float = setting(0.5, "Times the noise", low=0, high=100, when=("stop", "noise"), help="Noise scale of the count itself.")
    stop_count: int = setting(100, "Stop count", low=0, high=10**9, when=("stop", "count"), help="Records at which a partition ends.")
    stop_cells: int = setting(2, "Stop cells", low=1, high=10**6, help="Partitions with fewer cells are not split.")
    reuse_splits: bool = setting(
        True,
        "Early leaves get unspent splits",
        help="Count them with the ε of the splits that are not made below them; the paper leaves it unspent.",
    )
    least_squares: bool = least_squares_setting()
    combine: bool = setting(True, "Use all counts", help="Combine a path's counts with the fresh one; else only leaves are kept.")
    shrink_small: bool = shrink_setting(default=True)
    negative: str = negative_setting()
    fill: str = fill_setting(INTERPOLATED)

    def release(self, points: PointCounts, budget: Budget, entropy: Entropy) -> PointRelease:
        """Spend a pure budget on `points`; raises `BudgetError` for any other budget."""
        run = Run.of(self, points, budget, entropy)
        spending = self.spending(run, run.epsilon)
        levels = self._grow(run, spending)
        tree = tree_of([level.rectangles for level in levels], [np.where(level.split, 2, 0) for level in levels])
        value, variance = (np.concatenate([getattr(level, name) for level in levels]) for name in ("value", "variance"))
        notes, approximate = self._list_notes(spending, len(levels) - 1), APPROXIMATE if self.combine else None
        return self.make_release(run, tree, value, variance, notes=notes, approximate=approximate)

    def spending(self, run: Run[PointCounts], epsilon: Fraction) -> Spending:
        """Determine the height and divide the budget; the parts add up to epsilon exactly.

        The height is floor(log2(N epsilon / 10)) for a noisy total N, limited to 1 up to twice the lattice's order, plus the extra levels.
        """
        height_epsilon, height = Fraction(0), self.height
        if height is None:
            share = max(SMALLEST_HEIGHT_EPSILON, epsilon * exact(self.height_share, "The share for the height"))
            height_epsilon = min(share, epsilon * LARGEST_HEIGHT_SHARE)
            total = run.measure_total("total, for the height", height_epsilon)
            leaves = int(max(total, 1) * epsilon / RECORDS_PER_LEAF)
            height = min(max(leaves.bit_length() - 1, 1), 2 * run.data.domain.order) + self.extra
        if self.search == MIDDLE:
            splits = Fraction(0)
        elif self.split_epsilon is None:
            splits = epsilon * exact(self.split_share, "The share for splits") / height
        else:
            splits = min(exact(self.split_epsilon, "The epsilon per level"), epsilon * LARGEST_FIXED_SPLITS / height)
        weights = [RATIOS[self.ratio] ** depth for depth in range(height + 1)]
        return Spending(
            splits=splits, counts=PureBudget(epsilon - height_epsilon - height * splits).split(weights), reused=self.reuse_splits
        )

    def _grow(self, run: Run[PointCounts], spending: Spending) -> list[Level]:
        """Count and split the nodes, one depth after the other; the receipt gets a step for every depth, even if no node has this depth."""
        levels, cells, nodes = [], SplitCells.of(run.data), 0
        for depth in range(spending.height + 1):
            width, height = (cells.rectangles[:, 2:] - cells.rectangles[:, :2]).T
            has_room = depth < spending.height and run.has_room(nodes + 3 * len(width))
            splittable = (width * height >= max(self.stop_cells, 2)) & has_room
            level = self._count_level(run, spending, depth, cells, splittable)
            if len(level.split):
                levels.append(level)
            nodes += len(level.split)
            if depth < spending.height:
                across = (height == 1) | ((width > 1) & ((spending.height - depth) % 2 == 1))
                across = across[level.split]
                nodes_to_split = Splitting(run=run, cells=cells.keep(level.split), across=across, epsilon=spending.splits, depth=depth)
                cells = nodes_to_split.cells.cut(across, self._choose_lines(nodes_to_split))
        return levels

    def _choose_lines(self, nodes: Splitting) -> Integers:
        if self.search == MIDDLE:
            return nodes.middles
        return by_rounds(nodes, self.rounds) if self.search == "rounds" else by_permute_and_flip(nodes, self.lines, self.inner)

    def _count_level(self, run: Run[PointCounts], spending: Spending, depth: int, cells: SplitCells, splittable: Mask) -> Level:
        """Count the nodes of one depth, (n,) of which are `splittable`.

        A node that cannot be split is counted once with all the epsilon that its path has left. Every other node is counted with the
        epsilon of its depth. If this count is too small for a split, the node is counted again with the epsilon that is left.
        """
        true, epsilon, last = cells.records(), spending.counts[depth], depth == spending.height
        value, variance = np.full(len(true), np.nan), np.full(len(true), np.inf)
        value[~splittable], variance[~splittable] = run.measure(
            "counts" if last else "counts of early leaves", true[~splittable], spending.remaining(depth), depth, replaces_later=not last
        )
        if last:
            return Level(rectangles=cells.rectangles, split=splittable, value=value, variance=variance)
        value[splittable], variance[splittable] = run.measure("counts", true[splittable], epsilon, depth)
        threshold = self.stop_count if self.stop == "count" else self.stop_noise / float(epsilon / run.data.contributions)
        ends = np.flatnonzero(splittable)[value[splittable] <= threshold]
        second, second_variance = run.measure(
            "fresh counts of early leaves", true[ends], spending.remaining(depth) - epsilon, depth, replaces_later=True
        )
        split = splittable.copy()
        split[ends] = False
        if self.combine:
            weight = second_variance / (second_variance + variance[ends])
            value[ends], variance[ends] = weight * value[ends] + (1 - weight) * second, weight * variance[ends]
        else:
            value[ends], variance[ends] = second, second_variance
            value[split], variance[split] = np.nan, np.inf
        return Level(rectangles=cells.rectangles, split=split, value=value, variance=variance)

    def _list_notes(self, spending: Spending, depth: int) -> tuple[str, ...]:
        forced = "Splits that were forced, of partitions two cells wide, cost nothing; they are charged all the same."
        notes = ["All splits are halves, which cost nothing." if self.search == MIDDLE else forced]
        if self.split_epsilon is not None and 0 < spending.splits < exact(self.split_epsilon, "The epsilon per level"):
            notes.append(f"Splits got ε {float(spending.splits):.4g} per level: a quarter of ε at most goes to all of them.")
        if not self.reuse_splits:
            notes.append("Paths that end early leave the ε of the splits that they were spared unspent.")
        if depth < spending.height:
            notes.append(f"The tree ends after {depth} of {spending.height} levels; what was left went to its leaves.")
        return tuple(notes)

    def shares(self, frame: Domain) -> list[Share]:  # noqa: ARG002
        """List the shares for the height, the splits and the counts; a fixed epsilon for splits is no share and is part of the counts."""
        height = [] if self.height else [Share(label="height", share=self.height_share, structure=True)]
        paid = sum(share.share for share in height)
        if self.search == MIDDLE:
            return [*height, Share(label="counts", share=1 - paid)]
        if self.split_epsilon is not None:
            return [*height, Share(label="splits and counts", share=1 - paid)]
        splits = Share(label="splits", share=self.split_share, structure=True)
        return [*height, splits, Share(label="counts", share=1 - paid - self.split_share)]

    def with_shares(self, shares: Sequence[float]) -> Htf:
        """Return a copy with other shares for the height and the splits, limited to their ranges."""
        parts = shares_of(shares)
        changed: dict[str, Any] = {}
        if not self.height:
            changed["height_share"] = parts.pop(0)
        if self.split_epsilon is None and self.search != MIDDLE:
            changed["split_share"] = parts.pop(0)
        low_high = {rule.name: (rule.low or 0, rule.high or 1) for rule in self.rules()}
        return replace(self, **{name: min(max(part, low_high[name][0]), low_high[name][1]) for name, part in changed.items()})
