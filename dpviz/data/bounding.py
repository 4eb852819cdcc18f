"""The people that records belong to, and the bound that decides which of a person's records are kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Integers
from dpviz.data.cells import MOST_PER_CELL, REMEDY
from dpviz.errors import InputError

Words = NDArray[np.uint64]
Texts: TypeAlias = Sequence[bytes] | Sequence[str] | NDArray[np.object_] | pa.Array | pa.ChunkedArray

KEEP, DROP, REFUSE = "keep", "drop", "refuse"
FEWER = f"A person has fewer trips than were declared for every person. {REMEDY}"
_FIRST_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits that look random: multiplication spreads a number over the word
_SECOND_MULTIPLIER = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Who each record belongs to. PRIVATE.

    Attributes:
        codes: (n,) index into `distinct`, -1 where the person is missing.
        distinct: (k,) a value per person, no value twice, as a list of objects.
    """

    codes: Integers = field(repr=False)
    distinct: list[Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How many records of a person are kept, and which.

    Attributes:
        most: m >= 1, the most records of a person; it may need more than 64 bits.
        distinct: whether a person counts once in each cell, so that m distinct cells are kept.
        fewer: what happens to people who have fewer than m records: "keep", "drop" or "refuse".
        key: decides which records are kept. It is secret: with the key one can tell which of a person's records were left out.
    """

    most: int
    distinct: bool = False
    fewer: str = KEEP
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int | np.integer) or self.most < 1:
            raise InputError("contributions must be a whole number, at least 1.")
        if not isinstance(self.distinct, bool | np.bool_):
            raise InputError("distinct must be True or False.")
        if self.fewer not in (KEEP, DROP, REFUSE):
            raise InputError("fewer must be 'keep', 'drop' or 'refuse'.")
        if not isinstance(self.key, bytes):
            raise InputError("key must be bytes.")

    @property
    def cap(self) -> int:
        """The most records of one row that can count: m, or `MOST_PER_CELL` where that is less."""
        return min(int(self.most), MOST_PER_CELL)


def bound_of(most: int, key: bytes | None, *, distinct: bool = False, fewer: str = KEEP) -> Bound:
    """Make a bound with the given key, or with a fresh key from the operating system if `key` is None or empty."""
    return Bound(most=most, distinct=distinct, fewer=fewer, key=secrets.token_bytes(16) if key is None or key == b"" else key)


def refuse_bound_without_persons(person: object, most: object, *, distinct: bool) -> None:
    """Refuse a bound of each person's records if no column says who the persons are."""
    if person is None and (distinct or most != 1):
        raise InputError("contributions above 1, or distinct=True, need a person column; without one, the unit is a single record or trip.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Holdings:
    """How many records each person has in each cell, one entry per pair of person and cell. PRIVATE.

    Attributes:
        codes: (g,) the person, as an index into `texts`.
        texts: (p,) canonical texts of people, no text twice.
        cells: (g,) cell numbers; no pair of person and cell twice.
        records: (g,) records of the person in the cell, at least 1.
    """

    codes: Integers = field(repr=False)
    texts: Texts = field(repr=False)
    cells: Integers = field(repr=False)
    records: Integers = field(repr=False)


def find_people(values: ArrayLike | People) -> People:
    """Find the distinct people of a column; None, NaN and masked entries are missing.

    Raises:
        InputError: entries cannot be compared, such as lists, or the array has more than one dimension.
    """
    if isinstance(values, People):
        return values
    with suppress(Exception):  # an error of pandas or of the objects may quote an entry
        as_texts = not hasattr(values, "dtype") or values.dtype.kind in "OU"  # as objects: Arrow's texts cannot hold lone surrogates
        codes, distinct = pd.factorize(pd.Series(values, dtype=object if as_texts else None), use_na_sentinel=True)
        return People(codes=codes.astype(np.int64), distinct=list(distinct.astype(object)))
    raise InputError("The person column must be one column of texts or numbers.")


def check_people(values: ArrayLike | People, length: int, bad_rows: str) -> People:
    """Find the people of a column, and check its length and its missing entries.

    Args:
        values: (n,) entries.
        length: n, the number of rows.
        bad_rows: "refuse" or "drop".

    Raises:
        InputError: as `find_people`; the column has another length, or under "refuse" a missing entry.
    """
    owners = find_people(values)
    if owners.codes.shape != (length,):
        raise InputError("The person column must have one entry per row.")
    if bad_rows == "refuse" and (owners.codes < 0).any():
        raise InputError(f"The person column has a missing cell: every row must say whom it belongs to. {REMEDY}")
    return owners


def canonical_text(value: Any) -> bytes:
    """Return a person's canonical text, the same for 7, 7.0, np.int64(7) and "7".

    The type of a column can depend on other persons' entries, so it must not decide who a person is.
    """
    if isinstance(value, bool | float | np.floating | np.integer) and value == value // 1:
        value = int(value)
    return str(value).encode("utf-8", "surrogatepass")


def person_hashes(texts: Texts, key: bytes) -> Words:
    """Return (n,) SipHash values of people's canonical texts (bytes, or texts encoded in UTF-8) under a key."""
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        texts = texts.to_numpy(zero_copy_only=False)
    cells = np.empty(len(texts), object)
    cells[:] = texts
    return np.asarray(pd.util.hash_array(cells, hash_key=_derive_secret(key)[:8].hex(), categorize=False))


def priorities_of_hashes(hashes: Words, cells: Integers, numbers: Integers, key: bytes) -> Words:
    """Return (n,) priorities of records: rounds of splitmix64 mix the person's hash, the cell and the record's number in the cell."""
    cell_secret, number_secret, last_secret = np.frombuffer(_derive_secret(key)[8:], np.uint64)
    words = _mix(hashes + (cells.astype(np.uint64) ^ cell_secret) * _FIRST_MULTIPLIER)
    words = _mix(words + (numbers.astype(np.uint64) ^ number_secret) * _SECOND_MULTIPLIER)
    return _mix(words ^ last_secret)


def priorities(texts: Texts, cells: Integers, numbers: Integers, key: bytes) -> Words:
    """Return (n,) priorities of records. A priority depends on the record's person, cell and number and on the key, and on nothing else.

    A person keeps the records with the smallest (priority, cell, number).

    Args:
        texts: (n,) canonical texts of people.
        cells: (n,) the cell of each record.
        numbers: (n,) the number of each record, 0, 1, 2, ..., among the person's records in the cell.
        key: bytes that decide which records are kept.
    """
    codes, distinct = pd.factorize(np.asarray(texts, object)) if not isinstance(texts, pa.Array | pa.ChunkedArray) else _encode(texts)
    return priorities_of_hashes(person_hashes(distinct, key)[codes], cells, numbers, key)


def _encode(texts: pa.Array | pa.ChunkedArray) -> tuple[Integers, pa.Array]:
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    encoded = array.dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary


def bound_records(owners: People, cells: Integers, records: Integers, bound: Bound) -> Holdings:
    """Choose the records that are kept, at most m of each person.

    Args:
        owners: who each of n rows belongs to; rows without a person are left out.
        cells: (n,) the cell of each row; rows with a negative number are left out.
        records: (n,) records that each row stands for; at most m of them can count.
        bound: how many records are kept, and the key that chooses them.
    """
    holdings = count_holdings(owners, cells, records, bound)
    kept_records = choose_records(holdings, bound)
    is_kept = kept_records > 0
    return Holdings(codes=holdings.codes[is_kept], texts=holdings.texts, cells=holdings.cells[is_kept], records=kept_records[is_kept])


def count_holdings(owners: People, cells: Integers, records: Integers, bound: Bound) -> Holdings:
    """Count the records of each person in each cell before the bound; arguments as for `bound_records`."""
    codes, texts = _merge_by_text(owners)
    rows = np.flatnonzero((codes >= 0) & (cells >= 0) & (records > 0))
    distinct_cells, cell = _shrink_cells(cells[rows], len(texts))
    width = np.int64(len(distinct_cells) if distinct_cells is not None else cell.max(initial=0) + 1)
    pair, capped = codes[rows] * width + cell, np.minimum(records[rows], bound.cap)
    if bound.distinct or capped.max(initial=1) == 1:
        pair.sort()
        first = _run_starts(pair)
        pair_records = np.ones(len(first), np.int64) if bound.distinct else np.diff(first, append=len(pair))
    else:
        order = np.argsort(pair)
        pair = pair[order]
        first = _run_starts(pair)
        pair_records = np.add.reduceat(capped[order], first)
    person, cell_index = np.divmod(pair[first], width)
    cells_of_pairs = cell_index if distinct_cells is None else distinct_cells[cell_index]
    return Holdings(codes=person, texts=texts, cells=cells_of_pairs, records=pair_records)


def _shrink_cells(cells: Integers, people: int) -> tuple[Integers | None, Integers]:
    """Renumber cells if person * width + cell would not fit in 64 bits.

    Returns:
        None and the cells as they are if the numbers fit; else the distinct cells, and (n,) indexes into them.
    """
    if (int(cells.max(initial=0)) + 1) * max(people, 1) < 2**63:
        return None, cells
    index, distinct = pd.factorize(cells, sort=True)
    return distinct, index


def _run_starts(groups: Integers) -> Integers:
    """Return the index at which each run of equal values begins."""
    return np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]][: len(groups)])


