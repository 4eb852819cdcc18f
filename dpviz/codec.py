"""One codec of dataclasses, for TOML and JSON: a dataclass declares the keys of a table, and so how it is read, written and described.

A *table* is a dictionary of plain values, as TOML and JSON hold it. The annotations of a dataclass say what its keys may hold:

| annotation | values in a table |
|---|---|
| `str`, `int`, `float`, `bool` | one value of this type; a whole number is a `float`, too, and numbers are finite |
| `Literal["a", "b"]` | one of these |
| `tuple[X, ...]`, `tuple[X, X]` | a list, of any length or of this one; its entries are of one kind |
| `dict[str, X]` | a table with any keys |
| a dataclass | a table with its keys |
| `X | None` | with the default None: X, and the key may be left out; without a default: X or null, and the key must be there |
| `str | tuple[str, ...]` | one text, or a list of them |
| a union of dataclasses | the one that the table names by its mark |
| `Annotated[X, Limit("minimum", 1)]` | X within limits |
| a type in `Codec.scalars`, dataclasses among them | as that says |

Fields that are not compared (`compare=False`) are no keys. A key with a default may be left out, and is not written where its value is the
default. The exception is a *mark*: a `Literal` of one value, which is also the default. It is always written and must be there. A JSON
Schema takes its descriptions from the docstrings: what stands before the section *Attributes* for the table, and that section for its keys.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Square:
...     '''A square.
...
...     Attributes:
...         side: its length, in cells.
...         name: what it is called.
...     '''
...
...     side: Annotated[int, Limit("minimum", 1)]
...     name: str = ""
...     shape: Literal["square"] = "square"
>>> codec = Codec()
>>> square = codec.read(Square, {"side": 3, "shape": "square"}, "[square]")
>>> square
Square(side=3, name='', shape='square')
>>> codec.write(square)
{'side': 3, 'shape': 'square'}
>>> codec.schema(Square)["properties"]["side"]
{'type': 'integer', 'minimum': 1, 'description': 'Its length, in cells.'}
>>> codec.read(Square, {"side": 0, "shape": "square"}, "[square]")
Traceback (most recent call last):
...
dpviz.errors.SettingError: [square] side must be at least 1.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from dpviz.errors import DpvizError, SettingError, check_choice, did_you_mean

T = TypeVar("T")
Schema = dict[str, Any]
"""A JSON Schema, or a part of one."""
Table = dict[str, Any]
"""A dictionary of plain values."""

_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda value, limit: value >= limit, "must be at least {}"),
    "maximum": (lambda value, limit: value <= limit, "must be at most {}"),
    "exclusiveMinimum": (lambda value, limit: value > limit, "must be greater than {}"),
    "minLength": (lambda value, limit: len(value) >= limit, "must have {} or more characters"),
    "pattern": (lambda value, limit: re.search(limit, value) is not None, "must match the pattern {}"),
    "minItems": (lambda value, limit: len(value) >= limit, "must have {} or more entries"),
    "maxItems": (lambda value, limit: len(value) <= limit, "must have {} or fewer entries"),
    "required": (lambda value, limit: set(limit) <= set(value), "must have the keys {}"),
}
"""The limits that `Annotated` may state: whether a value keeps one, and how it is said."""


class Limit(NamedTuple):
    """A limit of values, as JSON Schema states it.

    Attributes:
        keyword: minimum, maximum or exclusiveMinimum of numbers; minLength or pattern of texts; minItems or maxItems of lists; required of
            tables.
        size: the limit; of required, a tuple of keys.
    """

    keyword: str
    size: Any

    def keep(self, value: Any, name: str) -> None:
        """Refuse a value beyond the limit, with a `SettingError`."""
        keeps, text = _LIMITS[self.keyword]
        if not keeps(value, self.size):
            raise SettingError(f"{name} {text.format(', '.join(self.size) if isinstance(self.size, tuple) else self.size)}.")


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """How values of a further type are read, written and described.

    Attributes:
        read: checks a plain value and converts it; takes its name in messages, too.
        schema: the JSON Schema of the plain values.
        write: converts a value to a plain one.
    """

    read: Callable[[Any, str], Any]
    schema: Schema
    write: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key that a dataclass declares.

    Attributes:
        kind: the annotation of its values, without the None that stands for a key that is left out.
        default: the value that a key has if it is left out; `MISSING` if it must be there.
        text: what the docstring says of it.
    """

    kind: Any
    default: Any
    text: str

    @property
    def required(self) -> bool:
        """Whether the key must be there."""
        return self.default is MISSING

    def is_default(self, value: object) -> bool:
        """Return whether a value need not be written: the default, also in its type."""
        return type(value) is type(self.default) and value == self.default


