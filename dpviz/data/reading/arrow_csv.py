"""Arrow's reader of text tables, called so that none of its threads holds a Python object when it returns."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pyarrow as pa
import pyarrow.csv

from dpviz.arrow_memory import in_arrow_memory

_PATIENCE = 10.0  # seconds; threads need milliseconds, unless the machine is overloaded


class _Skip:
    """A handler that leaves out rows with another number of cells than the header, and counts them."""

    def __init__(self, rows: list[int]) -> None:
        self._rows = rows

    def __call__(self, row: pyarrow.csv.InvalidRow) -> str:
        self._rows.append(row.actual_columns)
        return "skip"


def read_csv(content: bytes, read: pyarrow.csv.ReadOptions, convert: pyarrow.csv.ConvertOptions, **parse: Any) -> tuple[pa.Table, int]:
    """Read columns of a text table without its ragged rows, and return how many ragged rows there are.

    Arrow's threads end their tasks after the reader has returned, and release the function that skips rows only then. Releasing it needs
    Python's lock, and crashes a process that is about to end (see `arrow_memory`). So `read_csv` waits until the function is released.

    Args:
        content: the rows.
        read: names of the columns, size of the blocks, use of threads.
        convert: which columns, and their types.
        parse: options of `pyarrow.csv.ParseOptions`.

    Raises:
        pyarrow.ArrowInvalid: the content cannot be cut, or a cell is not of its column's type.
    """
    rows: list[int] = []
    gone = threading.Event()
    skip = _Skip(rows)
    weakref.finalize(skip, gone.set).atexit = False
    options = pyarrow.csv.ParseOptions(**parse, invalid_row_handler=skip)
    del skip
    try:
        return pyarrow.csv.read_csv(in_arrow_memory(content), read, options, convert), len(rows)
    finally:
        del options
        gone.wait(_PATIENCE)
