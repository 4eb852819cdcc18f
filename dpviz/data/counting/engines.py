"""The engines of the counting pass: which one counts, and what it takes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from dpviz.data.reading.sources import TABLES
from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counted import Counted
    from dpviz.data.counting.job import CountingPass, Watch
    from dpviz.data.counting.scheduler import Scheduler
    from dpviz.data.reading.safety import Limits
    from dpviz.data.reading.sources import FoundFiles

NUMPY, DUCKDB, DASK, AUTO = "numpy", "duckdb", "dask", "auto"
ENGINES = (NUMPY, DUCKDB, DASK)
_NEEDS = {NUMPY: (), DUCKDB: ("duckdb",), DASK: ("dask", "distributed", "cryptography")}
_SCALE = "Engine {engine!r} is not installed: pip install 'dpviz[scale]'."


def engine_for(found: FoundFiles, engine: str, scheduler: Scheduler | None, limits: Limits) -> str:
    """The engine that counts some files.

    Args:
        found: the files.
        engine: one of ENGINES, or "auto": "numpy", unless the files are larger than an eighth of the machine's memory or pass
            the limits, and are tables that "duckdb" reads; "dask" where there is a scheduler.
        scheduler: of Dask, that runs already.
        limits: the most that a file may hold that is read into memory.

    Raises:
        InputError: no such engine, one that is not installed, or one that does not read such files.
    """
    if engine not in (*ENGINES, AUTO):
        raise InputError(f"engine must be 'auto' or one of {', '.join(map(repr, ENGINES))}.")
    if scheduler is not None and engine not in (DASK, AUTO):
        raise InputError("address is a Dask scheduler's: choose engine='dask', or leave it out.")
    tables = found.format in TABLES and found.are_paths
    if engine == AUTO:
        engine = DASK if scheduler is not None else _by_size(found, limits, tables)
    if engine != NUMPY and not tables:
        raise InputError(
            f"Engine {engine!r} reads Parquet, CSV and TSV files by their paths; choose engine='numpy' for others and for uploads."
        )
    if not installed(engine):
        raise InputError(_SCALE.format(engine=engine))
    return engine


def _by_size(found: FoundFiles, limits: Limits, tables: bool) -> str:
    if not tables or found.fits(limits):
        return NUMPY
    return NUMPY if found.within(limits) and not installed(DUCKDB) else DUCKDB


def installed(engine: str) -> bool:
    """Whether what an engine needs is installed."""
    return all(find_spec(name) is not None for name in _NEEDS[engine])


def run(engine: str, asked: CountingPass, scheduler: Scheduler | None, watch: Watch) -> Counted:
    """Let an engine other than "numpy" count."""
    if engine == DUCKDB:
        from dpviz.data.counting.duckdb import count_with_duckdb  # noqa: PLC0415  (DuckDB is an extra)

        return count_with_duckdb(asked, watch)
    from dpviz.data.counting.dask import DaskCluster, count_with_dask  # noqa: PLC0415  (Dask is an extra)

    return count_with_dask(asked, watch, DaskCluster(scheduler=scheduler))
