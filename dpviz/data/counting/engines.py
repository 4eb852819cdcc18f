"""Choose the engine that counts some files, make its counting job, and run it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyproj import CRS

from dpviz.data.cell_counts import CellSums
from dpviz.data.columns import no_number
from dpviz.data.counting.block import BlockStream, StreamSettings
from dpviz.data.counting.job import CellFinder, Job
from dpviz.data.reading.geometries import same_crs
from dpviz.data.reading.sources import TABLES
from dpviz.data.reading.tables import NESTED
from dpviz.data.reading.text_rows import UTF16
from dpviz.data.roles import is_number, is_text, plain_type
from dpviz.errors import InputError, check_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpviz.data.bounding import Bound
    from dpviz.data.cell_counts import CellCounts
    from dpviz.data.columns import PointColumns
    from dpviz.data.counting.job import Progress
    from dpviz.data.counting.scheduler import Scheduler
    from dpviz.data.reading.safety import Limits
    from dpviz.data.reading.sources import FoundFiles
    from dpviz.data.reading.trips import IdColumns

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


_DEFAULT_SETTINGS = StreamSettings()


def count_stream(job: Job, progress: Progress, settings: StreamSettings = _DEFAULT_SETTINGS) -> CellCounts:
    """Count all rows of files that need not fit in memory, block by block: blocks are read by several threads, and added up.

    With a person column, DuckDB sorts their rows by person, on disk if they do not fit in memory, and each person's records are bounded
    while the sorted rows stream by. DuckDB opens no file of its own, and data that are spilled to disk are removed, even if the count
    fails.

    Args:
        job: the files, Parquet, CSV or TSV, and what is counted in them.
        progress: reports progress, and can cancel.
        settings: the threads, and the memory and folder of DuckDB.

    Raises:
        InputError: the files cannot be read, a row is bad and bad rows are refused, or there is no room to spill.
        DpvizError: the count was cancelled.
    """
    progress.report(0.0)
    stream = BlockStream(job=job, threads=settings.threads or os.cpu_count() or 1)
    sums = CellSums(size=job.finder.size)
    if job.bound is None:
        for block in stream.blocks():
            sums.add(block.cells, block.records)
            progress.report(stream.share)
        job.refuse(stream.totals, stream.bad)
    else:
        from dpviz.data.counting.duckdb import add_people  # noqa: PLC0415  (DuckDB is an extra)

        add_people(stream, job.bound, sums, progress, settings)
    progress.report(1.0)
    return sums.counts(stream.totals, stream.bad.total)


_OTHER_CRS = (
    "The files are not in the CRS of the {name}, and only engine='numpy' reprojects: reproject the files,"
    " use their CRS for the {name}, or choose engine='numpy'."
)
_NO_UTF16 = "Text tables in UTF-16 are read by engine='numpy' only: save the files as UTF-8, or choose engine='numpy'."
_NO_PERSON = "The person column {name!r} must hold texts, numbers or dates: store persons so, or choose engine='numpy'."
_PERSON_TYPES = (
    *(is_text, is_number, pa.types.is_null, pa.types.is_boolean, pa.types.is_decimal128, pa.types.is_date),
    *(pa.types.is_binary, pa.types.is_large_binary),
)


def make_job(files: FoundFiles, finder: CellFinder, columns: PointColumns | IdColumns, bound: Bound | None, *, drop: bool) -> Job:
    """Make the job of counting tables.

    Args:
        files: the tables.
        finder: finds the cell of each row.
        columns: the columns of counts and of persons, as the files spell them.
        bound: the bound of each person's records; None where the unit is one record.
        drop: whether bad rows are left out.

    Raises:
        InputError: a column has a type that is not counted.
        OnlyNumpyError: only "numpy" reads such files.
    """
    if files.text_format.encoding == UTF16:
        raise OnlyNumpyError(_NO_UTF16)
    count, person = columns.count, columns.person
    by_id = finder.by_id
    for name in filter(None, (*finder.number_columns, count)):
        column_type = _type_of(files, name)
        if not (is_number(column_type) or is_text(column_type) or pa.types.is_null(column_type)):
            raise no_number(name)
    other_columns = [name for name in (*(finder.columns if by_id else ()), person) if name is not None]
    if any(pa.types.is_nested(_type_of(files, name)) for name in other_columns):
        raise InputError(NESTED)
    if person is not None and not any(test(_type_of(files, person)) for test in _PERSON_TYPES):
        raise OnlyNumpyError(_NO_PERSON.format(name=person))
    return Job(
        files=files.paths,
        format=files.format,
        schema=schema_of(files),
        finder=finder,
        count=count,
        person=person,
        bound=bound,
        drop=drop,
        refuse_outside=by_id,
        size=files.size,
        text_format=files.text_format,
    )


def schema_of(files: FoundFiles) -> pa.Schema:
    """Return the schema of tables; raise `InputError` for files of another kind."""
    if files.schema is None:
        raise InputError(f"{files.format} files are read by engine='numpy' only.")
    return files.schema


def _type_of(files: FoundFiles, name: str) -> pa.DataType:
    return plain_type(schema_of(files).field(name).type)


def refuse_other_crs(crs: CRS | None, target: object, name: str) -> None:
    """Refuse files that are not in the target CRS, that of the `name` ("domain" or "regions"): only "numpy" reprojects."""
    if crs is not None and target is not None and not same_crs(crs, CRS.from_user_input(target)):
        raise OnlyNumpyError(_OTHER_CRS.format(name=name))
