"""Call Arrow's reader of text tables so that none of its threads holds a Python object after the call."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pyarrow as pa
import pyarrow.csv

from dpviz.arrow_memory import copy_to_arrow

_RELEASE_SECONDS = 10.0  # threads need milliseconds, unless the machine is overloaded


def read_csv(
    content: bytes, read_options: pyarrow.csv.ReadOptions, convert_options: pyarrow.csv.ConvertOptions, **parse_options: Any
) -> tuple[pa.Table, int]:
    """Read columns of a text table without its ragged rows. Return the columns, and the number of ragged rows.

    Arrow's threads release the handler of ragged rows only after the reader has returned. Releasing it needs Python's lock, and crashes
    a process that is about to end (see `arrow_memory`). So `read_csv` waits until the handler is released.

    Args:
        content: the rows.
        read_options: Arrow's options for the columns' names, the size of blocks and the use of threads.
        convert_options: Arrow's options for the columns to read, and their types.
        parse_options: keyword arguments of `pyarrow.csv.ParseOptions`.

    Raises:
        pyarrow.ArrowInvalid: the content cannot be cut into rows and cells, or a cell is not of its column's type.
    """
    released, ragged_widths = threading.Event(), list[int]()

    def skip(row: pyarrow.csv.InvalidRow) -> str:
        ragged_widths.append(row.actual_columns)
        return "skip"

    weakref.finalize(skip, released.set).atexit = False
    options = pyarrow.csv.ParseOptions(**parse_options, invalid_row_handler=skip)
    del skip
    try:
        return pyarrow.csv.read_csv(copy_to_arrow(content), read_options, options, convert_options), len(ragged_widths)
    finally:
        del options
        released.wait(_RELEASE_SECONDS)