def keys_of(kind: Any) -> dict[str, Key]:
    """List the keys that a dataclass declares, by name and in its order.

    Raises:
        TypeError: an annotation that this module does not know: a list with entries of several kinds.
    """
    return _list_keys(kind)


@cache  # apart, since mypy takes no class for Hashable
def _list_keys(kind: Any) -> dict[str, Key]:
    kinds, texts, found = get_type_hints(kind, include_extras=True), _describe_keys(kind), {}
    for item in (item for item in fields(kind) if item.compare):
        default = item.default if item.default_factory is MISSING else item.default_factory()
        own = kinds[item.name]
        _check_lists(own, f"{kind.__name__}.{item.name}")
        if get_args(own) == (default,) and get_origin(own) is Literal:  # a mark
            default = MISSING
        if default is None:
            own = Union[tuple(each for each in get_args(own) if each is not NoneType)]  # noqa: UP007  (of types that are computed)
        found[item.name] = Key(kind=own, default=default, text=texts.get(item.name, ""))
    return found


def _check_lists(kind: Any, name: str) -> None:
    """Refuse an annotation with a list in it whose entries are of several kinds, since all are read as the first."""
    parts = get_args(kind)
    if get_origin(kind) is tuple and len({*parts} - {Ellipsis}) != 1:
        raise TypeError(f"{name} must be a tuple of one kind of entries, such as tuple[int, ...] or tuple[int, int].")
    for part in parts:
        _check_lists(part, name)


def _describe_keys(kind: type[Any]) -> dict[str, str]:
    """Read what the docstrings of a dataclass, and of those that it extends, say of its keys under *Attributes*."""
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        section = inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")[2]
        texts |= {name: _clean(text) for name, text in _ATTRIBUTE.findall(section)}
    return texts


def _clean(text: str) -> str:
    """Write a text of a docstring on one line, as a sentence."""
    line = " ".join(text.split())
    return f"{line[:1].upper()}{line[1:]}"


def require_table(table: object, name: str) -> Table:
    """Check that `table` is a table, and return it.

    Raises:
        SettingError: `table` is not a table.
    """
    if not isinstance(table, dict):
        raise SettingError(f"{name} must be a table.")
    return table


