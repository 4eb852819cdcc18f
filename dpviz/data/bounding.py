"""The people that records belong to, and the bound that decides which of a person's records are kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from dpviz.arrays import Floats, Integers
from dpviz.data.cells import MOST_PER_CELL, REMEDY, check_whole
from dpviz.errors import InputError, check_choice

Words = NDArray[np.uint64]
Texts: TypeAlias = Sequence[bytes] | Sequence[str] | NDArray[np.object_] | pa.Array | pa.ChunkedArray
Persons: TypeAlias = Integers | Words | Texts  # whole numbers, or canonical texts

KEEP, DROP, REFUSE = "keep", "drop", "refuse"
FEWER = f"A person has fewer trips than were declared for every person. {REMEDY}"
_FIRST_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits that look random: multiplication spreads a number over the word
_SECOND_MULTIPLIER = np.uint64(0xD1B54A32D192ED03)
_WORD_BITS, _LARGEST_NUMBER = 64, 2**63 - 1
_NONE = np.zeros(0, np.int64)

RECORDS_AT_ONCE = 2**18  # that are sorted at once: their words fit the processor's cache


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Who each record belongs to. PRIVATE.

    Attributes:
        codes: (n,) index into `distinct`, -1 where the person is missing.
        distinct: (k,) a value per person, as a list of objects, or as an array of whole numbers. Values that have one canonical text
            are one person.
    """

    codes: Integers = field(repr=False)
    distinct: list[Any] | Integers = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How many records of a person are kept, and which.

    Attributes:
        most: m >= 1, the most records of a person; it may need more than 64 bits.
        distinct: whether a person counts once in each cell, so that m distinct cells are kept.
        fewer: what happens to people who have fewer than m records: "keep", "drop" or "refuse".
        key: decides which records are kept. It is secret: with the key one can tell which of a person's records were left out.
        per_slot: b >= 1, the most records of a person in each slot, over all places; None for m.
        slots: number of slots; cells are numbered place * slots + slot.
    """

    most: int
    distinct: bool = False
    fewer: str = KEEP
    per_slot: int | None = None
    slots: int = 1
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check_whole(self.most, "contributions", 1)
        if not isinstance(self.distinct, bool | np.bool_):
            raise InputError("distinct must be True or False.")
        check_choice(self.fewer, (KEEP, DROP, REFUSE), "fewer", InputError)
        if self.per_slot is not None:
            check_whole(self.per_slot, "per_slot", 1)
        if not isinstance(self.key, bytes):
            raise InputError("key must be bytes.")

    @property
    def cap(self) -> int:
        """The most records of one row that can count: m, or `MOST_PER_CELL` where that is less."""
        return min(int(self.most), MOST_PER_CELL)

    @cached_property
    def of_slot(self) -> Bound | None:
        """The bound of a person's records in one slot, with a key of its own; None if there is none below m."""
        if self.per_slot is None or self.per_slot >= self.most:
            return None
        key = hashlib.blake2b(self.key, digest_size=16, person=b"dpviz slots").digest()
        return Bound(most=self.per_slot, distinct=self.distinct, key=key)


def bound_of(most: int, key: bytes | None, **options: Any) -> Bound:
    """Make a bound with the given key, or with a fresh key from the operating system if `key` is None or empty."""
    return Bound(most=most, key=secrets.token_bytes(16) if key is None or key == b"" else key, **options)


