"""Choose the engine that counts some files, make its counting job, and run it."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyproj import CRS

from dpviz.data.columns import NOT_POINTS, no_number, resolve_columns
from dpviz.data.counting.job import (
    CellFinder,
    GeometryColumn,
    Job,
    LeafColumn,
    Pairs,
    PointCells,
    XyColumns,
)
from dpviz.data.counting.stream import count_stream
from dpviz.data.leaf_ids import LeafIds
from dpviz.data.reading.areas import resolve_area_columns
from dpviz.data.reading.geometries import NO_SHAPES, crs_of_file, same_crs
from dpviz.data.reading.sources import TABLES
from dpviz.data.reading.text_rows import UTF16
from dpviz.data.reading.trips import cut_length, is_matrix, resolve_trip_columns
from dpviz.data.roles import is_number, is_text, plain_type
from dpviz.errors import InputError, check_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpviz.arrays import Floats, Integers
    from dpviz.data.bounding import Bound
    from dpviz.data.cell_counts import CellCounts
    from dpviz.data.counting.job import Job, Progress
    from dpviz.data.counting.scheduler import Scheduler
    from dpviz.data.reading.areas import AreasRequest
    from dpviz.data.reading.points import PointsRequest
    from dpviz.data.reading.safety import Limits
    from dpviz.data.reading.sources import FoundFiles
    from dpviz.data.reading.trips import TripsRequest

NUMPY, DUCKDB, DASK, AUTO = "numpy", "duckdb", "dask", "auto"
ENGINES = (NUMPY, DUCKDB, DASK)
_NEEDS = {NUMPY: (), DUCKDB: ("duckdb",), DASK: ("dask", "distributed", "cryptography")}
_NOT_INSTALLED = "Engine {engine!r} is not installed: pip install 'dpviz[scale]'."


def choose_engine(files: FoundFiles, engine: str, scheduler: Scheduler | None, limits: Limits) -> str:
    """Choose the engine that counts some files.

    Args:
        files: the files.
        engine: one of ENGINES, or "auto". "auto" is "dask" if there is a scheduler; else "duckdb" for tables that, unpacked, are larger
            than an eighth of the machine's memory or than the limits; else "numpy". Without DuckDB, "numpy" also counts large tables
            within the limits.
        scheduler: a running Dask scheduler; None without one.
        limits: the most that a file may hold if it is read into memory.

    Raises:
        InputError: the engine does not exist, is not installed, or does not read such files.
    """
    check_choice(engine, (AUTO, *ENGINES), "engine", InputError)
    if scheduler is not None and engine not in (DASK, AUTO):
        raise InputError("address is a Dask scheduler's: choose engine='dask', or leave address out.")
    are_tables = files.format in TABLES and files.are_paths
    if engine == AUTO:
        fits = not are_tables or files.fit_in_memory(limits) or (files.within(limits) and not is_installed(DUCKDB))
        engine = DASK if scheduler is not None else NUMPY if fits else DUCKDB
    if engine != NUMPY and not are_tables:
        raise InputError(
            f"Engine {engine!r} reads Parquet, CSV and TSV files by their paths; choose engine='numpy' for others and for uploads."
        )
    if not is_installed(engine):
        raise InputError(_NOT_INSTALLED.format(engine=engine))
    return engine


def is_installed(engine: str) -> bool:
    """Return whether the packages that an engine needs are installed."""
    return all(find_spec(name) is not None for name in _NEEDS[engine])


class OnlyNumpyError(InputError):
    """The error for files that only the engine "numpy" can read."""


def falls_back(files: FoundFiles, engine: str, scheduler: Scheduler | None, limits: Limits) -> bool:
    """Return whether "numpy" counts the files if another engine cannot: with "auto", no scheduler, and files within the limits."""
    return engine == AUTO and scheduler is None and files.within(limits)


class Plan(NamedTuple):
    """The engine that counts, and its job. The job is None where "numpy" reads the files itself."""

    engine: str
    job: Job | None


def make_plan(files: FoundFiles, engine: str, scheduler: Scheduler | None, limits: Limits, make_job: Callable[[], Job]) -> Plan:
    """Choose the engine for some files, and make its job.

    Args:
        files: the files to count.
        engine: as for `choose_engine`. With "auto", files that only "numpy" can read are counted by it if `falls_back`.
        scheduler: a running Dask scheduler; None without one.
        limits: the most that a file may hold if it is read into memory.
        make_job: makes the job of an engine other than "numpy".

    Raises:
        InputError: as `choose_engine`; or the engine cannot read the files, and the text says what to do.
    """
    chosen = choose_engine(files, engine, scheduler, limits)
    if chosen == NUMPY:
        return Plan(NUMPY, None)
    try:
        return Plan(chosen, make_job())
    except OnlyNumpyError:
        if not falls_back(files, engine, scheduler, limits):
            raise
    return Plan(NUMPY, None)


def run_engine(plan: Plan, scheduler: Scheduler | None, progress: Progress) -> CellCounts:
    """Count with the plan's engine, in a stream of blocks or by Dask."""
    assert plan.job is not None  # noqa: S101  (for the type checker: "numpy" is not run here)
    if plan.engine == DUCKDB:
        return count_stream(plan.job, progress)
    from dpviz.data.counting.dask import DaskCluster, count_with_dask  # noqa: PLC0415  (Dask is an extra)

    return count_with_dask(plan.job, progress, DaskCluster(scheduler=scheduler))


