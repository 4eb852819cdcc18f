"""The configuration of a release as a TOML file: its tables and keys. The command line reads it, the app saves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from dpviz.codec import keys_of
from dpviz.data.counting.engines import AUTO, DASK, DUCKDB, ENGINES
from dpviz.data.counting.scheduler import Scheduler
from dpviz.data.reading.categories import read_categories
from dpviz.data.reading.outline import LAND
from dpviz.data.reading.safety import Source
from dpviz.data.reading.text_format import TextFormat
from dpviz.data.reading.text_rows import UTF16
from dpviz.errors import BudgetError, RefusedError, SettingError, check_choice
from dpviz.families import AREA_FAMILY, FAMILIES, POINT_FAMILY, TRIP_FAMILY, Family
from dpviz.mechanisms import AnyMechanism
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.series import Series
from dpviz.publishing.toml_tables import TOML, read_file, to_text
from dpviz.release.older import hint_at_name
from dpviz.release.publication import CuratorTexts
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.samples.load import SAMPLES
from dpviz.samples.points import POINT_SAMPLES
from dpviz.samples.trips import TRIP_SAMPLES
from dpviz.space.categories import HOUR, MONTH, TIMES, Categories
from dpviz.space.domain import Domain, refuse_degrees
from dpviz.space.periods import Period
from dpviz.space.region_builders import WRONG_ORDER
from dpviz.space.summed import Summed

NO_CRS = "none"
PERIOD = "{period}"
_OTHER_FRAMES = {
    ("points", "areas"): ", which have [regions] instead of [domain]",
    ("areas", "points"): ", which have [domain] instead of [regions]",
}
"""What turns data of one family into those of another."""


@dataclass(frozen=True, kw_only=True)
class DomainPart:
    """[domain]: the public rectangle in which points are counted. The curator declares it; it is never derived from the data.

    Attributes:
        bounds: west, south, east, north, in units of the CRS.
        crs: CRS of the bounds; "none" for a plain plane without a map.
        order: the lattice has 2**order columns and rows.
        study_area: a public file of polygons in which all people can be, relative to the configuration's folder. Cells that do not touch
            them are masked: nobody can be there. Its CRS is that of the bounds, if the file states none. "land"
            stands for the land of the Earth, whose coarse outline comes with dpviz. If left out, people can be everywhere.
    """

    bounds: tuple[float, ...]
    crs: str
    order: int = 10
    study_area: str | None = None

    def __post_init__(self) -> None:
        refuse_degrees(self.domain())

    def domain(self) -> Domain:
        """Build the domain, without the mask of its study area, whose file is not read.

        Raises:
            SettingError: there are not four bounds.
            DomainError: bounds, CRS or order are invalid.
        """
        if len(self.bounds) != 4:
            raise SettingError("[domain] bounds must be four numbers: west, south, east, north.")
        west, south, east, north = self.bounds
        return Domain(bounds=(west, south, east, north), crs=None if self.crs.lower() == NO_CRS else self.crs, order=self.order)

    @classmethod
    def of(cls, domain: Domain, study_area: str | None = None) -> DomainPart:
        """Make the table that describes a domain; if it has a mask, `study_area` names the file of its polygons."""
        return cls(bounds=domain.bounds, crs=domain.crs or NO_CRS, order=domain.order, study_area=study_area)


@dataclass(frozen=True, kw_only=True)
class RegionsKeys:
    """The keys of [regions] and [destinations], before it is checked whether they fit together: a page may be half filled in.

    Attributes:
        file: path of a file of nested regions, relative to the configuration's folder.
        levels: of `file`, columns of ids, coarsest first; left out if the file names the parent of each region.
        names: of `file`, for each level that has one, the column of readable names.
        prefixes: of `file`, lengths of id prefixes that make coarser levels: [2, 5] makes states and counties from ids of tracts.
        denominator: of `file`, for areas, the column of a public number of each finest region, such as "population", by which counts are
            divided to rates.
        polygons: path of a file of polygons without ids: one level, numbered in the order of the file.
        h3: resolutions of H3 cells, coarsest first: [5, 7, 9].
        area: of `h3`, west, south, east, north in degrees of the area that the cells cover.
        area_file: of `h3`, path of a file of polygons that the cells cover, in place of `area`.
        squares: zooms of the squares of a lattice, coarsest first: [2, 4, 6] has 4 x 4, 16 x 16 and 64 x 64 squares.
        bounds: of `squares`, west, south, east, north of the lattice, in units of the CRS.
        crs: CRS of the bounds of `squares`, "none" for a plain plane; of a file only if the file does not state it.
    """

    file: str | None = None
    levels: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    prefixes: tuple[int, ...] = ()
    denominator: str | None = None
    polygons: str | None = None
    h3: tuple[int, ...] = ()
    area: tuple[float, ...] = ()
    area_file: str | None = None
    squares: tuple[int, ...] = ()
    bounds: tuple[float, ...] = ()
    crs: str | None = None

    @property
    def path(self) -> str | None:
        """The path of the file that it names; None if it names none."""
        return self.file or self.polygons or self.area_file


@dataclass(frozen=True, kw_only=True)
class RegionsPart(RegionsKeys):
    """[regions] and [destinations]: public nested regions, of areas or of trips: from a file, or cells that need none."""

    def __post_init__(self) -> None:
        _check_kind(self, "[regions]", _KEYS_OF_REGIONS)
        if self.h3:
            self._check_area()
        if self.squares:
            self.lattice()

    def _check_area(self) -> None:
        if bool(self.area) == (self.area_file is not None):
            raise SettingError("[regions] h3 needs the area that its cells cover: area, or area_file with polygons.")
        if self.area and len(self.area) != 4:
            raise SettingError("[regions] area must be four numbers in degrees: west, south, east, north.")
        if self.area and (self.area[0] >= self.area[2] or self.area[1] >= self.area[3]):
            raise SettingError(f"[regions] area: {WRONG_ORDER}")
        if self.area and self.crs is not None:
            raise SettingError("[regions] area is in degrees: leave crs out, which is for area_file.")

    def lattice(self) -> Domain:
        """Build the domain whose lattice has the squares.

        Raises:
            SettingError: there are not four bounds, or the CRS is missing.
            DomainError: bounds or CRS are invalid.
        """
        if len(self.bounds) != 4 or self.crs is None:
            raise SettingError('[regions] squares needs bounds (west, south, east, north) and their crs; crs = "none" is a plain plane.')
        return DomainPart(bounds=self.bounds, crs=self.crs).domain()


_KEYS_OF_REGIONS: dict[str, tuple[str, ...]] = {
    "file": ("levels", "names", "prefixes", "denominator"),
    "polygons": (),
    "h3": ("area", "area_file"),
    "squares": ("bounds",),
}
"""The keys that say what regions are, each with those that belong to it alone."""


@dataclass(frozen=True, kw_only=True)
class CategoriesKeys:
    """The keys of [categories], before it is checked whether they fit together: a page may be half filled in.

    Attributes:
        times: which part of a time counts: "hour", "weekday" or "month".
        zone: of `times`, the time zone, such as "Europe/Berlin"; left out if the column has no times, but the numbers of hours, names of
            days or months such as 2026-11 themselves.
        first: of months, the first one, such as "2026-01".
        last: of months, the last one.
        bins: edges of bins of a number, ascending; a bin has its lower edge, and not its upper one.
        coarser: of `bins`, edges of coarser bins by the names of their levels, coarsest first.
        values: the public values of the column, each of which is a slot: ["car", "bus", "train"].
        sum_between: public bounds of a number of each record, whose sum and mean are released: [0, 120].
        step: of `sum_between`, the width of the grid to which values are rounded; 1 if left out.
        file: path of a public table with one row per slot, relative to the configuration's folder.
        levels: of `file`, columns of ids, coarsest first.
        names: of `file`, for each level that has one, the column of readable names.
        other: id of one more slot, in which all records are counted that lie in no other one; if left out, such records are left out.
    """

    times: str | None = None
    zone: str | None = None
    first: str | None = None
    last: str | None = None
    bins: tuple[float, ...] = ()
    coarser: dict[str, tuple[float, ...]] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    sum_between: tuple[float, ...] = ()
    step: float | None = None
    file: str | None = None
    levels: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    other: str | None = None


@dataclass(frozen=True, kw_only=True)
class CategoriesPart(CategoriesKeys):
    """[categories]: what is counted beside the region, for areas from files: times, bins or values; or a number that is added up."""

    def __post_init__(self) -> None:
        kind = _check_kind(self, "[categories]", _KEYS_OF_CATEGORIES)
        if self.times is not None:
            check_choice(self.times, TIMES, "[categories] times")
            if (self.times == MONTH) != (self.first is not None and self.last is not None):
                raise SettingError("[categories] first and last are for months, which need both.")
        if kind != "file":
            self.categories()

    def categories(self, file: Source | None = None) -> Categories:
        """Build the categories.

        Args:
            file: the file, or its path, of `file`; None without one.

        Raises:
            DomainError: they are invalid.
            InputError: the file cannot be read.
        """
        if file is not None:
            found = read_categories(file, levels=self.levels, names=self.names)
        elif self.bins:
            found = Categories.bins(self.bins, coarser=self.coarser)
        elif self.values:
            found = Categories.values(self.values)
        elif self.sum_between:
            if len(self.sum_between) != 2:
                raise SettingError("[categories] sum_between is a lower and an upper bound, such as [0, 120].")
            low, high = self.sum_between
            found = Summed(low=low, high=high, step=1.0 if self.step is None else self.step)
        elif self.times == MONTH:
            found = Categories.months(str(self.first), str(self.last), self.zone)
        else:
            found = Categories.hours(self.zone) if self.times == HOUR else Categories.weekdays(self.zone)
        return found if self.other is None else found.with_other(self.other)


_KEYS_OF_CATEGORIES: dict[str, tuple[str, ...]] = {
    "times": ("zone", "first", "last"),
    "bins": ("coarser",),
    "values": (),
    "sum_between": ("step",),
    "file": ("levels", "names"),
}
"""The keys that say what categories are, each with those that belong to it alone."""


def _check_kind(part: object, table: str, keys: Mapping[str, Sequence[str]]) -> str:
    """Return the one key that says what a table is about.

    Args:
        part: the table.
        table: its name.
        keys: the keys that say so in different ways, each with those that belong to it alone.

    Raises:
        SettingError: there is none of them, or several, or one that belongs to another.
    """
    kinds = [name for name in keys if getattr(part, name)]
    if len(kinds) != 1:
        raise SettingError(f"{table} needs exactly one of {', '.join(keys)}, which say in different ways what they are.")
    for name, kind in ((name, kind) for kind, names in keys.items() for name in names):
        if getattr(part, name) and kind != kinds[0]:
            raise SettingError(f"{table} {name} belongs to {kind}, not to {kinds[0]}: leave one of them out.")
    return kinds[0]


@dataclass(frozen=True, kw_only=True)
class MechanismPart:
    """[mechanism]: a mechanism and its settings.

    Attributes:
        key: key of the mechanism; README lists all keys.
        settings: values that differ from the defaults.
    """

    key: str
    settings: dict[str, Any] = field(default_factory=dict)

    def build(self, family: Family, *, references: bool = False) -> AnyMechanism:
        """Build the mechanism.

        Args:
            family: the family of mechanisms for the data's kind.
            references: whether references, which are not private, are allowed.

        Raises:
            SettingError: an unknown key or setting (the text lists the known ones), or a value out of range.
            RefusedError: a reference, if they are not allowed.
        """
        mechanisms = family.choices if references else family.mechanisms
        if self.key in family.choices and self.key not in mechanisms:
            raise RefusedError(f"{self.key} is NOT PRIVATE: a reference that shows what privacy costs, and is never published.")
        if self.key not in mechanisms:
            other = next((each.name for each in FAMILIES.values() if self.key in each.mechanisms), None)
            hint = "" if other is None else f"; {self.key} is for {other}{_OTHER_FRAMES.get((family.name, other), '')}"
            raise SettingError(
                f"[mechanism] key must be one of {', '.join(mechanisms)} for {family.name}{hint}.{hint_at_name(self.key, mechanisms)}"
            )
        mechanism = mechanisms[self.key]
        TOML.check_keys(self.settings, [rule.name for rule in mechanism.rules()], "[mechanism.settings]")
        built: AnyMechanism = mechanism.from_settings(self.settings)
        return built


@dataclass(frozen=True, kw_only=True)
class BudgetPart:
    """[budget]: epsilon, epsilon and delta, or rho, as exact fractions: 0.1 is one tenth, "1/3" one third.

    Attributes:
        epsilon: epsilon of pure or approximate differential privacy.
        delta: delta of approximate differential privacy.
        rho: rho of zero-concentrated differential privacy, instead of the other two.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        self.budget()

    def budget(self) -> Budget:
        """Build the budget.

        Raises:
            BudgetError: parts are missing, out of range, or do not belong together.
        """
        return _budget(self.epsilon, self.delta, self.rho, "[budget]")

    @classmethod
    def of(cls, budget: Budget) -> BudgetPart:
        """Make the table that describes a budget."""
        return cls(**{name: getattr(budget, name) for name in ("epsilon", "delta", "rho") if hasattr(budget, name)})


