"""Describe tables of ids of regions by their headers. Their rows are read as those of trips are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpviz.data.reading.safety import DEFAULT_LIMITS, Source
from dpviz.data.reading.text_format import PLAIN_TEXT, TextFormat
from dpviz.data.reading.trips import open_rows, read_through
from dpviz.data.roles import NOTHING_CHOSEN, DescribedFile, Use, propose_areas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpviz.data.roles import PublicHeader


@dataclass(frozen=True, kw_only=True)
class AreasFile(DescribedFile):
    """A description of a table of ids of regions, from which the curator chooses the columns.

    Attributes:
        region: the only column whose name says that it holds ids of regions; None if there is none, or several.
        use: what the header says of records in regions.
    """

    region: str | None
    use: Use = field(compare=False)


def inspect_areas(
    source: Source,
    *,
    through: bool = True,
    text_format: TextFormat = PLAIN_TEXT,
    chosen: Mapping[str, Any] = NOTHING_CHOSEN,
) -> AreasFile:
    r"""Describe a table of ids of regions. The result holds no entry of the file.

    Args:
        source: a path, or an open binary file with a `name`.
        through: whether to read the ids and counts of every row as well.
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
    opened = open_rows(source, DEFAULT_LIMITS, text_format=text_format)
    described = describe_areas(opened.format, opened.header, chosen)
    if through and described.region is not None:
        read_through(opened, [described.region], described.count, "records")
    return described


def describe_areas(kind: str, header: PublicHeader, chosen: Mapping[str, Any]) -> AreasFile:
    """Describe a table of ids of regions by its header alone."""
    use = propose_areas(header, chosen)
    roles: dict[str, Any] = {role: use.found.get(role) for role in ("region", "count", "person")}
    return AreasFile(format=kind, columns=header.names, **roles, use=use)
