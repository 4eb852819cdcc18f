"""Private record matching: a private decomposition of one holder's records decides which pairs are compared at all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers
from dpviz.data.points import PointCounts
from dpviz.errors import InputError, SettingError
from dpviz.evaluation.metrics import true_answers
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class Holders:
    """Two holders' records on one domain, and who is known to both. PRIVATE: for studies only.

    Attributes:
        first: the holder whose decomposition is released.
        second: the other one.
        known: (k, 4) column and row at the first holder, column and row at the second, of each person known to both.
    """

    first: PointCounts
    second: PointCounts
    known: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Holders(domain={self.first.domain!r})"


@dataclass(frozen=True, kw_only=True)
class Blocking:
    """What is left to compare after blocking. CURATOR ONLY: counts of private records.

    Attributes:
        leaves: of the decomposition.
        kept: leaves whose released count reached the threshold.
        pairs: all pairs of a record of each holder.
        survivors: pairs that are compared.
        padded: pairs that are compared where the first holder fills every kept leaf up to its released count, so that
            the number of its records stays hidden.
        matches: people known to both.
        found: of these, those whose pair of records survives.
    """

    leaves: int
    kept: int
    pairs: int
    survivors: int
    padded: int
    matches: int
    found: int

    @property
    def reduction(self) -> float:
        """Share of all pairs that need not be compared, at most 1; NaN without pairs."""
        return 1 - self.survivors / self.pairs if self.pairs else math.nan

    @property
    def padded_reduction(self) -> float:
        """The same with padded leaves; may fall below 0."""
        return 1 - self.padded / self.pairs if self.pairs else math.nan

    @property
    def recall(self) -> float:
        """Share of the people known to both that are found, 0 to 1; NaN without any."""
        return self.found / self.matches if self.matches else math.nan


def block(release: Release, holders: Holders, *, threshold: float = 0.0, margin: float = 0.0) -> Blocking:
    """Which pairs a private decomposition of the first holder's records leaves to be compared.

    A leaf is dropped if its released count is under the threshold. A pair survives where the first holder's record lies in a
    kept leaf and the second's lies in the leaf's rectangle, widened by the margin on all sides. Each record of the first
    holder lies in one leaf, also where rectangles overlap, so no pair is counted twice; a pair is not found the other way
    round, the first record in the widened border of the second's leaf. No pair is enumerated.

    Args:
        release: of the first holder's records, by any point mechanism; its counts should have their budget on the leaves.
        holders: both holders' records, on the release's domain.
        threshold: in records; leaves under it are dropped. Noise keeps empty leaves, which costs nothing but padding.
        margin: in units of the domain's CRS, at least 0: how far apart the two records of a person may be. Records of the
            second holder count by the centres of their lattice cells.

    Raises:
        InputError: the holders' domain is not the release's.
        SettingError: a threshold that is not a number, or a margin that is negative or not finite.

    Source:
        Inan, Kantarcioglu, Ghinita, Bertino, EDBT 2010; Cormode et al., ICDE 2012, Section VIII-C. Recall is ours to report.
    """
    if holders.first.domain != release.domain or holders.second.domain != release.domain:
        raise InputError("The release and both holders must have the same domain.")
    if math.isnan(threshold) or not 0 <= margin < math.inf:
        raise SettingError("The threshold must be a number, and the margin a finite number of at least 0.")
    tree, first = release.tree, holders.first
    inside = np.bincount(tree.leaf_of(first.column, first.row), first.count, len(tree)).astype(np.int64)
    kept = tree.leaves[release.count[tree.leaves] >= threshold]
    near = true_answers(holders.second, _widened(release, kept, margin))
    filled = np.maximum(inside[kept], np.ceil(release.count[kept]).astype(np.int64))
    return Blocking(
        leaves=len(tree.leaves),
        kept=len(kept),
        pairs=int(first.count.sum()) * int(holders.second.count.sum()),
        survivors=int((inside[kept] * near).sum()),
        padded=int((filled * near).sum()),
        matches=len(holders.known),
        found=_found(release, holders.known, threshold, margin),
    )


def _widened(release: Release, nodes: Integers, margin: float) -> Floats:
    """(k, 4) rectangles of nodes in the domain's CRS, with a margin around them as far as the domain goes."""
    wide = release.domain.coordinates(release.tree.rectangles(nodes)) + np.array([-margin, -margin, margin, margin])
    bounds = np.array(release.domain.bounds)
    return np.asarray(np.clip(wide, np.tile(bounds[:2], 2), np.tile(bounds[2:], 2)))


def _found(release: Release, known: NDArray[np.int32], threshold: float, margin: float) -> int:
    """How many of the people known to both lie in a kept leaf at the first holder, and in the widened leaf at the second."""
    leaf = release.tree.leaf_of(known[:, 0], known[:, 1])
    box = release.domain.lattice(_widened(release, leaf, margin))
    x, y = known[:, 2] + 0.5, known[:, 3] + 0.5
    near = (box[:, 0] < x) & (x <= box[:, 2]) & (box[:, 1] < y) & (y <= box[:, 3])
    return int((near & (release.count[leaf] >= threshold)).sum())


def made_up_holders(
    x: ArrayLike, y: ArrayLike, *, domain: Domain, common: float = 0.25, disagreement: float = 0.0, seed: int = 0
) -> Holders:
    """Deal people out to two holders, some of them to both, who do not quite agree on where these live.

    Args:
        x: (n,) easting or longitude of each person, in the domain's CRS.
        y: (n,) northing or latitude.
        domain: the public frame; everybody must be inside.
        common: share of the people that both holders know, 0 to 1; of the others each holder knows one half.
        disagreement: standard deviation each way of what the second holder holds against the first, in units of the CRS;
            places that would fall out of the domain end at its edge.
        seed: decides who goes where, and the disagreement.

    Raises:
        InputError: coordinates that do not fit together or lie outside, a share or a disagreement out of range.
    """
    if not 0 <= common <= 1 or not 0 <= disagreement < math.inf:
        raise InputError("The common share must be from 0 to 1, and the disagreement finite and at least 0.")
    rng = np.random.default_rng(seed)
    place = np.column_stack([np.asarray(x, np.float64), np.asarray(y, np.float64)])
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    if not ((place >= low) & (place <= high)).all():
        raise InputError("Everybody must live inside the domain.")
    place = rng.permutation(place)
    both = round(common * len(place))
    half = both + (len(place) - both) // 2
    moved = place[:both] + disagreement * rng.standard_normal((both, 2))
    other = np.clip(np.concatenate([moved, place[half:]]), low, high)
    first, second = (PointCounts.from_xy(*part.T, domain=domain) for part in (place[:half], other))
    return Holders(first=first, second=second, known=np.column_stack([_cells(place[:both], domain), _cells(other[:both], domain)]))


def _cells(place: Floats, domain: Domain) -> NDArray[np.int32]:
    """(n, 2) column and row of (n, 2) coordinates, the upper edges in the last place."""
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    cell = np.floor((place - low) * (domain.side / (high - low)))
    return np.asarray(np.minimum(cell, domain.side - 1), np.int32)
