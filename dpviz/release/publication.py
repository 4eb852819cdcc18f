"""What only the curator can say about a release: texts, and what happened before it was published."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, fields

from dpviz.errors import SettingError

LONGEST_TEXT = 20_000
_LAYOUT = "\n\t"
_NUMBER = "(0|[1-9][0-9]{0,4299})(/[1-9][0-9]{0,4299})?"
_AMOUNT = re.compile(f"epsilon {_NUMBER}(, delta {_NUMBER})?|rho {_NUMBER}")


@dataclass(frozen=True, kw_only=True)
class Publication:
    """The curator's part of a manifest. PUBLIC: every word of it is published; it is escaped wherever it is shown.

    Attributes:
        name: of the data product.
        curator: who answers for it.
        description: what was counted, when and how it was collected; "" if nothing is to be said.
        region: the part of the world that it covers, in words.
        intended_use: what it was made for, and what not.
        draws: how many draws on this dataset its ledger counts, this one included; at least 1.
        truth_seen: whether anybody looked at true counts beside noisy ones while the settings were chosen.
        dataset_spent: what the dataset's ledger has spent in all, this draw included, in exact numbers such as "epsilon 3/10,
            delta 1/100000000" or "rho 1/2"; None where no ledger was kept.
        dataset_cap: the most that its ledger lets be spent, likewise.

    Raises:
        SettingError: name or curator is blank, or something is not of its kind, too long, or not printable.
    """

    name: str
    curator: str
    description: str
    region: str
    intended_use: str
    draws: int
    truth_seen: bool
    dataset_spent: str | None = None
    dataset_cap: str | None = None

    def __post_init__(self) -> None:
        for declared in fields(self):
            value = getattr(self, declared.name)
            if declared.type == "str" or (declared.type == "str | None" and value is not None):
                _check_text(declared.name, value)
        for name in ("dataset_spent", "dataset_cap"):
            _check_amount(name, getattr(self, name))
        for name in ("name", "curator"):
            if not getattr(self, name).strip():
                raise SettingError(f"The publication's {name} must not be blank: readers must know what this is and whom to ask.")
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or self.draws < 1:
            raise SettingError("The publication's draws must be a whole number of at least 1: the release itself is a draw.")
        if not isinstance(self.truth_seen, bool):
            raise SettingError("The publication's truth_seen must be True or False: it is a declaration.")


def _check_amount(name: str, text: str | None) -> None:
    if text is not None and not _AMOUNT.fullmatch(text):
        raise SettingError(f"The publication's {name} must be exact: epsilon 3/10, or epsilon 3/10, delta 1/100000000, or rho 1/2.")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise SettingError(f"The publication's {name} must be a text.")
    if len(value) > LONGEST_TEXT:
        raise SettingError(f"The publication's {name} is longer than {LONGEST_TEXT:,} characters.")
    if any(unicodedata.category(character) in ("Cc", "Cs") and character not in _LAYOUT for character in value):
        raise SettingError(f"The publication's {name} has a control character, or half of one; write plain text.")
