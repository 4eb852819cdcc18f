"""Fingerprints by which the ledger recognises private data: of the files that were read, and of rows before each person's are bounded.

Which records a person keeps is decided by chance, so that the counts of persons differ each time they are made. Their rows do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpviz.arrays import Floats, Integers, slices
from dpviz.data.bounding import People, Persons, Words, canonical_text, person_hashes
from dpviz.data.leaf_ids import bare_id

_KEY = b"fingerprint of rows"  # public: the ledger keys what it stores
_LANES = 4
_BLOCK = 2**13  # rows at once: their lanes fit the processor's cache
_STARTS, _FACTORS = np.frombuffer(hashlib.shake_256(_KEY).digest(16 * _LANES), "<u8").astype(np.uint64).reshape(2, _LANES, 1)
_FACTORS = _FACTORS | np.uint64(1)  # odd: a multiplication loses nothing
_HALF = np.uint64(32)


@dataclass(frozen=True, kw_only=True)
class Fingerprints:
    """What identifies counts besides themselves, as hex digests. PRIVATE: in memory only. They are not shown, and a pickle leaves them out.

    A copy in memory keeps them.

    Attributes:
        files: of the content of each file that was read, or of a sample.
        rows: of the rows of a table or of arrays, with the person of each, before any was left out; none where the unit is a record.
    """

    files: tuple[str, ...] = field(default=(), repr=False)
    rows: tuple[str, ...] = field(default=(), repr=False)

    def __reduce__(self) -> tuple[type[Fingerprints], tuple[()]]:
        return Fingerprints, ()

    def __deepcopy__(self, _: object) -> Fingerprints:
        return self


UNKNOWN = Fingerprints()


@dataclass(frozen=True, kw_only=True)
class RowSum:
    """The sum of the digests of rows, which does not depend on their order. PRIVATE.

    The digest of a row is four words of 64 bits. Each begins with a constant h and takes in the row's words w, one after the other:
    h becomes g xor (g >> 32) with g = (h xor w) * f modulo 2**64, where f is odd. The words are the number of records, the coordinates or
    ids, and the person. Coordinates are 64-bit floats, with one zero and one NaN. Sums are modulo 2**64.

    Attributes:
        kind: says what the words of a row are.
        rows: number of rows.
        lanes: the four sums.
        places: the four sums before each row's person is taken in: the same for other names of the same persons.
    """

    kind: str
    rows: int = field(repr=False)
    lanes: tuple[int, ...] = field(repr=False)
    places: tuple[int, ...] = field(repr=False)

    def __add__(self, other: RowSum) -> RowSum:
        lanes, places = (
            tuple((one + two) % 2**64 for one, two in zip(mine, others, strict=True))
            for mine, others in ((self.lanes, other.lanes), (self.places, other.places))
        )
        return RowSum(kind=self.kind, rows=self.rows + other.rows, lanes=lanes, places=places)

    def fingerprints(self) -> tuple[str, ...]:
        """Return the SHA-256 of the number of rows and of either sums, with a prefix per kind, as hex digests."""
        sums = {"rows": self.lanes, "places": self.places}
        return tuple(hashlib.sha256(f"{name} {self.kind} {self.rows} {each}".encode()).hexdigest() for name, each in sums.items())


def sum_rows(columns: Sequence[Floats | Words], count: Integers | None, owners: People) -> RowSum:
    """Add up the digests of rows.

    Args:
        columns: (n,) coordinates in the CRS in which they were given, or words of ids.
        count: (n,) records of each row; if None, each row is one record.
        owners: who each row belongs to.
    """
    distinct = owners.distinct
    texts: Persons = distinct if isinstance(distinct, np.ndarray) else [canonical_text(value) for value in distinct]
    persons = np.append(person_hashes(texts, _KEY), np.uint64(0))  # the last one is of a missing person
    total = np.zeros((2, _LANES), np.uint64)
    for part in slices(len(owners.codes), _BLOCK):
        words = [np.uint64(1) if count is None else count[part].astype(np.uint64)]
        words += [_as_words(column[part]) for column in columns]
        total += _digest([*words, persons[owners.codes[part]]])
    kind = " ".join("id" if column.dtype == np.uint64 else "coordinate" for column in columns)
    lanes, places = map(tuple, total.tolist())
    return RowSum(kind=kind, rows=len(owners.codes), lanes=lanes, places=places)


def _digest(words: Sequence[Words | np.uint64]) -> Words:
    """Return the (2, 4) sums of the digests of rows, from the words of each: of all words, and of all but the last one."""
    lanes = before = _STARTS
    for word in words:
        before, lanes = lanes, (lanes ^ word) * _FACTORS
        lanes ^= lanes >> _HALF
    return np.stack([each.sum(axis=1, dtype=np.uint64) for each in (lanes, before)])


def _as_words(column: Floats | Words) -> Words:
    if column.dtype == np.uint64:
        return np.asarray(column, np.uint64)
    numbers = np.asarray(column, np.float64) + 0.0  # there is one zero
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def words_of_ids(codes: Integers, texts: Sequence[str]) -> Words:
    """Return (n,) words of ids: of `bare_id(texts[code])` where the code is not negative."""
    return np.append(person_hashes([canonical_text(bare_id(text)) for text in texts], _KEY), np.uint64(0))[codes]


def fingerprints_of_rows(sums: RowSum | None) -> Fingerprints:
    """Return the fingerprints of counts that were made of rows; without a single row there is none, since all empty data would share it."""
    return UNKNOWN if sums is None or not sums.rows else Fingerprints(rows=sums.fingerprints())


def add_sums(sums: Iterable[RowSum | None]) -> RowSum | None:
    """Add up the sums of several tables; None if there is none."""
    present = [one for one in sums if one is not None]
    return sum(present[1:], present[0]) if present else None


def sample_fingerprint(key: str, size: int | None = None, seed: int | None = None) -> Fingerprints:
    """Compute the fingerprint of a sample; it does not depend on the domain.

    Args:
        key: of the sample.
        size: number of made-up points; None for the sample's own.
        seed: of made-up data; None for the sample's own.
    """
    name = ("sample", key, size) if seed is None else ("sample", key, size, seed)
    return Fingerprints(files=(hashlib.sha256(repr(name).encode()).hexdigest(),))
