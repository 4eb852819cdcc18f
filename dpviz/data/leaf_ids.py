"""The leaf region of each id: the one with exactly this id, else one whose id has the same plain form.

Plain forms depend on the public regions alone, and each id is looked up by itself, so that no row decides on another one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from dpviz.amounts import LONGEST_NUMBER
from dpviz.arrays import Integers, Places

if TYPE_CHECKING:
    from dpviz.space.regions import Regions

BLOCK_CODE = 15
COMPARED = "ids are compared letter by letter (lost zeros in front are put back where all ids are digits of one length)"
_WHOLE, _H3 = re.compile(r"([0-9]+)(\.0+)?"), re.compile("8[0-9a-f]{14}")

Find: TypeAlias = Callable[[Sequence[str]], Any]


def cut_block_code(text: str, length: int | None) -> str:
    """Return a Census block code cut to a length, with the zero in front that it may have lost; any other text as it is.

    >>> cut_block_code("360010001001000", 5), cut_block_code("10010201001000", 5), cut_block_code("36001", 5)
    ('36001', '01001', '36001')
    """
    if length is None:
        return text
    if length < BLOCK_CODE - 1 == len(text) and text.isascii() and text.isdigit():
        text = f"0{text}"
    return text[:length] if len(text) == BLOCK_CODE else text


def bare_id(text: str) -> str:
    """Return an id without what may differ between two writings of it, whatever the regions are; the ledger recognises rows by that.

    It is in Unicode's NFC, without blanks around it, a number without zeros in front and decimals of zeros, and a cell of H3 a number.

    >>> bare_id(" 01001"), bare_id("1001.0"), bare_id("8a2a1072b59ffff"), bare_id("A01")
    ('1001', '1001', '622236750694711295', 'A01')
    """
    text = unicodedata.normalize("NFC", text.strip())
    if (number := _WHOLE.fullmatch(text)) is not None:
        return number[1].lstrip("0")
    return str(int(text, 16)) if _H3.fullmatch(text) else text


def find_leaves(texts: Sequence[str], side: Regions) -> Places:
    """Return (k,) indexes of the leaf regions with k ids, as `LeafIds` says; -1 where there is none."""
    forms = lambda: PlainForms(ids=tuple(side.ids_of(side.depth).tolist()))  # noqa: E731  (few files have ids that need them)
    return np.asarray(_find(texts, lambda ids: side.find(ids, side.depth), forms), np.int32)


def _find(texts: Sequence[str], exact: Find, forms: Callable[[], PlainForms]) -> Any:
    leaves = exact(texts)
    if (unknown := np.flatnonzero(leaves < 0)).size:
        leaves[unknown] = exact([texts[index].strip() for index in unknown.tolist()])
    if (unknown := np.flatnonzero(leaves < 0)).size:
        leaves[unknown] = forms().find([texts[index] for index in unknown.tolist()], exact)
    return leaves


@dataclass(frozen=True, kw_only=True)
class PlainForms:
    """The plain forms of leaves' ids. A form that two leaves have stands for neither of them.

    A form is a text in Unicode's NFC, without blanks around it, and a whole number without decimals of zeros. If all ids are digits of one
    length, a number has zeros in front up to it. If all ids are cells of H3, a number is written in hexadecimal digits.

    Attributes:
        ids: (leaves,) the ids.
    """

    ids: tuple[str, ...] = field(repr=False)

    def find(self, texts: Sequence[str], exact: Find) -> Any:
        """Return (k,) indexes of the leaves whose ids have the same forms as k texts; -1 where none or several have.

        Args:
            texts: ids that no leaf has.
            exact: finds the leaves with exactly some ids.
        """
        forms = [self.form(text) for text in texts]
        if self._are_cells or self._digits is not None:  # then ids are their own forms
            return exact(forms)
        index, leaves = self._leaf_of_form
        return np.append(leaves, -1)[index.get_indexer(pd.Index(forms, dtype=object))]

    def form(self, text: str) -> str:
        """Return the plain form of an id; a text that is too long is its own, since NFC takes time by the square of its accents."""
        if len(text) > LONGEST_NUMBER:
            return text
        text = unicodedata.normalize("NFC", text.strip())
        number = _WHOLE.fullmatch(text)
        if number is None:
            return text
        if self._are_cells:
            return format(int(number[1]), "x") if len(number[1]) <= 20 else text
        return number[1].zfill(self._digits or 0)

    @cached_property
    def _digits(self) -> int | None:
        """The length of the ids, if all are digits of one length."""
        lengths = {len(text) if text.isascii() and text.isdigit() else -1 for text in self.ids}
        return lengths.pop() if len(lengths) == 1 and -1 not in lengths else None

    @cached_property
    def _are_cells(self) -> bool:
        return all(map(_H3.fullmatch, self.ids))

    @cached_property
    def _leaf_of_form(self) -> tuple[pd.Index[Any], Places]:
        forms = pd.Index([self.form(text) for text in self.ids], dtype=object)
        single = ~forms.duplicated(keep=False)
        return forms[single], np.flatnonzero(single).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class LeafIds:
    """Ids of leaf regions. An id is looked up as it is written, then without the blanks around it, then by its plain form.

    Attributes:
        texts: (leaves,) the ids, in the order of the leaf regions.
        cut: length to which Census block codes are cut first; None where they are not cut.
    """

    texts: tuple[str, ...] = field(repr=False)
    cut: int | None = None

    @classmethod
    def from_regions(cls, regions: Regions, cut: int | None = None) -> LeafIds:
        """Return the ids of a hierarchy's finest level."""
        return cls(texts=tuple(regions.ids_of(regions.depth).tolist()), cut=cut)

    def find(self, texts: Sequence[str]) -> Integers:
        """Return (k,) indexes of the leaves with k ids; -1 where there is none."""
        codes = [cut_block_code(text, self.cut) for text in texts]
        return np.asarray(_find(codes, self._exact, lambda: self._forms), np.int64)

    def _exact(self, ids: Sequence[str]) -> Any:
        return self._index.get_indexer(pd.Index(ids, dtype=object))

    @cached_property
    def _forms(self) -> PlainForms:
        return PlainForms(ids=self.texts)

    @cached_property
    def _index(self) -> pd.Index[Any]:
        return pd.Index(self.texts, dtype=object)
