"""One file of a release, and the writers of its formats: Parquet, GeoJSON and CSV."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from dpviz.errors import DpvizError

GEOPARQUET, PARQUET, GEOJSON, CSV = "GeoParquet", "Parquet", "GeoJSON", "CSV"
FORMATS = ("geoparquet", "geojson", "csv")
DEGREES = "EPSG:4326"
NO_CRS = "There is no CRS: GeoJSON and longitudes need a place on the globe, and a plain plane has none."
OFF_THE_GLOBE = "The CRS gives some corners no longitude and latitude."

_DANGEROUS = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_DIGITS = 10
_FINEST = 15


@dataclass(frozen=True, kw_only=True)
class Member:
    """A file to be written.

    Attributes:
        name: of the file.
        format: "GeoParquet", "Parquet", "GeoJSON" or "CSV".
        about: one sentence for people.
        write: puts the file at a path.
    """

    name: str
    format: str
    about: str
    write: Callable[[Path], None]


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A file that this release cannot have.

    Attributes:
        name: of the file.
        reason: one sentence for people.
    """

    name: str
    reason: str


Plan = list[Member | LeftOut]


def neutral(texts: NDArray[np.object_]) -> list[str]:
    """(n,) the same texts, but with an apostrophe before any that a spreadsheet would take for a formula.

    Distinct texts stay distinct: those that begin with apostrophes before such a character get one more.

    >>> neutral(np.array(["=1+1", "06037", "'=1+1"], object))
    ["'=1+1", '06037', "''=1+1"]
    """
    return [f"'{text}" if _DANGEROUS.match(text) else text for text in texts.tolist()]


def always(text: str, rows: int) -> pa.DictionaryArray:
    """(rows,) the same text."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), [text])


def plain(table: pa.Table) -> pa.Table:
    """The same table, with texts that are kept as places in a list written out."""
    columns = [pc.cast(column, pa.string()) if pa.types.is_dictionary(column.type) else column for column in table.columns]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def write_csv(table: pa.Table, path: Path) -> None:
    """A table as CSV in UTF-8: a header, numbers in full precision, missing numbers empty, texts in quotes."""
    pyarrow.csv.write_csv(plain(table), path)


def write_geojson(frame: geopandas.GeoDataFrame, path: Path) -> None:
    """Shapes as GeoJSON by RFC 7946: in longitude and latitude (WGS 84), cut at the antimeridian.

    Raises:
        DpvizError: it cannot be written.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame.to_file(path, driver="GeoJSON", engine="pyogrio", RFC7946="YES", SIGNIFICANT_FIGURES=_DIGITS)
        complete = path.read_bytes()[-16:].rstrip().endswith(b"}")
    except Exception:  # noqa: BLE001  (GDAL's errors have no common root with OSError)
        complete = False
    if not complete:
        raise DpvizError("The GeoJSON could not be written: is the disk full?")


def off_the_globe(crs: CRS | None, x: NDArray[np.float64], y: NDArray[np.float64]) -> str | None:
    """Why coordinates have no longitude and latitude; None if all have."""
    if crs is None:
        return NO_CRS
    try:
        degrees = Transformer.from_crs(crs, DEGREES, always_xy=True).transform(x, y)
    except ProjError:
        return "The CRS is not one of the Earth's surface."
    return None if np.isfinite(degrees).all() else OFF_THE_GLOBE


def numbers(columns: dict[str, Any]) -> pa.Table:
    """Columns as a table: NaN becomes missing."""
    return pa.table(
        {name: column if isinstance(column, pa.Array) else pa.array(column, from_pandas=True) for name, column in columns.items()}
    )
