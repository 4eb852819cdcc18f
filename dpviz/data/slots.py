"""The slot of each entry of a column: by its id, by the bin of its number, or by its time. What an entry gives depends on itself alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpviz.arrays import Integers
from dpviz.data.cells import BAD, OUTSIDE
from dpviz.data.columns import readable_numbers
from dpviz.data.leaf_ids import LeafIds
from dpviz.data.library_errors import without_private_text
from dpviz.data.roles import is_text
from dpviz.data.trips import ids_of
from dpviz.errors import InputError
from dpviz.space.categories import BINS, HOUR, IDS, MONTH, Categories
from dpviz.space.summed import Summed

_TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}(:\d{2}(:\d{2}(\.\d{1,9})?)?)?)?"
_OFFSET = r" ?(Z|[+-]\d{2}(:?\d{2})?)$"
_MONTHS = 12
_YEARS = (1700, 2250)
_PLAIN_LENGTHS = (len("2026-11-29 17:05"), len("2026-11-29 17:05:00"))


def slots_of(entries: pd.Series | pa.ChunkedArray, categories: Categories) -> Integers:
    """Find the slot of each of n entries.

    Args:
        entries: texts, numbers or times. Texts of numbers are read as numbers, and texts such as "2026-11-29 17:05" or
            "2026-11-29T17:05:00+01:00" as times.
        categories: public.

    Returns:
        (n,) indices of slots; OUTSIDE where an entry lies in no slot, and BAD where it is missing or cannot be read. If there is a slot for
        all others, no entry is OUTSIDE. Of `Summed`, (n,) steps from the lower bound, and OUTSIDE where there is no finite number.
    """
    if categories.read_as == IDS:
        slots = _find_ids(entries, categories)
    else:
        column = _as_arrow(entries)
        if isinstance(categories, Summed):
            return _find_values(column, categories)
        slots = _find_bins(column, categories) if categories.read_as == BINS else _find_times(column, categories)
    return np.where(slots == OUTSIDE, categories.slots - 1, slots) if categories.other else slots


def check_categories(categories: object) -> None:
    """Refuse anything but `Categories` or None."""
    if not isinstance(categories, Categories | None):
        raise InputError("categories must be Categories: see Categories.hours, Categories.bins and Categories.from_table.")


def check_slot_column(categories: object, slot: object) -> None:
    """Refuse categories without a column, and a column without categories."""
    check_categories(categories)
    if (categories is None) != (slot is None):
        raise InputError("categories and slot belong together: name the column of slots, and say what slots there are.")


def check_slots(entries: pd.Series | pa.ChunkedArray, categories: Categories, source: str, bad_rows: str) -> Integers:
    """Find slots as `slots_of` does.

    Args:
        entries: (n,) entries.
        categories: public.
        source: the column's name in errors.
        bad_rows: "refuse" or "drop".

    Raises:
        InputError: an entry is missing or cannot be read, under "refuse".
    """
    slots = slots_of(entries, categories)
    if bad_rows == "refuse" and (slots == BAD).any():
        raise InputError(f"{source} has a cell that is missing or {_UNREADABLE[categories.read_as]}.", only_rows=not (slots == BAD).all())
    return slots


_NO_TIME = "no time: write times as 2026-11-29 17:05"
_UNREADABLE = {IDS: "neither a text nor a whole number", BINS: "no number", **dict.fromkeys(("hour", "weekday", "month"), _NO_TIME)}


def _as_arrow(entries: pd.Series | pa.ChunkedArray) -> pa.ChunkedArray:
    if isinstance(entries, pa.ChunkedArray):
        return entries.cast(entries.type.value_type) if pa.types.is_dictionary(entries.type) else entries
    if entries.dtype == object:  # one by one: whether other entries are texts must not decide what an entry is
        entries = pd.Series([None if value is None or value is pd.NaT else str(value) for value in entries], dtype=object)
        return pa.chunked_array([pa.array(entries, pa.string())])
    rule = "The column of slots must hold texts, numbers or times."
    return without_private_text(rule, lambda: pa.chunked_array([pa.Array.from_pandas(entries)]))


def _find_ids(entries: pd.Series | pa.ChunkedArray, categories: Categories) -> Integers:
    ids, known = ids_of(entries, ""), categories.ids[-1].tolist()
    leaves = LeafIds(texts=tuple(known[:-1] if categories.other else known))
    return np.append(leaves.find(ids.texts), BAD)[ids.codes]  # code -1: no id; OUTSIDE is -1, too


def _find_bins(column: pa.ChunkedArray, categories: Categories) -> Integers:
    numbers, edges = readable_numbers(column), np.array(categories.edges)
    found = np.searchsorted(edges, numbers, side="right") - 1
    return np.where(np.isnan(numbers), BAD, np.where((numbers < edges[0]) | (numbers >= edges[-1]), OUTSIDE, found))


def _find_values(column: pa.ChunkedArray, values: Summed) -> Integers:
    numbers = readable_numbers(column)
    return np.where(np.isfinite(numbers), values.find_steps(numbers), OUTSIDE).astype(np.int64)


def _find_times(column: pa.ChunkedArray, categories: Categories) -> Integers:
    times = _local_times(column, str(categories.zone))
    if categories.read_as == HOUR and not times.null_count:
        return np.asarray(pc.hour(times).to_numpy())  # without floats, which cost more than the hours themselves
    if categories.read_as == MONTH:
        first = categories.ids[-1][0]
        begins = _MONTHS * int(first[:4]) + int(first[5:]) - 1
        numbers = pc.add(pc.multiply(pc.year(times), _MONTHS), pc.subtract(pc.month(times), begins + 1))
    else:
        numbers = pc.hour(times) if categories.read_as == HOUR else pc.day_of_week(times)
    slots = np.asarray(numbers.cast(pa.float64()).to_numpy(), np.float64)  # NaN where there is no time
    inside = (slots >= 0) & (slots < categories.slots - categories.other)
    return np.where(np.isnan(slots), BAD, np.where(inside, slots, OUTSIDE)).astype(np.int64)


def _local_times(column: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Return (n,) times on the clocks of a zone, null where an entry is none: those with an offset converted, others as they are."""
    if is_text(column.type):
        if (plain := _plain_times(column)) is not None:
            return plain
        encoded = pa.concat_arrays(column.chunks or [pa.array([], column.type)]).dictionary_encode()
        parsed = pa.concat_arrays(_parse_times(encoded.dictionary, zone).chunks)
        return pa.chunked_array([parsed.take(encoded.indices)])
    if pa.types.is_date(column.type):
        return column.cast(pa.timestamp("ms"))
    if not pa.types.is_timestamp(column.type):
        return pa.chunked_array([pa.nulls(len(column), pa.timestamp("us"))])
    return column if column.type.tz is None else pc.local_timestamp(column.cast(pa.timestamp(column.type.unit, zone)))


