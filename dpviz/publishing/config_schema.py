"""JSON Schemas of configurations, for editors: made from the dataclasses that declare the keys, and from their docstrings.

`config.schema.json` is that of a release, `study.schema.json` that of a study. `python -m dpviz.publishing.config_schema` writes both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpviz.codec import Schema
from dpviz.data.counting.engines import AUTO, ENGINES
from dpviz.families import FAMILIES
from dpviz.publishing import config, study_config
from dpviz.publishing.toml_tables import TOML
from dpviz.samples.load import SAMPLES

RELEASE_FILE = Path(__file__).with_name("config.schema.json")
STUDY_FILE = Path(__file__).with_name("study.schema.json")
_DRAFT = "http://json-schema.org/draft-07/schema#"  # the newest that the usual TOML editors read


def release_schema() -> Schema:
    """Make the JSON Schema of a release's configuration.

    >>> release_schema()["properties"]["domain"]["required"]
    ['bounds', 'crs']
    """
    tables = {name: _table_schema(kind) for name, kind in config.PARTS.items()}
    return _document("Configuration of a release for dpviz", tables, ("data", "mechanism", "budget"))


def study_schema() -> Schema:
    """Make the JSON Schema of a study's configuration."""
    keys = TOML.schemas(study_config.OWN_KEYS)
    tables = {name: _table_schema(kind) for name, kind in study_config.PARTS.items()}
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
    """Make the schema of a table; of keys with usual values, editors propose these."""
    schema = TOML.schema(kind)
    for name, choices in _choices(kind, references=references).items():
        schema["properties"][name]["anyOf"] = [{"enum": choices}, {"type": "string"}]
    return schema


def _choices(kind: type[Any], *, references: bool) -> dict[str, list[str]]:
    """Return the usual values of the keys of a table, which editors propose; other packages may add mechanisms."""
    if issubclass(kind, config.MechanismPart):
        own = [each.key for family in FAMILIES.values() for each in family.own]
        return {"key": [*own, *(each.key for family in FAMILIES.values() for each in family.references if references)]}
    if issubclass(kind, config.DataPart):
        return {"sample": [*SAMPLES], "engine": [AUTO, *ENGINES]}
    return {}


if __name__ == "__main__":
    write_schemas()