def _merge_by_text(owners: People) -> tuple[Integers, list[bytes]]:
    """Give people of one canonical text one code. Return (n,) codes, -1 where the person is missing, and the distinct texts."""
    texts = [canonical_text(value) for value in owners.distinct]
    code_of_text: dict[bytes, int] = {}
    merged = np.array([code_of_text.setdefault(text, len(code_of_text)) for text in texts] + [-1], np.int64)
    return (owners.codes if len(code_of_text) == len(texts) else merged[owners.codes]), list(code_of_text)


def choose_records(holdings: Holdings, bound: Bound) -> Integers:
    """Return (g,) how many records are kept of each person in each cell: at most m of each person in all.

    A person's records in a cell are numbered 0, 1, 2, ... The person's m records with the smallest (priority, cell, number) are kept.
    For a given key, which records a person keeps depends on that person's records alone, not on their order or files. So adding or
    removing a person changes at most m of the kept records, all of them that person's. With a random key, each set of m records is
    equally likely.

    Raises:
        InputError: a person has fewer than m records, and such people are refused.
    """
    total = np.bincount(holdings.codes, weights=holdings.records, minlength=len(holdings.texts))
    has_fewer = total[holdings.codes] < bound.most
    if bound.fewer == REFUSE and has_fewer.any():
        raise InputError(FEWER)
    kept_records = np.where(has_fewer & (bound.fewer == DROP), 0, holdings.records)
    over_bound = np.flatnonzero(total[holdings.codes] > bound.most)
    if len(over_bound):
        rows = np.repeat(over_bound, holdings.records[over_bound])
        order = _order_by_priority(rows, holdings, bound.key)
        chosen = rows[order[_number_within(holdings.codes[rows[order]]) < bound.most]]
        kept_records[over_bound] = np.bincount(chosen, minlength=len(kept_records))[over_bound]
    return kept_records


