"""Who a record belongs to, and which of their records a person keeps."""

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
from dpviz.data.cells import MOST_PER_CELL
from dpviz.errors import InputError

Words = NDArray[np.uint64]
Texts: TypeAlias = Sequence[bytes] | Sequence[str] | NDArray[np.object_] | pa.Array | pa.ChunkedArray

KEEP, DROP, REFUSE = "keep", "drop", "refuse"
FEWER = "Somebody has fewer trips than were declared for everybody. Correct the table, or pass bad_rows='drop' to leave such rows out."
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SILVER = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Who each record belongs to. PRIVATE.

    Attributes:
        codes: (n,) index into `distinct`, -1 where it is missing.
        distinct: (k,) a value per person, no value twice, as a list of objects.
    """

    codes: Integers = field(repr=False)
    distinct: list[Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How many records of a person are kept, and which.

    Attributes:
        most: m >= 1; may be beyond 64 bits.
        distinct: whether a person counts once in each place, so that m distinct places are kept.
        fewer: what becomes of people with fewer than m records: "keep", "drop" or "refuse".
        key: decides which records are kept; whoever knows it can tell which of a person's records are left.
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
        """The most records of one row that take part: m, or what a place holds where that is less."""
        return min(int(self.most), MOST_PER_CELL)


def bound_of(most: int, key: bytes | None, *, distinct: bool = False, fewer: str = KEEP) -> Bound:
    """A bound by a key of the caller's, or by a fresh one from the operating system if None (or empty)."""
    return Bound(most=most, distinct=distinct, fewer=fewer, key=secrets.token_bytes(16) if key is None or key == b"" else key)


def refuse_unenforced(person: object, most: object, *, distinct: bool) -> None:
    """Refuse a bound of records that nobody is known to own."""
    if person is None and (distinct or most != 1):
        raise InputError(
            "contributions above 1 and distinct need a person column to enforce them with; without one the unit is a record or trip."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Holdings:
    """How many records each person has in each place. PRIVATE.

    Attributes:
        codes: (g,) index into `texts`.
        texts: (p,) canonical texts of people, no text twice.
        places: (g,) where; no pair of person and place twice.
        records: (g,) how many, at least 1.
    """

    codes: Integers = field(repr=False)
    texts: Texts = field(repr=False)
    places: Integers = field(repr=False)
    records: Integers = field(repr=False)


def people(values: ArrayLike | People) -> People:
    """Distinct people of a column; None, NaN and masked entries are missing.

    Raises:
        InputError: entries that cannot be compared, such as lists, or more than one dimension.
    """
    if isinstance(values, People):
        return values
    with suppress(Exception):  # whatever pandas and the objects themselves raise may quote a cell
        as_texts = not hasattr(values, "dtype") or values.dtype.kind in "OU"  # as objects: Arrow's texts know no lone surrogates
        codes, distinct = pd.factorize(pd.Series(values, dtype=object if as_texts else None), use_na_sentinel=True)
        return People(codes=codes.astype(np.int64), distinct=list(distinct.astype(object)))
    raise InputError("The person column must be one column of texts or numbers.")


def canonical_text(value: Any) -> bytes:
    """A person's text, the same for 7, 7.0, np.int64(7) and "7": a column's type, which may hang on somebody else's cell, is left out."""
    if isinstance(value, bool | float | np.floating | np.integer) and value == value // 1:
        value = int(value)
    return str(value).encode("utf-8", "surrogatepass")


def person_hashes(texts: Texts, key: bytes) -> Words:
    """(n,) keyed hashes of people's canonical texts (bytes, or texts in UTF-8): SipHash."""
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        texts = texts.to_numpy(zero_copy_only=False)
    cells = np.empty(len(texts), object)
    cells[:] = texts
    return np.asarray(pd.util.hash_array(cells, hash_key=_secret(key)[:8].hex(), categorize=False))


def priorities_of_hashes(hashes: Words, places: Integers, numbers: Integers, key: bytes) -> Words:
    """(n,) priorities of records from their people's hashes, their places and their numbers in the place: rounds of splitmix64."""
    before, between, after = np.frombuffer(_secret(key)[8:], np.uint64)
    words = _mix(hashes + (places.astype(np.uint64) ^ before) * _GOLDEN)
    words = _mix(words + (numbers.astype(np.uint64) ^ between) * _SILVER)
    return _mix(words ^ after)


def priorities(texts: Texts, places: Integers, numbers: Integers, key: bytes) -> Words:
    """(n,) priorities of any rows: a function of a row's own person, place and number, and of the key.

    The records of a person that have the smallest (priority, place, number) are kept.

    Args:
        texts: (n,) canonical texts of people.
        places: (n,) where the record lies.
        numbers: (n,) 0, 1, 2, ... among the person's records in that place.
        key: decides the choice.
    """
    codes, distinct = pd.factorize(np.asarray(texts, object)) if not isinstance(texts, pa.Array | pa.ChunkedArray) else _encoded(texts)
    return priorities_of_hashes(person_hashes(distinct, key)[codes], places, numbers, key)


def _encoded(texts: pa.Array | pa.ChunkedArray) -> tuple[Integers, pa.Array]:
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    found = whole.dictionary_encode()
    return found.indices.to_numpy(zero_copy_only=False), found.dictionary


def bounded(owners: People, places: Integers, records: Integers, bound: Bound) -> Holdings:
    """What people keep, at most m records each.

    Args:
        owners: who each of n rows belongs to; rows of nobody have no records.
        places: (n,) where; rows at negative places have no records.
        records: (n,) how many each row stands for, at most m of which take part.
        bound: how many are kept, and by which key.
    """
    held = holdings(owners, places, records, bound)
    kept = records_kept(held, bound)
    some = kept > 0
    return Holdings(codes=held.codes[some], texts=held.texts, places=held.places[some], records=kept[some])


def holdings(owners: People, places: Integers, records: Integers, bound: Bound) -> Holdings:
    """What people have before the bound; arguments as for `bounded`."""
    codes, texts = _by_text(owners)
    rows = np.flatnonzero((codes >= 0) & (places >= 0) & (records > 0))
    where, place = _narrow(places[rows], len(texts))
    width = np.int64(len(where) if where is not None else place.max(initial=0) + 1)
    pair, few = codes[rows] * width + place, np.minimum(records[rows], bound.cap)
    if bound.distinct or few.max(initial=1) == 1:
        pair.sort()
        first = _starts(pair)
        number = np.ones(len(first), np.int64) if bound.distinct else np.diff(first, append=len(pair))
    else:
        order = np.argsort(pair)
        pair = pair[order]
        first = _starts(pair)
        number = np.add.reduceat(few[order], first)
    person, spot = np.divmod(pair[first], width)
    return Holdings(codes=person, texts=texts, places=spot if where is None else where[spot], records=number)


def _narrow(places: Integers, people: int) -> tuple[Integers | None, Integers]:
    """Places that can be put beside people in 64 bits: as they are, or (n,) as indices into their distinct values."""
    if (int(places.max(initial=0)) + 1) * max(people, 1) < 2**63:
        return None, places
    index, where = pd.factorize(places, sort=True)
    return where, index


def _starts(groups: Integers) -> Integers:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]][: len(groups)])


