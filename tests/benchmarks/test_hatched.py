"""How much of a map of the app would be marked as uncertain, since its interval contains 0, by budget and level.

    pytest -n 0 -s -m benchmark tests/benchmarks/test_hatched.py

Pages are as they open, but for ε. A line has means over five seeds, in percent: of the parts that truly have records, how many are
uncertain ("occupied"); the same of the parts with a released count of at least 0.5 ("looking so"); of all parts; and of the records.
Parts of points are a mechanism's own partitions, or the equal squares of a zoom level with the intervals of `answer_interval`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import dpviz as dv
from dpviz.app.state.kinds import KINDS
from dpviz.app.state.page import usual_page
from dpviz.arrays import Floats, Integers
from dpviz.evaluation.metrics import PRESENT
from dpviz.release.squares import block_boxes, level_like
from dpviz.view.points_canvas import find_readable_level

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1200)]

EPSILONS = ("0.5", "0.1", "0.02")
SEEDS = range(1, 6)
SHOWN_ZOOM, SHOWN_BLOCKS, SHOWN_ARCS = 6, 3, 1500  # with which the three pages open
SQUARES = range(3, 8)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts that a map shows: (k,) true counts, released counts, and lower ends of their intervals."""

    true: Integers
    released: Floats
    low: Floats

    def shares(self) -> Floats:
        """Return the shares of a line of the table."""
        uncertain, occupied, looks = self.low <= 0, self.true > 0, self.released >= PRESENT
        groups = (uncertain[occupied], uncertain[looks], uncertain)
        return np.array([*(group.mean() if len(group) else 0 for group in groups), self.true[uncertain].sum() / max(self.true.sum(), 1)])


def of_points(release, points) -> Iterator[tuple[str, Parts]]:
    """The partitions of the level of the page and of the one that can be read, and the squares of zoom levels."""
    truth = release.tree.sums(points.column, points.row, points.count)
    shown, readable = level_like(release, SHOWN_ZOOM), find_readable_level(release)
    for name, level in ((f"partitions, shown level {shown}", shown), ("partitions, readable level", readable)):
        nodes = release.open_nodes(level)
        yield name, Parts(true=truth[nodes], released=release.count[nodes], low=release.node_interval(nodes)[0])
    for zoom in SQUARES:
        boxes = block_boxes(points.domain, zoom, *np.divmod(np.arange(4**zoom), 1 << zoom))
        yield (
            f"squares of zoom {zoom}",
            Parts(true=points.blocks(zoom).ravel(), released=release.answer(boxes), low=release.answer_interval(boxes)[0]),
        )


def of_trips(release, trips) -> Iterator[tuple[str, Parts]]:
    """The pairs of two states that have arcs, the largest first, with intervals that hold for all at once."""
    truth = dv.evaluate(release, trips).true_level(2)
    stage = release.stages[4]
    drawn = np.flatnonzero((stage.origin != stage.destination) & (stage.count != 0))
    drawn = drawn[np.argsort(-np.abs(stage.count[drawn]), kind="stable")[:SHOWN_ARCS]]
    true = truth.at(stage.origin, stage.destination)
    for name, joint in (("arcs of states, all at once", True), ("arcs of states, one by one", False)):
        low = release.stage_interval(4, joint=joint)[0]
        yield name, Parts(true=true[drawn], released=stage.count[drawn].astype(np.float64), low=low[drawn])


def of_areas(release, areas) -> Iterator[tuple[str, Parts]]:
    """The regions of each level; the page opens with the blocks."""
    for level in range(1, SHOWN_BLOCKS + 1):
        name = f"regions, {release.regions.levels[level - 1]}{', shown level' * (level == SHOWN_BLOCKS)}"
        released, (low, _) = release.count[release.nodes(level)], release.interval(level)
        yield name, Parts(true=areas.level_counts()[level], released=released, low=low)


FAMILIES: dict[str, Callable[..., Iterator[tuple[str, Parts]]]] = {"points": of_points, "trips": of_trips, "areas": of_areas}


@pytest.mark.parametrize("family", FAMILIES)
def test_how_much_of_a_page_would_be_marked_as_uncertain(family, capsys):
    draft = usual_page(KINDS[family]).draft
    private, mechanism, lines = dv.load_sample(draft.sample), draft.build(), []
    for epsilon in EPSILONS:
        budget, found = replace(draft.run, epsilon=Fraction(epsilon)).budget(KINDS[family].family), {}
        for seed in SEEDS:
            release = mechanism.release(private, budget, dv.Entropy.seeded(seed))
            for name, parts in FAMILIES[family](release, private):
                found.setdefault(name, []).append((*parts.shares(), len(parts.true)))
        for name, rows in found.items():
            mean = np.mean(rows, axis=0)
            lines.append(f"{epsilon:>5}  {name:30}" + "".join(f"{100 * share:12.1f}" for share in mean[:4]) + f"{mean[4]:12,.0f}")
    with capsys.disabled():
        columns = "".join(f"{name:>12}" for name in ("occupied", "looking so", "all parts", "of records", "parts"))
        print(f"\n{draft.sample}, {mechanism.key}\n    ε  {'uncertain, %':30}{columns}")
        print("\n".join(lines))
    assert lines
