"""Inspect files before they are counted: describe their columns, and find columns whose values repeat, as ids of persons do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpviz.amounts import LONGEST_NUMBER
from dpviz.data.library_errors import or_none
from dpviz.data.reading.areas import AreasFile, describe_areas
from dpviz.data.reading.formats import declares_columns, named
from dpviz.data.reading.geometries import MOST_ROWS
from dpviz.data.reading.points import PointsFile, describe_header, inspect_points
from dpviz.data.reading.safety import DEFAULT_LIMITS, Limits, Source, is_path, read_bytes, read_checked
from dpviz.data.reading.sources import FoundFiles
from dpviz.data.reading.tables import OpenTable, open_table
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.data.reading.trips import NO_HEADER, TripsFile, describe_trips, inspect_trips, may_be_matrix, starts_with_data
from dpviz.data.roles import ENDS, NOTHING_CHOSEN, between_pairs, find_counts, find_pairs, find_persons, fold_name, is_text, plain_type
from dpviz.errors import InputError


def describe_points(files: FoundFiles, chosen: Mapping[str, Any] = NOTHING_CHOSEN) -> PointsFile:
    """Describe files of points by their headers or metadata. No row of a table is read, because tables may be large.

    Raises:
        InputError: as `inspect_points`.
    """
    if files.schema is None:
        return inspect_points(files.sources[0], text_format=files.text_format, chosen=chosen)
    geo = None if {"x", "y", "geometry"} & set(chosen) else files.geo
    kind, crs = (files.format, None) if geo is None else ("GeoParquet", geo.crs)
    return describe_header(kind, files.header(geo), crs, files.most_rows, chosen)


def describe_trip_files(files: FoundFiles, chosen: Mapping[str, Any] = NOTHING_CHOSEN) -> TripsFile:
    """Describe files of trips by their headers or metadata. Rows are read only in small files, to tell a matrix from a table.

    Raises:
        InputError: as `inspect_trips`.
    """
    if files.schema is None:
        return inspect_trips(files.sources[0], text_format=files.text_format, chosen=chosen)
    header = files.header(None)
    if starts_with_data(header.names):
        raise InputError(NO_HEADER)
    is_known = any(chosen.get(role) for role in ENDS) or between_pairs(header.names) is not None
    if not is_known and may_be_matrix(header.names) and files.within(DEFAULT_LIMITS):
        return inspect_trips(files.sources[0], text_format=files.text_format, chosen=chosen)
    return describe_trips(files.format, header, files.most_rows, chosen, matrix=False)


def describe_ids(files: FoundFiles, chosen: Mapping[str, Any] = NOTHING_CHOSEN) -> AreasFile:
    """Describe tables of ids of regions by their headers alone."""
    return describe_areas(files.format, files.header(None), chosen)


MOST_BYTES = 64 * 2**20  # the most that is read from the beginning of a text table
MOST_SHOWN = 3
_MOST_DISTINCT = 0.9  # distinct values per row; with more of them, values hardly repeat
_BATCH = 65_536
_CODE_FROM = 1000  # whole numbers from here on are more likely codes than measurements
_SECONDS = (946_684_800, 2_208_988_800)  # Unix time of the years 2000 and 2040
_TIMES = (
    r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?$|^\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}([ T].*)?$"
    r"|^\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?$"
)
_ID_NAME = re.compile(r"(id|nr|no|key|hash)$")
_Columns = dict[str, pa.Array | pa.ChunkedArray]


@dataclass(frozen=True, kw_only=True)
class RepeatedColumn:
    """A column whose values repeat. PRIVATE: its numbers are for the curator only.

    Attributes:
        name: name of the column.
        values: number of distinct values.
        rows: number of rows with a value.
        once: number of values that occur in a single row.
        all_rows: whether every row was read; otherwise only the first rows.
    """

    name: str
    values: int = field(repr=False)
    rows: int = field(repr=False)
    once: int = field(default=0, repr=False)
    all_rows: bool = field(default=True, repr=False)

    @property
    def consequence(self) -> str:
        """A sentence on whom a release per record would not hide, if the values are persons.

        >>> RepeatedColumn(name="Fahrzeug-ID", values=3, rows=50_000).consequence
        '3 values, 50,000 rows: publishing by record would not hide any of them'
        >>> RepeatedColumn(name="who", values=1_500, rows=2_000, once=1_000).consequence
        '1,500 values, 2,000 rows: publishing by record would not hide the 500 that have several rows'
        """
        values = "1 value" if self.values == 1 else f"{self.values:,} values"
        rows = f"{self.rows:,} rows" if self.all_rows else f"the first {self.rows:,} rows"
        several = self.values - self.once
        hidden = "it" if self.values == 1 else f"the {several:,} that have several rows" if self.once else "any of them"
        return f"{values}, {rows}: publishing by record would not hide {hidden}"


def find_repeated_columns(
    files: FoundFiles, *, but: Collection[str] = (), limits: Limits = DEFAULT_LIMITS
) -> tuple[RepeatedColumn, ...] | None:
    """Find columns of texts or whole numbers whose values repeat, likely ids first.

    The content decides whether a column is found: dates, times and fractions are not ids, and values that hardly repeat are not persons
    with several records. A column's name only decides its rank. At most a million rows are read, and of a text table the first 64 MiB.

    Args:
        files: the files.
        but: columns with another use, such as coordinates and counts.
        limits: the most that a file may hold if it is read as a whole.

    Returns:
        The columns; None if no entry was read: no column has texts or numbers, or no file can be opened. A manifest says whether
        private values were looked at, so names and declared types alone decide between the two.
    """
    skipped = {*map(fold_name, but)}
    counts: dict[str, list[pa.Table]] = {}
    rows: dict[str, int] = {}
    rows_seen, entries_read = 0, False
    for source in files.sources:
        for columns in or_none(lambda source=source: list(_read_first_rows(source, files, limits))) or ():  # type: ignore[misc]
            rows_seen += max(map(len, columns.values()), default=0)
            known = {*itertools.chain(*find_pairs(list(columns))), *find_counts(columns)}  # whose values are no ids
            for name, cells in columns.items():
                is_other = fold_name(name) not in skipped and name not in known
                may_be_id = is_other and _may_be_ids(cells.type)
                is_untyped = not declares_columns(files.format) and is_other
                entries_read = entries_read or may_be_id or is_untyped
                if may_be_id:
                    counted = pc.value_counts(cells)
                    values = counted.field("values")
                    values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
                    counts.setdefault(name, []).append(pa.table({"value": values, "rows": counted.field("counts")}))
                    rows[name] = rows.get(name, 0) + len(cells) - cells.null_count
        if rows_seen >= MOST_ROWS:
            break
    if not entries_read:
        return None
    all_rows = rows_seen < MOST_ROWS and not (files.format in SEPARATORS and max(files.sizes) >= MOST_BYTES)
    ranked = []
    for name, parts in counts.items():
        found_values = pa.concat_tables(parts).group_by("value").aggregate([("rows", "sum")])
        found_values = found_values.filter(found_values["value"].is_valid())
        values = found_values["value"].combine_chunks()
        if 0 < len(values) <= _MOST_DISTINCT * rows[name] and rows[name] > 1 and _are_ids(values):
            single = pc.sum(pc.equal(found_values["rows_sum"], 1)).as_py()
            column = RepeatedColumn(name=name, values=len(values), rows=rows[name], once=single, all_rows=all_rows)
            is_called_id = bool(find_persons([name])) or _ID_NAME.search(fold_name(name)) is not None
            ranked.append(((not is_called_id, not _are_codes(values), -len(values)), column))
    return tuple(column for _, column in sorted(ranked, key=lambda rank_and_column: rank_and_column[0]))


def _read_first_rows(source: Source, files: FoundFiles, limits: Limits) -> Iterator[_Columns]:
    """Yield the first rows of a file, in parts."""
    if files.format == "Parquet":
        yield from _read_parquet(source, files)
    elif files.format in SEPARATORS:
        data = read_bytes(source, MOST_BYTES)
        if len(data) == MOST_BYTES:
            data = data[: data.rfind(b"\n") + 1]
        yield _all_columns(open_table(files.format, data, limits, text_format=files.text_format))
    else:
        kind, data = read_checked(source, limits)
        form = named(kind)
        if form.first_columns is None:
            yield _all_columns(open_table(kind, data, limits))
        else:
            yield form.first_columns(form.check(data, limits))


def _read_parquet(source: Source, files: FoundFiles) -> Iterator[_Columns]:
    """Yield the first rows of a Parquet file. Texts stay dictionary-encoded: one long text can stand for millions of entries."""
    schema, geometries = cast("pa.Schema", files.schema), () if files.geo is None else files.geo.columns
    names = [column_field.name for column_field in schema if _may_be_ids(column_field.type) and column_field.name not in geometries]
    texts = [name for name in names if pa.types.is_string(schema.field(name).type)]
    if not names:
        return
    file, rows_left = pq.ParquetFile(str(source) if is_path(source) else source, read_dictionary=texts), MOST_ROWS
    for batch in file.iter_batches(batch_size=_BATCH, columns=names):
        yield dict(zip(names, batch.columns, strict=True))
        rows_left -= len(batch)
        if rows_left <= 0:
            return


def _all_columns(table: OpenTable) -> _Columns:
    return dict(zip(table.names, table.take(range(len(table.names))).columns, strict=True))


def _may_be_ids(kind: pa.DataType) -> bool:
    """Return whether a column's type allows ids: texts, integers, or floats, which may all be whole."""
    types = pa.types
    kinds = (types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_fixed_size_binary)
    return any(is_kind(plain_type(kind)) for is_kind in kinds)


