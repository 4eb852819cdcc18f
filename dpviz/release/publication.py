"""The curator's part of a manifest: texts, and what the ledger knows."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, fields
from typing import Literal

from dpviz.errors import SettingError
from dpviz.release.facts import SeriesPart, TruthSeen

LONGEST_TEXT = 20_000  # characters
_LAYOUT = "\n\t"  # the control characters that a text may have
_NUMBER = "(0|[1-9][0-9]{0,4299})(/[1-9][0-9]{0,4299})?"
_AMOUNT = re.compile(f"epsilon {_NUMBER}(, delta {_NUMBER})?|rho {_NUMBER}")
_URL = re.compile(r"https?://[^\s<>\"']+")
NOT_RECORDED: Literal["not recorded"] = "not recorded"
"""What a manifest says of looks at the truth where nothing records them, as in Python."""


@dataclass(frozen=True, kw_only=True)
class CuratorTexts:
    """The curator's texts on a release. PUBLIC: every word of them is published. They are escaped wherever they are shown.

    Attributes:
        name: name of the publication.
        curator: person or institution that is responsible for it.
        description: what was counted, when and how.
        region: where it was counted.
        intended_use: what the release is suited for.
        trust_model: who is trusted with the records; "" for dpviz's own, a curator who holds them all.
        budget_reason: why this epsilon, or this rho, was chosen.
        unit_in_words: whom or what the release protects, in words that a reader knows.
        licence: under which the release may be used, such as CC BY 4.0.
        contact: whom to ask, such as a mail address.
        url: where the release, or a page on it, can be found; begins with https:// or http://.
        citation: how to cite the release.
    """

    name: str
    curator: str
    description: str
    region: str
    intended_use: str
    trust_model: str = ""
    budget_reason: str = ""
    unit_in_words: str = ""
    licence: str = ""
    contact: str = ""
    url: str = ""
    citation: str = ""


@dataclass(frozen=True, kw_only=True)
class Publication(CuratorTexts):
    """The curator's part of a manifest: the texts of `CuratorTexts`, and what the ledger knows.

    Attributes:
        draws: the number of releases of this dataset in the ledger, this one included; at least 1.
        truth_seen: whether anyone looked at true counts while the settings were chosen: True, False, or "not recorded".
        dataset_spent: sum of all budgets spent on this dataset according to the ledger, this release included, as exact text such as
            "epsilon 3/10, delta 1/100000000" or "rho 1/2"; None if no ledger was kept.
        dataset_cap: the cap of the dataset's account, in the same form.
        persons_searched: whether distinct values of columns were counted, to find out which column says whose record a row is.
        series: the series to which the release belongs; spent and cap are then those of its period. None for no series.

    Raises:
        SettingError: name or curator is blank, or a value is of the wrong type, too long, or not printable.

    >>> Publication(
    ...     name="Walks", curator="A town", description="", region="A plane", intended_use="An example", draws=1, truth_seen=False
    ... ).curator
    'A town'
    """

    draws: int
    truth_seen: TruthSeen
    dataset_spent: str | None = None
    dataset_cap: str | None = None
    persons_searched: bool = False
    series: SeriesPart | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type == "str" or (item.type == "str | None" and value is not None):
                _check_text(item.name, value)
        for name in ("dataset_spent", "dataset_cap"):
            amount = getattr(self, name)
            if amount is not None and not _AMOUNT.fullmatch(amount):
                raise SettingError(f"The publication's {name} must be exact: epsilon 3/10, or epsilon 3/10, delta 1/100000000, or rho 1/2.")
        for name in ("name", "curator"):
            if not getattr(self, name).strip():
                raise SettingError(f"The publication's {name} must not be blank: readers must know what this is and whom to ask.")
        check_url(self.url)
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or self.draws < 1:
            raise SettingError("The publication's draws must be a whole number of at least 1, since this release counts, too.")
        if not isinstance(self.truth_seen, bool) and self.truth_seen != NOT_RECORDED:
            raise SettingError(f"The publication's truth_seen must be True, False or {NOT_RECORDED!r}.")
        if not isinstance(self.persons_searched, bool):
            raise SettingError("The publication's persons_searched must be True or False.")


def check_url(url: str) -> None:
    """Refuse an address that is none on the web; "" is allowed.

    Raises:
        SettingError: it does not begin with https:// or http://, or has spaces or signs that no address has.
    """
    if url and not _URL.fullmatch(url):
        raise SettingError("The publication's url must begin with https:// or http:// and have no spaces.")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise SettingError(f"The publication's {name} must be a text.")
    if len(value) > LONGEST_TEXT:
        raise SettingError(f"The publication's {name} is longer than {LONGEST_TEXT:,} characters.")
    if any(unicodedata.category(character) in ("Cc", "Cs") and character not in _LAYOUT for character in value):
        raise SettingError(f"The publication's {name} has a control character or a lone surrogate; write plain text.")
