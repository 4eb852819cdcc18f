"""What private counts of every family have in common: records per occupied place of a public frame, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.arrays import Integers, Places
from dpviz.cards import PrivateCard
from dpviz.data.bounding import Bound
from dpviz.data.cell_counts import CellCounts
from dpviz.data.cells import check_whole, freeze, too_many
from dpviz.data.fingerprints import UNKNOWN, Fingerprints, fingerprints_of_rows
from dpviz.data.roles import EachRow
from dpviz.errors import InputError, check_choice
from dpviz.families import FAMILIES
from dpviz.space.periods import Period

RECORD, PERSON = "record", "person"


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts(PrivateCard):
    """Records per occupied place of a public frame. PRIVATE: only a mechanism or a study may look inside.

    A family adds its name (`family`), its frame, the arrays that say which places are occupied, and the check of these.

    Attributes:
        count: (k,) records in each place, at least 1.
        contributions: m, the most records that one protected unit has here; mechanisms scale every sensitivity by it.
        unit: "record", or "person" when a person column was given and the bound was enforced with it.
        dropped: records left out; for the curator only, never released.
        outside: dropped records in no place of the frame.
        bad: dropped records of rows with a missing or malformed entry; one for a row whose count is bad or that cannot be cut into cells.
        over: dropped records that the bound leaves out, or that are beyond the most that a place holds (`most_per_cell`).
        row_stable: whether each row decided only itself when the data were read; without that no release of them is published.
        unit_declared: whether it was said what is protected, if rows stand for numbers of records; likewise.
        fingerprints: of the files or rows that were counted; private, and not in a pickle.
        each_row: what is said because no column of counts was chosen, and one may be there; None if there is nothing to say. Public, but
            for names of columns that the file does not declare.
        during: the one period whose rows were counted; None for all rows. Public.

    Raises:
        InputError: the arrays differ in length, a place is not of the frame or out of order, a count is under 1, the counts add up to more
            than 2**53, the unit is unknown, or outside, bad and over do not add up to dropped.
    """

    family: ClassVar[str]
    none_inside: ClassVar[str]
    beyond_frame: ClassVar[str] = "in no region"
    frame_words: ClassVar[str] = "Regions"
    has_levels: ClassVar[str] = "These regions have levels"
    units: ClassVar[tuple[str, ...]] = (RECORD, PERSON)
    places: ClassVar[tuple[str, ...]]
    least: ClassVar[Mapping[str, int]] = {"contributions": 1, "dropped": 0, "outside": 0, "bad": 0, "over": 0}

    count: Integers
    contributions: int = 1
    unit: str = RECORD
    dropped: int = 0
    outside: int = 0
    bad: int = 0
    over: int = 0
    row_stable: bool = True
    unit_declared: bool = True
    fingerprints: Fingerprints = field(default=UNKNOWN, repr=False)
    each_row: EachRow | None = None
    during: Period | None = None

    def __post_init__(self) -> None:
        for name in (*self.places, "count"):
            object.__setattr__(self, name, freeze(getattr(self, name), np.int64 if name == "count" else np.int32, name))
        for name, least in self.least.items():
            object.__setattr__(self, name, check_whole(getattr(self, name), name, least))
        check_choice(self.unit, self.units, "unit", InputError)
        if self.outside + self.bad + self.over not in (0, self.dropped):
            raise InputError("outside, bad and over must add up to dropped.")
        if any(len(getattr(self, name)) != len(self.count) for name in self.places):
            raise InputError(f"{', '.join(self.places)} and count must have the same length.")
        if not len(self.count):
            return
        self._check_places()
        if self.count.min() < 1 or too_many(self.count):
            raise InputError("Counts must be at least 1 and add up to at most 2**53.")

    def _check_places(self) -> None:
        """Refuse places that are not of the frame, not distinct, or out of order."""
        raise NotImplementedError

    @property
    def frame(self) -> Any:
        """The public frame: a domain, regions, or the regions of both ends of trips."""
        raise NotImplementedError

    @property
    def sides(self) -> tuple[Any, ...]:
        """The hierarchies of regions in the frame: none, one, or those where trips begin and end."""
        return ()

    @property
    def level_range(self) -> range:
        """The numbers of the levels on which releases of these counts are judged."""
        raise NotImplementedError

    @classmethod
    def empty_in(cls, frame: Any, contributions: int = 1, *, exactly: bool = False) -> Self | None:
        """Make counts without any record on a public frame; None if it is the frame of another family. PUBLIC.

        Args:
            frame: as `frame`.
            contributions: the bound m on the records of one person; 1 for none.
            exactly: as for `of_persons`.
        """
        raise NotImplementedError

    @property
    def leaves(self) -> int:
        """How many places the frame has: cells of a lattice, finest regions, or pairs of them."""
        raise NotImplementedError

    def places_of(self, leaves: Integers) -> dict[str, Places]:
        """Return the arrays that say where leaves of the frame are, by name; leaves in which no record can be are left out.

        Args:
            leaves: (k,) indices: of cells, row by row from the south, of finest regions, or of pairs of them, by origin.
        """
        raise NotImplementedError

    def identity(self) -> tuple[Any, ...]:
        """Return plain values that identify family and frame, in a fingerprint of the counts."""
        raise NotImplementedError

    def identity_arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays that identify the counts in such a fingerprint."""
        return tuple(getattr(self, name) for name in (*self.places, "count"))

    def without_records(self) -> Self:
        """Return counts without any record; frame, unit and bound are unchanged. PUBLIC."""
        nowhere: dict[str, Any] = {name: np.zeros(0, np.int32) for name in self.places}
        none_left_out: dict[str, Any] = dict.fromkeys(("dropped", "outside", "bad", "over"), 0)
        return replace(self, **nowhere, **none_left_out, count=np.zeros(0, np.int64), fingerprints=UNKNOWN)

    def made_up(self, number: int = 10_000, most: int = 1000) -> Self:
        """Replace the records by made-up ones: `number` in each of up to `most` places, evenly spaced. PUBLIC.

        10,000 are enough to pass the thresholds of mechanisms.
        """
        places: dict[str, Any] = self.places_of(np.unique(np.linspace(0, self.leaves - 1, min(self.leaves, most)).astype(np.int64)))
        return replace(self.without_records(), **places, count=np.full(len(places[self.places[0]]), np.int64(number)))

    @property
    def is_enforced(self) -> bool:
        """Whether the bound of each person's records was enforced, by a column that says whose they are."""
        return self.unit == PERSON

    @property
    def noun(self) -> str:
        """One of what is counted: "record" or "trip"."""
        return FAMILIES[self.family].noun

    @property
    def is_masked(self) -> bool:
        """Whether the frame declares places where no record can be."""
        return False

    @classmethod
    def of_cells(cls, counted: CellCounts, bound: Bound | None = None, **fields: Any) -> Self:
        """Make counts of the records per cell that were counted with this `bound`; the unit is one record if there is none.

        Args:
            counted: the records of each cell, which are not copied.
            bound: of each person's records.
            fields: the frame, the places of the cells, and others that are known.
        """
        unit: dict[str, Any] = {} if bound is None else {"contributions": int(bound.most), "unit": PERSON}
        for array in (counted.counts, *(fields[name] for name in cls.places)):
            array.flags.writeable = False  # the constructor takes read-only arrays without a copy
        return cls(
            count=counted.counts,
            dropped=counted.outside + counted.bad + counted.over,
            outside=counted.outside,
            bad=counted.bad,
            over=counted.over,
            fingerprints=fingerprints_of_rows(counted.rows),
            **unit,
            **fields,
        )

    def of_persons(self, most: int, *, exactly: bool = False) -> Self:  # noqa: ARG002
        """Declare that each person has at most `most` of the records; or `exactly` so many, in a family that distinguishes the two."""
        return replace(self, contributions=most, unit=PERSON)
