"""Read files into private counts, with `read_points`, `read_trips` and `read_areas`; an engine is chosen to fit the files."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from pyproj import CRS

from dpviz.data.areas import AreaCounts
from dpviz.data.bounding import KEEP, Bound, bound_of, refuse_bound_without_persons
from dpviz.data.cells import cells_of
from dpviz.data.columns import PointColumns
from dpviz.data.counting.engines import (
    AUTO,
    NUMPY,
    make_plan,
    run_engine,
)
from dpviz.data.counting.file_fingerprints import source_fingerprints
from dpviz.data.counting.in_memory import place_all
from dpviz.data.counting.job import Pairs, PointCells, Progress, XyColumns
from dpviz.data.counting.locators import IdLocator, Locator, PeriodLocator, PointLocator, PointPairLocator, SlotLocator
from dpviz.data.counting.scheduler import scheduler_at
from dpviz.data.counts import Counts
from dpviz.data.empty import refuse_none_inside
from dpviz.data.leaf_regions import check_regions, crs_of_leaves, leaf_finder
from dpviz.data.marks import TRIPS, declares_unit
from dpviz.data.points import PointCounts
from dpviz.data.reading.geometries import same_crs
from dpviz.data.reading.points import PointsRequest
from dpviz.data.reading.rules import ReadingRules
from dpviz.data.reading.safety import DEFAULT_LIMITS
from dpviz.data.reading.sources import Sources, describe_copies, find_files, refuse_copies
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.trips import IdColumns, IdsRequest
from dpviz.data.slots import check_slot_column
from dpviz.data.trips import TripCounts, match_depths
from dpviz.errors import InputError
from dpviz.space.domain import as_domain, refuse_degrees

if TYPE_CHECKING:
    from dpviz.data.cell_counts import CellCounts
    from dpviz.data.counting.scheduler import Scheduler
    from dpviz.data.reading.safety import Limits
    from dpviz.data.roles import EachRow
    from dpviz.space.categories import Categories
    from dpviz.space.domain import Domain
    from dpviz.space.periods import Period
    from dpviz.space.rectangle import Bounds
    from dpviz.space.regions import Regions

Columns: TypeAlias = str | tuple[str, str] | None
Report: TypeAlias = Callable[[float], object] | None
C = TypeVar("C", bound=Counts)

_FINGERPRINTS_SHARE = 0.2  # of the progress

_MIXED = (
    "origin and destination must both be columns of ids, or both pairs of columns of coordinates such as ('lon', 'lat');"
    " give crs with coordinates only."
)


def read_points(
    source: Sources,
    *,
    domain: Domain | Bounds,
    x: str | None = None,
    y: str | None = None,
    geometry: str | None = None,
    centroids: bool = False,
    crs: object = None,
    count: str | None = None,
    person: str | None = None,
    contributions: int = 1,
    distinct: bool = False,
    bad_rows: str = "refuse",
    copies: bool = False,
    text_format: TextFormat = PLAIN_TEXT,
    quoted_newlines: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    key: bytes | None = None,
    unit: str | None = None,
    during: Period | None = None,
    engine: str = AUTO,
    address: str | None = None,
    insecure_address: bool = False,
    progress: Report = None,
    cancel: threading.Event | None = None,
) -> PointCounts:
    r"""Count the points of files on the lattice of a public domain.

    Formats: CSV and TSV (a header, and unless declared otherwise UTF-8 and decimal points), GeoJSON, GeoPackage, GeoParquet, Parquet
    with x and y columns, zipped Shapefile; the ending of the file's name decides. Only the columns that are named here are read. All
    engines give the same counts, and with the same key keep the same records of each person.

    Args:
        source: a path, a glob such as ``"trips/*.parquet"``, a folder of Parquet files, an open binary file (an upload) with a `name`,
            a table in memory (a DataFrame, GeoDataFrame, Arrow table, dict of arrays, or a table of Polars or DuckDB), or a list of
            these; all of one format with the same columns. Never a URL.
        domain: the public domain; points are reprojected to its CRS, and dropped if they are outside. Or its bounds in the CRS of `crs`:
            west, south, east, north, or a shapely polygon that is a rectangle along the axes. Or such a rectangle as the one row of a
            GeoSeries or GeoDataFrame, whose own CRS is then the domain's.
        x: column of easting or longitude; found by its name if None (lon, lng, long, longitude, x, easting, in any case).
        y: column of northing or latitude, likewise.
        geometry: column of points in WKT, texts such as POINT (13.4 52.5), instead of x and y; other shapes are bad rows. Engine "numpy"
            only.
        centroids: whether polygons of GeoJSON, GeoPackage, GeoParquet and Shapefiles are read as their centroids, in the files' CRS.
            Otherwise files of polygons are refused, and a polygon among points is a bad row.
        crs: the CRS of the files' coordinates, if the files do not state it (tables never do); not needed if the domain has no CRS.
        count: column of records per row, whole and >= 0; each row is one record if None, or if "none", which says so: unless one of the
            two is given, `dv.read_points` warns of other columns of numbers. Survey weights are refused. The count of a lattice cell is
            cut to a thousand million records (less on very fine lattices).
        person: column that says who a row belongs to; each person then keeps at most `contributions` records, chosen at random by a
            keyed hash of the person, the cell and the record's number in it. A blank entry, and in text tables NA, null or NaN, is
            missing. Without `person` the protected unit is one record.
        contributions: m >= 1; the most records of a person.
        distinct: whether each person counts once in each cell, and keeps at most m distinct cells.
        bad_rows: "refuse" raises on a row with a missing or malformed cell, and on two files of equal content. "drop" leaves the
            row out, and warns of the two files; the result's `dropped` says how many records were left out. Under "drop" no single row
            raises, but faults of a whole file or column still do: damage, limits, a wrong CRS, a column without a single number,
            geometries without a single point, a counts column without a single whole number (of several files, the last three only
            if no file is better). A syntax error in GeoJSON is a fault of the whole file.
        copies: whether files are counted that are copies of others. By their names (x (1), x - Copy, Copy of x) they are refused
            otherwise; for those of equal content see `bad_rows`.
        text_format: declares separator, marks in numbers and encoding of text tables; the marks are those of coordinates and counts,
            never of ids. Nothing is detected, because what a file holds would then decide how it is read; `detect_text_format` proposes
            what to declare. Only engine "numpy" reads UTF-16.
        quoted_newlines: declares that cells of a text table may hold line ends between quotation marks; engine "numpy" only. Without
            it a row is one line. With it one malformed row can spoil all rows after it: the counts are marked, and a release of them is
            never published.
        limits: the most that a file may hold if it is read into memory.
        key: bytes that decide which records a person keeps; fresh from the operating system if None. The guarantee holds for every key
            that was not chosen by the data, also for one that readers know.
        unit: "record" declares that each record is protected by itself, whoever has it. Needed to publish `count` without `person`: without
            it the counts are marked, and a release of them is for studies.
        during: the period that is counted, of a series of releases: rows of tables whose time lies in another one are left out before each
            person's records are bounded, and are among `outside`.
        engine: "numpy" reads whole files into memory, all formats and any CRS. "duckdb" is for files larger than memory: it reads Parquet
            (GeoParquet too), CSV and TSV in blocks, and spills rows of persons to disk; the files must be given by path, and be in the
            domain's CRS. "dask" does the same on a cluster. "auto" is "dask" if there is an `address`; else "numpy" if the files fit an
            eighth of the memory and the limits, or no other engine reads them; else "duckdb".
        address: the address of a Dask scheduler, such as tls://10.0.0.5:8786; workers of this machine if None. The scheduler and its
            workers see the private files, and the operator of the scheduler can run code on this computer.
        insecure_address: whether dpviz may connect to another computer without TLS.
        progress: a function that is called with the part that is done, from 0 to 1.
        cancel: an event that ends the count once it is set.

    Returns:
        The private counts, with the curator's counters `outside`, `bad` and `over`. Their repr shows no number, name or cell of the file.

    Raises:
        InputError: no file is found, or the files differ in format or columns; a file, a column or a row cannot be used; `unit` is given
            beside `person`; the engine is not installed or does not read such files. The text says the file, the column and the rule,
            never a cell's value.
        DomainError: the domain's bounds are in degrees and its CRS is not.
        DpvizError: the count was cancelled.

    >>> import io
    >>> upload = io.BytesIO(b"lon,lat,who\n1.5,2.5,a\n1.5,2.5,a\n6.0,3.0,b\n")
    >>> upload.name = "homes.csv"
    >>> from dpviz.space.domain import Domain
    >>> points = read_points(upload, domain=Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3), person="who")
    >>> points.count.tolist(), points.over
    ([1, 1], 1)

    A table in memory is read by the same rules:

    >>> table = {"lon": [1.5, 6.0], "lat": [2.5, 3.0]}
    >>> read_points(table, domain=(0.0, 0.0, 8.0, 8.0), crs="EPSG:4326").domain.bounds
    (0.0, 0.0, 8.0, 8.0)
    """
    domain = as_domain(domain, crs)
    rules = ReadingRules(bad_rows=bad_rows, limits=limits, quoted_newlines=quoted_newlines, text_format=text_format)
    engines = _Engines(copies, engine, scheduler_at(address, insecure=insecure_address), progress, cancel, during)
    refuse_degrees(domain)
    bound, is_declared = _bound_persons(person, contributions, key, distinct=distinct), declares_unit(unit, person)
    columns = PointColumns(x=x, y=y, count=count, person=person, geometry=geometry)
    request = PointsRequest(target=domain.crs, columns=columns, crs=crs, centroids=centroids, **vars(rules))
    locator = PointLocator(request=request, find=partial(cells_of, domain=domain), size=domain.side**2, target="domain")
    found = engines.read(source, locator, bound)
    return found.finish(PointCounts.from_cell_counts(found.counted, domain, bound, **found.marks(is_declared=is_declared)))


def read_areas(
    source: Sources,
    *,
    regions: Regions,
    x: str | None = None,
    y: str | None = None,
    geometry: str | None = None,
    centroids: bool = False,
    region: str | None = None,
    categories: Categories | None = None,
    slot: str | None = None,
    crs: object = None,
    count: str | None = None,
    person: str | None = None,
    contributions: int = 1,
    per_slot: int | None = None,
    distinct: bool = False,
    bad_rows: str = "refuse",
    copies: bool = False,
    text_format: TextFormat = PLAIN_TEXT,
    quoted_newlines: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    key: bytes | None = None,
    unit: str | None = None,
    during: Period | None = None,
    engine: str = AUTO,
    address: str | None = None,
    insecure_address: bool = False,
    progress: Report = None,
    cancel: threading.Event | None = None,
) -> AreaCounts:
    r"""Count the points of files in the leaves of public regions, or add up records per id of a leaf.

    Formats of points are those of `read_points`; tables of ids are CSV, TSV and Parquet. Only the columns that are named here are read.
    All engines give the same counts, and with the same key keep the same records of each person.

    Args:
        source: files, as for `read_points`.
        regions: the public regions. For points, the leaves have polygons that do not overlap, or are cells of a grid; points in no leaf
            are dropped. For ids, they need no shapes.
        x: as for `read_points`.
        y: as for `read_points`.
        geometry: as for `read_points`.
        centroids: as for `read_points`.
        region: column of ids of leaves, instead of coordinates; compared as text; see `read_trips`.
        categories: by which records are counted beside the region, as for `AreaCounts.from_table`.
        slot: the column of a table whose entries say the slot; with categories only.
        crs: the CRS of the files' coordinates, if the files do not state it; not needed if the regions are squares of a plain plane.
        count: as for `read_points`.
        person: column that says who a row belongs to; each person then keeps at most `contributions` records, chosen as by `read_points`.
        contributions: m >= 1; the most records of a person.
        per_slot: b >= 1: each person then keeps at most b of the records of each slot, over all regions, and m of these in all.
        distinct: whether each person counts once in each leaf (and slot), and keeps at most m distinct ones.
        bad_rows: as for `read_points`; "refuse" raises on an unknown id, too, and if all points lie in no leaf.
        copies: as for `read_points`.
        text_format: as for `read_points`.
        quoted_newlines: as for `read_points`.
        limits: as for `read_points`.
        key: as for `read_points`.
        unit: as for `read_points`.
        during: as for `read_points`.
        engine: as for `read_points`; "duckdb" and "dask" read points in the regions' CRS.
        address: as for `read_points`.
        insecure_address: as for `read_points`.
        progress: as for `read_points`.
        cancel: as for `read_points`.

    Raises:
        InputError: as `read_points`; or `region` is given beside coordinates.
        DomainError: points, and the leaves have no polygons, or polygons overlap.
        DpvizError: the count was cancelled.

    >>> import io
    >>> import pandas as pd
    >>> from dpviz.space.regions import Regions
    >>> table = pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]})
    >>> regions = Regions.from_table(table, levels=["district", "tract"])
    >>> upload = io.BytesIO(b"tract,visits\na,900\nc,500\n")
    >>> upload.name = "visits.csv"
    >>> areas = read_areas(upload, regions=regions, region="tract", count="visits")
    >>> areas.leaf.tolist(), areas.count.tolist()
    ([0, 2], [900, 500])
    """
    check_regions(regions)
    check_slot_column(categories, slot)
    rules = ReadingRules(bad_rows=bad_rows, limits=limits, quoted_newlines=quoted_newlines, text_format=text_format)
    engines = _Engines(copies, engine, scheduler_at(address, insecure=insecure_address), progress, cancel, during)
    slots = 1 if categories is None else categories.entries
    bound = _bound_persons(person, contributions, key, distinct=distinct, per_slot=per_slot, slots=slots)
    is_declared = declares_unit(unit, person)
    locator: PointLocator | IdLocator
    if region is None:
        columns = PointColumns(x=x, y=y, count=count, person=person, geometry=geometry)
        request = PointsRequest(target=crs_of_leaves(regions), columns=columns, crs=crs, centroids=centroids, **vars(rules))
        locator = PointLocator(request=request, find=leaf_finder(regions), size=regions.size(regions.depth), target="regions")
    elif centroids or any(value is not None for value in (x, y, geometry, crs)):
        raise InputError("region names a column of ids, which have no coordinates: leave x, y, geometry, centroids and crs out.")
    else:
        ids = IdColumns(ends=(region,), count=count, person=person)
        locator = IdLocator(request=IdsRequest(sides=(regions,), columns=ids, **vars(rules)))
    by_slot = None if categories is None or slot is None else SlotLocator(place_of=locator, column=slot, categories=categories)
    found = engines.read(source, by_slot or locator, bound)
    return found.finish(AreaCounts.from_leaf_counts(found.counted, regions, bound, categories, **found.marks(is_declared=is_declared)))


def read_trips(
    source: Sources,
    *,
    regions: Regions,
    destinations: Regions | None = None,
    origin: Columns = None,
    destination: Columns = None,
    crs: object = None,
    count: str | None = None,
    person: str | None = None,
    contributions: int = 1,
    distinct: bool = False,
    exactly: bool = False,
    bad_rows: str = "refuse",
    copies: bool = False,
    text_format: TextFormat = PLAIN_TEXT,
    quoted_newlines: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    key: bytes | None = None,
    unit: str | None = None,
    during: Period | None = None,
    engine: str = AUTO,
    address: str | None = None,
    insecure_address: bool = False,
    progress: Report = None,
    cancel: threading.Event | None = None,
) -> TripCounts:
    r"""Add up the trips of files per pair of leaf regions.

    Formats: CSV and TSV (a header, and unless declared otherwise UTF-8) and Parquet, as a table with the columns that are named here,
    or as a matrix: ids of origins in the first column, ids of destinations in the header, counts in the cells, blank where there are
    none. Ids are compared as text, first as they are written; an id that no leaf has is then compared in a plain form, if only one leaf has
    that: without blanks around it, in Unicode's NFC, 7.0 as 7; with zeros in front up to the leaves' length, if their ids are all digits
    of one length; and whole numbers as hexadecimal ones, if the leaves are H3 cells.

    Only engine "numpy" reads matrices, and recognises totals: rows and columns whose id is a word for a total ("total", "all", "sum"), and
    is not the id of a region, are left out, and the result's `notes` say so.
    Otherwise all engines give the same counts.

    Args:
        source: files, as for `read_points`.
        regions: the public regions where trips begin.
        destinations: the public regions where trips end, a hierarchy of the same depth; `regions` if None.
        origin: column of ids of leaf regions; found by its name if None (origin, from, source, home, h_geocode, ...).
            Block codes of 15 characters in columns called h_geocode or w_geocode (LODES) are cut to the length of the leaves' ids.
            Or two columns of coordinates, ``("x", "y")``; a trip begins in the leaf in which they are, as for `read_areas`.
        destination: likewise (destination, to, target, work, w_geocode, ...).
        crs: the CRS of coordinates; ids have none.
        count: column of trips per row, whole and >= 0; beside ids found by its name if None (count, flow, trips, S000, ...); each row
            is one trip if there is none, or if "none", as for `read_points`. Survey weights are refused.
        person: column that says who a row belongs to; each person then keeps at most `contributions` trips, chosen as by `read_points`.
        contributions: m >= 1; above 1 without `person`, the curator vouches that no person has more.
        distinct: whether each person counts once in each pair, and keeps at most m distinct pairs.
        exactly: whether the curator declares that every person has exactly m trips; with `person`, people with fewer are refused or
            dropped.
        bad_rows: "refuse" raises on an unknown id, a missing or malformed cell, two files of equal content, and on totals that
            contradict the other rows; "drop" leaves such rows out (the result's `dropped` counts trips, and one for each unreadable
            row or cell), and does not check totals. Coordinates outside all regions are never refused. Under "drop" no single row
            raises, only a fault of a whole file or column: see `TripCounts.from_table`.
        copies: as for `read_points`.
        text_format: as for `read_points`.
        quoted_newlines: as for `read_points`.
        limits: as for `read_points`.
        key: as for `read_points`.
        unit: "trip" (or "record") declares that each trip is protected by itself, whoever makes it. Needed to publish trips from a column
            of counts or a matrix, without `person` and with contributions = 1: without it the counts are marked, and a release of them is
            for studies.
        during: as for `read_points`.
        engine: as for `read_points`.
        address: as for `read_points`.
        insecure_address: as for `read_points`.
        progress: as for `read_points`.
        cancel: as for `read_points`.

    Raises:
        InputError: as `read_points`.
        DomainError: the columns are coordinates, but the leaf regions have no polygons.
        DpvizError: the count was cancelled.

    >>> import io
    >>> from dpviz.space.regions import Regions
    >>> regions = Regions.from_prefixes(["36001", "36003", "50001"], lengths=[2, 5], levels=["state", "county"])
    >>> upload = io.BytesIO(b"from,to,trips\n36001,50001,7\n36003,36003,2\n36001,50001,1\n")
    >>> upload.name = "trips.csv"
    >>> trips = read_trips(upload, regions=regions)
    >>> trips.origin.tolist(), trips.destination.tolist(), trips.count.tolist()
    ([0, 1], [2, 1], [8, 2])
    """
    rules = ReadingRules(bad_rows=bad_rows, limits=limits, quoted_newlines=quoted_newlines, text_format=text_format)
    engines = _Engines(copies, engine, scheduler_at(address, insecure=insecure_address), progress, cancel, during)
    refuse_bound_without_persons(person, 1, distinct=distinct)
    bound = bound_of(contributions, key, distinct=distinct, fewer=bad_rows if exactly else KEEP)
    is_declared = declares_unit(unit, person, contributions, words=TRIPS)
    for declared_regions in (regions, regions if destinations is None else destinations):
        check_regions(declared_regions)
    sides = match_depths(regions, destinations or regions)
    locator: Locator
    if isinstance(origin, tuple) and isinstance(destination, tuple):
        finder, target = _pair_finder(origin, destination, sides)
        request = PointsRequest(target=target, columns=PointColumns(count=count, person=person), crs=crs, **vars(rules))
        locator = PointPairLocator(request=request, finder=finder)
    elif isinstance(origin, tuple) or isinstance(destination, tuple) or crs is not None:
        raise InputError(_MIXED)
    else:
        ids = IdColumns(ends=(origin, destination), count=count, person=person)
        locator = IdLocator(request=IdsRequest(sides=sides, columns=ids, **vars(rules)))
    found = engines.read(source, locator, None if person is None else bound)
    return found.finish(
        TripCounts.from_cell_counts(
            found.counted,
            regions=sides[0],
            destinations=sides[1],
            contributions=int(bound.most),
            exactly=exactly,
            enforced=person is not None,
            notes=found.notes,
            **found.marks(is_declared=is_declared),
        )
    )


def _bound_persons(
    person: str | None, contributions: int, key: bytes | None, *, distinct: bool, per_slot: int | None = None, slots: int = 1
) -> Bound | None:
    """Return the bound on each person's records; None if the unit is a record."""
    refuse_bound_without_persons(person, contributions, distinct=distinct or per_slot is not None)
    return None if person is None else bound_of(contributions, key, distinct=distinct, per_slot=per_slot, slots=slots)