def refuse_bound_without_persons(person: object, most: object, *, distinct: bool) -> None:
    """Refuse a bound of each person's records if no column says who the persons are."""
    if person is None and (distinct or most != 1):
        raise InputError("contributions above 1, or distinct=True, need a person column; without one, the unit is a single record or trip.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Holdings:
    """How many records each person has in each cell, one entry per pair of person and cell. PRIVATE.

    Attributes:
        codes: (g,) the person, as an index into `persons`, ascending.
        persons: (p,) whole numbers, or canonical texts; no person twice.
        cells: (g,) cell numbers, ascending for each person; no pair of person and cell twice.
        records: (g,) records of the person in the cell, at least 1.
    """

    codes: Integers = field(repr=False)
    persons: Persons = field(repr=False)
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
        column = pd.Series(values, dtype=object if as_texts else None)
        codes, distinct = factorize_objects(np.asarray(column, object)) if as_texts else pd.factorize(column, use_na_sentinel=True)
        return People(codes=codes.astype(np.int64, copy=False), distinct=plain_values(distinct))
    raise InputError("The person column must be one column of texts or numbers.")


def factorize_objects(values: NDArray[np.object_]) -> tuple[Integers, NDArray[np.object_]]:
    """Return (n,) indexes into the distinct objects, -1 where one is missing, and the distinct objects.

    A missing object is added at the end and taken off again. If all are texts, pandas before version 3 compares them up to their first NUL
    only: whether two of them are one person would depend on whether any other row has no text.
    """
    codes, distinct = pd.factorize(np.append(values, [None]), use_na_sentinel=True)
    return codes[:-1], np.asarray(distinct, object)


def plain_values(values: Any) -> list[Any] | Integers:
    """Return whole numbers that fit 64 bits with a sign as an array, and the values of any other array or index as a list of objects."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu":
        numbers = np.asarray(values)
        if numbers.dtype.kind == "i" or int(numbers.max(initial=0)) <= _LARGEST_NUMBER:
            return numbers.astype(np.int64, copy=False)
    return list(values.astype(object))


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


def person_hashes(persons: Persons, key: bytes) -> Words:
    """Return (n,) keyed hashes of people; a whole number has the hash of its canonical text, in whatever type it is stored.

    A text that is a whole number of 64 bits is hashed as that number, by rounds of splitmix64, so that columns of numbers never become
    texts. Every other text is hashed by SipHash. Two people with one hash stay two people: their priorities may be equal, but those of one
    are never compared with those of the other.

    Args:
        persons: (n,) whole numbers, or canonical texts (bytes, or texts that are encoded in UTF-8).
        key: the key of the bound.
    """
    if isinstance(persons, np.ndarray) and persons.dtype.kind in "iu":
        return _hash_numbers(persons, key)
    if isinstance(persons, pa.ChunkedArray):
        persons = persons.combine_chunks()
    texts = persons.cast(pa.large_binary()) if isinstance(persons, pa.Array) else pa.array(persons, pa.large_binary())
    is_number = _is_whole_number(texts)
    hashes = np.empty(len(texts), np.uint64)
    numbers = texts.filter(is_number).cast(pa.large_string()).cast(pa.int64())
    chosen = is_number.to_numpy(zero_copy_only=False)
    hashes[chosen] = _hash_numbers(numbers.to_numpy(), key)
    hashes[~chosen] = _hash_texts(texts.filter(pc.invert(is_number)), key)
    return hashes


def _is_whole_number(texts: pa.LargeBinaryArray) -> pa.BooleanArray:
    """Return (n,) whether each text is the canonical text of a whole number of 64 bits with a sign."""
    written = pc.match_substring_regex(texts, "^(0|-?[1-9][0-9]{0,18})$")  # with 18 digits at most, or 19 that are compared as texts
    length = pc.binary_length(texts)
    positive = pc.and_(pc.equal(length, 19), pc.less_equal(texts, pa.scalar(b"9223372036854775807", pa.large_binary())))
    negative = pc.and_(pc.equal(length, 20), pc.less_equal(texts, pa.scalar(b"-9223372036854775808", pa.large_binary())))
    return pc.and_(written, pc.or_(pc.less(length, 19), pc.or_(positive, negative)))


def _hash_numbers(numbers: NDArray[Any], key: bytes) -> Words:
    """Hash whole numbers. The rounds are one to one, so that two numbers never have the same hash."""
    secret = np.frombuffer(_derive_secret(key)[8:16], np.uint64)[0]
    hashes = _mix(_mix(numbers.astype(np.uint64) ^ secret) + _FIRST_MULTIPLIER)
    if numbers.dtype.kind == "u" and len(numbers) and int(numbers.max()) > _LARGEST_NUMBER:
        large = np.flatnonzero(numbers > _LARGEST_NUMBER)
        hashes[large] = _hash_texts(pa.array([str(number).encode() for number in numbers[large].tolist()], pa.large_binary()), key)
    return hashes


def _hash_texts(texts: pa.LargeBinaryArray, key: bytes) -> Words:
    if not len(texts):
        return np.zeros(0, np.uint64)
    cells = texts.to_numpy(zero_copy_only=False)
    return np.asarray(pd.util.hash_array(cells, hash_key=_derive_secret(key)[:8].hex(), categorize=False))


def priorities_of_hashes(hashes: Words | np.uint64, cells: Integers, numbers: Integers | int, key: bytes) -> Words:
    """Return (n,) priorities of records: rounds of splitmix64 mix the person's hash, the cell and the record's number in the cell.

    A priority depends on the record's person, cell and number and on the key, and on nothing else.

    Args:
        hashes: (n,) hash of each record's person under the key; or one hash, of the person of all.
        cells: (n,) the cell of each record.
        numbers: (n,) the number of each record, 0, 1, 2, ..., among the person's records in the cell; or one number for all.
        key: the key of the bound.
    """
    cell_secret, number_secret, last_secret = np.frombuffer(_derive_secret(key)[16:], np.uint64)
    words = _mix(hashes + (cells.astype(np.uint64) ^ cell_secret) * _FIRST_MULTIPLIER)
    with np.errstate(over="ignore"):  # of a single number: the arithmetic is modulo 2**64
        words = _mix(words + (np.asarray(numbers).astype(np.uint64) ^ number_secret) * _SECOND_MULTIPLIER)
    return _mix(words ^ last_secret)


def bound_records(owners: People, cells: Integers, records: Integers | None, bound: Bound) -> Holdings:
    """Choose the records that are kept, at most m of each person.

    Args:
        owners: who each of n rows belongs to; rows without a person are left out.
        cells: (n,) the cell of each row; rows with a negative number are left out.
        records: (n,) records that each row stands for; at most m of them can count. If None, each row is one record.
        bound: how many records are kept, and the key that chooses them.
    """
    codes, persons = _merge_by_text(owners)
    counted = (codes >= 0) & (cells >= 0)
    if records is not None:
        counted &= records > 0
    if not counted.all():
        codes, cells, records = codes[counted], cells[counted], None if records is None else records[counted]
    capped = None if records is None or bound.distinct else np.minimum(records, bound.cap)
    holdings = group_pairs(codes, persons, cells, capped, bound)
    kept_records = choose_records(holdings, bound)
    is_kept = kept_records > 0
    return Holdings(codes=holdings.codes[is_kept], persons=holdings.persons, cells=holdings.cells[is_kept], records=kept_records[is_kept])


def group_pairs(codes: Integers, persons: Persons, cells: Integers, records: Integers | None, bound: Bound) -> Holdings:
    """Add up the rows of each pair of person and cell, or count the pair once if the bound is distinct.

    Rows are sorted by one 64-bit word that holds person and cell, which is several times as fast as a sort by two columns.

    Args:
        codes: (n,) the person of each row, as an index into `persons`.
        persons: (p,) people, as in `Holdings`.
        cells: (n,) the cell of each row, at least 0.
        records: (n,) records of each row, at least 1; if None, each row is one record.
        bound: the bound of each person's records.
    """
    distinct_cells: Integers | None = None
    if int(cells.max(initial=0)).bit_length() + len(persons).bit_length() >= _WORD_BITS:  # a person and a cell would not fit in one word
        cells, distinct_cells = pd.factorize(cells, sort=True)
    bits = int(cells.max(initial=0)).bit_length()
    pair = (codes << bits) | cells
    if records is None or bound.distinct or records.max(initial=1) == 1:
        pair.sort()
        first = _run_starts(pair)
        pair_records = np.ones(len(first), np.int64) if bound.distinct else np.diff(first, append=len(pair))
    else:
        order = np.argsort(pair)
        pair = pair[order]
        first = _run_starts(pair)
        pair_records = np.add.reduceat(records[order], first)
    pair = pair[first]
    cell = pair & ((1 << bits) - 1)
    pair >>= bits
    return Holdings(codes=pair, persons=persons, cells=cell if distinct_cells is None else distinct_cells[cell], records=pair_records)


def _run_starts(groups: Integers) -> Integers:
    """Return the index at which each run of equal values begins."""
    return np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]][: len(groups)])


def _merge_by_text(owners: People) -> tuple[Integers, Persons]:
    """Give people of one canonical text one code. Return (n,) codes, -1 where the person is missing, and the distinct people."""
    if isinstance(owners.distinct, np.ndarray):  # whole numbers: their canonical texts are equal where they are
        index, numbers = pd.factorize(owners.distinct)
        return (owners.codes if len(numbers) == len(index) else np.r_[index, -1][owners.codes]), numbers
    texts = [canonical_text(value) for value in owners.distinct]
    code_of_text: dict[bytes, int] = {}
    merged = np.array([code_of_text.setdefault(text, len(code_of_text)) for text in texts] + [-1], np.int64)
    return (owners.codes if len(code_of_text) == len(texts) else merged[owners.codes]), list(code_of_text)


def choose_records(holdings: Holdings, bound: Bound) -> Integers:
    """Return (g,) how many records are kept of each person in each cell: at most m of each person in all.

    A person's records in a cell are numbered 0, 1, 2, ... The person's m records with the smallest (priority, cell, number) are kept.

    If a slot holds at most b of them, the b records of each slot with the smallest priorities under another key are chosen first, and the
    m are chosen among these.

    For a given key, which records a person keeps depends on that person's records alone: a priority is computed from the person, the
    cell, the number and the key, and is compared with priorities of the same person only. So adding or removing a person changes at most
    m of the kept records, all of them that person's, and the order of rows, their files and the engine change nothing. That is all that
    privacy needs, and it holds for every hash and every key, also for a hash that can be predicted. The key is secret and fresh so that
    no one can arrange their records to have certain ones chosen. With a random key, each set of m records is equally likely, as far as
    rounds of splitmix64 with secret constants are like chance.

    Raises:
        InputError: a person has fewer than m records, and such people are refused.
    """
    kept_records, fewer = keep_records(holdings, bound)
    if fewer and bound.fewer == REFUSE:
        raise InputError(FEWER)
    return kept_records


def keep_records(holdings: Holdings, bound: Bound) -> tuple[Integers, int]:
    """Choose as `choose_records` does, without raising. Return the kept records, and how many people have fewer than m records."""
    if not len(holdings.codes):
        return holdings.records, 0
    if bound.of_slot is not None:
        return _keep_by_slot(holdings, bound, bound.of_slot)
    first = _run_starts(holdings.codes)
    pairs = np.diff(first, append=len(holdings.codes))
    total = np.add.reduceat(holdings.records, first, dtype=np.float64)
    has_fewer = total < bound.most
    kept_records = holdings.records.copy()
    if bound.fewer == DROP:
        kept_records[np.repeat(has_fewer, pairs)] = 0
    over_bound = np.flatnonzero(total > bound.most)
    if not len(over_bound):
        return kept_records, int(has_fewer.sum())
    hashes = person_hashes(holdings.persons, bound.key)
    for people in _divide_people(over_bound, total[over_bound]):
        rows = _rows_of_runs(first[people], pairs[people])
        own_hashes = hashes[holdings.codes[first[people]]]
        if total[people[0]] > RECORDS_AT_ONCE:
            cells, large = holdings.cells[rows], LargePerson(person_hash=own_hashes[0], bound=bound)
            large.add(cells, np.zeros(len(cells), np.int64), holdings.records[rows])  # memory does not depend on the number of records
            kept_records[rows] = np.bincount(np.searchsorted(cells, large.kept()[0]), minlength=len(cells))
        else:
            kept_records[rows] = _choose_of_each(own_hashes, pairs[people], holdings.cells[rows], holdings.records[rows], bound)
    return kept_records, int(has_fewer.sum())


def _keep_by_slot(holdings: Holdings, bound: Bound, of_slot: Bound) -> tuple[Integers, int]:
    """Choose in each slot of each person first, and then among what is left of each person."""
    slot = holdings.cells % bound.slots
    order = np.lexsort((holdings.cells, slot, holdings.codes))
    first = np.flatnonzero(np.r_[True, (np.diff(holdings.codes[order]) != 0) | (np.diff(slot[order]) != 0)])
    group = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
    owners = _persons_at(holdings.persons, holdings.codes[order[first]])
    in_slots = Holdings(codes=group, persons=owners, cells=holdings.cells[order], records=holdings.records[order])
    kept_records = np.empty_like(holdings.records)
    kept_records[order], _ = keep_records(in_slots, of_slot)
    left = np.flatnonzero(kept_records)
    rest = Holdings(codes=holdings.codes[left], persons=holdings.persons, cells=holdings.cells[left], records=kept_records[left])
    kept_records[left], fewer = keep_records(rest, replace(bound, per_slot=None))
    return kept_records, fewer


def _persons_at(persons: Persons, codes: Integers) -> Persons:
    """Return (k,) persons by their index."""
    if isinstance(persons, np.ndarray):
        return persons[codes]
    return (persons if isinstance(persons, pa.Array | pa.ChunkedArray) else pa.array(persons, pa.large_binary())).take(pa.array(codes))


def _divide_people(people: Integers, total: Floats) -> Iterable[Integers]:
    """Divide people into groups of about `RECORDS_AT_ONCE` records; a person with more of them is a group."""
    group = np.cumsum(total) // RECORDS_AT_ONCE
    is_large = total > RECORDS_AT_ONCE
    starts = np.r_[True, (group[1:] != group[:-1]) | is_large[1:] | is_large[:-1]]
    return np.split(people, np.flatnonzero(starts)[1:])


def _rows_of_runs(first: Integers, lengths: Integers) -> Integers | slice:
    """Return the indexes of runs of rows; a slice if they are adjacent."""
    if first[-1] + lengths[-1] - first[0] == lengths.sum():
        return slice(int(first[0]), int(first[-1] + lengths[-1]))
    return np.repeat(first - np.r_[0, np.cumsum(lengths)[:-1]], lengths) + np.arange(lengths.sum())


def _choose_of_each(hashes: Words, pairs: Integers, cells: Integers, records: Integers, bound: Bound) -> Integers:
    """Return (g,) how many records are kept of each pair of people who all have more than m records.

    The records' words are sorted, each with the person in front and the first bits of the priority behind. The m-th smallest word of a
    person is the largest that is kept. Where the next one is equal to it, whole priorities, cells and numbers decide.

    Args:
        hashes: (p,) hash of each person.
        pairs: (p,) number of pairs of each person.
        cells: (g,) cell of each pair, the pairs of a person one after the other.
        records: (g,) records of each pair.
        bound: the bound.
    """
    person = np.repeat(np.arange(len(hashes)), pairs)
    first_of_pair = None
    numbers: Integers | int = 0
    if records.max() > 1:
        first_of_pair = np.cumsum(records) - records
        person, cells = np.repeat(person, records), np.repeat(cells, records)
        numbers = np.arange(len(cells)) - np.repeat(first_of_pair, records)
    priority = priorities_of_hashes(hashes[person], cells, numbers, bound.key)
    bits = np.uint64(len(hashes).bit_length())
    word = (person.astype(np.uint64) << (np.uint64(_WORD_BITS) - bits)) | (priority >> bits)
    first_of_person = np.searchsorted(person, np.arange(len(hashes)))
    ordered = np.sort(word)
    last_kept, next_word = ordered[first_of_person + (bound.most - 1)], ordered[first_of_person + bound.most]
    kept = word <= last_kept[person]
    if (last_kept == next_word).any():
        tied = np.flatnonzero((last_kept == next_word)[person])
        order = tied[np.lexsort((np.broadcast_to(numbers, len(cells))[tied], cells[tied], priority[tied], person[tied]))]
        first = _run_starts(person[order])
        kept[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order))) < bound.most
    kept_records = kept.astype(np.int64)
    return kept_records if first_of_pair is None else np.add.reduceat(kept_records, first_of_pair)


@dataclass(kw_only=True, eq=False)
class LargePerson:
    """The records of one person who may have more than fit in memory. They are added in parts, of which the m smallest are kept. PRIVATE.

    As long as there are at most m records, they are held as pairs of cell and number of records.

    Attributes:
        person_hash: the person's hash.
        bound: the bound.
        total: records that were added.
    """

    person_hash: np.uint64 = field(repr=False)
    bound: Bound
    total: int = field(default=0, repr=False)
    _pairs: list[tuple[Integers, Integers, Integers]] = field(default_factory=list, repr=False)
    _smallest: tuple[Words, Integers, Integers] = field(default=(np.zeros(0, np.uint64), _NONE, _NONE), repr=False)

    def add(self, cells: Integers, first_numbers: Integers, records: Integers) -> None:
        """Add records: `records[i]` in `cells[i]`, with the numbers from `first_numbers[i]` on; no record twice."""
        self.total += int(records.sum(dtype=np.float64))
        self._pairs.append((cells, first_numbers, records))
        if self.total > self.bound.most:
            for pairs in self._pairs:
                for some_cells, numbers in _divide_records(*pairs, max(RECORDS_AT_ONCE, int(self.bound.most))):
                    self._add_records(some_cells, numbers)
            self._pairs = []

    def _add_records(self, cells: Integers, numbers: Integers) -> None:
        priority = priorities_of_hashes(self.person_hash, cells, numbers, self.bound.key)
        most, smallest = int(self.bound.most), self._smallest
        if len(smallest[0]) == most:
            below = np.flatnonzero(priority <= smallest[0].max())
            priority, cells, numbers = priority[below], cells[below], numbers[below]
        priority, cells, numbers = (np.r_[old, new] for old, new in zip(smallest, (priority, cells, numbers), strict=True))
        if len(priority) > most:
            rows = np.flatnonzero(priority <= np.partition(priority, most - 1)[most - 1])
            rows = rows[np.lexsort((numbers[rows], cells[rows], priority[rows]))][:most]
            priority, cells, numbers = priority[rows], cells[rows], numbers[rows]
        self._smallest = priority, cells, numbers

    def kept(self) -> tuple[Integers, Integers]:
        """Return cells, and how many records are kept in each. A cell may be there more than once."""
        if self.total > self.bound.most:
            cells = self._smallest[1]
            return cells, np.ones(len(cells), np.int64)
        if self.bound.fewer == DROP and self.total < self.bound.most:
            return _NONE, _NONE
        return np.concatenate([pairs[0] for pairs in self._pairs]), np.concatenate([pairs[2] for pairs in self._pairs])


@dataclass(kw_only=True, eq=False)
class LargePersonBySlot:
    """The records of such a person if a slot holds at most b of them, which are chosen first. It is used as `LargePerson` is. PRIVATE.

    Attributes:
        person_hash: the person's hash under the key of the bound.
        hash_in_slots: the same under the key of its bound of a slot.
        bound: the bound.
        total: records that were added.
    """

    person_hash: np.uint64 = field(repr=False)
    hash_in_slots: np.uint64 = field(repr=False)
    bound: Bound
    total: int = field(default=0, repr=False)
    _slots: dict[int, LargePerson] = field(default_factory=dict, repr=False)

    def add(self, cells: Integers, first_numbers: Integers, records: Integers) -> None:
        """Add records, as `LargePerson.add` does."""
        self.total += int(records.sum(dtype=np.float64))
        slot, of_slot = cells % self.bound.slots, self.bound.of_slot or self.bound
        for number in np.unique(slot).tolist():
            large = self._slots.setdefault(number, LargePerson(person_hash=self.hash_in_slots, bound=of_slot))
            here = np.flatnonzero(slot == number)
            large.add(cells[here], first_numbers[here], records[here])

    def kept(self) -> tuple[Integers, Integers]:
        """Return cells, and how many records are kept in each. A cell may be there more than once."""
        parts = [large.kept() for large in self._slots.values()]
        cells, index = np.unique(np.concatenate([cells for cells, _ in parts]), return_inverse=True)
        records = np.bincount(index, np.concatenate([records for _, records in parts]), len(cells)).astype(np.int64)
        all_slots = LargePerson(person_hash=self.person_hash, bound=self.bound)
        all_slots.add(cells, np.zeros(len(cells), np.int64), records)
        return all_slots.kept()


def large_person(persons: Persons, bound: Bound) -> LargePerson | LargePersonBySlot:
    """Begin the records of the one person in `persons`, who may have more than fit in memory."""
    own = person_hashes(persons, bound.key)[0]
    if bound.of_slot is None:
        return LargePerson(person_hash=own, bound=bound)
    return LargePersonBySlot(person_hash=own, hash_in_slots=person_hashes(persons, bound.of_slot.key)[0], bound=bound)


def _divide_records(cells: Integers, first_numbers: Integers, records: Integers, most: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield the cell and the number of each record, at most `most` of them at once."""
    ends = np.cumsum(records)
    for start in range(0, int(ends[-1]) if len(ends) else 0, most):
        record = np.arange(start, min(start + most, int(ends[-1])))
        pair = np.searchsorted(ends, record, side="right")
        yield cells[pair], record - (ends[pair] - records[pair]) + first_numbers[pair]


def _derive_secret(key: bytes) -> bytes:
    """Return 40 bytes: the keys of SipHash and of numbers, then three that mix cells, numbers and priorities."""
    return hashlib.blake2b(key, digest_size=40, person=b"dpviz bounding").digest()


def _mix(words: Words) -> Words:
    """Apply the finaliser of splitmix64, modulo 2**64. It is one to one."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
