"""Blocking for private record matching: a private decomposition of one holder's records decides which pairs are compared."""

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
    """The records of two data holders on one domain, and the people that both know. PRIVATE: for studies only.

    Attributes:
        first: records of the holder whose decomposition is released.
        second: records of the other holder.
        known: (k, 4) for each person known to both: column and row at the first holder, column and row at the second.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> dv.evaluation.matching.made_up_holders([1.5] * 40, [2.5] * 40, domain=domain, common=0.5).known.shape
    (20, 4)
    """

    first: PointCounts
    second: PointCounts
    known: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Holders(domain={self.first.domain!r})"


@dataclass(frozen=True, kw_only=True)
class Blocking:
    """The pairs of records that remain to be compared after blocking. CURATOR ONLY: counts of private records.

    Attributes:
        leaves: number of leaves of the decomposition.
        kept: number of leaves whose released count reached the threshold.
        pairs: number of all pairs of a record of each holder.
        survivors: number of pairs that are compared.
        padded: number of pairs that are compared if the first holder adds dummy records to every kept leaf, up to its released
            count, so that the true number of its records stays hidden.
        matches: number of people known to both.
        found: number of these people whose pair of records is compared.

    >>> import dpviz as dv
    >>> blocking = dv.evaluation.matching.Blocking(leaves=4, kept=2, pairs=100, survivors=20, padded=30, matches=5, found=4)
    >>> blocking.reduction, blocking.recall
    (0.8, 0.8)
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
        """Share of all pairs that need not be compared, 0 to 1; NaN if there are no pairs."""
        return 1 - self.survivors / self.pairs if self.pairs else math.nan

    @property
    def padded_reduction(self) -> float:
        """Share of all pairs that need not be compared with dummy records; below 0 if these cost more comparisons than blocking saves."""
        return 1 - self.padded / self.pairs if self.pairs else math.nan

    @property
    def recall(self) -> float:
        """Share of the people known to both whose pair is compared, 0 to 1; NaN if there are none."""
        return self.found / self.matches if self.matches else math.nan


def block(release: Release, holders: Holders, *, threshold: float = 0.0, margin: float = 0.0) -> Blocking:
    """Count the pairs that are left to compare after blocking by a private decomposition of the first holder's records.

    A leaf is dropped if its released count is below the threshold. A pair is compared if the first holder's record lies in a kept leaf
    and the second holder's record lies in the rectangle of that leaf, widened by the margin on all sides. Each record of the first
    holder lies in exactly one leaf, even if rectangles overlap, so no pair is counted twice. Pairs are counted, not listed.

    Args:
        release: of the first holder's records, by any point mechanism; its counts should have their budget on the leaves.
        holders: both holders' records, on the release's domain.
        threshold: in records. Leaves with a smaller released count are dropped.
        margin: in units of the domain's CRS, at least 0: the largest distance, along each axis, between the two records of a person.
            A record of the second holder counts as if it were at the centre of its lattice cell.

    Raises:
        InputError: the holders' domain is not the release's.
        SettingError: the threshold is not a number, or the margin is negative or not finite.

    Source:
        Inan, Kantarcioglu, Ghinita, Bertino, EDBT 2010; Cormode et al., ICDE 2012, Section VIII-C. The papers do not report recall.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> holders = dv.evaluation.matching.made_up_holders([1.5] * 40, [2.5] * 40, domain=domain, common=0.5)
    >>> release = dv.Quadtree(height=2).release(holders.first, dv.PureBudget(5), dv.Entropy.seeded(1))
    >>> blocking = dv.evaluation.matching.block(release, holders, threshold=5)
    >>> blocking.pairs, blocking.survivors, blocking.recall
    (900, 900, 1.0)
    """
    if holders.first.domain != release.domain or holders.second.domain != release.domain:
        raise InputError("The release and both holders must have the same domain.")
    if math.isnan(threshold) or not 0 <= margin < math.inf:
        raise SettingError("The threshold must be a number, and the margin a finite number of at least 0.")
    tree, first = release.tree, holders.first
    records_in_leaf = np.bincount(tree.leaf_of(first.column, first.row), first.count, len(tree)).astype(np.int64)
    kept = tree.leaves[release.count[tree.leaves] >= threshold]
    nearby = true_answers(holders.second, _widen_rectangles(release, kept, margin))
    padded_records = np.maximum(records_in_leaf[kept], np.ceil(release.count[kept]).astype(np.int64))
    return Blocking(
        leaves=len(tree.leaves),
        kept=len(kept),
        pairs=int(first.count.sum()) * int(holders.second.count.sum()),
        survivors=int((records_in_leaf[kept] * nearby).sum()),
        padded=int((padded_records * nearby).sum()),
        matches=len(holders.known),
        found=_count_found(release, holders.known, threshold, margin),
    )


def _widen_rectangles(release: Release, nodes: Integers, margin: float) -> Floats:
    """Return (k, 4) rectangles of nodes in the domain's CRS, widened by the margin and cut to the domain."""
    wide = release.domain.coordinates(release.tree.rectangles(nodes)) + np.array([-margin, -margin, margin, margin])
    bounds = np.array(release.domain.bounds)
    return np.asarray(np.clip(wide, np.tile(bounds[:2], 2), np.tile(bounds[2:], 2)))


