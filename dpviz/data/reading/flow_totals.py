"""Totals among trips: rows and columns called a total stand for the others, so they are checked and left out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dpviz.data.columns import folded
from dpviz.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpviz.data.flow_rows import Ids
    from dpviz.space.regions import Regions

    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

TOTAL_WORDS = ("total", "totals", "all", "sum", "sums", "grand total")
_CONTRADICTION = (
    f"Rows or columns whose id is a word for a total ({', '.join(TOTAL_WORDS)}) do not equal the sum of the others:"
    " the file contradicts itself. Correct them, or leave them out of the file."
)
CHECKED = "rows or columns of totals, which equal the sums of the others"
UNCHECKED = "rows or columns of totals, unchecked"


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Rows of trips by their ids. PRIVATE.

    Attributes:
        origin: (n,) ids.
        destination: (n,) ids.
        trips: (n,) of each row, -1 where a row is to be left out.
    """

    origin: Ids
    destination: Ids
    trips: Integers = field(repr=False)

    def chosen(self, rows: Flags) -> Pairs:
        """Some of the rows."""
        origin, destination = (replace(ids, codes=ids.codes[rows]) for ids in (self.origin, self.destination))
        return Pairs(origin=origin, destination=destination, trips=self.trips[rows])


def are_totals(pairs: Pairs, sides: tuple[Regions, Regions]) -> tuple[Flags, Flags]:
    """(n,) whether each row's origin, and its destination, is a word for a total and no region."""
    origin, destination = pairs.origin, pairs.destination
    return _words(origin, sides[0])[origin.codes], _words(destination, sides[1])[destination.codes]


def _words(ids: Ids, side: Regions) -> Flags:
    words = total_words(ids.texts)
    words[:-1] &= side.find(ids.texts, side.depth) < 0
    return words


def total_words(texts: list[str]) -> Flags:
    """(k + 1,) whether each text is a word for a total; False at the end, for a missing one."""
    return np.array([*(folded(text) in TOTAL_WORDS for text in texts), False])


def check_totals(pairs: Pairs, from_total: Flags, to_total: Flags) -> None:
    """Refuse totals that are not the sums of the other rows.

    Raises:
        InputError: the total of an origin, of a destination or of all trips is another one.
    """
    single = ~(from_total | to_total)
    both = from_total & to_total
    origin, destination, count = pairs.origin.codes, pairs.destination.codes, pairs.trips
    good = (
        _agree(origin, destination, count, (single, to_total & ~from_total))
        and _agree(destination, origin, count, (single, from_total & ~to_total))
        and bool((count[both] == count[single].sum()).all())
    )
    if not good:
        raise InputError(_CONTRADICTION)


def _agree(key: Integers, word: Integers, count: Integers, parts: tuple[Flags, Flags]) -> bool:
    """Whether what the second part of the rows says for a key, by any word, is the sum of the first part's rows of that key."""
    single, total = parts
    size = int(key.max(initial=-1)) + 2
    actual = np.bincount(key[single], weights=count[single], minlength=size)
    width = int(word.max(initial=-1)) + 2
    said, place = np.unique(key[total] * width + word[total], return_inverse=True)
    return bool((np.bincount(place, weights=count[total], minlength=len(said)) == actual[said // width]).all())