def _by_text(owners: People) -> tuple[Integers, list[bytes]]:
    """(n,) codes of people by their canonical texts, -1 where missing, and the texts."""
    texts = [canonical_text(value) for value in owners.distinct]
    known: dict[bytes, int] = {}
    merged = np.array([known.setdefault(text, len(known)) for text in texts] + [-1], np.int64)
    return (owners.codes if len(known) == len(texts) else merged[owners.codes]), list(known)


def records_kept(held: Holdings, bound: Bound) -> Integers:
    """(g,) records that are kept of each holding, at most m of each person.

    A person's records in a place bear the numbers 0, 1, 2, ...; those with the smallest (priority, place, number) are kept.
    Under one key a person's choice is thus a function of that person's own records, in whatever order and files they
    come: adding or removing a person changes at most m of the kept records, all of them that person's. Over keys, the
    choice is even.

    Raises:
        InputError: somebody has fewer than m, and such people are refused.
    """
    total = np.bincount(held.codes, weights=held.records, minlength=len(held.texts))
    few = total[held.codes] < bound.most
    if bound.fewer == REFUSE and few.any():
        raise InputError(FEWER)
    kept = np.where(few & (bound.fewer == DROP), 0, held.records)
    much = np.flatnonzero(total[held.codes] > bound.most)
    if len(much):
        rows = np.repeat(much, held.records[much])
        order = _by_priority(rows, held, bound.key)
        chosen = rows[order[_number_within(held.codes[rows[order]]) < bound.most]]
        kept[much] = np.bincount(chosen, minlength=len(kept))[much]
    return kept


def _by_priority(rows: Integers, held: Holdings, key: bytes) -> Integers:
    """(n,) order of records by person, then by (priority, place, number).

    Sorts by the person and the priority's first bits in one word; only where two of those are the same by all of them.
    """
    person, place, number = held.codes[rows], held.places[rows], _number_within(rows)
    priority = priorities_of_hashes(person_hashes(held.texts, key)[person], place, number, key)
    bits = np.uint64(len(held.texts).bit_length())
    word = (person.astype(np.uint64) << (np.uint64(64) - bits)) | (priority >> bits)
    order = np.argsort(word)
    word = word[order]
    return order if (word[1:] != word[:-1]).all() else np.lexsort((number, place, priority, person))


def _number_within(groups: Integers) -> Integers:
    """(n,) 0, 1, 2, ... within each run of equal values."""
    if not len(groups):
        return groups
    first = _starts(groups)
    return np.asarray(np.arange(len(groups)) - np.repeat(first, np.diff(first, append=len(groups))))


def _secret(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=32, person=b"dpviz bounding").digest()


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64, modulo 2**64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
