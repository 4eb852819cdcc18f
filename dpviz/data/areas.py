"""The number of records in each occupied leaf of nested regions, the private input of every mechanism of areas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers, Places
from dpviz.data.bounding import Bound, People, bound_of, refuse_bound_without_persons
from dpviz.data.cell_counts import CellCounts, count_coordinates
from dpviz.data.cells import array_of, cells_by_slot, check_bad_rows, check_whole, most_per_cell, pairs_of, whole_counts, xy_of_frame
from dpviz.data.counts import PERSON, Counts
from dpviz.data.empty import NONE_IN_REGIONS, refuse_none_inside
from dpviz.data.frame_columns import column_of, each_row_of_frame, named_columns
from dpviz.data.leaf_regions import check_regions, crs_of_leaves, leaf_finder
from dpviz.data.marks import declares_unit
from dpviz.data.roles import warn_each_row
from dpviz.data.slots import check_categories, check_slot_column, check_slots
from dpviz.data.trips import place_table
from dpviz.errors import InputError
from dpviz.space.categories import Categories
from dpviz.space.cross import Cross, categories_of, regions_of
from dpviz.space.hierarchy import Hierarchy
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
        categories: the public categories by which records are counted beside the region; None for none.
        slot: (k,) index of the slot of each count, ascending within a leaf; zeros without categories, and may then be left out.
        per_slot: b, the most records that one person has in each slot, over all regions; None where only m bounds them.

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
    places: ClassVar[tuple[str, ...]] = ("leaf", "slot")

    regions: Regions
    leaf: Places
    categories: Categories | None = None
    slot: Places = field(default_factory=lambda: np.zeros(0, np.int32))
    per_slot: int | None = None

    def __post_init__(self) -> None:
        check_regions(self.regions)
        check_categories(self.categories)
        if self.categories is None and not len(self.slot):
            object.__setattr__(self, "slot", np.zeros(len(self.leaf), np.int32))
        if self.per_slot is not None:
            object.__setattr__(self, "per_slot", check_whole(self.per_slot, "per_slot", 1))
            if self.unit != PERSON or self.categories is None:
                raise InputError("per_slot bounds each person's records in each slot: it needs persons and categories.")
        super().__post_init__()

    def _check_places(self) -> None:
        if self.leaf.min() < 0 or self.leaf.max() >= self.regions.size(self.regions.depth):
            raise InputError("leaf must hold indices of leaf regions.")
        if self.slot.min() < 0 or self.slot.max() >= self.slots:
            raise InputError("slot must hold indices of slots.")
        cells = pairs_of(self.leaf, self.slot, self.slots)
        if (cells[1:] <= cells[:-1]).any():
            raise InputError("Leaves must be distinct and ascending, and slots within a leaf.")

    def __repr__(self) -> str:
        """A text without a single private number, so that logs and tracebacks cannot leak."""
        frame = repr(self.regions) if self.categories is None else f"{self.regions!r}, {self.categories!r}"
        return f"AreaCounts({frame}, unit={self.unit!r}, contributions={self.contributions})"

    @property
    def slots(self) -> int:
        """How many slots there are: 1 without categories."""
        return 1 if self.categories is None else self.categories.slots

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
        categories: Categories | None = None,
        slot: str | None = None,
        count: str | None = None,
        person: str | ArrayLike | People | None = None,
        contributions: int = 1,
        per_slot: int | None = None,
        distinct: bool = False,
        bad_rows: str = "refuse",
        key: bytes | None = None,
        unit: str | None = None,
    ) -> AreaCounts:
        """Add up records per leaf by the leaves' ids, or per leaf and slot.

        Args:
            table: columns region (ids of leaves: texts, or whole numbers, which stand for their digits) and count (whole numbers, >= 0;
                each row is one record without it).
            regions: their leaves need no shapes.
            categories: by which records are counted beside the region. A record in none of their slots is left out, and counted in
                `outside`, unless there is a slot for all others.
            slot: the column whose entries say the slot: ids, numbers or times (see `Categories`).
            count: another name of the column of counts, or "none", which says that each row is one record. Without both, an
                `UnreadColumnsWarning` names columns of numbers.
            person: a column of `table`, or (n,) entries, that say who a row belongs to; as for `from_xy`.
            contributions: m >= 1.
            per_slot: b >= 1: each person then keeps at most b of the records of each slot, over all regions, and m of these in all.
            distinct: whether each person counts once in each leaf (and slot), and keeps at most m distinct ones.
            bad_rows: "refuse" raises on an unknown id, a missing cell or a bad count, "drop" leaves the row out.
            key: bytes that decide which records a person keeps; fresh from the operating system if None.
            unit: as for `PointCounts.from_xy`.

        Raises:
            InputError: a column is missing, `unit` is given beside `person`, or a row is bad under "refuse"; the text names the column and
                the rule, never an entry. Under "drop" only a fault of a whole column raises: not one count is a whole number.

        >>> import dpviz as dv
        >>> regions = dv.Regions.from_table(pd.DataFrame({"tract": ["a", "b"]}), levels=["tract"])
        >>> visits = pd.DataFrame({"region": ["a", "b", "b"], "at": ["2026-11-29 08:10", "2026-11-29 08:40", "2026-11-30 17:05"]})
        >>> hours = dv.Categories.hours("Europe/Berlin")
        >>> areas = AreaCounts.from_table(visits, regions=regions, categories=hours, slot="at")
        >>> areas.leaf.tolist(), areas.slot.tolist()
        ([0, 1, 1], [8, 8, 17])
        """
        check_regions(regions)
        check_categories(categories)
        check_bad_rows(bad_rows)
        check_slot_column(categories, slot)
        contributions, is_declared = check_whole(contributions, "contributions", 1), declares_unit(unit, person)
        placed, each_row = place_table(table, {"region": regions}, count, person, bad_rows, _NOUN, spare=() if slot is None else (slot,))
        warn_each_row(each_row)
        refuse_bound_without_persons(placed.person, contributions, distinct=distinct or per_slot is not None)
        slots = 1 if categories is None else categories.slots
        if categories is not None and slot is not None:
            found = check_slots(column_of(table, slot, _NOUN), categories, f"Column {slot!r}", bad_rows)
            placed = replace(placed, cells=cells_by_slot(placed.cells, found, slots))
        bound = None if placed.person is None else bound_of(contributions, key, distinct=distinct, per_slot=per_slot, slots=slots)
        counted, is_declared = placed.counts(bound, regions.size(regions.depth) * slots), is_declared or placed.count is None
        return cls.from_leaf_counts(counted, regions, bound, categories, unit_declared=is_declared, each_row=each_row)

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
    def from_leaf_counts(
        cls, counted: CellCounts, regions: Regions, bound: Bound | None, categories: Categories | None = None, **marks: Any
    ) -> AreaCounts:
        """Make area counts of the records per leaf that were counted with this `bound`; the unit is a record if there is none.

        With categories, cells are numbered leaf * slots + slot. `marks` are further fields, such as row_stable and unit_declared.
        """
        leaf, slot = np.divmod(counted.cells, 1 if categories is None else categories.slots)
        marks |= {"per_slot": None if bound is None else bound.per_slot, "categories": categories}
        return cls.of_cells(counted, bound, regions=regions, leaf=leaf.astype(np.int32), slot=slot.astype(np.int32), **marks)

    @property
    def frame(self) -> Regions | Cross:
        """The regions, or regions by categories."""
        return self.regions if self.categories is None else Cross(self.regions, self.categories)

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
        """How many finest regions there are, or pairs of them with slots."""
        return self.regions.size(self.regions.depth) * self.slots

    def places_of(self, leaves: Integers) -> dict[str, Places]:
        """Return the indices of finest regions and of slots; see `Counts.places_of`."""
        leaf, slot = np.divmod(leaves, self.slots)
        return {"leaf": leaf.astype(np.int32), "slot": slot.astype(np.int32)}

    def identity(self) -> tuple[Any, ...]:
        """Return plain values that identify the finest regions, in a fingerprint of the counts."""
        return "areas", [*self.regions.ids[-1]]

    def identity_arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the occupied leaves and the records in each, of all slots together: with or without slots, it is the same data."""
        total = self.level_counts()[-1]
        leaves = np.flatnonzero(total)
        return leaves.astype(np.int32), total[leaves]

    @classmethod
    def empty_in(cls, frame: Any, contributions: int = 1, *, exactly: bool = False) -> AreaCounts | None:
        """Make counts without any record in regions, or in regions by categories; None for another frame. PUBLIC."""
        if not isinstance(frame, Regions | Cross):
            return None
        nowhere, none = np.zeros(0, np.int32), np.zeros(0, np.int64)
        empty = cls(regions=regions_of(frame), categories=categories_of(frame), leaf=nowhere, count=none)
        return empty if contributions == 1 else empty.of_persons(contributions, exactly=exactly)

    def level_counts(self) -> list[Integers]:
        """Add up the true counts of every region, of all slots together: one array per level, the whole first. PRIVATE."""
        levels = [np.zeros(self.regions.size(self.regions.depth), np.int64)]
        np.add.at(levels[0], self.leaf, self.count)
        for level in range(self.regions.depth, 0, -1):
            levels.insert(0, np.add.reduceat(levels[0], self.regions.first_child(level - 1)[:-1]))
        return levels

    def in_slots(self, slots: Sequence[str] | None) -> AreaCounts:
        """Return the counts of some slots together, of any level of the categories, without categories; None is all of them. PRIVATE.

        Raises:
            DomainError: an unknown id.
            InputError: there are no categories.
        """
        if self.categories is None:
            raise InputError("These counts have no categories.")
        kept = self.categories.mask_of(slots)[self.slot]
        total = np.bincount(self.leaf[kept], self.count[kept], self.regions.size(self.regions.depth)).astype(np.int64)
        occupied = np.flatnonzero(total)
        places: dict[str, Any] = {"leaf": occupied.astype(np.int32), "slot": np.zeros(len(occupied), np.int32), "categories": None}
        return replace(self, **places, count=total[occupied], per_slot=None)

    def cross_counts(self) -> Integers:
        """Add up the true counts of every region of every level by every category of every level. PRIVATE.

        Returns:
            (n, s) counts, in the order of the nodes of both hierarchies; s is 1 without categories.
        """
        slots = Hierarchy.of_levels(()) if self.categories is None else self.categories.hierarchy
        counts = np.zeros((len(self.regions.hierarchy), len(slots)), np.int64)
        counts[self.regions.hierarchy.starts[-2] + self.leaf, slots.starts[-2] + self.slot] = self.count
        by_place = self.regions.hierarchy.sum_up(counts)
        return np.ascontiguousarray(slots.sum_up(np.ascontiguousarray(by_place.T)).T)
