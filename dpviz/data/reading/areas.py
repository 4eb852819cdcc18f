"""Read tables of ids of regions, with the records of each row: checked, and with the leaf region of each id."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpviz.arrays import Integers
from dpviz.data.cells import REMEDY
from dpviz.data.columns import PointColumns, find_column, resolve_columns
from dpviz.data.fingerprints import RowSum, sum_rows
from dpviz.data.reading.rules import ReadingRules
from dpviz.data.reading.safety import DEFAULT_LIMITS, Limits, Source
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.trips import block_ids, counts_in, open_rows, persons_in, read_named, read_through
from dpviz.data.roles import NOTHING_CHOSEN, Use, propose_areas
from dpviz.data.trips import leaf_indexes
from dpviz.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dpviz.data.bounding import People
    from dpviz.data.roles import PublicHeader
    from dpviz.space.regions import Regions


@dataclass(frozen=True, kw_only=True)
class AreasFile:
    """A description of a table of ids of regions, from which the curator chooses the columns. Not for release.

    Attributes:
        format: CSV, TSV or Parquet.
        columns: the columns' names as the file spells them.
        region: the only column whose name says that it holds ids of regions; None if there is none, or several.
        count: likewise for numbers of records; a proposal, which `read_areas` does not use by itself, and nor are the others.
        person: likewise for persons.
        use: what the header says of records in regions.
    """

    format: str
    columns: tuple[str, ...]
    region: str | None
    count: str | None
    person: str | None
    use: Use = field(compare=False)


def inspect_areas(
    source: Source,
    *,
    through: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    text_format: TextFormat = PLAIN_TEXT,
    chosen: Mapping[str, Any] = NOTHING_CHOSEN,
) -> AreasFile:
    r"""Describe a table of ids of regions. The result holds no entry of the file.

    Args:
        source: a path, or an open binary file with a `name`.
        through: whether to read the ids and counts of every row as well.
        limits: the most that the file may hold.
        text_format: the declared format of a text table.
        chosen: columns that are named, by role, as the file spells them; for count perhaps "none".

    Raises:
        InputError: the file is no table, cannot be opened or is too large; or a row has no id, or no whole number where a column's name
            says that it counts.

    >>> import io
    >>> upload = io.BytesIO(b"tract,visits,count\na,Mo,12\nb,Tu,3\n")
    >>> upload.name = "visits.csv"
    >>> found = inspect_areas(upload)
    >>> found.region, found.count
    ('tract', 'count')
    """
    opened = open_rows(source, limits, text_format=text_format)
    described = describe_areas(opened.format, opened.header, chosen)
    if through and described.region is not None:
        read_through(opened, [described.region], described.count, "records")
    return described


def describe_areas(kind: str, header: PublicHeader, chosen: Mapping[str, Any]) -> AreasFile:
    """Describe a table of ids of regions by its header alone."""
    use = propose_areas(header, chosen)
    roles: dict[str, Any] = {role: use.found.get(role) for role in ("region", "count", "person")}
    return AreasFile(format=kind, columns=header.names, **roles, use=use)


@dataclass(frozen=True, kw_only=True)
class AreaColumns:
    """Names of the columns of a table of ids of regions.

    Attributes:
        region: the column of ids of leaf regions.
        count: the column of records that a row stands for; None where each row is one record.
        person: the column that says who a row belongs to; None where the unit is one record.
    """

    region: str
    count: str | None = None
    person: str | None = None


@dataclass(frozen=True, kw_only=True)
class AreasRequest(ReadingRules):
    """How the rows of tables of ids of regions are read.

    Attributes:
        regions: the public regions.
        columns: the columns that the caller names.
    """

    regions: Regions
    columns: AreaColumns


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaRows:
    """Rows of records in leaf regions. PRIVATE.

    Attributes:
        leaf: (n,) indexes of leaves, OUTSIDE where no leaf has the id, BAD where the id is missing.
        count: (n,) records of each row, -1 where the count is bad; None where each row is one record.
        person: who each row belongs to; None where the unit is one record.
        ragged: number of further, bad lines.
        rows: of the rows of persons, by which the ledger recognises them; None without persons.
    """

    leaf: Integers = field(repr=False)
    count: Integers | None = field(default=None, repr=False)
    person: People | None = field(default=None, repr=False)
    ragged: int = field(default=0, repr=False)
    rows: RowSum | None = field(default=None, repr=False)


def resolve_area_columns(names: Sequence[str], wanted: AreaColumns) -> AreaColumns:
    """Return the wanted columns as the file spells them.

    Raises:
        InputError: no column or several have a wanted name; one column has two roles; the column of counts has the name of a survey
            weight.
    """
    region = find_column(names, wanted.region)
    others = resolve_columns(names, PointColumns(count=wanted.count, person=wanted.person), has_geometry=True)
    if region in (others.count, others.person):
        raise InputError("region, count and person must be different columns.")
    return AreaColumns(region=region, count=others.count, person=others.person)


def read_area_rows(source: Source, request: AreasRequest) -> AreaRows:
    """Read a table's rows as indexes of leaf regions; bad rows are refused, or marked to be dropped.

    Raises:
        InputError: as `read_areas`.
    """
    opened = open_rows(source, request.limits, quoted_newlines=request.quoted_newlines, text_format=request.text_format)
    columns = resolve_area_columns(opened.names, request.columns)
    cells, ragged = read_named(opened, (columns.region, columns.count, columns.person), request.bad_rows, columns.count)
    ids = block_ids(cells[columns.region], columns.region, request.regions)
    leaf = leaf_indexes(ids, request.regions, request.bad_rows)
    count = None if columns.count is None else counts_in(cells, columns.count, request.bad_rows, "records")
    person = persons_in(cells, columns.person, opened)
    if request.bad_rows == "refuse" and person is not None and (person.codes < 0).any():
        raise InputError(f"Column {columns.person!r} has a missing cell: every row must say whom it belongs to. {REMEDY}")
    rows = None if person is None else sum_rows([ids.words()], count, person)
    return AreaRows(leaf=leaf.astype("int64"), count=count, person=person, ragged=ragged, rows=rows)
