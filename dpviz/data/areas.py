"""The number of records in each occupied leaf of nested regions, the private input of every mechanism of areas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpviz.arrays import Floats, Integers, Places
from dpviz.data.bounding import Bound, People, bound_of, refuse_bound_without_persons
from dpviz.data.cell_counts import CellCounts, count_coordinates
from dpviz.data.cells import array_of, check_bad_rows, check_whole, most_per_cell, whole_counts, xy_of_frame
from dpviz.data.counts import Counts
from dpviz.data.empty import NONE_IN_REGIONS, refuse_none_inside
from dpviz.data.frame_columns import each_row_of_frame, named_columns
from dpviz.data.leaf_regions import check_regions, crs_of_leaves, leaf_finder
from dpviz.data.marks import declares_unit
from dpviz.data.roles import warn_each_row
from dpviz.data.trips import place_table
from dpviz.errors import InputError
from dpviz.space.regions import Regions

if TYPE_CHECKING:
    import geopandas

_NOUN = "records"


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaCounts(Counts):
    """Records per occupied leaf of nested regions. PRIVATE: only a mechanism or a study may look inside.

    A record belongs to one leaf or to none; `dpviz.data.leaf_regions` has the rules.

    Attributes:
        regions: the public regions.
        leaf: (k,) indices of the occupied leaves, ascending.

    The others, and what is refused, are those of `dpviz.data.counts.Counts`.

    >>> import dpviz as dv
    >>> table = pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]})
    >>> regions = dv.Regions.from_table(table, levels=["district", "tract"])
    >>> visits = pd.DataFrame({"region": ["a", "a", "c", "c"], "who": ["x", "y", "x", "x"]})
    >>> areas = dv.AreaCounts.from_table(visits, regions=regions, person="who", contributions=2)
    >>> areas
    AreaCounts(Regions(2 district, 3 tract), unit='person', contributions=2)
    >>> int(areas.count.sum()), areas.over
    (3, 1)
    """

    family: ClassVar[str] = "areas"
    none_inside: ClassVar[str] = NONE_IN_REGIONS
    places: ClassVar[tuple[str, ...]] = ("leaf",)

    regions: Regions
    leaf: Places

    def __post_init__(self) -> None:
        check_regions(self.regions)
        super().__post_init__()

    def _check_places(self) -> None:
        if self.leaf.min() < 0 or self.leaf.max() >= self.regions.size(self.regions.depth):
            raise InputError("leaf must hold indices of leaf regions.")
        if (self.leaf[1:] <= self.leaf[:-1]).any():
            raise InputError("Leaves must be distinct and ascending.")

    def __repr__(self) -> str:
        """A text without a single private number, so that logs and tracebacks cannot leak."""
        return f"AreaCounts({self.regions!r}, unit={self.unit!r}, contributions={self.contributions})"

    @classmethod
    def from_xy(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        *,
        regions: Regions,
        count: ArrayLike | None = None,
        person: ArrayLike | People | None = None,
        contributions: int = 1,
        distinct: bool = False,
        bad_rows: str = "refuse",
        key: bytes | None = None,
        unit: str | None = None,
        _own: tuple[Floats, Floats] | None = None,
    ) -> AreaCounts:
        """Count points in the leaves that contain them.

        Args:
            x: (n,) easting or longitude, in the regions' CRS.
            y: (n,) northing or latitude.
            regions: whose leaves are cells of a grid, or have polygons that do not overlap; points in no leaf are dropped.
            count: (n,) records that each row stands for, whole and >= 0; if None, each row is one record.
            person: (n,) who a record belongs to; each person then keeps at most `contributions` of the records in the regions, chosen at
                random. Without it the protected unit is one record.
            contributions: m >= 1.
            distinct: whether each person counts once in each leaf, and keeps at most m distinct leaves.
            bad_rows: "refuse" raises on a coordinate, count or person that is missing or not finite, and if all records lie in no leaf;
                "drop" leaves the row out.
            key: bytes that decide which records a person keeps; fresh from the operating system if None.
            unit: as for `PointCounts.from_xy`.

        Raises:
            InputError: shapes differ, a column holds no numbers, a row is bad under "refuse", all records lie in no leaf, or `unit` is
                given beside `person`.
            DomainError: the leaves have no polygons, or polygons overlap.
        """
        find, is_declared = leaf_finder(regions), declares_unit(unit, person)
        counted, bound = count_coordinates(
            (x, y),
            find,
            regions.size(regions.depth),
            count=count,
            person=person,
            contributions=contributions,
            distinct=distinct,
            bad_rows=bad_rows,
            key=key,
            own=_own,
        )
        areas = cls.from_leaf_counts(counted, regions, bound, unit_declared=is_declared or count is None)
        if bad_rows == "refuse":
            refuse_none_inside(areas)
        return areas

    @classmethod
    def from_geodataframe(cls, frame: geopandas.GeoDataFrame, *, regions: Regions, **options: Any) -> AreaCounts:
        """Count a GeoDataFrame's points, reprojected to the regions' CRS, in the leaves that contain them.

        Args:
            frame: n rows with points as geometry, in a CRS if the regions have one.
            regions: as for `from_xy`.
            options: count, person, contributions, distinct, bad_rows, key and unit, as for `from_xy`; count and person may be names of
                columns, and count "none" says that each row is one record. Without it, an `UnreadColumnsWarning` names columns of numbers.

        Raises:
            InputError: there is no geometry column, no such column, no CRS although the regions have one, or a geometry that is not a
                point, under "drop" not one that is; the points cannot be reprojected; or as for `from_xy`.
            DomainError: as for `from_xy`.
        """
        check_regions(regions)
        xy, own = xy_of_frame(frame, crs_of_leaves(regions), "regions", options.get("bad_rows"))
        areas = cls.from_xy(*xy, regions=regions, _own=own, **options | named_columns(frame, options))
        each_row = each_row_of_frame("record", frame, options.get("count"), [options.get("person")])
        warn_each_row(each_row)
        return replace(areas, each_row=each_row)

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        *,
        regions: Regions,
        count: str | None = None,
        person: str | ArrayLike | People | None = None,
        contributions: int = 1,
        distinct: bool = False,
        bad_rows: str = "refuse",
        key: bytes | None = None,
        unit: str | None = None,
    ) -> AreaCounts:
        """Add up records per leaf by the leaves' ids.

        Args:
            table: columns region (ids of leaves: texts, or whole numbers, which stand for their digits) and count (whole numbers, >= 0;
                each row is one record without it).
            regions: their leaves need no shapes.
            count: another name of the column of counts, or "none", which says that each row is one record. Without both, an
                `UnreadColumnsWarning` names columns of numbers.
            person: a column of `table`, or (n,) entries, that say who a row belongs to; as for `from_xy`.
            contributions: m >= 1.
            distinct: whether each person counts once in each leaf, and keeps at most m distinct leaves.
            bad_rows: "refuse" raises on an unknown id, a missing cell or a bad count, "drop" leaves the row out.
            key: bytes that decide which records a person keeps; fresh from the operating system if None.
            unit: as for `PointCounts.from_xy`.

        Raises:
            InputError: a column is missing, `unit` is given beside `person`, or a row is bad under "refuse"; the text names the column and
                the rule, never an entry. Under "drop" only a fault of a whole column raises: not one count is a whole number.
        """
        check_regions(regions)
        check_bad_rows(bad_rows)
        contributions, is_declared = check_whole(contributions, "contributions", 1), declares_unit(unit, person)
        placed, each_row = place_table(table, {"region": regions}, count, person, bad_rows, _NOUN)
        warn_each_row(each_row)
        refuse_bound_without_persons(placed.person, contributions, distinct=distinct)
        bound = None if placed.person is None else bound_of(contributions, key, distinct=distinct)
        counted, is_declared = placed.counts(bound, regions.size(regions.depth)), is_declared or placed.count is None
        return cls.from_leaf_counts(counted, regions, bound, unit_declared=is_declared, each_row=each_row)

    @classmethod
    def from_counts(cls, counts: ArrayLike, *, regions: Regions) -> AreaCounts:
        """Make area counts of an array with one count per leaf; the protected unit is one of the records that are counted, whoever has it.

        Args:
            counts: (leaves,) whole counts of at least 0, in the order of the regions' leaves.
            regions: their leaves need no shapes.

        Raises:
            InputError: another number of counts than of leaves, or a count that is negative or not whole.
        """
        check_regions(regions)
        size, array = regions.size(regions.depth), array_of(counts)
        if array is None or array.shape != (size,):
            raise InputError(f"There must be one count for each of the {size:,} leaf regions.")
        whole = np.minimum(whole_counts(array, size, "refuse"), most_per_cell(size))
        occupied = np.flatnonzero(whole)
        return cls(regions=regions, leaf=occupied.astype(np.int32), count=whole[occupied])

    @classmethod
    def from_leaf_counts(cls, counted: CellCounts, regions: Regions, bound: Bound | None, **marks: Any) -> AreaCounts:
        """Make area counts of the records per leaf that were counted with this `bound`; the unit is a record if there is none.

        `marks` are further fields, such as row_stable and unit_declared.
        """
        return cls.of_cells(counted, bound, regions=regions, leaf=counted.cells.astype(np.int32), **marks)

    @property
    def frame(self) -> Regions:
        """The regions."""
        return self.regions

    @property
    def sides(self) -> tuple[Regions, ...]:
        """The regions."""
        return (self.regions,)

    @property
    def level_range(self) -> range:
        """The levels of the regions, 0 for the whole."""
        return range(self.regions.depth + 1)

    @property
    def leaves(self) -> int:
        """How many finest regions there are."""
        return self.regions.size(self.regions.depth)

    def places_of(self, leaves: Integers) -> dict[str, Places]:
        """Return the indices of finest regions; see `Counts.places_of`."""
        return {"leaf": leaves.astype(np.int32)}

    def identity(self) -> tuple[Any, ...]:
        """Return plain values that identify the finest regions, in a fingerprint of the counts."""
        return "areas", [*self.regions.ids[-1]]

    @classmethod
    def empty_in(cls, frame: Any, contributions: int = 1, *, exactly: bool = False) -> AreaCounts | None:
        """Make counts without any record in regions; None for another frame. PUBLIC."""
        nowhere, none = np.zeros(0, np.int32), np.zeros(0, np.int64)
        empty = cls(regions=frame, leaf=nowhere, count=none) if isinstance(frame, Regions) else None
        return empty if empty is None or contributions == 1 else empty.of_persons(contributions, exactly=exactly)

    def level_counts(self) -> list[Integers]:
        """Add up the true counts of every region: one array per level, the whole first. PRIVATE."""
        levels = [np.zeros(self.regions.size(self.regions.depth), np.int64)]
        levels[0][self.leaf] = self.count
        for level in range(self.regions.depth, 0, -1):
            levels.insert(0, np.add.reduceat(levels[0], self.regions.first_child(level - 1)[:-1]))
        return levels