@dataclass(frozen=True, kw_only=True)
class DatasetPart:
    """[dataset]: the account in the ledger.

    Attributes:
        name: the curator's name of the data. The ledger recognises data by their content, also under another name.
        unit: "record", "person" or "trip"; it must agree with the columns. It is required for the curator's own files without a person
            column: "record" (or "trip") declares that no two of them are of the same person.
        cap_epsilon: the largest epsilon that may ever be spent. Data that are new to the ledger need a cap; the first release fixes it.
        cap_delta: the largest delta that may ever be spent.
        cap_rho: the largest rho that may ever be spent, instead of epsilon and delta.
        series: releases for one period after another; each is made with --period, and pays from its own share of the cap. In the paths of
            the data and of the output folder, {period} stands for its name.
    """

    name: str
    unit: str | None = None
    cap_epsilon: Fraction | None = None
    cap_delta: Fraction | None = None
    cap_rho: Fraction | None = None
    series: Series | None = None

    def __post_init__(self) -> None:
        self.cap()

    def cap(self) -> Budget | None:
        """Build the cap; None if none is given. Then the ledger must already have an account for the data."""
        if self.cap_epsilon is self.cap_delta is self.cap_rho is None:
            return None
        return _budget(self.cap_epsilon, self.cap_delta, self.cap_rho, "[dataset] cap:")


