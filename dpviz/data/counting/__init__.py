"""Count private files in memory or on DuckDB or Dask: any number of records, on one machine or many, the same counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpviz.data.bounding import KEEP, Bound, People, bound_of, refuse_unenforced
from dpviz.data.cells import whole_counts
from dpviz.data.columns import PointColumns, RawPoints
from dpviz.data.counting.engines import AUTO, ENGINES, NUMPY, engine_for, flows_pass, pairs_pass, points_pass, run
from dpviz.data.counting.job import Watch, XyPairs
from dpviz.data.counting.scheduler import scheduler_at
from dpviz.data.flows import Flows, Trips, check_rule, matched
from dpviz.data.points import PointCounts
from dpviz.data.reading.flows import FlowColumns, FlowsQuestion, read_trips
from dpviz.data.reading.geometries import same_crs
from dpviz.data.reading.points import DEFAULT_LIMITS, PointsQuestion, points_of, read_rows
from dpviz.data.reading.sources import FoundFiles, Sources, found_files, refuse_copies
from dpviz.errors import InputError
from dpviz.space.domain import refuse_degrees
from dpviz.space.leaf_lookup import LeafLookup

if TYPE_CHECKING:
    from dpviz.data.counting.job import CountingPass, Watch, XyPairs
    from dpviz.data.flows import Trips
    from dpviz.data.reading.flows import FlowsQuestion
    from dpviz.data.reading.safety import Limits, Source
    from dpviz.space.domain import Domain
    from dpviz.space.regions import Regions

__all__ = ["ENGINES", "count_flows", "count_points"]

T = TypeVar("T")


def rows_of(sources: Sequence[Source], question: PointsQuestion, watch: Watch) -> RawPoints:
    """The rows of all files of points, as one; people of one text are one person in whatever files."""
    return joined_points(_each(sources, lambda source: read_rows(source, question), watch))


def trips_of(sources: Sequence[Source], question: FlowsQuestion, watch: Watch) -> Trips:
    """The trips of all files, as one."""
    return joined_trips(_each(sources, lambda source: read_trips(source, question), watch))


def coordinate_trips_of(sources: Sequence[Source], placing: XyPairs, question: PointsQuestion, watch: Watch) -> Trips:
    """The trips between coordinates of all files, as one.

    Args:
        sources: tables.
        placing: the columns, and the look-up of leaf regions.
        question: names the columns of counts and people; x and y are those of `job`.
        watch: who follows.
    """

    def read(source: Source) -> Trips:
        (x, y), (x_end, y_end) = placing.origin, placing.destination
        starts = read_rows(source, replace(question, columns=replace(question.columns, x=x, y=y)))
        ends = read_rows(source, replace(question, columns=PointColumns(x=x_end, y=y_end)))
        length = len(starts.x)
        return Trips(
            origin=placing.starts.places(starts.x, starts.y).astype(np.int32),
            destination=placing.ends.places(ends.x, ends.y).astype(np.int32),
            count=np.ones(length, np.int64) if starts.count is None else whole_counts(starts.count, length, "drop"),
            person=starts.person,
            ragged=starts.ragged,
        )

    return joined_trips(_each(sources, read, watch))


def _each(sources: Sequence[Source], read: Callable[[Source], T], watch: Watch) -> list[T]:
    parts = []
    for number, source in enumerate(sources):
        watch.at(number / len(sources))
        parts.append(read(source))
    watch.at(1.0)
    return parts


def joined_points(parts: Sequence[RawPoints]) -> RawPoints:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    return RawPoints(
        x=np.concatenate([part.x for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        count=_joined([part.count for part in parts]),
        person=joined_people([part.person for part in parts]),
        ragged=sum(part.ragged for part in parts),
    )


def joined_trips(parts: Sequence[Trips]) -> Trips:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Trips(
        origin=np.concatenate([part.origin for part in parts]),
        destination=np.concatenate([part.destination for part in parts]),
        count=np.concatenate([part.count for part in parts]),
        person=joined_people([part.person for part in parts]),
        ragged=sum(part.ragged for part in parts),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _joined(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    some = [column for column in columns if column is not None]
    return np.concatenate(some) if some else None


def joined_people(parts: Sequence[People | None]) -> People | None:
    """Whom the rows of all parts belong to; a person may have a value in each part, of one text."""
    some = [part for part in parts if part is not None]
    if not some:
        return None
    before = np.cumsum([0, *(len(part.distinct) for part in some)])
    codes = [np.where(part.codes < 0, -1, part.codes + first) for part, first in zip(some, before[:-1], strict=True)]
    return People(codes=np.concatenate(codes), distinct=[value for part in some for value in part.distinct])


_MIXED = (
    "origin and destination are both columns of ids, or both a pair of columns of coordinates such as ('lon', 'lat');"
    " crs belongs to coordinates."
)
Side: TypeAlias = str | tuple[str, str] | None
Progress: TypeAlias = Callable[[float], object] | None


def count_points(
    source: Sources,
    *,
    domain: Domain,
    engine: str = AUTO,
    address: str | None = None,
    insecure_address: bool = False,
    x: str | None = None,
    y: str | None = None,
    crs: object = None,
    count: str | None = None,
    person: str | None = None,
    contributions: int = 1,
    distinct: bool = False,
    bad_rows: str = "refuse",
    quoted_newlines: bool = False,
    key: bytes | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress = None,
    cancel: threading.Event | None = None,
) -> PointCounts:
    r"""Count the points of files on the lattice of a public domain, by whichever engine the files' size asks for.

    All engines give the same counts, bit for bit, and with one key keep the same records of each person.

    Args:
        source: an upload, a path, a glob such as ``"trips/*.parquet"``, a folder of Parquet files, or a list of those; all of one
            format with the same columns. Never a URL.
        domain: the public frame; points outside it are left out.
        engine: "numpy" reads whole files into memory, all formats and any CRS; "duckdb" reads Parquet (GeoParquet too), CSV
            and TSV in parts, and spills to disk; "dask" does so on a cluster. "auto" is "numpy" where the files fit an eighth
            of the memory and the limits, else "duckdb", and "dask" where there is an address.
        address: of a Dask scheduler, such as tls://10.0.0.5:8786; workers of this machine if None. It and its workers see the private
            files, and whoever runs the scheduler can run code on this computer.
        insecure_address: whether an address of another computer may be called without TLS.
        x: column of easting or longitude; found by its name if None, as `read_points` does.
        y: column of northing or latitude, likewise.
        crs: of the files' coordinates, if the files do not say.
        count: column of records per row, whole and >= 0; each row is one record if None.
        person: column that says who a row belongs to; each person then keeps at most `contributions` records, chosen at random
            by a keyed hash of the person, the cell and the record's number in it. Without it the protected unit is one record.
        contributions: m >= 1.
        distinct: whether each person counts once in each cell, and keeps at most m distinct cells.
        bad_rows: "refuse" raises on a row with a missing or malformed cell, and on two files of equal content; "drop" leaves the
            row out, and counts both files: nothing that one record could decide raises.
        quoted_newlines: as for `read_points`; engine "numpy" only.
        key: bytes that decide which records a person keeps; fresh from the operating system if None.
        limits: the most that a file may hold that is read into memory.
        progress: is told the part that is done, from 0 to 1.
        cancel: ends the count once it is set.

    Returns:
        The private counts, with the curator's counters `outside`, `bad` and `over`.

    Raises:
        InputError: no file, files that differ, a column or a row that cannot be used, an engine that is not installed or
            does not read such files; says the file, the column and the rule, never a cell's value.
        DpvizError: the count was cancelled; nothing of it is left.

    >>> import io
    >>> upload = io.BytesIO(b"lon,lat,who\n1.5,2.5,a\n1.5,2.5,a\n6.0,3.0,b\n")
    >>> upload.name = "places.csv"
    >>> from dpviz.space.domain import Domain
    >>> points = count_points(upload, domain=Domain(bounds=(0.0, 0.0, 8.0, 8.0), crs=None, order=3), person="who")
    >>> points.count.tolist(), points.over
    ([1, 1], 1)
    """
    scheduler = scheduler_at(address, insecure=insecure_address)
    refuse_degrees(domain)
    refuse_unenforced(person, contributions, distinct=distinct)
    bound = None if person is None else bound_of(contributions, key, distinct=distinct)
    columns = PointColumns(x=x, y=y, count=count, person=person)
    question = PointsQuestion(
        target=domain.crs, columns=columns, crs=crs, bad_rows=bad_rows, limits=limits, quoted_newlines=quoted_newlines
    )
    found, watch = found_files(source), Watch(progress=progress, cancel=cancel)
    if bad_rows == "refuse":
        refuse_copies(found)
    engine = engine_for(found, _within_cells(engine) if quoted_newlines else engine, scheduler, limits)
    if engine != NUMPY:
        return PointCounts.from_counted(run(engine, points_pass(found, question, domain, bound), scheduler, watch), domain, bound)
    return points_of(rows_of(found.sources, question, watch), domain, bound)


def count_flows(
    source: Sources,
    *,
    regions: Regions,
    destinations: Regions | None = None,
    engine: str = AUTO,
    address: str | None = None,
    insecure_address: bool = False,
    origin: Side = None,
    destination: Side = None,
    crs: object = None,
    count: str | None = None,
    person: str | None = None,
    contributions: int = 1,
    distinct: bool = False,
    exactly: bool = False,
    bad_rows: str = "refuse",
    quoted_newlines: bool = False,
    key: bytes | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress = None,
    cancel: threading.Event | None = None,
) -> Flows:
    r"""Add up the trips of files per pair of leaf regions, by whichever engine the files' size asks for.

    Args:
        source: as for `count_points`.
        regions: the public frame; where trips begin.
        destinations: where they end, a hierarchy of the same depth; `regions` if None.
        engine: as for `count_points`. A matrix of trips is read by "numpy" only, and totals are left out by it only.
        address: as for `count_points`.
        insecure_address: as for `count_points`.
        origin: column of ids of leaf regions, found by its name if None, as `read_flows` does; or two columns of coordinates,
            ``("x", "y")``, which are looked up in the polygons of the leaves.
        destination: likewise.
        crs: of coordinates; ids have none.
        count: column of trips per row, whole and >= 0; beside ids found by its name if None.
        person: column that says who a row belongs to; each person then keeps at most `contributions` trips.
        contributions: m >= 1; above 1 without `person`, the curator vouches that nobody has more.
        distinct: whether each person counts once in each pair, and keeps at most m distinct pairs.
        exactly: declare that every person has exactly m trips; with `person`, people with fewer are refused or dropped.
        quoted_newlines: as for `count_points`.
        bad_rows: as for `count_points`; an id that is no region is refused, too, coordinates outside all of them are not.
        key: as for `count_points`.
        limits: as for `count_points`.
        progress: as for `count_points`.
        cancel: as for `count_points`.

    Raises:
        InputError: as `count_points`.
        DomainError: coordinates, but leaf regions without polygons.
        DpvizError: the count was cancelled; nothing of it is left.

    >>> import io
    >>> from dpviz.space.regions import Regions
    >>> regions = Regions.from_prefixes(["36001", "36003", "50001"], lengths=[2, 5], levels=["state", "county"])
    >>> upload = io.BytesIO(b"from,to,trips\n36001,50001,7\n36003,36003,2\n36001,50001,1\n")
    >>> upload.name = "trips.csv"
    >>> flows = count_flows(upload, regions=regions)
    >>> flows.origin.tolist(), flows.destination.tolist(), flows.count.tolist()
    ([0, 1], [2, 1], [8, 2])
    """
    check_rule(bad_rows)
    scheduler = scheduler_at(address, insecure=insecure_address)
    refuse_unenforced(person, 1, distinct=distinct)
    bound = bound_of(contributions, key, distinct=distinct, fewer=bad_rows if exactly else KEEP)
    sides, columns = matched(regions, destinations or regions), PointColumns(count=count, person=person)
    if isinstance(origin, tuple) and isinstance(destination, tuple):
        placing = _between(origin, destination, sides)
        question = PointsQuestion(
            target=placing.crs, columns=columns, crs=crs, bad_rows=bad_rows, limits=limits, quoted_newlines=quoted_newlines
        )
        route = _by_coordinates(placing, question)
    elif isinstance(origin, tuple) or isinstance(destination, tuple) or crs is not None:
        raise InputError(_MIXED)
    else:
        named = FlowColumns(origin=origin, destination=destination, count=count, person=person)
        route = _by_ids(FlowsQuestion(sides=sides, columns=named, bad_rows=bad_rows, limits=limits, quoted_newlines=quoted_newlines))
    found, watch = found_files(source), Watch(progress=progress, cancel=cancel)
    if bad_rows == "refuse":
        refuse_copies(found)
    engine = engine_for(found, _within_cells(engine) if quoted_newlines else engine, scheduler, limits)
    held: dict[str, Any] = {"regions": sides[0], "destinations": sides[1], "contributions": bound.most, "exactly": exactly}
    if engine == NUMPY:
        return Flows.from_trips(route.read(found, watch), **held, distinct=distinct, bad_rows=bad_rows, key=bound.key)
    enforced = bound if person is not None else None
    return Flows.from_counted(run(engine, route.asked(found, enforced), scheduler, watch), **held, enforced=enforced is not None)


def _within_cells(engine: str) -> str:
    """The engine that reads cells with line ends in them."""
    if engine not in (AUTO, NUMPY):
        raise InputError(f"Engine {engine!r} reads a row per line: convert files with quoted_newlines to Parquet, or choose 'numpy'.")
    return NUMPY


class _Route(NamedTuple):
    """How trips are read into memory, and what is asked of an engine that does not."""

    read: Callable[[FoundFiles, Watch], Trips]
    asked: Callable[[FoundFiles, Bound | None], CountingPass]


def _by_ids(question: FlowsQuestion) -> _Route:
    return _Route(
        lambda found, watch: trips_of(found.sources, question, watch),
        lambda found, bound: flows_pass(found, question, bound),
    )


def _by_coordinates(placing: XyPairs, question: PointsQuestion) -> _Route:
    return _Route(
        lambda found, watch: coordinate_trips_of(found.sources, placing, question, watch),
        lambda found, bound: pairs_pass(found, placing, question, bound),
    )


def _between(origin: tuple[str, str], destination: tuple[str, str], sides: tuple[Regions, Regions]) -> XyPairs:
    if not len(origin) == len(destination) == 2:
        raise InputError(_MIXED)
    starts = LeafLookup.from_regions(sides[0])
    ends = starts if sides[1] is sides[0] else LeafLookup.from_regions(sides[1])
    if not same_crs(starts.crs, ends.crs):
        raise InputError("The polygons of origins and of destinations must be in one CRS.")
    leaves = (sides[0].size(sides[0].depth), sides[1].size(sides[1].depth))
    return XyPairs(origin=origin, destination=destination, starts=starts, ends=ends, leaves=leaves, crs=starts.crs.to_wkt())
