"""A release configuration, its tables and keys, as TOML: read by the command line, saved by the app."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from dpviz.data.counting.engines import AUTO, DASK, ENGINES
from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import BudgetError, RefusedError, SettingError
from dpviz.mechanisms import POINT_FAMILY, TRIP_FAMILY, AnyFamily, AnyMechanism
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.publishing.toml_tables import check_keys, read_file, table_of, to_table, to_text
from dpviz.samples.flows import FLOW_SAMPLES
from dpviz.samples.points import SAMPLES
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
        key: its name in README's tables of mechanisms.
        settings: those that differ from the defaults.
    """

    key: str
    settings: dict[str, Any] = field(default_factory=dict)

    def built(self, family: AnyFamily, *, references: bool = False) -> AnyMechanism:
        """The mechanism with its settings.

        Args:
            family: of mechanisms for the data's kind.
            references: whether those that are not private are allowed.

        Raises:
            SettingError: an unknown key or setting (names the known ones), or a value out of range.
            RefusedError: a reference that is not private, where it is not allowed.
        """
        offered = family.choices if references else family.mechanisms
        if self.key in family.choices and self.key not in offered:
            raise RefusedError(f"{self.key} is NOT PRIVATE: a reference that shows what privacy costs, and is never published.")
        if self.key not in offered:
            raise SettingError(f"[mechanism] key must be one of {', '.join(offered)} for {family.name}.")
        kind = offered[self.key]
        check_keys(self.settings, {rule.name: rule for rule in kind.rules()}, "[mechanism.settings]")
        return kind.from_settings(self.settings)


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


T = TypeVar("T", bound="DataPart")

_FILES = ("engine", "may_be_empty")
_WHO = ("count", "person", "contributions", "distinct", "quoted_newlines")
_NO_QUOTED_NEWLINES = (
    "[data] quoted_newlines = true: in a text table whose cells hold line ends, one malformed row can take thousands of others with it,"
    " more than the privacy guarantee covers. To publish the file, convert it to Parquet."
)
_ONLY = {"points": ("x", "y", "crs"), "trips": ("origin", "destination", "crs", "exactly"), "sample": ("size",)}