class _Found(NamedTuple):
    """What was counted in files.

    Attributes:
        counted: the records per cell.
        rules: how rows were read.
        weighted: whether a row can stand for several records.
        files: the fingerprints of the files.
        each_row: what is to be said of columns that may be counts and are not read.
        notes: what was left out on purpose.
        during: the period that was counted; None for all rows.
    """

    counted: CellCounts
    rules: ReadingRules
    weighted: bool
    files: tuple[str, ...]
    each_row: EachRow | None
    notes: tuple[str, ...]
    during: Period | None

    def marks(self, *, is_declared: bool) -> dict[str, bool]:
        """Return the marks of the counts; `is_declared` says whether the protected unit was."""
        return {"row_stable": not self.rules.quoted_newlines, "unit_declared": is_declared or not self.weighted}

    def finish(self, data: C) -> C:
        """Return counts with what was found in their files; under "refuse", refuse those of which all records lie outside."""
        if self.rules.bad_rows == "refuse" and self.during is None:
            refuse_none_inside(data)
        return replace(data, each_row=self.each_row, during=self.during, fingerprints=replace(data.fingerprints, files=self.files))


class _Engines(NamedTuple):
    """Which engine reads files, whether copies among them count, where it reports, and the period that is counted."""

    copies: bool
    engine: str
    scheduler: Scheduler | None
    progress: Report
    cancel: threading.Event | None
    during: Period | None

    def read(self, source: Sources, locator: Locator, bound: Bound | None) -> _Found:
        """Find the files of a source, and read them into memory, or count them by an engine that reads them itself.

        Files of equal content are refused, or, if bad rows are dropped as in a release, warned of, unless they are declared.
        """
        if self.during is not None and not isinstance(locator, PeriodLocator):
            locator = PeriodLocator(cell_of=locator, period=self.during)
        rules = locator.request
        files = find_files(source, rules.text_format, copies=self.copies, limits=rules.limits)
        whole = Progress(progress=self.progress, cancel=self.cancel)
        read_share = 1.0 - _FINGERPRINTS_SHARE if files.paths else 1.0
        progress = whole.part(0.0, read_share)
        if not self.copies and rules.bad_rows == "refuse":
            refuse_copies(files)
        elif not self.copies:
            for sentence in describe_copies(files):
                warnings.warn(f"Curator only: {sentence}", stacklevel=3)
        if rules.quoted_newlines and self.engine not in (AUTO, NUMPY):
            raise InputError(
                f"Engine {self.engine!r} reads a row per line: convert files with quoted_newlines to Parquet, or choose 'numpy'."
            )
        engine = NUMPY if rules.quoted_newlines else self.engine
        plan = make_plan(files, engine, self.scheduler, rules.limits, lambda: locator.job(files, bound))
        if plan.job is None:
            placed = place_all(files.sources, locator.place, rules.bad_rows, progress)
            counted, weighted, notes = placed.counts(bound, locator.size), placed.count is not None, placed.notes
        else:
            counted, weighted, notes = run_engine(plan, self.scheduler, progress), plan.job.count is not None, ()
        fingerprints = source_fingerprints(files, whole.part(read_share, 1.0))
        return _Found(counted, rules, weighted, fingerprints, locator.unread(files), notes, self.during)


def _pair_finder(
    origin: tuple[str, str], destination: tuple[str, str], sides: tuple[Regions, Regions]
) -> tuple[Pairs[PointCells], str | None]:
    if not len(origin) == len(destination) == 2:
        raise InputError(_MIXED)
    starts = leaf_finder(sides[0], may_overlap=True)
    ends = starts if sides[1] is sides[0] else leaf_finder(sides[1], may_overlap=True)
    crs, other = (None if each is None else CRS.from_user_input(each) for each in map(crs_of_leaves, sides))
    if (crs is None) != (other is None) or (crs is not None and other is not None and not same_crs(crs, other)):
        raise InputError("The regions of origins and of destinations must be in one CRS.")
    finder = Pairs(
        origin=PointCells(points=XyColumns(x=origin[0], y=origin[1]), find=starts, size=sides[0].size(sides[0].depth)),
        destination=PointCells(points=XyColumns(x=destination[0], y=destination[1]), find=ends, size=sides[1].size(sides[1].depth)),
    )
    return finder, None if crs is None else crs.to_wkt()
