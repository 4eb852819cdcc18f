"""Count how many of the ids in private data are those of public regions, as they are written or after which rewriting. CURATOR ONLY."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dpviz.data.reading.safety import DEFAULT_LIMITS
from dpviz.data.reading.trips import open_rows, read_named
from dpviz.data.trips import ids_of

if TYPE_CHECKING:
    from dpviz.data.reading.safety import Source
    from dpviz.data.reading.text_format import TextFormat
    from dpviz.space.regions import Regions

EXACT, NO_REGION = "as they are written", "no region"
_DECIMAL = re.compile(r"\d+\.\d*0", re.ASCII)
_WHOLE = re.compile(r"(\d+)\.0+", re.ASCII)


def read_ids(source: Source, columns: Sequence[str], text_format: TextFormat) -> list[str]:
    """Read the distinct ids of some columns of a table. PRIVATE.

    Raises:
        InputError: the file cannot be opened, or a column holds lists or records.
    """
    opened = open_rows(source, DEFAULT_LIMITS, text_format=text_format)
    read, _ = read_named(opened, columns, "drop", None)
    return sorted({text for cells in read.values() for text in ids_of(cells, "").texts if text.strip()})


def count_id_fits(ids: Sequence[str], regions: Regions) -> dict[str, int]:
    """Count how many distinct ids are those of leaf regions, by the first rewriting after which they are.

    Args:
        ids: distinct ids of private data.
        regions: the public regions.

    Returns:
        Numbers of ids: as they are written, after each rewriting that helps, and of no region. PRIVATE.

    >>> import pandas as pd
    >>> from dpviz.space.regions import Regions
    >>> counties = Regions.from_table(pd.DataFrame({"county": ["01001", "06037"]}), levels=["county"])
    >>> count_id_fits(["01001", "6037", "1001.0", "Oz"], counties)
    {'as they are written': 1, 'with leading zeros': 1, '1 for 1.0, with leading zeros': 1, 'no region': 1}
    >>> docks = Regions.from_table(pd.DataFrame({"dock": ["5379.10", "6140.05"]}), levels=["dock"])
    >>> count_id_fits(["5379.1", "6140.05"], docks)
    {'as they are written': 1, 'with zeros at the end': 1}
    """
    leaves = list(map(str, regions.ids_of(regions.depth)))
    rewritings, left = _rewritings(leaves), list(ids)
    known, fits = set(leaves), {}
    composed = {unicodedata.normalize("NFC", leaf) for leaf in leaves}
    for name, rewrite in rewritings.items():
        rest = [text for text in left if rewrite(text) not in (composed if name == _UNICODE else known)]
        fits[name], left = len(left) - len(rest), rest
    return {name: number for name, number in {**fits, NO_REGION: len(left)}.items() if number}


_UNICODE = "with accents as one letter each (Unicode NFC)"


def _rewritings(leaves: Sequence[str]) -> dict[str, Callable[[str], str]]:
    """Return what could make an id of private data that of a leaf, in the order in which it is tried. It depends on the leaves alone."""
    lengths = {len(leaf) for leaf in leaves}
    are_digits = len(lengths) == 1 and all(leaf.isascii() and leaf.isdecimal() for leaf in leaves)
    length = lengths.pop() if are_digits else 0
    whole = {"1 for 1.0": _as_whole}
    if are_digits:
        whole = {"with leading zeros": lambda text: _padded(text, length), **whole}
        whole["1 for 1.0, with leading zeros"] = lambda text: _padded(_as_whole(text), length)
    return {
        EXACT: lambda text: text,
        "without blanks around them": str.strip,
        _UNICODE: lambda text: unicodedata.normalize("NFC", text.strip()),
        **whole,
        "with zeros at the end": _zeros_at_the_end(leaves),
        "as hexadecimal numbers (H3)": _as_hexadecimal,
    }


def _zeros_at_the_end(leaves: Sequence[str]) -> Callable[[str], str]:
    """Return what puts back the zeros that a number such as 5379.10 loses behind its point."""
    forms = Counter(leaf.rstrip("0").rstrip(".") for leaf in leaves if _DECIMAL.fullmatch(leaf))
    leaf_of = {form: leaf for leaf in leaves if forms[form := leaf.rstrip("0").rstrip(".")] == 1}
    return lambda text: leaf_of.get(text.strip(), text)


def _as_whole(text: str) -> str:
    match = _WHOLE.fullmatch(text.strip())
    return match[1] if match else text


def _padded(text: str, length: int) -> str:
    return text.strip().zfill(length) if text.strip().isdecimal() else text


def _as_hexadecimal(text: str) -> str:
    digits = _as_whole(text).strip()
    return f"{int(digits):x}" if digits.isascii() and digits.isdecimal() and len(digits) < 21 else text