def _count_found(release: Release, known: NDArray[np.int32], threshold: float, margin: float) -> int:
    """Count the people known to both holders whose pair of records is compared."""
    leaf = release.tree.leaf_of(known[:, 0], known[:, 1])
    box = release.domain.lattice(_widen_rectangles(release, leaf, margin))
    x, y = known[:, 2] + 0.5, known[:, 3] + 0.5
    near = (box[:, 0] < x) & (x <= box[:, 2]) & (box[:, 1] < y) & (y <= box[:, 3])
    return int((near & (release.count[leaf] >= threshold)).sum())


def made_up_holders(
    x: ArrayLike, y: ArrayLike, *, domain: Domain, common: float = 0.25, disagreement: float = 0.0, seed: int = 0
) -> Holders:
    """Make up two holders' records from people's coordinates; some people are known to both, at slightly different coordinates.

    Args:
        x: (n,) easting or longitude of each person, in the domain's CRS.
        y: (n,) northing or latitude.
        domain: public; all people must be inside.
        common: share of the people that both holders know, 0 to 1; each holder knows one half of the others.
        disagreement: standard deviation, along each axis, of the second holder's coordinates from the first's, in units of the CRS.
            Coordinates that would leave the domain are moved to its edge.
        seed: equal seeds give equal holders.

    Raises:
        InputError: coordinates of different lengths or outside the domain, or a share or disagreement out of range.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> holders = dv.evaluation.matching.made_up_holders([1.5] * 40, [2.5] * 40, domain=domain, common=0.5)
    >>> int(holders.first.count.sum()), int(holders.second.count.sum()), len(holders.known)
    (30, 30, 20)
    """
    if not 0 <= common <= 1 or not 0 <= disagreement < math.inf:
        raise InputError("The common share must be from 0 to 1, and the disagreement finite and at least 0.")
    rng = np.random.default_rng(seed)
    coordinates = np.column_stack([np.asarray(x, np.float64), np.asarray(y, np.float64)])
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    if not ((coordinates >= low) & (coordinates <= high)).all():
        raise InputError("All coordinates must lie inside the domain.")
    coordinates = rng.permutation(coordinates)
    common_number = round(common * len(coordinates))
    half = common_number + (len(coordinates) - common_number) // 2
    shifted = coordinates[:common_number] + disagreement * rng.standard_normal((common_number, 2))
    second_coordinates = np.clip(np.concatenate([shifted, coordinates[half:]]), low, high)
    first, second = (PointCounts.from_xy(*part.T, domain=domain) for part in (coordinates[:half], second_coordinates))
    return Holders(
        first=first,
        second=second,
        known=np.column_stack([_cells_of(coordinates[:common_number], domain), _cells_of(second_coordinates[:common_number], domain)]),
    )


def _cells_of(coordinates: Floats, domain: Domain) -> NDArray[np.int32]:
    """Return (n, 2) columns and rows of (n, 2) coordinates; the domain's upper edges belong to the last cells."""
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    cell = np.floor((coordinates - low) * (domain.side / (high - low)))
    return np.asarray(np.minimum(cell, domain.side - 1), np.int32)
