"""The six synthetic sets of trips on which the TopDown paper for origins and destinations was tried."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.data.flows import Flows
from dpviz.errors import InputError
from dpviz.space.regions import Regions

PAPER_SEED = 253_866  # of the seeds tried: the paper's 435 random leaves
PARTITIONS = ("binary", "random")
DENSITIES = {"complete": 1.0, "dense": 0.5, "sparse": 0.01}
MOST_PAIRS = 20_000_000

_BINARY_LEVELS, _RANDOM_LEVELS = 8, 4
_FEWEST, _MOST = 2, 10
_SHAPE = 3.0
_MEAN = {  # trips per pair with trips: users over pairs in the paper's Table 1
    ("binary", "complete"): 1_051_271 / 65_536,
    ("binary", "dense"): 734_688 / 32_768,
    ("binary", "sparse"): 23_302 / 655,
    ("random", "complete"): 2_019_580 / 189_225,
    ("random", "dense"): 1_003_943 / 95_612,
    ("random", "sparse"): 67_840 / 1_892,
}

Integers = NDArray[np.int64]


def synthetic_flows(partition: str, density: str, *, seed: int = PAPER_SEED) -> Flows:
    """Trips with a heavy tail between areas of a nested partition of nowhere.

    "binary" cuts every area in two, 8 times: 256 leaves. "random" cuts every area into 2 to 10 parts, each number as likely
    as the other, 4 times: 1,296 leaves are to be expected; the default seed was chosen for the paper's 435. A share of the
    pairs, chosen at random, has trips: all ("complete"), 50 % ("dense") or 1 % ("sparse"), rounded down. Their number is
    drawn from the Pareto law P(X > x) = (1 + x / s)**-3, rounded, at least 1.

    The paper prints neither exponent nor scale. Exponent 3 with s = 2 mean, the mean of each set being that of Table 1, agrees
    with all that is published: the stability histogram's false negative rates give the share of pairs under its
    thresholds, for example 8.2, 0.042 and 63 % over 28, 271 and 3.7 trips in "random complete", where this law has 8.1, 0.039 and 62 %.

    Args:
        partition: "binary" or "random".
        density: "complete", "dense" or "sparse".
        seed: decides the random partition, too, which is the same for the three densities.

    Returns:
        Trips between regions without geometry.

    Raises:
        InputError: an unknown partition or density; a seed whose random partition has more than 20,000,000 pairs.

    Source:
        Boninsegna, Silvestri, "Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown
        Approach", 2025, Section 5, "Synthetic Datasets", and Table 1.
    """
    if partition not in PARTITIONS or density not in DENSITIES:
        raise InputError(f"Choose one of {', '.join(PARTITIONS)} and one of {', '.join(DENSITIES)}.")
    rng = np.random.default_rng(seed)
    regions = _partition(_parts(rng, partition))
    width = regions.size(regions.depth)
    if width * width > MOST_PAIRS:
        raise InputError("This seed gives a partition with too many pairs; choose another one.")
    number = int(DENSITIES[density] * width * width)
    pair = np.sort(rng.choice(width * width, number, replace=False, shuffle=False))
    origin, destination = np.divmod(pair, width)
    return Flows(regions, origin.astype(np.int32), destination.astype(np.int32), _pareto(rng, number, _MEAN[partition, density]))


def _pareto(rng: np.random.Generator, number: int, mean: float) -> Integers:
    """(number,) whole numbers, at least 1."""
    return np.maximum(np.rint((_SHAPE - 1) * mean * rng.pareto(_SHAPE, number)), 1).astype(np.int64)


def _parts(rng: np.random.Generator, partition: str) -> list[Integers]:
    """How many parts each area is cut into, level by level."""
    if partition == "binary":
        return [np.full(2**level, 2) for level in range(_BINARY_LEVELS)]
    parts: list[Integers] = []
    for _ in range(_RANDOM_LEVELS):
        areas = int(parts[-1].sum()) if parts else 1
        parts.append(rng.integers(_FEWEST, _MOST, areas, endpoint=True))
    return parts


def _partition(parts: list[Integers]) -> Regions:
    """Regions whose ids are paths: the third part of the first part of everything is "1.3"."""
    path = np.array([""], object)
    ancestors: list[NDArray[np.object_]] = []
    for number in parts:
        step = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number) + 1
        path = np.repeat(path, number) + "." + step.astype(str).astype(object)
        ancestors = [np.repeat(above, number) for above in ancestors] + [path]
    table = pd.DataFrame({f"level {depth}": ids for depth, ids in enumerate(ancestors, start=1)}).apply(lambda ids: ids.str[1:])
    return Regions.from_table(table, levels=list(table.columns))