def _order_by_priority(rows: Integers, holdings: Holdings, key: bytes) -> Integers:
    """Return (n,) order of records by person, then by (priority, cell, number).

    A sort by one 64-bit word, the person and the first bits of the priority, is enough unless two words are equal.
    """
    person, cell, number = holdings.codes[rows], holdings.cells[rows], _number_within(rows)
    priority = priorities_of_hashes(person_hashes(holdings.texts, key)[person], cell, number, key)
    bits = np.uint64(len(holdings.texts).bit_length())
    sort_word = (person.astype(np.uint64) << (np.uint64(64) - bits)) | (priority >> bits)
    order = np.argsort(sort_word)
    sort_word = sort_word[order]
    return order if (sort_word[1:] != sort_word[:-1]).all() else np.lexsort((number, cell, priority, person))


def _number_within(groups: Integers) -> Integers:
    """Number the entries of each run of equal values 0, 1, 2, ...; return (n,) numbers."""
    if not len(groups):
        return groups
    first = _run_starts(groups)
    return np.asarray(np.arange(len(groups)) - np.repeat(first, np.diff(first, append=len(groups))))


def _derive_secret(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=32, person=b"dpviz bounding").digest()


def _mix(words: Words) -> Words:
    """Apply the finaliser of splitmix64, modulo 2**64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
