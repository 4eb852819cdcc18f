"""Blocking for private record matching: a private decomposition of one holder's records decides which pairs are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers
from dpviz.data.cells import cells_of
from dpviz.data.points import PointCounts
from dpviz.errors import InputError, SettingError
from dpviz.evaluation.metrics import true_answers
from dpviz.mechanisms.points.base import PointMechanism
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import PointRelease
from dpviz.space.domain import Domain

_COIN = 0.5


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
            count. This hides the true number of its records only where the released count is larger: see `guess_presence`.
        matches: number of people known to both.
        found: number of these people whose pair of records is compared.
        cut: number of pairs that are compared if every kept leaf takes part with exactly its released count: dummy records are added, or
            records left out at random. Then nothing but the released counts is shown.
        cut_found: the expected number of people whose pair is compared then.

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
    cut: int = 0
    cut_found: float = 0.0

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

    @property
    def cut_reduction(self) -> float:
        """Share of all pairs that need not be compared if every leaf takes part with its released count."""
        return 1 - self.cut / self.pairs if self.pairs else math.nan

    @property
    def cut_recall(self) -> float:
        """Expected share of the people known to both whose pair is compared then, 0 to 1; NaN if there are none."""
        return self.cut_found / self.matches if self.matches else math.nan


def block(release: PointRelease, holders: Holders, *, threshold: float = 0.0, margin: float = 0.0) -> Blocking:
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
    released = np.ceil(release.count).astype(np.int64)
    padded_records, cut_records = np.maximum(records_in_leaf, released)[kept], np.maximum(released, 0)[kept]
    kept_share = np.minimum(1.0, np.maximum(released, 0) / np.maximum(records_in_leaf, 1))
    found = _find_known(release, holders.known, threshold, margin)
    return Blocking(
        leaves=len(tree.leaves),
        kept=len(kept),
        pairs=int(first.count.sum()) * int(holders.second.count.sum()),
        survivors=int((records_in_leaf[kept] * nearby).sum()),
        padded=int((padded_records * nearby).sum()),
        matches=len(holders.known),
        found=len(found),
        cut=int((cut_records * nearby).sum()),
        cut_found=float(kept_share[found].sum()),
    )


def _widen_rectangles(release: PointRelease, nodes: Integers, margin: float) -> Floats:
    """Return (k, 4) rectangles of nodes in the domain's CRS, widened by the margin and cut to the domain."""
    wide = release.domain.coordinates(release.tree.rectangles(nodes)) + np.array([-margin, -margin, margin, margin])
    bounds = np.array(release.domain.bounds)
    return np.asarray(np.clip(wide, np.tile(bounds[:2], 2), np.tile(bounds[2:], 2)))


def _find_known(release: PointRelease, known: NDArray[np.int32], threshold: float, margin: float) -> Integers:
    """Return the leaves of the people known to both holders whose pair of records is compared, one for each person."""
    leaf = release.tree.leaf_of(known[:, 0], known[:, 1])
    box = release.domain.lattice(_widen_rectangles(release, leaf, margin))
    x, y = known[:, 2] + 0.5, known[:, 3] + 0.5
    near = (box[:, 0] < x) & (x <= box[:, 2]) & (box[:, 1] < y) & (y <= box[:, 3])
    return np.asarray(leaf[near & (release.count[leaf] >= threshold)])


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """How often an attacker guesses right whether a person is in the first holder's file, by what the attacker sees; 0.5 is chance.

    Attributes:
        released: sees the decomposition and its released counts alone.
        padded: sees also how many records take part in the comparison, filled up with dummy records to the released count.
        sizes: sees also how many records take part, without dummy records.
    """

    released: float
    padded: float
    sizes: float


def guess_presence(
    points: PointCounts, mechanism: PointMechanism, budget: Any, *, people: int = 1000, threshold: float = 0.0, seed: int = 0
) -> Guesses:
    """Attack record matching: guess for many people whether they are in the first holder's file. CURATOR ONLY.

    People are drawn from the file, and for each a coin decides whether the record stays in it. A release is made of what remains. The
    attacker knows all records of a person's leaf but the person's own, and makes the likelier guess. With epsilon for one record, whoever
    sees the release alone is right with a probability of at most exp(epsilon) / (1 + exp(epsilon)). Who sees the sizes of the blocks that
    are compared sees more than the release. Dummy records hide a size only if the noise is positive: else the size is the true count.

    Args:
        points: the first holder's records.
        mechanism: makes the decomposition; its leaves have whole counts that are not made consistent.
        budget: of one release.
        people: how many are guessed, from different cells; at most all cells.
        threshold: leaves with a smaller released count are dropped, so that their sizes are not seen.
        seed: of people, coins and noise.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster")
    >>> tree = dv.Quadtree(height=4, split="leaf", least_squares=False)
    >>> guesses = dv.evaluation.matching.guess_presence(points, tree, dv.PureBudget("0.5"), people=2000)
    >>> guesses.sizes > guesses.padded > guesses.released
    True
    """
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(points.count), min(people, len(points.count)), replace=False)
    present = rng.random(len(chosen)) < _COIN
    count = points.count.copy()
    count[chosen[~present]] -= 1
    some = count > 0
    remaining = replace(points, column=points.column[some], row=points.row[some], count=count[some])
    release = mechanism.release(remaining, budget, Entropy.seeded(seed))
    tree = release.tree
    true = np.bincount(tree.leaf_of(remaining.column, remaining.row), remaining.count, len(tree)).astype(np.int64)
    leaf = tree.leaf_of(points.column[chosen], points.row[chosen])
    others, released = true[leaf] - present, np.ceil(release.count[leaf]).astype(np.int64)
    by_count = (released > others) == present
    is_seen, is_bare = release.count[leaf] >= threshold, true[leaf] > released
    return Guesses(
        released=float(by_count.mean()),
        padded=float((by_count | (is_seen & is_bare)).mean()),
        sizes=float((by_count | is_seen).mean()),
    )


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
    both = (part[:common_number].T for part in (coordinates, second_coordinates))
    cells = [np.divmod(cells_of(x, y, domain), domain.side) for x, y in both]
    known = np.column_stack([place for row, column in cells for place in (column, row)]).astype(np.int32)
    return Holders(first=first, second=second, known=known)