@dataclass(frozen=True, kw_only=True)
class DataPart:
    """[data]: one of points, trips and sample, and how its columns are called.

    Attributes:
        points: points files, from the configuration's folder: a path, a glob such as "homes/*.parquet", a folder of Parquet files,
            or a list of those.
        trips: trips files, likewise.
        sample: key of a bundled sample instead.
        size: records of a made-up sample of points.
        x: column of easting or longitude; found by its name if left out, as the next ones.
        y: column of northing or latitude.
        crs: of the coordinates, if the files do not say.
        origin: column of the trips' origins; or two columns of coordinates, ["lon", "lat"].
        destination: column of their destinations; or two columns likewise.
        count: column of records or trips per row. Points count one record per row if it is left out.
        person: column of whose record or trip a row is; protects persons.
        contributions: the most records or trips of one person; a release of one's own files must say it with a person column.
        distinct: whether each person counts once per cell or pair.
        exactly: declares that everybody has exactly that many trips.
        quoted_newlines: declares that cells of text tables hold line ends between quotation marks; of studies only.
        may_be_empty: declares that a release is right even where not one record counts; left out, that is refused as a mistake.
        engine: "numpy" in memory, "duckdb" beyond it, "dask" on a cluster; "auto" chooses by the files' size.
    """

    points: str | tuple[str, ...] | None = None
    trips: str | tuple[str, ...] | None = None
    sample: str | None = None
    size: int | None = None
    x: str | None = None
    y: str | None = None
    crs: str | None = None
    origin: str | tuple[str, ...] | None = None
    destination: str | tuple[str, ...] | None = None
    count: str | None = None
    person: str | None = None
    contributions: int | None = None
    distinct: bool = False
    exactly: bool = False
    quoted_newlines: bool = False
    may_be_empty: bool = False
    engine: str = AUTO

    def __post_init__(self) -> None:
        given = [name for name in ("points", "trips", "sample") if getattr(self, name) is not None]
        if len(given) != 1:
            raise SettingError("[data] needs exactly one of points, trips and sample.")
        if self.sample is not None and self.sample not in (*SAMPLES, *FLOW_SAMPLES):
            raise SettingError(f"[data] sample must be one of {', '.join((*SAMPLES, *FLOW_SAMPLES))}.")
        self._check_meaning(given[0])
        if () in (self.points, self.trips):
            raise SettingError(f"[data] {given[0]} names no file: give a path, a glob, a folder, or a list of them.")
        if self.distinct and self.person is None:
            raise SettingError("[data] distinct counts each person once per place: name the person column, or leave distinct out.")
        self._check_ends()
        self._check_lines()
        if self.engine not in (AUTO, *ENGINES):
            raise SettingError(f"[data] engine must be one of {', '.join((AUTO, *ENGINES))}.")

    def _check_meaning(self, given: str) -> None:
        """Refuse what is said about data of another kind."""
        known = {"size"} if self.sample in SAMPLES else set()
        if self.sample is None:
            known = {*_ONLY[given], *_WHO, *_FILES}
        rest = {name for names in _ONLY.values() for name in names} | {*_WHO, *_FILES}
        for each in fields(DataPart):
            if each.name in rest - known and getattr(self, each.name) != each.default:
                raise SettingError(f"[data] {each.name} has no meaning beside {given}.")

    def _check_ends(self) -> None:
        """Refuse trips that begin in coordinates and end in ids, or the other way round."""
        ends = (self.origin, self.destination)
        pairs = [end for end in ends if isinstance(end, tuple)]
        if pairs and (len(pairs) < len(ends) or any(len(pair) != 2 for pair in pairs)):
            raise SettingError(
                '[data] origin and destination are two columns of ids, or each a pair of coordinates: origin = ["lon", "lat"] and'
                ' destination = ["lon2", "lat2"].'
            )
        if self.trips is not None and self.crs is not None and not pairs:
            raise SettingError("[data] crs is that of coordinates, and trips between ids have none: leave it out.")

    def _check_lines(self) -> None:
        """Refuse to publish what a row of which may decide others."""
        if self.quoted_newlines:
            raise RefusedError(_NO_QUOTED_NEWLINES)

    @property
    def is_points(self) -> bool:
        """Whether these are points; else they are trips."""
        return self.points is not None or self.sample in SAMPLES

    @property
    def family(self) -> AnyFamily:
        """Of the mechanisms that take data of this kind."""
        return POINT_FAMILY if self.is_points else TRIP_FAMILY

    @property
    def files(self) -> tuple[str, ...]:
        """Paths, globs and folders, as they are written; none of a sample."""
        named = self.points if self.points is not None else self.trips
        return (named,) if isinstance(named, str) else named or ()

    @property
    def unit(self) -> str:
        """What is protected as the columns are named: a "person", or else a "record" or a "trip"."""
        vouched = not self.is_points and (self.contributions or 1) > 1
        if self.person is not None or vouched:
            return "person"
        return "record" if self.is_points else "trip"

    def refuse_undeclared(self, unit: str | None) -> None:
        """Refuse a release of own files that does not say whom it protects; a bundled sample states its unit itself.

        Args:
            unit: what [dataset] says is protected; None if it says nothing.

        Raises:
            SettingError: nothing is said, no bound per person is, or what is said does not fit the columns.
        """
        each = "record" if self.is_points else "trip"
        if self.sample is None and self.person is not None and self.contributions is None:
            raise SettingError(
                f"[data] contributions is missing: say the most {each}s of one person that count, for example contributions = 10. More of"
                " them are left out at random, and the noise grows with the number."
            )
        if self.sample is None and unit is None and self.unit == each:
            raise SettingError(
                f"Say whom the release protects. Either each person: under [data] person, the column of whose {each} a row is, and"
                f" contributions, the most {each}s of one person that count. Or, if each {each} is its own person: under [dataset]"
                f' unit = "{each}".'
            )
        if unit not in (None, self.unit):
            raise SettingError(f"[dataset] unit says {unit[:40]!r}, but [data] protects one {self.unit}: name a person column, or none.")

    def options(self) -> dict[str, Any]:
        """What the counting pass is told about the columns."""
        names = ("x", "y") if self.is_points else ("origin", "destination", "exactly")
        return {name: getattr(self, name) for name in (*names, "crs", *_WHO)} | {"contributions": self.contributions or 1}

    def counted_by(self: T, engine: str | None, scheduler: Scheduler | None) -> T:
        """The same data with another engine, where one is named: what the command line says goes before what the file says.

        Raises:
            SettingError: no such engine, or a scheduler that it has no use for.
        """
        part = self if engine is None else replace(self, engine=engine)
        if scheduler is not None and part.sample is not None:
            raise SettingError("--address is that of a Dask scheduler, which counts files: leave it out for a sample.")
        if scheduler is not None and part.engine not in (AUTO, DASK):
            raise SettingError(f"--address is that of a Dask scheduler: say --engine {DASK}, or leave the address out.")
        return part