@dataclass(frozen=True, kw_only=True)
class PublicationPart(CuratorTexts):
    """[publication]: the curator's texts for the manifest and the report."""

    region: str = ""
    intended_use: str = ""


@dataclass(frozen=True, kw_only=True)
class OutputPart:
    """[output]: the folder and the formats of the files.

    Attributes:
        folder: folder to be made, relative to the configuration's folder; it must not exist yet.
        formats: geoparquet (lossless, required), and perhaps geojson, csv and geopackage.
    """

    folder: str
    formats: tuple[str, ...] = ("geoparquet", "geojson", "csv")


def _budget(epsilon: Fraction | None, delta: Fraction | None, rho: Fraction | None, table: str) -> Budget:
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise BudgetError(f"{table} has rho beside epsilon or delta: leave epsilon and delta out, or rho.")
        return ZcdpBudget(rho)
    if epsilon is None:
        raise BudgetError(f"{table} epsilon is missing (and delta, if the mechanism needs one); rho can be given instead.")
    return PureBudget(epsilon) if delta is None else ApproxBudget(epsilon, delta)


T = TypeVar("T", bound="DataPart")

_FILE_KEYS = ("engine", "may_be_empty", "copies")
_TEXT_KEYS = ("separator", "decimal", "thousands", "encoding")
_COUNTING_KEYS = ("count", "person", "contributions", "distinct", *_TEXT_KEYS, "quoted_newlines")
_NO_QUOTED_NEWLINES = (
    "[data] quoted_newlines = true: in a text table whose cells hold line ends, one malformed row can take thousands of others with it,"
    " more than the privacy guarantee covers. To publish the data, export them as Parquet where they come from."
)
_KEYS_OF_KIND = {
    "points": ("x", "y", "geometry", "centroids", "region", "crs", "slot", "per_slot"),
    "trips": ("origin", "destination", "crs", "exactly"),
    "sample": ("size",),
}


