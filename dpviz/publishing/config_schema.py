"""JSON Schemas of configurations, for editors: made from the dataclasses that declare the keys, and from their docstrings.

`config.schema.json` is that of a release, `study.schema.json` that of a study. `python -m dpviz.publishing.config_schema` writes both.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from dpviz.data.counting.engines import AUTO, ENGINES
from dpviz.mechanisms import FAMILIES
from dpviz.publishing import config, study_config
from dpviz.samples.load import SAMPLES

Schema = dict[str, Any]

RELEASE_FILE = Path(__file__).with_name("config.schema.json")
STUDY_FILE = Path(__file__).with_name("study.schema.json")
_DRAFT = "http://json-schema.org/draft-07/schema#"  # the newest that the usual TOML editors read
_KINDS: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "Fraction": {"type": ["number", "string"]},
    "Any": {},
}
_NEEDED = ("data", "mechanism", "budget")
_SETTING = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def release_schema() -> Schema:
    """Make the JSON Schema of a release's configuration.

    >>> release_schema()["properties"]["domain"]["required"]
    ['bounds', 'crs']
    """
    tables = {name: _table_schema(kind) for name, kind in config.PARTS.items()}
    return _document("Configuration of a release for dpviz", tables, _NEEDED)


def study_schema() -> Schema:
    """Make the JSON Schema of a study's configuration."""
    tables = {name: _table_schema(kind) for name, kind in study_config.PARTS.items()}
    own = [item for item in fields(study_config.StudyConfig) if item.name not in (*tables, "mechanisms", "base")]
    keys = _key_schemas(own, _describe_keys(study_config.StudyConfig))
    mechanisms = {"mechanism": {"type": "array", "minItems": 1, "items": _table_schema(study_config.VariedPart, references=True)}}
    return _document("Configuration of a comparison for dpviz", {**keys, **tables, **mechanisms}, ("epsilons", "data", "mechanism"))


def write_schemas() -> None:
    """Write both schemas beside this module."""
    for path, schema in ((RELEASE_FILE, release_schema()), (STUDY_FILE, study_schema())):
        path.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _document(title: str, properties: Mapping[str, Schema], needed: tuple[str, ...]) -> Schema:
    return {
        "$schema": _DRAFT,
        "title": title,
        "type": "object",
        "properties": dict(properties),
        "required": list(needed),
        "additionalProperties": False,
    }


def _table_schema(kind: type[Any], *, references: bool = False) -> Schema:
    """Make the schema of a table from the dataclass that declares its keys."""
    properties = _key_schemas(fields(kind), _describe_keys(kind))
    for name, choices in _choices(kind, references=references).items():
        properties[name]["anyOf"] = [{"enum": choices}, {"type": "string"}]
    return {
        "type": "object",
        "description": _clean((inspect.getdoc(kind) or "").partition("\n")[0]),
        "properties": properties,
        "required": [item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING],
        "additionalProperties": False,
    }


def _choices(kind: type[Any], *, references: bool) -> dict[str, list[str]]:
    """Return the usual values of the keys of a table, which editors propose; other packages may add mechanisms."""
    if issubclass(kind, config.MechanismPart):
        own = [each.key for family in FAMILIES.values() for each in family.own]
        return {"key": [*own, *(each.key for family in FAMILIES.values() for each in family.references if references)]}
    if issubclass(kind, config.DataPart):
        return {"sample": [*SAMPLES], "engine": [AUTO, *ENGINES]}
    return {}


def _key_schemas(declared: tuple[Field[Any], ...] | list[Field[Any]], texts: Mapping[str, str]) -> dict[str, Schema]:
    return {item.name: {**_value_schema(str(item.type)), "description": texts[item.name]} for item in declared}


def _value_schema(kind: str) -> Schema:
    """Make the schema of the values that an annotation allows, as `toml_tables.value_of` reads it.

    >>> _value_schema("tuple[int, ...] | None")
    {'type': 'array', 'items': {'type': 'integer'}}
    """
    kind_name = kind.removesuffix(" | None")
    single, _, list_kind = kind_name.partition(" | ")
    if list_kind:
        return {"anyOf": [_value_schema(single), _value_schema(list_kind)]}
    if kind_name.startswith("tuple["):
        return {"type": "array", "items": _value_schema(kind_name.removeprefix("tuple[").removesuffix("]").partition(",")[0])}
    if kind_name.startswith("dict["):
        return {"type": "object", "additionalProperties": _value_schema(kind_name.removesuffix("]").partition(", ")[2])}
    return dict(_KINDS[kind_name])


def _describe_keys(kind: type[Any]) -> dict[str, str]:
    """Read what the docstrings of a dataclass, and of those that it extends, say of its keys under *Attributes*."""
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        section = inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")[2]
        texts |= {name: _clean(text) for name, text in _SETTING.findall(section)}
    return texts


def _clean(text: str) -> str:
    """Write a text of a docstring on one line, as a sentence."""
    line = " ".join(text.split())
    return f"{line[:1].upper()}{line[1:]}"


if __name__ == "__main__":
    write_schemas()