@dataclass(frozen=True, kw_only=True)
class PublicDataPart(DataPart):
    """[data] of a study, which compares with the truth.

    Attributes:
        public: declares that a file's data are already public; samples are.
    """

    public: bool = False

    def _check_lines(self) -> None:
        """A study may read any file that is public already."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sample is None and not self.public:
            raise RefusedError(
                "A comparison shows errors against the truth, which would reveal private data: it takes samples, or data that you"
                " declare to be already public with [data] public = true."
            )


PARTS: dict[str, type[Any]] = {
    "data": DataPart,
    "domain": DomainPart,
    "regions": RegionsPart,
    "destinations": RegionsPart,
    "mechanism": MechanismPart,
    "budget": BudgetPart,
    "dataset": DatasetPart,
    "publication": PublicationPart,
    "output": OutputPart,
}


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A configuration that says where data come from, and in which public frame they are counted.

    Attributes:
        data: where the records come from.
        domain: the public frame of points; a sample has its own.
        regions: the public frame of trips; a sample has its own.
        destinations: where trips end, if that is another hierarchy.
        base: the folder that relative paths start from; not written.

    Raises:
        SettingError: a frame that is missing, or that does not go with the data.
    """

    data: DataPart
    domain: DomainPart | None = None
    regions: RegionsPart | None = None
    destinations: RegionsPart | None = None
    base: Path = field(default=Path(), compare=False, repr=False)

    def __post_init__(self) -> None:
        data = self.data
        if data.points is not None and self.domain is None:
            raise SettingError("Points need a [domain] with bounds and crs: it is declared, never taken from the data.")
        if data.trips is not None and self.regions is None:
            raise SettingError("Trips need [regions] with the file of the regions that they run between.")
        if not data.is_points and self.domain is not None:
            raise SettingError("[domain] has no meaning for trips: their frame is [regions].")
        if data.trips is None and (self.regions is not None or self.destinations is not None):
            raise SettingError("[regions] and [destinations] have a meaning beside [data] trips only.")


@dataclass(frozen=True, kw_only=True)
class ReleaseConfig(Sourced):
    """Everything that decides a release, apart from the ledger and the noise.

    Attributes:
        mechanism: which one, with its settings.
        budget: what the release spends.
        dataset: the account in the ledger.
        publication: the curator's words.
        output: where the files go.
    """

    mechanism: MechanismPart
    budget: BudgetPart
    dataset: DatasetPart
    publication: PublicationPart
    output: OutputPart


def read_config(path: Path) -> ReleaseConfig:
    """Read a release's configuration; paths in it are relative to its own folder.

    Raises:
        InputError: the file cannot be read, or is no TOML.
        SettingError: an unknown or missing key, a value of the wrong kind or out of range, or nothing that says whom a release of own
            files protects.
        RefusedError: a seed, or a mechanism that is not private.
    """
    return from_tables(read_file(path), base=path.parent)


def from_tables(found: dict[str, Any], *, base: Path = Path()) -> ReleaseConfig:
    """A configuration from its tables; raises as `read_config`."""
    check_keys(found, PARTS, "A release's configuration")
    missing = [f"[{name}]" for name in ("data", "mechanism", "budget", "dataset", "publication", "output") if name not in found]
    if missing:
        raise SettingError(f"The configuration lacks {', '.join(missing)}.")
    parts = {name: table_of(PARTS[name], table, f"[{name}]") for name, table in found.items()}
    config = ReleaseConfig(**parts, base=base)
    config.mechanism.built(config.data.family)
    config.data.refuse_undeclared(config.dataset.unit)
    return config


def to_toml(config: ReleaseConfig) -> str:
    """The text that `read_config` reads back to an equal configuration; what has its default is left out."""
    parts = {name: getattr(config, name) for name in PARTS}
    return to_text({name: to_table(part) for name, part in parts.items() if part is not None})
