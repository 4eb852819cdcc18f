"""The parts of a draft: files of records, boxes on the map, the account that pays, and a public guess. Every value may be missing."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction

from dpviz.app.state.kinds import PageKind
from dpviz.app.state.values import EVERY_ROW, PERSON, TEACH
from dpviz.errors import SettingError
from dpviz.families import TRIP_FAMILY
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.publishing.config import DataKeys, DataPart, PublicationPart
from dpviz.publishing.public_guess import EVEN
from dpviz.view.basemap import Bounds

_NO_BOUND = {PERSON: "Choose the column of persons, and say the most {noun}s of one person that count."}


@dataclass(frozen=True, kw_only=True)
class Files:
    """Files of records, how they are read, and whom a release of them protects.

    Attributes:
        data: where they are, their columns, how texts are written, the bound per person, the engine.
        digest: identifies the files that columns and unit were chosen for, since other files need choices of their own.
        whom: "person": a column says whose record a row is; "vouched": nobody has more than the bound; "each": each row is its own person;
            None until that is said.
        drop_bad_rows: whether rows that cannot be read are left out.
    """

    data: DataKeys = field(default_factory=DataKeys)
    digest: str = ""
    whom: str | None = None
    drop_bad_rows: bool = False

    def checked(self, kind: PageKind, mode: str) -> DataPart:
        """Return the table [data] of a configuration.

        Args:
            kind: the page.
            mode: Teach, where each row is its own person unless something else is said, or Curate.

        Raises:
            SettingError: the file, or whom the release protects, is missing; or the keys do not fit together.
        """
        noun, is_trips = kind.family.noun, kind.family is TRIP_FAMILY
        if (self.data.trips if is_trips else self.data.points) is None:
            raise SettingError(f"Choose a file of {'trips' if is_trips else 'points'}.")
        whom = self.whom or (EVERY_ROW if mode == TEACH else None)
        if whom is None:
            raise SettingError("Say whom the release protects: nothing is preselected.")
        parts = {name: getattr(self.data, name) for name in [item.name for item in fields(DataKeys)]} | {"sample": None, "size": None}
        if whom == EVERY_ROW:
            return DataPart(**parts | {"person": None, "contributions": None, "distinct": False, "exactly": False})
        if self.data.contributions is None or (whom == PERSON and self.data.person is None):
            raise SettingError(_NO_BOUND.get(whom, "Say the most {noun}s of one person that count.").format(noun=noun))
        return DataPart(**parts if whom == PERSON else parts | {"person": None, "distinct": False})


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
    """

    west: float | None = None
    south: float | None = None
    east: float | None = None
    north: float | None = None
    crs: str = ""
    place: str = ""
    km_across: float | None = None

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
        name: of the data; "" for one that is made of the sample or of the file's name.
        counts_rho: whether the ledger counts ρ, or else ε and δ.
        epsilon: the most ε that may ever be spent.
        delta: the most δ that may ever be spent.
        rho: the most ρ that may ever be spent.
    """

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
        spread: how they lie, one of `SPREADS` (`dpviz.publishing.public_guess`).
        pairs: on how many pairs of the finest level trips may lie; None for all of them.
        level: the level whose error is shown.
        wanted: the error that is wanted there, for which ε is found.
    """

    records: int | None = None
    spread: str = EVEN
    pairs: int | None = None
    level: int | None = None
    wanted: float | None = None


def no_texts() -> PublicationPart:
    """Return the texts of a publication before any is typed."""
    return PublicationPart(name="", curator="", description="")
