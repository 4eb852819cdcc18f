"""The tables that configurations are made of, each key with its meaning; read by the command line, written by the app."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpviz.errors import BudgetError, RefusedError, SettingError
from dpviz.mechanisms import FLOW_MECHANISMS, POINT_MECHANISMS, REFERENCES
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.publishing.toml_tables import check_keys
from dpviz.space.domain import Domain, refuse_degrees

PLAIN = "none"


@dataclass(frozen=True, kw_only=True)
class DomainPart:
    """[domain]: the public rectangle that points are counted in; never taken from the data.

    Attributes:
        bounds: west, south, east, north.
        crs: of the bounds; "none" is a plain plane without a map.
        order: the lattice has 2**order columns and rows.
    """

    bounds: tuple[float, ...]
    crs: str
    order: int = 10

    def __post_init__(self) -> None:
        refuse_degrees(self.domain())

    def domain(self) -> Domain:
        """The frame itself.

        Raises:
            SettingError: other than four bounds.
            DomainError: what a `Domain` refuses.
        """
        if len(self.bounds) != 4:
            raise SettingError("[domain] bounds must be four numbers: west, south, east, north.")
        west, south, east, north = self.bounds
        return Domain(bounds=(west, south, east, north), crs=None if self.crs.lower() == PLAIN else self.crs, order=self.order)


@dataclass(frozen=True, kw_only=True)
class RegionsPart:
    """[regions] and [destinations]: a public file of nested regions.

    Attributes:
        file: its path, from the configuration's folder.
        levels: columns of ids, coarsest first; left out if the file names parents.
        names: for some levels, the column of readable names.
        prefixes: makes coarser levels of the first characters of the ids: [2, 5] states and counties out of tracts.
        crs: of the shapes, if the file does not say.
    """

    file: str
    levels: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    prefixes: tuple[int, ...] = ()
    crs: str | None = None


@dataclass(frozen=True, kw_only=True)
class MechanismPart:
    """[mechanism]: which one.

    Attributes:
        key: its name in the tables of README.
        settings: those that differ from the defaults.
    """

    key: str
    settings: dict[str, Any] = field(default_factory=dict)

    def built(self, *, points: bool, references: bool = False) -> Any:
        """The mechanism with its settings.

        Args:
            points: for points; else for trips.
            references: whether those that are not private are allowed.

        Raises:
            SettingError: an unknown key or setting (names the known ones), or a value out of range.
            RefusedError: a reference that is not private, where it is not allowed.
        """
        offered = (POINT_MECHANISMS | (REFERENCES if references else {})) if points else FLOW_MECHANISMS
        if points and self.key in REFERENCES and not references:
            raise RefusedError(f"{self.key} is NOT PRIVATE: a reference that shows what privacy costs, and is never published.")
        if self.key not in offered:
            raise SettingError(f"[mechanism] key must be one of {', '.join(offered)} for {'points' if points else 'trips'}.")
        kind = offered[self.key]
        check_keys(self.settings, {rule.name: rule for rule in kind.rules()}, "[mechanism.settings]")
        return kind(**self.settings)


@dataclass(frozen=True, kw_only=True)
class BudgetPart:
    """[budget]: epsilon, epsilon and delta, or rho; exact: 0.1 is one tenth, "1/3" a third.

    Attributes:
        epsilon: of pure or approximate differential privacy.
        delta: its other half.
        rho: of zero-concentrated differential privacy, instead of both.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        self.budget()

    def budget(self) -> Budget:
        """The budget itself; raises `BudgetError` if it makes no sense."""
        return _budget(self.epsilon, self.delta, self.rho, "[budget]")

    @classmethod
    def of(cls, budget: Budget) -> BudgetPart:
        """The table that stands for a budget."""
        return cls(**{name: getattr(budget, name) for name in ("epsilon", "delta", "rho") if hasattr(budget, name)})


@dataclass(frozen=True, kw_only=True)
class DatasetPart:
    """[dataset]: the account in the ledger.

    Attributes:
        name: what the curator calls the data. The ledger recognises data by their content, under whatever name.
        unit: "record", "person" or "trip", checked against the columns. A release of own files without a person column must say it:
            "record" (or "trip") declares that each of them is its own person.
        cap_epsilon: the most that may ever be spent; needed when the ledger sees the data first; the first draw fixes it.
        cap_delta: likewise.
        cap_rho: likewise, instead of both.
    """

    name: str
    unit: str | None = None
    cap_epsilon: Fraction | None = None
    cap_delta: Fraction | None = None
    cap_rho: Fraction | None = None

    def __post_init__(self) -> None:
        self.cap()

    def cap(self) -> Budget | None:
        """The cap; None if the ledger has to know it already."""
        if self.cap_epsilon is self.cap_delta is self.cap_rho is None:
            return None
        return _budget(self.cap_epsilon, self.cap_delta, self.cap_rho, "[dataset] cap:")


@dataclass(frozen=True, kw_only=True)
class PublicationPart:
    """[publication]: what only the curator can say, for the manifest and the report.

    Attributes:
        name: of the publication.
        curator: who answers for it.
        description: what was counted, when and how.
        region: where.
        intended_use: what it is good for.
    """

    name: str
    curator: str
    description: str
    region: str = ""
    intended_use: str = ""


@dataclass(frozen=True, kw_only=True)
class OutputPart:
    """[output]: where to.

    Attributes:
        folder: made by the release, from the configuration's folder; must not exist yet.
        formats: out of geoparquet (lossless, always written), geojson and csv.
    """

    folder: str
    formats: tuple[str, ...] = ("geoparquet", "geojson", "csv")


def _budget(epsilon: Fraction | None, delta: Fraction | None, rho: Fraction | None, where: str) -> Budget:
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise BudgetError(f"{where} rho stands alone: leave epsilon and delta out, or rho.")
        return ZcdpBudget(rho)
    if epsilon is None:
        raise BudgetError(f"{where} epsilon is missing (with delta where the mechanism needs one), or rho.")
    return PureBudget(epsilon) if delta is None else ApproxBudget(epsilon, delta)