@dataclass(frozen=True, kw_only=True)
class Codec:
    """How the tables of one kind of file are read, written and described.

    Attributes:
        scalars: further types, such as `Fraction`; `Any` among them is what has no type of its own.
        says_none: whether the files can say that there is no value, as null in JSON; if not, what is None is left out.
        step: what stands between the names of a table and of its key in messages.
        refused: keys that are never allowed, each with the kind and the text of its error.
        hint: makes the sentence that follows the error on an unknown key, with a space before it, from the key and the known ones.
    """

    scalars: Mapping[Any, Scalar] = field(default_factory=dict)
    says_none: bool = True
    step: str = " "
    refused: Mapping[str, tuple[type[DpvizError], str]] = field(default_factory=dict)
    hint: Callable[[str, Collection[str]], str] = did_you_mean

    def read(self, kind: type[T], table: object, name: str) -> T:
        """Read a table as the dataclass that declares its keys.

        Args:
            kind: a keyword-only dataclass.
            table: the table.
            name: what the table is called in messages, such as "[data]".

        Raises:
            SettingError: an unknown key (the text lists the known ones), a missing key, or a value of the wrong kind. The text names
                the key and the rule, and quotes no value.
            DpvizError: a key of `refused`, or what the dataclass itself refuses.
        """
        table, known = require_table(table, name), keys_of(kind)
        self.check_keys(table, known, name)
        for key, declared in known.items():
            if declared.required and key not in table:
                raise SettingError(f"{name} lacks {key}.")
        return kind(**{key: self.read_value(known[key].kind, value, f"{name}{self.step}{key}") for key, value in table.items()})

    def check_keys(self, table: Mapping[str, Any], known: Collection[str], name: str) -> None:
        """Refuse keys of a table that are not known.

        Raises:
            SettingError: an unknown key; the text lists the known ones.
            DpvizError: a key of `refused`.
        """
        for key in table:
            if key not in known:
                if key in self.refused:
                    error, text = self.refused[key]
                    raise error(text)
                raise SettingError(f"{name} has no key {key[:40]!r}; it knows {', '.join(known)}.{self.hint(key, known)}")

    def read_value(self, kind: Any, value: object, name: str) -> Any:
        """Check a plain value against an annotation, and convert it.

        Args:
            kind: an annotation, as listed at the top of this module.
            value: the value.
            name: what it is called in messages.

        Raises:
            SettingError: the value is of another kind, or out of its limits.
        """
        origin, parts = get_origin(kind), get_args(kind)
        if origin is Annotated:
            found = self.read_value(parts[0], value, name)
            for limit in parts[1:]:
                limit.keep(found, name)
            return found
        if origin in (Union, UnionType):
            return self._read_one_of(parts, value, name)
        if origin is tuple:
            return self._read_list(parts, value, name)
        if origin is dict:
            return {key: self.read_value(parts[1], item, f"{name}.{key[:40]}") for key, item in require_table(value, name).items()}
        if origin is Literal:
            if not any(type(value) is type(choice) and value == choice for choice in parts):
                check_choice(None if value in parts else value, parts, name)
            return value
        if isinstance(kind, type) and is_dataclass(kind) and kind not in self.scalars:
            return self.read(kind, value, name)
        return self._scalar(kind).read(value, name)

    def _read_one_of(self, kinds: Sequence[Any], value: object, name: str) -> Any:
        """Read a value of one of several kinds: null, a list or not, or the table that its mark names."""
        if value is None and NoneType in kinds:
            return None
        kinds = [kind for kind in kinds if kind is not NoneType]
        if len(kinds) > 1 and all(map(is_dataclass, kinds)):
            table, named = require_table(value, name), {_mark_of(kind): kind for kind in kinds}
            key = next(iter(named))[0]
            check_choice(table.get(key), [mark for _, mark in named], f"{name}{self.step}{key}")
            return self.read(named[key, table[key]], table, name)
        fitting = [kind for kind in kinds if (get_origin(kind) is tuple) == isinstance(value, list)]
        return self.read_value((fitting or kinds)[0], value, name)

    def _read_list(self, kinds: Sequence[Any], value: object, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise SettingError(f"{name} must be a list.")
        if kinds[-1] is not Ellipsis and len(value) != len(kinds):
            raise SettingError(f"{name} must have {len(kinds)} entries.")
        return tuple(self.read_value(kinds[0], item, f"Each of {name}") for item in value)

    def _scalar(self, kind: Any) -> Scalar:
        """Return how values of a type are read: as this codec says, or as all codecs do."""
        return self.scalars.get(kind) or _SCALARS[kind]

    def write(self, part: Any) -> Table:
        """Write a dataclass as a table, from which `read` makes an equal one; keys with their default values are left out."""
        table = {}
        for key, declared in keys_of(type(part)).items():
            value = getattr(part, key)
            if not declared.is_default(value) and (value is not None or self.says_none):
                table[key] = self.write_value(value)
        return table

    def write_value(self, value: Any) -> Any:
        """Write a value as a plain one; tuples become lists."""
        scalar = self.scalars.get(type(value))
        if scalar is not None:
            return scalar.write(value)
        if is_dataclass(value):
            return self.write(value)
        if isinstance(value, tuple | list):
            return [self.write_value(item) for item in value]
        if isinstance(value, dict):
            return {name: self.write_value(item) for name, item in value.items() if item is not None or self.says_none}
        return value

    def schema(self, kind: type[Any], defined: Table | None = None) -> Schema:
        """Make the JSON Schema of the tables that `read` takes.

        Args:
            kind: a keyword-only dataclass.
            defined: gets the schemas of the tables inside, by the names of their classes, for a part `$defs` of the schema, which then
                refers to them; if None, they stand where they belong.
        """
        declared = keys_of(kind)
        return {
            "type": "object",
            "description": _clean((inspect.getdoc(kind) or "").partition("Attributes:\n")[0]),
            "properties": self.schemas(declared, defined),
            "required": [name for name, key in declared.items() if key.required],
            "additionalProperties": False,
        }

    def schemas(self, keys: Mapping[str, Key], defined: Table | None = None) -> dict[str, Schema]:
        """Make the JSON Schemas of the values of keys, with their descriptions; `defined` is as for `schema`."""
        texts = {name: {"description": key.text} if key.text else {} for name, key in keys.items()}
        return {name: self.value_schema(key.kind, defined) | texts[name] for name, key in keys.items()}

    def value_schema(self, kind: Any, defined: Table | None = None) -> Schema:
        """Make the JSON Schema of the values that an annotation allows; `defined` is as for `schema`."""
        origin, parts = get_origin(kind), get_args(kind)
        if origin is Annotated:
            limits = {keyword: [*size] if isinstance(size, tuple) else size for keyword, size in parts[1:]}
            return self.value_schema(parts[0], defined) | limits
        if origin in (Union, UnionType):
            return self._union_schema(parts, defined)
        if origin is tuple:
            length = {} if parts[-1] is Ellipsis else {"minItems": len(parts), "maxItems": len(parts)}
            return {"type": "array", "items": self.value_schema(parts[0], defined)} | length
        if origin is dict:
            return {"type": "object", "additionalProperties": self.value_schema(parts[1], defined)}
        if origin is Literal:
            return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
        if not (isinstance(kind, type) and is_dataclass(kind)) or kind in self.scalars:
            return dict(self._scalar(kind).schema)
        if defined is None:
            return self.schema(kind)
        if kind.__name__ not in defined:
            defined[kind.__name__] = self.schema(kind, defined)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def _union_schema(self, kinds: Sequence[Any], defined: Table | None) -> Schema:
        schemas = [self.value_schema(kind, defined) for kind in kinds if kind is not NoneType]
        if NoneType in kinds and len(schemas) == 1 and isinstance(schemas[0].get("type"), str):
            return schemas[0] | {"type": [schemas[0]["type"], "null"]}
        if NoneType in kinds and len(schemas) == 1 and "enum" in schemas[0]:
            return {"enum": [*schemas[0]["enum"], None]}
        return {"anyOf": [*schemas, *([{"type": "null"}] if NoneType in kinds else [])]}


def _mark_of(kind: Any) -> tuple[str, Any]:
    """Return the key that marks a dataclass among others, and its only value.

    Raises:
        TypeError: it has no mark.
    """
    for name, key in keys_of(kind).items():
        if get_origin(key.kind) is Literal and len(values := get_args(key.kind)) == 1:
            return name, values[0]
    raise TypeError(f'{kind.__name__} stands among other tables, so it needs a mark, such as kind: Literal["name"] = "name".')


def _read_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{name} must be a text in quotes.")
    return value


def _read_integer(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingError(f"{name} must be a whole number.")
    return value


def _read_real(value: object, name: str) -> float:
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= sys.float_info.max else math.inf
    if not math.isfinite(number):
        raise SettingError(f"{name} must be a finite number.")
    return number


def _read_boolean(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"{name} must be true or false.")
    return value


TEXT = Scalar(read=_read_text, schema={"type": "string"})
"""How texts are read."""
_SCALARS: dict[Any, Scalar] = {
    str: TEXT,
    int: Scalar(read=_read_integer, schema={"type": "integer"}),
    float: Scalar(read=_read_real, schema={"type": "number"}),
    bool: Scalar(read=_read_boolean, schema={"type": "boolean"}),
}