def _plain_times(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Read times that are all written as 2026-11-29 17:05, or all with seconds, which is far faster; None for any others.

    Of these lengths, Arrow reads no other texts as times without an offset, so that each entry gives what `_parse_times` gives.
    """
    lengths = pc.min_max(pc.binary_length(texts)).as_py()
    if lengths["min"] != lengths["max"] or lengths["min"] not in _PLAIN_LENGTHS:
        return None
    try:
        times = texts.cast(pa.timestamp("s"))
    except pa.ArrowInvalid:
        return None
    ends = pc.min_max(pc.year(times)).as_py()
    return times if ends["min"] >= _YEARS[0] and ends["max"] <= _YEARS[1] else None  # pandas does not read others in every version


def _parse_times(texts: pa.Array, zone: str) -> pa.ChunkedArray:
    trimmed = pc.utf8_trim_whitespace(texts)
    has_offset = pc.match_substring_regex(trimmed, _TIME + _OFFSET)
    is_local = pc.match_substring_regex(trimmed, _TIME + "$")

    def parse(chosen: pa.Array) -> pd.Series:
        written = pc.if_else(chosen, trimmed, pa.scalar(None, trimmed.type)).to_pandas()
        times: pd.Series = pd.to_datetime(written, format="ISO8601", errors="coerce", utc=True)
        usable: pd.Series = times.where(times.dt.year.between(*_YEARS)).dt.as_unit("ns")  # whatever unit other entries give the column
        return usable

    converted, local = parse(has_offset).dt.tz_convert(zone).dt.tz_localize(None), parse(is_local).dt.tz_localize(None)
    return pa.chunked_array([pa.Array.from_pandas(local.fillna(converted))])
