"""The two marks of private counts that a release must not be published from, and the refusal of them."""

from __future__ import annotations

from typing import Protocol

from dpviz.errors import InputError, RefusedError, check_choice

RECORDS, TRIPS = ("record",), ("trip", "record")
"""The words that declare each record, or each trip, as the protected unit."""
_NOT_STABLE = (
    "The data were read with quoted_newlines=True: one malformed row could then take thousands of others with it, which no budget covers."
    " Such counts are for studies. To publish, export the data as Parquet where they come from, and read them without quoted_newlines."
)
_NOT_DECLARED = (
    'A row may stand for any number here, and nothing says what is protected. Count again, with person="column" and contributions=m to'
    ' protect each person; or with unit="record" (of trips unit="trip") to protect a single one of the things that are counted. Then'
    " neither a row with all that it counts nor the person behind it is protected."
)


class Marked(Protocol):
    """Private counts, or the receipt of a release of them.

    Attributes:
        row_stable: whether each row decides only itself when the data are read.
        unit_declared: whether it was said what is protected, if a row may stand for more than one.
    """

    @property
    def row_stable(self) -> bool: ...  # noqa: D102

    @property
    def unit_declared(self) -> bool: ...  # noqa: D102


def declares_unit(unit: str | None, person: object, most: object = 1, *, words: tuple[str, ...] = RECORDS) -> bool:
    """Return whether the caller declares what is protected: each single one, or each person.

    Args:
        unit: one of `words`; None if it is left out.
        person: who a row belongs to; None without persons.
        most: the most of one person; above 1 without `person` it declares that nobody has more, which trips allow.
        words: what `unit` may be.

    Raises:
        InputError: another word, or `unit` beside persons or their bound.

    >>> declares_unit(None, None), declares_unit("record", None), declares_unit(None, "who")
    (False, True, True)
    """
    if unit is not None:
        check_choice(unit, words, "unit", InputError)
    by_person = person is not None or most != 1
    if unit is not None and by_person:
        raise InputError(
            f"unit={unit!r} says that each {unit} is protected by itself; a person column, or contributions above 1, that all of a"
            " person's are: leave one of the two out."
        )
    return unit is not None or by_person


def refuse_marked(marked: Marked) -> None:
    """Refuse counts, or a release of counts, that must not be published. Studies and simulations of them are allowed.

    Raises:
        RefusedError: one row could decide others, or it was not said what is protected; the text says what to do.
    """
    if not marked.row_stable:
        raise RefusedError(_NOT_STABLE)
    if not marked.unit_declared:
        raise RefusedError(_NOT_DECLARED)
