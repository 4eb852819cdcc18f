"""Who a record belongs to, and which of their records a person keeps."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.errors import InputError

Integers = NDArray[np.int64]

_MOST = 2**53
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Who each record belongs to. PRIVATE.

    Attributes:
        codes: (n,) index into `distinct`, -1 where it is missing.
        distinct: (k,) a value per person, no value twice, as a list of objects.
    """

    codes: Integers = field(repr=False)
    distinct: list[Any] = field(repr=False)


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


def kept_rows(owners: People, records: Integers, most: int, key: bytes) -> Integers:
    """Rows of the records that people keep, at most `most` each; a row comes once per record of it that is kept.

    A record's priority is a keyed hash of its person's value and of its number among the person's own records, in
    their order; the smallest are kept. Under one key, fixed or fresh, a person's choice is thus a function of that
    person's own records: adding or removing a person changes at most `most` of the kept records, all of them that
    person's. Over keys, the choice is even.

    Args:
        owners: who each of n rows belongs to; rows of nobody have no records.
        records: (n,) how many each row stands for, at most `most` of which take part; 0 where a row is left out.
        most: m >= 1.
        key: decides the choice; whoever knows it can tell which of a person's records are left.
    """
    rows = np.repeat(np.arange(len(records)), np.where(owners.codes < 0, 0, np.minimum(records, min(most, _MOST))))
    rows = rows[np.argsort(owners.codes[rows], kind="stable")]
    person = owners.codes[rows]
    number = _number_within(person)
    return rows[np.lexsort((_priorities(owners.distinct, person, number, key), person))[number < most]]


def _number_within(groups: Integers) -> Integers:
    """(n,) 0, 1, 2, ... within each run of equal values."""
    if not len(groups):
        return groups
    first = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    return np.asarray(np.arange(len(groups)) - np.repeat(first, np.diff(np.r_[first, len(groups)])))


def _priorities(distinct: list[Any], person: Integers, number: Integers, key: bytes) -> NDArray[np.uint64]:
    """(n,) keyed hashes of person and number: SipHash of the person's text, then two rounds of splitmix64.

    The rounds are one-to-one for each person, so that no two records of a person share a priority.
    """
    secret = hashlib.blake2b(key, digest_size=24, person=b"dpviz bounding").digest()
    texts = np.empty(len(distinct), object)
    texts[:] = [_as_bytes(value) for value in distinct]
    named = pd.util.hash_array(texts, hash_key=secret[:8].hex(), categorize=False)
    before, after = np.frombuffer(secret[8:], np.uint64)
    return _mixed(_mixed(named[person] + (number.astype(np.uint64) ^ before) * _GOLDEN) ^ after)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64, modulo 2**64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _as_bytes(value: Any) -> bytes:
    """The same for 7, 7.0 and np.int64(7): a column's type, which may hang on somebody else's cell, is left out."""
    if isinstance(value, bool | float | np.floating | np.integer) and value == value // 1:
        value = int(value)
    return str(value).encode("utf-8", "surrogatepass")
