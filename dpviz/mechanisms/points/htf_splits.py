"""Where HTF splits the nodes of a level: the paper's search in rounds, and permute-and-flip over evenly spaced lines."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpviz.data.split_objective import SENSITIVITY, SplitCells
from dpviz.mechanisms.noisy_counts import Study
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.noise import discrete_laplace
from dpviz.privacy.receipt import Step
from dpviz.privacy.selection import permute_and_flip

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

NOT_TRIED = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True, eq=False)
class Splitting:
    """The nodes of a level that are about to be split. PRIVATE but for the rectangles.

    Attributes:
        study: draws noise and keeps the receipt.
        cells: their occupied cells.
        across: (n,) split by a line between columns, else between rows; public.
        epsilon: what one unit may lose by all that is looked at here.
        level: for the receipt, 0 for the whole domain.
    """

    study: Study
    cells: SplitCells
    across: Mask
    epsilon: Fraction
    level: int

    @property
    def sensitivity(self) -> int:
        """Of one objective in units of 2**-16."""
        return SENSITIVITY * self.study.points.contributions

    @property
    def ends(self) -> tuple[Integers, Integers]:
        """(n,) first and last lattice line of each node along its axis; splits lie strictly between them."""
        west, south, east, north = self.cells.rectangles.T
        return np.where(self.across, west, south), np.where(self.across, east, north)

    @property
    def middles(self) -> Integers:
        """(n,) the middle line of each node, whatever the data."""
        left, right = self.ends
        return left + (right - left) // 2

    def note(self, noise: str, evaluations: int) -> None:
        """Write the step to the receipt."""
        sensitivity = Fraction(self.sensitivity * evaluations)
        self.study.steps.append(
            Step(
                purpose="splits, by objectives in units of 1/65,536",
                amount=self.epsilon,
                sensitivity=sensitivity,
                noise=noise,
                scale=sensitivity / self.epsilon,
                level=self.level,
                counts=len(self.across),
            )
        )


def by_rounds(nodes: Splitting, rounds: int) -> Integers:
    """(n,) lines by Algorithm 1, all nodes in step: 2 rounds + 1 noisy objectives at most, each with its part of epsilon.

    A node keeps an interval l..r and the best line k in it. Each round tries the middles of l..k and k..r and closes in on the
    best of the three; the noisy objective of k is kept, not drawn again. Nodes two wide have one line and try nothing.

    Source:
        Shaham et al., SIGSPATIAL 2021, Algorithm 1. Its midpoints floor((r - l) / 2) are meant as l + floor((r - l) / 2); an
        interval's end is never a candidate.
    """
    nodes.note("discrete Laplace", 2 * rounds + 1)
    budget = PureBudget(nodes.epsilon / (2 * rounds + 1))

    left, right = nodes.ends
    inside = left + 1

    def noisy(line: Integers, tried: Mask) -> Integers:
        value = np.full(len(line), NOT_TRIED)
        if tried.any():
            true = nodes.cells.objective(nodes.across, np.where(tried, line, inside))[tried]
            value[tried] = discrete_laplace(true, budget, nodes.study.entropy, nodes.sensitivity)
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
    """Evenly spaced lines in the middle of each node, whatever the data.

    Args:
        low: (n,) first lattice line of each node.
        high: (n,) last one, at least low + 2.
        most: lines per node at most.
        inner: the part of the node that they lie in, above 0, 1 for all of it; the middle line is always in.

    Returns:
        (n, k) lines strictly inside the nodes, and (n, k) which entries are candidates.
    """
    width = high - low
    margin = np.minimum(np.floor(width * (1 - inner) / 2).astype(np.int64), (width - 2) // 2)
    begin, span = (low + margin)[:, None], (width - 2 * margin)[:, None]
    number = np.minimum(span - 1, most)
    place = np.arange(min(most, int(span.max(initial=2)) - 1))
    valid = place < number
    return np.where(valid, begin + (place + 1) * span // (number + 1), begin + 1), valid


def by_permute_and_flip(nodes: Splitting, most: int, inner: float) -> Integers:
    """(n,) lines by permute-and-flip over at most `most` `candidates`: one choice with all of epsilon.

    Source:
        Own. The line with the least `SplitCells.objective` is the likeliest.
    """
    nodes.note("permute-and-flip", 1)
    lines, valid = candidates(*nodes.ends, most, inner)
    value = np.stack([nodes.cells.objective(nodes.across, line) for line in lines.T], axis=1)
    chosen = permute_and_flip(-value, valid, PureBudget(nodes.epsilon), nodes.study.entropy, nodes.sensitivity)
    return np.take_along_axis(lines, chosen[:, None], axis=1)[:, 0]