@dataclass(frozen=True, kw_only=True)
class DataKeys:
    r"""The keys of [data], before it is checked whether they fit together: a page may be half filled in.

    Attributes:
        points: files of points, or beside [regions] of areas, relative to the configuration's folder: a path, a glob such as
            "homes/*.parquet", a folder of Parquet files, or a list of these.
        trips: files of trips, in the same forms.
        sample: key of a bundled sample, instead of files.
        size: number of records of a made-up sample of points.
        x: column of easting or longitude. A column that is left out here is found by its usual names.
        y: column of northing or latitude.
        geometry: column of points in WKT, instead of x and y; engine "numpy" only.
        centroids: declares that polygons are read as their centroids; otherwise they are no points.
        region: of areas, the column of ids of the finest regions, instead of coordinates.
        crs: CRS of the coordinates, if the files do not state it.
        origin: column of the trips' origins, or two columns of coordinates: ["lon", "lat"].
        destination: column of the trips' destinations, or two columns of coordinates.
        count: column of the number of records or trips per row; or "none", which says that each row is one. Without it, each row of points
            is one record, and a release says which columns of numbers were not read.
        person: column that identifies the person of a row; the release then protects persons.
        contributions: the most records or trips of one person that are counted; required with a person column, except for samples.
        distinct: whether each person counts once per cell or pair.
        exactly: declares that every person has exactly `contributions` trips.
        separator: declares the character between cells of text tables: ",", ";", "|" or "\t"; if left out, the files' ending decides.
        decimal: declares the decimal mark of numbers in text tables: "." or ",". A count such as 1.000 needs it, or thousands.
        thousands: declares the mark of thousands in counts of text tables: ",", ".", "'" or " ".
        encoding: declares the encoding of text tables: "utf-8", "utf-16" (engine "numpy" only), or another one that extends ASCII, such as
            "windows-1250" or "shift_jis".
        quoted_newlines: declares that cells of text tables contain line ends between quotation marks; for studies only.
        may_be_empty: declares that data may have no record at all; otherwise such data are refused as a probable mistake.
        copies: declares that files count that are copies of others, by their names or by their content.
        engine: "numpy" (in memory), "duckdb" (larger than memory) or "dask" (on a cluster); "auto" chooses by the files' size.
        slot: of areas with [categories], the column whose entries say the slot.
        per_slot: of areas with [categories], the most records of one person that are counted in each slot, over all regions.
    """

    points: str | tuple[str, ...] | None = None
    trips: str | tuple[str, ...] | None = None
    sample: str | None = None
    size: int | None = None
    x: str | None = None
    y: str | None = None
    geometry: str | None = None
    centroids: bool = False
    region: str | None = None
    crs: str | None = None
    origin: str | tuple[str, ...] | None = None
    destination: str | tuple[str, ...] | None = None
    count: str | None = None
    person: str | None = None
    contributions: int | None = None
    distinct: bool = False
    exactly: bool = False
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str = "utf-8"
    quoted_newlines: bool = False
    may_be_empty: bool = False
    copies: bool = False
    engine: str = AUTO
    slot: str | None = None
    per_slot: int | None = None


