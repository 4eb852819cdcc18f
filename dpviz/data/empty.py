"""Refuse data of which no record is counted: their coordinates are nearly always of another CRS, or swapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpviz.errors import InputError

if TYPE_CHECKING:
    from dpviz.data.counts import Counts

_CHECK = "in the units of their CRS (degrees, or metres), is it the right CRS, are x and y swapped?"
NONE_IN_DOMAIN = f"No record lies in the domain: are the coordinates and the bounds both {_CHECK}"
NONE_IN_REGIONS = (
    "No record lies in a region of the finest level. If records have ids: is it the right column, and are they the regions of these data?"
    f" If they have coordinates: are these and the regions both {_CHECK}"
)
NONE_BETWEEN = "No trip runs between the regions: are these their ids, or for coordinates, is the CRS right, are x and y swapped?"


def refuse_none_inside(data: Counts) -> None:
    """Refuse data of which all records lie outside. Data without records pass.

    Raises:
        InputError: records were left out as outside, and none is inside; the text names the likeliest reason.
    """
    if data.outside and not data.count.any():
        raise InputError(data.none_inside)


def refuse_empty_data(data: Counts) -> None:
    """Refuse data without a single counted record, before anything is spent.

    An observer who sees whether a release appears learns from this only whether there is any record. A curator who must hide that, too,
    or expects data without records, declares `may_be_empty`, and this check is not made.

    Raises:
        InputError: there is no record; the text names the likeliest reason.
    """
    if data.count.any():
        return
    if not data.dropped:
        reason = "There is no record: do the files have rows after their headers?"
    elif data.outside < data.dropped:
        reason = "No record can be used: all are unreadable, or lie outside."
    else:
        reason = data.none_inside
    if data.during is not None and data.outside:
        reason = f"{reason} And is any of them of {data.during.name}, by the column {data.during.time!r}?"
    raise InputError(f"{reason} Nothing was spent. If data without records are right, pass may_be_empty=True.")
