"""The parts of a draft: files of records, boxes on the map, the account that pays, and a public guess. Every value may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from dpviz.app.state.kinds import PageKind
from dpviz.app.state.values import BINS, CURATE, EVERY_ROW, HOURS, MONTHS, NO_ZONE, PERSON, PLACE_ALONE, SUMS, TEACH, WEEKDAYS
from dpviz.errors import SettingError
from dpviz.families import TRIP_FAMILY
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.publishing.config import CategoriesKeys, CategoriesPart, DataKeys, DataPart, PublicationPart, RegionsKeys
from dpviz.space.categories import HOUR, MONTH, WEEKDAY
from dpviz.view.basemap import Bounds

_UNUSED_WITH: dict[str, dict[str, Any]] = {"region": {"x": None, "y": None, "geometry": None}, "geometry": {"x": None, "y": None}}
"""Of the columns that say where a record lies, those that are not read beside another one."""
TIMES_OF = {HOURS: HOUR, WEEKDAYS: WEEKDAY, MONTHS: MONTH}
"""The part of a time that counts, by what is chosen on a page."""
_NO_BOUND = {PERSON: "Choose the column of persons, and say the most {noun}s of one person that count."}


@dataclass(frozen=True, kw_only=True)
class Files:
    """Files of records, how they are read, and whom a release of them protects.

    Attributes:
        data: where they are, their columns, how texts are written, the bound per person, the engine.
        digest: identifies the files that all this was said of, since others need answers of their own; "" for files that an opened
            configuration names and that are not chosen yet.
        header: identifies the columns of these files, once they were read; "" before.
        confirmed: whether it was confirmed how their texts are written.
        whom: "person": a column says whose record a row is; "vouched": nobody has more than the bound; "each": each row is its own person;
            None until that is said.
        said_in_teach: whether that was said of public data in Teach, which is no answer in Curate.
        drop_bad_rows: whether rows that cannot be read are left out.
    """

    data: DataKeys = field(default_factory=DataKeys)
    digest: str = ""
    header: str = ""
    confirmed: bool = False
    whom: str | None = None
    said_in_teach: bool = False
    drop_bad_rows: bool = False

    @property
    def path(self) -> str | None:
        """The path of the files, or the name of an upload; None while they are missing."""
        said = self.data.trips or self.data.points
        return said if said is None or isinstance(said, str) else said[0]

    @property
    def bad_rows(self) -> str:
        """What a count does with rows that cannot be read: "drop" or "refuse"."""
        return "drop" if self.drop_bad_rows else "refuse"

    def whom_in(self, mode: str) -> str | None:
        """Return whom a release protects in a mode: in Teach each row, unless something else is said; None until it is said in Curate."""
        if mode == TEACH:
            return self.whom or EVERY_ROW
        return None if self.said_in_teach else self.whom

    def protecting(self, whom: str, mode: str, columns: Sequence[str]) -> Files:
        """Return the answers with whom a release protects; what it needs is not proposed in Curate, but for the only column.

        Args:
            whom: as of `whom`.
            mode: Teach or Curate.
            columns: that may hold persons.
        """
        is_new = self.said_in_teach and mode == CURATE
        unsaid: dict[str, Any] = {"person": None, "contributions": None, "per_slot": None, "distinct": False, "exactly": False}
        data = replace(self.data, **unsaid) if is_new else self.data
        if whom == PERSON and data.person is None and len(columns) == 1:
            data = replace(data, person=columns[0])
        if mode == TEACH and data.contributions is None:
            data = replace(data, contributions=1)
        return replace(self, data=data, whom=whom, said_in_teach=mode == TEACH)

    def checked(self, kind: PageKind, mode: str, *, by_category: bool = False) -> DataPart:
        """Return the table [data] of a configuration.

        Args:
            kind: the page.
            mode: Teach, where each row is its own person unless something else is said, or Curate.
            by_category: whether records are counted by category, beside the place.

        Raises:
            SettingError: the file, or whom the release protects, is missing; or the keys do not fit together.
        """
        noun, is_trips = kind.family.noun, kind.family is TRIP_FAMILY
        if (self.data.trips if is_trips else self.data.points) is None:
            raise SettingError(f"Choose a file of {'trips' if is_trips else 'points'}.")
        whom = self.whom_in(mode)
        if whom is None:
            raise SettingError("Say whom the release protects: nothing is preselected.")
        parts: dict[str, Any] = {item.name: getattr(self.data, item.name) or item.default for item in fields(DataKeys)} | {
            "sample": None,
            "size": None,
        }
        parts |= _UNUSED_WITH.get(next((name for name in _UNUSED_WITH if parts[name]), ""), {})
        parts |= {} if by_category else {"slot": None, "per_slot": None}
        if by_category and self.data.slot is None:
            raise SettingError("Choose the column by which records are counted.")
        if whom == EVERY_ROW:
            return DataPart(**parts | {"person": None, "contributions": None, "per_slot": None, "distinct": False, "exactly": False})
        if self.data.contributions is None or (whom == PERSON and self.data.person is None):
            raise SettingError(_NO_BOUND.get(whom, "Say the most {noun}s of one person that count.").format(noun=noun))
        return DataPart(**parts if whom == PERSON else parts | {"person": None, "distinct": False})


@dataclass(frozen=True, kw_only=True)
class ChosenRegions(RegionsKeys):
    """A file of regions and how it is read, or the levels of cells that need none.

    Attributes:
        digest: identifies the file that this was said of, as of `Files`.
    """

    digest: str = ""


@dataclass(frozen=True, kw_only=True)
class ChosenCategories(CategoriesKeys):
    """What is counted beside the place, as far as it is said.

    The zone of times may also be `NO_ZONE`. What is said of another way of counting stays, and is not used.

    Attributes:
        digest: identifies the public file of values that this was said of, as of `Files`.
    """

    digest: str = ""

    def checked(self, counted_by: str) -> CategoriesPart | None:
        """Return the table [categories] of a configuration; None where places alone are counted.

        Args:
            counted_by: one of `COUNTED_BY`.

        Raises:
            SettingError: something is missing, or does not fit together.
            DomainError: the categories are invalid.
        """
        if counted_by == PLACE_ALONE:
            return None
        if counted_by in TIMES_OF:
            return self._checked_times(counted_by)
        if counted_by == BINS:
            if not self.bins:
                raise SettingError("Type the edges of the bins.")
            return CategoriesPart(bins=self.bins, coarser=self.coarser, other=self.other)
        if counted_by == SUMS:
            if len(self.sum_between) != 2:
                raise SettingError("Type the smallest and the largest value that counts.")
            return CategoriesPart(sum_between=self.sum_between, step=self.step)
        if self.file is None:
            if not self.values:
                raise SettingError("Type the values that are counted, or choose a public file of them.")
            return CategoriesPart(values=self.values, other=self.other)
        if not self.levels:
            raise SettingError("Say which columns of the public file hold the values, coarsest level first.")
        return CategoriesPart(file=self.file, levels=self.levels, names=self.names, other=self.other)

    def _checked_times(self, counted_by: str) -> CategoriesPart:
        if self.zone is None:
            raise SettingError("Choose the time zone, or say that the column has no times.")
        first, last = (self.first, self.last) if counted_by == MONTHS else (None, None)
        if counted_by == MONTHS and (first is None or last is None):
            raise SettingError("Type the first and the last month.")
        zone = None if self.zone == NO_ZONE else self.zone
        return CategoriesPart(times=TIMES_OF[counted_by], zone=zone, first=first, last=last, other=self.other)


@dataclass(frozen=True, kw_only=True)
class Around:
    """A public file of polygons around which a box was declared.

    Attributes:
        digest: identifies the file, so that the file of the private data is refused later, too.
        size: its bytes.
        bounds: west, south, east, north that were taken from it.
    """

    digest: str
    size: int
    bounds: tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle of the map that is declared, side by side.

    Attributes:
        west: in units of the CRS, like the others.
        south: the southern side.
        east: the eastern side.
        north: the northern side.
        crs: its CRS; "none" for a plain plane, "" for that of the coordinates.
        place: name of the town around which it was looked for.
        km_across: width of the box around that town, in kilometres.
        frame: name of a usual rectangle that was taken, such as "Europe"; "" for one of its own.
        around: the public file of polygons around which it was declared; None without one.
    """

    west: float | None = None
    south: float | None = None
    east: float | None = None
    north: float | None = None
    crs: str = ""
    place: str = ""
    km_across: float | None = None
    frame: str = ""
    around: Around | None = None

    @property
    def typed_crs(self) -> str:
        """The CRS that was typed; "" for none, and for a usual rectangle, which has its own."""
        return "" if self.frame else self.crs.strip()

    def bounds(self) -> Bounds | None:
        """Return west, south, east and north; None while one is missing.

        Raises:
            SettingError: the box has no area.
        """
        west, south, east, north = self.west, self.south, self.east, self.north
        if west is None or south is None or east is None or north is None:
            return None
        if west >= east or south >= north:
            raise SettingError("West must be smaller than east, and south smaller than north.")
        return west, south, east, north


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account in the ledger that pays.

    Attributes:
        digest: identifies the data that it was said for; "" for those of an opened configuration.
        name: of the data; "" for one that is made of the sample or of the file's name.
        counts_rho: whether the ledger counts ρ, or else ε and δ.
        epsilon: the most ε that may ever be spent.
        delta: the most δ that may ever be spent.
        rho: the most ρ that may ever be spent.
    """

    digest: str = ""
    name: str = ""
    counts_rho: bool = False
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def cap(self) -> Budget | None:
        """Return the cap; None while it is not typed. An account that the ledger has already needs none."""
        if self.counts_rho:
            return None if self.rho is None else ZcdpBudget(self.rho)
        if self.epsilon is None:
            return None
        return ApproxBudget(self.epsilon, self.delta) if self.delta else PureBudget(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A public guess of the data, from which errors are expected.

    Attributes:
        records: how many there may be.
        spread: how they lie, one of `SPREADS` (`dpviz.publishing.public_guess`); None for the usual way.
        pairs: on how many pairs of the finest level trips may lie; None for all of them.
        level: the level whose error is shown.
        slot_level: of counts by category, the level of categories whose error is shown there.
        wanted: the error that is wanted there, for which ε is found.
    """

    records: int | None = None
    spread: str | None = None
    pairs: int | None = None
    level: int | None = None
    slot_level: int | None = None
    wanted: float | None = None


def no_texts() -> PublicationPart:
    """Return the texts of a publication before any is typed."""
    return PublicationPart(name="", curator="", description="")
