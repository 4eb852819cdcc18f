"""How the fields of a page say what becomes of them: whether a link may carry them, and whether undo leaves them as they are.

A field that says nothing is never in an address: data, paths, columns, texts and accounts stay in the session.

>>> from dataclasses import dataclass
>>> from dpviz.app.state.kinds import AREAS
>>> from dpviz.app.state.readers import flag_reader
>>> @dataclass(frozen=True, kw_only=True)
... class Looks:
...     large: bool = field(default=False, metadata=in_link(flag_reader) | STAYS)
...     notes: str = ""
>>> list(linked_fields(Looks, AREAS)), names_that_stay(Looks)
(['large'], frozenset({'large'}))
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from dpviz.app.state.kinds import PageKind
from dpviz.app.state.readers import Reader, shortest

_LINK, _PARTS, _STAYS = "link", "parts", "stays"
STAYS: dict[str, Any] = {_STAYS: True}
"""Metadata of a field that stays as it is when undo takes another change back, such as the camera."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a link that carries one field.

    Attributes:
        name: of the parameter; "" for the name of the field.
        reader: returns the reader of its text, for the page of a kind.
        of: names of the families whose pages have it; () for all.
    """

    name: str = ""
    reader: Callable[[PageKind], Reader] = field(repr=False)
    of: tuple[str, ...] = ()


def in_link(read: Reader, name: str = "", *, of: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the metadata of a field that is a parameter of links.

    Args:
        read: reads the text of the parameter.
        name: of the parameter; "" for the name of the field.
        of: names of the families whose pages have it; () for all.
    """
    return {_LINK: Parameter(name=name, reader=lambda _: read, of=of)}


def in_link_of(reader: Callable[[PageKind], Reader], *, of: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the metadata of a field that is a parameter of links whose values differ between the pages; `of` is as for `in_link`."""
    return {_LINK: Parameter(reader=reader, of=of)}


def in_parts(*names: str) -> dict[str, Any]:
    """Return the metadata of a field that links carry by several parameters, or another one on each page: `links` writes and reads them."""
    return {_PARTS: names}


def linked_fields(holder: type[Any], page: PageKind) -> dict[str, Parameter]:
    """List the fields of a class that are one parameter each of the links of a page, with the parameter."""
    links = {item.name: item.metadata[_LINK] for item in fields(holder) if _LINK in item.metadata}
    return {name: link for name, link in links.items() if not link.of or page.name in link.of}


def readers_of(holder: type[Any]) -> dict[str, Reader]:
    """Return the reader of each field of a class whose links are those of one page, by `in_link`."""
    return {item.name: item.metadata[_LINK].reader(None) for item in fields(holder) if _LINK in item.metadata}


def never_in_link(holder: type[Any]) -> frozenset[str]:
    """Return the names of the fields that no link may carry."""
    return frozenset(item.name for item in fields(holder) if _LINK not in item.metadata and _PARTS not in item.metadata)


def names_that_stay(holder: type[Any]) -> frozenset[str]:
    """Return the names of the fields that undo leaves as they are."""
    return frozenset(item.name for item in fields(holder) if _STAYS in item.metadata)


def write_text(value: Any) -> str:
    """Write the value of a field as a parameter of a link.

    >>> write_text(Fraction(1, 10)), write_text((1, 2)), write_text(None)
    ('0.1', '[1,2]', 'None')
    """
    if isinstance(value, Fraction):
        return str(shortest(value))
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict | tuple) else str(value)
