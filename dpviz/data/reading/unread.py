"""Find the columns of files that are not read and may hold the number of records of a row, by names and declared types alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpviz.data.library_errors import or_none
from dpviz.data.reading.formats import declares_columns
from dpviz.data.reading.points import header_of
from dpviz.data.reading.trips import is_matrix, resolve_trip_columns
from dpviz.data.roles import EachRow, each_row_of, fold_name, unread_columns

if TYPE_CHECKING:
    from collections.abc import Collection

    from dpviz.data.columns import PointColumns
    from dpviz.data.reading.areas import AreaColumns
    from dpviz.data.reading.points import PointsRequest
    from dpviz.data.reading.sources import FoundFiles
    from dpviz.data.reading.trips import TripColumns, TripsRequest

RECORD, TRIP = "record", "trip"


def unread_in_points(files: FoundFiles, request: PointsRequest) -> EachRow | None:
    """Return what is to be said of files of points that were read; None if a column of counts is named, or is said not to be there."""
    if request.columns.count is not None:
        return None
    header, columns = header_of(files, request)
    unread = unread_columns(header, {*columns.coordinates, str(columns.person)})
    return each_row_of(RECORD, unread, declared=declares_columns(files.format))


def unread_in_trips(files: FoundFiles, request: TripsRequest) -> EachRow | None:
    """Return the same of tables of trips between ids; a matrix has no other columns."""
    names = files.header(None).names
    if request.columns.count is not None or or_none(lambda: is_matrix(names, request.columns, request.sides)) is not False:
        return None  # the index of pandas, which is stored last, may make the header of a matrix look wrong here
    columns = resolve_trip_columns(names, request.columns)
    return unread_beside(files, TRIP, (str(columns.origin), str(columns.destination)), columns)


def unread_beside(
    files: FoundFiles, noun: str, places: Collection[str], columns: AreaColumns | PointColumns | TripColumns
) -> EachRow | None:
    """Return the same of tables in which `places` say where: one column of ids, or the coordinates of origins and destinations."""
    if columns.count is not None:
        return None
    header = files.header(None)
    folded = {fold_name(name) for name in (*places, str(columns.person))}
    return each_row_of(noun, unread_columns(header, [name for name in header.names if fold_name(name) in folded]))