@dataclass(frozen=True, kw_only=True)
class DataPart(DataKeys):
    """[data]: points, trips or a sample, and the names of the columns."""

    def __post_init__(self) -> None:
        kinds = [name for name in ("points", "trips", "sample") if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise SettingError("[data] needs exactly one of points, trips and sample.")
        samples = tuple(SAMPLES)
        if self.sample is not None:
            check_choice(self.sample, samples, "[data] sample")
        kind = kinds[0]
        allowed = {"size"} if self.sample in POINT_SAMPLES else set()
        if self.sample is None:
            allowed = {*_KEYS_OF_KIND[kind], *_COUNTING_KEYS, *_FILE_KEYS}
        all_keys = {name for names in _KEYS_OF_KIND.values() for name in names} | {*_COUNTING_KEYS, *_FILE_KEYS}
        for item in fields(DataPart):
            if item.name in all_keys - allowed and getattr(self, item.name) != item.default:
                raise SettingError(f"[data] {item.name} has no meaning beside {kind}.")
        if () in (self.points, self.trips):
            raise SettingError(f"[data] {kinds[0]} names no file: give a path, a glob, a folder, or a list of these.")
        if self.distinct and self.person is None:
            raise SettingError("[data] distinct counts each person once per cell or pair: name the person column, or leave distinct out.")
        if self.per_slot is not None and (self.person is None or self.slot is None or self.per_slot < 1):
            raise SettingError("[data] per_slot is the most records of one person in each slot, at least 1: it needs person and slot.")
        self._check_coordinates()
        self._check_ends()
        self._check_newlines()
        self._check_text_format()
        check_choice(self.engine, (AUTO, *ENGINES), "[data] engine")

    def _check_coordinates(self) -> None:
        """Refuse points in WKT beside columns of coordinates, or beside centroids, which only files with shapes have."""
        if self.geometry is not None and (self.x is not None or self.y is not None):
            raise SettingError(
                "[data] geometry names a column of points in WKT, and x and y two of coordinates: leave out what is not there."
            )
        places = (self.x, self.y, self.geometry, self.crs)
        if self.region is not None and (self.centroids or any(name is not None for name in places)):
            raise SettingError(
                "[data] region names a column of ids, which have no coordinates: leave x, y, geometry, centroids and crs out."
            )
        if self.centroids and (self.geometry is not None or self.x is not None or self.y is not None):
            raise SettingError("[data] centroids is for files with polygons of their own: leave x, y and geometry out, or centroids.")

    def _check_text_format(self) -> None:
        """Refuse settings of text tables that are not known, or that the files' engine does not read."""
        problem = None
        try:
            encoding = self.text_format().encoding
        except SettingError as error:
            problem = str(error)
        if problem is not None:
            raise SettingError(f"[data] {problem}")
        if self.engine in (DUCKDB, DASK) and (encoding == UTF16 or self.geometry is not None):
            setting = "geometry" if self.geometry is not None else 'encoding = "utf-16"'
            raise SettingError(f'[data] {setting} is read by engine "numpy" only: leave engine out, or convert the files.')

    def text_format(self) -> TextFormat:
        """Return the declared format of text tables.

        Raises:
            SettingError: the separator, a mark or the encoding is not known.
        """
        return TextFormat(separator=self.separator, decimal=self.decimal, thousands=self.thousands, encoding=self.encoding)

    def _check_ends(self) -> None:
        """Refuse trips with coordinates at one end and ids at the other."""
        ends = (self.origin, self.destination)
        pairs = [end for end in ends if isinstance(end, tuple)]
        if pairs and (len(pairs) < len(ends) or any(len(pair) != 2 for pair in pairs)):
            raise SettingError(
                '[data] origin and destination are two columns of ids, or each a pair of coordinates: origin = ["lon", "lat"] and'
                ' destination = ["lon2", "lat2"].'
            )
        if self.trips is not None and self.crs is not None and not pairs:
            raise SettingError("[data] crs is the CRS of coordinates, and trips between ids have no coordinates: leave it out.")

    def _check_newlines(self) -> None:
        """Refuse quoted line ends: a malformed row could then change how other rows are read."""
        if self.quoted_newlines:
            raise RefusedError(_NO_QUOTED_NEWLINES)

    @property
    def is_points(self) -> bool:
        """Whether the data are points, be they counted in a domain or in regions; else they are trips, or a sample of areas."""
        return self.points is not None or self.sample in POINT_SAMPLES

    @property
    def is_trips(self) -> bool:
        """Whether the data are trips."""
        return self.trips is not None or self.sample in TRIP_SAMPLES

    @property
    def family(self) -> Family:
        """The family of mechanisms that take data of this kind. Points beside [regions] are areas: see `DataConfig.family`."""
        if self.sample in AREA_SAMPLES:
            return AREA_FAMILY
        return POINT_FAMILY if self.is_points else TRIP_FAMILY

    @property
    def files(self) -> tuple[str, ...]:
        """Paths, globs and folders as they are written; empty for a sample."""
        named = self.points if self.points is not None else self.trips
        return (named,) if isinstance(named, str) else named or ()

    @property
    def unit(self) -> str:
        """The unit that the columns, or the sample, imply: "person", "record" or "trip"."""
        declares_bound = self.is_trips and (self.contributions or 1) > 1
        bounded_sample = self.sample in POINT_SAMPLES and POINT_SAMPLES[str(self.sample)].most is not None
        if self.person is not None or declares_bound or bounded_sample:
            return "person"
        return "trip" if self.is_trips else "record"

    def refuse_undeclared(self, unit: str | None) -> None:
        """Refuse the curator's own files if their unit of privacy is not declared; bundled samples state their unit themselves.

        Args:
            unit: the one given under [dataset]; None if it is left out.

        Raises:
            SettingError: neither a unit nor a person column is given, the bound per person is missing, or the unit contradicts the columns.
        """
        noun = "trip" if self.is_trips else "record"
        if self.sample is None and self.person is not None and self.contributions is None:
            raise SettingError(
                f"[data] contributions is missing: say the most {noun}s of one person that count, for example contributions = 10. More of"
                " them are left out at random, and the noise grows with the number."
            )
        if self.sample is None and unit is None and self.unit == noun:
            raise SettingError(
                f"Say whom the release protects. Either each person: under [data] person, the column that says whose {noun} a row is,"
                f" and contributions, the most {noun}s of one person that count. Or, if each {noun} is its own person: under [dataset]"
                f' unit = "{noun}".'
            )
        if unit not in (None, self.unit):
            raise SettingError(f"[dataset] unit says {unit[:40]!r}, but [data] protects one {self.unit}: name a person column, or none.")

    def options(self) -> dict[str, Any]:
        """Return what describes columns and rules of reading, by name."""
        names: tuple[str, ...] = ("origin", "destination", "exactly") if self.is_trips else ("x", "y", "geometry", "centroids")
        names = names if self.region is None else ("region",)
        names = names if self.slot is None else (*names, "slot", "per_slot")
        return {name: getattr(self, name) for name in (*names, "crs", "copies", *_COUNTING_KEYS)} | {
            "contributions": self.contributions or 1
        }

    def with_copies(self: T, copies: bool) -> T:
        """Declare that copies count, if `copies` of the command line says so."""
        return replace(self, copies=True) if copies else self

    def with_engine(self: T, engine: str | None, scheduler: Scheduler | None) -> T:
        """Replace the engine by the command line's `engine`, if there is one, and check that it fits the scheduler.

        Raises:
            SettingError: an unknown engine, or a scheduler together with an engine or a sample that cannot use it.
        """
        part = self if engine is None else replace(self, engine=engine)
        if scheduler is not None and part.sample is not None:
            raise SettingError("--address names a Dask scheduler, which counts files: leave it out for a sample.")
        if scheduler is not None and part.engine not in (AUTO, DASK):
            raise SettingError(f"--address names a Dask scheduler: give --engine {DASK}, too, or leave the address out.")
        return part


@dataclass(frozen=True, kw_only=True)
class PublicDataPart(DataPart):
    """[data] of a study, which shows errors against the true data and therefore takes public data only.

    Attributes:
        public: declares that the files are already public; samples always are.
    """

    public: bool = False

    def _check_newlines(self) -> None:
        """Allow quoted line ends: a study reads public files only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sample is None and not self.public:
            raise RefusedError(
                "A comparison shows errors against the truth, which would reveal private data: it takes samples, or data that you"
                " declare to be already public with [data] public = true."
            )


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The base of the configurations of releases and of studies: the data, and the public domain or regions.

    Attributes:
        data: files or a sample, and their columns.
        domain: the domain of points; samples have a default.
        regions: the regions of trips, or of areas, which are points without a domain; samples have their own.
        destinations: regions in which trips end, if they differ from those in which trips begin.
        categories: what is counted beside the region; of areas from files only.
        base: folder that relative paths start from; it is not written to the file.

    Raises:
        SettingError: the domain or the regions are missing, or do not fit the kind of data.
    """

    data: DataPart
    domain: DomainPart | None = None
    regions: RegionsPart | None = None
    destinations: RegionsPart | None = None
    categories: CategoriesPart | None = None
    base: Path = field(default=Path(), compare=False, repr=False)

    def __post_init__(self) -> None:
        data = self.data
        if data.points is not None and self.domain is None and self.regions is None:
            raise SettingError(
                "Points need a [domain] with bounds and crs, or for areas [regions] with a file, h3 or squares: declared, never taken from"
                " the data."
            )
        if data.trips is not None and self.regions is None:
            raise SettingError("Trips need [regions] that they run between: with a file, h3 or squares.")
        if data.is_trips and self.domain is not None:
            raise SettingError("[domain] is for points only: trips run between [regions].")
        if data.points is not None and self.domain is not None and self.regions is not None:
            raise SettingError(
                "[domain] and [regions] both say where points are counted: keep [regions] for areas, or [domain] for points."
            )
        if data.sample in AREA_SAMPLES and self.domain is not None:
            raise SettingError("[domain] is for points only: this sample is counted in its own regions.")
        if data.sample is not None and (self.regions is not None or self.destinations is not None):
            raise SettingError("[regions] and [destinations] are for files of points or trips: a sample has its own frame. Leave them out.")
        if data.region is not None and self.regions is None:
            raise SettingError("[data] region names a column of ids of regions: give [regions] with their file instead of [domain].")
        if data.trips is None and self.destinations is not None:
            raise SettingError("[destinations] is for [data] trips only: leave it out.")
        if data.is_trips and any(part is not None and part.denominator is not None for part in (self.regions, self.destinations)):
            raise SettingError("[regions] denominator is for areas, whose counts it divides to rates: leave it out for trips.")

        self._check_categories()

    def _check_categories(self) -> None:
        if (self.categories is None) != (self.data.slot is None):
            raise SettingError("[categories] and [data] slot belong together: slot names the column whose entries say the category.")
        if self.categories is not None and self.categories.sum_between and self.data.per_slot is not None:
            raise SettingError("[data] per_slot has no meaning for [categories] sum_between: each record lies in both slots. Leave it out.")
        if self.categories is not None and (self.data.points is None or self.regions is None):
            raise SettingError("[categories] are for areas from files, which are points with [regions]: leave them out.")

    def frame_files(self) -> list[tuple[str, str]]:
        """List the files of the public frame: the name of each in messages, and its path."""
        study_area = None if self.domain is None else self.domain.study_area
        found = [("[domain] study_area", None if study_area == LAND else study_area)]
        if self.categories is not None:
            found.append(("[categories] file", self.categories.file))
        for name in ("regions", "destinations"):
            part = getattr(self, name)
            found += [(f"[{name}] {key}", getattr(part, key)) for key in ("file", "polygons", "area_file") if part is not None]
        return [(name, path) for name, path in found if path is not None]

    @property
    def declared_unit(self) -> str | None:
        """The unit that is declared in place of persons, "record" or "trip"; None if there are persons, and in a study."""
        return None

    @property
    def during(self) -> Period | None:
        """The period whose rows are counted; None for all rows."""
        return None

    @property
    def family(self) -> Family:
        """The family of mechanisms that take the data: points that are counted in regions are areas."""
        return AREA_FAMILY if self.data.points is not None and self.regions is not None else self.data.family


@dataclass(frozen=True, kw_only=True)
class ReleaseConfig(DataConfig):
    """The configuration of a release.

    Attributes:
        mechanism: the mechanism with its settings.
        budget: the budget that the release spends.
        dataset: the account in the ledger.
        publication: the curator's texts.
        output: folder and formats of the files.
        left_out: names of the tables among the last three that were left out for a dry run; what stands for them is never published.
        period: the name of the period of the series that is released; None without a series, or while it is not said.
    """

    mechanism: MechanismPart
    budget: BudgetPart
    dataset: DatasetPart
    publication: PublicationPart
    output: OutputPart
    left_out: tuple[str, ...] = field(default=(), compare=False, repr=False)
    period: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget.delta == 0:
            raise BudgetError("[budget] delta is 0: leave delta out for Laplace noise; Gaussian noise needs a delta above 0.")
        series = self.dataset.series
        if series is not None and series.time is not None and self.data.sample is not None:
            raise SettingError("[dataset.series] time is a column of files, and a sample has none: leave it out.")
        if series is not None:
            series.check_unit(self.data.unit)

    def in_period(self, name: str | None) -> ReleaseConfig:
        """Say which period of the series is released; its name stands for {period} in the paths of the data and of the folder.

        Args:
            name: such as "2026-11"; None without a series.

        Raises:
            SettingError: it is not the name of a period of the series, or is missing, or there is no series.
        """
        series = self.dataset.series
        if series is None and name is not None:
            raise SettingError("--period names a period of a series, and the configuration has no [dataset.series].")
        if series is not None and name is None:
            raise SettingError(f"[dataset.series] is a series of {series.period}s: say which one is released with --period.")
        if series is None or name is None:
            return self
        series.period_of(name)
        points, trips = (_name_period(paths, name) for paths in (self.data.points, self.data.trips))
        output = replace(self.output, folder=self.output.folder.replace(PERIOD, name))
        return replace(self, data=replace(self.data, points=points, trips=trips), output=output, period=name)

    @property
    def during(self) -> Period | None:
        """The period whose rows are counted; None for all rows."""
        series = self.dataset.series
        return None if series is None or self.period is None else series.period_of(self.period)

    @property
    def declared_unit(self) -> str | None:
        """The unit that [dataset] declares in place of persons, "record" or "trip"; None if it does not, or there are persons."""
        return None if self.dataset.unit == "person" else self.dataset.unit


def _name_period(paths: str | tuple[str, ...] | None, name: str) -> str | tuple[str, ...] | None:
    """Write the name of a period in the place of {period} in paths."""
    if isinstance(paths, tuple):
        return tuple(path.replace(PERIOD, name) for path in paths)
    return None if paths is None else paths.replace(PERIOD, name)


PARTS: dict[str, type[Any]] = {name: key.kind for name, key in keys_of(ReleaseConfig).items()}
"""The tables of a release's configuration, by name."""
_STAND_INS = {
    "dataset": DatasetPart(name="-"),
    "publication": PublicationPart(name="-", curator="-", description=""),
    "output": OutputPart(folder="-"),
}
"""What stands for the tables that a dry run does not need: who pays, what readers are told, and where the files go."""


def read_config(path: Path, *, for_dry_run: bool = False) -> ReleaseConfig:
    """Read the configuration of a release; paths in it are relative to its folder.

    Args:
        path: of the file.
        for_dry_run: whether [dataset], [publication] and [output] may be left out.

    Raises:
        InputError: the file cannot be read, or is not TOML.
        SettingError: an unknown or missing key, a value of the wrong kind or out of range, or a missing unit of privacy.
        RefusedError: a seed, or a mechanism that is not private.
    """
    return from_tables(read_file(path), base=path.parent, for_dry_run=for_dry_run)


def from_tables(tables: dict[str, Any], *, base: Path = Path(), asks_unit: bool = False, for_dry_run: bool = False) -> ReleaseConfig:
    """Build a configuration from its tables. Raises the errors of `read_config`.

    Args:
        tables: the tables by name.
        base: folder that relative paths start from.
        asks_unit: whether the unit of privacy may be left open, since it is asked for later.
        for_dry_run: whether [dataset], and with it the unit, [publication] and [output] may be left out, since nothing is released.
    """
    TOML.check_keys(tables, PARTS, "A release's configuration")
    left_out = tuple(name for name in _STAND_INS if name not in tables) if for_dry_run else ()
    missing = [f"[{name}]" for name in ("data", "mechanism", "budget", *_STAND_INS) if name not in tables and name not in left_out]
    if missing:
        hint = "" if {"data", "mechanism", "budget"} - set(tables) else " A dry run (--dry-run) works without."
        raise SettingError(f"The configuration lacks {', '.join(missing)}.{hint}")
    parts = {name: TOML.read(PARTS[name], table, f"[{name}]") for name, table in tables.items()}
    config = ReleaseConfig(**{**{name: _STAND_INS[name] for name in left_out}, **parts}, base=base, left_out=left_out)
    config.mechanism.build(config.family)
    is_open = asks_unit or ("dataset" in left_out and config.data.person is None)
    if not is_open or config.dataset.unit is not None:
        config.data.refuse_undeclared(config.dataset.unit)
    return config


def to_toml(config: ReleaseConfig) -> str:
    """Write a configuration as TOML, from which `read_config` makes an equal one; default values are left out."""
    return to_text(TOML.write(config))