_OTHER_CRS = (
    "The files are not in the CRS of the {name}, and only engine='numpy' reprojects: reproject the files,"
    " use their CRS for the {name}, or choose engine='numpy'."
)
_MATRIX = "The file is a matrix of trips, which only engine='numpy' reads."
_NO_WKT = (
    "Points in WKT are read by engine='numpy' only: store x and y in two columns, or the file as GeoParquet, or choose engine='numpy'."
)
_NO_UTF16 = "Text tables in UTF-16 are read by engine='numpy' only: save the files as UTF-8, or choose engine='numpy'."
_NO_PERSON = "The person column {name!r} must hold texts, numbers or dates: store persons so, or choose engine='numpy'."
_PERSON_TYPES = (
    *(is_text, is_number, pa.types.is_null, pa.types.is_boolean, pa.types.is_decimal128, pa.types.is_date),
    *(pa.types.is_binary, pa.types.is_large_binary),
)
_NESTED = "A column that is needed holds lists or records; store one text or number per cell."


def make_points_job(
    files: FoundFiles,
    request: PointsRequest,
    find: Callable[[Floats, Floats], Integers],
    size: int,
    bound: Bound | None,
    target: str,
) -> Job:
    """Make the job of counting tables of points in cells of a lattice, or in leaf regions.

    Args:
        files: tables of points.
        request: names the columns; its target is the CRS of the domain, or of the regions.
        find: finds the cell of each point: see `PointCells`.
        size: the number of cells.
        bound: the bound of each person's records; None where the unit is one record.
        target: what has the target CRS, "domain" or "regions", for errors.

    Raises:
        InputError: a column is missing or has the wrong type, or the CRS is unknown or differs from that of domain or regions.
    """
    geo = None if request.columns.coordinates else files.geo
    names = [name for name in _schema(files).names if geo is None or name not in geo.columns]
    columns = resolve_columns(names, request.columns, has_geometry=geo is not None, types=files.header(geo).types)
    if columns.geometry is not None:
        raise OnlyNumpyError(_NO_WKT)
    if request.centroids and geo is None:
        raise InputError(NO_SHAPES)
    kind = f"{files.format if geo is None else 'GeoParquet'} file"
    crs = crs_of_file(kind, None if geo is None else geo.crs, request.crs, request.target)
    _refuse_other_crs(crs, request.target, target)
    if geo is not None and not ((geo.may_be_points or request.centroids) and geo.encoding in ("WKB", "point")):
        raise InputError(NOT_POINTS)
    points: XyColumns | GeometryColumn = XyColumns(x=str(columns.x), y=str(columns.y))
    if geo is not None:
        points = GeometryColumn(geometry=geo.primary, encoding=geo.encoding, centroids=request.centroids)
    finder = PointCells(points=points, find=find, size=size)
    return _make_job(files, finder, (columns.count, columns.person), bound, drop=request.bad_rows == "drop")


