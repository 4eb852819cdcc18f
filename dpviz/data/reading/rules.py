"""The declared rules by which rows of files are read, whatever they hold."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.data.cells import check_bad_rows
from dpviz.data.reading.safety import DEFAULT_LIMITS, Limits
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat


@dataclass(frozen=True, kw_only=True)
class ReadingRules:
    """How rows of files are read; requests for points, areas and trips add their columns.

    Attributes:
        bad_rows: "refuse" or "drop".
        limits: the most that a file may hold.
        quoted_newlines: whether entries of text tables may hold line ends.
        text_format: the declared format of text tables.

    Raises:
        InputError: another word for `bad_rows`.
    """

    bad_rows: str = "refuse"
    limits: Limits = DEFAULT_LIMITS
    quoted_newlines: bool = False
    text_format: TextFormat = PLAIN_TEXT

    def __post_init__(self) -> None:
        check_bad_rows(self.bad_rows)
