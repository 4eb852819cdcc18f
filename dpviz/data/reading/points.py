"""Read files of points: describe them by their headers, and read their rows, checked and in the domain's CRS."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyproj import CRS

from dpviz.arrays import Floats, Integers
from dpviz.data.cells import REMEDY, whole_counts
from dpviz.data.columns import (
    DECLARE_MARKS,
    WEIGHTS_REFUSED,
    OpenFile,
    PointColumns,
    RawPoints,
    UnusableFileError,
    is_number_text,
    resolve_columns,
)
from dpviz.data.fingerprints import sum_rows
from dpviz.data.library_errors import without_private_text
from dpviz.data.reading.formats import declares_columns
from dpviz.data.reading.geometries import check_on_map, crs_of_file, open_format, reproject
from dpviz.data.reading.memory_tables import TableUpload
from dpviz.data.reading.rules import ReadingRules
from dpviz.data.reading.safety import DEFAULT_LIMITS, Limits, Source, read_checked
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.text_rows import SEPARATORS
from dpviz.data.roles import (
    AXES,
    NOTHING_CHOSEN,
    DescribedFile,
    Use,
    find_one_axis,
    find_times,
    find_wkt,
    in_degrees,
    only,
    propose_points,
    says_none,
)
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpviz.data.reading.sources import FoundFiles
    from dpviz.data.roles import PublicHeader


@dataclass(frozen=True, kw_only=True)
class PointsFile(DescribedFile):
    """A description of a file of points, from which the curator chooses columns and CRS.

    Attributes:
        has_geometry: whether the points are geometries; x and y are None then.
        x: the column of eastings or longitudes, of the only pair of columns whose names say so; None if there is none, or several.
        y: the column of northings or latitudes of that pair.
        crs: the CRS that the file declares; None if it declares none.
        geometry: the only column of a table whose name says that it may hold points in WKT; a proposal, which `read_points` does not use
            by itself.
        times: the columns that may hold times, by their types or names; proposals.
        use: what the header says of points.
    """

    has_geometry: bool
    x: str | None
    y: str | None
    crs: str | None
    geometry: str | None = None
    times: tuple[str, ...] = ()
    use: Use = field(default=Use(kind="points", found={}), compare=False)

    @property
    def needs_crs(self) -> bool:
        """Whether `read_points` needs a CRS, if the domain has one."""
        return self.crs is None


def inspect_points(
    source: Source,
    *,
    through: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    text_format: TextFormat = PLAIN_TEXT,
    geometry: str | None = None,
    centroids: bool = False,
    chosen: Mapping[str, Any] = NOTHING_CHOSEN,
) -> PointsFile:
    r"""Describe a file of points. The result holds no entry of the file.

    Args:
        source: a path, or an open binary file with a `name`.
        through: whether to read every row as well, if the columns of coordinates are clear from their names, and to refuse rows that
            `read_points` refuses under bad_rows="refuse".
        limits: the most that the file may hold.
        text_format: the declared format of a text table.
        geometry: the declared column of points in WKT, if `through` is to read it.
        centroids: whether polygons are declared to be read as their centroids.
        chosen: columns that are named, by role, as the file spells them; for count perhaps "none". And "crs", that of the coordinates.

    Raises:
        InputError: the file cannot be opened, is too large, starts with data where column names belong, or has a bad row.

    >>> import io
    >>> upload = io.BytesIO(b"who,lon,lat,taken\na,4.9,52.4,May\nb,4.8,52.3,June\n")
    >>> upload.name = "walks.csv"
    >>> found = inspect_points(upload, through=True)
    >>> found.format, found.columns, (found.x, found.y)
    ('CSV', ('who', 'lon', 'lat', 'taken'), ('lon', 'lat'))
    >>> found.needs_crs
    True
    """
    named = PointColumns(x=chosen.get("x"), y=chosen.get("y"), geometry=geometry or chosen.get("geometry"))
    request = PointsRequest(target=None, columns=named, limits=limits, text_format=text_format, centroids=centroids)
    opened = _open_source(source, request)
    described = describe_header(opened.format, opened.header, opened.crs, opened.rows, chosen)
    if through and (opened.has_geometry or named.geometry is not None or (described.x is not None and described.y is not None)):
        columns = PointColumns(x=described.x, y=described.y) if named.geometry is None else named
        columns = replace(columns, count=described.count)  # whose bad cells a release would leave out
        if opened.has_geometry and columns.count is not None:  # of features, only columns that are asked for are kept
            opened = _open_source(source, replace(request, columns=columns))
        columns = resolve_columns(opened.names, columns, has_geometry=opened.has_geometry)
        declared = opened.crs if opened.crs is not None or chosen.get("crs") is None else CRS.from_user_input(chosen["crs"])
        crs = None if declared is None else check_on_map(declared)
        raw = _read_rows(opened, columns, "refuse", limits)
        _refuse_faults(raw, columns, crs)
    return described


def describe_header(kind: str, header: PublicHeader, crs: CRS | None, rows: int | None, chosen: Mapping[str, Any]) -> PointsFile:
    """Describe a file of points by its header alone.

    Raises:
        InputError: numbers stand in place of the names of columns.
    """
    use = propose_points(header, chosen)
    found = use.found if header.has_geometry or set(AXES) & set(use.found) else {**find_one_axis(header.names), **use.found}
    x, y = found.get("x"), found.get("y")
    if kind in SEPARATORS and any(map(is_number_text, header.names)) and x is None and y is None:
        raise InputError("The first line must hold the names of the columns; this one holds numbers.")
    return PointsFile(
        format=kind,
        columns=header.names,
        has_geometry=header.has_geometry,
        x=x,
        y=y,
        count=use.found.get("count"),
        person=use.found.get("person"),
        crs=None if crs is None else crs.to_string(),
        rows=rows,
        geometry=None if header.has_geometry else use.found.get("geometry") or only(find_wkt(header)),
        times=find_times(header),
        use=use,
    )


@dataclass(frozen=True, kw_only=True)
class PointsRequest(ReadingRules):
    """How the rows of files of points are read.

    Attributes:
        target: the CRS to which coordinates are reprojected; None if the domain has no CRS, so that they are used as they are.
        columns: the columns that the caller names; x and y are found by their names if they are None.
        crs: the CRS of the files' coordinates, if the files do not state it.
        centroids: whether polygons are read as their centroids.
    """

    target: object
    columns: PointColumns
    crs: object = None
    centroids: bool = False


def read_rows(source: Source, request: PointsRequest) -> RawPoints:
    """Read a file's rows, with coordinates in the target CRS. Bad rows are refused, or kept as they are, to be dropped later.

    Raises:
        InputError: as `read_points`.
    """
    opened = _open_source(source, request)
    wanted = request.columns if declares_columns(opened.format) else _without_none(request.columns)
    is_file = not isinstance(source, TableUpload)
    columns = resolve_columns(opened.names, wanted, has_geometry=opened.has_geometry, is_file=is_file, types=opened.types)
    crs = crs_of_file(f"{opened.format} file" if is_file else "table", opened.crs, request.crs, request.target)
    raw = _read_rows(opened, columns, request.bad_rows, request.limits)
    if raw.count is not None and np.isfinite(raw.count).any() and not (raw.count == np.floor(raw.count)).any():  # weights, or no counts
        raise UnusableFileError(f"Column {columns.count!r} holds no whole number. {WEIGHTS_REFUSED}", len(raw.x) + raw.ragged)
    if request.bad_rows == "refuse":
        _refuse_faults(raw, columns, crs)
    east, north = reproject(raw, crs, request.target)
    rows = None if raw.person is None else sum_rows((raw.x, raw.y), weights_of(raw), raw.person)  # coordinates are in the file's CRS
    return replace(raw, x=east, y=north, rows=rows)


def weights_of(raw: RawPoints) -> Integers | None:
    """Return (n,) records of each row, -1 where the count is bad; None where each row is one record."""
    return None if raw.count is None else whole_counts(raw.count, len(raw.x), "drop")


def header_of(files: FoundFiles, request: PointsRequest) -> tuple[PublicHeader, PointColumns]:
    """Return the header of files of points without a column of counts, and the columns that are read; of tables no row is read again.

    Raises:
        InputError: as `read_points`.
    """
    if files.schema is None:
        header = _open_source(files.sources[0], request).header
    else:
        header = files.header(None if request.columns.coordinates else files.geo)
    return header, resolve_columns(header.names, request.columns, has_geometry=header.has_geometry, types=header.types)


def _without_none(columns: PointColumns) -> PointColumns:
    """Return the columns without count="none": features of GeoJSON have names of their own, and a single one must not make it unclear."""
    return replace(columns, count=None) if says_none(columns.count) else columns


def _open_source(source: Source, request: PointsRequest) -> OpenFile:
    kind, data = read_checked(source, request.limits)
    return open_format(
        kind,
        data,
        request.limits,
        _without_none(request.columns),
        quoted_newlines=request.quoted_newlines,
        text_format=request.text_format,
        centroids=request.centroids,
    )


def _read_rows(opened: OpenFile, columns: PointColumns, bad_rows: str, limits: Limits) -> RawPoints:
    raw = without_private_text(f"The rows cannot be read as {opened.format}: the file is damaged.", lambda: opened.take(columns, bad_rows))
    limits.check(rows=len(raw.x) + raw.ragged)
    return raw


def _refuse_faults(raw: RawPoints, columns: PointColumns, crs: CRS | None) -> None:
    """Refuse bad rows, and coordinates that seem to be swapped, or metres where degrees are declared."""
    beyond, far = np.abs(raw.y) > 90, np.abs(raw.x) > 90
    if crs is not None and crs.is_geographic and 2 * beyond.sum() >= len(beyond) > 0 and not far.any():
        raise InputError("Half of the latitudes lie beyond the poles, while no longitude is that large: are x and y swapped?")
    _refuse_metres_as_degrees(raw, columns, crs)
    _refuse_bad_rows(raw, columns)
    _refuse_beyond_poles(raw, columns, crs)


def _refuse_bad_rows(raw: RawPoints, columns: PointColumns) -> None:
    if raw.has_other_shapes:
        raise InputError(f"Some geometries are not points. {REMEDY}")
    if raw.count is not None:
        _refuse_bad_counts(raw.count, columns.count)
    if raw.person is not None and (raw.person.codes < 0).any():
        raise InputError(f"Column {columns.person!r} has a missing cell: every row must say whom it belongs to. {REMEDY}")
    for values, axis in ((raw.x, columns.x), (raw.y, columns.y)):
        if not (known := np.isfinite(values)).all():
            fault = "A geometry is missing, empty or not finite."
            if axis is not None:
                fault = f"Column {axis!r} has a cell that is no finite number."
            elif columns.geometry is not None:
                fault = f"Column {columns.geometry!r} has a cell that is no point in WKT, such as POINT (13.4 52.5)."
            raise InputError(f"{fault} {REMEDY}", only_rows=bool(known.any()))


def _refuse_bad_counts(counts: Floats, name: str | None) -> None:
    if not np.isfinite(counts).all():
        raise InputError(f"Column {name!r} has a cell that is no finite number. {DECLARE_MARKS} {REMEDY}")
    if (counts != np.floor(counts)).any():
        raise InputError(f"Column {name!r} has a cell that is not a whole number. {WEIGHTS_REFUSED}")
    if (counts < 0).any():
        raise InputError(f"Column {name!r} has a negative count. {REMEDY}")


def _refuse_metres_as_degrees(raw: RawPoints, columns: PointColumns, crs: CRS | None) -> None:
    """Refuse coordinates that should be degrees, by their CRS or their columns' names, if not a single pair can be degrees."""
    are_degrees = crs.is_geographic if crs is not None else in_degrees(columns.x or "")
    known = np.isfinite(raw.x) & np.isfinite(raw.y)
    if are_degrees and known.any() and not ((np.abs(raw.x) <= 180) & (np.abs(raw.y) <= 90)).any():
        raise InputError(
            "The CRS or the columns' names say longitude and latitude in degrees, but no row has such a pair: are the coordinates metres"
            " of a projected CRS?"
        )


def _refuse_beyond_poles(raw: RawPoints, columns: PointColumns, crs: CRS | None) -> None:
    """Refuse rows with latitudes beyond the poles; some systems write 91 where none is known."""
    if crs is None or not crs.is_geographic or not (np.abs(raw.y) > 90).any() or (np.abs(raw.x) > 180).all():
        return
    name = "A geometry" if columns.y is None else f"Column {columns.y!r}"
    text = f"{name} has a latitude beyond the poles; some systems write 91 where none is known. {REMEDY}"
    raise InputError(text, only_rows=True)
