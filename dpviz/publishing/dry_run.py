"""How far a release would be off, from the mechanism alone: no record is looked at, nothing is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.data.flows import Flows
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.private_data import PrivateData, emptied
from dpviz.release.flow_release import INTERVAL_WIDTH as TRIPS_WIDTH
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import INTERVAL_WIDTH as POINTS_WIDTH
from dpviz.release.point_release import Release
from dpviz.space.regions import ROOT

SEED = 0
FROM_DATA = (
    "This mechanism chooses partitions by the data. These figures are those of no data at all: a real release has other partitions,"
    " and other errors on them."
)
ONLY_NOISE = "These figures are the noise alone: what is assumed inside partitions, and what later steps change, is not in them."


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """What can be said before anything is spent. PUBLIC: made from no records.

    Attributes:
        by_level: one row per level, coarsest first: level (0 for the whole), of (what it is),
            numbers (partitions; missing for trips, whose released pairs are data), stddev (of the noise on a count, root mean
            square; 0 if exact; missing where a level below the whole is not measured and only adds up) and
            interval (half the width of the 95 % interval).
        receipt: what would be spent on what.
        note: what these figures leave out, in words.
    """

    by_level: pd.DataFrame
    receipt: Receipt
    note: str


def expected(mechanism: Any, data: PrivateData, budget: Budget) -> Expected:
    """Expected error per level, by running the mechanism on the same public frame without a single record.

    Args:
        mechanism: built.
        data: give the frame, the unit and the bound per unit; their records are dropped before anything is done.
        budget: what would be spent.

    Raises:
        DpvizError: settings, frame or budget that do not fit: what a real draw would raise, too.
    """
    release = dry_run(mechanism, data, budget)
    rows = _point_rows(release) if isinstance(release, Release) else _trip_rows(release)
    notes = [FROM_DATA] if from_data(mechanism, release, data) else []
    return Expected(by_level=pd.DataFrame(rows), receipt=release.receipt, note=" ".join([*notes, ONLY_NOISE]))


def dry_run(mechanism: Any, data: PrivateData, budget: Budget) -> Release | FlowRelease:
    """A release of no records, on the frame and with the unit and bounds of `data`; seeded, so never published."""
    release: Release | FlowRelease = mechanism.release(emptied(data), budget, Entropy.seeded(SEED))
    return release


def from_data(mechanism: Any, release: Release | FlowRelease, data: PrivateData) -> bool:
    """Whether what is released, or where partitions lie, depends on the records that there would be."""
    if isinstance(data, Flows):
        return isinstance(release, FlowRelease) and not release.every_pair
    return release.approximate is not None or any(share.structure for share in mechanism.shares(data.domain))


def _point_rows(release: Release) -> list[dict[str, Any]]:
    rows = []
    for level in range(release.height + 1):
        nodes = release.nodes(level)
        stddev = _root_mean_square(release.stddev[nodes])
        of = "the whole domain" if len(nodes) == 1 else f"partitions of level {level}"
        rows.append({"level": level, "of": of, "numbers": len(nodes), "stddev": stddev, "interval": POINTS_WIDTH * stddev})
    return rows


def _trip_rows(release: FlowRelease) -> list[dict[str, Any]]:
    rows = []
    for level in range(release.depth + 1):
        stddev = _trip_stddev(release, level)
        of = release.tree.title(2 * level)
        rows.append({"level": level, "of": of, "numbers": None, "stddev": stddev, "interval": TRIPS_WIDTH * stddev})
    return rows


def _trip_stddev(release: FlowRelease, level: int) -> float:
    """Of one number of a level: measured, or for the whole the sum of all that were; missing where it depends on the pair."""
    variance = release.stages[2 * level].variance
    if np.isfinite(variance):
        return float(np.sqrt(variance))
    if level or not release.every_pair:
        return float("nan")
    return float(release.answer([ROOT], [ROOT], levels=(0, 0), spread=True)[1][0])


def _root_mean_square(stddev: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(stddev**2)))
