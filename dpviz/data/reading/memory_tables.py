"""Tables in memory, of any library, as the Parquet uploads that the readers of files take."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, TypeAlias

import geopandas
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpviz.data.library_errors import without_private_text
from dpviz.errors import InputError

Table: TypeAlias = pd.DataFrame | pa.Table | pa.RecordBatch | Mapping[str, Any]
"""A table in memory; tables of Polars and DuckDB, which Arrow takes over, are taken, too."""

_UNUSABLE = (
    "The table in memory cannot be read: a column must hold values of one kind, such as numbers or texts. Convert it first, for example"
    " with table['who'] = table['who'].astype(str)."
)
_NO_COLUMNS = (
    "A dict is a table of columns, each of them an array or a list; make records a table first, for example with pandas.DataFrame(records)."
)
_SAME_NAME = "Two columns of the table have the same name; rename one."


class TableUpload(io.BytesIO):
    """A table in memory as an open Parquet file with a name."""

    name = "table in memory.parquet"
    advice = (
        " Pass limits=dv.reading.Limits(file_bytes=..., rows=..., memory_bytes=...) for a larger table in memory,"
        " or count arrays with PointCounts.from_xy."
    )


def is_table(source: object) -> bool:
    """Return whether an object is a DataFrame, a GeoSeries, an Arrow table, a dict of arrays, or what Arrow takes over, as of Polars."""
    kinds = pd.DataFrame | geopandas.GeoSeries | pa.Table | pa.RecordBatch | Mapping
    return isinstance(source, kinds) or hasattr(source, "__arrow_c_stream__")


def table_upload(table: Any) -> TableUpload:
    """Write a table into memory as Parquet, so that the same rules hold for it as for files; GeoDataFrames keep shapes and CRS.

    Raises:
        InputError: a column has no name, or mixes kinds of values; the text names no value.

    >>> upload = table_upload({"lon": [4.9, 4.8], "lat": [52.4, 52.3]})
    >>> pq.read_table(upload).column_names
    ['lon', 'lat']
    """
    upload = TableUpload()
    if isinstance(table, geopandas.GeoSeries):
        table = table.to_frame("geometry")
    if isinstance(table, Mapping) and any(isinstance(column, str) or not hasattr(column, "__len__") for column in table.values()):
        raise InputError(_NO_COLUMNS)
    if isinstance(table, pd.DataFrame) and not table.columns.is_unique:
        raise InputError(_SAME_NAME)
    if isinstance(table, geopandas.GeoDataFrame):
        without_private_text(
            "The GeoDataFrame cannot be read: it needs one geometry column.", lambda: table.to_parquet(upload, index=False)
        )
    else:
        arrow = without_private_text(_UNUSABLE, lambda: _arrow_table(table))
        if len(set(arrow.column_names)) < len(arrow.column_names):
            raise InputError(_SAME_NAME)
        repetitive = [column.name for column in arrow.schema if not pa.types.is_primitive(column.type)]  # dictionaries of numbers cost time
        without_private_text(_UNUSABLE, lambda: pq.write_table(arrow, upload, use_dictionary=repetitive))
    upload.seek(0)
    return upload


def _arrow_table(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pd.DataFrame):
        return pa.Table.from_pandas(table, preserve_index=False)
    return pa.table(dict(table)) if isinstance(table, Mapping) else pa.table(table)
