"""Trips per pair of leaf regions, the private input of every trip mechanism, and the reading of trips from the rows of a table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from dpviz.amounts import LONGEST_NUMBER
from dpviz.arrays import Integers, Places
from dpviz.data.bounding import KEEP, People, Words, bound_of, check_people, refuse_bound_without_persons
from dpviz.data.cell_counts import CellCounts
from dpviz.data.cells import BAD, MOST_RECORDS, REMEDY, check_bad_rows, check_whole, clip_counts, pairs_of
from dpviz.data.columns import DECLARE_MARKS, MAY_BE_THOUSANDS, WEIGHTS_REFUSED, UnusableFileError, people_of
from dpviz.data.counts import PERSON, Counts
from dpviz.data.empty import NONE_BETWEEN
from dpviz.data.fingerprints import sum_rows, words_of_ids
from dpviz.data.frame_columns import column_of, count_of, each_row_of_frame
from dpviz.data.leaf_ids import COMPARED, find_leaves
from dpviz.data.leaf_regions import check_regions
from dpviz.data.library_errors import without_private_text
from dpviz.data.marks import TRIPS, declares_unit
from dpviz.data.placed_rows import PlacedRows
from dpviz.data.roles import EachRow, warn_each_row
from dpviz.errors import InputError
from dpviz.space.regions import Regions

_NO_FAULT, _BLANK, _NO_NUMBER, _NEGATIVE, _FRACTION = range(5)
_FAULTS = {
    _BLANK: "has a missing cell: every row needs its number of {noun}",
    _NO_NUMBER: f"has a cell that is no number. {DECLARE_MARKS.removesuffix('.')}",
    _NEGATIVE: "has a negative count: a number of {noun} is at least 0",
    _FRACTION: "has a count that is no whole number",
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ids:
    """The ids of regions in a column. PRIVATE.

    Attributes:
        codes: (n,) index into `texts`, -1 where the entry is missing, blank, or neither a text nor a whole number.
        texts: the distinct ids.
        source: the column's name in errors, such as "Column 'from'".
    """

    codes: Integers = field(repr=False)
    texts: list[str] = field(repr=False)
    source: str

    def words(self) -> Words:
        """Return (n,) words by which the ledger recognises the ids: the same for one text, in whatever regions it is looked up."""
        return words_of_ids(self.codes, self.texts)


def ids_of(cells: pd.Series | pa.ChunkedArray, source: str) -> Ids:
    """Return the ids in a column. A text stays as it is; a whole number becomes its digits, even if missing entries made it a float."""
    if isinstance(cells, pd.Series) and cells.dtype == object:  # one by one, because pandas takes the objects True and 1 for equal
        cells = pd.Series([_id_text(value) for value in cells.to_numpy()], dtype=object)
    entries = people_of(cells)
    texts = [_id_text(value) for value in entries.distinct]
    unusable = np.array([text is None for text in texts] + [True])
    codes = np.where(unusable[entries.codes], -1, entries.codes)
    return Ids(codes=codes, texts=[text or "" for text in texts], source=source)


def _id_text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(value)
    number, fault = _parse_count(value)
    return str(number) if fault == _NO_FAULT else None


def refuse_missing(ids: Ids) -> None:
    """Refuse a column that has a row without an id."""
    if (missing := ids.codes < 0).any():
        text = f"{ids.source} has an id that is missing, or is neither a text nor a whole number. {REMEDY}"
        raise InputError(text, only_rows=not missing.all())


def leaf_indexes(ids: Ids, side: Regions, bad_rows: str) -> Places:
    """Return (n,) indexes of the leaf regions with these ids: OUTSIDE where no leaf has the id, BAD where the id is missing.

    Each distinct id is looked up as `LeafIds` says.

    Raises:
        InputError: under "refuse", an id is missing or not the id of a leaf region.
    """
    if bad_rows == "refuse":
        refuse_missing(ids)
    indexes = np.append(find_leaves(ids.texts, side), np.int32(BAD))[ids.codes]
    if bad_rows == "refuse" and (indexes < 0).any():
        raise InputError(f"{ids.source} has an id that is no leaf region ({side.levels[-1]}); {COMPARED}. {REMEDY}")
    return indexes


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCounts:
    """Numbers of trips in a column. PRIVATE.

    Attributes:
        trips: (n,) number of trips in each entry, cut to 2**53; 0 where the entry has a fault.
        fault: (n,) 0 where the entry is a whole number of at least 0, else the number of the rule that it breaks.
        source: the column's name in errors.
        noun: what is counted, in the plural, for errors.
    """

    trips: Integers = field(repr=False)
    fault: NDArray[np.int8] = field(repr=False)
    source: str
    noun: str = "trips"


def counts_of(
    cells: pd.Series | pa.ChunkedArray, source: str, *, texts: bool = False, blanks: bool = False, noun: str = "trips"
) -> ColumnCounts:
    """Read the counts in a column. Texts and decimals are read exactly, without a detour over floats.

    Args:
        cells: the column's entries.
        source: the column's name in errors.
        texts: whether texts are read as numbers, as in files; otherwise a text is a fault.
        blanks: whether a missing entry counts as 0, as in a matrix.
        noun: what is counted, in the plural, for errors.
    """
    if isinstance(cells, pd.Series) and not (isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "iufO"):
        rule = f"{source} must hold whole numbers."
        cells = without_private_text(rule, lambda: pa.chunked_array([pa.Array.from_pandas(cells)]))
    if isinstance(cells, pa.ChunkedArray) and pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    stored = _stored_numbers(cells)
    trips, fault = _read_each(cells, texts) if stored is None else _check_numbers(*stored)
    fault = np.where(fault == _BLANK, _NO_FAULT, fault).astype(np.int8) if blanks else fault
    return ColumnCounts(trips=trips, fault=fault, source=source, noun=noun)


def _stored_numbers(cells: pd.Series | pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """Return (n,) integers or floats, and (n,) whether each is missing; None for a column that stores neither."""
    if isinstance(cells, pd.Series):
        values = cells.to_numpy()
        return None if values.dtype.kind == "O" else (values, np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool))
    if pa.types.is_integer(cells.type):
        return cells.fill_null(0).to_numpy(), cells.is_null().to_numpy()
    if pa.types.is_floating(cells.type):
        return cells.cast(pa.float64()).fill_null(math.nan).to_numpy(), cells.is_null(nan_is_null=True).to_numpy()
    return None


def _check_numbers(values: NDArray[Any], missing: NDArray[np.bool_]) -> tuple[Integers, NDArray[np.int8]]:
    fault = np.zeros(len(values), np.int8)
    if values.dtype.kind == "f":
        fault[values != np.floor(values)] = _FRACTION
        fault[np.isinf(values)] = _NO_NUMBER
    fault[(values < 0) & (fault == _NO_FAULT)] = _NEGATIVE
    fault[missing] = _BLANK
    return np.where(fault == _NO_FAULT, clip_counts(values)[0], 0), fault


def _read_each(cells: pd.Series | pa.ChunkedArray, texts: bool) -> tuple[Integers, NDArray[np.int8]]:
    """Return (n,) counts and (n,) faults of texts, decimals or mixed entries. Each distinct entry of an Arrow column is read once."""
    if isinstance(cells, pd.Series):
        pairs = [(0, _BLANK) if blank else _parse_count(value) for value, blank in zip(cells.to_numpy(), cells.isna(), strict=True)]
        codes = np.arange(len(pairs))
    else:
        entries = people_of(cells)
        pairs, codes = [_parse_count(value, texts) for value in entries.distinct], entries.codes
    number = np.array([*(pair[0] for pair in pairs), 0], np.int64)
    fault = np.array([*(pair[1] for pair in pairs), _BLANK], np.int8)
    return number[codes], fault[codes]


_WHOLE_FROM = Decimal(10) ** LONGEST_NUMBER  # a decimal number of a table in memory may have more digits than can be looked at


def _parse_count(value: object, texts: bool = False) -> tuple[int, int]:
    """Return an entry as a whole number, cut to 2**53 (0 if the entry has a fault), and the number of its fault."""
    text = value.strip() if isinstance(value, str) and texts and len(value) <= LONGEST_NUMBER else ""
    if _NUMBER.fullmatch(text) and not re.match(MAY_BE_THOUSANDS, text):
        value = Decimal(text)
    elif isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating | Decimal):
        return 0, _NO_NUMBER
    if isinstance(value, int | np.integer):
        return (min(int(value), MOST_RECORDS), _NO_FAULT) if value >= 0 else (0, _NEGATIVE)
    number = value if isinstance(value, Decimal) else Decimal(float(value))
    if not number.is_finite():
        return 0, _NO_NUMBER
    if number < 0:
        return 0, _NEGATIVE
    is_whole = number >= _WHOLE_FROM or number == number.to_integral_value()
    return (int(min(number, Decimal(MOST_RECORDS))), _NO_FAULT) if is_whole else (0, _FRACTION)


def check_counts(counts: ColumnCounts, bad_rows: str) -> Integers:
    """Return (n,) trips of each row, -1 where the row is to be left out.

    Raises:
        InputError: a count is bad under "refuse"; the column has entries, and not one is a whole number of at least 0.
    """
    bad = counts.fault != _NO_FAULT
    if bad_rows == "refuse" and bad.any():
        raise InputError(_fault_text(counts, counts.fault))
    faults = counts.fault[counts.fault != _BLANK]
    if len(faults) and faults.all():
        raise UnusableFileError(f"{counts.source} holds no whole number. {_fault_text(counts, faults)}", len(counts.fault))
    return np.where(bad, -1, counts.trips)


def _fault_text(counts: ColumnCounts, fault: NDArray[np.int8]) -> str:
    """Return the error text for the first fault in `_FAULTS` that occurs."""
    kind = int(fault[fault != _NO_FAULT].min())
    return f"{counts.source} {_FAULTS[kind].format(noun=counts.noun)}. {WEIGHTS_REFUSED if kind == _FRACTION else REMEDY}"


def cells_of_ids(ends: Sequence[Ids], sides: Sequence[Regions], bad_rows: str) -> Integers:
    """Return (n,) leaf regions of one column of ids, or pairs of leaves of two, as `leaf_indexes` finds them."""
    leaves = [leaf_indexes(ids, side, bad_rows) for ids, side in zip(ends, sides, strict=True)]
    return leaves[0].astype(np.int64) if len(leaves) == 1 else pairs_of(leaves[0], leaves[1], sides[1].size(sides[1].depth))


def place_table(
    table: pd.DataFrame,
    ends: Mapping[str, Regions],
    count: str | None,
    person: str | ArrayLike | People | None,
    bad_rows: str,
    noun: str = "trips",
    *,
    spare: Sequence[str] = (),
) -> tuple[PlacedRows, EachRow | None]:
    """Return the rows of a table with their leaves or pairs of leaves; and what is said of columns that may be counts and are not read.

    Args:
        table: n rows.
        ends: the columns of ids, and the regions of each.
        count: the column of counts: see `count_of`.
        person: a column, or (n,) entries.
        bad_rows: "refuse" or "drop".
        noun: what is counted.
        spare: further columns that hold no counts.

    Raises:
        InputError: a column is missing, or a row is bad under "refuse".
    """
    ids = [ids_of(column_of(table, name, noun), f"Column {name!r}") for name in ends]
    cells = cells_of_ids(ids, list(ends.values()), bad_rows)
    column = count_of(table, count, noun)
    counts = None if column is None else check_counts(counts_of(column, f"Column {column.name!r}", noun=noun), bad_rows)
    each_row = None if column is not None else each_row_of_frame(noun.removesuffix("s"), table, count, [*ends, *spare, person])
    people = column_of(table, person, noun) if isinstance(person, str) else person
    owners = None if people is None else check_people(people, len(table), bad_rows)
    rows = None if owners is None else sum_rows([each.words() for each in ids], counts, owners)
    return PlacedRows(cells=cells, count=counts, person=owners, rows=rows), each_row


TRIP = "trip"


@dataclass(frozen=True, kw_only=True, eq=False)
class TripCounts(Counts):
    """Trips per pair of leaf regions. PRIVATE: only a mechanism or a study may look inside.

    Attributes:
        regions: where trips begin.
        origin: (k,) indexes of leaf regions of `regions`.
        destination: (k,) indexes of leaf regions of `destinations`; pairs are distinct, ordered by origin, then destination.
        destinations: where trips end; `regions` if None.
        unit: "trip", or "person" where m trips of one person are protected together.
        exactly: whether the curator declares that every person has exactly m trips; then replacing a person does not change the total.
        enforced: whether the bound was enforced with a person column; otherwise the curator vouches for it.
        beyond: dropped trips beyond the most that a pair holds (`most_per_cell`); they are among `over`.
        notes: texts that say what the reader of a file left out on purpose, such as totals; for the curator only.

    The others, and what is refused, are those of `dpviz.data.counts.Counts`; hierarchies of different depths are refused, too.

    >>> import dpviz as dv
    >>> table = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
    >>> regions = dv.Regions.from_table(table, levels=["state", "town"])
    >>> trips = pd.DataFrame({"origin": ["a", "a", "b", "c"], "destination": ["c", "b", "c", "a"], "who": [1, 1, 1, 2]})
    >>> trip_counts = dv.TripCounts.from_table(trips, regions=regions, person="who", contributions=2)
    >>> trip_counts
    TripCounts(Regions(2 state, 3 town), unit='person', contributions=2)
    >>> trip_counts.total, trip_counts.over
    (3, 1)
    """

    family: ClassVar[str] = "trips"
    none_inside: ClassVar[str] = NONE_BETWEEN
    frame_words: ClassVar[str] = "Regions or a pair (origins, destinations)"
    has_levels: ClassVar[str] = "Trips have levels"
    units: ClassVar[tuple[str, ...]] = (TRIP, PERSON)
    places: ClassVar[tuple[str, ...]] = ("origin", "destination")
    least: ClassVar[Mapping[str, int]] = {**Counts.least, "beyond": 0}

    regions: Regions
    origin: Places
    destination: Places
    destinations: Regions | None = None
    unit: str = TRIP
    exactly: bool = False
    enforced: bool = False
    beyond: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.destinations is None:
            object.__setattr__(self, "destinations", self.regions)
        if not isinstance(self.exactly, bool | np.bool_):
            raise InputError("exactly must be True or False: it is a declaration.")
        match_depths(self.regions, self.ends)
        super().__post_init__()
        if self.unit == TRIP and self.contributions > 1:
            raise InputError("unit must be 'person', or 'trip' where contributions is 1.")

    def _check_places(self) -> None:
        inside = self.origin.min() >= 0 and self.origin.max() < self.regions.size(self.regions.depth)
        if not inside or self.destination.min() < 0 or self.destination.max() >= self.ends.size(self.ends.depth):
            raise InputError("origin and destination must be indexes of leaf regions.")
        pair = self.origin * np.int64(self.ends.size(self.ends.depth)) + self.destination
        if (pair[1:] <= pair[:-1]).any():
            raise InputError("Pairs must be distinct and ordered by origin, then destination.")

    @property
    def ends(self) -> Regions:
        """Where trips end: `destinations`, never None."""
        return self.destinations or self.regions

    @property
    def total(self) -> int:
        """The number of trips in the counts, plus `beyond`. It does not depend on how the trips are spread over the pairs."""
        return int(self.count.sum()) + self.beyond

    def __repr__(self) -> str:
        """A text without a single private number, so that logs and tracebacks cannot leak."""
        return f"TripCounts({self.regions!r}, unit={self.unit!r}, contributions={self.contributions})"

    @property
    def frame(self) -> tuple[Regions, Regions]:
        """Where trips begin, and where they end."""
        return self.regions, self.ends

    @property
    def sides(self) -> tuple[Regions, ...]:
        """Where trips begin, and where they end."""
        return self.frame

    @property
    def level_range(self) -> range:
        """The levels of the regions, 1 for the coarsest."""
        return range(1, self.regions.depth + 1)

    @property
    def is_enforced(self) -> bool:
        """Whether the bound was enforced with a person column; otherwise the curator vouches for it."""
        return self.enforced

    @property
    def leaves(self) -> int:
        """How many pairs of finest regions there are."""
        return self.regions.size(self.regions.depth) * self.ends.size(self.ends.depth)

    def places_of(self, leaves: Integers) -> dict[str, Places]:
        """Return the ends of pairs of finest regions; see `Counts.places_of`."""
        origin, destination = np.divmod(leaves, self.ends.size(self.ends.depth))
        return {"origin": origin.astype(np.int32), "destination": destination.astype(np.int32)}

    def identity(self) -> tuple[Any, ...]:
        """Return plain values that identify the finest regions of both ends, in a fingerprint of the counts."""
        return "trips", [[*side.ids[-1]] for side in self.sides]

    def without_records(self) -> TripCounts:
        """Return counts without any trip, and without the reader's notes; regions, unit and bound are unchanged. PUBLIC."""
        return replace(super().without_records(), notes=())

    @classmethod
    def empty_in(cls, frame: Any, contributions: int = 1, *, exactly: bool = False) -> TripCounts | None:
        """Make counts without any trip between regions, or a pair of origins and destinations; None for another frame. PUBLIC."""
        sides = frame if isinstance(frame, tuple) else (frame,)
        if len(sides) not in (1, 2) or not all(isinstance(side, Regions) for side in sides):
            return None
        nowhere, none = np.zeros(0, np.int32), np.zeros(0, np.int64)
        empty = cls(regions=sides[0], destinations=sides[-1], origin=nowhere, destination=nowhere, count=none)
        return empty if contributions == 1 else empty.of_persons(contributions, exactly=exactly)

    def of_persons(self, most: int, *, exactly: bool = False) -> TripCounts:
        """Declare that each person has at most `most` of the trips, or exactly so many."""
        return replace(self, contributions=most, unit=PERSON, exactly=exactly)

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        *,
        regions: Regions,
        destinations: Regions | None = None,
        count: str | None = None,
        person: str | ArrayLike | None = None,
        contributions: int = 1,
        distinct: bool = False,
        exactly: bool = False,
        bad_rows: str = "refuse",
        key: bytes | None = None,
        unit: str | None = None,
    ) -> TripCounts:
        """Add up trips per pair of leaf regions.

        Args:
            table: columns origin, destination (ids of leaf regions: texts, or whole numbers, which stand for their digits) and count
                (whole numbers, >= 0; each row is one trip without it).
            regions: where trips begin.
            destinations: where they end, a hierarchy of the same depth; `regions` if None.
            count: another name of the column of counts, or "none", which says that each row is one trip. Without both, an
                `UnreadColumnsWarning` names columns of numbers.
            person: a column of `table`, or (n,) entries, that say who a row belongs to; each person then keeps at most
                `contributions` trips, chosen at random. Without `person`, the protected unit is one trip if
                contributions = 1; if contributions > 1, the curator vouches that no person has more.
            contributions: m >= 1.
            distinct: whether each person counts once in each pair, and keeps at most m distinct pairs.
            exactly: whether the curator declares that every person has exactly m trips. With `person` the declaration is enforced:
                people with fewer are refused or dropped, as `bad_rows` says.
            bad_rows: "refuse" raises on an unknown id, a missing cell or a bad count, "drop" leaves the row out.
            key: bytes that decide which trips a person keeps; fresh from the operating system if None.
            unit: "trip" (or "record") declares that each trip is protected by itself, whoever makes it. Needed to publish a column count
                without `person` and with contributions = 1: without it the counts are marked, and a release of them is for studies.

        Raises:
            InputError: a column is missing, `unit` is given beside persons or their bound, or a row is bad under "refuse"; the text names
                the column and the rule, never an entry. Under "drop" only a fault of a whole column raises: not one count is a whole
                number.
        """
        check_bad_rows(bad_rows)
        ends = regions if destinations is None else destinations
        check_regions(regions)
        check_regions(ends)
        placed, each_row = place_table(table, {"origin": regions, "destination": ends}, count, person, bad_rows)
        warn_each_row(each_row)
        most = check_whole(contributions, "contributions", 1)
        refuse_bound_without_persons(placed.person, 1, distinct=distinct)
        is_declared = declares_unit(unit, placed.person, most, words=TRIPS)
        bound = None if placed.person is None else bound_of(most, key, distinct=distinct, fewer=bad_rows if exactly else KEEP)
        counted = placed.counts(bound, regions.size(regions.depth) * ends.size(ends.depth))
        return cls.from_cell_counts(
            counted,
            regions=regions,
            destinations=ends,
            contributions=most,
            exactly=exactly,
            enforced=bound is not None,
            unit_declared=is_declared or placed.count is None,
            each_row=each_row,
        )

    @classmethod
    def from_cell_counts(cls, counted: CellCounts, *, regions: Regions, destinations: Regions, **declared: Any) -> TripCounts:
        """Make counts of the trips per pair that an engine counted; `declared` has contributions, exactly, enforced, notes and marks."""
        origin, destination = np.divmod(counted.cells, destinations.size(destinations.depth))
        return cls.of_cells(
            counted,
            regions=regions,
            origin=origin.astype(np.int32),
            destination=destination.astype(np.int32),
            destinations=destinations,
            unit=PERSON if declared["enforced"] or declared["contributions"] > 1 else TRIP,
            beyond=counted.beyond,
            **declared,
        )


def match_depths(regions: Regions, destinations: Regions) -> tuple[Regions, Regions]:
    """Return both hierarchies, or refuse them if their depths differ."""
    if regions.depth != destinations.depth:
        raise InputError("Origins and destinations need hierarchies of the same depth.")
    return regions, destinations