def _are_ids(values: pa.Array) -> bool:
    """Return whether distinct values may be ids, because they are not fractions, dates or times."""
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        return bool(np.all(np.isfinite(numbers) & (np.floor(numbers) == numbers)))
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return True
    numbers_in_texts = or_none(lambda: _as_numbers(pc.utf8_trim_whitespace(values)))
    if numbers_in_texts is not None:
        return _are_ids(numbers_in_texts)
    return not bool(pc.all(pc.match_substring_regex(values, _TIMES)).as_py())


def _as_numbers(values: pa.Array) -> pa.Array | None:
    """Return numbers, or texts as numbers; None if a text is too long to be one. Raises an error of Arrow if one is none."""
    if is_text(values.type) and (pc.max(pc.binary_length(values)).as_py() or 0) > LONGEST_NUMBER:
        return None
    return pc.cast(values, pa.float64())


def _are_codes(values: pa.Array) -> bool:
    """Return whether distinct values look like codes: texts with digits, or large numbers that are not Unix times."""
    numbers = or_none(lambda: _as_numbers(values))
    if numbers is not None:
        median = float(np.median(numbers.to_numpy(zero_copy_only=False)))
        return median >= _CODE_FROM and not any(low <= median / scale <= high for scale in (1, 1000) for low, high in (_SECONDS,))
    texts = or_none(lambda: pc.match_substring_regex(values, r"\d"))
    return texts is None or 2 * (pc.sum(texts).as_py() or 0) > len(values)