def make_ids_job(files: FoundFiles, request: AreasRequest, bound: Bound | None) -> Job:
    """Make the job of counting tables of ids of leaf regions.

    Raises:
        InputError: a column is missing or has the wrong type.
    """
    columns = resolve_area_columns(_schema(files).names, request.columns)
    leaves = LeafIds.from_regions(request.regions, cut_length(columns.region, request.regions))
    finder = LeafColumn(region=columns.region, leaves=leaves)
    return _make_job(files, finder, (columns.count, columns.person), bound, drop=request.bad_rows == "drop")


def make_trips_job(files: FoundFiles, request: TripsRequest, bound: Bound | None) -> Job:
    """Make the job of counting tables of trips between leaf regions, which are given by their ids.

    Raises:
        InputError: a column is missing or has the wrong type, or the table is a matrix.
    """
    names = _schema(files).names
    if is_matrix(names, request.columns, request.sides):
        raise OnlyNumpyError(_MATRIX)
    columns = resolve_trip_columns(names, request.columns)
    origin, destination = str(columns.origin), str(columns.destination)
    starts, ends = (
        LeafColumn(region=name, leaves=LeafIds.from_regions(side, cut_length(name, side)))
        for name, side in zip((origin, destination), request.sides, strict=True)
    )
    finder = Pairs(origin=starts, destination=ends)
    return _make_job(files, finder, (columns.count, columns.person), bound, drop=request.bad_rows == "drop")


def make_pairs_job(files: FoundFiles, finder: Pairs[PointCells], request: PointsRequest, bound: Bound | None) -> Job:
    """Make the job of counting tables of trips between coordinates; it raises as `make_points_job` does."""
    names, sides, columns = _schema(files).names, [], request.columns
    for side in (finder.origin, finder.destination):
        wanted = replace(columns, x=side.columns[0], y=side.columns[1])
        found = resolve_columns(names, wanted, has_geometry=False)
        sides.append(replace(side, points=XyColumns(x=str(found.x), y=str(found.y))))
    _refuse_other_crs(crs_of_file(f"{files.format} file", None, request.crs, request.target), request.target, "regions")
    finder = Pairs(origin=sides[0], destination=sides[1])
    return _make_job(files, finder, (found.count, found.person), bound, drop=request.bad_rows == "drop")


def _make_job(
    files: FoundFiles, finder: CellFinder, count_and_person: tuple[str | None, str | None], bound: Bound | None, *, drop: bool
) -> Job:
    if files.text_format.encoding == UTF16:
        raise OnlyNumpyError(_NO_UTF16)
    count, person = count_and_person
    by_id = finder.by_id
    for name in filter(None, (*finder.number_columns, count)):
        column_type = _type_of(files, name)
        if not (is_number(column_type) or is_text(column_type) or pa.types.is_null(column_type)):
            raise no_number(name)
    other_columns = [name for name in (*(finder.columns if by_id else ()), person) if name is not None]
    if any(pa.types.is_nested(_type_of(files, name)) for name in other_columns):
        raise InputError(_NESTED)
    if person is not None and not any(test(_type_of(files, person)) for test in _PERSON_TYPES):
        raise OnlyNumpyError(_NO_PERSON.format(name=person))
    return Job(
        files=files.paths,
        format=files.format,
        schema=_schema(files),
        finder=finder,
        count=count,
        person=person,
        bound=bound,
        drop=drop,
        refuse_outside=by_id,
        size=files.size,
        text_format=files.text_format,
    )


def _schema(files: FoundFiles) -> pa.Schema:
    if files.schema is None:
        raise InputError(f"{files.format} files are read by engine='numpy' only.")
    return files.schema


def _type_of(files: FoundFiles, name: str) -> pa.DataType:
    return plain_type(_schema(files).field(name).type)


def _refuse_other_crs(crs: CRS | None, target: object, name: str) -> None:
    if crs is not None and target is not None and not same_crs(crs, CRS.from_user_input(target)):
        raise OnlyNumpyError(_OTHER_CRS.format(name=name))
