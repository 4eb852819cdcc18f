"""The release of a mechanism of areas: noisy counts of nested regions, answers for regions and polygons, rates, and the receipt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

import geopandas
import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers, Mask
from dpviz.errors import DomainError, check_choice
from dpviz.privacy.consistency import Spread
from dpviz.privacy.receipt import PRIVATE
from dpviz.release.base import Level, Rows
from dpviz.release.count_release import CountRelease
from dpviz.release.reliability import grade_reliability
from dpviz.space.area_shares import MOST_OUTSIDE, areas_km2, leaf_shares
from dpviz.space.coverage import OUTSIDE, shapes_in
from dpviz.space.denominators import RATES_PER
from dpviz.space.hierarchy import Hierarchy
from dpviz.space.region_builders import H3Cells
from dpviz.space.regions import NO_GEOMETRY, Regions, drawable_levels

AREA = "area"
"""The denominator of `AreaRelease.rates` that stands for square kilometres."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaRelease(CountRelease):
    """Noisy counts of nested regions. PUBLIC: everything in it was released by a mechanism.

    Level 0 is the whole, levels 1 to g are those of the regions. Counts add up from level to level.

    Attributes:
        regions: the public frame.
        hidden: (leaves,) whether a leaf's count is not shown, because it is under a public threshold; None if all are shown. Coarser counts
            include the hidden ones.

    The other attributes are those of `CountRelease`: the n nodes are the regions of all levels, the whole first.

    >>> import dpviz as dv
    >>> table = pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]})
    >>> regions = dv.Regions.from_table(table, levels=["district", "tract"])
    >>> areas = dv.AreaCounts.from_counts([900, 40, 500], regions=regions)
    >>> release = dv.RegionTree().release(areas, dv.PureBudget(2), dv.Entropy.seeded(1))
    >>> release
    AreaRelease(region_tree, 3 tract, epsilon 2, SIMULATION: not private)
    >>> count, stddev = release.answer(["A", ["A", "c"]], spread=True)
    >>> bool(abs(count[0] - 940) < 4 * stddev[0])
    True
    """

    family: ClassVar[str] = "areas"
    no_map: ClassVar[str] = NO_GEOMETRY

    regions: Regions
    spread: Spread
    hidden: Mask | None = None

    @property
    def hierarchy(self) -> Hierarchy:
        """The regions of all levels, the whole first."""
        return self.regions.hierarchy

    def level_number(self, level: Level | None) -> int:
        """Return the number of a level, 0 for the whole to g, by its number or name; None is the finest.

        Raises:
            DomainError: no such level.
        """
        return self.regions.depth if level is None else self.regions.level_number(level)

    def drawable_levels(self) -> dict[int, int]:
        """Return how many regions each level has, by its number, if they have a place on a map."""
        return drawable_levels(self.regions)

    @property
    def frame(self) -> Regions:
        """The regions."""
        return self.regions

    def name_level(self, level: int) -> str:
        """Name a level for readers: "the whole", or its name."""
        return self.between(level) or "the whole"

    def between(self, level: int) -> str | None:
        """Return the name of a level in the manifest; None for the whole."""
        return self.regions.levels[level - 1] if level else None

    def hidden_at(self, level: int) -> Mask | None:
        """Return (k,) whether the numbers of a level's regions are hidden: of finest regions under a public threshold; None if none is."""
        return self.hidden if level == self.regions.depth else None

    def observe(self, leaves: tuple[int, ...]) -> tuple[list[Rows], Floats]:
        """Return what `CountRelease.observe` does, and which regions are hidden."""
        rows, variances = super().observe(leaves)
        if self.hidden is not None:
            rows.append(Rows([(leaf,) for leaf in range(len(self.hidden))], {"hidden": self.hidden}))
        return rows, variances

    def __repr__(self) -> str:
        size, finest = self.regions.size(self.regions.depth), self.regions.levels[-1]
        return f"AreaRelease({self.mechanism}, {size:,} {finest}{self._stamp})"

    @property
    def _stamp(self) -> str:
        """What was spent, and whether it is a private release."""
        return self.receipt.describe_total() + ("" if self.status == PRIVATE else f", {self.status}")

    def to_frame(self, level: Level | None = None) -> geopandas.GeoDataFrame:
        """Make a table of the regions of a level.

        Args:
            level: 0 (the whole) to g, or a level's name; None for the finest.

        Returns:
            GeoDataFrame with region (id), name, count, count_noisy (as first measured, NaN if not measured), stddev, ci_low and ci_high,
            all_low and all_high (see `interval`; the latter joint), reliability ("high": a standard deviation of at most
            12 % of the count; "medium": 40 %; else "low"), status (the same in every row), and geometry, None where regions have no
            polygons. The numbers of a hidden region are NaN. Its `attrs` are those of the release, and whether shapes are
            "approximate_shapes", as those of coarser H3 cells are.

        Raises:
            DomainError: no such level.
        """
        number = self.level_number(level)
        columns: dict[str, Any] = {"region": self.regions.ids_of(number), "name": self.regions.names_of(number)}
        columns |= self.node_columns(self.nodes(number)) | {"reliability": self.reliability(number), "status": self.status}
        outlines = self.regions.outlines(number)
        geometry = np.full(self.regions.size(number), None, object) if outlines is None else outlines.to_numpy()
        frame = geopandas.GeoDataFrame(columns, geometry=geometry, crs=self.regions.crs)
        if self.hidden is not None and number == self.regions.depth:
            frame.loc[self.hidden, ["count", "count_noisy", "ci_low", "ci_high", "all_low", "all_high"]] = np.nan
        approximate = isinstance(self.regions.grid, H3Cells) and number < self.regions.depth
        frame.attrs = self.attrs | {"approximate_shapes": approximate}
        return frame

    def reliability(self, level: Level | None = None) -> NDArray[np.object_]:
        """Grade the (k,) counts of a level: "high", "medium" or "low"; see `to_frame`.

        Raises:
            DomainError: no such level.
        """
        grades = grade_reliability(self.count[self.nodes(level)], self.stddev(level))
        return np.asarray(grades.to_numpy(zero_copy_only=False), object)

    @overload
    def answer(self, regions: Sequence[str | Sequence[str]], *, level: Level | None = None, spread: Literal[False] = False) -> Floats: ...
    @overload
    def answer(
        self, regions: Sequence[str | Sequence[str]], *, level: Level | None = None, spread: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    def answer(
        self, regions: Sequence[str | Sequence[str]], *, level: Level | None = None, spread: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Add up the counts of regions.

        Args:
            regions: q entries, each the id of a region, or a list of ids; the answer to a list is the count of all that lies in any of
                them, so that nothing counts twice.
            level: level of the regions, 0 to g, or its name; None for the finest level that has the id.
            spread: also give the standard deviations.

        Returns:
            (q,) counts, in records; NaN for a finest region that is hidden. With `spread` also (q,) standard deviations of the noise.

        Raises:
            DomainError: an unknown id or level.
        """
        weights, hidden = self._select(regions, level)
        count = np.where(hidden, np.nan, weights @ self.count)
        return (count, self.sum_stddev(weights)) if spread else count

    def _select(self, regions: Sequence[str | Sequence[str]], level: Level | None) -> tuple[Any, Mask]:
        """Return the (q, n) weights of lists of regions, a sparse matrix, and (q,) whether a list is nothing but one hidden region."""
        if isinstance(regions, str):
            raise DomainError("regions must be a list of ids, or of lists of ids.")
        lists = [[entry] if isinstance(entry, str) else list(entry) for entry in regions]
        query = np.repeat(np.arange(len(lists)), [len(entry) for entry in lists])
        levels, index = self._find([region for entry in lists for region in entry], level)
        chosen = scipy.sparse.csr_array((len(lists), self.regions.size(self.regions.depth)))
        for number in np.unique(levels).tolist():
            here = levels == number
            shape = (len(lists), self.regions.size(number))
            of_level = scipy.sparse.csr_array((np.ones(here.sum()), (query[here], index[here])), shape=shape)
            above = self.regions.ancestors(number)  # (leaves,) the region of the level in which each leaf lies
            chosen = chosen + of_level @ scipy.sparse.csr_array((np.ones(len(above)), (above, np.arange(len(above)))))
        chosen.data[:] = 1.0
        return self._of_nodes(chosen), self._find_hidden(query, levels, index, len(lists))

    def _of_nodes(self, leaves: Any) -> Any:
        """Return (q, leaves) weights as (q, n) weights of all nodes."""
        inner = scipy.sparse.csr_array((leaves.shape[0], self.hierarchy.starts[-2]))
        return scipy.sparse.hstack([inner, leaves], format="csr")

    def answer_interval(
        self, regions: Sequence[str | Sequence[str]], *, level: Level | None = None, joint: bool = False
    ) -> tuple[Floats, Floats]:
        """Compute intervals that each contain the true answer with probability at least 0.95; see `interval`.

        Args:
            regions: as for `answer`.
            level: as for `answer`.
            joint: whether the intervals hold at once: for all of these answers, if they were chosen without looking at the counts; or,
                as those of `interval`, for single regions, whichever were chosen by their counts. Not for both together.

        Returns:
            (q,) lower and (q,) upper ends, at least 0; NaN for a finest region that is hidden.

        Raises:
            DomainError: an unknown id or level.
        """
        weights, hidden = self._select(regions, level)
        return self._ends(np.where(hidden, np.nan, weights @ self.centre), self.sum_stddev(weights), joint=joint)

    def _find(self, ids: list[str], level: Level | None) -> tuple[Integers, Integers]:
        """Return the (k,) levels of regions, and their (k,) indices in these levels."""
        known = range(self.regions.depth, -1, -1) if level is None else [self.regions.level_number(level)]
        levels, index = np.full(len(ids), -1, np.int64), np.full(len(ids), -1, np.int64)
        for number in known:
            found = self.regions.find(ids, number).astype(np.int64)
            new = (index < 0) & (found >= 0)
            levels[new], index[new] = number, found[new]
        if (index < 0).any():
            where = "a region" if level is None else f"a region of level {level}"
            raise DomainError(f"There is an id that is not {where}; ids are compared letter by letter.")
        return levels, index

    def _find_hidden(self, query: Integers, levels: Integers, index: Integers, queries: int) -> Mask:
        """Return (q,) whether a query asks for nothing but one finest region that is hidden, however often it names it."""
        if self.hidden is None:
            return np.zeros(queries, np.bool_)
        query, levels, index = np.unique((query, levels, index), axis=1)
        hidden = (levels == self.regions.depth) & self.hidden[np.where(levels == self.regions.depth, index, 0)]
        number = np.bincount(query, minlength=queries)
        return np.asarray((number == 1) & (np.bincount(query, hidden, queries) > 0))

    @overload
    def answer_areas(
        self,
        areas: Any,
        *,
        weights: geopandas.GeoDataFrame | None = None,
        spread: Literal[False] = False,
        outside: Literal["refuse"] = "refuse",
    ) -> Floats: ...
    @overload
    def answer_areas(
        self, areas: Any, *, weights: geopandas.GeoDataFrame | None = None, spread: bool = False, outside: str = "refuse"
    ) -> Floats | tuple[Floats, ...]: ...
    def answer_areas(
        self, areas: Any, *, weights: geopandas.GeoDataFrame | None = None, spread: bool = False, outside: str = "refuse"
    ) -> Floats | tuple[Floats, ...]:
        """Estimate counts in polygons: leaves inside count whole, leaves that a polygon cuts by their share.

        Args:
            areas: GeoDataFrame or GeoSeries of (q,) polygons; reprojected to the regions' CRS. Or one polygon in this CRS.
            weights: public points or polygons (a GeoDataFrame with a column `weight`, such as population, or built-up areas without
                it) by which a cut leaf is divided; by area if None, and where a leaf has no weight.
            spread: also give the standard deviations.
            outside: what to do with polygons of which more than 0.1 % lies in no leaf: "refuse" raises an error, "inside_part" answers
                the part inside and also gives the coverage.

        Returns:
            (q,) estimates, in records. With `spread` also (q,) standard deviations of the noise; the error of dividing a cut leaf is
            not included. With "inside_part" also, last, (q,) the share of each polygon's area that lies in leaves.

        Raises:
            DomainError: the leaves have no polygons; polygons without CRS, invalid or missing geometry; weights of another form; or more
                than 0.1 % of a polygon in no leaf.
        """
        check_choice(outside, OUTSIDE, "outside", DomainError)
        share, covered = leaf_shares(self.regions, shapes_in(self.regions.crs, areas), weights)
        beyond = int((covered < 1 - MOST_OUTSIDE).sum())
        if outside == "refuse" and beyond:
            lie = "The polygon lies" if len(covered) == 1 else f"{beyond:,} of {len(covered):,} polygons {'lies' if beyond == 1 else 'lie'}"
            raise DomainError(
                f"{lie} at least partly in no region, where nothing was counted. With outside='inside_part' the part inside is answered,"
                " together with its share."
            )
        weights = self._of_nodes(share)
        parts = [weights @ self.count, *([self.sum_stddev(weights)] if spread else []), *([covered] if outside == "inside_part" else [])]
        return tuple(parts) if len(parts) > 1 else parts[0]

    def rates(
        self, level: Level | None = None, denominator: Mapping[str, float] | pd.Series | str | None = None, *, per: float = RATES_PER
    ) -> pd.DataFrame:
        """Divide the released counts of a level by a public number of each region, such as its population.

        The number is public, so that rates and their intervals are post-processing.

        Args:
            level: 0 to g, or a level's name; None for the finest.
            denominator: numbers of at least 0 by the ids of the level's regions, or of all leaves, which are added up; or "area" for square
                kilometres. None for that of the regions, see `Regions`.
            per: rates are per so many: 1,000, as in files, for records per 1,000 residents.

        Returns:
            DataFrame with region, name, denominator, rate, stddev, ci_low, ci_high, all_low, all_high (see `to_frame`) and status. NaN
            where the denominator is 0, or the region is hidden.

        Raises:
            DomainError: no such level; no denominator is given, and the regions have none; a region without a number; a number that is
                negative or not finite; or leaves without polygons.
        """
        number = self.level_number(level)
        numbers, table = self._denominators(number, denominator), self.to_frame(number)
        factor = np.divide(per, numbers, out=np.full(len(numbers), np.nan), where=numbers > 0)
        names = {"count": "rate", **{name: name for name in ("stddev", "ci_low", "ci_high", "all_low", "all_high")}}
        rates = {new: table[name].to_numpy() * factor for name, new in names.items()}
        return pd.DataFrame({"region": table["region"], "name": table["name"], "denominator": numbers, **rates, "status": self.status})

    def _denominators(self, level: int, denominator: Mapping[str, float] | pd.Series | str | None) -> Floats:
        """Return the (n,) public numbers of a level's regions."""
        if denominator is None:
            if self.regions.denominator is None:
                raise DomainError("These regions have no denominator: give numbers by the ids of regions, or 'area' for square kilometres.")
            return self._add_leaves(level, self.regions.denominator)
        if isinstance(denominator, str):
            if denominator != AREA:
                raise DomainError(f"A denominator must be numbers by the ids of regions, or {AREA!r} for square kilometres.")
            return self._add_leaves(level, areas_km2(self.regions))
        numbers = pd.Series(denominator, dtype=np.float64)
        for known in dict.fromkeys((level, self.regions.depth)):
            found = numbers[~numbers.index.duplicated()].reindex(self.regions.ids_of(known)).to_numpy()
            if np.isfinite(found).all() and (found >= 0).all():
                return self._add_leaves(level, found) if known != level else found
        raise DomainError("A denominator needs one finite number of at least 0 for each region of the level, or for each leaf, by its id.")

    def _add_leaves(self, level: int, values: ArrayLike) -> Floats:
        return np.bincount(self.regions.ancestors(level), np.asarray(values, np.float64), self.regions.size(level)).astype(np.float64)
