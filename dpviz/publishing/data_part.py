"""[data]: where records come from, how their columns are called, and which engine counts them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from dpviz.data.counting.engines import AUTO, DASK, ENGINES
from dpviz.data.counting.scheduler import Scheduler
from dpviz.errors import RefusedError, SettingError
from dpviz.samples.flows import FLOW_SAMPLES
from dpviz.samples.points import SAMPLES

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
